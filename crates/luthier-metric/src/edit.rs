//! Word and character error rates (WER, CER), for speech recognition.
//!
//! The error rate is the Levenshtein distance to the closest reference, divided by the length of that
//! reference. Statistics: edits, reference length.

use crate::{
    Scratch, ngram,
    tokenize::{lowered, words},
};

/// Settings of the word error rate (WER, the default) and the character error rate (CER).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case", default)
)]
pub struct ErrorRate {
    /// Whether edits are counted in characters, with one space between words (CER), instead of words (WER).
    pub characters: bool,
    /// Whether hypotheses and references are lower-cased first; false by default.
    pub lowercase: bool,
}

impl ErrorRate {
    /// Returns the words or characters of each reference, as numbers.
    pub(crate) fn prepare(&self, references: &[&str]) -> Vec<Vec<u64>> {
        let mut units = Vec::new();
        let one = |r: &&str| {
            self.cut(r, &mut units);
            units.clone()
        };
        references.iter().map(one).collect()
    }

    /// Writes the words or characters of a text to `out`, as numbers.
    fn cut(&self, text: &str, out: &mut Vec<u64>) {
        let text = &lowered(text, self.lowercase);
        out.clear();
        if !self.characters {
            out.extend(words(text).map(ngram::word));
            return;
        }
        for word in words(text) {
            if !out.is_empty() {
                out.push(u64::from(u32::from(' ')));
            }
            out.extend(word.chars().map(|c| u64::from(u32::from(c))));
        }
    }

    /// Writes the statistics of a hypothesis, against the closest reference, to `out`.
    pub(crate) fn stats(&self, references: &[Vec<u64>], text: &str, scratch: &mut Scratch, out: &mut [f32]) {
        self.cut(text, &mut scratch.words);
        let mut best = (usize::MAX, 0);
        for reference in references {
            let edits = distance(&scratch.words, reference, &mut scratch.row);
            if edits < best.0 {
                best = (edits, reference.len());
            }
        }
        out.copy_from_slice(&[if references.is_empty() { 0.0 } else { best.0 as f32 }, best.1 as f32]);
    }

    pub(crate) fn name(&self) -> &'static str {
        if self.characters { "CER" } else { "WER" }
    }

    /// Returns the settings in sacreBLEU's signature.
    pub(crate) fn signature(&self) -> String {
        format!("case:{}", if self.lowercase { "lc" } else { "mixed" })
    }
}

/// Returns edits divided by reference length, in per cent; 100 if there are edits and the reference length is
/// 0, as in sacreBLEU's TER.
pub(crate) fn rate(total: &[f64]) -> f64 {
    match (total[0], total[1]) {
        (edits, length) if length > 0.0 => 100.0 * edits / length,
        (edits, _) if edits > 0.0 => 100.0,
        _ => 0.0,
    }
}

/// Returns the Levenshtein distance, in O(|a|·|b|) time; `row` is working memory of |b| + 1 numbers.
fn distance(a: &[u64], b: &[u64], row: &mut Vec<u32>) -> usize {
    row.clear();
    row.extend(0..=b.len() as u32);
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i as u32 + 1;
        for (j, y) in b.iter().enumerate() {
            let replace = diagonal + u32::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()] as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Levenshtein distance by its recursive definition.
    fn slow(a: &[u64], b: &[u64]) -> usize {
        match (a, b) {
            ([], _) => b.len(),
            (_, []) => a.len(),
            ([x, s @ ..], [y, t @ ..]) if x == y => slow(s, t),
            ([_, s @ ..], [_, t @ ..]) => 1 + slow(s, t).min(slow(s, b)).min(slow(a, t)),
        }
    }

    proptest! {
        #[test]
        fn equals_the_definition(
            a in prop::collection::vec(0u64..3, 0..7),
            b in prop::collection::vec(0u64..3, 0..7),
        ) {
            prop_assert_eq!(distance(&a, &b, &mut Vec::new()), slow(&a, &b));
        }
    }

    #[test]
    fn nearest_reference_and_units() {
        let mut out = [0.0; 2];
        let mut scratch = Scratch::default();
        let wer = ErrorRate::default();
        wer.stats(
            &wer.prepare(&["a x y z", "taro met hanako"]),
            "the taro met the hanako",
            &mut scratch,
            &mut out,
        );
        assert_eq!(out, [2.0, 3.0]);
        let cer = ErrorRate { characters: true, lowercase: true };
        cer.stats(&cer.prepare(&["Ab  c"]), "ab d", &mut scratch, &mut out);
        assert_eq!(out, [1.0, 4.0]);
        cer.stats(&cer.prepare(&[""]), "ab", &mut scratch, &mut out);
        assert_eq!((out, rate(&[2.0, 0.0])), ([2.0, 0.0], 100.0));
    }
}
