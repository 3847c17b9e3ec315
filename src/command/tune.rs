//! `luthier tune`.

use super::{Common, Done, check_names, read_nbest, read_references, write_out};
use crate::talk::{Talk, thousands};
use clap::Subcommand;
use luthier::{
    core::{Error, Weights, text},
    metric::Metric,
    tune::{
        Alone, Event, FixedLists, Fleet, Judge, LineSearch, Outcome, RunDir, Schedule, Settings, columns,
        lists, run as tune,
    },
};
use serde_json::json;
use std::{path::PathBuf, process::ExitCode};

/// Learns weights. The same command again goes on from where it was stopped.
#[derive(Debug, clap::Args)]
#[command(subcommand_value_name = "ALGORITHM", subcommand_help_heading = "Algorithms")]
pub(crate) struct Args {
    #[command(subcommand)]
    algorithm: Algorithm,
}

#[derive(Debug, Subcommand)]
enum Algorithm {
    /// Minimum error rate training: exact line searches on the corpus score, with restarts (Och 2003).
    Mert(Mert),
}

#[derive(Debug, clap::Args)]
#[command(after_help = super::METRICS_HELP)]
struct Mert {
    #[command(flatten)]
    input: Input,
    /// Random starts besides the initial weights.
    #[arg(long, default_value_t = 20, value_name = "N")]
    restarts: u32,
}

/// What every algorithm needs.
#[derive(Debug, clap::Args)]
struct Input {
    /// N-best lists in Moses' format, plain or gzip; several are merged. `-` is standard input.
    #[arg(long, required = true, num_args = 1.., value_name = "FILE")]
    nbest: Vec<PathBuf>,
    /// References, one segment a line; repeat it for several.
    #[arg(long = "ref", required = true, num_args = 1.., value_name = "FILE")]
    references: Vec<PathBuf>,
    /// What to tune for. Candidates are taken to be in tokens already (tokenize=none).
    #[arg(long, default_value = "bleu", value_name = "METRIC")]
    metric: String,
    /// Initial weights, `name value` a line [default: all 0].
    #[arg(long, value_name = "FILE")]
    init: Option<PathBuf>,
    /// Directory of this run: made new, or gone on with.
    #[arg(long, value_name = "DIR")]
    run: PathBuf,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, common: &Common, talk: Talk) -> Done {
    let Algorithm::Mert(mert) = args.algorithm;
    let input = &mert.input;
    let seed = common.seed.unwrap_or(1);
    let metric: Metric = input.metric.parse().map_err(|e| Error::new(format!("{e}")))?;

    let files = read_references(&input.references)?;
    let references = text::by_segment(&files)?;
    let rows = read_nbest(&input.nbest)?;
    let initial = match &input.init {
        Some(path) => Weights::read(path)?,
        None => Weights::default(),
    };
    if let Some(path) = &input.init {
        check_names(&initial, path, rows.names.names(), talk)?;
    }
    let judge = Judge { metric: &metric, references: &references, file: &files[0].file, distinct: true };
    let lists = lists(&rows, &columns(&rows), Some(judge))?;

    let mut settings = Settings::default();
    settings.add("version", env!("CARGO_PKG_VERSION"));
    settings.add("algorithm", "mert");
    settings.add("restarts", mert.restarts);
    settings.add("seed", seed);
    settings.add("metric", &input.metric);
    settings.add("signature", metric.signature(Some(files.len()), ""));
    add_digests(&mut settings, "nbest", rows.files.iter().map(|f| (&f.name, &f.digest)));
    add_digests(&mut settings, "ref", files.iter().map(|f| (&f.file, &f.digest)));
    settings.add("init", initial_text(&initial));

    let owned = references.iter().map(|r| r.iter().map(ToString::to_string).collect()).collect();
    let source = FixedLists::new(lists, rows.names);
    let learner = LineSearch { metric: metric.clone(), restarts: mert.restarts, seed };
    let mut dir = RunDir::open(&input.run, settings, owned)?;
    let finished = dir.stopped().is_some();
    let mut show = |event: &Event| talk.say(&progress(event, &metric));
    let schedule = Schedule::default();
    let outcome =
        match tune(&source, &learner, &schedule, &metric, &initial, &mut dir, &Fleet(&Alone), &mut show) {
            Ok(outcome) => outcome,
            Err(e) => {
                dir.discard();
                return Err(e.into());
            }
        };
    if finished {
        talk.say(&format!("{} was finished before", input.run.display()));
    }
    let text = if input.json {
        result_json(&outcome, &metric, files.len())
    } else {
        format!(
            "{} {:.2} -> {:.2} ({})\nweights in {}\n",
            metric.name(),
            metric.shown(outcome.initial),
            metric.shown(outcome.score),
            metric.signature(Some(files.len()), ""),
            input.run.join("best.txt").display()
        )
    };
    write_out(None, text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// `iteration 0  BLEU 39.05  length 0.985  70,992 candidates (70,992 new)  change 0.0521  2.3 s`
fn progress(event: &Event, metric: &Metric) -> String {
    let mut line =
        format!("iteration {}  {} {:.2}", event.iteration, metric.name(), metric.shown(event.score));
    if let Some(ratio) = event.length_ratio {
        line += &format!("  length {ratio:.3}");
    }
    line += &format!("  {} candidates ({} new)", thousands(event.candidates), thousands(event.new));
    if let Some(change) = event.change {
        line += &format!("  change {change:.4}");
    }
    line + &format!("  {:.1} s", event.seconds)
}

fn result_json(outcome: &Outcome, metric: &Metric, references: usize) -> String {
    let weights: serde_json::Map<_, _> =
        outcome.weights.iter().map(|(n, v)| (n.to_owned(), json!(v))).collect();
    let value = json!({
        "algorithm": "mert",
        "iteration": outcome.iteration,
        "score": metric.shown(outcome.score),
        "initial": metric.shown(outcome.initial),
        "signature": metric.signature(Some(references), ""),
        "weights": weights,
        "stop": outcome.stop.text(),
    });
    format!("{value}\n")
}

fn add_digests<'a>(
    settings: &mut Settings,
    what: &str,
    files: impl Iterator<Item = (&'a String, &'a String)>,
) {
    let all: Vec<String> = files.map(|(name, digest)| format!("{name} {digest}")).collect();
    settings.add(what, all.join(", "));
}

/// The initial weights in one line: two files with the same content start the same run.
fn initial_text(weights: &Weights) -> String {
    let all: Vec<String> = weights.iter().map(|(n, v)| format!("{n} {v}")).collect();
    all.join(", ")
}
