//! Risk: minus the expected sentence score (Smith and Eisner 2006).
//!
//! The loss is −1/N Σ Σₑ p(e)·b(e) over the N segments that have candidates, with p(e) ∝ exp(γs(e)) and b(e)
//! the sentence score. Its derivative with respect to the score of candidate e is −γ/N p(e)(b(e) − Σ p·b).

use super::{ScoreLoss, softmax, through_softmax};
use luthier_optim::dot;

/// Minus the expected sentence score, −1/N Σ Σₑ p(e)·b(e) over N segments with p ∝ exp(γs): minimum risk training
/// (Smith and Eisner 2006).
pub struct Risk {
    /// γ: scale of the model scores in p ∝ exp(γs), above 0.
    pub gamma: f64,
    /// Sentence score b of every candidate, by segment: from 0 to 1 for BLEU and chrF, minus the rate for TER, WER
    /// and CER, the value of a column.
    pub gain: Vec<Vec<f64>>,
}

impl ScoreLoss for Risk {
    /// Probability p of each candidate.
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
