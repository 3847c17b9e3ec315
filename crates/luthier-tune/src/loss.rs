//! Batch losses: functions of the scores s = Xw alone.

mod apro;
mod forest;
mod pairwise;
mod risk;
mod softmax;
mod xbleu;

pub use apro::Apro;
pub use forest::OnForests;
pub use pairwise::{Margin, Pairwise};
pub use risk::Risk;
pub use softmax::Softmax;
pub use xbleu::{Brevity, Clip, Xbleu};

use crate::{Design, Fleet};
use luthier_optim::{Objective, axpy, dot};
use std::sync::Arc;

/// A loss of scores. X, chunks, threads and processes are outside.
///
/// Laws: `backward` is the derivative of `value` with respect to the scores, `curve` that of `backward` along a
/// direction; `sums` of segments add.
pub trait ScoreLoss: Sync {
    /// What a segment remembers of a point between the passes.
    type Point: Send + Sync;
    /// How many sums over segments the value is made of.
    fn width(&self) -> usize {
        1
    }
    /// Adds a segment's share to the sums.
    fn forward(&self, segment: usize, scores: Vec<f64>, sums: &mut [f64]) -> Self::Point;
    /// The value, and its derivative with respect to the sums.
    fn value(&self, sums: &[f64], d_sums: &mut [f64]) -> f64;
    /// Whether that derivative is the same everywhere: then one pass over the features does.
    fn is_linear(&self) -> bool {
        true
    }
    /// The derivative with respect to the scores.
    fn backward(&self, segment: usize, point: &Self::Point, d_sums: &[f64], d_scores: &mut [f64]);
    /// The change of that derivative when the scores move along `v`; false if it is not known.
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

/// loss(Xw) + l2/2 ‖w‖²: what a minimiser sees.
pub struct Regularized<'a, L: ScoreLoss> {
    design: Arc<Design>,
    loss: L,
    l2: f64,
    fleet: Fleet<'a>,
    /// Of the segments of this process, from the first on.
    points: Vec<L::Point>,
    first: usize,
    d_sums: Vec<f64>,
}

impl<'a, L: ScoreLoss> Regularized<'a, L> {
    /// Joins features, loss and regulariser. Several processes must have the same.
    pub fn new(design: Arc<Design>, loss: L, l2: f64, fleet: Fleet<'a>) -> Self {
        let mut d_sums = vec![0.0; loss.width()];
        loss.value(&vec![0.0; loss.width()], &mut d_sums);
        Regularized { design, loss, l2, fleet, points: Vec::new(), first: 0, d_sums }
    }

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

/// Probabilities ∝ exp(γs), and the logarithm of their normaliser.
fn softmax(gamma: f64, scores: &[f64]) -> (Vec<f64>, f64) {
    let largest = scores.iter().map(|s| gamma * s).fold(f64::NEG_INFINITY, f64::max);
    let mut p: Vec<f64> = scores.iter().map(|s| (gamma * s - largest).exp()).collect();
    let sum: f64 = p.iter().sum();
    for x in &mut p {
        *x /= sum;
    }
    (p, largest + sum.ln())
}

/// d ← γ p (d − E[d]): from derivatives with respect to probabilities to those with respect to scores.
fn through_softmax(gamma: f64, p: &[f64], d: &mut [f64]) {
    let mean = dot(p, d);
    for (d, p) in d.iter_mut().zip(p) {
        *d = gamma * p * (*d - mean);
    }
}

#[cfg(test)]
mod tests;
