//! Finding the hypothesis that a new one recombines with.

/// The number of no hypothesis.
pub(crate) const NO_HYPOTHESIS: u32 = u32::MAX;

/// An open-addressing table of hypotheses of the stack that is being filled.
#[derive(Default)]
pub(crate) struct Recombination {
    pub(crate) slots: Vec<u32>,
    pub(crate) used: Vec<u32>,
}

impl Recombination {
    /// Empties the table for the next stack, in time of what it holds.
    pub(crate) fn clear(&mut self) {
        for &slot in &self.used {
            self.slots[slot as usize] = NO_HYPOTHESIS;
        }
        self.used.clear();
    }

    /// The slot of a hypothesis, or the empty one where it would be.
    pub(crate) fn find(&self, hash: u64, same: impl Fn(u32) -> bool) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            match self.slots[slot] {
                NO_HYPOTHESIS => return slot,
                id if same(id) => return slot,
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// Makes room for one more, so that at most half of the slots are taken.
    pub(crate) fn reserve(&mut self, hash: impl Fn(u32) -> u64) {
        if self.slots.len() >= 2 * (self.used.len() + 1) {
            return;
        }
        let ids: Vec<u32> = self.used.iter().map(|&s| self.slots[s as usize]).collect();
        self.slots = vec![NO_HYPOTHESIS; (4 * (self.used.len() + 1)).next_power_of_two().max(1024)];
        self.used.clear();
        for id in ids {
            let slot = self.find(hash(id), |_| false);
            self.slots[slot] = id;
            self.used.push(slot as u32);
        }
    }
}
