//! What an epoch hands to the next.

use crate::List;
use luthier_core::{SegmentId, Weights};
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

/// Everything that a run carries from epoch to epoch; written beside the weights.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct State {
    /// The current weights.
    pub weights: Weights,
    /// How many epochs have been learned from.
    pub epoch: u32,
    /// What learners that go from batch to batch keep.
    pub online: Online,
}

/// What is kept from batch to batch.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Online {
    /// The segments of the evidence.
    pub batch: Vec<SegmentId>,
    /// The references as the model makes them, by place in the batch, where they were asked for and can be made.
    pub references: Vec<Option<Arc<List>>>,
    /// Batches of this epoch, and which of them this is, from 0 on.
    pub batches: u32,
    /// See `batches`.
    pub at: u32,
    /// What is aimed at, by segment, as long as nothing better is found: one candidate each.
    pub surrogates: BTreeMap<u32, Arc<List>>,
    /// Summed statistics of what was aimed at in this epoch.
    pub aimed: Vec<f64>,
    /// Segments visited in this epoch.
    pub visits: u64,
    /// Σ (t − 1)·Δₜ over the visits t of this epoch, by place: the mean of the weights after each visit is what they are
    /// now, less this over the number of visits.
    pub lag: Vec<f64>,
    /// Sum of the means of all epochs so far, by place.
    pub means: Vec<f64>,
}

impl State {
    /// From these weights.
    pub fn new(weights: Weights) -> Self {
        State { weights, ..State::default() }
    }

    /// What has been learned: the mean over all visits if the learner asks for it, else the current weights.
    pub fn answer(&self) -> Cow<'_, Weights> {
        if self.online.means.is_empty() || self.epoch == 0 {
            return Cow::Borrowed(&self.weights);
        }
        let mut means = self.online.means.clone();
        means.resize(self.weights.len(), 0.0);
        let epochs = f64::from(self.epoch);
        Cow::Owned(self.weights.with_values(means.into_iter().map(|m| m / epochs).collect()))
    }

    /// w += a·Δ at a visit, by place, remembering it for the mean.
    pub fn step(&mut self, a: f64, difference: &[(u32, f64)]) {
        let online = &mut self.online;
        online.lag.resize(self.weights.len().max(online.lag.len()), 0.0);
        let before = (online.visits - 1) as f64;
        let values = self.weights.values_mut();
        for &(place, d) in difference {
            values[place as usize] += a * d;
            online.lag[place as usize] += before * a * d;
        }
    }
}
