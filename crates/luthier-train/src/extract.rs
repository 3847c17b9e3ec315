//! Extraction of scored phrase or rule tables from word-aligned text.
//!
//! Each entry has the scores p(f | e), lex(f | e), p(e | f) and lex(e | f) (Koehn et al. 2003), and phrase
//! pairs also six orientation probabilities. p(e | f) is the relative frequency c(f, e)/c(f) or, with
//! modified Kneser–Ney smoothing (Foster et al. 2006), (c(f, e) − D(c))/c(f) + γ(f)·n(e)/n, where D is the
//! discount, γ(f) the total discount of the pairs of f divided by c(f), n(e) the number of different sources
//! of e, and n the number of different pairs. Every occurrence of a phrase pair counts 1; with rules, this
//! count is divided equally among the rules extracted from it. Extraction is a single pass; its cost is that
//! of sorting all N occurrences, O(N log N).
//!
//! Occurrences are sorted externally three times: by source and target, to count pairs and sources; by
//! target, to count targets; and by number of the pair, to restore the order. Words are ordered by their
//! bytes, and phrases as if followed by `|||`, which is the order of Moses' tables.

use crate::{
    Corpus, Lexicon, Link, Linked, PhraseSettings, RuleFinder, RuleLimits, Smoothing,
    phrases::{Rule, Spans},
};
use luthier_core::{Error, Progress, Result, Vocabulary, discounts, sum::map_chunks};
use luthier_io::{
    AtomicFile, Meter,
    sort::{Record, SortSettings, Sorted, Sorter, read_or_end},
};
use luthier_table::{Entry, GAPS, TextWriter};
use serde::{Deserialize, Serialize};
use std::{
    cmp::Ordering,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

/// Kind of table to extract from aligned text, with its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// Phrase pairs with lexical reordering.
    Phrases(PhraseSettings),
    /// Hierarchical rules.
    Rules(RuleLimits),
}

impl What {
    /// Returns whether hierarchical rules are extracted.
    pub fn is_rules(self) -> bool {
        matches!(self, What::Rules(_))
    }

    /// Returns the name of the occurrences in progress reports.
    fn name(self) -> &'static str {
        if self.is_rules() { "rules" } else { "phrases" }
    }

    /// Returns the smoothing of translation probabilities; rules have none.
    fn smoothing(self) -> Smoothing {
        match self {
            What::Phrases(phrases) => phrases.smoothing,
            What::Rules(_) => Smoothing::None,
        }
    }
}

/// Settings of the extraction of phrases or rules from aligned text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// Kind of table to extract, with its limits.
    pub what: What,
    /// Memory and temporary directory for sorting; neither affects the table.
    #[serde(flatten)]
    pub sort: SortSettings,
}

impl Default for Settings {
    /// Returns the settings for phrases with default limits and 1 GiB of memory.
    fn default() -> Self {
        Settings { what: What::Phrases(PhraseSettings::default()), sort: SortSettings::default() }
    }
}

/// Statistics of the extraction of a phrase or rule table: occurrences, entries, discounts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Number of occurrences of phrases or rules in the text.
    pub found: u64,
    /// Number of different phrase pairs or rules, which are the entries of the table.
    pub pairs: u64,
    /// Number of entries of the table with zero, one and two gaps.
    pub entries: [u64; 3],
    /// Number of different sources of the entries of the table.
    pub sources: u64,
    /// Kneser–Ney discounts for pairs seen once, twice, and three times or more; `None` without smoothing.
    pub discounts: Option<[f64; 3]>,
    /// Whether the discounts are the fallback values 0.5, 1 and 1.5, because the counts of counts gave
    /// invalid ones.
    pub guessed: bool,
}

/// Writer of the text files of a table in a directory, in Moses' formats and with its file names:
/// `phrase-table.gz` and `reordering-table.gz`, or `rule-table.gz` and `glue-grammar`. The files appear when
/// [`TextTables::commit`] is called; if the writer is dropped before, no file is created.
///
/// ```
/// use luthier_core::Progress;
/// use luthier_io::Input;
/// use luthier_train::{Corpus, extract::{Settings, TextTables, extract}};
/// let input = |text: &'static str| Input::new("text", text.as_bytes()).unwrap();
/// let corpus = Corpus::read(&mut input("das haus\n"), &mut input("the house\n"), 100, Progress::NONE)?;
/// let (dir, settings) = (tempfile::tempdir().unwrap(), Settings::default());
/// let mut tables = TextTables::create(settings.what, dir.path())?;
/// extract(&corpus, &[vec![(0, 0)]], &settings, Progress::NONE, &mut |entry| tables.entry(entry, &corpus))?;
/// assert_eq!(tables.commit()?, ["phrase-table.gz", "reordering-table.gz"]);
/// assert!(dir.path().join("phrase-table.gz").exists());
/// # luthier_core::Result::Ok(())
/// ```
pub struct TextTables {
    writer: TextWriter,
    directory: PathBuf,
    is_rules: bool,
}

/// Glue grammar in Moses' format: rules that concatenate translations of spans.
const GLUE: &str = "\
<s> [X] ||| <s> [S] ||| 1 ||| 0-0 ||| 0 ||| |||
[X][S] </s> [X] ||| [X][S] </s> [S] ||| 1 ||| 0-0 1-1 ||| 0 ||| |||
[X][S] [X][X] [X] ||| [X][S] [X][X] [S] ||| 2.718 ||| 0-0 1-1 ||| 0 ||| |||
";

impl TextTables {
    /// Opens the text files of a phrase or rule table in an existing directory. Fails if a file cannot be
    /// created.
    pub fn create(what: What, directory: &Path) -> Result<Self> {
        let path = |name: &str| directory.join(name);
        let writer = if what.is_rules() {
            TextWriter::create(&path("rule-table.gz"), None, true)?
        } else {
            TextWriter::create(&path("phrase-table.gz"), Some(&path("reordering-table.gz")), false)?
        };
        Ok(TextTables { writer, directory: directory.to_owned(), is_rules: what.is_rules() })
    }

    /// Writes an entry of the table, whose symbols are word numbers in the vocabularies of `corpus`. Fails if
    /// writing fails.
    pub fn entry(&mut self, entry: &Entry<'_>, corpus: &Corpus) -> Result<()> {
        self.writer.entry(entry, &corpus.source.vocabulary, &corpus.target.vocabulary)
    }

    /// Completes the text files, renames them to their final names, and returns these. Fails if writing
    /// fails.
    pub fn commit(self) -> Result<[&'static str; 2]> {
        self.writer.commit()?;
        if !self.is_rules {
            return Ok(["phrase-table.gz", "reordering-table.gz"]);
        }
        AtomicFile::write_all_to(&self.directory.join("glue-grammar"), GLUE.as_bytes())?;
        Ok(["rule-table.gz", "glue-grammar"])
    }
}

/// Discounts that are used if the counts of counts give invalid ones.
const FALLBACK: [f64; 3] = [0.5, 1.0, 1.5];

/// Number of units that a count of 1 has. Sums of integers do not depend on the order of additions.
const UNIT: f64 = 4_294_967_296.0;

/// A byte string with a count, ordered by its bytes.
#[derive(Debug, Clone)]
struct Counted {
    /// First eight bytes of the key, for fast comparison.
    head: u64,
    key: Box<[u8]>,
    count: u64,
}

impl Counted {
    fn new(key: &[u8], count: u64) -> Self {
        let mut head = [0; 8];
        let n = key.len().min(8);
        head[..n].copy_from_slice(&key[..n]);
        Counted { head: u64::from_be_bytes(head), key: key.into(), count }
    }
}

impl Record for Counted {
    fn order(&self, other: &Self) -> Ordering {
        self.head.cmp(&other.head).then_with(|| self.key.cmp(&other.key))
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
    }

    fn size(&self) -> usize {
        // Includes the overhead of the allocator for short byte strings.
        size_of::<Self>() + self.key.len().next_multiple_of(16) + 8
    }

    fn put(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&(self.key.len() as u32).to_le_bytes())?;
        out.write_all(&self.count.to_le_bytes())?;
        out.write_all(&self.key)
    }

    fn get(input: &mut impl Read) -> io::Result<Option<Self>> {
        let mut length = [0; 4];
        if !read_or_end(input, &mut length)? {
            return Ok(None);
        }
        let mut count = [0; 8];
        input.read_exact(&mut count)?;
        let mut key = vec![0; u32::from_le_bytes(length) as usize];
        input.read_exact(&mut key)?;
        Ok(Some(Counted::new(&key, u64::from_le_bytes(count))))
    }
}

/// Ranks of the symbols of both sides (source, target): words, gaps and the end mark `|||`, in the order of
/// their bytes.
struct Ranks {
    /// Rank of each word, by number.
    rank: [Vec<u32>; 2],
    /// Number of the word, or mark, with each rank.
    word: [Vec<u32>; 2],
    /// Rank of the end mark.
    end: [u32; 2],
    /// Rank of the first gap; the second gap follows.
    gap: [u32; 2],
}

impl Ranks {
    /// Ranks the words of both vocabularies.
    fn new(source: &Vocabulary, target: &Vocabulary) -> Self {
        let mut new = Ranks {
            rank: [Vec::new(), Vec::new()],
            word: [Vec::new(), Vec::new()],
            end: [0; 2],
            gap: [0; 2],
        };
        for (side, vocabulary) in [source, target].into_iter().enumerate() {
            let mut ids: Vec<u32> = (0..vocabulary.len() as u32).collect();
            ids.sort_unstable_by(|&a, &b| vocabulary.word(a).as_bytes().cmp(vocabulary.word(b).as_bytes()));
            // Marks are inserted in the order of their bytes.
            let insert = |ids: &mut Vec<u32>, mark: &str, as_ids: &[u32]| {
                let text = |id: u32| match id {
                    END => "|||",
                    id if GAPS.contains(&id) => "[X][X]",
                    id => vocabulary.word(id),
                };
                let at = ids.partition_point(|&id| text(id).as_bytes() < mark.as_bytes());
                ids.splice(at..at, as_ids.iter().copied());
                at as u32
            };
            insert(&mut ids, "|||", &[END]);
            new.gap[side] = insert(&mut ids, "[X][X]", &GAPS);
            new.rank[side] = vec![0; vocabulary.len()];
            for (rank, &id) in ids.iter().enumerate() {
                if id == END {
                    new.end[side] = rank as u32;
                } else if !GAPS.contains(&id) {
                    new.rank[side][id as usize] = rank as u32;
                }
            }
            new.word[side] = ids;
        }
        new
    }

    /// Decodes symbols up to their end mark into `out`; returns the remaining bytes.
    fn read<'a>(&self, side: usize, mut bytes: &'a [u8], out: &mut Vec<u32>) -> &'a [u8] {
        out.clear();
        while let Some((rank, rest)) = bytes.split_first_chunk::<4>() {
            bytes = rest;
            let rank = u32::from_be_bytes(*rank);
            if rank == self.end[side] {
                break;
            }
            out.push(self.word[side][rank as usize]);
        }
        bytes
    }
}

/// Symbol of the end mark `|||` among word numbers.
const END: u32 = u32::MAX - 2;

/// Encoder of phrase pairs and rules as byte strings whose order is that of the table.
struct Encoder<'a> {
    corpus: &'a Corpus,
    ranks: &'a Ranks,
    key: Vec<u8>,
    /// Position in the rule of each word of the phrase (source, target); `None` inside gaps.
    place: [Vec<Option<u8>>; 2],
}

impl Encoder<'_> {
    /// Encodes a rule of sentence pair `s`: the ranks of its source and target symbols, each with its end
    /// mark, and its links.
    fn encode(&mut self, s: usize, linked: &Linked, rule: &Rule) -> &mut Vec<u8> {
        let Rule { whole, gaps } = rule;
        self.key.clear();
        let sides = [self.corpus.source.sentence(s), self.corpus.target.sentence(s)];
        for (side, words) in sides.into_iter().enumerate() {
            let span = |x: &Spans| match side {
                0 => (x.source_start, x.source_end),
                _ => (x.target_start, x.target_end),
            };
            let (start, end) = span(whole);
            let (mut at, mut place) = (start, 0u8);
            self.place[side].clear();
            while at < end {
                let gap = gaps.iter().position(|g| g.as_ref().is_some_and(|g| span(g).0 == at));
                let rank = if let Some(Some(gap)) = gap.map(|g| gaps[g].as_ref().map(|x| (g, span(x).1))) {
                    let (index, behind) = gap;
                    self.place[side].resize(behind - start, None);
                    at = behind;
                    self.ranks.gap[side] + index as u32
                } else {
                    self.place[side].push(Some(place));
                    at += 1;
                    self.ranks.rank[side][words[at - 1] as usize]
                };
                place += 1;
                self.key.extend(rank.to_be_bytes());
            }
            self.key.extend(self.ranks.end[side].to_be_bytes());
        }
        let (key, place) = (&mut self.key, &self.place);
        linked.inner(whole, |i, j| {
            if let (Some(i), Some(j)) = (place[0][i], place[1][j]) {
                key.extend([i, j]);
            }
        });
        // End of the links, larger than any position, so that equal links are adjacent in the order.
        key.push(u8::MAX);
        &mut self.key
    }
}

/// Number of sentence pairs whose occurrences are collected before they are passed to the sorter.
const BLOCK: usize = 1024;
/// Number of sentence pairs that one task processes.
const CHUNK: usize = 32;

/// Data that all steps of the extraction share.
struct Job<'a> {
    ranks: Ranks,
    settings: &'a Settings,
    directory: PathBuf,
    progress: Progress<'a>,
}

impl<'a> Job<'a> {
    /// Returns a sorter with a quarter of the memory; the first one, which adds up equal records, has half.
    fn sorter(&self, add: bool) -> Sorter<'a, Counted> {
        let bytes = self.settings.sort.memory.bytes() / if add { 2 } else { 4 };
        Sorter::new(bytes, add, &self.directory, self.progress)
    }

    /// Returns a queue with a quarter of the memory for records in order.
    fn tape(&self) -> Sorter<'a, Counted> {
        Sorter::tape(self.settings.sort.memory.bytes() / 4, &self.directory, self.progress)
    }
}

/// Extracts and scores the phrases or rules of word-aligned text, and calls `each` with every entry, in the
/// order of Moses' tables. `links` has one sorted list of links per sentence pair of the corpus. Returns
/// statistics.
///
/// Reports `lines` while words are counted and phrases are extracted, then `phrases` (or `rules`) while
/// occurrences are counted, then `pairs` while they are scored. Fails if no phrase can be extracted, if
/// sorting or `each` fails, and with kind [`Interrupted`](luthier_core::ErrorKind::Interrupted) if `progress`
/// returns *stop*.
///
/// ```
/// use luthier_core::Progress;
/// use luthier_io::Input;
/// use luthier_train::{Corpus, extract::{Settings, extract}};
/// let input = |text: &'static str| Input::new("text", text.as_bytes()).unwrap();
/// let corpus = Corpus::read(&mut input("das haus\n"), &mut input("the house\n"), 100, Progress::NONE)?;
/// let mut sources = Vec::new();
/// let report = extract(&corpus, &[vec![(0, 0), (1, 1)]], &Settings::default(), Progress::NONE, &mut |entry| {
///     sources.push(entry.source.len());
///     Ok(())
/// })?;
/// assert_eq!((report.pairs, sources), (3, vec![2, 1, 1])); // das haus, das, haus
/// # luthier_core::Result::Ok(())
/// ```
pub fn extract(
    corpus: &Corpus,
    links: &[Vec<Link>],
    settings: &Settings,
    progress: Progress<'_>,
    each: &mut dyn FnMut(&Entry<'_>) -> Result<()>,
) -> Result<Report> {
    let mut report = Report::default();
    let ranks = Ranks::new(&corpus.source.vocabulary, &corpus.target.vocabulary);
    let job = Job { ranks, settings, directory: settings.sort.directory(), progress };
    let lexicon = Lexicon::new(corpus, links, progress)?;
    let found = find(corpus, links, &job, &mut report)?;
    if report.found == 0 {
        return Err(Error::new("no phrase can be extracted from the alignment")
            .hint("check that the alignment is not empty and belongs to this text"));
    }
    let (pairs, totals) = count(found, &job, &mut report)?;
    score(pairs, totals, &job, &lexicon, &mut report, each)?;
    Ok(report)
}

/// Returns all occurrences of phrases or rules, sorted, with equal ones combined.
fn find(corpus: &Corpus, links: &[Vec<Link>], job: &Job<'_>, report: &mut Report) -> Result<Sorted<Counted>> {
    let meter = Meter::new(job.progress, "lines", corpus.len());
    let mut sorter = job.sorter(true);
    for block in (0..corpus.len()).step_by(BLOCK) {
        let sentences = BLOCK.min(corpus.len() - block);
        let chunks = map_chunks(sentences, CHUNK, |range| {
            let mut linked = Linked::default();
            let mut finder = RuleFinder::default();
            let mut encoder =
                Encoder { corpus, ranks: &job.ranks, key: Vec::new(), place: [Vec::new(), Vec::new()] };
            meter.add(range.len())?;
            let (mut phrases, mut records) = (Vec::new(), Vec::new());
            for s in range.map(|s| s + block) {
                linked.set(corpus.source.sentence(s).len(), corpus.target.sentence(s).len(), &links[s]);
                match &job.settings.what {
                    What::Phrases(limits) => {
                        linked.phrases(limits.max_length.into(), &mut phrases);
                        for spans in &phrases {
                            let [backward, forward] = linked.orientations(spans);
                            let rule = Rule { whole: *spans, gaps: [None; 2] };
                            let key = encoder.encode(s, &linked, &rule);
                            key.push(3 * backward as u8 + forward as u8);
                            records.push(Counted::new(key, UNIT as u64));
                        }
                    }
                    What::Rules(limits) => finder.rules(&linked, limits, |rules| {
                        let share = (UNIT / rules.len() as f64).round() as u64;
                        for rule in rules {
                            let key = encoder.encode(s, &linked, rule);
                            key.push(0);
                            records.push(Counted::new(key, share));
                        }
                    }),
                }
            }
            Result::Ok(records)
        });
        for records in chunks {
            for record in records? {
                report.found += 1;
                sorter.push(record)?;
            }
        }
    }
    meter.finish()?;
    sorter.finish()
}

/// Counts of one target of the current source.
#[derive(Default)]
struct Pair {
    target: Vec<u8>,
    /// Count of the pair, in units.
    joint: u64,
    /// Most frequent links so far.
    links: Vec<u8>,
    /// Count of the most frequent links.
    most: u64,
    /// Links that are being counted.
    open: Vec<u8>,
    /// Count of the links that are being counted.
    seen: u64,
    /// Counts of the orientations: with respect to the previous phrase, then to the next.
    orientations: [u64; 6],
}

impl Pair {
    /// Ends the counting of the current links; they replace the most frequent ones if their count is larger.
    fn close(&mut self) {
        if self.seen > self.most {
            self.most = self.seen;
            std::mem::swap(&mut self.links, &mut self.open);
        }
        self.seen = 0;
    }

    /// Adds occurrences of the pair with these links and orientations.
    fn take(&mut self, links: &[u8], orientation: u8, count: u64) {
        if self.open != links || self.seen == 0 {
            self.close();
            self.open.clear();
            self.open.extend(links);
        }
        self.seen += count;
        self.joint += count;
        self.orientations[(orientation / 3) as usize] += count;
        self.orientations[3 + (orientation % 3) as usize] += count;
    }
}

/// Length in bytes of the numbers that follow the symbols and links in the record of a pair: length of the
/// links, counts of the source, counts of orientations.
const TAIL: usize = 4 + 8 * (Seen::NUMBERS + 6);

/// Counts of a source or target.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    /// Number of occurrences, in units.
    total: u64,
    /// Number of different partners, of those seen once with it, and of those seen twice.
    partners: [u64; 3],
}

impl Seen {
    /// Number of 64-bit numbers in a record.
    const NUMBERS: usize = 4;

    /// Adds a partner that was seen `count` units with it.
    fn add(&mut self, count: u64) {
        self.total += count;
        self.partners[0] += 1;
        if let times @ 1..=2 = times(count) {
            self.partners[times] += 1;
        }
    }

    /// Appends the counts to a record.
    fn put(&self, out: &mut Vec<u8>) {
        for n in [self.total].iter().chain(&self.partners) {
            out.extend(n.to_be_bytes());
        }
    }

    /// Reads the counts from a record.
    fn get(bytes: &[u8]) -> Self {
        Seen { total: u64_at(bytes, 0), partners: [1, 2, 3].map(|k| u64_at(bytes, k)) }
    }
}

/// Returns a count rounded to a whole number, at least 1.
fn times(count: u64) -> usize {
    (real(count).round() as usize).max(1)
}

/// Returns a count in units as a number of occurrences.
fn real(count: u64) -> f64 {
    count as f64 / UNIT
}

/// Returns the k-th 64-bit number in `bytes`.
fn u64_at(bytes: &[u8], k: usize) -> u64 {
    bytes.as_chunks::<8>().0.get(k).map_or(0, |b| u64::from_be_bytes(*b))
}

/// Returns the pairs in order with the counts of their sources, and the counts of their targets in the same
/// order.
fn count(
    mut found: Sorted<Counted>,
    job: &Job<'_>,
    report: &mut Report,
) -> Result<(Sorted<Counted>, Sorted<Counted>)> {
    let meter = Meter::new(job.progress, job.settings.what.name(), 0);
    let mut counter = Counter {
        tape: job.tape(),
        by_target: job.sorter(false),
        number: 0,
        by_times: [0; 5],
        key: Vec::new(),
    };
    let mut source: Vec<u8> = Vec::new();
    let mut group: Vec<Pair> = Vec::new();
    let mut done = 0;
    while let Some(record) = found.next()? {
        let (f, rest) = record.key.split_at(symbols_end(&record.key, job.ranks.end[0]));
        let (e, rest) = rest.split_at(symbols_end(rest, job.ranks.end[1]));
        let (links, orientation) = rest.split_at(rest.len() - 2);
        if f != source {
            counter.close(&source, &mut group)?;
            source.clear();
            source.extend(f);
            report.sources += 1;
        }
        if group.last().is_none_or(|p| p.target != e) {
            group.push(Pair { target: e.to_vec(), ..Pair::default() });
        }
        if let Some(pair) = group.last_mut() {
            pair.take(links, orientation[1], record.count);
        }
        done += 1;
        meter.set(done)?;
    }
    counter.close(&source, &mut group)?;
    meter.finish()?;
    report.pairs = counter.number;
    if job.settings.what.smoothing() == Smoothing::KneserNey {
        report.smooth(&counter.by_times);
    }
    Ok((counter.tape.finish()?, count_targets(counter.by_target.finish()?, job)?))
}

/// Counter of pairs, source by source.
struct Counter<'a> {
    /// Pairs in order, with the counts of their sources.
    tape: Sorter<'a, Counted>,
    /// Targets with the numbers of their pairs, sorted by target.
    by_target: Sorter<'a, Counted>,
    /// Number of pairs so far.
    number: u64,
    /// Counts of counts: number of pairs seen 0 to 4 times.
    by_times: [u64; 5],
    key: Vec<u8>,
}

impl Counter<'_> {
    /// Writes the records of a source, all targets of which are in `group`.
    fn close(&mut self, source: &[u8], group: &mut Vec<Pair>) -> Result<()> {
        let mut seen = Seen::default();
        for pair in group.iter() {
            seen.add(pair.joint);
        }
        let key = &mut self.key;
        for mut pair in group.drain(..) {
            pair.close();
            if let Some(t) = self.by_times.get_mut(times(pair.joint)) {
                *t += 1;
            }
            key.clear();
            key.extend(&pair.target);
            key.extend(self.number.to_be_bytes());
            self.by_target.push(Counted::new(key, pair.joint))?;
            key.clear();
            key.extend(source);
            key.extend(&pair.target);
            key.extend(&pair.links);
            key.extend((pair.links.len() as u32).to_be_bytes());
            seen.put(key);
            for n in &pair.orientations {
                key.extend(n.to_be_bytes());
            }
            self.tape.push(Counted::new(key, pair.joint))?;
            self.number += 1;
        }
        Ok(())
    }
}

impl Report {
    /// Computes the discounts from the counts of counts: the number of pairs seen 0 to 4 times.
    fn smooth(&mut self, by_times: &[u64; 5]) {
        let found = discounts(by_times);
        let sound = by_times[1..].iter().all(|&t| t > 0)
            && found.iter().zip([1.0, 2.0, 3.0]).all(|(d, most)| (0.0..most).contains(d));
        self.guessed = !sound;
        self.discounts = Some(if sound { found } else { FALLBACK });
    }
}

/// Returns the length in bytes of the symbols up to and including their end mark.
fn symbols_end(bytes: &[u8], end: u32) -> usize {
    let end = end.to_be_bytes();
    bytes.as_chunks::<4>().0.iter().position(|c| *c == end).map_or(bytes.len(), |p| 4 * (p + 1))
}

/// Returns the counts of the target of each pair, in the order of the pairs.
fn count_targets(mut sorted: Sorted<Counted>, job: &Job<'_>) -> Result<Sorted<Counted>> {
    let meter = Meter::new(job.progress, "pairs", 0);
    let mut back = job.sorter(false);
    let mut done = 0;
    let mut group: Vec<Counted> = Vec::new();
    let mut close = |group: &mut Vec<Counted>| -> Result<()> {
        let mut seen = Seen::default();
        for one in group.iter() {
            seen.add(one.count);
        }
        for g in group.drain(..) {
            let mut key = g.key[g.key.len() - 8..].to_vec();
            seen.put(&mut key);
            back.push(Counted::new(&key, 0))?;
        }
        Ok(())
    };
    while let Some(record) = sorted.next()? {
        let target = |r: &Counted| r.key.len() - 8;
        if group.last().is_some_and(|g| g.key[..target(g)] != record.key[..target(&record)]) {
            close(&mut group)?;
        }
        group.push(record);
        done += 1;
        meter.set(done)?;
    }
    close(&mut group)?;
    meter.finish()?;
    back.finish()
}

/// Scores all pairs and calls `each` with every entry.
fn score(
    mut pairs: Sorted<Counted>,
    mut totals: Sorted<Counted>,
    job: &Job<'_>,
    lexicon: &Lexicon,
    report: &mut Report,
    each: &mut dyn FnMut(&Entry<'_>) -> Result<()>,
) -> Result<()> {
    let ranks = &job.ranks;
    let meter = Meter::new(job.progress, "pairs", report.pairs as usize);
    let (mut source, mut target, mut links, mut done) = (Vec::new(), Vec::new(), Vec::new(), 0);
    while let (Some(pair), Some(total)) = (pairs.next()?, totals.next()?) {
        let (key, tail) = pair.key.split_at(pair.key.len() - TAIL);
        let rest = ranks.read(1, ranks.read(0, key, &mut source), &mut target);
        let (linked, numbers) = tail.split_at(4);
        let linked = linked.iter().fold(0, |n, b| 256 * n + *b as usize);
        links.clear();
        links.extend(rest[..linked].as_chunks::<2>().0.iter().map(|c| (c[0], c[1])));
        let (of_source, of_target) = (Seen::get(numbers), Seen::get(&total.key[8..]));
        let scores = Scores { discounts: report.discounts, pairs: report.pairs };
        let direct = scores.given(pair.count, &of_source, &of_target);
        let inverse = scores.given(pair.count, &of_target, &of_source);
        let [lexical_inverse, lexical_direct] =
            lexicon.weights(&source, &target, &links, |w| !GAPS.contains(&w));
        let orientations: [f64; 6] = std::array::from_fn(|k| real(u64_at(numbers, Seen::NUMBERS + k)));
        let reordering = smoothed(&orientations);
        let gaps = source.iter().filter(|w| GAPS.contains(w)).count();
        report.entries[gaps] += 1;
        each(&Entry {
            source: &source,
            target: &target,
            links: &links,
            scores: &[inverse, lexical_inverse, direct, lexical_direct],
            counts: &[of_target.total, of_source.total, pair.count].map(real),
            reordering: if job.settings.what.is_rules() { &[] } else { &reordering },
        })?;
        done += 1;
        meter.set(done)?;
    }
    meter.finish()
}

/// Estimator of translation probabilities from counts.
struct Scores {
    /// Kneser–Ney discounts; `None` for relative frequencies.
    discounts: Option<[f64; 3]>,
    /// Number of different pairs.
    pairs: u64,
}

impl Scores {
    /// Returns p(other | given). With discounts, the mass discounted from the pairs of the given phrase is
    /// distributed in proportion to the number of partners of the other phrase.
    fn given(&self, joint: u64, given: &Seen, other: &Seen) -> f64 {
        let total = real(given.total);
        let Some(d) = self.discounts else { return real(joint) / total };
        let discount = d[times(joint).min(3) - 1].min(real(joint));
        let [partners, once, twice] = given.partners.map(|n| n as f64);
        let taken = (d[0] * once + d[1] * twice + d[2] * (partners - once - twice)).min(total);
        (real(joint) - discount) / total + taken / total * other.partners[0] as f64 / self.pairs as f64
    }
}

/// Returns the orientation probabilities, with 0.5 added to the count of each orientation in each direction.
fn smoothed(counts: &[f64; 6]) -> [f64; 6] {
    let mut p = [0.0; 6];
    for (p, c) in p.chunks_exact_mut(3).zip(counts.chunks_exact(3)) {
        let total: f64 = c.iter().sum();
        for (p, c) in p.iter_mut().zip(c) {
            *p = (c + 0.5) / (total + 1.5);
        }
    }
    p
}
