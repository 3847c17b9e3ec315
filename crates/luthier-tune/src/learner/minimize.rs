//! Learning by minimising a regularised loss over the pool: pairwise ranking, likelihood, risk, expected BLEU.
//!
//! s = w·h is the model score of a candidate, b its sentence score, N the number of segments (for APRO of
//! candidates), and p ∝ exp(γs) within a list. The objectives, each with its minimiser:
//!
//! - PRO, logistic (Hopkins and May 2011): λ/2‖w‖² + 2 Σ log(1 + exp(−(sᵢ − sⱼ))) over the selected pairs with
//!   bᵢ > bⱼ. The factor 2 counts both signs of a pair (Dreyer and Dong 2015, §3, step 3). L-BFGS.
//! - PRO, hinge (Watanabe 2012, eq. 4–5): λ/2‖w‖² + 1/M Σ max(0, 1 − (sᵢ − sⱼ)) over the M selected pairs. Dual
//!   coordinate descent on ½‖w‖² + C Σ max(0, 1 − (sᵢ − sⱼ)) with C = 1/(λM).
//! - APRO (Dreyer and Dong 2015, eq. 3): ½‖w‖² + C/N Σ max(0, 1 − sᵢ + sⱼ)² over all pairs with bᵢ > bⱼ, or with
//!   the mean over the pairs of each segment in place of the sum. Trust-region truncated Newton.
//! - Softmax (Watanabe 2012, eq. 4 and 6): λ/2‖w‖² − 1/N Σ log(Zₒ/Zₙ), with scores scaled by γ. L-BFGS.
//! - Expected BLEU (Rosti et al. 2010, 2011): λ/2‖w‖² − BLEU of expected n-gram counts. L-BFGS.
//! - Risk (Smith and Eisner 2006): λ/2‖w‖² − 1/N Σ Σₑ p(e)·b(e). L-BFGS.
//!
//! L-BFGS and Newton start from the current weights, or from w = 0 if the objective is lower there; dual
//! coordinate descent starts from w = 0. L-BFGS stops when ‖∇‖ is at most the tolerance times the smaller of
//! its values at w = 0 and at the current weights, or when the objective no longer decreases; Newton when ‖∇‖
//! is at most the tolerance times its value at w = 0; dual coordinate descent when the gap between primal and
//! dual value is at most the tolerance times the primal value. All stop at the maximum number of steps or
//! sweeps. One evaluation costs two products with the feature matrix.

use super::{Learner, Nonnegative, Note};
use crate::{
    Candidates, Evidence, FeatureMatrix, Fleet, ForestPool, State,
    candidates::argmax,
    loss::{Apro, AproScale, Brevity, Clip, Margin, OnForests, Pairwise, Regularized, Risk, Softmax, Xbleu},
    pairs::{GainBy, OracleBy, Pair, Pairs, document_gains, gains, oracles},
};
use luthier_core::{
    Error, Progress, Result, Step, Weights, math,
    random::{Purpose, Stream},
};
use luthier_metric::{Metric, SentenceSmoothing};
use luthier_optim::{
    Accuracy, Ended, Examples, Limit, Objective, Penalty, Watch, dual, lbfgs, newton, owlqn,
};
use std::{cell::Cell, sync::Arc};

/// Loss that [`Minimize`] minimises over the pool, together with a regulariser.
#[derive(Debug, Clone)]
pub enum Loss {
    /// Pairwise ranking of selected pairs with score difference d = w·h(better) − w·h(worse) (Hopkins and May
    /// 2011). Logistic: λ/2‖w‖² + 2 Σ log(1 + e^{−d}), where 2 counts both signs of a pair; hinge: λ/2‖w‖² plus
    /// the mean of max(0, 1 − d) (Watanabe 2012, eq. 4–5).
    Pro {
        /// Selection of the pairs of candidates to rank.
        pairs: Pairs,
        /// Loss of one pair: logistic or hinge.
        margin: Margin,
    },
    /// Squared hinge loss over all pairs (Dreyer and Dong 2015): ½‖w‖² plus C times the sum of max(0, 1 − sᵢ + sⱼ)²
    /// over pairs of a segment with model scores s and sentence scores bᵢ > bⱼ, divided as `scale` says.
    /// [`Minimize::lambda`] is not used.
    Apro {
        /// C: weight of the loss relative to the regulariser ½‖w‖², above 0.
        c: f64,
        /// Divisor of the loss.
        scale: AproScale,
    },
    /// Negative log-likelihood of the oracles, −1/N Σ log(Zₒ/Zₙ) over N segments, where Zₒ and Zₙ sum exp(γs)
    /// over the oracles and over the whole list (Watanabe 2012, eq. 6, with γ = 1).
    Softmax {
        /// How the oracles of each segment are chosen.
        oracle: OracleBy,
    },
    /// Minus the BLEU of expected n-gram counts under p ∝ exp(γs), from −1 to 0 (Rosti et al. 2010, 2011); the
    /// metric must be BLEU.
    Xbleu {
        /// How expected n-gram matches are clipped by the references.
        clip: Clip,
        /// Form of the brevity penalty.
        brevity: Brevity,
        /// References of each segment; `None` where only statistics are known, which needs [`Clip::Candidate`].
        references: Option<Arc<Vec<Vec<String>>>>,
    },
    /// Minus the expected sentence score, −1/N Σ Σₑ p(e)·b(e) over N segments with p ∝ exp(γs) (Smith and Eisner
    /// 2006).
    Risk,
}

/// Weight of an L1 penalty λ₁ Σ|w| besides the regulariser, over dense features in standardised units and sparse features.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum L1 {
    /// λ₁, above 0.
    Value(f64),
    /// The largest λ₁ whose held-out loss is within one standard error of the lowest, by folds over the segments. The path
    /// has 20 values from ‖∇loss(0)‖∞ down to a thousandth of it, each fitted from the weights of the one before.
    Path,
}

/// Number of values of the L1 path.
const PATH: usize = 20;
/// Ratio of the largest to the smallest value of the L1 path.
const PATH_RATIO: f64 = 1000.0;
/// Number of folds that choose a value of the L1 path.
const PATH_FOLDS: usize = 5;

/// Learning by minimising a regularised [`Loss`] of the scores s = Xw over the pool.
///
/// Smooth losses are minimised by L-BFGS, APRO by trust-region Newton, the hinge loss by dual coordinate
/// descent; each stops by `limit`. One evaluation costs two products with the feature matrix
/// ([`FeatureMatrix::size`]). Weights of features that no candidate has are not changed.
///
/// ```
/// # use luthier_core::Weights;
/// # use luthier_io::nbest::Rows;
/// # use luthier_tune::{Judge, Candidates, columns, lists};
/// # use std::sync::Arc;
/// # let mut rows = Rows::default();
/// # rows.push(0, "the house is very small", &[("lm", -2.0), ("tm", -3.0)], &[]).unwrap();
/// # rows.push(0, "house the small", &[("lm", -6.0), ("tm", -1.0)], &[]).unwrap();
/// use luthier_tune::{learner::{Loss, Minimize}};
/// let metric: luthier_metric::Metric = "bleu".parse().unwrap();
/// # let references = [vec!["the house is very small"]];
/// # let judge = Judge::new(&metric, &references, "ref.txt");
/// # let lists = lists(&rows, &columns(&rows, None), Some(judge)).unwrap();
/// # let lists: Vec<Arc<Candidates>> = lists.into_iter().map(Into::into).collect();
/// let weights = Weights::parse("w.txt", "lm 0.2\ntm 0.5").unwrap();
/// let risk = Minimize::new(metric, Loss::Risk, 1);
/// let mut objective = risk.objective(&lists, &weights, 0); // of a list of two candidates
/// let mut value = |w: [f64; 2]| {
///     let mut gradient = [0.0; 2];
///     (objective.evaluate(&w, &mut gradient), gradient)
/// };
/// let (_, gradient) = value([0.2, 0.5]);
/// let difference = (value([0.2 + 1e-5, 0.5]).0 - value([0.2 - 1e-5, 0.5]).0) / 2e-5;
/// assert!(gradient[0] < 0.0 && (gradient[0] - difference).abs() < 1e-6);
/// ```
#[derive(Clone)]
pub struct Minimize {
    /// Metric to tune for; it scores candidates and chooses oracles.
    pub metric: Metric,
    /// Loss that is minimised.
    pub loss: Loss,
    /// λ: weight of the regulariser ½‖w‖², 0 or more; not used by APRO, whose regulariser has weight 1.
    pub lambda: f64,
    /// γ: scale of the scores in p ∝ exp(γs), for softmax, xBLEU and risk; above 0. Several values are
    /// annealed in order, each from the weights of the one before.
    pub gamma: Vec<f64>,
    /// Smoothing of sentence BLEU, for pairs, risk and oracles by sentence.
    pub plus_one: SentenceSmoothing,
    /// How candidates are compared by PRO, APRO and risk; not used by the other losses.
    pub gain: GainBy,
    /// L1 penalty, which sets the weights of features that do not matter to 0 (Andrew and Gao 2007); `None` for none.
    pub l1: Option<L1>,
    /// Features whose weights must not be negative.
    pub nonnegative: Nonnegative,
    /// Stopping rule of the minimiser: tolerance and maximum number of steps (sweeps, with the hinge loss).
    pub limit: Limit,
    /// Seed of sampled pairs, of the oracle search and of the order of dual coordinate descent.
    pub seed: u64,
}

impl Minimize {
    /// Builds the learner of a loss with λ = 10⁻⁵, γ = 1, tolerance 10⁻⁴ and at most 1,000 steps, the defaults of
    /// softmax, xBLEU and risk.
    pub fn new(metric: Metric, loss: Loss, seed: u64) -> Self {
        Minimize {
            metric,
            loss,
            lambda: 1e-5,
            gamma: vec![1.0],
            plus_one: SentenceSmoothing::default(),
            gain: GainBy::Sentence,
            l1: None,
            nonnegative: Nonnegative::None,
            limit: Limit { tolerance: 1e-4, steps: 1000 },
            seed,
        }
    }

    /// Returns the objective over some lists, regulariser included, at the last γ; `epoch` seeds the sampling of
    /// pairs. Every feature must have been committed to `weights`; the variables are in their order.
    pub fn objective<'a>(
        &'a self,
        lists: &[Arc<Candidates>],
        weights: &Weights,
        epoch: u32,
    ) -> Box<dyn Objective + 'a> {
        let gamma = self.gamma.last().copied().unwrap_or(1.0);
        self.at(&Arc::new(FeatureMatrix::new(lists.to_vec(), weights)), weights, epoch, gamma, Fleet::ALONE)
    }

    /// Builds the objective over the lists of `design` at one γ.
    fn at<'a>(
        &'a self,
        design: &Arc<FeatureMatrix>,
        weights: &Weights,
        epoch: u32,
        gamma: f64,
        fleet: Fleet<'a>,
    ) -> Box<dyn Objective + 'a> {
        let (metric, lists) = (&self.metric, design.lists());
        match &self.loss {
            Loss::Pro { pairs, margin } => {
                let gain = self.gains(design, weights);
                let chosen = pairs.choose(lists, metric, (self.plus_one, &gain), epoch);
                self.pairwise(lists, &chosen, weights, *margin, fleet)
            }
            Loss::Apro { c, scale } => {
                let loss = Apro::new(*c, *scale, &self.gains(design, weights));
                Box::new(Regularized::new(design.clone(), loss, 1.0, fleet))
            }
            Loss::Softmax { oracle } => {
                let oracle = oracles(lists, metric, self.plus_one, *oracle, self.seed);
                Box::new(Regularized::new(design.clone(), Softmax { gamma, oracle }, self.lambda, fleet))
            }
            Loss::Xbleu { clip, brevity, references } => {
                let bleu = metric.as_bleu().cloned().unwrap_or_default();
                let references = references.as_deref().map(Vec::as_slice);
                let loss = Xbleu::new(gamma, &bleu, *clip, *brevity, lists.to_vec(), references);
                Box::new(Regularized::new(design.clone(), loss, self.lambda, fleet))
            }
            Loss::Risk => {
                let gain = self.gains(design, weights);
                Box::new(Regularized::new(design.clone(), Risk { gamma, gain }, self.lambda, fleet))
            }
        }
    }

    /// Returns the scores by which candidates are compared, by segment, on the learning scale.
    fn gains(&self, design: &FeatureMatrix, weights: &Weights) -> Vec<Vec<f64>> {
        let (metric, lists) = (&self.metric, design.lists());
        if self.gain == GainBy::Sentence {
            return gains(lists, metric, self.plus_one);
        }
        let best = |s: usize| argmax(&design.scores(s, &design.gather(s, weights.values())));
        let best: Vec<usize> = (0..lists.len()).map(|s| if lists[s].k > 0 { best(s) } else { 0 }).collect();
        document_gains(lists, &best, metric)
    }

    /// Returns the objective over forests, regulariser included; `None` unless the loss is softmax or xBLEU
    /// and the metric is BLEU.
    pub fn on_forests<'a>(
        &self,
        pool: &ForestPool,
        weights: &Weights,
        gamma: f64,
        fleet: Fleet<'a>,
    ) -> Option<OnForests<'a>> {
        let bleu = self.metric.as_bleu()?;
        let scale = (gamma, self.lambda);
        match self.loss {
            Loss::Softmax { oracle } => {
                let how = (oracle, self.plus_one, self.seed);
                Some(OnForests::softmax(pool, bleu, how, weights, scale, fleet))
            }
            Loss::Xbleu { clip, brevity, .. } => {
                Some(OnForests::xbleu(pool, bleu, (clip, brevity), weights, scale, fleet))
            }
            _ => None,
        }
    }

    /// Minimises the loss over the forests of the last decode, for each γ in turn. Returns a note, and learns
    /// nothing, if the loss has no form on forests.
    fn learn_forests(
        &self,
        pool: &ForestPool,
        state: &mut State,
        fleet: Fleet<'_>,
        progress: Progress<'_>,
    ) -> Result<Note> {
        let gamma = self.gamma.first().copied().unwrap_or(1.0);
        let Some(mut objective) = self.on_forests(pool, &state.weights, gamma, fleet) else {
            return Ok(Some("this loss cannot be computed on forests; nothing was learned".to_owned()));
        };
        let mut seen = vec![false; state.weights.len()];
        for p in state.weights.places(&pool.columns) {
            seen[p as usize] = true;
        }
        let (w, note) = self.fit(state.weights.values(), &seen, progress, |w, watcher| {
            let mut last = None;
            for &gamma in &self.gamma {
                objective.set_scale(gamma);
                last = self.ended(watcher.run(lbfgs, &mut objective, w));
            }
            last
        })?;
        state.weights.replace(&w);
        Ok(note)
    }

    /// Fits the weights of features that are seen in the pool. A decoder may use the other features too: their
    /// weights are not changed and do not count in ‖w‖. Fails with an error of kind `Interrupted` if `progress`
    /// answers *stop*.
    fn fit(
        &self,
        before: &[f64],
        seen: &[bool],
        progress: Progress<'_>,
        fit: impl FnOnce(&mut [f64], &Watcher<'_>) -> Note,
    ) -> Result<(Vec<f64>, Note)> {
        let watcher = Watcher { progress, limit: self.limit, stopped: Cell::new(false) };
        let mut w: Vec<f64> = before.iter().zip(seen).map(|(&w, &s)| if s { w } else { 0.0 }).collect();
        let note = fit(&mut w, &watcher);
        if watcher.stopped.get() {
            return Err(Error::interrupted());
        }
        progress.count("objective", 1000, 1000)?;
        for ((w, &b), _) in w.iter_mut().zip(before).zip(seen).filter(|(_, s)| !**s) {
            *w = b;
        }
        Ok((w, note))
    }

    /// Returns the note about a minimiser that did not converge. For xBLEU, a line search that fails is no
    /// reason for a note: the brevity penalty has a corner, the optimum often lies there, and the gradient does
    /// not vanish.
    fn ended(&self, ended: Ended) -> Note {
        let corner = matches!(self.loss, Loss::Xbleu { brevity: Brevity::Exact, .. });
        note(ended, self.limit).filter(|_| !corner || ended.steps >= self.limit.steps)
    }
}

/// Reports the progress of a minimiser, and stops it on request.
struct Watcher<'a> {
    progress: Progress<'a>,
    limit: Limit,
    stopped: Cell<bool>,
}

impl Watcher<'_> {
    /// Runs a minimiser from `w`, which becomes the result.
    fn run(
        &self,
        minimiser: impl FnOnce(&mut dyn Objective, &mut [f64], Limit, &mut Watch<'_>) -> Ended,
        objective: &mut dyn Objective,
        w: &mut [f64],
    ) -> Ended {
        let mut polled = Polled { objective, watcher: self };
        minimiser(&mut polled, w, self.limit, &mut |_, value, relative| {
            let done = (math::ln(relative.max(1e-300)) / math::ln(self.limit.tolerance)).clamp(0.0, 1.0);
            let step = Step { what: "objective", done: (1e3 * done) as u64, total: 1000, value: Some(value) };
            self.stop_if(self.progress.report(&step).is_err());
        })
    }

    /// Polls the progress callback and returns whether to stop.
    fn asks_to_stop(&self) -> bool {
        self.stop_if(self.progress.poll().is_err());
        self.stopped.get()
    }

    fn stop_if(&self, stop: bool) {
        self.stopped.set(self.stopped.get() || stop);
    }
}

/// An objective that polls the progress callback before every evaluation. Once stopped, evaluations cost
/// nothing and return NaN, so that the minimiser ends at once.
struct Polled<'a> {
    objective: &'a mut dyn Objective,
    watcher: &'a Watcher<'a>,
}

impl Objective for Polled<'_> {
    fn dim(&self) -> usize {
        self.objective.dim()
    }

    fn evaluate(&mut self, w: &[f64], gradient: &mut [f64]) -> f64 {
        if self.watcher.asks_to_stop() {
            gradient.fill(0.0);
            return f64::NAN;
        }
        self.objective.evaluate(w, gradient)
    }

    fn curve(&mut self, v: &[f64], out: &mut [f64]) -> bool {
        !self.watcher.asks_to_stop() && self.objective.curve(v, out)
    }
}

impl Learner for Minimize {
    fn learn(
        &self,
        evidence: &Evidence,
        state: &mut State,
        fleet: &Fleet<'_>,
        progress: Progress<'_>,
    ) -> Result<Note> {
        if let Evidence::Forests(pool) = evidence {
            return self.learn_forests(pool, state, *fleet, progress);
        }
        let lists = evidence.lists();
        let design = Arc::new(FeatureMatrix::new(lists.to_vec(), &state.weights));
        let mut chosen = Vec::new();
        if let Loss::Pro { pairs, .. } = &self.loss {
            let gain = self.gains(&design, &state.weights);
            chosen = pairs.choose(lists, &self.metric, (self.plus_one, &gain), state.epoch);
            if chosen.iter().all(Vec::is_empty) {
                let least = pairs.min_difference;
                return Ok(Some(format!(
                    "no pair of candidates differs by at least {least} in {}: nothing was learned; lower \
                     --min-difference",
                    self.metric.name()
                )));
            }
        }
        if self.l1.is_some() || self.nonnegative != Nonnegative::None {
            return self.learn_penalised(&design, state, *fleet, progress);
        }
        let before = state.weights.values();
        let (w, note) = self.fit(before, &design.seen(), progress, |w, watcher| match &self.loss {
            Loss::Pro { margin: Margin::Hinge, .. } => self.hinge(lists, &chosen, w, (state, watcher)),
            Loss::Pro { margin, .. } => {
                let mut objective = self.pairwise(lists, &chosen, &state.weights, *margin, *fleet);
                note(watcher.run(lbfgs, &mut *objective, w), self.limit)
            }
            Loss::Apro { .. } => {
                let mut objective = self.at(&design, &state.weights, state.epoch, 1.0, *fleet);
                note(watcher.run(newton, &mut *objective, w), self.limit)
            }
            _ => {
                let mut last = None;
                for &gamma in &self.gamma {
                    let mut objective = self.at(&design, &state.weights, state.epoch, gamma, *fleet);
                    last = self.ended(watcher.run(lbfgs, &mut *objective, w));
                }
                last
            }
        })?;
        state.weights.replace(&w);
        Ok(note)
    }
}

/// What the L1 path is fitted on: lists, weights that name the variables, and the epoch that seeds samples.
#[derive(Clone, Copy)]
struct Problem<'a> {
    lists: &'a [Arc<Candidates>],
    weights: &'a Weights,
    epoch: u32,
}

impl Minimize {
    /// Minimises the loss with an L1 penalty or with non-negative weights, by OWL-QN.
    fn learn_penalised(
        &self,
        design: &FeatureMatrix,
        state: &mut State,
        fleet: Fleet<'_>,
        progress: Progress<'_>,
    ) -> Result<Note> {
        let weights = state.weights.clone();
        let problem = Problem { lists: design.lists(), weights: &weights, epoch: state.epoch };
        let mut chosen = None;
        let (w, note) = self.fit(weights.values(), &design.seen(), progress, |w, watcher| match self.l1 {
            None => {
                let mut last = None;
                for &gamma in &self.gamma {
                    let one = Minimize { gamma: vec![gamma], ..self.clone() };
                    last = self.ended(one.penalised(problem, 0.0, w, (fleet, watcher)));
                }
                last
            }
            Some(L1::Value(l1)) => {
                chosen = Some(l1);
                self.ended(self.penalised(problem, l1, w, (fleet, watcher)))
            }
            Some(L1::Path) => {
                let path = self.path(problem, fleet);
                let best = self.choose(problem, &path, (fleet, watcher));
                chosen = path.get(best).copied();
                w.fill(0.0);
                let ends = path[..=best].iter().map(|&l1| self.penalised(problem, l1, w, (fleet, watcher)));
                ends.last().and_then(|end| self.ended(end))
            }
        })?;
        state.weights.replace(&w);
        state.l1 = chosen;
        Ok(note)
    }

    /// Builds the objective over some lists, at the last γ.
    fn over<'a>(&'a self, problem: Problem<'_>, fleet: Fleet<'a>) -> Box<dyn Objective + 'a> {
        let design = Arc::new(FeatureMatrix::new(problem.lists.to_vec(), problem.weights));
        let gamma = self.gamma.last().copied().unwrap_or(1.0);
        self.at(&design, problem.weights, problem.epoch, gamma, fleet)
    }

    /// Minimises the loss plus λ₁ Σ|w| from `w`, which becomes the result.
    fn penalised(
        &self,
        problem: Problem<'_>,
        l1: f64,
        w: &mut [f64],
        (fleet, watcher): (Fleet<'_>, &Watcher<'_>),
    ) -> Ended {
        let nonnegative = self.nonnegative.mask(problem.weights);
        let penalty = Penalty { l1: vec![l1; w.len()], nonnegative };
        let mut objective = self.over(problem, fleet);
        watcher.run(|f, w, limit, watch| owlqn(f, w, &penalty, limit, watch), &mut *objective, w)
    }

    /// Returns the values of the L1 path, from the one at which all weights become 0 down.
    fn path(&self, problem: Problem<'_>, fleet: Fleet<'_>) -> Vec<f64> {
        let n = problem.weights.len();
        let mut gradient = vec![0.0; n];
        self.over(problem, fleet).evaluate(&vec![0.0; n], &mut gradient);
        let largest = gradient.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
        let ratio = |k: usize| -math::ln(PATH_RATIO) * k as f64 / (PATH - 1) as f64;
        (0..PATH).map(|k| largest * math::exp(ratio(k))).collect()
    }

    /// Returns the largest λ₁ of the path, by its number, whose mean held-out loss is within one standard error of the lowest
    /// and which leaves some weight. Each fold is held out in turn. The loss of PRO is a sum, so that a part of the lists
    /// is fitted with that share of λ₁ and λ; held-out losses are means over segments, without regularisers.
    fn choose(
        &self,
        problem: Problem<'_>,
        path: &[f64],
        (fleet, watcher): (Fleet<'_>, &Watcher<'_>),
    ) -> usize {
        let n = problem.lists.len();
        let mut order: Vec<usize> = (0..n).collect();
        Stream::new(self.seed, Purpose::Folds, problem.epoch, 0).shuffle(&mut order);
        let folds = PATH_FOLDS.min(n).max(1);
        let sums = matches!(self.loss, Loss::Pro { .. });
        // Held-out losses with the numbers of segments that they are means of, by value of the path.
        let mut losses: Vec<Vec<(f64, f64)>> = vec![Vec::new(); path.len()];
        for fold in 0..folds {
            let part = |held: bool| -> Vec<Arc<Candidates>> {
                let of = order.iter().enumerate().filter(|(i, _)| (i % folds == fold) == held);
                of.map(|(_, &s)| problem.lists[s].clone()).collect()
            };
            let (learned, held) = (part(false), part(true));
            let share = if sums { learned.len() as f64 / n as f64 } else { 1.0 };
            let part = Minimize { lambda: share * self.lambda, ..self.clone() };
            let learned = Problem { lists: &learned, ..problem };
            let unit = if sums { held.len() as f64 } else { 1.0 };
            let mut unseen = self.over(Problem { lists: &held, ..problem }, fleet);
            let (mut w, mut gradient) = (vec![0.0; problem.weights.len()], vec![0.0; problem.weights.len()]);
            for (&l1, losses) in path.iter().zip(&mut losses) {
                part.penalised(learned, share * l1, &mut w, (fleet, watcher));
                let ridge = self.ridge() / 2.0 * w.iter().map(|w| w * w).sum::<f64>();
                losses.push(((unseen.evaluate(&w, &mut gradient) - ridge) / unit, held.len() as f64));
            }
        }
        within_one_error(&losses)
    }

    /// Returns the weight of the regulariser ½‖w‖².
    fn ridge(&self) -> f64 {
        if matches!(self.loss, Loss::Apro { .. }) { 1.0 } else { self.lambda }
    }

    /// Builds the objective of PRO over chosen pairs: λ/2‖w‖² plus twice the sum of logistic losses, or plus
    /// the mean of hinge losses.
    fn pairwise<'a>(
        &'a self,
        lists: &[Arc<Candidates>],
        chosen: &[Vec<Pair>],
        weights: &Weights,
        margin: Margin,
        fleet: Fleet<'a>,
    ) -> Box<dyn Objective + 'a> {
        let (lists, pairs) = compact(lists, chosen);
        let scale = match margin {
            Margin::Logistic => 2.0,
            Margin::Hinge => 1.0 / pairs.iter().map(Vec::len).sum::<usize>().max(1) as f64,
        };
        let loss = Pairwise { margin, scale, pairs };
        Box::new(Regularized::new(Arc::new(FeatureMatrix::new(lists, weights)), loss, self.lambda, fleet))
    }

    /// Minimises λ/2‖w‖² + 1/M Σ max(0, 1 − d) over M chosen pairs by dual coordinate descent, as ½‖w‖² + C Σ
    /// max(0, 1 − d) with C = 1/(λM). Returns a note if the tolerance is not reached.
    fn hinge(
        &self,
        lists: &[Arc<Candidates>],
        chosen: &[Vec<Pair>],
        w: &mut [f64],
        (state, watcher): (&State, &Watcher<'_>),
    ) -> Note {
        let (lists, chosen) = compact(lists, chosen);
        let rows = PairRows::new(&FeatureMatrix::new(lists, &state.weights), &chosen, watcher);
        let c = 1.0 / (self.lambda * rows.len().max(1) as f64);
        let mut stream = Stream::new(self.seed, Purpose::Order, state.epoch, 0);
        w.fill(0.0);
        let (tolerance, sweeps) = (self.limit.tolerance, self.limit.steps);
        let mut below = |n: usize| stream.below(n as u64) as usize;
        let found = dual(&rows, w, c, Accuracy::Gap(tolerance), sweeps, &mut below);
        let gap = found.relative_gap();
        (gap > tolerance).then(|| {
            format!(
                "the minimiser stopped after {} sweeps, at most {:.1} % above the optimum; raise --max-steps",
                found.sweeps,
                100.0 * gap / (1.0 - gap).max(1e-9)
            )
        })
    }
}

/// Returns the first value of a path, by its number from 1, whose mean loss is within one standard error of the lowest. A value
/// has the losses of several folds, each with the number of segments that it is a mean of. The standard error is that of the
/// mean of the folds: s/√K for K folds with the standard deviation s.
fn within_one_error(losses: &[Vec<(f64, f64)>]) -> usize {
    let mean = |parts: &[(f64, f64)]| {
        parts.iter().map(|(loss, n)| loss * n).sum::<f64>() / parts.iter().map(|p| p.1).sum::<f64>()
    };
    let means: Vec<f64> = losses.iter().map(|parts| mean(parts)).collect();
    let best = (0..means.len()).min_by(|&a, &b| means[a].total_cmp(&means[b])).unwrap_or(0);
    let parts = &losses[best];
    let squares: f64 = parts.iter().map(|(loss, _)| (loss - means[best]) * (loss - means[best])).sum();
    let error = (squares / ((parts.len().max(2) - 1) * parts.len().max(1)) as f64).sqrt();
    // At the first value of the path all weights are 0.
    (1..=best).find(|&k| means[k] <= means[best] + error).unwrap_or(best.max(1))
}

/// Returns a note for the user if a minimiser did not converge.
fn note(ended: Ended, limit: Limit) -> Note {
    let (steps, gradient) = (ended.steps, ended.gradient);
    if ended.converged {
        None
    } else if steps >= limit.steps {
        Some(format!(
            "the minimiser stopped after {steps} steps before it converged (gradient norm {gradient:.2e}); raise \
             --max-steps"
        ))
    } else {
        Some(format!(
            "the minimiser found no better point after {steps} steps (gradient norm {gradient:.2e}); check for \
             features of very different scale"
        ))
    }
}

/// Returns lists of only those candidates that occur in a pair, and the pairs renumbered accordingly.
fn compact(lists: &[Arc<Candidates>], pairs: &[Vec<Pair>]) -> (Vec<Arc<Candidates>>, Vec<Vec<Pair>>) {
    let one = |(list, pairs): (&Arc<Candidates>, &Vec<Pair>)| {
        let mut rows: Vec<u32> = pairs.iter().flat_map(|&(a, b)| [a, b]).collect();
        rows.sort_unstable();
        rows.dedup();
        if rows.len() == list.k {
            return (list.clone(), pairs.clone());
        }
        let place = |i: u32| rows.binary_search(&i).unwrap_or(0) as u32;
        let pairs = pairs.iter().map(|&(a, b)| (place(a), place(b))).collect();
        (Arc::new(list.select(&rows)), pairs)
    };
    lists.iter().zip(pairs).map(one).unzip()
}

/// Feature differences of pairs as examples of dual coordinate descent. Only the candidates' rows are stored;
/// differences are computed on the fly.
struct PairRows<'a> {
    watcher: &'a Watcher<'a>,
    /// Start of each candidate's row in `places` and `values`, and the total length.
    offsets: Vec<usize>,
    /// Positions in the weights of the non-zero features, ascending in each row.
    places: Vec<u32>,
    /// Values of the non-zero features; parallel to `places`.
    values: Vec<f64>,
    /// Better and worse candidate of each pair, as row numbers.
    pairs: Vec<Pair>,
}

impl<'a> PairRows<'a> {
    fn new(design: &FeatureMatrix, pairs: &[Vec<Pair>], watcher: &'a Watcher<'a>) -> Self {
        let (places, values) = (Vec::new(), Vec::new());
        let mut rows = PairRows { watcher, offsets: vec![0], places, values, pairs: Vec::new() };
        let mut row: Vec<(u32, f64)> = Vec::new();
        for (s, (list, pairs)) in design.lists().iter().zip(pairs).enumerate() {
            let first = rows.offsets.len() as u32 - 1;
            for i in 0..list.k {
                row.clear();
                row.extend(design.row(s, i));
                row.sort_unstable_by_key(|f| f.0);
                rows.places.extend(row.iter().map(|f| f.0));
                rows.values.extend(row.iter().map(|f| f.1));
                rows.offsets.push(rows.places.len());
            }
            rows.pairs.extend(pairs.iter().map(|&(a, b)| (first + a, first + b)));
        }
        rows
    }

    fn row(&self, i: u32) -> impl Iterator<Item = (u32, f64)> {
        let range = self.offsets[i as usize]..self.offsets[i as usize + 1];
        self.places[range.clone()].iter().copied().zip(self.values[range].iter().copied())
    }
}

impl Examples for PairRows<'_> {
    fn stop(&self) -> bool {
        self.watcher.asks_to_stop()
    }

    fn len(&self) -> usize {
        self.pairs.len()
    }

    fn dot(&self, i: usize, w: &[f64]) -> f64 {
        let score = |i: u32| self.row(i).map(|(p, x)| w[p as usize] * x).sum::<f64>();
        score(self.pairs[i].0) - score(self.pairs[i].1)
    }

    fn square(&self, i: usize) -> f64 {
        let (mut a, mut b) = (self.row(self.pairs[i].0).peekable(), self.row(self.pairs[i].1).peekable());
        let mut sum = 0.0;
        loop {
            let d = match (a.peek().copied(), b.peek().copied()) {
                (None, None) => return sum,
                (Some(x), Some(y)) if x.0 == y.0 => {
                    a.next();
                    b.next();
                    x.1 - y.1
                }
                (Some(x), y) if y.is_none_or(|y| x.0 < y.0) => {
                    a.next();
                    x.1
                }
                (_, y) => {
                    b.next();
                    y.map_or(0.0, |y| y.1)
                }
            };
            sum += d * d;
        }
    }

    fn add(&self, i: usize, a: f64, w: &mut [f64]) {
        for (p, x) in self.row(self.pairs[i].0) {
            w[p as usize] += a * x;
        }
        for (p, x) in self.row(self.pairs[i].1) {
            w[p as usize] -= a * x;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Folds of the best value are 1, 2 and 3: mean 2, standard deviation 1, standard error 1/√3.
    #[test]
    fn the_largest_penalty_within_one_error() {
        let of = |mean: f64| vec![(mean - 1.0, 10.0), (mean, 10.0), (mean + 1.0, 10.0)];
        let error = 1.0 / 3f64.sqrt();
        let path = |second: f64| [of(2.0 + 0.1 * error), of(second), of(2.0 + 0.5 * error), of(2.0), of(2.5)];
        // At the first value of the path all weights are 0, whatever its loss.
        assert_eq!(within_one_error(&path(2.0 + 1.01 * error)), 2);
        assert_eq!(within_one_error(&path(2.0 + 0.99 * error)), 1);
        // Folds count by their segments, and the scale of the loss does not matter.
        let uneven =
            [vec![(9.0, 1.0), (9.0, 1.0)], vec![(3.0, 1.0), (1.0, 3.0)], vec![(2.0, 1.0), (2.0, 3.0)]];
        assert_eq!(within_one_error(&uneven), 1);
        let scaled: Vec<Vec<(f64, f64)>> = path(2.0 + 0.99 * error)
            .iter()
            .map(|p| p.iter().map(|(l, n)| (50.0 * l, *n)).collect())
            .collect();
        assert_eq!(within_one_error(&scaled), 1);
    }
}
