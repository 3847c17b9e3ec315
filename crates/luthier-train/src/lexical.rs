//! Word translation probabilities of an alignment, and lexical weights of phrases (Koehn et al. 2003).
//!
//! w(e | f) = c(e, f)/Σₑ c(e, f), where c counts the links of the corpus; words without a link count as
//! linked to the null word. The lexical weight of a phrase is the product over its words e of the mean of w(e
//! | f) over the words f that e is linked to. Counting takes one pass over the links.

use crate::{Corpus, Link};
use luthier_core::{Progress, Result};
use luthier_io::Meter;
use rustc_hash::FxHashMap;

/// Word translation probabilities: relative frequencies of links, in both directions. A word without a link
/// counts as linked to the null word.
///
/// ```
/// # use luthier_core::Progress;
/// # use luthier_io::Input;
/// # use luthier_train::{Corpus, Lexicon};
/// # let input = |text: &'static str| Input::new("text", text.as_bytes()).unwrap();
/// # let corpus = Corpus::read(&mut input("das haus\ndas buch\n"), &mut input("the house\nthe book\n"), 100, Progress::NONE)?;
/// // das haus → the house, das buch → the book, with `das` unaligned in the second pair.
/// let lexicon = Lexicon::new(&corpus, &[vec![(0, 0), (1, 1)], vec![(1, 1)]], Progress::NONE)?;
/// let (das, the) = (corpus.source.vocabulary.get("das"), corpus.target.vocabulary.get("the"));
/// assert_eq!(lexicon.target_given_source(das, the), 0.5);
/// assert_eq!(lexicon.target_given_source(das, None), 0.5);
/// # luthier_core::Result::Ok(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Lexicon {
    /// Number of links of each word pair.
    pairs: FxHashMap<u64, u32>,
    /// Number of links of each source word.
    source_total: Vec<u32>,
    /// Number of links of each target word.
    target_total: Vec<u32>,
    /// Number of target words without a link.
    null_source: u32,
    /// Number of source words without a link.
    null_target: u32,
}

/// Number of the null word.
const NULL: u32 = u32::MAX;

/// Returns the key of a word pair.
fn key(source: u32, target: u32) -> u64 {
    (u64::from(source) << 32) | u64::from(target)
}

impl Lexicon {
    /// Counts the links of a corpus, given as one list per sentence pair. Reports `lines`. Fails with kind
    /// [`Interrupted`](luthier_core::ErrorKind::Interrupted) if `progress` returns *stop*.
    pub fn new(corpus: &Corpus, links: &[Vec<Link>], progress: Progress<'_>) -> Result<Self> {
        let meter = Meter::new(progress, "lines", links.len());
        let mut new = Lexicon {
            source_total: vec![0; corpus.source.vocabulary.len()],
            target_total: vec![0; corpus.target.vocabulary.len()],
            ..Lexicon::default()
        };
        let (mut source_has, mut target_has) = (Vec::new(), Vec::new());
        for (s, links) in links.iter().enumerate() {
            let (f, e) = (corpus.source.sentence(s), corpus.target.sentence(s));
            for (has, n) in [(&mut source_has, f.len()), (&mut target_has, e.len())] {
                has.clear();
                has.resize(n, false);
            }
            for &(i, j) in links {
                source_has[i as usize] = true;
                target_has[j as usize] = true;
                new.count(Some(f[i as usize]), Some(e[j as usize]));
            }
            for (&w, _) in f.iter().zip(&source_has).filter(|w| !*w.1) {
                new.count(Some(w), None);
            }
            for (&w, _) in e.iter().zip(&target_has).filter(|w| !*w.1) {
                new.count(None, Some(w));
            }
            if s.is_multiple_of(64) {
                meter.add(64.min(corpus.len() - s))?;
            }
        }
        meter.finish()?;
        Ok(new)
    }

    /// Counts a link; `None` is the null word.
    fn count(&mut self, source: Option<u32>, target: Option<u32>) {
        *self.pairs.entry(key(source.unwrap_or(NULL), target.unwrap_or(NULL))).or_insert(0) += 1;
        *source.map_or(&mut self.null_source, |w| &mut self.source_total[w as usize]) += 1;
        *target.map_or(&mut self.null_target, |w| &mut self.target_total[w as usize]) += 1;
    }

    /// Returns the number of links between two words; `None` is the null word.
    fn pair(&self, source: Option<u32>, target: Option<u32>) -> f64 {
        let found = self.pairs.get(&key(source.unwrap_or(NULL), target.unwrap_or(NULL)));
        f64::from(found.copied().unwrap_or(0))
    }

    /// Returns w(target word | source word), from 0 to 1; `None` is the null word.
    pub fn target_given_source(&self, source: Option<u32>, target: Option<u32>) -> f64 {
        let total = source.map_or(self.null_source, |w| self.source_total[w as usize]);
        self.pair(source, target) / f64::from(total.max(1))
    }

    /// Returns w(source word | target word), from 0 to 1; `None` is the null word.
    pub fn source_given_target(&self, source: Option<u32>, target: Option<u32>) -> f64 {
        let total = target.map_or(self.null_target, |w| self.target_total[w as usize]);
        self.pair(source, target) / f64::from(total.max(1))
    }

    /// Returns the lexical weights of a phrase pair or rule (Koehn et al. 2003): of the source given the
    /// target, then of the target given the source. `links` are pairs of positions in `source` and `target`;
    /// symbols for which `is_word` returns false are ignored.
    pub fn weights(
        &self,
        source: &[u32],
        target: &[u32],
        links: &[(u8, u8)],
        is_word: impl Fn(u32) -> bool,
    ) -> [f64; 2] {
        let mut both = [1.0, 1.0];
        for (i, &f) in source.iter().enumerate().filter(|w| is_word(*w.1)) {
            let to = links.iter().filter(|l| l.0 as usize == i).map(|l| target[l.1 as usize]);
            both[0] *= mean(to.map(|e| self.source_given_target(Some(f), Some(e))))
                .unwrap_or_else(|| self.source_given_target(Some(f), None));
        }
        for (j, &e) in target.iter().enumerate().filter(|w| is_word(*w.1)) {
            let from = links.iter().filter(|l| l.1 as usize == j).map(|l| source[l.0 as usize]);
            both[1] *= mean(from.map(|f| self.target_given_source(Some(f), Some(e))))
                .unwrap_or_else(|| self.target_given_source(None, Some(e)));
        }
        both
    }
}

/// Returns the mean of numbers; `None` if there are none.
fn mean(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut total, mut n) = (0.0, 0.0);
    for p in numbers {
        total += p;
        n += 1.0;
    }
    (n > 0.0).then(|| total / n)
}
