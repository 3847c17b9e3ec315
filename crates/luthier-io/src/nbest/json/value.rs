//! A JSON value that keeps the order of keys and rejects duplicate keys.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Any JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Number(f64),
    String(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Returns a description of the value for messages: a scalar itself, or `an array` or `an object`.
    pub(super) fn kind(&self) -> String {
        match self {
            Json::Null => "null".to_owned(),
            Json::Bool(b) => b.to_string(),
            Json::Number(n) => n.to_string(),
            Json::String(s) => format!("{:?}", s.chars().take(30).collect::<String>()),
            Json::Array(_) => "an array".to_owned(),
            Json::Object(_) => "an object".to_owned(),
        }
    }
}

impl Json {
    /// Returns the value of a key, if this is an object that has it.
    pub(super) fn value(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(pairs) => pairs.iter().find(|(name, _)| name == key).map(|(_, v)| v),
            _ => None,
        }
    }

    /// Returns the object that a key has, if this is an object that has it.
    pub(super) fn get(&self, key: &str) -> Option<&[(String, Json)]> {
        match self.value(key) {
            Some(Json::Object(pairs)) => Some(pairs),
            _ => None,
        }
    }

    /// Returns the number, if this is one.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Json::Number(n) => Some(*n),
            _ => None,
        }
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Json::Number(_))
    }

    /// Returns what kind of value this is, for the list of what is ignored.
    pub(super) fn what(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "true or false",
            Json::Number(_) => "number",
            Json::String(_) => "text",
            Json::Array(items) if items.iter().any(|i| matches!(i, Json::Array(_))) => "matrix",
            Json::Array(_) => "array",
            Json::Object(_) => "nested",
        }
    }
}

/// Returns the first of `keys` that an object has, with its value; `None` if it has none of them.
pub(super) fn find<'a>(object: &'a [(String, Json)], keys: &[&str]) -> Option<(&'a str, &'a Json)> {
    keys.iter().find_map(|k| object.iter().find(|(name, _)| name == k)).map(|(name, v)| (name.as_str(), v))
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Builder)
    }
}

/// Visitor that builds a [`Json`] value.
struct Builder;

impl<'de> Visitor<'de> for Builder {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, b: bool) -> Result<Json, E> {
        Ok(Json::Bool(b))
    }

    fn visit_i64<E>(self, n: i64) -> Result<Json, E> {
        Ok(Json::Number(n as f64))
    }

    fn visit_u64<E>(self, n: u64) -> Result<Json, E> {
        Ok(Json::Number(n as f64))
    }

    fn visit_f64<E>(self, n: f64) -> Result<Json, E> {
        Ok(Json::Number(n))
    }

    fn visit_str<E>(self, s: &str) -> Result<Json, E> {
        Ok(Json::String(s.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut out = Vec::new();
        while let Some(item) = items.next_element()? {
            out.push(item);
        }
        Ok(Json::Array(out))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut out: Vec<(String, Json)> = Vec::new();
        let mut seen = rustc_hash::FxHashSet::default();
        while let Some((key, value)) = items.next_entry::<String, Json>()? {
            if !seen.insert(key.clone()) {
                return Err(A::Error::custom(format!("the key {key:?} occurs twice")));
            }
            out.push((key, value));
        }
        Ok(Json::Object(out))
    }
}
