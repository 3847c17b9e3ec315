//! Forests of all segments, with what they are judged by.

use luthier_core::{FeatureKey, Local, Weights, sum};
use luthier_forest::Forest;
use luthier_metric::{Hypothesis, Metric, Prepared, Scratch};
use std::sync::Arc;

/// Forests of some segments.
#[derive(Debug, Clone)]
pub struct Packed {
    /// The features that are learned: dense ones.
    pub columns: Arc<Local>,
    /// Features with weights that are not learned.
    pub fixed: Arc<[(FeatureKey, f64)]>,
    /// By segment.
    pub segments: Vec<Segment>,
}

/// Forests of one segment.
#[derive(Debug, Clone)]
pub struct Segment {
    /// One for each decode that brought something new; together they hold what is known about the segment.
    pub forests: Vec<Arc<Forest<'static>>>,
    /// The references, ready for the metric.
    pub references: Arc<Prepared>,
}

impl Packed {
    /// Edges of all forests.
    pub fn edges(&self) -> usize {
        self.segments.iter().flat_map(|s| &s.forests).map(|f| f.edges()).sum()
    }

    /// Weights by local number; what is not learned has its own, or that of a sparse feature.
    pub fn local(&self, forest: &Forest<'_>, weights: &Weights) -> Vec<f64> {
        let weight = |key: &FeatureKey| match self.fixed.iter().find(|f| f.0 == *key) {
            Some(&(_, value)) => value,
            None => weights.get(*key),
        };
        forest.local.keys().iter().map(weight).collect()
    }

    /// Adds forests of another decode; those that are known already are left out. Returns how many edges are new.
    pub(crate) fn merge(&mut self, fresh: Packed) -> usize {
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

    /// Summed statistics of the best derivations of the last forests under some weights.
    pub(crate) fn best_totals(&self, weights: &Weights, metric: &Metric) -> Vec<f64> {
        sum::sum(self.segments.len(), 64, metric.width(), |s, total| {
            let segment = &self.segments[s];
            let Some(forest) = segment.forests.last() else { return };
            let scores = forest.scores(&self.local(forest, weights));
            let Some(best) = forest.best(&scores) else { return };
            let mut stats = vec![0.0; metric.width()];
            segment.judge(metric, &forest.text(&best.words), &mut Scratch::default(), &mut stats);
            for (t, x) in total.iter_mut().zip(&stats) {
                *t += f64::from(*x);
            }
        })
    }
}

impl Segment {
    /// Statistics of a translation.
    pub(crate) fn judge(&self, metric: &Metric, text: &str, scratch: &mut Scratch, out: &mut [f32]) {
        metric.stats(&self.references, Hypothesis { text, columns: &[] }, scratch, out);
    }
}

#[cfg(test)]
mod tests;
