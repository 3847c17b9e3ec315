//! Parallel text in a directory, as `demo` and `experiment` take it.

use luthier::core::{Error, Result};
use luthier::io::text;
use std::path::Path;

/// The endings of both sides, source first: `de-en`.
pub(crate) fn endings(text: &str) -> std::result::Result<(String, String), String> {
    match text.split_once('-') {
        Some((a, b)) if !a.is_empty() && !b.is_empty() && a != b => Ok((a.to_owned(), b.to_owned())),
        _ => Err("expected two endings with a hyphen between them, as in de-en".to_owned()),
    }
}

/// Both sides must have as many lines, and some. Returns how many.
pub(crate) fn check_sides(source: &Path, target: &Path) -> Result<usize> {
    let (a, b) = (text::read_lines(source)?, text::read_lines(target)?);
    if a.lines.len() == b.lines.len() && !a.lines.is_empty() {
        return Ok(a.lines.len());
    }
    let message = format!("has {} lines, but {} has {}", a.lines.len(), b.file, b.lines.len());
    Err(Error::in_file(a.file, message).hint("both need one line per segment, and at least one"))
}
