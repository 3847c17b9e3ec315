//! Loss of given pairs of candidates as a function of the difference of their scores: logistic or hinge.

use super::ScoreLoss;
use serde::{Deserialize, Serialize};

/// Loss of a pair as a function of d = s(better) − s(worse).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Margin {
    /// Logistic loss log(1 + e^{−d}).
    Logistic,
    /// Hinge loss max(0, 1 − d).
    Hinge,
}

/// Pairwise ranking loss: the sum over given pairs of a logistic or hinge loss (Hopkins and May 2011;
/// Watanabe 2012, eq. 5).
pub struct Pairwise {
    /// Loss of one pair: logistic or hinge.
    pub margin: Margin,
    /// Factor of the sum over pairs: 2 counts both signs of each pair, 1/M takes the mean of M pairs.
    pub scale: f64,
    /// Pairs of each segment, as indices of the better and the worse candidate.
    pub pairs: Vec<Vec<(u32, u32)>>,
}

/// The probability that the pair is ranked wrongly.
fn wrong(d: f64) -> f64 {
    if d >= 0.0 { (-d).exp() / (1.0 + (-d).exp()) } else { 1.0 / (1.0 + d.exp()) }
}

impl ScoreLoss for Pairwise {
    /// d of every pair.
    type Point = Vec<f64>;

    fn forward(&self, segment: usize, scores: Vec<f64>, sums: &mut [f64]) -> Vec<f64> {
        let d: Vec<f64> =
            self.pairs[segment].iter().map(|&(a, b)| scores[a as usize] - scores[b as usize]).collect();
        sums[0] += d
            .iter()
            .map(|&d| match self.margin {
                Margin::Logistic => (-d).max(0.0) + (-d.abs()).exp().ln_1p(),
                Margin::Hinge => (1.0 - d).max(0.0),
            })
            .sum::<f64>();
        d
    }

    fn value(&self, sums: &[f64], d_sums: &mut [f64]) -> f64 {
        d_sums[0] = self.scale;
        self.scale * sums[0]
    }

    fn backward(&self, segment: usize, d: &Vec<f64>, d_sums: &[f64], d_scores: &mut [f64]) {
        for (&(a, b), &d) in self.pairs[segment].iter().zip(d) {
            let pull = d_sums[0]
                * match self.margin {
                    Margin::Logistic => wrong(d),
                    Margin::Hinge => f64::from(u8::from(d < 1.0)),
                };
            d_scores[a as usize] -= pull;
            d_scores[b as usize] += pull;
        }
    }

    fn curve(&self, segment: usize, d: &Vec<f64>, d_sums: &[f64], v: &[f64], out: &mut [f64]) -> bool {
        if self.margin == Margin::Hinge {
            return false;
        }
        for (&(a, b), &d) in self.pairs[segment].iter().zip(d) {
            let p = wrong(d);
            let bend = d_sums[0] * p * (1.0 - p) * (v[a as usize] - v[b as usize]);
            out[a as usize] += bend;
            out[b as usize] -= bend;
        }
        true
    }
}
