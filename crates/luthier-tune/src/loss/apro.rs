//! All pairs with a squared hinge (Dreyer and Dong 2015): C/N Σ over pairs with bᵢ > bⱼ of max(0, 1 − sᵢ + sⱼ)².
//!
//! A pair counts if sᵢ − sⱼ < 1. With candidates sorted by score, the partners of a candidate that lie in this
//! window are a growing set, and those of lower (or higher) metric score among them a prefix (or suffix) of ranks:
//! a Fenwick tree over ranks gives their number and the sum of anything in O(log k).

use super::ScoreLoss;
use rayon::prelude::*;

/// All-pairs squared hinge loss (Dreyer and Dong 2015): C/N Σ max(0, 1 − sᵢ + sⱼ)² over all pairs of a
/// segment with metric scores bᵢ > bⱼ, N candidates in all. Value, gradient and Hessian product each cost O(k
/// log k) per segment, by a Fenwick tree over the ranks of b.
pub struct Apro {
    scale: f64,
    segments: Vec<Segment>,
}

/// The order of a segment's candidates by metric score.
struct Segment {
    /// Equal scores, equal rank; from 0 for the lowest.
    rank: Vec<u32>,
    ranks: usize,
}

/// The candidates of a segment in the order of their scores, with the pairs that are within the margin.
pub struct Point {
    /// Candidates by model score, ascending.
    order: Vec<u32>,
    /// By position in `order`: where the window of lower-ranked partners begins, and that of higher-ranked ones
    /// ends.
    below: Vec<u32>,
    above: Vec<u32>,
    /// By position in `order`: rank, number of active pairs.
    rank: Vec<u32>,
    active: Vec<f64>,
    /// Derivative of the unscaled loss, by candidate.
    slope: Vec<f64>,
}

impl Apro {
    /// Builds the loss with weight C from the metric scores of all candidates, by segment; only their order
    /// counts.
    pub fn new(c: f64, gain: &[Vec<f64>]) -> Self {
        let n: usize = gain.iter().map(Vec::len).sum();
        let segments = gain.par_iter().map(|b| {
            let mut distinct = b.clone();
            distinct.sort_unstable_by(f64::total_cmp);
            distinct.dedup();
            let rank = b.iter().map(|x| distinct.partition_point(|y| y < x) as u32).collect();
            Segment { rank, ranks: distinct.len() }
        });
        Apro { scale: c / n.max(1) as f64, segments: segments.collect() }
    }
}

impl ScoreLoss for Apro {
    type Point = Point;

    fn forward(&self, segment: usize, scores: Vec<f64>, sums: &mut [f64]) -> Point {
        let Segment { rank, ranks } = &self.segments[segment];
        let k = scores.len();
        let mut order: Vec<u32> = (0..k as u32).collect();
        order.sort_unstable_by(|&a, &b| {
            scores[a as usize].total_cmp(&scores[b as usize]).then_with(|| a.cmp(&b))
        });
        let s: Vec<f64> = order.iter().map(|&i| scores[i as usize]).collect();
        let rank: Vec<u32> = order.iter().map(|&i| rank[i as usize]).collect();
        let violated = |good: usize, bad: usize| s[good] - s[bad] < 1.0;
        let mut below = vec![0u32; k];
        let mut start = k;
        for i in (0..k).rev() {
            while start > 0 && violated(i, start - 1) {
                start -= 1;
            }
            below[i] = start as u32;
        }
        let mut above = vec![0u32; k];
        let mut end = 0;
        for (j, a) in above.iter_mut().enumerate() {
            while end < k && violated(end, j) {
                end += 1;
            }
            *a = end as u32;
        }
        let mut point = Point { order, below, above, rank, active: vec![0.0; k], slope: vec![0.0; k] };
        // Pairs see only differences: sums of squares around the middle lose no digits.
        let middle = s.get(k / 2).copied().unwrap_or(0.0);
        let s: Vec<f64> = s.iter().map(|s| s - middle).collect();
        // Σ over partners of 1, s and s².
        let terms: Vec<[f64; 3]> = s.iter().map(|&s| [1.0, s, s * s]).collect();
        let mut slope = vec![0.0; k];
        let mut value = 0.0;
        let mut active = vec![0.0; k];
        point.partners(*ranks, &terms, |i, higher, [n, sum, squares]| {
            // Partners of i in the role that `higher` says; every pair is met twice, once from each side.
            let sign = if higher { -1.0 } else { 1.0 };
            let gap = 1.0 - sign * s[i];
            active[i] += n;
            slope[i] -= 2.0 * sign * (n * gap + sign * sum);
            if !higher {
                value += n * gap * gap + 2.0 * gap * sum + squares;
            }
        });
        for (p, &i) in point.order.iter().enumerate() {
            point.slope[i as usize] = slope[p];
        }
        point.active = active;
        // What cancels in the sums may leave a value a hair below 0.
        sums[0] += value.max(0.0);
        point
    }

    fn value(&self, sums: &[f64], d_sums: &mut [f64]) -> f64 {
        d_sums[0] = self.scale;
        self.scale * sums[0]
    }

    fn backward(&self, _: usize, point: &Point, d_sums: &[f64], d_scores: &mut [f64]) {
        for (d, s) in d_scores.iter_mut().zip(&point.slope) {
            *d = d_sums[0] * s;
        }
    }

    fn curve(&self, segment: usize, point: &Point, d_sums: &[f64], v: &[f64], out: &mut [f64]) -> bool {
        let terms: Vec<[f64; 1]> = point.order.iter().map(|&i| [v[i as usize]]).collect();
        let mut sums = vec![0.0; v.len()];
        point.partners(self.segments[segment].ranks, &terms, |i, _, [sum]| sums[i] += sum);
        for (p, &i) in point.order.iter().enumerate() {
            out[i as usize] = 2.0 * d_sums[0] * (point.active[p] * terms[p][0] - sums[p]);
        }
        true
    }
}

impl Point {
    /// For every position: the sums of `terms` over its active partners of lower rank, and of higher rank.
    fn partners<const N: usize>(
        &self,
        ranks: usize,
        terms: &[[f64; N]],
        mut visit: impl FnMut(usize, bool, [f64; N]),
    ) {
        let k = terms.len();
        let mut tree = Fenwick::new(ranks);
        let mut start = k;
        for i in (0..k).rev() {
            while start > self.below[i] as usize {
                start -= 1;
                tree.add(self.rank[start] as usize, &terms[start]);
            }
            visit(i, false, tree.before(self.rank[i] as usize));
        }
        let mut tree = Fenwick::new(ranks);
        let mut end = 0;
        // Ranks turned round: higher ones come first.
        let turned = |rank: u32| ranks - 1 - rank as usize;
        for j in 0..k {
            while end < self.above[j] as usize {
                tree.add(turned(self.rank[end]), &terms[end]);
                end += 1;
            }
            visit(j, true, tree.before(turned(self.rank[j])));
        }
    }
}

/// Prefix sums that can be added to (Fenwick 1994).
struct Fenwick<const N: usize>(Vec<[f64; N]>);

impl<const N: usize> Fenwick<N> {
    fn new(n: usize) -> Self {
        Fenwick(vec![[0.0; N]; n + 1])
    }

    #[inline]
    fn add(&mut self, at: usize, x: &[f64; N]) {
        let mut i = at + 1;
        while i < self.0.len() {
            for (t, x) in self.0[i].iter_mut().zip(x) {
                *t += x;
            }
            i += i & i.wrapping_neg();
        }
    }

    /// The sum over places below `at`.
    #[inline]
    fn before(&self, at: usize) -> [f64; N] {
        let mut sum = [0.0; N];
        let mut i = at;
        while i > 0 {
            for (s, t) in sum.iter_mut().zip(&self.0[i]) {
                *s += t;
            }
            i &= i - 1;
        }
        sum
    }
}
