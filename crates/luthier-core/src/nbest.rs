//! N-best lists as they come: candidates in file order, in columns.

mod moses;

pub use moses::{read_moses, write_moses};

use crate::{Error, Names};

/// Everything that was read from one or more n-best files. A row is one candidate.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    /// The features' names; `ids` are numbers in it.
    pub names: Names,
    /// Files in reading order, with their first row and digest.
    pub files: Vec<RowFile>,
    segment: Vec<u32>,
    line: Vec<u32>,
    text: String,
    text_end: Vec<usize>,
    ids: Vec<u32>,
    values: Vec<f64>,
    row_end: Vec<usize>,
    score: Vec<f64>,
}

/// One file that rows came from.
#[derive(Debug, Clone)]
pub struct RowFile {
    /// The file as the user named it.
    pub name: String,
    /// Its first row.
    pub first: usize,
    /// Digest of its bytes.
    pub digest: String,
}

impl Rows {
    /// Number of candidates.
    pub fn len(&self) -> usize {
        self.segment.len()
    }

    /// True without candidates.
    pub fn is_empty(&self) -> bool {
        self.segment.is_empty()
    }

    /// The segment that a candidate translates.
    pub fn segment(&self, row: usize) -> u32 {
        self.segment[row]
    }

    /// A candidate's text.
    pub fn text(&self, row: usize) -> &str {
        let start = if row == 0 { 0 } else { self.text_end[row - 1] };
        &self.text[start..self.text_end[row]]
    }

    /// A candidate's features: numbers of names, and values.
    pub fn features(&self, row: usize) -> (&[u32], &[f64]) {
        let start = if row == 0 { 0 } else { self.row_end[row - 1] };
        let range = start..self.row_end[row];
        (&self.ids[range.clone()], &self.values[range])
    }

    /// The score that came with a candidate.
    pub fn score(&self, row: usize) -> Option<f64> {
        Some(self.score[row]).filter(|s| !s.is_nan())
    }

    /// A named number that came with a candidate.
    pub fn column(&self, row: usize, name: &str) -> Option<f64> {
        let (ids, values) = self.features(row);
        let at = ids.iter().position(|&id| self.names.names()[id as usize] == name)?;
        Some(values[at])
    }

    /// An error at the line that a candidate came from.
    pub fn error(&self, row: usize, message: impl Into<String>) -> Error {
        let file = self.files.iter().rev().find(|f| f.first <= row).map_or("n-best list", |f| &f.name);
        Error::at(file, u64::from(self.line[row]), message)
    }

    /// Rows of each segment, in reading order; the vector is as long as the largest id asks for.
    pub fn by_segment(&self) -> Vec<Vec<u32>> {
        let n = self.segment.iter().max().map_or(0, |&m| m as usize + 1);
        let mut groups = vec![Vec::new(); n];
        for (row, &s) in self.segment.iter().enumerate() {
            groups[s as usize].push(row as u32);
        }
        groups
    }

    /// Ends the row whose text and features have been appended.
    fn end_row(&mut self, segment: u32, line: u64, score: Option<f64>) {
        self.segment.push(segment);
        self.line.push(u32::try_from(line).unwrap_or(u32::MAX));
        self.text_end.push(self.text.len());
        self.row_end.push(self.ids.len());
        self.score.push(score.unwrap_or(f64::NAN));
    }
}
