//! What an epoch hands to the next.

use luthier_core::Weights;

/// Everything that a run carries from epoch to epoch; written beside the weights.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    /// The current weights.
    pub weights: Weights,
    /// How many epochs have been learned from.
    pub epoch: u32,
}
