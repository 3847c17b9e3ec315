//! Help pages: commands in groups, flags in sections, a short page for `-h` and a whole one for `--help`, and man pages.

use super::{Common, Done, write_out};
use crate::talk::Talk;
use clap::{Arg, ArgAction, Command};
use luthier::core::Error;
use serde_json::json;
use std::{fmt::Write as _, path::PathBuf, process::ExitCode};

/// Commands in groups, in the order of the top-level help.
pub(crate) const GROUPS: &[(&str, &[&str])] = &[
    ("Tune", &["tune", "rerank", "oracle", "surface", "loss"]),
    ("Evaluate", &["score", "compare", "report", "experiment"]),
    (
        "Build",
        &["train", "decode", "translate", "serve", "import", "align", "extract", "lm", "table", "generate"],
    ),
    ("Other", &["demo", "convert", "completions", "man", "help"]),
];

/// Sections of flags in their order; those that are not named come before the held-out sets.
const SECTIONS: &[&str] = &["Input", "Metric", "Run", "Server", "Output"];
/// Sections after the algorithm's own ones.
const LATER: &[&str] = &[
    "Held-out sets",
    "Sentence BLEU",
    "Minimiser",
    "Online learning",
    "Decoder",
    "With a decoder",
    "Moses",
    "Forests",
    "Features",
    "Search",
    "General",
];

/// Flags on the short page of a command, by their ids. A command that is not named shows all of its flags.
const SHORT: &[(&str, &[&str])] = &[
    (
        "tune",
        &[
            "nbest",
            "references",
            "model",
            "source",
            "metric",
            "run",
            "init",
            "iterations",
            "select_nbest",
            "select_ref",
            "test_nbest",
            "test_ref",
            "holdout",
            "folds",
            "list",
            // of algorithms
            "strategy",
            "restarts",
            "fix",
            "pairs",
            "c",
            "constraints",
            "optimized",
            "loss",
            "eta0",
            "gamma",
        ],
    ),
    (
        "loss",
        &["nbest", "references", "metric", "tokenize", "weights", "c", "gamma", "lambda", "pairs", "loss"],
    ),
    ("oracle", &["nbest", "nbest_format", "per_source", "references", "metric", "tokenize", "output"]),
    ("surface", &["nbest", "references", "metric", "tokenize", "weights", "direction", "svg"]),
    (
        "rerank",
        &["nbest", "nbest_format", "per_source", "score_file", "weights", "output", "nbest_out", "top"],
    ),
    ("decode", &["model", "weights", "input", "output", "nbest", "nbest_out", "pop_limit"]),
    (
        "train",
        &[
            "source",
            "target",
            "raw",
            "corpus",
            "source_lang",
            "target_lang",
            "model",
            "kind",
            "alignment",
            "lm",
            "order",
            "max_words",
        ],
    ),
    ("report", &["runs", "output", "title", "nbest", "references", "source"]),
    (
        "experiment",
        &["plan", "output", "data", "languages", "quick", "iterations", "replicas", "only", "jobs", "show"],
    ),
    ("demo", &["output", "data", "languages", "serve"]),
    (
        "serve",
        &[
            "model",
            "weights",
            "listen",
            "max_body",
            "max_sentences",
            "queue",
            "timeout",
            "grace",
            "pop_limit",
        ],
    ),
];

/// Names and settings of metrics.
pub(crate) const METRICS: &str = "\
Metrics are NAME or NAME:SETTING,SETTING, such as bleu:order=2,lowercase.
Values shown are defaults; settings without a value are off unless named.
  bleu         order=4, lowercase, effective-order, smooth-value=V,
               tokenize=none (score and compare: 13a; also intl, zh, char),
               smooth=exp (also floor, add-k, none)
  chrf         char-order=6, word-order=0, beta=2, whitespace, lowercase;
               chrf++ is chrf:word-order=2
  ter          case (case-sensitive), normalized (tercom's normalisation),
               no-punct (ignore punctuation)
  wer, cer     lowercase
  column:NAME  mean of a number that comes with each candidate
  '0.5*bleu+0.5*ter'
               weighted sum, here 0.5·BLEU − 0.5·TER: error rates count
               negatively. BLEU, chrF and error rates are 0 to 100, columns
               are not rescaled: give them a factor, as in 50*column:comet";

/// Arranges all help pages of the command line.
pub(crate) fn arrange(command: Command) -> Command {
    let help = Arg::new("help")
        .short('h')
        .long("help")
        .action(ArgAction::Help)
        .global(true)
        .help("Print help: a summary with -h, everything with --help")
        .help_heading("General");
    let version = Arg::new("version")
        .short('V')
        .long("version")
        .action(ArgAction::Version)
        .help("Print the version")
        .hide_short_help(true)
        .help_heading("General");
    let command = command.disable_help_flag(true).disable_version_flag(true).arg(help).arg(version);
    let template = format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{}General:\n{{options}}{{after-help}}",
        groups(&command)
    );
    let names: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    let command = command.help_template(template);
    names.iter().fold(command, |all, name| all.mut_subcommand(name, |c| page(c, name)))
}

/// The commands in their groups, a line each.
fn groups(command: &Command) -> String {
    let mut text = String::new();
    for (group, names) in GROUPS {
        let _ = writeln!(text, "{group}:");
        for name in *names {
            let about = match command.find_subcommand(name) {
                Some(found) => found.get_about().map(ToString::to_string).unwrap_or_default(),
                None if *name == "help" => "Print help of a command".to_owned(),
                // A command of a cargo feature that is off.
                None => continue,
            };
            let _ = writeln!(text, "  {name:<12} {about}");
        }
        text.push('\n');
    }
    text
}

/// Arranges the pages of a command and of its subcommands.
fn page(command: Command, name: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    let command = names.iter().fold(command, |all, sub| all.mut_subcommand(sub, |c| page(c, name)));
    let shown = SHORT.iter().find(|s| s.0 == name).map(|s| s.1);
    let hides = |arg: &Arg| shown.is_some_and(|ids| !ids.contains(&arg.get_id().as_str()));
    let takes_metric = command.get_arguments().any(|a| a.get_id() == "metric");
    let command = command.disable_help_subcommand(true).mut_args(|arg| {
        let hide = hides(&arg);
        let bare = arg.get_help_heading().is_none() && !arg.is_positional();
        if bare { arg.help_heading("Options") } else { arg }.hide_short_help(hide)
    });
    let long = match command.get_after_long_help() {
        Some(own) => own.to_string(),
        None if takes_metric => METRICS.to_owned(),
        None => String::new(),
    };
    command.after_help(MORE).after_long_help(long)
}

/// The end of every short page.
const MORE: &str = "--help prints all flags.";

/// The place of a section among the others.
fn rank(section: Option<&str>) -> usize {
    let Some(section) = section else { return 0 };
    let place = |all: &[&str]| all.iter().position(|s| *s == section);
    place(SECTIONS).or_else(|| place(LATER).map(|p| SECTIONS.len() + 1 + p)).unwrap_or(SECTIONS.len())
}

/// Flags in the order of their sections.
pub(crate) fn in_sections(mut args: Vec<Arg>) -> Vec<Arg> {
    args.sort_by_key(|a| rank(a.get_help_heading()));
    args.into_iter().enumerate().map(|(i, a)| a.display_order(i)).collect()
}

/// Print the manual page luthier(1), or write the pages of all commands.
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Output directory for the pages of all commands: luthier.1, luthier-tune.1, luthier-tune-mert.1 and so on.
    #[arg(long, short, value_name = "DIR", help_heading = "Output")]
    output: Option<PathBuf>,
}

/// Shows flags that short help pages hide: manual pages have all of them.
fn show_all(command: Command) -> Command {
    let long = command.get_after_long_help().map(ToString::to_string).filter(|h| !h.is_empty());
    let command = command.mut_args(|a| a.hide_short_help(false)).after_help(None).mut_subcommands(show_all);
    match long {
        Some(long) => command.after_long_help(long),
        None => command.after_long_help(None),
    }
}

/// Appends the file names of the manual pages of a command and of its subcommands.
fn page_names(command: &Command, name: &str, pages: &mut Vec<String>) {
    pages.push(format!("{name}.1"));
    for sub in command.get_subcommands() {
        page_names(sub, &format!("{name}-{}", sub.get_name()), pages);
    }
}

/// `luthier man`.
pub(crate) fn man(args: &ManArgs, common: &Common, talk: Talk, command: Command) -> Done {
    let command = show_all(command);
    let Some(dir) = &args.output else {
        let mut page = Vec::new();
        let written = clap_mangen::Man::new(command).render(&mut page);
        written.map_err(|e| Error::io("<stdout>", "write to it", &e))?;
        let text = String::from_utf8_lossy(&page);
        let text = if common.json {
            format!("{}\n", json!({"page": "luthier.1", "text": text}))
        } else {
            text.into_owned()
        };
        write_out(None, text.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    };
    let failed = |e| Error::io(dir.display().to_string(), "write manual pages there", &e);
    std::fs::create_dir_all(dir).map_err(failed)?;
    let mut pages = Vec::new();
    page_names(&command, "luthier", &mut pages);
    clap_mangen::generate_to(command, dir).map_err(failed)?;
    if common.json {
        write_out(None, format!("{}\n", json!({"output": dir, "pages": pages})).as_bytes())?;
    }
    talk.say(&format!("{} manual pages in {}", pages.len(), dir.display()));
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::command;

    /// All commands with subcommands, each with its words.
    fn all(command: &Command, words: &str, found: &mut Vec<(String, Command)>) {
        found.push((words.to_owned(), command.clone()));
        for sub in command.get_subcommands().filter(|s| s.get_name() != "help") {
            all(sub, &format!("{words} {}", sub.get_name()), found);
        }
    }

    #[test]
    fn every_command_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|g| g.1).copied().collect();
        let command = command();
        let mut names: Vec<&str> = command.get_subcommands().map(Command::get_name).chain(["help"]).collect();
        grouped.sort_unstable();
        names.sort_unstable();
        assert_eq!(grouped, names);
    }

    #[test]
    fn short_pages_fit_a_screen() {
        let mut root = command().term_width(100);
        root.build();
        let mut found = Vec::new();
        all(&root, "luthier", &mut found);
        assert!(found.len() > 40);
        for (words, mut command) in found {
            let page = command.render_help().to_string();
            assert!(page.lines().count() <= 42, "{words} -h has {} lines:\n{page}", page.lines().count());
            assert!(
                page.lines().all(|l| l.chars().count() <= 100 || l.starts_with("Usage:")),
                "{words} -h is wider than 100 columns:\n{page}"
            );
        }
    }

    #[test]
    fn flags_of_short_pages_exist() {
        let root = command();
        for (name, ids) in SHORT {
            let mut found = Vec::new();
            all(root.find_subcommand(name).unwrap(), name, &mut found);
            for id in *ids {
                let known =
                    |c: &Command| c.get_arguments().chain(root.get_arguments()).any(|a| a.get_id() == id);
                assert!(found.iter().any(|(_, c)| known(c)), "{name} has no flag {id}");
            }
        }
    }

    #[test]
    fn long_page_of_mert_begins_with_inputs_metric_run() {
        let mut root = command();
        root.build();
        let mert = root.find_subcommand_mut("tune").unwrap().find_subcommand_mut("mert").unwrap();
        let page = mert.render_long_help().to_string();
        let heads: Vec<&str> = page.lines().filter(|l| !l.starts_with(' ') && l.ends_with(':')).collect();
        assert_eq!(heads[..4], ["Input:", "Metric:", "Run:", "MERT:"]);
        assert_eq!(heads.last(), Some(&"General:"));
        assert!(page.lines().all(|l| l.chars().count() <= 100), "{page}");
    }
}
