//! Constraints on learned weights, around any learner: non-negative weights and standardised features.

use super::{Learner, Note};
use crate::{Candidates, Evidence, Fleet, State, mert::Certificate};
use luthier_core::{FeatureKey, Progress, Result, Weights};
use std::sync::Arc;

/// Features whose weights must not be negative.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Nonnegative {
    /// None.
    #[default]
    None,
    /// All features.
    All,
    /// The features with these keys.
    Some(Vec<FeatureKey>),
}

impl Nonnegative {
    /// Returns whether the weight of a feature must not be negative.
    pub fn contains(&self, key: FeatureKey) -> bool {
        match self {
            Nonnegative::None => false,
            Nonnegative::All => true,
            Nonnegative::Some(keys) => keys.contains(&key),
        }
    }

    /// Returns for every weight whether it must not be negative.
    pub(crate) fn mask(&self, weights: &Weights) -> Vec<bool> {
        weights.iter().map(|(name, _)| self.contains(FeatureKey::of(name))).collect()
    }
}

/// A learner whose weights keep their constraints.
///
/// - Negative weights of non-negative features are set to 0 after every call, that is after every batch of online
///   learning: a projection of the step.
/// - With `standardize`, the inner learner sees dense features divided by [`State::spread`], and weights multiplied by it:
///   regularisers, steps and random points treat features of any scale alike. State and weights outside are those of raw
///   features.
pub(crate) struct Shaped {
    pub(crate) inner: Box<dyn Learner>,
    pub(crate) nonnegative: Nonnegative,
    pub(crate) standardize: bool,
}

impl Shaped {
    /// Sets negative weights of non-negative features to 0, and corrects the sums that mean weights are computed from.
    fn project(&self, state: &mut State) {
        if self.nonnegative == Nonnegative::None {
            return;
        }
        let mask = self.nonnegative.mask(&state.weights);
        let wrong = |(i, w): (usize, &f64)| (mask[i] && *w < 0.0).then_some((i as u32, -w));
        let steps: Vec<(u32, f64)> = state.weights.values().iter().enumerate().filter_map(wrong).collect();
        if state.pass.visits > 0 {
            state.step(1.0, &steps);
        }
        for (place, _) in steps {
            state.weights.values_mut()[place as usize] = 0.0;
        }
    }
}

impl Learner for Shaped {
    fn prepare(&self, weights: &mut Weights) {
        self.inner.prepare(weights);
        let mask = self.nonnegative.mask(weights);
        let kept = |(w, positive): (&f64, &bool)| if *positive { w.max(0.0) } else { *w };
        let kept: Vec<f64> = weights.values().iter().zip(&mask).map(kept).collect();
        weights.replace(&kept);
    }

    fn wants_references(&self) -> bool {
        self.inner.wants_references()
    }

    fn wants_metric_best(&self) -> bool {
        self.inner.wants_metric_best()
    }

    fn wants_spread(&self) -> bool {
        self.standardize
    }

    fn averages(&self) -> bool {
        self.inner.averages()
    }

    fn normalizes(&self) -> bool {
        self.inner.normalizes()
    }

    fn learn(
        &self,
        evidence: &Evidence,
        state: &mut State,
        fleet: &Fleet<'_>,
        progress: Progress<'_>,
    ) -> Result<Note> {
        let lists = evidence.lists();
        if !self.standardize || lists.is_empty() {
            let note = self.inner.learn(evidence, state, fleet, progress)?;
            self.project(state);
            return Ok(note);
        }
        let by = |key: FeatureKey, state: &State| state.spread.get(&key).copied().unwrap_or(1.0);
        let columns: Vec<f64> = lists[0].columns.keys().iter().map(|&k| 1.0 / by(k, state)).collect();
        let scaled = Evidence::Lists(lists.iter().map(|l| Arc::new(l.scaled(&columns))).collect());
        let weights: Vec<f64> =
            state.weights.iter().map(|(name, _)| by(FeatureKey::of(name), state)).collect();
        state.rescale(&weights, &columns);
        let note = self.inner.learn(&scaled, state, fleet, progress);
        let grown: Vec<f64> =
            state.weights.iter().map(|(name, _)| 1.0 / by(FeatureKey::of(name), state)).collect();
        let back: Vec<f64> = columns.iter().map(|c| 1.0 / c).collect();
        state.rescale(&grown, &back);
        let note = note?;
        self.project(state);
        if self.inner.normalizes() && state.weights.l1() > 0.0 {
            state.weights.scale(1.0 / state.weights.l1());
        }
        Ok(note)
    }

    fn certify(
        &self,
        lists: &[Arc<Candidates>],
        state: &mut State,
        fleet: &Fleet<'_>,
        progress: Progress<'_>,
    ) -> Result<Option<Certificate>> {
        self.inner.certify(lists, state, fleet, progress)
    }
}
