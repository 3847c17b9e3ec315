//! Candidates of n-best files in columns.

use crate::Input;
use luthier_core::{Error, Fingerprint, Names, Result};

/// Segments are numbered from 0; beyond this an id is surely not one.
pub(super) const MAX_SEGMENT: u32 = 10_000_000;

/// The candidates of one or more n-best files, one row per candidate, in reading order.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    /// Names of the features; feature numbers are positions in it.
    pub names: Names,
    /// Names of the scores that are not features, without the model's total.
    pub score_names: Names,
    /// Files that the rows came from, in reading order.
    pub files: Vec<RowFile>,
    segment: Vec<u32>,
    line: Vec<u32>,
    text: String,
    text_end: Vec<usize>,
    features: Cells,
    scores: Cells,
    total: Vec<f64>,
}

/// An n-best file that rows came from.
#[derive(Debug, Clone)]
pub struct RowFile {
    /// Name of the file as the user gave it.
    pub name: String,
    /// Index of the file's first row.
    pub first: usize,
    /// Digest of the file's bytes, 16 hexadecimal digits.
    pub digest: String,
}

/// Sparse rows of numbers.
#[derive(Debug, Clone, Default)]
struct Cells {
    ids: Vec<u32>,
    values: Vec<f64>,
    end: Vec<usize>,
    /// By id, one more than the row that had it last: finds repetitions without searching.
    seen: Vec<u32>,
}

impl Cells {
    fn range(&self, row: usize) -> std::ops::Range<usize> {
        (if row == 0 { 0 } else { self.end[row - 1] })..self.end[row]
    }

    /// False if this row has that number already.
    fn push(&mut self, row: usize, id: u32, value: f64) -> bool {
        if self.seen.len() <= id as usize {
            self.seen.resize(id as usize + 1, 0);
        }
        let mark = row as u32 + 1;
        let new = std::mem::replace(&mut self.seen[id as usize], mark) != mark;
        self.ids.push(id);
        self.values.push(value);
        new
    }
}

impl Rows {
    /// Returns the number of candidates.
    pub fn len(&self) -> usize {
        self.segment.len()
    }

    /// Returns whether there are no candidates.
    pub fn is_empty(&self) -> bool {
        self.segment.is_empty()
    }

    /// Returns the number of the segment that a row belongs to, from 0.
    pub fn segment(&self, row: usize) -> u32 {
        self.segment[row]
    }

    /// Returns the text of a row's candidate.
    pub fn text(&self, row: usize) -> &str {
        let start = if row == 0 { 0 } else { self.text_end[row - 1] };
        &self.text[start..self.text_end[row]]
    }

    /// Returns the features of a row's candidate: numbers in `names`, and values.
    pub fn features(&self, row: usize) -> (&[u32], &[f64]) {
        let range = self.features.range(row);
        (&self.features.ids[range.clone()], &self.features.values[range])
    }

    /// Iterates over the features of a row's candidate, as name and value.
    pub fn named_features(&self, row: usize) -> impl Iterator<Item = (&str, f64)> {
        let (ids, values) = self.features(row);
        ids.iter().zip(values).map(|(&id, &v)| (self.names.names()[id as usize].as_str(), v))
    }

    /// Iterates over the scores of a row's candidate that are not features, as name and value, without the
    /// total.
    pub fn named_scores(&self, row: usize) -> impl Iterator<Item = (&str, f64)> {
        let range = self.scores.range(row);
        let ids = self.scores.ids[range.clone()].iter();
        ids.zip(&self.scores.values[range])
            .map(|(&id, &v)| (self.score_names.names()[id as usize].as_str(), v))
    }

    /// Returns the model's own total score of a row's candidate; `None` if the file had none.
    pub fn total(&self, row: usize) -> Option<f64> {
        Some(self.total[row]).filter(|s| !s.is_nan())
    }

    /// Returns whether any candidate came with the model's own total score.
    pub fn has_totals(&self) -> bool {
        self.total.iter().any(|t| !t.is_nan())
    }

    /// Returns a number of a row's candidate by its name: a score, the `total`, or a feature; `None` if it
    /// has none.
    pub fn column(&self, row: usize, name: &str) -> Option<f64> {
        let named = |(n, v): (&str, f64)| (n == name).then_some(v);
        self.named_scores(row)
            .find_map(named)
            .or_else(|| self.total(row).filter(|_| name == "total"))
            .or_else(|| self.named_features(row).find_map(named))
    }

    /// Builds an error at the file and line that a row was read from.
    pub fn error(&self, row: usize, message: impl Into<String>) -> Error {
        let file = self.files.iter().rev().find(|f| f.first <= row).map_or("n-best list", |f| &f.name);
        Error::at(file, u64::from(self.line[row]), message)
    }

    /// Returns the rows of each segment, in reading order. Fails if a segment has none, unless
    /// `allow_missing`.
    pub fn by_segment(&self, allow_missing: bool) -> Result<Vec<Vec<u32>>> {
        let n = self.segment.iter().max().map_or(0, |&m| m as usize + 1);
        // Fewer candidates than segments: say so before memory is taken for ids that a typing error made.
        let mut groups = if allow_missing || n <= self.len() {
            vec![Vec::new(); n]
        } else {
            return Err(self.missing(&self.first_missing()));
        };
        for (row, &s) in self.segment.iter().enumerate() {
            groups[s as usize].push(row as u32);
        }
        match groups.iter().position(Vec::is_empty) {
            Some(s) if !allow_missing => Err(self.missing(&s.to_string())),
            _ => Ok(groups),
        }
    }

    fn first_missing(&self) -> String {
        let mut ids = self.segment.clone();
        ids.sort_unstable();
        ids.dedup();
        let gap = ids.iter().enumerate().find(|(i, id)| *i as u32 != **id).map_or(ids.len(), |(i, _)| i);
        gap.to_string()
    }

    fn missing(&self, segment: &str) -> Error {
        let file = self.files.first().map_or("n-best list", |f| f.name.as_str());
        Error::in_file(file, format!("segment {segment} has no candidate"))
            .hint("segments count from 0; --allow-missing goes on without it")
    }

    /// Appends all rows of `other`. Fails if two different names have the same key.
    pub fn append(&mut self, other: Rows) -> Result<()> {
        let (rows, text) = (self.len(), self.text.len());
        let renumber = |mine: &mut Names, theirs: &Names| {
            theirs.names().iter().map(|n| mine.intern(n)).collect::<Result<Vec<u32>>>()
        };
        let ids = renumber(&mut self.names, &other.names)?;
        let score_ids = renumber(&mut self.score_names, &other.score_names)?;
        self.files.extend(other.files.into_iter().map(|f| RowFile { first: f.first + rows, ..f }));
        self.segment.extend(other.segment);
        self.line.extend(other.line);
        self.text += &other.text;
        self.text_end.extend(other.text_end.iter().map(|e| e + text));
        self.total.extend(other.total);
        for (mine, theirs, ids) in
            [(&mut self.features, other.features, ids), (&mut self.scores, other.scores, score_ids)]
        {
            let cells = mine.ids.len();
            mine.ids.extend(theirs.ids.iter().map(|&id| ids[id as usize]));
            mine.values.extend(theirs.values);
            mine.end.extend(theirs.end.iter().map(|e| e + cells));
        }
        Ok(())
    }

    /// Appends one candidate of a segment with its features, and with scores that are not features.
    ///
    /// Fails where a name stands twice or cannot be a feature's name, or where a value is not finite.
    ///
    /// ```
    /// let mut rows = luthier_io::nbest::Rows::default();
    /// rows.push(0, "the house", &[("lm", -3.5), ("length", 2.0)], &[("comet", 0.81)]).unwrap();
    /// assert_eq!(rows.column(0, "comet"), Some(0.81));
    /// ```
    pub fn push(
        &mut self,
        segment: u32,
        text: &str,
        features: &[(&str, f64)],
        scores: &[(&str, f64)],
    ) -> Result<()> {
        let row = self.segment.len();
        let failed = |what: String| Error::new(format!("candidate {row} (of segment {segment}): {what}"));
        if let Some((name, value)) = features.iter().chain(scores).find(|v| !v.1.is_finite()) {
            return Err(failed(format!("{name} is {value}, expected a finite number")));
        }
        for list in [features, scores] {
            let twice = |i: &usize| list[..*i].iter().any(|v| v.0 == list[*i].0);
            if let Some(i) = (0..list.len()).find(twice) {
                return Err(failed(format!("{} stands twice", list[i].0)));
            }
        }
        let mut ids = Vec::with_capacity(features.len());
        for (name, _) in features {
            ids.push(self.names.intern(name)?);
        }
        let mut score_ids = Vec::with_capacity(scores.len());
        for (name, _) in scores {
            score_ids.push(self.score_names.intern(name)?);
        }
        for (id, v) in ids.into_iter().zip(features) {
            self.features.push(row, id, v.1);
        }
        for (id, v) in score_ids.into_iter().zip(scores) {
            self.scores.push(row, id, v.1);
        }
        self.push_text(text);
        self.end_row(segment, row as u64 + 1, None);
        Ok(())
    }

    /// Digest of all candidates with their segments, features and scores.
    pub fn digest(&self) -> String {
        let mut print = Fingerprint::default();
        for row in 0..self.len() {
            print = print.word(u64::from(self.segment(row))).bytes(self.text(row).as_bytes());
            for (name, value) in self.named_features(row).chain(self.named_scores(row)) {
                print = print.bytes(name.as_bytes()).word(value.to_bits());
            }
        }
        format!("{:032x}", print.finish())
    }

    pub(super) fn begin_file(&mut self, name: &str) -> usize {
        self.files.push(RowFile { name: name.to_owned(), first: self.len(), digest: String::new() });
        self.files.len() - 1
    }

    /// Adds to the text of the row that is being read.
    pub(super) fn push_text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds a feature by its number.
    pub(super) fn push_feature(&mut self, input: &Input, id: u32, value: f64) -> Result<()> {
        if self.features.push(self.segment.len(), id, value) {
            return Ok(());
        }
        let name = &self.names.names()[id as usize];
        Err(input.error(format!("the feature {name} stands twice")).hint("remove one of the two"))
    }

    /// The number of a feature's name.
    pub(super) fn intern(&mut self, input: &Input, name: &str) -> Result<u32> {
        self.names.intern(name).map_err(|e| e.place(input.name(), input.line_number()))
    }

    /// Adds a feature by its name.
    pub(super) fn push_named(&mut self, input: &Input, name: &str, value: f64) -> Result<()> {
        let id = self.intern(input, name)?;
        self.push_feature(input, id, value)
    }

    /// Adds a score that is not a feature.
    pub(super) fn push_score(&mut self, input: &Input, name: &str, value: f64) -> Result<()> {
        let id = self.score_names.intern(name).map_err(|e| e.place(input.name(), input.line_number()))?;
        if self.scores.push(self.segment.len(), id, value) {
            return Ok(());
        }
        Err(input.error(format!("the score {name} stands twice")).hint("remove one of the two"))
    }

    /// Ends the row whose text, features and scores have been added.
    pub(super) fn end_row(&mut self, segment: u32, line: u64, total: Option<f64>) {
        self.segment.push(segment);
        self.line.push(u32::try_from(line).unwrap_or(u32::MAX));
        self.text_end.push(self.text.len());
        self.features.end.push(self.features.ids.len());
        self.scores.end.push(self.scores.ids.len());
        self.total.push(total.unwrap_or(f64::NAN));
    }

    /// Adds a feature to the rows from `first` on, one number per row. Fails if a row has it already, or if
    /// the name cannot be a feature's.
    pub fn add_feature(&mut self, name: &str, first: usize, numbers: &[f64]) -> Result<()> {
        let id = self.names.intern(name)?;
        let mut wider = Cells::default();
        for row in 0..self.len() {
            let range = self.features.range(row);
            for (&id, &value) in self.features.ids[range.clone()].iter().zip(&self.features.values[range]) {
                wider.push(row, id, value);
            }
            if row >= first && !wider.push(row, id, numbers[row - first]) {
                return Err(self.error(row, format!("the feature {name} is in the list already")));
            }
            wider.end.push(wider.ids.len());
        }
        self.features = wider;
        Ok(())
    }
}
