//! Serialised settings as the named values of a work directory.

use luthier::{
    core::{Error, Result},
    io::{Input, Settings},
};
use serde::Serialize;
use std::path::{Path, PathBuf};
use toml::Value;

/// A file that work depends on. It counts by its digest; the path is for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct InputFile {
    pub(crate) path: PathBuf,
    pub(crate) digest: String,
}

impl InputFile {
    /// Reads a file whole for its digest.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        Ok(InputFile { path: path.to_owned(), digest: Input::open(path)?.digest()? })
    }
}

/// Every value of a serialised struct under its own name: names of nested values are joined by a dash to those around them,
/// lists are one value, and a table of `path` and `digest` counts by its digest.
pub(crate) fn settings_of(spec: &impl Serialize) -> Result<Settings> {
    let value = Value::try_from(spec).map_err(|e| Error::new(format!("settings cannot be kept: {e}")))?;
    let mut settings = Settings::default();
    flatten("", &value, &mut settings);
    Ok(settings)
}

fn flatten(name: &str, value: &Value, settings: &mut Settings) {
    match value {
        Value::Table(table) => match digest(value) {
            Some(digest) => settings.add(name, digest),
            None => {
                for (key, value) in table {
                    let inner = if name.is_empty() { key.clone() } else { format!("{name}-{key}") };
                    flatten(&inner, value, settings);
                }
            }
        },
        _ => settings.add(name, plain(value)),
    }
}

fn digest(value: &Value) -> Option<&str> {
    let table = value.as_table().filter(|t| t.len() == 2 && t.contains_key("path"))?;
    table.get("digest")?.as_str()
}

/// A value without quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Table(_) => digest(value).map_or_else(|| value.to_string(), str::to_owned),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_flat() {
        #[derive(Serialize)]
        struct Inner {
            limit: Option<u32>,
            beam: Option<f64>,
            names: Vec<String>,
        }
        #[derive(Serialize)]
        struct Outer {
            seed: u64,
            table: InputFile,
            lm: Vec<InputFile>,
            search: Inner,
        }
        let file = |digest: &str| InputFile { path: "/there".into(), digest: digest.to_owned() };
        let outer = Outer {
            seed: 1,
            table: file("0a"),
            lm: vec![file("0b"), file("0c")],
            search: Inner { limit: Some(6), beam: None, names: vec!["x".into(), "y".into()] },
        };
        let settings = settings_of(&outer).unwrap();
        let mut all: Vec<(&str, &str)> = settings.iter().collect();
        all.sort_unstable();
        let expected = [
            ("lm", "0b, 0c"),
            ("search-limit", "6"),
            ("search-names", "x, y"),
            ("seed", "1"),
            ("table", "0a"),
        ];
        assert_eq!(all, expected);
        assert_eq!(settings.difference_to(&settings.to_toml()), None);
    }
}
