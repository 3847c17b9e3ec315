//! xBLEU, or expected BLEU (Rosti et al. 2010, 2011): minus the BLEU of expected n-gram counts.
//!
//! Candidates of a segment have p ∝ exp(γs); c(g) is the count of n-gram g in a candidate, `E[c(g)]` its
//! expectation within the segment, c*(g) its largest count in a reference. The loss is −BP·Πₙ Pₙ^{1/4} for
//! BLEU of order 4, with
//!
//! - Pₙ = Σ min(`E[c(g)]`, c*(g)) / Σ `E[c(g)]` over all segments and all n-grams g of order n; [`Clip`] has
//!   other ways to clip. A precision below 10⁻⁹ counts as 10⁻⁹ and has no gradient, so that the logarithm is
//!   finite.
//! - BP = min(1, e^{1 − r/c}), where c is the expected length, summed over segments, and r the sum of the
//!   reference lengths closest to the expected length of each segment; [`Brevity`] has other forms. Where only
//!   statistics of candidates are known, r is the expected reference length.
//!
//! The gradient is computed backwards: from BLEU to the summed counts, and from these through p to the scores;
//! a closest reference length counts as constant. The value is from −1 to 0. An evaluation costs one pass over
//! the n-grams of all candidates.

use super::{ScoreLoss, softmax, through_softmax};
use crate::Candidates;
use luthier_core::math;
use luthier_metric::{Bleu, Metric, Prepared, Scratch};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Clipping of expected n-gram matches by the counts in the references.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Clip {
    /// Clip the expected count of an n-gram in its segment at its count in the references.
    Expected,
    /// Clip the count in every candidate at the count in the references, then take the expectation.
    Candidate,
    /// No clipping (Pauls et al. 2009).
    None,
}

/// Brevity penalty of expected BLEU as a function of x = 1 − r/c, for expected length c and reference length r.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Brevity {
    /// min(1, e^x) with x = 1 − r/c, as in BLEU, for expected length c and reference length r.
    Exact,
    /// (e^x − 1)/(1 + e^{1000x}) + 1 with x = 1 − r/c: as in BLEU, with the corner at r = c smoothed by a logistic
    /// function.
    Smooth,
    /// No brevity penalty.
    None,
}

/// Minus the BLEU of expected n-gram counts under p ∝ exp(γs) (Rosti et al. 2010, 2011), from −1 to 0.
///
/// The precision of order n is Σ clipped expected matches / Σ expected n-grams over the corpus; the brevity
/// penalty compares the expected length with the closest reference length. A precision below 10⁻⁹ counts as
/// 10⁻⁹. Gradients are exact, except at the corners of clipping and of [`Brevity::Exact`].
pub struct Xbleu {
    gamma: f64,
    order: usize,
    clip: Clip,
    brevity: Brevity,
    lists: Vec<Arc<Candidates>>,
    segments: Vec<Segment>,
}

/// N-grams and references of a segment, besides the statistics of its candidates.
#[derive(Default)]
struct Segment {
    /// N-grams of a reference that occur in the candidates, one number per occurrence, candidate after candidate.
    grams: Vec<u32>,
    /// End of each candidate's occurrences in `grams`.
    ends: Vec<u32>,
    /// Order of each n-gram and its largest count c* in a reference.
    limits: Vec<(usize, u32)>,
    references: Option<Prepared>,
}

/// Probabilities of a segment's candidates, and which n-grams are not clipped.
pub struct Point {
    /// Probability of each candidate.
    p: Vec<f64>,
    /// Whether the expected count of each n-gram is below its limit c*, so that it is not clipped.
    open: Vec<bool>,
}

/// Smallest precision; smaller ones count as this.
const FLOOR: f64 = 1e-9;
/// Steepness of the logistic function in [`Brevity::Smooth`].
const STEEP: f64 = 1000.0;

impl Xbleu {
    /// Builds the loss over judged lists for BLEU with given settings. Without `references` only
    /// [`Clip::Candidate`] is possible, because the statistics hold clipped counts.
    pub fn new(
        gamma: f64,
        bleu: &Bleu,
        clip: Clip,
        brevity: Brevity,
        lists: Vec<Arc<Candidates>>,
        references: Option<&[Vec<String>]>,
    ) -> Self {
        let metric = Metric::Bleu(bleu.clone());
        let segment = |scratch: &mut Scratch, (list, s): (&Arc<Candidates>, usize)| {
            let Some(references) = references.and_then(|r| r.get(s)) else { return Segment::default() };
            let references: Vec<&str> = references.iter().map(String::as_str).collect();
            let prepared = metric.prepare(&references, scratch);
            let mut segment = Segment { limits: Bleu::ngram_limits(&prepared), ..Segment::default() };
            if clip != Clip::Candidate {
                let mut here = Vec::new();
                for i in 0..list.k {
                    bleu.ngrams(&prepared, list.text(i), scratch, &mut here);
                    segment.grams.extend_from_slice(&here);
                    segment.ends.push(segment.grams.len() as u32);
                }
            }
            segment.references = Some(prepared);
            segment
        };
        let numbers: Vec<usize> = (0..lists.len()).collect();
        let segments =
            lists.par_iter().zip(numbers).map_init(Scratch::default, |scratch, pair| segment(scratch, pair));
        let segments = segments.collect();
        Xbleu { gamma, order: bleu.order, clip, brevity, lists, segments }
    }
}

impl Segment {
    /// Returns the n-grams of a reference that occur in candidate `i`, one number per occurrence.
    fn occurrences(&self, i: usize) -> &[u32] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.grams[start as usize..self.ends[i] as usize]
    }
}

impl ScoreLoss for Xbleu {
    type Point = Point;

    /// Expected matches and totals of each order, and the reference length, as in BLEU's statistics.
    fn width(&self) -> usize {
        2 * self.order + 1
    }

    fn is_linear(&self) -> bool {
        false
    }

    fn forward(&self, s: usize, scores: Vec<f64>, sums: &mut [f64]) -> Point {
        let (list, segment, n) = (&*self.lists[s], &self.segments[s], self.order);
        let (p, _) = softmax(self.gamma, &scores);
        let mut expected = vec![0.0; 2 * n + 1];
        for (i, &p) in p.iter().enumerate() {
            for (e, &x) in expected.iter_mut().zip(list.stats_of(list.class[i])) {
                *e += p * f64::from(x);
            }
        }
        if let Some(prepared) = &segment.references {
            expected[2 * n] = if list.k > 0 { Bleu::closest_length(prepared, expected[n]) } else { 0.0 };
        }
        let mut open = Vec::new();
        if self.clip != Clip::Candidate {
            let mut counts = vec![0.0; segment.limits.len()];
            for (i, &p) in p.iter().enumerate() {
                for &g in segment.occurrences(i) {
                    counts[g as usize] += p;
                }
            }
            let limit = |l: u32| if self.clip == Clip::Expected { f64::from(l) } else { f64::INFINITY };
            open = counts.iter().zip(&segment.limits).map(|(c, l)| *c < limit(l.1)).collect();
            expected[..n].fill(0.0);
            for (count, &(order, l)) in counts.iter().zip(&segment.limits).filter(|c| c.1.0 > 0) {
                expected[order - 1] += count.min(limit(l));
            }
        }
        for (sum, e) in sums.iter_mut().zip(&expected) {
            *sum += e;
        }
        Point { p, open }
    }

    fn value(&self, sums: &[f64], d_sums: &mut [f64]) -> f64 {
        value(self.order, self.brevity, sums, d_sums)
    }

    fn backward(&self, s: usize, point: &Point, d_sums: &[f64], d_scores: &mut [f64]) {
        let (list, segment, n) = (&*self.lists[s], &self.segments[s], self.order);
        for (i, d) in d_scores.iter_mut().enumerate() {
            let stats = list.stats_of(list.class[i]);
            let part = |range: std::ops::Range<usize>| -> f64 {
                range.map(|k| d_sums[k] * f64::from(stats[k])).sum()
            };
            *d = part(n..2 * n);
            if segment.references.is_none() {
                *d += part(2 * n..2 * n + 1);
            }
            if self.clip == Clip::Candidate {
                *d += part(0..n);
            } else {
                let open = segment.occurrences(i).iter().filter(|g| point.open[**g as usize]);
                *d += open.map(|&g| d_sums[segment.limits[g as usize].0 - 1]).sum::<f64>();
            }
        }
        through_softmax(self.gamma, &point.p, d_scores);
    }
}

/// Returns minus the BLEU of summed expectations (matches and totals of `n` orders, reference length), and
/// writes its derivative with respect to them to `d_sums`.
pub(super) fn value(n: usize, brevity: Brevity, sums: &[f64], d_sums: &mut [f64]) -> f64 {
    d_sums.fill(0.0);
    let mut log = 0.0;
    for o in 0..n {
        let (matched, total) = (sums[o], sums[n + o]);
        let precision = if total > 0.0 { matched / total } else { 0.0 };
        log += math::ln(precision.max(FLOOR)) / n as f64;
        if precision > FLOOR {
            d_sums[o] = 1.0 / (n as f64 * matched);
            d_sums[n + o] = -1.0 / (n as f64 * total);
        }
    }
    let (c, r) = (sums[n], sums[2 * n]);
    let x = if c > 0.0 { 1.0 - r / c } else { 0.0 };
    let (penalty, slope) = brevity.at(x);
    let mean = math::exp(log);
    let bleu = mean * penalty;
    for d in d_sums.iter_mut() {
        *d *= -bleu;
    }
    if c > 0.0 {
        d_sums[n] -= mean * slope * r / (c * c);
        d_sums[2 * n] += mean * slope / c;
    }
    -bleu
}

impl Brevity {
    /// Returns the brevity penalty at x = 1 − r/c and its derivative with respect to x.
    fn at(self, x: f64) -> (f64, f64) {
        match self {
            Brevity::Exact if x < 0.0 => (math::exp(x), math::exp(x)),
            Brevity::Smooth if x < 0.5 => {
                let e = math::exp(STEEP * x);
                let share = 1.0 / (1.0 + e);
                let slope = math::exp(x) * share - math::exp_m1(x) * STEEP * e * share * share;
                (math::exp_m1(x) * share + 1.0, slope)
            }
            _ => (1.0, 0.0),
        }
    }
}
