//! Parallel floating-point sums that are bit-for-bit the same on any number of threads.
//!
//! Floating-point addition is not associative, so the order of additions is fixed: the terms are split into
//! chunks whose size does not depend on the number of threads, each chunk is summed from left to right, and
//! the partial sums are added in order. All parallel floating-point reductions of Luthier use this module.

use rayon::prelude::*;
use std::ops::Range;

/// Applies `f` to consecutive ranges of `0..n` of `chunk` items (the last may be shorter), in parallel, and
/// returns its values in order.
pub fn map_chunks<T: Send>(n: usize, chunk: usize, f: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    let chunk = chunk.max(1);
    (0..n.div_ceil(chunk)).into_par_iter().map(|c| f(c * chunk..n.min((c + 1) * chunk))).collect()
}

/// Returns the sum of `n` vectors of `width` numbers, computed in parallel: `f(i, total)` adds vector `i` to
/// `total`. The order of additions depends only on `n` and `chunk`.
///
/// ```
/// let squares = luthier_core::sum::sum(4, 2, 1, |i, total| total[0] += (i * i) as f64);
/// assert_eq!(squares, [14.0]); // (0 + 1) + (4 + 9)
/// ```
pub fn sum(n: usize, chunk: usize, width: usize, f: impl Fn(usize, &mut [f64]) + Sync) -> Vec<f64> {
    let parts = map_chunks(n, chunk, |range| {
        let mut total = vec![0.0; width];
        for i in range {
            f(i, &mut total);
        }
        total
    });
    let mut total = vec![0.0; width];
    for part in parts {
        for (t, p) in total.iter_mut().zip(part) {
            *t += p;
        }
    }
    total
}

/// Returns the discounts of modified Kneser–Ney smoothing for counts of one, two, and three or more (Chen and
/// Goodman 1998): Dₖ = k − (k + 1)·Y·tₖ₊₁/tₖ with Y = t₁/(t₁ + 2t₂), where `by_times[k]` is the count of
/// counts tₖ, the number of n-grams or phrase pairs that occur k times. The discounts may be negative or NaN
/// if the counts of counts do not decrease as in natural text.
pub fn discounts(by_times: &[u64; 5]) -> [f64; 3] {
    let t = by_times.map(|t| t as f64);
    let y = t[1] / (t[1] + 2.0 * t[2]);
    [1, 2, 3].map(|k| k as f64 - (k + 1) as f64 * y * t[k + 1] / t[k])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Stream};

    #[test]
    fn same_bits_on_any_number_of_threads() {
        let mut s = Stream::new(3, Purpose::Test, 0, 0);
        let x: Vec<f64> = (0..50_000).map(|_| s.uniform(-1e6, 1e6)).collect();
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| sum(x.len(), 64, 1, |i, t| t[0] += x[i])[0]).to_bits()
        };
        assert_eq!(on(1), on(2));
        assert_eq!(on(1), on(5));
    }
}
