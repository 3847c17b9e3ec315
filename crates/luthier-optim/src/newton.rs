//! Trust-region truncated Newton: minimises a smooth function f from its value, its gradient g = ∇f and Hessian-vector
//! products with H = ∇²f (Steihaug 1983; Lin, Weng and Keerthi 2008).
//!
//! Each iteration minimises the quadratic model of f around w within the trust region of radius Δ:
//!
//! min over s of q(s) = g·s + ½ s·Hs, subject to ‖s‖ ≤ Δ.
//!
//! Conjugate gradients solve it approximately. With s = 0 and r = d = −g at first, an iteration computes
//!
//! α = (r·r)/(d·Hd), s ← s + αd, r′ = r − αHd, β = (r′·r′)/(r·r), d ← r′ + βd, r ← r′,
//!
//! until ‖r‖ ≤ 0.1‖g‖, until s + αd would leave the trust region or d·Hd ≤ 0 (then s goes along d to the boundary), or
//! until 500 products have been computed. The ratio ρ = (f(w) − f(w + s))/(−q(s)) of actual to predicted decrease
//! decides about the step, with η₀ = 10⁻⁴, η₁ = 0.25 and η₂ = 0.75:
//!
//! | ρ | step | new radius |
//! | --- | --- | --- |
//! | below η₀ | rejected | ‖s‖/4 |
//! | η₀ to η₁ | w ← w + s | min(Δ, ‖s‖)/2 |
//! | η₁ to η₂ | w ← w + s | Δ |
//! | above η₂ | w ← w + s | max(Δ, 2‖s‖) |
//!
//! The initial radius is ‖g‖, reduced to the length of the first step.
//!
//! Converges when ‖g‖ ≤ tolerance · ‖∇f(0)‖, or when actual and predicted decrease are negligible against f (10⁻¹²;
//! for a rejected step the predicted decrease, 10⁻¹⁵). Stops without convergence at the maximum number of steps,
//! after 21 rejected steps in a row, or if the function has no Hessian. An iteration costs one evaluation, two if the
//! step is rejected, and one Hessian-vector product per iteration of conjugate gradients.

use crate::objective::{Begin, Ended, Limit, Objective, Watch, axpy, begin, dot, norm};

/// η₀, η₁ and η₂: thresholds of the ratio of actual to predicted decrease.
const ETA: (f64, f64, f64) = (1e-4, 0.25, 0.75);
/// Conjugate gradients stop when the residual norm is at most this fraction of the gradient norm.
const FORCING: f64 = 0.1;
/// Maximum number of Hessian-vector products per trust-region step.
const PRODUCTS: usize = 500;

/// Minimises a function with [`Objective::curve`] by a trust-region truncated Newton method, starting at `w`, or at 0
/// if the value is lower there; writes the solution to `w`.
///
/// Stops when the gradient norm is at most `limit.tolerance` times the gradient norm at 0, so that a good starting
/// point ends the search sooner; also when steps no longer reduce the value, or after `limit.steps` accepted steps.
/// Calls `watch` after every accepted step. Without a Hessian, `w` stays at the starting point and the result is not
/// converged.
///
/// ```
/// use luthier_optim::{Limit, Objective, newton};
/// /// (x − 3)² + 10·(y + 1)²
/// struct Bowl;
/// impl Objective for Bowl {
///     fn dim(&self) -> usize { 2 }
///     fn evaluate(&mut self, w: &[f64], gradient: &mut [f64]) -> f64 {
///         let (x, y) = (w[0] - 3.0, w[1] + 1.0);
///         gradient.copy_from_slice(&[2.0 * x, 20.0 * y]);
///         x * x + 10.0 * y * y
///     }
///     fn curve(&mut self, v: &[f64], out: &mut [f64]) -> bool {
///         out.copy_from_slice(&[2.0 * v[0], 20.0 * v[1]]);
///         true
///     }
/// }
/// let mut w = [0.0, 0.0];
/// let ended = newton(&mut Bowl, &mut w, Limit { tolerance: 1e-9, steps: 100 }, &mut |_, _, _| {});
/// assert!(ended.converged && (w[0] - 3.0).abs() < 1e-6 && (w[1] + 1.0).abs() < 1e-6);
/// ```
pub fn newton(f: &mut dyn Objective, w: &mut [f64], limit: Limit, watch: &mut Watch<'_>) -> Ended {
    let n = f.dim();
    let Begin { mut value, mut gradient, norms: (first, _), mut passes } = begin(f, w);
    let threshold = limit.tolerance * first;
    let mut radius = norm(&gradient);
    let mut trial = vec![0.0; n];
    let mut next = vec![0.0; n];
    let mut steps = 0;
    let mut rejected = 0;
    loop {
        let size = norm(&gradient);
        if (size <= threshold && size.is_finite()) || rejected > 20 {
            return Ended { value, gradient: size, steps, passes, converged: size <= threshold };
        }
        if steps == limit.steps {
            return Ended { value, gradient: size, steps, passes, converged: false };
        }
        let Some(step) = conjugate_gradients(f, &gradient, radius) else {
            return Ended { value, gradient: size, steps, passes, converged: false };
        };
        passes += step.products;
        trial.copy_from_slice(w);
        axpy(1.0, &step.s, &mut trial);
        let reached = f.evaluate(&trial, &mut next);
        passes += 1;
        let actual = value - reached;
        let predicted = step.predicted;
        let length = norm(&step.s);
        if steps == 0 && rejected == 0 {
            radius = radius.min(length);
        }
        let rho = actual / predicted;
        radius = match rho {
            r if r.is_nan() || r < ETA.0 => 0.25 * length,
            r if r < ETA.1 => 0.5 * radius.min(length),
            r if r > ETA.2 => radius.max(2.0 * length),
            _ => radius,
        };
        if rho > ETA.0 {
            w.copy_from_slice(&trial);
            std::mem::swap(&mut gradient, &mut next);
            let stalled = actual.abs() <= 1e-12 * value.abs() && predicted.abs() <= 1e-12 * value.abs();
            value = reached;
            steps += 1;
            rejected = 0;
            watch(steps, value, norm(&gradient) / first);
            if stalled {
                return Ended { value, gradient: norm(&gradient), steps, passes, converged: true };
            }
        } else {
            if predicted.abs() <= 1e-15 * value.abs() {
                return Ended { value, gradient: size, steps, passes, converged: true };
            }
            // Hessian-vector products refer to the last point evaluated, which must be w again.
            f.evaluate(w, &mut gradient);
            passes += 1;
            rejected += 1;
        }
    }
}

/// Solution of the trust-region problem.
struct Step {
    s: Vec<f64>,
    /// Predicted decrease −q(s).
    predicted: f64,
    /// Number of Hessian-vector products computed.
    products: usize,
}

/// Minimises the quadratic model within the trust region by conjugate gradients; `None` if the function has no
/// Hessian.
fn conjugate_gradients(f: &mut dyn Objective, gradient: &[f64], radius: f64) -> Option<Step> {
    let n = gradient.len();
    let mut s = vec![0.0; n];
    let mut r: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut d = r.clone();
    let mut hd = vec![0.0; n];
    let mut rr = dot(&r, &r);
    let threshold = FORCING * rr.sqrt();
    let mut products = 0;
    while rr.sqrt() > threshold && products < PRODUCTS {
        if !f.curve(&d, &mut hd) {
            return None;
        }
        products += 1;
        let dhd = dot(&d, &hd);
        let alpha = if dhd > 0.0 { rr / dhd } else { f64::INFINITY };
        let inside = alpha.is_finite() && {
            let (ss, sd, dd) = (dot(&s, &s), dot(&s, &d), dot(&d, &d));
            ss + 2.0 * alpha * sd + alpha * alpha * dd <= radius * radius
        };
        if !inside {
            let tau = to_boundary(&s, &d, radius);
            axpy(tau, &d, &mut s);
            axpy(-tau, &hd, &mut r);
            break;
        }
        axpy(alpha, &d, &mut s);
        axpy(-alpha, &hd, &mut r);
        let next = dot(&r, &r);
        let beta = next / rr;
        for (d, r) in d.iter_mut().zip(&r) {
            *d = r + beta * *d;
        }
        rr = next;
    }
    // q(s) = g·s + ½ s·Hs and r = −g − Hs, so q(s) = ½ (g·s − s·r).
    let predicted = -0.5 * (dot(gradient, &s) - dot(&s, &r));
    Some(Step { s, predicted, products })
}

/// The τ ≥ 0 with ‖s + τd‖ = Δ: the positive root of (d·d)τ² + 2(s·d)τ − (Δ² − s·s) = 0.
fn to_boundary(s: &[f64], d: &[f64], radius: f64) -> f64 {
    let (ss, sd, dd) = (dot(s, s), dot(s, d), dot(d, d));
    let room = (radius * radius - ss).max(0.0);
    let root = (sd * sd + dd * room).sqrt();
    // Of the two forms of the root, the one without cancellation.
    if sd >= 0.0 { room / (sd + root) } else { (root - sd) / dd }
}
