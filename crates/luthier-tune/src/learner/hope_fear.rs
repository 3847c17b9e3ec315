//! K-best batch MIRA with hope and fear (Cherry and Foster 2012), as in Moses' kbmira.
//!
//! s(e) = w·h(e) is the model score of candidate e, o the statistics of the pseudo-document, and B(e) the
//! metric score of o + stats(e) from 0 to 1 times its size ([`Metric::sized_score`]): for BLEU times the
//! reference length (Chiang et al. 2008). A visit of a segment chooses
//!
//! - hope e⁺ = argmax s(e) + B(e) and fear e⁻ = argmax s(e) − B(e);
//! - Δ = h(e⁺) − h(e⁻) and loss = B(e⁺) − B(e⁻) − w·Δ;
//!
//! and, unless B(e⁺) ≤ B(e⁻), sets
//!
//! - w ← w + min(C, loss/‖Δ‖²)·Δ where the loss is positive;
//! - o ← decay·o + stats(e⁺). All counts of o are 1 at the start, so that BLEU is never 0.
//!
//! After each epoch the mean of the weights after all updates so far, initial weights included, is scored on
//! the pool. The mean with the highest corpus score is the result; on fixed lists, the initial weights if they score
//! at least as high. With a decoder they are no choice: the next decode would bring nothing new. Training stops after a fixed number of epochs. An epoch reads the pool twice: once to visit
//! the segments, once to score the mean.

mod forest;

use super::{Learner, Nonnegative, Note};
use crate::{Candidates, Evidence, FeatureMatrix, Fleet, State, candidates::argmax, recipe::Mira};
use luthier_core::{
    Progress, Result, Step, Weights,
    random::{Purpose, Stream},
    sum,
};
use luthier_metric::{Metric, add};

/// K-best batch MIRA with hope and fear (Cherry and Foster 2012), as in Moses' kbmira.
///
/// Segments are visited in random order. With s(e) = w·h(e) the model score and B(e) the metric score, times
/// size, of a pseudo-document (a decaying sum of earlier hopes) with e added, the hope maximises s + B and the
/// fear s − B. The update is w += min(C, loss/‖Δ‖²)·Δ with Δ = h(hope) − h(fear) and loss = B(hope) − B(fear)
/// − w·Δ, where the loss is positive. After each epoch the mean of all weights so far is scored on the pool;
/// the mean with the highest score, or with `keep_initial` the initial weights if they score higher, is the result.
/// Stops after a fixed number of epochs, each of which reads the pool twice.
///
/// ```
/// # use luthier_core::{Progress, Weights};
/// # use luthier_io::nbest::Rows;
/// # use luthier_tune::{Evidence, Fleet, Judge, Learner, State, columns, lists};
/// # let mut rows = Rows::default();
/// # rows.push(0, "the house is very small", &[("lm", -2.0), ("tm", -3.0)], &[]).unwrap();
/// # rows.push(0, "house the small", &[("lm", -6.0), ("tm", -1.0)], &[]).unwrap();
/// # let references = [vec!["the house is very small"]];
/// use luthier_tune::learner::HopeFear;
/// let metric: luthier_metric::Metric = "bleu".parse().unwrap();
/// # let judge = Judge::new(&metric, &references, "ref.txt");
/// # let lists = lists(&rows, &columns(&rows, None), Some(judge)).unwrap();
/// # let evidence = Evidence::Lists(lists.into_iter().map(Into::into).collect());
/// // Under these weights the second of two candidates wins, which scores 0.
/// let mut state = State::new(Weights::parse("w.txt", "lm 0.1\ntm 1").unwrap());
/// let mira = HopeFear { c: 0.1, ..HopeFear::new(metric, 1) };
/// mira.learn(&evidence, &mut state, &Fleet::ALONE, Progress::NONE).unwrap();
/// let list = &evidence.lists()[0];
/// let mut dense = Vec::new();
/// state.weights.gather(&list.columns, &mut dense);
/// assert_eq!(list.best(&dense, &state.weights), Some(0));
/// ```
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "four settings that do not depend on each other")]
pub struct HopeFear {
    /// Metric to tune for; it scores the pseudo-document and selects the best epoch.
    pub metric: Metric,
    /// C: maximum step size, above 0.
    pub c: f64,
    /// Decay factor of the pseudo-document in (0, 1], applied before a candidate is added to it.
    pub decay: f64,
    /// Number of epochs over the pool in one call of `learn`.
    pub epochs: u32,
    /// Whether the model's best candidates are added to the pseudo-document instead of the hopes.
    pub model_background: bool,
    /// Whether the model score is scaled down in the choice of the hope where it exceeds five times the
    /// metric score of the hope.
    pub safe_hope: bool,
    /// Whether segments are visited in random order, newly drawn in every epoch.
    pub shuffle: bool,
    /// Whether the initial weights are the result if they score at least as high as every mean.
    pub keep_initial: bool,
    /// Features whose weights must not be negative: each step is projected.
    pub nonnegative: Nonnegative,
    /// Seed of the random order of segments.
    pub seed: u64,
}

impl HopeFear {
    /// Hope–fear MIRA with the default settings of the recipe [`Mira`], which are those of Moses: C = 0.01,
    /// decay 0.999, 60 epochs.
    pub fn new(metric: Metric, seed: u64) -> Self {
        Mira::default().hope_fear(metric, seed)
    }
}

/// With [`HopeFear::safe_hope`]: largest ratio of model score to metric score of the hope, above which the
/// model score is scaled down.
const SAFE_HOPE_RATIO: f64 = 5.0;

impl Learner for HopeFear {
    fn learn(
        &self,
        evidence: &Evidence,
        state: &mut State,
        _: &Fleet<'_>,
        progress: Progress<'_>,
    ) -> Result<Note> {
        if let Evidence::Forests(pool) = evidence {
            return self.learn_forests(pool, state, progress);
        }
        let lists = evidence.lists();
        let design = FeatureMatrix::new(lists.to_vec(), &state.weights);
        let order = (0..lists.len() as u32).filter(|&s| lists[s as usize].k > 1).collect();
        let visit = |s: usize, pass: &mut Pass<'_>| pass.visit(&design, s);
        self.run_epochs(state, order, &visit, &|w| self.score(&design, w), progress)?;
        Ok(None)
    }
}

/// Visits a segment: chooses hope and fear and updates the weights.
type Visit<'a> = dyn Fn(usize, &mut Pass<'_>) + 'a;

impl HopeFear {
    /// Visits the segments of `order` in every epoch and writes the mean weights with the highest `score` to
    /// `state`. Fails with an error of kind `Interrupted` if `progress` answers *stop*.
    fn run_epochs(
        &self,
        state: &mut State,
        mut order: Vec<u32>,
        visit: &Visit<'_>,
        score: &dyn Fn(&[f64]) -> f64,
        progress: Progress<'_>,
    ) -> Result<()> {
        let mut pass = Pass::new(self, &state.weights);
        let initial = if self.keep_initial { score(state.weights.values()) } else { f64::NEG_INFINITY };
        let mut best = (initial, state.weights.values().to_vec());
        for epoch in 0..self.epochs {
            if self.shuffle {
                Stream::new(self.seed, Purpose::Order, state.epoch, epoch).shuffle(&mut order);
            }
            for &s in &order {
                visit(s as usize, &mut pass);
                progress.poll()?;
            }
            let mean = pass.mean();
            let found = score(&mean);
            if found > best.0 {
                best = (found, mean);
            }
            let (done, total) = (u64::from(epoch) + 1, u64::from(self.epochs));
            progress.report(&Step { what: "epochs", done, total, value: Some(best.0) })?;
        }
        state.weights.replace(&best.1);
        Ok(())
    }

    /// Returns the corpus score of the one-best candidates under the weights `w`.
    fn score(&self, design: &FeatureMatrix, w: &[f64]) -> f64 {
        let (metric, lists) = (&self.metric, design.lists());
        let total = sum::sum(lists.len(), 64, metric.width(), |s, total| {
            let scores = design.scores(s, &design.gather(s, w));
            if !scores.is_empty() {
                add(total, lists[s].stats_of(lists[s].class[argmax(&scores)]));
            }
        });
        metric.score(&total)
    }
}

/// Weights, their mean and the pseudo-document while segments are visited.
struct Pass<'a> {
    settings: &'a HopeFear,
    /// Weights wₜ after the last update.
    w: Vec<f64>,
    /// Σ k·dₖ over updates k with steps dₖ = wₖ − wₖ₋₁: the mean of w₀…wₜ is wₜ minus this sum divided by t + 1.
    lag: Vec<f64>,
    /// Number t of updates.
    updates: u64,
    /// Statistics o of the pseudo-document.
    background: Vec<f64>,
    /// Buffer: o + stats(e) of one class of candidates.
    total: Vec<f64>,
    /// B of each class of candidates of the segment being visited.
    gain: Vec<f64>,
    /// Δ of the current update, as position in the weights and value.
    difference: Vec<(u32, f64)>,
    /// Whether a weight must not be negative, by position; empty if all may be.
    positive: Vec<bool>,
}

impl<'a> Pass<'a> {
    fn new(settings: &'a HopeFear, weights: &Weights) -> Self {
        let w = weights.values();
        let width = settings.metric.width();
        Pass {
            settings,
            w: w.to_vec(),
            lag: vec![0.0; w.len()],
            updates: 0,
            // No count is 0, so that BLEU of the pseudo-document is not 0.
            background: vec![1.0; width],
            total: vec![0.0; width],
            gain: Vec::new(),
            difference: Vec::new(),
            positive: if settings.nonnegative == Nonnegative::None {
                Vec::new()
            } else {
                settings.nonnegative.mask(weights)
            },
        }
    }

    /// Visits segment `s`: chooses hope and fear, updates the weights if the loss is positive, and adds a
    /// candidate to the pseudo-document.
    fn visit(&mut self, design: &FeatureMatrix, s: usize) {
        let list = &*design.lists()[s];
        let scores = design.scores(s, &design.gather(s, &self.w));
        self.judge(list);
        let gain = |i: usize| self.gain[list.class[i] as usize];
        let mut hope = hope_or_fear(list, &scores, &self.gain, 1.0);
        if self.settings.safe_hope && scores[hope].abs() > 1e-8 {
            let scale = SAFE_HOPE_RATIO * gain(hope).abs() / scores[hope].abs();
            if scale < 1.0 {
                hope = hope_or_fear(list, &scores, &self.gain, scale);
            }
        }
        let fear = hope_or_fear(list, &scores, &self.gain, -1.0);
        let better = gain(hope) - gain(fear);
        if hope == fear || better <= 0.0 {
            return;
        }
        let loss = better - (scores[hope] - scores[fear]);
        if loss > 0.0 {
            self.update(design, s, (hope, fear), loss);
        }
        let added = if self.settings.model_background { argmax(&scores) } else { hope };
        self.remember(list.stats_of(list.class[added]));
    }

    /// Adds the statistics of a candidate to the pseudo-document: o ← decay·o + stats.
    fn remember(&mut self, stats: &[f32]) {
        for (b, &x) in self.background.iter_mut().zip(stats) {
            *b = self.settings.decay * *b + f64::from(x);
        }
    }

    /// Computes B of every class of candidates: the score, times size, of the pseudo-document with the
    /// candidate added.
    fn judge(&mut self, list: &Candidates) {
        let metric = &self.settings.metric;
        self.gain.clear();
        for stats in list.stats.chunks_exact(list.width) {
            for ((t, b), &x) in self.total.iter_mut().zip(&self.background).zip(stats) {
                *t = b + f64::from(x);
            }
            self.gain.push(metric.sized_score(&self.total));
        }
    }

    /// Updates the weights by Δ = h(hope) − h(fear) for a given loss.
    fn update(&mut self, design: &FeatureMatrix, s: usize, (hope, fear): (usize, usize), loss: f64) {
        self.difference.clear();
        self.difference.extend(design.row(s, hope));
        self.difference.extend(design.row(s, fear).map(|(p, x)| (p, -x)));
        self.step(loss);
    }

    /// Takes the step w += min(C, loss/‖Δ‖²)·Δ, with Δ in `self.difference`.
    fn step(&mut self, loss: f64) {
        self.difference.sort_by_key(|d| d.0);
        self.difference.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        let square: f64 = self.difference.iter().map(|d| d.1 * d.1).sum();
        let eta = (loss / square).min(self.settings.c);
        self.updates += 1;
        for &(p, d) in &self.difference {
            let (w, lag) = (&mut self.w[p as usize], &mut self.lag[p as usize]);
            *w += eta * d;
            *lag += self.updates as f64 * eta * d;
            if *w < 0.0 && self.positive.get(p as usize) == Some(&true) {
                *lag -= self.updates as f64 * *w;
                *w = 0.0;
            }
        }
    }

    /// Returns the mean of the initial weights and the weights after each update.
    fn mean(&self) -> Vec<f64> {
        let n = (self.updates + 1) as f64;
        self.w.iter().zip(&self.lag).map(|(w, lag)| w - lag / n).collect()
    }
}

/// Returns the hope, argmax scale·s(e) + B(e), or with a negative `scale` the fear, argmax |scale|·s(e) − B(e);
/// the first of equals. `gain` holds B by class.
fn hope_or_fear(list: &Candidates, scores: &[f64], gain: &[f64], scale: f64) -> usize {
    let sign = scale.signum();
    let mut best = (0, f64::NEG_INFINITY);
    for (i, (&s, &c)) in scores.iter().zip(&list.class).enumerate() {
        let value = scale.abs() * s + sign * gain[c as usize];
        if value > best.1 {
            best = (i, value);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Candidate;
    use luthier_core::{FeatureKey, Local, Weights};
    use std::sync::Arc;

    /// Two segments; their weights after every update were computed by hand.
    fn example() -> (Vec<Arc<Candidates>>, Weights) {
        let keys = [FeatureKey::of("x"), FeatureKey::of("y")];
        let columns = Arc::new(Local::new(keys.to_vec()));
        let list = |rows: &[([f64; 2], [f64; 9])]| {
            let features: Vec<[(FeatureKey, f64); 2]> =
                rows.iter().map(|r| [(keys[0], r.0[0]), (keys[1], r.0[1])]).collect();
            let texts = ["one", "two", "three"];
            let candidates = rows.iter().zip(&features).zip(texts).map(|((row, features), text)| Candidate {
                text,
                features,
                columns: &row.1,
            });
            let mut list = Candidates::new(&columns, candidates, true);
            list.judge_given(9);
            Arc::new(list)
        };
        let first = list(&[
            ([1.0, 0.0], [5., 3., 1., 0., 6., 5., 4., 3., 6.]),
            ([0.0, 1.0], [6., 5., 4., 3., 6., 5., 4., 3., 6.]),
            ([1.0, 1.0], [3., 1., 0., 0., 5., 4., 3., 2., 6.]),
        ]);
        let second = list(&[
            ([2.0, 0.0], [4., 3., 2., 1., 4., 3., 2., 1., 5.]),
            ([0.0, 2.0], [5., 4., 3., 2., 5., 4., 3., 2., 5.]),
        ]);
        (vec![first, second], Weights::parse("w", "x 0.1\ny 0\n").unwrap())
    }

    #[test]
    fn worked_example() {
        let (lists, weights) = example();
        let settings = HopeFear::new("bleu".parse().unwrap(), 1);
        let design = FeatureMatrix::new(lists, &weights);
        let mut pass = Pass::new(&settings, &weights);
        let near = |x: &[f64], y: &[f64]| {
            assert!(x.iter().zip(y).all(|(a, b)| (a - b).abs() < 1e-6), "{x:?} {y:?}");
        };
        assert!((settings.score(&design, weights.values()) - 48.7668).abs() < 1e-3);
        pass.visit(&design, 0);
        near(&pass.gain, &[3.422461, 7.0, 2.287771]);
        near(&pass.w, &[0.09, 0.0]);
        pass.visit(&design, 1);
        near(&pass.gain, &[10.956205, 11.999]);
        near(&pass.w, &[0.07, 0.02]);
        near(&pass.mean(), &[0.086667, 0.006667]);
        pass.visit(&design, 0);
        near(&pass.w, &[0.06, 0.02]);
        pass.visit(&design, 1);
        near(&pass.w, &[0.04, 0.04]);
        near(&pass.mean(), &[0.072, 0.016]);
        assert!((settings.score(&design, &pass.mean()) - 39.5075).abs() < 1e-3);
    }

    /// The initial weights score higher than the mean of any of the two epochs.
    #[test]
    fn initial_weights_are_kept_if_they_score_best() {
        let (lists, weights) = example();
        let settings = HopeFear { epochs: 2, shuffle: false, ..HopeFear::new("bleu".parse().unwrap(), 1) };
        let mut state = State::new(weights.clone());
        settings.learn(&Evidence::Lists(lists), &mut state, &Fleet::ALONE, Progress::NONE).unwrap();
        assert_eq!(state.weights, weights);
    }

    /// With a decoder the initial weights are no choice: the next decode would bring nothing new.
    #[test]
    fn initial_weights_are_left_with_a_decoder() {
        let (lists, weights) = example();
        let settings = HopeFear::new("bleu".parse().unwrap(), 1);
        let settings = HopeFear { epochs: 2, shuffle: false, keep_initial: false, ..settings };
        let mut state = State::new(weights.clone());
        settings.learn(&Evidence::Lists(lists), &mut state, &Fleet::ALONE, Progress::NONE).unwrap();
        assert_ne!(state.weights, weights);
    }
}
