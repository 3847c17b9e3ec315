//! Reader and writer of phrase, rule and reordering tables in Moses' text format:
//! `source ||| target ||| scores ||| alignment ||| counts`, one entry per line.

use crate::{Builder, Entry, GAPS, Table};
use luthier_core::{Error, Fingerprint, Progress, Result, Vocabulary, math};
use luthier_io::{AtomicFile, Input, Meter};
use rustc_hash::FxHashMap;
use std::{
    fmt::Write as _,
    io::Write as _,
    path::{Path, PathBuf},
};

/// Writer of a phrase or rule table in Moses' text format, and of its reordering table if entries have
/// orientation probabilities. The files appear when [`TextWriter::commit`] is called; if the writer is
/// dropped before, no file is created.
///
/// ```
/// use luthier_core::Vocabulary;
/// use luthier_table::{Entry, TextWriter};
/// let dir = tempfile::tempdir().unwrap();
/// let path = dir.path().join("phrase-table");
/// let (mut german, mut english) = (Vocabulary::default(), Vocabulary::default());
/// let (source, target) = ([german.add("haus")], [english.add("house")]);
/// let mut writer = TextWriter::create(&path, None, false)?;
/// let entry = Entry { source: &source, target: &target, links: &[(0, 0)], scores: &[0.5], counts: &[1.0], reordering: &[] };
/// writer.entry(&entry, &german, &english)?;
/// writer.commit()?;
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "haus ||| house ||| 0.5 ||| 0-0 ||| 1 ||| |||\n");
/// # luthier_core::Result::Ok(())
/// ```
pub struct TextWriter {
    table: AtomicFile,
    reordering: Option<AtomicFile>,
    path: PathBuf,
    line: String,
    hierarchical: bool,
}

impl TextWriter {
    /// Opens the files of a table (of rules if `hierarchical`) and of its reordering table; files whose names
    /// end in `.gz` are compressed. Fails if a file cannot be created.
    pub fn create(table: &Path, reordering: Option<&Path>, hierarchical: bool) -> Result<Self> {
        Ok(TextWriter {
            table: AtomicFile::create(table)?,
            reordering: reordering.map(AtomicFile::create).transpose()?,
            path: table.to_owned(),
            line: String::new(),
            hierarchical,
        })
    }

    /// Writes one line of each table; `source` and `target` are the vocabularies of the entry's symbols.
    /// Fails if writing fails.
    pub fn entry(&mut self, entry: &Entry<'_>, source: &Vocabulary, target: &Vocabulary) -> Result<()> {
        let line = &mut self.line;
        line.clear();
        symbols(line, entry.source, source, self.hierarchical);
        line.push_str(" ||| ");
        symbols(line, entry.target, target, self.hierarchical);
        line.push_str(" ||| ");
        let same = line.len();
        numbers(line, entry.scores);
        line.push_str(" ||| ");
        links(line, entry);
        line.push_str(" ||| ");
        numbers(line, entry.counts);
        line.push_str(" ||| |||\n");
        let failed = |e: std::io::Error| Error::io(self.path.display().to_string(), "write it", &e);
        self.table.write_all(line.as_bytes()).map_err(failed)?;
        if let Some(out) = self.reordering.as_mut().filter(|_| !entry.reordering.is_empty()) {
            line.truncate(same);
            numbers(line, entry.reordering);
            line.push('\n');
            out.write_all(line.as_bytes()).map_err(failed)?;
        }
        Ok(())
    }

    /// Completes the files and renames them to their final names. Fails if that is not possible.
    pub fn commit(self) -> Result<()> {
        self.table.commit()?;
        self.reordering.map_or(Ok(()), AtomicFile::commit)
    }
}

/// Appends the symbols of a source or target to a line.
fn symbols(line: &mut String, ids: &[u32], vocabulary: &Vocabulary, hierarchical: bool) {
    for (i, id) in ids.iter().enumerate() {
        line.push_str(if i > 0 { " " } else { "" });
        line.push_str(if GAPS.contains(id) { "[X][X]" } else { vocabulary.word(*id) });
    }
    if hierarchical {
        line.push_str(" [X]");
    }
}

/// Appends the links of an entry, between words and between gaps, to a line.
fn links(line: &mut String, entry: &Entry<'_>) {
    let mut all: Vec<(u8, u8)> = entry.links.to_vec();
    for gap in GAPS {
        let at = |symbols: &[u32]| symbols.iter().position(|s| *s == gap);
        if let (Some(s), Some(t)) = (at(entry.source), at(entry.target)) {
            all.push((s as u8, t as u8));
        }
    }
    all.sort_unstable_by_key(|&(s, t)| (t, s));
    for (i, (s, t)) in all.iter().enumerate() {
        let _ = write!(line, "{}{s}-{t}", if i > 0 { " " } else { "" });
    }
}

/// Appends numbers, separated by spaces, to a line.
fn numbers(line: &mut String, numbers: &[f64]) {
    for (i, n) in numbers.iter().enumerate() {
        line.push_str(if i > 0 { " " } else { "" });
        number(line, *n);
    }
}

/// Appends a number with six significant digits, without trailing zeros, to a line, as C's `%g` does.
fn number(line: &mut String, n: f64) {
    if n == n.trunc() && n.abs() < 1e6 {
        let _ = write!(line, "{n}");
    } else if n.abs() >= 1e-4 && n.abs() < 1e6 {
        let digits = (5.0 - math::log10(n.abs()).floor()).max(0.0) as usize;
        let start = line.len();
        let _ = write!(line, "{n:.digits$}");
        if line[start..].contains('.') {
            let end = line.trim_end_matches('0').trim_end_matches('.').len();
            line.truncate(end);
        }
    } else {
        let start = line.len();
        let _ = write!(line, "{n:.5e}");
        // 1.50000e-7 becomes 1.5e-07.
        if let Some((digits, power)) = line[start..].split_once('e') {
            let digits = digits.trim_end_matches('0').trim_end_matches('.').to_owned();
            let power: i32 = power.parse().unwrap_or(0);
            line.truncate(start);
            let sign = if power < 0 { '-' } else { '+' };
            let _ = write!(line, "{digits}e{sign}{:02}", power.abs());
        }
    }
}

/// Reads a phrase or rule table of Moses, and its reordering table (msd-bidirectional-fe) if given, plain or
/// compressed. Phrase pairs that are not in the reordering table get probability 1 for every orientation, as
/// in Moses. Reports `lines`, then `entries`. Fails, naming the line, if a table is malformed, if the tables
/// have no phrase pair in common, and with kind [`Interrupted`](luthier_core::ErrorKind::Interrupted) if
/// `progress` returns *stop*.
pub fn read_text(table: &Path, reordering: Option<&Path>, progress: Progress<'_>) -> Result<Table> {
    let orientations = reordering.map(|path| Orientations::read(path, progress)).transpose()?;
    let meter = Meter::new(progress, "lines", 0);
    let mut input = Input::open(table)?;
    let mut reader = Reader::default();
    let mut builder: Option<Builder> = None;
    let mut matched = false;
    let mut line = Vec::new();
    while input.line(&mut line)? {
        let text = input.utf8(&line)?;
        meter.set(input.line_number() as usize)?;
        if text.trim().is_empty() {
            continue;
        }
        let placed = |e: Error| e.place(input.name(), input.line_number());
        let hierarchical = reader.line(text).map_err(placed)?;
        let builder = builder.get_or_insert_with(|| Builder::new(hierarchical));
        if builder.shape().is_some_and(|s| s.hierarchical != hierarchical) {
            return Err(input
                .error("found phrases and rules in one table")
                .hint("put phrases into a separate table; rules end in [X] on both sides"));
        }
        let found = orientations.as_ref().map(|o| o.of(text));
        matched |= found.is_some_and(|f| f.is_some());
        let moved = found.map_or(&[][..], |f| f.unwrap_or(&UNKNOWN_PAIR));
        builder
            .entry(&Entry {
                source: &reader.source,
                target: &reader.target,
                links: &reader.links,
                scores: &reader.scores,
                counts: &reader.counts,
                reordering: moved,
            })
            .map_err(placed)?;
    }
    if let Some(path) = reordering.filter(|_| !matched) {
        return Err(Error::in_file(
            path.display().to_string(),
            format!("has no phrase pair in common with {}", input.name()),
        )
        .hint("give the reordering table that was extracted with this phrase table"));
    }
    let Some(builder) = builder else {
        return Err(Error::in_file(input.name(), "is empty, expected one phrase pair per line"));
    };
    meter.finish()?;
    builder.finish(&reader.words[0], &reader.words[1], progress)
}

/// Parser of the lines of a table; its fields hold the last line.
#[derive(Default)]
struct Reader {
    /// Vocabularies of source and target.
    words: [Vocabulary; 2],
    source: Vec<u32>,
    target: Vec<u32>,
    links: Vec<(u8, u8)>,
    scores: Vec<f64>,
    counts: Vec<f64>,
}

/// Separator of fields.
const BARS: &str = "|||";

impl Reader {
    /// Parses a line; returns whether it is a rule. Fails if the line is malformed.
    fn line(&mut self, text: &str) -> Result<bool> {
        let mut fields = text.split(BARS).map(str::trim_ascii);
        let (Some(source), Some(target), Some(scores)) = (fields.next(), fields.next(), fields.next()) else {
            return Err(Error::new("the line has fewer than three fields").hint(
                "expected `source ||| target ||| scores ||| links ||| counts`, as Moses writes tables",
            ));
        };
        let hierarchical = is_rule(source) && is_rule(target);
        let (source, target) = if hierarchical {
            (source[..source.len() - 3].trim_ascii_end(), target[..target.len() - 3].trim_ascii_end())
        } else {
            (source, target)
        };
        self.scores.clear();
        for word in scores.split_ascii_whitespace() {
            self.scores.push(number_of(word, "score", |n| n >= 0.0, "0 or more")?);
        }
        if self.scores.is_empty() || self.scores.len() > 255 {
            return Err(Error::new(format!("the line has {} scores", self.scores.len()))
                .hint("expected 1 to 255 scores, usually four, the same number in every line"));
        }
        let gaps = [
            read_side(source, hierarchical, &mut self.words[0], &mut self.source)?,
            read_side(target, hierarchical, &mut self.words[1], &mut self.target)?,
        ];
        if gaps[0] != gaps[1] {
            return Err(Error::new(format!("the source has {} gaps and the target {}", gaps[0], gaps[1])));
        }
        self.read_links(fields.next().unwrap_or_default())?;
        self.counts.clear();
        for word in fields.next().unwrap_or_default().split_ascii_whitespace().take(3) {
            self.counts.push(number_of(word, "count", |n| n >= 0.0, "0 or more")?);
        }
        Ok(hierarchical)
    }

    /// Parses the links: those between words are stored, and those between gaps determine which gap of the
    /// target corresponds to which gap of the source. Fails if they are malformed.
    fn read_links(&mut self, text: &str) -> Result<()> {
        self.links.clear();
        let mut paired = 0;
        let gaps: Vec<usize> = (0..self.target.len()).filter(|&t| GAPS.contains(&self.target[t])).collect();
        for word in text.split_ascii_whitespace() {
            let link =
                word.split_once('-').and_then(|(s, t)| Some((s.parse::<u8>().ok()?, t.parse::<u8>().ok()?)));
            let inside =
                link.filter(|&(s, t)| (s as usize) < self.source.len() && (t as usize) < self.target.len());
            let Some((s, t)) = inside else {
                return Err(Error::new(format!(
                    "found {word:?}, expected a link such as 0-1 inside {} source and {} target words",
                    self.source.len(),
                    self.target.len()
                )));
            };
            match GAPS.iter().position(|g| *g == self.source[s as usize]) {
                Some(gap) if gaps.contains(&(t as usize)) => {
                    self.target[t as usize] = GAPS[gap];
                    paired += 1;
                }
                None if !gaps.contains(&(t as usize)) => self.links.push((s, t)),
                _ => return Err(Error::new(format!("the link {word} connects a gap and a word"))),
            }
        }
        if paired != gaps.len() || (gaps.len() == 2 && self.target[gaps[0]] == self.target[gaps[1]]) {
            return Err(Error::new("the gaps of source and target are not linked one to one")
                .hint("each [X][X] of the source needs exactly one link to a [X][X] of the target"));
        }
        self.links.sort_unstable();
        Ok(())
    }
}

/// Parses the symbols of a source or target; returns the number of gaps. Fails if there are too many gaps or
/// words.
fn read_side(
    text: &str,
    hierarchical: bool,
    words: &mut Vocabulary,
    symbols: &mut Vec<u32>,
) -> Result<usize> {
    let mut gaps = 0;
    symbols.clear();
    for word in text.split_ascii_whitespace() {
        if hierarchical && word == "[X][X]" {
            symbols.push(*GAPS.get(gaps).ok_or_else(|| Error::new("a rule has more than two gaps"))?);
            gaps += 1;
        } else if hierarchical && word.starts_with('[') && word.ends_with(']') && word.contains("][") {
            return Err(Error::new(format!("found the gap {word}, expected [X][X]"))
                .hint("only rules with the single non-terminal X are supported"));
        } else {
            symbols.push(words.add(word));
        }
    }
    if symbols.len() > 255 {
        return Err(Error::new(format!(
            "a source or target has {} words, expected at most 255",
            symbols.len()
        )));
    }
    Ok(gaps)
}

/// Returns whether a source or target ends in the left-hand side `[X]` of a rule.
fn is_rule(side: &str) -> bool {
    side == "[X]" || side.ends_with(" [X]")
}

/// Parses a finite number that `fits`; `what` and `which` describe it in the message. Fails on anything else.
fn number_of(word: &str, what: &str, fits: impl Fn(f64) -> bool, which: &str) -> Result<f64> {
    let number = word.parse::<f64>().ok().filter(|n| n.is_finite() && fits(*n));
    number.ok_or_else(|| Error::new(format!("the {what} is {word:?}, expected a number, {which}")))
}

/// Orientation probabilities by phrase pair.
struct Orientations {
    /// Number of the phrase pair with a fingerprint.
    by_pair: FxHashMap<u64, u32>,
    /// Six probabilities of each phrase pair, by number.
    values: Vec<f64>,
}

/// Probabilities of a phrase pair that is not in the reordering table: 1 each, as in Moses.
const UNKNOWN_PAIR: [f64; 6] = [1.0; 6];

impl Orientations {
    /// Reads a reordering table. Fails if it is malformed, and if `progress` returns *stop*.
    fn read(path: &Path, progress: Progress<'_>) -> Result<Self> {
        let mut input = Input::open(path)?;
        let meter = Meter::new(progress, "lines", 0);
        let mut new = Orientations { by_pair: FxHashMap::default(), values: Vec::new() };
        let mut line = Vec::new();
        while input.line(&mut line)? {
            let text = input.utf8(&line)?;
            meter.set(input.line_number() as usize)?;
            if text.trim_ascii().is_empty() {
                continue;
            }
            let placed = |e: Error| e.place(input.name(), input.line_number());
            let Some(scores) = text.split(BARS).nth(2) else {
                return Err(input
                    .error("the line has fewer than three fields")
                    .hint("expected `source ||| target ||| six numbers`"));
            };
            let before = new.values.len();
            for word in scores.split_ascii_whitespace() {
                new.values.push(number_of(word, "probability", |p| p > 0.0, "above 0").map_err(placed)?);
            }
            if new.values.len() != before + 6 {
                return Err(input
                    .error(format!("found {} probabilities, expected 6", new.values.len() - before))
                    .hint("only msd-bidirectional-fe reordering tables are supported"));
            }
            let number = new.by_pair.len() as u32;
            if new.by_pair.insert(Self::key(text), number).is_some() {
                return Err(input.error("the phrase pair occurs twice").hint("remove one of the two"));
            }
        }
        meter.finish()?;
        Ok(new)
    }

    /// Returns the fingerprint of the source and target of a line.
    fn key(line: &str) -> u64 {
        line.split(BARS)
            .take(2)
            .fold(Fingerprint::default(), |f, side| f.bytes(side.trim_ascii().as_bytes()))
            .finish64()
    }

    /// Returns the probabilities of the phrase pair of a line; `None` if the table does not have it.
    fn of(&self, line: &str) -> Option<&[f64]> {
        let found = self.by_pair.get(&Self::key(line));
        found.map(|&n| &self.values[6 * n as usize..6 * (n as usize + 1)])
    }
}
