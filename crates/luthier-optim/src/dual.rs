//! Hinge losses with a proximal term: dual coordinate descent (Hsieh et al. 2008), a Newton method, and a solver for
//! the problem with one shared slack variable.
//!
//! Primal problem, with examples xᵢ, margins mᵢ and a bound C > 0:
//!
//! min over w of P(w) = ½‖w − w₀‖² + C Σᵢ max(0, mᵢ − w·xᵢ).
//!
//! Dual problem, with w(α) = w₀ + Σᵢ αᵢxᵢ:
//!
//! max over α of D(α) = Σᵢ αᵢ(mᵢ − w₀·xᵢ) − ½‖Σᵢ αᵢxᵢ‖², subject to 0 ≤ αᵢ ≤ C.
//!
//! These are eq. 12 of Watanabe (2012) for w₀ = wₖ₊¼, C = ηₖ and mᵢ = 1, eq. 13 (MIRA) for w₀ = wₖ and C = 1/λ, and
//! the linear SVM with hinge loss for w₀ = 0.
//!
//! [`dual`] maximises D over one αᵢ at a time. With the gradient Gᵢ = ∂(−D)/∂αᵢ = w·xᵢ − mᵢ, the update is
//!
//! αᵢ′ = min(max(αᵢ − Gᵢ/‖xᵢ‖², 0), C), w ← w + (αᵢ′ − αᵢ)xᵢ.
//!
//! The projected gradient `PGᵢ` is min(Gᵢ, 0) at αᵢ = 0, max(Gᵢ, 0) at αᵢ = C, and Gᵢ in between; it is 0 for all i at
//! the optimum. Examples are visited in random order. Shrinking skips an example at αᵢ = 0 with Gᵢ above the largest
//! PG of the previous sweep, and one at αᵢ = C with Gᵢ below the smallest; the duality gap is always computed over
//! all examples, and every check that fails ends the shrinking. A sweep costs one dot product and one addition per
//! example.
//!
//! [`dual_newton`] solves the same problem in the primal, [`dual_simplex`] the one with a shared slack variable. All
//! three stop when the duality gap P(w) − D(α) satisfies an [`Accuracy`], or after a maximum number of passes.
//!
//! With w = w(α) and violations vᵢ = mᵢ − w·xᵢ the gap is Σᵢ (C·max(0, vᵢ) − αᵢvᵢ), a sum of terms that are not negative,
//! so that it can be computed without cancellation where it is many orders of magnitude smaller than P. P is
//! 1-strongly convex, so ½‖w − w*‖² ≤ P(w) − P(w*) ≤ the gap, for the optimum w*.

use crate::{axpy, dot};

/// The examples xᵢ and margins mᵢ of a hinge-loss problem such as that of [`dual`], by index.
pub trait Examples {
    /// Number of examples.
    fn len(&self) -> usize;
    /// Whether there are no examples.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Dot product w·xᵢ of the weights and example `i`.
    fn dot(&self, i: usize, w: &[f64]) -> f64;
    /// Squared norm ‖xᵢ‖² of example `i`.
    fn square(&self, i: usize) -> f64;
    /// Adds `a` times example `i` to `w`: w ← w + a·xᵢ.
    fn add(&self, i: usize, a: f64, w: &mut [f64]);
    /// Writes the dot products w·xᵢ of all examples to `out`.
    fn dots(&self, w: &[f64], out: &mut [f64]) {
        for (i, d) in out.iter_mut().enumerate() {
            *d = self.dot(i, w);
        }
    }
    /// Adds a linear combination of all examples to `w`: w ← w + Σᵢ aᵢxᵢ.
    fn add_all(&self, a: &[f64], w: &mut [f64]) {
        for (i, &a) in a.iter().enumerate().filter(|a| *a.1 != 0.0) {
            self.add(i, a, w);
        }
    }
    /// Margin mᵢ of example `i`, below which w·xᵢ incurs a loss; 1 by default.
    fn margin(&self, _i: usize) -> f64 {
        1.0
    }
    /// Whether [`dual`], which calls this before every sweep, should stop and return its current solution; false by
    /// default.
    fn stop(&self) -> bool {
        false
    }
}

/// Dual solution of a hinge-loss problem, as [`dual`], [`dual_newton`] and [`dual_simplex`] return it.
#[derive(Debug, Clone, PartialEq)]
pub struct Dual {
    /// Dual variable αᵢ of each example, from 0 to C.
    pub alpha: Vec<f64>,
    /// Number of sweeps over the examples, or of Newton steps, that were made.
    pub sweeps: usize,
    /// Duality gap P − D of primal value P and dual value D: an upper bound on the distance of P from the optimum.
    pub gap: f64,
    /// Primal value P.
    pub primal: f64,
}

impl Dual {
    /// Solution of a problem without loss: w = w₀, all dual variables 0.
    fn nothing(n: usize) -> Self {
        Dual { alpha: vec![0.0; n], sweeps: 0, gap: 0.0, primal: 0.0 }
    }

    /// Returns the relative duality gap (P − D)/P; 0 if P is 0.
    pub fn relative_gap(&self) -> f64 {
        if self.primal > 0.0 { self.gap / self.primal } else { 0.0 }
    }
}

/// Stopping rule of the solvers of hinge-loss problems: how small the duality gap must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Accuracy {
    /// The gap is at most this fraction of the primal value.
    Gap(f64),
    /// The weights are known to be within this distance ε of the optimum w*, relative to their norm if that is above 1:
    /// ‖w − w*‖ ≤ ε·max(1, ‖w‖), because the gap is at most ½ε²·max(1, ‖w‖²).
    Distance(f64),
}

impl Accuracy {
    /// Returns the largest gap that is small enough, for a primal value and weights.
    fn largest_gap(self, primal: f64, w: &[f64]) -> f64 {
        match self {
            Accuracy::Gap(share) => share * primal,
            Accuracy::Distance(e) => 0.5 * e * e * w.iter().map(|w| w * w).sum::<f64>().max(1.0),
        }
    }
}

/// Number of sweeps between two computations of the duality gap, after which shrunk examples are visited again.
const GAP_INTERVAL: usize = 8;

/// Minimises ½‖w − w₀‖² + C Σᵢ max(0, mᵢ − w·xᵢ) by dual coordinate descent (Hsieh et al. 2008).
///
/// `w` is w₀ on entry and the solution on return. `below(n)` draws a random number from 0 to n − 1, for the order in
/// which examples are visited. Stops when the duality gap satisfies `accuracy`, after `sweeps` sweeps over the
/// examples, or when [`Examples::stop`] returns true. A sweep costs one dot product and one addition per example.
///
/// ```
/// use luthier_optim::{Accuracy, Examples, axpy, dot, dual};
/// struct Points(Vec<[f64; 2]>);
/// impl Examples for Points {
///     fn len(&self) -> usize { self.0.len() }
///     fn dot(&self, i: usize, w: &[f64]) -> f64 { dot(&self.0[i], w) }
///     fn square(&self, i: usize) -> f64 { dot(&self.0[i], &self.0[i]) }
///     fn add(&self, i: usize, a: f64, w: &mut [f64]) { axpy(a, &self.0[i], w); }
/// }
/// // One point at distance 2: w = x/4 has the margin 1.
/// let mut w = [0.0, 0.0];
/// let found = dual(&Points(vec![[2.0, 0.0]]), &mut w, 10.0, Accuracy::Gap(1e-9), 100, &mut |_| 0);
/// assert!((w[0] - 0.5).abs() < 1e-9 && (found.alpha[0] - 0.25).abs() < 1e-9);
/// ```
pub fn dual(
    examples: &dyn Examples,
    w: &mut [f64],
    c: f64,
    accuracy: Accuracy,
    sweeps: usize,
    below: &mut dyn FnMut(usize) -> usize,
) -> Dual {
    let n = examples.len();
    let origin = w.to_vec();
    let square: Vec<f64> = (0..n).map(|i| examples.square(i)).collect();
    let mut alpha = vec![0.0; n];
    let mut order: Vec<usize> = (0..n).collect();
    let (mut highest, mut lowest) = (f64::INFINITY, f64::NEG_INFINITY);
    let (mut gap, mut primal) = (f64::INFINITY, f64::INFINITY);
    for sweep in 1..=sweeps {
        if examples.stop() {
            return Dual { alpha, sweeps: sweep - 1, gap, primal };
        }
        let (mut high, mut low) = (f64::NEG_INFINITY, f64::INFINITY);
        // Neighbouring examples are similar: sequential order saves cache misses but takes ten times as many sweeps.
        for i in (1..order.len()).rev() {
            order.swap(i, below(i + 1));
        }
        let mut active = Vec::with_capacity(order.len());
        for &i in &order {
            let gradient = examples.dot(i, w) - examples.margin(i);
            let shrunk = (alpha[i] == 0.0 && gradient > highest) || (alpha[i] == c && gradient < lowest);
            if shrunk {
                continue;
            }
            active.push(i);
            let projected = match gradient {
                g if alpha[i] == 0.0 => g.min(0.0),
                g if alpha[i] == c => g.max(0.0),
                g => g,
            };
            high = high.max(projected);
            low = low.min(projected);
            if projected.abs() > 1e-14 {
                let old = alpha[i];
                // The objective is linear in the variable of an example without features: it goes to a bound.
                let new = if square[i] > 0.0 { old - gradient / square[i] } else { -gradient.signum() * c };
                alpha[i] = new.clamp(0.0, c);
                examples.add(i, alpha[i] - old, w);
            }
        }
        order = active;
        highest = if high > 0.0 { high } else { f64::INFINITY };
        lowest = if low < 0.0 { low } else { f64::NEG_INFINITY };
        if sweep % GAP_INTERVAL == 0 || sweep == sweeps || high - low <= 1e-12 || order.is_empty() {
            (gap, primal) = duality_gap(examples, &origin, w, c, &alpha);
            if gap <= accuracy.largest_gap(primal, w) {
                return Dual { alpha, sweeps: sweep, gap, primal };
            }
            order = (0..n).collect();
            (highest, lowest) = (f64::INFINITY, f64::NEG_INFINITY);
        }
    }
    if n == 0 { Dual::nothing(0) } else { Dual { alpha, sweeps, gap, primal } }
}

/// Minimises ½‖w − w₀‖² + C Σᵢ max(0, mᵢ − w·xᵢ), the problem of [`dual`], by Newton's method in the primal. Suited to
/// few features and many examples.
///
/// The hinge max(0, v) of the violation vᵢ = mᵢ − w·xᵢ is smoothed to h(v): 0 for v ≤ 0, v²/(2δ) for 0 < v < δ, and
/// v − δ/2 for v ≥ δ. The smoothed objective has
///
/// gradient w − w₀ − Σᵢ αᵢxᵢ with αᵢ = C·min(max(vᵢ/δ, 0), 1), and Hessian I + (C/δ) Σ xᵢxᵢᵀ over 0 < vᵢ < δ.
///
/// Since 0 ≤ αᵢ ≤ C, α is dual feasible, with the duality gap
///
/// P(w) − D(α) = Σᵢ (C·max(0, vᵢ) − αᵢvᵢ) + ½‖w − w(α)‖²:
///
/// the first part comes from the smoothing, the second from the gradient, w − w(α). Where the second is small against
/// the first, δ is multiplied by 0.3. `w` is w₀ on entry and the solution on return. Stops when the duality gap
/// satisfies `accuracy`, or after `steps` steps. A step costs one pass over the examples and O(d³) for d features.
pub fn dual_newton(examples: &dyn Examples, w: &mut [f64], c: f64, accuracy: Accuracy, steps: usize) -> Dual {
    let n = examples.len();
    let origin = w.to_vec();
    let margins: Vec<f64> = (0..n).map(|i| examples.margin(i)).collect();
    let (mut slopes, mut violations) = (vec![0.0; n], vec![0.0; n]);
    find_violations(examples, w, &margins, &mut slopes, &mut violations);
    let violated = violations.iter().filter(|v| **v > 0.0).count();
    let mut found = Dual::nothing(n);
    if violated == 0 {
        return found;
    }
    // Both larger and smaller initial values of δ were found to take more steps in total.
    let mut delta = 0.1 * violations.iter().map(|v| v.max(0.0)).sum::<f64>() / violated as f64;
    // Below this, rounding errors of the violations would decide the dual variables.
    let min_delta = 1e-10 * delta;
    let (mut stuck, mut exact) = (false, true);
    let mut w_alpha = vec![0.0; w.len()];
    let mut best: Option<(Dual, Vec<f64>)> = None;
    for step in 1..=steps {
        let (mut smoothing, mut hinge) = (0.0, 0.0);
        for (alpha, &v) in found.alpha.iter_mut().zip(&violations) {
            *alpha = c * (v / delta).clamp(0.0, 1.0);
            hinge += v.max(0.0);
            smoothing += (c - *alpha) * v.max(0.0);
        }
        w_alpha.copy_from_slice(&origin);
        examples.add_all(&found.alpha, &mut w_alpha);
        let mut direction: Vec<f64> = w_alpha.iter().zip(&*w).map(|(m, w)| m - w).collect();
        let gradient = 0.5 * dot(&direction, &direction);
        let primal = c * hinge + 0.5 * square_distance(w, &origin);
        found = Dual { sweeps: step, gap: smoothing + gradient, primal, ..found };
        let done = found.gap <= accuracy.largest_gap(primal, w) || delta < min_delta;
        if done && exact {
            break;
        }
        if done || gradient <= 0.1 * smoothing || stuck {
            if best.as_ref().is_none_or(|(b, _)| found.gap < b.gap) {
                best = Some((found.clone(), w.to_vec()));
            }
            // Rounding errors of the violations, which were updated step by step, end here.
            find_violations(examples, w, &margins, &mut slopes, &mut violations);
            (stuck, exact) = (false, true);
            if !done {
                delta *= 0.3;
            }
            continue;
        }
        solve(&mut hessian(examples, &violations, delta, c, w.len()), &mut direction);
        examples.dots(&direction, &mut slopes);
        let t = line_search(&violations, &slopes, delta, c, (&*w, &origin, &direction));
        for (w, d) in w.iter_mut().zip(&direction) {
            *w += t * d;
        }
        for (v, s) in violations.iter_mut().zip(&slopes) {
            *v -= t * s;
        }
        exact = false;
        stuck = t * t * dot(&direction, &direction) <= 1e-24 * square_distance(w, &origin);
    }
    match best {
        Some((best, at)) if best.gap < found.gap => {
            w.copy_from_slice(&at);
            Dual { sweeps: found.sweeps, ..best }
        }
        _ => found,
    }
}

/// Squared Euclidean distance ‖x − y‖².
fn square_distance(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| (x - y) * (x - y)).sum()
}

/// Writes the violations mᵢ − w·xᵢ of all examples to `violations`; `dots` is scratch space for w·xᵢ.
fn find_violations(
    examples: &dyn Examples,
    w: &[f64],
    margins: &[f64],
    dots: &mut [f64],
    violations: &mut [f64],
) {
    examples.dots(w, dots);
    for ((v, m), s) in violations.iter_mut().zip(margins).zip(dots) {
        *v = m - *s;
    }
}

/// Hessian of the smoothed objective, I + (C/δ) Σ xᵢxᵢᵀ over the examples with 0 < vᵢ < δ, as a dense matrix by rows.
fn hessian(examples: &dyn Examples, violations: &[f64], delta: f64, c: f64, dim: usize) -> Vec<f64> {
    let mut hessian = vec![0.0; dim * dim];
    let mut row = vec![0.0; dim];
    for i in (0..violations.len()).filter(|&i| violations[i] > 0.0 && violations[i] < delta) {
        row.fill(0.0);
        examples.add(i, 1.0, &mut row);
        for (x, h) in row.iter().zip(hessian.chunks_exact_mut(dim)) {
            axpy(c / delta * x, &row, h);
        }
    }
    for a in 0..dim {
        hessian[a * dim + a] += 1.0;
    }
    hessian
}

/// Step size t in (0, 1] at which the derivative of the smoothed objective along a direction is about 0. The
/// derivative increases with t, so its root is bracketed and found by the secant method with bisections. `slopes` are
/// the dot products of the examples with the direction.
fn line_search(
    violations: &[f64],
    slopes: &[f64],
    delta: f64,
    c: f64,
    (w, origin, direction): (&[f64], &[f64], &[f64]),
) -> f64 {
    let (mut constant, mut square) = (0.0, 0.0);
    for ((w, o), d) in w.iter().zip(origin).zip(direction) {
        constant += (w - o) * d;
        square += d * d;
    }
    // Most hinges stay in one of their linear pieces for all t from 0 to 1.
    let mut moving: Vec<(f64, f64)> = Vec::new();
    for (&v, &s) in violations.iter().zip(slopes) {
        let (low, high) = (v.min(v - s), v.max(v - s));
        if low >= delta {
            constant -= c * s;
        } else if high > 0.0 {
            moving.push((v / delta, s));
        }
    }
    let derivative = |t: f64| {
        let hinges: f64 = moving.iter().map(|&(v, s)| (v - t * s / delta).clamp(0.0, 1.0) * s).sum();
        constant + t * square - c * hinges
    };
    // The full Newton step is exact if no hinge changes its piece.
    let (mut low, mut high) = ((0.0, derivative(0.0)), (1.0, derivative(1.0)));
    if high.1 <= 0.0 || low.1 >= 0.0 {
        return 1.0;
    }
    let threshold = 0.01 * low.1.abs();
    for iteration in 0..60 {
        // Regula falsi; every third time the midpoint, so that neither end of the bracket stays fixed.
        let secant = low.0 + (high.0 - low.0) * low.1 / (low.1 - high.1);
        let t = if iteration % 3 == 2 { f64::midpoint(low.0, high.0) } else { secant };
        let slope = derivative(t);
        if slope.abs() <= threshold {
            return t;
        }
        if slope > 0.0 {
            high = (t, slope);
        } else {
            low = (t, slope);
        }
    }
    if low.0 > 0.0 { low.0 } else { high.0 }
}

/// Solves Ax = b by Cholesky factorisation for a positive definite A, of which only the lower triangle is read.
/// Replaces b by x, and the lower triangle of A by its factor.
fn solve(a: &mut [f64], b: &mut [f64]) {
    let n = b.len();
    for i in 0..n {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| a[i * n + k] * a[j * n + k]).sum();
            let rest = a[i * n + j] - sum;
            a[i * n + j] = if i == j { rest.max(f64::MIN_POSITIVE).sqrt() } else { rest / a[j * n + j] };
        }
    }
    for i in 0..n {
        let sum: f64 = (0..i).map(|k| a[i * n + k] * b[k]).sum();
        b[i] = (b[i] - sum) / a[i * n + i];
    }
    for i in (0..n).rev() {
        let sum: f64 = (i + 1..n).map(|k| a[k * n + i] * b[k]).sum();
        b[i] = (b[i] - sum) / a[i * n + i];
    }
}

/// Minimises ½‖w − w₀‖² + C max(0, maxᵢ(mᵢ − w·xᵢ)): the problem of [`dual`] with one slack variable shared by all
/// examples. This is eq. 14 of Watanabe (2012) with its constraint Σ τ ≤ ηₖ as printed.
///
/// The dual maximises Σᵢ τᵢ(mᵢ − w₀·xᵢ) − ½‖Σᵢ τᵢxᵢ‖² subject to τᵢ ≥ 0 and Σᵢ τᵢ ≤ C, with w = w₀ + Σᵢ τᵢxᵢ and
/// gradients gᵢ = w·xᵢ − mᵢ. Each pass adds the example with the smallest gᵢ to the working set; then mass moves
/// within the working set from the i with the largest gᵢ to the j with the smallest gⱼ, by (gᵢ − gⱼ)/‖xᵢ − xⱼ‖² or
/// τᵢ, whichever is smaller, until they agree. The unused part of C takes part as an example at 0.
///
/// `w` is w₀ on entry and the solution on return. The duality gap is Σᵢ τᵢgᵢ − C·min(0, minᵢ gᵢ). Stops when the gap
/// satisfies `accuracy`, or after `steps` passes over all examples. The result's `alpha` is τ.
///
/// ```
/// use luthier_optim::{Accuracy, Examples, axpy, dot, dual_simplex};
/// struct Points(Vec<[f64; 2]>);
/// impl Examples for Points {
///     fn len(&self) -> usize { self.0.len() }
///     fn dot(&self, i: usize, w: &[f64]) -> f64 { dot(&self.0[i], w) }
///     fn square(&self, i: usize) -> f64 { dot(&self.0[i], &self.0[i]) }
///     fn add(&self, i: usize, a: f64, w: &mut [f64]) { axpy(a, &self.0[i], w); }
/// }
/// let mut w = [0.0, 0.0];
/// let found = dual_simplex(&Points(vec![[1.0, 0.0], [0.0, 1.0]]), &mut w, 10.0, Accuracy::Gap(1e-9), 100);
/// assert!(found.gap <= 1e-9 && w.iter().all(|x| (x - 1.0).abs() < 1e-6));
/// ```
pub fn dual_simplex(
    examples: &dyn Examples,
    w: &mut [f64],
    c: f64,
    accuracy: Accuracy,
    steps: usize,
) -> Dual {
    let mut shared = SharedSlack {
        examples,
        alpha: vec![0.0; examples.len()],
        active: Vec::new(),
        slack: c,
        scratch: vec![0.0; w.len()],
    };
    let origin = w.to_vec();
    let (mut gap, mut primal) = (0.0, 0.0);
    for step in 0..steps {
        let worst = shared.worst(w);
        // Duality gap Σᵢ τᵢgᵢ − C·min(0, minᵢ gᵢ).
        gap =
            shared.active.iter().map(|&i| shared.alpha[i] * shared.gradient(i, w)).sum::<f64>() - c * worst.1;
        primal = 0.5 * square_distance(w, &origin) - c * worst.1;
        let largest = accuracy.largest_gap(primal, w);
        if gap <= largest {
            return Dual { alpha: shared.alpha, sweeps: step, gap, primal };
        }
        if worst.0 != usize::MAX && !shared.active.contains(&worst.0) {
            shared.active.push(worst.0);
        }
        let threshold = 1e-3 * largest / c.max(f64::MIN_POSITIVE);
        for _ in 0..INNER {
            if !shared.transfer(w, threshold) {
                break;
            }
        }
        shared.active.retain(|&i| shared.alpha[i] > 0.0);
    }
    Dual { alpha: shared.alpha, sweeps: steps, gap, primal }
}

/// Maximum number of transfers within the working set between two passes over all examples.
const INNER: usize = 1000;

/// State of [`dual_simplex`]: dual variables whose sum, together with the slack, is C.
struct SharedSlack<'a> {
    examples: &'a dyn Examples,
    /// Dual variable τᵢ of each example.
    alpha: Vec<f64>,
    /// Working set: the examples with τᵢ > 0, and the one with the smallest gradient.
    active: Vec<usize>,
    /// C − Σᵢ τᵢ: the dual variable of an example without features, whose gradient is 0.
    slack: f64,
    /// A vector of zeros, as long as w.
    scratch: Vec<f64>,
}

impl SharedSlack<'_> {
    /// Gradient gᵢ = w·xᵢ − mᵢ of the negated dual objective.
    fn gradient(&self, i: usize, w: &[f64]) -> f64 {
        self.examples.dot(i, w) - self.examples.margin(i)
    }

    /// The example with the smallest gradient and that gradient; `usize::MAX` and 0 if no gradient is negative.
    fn worst(&self, w: &[f64]) -> (usize, f64) {
        let mut worst = (usize::MAX, 0.0);
        for i in 0..self.examples.len() {
            let g = self.gradient(i, w);
            if g < worst.1 {
                worst = (i, g);
            }
        }
        worst
    }

    /// Moves mass from the member of the working set, or the slack, with the largest gradient to the one with the
    /// smallest. Returns false if the two gradients differ by at most `threshold`.
    fn transfer(&mut self, w: &mut [f64], threshold: f64) -> bool {
        let at: Vec<f64> = self.active.iter().map(|&i| self.gradient(i, w)).collect();
        let lowest = (0..at.len()).min_by(|&a, &b| at[a].total_cmp(&at[b]));
        let giving = (0..at.len())
            .filter(|&k| self.alpha[self.active[k]] > 0.0)
            .max_by(|&a, &b| at[a].total_cmp(&at[b]));
        let to = lowest.filter(|&k| at[k] < 0.0);
        let from = giving.filter(|&k| at[k] > 0.0 || self.slack <= 0.0);
        let (low, high) = (to.map_or(0.0, |k| at[k]), from.map_or(0.0, |k| at[k]));
        if high - low <= threshold || to == from {
            return false;
        }
        let (to, from) = (to.map(|k| self.active[k]), from.map(|k| self.active[k]));
        let Some(square) = self.square_distance(to, from) else { return false };
        let most = from.map_or(self.slack, |i| self.alpha[i]);
        let amount = if square > 0.0 { ((high - low) / square).min(most) } else { most };
        match to {
            Some(i) => {
                self.alpha[i] += amount;
                self.examples.add(i, amount, w);
            }
            None => self.slack += amount,
        }
        match from {
            Some(i) => {
                self.alpha[i] = if amount == most { 0.0 } else { self.alpha[i] - amount };
                self.examples.add(i, -amount, w);
            }
            None => self.slack = if amount == most { 0.0 } else { self.slack - amount },
        }
        true
    }

    /// Squared distance ‖xᵢ − xⱼ‖² of two examples, where `None` is the slack, at 0; `None` if both are the slack.
    fn square_distance(&mut self, x: Option<usize>, y: Option<usize>) -> Option<f64> {
        let square = |i: usize| self.examples.square(i);
        match (x, y) {
            (Some(i), Some(j)) => {
                self.examples.add(i, 1.0, &mut self.scratch);
                let cross = self.examples.dot(j, &self.scratch);
                self.examples.add(i, -1.0, &mut self.scratch);
                Some(square(i) + square(j) - 2.0 * cross)
            }
            (Some(i), None) | (None, Some(i)) => Some(square(i)),
            (None, None) => None,
        }
    }
}

/// Duality gap P(w) − D(α) = Σᵢ (C·max(0, vᵢ) − αᵢvᵢ) and primal value P(w) of the problem of [`dual`], with `w` = w₀ +
/// Σᵢ αᵢxᵢ, `origin` = w₀ and vᵢ = mᵢ − w·xᵢ.
fn duality_gap(examples: &dyn Examples, origin: &[f64], w: &[f64], c: f64, alpha: &[f64]) -> (f64, f64) {
    let half = 0.5 * square_distance(w, origin);
    let (mut hinge, mut gap) = (0.0, 0.0);
    let mut dots = vec![0.0; alpha.len()];
    examples.dots(w, &mut dots);
    for (i, (a, dot)) in alpha.iter().zip(&dots).enumerate() {
        let v = examples.margin(i) - dot;
        hinge += v.max(0.0);
        gap += if v > 0.0 { (c - a) * v } else { -a * v };
    }
    (gap, half + c * hinge)
}
