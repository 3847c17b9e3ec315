//! From evidence to new weights.

mod hope_fear;
mod line_search;
mod minimize;
mod one_best;
mod rank;

pub use hope_fear::HopeFear;
pub use line_search::{Limits, LineSearch};
pub use minimize::{Loss, Minimize};
pub use one_best::{OneBest, Update};
pub use rank::{Bound, Decay, Linearize, Norm, Rank, RankLoss, RankMargin, Rate, Rule};

use crate::{Evidence, Fleet, List, State};
use luthier_core::{Progress, Result, Weights};

/// A word to the user about what happened, if there is one.
pub type Note = Option<String>;

/// One step of learning. Law: the same evidence and state give the same new state, to the bit, on any number
/// of threads and processes.
pub trait Learner: Sync {
    /// Puts initial weights where they may be. Called before the first decode and once features are known.
    fn prepare(&self, _weights: &mut Weights) {}
    /// Whether it wants to know how the model would make the references.
    fn wants_references(&self) -> bool {
        false
    }
    /// Whether it wants to aim at what the metric likes best of all that can be made.
    fn wants_metric_best(&self) -> bool {
        false
    }
    /// Whether its answer is the mean over all visits.
    fn averages(&self) -> bool {
        false
    }
    /// Learns.
    /// Fails with an error of kind `Interrupted` if `progress` answers *stop*.
    fn learn(
        &self,
        evidence: &Evidence,
        state: &mut State,
        fleet: &Fleet<'_>,
        progress: Progress<'_>,
    ) -> Result<Note>;
}

/// Gives all sparse features of a list that brings their names along a place.
pub(crate) fn grow(weights: &mut Weights, list: &List) -> Result<()> {
    let mut named = list.local.keys().iter().zip(&list.names);
    named.try_for_each(|(&key, name)| weights.place(key, name).map(drop))
}
