//! Parsing and printing of metrics by name: `bleu`, `bleu:order=2,tokenize=13a,lowercase`,
//! `0.5*bleu+0.5*chrf`.

use crate::{Bleu, Chrf, Column, Error, ErrorRate, Metric, Smooth, Ter, Tokenizer};
use std::{fmt, str::FromStr};

type Spec<T> = Result<T, Error>;

/// Names of the metrics.
const NAMES: &[&str] = &["bleu", "chrf", "chrf++", "ter", "wer", "cer", "column:NAME"];

impl FromStr for Metric {
    type Err = Error;

    fn from_str(text: &str) -> Spec<Self> {
        Metric::parse(text, Tokenizer::None)
    }
}

impl Metric {
    /// Parses a metric with its settings. `tokenize` is the tokeniser of BLEU if the option `tokenize` is not
    /// given. Fails if a metric, an option or a value is unknown; the message suggests the most similar name.
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

    /// Parses a list of metrics such as `bleu,chrf,ter`, with `tokenize` as in [`Metric::parse`]. Commas also
    /// separate options: a part that is not the name of a metric, such as `order=2`, belongs to the metric
    /// before it. Fails as [`Metric::parse`] does.
    ///
    /// ```
    /// use luthier_metric::{Metric, Tokenizer};
    /// let metrics = Metric::parse_list("bleu:order=2,lowercase,chrf++", Tokenizer::V13a)?;
    /// assert_eq!(metrics.iter().map(Metric::name).collect::<Vec<_>>(), ["BLEU", "chrF2++"]);
    /// # Ok::<(), luthier_metric::Error>(())
    /// ```
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

/// Displays the metric as a name that [`Metric::parse`] accepts, with the settings that are not the defaults:
/// `bleu:order=2,tokenize=13a`, `0.5*bleu+0.5*chrf`. Parsing it restores the metric.
impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, options) = match self {
            Metric::Bleu(b) => ("bleu", bleu_options(b)),
            Metric::Chrf(c) => ("chrf", chrf_options(c)),
            Metric::Ter(t) => ("ter", ter_options(t)),
            Metric::ErrorRate(e) => {
                (if e.characters { "cer" } else { "wer" }, switches(&[("lowercase", e.lowercase)]))
            }
            Metric::Column(c) => return write!(f, "column:{}", c.name),
            Metric::Sum(parts) => {
                let terms: Vec<String> = parts.iter().map(|(w, m)| format!("{w}*{m}")).collect();
                return f.write_str(&terms.join("+"));
            }
        };
        let colon = if options.is_empty() { "" } else { ":" };
        write!(f, "{name}{colon}{}", options.join(","))
    }
}

/// Returns the names of the options that are on.
fn switches(all: &[(&str, bool)]) -> Vec<String> {
    all.iter().filter(|s| s.1).map(|s| s.0.to_owned()).collect()
}

fn bleu_options(b: &Bleu) -> Vec<String> {
    let usual = Bleu::default();
    let mut options = Vec::new();
    if b.order != usual.order {
        options.push(format!("order={}", b.order));
    }
    if b.tokenize != usual.tokenize {
        options.push(format!("tokenize={}", b.tokenize.name()));
    }
    if b.smooth != usual.smooth {
        options.push(format!("smooth={}", b.smooth.name()));
    }
    if let Smooth::Floor(v) | Smooth::AddK(v) = b.smooth {
        options.push(format!("smooth-value={v}"));
    }
    options.extend(switches(&[("effective-order", b.effective_order), ("lowercase", b.lowercase)]));
    options
}

fn chrf_options(c: &Chrf) -> Vec<String> {
    let usual = Chrf::default();
    let mut options = Vec::new();
    if c.char_order != usual.char_order {
        options.push(format!("char-order={}", c.char_order));
    }
    if c.word_order != usual.word_order {
        options.push(format!("word-order={}", c.word_order));
    }
    if c.beta != usual.beta {
        options.push(format!("beta={}", c.beta));
    }
    options.extend(switches(&[("whitespace", c.whitespace), ("lowercase", c.lowercase)]));
    options
}

fn ter_options(t: &Ter) -> Vec<String> {
    switches(&[("case", t.case), ("normalized", t.normalized), ("no-punct", t.no_punct)])
}

impl From<Metric> for String {
    fn from(metric: Metric) -> String {
        metric.to_string()
    }
}

impl TryFrom<String> for Metric {
    type Error = Error;

    fn try_from(text: String) -> Spec<Self> {
        text.parse()
    }
}

/// Iterates over the terms of a sum; the plus signs of `chrf++` and of exponents do not separate terms.
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

/// Returns whether a part of a list begins with the name or weight of a metric.
fn starts_metric(part: &str) -> bool {
    let name = part.split([':', '*', '+']).next().unwrap_or_default().trim();
    part.contains('*') || NAMES.contains(&name) || name == "column"
}

/// Parses one metric with its options; `columns` counts the columns parsed so far.
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
            _ => Err(Error::name("column needs a name, as in column:comet")),
        },
        other => Err(unknown_metric(other, text)),
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
                    return Err(Error::name(format!("{key} is {given}, expected a number of at least 0")));
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
            return Err(Error::name("smooth-value requires smooth=floor or smooth=add-k"));
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

/// Parses a whole number from `low` to `high`.
fn within(key: &str, text: &str, low: usize, high: usize) -> Spec<usize> {
    text.parse()
        .ok()
        .filter(|n| (low..=high).contains(n))
        .ok_or_else(|| Error::name(format!("{key} is `{text}`, expected a number from {low} to {high}")))
}

/// Parses a finite number.
fn number(key: &str, text: &str) -> Spec<f64> {
    text.parse()
        .ok()
        .filter(|v: &f64| v.is_finite())
        .ok_or_else(|| Error::name(format!("{key} is `{text}`, expected a finite number")))
}

/// Parses the value of a Boolean option, which is true without a value.
fn flag(key: &str, value: &str) -> Spec<bool> {
    match value {
        "" | "yes" | "true" => Ok(true),
        "no" | "false" => Ok(false),
        _ => Err(Error::name(format!("{key} is `{value}`, expected yes or no"))),
    }
}

/// Returns the setting whose name is `value`. Fails if there is none; the message suggests the most similar
/// name.
pub(crate) fn choose<T: Copy>(
    what: &str,
    value: &str,
    all: &[T],
    name: impl Fn(&T) -> &'static str,
) -> Spec<T> {
    let names: Vec<&str> = all.iter().map(&name).collect();
    all.iter().copied().find(|t| name(t) == value).ok_or_else(|| unknown(what, value, &names))
}

/// Builds the error about an unknown name, which suggests the most similar of the known names.
fn unknown(what: &str, found: &str, known: &[&str]) -> Error {
    let nearest = known.iter().map(|k| (edit_distance(found, k), k)).min().filter(|(d, k)| *d <= k.len() / 2);
    let guess = nearest.map(|(_, k)| format!("did you mean {k}? ")).unwrap_or_default();
    Error::name(format!("unknown {what} `{found}`: {guess}known: {}", known.join(", ")))
}

/// Returns an error about a metric that is not built in: its scores may come with the candidates.
fn unknown_metric(name: &str, typed: &str) -> Error {
    if name.is_empty() {
        return Error::name(format!("the metric is empty, expected one of {}", NAMES.join(", ")));
    }
    let near = NAMES.iter().find(|k| edit_distance(name, k) <= 2 - usize::from(name.len() < 4));
    let guess = match near {
        Some(near) => format!("did you mean {near}?"),
        None => format!("if each candidate has a number of that name, type column:{}", typed.trim()),
    };
    Error::name(format!("unknown metric `{name}`, expected one of {}; {guess}", NAMES.join(", ")))
}

/// Returns the Levenshtein distance of two names, in characters.
///
/// ```
/// assert_eq!(luthier_metric::edit_distance("blue", "bleu"), 2);
/// ```
pub fn edit_distance(a: &str, b: &str) -> usize {
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

    /// Metrics survive printing and parsing, as text and as JSON.
    #[test]
    fn names_are_read_as_they_are_written() {
        for name in [
            "bleu",
            "bleu:order=2,tokenize=13a,effective-order,lowercase",
            "bleu:smooth=none",
            "bleu:smooth=floor,smooth-value=0.25",
            "bleu:smooth=add-k,smooth-value=1",
            "chrf",
            "chrf:char-order=5,word-order=2,beta=3,whitespace,lowercase",
            "ter:case,normalized,no-punct",
            "wer",
            "cer:lowercase",
            "column:comet",
            "0.5*bleu+0.5*chrf",
            "0.001*bleu:tokenize=intl+-2*ter+1*column:a+1*column:b",
            "0.5*bleu",
        ] {
            let metric: Metric = name.parse().unwrap();
            assert_eq!(metric.to_string(), name);
            assert_eq!(Metric::try_from(String::from(metric.clone())).unwrap(), metric);
            #[cfg(feature = "serde")]
            {
                let json = serde_json::to_string(&metric).unwrap();
                assert_eq!(json, format!("\"{name}\""));
                assert_eq!(serde_json::from_str::<Metric>(&json).unwrap(), metric);
            }
        }
        let shorter: Metric = "chrf++ + 1e-3*bleu:smooth=floor".parse().unwrap();
        assert_eq!(shorter.to_string().parse::<Metric>().unwrap(), shorter);
    }

    #[test]
    fn mistakes_suggest_the_nearest() {
        let mut wrong = Vec::new();
        for (name, expected) in [
            ("bleuu", "unknown metric `bleuu`, expected one of bleu, chrf"),
            ("blue", "did you mean bleu?"),
            ("comet", "; if each candidate has a number of that name, type column:comet"),
            ("bleu:tokenise=13a", "did you mean tokenize?"),
            ("bleu:tokenize=13", "did you mean 13a?"),
            ("bleu:order=0", "from 1 to 8"),
            ("bleu:smooth=floor,smooth-value=-1", "a number of at least 0"),
            ("x*bleu", "weight is `x`"),
            ("column", "column:comet"),
            ("", "the metric is empty, expected one of bleu"),
        ] {
            let message = name.parse::<Metric>().unwrap_err().to_string();
            if !message.contains(expected) {
                wrong.push(format!("{name}: {message}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!("blue".parse::<Metric>().unwrap_err().to_string().starts_with("unknown metric"));
    }
}
