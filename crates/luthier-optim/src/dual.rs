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
    /// Whether the largest violation is below the tolerance.
    pub converged: bool,
}

/// Solves for `w`, which holds w₀ and becomes the answer. `below` draws a number in 0..n.
pub fn dual(
    examples: &dyn Examples,
    w: &mut [f64],
    c: f64,
    tolerance: f64,
    sweeps: usize,
    below: &mut dyn FnMut(usize) -> usize,
) -> Dual {
    let n = examples.len();
    let square: Vec<f64> = (0..n).map(|i| examples.square(i)).collect();
    let mut alpha = vec![0.0; n];
    let mut order: Vec<usize> = (0..n).collect();
    let mut active = n;
    let (mut highest, mut lowest) = (f64::INFINITY, f64::NEG_INFINITY);
    for sweep in 1..=sweeps {
        let (mut high, mut low) = (f64::NEG_INFINITY, f64::INFINITY);
        for i in 0..active {
            order.swap(i, i + below(active - i));
        }
        let mut at = 0;
        while at < active {
            let i = order[at];
            let gradient = examples.dot(i, w) - examples.margin(i);
            let rests = (alpha[i] == 0.0 && gradient > highest) || (alpha[i] == c && gradient < lowest);
            if rests {
                active -= 1;
                order.swap(at, active);
                continue;
            }
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
            at += 1;
        }
        if active == 0 || high - low <= tolerance {
            if active == n {
                return Dual { alpha, sweeps: sweep, converged: true };
            }
            // Solved for these: look at all of them again.
            active = n;
            (highest, lowest) = (f64::INFINITY, f64::NEG_INFINITY);
            continue;
        }
        highest = if high > 0.0 { high } else { f64::INFINITY };
        lowest = if low < 0.0 { low } else { f64::NEG_INFINITY };
    }
    Dual { alpha, sweeps, converged: n == 0 }
}
