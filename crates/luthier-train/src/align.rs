//! Word alignment by expectation–maximisation, both directions in one pass.
//!
//! Pairs of words that stand together in some pair of sentences are numbered once; both directions keep their
//! probabilities at that number. Expected counts are sums of whole multiples of 2⁻³², so that they are the same in any
//! order and for any number of threads.

mod position;
mod saved;
#[cfg(test)]
mod tests;

use crate::{Corpus, Link, Symmetrization, links};
use luthier_core::sum::map_chunks;
use position::{Expected, Prepared, Scratch};
pub use position::{Positions, Steps};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Which model is trained in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// IBM model 1: words alone.
    Ibm1,
    /// IBM model 2 along the diagonal.
    Ibm2,
    /// The hidden Markov model.
    Hmm,
}

/// How to train.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The model.
    pub kind: Kind,
    /// Rounds of model 1 before it.
    pub first_rounds: usize,
    /// Rounds of the model.
    pub rounds: usize,
    /// Probability that a word has no word behind it.
    pub null: f64,
    /// Strength of a sparse prior over translations (variational Bayes); 0 is maximum likelihood.
    pub prior: f64,
    /// How much each direction listens to the other in the rounds of the model, from 0 to 1; 0 is maximum likelihood.
    pub agreement: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { kind: Kind::Hmm, first_rounds: 10, rounds: 5, null: 0.02, prior: 0.01, agreement: 0.5 }
    }
}

/// What is told after each round.
#[derive(Debug, Clone, Copy)]
pub struct Round {
    /// Model of this round.
    pub kind: Kind,
    /// Which round, from 1, over both models.
    pub round: usize,
    /// ln p(target | source) and ln p(source | target) with the parameters that the round began with.
    pub log_likelihood: [f64; 2],
}

/// One direction: how given words and positions give rise to generated ones. Direction 0 generates the target.
#[derive(Debug, Clone)]
struct Direction {
    /// p(generated | given) by pair.
    words: Vec<f32>,
    /// p(generated | null word).
    of_null: Vec<f32>,
    positions: Positions,
}

/// A trained pair of models.
#[derive(Debug, Clone)]
pub struct Model {
    kind: Kind,
    null: f64,
    pairs: FxHashMap<u64, u32>,
    directions: [Direction; 2],
    /// Pair of words at each place of each pair of sentences, while they are trained on.
    cells: Vec<u32>,
}

/// Words that were never seen together, or not at all.
const UNSEEN: f64 = 1e-9;
/// Marks a pair that was never seen.
const NO_PAIR: u32 = u32::MAX;
/// Sentences that are worked on together.
const CHUNK: usize = 256;
/// Counts are multiples of one in this many.
const UNIT: f64 = 4_294_967_296.0;

fn pair_key(source: u32, target: u32) -> u64 {
    (u64::from(source) << 32) | u64::from(target)
}

/// Expected counts of one direction.
struct Counts {
    words: Vec<AtomicU64>,
    of_null: Vec<AtomicU64>,
}

impl Counts {
    fn new(pairs: usize, generated: usize) -> Self {
        let zeros = |n: usize| (0..n).map(|_| AtomicU64::new(0)).collect();
        Counts { words: zeros(pairs), of_null: zeros(generated) }
    }
}

#[inline]
fn count(at: &AtomicU64, p: f64) {
    let units = (p * UNIT + 0.5) as u64;
    if units > 0 {
        at.fetch_add(units, Ordering::Relaxed);
    }
}

impl Model {
    /// Trains on a corpus.
    pub fn train(corpus: &Corpus, settings: &Settings, told: &mut dyn FnMut(&Round)) -> Model {
        let mut model = Self::untrained(corpus, settings);
        let starts = model.starts(corpus);
        let given: Given = model.given(corpus);
        let rounds = (0..settings.first_rounds).map(|_| Kind::Ibm1);
        for (round, kind) in rounds.chain((0..settings.rounds).map(|_| settings.kind)).enumerate() {
            if round == settings.first_rounds {
                for direction in &mut model.directions {
                    direction.positions = match kind {
                        Kind::Ibm1 => Positions::Uniform,
                        Kind::Ibm2 => Positions::Diagonal(4.0),
                        Kind::Hmm => Positions::Steps(Steps::default()),
                    };
                }
            }
            let agreement = if round < settings.first_rounds { 0.0 } else { settings.agreement };
            let log_likelihood = model.round(corpus, &starts, &given, settings.prior, agreement);
            told(&Round { kind, round: round + 1, log_likelihood });
        }
        model
    }

    /// Numbers the pairs, all equally likely.
    fn untrained(corpus: &Corpus, settings: &Settings) -> Model {
        let mut pairs: FxHashMap<u64, u32> = FxHashMap::default();
        let places = (0..corpus.len())
            .map(|s| corpus.source.sentence(s).len() * corpus.target.sentence(s).len())
            .sum();
        let mut cells = Vec::with_capacity(places);
        for s in 0..corpus.len() {
            for &e in corpus.target.sentence(s) {
                for &f in corpus.source.sentence(s) {
                    let next = pairs.len() as u32;
                    cells.push(*pairs.entry(pair_key(f, e)).or_insert(next));
                }
            }
        }
        let direction = |generated: usize| Direction {
            words: vec![1.0; pairs.len()],
            of_null: vec![1.0; generated],
            positions: Positions::Uniform,
        };
        let directions =
            [direction(corpus.target.vocabulary.len()), direction(corpus.source.vocabulary.len())];
        let mut model = Model {
            kind: if settings.rounds > 0 { settings.kind } else { Kind::Ibm1 },
            null: settings.null,
            pairs,
            directions,
            cells,
        };
        // A given word makes each of the words it stands with equally likely; so does the null word with all.
        for d in 0..2 {
            let given = model.given(corpus);
            let mut partners = vec![0u32; given.words[d]];
            for &g in &given.of_pair[d] {
                partners[g as usize] += 1;
            }
            let direction = &mut model.directions[d];
            for (p, &g) in direction.words.iter_mut().zip(&given.of_pair[d]) {
                *p = 1.0 / partners[g as usize] as f32;
            }
            let all = direction.of_null.len() as f32;
            direction.of_null.fill(1.0 / all);
        }
        model
    }

    /// Where the cells of each pair of sentences begin.
    #[allow(clippy::unused_self)]
    fn starts(&self, corpus: &Corpus) -> Vec<usize> {
        let mut at = 0;
        let mut starts = Vec::with_capacity(corpus.len());
        for s in 0..corpus.len() {
            starts.push(at);
            at += corpus.source.sentence(s).len() * corpus.target.sentence(s).len();
        }
        starts
    }

    fn given(&self, corpus: &Corpus) -> Given {
        let mut of_pair = [vec![0; self.pairs.len()], vec![0; self.pairs.len()]];
        // Each pair writes to its own place: the order does not matter.
        #[allow(clippy::iter_over_hash_type)]
        for (&key, &id) in &self.pairs {
            of_pair[0][id as usize] = (key >> 32) as u32;
            of_pair[1][id as usize] = key as u32;
        }
        Given { of_pair, words: [corpus.source.vocabulary.len(), corpus.target.vocabulary.len()] }
    }

    /// Priors over positions for the sentences of a corpus.
    fn prepared(&self, corpus: &Corpus) -> [Prepared<'_>; 2] {
        let sides = [&corpus.source, &corpus.target];
        [0, 1].map(|d| {
            let lengths = (0..corpus.len()).map(|s| sides[d].sentence(s).len());
            Prepared::new(&self.directions[d].positions, self.null, lengths)
        })
    }

    /// One round: expectations over all sentences, then new parameters.
    fn round(
        &mut self,
        corpus: &Corpus,
        starts: &[usize],
        given: &Given,
        prior: f64,
        agreement: f64,
    ) -> [f64; 2] {
        let counts = [0, 1].map(|d| Counts::new(self.pairs.len(), self.directions[d].of_null.len()));
        let parts = {
            let prepared = self.prepared(corpus);
            map_chunks(corpus.len(), CHUNK, |range| {
                let mut expected = [Expected::default(), Expected::default()];
                let mut scratch = [Scratch::default(), Scratch::default()];
                for s in range {
                    let cells = self.cells_of(corpus, starts, s);
                    let views = [0, 1].map(|d| View::new(corpus, s, d));
                    for d in 0..2 {
                        self.fill(&views[d], cells, 0.0, &mut scratch[d]);
                        prepared[d].infer(views[d].given.len(), &mut scratch[d], &mut expected[d]);
                    }
                    if agreement > 0.0 {
                        agree(&mut scratch, agreement);
                    }
                    for d in 0..2 {
                        views[d].scatter(cells, &scratch[d], &counts[d]);
                    }
                }
                expected
            })
        };
        let mut expected = [Expected::default(), Expected::default()];
        for part in parts {
            for (e, p) in expected.iter_mut().zip(part) {
                e.add(p);
            }
        }
        for d in 0..2 {
            let direction = &mut self.directions[d];
            direction.positions = direction.positions.raised(&expected[d]);
            direction.raise_words(&counts[d], &given.of_pair[d], given.words[d], prior);
        }
        [expected[0].log_likelihood, expected[1].log_likelihood]
    }

    fn cells_of(&self, corpus: &Corpus, starts: &[usize], s: usize) -> &[u32] {
        let places = corpus.source.sentence(s).len() * corpus.target.sentence(s).len();
        &self.cells[starts[s]..starts[s] + places]
    }

    /// Fills in what the words say, at least `floor`.
    fn fill(&self, view: &View<'_>, cells: &[u32], floor: f64, scratch: &mut Scratch) {
        let direction = &self.directions[view.direction];
        let p = |cell: u32| direction.words.get(cell as usize).map_or(floor, |&p| f64::from(p).max(floor));
        let (words, of_null) = (&mut scratch.words, &mut scratch.of_null);
        words.clear();
        if view.direction == 0 {
            words.extend(cells.iter().map(|&c| p(c)));
        } else {
            // Cells are by target word; here target words are given.
            let sources = view.generated.len();
            for j in 0..sources {
                words.extend(cells.iter().skip(j).step_by(sources).map(|&c| p(c)));
            }
        }
        of_null.clear();
        let null = |w: u32| direction.of_null.get(w as usize).map_or(floor, |&p| f64::from(p).max(floor));
        of_null.extend(view.generated.iter().map(|&w| null(w)));
    }

    /// The links of each pair of sentences, both directions joined.
    pub fn align(&self, corpus: &Corpus, how: Symmetrization) -> Vec<Vec<Link>> {
        let starts = if self.cells.is_empty() { Vec::new() } else { self.starts(corpus) };
        let prepared = self.prepared(corpus);
        let chunks = map_chunks(corpus.len(), CHUNK, |range| {
            let mut scratch = Scratch::default();
            let (mut best, mut looked_up) = (Vec::new(), Vec::new());
            let mut answer = Vec::with_capacity(range.len());
            for s in range {
                let cells = if starts.is_empty() {
                    self.look_up(corpus, s, &mut looked_up);
                    &looked_up
                } else {
                    self.cells_of(corpus, &starts, s)
                };
                let both: [Vec<Link>; 2] = [0, 1].map(|d| {
                    let view = View::new(corpus, s, d);
                    self.fill(&view, cells, UNSEEN, &mut scratch);
                    prepared[d].best(view.given.len(), &mut scratch, &mut best);
                    let linked = best.iter().enumerate().filter_map(|(j, i)| i.map(|i| (i as u16, j as u16)));
                    let mut links: Vec<Link> =
                        linked.map(|(i, j)| if d == 0 { (i, j) } else { (j, i) }).collect();
                    links.sort_unstable();
                    links
                });
                let lengths = (corpus.source.sentence(s).len(), corpus.target.sentence(s).len());
                answer.push(links::symmetrize(&both[0], &both[1], lengths, how));
            }
            answer
        });
        chunks.into_iter().flatten().collect()
    }

    fn look_up(&self, corpus: &Corpus, s: usize, cells: &mut Vec<u32>) {
        cells.clear();
        for &e in corpus.target.sentence(s) {
            for &f in corpus.source.sentence(s) {
                cells.push(self.pairs.get(&pair_key(f, e)).copied().unwrap_or(NO_PAIR));
            }
        }
    }

    /// What is believed about positions: of the target given the source, and the other way round.
    pub fn positions(&self) -> [&Positions; 2] {
        [&self.directions[0].positions, &self.directions[1].positions]
    }

    /// Pairs of words that have a probability.
    pub fn pairs(&self) -> usize {
        self.pairs.len()
    }
}

/// Counts links that both directions believe in (Liang et al. 2006): a share of each posterior is multiplied by the other's.
fn agree([forward, backward]: &mut [Scratch; 2], share: f64) {
    let (targets, sources) = (forward.null.len(), backward.null.len());
    for j in 0..targets {
        for i in 0..sources {
            let (a, b) = (&mut forward.posterior[j * sources + i], &mut backward.posterior[i * targets + j]);
            let both = share * *a * *b;
            *a = (1.0 - share) * *a + both;
            *b = (1.0 - share) * *b + both;
        }
    }
}

/// The given word of each pair, by direction, and how many words can be given.
struct Given {
    of_pair: [Vec<u32>; 2],
    words: [usize; 2],
}

/// One pair of sentences as one direction sees it.
struct View<'a> {
    direction: usize,
    given: &'a [u32],
    generated: &'a [u32],
}

impl<'a> View<'a> {
    fn new(corpus: &'a Corpus, s: usize, direction: usize) -> Self {
        let (f, e) = (corpus.source.sentence(s), corpus.target.sentence(s));
        let (given, generated) = if direction == 0 { (f, e) } else { (e, f) };
        View { direction, given, generated }
    }

    /// Adds posteriors to the counts.
    fn scatter(&self, cells: &[u32], scratch: &Scratch, counts: &Counts) {
        let (given, generated) = (self.given.len(), self.generated.len());
        for (j, row) in scratch.posterior.chunks_exact(given).enumerate() {
            for (i, &p) in row.iter().enumerate() {
                let cell = if self.direction == 0 { cells[j * given + i] } else { cells[i * generated + j] };
                count(&counts.words[cell as usize], p);
            }
            count(&counts.of_null[self.generated[j] as usize], scratch.null[j]);
        }
    }
}

impl Direction {
    /// Relative frequencies of the counts, or their mean under a sparse prior.
    fn raise_words(&mut self, counts: &Counts, given: &[u32], words: usize, prior: f64) {
        let read = |c: &AtomicU64| c.load(Ordering::Relaxed);
        let (mut totals, mut partners) = (vec![0u64; words], vec![0u32; words]);
        for (c, &g) in counts.words.iter().zip(given) {
            totals[g as usize] += read(c);
            partners[g as usize] += 1;
        }
        let all: u64 = counts.of_null.iter().map(read).sum();
        let share = |count: u64, total: u64, partners: u32| {
            let real = |units: u64| units as f64 / UNIT;
            if prior > 0.0 {
                let log = digamma(real(count) + prior) - digamma(real(total) + prior * f64::from(partners));
                // Not 0, so that no word is left without any word behind it.
                (log.exp() as f32).max(f32::MIN_POSITIVE)
            } else {
                (count as f64 / total.max(1) as f64) as f32
            }
        };
        self.words.par_iter_mut().zip(&counts.words).zip(given).for_each(|((p, c), &g)| {
            *p = share(read(c), totals[g as usize], partners[g as usize]);
        });
        let words = self.of_null.len() as u32;
        for (p, c) in self.of_null.iter_mut().zip(&counts.of_null) {
            *p = share(read(c), all, words);
        }
    }
}

/// ψ(x), by recurrence and its asymptotic series.
fn digamma(mut x: f64) -> f64 {
    let mut result = 0.0;
    while x < 6.0 {
        result -= 1.0 / x;
        x += 1.0;
    }
    let inverse = 1.0 / (x * x);
    let series = inverse * (1.0 / 12.0 - inverse * (1.0 / 120.0 - inverse * (1.0 / 252.0 - inverse / 240.0)));
    result + x.ln() - 0.5 / x - series
}
