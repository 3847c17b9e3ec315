//! Clipped n-gram matches between a hypothesis and references.

use rustc_hash::FxHasher;
use std::hash::Hasher;

/// Words and n-grams are 64-bit hashes. A segment has at most some thousand of them, so the chance of a wrong
/// match is below one in 10^12; comparing strings would cost most of the time and change nothing.
pub(crate) type Gram = u64;

/// The hash of a word.
pub(crate) fn word(text: &str) -> Gram {
    let mut hasher = FxHasher::default();
    hasher.write(text.as_bytes());
    finish(hasher.finish() ^ text.len() as u64)
}

/// The hash of an n-gram made longer by a word or a character.
#[inline]
pub(crate) fn extend(gram: Gram, word: Gram) -> Gram {
    finish(gram.rotate_left(23).wrapping_add(word))
}

#[inline]
fn finish(x: u64) -> u64 {
    let x = (x ^ (x >> 31)).wrapping_mul(0x9fb2_1c65_1e98_df25);
    (x ^ (x >> 29)) | 1 // never 0, which marks an empty slot
}

/// The n-grams of one or more references with their counts: an open-addressing table.
#[derive(Debug, Clone)]
pub(crate) struct NgramTable {
    slots: Vec<Slot>,
    mask: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    gram: Gram,
    limit: u32,
    order: u32,
}

impl NgramTable {
    /// Of one sequence of words.
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

    /// Of several: the largest count of each n-gram over the sequences.
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

    fn with_room(grams: usize) -> Self {
        let size = (grams * 2).next_power_of_two().max(4);
        NgramTable { slots: vec![Slot::default(); size], mask: size - 1 }
    }

    /// Where a gram is, or the empty slot where it would be. At most half of the slots are taken.
    #[inline]
    fn slot(&self, gram: Gram) -> usize {
        let mut slot = (gram >> 32) as usize & self.mask;
        while self.slots[slot].gram != gram && self.slots[slot].gram != 0 {
            slot = (slot + 1) & self.mask;
        }
        slot
    }

    /// The slots of all n-grams up to `order` that are here, one entry an occurrence.
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

    /// The slot of an n-gram that is here.
    pub(crate) fn find(&self, gram: Gram) -> Option<u32> {
        let slot = self.slot(gram);
        (self.slots[slot].gram != 0).then_some(slot as u32)
    }

    /// Order and limit of every slot.
    pub(crate) fn limits(&self) -> Vec<(usize, u32)> {
        self.slots.iter().map(|s| (s.order as usize, s.limit)).collect()
    }

    /// Adds the clipped matches of each order to `matched`, whose length is the order. Only n-grams whose
    /// prefix is in some reference can match, so the inner loop stops early.
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

/// Counters that are zero between calls.
#[derive(Debug, Clone, Default)]
pub(crate) struct NgramScratch {
    counts: Vec<u32>,
    touched: Vec<u32>,
}
