//! `luthier report`: an HTML page about tuning runs.

mod evidence;

use super::{Common, Done};
use crate::{lists::ListArgs, talk::Talk};
use evidence::Evidence;
use luthier::{
    core::{Error, FeatureKey, Result, Weights},
    io::AtomicFile,
    metric::Metric,
    tune::{RunView, is_run},
};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Write an HTML report of runs.
///
/// Shows learning curves, held-out scores, weights and their intervals, length ratios and settings, and the claims of an
/// experiment with their verdicts; where lists are available, also the score of each run's choices, the headroom, significance,
/// the score along each feature, and every sentence with the features that decided. The lists are those that the runs have
/// saved or were given, merged, so that all runs choose from the same candidates.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run directories, or directories that contain runs, such as that of an experiment.
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Output file.
    #[arg(long, short, value_name = "FILE", default_value = "report.html", help_heading = "Output")]
    output: PathBuf,
    /// Title of the page.
    #[arg(long, value_name = "TEXT", default_value = "Tuning", help_heading = "Output")]
    title: String,
    #[command(flatten)]
    lists: ListArgs,
    /// References [default: those of the runs]; repeatable.
    #[arg(long = "ref", value_name = "FILE", help_heading = "Input")]
    references: Vec<PathBuf>,
    /// Source text, shown beside the translations [default: that of the first run].
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    source: Option<PathBuf>,
    /// Maximum number of sentences on the page; those on which the runs disagree most are kept.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Output")]
    sentences: u32,
}

/// A run with its weights.
struct Run {
    /// Name on the page.
    name: String,
    view: RunView,
    /// Weights of the best iteration.
    best: Weights,
    /// Weights of the first iteration.
    initial: Option<Weights>,
    /// The largest weights by iteration.
    trace: Trace,
}

/// The features with the largest L1-normalised weight in any iteration, and their weights. Weights are read one iteration
/// at a time, because there can be millions.
#[derive(Default)]
struct Trace {
    /// Names of the features, in the order of the weights file.
    names: Vec<String>,
    /// Number of features of the last iteration.
    all: usize,
    /// L1-normalised weights, by iteration and feature.
    steps: Vec<Vec<f64>>,
}

impl Trace {
    fn read(view: &RunView) -> Result<Self> {
        const FEW: usize = 24;
        let Some(last) = view.events.last().map(|e| view.weights(e.iteration)).transpose()? else {
            return Ok(Trace::default());
        };
        let mut keys: Vec<(usize, FeatureKey, f64)> =
            last.iter().enumerate().map(|(i, (name, _))| (i, FeatureKey::of(name), 0.0)).collect();
        let scaled = |iteration: u32| -> Result<(Weights, f64)> {
            let weights = view.weights(iteration)?;
            let by = 1.0 / weights.l1().max(f64::MIN_POSITIVE);
            Ok((weights, by))
        };
        for event in &view.events {
            let (weights, by) = scaled(event.iteration)?;
            for (_, key, largest) in &mut keys {
                *largest = largest.max((weights.get(*key) * by).abs());
            }
        }
        keys.sort_by(|a, b| b.2.total_cmp(&a.2));
        keys.truncate(FEW);
        keys.sort_by_key(|k| k.0);
        let mut steps = Vec::new();
        for event in &view.events {
            let (weights, by) = scaled(event.iteration)?;
            steps.push(keys.iter().map(|k| round(weights.get(k.1) * by)).collect());
        }
        let mut names: Vec<String> = Vec::new();
        names.extend(keys.iter().filter_map(|k| last.iter().nth(k.0)).map(|(name, _)| name.to_owned()));
        Ok(Trace { names, all: last.len(), steps })
    }
}

impl Run {
    fn read(path: &Path) -> Result<Self> {
        let view = RunView::open(path)?;
        let initial = view.events.first().map(|e| view.weights(e.iteration)).transpose()?;
        let trace = Trace::read(&view)?;
        Ok(Run { name: String::new(), best: view.best_weights()?, initial, trace, view })
    }

    /// Returns the data of the run for the page.
    fn json(&self, metric: &Metric) -> Value {
        let shown = |x: Option<f64>| x.map(|x| round(metric.display_score(x)));
        let events: Vec<Value> = self
            .view
            .events
            .iter()
            .map(|e| {
                json!({
                    "iteration": e.iteration, "running": e.running, "score": shown(Some(e.score)), "select": shown(e.select), "test": shown(e.test),
                    "length": e.length_ratio.map(round), "candidates": e.candidates, "seconds": round(e.seconds),
                })
            })
            .collect();
        json!({
            "name": self.name, "path": self.view.path.display().to_string(),
            "algorithm": self.view.algorithm(), "signature": self.view.setting("signature"),
            "settings": self.view.settings, "events": events,
            "stop": self.view.end.map(|e| e.stop.name()), "best": self.view.end.map(|e| e.best),
            "weights": {"names": self.trace.names, "all": self.trace.all, "steps": self.trace.steps},
            "heldOut": self.view.validation(), "stability": self.view.bootstrap(),
        })
    }
}

/// Rounds to six significant digits, to keep the page small.
fn round(x: f64) -> f64 {
    format!("{x:.5e}").parse().unwrap_or(x)
}

/// Returns the run directories among the given ones; directories that contain runs, such as that of an experiment, are
/// replaced by their finished runs. Fails if such a directory contains none.
fn directories(given: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for path in given {
        let cells = path.join("cells");
        let experiment = cells.is_dir();
        let holder = if experiment { &cells } else { path };
        if is_run(path) || !holder.is_dir() {
            all.push(path.clone());
            continue;
        }
        let failed = |e| Error::io(holder.display().to_string(), "read it", &e);
        let mut inside = Vec::new();
        for entry in fs::read_dir(holder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let run = if experiment { path.join("run") } else { path };
            if RunView::is_finished(&run) {
                inside.push(run);
            }
        }
        inside.sort();
        if inside.is_empty() {
            return Err(Error::in_file(
                path.display().to_string(),
                "is not a run directory and contains no finished runs",
            )
            .hint("give directories created by `luthier tune ALGORITHM --run DIR`"));
        }
        all.extend(inside);
    }
    Ok(all)
}

/// Returns the claims in the results of experiments among the given directories. Fails if results are damaged.
fn claims(given: &[PathBuf]) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for path in given.iter().map(|p| p.join("results.json")).filter(|p| p.is_file()) {
        let name = path.display().to_string();
        let text = fs::read_to_string(&path).map_err(|e| Error::io(&name, "read it", &e))?;
        let mut results: Value = serde_json::from_str(&text).map_err(|e| {
            Error::in_file(&name, format!("damaged: {e}")).hint("run the experiment again to write it")
        })?;
        // Results of earlier versions have no claims.
        if let Some(Value::Array(claims)) = results.get_mut("claims") {
            all.append(claims);
        }
    }
    Ok(all)
}

/// Returns the shortest ends of paths that are distinct, as names of runs.
fn names(paths: &[PathBuf]) -> Vec<String> {
    let parts: Vec<Vec<String>> = paths
        .iter()
        .map(|p| {
            let whole = fs::canonicalize(p).unwrap_or_else(|_| p.clone());
            let parts = whole.components().map(|c| c.as_os_str().to_string_lossy().into_owned());
            let mut parts: Vec<String> = parts.collect();
            // The run directories of all cells of experiments are named `run`.
            if parts.len() > 1 && parts.last().is_some_and(|p| p == "run") {
                parts.pop();
            }
            parts.reverse();
            parts
        })
        .collect();
    let ends = |n: usize| -> Vec<String> {
        let end = |p: &Vec<String>| p.iter().take(n).rev().cloned().collect::<Vec<_>>().join("/");
        parts.iter().map(end).collect()
    };
    let distinct = |names: &[String]| names.iter().enumerate().all(|(i, n)| !names[..i].contains(n));
    let longest = parts.iter().map(Vec::len).max().unwrap_or(1);
    (1..=longest).map(ends).find(|n| distinct(n)).unwrap_or_else(|| ends(longest))
}

/// Returns the page with each `{{name}}` replaced; replacements are not searched for further names.
fn fill(parts: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for (i, piece) in include_str!("report/page.html").split("{{").enumerate() {
        match piece.split_once("}}").filter(|_| i > 0) {
            Some((name, rest)) => {
                out += parts.iter().find(|p| p.0 == name).map_or("", |p| p.1);
                out += rest;
            }
            None => out += piece,
        }
    }
    out
}

/// Returns the metric that a run was tuned for, as given on the command line.
fn metric_name(run: &Run) -> &str {
    run.view.setting("metric").unwrap_or("bleu")
}

pub(crate) fn run(args: &Args, common: &Common, talk: Talk) -> Done {
    super::check_json_output(common, Some(&args.output))?;
    let paths = directories(&args.runs)?;
    let mut runs = paths.iter().map(|p| Run::read(p)).collect::<Result<Vec<_>>>()?;
    for (run, name) in runs.iter_mut().zip(names(&paths)) {
        run.name = name;
    }
    let metric = runs[0].view.metric()?;
    if let Some(other) = runs.iter().find(|r| metric_name(r) != metric_name(&runs[0])) {
        let (a, b) = (metric_name(&runs[0]), metric_name(other));
        return Err(Error::in_file(
            other.view.path.display().to_string(),
            format!("is a run for the metric {b}, but {} is for {a}", runs[0].view.path.display()),
        )
        .hint("a report shows runs for one metric")
        .into());
    }
    let given = !args.lists.nbest.is_empty();
    if !given && args.lists.has_format_flags() {
        return Err(Error::new(
            "--nbest-format, --per-source, --score-file and --allow-missing need --nbest",
        )
        .hint("give lists with --nbest, or leave these flags out")
        .into());
    }
    if let Some(path) = &args.source {
        luthier::io::text::read_lines(path)?;
    }
    let (evidence, wrong) = Evidence::gather(&runs, &metric, args);
    let mut why = wrong.into_iter().collect::<Vec<_>>();
    // Errors in files that were given as flags are fatal.
    if !why.is_empty() && (given || (!args.references.is_empty() && evidence.is_empty())) {
        return Err(why.remove(0).into());
    }
    for e in &why {
        talk.warn(&format!("sentences, surfaces and significance are missing for some runs: {e}"));
    }
    let found: Vec<Value> =
        evidence.iter().map(|e| e.json(&runs, &metric, args.sentences as usize)).collect();
    let data = json!({
        "title": args.title, "claims": claims(&args.runs)?, "version": env!("CARGO_PKG_VERSION"), "metric": metric.name(), "error": metric.is_error(),
        "runs": runs.iter().map(|r| r.json(&metric)).collect::<Vec<_>>(), "evidence": found, "why": why.first().map(ToString::to_string),
    });
    // The data must not contain a closing tag.
    let data = data.to_string().replace('<', "\\u003c");
    let title = args.title.replace('&', "&amp;").replace('<', "&lt;");
    let page = fill(&[
        ("title", &title),
        ("style", include_str!("report/style.css")),
        ("script", include_str!("report/script.js")),
        ("data", &data),
    ]);
    AtomicFile::write_all_to(&args.output, page.as_bytes())?;
    if common.json {
        super::print_json(&json!({"output": args.output, "runs": runs.len(), "bytes": page.len()}))?;
    }
    let many = if runs.len() == 1 { "1 run".to_owned() } else { format!("{} runs", runs.len()) };
    talk.say(&format!("{}: report of {many} ({:.1} MB)", args.output.display(), page.len() as f64 / 1e6));
    Ok(ExitCode::SUCCESS)
}
