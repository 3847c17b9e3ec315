//! Translations of source phrases, scored as far as they can be without knowing what stands before.

use crate::{
    guide::Guide,
    model::{Model, UNKNOWN_COST},
};
use luthier_core::{FeatureKey, Weights};
use luthier_lm::{Model as LanguageModel, State, UNKNOWN};
use luthier_table::Node;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// log₁₀ to ln.
pub(crate) const LN10: f32 = std::f32::consts::LN_10;

/// What one language model says about a phrase by itself.
#[derive(Debug, Clone)]
pub(crate) struct Inner {
    /// Numbers of its words.
    pub(crate) words: Box<[u32]>,
    /// log₁₀ of the words from each position on, given the words of the phrase before them.
    pub(crate) rest: Box<[f32]>,
    /// What the phrase leaves for later if nothing before it matters.
    pub(crate) end: State,
    /// Words that the model does not know.
    pub(crate) unknown: u32,
}

impl Inner {
    /// log₁₀ of the words after a state, and the state behind them.
    #[inline]
    pub(crate) fn after(&self, lm: &LanguageModel, mut state: State) -> (f32, State) {
        let mut log10 = 0.0;
        for (at, &word) in self.words.iter().enumerate() {
            let scored = lm.score(&state, word);
            log10 += scored.log10;
            state = scored.state;
            // Nothing before the phrase matters any more: the rest is known.
            if state.len() <= at + 1 {
                return (log10 + self.rest[at + 1], self.end);
            }
        }
        (log10, state)
    }
}

/// A translation of a source phrase.
#[derive(Debug, Clone)]
pub(crate) struct Phrase {
    /// Words of the table, or beyond them those of the sentence.
    pub(crate) words: Box<[u32]>,
    /// Translation scores, then reordering scores.
    pub(crate) scores: Box<[f32]>,
    /// Weighted, without language models and reordering.
    pub(crate) fixed: f64,
    /// The same with what language models say about the phrase by itself.
    pub(crate) estimate: f64,
    /// Weighted reordering scores by orientation: of this phrase after the one before, and of the next one after this.
    pub(crate) backward: [f32; 3],
    pub(crate) forward: [f32; 3],
    pub(crate) inner: Box<[Inner]>,
    /// Sparse features that it has by itself.
    pub(crate) sparse: Box<[FeatureKey]>,
    /// Its place in the table; none if it stands for a word without translation.
    pub(crate) entry: Option<u32>,
}

/// Finds translations, and remembers them: the same phrases come again and again.
pub(crate) struct Phrases<'m> {
    model: &'m Model,
    sparse: &'m Weights,
    weights: Vec<f64>,
    limit: usize,
    /// Language models that are looked at.
    pub(crate) lms: usize,
    known: Mutex<FxHashMap<u32, Arc<[Phrase]>>>,
}

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

    /// Without any opinion: no feature weighs anything, and language models are not asked.
    pub(crate) fn blind(model: &'m Model, none: &'m Weights, limit: usize) -> Self {
        let weights = vec![0.0; model.keys.len()];
        Phrases { model, sparse: none, weights, limit, lms: 0, known: Mutex::default() }
    }

    /// Weights by place in the layout.
    pub(crate) fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Weights by name.
    pub(crate) fn sparse_weights(&self) -> &'m Weights {
        self.sparse
    }

    /// The best translations of a source phrase, best first; only those that a guide takes.
    pub(crate) fn of<G: Guide>(&self, node: Node, source: &[&str], guide: &G) -> Arc<[Phrase]> {
        let entries = node.entries();
        if G::FREE
            && let Some(found) = self.lock().get(&entries.start)
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
            // Among equals, as when nothing has been learned, the table's own scores decide.
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
            self.lock().insert(entries.start, best.clone());
        }
        best
    }

    fn add_sparse(&self, phrase: &mut Phrase) {
        let sparse: f64 = phrase.sparse.iter().map(|&k| self.sparse.get(k)).sum();
        phrase.fixed += sparse;
        phrase.estimate += sparse;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, FxHashMap<u32, Arc<[Phrase]>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A word that is passed through, with this number; or nothing at all.
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
