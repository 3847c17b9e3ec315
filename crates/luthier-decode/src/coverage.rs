//! Which source words a hypothesis has translated.

/// Which words are translated: all before `gap`, and those of `mask` behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Coverage {
    pub(crate) gap: u32,
    /// Bit i is word gap + 1 + i.
    pub(crate) mask: u64,
}

impl Coverage {
    /// Whether a span that begins at the gap or later is free.
    pub(crate) fn is_free(self, start: usize, length: usize) -> bool {
        let from = start - self.gap as usize;
        if from == 0 {
            return self.mask & low(length - 1) == 0;
        }
        from > 64 || self.mask >> (from - 1) & low(length) == 0
    }

    /// The coverage after a free span has been translated.
    pub(crate) fn with(self, start: usize, length: usize) -> Coverage {
        let from = start - self.gap as usize;
        if from > 0 {
            return Coverage { gap: self.gap, mask: self.mask | low(length) << (from - 1) };
        }
        // The gap is filled: the next one is the first word behind the span that is not covered.
        let rest = if length > 64 { 0 } else { self.mask.checked_shr(length as u32 - 1).unwrap_or(0) };
        let more = rest.trailing_ones();
        let mask = rest.checked_shr(more + 1).unwrap_or(0);
        Coverage { gap: self.gap + length as u32 + more, mask }
    }

    /// Spans behind the gap that are not covered: the words from the gap on, as (start, end), but for the last one, which
    /// goes to the end of the sentence and is given by its start.
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

fn low(bits: usize) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}
