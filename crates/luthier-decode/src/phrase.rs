//! Translation options of source phrases, with the scores that do not depend on context.

use crate::{
    guide::Guide,
    model::{Model, UNKNOWN_COST},
};
use luthier_core::{FeatureKey, Weights};
use luthier_lm::{Model as LanguageModel, State, UNKNOWN};
use luthier_table::Node;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Factor from log₁₀ to natural logarithm.
pub(crate) const LN10: f32 = std::f32::consts::LN_10;

/// Language model scores of a target phrase without left context.
#[derive(Debug, Clone)]
pub(crate) struct Inner {
    /// Word numbers in the language model.
    pub(crate) words: Box<[u32]>,
    /// log₁₀ probability of the words from each position on, given only the words of the phrase before them.
    pub(crate) rest: Box<[f32]>,
    /// State after the phrase if its left context does not matter.
    pub(crate) end: State,
    /// Number of out-of-vocabulary words.
    pub(crate) unknown: u32,
}

impl Inner {
    /// log₁₀ probability of the phrase after a state, and the state after it.
    #[inline]
    pub(crate) fn after(&self, lm: &LanguageModel, mut state: State) -> (f32, State) {
        let mut log10 = 0.0;
        for (at, &word) in self.words.iter().enumerate() {
            let scored = lm.score(&state, word);
            log10 += scored.log10;
            state = scored.state;
            // The state depends on words of the phrase only: the score of the rest has been computed.
            if state.len() <= at + 1 {
                return (log10 + self.rest[at + 1], self.end);
            }
        }
        (log10, state)
    }
}

/// A translation option of a source phrase.
#[derive(Debug, Clone)]
pub(crate) struct Phrase {
    /// Target words: numbers of the table's words, or beyond them source positions whose words are copied.
    pub(crate) words: Box<[u32]>,
    /// Translation scores, then reordering scores.
    pub(crate) scores: Box<[f32]>,
    /// Weighted score without language models and reordering.
    pub(crate) fixed: f64,
    /// `fixed` plus the weighted language model scores without left context.
    pub(crate) estimate: f64,
    /// Weighted reordering scores of this phrase relative to the previous one, by orientation.
    pub(crate) backward: [f32; 3],
    /// Weighted reordering scores of the next phrase relative to this one, by orientation.
    pub(crate) forward: [f32; 3],
    /// Scores without left context, by language model.
    pub(crate) inner: Box<[Inner]>,
    /// Sparse features that do not depend on the previous phrase.
    pub(crate) sparse: Box<[FeatureKey]>,
    /// Index of the phrase pair in the table; `None` for an unknown source word.
    pub(crate) entry: Option<u32>,
}

/// Weighted translation options of source phrases, with a cache that all sentences share.
pub(crate) struct Phrases<'m> {
    model: &'m Model,
    /// Weights by feature key, for sparse features.
    sparse: &'m Weights,
    /// Weights of dense features, in the order of the layout.
    weights: Vec<f64>,
    /// Maximum number of translation options per source phrase.
    limit: usize,
    /// Number of language models that are queried.
    pub(crate) lms: usize,
    known: Mutex<Known>,
}

/// Cache of translation options.
#[derive(Default)]
struct Known {
    /// Translation options of a source phrase, by its first entry in the table.
    groups: FxHashMap<u32, Arc<[Phrase]>>,
    /// Number of translation options in the cache.
    phrases: usize,
}

/// Maximum number of translation options in the cache, so that memory does not grow with the text. A full cache is emptied.
const REMEMBERED: usize = 1 << 18;

impl<'m> Phrases<'m> {
    pub(crate) fn new(model: &'m Model, weights: &'m Weights, limit: usize) -> Self {
        let lms = model.lms.len();
        Phrases {
            model,
            sparse: weights,
            weights: model.weights(weights),
            limit,
            lms,
            known: Mutex::default(),
        }
    }

    /// Translation options with all weights 0 and without language models.
    pub(crate) fn blind(model: &'m Model, none: &'m Weights, limit: usize) -> Self {
        let weights = vec![0.0; model.keys.len()];
        Phrases { model, sparse: none, weights, limit, lms: 0, known: Mutex::default() }
    }

    /// Weights of dense features, in the order of the layout.
    pub(crate) fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Weights by feature key.
    pub(crate) fn sparse_weights(&self) -> &'m Weights {
        self.sparse
    }

    /// The best translation options of a source phrase that the guide allows, best first.
    pub(crate) fn of<G: Guide>(&self, node: Node, source: &[&str], guide: &G) -> Arc<[Phrase]> {
        let entries = node.entries();
        if G::FREE
            && let Some(found) = self.lock().groups.get(&entries.start)
        {
            return found.clone();
        }
        let (mut words, mut scores) = (Vec::new(), Vec::new());
        let mut all: Vec<(f64, f32, u32, Phrase)> = Vec::new();
        for entry in entries.clone() {
            self.model.table.target(entry, &mut words);
            let Some(worth) = guide.option(&words) else { continue };
            self.model.table.scores(entry, &mut scores);
            let mut phrase = self.phrase(&words, &scores, None, Some(entry));
            if let Some(sparse) = &self.model.sparse {
                phrase.sparse = sparse.keys_of(&self.model.table, entry, source, &words).into();
                self.add_sparse(&mut phrase);
            }
            // Ties, as with weights of 0, are broken by the sum of the table's scores.
            let prior = scores[..self.model.table.shape().scores].iter().sum();
            all.push((phrase.estimate + worth, prior, entry, phrase));
        }
        let better = |a: &(f64, f32, u32, Phrase), b: &(f64, f32, u32, Phrase)| {
            b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2))
        };
        all.sort_by(better);
        all.truncate(self.limit);
        let best: Arc<[Phrase]> = all.into_iter().map(|p| p.3).collect();
        if G::FREE {
            let mut known = self.lock();
            if known.phrases + best.len() > REMEMBERED {
                known.groups.clear();
                known.phrases = 0;
            }
            known.phrases += best.len();
            known.groups.insert(entries.start, best.clone());
        }
        best
    }

    /// Adds the weights of a phrase's sparse features to its scores.
    fn add_sparse(&self, phrase: &mut Phrase) {
        let sparse: f64 = phrase.sparse.iter().map(|&k| self.sparse.get(k)).sum();
        phrase.fixed += sparse;
        phrase.estimate += sparse;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Translation option of an unknown source word: a copy of it, with this word number, or no words if it is
    /// dropped.
    pub(crate) fn unknown(&self, source: &str, number: Option<u32>) -> Phrase {
        let shape = self.model.table.shape();
        let scores = vec![0.0; shape.scores + shape.reordering];
        let target = number.as_slice();
        let mut phrase = self.phrase(target, &scores, Some(source), None);
        if let Some(sparse) = &self.model.sparse {
            let mut keys = Vec::new();
            let links = &[(0, 0)][..target.len()];
            let words = &[source][..target.len()];
            sparse.alone(&self.model.table, &[source], words, links, &mut |name| {
                keys.push(FeatureKey::of(name));
            });
            phrase.sparse = keys.into();
            self.add_sparse(&mut phrase);
        }
        phrase
    }

    /// Scores a translation option. `text` is the spelling of a target word that is not in the table.
    fn phrase(&self, words: &[u32], scores: &[f32], text: Option<&str>, entry: Option<u32>) -> Phrase {
        let (layout, w) = (&self.model.layout, &self.weights);
        let tables = self.model.table.shape().scores;
        let mut fixed = w[layout.phrases] - w[layout.words] * words.len() as f64;
        if entry.is_none() {
            fixed += w[layout.unknown] * f64::from(UNKNOWN_COST);
        }
        for (k, s) in scores[..tables].iter().enumerate() {
            fixed += w[layout.table + k] * f64::from(*s);
        }
        let inner: Box<[Inner]> = (0..self.lms).map(|k| self.inner(k, words, text)).collect();
        let mut estimate = fixed;
        for (k, inner) in inner.iter().enumerate() {
            if let Some(oov) = layout.oov {
                fixed += w[oov + k] * f64::from(inner.unknown);
                estimate += w[oov + k] * f64::from(inner.unknown);
            }
            estimate += w[layout.lm + k] * f64::from(inner.rest[0] * LN10);
        }
        let (mut backward, mut forward) = ([0.0; 3], [0.0; 3]);
        if let Some(first) = layout.reordering {
            for k in 0..3 {
                backward[k] = (w[first + k] * f64::from(scores[tables + k])) as f32;
                forward[k] = (w[first + 3 + k] * f64::from(scores[tables + 3 + k])) as f32;
            }
        }
        Phrase {
            words: words.into(),
            scores: scores.into(),
            fixed,
            estimate,
            backward,
            forward,
            inner,
            sparse: Box::default(),
            entry,
        }
    }

    /// Scores of a target phrase in language model `k`, without left context.
    fn inner(&self, k: usize, words: &[u32], text: Option<&str>) -> Inner {
        let (lm, known) = (&self.model.lms[k], &self.model.lm_words[k]);
        let number = |w: &u32| match (known.get(*w as usize), text) {
            (Some(&id), _) => id,
            (None, Some(text)) => lm.word(text),
            (None, None) => UNKNOWN,
        };
        let words: Box<[u32]> = words.iter().map(number).collect();
        let mut state = State::default();
        let mut rest = vec![0.0; words.len() + 1];
        for (at, &word) in words.iter().enumerate() {
            let scored = lm.score(&state, word);
            rest[at] = scored.log10;
            state = scored.state;
        }
        for at in (0..words.len()).rev() {
            rest[at] += rest[at + 1];
        }
        let unknown = words.iter().filter(|w| **w == UNKNOWN).count() as u32;
        Inner { words, rest: rest.into(), end: state, unknown }
    }
}
