//! chrF and chrF++ (Popović 2015, 2017), equal to sacreBLEU's.
//!
//! chrF is the F-score F = (1 + β²)·P·R/(β²·P + R), β = 2, where precision P and recall R are averages over
//! character n-grams of orders 1 to 6, without white space, and for chrF++ also over word n-grams of orders 1
//! and 2. With several references, the reference with the best F-score counts. Statistics: hypothesis count,
//! reference count and matches of each order.

use crate::{
    Scratch,
    ngram::{self, NgramTable},
    tokenize::{is_space, lowered, words},
};

/// Settings of chrF and chrF++; the default is sacreBLEU's chrF2.
///
/// ```
/// use luthier_metric::{Chrf, Metric};
/// let metric = Metric::Chrf(Chrf { word_order: 2, ..Chrf::default() });
/// assert_eq!(metric, "chrf++".parse()?);
/// # Ok::<(), luthier_metric::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case", default)
)]
pub struct Chrf {
    /// Length of the longest character n-gram, from 1 to 16; 6 by default.
    pub char_order: usize,
    /// Length of the longest word n-gram, from 0 to 8; 0 by default, 2 for chrF++.
    pub word_order: usize,
    /// Weight β of recall against precision in the F-score, from 1 to 100; 2 by default.
    pub beta: u32,
    /// Whether hypotheses and references are lower-cased first; false by default.
    pub lowercase: bool,
    /// Whether white space counts as a character; false by default.
    pub whitespace: bool,
}

impl Default for Chrf {
    fn default() -> Self {
        Chrf { char_order: 6, word_order: 0, beta: 2, lowercase: false, whitespace: false }
    }
}

/// N-gram counts of the references of one segment.
#[derive(Debug, Clone)]
pub struct PreparedChrf(Vec<Reference>);

/// N-gram counts of one reference, and its lengths in characters and words.
#[derive(Debug, Clone)]
struct Reference {
    chars: NgramTable,
    char_count: usize,
    words: NgramTable,
    word_count: usize,
}

impl Chrf {
    /// Returns the number of n-gram orders, of characters and words.
    fn order(&self) -> usize {
        self.char_order + self.word_order
    }

    /// Returns the number of statistics per hypothesis.
    pub(crate) fn width(&self) -> usize {
        3 * self.order()
    }

    /// Counts the n-grams of the references of one segment.
    pub(crate) fn prepare(&self, references: &[&str], scratch: &mut Scratch) -> PreparedChrf {
        let Scratch { chars, words, .. } = scratch;
        let one = |text: &&str| {
            self.cut(text, chars, words);
            Reference {
                chars: NgramTable::new(chars, self.char_order),
                char_count: chars.len(),
                words: NgramTable::new(words, self.word_order),
                word_count: words.len(),
            }
        };
        PreparedChrf(references.iter().map(one).collect())
    }

    /// Writes the characters of a text to `chars`, and the hashes of its words to `tokens`; a punctuation
    /// mark at the end of a word, or else at its beginning, is a word of its own.
    fn cut(&self, text: &str, chars: &mut Vec<u64>, tokens: &mut Vec<u64>) {
        let text = lowered(text, self.lowercase);
        let text = text.trim_end_matches(is_space);
        chars.clear();
        chars.extend(
            text.chars().filter(|&c| self.whitespace || !is_space(c)).map(|c| u64::from(u32::from(c))),
        );
        tokens.clear();
        if self.word_order == 0 {
            return;
        }
        for word in words(text) {
            let mut letters = word.chars();
            let (first, last) = (letters.next(), letters.next_back());
            let (head, tail) = match (first, last) {
                (Some(_), Some(z)) if z.is_ascii_punctuation() => word.split_at(word.len() - 1),
                (Some(a), Some(_)) if a.is_ascii_punctuation() => word.split_at(1),
                _ => (word, ""),
            };
            tokens.push(ngram::word(head));
            tokens.extend((!tail.is_empty()).then(|| ngram::word(tail)));
        }
    }

    /// Writes the statistics of a hypothesis, against the reference with the best F-score, to `out`.
    pub(crate) fn stats(&self, p: &PreparedChrf, text: &str, scratch: &mut Scratch, out: &mut [f32]) {
        let (mut chars, mut tokens) =
            (std::mem::take(&mut scratch.chars), std::mem::take(&mut scratch.words));
        self.cut(text, &mut chars, &mut tokens);
        out.fill(0.0);
        let mut best = -1.0;
        for reference in &p.0 {
            let mut stats = std::mem::take(&mut scratch.stats);
            stats.clear();
            stats.resize(self.width(), 0.0);
            self.against(reference, &chars, &tokens, scratch, &mut stats);
            let f = self.f_score(&stats, |m, n| f64::from(m) / f64::from(n), |x| x);
            if f > best {
                best = f;
                out.copy_from_slice(&stats);
            }
            scratch.stats = stats;
        }
        (scratch.chars, scratch.words) = (chars, tokens);
    }

    /// Writes the statistics of a hypothesis against one reference to `stats`.
    fn against(
        &self,
        r: &Reference,
        chars: &[u64],
        tokens: &[u64],
        scratch: &mut Scratch,
        stats: &mut [f32],
    ) {
        let mut matched = std::mem::take(&mut scratch.matched);
        matched.clear();
        matched.resize(self.order(), 0.0);
        let (by_char, by_word) = matched.split_at_mut(self.char_order);
        r.chars.matches(chars, &mut scratch.ngrams, by_char);
        if self.word_order > 0 {
            r.words.matches(tokens, &mut scratch.ngrams, by_word);
        }
        for (i, triple) in stats.chunks_exact_mut(3).enumerate() {
            let (n, hypothesis, reference) = if i < self.char_order {
                (i, chars.len(), r.char_count)
            } else {
                (i - self.char_order, tokens.len(), r.word_count)
            };
            // An order for which the reference is too short is left out of the average.
            let of_reference = reference.saturating_sub(n);
            triple[0] = if of_reference > 0 { hypothesis.saturating_sub(n) as f32 } else { 0.0 };
            triple[1] = of_reference as f32;
            triple[2] = matched[i];
        }
        scratch.matched = matched;
    }

    /// Returns chrF of summed statistics, from 0 to 100.
    pub(crate) fn score(&self, total: &[f64]) -> f64 {
        self.f_score(total, |m, n| m / n, |x| x)
    }

    /// Returns chrF as sacreBLEU computes it from resampled statistics: with all arithmetic in `f32`.
    pub(crate) fn single_score(&self, total: &[f32]) -> f64 {
        self.f_score(total, |m, n| f64::from(m / n), |x| f64::from(x as f32))
    }

    /// Returns the F-score of summed statistics, from 0 to 100; `ratio` divides, and `round` is applied after
    /// every operation.
    fn f_score<T: Copy + PartialOrd + From<u8>>(
        &self,
        total: &[T],
        ratio: impl Fn(T, T) -> f64,
        round: impl Fn(f64) -> f64,
    ) -> f64 {
        let zero = T::from(0);
        let factor = f64::from(self.beta * self.beta);
        let (mut precision, mut recall, mut orders) = (0.0, 0.0, 0u32);
        for t in total.chunks_exact(3).filter(|t| t[0] > zero && t[1] > zero) {
            precision = round(precision + ratio(t[2], t[0]));
            recall = round(recall + ratio(t[2], t[1]));
            orders += 1;
        }
        if precision + recall == 0.0 {
            return 0.0;
        }
        precision = round(precision / f64::from(orders));
        recall = round(recall / f64::from(orders));
        let product = round(round((1.0 + factor) * precision) * recall);
        let score = round(product / round(round(factor * precision) + recall));
        round(100.0 * score)
    }

    /// Returns the name of the metric, such as `chrF2` or `chrF2++`.
    pub(crate) fn name(&self) -> String {
        format!("chrF{}{}", self.beta, "+".repeat(self.word_order))
    }

    /// Returns the settings in sacreBLEU's signature.
    pub(crate) fn signature(&self) -> String {
        format!(
            "case:{}|eff:yes|nc:{}|nw:{}|space:{}",
            if self.lowercase { "lc" } else { "mixed" },
            self.char_order,
            self.word_order,
            if self.whitespace { "yes" } else { "no" },
        )
    }
}
