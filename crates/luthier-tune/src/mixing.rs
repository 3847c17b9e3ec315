//! Mixing of the weights of shards (`McDonald` et al. 2010; Watanabe 2012, Algorithm 3): w ← (1 − ρ)w +
//! ρ·mean, ρ = 1 or by an exact line search on the lists of the epoch within [−1, 2].

use crate::{
    Fleet, Mixing, State,
    candidates::{Candidates, argmax},
    fleet::{own, share},
    line::{Sweep, Track},
    mert::Smoothing,
};
use luthier_core::{FeatureKey, Result, Weights};
use luthier_metric::{Metric, add};
use luthier_optim::Envelope;
use serde::{Deserialize, Serialize};
use std::{ops::Range, sync::Arc};

/// How far to either side of the last weights mixing may go, in steps to the mean.
const WITHIN: (f64, f64) = (-1.0, 2.0);

/// What a shard has learned, told by what is not as it was when it began.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Moved {
    /// Places of weights that have changed, in order.
    places: Vec<u32>,
    values: Vec<f64>,
    /// Their means over visits; nothing if nobody asks for them.
    visited: Vec<f64>,
    /// New features.
    new: Vec<New>,
}

/// A new feature: its name, its weight, and the mean of that over visits.
type New = (String, f64, f64);

impl Moved {
    /// From the weights that a shard began with to what it has come to. With `averages`, means over visits are told, too.
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

    /// A part for each of some processes: that of its places, and of new features by their keys.
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

/// Means over shards, by place in weights that know the features of all of them. Shards began with the same features.
pub(crate) struct Mean {
    pub(crate) weights: Weights,
    /// Of the means over the visits of each shard, if they were asked for.
    pub(crate) visited: Vec<f64>,
}

/// Sums over shards: of weights at some places, of their means over visits, and of new features in the order of their keys.
type Sums = (Vec<f64>, Vec<f64>, Vec<(FeatureKey, New)>);

/// Adds up what shards say about some places, in the order of the shards.
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
            known.place(key, &feature.0)?; // two names with one key are found here
            new.push((key, feature.clone()));
        }
    }
    // Stable: equal features stay in the order of their shards.
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

/// The mean of the shards, added up in their order; `moved` are those of this process. Each process adds up a part of all
/// places, so that none has to hold what all shards have learned. New features come in the order of their keys.
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

/// What lists say about the line from the last weights to the mean: the best candidates' summed statistics at both, and how
/// they change in between and beyond.
type Along = (Vec<f64>, Vec<f64>, Vec<Track>);

/// The weights to go on with, and ρ. `lists` are those of the epoch, by shard, for line search; each process has those of its
/// own shards.
pub(crate) fn mix(
    mixing: Mixing,
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
    let within = (WITHIN.0 - 1.0, WITHIN.1 - 1.0);
    let peak = sweep.peak(metric, &stats, here, Smoothing::NONE, within);
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

fn scores(list: &Candidates, weights: &Weights) -> Vec<f64> {
    let mut dense = Vec::new();
    weights.gather(&list.columns, &mut dense);
    let mut scores = vec![0.0; list.k];
    list.scores(&dense, weights, &mut scores);
    scores
}

/// Statistics of the candidate with the highest score.
fn best(list: &Candidates, scores: &[f64]) -> Vec<f64> {
    if scores.is_empty() {
        return Vec::new();
    }
    list.stats_of(list.class[argmax(scores)]).iter().map(|&x| f64::from(x)).collect()
}

#[cfg(test)]
mod tests;
