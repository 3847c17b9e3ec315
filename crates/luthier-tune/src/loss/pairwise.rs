//! PRO (Hopkins and May 2011): loss of given pairs of candidates as a function of the difference of their scores.
//!
//! For a pair (i, j) with sentence scores bᵢ > bⱼ, d = sᵢ − sⱼ = w·(fᵢ − fⱼ).
//!
//! - Logistic: 2 Σ log(1 + e^{−d}), the loss of logistic regression on the difference vectors fᵢ − fⱼ with
//!   label 1 and fⱼ − fᵢ with label −1 (Dreyer and Dong 2015, §3, step 3): both have the same loss, hence the
//!   factor 2. The derivative of a term is −σ(−d), the second derivative σ(−d)·σ(d), with σ the logistic
//!   function.
//! - Hinge: 1/M Σ max(0, 1 − d) over M pairs (Watanabe 2012, eq. 5). The sub-gradient of a term is −1 where d <
//!   1, else 0.
//!
//! [`Pairs`](crate::pairs::Pairs) selects the pairs. An evaluation costs O(1) per pair.

use super::ScoreLoss;
use luthier_core::math;
use serde::{Deserialize, Serialize};

/// Loss of a pair of candidates as a function of d = s(better) − s(worse), the difference of their model scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Margin {
    /// Logistic loss log(1 + e^{−d}), d being the difference of model scores.
    Logistic,
    /// Hinge loss max(0, 1 − d), d being the difference of model scores.
    Hinge,
}

/// Pairwise ranking loss: the sum over given pairs of a logistic or hinge loss (Hopkins and May 2011;
/// Watanabe 2012, eq. 5).
pub struct Pairwise {
    /// Loss of one pair: logistic or hinge.
    pub margin: Margin,
    /// Factor of the sum over pairs: 2 to count both signs of each pair, 1/M for the mean over M pairs.
    pub scale: f64,
    /// Pairs of each segment, as indices of the better and the worse candidate.
    pub pairs: Vec<Vec<(u32, u32)>>,
}

impl Margin {
    /// Returns the sum of the losses of pairs with differences `d`, and replaces each d by minus the derivative of its
    /// loss: σ(−d), the probability that the pair is ranked wrongly, or whether the pair is within the margin.
    fn apply(self, d: &mut [f64]) -> f64 {
        match self {
            Margin::Logistic => {
                // e = e^{−|d|} does not overflow: log(1 + e^{−d}) = max(−d, 0) + log(1 + e), and σ(−d) is e/(1 + e)
                // for d ≥ 0, else 1/(1 + e).
                let mut e: Vec<f64> = d.iter().map(|d| -d.abs()).collect();
                math::exp_in_place(&mut e);
                let mut log = e.clone();
                math::ln_1p_in_place(&mut log);
                let loss = d.iter().zip(&log).map(|(d, log)| (-d).max(0.0) + log).sum();
                for (d, e) in d.iter_mut().zip(&e) {
                    *d = if *d >= 0.0 { *e } else { 1.0 } / (1.0 + e);
                }
                loss
            }
            Margin::Hinge => {
                let loss = d.iter().map(|d| (1.0 - d).max(0.0)).sum();
                for d in d {
                    *d = f64::from(u8::from(*d < 1.0));
                }
                loss
            }
        }
    }
}

impl ScoreLoss for Pairwise {
    /// Minus the derivative of the loss of every pair with respect to the difference d of its scores.
    type Point = Vec<f64>;

    fn forward(&self, segment: usize, scores: Vec<f64>, sums: &mut [f64]) -> Vec<f64> {
        let mut d: Vec<f64> =
            self.pairs[segment].iter().map(|&(a, b)| scores[a as usize] - scores[b as usize]).collect();
        sums[0] += self.margin.apply(&mut d);
        d
    }

    fn value(&self, sums: &[f64], d_sums: &mut [f64]) -> f64 {
        d_sums[0] = self.scale;
        self.scale * sums[0]
    }

    fn backward(&self, segment: usize, slopes: &Vec<f64>, d_sums: &[f64], d_scores: &mut [f64]) {
        for (&(a, b), slope) in self.pairs[segment].iter().zip(slopes) {
            let pull = d_sums[0] * slope;
            d_scores[a as usize] -= pull;
            d_scores[b as usize] += pull;
        }
    }

    fn curve(&self, segment: usize, slopes: &Vec<f64>, d_sums: &[f64], v: &[f64], out: &mut [f64]) -> bool {
        if self.margin == Margin::Hinge {
            return false;
        }
        for (&(a, b), p) in self.pairs[segment].iter().zip(slopes) {
            let bend = d_sums[0] * p * (1.0 - p) * (v[a as usize] - v[b as usize]);
            out[a as usize] += bend;
            out[b as usize] -= bend;
        }
        true
    }
}
