//! Random numbers of `NumPy`'s `default_rng`, so that significance tests give the p-values of sacreBLEU for
//! the same seed: the generator PCG64 (O'Neill 2014) with `SeedSequence`, and the two samplers that sacreBLEU
//! uses.

/// A PCG64 generator with output XSL-RR.
#[derive(Debug, Clone)]
pub(crate) struct Generator {
    state: u128,
    increment: u128,
    /// Upper half of the last 64-bit number, if only its lower half has been used.
    half: Option<u32>,
}

/// Multiplier of the linear congruential generator of PCG64.
const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;

impl Generator {
    /// Returns the generator of `numpy.random.default_rng(seed)`.
    pub(crate) fn new(seed: u64) -> Self {
        let words = seed_words(seed);
        let pair = |i: usize| (u128::from(words[i]) << 64) | u128::from(words[i + 1]);
        let mut g = Generator { state: 0, increment: (pair(2) << 1) | 1, half: None };
        g.advance();
        g.state = g.state.wrapping_add(pair(0));
        g.advance();
        g
    }

    /// Advances the state by one step.
    fn advance(&mut self) {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(self.increment);
    }

    /// Draws 64 random bits.
    fn next64(&mut self) -> u64 {
        self.advance();
        let folded = (self.state >> 64) as u64 ^ self.state as u64;
        folded.rotate_right((self.state >> 122) as u32)
    }

    /// Draws 32 random bits; two calls share a 64-bit number, lower half first.
    fn next32(&mut self) -> u32 {
        if let Some(half) = self.half.take() {
            return half;
        }
        let both = self.next64();
        self.half = Some((both >> 32) as u32);
        both as u32
    }

    /// Draws a number uniformly from 0 to n − 1, as `choice(n)` does (Lemire 2019, on 32 bits).
    pub(crate) fn choice(&mut self, n: u32) -> u32 {
        if n <= 1 {
            return 0;
        }
        let mut product = u64::from(self.next32()) * u64::from(n);
        if (product as u32) < n {
            let threshold = n.wrapping_neg() % n;
            while (product as u32) < threshold {
                product = u64::from(self.next32()) * u64::from(n);
            }
        }
        (product >> 32) as u32
    }

    /// Fills `out` as `integers(2, size, dtype=bool)` does: with the bits of 32-bit numbers, lowest first.
    pub(crate) fn bits(&mut self, out: &mut [bool], left: &mut BitBuffer) {
        for bit in out {
            if left.count == 0 {
                *left = BitBuffer { bits: self.next32(), count: 31 };
            } else {
                left.bits >>= 1;
                left.count -= 1;
            }
            *bit = left.bits & 1 == 1;
        }
    }
}

/// Unused bits of the last 32-bit number.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BitBuffer {
    bits: u32,
    count: u32,
}

/// Returns the four numbers of `SeedSequence(seed).generate_state(4, uint64)`.
fn seed_words(seed: u64) -> [u64; 4] {
    let mut constant = 0x43b0_d7e5u32;
    let mut hash = |value: u32| {
        let value = value ^ constant;
        constant = constant.wrapping_mul(0x931e_8875);
        let value = value.wrapping_mul(constant);
        value ^ (value >> 16)
    };
    let mix = |x: u32, y: u32| {
        let r = 0xca01_f9ddu32.wrapping_mul(x).wrapping_sub(0x4973_f715u32.wrapping_mul(y));
        r ^ (r >> 16)
    };
    // The entropy is one 32-bit word if the upper half of the seed is 0, else two; missing words count as 0.
    let mut pool = [hash(seed as u32), hash((seed >> 32) as u32), hash(0), hash(0)];
    for from in 0..4 {
        for to in (0..4).filter(|&to| to != from) {
            pool[to] = mix(pool[to], hash(pool[from]));
        }
    }
    let mut constant = 0x8b51_f9ddu32;
    let mut words = [0u32; 8];
    for (i, word) in words.iter_mut().enumerate() {
        let value = pool[i % 4] ^ constant;
        constant = constant.wrapping_mul(0x58f3_8ded);
        let value = value.wrapping_mul(constant);
        *word = value ^ (value >> 16);
    }
    std::array::from_fn(|i| u64::from(words[2 * i]) | (u64::from(words[2 * i + 1]) << 32))
}

/// A floating-point type of [`pairwise_sum`].
pub(crate) trait Float: Copy + std::ops::Add<Output = Self> {
    const ZERO: Self;
}

impl Float for f32 {
    const ZERO: f32 = 0.0;
}

impl Float for f64 {
    const ZERO: f64 = 0.0;
}

/// Returns the sum of a contiguous array as `numpy.sum` computes it: pairwise, with eight partial sums in
/// blocks of up to 128 numbers.
pub(crate) fn pairwise_sum<T: Float>(x: &[T]) -> T {
    let add = |a: T, b: &T| a + *b;
    if x.len() < 8 {
        return x.iter().fold(T::ZERO, add);
    }
    if x.len() <= 128 {
        let (blocks, rest) = x.as_chunks::<8>();
        let mut r = blocks[0];
        for block in &blocks[1..] {
            for (r, b) in r.iter_mut().zip(block) {
                *r = *r + *b;
            }
        }
        let sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
        return rest.iter().fold(sum, add);
    }
    let half = x.len() / 2;
    let half = half - half % 8;
    pairwise_sum(&x[..half]) + pairwise_sum(&x[half..])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from `NumPy` 2.4.6.
    #[test]
    fn equal_to_numpy() {
        assert_eq!(seed_words(12345)[..2], [13091511679009522556, 13538552136045918767]);
        assert_eq!(seed_words(1 << 40 | 7)[0], 974592680304384533);
        let mut g = Generator::new(12345);
        assert_eq!(g.state, 33261208707367790463622745601869196757);
        assert_eq!([g.next64(), g.next64()], [4193609425186963869, 5843160025838961886]);
        let mut g = Generator::new(1);
        assert_eq!([g.next64(), g.next64()], [9441442522235856127, 17532960557476522086]);
        let mut bits = [false; 12];
        Generator::new(0).bits(&mut bits, &mut BitBuffer::default());
        assert_eq!(bits.map(u8::from), [1, 1, 1, 1, 1, 0, 1, 0, 0, 1, 0, 0]);
        let mut all = vec![false; 10000 * 1002];
        Generator::new(12345).bits(&mut all, &mut BitBuffer::default());
        assert_eq!(all.iter().filter(|&&b| b).count(), 5008388);
    }
}
