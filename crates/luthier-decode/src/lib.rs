//! Phrase-based translation: a [`Model`] and weights make a [`Decoder`]; each sentence becomes a [`Lattice`], from which
//! come the best translation and a forest of all that was found.

mod lattice;
mod model;
mod phrase;
mod search;

use luthier_core::Weights;
pub use model::{Config, Model};
use phrase::Phrases;
pub use search::{Lattice, Limits, MAX_DISTORTION, Stats};

/// A model with weights, ready to translate; threads share it.
pub struct Decoder<'m> {
    model: &'m Model,
    phrases: Phrases<'m>,
    limits: Limits,
}

impl<'m> Decoder<'m> {
    /// Features without weight have 0; unknown words cost 100 each unless the weights say otherwise.
    pub fn new(model: &'m Model, weights: &Weights, limits: Limits) -> Self {
        let phrases = Phrases::new(model, model.weights(weights), limits.table);
        Decoder { model, phrases, limits }
    }

    /// The model.
    pub fn model(&self) -> &'m Model {
        self.model
    }

    /// Searches the translations of a sentence, whose words are parted by blanks.
    pub fn search(&self, sentence: &str) -> Lattice<'_> {
        let words: Vec<&str> = sentence.split_ascii_whitespace().collect();
        search::search(self.model, &self.phrases, &words, self.limits)
    }

    /// Weights by local number of a forest's features.
    pub fn local_weights(&self) -> Vec<f64> {
        let mut weights = vec![0.0; self.phrases.weights().len()];
        for (w, &place) in self.phrases.weights().iter().zip(&self.model.place) {
            weights[place as usize] = *w;
        }
        weights
    }
}

#[cfg(test)]
mod tests;
