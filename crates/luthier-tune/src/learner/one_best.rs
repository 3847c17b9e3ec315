//! Averaged perceptron and 1-best MIRA (Collins 2002; Crammer and Singer 2003; Arun and Koehn 2007).
//!
//! y′ is the guess, the candidate with the highest model score; yₜ the target, a reachable reference or a
//! surrogate; Θ(x, y) the features of a translation, here h(y); Δ = h(yₜ) − h(y′). Arun and Koehn (2007)
//! define
//!
//! - perceptron (eq. 1): w ← w + Δ; weighted (eq. 4): w ← w + sBLEU(yₜ)·Δ;
//! - MIRA: the smallest change of w with w·Δ ≥ L, where L = sBLEU(yₜ) − sBLEU(y′) (eq. 2), or weighted
//!   L = (sBLEU(yₜ) − sBLEU(y′))·sBLEU(yₜ) (eq. 3).
//!
//! The closed form of the MIRA update is w ← w + τΔ with τ = (L − w·Δ)/‖Δ‖², at least 0. Departures from the
//! paper: τ is at most C (∞ by default, as in the paper), sBLEU is the sentence score of any metric, and no
//! update is made where guess and target have the same words. The learned weights are the mean over all visits,
//! which the loop computes lazily ([`State::step`]).

use super::{Learner, Note};
use crate::{Candidates, Evidence, Fleet, State, candidates::argmax, pairs::gains_of};
use luthier_core::{FeatureKey, Progress, Result, Weights};
use luthier_metric::{Metric, SentenceSmoothing, add};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Surrogate: the target of an update where the reference is not reachable (Arun and Koehn 2007).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Update {
    /// Candidate with the best sentence score among the list and the surrogate of the previous visit.
    Local,
    /// Translation with the best sentence score that a search finds; if a guess scores higher later, it becomes the target.
    MaxBleu,
}

/// Averaged perceptron and 1-best MIRA: online updates from the guess towards the target (Collins 2002; Crammer
/// and Singer 2003; Arun and Koehn 2007).
///
/// The guess is the candidate with the highest model score, the target a reachable reference or a surrogate.
/// With Δ = h(target) − h(guess) the perceptron updates w += Δ, MIRA w += τΔ with τ = (L − w·Δ)/‖Δ‖² clamped to
/// [0, C] and L the difference of sentence scores. No update is made where both have the same words. A visit
/// costs one pass over its list; the schedule decides when to stop.
///
/// ```
/// # use luthier_core::{Progress, SegmentId, Weights};
/// # use luthier_io::nbest::Rows;
/// # use luthier_tune::{Evidence, Fleet, Judge, Learner, State, columns, lists};
/// # let mut rows = Rows::default();
/// use luthier_tune::{learner::{OneBest, Update}};
/// rows.push(0, "the house is very small", &[("lm", -2.0), ("tm", -3.0)], &[]).unwrap();
/// rows.push(0, "house the small", &[("lm", -6.0), ("tm", -1.0)], &[]).unwrap();
/// let metric: luthier_metric::Metric = "bleu".parse().unwrap();
/// # let references = [vec!["the house is very small"]];
/// # let judge = Judge::new(&metric, &references, "ref.txt");
/// # let lists = lists(&rows, &columns(&rows, None), Some(judge)).unwrap();
/// # let evidence = Evidence::Lists(lists.into_iter().map(Into::into).collect());
/// let mut state = State::new(Weights::parse("w.txt", "lm 0\ntm 1").unwrap());
/// state.batch.segments = vec![SegmentId(0)];
/// let perceptron = OneBest::new(metric, Update::Local, None);
/// perceptron.learn(&evidence, &mut state, &Fleet::ALONE, Progress::NONE).unwrap();
/// assert_eq!(state.weights.values(), [4.0, -1.0]); // w += h(surrogate) − h(guess) = (−2 + 6, −3 + 1)
/// ```
#[derive(Debug, Clone)]
pub struct OneBest {
    /// Metric to tune for; its sentence score chooses surrogates and gives MIRA's loss L.
    pub metric: Metric,
    /// Smoothing of sentence BLEU.
    pub plus_one: SentenceSmoothing,
    /// Surrogate of a segment whose reference is not reachable.
    pub update: Update,
    /// Whether each update (for MIRA its loss L) is multiplied by the sentence score of the target, from 0 to 1
    /// (Arun and Koehn 2007, eq. 3–4).
    pub weighted: bool,
    /// C: maximum step size τ of MIRA, above 0 or ∞; `None` for the perceptron, whose step size is 1.
    pub passive: Option<f64>,
    /// Whether a reachable reference is the target instead of the surrogate.
    pub references: bool,
    /// Whether the learned weights are the mean over all visits, not the last ones.
    pub average: bool,
}

impl OneBest {
    /// Perceptron (`passive` is `None`) or MIRA as in Arun and Koehn (2007): averaged, not weighted,
    /// reachable references are targets.
    pub fn new(metric: Metric, update: Update, passive: Option<f64>) -> Self {
        let plus_one = SentenceSmoothing::default();
        OneBest { metric, plus_one, update, weighted: false, passive, references: true, average: true }
    }

    /// Returns the target of an update: the reachable reference, or the surrogate, which is stored in `state`
    /// when it changes. `at` is the segment's index in the batch, `gain` the sentence scores of the list.
    fn target(
        &self,
        list: &Arc<Candidates>,
        gain: &[f64],
        scores: &[f64],
        at: usize,
        state: &mut State,
    ) -> Arc<Candidates> {
        let segment = state.batch.segments[at].0;
        if let Some(Some(reference)) = state.batch.references.get(at) {
            return reference.clone();
        }
        let better = |i: usize, j: usize| gain[i] > gain[j] || (gain[i] == gain[j] && scores[i] > scores[j]);
        let kept = state.surrogates.get(&segment);
        let new = match self.update {
            Update::MaxBleu if kept.is_some() => argmax(scores),
            _ => (1..list.k).fold(0, |best, i| if better(i, best) { i } else { best }),
        };
        let known = kept.map(|kept| gains_of(kept, &self.metric, self.plus_one)[0]);
        match (kept, known) {
            (Some(kept), Some(known)) if known >= gain[new] && self.update == Update::MaxBleu => kept.clone(),
            (Some(kept), Some(known)) if known > gain[new] => kept.clone(),
            _ => {
                let new = Arc::new(list.only(new));
                state.surrogates.insert(segment, new.clone());
                new
            }
        }
    }
}

impl Learner for OneBest {
    fn wants_references(&self) -> bool {
        self.references
    }

    fn wants_metric_best(&self) -> bool {
        self.update == Update::MaxBleu
    }

    fn averages(&self) -> bool {
        self.average
    }

    fn learn(&self, evidence: &Evidence, state: &mut State, _: &Fleet<'_>, _: Progress<'_>) -> Result<Note> {
        let lists = evidence.lists();
        let mut dense = Vec::new();
        for (at, list) in lists.iter().enumerate() {
            state.pass.visits += 1;
            if list.k == 0 {
                continue;
            }
            state.weights.gather(&list.columns, &mut dense);
            let mut scores = vec![0.0; list.k];
            list.scores(&dense, &state.weights, &mut scores);
            let gain = gains_of(list, &self.metric, self.plus_one);
            let guess = argmax(&scores);
            let target = self.target(list, &gain, &scores, at, state);
            add(&mut state.pass.aimed, target.stats_of(target.class[0]));
            if target.text(0) == list.text(guess) {
                continue;
            }
            let worth = gains_of(&target, &self.metric, self.plus_one)[0];
            let difference = difference((&target, 0), (list, guess), &mut state.weights)?;
            let weight = if self.weighted { worth } else { 1.0 };
            let step = match self.passive {
                None => weight,
                Some(c) => {
                    let square: f64 = difference.iter().map(|d| d.1 * d.1).sum();
                    let values = state.weights.values();
                    let margin: f64 = difference.iter().map(|&(p, d)| values[p as usize] * d).sum();
                    let loss = (worth - gain[guess]) * weight;
                    if square > 0.0 { ((loss - margin) / square).clamp(0.0, c) } else { 0.0 }
                }
            };
            if step > 0.0 {
                state.step(step, &difference);
            }
        }
        Ok(None)
    }
}

/// Returns Δ = h(better) − h(worse) as position in the weights and value, in order of position. Features
/// without a weight are added to `weights`; fails if two names share one key.
fn difference(
    better: (&Candidates, usize),
    worse: (&Candidates, usize),
    weights: &mut Weights,
) -> Result<Vec<(u32, f64)>> {
    let mut all: Vec<(FeatureKey, f64, Option<&str>)> = Vec::new();
    for ((list, i), sign) in [(better, 1.0), (worse, -1.0)] {
        for (key, value) in list.features(i) {
            let place = if list.names.is_empty() { None } else { list.local.position(key) };
            all.push((key, sign * value, place.map(|p| list.names[p].as_str())));
        }
    }
    all.sort_by_key(|d| d.0);
    all.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
    let mut out = Vec::with_capacity(all.len());
    for (key, value, name) in all.into_iter().filter(|d| d.1 != 0.0) {
        let place = match name {
            Some(name) => Some(weights.place(key, name)?),
            None => weights.position(key).map(|p| p as u32),
        };
        out.extend(place.map(|p| (p, value)));
    }
    // Sorted by position, so that sums are the same after the run is resumed.
    out.sort_unstable_by_key(|d| d.0);
    Ok(out)
}

#[cfg(test)]
mod tests;
