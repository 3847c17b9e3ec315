//! `luthier experiment`.

mod cell_pool;
mod plan;
mod show;
mod work;

use super::{Common, Done, write_out};
use crate::{subprocess::Rerun, talk::Talk};
use luthier::core::{Error, Result};
use luthier::io::{AtomicFile, WorkDir, WorkKind};
use plan::{Plan, Wishes};
use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};
use work::Experiment;

/// Compare tuners: systems × algorithms × settings × replicas, with significance.
///
/// Trains the systems, tunes each of them with each algorithm, translates the test sets and writes results.md, results.tsv and
/// results.json: means and spreads over replicas, differences from a baseline with their p-values, and the tables of a paper
/// with our figures beside its own. Cells run side by side as long as memory allows. The same command again goes on where it
/// was stopped; only cells that were running lose anything, and those go on from their last iteration.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    /// A file in TOML, or one of watanabe2012, arun2007, cer2008, dreyer2015.
    #[arg(value_name = "FILE")]
    plan: PathBuf,
    /// Directory that everything goes to [default: the plan's name].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// A corpus of your own, in tokens: train, dev and test, each in two languages (train.de, train.en and so on)
    /// [default: what the file says, else a generated one].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The endings of its files, source first [default: what the file says, else de-en].
    #[arg(long, value_name = "FROM-TO")]
    languages: Option<String>,
    /// The small version: minutes, not hours.
    #[arg(long)]
    quick: bool,
    /// Iterations at most, in all cells; cells that were to have more say so.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    iterations: Option<u32>,
    /// Runs of each cell with seeds of their own [default: what the file says].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    replicas: Option<u32>,
    /// Only the cell with this name, or else those whose names contain it; may be repeated. The baseline is always there.
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    only: Vec<String>,
    /// Cells at the same time [default: one for each thread].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Memory for all cells together, such as 4G [default: three quarters of what is free].
    #[arg(long, value_name = "SIZE", value_parser = super::lm::bytes)]
    memory: Option<usize>,
    /// Print the file and do nothing.
    #[arg(long, conflicts_with_all = ["out", "data", "languages", "quick", "iterations", "replicas", "only", "jobs", "memory", "json"])]
    show: bool,
    /// Print results.json instead of results.md.
    #[arg(long)]
    json: bool,
}

const AFTER: &str = "\
A file has `title`, `baseline`, [[systems]] with `name` and flags of train, [[algorithms]] with `name`, `command` and flags of
tune, and [[tables]] with columns and rows. `luthier experiment cer2008 --show` prints one to begin with; docs/experiments.md has all keys.";

/// What comes with the program.
const SHIPPED: [(&str, &str); 4] = [
    ("watanabe2012", include_str!("../../experiments/watanabe2012.toml")),
    ("arun2007", include_str!("../../experiments/arun2007.toml")),
    ("cer2008", include_str!("../../experiments/cer2008.toml")),
    ("dreyer2015", include_str!("../../experiments/dreyer2015.toml")),
];

const KIND: WorkKind = WorkKind {
    file: "experiment.toml",
    what: "experiment",
    flag: "--out",
    parts: &["corpus", "text", "systems", "cells"],
};

/// The file's name and content: a file that is there goes before a shipped one.
fn read(path: &Path) -> Result<(String, String)> {
    let name = path.display().to_string();
    let shipped = SHIPPED.iter().find(|(known, _)| *known == name).filter(|_| !path.is_file());
    if let Some((_, text)) = shipped {
        return Ok((name, (*text).to_owned()));
    }
    let known = SHIPPED.map(|s| s.0).join(", ");
    let text = fs::read_to_string(path).map_err(|e| {
        let shown = Error::io(&name, "open it", &e);
        if path.exists() {
            shown
        } else {
            Error::in_file(&name, format!("no such file; shipped are {known}"))
        }
    })?;
    Ok((name, text))
}

/// What all cells of an experiment have in common.
#[derive(serde::Serialize, serde::Deserialize)]
struct ExperimentSpec {
    format: u32,
    version: String,
    seed: String,
    /// Digests of the text.
    text: String,
}

pub(crate) fn run(args: &Args, common: &Common, talk: Talk) -> Done {
    let clock = Instant::now();
    let (name, text) = read(&args.plan)?;
    if args.show {
        write_out(None, text.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let wishes = Wishes {
        data: args.data.clone(),
        languages: args.languages.clone(),
        quick: args.quick,
        iterations: args.iterations,
        replicas: args.replicas,
    };
    let plan = Plan::parse(&name, &text, &wishes)?;
    let stem = || PathBuf::from(args.plan.file_stem().unwrap_or(args.plan.as_os_str()));
    let out = args.out.clone().unwrap_or_else(|| {
        let stem = stem();
        if args.quick { PathBuf::from(format!("{}-quick", stem.display())) } else { stem }
    });
    let seed = common.seed.unwrap_or(1);
    let mut experiment = Experiment::new(&plan, &wishes, &args.only, &out, seed)?;
    let spec = ExperimentSpec {
        format: 2,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seed: seed.to_string(),
        text: experiment.check_corpus()?,
    };
    experiment.check_commands(&name, &super::misunderstood)?;
    let _lock = WorkDir::open(&out, &KIND, &spec, |_| true)?;
    let again = Rerun::new(common, talk)?;
    experiment.prepare(&again)?;
    let threads = common.threads.map_or_else(rayon::current_num_threads, usize::from);
    let limits = cell_pool::Limits {
        threads,
        jobs: args.jobs.map_or(threads, usize::from),
        memory: args.memory.map_or_else(cell_pool::free_memory, |m| m as u64),
    };
    let failed = experiment.work(&again, &limits, talk)?;
    let results = show::Results::new(&experiment, clock.elapsed().as_secs_f64());
    let (markdown, json) = (results.markdown(&out)?, results.json()?);
    for (file, text) in [("results.md", &markdown), ("results.tsv", &results.tsv()), ("results.json", &json)]
    {
        AtomicFile::write_all_to(&out.join(file), text.as_bytes())?;
    }
    write_out(None, if args.json { &json } else { &markdown }.as_bytes())?;
    talk.say(&format!("{:.1} s; everything is in {}", clock.elapsed().as_secs_f64(), out.display()));
    match failed.as_slice() {
        [] => Ok(ExitCode::SUCCESS),
        [first, rest @ ..] => {
            let more =
                if rest.is_empty() { String::new() } else { format!(" (and {} more cells)", rest.len()) };
            Err(Error::new(format!("{first}{more}")).hint("the same command tries again").into())
        }
    }
}
