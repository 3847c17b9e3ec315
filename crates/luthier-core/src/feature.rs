//! Typed ids: key of a feature, number of a segment, number of a shard.

use crate::Fingerprint;
use serde::{Deserialize, Serialize};

/// 64-bit fingerprint of a feature's canonical name: the same on every thread, process and resumed run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FeatureKey(pub u64);

impl FeatureKey {
    /// Returns the key of a feature name.
    pub fn of(name: &str) -> Self {
        FeatureKey(Fingerprint::default().bytes(name.as_bytes()).finish64())
    }
}

/// Number of a segment (a sentence to translate), from 0, as in n-best lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SegmentId(pub u32);

/// Number of a shard, from 0. Shards belong to the run, never to the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u32);

/// Sorted set of the features that occur in one segment. Inner loops use positions in the set, and weights
/// are gathered once per segment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Local {
    keys: Vec<FeatureKey>,
}

impl Local {
    /// Builds a set of keys given in any order; duplicates become one.
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

    /// Returns the position of a key among the sorted keys; `None` if the set does not hold it. O(log n).
    pub fn position(&self, key: FeatureKey) -> Option<usize> {
        self.keys.binary_search(&key).ok()
    }
}
