//! Where candidates come from.

use crate::{List, Packed, Segment};
use luthier_core::{FeatureKey, Local, Names, Progress, Result, SegmentId, Weights};
use luthier_forest::Forest;
use luthier_metric::Prepared;
use serde::{Deserialize, Serialize};
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

    /// For another process.
    pub(crate) fn pack(self) -> Parcel {
        match self {
            Evidence::Lists(lists) => Parcel::Lists(lists),
            Evidence::Forests(packed) => {
                let forests = packed.segments.into_iter().map(|s| s.forests).collect();
                Parcel::Forests { columns: packed.columns, fixed: packed.fixed, forests }
            }
        }
    }

    /// What processes have said about `n` segments, each about every so many of them.
    pub(crate) fn unpack(parcels: Vec<Parcel>, n: u32, source: &dyn Source) -> Self {
        let mut lists = Vec::new();
        let mut packed: Option<Packed> = None;
        let mut forests = Vec::new();
        for parcel in parcels {
            match parcel {
                Parcel::Lists(some) => lists.push(some.into_iter()),
                Parcel::Forests { columns, fixed, forests: some } => {
                    packed.get_or_insert_with(|| Packed { columns, fixed, segments: Vec::new() });
                    forests.push(some.into_iter());
                }
            }
        }
        let Some(mut packed) = packed else {
            let processes = lists.len().max(1);
            let next = |s: u32| lists.get_mut(s as usize % processes)?.next();
            return Evidence::Lists((0..n).filter_map(next).collect());
        };
        let processes = forests.len().max(1);
        let next = |s: u32| {
            let forests = forests.get_mut(s as usize % processes)?.next()?;
            Some(Segment { forests, references: source.references(SegmentId(s))? })
        };
        packed.segments = (0..n).filter_map(next).collect();
        Evidence::Forests(packed)
    }

    /// Candidates of lists, edges of forests.
    pub fn size(&self) -> usize {
        match self {
            Evidence::Lists(lists) => lists.iter().map(|l| l.k).sum(),
            Evidence::Forests(packed) => packed.edges(),
        }
    }
}

/// Evidence on its way to another process, which has the references.
#[derive(Serialize, Deserialize)]
pub(crate) enum Parcel {
    Lists(Vec<Arc<List>>),
    Forests { columns: Arc<Local>, fixed: Arc<[(FeatureKey, f64)]>, forests: Vec<Vec<Arc<Forest<'static>>>> },
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

/// What kind of source candidates come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// Lists that weights do not change: there is one pass and no interpolation.
    Fixed,
    /// A decoder that can be asked for any segments, by any process, and answers with lists.
    Decoder,
    /// A decoder that can only be asked for all segments at once, and by one process: another program.
    Command,
    /// A decoder that answers [`Goal::Model`] with forests.
    Forests,
}

/// A source of candidates. Laws: the same question gets the same answer; a fixed source answers the same
/// whatever the weights; all lists of an answer have the same columns, and those of later answers have no fewer.
pub trait Source: Sync {
    /// Number of segments.
    fn segments(&self) -> u32;
    /// Candidates of some segments under some weights, judged. `&self`: several shards ask at once. Goals other than
    /// [`Goal::Model`] are answered with lists of one candidate or none.
    /// Fails with an error of kind `Interrupted` if `progress` answers *stop*.
    fn candidates(
        &self,
        batch: &[SegmentId],
        weights: &Weights,
        goal: Goal,
        progress: Progress<'_>,
    ) -> Result<Evidence>;
    /// The name behind a key that has occurred in an answer.
    fn name(&self, key: FeatureKey) -> String;
    /// What kind of source it is.
    fn kind(&self) -> SourceKind;
    /// Told before the first question: how many epochs have been learned from, and the columns of their lists.
    fn resume_at(&self, _epoch: u32, _columns: Option<&Arc<Local>>) {}
    /// Told names of features in an answer that another process has got.
    fn learn_names(&self, _names: &[String]) -> Result<()> {
        Ok(())
    }
    /// What a segment's forests are judged by; only asked of a source that has forests.
    fn references(&self, _segment: SegmentId) -> Option<Arc<Prepared>> {
        None
    }
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

    fn candidates(&self, batch: &[SegmentId], _: &Weights, goal: Goal, _: Progress<'_>) -> Result<Evidence> {
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

    fn kind(&self) -> SourceKind {
        SourceKind::Fixed
    }
}
