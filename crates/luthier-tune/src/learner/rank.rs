//! ORO, O-ORO and batch MIRA (Watanabe 2012): online ranking of oracles above all other candidates, batch by batch.
//!
//! b is a batch of segments (f, e), wₖ the weights before step k, e* an oracle and e′ another candidate of the
//! same n-best list, h the features of a candidate, and
//!
//! - Φ(f, e*, e′) = h(f, e*) − h(f, e′);
//! - L(w; f, e) = log(Zₒ/Zₙ), where Zₒ sums exp(w·h) over the oracles and Zₙ over the whole list;
//! - Ψ(w; f, e) = ∂L/∂w = mean of h over the oracles − mean of h over the list, both under p ∝ exp(w·h).
//!
//! The objective of a batch (eq. 7) is λ/2‖w‖² plus a loss: hinge, 1/M Σ max{0, 1 − w·Φ} over all M pairs of an
//! oracle and another candidate (eq. 5), or softmax, −1/|b| Σ L (eq. 6). One call of `learn` takes one step:
//!
//! - ORO, hinge (eq. 8, 9, 11): w ← (1 − λη)wₖ + η/M′ Σ Φ over the M′ pairs with 1 − wₖ·Φ > 0.
//! - ORO, softmax (eq. 10): w ← (1 − λη)wₖ + η/|b| Σ Ψ(wₖ; f, e).
//! - O-ORO, hinge (eq. 12, 15, with the mean of eq. 5): with w¼ = (1 − λη)wₖ and M′ the number of pairs with
//!   1 − wₖ·Φ > 0, w ← argmin ½‖w − w¼‖² + η/M′ Σ max{0, 1 − w·Φ} = w¼ + Σ τΦ; no step if M′ = 0.
//! - O-ORO, softmax (eq. 16, 17, with the mean of eq. 6): with w¼ = (1 − λη)wₖ,
//!   w ← argmin ½‖w − w¼‖² + η/|b| Σ max{0, −L(wₖ; f, e) − (w − wₖ)·Ψ(wₖ; f, e)} = w¼ + Σ τΨ(wₖ; f, e).
//! - MIRA (eq. 13): w ← argmin λ/2‖w − wₖ‖² + Σ max{0, m − w·Φ} = wₖ + Σ τΦ with 0 ≤ τ ≤ C = 1/λ; the margin
//!   m is 1. With [`MiraScale::Mean`] the sum is divided by M′, and 0 ≤ τ ≤ C/M′.
//!
//! After a step of ORO or O-ORO, w is projected onto the ball of radius 1/√λ (Algorithm 2, line 9). The
//! learning rate is η = η₀·α^(k/K), with K batches per epoch.
//!
//! Departures from the equations as printed:
//!
//! - Eq. 12 sums the losses of all pairs where eq. 5 takes their mean; its Lagrangian dual has the box 0 ≤ τ ≤ η.
//!   Eq. 14 prints Σ τ ≤ η, the dual with one slack ξ shared by all pairs, and footnote 2 solves with the box and then
//!   scales τ down to Σ τ ≤ η. [`Bound`] says what each of them does. The default is the mean, whose dual has the box
//!   0 ≤ τ ≤ η/M′. With every τ of a violated pair at its bound and all others 0, the step is that of ORO (eq. 11).
//! - The constraint of eq. 16 lacks the term wₖ·Ψ(wₖ), so it is not the tangent plane of −L unless wₖ = 0;
//!   [`Linearize::Tangent`], the default, adds the term.
//! - Eq. 8 prints the divisor M; as in the paper's experiments, the default is M′ ([`Norm`]).
//! - Training starts from the given weights, not from 0, and 1 − λη is never less than 0.
//! - [`RankMargin::Error`] and [`Decay::Pegasos`] are alternatives to the paper's margin and learning rate.
//!
//! A sub-gradient step costs one product per candidate and one comparison per pair. Inner problems are solved
//! until the duality gap proves that the weights are within [`Rank::tolerance`] of the solution, in at most 1,000
//! sweeps over the pairs. The schedule decides when training stops.

use super::{Learner, Note, grow};
use crate::{
    Candidates, Evidence, Fleet, State,
    loss::softmax,
    pairs::{OracleBy, oracles},
};
use luthier_core::{
    Progress, Result, Weights, math,
    random::{Purpose, Stream},
};
use luthier_metric::{Metric, SentenceSmoothing, add};
use luthier_optim::{Accuracy, Examples, dot, dual, dual_newton, dual_simplex};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Ranking loss of [`Rank`] over the oracles and the other candidates of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum RankLoss {
    /// Hinge loss max(0, 1 − w·Φ) of each pair of an oracle and another candidate, Φ being the difference of their
    /// features (Watanabe 2012, eq. 5).
    Hinge,
    /// Softmax loss −log(Zₒ/Zₙ) of each segment: negative log-likelihood of its oracles (Watanabe 2012, eq. 6).
    Softmax,
}

/// Decay of the learning rate η over the steps k of online learning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Decay {
    /// η₀·α^(k/K) at step k, with K batches per epoch (Watanabe 2012, §3.2).
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
    /// M′: the number of violated pairs, 1 − w·Φ > 0 (Watanabe 2012, eq. 9).
    Violated,
    /// M: the number of all pairs of an oracle and another candidate (Watanabe 2012, eq. 8).
    Pairs,
}

/// Feasible set of the Lagrange multipliers τ in O-ORO's inner problem (Watanabe 2012, §4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// 0 ≤ τ ≤ η/M′ for M′ violated pairs (softmax: η/|b| for |b| segments): the mean loss of eq. 5 of Watanabe (2012).
    Mean,
    /// 0 ≤ τ ≤ η, then scaled down to Σ τ ≤ η (Watanabe 2012, footnote 2); learns only from weights that are 0.
    ///
    /// With thousands of pairs at their bound η the learning rate cancels: the step is about 1/M′ of the way to the
    /// solution of the inner problem, whatever η is. From w = 0 the scale of the weights does not matter.
    Normalized,
    /// 0 ≤ τ ≤ η: the sum of losses of eq. 12 of Watanabe (2012), whose steps grow with the number of pairs.
    Box,
    /// Σ τ ≤ η: eq. 14 of Watanabe (2012) as printed, which is degenerate.
    ///
    /// All pairs share one slack variable. If 0 is in the convex hull of the differences Φ, the largest hinge loss is at
    /// least 1 for every w, and the weights shrink to 0.
    Simplex,
}

/// Pairs of the inner problem of O-ORO with hinge loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum InnerPairs {
    /// All pairs of an oracle and another candidate.
    All,
    /// Pairs with w·Φ < 1 at the weights before the step, so that Σ τ ≤ η with the bound η/M′.
    Violated,
}

/// Linearisation of the softmax loss in O-ORO (Watanabe 2012, eq. 16–17).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Linearize {
    /// w·Ψ ≥ −L − ξ: eq. 16 of Watanabe (2012) as printed, without the term wₖ·Ψ of a tangent plane.
    Printed,
    /// (w − wₖ)·Ψ ≥ −L − ξ: the tangent plane of the loss −L at the current weights wₖ.
    Tangent,
}

/// Margin that MIRA requires between an oracle and another candidate (Watanabe 2012, eq. 13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum RankMargin {
    /// Margin 1 for every pair.
    One,
    /// Decrease of the batch's corpus score, on the scale from 0 to 1, when the other candidate replaces the
    /// oracle.
    Error,
}

/// Scale of the hinge losses of batch MIRA against its proximal term (Watanabe 2012, eq. 13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum MiraScale {
    /// Sum of the losses of all pairs, as printed: longer lists and larger batches give longer steps.
    Sum,
    /// Sum of the losses divided by the number M′ of violated pairs.
    Mean,
}

/// Update rule of [`Rank`]: ORO, O-ORO or batch MIRA.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// ORO (Watanabe 2012, Algorithm 2): w ← (1 − λη)w − η∇ℓ with ∇ℓ the sub-gradient of the loss on the batch
    /// (eq. 8, 10), then projection onto the ball of radius 1/√λ.
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
    /// O-ORO (Watanabe 2012, §4.1): w ← (1 − λη)w + Σ τΦ (hinge, eq. 15) or + Σ τΨ (softmax, eq. 17), with the
    /// Lagrange multipliers τ of an inner problem over the batch (eq. 12, 16), then projection onto the ball of
    /// radius 1/√λ.
    Optimized {
        /// Ranking loss of the inner problem.
        loss: RankLoss,
        /// Learning rate η of each step, which bounds the Lagrange multipliers.
        rate: Rate,
        /// λ: weight of the regulariser ½‖w‖², above 0.
        lambda: f64,
        /// Feasible set of the Lagrange multipliers.
        bound: Bound,
        /// Pairs of the inner problem, for the hinge loss.
        pairs: InnerPairs,
        /// Linearisation of the softmax loss; not used by the hinge loss.
        linearize: Linearize,
    },
    /// Batch MIRA (Watanabe 2012, eq. 13): w ← argmin ½‖w′ − w‖² + C Σ max(0, m − w′·Φ) over all pairs of an
    /// oracle and another candidate, without shrinking and projection.
    Passive {
        /// C = 1/λ of eq. 13: upper bound of the Lagrange multipliers, above 0.
        c: f64,
        /// Margin m required between an oracle and another candidate.
        margin: RankMargin,
        /// Whether C bounds each Lagrange multiplier, or, divided by the number M′ of violated pairs, their mean.
        scale: MiraScale,
    },
}

/// Online ranking of oracles above all other candidates, batch by batch: ORO, O-ORO and batch MIRA (Watanabe
/// 2012).
///
/// The oracles of a batch are the candidates that together maximise its corpus score, and all candidates with
/// the same statistics. With Φ the difference of features of an oracle and another candidate, the objective of
/// a batch is λ/2‖w‖² plus the mean hinge loss max(0, 1 − w·Φ) (eq. 5, 7) or the softmax loss (eq. 6, 7); one
/// call of `learn` takes one step by `rule`. A sub-gradient step costs one pass over the batch, the inner
/// problems of O-ORO and MIRA up to 1,000 sweeps over its pairs. The schedule decides when to stop.
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
    /// Metric to tune for; it chooses the oracles.
    pub metric: Metric,
    /// Smoothing of sentence BLEU, for oracles by sentence.
    pub plus_one: SentenceSmoothing,
    /// How the oracles of a batch are chosen.
    pub oracle: OracleBy,
    /// Update rule of each step.
    pub rule: Rule,
    /// Stopping rule of the inner problems of O-ORO and MIRA: largest distance ε of the weights w from the solution,
    /// relative to ‖w‖ if that is above 1; the duality gap is then at most ½ε²·max(1, ‖w‖²).
    pub tolerance: f64,
    /// Number of features in a batch up to which inner problems are solved by Newton steps, else by dual
    /// coordinate descent; not used with [`Bound::Simplex`].
    pub few: usize,
    /// Weight of a penalty Σ|w| besides that of the rule, with learning rates only: after each step, every weight of the
    /// batch has been moved towards 0 by what the penalties of all steps of the epoch add up to, or has stopped at 0
    /// (Tsuruoka, Tsujii and Ananiadou 2009). In the paper the sums go on over epochs; here they start at 0 in each, because
    /// shards are mixed in between: at its end every weight has received the whole penalty of the epoch or is 0, and what a
    /// weight that has stopped at 0 did not receive is forgiven.
    pub l1: Option<f64>,
    /// Seed of the oracle search and of the order of dual coordinate descent.
    pub seed: u64,
}

/// Maximum number of sweeps over the examples of an inner problem.
const SWEEPS: usize = 1000;

/// Default accuracy of the solution of inner problems.
pub(crate) const TOLERANCE: f64 = 1e-4;

impl Rank {
    /// Ranking with oracles by the corpus score of the batch, and inner problems solved to a distance of 10⁻⁴.
    pub fn new(metric: Metric, rule: Rule, seed: u64) -> Self {
        let plus_one = SentenceSmoothing::default();
        Rank {
            metric,
            plus_one,
            oracle: OracleBy::Corpus,
            rule,
            tolerance: TOLERANCE,
            few: 64,
            l1: None,
            seed,
        }
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
            Decay::Exponential => rate.eta0 * math::powf(rate.alpha, k as f64 / batches as f64),
            Decay::Pegasos => 1.0 / (lambda * k as f64),
        };
        let problem = Problem::new(lists, &oracle, &state.weights);
        let mut note = None;
        let eta = match self.rule {
            Rule::Gradient { loss, rate: r, lambda, norm } => {
                let eta = rate(r, lambda);
                let step = problem.gradient(loss, norm, &problem.gather(state.weights.values()));
                shrink(&mut state.weights, 1.0 - lambda * eta);
                problem.scatter(eta, &step, state.weights.values_mut());
                project(&mut state.weights, lambda);
                eta
            }
            Rule::Optimized { loss, rate: r, lambda, bound, pairs, linearize } => {
                let eta = rate(r, lambda);
                let w_k = problem.gather(state.weights.values());
                shrink(&mut state.weights, 1.0 - lambda * eta);
                let w_quarter = problem.gather(state.weights.values());
                // The loss is a sum of this many terms; 0 for a batch without loss, which takes no step.
                let (examples, terms): (Box<dyn Examples + '_>, usize) = match loss {
                    RankLoss::Hinge => {
                        let mut all = Pairs { problem: &problem, all: problem.pairs(), margins: None };
                        let violated = all.violated(&w_k);
                        let terms = violated.len();
                        if pairs == InnerPairs::Violated {
                            all.all = violated;
                        }
                        (Box::new(all), terms)
                    }
                    RankLoss::Softmax => {
                        let planes = Planes::new(&problem, &w_k, linearize);
                        (Box::new(planes), problem.segments())
                    }
                };
                if terms > 0 || bound != Bound::Mean {
                    let (step, missed) = self.solve(&*examples, &w_quarter, (eta, terms), bound, k);
                    problem.scatter(1.0, &step, state.weights.values_mut());
                    note = missed;
                }
                project(&mut state.weights, lambda);
                eta
            }
            Rule::Passive { c, margin, scale } => {
                let pairs = problem.pairs();
                let margins = match margin {
                    RankMargin::One => None,
                    RankMargin::Error => Some(errors(lists, &oracle, &pairs, &problem, &self.metric)),
                };
                let w_k = problem.gather(state.weights.values());
                let pairs = Pairs { problem: &problem, all: pairs, margins };
                let (terms, bound) = match scale {
                    MiraScale::Sum => (1, Bound::Box),
                    MiraScale::Mean => (pairs.violated(&w_k).len(), Bound::Mean),
                };
                if terms > 0 {
                    let (step, missed) = self.solve(&pairs, &w_k, (c, terms), bound, k);
                    problem.scatter(1.0, &step, state.weights.values_mut());
                    note = missed;
                }
                0.0
            }
        };
        if let Some(l1) = self.l1 {
            state.pass.penalty += l1 * eta;
            let last = u64::from(state.batch.number) + 1 == batches;
            let all: Vec<u32> = if last { (0..state.weights.len() as u32).collect() } else { problem.places };
            penalize(state, &all);
        }
        Ok(note)
    }
}

impl Rank {
    /// Solves an inner problem, argmin ½‖w − w₀‖² + C Σ max{0, mᵢ − w·xᵢ} with w₀ = `start` and examples xᵢ
    /// (Watanabe 2012, eq. 12, 13, 16), and returns the change Σ τᵢxᵢ of the weights (eq. 15, 17) under the
    /// constraint `bound` on τ. C is η, with [`Bound::Mean`] divided by the number of `terms` of the loss. `k` numbers
    /// the step, for the random order of dual coordinate descent. The note says by how much the solution may miss the
    /// tolerance.
    fn solve(
        &self,
        examples: &dyn Examples,
        start: &[f64],
        (eta, terms): (f64, usize),
        bound: Bound,
        k: u64,
    ) -> (Vec<f64>, Note) {
        let mut w = start.to_vec();
        let mut scale = 1.0;
        let accuracy = Accuracy::Distance(self.tolerance);
        let c = if bound == Bound::Mean { eta / terms as f64 } else { eta };
        let found = if bound == Bound::Simplex {
            dual_simplex(examples, &mut w, c, accuracy, SWEEPS)
        } else {
            let mut stream = Stream::new(self.seed, Purpose::Pairs, (k >> 32) as u32, k as u32);
            let mut below = |n: usize| stream.below(n as u64) as usize;
            let found = if w.len() <= self.few {
                dual_newton(examples, &mut w, c, accuracy, SWEEPS)
            } else {
                dual(examples, &mut w, c, accuracy, SWEEPS, &mut below)
            };
            let sum: f64 = found.alpha.iter().sum();
            if bound == Bound::Normalized && sum > eta {
                scale = eta / sum;
            }
            found
        };
        let norm = w.iter().map(|x| x * x).sum::<f64>().sqrt().max(1.0);
        let distance = (2.0 * found.gap).sqrt() / norm;
        let note = (distance > self.tolerance).then(|| {
            format!(
                "an inner problem was left after {} passes with weights within {distance:.1e} of its solution, more than \
                 --tolerance {}",
                found.sweeps, self.tolerance
            )
        });
        (w.iter().zip(start).map(|(w, s)| scale * (w - s)).collect(), note)
    }
}

/// w ← `by`·w, or 0 if `by` is negative.
fn shrink(weights: &mut Weights, by: f64) {
    weights.scale(by.max(0.0));
}

/// Projects the weights onto the ball of radius 1/√λ: w ← min{1, (1/√λ)/‖w‖}·w (Watanabe 2012, Algorithm 2,
/// line 9).
fn project(weights: &mut Weights, lambda: f64) {
    let norm = weights.values().iter().map(|w| w * w).sum::<f64>().sqrt();
    let radius = 1.0 / lambda.sqrt();
    if norm > radius {
        weights.scale(radius / norm);
    }
}

/// Moves the weights at `places` towards 0 by the part of the epoch's penalty that they have not received yet; a weight
/// stops at 0 (Tsuruoka et al. 2009, `ApplyPenalty`).
fn penalize(state: &mut State, places: &[u32]) {
    let pass = &mut state.pass;
    pass.received.resize(state.weights.len().max(pass.received.len()), 0.0);
    let values = state.weights.values_mut();
    for &place in places {
        let (w, received) = (&mut values[place as usize], &mut pass.received[place as usize]);
        let before = *w;
        if before > 0.0 {
            *w = (before - (pass.penalty + *received)).max(0.0);
        } else if before < 0.0 {
            *w = (before + (pass.penalty - *received)).min(0.0);
        }
        *received += *w - before;
    }
}

/// Margins of [`RankMargin::Error`], one per pair: the decrease of the batch's corpus score, on the scale from
/// 0 to 1, when the worse candidate of the pair replaces the oracle of its segment.
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

/// A batch whose features and candidates are numbered consecutively from 0.
struct Problem<'a> {
    /// Position in the weights of each feature: dense features first, then the sparse features of the batch.
    places: Vec<u32>,
    /// Number of dense features.
    dense: usize,
    /// Values of the dense features, candidate after candidate.
    rows: Vec<f64>,
    /// Sparse features as number and value, candidate after candidate.
    sparse: Vec<(u32, f32)>,
    /// Start of each candidate's features in `sparse`, and the total length.
    offsets: Vec<usize>,
    /// First candidate of each segment, and the total number of candidates.
    starts: Vec<usize>,
    /// Whether each candidate is an oracle, by segment.
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

    /// Returns the weights of the batch's features.
    fn gather(&self, values: &[f64]) -> Vec<f64> {
        self.places.iter().map(|&p| values[p as usize]).collect()
    }

    /// w += a·`local`, where `local` has one number per feature of the batch.
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

    /// Returns w·h of candidate `i`.
    fn score(&self, i: u32, w: &[f64]) -> f64 {
        let sparse: f64 = self.sparse(i).iter().map(|&(p, x)| w[p as usize] * f64::from(x)).sum();
        sparse + dot(self.row(i), &w[..self.dense])
    }

    /// w += a·h for the features h of candidate `i`.
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

    /// Returns the segment of candidate `i` and its index in the segment's list.
    fn locate(&self, i: u32) -> (usize, usize) {
        let s = self.starts.partition_point(|&start| start <= i as usize) - 1;
        (s, i as usize - self.starts[s])
    }

    /// Returns the number |b| of segments that have candidates.
    fn segments(&self) -> usize {
        self.oracle.iter().filter(|o| !o.is_empty()).count()
    }

    /// Returns the oracles and the other candidates of a segment.
    fn sides(&self, s: usize) -> (Vec<u32>, Vec<u32>) {
        self.segment(s).partition(|&i| self.oracle[s][i as usize - self.starts[s]])
    }

    /// Returns all pairs (e*, e′) of an oracle and another candidate of the same segment.
    fn pairs(&self) -> Vec<(u32, u32)> {
        let mut pairs = Vec::new();
        for s in 0..self.oracle.len() {
            let (good, rest) = self.sides(s);
            pairs.extend(good.iter().flat_map(|&g| rest.iter().map(move |&r| (g, r))));
        }
        pairs
    }

    /// Returns minus the sub-gradient of the loss at `w`, without the regulariser. Hinge: Σ Φ over the pairs
    /// with 1 − w·Φ > 0, divided by M′ or M (Watanabe 2012, eq. 8–9); softmax: Σ Ψ(w; f, e)/|b| (eq. 10), where
    /// |b| counts the segments that have candidates.
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
            (RankLoss::Softmax, _) => self.segments() as f64,
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

    /// Returns ∂L/∂s for the score s = w·h of each candidate of a segment, and L = log(Zₒ/Zₙ) (Watanabe 2012,
    /// eq. 6 and 10). The derivative is the candidate's probability among the oracles (0 for others) minus that
    /// among all candidates.
    fn soft(&self, s: usize, w: &[f64]) -> (Vec<f64>, f64) {
        let scores: Vec<f64> = self.segment(s).map(|i| self.score(i, w)).collect();
        let oracle = &self.oracle[s];
        if scores.is_empty() {
            return (Vec::new(), 0.0);
        }
        let good: Vec<f64> =
            scores.iter().zip(oracle).map(|(&s, &o)| if o { s } else { f64::NEG_INFINITY }).collect();
        let (among_oracles, log_z_o) = softmax(1.0, &good);
        let (among_all, log_z_n) = softmax(1.0, &scores);
        (among_oracles.iter().zip(&among_all).map(|(q, p)| q - p).collect(), log_z_o - log_z_n)
    }
}

/// The differences Φ of all pairs of an oracle and another candidate, as examples of an inner problem.
struct Pairs<'a> {
    problem: &'a Problem<'a>,
    all: Vec<(u32, u32)>,
    /// Required margin m of each pair; `None` for 1.
    margins: Option<Vec<f64>>,
}

impl Pairs<'_> {
    /// Returns the pairs with w·Φ below their margin.
    fn violated(&self, w: &[f64]) -> Vec<(u32, u32)> {
        let mut dots = vec![0.0; self.all.len()];
        self.dots(w, &mut dots);
        let below = |(i, &d): (usize, &f64)| (self.margin(i) - d > 0.0).then_some(self.all[i]);
        dots.iter().enumerate().filter_map(below).collect()
    }
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
        // Both rows are sorted by feature number.
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

    /// Computes the score of each candidate once, because there are fewer candidates than pairs.
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

/// The softmax loss of each segment, linearised at wₖ, as examples of an inner problem: w·Ψ ≥ m − ξ (Watanabe
/// 2012, eq. 16).
struct Planes {
    /// Ψ(wₖ; f, e) of each segment.
    psi: Vec<Vec<f64>>,
    /// m of each segment: −L(wₖ; f, e), plus wₖ·Ψ for the tangent plane.
    margins: Vec<f64>,
}

impl Planes {
    fn new(problem: &Problem<'_>, w_k: &[f64], linearize: Linearize) -> Self {
        let (mut all, mut margins) = (Vec::new(), Vec::new());
        for s in 0..problem.oracle.len() {
            let (coefficients, likelihood) = problem.soft(s, w_k);
            let mut psi = vec![0.0; w_k.len()];
            for (i, a) in problem.segment(s).zip(coefficients) {
                problem.add(i, a, &mut psi);
            }
            let shift = if linearize == Linearize::Tangent { dot(&psi, w_k) } else { 0.0 };
            margins.push(shift - likelihood);
            all.push(psi);
        }
        Planes { psi: all, margins }
    }
}

impl Examples for Planes {
    fn len(&self) -> usize {
        self.psi.len()
    }

    fn dot(&self, i: usize, w: &[f64]) -> f64 {
        dot(&self.psi[i], w)
    }

    fn square(&self, i: usize) -> f64 {
        dot(&self.psi[i], &self.psi[i])
    }

    fn add(&self, i: usize, a: f64, w: &mut [f64]) {
        luthier_optim::axpy(a, &self.psi[i], w);
    }

    fn margin(&self, i: usize) -> f64 {
        self.margins[i]
    }
}

#[cfg(test)]
mod tests;
