//! −(1/N) Σ E[sentence score], p ∝ exp(γs).

use super::{ScoreLoss, softmax, through_softmax};
use luthier_optim::dot;

/// Expected loss of single sentences.
pub struct Risk {
    /// Scale of the scores.
    pub gamma: f64,
    /// Sentence score of every candidate of every segment.
    pub gain: Vec<Vec<f64>>,
}

impl ScoreLoss for Risk {
    type Point = Vec<f64>;

    fn forward(&self, segment: usize, scores: Vec<f64>, sums: &mut [f64]) -> Vec<f64> {
        let (p, _) = softmax(self.gamma, &scores);
        sums[0] += dot(&p, &self.gain[segment]);
        p
    }

    fn value(&self, sums: &[f64], d_sums: &mut [f64]) -> f64 {
        let n = self.gain.iter().filter(|g| !g.is_empty()).count().max(1) as f64;
        d_sums[0] = -1.0 / n;
        -sums[0] / n
    }

    fn backward(&self, segment: usize, p: &Vec<f64>, d_sums: &[f64], d_scores: &mut [f64]) {
        for (d, g) in d_scores.iter_mut().zip(&self.gain[segment]) {
            *d = d_sums[0] * g;
        }
        through_softmax(self.gamma, p, d_scores);
    }
}
