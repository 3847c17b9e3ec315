//! Phrase-based search: stacks by number of covered words, with cube pruning (Huang and Chiang 2007) or in full.
//!
//! A hypothesis covers all words before its first gap and, because jumps are limited, at most a machine word of words
//! behind it. Hypotheses with the same coverage and the same last phrase span stand in one group; what a group makes of a
//! span is a grid of hypotheses and translations, both best first. The queue holds the next cells of all grids of a stack
//! by an estimate that needs no language model; the exact score is computed when a cell is taken.
//! Hypotheses recombine if no feature can tell them apart: same coverage, same last span, same probabilities of what comes
//! next, same states of the language models and of the guide, and same last words if sparse features look at them.

use crate::{
    coverage::Coverage,
    guide::Guide,
    limits::{Limits, MAX_DISTORTION},
    model::Model,
    phrase::{LN10, Phrase, Phrases},
    recombination::{NO_HYPOTHESIS, Recombination},
    sparse::{Last, NO_WORD, Seams, Text, end_seams, source_seams, target_seams},
};
use luthier_core::{FeatureKey, Progress, Result};
use luthier_forest::TAILS;
use luthier_lm::{END, State};
use rustc_hash::FxHashMap;
use std::{
    cmp::Ordering,
    collections::BinaryHeap,
    hash::{Hash, Hasher},
    sync::Arc,
};

/// A partial translation: a node of the lattice.
#[derive(Debug, Clone, Copy)]
struct Hypothesis {
    /// The best way to get here.
    score: f64,
    /// What the rest will cost at best.
    future: f64,
    coverage: Coverage,
    /// Span of the last phrase.
    start: u32,
    end: u32,
    /// Weighted reordering of what comes next, and the bits of its probabilities.
    forward: [f32; 3],
    key: [u32; 3],
    /// Last target words, if sparse features look at them.
    words: [u32; 2],
    /// The best arc into it.
    best: u32,
}

impl Hypothesis {
    /// What hypotheses of one group have in common.
    fn group(&self) -> (Coverage, u32, u32) {
        (self.coverage, self.start, self.end)
    }

    fn last(&self) -> Last {
        Last { start: self.start as usize, end: self.end as usize, words: self.words }
    }
}

/// A way to get to a hypothesis.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) head: u32,
    pub(crate) tail: u32,
    pub(crate) phrase: u32,
    score: f64,
}

/// How many words, extensions and hypotheses a search has met. Sums over sentences are made with `+=`.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Stats {
    /// Number of source words.
    pub words: u64,
    /// Number of source words without translation.
    pub unknown: u64,
    /// Number of extensions whose exact score was computed.
    pub popped: u64,
    /// Number of hypotheses, or chart items, that were kept.
    pub kept: u64,
    /// Number of extensions that led to a hypothesis that was there already.
    pub recombined: u64,
    /// Seconds that hierarchical search took to find which rules fit which spans.
    pub parse_seconds: f64,
    /// Seconds that hierarchical search took to read and weigh rules.
    pub rule_seconds: f64,
}

impl std::ops::AddAssign for Stats {
    fn add_assign(&mut self, other: Stats) {
        self.words += other.words;
        self.unknown += other.unknown;
        self.popped += other.popped;
        self.kept += other.kept;
        self.recombined += other.recombined;
        self.parse_seconds += other.parse_seconds;
        self.rule_seconds += other.rule_seconds;
    }
}

/// What phrase-based search of a sentence has found: a lattice whose nodes are hypotheses and whose steps are phrases.
///
/// ```
/// use luthier_core::{Progress, Weights};
/// use luthier_decode::{Decoder, Found, Limits, Model};
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("table");
/// # let pairs = "das ||| the ||| 0.5\ndas ||| that ||| 0.25\ndas haus ||| the house ||| 0.8\nhaus ||| house ||| 0.9\n";
/// # std::fs::write(&path, pairs).unwrap();
/// # let model = Model::new(luthier_table::read_text(&path, None, Progress::NONE).unwrap(), Vec::new(), false).unwrap();
/// let weights = Weights::parse("w", "TranslationModel0 1\n").unwrap();
/// let decoder = Decoder::new(&model, &weights, Limits { distortion_limit: Some(0), ..Limits::default() });
/// let Found::Lattice(lattice) = decoder.search("das unbekannte haus", Progress::NONE).unwrap() else { panic!() };
/// assert_eq!(lattice.best().unwrap().0, "the unbekannte house");
/// assert_eq!((lattice.stats.words, lattice.stats.unknown), (3, 1));
/// ```
pub struct Lattice<'d> {
    pub(crate) decoder: &'d Phrases<'d>,
    pub(crate) model: &'d Model,
    phrases: Vec<(usize, usize, Arc<[Phrase]>)>,
    /// First number of each entry of `phrases`.
    numbers: Vec<u32>,
    hypotheses: Vec<Hypothesis>,
    states: Vec<State>,
    pub(crate) arcs: Vec<Step>,
    pub(crate) arc_lm: Vec<f32>,
    /// Complete hypotheses, and what the end of the sentence adds to each.
    pub(crate) complete: Vec<u32>,
    endings: Vec<f64>,
    /// Words of the sentence.
    pub(crate) source: Vec<String>,
    /// Sparse features that were met, if there are templates that look back.
    pub(crate) seams: Option<Seams<'d>>,
    /// How many words, extensions and hypotheses the search has met.
    pub stats: Stats,
}

/// How a phrase stands to the one before, by their spans: monotone, swapped, or neither.
pub(crate) fn orientation(before: (usize, usize), start: usize, end: usize) -> usize {
    if start == before.1 {
        0
    } else if end == before.0 {
        1
    } else {
        2
    }
}

struct Grid {
    group: u32,
    /// Entry of `phrases`.
    span: u32,
    /// What all cells have: distortion and the future of the new coverage.
    base: f64,
    /// Sparse features of the source.
    seam: f64,
    orientation: u8,
}

struct Cell {
    priority: f64,
    grid: u32,
    row: u32,
    column: u32,
}

impl PartialEq for Cell {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Cell {}

impl Ord for Cell {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_priority = self.priority.total_cmp(&other.priority);
        by_priority
            .then_with(|| (other.grid, other.row, other.column).cmp(&(self.grid, self.row, self.column)))
    }
}

impl PartialOrd for Cell {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Hypotheses of a stack with the same coverage and last span, best first.
struct Group {
    coverage: Coverage,
    members: std::ops::Range<u32>,
}

/// Cells that are computed between two questions to the caller: far less than 100 ms.
pub(crate) const CELLS: u64 = 1024;

/// Everything that a search needs.
struct Search<'d, 'g, G: Guide> {
    lattice: Lattice<'d>,
    guide: &'g G,
    progress: Progress<'g>,
    /// By hypothesis, as the guide sees it.
    guided: Vec<G::State>,
    /// Scratch: an edge as the guide sees it.
    target: Vec<u32>,
    /// Sparse features of the source by last end, next start and whether one word is all there is on either side.
    seams: FxHashMap<(u32, u32, bool, bool), f64>,
    limits: Limits,
    /// Longest jump.
    distortion: usize,
    length: usize,
    /// Entry of `phrases` by start and length − 1.
    spans: Vec<Vec<Option<u32>>>,
    /// Best estimates of spans by start and length − 1, up to the longest window.
    near: Vec<Vec<f64>>,
    /// Best estimate from a word to the end.
    tail: Vec<f64>,
    lms: usize,
    /// Words of the longest span that has translations.
    longest: usize,
    table: Recombination,
    /// First hypothesis of each stack.
    stacks: Vec<std::ops::Range<u32>>,
    groups: Vec<Vec<Group>>,
}

/// Translates a sentence.
pub(crate) fn search<'d, G: Guide>(
    model: &'d Model,
    decoder: &'d Phrases<'d>,
    words: &[&str],
    limits: Limits,
    guide: &G,
    progress: Progress<'_>,
) -> Result<Lattice<'d>> {
    let lattice = Lattice {
        decoder,
        model,
        phrases: Vec::new(),
        numbers: Vec::new(),
        hypotheses: Vec::new(),
        states: Vec::new(),
        arcs: Vec::new(),
        arc_lm: Vec::new(),
        complete: Vec::new(),
        endings: Vec::new(),
        source: words.iter().map(ToString::to_string).collect(),
        seams: Seams::new(model, decoder.sparse_weights()),
        stats: Stats { words: words.len() as u64, ..Stats::default() },
    };
    let mut search = Search {
        lattice,
        guide,
        progress,
        guided: Vec::new(),
        target: Vec::new(),
        seams: FxHashMap::default(),
        limits,
        distortion: limits.distortion(),
        length: words.len(),
        spans: Vec::new(),
        near: Vec::new(),
        tail: Vec::new(),
        lms: decoder.lms,
        longest: 1,
        table: Recombination::default(),
        stacks: Vec::new(),
        groups: Vec::new(),
    };
    search.look_up(words)?;
    search.longest = search.spans.iter().map(Vec::len).max().unwrap_or(1);
    search.estimate();
    search.run()?;
    Ok(search.lattice)
}

impl<G: Guide> Search<'_, '_, G> {
    /// Translations of all spans.
    fn look_up(&mut self, words: &[&str]) -> Result<()> {
        let table = &self.lattice.model.table;
        let ids: Vec<Option<u32>> = words.iter().map(|w| table.source_word(w)).collect();
        let mut number = 0;
        for start in 0..words.len() {
            self.progress.count("stacks", 0, self.length)?;
            let row = self.translations_from(words, &ids, start);
            let lattice = &mut self.lattice;
            let mut spans = Vec::with_capacity(row.len());
            for (k, found) in row.into_iter().enumerate() {
                let some = found.filter(|phrases| !phrases.is_empty());
                spans.push(some.map(|phrases| {
                    lattice.numbers.push(number);
                    number += phrases.len() as u32;
                    lattice.phrases.push((start, start + k + 1, phrases));
                    lattice.phrases.len() as u32 - 1
                }));
            }
            self.spans.push(spans);
        }
        Ok(())
    }

    /// Translations of the spans from a word on, by length − 1. A word without any is passed through or dropped.
    fn translations_from(
        &mut self,
        words: &[&str],
        ids: &[Option<u32>],
        start: usize,
    ) -> Vec<Option<Arc<[Phrase]>>> {
        let (model, decoder) = (self.lattice.model, self.lattice.decoder);
        let (mut row, mut known) = (Vec::new(), false);
        let mut node = model.table.root();
        for id in &ids[start..] {
            let Some(next) = id.and_then(|id| model.table.step(node, id)) else { break };
            node = next;
            if row.len() >= MAX_DISTORTION {
                break;
            }
            let source = &words[start..=start + row.len()];
            known |= row.is_empty() && !node.entries().is_empty();
            row.push((!node.entries().is_empty()).then(|| decoder.of(node, source, self.guide)));
        }
        if !known {
            let phrase = self.unknown(words, start);
            self.lattice.stats.unknown += 1;
            match row.first_mut() {
                Some(first) => *first = Some(phrase),
                None => row.push(Some(phrase)),
            }
        }
        row
    }

    /// What a word without translation becomes, if the guide takes it.
    fn unknown(&self, words: &[&str], start: usize) -> Arc<[Phrase]> {
        let (model, decoder) = (self.lattice.model, self.lattice.decoder);
        let word = words[start];
        let passed = (!self.limits.drop_unknown).then(|| {
            // The same word is the same symbol, wherever it comes from.
            let first = words.iter().position(|w| *w == word).unwrap_or(start);
            model.table.target_word(word).unwrap_or((model.table.words()[1] + first) as u32)
        });
        let allowed = self.guide.option(passed.as_slice()).is_some();
        if allowed { [decoder.unknown(word, passed)].into() } else { [].into() }
    }

    /// What spans cost at best: near the gap, and up to the end of the sentence.
    fn estimate(&mut self) {
        let n = self.length;
        let best = |start: usize, length: usize| {
            let span = self.spans[start].get(length - 1).copied().flatten();
            span.map_or(f64::NEG_INFINITY, |s| {
                self.lattice.phrases[s as usize].2.first().map_or(f64::NEG_INFINITY, |p| p.estimate)
            })
        };
        let mut near: Vec<Vec<f64>> = vec![Vec::new(); n];
        let window = self.distortion.max(1);
        for start in (0..n).rev() {
            let mut row = Vec::with_capacity(window);
            for length in 1..=window.min(n - start) {
                let mut top = best(start, length);
                for first in 1..length {
                    top = top.max(row[first - 1] + near[start + first][length - first - 1]);
                }
                row.push(top);
            }
            near[start] = row;
        }
        let mut tail = vec![0.0; n + 1];
        for start in (0..n).rev() {
            let lengths = 1..=self.spans[start].len().min(n - start);
            tail[start] = lengths.map(|l| best(start, l) + tail[start + l]).fold(f64::NEG_INFINITY, f64::max);
        }
        (self.near, self.tail) = (near, tail);
    }

    fn future(&self, coverage: Coverage) -> f64 {
        let mut total = 0.0;
        let last = coverage.open(|start, end| total += self.near[start][end - start - 1]);
        total + self.tail[last.min(self.length)]
    }

    fn run(&mut self) -> Result<()> {
        if !self.begin() {
            return Ok(());
        }
        for covered in 1..=self.length {
            let first = self.lattice.hypotheses.len() as u32;
            let step = self.lattice.arcs.len();
            self.fill(covered)?;
            self.prune(first, step);
            self.lattice.stats.kept += self.lattice.hypotheses.len() as u64 - u64::from(first);
        }
        for h in self.stacks.last().cloned().unwrap_or_default() {
            if let Some(guided) = self.guide.end(&self.guided[h as usize], &mut Vec::new()) {
                self.lattice.complete.push(h);
                let ending = guided + self.lattice.end_score(h);
                self.lattice.endings.push(ending);
            }
        }
        Ok(())
    }

    /// The hypothesis that has translated nothing; whether the guide takes it.
    fn begin(&mut self) -> bool {
        let coverage = Coverage { gap: 0, mask: 0 };
        self.lattice.hypotheses.push(Hypothesis {
            score: 0.0,
            future: self.tail[0],
            coverage,
            start: 0,
            end: 0,
            forward: [0.0; 3],
            key: [0; 3],
            words: if self.lattice.seams.is_some() { Last::BEGIN } else { [NO_WORD; 2] },
            best: NO_HYPOTHESIS,
        });
        let Some((state, _)) = self.guide.edge(&[], &[], &mut Vec::new()) else { return false };
        self.guided.push(state);
        for k in 0..self.lms {
            self.lattice.states.push(self.lattice.model.lms[k].begin());
        }
        self.stacks.push(0..1);
        self.groups.push(vec![Group { coverage, members: 0..1 }]);
        true
    }

    /// Asks the caller whether to go on, now and then while a stack is filled.
    #[inline]
    fn ask(&self, covered: usize) -> Result<()> {
        if !self.lattice.stats.popped.is_multiple_of(CELLS) {
            return Ok(());
        }
        self.progress.count("stacks", covered - 1, self.length)
    }

    /// Weight of the sparse source features of a span behind a hypothesis.
    fn source_seam(&mut self, last: Last, start: usize, end: usize) -> f64 {
        let Some(seams) = &mut self.lattice.seams else { return 0.0 };
        let text = Text { table: &self.lattice.model.table, source: &self.lattice.source };
        let key = (last.end as u32, start as u32, last.end - last.start == 1, end - start == 1);
        *self.seams.entry(key).or_insert_with(|| {
            let mut total = 0.0;
            source_seams(seams.on, &last, (start, end), |seam| total += seams.weight(seam, text));
            total
        })
    }

    /// All that can be in a stack: by grids in order of promise, or all of them.
    fn fill(&mut self, covered: usize) -> Result<()> {
        self.progress.count("stacks", covered - 1, self.length)?;
        self.table.clear();
        let mut grids = Vec::new();
        for before in covered.saturating_sub(self.longest)..covered {
            for g in 0..self.groups[before].len() {
                self.grids(before, g, covered - before, &mut grids);
            }
        }
        match self.limits.pops() {
            Some(pops) => self.take_best(covered, &grids, pops),
            None => self.take_all(covered, &grids),
        }
    }

    /// Every cell of the grids.
    fn take_all(&mut self, covered: usize, grids: &[(usize, Grid)]) -> Result<()> {
        for (before, grid) in grids {
            let rows = self.groups[*before][grid.group as usize].members.len() as u32;
            let columns = self.lattice.phrases[grid.span as usize].2.len() as u32;
            for row in 0..rows {
                for column in 0..columns {
                    self.take(*before, grid, row, column);
                    self.ask(covered)?;
                }
            }
        }
        Ok(())
    }

    /// The most promising cells of the grids.
    fn take_best(&mut self, covered: usize, grids: &[(usize, Grid)], pops: usize) -> Result<()> {
        let mut queue: BinaryHeap<Cell> = (0..grids.len() as u32)
            .map(|g| {
                let (before, grid) = &grids[g as usize];
                Cell { priority: self.priority(*before, grid, 0, 0), grid: g, row: 0, column: 0 }
            })
            .collect();
        let mut left = pops;
        while left > 0 && !queue.is_empty() {
            self.progress.count("stacks", covered - 1, self.length)?;
            let some = left.min(CELLS as usize);
            self.take_some(grids, &mut queue, some);
            left -= some;
        }
        Ok(())
    }

    /// The next cells of the queue, at most so many.
    fn take_some(&mut self, grids: &[(usize, Grid)], queue: &mut BinaryHeap<Cell>, most: usize) {
        for _ in 0..most {
            let Some(Cell { grid: g, row, column, .. }) = queue.pop() else { break };
            let (before, grid) = &grids[g as usize];
            self.take(*before, grid, row, column);
            if column + 1 < self.lattice.phrases[grid.span as usize].2.len() as u32 {
                let priority = self.priority(*before, grid, row, column + 1);
                queue.push(Cell { priority, grid: g, row, column: column + 1 });
            }
            if column == 0 && row + 1 < self.groups[*before][grid.group as usize].members.len() as u32 {
                let priority = self.priority(*before, grid, row + 1, 0);
                queue.push(Cell { priority, grid: g, row: row + 1, column: 0 });
            }
        }
    }

    /// What a group makes of all spans of a length.
    fn grids(&mut self, before: usize, g: usize, length: usize, grids: &mut Vec<(usize, Grid)>) {
        let coverage = self.groups[before][g].coverage;
        let gap = coverage.gap as usize;
        let head = self.lattice.hypotheses[self.groups[before][g].members.start as usize];
        let (last_end, limit) = (head.end as usize, self.distortion);
        for start in gap..=(gap + limit).min(self.length - 1) {
            let end = start + length;
            if end > self.length {
                break;
            }
            // From there the way back to the gap must not be too far.
            if start > gap && (end - gap > limit || start.abs_diff(last_end) > limit) {
                continue;
            }
            let Some(span) = self.spans[start].get(length - 1).copied().flatten() else { continue };
            if !coverage.is_free(start, length) {
                continue;
            }
            let new = coverage.with(start, length);
            let jump = start.abs_diff(last_end) as f64;
            let weights = self.lattice.decoder.weights();
            let base = self.future(new) - weights[self.lattice.model.layout.distortion] * jump;
            let seam = self.source_seam(head.last(), start, end);
            let orientation = orientation((head.start as usize, last_end), start, end) as u8;
            grids.push((before, Grid { group: g as u32, span, base, seam, orientation }));
        }
    }

    /// What a cell may be worth, without language models across the seam.
    // Left to itself the compiler calls it: 3 % of the time of a search.
    #[allow(clippy::inline_always)]
    #[inline(always)]
    fn priority(&mut self, before: usize, grid: &Grid, row: u32, column: u32) -> f64 {
        let tail = (self.groups[before][grid.group as usize].members.start + row) as usize;
        let (start, end, phrases) = &self.lattice.phrases[grid.span as usize];
        let phrase = &phrases[column as usize];
        let mut guided = 0.0;
        if !G::FREE {
            // A guide's opinion may be all there is.
            let Some((state, added)) = step(self.guide, &mut self.target, &self.guided[tail], phrase) else {
                return f64::NEG_INFINITY;
            };
            let share = (before + end - start) as f64 / self.length as f64;
            guided = added + self.guide.future(&state, share);
        }
        let hypothesis = &self.lattice.hypotheses[tail];
        let way = grid.orientation as usize;
        guided
            + hypothesis.score
            + grid.base
            + grid.seam
            + phrase.estimate
            + f64::from(hypothesis.forward[way] + phrase.backward[way])
    }

    /// Computes a cell exactly, and puts it where it belongs.
    fn take(&mut self, before: usize, grid: &Grid, row: u32, column: u32) {
        self.lattice.stats.popped += 1;
        let group = &self.groups[before][grid.group as usize];
        let (tail, coverage) = (group.members.start + row, group.coverage);
        let Some((made, guided)) = self.extend(coverage, grid, tail, column) else { return };
        let slot = self.slot(&made, &guided);
        let phrase = self.lattice.numbers[grid.span as usize] + column;
        let mut head = self.table.slots[slot];
        if head == NO_HYPOTHESIS {
            head = self.lattice.hypotheses.len() as u32;
            self.table.slots[slot] = head;
            self.table.used.push(slot as u32);
            let jump = (made.start).abs_diff(self.lattice.hypotheses[tail as usize].end);
            let distortion = self.lattice.decoder.weights()[self.lattice.model.layout.distortion];
            let covered = before + (made.end - made.start) as usize;
            let mut future = grid.base + distortion * f64::from(jump);
            future += self.guide.future(&guided, covered as f64 / self.length as f64);
            self.guided.push(guided);
            self.lattice.hypotheses.push(Hypothesis { future, ..made });
        } else {
            let lattice = &mut self.lattice;
            lattice.stats.recombined += 1;
            lattice.states.truncate(lattice.hypotheses.len() * self.lms);
            let old = &mut lattice.hypotheses[head as usize];
            if made.score > old.score {
                old.score = made.score;
                old.best = made.best;
            }
        }
        self.lattice.arcs.push(Step { head, tail, phrase, score: made.score });
    }

    /// What a translation of a span makes of a hypothesis; nothing if the guide forbids it. Scores and states of language
    /// models go to the end of the lattice's.
    #[inline]
    fn extend(
        &mut self,
        coverage: Coverage,
        grid: &Grid,
        tail: u32,
        column: u32,
    ) -> Option<(Hypothesis, G::State)> {
        let lattice = &mut self.lattice;
        let hypothesis = lattice.hypotheses[tail as usize];
        let (start, end, phrases) = &lattice.phrases[grid.span as usize];
        let (start, end) = (*start, *end);
        let phrase = &phrases[column as usize];
        let way = grid.orientation as usize;
        let (weights, layout) = (lattice.decoder.weights(), &lattice.model.layout);
        let mut score = hypothesis.score + phrase.fixed + grid.seam;
        let mut words = [NO_WORD; 2];
        if let Some(seams) = &mut lattice.seams {
            let text = Text { table: &lattice.model.table, source: &lattice.source };
            words = Last::words(&phrase.words);
            target_seams(seams.on, &hypothesis.last(), (start, way), &phrase.words, |seam| {
                score += seams.weight(seam, text);
            });
        }
        let (guided, added) = step(self.guide, &mut self.target, &self.guided[tail as usize], phrase)?;
        score += added;
        if layout.reordering.is_some() {
            score += f64::from(hypothesis.forward[way] + phrase.backward[way]);
        }
        score -= weights[layout.distortion] * start.abs_diff(hypothesis.end as usize) as f64;
        for (k, inner) in phrase.inner.iter().enumerate() {
            let before = lattice.states[tail as usize * self.lms + k];
            let (log10, state) = inner.after(&lattice.model.lms[k], before);
            score += weights[layout.lm + k] * f64::from(log10 * LN10);
            lattice.arc_lm.push(log10 * LN10);
            lattice.states.push(state);
        }
        let tables = lattice.model.table.shape().scores;
        let key = |k: usize| phrase.scores.get(tables + 3 + k).map_or(0, |s| s.to_bits());
        let made = Hypothesis {
            score,
            future: 0.0,
            coverage: coverage.with(start, end - start),
            start: start as u32,
            end: end as u32,
            forward: phrase.forward,
            key: std::array::from_fn(key),
            words,
            best: lattice.arcs.len() as u32,
        };
        Some((made, guided))
    }

    /// The slot of the hypothesis that a new one recombines with, or an empty one.
    #[inline]
    fn slot(&mut self, made: &Hypothesis, guided: &G::State) -> usize {
        let (hypotheses, states, others) = (&self.lattice.hypotheses, &self.lattice.states, &self.guided);
        let lms = self.lms;
        let of = |id: usize| &states[id * lms..(id + 1) * lms];
        self.table.reserve(|id| hash(&hypotheses[id as usize], of(id as usize), &others[id as usize]));
        let mine = of(hypotheses.len());
        self.table.find(hash(made, mine, guided), |id| {
            let h = &hypotheses[id as usize];
            h.coverage == made.coverage
                && (h.start, h.end, h.key, h.words) == (made.start, made.end, made.key, made.words)
                && *of(id as usize) == *mine
                && others[id as usize] == *guided
        })
    }

    /// Keeps the best of the new stack, in groups, and forgets the rest with their steps.
    fn prune(&mut self, first: u32, first_step: usize) {
        let kept = self.ranked(first);
        let moved = self.keep(first, &kept);
        self.keep_steps(first, first_step, &moved);
        self.groups.push(self.grouped(first));
        self.stacks.push(first..self.lattice.hypotheses.len() as u32);
    }

    /// Hypotheses from `first` on that are kept: by coverage and last span, the best first inside each group.
    fn ranked(&self, first: u32) -> Vec<u32> {
        let of = |h: u32| &self.lattice.hypotheses[h as usize];
        let worth = |h: u32| of(h).score + of(h).future;
        let mut order: Vec<u32> = (first..self.lattice.hypotheses.len() as u32).collect();
        order.sort_by(|&a, &b| worth(b).total_cmp(&worth(a)));
        order.truncate(self.limits.stack_size as usize);
        if let (Some(&best), Some(beam)) = (order.first(), self.limits.beam) {
            let least = worth(best) - beam;
            order.retain(|&h| worth(h) >= least);
        }
        order.sort_by(|&a, &b| {
            let (x, y) = (of(a), of(b));
            x.group().cmp(&y.group()).then(y.score.total_cmp(&x.score)).then(a.cmp(&b))
        });
        order
    }

    /// Moves the hypotheses that are kept to the places from `first` on; returns the new number of each old one.
    fn keep(&mut self, first: u32, kept: &[u32]) -> Vec<u32> {
        let (lattice, lms, from) = (&mut self.lattice, self.lms, first as usize);
        let hypotheses: Vec<Hypothesis> = kept.iter().map(|&h| lattice.hypotheses[h as usize]).collect();
        let states: Vec<State> = kept
            .iter()
            .flat_map(|&h| lattice.states[h as usize * lms..(h as usize + 1) * lms].iter().copied())
            .collect();
        let guided: Vec<G::State> = kept.iter().map(|&h| self.guided[h as usize].clone()).collect();
        let mut moved = vec![NO_HYPOTHESIS; lattice.hypotheses.len() - from];
        for (k, &h) in kept.iter().enumerate() {
            moved[h as usize - from] = first + k as u32;
        }
        lattice.hypotheses.truncate(from);
        lattice.hypotheses.extend(hypotheses);
        lattice.states.truncate(from * lms);
        lattice.states.extend(states);
        self.guided.truncate(from);
        self.guided.extend(guided);
        moved
    }

    /// Drops steps to hypotheses that are gone, and gives the others the new numbers.
    fn keep_steps(&mut self, first: u32, first_step: usize, moved: &[u32]) {
        let (lattice, lms, from) = (&mut self.lattice, self.lms, first as usize);
        let mut at = first_step;
        let mut steps = vec![NO_HYPOTHESIS; lattice.arcs.len() - first_step];
        for a in first_step..lattice.arcs.len() {
            let head = moved[lattice.arcs[a].head as usize - from];
            if head != NO_HYPOTHESIS {
                lattice.arcs[at] = Step { head, ..lattice.arcs[a] };
                for k in 0..lms {
                    lattice.arc_lm[at * lms + k] = lattice.arc_lm[a * lms + k];
                }
                steps[a - first_step] = at as u32;
                at += 1;
            }
        }
        lattice.arcs.truncate(at);
        lattice.arc_lm.truncate(at * lms);
        for h in &mut lattice.hypotheses[from..] {
            h.best = steps[h.best as usize - first_step];
        }
    }

    /// Groups of the hypotheses from `first` on.
    fn grouped(&self, first: u32) -> Vec<Group> {
        let hypotheses = &self.lattice.hypotheses;
        let mut groups: Vec<Group> = Vec::new();
        for id in first..hypotheses.len() as u32 {
            let mine = &hypotheses[id as usize];
            match groups.last_mut() {
                Some(g) if hypotheses[g.members.start as usize].group() == mine.group() => {
                    g.members.end = id + 1;
                }
                _ => groups.push(Group { coverage: mine.coverage, members: id..id + 1 }),
            }
        }
        groups
    }
}

/// What a guide says about a phrase after a state.
#[inline]
fn step<G: Guide>(
    guide: &G,
    target: &mut Vec<u32>,
    before: &G::State,
    phrase: &Phrase,
) -> Option<(G::State, f64)> {
    if !G::FREE {
        target.clear();
        target.push(TAILS[0]);
        target.extend_from_slice(&phrase.words);
    }
    guide.edge(target, &[before], &mut Vec::new())
}

fn hash(h: &Hypothesis, states: &[State], guided: &impl Hash) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    (h.coverage, h.start, h.end, h.key, h.words).hash(&mut hasher);
    for state in states {
        state.hash(&mut hasher);
    }
    guided.hash(&mut hasher);
    let x = hasher.finish();
    x ^ (x >> 32)
}

impl Lattice<'_> {
    /// The phrase of an arc, with its span.
    pub(crate) fn phrase(&self, number: u32) -> (usize, usize, &Phrase) {
        let entry = self.numbers.partition_point(|&n| n <= number) - 1;
        let (start, end, phrases) = &self.phrases[entry];
        (*start, *end, &phrases[(number - self.numbers[entry]) as usize])
    }

    /// The best arc into a hypothesis.
    pub(crate) fn best_arc(&self, hypothesis: u32) -> Option<u32> {
        Some(self.hypotheses[hypothesis as usize].best).filter(|&a| a != NO_HYPOTHESIS)
    }

    pub(crate) fn nodes(&self) -> usize {
        self.hypotheses.len()
    }

    /// What has been translated last before a hypothesis goes on.
    pub(crate) fn last(&self, hypothesis: u32) -> Last {
        self.hypotheses[hypothesis as usize].last()
    }

    /// Weight of the end of the sentence behind a hypothesis.
    fn end_score(&mut self, hypothesis: u32) -> f64 {
        let weights = self.decoder.weights();
        let mut total = (0..self.decoder.lms)
            .map(|k| weights[self.model.layout.lm + k] * f64::from(self.ending(hypothesis, k)))
            .sum();
        let last = self.last(hypothesis);
        if let Some(seams) = &mut self.seams {
            let text = Text { table: &self.model.table, source: &self.source };
            end_seams(seams.on, &last, |seam| total += seams.weight(seam, text));
        }
        total
    }

    /// Natural logarithm of the end of the sentence, by language model.
    pub(crate) fn ending(&self, hypothesis: u32, k: usize) -> f32 {
        let state = &self.states[hypothesis as usize * self.decoder.lms + k];
        self.model.lms[k].score(state, END).log10 * LN10
    }

    /// The words of the sentence and of its translations.
    pub(crate) fn words(&self) -> Text<'_> {
        Text { table: &self.model.table, source: &self.source }
    }

    /// Calls `each` with key and name of those sparse features of the translations whose key is `wanted`.
    pub fn sparse_names(&self, wanted: &dyn Fn(FeatureKey) -> bool, each: &mut dyn FnMut(FeatureKey, &str)) {
        let Some(sparse) = &self.model.sparse else { return };
        let text = self.words();
        if let Some(seams) = &self.seams {
            seams.names(wanted, text, each);
        }
        let mut links = Vec::new();
        for (start, end, phrases) in &self.phrases {
            let source: Vec<&str> = text.source[*start..*end].iter().map(String::as_str).collect();
            for phrase in phrases.iter().filter(|p| p.sparse.iter().any(|k| wanted(*k))) {
                match phrase.entry {
                    Some(entry) => self.model.table.links(entry, &mut links),
                    None => links = vec![(0, 0); phrase.words.len()],
                }
                let target: Vec<&str> = phrase.words.iter().map(|&w| text.target(w)).collect();
                let mut keys = phrase.sparse.iter();
                sparse.alone(&self.model.table, &source, &target, &links, &mut |name| {
                    if let Some(key) = keys.next().filter(|k| wanted(**k)) {
                        each(*key, name);
                    }
                });
            }
        }
    }

    /// The best translation and its total score; nothing if there is no complete translation.
    pub fn best(&self) -> Option<(String, f64)> {
        let mut best: Option<(u32, f64)> = None;
        for (h, end) in self.complete.iter().zip(&self.endings) {
            let score = self.hypotheses[*h as usize].score + end;
            if best.is_none_or(|b| score > b.1) {
                best = Some((*h, score));
            }
        }
        let (mut at, score) = best?;
        let mut parts = Vec::new();
        while self.hypotheses[at as usize].best != NO_HYPOTHESIS {
            let arc = &self.arcs[self.hypotheses[at as usize].best as usize];
            debug_assert!((arc.score - self.hypotheses[at as usize].score).abs() < 1e-6);
            parts.push(arc.phrase);
            at = arc.tail;
        }
        let words: Vec<&str> = parts
            .iter()
            .rev()
            .flat_map(|&p| self.phrase(p).2.words.iter())
            .map(|&w| self.words().target(w))
            .collect();
        Some((words.join(" "), score))
    }
}
