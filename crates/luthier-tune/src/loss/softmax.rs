//! Softmax loss: −(1/N) Σ log(Z(oracles)/Z(list)), Z = Σ exp(γs) (Watanabe 2012, eq. 6).

use super::{ScoreLoss, softmax};

/// Negative log-likelihood of the oracles, −(1/N) Σ log(Z(oracles)/Z(list)) over N segments with Z = Σ
/// exp(γs) (Watanabe 2012, eq. 6).
pub struct Softmax {
    /// γ: scale of the scores in Z = Σ exp(γs), above 0.
    pub gamma: f64,
    /// Whether each candidate is an oracle, by segment; at least one per segment that has candidates.
    pub oracle: Vec<Vec<bool>>,
}

impl ScoreLoss for Softmax {
    /// p of each candidate, and of each oracle among oracles.
    type Point = (Vec<f64>, Vec<f64>);

    fn forward(&self, segment: usize, scores: Vec<f64>, sums: &mut [f64]) -> Self::Point {
        let oracle = &self.oracle[segment];
        if scores.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let (p, z) = softmax(self.gamma, &scores);
        let good: Vec<f64> =
            scores.iter().zip(oracle).map(|(&s, &o)| if o { s } else { f64::NEG_INFINITY }).collect();
        let (q, z_oracle) = softmax(self.gamma, &good);
        sums[0] += z - z_oracle;
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
