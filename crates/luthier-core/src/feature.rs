//! Typed identifiers of features, segments and shards, and the sorted feature set of a segment.

use crate::Fingerprint;
use serde::{Deserialize, Serialize};

/// Key of a feature: the 64-bit fingerprint of its name, the same on every thread, in every process and in
/// every resumed run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FeatureKey(pub u64);

impl FeatureKey {
    /// Returns the key of a feature name.
    pub fn of(name: &str) -> Self {
        FeatureKey(Fingerprint::default().bytes(name.as_bytes()).finish64())
    }
}

/// Number of a segment (a source sentence), from 0, as in n-best lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SegmentId(pub u32);

/// Number of a shard of the training data, from 0. The number of shards is a setting of the run and does not
/// depend on threads or machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u32);

/// Sorted set of the keys of the features that occur in one segment. Inner loops index features by their
/// position in the set, and weights are gathered once per segment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Local {
    keys: Vec<FeatureKey>,
}

impl Local {
    /// Builds a set from keys in any order; duplicates are removed.
    pub fn new(mut keys: Vec<FeatureKey>) -> Self {
        keys.sort_unstable();
        keys.dedup();
        keys.shrink_to_fit();
        Local { keys }
    }

    /// Returns the keys in ascending order.
    pub fn keys(&self) -> &[FeatureKey] {
        &self.keys
    }

    /// Returns the position of a key among the sorted keys, in O(log n); `None` if the set does not have it.
    pub fn position(&self, key: FeatureKey) -> Option<usize> {
        self.keys.binary_search(&key).ok()
    }
}
