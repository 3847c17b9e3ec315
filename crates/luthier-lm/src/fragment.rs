//! Scoring of fragments whose left context is not known yet, for chart decoding.

use crate::{MAX_ORDER, Model, State};

/// A piece of a sentence: what its score may still depend on at either side. Pieces with equal sides go on alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Fragment {
    /// The first words, whose scores more context on the left may change.
    left: [u32; MAX_ORDER - 1],
    length: u8,
    /// Whether words follow that nothing on the left can change.
    closed: bool,
    /// What later words depend on.
    right: State,
}

impl Fragment {
    /// The beginning of a sentence, whose left side is known.
    pub fn begin(model: &Model) -> Self {
        Fragment { closed: true, right: model.begin(), ..Fragment::default() }
    }

    /// What later words depend on.
    pub fn right(&self) -> &State {
        &self.right
    }

    /// Adds a word, and says what it adds to the score (log₁₀).
    pub fn push(&mut self, model: &Model, word: u32) -> f64 {
        let scored = model.score(&self.right, word);
        if !self.closed {
            // While the state remembers all words, an unknown one before them may matter.
            if self.right.len() == self.length as usize && (self.length as usize) < model.order() - 1 {
                self.left[self.length as usize] = word;
                self.length += 1;
            } else {
                self.closed = true;
            }
        }
        self.right = scored.state;
        f64::from(scored.log10)
    }

    /// Puts `next` behind this one, and says by how much the sum of both scores changes (log₁₀).
    pub fn join(&mut self, model: &Model, next: &Fragment) -> f64 {
        let mut alone = Fragment::default();
        let mut change = 0.0;
        for &word in &next.left[..next.length as usize] {
            change += self.push(model, word) - alone.push(model, word);
        }
        if next.closed {
            self.closed |= !next.left.is_empty();
            self.right = next.right;
            self.closed = true;
        }
        change
    }

    /// An estimate of what a phrase costs wherever it stands (log₁₀): its words by themselves.
    pub fn estimate(model: &Model, words: &[u32]) -> f64 {
        let mut fragment = Fragment::default();
        words.iter().map(|&w| fragment.push(model, w)).sum()
    }
}
