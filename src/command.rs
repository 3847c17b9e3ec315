//! The verbs: what was typed, and what it means.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod align;
mod compare;
mod convert;
mod decode;
mod demo;
mod experiment;
mod extract;
mod generate;
mod import;
mod lm;
mod loss;
mod oracle;
mod recipes;
mod report;
mod rerank;
mod score;
mod surface;
mod table;
mod train;
mod tune;

use crate::{launch, talk::Talk};
use clap::{CommandFactory, Parser, Subcommand, error::ContextKind, error::ErrorKind};
use luthier::{
    core::{self, Error, FeatureKey, Weights},
    io::{AtomicFile, nbest::Rows, text::Lines},
    metric::Metric,
};
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Builds translation models, and tunes the weights of anything that scores n-best lists with a linear model.
#[derive(Debug, Parser)]
#[command(name = "luthier", version, max_term_width = 100, disable_help_subcommand = true)]
#[command(after_help = "Exit codes: 0 done, 1 the answer is no, 2 error.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Settings of every verb.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Common {
    /// Threads; results are the same for any number [default: all cores, shared with other processes of a job].
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Seed of all random choices [default: 1; compare: 12345, sacreBLEU's].
    #[arg(long, global = true, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Say nothing but errors.
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Report an error as one line of JSON; for programs that start this one.
    #[arg(long, global = true, hide = true)]
    pub(crate) json_errors: bool,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Learn weights from n-best lists and references.
    Tune(Box<tune::Args>),
    /// Pick the best candidate of each segment under given weights.
    Rerank(rerank::Args),
    /// Rewrite n-best lists in another dialect.
    Convert(convert::Args),
    /// Score translations against references.
    Score(score::Args),
    /// Test whether systems differ by more than chance.
    Compare(compare::Args),
    /// The best and worst possible choice from n-best lists.
    Oracle(oracle::Args),
    /// Value and gradient of what a tuner minimises.
    Loss(loss::Args),
    /// The score along a line through given weights.
    Surface(surface::Args),
    Generate(generate::Args),
    Align(align::Args),
    Extract(extract::Args),
    Table(table::Args),
    Train(train::Args),
    Decode(decode::Args),
    Import(import::Args),
    /// Estimate, compile and query language models.
    Lm(lm::Args),
    Demo(demo::Args),
    Experiment(Box<experiment::Args>),
    Report(Box<report::Args>),
    /// Print a completion script for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

/// What a metric may be called.
const METRICS_HELP: &str = "\
Metrics, each with its settings after a colon:
  bleu        order=4, tokenize=13a|intl|zh|char|none, smooth=exp|floor|add-k|none, smooth-value=V,
              effective-order, lowercase
  chrf        char-order=6, word-order=0, beta=2, whitespace, lowercase; chrf++ is chrf:word-order=2
  ter         case, normalized, no-punct
  wer, cer    lowercase
  column:NAME the mean of a number that comes with each segment (JSON lines, or a number a line)
  0.5*bleu+0.5*chrf  a weighted sum; error rates count negatively";

/// Why a command ended early.
pub(crate) enum Failure {
    /// An error to show.
    Error(Error),
    /// The reader of our standard output went away.
    Gone,
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Failure::Error(e)
    }
}

/// The threads that a command works on: as many as were asked for, else all cores.
pub(crate) fn thread_pool(common: &Common) -> Result<rayon::ThreadPool, Error> {
    let n = common.threads.map(usize::from).or_else(launch::threads);
    rayon::ThreadPoolBuilder::new()
        .num_threads(n.unwrap_or(0))
        .stack_size(STACK)
        .build()
        .map_err(|e| Error::new(format!("cannot start threads: {e}")))
}

/// Bytes of stack of a thread: as much as a main thread usually has.
const STACK: usize = 8 << 20;

/// What a command returns.
pub(crate) type Done = Result<ExitCode, Failure>;

pub(crate) fn run(cli: Cli) -> Done {
    let talk = Talk { quiet: cli.common.quiet || !launch::is_first() };
    if !matches!(cli.verb, Verb::Tune(_) | Verb::Decode(_)) {
        launch::only_one(&verb_typed())?;
    }
    match cli.verb {
        Verb::Tune(args) => tune::run(&args, &cli.common, talk),
        Verb::Rerank(args) => rerank::run(&args, talk),
        Verb::Convert(args) => convert::run(&args, talk),
        Verb::Score(args) => score::run(&args, talk),
        Verb::Compare(args) => compare::run(&args, &cli.common, talk),
        Verb::Oracle(args) => oracle::run(&args, &cli.common),
        Verb::Loss(args) => loss::run(&args, &cli.common, talk),
        Verb::Surface(args) => surface::run(&args, talk),
        Verb::Generate(args) => generate::run(&args, &cli.common, talk),
        Verb::Align(args) => align::run(&args, &cli.common, talk),
        Verb::Extract(args) => extract::run(&args, &cli.common, talk),
        Verb::Table(args) => table::run(&args, talk),
        Verb::Import(args) => import::run(&args, talk),
        Verb::Decode(args) => decode::run(&args, talk),
        Verb::Train(args) => train::run(&args, &cli.common, talk),
        Verb::Lm(args) => lm::run(&args, &cli.common, talk),
        Verb::Demo(args) => demo::run(&args, &cli.common, talk),
        Verb::Experiment(args) => experiment::run(&args, &cli.common, talk),
        Verb::Report(args) => report::run(&args, talk),
        Verb::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "luthier", &mut script);
            write_out(None, &script)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Help and version go to standard output; a mistake is one line with the nearest flag, and exit code 2.
pub(crate) fn usage(e: &clap::Error) -> ExitCode {
    if matches!(
        e.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        let _ = write_out(None, e.render().to_string().as_bytes());
        return if e.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
    }
    let line = mistake(e);
    if launch::tells_usage() {
        crate::talk::line(&format!("luthier: {line} (see {} --help)", verb_typed()));
    }
    ExitCode::from(2)
}

/// A mistake in one line, with the nearest flag.
fn mistake(e: &clap::Error) -> String {
    let text = e.render().to_string();
    let words: Vec<&str> = text
        .lines()
        .take_while(|l| !l.starts_with("Usage:") && !l.starts_with("For more"))
        .map(str::trim)
        .filter(|l| !l.is_empty() && !l.starts_with("tip:"))
        .collect();
    let mut line = words.join(" ").trim_start_matches("error: ").to_owned();
    let suggested =
        [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue];
    if let Some(nearest) = suggested.iter().find_map(|k| e.get(*k)) {
        line += &format!("; did you mean {nearest}?");
    }
    line
}

/// What is wrong with some words after `luthier`.
pub(crate) fn misunderstood(words: &[String]) -> Option<String> {
    let words = std::iter::once("luthier".to_owned()).chain(words.iter().cloned());
    Cli::try_parse_from(words).err().map(|e| mistake(&e))
}

/// `luthier tune` if that was typed, else `luthier`.
pub(crate) fn verb_typed() -> String {
    let mut typed = "luthier".to_owned();
    let mut command = Cli::command();
    for word in std::env::args().skip(1) {
        let Some(inner) = command.find_subcommand(&word) else { break };
        typed += &format!(" {word}");
        command = inner.clone();
    }
    typed
}

/// An error while writing, or no error if it was standard output and its reader has gone.
pub(crate) fn stdout_gone(standard: bool, e: Error) -> Done {
    if standard && e.kind() == core::ErrorKind::BrokenPipe { Err(Failure::Gone) } else { Err(e.into()) }
}

/// A candidate as one line of text: line ends inside it, which JSON allows, become blanks.
pub(crate) fn one_line(text: &str) -> String {
    text.replace("\r\n", " ").replace(['\n', '\r'], " ")
}

/// Data for a file, or for standard output: written whole in the end, and once by several processes.
pub(crate) fn write_out(path: Option<&Path>, bytes: &[u8]) -> Result<(), Failure> {
    if !launch::is_first() {
        return Ok(());
    }
    match path {
        Some(path) => Ok(AtomicFile::write_all_to(path, bytes)?),
        None => match io::stdout().write_all(bytes).and_then(|()| io::stdout().flush()) {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Err(Failure::Gone),
            Err(e) => Err(Error::io("<stdout>", "write to it", &e).into()),
            Ok(()) => Ok(()),
        },
    }
}

/// Refuses to write over what is read or written under another flag.
pub(crate) fn check_outputs(outputs: &[Option<&Path>], inputs: &[&Path]) -> Result<(), Error> {
    // A file that is not there yet has a directory that is.
    let whole = |p: &Path| {
        let beside = || {
            let parent = p.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Some(std::fs::canonicalize(parent).ok()?.join(p.file_name()?))
        };
        let found =
            std::fs::canonicalize(p).ok().or_else(|| if p.as_os_str() == "-" { None } else { beside() });
        found.unwrap_or_else(|| p.to_owned())
    };
    let regular = |p: &&Path| p.as_os_str() == "-" || !p.exists() || p.is_file();
    let shown: Vec<&Path> = outputs.iter().flatten().copied().filter(regular).collect();
    let outputs: Vec<PathBuf> = shown.iter().map(|p| whole(p)).collect();
    let clash = outputs.iter().enumerate().find(|(i, out)| {
        outputs[..*i].contains(out) || (out.as_os_str() != "-" && inputs.iter().any(|i| whole(i) == **out))
    });
    match clash {
        Some((k, _)) => Err(Error::in_file(shown[k].display().to_string(), "would be written over")
            .hint("it is also read, or written under another flag: give another name")),
        None => Ok(()),
    }
}

/// Reads reference files.
pub(crate) fn read_references(paths: &[PathBuf]) -> Result<Vec<Lines>, Error> {
    let files = paths.iter().map(|p| luthier::io::text::read_lines(p)).collect::<Result<Vec<_>, _>>()?;
    match files.iter().find(|f| f.lines.is_empty()) {
        Some(empty) => Err(Error::in_file(&empty.file, "is empty, expected one reference a line")),
        None => Ok(files),
    }
}

/// Tells about features without weight: none at all is a mistake, some are worth a word. What a metric reads is no
/// feature.
pub(crate) fn check_names(
    weights: &Weights,
    file: &Path,
    rows: &Rows,
    metric: Option<&Metric>,
    talk: Talk,
) -> Result<(), Error> {
    let read = metric.map_or(Vec::new(), Metric::columns);
    let features = || rows.names.names().iter().map(String::as_str).filter(|n| !read.contains(n));
    let missing: Vec<&str> = features().filter(|n| !weights.contains(FeatureKey::of(n))).collect();
    let file = file.display();
    if let Some(first) = missing.first().filter(|_| missing.len() == features().count()) {
        let has = weights.iter().next().map_or("nothing".to_owned(), |(n, _)| format!("{n} and the like"));
        return Err(Error::in_file(file.to_string(), format!("has no weight for {first}, but for {has}"))
            .hint("weights and n-best list must use the same feature names"));
    }
    if !missing.is_empty() {
        let some = missing.iter().take(5).copied().collect::<Vec<_>>().join(", ");
        let more = if missing.len() > 5 { ", …" } else { "" };
        talk.warn(&format!("{file} has no weight for {some}{more}: taken as 0"));
    }
    Ok(())
}

/// Keeps the weights of features that the lists have: Moses' unknown-word penalty, for one, is in none.
pub(crate) fn keep_features(weights: &mut Weights, rows: &Rows, metric: &Metric) {
    let read = metric.columns();
    weights.retain(|key| rows.names.get(key).is_some_and(|n| !read.contains(&n)));
}
