//! Rules of hierarchical models, with the scores that do not depend on the contents of their gaps.

use crate::{
    forests::Forests,
    model::{Model, UNKNOWN_COST},
    phrase::LN10,
};
use luthier_core::Weights;
use luthier_forest::TAILS;
use luthier_lm::{Fragment, UNKNOWN};
use luthier_table::GAPS;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A rule with the scores that do not depend on context.
#[derive(Debug)]
pub(crate) struct Rule {
    /// Target side: word numbers and [`TAILS`].
    pub(crate) target: Box<[u32]>,
    /// Target side with the word numbers of each language model, one after another.
    lm: Box<[u32]>,
    /// Translation scores.
    pub(crate) scores: Box<[f32]>,
    /// Weighted score without language models.
    pub(crate) fixed: f64,
    /// `fixed` plus the weighted language model scores of its words without context.
    pub(crate) estimate: f64,
    pub(crate) kind: Kind,
}

/// Kind of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A rule of the table, with this number of gaps.
    Table(u8),
    /// An unknown word, which is copied to the output or dropped.
    Passed,
    /// The glue rule S → S X.
    Glue,
    /// The beginning or the end of a sentence.
    Edge,
}

/// Weighted rules, with a cache that all sentences share.
pub(crate) struct RuleBook<'m> {
    pub(crate) model: &'m Model,
    /// Weights of dense features, in the order of the layout.
    weights: Vec<f64>,
    /// Maximum number of rules per source side.
    limit: usize,
    /// Saved forests that rules are taken from; `None` for the model's table.
    saved: Option<&'m Forests>,
    known: Mutex<Known>,
}

/// Cache of weighted rules.
#[derive(Default)]
struct Known {
    /// Rules with the same source side, by the index of the first.
    groups: FxHashMap<u32, Arc<[Rule]>>,
    /// Number of rules in the cache.
    rules: usize,
}

/// Maximum number of rules in the cache, so that memory does not grow with the text. A full cache is emptied.
const REMEMBERED: usize = 1 << 20;

impl<'m> RuleBook<'m> {
    pub(crate) fn new(model: &'m Model, weights: &Weights, limit: usize, saved: Option<&'m Forests>) -> Self {
        RuleBook { model, weights: model.weights(weights), limit, saved, known: Mutex::default() }
    }

    pub(crate) fn weights(&self) -> &[f64] {
        &self.weights
    }

    pub(crate) fn saved(&self) -> Option<&'m Forests> {
        self.saved
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The best of the `count` rules with the same source side that begin with `first`, best first.
    pub(crate) fn of(&self, first: u32, count: u32) -> Arc<[Rule]> {
        if let Some(found) = self.lock().groups.get(&first) {
            return found.clone();
        }
        let all = first..first + count;
        let best = if let Some(saved) = self.saved {
            let weighed = all.map(|r| {
                let (target, scores) = (saved.target(r), saved.scores(r));
                let kind = Kind::of(target);
                let fixed = self.fixed(target, scores, kind, &|k| count_unknown(self.model, k, target));
                (r, self.estimate(fixed, saved.alone(r)))
            });
            let best = self.best(weighed.collect());
            best.iter().map(|&r| self.rule(saved.target(r), saved.scores(r), None, None)).collect()
        } else {
            let mut rules: Vec<Option<Rule>> = Vec::with_capacity(count as usize);
            let (mut target, mut scores) = (Vec::new(), Vec::new());
            for entry in all {
                self.model.table.target(entry, &mut target);
                with_tails(&mut target);
                self.model.table.scores(entry, &mut scores);
                rules.push(Some(self.rule(&target, &scores, None, None)));
            }
            let weighed = rules.iter().enumerate();
            let weighed = weighed.map(|(k, r)| (k as u32, r.as_ref().map_or(0.0, |r| r.estimate)));
            let best = self.best(weighed.collect());
            best.iter().filter_map(|&k| rules[k as usize].take()).collect::<Arc<[Rule]>>()
        };
        let mut known = self.lock();
        if known.rules + best.len() > REMEMBERED {
            known.groups.clear();
            known.rules = 0;
        }
        known.rules += best.len();
        known.groups.insert(first, best.clone());
        best
    }

    /// Indices of the rules with the highest estimates, best first, up to the limit.
    fn best(&self, mut all: Vec<(u32, f64)>) -> Vec<u32> {
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        all.truncate(self.limit);
        all.into_iter().map(|r| r.0).collect()
    }

    /// Weighted score of a rule without language models; `unknown` gives its out-of-vocabulary words by language
    /// model.
    fn fixed(&self, target: &[u32], scores: &[f32], kind: Kind, unknown: &dyn Fn(usize) -> u32) -> f64 {
        let mut fixed = 0.0;
        features(self.model, target, scores, kind, unknown, &mut |feature, value| {
            fixed += self.weights[feature] * f64::from(value);
        });
        fixed
    }

    /// `fixed` plus the weighted language model scores of a rule's words without context.
    fn estimate(&self, fixed: f64, alone: &[f32]) -> f64 {
        let lms = self.model.lms.len();
        let weights = &self.weights[self.model.layout.lm..][..lms];
        weights.iter().zip(alone).fold(fixed, |sum, (w, x)| sum + w * f64::from(*x))
    }

    /// Scores a rule. Its kind is `kind`, or a rule of the table if `None`; `text` is the spelling of a target word
    /// that is not in the table.
    pub(crate) fn rule(
        &self,
        target: &[u32],
        scores: &[f32],
        kind: Option<Kind>,
        text: Option<&str>,
    ) -> Rule {
        let model = self.model;
        let number = |known: &Vec<u32>, lm: &luthier_lm::Model, s: u32| match (known.get(s as usize), text) {
            _ if TAILS.contains(&s) => s,
            (Some(&id), _) => id,
            (None, Some(text)) => lm.word(text),
            (None, None) => UNKNOWN,
        };
        let each = model.lms.iter().zip(&model.lm_words);
        let lm: Box<[u32]> =
            each.flat_map(|(lm, known)| target.iter().map(move |&s| number(known, lm, s))).collect();
        let kind = kind.unwrap_or_else(|| Kind::of(target));
        let mut rule =
            Rule { target: target.into(), lm, scores: scores.into(), fixed: 0.0, estimate: 0.0, kind };
        rule.fixed = self.fixed(target, scores, kind, &|k| rule.unknown(k));
        let alone: Vec<f32> = model.lms.iter().enumerate().map(|(k, lm)| alone(lm, rule.lm(k))).collect();
        rule.estimate = self.estimate(rule.fixed, &alone);
        rule
    }
}

/// Language model score of the words of a rule, as a natural logarithm. Each sequence of words between gaps is scored
/// without context.
pub(crate) fn alone(lm: &luthier_lm::Model, words: &[u32]) -> f32 {
    let runs = words.split(|w| TAILS.contains(w));
    (runs.map(|run| Fragment::estimate(lm, run)).sum::<f64>() * f64::from(LN10)) as f32
}

/// Replaces the gap symbols of the table by [`TAILS`].
pub(crate) fn with_tails(target: &mut [u32]) {
    for s in target {
        if let Some(gap) = GAPS.iter().position(|g| g == s) {
            *s = TAILS[gap];
        }
    }
}

/// Number of words of a rule's target side that are out of a language model's vocabulary.
fn count_unknown(model: &Model, lm: usize, target: &[u32]) -> u32 {
    let known = |s: &&u32| model.lm_words[lm].get(**s as usize).is_none_or(|w| *w == UNKNOWN);
    target.iter().filter(|s| !TAILS.contains(s)).filter(known).count() as u32
}

impl Rule {
    /// Target side with the word numbers of language model `k`.
    pub(crate) fn lm(&self, k: usize) -> &[u32] {
        &self.lm[k * self.target.len()..(k + 1) * self.target.len()]
    }

    /// Number of words that are out of the vocabulary of language model `k`.
    pub(crate) fn unknown(&self, k: usize) -> u32 {
        self.lm(k).iter().filter(|w| **w == UNKNOWN).count() as u32
    }
}

impl Kind {
    /// Kind of a rule of the table with this target side.
    fn of(target: &[u32]) -> Self {
        Kind::Table(target.iter().filter(|s| TAILS.contains(s)).count() as u8)
    }
}

/// Calls `each` with the position in the layout and the value of every feature of a rule, except language model
/// scores.
pub(crate) fn features(
    model: &Model,
    target: &[u32],
    scores: &[f32],
    kind: Kind,
    unknown: &dyn Fn(usize) -> u32,
    each: &mut dyn FnMut(usize, f32),
) {
    let layout = &model.layout;
    // Moses counts sentence markers as words.
    let words = target.iter().filter(|s| !TAILS.contains(s)).count() + usize::from(kind == Kind::Edge);
    let mut put = |feature: usize, value: f32| {
        if value != 0.0 && model.uses(feature) {
            each(feature, value);
        }
    };
    for (k, s) in scores.iter().enumerate() {
        put(layout.table + k, *s);
    }
    put(layout.words, -(words as f32));
    put(layout.phrases, 1.0);
    if let Some(oov) = layout.oov {
        for k in 0..model.lms.len() {
            put(oov + k, unknown(k) as f32);
        }
    }
    match kind {
        Kind::Passed => put(layout.unknown, UNKNOWN_COST),
        Kind::Glue => put(layout.glue, model.glue),
        Kind::Table(gaps) => put(layout.kinds + gaps as usize, 1.0),
        Kind::Edge => {}
    }
}
