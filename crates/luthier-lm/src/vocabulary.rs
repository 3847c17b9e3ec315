//! Words and their numbers.

use luthier_core::Fingerprint;
use rustc_hash::FxHashMap;

/// Number of the unknown word, `<unk>`.
pub const UNKNOWN: u32 = 0;
/// Number of the beginning of a sentence, `<s>`.
pub const BEGIN: u32 = 1;
/// Number of the end of a sentence, `</s>`.
pub const END: u32 = 2;

/// Words in order of arrival; the first three are `<unk>`, `<s>` and `</s>`.
#[derive(Debug, Clone)]
pub struct Vocabulary {
    ids: FxHashMap<u64, u32>,
    text: String,
    ends: Vec<usize>,
}

impl Default for Vocabulary {
    fn default() -> Self {
        let mut new = Vocabulary { ids: FxHashMap::default(), text: String::new(), ends: Vec::new() };
        for word in ["<unk>", "<s>", "</s>"] {
            new.add(word);
        }
        new
    }
}

/// Words are known by 64 bits: the chance that two of ten million share them is below one in 100,000.
pub(crate) fn key(word: &str) -> u64 {
    Fingerprint::default().bytes(word.as_bytes()).finish64()
}

impl Vocabulary {
    /// The number of a word, a new one if it has none.
    pub fn add(&mut self, word: &str) -> u32 {
        let next = self.ends.len() as u32;
        let id = *self.ids.entry(key(word)).or_insert(next);
        if id == next {
            self.text.push_str(word);
            self.ends.push(self.text.len());
        }
        id
    }

    /// The number of a word.
    pub fn get(&self, word: &str) -> Option<u32> {
        self.ids.get(&key(word)).copied()
    }

    /// The word of a number.
    pub fn word(&self, id: u32) -> &str {
        let start = if id == 0 { 0 } else { self.ends[id as usize - 1] };
        &self.text[start..self.ends[id as usize]]
    }

    /// Number of words, those three included.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Never.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}
