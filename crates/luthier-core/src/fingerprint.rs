//! Fast, unkeyed hash of byte strings. Its values are written to files, so it never changes.

/// First 64 bits of the fractional part of the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// First 64 bits of the fractional part of π.
const PI: u64 = 0x243f_6a88_85a3_08d3;

/// A 128-bit hash of bytes and numbers, the same in every version and on every machine. Not cryptographic.
///
/// Two lanes with different multipliers each absorb eight bytes at a time; every `bytes` call also absorbs
/// its length, so that `"ab","c"` and `"a","bc"` differ.
///
/// ```
/// use luthier_core::Fingerprint;
/// let print = |a: &str, b: &str| Fingerprint::default().bytes(a.as_bytes()).bytes(b.as_bytes()).finish();
/// assert_eq!(print("ab", "c"), print("ab", "c"));
/// assert_ne!(print("ab", "c"), print("a", "bc"));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Fingerprint {
    a: u64,
    b: u64,
}

impl Default for Fingerprint {
    fn default() -> Self {
        Fingerprint { a: GOLDEN, b: PI }
    }
}

impl Fingerprint {
    /// Absorbs a string of bytes and its length.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        let (chunks, rest) = bytes.as_chunks::<8>();
        for chunk in chunks {
            self = self.word(u64::from_le_bytes(*chunk));
        }
        let mut tail = [0u8; 8];
        tail[..rest.len()].copy_from_slice(rest);
        self.word(u64::from_le_bytes(tail)).word(bytes.len() as u64)
    }

    /// Absorbs one 64-bit number.
    #[must_use]
    #[inline]
    pub fn word(self, word: u64) -> Self {
        Fingerprint { a: fold(self.a ^ word, GOLDEN), b: fold(self.b ^ word, PI | 1) }
    }

    /// Returns the hash of everything absorbed so far, as 64 bits.
    pub fn finish64(self) -> u64 {
        avalanche(self.a ^ self.b.rotate_left(32))
    }

    /// Returns the hash of everything absorbed so far, as 128 bits.
    pub fn finish(self) -> u128 {
        (u128::from(avalanche(self.a)) << 64) | u128::from(avalanche(self.b))
    }
}

/// Multiplies to 128 bits and combines both halves, so that high bits affect low ones.
#[inline]
fn fold(x: u64, by: u64) -> u64 {
    let product = u128::from(x ^ x.rotate_left(29)).wrapping_mul(u128::from(by));
    (product as u64) ^ ((product >> 64) as u64).rotate_left(17) ^ x.rotate_left(41)
}

/// Mixes the bits of the state, so that every bit of `x` affects every bit of the result.
fn avalanche(mut x: u64) -> u64 {
    x ^= x >> 32;
    x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^= x >> 32;
    x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ (x >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustc_hash::FxHashSet;

    #[test]
    fn values_are_part_of_the_file_formats_and_stay() {
        assert_eq!(Fingerprint::default().bytes(b"LM0").finish64(), 14_598_271_084_767_165_353);
    }

    #[test]
    fn a_million_similar_names_do_not_collide_and_bits_are_balanced() {
        let mut seen = FxHashSet::default();
        let mut ones = [0u32; 64];
        for i in 0..1_000_000u32 {
            let h = Fingerprint::default().bytes(format!("PP_{i}").as_bytes()).finish64();
            assert!(seen.insert(h));
            for (bit, count) in ones.iter_mut().enumerate() {
                *count += (h >> bit) as u32 & 1;
            }
        }
        assert!(ones.iter().all(|&c| (497_000..503_000).contains(&c)), "{ones:?}");
    }

    #[test]
    fn boundaries_between_strings_count() {
        let f =
            |parts: &[&str]| parts.iter().fold(Fingerprint::default(), |f, p| f.bytes(p.as_bytes())).finish();
        assert_ne!(f(&["ab", "c"]), f(&["a", "bc"]));
        assert_ne!(f(&["a"]), f(&["a", ""]));
        assert_ne!(f(&["a"]), f(&["a\0"]));
    }
}
