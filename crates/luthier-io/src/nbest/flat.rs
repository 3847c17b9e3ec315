//! Plain text, so many candidates a segment, without ids.

use super::Rows;
use crate::Input;
use luthier_core::{Error, Result};

pub(super) fn read(input: &mut Input, per_source: Option<u32>, rows: &mut Rows) -> Result<()> {
    let Some(n) = per_source.filter(|&n| n > 0) else {
        let message = "plain text does not tell segments apart";
        return Err(Error::in_file(input.name(), message).hint("give --per-source N"));
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
