//! Numbering of words.

use crate::Fingerprint;
use rustc_hash::FxHashMap;

/// Words numbered from 0 in the order of first occurrence.
///
/// ```
/// let mut words = luthier_core::Vocabulary::default();
/// assert_eq!((words.add("the"), words.add("house"), words.add("the")), (0, 1, 0));
/// assert_eq!((words.word(1), words.get("garden"), words.len()), ("house", None, 2));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Vocabulary {
    /// Number of the word with a fingerprint.
    ids: FxHashMap<u64, u32>,
    /// All words, concatenated by number.
    text: String,
    /// End of each word in `text`, in bytes.
    ends: Vec<usize>,
}

impl Vocabulary {
    /// Returns the 64-bit fingerprint that identifies a word. The probability that any two of ten million
    /// words have the same one is below one in 100,000.
    pub fn key(word: &str) -> u64 {
        Fingerprint::default().bytes(word.as_bytes()).finish64()
    }

    /// Returns the number of a word, a new one if the word is not known yet.
    pub fn add(&mut self, word: &str) -> u32 {
        let next = self.ends.len() as u32;
        let id = *self.ids.entry(Self::key(word)).or_insert(next);
        if id == next {
            self.text.push_str(word);
            self.ends.push(self.text.len());
        }
        id
    }

    /// Returns the number of a word; `None` if the word is not known.
    pub fn get(&self, word: &str) -> Option<u32> {
        self.ids.get(&Self::key(word)).copied()
    }

    /// Returns the word with a number. Panics if there is none.
    pub fn word(&self, id: u32) -> &str {
        let start = if id == 0 { 0 } else { self.ends[id as usize - 1] };
        &self.text[start..self.ends[id as usize]]
    }

    /// Returns the number of words.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether the vocabulary has no words.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}
