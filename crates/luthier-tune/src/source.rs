//! Where candidates come from.

use crate::{List, Packed};
use luthier_core::{FeatureKey, Local, Names, Result, SegmentId, Weights};
use std::sync::Arc;

/// What a learner learns from, for each segment asked for, in that order.
#[derive(Debug, Clone)]
pub enum Evidence {
    /// Lists.
    Lists(Vec<Arc<List>>),
    /// Forests.
    Forests(Packed),
}

impl Evidence {
    /// Nothing yet.
    pub const NOTHING: Evidence = Evidence::Lists(Vec::new());

    /// The lists; none of forests.
    pub fn lists(&self) -> &[Arc<List>] {
        match self {
            Evidence::Lists(lists) => lists,
            Evidence::Forests(_) => &[],
        }
    }

    /// The lists; none of forests.
    pub fn into_lists(self) -> Vec<Arc<List>> {
        match self {
            Evidence::Lists(lists) => lists,
            Evidence::Forests(_) => Vec::new(),
        }
    }

    /// Candidates of lists, edges of forests.
    pub fn size(&self) -> usize {
        match self {
            Evidence::Lists(lists) => lists.iter().map(|l| l.k).sum(),
            Evidence::Forests(packed) => packed.edges(),
        }
    }
}

/// Which candidates are wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Goal {
    /// Those that the model likes best.
    Model,
    /// The one that the metric likes best, of all that can be made, or nothing if the source cannot search for it.
    Metric,
    /// The reference itself, as the model would best make it; nothing if it cannot.
    Reference,
}

/// A source of candidates. Laws: the same question gets the same answer; a fixed source answers the same
/// whatever the weights; all lists of an answer have the same columns, and those of later answers have no fewer.
pub trait Source: Sync {
    /// Number of segments.
    fn segments(&self) -> u32;
    /// Candidates of some segments under some weights, judged. `&self`: several shards ask at once. Goals other than
    /// [`Goal::Model`] are answered with lists of one candidate or none.
    fn candidates(&self, batch: &[SegmentId], weights: &Weights, goal: Goal) -> Result<Evidence>;
    /// The name behind a key that has occurred in an answer.
    fn name(&self, key: FeatureKey) -> String;
    /// Told before the first question: how many epochs have been learned from, and the columns of their lists.
    fn go_on(&self, _epoch: u32, _columns: Option<&Arc<Local>>) {}
    /// Whether it answers [`Goal::Model`] with forests.
    fn has_forests(&self) -> bool {
        false
    }
    /// Whether weights do not change what it returns: then there is one pass and no interpolation.
    fn is_fixed(&self) -> bool;
}

/// Lists read from files.
#[derive(Debug, Clone)]
pub struct FixedLists {
    lists: Vec<Arc<List>>,
    names: Names,
}

impl FixedLists {
    /// Wraps judged lists with the names of their features.
    pub fn new(lists: Vec<List>, names: Names) -> Self {
        FixedLists { lists: lists.into_iter().map(Arc::new).collect(), names }
    }
}

impl Source for FixedLists {
    fn segments(&self) -> u32 {
        self.lists.len() as u32
    }

    fn candidates(&self, batch: &[SegmentId], _: &Weights, goal: Goal) -> Result<Evidence> {
        let list = |s: &SegmentId| match goal {
            Goal::Model => self.lists[s.0 as usize].clone(),
            // What is best is in the list anyway.
            Goal::Metric | Goal::Reference => Arc::new(List::empty(&self.lists[s.0 as usize].columns)),
        };
        Ok(Evidence::Lists(batch.iter().map(list).collect()))
    }

    fn name(&self, key: FeatureKey) -> String {
        self.names.get(key).unwrap_or_default().to_owned()
    }

    fn is_fixed(&self) -> bool {
        true
    }
}
