//! Trust-region truncated Newton (Steihaug 1983; Lin, Weng and Keerthi 2008): minimises a smooth function from its value,
//! its gradient and products with its Hessian.
//!
//! Each step minimises a quadratic model by conjugate gradients inside a ball whose radius follows how good the model
//! was. Stops when the gradient is small enough, when no step lowers the value any more, or after a number of steps. A step
//! costs one evaluation and as many products as conjugate gradients need, at most 500.

use crate::objective::{Begin, Ended, Limit, Objective, Watch, axpy, begin, dot, norm};

/// Below, between and above these ratios of true to predicted decrease, a step is refused, kept, or made larger.
const RATIOS: (f64, f64, f64) = (1e-4, 0.25, 0.75);
/// Conjugate gradients stop when the residual has shrunk by this much.
const FORCING: f64 = 0.1;
/// Products of one step at most.
const PRODUCTS: usize = 500;

/// Minimises a function that has [`Objective::curve`] from `w`, or from 0 where that is better; `w` becomes the answer. The
/// tolerance is relative to the gradient at 0, so that a good start ends sooner. Without a Hessian it stays at the start and
/// does not converge.
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
    let enough = limit.tolerance * first;
    let mut radius = norm(&gradient);
    let mut trial = vec![0.0; n];
    let mut next = vec![0.0; n];
    let mut steps = 0;
    let mut refused = 0;
    loop {
        let size = norm(&gradient);
        if (size <= enough && size.is_finite()) || refused > 20 {
            return Ended { value, gradient: size, steps, passes, converged: size <= enough };
        }
        if steps == limit.steps {
            return Ended { value, gradient: size, steps, passes, converged: false };
        }
        let Some(step) = conjugate(f, &gradient, radius) else {
            return Ended { value, gradient: size, steps, passes, converged: false };
        };
        passes += step.products;
        trial.copy_from_slice(w);
        axpy(1.0, &step.direction, &mut trial);
        let reached = f.evaluate(&trial, &mut next);
        passes += 1;
        let actual = value - reached;
        let predicted = step.predicted;
        let length = norm(&step.direction);
        if steps == 0 && refused == 0 {
            radius = radius.min(length);
        }
        let ratio = actual / predicted;
        radius = match ratio {
            r if r.is_nan() || r < RATIOS.0 => 0.25 * length,
            r if r < RATIOS.1 => 0.5 * radius.min(length),
            r if r > RATIOS.2 => radius.max(2.0 * length),
            _ => radius,
        };
        if ratio > RATIOS.0 {
            w.copy_from_slice(&trial);
            std::mem::swap(&mut gradient, &mut next);
            let still = actual.abs() <= 1e-12 * value.abs() && predicted.abs() <= 1e-12 * value.abs();
            value = reached;
            steps += 1;
            refused = 0;
            watch(steps, value, norm(&gradient) / first);
            if still {
                return Ended { value, gradient: norm(&gradient), steps, passes, converged: true };
            }
        } else {
            if predicted.abs() <= 1e-15 * value.abs() {
                return Ended { value, gradient: size, steps, passes, converged: true };
            }
            // Products must be those of the point that we stay at.
            f.evaluate(w, &mut gradient);
            passes += 1;
            refused += 1;
        }
    }
}

struct Step {
    direction: Vec<f64>,
    /// By how much the quadratic model falls.
    predicted: f64,
    products: usize,
}

/// Minimises the quadratic model in a ball; `None` if the function has no Hessian.
fn conjugate(f: &mut dyn Objective, gradient: &[f64], radius: f64) -> Option<Step> {
    let n = gradient.len();
    let mut s = vec![0.0; n];
    let mut r: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut d = r.clone();
    let mut hd = vec![0.0; n];
    let mut rr = dot(&r, &r);
    let enough = FORCING * rr.sqrt();
    let mut products = 0;
    while rr.sqrt() > enough && products < PRODUCTS {
        if !f.curve(&d, &mut hd) {
            return None;
        }
        products += 1;
        let bend = dot(&d, &hd);
        let alpha = if bend > 0.0 { rr / bend } else { f64::INFINITY };
        let inside = alpha.is_finite() && {
            let (ss, sd, dd) = (dot(&s, &s), dot(&s, &d), dot(&d, &d));
            ss + 2.0 * alpha * sd + alpha * alpha * dd <= radius * radius
        };
        if !inside {
            let t = to_edge(&s, &d, radius);
            axpy(t, &d, &mut s);
            axpy(-t, &hd, &mut r);
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
    // The model's value is g·s + s·Hs/2, and r = −g − Hs.
    let predicted = -0.5 * (dot(gradient, &s) - dot(&s, &r));
    Some(Step { direction: s, predicted, products })
}

/// How far along `d` the ball ends.
fn to_edge(s: &[f64], d: &[f64], radius: f64) -> f64 {
    let (ss, sd, dd) = (dot(s, s), dot(s, d), dot(d, d));
    let room = (radius * radius - ss).max(0.0);
    let root = (sd * sd + dd * room).sqrt();
    // The form without cancellation.
    if sd >= 0.0 { room / (sd + root) } else { (root - sd) / dd }
}
