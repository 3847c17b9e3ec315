//! Coverage vectors: which source words a hypothesis has translated.

/// Coverage of a hypothesis: all words before `gap` are covered, `gap` itself is not, and `mask` covers the words
/// after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Coverage {
    /// Index of the first uncovered word.
    pub(crate) gap: u32,
    /// Bit i is set if word gap + 1 + i is covered.
    pub(crate) mask: u64,
}

impl Coverage {
    /// Whether a span that begins at the gap or later is uncovered.
    pub(crate) fn is_free(self, start: usize, length: usize) -> bool {
        let from = start - self.gap as usize;
        if from == 0 {
            return self.mask & low(length - 1) == 0;
        }
        from > 64 || self.mask >> (from - 1) & low(length) == 0
    }

    /// The coverage with an uncovered span added.
    pub(crate) fn with(self, start: usize, length: usize) -> Coverage {
        let from = start - self.gap as usize;
        if from > 0 {
            return Coverage { gap: self.gap, mask: self.mask | low(length) << (from - 1) };
        }
        // The span begins at the gap: the new gap is the first uncovered word after it.
        let rest = if length > 64 { 0 } else { self.mask.checked_shr(length as u32 - 1).unwrap_or(0) };
        let more = rest.trailing_ones();
        let mask = rest.checked_shr(more + 1).unwrap_or(0);
        Coverage { gap: self.gap + length as u32 + more, mask }
    }

    /// Calls `each` with the start and end of every uncovered span from the gap on, except for the last one, which
    /// extends to the end of the sentence and whose start is returned.
    pub(crate) fn open(self, mut each: impl FnMut(usize, usize)) -> usize {
        let mut start = self.gap as usize;
        let mut mask = self.mask;
        let mut at = start + 1;
        while mask != 0 {
            let free = mask.trailing_zeros() as usize;
            each(start, at + free);
            mask >>= free;
            let taken = mask.trailing_ones() as usize;
            mask = mask.checked_shr(taken as u32).unwrap_or(0);
            start = at + free + taken;
            at = start;
            if mask == 0 {
                break;
            }
        }
        start
    }
}

/// A mask of the lowest bits.
fn low(bits: usize) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}
