//! Word alignment by expectation maximisation (EM), in both directions at once.
//!
//! In each direction, a sentence e of J words is *generated* from a *given* sentence f of I words with
//! probability p(e | f) = Σₐ Πⱼ p(aⱼ | …)·t(eⱼ | f(aⱼ)), where eⱼ is aligned with f(aⱼ) or with the null
//! word. The models differ in p(aⱼ | …): it is uniform for IBM Model 1 (Brown et al. 1993), ∝ exp(−λ |i/I −
//! j/J|) for IBM Model 2 (Dyer et al. 2013), and depends on the distance aⱼ − aⱼ₋₁ for the HMM (Vogel et al.
//! 1996).
//!
//! The E-step of each iteration computes the posterior probabilities of all links (for the HMM by the
//! forward–backward algorithm); the M-step computes new probabilities from the expected counts c: relative
//! frequencies, or, with a Dirichlet prior α, exp ψ(c + α)/exp ψ(Σ(c + α)) (variational Bayes). With
//! agreement, a share of each posterior is multiplied by that of the other direction (after Liang et al.
//! 2006). Training stops after a fixed number of iterations, each of which costs O(Σ I·J) for the IBM models
//! and O(Σ I²·J) for the HMM, summed over sentence pairs.
//!
//! All pairs of words that co-occur in a sentence pair are numbered; both directions index their
//! probabilities by this number. Expected counts are sums of integer multiples of 2⁻³², so that they do not
//! depend on the order of additions or the number of threads.
//!
//! ```
//! use luthier_core::Progress;
//! use luthier_io::Input;
//! use luthier_train::{Corpus, align::{Model, Settings}};
//! let input = |text: &'static str| Input::new("text", text.as_bytes()).unwrap();
//! let (mut f, mut e) = (input("das haus\ndas buch\n"), input("the house\nthe book\n"));
//! let corpus = Corpus::read(&mut f, &mut e, 100, Progress::NONE)?;
//! let settings = Settings::default();
//! let model = Model::train(&corpus, &settings, Progress::NONE)?;
//! let links = model.align(&corpus, settings.symmetrize, Progress::NONE)?;
//! assert_eq!(links, [[(0, 0), (1, 1)], [(0, 0), (1, 1)]]);
//! # luthier_core::Result::Ok(())
//! ```

mod position;
mod saved;
#[cfg(test)]
mod tests;

use crate::{Corpus, Link, Symmetrization, links};
use luthier_core::{Error, Progress, Result, Step, math, sum::map_chunks};
use luthier_io::Meter;
use position::{Expected, Prepared, Scratch};
pub use position::{Positions, Steps};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};

/// Word alignment model that is trained after the initial iterations of IBM Model 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Kind {
    /// Hidden Markov model: jump probabilities relative to the alignment of the previous word (Vogel et al. 1996).
    #[default]
    Hmm,
    /// IBM Model 2 with a diagonal prior, as in `fast_align` (Dyer et al. 2013).
    Ibm2,
    /// IBM Model 1, without positions (Brown et al. 1993).
    Ibm1,
}

/// Settings of word alignment: model, iterations, priors and symmetrisation.
///
/// ```
/// use luthier_train::align::{Kind, Settings};
/// let settings = Settings { kind: Kind::Ibm2, ..Settings::default() };
/// assert_eq!((settings.first_rounds, settings.rounds), (10, 5));
/// assert!(Settings { null: 1.0, ..settings }.check().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args), group(skip))]
pub struct Settings {
    /// Alignment model.
    #[serde(rename = "align-model")]
    #[cfg_attr(
        feature = "clap",
        arg(id = "aligner", long, value_name = "MODEL", value_enum, default_value_t)
    )]
    pub kind: Kind,
    /// Training iterations of the alignment model.
    #[cfg_attr(
        feature = "clap",
        arg(id = "iterations", long, value_name = "N", default_value_t = Settings::default().rounds, allow_negative_numbers = true)
    )]
    pub rounds: u16,
    /// IBM Model 1 iterations before the main model.
    #[cfg_attr(
        feature = "clap",
        arg(id = "model1_iterations", long = "model1-iterations", value_name = "N", default_value_t = Settings::default().first_rounds, allow_negative_numbers = true)
    )]
    pub first_rounds: u16,
    /// Probability that a word is aligned with the null word, between 0 and 1.
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "P", default_value_t = Settings::default().null, allow_negative_numbers = true,
            value_parser = |text: &str| flag(text, is_null, "a number between 0 and 1"))
    )]
    pub null: f64,
    /// Dirichlet prior over word translations (variational Bayes), or 0 for maximum likelihood; perplexities
    /// with different priors are not comparable.
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "A", default_value_t = Settings::default().prior, allow_negative_numbers = true,
            value_parser = |text: &str| flag(text, is_prior, "a number, 0 or more"))
    )]
    pub prior: f64,
    /// Strength of agreement between the two directions in the iterations of the main model, from 0 to 1
    /// (Liang et al. 2006).
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "A", default_value_t = Settings::default().agreement, allow_negative_numbers = true,
            value_parser = |text: &str| flag(text, is_share, "a number from 0 to 1"))
    )]
    pub agreement: f64,
    /// Symmetrisation of the alignments of both directions.
    #[cfg_attr(feature = "clap", arg(long, value_name = "HOW", value_enum, default_value_t))]
    pub symmetrize: Symmetrization,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            kind: Kind::default(),
            rounds: 5,
            first_rounds: 10,
            null: 0.02,
            prior: 0.01,
            agreement: 0.5,
            symmetrize: Symmetrization::default(),
        }
    }
}

fn is_null(p: f64) -> bool {
    p > 0.0 && p < 1.0
}

fn is_prior(a: f64) -> bool {
    a >= 0.0 && a.is_finite()
}

fn is_share(a: f64) -> bool {
    (0.0..=1.0).contains(&a)
}

/// Parses a number of the command line. Fails with a message that says what is `expected` unless it is
/// `good`.
#[cfg(feature = "clap")]
fn flag(text: &str, good: fn(f64) -> bool, expected: &str) -> std::result::Result<f64, String> {
    text.parse().ok().filter(|&v| good(v)).ok_or_else(|| format!("expected {expected}"))
}

impl Settings {
    /// Fails if both numbers of iterations are 0, or if a number is out of range.
    pub fn check(&self) -> Result<()> {
        if self.first_rounds == 0 && self.rounds == 0 {
            return Err(Error::new(
                "--iterations and --model1-iterations are both 0, so nothing would be learned",
            ));
        }
        for (name, value, good, expected) in [
            ("null", self.null, is_null(self.null), "a number between 0 and 1"),
            ("prior", self.prior, is_prior(self.prior), "a number, 0 or more"),
            ("agreement", self.agreement, is_share(self.agreement), "a number from 0 to 1"),
        ] {
            if !good {
                return Err(Error::new(format!("{name} is {value}, expected {expected}")));
            }
        }
        Ok(())
    }
}

/// Record of one training iteration, as returned by [`Model::rounds`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Round {
    /// Model that was trained in this iteration.
    pub kind: Kind,
    /// Number of the iteration, from 1, counted over both models.
    pub round: usize,
    /// ln p(target | source) and ln p(source | target) of the whole corpus under the parameters before this iteration.
    pub log_likelihood: [f64; 2],
}

/// Parameters of one direction. Direction 0 generates the target from the source, direction 1 the source from
/// the target.
#[derive(Debug, Clone)]
struct Direction {
    /// t(generated word | given word), by number of the word pair.
    words: Vec<f32>,
    /// t(generated word | null word), by generated word.
    of_null: Vec<f32>,
    /// Prior over positions.
    positions: Positions,
}

/// A trained aligner: one model of the target given the source, and one of the source given the target.
///
/// ```
/// # use luthier_core::Progress;
/// # use luthier_io::Input;
/// # use luthier_train::{Corpus, align::{Model, Settings}};
/// # let input = |text: &'static str| Input::new("text", text.as_bytes()).unwrap();
/// # let corpus = Corpus::read(&mut input("das haus\ndas buch\n"), &mut input("the house\nthe book\n"), 100, Progress::NONE)?;
/// let model = Model::train(&corpus, &Settings { prior: 0.0, agreement: 0.0, ..Settings::default() }, Progress::NONE)?;
/// let rounds = model.rounds();
/// assert_eq!(rounds.len(), 15);
/// assert!(rounds[9].log_likelihood[0] > rounds[0].log_likelihood[0], "the likelihood rises");
/// # luthier_core::Result::Ok(())
/// ```
#[derive(Debug, Clone)]
pub struct Model {
    kind: Kind,
    /// Probability of an alignment with the null word.
    null: f64,
    rounds: Vec<Round>,
    /// Number of each pair of words that co-occur.
    pairs: FxHashMap<u64, u32>,
    directions: [Direction; 2],
    /// Number of the word pair for every target and source position of every training sentence pair; empty
    /// for a model that was loaded.
    cells: Vec<u32>,
}

/// Probability of word pairs that did not co-occur in training, and of unknown words.
const UNSEEN: f64 = 1e-9;
/// Number of a word pair that did not co-occur in training.
const NO_PAIR: u32 = u32::MAX;
/// Number of sentence pairs that one task processes.
const CHUNK: usize = 256;
/// Number of sentence pairs between two calls of the meter.
const TURNS: usize = 8;
/// Number of word pairs between two calls of the meter.
const PART: usize = 1 << 14;
/// Number of units that an expected count of 1 has.
const UNIT: f64 = 4_294_967_296.0;

/// Returns the key of a word pair.
fn pair_key(source: u32, target: u32) -> u64 {
    (u64::from(source) << 32) | u64::from(target)
}

/// Expected counts of one direction, in units of 2⁻³².
struct Counts {
    /// Count of each word pair.
    words: Vec<AtomicU64>,
    /// Count of each generated word with the null word.
    of_null: Vec<AtomicU64>,
}

impl Counts {
    fn new(pairs: usize, generated: usize) -> Self {
        let zeros = |n: usize| (0..n).map(|_| AtomicU64::new(0)).collect();
        Counts { words: zeros(pairs), of_null: zeros(generated) }
    }
}

/// Reports progress at sentence pair `s` of `all`. Fails if the callback returns *stop*.
fn report(meter: &Meter<'_>, s: usize, all: usize) -> Result<()> {
    if s.is_multiple_of(TURNS) { meter.add(TURNS.min(all - s)) } else { Ok(()) }
}

/// Adds a posterior probability to an expected count.
#[inline]
fn count(at: &AtomicU64, p: f64) {
    let units = (p * UNIT + 0.5) as u64;
    if units > 0 {
        at.fetch_add(units, Ordering::Relaxed);
    }
}

impl Model {
    /// Trains an aligner on a corpus. Reports `lines` within each iteration, and after it `rounds`, with the
    /// sum of the log-likelihoods of both directions as value. Fails if settings are out of range, and with
    /// kind [`Interrupted`](luthier_core::ErrorKind::Interrupted) if `progress` returns *stop*.
    pub fn train(corpus: &Corpus, settings: &Settings, progress: Progress<'_>) -> Result<Model> {
        settings.check()?;
        let mut model = Self::untrained(corpus, settings, progress)?;
        let starts = model.starts(corpus);
        let given: Given = model.given(corpus);
        let [first_rounds, rounds] = [settings.first_rounds, settings.rounds].map(usize::from);
        let kinds = (0..first_rounds).map(|_| Kind::Ibm1).chain((0..rounds).map(|_| settings.kind));
        for (round, kind) in kinds.enumerate() {
            if round == first_rounds {
                for direction in &mut model.directions {
                    direction.positions = match kind {
                        Kind::Ibm1 => Positions::Uniform,
                        Kind::Ibm2 => Positions::Diagonal(4.0),
                        Kind::Hmm => Positions::Steps(Steps::default()),
                    };
                }
            }
            let agreement = if round < first_rounds { 0.0 } else { settings.agreement };
            let meter = Meter::new(progress, "lines", corpus.len());
            let log_likelihood = model.round(corpus, &starts, &given, settings.prior, agreement, &meter)?;
            model.rounds.push(Round { kind, round: round + 1, log_likelihood });
            let total = (first_rounds + rounds) as u64;
            let value = Some(log_likelihood[0] + log_likelihood[1]);
            progress.report(&Step { what: "rounds", done: round as u64 + 1, total, value })?;
        }
        Ok(model)
    }

    /// Returns a model with uniform probabilities, in which all co-occurring word pairs are numbered.
    fn untrained(corpus: &Corpus, settings: &Settings, progress: Progress<'_>) -> Result<Model> {
        let meter = Meter::new(progress, "lines", corpus.len());
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
            if s.is_multiple_of(TURNS) {
                meter.add(if s == 0 { 0 } else { TURNS })?;
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
            rounds: Vec::new(),
            pairs,
            directions,
            cells,
        };
        // t(· | given word) is uniform over the words it co-occurs with, t(· | null word) over all words.
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
            meter.add(0)?;
        }
        Ok(model)
    }

    /// Returns the start in `cells` of each sentence pair.
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

    /// Returns the given word of each word pair, in each direction.
    fn given(&self, corpus: &Corpus) -> Given {
        let mut of_pair = [vec![0; self.pairs.len()], vec![0; self.pairs.len()]];
        // The order of iteration does not matter, because each pair has its own element.
        #[allow(clippy::iter_over_hash_type)]
        for (&key, &id) in &self.pairs {
            of_pair[0][id as usize] = (key >> 32) as u32;
            of_pair[1][id as usize] = key as u32;
        }
        Given { of_pair, words: [corpus.source.vocabulary.len(), corpus.target.vocabulary.len()] }
    }

    /// Returns the priors over positions of both directions, for the sentence lengths of a corpus.
    fn prepared(&self, corpus: &Corpus) -> [Prepared<'_>; 2] {
        let sides = [&corpus.source, &corpus.target];
        [0, 1].map(|d| {
            let lengths = (0..corpus.len()).map(|s| sides[d].sentence(s).len());
            Prepared::new(&self.directions[d].positions, self.null, lengths)
        })
    }

    /// Performs one iteration of EM; returns the log-likelihoods of both directions before it. Fails if the
    /// progress callback returns *stop*.
    fn round(
        &mut self,
        corpus: &Corpus,
        starts: &[usize],
        given: &Given,
        prior: f64,
        agreement: f64,
        meter: &Meter<'_>,
    ) -> Result<[f64; 2]> {
        let counts = [0, 1].map(|d| Counts::new(self.pairs.len(), self.directions[d].of_null.len()));
        let parts = {
            let prepared = self.prepared(corpus);
            map_chunks(corpus.len(), CHUNK, |range| {
                let mut expected = [Expected::default(), Expected::default()];
                let mut scratch = [Scratch::default(), Scratch::default()];
                for s in range {
                    report(meter, s, corpus.len())?;
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
                Ok(expected)
            })
        };
        let mut expected = [Expected::default(), Expected::default()];
        for part in parts {
            for (e, p) in expected.iter_mut().zip(part?) {
                e.add(p);
            }
        }
        for d in 0..2 {
            let direction = &mut self.directions[d];
            direction.positions = direction.positions.raised(&expected[d], meter)?;
            direction.update_words(&counts[d], &given.of_pair[d], given.words[d], prior, meter)?;
        }
        Ok([expected[0].log_likelihood, expected[1].log_likelihood])
    }

    /// Returns the word pairs of a training sentence pair, by target position, then source position.
    fn cells_of(&self, corpus: &Corpus, starts: &[usize], s: usize) -> &[u32] {
        let places = corpus.source.sentence(s).len() * corpus.target.sentence(s).len();
        &self.cells[starts[s]..starts[s] + places]
    }

    /// Writes the translation probabilities of a sentence pair, at least `floor` each, to `scratch`.
    fn fill(&self, view: &View<'_>, cells: &[u32], floor: f64, scratch: &mut Scratch) {
        let direction = &self.directions[view.direction];
        let p = |cell: u32| direction.words.get(cell as usize).map_or(floor, |&p| f64::from(p).max(floor));
        let (words, of_null) = (&mut scratch.words, &mut scratch.of_null);
        words.clear();
        if view.direction == 0 {
            words.extend(cells.iter().map(|&c| p(c)));
        } else {
            // Cells are ordered by target position; in this direction, the target is given.
            let sources = view.generated.len();
            for j in 0..sources {
                words.extend(cells.iter().skip(j).step_by(sources).map(|&c| p(c)));
            }
        }
        of_null.clear();
        let null = |w: u32| direction.of_null.get(w as usize).map_or(floor, |&p| f64::from(p).max(floor));
        of_null.extend(view.generated.iter().map(|&w| null(w)));
    }

    /// Returns the links of each sentence pair of a corpus, in order: the most probable alignment of each
    /// direction, symmetrised. The corpus must be the one that the model was trained on, or one that was read
    /// with the model's vocabularies. Reports `lines`. Fails with kind
    /// [`Interrupted`](luthier_core::ErrorKind::Interrupted) if `progress` returns *stop*.
    pub fn align(
        &self,
        corpus: &Corpus,
        how: Symmetrization,
        progress: Progress<'_>,
    ) -> Result<Vec<Vec<Link>>> {
        let starts = if self.cells.is_empty() { Vec::new() } else { self.starts(corpus) };
        let prepared = self.prepared(corpus);
        let meter = Meter::new(progress, "lines", corpus.len());
        let chunks = map_chunks(corpus.len(), CHUNK, |range| {
            let mut scratch = Scratch::default();
            let (mut best, mut looked_up) = (Vec::new(), Vec::new());
            let mut answer = Vec::with_capacity(range.len());
            for s in range {
                report(&meter, s, corpus.len())?;
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
            Ok(answer)
        });
        let chunks = chunks.into_iter().collect::<Result<Vec<_>>>()?;
        meter.finish()?;
        Ok(chunks.into_iter().flatten().collect())
    }

    /// Writes the numbers of the word pairs of a sentence pair to `cells`.
    fn look_up(&self, corpus: &Corpus, s: usize, cells: &mut Vec<u32>) {
        cells.clear();
        for &e in corpus.target.sentence(s) {
            for &f in corpus.source.sentence(s) {
                cells.push(self.pairs.get(&pair_key(f, e)).copied().unwrap_or(NO_PAIR));
            }
        }
    }

    /// Returns the training iterations in order, with their log-likelihoods; empty for a model that was
    /// loaded.
    pub fn rounds(&self) -> &[Round] {
        &self.rounds
    }

    /// Returns the perplexities per word of the target given the source, and of the source given the target,
    /// in the last training iteration; `corpus` is the training corpus. NaN for a model that was loaded.
    pub fn perplexities(&self, corpus: &Corpus) -> [f64; 2] {
        let log = self.rounds.last().map_or([f64::NAN; 2], |r| r.log_likelihood);
        let words = [corpus.target.tokens(), corpus.source.tokens()];
        [0, 1].map(|d| math::exp(-log[d] / words[d] as f64))
    }

    /// Returns the priors over positions of both directions: target given source, then source given target.
    pub fn positions(&self) -> [&Positions; 2] {
        [&self.directions[0].positions, &self.directions[1].positions]
    }

    /// Returns the number of pairs of a source word and a target word that have a probability.
    pub fn pairs(&self) -> usize {
        self.pairs.len()
    }
}

/// Favours links that are probable in both directions (after Liang et al. 2006): of each posterior
/// probability, the part `share` is multiplied by the posterior of the other direction.
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

/// Given words of both directions.
struct Given {
    /// Given word of each word pair, by direction.
    of_pair: [Vec<u32>; 2],
    /// Size of the vocabulary of given words, by direction.
    words: [usize; 2],
}

/// A sentence pair in one direction.
struct View<'a> {
    direction: usize,
    given: &'a [u32],
    generated: &'a [u32],
}

impl<'a> View<'a> {
    /// Returns sentence pair `s` of a corpus in a direction.
    fn new(corpus: &'a Corpus, s: usize, direction: usize) -> Self {
        let (f, e) = (corpus.source.sentence(s), corpus.target.sentence(s));
        let (given, generated) = if direction == 0 { (f, e) } else { (e, f) };
        View { direction, given, generated }
    }

    /// Adds the posterior probabilities of a sentence pair to the expected counts.
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
    /// M-step of the translation probabilities: relative frequencies of the expected counts, or the
    /// variational Bayes estimate with Dirichlet prior `prior`. Fails if the progress callback returns
    /// *stop*.
    fn update_words(
        &mut self,
        counts: &Counts,
        given: &[u32],
        words: usize,
        prior: f64,
        meter: &Meter<'_>,
    ) -> Result<()> {
        let read = |c: &AtomicU64| c.load(Ordering::Relaxed);
        let (mut totals, mut partners) = (vec![0u64; words], vec![0u32; words]);
        for (c, &g) in counts.words.iter().zip(given) {
            totals[g as usize] += read(c);
            partners[g as usize] += 1;
        }
        let all: u64 = counts.of_null.iter().map(read).sum();
        let real = |units: u64| units as f64 / UNIT;
        // What the estimates of one given word have in common, computed once because digamma is slow.
        let normalizer = |total: u64, partners: u32| {
            if prior > 0.0 { digamma(real(total) + prior * f64::from(partners)) } else { total.max(1) as f64 }
        };
        let share = |count: u64, normalizer: f64| {
            if prior > 0.0 {
                let log = digamma(real(count) + prior) - normalizer;
                // Not 0, so that every generated word keeps a positive probability.
                (math::exp(log) as f32).max(f32::MIN_POSITIVE)
            } else {
                (count as f64 / normalizer) as f32
            }
        };
        let of_given: Vec<f64> = totals.iter().zip(&partners).map(|(&t, &p)| normalizer(t, p)).collect();
        let parts =
            self.words.par_chunks_mut(PART).zip(counts.words.par_chunks(PART)).zip(given.par_chunks(PART));
        parts.try_for_each(|((words, counts), given)| {
            for ((p, c), &g) in words.iter_mut().zip(counts).zip(given) {
                *p = share(read(c), of_given[g as usize]);
            }
            meter.add(0)
        })?;
        let of_null = normalizer(all, self.of_null.len() as u32);
        for (p, c) in self.of_null.iter_mut().zip(&counts.of_null) {
            *p = share(read(c), of_null);
        }
        Ok(())
    }
}

/// Returns the digamma function ψ(x) for x > 0, by recurrence and its asymptotic series.
fn digamma(mut x: f64) -> f64 {
    let mut result = 0.0;
    while x < 6.0 {
        result -= 1.0 / x;
        x += 1.0;
    }
    let inverse = 1.0 / (x * x);
    let series = inverse * (1.0 / 12.0 - inverse * (1.0 / 120.0 - inverse * (1.0 / 252.0 - inverse / 240.0)));
    result + math::ln(x) - 0.5 / x - series
}
