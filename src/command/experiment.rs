//! `luthier experiment`.

mod cell_pool;
mod claim;
mod judge;
mod plan;
mod show;
mod work;

use super::{Common, Done, write_out};
use crate::{subprocess::Rerun, talk::Talk};
use luthier::core::{Error, Result};
use luthier::io::{AtomicFile, WorkDir, WorkKind};
use plan::{Plan, Wishes};
use std::{
    cell::RefCell,
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};
use work::Experiment;

/// Compare tuning algorithms on systems, with settings, replicas and significance.
///
/// Trains the systems, tunes each of them with each algorithm, translates the test sets and writes results.md, results.tsv and
/// results.json: means and standard deviations over replicas, differences from a baseline with p-values, the tables of a
/// paper with our figures beside its own, and its claims with verdicts. Cells run in parallel as long as memory allows. Re-run the same command to resume;
/// cells that were running continue from their last iteration.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Experiment file (TOML), or one of watanabe2012, arun2007, cer2008, dreyer2015, claims.
    #[arg(value_name = "FILE")]
    plan: PathBuf,
    /// Output directory; created, or resumed if it exists [default: the experiment's name].
    #[arg(long, short, value_name = "DIR", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Directory of a tokenised corpus: train, dev and test in two languages, such as train.de and train.en [default:
    /// the file's, else a generated corpus].
    #[arg(long, value_name = "DIR", help_heading = "Input")]
    data: Option<PathBuf>,
    /// File name extensions of the corpus, source first [default: the file's, else de-en].
    #[arg(long, value_name = "FROM-TO", help_heading = "Input")]
    languages: Option<String>,
    /// Run the small version, in minutes instead of hours.
    #[arg(long, help_heading = "Cells")]
    quick: bool,
    /// Maximum number of iterations of all cells; cells that are truncated by it are marked.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Cells")]
    iterations: Option<u32>,
    /// Number of runs per cell, each with its own seed [default: the file's].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = "Cells")]
    replicas: Option<u32>,
    /// Run only the cell of this name, or all whose names contain it, besides the baseline; repeatable.
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new(), help_heading = "Cells")]
    only: Vec<String>,
    /// Number of cells to run in parallel [default: one per thread].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), help_heading = "Cells")]
    jobs: Option<u16>,
    /// Memory for all cells together, such as 4G [default: three quarters of the free memory].
    #[arg(long, value_name = "SIZE", value_parser = super::lm::bytes, help_heading = "Cells")]
    memory: Option<usize>,
    /// Print the experiment file and exit.
    #[arg(long, conflicts_with_all = ["output", "data", "languages", "quick", "iterations", "replicas", "only", "jobs", "memory"], help_heading = "Output")]
    show: bool,
}

/// Experiments that are shipped with the program.
const SHIPPED: [(&str, &str); 5] = [
    ("watanabe2012", include_str!("../../experiments/watanabe2012.toml")),
    ("arun2007", include_str!("../../experiments/arun2007.toml")),
    ("cer2008", include_str!("../../experiments/cer2008.toml")),
    ("dreyer2015", include_str!("../../experiments/dreyer2015.toml")),
    ("claims", include_str!("../../experiments/claims.toml")),
];

const KIND: WorkKind = WorkKind {
    file: "experiment.toml",
    what: "experiment",
    flag: "--output",
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
            let near = SHIPPED.iter().find(|s| name.len() > 2 && s.0.starts_with(&name));
            let e =
                Error::in_file(&name, format!("no such file, expected an experiment file or one of {known}"));
            match near {
                Some((near, _)) => e.hint(format!("did you mean {near}?")),
                None => e,
            }
        }
    })?;
    Ok((name, text))
}

/// Settings that all cells of an experiment share.
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
        if common.json {
            super::print_json(&serde_json::json!({"name": name, "text": text}))?;
        } else {
            write_out(None, text.as_bytes())?;
        }
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
    let out = args.output.clone().unwrap_or_else(|| {
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
    let warned = RefCell::new(BTreeSet::new());
    let check = |words: &[String]| {
        for warning in super::words::Words::of(words).warnings {
            if warned.borrow_mut().insert(warning.clone()) {
                talk.warn(&format!("{name}: {}", warning.replace("--", "")));
            }
        }
        super::misunderstood(words)
    };
    experiment.check_commands(&name, &check)?;
    let _lock = WorkDir::open(&out, &KIND, &spec, |_| true)?;
    let rerun = Rerun::new(common, talk)?;
    experiment.prepare(&rerun)?;
    let threads = common.threads.map_or_else(rayon::current_num_threads, usize::from);
    let limits = cell_pool::Limits {
        threads,
        jobs: args.jobs.map_or(threads, usize::from),
        memory: args.memory.map_or_else(cell_pool::free_memory, |m| m as u64),
    };
    let failed = experiment.work(&rerun, &limits, talk)?;
    let results = show::Results::new(&experiment, clock.elapsed().as_secs_f64());
    let (markdown, json) = (results.markdown(&out)?, results.json()?);
    for (file, text) in [("results.md", &markdown), ("results.tsv", &results.tsv()), ("results.json", &json)]
    {
        AtomicFile::write_all_to(&out.join(file), text.as_bytes())?;
    }
    write_out(None, if common.json { &json } else { &markdown }.as_bytes())?;
    talk.say(&format!("{:.1} s; results are in {}", clock.elapsed().as_secs_f64(), out.display()));
    match failed.as_slice() {
        [] => Ok(ExitCode::SUCCESS),
        [first, rest @ ..] => {
            let more =
                if rest.is_empty() { String::new() } else { format!(" (and {} more cells)", rest.len()) };
            Err(Error::new(format!("{first}{more}")).hint("re-run the same command to try again").into())
        }
    }
}
