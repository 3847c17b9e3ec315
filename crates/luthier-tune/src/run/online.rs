//! An epoch of online learning: each shard learns batch by batch, then the shards are mixed (Watanabe 2012,
//! Algorithms 2 and 3).

use super::{Event, Job, best_totals, commit};
use crate::{
    Batches, Candidates, Evidence, Fleet, Goal, Mixing, Source, SourceKind, State,
    mixing::{self, Moved},
};
use luthier_core::{
    Progress, Result, SegmentId, Step,
    random::{Purpose, Stream},
};
use luthier_metric::add;
use serde::{Deserialize, Serialize};
use std::{
    ops::ControlFlow,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

/// Results of a shard's epoch that all processes receive.
#[derive(Serialize, Deserialize)]
struct Shard {
    /// Targets that are new in this epoch, by segment.
    surrogates: Vec<(u32, Arc<Candidates>)>,
    /// Summed statistics of the targets.
    aimed: Vec<f64>,
    /// Summed statistics of the guesses, the best candidates under the weights of each batch.
    guessed: Vec<f64>,
    /// Number of candidates.
    candidates: usize,
    note: Option<String>,
    /// Time of decoding in seconds.
    decode: f64,
    /// Time of learning in seconds.
    learn: f64,
}

/// Results of a shard's epoch that stay in its process.
#[derive(Default)]
struct Stays {
    /// Differences of the weights; `None` for a shard without segments.
    moved: Option<Moved>,
    /// N-best lists of the epoch, for line-search mixing.
    lists: Vec<Arc<Candidates>>,
}

/// Runs one epoch over all segments. Unless `scored` is set, the score of the event becomes that of the guesses.
pub(super) fn epoch(
    job: &Job<'_>,
    batches: &Batches,
    state: &mut State,
    event: &mut Event,
    scored: bool,
    fleet: Fleet<'_>,
) -> Result<()> {
    let visited = AtomicUsize::new(0);
    let stays: Vec<Mutex<Stays>> = (0..batches.shards).map(|_| Mutex::default()).collect();
    let shards: Vec<Shard> = fleet.map(batches.shards, |s| {
        let mut own = stays[s.0 as usize].lock().unwrap_or_else(PoisonError::into_inner);
        shard(job, batches, state, s.0, (fleet, &visited), &mut own)
    })?;
    let (lists, moved): (Vec<Vec<Arc<Candidates>>>, Vec<Option<Moved>>) = stays
        .into_iter()
        .map(|s| s.into_inner().unwrap_or_else(PoisonError::into_inner))
        .map(|s| (s.lists, s.moved))
        .unzip();
    let moved: Vec<Moved> = moved.into_iter().flatten().collect();
    let clock = Instant::now();
    let width = job.metric.width();
    let (mut guessed, mut aimed) = (vec![0.0; width], vec![0.0; width]);
    event.candidates = 0;
    for shard in shards {
        add(&mut guessed, &shard.guessed);
        add(&mut aimed, &shard.aimed);
        state.surrogates.extend(shard.surrogates);
        event.candidates += shard.candidates;
        event.decode_seconds += shard.decode;
        event.learn_seconds += shard.learn;
        event.note = event.note.take().or(shard.note);
    }
    let mean = mixing::mean(&state.weights, &moved, fleet)?;
    drop(moved);
    let how = (batches.mixing, (mixing::MIN_RHO, batches.max_rho));
    let (weights, rho) = mixing::mix(how, &state.weights, &mean.weights, &lists, job.metric, fleet)?;
    state.weights = weights;
    if job.learner.averages() {
        let means = &mut state.means;
        means.resize(mean.visited.len(), 0.0);
        add(means, &mean.visited);
    }
    if !scored {
        event.judge(job.metric, &guessed);
        event.running = true;
    }
    event.guess = Some(job.metric.score(&guessed));
    event.surrogate = Some(job.metric.score(&aimed));
    event.surrogate_length_ratio = job.metric.length_ratio(&aimed);
    event.rho = (batches.mixing == Mixing::LineSearch).then_some(rho);
    event.learn_seconds += clock.elapsed().as_secs_f64();
    Ok(())
}

/// Runs one epoch over the segments of shard `s`.
fn shard(
    job: &Job<'_>,
    batches: &Batches,
    start: &State,
    s: u32,
    (fleet, visited): (Fleet<'_>, &AtomicUsize),
    stays: &mut Stays,
) -> Result<Shard> {
    let (source, learner) = (job.source, job.learner);
    let mine = |segment: &u32| segment % batches.shards == s;
    let mut order: Vec<u32> = (0..source.segments()).filter(mine).collect();
    if batches.shuffle {
        Stream::new(batches.seed, Purpose::Order, start.epoch, s).shuffle(&mut order);
    }
    let mut state = State::new(start.weights.clone());
    state.epoch = start.epoch;
    state.spread.clone_from(&start.spread);
    state.pass.aimed = vec![0.0; job.metric.width()];
    state.pass.batches = order.len().div_ceil(batches.size) as u32;
    let kept = start.surrogates.iter().filter(|k| mine(k.0));
    state.surrogates = kept.map(|(s, list)| (*s, list.clone())).collect();
    let mut guessed = vec![0.0; job.metric.width()];
    // Within a batch, progress is polled but not reported.
    let poll = |_: &Step| {
        if job.progress.poll().is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let progress = Progress::new(&poll);
    let (mut candidates, mut note, mut decode, mut learn) = (0, None, 0.0, 0.0);
    for (at, batch) in order.chunks(batches.size).enumerate() {
        let clock = Instant::now();
        state.batch.number = at as u32;
        state.batch.segments = batch.iter().map(|&s| SegmentId(s)).collect();
        let evidence = source.candidates(&state.batch.segments, &state.weights, Goal::Model, progress)?;
        if source.kind() != SourceKind::Fixed {
            commit_dense(&mut state, &evidence, source)?;
            request_targets(job, &mut state)?;
        }
        add(&mut guessed, &best_totals(&evidence, &state.weights, job.metric, source.kind()));
        decode += clock.elapsed().as_secs_f64();
        let clock = Instant::now();
        let new_note = learner.learn(&evidence, &mut state, &Fleet::ALONE, progress)?;
        note = note.or(new_note);
        learn += clock.elapsed().as_secs_f64();
        let some = evidence.into_lists();
        candidates += some.iter().map(|l| l.k).sum::<usize>();
        if batches.mixing == Mixing::LineSearch {
            stays.lists.extend(some);
        }
        let before = visited.fetch_add(batch.len(), Ordering::Relaxed);
        let all = source.segments().div_ceil(fleet.0.size()) as usize;
        job.progress.count("segments", before + batch.len(), all)?;
    }
    let before = &start.surrogates;
    let new = |(s, list): &(u32, Arc<Candidates>)| before.get(s).is_none_or(|old| !Arc::ptr_eq(old, list));
    if state.pass.batches > 0 {
        stays.moved = Some(Moved::new(&start.weights, &state, learner.averages()));
    }
    Ok(Shard {
        surrogates: state.surrogates.into_iter().filter(new).collect(),
        aimed: state.pass.aimed,
        guessed,
        candidates,
        note,
        decode,
        learn,
    })
}

/// Adds the dense features to the weights, and the sparse ones of lists that carry no feature names; other
/// sparse features are added when they are first updated.
fn commit_dense(state: &mut State, evidence: &Evidence, source: &dyn Source) -> Result<()> {
    let lists = evidence.lists();
    let named = lists.iter().all(|l| l.local.keys().is_empty() || !l.names.is_empty());
    if !named {
        return commit(&mut state.weights, evidence, source);
    }
    match lists.first() {
        Some(first) => state.weights.commit(&first.columns, &|key| source.name(key)),
        None => Ok(()),
    }
}

/// Requests the targets that the learner wants: derivations of reachable references, and the reachable
/// candidates with the highest metric score.
fn request_targets(job: &Job<'_>, state: &mut State) -> Result<()> {
    state.batch.references.clear();
    if job.learner.wants_references() {
        let wanted = &state.batch.segments;
        let found = job.source.candidates(wanted, &state.weights, Goal::Reference, job.progress)?;
        state.batch.references = found.into_lists().into_iter().map(|l| (l.k > 0).then_some(l)).collect();
    }
    if job.learner.wants_metric_best() {
        let reached = |at: usize| state.batch.references.get(at).is_some_and(Option::is_some);
        let missing: Vec<SegmentId> = state
            .batch
            .segments
            .iter()
            .enumerate()
            .filter(|&(at, s)| !reached(at) && !state.surrogates.contains_key(&s.0))
            .map(|(_, s)| *s)
            .collect();
        let lists = job.source.candidates(&missing, &state.weights, Goal::Metric, job.progress)?.into_lists();
        let found = missing.iter().zip(lists).filter(|l| l.1.k > 0);
        state.surrogates.extend(found.map(|(s, list)| (s.0, list)));
    }
    Ok(())
}
