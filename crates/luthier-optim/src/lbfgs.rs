//! L-BFGS (Liu and Nocedal 1989) with a line search for the strong Wolfe conditions: minimises a smooth function from its
//! value and gradient.
//!
//! The direction is −H·g, H being built from the last seven pairs of steps s and gradient differences y by the two-loop
//! recursion (Nocedal and Wright 2006, algorithm 7.4). Stops when the gradient is small enough, when two steps in a row do
//! not lower the value, or after a number of steps. Most steps cost one evaluation.

use crate::objective::{Begin, Ended, Limit, Objective, Watch, axpy, begin, dot, norm};
use std::collections::VecDeque;

/// Pairs of steps and gradient differences that are remembered.
const MEMORY: usize = 7;
/// Sufficient decrease and curvature (Nocedal and Wright 2006, §3.1).
const DECREASE: f64 = 1e-4;
const CURVATURE: f64 = 0.9;
/// Evaluations of one line search at most.
const TRIALS: usize = 30;
/// A step that lowers the value by less than this, relatively, twice in a row, is none.
const STILL: f64 = 1e-12;

/// Minimises a smooth function from `w`, or from 0 where that is better, by L-BFGS; `w` becomes the answer. The tolerance is
/// relative to the gradient at 0 or at the start, whichever is smaller, so that a bad start does not end it early.
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
    let enough = limit.tolerance * first;
    let mut memory: VecDeque<Pair> = VecDeque::new();
    let mut direction = vec![0.0; n];
    let mut still = 0;
    for step in 0..limit.steps {
        let size = norm(&gradient);
        if (size <= enough && size.is_finite()) || still == 2 {
            return Ended { value, gradient: size, steps: step, passes, converged: true };
        }
        downhill(&memory, &gradient, &mut direction);
        let mut slope = dot(&direction, &gradient);
        if slope >= 0.0 {
            memory.clear();
            downhill(&memory, &gradient, &mut direction);
            slope = dot(&direction, &gradient);
        }
        let start = if memory.is_empty() { (1.0 / size).min(1.0) } else { 1.0 };
        let mut line = Line { f, at: w, direction: &direction, value, slope, passes: 0 };
        let found = line.search(start);
        passes += line.passes;
        let Some(Trial { t, value: lower, gradient: next, .. }) = found else {
            if memory.is_empty() {
                // Steepest descent finds nothing.
                return Ended { value, gradient: size, steps: step, passes, converged: false };
            }
            memory.clear();
            continue;
        };
        let s: Vec<f64> = direction.iter().map(|d| t * d).collect();
        let y: Vec<f64> = next.iter().zip(&gradient).map(|(a, b)| a - b).collect();
        axpy(t, &direction, w);
        still = if value - lower <= STILL * value.abs().max(1e-300) { still + 1 } else { 0 };
        (value, gradient) = (lower, next);
        let sy = dot(&s, &y);
        if sy > 1e-16 * dot(&y, &y).max(1e-300) {
            if memory.len() == MEMORY {
                memory.pop_front();
            }
            memory.push_back(Pair { rho: 1.0 / sy, s, y });
        }
        watch(step + 1, value, norm(&gradient) / first);
    }
    let size = norm(&gradient);
    Ended { value, gradient: size, steps: limit.steps, passes, converged: size <= enough }
}

/// A step s, the difference y of the gradients at its ends, and ρ = 1/(s·y).
struct Pair {
    s: Vec<f64>,
    y: Vec<f64>,
    rho: f64,
}

/// The two-loop recursion: `out` becomes −H·gradient.
fn downhill(memory: &VecDeque<Pair>, gradient: &[f64], out: &mut [f64]) {
    for (o, g) in out.iter_mut().zip(gradient) {
        *o = -g;
    }
    let mut alphas = Vec::with_capacity(memory.len());
    for pair in memory.iter().rev() {
        let alpha = pair.rho * dot(&pair.s, out);
        axpy(-alpha, &pair.y, out);
        alphas.push(alpha);
    }
    if let Some(last) = memory.back() {
        let gamma = 1.0 / (last.rho * dot(&last.y, &last.y));
        for o in out.iter_mut() {
            *o *= gamma;
        }
    }
    for (pair, alpha) in memory.iter().zip(alphas.iter().rev()) {
        let beta = pair.rho * dot(&pair.y, out);
        axpy(alpha - beta, &pair.s, out);
    }
}

/// The objective along a direction.
struct Line<'a> {
    f: &'a mut dyn Objective,
    at: &'a [f64],
    direction: &'a [f64],
    /// At t = 0.
    value: f64,
    slope: f64,
    passes: usize,
}

/// A point on the line.
struct Trial {
    t: f64,
    value: f64,
    slope: f64,
    gradient: Vec<f64>,
}

impl Line<'_> {
    fn trial(&mut self, t: f64) -> Trial {
        let point: Vec<f64> = self.at.iter().zip(self.direction).map(|(w, d)| w + t * d).collect();
        let mut gradient = vec![0.0; point.len()];
        let value = self.f.evaluate(&point, &mut gradient);
        self.passes += 1;
        Trial { t, value, slope: dot(&gradient, self.direction), gradient }
    }

    /// Whether a trial is too far: no sufficient decrease, or not a number.
    fn too_far(&self, trial: &Trial) -> bool {
        let bound = self.value + DECREASE * trial.t * self.slope;
        trial.value.is_nan() || trial.value > bound || !trial.slope.is_finite()
    }

    /// Grows the step until a good one is bracketed, then closes in (Nocedal and Wright 2006, algorithms 3.5 and
    /// 3.6).
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
            if trial.slope.abs() <= -CURVATURE * self.slope {
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

    /// `low` has the smaller value and slopes towards `high`.
    fn zoom(
        &mut self,
        mut low: (f64, f64, f64),
        mut high: (f64, f64, f64),
        mut best: Option<Trial>,
    ) -> Option<Trial> {
        while self.passes < TRIALS && (high.0 - low.0).abs() > 1e-16 * low.0.abs().max(1e-300) {
            let trial = self.trial(between(low, high));
            if self.too_far(&trial) || trial.value >= low.1 {
                high = (trial.t, trial.value, trial.slope);
                continue;
            }
            if trial.slope.abs() <= -CURVATURE * self.slope {
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

/// The minimum of the cubic through two points with their slopes, kept away from the ends.
fn between(a: (f64, f64, f64), b: (f64, f64, f64)) -> f64 {
    let width = b.0 - a.0;
    let d1 = a.2 + b.2 - 3.0 * (b.1 - a.1) / width;
    let d2 = (d1 * d1 - a.2 * b.2).sqrt() * width.signum();
    let t = b.0 - width * (b.2 + d2 - d1) / (b.2 - a.2 + 2.0 * d2);
    let (low, high) = (a.0 + 0.1 * width, b.0 - 0.1 * width);
    let inside = t.is_finite() && (t - low) * (t - high) <= 0.0;
    if inside { t } else { f64::midpoint(a.0, b.0) }
}
