//! Interpolated modified Kneser–Ney estimation (Kneser and Ney 1995; Chen and Goodman 1998).
//!
//! The longest n-grams, and those that begin a sentence, have their counts; every other n-gram has the number of
//! different words before it. A count c is lowered by D₁, D₂ or D₃ (c ≥ 3), and what is taken away goes, within each
//! context, to the shorter context's distribution; that of single words is mixed with the uniform one. The n-grams
//! are sorted three times: by their end (to count what stands before), by their beginning (to sum over contexts), by
//! their end again (to mix with the shorter n-gram). Each time they are streamed, so that they need not fit into memory.

use crate::{BEGIN, END, MAX_ORDER, UNKNOWN, gram::Gram, marked_vocabulary};
use luthier_core::{Error, Result, Vocabulary, discounts};
use luthier_io::{
    Input,
    sort::{Sorted as SortedRecords, Sorter},
};
use std::{fmt::Write as _, io::Write, path::PathBuf};

type Sorted = SortedRecords<Gram>;

/// How to estimate.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Longest n-gram.
    pub order: usize,
    /// N-grams of order i + 1 with at most this count are left out; the last one holds for longer ones too.
    pub prune: Vec<u64>,
    /// Bytes for sorting.
    pub memory: usize,
    /// Where sorted runs go that do not fit.
    pub directory: PathBuf,
}

/// Discounts of one order for counts 1, 2 and 3 or more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Discount {
    /// What is taken from counts 0 (nothing), 1, 2, and 3 or more.
    pub amount: [f64; 4],
    /// Whether they are a guess, because counts of counts gave none.
    pub fallback: bool,
}

/// What was seen on the way.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Sentences.
    pub sentences: u64,
    /// Words, without the ends of sentences.
    pub words: u64,
    /// By order.
    pub discounts: Vec<Discount>,
    /// N-grams of the model, by order.
    pub grams: Vec<u64>,
    /// N-grams that pruning left out, by order.
    pub pruned: Vec<u64>,
}

/// Discounts where counts of counts are no help, as in artificial or tiny text.
const FALLBACK: [f64; 4] = [0.0, 0.5, 1.0, 1.5];

/// Estimates a model of text, a sentence a line, and writes it as an ARPA file.
pub fn estimate(
    input: &mut Input,
    settings: &Settings,
    out: &mut dyn Write,
    told: &mut dyn FnMut(&str),
) -> Result<Report> {
    let order = settings.order;
    let mut vocabulary = marked_vocabulary();
    let mut report = Report::default();
    let counted = count(input, settings, &mut vocabulary, &mut report)?;
    told(&format!(
        "{} sentences, {} words, {} different",
        report.sentences,
        report.words,
        vocabulary.len() - 3
    ));
    let (adjusted, tables) = adjust(counted, settings, &mut report)?;
    report.discounts = tables.iter().map(Discount::of).collect();
    told("counted what stands before");
    let mut levels = Vec::new();
    let mut contexts = Sorter::tape(settings.memory / 16, &settings.directory).finish()?;
    // From the longest to the shortest: an n-gram's back-off comes from those that begin with it.
    for (n, grams) in (1..=order).rev().zip(adjusted.into_iter().rev()) {
        let (level, shorter) = weigh(grams, n, &report.discounts[n - 1], contexts, settings)?;
        levels.push(level);
        contexts = shorter;
    }
    told("summed over contexts");
    let unwritten = |e: std::io::Error| Error::io("the model", "write it", &e);
    out.write_all(b"\\data\\\n").map_err(unwritten)?;
    for (n, grams) in report.grams.iter().enumerate() {
        writeln!(out, "ngram {}={grams}", n + 1).map_err(unwritten)?;
    }
    let mut mixer =
        Mixer { out, vocabulary: &vocabulary, order, uniform: 1.0 / (vocabulary.len() as f64 - 1.0) };
    let mut shorter = Sorter::tape(settings.memory / 16, &settings.directory).finish()?;
    for (n, level) in (1..=order).zip(levels.into_iter().rev()) {
        shorter = mixer.mix(level, n, shorter, settings)?;
    }
    mixer.out.write_all(b"\n\\end\\\n").map_err(unwritten)?;
    Ok(report)
}

/// Counts of the longest n-grams, sorted by their end. Those at the beginning of a sentence are shorter; what is
/// missing is `BEGIN`.
fn count(
    input: &mut Input,
    settings: &Settings,
    vocabulary: &mut Vocabulary,
    report: &mut Report,
) -> Result<Sorted> {
    let mut sorter = Sorter::new(settings.memory / 2, true, &settings.directory);
    let (mut buffer, mut words) = (Vec::new(), Vec::new());
    while input.line(&mut buffer)? {
        let text = input.utf8(&buffer)?;
        words.clear();
        words.resize(settings.order.max(2) - 1, BEGIN);
        for word in text.split_ascii_whitespace() {
            if matches!(word, "<s>" | "</s>" | "<unk>" | "<UNK>") {
                return Err(input
                    .error(format!("the text has {word}, which models put in by themselves"))
                    .hint("remove such marks, or replace them by words of your own"));
            }
            words.push(vocabulary.add(word));
            report.words += 1;
        }
        words.push(END);
        report.sentences += 1;
        let first = settings.order.max(2) - 1;
        for end in first..words.len() {
            let mut key = [0; MAX_ORDER];
            for (k, w) in key.iter_mut().zip(words[..=end].iter().rev().take(settings.order)) {
                *k = *w;
            }
            sorter.push(Gram { key, numbers: [1.0, 0.0, 0.0] })?;
        }
    }
    if report.words == 0 {
        return Err(Error::in_file(input.name(), "has no words, expected a sentence a line"));
    }
    sorter.finish()
}

/// How often each adjusted count from 1 to 4 occurs.
type CountsOfCounts = [u64; 5];

/// An n-gram of some length whose records are passing by.
#[derive(Clone, Copy, Default)]
struct Open {
    /// Different words before it.
    lefts: f64,
    count: f64,
}

/// Adjusted counts of all orders, each sorted by the beginning.
fn adjust(
    mut counted: Sorted,
    settings: &Settings,
    report: &mut Report,
) -> Result<(Vec<Sorted>, Vec<CountsOfCounts>)> {
    let order = settings.order;
    let part = settings.part();
    let mut sorters: Vec<Sorter<Gram>> =
        (0..order).map(|_| Sorter::new(part, false, &settings.directory)).collect();
    let mut tables: Vec<CountsOfCounts> = vec![[0; 5]; order];
    report.pruned = vec![0; order];
    report.grams = vec![0; order];
    let threshold =
        |n: usize| settings.prune.get(n - 1).or(settings.prune.last()).copied().unwrap_or(0) as f64;
    let mut open = [Open::default(); MAX_ORDER];
    let mut last: Option<[u32; MAX_ORDER]> = None;
    let mut close = |n: usize, key: &[u32; MAX_ORDER], gram: Open, begins: bool| -> Result<()> {
        let adjusted = if n == order || begins { gram.count } else { gram.lefts };
        // The beginning of a sentence is never predicted.
        if n == 1 && key[0] == BEGIN {
            return Ok(());
        }
        if let Some(t) = tables[n - 1].get_mut(adjusted as usize) {
            *t += 1;
        }
        let kept = n == 1 || gram.count > threshold(n);
        report.pruned[n - 1] += u64::from(!kept);
        report.grams[n - 1] += u64::from(kept);
        let mut forward = [0; MAX_ORDER];
        for (f, w) in forward.iter_mut().zip(key[..n].iter().rev()) {
            *f = *w;
        }
        sorters[n - 1].push(Gram { key: forward, numbers: [adjusted, f64::from(u8::from(kept)), 0.0] })
    };
    loop {
        let record = counted.next()?;
        // How many words at the end are the same as before.
        let same = match (&last, &record) {
            (Some(l), Some(r)) => l.iter().zip(&r.key).take_while(|(a, b)| a == b).count().min(order),
            _ => 0,
        };
        if let Some(key) = &last {
            let length = length(key, order);
            for n in (same + 1..=length).rev() {
                close(n, key, open[n - 1], key[n - 1] == BEGIN)?;
            }
        }
        let Some(record) = record else { break };
        let length = length(&record.key, order);
        for (n, gram) in open.iter_mut().enumerate().take(length) {
            if n >= same {
                *gram = Open::default();
            }
            gram.count += record.numbers[0];
            // The n-gram that is longer by one word is new: another word before this one.
            if n + 1 >= same && n + 1 < length {
                gram.lefts += 1.0;
            }
        }
        last = Some(record.key);
    }
    // They take part with count 0.
    for word in [UNKNOWN, BEGIN] {
        let mut key = [0; MAX_ORDER];
        key[0] = word;
        sorters[0].push(Gram { key, numbers: [0.0, 1.0, 0.0] })?;
        report.grams[0] += 1;
    }
    Ok((sorters.into_iter().map(Sorter::finish).collect::<Result<Vec<_>>>()?, tables))
}

/// Number of words of a record: up to the first beginning of a sentence, that one included.
fn length(key: &[u32; MAX_ORDER], order: usize) -> usize {
    key[..order].iter().position(|&w| w == BEGIN).map_or(order, |p| p + 1)
}

impl Discount {
    fn of(by_times: &CountsOfCounts) -> Self {
        let [one, two, more] = discounts(by_times);
        let amount = [0.0, one, two, more];
        let sound = (1..4).all(|k| (0.0..=k as f64).contains(&amount[k]));
        Discount { amount: if sound { amount } else { FALLBACK }, fallback: !sound }
    }
}

/// From counts in order of their beginning to records in order of their end with the discounted probability, the
/// weight of the shorter context, and the back-off. Also gives the weight of every context, for the next shorter order.
fn weigh(
    mut grams: Sorted,
    n: usize,
    discount: &Discount,
    mut longer: Sorted,
    settings: &Settings,
) -> Result<(Sorted, Sorted)> {
    let mut out = Sorter::new(settings.part(), false, &settings.directory);
    let mut contexts = Sorter::tape(settings.memory / 16, &settings.directory);
    let mut next = longer.next()?;
    let mut group: Vec<Gram> = Vec::new();
    loop {
        let record = grams.next()?;
        let ended = match (&record, group.last()) {
            (_, None) => false,
            (None, _) => true,
            (Some(r), Some(g)) => r.key[..n - 1] != g.key[..n - 1],
        };
        if ended {
            let total: f64 = group.iter().map(|g| g.numbers[0]).sum();
            let taken: f64 = group
                .iter()
                .map(|g| {
                    if g.numbers[1] > 0.0 {
                        discount.amount[(g.numbers[0] as usize).min(3)]
                    } else {
                        g.numbers[0]
                    }
                })
                .sum();
            let rest = taken / total;
            let mut context = [0; MAX_ORDER];
            context[..n - 1].copy_from_slice(&group[0].key[..n - 1]);
            contexts.push(Gram { key: context, numbers: [rest, 0.0, 0.0] })?;
            for gram in group.drain(..).filter(|g| g.numbers[1] > 0.0) {
                let share = (gram.numbers[0] - discount.amount[(gram.numbers[0] as usize).min(3)]) / total;
                while next.is_some_and(|l| l.key < gram.key) {
                    next = longer.next()?;
                }
                let back_off = next.filter(|l| l.key == gram.key).map_or(NO_CONTEXT, |l| l.numbers[0]);
                let mut key = [0; MAX_ORDER];
                for (k, w) in key.iter_mut().zip(gram.key[..n].iter().rev()) {
                    *k = *w;
                }
                out.push(Gram { key, numbers: [share, rest, back_off] })?;
            }
        }
        match record {
            Some(record) => group.push(record),
            None => break,
        }
    }
    Ok((out.finish()?, contexts.finish()?))
}

/// What is written in the end.
struct Mixer<'a> {
    out: &'a mut dyn Write,
    vocabulary: &'a Vocabulary,
    order: usize,
    uniform: f64,
}

impl Mixer<'_> {
    /// p = share + rest·p(shorter), in order of the end, where the shorter n-gram stands before the longer ones.
    fn mix(
        &mut self,
        mut level: Sorted,
        n: usize,
        mut shorter: Sorted,
        settings: &Settings,
    ) -> Result<Sorted> {
        let unwritten = |e: std::io::Error| Error::io("the model", "write it", &e);
        let mut kept = Sorter::tape(settings.memory / 16, &settings.directory);
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
            let _ = write!(line, "{}\t", if begin { 0.0 } else { p.log10() as f32 });
            for (i, &w) in record.key[..n].iter().rev().enumerate() {
                line += if i > 0 { " " } else { "" };
                line += self.vocabulary.word(w);
            }
            if n < self.order {
                let _ = write!(line, "\t{}", logarithm(back_off));
            }
            line.push('\n');
            self.out.write_all(line.as_bytes()).map_err(unwritten)?;
            kept.push(Gram { key: record.key, numbers: [p, 0.0, 0.0] })?;
        }
        kept.finish()
    }
}

/// The back-off of what is no context: nothing depends on it.
const NO_CONTEXT: f64 = -1.0;

/// log₁₀ of a back-off; −99 stands for that of 0.
fn logarithm(back_off: f64) -> f32 {
    match back_off {
        NO_CONTEXT => 0.0,
        b if b > 0.0 => b.log10() as f32,
        _ => -99.0,
    }
}

impl Settings {
    /// Bytes for one of the sorters that are there at the same time.
    fn part(&self) -> usize {
        self.memory / 2 / self.order
    }
}
