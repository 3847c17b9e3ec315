//! Memory-mapped binary format of phrase and rule tables: a trie of sources in a hash table, and entries
//! stored by column.
//!
//! The key of a trie node is computed from the key of its parent and one symbol, so that a decoder follows
//! the words of a sentence, or words and gaps, with one hash look-up per symbol. Scores are natural
//! logarithms; log 0 is stored as −100, as in Moses.

use crate::{Entry, GAPS};
use luthier_core::{Error, Progress, Result, Vocabulary, math};
use luthier_io::{
    Meter,
    container::{self, Container, HEADER, Layout, NUMBERS, SLOT, Words, extend, slot_of},
};
use rustc_hash::FxHashMap;
use std::{ops::Range, path::Path};

/// Header of the file format.
const LAYOUT: Layout = Layout {
    magic: *b"luthtab\n",
    version: 1,
    what: "binary table",
    again: "make it again with `luthier table compile` or `luthier train`",
};

/// Smallest logarithm of a score, and that of 0, as in Moses.
const LOWEST: f64 = -100.0;

/// Indices of the 64-bit numbers in the header; index 1 is the length of the file.
mod at {
    /// [`Shape`](super::Shape) of the entries, packed.
    pub(super) const SHAPE: usize = 0;
    /// Number of entries.
    pub(super) const ENTRIES: usize = 2;
    /// Number of slots of the hash table of nodes.
    pub(super) const SLOTS: usize = 3;
    /// Number of symbols of the longest source.
    pub(super) const LONGEST: usize = 4;
    /// Number of different sources.
    pub(super) const SOURCES: usize = 5;
    /// Positions of the sections.
    pub(super) const SECTIONS: usize = 6;
    /// Positions of the vocabularies, source and target.
    pub(super) const WORDS: usize = SECTIONS + super::SECTIONS;
}

/// Number of sections: nodes, scores, counts, ends of targets, targets, ends of links, links.
const SECTIONS: usize = 7;
const NODES: usize = 0;
const SCORES: usize = 1;
const COUNTS: usize = 2;
const TARGET_ENDS: usize = 3;
const TARGETS: usize = 4;
const LINK_ENDS: usize = 5;
const LINKS: usize = 6;

/// Number of scores and counts of every entry of a table, and whether entries may have gaps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shape {
    /// Number of translation scores of each entry, up to 255; 4 in Moses' tables.
    pub scores: usize,
    /// Number of reordering scores of each entry: 6, or 0 without a reordering model.
    pub reordering: usize,
    /// Number of counts of each entry: 3, or 0 if they are not known.
    pub counts: usize,
    /// Whether the entries are hierarchical rules, whose sources and targets may have gaps.
    pub hierarchical: bool,
}

/// A node in the trie of sources of a [`Table`]; the symbols from the root to it are a prefix of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// Hash key of the symbols from the root.
    key: u64,
    /// Number of the first entry of the source that ends here.
    first: u32,
    /// Number of entries of the source that ends here.
    count: u32,
}

impl Node {
    /// Returns the numbers of the entries whose source ends at this node; empty if the node is only a prefix
    /// of longer sources.
    pub fn entries(&self) -> Range<u32> {
        self.first..self.first + self.count
    }
}

/// A phrase or rule table for look-ups by source. It is read-only: threads share it, and processes that map
/// the same file share its memory.
///
/// ```
/// # use luthier_core::Progress;
/// use luthier_table::{Table, read_text};
/// let dir = tempfile::tempdir().unwrap();
/// let (text, binary) = (dir.path().join("phrase-table"), dir.path().join("table.bin"));
/// std::fs::write(&text, "das haus ||| the house ||| 0.5 1 ||| 0-0 1-1 ||| 4 2 2\n").unwrap();
/// read_text(&text, None, Progress::NONE)?.write(&binary)?;
/// let table = Table::open(&binary)?;
/// let node = ["das", "haus"].iter().try_fold(table.root(), |n, w| table.step(n, table.source_word(w)?)).unwrap();
/// let mut target = Vec::new();
/// table.target(node.entries().start, &mut target);
/// assert_eq!(target.iter().map(|w| table.target_text(*w)).collect::<Vec<_>>(), ["the", "house"]);
/// # luthier_core::Result::Ok(())
/// ```
pub struct Table {
    file: Container,
    shape: Shape,
    entries: u64,
    slots: u64,
    longest: usize,
    sources: u64,
    sections: [usize; SECTIONS],
    words: [Words; 2],
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table")
            .field("shape", &self.shape)
            .field("entries", &self.entries)
            .finish_non_exhaustive()
    }
}

impl Table {
    /// Memory-maps a binary table. Fails if the file is not a binary table, or is damaged.
    pub fn open(path: &Path) -> Result<Self> {
        Self::check(LAYOUT.open(path)?, &path.display().to_string())
    }

    /// Returns whether a file is a binary table, by its first bytes.
    pub fn is_binary(path: &Path) -> bool {
        LAYOUT.fits(path)
    }

    /// Writes the table to a binary file atomically: it appears complete or not at all. Fails if it cannot be
    /// written.
    pub fn write(&self, path: &Path) -> Result<()> {
        LAYOUT.write(&self.file, path)
    }

    /// Reads the header of a table; `name` is its name in messages. Fails if the file is damaged.
    fn check(file: Container, name: &str) -> Result<Self> {
        let number = |k: usize| file.u64_at(NUMBERS + 8 * k);
        let shape = Shape {
            scores: (number(at::SHAPE) & 0xff) as usize,
            reordering: (number(at::SHAPE) >> 8 & 0xff) as usize,
            counts: (number(at::SHAPE) >> 16 & 0xff) as usize,
            hierarchical: number(at::SHAPE) >> 24 & 1 == 1,
        };
        let words = [0, 1].map(|side| {
            let from = at::WORDS + 5 * side;
            Words {
                words: number(from),
                slots: number(from + 1),
                sections: [2, 3, 4].map(|k| number(from + k) as usize),
            }
        });
        let sections: [usize; SECTIONS] = std::array::from_fn(|s| number(at::SECTIONS + s) as usize);
        let (entries, slots) = (number(at::ENTRIES), number(at::SLOTS));
        let length = file.bytes().len();
        let inside = |s: usize, n: u64, size: usize| {
            sections[s].checked_add((n as usize).saturating_mul(size)).is_some_and(|end| end <= length)
        };
        let sound = slots > 0
            && u32::try_from(entries).is_ok()
            && inside(NODES, slots, SLOT)
            && inside(SCORES, entries, 4 * (shape.scores + shape.reordering))
            && inside(COUNTS, entries, 4 * shape.counts)
            && inside(TARGET_ENDS, entries, 4)
            && inside(LINK_ENDS, entries, 4)
            && sections[TARGETS] <= length
            && sections[LINKS] <= length
            && words.iter().all(|w| w.is_sound(length));
        if !sound {
            return Err(LAYOUT.damaged(name));
        }
        let (longest, sources) = (number(at::LONGEST) as usize, number(at::SOURCES));
        Ok(Table { file, shape, entries, slots, longest, sources, sections, words })
    }

    /// Returns the number of scores and counts of every entry, and whether entries may have gaps.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the number of entries, phrase pairs or rules.
    pub fn len(&self) -> usize {
        self.entries as usize
    }

    /// Returns whether the table has no entry.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Returns the number of symbols (words and gaps) of the longest source.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Returns the number of different sources of all entries.
    pub fn sources(&self) -> usize {
        self.sources as usize
    }

    /// Returns the size of the table in bytes, in memory or in the mapped file.
    pub fn bytes(&self) -> usize {
        self.file.bytes().len()
    }

    /// Returns the number of a source word in this table; `None` if it does not occur in a source.
    pub fn source_word(&self, word: &str) -> Option<u32> {
        self.words[0].find(&self.file, word)
    }

    /// Returns the number of a target word in this table; `None` if it does not occur in a target.
    pub fn target_word(&self, word: &str) -> Option<u32> {
        self.words[1].find(&self.file, word)
    }

    /// Returns the source word with a number in this table; empty if there is none.
    pub fn source_text(&self, id: u32) -> &str {
        self.words[0].word(&self.file, id)
    }

    /// Returns the target word with a number in this table; empty if there is none.
    pub fn target_text(&self, id: u32) -> &str {
        self.words[1].word(&self.file, id)
    }

    /// Returns the number of different source words and of different target words.
    pub fn words(&self) -> [usize; 2] {
        self.words.map(|w| w.words as usize)
    }

    /// Returns the root of the trie of sources, the empty prefix.
    pub fn root(&self) -> Node {
        Node { key: 0, first: 0, count: 0 }
    }

    /// Returns the child of a node by one symbol (the number of a source word of this table, or a gap);
    /// `None` if no source has this prefix.
    #[inline]
    pub fn step(&self, node: Node, symbol: u32) -> Option<Node> {
        let key = extend(node.key, symbol).max(1);
        let first = slot_of(key, self.slots);
        for slot in (first..self.slots).chain(0..first) {
            let at = self.sections[NODES] + slot as usize * SLOT;
            match self.file.u64_at(at) {
                found if found == key => {
                    let (first, count) = (self.file.u32_at(at + 8), self.file.u32_at(at + 12));
                    // A damaged table may refer to entries that do not exist.
                    let sound = u64::from(first) + u64::from(count) <= self.entries;
                    return sound.then_some(Node { key, first, count });
                }
                0 => return None,
                _ => {}
            }
        }
        None
    }

    /// Writes the target symbols of an entry, numbers of target words and [`GAPS`], to `out`.
    #[inline]
    pub fn target(&self, entry: u32, out: &mut Vec<u32>) {
        out.clear();
        let range = self.range(TARGET_ENDS, entry);
        let bytes = self.sub(TARGETS, 4 * range.start..4 * range.end);
        out.extend(bytes.as_chunks::<4>().0.iter().map(|b| u32::from_le_bytes(*b)));
    }

    /// Writes the word alignment of an entry, pairs of source and target position from 0, to `out`.
    pub fn links(&self, entry: u32, out: &mut Vec<(u8, u8)>) {
        out.clear();
        let range = self.range(LINK_ENDS, entry);
        let bytes = self.sub(LINKS, 2 * range.start..2 * range.end);
        out.extend(bytes.as_chunks::<2>().0.iter().map(|b| (b[0], b[1])));
    }

    /// Writes the natural logarithms of the translation scores and then of the reordering scores of an entry to `out`.
    #[inline]
    pub fn scores(&self, entry: u32, out: &mut Vec<f32>) {
        self.floats(SCORES, self.shape.scores + self.shape.reordering, entry, out);
    }

    /// Writes the counts of an entry (of the target, of the source, of the pair) to `out`; `out` is empty if
    /// the table has no counts.
    pub fn counts(&self, entry: u32, out: &mut Vec<f32>) {
        self.floats(COUNTS, self.shape.counts, entry, out);
    }

    /// Writes the `width` numbers of an entry in a section to `out`.
    fn floats(&self, section: usize, width: usize, entry: u32, out: &mut Vec<f32>) {
        out.clear();
        let bytes = self.sub(section, 4 * width * entry as usize..4 * width * (entry as usize + 1));
        out.extend(bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)));
    }

    /// Returns the range of an entry's target or links, given the section that holds their ends.
    fn range(&self, ends: usize, entry: u32) -> Range<usize> {
        let end = |e: u32| self.file.u32_at(self.sections[ends] + 4 * e as usize) as usize;
        (if entry == 0 { 0 } else { end(entry - 1) })..end(entry)
    }

    /// Returns a range of bytes of a section; empty if it is outside a damaged file.
    fn sub(&self, section: usize, range: Range<usize>) -> &[u8] {
        let from = self.sections[section];
        self.file.bytes().get(from + range.start..from.saturating_add(range.end)).unwrap_or(&[])
    }
}

/// Builder of a table from entries in any order. The entries of one source keep the order in which they are
/// added.
///
/// ```
/// use luthier_table::{Builder, Entry};
/// let entry = |scores| Entry { source: &[0], target: &[0], links: &[], scores, counts: &[], reordering: &[] };
/// let mut builder = Builder::new(false);
/// builder.entry(&entry(&[0.5]))?;
/// assert!(builder.entry(&entry(&[0.5, 0.5])).is_err(), "all entries have the same number of scores");
/// assert_eq!(builder.shape().unwrap().scores, 1);
/// # luthier_core::Result::Ok(())
/// ```
#[derive(Debug, Default)]
pub struct Builder {
    shape: Option<Shape>,
    hierarchical: bool,
    /// Number of the node with a key.
    nodes: FxHashMap<u64, u32>,
    /// Key of each node.
    keys: Vec<u64>,
    /// Number of entries whose source ends at each node.
    here: Vec<u32>,
    /// Node of each entry.
    node: Vec<u32>,
    scores: Vec<f32>,
    counts: Vec<f32>,
    targets: Vec<u32>,
    target_ends: Vec<u32>,
    links: Vec<(u8, u8)>,
    link_ends: Vec<u32>,
    longest: usize,
}

impl Builder {
    /// Returns the builder of a rule table if `hierarchical`, else of a phrase table.
    pub fn new(hierarchical: bool) -> Self {
        Builder { hierarchical, ..Builder::default() }
    }

    /// Returns the number of scores and counts of the entries added so far; `None` before the first entry.
    pub fn shape(&self) -> Option<Shape> {
        self.shape
    }

    /// Adds an entry. Fails if its source is empty, if its number of scores or counts differs from that of
    /// the entries before, or if the table becomes too large (four billion target words).
    pub fn entry(&mut self, entry: &Entry<'_>) -> Result<()> {
        let shape = Shape {
            scores: entry.scores.len(),
            reordering: entry.reordering.len(),
            counts: entry.counts.len(),
            hierarchical: self.hierarchical,
        };
        let expected = *self.shape.get_or_insert(shape);
        if shape != expected {
            let numbers = |s: Shape| format!("{} scores and {} counts", s.scores, s.counts);
            return Err(Error::new(format!("found {}, expected {}", numbers(shape), numbers(expected)))
                .hint("all lines of a table must have the same number of scores and counts"));
        }
        if entry.source.is_empty() {
            return Err(Error::new("the source is empty, expected at least one word"));
        }
        let mut key = 0;
        let mut node = 0;
        for &symbol in entry.source {
            key = extend(key, symbol).max(1);
            let next = self.keys.len() as u32;
            node = *self.nodes.entry(key).or_insert(next);
            if node == next {
                self.keys.push(key);
                self.here.push(0);
            }
        }
        self.here[node as usize] += 1;
        self.node.push(node);
        self.longest = self.longest.max(entry.source.len());
        let log = |p: f64| if p > 0.0 { math::ln(p).max(LOWEST) } else { LOWEST } as f32;
        self.scores.extend(entry.scores.iter().chain(entry.reordering).map(|&p| log(p)));
        self.counts.extend(entry.counts.iter().map(|&c| c as f32));
        self.targets.extend(entry.target);
        self.target_ends.push(self.targets.len() as u32);
        self.links.extend(entry.links);
        self.link_ends.push(self.links.len() as u32);
        if self.targets.len().max(self.links.len()) > u32::MAX as usize - 256 {
            return Err(Error::new("the table has more than four billion target words, the maximum")
                .hint("remove rare or long phrases"));
        }
        Ok(())
    }

    /// Builds the table. `source` and `target` are the vocabularies that define the symbols of the entries.
    /// Reports `entries`. Fails with kind [`Interrupted`](luthier_core::ErrorKind::Interrupted) if `progress`
    /// returns *stop*.
    pub fn finish(self, source: &Vocabulary, target: &Vocabulary, progress: Progress<'_>) -> Result<Table> {
        let meter = Meter::new(progress, "entries", COLUMNS * self.node.len());
        let (first, order) = self.grouped();
        let mut file = File { bytes: vec![0; HEADER], sections: [0; SECTIONS] };
        let slots = self.put_nodes(&mut file, &first, &meter)?;
        self.put_numbers(&mut file, &order, &meter)?;
        self.put_ends(&mut file, &order, &meter)?;
        self.put_lists(&mut file, &order, &meter)?;
        let words = [source, target].map(|v| Words::append(&mut file.bytes, v));
        self.put_header(&mut file, slots, &words);
        meter.finish()?;
        Table::check(LAYOUT.seal(file.bytes), "the table")
    }

    /// Groups the entries by node, in the order in which they were added: returns the position of each node's
    /// first entry, and the entry at each position.
    fn grouped(&self) -> (Vec<u32>, Vec<u32>) {
        let mut first = Vec::with_capacity(self.here.len());
        let mut at = 0;
        for &n in &self.here {
            first.push(at);
            at += n;
        }
        let mut order = vec![0u32; self.node.len()];
        let mut next = first.clone();
        for (entry, &node) in self.node.iter().enumerate() {
            order[next[node as usize] as usize] = entry as u32;
            next[node as usize] += 1;
        }
        (first, order)
    }

    /// Writes the hash table of nodes; returns its number of slots.
    fn put_nodes(&self, file: &mut File, first: &[u32], meter: &Meter<'_>) -> Result<u64> {
        let slots = (self.keys.len() + self.keys.len() / 2 + 1) as u64;
        let section = file.begin(NODES);
        let bytes = &mut file.bytes;
        bytes.resize(bytes.len() + slots as usize * SLOT, 0);
        for (node, &key) in self.keys.iter().enumerate() {
            let at = container::place(bytes, section, slots, key);
            bytes[at..at + 8].copy_from_slice(&key.to_le_bytes());
            bytes[at + 8..at + 12].copy_from_slice(&first[node].to_le_bytes());
            bytes[at + 12..at + 16].copy_from_slice(&self.here[node].to_le_bytes());
            if node.is_multiple_of(BLOCK) {
                meter.add(0)?;
            }
        }
        Ok(slots)
    }

    /// Writes the sections of scores and counts.
    fn put_numbers(&self, file: &mut File, order: &[u32], meter: &Meter<'_>) -> Result<()> {
        let shape = self.shape.unwrap_or_default();
        let columns =
            [(SCORES, &self.scores, shape.scores + shape.reordering), (COUNTS, &self.counts, shape.counts)];
        for (section, column, width) in columns {
            file.begin(section);
            in_blocks(order, meter, |entry| {
                for n in &column[width * entry as usize..width * (entry as usize + 1)] {
                    file.bytes.extend(n.to_le_bytes());
                }
            })?;
        }
        Ok(())
    }

    /// Writes the sections with the ends of each entry's target and links.
    fn put_ends(&self, file: &mut File, order: &[u32], meter: &Meter<'_>) -> Result<()> {
        for (section, ends) in [(TARGET_ENDS, &self.target_ends), (LINK_ENDS, &self.link_ends)] {
            file.begin(section);
            let mut end = 0;
            in_blocks(order, meter, |entry| {
                end += range_of(ends, entry).len() as u32;
                file.bytes.extend(end.to_le_bytes());
            })?;
        }
        Ok(())
    }

    /// Writes the sections of targets and links.
    fn put_lists(&self, file: &mut File, order: &[u32], meter: &Meter<'_>) -> Result<()> {
        file.begin(TARGETS);
        in_blocks(order, meter, |entry| {
            for w in &self.targets[range_of(&self.target_ends, entry)] {
                file.bytes.extend(w.to_le_bytes());
            }
        })?;
        file.begin(LINKS);
        in_blocks(order, meter, |entry| {
            for (s, t) in &self.links[range_of(&self.link_ends, entry)] {
                file.bytes.extend([*s, *t]);
            }
        })
    }

    /// Writes the numbers of the header.
    fn put_header(&self, file: &mut File, slots: u64, words: &[Words; 2]) {
        let shape = self.shape.unwrap_or_default();
        let sections = file.sections;
        let mut put = |k: usize, n: u64| {
            file.bytes[NUMBERS + 8 * k..NUMBERS + 8 * (k + 1)].copy_from_slice(&n.to_le_bytes());
        };
        let packed = shape.scores | shape.reordering << 8 | shape.counts << 16;
        put(at::SHAPE, packed as u64 | u64::from(self.hierarchical) << 24);
        put(at::ENTRIES, self.node.len() as u64);
        put(at::SLOTS, slots);
        put(at::LONGEST, self.longest as u64);
        put(at::SOURCES, self.here.iter().filter(|&&n| n > 0).count() as u64);
        for (s, section) in sections.iter().enumerate() {
            put(at::SECTIONS + s, *section as u64);
        }
        for (side, w) in words.iter().enumerate() {
            let from = at::WORDS + 5 * side;
            put(from, w.words);
            put(from + 1, w.slots);
            for (k, section) in w.sections.iter().enumerate() {
                put(from + 2 + k, *section as u64);
            }
        }
    }
}

/// Number of passes over the entries in [`Builder::finish`].
const COLUMNS: usize = 6;
/// Number of entries or nodes between two calls of the meter.
const BLOCK: usize = 4096;

/// A file that is being built in memory, with the positions of its sections.
struct File {
    bytes: Vec<u8>,
    sections: [usize; SECTIONS],
}

impl File {
    /// Begins a section; returns its position in bytes.
    fn begin(&mut self, section: usize) -> usize {
        self.sections[section] = container::begin_section(&mut self.bytes);
        self.sections[section]
    }
}

/// Calls `each` for every entry in order, and reports progress in blocks. Fails if the callback returns
/// *stop*.
fn in_blocks(order: &[u32], meter: &Meter<'_>, mut each: impl FnMut(u32)) -> Result<()> {
    for block in order.chunks(BLOCK) {
        for &entry in block {
            each(entry);
        }
        meter.add(block.len())?;
    }
    Ok(())
}

/// Returns the range of an entry in a list whose ends by entry are `ends`.
fn range_of(ends: &[u32], entry: u32) -> Range<usize> {
    let start = if entry == 0 { 0 } else { ends[entry as usize - 1] };
    start as usize..ends[entry as usize] as usize
}

/// Returns whether a symbol of a source or target is the number of a word, not one of the [`GAPS`].
pub fn is_word(symbol: u32) -> bool {
    !GAPS.contains(&symbol)
}
