//! TER (Snover et al. 2006), equal to sacreBLEU's.
//!
//! TER is the number of edits divided by the average reference length. Edits are insertions, deletions,
//! substitutions and shifts of blocks of words. Shifts are found by greedy search: every block that also
//! occurs in the reference, and that contains an error on both sides, is moved to the positions that the
//! current alignment suggests; the shift that reduces the edit distance most is applied. The search stops
//! when no shift reduces the edit distance, or after 1,000 shifts tried. The edit distance is computed in a
//! beam around the diagonal. Statistics: edits to the closest reference, average reference length in
//! sixtieths of a word.

use crate::{
    Scratch, edit, ngram,
    tokenize::{undo_entities, words},
};

/// Settings of TER; the default is sacreBLEU's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case", default)
)]
pub struct Ter {
    /// Whether the comparison of words is case-sensitive; false by default.
    pub case: bool,
    /// Whether punctuation is separated from words first, as in Tercom's normalisation; false by default.
    pub normalized: bool,
    /// Whether punctuation is removed first; false by default.
    pub no_punct: bool,
}

/// Units of reference length per word. In sixtieths, averages over up to six references are whole numbers,
/// which are exact in `f32`.
const SIXTIETHS: f64 = 60.0;

/// Maximum length of a shifted block, in words.
const MAX_SHIFT_SIZE: usize = 10;
/// Maximum distance of a shift, in words.
const MAX_SHIFT_DISTANCE: usize = 50;
/// Half the width of the beam around the diagonal of the edit distance, in words.
const BEAM: f64 = 25.0;
/// Maximum number of shifts tried for one pair of hypothesis and reference.
const MAX_CANDIDATES: usize = 1000;

impl Ter {
    /// Returns the hashed words of each reference.
    pub(crate) fn prepare(&self, references: &[&str]) -> Vec<Vec<u64>> {
        references.iter().map(|r| self.words(r)).collect()
    }

    /// Returns the hashed words of a text after normalisation.
    fn words(&self, text: &str) -> Vec<u64> {
        if self.case && !self.normalized && !self.no_punct {
            return words(text).map(ngram::word).collect();
        }
        let mut text = if self.case { text.to_owned() } else { text.to_lowercase() };
        if self.normalized {
            text = normalize(text);
        }
        if self.no_punct {
            text.retain(|c| !matches!(c, '.' | ',' | '?' | ':' | ';' | '!' | '"' | '(' | ')'));
        }
        words(&text).map(ngram::word).collect()
    }

    /// Writes the statistics of a hypothesis to `out`.
    pub(crate) fn stats(&self, references: &[Vec<u64>], text: &str, scratch: &mut Scratch, out: &mut [f32]) {
        let words = self.words(text);
        let mut best = usize::MAX;
        let mut length = 0;
        for reference in references {
            best = best.min(scratch.ter.edits(&words, reference));
            length += reference.len();
        }
        out[0] = if references.is_empty() { 0.0 } else { best as f32 };
        out[1] = (SIXTIETHS * length as f64 / references.len().max(1) as f64) as f32;
    }

    /// Returns TER of summed statistics, in per cent.
    pub(crate) fn rate(total: &[f64]) -> f64 {
        edit::rate(&[total[0], total[1] / SIXTIETHS])
    }

    /// Returns the reference length in summed statistics, in words.
    pub(crate) fn length(total: &[f64]) -> f64 {
        total[1] / SIXTIETHS
    }

    /// Returns TER in per cent as sacreBLEU computes it from resampled statistics, in `f32`.
    pub(crate) fn single_rate(total: &[f32]) -> f32 {
        100.0 * (total[0] / (f64::from(total[1]) / SIXTIETHS) as f32)
    }

    /// Returns the settings in sacreBLEU's signature.
    pub(crate) fn signature(&self) -> String {
        let yes = |b: bool| if b { "yes" } else { "no" };
        format!(
            "case:{}|tok:tercom|norm:{}|punct:{}|asian:no",
            if self.case { "mixed" } else { "lc" },
            yes(self.normalized),
            yes(!self.no_punct),
        )
    }
}

/// Normalises Western text as Tercom does: entities are decoded; punctuation and possessives become words.
fn normalize(mut text: String) -> String {
    undo_entities(&mut text);
    let mut out = String::from(" ");
    for c in text.chars() {
        if matches!(c, '{'..='~' | '['..='`' | ' '..='&' | '('..='+' | ':'..='@' | '/') {
            out.extend([' ', c, ' ']);
        } else {
            out.push(c);
        }
    }
    out.push(' ');
    let out = out.replace("'s ", " 's ");
    let digit = |c: char| c.is_ascii_digit();
    let point = |c: char| c == '.' || c == ',';
    let out = pairs(&out, |a, b| !digit(a) && point(b), |a, b| [a, ' ', b, ' ']);
    let out = pairs(&out, |a, b| point(a) && !digit(b), |a, b| [' ', a, ' ', b]);
    pairs(&out, |a, b| digit(a) && b == '-', |a, b| [a, ' ', b, ' '])
}

/// Replaces non-overlapping pairs of characters from left to right.
fn pairs(text: &str, matches: impl Fn(char, char) -> bool, put: impl Fn(char, char) -> [char; 4]) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = Vec::new();
    crate::tokenize::pairs(&chars, &mut out, matches, put);
    out.into_iter().collect()
}

/// Last edit on the best path to a cell of the edit-distance table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Both words are equal.
    Same,
    /// A word of the hypothesis is replaced.
    Replace,
    /// A word of the hypothesis is deleted.
    Delete,
    /// A word of the reference is inserted.
    Insert,
}

/// Greedy search for shifts, with its working memory. Words are hashes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shifter {
    /// Edit distances of the prefixes of the current hypothesis and of the reference: one row per hypothesis
    /// word, and one before.
    cost: Vec<u32>,
    /// Last edit for each cell of `cost`.
    step: Vec<Step>,
    /// Edit distances of the prefixes of a shifted hypothesis; rows before the shift are copied from `cost`.
    trial: Vec<u32>,
    /// Last edit for each cell of `trial`.
    trial_step: Vec<Step>,
    /// Current hypothesis, after the shifts applied so far.
    hypothesis: Vec<u64>,
    /// Hypothesis with the shift that is being tried.
    shifted: Vec<u64>,
    /// Hypothesis with the best shift tried so far.
    best: Vec<u64>,
    /// Alignment of the current hypothesis and the reference.
    alignment: Alignment,
}

/// Alignment of hypothesis and reference by the edit distance.
#[derive(Debug, Clone, Default)]
struct Alignment {
    /// For each reference word, 1 plus the position of its hypothesis word; an inserted word has that of the
    /// word before it, or 0.
    of_reference: Vec<usize>,
    /// Whether each reference word is an error (replaced or inserted).
    reference_wrong: Vec<bool>,
    /// Whether each hypothesis word is an error (replaced or deleted).
    hypothesis_wrong: Vec<bool>,
}

/// Cost of cells outside the beam, larger than any edit distance.
const FAR: u32 = u32::MAX / 2;

impl Shifter {
    /// Returns the number of edits, including shifts, from the hypothesis to the reference.
    fn edits(&mut self, hypothesis: &[u64], reference: &[u64]) -> usize {
        if reference.is_empty() {
            return hypothesis.len();
        }
        self.hypothesis.clear();
        self.hypothesis.extend_from_slice(hypothesis);
        let mut shifts = 0;
        let mut candidates = 0;
        loop {
            let (mut cost, mut step) = (std::mem::take(&mut self.cost), std::mem::take(&mut self.step));
            let distance = edit_distance(&self.hypothesis, reference, 0, &mut cost, &mut step);
            (self.cost, self.step) = (cost, step);
            self.alignment.trace(&self.step, self.hypothesis.len(), reference.len());
            let gain = self.best_shift(distance, reference, &mut candidates);
            if candidates >= MAX_CANDIDATES || gain <= 0 {
                return shifts + distance as usize;
            }
            shifts += 1;
            std::mem::swap(&mut self.hypothesis, &mut self.best);
        }
    }

    /// Finds the shift that reduces the edit distance most, stores the shifted hypothesis in `best`, and
    /// returns the reduction. Ties go to the longest block, then to the earliest, then to the earliest
    /// target.
    fn best_shift(&mut self, distance: u32, reference: &[u64], candidates: &mut usize) -> i64 {
        type Rank = (i64, usize, std::cmp::Reverse<usize>, std::cmp::Reverse<usize>);
        let mut best: Option<Rank> = None;
        let n = self.hypothesis.len();
        for start in 0..n {
            for target in 0..reference.len() {
                if start.abs_diff(target) > MAX_SHIFT_DISTANCE {
                    continue;
                }
                let limit = MAX_SHIFT_SIZE.min(n - start).min(reference.len() - target);
                for length in 1..=limit {
                    if self.hypothesis[start + length - 1] != reference[target + length - 1] {
                        break;
                    }
                    if !self.alignment.worth_trying(start, target, length) {
                        continue;
                    }
                    let mut last = None;
                    for place in target..=target + length {
                        // Targets: before the first word of the block in the reference, then after each of
                        // its words.
                        let Some(index) = self.alignment.place(place) else { break };
                        if last == Some(index) {
                            continue;
                        }
                        last = Some(index);
                        let cost = self.try_shift(start, length, index, reference);
                        *candidates += 1;
                        let gain = i64::from(distance) - i64::from(cost);
                        let rank = (gain, length, std::cmp::Reverse(start), std::cmp::Reverse(index));
                        if best.is_none_or(|b| rank > b) {
                            best = Some(rank);
                            self.best.clear();
                            self.best.extend_from_slice(&self.shifted);
                        }
                    }
                    if *candidates >= MAX_CANDIDATES {
                        return best.map_or(0, |b| b.0);
                    }
                }
            }
        }
        best.map_or(0, |b| b.0)
    }

    /// Moves a block, and returns the edit distance; rows before the first changed word are copied.
    fn try_shift(&mut self, start: usize, length: usize, index: usize, reference: &[u64]) -> u32 {
        let h = &self.hypothesis;
        let n = h.len();
        self.shifted.clear();
        let block = &h[start..start + length];
        let parts: [&[u64]; 4] = if index < start {
            [&h[..index], block, &h[index..start], &h[start + length..]]
        } else if index > start + length {
            [&h[..start], &h[start + length..index], block, &h[index..]]
        } else {
            let end = (length + index).min(n);
            [&h[..start], &h[start + length..end], block, &h[end..]]
        };
        for part in parts {
            self.shifted.extend_from_slice(part);
        }
        let same = h.iter().zip(&self.shifted).take_while(|(a, b)| a == b).count();
        let known = (same + 1) * (reference.len() + 1);
        self.trial.clear();
        self.trial.extend_from_slice(&self.cost[..known]);
        self.trial_step.clear();
        self.trial_step.extend_from_slice(&self.step[..known]);
        edit_distance(&self.shifted, reference, same, &mut self.trial, &mut self.trial_step)
    }
}

/// Computes the rows after row `known` and returns the edit distance. Ties go to replacements, then to
/// deletions, then to insertions, as in Tercom, where hypothesis and reference are exchanged.
fn edit_distance(
    hypothesis: &[u64],
    reference: &[u64],
    known: usize,
    cost: &mut Vec<u32>,
    step: &mut Vec<Step>,
) -> u32 {
    let (n, m) = (hypothesis.len(), reference.len());
    let width = m + 1;
    if known == 0 {
        cost.clear();
        cost.extend(0..=m as u32);
        step.clear();
        step.resize(width, Step::Insert);
    }
    cost.resize((n + 1) * width, FAR);
    step.resize((n + 1) * width, Step::Insert);
    cost[(known + 1) * width..].fill(FAR);
    let ratio = if n == 0 { 1.0 } else { m as f64 / n as f64 };
    let beam = if ratio / 2.0 > BEAM { (ratio / 2.0 + BEAM).ceil() } else { BEAM };
    for i in known + 1..=n {
        let diagonal = (i as f64 * ratio).floor();
        let low = (diagonal - beam).max(0.0) as usize;
        let high = if i == n { width } else { width.min((diagonal + beam) as usize) };
        let (above, row) = cost[(i - 1) * width..(i + 1) * width].split_at_mut(width);
        let steps = &mut step[i * width..(i + 1) * width];
        for j in low..high {
            if j == 0 {
                (row[0], steps[0]) = (above[0] + 1, Step::Delete);
                continue;
            }
            let same = hypothesis[i - 1] == reference[j - 1];
            let mut best = (above[j - 1] + u32::from(!same), if same { Step::Same } else { Step::Replace });
            if above[j] + 1 < best.0 {
                best = (above[j] + 1, Step::Delete);
            }
            if row[j - 1] + 1 < best.0 {
                best = (row[j - 1] + 1, Step::Insert);
            }
            (row[j], steps[j]) = best;
        }
    }
    cost[n * width + m]
}

impl Alignment {
    /// Computes the alignment by following the edits back from the last cell.
    fn trace(&mut self, step: &[Step], n: usize, m: usize) {
        self.of_reference.clear();
        self.of_reference.resize(m, 0);
        self.reference_wrong.clear();
        self.reference_wrong.resize(m, false);
        self.hypothesis_wrong.clear();
        self.hypothesis_wrong.resize(n, false);
        let (mut i, mut j) = (n, m);
        while i > 0 || j > 0 {
            let taken = step[i * (m + 1) + j];
            match taken {
                Step::Same | Step::Replace => {
                    i -= 1;
                    j -= 1;
                    self.of_reference[j] = i + 1;
                    self.reference_wrong[j] = taken == Step::Replace;
                    self.hypothesis_wrong[i] = taken == Step::Replace;
                }
                Step::Insert => {
                    j -= 1;
                    self.of_reference[j] = i;
                    self.reference_wrong[j] = true;
                }
                Step::Delete => {
                    i -= 1;
                    self.hypothesis_wrong[i] = true;
                }
            }
        }
    }

    /// Returns whether a block has an error on both sides and is not already aligned with itself.
    fn worth_trying(&self, start: usize, target: usize, length: usize) -> bool {
        let within = start + 1..start + length + 1;
        self.hypothesis_wrong[start..start + length].contains(&true)
            && self.reference_wrong[target..target + length].contains(&true)
            && !within.contains(&self.of_reference[target])
    }

    /// Returns the hypothesis position after the word aligned with the reference word before position
    /// `place`; `None` beyond the reference.
    fn place(&self, place: usize) -> Option<usize> {
        if place == 0 {
            return Some(0);
        }
        self.of_reference.get(place - 1).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edits(hypothesis: &str, reference: &str) -> usize {
        let ter = Ter::default();
        Shifter::default().edits(&ter.words(hypothesis), &ter.words(reference))
    }

    #[test]
    fn shifts_cost_one_whatever_their_length() {
        assert_eq!(edits("a b c d", "a b c d"), 0);
        assert_eq!(edits("d e f a b c", "a b c d e f"), 1);
        assert_eq!(edits("a b x c d", "a b c d"), 1);
        assert_eq!(edits("", "a b"), 2);
        assert_eq!(edits("a b", ""), 2);
        assert_eq!(edits("The CAT", "the cat"), 0);
    }
}
