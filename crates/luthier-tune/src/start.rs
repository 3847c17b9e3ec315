//! Standardised features, and initial weights from fixed lists where none are given.

use crate::{Candidates, candidates::argmax};
use luthier_core::{Error, FeatureKey, Result, Weights};
use luthier_metric::{Metric, add};
use rayon::prelude::*;
use std::{collections::BTreeMap, sync::Arc};

/// Returns the spread of each dense feature: its standard deviation within lists, over all candidates. A feature with
/// spread 0 has no influence on the choice of candidates.
pub(crate) fn spreads(lists: &[Arc<Candidates>]) -> Vec<f64> {
    let columns = lists.first().map_or(0, |l| l.columns.keys().len());
    let candidates = lists.iter().map(|l| l.k).sum::<usize>().max(1) as f64;
    let squares = |list: &Arc<Candidates>, c: usize| {
        let column = list.column(c);
        let first = column.first().copied().unwrap_or(0.0);
        // Differences from the first candidate are 0 for a constant feature, whatever its value.
        let mean = column.iter().map(|x| x - first).sum::<f64>() / column.len().max(1) as f64;
        column.iter().map(|x| (x - first - mean) * (x - first - mean)).sum::<f64>()
    };
    let of = |c: usize| (lists.iter().map(|l| squares(l, c)).sum::<f64>() / candidates).sqrt();
    (0..columns).into_par_iter().map(of).collect()
}

/// Smallest spread by which a feature is divided.
const FLOOR: f64 = 1e-8;

/// Returns the spread of each dense feature over lists with at least two candidates, for standardising, at least 10⁻⁸; 1 for
/// features that do not vary.
pub(crate) fn standard_spread(lists: &[Arc<Candidates>]) -> BTreeMap<FeatureKey, f64> {
    let several: Vec<Arc<Candidates>> = lists.iter().filter(|l| l.k > 1).cloned().collect();
    let keys = several.first().map_or(&[][..], |l| l.columns.keys());
    let floored = |s: f64| if s > 0.0 { s.max(FLOOR) } else { 1.0 };
    keys.iter().copied().zip(spreads(&several).into_iter().map(floored)).collect()
}

/// Returns the corpus score of the candidates with the highest values of `model`, one per segment.
fn score(lists: &[Arc<Candidates>], metric: &Metric, mut model: impl FnMut(&Candidates, &mut [f64])) -> f64 {
    let mut totals = vec![0.0; metric.width()];
    let mut scores = Vec::new();
    for list in lists.iter().filter(|l| l.k > 0) {
        scores.clear();
        scores.resize(list.k, 0.0);
        model(list, &mut scores);
        add(&mut totals, list.stats_of(list.class[argmax(&scores)]));
    }
    metric.score(&totals)
}

/// Returns the best of 2D + 1 weight vectors for D dense features: each feature alone with either sign, in units of its
/// spread, and the mean of all features with their better signs. Features that do not vary get weight 0. `None` if no
/// feature varies.
pub(crate) fn signed_start(lists: &[Arc<Candidates>], metric: &Metric, spread: &[f64]) -> Option<Vec<f64>> {
    let alone = |c: usize, sign: f64| {
        score(lists, metric, |list, out| out.iter_mut().zip(list.column(c)).for_each(|(s, x)| *s = sign * x))
    };
    let free: Vec<usize> = (0..spread.len()).filter(|&c| spread[c] > 0.0).collect();
    let signs: Vec<(f64, f64)> = free
        .par_iter()
        .map(|&c| {
            let (up, down) = (alone(c, 1.0), alone(c, -1.0));
            if down > up { (down, -1.0) } else { (up, 1.0) }
        })
        .collect();
    let mut sum = vec![0.0; spread.len()];
    let share = 1.0 / free.len().max(1) as f64;
    free.iter().zip(&signs).for_each(|(&c, s)| sum[c] = share * s.1 / spread[c]);
    let together = score(lists, metric, |list, out| {
        for &c in &free {
            out.iter_mut().zip(list.column(c)).for_each(|(s, x)| *s += sum[c] * x);
        }
    });
    let mut best: Option<usize> = None;
    for i in 0..free.len() {
        if best.is_none_or(|b| signs[i].0 > signs[b].0) {
            best = Some(i);
        }
    }
    let best = best?;
    if signs[best].0 > together {
        let c = free[best];
        sum.fill(0.0);
        sum[c] = signs[best].1 / spread[c];
    }
    Some(sum)
}

/// Returns initial weights for fixed lists where none are given: the best of each dense feature alone, with either sign,
/// and of the mean of all with their better signs, in units of their spread within lists. `name` returns the name of a
/// feature. Fails if no feature varies within a list.
pub(crate) fn initial_weights(
    lists: &[Arc<Candidates>],
    metric: &Metric,
    name: &dyn Fn(FeatureKey) -> String,
) -> Result<Weights> {
    let spread = spreads(lists);
    let sparse = lists.iter().any(|l| !l.ids.is_empty());
    let mut weights = Weights::default();
    match signed_start(lists, metric, &spread) {
        Some(point) => {
            weights.commit(&lists[0].columns, name)?;
            weights.set(&lists[0].columns, &point);
        }
        None if sparse => {}
        None => {
            return Err(Error::new("no feature varies within a list, so that there is nothing to tune")
                .hint("every candidate needs scores of its own"));
        }
    }
    Ok(weights)
}
