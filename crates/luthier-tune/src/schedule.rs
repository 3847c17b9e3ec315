//! Schedule of a run: iterations, batches and shards, interpolation, stopping rule.

use serde::{Deserialize, Serialize};

/// Iterations, pool, interpolation and stopping rule of a run; with `online`, also its batches and shards.
///
/// An iteration of batch learning decodes all segments, merges the candidates with the pool, learns new weights w′
/// and interpolates w ← Ψw′ + (1 − Ψ)w. Batch learning stops when a decode brings no new candidate, when no weight
/// changes by more than `min_change`, after `iterations`, or by `patience`; with a fixed source after one
/// optimisation. Online learning stops after `iterations` epochs or by `patience`.
///
/// ```
/// use luthier_tune::{Batches, Mixing, Schedule};
/// let batch = Schedule { psi: 0.1, reset_at: Some(10), ..Schedule::default() }; // PRO
/// assert_eq!((batch.iterations, batch.accumulate), (25, true));
/// let batches =
///     Batches { size: 16, shards: 4, mixing: Mixing::LineSearch, max_rho: 2.0, select_share: 0.0, shuffle: true, seed: 1 };
/// let online = Schedule { iterations: 10, accumulate: false, online: Some(batches), ..Schedule::default() };
/// assert!(online.online.is_some());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Maximum number of iterations or epochs, at least 1. Batch learning from a fixed source takes one.
    pub iterations: u32,
    /// Whether candidates of earlier iterations stay in the pool, as in batch learning from lists, or are dropped.
    pub accumulate: bool,
    /// Convergence threshold: batch learning stops when no weight of the L1-normalised vector changes by more
    /// than this.
    pub min_change: f64,
    /// How newly learned weights are interpolated with the current ones. Ignored for a fixed source.
    pub interpolate: Interpolate,
    /// Ψ in (0, 1] of [`Interpolate::Psi`]; 1 takes the new weights. Ignored for a fixed source.
    pub psi: f64,
    /// Iteration that starts with an empty pool; `None` for never. Ignored for a fixed source.
    pub reset_at: Option<u32>,
    /// Stop after this many iterations in a row without a better score, on the selection set if there is one;
    /// `None` for no such limit.
    pub patience: Option<u32>,
    /// Batches and shards of online learning; `None` for batch learning from the whole pool.
    pub online: Option<Batches>,
    /// Whether the initial weights are no answer even if no learned weights score higher.
    pub learned_only: bool,
}

/// Batches, shards and mixing of online learning (Watanabe 2012, Algorithms 2 and 3).
#[derive(Debug, Clone, PartialEq)]
pub struct Batches {
    /// Number of segments per batch, which are decoded with the same weights; at least 1.
    pub size: usize,
    /// Number S of shards, which learn independently for one epoch from the same weights; segment i is in
    /// shard i mod S. Affects results, unlike the number of threads.
    pub shards: u32,
    /// How the weights of the shards are combined after each epoch.
    pub mixing: Mixing,
    /// Upper bound of ρ in line-search mixing, at least 1, which is the mean of the shards; the lower bound is −1.
    pub max_rho: f64,
    /// Share of the segments that are held out to select the epoch, if a decoder is in the loop, there is no selection
    /// set and there are at least 300 segments; 0 for none.
    pub select_share: f64,
    /// Whether each shard visits its segments in random order, newly drawn in every epoch.
    pub shuffle: bool,
    /// Seed of the random order of segments, and of the choice of segments that are held out.
    pub seed: u64,
}

/// How the weights w′ that batch learning finds are interpolated with the previous ones: w ← Ψw′ + (1 − Ψ)w.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Interpolate {
    /// With a fixed Ψ.
    Psi,
    /// With the Ψ from 0 to 1 whose weights score best on the pool, by an exact line search.
    LineSearch,
}

/// How the weights of shards are mixed after an epoch (`McDonald` et al. 2010; Watanabe 2012, §4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Mixing {
    /// Mean of the shards' weights.
    Average,
    /// The best point on the line from the previous weights through the mean, by an exact line search on the
    /// lists of the epoch.
    LineSearch,
}

impl Default for Schedule {
    fn default() -> Self {
        Schedule {
            iterations: 25,
            accumulate: true,
            min_change: 1e-5,
            interpolate: Interpolate::Psi,
            psi: 1.0,
            reset_at: None,
            patience: None,
            online: None,
            learned_only: false,
        }
    }
}
