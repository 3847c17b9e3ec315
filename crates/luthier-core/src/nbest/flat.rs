//! Plain text, so many candidates a segment, without ids.

use super::Rows;
use crate::{Input, Result};

pub(super) fn read(input: &mut Input, per_source: Option<u32>, rows: &mut Rows) -> Result<()> {
    let Some(n) = per_source.filter(|&n| n > 0) else {
        return Err(input.error("plain text does not tell segments apart").hint("give --per-source N"));
    };
    let mut buffer = Vec::new();
    let mut count = 0u32;
    while input.line(&mut buffer)? {
        rows.push_text(input.utf8(&buffer)?.trim());
        rows.end_row(count / n, input.line_number(), None);
        count += 1;
    }
    if !count.is_multiple_of(n) {
        return Err(input
            .error(format!("the file ends after {count} lines, which is no multiple of {n}"))
            .hint("every segment needs --per-source lines"));
    }
    Ok(())
}
