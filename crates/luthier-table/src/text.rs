//! Phrase, rule and reordering tables as text, in the format of Moses:
//! `source ||| target ||| scores ||| alignment ||| counts`, one entry per line.

use crate::{Builder, Entry, GAPS, Table};
use luthier_core::{Error, Fingerprint, Progress, Result, Vocabulary};
use luthier_io::{AtomicFile, Input, Meter};
use rustc_hash::FxHashMap;
use std::{
    fmt::Write as _,
    io::Write as _,
    path::{Path, PathBuf},
};

/// Writer of a phrase or rule table, and of a reordering table beside it if entries have one, in the format of Moses. The
/// files appear when [`TextWriter::commit`] is called; dropped before, nothing is left of them.
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
    /// Opens the files of a table (of rules if `hierarchical`) and of its reordering table; names that end in `.gz` are
    /// compressed. Fails if a file cannot be created.
    pub fn create(table: &Path, reordering: Option<&Path>, hierarchical: bool) -> Result<Self> {
        Ok(TextWriter {
            table: AtomicFile::create(table)?,
            reordering: reordering.map(AtomicFile::create).transpose()?,
            path: table.to_owned(),
            line: String::new(),
            hierarchical,
        })
    }

    /// Writes one line of each table; `source` and `target` spell the symbols of the entry. Fails if writing fails.
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

    /// Completes the files and gives them their names. Fails if that is not possible.
    pub fn commit(self) -> Result<()> {
        self.table.commit()?;
        self.reordering.map_or(Ok(()), AtomicFile::commit)
    }
}

fn symbols(line: &mut String, ids: &[u32], vocabulary: &Vocabulary, hierarchical: bool) {
    for (i, id) in ids.iter().enumerate() {
        line.push_str(if i > 0 { " " } else { "" });
        line.push_str(if GAPS.contains(id) { "[X][X]" } else { vocabulary.word(*id) });
    }
    if hierarchical {
        line.push_str(" [X]");
    }
}

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

fn numbers(line: &mut String, numbers: &[f64]) {
    for (i, n) in numbers.iter().enumerate() {
        line.push_str(if i > 0 { " " } else { "" });
        number(line, *n);
    }
}

/// Six digits, as short as they can be.
fn number(line: &mut String, n: f64) {
    if n == n.trunc() && n.abs() < 1e6 {
        let _ = write!(line, "{n}");
    } else if n.abs() >= 1e-4 && n.abs() < 1e6 {
        let digits = (5.0 - n.abs().log10().floor()).max(0.0) as usize;
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

/// Reads a phrase or rule table of Moses, and its reordering table (msd-bidirectional-fe) if there is one, compressed or
/// not. Pairs that the reordering table lacks get probability 1 for every orientation, as in Moses. Reports `lines`, then
/// `entries`. Fails, with the line, if a table does not follow the format or the two do not belong together, and with kind
/// [`Interrupted`](luthier_core::ErrorKind::Interrupted) when `progress` answers *stop*.
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
                .error("phrases and rules stand in one table")
                .hint("rules end in [X] on both sides; put phrases into a table of their own"));
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
            format!("has no pair of phrases of {}", input.name()),
        )
        .hint("do the two tables belong together?"));
    }
    let Some(builder) = builder else {
        return Err(Error::in_file(input.name(), "is empty, expected one phrase pair per line"));
    };
    meter.finish()?;
    builder.finish(&reader.words[0], &reader.words[1], progress)
}

/// One line in parts.
#[derive(Default)]
struct Reader {
    words: [Vocabulary; 2],
    source: Vec<u32>,
    target: Vec<u32>,
    links: Vec<(u8, u8)>,
    scores: Vec<f64>,
    counts: Vec<f64>,
}

const BARS: &str = "|||";

impl Reader {
    /// Takes a line apart; true if it is a rule.
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
                .hint("expected four as a rule, and all lines alike"));
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

    /// Links between words; links between gaps say which gap of the target is which.
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
                _ => return Err(Error::new(format!("the link {word} ties a gap to a word"))),
            }
        }
        if paired != gaps.len() || (gaps.len() == 2 && self.target[gaps[0]] == self.target[gaps[1]]) {
            return Err(Error::new("the links do not say which gap of the target is which")
                .hint("each [X][X] of the source needs one link to one of the target"));
        }
        self.links.sort_unstable();
        Ok(())
    }
}

/// Reads the symbols of a source or target; returns the number of gaps.
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
                .hint("only rules with one kind of gap can be used"));
        } else {
            symbols.push(words.add(word));
        }
    }
    if symbols.len() > 255 {
        return Err(Error::new(format!("a side has {} words, 255 at most", symbols.len())));
    }
    Ok(gaps)
}

fn is_rule(side: &str) -> bool {
    side == "[X]" || side.ends_with(" [X]")
}

fn number_of(word: &str, what: &str, fits: impl Fn(f64) -> bool, which: &str) -> Result<f64> {
    let number = word.parse::<f64>().ok().filter(|n| n.is_finite() && fits(*n));
    number.ok_or_else(|| Error::new(format!("the {what} is {word:?}, expected a number, {which}")))
}

/// Orientation probabilities by source and target.
struct Orientations {
    by_pair: FxHashMap<u64, u32>,
    values: Vec<f64>,
}

/// What a pair has that the table of reordering does not know: no cost at all, as in Moses.
const UNKNOWN_PAIR: [f64; 6] = [1.0; 6];

impl Orientations {
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
                    .hint("only msd-bidirectional-fe reordering can be used"));
            }
            let number = new.by_pair.len() as u32;
            if new.by_pair.insert(Self::key(text), number).is_some() {
                return Err(input.error("the pair of phrases stands there twice"));
            }
        }
        meter.finish()?;
        Ok(new)
    }

    fn key(line: &str) -> u64 {
        line.split(BARS)
            .take(2)
            .fold(Fingerprint::default(), |f, side| f.bytes(side.trim_ascii().as_bytes()))
            .finish64()
    }

    fn of(&self, line: &str) -> Option<&[f64]> {
        let found = self.by_pair.get(&Self::key(line));
        found.map(|&n| &self.values[6 * n as usize..6 * (n as usize + 1)])
    }
}
