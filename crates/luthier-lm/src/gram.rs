//! N-grams with counts or weights, as records of the external sort.

use crate::MAX_ORDER;
use luthier_io::sort::{Record, read_or_end};
use std::{
    cmp::Ordering,
    io::{Read, Result, Write},
};

/// An n-gram and three numbers that belong to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Gram {
    /// Words in the order in which sorting compares them: from left to right, or from right to left. Unused places
    /// are 0.
    pub(crate) key: [u32; MAX_ORDER],
    pub(crate) numbers: [f64; 3],
}

/// Size of a record on disk, in bytes.
const SIZE: usize = 4 * MAX_ORDER + 24;

impl Record for Gram {
    fn order(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }

    // Only counts are added, for which floating-point sums are exact.
    fn add(&mut self, other: &Self) {
        for (k, n) in self.numbers.iter_mut().zip(other.numbers) {
            *k += n;
        }
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }

    fn put(&self, out: &mut impl Write) -> Result<()> {
        let mut bytes = [0; SIZE];
        for (b, k) in bytes.chunks_exact_mut(4).zip(self.key) {
            b.copy_from_slice(&k.to_le_bytes());
        }
        for (b, n) in bytes[4 * MAX_ORDER..].chunks_exact_mut(8).zip(self.numbers) {
            b.copy_from_slice(&n.to_le_bytes());
        }
        out.write_all(&bytes)
    }

    fn get(input: &mut impl Read) -> Result<Option<Self>> {
        let mut bytes = [0; SIZE];
        if !read_or_end(input, &mut bytes)? {
            return Ok(None);
        }
        let mut gram = Gram { key: [0; MAX_ORDER], numbers: [0.0; 3] };
        for (k, b) in gram.key.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *k = u32::from_le_bytes(*b);
        }
        for (n, b) in gram.numbers.iter_mut().zip(bytes[4 * MAX_ORDER..].as_chunks::<8>().0) {
            *n = f64::from_le_bytes(*b);
        }
        Ok(Some(gram))
    }
}
