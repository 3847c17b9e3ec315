//! Expectations over derivations under p(d) = exp(score(d))/Z, and their derivatives (Li and Eisner 2009).
//!
//! The upward pass computes ln inside(v) for every node v and the conditional probability p(e | v) of each incoming
//! edge e. With nₑ the number of uses of e in a derivation and r the sum of given edge values over a derivation, the
//! downward passes compute E(nₑ) = ∂ln Z/∂sₑ and ∂E(r)/∂sₑ = Cov(r, nₑ), where sₑ is the score of e. Each pass
//! costs O(edges).

use crate::Forest;
use luthier_core::math;

/// The distribution p(d) = exp(score(d))/Z over the derivations d of a forest, where score(d) is the sum of edge
/// scores.
///
/// ```
/// # let line = r#"{"rules":["[x] ||| the","[x] ||| a","[x] ||| [x,1] house"],"goal":1,"nodes":[
/// #     [{"rule":1,"feature":{"p":-1}},{"rule":2,"feature":{"p":-2}}],[{"tail":[0],"rule":3}]]}"#;
/// # let forest = luthier_forest::text::from_json(line)?.forest;
/// use luthier_forest::Expectation;
/// let e = Expectation::new(&forest, &[3f64.ln(), 0.0, 0.0]);
/// assert!((e.log_z - 4f64.ln()).abs() < 1e-12);
/// assert!((e.counts(&forest)[0] - 0.75).abs() < 1e-12);
/// // ∂E[r]/∂s₀ = Cov(r, n₀) = 0.75 − 0.75² where r counts edge 0.
/// assert!((e.slopes(&forest, &[1.0, 0.0, 0.0])[0] - 0.1875).abs() < 1e-12);
/// # luthier_core::Result::Ok(())
/// ```
#[derive(Debug, Clone)]
pub struct Expectation {
    /// ln Z: natural logarithm of the sum of exp(score) over all derivations; −∞ if there are none.
    pub log_z: f64,
    /// p(e | v): conditional probability of each edge given its head node.
    share: Vec<f64>,
}

impl Expectation {
    /// Returns the distribution over the derivations of a forest; `scores` holds one score per edge.
    pub fn new(forest: &Forest<'_>, scores: &[f64]) -> Self {
        let mut inside: Vec<f64> = Vec::with_capacity(forest.nodes());
        let mut share = vec![0.0; forest.edges()];
        for node in 0..forest.nodes() as u32 {
            let edges = forest.incoming(node);
            let mut largest = f64::NEG_INFINITY;
            for edge in edges.clone() {
                let below: f64 = forest.tails(edge).map(|t| inside[t as usize]).sum();
                share[edge as usize] = scores[edge as usize] + below;
                largest = largest.max(share[edge as usize]);
            }
            let share = &mut share[edges.start as usize..edges.end as usize];
            for s in share.iter_mut() {
                *s -= largest;
            }
            math::exp_in_place(share);
            let total: f64 = share.iter().sum();
            for s in share {
                *s /= total;
            }
            inside.push(largest + math::ln(total));
        }
        Expectation { log_z: inside.last().copied().unwrap_or(f64::NEG_INFINITY), share }
    }

    /// Expected number of uses of each edge, E(nₑ), which is also the derivative of ln Z with respect to the edge's
    /// score. `forest` must be the one passed to [`Expectation::new`].
    pub fn counts(&self, forest: &Forest<'_>) -> Vec<f64> {
        let mut counts = vec![0.0; forest.edges()];
        let mut visits = vec![0.0; forest.nodes()];
        if let Some(root) = visits.last_mut() {
            *root = 1.0;
        }
        for node in (0..forest.nodes() as u32).rev() {
            for edge in forest.incoming(node) {
                let count = visits[node as usize] * self.share[edge as usize];
                counts[edge as usize] = count;
                for t in forest.tails(edge) {
                    visits[t as usize] += count;
                }
            }
        }
        counts
    }

    /// Derivative of E(r) with respect to the score of each edge, where r is the sum of `values` over the edges of a
    /// derivation; `values` holds one value per edge. `forest` must be the one passed to [`Expectation::new`].
    pub fn slopes(&self, forest: &Forest<'_>, values: &[f64]) -> Vec<f64> {
        let mut mean: Vec<f64> = Vec::with_capacity(forest.nodes());
        let whole = |edge: u32, mean: &[f64]| -> f64 {
            values[edge as usize] + forest.tails(edge).map(|t| mean[t as usize]).sum::<f64>()
        };
        for node in 0..forest.nodes() as u32 {
            let expected =
                forest.incoming(node).map(|e| self.share[e as usize] * whole(e, &mean)).sum::<f64>();
            mean.push(expected);
        }
        let mut slopes = vec![0.0; forest.edges()];
        // Derivatives of the root's mean with respect to the mean and the log inside value of each node.
        let mut by_mean = vec![0.0; forest.nodes()];
        let mut by_inside = vec![0.0; forest.nodes()];
        if let Some(root) = by_mean.last_mut() {
            *root = 1.0;
        }
        for node in (0..forest.nodes() as u32).rev() {
            let (here, above) = (by_mean[node as usize], by_inside[node as usize]);
            for edge in forest.incoming(node) {
                let share = self.share[edge as usize];
                let slope = share * (here * (whole(edge, &mean) - mean[node as usize]) + above);
                slopes[edge as usize] = slope;
                for t in forest.tails(edge) {
                    by_inside[t as usize] += slope;
                    by_mean[t as usize] += share * here;
                }
            }
        }
        slopes
    }
}

impl Forest<'_> {
    /// Adds Σ value · feature over all edges to `out`, which is indexed by local feature number. It turns derivatives
    /// with respect to edge scores into derivatives with respect to weights.
    pub fn add_features(&self, values: &[f64], out: &mut [f64]) {
        let mut rules = vec![0.0; self.rules.target.len()];
        for edge in 0..self.edges() as u32 {
            let x = values[edge as usize];
            rules[self.rule(edge) as usize] += x;
            for (f, v) in self.own_features(edge) {
                out[f as usize] += x * f64::from(v);
            }
        }
        for (r, &x) in rules.iter().enumerate().filter(|r| *r.1 != 0.0) {
            for (f, v) in self.rules.features.row(r as u32) {
                out[f as usize] += x * f64::from(v);
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the functions of std serve as reference")]
mod tests {
    use super::*;
    use crate::{
        KBest,
        tests::{numbers, random},
    };
    use luthier_core::random::{Purpose, Stream};

    #[test]
    fn equals_enumeration_and_differences() {
        for seed in 0..80 {
            let mut stream = Stream::new(seed, Purpose::Test, 5, 0);
            let forest = random(seed).0;
            let scores = numbers(&mut stream, &forest);
            let values = numbers(&mut stream, &forest);
            let all: Vec<_> = KBest::new(&forest, &scores, false).take(1_000).collect();
            if all.len() == 1_000 || all.is_empty() {
                continue;
            }
            let e = Expectation::new(&forest, &scores);
            let z: f64 = all.iter().map(|d| d.score.exp()).sum();
            assert!((e.log_z - z.ln()).abs() < 1e-9);
            let value = |d: &crate::Derivation| d.edges.iter().map(|&e| values[e as usize]).sum::<f64>();
            let mean: f64 = all.iter().map(|d| d.score.exp() / z * value(d)).sum();
            let (counts, slopes) = (e.counts(&forest), e.slopes(&forest, &values));
            for edge in 0..forest.edges() {
                let times =
                    |d: &crate::Derivation| d.edges.iter().filter(|e| **e as usize == edge).count() as f64;
                let count: f64 = all.iter().map(|d| d.score.exp() / z * times(d)).sum();
                assert!((counts[edge] - count).abs() < 1e-9, "{seed}");
                // ∂E[r]/∂θₑ = Cov(r, nₑ).
                let both: f64 = all.iter().map(|d| d.score.exp() / z * times(d) * value(d)).sum();
                assert!((slopes[edge] - (both - count * mean)).abs() < 1e-9, "{seed}");
            }
        }
    }
}
