//! Reader of n-best lists with fields separated by `|||`, as written by Moses, cdec, Joshua, Marian, Phrasal
//! and travatar: `id ||| text ||| features ||| score`.
//!
//! | decoder | features | peculiarity |
//! | --- | --- | --- |
//! | Moses | `LM0= -21.4 TM0= -2.1 -1.9 WT_a~b= 1` | alignments follow the score |
//! | old Moses, Phrasal | `d: 0 -7.6` | no space before the first separator |
//! | cdec, Joshua | `LanguageModel=-3.2 Glue=2` | |
//! | Marian | `F0=-1.2` or `F0= -1.2` | alignment and word scores come before the features |
//! | travatar | `lm=-3.2` | the score comes before the features |
//! | Z-MERT | `-21.4 -2.1 -1.9` | values without labels become `feature[0]`, `feature[1]`, … |
//!
//! A block `Name= a b c` becomes the features `Name[0]`, `Name[1]`, `Name[2]`; a single value stays `Name`.

use super::{Ids, Rows, not_finite, number, plural, segment_id};
use crate::Input;
use luthier_core::Result;
use memchr::memmem::Finder;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Reads the candidates of a file into `rows`. Fails on a malformed line.
pub(super) fn read(input: &mut Input, rows: &mut Rows) -> Result<()> {
    let mut parser = Parser::default();
    let mut buffer = Vec::new();
    let first = rows.len();
    while input.line(&mut buffer)? {
        let line = input.utf8(&buffer)?;
        if !line.trim().is_empty() {
            parser.line(input, line, rows)?;
        }
    }
    match parser.ids {
        Some(ids) => rows.settle_ids(input.name(), first, ids),
        None if rows.has_names() => rows.settle_numbers(input.name()),
        None => Ok(()),
    }
}

/// Number of fields of a line that are read; further ones are ignored.
const FIELDS: usize = 8;

/// Indices of the fields that hold features and score, detected from the first line with features.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    features: usize,
    score: usize,
}

/// Label of values without labels.
const UNNAMED: &str = "feature";

/// Layout of Moses' format.
const MOSES: Layout = Layout { features: 2, score: 3 };

/// Character at the end of labels; a file with both is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    Equals,
    Colon,
}

/// A label with the features of its values.
struct Entry {
    label: Box<str>,
    /// Number of the feature of each value.
    ids: Vec<u32>,
    /// Line where the label occurred first.
    first_line: u64,
    /// Index of the label that followed this one last time; tried first, because lines repeat labels in
    /// order.
    next: u32,
}

/// Maximum number of entries; further sparse labels are looked up by name.
const MAX_ENTRIES: usize = 4096;

/// Parser of the lines of one file.
struct Parser {
    /// Finder of `|||`.
    bars: Finder<'static>,
    /// Layout of the file; `None` until it is detected.
    layout: Option<Layout>,
    /// Form of the labels; `None` before the first label.
    style: Option<Label>,
    /// Labels in order of first occurrence.
    entries: Vec<Entry>,
    /// Index of each label in `entries`.
    index: FxHashMap<Box<str>, u32>,
    /// Values read so far of the current label.
    values: Vec<f64>,
    /// Index of the previous label of the line.
    last: Option<u32>,
    /// Names of the segments; `None` if they are numbered.
    ids: Option<Ids>,
    /// Whether any line has been read.
    begun: bool,
}

impl Default for Parser {
    fn default() -> Self {
        Parser {
            bars: Finder::new("|||"),
            layout: None,
            style: None,
            entries: Vec::new(),
            index: FxHashMap::default(),
            values: Vec::new(),
            last: None,
            ids: None,
            begun: false,
        }
    }
}

impl Parser {
    /// Parses one line into a row. Fails if the line is malformed.
    fn line(&mut self, input: &Input, line: &str, rows: &mut Rows) -> Result<()> {
        let (fields, n) = self.fields(line);
        if n < 3 {
            let few = format!("found {n} field{}, expected `id ||| text ||| features ||| score`", plural(n));
            return Err(input.error(few));
        }
        let field = |i: usize| fields.get(i).map_or("", |f| line[f.clone()].trim());
        let layout = match self.layout {
            Some(layout) => layout,
            None => self.settle(&(2..n.min(FIELDS)).map(field).collect::<Vec<_>>()),
        };
        let segment = self.segment(input, field(0))?;
        rows.push_text(field(1));
        self.features(input, field(layout.features), rows)?;
        let total = match field(layout.score) {
            "" => None,
            word => Some(decimal(word).map(|d| d.0).or_else(|| number(word)).ok_or_else(|| {
                input
                    .error(format!("the total score is `{}`, expected a finite number", short(word)))
                    .hint("the text must not contain `|||`")
            })?),
        };
        rows.end_row(segment, input.line_number(), total);
        Ok(())
    }

    /// Returns the segment of an id: a number, or a name if the id of the first line is one.
    fn segment(&mut self, input: &Input, id: &str) -> Result<u32> {
        if !self.begun && !id.is_empty() && id.parse::<f64>().is_err() {
            self.ids = Some(Ids::default());
        }
        self.begun = true;
        match &mut self.ids {
            Some(ids) => Ok(ids.index(id)),
            None => segment_id(input, id),
        }
    }

    /// Returns the first fields of a line, as byte ranges (missing ones are empty), and the number of all
    /// fields.
    fn fields(&self, line: &str) -> ([Range<usize>; FIELDS], usize) {
        let mut fields = std::array::from_fn(|_| 0..0);
        let (mut start, mut n) = (0, 0);
        for bar in self.bars.find_iter(line.as_bytes()) {
            if n < FIELDS {
                fields[n] = start..bar;
            }
            n += 1;
            start = bar + 3;
        }
        if n < FIELDS {
            fields[n] = start..line.len();
        }
        (fields, n + 1)
    }

    /// Detects which of the fields after the text are features and score. Word scores (Marian) and alignments
    /// are neither.
    fn settle(&mut self, fields: &[&str]) -> Layout {
        let is_features = |f: &&str| starts_with_label(f) && !f.starts_with("WordScores=");
        let Some(features) = fields.iter().position(is_features) else { return MOSES };
        // Fields before the features must be alignments or scores; anything else is part of a text with
        // `|||`.
        if !fields[..features].iter().all(|f| is_extra(f)) {
            return MOSES;
        }
        let is_score = |i: usize| fields.get(i).is_some_and(|f| number(f).is_some());
        let before = features.checked_sub(1).filter(|&i| is_score(i) && !is_score(features + 1));
        let layout = Layout { features: features + 2, score: before.unwrap_or(features + 1) + 2 };
        self.layout = Some(layout);
        layout
    }

    /// Parses the features of a line. Fails on a value without label and on a value that is not finite.
    fn features(&mut self, input: &Input, field: &str, rows: &mut Rows) -> Result<()> {
        self.last = None;
        // Z-MERT has values without labels.
        let bare = self.style.is_none() && self.entries.iter().all(|e| *e.label == *UNNAMED);
        let first = field.split_ascii_whitespace().next().and_then(number);
        let mut open: Option<&str> = first.filter(|_| bare).map(|_| UNNAMED);
        let mut rest = field;
        loop {
            rest = rest.trim_ascii_start();
            if open.is_some()
                && let Some((value, after)) = decimal(rest)
            {
                self.values.push(value);
                rest = after;
                continue;
            }
            let end = rest.bytes().position(|b| b.is_ascii_whitespace()).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            if word.is_empty() {
                break;
            }
            self.word(input, word, &mut open, rows)?;
            rest = after;
        }
        self.close(input, open, rows)
    }

    /// Parses one word of the features; `open` is the label that the next values belong to.
    fn word<'a>(
        &mut self,
        input: &Input,
        word: &'a str,
        open: &mut Option<&'a str>,
        rows: &mut Rows,
    ) -> Result<()> {
        if let Some(label) = self.opens(input, word)? {
            self.close(input, open.replace(label), rows)
        } else if let Some((label, value)) = pair(word).filter(|_| self.style != Some(Label::Colon)) {
            self.close(input, open.take(), rows)?;
            let value = number(value).ok_or_else(|| not_finite(input, label, value))?;
            self.values.push(value);
            self.style = Some(Label::Equals);
            self.close(input, Some(label), rows)
        } else if let Some(label) = open {
            self.values.push(number(word).ok_or_else(|| not_finite(input, label, word))?);
            Ok(())
        } else {
            let message =
                format!("the features begin with `{}`, expected a label such as `LM0=`", short(word));
            Err(input.error(message).hint("the text must not contain `|||`"))
        }
    }

    /// Returns the label of a word such as `LM0=` or `lm:`; `None` if the word is not a label. Fails on a
    /// label of another form than those before.
    fn opens<'a>(&mut self, input: &Input, word: &'a str) -> Result<Option<&'a str>> {
        let (label, style) = match (word.strip_suffix('='), word.strip_suffix(':')) {
            (Some(label), _) => (label, Label::Equals),
            (_, Some(label)) => (label, Label::Colon),
            _ => return Ok(None),
        };
        if label.is_empty() || number(label).is_some() {
            return Ok(None);
        }
        match self.style {
            None => self.style = Some(style),
            Some(known) if known != style => {
                return Err(input
                    .error(format!("the label `{word}` does not end like the labels before it"))
                    .hint("end all labels of a file in `=` or all in `:`"));
            }
            Some(_) => {}
        }
        Ok(Some(label))
    }

    /// Adds the values of the label `open` as features of the row. Fails if the label had another number of
    /// values before, or occurs twice in the line.
    fn close(&mut self, input: &Input, open: Option<&str>, rows: &mut Rows) -> Result<()> {
        let Some(label) = open else { return Ok(()) };
        let n = self.values.len();
        let expected = self.last.map_or(0, |l| self.entries[l as usize].next);
        let known = match self.entries.get(expected as usize) {
            Some(entry) if *entry.label == *label => Some(expected),
            _ => self.index.get(label).copied(),
        };
        let at = match known {
            Some(at) => at,
            None if n == 1 && self.entries.len() >= MAX_ENTRIES => {
                let value = self.values[0];
                self.values.clear();
                return rows.push_named(input, label, value);
            }
            None => self.new_entry(input, label, rows)?,
        };
        if let Some(last) = self.last {
            self.entries[last as usize].next = at;
        }
        self.last = Some(at);
        let entry = &self.entries[at as usize];
        if entry.ids.len() != n {
            return Err(input.error(format!(
                "{label} has {n} value{} here and {} in line {}",
                plural(n),
                entry.ids.len(),
                entry.first_line
            )));
        }
        for (&id, &value) in entry.ids.iter().zip(&self.values) {
            rows.push_feature(input, id, value)?;
        }
        self.values.clear();
        Ok(())
    }

    /// Adds an entry for a new label with the current values; returns its index. Fails if there is no value.
    fn new_entry(&mut self, input: &Input, label: &str, rows: &mut Rows) -> Result<u32> {
        let ids = match self.values.len() {
            0 => return Err(input.error(format!("{label} has no value"))),
            1 => vec![rows.intern(input, label)?],
            n => (0..n).map(|i| rows.intern(input, &format!("{label}[{i}]"))).collect::<Result<_>>()?,
        };
        let at = self.entries.len() as u32;
        self.entries.push(Entry { label: label.into(), ids, first_line: input.line_number(), next: 0 });
        self.index.insert(label.into(), at);
        Ok(at)
    }
}

/// Powers of ten that a double holds exactly, as far as [`decimal`] needs them.
const TENS: [f64; 16] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// Parses the number that a text begins with if it is a short decimal such as `-3.25`, up to white space or the end; returns
/// it with the rest of the text. `None` for anything else, also for other forms of numbers. The value is the one that
/// [`str::parse`] returns: digits and power of ten are exact, and one division rounds correctly.
fn decimal(text: &str) -> Option<(f64, &str)> {
    let bytes = text.as_bytes();
    let negative = bytes.first() == Some(&b'-');
    let start = usize::from(negative);
    let (mut digits, mut count, mut point, mut at) = (0u64, 0, None, start);
    while let Some(&b) = bytes.get(at) {
        match b {
            b'0'..=b'9' => {
                digits = digits * 10 + u64::from(b - b'0');
                count += 1;
            }
            b'.' if point.is_none() && count > 0 => point = Some(at),
            _ if b.is_ascii_whitespace() => break,
            _ => return None,
        }
        at += 1;
        if count > 15 {
            return None;
        }
    }
    let fraction = point.map_or(0, |p| at - p - 1);
    if count == 0 || point.is_some() && fraction == 0 {
        return None;
    }
    let value = digits as f64 / TENS[fraction];
    Some((if negative { -value } else { value }, &text[at..]))
}

/// Splits `name=value` at the last equals sign, because names may contain others; `None` for any other word.
fn pair(word: &str) -> Option<(&str, &str)> {
    word.rsplit_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty())
}

/// Returns whether a field is a score (travatar), an alignment or word scores (Marian).
fn is_extra(field: &str) -> bool {
    let link = |word: &str| word.bytes().all(|b| b.is_ascii_digit() || b"-=:.,".contains(&b));
    field.starts_with("WordScores=") || number(field).is_some() || field.split_ascii_whitespace().all(link)
}

/// Returns whether a field begins with a label, as features do.
fn starts_with_label(field: &str) -> bool {
    let Some(word) = field.split_ascii_whitespace().next() else { return false };
    let named = |l: Option<&str>| l.is_some_and(|l| !l.is_empty() && number(l).is_none());
    // An alignment such as `0-1=0-1` also has an equals sign, but no number after it.
    named(word.strip_suffix('='))
        || named(word.strip_suffix(':'))
        || pair(word).is_some_and(|p| number(p.1).is_some())
}

/// Returns a word, truncated to 40 characters for a message.
fn short(word: &str) -> String {
    let cut: String = word.chars().take(40).collect();
    if cut.len() < word.len() { cut + "…" } else { cut }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_decimals_are_read_as_the_library_reads_them() {
        let mut state = 1u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..100_000 {
            let mut word: String = if next(2) == 0 { String::new() } else { "-".into() };
            let (whole, fraction) = (1 + next(8), next(8));
            (0..whole).for_each(|_| word.push(char::from(b'0' + next(10) as u8)));
            if fraction > 0 {
                word.push('.');
                (0..fraction).for_each(|_| word.push(char::from(b'0' + next(10) as u8)));
            }
            let (value, rest) = decimal(&format!("{word} x")).map(|(v, r)| (v, r.to_owned())).unwrap();
            assert_eq!(
                (value.to_bits(), rest.as_str()),
                (word.parse::<f64>().unwrap().to_bits(), " x"),
                "{word}"
            );
        }
        for other in
            ["", "-", ".5", "5.", "1e3", "1.2.3", "inf", "+1", "0x1", "1234567890123456", "1=2", "--1"]
        {
            assert_eq!(decimal(other), None, "{other}");
        }
    }
}
