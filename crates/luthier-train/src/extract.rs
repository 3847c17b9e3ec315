//! From aligned text to tables: phrases or rules are found, sorted, counted and scored.
//!
//! Each entry gets p(f | e), its lexical weight, p(e | f) and its lexical weight (Koehn et al. 2003), and phrases six
//! orientation probabilities. p(e | f) is the relative frequency c(f, e)/c(f) or, with modified Kneser–Ney smoothing
//! (Foster et al. 2006), (c − D(c))/c(f) + γ(f)·n(e)/n: what the discounts D take away from the pairs of f goes to all
//! targets by how many sources n(e) they were seen with. An occurrence of a phrase counts 1, shared equally among the rules
//! that are made from it. It is one pass without iteration; the cost is that of sorting all occurrences, O(N log N).
//!
//! All that is found goes through three sorts that may leave memory: by source and target (to count pairs and sources),
//! by target (to count targets), and back by number of the pair. Words are sorted by their bytes and phrases as if `|||`
//! stood behind them, so that tables come out in the order that other programs expect.

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

/// What is extracted from aligned text, with its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// Phrase pairs with lexical reordering.
    Phrases(PhraseSettings),
    /// Hierarchical rules.
    Rules(RuleLimits),
}

impl What {
    /// Whether hierarchical rules are extracted.
    pub fn is_rules(self) -> bool {
        matches!(self, What::Rules(_))
    }

    fn name(self) -> &'static str {
        if self.is_rules() { "rules" } else { "phrases" }
    }

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
    /// Whether phrases or rules are extracted, with their limits.
    pub what: What,
    /// Memory and temporary directory of sorting; they do not affect the table.
    #[serde(flatten)]
    pub sort: SortSettings,
}

impl Default for Settings {
    /// Phrases with their default limits, 1 GiB of memory.
    fn default() -> Self {
        Settings { what: What::Phrases(PhraseSettings::default()), sort: SortSettings::default() }
    }
}

/// Statistics of one extraction of phrases or rules: occurrences, entries of the table, discounts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Number of occurrences of phrases or rules in the text.
    pub found: u64,
    /// Number of different phrase pairs or rules: entries of the table.
    pub pairs: u64,
    /// Number of entries of the table with no, one and two gaps.
    pub entries: [u64; 3],
    /// Number of different sources of the entries of the table.
    pub sources: u64,
    /// Kneser–Ney discounts for pairs seen once, twice, and three times or more; `None` without smoothing.
    pub discounts: Option<[f64; 3]>,
    /// Whether the discounts are the fixed guess 0.5, 1 and 1.5, because counts of counts gave no usable ones.
    pub guessed: bool,
}

/// The text files of a table in a directory, named and written as Moses does: `phrase-table.gz` and `reordering-table.gz`,
/// or `rule-table.gz` and `glue-grammar`. The files appear when [`TextTables::commit`] is called; dropped before, nothing is
/// left of them.
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

/// Rules that put phrases one after another, as Moses writes them.
const GLUE: &str = "\
<s> [X] ||| <s> [S] ||| 1 ||| 0-0 ||| 0 ||| |||
[X][S] </s> [X] ||| [X][S] </s> [S] ||| 1 ||| 0-0 1-1 ||| 0 ||| |||
[X][S] [X][X] [X] ||| [X][S] [X][X] [S] ||| 2.718 ||| 0-0 1-1 ||| 0 ||| |||
";

impl TextTables {
    /// Opens the text files of a table of phrases or rules in a directory that exists. Fails if a file cannot be created.
    pub fn create(what: What, directory: &Path) -> Result<Self> {
        let path = |name: &str| directory.join(name);
        let writer = if what.is_rules() {
            TextWriter::create(&path("rule-table.gz"), None, true)?
        } else {
            TextWriter::create(&path("phrase-table.gz"), Some(&path("reordering-table.gz")), false)?
        };
        Ok(TextTables { writer, directory: directory.to_owned(), is_rules: what.is_rules() })
    }

    /// Writes an entry of the table, whose words are numbers in the vocabularies of a corpus. Fails if writing fails.
    pub fn entry(&mut self, entry: &Entry<'_>, corpus: &Corpus) -> Result<()> {
        self.writer.entry(entry, &corpus.source.vocabulary, &corpus.target.vocabulary)
    }

    /// Completes the text files and gives them their names, which are returned. Fails if writing fails.
    pub fn commit(self) -> Result<[&'static str; 2]> {
        self.writer.commit()?;
        if !self.is_rules {
            return Ok(["phrase-table.gz", "reordering-table.gz"]);
        }
        AtomicFile::write_all_to(&self.directory.join("glue-grammar"), GLUE.as_bytes())?;
        Ok(["rule-table.gz", "glue-grammar"])
    }
}

/// Discounts where counts of counts are no help.
const FALLBACK: [f64; 3] = [0.5, 1.0, 1.5];

/// Counts are multiples of one in this many: fractions add up to the same in any order.
const UNIT: f64 = 4_294_967_296.0;

/// Bytes in order, with a count.
#[derive(Debug, Clone)]
struct Counted {
    /// The first eight bytes, for fast comparison.
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
        // What the allocator adds to short strings of bytes, too.
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

/// Words of both sides in the order of their bytes, with the marks that tables have.
struct Ranks {
    /// By number of the word: source, then target.
    rank: [Vec<u32>; 2],
    /// The other way round.
    word: [Vec<u32>; 2],
    end: [u32; 2],
    gap: [u32; 2],
}

impl Ranks {
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
            // Marks go where their bytes belong.
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

    /// Reads symbols up to the mark of their end; returns what follows.
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

/// Stands for `|||` among numbers of words.
const END: u32 = u32::MAX - 2;

/// Writes the symbols of a phrase or rule.
struct Encoder<'a> {
    corpus: &'a Corpus,
    ranks: &'a Ranks,
    key: Vec<u8>,
    /// Position in the rule of each position of the phrase: source, then target; none inside gaps.
    place: [Vec<Option<u8>>; 2],
}

impl Encoder<'_> {
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
        // Equal links stand together whatever follows: no position is so large.
        key.push(u8::MAX);
        &mut self.key
    }
}

/// Sentences between two looks at the sorter.
const BLOCK: usize = 1024;
const CHUNK: usize = 32;

/// What all steps share.
struct Job<'a> {
    ranks: Ranks,
    settings: &'a Settings,
    directory: PathBuf,
    progress: Progress<'a>,
}

impl<'a> Job<'a> {
    /// A sorter; the first one, which adds equal records, has half of the memory.
    fn sorter(&self, add: bool) -> Sorter<'a, Counted> {
        let bytes = self.settings.sort.memory.bytes() / if add { 2 } else { 4 };
        Sorter::new(bytes, add, &self.directory, self.progress)
    }

    fn tape(&self) -> Sorter<'a, Counted> {
        Sorter::tape(self.settings.sort.memory.bytes() / 4, &self.directory, self.progress)
    }
}

/// Extracts the phrases or rules of aligned text, scores them, and calls `each` with every entry, sorted as Moses sorts
/// tables. `links` has one sorted list for each pair of the corpus.
///
/// Reports `lines` while words are counted and phrases are found, then `phrases` (or `rules`) while occurrences are
/// counted, then `pairs` while they are scored. Fails if the links leave no phrase, if sorting or `each` fails, and with
/// kind [`Interrupted`](luthier_core::ErrorKind::Interrupted) when `progress` answers *stop*.
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
        return Err(Error::new("the links leave no phrase to extract")
            .hint("is the alignment empty, or are its lines not those of the text?"));
    }
    let (pairs, totals) = count(found, &job, &mut report)?;
    score(pairs, totals, &job, &lexicon, &mut report, each)?;
    Ok(report)
}

/// All phrases or rules, sorted, equal ones together.
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

/// A source with one of its targets, as they are counted up.
#[derive(Default)]
struct Pair {
    target: Vec<u8>,
    joint: u64,
    /// Links that were seen most often, and how often.
    links: Vec<u8>,
    most: u64,
    /// Links that are being counted.
    open: Vec<u8>,
    seen: u64,
    orientations: [u64; 6],
}

impl Pair {
    /// Ends the counting of links: of equally frequent ones the first stay.
    fn close(&mut self) {
        if self.seen > self.most {
            self.most = self.seen;
            std::mem::swap(&mut self.links, &mut self.open);
        }
        self.seen = 0;
    }

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

/// Numbers behind the symbols and links of a pair on its way to the end: length of the links, what is known of the
/// source, orientations.
const TAIL: usize = 4 + 8 * (Seen::NUMBERS + 6);

/// How often a source or target was seen, with how many partners, and how many of them once and twice.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    total: u64,
    partners: [u64; 3],
}

impl Seen {
    const NUMBERS: usize = 4;

    fn add(&mut self, count: u64) {
        self.total += count;
        self.partners[0] += 1;
        if let times @ 1..=2 = times(count) {
            self.partners[times] += 1;
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        for n in [self.total].iter().chain(&self.partners) {
            out.extend(n.to_be_bytes());
        }
    }

    fn get(bytes: &[u8]) -> Self {
        Seen { total: u64_at(bytes, 0), partners: [1, 2, 3].map(|k| u64_at(bytes, k)) }
    }
}

/// A count as a whole number, at least 1.
fn times(count: u64) -> usize {
    (real(count).round() as usize).max(1)
}

fn real(count: u64) -> f64 {
    count as f64 / UNIT
}

/// The k-th number of some.
fn u64_at(bytes: &[u8], k: usize) -> u64 {
    bytes.as_chunks::<8>().0.get(k).map_or(0, |b| u64::from_be_bytes(*b))
}

/// Pairs in order with the counts of their sources, and the counts of their targets in the same order.
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

/// Hands on pairs, source by source.
struct Counter<'a> {
    /// Pairs in order, with the counts of their sources.
    tape: Sorter<'a, Counted>,
    by_target: Sorter<'a, Counted>,
    /// Pairs so far.
    number: u64,
    /// How many pairs were seen 0 to 4 times.
    by_times: [u64; 5],
    key: Vec<u8>,
}

impl Counter<'_> {
    /// Ends a source, all targets of which are in the group.
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
    /// Discounts by how many pairs were seen 0 to 4 times.
    fn smooth(&mut self, by_times: &[u64; 5]) {
        let found = discounts(by_times);
        let sound = by_times[1..].iter().all(|&t| t > 0)
            && found.iter().zip([1.0, 2.0, 3.0]).all(|(d, most)| (0.0..most).contains(d));
        self.guessed = !sound;
        self.discounts = Some(if sound { found } else { FALLBACK });
    }
}

/// Length of the symbols up to the mark of their end, that included.
fn symbols_end(bytes: &[u8], end: u32) -> usize {
    let end = end.to_be_bytes();
    bytes.as_chunks::<4>().0.iter().position(|c| *c == end).map_or(bytes.len(), |p| 4 * (p + 1))
}

/// By number of the pair: how often its target was seen, and with how many sources.
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

/// Scores of all pairs.
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

/// How counts become probabilities.
struct Scores {
    discounts: Option<[f64; 3]>,
    pairs: u64,
}

impl Scores {
    /// p(other | given). With discounts, what is taken from the pairs of the given phrase goes to the other phrases by
    /// how many partners they have.
    fn given(&self, joint: u64, given: &Seen, other: &Seen) -> f64 {
        let total = real(given.total);
        let Some(d) = self.discounts else { return real(joint) / total };
        let discount = d[times(joint).min(3) - 1].min(real(joint));
        let [partners, once, twice] = given.partners.map(|n| n as f64);
        let taken = (d[0] * once + d[1] * twice + d[2] * (partners - once - twice)).min(total);
        (real(joint) - discount) / total + taken / total * other.partners[0] as f64 / self.pairs as f64
    }
}

/// Orientation probabilities: each way, half a count is added to each orientation.
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
