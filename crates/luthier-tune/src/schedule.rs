//! In which order things happen.

use serde::{Deserialize, Serialize};

/// How often to decode and learn, and when to stop.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Epochs at most. Batch learning from a fixed source has one.
    pub iterations: u32,
    /// Whether candidates of earlier epochs are kept (batch learning) or dropped (online).
    pub accumulate: bool,
    /// Stop when no weight of the vector scaled to Σ|w| = 1 moves by more than this.
    pub min_change: f64,
    /// Ψ: how much of the newly learned weights is taken, the rest stays as it was. Not for a fixed source.
    pub psi: f64,
    /// The epoch that begins with an empty pool. Not for a fixed source.
    pub reset_at: Option<u32>,
    /// Stop when so many epochs in a row have not brought a better score: of the selection set, if there is one.
    pub patience: Option<u32>,
    /// From batch to batch, not from everything at once.
    pub online: Option<Batches>,
}

/// How online learning goes.
#[derive(Debug, Clone, PartialEq)]
pub struct Batches {
    /// Segments that are decoded with the same weights.
    pub size: usize,
    /// Parts of the data that learn by themselves for an epoch, each from the same weights: segment i is in part i modulo
    /// this.
    pub shards: u32,
    /// What becomes of their weights.
    pub mixing: Mixing,
    /// Whether segments are visited in random order.
    pub shuffle: bool,
    /// Seed of that order.
    pub seed: u64,
}

/// How weights of shards become one (`McDonald` et al. 2010; Watanabe 2012, §4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Mixing {
    /// Their mean.
    Average,
    /// A point on the line from the weights of the epoch before to their mean, and beyond: the one that scores best on the
    /// lists of the epoch.
    LineSearch,
}

impl Default for Schedule {
    fn default() -> Self {
        Schedule {
            iterations: 25,
            accumulate: true,
            min_change: 1e-5,
            psi: 1.0,
            reset_at: None,
            patience: None,
            online: None,
        }
    }
}
