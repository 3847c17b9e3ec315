//! Reader of JSON: one value per line, or one array or object per file.
//!
//! ```text
//! {"id": 0, "text": "the house", "features": {"lm": -3.2}, "scores": {"total": -7.1, "comet": 0.81}}
//! {"id": "utt1", "text": "the house", "lm": -3.2, "comet": 0.81, "reference": "the small house"}
//! {"src": "das haus", "hyps": [{"text": "the house", "scores": {"lm": -3.2, "qe": 0.7}}]}
//! {"hyps": ["the house", "a house"], "lm_score": [-3.2, -3.0]}
//! [{"generated_text": "the house", "score": 0.7}, {"generated_text": "a house", "score": 0.3}]
//! {"prompt": "das haus", "outputs": [{"index": 0, "text": "the house", "cumulative_logprob": -1.2}]}
//! {"choices": [{"message": {"content": "the house"}, "logprobs": {"content": [{"logprob": -0.1}]}}]}
//! {"audio_filepath": "a.wav", "text": "the reference", "pred_text": "the house", "score": -3.2}
//! {"audio_filepath": "a.wav", "text": "the reference", "beams": [["the house", -3.2], ["a house", -3.0]]}
//! {"input": ["the house", "a house"], "output": "the reference", "am_score": [-3.2, -3.0]}
//! ```
//!
//! If an object has `features`, these are the features, and `scores` are scores for metrics; otherwise every
//! number is a feature, including those under `scores`. A list of candidates without id is the next segment; single
//! candidates without id need a fixed number of candidates per segment (`--per-source`).

mod split;
mod value;

use super::{
    Options, Rows,
    sink::{ID, RANK, Role, Sink},
};
use crate::Input;
use luthier_core::{Error, Result};
use split::elements;
use value::{Json, find};

/// Keys of the candidates of a segment.
const LIST: &[&str] = &[
    "hyps",
    "hypotheses",
    "nbest",
    "n_best",
    "candidates",
    "translations",
    "outputs",
    "beams",
    "choices",
    "sequences",
];

/// Keys and values of a JSON object.
type Object = [(String, Json)];

/// Returns whether a text begins with a JSON object or array.
pub(super) fn is_json(head: &str) -> bool {
    let first = head.lines().find(|l| !l.trim().is_empty()).unwrap_or_default().trim();
    match first.as_bytes().first() {
        Some(b'{') => true,
        // Text may begin with a bracket, too.
        Some(b'[') => {
            let next = head.trim_start()[1..].trim_start();
            next.is_empty() || next.starts_with(['{', '[', '"', ']'])
        }
        _ => false,
    }
}

/// Reads the candidates of a file into `rows`. Fails if it is malformed.
pub(super) fn read(input: &mut Input, options: &Options, rows: &mut Rows, file: usize) -> Result<()> {
    let bytes = input.rest()?;
    let mut sink = Sink::new(rows, options);
    for (line, text) in elements(&bytes) {
        input.set_line(line);
        let text = input.utf8(text)?;
        let json: Json = serde_json::from_str(text).map_err(|e| broken(input, &e))?;
        item(input, &json, &mut sink)?;
    }
    sink.finish(input, file)
}

/// Builds the error about text that is not valid JSON.
fn broken(input: &Input, e: &serde_json::Error) -> Error {
    let text = e.to_string();
    let what = text.split(" at line ").next().unwrap_or_default();
    let error = Error::at(
        input.name(),
        input.line_number() + e.line().saturating_sub(1) as u64,
        format!("invalid JSON at column {}: {what}", e.column()),
    );
    if e.is_eof() { error.hint("write one JSON value per line, or one array per file") } else { error }
}

/// Reads one value of the file: a list of candidates, or one candidate.
fn item(input: &Input, json: &Json, sink: &mut Sink<'_>) -> Result<()> {
    match json {
        Json::Array(list) => {
            let segment = sink.next_list();
            candidates(input, "array", list, &[], segment, sink)
        }
        Json::Object(object) => {
            // Batch requests to OpenAI wrap the answer.
            let body = find(object, &["response"]).and_then(|(_, r)| r.get("body"));
            let inner = body.map_or(&object[..], |body| body);
            let list = list_of(inner);
            let segment = match (id(input, object, sink)?, &list) {
                (Some(segment), _) => segment,
                (None, Some(_)) => sink.next_list(),
                (None, None) => sink.next_single(input)?,
            };
            match list {
                Some((key, Json::Array(list))) => {
                    outer_keys(input, inner, key, list.len(), segment, sink)?;
                    candidates(input, key, list, inner, segment, sink)
                }
                Some((key, other)) => {
                    Err(input.error(format!("`{key}` is {}, expected an array of candidates", other.kind())))
                }
                None => one_candidate(input, inner, false, segment, sink),
            }
        }
        other => Err(input.error(format!("found {}, expected a JSON object or array", other.kind()))),
    }
}

/// Returns the candidates of an object that holds a whole list. In `HyPoradise` they are called `input`, and `output` is the
/// reference.
fn list_of(object: &Object) -> Option<(&str, &Json)> {
    let texts =
        |json: &Json| matches!(json, Json::Array(a) if a.iter().all(|x| matches!(x, Json::String(_))));
    find(object, LIST).or_else(|| find(object, &["input"]).filter(|(_, v)| texts(v)))
}

/// Returns the segment of an object; `None` if it has no id. Fails if the id is neither a number nor a text.
fn id(input: &Input, object: &Object, sink: &mut Sink<'_>) -> Result<Option<u32>> {
    let chosen = sink.options.columns.id.as_deref();
    let keys = chosen.map_or(ID.to_vec(), |c| vec![c]);
    let found = find(object, &keys);
    if let (Some(name), None) = (chosen, found) {
        return Err(input.error(format!("the value has no `{name}`")).hint("check --id-column"));
    }
    let Some((key, value)) = found.filter(|(k, _)| sink.options.columns.role(k) == Role::Id) else {
        return Ok(None);
    };
    let id = match value {
        Json::Number(n) if n.fract() == 0.0 && *n >= 0.0 => format!("{n}"),
        Json::String(s) if !s.trim().is_empty() => s.trim().to_owned(),
        other => {
            return Err(input
                .error(format!("`{key}` is {}, expected a segment number or name", other.kind()))
                .hint("number the segments from 0, or name them"));
        }
    };
    Ok(Some(sink.segment(key, &id)))
}

/// Reads references beside a list of candidates, and notes what else is there.
fn outer_keys(
    input: &Input,
    object: &Object,
    list: &str,
    candidates: usize,
    segment: u32,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let reference = reference_beside(object, list);
    for (name, value) in object {
        let role = sink.role(name);
        if name == list || role == Role::Id {
            continue;
        }
        if role == Role::Reference || Some(name.as_str()) == reference {
            let texts = references(input, name, value)?;
            sink.references(input, segment, name, texts)?;
            continue;
        }
        if role == Role::Group {
            sink.group(input, segment, name, &group(input, name, value)?)?;
            continue;
        }
        let parallel =
            matches!(value, Json::Array(a) if a.len() == candidates && a.iter().any(Json::is_number));
        let table = matches!(name.as_str(), "scores" | "features") && matches!(value, Json::Object(_));
        if !parallel && !table {
            sink.ignore(name, value.what());
        }
    }
    Ok(())
}

/// Returns the key of the reference that the key of the candidates implies.
fn reference_beside<'a>(object: &'a Object, list: &str) -> Option<&'a str> {
    let keys: &[&str] = match list {
        "input" => &["output"],
        "beams" => &["text"],
        _ => &[],
    };
    find(object, keys).filter(|(_, v)| matches!(v, Json::String(_))).map(|(k, _)| k)
}

/// Returns the group of a segment.
fn group(input: &Input, name: &str, value: &Json) -> Result<String> {
    match value {
        Json::String(text) => Ok(text.clone()),
        Json::Number(x) => Ok(x.to_string()),
        other => Err(input.error(format!("`{name}` is {}, expected a text or a number", other.kind()))),
    }
}

/// Returns a reference, or several.
fn references(input: &Input, name: &str, value: &Json) -> Result<Vec<String>> {
    let text = |value: &Json| match value {
        Json::String(text) => Ok(text.trim().to_owned()),
        other => Err(input.error(format!("`{name}` is {}, expected a reference", other.kind()))),
    };
    match value {
        Json::Array(all) => all.iter().map(text).collect(),
        one => Ok(vec![text(one)?]),
    }
}

/// Appends the candidates of a segment: objects, pairs of text and score, or texts with parallel arrays in `beside`.
fn candidates(
    input: &Input,
    key: &str,
    list: &[Json],
    beside: &Object,
    segment: u32,
    sink: &mut Sink<'_>,
) -> Result<()> {
    if list.iter().all(|c| matches!(c, Json::String(_))) {
        return parallel(input, key, beside, list, segment, sink);
    }
    for candidate in list {
        match candidate {
            Json::Object(candidate) => one_candidate(input, candidate, true, segment, sink)?,
            Json::Array(pair) => {
                let [Json::String(text), Json::Number(score)] = &pair[..] else {
                    let message =
                        format!("`{key}` holds an array, expected candidates such as [\"text\", -3.2]");
                    return Err(input.error(message));
                };
                sink.text(key, text);
                sink.feature(input, "score", *score)?;
                sink.end_row(input, segment, None)?;
            }
            other => return Err(input.error(format!("`{key}` holds {}, expected candidates", other.kind()))),
        }
    }
    Ok(())
}

/// Appends candidates whose texts are in one array; every array of numbers beside it, or under `scores` or
/// `features`, is a feature. Fails if the arrays differ in length.
fn parallel(
    input: &Input,
    key: &str,
    object: &Object,
    texts: &[Json],
    segment: u32,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let mut columns: Vec<(&str, &[Json])> = Vec::new();
    let inner =
        ["scores", "features"].iter().filter_map(|k| find(object, &[k])).filter_map(|(_, v)| match v {
            Json::Object(inner) => Some(&inner[..]),
            _ => None,
        });
    for (name, value) in std::iter::once(object).chain(inner).flatten() {
        let Json::Array(numbers) = value else { continue };
        if name == key
            || !numbers.iter().any(Json::is_number)
            || sink.options.columns.role(name) != Role::Feature
        {
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
            sink.text(key, text);
        }
        for (name, numbers) in &columns {
            number(input, name, &numbers[i], sink)?;
        }
        sink.end_row(input, segment, None)?;
    }
    Ok(())
}

/// Appends the candidate that an object describes; `listed` if it is part of a list. Fails if it has no text or a value is
/// not finite.
fn one_candidate(
    input: &Input,
    object: &Object,
    listed: bool,
    segment: u32,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let (key, text, reference) = text_of(input, object, sink)?;
    sink.text(&key, text);
    let mut total = None;
    let scores = find(object, &["scores"]).filter(|(_, s)| !matches!(s, Json::Array(_)));
    let scores = scores.map_or(Ok(&[][..]), |(_, s)| table(input, "scores", s))?;
    let features = find(object, &["features"]);
    for (name, value) in object {
        let role = sink.role(name);
        let rank = RANK.contains(&name.as_str()) || listed && matches!(name.as_str(), "index" | "id");
        match value {
            _ if *name == key || rank || role == Role::Id && !listed => {}
            _ if matches!(name.as_str(), "features" | "scores") && matches!(value, Json::Object(_)) => {}
            _ if role == Role::Reference || Some(name.as_str()) == reference => {
                let texts = references(input, name, value)?;
                sink.references(input, segment, name, texts)?;
            }
            _ if role == Role::Group => sink.group(input, segment, name, &group(input, name, value)?)?,
            Json::Number(_) | Json::Null if features.is_none() && role == Role::Feature => {
                number(input, name, value, sink)?;
            }
            _ if derived(input, name, value, sink)? => {}
            other => sink.ignore(name, other.what()),
        }
    }
    if let Some((_, features)) = features {
        for (name, value) in table(input, "features", features)? {
            match value {
                Json::Null => return Err(not_number(input, name, value)),
                _ if sink.role(name) == Role::Ignored => sink.ignore(name, "number"),
                Json::Number(x) => sink.sparse(input, name, *x)?,
                _ => return Err(not_number(input, name, value)),
            }
        }
        for (name, value) in scores {
            let Json::Number(value) = value else { return Err(not_number(input, name, value)) };
            match name.as_str() {
                "total" => total = Some(*value),
                name => sink.rows.push_score(input, name, *value)?,
            }
        }
    } else {
        for (name, value) in scores {
            match sink.role(name) {
                Role::Ignored => sink.ignore(name, value.what()),
                _ => number(input, name, value, sink)?,
            }
        }
    }
    sink.end_row(input, segment, total)
}

/// Returns the key and the text of a candidate, and the key of its reference if the names imply one.
fn text_of<'a>(
    input: &Input,
    object: &'a Object,
    sink: &Sink<'_>,
) -> Result<(String, &'a str, Option<&'a str>)> {
    // OpenAI's chats have the text in `message`.
    if let Some(Json::String(text)) = find(object, &["message"]).and_then(|(_, m)| m.value("content")) {
        return Ok(("message.content".to_owned(), text, None));
    }
    let texts: Vec<&str> =
        object.iter().filter(|(_, v)| matches!(v, Json::String(_))).map(|(k, _)| k.as_str()).collect();
    let several = |all: String| {
        input
            .error(format!("{all} could all be the text of the candidate"))
            .hint("name it with --text-column NAME, and the reference with --reference-column NAME")
    };
    let (key, reference) = sink.options.columns.text_of(&texts).map_err(several)?;
    let Some((key, Json::String(text))) = key.and_then(|k| find(object, &[k])) else {
        let keys = object.iter().take(10).map(|(k, _)| k.as_str()).collect::<Vec<_>>().join(", ");
        if let Some(chosen) = &sink.options.columns.text {
            let message = format!("the candidate has no text called {chosen}; its keys are: {keys}");
            return Err(input.error(message).hint("check --text-column"));
        }
        return Err(input
            .error(format!("the candidate has no text; its keys are: {keys}"))
            .hint("name the text with --text-column NAME, or call it `text`"));
    };
    Ok((key.to_owned(), text, reference))
}

/// Adds the features that follow from nested values of known programs; returns whether there are any.
fn derived(input: &Input, name: &str, value: &Json, sink: &mut Sink<'_>) -> Result<bool> {
    match name {
        // OpenAI: log probabilities of the tokens.
        "logprobs" => {
            let numbers = token_logprobs(value);
            let sum: f64 = numbers.iter().sum();
            if !numbers.is_empty() {
                sink.feature(input, "logprob", sum)?;
                sink.feature(input, "mean_logprob", sum / numbers.len() as f64)?;
            }
            Ok(!numbers.is_empty())
        }
        // Whisper: means over the segments of an utterance.
        "segments" => {
            let Json::Array(parts) = value else { return Ok(false) };
            let mut any = false;
            for key in ["avg_logprob", "compression_ratio", "no_speech_prob"] {
                let numbers: Vec<f64> = parts.iter().filter_map(|p| p.value(key)?.number()).collect();
                if !parts.is_empty() && numbers.len() == parts.len() {
                    sink.feature(input, key, numbers.iter().sum::<f64>() / numbers.len() as f64)?;
                    any = true;
                }
            }
            Ok(any)
        }
        _ => Ok(false),
    }
}

/// Returns the log probabilities of tokens as `OpenAI` completions and chats give them. The first token of a prompt has
/// none.
fn token_logprobs(value: &Json) -> Vec<f64> {
    if let Some(Json::Array(all)) = value.value("token_logprobs") {
        return all.iter().filter_map(Json::number).collect();
    }
    match value.value("content") {
        Some(Json::Array(tokens)) => tokens.iter().filter_map(|t| t.value("logprob")?.number()).collect(),
        _ => Vec::new(),
    }
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

/// Adds a number as a feature; `null` is a missing one. Fails if the value is neither.
fn number(input: &Input, name: &str, value: &Json, sink: &mut Sink<'_>) -> Result<()> {
    match value {
        Json::Number(n) => sink.feature(input, name, *n),
        Json::Null => {
            sink.null(name);
            Ok(())
        }
        other => Err(not_number(input, name, other)),
    }
}

/// Builds the error about a value that is not a number.
fn not_number(input: &Input, name: &str, value: &Json) -> Error {
    input.error(format!("the value of {name} is {}, expected a finite number", value.kind()))
}
