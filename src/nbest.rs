//! N-best lists of a whole text, with references: what most users of the library begin with.

use crate::{
    core::{Error, Fingerprint, Result, Weights},
    io::{
        InputFile,
        nbest::{self, Options, Rows},
        text::{Lines, by_segment, read_lines},
    },
    metric::Metric,
    tune::{Candidates, Judge, columns, list, lists},
};
use rayon::prelude::*;
use std::path::Path;

/// Candidates of every segment of a text with their features, and references if there are any.
///
/// ```
/// use luthier::NBest;
/// let mut lists = NBest::default();
/// lists.push(0, "the house", &[("lm", -3.0)], &[])?;
/// lists.push(0, "house the", &[("lm", -7.5)], &[])?;
/// let weights = luthier::core::Weights::parse("w.txt", "lm 1\n")?;
/// assert_eq!(lists.rerank(&weights)?, ["the house"]);
/// # Ok::<(), luthier::core::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct NBest {
    pub(crate) rows: Rows,
    pub(crate) references: Vec<Lines>,
    /// How files were read.
    pub(crate) options: Options,
}

impl NBest {
    /// Reads n-best lists in any format, told by content; several files are merged. Fails on files that are no n-best lists,
    /// naming file and line.
    pub fn read<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<Self> {
        Self::read_with(paths, &Options::default())
    }

    /// Reads n-best lists of which content alone does not tell how they are to be read.
    pub fn read_with<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>, options: &Options) -> Result<Self> {
        let paths: Vec<P> = paths.into_iter().collect();
        let paths: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
        Ok(NBest { rows: read_rows(&paths, options)?, references: Vec::new(), options: options.clone() })
    }

    /// Adds reference files, one segment per line; each has one reference for every segment.
    pub fn with_references<P: AsRef<Path>>(mut self, paths: impl IntoIterator<Item = P>) -> Result<Self> {
        for path in paths {
            self.references.push(read_lines(path.as_ref())?);
        }
        by_segment(&self.references)?;
        Ok(self)
    }

    /// Adds references in memory: one for every segment. May be called once per set of references.
    pub fn with_reference_texts<S: Into<String>>(
        mut self,
        texts: impl IntoIterator<Item = S>,
    ) -> Result<Self> {
        let lines: Vec<String> = texts.into_iter().map(Into::into).collect();
        let file = format!("reference {}", self.references.len() + 1);
        let digest = digest(&lines);
        self.references.push(Lines { file, lines, digest });
        by_segment(&self.references)?;
        Ok(self)
    }

    /// Appends a candidate of a segment, counted from 0, with its features, and with scores that metrics may read but that
    /// are no features.
    pub fn push(
        &mut self,
        segment: u32,
        text: &str,
        features: &[(&str, f64)],
        scores: &[(&str, f64)],
    ) -> Result<()> {
        self.rows.push(segment, text, features, scores)
    }

    /// Number of candidates.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no candidate.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Names of the features, in the order of their first appearance.
    pub fn features(&self) -> &[String] {
        self.rows.names.names()
    }

    /// The text of the best candidate of every segment under given weights, the first of equals. Fails where a segment has no
    /// candidate.
    pub fn rerank(&self, weights: &Weights) -> Result<Vec<&str>> {
        let best = self.best(weights)?;
        Ok(best.into_iter().map(|row| self.rows.text(row)).collect())
    }

    /// The number of the best candidate of every segment under given weights, within its segment. Fails where a segment has no
    /// candidate.
    pub fn rerank_indices(&self, weights: &Weights) -> Result<Vec<usize>> {
        let groups = self.rows.by_segment(false)?;
        let best = self.best(weights)?;
        let place = |(group, row): (&Vec<u32>, usize)| group.iter().position(|&r| r as usize == row);
        Ok(groups.iter().zip(best).map(|pair| place(pair).unwrap_or(0)).collect())
    }

    /// Fails if there are weights but none for any feature of the lists.
    pub(crate) fn check_weights(&self, weights: &Weights) -> Result<()> {
        let known = self.rows.names.keys().iter().any(|&key| weights.contains(key));
        if known || weights.is_empty() || self.features().is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = weights.iter().map(|w| w.0).take(5).collect();
        Err(Error::new(format!(
            "no weight is of a feature of the lists, which have {}",
            self.features().join(", ")
        ))
        .hint(format!("the weights are of {}", names.join(", "))))
    }

    /// Files that were read, in their roles; candidates and references in memory count by their contents.
    pub(crate) fn inputs(&self) -> Vec<(&'static str, InputFile)> {
        let mut all = Vec::new();
        for f in &self.references {
            all.push(("ref", InputFile::new("ref", &f.file, &f.digest)));
        }
        for f in &self.rows.files {
            all.push(("nbest", InputFile::new("nbest", &f.name, &f.digest)));
        }
        if self.rows.files.is_empty() {
            all.push(("nbest", InputFile::new("nbest", "candidates in memory", self.rows.digest())));
        }
        all
    }

    /// The row of the best candidate of every segment.
    fn best(&self, weights: &Weights) -> Result<Vec<usize>> {
        self.check_weights(weights)?;
        let columns = columns(&self.rows, None);
        let mut dense = Vec::new();
        weights.gather(&columns, &mut dense);
        let groups = self.rows.by_segment(false)?;
        let best = groups.into_par_iter().map(|group| {
            let list = list(&self.rows, &columns, &group);
            group[list.best(&dense, weights).unwrap_or(0)] as usize
        });
        Ok(best.collect())
    }

    /// Lists of all segments with their features in columns and their statistics for a metric.
    pub(crate) fn judged(&self, metric: &Metric) -> Result<Vec<Candidates>> {
        if self.references.is_empty() && metric.needs_references() {
            return Err(Error::new(format!("{} needs references, and the lists have none", metric.name()))
                .hint("add them with NBest::with_references"));
        }
        let references = references_of(&self.references, &self.rows, false)?;
        let judge = Judge::new(metric, &references, reference_file(&self.references));
        lists(&self.rows, &columns(&self.rows, Some(metric)), Some(judge))
    }

    /// References by segment.
    pub(crate) fn references(&self) -> Result<Vec<Vec<String>>> {
        let references = by_segment(&self.references)?;
        Ok(references.iter().map(|r| r.iter().map(ToString::to_string).collect()).collect())
    }
}

/// Digest of lines in memory.
fn digest(lines: &[String]) -> String {
    let add = |f: Fingerprint, line: &String| f.bytes(line.as_bytes());
    format!("{:032x}", lines.iter().fold(Fingerprint::default(), add).finish())
}

/// Reads n-best files in parallel, and joins them in the order given.
pub fn read_rows(paths: &[&Path], options: &Options) -> Result<Rows> {
    let parts: Vec<Result<Rows>> = paths
        .par_iter()
        .map(|path| {
            let mut rows = Rows::default();
            nbest::read(path, options, &mut rows).map(|()| rows)
        })
        .collect();
    let mut parts = parts.into_iter();
    let mut rows = parts.next().unwrap_or_else(|| Ok(Rows::default()))?;
    for part in parts {
        rows.append(part?)?;
    }
    Ok(rows)
}

/// Fails where a metric compares with references and there are none.
pub fn check_references(files: &[Lines], metric: &Metric) -> Result<()> {
    if files.is_empty() && metric.needs_references() {
        return Err(Error::new("no references: give them with --ref FILE"));
    }
    Ok(())
}

/// References by segment; without files, as many empty ones as there are segments.
pub fn references_of<'a>(files: &'a [Lines], rows: &Rows, allow_missing: bool) -> Result<Vec<Vec<&'a str>>> {
    if files.is_empty() {
        return Ok(vec![Vec::new(); rows.by_segment(allow_missing)?.len()]);
    }
    by_segment(files)
}

/// The reference file that messages name.
pub fn reference_file(files: &[Lines]) -> &str {
    files.first().map_or("the n-best list", |f| &f.file)
}
