//! Hope and fear in forests.

use super::{HopeFear, MUCH_MORE, Pass};
use crate::{ForestPool, State, forest_oracle::Aim, forest_pool::Places, learner::Note};
use luthier_core::{Progress, Result};
use luthier_metric::{Bleu, Scratch};

/// Ways to make a node that are looked at in the search for hope and fear.
const POP: usize = 30;

impl HopeFear {
    /// Hope and fear are looked for in the last forest of each segment; BLEU's counts are not clipped on the way, but those of
    /// what is found are.
    pub(super) fn learn_forests(
        &self,
        pool: &ForestPool,
        state: &mut State,
        progress: Progress<'_>,
    ) -> Result<Note> {
        let Some(bleu) = self.metric.as_bleu() else {
            return Ok(Some(
                "hope and fear are looked for in forests by BLEU only: nothing was learned".to_owned(),
            ));
        };
        let ground = Ground::new(pool, bleu, state);
        let some = |s: &u32| pool.segments[*s as usize].forests.last().is_some_and(|f| !f.is_empty());
        let order = (0..pool.segments.len() as u32).filter(some).collect();
        let score =
            |w: &[f64]| self.metric.score(&pool.totals(&self.metric, |s, _| ground.places[s].weights(w)));
        self.climb(state, order, &|s, pass| ground.visit(s, pass), &score, progress)?;
        Ok(None)
    }
}

/// Forests with the places of their features.
struct Ground<'a> {
    pool: &'a ForestPool,
    bleu: &'a Bleu,
    places: Vec<Places>,
}

impl<'a> Ground<'a> {
    fn new(pool: &'a ForestPool, bleu: &'a Bleu, state: &State) -> Self {
        let places = pool.segments.iter().map(|segment| match segment.forests.last() {
            Some(forest) => pool.places(forest, &state.weights),
            None => Places::default(),
        });
        Ground { pool, bleu, places: places.collect() }
    }

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
            let scale = MUCH_MORE * gain(&hoped).abs() / score.abs();
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
        let mut shown = hoped;
        if pass.settings.model_background {
            let mut words = Vec::new();
            forest.best_words(&forest.scores(&local), &mut words);
            shown = judge(&words);
        }
        pass.remember(&shown);
    }
}
