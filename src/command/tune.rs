//! `luthier tune`.

use super::{Common, Done, check_names, read_references, write_out};
use crate::{
    lists::ListArgs,
    talk::{Talk, thousands},
};
use clap::Subcommand;
use luthier::{
    core::{
        Error, Weights,
        nbest::{Rows, read_scores},
        text,
    },
    metric::Metric,
    tune::{
        Alone, Event, FixedLists, Fleet, Judge, LineSearch, Outcome, RunDir, Schedule, Settings, columns,
        lists, run as tune,
    },
};
use serde_json::json;
use std::{path::PathBuf, process::ExitCode, time::Instant};

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
    #[command(flatten)]
    nbest: ListArgs,
    /// References, one segment a line; repeat it for several. Not needed for columns.
    #[arg(long = "ref", num_args = 1.., value_name = "FILE")]
    references: Vec<PathBuf>,
    /// BLEU statistics of Moses' extractor instead of references, one file per feature file in --nbest.
    #[arg(long, num_args = 1.., value_name = "FILE", conflicts_with_all = ["references", "metric"])]
    moses_scores: Vec<PathBuf>,
    /// What to tune for. Candidates are taken to be in tokens already (tokenize=none).
    #[arg(long, short, default_value = "bleu", value_name = "METRIC")]
    metric: String,
    /// Initial weights: `name value` a line, or a Moses configuration [default: all 0].
    #[arg(long, value_name = "FILE")]
    init: Option<PathBuf>,
    /// Directory of this run: made new, or gone on with.
    #[arg(long, value_name = "DIR")]
    run: PathBuf,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// Everything that was read, checked before any work begins.
struct Loaded {
    source: FixedLists,
    initial: Weights,
    references: Vec<Vec<String>>,
    /// How many references a segment has; none without.
    reference_count: Option<usize>,
    settings: Settings,
}

fn load(input: &Input, metric: &Metric, talk: Talk) -> Result<Loaded, Error> {
    let clock = Instant::now();
    if input.references.is_empty() && input.moses_scores.is_empty() && metric.needs_references() {
        return Err(Error::new("no references: give them with --ref FILE"));
    }
    let files = read_references(&input.references)?;
    let rows = input.nbest.read()?;
    let mut references = text::by_segment(&files)?;
    if files.is_empty() {
        references = vec![Vec::new(); rows.by_segment(input.nbest.allow_missing)?.len()];
    }
    let mut initial = match &input.init {
        Some(path) => Weights::read(path)?,
        None => Weights::default(),
    };
    if let Some(path) = &input.init {
        check_names(&initial, path, rows.names.names(), talk)?;
        // Moses' unknown-word penalty, for one: what no candidate has cannot be tuned.
        initial.retain(|key| rows.names.get(key).is_some());
    }
    let stats = moses_scores(&input.moses_scores, &rows)?;
    let file = files.first().map_or("the n-best list", |f| f.file.as_str());
    let mut judge = Judge::new(metric, &references, file);
    judge.allow_missing = input.nbest.allow_missing;
    judge.given = (!input.moses_scores.is_empty()).then_some(&stats[..]);
    let lists = lists(&rows, &columns(&rows, Some(metric)), Some(judge))?;
    let distinct = lists.iter().map(|l| l.k).sum();
    talk.say(&format!(
        "read {} candidates, {} of them different, in {:.2} s",
        thousands(rows.len()),
        thousands(distinct),
        clock.elapsed().as_secs_f64()
    ));

    let mut settings = Settings::default();
    settings.add("metric", &input.metric);
    settings.add("signature", metric.signature(Some(files.len()), ""));
    add_digests(&mut settings, "nbest", rows.files.iter().map(|f| (&f.name, &f.digest)));
    add_digests(&mut settings, "ref", files.iter().map(|f| (&f.file, &f.digest)));
    settings.add("init", initial_text(&initial));
    Ok(Loaded {
        source: FixedLists::new(lists, rows.names.clone()),
        initial,
        references: references.iter().map(|r| r.iter().map(ToString::to_string).collect()).collect(),
        reference_count: Some(files.len()),
        settings,
    })
}

/// Statistics of every row, from files that go with the feature files.
fn moses_scores(paths: &[PathBuf], rows: &Rows) -> Result<Vec<f32>, Error> {
    let mut stats = Vec::new();
    let mut row = 0;
    for path in paths {
        for (segment, numbers) in read_scores(path)? {
            if row >= rows.len() || rows.segment(row) != segment {
                let message = format!("candidate {row} is of segment {segment}, elsewhere than in --nbest");
                return Err(Error::in_file(path.display().to_string(), message).hint(
                    "give the score files that were written with the feature files, in the same order",
                ));
            }
            stats.extend(numbers);
            row += 1;
        }
    }
    match paths.last() {
        Some(last) if row < rows.len() => {
            let message = format!("statistics of {row} candidates for {}", rows.len());
            Err(Error::in_file(last.display().to_string(), message)
                .hint("one --moses-scores file is missing"))
        }
        _ => Ok(stats),
    }
}

pub(crate) fn run(args: Args, common: &Common, talk: Talk) -> Done {
    let Algorithm::Mert(mert) = args.algorithm;
    let input = &mert.input;
    let seed = common.seed.unwrap_or(1);
    let metric: Metric = input.metric.parse().map_err(|e| Error::new(format!("{e}")))?;
    let loaded = load(input, &metric, talk)?;
    let mut settings = Settings::default();
    settings.add("version", env!("CARGO_PKG_VERSION"));
    settings.add("algorithm", "mert");
    settings.add("restarts", mert.restarts);
    settings.add("seed", seed);
    settings.extend(loaded.settings);
    let learner = LineSearch { metric: metric.clone(), restarts: mert.restarts, seed };
    let mut dir = RunDir::open(&input.run, settings, loaded.references)?;
    if dir.stopped().is_some() {
        talk.say(&format!("{} was finished before", input.run.display()));
    }
    let mut show = |event: &Event| talk.say(&progress(event, &metric));
    let (source, initial, fleet) = (&loaded.source, &loaded.initial, Fleet(&Alone));
    let schedule = Schedule::default();
    let outcome = match tune(source, &learner, &schedule, &metric, initial, &mut dir, &fleet, &mut show) {
        Ok(outcome) => outcome,
        Err(e) => {
            dir.discard();
            return Err(e.into());
        }
    };
    let signature = metric.signature(loaded.reference_count, "");
    let text = if input.json {
        result_json(&outcome, &metric, &signature)
    } else {
        format!(
            "{} {:.2} -> {:.2} ({signature})\nweights in {}\n",
            metric.name(),
            metric.shown(outcome.initial),
            metric.shown(outcome.score),
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

fn result_json(outcome: &Outcome, metric: &Metric, signature: &str) -> String {
    let weights: serde_json::Map<_, _> =
        outcome.weights.iter().map(|(n, v)| (n.to_owned(), json!(v))).collect();
    let value = json!({
        "algorithm": "mert",
        "iteration": outcome.iteration,
        "score": metric.shown(outcome.score),
        "initial": metric.shown(outcome.initial),
        "signature": signature,
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
