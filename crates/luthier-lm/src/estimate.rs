//! Interpolated modified Kneser–Ney estimation of n-gram models (Kneser and Ney 1995; Chen and Goodman 1998).
//!
//! The adjusted count c of an n-gram is its number of occurrences for the highest order and for n-grams that begin
//! with `<s>`, and the number of distinct words to its left otherwise. The probability of a word w after a context h,
//! where h′ is h without its first word, is
//!
//! p(w | h) = max(c(h w) − D(c), 0) / Σₓ c(h x) + γ(h) · p(w | h′), with γ(h) = Σₓ D(c(h x)) / Σₓ c(h x).
//!
//! D(c) is the discount D₁, D₂ or D₃ (for c ≥ 3) of the order; a pruned n-gram h x is left out of the model and enters
//! γ(h) with D(c) = c. 1-grams are interpolated with the uniform distribution over all words including `<unk>`. The
//! discounts of an order come from its counts of counts; if these give no valid discounts, 0.5, 1 and 1.5 are used.
//!
//! There is no iteration. N-grams are sorted externally three times, so that they need not fit into memory: by
//! suffix, to compute adjusted counts; by context, to normalise; by suffix again, to interpolate with the next lower
//! order. The cost is that of the sorts: O(n·N log N) for order n and N words of text.

use crate::{BEGIN, END, MAX_ORDER, UNKNOWN, gram::Gram, marked_vocabulary};
use luthier_core::{Error, Progress, Result, Vocabulary, discounts, math};
use luthier_io::{
    AtomicFile, Input, Meter,
    sort::{SortSettings, Sorted as SortedRecords, Sorter},
};
use serde::{Deserialize, Serialize};
use std::{
    fmt::Write as _,
    io::Write,
    path::{Path, PathBuf},
};

type Sorted = SortedRecords<Gram>;

/// Settings for estimating an n-gram language model.
///
/// ```
/// use luthier_lm::Settings;
/// assert_eq!(Settings::default().order, 5);
/// let rising = Settings { prune: vec![0, 2, 1], ..Settings::default() };
/// assert!(rising.check().is_err(), "longer n-grams are rarer, so thresholds must not fall");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
#[cfg_attr(feature = "clap", derive(clap::Args), group(skip))]
pub struct Settings {
    /// Order of the model, from 1 to 6.
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "N", default_value_t = Settings::default().order,
            value_parser = clap::value_parser!(u8).range(1..=MAX_ORDER as i64))
    )]
    pub order: u8,
    /// Pruning thresholds: drop n-grams that occur at most this often; one number per order, such as 0,0,1, of which
    /// the last also applies to higher orders [default: no pruning].
    #[cfg_attr(feature = "clap", arg(long, value_name = "N,…", value_delimiter = ','))]
    pub prune: Vec<u64>,
    /// Memory and temporary directory of the external sort; they do not affect the model.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub sort: SortSettings,
}

impl Default for Settings {
    /// Order 5, no pruning, 1 GiB of memory.
    fn default() -> Self {
        Settings { order: 5, prune: Vec::new(), sort: SortSettings::default() }
    }
}

impl Settings {
    /// Checks the settings. Fails if the order is not from 1 to 6, or if the pruning thresholds begin with a number
    /// above 0, decrease, or are more than the order.
    pub fn check(&self) -> Result<()> {
        let (order, prune) = (self.order, &self.prune);
        if !(1..=MAX_ORDER).contains(&self.order()) {
            return Err(Error::new(format!("the order is {order}, expected 1 to {MAX_ORDER}")));
        }
        if prune.first().is_some_and(|&p| p > 0) {
            return Err(Error::new("--prune begins with a number above 0, but 1-grams cannot be pruned")
                .hint("begin with 0, such as 0,0,1"));
        }
        if prune.windows(2).any(|w| w[0] > w[1]) {
            return Err(Error::new("the numbers of --prune must not decrease")
                .hint("use thresholds such as 0,0,1 or 0,1,2"));
        }
        if prune.len() > self.order() {
            return Err(Error::new(format!("--prune has {} numbers, but the order is {order}", prune.len())));
        }
        Ok(())
    }

    fn order(&self) -> usize {
        self.order.into()
    }

    /// Pruning threshold of an order: the largest count that is pruned.
    fn threshold(&self, n: usize) -> f64 {
        self.prune.get(n - 1).or(self.prune.last()).copied().unwrap_or(0) as f64
    }
}

/// Kneser–Ney discounts of one order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Discount {
    /// Discounts subtracted from adjusted counts of 0 (always 0), 1, 2, and 3 or more.
    pub amount: [f64; 4],
    /// Whether the discounts are the fixed values 0.5, 1 and 1.5, because the counts of counts gave no valid
    /// discounts.
    pub fallback: bool,
}

/// Statistics of an estimation: size of the text, and discounts and numbers of n-grams by order.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Number of sentences in the text.
    pub sentences: u64,
    /// Number of words in the text, without sentence markers.
    pub words: u64,
    /// Number of distinct words in the text.
    pub different: u64,
    /// Discounts of each order, beginning with 1-grams.
    pub discounts: Vec<Discount>,
    /// Number of n-grams of each order in the model, beginning with 1-grams.
    pub grams: Vec<u64>,
    /// Number of n-grams of each order that were pruned, beginning with 1-grams.
    pub pruned: Vec<u64>,
}

/// Discounts used if the counts of counts give no valid ones, as for artificial or very small texts.
const FALLBACK: [f64; 4] = [0.0, 0.5, 1.0, 1.5];

/// Settings shared by all steps.
struct Job<'a> {
    settings: &'a Settings,
    directory: PathBuf,
    progress: Progress<'a>,
}

impl<'a> Job<'a> {
    /// A sorter with the memory of one order.
    fn sorter(&self) -> Sorter<'a, Gram> {
        let bytes = self.settings.sort.memory.bytes() / 2 / self.settings.order();
        Sorter::new(bytes, false, &self.directory, self.progress)
    }

    /// A buffer for records that are written and read in the same order.
    fn tape(&self) -> Sorter<'a, Gram> {
        Sorter::tape(self.settings.sort.memory.bytes() / 16, &self.directory, self.progress)
    }
}

/// Estimates a model from a tokenised text file, one sentence per line, and writes it to `output` as an ARPA file,
/// which is compressed if its name ends in `.gz`. The file appears complete or not at all. Reports progress and fails
/// as [`estimate`] does.
pub fn estimate_file(
    text: &Path,
    settings: &Settings,
    output: &Path,
    progress: Progress<'_>,
) -> Result<Report> {
    settings.check()?;
    let mut input = Input::open(text)?;
    let mut out = AtomicFile::create(output)?;
    let report = estimate(&mut input, settings, &mut out, progress)?;
    out.commit()?;
    Ok(report)
}

/// Estimates a model from tokenised text, one sentence per line, by interpolated modified Kneser–Ney smoothing, and
/// writes it to `out` as an ARPA file.
///
/// Reports progress in `lines` while the text is read, then in `n-grams` for each step and order. Fails if the
/// settings are invalid, if the text is empty or contains `<s>`, `</s>` or `<unk>`, if reading, sorting or writing
/// fails, and with kind [`Interrupted`](luthier_core::ErrorKind::Interrupted) when `progress` answers *stop*. After a
/// failure `out` may contain an incomplete model.
///
/// ```
/// use luthier_core::Progress;
/// use luthier_io::Input;
/// use luthier_lm::{Settings, estimate};
/// let mut text = Input::new("text", "a b c\na b\n".as_bytes())?;
/// let mut arpa = Vec::new();
/// let settings = Settings { order: 2, ..Settings::default() };
/// let report = estimate(&mut text, &settings, &mut arpa, Progress::NONE)?;
/// assert_eq!((report.sentences, report.words, report.grams[0]), (2, 5, 6)); // a b c <unk> <s> </s>
/// assert!(arpa.starts_with(b"\\data\\\nngram 1=6\n"));
/// # luthier_core::Result::Ok(())
/// ```
pub fn estimate(
    input: &mut Input,
    settings: &Settings,
    out: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<Report> {
    settings.check()?;
    let order = settings.order();
    let job = Job { settings, directory: settings.sort.directory(), progress };
    let mut vocabulary = marked_vocabulary();
    let mut report = Report::default();
    let counted = count(input, &job, &mut vocabulary, &mut report)?;
    report.different = vocabulary.len() as u64 - 3;
    let (adjusted, tables) = adjust(counted, &job, &mut report)?;
    report.discounts = tables.iter().map(Discount::of).collect();
    let mut levels = Vec::new();
    let mut contexts = job.tape().finish()?;
    // From the highest order to the lowest: the back-off of an n-gram comes from the longer n-grams that begin with
    // it.
    for (n, grams) in (1..=order).rev().zip(adjusted.into_iter().rev()) {
        let (level, shorter) = weigh(grams, n, &report, contexts, &job)?;
        levels.push(level);
        contexts = shorter;
    }
    out.write_all(b"\\data\\\n").map_err(unwritten)?;
    for (n, grams) in report.grams.iter().enumerate() {
        writeln!(out, "ngram {}={grams}", n + 1).map_err(unwritten)?;
    }
    let uniform = 1.0 / (vocabulary.len() as f64 - 1.0);
    let mut mixer = Mixer { out, vocabulary: &vocabulary, report: &report, uniform };
    let mut shorter = job.tape().finish()?;
    for (n, level) in (1..=order).zip(levels.into_iter().rev()) {
        shorter = mixer.mix(level, n, shorter, &job)?;
    }
    mixer.out.write_all(b"\n\\end\\\n").map_err(unwritten)?;
    Ok(report)
}

/// Error about output that cannot be written.
#[allow(clippy::needless_pass_by_value)]
fn unwritten(e: std::io::Error) -> Error {
    Error::io("the model", "write it", &e)
}

/// Counts the n-grams of the highest order, sorted by suffix. At the beginning of a sentence they are shorter, and
/// padded with `BEGIN`.
fn count(
    input: &mut Input,
    job: &Job<'_>,
    vocabulary: &mut Vocabulary,
    report: &mut Report,
) -> Result<Sorted> {
    let bytes = job.settings.sort.memory.bytes() / 2;
    let mut sorter = Sorter::new(bytes, true, &job.directory, job.progress);
    let meter = Meter::new(job.progress, "lines", 0);
    let order = job.settings.order();
    let (mut buffer, mut words) = (Vec::new(), Vec::new());
    while input.line(&mut buffer)? {
        let text = input.utf8(&buffer)?;
        words.clear();
        words.resize(order.max(2) - 1, BEGIN);
        for word in text.split_ascii_whitespace() {
            if matches!(word, "<s>" | "</s>" | "<unk>" | "<UNK>") {
                return Err(input
                    .error(format!("the text contains {word}, which is reserved"))
                    .hint("remove sentence markers and <unk>, or replace them by other words"));
            }
            words.push(vocabulary.add(word));
            report.words += 1;
        }
        words.push(END);
        report.sentences += 1;
        for end in order.max(2) - 1..words.len() {
            let mut key = [0; MAX_ORDER];
            for (k, w) in key.iter_mut().zip(words[..=end].iter().rev().take(order)) {
                *k = *w;
            }
            sorter.push(Gram { key, numbers: [1.0, 0.0, 0.0] })?;
        }
        meter.set(report.sentences as usize)?;
    }
    if report.words == 0 {
        return Err(Error::in_file(input.name(), "has no words, expected one sentence per line"));
    }
    meter.finish()?;
    sorter.finish()
}

/// Counts of counts: number of n-grams with each adjusted count from 1 to 4.
type CountsOfCounts = [u64; 5];

/// Counts of the current suffix of some length.
#[derive(Clone, Copy, Default)]
struct Open {
    /// Number of distinct words to its left.
    lefts: f64,
    /// Number of occurrences.
    count: f64,
}

/// Computes adjusted counts of all orders from records sorted by suffix.
struct Adjuster<'a> {
    settings: &'a Settings,
    /// Adjusted counts of each order, to be sorted by context.
    sorters: Vec<Sorter<'a, Gram>>,
    /// Counts of counts of each order.
    tables: Vec<CountsOfCounts>,
    /// Number of n-grams of each order that are kept.
    kept: Vec<u64>,
    /// Number of n-grams of each order that are pruned.
    pruned: Vec<u64>,
    /// Suffixes of the current record, by length − 1.
    open: [Open; MAX_ORDER],
}

/// Computes adjusted counts of all orders, each sorted by context, and their counts of counts.
fn adjust(
    mut counted: Sorted,
    job: &Job<'_>,
    report: &mut Report,
) -> Result<(Vec<Sorted>, Vec<CountsOfCounts>)> {
    let order = job.settings.order();
    let mut adjuster = Adjuster {
        settings: job.settings,
        sorters: (0..order).map(|_| job.sorter()).collect(),
        tables: vec![[0; 5]; order],
        kept: vec![0; order],
        pruned: vec![0; order],
        open: [Open::default(); MAX_ORDER],
    };
    let meter = Meter::new(job.progress, "n-grams", 0);
    let (mut last, mut done) = (None, 0);
    loop {
        let record = counted.next()?;
        adjuster.close_until(last.as_ref(), record.as_ref())?;
        let Some(record) = record else { break };
        adjuster.take(last.as_ref(), &record);
        last = Some(record.key);
        done += 1;
        meter.set(done)?;
    }
    meter.finish()?;
    adjuster.finish(report)
}

impl Adjuster<'_> {
    /// Length of the longest common suffix of two records.
    fn same(&self, a: &[u32; MAX_ORDER], b: &[u32; MAX_ORDER]) -> usize {
        a.iter().zip(b).take_while(|(a, b)| a == b).count().min(self.settings.order())
    }

    /// Closes the suffixes of the last record that the next one does not share.
    fn close_until(&mut self, last: Option<&[u32; MAX_ORDER]>, next: Option<&Gram>) -> Result<()> {
        let Some(key) = last else { return Ok(()) };
        let same = next.map_or(0, |r| self.same(key, &r.key));
        for n in (same + 1..=length(key, self.settings.order())).rev() {
            self.close(n, key, key[n - 1] == BEGIN)?;
        }
        Ok(())
    }

    /// Counts a record for all its suffixes.
    fn take(&mut self, last: Option<&[u32; MAX_ORDER]>, record: &Gram) {
        let same = last.map_or(0, |l| self.same(l, &record.key));
        let length = length(&record.key, self.settings.order());
        for (n, gram) in self.open.iter_mut().enumerate().take(length) {
            if n >= same {
                *gram = Open::default();
            }
            gram.count += record.numbers[0];
            // The suffix that is longer by one word is new: one more distinct word to the left of this one.
            if n + 1 >= same && n + 1 < length {
                gram.lefts += 1.0;
            }
        }
    }

    /// Outputs a suffix of which all records have been seen; `begins` is whether it begins with `<s>`.
    fn close(&mut self, n: usize, key: &[u32; MAX_ORDER], begins: bool) -> Result<()> {
        let gram = self.open[n - 1];
        let adjusted = if n == self.settings.order() || begins { gram.count } else { gram.lefts };
        // <s> is never predicted.
        if n == 1 && key[0] == BEGIN {
            return Ok(());
        }
        if let Some(t) = self.tables[n - 1].get_mut(adjusted as usize) {
            *t += 1;
        }
        let kept = n == 1 || gram.count > self.settings.threshold(n);
        self.pruned[n - 1] += u64::from(!kept);
        self.kept[n - 1] += u64::from(kept);
        let mut forward = [0; MAX_ORDER];
        for (f, w) in forward.iter_mut().zip(key[..n].iter().rev()) {
            *f = *w;
        }
        let numbers = [adjusted, f64::from(u8::from(kept)), 0.0];
        self.sorters[n - 1].push(Gram { key: forward, numbers })
    }

    /// Returns the sorted adjusted counts and counts of counts of all orders.
    fn finish(mut self, report: &mut Report) -> Result<(Vec<Sorted>, Vec<CountsOfCounts>)> {
        // <unk> and <s> are 1-grams with count 0.
        for word in [UNKNOWN, BEGIN] {
            let mut key = [0; MAX_ORDER];
            key[0] = word;
            self.sorters[0].push(Gram { key, numbers: [0.0, 1.0, 0.0] })?;
            self.kept[0] += 1;
        }
        (report.grams, report.pruned) = (self.kept, self.pruned);
        let sorted = self.sorters.into_iter().map(Sorter::finish).collect::<Result<Vec<_>>>()?;
        Ok((sorted, self.tables))
    }
}

/// Number of words of a record: up to and including the first `<s>` from the right.
fn length(key: &[u32; MAX_ORDER], order: usize) -> usize {
    key[..order].iter().position(|&w| w == BEGIN).map_or(order, |p| p + 1)
}

impl Discount {
    /// Discounts from counts of counts (Chen and Goodman 1998), or the fallback if one of them is not between 0 and
    /// its count.
    fn of(by_times: &CountsOfCounts) -> Self {
        let [one, two, more] = discounts(by_times);
        let amount = [0.0, one, two, more];
        let sound = (1..4).all(|k| (0.0..=k as f64).contains(&amount[k]));
        Discount { amount: if sound { amount } else { FALLBACK }, fallback: !sound }
    }

    /// Discount of an adjusted count.
    fn for_count(&self, count: f64) -> f64 {
        self.amount[(count as usize).min(3)]
    }
}

/// Normalises the n-grams of one order. Takes adjusted counts sorted by context; returns records sorted by suffix
/// with the discounted probability, the interpolation weight γ of the context, and the back-off; and γ of every
/// context, which is the back-off of the next lower order. `longer` is the γ of the next higher order.
fn weigh(
    mut grams: Sorted,
    n: usize,
    report: &Report,
    longer: Sorted,
    job: &Job<'_>,
) -> Result<(Sorted, Sorted)> {
    let meter = Meter::new(job.progress, "n-grams", (report.grams[n - 1] + report.pruned[n - 1]) as usize);
    let mut weigher = Weigher {
        n,
        discount: report.discounts[n - 1],
        out: job.sorter(),
        contexts: job.tape(),
        longer,
        next: None,
    };
    weigher.next = weigher.longer.next()?;
    let mut group: Vec<Gram> = Vec::new();
    let mut done = 0;
    loop {
        let record = grams.next()?;
        let ended = match (&record, group.last()) {
            (_, None) => false,
            (None, _) => true,
            (Some(r), Some(g)) => r.key[..n - 1] != g.key[..n - 1],
        };
        if ended {
            weigher.context(&mut group)?;
        }
        let Some(record) = record else { break };
        group.push(record);
        done += 1;
        meter.set(done)?;
    }
    meter.finish()?;
    Ok((weigher.out.finish()?, weigher.contexts.finish()?))
}

/// Computes probabilities and back-offs of the n-grams of one order, context by context.
struct Weigher<'a> {
    n: usize,
    discount: Discount,
    out: Sorter<'a, Gram>,
    /// Interpolation weight γ of each context.
    contexts: Sorter<'a, Gram>,
    /// γ of the contexts of the next higher order.
    longer: Sorted,
    /// Next record of `longer`.
    next: Option<Gram>,
}

impl Weigher<'_> {
    /// Processes all n-grams of one context, and empties `group`.
    fn context(&mut self, group: &mut Vec<Gram>) -> Result<()> {
        let (n, discount) = (self.n, self.discount);
        let total: f64 = group.iter().map(|g| g.numbers[0]).sum();
        let taken = |g: &Gram| {
            if g.numbers[1] > 0.0 { discount.for_count(g.numbers[0]) } else { g.numbers[0] }
        };
        let taken: f64 = group.iter().map(taken).sum();
        let rest = taken / total;
        let mut context = [0; MAX_ORDER];
        context[..n - 1].copy_from_slice(&group[0].key[..n - 1]);
        self.contexts.push(Gram { key: context, numbers: [rest, 0.0, 0.0] })?;
        for gram in group.drain(..).filter(|g| g.numbers[1] > 0.0) {
            let share = (gram.numbers[0] - discount.for_count(gram.numbers[0])) / total;
            while self.next.is_some_and(|l| l.key < gram.key) {
                self.next = self.longer.next()?;
            }
            let back_off = self.next.filter(|l| l.key == gram.key).map_or(NO_CONTEXT, |l| l.numbers[0]);
            let mut key = [0; MAX_ORDER];
            for (k, w) in key.iter_mut().zip(gram.key[..n].iter().rev()) {
                *k = *w;
            }
            self.out.push(Gram { key, numbers: [share, rest, back_off] })?;
        }
        Ok(())
    }
}

/// Interpolates with the lower order, and writes the ARPA file.
struct Mixer<'a> {
    out: &'a mut dyn Write,
    vocabulary: &'a Vocabulary,
    report: &'a Report,
    /// Uniform probability of a word, with which 1-grams are interpolated.
    uniform: f64,
}

impl Mixer<'_> {
    /// Interpolates one order, p = discounted + γ·p(lower order), and writes its section. All records are sorted by
    /// suffix, so that one pass over both orders suffices. Returns the probabilities for the next higher order.
    fn mix(&mut self, mut level: Sorted, n: usize, mut shorter: Sorted, job: &Job<'_>) -> Result<Sorted> {
        let meter = Meter::new(job.progress, "n-grams", self.report.grams[n - 1] as usize);
        let mut kept = job.tape();
        let mut done = 0;
        let mut before = shorter.next()?;
        let mut line = String::new();
        writeln!(self.out, "\n\\{n}-grams:").map_err(unwritten)?;
        while let Some(record) = level.next()? {
            let [share, rest, back_off] = record.numbers;
            let lower = if n == 1 {
                self.uniform
            } else {
                let mut suffix = record.key;
                suffix[n - 1] = 0;
                while before.is_some_and(|b| b.key < suffix) {
                    before = shorter.next()?;
                }
                before.filter(|b| b.key == suffix).map_or(0.0, |b| b.numbers[0])
            };
            let p = share + rest * lower;
            let begin = n == 1 && record.key[0] == BEGIN;
            line.clear();
            let _ = write!(line, "{}\t", if begin { 0.0 } else { math::log10(p) as f32 });
            for (i, &w) in record.key[..n].iter().rev().enumerate() {
                line += if i > 0 { " " } else { "" };
                line += self.vocabulary.word(w);
            }
            if n < self.report.grams.len() {
                let _ = write!(line, "\t{}", logarithm(back_off));
            }
            line.push('\n');
            self.out.write_all(line.as_bytes()).map_err(unwritten)?;
            kept.push(Gram { key: record.key, numbers: [p, 0.0, 0.0] })?;
            done += 1;
            meter.set(done)?;
        }
        meter.finish()?;
        kept.finish()
    }
}

/// Marks the back-off of an n-gram that is not a context, which no query uses.
const NO_CONTEXT: f64 = -1.0;

/// log₁₀ of a back-off weight; −99 for a weight of 0.
fn logarithm(back_off: f64) -> f32 {
    match back_off {
        NO_CONTEXT => 0.0,
        b if b > 0.0 => math::log10(b) as f32,
        _ => -99.0,
    }
}
