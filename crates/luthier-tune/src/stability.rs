//! How sure weights are: the bootstrap over segments.
//!
//! Each of B resamples draws as many groups of segments (a segment, or a document) as there are, with replacement, and is
//! learned from the weights w of all data and, unless the objective is convex, from two random points; the highest tuning
//! score of the three wins. A start from w alone would understate the spread.
//!
//! Weights of one resample are divided by the absolute weight of the anchor, the feature whose weight times spread is largest on all data,
//! because the scale of a linear model does not affect its choices; signs are kept. The interval of a feature holds the
//! middle 95 % of these ratios. For the corpus score itself, a step function of the weights that MERT maximises, the
//! bootstrap is not consistent: the interval then describes the stability of the answer, not its confidence. A resample of
//! MERT is one climb from each start, not the whole search. A penalty that was chosen on all data ([`Bootstrap::recipe`]) is
//! not chosen again.

use crate::{
    Evidence, Fleet, Goal, Job, RunDir, RunSpec, Source, SourceKind, Subset,
    recipe::{Context, Recipe},
    run,
    start::spreads,
    validate::output_stats,
};
use luthier_core::{
    Error, Progress, Result, SegmentId, Step, Weights,
    random::{Purpose, Stream},
};
use luthier_metric::add;
use serde::{Deserialize, Serialize};
use std::{
    ops::ControlFlow,
    sync::atomic::{AtomicU32, Ordering},
};

/// Number of random points that a resample is learned from besides the weights of all data.
const RANDOM: u32 = 2;
/// Share of resamples that an interval leaves out on either side.
const TAIL: f64 = 0.025;

/// Result of the bootstrap over segments: how much weights and score vary between resamples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stability {
    /// Number of resamples.
    pub samples: u32,
    /// Seed of the resamples.
    #[serde(default)]
    pub seed: u64,
    /// Whether intervals are confidence intervals; otherwise they only describe how stable the answer is.
    pub confidence: bool,
    /// Name of the feature whose absolute weight is 1 in `features`.
    pub anchor: String,
    /// Number of resamples in which the weight of the anchor is 0, which are left out of the intervals.
    pub without_anchor: u32,
    /// Ends of the 95 % interval of the corpus score of the weights on resampled segments; on the scale of the metric.
    pub score: [f64; 2],
    /// Dense features, in the order of the weights.
    pub features: Vec<FeatureStability>,
}

/// Variation of one weight between resamples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FeatureStability {
    /// Name of the feature.
    pub name: String,
    /// Weight that was learned from all data.
    pub weight: f64,
    /// Weight relative to the absolute weight of the anchor.
    pub relative: f64,
    /// Lower end of the 95 % interval of the relative weight.
    pub low: f64,
    /// Upper end of the 95 % interval of the relative weight.
    pub high: f64,
    /// Share of the resamples in which the weight has the sign that it has on all data.
    pub same_sign: f64,
}

impl Stability {
    /// Returns the features whose intervals contain 0: the data do not tell their signs, or that they matter at all.
    pub fn undetermined(&self) -> Vec<&str> {
        let open = |f: &&FeatureStability| f.low <= 0.0 && f.high >= 0.0;
        self.features.iter().filter(open).map(|f| f.name.as_str()).collect()
    }
}

/// A bootstrap over the segments of fixed lists.
pub struct Bootstrap<'a> {
    /// Lists that the weights were learned from.
    pub source: &'a dyn Source,
    /// Algorithm that is run on each resample, with resolved settings; see [`Recipe::with_l1`].
    pub recipe: &'a Recipe,
    /// Metric, seed and references; the source must be [`SourceKind::Fixed`].
    pub context: Context<'a>,
    /// Key of the group of each segment; groups are drawn as a whole.
    pub groups: &'a [u128],
    /// Number of resamples, at least 2.
    pub samples: u32,
    /// Weights that were learned from all data.
    pub weights: &'a Weights,
}

/// What one resample has given: dense weights and the score of the weights of all data.
type Resample = (Vec<f64>, f64);

impl Bootstrap<'_> {
    /// Learns all resamples. Fails if there are fewer than two, if no dense feature has a weight, and with an error of kind
    /// `Interrupted` if `progress` answers *stop*.
    pub fn run(&self, fleet: &Fleet<'_>, progress: Progress<'_>) -> Result<Stability> {
        check_samples(self.samples)?;
        let metric = self.context.metric;
        let all: Vec<SegmentId> = (0..self.source.segments()).map(SegmentId).collect();
        let evidence = self.source.candidates(&all, self.weights, Goal::Model, progress)?;
        let lists = evidence.lists();
        let spread = spreads(lists);
        let columns = lists.first().map(|l| l.columns.clone()).unwrap_or_default();
        let mut weights = Vec::new();
        self.weights.gather(&columns, &mut weights);
        let influence = |c: usize| weights[c].abs() * spread[c];
        let anchor = (0..weights.len()).filter(|&c| influence(c) > 0.0);
        let anchor = anchor.max_by(|&a, &b| influence(a).total_cmp(&influence(b)).then(b.cmp(&a)));
        let anchor = anchor.ok_or_else(|| Error::new("no dense feature has a weight to resample"))?;
        let stats = output_stats(self.source, self.weights, metric, fleet, progress)?;
        let done = AtomicU32::new(0);
        let resamples = fleet.map(self.samples, |shard| {
            progress.poll()?;
            let found = self.resample(shard.0, (&evidence, &spread), &stats, progress);
            let done = u64::from(done.fetch_add(1, Ordering::Relaxed) + 1);
            progress.report(&Step {
                what: "resamples",
                done,
                total: u64::from(self.samples),
                value: None,
            })?;
            found
        })?;
        let score = interval(resamples.iter().map(|r| metric.display_score(r.1)).collect());
        let anchored: Vec<&Resample> = resamples.iter().filter(|r| r.0[anchor] != 0.0).collect();
        let feature = |c: usize| {
            let ratios = |w: &[f64], by: f64| w[c] / by;
            let values: Vec<f64> = anchored.iter().map(|r| ratios(&r.0, r.0[anchor].abs())).collect();
            let same = values.iter().filter(|v| v.total_cmp(&0.0) == weights[c].total_cmp(&0.0)).count();
            let same_sign = same as f64 / values.len().max(1) as f64;
            let [low, high] = interval(values);
            let name = self.source.name(columns.keys()[c]);
            let relative = ratios(&weights, weights[anchor].abs());
            FeatureStability { name, weight: weights[c], relative, low, high, same_sign }
        };
        Ok(Stability {
            samples: self.samples,
            seed: self.context.seed,
            confidence: self.recipe.is_consistent(),
            anchor: self.source.name(columns.keys()[anchor]),
            without_anchor: (resamples.len() - anchored.len()) as u32,
            score,
            features: (0..weights.len()).filter(|&c| spread[c] > 0.0).map(feature).collect(),
        })
    }

    /// Draws and learns one resample.
    fn resample(
        &self,
        index: u32,
        (evidence, spread): (&Evidence, &[f64]),
        stats: &[f32],
        progress: Progress<'_>,
    ) -> Result<Resample> {
        // Within a resample, progress is polled but not reported.
        let poll = |_: &Step| {
            if progress.poll().is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let metric = self.context.metric;
        let mut stream = Stream::new(self.context.seed, Purpose::Resample, 0, index);
        let segments = draw(self.groups, &mut stream);
        let mut sums = vec![0.0; metric.width()];
        for s in &segments {
            let at = s.0 as usize * metric.width();
            add(&mut sums, &stats[at..at + metric.width()]);
        }
        let subset = Subset::new(self.source, segments);
        let references = self.context.references.as_ref().map(|all| subset.pick(all).into());
        let context = Context { references, ..self.context.clone() };
        let columns = evidence.lists()[0].columns.clone();
        let mut best: Option<(f64, Vec<f64>)> = None;
        let starts = if self.recipe.is_convex() { 1 } else { 1 + RANDOM };
        for start in 0..starts {
            let initial = if start == 0 {
                self.weights.clone()
            } else {
                random_point(self.weights, &columns, spread, &mut stream)
            };
            let tuner = self.recipe.build_local(&context);
            let mut dir = RunDir::in_memory(RunSpec::new(tuner.recipe.clone(), "", self.context.seed));
            let job = Job {
                source: &subset,
                select: None,
                test: None,
                learner: &*tuner.learner,
                schedule: &tuner.schedule,
                metric,
                initial: &initial,
                progress: Progress::new(&poll),
            };
            run(&job, &mut dir, &Fleet::ALONE, &mut |_| {})?;
            // Learned weights, even where the start scores higher: the start has seen other data.
            let (score, weights) = dir.last()?;
            if best.as_ref().is_none_or(|b| score > b.0) {
                let mut dense = Vec::new();
                weights.gather(&columns, &mut dense);
                best = Some((score, dense));
            }
        }
        Ok((best.map(|b| b.1).unwrap_or_default(), metric.score(&sums)))
    }
}

/// Draws as many groups as there are, with replacement, and returns their segments.
fn draw(groups: &[u128], stream: &mut Stream) -> Vec<SegmentId> {
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|&s| groups[s]);
    let members: Vec<&[usize]> = order.chunk_by(|&a, &b| groups[a] == groups[b]).collect();
    let drawn = (0..members.len()).map(|_| members[stream.below(members.len() as u64) as usize]);
    let mut segments: Vec<u32> = drawn.flatten().map(|&s| s as u32).collect();
    segments.sort_unstable();
    segments.into_iter().map(SegmentId).collect()
}

/// Draws a point whose standardised weights are Gaussian, as long as the given weights.
fn random_point(
    weights: &Weights,
    columns: &luthier_core::Local,
    spread: &[f64],
    stream: &mut Stream,
) -> Weights {
    let mut dense = Vec::new();
    weights.gather(columns, &mut dense);
    let norm = |w: &[f64]| w.iter().zip(spread).map(|(w, s)| (w * s) * (w * s)).sum::<f64>().sqrt();
    let long = norm(&dense);
    let mut draw: Vec<f64> =
        spread.iter().map(|&s| if s > 0.0 { stream.normal() / s } else { 0.0 }).collect();
    let by = long / norm(&draw).max(f64::MIN_POSITIVE);
    for w in &mut draw {
        *w *= by;
    }
    let mut point = weights.clone();
    point.set(columns, &draw);
    point
}

/// Returns the ends of the middle 95 % of some values, interpolated between neighbours; 0 for none.
fn interval(mut values: Vec<f64>) -> [f64; 2] {
    if values.is_empty() {
        return [0.0; 2];
    }
    values.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| {
        let x = share * (values.len() - 1) as f64;
        let (low, part) = (x.floor() as usize, x.fract());
        let high = (low + 1).min(values.len() - 1);
        values[low] + part * (values[high] - values[low])
    };
    [at(TAIL), at(1.0 - TAIL)]
}

/// Fails on fewer than two resamples, which have no spread.
pub fn check_samples(samples: u32) -> Result<()> {
    if samples < 2 {
        return Err(Error::new(format!("the number of resamples is {samples}, expected at least 2")));
    }
    Ok(())
}

/// Fails unless a source can be resampled: only fixed lists can.
pub fn check_resampling(kind: SourceKind) -> Result<()> {
    if kind == SourceKind::Forests {
        return Err(Error::new("--bootstrap needs n-best lists").hint("leave out --on forest"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_interpolated() {
        // 2.5 % of the way from the first to the last of 41 values is the second value.
        let values: Vec<f64> = (0..41).rev().map(f64::from).collect();
        assert_eq!(interval(values), [1.0, 39.0]);
        assert_eq!(interval(vec![3.0]), [3.0, 3.0]);
    }

    #[test]
    fn groups_are_drawn_as_a_whole() {
        let groups = [5, 1, 5, 1, 9];
        let mut stream = Stream::new(1, Purpose::Test, 0, 0);
        for _ in 0..50 {
            let count = |s: u32, drawn: &[SegmentId]| drawn.iter().filter(|d| d.0 == s).count();
            let drawn = draw(&groups, &mut stream);
            assert_eq!(count(0, &drawn), count(2, &drawn));
            assert_eq!(count(1, &drawn), count(3, &drawn));
            assert_eq!(count(0, &drawn) + count(1, &drawn) + count(4, &drawn), 3);
        }
    }
}
