//! Significance of the difference between two systems: paired bootstrap resampling (Koehn 2004) and
//! approximate randomisation (Riezler and Maxwell 2005), for any metric with additive statistics.
//!
//! P-values equal sacreBLEU's in all digits, with its random numbers and its `f32` arithmetic:
//! p = (c + 1)/(n + 1), where n is the number of samples and c counts the samples whose absolute difference (for
//! the bootstrap, minus the mean over all samples) exceeds the observed one. Each system costs
//! samples × segments × statistics additions.
//!
//! [`Estimate`] is for systems that were tuned several times: confidence intervals over replicas and segments (Clark
//! et al. 2011).
//!
//! ```
//! use luthier_metric::{Metric, significance::{Question, Test, compare}};
//! // WER: edits and length of each of 100 segments. The second system makes a third of the errors.
//! let metric: Metric = "wer".parse()?;
//! let system = |errors: [f32; 4]| (0..100).flat_map(|i| [errors[i % 4], 10.0]).collect::<Vec<f32>>();
//! let (baseline, better) = (system([3.0, 2.0, 4.0, 3.0]), system([1.0, 0.0, 1.0, 2.0]));
//! let verdicts = compare(&metric, &[&baseline, &better], Question::new(Test::Bootstrap));
//! assert_eq!((verdicts[0].score, verdicts[1].score, verdicts[1].delta), (30.0, 10.0, -20.0));
//! assert!(verdicts[1].p_value.is_some_and(|p| p < 0.05));
//! # Ok::<(), luthier_metric::Error>(())
//! ```

mod distribution;
mod estimate;

pub use estimate::{Estimate, Term, Variance};

use crate::{
    Metric,
    numpy::{BitBuffer, Generator, pairwise_sum},
};
use rayon::prelude::*;

/// Significance test of the difference between two systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Test {
    /// Paired bootstrap resampling: samples of segments, drawn with replacement (1,000 samples by default).
    #[default]
    Bootstrap,
    /// Approximate randomisation: swaps the outputs of the two systems in random segments (10,000 trials by
    /// default).
    Randomization,
}

impl Test {
    /// Returns sacreBLEU's default number of samples: 1,000 for the bootstrap, 10,000 for randomisation.
    pub fn usual_samples(self) -> usize {
        match self {
            Test::Bootstrap => 1000,
            Test::Randomization => 10_000,
        }
    }

    /// Returns the abbreviation of the test in sacreBLEU's signatures: `bs` or `ar`.
    pub fn abbreviation(self) -> &'static str {
        match self {
            Test::Bootstrap => "bs",
            Test::Randomization => "ar",
        }
    }
}

/// A significance test with its number of samples and its seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub struct Question {
    /// Significance test to use.
    pub test: Test,
    /// Number of bootstrap samples or randomisation trials, at least 1.
    pub samples: usize,
    /// Seed of the random numbers; sacreBLEU's is 12345.
    pub seed: u64,
}

impl Question {
    /// Returns a test with sacreBLEU's default number of samples and its default seed, 12345.
    pub fn new(test: Test) -> Self {
        Question { test, samples: test.usual_samples(), seed: 12345 }
    }

    /// Returns the entries of the test in a signature, such as `bs:1000|seed:12345`, for
    /// [`Metric::signature`].
    pub fn signature(&self) -> String {
        format!("{}:{}|seed:{}", self.test.abbreviation(), self.samples, self.seed)
    }
}

/// Result of a system in a comparison. Error rates are positive, as by [`Metric::display_score`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    /// Score of the system on all segments.
    pub score: f64,
    /// Score of the system minus score of the baseline; 0 for the baseline.
    pub delta: f64,
    /// Mean score of the system over the bootstrap samples.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval of the score, from the bootstrap samples.
    pub interval: f64,
    /// P-value of the difference to the baseline, above 0 and at most 1; `None` for the baseline.
    pub p_value: Option<f64>,
}

/// Number of bootstrap samples for the confidence interval if the test is not the bootstrap.
const INTERVAL_SAMPLES: usize = 1000;

/// Number of samples drawn before they are distributed to threads, which limits memory.
const BATCH: usize = 256;

/// Tests all systems against the first, the baseline; returns one verdict per system, in order. A system is
/// given by its statistics, [`Metric::width`] numbers per segment; all systems must have the same segments,
/// at least one.
pub fn compare(metric: &Metric, systems: &[&[f32]], question: Question) -> Vec<Verdict> {
    compare_while(metric, systems, question, &mut || true).unwrap_or_default()
}

/// Tests all systems like [`compare`] while `go_on` holds, which is asked before every 256 samples; `None` if it no longer
/// does.
pub fn compare_while(
    metric: &Metric,
    systems: &[&[f32]],
    question: Question,
    go_on: &mut dyn FnMut() -> bool,
) -> Option<Vec<Verdict>> {
    let samples = match question.test {
        Test::Bootstrap => question.samples,
        Test::Randomization => INTERVAL_SAMPLES,
    };
    let resampled = resample(metric, systems, (samples, question.seed), go_on)?;
    let scores: Vec<f64> = systems.iter().map(|s| metric.score(&totals(metric, s))).collect();
    let gap = |i: usize| (scores[i] - scores[0]).abs();
    let p_values: Vec<f64> = match question.test {
        Test::Bootstrap => {
            (1..systems.len()).map(|i| bootstrap(metric, &resampled[0], &resampled[i], gap(i))).collect()
        }
        Test::Randomization => (1..systems.len())
            .map(|i| {
                let trials = swap(metric, (systems[0], systems[i]), question, go_on)?;
                Some(p_value(trials.iter().filter(|&&d| d > gap(i)).count(), trials.len()))
            })
            .collect::<Option<_>>()?,
    };
    let verdicts = (0..systems.len())
        .map(|i| {
            let (mean, interval) = spread(metric, &resampled[i]);
            Verdict {
                score: metric.display_score(scores[i]),
                delta: metric.display_score(scores[i] - scores[0]),
                mean,
                interval,
                p_value: i.checked_sub(1).map(|j| p_values[j]),
            }
        })
        .collect();
    Some(verdicts)
}

/// Returns the sum over all segments of the statistics of a system, which are [`Metric::width`] numbers per
/// segment.
pub fn totals(metric: &Metric, stats: &[f32]) -> Vec<f64> {
    let mut total = vec![0.0; metric.width()];
    for row in stats.chunks_exact(metric.width()) {
        crate::add(&mut total, row);
    }
    total
}

/// Returns the scores of each system on the same bootstrap samples; `None` if `go_on` no longer holds.
fn resample(
    metric: &Metric,
    systems: &[&[f32]],
    (samples, seed): (usize, u64),
    go_on: &mut dyn FnMut() -> bool,
) -> Option<Vec<Vec<f64>>> {
    let segments = systems[0].len() / metric.width();
    let mut generator = Generator::new(seed);
    let mut scores = vec![Vec::new(); systems.len()];
    let mut rows = vec![0; segments * BATCH];
    let mut left = samples;
    while left > 0 {
        if !go_on() {
            return None;
        }
        let n = left.min(BATCH);
        rows[..segments * n].fill_with(|| generator.choice(segments as u32));
        for (scores, stats) in scores.iter_mut().zip(systems) {
            let batch = rows[..segments * n].par_chunks(segments).map(|rows| one_sample(metric, stats, rows));
            scores.extend(batch.collect::<Vec<f64>>());
        }
        left -= n;
    }
    Some(scores)
}

/// Returns the score of the segments `rows`, with statistics summed in `f32`.
fn one_sample(metric: &Metric, stats: &[f32], rows: &[u32]) -> f64 {
    let width = metric.width();
    let mut total = vec![0f32; width];
    for &row in rows {
        for (t, x) in total.iter_mut().zip(&stats[row as usize * width..][..width]) {
            *t += x;
        }
    }
    metric.single_score(&total)
}

/// Returns mean and half the width of the 95 % interval of resampled scores, with error rates positive.
fn spread(metric: &Metric, scores: &[f64]) -> (f64, f64) {
    let mut sorted: Vec<f64> = scores.iter().map(|&s| metric.display_score(s)).collect();
    sorted.sort_by(f64::total_cmp);
    let low = sorted.len() / 40;
    let (low, high) = (sorted[low], sorted[sorted.len() - low - 1]);
    if metric.samples_are_single() {
        (f64::from(mean32(&single(&sorted))), f64::from(0.5 * (high as f32 - low as f32)))
    } else {
        (mean64(&sorted), 0.5 * (high - low))
    }
}

/// Returns the p-value of the paired bootstrap: how often the absolute difference of two systems on a sample,
/// minus the mean over all samples, exceeds the observed difference `gap`.
fn bootstrap(metric: &Metric, baseline: &[f64], system: &[f64], gap: f64) -> f64 {
    let gaps: Vec<f64> = baseline.iter().zip(system).map(|(a, b)| (b - a).abs()).collect();
    let beyond = if metric.samples_are_single() {
        let gaps: Vec<f32> =
            single(baseline).iter().zip(single(system)).map(|(a, b)| (b - a).abs()).collect();
        let mean = mean32(&gaps);
        gaps.iter().filter(|&&g| g - mean > gap as f32).count()
    } else {
        let mean = mean64(&gaps);
        gaps.iter().filter(|&&g| g - mean > gap).count()
    };
    p_value(beyond, gaps.len())
}

/// Returns the absolute differences of two systems' scores after swapping their outputs in random segments,
/// one per trial; `None` if `go_on` no longer holds.
fn swap(
    metric: &Metric,
    (baseline, system): (&[f32], &[f32]),
    question: Question,
    go_on: &mut dyn FnMut() -> bool,
) -> Option<Vec<f64>> {
    let segments = baseline.len() / metric.width();
    let mut generator = Generator::new(question.seed);
    let mut bits = BitBuffer::default();
    let mut coins = vec![false; segments * BATCH];
    let mut gaps = Vec::new();
    while gaps.len() < question.samples {
        if !go_on() {
            return None;
        }
        let n = (question.samples - gaps.len()).min(BATCH);
        generator.bits(&mut coins[..segments * n], &mut bits);
        let batch =
            coins[..segments * n].par_chunks(segments).map(|c| one_trial(metric, baseline, system, c));
        gaps.extend(batch.collect::<Vec<f64>>());
    }
    Some(gaps)
}

/// Returns the absolute difference of two systems' scores after swapping the outputs of the segments whose
/// coin is false.
fn one_trial(metric: &Metric, baseline: &[f32], system: &[f32], coins: &[bool]) -> f64 {
    let width = metric.width();
    let (mut a, mut b) = (vec![0.0; width], vec![0.0; width]);
    let rows = baseline.chunks_exact(width).zip(system.chunks_exact(width));
    for ((x, y), &keep) in rows.zip(coins) {
        let (x, y) = if keep { (x, y) } else { (y, x) };
        crate::add(&mut a, x);
        crate::add(&mut b, y);
    }
    (metric.score(&a) - metric.score(&b)).abs()
}

/// Returns (c + 1)/(n + 1), where c is `beyond` and n is `samples`.
fn p_value(beyond: usize, samples: usize) -> f64 {
    (beyond + 1) as f64 / (samples + 1) as f64
}

fn single(x: &[f64]) -> Vec<f32> {
    x.iter().map(|&v| v as f32).collect()
}

fn mean32(x: &[f32]) -> f32 {
    pairwise_sum(x) / x.len() as f32
}

fn mean64(x: &[f64]) -> f64 {
    pairwise_sum(x) / x.len() as f64
}
