//! Words and their numbers.

use crate::Fingerprint;
use rustc_hash::FxHashMap;

/// Words in order of arrival.
#[derive(Debug, Clone, Default)]
pub struct Vocabulary {
    ids: FxHashMap<u64, u32>,
    text: String,
    ends: Vec<usize>,
}

impl Vocabulary {
    /// Words are known by 64 bits: the chance that two of ten million share them is below one in 100,000.
    pub fn key(word: &str) -> u64 {
        Fingerprint::default().bytes(word.as_bytes()).finish64()
    }

    /// The number of a word, a new one if it has none.
    pub fn add(&mut self, word: &str) -> u32 {
        let next = self.ends.len() as u32;
        let id = *self.ids.entry(Self::key(word)).or_insert(next);
        if id == next {
            self.text.push_str(word);
            self.ends.push(self.text.len());
        }
        id
    }

    /// The number of a word.
    pub fn get(&self, word: &str) -> Option<u32> {
        self.ids.get(&Self::key(word)).copied()
    }

    /// The word of a number.
    pub fn word(&self, id: u32) -> &str {
        let start = if id == 0 { 0 } else { self.ends[id as usize - 1] };
        &self.text[start..self.ends[id as usize]]
    }

    /// Number of words.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether it has no word.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}
