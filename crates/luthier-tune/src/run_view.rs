//! Reading of run directories, finished or not: settings, events, weights and lists.

use crate::{
    Event, HeldOut, RunSpec, Stability, Stop,
    run_dir::EMPTY_GZ,
    run_spec::{RUN_TOML, flatten},
};
use luthier_core::{Error, Result, Weights};
use luthier_io::{InputFile, read_weights};
use luthier_metric::Metric;
use serde::{Deserialize, Serialize};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Paths of the files in a run directory.
#[derive(Debug, Clone)]
pub(crate) struct Layout(pub(crate) PathBuf);

impl Layout {
    pub(crate) fn spec(&self) -> PathBuf {
        self.0.join(RUN_TOML)
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.0.join("log.jsonl")
    }

    pub(crate) fn best(&self) -> PathBuf {
        self.0.join("best.txt")
    }

    pub(crate) fn held_out(&self) -> PathBuf {
        self.0.join("held-out.txt")
    }

    pub(crate) fn validation(&self) -> PathBuf {
        self.0.join("validation.json")
    }

    pub(crate) fn bootstrap(&self) -> PathBuf {
        self.0.join("bootstrap.json")
    }

    pub(crate) fn traffic(&self) -> PathBuf {
        self.0.join("traffic.jsonl")
    }

    pub(crate) fn weights(&self, iteration: u32) -> PathBuf {
        self.0.join(format!("weights/{iteration:03}.txt"))
    }

    pub(crate) fn state(&self, iteration: u32) -> PathBuf {
        self.0.join(format!("state/{iteration:03}.json"))
    }

    /// Path of a part of the state with a file of its own: `current`, `means` or `surrogates`.
    pub(crate) fn beside(&self, iteration: u32, what: &str) -> PathBuf {
        self.0.join(format!("state/{iteration:03}.{what}.gz"))
    }

    pub(crate) fn nbest(&self, iteration: u32) -> PathBuf {
        self.0.join(format!("nbest/{iteration:03}.gz"))
    }
}

/// A line of `log.jsonl`: an iteration, or the end of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Line {
    Iteration(Box<Event>),
    End { stop: Stop, best: u32, score: f64 },
}

/// Parses the lines of a log, up to the first invalid one.
pub(crate) fn read_log(text: &str) -> Vec<Line> {
    text.lines().map_while(|l| serde_json::from_str(l).ok()).collect()
}

/// How a finished run ended, as the last line of `log.jsonl` holds it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunEnd {
    /// Reason why the run ended.
    pub stop: Stop,
    /// Iteration whose weights are the result, those in `best.txt`.
    pub best: u32,
    /// Score of the best iteration, on the selection set if there is one; higher is better.
    pub score: f64,
}

/// A run directory as read from disk: settings, events, weights and lists of a run that is finished or in
/// progress.
///
/// Directories of formats 1 and 2 can be read too; they have no [`RunSpec`], only settings by name.
///
/// ```
/// # use luthier_core::{Progress, Weights};
/// # use luthier_io::nbest::Rows;
/// # use luthier_tune::recipe::{Mert, Recipe};
/// # use luthier_tune::{
/// #     FixedLists, Fleet, Job, Judge, RunDir, RunSpec, Schedule, columns, lists, mert::LineSearch, run,
/// # };
/// use luthier_tune::RunView;
/// # let mut rows = Rows::default();
/// # rows.push(0, "the house is very small", &[("lm", -2.0), ("tm", -3.0)], &[]).unwrap();
/// # rows.push(0, "house the small", &[("lm", -6.0), ("tm", -1.0)], &[]).unwrap();
/// # let metric: luthier_metric::Metric = "bleu".parse().unwrap();
/// # let references = [vec!["the house is very small"]];
/// # let judge = Judge::new(&metric, &references, "ref.txt");
/// # let source = FixedLists::new(lists(&rows, &columns(&rows, None), Some(judge)).unwrap(), rows.names);
/// # let (learner, schedule) = (LineSearch::new(metric.clone(), 1), Schedule::default());
/// # let initial = Weights::parse("w.txt", "tm 1").unwrap();
/// # let job = Job {
/// #     source: &source,
/// #     select: None,
/// #     test: None,
/// #     learner: &learner,
/// #     schedule: &schedule,
/// #     metric: &metric,
/// #     initial: &initial,
/// #     progress: Progress::NONE,
/// # };
/// let temporary = tempfile::tempdir().unwrap();
/// let path = temporary.path().join("tuned");
/// let spec = RunSpec::new(Recipe::Mert(Mert::default()), "bleu", 1);
/// let mut dir = RunDir::open(&path, spec, Default::default(), Fleet::ALONE).unwrap();
/// let outcome = run(&job, &mut dir, &Fleet::ALONE, &mut |_| ()).unwrap();
///
/// let view = RunView::open(&path).unwrap();
/// assert!(RunView::is_finished(&path));
/// assert_eq!((view.algorithm(), view.setting("seed"), view.events.len()), ("mert", Some("1"), 2));
/// assert_eq!(view.best_event().score, outcome.score);
/// assert_eq!(view.best_weights().unwrap(), outcome.weights);
/// ```
#[derive(Debug, Clone)]
pub struct RunView {
    /// Path of the run directory.
    pub path: PathBuf,
    /// Specification of the run; `None` for directories of formats 1 and 2.
    pub spec: Option<RunSpec>,
    /// Every setting as dotted name, such as `recipe.restarts`, and value.
    pub settings: Vec<(String, String)>,
    /// Files that the run has read, with digests of their contents.
    pub inputs: Vec<InputFile>,
    /// Events of the run by iteration; at least one.
    pub events: Vec<Event>,
    /// How the run ended; `None` while it is unfinished.
    pub end: Option<RunEnd>,
}

impl RunView {
    /// Reads a run directory. Fails if the directory is not a run directory, if a file is damaged, or if no
    /// iteration is complete yet.
    pub fn open(path: &Path) -> Result<Self> {
        let layout = Layout(path.to_owned());
        let name = path.display().to_string();
        let read = |file: PathBuf| {
            fs::read_to_string(&file).map_err(|e| {
                let file = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let found = match e.kind() {
                    std::io::ErrorKind::NotFound if path.is_dir() => format!("it contains no {file}"),
                    std::io::ErrorKind::NotFound => "it does not exist".to_owned(),
                    std::io::ErrorKind::NotADirectory => "it is a file".to_owned(),
                    _ => format!("cannot read {file}: {e}"),
                };
                Error::in_file(&name, format!("is not a run directory: {found}"))
                    .hint("give directories created by `luthier tune ALGORITHM --run DIR`")
            })
        };
        let text = read(layout.spec())?;
        let file = layout.spec().display().to_string();
        let table: toml::Table = text
            .parse()
            .map_err(|e: toml::de::Error| Error::in_file(&file, format!("damaged: {}", e.message())))?;
        let format = table.get("format").and_then(toml::Value::as_integer);
        let spec = match format {
            None | Some(2) => None,
            Some(_) => Some(RunSpec::parse(&file, &text)?),
        };
        let (settings, inputs) = match &spec {
            Some(spec) => (spec.settings(), spec.inputs.clone()),
            None if format.is_none() => format_1(table),
            None => format_2(table),
        };
        let (mut events, mut end) = (Vec::new(), None);
        for (line, number) in read(layout.log())?.lines().zip(1..) {
            let line: Line = serde_json::from_str(line).map_err(|e| {
                Error::at(layout.log().display().to_string(), number, format!("damaged: {e}"))
            })?;
            match line {
                Line::Iteration(event) => events.push(*event),
                Line::End { stop, best, score } => end = Some(RunEnd { stop, best, score }),
            }
        }
        if events.is_empty() {
            return Err(Error::in_file(name, "has no complete iteration yet").hint("wait for the first one"));
        }
        Ok(RunView { path: path.to_owned(), spec, settings, inputs, events, end })
    }

    /// Returns a setting by its dotted name, such as `recipe.restarts`; `None` if it is missing or empty.
    pub fn setting(&self, name: &str) -> Option<&str> {
        let found = self.settings.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
        found.filter(|v| !v.is_empty())
    }

    /// Returns the name of the algorithm, such as `mert`; `unknown` if the settings do not tell.
    pub fn algorithm(&self) -> &str {
        let spec = self.spec.as_ref().map(|s| s.recipe.info().name);
        let setting = || self.setting("recipe.algorithm").or(self.setting("algorithm"));
        spec.or_else(setting).unwrap_or("unknown")
    }

    /// Returns the metric that the run tunes for. Fails if the settings hold a metric that this version does
    /// not know.
    pub fn metric(&self) -> Result<Metric> {
        self.setting("metric").unwrap_or("bleu").parse().map_err(|e| Error::new(format!("{e}")))
    }

    /// Iterates over the files that were read in a role, such as `nbest` or `ref`.
    pub fn inputs_of<'a>(&'a self, role: &'a str) -> impl Iterator<Item = &'a InputFile> {
        self.inputs.iter().filter(move |f| f.role == role)
    }

    /// Returns the event of the best iteration; of an unfinished run, the last event.
    pub fn best_event(&self) -> &Event {
        let best = self.end.map(|e| e.best);
        let found = self.events.iter().find(|e| Some(e.iteration) == best);
        found.unwrap_or(&self.events[self.events.len() - 1])
    }

    /// Returns the path of the best weights, `best.txt`, of the run directory `path`; the file exists once
    /// the run is finished.
    pub fn best_path(path: &Path) -> PathBuf {
        Layout(path.to_owned()).best()
    }

    /// Returns the path of the weights that an iteration of the run directory `path` was decoded with.
    pub fn weights_path(path: &Path, iteration: u32) -> PathBuf {
        Layout(path.to_owned()).weights(iteration)
    }

    /// Returns whether the directory `path` holds a run that has ended and written its best weights.
    pub fn is_finished(path: &Path) -> bool {
        let log = fs::read_to_string(Layout(path.to_owned()).log()).unwrap_or_default();
        let ended = matches!(read_log(&log).last(), Some(Line::End { .. }));
        crate::is_run(path) && ended && Self::best_path(path).is_file()
    }

    /// Reads the best weights; of an unfinished run, those of the last iteration. Fails if the file cannot be
    /// read.
    pub fn best_weights(&self) -> Result<Weights> {
        let best = Self::best_path(&self.path);
        if best.exists() { read_weights(&best) } else { self.weights(self.best_event().iteration) }
    }

    /// Reads the weights that an iteration was decoded with. Fails if the file is missing or damaged.
    pub fn weights(&self, iteration: u32) -> Result<Weights> {
        read_weights(&Layout(self.path.clone()).weights(iteration))
    }

    /// Reads the held-out scores that were computed with the run; `None` if there are none, or if the file is damaged.
    pub fn validation(&self) -> Option<HeldOut> {
        read_json(&Layout(self.path.clone()).validation())
    }

    /// Reads the result of the bootstrap over segments; `None` if there is none, or if the file is damaged.
    pub fn bootstrap(&self) -> Option<Stability> {
        read_json(&Layout(self.path.clone()).bootstrap())
    }

    /// Returns the directory of the run that holds out fold `fold`, from 0, of the run directory `path`.
    pub fn fold_path(path: &Path, fold: usize) -> PathBuf {
        path.join("folds").join((fold + 1).to_string())
    }

    /// Returns the paths of the n-best files with the new candidates of each iteration, in Moses' format;
    /// empty files are left out.
    pub fn lists(&self) -> Vec<PathBuf> {
        let layout = Layout(self.path.clone());
        let filled = |p: &PathBuf| fs::metadata(p).is_ok_and(|m| m.len() > EMPTY_GZ);
        self.events.iter().map(|e| layout.nbest(e.iteration)).filter(filled).collect()
    }

    /// Returns the number of iterations that learned; the last event of a finished run only scores.
    pub fn iterations(&self) -> usize {
        self.events.iter().filter(|e| e.change.is_some()).count()
    }

    /// Returns the wall-clock time of all iterations, in seconds.
    pub fn seconds(&self) -> f64 {
        self.events.iter().map(|e| e.seconds).sum()
    }
}

/// Reads a file of JSON; `None` if it cannot be read.
pub(crate) fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_str(&fs::read_to_string(path).ok()?).ok()
}

/// Settings and inputs of a directory of format 2, whose recipes may have other settings than today's.
fn format_2(table: toml::Table) -> (Vec<(String, String)>, Vec<InputFile>) {
    let inputs = table.get("inputs").cloned().and_then(|i| i.try_into().ok()).unwrap_or_default();
    let mut settings = Vec::new();
    flatten("", &toml::Value::Table(table), &mut settings);
    (settings, inputs)
}

/// Returns settings and inputs of a directory of format 1, where every value is text and files are written as
/// `path digest, path digest`.
fn format_1(table: toml::Table) -> (Vec<(String, String)>, Vec<InputFile>) {
    const ROLES: [&str; 8] =
        ["nbest", "ref", "source", "moses-scores", "select-nbest", "select-ref", "test-nbest", "test-ref"];
    let mut settings = Vec::new();
    flatten("", &toml::Value::Table(table), &mut settings);
    let of = |role: &str| settings.iter().find(|s| s.0 == role).map_or(String::new(), |s| s.1.clone());
    let inputs = ROLES.iter().flat_map(|role| {
        let files = files(&of(role));
        files.into_iter().map(|(path, digest)| InputFile::new(role, path, digest)).collect::<Vec<_>>()
    });
    let inputs = inputs.collect();
    (settings, inputs)
}

/// Parses `path digest, path digest` into paths and digests; paths may contain commas and spaces.
fn files(setting: &str) -> Vec<(String, String)> {
    let mut rest = setting;
    let digest = |s: &str| s.len() == 16 && s.bytes().all(|b| b.is_ascii_hexdigit());
    let mut found = Vec::new();
    while !rest.is_empty() {
        let ends = rest.match_indices(", ").map(|m| m.0).chain([rest.len()]);
        let mut entries = ends.filter_map(|end| Some((end, rest[..end].rsplit_once(' ')?)));
        let Some((end, (path, print))) = entries.find(|(_, (_, d))| digest(d)) else { break };
        found.push((path.to_owned(), print.to_owned()));
        rest = rest[end..].trim_start_matches(", ");
    }
    found
}
