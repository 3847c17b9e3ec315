//! From the weights of shards to one.

use crate::{
    Fleet, Mixing, Smoothing, State,
    line::{Sweep, Track},
    list::{List, argmax},
};
use luthier_core::{FeatureKey, Result, Weights};
use luthier_metric::Metric;
use luthier_optim::Envelope;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How far to either side of the last weights mixing may go, in steps to the mean.
const WITHIN: (f64, f64) = (-1.0, 2.0);

/// What a shard has learned, told by what is not as it was when it began.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Moved {
    /// Weights that have changed, by place.
    values: Vec<(u32, f64)>,
    /// New features, whose places follow the old ones.
    new: Vec<(String, f64)>,
    /// What the mean over visits lags behind, by place, where it is not 0.
    lag: Vec<(u32, f64)>,
    visits: u64,
}

impl Moved {
    /// From the weights that a shard began with to what it has come to.
    pub(crate) fn new(start: &Weights, shard: &State) -> Self {
        let n = start.len();
        let pairs = start.values().iter().zip(shard.weights.values()).zip(0..);
        let changed = pairs.filter(|((old, new), _)| old.to_bits() != new.to_bits());
        let lag = shard.online.lag.iter().zip(0..).filter(|(lag, _)| **lag != 0.0);
        Moved {
            values: changed.map(|((_, new), place)| (place, *new)).collect(),
            new: shard.weights.iter().skip(n).map(|(name, w)| (name.to_owned(), w)).collect(),
            lag: lag.map(|(lag, place)| (place, *lag)).collect(),
            visits: shard.online.visits,
        }
    }

    /// All values of the shard's weights, and their lags.
    fn unfold(&self, start: &Weights) -> (Vec<f64>, Vec<f64>) {
        let mut values = start.values().to_vec();
        values.extend(self.new.iter().map(|n| n.1));
        for &(place, w) in &self.values {
            values[place as usize] = w;
        }
        let mut lags = vec![0.0; values.len()];
        for &(place, lag) in &self.lag {
            lags[place as usize] = lag;
        }
        (values, lags)
    }
}

/// Means over shards, by place in weights that know the features of all of them. Shards began with the same features.
pub(crate) struct Mean {
    pub(crate) weights: Weights,
    /// Of the means over the visits of each shard.
    pub(crate) visited: Vec<f64>,
}

/// The mean of the shards, added up in their order.
pub(crate) fn mean(start: &Weights, shards: &[Moved]) -> Result<Mean> {
    let mut weights = start.clone();
    let places: Vec<Vec<u32>> = shards
        .iter()
        .map(|shard| {
            let place = |(name, _): &(String, f64)| weights.place(FeatureKey::of(name), name);
            (0..start.len() as u32).map(Ok).chain(shard.new.iter().map(place)).collect()
        })
        .collect::<Result<_>>()?;
    let mut values = vec![0.0; weights.len()];
    let mut visited = vec![0.0; weights.len()];
    for (shard, places) in shards.iter().zip(&places) {
        let visits = shard.visits.max(1) as f64;
        let (own, lags) = shard.unfold(start);
        for ((&place, w), lag) in places.iter().zip(own).zip(lags) {
            values[place as usize] += w;
            visited[place as usize] += w - lag / visits;
        }
    }
    let n = shards.len().max(1) as f64;
    for v in values.iter_mut().chain(&mut visited) {
        *v /= n;
    }
    weights.replace(&values);
    Ok(Mean { weights, visited })
}

/// What lists say about the line from the last weights to the mean: the best candidates' summed statistics at both, and how
/// they change in between and beyond.
type Along = (Vec<f64>, Vec<f64>, Vec<Track>);

/// The weights to go on with, and ρ. `lists` are those of the epoch, by shard, for line search; each process has those of its
/// own shards.
pub(crate) fn mix(
    mixing: Mixing,
    start: &Weights,
    mean: &Weights,
    lists: &[Vec<Arc<List>>],
    metric: &Metric,
    fleet: Fleet<'_>,
) -> Result<(Weights, f64)> {
    let begun = start.values().iter().any(|w| *w != 0.0);
    if mixing == Mixing::Average || !begun {
        return Ok((mean.clone(), 1.0));
    }
    let add = |totals: &mut Vec<f64>, more: &[f64]| totals.iter_mut().zip(more).for_each(|(t, x)| *t += x);
    let none = || vec![0.0; metric.width()];
    let shards = lists.len() as u32;
    let parts: Vec<Along> = fleet.map(shards, |s| {
        let mut envelope = Envelope::default();
        let (mut before, mut now, mut tracks) = (none(), none(), Vec::new());
        for list in &lists[s.0 as usize] {
            let (old, new) = (scores(list, start), scores(list, mean));
            add(&mut before, &best(list, &old));
            add(&mut now, &best(list, &new));
            let slopes: Vec<f64> = new.iter().zip(&old).map(|(n, b)| n - b).collect();
            tracks.extend(Track::new(list, &new, &slopes, &mut envelope));
        }
        Ok((before, now, tracks))
    })?;
    let (mut old, mut here, mut tracks) = (none(), none(), Vec::new());
    for (before, now, some) in parts {
        add(&mut old, &before);
        add(&mut here, &now);
        tracks.extend(some);
    }
    if tracks.is_empty() {
        return Ok((mean.clone(), 1.0));
    }
    let (old, here) = (metric.score(&old), metric.score(&here));
    let mut sweep = Sweep::default();
    let stats = sweep.follow(metric.width(), &tracks);
    let within = (WITHIN.0 - 1.0, WITHIN.1 - 1.0);
    let peak = sweep.peak(metric, &stats, here, Smoothing::None, within);
    if peak.gain <= 0.0 {
        return Ok((mean.clone(), 1.0));
    }
    let at = |rho: f64| {
        let old = |place: usize| start.values().get(place).copied().unwrap_or(0.0);
        let mixed = mean.values().iter().enumerate().map(|(p, m)| (1.0 - rho) * old(p) + rho * m);
        mean.with_values(mixed.collect())
    };
    // Rounding may tell lines apart at a point that met in the envelope: what counts is the score of the weights themselves.
    let rho = 1.0 + peak.step;
    let mixed = at(rho);
    let parts = fleet.map(shards, |s| {
        let mut totals = none();
        for list in &lists[s.0 as usize] {
            add(&mut totals, &best(list, &scores(list, &mixed)));
        }
        Ok(totals)
    })?;
    let mut reached = none();
    for part in parts {
        add(&mut reached, &part);
    }
    let reached = metric.score(&reached);
    Ok(if reached >= here && reached >= old {
        (mixed, rho)
    } else if old > here {
        (at(0.0), 0.0)
    } else {
        (mean.clone(), 1.0)
    })
}

fn scores(list: &List, weights: &Weights) -> Vec<f64> {
    let mut dense = Vec::new();
    weights.gather(&list.columns, &mut dense);
    let mut scores = vec![0.0; list.k];
    list.scores(&dense, weights, &mut scores);
    scores
}

/// Statistics of the candidate with the highest score.
fn best(list: &List, scores: &[f64]) -> Vec<f64> {
    if scores.is_empty() {
        return Vec::new();
    }
    list.stats_of(list.class[argmax(scores)]).iter().map(|&x| f64::from(x)).collect()
}

#[cfg(test)]
mod tests;
