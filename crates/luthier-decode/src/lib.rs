//! Phrase-based and hierarchical translation: a [`Model`] and weights make a [`Decoder`]; each sentence becomes a [`Found`],
//! from which come the best translation and a forest of all that was found.

mod chart;
mod forests;
mod guide;
mod lattice;
mod model;
mod parse;
mod phrase;
mod search;
mod sparse;

pub use chart::Chart;
use chart::RuleBook;
pub use forests::{Forests, ForestsWriter, Spans};
pub use guide::{Free, Guide};
use luthier_core::{FeatureKey, Local, Weights};
use luthier_forest::Forest;
pub use model::{Config, Model};
use phrase::Phrases;
pub use search::{Lattice, Limits, MAX_DISTORTION, Stats};
pub use sparse::{Template, Templates};

/// A model with weights, ready to translate; threads share it.
pub struct Decoder<'m> {
    model: &'m Model,
    weights: &'m Weights,
    engine: Engine<'m>,
    limits: Limits,
}

enum Engine<'m> {
    Phrases(Phrases<'m>),
    /// Rules of the table, and those of saved forests.
    Rules(RuleBook<'m>, Option<RuleBook<'m>>),
}

/// What a search has found.
pub enum Found<'d> {
    /// By phrases.
    Lattice(Box<Lattice<'d>>),
    /// By rules.
    Chart(Box<Chart<'d>>),
}

impl Found<'_> {
    /// The best translation and its total score; nothing if there is none.
    pub fn best(&self) -> Option<(String, f64)> {
        match self {
            Found::Lattice(l) => l.best(),
            Found::Chart(c) => c.best(),
        }
    }

    /// The forest of all complete translations.
    pub fn forest(&self) -> Forest<'static> {
        match self {
            Found::Lattice(l) => l.forest(),
            Found::Chart(c) => c.forest(),
        }
    }

    /// What the search did.
    pub fn stats(&self) -> Stats {
        match self {
            Found::Lattice(l) => l.stats,
            Found::Chart(c) => c.stats,
        }
    }

    /// Names of those sparse features of the translations that are wanted.
    pub fn sparse_names(&self, wanted: &dyn Fn(FeatureKey) -> bool, each: &mut dyn FnMut(FeatureKey, &str)) {
        if let Found::Lattice(l) = self {
            l.sparse_names(wanted, each);
        }
    }
}

impl<'m> Decoder<'m> {
    /// Features without weight have 0; unknown words cost 100 each unless the weights say otherwise.
    pub fn new(model: &'m Model, weights: &'m Weights, limits: Limits) -> Self {
        let engine = if model.is_hierarchical() {
            Engine::Rules(RuleBook::new(model, weights, limits.table, None), None)
        } else {
            Engine::Phrases(Phrases::new(model, weights, limits.table))
        };
        Decoder { model, weights, engine, limits }
    }

    /// A decoder of sentences whose forests have been saved, with the same model.
    pub fn over(model: &'m Model, weights: &'m Weights, limits: Limits, forests: &'m Forests) -> Self {
        let book = |saved| RuleBook::new(model, weights, limits.table, saved);
        Decoder { model, weights, engine: Engine::Rules(book(None), Some(book(Some(forests)))), limits }
    }

    /// A decoder to which all translations are the same: guides decide alone. Language models are not asked, so lists and
    /// forests have no features of theirs. Of phrase-based models.
    pub fn blind(model: &'m Model, limits: Limits) -> Self {
        static NONE: std::sync::LazyLock<Weights> = std::sync::LazyLock::new(Weights::default);
        let engine = Engine::Phrases(Phrases::blind(model, &NONE, limits.table));
        Decoder { model, weights: &NONE, engine, limits }
    }

    /// The model.
    pub fn model(&self) -> &'m Model {
        self.model
    }

    /// Searches the translations of a sentence, whose words are parted by blanks.
    pub fn search(&self, sentence: &str) -> Found<'_> {
        self.guided(sentence, &Free)
    }

    /// Searches the translations of a sentence with a saved forest; nothing if there are no saved ones.
    pub fn rescore(&self, sentence: usize) -> Option<Found<'_>> {
        let Engine::Rules(_, Some(book)) = &self.engine else { return None };
        let forests = book.saved()?;
        let words: Vec<&str> = forests.sentence(sentence).split_ascii_whitespace().collect();
        let parse = forests.parse(sentence);
        Some(Found::Chart(Box::new(chart::over(self.model, book, &words, &parse, self.limits))))
    }

    /// The same with a guide, to which hierarchical search does not listen.
    pub fn guided<G: Guide>(&self, sentence: &str, guide: &G) -> Found<'_> {
        let words: Vec<&str> = sentence.split_ascii_whitespace().collect();
        match &self.engine {
            Engine::Phrases(p) => {
                Found::Lattice(Box::new(search::search(self.model, p, &words, self.limits, guide)))
            }
            Engine::Rules(r, _) => Found::Chart(Box::new(chart::search(self.model, r, &words, self.limits))),
        }
    }

    /// The numbers of target words in a search of a sentence: those of the table, then words of the sentence that are passed
    /// through. None: no translation has the word.
    pub fn numbers(&self, sentence: &str, words: &[&str]) -> Vec<Option<u32>> {
        let table = &self.model.table;
        let source: Vec<&str> = sentence.split_ascii_whitespace().collect();
        let passed = |w: &str| source.iter().position(|s| *s == w).map(|at| (table.words()[1] + at) as u32);
        words.iter().map(|w| table.target_word(w).or_else(|| passed(w))).collect()
    }

    /// Weights of features that are not tuned.
    pub fn fixed(&self) -> Vec<(FeatureKey, f64)> {
        let unknown = self.model.layout.unknown;
        vec![(self.model.keys[unknown], self.dense()[unknown])]
    }

    fn dense(&self) -> &[f64] {
        match &self.engine {
            Engine::Phrases(p) => p.weights(),
            Engine::Rules(r, _) => r.weights(),
        }
    }

    /// Weights of a forest's features.
    pub fn local_weights(&self, local: &Local) -> Vec<f64> {
        let dense = self.dense();
        let weight = |key: &FeatureKey| match self.model.keys.iter().position(|k| k == key) {
            Some(at) => dense[at],
            None => self.weights.get(*key),
        };
        local.keys().iter().map(weight).collect()
    }
}

#[cfg(test)]
mod tests;
