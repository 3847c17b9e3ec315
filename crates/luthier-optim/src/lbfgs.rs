//! L-BFGS: minimises a smooth function f from its value and its gradient g = ∇f (Liu and Nocedal 1989).
//!
//! Step k goes from wₖ to wₖ₊₁ = wₖ + t·pₖ with the direction pₖ = −Hₖ·gₖ. Hₖ approximates the inverse Hessian. It is
//! never formed, but defined by the last m = 7 pairs
//!
//! sᵢ = wᵢ₊₁ − wᵢ, yᵢ = gᵢ₊₁ − gᵢ, ρᵢ = 1/(yᵢ·sᵢ),
//!
//! and applied by the two-loop recursion (Nocedal and Wright 2006, algorithm 7.4), in which q and r are vectors:
//!
//! - q ← gₖ
//! - from the newest pair to the oldest: αᵢ ← ρᵢ (sᵢ·q), q ← q − αᵢ yᵢ
//! - r ← γ q, with γ = (s·y)/(y·y) of the newest pair
//! - from the oldest pair to the newest: β ← ρᵢ (yᵢ·r), r ← r + (αᵢ − β) sᵢ
//! - Hₖ·gₖ = r
//!
//! A pair with s·y ≤ 10⁻¹⁶ (y·y) is not stored, so that Hₖ stays positive definite. The step size t satisfies the
//! strong Wolfe conditions with c₁ = 10⁻⁴ and c₂ = 0.9 (Nocedal and Wright 2006, §3.1):
//!
//! f(w + t·p) ≤ f(w) + c₁ t (g·p) and |∇f(w + t·p)·p| ≤ c₂ |g·p|.
//!
//! Converges when ‖g‖ ≤ tolerance · min(‖∇f(0)‖, ‖∇f(w₀)‖), or when two steps in a row reduce f by at most 10⁻¹² of
//! its value. Stops without convergence at the maximum number of steps, or when the line search along −g fails. A step
//! costs O(m·n) for n variables plus, in most cases, one evaluation of f and g.

use crate::objective::{Begin, Ended, Limit, Objective, Watch, axpy, begin, dot, norm};
use std::collections::VecDeque;

/// m: number of pairs (s, y) that are kept.
const M: usize = 7;
/// c₁ of the Wolfe conditions: sufficient decrease.
const C1: f64 = 1e-4;
/// c₂ of the Wolfe conditions: curvature.
const C2: f64 = 0.9;
/// Maximum number of evaluations in one line search.
const TRIALS: usize = 30;
/// Relative decrease of the value at or below which a step counts as stalled; two such steps in a row end the search.
const MIN_DECREASE: f64 = 1e-12;

/// Minimises a smooth function by L-BFGS, starting at `w`, or at 0 if the value is lower there; writes the solution to
/// `w`.
///
/// Stops when the gradient norm is at most `limit.tolerance` times the smaller of the gradient norms at 0 and at the
/// initial `w`, so that a poor starting point does not end the search early; also when two steps in a row do not
/// reduce the value, when the line search fails, or after `limit.steps` steps. Calls `watch` after every step.
///
/// ```
/// use luthier_optim::{Limit, Objective, lbfgs};
/// /// (x − 3)² + 10·(y + 1)²
/// struct Bowl;
/// impl Objective for Bowl {
///     fn dim(&self) -> usize { 2 }
///     fn evaluate(&mut self, w: &[f64], gradient: &mut [f64]) -> f64 {
///         let (x, y) = (w[0] - 3.0, w[1] + 1.0);
///         gradient.copy_from_slice(&[2.0 * x, 20.0 * y]);
///         x * x + 10.0 * y * y
///     }
/// }
/// let mut w = [0.0, 0.0];
/// let ended = lbfgs(&mut Bowl, &mut w, Limit { tolerance: 1e-9, steps: 100 }, &mut |_, _, _| {});
/// assert!(ended.converged && (w[0] - 3.0).abs() < 1e-6 && (w[1] + 1.0).abs() < 1e-6);
/// ```
pub fn lbfgs(f: &mut dyn Objective, w: &mut [f64], limit: Limit, watch: &mut Watch<'_>) -> Ended {
    let n = f.dim();
    let Begin { mut value, mut gradient, norms, mut passes } = begin(f, w);
    let first = norms.0.min(norms.1);
    let threshold = limit.tolerance * first;
    let mut pairs: VecDeque<Pair> = VecDeque::new();
    let mut p = vec![0.0; n];
    let mut stalled = 0;
    for step in 0..limit.steps {
        let size = norm(&gradient);
        if (size <= threshold && size.is_finite()) || stalled == 2 {
            return Ended { value, gradient: size, steps: step, passes, converged: true };
        }
        two_loop_recursion(&pairs, &gradient, &mut p);
        let mut slope = dot(&p, &gradient);
        if slope >= 0.0 {
            // Not a descent direction: restart with steepest descent.
            pairs.clear();
            two_loop_recursion(&pairs, &gradient, &mut p);
            slope = dot(&p, &gradient);
        }
        let start = if pairs.is_empty() { (1.0 / size).min(1.0) } else { 1.0 };
        let mut line = Line { f, w, p: &p, value, slope, passes: 0 };
        let found = line.search(start);
        passes += line.passes;
        let Some(Trial { t, value: lower, gradient: next, .. }) = found else {
            if pairs.is_empty() {
                // The line search failed along the steepest descent direction, too.
                return Ended { value, gradient: size, steps: step, passes, converged: false };
            }
            pairs.clear();
            continue;
        };
        let s: Vec<f64> = p.iter().map(|p| t * p).collect();
        let y: Vec<f64> = next.iter().zip(&gradient).map(|(a, b)| a - b).collect();
        axpy(t, &p, w);
        let decrease = value - lower;
        stalled = if decrease <= MIN_DECREASE * value.abs().max(1e-300) { stalled + 1 } else { 0 };
        (value, gradient) = (lower, next);
        store(&mut pairs, s, y);
        watch(step + 1, value, norm(&gradient) / first);
    }
    let size = norm(&gradient);
    Ended { value, gradient: size, steps: limit.steps, passes, converged: size <= threshold }
}

/// A step s, the difference y of the gradients at its two ends, and ρ = 1/(s·y).
pub(crate) struct Pair {
    s: Vec<f64>,
    y: Vec<f64>,
    rho: f64,
}

/// Stores a pair, in place of the oldest of [`M`], if H stays positive definite.
pub(crate) fn store(pairs: &mut VecDeque<Pair>, s: Vec<f64>, y: Vec<f64>) {
    let sy = dot(&s, &y);
    if sy > 1e-16 * dot(&y, &y).max(1e-300) {
        if pairs.len() == M {
            pairs.pop_front();
        }
        pairs.push_back(Pair { rho: 1.0 / sy, s, y });
    }
}

/// Writes −H·g to `r` by the two-loop recursion (Nocedal and Wright 2006, algorithm 7.4); `g` is the gradient, and
/// `pairs` run from the oldest to the newest. One vector holds both q and r of the recursion.
pub(crate) fn two_loop_recursion(pairs: &VecDeque<Pair>, g: &[f64], r: &mut [f64]) {
    for (r, g) in r.iter_mut().zip(g) {
        *r = -g;
    }
    let mut alphas = Vec::with_capacity(pairs.len());
    for pair in pairs.iter().rev() {
        let alpha = pair.rho * dot(&pair.s, r);
        axpy(-alpha, &pair.y, r);
        alphas.push(alpha);
    }
    if let Some(last) = pairs.back() {
        let gamma = 1.0 / (last.rho * dot(&last.y, &last.y));
        for r in r.iter_mut() {
            *r *= gamma;
        }
    }
    for (pair, alpha) in pairs.iter().zip(alphas.iter().rev()) {
        let beta = pair.rho * dot(&pair.y, r);
        axpy(alpha - beta, &pair.s, r);
    }
}

/// The function φ(t) = f(w + t·p) along a direction p.
struct Line<'a> {
    f: &'a mut dyn Objective,
    w: &'a [f64],
    p: &'a [f64],
    /// φ(0).
    value: f64,
    /// φ′(0) = g·p, which is negative.
    slope: f64,
    /// Number of evaluations so far.
    passes: usize,
}

/// A point on the line: step size t, value φ(t), slope φ′(t) and gradient ∇f(w + t·p).
struct Trial {
    t: f64,
    value: f64,
    slope: f64,
    gradient: Vec<f64>,
}

impl Line<'_> {
    /// Evaluates φ and φ′ at `t`.
    fn trial(&mut self, t: f64) -> Trial {
        let point: Vec<f64> = self.w.iter().zip(self.p).map(|(w, p)| w + t * p).collect();
        let mut gradient = vec![0.0; point.len()];
        let value = self.f.evaluate(&point, &mut gradient);
        self.passes += 1;
        Trial { t, value, slope: dot(&gradient, self.p), gradient }
    }

    /// Whether a trial violates the sufficient decrease condition, or is not a finite number.
    fn too_far(&self, trial: &Trial) -> bool {
        let bound = self.value + C1 * trial.t * self.slope;
        trial.value.is_nan() || trial.value > bound || !trial.slope.is_finite()
    }

    /// Line search for the strong Wolfe conditions (Nocedal and Wright 2006, algorithm 3.5): multiplies the step size
    /// by 4, beginning with `start`, until an interval contains acceptable step sizes, then calls [`Line::zoom`].
    /// After `TRIALS` evaluations it returns the best trial with sufficient decrease; `None` if there is none.
    fn search(&mut self, start: f64) -> Option<Trial> {
        let mut low: (f64, f64, f64) = (0.0, self.value, self.slope);
        let mut best: Option<Trial> = None;
        let mut t = start;
        let high = loop {
            if self.passes >= TRIALS {
                return best;
            }
            let trial = self.trial(t);
            if self.too_far(&trial) || (best.is_some() && trial.value >= low.1) {
                break (trial.t, trial.value, trial.slope);
            }
            if trial.slope.abs() <= -C2 * self.slope {
                return Some(trial);
            }
            let here = (trial.t, trial.value, trial.slope);
            if trial.slope >= 0.0 {
                let high = low;
                low = here;
                best = Some(trial);
                break high;
            }
            low = here;
            best = Some(trial);
            t *= 4.0;
        };
        self.zoom(low, high, best)
    }

    /// Shrinks the interval between `low` and `high` until a trial satisfies the strong Wolfe conditions (Nocedal and
    /// Wright 2006, algorithm 3.6). Both are triples (t, φ(t), φ′(t)); `low` has the lower value, and φ decreases from
    /// there towards `high`.
    fn zoom(
        &mut self,
        mut low: (f64, f64, f64),
        mut high: (f64, f64, f64),
        mut best: Option<Trial>,
    ) -> Option<Trial> {
        while self.passes < TRIALS && (high.0 - low.0).abs() > 1e-16 * low.0.abs().max(1e-300) {
            let trial = self.trial(interpolate(low, high));
            if self.too_far(&trial) || trial.value >= low.1 {
                high = (trial.t, trial.value, trial.slope);
                continue;
            }
            if trial.slope.abs() <= -C2 * self.slope {
                return Some(trial);
            }
            if trial.slope * (high.0 - low.0) >= 0.0 {
                high = low;
            }
            low = (trial.t, trial.value, trial.slope);
            best = Some(trial);
        }
        best
    }
}

/// Minimiser of the cubic that interpolates φ and φ′ at two triples (t, φ(t), φ′(t)); the midpoint if it lies outside
/// the interval or within a tenth of one of its ends.
fn interpolate(a: (f64, f64, f64), b: (f64, f64, f64)) -> f64 {
    let width = b.0 - a.0;
    let d1 = a.2 + b.2 - 3.0 * (b.1 - a.1) / width;
    let d2 = (d1 * d1 - a.2 * b.2).sqrt() * width.signum();
    let t = b.0 - width * (b.2 + d2 - d1) / (b.2 - a.2 + 2.0 * d2);
    let (low, high) = (a.0 + 0.1 * width, b.0 - 0.1 * width);
    let inside = t.is_finite() && (t - low) * (t - high) <= 0.0;
    if inside { t } else { f64::midpoint(a.0, b.0) }
}
