//! Dual coordinate descent for margins: minimise ½‖w − w₀‖² + C Σ max(0, mᵢ − w·xᵢ) (Hsieh et al. 2008).
//!
//! The dual has one variable per example in the box 0 ≤ αᵢ ≤ C, and w = w₀ + Σ αᵢxᵢ. Examples are visited in a
//! given random order; those that have come to rest at an end of the box are left out until the rest is solved.

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
            let giving = (0..at.len()).filter(|&k| alpha[active[k]] > 0.0).max_by(|&a, &b| at[a].total_cmp(&at[b]));
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
    for (i, a) in alpha.iter().enumerate() {
        hinge += (examples.margin(i) - examples.dot(i, w)).max(0.0);
        margins += a * examples.margin(i);
    }
    let primal = half + c * hinge;
    if primal > 0.0 { (primal - (margins - cross - half)) / primal } else { 0.0 }
}
