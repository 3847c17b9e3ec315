//! Tables as text, in the form of Moses.

use crate::{Entry, GAPS};
use luthier_core::{AtomicFile, Error, Result, Vocabulary};
use std::{
    fmt::Write as _,
    io::Write as _,
    path::{Path, PathBuf},
};

/// Writes a table of phrases or rules, and one of reordering if entries have it.
pub struct TextWriter {
    table: AtomicFile,
    reordering: Option<AtomicFile>,
    path: PathBuf,
    line: String,
    hierarchical: bool,
}

impl TextWriter {
    /// Opens the files; names that end in `.gz` are compressed.
    pub fn create(table: &Path, reordering: Option<&Path>, hierarchical: bool) -> Result<Self> {
        Ok(TextWriter {
            table: AtomicFile::create(table)?,
            reordering: reordering.map(AtomicFile::create).transpose()?,
            path: table.to_owned(),
            line: String::new(),
            hierarchical,
        })
    }

    /// Writes one line of each table.
    pub fn entry(&mut self, entry: &Entry<'_>, source: &Vocabulary, target: &Vocabulary) -> Result<()> {
        let line = &mut self.line;
        line.clear();
        symbols(line, entry.source, source, self.hierarchical);
        line.push_str(" ||| ");
        symbols(line, entry.target, target, self.hierarchical);
        line.push_str(" ||| ");
        let same = line.len();
        numbers(line, entry.scores);
        line.push_str(" ||| ");
        links(line, entry);
        line.push_str(" ||| ");
        numbers(line, entry.counts);
        line.push_str(" ||| |||\n");
        let failed = |e: std::io::Error| Error::io(self.path.display().to_string(), "write it", &e);
        self.table.write_all(line.as_bytes()).map_err(failed)?;
        if let Some(out) = self.reordering.as_mut().filter(|_| !entry.reordering.is_empty()) {
            line.truncate(same);
            numbers(line, entry.reordering);
            line.push('\n');
            out.write_all(line.as_bytes()).map_err(failed)?;
        }
        Ok(())
    }

    /// Gives the files their names.
    pub fn commit(self) -> Result<()> {
        self.table.commit()?;
        self.reordering.map_or(Ok(()), AtomicFile::commit)
    }
}

fn symbols(line: &mut String, ids: &[u32], vocabulary: &Vocabulary, hierarchical: bool) {
    for (i, id) in ids.iter().enumerate() {
        line.push_str(if i > 0 { " " } else { "" });
        line.push_str(if GAPS.contains(id) { "[X][X]" } else { vocabulary.word(*id) });
    }
    if hierarchical {
        line.push_str(" [X]");
    }
}

fn links(line: &mut String, entry: &Entry<'_>) {
    let mut all: Vec<(u8, u8)> = entry.links.to_vec();
    for gap in GAPS {
        let at = |symbols: &[u32]| symbols.iter().position(|s| *s == gap);
        if let (Some(s), Some(t)) = (at(entry.source), at(entry.target)) {
            all.push((s as u8, t as u8));
        }
    }
    all.sort_unstable_by_key(|&(s, t)| (t, s));
    for (i, (s, t)) in all.iter().enumerate() {
        let _ = write!(line, "{}{s}-{t}", if i > 0 { " " } else { "" });
    }
}

fn numbers(line: &mut String, numbers: &[f64]) {
    for (i, n) in numbers.iter().enumerate() {
        line.push_str(if i > 0 { " " } else { "" });
        number(line, *n);
    }
}

/// Six digits, as short as they can be.
fn number(line: &mut String, n: f64) {
    if n == n.trunc() && n.abs() < 1e6 {
        let _ = write!(line, "{n}");
    } else if n.abs() >= 1e-4 && n.abs() < 1e6 {
        let digits = (5.0 - n.abs().log10().floor()).max(0.0) as usize;
        let start = line.len();
        let _ = write!(line, "{n:.digits$}");
        if line[start..].contains('.') {
            let end = line.trim_end_matches('0').trim_end_matches('.').len();
            line.truncate(end);
        }
    } else {
        let start = line.len();
        let _ = write!(line, "{n:.5e}");
        // 1.50000e-7 becomes 1.5e-7.
        if let Some(e) = line[start..].find('e') {
            let power = line[start + e..].to_owned();
            line.truncate(start + e);
            let end = line.trim_end_matches('0').trim_end_matches('.').len();
            line.truncate(end);
            line.push_str(&power);
        }
    }
}
