//! N-grams with numbers, as they are sorted.

use crate::MAX_ORDER;
use luthier_io::sort::{Record, read_or_end};
use std::{
    cmp::Ordering,
    io::{Read, Result, Write},
};

/// Words in the order that sorting compares, unused places 0, and numbers that go with them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Gram {
    pub(crate) key: [u32; MAX_ORDER],
    pub(crate) numbers: [f64; 3],
}

const SIZE: usize = 4 * MAX_ORDER + 24;

impl Record for Gram {
    fn order(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }

    // Only counts are added, which are exact.
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
