//! Mixing of the weights of shards (`McDonald` et al. 2010; Watanabe 2012, §4.2, Algorithm 3).
//!
//! With w^t the weights before epoch t and w^{t+½} = 1/S Σₛ w^{t+1,s} the mean over S shards (line 5), the new
//! weights are (1 − ρ)w^t + ρ·w^{t+½} (line 6). ρ is 1, or maximises the corpus score on the n-best lists of
//! the epoch by one exact line search within given bounds; it is 1 if w^t = 0 or if the mean lies in the best
//! interval. Each process averages a part of the weights; the result does not depend on the number of
//! processes.

use crate::{
    Fleet, Mixing, State,
    candidates::{Candidates, argmax},
    fleet::{own, share},
    line::{Stats, Sweep, Track},
    mert::Smoothing,
};
use luthier_core::{FeatureKey, Result, Weights};
use luthier_metric::{Metric, add};
use luthier_optim::Envelope;
use serde::{Deserialize, Serialize};
use std::{ops::Range, sync::Arc};

/// Lower bound of ρ in online learning: 0 is the previous weights, 1 the mean of the shards.
pub(crate) const MIN_RHO: f64 = -1.0;

/// What a shard has learned in an epoch, as differences from the weights that it started with.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Moved {
    /// Positions of weights that have changed, ascending.
    places: Vec<u32>,
    /// New values of these weights.
    values: Vec<f64>,
    /// Means of these weights over visits; empty unless the learner averages.
    visited: Vec<f64>,
    /// Features that the start did not have.
    new: Vec<New>,
}

/// A new feature: name, weight, and mean of the weight over visits.
type New = (String, f64, f64);

impl Moved {
    /// Compares the state of a shard with the weights that it started with; with `averages`, means over visits
    /// are recorded too.
    pub(crate) fn new(start: &Weights, shard: &State, averages: bool) -> Self {
        let visits = shard.pass.visits.max(1) as f64;
        let lag = |place: usize| shard.pass.lag.get(place).copied().unwrap_or(0.0);
        let mut moved = Moved::default();
        let weights = shard.weights.iter().enumerate();
        for (place, (name, w)) in weights {
            let visited = w - lag(place) / visits;
            match start.values().get(place) {
                None => moved.new.push((name.to_owned(), w, visited)),
                Some(old)
                    if old.to_bits() == w.to_bits() && (!averages || visited.to_bits() == w.to_bits()) => {}
                Some(_) => {
                    moved.places.push(place as u32);
                    moved.values.push(w);
                    if averages {
                        moved.visited.push(visited);
                    }
                }
            }
        }
        moved
    }

    /// Splits the differences among processes: by position for `n` known features, by key for new ones.
    fn split(&self, n: usize, processes: u32) -> Vec<Moved> {
        let mut parts: Vec<Moved> = (0..processes)
            .map(|p| {
                let cut = |p: u32| self.places.partition_point(|&at| (at as usize) < share(n, p, processes));
                let range = cut(p)..cut(p + 1);
                Moved {
                    places: self.places[range.clone()].to_vec(),
                    values: self.values[range.clone()].to_vec(),
                    visited: self.visited.get(range).unwrap_or_default().to_vec(),
                    new: Vec::new(),
                }
            })
            .collect();
        for new in &self.new {
            parts[(FeatureKey::of(&new.0).0 % u64::from(processes)) as usize].new.push(new.clone());
        }
        parts
    }
}

/// Means over shards, which started with the same features.
pub(crate) struct Mean {
    /// Mean weights, with the features of all shards.
    pub(crate) weights: Weights,
    /// Mean over shards of the means over visits, by position in `weights`.
    pub(crate) visited: Vec<f64>,
}

/// Sums over shards: of weights at a range of positions, of their means over visits, and of new features in
/// order of key.
type Sums = (Vec<f64>, Vec<f64>, Vec<(FeatureKey, New)>);

/// Sums the weights of shards over a range of positions, in the order of the shards. Fails if two names of new
/// features share one key.
fn add_up(start: &Weights, places: Range<usize>, shards: &[Moved]) -> Result<Sums> {
    let old = &start.values()[places.clone()];
    let (mut values, mut visited) = (vec![0.0; old.len()], vec![0.0; old.len()]);
    let mut new: Vec<(FeatureKey, New)> = Vec::new();
    let mut known = Weights::default();
    for shard in shards {
        let mut at = 0;
        for ((i, &w), place) in old.iter().enumerate().zip(places.clone()) {
            if shard.places.get(at).is_some_and(|p| *p as usize == place) {
                values[i] += shard.values[at];
                visited[i] += shard.visited.get(at).copied().unwrap_or(w);
                at += 1;
            } else {
                values[i] += w;
                visited[i] += w;
            }
        }
        for feature in &shard.new {
            let key = FeatureKey::of(&feature.0);
            known.place(key, &feature.0)?; // fails if two names share one key
            new.push((key, feature.clone()));
        }
    }
    // A stable sort keeps equal features in the order of their shards.
    new.sort_by_key(|f| f.0);
    new.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1.1 += next.1.1;
            kept.1.2 += next.1.2;
        }
        same
    });
    Ok((values, visited, new))
}

/// Returns the mean of the shards' weights, summed in the order of the shards; `moved` holds those of this
/// process. Each process sums a range of positions, so that none holds the weights of all shards. New features
/// are appended in order of key. Fails on every process if two names share one key.
pub(crate) fn mean(start: &Weights, moved: &[Moved], fleet: Fleet<'_>) -> Result<Mean> {
    let processes = fleet.0.size();
    let mut parts: Vec<Vec<Moved>> = vec![Vec::new(); processes as usize];
    for shard in moved {
        for (part, to) in shard.split(start.len(), processes).into_iter().zip(&mut parts) {
            to.push(part);
        }
    }
    let shards: Vec<Moved> = fleet.exchange(parts)?.into_iter().flatten().collect();
    let mine = add_up(start, own(fleet, start.len()), &shards);
    let (mut values, mut visited, mut new) = (Vec::new(), Vec::new(), Vec::new());
    for part in fleet.gather(mine)? {
        values.extend(part.0);
        visited.extend(part.1);
        new.extend(part.2);
    }
    new.sort_by_key(|f| f.0);
    let mut weights = start.clone();
    for (key, (name, w, v)) in new {
        weights.place(key, &name).map_err(|e| fleet.known_to_all(e))?;
        values.push(w);
        visited.push(v);
    }
    let n = shards.len().max(1) as f64;
    for v in values.iter_mut().chain(&mut visited) {
        *v /= n;
    }
    weights.replace(&values);
    Ok(Mean { weights, visited })
}

/// Results of a shard's lists on the line through previous and mean weights: summed statistics of the best
/// candidates at the previous weights and at the mean, and their changes along the line.
type Along = (Vec<f64>, Vec<f64>, Vec<Track>);

/// Returns the mixed weights (1 − ρ)·`start` + ρ·`mean`, and ρ, which lies between `within`. `lists` are the n-best
/// lists of the epoch, by shard, for the line search; each process holds those of its own shards.
pub(crate) fn mix(
    (mixing, within): (Mixing, (f64, f64)),
    start: &Weights,
    mean: &Weights,
    lists: &[Vec<Arc<Candidates>>],
    metric: &Metric,
    fleet: Fleet<'_>,
) -> Result<(Weights, f64)> {
    let begun = start.values().iter().any(|w| *w != 0.0);
    if mixing == Mixing::Average || !begun {
        return Ok((mean.clone(), 1.0));
    }
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
    let within = (within.0 - 1.0, within.1 - 1.0);
    let peak = sweep.peak(metric, Stats::Table(&stats), here, Smoothing::NONE, within);
    if peak.gain <= 0.0 {
        return Ok((mean.clone(), 1.0));
    }
    let at = |rho: f64| {
        let old = |place: usize| start.values().get(place).copied().unwrap_or(0.0);
        let mixed = mean.values().iter().enumerate().map(|(p, m)| (1.0 - rho) * old(p) + rho * m);
        mean.with_values(mixed.collect())
    };
    // Rounding can separate lines that meet in the envelope, so the mixed weights are scored again.
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

/// Returns the model scores of a list's candidates.
fn scores(list: &Candidates, weights: &Weights) -> Vec<f64> {
    let mut dense = Vec::new();
    weights.gather(&list.columns, &mut dense);
    let mut scores = vec![0.0; list.k];
    list.scores(&dense, weights, &mut scores);
    scores
}

/// Returns the statistics of the candidate with the highest score; empty for an empty list.
fn best(list: &Candidates, scores: &[f64]) -> Vec<f64> {
    if scores.is_empty() {
        return Vec::new();
    }
    list.stats_of(list.class[argmax(scores)]).iter().map(|&x| f64::from(x)).collect()
}

#[cfg(test)]
mod tests;
