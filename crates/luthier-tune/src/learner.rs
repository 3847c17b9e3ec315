//! From evidence to new weights.

mod hope_fear;
mod line_search;
mod minimize;

pub use hope_fear::HopeFear;
pub use line_search::{Limits, LineSearch, Progress};
pub use minimize::{Descent, Loss, Minimize};

use crate::{Evidence, Fleet, State};
use luthier_core::{Result, Weights};

/// A word to the user about what happened, if there is one.
pub type Note = Option<String>;

/// One step of learning. Law: the same evidence and state give the same new state, to the bit, on any number
/// of threads and processes.
pub trait Learner {
    /// Puts initial weights where they may be. Called before the first decode and once features are known.
    fn prepare(&self, _weights: &mut Weights) {}
    /// Learns.
    fn learn(&self, evidence: &Evidence, state: &mut State, fleet: &Fleet<'_>) -> Result<Note>;
}
