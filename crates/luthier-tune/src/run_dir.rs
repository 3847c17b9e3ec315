//! Output of a run: a run directory, which is also its checkpoint, or memory.
//!
//! `run.toml` holds the [`RunSpec`], `weights/NNN.txt` the weights by iteration, `state/NNN.json` the rest of
//! the state (an iteration is complete once this file exists), `nbest/NNN.gz` the new candidates of runs whose
//! pool accumulates, `log.jsonl` one event per line, `held-out.txt` the numbers of held-out segments, `validation.json`
//! held-out scores, `bootstrap.json` the variation of weights, `folds/N` the runs of folds, `best.txt` the best weights. Files are written atomically.
//! If several processes work on a run, `traffic.jsonl` records their network traffic.
//! [`RunView`](crate::RunView) reads run directories.

use crate::{
    Candidates, Event, Fleet, HeldOut, Judge, RunSpec, Stability, State, Stop, Traffic, Wire,
    run_spec::RUN_TOML,
    run_view::{Layout, Line, read_log},
};
use luthier_core::{Error, FeatureKey, Local, Result, SegmentId, Weights};
use luthier_io::{
    AtomicFile, WorkDir, WorkKind,
    nbest::{self, MosesLine, Options, Rows},
    read_weights,
};
use luthier_metric::Metric;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fs, io::Write as _, ops::Range, path::Path, sync::Arc};

const KIND: WorkKind = WorkKind {
    file: RUN_TOML,
    what: "run",
    flag: "--run",
    parts: &["weights", "state", "nbest", "decode", "folds"],
};

/// Where [`run`](crate::run) writes settings, checkpoints and results: a run directory, or memory.
///
/// A directory holds `run.toml` (the [`RunSpec`]), `log.jsonl` (one [`Event`] per line), `weights/`, `state/`,
/// `best.txt` and, for runs with a decoder, `nbest/`. Files are written atomically, so an interrupted run resumes
/// after its last complete iteration. [`RunView`](crate::RunView) reads run directories.
pub struct RunDir {
    place: Place,
    layout: Layout,
    spec: RunSpec,
    /// Lines of `log.jsonl`.
    lines: Vec<Line>,
    /// Whether the last weights are the result, not those with the best score.
    last: bool,
    /// Whether the initial weights are no answer: all 0, or not of the form that is asked for.
    start_dropped: bool,
    /// Number of segments that are held out to select the weights; 0 for none.
    held_out: u32,
    /// Dense columns of saved lists.
    columns: Option<Arc<Local>>,
    references: Arc<Vec<Vec<String>>>,
    /// Network traffic up to the last iteration.
    traffic: Traffic,
}

/// Where this process writes a run.
enum Place {
    /// In a directory, by this process.
    Directory(WorkDir),
    /// Nowhere: the first process reads and writes the directory.
    Elsewhere,
    /// In memory; holds the weights of every iteration.
    Memory(Vec<Weights>),
}

/// Pool of a run that accumulates candidates, with those that are new in one iteration.
#[derive(Clone, Copy)]
pub(crate) struct Kept<'a> {
    pub(crate) pool: &'a [Arc<Candidates>],
    /// Range of new candidates of each segment.
    pub(crate) fresh: &'a [Range<usize>],
}

/// Content of `state/NNN.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Saved {
    /// Number of complete epochs.
    epoch: u32,
    /// Names of the dense features, which are the dense columns of saved lists.
    columns: Vec<String>,
    /// Whether the weights of the iteration are means over visits, with the current weights in a file of their own.
    #[serde(default)]
    means: bool,
    /// Number of saved surrogates.
    #[serde(default)]
    surrogates: usize,
    /// Spread of each dense feature by name, for learners that standardise features.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    spread: BTreeMap<String, f64>,
}

impl RunDir {
    /// Creates a run directory, or opens one with the same settings to resume it; a higher number of
    /// iterations extends it.
    ///
    /// `references` are used to judge saved candidates when a run is resumed. Of several processes the first opens
    /// the directory, and the others receive its content. Fails if the directory holds something else or a run with
    /// different settings, or if another process is using it.
    pub fn open(
        path: &Path,
        spec: RunSpec,
        references: Arc<Vec<Vec<String>>>,
        fleet: Fleet<'_>,
    ) -> Result<Self> {
        let layout = Layout(path.to_owned());
        let mut place = Place::Elsewhere;
        let log = || fs::read_to_string(layout.log()).unwrap_or_default();
        let text = fleet.first(|| {
            let begun = |_: &Path| !read_log(&log()).is_empty();
            place = Place::Directory(WorkDir::open_with(path, &KIND, &spec, begun, RunSpec::extends)?);
            for part in ["weights", "state"] {
                fs::create_dir_all(path.join(part))
                    .map_err(|e| Error::io(path.display().to_string(), "create it", &e))?;
            }
            Ok(log())
        })?;
        Ok(RunDir { place, lines: read_log(&text), ..RunDir::new(layout, spec, references) })
    }

    /// Keeps the weights and events of a run in memory and writes nothing to disk; such a run cannot be
    /// resumed.
    pub fn in_memory(spec: RunSpec) -> Self {
        RunDir::new(Layout(Path::new("the run").to_owned()), spec, Arc::default())
    }

    fn new(layout: Layout, spec: RunSpec, references: Arc<Vec<Vec<String>>>) -> Self {
        RunDir {
            place: Place::Memory(Vec::new()),
            layout,
            spec,
            lines: Vec::new(),
            last: false,
            start_dropped: false,
            held_out: 0,
            columns: None,
            references,
            traffic: Traffic::default(),
        }
    }

    /// Removes the directory of a run without a complete iteration, if it was created by this process, so
    /// that a failure leaves nothing behind.
    pub fn discard(self) {
        if let Place::Directory(work) = self.place
            && self.lines.is_empty()
        {
            work.discard();
        }
    }

    /// Returns the weight of the L1 penalty that the weights of an iteration were learned with; `None` without a penalty of
    /// batch learning.
    pub fn l1_of(&self, iteration: u32) -> Option<f64> {
        let before = iteration.checked_sub(1)?;
        self.events().find(|e| e.iteration == before)?.l1
    }

    /// Returns the reason why the run ended; `None` if it is unfinished, or if it ended at the maximum number of
    /// iterations and that has been raised since.
    pub fn stopped(&self) -> Option<Stop> {
        let Some(Line::End { stop, .. }) = self.lines.last() else { return None };
        let done = self.last_event().map_or(0, |e| e.iteration);
        let limit = self.iterations();
        if *stop == Stop::Iterations && limit.is_some_and(|n| n > done) { None } else { Some(*stop) }
    }

    fn iterations(&self) -> Option<u32> {
        self.spec.recipe.iterations()
    }

    /// Returns the settings and inputs of the run.
    pub fn spec(&self) -> &RunSpec {
        &self.spec
    }

    fn directory(&self) -> Option<&Path> {
        if let Place::Directory(work) = &self.place { Some(work.path()) } else { None }
    }

    /// Reads the state of the last complete iteration; `None` if there is none. Fails on damaged or
    /// inconsistent files.
    pub(crate) fn resume(&mut self, metric: &Metric) -> Result<Option<State>> {
        let complete = (1..u32::MAX).take_while(|&n| self.layout.state(n).exists()).last().unwrap_or(0);
        self.lines.truncate(complete as usize);
        if complete == 0 || self.directory().is_none() {
            return Ok(None);
        }
        let path = self.layout.state(complete);
        let damaged = |e: &dyn std::fmt::Display| {
            Error::in_file(path.display().to_string(), format!("damaged: {e}"))
                .hint("remove the file to redo this iteration")
        };
        let text = fs::read_to_string(&path).map_err(|e| damaged(&e))?;
        let saved: Saved = serde_json::from_str(&text).map_err(|e| damaged(&e))?;
        if self.lines.len() != complete as usize || saved.epoch != complete {
            return Err(Error::in_file(
                self.layout.0.display().to_string(),
                "log.jsonl and state/ are inconsistent",
            )
            .hint("start a new run in another --run directory"));
        }
        self.columns = Some(Arc::new(Local::new(saved.columns.iter().map(|n| FeatureKey::of(n)).collect())));
        let spread = saved.spread.iter().map(|(name, s)| (FeatureKey::of(name), *s)).collect();
        let mut state = State { epoch: complete, spread, ..State::default() };
        if saved.means {
            state.weights = read_weights(&self.layout.beside(complete, "current"))?;
            state.means = read_weights(&self.layout.beside(complete, "means"))?.values().to_vec();
        } else {
            state.weights = self.weights(complete)?;
        }
        if saved.surrogates > 0 {
            let lists = self.read_lists(&self.layout.beside(complete, "surrogates"), metric, true)?;
            let some = lists.into_iter().enumerate().filter(|l| l.1.k > 0);
            state.surrogates = some.map(|(s, list)| (s as u32, Arc::new(list))).collect();
        }
        Ok(Some(state))
    }

    /// Removes log lines beyond the last complete iteration, so that the run counts as unfinished.
    pub(crate) fn resume_at(&mut self, epoch: u32) -> Result<()> {
        self.lines.truncate(epoch as usize);
        if epoch > 0 { self.write_log() } else { Ok(()) }
    }

    /// Sets whether the last weights are the result if there is no selection set, instead of the best ones.
    pub(crate) fn keep_last(&mut self, last: bool) {
        self.last = last;
    }

    /// Sets whether the initial weights are no answer.
    pub(crate) fn drop_start(&mut self, dropped: bool) {
        self.start_dropped = dropped;
    }

    /// Returns the number of iterations since the best score, `next` included if its score is known.
    pub(crate) fn since_best(&self, next: Option<&Event>) -> u32 {
        let (mut best, mut last) = ((0, f64::NEG_INFINITY), 0);
        for event in self.events().chain(next) {
            // In online learning with a decoder, only the score of the guesses is known.
            let value = event.select.or(event.guess.filter(|_| self.last)).unwrap_or(event.score);
            if value > best.1 && !(event.iteration == 0 && self.start_dropped) {
                best = (event.iteration, value);
            }
            last = event.iteration;
        }
        last - best.0
    }

    /// Writes the initial weights once all features are known.
    pub(crate) fn begin(&mut self, state: &State) -> Result<()> {
        self.write_weights(state)
    }

    /// Reads the saved candidates of the iterations from `from` on; empty for fixed lists.
    pub(crate) fn saved_lists(&self, metric: &Metric, from: u32) -> Result<Vec<Arc<Candidates>>> {
        if self.columns.is_none() {
            return Ok(Vec::new());
        }
        let mut pool: Vec<Arc<Candidates>> = Vec::new();
        for iteration in from..self.lines.len() as u32 {
            let path = self.layout.nbest(iteration);
            if !path.exists() {
                return Ok(Vec::new());
            }
            let lists = self.read_lists(&path, metric, false)?;
            if pool.is_empty() {
                pool = lists.into_iter().map(Arc::new).collect();
            } else {
                pool.iter_mut().zip(&lists).for_each(|(old, new)| {
                    Arc::make_mut(old).merge(new);
                });
            }
        }
        Ok(pool)
    }

    /// Reads and judges saved candidates; with `named`, lists carry the names of their sparse features.
    fn read_lists(&self, path: &Path, metric: &Metric, named: bool) -> Result<Vec<Candidates>> {
        let Some(columns) = &self.columns else { return Ok(Vec::new()) };
        let mut rows = Rows::default();
        if fs::metadata(path).is_ok_and(|m| m.len() > EMPTY_GZ) {
            let options =
                Options { dialect: Some(nbest::Dialect::Bars), per_source: None, ..Options::default() };
            nbest::read(path, &options, &mut rows)?;
        }
        let references: Vec<Vec<&str>> =
            self.references.iter().map(|r| r.iter().map(String::as_str).collect()).collect();
        let mut judge = Judge::new(metric, &references, "the run");
        judge.allow_missing = true;
        let mut lists = crate::lists(&rows, columns, Some(judge))?;
        if named {
            let name = |key| rows.names.get(key).unwrap_or_default().to_owned();
            lists = lists.into_iter().map(|l| l.named(name)).collect();
        }
        Ok(lists)
    }

    /// Writes the checkpoint of an iteration: log, weights, state and, with `keep`, new candidates.
    pub(crate) fn checkpoint(
        &mut self,
        event: Event,
        state: &State,
        metric: &Metric,
        keep: Option<Kept<'_>>,
        wire: &dyn Wire,
    ) -> Result<()> {
        let learned = event.change.is_some();
        if self.directory().is_none() {
            self.lines.push(Line::Iteration(Box::new(event)));
            return if learned { self.write_weights(state) } else { Ok(()) };
        }
        if let Some(kept) = keep {
            self.write_lists(event.iteration, (&state.weights, metric), kept)?;
            self.columns = kept.pool.first().map(|l| l.columns.clone());
        } else if let Some(list) = state.surrogates.values().next() {
            self.columns = Some(list.columns.clone());
        }
        let iteration = event.iteration;
        self.lines.push(Line::Iteration(Box::new(event)));
        self.write_log()?;
        if learned {
            self.write_weights(state)?;
            let columns = self.columns.as_ref().map_or(&[][..], |c| c.keys());
            let columns = columns.iter().filter_map(|&k| state.weights.name(k)).map(str::to_owned).collect();
            let (means, surrogates) = (!state.means.is_empty(), state.surrogates.len());
            if means {
                let current = state.weights.to_text(&[]);
                AtomicFile::write_all_to(&self.layout.beside(state.epoch, "current"), current.as_bytes())?;
                let mut values = state.means.clone();
                values.resize(state.weights.len(), 0.0);
                let sums = state.weights.with_values(values).to_text(&[]);
                AtomicFile::write_all_to(&self.layout.beside(state.epoch, "means"), sums.as_bytes())?;
            }
            if surrogates > 0 {
                let all = state.surrogates.iter().map(|(s, list)| (*s as usize, &**list, 0..1));
                write_candidates(
                    &self.layout.beside(state.epoch, "surrogates"),
                    all,
                    &state.weights,
                    metric,
                )?;
            }
            let name = |(key, s): (&FeatureKey, &f64)| Some((state.weights.name(*key)?.to_owned(), *s));
            let spread = state.spread.iter().filter_map(name).collect();
            let saved =
                serde_json::to_string(&Saved { epoch: state.epoch, columns, means, surrogates, spread })
                    .map_err(|e| Error::new(e.to_string()))?;
            AtomicFile::write_all_to(&self.layout.state(state.epoch), format!("{saved}\n").as_bytes())?;
            // The files of the previous iteration are no longer needed to resume.
            for what in ["current", "means", "surrogates"] {
                let _ = fs::remove_file(self.layout.beside(state.epoch - 1, what));
            }
        }
        self.write_best(metric, false)?;
        self.write_traffic(iteration, wire)
    }

    /// Writes the numbers of the held-out segments, one per line, to `held-out.txt`.
    pub(crate) fn hold_out(&mut self, segments: &[SegmentId]) -> Result<()> {
        self.held_out = segments.len() as u32;
        if self.directory().is_none() {
            return Ok(());
        }
        let lines: String = segments.iter().map(|s| format!("{}\n", s.0)).collect();
        AtomicFile::write_all_to(&self.layout.held_out(), lines.as_bytes())
    }

    /// Writes held-out scores to `validation.json`. Of several processes the first writes.
    pub fn write_validation(&self, scores: &HeldOut) -> Result<()> {
        self.write_json(&self.layout.validation(), scores)
    }

    /// Writes the result of the bootstrap over segments to `bootstrap.json`. Of several processes the first writes.
    pub fn write_bootstrap(&self, stability: &Stability) -> Result<()> {
        self.write_json(&self.layout.bootstrap(), stability)
    }

    fn write_json(&self, path: &Path, value: &impl Serialize) -> Result<()> {
        if self.directory().is_none() {
            return Ok(());
        }
        let text = serde_json::to_string_pretty(value).map_err(|e| Error::new(e.to_string()))?;
        AtomicFile::write_all_to(path, format!("{text}\n").as_bytes())
    }

    /// Reads all candidates that a run with a decoder has gathered, one list per segment; empty for fixed lists. Of
    /// several processes the first reads. Fails on damaged files.
    pub fn pool(&mut self, metric: &Metric, fleet: Fleet<'_>) -> Result<Vec<Arc<Candidates>>> {
        fleet.first(|| {
            let lines = std::mem::take(&mut self.lines);
            self.lines.clone_from(&lines);
            self.resume(metric)?;
            let lists = self.saved_lists(metric, 0);
            self.lines = lines;
            lists
        })
    }

    /// Ends the run: writes `best.txt` and the last line of the log.
    pub(crate) fn finish(&mut self, stop: Stop, metric: &Metric) -> Result<()> {
        let best = self.write_best(metric, true)?;
        let score = best.select.unwrap_or(best.score);
        self.lines.push(Line::End { stop, best: best.iteration, score });
        self.write_log()
    }

    /// Writes `best.txt`, the best weights so far, and returns their iteration's event.
    pub(crate) fn write_best(&self, metric: &Metric, finished: bool) -> Result<Event> {
        let best = self.best_event()?.clone();
        if self.directory().is_none() {
            return Ok(best);
        }
        let mut comments = vec![format!(
            "{} {:.4}{} at iteration {}",
            metric.name(),
            metric.display_score(best.select.unwrap_or(best.score)),
            match self.held_out {
                _ if best.select.is_none() => String::new(),
                0 => " on the selection set".to_owned(),
                n => format!(" on {n} held-out segments"),
            },
            best.iteration
        )];
        if !finished {
            comments.push("best so far: the run is not finished".to_owned());
        }
        comments.extend(self.spec.settings().into_iter().map(|(k, v)| format!("{k} {v}")));
        let text = self.weights(best.iteration)?.to_text(&comments);
        AtomicFile::write_all_to(&self.layout.best(), text.as_bytes())?;
        Ok(best)
    }

    /// Returns the event of the best iteration so far, the earliest of equals but for the initial weights. Fails if there is none.
    pub(crate) fn best_event(&self) -> Result<&Event> {
        let mut best: Option<&Event> = None;
        let value = |event: &Event| event.select.unwrap_or(event.score);
        for event in self.events() {
            let last = self.last && event.select.is_none();
            // A tie with the initial weights goes to what was learned, and so does everything if they are 0.
            let from_start = |b: &Event| b.iteration == 0 && (self.start_dropped || value(event) == value(b));
            if best.is_none_or(|b| last || value(event) > value(b) || from_start(b)) {
                best = Some(event);
            }
        }
        best.ok_or_else(|| {
            Error::in_file(self.layout.0.display().to_string(), "log.jsonl contains no iteration")
        })
    }

    /// Returns the tuning score and the weights of the last iteration. Fails if there is none.
    pub(crate) fn last(&self) -> Result<(f64, Weights)> {
        let event = self.last_event().ok_or_else(|| Error::new("the run has no iteration"))?;
        Ok((event.score, self.weights(event.iteration)?))
    }

    /// Returns the score of the initial weights on the test set; `None` without a test set.
    pub(crate) fn initial_test(&self) -> Option<f64> {
        self.events().next().and_then(|e| e.test)
    }

    /// Returns the score of the initial weights, on the selection set if there is one.
    pub(crate) fn first_score(&self) -> f64 {
        self.events().next().map_or(0.0, |e| e.select.unwrap_or(e.score))
    }

    pub(crate) fn last_event(&self) -> Option<&Event> {
        self.events().last()
    }

    /// Returns the weights of an iteration. Fails if they cannot be read.
    pub(crate) fn weights(&self, iteration: u32) -> Result<Weights> {
        if let Place::Memory(weights) = &self.place {
            let kept = weights.get(iteration as usize).cloned();
            return kept.ok_or_else(|| Error::new(format!("there are no weights of iteration {iteration}")));
        }
        read_weights(&self.layout.weights(iteration))
    }

    /// Iterates over the events of all iterations so far.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.lines.iter().filter_map(|l| if let Line::Iteration(e) = l { Some(&**e) } else { None })
    }

    /// Writes the learned weights of the current epoch.
    fn write_weights(&mut self, state: &State) -> Result<()> {
        match &mut self.place {
            Place::Directory(_) => {
                let text = state.answer().to_text(&[]);
                AtomicFile::write_all_to(&self.layout.weights(state.epoch), text.as_bytes())
            }
            Place::Elsewhere => Ok(()),
            Place::Memory(weights) => {
                weights.truncate(state.epoch as usize);
                weights.push(state.answer().into_owned());
                Ok(())
            }
        }
    }

    /// Appends the network traffic since the last iteration to `traffic.jsonl`, which is separate from the log
    /// because it depends on the machines.
    fn write_traffic(&mut self, iteration: u32, wire: &dyn Wire) -> Result<()> {
        let now = wire.traffic();
        let before = std::mem::replace(&mut self.traffic, now);
        if wire.size() == 1 {
            return Ok(());
        }
        let path = self.layout.traffic();
        let line = serde_json::json!({
            "iteration": iteration,
            "processes": wire.size(),
            "bytes": now.bytes - before.bytes,
            "seconds": now.seconds - before.seconds,
        });
        let file = fs::File::options().create(true).append(true).open(&path);
        file.and_then(|mut file| writeln!(file, "{line}"))
            .map_err(|e| Error::io(path.display().to_string(), "write it", &e))
    }

    fn write_log(&self) -> Result<()> {
        if self.directory().is_none() {
            return Ok(());
        }
        let mut text = String::new();
        for line in &self.lines {
            text += &serde_json::to_string(line).map_err(|e| Error::new(e.to_string()))?;
            text.push('\n');
        }
        AtomicFile::write_all_to(&self.layout.log(), text.as_bytes())
    }

    /// Writes the new candidates of an iteration to `nbest/`.
    fn write_lists(
        &self,
        iteration: u32,
        (weights, metric): (&Weights, &Metric),
        kept: Kept<'_>,
    ) -> Result<()> {
        let path = self.layout.nbest(iteration);
        fs::create_dir_all(self.layout.0.join("nbest"))
            .map_err(|e| Error::io(path.display().to_string(), "write it", &e))?;
        let all = kept.pool.iter().zip(kept.fresh).enumerate();
        write_candidates(&path, all.map(|(s, (list, fresh))| (s, &**list, fresh.clone())), weights, metric)
    }
}

/// Writes candidates, given as segment, list and range, to an n-best file in Moses' format.
fn write_candidates<'a>(
    path: &Path,
    all: impl Iterator<Item = (usize, &'a Candidates, Range<usize>)>,
    weights: &Weights,
    metric: &Metric,
) -> Result<()> {
    let failed = |e: std::io::Error| Error::io(path.display().to_string(), "write it", &e);
    let columns = metric.columns();
    let mut file = AtomicFile::create(path)?;
    for (segment, list, some) in all {
        for i in some {
            let mut line = MosesLine::new(segment, list.text(i));
            // One label per value: blocks would need zeros, which lists do not store.
            for (key, value) in list.features(i) {
                let own = list.local.position(key).and_then(|p| list.names.get(p));
                let name = own.map(String::as_str).or_else(|| weights.name(key)).unwrap_or_default();
                line.block(name, [value]);
            }
            for (name, value) in columns.iter().zip(list.given(i)) {
                line.block(name, [*value]);
            }
            writeln!(file, "{}", line.end(Some(0.0))).map_err(failed)?;
        }
    }
    file.commit()
}

/// Upper bound of the size in bytes of a gzip file without content.
pub(crate) const EMPTY_GZ: u64 = 24;
