//! Sources of candidates: fixed lists, decoders and external commands behind one trait.

use crate::{Candidates, ForestPool, SegmentForests, start::initial_weights};
use luthier_core::{FeatureKey, Local, Names, Progress, Result, SegmentId, Weights};
use luthier_forest::Forest;
use luthier_metric::{Metric, Prepared};
use serde::{Deserialize, Serialize};
use std::{path::Path, sync::Arc};

/// The candidates that a learner learns from, one entry per requested segment, in the order of the request.
///
/// ```
/// use luthier_core::Local;
/// use luthier_tune::{Evidence, Candidates};
/// use std::sync::Arc;
/// let empty = Arc::new(Candidates::empty(&Arc::new(Local::default())));
/// let evidence = Evidence::Lists(vec![empty]);
/// assert_eq!((evidence.lists().len(), evidence.size()), (1, 0));
/// assert_eq!(Evidence::NOTHING.lists().len(), 0);
/// ```
#[derive(Debug, Clone)]
pub enum Evidence {
    /// N-best lists, one per segment.
    Lists(Vec<Arc<Candidates>>),
    /// Forests (hypergraphs of derivations) of all segments.
    Forests(ForestPool),
}

impl Evidence {
    /// Evidence about no segment: an empty pool.
    pub const NOTHING: Evidence = Evidence::Lists(Vec::new());

    /// Returns the n-best lists, one per segment; empty if the evidence is forests.
    pub fn lists(&self) -> &[Arc<Candidates>] {
        match self {
            Evidence::Lists(lists) => lists,
            Evidence::Forests(_) => &[],
        }
    }

    /// Turns the evidence into its n-best lists, one per segment; empty if the evidence is forests.
    pub fn into_lists(self) -> Vec<Arc<Candidates>> {
        match self {
            Evidence::Lists(lists) => lists,
            Evidence::Forests(_) => Vec::new(),
        }
    }

    /// Converts the evidence to a form that can be sent to other processes, without references.
    pub(crate) fn pack(self) -> Parcel {
        match self {
            Evidence::Lists(lists) => Parcel::Lists(lists),
            Evidence::Forests(pool) => {
                let forests = pool.segments.into_iter().map(|s| s.forests).collect();
                Parcel::Forests { columns: pool.columns, fixed: pool.fixed, forests }
            }
        }
    }

    /// Combines the parcels of all processes to the evidence about `n` segments; process p has sent segments p,
    /// p + P, p + 2P and so on, for P processes.
    pub(crate) fn unpack(parcels: Vec<Parcel>, n: u32, source: &dyn Source) -> Self {
        let mut lists = Vec::new();
        let mut pool: Option<ForestPool> = None;
        let mut forests = Vec::new();
        for parcel in parcels {
            match parcel {
                Parcel::Lists(some) => lists.push(some.into_iter()),
                Parcel::Forests { columns, fixed, forests: some } => {
                    pool.get_or_insert_with(|| ForestPool { columns, fixed, segments: Vec::new() });
                    forests.push(some.into_iter());
                }
            }
        }
        let Some(mut pool) = pool else {
            let processes = lists.len().max(1);
            let next = |s: u32| lists.get_mut(s as usize % processes)?.next();
            return Evidence::Lists((0..n).filter_map(next).collect());
        };
        let processes = forests.len().max(1);
        let next = |s: u32| {
            let forests = forests.get_mut(s as usize % processes)?.next()?;
            Some(SegmentForests { forests, references: source.references(SegmentId(s))? })
        };
        pool.segments = (0..n).filter_map(next).collect();
        Evidence::Forests(pool)
    }

    /// Returns the number of candidates in all lists, or of edges in all forests.
    pub fn size(&self) -> usize {
        match self {
            Evidence::Lists(lists) => lists.iter().map(|l| l.k).sum(),
            Evidence::Forests(pool) => pool.edges(),
        }
    }
}

/// Evidence as sent to another process, which has the references.
#[derive(Serialize, Deserialize)]
pub(crate) enum Parcel {
    Lists(Vec<Arc<Candidates>>),
    Forests { columns: Arc<Local>, fixed: Arc<[(FeatureKey, f64)]>, forests: Vec<Vec<Arc<Forest<'static>>>> },
}

/// Objective of a source's search for candidates.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Goal {
    /// The candidates with the highest model score: an n-best list or a forest per segment.
    Model,
    /// The candidate with the highest metric score among all reachable ones; an empty list if the source
    /// cannot search for it.
    Metric,
    /// The derivation of the reference with the highest model score (forced decoding); an empty list if the
    /// reference is not reachable.
    Reference,
}

/// Kind of a [`Source`]: decides how the loop requests candidates and whether iterations help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// Lists that do not depend on the weights: batch learning takes one iteration, without interpolation.
    Fixed,
    /// A decoder in this process that returns n-best lists, for any segments and in any process of a job. The first
    /// candidate of a list is the decoder's output.
    Decoder,
    /// An external program that decodes all segments at once, run by the first process only.
    Command,
    /// A decoder in this process that returns forests for [`Goal::Model`].
    Forests,
}

/// A source of candidates: fixed lists, a decoder, or an external command.
///
/// Laws: the same request gives the same candidates; those of a source of kind [`SourceKind::Fixed`] do not depend
/// on the weights; the first candidate of a list from a source of kind [`SourceKind::Decoder`] is the decoder's output;
/// all lists of a response have the same dense columns, and lists of later responses have at least these.
pub trait Source: Sync {
    /// Returns the number of segments of the data set; segments are numbered from 0.
    fn segments(&self) -> u32;
    /// Returns the candidates of some segments under some weights, judged by the metric.
    ///
    /// For goals other than [`Goal::Model`], lists have at most one candidate. Several shards may call this at
    /// once. Fails if decoding fails, and with an error of kind `Interrupted` if `progress`
    /// answers *stop*.
    fn candidates(
        &self,
        batch: &[SegmentId],
        weights: &Weights,
        goal: Goal,
        progress: Progress<'_>,
    ) -> Result<Evidence>;
    /// Returns the name of the feature with a key that has occurred in a response.
    fn name(&self, key: FeatureKey) -> String;
    /// Returns the kind of the source.
    fn kind(&self) -> SourceKind;
    /// Called before the requests of a run with its directory, for sources that keep files there.
    fn enter(&self, _run: &Path) {}
    /// Called before the first request: `epoch` is the number of epochs that are complete, `columns` are the
    /// dense columns of their lists, if any.
    fn resume_at(&self, _epoch: u32, _columns: Option<&Arc<Local>>) {}
    /// Takes the names of features in a response that another process has received. Fails if two names share one
    /// key.
    fn learn_names(&self, _names: &[String]) -> Result<()> {
        Ok(())
    }
    /// Returns the prepared references of a segment, by which its forests are judged; `None` for sources without
    /// forests.
    fn references(&self, _segment: SegmentId) -> Option<Arc<Prepared>> {
        None
    }
}

/// Some segments of another source, numbered from 0. A segment may occur several times.
pub struct Subset<'a> {
    source: &'a dyn Source,
    segments: Vec<SegmentId>,
}

impl<'a> Subset<'a> {
    /// Makes a source of some segments of another source, in the given order.
    pub fn new(source: &'a dyn Source, segments: Vec<SegmentId>) -> Self {
        Subset { source, segments }
    }

    /// Returns the segments of the other source.
    pub fn ids(&self) -> Vec<SegmentId> {
        self.segments.clone()
    }

    /// Returns the entries of the segments, of one entry per segment of the other source.
    pub fn pick<T: Clone>(&self, all: &[T]) -> Vec<T> {
        self.segments.iter().filter_map(|s| all.get(s.0 as usize)).cloned().collect()
    }

    /// Returns initial weights for fixed lists, see [`FixedLists::initial_weights`], from these segments only.
    pub fn initial_weights(&self, metric: &Metric) -> Result<Weights> {
        let all: Vec<SegmentId> = (0..self.segments()).map(SegmentId).collect();
        let found = self.candidates(&all, &Weights::default(), Goal::Model, Progress::NONE)?;
        initial_weights(found.lists(), metric, &|key| self.name(key))
    }
}

impl Source for Subset<'_> {
    fn segments(&self) -> u32 {
        self.segments.len() as u32
    }

    fn candidates(
        &self,
        batch: &[SegmentId],
        weights: &Weights,
        goal: Goal,
        progress: Progress<'_>,
    ) -> Result<Evidence> {
        let batch: Vec<SegmentId> = batch.iter().map(|s| self.segments[s.0 as usize]).collect();
        let found = self.source.candidates(&batch, weights, goal, progress)?;
        if self.kind() != SourceKind::Command {
            return Ok(found);
        }
        // An external program decodes all segments, whatever is asked for.
        Ok(Evidence::Lists(batch.iter().map(|s| found.lists()[s.0 as usize].clone()).collect()))
    }

    fn enter(&self, run: &Path) {
        self.source.enter(run);
    }

    fn resume_at(&self, epoch: u32, columns: Option<&Arc<Local>>) {
        self.source.resume_at(epoch, columns);
    }

    fn name(&self, key: FeatureKey) -> String {
        self.source.name(key)
    }

    fn kind(&self) -> SourceKind {
        self.source.kind()
    }

    fn learn_names(&self, names: &[String]) -> Result<()> {
        self.source.learn_names(names)
    }

    fn references(&self, segment: SegmentId) -> Option<Arc<Prepared>> {
        self.source.references(self.segments[segment.0 as usize])
    }
}

/// A source of fixed n-best lists, read from files: the input of reranking.
///
/// ```
/// use luthier_core::{Progress, SegmentId, Weights};
/// use luthier_io::nbest::Rows;
/// use luthier_tune::{FixedLists, Goal, Judge, Source, SourceKind, columns, lists};
/// let mut rows = Rows::default();
/// rows.push(0, "the small house", &[("lm", -3.0)], &[]).unwrap();
/// rows.push(0, "a small house", &[("lm", -4.0)], &[]).unwrap();
/// let metric = "chrf".parse().unwrap();
/// let references = [vec!["the small house"]];
/// let judge = Judge::new(&metric, &references, "ref.txt");
/// let lists = lists(&rows, &columns(&rows, None), Some(judge)).unwrap();
///
/// let source = FixedLists::new(lists, rows.names);
/// assert_eq!((source.segments(), source.kind()), (1, SourceKind::Fixed));
/// let weights = Weights::parse("w.txt", "lm 1").unwrap();
/// let found = source.candidates(&[SegmentId(0)], &weights, Goal::Model, Progress::NONE).unwrap();
/// assert_eq!(found.lists()[0].k, 2);
/// ```
#[derive(Debug, Clone)]
pub struct FixedLists {
    lists: Vec<Arc<Candidates>>,
    names: Names,
}

impl FixedLists {
    /// Wraps judged lists, one per segment, with the names of their features.
    pub fn new(lists: Vec<Candidates>, names: Names) -> Self {
        FixedLists { lists: lists.into_iter().map(Arc::new).collect(), names }
    }

    /// Wraps judged lists, one per segment; `name` returns the names of their features. Fails if two names share one key.
    pub fn named(lists: Vec<Arc<Candidates>>, name: &dyn Fn(FeatureKey) -> String) -> Result<Self> {
        let mut names = Names::default();
        for key in lists.iter().flat_map(|l| l.columns.keys().iter().chain(l.local.keys())) {
            if names.get(*key).is_none() {
                names.intern(&name(*key))?;
            }
        }
        Ok(FixedLists { lists, names })
    }

    /// Returns initial weights for these lists where none are given: the best of each dense feature alone, with either
    /// sign, and of the mean of all with their better signs, in units of their spread within lists. Fails if no feature
    /// varies within a list.
    pub fn initial_weights(&self, metric: &Metric) -> Result<Weights> {
        initial_weights(&self.lists, metric, &|key| self.name(key))
    }
}

impl Source for FixedLists {
    fn segments(&self) -> u32 {
        self.lists.len() as u32
    }

    fn candidates(&self, batch: &[SegmentId], _: &Weights, goal: Goal, _: Progress<'_>) -> Result<Evidence> {
        let list = |s: &SegmentId| match goal {
            Goal::Model => self.lists[s.0 as usize].clone(),
            // The best reachable candidate is in the list itself.
            Goal::Metric | Goal::Reference => Arc::new(Candidates::empty(&self.lists[s.0 as usize].columns)),
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
