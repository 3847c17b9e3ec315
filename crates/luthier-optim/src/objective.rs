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

/// Where a minimiser begins.
pub(crate) struct Begin {
    pub(crate) value: f64,
    pub(crate) gradient: Vec<f64>,
    /// Norms of the gradients at 0 and at the start that was given.
    pub(crate) norms: (f64, f64),
    pub(crate) passes: usize,
}

/// Evaluates at 0 and at `w`; where 0 is better, `w` becomes 0. The point that counts is evaluated last.
pub(crate) fn begin(f: &mut dyn Objective, w: &mut [f64]) -> Begin {
    let n = f.dim();
    let mut gradient = vec![0.0; n];
    let origin = f.evaluate(&vec![0.0; n], &mut gradient);
    let at_0 = norm(&gradient);
    if w.iter().all(|&x| x == 0.0) {
        return Begin { value: origin, gradient, norms: (at_0, at_0), passes: 1 };
    }
    let value = f.evaluate(w, &mut gradient);
    let norms = (at_0, norm(&gradient));
    if value <= origin || origin.is_nan() {
        return Begin { value, gradient, norms, passes: 2 };
    }
    w.fill(0.0);
    let value = f.evaluate(w, &mut gradient);
    Begin { value, gradient, norms, passes: 3 }
}

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
