//! Generation of a German–English parallel corpus by a grammar: sentences about travel and town, with gold
//! word alignments and any number of references.
//!
//! Tests and demonstrations need parallel text that can be redistributed, has any size, is the same on every
//! machine, and has the difficulties of real translation: verb-final clauses, separable verbs, compounds,
//! words with several translations. A [`Generator`] generates such text from a seed.
//!
//! The words are in tab-separated files (`lexicon`). A random tree of clauses and phrases is drawn (`draw`,
//! `tree`) and realised in both languages (`german`, `english`); every word has marks that identify the node
//! of the tree that it expresses, from which the gold links follow (`links`).

mod dice;
mod draw;
mod english;
mod german;
mod lexicon;
mod links;
mod sentence;
mod tree;

use luthier_core::{
    Fingerprint,
    random::{Purpose, Stream},
};
use rustc_hash::FxHashSet;
pub use sentence::{Pair, sentence};

/// A part of a corpus. The parts have no source sentence in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Test set; its source sentences are all different.
    Test,
    /// Development set, for tuning; its source sentences are all different.
    Dev,
    /// Training set; source sentences may occur several times, as in real text.
    Train,
}

/// Generator of the sentence pairs of a corpus, whose parts have no source sentence in common.
///
/// A seed identifies a corpus: the same calls return the same pairs on every machine and in every version,
/// which a test checks byte by byte.
///
/// ```
/// use luthier_generate::{Generator, Part};
/// let pair = Generator::new(17).next(Part::Train, 2);
/// assert_eq!(pair.source.join(" "), "er schläft , ohne dem dieb die kleine zeitung zu geben .");
/// let references: Vec<String> = pair.targets.iter().map(|words| words.join(" ")).collect();
/// assert_eq!(references[0], "he is sleeping without giving the small newspaper to the thief .");
/// assert_eq!(references[1], "he is sleeping without giving the thief the small newspaper .");
/// ```
///
/// The parts have no source sentence in common:
///
/// ```
/// use luthier_generate::{Generator, Part};
/// let mut corpus = Generator::new(1);
/// let test: Vec<_> = (0..10).map(|_| corpus.next(Part::Test, 2)).collect();
/// assert!(test.iter().all(|p| p.targets.len() == 2));
/// let train = corpus.next(Part::Train, 1);
/// assert!(test.iter().all(|p| p.source != train.source));
/// ```
#[derive(Debug)]
pub struct Generator {
    seed: u64,
    /// Number of sentences drawn for each part.
    made: [u32; 3],
    /// Fingerprints of the source sentences of each part.
    seen: [FxHashSet<u64>; 3],
}

impl Generator {
    /// Returns the generator of the corpus with this seed.
    pub fn new(seed: u64) -> Self {
        Generator { seed, made: [0; 3], seen: Default::default() }
    }

    /// Generates the next sentence pair of a part, with `references` translations. Source sentences of
    /// [`Part::Test`] and [`Part::Dev`] are all different; those of [`Part::Train`] may occur several times,
    /// as in real text.
    pub fn next(&mut self, part: Part, references: usize) -> Pair {
        let at = part as usize;
        loop {
            let mut stream = Stream::new(self.seed, Purpose::Corpus, at as u32, self.made[at]);
            self.made[at] += 1;
            let pair = sentence(&mut |n| stream.below(n.max(1) as u64) as usize, references);
            let key =
                pair.source.iter().fold(Fingerprint::default(), |f, w| f.bytes(w.as_bytes())).finish64();
            let elsewhere = (0..3).any(|p| p != at && self.seen[p].contains(&key));
            let again = !self.seen[at].insert(key);
            if !elsewhere && (part == Part::Train || !again) {
                return pair;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_share_no_sentence_and_a_seed_names_a_corpus() {
        let make = |seed| {
            let mut corpus = Generator::new(seed);
            [Part::Test, Part::Dev, Part::Train]
                .map(|part| (0..800).map(|_| corpus.next(part, 1)).collect::<Vec<_>>())
        };
        let parts = make(1);
        let sources = |p: &[Pair]| p.iter().map(|p| p.source.join(" ")).collect::<FxHashSet<_>>();
        let [test, dev, train] = [0, 1, 2].map(|k| sources(&parts[k]));
        assert!(test.is_disjoint(&train) && test.is_disjoint(&dev) && dev.is_disjoint(&train));
        assert_eq!((test.len(), dev.len()), (800, 800));
        assert_eq!(parts[2], make(1)[2]);
        assert_ne!(parts[2], make(2)[2]);
        let words: usize = parts[2].iter().map(|p| p.source.len()).sum();
        assert!(words >= 10 * 800, "mean length {}", words as f64 / 800.0);
    }
}
