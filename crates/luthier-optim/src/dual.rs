//! Margins: minimise ½‖w − w₀‖² + C Σ max(0, mᵢ − w·xᵢ) by dual coordinate descent (Hsieh et al. 2008, algorithm 3) or by
//! Newton steps, and the same with one slack for all examples.
//!
//! The dual has one variable per example in the box 0 ≤ αᵢ ≤ C, and w = w₀ + Σ αᵢxᵢ. In coordinate descent examples are visited
//! in random order; those that have come to rest at an end of the box are left out until the rest is solved. All three
//! stop by the gap between primal and dual value.

use crate::axpy;

/// Examples xᵢ of a margin problem, by index; see [`dual`].
pub trait Examples {
    /// Number of examples.
    fn len(&self) -> usize;
    /// Whether there is no example.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// w·xᵢ, the score of example `i`.
    fn dot(&self, i: usize, w: &[f64]) -> f64;
    /// ‖xᵢ‖², the squared norm of example `i`.
    fn square(&self, i: usize) -> f64;
    /// w += a·xᵢ: adds `a` times example `i` to `w`.
    fn add(&self, i: usize, a: f64, w: &mut [f64]);
    /// Writes w·xᵢ of all examples to `out`.
    fn dots(&self, w: &[f64], out: &mut [f64]) {
        for (i, d) in out.iter_mut().enumerate() {
            *d = self.dot(i, w);
        }
    }
    /// w += Σ aᵢ·xᵢ: adds all examples to `w`, each times its number in `a`.
    fn add_all(&self, a: &[f64], w: &mut [f64]) {
        for (i, &a) in a.iter().enumerate().filter(|a| *a.1 != 0.0) {
            self.add(i, a, w);
        }
    }
    /// mᵢ, the margin that example `i` asks for; 1 by default.
    fn margin(&self, _i: usize) -> f64 {
        1.0
    }
    /// Asked before every sweep of [`dual`]: whether it shall end with what it has.
    fn stop(&self) -> bool {
        false
    }
}

/// Solution of a margin problem besides `w`.
#[derive(Debug, Clone, PartialEq)]
pub struct Dual {
    /// Dual variable of each example, from 0 to C.
    pub alpha: Vec<f64>,
    /// Number of sweeps over the examples, or of steps, that were made.
    pub sweeps: usize,
    /// Gap between primal and dual value over the primal one: an upper bound of how far the value is above the optimum.
    pub gap: f64,
}

/// Sweeps between two looks at the gap; examples at rest are looked at again then.
const LOOK: usize = 8;

/// Minimises ½‖w − w₀‖² + C Σ max(0, mᵢ − w·xᵢ) by dual coordinate descent. `w` holds w₀ and becomes the answer; `below(n)`
/// draws a number from 0 to n − 1.
///
/// Stops when the gap between primal and dual value is at most `tolerance` of the primal one, or after `sweeps` over the
/// examples. A sweep costs two products per example.
///
/// ```
/// use luthier_optim::{Examples, axpy, dot, dual};
/// struct Points(Vec<[f64; 2]>);
/// impl Examples for Points {
///     fn len(&self) -> usize { self.0.len() }
///     fn dot(&self, i: usize, w: &[f64]) -> f64 { dot(&self.0[i], w) }
///     fn square(&self, i: usize) -> f64 { dot(&self.0[i], &self.0[i]) }
///     fn add(&self, i: usize, a: f64, w: &mut [f64]) { axpy(a, &self.0[i], w); }
/// }
/// // One point at distance 2: w = x/4 has the margin 1.
/// let mut w = [0.0, 0.0];
/// let found = dual(&Points(vec![[2.0, 0.0]]), &mut w, 10.0, 1e-9, 100, &mut |_| 0);
/// assert!((w[0] - 0.5).abs() < 1e-9 && (found.alpha[0] - 0.25).abs() < 1e-9);
/// ```
pub fn dual(
    examples: &dyn Examples,
    w: &mut [f64],
    c: f64,
    tolerance: f64,
    sweeps: usize,
    below: &mut dyn FnMut(usize) -> usize,
) -> Dual {
    let n = examples.len();
    let origin = w.to_vec();
    let square: Vec<f64> = (0..n).map(|i| examples.square(i)).collect();
    let mut alpha = vec![0.0; n];
    let mut order: Vec<usize> = (0..n).collect();
    let (mut highest, mut lowest) = (f64::INFINITY, f64::NEG_INFINITY);
    let mut distance = f64::INFINITY;
    for sweep in 1..=sweeps {
        if examples.stop() {
            return Dual { alpha, sweeps: sweep - 1, gap: distance };
        }
        let (mut high, mut low) = (f64::NEG_INFINITY, f64::INFINITY);
        // Neighbours are alike: visiting them one after the other would save memory accesses and cost ten times as
        // many sweeps.
        for i in (1..order.len()).rev() {
            order.swap(i, below(i + 1));
        }
        let mut kept = Vec::with_capacity(order.len());
        for &i in &order {
            let gradient = examples.dot(i, w) - examples.margin(i);
            let rests = (alpha[i] == 0.0 && gradient > highest) || (alpha[i] == c && gradient < lowest);
            if rests {
                continue;
            }
            kept.push(i);
            let projected = match gradient {
                g if alpha[i] == 0.0 => g.min(0.0),
                g if alpha[i] == c => g.max(0.0),
                g => g,
            };
            high = high.max(projected);
            low = low.min(projected);
            if projected.abs() > 1e-14 {
                let old = alpha[i];
                // An example without features can only go to an end.
                let new = if square[i] > 0.0 { old - gradient / square[i] } else { -gradient.signum() * c };
                alpha[i] = new.clamp(0.0, c);
                examples.add(i, alpha[i] - old, w);
            }
        }
        order = kept;
        highest = if high > 0.0 { high } else { f64::INFINITY };
        lowest = if low < 0.0 { low } else { f64::NEG_INFINITY };
        if sweep % LOOK == 0 || sweep == sweeps || high - low <= 1e-12 || order.is_empty() {
            distance = gap(examples, &origin, w, c, &alpha);
            if distance <= tolerance {
                return Dual { alpha, sweeps: sweep, gap: distance };
            }
            order = (0..n).collect();
            (highest, lowest) = (f64::INFINITY, f64::NEG_INFINITY);
        }
    }
    Dual { alpha, sweeps, gap: if n == 0 { 0.0 } else { distance } }
}

/// Solves the problem of [`dual`] by Newton steps in `w`, for few features and many examples. The corner of each hinge is
/// replaced by a parabola over a width that shrinks, and the multipliers are the slopes of these rounded hinges.
///
/// A step costs one pass over the examples and O(d³) for d features. Stops like [`dual`], or after `steps`.
pub fn dual_newton(examples: &dyn Examples, w: &mut [f64], c: f64, tolerance: f64, steps: usize) -> Dual {
    let n = examples.len();
    let origin = w.to_vec();
    let margins: Vec<f64> = (0..n).map(|i| examples.margin(i)).collect();
    let (mut slopes, mut stuck) = (vec![0.0; n], false);
    let mut lack = vec![0.0; n];
    find_lack(examples, w, &margins, &mut slopes, &mut lack);
    let lacking = lack.iter().filter(|v| **v > 0.0).count();
    let mut best = Dual { alpha: vec![0.0; n], sweeps: 0, gap: 0.0 };
    if lacking == 0 {
        return best;
    }
    best.gap = f64::INFINITY;
    // Rounder corners make more steps than they save, sharper ones too.
    let mut width = 0.1 * lack.iter().map(|v| v.max(0.0)).sum::<f64>() / lacking as f64;
    let mut answer = origin.clone();
    let mut near = 0.05;
    let least = 1e-12 * width;
    for step in 1..=steps {
        // Gradient of ½‖w − w₀‖² + C Σ h(lack), and what the multipliers make of w.
        let alpha: Vec<f64> = lack.iter().map(|&v| c * (v / width).clamp(0.0, 1.0)).collect();
        let mut made = origin.clone();
        examples.add_all(&alpha, &mut made);
        let mut direction: Vec<f64> = made.iter().zip(&*w).map(|(m, w)| m - w).collect();
        let size = distance(&made, &origin);
        if length(&direction) <= near * size || stuck {
            let gap = gap(examples, &origin, &made, c, &alpha);
            if gap < best.gap {
                best = Dual { alpha, sweeps: step, gap };
                answer.copy_from_slice(&made);
            }
            if best.gap <= tolerance || width < least {
                break;
            }
            // What is left of the gap must come from the round corners, not from steps that were not taken.
            near = near.min(0.1 * best.gap);
            width *= 0.3;
            stuck = false;
            find_lack(examples, w, &margins, &mut slopes, &mut lack);
            continue;
        }
        solve(&mut hessian(examples, &lack, width, c, w.len()), &mut direction);
        examples.dots(&direction, &mut slopes);
        let t = along(&lack, &slopes, width, c, (&*w, &origin, &direction));
        for (w, d) in w.iter_mut().zip(&direction) {
            *w += t * d;
        }
        for (v, s) in lack.iter_mut().zip(&slopes) {
            *v -= t * s;
        }
        stuck = t * length(&direction) <= 1e-11 * size;
    }
    w.copy_from_slice(&answer);
    best
}

fn length(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn distance(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| (x - y) * (x - y)).sum::<f64>().sqrt()
}

/// What each example lacks of its margin; `dots` is overwritten.
fn find_lack(examples: &dyn Examples, w: &[f64], margins: &[f64], dots: &mut [f64], lack: &mut [f64]) {
    examples.dots(w, dots);
    for ((v, m), s) in lack.iter_mut().zip(margins).zip(dots) {
        *v = m - *s;
    }
}

/// The Hessian of ½‖w − w₀‖² + C Σ h(lack): the identity and the squares of the examples on the round part of their hinge.
fn hessian(examples: &dyn Examples, lack: &[f64], width: f64, c: f64, dim: usize) -> Vec<f64> {
    let mut hessian = vec![0.0; dim * dim];
    let mut row = vec![0.0; dim];
    for i in (0..lack.len()).filter(|&i| lack[i] > 0.0 && lack[i] < width) {
        row.fill(0.0);
        examples.add(i, 1.0, &mut row);
        for (x, h) in row.iter().zip(hessian.chunks_exact_mut(dim)) {
            axpy(c / width * x, &row, h);
        }
    }
    for a in 0..dim {
        hessian[a * dim + a] += 1.0;
    }
    hessian
}

/// Where the derivative along a direction is 0: it rises with the step, so it is found by halving.
fn along(
    lack: &[f64],
    slopes: &[f64],
    width: f64,
    c: f64,
    (w, origin, direction): (&[f64], &[f64], &[f64]),
) -> f64 {
    let (mut constant, mut square) = (0.0, 0.0);
    for ((w, o), d) in w.iter().zip(origin).zip(direction) {
        constant += (w - o) * d;
        square += d * d;
    }
    // Most hinges stay on their straight pieces.
    let mut moving: Vec<(f64, f64)> = Vec::new();
    for (&v, &s) in lack.iter().zip(slopes) {
        let (low, high) = (v.min(v - s), v.max(v - s));
        if low >= width {
            constant -= c * s;
        } else if high > 0.0 {
            moving.push((v / width, s));
        }
    }
    let derivative = |t: f64| {
        let hinges: f64 = moving.iter().map(|&(v, s)| (v - t * s / width).clamp(0.0, 1.0) * s).sum();
        constant + t * square - c * hinges
    };
    // The whole step is right where no hinge changes its piece.
    let (mut low, mut high) = ((0.0, derivative(0.0)), (1.0, derivative(1.0)));
    if high.1 <= 0.0 || low.1 >= 0.0 {
        return 1.0;
    }
    let enough = 0.01 * low.1.abs();
    for turn in 0..60 {
        // Where a straight line between the ends meets 0; the middle now and then, lest one end stays.
        let cut = low.0 + (high.0 - low.0) * low.1 / (low.1 - high.1);
        let t = if turn % 3 == 2 { f64::midpoint(low.0, high.0) } else { cut };
        let there = derivative(t);
        if there.abs() <= enough {
            return t;
        }
        if there > 0.0 {
            high = (t, there);
        } else {
            low = (t, there);
        }
    }
    if low.0 > 0.0 { low.0 } else { high.0 }
}

/// Solves Ax = b for a positive definite A, of which the lower half is given; b becomes x.
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

/// Minimises ½‖w − w₀‖² + C max(0, maxᵢ mᵢ − w·xᵢ): the problem of [`dual`] with one slack for all examples. `w` holds w₀ and
/// becomes the answer.
///
/// The dual variables have a sum of at most C. Weight goes from the example that needs it least to the one that needs it
/// most. Stops when the gap between primal and dual value is at most `tolerance` of the primal one, or after `steps` passes
/// over all examples.
///
/// ```
/// use luthier_optim::{Examples, axpy, dot, dual_simplex};
/// struct Points(Vec<[f64; 2]>);
/// impl Examples for Points {
///     fn len(&self) -> usize { self.0.len() }
///     fn dot(&self, i: usize, w: &[f64]) -> f64 { dot(&self.0[i], w) }
///     fn square(&self, i: usize) -> f64 { dot(&self.0[i], &self.0[i]) }
///     fn add(&self, i: usize, a: f64, w: &mut [f64]) { axpy(a, &self.0[i], w); }
/// }
/// let mut w = [0.0, 0.0];
/// let found = dual_simplex(&Points(vec![[1.0, 0.0], [0.0, 1.0]]), &mut w, 10.0, 1e-9, 100);
/// assert!(found.gap <= 1e-9 && w.iter().all(|x| (x - 1.0).abs() < 1e-6));
/// ```
pub fn dual_simplex(examples: &dyn Examples, w: &mut [f64], c: f64, tolerance: f64, steps: usize) -> Dual {
    let mut shared = SharedSlack {
        examples,
        alpha: vec![0.0; examples.len()],
        active: Vec::new(),
        slack: c,
        scratch: vec![0.0; w.len()],
    };
    let origin = w.to_vec();
    let mut gap = 0.0;
    for step in 0..steps {
        let worst = shared.worst(w);
        // ⟨τ, g⟩ − C·min(0, g): how far the value can fall.
        let above: f64 =
            shared.active.iter().map(|&i| shared.alpha[i] * shared.gradient(i, w)).sum::<f64>() - c * worst.1;
        let half: f64 = w.iter().zip(&origin).map(|(w, o)| 0.5 * (w - o) * (w - o)).sum();
        let primal = half - c * worst.1;
        gap = if primal > 0.0 { above / primal } else { 0.0 };
        if gap <= tolerance {
            return Dual { alpha: shared.alpha, sweeps: step, gap };
        }
        if worst.0 != usize::MAX && !shared.active.contains(&worst.0) {
            shared.active.push(worst.0);
        }
        let enough = 1e-3 * tolerance * primal / c.max(f64::MIN_POSITIVE);
        for _ in 0..INNER {
            if !shared.even_out(w, enough) {
                break;
            }
        }
        shared.active.retain(|&i| shared.alpha[i] > 0.0);
    }
    Dual { alpha: shared.alpha, sweeps: steps, gap }
}

/// Moves between two looks at all examples.
const INNER: usize = 1000;

/// Dual variables whose sum, with the slack, is C.
struct SharedSlack<'a> {
    examples: &'a dyn Examples,
    alpha: Vec<f64>,
    /// Examples that carry weight, and the one that needs it most.
    active: Vec<usize>,
    /// What no example carries: the weight of an example without features, whose gradient is 0.
    slack: f64,
    scratch: Vec<f64>,
}

impl SharedSlack<'_> {
    fn gradient(&self, i: usize, w: &[f64]) -> f64 {
        self.examples.dot(i, w) - self.examples.margin(i)
    }

    /// The example with the lowest gradient below 0, and that gradient.
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

    /// Moves weight from the active example, or the slack, with the highest gradient to the one with the lowest. False if
    /// they differ by no more than `enough`.
    fn even_out(&mut self, w: &mut [f64], enough: f64) -> bool {
        let at: Vec<f64> = self.active.iter().map(|&i| self.gradient(i, w)).collect();
        let lowest = (0..at.len()).min_by(|&a, &b| at[a].total_cmp(&at[b]));
        let giving = (0..at.len())
            .filter(|&k| self.alpha[self.active[k]] > 0.0)
            .max_by(|&a, &b| at[a].total_cmp(&at[b]));
        let to = lowest.filter(|&k| at[k] < 0.0);
        let from = giving.filter(|&k| at[k] > 0.0 || self.slack <= 0.0);
        let (low, high) = (to.map_or(0.0, |k| at[k]), from.map_or(0.0, |k| at[k]));
        if high - low <= enough || to == from {
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

    /// ‖x − y‖² of two examples, the slack being at 0.
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

/// Primal minus dual value over the primal one.
fn gap(examples: &dyn Examples, origin: &[f64], w: &[f64], c: f64, alpha: &[f64]) -> f64 {
    let mut half = 0.0;
    let mut cross = 0.0;
    for (w, o) in w.iter().zip(origin) {
        half += 0.5 * (w - o) * (w - o);
        cross += o * (w - o);
    }
    let (mut hinge, mut margins) = (0.0, 0.0);
    let mut dots = vec![0.0; alpha.len()];
    examples.dots(w, &mut dots);
    for (i, (a, dot)) in alpha.iter().zip(&dots).enumerate() {
        hinge += (examples.margin(i) - dot).max(0.0);
        margins += a * examples.margin(i);
    }
    let primal = half + c * hinge;
    if primal > 0.0 { (primal - (margins - cross - half)) / primal } else { 0.0 }
}
