//! Hypothesis and reference files of `score`, `compare` and `experiment`, and their statistics.

use luthier::{
    core::{Error, Result, sum},
    io::text,
    metric::{Hypothesis, Metric, Scratch},
};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// References from one or more files; segments may differ in the number of references.
pub(crate) struct References {
    /// Name of the first file, for messages.
    pub(crate) file: String,
    files: Vec<text::Lines>,
    /// Whether a line can hold several references, separated by tabs.
    tabs: bool,
}

impl References {
    /// Reads reference files; with `tabs`, a line can hold several references separated by tabs.
    pub(crate) fn read(paths: &[PathBuf], tabs: bool) -> Result<Self> {
        let files = super::command::read_references(paths)?;
        let file = files.first().map(|f| f.file.clone()).unwrap_or_default();
        Ok(References { file, files, tabs })
    }

    /// Returns the references of each segment. Fails if files differ in length.
    pub(crate) fn by_segment(&self) -> Result<Vec<Vec<&str>>> {
        let rows = text::by_segment(&self.files)?;
        if !self.tabs {
            return Ok(rows);
        }
        Ok(rows.into_iter().map(|row| row.into_iter().flat_map(cells).collect()).collect())
    }
}

/// Returns the references of a line with tabs; empty cells after the first one are not references.
fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.split('\t').enumerate().filter(|(i, cell)| *i == 0 || !cell.is_empty()).map(|(_, cell)| cell)
}

/// Returns the number of references per segment; `None` if it varies.
pub(crate) fn reference_count(references: &[Vec<&str>]) -> Option<usize> {
    let first = references.first().map_or(0, Vec::len);
    references.iter().all(|r| r.len() == first).then_some(first)
}

/// Hypotheses of one system.
pub(crate) struct System {
    /// Name of the file, for messages.
    pub(crate) file: String,
    /// One hypothesis per segment.
    pub(crate) lines: Vec<String>,
    /// Lines parsed as JSON, for metrics that read a column; else empty.
    objects: Vec<Value>,
}

impl System {
    /// Reads one hypothesis per line. With `columns`, lines are JSON objects, or plain numbers for a single column.
    /// Fails if the file is empty, or if a line is not valid JSON.
    pub(crate) fn read(path: &Path, columns: bool) -> Result<Self> {
        let text::Lines { file, mut lines, .. } = text::read_lines(path)?;
        if lines.is_empty() {
            return Err(Error::in_file(file, "is empty, expected one translation per line"));
        }
        let mut objects = Vec::new();
        if columns {
            for (i, line) in lines.iter_mut().enumerate() {
                let value: Value = serde_json::from_str(line).map_err(|_| {
                    let shown: String = line.chars().take(30).collect();
                    Error::at(
                        &file,
                        i as u64 + 1,
                        format!("found `{shown}`, expected a JSON object or a number"),
                    )
                    .hint("a column metric reads one number per segment")
                })?;
                value.get("text").and_then(Value::as_str).unwrap_or_default().clone_into(line);
                objects.push(value);
            }
        }
        Ok(System { file, lines, objects })
    }

    /// Returns the values of the columns that a metric reads, segment after segment. Fails if a line lacks one of them.
    fn columns(&self, metric: &Metric) -> Result<Vec<f64>> {
        let names = metric.columns();
        let mut out = Vec::with_capacity(names.len() * self.lines.len());
        for (i, object) in self.objects.iter().enumerate() {
            for name in &names {
                let nested = |key: &str| object.get(key).and_then(|o| o.get(name)).and_then(Value::as_f64);
                let top = object.get(name).and_then(Value::as_f64).or_else(|| object.as_f64());
                let found = top.or_else(|| nested("scores")).or_else(|| nested("features"));
                out.push(found.filter(|v| v.is_finite()).ok_or_else(|| {
                    Error::at(&self.file, i as u64 + 1, format!("has no number `{name}`"))
                        .hint(format!("column:{name} reads it from every line"))
                })?);
            }
        }
        Ok(out)
    }

    /// Fails unless there are `n` hypotheses, the number of lines of the file `other`.
    pub(crate) fn check_length(&self, n: usize, other: &str) -> Result<()> {
        if self.lines.len() == n {
            return Ok(());
        }
        let first = self.lines.len().min(n) as u64 + 1;
        Err(Error::at(
            &self.file,
            first,
            format!("the file has {}, but {other} has {n}", counted(self.lines.len())),
        )
        .hint("give files with one line per segment, in the same order; is one truncated?"))
    }
}

/// `1 line`, `2 lines`.
fn counted(lines: usize) -> String {
    if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") }
}

/// Returns the statistics of every system under one metric, `metric.width()` numbers per segment. Fails if a hypothesis
/// lacks a column that the metric reads.
pub(crate) fn statistics(
    metric: &Metric,
    systems: &[System],
    references: &[Vec<&str>],
) -> Result<Vec<Vec<f32>>> {
    const CHUNK: usize = 256;
    let (width, segments) = (metric.width(), systems[0].lines.len());
    let columns = systems.iter().map(|s| s.columns(metric)).collect::<Result<Vec<_>>>()?;
    let per_segment = metric.columns().len();
    let parts = sum::map_chunks(segments, CHUNK, |range| {
        let mut scratch = Scratch::default();
        let mut out = vec![vec![0.0; width * range.len()]; systems.len()];
        for (i, s) in range.enumerate() {
            let prepared = metric.prepare(references.get(s).map_or(&[][..], |r| r), &mut scratch);
            for (system, (out, columns)) in systems.iter().zip(out.iter_mut().zip(&columns)) {
                let columns = &columns[s * per_segment..(s + 1) * per_segment];
                let h = Hypothesis { text: &system.lines[s], columns };
                metric.stats(&prepared, h, &mut scratch, &mut out[i * width..(i + 1) * width]);
            }
        }
        out
    });
    let mut all = vec![Vec::with_capacity(width * segments); systems.len()];
    for part in parts {
        all.iter_mut().zip(part).for_each(|(all, part)| all.extend(part));
    }
    Ok(all)
}
