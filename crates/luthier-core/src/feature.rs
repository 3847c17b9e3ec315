//! Ids as types: a feature's key, a segment's number, a shard's number.

use crate::Fingerprint;
use serde::{Deserialize, Serialize};

/// Fingerprint of a feature's canonical name: the same on every thread, process and resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FeatureKey(pub u64);

impl FeatureKey {
    /// The key of a name.
    pub fn of(name: &str) -> Self {
        FeatureKey(Fingerprint::default().bytes(name.as_bytes()).finish64())
    }
}

/// Number of a segment (a sentence to translate), from 0, as in n-best lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SegmentId(pub u32);

/// Number of a shard. Shards belong to the run, never to the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u32);

/// The features that occur in one segment, sorted by key. Inner loops see positions in it, and weights are
/// gathered once per segment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Local {
    keys: Vec<FeatureKey>,
}

impl Local {
    /// Takes keys in any order; duplicates become one.
    pub fn new(mut keys: Vec<FeatureKey>) -> Self {
        keys.sort_unstable();
        keys.dedup();
        keys.shrink_to_fit();
        Local { keys }
    }

    /// The keys in order.
    pub fn keys(&self) -> &[FeatureKey] {
        &self.keys
    }

    /// Position of a key.
    pub fn position(&self, key: FeatureKey) -> Option<usize> {
        self.keys.binary_search(&key).ok()
    }
}
