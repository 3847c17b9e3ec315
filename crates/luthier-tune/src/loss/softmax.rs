//! Softmax loss: negative log-likelihood of the oracles (Watanabe 2012, eq. 6).
//!
//! The loss is 1/N Σ −log(Zₒ/Zₙ), where Zₒ = Σ exp(γs) over the oracles of a segment, Zₙ = Σ exp(γs) over
//! all its candidates, and N is the number of segments that have candidates. Its derivative with respect to the
//! score of candidate i is γ/N (pᵢ − qᵢ), with pᵢ = exp(γsᵢ)/Zₙ and qᵢ = exp(γsᵢ)/Zₒ for oracles,
//! else 0. The paper has γ = 1.

use super::{ScoreLoss, softmax};

/// Negative log-likelihood of the oracles, −1/N Σ log(Zₒ/Zₙ) over N segments, where Zₒ and Zₙ sum exp(γs) over
/// the oracles and over all candidates (Watanabe 2012, eq. 6, with γ = 1).
pub struct Softmax {
    /// γ: scale of the model scores in exp(γs), above 0.
    pub gamma: f64,
    /// Whether each candidate is an oracle, by segment; at least one per segment that has candidates.
    pub oracle: Vec<Vec<bool>>,
}

impl ScoreLoss for Softmax {
    /// Probabilities p among all candidates, and q among the oracles.
    type Point = (Vec<f64>, Vec<f64>);

    fn forward(&self, segment: usize, scores: Vec<f64>, sums: &mut [f64]) -> Self::Point {
        let oracle = &self.oracle[segment];
        if scores.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let (p, log_z_n) = softmax(self.gamma, &scores);
        let good: Vec<f64> =
            scores.iter().zip(oracle).map(|(&s, &o)| if o { s } else { f64::NEG_INFINITY }).collect();
        let (q, log_z_o) = softmax(self.gamma, &good);
        sums[0] += log_z_n - log_z_o;
        (p, q)
    }

    fn value(&self, sums: &[f64], d_sums: &mut [f64]) -> f64 {
        let n = self.oracle.iter().filter(|o| !o.is_empty()).count().max(1) as f64;
        d_sums[0] = 1.0 / n;
        sums[0] / n
    }

    fn backward(&self, _: usize, (p, q): &Self::Point, d_sums: &[f64], d_scores: &mut [f64]) {
        for ((d, p), q) in d_scores.iter_mut().zip(p).zip(q) {
            *d = d_sums[0] * self.gamma * (p - q);
        }
    }
}
