//! What a minimiser sees, and the few vector operations it needs.

/// A function to minimise. Laws: the same point gives the same bits; `gradient` and `curve` are derivatives of the
/// value where it has them.
pub trait Objective {
    /// Number of variables.
    fn dim(&self) -> usize;
    /// The value at `w`; `gradient` is overwritten.
    fn evaluate(&mut self, w: &[f64], gradient: &mut [f64]) -> f64;
    /// The product of the Hessian at the point evaluated last with `v`; false if there is none.
    fn curve(&mut self, _v: &[f64], _out: &mut [f64]) -> bool {
        false
    }
}

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// The gradient's norm relative to the start's that is small enough.
    pub tolerance: f64,
    /// Steps at most.
    pub steps: usize,
}

/// How a minimisation ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ended {
    /// The value found.
    pub value: f64,
    /// Norm of its gradient.
    pub gradient: f64,
    /// Steps taken.
    pub steps: usize,
    /// How often the objective was evaluated or multiplied with.
    pub passes: usize,
    /// Whether the gradient is small enough, or no step can improve the value any more.
    pub converged: bool,
}

/// Told after every step: its number, the value, and the gradient's norm relative to the first.
pub type Watch<'a> = dyn FnMut(usize, f64, f64) + 'a;

const LANES: usize = 8;

/// x·y, added up in eight lanes: fast, and always in the same order.
pub fn dot(x: &[f64], y: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let (xs, x_rest) = x.as_chunks::<LANES>();
    let (ys, y_rest) = y.as_chunks::<LANES>();
    for (a, b) in xs.iter().zip(ys) {
        for l in 0..LANES {
            lanes[l] += a[l] * b[l];
        }
    }
    let rest: f64 = x_rest.iter().zip(y_rest).map(|(a, b)| a * b).sum();
    lanes.iter().sum::<f64>() + rest
}

/// y += a·x.
pub fn axpy(a: f64, x: &[f64], y: &mut [f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

pub(crate) fn norm(x: &[f64]) -> f64 {
    dot(x, x).sqrt()
}
