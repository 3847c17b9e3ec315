//! Reader of JSON lines: one candidate per line, or one segment per line with its candidates in an array or
//! in parallel arrays.
//!
//! ```text
//! {"id": 0, "text": "the house", "features": {"lm": -3.2}, "scores": {"total": -7.1, "comet": 0.81}}
//! {"id": 0, "text": "the house", "lm": -3.2, "comet": 0.81}
//! {"src": "das haus", "hyps": [{"text": "the house", "scores": {"lm": -3.2, "qe": 0.7}}]}
//! {"hyps": ["the house", "a house"], "lm_score": [-3.2, -3.0]}
//! ```
//!
//! If an object has `features`, these are the features, and `scores` are scores for metrics; otherwise every
//! number is a feature, including those under `scores`. A line with several candidates and without `id` is
//! the next segment; single candidates without `id` need a fixed number of candidates per segment
//! (`--per-source`).

mod value;

use super::{Rows, segment_id};
use crate::Input;
use luthier_core::{Error, Result};
use value::{Json, find};

/// Keys of the text of a candidate.
const TEXT: &[&str] = &["text", "hyp", "hypothesis", "translation", "output", "sentence", "mt", "pred"];
/// Keys of the segment number.
const ID: &[&str] = &["id", "segment", "index", "idx", "segment_id", "sent_id"];
/// Keys of the candidates of a segment.
const LIST: &[&str] = &["hyps", "hypotheses", "nbest", "candidates", "translations", "outputs", "beams"];
/// Keys of numbers that are ranks of candidates, not features.
const RANK: &[&str] = &["rank", "beam"];

/// Keys and values of a JSON object.
type Object = [(String, Json)];

/// Reads the candidates of a file into `rows`. Fails on a malformed line.
pub(super) fn read(input: &mut Input, per_source: Option<u32>, rows: &mut Rows) -> Result<()> {
    let mut buffer = Vec::new();
    let mut next = 0; // segment number of the next list without `id`
    let mut single = 0; // number of single candidates without `id` so far
    while input.line(&mut buffer)? {
        if buffer.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let text = input.utf8(&buffer)?;
        let json: Json = serde_json::from_str(text).map_err(|e| broken(input, &e))?;
        let Json::Object(object) = &json else {
            return Err(input.error(format!("found {}, expected a JSON object", json.kind())));
        };
        let given = id(input, object)?;
        let list = find(object, LIST);
        let segment = match (given, list, per_source) {
            (Some(id), ..) => id,
            (None, Some(_), _) => next,
            (None, None, Some(n)) => {
                single += 1;
                (single - 1) / n.max(1)
            }
            (None, None, None) => {
                return Err(input
                    .error("the candidate has no segment number")
                    .hint("add an `id`, or give --per-source N"));
            }
        };
        match list {
            Some((key, list)) => candidates(input, object, key, list, segment, rows)?,
            None => one_candidate(input, object, segment, rows)?,
        }
        next = segment + 1;
    }
    super::whole_segments(input, single, per_source)
}

/// Builds the error about a line that is not valid JSON.
fn broken(input: &Input, e: &serde_json::Error) -> Error {
    let text = e.to_string();
    let what = text.split(" at line ").next().unwrap_or_default();
    let error = input.error(format!("invalid JSON at column {}: {what}", e.column()));
    if e.is_eof() { error.hint("write one JSON object per line") } else { error }
}

/// Returns the segment number of an object; `None` if it has none. Fails if it is not a segment number.
fn id(input: &Input, object: &Object) -> Result<Option<u32>> {
    match find(object, ID) {
        None => Ok(None),
        Some((_, Json::Number(n))) => segment_id(input, &n.to_string()).map(Some),
        Some((_, Json::String(s))) => segment_id(input, s.trim()).map(Some),
        Some((key, other)) => {
            Err(input.error(format!("`{key}` is {}, expected a segment number", other.kind())))
        }
    }
}

/// Appends the candidates of a segment: objects, or texts with parallel arrays. Fails if they are malformed.
fn candidates(
    input: &Input,
    object: &Object,
    key: &str,
    list: &Json,
    segment: u32,
    rows: &mut Rows,
) -> Result<()> {
    let Json::Array(list) = list else {
        return Err(input.error(format!("`{key}` is {}, expected an array of candidates", list.kind())));
    };
    if list.iter().all(|c| matches!(c, Json::String(_))) {
        return parallel(input, object, list, segment, rows);
    }
    for candidate in list {
        let Json::Object(candidate) = candidate else {
            return Err(input.error(format!("`{key}` holds {}, expected candidates", candidate.kind())));
        };
        one_candidate(input, candidate, segment, rows)?;
    }
    Ok(())
}

/// Appends candidates whose texts are in one array; every array of numbers beside it, or under `scores` or
/// `features`, is a feature. Fails if the arrays differ in length.
fn parallel(input: &Input, object: &Object, texts: &[Json], segment: u32, rows: &mut Rows) -> Result<()> {
    let mut columns: Vec<(&str, &[Json])> = Vec::new();
    let inner =
        ["scores", "features"].iter().filter_map(|k| find(object, &[k])).filter_map(|(_, v)| match v {
            Json::Object(inner) => Some(&inner[..]),
            _ => None,
        });
    for (name, value) in std::iter::once(object).chain(inner).flatten() {
        let Json::Array(numbers) = value else { continue };
        if LIST.contains(&name.as_str()) || !numbers.iter().any(|n| matches!(n, Json::Number(_))) {
            continue;
        }
        if numbers.len() != texts.len() {
            let message = format!("`{name}` has {} numbers for {} candidates", numbers.len(), texts.len());
            return Err(input.error(message));
        }
        columns.push((name, numbers));
    }
    for (i, text) in texts.iter().enumerate() {
        if let Json::String(text) = text {
            rows.push_text(text.trim());
        }
        for (name, numbers) in &columns {
            rows.push_named(input, name, finite(input, name, &numbers[i])?)?;
        }
        rows.end_row(segment, input.line_number(), None);
    }
    Ok(())
}

/// Appends the candidate that an object describes. Fails if it has no text or a value is not finite.
fn one_candidate(input: &Input, object: &Object, segment: u32, rows: &mut Rows) -> Result<()> {
    let Some((_, Json::String(text))) = find(object, TEXT) else {
        let hint = format!("its key must be one of: {}", TEXT.join(", "));
        return Err(input.error("the candidate has no text").hint(hint));
    };
    rows.push_text(text.trim());
    let mut total = None;
    let scores = find(object, &["scores"]).map_or(Ok(&[][..]), |(_, s)| table(input, "scores", s))?;
    if let Some((_, features)) = find(object, &["features"]) {
        for (name, value) in table(input, "features", features)? {
            rows.push_named(input, name, finite(input, name, value)?)?;
        }
        for (name, value) in scores {
            match (name.as_str(), finite(input, name, value)?) {
                ("total", value) => total = Some(value),
                (name, value) => rows.push_score(input, name, value)?,
            }
        }
    } else {
        let other = |name: &str| ID.contains(&name) || RANK.contains(&name);
        for (name, value) in object {
            if let Json::Number(_) = value
                && !other(name)
            {
                rows.push_named(input, name, finite(input, name, value)?)?;
            }
        }
        for (name, value) in scores {
            rows.push_named(input, name, finite(input, name, value)?)?;
        }
    }
    rows.end_row(segment, input.line_number(), total);
    Ok(())
}

/// Returns the names and values of an object. Fails if the value called `name` is not an object.
fn table<'a>(input: &Input, name: &str, value: &'a Json) -> Result<&'a Object> {
    match value {
        Json::Object(pairs) => Ok(pairs),
        other => {
            let message = format!("`{name}` is {}, expected an object of names and numbers", other.kind());
            Err(input.error(message))
        }
    }
}

/// Returns the number called `name`. Fails if the value is not a finite number.
fn finite(input: &Input, name: &str, value: &Json) -> Result<f64> {
    match value {
        Json::Number(n) if n.is_finite() => Ok(*n),
        other => {
            Err(input.error(format!("the value of {name} is {}, expected a finite number", other.kind())))
        }
    }
}
