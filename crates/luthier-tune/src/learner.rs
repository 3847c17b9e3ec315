//! Learners: algorithms that compute new weights from candidates.

mod hope_fear;
pub(crate) mod line_search;
mod minimize;
mod one_best;
pub(crate) mod rank;
mod shape;

pub use hope_fear::HopeFear;
pub use minimize::{L1, Loss, Minimize};
pub use one_best::{OneBest, Update};
pub use shape::Nonnegative;
pub(crate) use shape::Shaped;

use crate::{Candidates, Evidence, Fleet, State, mert::Certificate};
use luthier_core::{Progress, Result, Weights};
use std::sync::Arc;

/// Message of a learner to the user, such as that its minimiser did not converge; `None` for nothing to say.
pub type Note = Option<String>;

/// A learning algorithm: one call computes new weights from the current pool or batch.
///
/// Law: the same evidence and state give the same new state, bit for bit, on any number of threads and
/// processes.
pub trait Learner: Sync {
    /// Moves weights into the feasible set, such as within bounds. Called before the first decode, again once all
    /// features are known, and after weights have been mixed.
    fn prepare(&self, _weights: &mut Weights) {}
    /// Returns whether the learner uses derivations of reachable references as targets, which the loop then puts
    /// into [`Batch::references`](crate::Batch::references).
    fn wants_references(&self) -> bool {
        false
    }
    /// Returns whether the learner uses the reachable candidate with the highest metric score as target, which
    /// the loop then puts into [`State::surrogates`].
    fn wants_metric_best(&self) -> bool {
        false
    }
    /// Returns whether the learner uses [`State::spread`], which the loop then computes at the first iteration.
    fn wants_spread(&self) -> bool {
        false
    }
    /// Returns whether the learned weights are the mean over all visits, not the last ones.
    fn averages(&self) -> bool {
        false
    }
    /// Returns whether learned weights are L1-normalised.
    fn normalizes(&self) -> bool {
        false
    }
    /// Updates `state` from the evidence and returns a note for the user. Fails with an error of kind
    /// `Interrupted` if `progress` answers *stop*.
    fn learn(
        &self,
        evidence: &Evidence,
        state: &mut State,
        fleet: &Fleet<'_>,
        progress: Progress<'_>,
    ) -> Result<Note>;
    /// Computes how high any weights score on fixed lists that have been learned from, if the settings ask for it, and moves
    /// `state` to better weights if there are any. Fails if nothing is known about the metric, and with an error of kind
    /// `Interrupted` if `progress` answers *stop*.
    fn certify(
        &self,
        _lists: &[Arc<Candidates>],
        _state: &mut State,
        _fleet: &Fleet<'_>,
        _progress: Progress<'_>,
    ) -> Result<Option<Certificate>> {
        Ok(None)
    }
}

/// Adds the sparse features of a list that carries feature names to the weights. Fails if two names share one key.
pub(crate) fn grow(weights: &mut Weights, list: &Candidates) -> Result<()> {
    let mut named = list.local.keys().iter().zip(&list.names);
    named.try_for_each(|(&key, name)| weights.place(key, name).map(drop))
}
