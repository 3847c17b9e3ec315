//! The tuning loop: decode, score, merge, learn, checkpoint.

use crate::{
    Batches, Candidates, Evidence, Fleet, Goal, Interpolate, Learner, Mixing, RunDir, Schedule, Source,
    SourceKind, State, learner::grow, mert::Certificate, mixing, run_dir::Kept, source::Subset,
    start::standard_spread,
};
use luthier_core::{FeatureKey, Fingerprint, Progress, Result, SegmentId, Weights, sum};
use luthier_metric::{Metric, add};
use serde::{Deserialize, Serialize};
use std::{ops::Range, sync::Arc, time::Instant};

mod online;

/// Scores and statistics of one iteration, which is one line of `log.jsonl`. Iteration 0 scores the initial
/// weights.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Event {
    /// Number of the iteration, from 0; also the number of the weights that it was decoded with.
    pub iteration: u32,
    /// Corpus score on the development set under the weights of this iteration; higher is better. If `running` is set,
    /// score of the guesses instead.
    pub score: f64,
    /// Whether `score` and `length_ratio` are those of the guesses, output produced while the weights changed from batch
    /// to batch: online learning with a decoder decodes the development set with one weight vector only in the last
    /// iteration and, without a selection set, in the first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub running: bool,
    /// Corpus score on the selection set under the weights of this iteration; `None` without a selection set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<f64>,
    /// Corpus score on the test set under the weights of this iteration; `None` without a test set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<f64>,
    /// Length ratio (output over reference) on the development set; `None` for metrics that do not count lengths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length_ratio: Option<f64>,
    /// Length ratio (output over reference) on the selection set; `None` without such a set or for metrics that do
    /// not count lengths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select_length_ratio: Option<f64>,
    /// Length ratio (output over reference) on the test set; `None` without such a set or for metrics that do not
    /// count lengths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_length_ratio: Option<f64>,
    /// Number of candidates in the pool of this iteration, over all segments; for forests the number of edges.
    pub candidates: usize,
    /// Number of candidates (or edges) that are new in the pool of this iteration.
    pub new: usize,
    /// Names of dense features that are constant within every list, so that their weights have no effect;
    /// reported at iteration 0 only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constant: Vec<String>,
    /// Message of the learner about this iteration, such as that its minimiser did not converge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What is known about the highest score on the development set, after learning from fixed lists; `None` unless asked
    /// for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Certificate>,
    /// Corpus score of the targets (surrogates or oracles) of this epoch; `None` for batch learning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surrogate: Option<f64>,
    /// Length ratio of the targets (surrogates or oracles) of this epoch to the references; `None` for batch
    /// learning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surrogate_length_ratio: Option<f64>,
    /// Corpus score of the guesses of this epoch, each under the weights of its batch; `None` for batch
    /// learning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guess: Option<f64>,
    /// Number of weights that are not 0 after this epoch; `None` for batch learning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<usize>,
    /// ρ of line-search mixing: 0 is the previous weights, 1 the mean of the shards; from −1 to 2, or to
    /// [`Batches::max_rho`]. `None` in batch learning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rho: Option<f64>,
    /// Ψ of [`Interpolate::LineSearch`] in batch learning, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub psi: Option<f64>,
    /// Weight of the L1 penalty that was used; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l1: Option<f64>,
    /// Largest change of a weight of the L1-normalised vector in this iteration; `None` in the last iteration,
    /// which does not learn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<f64>,
    /// Time of decoding and scoring in seconds, summed over shards.
    #[serde(default)]
    pub decode_seconds: f64,
    /// Time of learning in seconds, summed over shards.
    #[serde(default)]
    pub learn_seconds: f64,
    /// Wall-clock time of the iteration, in seconds.
    pub seconds: f64,
}

impl Event {
    /// Returns a number of the event by its name in `log.jsonl`, such as `select` or `features`; `None` if
    /// the event has none.
    ///
    /// ```
    /// let event = luthier_tune::Event { score: 31.5, ..Default::default() };
    /// assert_eq!((event.number("score"), event.number("select")), (Some(31.5), None));
    /// ```
    pub fn number(&self, name: &str) -> Option<f64> {
        serde_json::to_value(self).ok()?.get(name)?.as_f64()
    }

    /// Sets score and length ratio on the development set from summed statistics.
    fn judge(&mut self, metric: &Metric, totals: &[f64]) {
        self.score = metric.score(totals);
        self.length_ratio = metric.length_ratio(totals);
    }
}

/// Reason why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// The lists are fixed, so batch learning takes one optimisation.
    FixedLists,
    /// A decode brought no new candidate.
    NoNewCandidates,
    /// No weight of the L1-normalised vector changed by more than [`Schedule::min_change`].
    Converged,
    /// The maximum number of iterations was reached.
    Iterations,
    /// The score did not improve for [`Schedule::patience`] iterations.
    Patience,
}

impl Stop {
    /// Returns the reason in words, for reports.
    pub fn text(self) -> &'static str {
        match self {
            Stop::FixedLists => "fixed lists: one optimisation",
            Stop::NoNewCandidates => "no new candidates",
            Stop::Converged => "weights no longer change",
            Stop::Iterations => "iteration limit",
            Stop::Patience => "no better score within the patience",
        }
    }

    /// Returns the reason's name in `log.jsonl`, such as `fixed-lists`.
    pub fn name(self) -> &'static str {
        match self {
            Stop::FixedLists => "fixed-lists",
            Stop::NoNewCandidates => "no-new-candidates",
            Stop::Converged => "converged",
            Stop::Iterations => "iterations",
            Stop::Patience => "patience",
        }
    }
}

/// Result of a run: the best weights with their scores.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Iteration with the best score, the earliest of equals; the last one in online learning with a decoder
    /// if no set, given or held out, selects it.
    pub iteration: u32,
    /// Score of the best iteration, on the selection set if there is one, else on the development set; higher
    /// is better.
    pub score: f64,
    /// Score of the best iteration on the test set; `None` without a test set.
    pub test: Option<f64>,
    /// Length ratio (output over reference) of the best iteration, on the same set as the score; `None` for metrics
    /// that do not count lengths.
    pub length_ratio: Option<f64>,
    /// Score of the initial weights, on the same set as the score.
    pub initial: f64,
    /// Score of the initial weights on the test set; `None` without a test set.
    pub initial_test: Option<f64>,
    /// Weights that learning began with, after all features were known.
    pub start: Weights,
    /// Weights of the best iteration.
    pub weights: Weights,
    /// Reason why the run ended.
    pub stop: Stop,
}

/// Everything that [`run`] needs to tune weights, except where results are written.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// Source of the candidates that are learned from: the development set.
    pub source: &'a dyn Source,
    /// Selection set: held-out candidates whose score chooses the best iteration; `None` to choose by the
    /// development set.
    pub select: Option<&'a dyn Source>,
    /// Test set: held-out candidates whose score is only reported.
    pub test: Option<&'a dyn Source>,
    /// Learning algorithm.
    pub learner: &'a dyn Learner,
    /// Iterations, pool, batches and stopping rule.
    pub schedule: &'a Schedule,
    /// Metric to tune for, which all candidates have been judged by.
    pub metric: &'a Metric,
    /// Initial weights; features without one start at 0.
    pub initial: &'a Weights,
    /// Progress callback, which may stop the run.
    pub progress: Progress<'a>,
}

impl Job<'_> {
    /// Returns whether a decoder's weights change from batch to batch, so that the score of an epoch is not
    /// that of one weight vector.
    fn decodes_online(&self) -> bool {
        self.schedule.online.is_some() && self.source.kind() != SourceKind::Fixed
    }

    /// Returns the segments that [`run`] holds out to select the epoch, as [`Batches::select_share`] says, and the others;
    /// `None` if it learns from all segments. The choice depends on the seed and the number of each segment.
    pub fn held_out(&self) -> Option<(Vec<SegmentId>, Vec<SegmentId>)> {
        let batches =
            self.schedule.online.as_ref().filter(|b| b.select_share > 0.0 && self.select.is_none())?;
        let n = self.source.segments();
        if n < ENOUGH || self.source.kind() != SourceKind::Decoder {
            return None;
        }
        let count = ((f64::from(n) * batches.select_share).round() as u32).clamp(HELD_OUT.0, HELD_OUT.1);
        let hash = |s: u32| Fingerprint::default().word(batches.seed).word(u64::from(s)).finish();
        let mut order: Vec<u32> = (0..n).collect();
        order.sort_by_cached_key(|&s| hash(s));
        let (held, rest) = order.split_at_mut(count as usize);
        held.sort_unstable();
        rest.sort_unstable();
        let ids = |segments: &[u32]| segments.iter().map(|&s| SegmentId(s)).collect();
        Some((ids(held), ids(rest)))
    }

    /// Returns the epoch that starts with an empty pool; `None` without a reset or an accumulating pool.
    fn reset(&self) -> Option<u32> {
        let grows = self.schedule.accumulate && self.source.kind() != SourceKind::Fixed;
        self.schedule.reset_at.filter(|_| grows)
    }
}

/// Number of segments from which some are held out for selection.
const ENOUGH: u32 = 300;
/// Smallest and largest number of segments that are held out for selection.
const HELD_OUT: (u32, u32) = (50, 300);

/// Result of one epoch.
struct Epoch {
    event: Event,
    /// Reason to end the run; `None` if it continues.
    stop: Option<Stop>,
    /// Range of new candidates of each segment in the pool.
    fresh: Vec<Range<usize>>,
}

/// Tunes weights until the run ends, resuming after the last complete iteration in `dir`; `on_event` is called
/// after every iteration.
///
/// Each epoch decodes, scores, learns and is checkpointed. The run ends when fixed lists have been learned from,
/// when a decode brings no new candidate, when the weights converge, when the score does not improve within the
/// patience, or at the maximum number of iterations; see [`Schedule`]. Online learning with a decoder and without a
/// selection set holds out some segments to select the epoch ([`Job::held_out`]). Fails if the source or a file fails, and
/// with an error of kind `Interrupted` if `job.progress` answers *stop*; the run can then be resumed after the last
/// complete epoch.
///
/// ```
/// use luthier_core::{Progress, Weights};
/// use luthier_io::nbest::Rows;
/// use luthier_tune::recipe::{Mert, Recipe};
/// use luthier_tune::{FixedLists, Fleet, Job, Judge, RunDir, RunSpec, Schedule, Stop, columns, lists, run, mert::LineSearch};
/// let mut rows = Rows::default();
/// rows.push(0, "the house is very small", &[("lm", -2.0), ("tm", -3.0)], &[]).unwrap();
/// rows.push(0, "house the small", &[("lm", -6.0), ("tm", -1.0)], &[]).unwrap();
/// let metric: luthier_metric::Metric = "bleu".parse().unwrap();
/// let references = [vec!["the house is very small"]];
/// let judge = Judge::new(&metric, &references, "ref.txt");
/// let source = FixedLists::new(lists(&rows, &columns(&rows, None), Some(judge)).unwrap(), rows.names);
///
/// let job = Job {
///     source: &source,
///     select: None,
///     test: None,
///     learner: &LineSearch::new(metric.clone(), 1),
///     schedule: &Schedule::default(),
///     metric: &metric,
///     initial: &Weights::parse("w.txt", "tm 1").unwrap(),
///     progress: Progress::NONE,
/// };
/// let mut dir = RunDir::in_memory(RunSpec::new(Recipe::Mert(Mert::default()), "bleu", 1));
/// let mut scores = Vec::new();
/// let outcome = run(&job, &mut dir, &Fleet::ALONE, &mut |event| scores.push(event.score)).unwrap();
/// assert_eq!((outcome.iteration, outcome.stop), (1, Stop::FixedLists));
/// assert_eq!(outcome.initial, 0.0);
/// assert!(outcome.score > 99.9 && scores == [outcome.initial, outcome.score]);
/// ```
pub fn run(
    job: &Job<'_>,
    dir: &mut RunDir,
    fleet: &Fleet<'_>,
    on_event: &mut dyn FnMut(&Event),
) -> Result<Outcome> {
    let Some((held, rest)) = job.held_out() else { return run_loop(job, dir, fleet, on_event) };
    fleet.agree(dir.hold_out(&held))?;
    let [select, learn] = [held, rest].map(|segments| Subset::new(job.source, segments));
    run_loop(&Job { source: &learn, select: Some(&select), ..*job }, dir, fleet, on_event)
}

/// Runs the loop of [`run`] on the sets of `job` as they are.
fn run_loop(
    job: &Job<'_>,
    dir: &mut RunDir,
    fleet: &Fleet<'_>,
    on_event: &mut dyn FnMut(&Event),
) -> Result<Outcome> {
    let Job { source, schedule, metric, .. } = *job;
    let fleet = *fleet;
    // Scores of a decoder that learns online are not those of one weight vector: without a selection set the
    // last weights are the result.
    dir.keep_last(job.decodes_online());
    let fixed = job.source.kind() == SourceKind::Fixed;
    let zero = fixed && job.initial.values().iter().all(|w| *w == 0.0);
    dir.drop_start(zero || schedule.learned_only);
    if let Some(stop) = dir.stopped() {
        fleet.agree(dir.write_best(metric, true))?;
        return outcome(dir, stop, fleet);
    }
    let (mut state, mut pool) = begin(job, dir, fleet)?;
    loop {
        let clock = Instant::now();
        if state.epoch == 0 {
            job.learner.prepare(&mut state.weights);
        }
        let Epoch { mut event, stop, fresh } = match &schedule.online {
            None => batch_epoch(job, &mut state, &mut pool, dir, fleet)?,
            Some(batches) => online_epoch(job, batches, &mut state, dir, fleet)?,
        };
        event.seconds = clock.elapsed().as_secs_f64();
        on_event(&event);
        let grows = schedule.accumulate && matches!(source.kind(), SourceKind::Decoder | SourceKind::Command);
        let keep = grows.then_some(Kept { pool: pool.lists(), fresh: &fresh });
        fleet.agree(dir.checkpoint(event, &state, metric, keep, fleet.0))?;
        if let Some(stop) = stop {
            fleet.agree(dir.finish(stop, metric))?;
            return outcome(dir, stop, fleet);
        }
    }
}

/// Runs an epoch of batch learning, over all candidates of the pool at once.
fn batch_epoch(
    job: &Job<'_>,
    state: &mut State,
    pool: &mut Evidence,
    dir: &mut RunDir,
    fleet: Fleet<'_>,
) -> Result<Epoch> {
    let clock = Instant::now();
    let mut event = Event { iteration: state.epoch, ..Event::default() };
    if job.reset() == Some(state.epoch) {
        *pool = Evidence::NOTHING;
    }
    let fresh = gather(job, state, pool, &mut event, fleet)?;
    if state.epoch == 0 {
        fleet.agree(dir.begin(state))?;
    }
    if job.learner.wants_spread() && state.spread.is_empty() {
        state.spread = standard_spread(pool.lists());
    }
    held_out(job, &state.answer(), &mut event, fleet)?;
    let stop = self::stop(job, state, dir, &event);
    event.decode_seconds = clock.elapsed().as_secs_f64();
    if stop.is_none() {
        let before = state.answer().into_owned();
        let clock = Instant::now();
        event.note = job.learner.learn(pool, state, &fleet, job.progress)?;
        event.learn_seconds = clock.elapsed().as_secs_f64();
        event.l1 = state.l1.take();
        interpolate(job, pool, &before, state, &mut event, fleet)?;
        job.learner.prepare(&mut state.weights);
        if job.source.kind() == SourceKind::Fixed {
            event.certificate = job.learner.certify(pool.lists(), state, &fleet, job.progress)?;
        }
        learned(state, &before, &mut event, fleet)?;
    }
    Ok(Epoch { event, stop, fresh })
}

/// Interpolates learned weights with those before, if they are not learned from fixed lists.
fn interpolate(
    job: &Job<'_>,
    pool: &Evidence,
    before: &Weights,
    state: &mut State,
    event: &mut Event,
    fleet: Fleet<'_>,
) -> Result<()> {
    match job.schedule.interpolate {
        _ if job.source.kind() == SourceKind::Fixed => {}
        Interpolate::Psi => state.weights.blend(job.schedule.psi, before),
        Interpolate::LineSearch => {
            let how = (Mixing::LineSearch, (0.0, 1.0));
            let lists = [pool.lists().to_vec()];
            let (weights, psi) = mixing::mix(how, before, &state.weights, &lists, job.metric, fleet)?;
            state.weights = weights;
            event.psi = Some(psi);
        }
    }
    Ok(())
}

/// Runs an epoch of online learning, batch by batch, each decoded with the current weights. The whole
/// development set is decoded with fixed weights only in the first and the last epoch; other epochs are scored
/// on the output of their batches.
fn online_epoch(
    job: &Job<'_>,
    batches: &Batches,
    state: &mut State,
    dir: &mut RunDir,
    fleet: Fleet<'_>,
) -> Result<Epoch> {
    let clock = Instant::now();
    let mut event = Event { iteration: state.epoch, ..Event::default() };
    let (stop, scored) = if job.decodes_online() {
        held_out(job, &state.answer(), &mut event, fleet)?;
        let stop = self::stop(job, state, dir, &event);
        let first = state.epoch == 0 && job.select.is_none();
        let scored = stop.is_some() || first;
        if scored {
            let (totals, candidates) = decode_totals(job, job.source, &state.answer(), fleet)?;
            event.judge(job.metric, &totals);
            event.candidates = candidates;
        }
        if state.epoch == 0 {
            fleet.agree(dir.begin(state))?;
        }
        (stop, scored)
    } else {
        let mut pool = Evidence::NOTHING;
        gather(job, state, &mut pool, &mut event, fleet)?;
        if state.epoch == 0 {
            fleet.agree(dir.begin(state))?;
        }
        held_out(job, &state.answer(), &mut event, fleet)?;
        (self::stop(job, state, dir, &event), true)
    };
    event.decode_seconds = clock.elapsed().as_secs_f64();
    if stop.is_none() {
        if job.learner.wants_spread() && state.spread.is_empty() {
            let first = all_candidates(job.source, &state.answer(), job.progress, fleet)?;
            state.spread = standard_spread(first.lists());
        }
        let before = state.answer().into_owned();
        online::epoch(job, batches, state, &mut event, scored, fleet)?;
        job.learner.prepare(&mut state.weights);
        learned(state, &before, &mut event, fleet)?;
        event.features = Some(state.answer().non_zero());
    }
    Ok(Epoch { event, stop, fresh: Vec::new() })
}

/// Counts a learned epoch and records the change of the weights. Fails if the weights differ between processes.
fn learned(state: &mut State, before: &Weights, event: &mut Event, fleet: Fleet<'_>) -> Result<()> {
    state.epoch += 1;
    fleet.same(print(&state.weights), "weights")?;
    event.change = Some(state.answer().change(before));
    Ok(())
}

/// Returns the state to resume from, or the initial state, and the candidates gathered since the pool was last
/// emptied.
fn begin(job: &Job<'_>, dir: &mut RunDir, fleet: Fleet<'_>) -> Result<(State, Evidence)> {
    let Job { source, metric, .. } = *job;
    let state = match fleet.first(|| dir.resume(metric))? {
        Some(state) => state,
        None => State::new(job.initial.clone()),
    };
    fleet.agree(dir.resume_at(state.epoch))?;
    let from = job.reset().filter(|&r| r < state.epoch).unwrap_or(0);
    let pool = if source.kind() == SourceKind::Forests {
        decode_again(job, dir, from..state.epoch, fleet)?
    } else {
        Evidence::Lists(fleet.first(|| dir.saved_lists(metric, from))?)
    };
    source.resume_at(state.epoch, pool.lists().first().map(|l| &l.columns));
    Ok((state, pool))
}

/// Decodes all segments, scores the output, adds new features to the weights and merges the candidates into the
/// pool. Returns the range of new candidates of each segment.
fn gather(
    job: &Job<'_>,
    state: &mut State,
    pool: &mut Evidence,
    event: &mut Event,
    fleet: Fleet<'_>,
) -> Result<Vec<Range<usize>>> {
    let Job { source, learner, schedule, metric, .. } = *job;
    let answer = state.answer();
    let evidence = all_candidates(source, &answer, job.progress, fleet)?;
    event.judge(metric, &best_totals(&evidence, &answer, metric, source.kind()));
    // An error about names occurs in all processes.
    commit(&mut state.weights, &evidence, source).map_err(|e| fleet.known_to_all(e))?;
    if state.epoch == 0 {
        learner.prepare(&mut state.weights);
    }
    let replace = source.kind() == SourceKind::Fixed || !schedule.accumulate;
    let (fresh, new) = absorb(pool, evidence, replace, state.epoch);
    event.candidates = pool.size();
    event.new = new;
    if state.epoch == 0 {
        event.constant = constant(pool.lists(), &state.weights);
    }
    Ok(fresh)
}

/// Decodes again with the weights of earlier epochs, because forests are not saved; the result is the same.
fn decode_again(job: &Job<'_>, dir: &RunDir, epochs: Range<u32>, fleet: Fleet<'_>) -> Result<Evidence> {
    let mut pool = Evidence::NOTHING;
    for epoch in epochs.filter(|_| job.schedule.accumulate) {
        let weights = fleet.first(|| dir.weights(epoch))?;
        let evidence = all_candidates(job.source, &weights, job.progress, fleet)?;
        absorb(&mut pool, evidence, false, epoch);
    }
    Ok(pool)
}

/// Returns the reason to end the run before this epoch learns; `None` to continue.
fn stop(job: &Job<'_>, state: &State, dir: &RunDir, event: &Event) -> Option<Stop> {
    let schedule = job.schedule;
    let still = dir.last_event().and_then(|e| e.change).is_some_and(|c| c <= schedule.min_change);
    let batch = schedule.online.is_none();
    // In online learning with a decoder, the score of these weights is not known yet.
    let fixed = job.source.kind() == SourceKind::Fixed;
    let next = Some(event).filter(|e| e.select.is_some() || batch || fixed);
    match state.epoch {
        0 => None,
        _ if batch && fixed => Some(Stop::FixedLists),
        _ if batch && event.new == 0 => Some(Stop::NoNewCandidates),
        _ if batch && still => Some(Stop::Converged),
        n if n >= schedule.iterations => Some(Stop::Iterations),
        _ if schedule.patience.is_some_and(|p| dir.since_best(next) >= p) => Some(Stop::Patience),
        _ => None,
    }
}

/// Returns the candidates of all segments. Each process decodes every P-th segment, for P processes.
pub(crate) fn all_candidates(
    source: &dyn Source,
    weights: &Weights,
    progress: Progress<'_>,
    fleet: Fleet<'_>,
) -> Result<Evidence> {
    let n = source.segments();
    let ask = |some: &[SegmentId]| source.candidates(some, weights, Goal::Model, progress);
    let all = || ask(&(0..n).map(SegmentId).collect::<Vec<_>>());
    if fleet.is_alone() || source.kind() == SourceKind::Fixed {
        return all();
    }
    if source.kind() == SourceKind::Command {
        let (parcel, names) = fleet.first(|| {
            let evidence = all()?;
            let names = names(&evidence, source);
            Ok((evidence.pack(), names))
        })?;
        source.learn_names(&names)?;
        return Ok(Evidence::unpack(vec![parcel], n, source));
    }
    // Interleaved, because neighbouring segments often have similar lengths.
    let mine: Vec<SegmentId> = (fleet.0.rank()..n).step_by(fleet.0.size() as usize).map(SegmentId).collect();
    let parcels = fleet.gather(ask(&mine).map(Evidence::pack))?;
    Ok(Evidence::unpack(parcels, n, source))
}

/// Returns the names of all features of the evidence.
fn names(evidence: &Evidence, source: &dyn Source) -> Vec<String> {
    let lists = evidence.lists();
    let columns = lists.first().map_or(&[][..], |l| l.columns.keys());
    let mut keys: Vec<FeatureKey> =
        lists.iter().flat_map(|l| l.local.keys()).chain(columns).copied().collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter().map(|key| source.name(key)).collect()
}

/// Decodes a source and returns the summed statistics of the best candidates and the number of all candidates,
/// without keeping all lists in memory.
fn decode_totals(
    job: &Job<'_>,
    source: &dyn Source,
    weights: &Weights,
    fleet: Fleet<'_>,
) -> Result<(Vec<f64>, usize)> {
    let metric = job.metric;
    let n = source.segments();
    let width = metric.width();
    let ask = |some: &[u32]| {
        let some: Vec<SegmentId> = some.iter().map(|&s| SegmentId(s)).collect();
        source.candidates(&some, weights, Goal::Model, job.progress)
    };
    let all: Vec<u32> = (0..n).collect();
    if source.kind() != SourceKind::Decoder {
        let whole = || {
            let evidence = ask(&all)?;
            Ok((best_totals(&evidence, weights, metric, source.kind()), evidence.size()))
        };
        return if source.kind() == SourceKind::Command { fleet.first(whole) } else { whole() };
    }
    // Each group is summed by one process; groups are assigned to processes in turn.
    let groups: Vec<&[u32]> = all.chunks(GROUP).collect();
    let mine: Vec<&[u32]> =
        groups.iter().copied().skip(fleet.0.rank() as usize).step_by(fleet.0.size() as usize).collect();
    let one = |some: &[&[u32]]| -> Result<Vec<(Vec<f64>, usize)>> {
        let Evidence::Lists(lists) = ask(&some.concat())? else { return Ok(Vec::new()) };
        let mut lists = lists.into_iter();
        let group = |group: &&[u32]| {
            let evidence = Evidence::Lists(lists.by_ref().take(group.len()).collect());
            (best_totals(&evidence, weights, metric, source.kind()), evidence.size())
        };
        Ok(some.iter().map(group).collect())
    };
    let parts: Result<Vec<_>> = mine.chunks(AT_ONCE / GROUP).map(one).collect();
    let parts: Vec<Vec<(Vec<f64>, usize)>> = fleet.gather(parts.map(|p| p.concat()))?;
    let (mut totals, mut candidates) = (vec![0.0; width], 0);
    for at in 0..groups.len() {
        let (sums, size) = &parts[at % parts.len()][at / parts.len()];
        add(&mut totals, sums);
        candidates += size;
    }
    Ok((totals, candidates))
}

/// Number of segments whose lists are in memory at once while a decoder is only scored.
const AT_ONCE: usize = 512;

/// Number of segments whose statistics are summed before they are sent to other processes.
const GROUP: usize = 16;

/// Decodes and scores the selection set and the test set.
fn held_out(job: &Job<'_>, weights: &Weights, event: &mut Event, fleet: Fleet<'_>) -> Result<()> {
    let totals = |source: &dyn Source| -> Result<Vec<f64>> {
        source.resume_at(event.iteration, None);
        Ok(decode_totals(job, source, weights, fleet)?.0)
    };
    if let Some(select) = job.select {
        let totals = totals(select)?;
        event.select = Some(job.metric.score(&totals));
        event.select_length_ratio = job.metric.length_ratio(&totals);
    }
    if let Some(test) = job.test {
        let totals = totals(test)?;
        event.test = Some(job.metric.score(&totals));
        event.test_length_ratio = job.metric.length_ratio(&totals);
    }
    Ok(())
}

/// Returns a 128-bit fingerprint of all weights.
fn print(weights: &Weights) -> u128 {
    let add = |f: Fingerprint, w: &f64| f.word(w.to_bits());
    weights.values().iter().fold(Fingerprint::default(), add).finish()
}

/// Adds new features to the weights, in segment order. Fails if two names share one key.
fn commit(weights: &mut Weights, evidence: &Evidence, source: &dyn Source) -> Result<()> {
    let name = |key| source.name(key);
    if let Evidence::Forests(forests) = evidence {
        return weights.commit(&forests.columns, &name);
    }
    let lists = evidence.lists();
    if let Some(first) = lists.first() {
        weights.commit(&first.columns, &name)?;
    }
    for list in lists {
        if list.names.is_empty() {
            weights.commit(&list.local, &name)?;
        } else {
            grow(weights, list)?;
        }
    }
    Ok(())
}

/// Returns the names of dense features that are constant within every list.
fn constant(pool: &[Arc<Candidates>], weights: &Weights) -> Vec<String> {
    let Some(first) = pool.first() else { return Vec::new() };
    let keys = first.columns.keys();
    let same = |c: &usize| pool.iter().all(|l| l.column(*c).windows(2).all(|w| w[0] == w[1]));
    (0..keys.len()).filter(same).filter_map(|c| weights.name(keys[c])).map(str::to_owned).collect()
}

/// Returns the summed statistics of the best candidates under some weights. The best candidate of a decoder is the first
/// one: another one may have the same model score up to rounding, but is not the one that the decoder outputs.
fn best_totals(evidence: &Evidence, weights: &Weights, metric: &Metric, kind: SourceKind) -> Vec<f64> {
    if let Evidence::Forests(forests) = evidence {
        return forests.best_totals(weights, metric);
    }
    let lists = evidence.lists();
    let mut dense = Vec::new();
    if let Some(first) = lists.first() {
        weights.gather(&first.columns, &mut dense);
    }
    sum::sum(lists.len(), 64, metric.width(), |s, total| {
        let list = &lists[s];
        let best =
            if kind == SourceKind::Decoder { (list.k > 0).then_some(0) } else { list.best(&dense, weights) };
        if let Some(best) = best {
            add(total, list.stats_of(list.class[best]));
        }
    })
}

/// Merges evidence into the pool, or replaces the pool. Returns the range of new candidates of each segment and
/// their number; for forests no ranges and the number of new edges.
fn absorb(pool: &mut Evidence, evidence: Evidence, replace: bool, epoch: u32) -> (Vec<Range<usize>>, usize) {
    let (pool, lists) = match (&mut *pool, evidence) {
        (Evidence::Lists(pool), Evidence::Lists(lists)) => (pool, lists),
        (Evidence::Forests(forests), Evidence::Forests(fresh)) if !replace => {
            return (Vec::new(), forests.merge(fresh));
        }
        (_, fresh) => {
            // A pool that is replaced counts as new as a whole.
            *pool = fresh;
            return (Vec::new(), pool.size());
        }
    };
    if replace || pool.is_empty() {
        let known = replace && epoch > 0;
        *pool = lists;
        let fresh: Vec<Range<usize>> = pool.iter().map(|l| if known { 0..0 } else { 0..l.k }).collect();
        let new = fresh.iter().map(ExactSizeIterator::len).sum();
        return (fresh, new);
    }
    let merged = pool.iter_mut().zip(&lists).map(|(old, list)| {
        if old.columns != list.columns {
            *old = Arc::new(Candidates::clone(old).widen(&list.columns));
        }
        let before = old.k;
        before..before + Arc::make_mut(old).merge(list)
    });
    let fresh: Vec<Range<usize>> = merged.collect();
    let new = fresh.iter().map(ExactSizeIterator::len).sum();
    (fresh, new)
}

/// Returns the result of a finished run.
fn outcome(dir: &RunDir, stop: Stop, fleet: Fleet<'_>) -> Result<Outcome> {
    let best = dir.best_event()?;
    Ok(Outcome {
        iteration: best.iteration,
        score: best.select.unwrap_or(best.score),
        test: best.test,
        length_ratio: best.select_length_ratio.or(best.length_ratio),
        initial: dir.first_score(),
        initial_test: dir.initial_test(),
        start: fleet.first(|| dir.weights(0))?,
        weights: fleet.first(|| dir.weights(best.iteration))?,
        stop,
    })
}

#[cfg(test)]
mod tests;
