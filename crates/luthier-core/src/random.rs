//! Named streams of random numbers, without global state and the same on every machine.
//!
//! A [`Stream`] is identified by a seed, a [`Purpose`], an epoch and an index (of a segment, a restart or a
//! shard, never of a thread), so that results do not depend on how work is distributed. The generator is
//! `ChaCha8`; the samplers are implemented here, because those of general libraries may change between
//! versions.

use crate::math;
use chacha20::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// Purpose of a random stream. Results for a given seed depend on these numbers: append, never renumber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Purpose {
    /// Random restarts of MERT.
    Restart = 1,
    /// Random directions of line searches.
    Direction = 3,
    /// Restarts of MERT from random perturbations of the best weights so far.
    Perturb = 4,
    /// Order in which the oracle search visits segments.
    Oracle = 2,
    /// Sampling of pairs of candidates.
    Pairs = 5,
    /// Order in which a learner visits segments or examples.
    Order = 6,
    /// Sentences of a generated corpus.
    Corpus = 7,
    /// Segments of bootstrap samples.
    Resample = 8,
    /// Folds that choose a setting of a learner.
    Folds = 9,
    /// Generated test data.
    Test = 255,
}

/// A stream of random numbers that is determined by its seed, purpose, epoch and index.
///
/// ```
/// use luthier_core::random::{Purpose, Stream};
/// let draw = || Stream::new(1, Purpose::Restart, 0, 3).uniform(-1.0, 1.0);
/// assert_eq!(draw(), draw());
/// ```
#[derive(Debug)]
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// Returns the stream of a seed, a purpose, an epoch (modulo 2²⁴) and an index, at its beginning.
    pub fn new(seed: u64, purpose: Purpose, epoch: u32, index: u32) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(
            (u64::from(purpose as u8) << 56) | (u64::from(epoch & 0xff_ffff) << 32) | u64::from(index),
        );
        Stream(rng)
    }

    /// Draws 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Draws a number uniformly from [0, 1), with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Draws a number uniformly from [low, high).
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Draws a whole number uniformly from 0 to n − 1, without bias (Lemire 2019). `n` is at least 1.
    pub fn below(&mut self, n: u64) -> u64 {
        let mut product = u128::from(self.bits()) * u128::from(n);
        if (product as u64) < n {
            let threshold = n.wrapping_neg() % n;
            while (product as u64) < threshold {
                product = u128::from(self.bits()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }

    /// Draws a number from the normal distribution N(0, 1), by the polar method (Marsaglia and Bray 1964).
    pub fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (self.uniform(-1.0, 1.0), self.uniform(-1.0, 1.0));
            let r = x * x + y * y;
            if r > 0.0 && r < 1.0 {
                return x * (-2.0 * math::ln(r) / r).sqrt();
            }
        }
    }

    /// Shuffles a slice uniformly at random (Fisher and Yates 1938).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_behind_a_seed_never_change() {
        let mut s = Stream::new(1, Purpose::Restart, 0, 0);
        assert_eq!([s.bits(), s.bits()], [10_800_135_718_733_647_046, 15_779_222_209_643_635_861]);
    }

    #[test]
    fn streams_differ_in_every_coordinate() {
        let first = |seed, epoch, index| Stream::new(seed, Purpose::Restart, epoch, index).bits();
        let all = [first(1, 0, 0), first(2, 0, 0), first(1, 1, 0), first(1, 0, 1)];
        for i in 0..all.len() {
            assert!(all[..i].iter().all(|x| *x != all[i]));
        }
    }

    #[test]
    fn normal_has_mean_0_and_variance_1() {
        let mut s = Stream::new(8, Purpose::Test, 0, 0);
        let x: Vec<f64> = (0..100_000).map(|_| s.normal()).collect();
        let mean = x.iter().sum::<f64>() / 1e5;
        let variance = x.iter().map(|v| v * v).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
    }

    #[test]
    fn below_is_uniform_and_shuffle_permutes() {
        let mut s = Stream::new(7, Purpose::Test, 0, 0);
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[s.below(6) as usize] += 1;
        }
        assert!(counts.iter().all(|c| (9_600..10_400).contains(c)), "{counts:?}");
        let mut items: Vec<u32> = (0..100).collect();
        s.shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
