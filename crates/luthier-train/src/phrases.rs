//! Extraction of phrases and rules from one sentence pair.
//!
//! A source span and a target span are *consistent* with the word alignment if at least one link is inside
//! both, and no link connects a word inside with a word outside (Och and Ney 2004). Phrases are consistent
//! pairs of spans. Rules (Chiang 2007) are phrases in which smaller phrases are replaced by gaps
//! (non-terminals). For a target of J words and spans of at most m words, extracting phrases costs O(J·m²),
//! and rules O(m⁴) per phrase in the worst case.

use crate::Link;
use serde::{Deserialize, Serialize};

/// Smoothing of the phrase translation probabilities p(target | source) and p(source | target).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Smoothing {
    /// Relative frequencies, as in Moses.
    None,
    /// Modified Kneser–Ney smoothing (Foster et al. 2006).
    #[default]
    KneserNey,
}

/// Limits and smoothing of phrase extraction.
///
/// ```
/// use luthier_train::{PhraseSettings, Smoothing};
/// let settings = PhraseSettings::default();
/// assert_eq!((settings.max_length, settings.smoothing), (7, Smoothing::KneserNey));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct PhraseSettings {
    /// Maximum phrase length, in words on each side.
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "N", default_value_t = PhraseSettings::default().max_length,
            value_parser = clap::value_parser!(u8).range(1..=100))
    )]
    pub max_length: u8,
    /// Smoothing of phrase translation probabilities.
    #[cfg_attr(feature = "clap", arg(long, value_name = "HOW", value_enum, default_value_t))]
    pub smoothing: Smoothing,
}

impl Default for PhraseSettings {
    /// Returns the maximum length of Moses, 7, and Kneser–Ney smoothing, which gains about half a BLEU point
    /// over Moses' default, no smoothing.
    fn default() -> Self {
        PhraseSettings { max_length: 7, smoothing: Smoothing::default() }
    }
}

/// Orientation of a phrase with respect to the previous or next phrase of the target, by the word alignment
/// (msd).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Orientation {
    /// The adjacent phrase of the target is also adjacent in the source, in the same order.
    Monotone,
    /// The adjacent phrase of the target is adjacent in the source, in the opposite order.
    Swap,
    /// The adjacent phrase of the target is not adjacent in the source.
    Discontinuous,
}

/// A phrase pair by its positions: a source span and a target span that are consistent with the word
/// alignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spans {
    /// Position of the first source word, from 0.
    pub source_start: usize,
    /// Position after the last source word.
    pub source_end: usize,
    /// Position of the first target word, from 0.
    pub target_start: usize,
    /// Position after the last target word.
    pub target_end: usize,
}

/// A sentence pair with its word alignment, indexed for phrase extraction. Its buffers are reused for further
/// pairs.
///
/// ```
/// use luthier_train::{Linked, Orientation};
/// let (mut linked, mut phrases) = (Linked::default(), Vec::new());
/// linked.set(2, 2, &[(0, 1), (1, 0)]); // two words that change places
/// linked.phrases(7, &mut phrases);
/// assert_eq!(phrases.len(), 3); // each word, and both together
/// assert_eq!(linked.orientations(&phrases[0])[1], Orientation::Swap);
/// ```
#[derive(Debug, Default)]
pub struct Linked {
    /// Number of source words.
    source: usize,
    /// Number of target words.
    target: usize,
    /// Smallest and largest source position linked to each target position; (MAX, 0) if there is none.
    of_target: Vec<(usize, usize)>,
    /// Smallest and largest target position linked to each source position; (MAX, 0) if there is none.
    of_source: Vec<(usize, usize)>,
    /// Whether two words are linked, by source position, then target position.
    grid: Vec<bool>,
}

impl Linked {
    /// Sets the sentence pair: its numbers of source and target words, and its links.
    pub fn set(&mut self, source: usize, target: usize, links: &[Link]) {
        (self.source, self.target) = (source, target);
        for (list, n) in [(&mut self.of_target, target), (&mut self.of_source, source)] {
            list.clear();
            list.resize(n, (usize::MAX, 0));
        }
        self.grid.clear();
        self.grid.resize(source * target, false);
        for &(s, t) in links {
            let (s, t) = (s as usize, t as usize);
            widen(&mut self.of_target[t], s);
            widen(&mut self.of_source[s], t);
            self.grid[s * target + t] = true;
        }
    }

    /// Writes all phrases of at most `max` words on each side to `found`, including those with unaligned
    /// words at the edges.
    pub fn phrases(&self, max: usize, found: &mut Vec<Spans>) {
        found.clear();
        for target_start in 0..self.target {
            let mut range = (usize::MAX, 0);
            for target_end in target_start + 1..=self.target.min(target_start + max) {
                let (low, high) = self.of_target[target_end - 1];
                range = (range.0.min(low), range.1.max(high));
                if range.0 == usize::MAX {
                    continue;
                }
                let (low, high) = (range.0, range.1 + 1);
                if high - low > max || self.leaves(low..high, target_start, target_end) {
                    continue;
                }
                let mut source_start = low;
                loop {
                    let mut source_end = high;
                    loop {
                        found.push(Spans { source_start, source_end, target_start, target_end });
                        source_end += 1;
                        if source_end > self.source
                            || source_end - source_start > max
                            || self.has_links(source_end - 1)
                        {
                            break;
                        }
                    }
                    if source_start == 0 || high - source_start >= max || self.has_links(source_start - 1) {
                        break;
                    }
                    source_start -= 1;
                }
            }
        }
    }

    /// Returns whether a source word has a link.
    fn has_links(&self, source: usize) -> bool {
        self.of_source[source].0 != usize::MAX
    }

    /// Returns whether a link of these source positions is to a word outside the target span.
    fn leaves(&self, source: std::ops::Range<usize>, target_start: usize, target_end: usize) -> bool {
        let out =
            |&(low, high): &(usize, usize)| low != usize::MAX && (low < target_start || high >= target_end);
        self.of_source[source].iter().any(out)
    }

    /// Returns whether the first and the last word of both spans have links.
    pub fn is_tight(&self, s: &Spans) -> bool {
        self.has_links(s.source_start)
            && self.has_links(s.source_end - 1)
            && self.of_target[s.target_start].0 != usize::MAX
            && self.of_target[s.target_end - 1].0 != usize::MAX
    }

    /// Returns whether two words are linked; `None` is the position before the sentence, and both of these
    /// are linked.
    fn link(&self, source: Option<usize>, target: Option<usize>) -> bool {
        match (source, target) {
            (Some(s), Some(t)) => s < self.source && t < self.target && self.grid[s * self.target + t],
            (None, None) => true,
            _ => false,
        }
    }

    /// Returns the orientations of a phrase with respect to the previous and to the next phrase of the
    /// target.
    pub fn orientations(&self, s: &Spans) -> [Orientation; 2] {
        let (before_s, before_t) = (s.source_start.checked_sub(1), s.target_start.checked_sub(1));
        let last = s.source_end == self.source && s.target_end == self.target;
        let choose = |monotone: bool, swap: bool| match (monotone, swap) {
            (true, false) => Orientation::Monotone,
            (false, true) => Orientation::Swap,
            _ => Orientation::Discontinuous,
        };
        let backward = choose(
            self.link(before_s, before_t),
            before_t.is_some() && self.link(Some(s.source_end), before_t),
        );
        let forward = choose(
            last || self.link(Some(s.source_end), Some(s.target_end)),
            before_s.is_some() && self.link(before_s, Some(s.target_end)),
        );
        [backward, forward]
    }

    /// Calls `each` for every link inside a phrase, with positions relative to the starts of its spans.
    pub fn inner(&self, s: &Spans, mut each: impl FnMut(usize, usize)) {
        for i in s.source_start..s.source_end {
            for j in s.target_start..s.target_end {
                if self.grid[i * self.target + j] {
                    each(i - s.source_start, j - s.target_start);
                }
            }
        }
    }

    /// Returns whether a rule has a link between words outside its gaps.
    fn lexical(&self, whole: &Spans, gaps: &[Spans]) -> bool {
        let outside = |i: usize, j: usize| {
            gaps.iter().all(|g| {
                !(g.source_start..g.source_end).contains(&i) && !(g.target_start..g.target_end).contains(&j)
            })
        };
        let mut any = false;
        self.inner(whole, |i, j| any |= outside(i + whole.source_start, j + whole.target_start));
        any
    }
}

/// Extends a range of positions to include `to`.
fn widen(range: &mut (usize, usize), to: usize) {
    *range = (range.0.min(to), range.1.max(to));
}

/// Limits of the extraction of hierarchical rules (Chiang 2007).
///
/// ```
/// use luthier_train::RuleLimits;
/// // The limits of Moses: unaligned words at the edges, and gaps of at least two words.
/// let moses = RuleLimits { loose: true, min_gap: 2, ..RuleLimits::default() };
/// assert_eq!((moses.max_span, moses.max_symbols), (10, 5));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct RuleLimits {
    /// Maximum length of the phrases that rules are extracted from, in words on each side.
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "N", default_value_t = RuleLimits::default().max_span,
            value_parser = clap::value_parser!(u8).range(1..=30))
    )]
    pub max_span: u8,
    /// Maximum number of words and gaps in the source of a rule.
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "N", default_value_t = RuleLimits::default().max_symbols,
            value_parser = clap::value_parser!(u8).range(1..=30))
    )]
    pub max_symbols: u8,
    /// Minimum number of source words covered by a gap.
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "N", default_value_t = RuleLimits::default().min_gap,
            value_parser = clap::value_parser!(u8).range(1..=30))
    )]
    pub min_gap: u8,
    /// Allow unaligned words at the edges of phrases and gaps.
    #[cfg_attr(feature = "clap", arg(long))]
    pub loose: bool,
}

impl Default for RuleLimits {
    fn default() -> Self {
        RuleLimits { max_span: 10, max_symbols: 5, min_gap: 1, loose: false }
    }
}

/// A hierarchical rule by its positions: a phrase with up to two gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Phrase that the rule is extracted from.
    pub whole: Spans,
    /// Smaller phrases that are replaced by gaps, in source order; `None` for missing gaps.
    pub gaps: [Option<Spans>; 2],
}

/// Extractor of the rules of sentence pairs. Its buffers are reused for further pairs.
///
/// ```
/// use luthier_train::{Linked, RuleFinder, RuleLimits};
/// let mut linked = Linked::default();
/// linked.set(2, 2, &[(0, 0), (1, 1)]);
/// let mut rules = 0;
/// RuleFinder::default().rules(&linked, &RuleLimits::default(), |of_one_phrase| rules += of_one_phrase.len());
/// assert_eq!(rules, 5); // a b → x y, [1] b → [1] y, a [1] → x [1], a → x, b → y
/// ```
#[derive(Debug, Default)]
pub struct RuleFinder {
    phrases: Vec<Spans>,
    /// Phrases that start at each source position.
    by_source: Vec<Vec<Spans>>,
}

impl RuleFinder {
    /// Calls `each` with all rules of one phrase, for every phrase of a sentence pair.
    pub fn rules(&mut self, linked: &Linked, limits: &RuleLimits, mut each: impl FnMut(&[Rule])) {
        let most_symbols = usize::from(limits.max_symbols);
        linked.phrases(limits.max_span.into(), &mut self.phrases);
        if !limits.loose {
            self.phrases.retain(|s| linked.is_tight(s));
        }
        self.by_source.iter_mut().for_each(Vec::clear);
        self.by_source.resize_with(self.by_source.len().max(linked.source), Vec::new);
        for s in &self.phrases {
            self.by_source[s.source_start].push(*s);
        }
        let mut rules = Vec::new();
        for whole in &self.phrases {
            rules.clear();
            let length = whole.source_end - whole.source_start;
            if length <= most_symbols {
                rules.push(Rule { whole: *whole, gaps: [None; 2] });
            }
            for first in self.inside(whole, whole.source_start, limits) {
                let words = length - (first.source_end - first.source_start);
                if words == 0 {
                    continue;
                }
                if words < most_symbols && linked.lexical(whole, &[*first]) {
                    rules.push(Rule { whole: *whole, gaps: [Some(*first), None] });
                }
                // Gaps must not be adjacent in the source.
                for second in self.inside(whole, first.source_end + 1, limits) {
                    let words = words - (second.source_end - second.source_start);
                    if words + 2 <= most_symbols
                        && apart(first, second)
                        && linked.lexical(whole, &[*first, *second])
                    {
                        rules.push(Rule { whole: *whole, gaps: [Some(*first), Some(*second)] });
                    }
                }
            }
            if !rules.is_empty() {
                each(&rules);
            }
        }
    }

    /// Iterates over the phrases inside another one that start at source position `from` or later.
    fn inside<'a>(
        &'a self,
        whole: &'a Spans,
        from: usize,
        limits: &'a RuleLimits,
    ) -> impl Iterator<Item = &'a Spans> {
        (from..whole.source_end).flat_map(|start| &self.by_source[start]).filter(move |s| {
            s.source_end <= whole.source_end
                && s.target_start >= whole.target_start
                && s.target_end <= whole.target_end
                && s.source_end - s.source_start >= limits.min_gap.into()
        })
    }
}

/// Returns whether two phrases do not overlap in the target.
fn apart(a: &Spans, b: &Spans) -> bool {
    a.target_end <= b.target_start || b.target_end <= a.target_start
}

#[cfg(test)]
mod tests {
    use super::Orientation::{Discontinuous, Monotone, Swap};
    use super::*;
    use proptest::prelude::*;

    fn linked(source: usize, target: usize, links: &[Link]) -> Linked {
        let mut l = Linked::default();
        l.set(source, target, links);
        l
    }

    proptest! {
        #[test]
        fn phrases_are_the_consistent_spans(
            links in proptest::collection::btree_set((0u16..6, 0u16..5), 0..9), max in 1usize..7,
        ) {
            let links: Vec<Link> = links.into_iter().collect();
            let l = linked(6, 5, &links);
            let mut found = Vec::new();
            l.phrases(max, &mut found);
            found.sort();
            let mut expected = Vec::new();
            for source_start in 0..6 {
                for source_end in source_start + 1..=6usize.min(source_start + max) {
                    for target_start in 0..5 {
                        for target_end in target_start + 1..=5usize.min(target_start + max) {
                            let s = |i: u16| (source_start..source_end).contains(&(i as usize));
                            let t = |j: u16| (target_start..target_end).contains(&(j as usize));
                            if links.iter().all(|&(i, j)| s(i) == t(j)) && links.iter().any(|&(i, _)| s(i)) {
                                expected.push(Spans { source_start, source_end, target_start, target_end });
                            }
                        }
                    }
                }
            }
            expected.sort();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn rules_are_phrases_with_phrases_taken_out(
            links in proptest::collection::btree_set((0u16..6, 0u16..6), 0..9), loose: bool, min_gap in 1usize..3,
        ) {
            let links: Vec<Link> = links.into_iter().collect();
            let l = linked(6, 6, &links);
            let limits = RuleLimits { max_span: 5, max_symbols: 4, min_gap: min_gap as u8, loose };
            let mut phrases = Vec::new();
            l.phrases(5, &mut phrases);
            phrases.retain(|s| loose || l.is_tight(s));
            let mut expected = Vec::new();
            let inside = |a: &Spans, b: &Spans| {
                a.source_start >= b.source_start && a.source_end <= b.source_end
                    && a.target_start >= b.target_start && a.target_end <= b.target_end
            };
            for whole in &phrases {
                let words = |gaps: &[&Spans]| {
                    let out = |i: u16, j: u16| gaps.iter().all(|g| {
                        !(g.source_start..g.source_end).contains(&(i as usize))
                            && !(g.target_start..g.target_end).contains(&(j as usize))
                    });
                    let here = |i: u16| (whole.source_start..whole.source_end).contains(&(i as usize));
                    let lexical = links.iter().any(|&(i, j)| here(i) && out(i, j));
                    let gap: usize = gaps.iter().map(|g| g.source_end - g.source_start).sum();
                    let symbols = whole.source_end - whole.source_start - gap + gaps.len();
                    lexical && symbols <= 4 && gaps.iter().all(|g| g.source_end - g.source_start >= min_gap)
                };
                if whole.source_end - whole.source_start <= 4 {
                    expected.push((*whole, vec![]));
                }
                for a in &phrases {
                    if inside(a, whole) && words(&[a]) {
                        expected.push((*whole, vec![*a]));
                    }
                    for b in &phrases {
                        if inside(a, whole) && inside(b, whole) && a.source_end < b.source_start && apart(a, b)
                            && words(&[a, b])
                        {
                            expected.push((*whole, vec![*a, *b]));
                        }
                    }
                }
            }
            let mut found = Vec::new();
            RuleFinder::default().rules(&l, &limits, |rules| {
                assert!(rules.iter().all(|r| r.whole == rules[0].whole));
                found.extend(rules.iter().map(|r| (r.whole, r.gaps.iter().copied().flatten().collect::<Vec<_>>())));
            });
            found.sort();
            expected.sort();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn orientations_by_hand() {
        // f: 0 1 2 3, e: 0 1 2 3; 1 and 2 change places.
        let l = linked(4, 4, &[(0, 0), (1, 2), (2, 1), (3, 3)]);
        let s = |source_start, source_end, target_start, target_end| Spans {
            source_start,
            source_end,
            target_start,
            target_end,
        };
        assert_eq!(l.orientations(&s(0, 1, 0, 1)), [Monotone, Discontinuous]);
        assert_eq!(l.orientations(&s(2, 3, 1, 2)), [Discontinuous, Swap]);
        assert_eq!(l.orientations(&s(1, 2, 2, 3)), [Swap, Discontinuous]);
        assert_eq!(l.orientations(&s(3, 4, 3, 4)), [Discontinuous, Monotone]);
        assert_eq!(l.orientations(&s(1, 3, 1, 3)), [Monotone, Monotone]);
        assert_eq!(l.orientations(&s(0, 4, 0, 4)), [Monotone, Monotone]);
    }
}
