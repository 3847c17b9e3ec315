//! A parallel corpus of our own, for tests and demonstrations: German and English sentences about travel and town, made by
//! a grammar, with gold alignments and up to four references.

#[allow(dead_code, unused_imports, reason = "the grammar still has its own tables")]
mod lexicon;
mod sentence;

use luthier_core::{
    Fingerprint,
    random::{Purpose, Stream},
};
use rustc_hash::FxHashSet;
pub use sentence::{Pair, sentence};

/// Parts of a corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// To test on.
    Test,
    /// To tune on.
    Dev,
    /// To train on.
    Train,
}

/// Sentences of a corpus, part by part: no source sentence of one part stands in another one.
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
    /// A corpus is named by its seed.
    pub fn new(seed: u64) -> Self {
        Generator { seed, made: [0; 3], seen: Default::default() }
    }

    /// The next sentence of a part, with this many translations. Test and development sentences are all different; those
    /// of the training text may come again, as in real text.
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
