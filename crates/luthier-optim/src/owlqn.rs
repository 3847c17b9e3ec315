//! OWL-QN: minimises a smooth function f plus an L1 penalty, and keeps chosen variables non-negative (Andrew and Gao 2007).
//!
//! The objective is F(w) = f(w) + Σ cᵢ|wᵢ| with cᵢ ≥ 0, subject to wᵢ ≥ 0 for some i. ◇F is the pseudo-gradient: the
//! derivative of F along the axis i where it exists, else the one-sided derivative of steepest descent, or 0 if F does not
//! decrease on either side. Each step
//!
//! - takes p = −H·◇F, with H of [`lbfgs`](crate::lbfgs) from gradients of f alone, and sets pᵢ = 0 unless pᵢ has the sign
//!   of −◇ᵢF;
//! - searches t = 1, ½, ¼, … along the projection of w + t·p on the orthant of w, where 0 takes the sign of −◇ᵢF, until
//!   F(w′) ≤ F(w) + 10⁻⁴ ◇F·(w′ − w).
//!
//! Variables become exactly 0 there. Converges when ‖◇F‖ ≤ tolerance · ‖∇f(0)‖, or when two steps in a row reduce F by at
//! most 10⁻¹² of its value. A step costs O(m·n) for n variables and m = 7 pairs, and in most cases one evaluation.

use crate::{
    lbfgs::{Pair, store, two_loop_recursion},
    objective::{Ended, Limit, Objective, Watch, dot, norm},
};
use std::collections::VecDeque;

/// Sufficient decrease.
const C1: f64 = 1e-4;
/// Maximum number of halvings in one line search.
const HALVINGS: usize = 40;
/// Relative decrease at or below which a step counts as stalled.
const MIN_DECREASE: f64 = 1e-12;

/// Penalty and constraints of [`owlqn`].
#[derive(Debug, Clone, PartialEq)]
pub struct Penalty {
    /// cᵢ: weight of |wᵢ|, 0 or more, by variable.
    pub l1: Vec<f64>,
    /// Variables that must not be negative.
    pub nonnegative: Vec<bool>,
}

impl Penalty {
    /// Returns Σ cᵢ|wᵢ|.
    pub fn value(&self, w: &[f64]) -> f64 {
        self.l1.iter().zip(w).map(|(c, w)| c * w.abs()).sum()
    }

    /// Writes the pseudo-gradient at `w`, where f has the gradient `g`, to `out`.
    fn pseudo_gradient(&self, w: &[f64], g: &[f64], out: &mut [f64]) {
        for i in 0..w.len() {
            let (up, down) = (g[i] + self.l1[i], g[i] - self.l1[i]);
            out[i] = match w[i] {
                w if w > 0.0 => up,
                w if w < 0.0 => down,
                _ if up < 0.0 => up,
                _ if down > 0.0 && !self.nonnegative[i] => down,
                _ => 0.0,
            };
        }
    }
}

/// Minimises a smooth function plus a penalty, starting at `w` with negative values of non-negative variables set to 0; writes
/// the solution to `w`. Calls `watch` after every step.
///
/// ```
/// use luthier_optim::{Limit, Objective, Penalty, owlqn};
/// /// ½(x − 3)² + ½(y + 1)² + ½(z − 0.2)²
/// struct Bowl;
/// impl Objective for Bowl {
///     fn dim(&self) -> usize { 3 }
///     fn evaluate(&mut self, w: &[f64], gradient: &mut [f64]) -> f64 {
///         let d = [w[0] - 3.0, w[1] + 1.0, w[2] - 0.2];
///         gradient.copy_from_slice(&d);
///         d.iter().map(|d| d * d / 2.0).sum()
///     }
/// }
/// let penalty = Penalty { l1: vec![0.5; 3], nonnegative: vec![false, true, false] };
/// let mut w = [0.0; 3];
/// let ended = owlqn(&mut Bowl, &mut w, &penalty, Limit { tolerance: 1e-9, steps: 100 }, &mut |_, _, _| {});
/// assert!(ended.converged && (w[0] - 2.5).abs() < 1e-6 && w[1..] == [0.0, 0.0]);
/// ```
pub fn owlqn(
    f: &mut dyn Objective,
    w: &mut [f64],
    penalty: &Penalty,
    limit: Limit,
    watch: &mut Watch<'_>,
) -> Ended {
    let n = f.dim();
    let mut gradient = vec![0.0; n];
    f.evaluate(&vec![0.0; n], &mut gradient);
    let first = norm(&gradient);
    let threshold = limit.tolerance * first;
    for (w, _) in w.iter_mut().zip(&penalty.nonnegative).filter(|(_, p)| **p) {
        *w = w.max(0.0);
    }
    let mut value = f.evaluate(w, &mut gradient) + penalty.value(w);
    let (mut passes, mut stalled) = (2, 0);
    let mut pairs: VecDeque<Pair> = VecDeque::new();
    let (mut pseudo, mut p) = (vec![0.0; n], vec![0.0; n]);
    for step in 0..limit.steps {
        penalty.pseudo_gradient(w, &gradient, &mut pseudo);
        let size = norm(&pseudo);
        if (size <= threshold && size.is_finite()) || stalled == 2 {
            return Ended { value, gradient: size, steps: step, passes, converged: true };
        }
        two_loop_recursion(&pairs, &pseudo, &mut p);
        p.iter_mut().zip(&pseudo).filter(|(p, g)| **p * **g >= 0.0).for_each(|(p, _)| *p = 0.0);
        if dot(&p, &pseudo) >= 0.0 {
            pairs.clear();
            two_loop_recursion(&pairs, &pseudo, &mut p);
        }
        let start = if pairs.is_empty() { (1.0 / size).min(1.0) } else { 1.0 };
        let orthant = orthant(w, &pseudo);
        let mut next = vec![0.0; n];
        let mut t = 2.0 * start;
        let found = (0..HALVINGS).find_map(|_| {
            t /= 2.0;
            let point: Vec<f64> = (0..n).map(|i| kept(w[i] + t * p[i], orthant[i])).collect();
            let lower = f.evaluate(&point, &mut next) + penalty.value(&point);
            passes += 1;
            let gain: f64 = (0..n).map(|i| pseudo[i] * (point[i] - w[i])).sum();
            (lower <= value + C1 * gain && gain < 0.0).then_some((point, lower))
        });
        let Some((point, lower)) = found else {
            if pairs.is_empty() {
                return Ended { value, gradient: size, steps: step, passes, converged: false };
            }
            pairs.clear();
            continue;
        };
        let s: Vec<f64> = point.iter().zip(&*w).map(|(a, b)| a - b).collect();
        let y: Vec<f64> = next.iter().zip(&gradient).map(|(a, b)| a - b).collect();
        store(&mut pairs, s, y);
        let decrease = value - lower;
        stalled = if decrease <= MIN_DECREASE * value.abs().max(1e-300) { stalled + 1 } else { 0 };
        w.copy_from_slice(&point);
        (value, gradient) = (lower, next);
        penalty.pseudo_gradient(w, &gradient, &mut pseudo);
        watch(step + 1, value, norm(&pseudo) / first.max(f64::MIN_POSITIVE));
    }
    let size = norm(&pseudo);
    Ended { value, gradient: size, steps: limit.steps, passes, converged: size <= threshold }
}

/// Returns the sign of each variable in the orthant to search: that of w, or of −◇F where w is 0.
fn orthant(w: &[f64], pseudo: &[f64]) -> Vec<f64> {
    let sign = |x: f64| if x == 0.0 { 0.0 } else { x.signum() };
    w.iter().zip(pseudo).map(|(&w, &g)| if w == 0.0 { sign(-g) } else { sign(w) }).collect()
}

/// Returns a value, or 0 if it has left its orthant.
fn kept(value: f64, sign: f64) -> f64 {
    if value * sign > 0.0 { value } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// ½ wᵀAᵀAw − b·w
    struct Quadratic {
        a: Vec<Vec<f64>>,
        b: Vec<f64>,
    }

    impl Objective for Quadratic {
        fn dim(&self) -> usize {
            self.b.len()
        }

        fn evaluate(&mut self, w: &[f64], gradient: &mut [f64]) -> f64 {
            gradient.iter_mut().zip(&self.b).for_each(|(g, b)| *g = -b);
            let mut value = -dot(&self.b, w);
            for row in &self.a {
                let x = dot(row, w);
                value += x * x / 2.0;
                gradient.iter_mut().zip(row).for_each(|(g, a)| *g += x * a);
            }
            value
        }
    }

    proptest! {
        /// At the solution no one-sided derivative is negative: the optimality conditions of a convex problem.
        #[test]
        fn solutions_satisfy_the_optimality_conditions(
            a in prop::collection::vec(prop::collection::vec(-1.0f64..1.0, 6), 12),
            b in prop::collection::vec(-2.0f64..2.0, 6),
            c in 0.0f64..1.5,
            positive in prop::collection::vec(any::<bool>(), 6),
            start in prop::collection::vec(-1.0f64..1.0, 6),
        ) {
            let mut f = Quadratic { a, b };
            let penalty = Penalty { l1: vec![c; 6], nonnegative: positive.clone() };
            let mut w = start;
            let limit = Limit { tolerance: 1e-9, steps: 2000 };
            owlqn(&mut f, &mut w, &penalty, limit, &mut |_, _, _| {});
            let mut g = vec![0.0; 6];
            f.evaluate(&w, &mut g);
            for i in 0..6 {
                prop_assert!(!positive[i] || w[i] >= 0.0);
                if w[i] == 0.0 {
                    prop_assert!(g[i] >= -c - 1e-5 && (positive[i] || g[i] <= c + 1e-5), "{i} {w:?} {g:?}");
                } else {
                    prop_assert!((g[i] + c * w[i].signum()).abs() < 1e-5, "{i} {w:?} {g:?}");
                }
            }
        }
    }
}
