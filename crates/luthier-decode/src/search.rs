//! Phrase-based stack decoding, with cube pruning (Huang and Chiang 2007) or with full expansion of every hypothesis.
//!
//! Stacks are indexed by the number of covered source words. Hypotheses of a stack with the same coverage and the
//! same last source span form a group. A group and an uncovered span form a grid: rows are the hypotheses of the
//! group, columns the translation options of the span, both best first. For cube pruning, a priority queue holds the
//! next cells of all grids that lead to a stack, ordered by score plus future cost with a language model estimate
//! without left context; the exact score is computed when a cell is popped.
//!
//! Hypotheses are recombined if no feature can distinguish their extensions: same coverage, same last span, same
//! forward reordering scores, same states of the language models and the guide, and, for sparse features that depend
//! on them, same last target words.
//!
//! The search stops when all words are covered. It costs O(words · pop limit) language model evaluations of phrases
//! with cube pruning. The distortion limit bounds the number of words between the first uncovered and the last
//! covered word, so that the coverage fits into one machine word.

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

/// A hypothesis (partial translation): a node of the lattice.
#[derive(Debug, Clone, Copy)]
struct Hypothesis {
    /// Score of the best derivation.
    score: f64,
    /// Future cost estimate: optimistic score of the uncovered words.
    future: f64,
    coverage: Coverage,
    /// First source word of the last phrase.
    start: u32,
    /// End of the source span of the last phrase.
    end: u32,
    /// Weighted forward reordering scores of the last phrase, by orientation.
    forward: [f32; 3],
    /// Bits of the unweighted forward reordering scores, for recombination.
    key: [u32; 3],
    /// Last target words, if sparse features depend on them.
    words: [u32; 2],
    /// Incoming arc of the best derivation.
    best: u32,
}

impl Hypothesis {
    /// Key of the group that the hypothesis belongs to: coverage and last source span.
    fn group(&self) -> (Coverage, u32, u32) {
        (self.coverage, self.start, self.end)
    }

    /// The last phrase, as sparse features see it.
    fn last(&self) -> Last {
        Last { start: self.start as usize, end: self.end as usize, words: self.words }
    }
}

/// An arc of the lattice: hypothesis `tail` extended by a phrase to hypothesis `head`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) head: u32,
    pub(crate) tail: u32,
    pub(crate) phrase: u32,
    /// Score of the head's best derivation that ends in this arc.
    score: f64,
}

/// Statistics of a search: numbers of words, expansions and hypotheses, and times. Use `+=` to sum them over
/// sentences.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Stats {
    /// Number of source words.
    pub words: u64,
    /// Number of unknown source words: words without translation.
    pub unknown: u64,
    /// Number of hypothesis extensions whose exact score was computed.
    pub popped: u64,
    /// Number of hypotheses, or chart items, kept after pruning.
    pub kept: u64,
    /// Number of extensions that were recombined with an existing hypothesis or chart item.
    pub recombined: u64,
    /// Time that hierarchical search spent on matching rules to spans, in seconds.
    pub parse_seconds: f64,
    /// Time that hierarchical search spent on reading and scoring rules, in seconds.
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

/// Result of the phrase-based search of a sentence: a lattice whose nodes are hypotheses and whose arcs are phrases.
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
    /// Start, end and translation options of each source span that has any.
    phrases: Vec<(usize, usize, Arc<[Phrase]>)>,
    /// Number of the first translation option of each entry of `phrases`; options are numbered consecutively.
    numbers: Vec<u32>,
    hypotheses: Vec<Hypothesis>,
    /// Language model states of each hypothesis.
    states: Vec<State>,
    pub(crate) arcs: Vec<Step>,
    /// Language model scores that each arc adds, as natural logarithms.
    pub(crate) arc_lm: Vec<f32>,
    /// Complete hypotheses.
    pub(crate) complete: Vec<u32>,
    /// Weighted score that the end of the sentence adds to each complete hypothesis.
    endings: Vec<f64>,
    /// Source words of the sentence.
    pub(crate) source: Vec<String>,
    /// Sparse features at phrase boundaries, if templates depend on the previous phrase.
    pub(crate) seams: Option<Seams<'d>>,
    /// Statistics of the search: numbers of words, expansions, hypotheses and recombinations.
    pub stats: Stats,
}

/// Orientation of a phrase relative to the span of the previous one: 0 monotone, 1 swap, 2 discontinuous.
pub(crate) fn orientation(before: (usize, usize), start: usize, end: usize) -> usize {
    if start == before.1 {
        0
    } else if end == before.0 {
        1
    } else {
        2
    }
}

/// All extensions of a group of hypotheses by the translation options of a span.
struct Grid {
    /// Index of the group in its stack.
    group: u32,
    /// Index in `phrases` of the span.
    span: u32,
    /// Score that all cells share: distortion, and future cost of the new coverage.
    base: f64,
    /// Weight of the sparse features of the source words at the phrase boundary.
    seam: f64,
    orientation: u8,
}

/// A cell of a grid in the priority queue: hypothesis `row` of the group, translation option `column` of the span.
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

/// Hypotheses of a stack with the same coverage and last source span, best first.
struct Group {
    coverage: Coverage,
    members: std::ops::Range<u32>,
}

/// Number of cells that are computed between two calls of the progress callback: far less than 100 ms.
pub(crate) const CELLS: u64 = 1024;

/// State of a search.
struct Search<'d, 'g, G: Guide> {
    lattice: Lattice<'d>,
    guide: &'g G,
    progress: Progress<'g>,
    /// Guide state of each hypothesis.
    guided: Vec<G::State>,
    /// Scratch buffer for the target side that is passed to the guide.
    target: Vec<u32>,
    /// Weights of the sparse source features at phrase boundaries, by end of the previous phrase, start of the next
    /// one, and whether the previous and the next phrase have one word.
    seams: FxHashMap<(u32, u32, bool, bool), f64>,
    limits: Limits,
    /// Distortion limit, in words.
    distortion: usize,
    /// Number of source words.
    length: usize,
    /// Index in `phrases` of each span, by start and length − 1.
    spans: Vec<Vec<Option<u32>>>,
    /// Future cost estimates of spans up to the distortion limit, by start and length − 1.
    near: Vec<Vec<f64>>,
    /// Future cost estimate from each word to the end of the sentence.
    tail: Vec<f64>,
    /// Number of language models.
    lms: usize,
    /// Length of the longest span with translation options, in words.
    longest: usize,
    table: Recombination,
    /// Hypotheses of each stack.
    stacks: Vec<std::ops::Range<u32>>,
    /// Groups of each stack.
    groups: Vec<Vec<Group>>,
}

/// Searches for translations of a sentence. Fails if the progress callback answers *stop*.
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
    /// Collects the translation options of all spans.
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

    /// Translation options of the spans that begin at a word, by length − 1. A word without translation is copied or
    /// dropped.
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

    /// Translation option of an unknown word; empty if the guide forbids it.
    fn unknown(&self, words: &[&str], start: usize) -> Arc<[Phrase]> {
        let (model, decoder) = (self.lattice.model, self.lattice.decoder);
        let word = words[start];
        let passed = (!self.limits.drop_unknown).then(|| {
            // All occurrences of a word have the same number.
            let first = words.iter().position(|w| *w == word).unwrap_or(start);
            model.table.target_word(word).unwrap_or((model.table.words()[1] + first) as u32)
        });
        let allowed = self.guide.option(passed.as_slice()).is_some();
        if allowed { [decoder.unknown(word, passed)].into() } else { [].into() }
    }

    /// Computes future cost estimates: of all spans up to the distortion limit, and from each word to the end of the
    /// sentence.
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

    /// Future cost estimate of the uncovered words.
    fn future(&self, coverage: Coverage) -> f64 {
        let mut total = 0.0;
        let last = coverage.open(|start, end| total += self.near[start][end - start - 1]);
        total + self.tail[last.min(self.length)]
    }

    /// Fills and prunes the stacks in turn, and collects the complete hypotheses.
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

    /// Creates the initial hypothesis; returns false if the guide forbids it.
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

    /// Calls the progress callback after every `CELLS` cells; fails if it answers *stop*.
    #[inline]
    fn ask(&self, covered: usize) -> Result<()> {
        if !self.lattice.stats.popped.is_multiple_of(CELLS) {
            return Ok(());
        }
        self.progress.count("stacks", covered - 1, self.length)
    }

    /// Weight of the sparse source features at the boundary between the last phrase and a span.
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

    /// Fills the stack of hypotheses with `covered` covered words, by cube pruning or by full expansion.
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

    /// Expands all cells of the grids.
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

    /// Expands the best `pops` cells of the grids by cube pruning.
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

    /// Pops and expands at most `most` cells of the queue, and queues their successors.
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

    /// Appends the grids of a group and all uncovered spans of a length within the distortion limit.
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
            // The distortion limit must hold for this jump, and for the jump back to the gap.
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

    /// Priority of a cell: score plus future cost, with language model scores without left context.
    // Without the attribute the compiler does not inline it, which costs 3 % of the search time.
    #[allow(clippy::inline_always)]
    #[inline(always)]
    fn priority(&mut self, before: usize, grid: &Grid, row: u32, column: u32) -> f64 {
        let tail = (self.groups[before][grid.group as usize].members.start + row) as usize;
        let (start, end, phrases) = &self.lattice.phrases[grid.span as usize];
        let phrase = &phrases[column as usize];
        let mut guided = 0.0;
        if !G::FREE {
            // The guide's score may be the only one.
            let Some((state, added)) = step(self.guide, &mut self.target, &self.guided[tail], phrase) else {
                return f64::NEG_INFINITY;
            };
            let share = (before + end - start) as f64 / self.length as f64;
            guided = added + self.guide.future(&state, share);
        }
        let hypothesis = &self.lattice.hypotheses[tail];
        let orientation = grid.orientation as usize;
        guided
            + hypothesis.score
            + grid.base
            + grid.seam
            + phrase.estimate
            + f64::from(hypothesis.forward[orientation] + phrase.backward[orientation])
    }

    /// Computes the exact score of a cell, and adds the hypothesis to the stack or recombines it.
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

    /// Extends a hypothesis by a translation option of a span; `None` if the guide forbids it. Appends the language
    /// model scores and states to those of the lattice.
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
        let orientation = grid.orientation as usize;
        let (weights, layout) = (lattice.decoder.weights(), &lattice.model.layout);
        let mut score = hypothesis.score + phrase.fixed + grid.seam;
        let mut words = [NO_WORD; 2];
        if let Some(seams) = &mut lattice.seams {
            let text = Text { table: &lattice.model.table, source: &lattice.source };
            words = Last::words(&phrase.words);
            target_seams(seams.on, &hypothesis.last(), (start, orientation), &phrase.words, |seam| {
                score += seams.weight(seam, text);
            });
        }
        let (guided, added) = step(self.guide, &mut self.target, &self.guided[tail as usize], phrase)?;
        score += added;
        if layout.reordering.is_some() {
            score += f64::from(hypothesis.forward[orientation] + phrase.backward[orientation]);
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

    /// Slot of the hypothesis that a new one can be recombined with, or an empty slot.
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

    /// Prunes the new stack, sorts it into groups, and removes the pruned hypotheses and their arcs.
    fn prune(&mut self, first: u32, first_step: usize) {
        let kept = self.ranked(first);
        let moved = self.keep(first, &kept);
        self.keep_steps(first, first_step, &moved);
        self.groups.push(self.grouped(first));
        self.stacks.push(first..self.lattice.hypotheses.len() as u32);
    }

    /// Hypotheses from `first` on that survive histogram and beam pruning, sorted by group, best first within each
    /// group.
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

    /// Moves the kept hypotheses to the positions from `first` on; returns the new index of each old hypothesis.
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

    /// Removes the arcs of pruned hypotheses, and renumbers the others.
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

    /// Groups of the hypotheses from `first` on, which are sorted by group.
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

/// Guide state after a phrase, and the score that the guide adds; `None` if it forbids the phrase.
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

/// Hash of everything that must agree for recombination.
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
    /// Start and end of the source span, and translation option, by the option's number.
    pub(crate) fn phrase(&self, number: u32) -> (usize, usize, &Phrase) {
        let (start, end, _) = &self.phrases[self.entry(number)];
        let (options, rank) = self.options(number);
        (*start, *end, &options[rank])
    }

    /// Index in `phrases` of the span of a translation option, by the option's number.
    fn entry(&self, number: u32) -> usize {
        self.numbers.partition_point(|&n| n <= number) - 1
    }

    /// Incoming arc of the best derivation of a hypothesis; `None` for the initial one.
    pub(crate) fn best_arc(&self, hypothesis: u32) -> Option<u32> {
        Some(self.hypotheses[hypothesis as usize].best).filter(|&a| a != NO_HYPOTHESIS)
    }

    /// Number of hypotheses.
    pub(crate) fn nodes(&self) -> usize {
        self.hypotheses.len()
    }

    /// The last phrase of a hypothesis, as sparse features see it.
    pub(crate) fn last(&self, hypothesis: u32) -> Last {
        self.hypotheses[hypothesis as usize].last()
    }

    /// Weighted score that the end of the sentence adds to a hypothesis.
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

    /// Natural logarithm of the probability of the sentence end after a hypothesis, in language model `k`.
    pub(crate) fn ending(&self, hypothesis: u32, k: usize) -> f32 {
        let state = &self.states[hypothesis as usize * self.decoder.lms + k];
        self.model.lms[k].score(state, END).log10 * LN10
    }

    /// Spelling of source and target words.
    pub(crate) fn words(&self) -> Text<'_> {
        Text { table: &self.model.table, source: &self.source }
    }

    /// Calls `each` with the key and name of every sparse feature of the translations whose key `wanted` accepts.
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

    /// Translation options of the span of an option, best first, and the rank of the option among them, by its number.
    pub(crate) fn options(&self, number: u32) -> (&[Phrase], usize) {
        let entry = self.entry(number);
        (&self.phrases[entry].2, (number - self.numbers[entry]) as usize)
    }

    /// The best complete hypothesis and its score.
    fn best_complete(&self) -> Option<(u32, f64)> {
        let mut best: Option<(u32, f64)> = None;
        for (h, end) in self.complete.iter().zip(&self.endings) {
            let score = self.hypotheses[*h as usize].score + end;
            if best.is_none_or(|b| score > b.1) {
                best = Some((*h, score));
            }
        }
        best
    }

    /// Numbers of the translation options of the best translation, in the order of their target words.
    pub(crate) fn best_phrases(&self) -> Vec<u32> {
        let Some((mut at, _)) = self.best_complete() else { return Vec::new() };
        let mut parts = Vec::new();
        while self.hypotheses[at as usize].best != NO_HYPOTHESIS {
            let arc = &self.arcs[self.hypotheses[at as usize].best as usize];
            debug_assert!((arc.score - self.hypotheses[at as usize].score).abs() < 1e-6);
            parts.push(arc.phrase);
            at = arc.tail;
        }
        parts.reverse();
        parts
    }

    /// Returns the best translation and its model score; `None` if there is no complete translation.
    pub fn best(&self) -> Option<(String, f64)> {
        let (_, score) = self.best_complete()?;
        let words: Vec<&str> = self
            .best_phrases()
            .iter()
            .flat_map(|&p| self.phrase(p).2.words.iter())
            .map(|&w| self.words().target(w))
            .collect();
        Some((words.join(" "), score))
    }
}
