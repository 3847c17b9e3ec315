//! Hash table for recombination: finds the hypothesis with the same state as a new one.

/// Marks the absence of a hypothesis, in place of its index.
pub(crate) const NO_HYPOTHESIS: u32 = u32::MAX;

/// Open-addressing hash table of the hypotheses of the current stack or span.
#[derive(Default)]
pub(crate) struct Recombination {
    /// Index of the hypothesis in each slot, or [`NO_HYPOTHESIS`].
    pub(crate) slots: Vec<u32>,
    /// Slots that are occupied.
    pub(crate) used: Vec<u32>,
}

impl Recombination {
    /// Empties the table for the next stack, in time proportional to the number of its entries.
    pub(crate) fn clear(&mut self) {
        for &slot in &self.used {
            self.slots[slot as usize] = NO_HYPOTHESIS;
        }
        self.used.clear();
    }

    /// The slot of the hypothesis with this hash that `same` accepts, or the empty slot where it would be inserted.
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

    /// Grows the table if necessary, so that at most half of the slots are occupied after one more insertion. `hash`
    /// gives the hash of a hypothesis.
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
