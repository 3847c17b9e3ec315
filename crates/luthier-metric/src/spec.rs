//! Metrics by name: `bleu`, `bleu:order=2,tokenize=13a,lowercase`, `0.5*bleu+0.5*chrf`.

use crate::{Bleu, Chrf, Column, ErrorRate, Metric, Smooth, Ter, Tokenizer};
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

type Spec<T> = Result<T, SpecError>;

const NAMES: &[&str] = &["bleu", "chrf", "chrf++", "ter", "wer", "cer", "column:NAME"];

impl FromStr for Metric {
    type Err = SpecError;

    fn from_str(text: &str) -> Spec<Self> {
        Metric::parse(text, Tokenizer::None)
    }
}

impl Metric {
    /// Understands a metric's name; `tokenize` is what BLEU without that option means.
    pub fn parse(text: &str, tokenize: Tokenizer) -> Spec<Self> {
        let mut columns = 0;
        let mut parts = terms(text)
            .map(|term| {
                let (weight, name) = match term.split_once('*') {
                    Some((w, name)) => (number("weight", w.trim())?, name.trim()),
                    None => (1.0, term),
                };
                Ok((weight, one(name, tokenize, &mut columns)?))
            })
            .collect::<Spec<Vec<_>>>()?;
        match parts.as_slice() {
            [(weight, _)] if *weight == 1.0 => Ok(parts.remove(0).1),
            _ => Ok(Metric::Sum(parts)),
        }
    }

    /// Understands a list such as `bleu,chrf,ter`. A comma also separates options, so a part that names an
    /// option (`order=2`) or a switch of the metric before it belongs to that metric.
    pub fn parse_list(text: &str, tokenize: Tokenizer) -> Spec<Vec<Self>> {
        let mut names: Vec<String> = Vec::new();
        for part in text.split(',') {
            match names.last_mut() {
                Some(last) if last.contains(':') && !starts_metric(part) => *last += &format!(",{part}"),
                _ => names.push(part.to_owned()),
            }
        }
        names.iter().map(|n| Metric::parse(n, tokenize)).collect()
    }
}

/// The terms of a sum. The plus signs of `chrf++` are none of its.
fn terms(text: &str) -> impl Iterator<Item = &str> {
    let mut starts = vec![0];
    let bytes = text.as_bytes();
    for (i, _) in text.match_indices('+') {
        let sign_of_name =
            text[..i].ends_with("chrf") && bytes.get(i + 1) == Some(&b'+') || text[..i].ends_with("chrf+");
        let exponent = i > 1 && matches!(bytes[i - 1], b'e' | b'E') && bytes[i - 2].is_ascii_digit();
        if !sign_of_name && !exponent {
            starts.push(i + 1);
        }
    }
    let ends: Vec<usize> = starts.iter().skip(1).map(|s| s - 1).chain([text.len()]).collect();
    starts.into_iter().zip(ends).map(|(s, e)| text[s..e].trim())
}

fn starts_metric(part: &str) -> bool {
    let name = part.split([':', '*', '+']).next().unwrap_or_default().trim();
    part.contains('*') || NAMES.contains(&name) || name == "column"
}

fn one(text: &str, tokenize: Tokenizer, columns: &mut usize) -> Spec<Metric> {
    let (name, options) = text.split_once(':').unwrap_or((text, ""));
    let options: Vec<(&str, &str)> = options
        .split(',')
        .map(str::trim)
        .filter(|o| !o.is_empty())
        .map(|o| o.split_once('=').unwrap_or((o, "")))
        .collect();
    match name.trim().to_ascii_lowercase().as_str() {
        "bleu" => bleu(&options, tokenize),
        "chrf" => chrf(&options, 0),
        "chrf++" => chrf(&options, 2),
        "ter" => ter(&options),
        "wer" => error_rate(&options, false),
        "cer" => error_rate(&options, true),
        "column" => match text.split_once(':') {
            Some((_, name)) if !name.is_empty() => {
                *columns += 1;
                Ok(Metric::Column(Column { name: name.to_owned(), index: *columns - 1 }))
            }
            _ => Err(SpecError("column needs a name, as in column:comet".to_owned())),
        },
        other => Err(unknown("metric", other, NAMES)),
    }
}

fn bleu(options: &[(&str, &str)], tokenize: Tokenizer) -> Spec<Metric> {
    let mut b = Bleu { tokenize, ..Bleu::default() };
    let mut value = None;
    for &(key, text) in options {
        match key {
            "order" => b.order = within(key, text, 1, 8)?,
            "tokenize" => b.tokenize = Tokenizer::parse(text)?,
            "smooth" => b.smooth = choose("smoothing", text, Smooth::ALL, Smooth::name)?,
            "smooth-value" => {
                let given = number(key, text)?;
                if given < 0.0 {
                    return Err(SpecError(format!("{key} is {given}, expected no negative number")));
                }
                value = Some(given);
            }
            "effective-order" => b.effective_order = flag(key, text)?,
            "lowercase" => b.lowercase = flag(key, text)?,
            _ => {
                let known = ["order", "tokenize", "smooth", "smooth-value", "effective-order", "lowercase"];
                return Err(unknown("option of BLEU", key, &known));
            }
        }
    }
    match (&mut b.smooth, value) {
        (Smooth::Floor(v) | Smooth::AddK(v), Some(given)) => *v = given,
        (_, Some(_)) => {
            return Err(SpecError("smooth-value goes with smooth=floor or smooth=add-k".to_owned()));
        }
        _ => {}
    }
    Ok(Metric::Bleu(b))
}

fn chrf(options: &[(&str, &str)], word_order: usize) -> Spec<Metric> {
    let mut c = Chrf { word_order, ..Chrf::default() };
    for &(key, text) in options {
        match key {
            "char-order" => c.char_order = within(key, text, 1, 16)?,
            "word-order" => c.word_order = within(key, text, 0, 8)?,
            "beta" => c.beta = within(key, text, 1, 100)? as u32,
            "whitespace" => c.whitespace = flag(key, text)?,
            "lowercase" => c.lowercase = flag(key, text)?,
            _ => {
                let known = ["char-order", "word-order", "beta", "whitespace", "lowercase"];
                return Err(unknown("option of chrF", key, &known));
            }
        }
    }
    Ok(Metric::Chrf(c))
}

fn ter(options: &[(&str, &str)]) -> Spec<Metric> {
    let mut t = Ter::default();
    for &(key, text) in options {
        match key {
            "case" => t.case = flag(key, text)?,
            "normalized" => t.normalized = flag(key, text)?,
            "no-punct" => t.no_punct = flag(key, text)?,
            _ => return Err(unknown("option of TER", key, &["case", "normalized", "no-punct"])),
        }
    }
    Ok(Metric::Ter(t))
}

fn error_rate(options: &[(&str, &str)], characters: bool) -> Spec<Metric> {
    let mut e = ErrorRate { characters, ..ErrorRate::default() };
    for &(key, text) in options {
        match key {
            "lowercase" => e.lowercase = flag(key, text)?,
            _ => return Err(unknown(&format!("option of {}", e.name()), key, &["lowercase"])),
        }
    }
    Ok(Metric::ErrorRate(e))
}

fn within(key: &str, text: &str, low: usize, high: usize) -> Spec<usize> {
    text.parse()
        .ok()
        .filter(|n| (low..=high).contains(n))
        .ok_or_else(|| SpecError(format!("{key} is `{text}`, expected a number from {low} to {high}")))
}

fn number(key: &str, text: &str) -> Spec<f64> {
    text.parse()
        .ok()
        .filter(|v: &f64| v.is_finite())
        .ok_or_else(|| SpecError(format!("{key} is `{text}`, expected a finite number")))
}

fn flag(key: &str, value: &str) -> Spec<bool> {
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
) -> Spec<T> {
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
        let Metric::Bleu(b) = "bleu:order=2,tokenize=13a,lowercase".parse().unwrap() else { panic!() };
        assert_eq!((b.order, b.tokenize, b.lowercase), (2, Tokenizer::V13a, true));
        assert_eq!("chrf++".parse::<Metric>(), "chrf:word-order=2".parse());
        let Metric::Sum(parts) = "0.5*bleu + 0.25*chrf++ + column:comet".parse().unwrap() else { panic!() };
        assert_eq!(parts.iter().map(|p| p.0).collect::<Vec<_>>(), [0.5, 0.25, 1.0]);
        assert_eq!(Metric::Sum(parts).name(), "0.5*BLEU+0.25*chrF2+++1*comet");
        let names = |s: &str| {
            let list = Metric::parse_list(s, Tokenizer::V13a).unwrap();
            list.iter().map(Metric::name).collect::<Vec<_>>()
        };
        assert_eq!(names("bleu,chrf,ter"), ["BLEU", "chrF2", "TER"]);
        assert_eq!(names("bleu:order=2,lowercase,chrf:lowercase,wer"), ["BLEU", "chrF2", "WER"]);
    }

    #[test]
    fn mistakes_suggest_the_nearest() {
        let message = |s: &str| s.parse::<Metric>().unwrap_err().to_string();
        assert!(message("blue").starts_with("unknown metric `blue`: did you mean bleu? known: bleu, chrf"));
        assert!(message("bleu:tokenise=13a").contains("did you mean tokenize?"));
        assert!(message("bleu:tokenize=13").contains("did you mean 13a?"));
        assert!(message("bleu:order=0").contains("from 1 to 8"));
        assert!(message("bleu:smooth=floor,smooth-value=-1").contains("no negative number"));
        assert!(message("x*bleu").contains("weight is `x`"));
        assert!(message("column").contains("column:comet"));
        assert!(message("").contains("unknown metric"));
    }
}
