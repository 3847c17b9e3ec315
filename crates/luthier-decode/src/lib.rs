//! Phrase-based translation: a [`Model`] and weights make a [`Decoder`]; each sentence becomes a [`Lattice`], from which
//! come the best translation and a forest of all that was found.

mod guide;
mod lattice;
mod model;
mod phrase;
mod search;
mod sparse;

pub use guide::{Free, Guide};
use luthier_core::{FeatureKey, Local, Weights};
pub use model::{Config, Model};
use phrase::Phrases;
pub use search::{Lattice, Limits, MAX_DISTORTION, Stats};
pub use sparse::{Template, Templates};

/// A model with weights, ready to translate; threads share it.
pub struct Decoder<'m> {
    model: &'m Model,
    phrases: Phrases<'m>,
    limits: Limits,
}

impl<'m> Decoder<'m> {
    /// Features without weight have 0; unknown words cost 100 each unless the weights say otherwise.
    pub fn new(model: &'m Model, weights: &'m Weights, limits: Limits) -> Self {
        Decoder { model, phrases: Phrases::new(model, weights, limits.table), limits }
    }

    /// A decoder to which all translations are the same: guides decide alone. Language models are not asked, so lists and
    /// forests have no features of theirs.
    pub fn blind(model: &'m Model, limits: Limits) -> Self {
        static NONE: std::sync::LazyLock<Weights> = std::sync::LazyLock::new(Weights::default);
        Decoder { model, phrases: Phrases::blind(model, &NONE, limits.table), limits }
    }

    /// The model.
    pub fn model(&self) -> &'m Model {
        self.model
    }

    /// Searches the translations of a sentence, whose words are parted by blanks.
    pub fn search(&self, sentence: &str) -> Lattice<'_> {
        self.guided(sentence, &Free)
    }

    /// The same with a guide.
    pub fn guided<G: Guide>(&self, sentence: &str, guide: &G) -> Lattice<'_> {
        let words: Vec<&str> = sentence.split_ascii_whitespace().collect();
        search::search(self.model, &self.phrases, &words, self.limits, guide)
    }

    /// The numbers of target words in a search of a sentence: those of the table, then words of the sentence that are passed
    /// through. None: no translation has the word.
    pub fn numbers(&self, sentence: &str, words: &[&str]) -> Vec<Option<u32>> {
        let table = &self.model.table;
        let source: Vec<&str> = sentence.split_ascii_whitespace().collect();
        let passed = |w: &str| source.iter().position(|s| *s == w).map(|at| (table.words()[1] + at) as u32);
        words.iter().map(|w| table.target_word(w).or_else(|| passed(w))).collect()
    }

    /// Weights of a forest's features.
    pub fn local_weights(&self, local: &Local) -> Vec<f64> {
        let weight = |key: &FeatureKey| match self.model.keys.iter().position(|k| k == key) {
            Some(at) => self.phrases.weights()[at],
            None => self.phrases.sparse_weights().get(*key),
        };
        local.keys().iter().map(weight).collect()
    }
}

#[cfg(test)]
mod tests;
