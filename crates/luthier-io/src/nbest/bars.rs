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
//!
//! A block `Name= a b c` becomes the features `Name[0]`, `Name[1]`, `Name[2]`; a single value stays `Name`.

use super::{Rows, not_finite, number, plural, segment_id};
use crate::Input;
use luthier_core::Result;
use memchr::memmem::Finder;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Reads the candidates of a file into `rows`. Fails on a malformed line.
pub(super) fn read(input: &mut Input, rows: &mut Rows) -> Result<()> {
    let mut parser = Parser::default();
    let mut buffer = Vec::new();
    while input.line(&mut buffer)? {
        let line = input.utf8(&buffer)?;
        if !line.trim().is_empty() {
            parser.line(input, line, rows)?;
        }
    }
    Ok(())
}

/// Number of fields of a line that are read; further ones are ignored.
const FIELDS: usize = 8;

/// Indices of the fields that hold features and score, detected from the first line with features.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    features: usize,
    score: usize,
}

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
        let segment = segment_id(input, field(0))?;
        rows.push_text(field(1));
        self.features(input, field(layout.features), rows)?;
        let total = match field(layout.score) {
            "" => None,
            word => Some(number(word).ok_or_else(|| {
                input
                    .error(format!("the total score is `{}`, expected a finite number", short(word)))
                    .hint("the text must not contain `|||`")
            })?),
        };
        rows.end_row(segment, input.line_number(), total);
        Ok(())
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
        let mut open: Option<&str> = None;
        for word in field.split_ascii_whitespace() {
            if let Some(label) = self.opens(input, word)? {
                self.close(input, open, rows)?;
                open = Some(label);
            } else if let Some((label, value)) = pair(word).filter(|_| self.style != Some(Label::Colon)) {
                self.close(input, open.take(), rows)?;
                let value = number(value).ok_or_else(|| not_finite(input, label, value))?;
                self.values.push(value);
                self.close(input, Some(label), rows)?;
                self.style = Some(Label::Equals);
            } else if let Some(label) = open {
                self.values.push(number(word).ok_or_else(|| not_finite(input, label, word))?);
            } else {
                return Err(input
                    .error(format!(
                        "the features begin with `{}`, expected a label such as `LM0=`",
                        short(word)
                    ))
                    .hint("the text must not contain `|||`"));
            }
        }
        self.close(input, open, rows)
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
