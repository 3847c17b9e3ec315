//! Language model for queries: one hash table per order, in memory or memory-mapped from a file.
//!
//! A query computes log₁₀ p(w | h) by back-off. For a history h = w₁…wₙ₋₁ with back-off weight b(h),
//!
//! log₁₀ p(w | h) = the stored value if the n-gram h w is in the model, else b(h) + log₁₀ p(w | w₂…wₙ₋₁).
//!
//! It looks up one table slot per word of context, at most n in all.
//!
//! File format: all numbers are little-endian. After the header come the 1-grams, indexed by word number; then, for
//! each longer order, an open-addressing hash table of (key, probability, back-off); then the vocabulary. The key of
//! an n-gram is computed from its last word backwards, so that a query extends it by one word of context at a time.
//!
//! Two signs are used as flags: a stored probability is negative if some longer n-gram ends in this one, and a
//! back-off is −0 if no longer n-gram begins with it. They let a query stop early, and states drop words that no
//! longer matter.

use crate::{Arpa, BEGIN, END, Grams, MAX_ORDER, UNKNOWN};
use luthier_core::{Error, Progress, Result, math};
use luthier_io::{
    Input, Meter,
    container::{self, Container, HEADER, Layout, NUMBERS, SLOT, Words, extend, slot_of},
};
use rustc_hash::FxHashSet;
use std::path::Path;

const LAYOUT: Layout = Layout {
    magic: *b"luthlm\r\n",
    version: 1,
    what: "binary model",
    again: "make it again with `luthier lm compile`",
};

/// Offsets in the header, in bytes.
mod at {
    pub(super) const ORDER: usize = super::NUMBERS;
    pub(super) const COUNTS: usize = 32;
    pub(super) const SLOTS: usize = 80;
    pub(super) const WORDS: usize = 128;
    pub(super) const SECTIONS: usize = 136;
}

/// Number of sections: 1-grams, five tables of longer n-grams, and the word table, word ends and text of the
/// vocabulary.
const SECTIONS: usize = MAX_ORDER + 3;
const WORD_TABLE: usize = MAX_ORDER;
const WORD_ENDS: usize = MAX_ORDER + 1;
const WORD_TEXT: usize = MAX_ORDER + 2;

/// An n-gram language model for queries. It is read-only and can be shared by threads; processes that map the same
/// file share its memory.
///
/// ```
/// # use luthier_core::Progress;
/// # use luthier_io::Input;
/// use luthier_lm::{Arpa, END, Model};
/// # let text = "\\data\\\nngram 1=4\nngram 2=2\n\n\\1-grams:\n-1\t<unk>\n-99\t<s>\t-0.5\n-0.7\t</s>\n-0.5\ta\t-0.3\n\n\
/// #     \\2-grams:\n-0.2\t<s> a\n-0.3\ta </s>\n\n\\end\\\n";
/// # let arpa = Arpa::parse(Input::new("lm", text.as_bytes())?, Progress::NONE)?;
/// // A model of order 2 with the 2-grams `<s> a` (log₁₀ p = −0.2) and `a </s>` (−0.3).
/// let model = Model::of_arpa(&arpa, "lm.arpa", Progress::NONE)?;
/// let first = model.score(&model.begin(), model.word("a"));
/// let second = model.score(&first.state, END);
/// assert!((first.log10 + second.log10 - -0.5).abs() < 1e-6);
/// assert_eq!((first.matched, model.word("zebra")), (2, luthier_lm::UNKNOWN));
/// # luthier_core::Result::Ok(())
/// ```
pub struct Model {
    bytes: Container,
    order: usize,
    /// Number of slots of each table; those of the word table at index 0.
    slots: [u64; MAX_ORDER],
    /// Offset of each section, in bytes.
    sections: [usize; SECTIONS],
    vocabulary: Words,
}

/// State of a query: the last words, as far as the model has n-grams that continue them, with their back-off weights.
/// Scores of later words depend on nothing else, so hypotheses with equal states can be recombined.
///
/// ```
/// use luthier_lm::State;
/// let nothing = State::default();
/// assert!(nothing.is_empty() && nothing.words().is_empty());
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct State {
    /// Words of the context, the most recent first.
    words: [u32; MAX_ORDER - 1],
    /// Back-off weight (log₁₀) of the context of the last 1, 2, … words.
    back_off: [f32; MAX_ORDER - 1],
    /// Number of words in the context.
    length: u8,
}

impl State {
    /// Number of words of context in the state, from 0 to one less than the order of the model.
    pub fn len(&self) -> usize {
        self.length as usize
    }

    /// Whether the state has no words, so that later scores do not depend on the words before it.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Numbers of the words in the state, the most recent first.
    pub fn words(&self) -> &[u32] {
        &self.words[..self.len()]
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.words() == other.words()
    }
}

impl Eq for State {}

impl std::hash::Hash for State {
    fn hash<H: std::hash::Hasher>(&self, hasher: &mut H) {
        self.words().hash(hasher);
    }
}

/// Result of [`Model::score`] for one word in its context.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// log₁₀ of the probability of the word given its context.
    pub log10: f32,
    /// Length of the longest matching n-gram, in words: from 1 to the order of the model.
    pub matched: usize,
    /// State after the word, for the query of the next word.
    pub state: State,
}

/// Score of a sentence including its end, as [`Model::sentence`] returns it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sentence {
    /// log₁₀ of the probability of all words and the sentence-end marker.
    pub log10: f64,
    /// log₁₀ of the probability of the known words and the sentence-end marker; unknown words are left out of the sum.
    pub known_log10: f64,
    /// Number of words that are not in the model's vocabulary.
    pub unknown: usize,
}

/// Size and storage of a model, as [`Model::info`] returns them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// Order of the model: number of words of its longest n-grams.
    pub order: usize,
    /// Number of n-grams of each order, beginning with 1-grams.
    pub counts: Vec<u64>,
    /// Size of the model in memory or in the memory-mapped file, in bytes.
    pub bytes: usize,
    /// Whether the model is memory-mapped from a binary file.
    pub mapped: bool,
}

/// Hash key of an n-gram, whose words are given from left to right; never 0, which marks an empty slot.
fn key_of(words: &[u32]) -> u64 {
    words.iter().rev().fold(0, |key, &w| extend(key, w)).max(1)
}

impl Model {
    /// Opens a model file: memory-maps a binary file, or reads an ARPA file. Fails if the file is neither or is
    /// damaged.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_with(path, Progress::NONE)
    }

    /// Opens a model file as [`Model::open`] does, and reports progress in `n-grams` while reading an ARPA file. Also
    /// fails with kind [`Interrupted`](luthier_core::ErrorKind::Interrupted) when `progress` answers *stop*.
    pub fn open_with(path: &Path, progress: Progress<'_>) -> Result<Self> {
        let name = path.display().to_string();
        if !Self::is_binary(path) {
            return Self::of_arpa(&Arpa::read(path, progress)?, &name, progress);
        }
        Self::check(LAYOUT.open(path)?, &name)
    }

    /// Whether a file is a binary model, detected from its first bytes.
    pub fn is_binary(path: &Path) -> bool {
        LAYOUT.fits(path)
    }

    /// Builds a model in memory from the contents of an ARPA file, called `name` in error messages. Fails if an n-gram
    /// occurs twice, if the back-off probability of an n-gram that the file lacks is above 1, and with kind
    /// [`Interrupted`](luthier_core::ErrorKind::Interrupted) when `progress` answers *stop*.
    pub fn of_arpa(arpa: &Arpa, name: &str, progress: Progress<'_>) -> Result<Self> {
        Self::check(LAYOUT.seal(Builder::new(arpa, name, progress)?.bytes), name)
    }

    /// Builds a model from the contents of an ARPA file as [`Model::of_arpa`] does, writes its binary form to `path`,
    /// and returns it. Fails as [`Model::of_arpa`] does, or if the file cannot be written; the file appears complete
    /// or not at all.
    pub fn compile(arpa: &Arpa, name: &str, path: &Path, progress: Progress<'_>) -> Result<Self> {
        let model = Self::of_arpa(arpa, name, progress)?;
        LAYOUT.write(&model.bytes, path)?;
        Ok(model)
    }

    /// Converts an ARPA file to a memory-mapped binary at `output`, and returns the model. Reports progress in
    /// `n-grams`. Fails if the file is not a valid ARPA file, if the binary cannot be written, and with kind
    /// [`Interrupted`](luthier_core::ErrorKind::Interrupted) when `progress` answers *stop*.
    pub fn compile_file(arpa: &Path, output: &Path, progress: Progress<'_>) -> Result<Self> {
        Self::compile(&Arpa::read(arpa, progress)?, &arpa.display().to_string(), output, progress)
    }

    /// Reads the header, and checks that all sections lie within the file.
    fn check(bytes: Container, name: &str) -> Result<Self> {
        let mut model = Model {
            bytes,
            order: 0,
            slots: [0; MAX_ORDER],
            sections: [0; SECTIONS],
            vocabulary: Words::default(),
        };
        let length = model.bytes().len();
        model.order = model.u32_at(at::ORDER) as usize;
        for n in 0..MAX_ORDER {
            model.slots[n] = model.u64_at(at::SLOTS + 8 * n);
        }
        for s in 0..SECTIONS {
            model.sections[s] = model.u64_at(at::SECTIONS + 8 * s) as usize;
        }
        let sections = [WORD_TABLE, WORD_ENDS, WORD_TEXT].map(|s| model.sections[s]);
        model.vocabulary = Words { words: model.u64_at(at::WORDS), slots: model.slots[0], sections };
        let words = model.words();
        let ends = |s: usize, size: usize| model.sections[s].checked_add(size).is_some_and(|e| e <= length);
        let table = |s: usize, slots: u64| ends(s, (slots as usize).saturating_mul(SLOT));
        let sound = (1..=MAX_ORDER).contains(&model.order)
            && words >= 3
            && ends(0, words.saturating_mul(8))
            && (1..model.order).all(|n| model.slots[n] > 0 && table(n, model.slots[n]))
            && model.vocabulary.is_sound(length);
        if sound { Ok(model) } else { Err(LAYOUT.damaged(name)) }
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self.bytes.bytes()
    }

    #[inline]
    fn u32_at(&self, at: usize) -> u32 {
        self.bytes.u32_at(at)
    }

    #[inline]
    fn u64_at(&self, at: usize) -> u64 {
        self.bytes.u64_at(at)
    }

    /// Probability with its flag, and back-off, stored at an offset.
    #[inline]
    fn pair_at(&self, at: usize) -> (f32, f32) {
        let both = self.u64_at(at);
        (f32::from_bits(both as u32), f32::from_bits((both >> 32) as u32))
    }

    /// Looks up an n-gram of order `n` by its key; returns its probability with its flag, and its back-off.
    #[inline]
    fn find(&self, n: usize, key: u64) -> Option<(f32, f32)> {
        let (slots, section) = (self.slots[n - 1], self.sections[n - 1]);
        let key = key.max(1);
        let start = section + slot_of(key, slots) as usize * SLOT;
        let mut at = start;
        // Almost always the first or second slot. Wrapping around the end of the table is left to another function,
        // which also terminates for a damaged table without empty slots.
        while at < section + slots as usize * SLOT {
            let found = self.u64_at(at);
            if found == key {
                return Some(self.pair_at(at + 8));
            }
            if found == 0 {
                return None;
            }
            at += SLOT;
        }
        self.find_in(section..start, key)
    }

    /// Continues the search for a key from the beginning of a table.
    #[cold]
    fn find_in(&self, range: std::ops::Range<usize>, key: u64) -> Option<(f32, f32)> {
        for at in range.step_by(SLOT) {
            match self.u64_at(at) {
                found if found == key => return Some(self.pair_at(at + 8)),
                0 => return None,
                _ => {}
            }
        }
        None
    }

    /// State at the beginning of a sentence, after `<s>`.
    pub fn begin(&self) -> State {
        let mut state = State::default();
        state.words[0] = BEGIN;
        state.back_off[0] = self.unigram(BEGIN).1;
        state.length = u8::from(self.order > 1);
        state
    }

    /// Probability with its flag, and back-off, of a 1-gram.
    #[inline]
    fn unigram(&self, word: u32) -> (f32, f32) {
        self.pair_at(self.sections[0] + 8 * word as usize)
    }

    /// Returns the probability of a word given the context in `state`, and the state after it. `word` is a word
    /// number of this model, below [`Model::words`].
    #[inline]
    pub fn score(&self, state: &State, word: u32) -> Scored {
        let (p, b) = self.unigram(word);
        let mut next = State::default();
        next.words[0] = word;
        next.back_off[0] = b;
        let mut keep = usize::from(goes_on(b));
        let mut log10 = -p.abs();
        let mut matched = 1;
        let mut longer = p.is_sign_negative();
        let mut key = extend(0, word);
        let length = state.len();
        while longer && matched <= length {
            let before = state.words[matched - 1];
            key = extend(key, before);
            let Some((p, b)) = self.find(matched + 1, key) else { break };
            log10 = -p.abs();
            if matched + 1 < self.order {
                next.words[matched] = before;
                next.back_off[matched] = b;
                if goes_on(b) {
                    keep = matched + 1;
                }
            }
            matched += 1;
            longer = p.is_sign_negative();
        }
        // Add the back-off weights of the longer contexts for which no n-gram was found.
        for b in &state.back_off[matched - 1..length.max(matched - 1)] {
            log10 += b;
        }
        next.length = if self.order > 1 { keep as u8 } else { 0 };
        Scored { log10, matched, state: next }
    }

    /// Returns the perplexity of a tokenised text, one sentence per line, including sentence ends and unknown words;
    /// 1 for an empty text. Reports progress in `sentences`. Fails if the text cannot be read, and with kind
    /// [`Interrupted`](luthier_core::ErrorKind::Interrupted) when `progress` answers *stop*.
    pub fn perplexity(&self, text: &mut Input, progress: Progress<'_>) -> Result<f64> {
        let meter = Meter::new(progress, "sentences", 0);
        let (mut buffer, mut words) = (Vec::new(), Vec::new());
        let (mut total, mut tokens, mut sentences) = (0.0, 0usize, 0);
        while text.line(&mut buffer)? {
            words.clear();
            words.extend(text.utf8(&buffer)?.split_ascii_whitespace().map(|w| self.word(w)));
            total += self.sentence(&words).log10;
            tokens += words.len() + 1;
            sentences += 1;
            meter.set(sentences)?;
        }
        meter.finish()?;
        Ok(math::powf(10.0, -total / tokens.max(1) as f64))
    }

    /// Returns the score of a sentence between `<s>` and `</s>`; `words` are word numbers of this model.
    pub fn sentence(&self, words: &[u32]) -> Sentence {
        let mut state = self.begin();
        let mut sentence = Sentence::default();
        for &word in words.iter().chain(&[END]) {
            let scored = self.score(&state, word);
            let log10 = f64::from(scored.log10);
            sentence.log10 += log10;
            if word == UNKNOWN {
                sentence.unknown += 1;
            } else {
                sentence.known_log10 += log10;
            }
            state = scored.state;
        }
        sentence
    }

    /// Returns the number of a word in this model; [`UNKNOWN`] if the word is not in its vocabulary.
    pub fn word(&self, word: &str) -> u32 {
        self.vocabulary.find(&self.bytes, word).unwrap_or(UNKNOWN)
    }

    /// Returns the word with the given number in this model; empty if there is no such word.
    pub fn text(&self, id: u32) -> &str {
        self.vocabulary.word(&self.bytes, id)
    }

    /// Order of the model: number of words of its longest n-grams, from 1 to 6.
    pub fn order(&self) -> usize {
        self.order
    }

    /// Size of the model's vocabulary, including `<unk>`, `<s>` and `</s>`.
    pub fn words(&self) -> usize {
        self.vocabulary.words as usize
    }

    /// Returns the size of the model, and whether it is memory-mapped.
    pub fn info(&self) -> Info {
        Info {
            order: self.order,
            counts: (0..self.order).map(|n| self.u64_at(at::COUNTS + 8 * n)).collect(),
            bytes: self.bytes().len(),
            mapped: self.bytes.is_mapped(),
        }
    }
}

/// Whether some longer n-gram begins with the one that has this back-off: its back-off is then not −0.
#[inline]
fn goes_on(back_off: f32) -> bool {
    back_off.to_bits() != (-0.0f32).to_bits()
}

/// Builds the binary form of a model.
struct Builder {
    bytes: Vec<u8>,
    slots: [u64; MAX_ORDER],
    sections: [usize; SECTIONS],
}

/// An n-gram that the ARPA file lacks although a longer n-gram begins or ends with it.
type Blank = Vec<u32>;

impl Builder {
    fn new(arpa: &Arpa, name: &str, progress: Progress<'_>) -> Result<Self> {
        let order = arpa.orders.len();
        let meter = Meter::new(progress, "n-grams", arpa.orders.iter().map(Grams::len).sum());
        let blanks = blanks(arpa, &meter)?;
        let mut b = Builder { bytes: vec![0; HEADER], slots: [0; MAX_ORDER], sections: [0; SECTIONS] };
        b.unigrams(arpa);
        for n in 2..=order {
            b.table(n, arpa.orders[n - 1].len() + blanks[n - 1].len());
            b.insert_all(arpa, n, name, &meter)?;
            b.insert_blanks(arpa, n, &blanks[n - 1], name)?;
            let listed = arpa.orders[n - 1].words.chunks_exact(n);
            for (i, words) in listed.chain(blanks[n - 1].iter().map(Vec::as_slice)).enumerate() {
                b.mark(n - 1, &words[1..], true);
                b.mark(n - 1, &words[..n - 1], false);
                asked(&meter, i)?;
            }
        }
        b.orphans(arpa, &meter)?;
        b.vocabulary(arpa);
        b.header(arpa, &blanks);
        meter.finish()?;
        Ok(b)
    }

    /// Inserts the n-grams of one order in the ARPA file. Fails if one occurs twice.
    fn insert_all(&mut self, arpa: &Arpa, n: usize, name: &str, meter: &Meter<'_>) -> Result<()> {
        let grams = &arpa.orders[n - 1];
        for (i, words) in grams.words.chunks_exact(n).enumerate() {
            if !self.insert(n, words, grams.probability[i], grams.back_off[i]) {
                return Err(Error::in_file(name, format!("has the {n}-gram `{}` twice", arpa.text(words)))
                    .hint("remove one of the two lines and correct the count"));
            }
            if i % 1024 == 1023 {
                meter.add(1024)?;
            }
        }
        meter.add(grams.len() % 1024)
    }

    /// Inserts the n-grams that the ARPA file lacks, with their back-off probabilities. Fails if one is above 1.
    fn insert_blanks(&mut self, arpa: &Arpa, n: usize, blanks: &[Blank], name: &str) -> Result<()> {
        for words in blanks {
            let (p, _) = self.value(n - 1, &words[1..]);
            let (_, back_off) = self.value(n - 1, &words[..n - 1]);
            if back_off - p.abs() > 0.0 {
                let text = arpa.text(words);
                let found = format!("has no {n}-gram `{text}`, and its back-off probability is above 1");
                return Err(Error::in_file(name, found)
                    .hint("the back-off weight of its context is too large: estimate the model again"));
            }
            self.insert(n, words, back_off - p.abs(), 0.0);
        }
        Ok(())
    }

    /// Appends the section of 1-grams.
    fn unigrams(&mut self, arpa: &Arpa) {
        self.sections[0] = self.bytes.len();
        let grams = &arpa.orders[0];
        let mut pairs = vec![(0.0f32, 0.0f32); arpa.vocabulary.len()];
        for i in 0..grams.len() {
            pairs[grams.words[i] as usize] = (grams.probability[i], grams.back_off[i]);
        }
        for (p, b) in pairs {
            self.bytes.extend(stored(p, b).to_le_bytes());
        }
    }

    /// Appends an empty hash table for `count` n-grams, with a load factor of two thirds.
    fn table(&mut self, n: usize, count: usize) {
        self.slots[n - 1] = (count + count / 2 + 1) as u64;
        self.sections[n - 1] = container::begin_section(&mut self.bytes);
        self.bytes.resize(self.bytes.len() + self.slots[n - 1] as usize * SLOT, 0);
    }

    fn u64_at(&self, at: usize) -> u64 {
        let mut b = [0; 8];
        b.copy_from_slice(&self.bytes[at..at + 8]);
        u64::from_le_bytes(b)
    }

    fn put(&mut self, at: usize, value: u64) {
        self.bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    /// Offset of the slot with a key, or of the empty slot where it would be inserted.
    fn place(&self, section: usize, slots: u64, key: u64) -> usize {
        container::place(&self.bytes, self.sections[section], slots, key)
    }

    /// Inserts an n-gram; returns false if the table already has it.
    fn insert(&mut self, n: usize, words: &[u32], p: f32, back_off: f32) -> bool {
        let key = key_of(words);
        let at = self.place(n - 1, self.slots[n - 1], key);
        if self.u64_at(at) == key {
            return false;
        }
        self.put(at, key);
        self.put(at + 8, stored(p, back_off));
        true
    }

    /// Offset of the probability and back-off of an n-gram.
    fn numbers(&self, n: usize, words: &[u32]) -> usize {
        match n {
            1 => self.sections[0] + 8 * words[0] as usize,
            _ => self.place(n - 1, self.slots[n - 1], key_of(words)) + 8,
        }
    }

    /// Probability with its flag, and back-off, of an n-gram.
    fn value(&self, n: usize, words: &[u32]) -> (f32, f32) {
        let both = self.u64_at(self.numbers(n, words));
        (f32::from_bits(both as u32), f32::from_bits((both >> 32) as u32))
    }

    /// Sets the flag of an n-gram: some longer n-gram ends in it if `ends`, else begins with it.
    fn mark(&mut self, n: usize, words: &[u32], ends: bool) {
        let at = self.numbers(n, words);
        let (mut p, mut b) = self.value(n, words);
        if ends {
            p = -p.abs();
        } else if b == 0.0 {
            b = 0.0;
        }
        self.put(at, u64::from(p.to_bits()) | (u64::from(b.to_bits()) << 32));
    }

    /// Handles n-grams with a back-off weight that no longer n-gram begins with. Queries still add the weight, so
    /// states must keep these words: all suffixes of such an n-gram are flagged as if a longer n-gram began with
    /// them.
    fn orphans(&mut self, arpa: &Arpa, meter: &Meter<'_>) -> Result<()> {
        for n in 2..arpa.orders.len() {
            let parents: FxHashSet<u64> =
                arpa.orders[n].words.chunks_exact(n + 1).map(|words| key_of(&words[..n])).collect();
            let grams = &arpa.orders[n - 1];
            for i in (0..grams.len()).filter(|&i| grams.back_off[i] != 0.0) {
                let words = grams.words(i);
                if !parents.contains(&key_of(words)) {
                    (1..n).for_each(|m| self.mark(m, &words[n - m..], false));
                }
                asked(meter, i)?;
            }
        }
        Ok(())
    }

    /// Appends the sections of the vocabulary.
    fn vocabulary(&mut self, arpa: &Arpa) {
        let words = Words::append(&mut self.bytes, &arpa.vocabulary);
        self.slots[0] = words.slots;
        for (s, at) in [WORD_TABLE, WORD_ENDS, WORD_TEXT].into_iter().zip(words.sections) {
            self.sections[s] = at;
        }
    }

    /// Fills in the header.
    fn header(&mut self, arpa: &Arpa, blanks: &[Vec<Blank>]) {
        self.put(at::ORDER, arpa.orders.len() as u64);
        self.put(at::WORDS, arpa.vocabulary.len() as u64);
        for (n, (grams, blank)) in arpa.orders.iter().zip(blanks).enumerate() {
            self.put(at::COUNTS + 8 * n, (grams.len() + blank.len()) as u64);
        }
        for n in 0..MAX_ORDER {
            self.put(at::SLOTS + 8 * n, self.slots[n]);
        }
        for s in 0..SECTIONS {
            self.put(at::SECTIONS + 8 * s, self.sections[s] as u64);
        }
    }
}

/// Probability and back-off as they are stored before flags are set: the probability positive, a back-off of 0 as −0.
fn stored(p: f32, back_off: f32) -> u64 {
    let back_off = if back_off == 0.0 { -0.0 } else { back_off };
    u64::from(p.abs().to_bits()) | (u64::from(back_off.to_bits()) << 32)
}

/// N-grams that must be added, by order. Queries go from short n-grams to long ones, so that the model must contain
/// the first and the last n − 1 words of every n-gram. Pruned models from other toolkits may lack them.
fn blanks(arpa: &Arpa, meter: &Meter<'_>) -> Result<Vec<Vec<Blank>>> {
    let mut all: Vec<Vec<Blank>> = vec![Vec::new(); arpa.orders.len()];
    for n in (3..=arpa.orders.len()).rev() {
        let shorter = &arpa.orders[n - 2];
        let mut known: FxHashSet<u64> = shorter.words.chunks_exact(n - 1).map(key_of).collect();
        let mut missing = Vec::new();
        let longer = arpa.orders[n - 1].words.chunks_exact(n).chain(all[n - 1].iter().map(Vec::as_slice));
        for (i, words) in longer.enumerate() {
            asked(meter, i)?;
            for part in [&words[1..], &words[..n - 1]] {
                if known.insert(key_of(part)) {
                    missing.push(part.to_vec());
                }
            }
        }
        all[n - 2] = missing;
    }
    Ok(all)
}

/// Checks at every 1024th turn whether to stop, without counting progress.
fn asked(meter: &Meter<'_>, turn: usize) -> Result<()> {
    if turn.is_multiple_of(1024) { meter.add(0) } else { Ok(()) }
}
