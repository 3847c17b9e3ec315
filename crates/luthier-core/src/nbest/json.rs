//! JSON lines: a candidate a line, or a segment a line with its candidates in an array or in parallel arrays.
//!
//! ```text
//! {"id": 0, "text": "the house", "features": {"lm": -3.2}, "scores": {"total": -7.1, "comet": 0.81}}
//! {"id": 0, "text": "the house", "lm": -3.2, "comet": 0.81}
//! {"src": "das haus", "hyps": [{"text": "the house", "scores": {"lm": -3.2, "qe": 0.7}}]}
//! {"hyps": ["the house", "a house"], "lm_score": [-3.2, -3.0]}
//! ```
//!
//! With `features`, those are the features and `scores` are columns for metrics; without, every number is a
//! feature, those under `scores` too. A segment without `id` is the next one.

use super::{Rows, segment_id};
use crate::{Error, Input, Result};
use serde_json::{Map, Value};

const TEXT: &[&str] = &["text", "hyp", "hypothesis", "translation", "output", "sentence", "mt", "pred"];
const ID: &[&str] = &["id", "segment", "index", "idx", "segment_id", "sent_id"];
const LIST: &[&str] = &["hyps", "hypotheses", "nbest", "candidates", "translations", "outputs", "beams"];
/// Numbers that are about the place of a candidate, not about its worth.
const RANK: &[&str] = &["rank", "beam"];

pub(super) fn read(input: &mut Input, rows: &mut Rows) -> Result<()> {
    let mut buffer = Vec::new();
    let mut next = 0;
    while input.line(&mut buffer)? {
        if buffer.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let text = input.utf8(&buffer)?;
        let value: Value = serde_json::from_str(text).map_err(|e| broken(input, &e))?;
        let Value::Object(object) = value else {
            return Err(input.error(format!("found {}, expected a JSON object", kind(&value))));
        };
        next = one_line(input, &object, next, rows)? + 1;
    }
    Ok(())
}

fn broken(input: &Input, e: &serde_json::Error) -> Error {
    let text = e.to_string();
    let what = text.split(" at line ").next().unwrap_or_default();
    let error = input.error(format!("broken JSON at column {}: {what}", e.column()));
    if e.is_eof() { error.hint("each object must stand in one line") } else { error }
}

/// Reads one line; `next` is the segment if none is given. Returns the segment.
fn one_line(input: &Input, object: &Map<String, Value>, next: u32, rows: &mut Rows) -> Result<u32> {
    let segment = match find(object, ID) {
        None => next,
        Some((_, Value::Number(n))) => segment_id(input, &n.to_string())?,
        Some((_, Value::String(s))) => segment_id(input, s)?,
        Some((key, other)) => {
            return Err(input.error(format!("`{key}` is {}, expected a segment number", kind(other))));
        }
    };
    match find(object, LIST) {
        Some((_, Value::Array(list))) if list.iter().all(Value::is_string) => {
            parallel(input, object, list, segment, rows)?;
        }
        Some((key, Value::Array(list))) => {
            for candidate in list {
                let Value::Object(candidate) = candidate else {
                    return Err(
                        input.error(format!("`{key}` holds {}, expected candidates", kind(candidate)))
                    );
                };
                one_candidate(input, candidate, segment, rows)?;
            }
        }
        Some((key, other)) => {
            return Err(input.error(format!("`{key}` is {}, expected an array of candidates", kind(other))));
        }
        None => one_candidate(input, object, segment, rows)?,
    }
    Ok(segment)
}

/// Texts in one array, and every other array of that length is a feature.
fn parallel(
    input: &Input,
    object: &Map<String, Value>,
    texts: &[Value],
    segment: u32,
    rows: &mut Rows,
) -> Result<()> {
    let mut columns = Vec::new();
    for (name, value) in object.iter().filter(|(k, _)| !LIST.contains(&k.as_str())) {
        let Value::Array(numbers) = value else { continue };
        if numbers.len() != texts.len() {
            let message = format!("`{name}` has {} numbers for {} candidates", numbers.len(), texts.len());
            return Err(input.error(message));
        }
        columns.push((name, numbers));
    }
    for (i, text) in texts.iter().enumerate() {
        rows.push_text(text.as_str().unwrap_or_default());
        for (name, numbers) in &columns {
            rows.push_named(input, name, finite(input, name, &numbers[i])?)?;
        }
        rows.end_row(segment, input.line_number(), None);
    }
    Ok(())
}

fn one_candidate(input: &Input, object: &Map<String, Value>, segment: u32, rows: &mut Rows) -> Result<()> {
    let Some((_, Value::String(text))) = find(object, TEXT) else {
        return Err(input
            .error("the candidate has no text")
            .hint(format!("name it one of: {}", TEXT.join(", "))));
    };
    rows.push_text(text);
    let mut total = None;
    if let Some(features) = object.get("features") {
        for (name, value) in table(input, "features", features)? {
            rows.push_named(input, name, finite(input, name, value)?)?;
        }
        let empty = Map::new();
        let scores = object.get("scores").map_or(Ok(&empty), |s| table(input, "scores", s))?;
        for (name, value) in scores {
            match (name.as_str(), finite(input, name, value)?) {
                ("total", value) => total = Some(value),
                (name, value) => rows.push_score(input, name, value)?,
            }
        }
    } else {
        for (name, value) in object {
            let other = [ID, RANK].iter().any(|names| names.contains(&name.as_str()));
            match value {
                Value::Number(_) if !other => rows.push_named(input, name, finite(input, name, value)?)?,
                Value::Object(inner) if name == "scores" => {
                    for (name, value) in inner {
                        rows.push_named(input, name, finite(input, name, value)?)?;
                    }
                }
                _ => {}
            }
        }
    }
    rows.end_row(segment, input.line_number(), total);
    Ok(())
}

fn table<'a>(input: &Input, name: &str, value: &'a Value) -> Result<&'a Map<String, Value>> {
    value.as_object().ok_or_else(|| {
        input.error(format!("`{name}` is {}, expected an object of names and numbers", kind(value)))
    })
}

fn finite(input: &Input, name: &str, value: &Value) -> Result<f64> {
    value.as_f64().filter(|v| v.is_finite()).ok_or_else(|| {
        input.error(format!("the value of {name} is {}, expected a finite number", kind(value)))
    })
}

fn find<'a>(object: &'a Map<String, Value>, names: &[&str]) -> Option<(&'a str, &'a Value)> {
    names.iter().find_map(|n| object.get_key_value(*n)).map(|(k, v)| (k.as_str(), v))
}

fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => n.to_string(),
        Value::String(s) => format!("\"{}\"", s.chars().take(30).collect::<String>()),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}
