//! From the weights of shards to one.

use crate::{Mixing, State, line::ListWalker, list::List};
use luthier_core::{FeatureKey, Result, Weights};
use luthier_metric::Metric;
use luthier_optim::{Direction, Walker};
use std::sync::Arc;

/// How far to either side of the last weights mixing may go, in steps to the mean.
const WITHIN: (f64, f64) = (-1.0, 2.0);

/// Means over shards, by place in weights that know the features of all of them. Shards began with the same features.
pub(crate) struct Mean {
    pub(crate) weights: Weights,
    /// Of the means over the visits of each shard.
    pub(crate) visited: Vec<f64>,
}

/// The mean of the shards, added up in their order.
pub(crate) fn mean(start: &Weights, shards: &[State]) -> Result<Mean> {
    let mut weights = start.clone();
    let places: Vec<Vec<u32>> = shards
        .iter()
        .map(|shard| {
            let new = shard.weights.iter().skip(start.len());
            let place = |(name, _): (&str, f64)| weights.place(FeatureKey::of(name), name);
            (0..start.len() as u32).map(Ok).chain(new.map(place)).collect()
        })
        .collect::<Result<_>>()?;
    let mut values = vec![0.0; weights.len()];
    let mut visited = vec![0.0; weights.len()];
    for (shard, places) in shards.iter().zip(&places) {
        let visits = shard.online.visits.max(1) as f64;
        for (i, (&place, w)) in places.iter().zip(shard.weights.values()).enumerate() {
            values[place as usize] += w;
            visited[place as usize] += w - shard.online.lag.get(i).copied().unwrap_or(0.0) / visits;
        }
    }
    let n = shards.len().max(1) as f64;
    for v in values.iter_mut().chain(&mut visited) {
        *v /= n;
    }
    weights.replace(&values);
    Ok(Mean { weights, visited })
}

/// The weights to go on with, and ρ. `lists` are those of the epoch, for line search.
pub(crate) fn mix(
    mixing: Mixing,
    start: &Weights,
    mean: &Weights,
    lists: &[Arc<List>],
    metric: &Metric,
) -> (Weights, f64) {
    let begun = start.values().iter().any(|w| *w != 0.0);
    if mixing == Mixing::Average || !begun || lists.is_empty() {
        return (mean.clone(), 1.0);
    }
    let scores = |weights: &Weights| -> Vec<f64> {
        let mut dense = Vec::new();
        let mut all = Vec::with_capacity(lists.iter().map(|l| l.k).sum());
        for list in lists {
            weights.gather(&list.columns, &mut dense);
            let mut some = vec![0.0; list.k];
            list.scores(&dense, weights, &mut some);
            all.extend(some);
        }
        all
    };
    let (before, now) = (scores(start), scores(mean));
    let slopes: Vec<f64> = now.iter().zip(&before).map(|(n, b)| n - b).collect();
    let mut walker = ListWalker::between(lists, metric, now, slopes);
    let within = (WITHIN.0 - 1.0, WITHIN.1 - 1.0);
    let here = walker.score();
    let peak = walker.peak(Direction::Axis(0), within);
    let at = |rho: f64| {
        let old = |place: usize| start.values().get(place).copied().unwrap_or(0.0);
        let mixed = mean.values().iter().enumerate().map(|(p, m)| (1.0 - rho) * old(p) + rho * m);
        mean.with_values(mixed.collect())
    };
    if peak.gain <= 0.0 {
        return (mean.clone(), 1.0);
    }
    // Rounding may tell lines apart at a point that met in the envelope: what counts is the score of the weights themselves.
    let rho = 1.0 + peak.step;
    let mixed = at(rho);
    let score = |weights: &Weights| {
        let width = lists.iter().map(|l| l.k).sum();
        ListWalker::between(lists, metric, scores(weights), vec![0.0; width]).score()
    };
    let (reached, old) = (score(&mixed), score(start));
    if reached >= here && reached >= old {
        (mixed, rho)
    } else if old > here {
        (at(0.0), 0.0)
    } else {
        (mean.clone(), 1.0)
    }
}

#[cfg(test)]
mod tests;
