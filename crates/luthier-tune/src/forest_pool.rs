//! Forests of all segments with their references.

use luthier_core::{FeatureKey, Local, Weights, sum};
use luthier_forest::Forest;
use luthier_metric::{Hypothesis, Metric, Prepared, Scratch, add};
use rayon::prelude::*;
use std::sync::Arc;

/// Forests of some segments, with the features that are learned from them: the evidence of learning from
/// forests.
#[derive(Debug, Clone)]
pub struct ForestPool {
    /// Keys of the features whose weights are learned; all of them are dense.
    pub columns: Arc<Local>,
    /// Features whose weights are not learned, with those weights.
    pub fixed: Arc<[(FeatureKey, f64)]>,
    /// Forests and references of each segment, in the order of the request.
    pub segments: Vec<SegmentForests>,
}

/// Forests of one segment, one per decode, with its references.
#[derive(Debug, Clone)]
pub struct SegmentForests {
    /// Forests in the order of decoding, the current one last. MERT searches their union, the other learners
    /// the last one.
    pub forests: Vec<Arc<Forest<'static>>>,
    /// References of the segment, prepared for the metric.
    pub references: Arc<Prepared>,
}

/// By local feature number of a forest: position in the weights if the feature is learned (`Ok`), else its
/// weight (`Err`).
#[derive(Debug, Clone, Default)]
pub(crate) struct Places(Vec<std::result::Result<u32, f64>>);

impl Places {
    /// Returns the weights by local feature number, with learned ones taken from `w`.
    pub(crate) fn weights(&self, w: &[f64]) -> Vec<f64> {
        self.0.iter().map(|p| p.map_or_else(|other| other, |p| w[p as usize])).collect()
    }

    /// Returns the number of local features.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Iterates over the learned features as position in the weights and value in `local`.
    pub(crate) fn learned<'a>(&'a self, local: &'a [f64]) -> impl Iterator<Item = (u32, f64)> + 'a {
        self.0.iter().zip(local).filter_map(|(p, &x)| p.ok().map(|p| (p, x)))
    }

    /// Appends `by` features with weight 0, which are not learned.
    pub(crate) fn wider(mut self, by: usize) -> Self {
        self.0.resize(self.0.len() + by, Err(0.0));
        self
    }
}

impl ForestPool {
    /// Returns the positions of a forest's features in the weights, or their weights if they are not learned.
    pub(crate) fn places(&self, forest: &Forest<'_>, weights: &Weights) -> Places {
        let learned = weights.places(&self.columns);
        let place = |key| self.columns.position(key).map(|c| learned[c]);
        let others = self.local(forest, weights);
        Places(forest.local.keys().iter().zip(others).map(|(&k, other)| place(k).ok_or(other)).collect())
    }

    /// Returns the number of edges of all forests.
    pub fn edges(&self) -> usize {
        self.segments.iter().flat_map(|s| &s.forests).map(|f| f.edges()).sum()
    }

    /// Returns the weights of a forest's features by their local numbers: the fixed weight where there is
    /// one, else that in `weights`.
    pub fn local(&self, forest: &Forest<'_>, weights: &Weights) -> Vec<f64> {
        let weight = |key: &FeatureKey| match self.fixed.iter().find(|f| f.0 == *key) {
            Some(&(_, value)) => value,
            None => weights.get(*key),
        };
        forest.local.keys().iter().map(weight).collect()
    }

    /// Adds the forests of another decode, except those that are already in the pool. Returns the number of new
    /// edges.
    pub(crate) fn merge(&mut self, fresh: ForestPool) -> usize {
        if self.segments.is_empty() {
            *self = fresh;
            return self.edges();
        }
        let mut new = 0;
        for (old, segment) in self.segments.iter_mut().zip(fresh.segments) {
            for forest in segment.forests {
                if !forest.is_empty() && !old.forests.contains(&forest) {
                    new += forest.edges();
                    old.forests.push(forest);
                }
            }
        }
        new
    }

    /// Returns the summed statistics of the best derivation of each segment's last forest.
    pub(crate) fn best_totals(&self, weights: &Weights, metric: &Metric) -> Vec<f64> {
        self.totals(metric, |_, forest| self.local(forest, weights))
    }

    /// Returns the summed statistics of the best derivation of each segment's last forest, where `local`
    /// returns the weights by local feature number.
    pub(crate) fn totals(
        &self,
        metric: &Metric,
        local: impl Fn(usize, &Forest<'_>) -> Vec<f64> + Sync,
    ) -> Vec<f64> {
        sum::sum(self.segments.len(), 64, metric.width(), |s, total| {
            let mut stats = vec![0.0; metric.width()];
            self.segments[s].best_stats(metric, |forest| local(s, forest), &mut stats);
            add(total, &stats);
        })
    }

    /// Returns the statistics of the best derivation of each segment's last forest, [`Metric::width`] numbers per segment;
    /// all 0 for segments without a derivation.
    pub(crate) fn best_stats(&self, weights: &Weights, metric: &Metric) -> Vec<f32> {
        let mut stats = vec![0.0; self.segments.len() * metric.width()];
        stats.par_chunks_mut(metric.width()).zip(&self.segments).for_each(|(out, segment)| {
            segment.best_stats(metric, |forest| self.local(forest, weights), out);
        });
        stats
    }
}

impl SegmentForests {
    /// Writes the statistics of the best derivation of the last forest to `out`, which is not changed if there is none.
    fn best_stats(&self, metric: &Metric, local: impl Fn(&Forest<'_>) -> Vec<f64>, out: &mut [f32]) {
        let Some(forest) = self.forests.last() else { return };
        let mut words = Vec::new();
        if forest.best_words(&forest.scores(&local(forest)), &mut words).is_some() {
            self.judge(metric, &forest.text(&words), &mut Scratch::default(), out);
        }
    }

    /// Writes the metric statistics of a translation to `out`.
    pub(crate) fn judge(&self, metric: &Metric, text: &str, scratch: &mut Scratch, out: &mut [f32]) {
        metric.stats(&self.references, Hypothesis { text, columns: &[] }, scratch, out);
    }
}

#[cfg(test)]
mod tests;
