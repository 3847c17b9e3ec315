//! Our own decoder as a source of candidates.

use crate::{
    core::{FeatureKey, Local, Result, SegmentId, Weights},
    decode::{Decoder, Limits, Model},
    forest::{Derivation, Forest, KBest},
    metric::{Metric, Prepared, Scratch},
    tune::{Candidate, Evidence, Goal, List, Source},
};
use rayon::prelude::*;
use std::sync::Arc;

/// A translation with its features, in the order of the model's names.
#[derive(Debug, Clone, PartialEq)]
pub struct Translation {
    /// Its words.
    pub text: String,
    /// Its total score, unknown words included.
    pub score: f64,
    /// Its features.
    pub features: Vec<f64>,
}

/// Steps that the search for another string may take.
const STEPS: usize = 100_000;

/// The `k` best translations of a forest that differ in words.
pub fn translations(decoder: &Decoder<'_>, forest: &Forest<'_>, k: usize) -> Vec<Translation> {
    let scores = forest.scores(&decoder.local_weights());
    let places: Vec<Option<usize>> =
        decoder.model().names().iter().map(|n| forest.local.position(FeatureKey::of(n))).collect();
    let mut sums = Vec::new();
    let best = KBest::new(forest, &scores, true).limit(STEPS);
    let whole = |d: Derivation| {
        forest.sum_features(&d.edges, &mut sums);
        Translation {
            text: forest.text(&d.words),
            score: d.score,
            features: places.iter().map(|p| p.map_or(0.0, |p| sums[p])).collect(),
        }
    };
    best.take(k).map(whole).collect()
}

/// A text as it can stand in a list: bars would end it there.
pub fn for_lists(text: &str) -> String {
    text.replace("|||", "&#124;&#124;&#124;")
}

/// A model that translates the same sentences again and again, under new weights.
pub struct InProcess {
    model: Model,
    sentences: Vec<String>,
    limits: Limits,
    k: usize,
    metric: Metric,
    references: Vec<Prepared>,
}

impl InProcess {
    /// `k` candidates for each sentence, judged by references.
    pub fn new(
        model: Model,
        sentences: Vec<String>,
        limits: Limits,
        k: usize,
        metric: &Metric,
        references: &[Vec<String>],
    ) -> Self {
        let mut scratch = Scratch::default();
        let prepare = |r: &Vec<String>| {
            let texts: Vec<&str> = r.iter().map(String::as_str).collect();
            metric.prepare(&texts, &mut scratch)
        };
        let references = references.iter().map(prepare).collect();
        InProcess { model, sentences, limits, k, metric: metric.clone(), references }
    }

    /// Names of the model's features.
    pub fn names(&self) -> &[String] {
        self.model.names()
    }
}

impl Source for InProcess {
    fn segments(&self) -> u32 {
        self.sentences.len() as u32
    }

    fn candidates(&self, batch: &[SegmentId], weights: &Weights, _: Goal) -> Result<Evidence> {
        let decoder = Decoder::new(&self.model, weights, self.limits);
        let keys: Vec<FeatureKey> = self.model.names().iter().map(|n| FeatureKey::of(n)).collect();
        let columns = &Arc::new(Local::new(keys.clone()));
        let lists = batch.par_iter().map_init(Scratch::default, |scratch, segment| {
            let at = segment.0 as usize;
            let mut found = translations(&decoder, &decoder.search(&self.sentences[at]).forest(), self.k);
            for t in &mut found {
                t.text = for_lists(&t.text);
            }
            let features: Vec<Vec<(FeatureKey, f64)>> = found
                .iter()
                .map(|t| keys.iter().copied().zip(t.features.iter().copied()).collect())
                .collect();
            let candidates = found.iter().zip(&features).map(|(t, features)| Candidate {
                text: &t.text,
                features,
                columns: &[],
            });
            let mut list = List::new(columns, candidates, true);
            list.judge(&self.metric, &self.references[at], scratch);
            Arc::new(list)
        });
        Ok(Evidence::Lists(lists.collect()))
    }

    fn name(&self, key: FeatureKey) -> String {
        self.model.name_of(key).unwrap_or_default().to_owned()
    }

    fn is_fixed(&self) -> bool {
        false
    }
}
