//! Reader of plain text without segment numbers: one candidate per line, N candidates per segment.

use super::Rows;
use crate::Input;
use luthier_core::{Error, Result};

/// Reads the candidates of a file into `rows`. Fails if `per_source` is missing or the last segment is
/// incomplete.
pub(super) fn read(input: &mut Input, per_source: Option<u32>, rows: &mut Rows) -> Result<()> {
    let Some(n) = per_source.filter(|&n| n > 0) else {
        let message = "is plain text without segment numbers";
        return Err(Error::in_file(input.name(), message)
            .hint("give --per-source N, the number of candidates per segment"));
    };
    let mut buffer = Vec::new();
    let mut count = 0u32;
    while input.line(&mut buffer)? {
        rows.push_text(input.utf8(&buffer)?.trim());
        rows.end_row(count / n, input.line_number(), None);
        count += 1;
    }
    super::whole_segments(input, count, per_source)
}
