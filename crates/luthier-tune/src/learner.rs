//! From evidence to new weights.

mod line_search;

pub use line_search::{Limits, LineSearch, Progress};

use crate::{Evidence, Fleet, State};
use luthier_core::Result;

/// One step of learning. Law: the same evidence and state give the same new state, to the bit, on any number
/// of threads and processes.
pub trait Learner {
    /// Learns.
    fn learn(&self, evidence: &Evidence, state: &mut State, fleet: &Fleet<'_>) -> Result<()>;
}
