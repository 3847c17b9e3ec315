//! A parallel corpus made by a grammar: German and English sentences about travel and town, with gold
//! alignments and as many references as wished.
//!
//! Tests and demonstrations need parallel text that is free to share, of any size, the same on every machine,
//! and hard enough to learn from: German verbs at the end of the clause, separable prefixes, compounds, words
//! with several translations. A [`Generator`] makes such text from a seed.
//!
//! Inside, the words are in tab-separated files (`lexicon`). A random tree of clauses and phrases is drawn
//! (`draw`, `tree`) and said in both languages (`german`, `english`); the words of both carry marks of what
//! they express, and the gold links follow from these (`links`).

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

/// A part of a corpus. No source sentence of one part stands in another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The sentences to test on, all different.
    Test,
    /// The sentences to tune on, all different.
    Dev,
    /// The sentences to train on; some come again, as in real text.
    Train,
}

/// A source of sentence pairs for the parts of a corpus: no source sentence of one part stands in another one.
///
/// A seed names a corpus for good: the same calls give the same pairs on every machine. A test pins the bytes.
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
/// The parts share no sentence:
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
    made: [u32; 3],
    seen: [FxHashSet<u64>; 3],
}

impl Generator {
    /// The corpus with this seed, before its first sentence.
    pub fn new(seed: u64) -> Self {
        Generator { seed, made: [0; 3], seen: Default::default() }
    }

    /// The next sentence of a part, with this many translations. Source sentences of [`Part::Test`] and
    /// [`Part::Dev`] are all different; those of [`Part::Train`] may come again, as in real text.
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
