//! Derivation of the best translation of a search: which phrase pairs or rules it consists of, and the alternatives that the
//! search had for each of them.

use crate::{
    Found,
    chart::Chart,
    model::{Model, UNKNOWN_COST},
    phrase::{LN10, Phrase},
    rules::{self, Kind, Rule},
    search::Lattice,
    sparse::Text,
};
use luthier_forest::{NONE, TAILS};
use std::{collections::BTreeSet, ops::Range};

/// A phrase pair or a rule in the derivation of the best translation of a sentence.
///
/// ```
/// use luthier_core::{Progress, Weights};
/// use luthier_decode::{Decoder, Limits, Model};
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("table");
/// # let pairs = "das ||| the ||| 0.5\ndas ||| that ||| 0.25\nhaus ||| house ||| 0.9\n";
/// # std::fs::write(&path, pairs).unwrap();
/// # let model = Model::new(luthier_table::read_text(&path, None, Progress::NONE).unwrap(), Vec::new(), false).unwrap();
/// let weights = Weights::parse("w", "TranslationModel0 1\nDistortion0 0.3\n").unwrap();
/// let decoder = Decoder::new(&model, &weights, Limits::default());
/// let steps = decoder.search("das haus", Progress::NONE).unwrap().derivation(2);
/// assert_eq!((steps[1].source.as_slice(), steps[1].target.as_slice()), ([1].as_slice(), [1].as_slice()));
/// let texts: Vec<&str> = steps[0].options.iter().map(|o| o.text.as_str()).collect();
/// assert_eq!(texts, ["the", "that"]);
/// assert!(steps[0].options[0].is_chosen && steps[0].options[0].score > steps[0].options[1].score);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct DerivationStep {
    /// Positions of the source words in the sentence, ascending; words in the gaps of a rule are not included. Empty if the
    /// search used a saved forest, which has no positions.
    pub source: Vec<usize>,
    /// Positions of the target words in the translation, ascending; empty if the source words are dropped.
    pub target: Vec<usize>,
    /// Whether the source word has no translation in the table, so that it is copied or dropped.
    pub is_unknown: bool,
    /// Translations of the source words that the search considered, best first; the chosen one is always included.
    pub options: Vec<TranslationOption>,
}

/// A translation of the source words of a phrase pair or a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct TranslationOption {
    /// Target words, separated by blanks. `X1` and `X2` are the gaps of a rule.
    pub text: String,
    /// Model score without context, higher is better: weights times `features`. It lacks distortion, reordering and sparse
    /// features, and language models score the words as if nothing stood before them.
    pub score: f64,
    /// Names and values of the features that the score without context consists of.
    pub features: Vec<(String, f64)>,
    /// Whether the best translation of the sentence uses this translation.
    pub is_chosen: bool,
}

impl Found<'_> {
    /// Returns the phrase pairs or rules of the best translation, in the order of their first source words, each with at most
    /// `options` translations; empty if there is no complete translation. Glue rules and sentence ends have no words and are
    /// left out.
    pub fn derivation(&self, options: usize) -> Vec<DerivationStep> {
        let mut steps = match self {
            Found::Lattice(l) => l.derivation(options),
            Found::Chart(c) => c.derivation(options),
        };
        steps.sort_by(|a, b| a.source.cmp(&b.source));
        steps
    }
}

/// Returns the first `most` of `all` translations; the last one is replaced by the chosen one if that is not among them.
fn options<T>(
    all: &[T],
    chosen: usize,
    most: usize,
    option: impl Fn(&T) -> TranslationOption,
) -> Vec<TranslationOption> {
    let mut kept: Vec<usize> = (0..all.len().min(most.max(1))).collect();
    if let Some(last) = kept.last_mut().filter(|last| **last < chosen) {
        *last = chosen;
    }
    kept.into_iter().map(|k| TranslationOption { is_chosen: k == chosen, ..option(&all[k]) }).collect()
}

/// Collects the named features of a translation option and its score.
struct Features<'a> {
    model: &'a Model,
    weights: &'a [f64],
    named: Vec<(String, f64)>,
    score: f64,
}

impl<'a> Features<'a> {
    fn new(model: &'a Model, weights: &'a [f64]) -> Self {
        Features { model, weights, named: Vec::new(), score: 0.0 }
    }

    /// Adds a dense feature by its place in the layout.
    fn put(&mut self, feature: usize, value: f32) {
        let name = self.model.name_of(self.model.keys[feature]);
        if let Some(name) = name.filter(|_| self.model.uses(feature) && value != 0.0) {
            self.named.push((name.to_owned(), f64::from(value)));
            self.score += self.weights[feature] * f64::from(value);
        }
    }

    fn option(self, text: String) -> TranslationOption {
        TranslationOption { text, score: self.score, features: self.named, is_chosen: false }
    }
}

impl Lattice<'_> {
    fn derivation(&self, most: usize) -> Vec<DerivationStep> {
        let mut steps = Vec::new();
        let mut at = 0;
        for number in self.best_phrases() {
            let (start, end, phrase) = self.phrase(number);
            let target = at..at + phrase.words.len();
            at = target.end;
            let (all, chosen) = self.options(number);
            steps.push(DerivationStep {
                source: (start..end).collect(),
                target: target.collect(),
                is_unknown: phrase.entry.is_none(),
                options: options(all, chosen, most, |p| self.option(p)),
            });
        }
        steps
    }

    fn option(&self, phrase: &Phrase) -> TranslationOption {
        let layout = &self.model.layout;
        let mut features = Features::new(self.model, self.decoder.weights());
        for (k, inner) in phrase.inner.iter().enumerate() {
            features.put(layout.lm + k, inner.rest[0] * LN10);
            if let Some(oov) = layout.oov {
                features.put(oov + k, inner.unknown as f32);
            }
        }
        features.put(layout.words, -(phrase.words.len() as f32));
        features.put(layout.phrases, 1.0);
        for k in 0..self.model.table.shape().scores {
            features.put(layout.table + k, phrase.scores[k]);
        }
        if phrase.entry.is_none() {
            features.put(layout.unknown, UNKNOWN_COST);
        }
        let words: Vec<&str> = phrase.words.iter().map(|&w| self.words().target(w)).collect();
        features.option(words.join(" "))
    }
}

/// A symbol of the best derivation that is still to be expanded.
enum Open {
    /// Target word of the step with this number.
    Word(usize),
    /// An item of the chart.
    Item(u32),
}

impl Chart<'_> {
    fn derivation(&self, most: usize) -> Vec<DerivationStep> {
        let Some(goal) = self.goal else { return Vec::new() };
        let mut steps: Vec<DerivationStep> = Vec::new();
        let mut words = 0;
        let mut open = vec![Open::Item(goal)];
        while let Some(next) = open.pop() {
            match next {
                Open::Word(step) => {
                    steps[step].target.push(words);
                    words += 1;
                }
                Open::Item(item) => {
                    let edge = &self.edges[self.items[item as usize].best as usize];
                    let rule = self.rule(edge.rule);
                    let step = steps.len();
                    if matches!(rule.kind, Kind::Table(_) | Kind::Passed) {
                        let gaps: Vec<Range<usize>> =
                            edge.tails.iter().filter(|t| **t != NONE).map(|t| self.span(*t)).collect();
                        let source: BTreeSet<usize> =
                            self.span(item).filter(|at| !gaps.iter().any(|gap| gap.contains(at))).collect();
                        let (group, rank) = edge.rule;
                        let all = &self.groups[group as usize];
                        steps.push(DerivationStep {
                            source: source.into_iter().collect(),
                            target: Vec::new(),
                            is_unknown: rule.kind == Kind::Passed,
                            options: options(all, rank as usize, most, |r| self.option(r)),
                        });
                    }
                    let symbols = rule.target.iter().rev();
                    open.extend(symbols.map(|s| match TAILS.iter().position(|t| t == s) {
                        Some(gap) => Open::Item(edge.tails[gap]),
                        None => Open::Word(step),
                    }));
                }
            }
        }
        steps
    }

    fn option(&self, rule: &Rule) -> TranslationOption {
        let layout = &self.model.layout;
        let mut features = Features::new(self.model, self.weights);
        for (k, lm) in self.model.lms.iter().enumerate() {
            features.put(layout.lm + k, rules::alone(lm, rule.lm(k)));
        }
        let unknown = |k| rule.unknown(k);
        rules::features(
            self.model,
            &rule.target,
            &rule.scores,
            rule.kind,
            &unknown,
            &mut |feature, value| {
                features.put(feature, value);
            },
        );
        let text = Text { table: &self.model.table, source: &self.source };
        let symbol = |s: &u32| match TAILS.iter().position(|t| t == s) {
            Some(gap) => format!("X{}", gap + 1),
            None => text.target(*s).to_owned(),
        };
        let words: Vec<String> = rule.target.iter().map(symbol).collect();
        features.option(words.join(" "))
    }
}
