//! The source of all choices.
//!
//! Drawing a tree and saying it both involve chance. All of it comes from one function that gives numbers
//! below a bound, so a corpus can be reproduced from a seed on any machine. The order of the draws is part
//! of the format: swapping two of them changes every corpus.

use crate::lexicon::Words;
use crate::links::mark;
use crate::tree::Expression;

/// Draws numbers and picks, and hands out fresh marks.
pub(crate) struct Dice<'a> {
    below: &'a mut dyn FnMut(usize) -> usize,
    marks: u32,
}

impl<'a> Dice<'a> {
    /// Dice that take their numbers from `below(n)`, which gives uniform numbers below n.
    pub(crate) fn new(below: &'a mut dyn FnMut(usize) -> usize) -> Self {
        Dice { below, marks: 0 }
    }

    /// A number below n.
    pub(crate) fn roll(&mut self, n: usize) -> usize {
        (self.below)(n.max(1))
    }

    /// True that often, in percent.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.roll(100) < percent
    }

    /// A number below n, the small ones being much likelier.
    pub(crate) fn skew(&mut self, n: usize) -> usize {
        let bound = self.roll(n);
        self.roll(bound + 1)
    }

    /// An index into a list of weights, each as likely as its weight says.
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

    /// One element of a list, early ones being likelier.
    pub(crate) fn pick<'t, T>(&mut self, list: &'t [T]) -> &'t T {
        &list[self.skew(list.len())]
    }

    /// One of the elements that fit, early ones being likelier. Nothing is drawn if there are none.
    pub(crate) fn pick_where<'t, T>(&mut self, list: &'t [T], fits: impl Fn(&T) -> bool) -> Option<&'t T> {
        let fitting: Vec<&T> = list.iter().filter(|entry| fits(entry)).collect();
        if fitting.is_empty() { None } else { Some(*self.pick(&fitting)) }
    }

    /// One of the alternatives in a text, early ones being likelier.
    pub(crate) fn alternative<'t>(&mut self, text: &'t str) -> &'t str {
        let index = self.skew(text.split('/').count());
        text.split('/').nth(index).unwrap_or(text)
    }

    /// The first mark of a fresh block.
    pub(crate) fn mark(&mut self) -> u32 {
        self.marks += mark::BLOCK;
        self.marks
    }

    /// An expression of the lexicon with marks of its own.
    pub(crate) fn expression(&mut self, words: Words) -> Expression {
        self.composed(words.german.to_string(), words.english.to_string())
    }

    /// A composed expression in the notation of the lexicon, with marks of its own.
    pub(crate) fn composed(&mut self, german: String, english: String) -> Expression {
        Expression { mark: self.mark(), german, english }
    }
}
