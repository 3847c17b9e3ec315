//! APRO (Dreyer and Dong 2015): squared hinge loss over all pairs of candidates, in O(k log k) per segment.
//!
//! hᵢ = w·fᵢ is the model score and bᵢ the sentence score of candidate i of a segment, kₛ the number of its
//! candidates.
//!
//! - P = {(i, j): bᵢ > bⱼ} (eq. 1); the loss of a segment is L = Σ max(0, 1 − hᵢ + hⱼ)² over (i, j) ∈ P (eq. 2).
//! - The objective is ½‖w‖² + C/N Σₛ L with N = Σₛ kₛ (eq. 3); [`Apro`] is its second term. L grows with kₛ², its
//!   divisor with kₛ, so the C that suits eq. 3 depends on the length of the lists. [`AproScale::Pairs`], the default of
//!   the recipe, takes means instead: ½‖w‖² + C/S Σₛ L/|P| over the S segments with |P| > 0.
//! - Q = {(i, j) ∈ P: 1 − hᵢ + hⱼ > 0} (eq. 4) are the violated pairs; qᵢ• and q•ᵢ count those with i as
//!   better and as worse candidate (eq. 5, 6); rᵢ• = Σ hⱼ over (i, j) ∈ Q (eq. 7), and likewise r•ᵢ = Σ hⱼ
//!   over (j, i) ∈ Q.
//! - In terms of these, L = Σᵢ (qᵢ•(1 − hᵢ)² + 2(1 − hᵢ)rᵢ• + Σ hⱼ² over (i, j) ∈ Q). This equals eq. 11, which
//!   moves the terms in hⱼ² and 2hⱼ to q•ⱼ.
//! - Gradient: ∂L/∂hᵢ = −2(qᵢ•(1 − hᵢ) + rᵢ•) + 2(q•ᵢ(1 + hᵢ) − r•ᵢ).
//! - Hessian product along v: 2((qᵢ• + q•ᵢ)vᵢ − Σ vⱼ over the partners j of i in Q).
//!
//! With candidates sorted by h, the candidates within the margin of candidate i form a window that only grows
//! from one candidate to the next. Those in the window with a lower (or higher) sentence score are a prefix (or
//! suffix) of ranks, and a Fenwick tree over ranks sums over them in O(log k); the paper uses order statistics
//! trees. Scores are shifted by their median before they are squared, which changes no difference hᵢ − hⱼ and
//! avoids cancellation.

use super::ScoreLoss;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Divisor of the loss of APRO, which decides how the weight of the loss depends on the length of the lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum AproScale {
    /// Mean over the pairs of a segment, then over segments: one C for lists of any length.
    Pairs,
    /// Sum over pairs divided by the number of candidates (Dreyer and Dong 2015, eq. 3): C depends on the length of lists.
    Candidates,
}

/// All-pairs squared hinge loss (Dreyer and Dong 2015): C times the sum, by segment, of max(0, 1 − sᵢ + sⱼ)² over all
/// pairs of candidates with model scores s and sentence scores bᵢ > bⱼ, divided as [`AproScale`] says.
/// Value, gradient and Hessian product each cost O(k log k) per segment, by a Fenwick tree over the ranks
/// of b.
pub struct Apro {
    segments: Vec<Segment>,
}

/// Ranks of a segment's candidates by sentence score.
struct Segment {
    /// Rank of each candidate, from 0 for the lowest score; equal scores have equal ranks.
    rank: Vec<u32>,
    /// Number of different ranks.
    ranks: usize,
    /// Factor of the segment's loss: C/N, or C/(S·|P|).
    scale: f64,
}

/// Candidates of a segment sorted by model score, with their violated pairs.
pub struct Point {
    /// Candidates in ascending order of model score h.
    order: Vec<u32>,
    /// By position i in `order`: first position j with hᵢ − hⱼ < 1, where i is the better candidate.
    below: Vec<u32>,
    /// By position j in `order`: end of the positions i with hᵢ − hⱼ < 1, where j is the worse candidate.
    above: Vec<u32>,
    /// By position in `order`: rank of the sentence score.
    rank: Vec<u32>,
    /// By position i in `order`: qᵢ• + q•ᵢ, the number of violated pairs.
    active: Vec<f64>,
    /// By candidate i: the derivative of the scaled loss by hᵢ.
    slope: Vec<f64>,
}

impl Apro {
    /// Builds the loss with weight C from the sentence scores of all candidates, by segment; only their order
    /// within a segment matters.
    pub fn new(c: f64, by: AproScale, gain: &[Vec<f64>]) -> Self {
        let candidates: usize = gain.iter().map(Vec::len).sum();
        let ranked = gain.par_iter().map(|b| {
            let mut sorted = b.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            let tied: usize = sorted.chunk_by(|x, y| x == y).map(|run| run.len() * (run.len() - 1) / 2).sum();
            let pairs = b.len() * b.len().saturating_sub(1) / 2 - tied;
            sorted.dedup();
            let rank = b.iter().map(|x| sorted.partition_point(|y| y < x) as u32).collect();
            (Segment { rank, ranks: sorted.len(), scale: 0.0 }, pairs)
        });
        let ranked: Vec<(Segment, usize)> = ranked.collect();
        let segments = ranked.iter().filter(|(_, pairs)| *pairs > 0).count();
        let scaled = |(segment, pairs): (Segment, usize)| {
            let divisor = match by {
                AproScale::Pairs => segments * pairs,
                AproScale::Candidates => candidates,
            };
            Segment { scale: c / divisor.max(1) as f64, ..segment }
        };
        Apro { segments: ranked.into_iter().map(scaled).collect() }
    }
}

impl ScoreLoss for Apro {
    type Point = Point;

    fn forward(&self, segment: usize, scores: Vec<f64>, sums: &mut [f64]) -> Point {
        let Segment { rank, ranks, scale } = &self.segments[segment];
        let k = scores.len();
        let mut order: Vec<u32> = (0..k as u32).collect();
        order.sort_unstable_by(|&a, &b| {
            scores[a as usize].total_cmp(&scores[b as usize]).then_with(|| a.cmp(&b))
        });
        let h: Vec<f64> = order.iter().map(|&i| scores[i as usize]).collect();
        let rank: Vec<u32> = order.iter().map(|&i| rank[i as usize]).collect();
        let violated = |i: usize, j: usize| h[i] - h[j] < 1.0;
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
        // The loss depends on differences only; squares around the median lose no digits.
        let median = h.get(k / 2).copied().unwrap_or(0.0);
        let h: Vec<f64> = h.iter().map(|h| h - median).collect();
        // Summed over partners, 1, h and h² give q, r and Σ h².
        let terms: Vec<[f64; 3]> = h.iter().map(|&h| [1.0, h, h * h]).collect();
        let mut slope = vec![0.0; k];
        let mut value = 0.0;
        let mut active = vec![0.0; k];
        point.partners(*ranks, &terms, |i, higher, [q, r, squares]| {
            // qᵢ• and rᵢ• over partners of lower rank, or q•ᵢ and r•ᵢ over partners of higher rank: every
            // pair is visited twice, once from each side.
            let sign = if higher { -1.0 } else { 1.0 };
            let gap = 1.0 - sign * h[i];
            active[i] += q;
            slope[i] -= 2.0 * sign * (q * gap + sign * r);
            if !higher {
                value += q * gap * gap + 2.0 * gap * r + squares;
            }
        });
        for (p, &i) in point.order.iter().enumerate() {
            point.slope[i as usize] = scale * slope[p];
        }
        point.active = active;
        // Rounding can leave a value slightly below 0.
        sums[0] += scale * value.max(0.0);
        point
    }

    fn value(&self, sums: &[f64], d_sums: &mut [f64]) -> f64 {
        d_sums[0] = 1.0;
        sums[0]
    }

    fn backward(&self, _: usize, point: &Point, d_sums: &[f64], d_scores: &mut [f64]) {
        for (d, s) in d_scores.iter_mut().zip(&point.slope) {
            *d = d_sums[0] * s;
        }
    }

    fn curve(&self, segment: usize, point: &Point, d_sums: &[f64], v: &[f64], out: &mut [f64]) -> bool {
        let terms: Vec<[f64; 1]> = point.order.iter().map(|&i| [v[i as usize]]).collect();
        let mut sums = vec![0.0; v.len()];
        let Segment { ranks, scale, .. } = &self.segments[segment];
        point.partners(*ranks, &terms, |i, _, [sum]| sums[i] += sum);
        for (p, &i) in point.order.iter().enumerate() {
            out[i as usize] = 2.0 * scale * d_sums[0] * (point.active[p] * terms[p][0] - sums[p]);
        }
        true
    }
}

impl Point {
    /// Calls `visit` twice for every position in `order`, with the sums of `terms` over its partners in Q:
    /// those of lower rank (false), and those of higher rank (true).
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
        // Ranks in reverse: higher ranks come first.
        let reversed = |rank: u32| ranks - 1 - rank as usize;
        for j in 0..k {
            while end < self.above[j] as usize {
                tree.add(reversed(self.rank[end]), &terms[end]);
                end += 1;
            }
            visit(j, true, tree.before(reversed(self.rank[j])));
        }
    }
}

/// Binary indexed tree: prefix sums with updates in O(log n) (Fenwick 1994).
struct Fenwick<const N: usize>(Vec<[f64; N]>);

impl<const N: usize> Fenwick<N> {
    fn new(n: usize) -> Self {
        Fenwick(vec![[0.0; N]; n + 1])
    }

    /// Adds `x` at position `at`.
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

    /// Returns the sum over positions below `at`.
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
