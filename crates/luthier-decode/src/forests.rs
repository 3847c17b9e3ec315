//! Saved forests: which rules fit which spans of each sentence of a text, in one mapped file.
//!
//! Parsing and looking rules up does not depend on weights, so it is done once; every later pass weighs the rules and searches
//! with the language models. Rules stand in one table, those with the same source side together, with what language models
//! say about their words by themselves. A check for each sentence and for the rules tells damage from the start.

use crate::{
    model::Model,
    parse::{Edge, Parse, Special},
    rules::{alone, with_tails},
};
use luthier_core::{Error, Fingerprint, Progress, Result};
use luthier_forest::TAILS;
use luthier_io::container::{Container, LENGTH, Layout, NUMBERS, Writer};
use luthier_lm::UNKNOWN;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, ops::Range, path::Path};

const LAYOUT: Layout = Layout {
    magic: *b"luthForF",
    version: 1,
    what: "file of forests",
    again: "make it again with `luthier decode --forest-kind grammar`",
};

/// Numbers of the header: those of 64 bits from [`NUMBERS`] on, the second being the length of the file.
const SENTENCES: usize = 0;
const RULES: usize = 2;
const SCORES: usize = 3;
const LMS: usize = 4;
const SPAN: usize = 5;
const DIGEST: usize = 6;
const SECTIONS: usize = 8;
/// Sections: the index, ends of targets, targets, scores, what language models say.
const PARTS: usize = 5;
const CHECK: usize = SECTIONS + PARTS;
const WIDTH: usize = CHECK + 2;

/// Numbers of a sentence in the index: where its nodes are and how many, its edges, its text, and a check.
const ENTRY: usize = 7;

/// What `luthier decode --forest-out` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum ForestKind {
    /// The translations that the search has found, as JSON.
    #[default]
    Search,
    /// Which rules fit which spans, for hierarchical models.
    Grammar,
}

/// Saved forests of a text: for each sentence, which rules of a hierarchical model fit which spans. They do not depend on
/// weights, so that [`Decoder::over`](crate::Decoder::over) searches them again and again without parsing.
///
/// ```
/// use luthier_core::{Progress, Weights};
/// use luthier_decode::{Decoder, Forests, ForestsWriter, Limits, Model};
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("rules");
/// # std::fs::write(&path, "haus [X] ||| house [X] ||| 0.5 |||\n").unwrap();
/// # let model = Model::new(luthier_table::read_text(&path, None, Progress::NONE).unwrap(), Vec::new(), false).unwrap();
/// let file = dir.path().join("forests");
/// let mut writer = ForestsWriter::create(&file, &model, &[], 20).unwrap();
/// let spans = writer.spans("haus", Progress::NONE).unwrap();
/// writer.push("haus", spans).unwrap();
/// assert_eq!(writer.finish().unwrap(), 1);
///
/// let forests = Forests::open(&file, &model, &[], 20).unwrap();
/// let weights = Weights::parse("w", "TranslationModel0 1\n").unwrap();
/// let decoder = Decoder::over(&model, &weights, Limits::default(), &forests);
/// let found = decoder.rescore(0, Progress::NONE).unwrap().unwrap();
/// assert_eq!(found.best().unwrap().0, "house");
/// ```
pub struct Forests {
    file: Container,
    numbers: [u64; WIDTH],
}

impl Forests {
    /// Opens a file of forests and checks everything in it. Fails if it was not made with this model, files with these
    /// `digests` (see [`ModelDir::digests`](crate::ModelDir::digests)) and this span limit, or if it is damaged.
    pub fn open(path: &Path, model: &Model, digests: &[String], span: usize) -> Result<Self> {
        let name = path.display().to_string();
        let file = LAYOUT.open(path)?;
        let numbers = std::array::from_fn(|k| file.u64_at(NUMBERS + 8 * k));
        let forests = Forests { file, numbers };
        let other = |what: String| {
            Err(Error::in_file(&name, what).hint("make it again, or use what it was made with"))
        };
        if forests.digest() != digest(digests) {
            return other("was made with another table or other language models".to_owned());
        }
        if forests.numbers[SPAN] != span as u64 {
            let was = forests.numbers[SPAN];
            return other(format!("was made with --span-limit {was}, not {span}"));
        }
        if !forests.is_sound(model) {
            return Err(LAYOUT.damaged(&name));
        }
        Ok(forests)
    }

    /// Number of sentences that have forests.
    pub fn len(&self) -> usize {
        self.numbers[SENTENCES] as usize
    }

    /// Whether there is no sentence at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text of a sentence, by its number from 0.
    pub fn sentence(&self, at: usize) -> &str {
        let [.., text, length, _] = self.entry(at);
        let bytes = self.file.bytes().get(range(text, length, 1)).unwrap_or(&[]);
        std::str::from_utf8(bytes).unwrap_or("")
    }

    pub(crate) fn parse(&self, at: usize) -> Parse<'_> {
        let [first, nodes, edges, count, ..] = self.entry(at);
        let edges: &[u32] = self.slice(range(edges, count, 16));
        Parse { first: Cow::Borrowed(self.slice(range(first, nodes, 4))), edges: Cow::Borrowed(quads(edges)) }
    }

    /// Words and [`TAILS`] of a rule.
    pub(crate) fn target(&self, rule: u32) -> &[u32] {
        let ends: &[u32] = self.section(1, self.rules(), 4);
        let start = if rule == 0 { 0 } else { ends[rule as usize - 1] };
        let end = ends[rule as usize] as usize;
        &self.section::<u32>(2, end, 4)[start as usize..]
    }

    pub(crate) fn scores(&self, rule: u32) -> &[f32] {
        self.row(3, rule, self.numbers[SCORES] as usize)
    }

    /// What language models say about its words by themselves.
    pub(crate) fn alone(&self, rule: u32) -> &[f32] {
        self.row(4, rule, self.numbers[LMS] as usize)
    }

    fn row(&self, section: usize, rule: u32, width: usize) -> &[f32] {
        &self.section::<f32>(section, (rule as usize + 1) * width, 4)[rule as usize * width..]
    }

    fn rules(&self) -> usize {
        self.numbers[RULES] as usize
    }

    fn digest(&self) -> u128 {
        u128::from(self.numbers[DIGEST]) << 64 | u128::from(self.numbers[DIGEST + 1])
    }

    fn entry(&self, at: usize) -> [u64; ENTRY] {
        let start = self.numbers[SECTIONS] as usize + 8 * ENTRY * at;
        std::array::from_fn(|k| self.file.u64_at(start + 8 * k))
    }

    fn section<T: bytemuck::AnyBitPattern>(&self, section: usize, n: usize, size: usize) -> &[T] {
        self.slice(range(self.numbers[SECTIONS + section], n as u64, size))
    }

    /// Numbers of the file; nothing if they are not where they should be.
    fn slice<T: bytemuck::AnyBitPattern>(&self, range: Range<usize>) -> &[T] {
        let bytes = self.file.bytes().get(range).unwrap_or(&[]);
        bytemuck::try_cast_slice(bytes).unwrap_or(&[])
    }

    /// Whether everything is there, and nothing has changed since it was written.
    fn is_sound(&self, model: &Model) -> bool {
        let bytes = self.file.bytes();
        let inside = |r: Range<usize>| r.start <= r.end && r.end <= bytes.len();
        let at =
            |section: usize, n: usize, size: usize| range(self.numbers[SECTIONS + section], n as u64, size);
        let (rules, scores, lms) = (self.rules(), self.numbers[SCORES] as usize, self.numbers[LMS] as usize);
        let symbols = self.section::<u32>(1, rules, 4).last().map_or(0, |&end| end as usize);
        let parts = [
            at(0, self.len(), 8 * ENTRY),
            at(1, rules, 4),
            at(2, symbols, 4),
            at(3, rules, 4usize.saturating_mul(scores)),
            at(4, rules, 4usize.saturating_mul(lms)),
        ];
        if !parts.iter().cloned().all(inside) || scores != model.table.shape().scores {
            return false;
        }
        let check = parts[1..]
            .iter()
            .fold(Fingerprint::default(), |f, part| f.bytes(&bytes[part.clone()]))
            .finish64();
        let index = Fingerprint::default().bytes(&bytes[parts[0].clone()]).finish64();
        let ends: &[u32] = self.section(1, rules, 4);
        let known = model.table.words()[1] as u32;
        let target = |s: &u32| *s < known || TAILS.contains(s);
        check == self.numbers[CHECK]
            && index == self.numbers[CHECK + 1]
            && ends.is_sorted()
            && self.section::<u32>(2, symbols, 4).iter().all(target)
            && (0..self.len()).into_par_iter().all(|s| {
                let [first, nodes, edges, count, text, length, check] = self.entry(s);
                let parts = [range(first, nodes, 4), range(edges, count, 16), range(text, length, 1)];
                parts.iter().cloned().all(inside)
                    && std::str::from_utf8(&bytes[parts[2].clone()]).is_ok()
                    && check_of(parts.map(|p| &bytes[p])) == check
                    && self.parse(s).is_sound(rules, self.sentence(s).split_ascii_whitespace().count())
            })
    }
}

fn range(start: u64, n: u64, size: usize) -> Range<usize> {
    let length = (n as usize).saturating_mul(size);
    start as usize..(start as usize).saturating_add(length)
}

fn quads(numbers: &[u32]) -> &[Edge] {
    bytemuck::try_cast_slice(numbers).unwrap_or(&[])
}

fn check_of(parts: [&[u8]; 3]) -> u64 {
    parts.iter().fold(Fingerprint::default(), |f, part| f.bytes(part)).finish64()
}

/// What the files of a model hold, in 128 bits.
fn digest(files: &[String]) -> u128 {
    files.iter().fold(Fingerprint::default(), |f, file| f.bytes(file.as_bytes())).finish()
}

/// Which rules fit which spans of one sentence: made by [`ForestsWriter::spans`], written by [`ForestsWriter::push`].
pub struct Spans(Parse<'static>);

/// Writes a file of [`Forests`], one sentence after another. Without [`finish`](ForestsWriter::finish) there is no file.
pub struct ForestsWriter<'m> {
    model: &'m Model,
    digest: u128,
    span: usize,
    writer: Writer,
    index: Vec<u64>,
    /// First rule in the file of each first rule in the table.
    first: FxHashMap<u32, u32>,
    ends: Vec<u32>,
    targets: Vec<u32>,
    scores: Vec<f32>,
    alone: Vec<f32>,
}

impl<'m> ForestsWriter<'m> {
    /// Begins a file of forests of a hierarchical model. `digests` are those of the model's files, `span` is the longest
    /// span of a rule in words.
    pub fn create(path: &Path, model: &'m Model, digests: &[String], span: usize) -> Result<Self> {
        Ok(ForestsWriter {
            model,
            digest: digest(digests),
            span,
            writer: LAYOUT.create(path)?,
            index: Vec::new(),
            first: FxHashMap::default(),
            ends: Vec::new(),
            targets: Vec::new(),
            scores: Vec::new(),
            alone: Vec::new(),
        })
    }

    /// Finds which rules fit which spans of a sentence; several threads may do that at once. Fails if `progress` answers
    /// *stop*.
    pub fn spans(&self, sentence: &str, progress: Progress<'_>) -> Result<Spans> {
        let words: Vec<&str> = sentence.split_ascii_whitespace().collect();
        Ok(Spans(Parse::new(&self.model.table, &words, self.span, progress)?))
    }

    /// Adds the next sentence with its spans.
    pub fn push(&mut self, sentence: &str, spans: Spans) -> Result<()> {
        let Spans(parse) = spans;
        let mut edges = parse.edges.into_owned();
        for edge in edges.iter_mut().filter(|e| Special::of(**e).is_none()) {
            edge[0] = self.rules(edge[0], edge[1]);
        }
        let parts: [&[u8]; 3] =
            [bytemuck::cast_slice(&parse.first), bytemuck::cast_slice(&edges), sentence.as_bytes()];
        let mut at = self.writer.section()? as u64;
        let lengths = [parse.first.len(), edges.len(), sentence.len()];
        for (part, length) in parts.iter().zip(lengths) {
            self.index.extend([at, length as u64]);
            self.writer.append(part)?;
            at += part.len() as u64;
        }
        self.index.push(check_of(parts));
        Ok(())
    }

    /// The place of some rules of the table, which are added if they are new.
    fn rules(&mut self, first: u32, count: u32) -> u32 {
        if let Some(&at) = self.first.get(&first) {
            return at;
        }
        let at = self.ends.len() as u32;
        self.first.insert(first, at);
        let model = self.model;
        let (mut target, mut scores, mut words) = (Vec::new(), Vec::new(), Vec::new());
        for entry in first..first + count {
            model.table.target(entry, &mut target);
            with_tails(&mut target);
            model.table.scores(entry, &mut scores);
            self.targets.extend(&target);
            self.ends.push(self.targets.len() as u32);
            self.scores.extend(&scores);
            for (lm, known) in model.lms.iter().zip(&model.lm_words) {
                words.clear();
                let number = |s: &u32| known.get(*s as usize).copied().unwrap_or(UNKNOWN);
                words.extend(target.iter().map(|s| if TAILS.contains(s) { *s } else { number(s) }));
                self.alone.push(alone(lm, &words));
            }
        }
        at
    }

    /// Completes the file of forests; returns how many rules it has.
    pub fn finish(mut self) -> Result<usize> {
        let bytes: [&[u8]; PARTS] = [
            bytemuck::cast_slice(&self.index),
            bytemuck::cast_slice(&self.ends),
            bytemuck::cast_slice(&self.targets),
            bytemuck::cast_slice(&self.scores),
            bytemuck::cast_slice(&self.alone),
        ];
        let mut numbers = [0u64; WIDTH];
        numbers[SENTENCES] = (self.index.len() / ENTRY) as u64;
        numbers[RULES] = self.ends.len() as u64;
        numbers[SCORES] = self.model.table.shape().scores as u64;
        numbers[LMS] = self.model.lms.len() as u64;
        numbers[SPAN] = self.span as u64;
        numbers[DIGEST] = (self.digest >> 64) as u64;
        numbers[DIGEST + 1] = self.digest as u64;
        for (k, part) in bytes.iter().enumerate() {
            numbers[SECTIONS + k] = self.writer.section()? as u64;
            self.writer.append(part)?;
        }
        numbers[CHECK] = bytes[1..].iter().fold(Fingerprint::default(), |f, part| f.bytes(part)).finish64();
        numbers[CHECK + 1] = Fingerprint::default().bytes(bytes[0]).finish64();
        let header: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        self.writer.finish(&header)?;
        Ok(self.ends.len())
    }
}

const _: () = assert!(LENGTH == NUMBERS + 8);
#[cfg(not(target_endian = "little"))]
compile_error!("mapped files are read as they are: little-endian machines only");
