//! Clipped n-gram matches between a hypothesis and one segment's references.

use rustc_hash::FxHasher;
use std::hash::Hasher;

/// Words and n-grams are 64-bit hashes. A segment has at most some hundred of them, so the chance of a wrong
/// match is below one in 10^14; comparing strings would cost most of the time and change nothing.
pub(crate) type Gram = u64;

/// The hash of a word.
pub(crate) fn word(text: &str) -> Gram {
    let mut hasher = FxHasher::default();
    hasher.write(text.as_bytes());
    finish(hasher.finish() ^ text.len() as u64)
}

/// The hash of an n-gram made longer by a word.
pub(crate) fn extend(gram: Gram, word: Gram) -> Gram {
    finish(gram.rotate_left(23).wrapping_add(word))
}

fn finish(x: u64) -> u64 {
    let x = (x ^ (x >> 31)).wrapping_mul(0x9fb2_1c65_1e98_df25);
    (x ^ (x >> 29)) | 1 // never 0, which marks an empty slot
}

/// The n-grams of all references with the largest count over references: an open-addressing table.
#[derive(Debug, Clone)]
pub(crate) struct NgramTable {
    keys: Vec<Gram>,
    limits: Vec<u32>,
    mask: usize,
}

impl NgramTable {
    /// Of references given as words.
    pub(crate) fn new(references: &[Vec<Gram>], order: usize) -> Self {
        let mut counted: Vec<(Gram, u32)> = Vec::new();
        let mut grams: Vec<Gram> = Vec::new();
        for reference in references {
            grams.clear();
            for i in 0..reference.len() {
                let mut gram = 0;
                for &w in reference[i..].iter().take(order) {
                    gram = extend(gram, w);
                    grams.push(gram);
                }
            }
            grams.sort_unstable();
            counted.extend(grams.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32)));
        }
        let size = (counted.len() * 2).next_power_of_two().max(4);
        let mut table = NgramTable { keys: vec![0; size], limits: vec![0; size], mask: size - 1 };
        for (gram, count) in counted {
            let slot = table.slot(gram);
            table.keys[slot] = gram;
            table.limits[slot] = table.limits[slot].max(count);
        }
        table
    }

    /// Where a gram is, or the empty slot where it would be. At most half of the slots are taken.
    fn slot(&self, gram: Gram) -> usize {
        let mut slot = (gram >> 32) as usize & self.mask;
        while self.keys[slot] != gram && self.keys[slot] != 0 {
            slot = (slot + 1) & self.mask;
        }
        slot
    }

    /// Adds the clipped matches of each order to `matched`, whose length is the order. Only n-grams whose
    /// prefix is in some reference can match, so the inner loop stops early.
    pub(crate) fn matches(&self, words: &[Gram], scratch: &mut NgramScratch, matched: &mut [f32]) {
        scratch.counts.resize(scratch.counts.len().max(self.keys.len()), 0);
        for i in 0..words.len() {
            let mut gram = 0;
            for (&w, hits) in words[i..].iter().zip(matched.iter_mut()) {
                gram = extend(gram, w);
                let slot = self.slot(gram);
                if self.keys[slot] == 0 {
                    break;
                }
                if scratch.counts[slot] < self.limits[slot] {
                    *hits += 1.0;
                }
                scratch.counts[slot] += 1;
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
    pub(crate) words: Vec<Gram>,
    counts: Vec<u32>,
    touched: Vec<u32>,
}
