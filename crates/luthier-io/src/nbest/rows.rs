//! Candidates of n-best files, stored by column.

use super::{Ids, Usage, sink::Beside};
use crate::Input;
use luthier_core::{Error, Fingerprint, Names, Result};
use rustc_hash::FxHashMap;

/// Largest segment number; a larger one is reported as an error, because memory is proportional to it.
pub(super) const MAX_SEGMENT: u32 = 10_000_000;

/// The candidates of one or more n-best files, one row per candidate, in reading order.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    /// Names of the features, with their numbers.
    pub names: Names,
    /// Names of the scores that are not features, with their numbers, without the total score.
    pub score_names: Names,
    /// Files that the rows were read from, in reading order.
    pub files: Vec<RowFile>,
    /// Segment number of each row.
    segment: Vec<u32>,
    /// Line in the file of each row, from 1.
    line: Vec<u32>,
    /// Texts of all rows, concatenated.
    text: String,
    /// End of each row's text in `text`, in bytes.
    text_end: Vec<usize>,
    features: Cells,
    scores: Cells,
    /// Total score of each row; NaN if the file has none.
    total: Vec<f64>,
    /// Names of the segments, in the order of their first occurrence; empty if segments are numbered.
    ids: Vec<String>,
    /// Number that the files give to the first segment, 0 or 1.
    first_id: u32,
    /// References of each segment that the files hold; empty if they hold none.
    beside: Vec<Beside>,
}

/// An n-best file that rows were read from.
#[derive(Debug, Clone)]
pub struct RowFile {
    /// Name of the file as the user gave it.
    pub name: String,
    /// Index of the file's first row.
    pub first: usize,
    /// Digest of the file's bytes, 16 hexadecimal digits.
    pub digest: String,
    /// What was read as what, for files with named columns.
    pub usage: Option<Usage>,
}

/// A sparse matrix of numbers, by row.
#[derive(Debug, Clone, Default)]
struct Cells {
    /// Column of each cell; those of one row if all rows are full.
    ids: Vec<u32>,
    /// Value of each cell.
    values: Vec<f64>,
    /// End of each row in `ids` and `values`; not used if all rows are full.
    end: Vec<usize>,
    /// Whether every row has a cell in every column, in order.
    full: bool,
    /// For each column, 1 plus the last row that has a cell there, to detect duplicates in O(1).
    seen: Vec<u32>,
}

/// Builds the error about files with different kinds of ids.
fn mixed(file: &str, these: &str, those: &str) -> Error {
    Error::in_file(file, format!("has {these} as ids of segments, but the files before have {those}"))
        .hint("give all files the same ids")
}

impl Cells {
    /// Returns a matrix of zeros in which every row has all columns.
    fn full(rows: usize, columns: usize) -> Self {
        if columns == 0 {
            return Cells { end: vec![0; rows], ..Cells::default() };
        }
        let ids = (0..columns as u32).collect();
        Cells { ids, values: vec![0.0; rows * columns], full: true, ..Cells::default() }
    }

    /// Returns columns and values of a row.
    fn row(&self, row: usize) -> (&[u32], &[f64]) {
        if self.full {
            let width = self.ids.len();
            return (&self.ids, &self.values[row * width..(row + 1) * width]);
        }
        let range = (if row == 0 { 0 } else { self.end[row - 1] })..self.end[row];
        (&self.ids[range.clone()], &self.values[range])
    }

    /// Stores the columns of each row, so that rows can differ.
    fn loosen(&mut self) {
        if self.full {
            let width = self.ids.len();
            let rows = self.values.len() / width;
            self.ids = self.ids.repeat(rows);
            self.end = (1..=rows).map(|row| row * width).collect();
            self.full = false;
        }
    }

    /// Ends a row.
    fn end_row(&mut self) {
        self.loosen();
        self.end.push(self.ids.len());
    }

    /// Appends a cell to a row; returns false if the row already has a cell in this column.
    fn push(&mut self, row: usize, id: u32, value: f64) -> bool {
        self.loosen();
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

    /// Returns the name of a segment as the files give it: a number, or a name.
    pub fn id(&self, segment: u32) -> String {
        match self.ids.get(segment as usize) {
            Some(id) => id.clone(),
            None => (segment + self.first_id).to_string(),
        }
    }

    /// Returns whether segments have names instead of numbers.
    pub fn has_names(&self) -> bool {
        !self.ids.is_empty()
    }

    /// Returns whether the files number segments from 1.
    pub fn counts_from_one(&self) -> bool {
        self.first_id == 1
    }

    /// Makes numbers that begin at 1 begin at 0, if every number from 1 to the last has a candidate; returns whether they
    /// were changed. [`Rows::id`] returns the numbers of the files.
    pub fn count_from_zero(&mut self) -> bool {
        let last = self.segment.iter().copied().max().unwrap_or(0);
        if self.has_names() || self.first_id > 0 || last == 0 || last as usize > self.len() {
            return false;
        }
        let mut has = vec![false; last as usize + 1];
        self.segment.iter().for_each(|&s| has[s as usize] = true);
        if has[0] || has[1..].contains(&false) {
            return false;
        }
        self.segment.iter_mut().for_each(|s| *s -= 1);
        if !self.beside.is_empty() {
            self.beside.remove(0);
        }
        self.first_id = 1;
        true
    }

    /// Returns whether the files hold references.
    pub fn has_references(&self) -> bool {
        self.beside.iter().any(|b| !b.references.is_empty())
    }

    /// Returns the references that the files hold, as lines of one or more reference files; empty if there are none. Fails
    /// if segments differ in their number of references.
    pub fn references(&self) -> Result<Vec<Vec<String>>> {
        let segments = self.segment.iter().max().map_or(0, |&m| m as usize + 1);
        if !self.has_references() {
            return Ok(Vec::new());
        }
        let file = self.files.first().map_or("n-best list", |f| f.name.as_str());
        let of = |s: usize| self.beside.get(s).map_or(&[][..], |b| &b.references);
        let n = of(0).len();
        if let Some(s) = (0..segments).find(|&s| of(s).len() != n) {
            let message = format!(
                "segment {} has {} references, but segment {} has {n}",
                self.id(s as u32),
                of(s).len(),
                self.id(0)
            );
            return Err(Error::in_file(file, message).hint("give references with --ref FILE"));
        }
        Ok((0..n).map(|i| (0..segments).map(|s| of(s)[i].clone()).collect()).collect())
    }

    /// Gives the rows from `first` on, whose segments are indices in `ids`, their final numbers, and takes the references.
    /// Fails if ids are too large, if some files have names and others numbers, or if references differ.
    pub(super) fn settle_ids(&mut self, file: &str, first: usize, ids: Ids) -> Result<()> {
        let numbers: Option<Vec<u32>> = ids.names.iter().map(|id| id.parse().ok()).collect();
        let numbers = if let Some(numbers) = numbers {
            self.settle_numbers(file)?;
            if let Some(large) = numbers.iter().find(|&&n| n > MAX_SEGMENT) {
                let message = format!("the segment id is `{large}`, expected at most {MAX_SEGMENT}");
                return Err(Error::in_file(file, message));
            }
            numbers
        } else {
            if first > 0 && !self.has_names() {
                return Err(mixed(file, "names", "numbers"));
            }
            self.name_segments(&ids.names)
        };
        self.segment[first..].iter_mut().for_each(|s| *s = numbers[*s as usize]);
        for (beside, &segment) in ids.beside.into_iter().zip(&numbers) {
            self.add_beside(file, segment, beside)?;
        }
        Ok(())
    }

    /// Returns the numbers of segments with names; new ones are added.
    fn name_segments(&mut self, names: &[String]) -> Vec<u32> {
        let mut known: FxHashMap<String, u32> =
            self.ids.iter().enumerate().map(|(i, id)| (id.clone(), i as u32)).collect();
        let number = |id: &String| {
            *known.entry(id.clone()).or_insert_with(|| {
                self.ids.push(id.clone());
                self.ids.len() as u32 - 1
            })
        };
        names.iter().map(number).collect()
    }

    /// Fails if the files before have names as ids, for a file that has numbers.
    pub(super) fn settle_numbers(&self, file: &str) -> Result<()> {
        if self.has_names() { Err(mixed(file, "numbers", "names")) } else { Ok(()) }
    }

    /// Adds the references and the group of a segment. Fails if it has others.
    fn add_beside(&mut self, file: &str, segment: u32, new: Beside) -> Result<()> {
        if new == Beside::default() {
            return Ok(());
        }
        if self.beside.len() <= segment as usize {
            self.beside.resize(segment as usize + 1, Beside::default());
        }
        let id = self.id(segment);
        let failed = |(message, hint): (String, &str)| Error::in_file(file, message).hint(hint);
        self.beside[segment as usize].join(&id, new).map_err(failed)
    }

    /// Returns the group of each segment, such as its document, which the column of [`Columns::group`](super::Columns)
    /// holds; `None` without such a column. Fails if a segment has none.
    pub fn groups(&self) -> Result<Option<Vec<&str>>> {
        if self.beside.iter().all(|b| b.group.is_none()) {
            return Ok(None);
        }
        let segments = self.segment.iter().max().map_or(0, |&m| m as usize + 1);
        let of = |s: usize| {
            let group = self.beside.get(s).and_then(|b| b.group.as_deref());
            group.ok_or_else(|| {
                let file = self.files.first().map_or("n-best list", |f| f.name.as_str());
                Error::in_file(file, format!("segment {} has no group", self.id(s as u32)))
                    .hint("every segment needs a value in the column of --group-column")
            })
        };
        (0..segments).map(of).collect::<Result<Vec<&str>>>().map(Some)
    }

    /// Returns the text of a row's candidate.
    pub fn text(&self, row: usize) -> &str {
        let start = if row == 0 { 0 } else { self.text_end[row - 1] };
        &self.text[start..self.text_end[row]]
    }

    /// Returns the features of a row's candidate: their numbers in `names`, and their values.
    pub fn features(&self, row: usize) -> (&[u32], &[f64]) {
        self.features.row(row)
    }

    /// Iterates over the features of a row's candidate, as name and value.
    pub fn named_features(&self, row: usize) -> impl Iterator<Item = (&str, f64)> {
        let (ids, values) = self.features(row);
        ids.iter().zip(values).map(|(&id, &v)| (self.names.names()[id as usize].as_str(), v))
    }

    /// Iterates over the scores of a row's candidate that are not features, as name and value, without the
    /// total score.
    pub fn named_scores(&self, row: usize) -> impl Iterator<Item = (&str, f64)> {
        let (ids, values) = self.scores.row(row);
        ids.iter().zip(values).map(|(&id, &v)| (self.score_names.names()[id as usize].as_str(), v))
    }

    /// Returns the total model score of a row's candidate; `None` if the file has none.
    pub fn total(&self, row: usize) -> Option<f64> {
        Some(self.total[row]).filter(|s| !s.is_nan())
    }

    /// Returns whether any candidate has a total model score.
    pub fn has_totals(&self) -> bool {
        self.total.iter().any(|t| !t.is_nan())
    }

    /// Returns the score, the `total` or the feature called `name` of a row's candidate; `None` if it has
    /// none of them.
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

    /// Returns the rows of each segment, in reading order. Fails if a segment has no candidate, unless
    /// `allow_missing` is true.
    pub fn by_segment(&self, allow_missing: bool) -> Result<Vec<Vec<u32>>> {
        let n = self.segment.iter().max().map_or(0, |&m| m as usize + 1);
        // With fewer candidates than segments, fail before memory is allocated for an erroneous segment
        // number.
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

    /// Returns the smallest segment number that no row has.
    fn first_missing(&self) -> String {
        let mut ids = self.segment.clone();
        ids.sort_unstable();
        ids.dedup();
        let gap = ids.iter().enumerate().find(|(i, id)| *i as u32 != **id).map_or(ids.len(), |(i, _)| i);
        gap.to_string()
    }

    /// Builds the error about a segment without candidates.
    fn missing(&self, segment: &str) -> Error {
        let file = self.files.first().map_or("n-best list", |f| f.name.as_str());
        Error::in_file(file, format!("segment {segment} has no candidate"))
            .hint("segments are numbered from 0; --allow-missing skips segments without candidates")
    }

    /// Appends all rows of `other`. Fails if two different names have the same key.
    pub fn append(&mut self, other: Rows) -> Result<()> {
        let (rows, text) = (self.len(), self.text.len());
        let renumber = |mine: &mut Names, theirs: &Names| {
            theirs.names().iter().map(|n| mine.intern(n)).collect::<Result<Vec<u32>>>()
        };
        let ids = renumber(&mut self.names, &other.names)?;
        let score_ids = renumber(&mut self.score_names, &other.score_names)?;
        let file = other.files.first().map_or(String::new(), |f| f.name.clone());
        self.segment.extend(&other.segment);
        if other.has_names() {
            let mut beside = other.beside;
            beside.resize(other.ids.len(), Beside::default());
            self.settle_ids(&file, rows, Ids::of(other.ids, beside))?;
        } else if self.has_names() {
            return Err(mixed(&file, "numbers", "names"));
        } else {
            for (segment, beside) in other.beside.into_iter().enumerate() {
                self.add_beside(&file, segment as u32, beside)?;
            }
        }
        self.files.extend(other.files.into_iter().map(|f| RowFile { first: f.first + rows, ..f }));
        self.line.extend(other.line);
        self.text += &other.text;
        self.text_end.extend(other.text_end.iter().map(|e| e + text));
        self.total.extend(other.total);
        for (mine, mut theirs, ids) in
            [(&mut self.features, other.features, ids), (&mut self.scores, other.scores, score_ids)]
        {
            mine.loosen();
            theirs.loosen();
            let cells = mine.ids.len();
            mine.ids.extend(theirs.ids.iter().map(|&id| ids[id as usize]));
            mine.values.extend(theirs.values);
            mine.end.extend(theirs.end.iter().map(|e| e + cells));
        }
        Ok(())
    }

    /// Appends one candidate of a segment with its features, and with scores that are not features.
    ///
    /// Fails if a name occurs twice or is not a valid feature name, or if a value is not finite.
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
                return Err(failed(format!("{} occurs twice", list[i].0)));
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

    /// Returns a digest of all candidates with their segments, features and scores, 32 hexadecimal digits.
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

    /// Adds a file; the following rows belong to it. Returns its index in `files`.
    pub(super) fn begin_file(&mut self, name: &str) -> usize {
        self.files.push(RowFile {
            name: name.to_owned(),
            first: self.len(),
            digest: String::new(),
            usage: None,
        });
        self.files.len() - 1
    }

    /// Appends to the text of the row being read.
    pub(super) fn push_text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds a feature, given by its number, to the row being read. Fails if the row already has it.
    pub(super) fn push_feature(&mut self, input: &Input, id: u32, value: f64) -> Result<()> {
        if self.features.push(self.segment.len(), id, value) {
            return Ok(());
        }
        let name = &self.names.names()[id as usize];
        Err(input.error(format!("the feature {name} occurs twice")).hint("remove one of the two"))
    }

    /// Returns whether the row being read has a feature, given by its number.
    pub(super) fn open_row_has(&self, id: u32) -> bool {
        self.features.seen.get(id as usize) == Some(&(self.segment.len() as u32 + 1))
    }

    /// Returns the number of a feature name. Fails if the name is invalid.
    pub(super) fn intern(&mut self, input: &Input, name: &str) -> Result<u32> {
        self.names.intern(name).map_err(|e| e.place(input.name(), input.line_number()))
    }

    /// Adds a feature, given by its name, to the row being read. Fails if the row already has it.
    pub(super) fn push_named(&mut self, input: &Input, name: &str, value: f64) -> Result<()> {
        let id = self.intern(input, name)?;
        self.push_feature(input, id, value)
    }

    /// Adds a score that is not a feature to the row being read. Fails if the row already has it.
    pub(super) fn push_score(&mut self, input: &Input, name: &str, value: f64) -> Result<()> {
        let id = self.score_names.intern(name).map_err(|e| e.place(input.name(), input.line_number()))?;
        if self.scores.push(self.segment.len(), id, value) {
            return Ok(());
        }
        Err(input.error(format!("the score {name} occurs twice")).hint("remove one of the two"))
    }

    /// Ends the row whose text, features and scores have been added.
    pub(super) fn end_row(&mut self, segment: u32, line: u64, total: Option<f64>) {
        self.segment.push(segment);
        self.line.push(u32::try_from(line).unwrap_or(u32::MAX));
        self.text_end.push(self.text.len());
        self.features.end_row();
        self.scores.end_row();
        self.total.push(total.unwrap_or(f64::NAN));
    }

    /// Adds a feature to the rows from `first` on, one number per row. Fails if a row already has it, or if
    /// the name is not a valid feature name.
    pub fn add_feature(&mut self, name: &str, first: usize, numbers: &[f64]) -> Result<()> {
        let id = self.names.intern(name)?;
        let mut wider = Cells::default();
        for row in 0..self.len() {
            let (ids, values) = self.features.row(row);
            for (&id, &value) in ids.iter().zip(values) {
                wider.push(row, id, value);
            }
            if row >= first && !wider.push(row, id, numbers[row - first]) {
                return Err(self.error(row, format!("the feature {name} is already in the list")));
            }
            wider.end.push(wider.ids.len());
        }
        self.features = wider;
        Ok(())
    }

    /// Makes rows for segments with a number of candidates each, with empty texts, and with room for a number of features and
    /// of other scores, which [`Rows::fill_feature`] and [`Rows::fill_score`] take as whole columns. Fails if a segment has
    /// no candidate.
    ///
    /// ```
    /// use luthier_io::nbest::Rows;
    /// let mut rows = Rows::of_sizes(&[2, 1], 1, 0)?;
    /// rows.fill_feature("lm", [-1.0, -2.0, -3.0].into_iter())?;
    /// let mut texts = rows.texts();
    /// ["a b", "b a", "c"].iter().for_each(|text| texts.push(text));
    /// texts.finish()?;
    /// assert_eq!((rows.segment(2), rows.text(1), rows.column(2, "lm")), (1, "b a", Some(-3.0)));
    /// # Ok::<(), luthier_core::Error>(())
    /// ```
    pub fn of_sizes(sizes: &[usize], features: usize, scores: usize) -> Result<Self> {
        if let Some(segment) = sizes.iter().position(|&n| n == 0) {
            return Err(
                Error::new(format!("segment {segment} has no candidate")).hint("leave the segment out")
            );
        }
        let n: usize = sizes.iter().sum();
        if n > u32::MAX as usize || sizes.len() > MAX_SEGMENT as usize {
            return Err(Error::new(format!("{n} candidates of {} segments are too many", sizes.len())));
        }
        let segment = |(s, &n): (usize, &usize)| std::iter::repeat_n(s as u32, n);
        Ok(Rows {
            segment: sizes.iter().enumerate().flat_map(segment).collect(),
            line: (1..=n as u32).collect(),
            text_end: vec![0; n],
            features: Cells::full(n, features),
            scores: Cells::full(n, scores),
            total: vec![f64::NAN; n],
            ..Rows::default()
        })
    }

    /// Sets the next feature of rows from [`Rows::of_sizes`], one number per row. Fails if the name is not a valid feature
    /// name or occurs twice, or if a value is missing or not finite.
    pub fn fill_feature(&mut self, name: &str, values: impl Iterator<Item = f64>) -> Result<()> {
        let column = self.names.names().len();
        if self.names.intern(name)? as usize != column {
            return Err(Error::new(format!("the feature {name} occurs twice")).hint("remove one of the two"));
        }
        self.fill("feature", name, column, values)
    }

    /// Sets the next score of rows from [`Rows::of_sizes`] that is not a feature, one number per row. Fails as
    /// [`Rows::fill_feature`] does.
    pub fn fill_score(&mut self, name: &str, values: impl Iterator<Item = f64>) -> Result<()> {
        let column = self.score_names.names().len();
        if self.score_names.intern(name)? as usize != column {
            return Err(Error::new(format!("the score {name} occurs twice")).hint("remove one of the two"));
        }
        self.fill("score", name, column, values)
    }

    fn fill(
        &mut self,
        kind: &str,
        name: &str,
        column: usize,
        values: impl Iterator<Item = f64>,
    ) -> Result<()> {
        let n = self.len();
        let cells = if kind == "feature" { &mut self.features } else { &mut self.scores };
        let width = cells.ids.len();
        if !cells.full || column >= width {
            return Err(Error::new(format!("there is no room for the {kind} {name}")));
        }
        let (mut count, mut wrong, mut first) = (0, 0, None);
        for value in values.take(n) {
            if !value.is_finite() {
                wrong += 1;
                first.get_or_insert((count, value));
            }
            cells.values[count * width + column] = value;
            count += 1;
        }
        if count < n {
            return Err(Error::new(format!("the {kind} {name} has {count} values, expected {n}")));
        }
        let Some((row, value)) = first else { return Ok(()) };
        let segment = self.segment[row];
        let candidate = self.segment[..row].iter().rev().take_while(|&&s| s == segment).count();
        Err(Error::new(format!(
            "{kind} {name}: {wrong} of {n} values are not finite; the first is {value}, of candidate {candidate} of segment {segment}"
        ))
        .hint("replace missing values by a number, such as the smallest"))
    }

    /// Returns a writer of the texts of rows from [`Rows::of_sizes`].
    pub fn texts(&mut self) -> Texts<'_> {
        self.text.clear();
        Texts { rows: self, count: 0 }
    }

    /// Names all segments. Fails if names do not differ, or if there are not as many as segments.
    pub fn name_all(&mut self, names: Vec<String>) -> Result<()> {
        self.check_segments("names", names.len())?;
        let mut seen = rustc_hash::FxHashSet::default();
        if let Some(twice) = names.iter().find(|name| !seen.insert(name.as_str())) {
            return Err(Error::new(format!("two segments are named {twice}")));
        }
        self.ids = names;
        Ok(())
    }

    /// Sets the groups of all segments, such as their documents. Fails if there are not as many as segments.
    pub fn group_all(&mut self, groups: Vec<String>) -> Result<()> {
        self.check_segments("groups", groups.len())?;
        self.beside.resize(groups.len(), Beside::default());
        for (beside, group) in self.beside.iter_mut().zip(groups) {
            beside.group = Some(group);
        }
        Ok(())
    }

    fn check_segments(&self, what: &str, found: usize) -> Result<()> {
        let segments = self.segment.last().map_or(0, |&s| s as usize + 1);
        if found == segments {
            return Ok(());
        }
        Err(Error::new(format!("{found} {what} for {segments} segments")))
    }
}

/// Writer of the texts of rows, in their order.
pub struct Texts<'a> {
    rows: &'a mut Rows,
    count: usize,
}

impl Texts<'_> {
    /// Adds the text of the next row.
    pub fn push(&mut self, text: &str) {
        if let Some(end) = self.rows.text_end.get_mut(self.count) {
            self.rows.text.push_str(text);
            *end = self.rows.text.len();
        }
        self.count += 1;
    }

    /// Ends the texts. Fails if there are not as many as rows.
    pub fn finish(self) -> Result<()> {
        let n = self.rows.len();
        if self.count == n {
            return Ok(());
        }
        let count = self.count;
        self.rows.text_end.iter_mut().for_each(|end| *end = 0);
        self.rows.text.clear();
        Err(Error::new(format!("{count} texts for {n} candidates")))
    }
}
