//! The one loop: decode, score, merge, learn, checkpoint, again.

use crate::{
    Evidence, Fleet, Goal, Learner, List, RunDir, Schedule, Source, State, list::argmax, run_dir::Kept,
};
use luthier_core::{Result, SegmentId, Weights, sum};
use luthier_metric::Metric;
use serde::{Deserialize, Serialize};
use std::{ops::Range, sync::Arc, time::Instant};

/// What happened in one iteration. Iteration 0 scores the initial weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Number of the weights that were decoded with.
    pub iteration: u32,
    /// Their score, from the decode that they caused.
    pub score: f64,
    /// Output length over reference length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length_ratio: Option<f64>,
    /// Candidates to learn from.
    pub candidates: usize,
    /// How many of them were new.
    pub new: usize,
    /// Features that are the same for all candidates of each segment: no weight of theirs can matter. Told once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constant: Vec<String>,
    /// A word about the learning that followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Largest change of a weight by the learning that followed, at Σ|w| = 1; none after the last decode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<f64>,
    /// Wall-clock time of decoding and learning.
    pub seconds: f64,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// The lists are fixed: there is one optimisation.
    FixedLists,
    /// A decode brought nothing new.
    NoNewCandidates,
    /// The weights stopped moving.
    Converged,
    /// The limit was reached.
    Iterations,
}

impl Stop {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Stop::FixedLists => "fixed lists: one optimisation",
            Stop::NoNewCandidates => "no new candidates",
            Stop::Converged => "weights no longer change",
            Stop::Iterations => "iteration limit",
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The iteration whose weights are best; the earliest of equals.
    pub iteration: u32,
    /// Their score.
    pub score: f64,
    /// Output length over reference length with them.
    pub length_ratio: Option<f64>,
    /// The score of the initial weights.
    pub initial: f64,
    /// Those weights.
    pub weights: Weights,
    /// Why it ended.
    pub stop: Stop,
}

/// Runs to the end, or goes on from where `dir` stands.
#[allow(clippy::too_many_arguments)]
pub fn run(
    source: &dyn Source,
    learner: &dyn Learner,
    schedule: &Schedule,
    metric: &Metric,
    initial: &Weights,
    dir: &mut RunDir,
    fleet: &Fleet<'_>,
    on_event: &mut dyn FnMut(&Event),
) -> Result<Outcome> {
    if let Some(stop) = dir.stopped() {
        dir.write_best(metric)?;
        return outcome(dir, stop);
    }
    let all: Vec<SegmentId> = (0..source.segments()).map(SegmentId).collect();
    let mut state = match dir.resume()? {
        Some(state) => state,
        None => State { weights: initial.clone(), epoch: 0 },
    };
    let reset = schedule.reset_at.filter(|_| schedule.accumulate && !source.is_fixed());
    let mut pool = dir.saved_lists(metric, reset.filter(|&r| r < state.epoch).unwrap_or(0))?;
    source.go_on(state.epoch, pool.first().map(|l| &l.columns));
    loop {
        let clock = Instant::now();
        if state.epoch == 0 {
            learner.prepare(&mut state.weights);
        }
        let evidence = source.candidates(&all, &state.weights, Goal::Model)?;
        commit(&mut state.weights, &evidence, source)?;
        if state.epoch == 0 {
            learner.prepare(&mut state.weights);
            dir.begin(&state)?;
        }
        let totals = best_totals(&evidence, &state.weights, metric);
        if reset == Some(state.epoch) {
            pool.clear();
        }
        let fresh = absorb(&mut pool, evidence, source.is_fixed() || !schedule.accumulate, state.epoch);
        let candidates = pool.iter().map(|l| l.k).sum();
        let new = fresh.iter().map(ExactSizeIterator::len).sum();
        let stop = stop(source, schedule, &state, dir.last_event(), new);
        let mut event = Event {
            iteration: state.epoch,
            score: metric.score(&totals),
            length_ratio: metric.length_ratio(&totals),
            candidates,
            new,
            constant: if state.epoch == 0 { constant(&pool, &state.weights) } else { Vec::new() },
            note: None,
            change: None,
            seconds: 0.0,
        };
        if stop.is_none() {
            let before = state.weights.clone();
            event.note = learner.learn(&Evidence::Lists(pool.clone()), &mut state, fleet)?;
            if !source.is_fixed() {
                state.weights.blend(schedule.psi, &before);
            }
            state.epoch += 1;
            event.change = Some(state.weights.change(&before));
        }
        event.seconds = clock.elapsed().as_secs_f64();
        on_event(&event);
        let keep = (!source.is_fixed() && schedule.accumulate).then_some(Kept { pool: &pool, fresh: &fresh });
        dir.checkpoint(event, &state, keep)?;
        if let Some(stop) = stop {
            dir.finish(stop, metric)?;
            return outcome(dir, stop);
        }
    }
}

fn stop(
    source: &dyn Source,
    schedule: &Schedule,
    state: &State,
    last: Option<&Event>,
    new: usize,
) -> Option<Stop> {
    let still = last.and_then(|e| e.change).is_some_and(|c| c <= schedule.min_change);
    match state.epoch {
        0 => None,
        _ if source.is_fixed() => Some(Stop::FixedLists),
        _ if new == 0 => Some(Stop::NoNewCandidates),
        _ if still => Some(Stop::Converged),
        n if n >= schedule.iterations => Some(Stop::Iterations),
        _ => None,
    }
}

/// Gives new features a place, in segment order.
fn commit(weights: &mut Weights, evidence: &Evidence, source: &dyn Source) -> Result<()> {
    let Evidence::Lists(lists) = evidence;
    let name = |key| source.name(key);
    if let Some(first) = lists.first() {
        weights.commit(&first.columns, &name)?;
    }
    lists.iter().try_for_each(|list| weights.commit(&list.local, &name))
}

/// Names of dense features that never differ within a list.
fn constant(pool: &[Arc<List>], weights: &Weights) -> Vec<String> {
    let Some(first) = pool.first() else { return Vec::new() };
    let keys = first.columns.keys();
    let same = |c: &usize| pool.iter().all(|l| l.column(*c).windows(2).all(|w| w[0] == w[1]));
    (0..keys.len()).filter(same).filter_map(|c| weights.name(keys[c])).map(str::to_owned).collect()
}

/// Summed statistics of the best candidates under some weights.
fn best_totals(evidence: &Evidence, weights: &Weights, metric: &Metric) -> Vec<f64> {
    let Evidence::Lists(lists) = evidence;
    let mut dense = Vec::new();
    if let Some(first) = lists.first() {
        weights.gather(&first.columns, &mut dense);
    }
    sum::sum(lists.len(), 64, metric.width(), |s, total| {
        let list = &lists[s];
        if list.k == 0 {
            return;
        }
        let mut scores = vec![0.0; list.k];
        list.scores(&dense, weights, &mut scores);
        for (t, x) in total.iter_mut().zip(list.stats_of(list.class[argmax(&scores)])) {
            *t += f64::from(*x);
        }
    })
}

/// Puts evidence into the pool, and says which candidates of each segment are new.
fn absorb(pool: &mut Vec<Arc<List>>, evidence: Evidence, replace: bool, epoch: u32) -> Vec<Range<usize>> {
    let Evidence::Lists(lists) = evidence;
    if replace || pool.is_empty() {
        let known = replace && epoch > 0;
        *pool = lists;
        return pool.iter().map(|l| if known { 0..0 } else { 0..l.k }).collect();
    }
    let merged = pool.iter_mut().zip(&lists).map(|(old, list)| {
        if old.columns != list.columns {
            *old = Arc::new(List::clone(old).widen(&list.columns));
        }
        let before = old.k;
        before..before + Arc::make_mut(old).merge(list)
    });
    merged.collect()
}

fn outcome(dir: &RunDir, stop: Stop) -> Result<Outcome> {
    let best = dir.best_event()?;
    Ok(Outcome {
        iteration: best.iteration,
        score: best.score,
        length_ratio: best.length_ratio,
        initial: dir.first_score(),
        weights: dir.weights(best.iteration)?,
        stop,
    })
}

#[cfg(test)]
mod tests;
