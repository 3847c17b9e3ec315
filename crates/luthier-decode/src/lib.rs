//! Phrase-based and hierarchical decoders. A [`Decoder`] consists of a [`Model`], weights and [`Limits`]; its search
//! of a sentence returns a [`Found`], which gives the best translation and the forest of all translations in the
//! search space.
//!
//! A [`ModelDir`] is a model on disk; [`Limits`] are the pruning parameters, [`FeatureSelection`] selects features,
//! and a [`SearchSpec`] holds every setting that affects the result of a search. With the cargo feature `clap` these
//! settings are command-line flags.

mod chart;
mod coverage;
mod dense;
mod derivation;
mod features;
mod forests;
mod guide;
mod lattice;
mod limits;
mod model;
mod model_dir;
mod parse;
mod phrase;
mod recombination;
mod rules;
mod search;
mod sparse;

pub use chart::Chart;
pub use dense::DenseFeature;
pub use derivation::{DerivationStep, TranslationOption};
pub use features::{FeatureSelection, SearchSpec};
pub use forests::{ForestKind, Forests, ForestsWriter, Spans};
pub use guide::{Free, Guide};
pub use limits::{Limits, MAX_DISTORTION, SearchKind};
use luthier_core::{FeatureKey, Local, Progress, Result, Weights};
use luthier_forest::Forest;
pub use model::Model;
pub use model_dir::{ModelConfig, ModelDir, ModelKind};
use phrase::Phrases;
use rules::RuleBook;
pub use search::{Lattice, Stats};
pub use sparse::{Template, Templates};

/// A decoder: a model with weights and search limits. Threads can share it.
///
/// ```
/// use luthier_core::{Progress, Weights};
/// use luthier_decode::{Decoder, Limits, Model};
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("table");
/// # let pairs = "das ||| the ||| 0.5\ndas ||| that ||| 0.25\ndas haus ||| the house ||| 0.8\nhaus ||| house ||| 0.9\n";
/// # std::fs::write(&path, pairs).unwrap();
/// # let model = Model::new(luthier_table::read_text(&path, None, Progress::NONE).unwrap(), Vec::new(), false).unwrap();
/// // A table with `das haus ||| the house ||| 0.8` and three more phrase pairs.
/// let weights = Weights::parse("w", "TranslationModel0 1\nDistortion0 0.3\n").unwrap();
/// let decoder = Decoder::new(&model, &weights, Limits::default());
/// let found = decoder.search("das haus", Progress::NONE).unwrap();
/// let (text, score) = found.best().unwrap();
/// assert_eq!(text, "the house");
/// assert!((score - 0.8f64.ln()).abs() < 1e-6);
/// ```
pub struct Decoder<'m> {
    model: &'m Model,
    weights: &'m Weights,
    engine: Engine<'m>,
    limits: Limits,
}

/// Weighted phrases or rules, by the kind of the model.
enum Engine<'m> {
    Phrases(Phrases<'m>),
    /// Rules of the table, and rules of saved forests.
    Rules(RuleBook<'m>, Option<RuleBook<'m>>),
}

/// Result of the search of one sentence: the lattice or chart of its hypotheses.
///
/// K-best translations come from the forest:
///
/// ```
/// use luthier_core::{Progress, Weights};
/// use luthier_decode::{Decoder, Limits, Model};
/// use luthier_forest::KBest;
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("table");
/// # let pairs = "das ||| the ||| 0.5\ndas ||| that ||| 0.25\ndas haus ||| the house ||| 0.8\nhaus ||| house ||| 0.9\n";
/// # std::fs::write(&path, pairs).unwrap();
/// # let model = Model::new(luthier_table::read_text(&path, None, Progress::NONE).unwrap(), Vec::new(), false).unwrap();
/// let weights = Weights::parse("w", "TranslationModel0 1\nDistortion0 0.3\n").unwrap();
/// let decoder = Decoder::new(&model, &weights, Limits::default());
/// let forest = decoder.search("das haus", Progress::NONE).unwrap().forest();
/// let scores = forest.scores(&decoder.local_weights(&forest.local));
/// let best = KBest::new(&forest, &scores, true).take(2);
/// let texts: Vec<String> = best.map(|d| forest.text(&d.words)).collect();
/// assert_eq!(texts, ["the house", "that house"]);
/// ```
pub enum Found<'d> {
    /// Lattice of a phrase-based search.
    Lattice(Box<Lattice<'d>>),
    /// Chart of a hierarchical search.
    Chart(Box<Chart<'d>>),
}

impl Found<'_> {
    /// Returns the best translation and its model score; `None` if there is no complete translation.
    pub fn best(&self) -> Option<(String, f64)> {
        match self {
            Found::Lattice(l) => l.best(),
            Found::Chart(c) => c.best(),
        }
    }

    /// Returns the forest of all complete translations; empty if there is none. [`Decoder::local_weights`] gives the
    /// weights for it.
    pub fn forest(&self) -> Forest<'static> {
        match self {
            Found::Lattice(l) => l.forest(),
            Found::Chart(c) => c.forest(),
        }
    }

    /// Returns the numbers of words, expanded hypotheses and recombinations of the search, and its times.
    pub fn stats(&self) -> Stats {
        match self {
            Found::Lattice(l) => l.stats,
            Found::Chart(c) => c.stats,
        }
    }

    /// Calls `each` with the key and name of every sparse feature of the translations whose key `wanted` accepts.
    /// Forests store keys only. Hierarchical models have no sparse features.
    pub fn sparse_names(&self, wanted: &dyn Fn(FeatureKey) -> bool, each: &mut dyn FnMut(FeatureKey, &str)) {
        if let Found::Lattice(l) = self {
            l.sparse_names(wanted, each);
        }
    }
}

impl<'m> Decoder<'m> {
    /// Returns a decoder with the given weights and limits. Features without a weight have weight 0, except for the
    /// unknown word penalty, whose weight is 1: each unknown word costs 100.
    pub fn new(model: &'m Model, weights: &'m Weights, limits: Limits) -> Self {
        let engine = if model.is_hierarchical() {
            Engine::Rules(RuleBook::new(model, weights, limits.table(), None), None)
        } else {
            Engine::Phrases(Phrases::new(model, weights, limits.table()))
        };
        Decoder { model, weights, engine, limits }
    }

    /// Returns a decoder for a hierarchical model that can also [`rescore`](Decoder::rescore) the sentences of saved
    /// forests. The forests must have been saved with the same model.
    pub fn over(model: &'m Model, weights: &'m Weights, limits: Limits, forests: &'m Forests) -> Self {
        let book = |saved| RuleBook::new(model, weights, limits.table(), saved);
        Decoder { model, weights, engine: Engine::Rules(book(None), Some(book(Some(forests)))), limits }
    }

    /// Returns a decoder with all weights 0, for searches in which only a [`Guide`] scores translations. Language
    /// models are not queried, and forests lack their features. For phrase-based models.
    pub fn blind(model: &'m Model, limits: Limits) -> Self {
        static NONE: std::sync::LazyLock<Weights> = std::sync::LazyLock::new(Weights::default);
        let engine = Engine::Phrases(Phrases::blind(model, &NONE, limits.table()));
        Decoder { model, weights: &NONE, engine, limits }
    }

    /// Returns the model of this decoder.
    pub fn model(&self) -> &'m Model {
        self.model
    }

    /// Searches for translations of a tokenised sentence, whose words are separated by spaces. Reports progress in
    /// `stacks`, or in `spans` for a hierarchical model. Fails with an error of kind `Interrupted` if `progress`
    /// answers *stop*.
    pub fn search(&self, sentence: &str, progress: Progress<'_>) -> Result<Found<'_>> {
        self.guided(sentence, &Free, progress)
    }

    /// Searches for translations of a sentence in its saved forest; `sentence` is its number, from 0. Returns `None`
    /// if this decoder has no saved forests. Fails with an error of kind `Interrupted` if `progress` answers *stop*.
    pub fn rescore(&self, sentence: usize, progress: Progress<'_>) -> Result<Option<Found<'_>>> {
        let Engine::Rules(_, Some(book)) = &self.engine else { return Ok(None) };
        let Some(forests) = book.saved() else { return Ok(None) };
        let words: Vec<&str> = forests.sentence(sentence).split_ascii_whitespace().collect();
        let parse = forests.parse(sentence);
        let chart = chart::over(self.model, book, &words, &parse, self.limits, progress)?;
        Ok(Some(Found::Chart(Box::new(chart))))
    }

    /// Searches for translations of a sentence in the saved forest with this `number` if the decoder has saved
    /// forests, and from the text `sentence` otherwise. Fails with an error of kind `Interrupted` if `progress`
    /// answers *stop*.
    pub fn search_segment(&self, number: usize, sentence: &str, progress: Progress<'_>) -> Result<Found<'_>> {
        match self.rescore(number, progress)? {
            Some(found) => Ok(found),
            None => self.search(sentence, progress),
        }
    }

    /// Searches for translations of a tokenised sentence with a guide, which adds to scores and can forbid words.
    /// Hierarchical search ignores the guide. Fails with an error of kind `Interrupted` if `progress` answers *stop*.
    pub fn guided<G: Guide>(&self, sentence: &str, guide: &G, progress: Progress<'_>) -> Result<Found<'_>> {
        let words: Vec<&str> = sentence.split_ascii_whitespace().collect();
        Ok(match &self.engine {
            Engine::Phrases(p) => {
                let lattice = search::search(self.model, p, &words, self.limits, guide, progress)?;
                Found::Lattice(Box::new(lattice))
            }
            Engine::Rules(r, _) => {
                Found::Chart(Box::new(chart::search(self.model, r, &words, self.limits, progress)?))
            }
        })
    }

    /// Returns the number of each target word in a search of `sentence`. Words of the table come first, then source
    /// words that are copied to the output; `None` for a word that cannot occur in a translation.
    pub fn numbers(&self, sentence: &str, words: &[&str]) -> Vec<Option<u32>> {
        let table = &self.model.table;
        let source: Vec<&str> = sentence.split_ascii_whitespace().collect();
        let passed = |w: &str| source.iter().position(|s| *s == w).map(|at| (table.words()[1] + at) as u32);
        words.iter().map(|w| table.target_word(w).or_else(|| passed(w))).collect()
    }

    /// Returns the keys and weights of features that are not tuned: the unknown word penalty.
    pub fn fixed(&self) -> Vec<(FeatureKey, f64)> {
        let unknown = self.model.layout.unknown;
        vec![(self.model.keys[unknown], self.dense()[unknown])]
    }

    /// Weights of all dense features, by their place in the layout.
    fn dense(&self) -> &[f64] {
        match &self.engine {
            Engine::Phrases(p) => p.weights(),
            Engine::Rules(r, _) => r.weights(),
        }
    }

    /// Returns the weights of a forest's features, indexed by local feature number; 0 for a feature without a weight.
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
