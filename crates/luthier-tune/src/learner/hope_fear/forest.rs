//! Hope and fear in forests: MIRA as over n-best lists, with both searched among all derivations by cube pruning.

use super::{HopeFear, Pass, SAFE_HOPE_RATIO};
use crate::{ForestPool, State, forest_oracle::Aim, forest_pool::Places, learner::Note};
use luthier_core::{Progress, Result};
use luthier_metric::{Bleu, Scratch};

/// Pop limit of cube pruning per node in the search for hope and fear.
const POP: usize = 30;

impl HopeFear {
    /// Learns from the last forest of each segment. The search for hope and fear counts n-gram matches without
    /// clipping; the translations found are then scored with clipped counts. Returns a note, and learns
    /// nothing, unless the metric is BLEU.
    pub(super) fn learn_forests(
        &self,
        pool: &ForestPool,
        state: &mut State,
        progress: Progress<'_>,
    ) -> Result<Note> {
        let Some(bleu) = self.metric.as_bleu() else {
            return Ok(Some("MIRA on forests works only with BLEU; nothing was learned".to_owned()));
        };
        let forests = IndexedForests::new(pool, bleu, state);
        let some = |s: &u32| pool.segments[*s as usize].forests.last().is_some_and(|f| !f.is_empty());
        let order = (0..pool.segments.len() as u32).filter(some).collect();
        let score =
            |w: &[f64]| self.metric.score(&pool.totals(&self.metric, |s, _| forests.places[s].weights(w)));
        self.run_epochs(state, order, &|s, pass| forests.visit(s, pass), &score, progress)?;
        Ok(None)
    }
}

/// Forests with the positions of their features in the weights.
struct IndexedForests<'a> {
    pool: &'a ForestPool,
    bleu: &'a Bleu,
    places: Vec<Places>,
}

impl<'a> IndexedForests<'a> {
    fn new(pool: &'a ForestPool, bleu: &'a Bleu, state: &State) -> Self {
        let places = pool.segments.iter().map(|segment| match segment.forests.last() {
            Some(forest) => pool.places(forest, &state.weights),
            None => Places::default(),
        });
        IndexedForests { pool, bleu, places: places.collect() }
    }

    /// Visits segment `s`: searches hope and fear, updates the weights if the loss is positive, and adds a
    /// candidate to the pseudo-document.
    fn visit(&self, s: usize, pass: &mut Pass<'_>) {
        let segment = &self.pool.segments[s];
        let Some(forest) = segment.forests.last() else { return };
        let metric = &pass.settings.metric;
        let local = self.places[s].weights(&pass.w);
        let background = pass.background.clone();
        let gain = |stats: &[f32]| {
            let total: Vec<f64> = background.iter().zip(stats).map(|(b, &x)| b + f64::from(x)).collect();
            metric.sized_score(&total)
        };
        let loss = |stats: &[f32]| -gain(stats);
        let mut scratch = Scratch::default();
        let mut judge = |words: &[u32]| {
            let mut stats = vec![0.0; metric.width()];
            segment.judge(metric, &forest.text(words), &mut scratch, &mut stats);
            stats
        };
        let find = |worth: &(dyn Fn(&[f32]) -> f64 + Sync), local: &[f64]| {
            Aim::new(forest, self.bleu, &segment.references, worth).best(forest, local, 1, POP).pop()
        };
        let model = |features: &[f64]| -> f64 { features.iter().zip(&local).map(|(x, w)| x * w).sum() };
        let (Some(mut hope), Some(fear)) = (find(&gain, &local), find(&loss, &local)) else { return };
        let mut hoped = judge(&hope.words);
        let score = model(&hope.features);
        if pass.settings.safe_hope && score.abs() > 1e-8 {
            let scale = SAFE_HOPE_RATIO * gain(&hoped).abs() / score.abs();
            let scaled: Vec<f64> = local.iter().map(|w| scale * w).collect();
            if let Some(other) = (scale < 1.0).then(|| find(&gain, &scaled)).flatten() {
                hoped = judge(&other.words);
                hope = other;
            }
        }
        let feared = judge(&fear.words);
        let better = gain(&hoped) - gain(&feared);
        if better <= 0.0 {
            return;
        }
        let lost = better - (model(&hope.features) - model(&fear.features));
        if lost > 0.0 {
            let difference: Vec<f64> = hope.features.iter().zip(&fear.features).map(|(h, f)| h - f).collect();
            pass.difference.clear();
            pass.difference.extend(self.places[s].learned(&difference).filter(|d| d.1 != 0.0));
            pass.step(lost);
        }
        let mut added = hoped;
        if pass.settings.model_background {
            let mut words = Vec::new();
            forest.best_words(&forest.scores(&local), &mut words);
            added = judge(&words);
        }
        pass.remember(&added);
    }
}
