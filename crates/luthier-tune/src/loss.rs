//! Losses over a pool as functions of the scores s = Xw, and the regularised objectives that minimisers evaluate.
//!
//! A [`ScoreLoss`] is the loss as a function of the scores alone; [`Regularized`] combines it with the feature
//! matrix and the regulariser l2/2 ‖w‖². The losses are [`Pairwise`] (PRO), [`Apro`], [`Softmax`], [`Xbleu`]
//! and [`Risk`]; [`OnForests`] implements softmax and xBLEU over forests. An evaluation costs O(k), for APRO
//! O(k log k), per segment of k candidates, and two products with the feature matrix.
//!
//! ```
//! use luthier_core::Weights;
//! use luthier_io::nbest::Rows;
//! use luthier_tune::{FeatureMatrix, Fleet, columns, loss::{Regularized, Risk}};
//! use luthier_optim::Objective as _;
//! let mut rows = Rows::default();
//! rows.push(0, "good", &[("lm", 1.0)], &[]).unwrap();
//! rows.push(0, "bad", &[("lm", -1.0)], &[]).unwrap();
//! let lists = luthier_tune::lists(&rows, &columns(&rows, None), None).unwrap();
//! let lists = lists.into_iter().map(Into::into).collect();
//! let design = FeatureMatrix::new(lists, &Weights::parse("w.txt", "lm 0").unwrap());
//! let loss = Risk { gamma: 1.0, gain: vec![vec![0.8, 0.2]] };
//! let mut objective = Regularized::new(design.into(), loss, 0.0, Fleet::ALONE);
//! let mut gradient = [0.0];
//! assert_eq!(objective.evaluate(&[0.0], &mut gradient), -0.5); // minus the mean of 0.8 and 0.2
//! assert!((gradient[0] + 0.3).abs() < 1e-12); // −cov(score, lm)
//! ```

mod apro;
mod forest;
mod pairwise;
mod risk;
mod softmax;
mod xbleu;

pub use apro::{Apro, AproScale};
pub use forest::OnForests;
pub use pairwise::{Margin, Pairwise};
pub use risk::Risk;
pub use softmax::Softmax;
pub use xbleu::{Brevity, Clip, Xbleu};

use crate::{FeatureMatrix, Fleet};
use luthier_core::math;
use luthier_optim::{Objective, axpy, dot};
use std::sync::Arc;

/// A loss that depends on the weights through the scores s = Xw alone, as a function of sums over segments.
/// [`Regularized`] handles the feature matrix, threads and processes.
///
/// Laws: `backward` is the derivative of `value` with respect to the scores, `curve` that of `backward` along
/// a direction; the sums of segments add.
pub trait ScoreLoss: Sync {
    /// Values that a segment keeps from the forward pass for the backward pass, such as probabilities.
    type Point: Send + Sync;
    /// Returns the number of sums over segments that the value is a function of.
    fn width(&self) -> usize {
        1
    }
    /// Adds a segment's share to `sums` and returns what [`ScoreLoss::backward`] needs; `scores` are those of
    /// its candidates.
    fn forward(&self, segment: usize, scores: Vec<f64>, sums: &mut [f64]) -> Self::Point;
    /// Returns the loss as a function of the sums over segments, and writes its derivative with respect to
    /// them to `d_sums`.
    fn value(&self, sums: &[f64], d_sums: &mut [f64]) -> f64;
    /// Returns whether the derivative of the loss with respect to the sums is constant, so that value and
    /// gradient take one pass over the features instead of two.
    fn is_linear(&self) -> bool {
        true
    }
    /// Writes the derivative of the loss with respect to the scores of a segment to `d_scores`, which is zero
    /// before.
    fn backward(&self, segment: usize, point: &Self::Point, d_sums: &[f64], d_scores: &mut [f64]);
    /// Writes the derivative of [`ScoreLoss::backward`] along the direction `v` of a segment's scores to
    /// `out`; returns false if the loss has no second derivative.
    fn curve(
        &self,
        _segment: usize,
        _point: &Self::Point,
        _d_sums: &[f64],
        _v: &[f64],
        _out: &mut [f64],
    ) -> bool {
        false
    }
}

/// The objective loss(Xw) + l2/2 ‖w‖² over a feature matrix, in the form that minimisers take.
pub struct Regularized<'a, L: ScoreLoss> {
    /// The feature matrix X.
    design: Arc<FeatureMatrix>,
    loss: L,
    /// Weight of the regulariser ½‖w‖².
    l2: f64,
    fleet: Fleet<'a>,
    /// Results of the last forward pass for the segments of this process.
    points: Vec<L::Point>,
    /// First segment of this process.
    first: usize,
    /// Derivative of the loss with respect to the sums over segments.
    d_sums: Vec<f64>,
}

impl<'a, L: ScoreLoss> Regularized<'a, L> {
    /// Combines a feature matrix, a loss over its segments and a regulariser of weight `l2`. All processes of a
    /// fleet must pass the same arguments.
    pub fn new(design: Arc<FeatureMatrix>, loss: L, l2: f64, fleet: Fleet<'a>) -> Self {
        let mut d_sums = vec![0.0; loss.width()];
        loss.value(&vec![0.0; loss.width()], &mut d_sums);
        Regularized { design, loss, l2, fleet, points: Vec::new(), first: 0, d_sums }
    }

    /// Returns Xᵀ·∂loss/∂s of a segment, in the segment's own numbering of features.
    fn local_gradient(&self, segment: usize, point: &L::Point) -> Vec<f64> {
        let mut d = vec![0.0; self.design.lists()[segment].k];
        self.loss.backward(segment, point, &self.d_sums, &mut d);
        self.design.transpose(segment, &d)
    }

    fn point(&self, segment: usize) -> &L::Point {
        &self.points[segment - self.first]
    }

    fn forward(&self, segment: usize, w: &[f64], sums: &mut [f64]) -> L::Point {
        let scores = self.design.scores(segment, &self.design.gather(segment, w));
        self.loss.forward(segment, scores, sums)
    }
}

impl<L: ScoreLoss> Objective for Regularized<'_, L> {
    fn dim(&self) -> usize {
        self.design.dim()
    }

    fn evaluate(&mut self, w: &[f64], gradient: &mut [f64]) -> f64 {
        gradient.fill(0.0);
        let mut sums = vec![0.0; self.loss.width()];
        let value = if self.loss.is_linear() {
            (self.first, self.points) = self.design.visit(self.fleet, &mut sums, gradient, |s, sums| {
                let point = self.forward(s, w, sums);
                let local = self.local_gradient(s, &point);
                (point, local)
            });
            self.loss.value(&sums, &mut self.d_sums)
        } else {
            let forward = |s: usize, sums: &mut [f64]| (self.forward(s, w, sums), Vec::new());
            (self.first, self.points) = self.design.visit(self.fleet, &mut sums, gradient, forward);
            let value = self.loss.value(&sums, &mut self.d_sums);
            let backward = |s: usize, _: &mut [f64]| ((), self.local_gradient(s, self.point(s)));
            self.design.visit(self.fleet, &mut [], gradient, backward);
            value
        };
        axpy(self.l2, w, gradient);
        value + 0.5 * self.l2 * dot(w, w)
    }

    fn curve(&mut self, v: &[f64], out: &mut [f64]) -> bool {
        out.fill(0.0);
        let mut unknown = [0.0];
        self.design.visit(self.fleet, &mut unknown, out, |s, unknown| {
            let moved = self.design.scores(s, &self.design.gather(s, v));
            let mut d = vec![0.0; moved.len()];
            let known = self.loss.curve(s, self.point(s), &self.d_sums, &moved, &mut d);
            unknown[0] = f64::from(u8::from(!known));
            ((), if known { self.design.transpose(s, &d) } else { Vec::new() })
        });
        axpy(self.l2, v, out);
        unknown[0] == 0.0
    }
}

/// Returns the probabilities pᵢ = exp(γsᵢ)/Z and log Z, with Z = Σ exp(γsᵢ).
pub(crate) fn softmax(gamma: f64, scores: &[f64]) -> (Vec<f64>, f64) {
    let largest = scores.iter().map(|s| gamma * s).fold(f64::NEG_INFINITY, f64::max);
    let mut p: Vec<f64> = scores.iter().map(|s| gamma * s - largest).collect();
    math::exp_in_place(&mut p);
    let sum: f64 = p.iter().sum();
    for x in &mut p {
        *x /= sum;
    }
    (p, largest + math::ln(sum))
}

/// Converts derivatives with respect to probabilities into derivatives with respect to scores: dᵢ ← γpᵢ(dᵢ − Σⱼ
/// pⱼdⱼ).
fn through_softmax(gamma: f64, p: &[f64], d: &mut [f64]) {
    let mean = dot(p, d);
    for (d, p) in d.iter_mut().zip(p) {
        *d = gamma * p * (*d - mean);
    }
}

#[cfg(test)]
mod tests;
