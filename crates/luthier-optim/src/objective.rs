//! What minimisers of smooth functions see, and the few vector operations that they need.

/// A function to minimise. Laws: the same point gives the same bits; `gradient` and `curve` are derivatives of the
/// value where it has them.
pub trait Objective {
    /// Number of variables.
    fn dim(&self) -> usize;
    /// Returns the value at `w` and writes the gradient there to `gradient`; both have [`Objective::dim`] numbers.
    fn evaluate(&mut self, w: &[f64], gradient: &mut [f64]) -> f64;
    /// Writes the product of `v` with the Hessian at the point that was evaluated last to `out`; returns false if the
    /// function has no Hessian.
    fn curve(&mut self, _v: &[f64], _out: &mut [f64]) -> bool {
        false
    }
}

/// Stopping rule of [`lbfgs`](crate::lbfgs) and [`newton`](crate::newton). The default is a tolerance of 10⁻⁴ and 1,000 steps.
///
/// ```
/// use luthier_optim::Limit;
/// let limit = Limit { steps: 50, ..Limit::default() };
/// assert_eq!((limit.tolerance, limit.steps), (1e-4, 50));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case", default)
)]
pub struct Limit {
    /// Norm of the gradient at which the minimiser stops, relative to the norm at the start; above 0.
    pub tolerance: f64,
    /// Largest number of steps.
    pub steps: usize,
}

impl Default for Limit {
    fn default() -> Self {
        Limit { tolerance: 1e-4, steps: 1000 }
    }
}

/// Result of a minimisation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ended {
    /// Value of the function at the answer.
    pub value: f64,
    /// Norm of the gradient at the answer.
    pub gradient: f64,
    /// Number of steps that were taken.
    pub steps: usize,
    /// Number of evaluations and of products with the Hessian.
    pub passes: usize,
    /// Whether the gradient is small enough, or no step can improve the value any more.
    pub converged: bool,
}

/// Callback after every step of a minimiser: number of the step, value, and norm of the gradient relative to the start's.
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

/// The dot product x·y, summed in eight lanes: fast, and always in the same order. What one slice has beyond the other's
/// length does not count.
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

/// y += a·x: adds `a` times `x` to `y`.
pub fn axpy(a: f64, x: &[f64], y: &mut [f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

pub(crate) fn norm(x: &[f64]) -> f64 {
    dot(x, x).sqrt()
}
