//! Word alignments: links, Pharaoh format, symmetrisation of two directions, and the alignment error rate.
//!
//! Symmetrisation by grow-diag (Och and Ney 2003; Koehn et al. 2003) starts from the intersection of both
//! directions and adds links of the union that are adjacent to a link, if one of their words is unaligned;
//! the final step may add links of words that are still unaligned. Each round over a sentence pair of I and J
//! words costs O(I·J); growing stops when a round adds no link.

use crate::Corpus;
use luthier_core::{Error, Result, Vocabulary};
use luthier_io::Input;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A link between a source word and a target word: their positions in the sentence pair, from 0.
pub type Link = (u16, u16);

/// Symmetrisation heuristic, which combines the alignments of both directions into one.
///
/// ```
/// use luthier_train::{Symmetrization, links::symmetrize};
/// let (forward, backward) = ([(0, 0), (3, 3)], [(0, 0), (1, 0), (2, 3)]);
/// let both = symmetrize(&forward, &backward, (4, 4), Symmetrization::default());
/// assert_eq!(both, [(0, 0), (1, 0), (3, 3)]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Symmetrization {
    /// Links in both directions.
    Intersection,
    /// Links in either direction.
    Union,
    /// Intersection plus adjacent links of the union of which at least one word is unaligned.
    GrowDiag,
    /// Grow-diag plus links of either direction of which at least one word is unaligned.
    GrowDiagFinal,
    /// Grow-diag plus links of either direction of which both words are unaligned.
    #[default]
    GrowDiagFinalAnd,
    /// Source-to-target alignment only: each target word has at most one link.
    Forward,
    /// Target-to-source alignment only: each source word has at most one link.
    Backward,
}

/// Parses links in Pharaoh format, `0-0 1-2`, into `links`, sorted and without duplicates, for a sentence
/// pair of `source` and `target` words. Fails if a link is malformed or out of range.
///
/// ```
/// let mut links = Vec::new();
/// luthier_train::links::parse("1-2 0-0", 2, 3, &mut links)?;
/// assert_eq!(links, [(0, 0), (1, 2)]);
/// assert!(luthier_train::links::parse("2-0", 2, 3, &mut links).is_err());
/// # luthier_core::Result::Ok(())
/// ```
pub fn parse(text: &str, source: usize, target: usize, links: &mut Vec<Link>) -> Result<()> {
    links.clear();
    for word in text.split_ascii_whitespace() {
        let digits = |n: &str| n.bytes().all(|b| b.is_ascii_digit());
        let both = word.split_once('-').filter(|(s, t)| digits(s) && digits(t));
        let link = both.and_then(|(s, t)| Some((s.parse::<u16>().ok()?, t.parse::<u16>().ok()?)));
        let Some((s, t)) = link else {
            return Err(Error::new(format!("the link {word:?} is not of the form 3-4"))
                .hint("expected Pharaoh format: source and target position from 0, with a hyphen between"));
        };
        if s as usize >= source || t as usize >= target {
            return Err(Error::new(format!(
                "the link {word} is out of range: the source has {source} words and the target {target}"
            ))
            .hint(
                "positions are numbered from 0; check that the alignment belongs to this text, source first",
            ));
        }
        links.push((s, t));
    }
    links.sort_unstable();
    links.dedup();
    Ok(())
}

/// Appends links in Pharaoh format, `0-0 1-2`, to `out`.
pub fn write(links: &[Link], out: &mut String) {
    use std::fmt::Write as _;
    for (i, (s, t)) in links.iter().enumerate() {
        let _ = write!(out, "{}{s}-{t}", if i > 0 { " " } else { "" });
    }
}

/// Returns the word alignment of a corpus in Pharaoh format, one line of links per line of the text;
/// `aligned` has the links of the sentence pairs that are kept, and lines that were left out are empty.
///
/// ```
/// use luthier_core::Progress;
/// use luthier_io::Input;
/// use luthier_train::{Corpus, links};
/// let input = |text: &'static str| Input::new("text", text.as_bytes()).unwrap();
/// let corpus = Corpus::read(&mut input("das haus\n\nja\n"), &mut input("the house\nno\nyes\n"), 100, Progress::NONE)?;
/// assert_eq!(links::to_text(&corpus, &[vec![(0, 0), (1, 1)], vec![(0, 0)]]), "0-0 1-1\n\n0-0\n");
/// # luthier_core::Result::Ok(())
/// ```
pub fn to_text(corpus: &Corpus, aligned: &[Vec<Link>]) -> String {
    let mut text = String::new();
    let mut at = 0;
    for (&line, pairs) in corpus.lines.iter().zip(aligned) {
        while at < line {
            text.push('\n');
            at += 1;
        }
        write(pairs, &mut text);
        text.push('\n');
        at += 1;
    }
    for _ in at..corpus.total as u32 {
        text.push('\n');
    }
    text
}

/// Reads a word alignment in Pharaoh format, one line of links per line of the text, and returns the links of
/// the sentence pairs of a corpus that are kept. Fails if the file and the text differ in their number of
/// lines, or if a link is malformed or out of range.
pub fn read(path: &Path, corpus: &Corpus) -> Result<Vec<Vec<Link>>> {
    let mut input = Input::open(path)?;
    let (mut buffer, mut all) = (Vec::new(), Vec::with_capacity(corpus.len()));
    let mut kept = corpus.lines.iter().enumerate().peekable();
    while input.line(&mut buffer)? {
        let text = input.utf8(&buffer)?;
        if let Some((s, _)) = kept.next_if(|(_, line)| u64::from(**line) + 1 == input.line_number()) {
            let mut links = Vec::new();
            let lengths = (corpus.source.sentence(s).len(), corpus.target.sentence(s).len());
            parse(text, lengths.0, lengths.1, &mut links)
                .map_err(|e| e.place(input.name(), input.line_number()))?;
            all.push(links);
        }
    }
    if input.line_number() != corpus.total as u64 {
        return Err(Error::in_file(
            input.name(),
            format!("has {} lines, but the text has {}", input.line_number(), corpus.total),
        )
        .hint("expected one line of links per line of text"));
    }
    Ok(all)
}

/// Links words that occur on both sides of a sentence pair to each other and to nothing else, if `is_pinned` says so of
/// them; the first occurrence on one side to the first on the other, and so on. Phrases and rules that are extracted from
/// such links have each of these words as often on the source side as on the target side.
///
/// ```
/// use luthier_core::Progress;
/// use luthier_io::Input;
/// use luthier_train::{Corpus, links};
/// let input = |text: &'static str| Input::new("text", text.as_bytes()).unwrap();
/// let corpus = Corpus::read(&mut input("a X1 X2\n"), &mut input("X2 b X1\n"), 100, Progress::NONE)?;
/// let mut aligned = vec![vec![(0, 0), (1, 0), (2, 2)]];
/// links::pin(&corpus, &mut aligned, |word| word.starts_with('X'));
/// assert_eq!(aligned, [[(1, 2), (2, 0)]]);
/// # luthier_core::Result::Ok(())
/// ```
pub fn pin(corpus: &Corpus, aligned: &mut [Vec<Link>], is_pinned: impl Fn(&str) -> bool) {
    let pinned = |vocabulary: &Vocabulary| -> Vec<bool> {
        (0..vocabulary.len() as u32).map(|w| is_pinned(vocabulary.word(w))).collect()
    };
    let (source, target) = (&corpus.source.vocabulary, &corpus.target.vocabulary);
    let (of_source, of_target) = (pinned(source), pinned(target));
    for (s, links) in aligned.iter_mut().enumerate() {
        let mut free: Vec<(usize, u32)> = corpus
            .target
            .sentence(s)
            .iter()
            .copied()
            .enumerate()
            .filter(|w| of_target[w.1 as usize])
            .collect();
        for (i, &word) in corpus.source.sentence(s).iter().enumerate() {
            let same = |w: &(usize, u32)| source.word(word) == target.word(w.1);
            if let Some(at) = free.iter().position(same).filter(|_| of_source[word as usize]) {
                let pair = (i as u16, free.remove(at).0 as u16);
                links.retain(|l| l.0 != pair.0 && l.1 != pair.1);
                links.push(pair);
            }
        }
        links.sort_unstable();
    }
}

/// Combines the links of both directions, each sorted, of a sentence pair with these numbers of source and
/// target words; returns sorted links.
pub fn symmetrize(
    forward: &[Link],
    backward: &[Link],
    (source, target): (usize, usize),
    how: Symmetrization,
) -> Vec<Link> {
    let mut joined = Grid::new(source, target);
    let both = || forward.iter().filter(|l| backward.binary_search(l).is_ok());
    match how {
        Symmetrization::Forward => joined.extend(forward.iter()),
        Symmetrization::Backward => joined.extend(backward.iter()),
        Symmetrization::Union => joined.extend(forward.iter().chain(backward)),
        Symmetrization::Intersection => joined.extend(both()),
        grow => {
            joined.extend(both());
            joined.grow(&[forward, backward]);
            match grow {
                Symmetrization::GrowDiagFinal => joined.fill(&[forward, backward], |s, t| s || t),
                Symmetrization::GrowDiagFinalAnd => joined.fill(&[forward, backward], |s, t| s && t),
                _ => {}
            }
        }
    }
    joined.links()
}

/// Alignment matrix of a sentence pair.
struct Grid {
    /// Number of source words.
    source: usize,
    /// Number of target words.
    target: usize,
    /// Whether two words are linked, by source position, then target position.
    linked: Vec<bool>,
    /// Whether each source word has a link.
    source_has: Vec<bool>,
    /// Whether each target word has a link.
    target_has: Vec<bool>,
}

impl Grid {
    /// Returns a matrix without links.
    fn new(source: usize, target: usize) -> Self {
        Grid {
            source,
            target,
            linked: vec![false; source * target],
            source_has: vec![false; source],
            target_has: vec![false; target],
        }
    }

    fn add(&mut self, (s, t): Link) {
        self.linked[s as usize * self.target + t as usize] = true;
        self.source_has[s as usize] = true;
        self.target_has[t as usize] = true;
    }

    fn extend<'a>(&mut self, links: impl Iterator<Item = &'a Link>) {
        for &link in links {
            self.add(link);
        }
    }

    /// Returns all links in order.
    fn links(&self) -> Vec<Link> {
        let at = |k: usize| ((k / self.target) as u16, (k % self.target) as u16);
        self.linked.iter().enumerate().filter(|l| *l.1).map(|(k, _)| at(k)).collect()
    }

    /// Adds links of the union that are adjacent to a link, if one of their words is unaligned, until no link
    /// is added.
    fn grow(&mut self, directions: &[&[Link]]) {
        let mut union = Grid::new(self.source, self.target);
        union.extend(directions.iter().copied().flatten());
        let (rows, columns) = (self.source.cast_signed(), self.target.cast_signed());
        loop {
            let mut grown = false;
            for t in 0..columns {
                for s in 0..rows {
                    if !self.linked[(s * columns + t).cast_unsigned()] {
                        continue;
                    }
                    for (ds, dt) in [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)] {
                        let (i, j) = (s + ds, t + dt);
                        if !(0..rows).contains(&i) || !(0..columns).contains(&j) {
                            continue;
                        }
                        let (i, j) = (i.cast_unsigned(), j.cast_unsigned());
                        let at = i * self.target + j;
                        if union.linked[at] && !self.linked[at] && !(self.source_has[i] && self.target_has[j])
                        {
                            self.add((i as u16, j as u16));
                            grown = true;
                        }
                    }
                }
            }
            if !grown {
                return;
            }
        }
    }

    /// Adds links for which `allowed` returns true, given whether the source word and the target word are
    /// unaligned.
    fn fill(&mut self, directions: &[&[Link]], allowed: fn(bool, bool) -> bool) {
        for &(s, t) in directions.iter().copied().flatten() {
            if allowed(!self.source_has[s as usize], !self.target_has[t as usize]) {
                self.add((s, t));
            }
        }
    }
}

/// Counts of links for the alignment error rate (Och and Ney 2003), summed over sentence pairs.
///
/// ```
/// let mut agreement = luthier_train::Agreement::default();
/// agreement.add(&[(0, 0), (1, 1)], &[(0, 0), (1, 2)]);
/// assert_eq!(agreement.error_rate(), 0.5); // 1 − 2·1/(2 + 2)
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Number of links in the evaluated alignment.
    pub found: u64,
    /// Number of links in the reference alignment.
    pub expected: u64,
    /// Number of links in both alignments.
    pub common: u64,
}

impl Agreement {
    /// Adds the links of one sentence pair; both lists must be sorted.
    pub fn add(&mut self, found: &[Link], expected: &[Link]) {
        self.found += found.len() as u64;
        self.expected += expected.len() as u64;
        self.common += found.iter().filter(|l| expected.binary_search(l).is_ok()).count() as u64;
    }

    /// Returns the alignment error rate, from 0 to 1: 1 − 2·common/(found + expected), where all links of the
    /// reference count as sure.
    pub fn error_rate(&self) -> f64 {
        1.0 - 2.0 * self.common as f64 / (self.found + self.expected).max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_form() {
        let mut links = Vec::new();
        parse(" 1-2  0-0 1-2", 2, 3, &mut links).unwrap();
        assert_eq!(links, [(0, 0), (1, 2)]);
        let mut text = String::new();
        write(&links, &mut text);
        assert_eq!(text, "0-0 1-2");
        for bad in ["2-0", "0-3", "0", "a-1", "0?1", "-1-0", "99999-0", "+0-+1"] {
            assert!(parse(bad, 2, 3, &mut links).is_err(), "{bad}");
        }
    }

    #[test]
    fn grow_diag_final_and_by_hand() {
        // The intersection is 0-0; 1-0 is adjacent and source word 1 is unaligned; 3-3 is not adjacent, but
        // both of its words are unaligned.
        let (forward, backward) = (vec![(0, 0), (3, 3)], vec![(0, 0), (1, 0), (2, 3)]);
        let made = |how| symmetrize(&forward, &backward, (4, 4), how);
        assert_eq!(made(Symmetrization::Intersection), [(0, 0)]);
        assert_eq!(made(Symmetrization::GrowDiag), [(0, 0), (1, 0)]);
        assert_eq!(made(Symmetrization::GrowDiagFinalAnd), [(0, 0), (1, 0), (3, 3)]);
        assert_eq!(made(Symmetrization::GrowDiagFinal), [(0, 0), (1, 0), (2, 3), (3, 3)]);
        assert_eq!(made(Symmetrization::Union), [(0, 0), (1, 0), (2, 3), (3, 3)]);
    }

    proptest! {
        #[test]
        fn heuristics_are_nested(
            forward in proptest::collection::btree_set((0u16..7, 0u16..6), 0..12),
            backward in proptest::collection::btree_set((0u16..7, 0u16..6), 0..12),
        ) {
            let (f, b): (Vec<_>, Vec<_>) = (forward.into_iter().collect(), backward.into_iter().collect());
            let made = |how| symmetrize(&f, &b, (7, 6), how);
            let all = [
                made(Symmetrization::Intersection), made(Symmetrization::GrowDiag),
                made(Symmetrization::GrowDiagFinal), made(Symmetrization::Union),
            ];
            let within = |a: &[Link], b: &[Link]| a.iter().all(|l| b.contains(l));
            prop_assert!(all.windows(2).all(|pair| within(&pair[0], &pair[1])));
            let and = made(Symmetrization::GrowDiagFinalAnd);
            prop_assert!(within(&all[1], &and) && within(&and, &all[3]));
            // Words that have a link in the union have one in grow-diag-final.
            for &(s, t) in &all[3] {
                prop_assert!(all[2].iter().any(|l| l.0 == s) && all[2].iter().any(|l| l.1 == t));
            }
        }
    }
}
