//! Dual coordinate descent for margins: minimise ½‖w − w₀‖² + C Σ max(0, mᵢ − w·xᵢ) (Hsieh et al. 2008).
//!
//! The dual has one variable per example in the box 0 ≤ αᵢ ≤ C, and w = w₀ + Σ αᵢxᵢ. Examples are visited in a
//! given random order; those that have come to rest at an end of the box are left out until the rest is solved.

use crate::axpy;

/// Examples by number.
pub trait Examples {
    /// How many.
    fn len(&self) -> usize;
    /// True without any.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// w·x of an example.
    fn dot(&self, i: usize, w: &[f64]) -> f64;
    /// ‖x‖² of an example.
    fn square(&self, i: usize) -> f64;
    /// w += a·x.
    fn add(&self, i: usize, a: f64, w: &mut [f64]);
    /// w·x of all examples.
    fn dots(&self, w: &[f64], out: &mut [f64]) {
        for (i, d) in out.iter_mut().enumerate() {
            *d = self.dot(i, w);
        }
    }
    /// w += Σ aᵢ·xᵢ.
    fn add_all(&self, a: &[f64], w: &mut [f64]) {
        for (i, &a) in a.iter().enumerate().filter(|a| *a.1 != 0.0) {
            self.add(i, a, w);
        }
    }
    /// The margin that is asked for.
    fn margin(&self, _i: usize) -> f64 {
        1.0
    }
}

/// What came out besides `w`.
#[derive(Debug, Clone, PartialEq)]
pub struct Dual {
    /// The dual variables.
    pub alpha: Vec<f64>,
    /// Sweeps over the examples.
    pub sweeps: usize,
    /// How far the value is above the optimum at most, relative to it.
    pub gap: f64,
}

/// Sweeps between two looks at the gap; examples at rest are looked at again then.
const LOOK: usize = 8;

/// Solves for `w`, which holds w₀ and becomes the answer, until the gap between primal and dual value, relative to the
/// primal one, is at most `tolerance`. `below` draws a number in 0..n.
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

/// The same by Newton steps in `w`, for few features and many examples: the corner of each hinge is made round, less and less,
/// and the multipliers are the slopes of the round hinges.
pub fn dual_newton(examples: &dyn Examples, w: &mut [f64], c: f64, tolerance: f64, steps: usize) -> Dual {
    let (n, dim) = (examples.len(), w.len());
    let origin = w.to_vec();
    let margins: Vec<f64> = (0..n).map(|i| examples.margin(i)).collect();
    let (mut slopes, mut row, mut stuck) = (vec![0.0; n], vec![0.0; dim], false);
    examples.dots(w, &mut slopes);
    let mut lack: Vec<f64> = margins.iter().zip(&slopes).map(|(m, s)| m - s).collect();
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
        let round = |v: f64| (v / width).clamp(0.0, 1.0);
        // Gradient and Hessian of ½‖w − w₀‖² + C Σ h(lack), and what the multipliers make of w.
        let alpha: Vec<f64> = lack.iter().map(|&v| c * round(v)).collect();
        let mut made = origin.clone();
        examples.add_all(&alpha, &mut made);
        let mut direction: Vec<f64> = made.iter().zip(&*w).map(|(m, w)| m - w).collect();
        let far = direction.iter().map(|d| d * d).sum::<f64>().sqrt();
        let size = made.iter().zip(&origin).map(|(m, o)| (m - o) * (m - o)).sum::<f64>().sqrt();
        if far <= near * size || stuck {
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
            examples.dots(w, &mut slopes);
            for ((v, m), s) in lack.iter_mut().zip(&margins).zip(&slopes) {
                *v = m - s;
            }
            continue;
        }
        let mut hessian = vec![0.0; dim * dim];
        for i in (0..n).filter(|&i| lack[i] > 0.0 && lack[i] < width) {
            row.fill(0.0);
            examples.add(i, 1.0, &mut row);
            for (x, h) in row.iter().zip(hessian.chunks_exact_mut(dim)) {
                axpy(c / width * x, &row, h);
            }
        }
        for a in 0..dim {
            hessian[a * dim + a] += 1.0;
        }
        solve(&mut hessian, &mut direction);
        examples.dots(&direction, &mut slopes);
        let t = along(&lack, &slopes, width, c, (&*w, &origin, &direction));
        for (w, d) in w.iter_mut().zip(&direction) {
            *w += t * d;
        }
        for (v, s) in lack.iter_mut().zip(&slopes) {
            *v -= t * s;
        }
        stuck = t * direction.iter().map(|d| d * d).sum::<f64>().sqrt() <= 1e-11 * size;
    }
    w.copy_from_slice(&answer);
    best
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

/// The same with one slack for all examples: minimise ½‖w − w₀‖² + C max(0, maxᵢ mᵢ − w·xᵢ). The dual variables have a
/// sum of at most C. Weight goes from the example that needs it least to the one that needs it most, until the gap between
/// primal and dual value is at most `tolerance` of the primal one.
pub fn dual_simplex(examples: &dyn Examples, w: &mut [f64], c: f64, tolerance: f64, steps: usize) -> Dual {
    let n = examples.len();
    let mut alpha = vec![0.0; n];
    let mut active: Vec<usize> = Vec::new();
    let mut slack = c;
    let origin = w.to_vec();
    let mut scratch = vec![0.0; w.len()];
    let mut gap = 0.0;
    for step in 0..steps {
        let gradient = |i: usize, w: &[f64]| examples.dot(i, w) - examples.margin(i);
        let mut worst = (usize::MAX, 0.0);
        for i in 0..n {
            let g = gradient(i, w);
            if g < worst.1 {
                worst = (i, g);
            }
        }
        // ⟨τ, g⟩ − C·min(0, g): how far the value can fall.
        let above: f64 = active.iter().map(|&i| alpha[i] * gradient(i, w)).sum::<f64>() - c * worst.1;
        let half: f64 = w.iter().zip(&origin).map(|(w, o)| 0.5 * (w - o) * (w - o)).sum();
        let primal = half - c * worst.1;
        gap = if primal > 0.0 { above / primal } else { 0.0 };
        if gap <= tolerance {
            return Dual { alpha, sweeps: step, gap };
        }
        if worst.0 != usize::MAX && !active.contains(&worst.0) {
            active.push(worst.0);
        }
        // Among those that carry weight, until they are even.
        for _ in 0..INNER {
            let at: Vec<f64> = active.iter().map(|&i| gradient(i, w)).collect();
            let lowest = (0..at.len()).min_by(|&a, &b| at[a].total_cmp(&at[b]));
            let giving =
                (0..at.len()).filter(|&k| alpha[active[k]] > 0.0).max_by(|&a, &b| at[a].total_cmp(&at[b]));
            // The slack is an example without features whose gradient is 0.
            let to = lowest.filter(|&k| at[k] < 0.0);
            let from = giving.filter(|&k| at[k] > 0.0 || slack <= 0.0);
            let (low, high) = (to.map_or(0.0, |k| at[k]), from.map_or(0.0, |k| at[k]));
            if high - low <= 1e-3 * tolerance * primal / c.max(f64::MIN_POSITIVE) || to == from {
                break;
            }
            let square = |k: usize| examples.square(active[k]);
            let distance = match (to, from) {
                (Some(i), Some(j)) => {
                    examples.add(active[i], 1.0, &mut scratch);
                    let cross = examples.dot(active[j], &scratch);
                    examples.add(active[i], -1.0, &mut scratch);
                    square(i) + square(j) - 2.0 * cross
                }
                (Some(k), None) | (None, Some(k)) => square(k),
                (None, None) => break,
            };
            let most = from.map_or(slack, |k| alpha[active[k]]);
            let move_by = if distance > 0.0 { ((high - low) / distance).min(most) } else { most };
            match to {
                Some(k) => {
                    alpha[active[k]] += move_by;
                    examples.add(active[k], move_by, w);
                }
                None => slack += move_by,
            }
            match from {
                Some(k) => {
                    alpha[active[k]] = if move_by == most { 0.0 } else { alpha[active[k]] - move_by };
                    examples.add(active[k], -move_by, w);
                }
                None => slack = if move_by == most { 0.0 } else { slack - move_by },
            }
        }
        active.retain(|&i| alpha[i] > 0.0);
    }
    Dual { alpha, sweeps: steps, gap }
}

/// Moves between two looks at all examples.
const INNER: usize = 1000;

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
