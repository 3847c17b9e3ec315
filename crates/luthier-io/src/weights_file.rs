//! Weights files: one `name value` per line, or the `[weight]` section of a Moses configuration.

use crate::{Input, moses_ini};
use luthier_core::{Result, Weights};
use std::path::Path;

/// Reads a weights file (`-` is standard input): one `name value` per line, or a Moses configuration with a
/// `[weight]` section. Fails if the file cannot be read or a line is malformed.
pub fn read_weights(path: &Path) -> Result<Weights> {
    let mut input = Input::open(path)?;
    let mut text = String::new();
    let mut buffer = Vec::new();
    while input.line(&mut buffer)? {
        text += input.utf8(&buffer)?;
        text.push('\n');
    }
    parse_weights(input.name(), &text)
}

/// Parses the text of a weights file or of a Moses configuration; `file` is its name in error messages. Fails
/// on a malformed line.
pub fn parse_weights(file: &str, text: &str) -> Result<Weights> {
    if moses_ini::is_moses_ini(text) {
        Weights::parse(file, &moses_ini::weight_lines(text))
    } else {
        Weights::parse(file, text)
    }
}
