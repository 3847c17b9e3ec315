//! The interface of smooth objectives, the stopping rule of their minimisers, and vector operations.

/// A smooth function f to be minimised. Evaluating the same point twice must give the same bits; `evaluate` and
/// `curve` must return the first and second derivatives of the value wherever they exist.
pub trait Objective {
    /// Number of variables of the function.
    fn dim(&self) -> usize;
    /// Returns the value f(w) and writes the gradient ∇f(w) to `gradient`; both slices have [`Objective::dim`]
    /// elements.
    fn evaluate(&mut self, w: &[f64], gradient: &mut [f64]) -> f64;
    /// Writes the Hessian-vector product ∇²f(w)·v to `out`, where w is the last point passed to
    /// [`Objective::evaluate`]. Returns false if no Hessian is available, which is the default.
    fn curve(&mut self, _v: &[f64], _out: &mut [f64]) -> bool {
        false
    }
}

/// Stopping rule of [`lbfgs`](crate::lbfgs) and [`newton`](crate::newton). The default is a tolerance of 10⁻⁴ and at
/// most 1,000 steps.
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
    /// Gradient norm at which the minimiser stops, relative to the gradient norm at the start; above 0.
    pub tolerance: f64,
    /// Maximum number of steps of the minimiser.
    pub steps: usize,
}

impl Default for Limit {
    fn default() -> Self {
        Limit { tolerance: 1e-4, steps: 1000 }
    }
}

/// Result of a minimisation by [`lbfgs`](crate::lbfgs) or [`newton`](crate::newton).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ended {
    /// Value of the objective at the solution.
    pub value: f64,
    /// Euclidean norm of the gradient at the solution.
    pub gradient: f64,
    /// Number of steps taken.
    pub steps: usize,
    /// Number of evaluations of the objective plus number of Hessian-vector products.
    pub passes: usize,
    /// Whether the gradient norm is within the tolerance, or no step can reduce the value any further.
    pub converged: bool,
}

/// Callback after every step of a minimiser. Its arguments are the number of the step from 1, the value of the
/// objective, and the gradient norm relative to the one that the tolerance refers to.
pub type Watch<'a> = dyn FnMut(usize, f64, f64) + 'a;

/// Starting point of a minimiser, evaluated.
pub(crate) struct Begin {
    /// Value of the objective at the starting point.
    pub(crate) value: f64,
    /// Gradient at the starting point.
    pub(crate) gradient: Vec<f64>,
    /// Gradient norms at 0 and at the point that the caller gave.
    pub(crate) norms: (f64, f64),
    /// Number of evaluations so far.
    pub(crate) passes: usize,
}

/// Evaluates the objective at 0 and at `w`, and sets `w` to 0 if the value is lower there. The chosen starting point
/// is the last one evaluated, so that [`Objective::curve`] refers to it.
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

/// Number of partial sums of [`dot`].
const LANES: usize = 8;

/// Returns the dot product x·y. It is accumulated in eight partial sums in a fixed order, which vectorises and is
/// bit-for-bit reproducible. Both slices must have the same length.
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

/// Adds `a` times `x` to `y`: y ← y + a·x.
pub fn axpy(a: f64, x: &[f64], y: &mut [f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

/// Euclidean norm ‖x‖.
pub(crate) fn norm(x: &[f64]) -> f64 {
    dot(x, x).sqrt()
}
