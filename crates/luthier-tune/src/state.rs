//! State of a run: weights, averages and targets that pass from epoch to epoch, and the current batch.

use crate::Candidates;
use luthier_core::{FeatureKey, SegmentId, Weights};
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

/// The state of a run: the part that is checkpointed after every epoch, and the part that exists only within an
/// epoch or a batch.
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
    /// Current weights of the learner, which the next batch is decoded with.
    pub weights: Weights,
    /// Number of epochs that have been learned from; 0 at the start.
    pub epoch: u32,
    /// Surrogates (targets) of online learning by segment, one candidate each, kept until a better one is
    /// found.
    pub surrogates: BTreeMap<u32, Arc<Candidates>>,
    /// Spread of each dense feature in the first iteration, for learners that standardise features; empty for others.
    #[serde(default)]
    pub spread: BTreeMap<FeatureKey, f64>,
    /// Weight of the L1 penalty that the last call of a learner has chosen; not checkpointed.
    #[serde(skip)]
    pub l1: Option<f64>,
    /// Sum over epochs of the mean weights over the visits of each epoch, by position in the weights; empty
    /// unless the learner averages.
    pub means: Vec<f64>,
    /// State of the current epoch of online learning; not checkpointed.
    #[serde(skip)]
    pub pass: Pass,
    /// Current batch of online learning; not checkpointed.
    #[serde(skip)]
    pub batch: Batch,
}

/// State of online learning within one epoch over a shard.
#[derive(Debug, Clone, Default)]
pub struct Pass {
    /// Number of batches in the epoch (of this shard).
    pub batches: u32,
    /// Number of segments visited in this epoch, the current one included.
    pub visits: u64,
    /// Metric statistics of the targets of this epoch, summed over visits.
    pub aimed: Vec<f64>,
    /// Lazy average: Σ (t − 1)·dₜ over the visits t of the epoch with weight changes dₜ, by position in the
    /// weights. The mean of the weights after each visit is the current weights minus this sum divided by
    /// `visits`.
    pub lag: Vec<f64>,
    /// Sum of the L1 penalties of the epoch's steps, each times its learning rate.
    pub penalty: f64,
    /// Sum of the changes of each weight by L1 penalties in this epoch, by position in the weights.
    pub received: Vec<f64>,
}

/// The batch of segments that a learner receives in online learning.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// Number of the batch in its epoch, from 0.
    pub number: u32,
    /// Numbers of the batch's segments, in the order of the evidence.
    pub segments: Vec<SegmentId>,
    /// Derivation of the reference of each segment of the batch, a list of one candidate; `None` where the
    /// reference is not reachable. Empty where the learner did not ask.
    pub references: Vec<Option<Arc<Candidates>>>,
}

impl State {
    /// Multiplies everything that is a weight by `weights`, by position, and the dense columns of saved candidates by
    /// `columns`.
    pub(crate) fn rescale(&mut self, weights: &[f64], columns: &[f64]) {
        let by = |values: &mut [f64]| values.iter_mut().zip(weights).for_each(|(w, s)| *w *= s);
        let mut values = self.weights.values().to_vec();
        by(&mut values);
        self.weights.replace(&values);
        by(&mut self.means);
        by(&mut self.pass.lag);
        by(&mut self.pass.received);
        let lists = self.surrogates.values_mut().chain(self.batch.references.iter_mut().flatten());
        lists.for_each(|list| *list = Arc::new(list.scaled(columns)));
    }

    /// Builds the state of a run that starts from some weights.
    pub fn new(weights: Weights) -> Self {
        State { weights, ..State::default() }
    }

    /// Returns the weights learned so far: the mean over all visits if the learner averages, else the current
    /// weights.
    pub fn answer(&self) -> Cow<'_, Weights> {
        if self.means.is_empty() || self.epoch == 0 {
            return Cow::Borrowed(&self.weights);
        }
        let mut means = self.means.clone();
        means.resize(self.weights.len(), 0.0);
        let epochs = f64::from(self.epoch);
        Cow::Owned(self.weights.with_values(means.into_iter().map(|m| m / epochs).collect()))
    }

    /// Takes the step w += a·Δ at the current visit and records it for the mean over visits. `difference` holds
    /// Δ as position in the weights and value; `pass.visits` must already count the current visit.
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
