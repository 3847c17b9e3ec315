//! Clipped n-gram matches between a hypothesis and its references.

use rustc_hash::FxHasher;
use std::hash::Hasher;

/// 64-bit hash of a word or n-gram. A segment has at most a few thousand of them, so the probability of a
/// false match is below one in 10^12; comparing strings instead would dominate the running time.
pub(crate) type Gram = u64;

/// Returns the hash of a word.
pub(crate) fn word(text: &str) -> Gram {
    let mut hasher = FxHasher::default();
    hasher.write(text.as_bytes());
    finish(hasher.finish() ^ text.len() as u64)
}

/// Returns the hash of an n-gram extended by a word or a character; 0 is the hash of the empty n-gram.
#[inline]
pub(crate) fn extend(gram: Gram, word: Gram) -> Gram {
    finish(gram.rotate_left(23).wrapping_add(word))
}

/// Mixes the bits of a hash; the result is never 0.
#[inline]
fn finish(x: u64) -> u64 {
    let x = (x ^ (x >> 31)).wrapping_mul(0x9fb2_1c65_1e98_df25);
    (x ^ (x >> 29)) | 1 // never 0, which marks an empty slot
}

/// Counts of the n-grams of one or more references, in a hash table with open addressing.
#[derive(Debug, Clone)]
pub(crate) struct NgramTable {
    slots: Vec<Slot>,
    mask: usize,
}

/// An n-gram with its count; hash 0 marks an empty slot.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    gram: Gram,
    /// Largest count of the n-gram in a reference, to which matches are clipped.
    limit: u32,
    /// Number of words or characters of the n-gram.
    order: u32,
}

impl NgramTable {
    /// Counts the n-grams up to `order` of one sequence of words.
    pub(crate) fn new(words: &[Gram], order: usize) -> Self {
        let mut table = Self::with_room(words.len() * order);
        for i in 0..words.len() {
            let mut gram = 0;
            for (n, &w) in words[i..].iter().take(order).enumerate() {
                gram = extend(gram, w);
                let slot = table.slot(gram);
                let limit = table.slots[slot].limit + 1;
                table.slots[slot] = Slot { gram, limit, order: n as u32 + 1 };
            }
        }
        table
    }

    /// Returns the n-grams up to `order` of several references, with the largest count of each in a
    /// reference.
    pub(crate) fn largest(references: &[Vec<Gram>], order: usize) -> Self {
        let mut all = Self::with_room(references.iter().map(Vec::len).sum::<usize>() * order);
        for reference in references {
            for s in Self::new(reference, order).slots.into_iter().filter(|s| s.gram != 0) {
                let slot = all.slot(s.gram);
                all.slots[slot] = Slot { limit: all.slots[slot].limit.max(s.limit), ..s };
            }
        }
        all
    }

    /// Returns an empty table with room for `grams` n-grams.
    fn with_room(grams: usize) -> Self {
        let size = (grams * 2).next_power_of_two().max(4);
        NgramTable { slots: vec![Slot::default(); size], mask: size - 1 }
    }

    /// Returns the slot of an n-gram, or the empty slot where it would be inserted; at most half of the slots
    /// are occupied.
    #[inline]
    fn slot(&self, gram: Gram) -> usize {
        let mut slot = (gram >> 32) as usize & self.mask;
        while self.slots[slot].gram != gram && self.slots[slot].gram != 0 {
            slot = (slot + 1) & self.mask;
        }
        slot
    }

    /// Appends to `out` the slots of all n-grams of `words` up to `order` that are in the table, one per
    /// occurrence.
    pub(crate) fn occurrences(&self, words: &[Gram], order: usize, out: &mut Vec<u32>) {
        for i in 0..words.len() {
            let mut gram = 0;
            for &w in words[i..].iter().take(order) {
                gram = extend(gram, w);
                let slot = self.slot(gram);
                if self.slots[slot].gram == 0 {
                    break;
                }
                out.push(slot as u32);
            }
        }
    }

    /// Returns the slot of an n-gram; `None` if it is not in the table.
    pub(crate) fn find(&self, gram: Gram) -> Option<u32> {
        let slot = self.slot(gram);
        (self.slots[slot].gram != 0).then_some(slot as u32)
    }

    /// Returns order and largest count of the n-gram in every slot; order 0 for empty slots.
    pub(crate) fn limits(&self) -> Vec<(usize, u32)> {
        self.slots.iter().map(|s| (s.order as usize, s.limit)).collect()
    }

    /// Adds the clipped matches of each order to `matched`, whose length is the largest order. The inner loop
    /// stops at the first n-gram that is not in the table, because its extensions cannot be in the table
    /// either.
    pub(crate) fn matches(&self, words: &[Gram], scratch: &mut NgramScratch, matched: &mut [f32]) {
        scratch.counts.resize(scratch.counts.len().max(self.slots.len()), 0);
        for i in 0..words.len() {
            let mut gram = 0;
            for (&w, hits) in words[i..].iter().zip(matched.iter_mut()) {
                gram = extend(gram, w);
                let slot = self.slot(gram);
                if self.slots[slot].gram == 0 {
                    break;
                }
                let count = &mut scratch.counts[slot];
                if *count < self.slots[slot].limit {
                    *hits += 1.0;
                }
                *count += 1;
                scratch.touched.push(slot as u32);
            }
        }
        for slot in scratch.touched.drain(..) {
            scratch.counts[slot as usize] = 0;
        }
    }
}

/// Working memory of [`NgramTable::matches`].
#[derive(Debug, Clone, Default)]
pub(crate) struct NgramScratch {
    /// Count of the n-gram in each slot; all are 0 between calls.
    counts: Vec<u32>,
    /// Slots whose count is not 0.
    touched: Vec<u32>,
}
