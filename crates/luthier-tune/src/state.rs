//! What an epoch hands to the next, a batch to the next, and what a learner sees of the batch at hand.

use crate::List;
use luthier_core::{SegmentId, Weights};
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

/// The state of a run: what is checkpointed after every epoch, and what lives only within an epoch or a batch.
///
/// ```
/// use luthier_tune::State;
/// let mut state = State::new(luthier_core::Weights::parse("w.txt", "lm 1\n").unwrap());
/// state.pass.visits = 1;
/// state.step(0.5, &[(0, 2.0)]); // lm += 0.5 · 2
/// assert_eq!(state.answer().values(), [2.0]);
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct State {
    /// The current weights.
    pub weights: Weights,
    /// Number of epochs that have been learned from.
    pub epoch: u32,
    /// Targets of online learning by segment, one candidate each, kept until a better one is found.
    pub surrogates: BTreeMap<u32, Arc<List>>,
    /// Sum over all epochs of the mean weights over their visits, by place; empty unless a learner averages.
    pub means: Vec<f64>,
    /// What lives for one epoch of online learning.
    #[serde(skip)]
    pub pass: Pass,
    /// The batch at hand.
    #[serde(skip)]
    pub batch: Batch,
}

/// What online learning keeps for one epoch.
#[derive(Debug, Clone, Default)]
pub struct Pass {
    /// Number of batches in the epoch.
    pub batches: u32,
    /// Number of segments visited so far.
    pub visits: u64,
    /// Summed statistics of the targets so far.
    pub aimed: Vec<f64>,
    /// Σ (t − 1)·Δₜ over the visits t of the epoch, by place: the mean of the weights after each visit is the current
    /// weights less this sum over the number of visits.
    pub lag: Vec<f64>,
}

/// The batch that a learner is shown.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// Number of the batch in its epoch, from 0.
    pub number: u32,
    /// The segments of the evidence.
    pub segments: Vec<SegmentId>,
    /// Derivations of the references, by place in the batch, where they were asked for and are reachable.
    pub references: Vec<Option<Arc<List>>>,
}

impl State {
    /// The state of a run that begins with these weights.
    pub fn new(weights: Weights) -> Self {
        State { weights, ..State::default() }
    }

    /// The weights learned so far: the mean over all visits if the learner averages, else the current weights.
    pub fn answer(&self) -> Cow<'_, Weights> {
        if self.means.is_empty() || self.epoch == 0 {
            return Cow::Borrowed(&self.weights);
        }
        let mut means = self.means.clone();
        means.resize(self.weights.len(), 0.0);
        let epochs = f64::from(self.epoch);
        Cow::Owned(self.weights.with_values(means.into_iter().map(|m| m / epochs).collect()))
    }

    /// w += a·Δ at a visit, by place, remembered for the mean over visits.
    pub fn step(&mut self, a: f64, difference: &[(u32, f64)]) {
        let pass = &mut self.pass;
        pass.lag.resize(self.weights.len().max(pass.lag.len()), 0.0);
        let before = (pass.visits - 1) as f64;
        let values = self.weights.values_mut();
        for &(place, d) in difference {
            values[place as usize] += a * d;
            pass.lag[place as usize] += before * a * d;
        }
    }
}
