//! Language model scores of sentence fragments whose left context is not yet known, for chart decoding.
//!
//! A chart decoder combines spans bottom-up, before the words to their left are known. A [`Fragment`] scores its first
//! words, at most n − 1 for a model of order n, with the context inside the fragment and remembers them. When it is
//! appended to another fragment, [`Fragment::join`] scores these words again with their full context and returns the
//! difference. The sum over all steps equals the score from left to right. A join costs at most 2(n − 1) queries.

use crate::{MAX_ORDER, Model, State};

/// State of a sentence fragment whose left context is not yet known: its first words, whose scores may still change,
/// and the language model state after its last word. Equal fragments can be recombined: all later scores are the
/// same.
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
    /// First words, whose scores may change with more left context.
    left: [u32; MAX_ORDER - 1],
    /// Number of words in `left`.
    length: u8,
    /// Whether the words after `left`, if any, are independent of the left context.
    closed: bool,
    /// Language model state after the last word.
    right: State,
}

impl Fragment {
    /// Returns an empty fragment after `<s>`, whose left context is known.
    pub fn begin(model: &Model) -> Self {
        Fragment { closed: true, right: model.begin(), ..Fragment::default() }
    }

    /// Language model state after the last word, on which the scores of later words depend.
    pub fn right(&self) -> &State {
        &self.right
    }

    /// Appends a word, and returns log₁₀ of its probability given the known context.
    pub fn push(&mut self, model: &Model, word: u32) -> f64 {
        let scored = model.score(&self.right, word);
        if !self.closed {
            // While the state covers all words of the fragment, the words before it may still matter.
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

    /// Appends the fragment `next`, and returns the change in the sum of both scores (log₁₀), since the first words of
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

    /// Estimates the score of a phrase in unknown context: log₁₀ of the probability of its words given only the words
    /// of the phrase before them.
    pub fn estimate(model: &Model, words: &[u32]) -> f64 {
        let mut fragment = Fragment::default();
        words.iter().map(|&w| fragment.push(model, w)).sum()
    }
}
