//! Random choices of the grammar.
//!
//! Drawing a tree and realising it both involve random choices. All of them come from one function that
//! returns uniform numbers below a bound, so that a corpus can be reproduced from a seed on any machine. The
//! order of the draws must not change: swapping two of them changes every corpus.

use crate::lexicon::Words;
use crate::links::mark;
use crate::tree::Expression;

/// Source of random choices and of unused marks.
pub(crate) struct Dice<'a> {
    /// Returns a uniform number below its argument.
    below: &'a mut dyn FnMut(usize) -> usize,
    /// First mark of the last block.
    marks: u32,
}

impl<'a> Dice<'a> {
    /// Returns a source of choices that takes its numbers from `below(n)`, which returns uniform numbers
    /// below n.
    pub(crate) fn new(below: &'a mut dyn FnMut(usize) -> usize) -> Self {
        Dice { below, marks: 0 }
    }

    /// Draws a number uniformly from 0 to n − 1.
    pub(crate) fn roll(&mut self, n: usize) -> usize {
        (self.below)(n.max(1))
    }

    /// Returns true with this probability, in per cent.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.roll(100) < percent
    }

    /// Draws a number from 0 to n − 1, small ones with a much higher probability.
    pub(crate) fn skew(&mut self, n: usize) -> usize {
        let bound = self.roll(n);
        self.roll(bound + 1)
    }

    /// Draws an index with probability proportional to its weight.
    pub(crate) fn weighted(&mut self, weights: &[usize]) -> usize {
        let mut at = self.roll(weights.iter().sum());
        for (index, &weight) in weights.iter().enumerate() {
            if at < weight {
                return index;
            }
            at -= weight;
        }
        0
    }

    /// Draws an element of a list, early ones with a higher probability.
    pub(crate) fn pick<'t, T>(&mut self, list: &'t [T]) -> &'t T {
        &list[self.skew(list.len())]
    }

    /// Draws one of the elements for which `fits` returns true, early ones with a higher probability; `None`,
    /// without a draw, if there are none.
    pub(crate) fn pick_where<'t, T>(&mut self, list: &'t [T], fits: impl Fn(&T) -> bool) -> Option<&'t T> {
        let fitting: Vec<&T> = list.iter().filter(|entry| fits(entry)).collect();
        if fitting.is_empty() { None } else { Some(*self.pick(&fitting)) }
    }

    /// Draws one of the alternatives in a text, which are separated by `/`, early ones with a higher
    /// probability.
    pub(crate) fn alternative<'t>(&mut self, text: &'t str) -> &'t str {
        let index = self.skew(text.split('/').count());
        text.split('/').nth(index).unwrap_or(text)
    }

    /// Returns the first mark of an unused block.
    pub(crate) fn mark(&mut self) -> u32 {
        self.marks += mark::BLOCK;
        self.marks
    }

    /// Returns an expression of the lexicon with an unused block of marks.
    pub(crate) fn expression(&mut self, words: Words) -> Expression {
        self.composed(words.german.to_string(), words.english.to_string())
    }

    /// Returns an expression composed in the notation of the lexicon, with an unused block of marks.
    pub(crate) fn composed(&mut self, german: String, english: String) -> Expression {
        Expression { mark: self.mark(), german, english }
    }
}
