//! Ranking of oracles above all other candidates, batch by batch: ORO, O-ORO and batch MIRA (Watanabe 2012).

use super::{Learner, Note, grow};
use crate::{
    Candidates, Evidence, Fleet, State,
    pairs::{OracleBy, oracles},
};
use luthier_core::{
    Progress, Result, Weights,
    random::{Purpose, Stream},
};
use luthier_metric::{Metric, SentenceSmoothing, add};
use luthier_optim::{Examples, dot, dual, dual_newton, dual_simplex};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Ranking loss of [`Rank`] over the oracles and the other candidates of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum RankLoss {
    /// Hinge loss max(0, 1 − w·Φ) of each pair of an oracle and another candidate (Watanabe 2012, eq. 5).
    Hinge,
    /// Negative log-likelihood of each segment's oracles (Watanabe 2012, eq. 6).
    Softmax,
}

/// Decay of the learning rate η over the steps k of online learning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Decay {
    /// η₀·α^(k/K) at step k, with K batches per epoch (Watanabe 2012).
    Exponential,
    /// 1/(λk) at step k (Shalev-Shwartz et al. 2007).
    Pegasos,
}

/// Learning rate of step k = 1, 2, …, which is counted across epochs: η₀·α^(k/K) or 1/(λk).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Form of the learning rate's decay.
    pub decay: Decay,
    /// η₀: initial learning rate of the exponential decay, above 0; not used by Pegasos.
    pub eta0: f64,
    /// α in (0, 1]: factor of the learning rate per epoch, for the exponential decay; not used by Pegasos.
    pub alpha: f64,
}

impl Rate {
    /// Learning rate 1/(λk) of Pegasos.
    pub const PEGASOS: Rate = Rate { decay: Decay::Pegasos, eta0: 0.0, alpha: 0.0 };

    /// Learning rate η₀·α^(k/K) with K batches per epoch.
    pub const fn exponential(eta0: f64, alpha: f64) -> Self {
        Rate { decay: Decay::Exponential, eta0, alpha }
    }
}

/// Divisor of the sub-gradient of the hinge loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Norm {
    /// M′: the number of pairs with a margin below 1.
    Violated,
    /// M: the number of all pairs of oracles and other candidates.
    Pairs,
}

/// Feasible set of the Lagrange multipliers τ in O-ORO's inner problem (Watanabe 2012, §4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Each τ from 0 to η, then all scaled down to a sum of η (Watanabe 2012, footnote 2).
    Normalized,
    /// Each τ from 0 to η: the dual of Watanabe's eq. 12.
    Box,
    /// All τ at least 0 with a sum of at most η: Watanabe's eq. 14 as printed.
    Simplex,
}

/// Linearisation of the softmax loss in O-ORO (Watanabe 2012, eq. 16–17).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Linearize {
    /// Eq. 16 as printed, whose offset lacks w·Ψ.
    Printed,
    /// The tangent plane of the loss at the current weights.
    Tangent,
}

/// Margin that MIRA requires between an oracle and another candidate (Watanabe 2012, eq. 13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum RankMargin {
    /// A margin of 1 for every pair.
    One,
    /// Loss of the batch's score, from 0 to 1, when the other candidate replaces the oracle.
    Error,
}

/// Update rule of [`Rank`]: ORO, O-ORO or batch MIRA.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// ORO (Watanabe 2012, Algorithm 2): shrink w by 1 − λη, step along the sub-gradient of the loss by η,
    /// project onto the ball of radius 1/√λ.
    Gradient {
        /// Ranking loss whose sub-gradient is followed.
        loss: RankLoss,
        /// Learning rate η of each step.
        rate: Rate,
        /// λ: weight of the regulariser ½‖w‖², above 0.
        lambda: f64,
        /// Divisor of the sub-gradient, for the hinge loss.
        norm: Norm,
    },
    /// O-ORO (Watanabe 2012, §4.1, eq. 12–17): as ORO, but each part of the step is weighted by the Lagrange
    /// multiplier that solves an inner problem over the batch.
    Optimized {
        /// Ranking loss of the inner problem.
        loss: RankLoss,
        /// Learning rate η, which bounds the Lagrange multipliers of each step.
        rate: Rate,
        /// λ: weight of the regulariser ½‖w‖², above 0.
        lambda: f64,
        /// Feasible set of the Lagrange multipliers.
        bound: Bound,
        /// Linearisation of the softmax loss; not used by the hinge loss.
        linearize: Linearize,
    },
    /// Batch MIRA (Watanabe 2012, eq. 13): the smallest change of w that separates all oracles from all other
    /// candidates of the batch, with multipliers 0 ≤ τ ≤ C; no shrinking, no projection.
    Passive {
        /// C = 1/λ: largest Lagrange multiplier, above 0.
        c: f64,
        /// Margin required between an oracle and another candidate.
        margin: RankMargin,
    },
}

/// Online ranking of oracles above all other candidates, batch by batch: ORO, O-ORO and batch MIRA (Watanabe
/// 2012).
///
/// The oracles of a batch are the candidates that together maximise its corpus score, and all that tie with
/// them. With Φ the difference of features of an oracle and another candidate, the objective is λ/2‖w‖² plus
/// the mean hinge loss max(0, 1 − w·Φ) (eq. 4–5) or the softmax loss (eq. 6); one call of `learn` takes one
/// step by `rule`. A sub-gradient step costs one pass over the batch, the inner problems of O-ORO and MIRA up
/// to 1,000 sweeps over its pairs. The schedule decides when to stop.
///
/// ```
/// # use luthier_core::{Progress, Weights};
/// # use luthier_io::nbest::Rows;
/// # use luthier_tune::{Evidence, Fleet, Judge, Learner, State, columns, lists};
/// # let mut rows = Rows::default();
/// use luthier_tune::{rank::{Norm, Rank, RankLoss, Rate, Rule}};
/// rows.push(0, "the house is very small", &[("lm", -2.0), ("tm", -3.0)], &[]).unwrap();
/// rows.push(0, "house the small", &[("lm", -6.0), ("tm", -1.0)], &[]).unwrap();
/// let metric: luthier_metric::Metric = "bleu".parse().unwrap();
/// # let references = [vec!["the house is very small"]];
/// # let judge = Judge::new(&metric, &references, "ref.txt");
/// # let lists = lists(&rows, &columns(&rows, None), Some(judge)).unwrap();
/// # let evidence = Evidence::Lists(lists.into_iter().map(Into::into).collect());
/// let mut state = State::new(Weights::parse("w.txt", "lm 0\ntm 0").unwrap());
/// let rate = Rate::exponential(0.5, 1.0); // η = 0.5 at every step
/// let rule = Rule::Gradient { loss: RankLoss::Hinge, rate, lambda: 1e-5, norm: Norm::Violated };
/// Rank::new(metric, rule, 1).learn(&evidence, &mut state, &Fleet::ALONE, Progress::NONE).unwrap();
/// assert_eq!(state.weights.values(), [2.0, -1.0]); // η·Φ = 0.5 · (−2 + 6, −3 + 1)
/// ```
#[derive(Debug, Clone)]
pub struct Rank {
    /// Metric to tune for: its corpus score chooses the oracles.
    pub metric: Metric,
    /// Smoothing of sentence BLEU, for oracles by sentence.
    pub plus_one: SentenceSmoothing,
    /// How the oracles of a batch are chosen.
    pub oracle: OracleBy,
    /// Update rule of each step.
    pub rule: Rule,
    /// Stopping rule of inner problems: largest relative gap between primal and dual value.
    pub tolerance: f64,
    /// Number of features in a batch up to which inner problems are solved by Newton steps on the dual, else
    /// by dual coordinate descent.
    pub few: usize,
    /// Seed of the oracle search and of the order of dual coordinate descent.
    pub seed: u64,
}

/// Sweeps of an inner problem at most.
const SWEEPS: usize = 1000;

impl Rank {
    /// Ranking with oracles by the corpus score of the batch, and inner problems solved to a gap of 10⁻³.
    pub fn new(metric: Metric, rule: Rule, seed: u64) -> Self {
        let plus_one = SentenceSmoothing::default();
        Rank { metric, plus_one, oracle: OracleBy::Corpus, rule, tolerance: 1e-3, few: 64, seed }
    }
}

impl Learner for Rank {
    fn learn(&self, evidence: &Evidence, state: &mut State, _: &Fleet<'_>, _: Progress<'_>) -> Result<Note> {
        let lists = evidence.lists();
        state.pass.visits += lists.len() as u64;
        for list in lists {
            grow(&mut state.weights, list)?;
        }
        let oracle = oracles(lists, &self.metric, self.plus_one, self.oracle, self.seed);
        for (list, oracle) in lists.iter().zip(&oracle) {
            if let Some(first) = oracle.iter().position(|o| *o) {
                add(&mut state.pass.aimed, list.stats_of(list.class[first]));
            }
        }
        let batches = u64::from(state.pass.batches.max(1));
        let k = u64::from(state.epoch) * batches + u64::from(state.batch.number) + 1;
        let rate = |rate: Rate, lambda: f64| match rate.decay {
            Decay::Exponential => rate.eta0 * rate.alpha.powf(k as f64 / batches as f64),
            Decay::Pegasos => 1.0 / (lambda * k as f64),
        };
        let problem = Problem::new(lists, &oracle, &state.weights);
        match self.rule {
            Rule::Gradient { loss, rate: r, lambda, norm } => {
                let eta = rate(r, lambda);
                let step = problem.gradient(loss, norm, &problem.gather(state.weights.values()));
                shrink(&mut state.weights, 1.0 - lambda * eta);
                problem.scatter(eta, &step, state.weights.values_mut());
                project(&mut state.weights, lambda);
            }
            Rule::Optimized { loss, rate: r, lambda, bound, linearize } => {
                let eta = rate(r, lambda);
                let before = problem.gather(state.weights.values());
                shrink(&mut state.weights, 1.0 - lambda * eta);
                let start = problem.gather(state.weights.values());
                let solved = match loss {
                    RankLoss::Hinge => {
                        let pairs = Pairs { problem: &problem, all: problem.pairs(), margins: None };
                        self.solve(&pairs, &start, eta, bound, k)
                    }
                    RankLoss::Softmax => {
                        let planes = Planes::new(&problem, &before, linearize);
                        self.solve(&planes, &start, eta, bound, k)
                    }
                };
                problem.scatter(1.0, &solved, state.weights.values_mut());
                project(&mut state.weights, lambda);
            }
            Rule::Passive { c, margin } => {
                let pairs = problem.pairs();
                let margins = match margin {
                    RankMargin::One => None,
                    RankMargin::Error => Some(errors(lists, &oracle, &pairs, &problem, &self.metric)),
                };
                let start = problem.gather(state.weights.values());
                let pairs = Pairs { problem: &problem, all: pairs, margins };
                let solved = self.solve(&pairs, &start, c, Bound::Box, k);
                problem.scatter(1.0, &solved, state.weights.values_mut());
            }
        }
        Ok(None)
    }
}

impl Rank {
    /// The change of the weights that solves an inner problem.
    fn solve(&self, examples: &dyn Examples, start: &[f64], eta: f64, bound: Bound, k: u64) -> Vec<f64> {
        let mut w = start.to_vec();
        let mut scale = 1.0;
        if bound == Bound::Simplex {
            dual_simplex(examples, &mut w, eta, self.tolerance, SWEEPS);
        } else {
            let mut stream = Stream::new(self.seed, Purpose::Pairs, (k >> 32) as u32, k as u32);
            let mut below = |n: usize| stream.below(n as u64) as usize;
            let found = if w.len() <= self.few {
                dual_newton(examples, &mut w, eta, self.tolerance, SWEEPS)
            } else {
                dual(examples, &mut w, eta, self.tolerance, SWEEPS, &mut below)
            };
            let sum: f64 = found.alpha.iter().sum();
            if bound == Bound::Normalized && sum > eta {
                scale = eta / sum;
            }
        }
        w.iter().zip(start).map(|(w, s)| scale * (w - s)).collect()
    }
}

fn shrink(weights: &mut Weights, by: f64) {
    weights.scale(by.max(0.0));
}

/// Into the ball of radius 1/√λ.
fn project(weights: &mut Weights, lambda: f64) {
    let norm = weights.values().iter().map(|w| w * w).sum::<f64>().sqrt();
    let radius = 1.0 / lambda.sqrt();
    if norm > radius {
        weights.scale(radius / norm);
    }
}

/// What the batch's score loses, from 0 to 1, when the worse candidate of each pair takes the place of the oracle.
fn errors(
    lists: &[Arc<Candidates>],
    oracle: &[Vec<bool>],
    pairs: &[(u32, u32)],
    problem: &Problem<'_>,
    metric: &Metric,
) -> Vec<f64> {
    let mut total = vec![0.0; metric.width()];
    let first = |s: usize| oracle[s].iter().position(|o| *o).map(|i| lists[s].class[i]);
    for (s, list) in lists.iter().enumerate() {
        add(&mut total, first(s).map_or(&[][..], |c| list.stats_of(c)));
    }
    let best = metric.score(&total);
    let mut loss: Vec<Vec<f64>> = Vec::new();
    for (s, list) in lists.iter().enumerate() {
        let Some(chosen) = first(s) else {
            loss.push(Vec::new());
            continue;
        };
        let swapped = |stats: &[f32]| {
            let changed = total.iter().zip(stats).zip(list.stats_of(chosen));
            let trial: Vec<f64> = changed.map(|((t, x), o)| t + f64::from(*x) - f64::from(*o)).collect();
            metric.unit() * (best - metric.score(&trial))
        };
        loss.push(list.stats.chunks_exact(list.width).map(swapped).collect());
    }
    let of = |&(_, worse): &(u32, u32)| {
        let (s, i) = problem.locate(worse);
        loss[s][lists[s].class[i] as usize]
    };
    pairs.iter().map(of).collect()
}

/// A batch with numbers of its own for features and candidates.
struct Problem<'a> {
    /// Places of the features: dense ones first.
    places: Vec<u32>,
    dense: usize,
    /// Dense features, candidate after candidate.
    rows: Vec<f64>,
    /// Sparse features by own number, candidate after candidate, and where those of each begin.
    sparse: Vec<(u32, f32)>,
    offsets: Vec<usize>,
    /// Where the candidates of each segment begin, and the end.
    starts: Vec<usize>,
    oracle: &'a [Vec<bool>],
}

impl<'a> Problem<'a> {
    fn new(lists: &[Arc<Candidates>], oracle: &'a [Vec<bool>], weights: &Weights) -> Self {
        let dense = lists.first().map_or(0, |l| l.columns.keys().len());
        let mut places = lists.first().map_or(Vec::new(), |l| weights.places(&l.columns));
        let locals: Vec<Vec<u32>> = lists.iter().map(|l| weights.places(&l.local)).collect();
        let mut union: Vec<u32> = locals.iter().flatten().copied().collect();
        union.sort_unstable();
        union.dedup();
        places.extend_from_slice(&union);
        let candidates: usize = lists.iter().map(|l| l.k).sum();
        let mut rows = vec![0.0; candidates * dense];
        let (mut sparse, mut offsets, mut starts) = (Vec::new(), vec![0], vec![0]);
        for (list, local) in lists.iter().zip(&locals) {
            let start = starts[starts.len() - 1];
            for c in 0..dense {
                for (i, x) in list.column(c).iter().enumerate() {
                    rows[(start + i) * dense + c] = *x;
                }
            }
            let number: Vec<u32> =
                local.iter().map(|p| (dense + union.binary_search(p).unwrap_or_default()) as u32).collect();
            for i in 0..list.k {
                let range = list.row_starts[i] as usize..list.row_starts[i + 1] as usize;
                let first = sparse.len();
                sparse.extend(range.map(|p| (number[list.ids[p] as usize], list.values[p])));
                sparse[first..].sort_unstable_by_key(|f| f.0);
                offsets.push(sparse.len());
            }
            starts.push(start + list.k);
        }
        Problem { places, dense, rows, sparse, offsets, starts, oracle }
    }

    fn gather(&self, values: &[f64]) -> Vec<f64> {
        self.places.iter().map(|&p| values[p as usize]).collect()
    }

    fn scatter(&self, a: f64, local: &[f64], values: &mut [f64]) {
        for (&p, x) in self.places.iter().zip(local) {
            values[p as usize] += a * x;
        }
    }

    fn row(&self, i: u32) -> &[f64] {
        &self.rows[i as usize * self.dense..][..self.dense]
    }

    fn sparse(&self, i: u32) -> &[(u32, f32)] {
        &self.sparse[self.offsets[i as usize]..self.offsets[i as usize + 1]]
    }

    fn score(&self, i: u32, w: &[f64]) -> f64 {
        let sparse: f64 = self.sparse(i).iter().map(|&(p, x)| w[p as usize] * f64::from(x)).sum();
        sparse + dot(self.row(i), &w[..self.dense])
    }

    /// w += a·h.
    fn add(&self, i: u32, a: f64, w: &mut [f64]) {
        for (w, x) in w.iter_mut().zip(self.row(i)) {
            *w += a * x;
        }
        for &(p, x) in self.sparse(i) {
            w[p as usize] += a * f64::from(x);
        }
    }

    fn segment(&self, s: usize) -> std::ops::Range<u32> {
        self.starts[s] as u32..self.starts[s + 1] as u32
    }

    /// Segment of a candidate, and its place there.
    fn locate(&self, i: u32) -> (usize, usize) {
        let s = self.starts.partition_point(|&start| start <= i as usize) - 1;
        (s, i as usize - self.starts[s])
    }

    /// Oracles and others of a segment.
    fn sides(&self, s: usize) -> (Vec<u32>, Vec<u32>) {
        self.segment(s).partition(|&i| self.oracle[s][i as usize - self.starts[s]])
    }

    /// All pairs of an oracle and another candidate.
    fn pairs(&self) -> Vec<(u32, u32)> {
        let mut pairs = Vec::new();
        for s in 0..self.oracle.len() {
            let (good, rest) = self.sides(s);
            pairs.extend(good.iter().flat_map(|&g| rest.iter().map(move |&r| (g, r))));
        }
        pairs
    }

    /// Minus the sub-gradient of the loss.
    fn gradient(&self, loss: RankLoss, norm: Norm, w: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; w.len()];
        let (mut violated, mut all) = (0u64, 0u64);
        for s in 0..self.oracle.len() {
            let coefficients = match loss {
                RankLoss::Softmax => self.soft(s, w).0,
                RankLoss::Hinge => {
                    let (good, rest) = self.sides(s);
                    let first = self.starts[s] as u32;
                    let scores: Vec<f64> = self.segment(s).map(|i| self.score(i, w)).collect();
                    let score = |i: u32| scores[(i - first) as usize];
                    let mut counts = vec![0.0; scores.len()];
                    all += (good.len() * rest.len()) as u64;
                    for &g in &good {
                        for &r in rest.iter().filter(|&&r| 1.0 - (score(g) - score(r)) > 0.0) {
                            counts[(g - first) as usize] += 1.0;
                            counts[(r - first) as usize] -= 1.0;
                            violated += 1;
                        }
                    }
                    counts
                }
            };
            for (i, &a) in self.segment(s).zip(&coefficients).filter(|c| *c.1 != 0.0) {
                self.add(i, a, &mut out);
            }
        }
        let by = match (loss, norm) {
            (RankLoss::Softmax, _) => self.oracle.iter().filter(|o| !o.is_empty()).count() as f64,
            (_, Norm::Violated) => violated as f64,
            (_, Norm::Pairs) => all as f64,
        };
        if by > 0.0 {
            for g in &mut out {
                *g /= by;
            }
        }
        out
    }

    /// How much more likely each candidate is among the oracles than among all, and the logarithm
    /// of the oracles' share.
    fn soft(&self, s: usize, w: &[f64]) -> (Vec<f64>, f64) {
        let scores: Vec<f64> = self.segment(s).map(|i| self.score(i, w)).collect();
        let oracle = &self.oracle[s];
        let sum = |keep: &dyn Fn(usize) -> bool| {
            let some = || scores.iter().enumerate().filter(|x| keep(x.0)).map(|x| *x.1);
            let most = some().fold(f64::NEG_INFINITY, f64::max);
            most + some().map(|x| (x - most).exp()).sum::<f64>().ln()
        };
        if scores.is_empty() {
            return (Vec::new(), 0.0);
        }
        let (good, all) = (sum(&|i| oracle[i]), sum(&|_| true));
        let share =
            |(i, &x): (usize, &f64)| (if oracle[i] { (x - good).exp() } else { 0.0 }) - (x - all).exp();
        (scores.iter().enumerate().map(share).collect(), good - all)
    }
}

/// Differences of oracles and others.
struct Pairs<'a> {
    problem: &'a Problem<'a>,
    all: Vec<(u32, u32)>,
    /// What is wanted of each pair; 1 without.
    margins: Option<Vec<f64>>,
}

impl Examples for Pairs<'_> {
    fn len(&self) -> usize {
        self.all.len()
    }

    fn dot(&self, i: usize, w: &[f64]) -> f64 {
        let (better, worse) = self.all[i];
        let (x, y) = (self.problem.row(better), self.problem.row(worse));
        let mut total = 0.0;
        for ((x, y), w) in x.iter().zip(y).zip(w) {
            total += (x - y) * w;
        }
        if !self.problem.sparse.is_empty() {
            let sparse = |i| -> f64 {
                self.problem.sparse(i).iter().map(|&(p, x)| w[p as usize] * f64::from(x)).sum()
            };
            total += sparse(better) - sparse(worse);
        }
        total
    }

    fn square(&self, i: usize) -> f64 {
        let (better, worse) = self.all[i];
        let (x, y) = (self.problem.row(better), self.problem.row(worse));
        let mut total: f64 = x.iter().zip(y).map(|(x, y)| (x - y) * (x - y)).sum();
        // Both are in order of features.
        let (x, y) = (self.problem.sparse(better), self.problem.sparse(worse));
        let (mut a, mut b) = (0, 0);
        while a < x.len() || b < y.len() {
            let (p, q) = (x.get(a).map_or(u32::MAX, |f| f.0), y.get(b).map_or(u32::MAX, |f| f.0));
            let mut difference = 0.0;
            if p <= q {
                difference += f64::from(x[a].1);
                a += 1;
            }
            if q <= p {
                difference -= f64::from(y[b].1);
                b += 1;
            }
            total += difference * difference;
        }
        total
    }

    fn add(&self, i: usize, a: f64, w: &mut [f64]) {
        let (better, worse) = self.all[i];
        let (x, y) = (self.problem.row(better), self.problem.row(worse));
        for ((x, y), w) in x.iter().zip(y).zip(w.iter_mut()) {
            *w += a * (x - y);
        }
        if !self.problem.sparse.is_empty() {
            for (i, a) in [(better, a), (worse, -a)] {
                for &(p, x) in self.problem.sparse(i) {
                    w[p as usize] += a * f64::from(x);
                }
            }
        }
    }

    /// By way of the candidates, which are fewer.
    fn dots(&self, w: &[f64], out: &mut [f64]) {
        let candidates = self.problem.offsets.len() as u32 - 1;
        let scores: Vec<f64> = (0..candidates).map(|i| self.problem.score(i, w)).collect();
        for (d, &(better, worse)) in out.iter_mut().zip(&self.all) {
            *d = scores[better as usize] - scores[worse as usize];
        }
    }

    fn add_all(&self, a: &[f64], w: &mut [f64]) {
        let mut of = vec![0.0; self.problem.offsets.len() - 1];
        for (a, &(better, worse)) in a.iter().zip(&self.all) {
            of[better as usize] += a;
            of[worse as usize] -= a;
        }
        for (i, &a) in of.iter().enumerate().filter(|a| *a.1 != 0.0) {
            self.problem.add(i as u32, a, w);
        }
    }

    fn margin(&self, i: usize) -> f64 {
        self.margins.as_ref().map_or(1.0, |m| m[i])
    }
}

/// The softmax loss of each segment, made straight at a point.
struct Planes {
    slopes: Vec<Vec<f64>>,
    margins: Vec<f64>,
}

impl Planes {
    fn new(problem: &Problem<'_>, at: &[f64], linearize: Linearize) -> Self {
        let (mut slopes, mut margins) = (Vec::new(), Vec::new());
        for s in 0..problem.oracle.len() {
            let (coefficients, likelihood) = problem.soft(s, at);
            let mut slope = vec![0.0; at.len()];
            for (i, a) in problem.segment(s).zip(coefficients) {
                problem.add(i, a, &mut slope);
            }
            let shift = if linearize == Linearize::Tangent { dot(&slope, at) } else { 0.0 };
            margins.push(shift - likelihood);
            slopes.push(slope);
        }
        Planes { slopes, margins }
    }
}

impl Examples for Planes {
    fn len(&self) -> usize {
        self.slopes.len()
    }

    fn dot(&self, i: usize, w: &[f64]) -> f64 {
        dot(&self.slopes[i], w)
    }

    fn square(&self, i: usize) -> f64 {
        dot(&self.slopes[i], &self.slopes[i])
    }

    fn add(&self, i: usize, a: f64, w: &mut [f64]) {
        luthier_optim::axpy(a, &self.slopes[i], w);
    }

    fn margin(&self, i: usize) -> f64 {
        self.margins[i]
    }
}

#[cfg(test)]
mod tests;
