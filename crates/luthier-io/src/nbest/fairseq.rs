//! Reader of the output of `fairseq-generate`: `H-12<TAB>score<TAB>tokens`, `D-12<TAB>score<TAB>text` and
//! `P-12<TAB>scores of the tokens` among log lines, with segments in any order.
//!
//! Scores are converted from base-2 to natural logarithms. The feature `score` is the length-normalised log
//! probability; with `P` lines there are also `logprob`, the sum of the token scores, and `length`, the
//! number of tokens. The text is that of the `D` line if there is one, else that of the `H` line.

use super::{Rows, not_finite, number, segment_id};
use crate::Input;
use luthier_core::Result;
use std::f64::consts::LN_2;

/// Returns whether a line is an `H` line, which begins a candidate.
pub(super) fn is_candidate(line: &str) -> bool {
    parts(line).is_some_and(|(kind, ..)| kind == b'H')
}

/// Splits a line such as `H-12<TAB>…` into kind, segment number and rest; `None` for other lines.
fn parts(line: &str) -> Option<(u8, &str, &str)> {
    let (head, rest) = line.split_once('\t')?;
    let (kind, id) = head.split_once('-')?;
    let known = matches!(kind, "H" | "D" | "P") && !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit());
    known.then(|| (kind.as_bytes()[0], id, rest))
}

/// A candidate whose `D` and `P` lines may follow.
struct Open {
    segment: u32,
    line: u64,
    text: String,
    score: f64,
    /// Sum and number of the token scores of the `P` line.
    positions: Option<(f64, usize)>,
}

/// Reads the candidates of a file into `rows`. Fails on a malformed line.
pub(super) fn read(input: &mut Input, rows: &mut Rows) -> Result<()> {
    let mut buffer = Vec::new();
    let mut open: Option<Open> = None;
    while input.line(&mut buffer)? {
        let line = input.utf8(&buffer)?;
        let Some((kind, id, rest)) = parts(line) else { continue };
        let segment = segment_id(input, id)?;
        match (kind, &mut open) {
            (b'H', _) => {
                finish(input, open.take(), rows)?;
                let (score, text) = scored(input, rest)?;
                open = Some(Open { segment, line: input.line_number(), text, score, positions: None });
            }
            (b'D', Some(o)) if o.segment == segment => o.text = scored(input, rest)?.1,
            (b'P', Some(o)) if o.segment == segment => {
                let mut sum = 0.0;
                for word in rest.split_ascii_whitespace() {
                    sum += number(word).ok_or_else(|| not_finite(input, "P", word))?;
                }
                o.positions = Some((sum * LN_2, rest.split_ascii_whitespace().count()));
            }
            _ => {
                let message =
                    format!("found a {} line, expected an H line of segment {id} before it", kind as char);
                return Err(input.error(message));
            }
        }
    }
    finish(input, open, rows)
}

/// Parses `score<TAB>text` into the score, in natural logarithms, and the text; an empty hypothesis may lack
/// the tab. Fails if the score is not finite.
fn scored(input: &Input, rest: &str) -> Result<(f64, String)> {
    let (score, text) = rest.split_once('\t').unwrap_or((rest, ""));
    let value = number(score.trim()).ok_or_else(|| not_finite(input, "score", score))?;
    Ok((value * LN_2, text.trim().to_owned()))
}

/// Appends a complete candidate to `rows`.
fn finish(input: &Input, open: Option<Open>, rows: &mut Rows) -> Result<()> {
    let Some(o) = open else { return Ok(()) };
    rows.push_text(&o.text);
    rows.push_named(input, "score", o.score)?;
    if let Some((logprob, length)) = o.positions {
        rows.push_named(input, "logprob", logprob)?;
        rows.push_named(input, "length", length as f64)?;
    }
    rows.end_row(o.segment, o.line, None);
    Ok(())
}
