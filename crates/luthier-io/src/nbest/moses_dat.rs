//! Readers of the feature and score files of Moses' `extractor`, in text form: features without texts, and
//! the statistics of a metric.
//!
//! ```text
//! FEATURES_TXT_BEGIN_0 7 2 3 Distortion0_0 LM0_0 TM0_0     SCORES_TXT_BEGIN_0 7 2 9 BLEU
//! 0 -21.4 -2.1 WT_a~b=1                                    3 4 1 3 0 2 0 1 5
//! 0 -20.9 -2.8                                             2 4 1 3 0 2 0 1 5
//! FEATURES_TXT_END_0                                       SCORES_TXT_END_0
//! ```

use super::{Rows, not_finite, number, segment_id};
use crate::Input;
use luthier_core::{Error, Result};
use std::path::Path;

/// First line of a block of candidates of one segment.
struct Head<'a> {
    segment: u32,
    /// Number of candidates in the block.
    candidates: usize,
    /// Number of numbers per candidate.
    width: usize,
    /// Names of the numbers, or of the metric.
    names: Vec<&'a str>,
}

/// Parses the first line of a block, which begins with `tag`. Fails if it is malformed.
fn head<'a>(input: &Input, line: &'a str, tag: &str) -> Result<Head<'a>> {
    let mut words = line.split_ascii_whitespace();
    let found = words.next().unwrap_or_default();
    if found != tag {
        let binary = found.contains("_BIN_");
        let error = input.error(format!("found `{found}`, expected `{tag}`"));
        return Err(if binary { error.hint("write it in text form, without --binary") } else { error });
    }
    let segment = segment_id(input, words.next().unwrap_or_default())?;
    let mut size = || words.next().and_then(|w| w.parse().ok());
    let (Some(candidates), Some(width)) = (size(), size()) else {
        return Err(input.error(format!("expected `{tag} id candidates numbers names`")));
    };
    Ok(Head { segment, candidates, width, names: words.collect() })
}

/// Reads the next line that is not empty; returns false at the end of the file.
fn next_line(input: &mut Input, buffer: &mut Vec<u8>) -> Result<bool> {
    while input.line(buffer)? {
        if !buffer.iter().all(u8::is_ascii_whitespace) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Builds the error about a file that ends inside a block.
fn ended(input: &Input) -> Error {
    Error::at(input.name(), input.line_number() + 1, "the file ends inside a block")
        .hint("it is truncated; create it again")
}

/// Reads the candidates of a feature file into `rows`. Fails on a malformed line.
pub(super) fn read_features(input: &mut Input, rows: &mut Rows) -> Result<()> {
    let (mut first, mut buffer) = (Vec::new(), Vec::new());
    while next_line(input, &mut first)? {
        let line = input.utf8(&first)?.to_owned();
        let head = head(input, &line, "FEATURES_TXT_BEGIN_0")?;
        if head.names.len() != head.width {
            let found = format!("found {} feature names, expected {}", head.names.len(), head.width);
            return Err(input.error(found));
        }
        let ids = head.names.iter().map(|n| rows.intern(input, n)).collect::<Result<Vec<u32>>>()?;
        for _ in 0..head.candidates {
            if !next_line(input, &mut buffer)? {
                return Err(ended(input));
            }
            let line = input.utf8(&buffer)?;
            let mut words = line.split_ascii_whitespace();
            for (&id, name) in ids.iter().zip(&head.names) {
                let word = words.next().unwrap_or("nothing");
                let value = number(word).ok_or_else(|| not_finite(input, name, word))?;
                rows.push_feature(input, id, value)?;
            }
            for word in words {
                let (name, value) = word
                    .rsplit_once('=')
                    .ok_or_else(|| input.error(format!("found `{word}`, expected `name=value`")))?;
                let value = number(value).ok_or_else(|| not_finite(input, name, value))?;
                rows.push_named(input, name, value)?;
            }
            rows.end_row(head.segment, input.line_number(), None);
        }
        end(input, &mut buffer, "FEATURES_TXT_END_0")?;
    }
    Ok(())
}

/// Reads the last line of a block. Fails if it is not `tag`.
fn end(input: &mut Input, buffer: &mut Vec<u8>, tag: &str) -> Result<()> {
    if !next_line(input, buffer)? {
        return Err(ended(input));
    }
    let line = input.utf8(buffer)?.trim();
    if line == tag { Ok(()) } else { Err(input.error(format!("found `{line}`, expected `{tag}`"))) }
}

/// Reads a file of BLEU statistics of Moses' `extractor`, in text form; returns segment number and statistics
/// of every candidate, in file order. Fails if the file cannot be read or holds another metric.
///
/// The statistics are the matches of orders 1 to 4, the totals of orders 1 to 4, and the reference length; in
/// the file, matches and totals alternate.
pub fn read_scores(path: &Path) -> Result<Vec<(u32, [f32; 9])>> {
    let mut input = Input::open(path)?;
    let (mut first, mut buffer, mut out) = (Vec::new(), Vec::new(), Vec::new());
    while next_line(&mut input, &mut first)? {
        let line = input.utf8(&first)?.to_owned();
        let head = head(&input, &line, "SCORES_TXT_BEGIN_0")?;
        if head.width != 9 || head.names != ["BLEU"] {
            let found =
                format!("found {} statistics of {}, expected 9 of BLEU", head.width, head.names.join(" "));
            return Err(input.error(found));
        }
        for _ in 0..head.candidates {
            if !next_line(&mut input, &mut buffer)? {
                return Err(ended(&input));
            }
            let line = input.utf8(&buffer)?;
            let numbers: Vec<f64> = line.split_ascii_whitespace().map_while(number).collect();
            let [m1, t1, m2, t2, m3, t3, m4, t4, r] = numbers[..] else {
                return Err(input.error(format!("found {} numbers, expected 9", numbers.len())));
            };
            out.push((head.segment, [m1, m2, m3, m4, t1, t2, t3, t4, r].map(|x| x as f32)));
        }
        end(&mut input, &mut buffer, "SCORES_TXT_END_0")?;
    }
    Ok(out)
}
