//! Averaged perceptron and 1-best MIRA (Collins 2002; Crammer and Singer 2003; Arun and Koehn 2007).
//!
//! A guess is what the model likes best; a surrogate is what it should have liked. The perceptron adds the difference of
//! their features; MIRA adds as much of it as puts the surrogate above the guess by the difference of their sentence
//! scores. Nothing happens where both are the same words.

use super::{Learner, Note};
use crate::{Evidence, Fleet, List, State, list::argmax, pairs::gains_of};
use luthier_core::{FeatureKey, Progress, Result, Weights};
use luthier_metric::{Metric, SentenceSmoothing, add};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What is aimed at where the reference cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Update {
    /// The best of the list and of what was aimed at before.
    Local,
    /// The best of all that can be made, until a guess is better.
    MaxBleu,
}

/// Learning from guess and surrogate.
#[derive(Debug, Clone)]
pub struct OneBest {
    /// What is learned for.
    pub metric: Metric,
    /// How sentence BLEU is smoothed.
    pub plus_one: SentenceSmoothing,
    /// What is aimed at.
    pub update: Update,
    /// Whether steps are weighted by the sentence score of what is aimed at.
    pub weighted: bool,
    /// The largest step of MIRA; none is the perceptron.
    pub passive: Option<f64>,
    /// Whether references that can be made are aimed at.
    pub references: bool,
    /// Whether the answer is the mean over all visits.
    pub average: bool,
}

impl OneBest {
    /// As in the paper: averaged, references where they can be made.
    pub fn new(metric: Metric, update: Update, passive: Option<f64>) -> Self {
        let plus_one = SentenceSmoothing::default();
        OneBest { metric, plus_one, update, weighted: false, passive, references: true, average: true }
    }

    /// What a segment's step aims at.
    fn target(
        &self,
        list: &Arc<List>,
        gain: &[f64],
        scores: &[f64],
        at: usize,
        state: &mut State,
    ) -> Arc<List> {
        let segment = state.batch.segments[at].0;
        if let Some(Some(reference)) = state.batch.references.get(at) {
            return reference.clone();
        }
        let better = |i: usize, j: usize| gain[i] > gain[j] || (gain[i] == gain[j] && scores[i] > scores[j]);
        let kept = state.surrogates.get(&segment);
        let new = match self.update {
            Update::MaxBleu if kept.is_some() => argmax(scores),
            _ => (1..list.k).fold(0, |best, i| if better(i, best) { i } else { best }),
        };
        let known = kept.map(|kept| gains_of(kept, &self.metric, self.plus_one)[0]);
        match (kept, known) {
            (Some(kept), Some(known)) if known >= gain[new] && self.update == Update::MaxBleu => kept.clone(),
            (Some(kept), Some(known)) if known > gain[new] => kept.clone(),
            _ => {
                let new = Arc::new(list.only(new));
                state.surrogates.insert(segment, new.clone());
                new
            }
        }
    }
}

impl Learner for OneBest {
    fn wants_references(&self) -> bool {
        self.references
    }

    fn wants_metric_best(&self) -> bool {
        self.update == Update::MaxBleu
    }

    fn averages(&self) -> bool {
        self.average
    }

    fn learn(&self, evidence: &Evidence, state: &mut State, _: &Fleet<'_>, _: Progress<'_>) -> Result<Note> {
        let lists = evidence.lists();
        let mut dense = Vec::new();
        for (at, list) in lists.iter().enumerate() {
            state.pass.visits += 1;
            if list.k == 0 {
                continue;
            }
            state.weights.gather(&list.columns, &mut dense);
            let mut scores = vec![0.0; list.k];
            list.scores(&dense, &state.weights, &mut scores);
            let gain = gains_of(list, &self.metric, self.plus_one);
            let guess = argmax(&scores);
            let target = self.target(list, &gain, &scores, at, state);
            add(&mut state.pass.aimed, target.stats_of(target.class[0]));
            if target.text(0) == list.text(guess) {
                continue;
            }
            let worth = gains_of(&target, &self.metric, self.plus_one)[0];
            let difference = difference((&target, 0), (list, guess), &mut state.weights)?;
            let weight = if self.weighted { worth } else { 1.0 };
            let step = match self.passive {
                None => weight,
                Some(c) => {
                    let square: f64 = difference.iter().map(|d| d.1 * d.1).sum();
                    let values = state.weights.values();
                    let margin: f64 = difference.iter().map(|&(p, d)| values[p as usize] * d).sum();
                    let loss = (worth - gain[guess]) * weight;
                    if square > 0.0 { ((loss - margin) / square).clamp(0.0, c) } else { 0.0 }
                }
            };
            if step > 0.0 {
                state.step(step, &difference);
            }
        }
        Ok(None)
    }
}

/// Features of one candidate less those of another, by place, which features get here if they have none.
fn difference(
    better: (&List, usize),
    worse: (&List, usize),
    weights: &mut Weights,
) -> Result<Vec<(u32, f64)>> {
    let mut all: Vec<(FeatureKey, f64, Option<&str>)> = Vec::new();
    for ((list, i), sign) in [(better, 1.0), (worse, -1.0)] {
        for (key, value) in list.features(i) {
            let place = if list.names.is_empty() { None } else { list.local.position(key) };
            all.push((key, sign * value, place.map(|p| list.names[p].as_str())));
        }
    }
    all.sort_by_key(|d| d.0);
    all.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
    let mut out = Vec::with_capacity(all.len());
    for (key, value, name) in all.into_iter().filter(|d| d.1 != 0.0) {
        let place = match name {
            Some(name) => Some(weights.place(key, name)?),
            None => weights.position(key).map(|p| p as u32),
        };
        out.extend(place.map(|p| (p, value)));
    }
    // In order of places: growth and sums are then the same wherever the run is gone on with.
    out.sort_unstable_by_key(|d| d.0);
    Ok(out)
}

#[cfg(test)]
mod tests;
