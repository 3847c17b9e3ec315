//! Saved parse forests without language model: the rules that match each span of each sentence of a text, in one
//! memory-mapped file.
//!
//! Parsing does not depend on weights, so it is done once; each tuning pass scores the rules again and searches with
//! the language models (Watanabe 2012, §5; Huang and Chiang 2007). The file has one table of rules, grouped by source
//! side, with the language model scores of their words without context. Checksums of each sentence and of the rules
//! detect damage when the file is opened.

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

// Indices of the 64-bit numbers of the header, from [`NUMBERS`] on; index 1 is the length of the file.

/// Number of sentences.
const SENTENCES: usize = 0;
/// Number of rules.
const RULES: usize = 2;
/// Number of translation scores per rule.
const SCORES: usize = 3;
/// Number of language models.
const LMS: usize = 4;
/// Span limit.
const SPAN: usize = 5;
/// Digest of the model's files, in two numbers.
const DIGEST: usize = 6;
/// Byte offsets, from the start of a file of saved forests, at which its sections begin.
const SECTIONS: usize = 8;
/// Number of sections: index of sentences, ends of target sides, target sides, translation scores, language model
/// scores.
const PARTS: usize = 5;
/// Checksums of the rules and of the index.
const CHECK: usize = SECTIONS + PARTS;
/// Number of header numbers.
const WIDTH: usize = CHECK + 2;

/// Number of index numbers per sentence: offset and count of its nodes, of its edges and of its text, and a checksum.
const ENTRY: usize = 7;

/// Kind of forest that `luthier decode --forest-out` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum ForestKind {
    /// Forest of the derivations that the search has kept, as JSON.
    #[default]
    Search,
    /// Parse forest without language model: the rules that match each span, for hierarchical models.
    Grammar,
}

/// Saved parse forests of a text: for each sentence, the rules of a hierarchical model that match each span. They do
/// not depend on weights, so that a decoder created by [`Decoder::over`](crate::Decoder::over) can search them with
/// any weights without parsing.
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
    /// Opens a file of forests and verifies its contents. Fails if the file is damaged, or was created with another
    /// span limit or another model; `digests` is the result of [`ModelDir::digests`](crate::ModelDir::digests).
    pub fn open(path: &Path, model: &Model, digests: &[String], span: usize) -> Result<Self> {
        let name = path.display().to_string();
        let file = LAYOUT.open(path)?;
        let numbers = std::array::from_fn(|k| file.u64_at(NUMBERS + 8 * k));
        let forests = Forests { file, numbers };
        let other = |what: String| {
            Err(Error::in_file(&name, what)
                .hint("create it again, or use the model and span limit it was made with"))
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

    /// Number of sentences in the file.
    pub fn len(&self) -> usize {
        self.numbers[SENTENCES] as usize
    }

    /// Whether the file contains no sentences.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Source text of a sentence, by its number, from 0.
    pub fn sentence(&self, at: usize) -> &str {
        let [.., text, length, _] = self.entry(at);
        let bytes = self.file.bytes().get(range(text, length, 1)).unwrap_or(&[]);
        std::str::from_utf8(bytes).unwrap_or("")
    }

    /// Parse forest of a sentence, by its number, from 0.
    pub(crate) fn parse(&self, at: usize) -> Parse<'_> {
        let [first, nodes, edges, count, ..] = self.entry(at);
        let edges: &[u32] = self.slice(range(edges, count, 16));
        Parse {
            first: Cow::Borrowed(self.slice(range(first, nodes, 4))),
            edges: Cow::Borrowed(quads(edges)),
            spans: Vec::new(),
        }
    }

    /// Target side of a rule: word numbers and [`TAILS`].
    pub(crate) fn target(&self, rule: u32) -> &[u32] {
        let ends: &[u32] = self.section(1, self.rules(), 4);
        let start = if rule == 0 { 0 } else { ends[rule as usize - 1] };
        let end = ends[rule as usize] as usize;
        &self.section::<u32>(2, end, 4)[start as usize..]
    }

    /// Translation scores of a rule.
    pub(crate) fn scores(&self, rule: u32) -> &[f32] {
        self.row(3, rule, self.numbers[SCORES] as usize)
    }

    /// Score of a rule's words without context in each language model, as natural logarithms.
    pub(crate) fn alone(&self, rule: u32) -> &[f32] {
        self.row(4, rule, self.numbers[LMS] as usize)
    }

    /// Row of a rule in a section with `width` numbers per rule.
    fn row(&self, section: usize, rule: u32, width: usize) -> &[f32] {
        &self.section::<f32>(section, (rule as usize + 1) * width, 4)[rule as usize * width..]
    }

    fn rules(&self) -> usize {
        self.numbers[RULES] as usize
    }

    fn digest(&self) -> u128 {
        u128::from(self.numbers[DIGEST]) << 64 | u128::from(self.numbers[DIGEST + 1])
    }

    /// Index numbers of a sentence.
    fn entry(&self, at: usize) -> [u64; ENTRY] {
        let start = self.numbers[SECTIONS] as usize + 8 * ENTRY * at;
        std::array::from_fn(|k| self.file.u64_at(start + 8 * k))
    }

    /// The first `n` numbers, of `size` bytes each, of a section.
    fn section<T: bytemuck::AnyBitPattern>(&self, section: usize, n: usize, size: usize) -> &[T] {
        self.slice(range(self.numbers[SECTIONS + section], n as u64, size))
    }

    /// Numbers in a range of bytes; empty if the range is outside the file or misaligned.
    fn slice<T: bytemuck::AnyBitPattern>(&self, range: Range<usize>) -> &[T] {
        let bytes = self.file.bytes().get(range).unwrap_or(&[]);
        bytemuck::try_cast_slice(bytes).unwrap_or(&[])
    }

    /// Whether all sections lie within the file, all indices are valid, and all checksums match.
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

/// Range of bytes of `n` elements of `size` bytes.
fn range(start: u64, n: u64, size: usize) -> Range<usize> {
    let length = (n as usize).saturating_mul(size);
    start as usize..(start as usize).saturating_add(length)
}

/// Groups numbers into edges of four.
fn quads(numbers: &[u32]) -> &[Edge] {
    bytemuck::try_cast_slice(numbers).unwrap_or(&[])
}

/// Checksum of a sentence's nodes, edges and text.
fn check_of(parts: [&[u8]; 3]) -> u64 {
    parts.iter().fold(Fingerprint::default(), |f, part| f.bytes(part)).finish64()
}

/// Combined digest of the files of a model.
fn digest(files: &[String]) -> u128 {
    files.iter().fold(Fingerprint::default(), |f, file| f.bytes(file.as_bytes())).finish()
}

/// Parse forest of one sentence: the rules that match each span. [`ForestsWriter::spans`] computes it,
/// [`ForestsWriter::push`] writes it.
pub struct Spans(Parse<'static>);

/// Writes a file of [`Forests`], sentence by sentence. The file exists only after [`finish`](ForestsWriter::finish).
pub struct ForestsWriter<'m> {
    model: &'m Model,
    digest: u128,
    span: usize,
    writer: Writer,
    index: Vec<u64>,
    /// Index in the file of each group of rules, by the index of its first rule in the table.
    first: FxHashMap<u32, u32>,
    /// End of each rule's target side in `targets`.
    ends: Vec<u32>,
    targets: Vec<u32>,
    /// Translation scores of the rules.
    scores: Vec<f32>,
    /// Language model scores of the rules' words without context.
    alone: Vec<f32>,
}

impl<'m> ForestsWriter<'m> {
    /// Begins a file of forests for a hierarchical model. `digests` is the result of
    /// [`ModelDir::digests`](crate::ModelDir::digests), `span` the maximum span of a rule in source words. Fails if
    /// the file cannot be created.
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

    /// Parses a sentence: finds the rules that match each span. Several threads may call this at once. Reports
    /// progress in `words`. Fails with an error of kind `Interrupted` if `progress` answers *stop*.
    pub fn spans(&self, sentence: &str, progress: Progress<'_>) -> Result<Spans> {
        let words: Vec<&str> = sentence.split_ascii_whitespace().collect();
        Ok(Spans(Parse::new(&self.model.table, &words, self.span, progress)?))
    }

    /// Appends the next sentence with its parse forest. Fails if the file cannot be written.
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

    /// Index in the file of the `count` rules of the table that begin with `first`; adds them if they are new.
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

    /// Completes the file of forests, and returns the number of rules in it. Fails if the file cannot be written.
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
compile_error!("memory-mapped files are not byte-swapped: only little-endian targets are supported");
