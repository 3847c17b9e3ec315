//! Expected BLEU (Rosti et al. 2010, 2011): minus the BLEU of expected n-gram counts, p ∝ exp(γs).
//!
//! Precision of order n is Σ clipped expected matches / Σ expected n-grams over the whole corpus; the brevity
//! penalty compares the expected length with the closest reference length. The value is on the scale from 0 to 1.

use super::{ScoreLoss, softmax, through_softmax};
use crate::Candidates;
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

/// Brevity penalty of expected BLEU, for expected length c and reference length r.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Brevity {
    /// min(1, e^{1 − r/c}), as in BLEU.
    Exact,
    /// As in BLEU, with the corner at r = c rounded by a steep logistic function.
    Smooth,
    /// No brevity penalty.
    None,
}

/// Minus the BLEU of expected n-gram counts under p ∝ exp(γs) (Rosti et al. 2010, 2011), from 0 to −1.
///
/// The precision of order n is Σ clipped expected matches / Σ expected n-grams over the corpus; the brevity
/// penalty compares the expected length with the closest reference length. A precision below 10⁻⁹ counts as
/// 10⁻⁹. Gradients are exact, except at the corner of [`Brevity::Exact`].
pub struct Xbleu {
    gamma: f64,
    order: usize,
    clip: Clip,
    brevity: Brevity,
    lists: Vec<Arc<Candidates>>,
    segments: Vec<Segment>,
}

/// What a segment needs besides the statistics of its candidates.
#[derive(Default)]
struct Segment {
    /// Occurrences in candidate `i` of n-grams that are in a reference: `grams[ends[i - 1]..ends[i]]`.
    grams: Vec<u32>,
    ends: Vec<u32>,
    /// Order and limit of each n-gram.
    limits: Vec<(usize, u32)>,
    references: Option<Prepared>,
}

/// Probabilities of a segment's candidates, and which n-grams are not clipped.
pub struct Point {
    p: Vec<f64>,
    /// Whether more of an n-gram would raise the matches.
    open: Vec<bool>,
}

/// A precision below this counts as this.
const FLOOR: f64 = 1e-9;
/// Steepness of the rounded corner.
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
    fn occurrences(&self, i: usize) -> &[u32] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.grams[start as usize..self.ends[i] as usize]
    }
}

impl ScoreLoss for Xbleu {
    type Point = Point;

    /// Matches, totals, reference length: as BLEU's statistics.
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

/// Minus BLEU of summed expectations (matches, totals, reference length), and its derivative.
pub(super) fn value(n: usize, brevity: Brevity, sums: &[f64], d_sums: &mut [f64]) -> f64 {
    d_sums.fill(0.0);
    let mut log = 0.0;
    for o in 0..n {
        let (matched, total) = (sums[o], sums[n + o]);
        let precision = if total > 0.0 { matched / total } else { 0.0 };
        log += precision.max(FLOOR).ln() / n as f64;
        if precision > FLOOR {
            d_sums[o] = 1.0 / (n as f64 * matched);
            d_sums[n + o] = -1.0 / (n as f64 * total);
        }
    }
    let (c, r) = (sums[n], sums[2 * n]);
    let x = if c > 0.0 { 1.0 - r / c } else { 0.0 };
    let (penalty, slope) = brevity.at(x);
    let bleu = log.exp() * penalty;
    for d in d_sums.iter_mut() {
        *d *= -bleu;
    }
    if c > 0.0 {
        d_sums[n] -= log.exp() * slope * r / (c * c);
        d_sums[2 * n] += log.exp() * slope / c;
    }
    -bleu
}

impl Brevity {
    /// The penalty at x = 1 − r/c, and its derivative.
    fn at(self, x: f64) -> (f64, f64) {
        match self {
            Brevity::Exact if x < 0.0 => (x.exp(), x.exp()),
            Brevity::Smooth if x < 0.5 => {
                let e = (STEEP * x).exp();
                let share = 1.0 / (1.0 + e);
                let slope = x.exp() * share - x.exp_m1() * STEEP * e * share * share;
                (x.exp_m1() * share + 1.0, slope)
            }
            _ => (1.0, 0.0),
        }
    }
}
