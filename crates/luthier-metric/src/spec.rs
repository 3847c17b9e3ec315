//! Metrics by name: `bleu`, `bleu:order=2,tokenize=13a,lowercase`.

use crate::{Bleu, Metric, Smooth, Tokenizer};
use std::{fmt, str::FromStr};

/// A metric's name that cannot be understood, with what would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecError(String);

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SpecError {}

impl FromStr for Metric {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        Metric::parse(text, Tokenizer::None)
    }
}

impl Metric {
    /// Understands a metric's name; `tokenize` is what a name without that option means.
    pub fn parse(text: &str, tokenize: Tokenizer) -> Result<Self, SpecError> {
        let (name, options) = text.split_once(':').unwrap_or((text, ""));
        let options = options.split(',').filter(|o| !o.is_empty());
        match name.trim().to_ascii_lowercase().as_str() {
            "bleu" => bleu(options, tokenize),
            other => Err(unknown("metric", other, &["bleu"])),
        }
    }
}

fn bleu<'a>(options: impl Iterator<Item = &'a str>, tokenize: Tokenizer) -> Result<Metric, SpecError> {
    let mut b = Bleu { tokenize, ..Bleu::default() };
    for option in options {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        match key {
            "order" => {
                b.order = value.parse().ok().filter(|n| (1..=8).contains(n)).ok_or_else(|| {
                    SpecError(format!("order of BLEU is `{value}`, expected a number from 1 to 8"))
                })?;
            }
            "tokenize" => b.tokenize = Tokenizer::parse(value)?,
            "smooth" => b.smooth = choose("smoothing", value, Smooth::ALL, Smooth::name)?,
            "lowercase" => b.lowercase = flag(key, value)?,
            _ => return Err(unknown("option of BLEU", key, &["order", "tokenize", "smooth", "lowercase"])),
        }
    }
    Ok(Metric::Bleu(b))
}

fn flag(key: &str, value: &str) -> Result<bool, SpecError> {
    match value {
        "" | "yes" | "true" => Ok(true),
        "no" | "false" => Ok(false),
        _ => Err(SpecError(format!("{key} is `{value}`, expected yes or no"))),
    }
}

/// Finds a setting by its name.
pub(crate) fn choose<T: Copy>(
    what: &str,
    value: &str,
    all: &[T],
    name: impl Fn(&T) -> &'static str,
) -> Result<T, SpecError> {
    let names: Vec<&str> = all.iter().map(&name).collect();
    all.iter().copied().find(|t| name(t) == value).ok_or_else(|| unknown(what, value, &names))
}

/// An error that suggests the nearest of the known names.
fn unknown(what: &str, found: &str, known: &[&str]) -> SpecError {
    let nearest = known.iter().map(|k| (distance(found, k), k)).min().filter(|(d, k)| *d <= k.len() / 2);
    let guess = nearest.map(|(_, k)| format!("did you mean {k}? ")).unwrap_or_default();
    SpecError(format!("unknown {what} `{found}`: {guess}known: {}", known.join(", ")))
}

/// Levenshtein distance of two short names.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replace = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_understood() {
        let Metric::Bleu(b) = "bleu:order=2,tokenize=13a,lowercase".parse().unwrap();
        assert_eq!((b.order, b.tokenize, b.lowercase), (2, Tokenizer::V13a, true));
    }

    #[test]
    fn mistakes_suggest_the_nearest() {
        let message = |s: &str| s.parse::<Metric>().unwrap_err().to_string();
        assert_eq!(message("blue"), "unknown metric `blue`: did you mean bleu? known: bleu");
        assert!(message("bleu:tokenise=13a").contains("did you mean tokenize?"));
        assert!(message("bleu:tokenize=13").contains("did you mean 13a?"));
        assert!(message("bleu:order=0").contains("from 1 to 8"));
    }
}
