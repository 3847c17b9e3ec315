//! Parallel text in a directory, the input of `demo` and `experiment`.

use luthier::core::{Error, Result};
use luthier::io::text;
use std::path::Path;

/// Parses the file name extensions of both sides, source first: `de-en`.
pub(crate) fn endings(text: &str) -> std::result::Result<(String, String), String> {
    match text.split_once('-') {
        Some((a, b)) if !a.is_empty() && !b.is_empty() && a != b => Ok((a.to_owned(), b.to_owned())),
        _ => Err("expected two file name extensions joined by a hyphen, such as de-en".to_owned()),
    }
}

/// Returns the number of lines of both sides. Fails if the sides differ in length or are empty.
pub(crate) fn check_sides(source: &Path, target: &Path) -> Result<usize> {
    let (a, b) = (text::read_lines(source)?, text::read_lines(target)?);
    if a.lines.len() == b.lines.len() && !a.lines.is_empty() {
        return Ok(a.lines.len());
    }
    let message = format!("has {} lines, but {} has {}", a.lines.len(), b.file, b.lines.len());
    Err(Error::in_file(a.file, message).hint("both need one line per segment, and at least one"))
}
