//! The commands of the command line: parsing of flags, help, errors of usage, and what the commands share.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod align;
mod compare;
mod convert;
mod decode;
mod demo;
mod experiment;
mod extract;
mod generate;
mod help;
mod import;
mod lm;
mod loss;
mod mistakes;
mod oracle;
mod recipes;
mod report;
mod rerank;
mod score;
#[cfg(feature = "serve")]
mod serve;
mod surface;
mod table;
mod train;
mod translate;
mod tune;
mod words;

use crate::{
    interrupt, launch,
    talk::{Color, Talk},
};
use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand, error::ErrorKind};
use luthier::{
    core::{self, Error, FeatureKey, Weights},
    io::{AtomicFile, nbest::Rows, text::Lines},
    metric::Metric,
};
use std::{
    ffi::OsString,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};
use words::Words;

/// Tunes rerankers of n-best lists, and builds and tunes translation systems.
#[derive(Debug, Parser)]
#[command(name = "luthier", version, max_term_width = 100)]
#[command(
    after_help = "`luthier tune mert -h` prints the flags that most runs need, --help all flags.\nExit codes: 0 success, 1 no significant difference (compare), 2 error, 130 interrupted."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Flags of every command.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "General")]
pub(crate) struct Common {
    /// Number of threads (does not affect results) [default: all cores].
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), hide_short_help = true)]
    pub(crate) threads: Option<u16>,
    /// Random seed [default: 1; 12345 in compare, as in sacreBLEU].
    #[arg(long, global = true, value_name = "N", hide_short_help = true)]
    pub(crate) seed: Option<u64>,
    /// Print results, warnings and errors as JSON.
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) json: bool,
    /// Suppress progress output and warnings.
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Print details: files read, features, settings.
    #[arg(long, short, global = true, conflicts_with = "quiet", hide_short_help = true)]
    pub(crate) verbose: bool,
    /// When messages and help are coloured; auto obeys `NO_COLOR`.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_short_help = true)]
    pub(crate) color: Color,
    /// Report an error as one line of JSON; for programs that start this one.
    #[arg(long, global = true, hide = true)]
    pub(crate) json_errors: bool,
}

impl Common {
    /// How messages are printed.
    pub(crate) fn talk(&self) -> Talk {
        Talk {
            quiet: self.quiet || !launch::is_first(),
            verbose: self.verbose,
            json: self.json,
            color: self.color.on(&io::stderr()),
        }
    }

    /// How errors are printed.
    pub(crate) fn error_talk(&self) -> Talk {
        Talk { json: self.json || self.json_errors, ..self.talk() }
    }
}

#[derive(Debug, Subcommand)]
enum Verb {
    Tune(Box<tune::Args>),
    Rerank(rerank::Args),
    Oracle(oracle::Args),
    Surface(surface::Args),
    Loss(loss::Args),
    Score(score::Args),
    Compare(compare::Args),
    Report(Box<report::Args>),
    Experiment(Box<experiment::Args>),
    Train(train::Args),
    Decode(decode::Args),
    Translate(translate::Args),
    #[cfg(feature = "serve")]
    Serve(serve::Args),
    Import(import::Args),
    Align(align::Args),
    Extract(extract::Args),
    Lm(lm::Args),
    Table(table::Args),
    Generate(generate::Args),
    Demo(demo::Args),
    Convert(convert::Args),
    /// Print a completion script for a shell.
    Completions {
        /// Name of the shell.
        shell: clap_complete::Shell,
    },
    Man(help::ManArgs),
}

impl Verb {
    /// Whether the same command, typed again, resumes work that was interrupted.
    fn resumes(&self) -> bool {
        matches!(self, Verb::Tune(_) | Verb::Train(_) | Verb::Import(_) | Verb::Demo(_) | Verb::Experiment(_))
    }
}

/// The command line with its help pages.
pub(crate) fn command() -> Command {
    help::arrange(Cli::command())
}

/// Parses the words after the program's name. An error has been printed, and help too; its exit code is returned.
pub(crate) fn parse() -> Result<Cli, ExitCode> {
    let typed: Vec<OsString> = std::env::args_os().skip(1).collect();
    let Words { words, warnings } = Words::new(typed.iter().cloned());
    match parsed(&words) {
        Ok(cli) => {
            for warning in &warnings {
                cli.common.talk().warn(warning);
            }
            Ok(cli)
        }
        Err(e) => Err(usage(&e, &words)),
    }
}

fn parsed(words: &[OsString]) -> Result<Cli, clap::Error> {
    let words = std::iter::once(OsString::from("luthier")).chain(words.iter().cloned());
    let mut command = command();
    let matches = command.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches(&matches).map_err(|e| e.format(&mut command))
}

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
    let (common, talk) = (&cli.common, cli.common.talk());
    if !matches!(cli.verb, Verb::Tune(_) | Verb::Decode(_)) {
        launch::only_one(&verb_typed())?;
    }
    interrupt::listen(cli.verb.resumes(), cli.common.error_talk());
    match cli.verb {
        Verb::Tune(args) => tune::run(&args, common, talk),
        Verb::Rerank(args) => rerank::run(&args, common, talk),
        Verb::Convert(args) => convert::run(&args, common, talk),
        Verb::Score(args) => score::run(&args, common, talk),
        Verb::Compare(args) => compare::run(&args, common, talk),
        Verb::Oracle(args) => oracle::run(&args, common, talk),
        Verb::Loss(args) => loss::run(&args, common, talk),
        Verb::Surface(args) => surface::run(&args, common, talk),
        Verb::Generate(args) => generate::run(&args, common, talk),
        Verb::Align(args) => align::run(&args, common, talk),
        Verb::Extract(args) => extract::run(&args, common, talk),
        Verb::Table(args) => table::run(&args, common, talk),
        Verb::Import(args) => import::run(&args, common, talk),
        Verb::Decode(args) => decode::run(&args, common, talk),
        Verb::Translate(args) => translate::run(args, common, talk),
        #[cfg(feature = "serve")]
        Verb::Serve(args) => serve::run(&args, common, talk),
        Verb::Train(args) => train::run(&args, common, talk),
        Verb::Lm(args) => lm::run(&args, common, talk),
        Verb::Demo(args) => demo::run(&args, common, talk),
        Verb::Experiment(args) => experiment::run(&args, common, talk),
        Verb::Report(args) => report::run(&args, common, talk),
        Verb::Completions { shell } => completions(shell, common),
        Verb::Man(args) => help::man(&args, common, talk, command()),
    }
}

/// Prints a completion script.
fn completions(shell: clap_complete::Shell, common: &Common) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "luthier", &mut script);
    if common.json {
        let script = String::from_utf8_lossy(&script);
        print_json(&serde_json::json!({"shell": shell.to_string(), "script": script}))?;
    } else {
        write_out(None, &script)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails if standard output has JSON and is an output file as well.
pub(crate) fn check_json_output(common: &Common, output: Option<&Path>) -> Result<(), Error> {
    if common.json && output.is_some_and(|p| p.as_os_str() == "-") {
        return Err(Error::new("--json prints on standard output, and so does `-`")
            .hint("give a file, or leave --json out"));
    }
    Ok(())
}

/// Prints one line of JSON on standard output.
pub(crate) fn print_json(value: &serde_json::Value) -> Result<(), Failure> {
    write_out(None, format!("{value}\n").as_bytes())
}

/// Help and version go to standard output; a mistake is one line with what to type, and exit code 2.
fn usage(e: &clap::Error, words: &[OsString]) -> ExitCode {
    let color = color_typed(words);
    if matches!(e.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let page = e.render();
        let page = if color.on(&io::stdout()) { page.ansi().to_string() } else { page.to_string() };
        let _ = write_out(None, page.as_bytes());
        return ExitCode::SUCCESS;
    }
    // `luthier` without arguments prints the commands.
    if words.is_empty() {
        let _ = write_out(None, command().render_help().to_string().as_bytes());
        return ExitCode::from(2);
    }
    if launch::tells_usage() {
        let json = words::has_flag(words, "--json") || words::has_flag(words, "--json-errors");
        let talk = Talk { json, color: color.on(&io::stderr()), ..Talk::default() };
        talk.error(&mistakes::explain(e, &command(), words));
    }
    ExitCode::from(2)
}

/// What `--color` says where the rest of the words is not understood.
fn color_typed(words: &[OsString]) -> Color {
    let says = |value: &str| {
        let joined = words.iter().any(|w| *w == *format!("--color={value}"));
        joined || words.windows(2).any(|w| w[0] == "--color" && w[1] == value)
    };
    match (says("always"), says("never")) {
        (true, _) => Color::Always,
        (_, true) => Color::Never,
        _ => Color::Auto,
    }
}

/// What is wrong with some words after `luthier`.
pub(crate) fn misunderstood(words: &[String]) -> Option<String> {
    let words = Words::of(words).words;
    parsed(&words).err().map(|e| mistakes::explain(&e, &command(), &words).to_string())
}

/// `luthier tune mert` if that was typed, else `luthier`.
pub(crate) fn verb_typed() -> String {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let mut command = Cli::command();
    let mut typed = "luthier".to_owned();
    for word in words::command_of(&words).split(' ') {
        let Some(inner) = command.find_subcommand(word) else { break };
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
    // A file that does not exist yet is in a directory that does.
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
    if let Some(empty) = files.iter().find(|f| f.lines.is_empty()) {
        return Err(Error::in_file(&empty.file, "is empty, expected one reference per line"));
    }
    match files.iter().find(|f| looks_like_list(&f.lines[0])) {
        Some(list) => Err(Error::at(&list.file, 1, "found a line of an n-best list, expected a reference")
            .hint("give a text file with one reference per line; are lists and references swapped?")),
        None => Ok(files),
    }
}

/// Whether a line is of an n-best list in Moses' format, or a candidate in JSON.
fn looks_like_list(line: &str) -> bool {
    let mut fields = line.split("|||");
    let numbered = fields.next().is_some_and(|id| id.trim().parse::<u32>().is_ok());
    if numbered && fields.count() >= 2 {
        return true;
    }
    let candidate = ["text", "features", "candidates", "nbest"];
    line.starts_with('{')
        && serde_json::from_str::<serde_json::Value>(line)
            .is_ok_and(|v| candidate.iter().any(|k| v.get(k).is_some()))
}

/// Fails if no feature of the lists has a weight, and warns if some have none. Columns that the metric reads are not features.
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
    let shown = |names: &[&str]| {
        let more = if names.len() > 5 { ", …" } else { "" };
        names.iter().take(5).copied().collect::<Vec<_>>().join(", ") + more
    };
    if !missing.is_empty() && missing.len() == features().count() {
        let has: Vec<&str> = weights.iter().map(|w| w.0).collect();
        let has = if has.is_empty() { "no weights".to_owned() } else { shown(&has) };
        let message = format!("no weight for {}; the file has: {has}", shown(&missing));
        return Err(Error::in_file(file.to_string(), message)
            .hint("rename the weights, or give a file for the features of the lists"));
    }
    if !missing.is_empty() {
        talk.warn(&format!("no weight for {} in {file}: taken as 0", shown(&missing)));
    }
    Ok(())
}
