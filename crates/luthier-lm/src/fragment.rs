//! Scoring of fragments whose left context is not known yet, for chart decoding.
//!
//! A chart decoder builds sentences from the inside: when words are first put together, the words before them are not
//! known. A [`Fragment`] scores its first words with the context inside the fragment and remembers them (n − 1 at most);
//! when it is put behind another fragment, [`Fragment::join`] scores those words again with their full context and gives
//! the difference. The sum over all steps is the score from left to right. A join costs at most 2(n − 1) queries.

use crate::{MAX_ORDER, Model, State};

/// A part of a sentence whose left context is not known yet: the first words, whose scores may still change, and the
/// state behind the last one. Fragments that are equal change every later score alike.
///
/// ```
/// # use luthier_core::Progress;
/// # use luthier_io::Input;
/// use luthier_lm::{Arpa, Fragment, Model};
/// # let text = "\\data\\\nngram 1=4\nngram 2=2\n\n\\1-grams:\n-1\t<unk>\n-99\t<s>\t-0.5\n-0.7\t</s>\n-0.5\ta\t-0.3\n\n\
/// #     \\2-grams:\n-0.2\t<s> a\n-0.3\ta </s>\n\n\\end\\\n";
/// # let model = Model::of_arpa(&Arpa::parse(Input::new("lm", text.as_bytes())?, Progress::NONE)?, "lm", Progress::NONE)?;
/// let a = model.word("a");
/// let mut part = Fragment::default();
/// let alone = part.push(&model, a); // log₁₀ p(a) = −0.5, without context
/// let mut sentence = Fragment::begin(&model);
/// let change = sentence.join(&model, &part); // log₁₀ p(a | <s>) = −0.2 in its place
/// assert!((alone + change - -0.2).abs() < 1e-6);
/// # luthier_core::Result::Ok(())
/// ```
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
    /// An empty fragment behind `<s>`, whose left context is known.
    pub fn begin(model: &Model) -> Self {
        Fragment { closed: true, right: model.begin(), ..Fragment::default() }
    }

    /// The state behind the last word: what the scores of later words depend on.
    pub fn right(&self) -> &State {
        &self.right
    }

    /// Adds a word at the end; returns what it adds to the score (log₁₀ of its probability in the context that is known).
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

    /// Puts `next` behind this fragment; returns the change of the sum of both scores (log₁₀), because the first words of
    /// `next` now have more context.
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

    /// An estimate of the score of a phrase in any context: log₁₀ of the probability of its words without context.
    pub fn estimate(model: &Model, words: &[u32]) -> f64 {
        let mut fragment = Fragment::default();
        words.iter().map(|&w| fragment.push(model, w)).sum()
    }
}
