//! What is wrong with the words of a command line: the mistake and what to type, in one line.

use super::words::command_of;
use crate::subprocess::quoted;
use clap::{
    Arg, Command,
    error::{ContextKind, ContextValue, ErrorKind},
};
use luthier::{
    core::Error,
    metric::{Metric, edit_distance},
};
use std::{error::Error as _, ffi::OsString};

/// Explains an error of clap's.
pub(crate) fn explain(e: &clap::Error, root: &Command, words: &[OsString]) -> Error {
    let place = Place::new(root, words);
    let word = |kind| first(e, kind);
    let mistake = match e.kind() {
        ErrorKind::UnknownArgument if e.get(ContextKind::InvalidArg).is_none() => Error::new(rendered(e)),
        ErrorKind::UnknownArgument => place.unknown(&word(ContextKind::InvalidArg)),
        ErrorKind::InvalidSubcommand => place.unknown_command(&word(ContextKind::InvalidSubcommand)),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            place.no_command()
        }
        ErrorKind::MissingRequiredArgument => place.missing(&all(e, ContextKind::InvalidArg)),
        ErrorKind::InvalidValue => place.invalid(e),
        ErrorKind::ValueValidation => {
            let flag = flag_of(&word(ContextKind::InvalidArg));
            let reason = e.source().map(ToString::to_string).unwrap_or_default();
            let value = word(ContextKind::InvalidValue);
            let reason = plain(&reason);
            let mark = if reason.starts_with("expected") { "," } else { ":" };
            Error::new(format!("{flag} is `{value}`{mark} {reason}"))
        }
        ErrorKind::ArgumentConflict => {
            let (a, others) = (flag_of(&word(ContextKind::InvalidArg)), all(e, ContextKind::PriorArg));
            if a.is_empty() {
                return Error::new(rendered(e));
            }
            if others.is_empty() || others.iter().any(|o| flag_of(o) == a) {
                return Error::new(format!("{a} is given twice")).hint("give it once");
            }
            let others: Vec<String> = others.iter().map(|o| flag_of(o)).collect();
            let all = [std::slice::from_ref(&a), &others].concat();
            let decoder = ["--model", "--command"].iter().any(|d| all.iter().any(|f| f == d));
            let hint = if decoder && all.iter().any(|f| f == "--nbest") {
                "leave --nbest out to tune with a decoder, or --model (--command) and --source to tune on the lists"
            } else {
                "give one of them"
            };
            Error::new(format!("{a} and {} exclude each other", others.join(", "))).hint(hint)
        }
        _ => Error::new(rendered(e)),
    };
    // A wrong value says what is expected.
    let says_all = matches!(e.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue);
    if says_all || mistake.advice().is_some() {
        return mistake;
    }
    mistake.hint(format!("see `luthier {} -h`", place.typed).replace("  ", " "))
}

/// The mistake of a command without an algorithm.
pub(crate) fn no_algorithm(root: &Command) -> Error {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    Place::new(root, &words).no_command()
}

/// The command that was typed.
struct Place<'a> {
    root: &'a Command,
    command: &'a Command,
    /// Its words, such as `tune mert`.
    typed: String,
    /// The words after the program's name.
    words: &'a [OsString],
}

impl<'a> Place<'a> {
    fn new(root: &'a Command, words: &'a [OsString]) -> Self {
        let (mut command, mut typed) = (root, Vec::new());
        for word in command_of(words).split(' ') {
            let Some(inner) = command.find_subcommand(word) else { break };
            typed.push(word.to_owned());
            command = inner;
        }
        Place { root, command, typed: typed.join(" "), words }
    }

    /// Whether an algorithm of `tune` is missing.
    fn lacks_algorithm(&self) -> bool {
        self.typed == "tune" || self.typed == "loss"
    }

    fn algorithms(&self) -> String {
        let names: Vec<&str> = self.command.get_subcommands().map(Command::get_name).collect();
        names.join(", ")
    }

    /// The mistake of a command without its algorithm or its subcommand.
    fn no_command(&self) -> Error {
        if self.lacks_algorithm() {
            let (usual, flags) = match self.typed.as_str() {
                "tune" => ("mert", "--nbest FILE --ref FILE --run DIR"),
                _ => ("apro", "--nbest FILE --ref FILE --weights FILE"),
            };
            let rest = self.after(&self.typed);
            let rest = if rest.is_empty() { flags.to_owned() } else { rest };
            let message =
                format!("no algorithm after `{}`, expected one of {}", self.typed, self.algorithms());
            return Error::new(message).hint(format!("type `luthier {} {usual} {rest}`", self.typed));
        }
        let names: Vec<&str> = self.command.get_subcommands().map(Command::get_name).collect();
        Error::new(format!("no command after `{}`, expected one of {}", self.name(), names.join(", ")))
    }

    /// The words after the first one that is `word`, quoted for a shell, without `--json`.
    fn after(&self, word: &str) -> String {
        let rest = self.words.iter().skip_while(|w| *w != word).skip(1).filter(|w| *w != "--json");
        rest.map(|w| quoted(&w.to_string_lossy())).collect::<Vec<_>>().join(" ")
    }

    /// The command as it is typed: `luthier` or `luthier lm`.
    fn name(&self) -> String {
        format!("luthier {}", self.typed).trim_end().to_owned()
    }

    fn unknown_command(&self, word: &str) -> Error {
        let names: Vec<&str> = self.command.get_subcommands().map(Command::get_name).collect();
        if self.lacks_algorithm() && word.parse::<Metric>().is_ok() {
            let command = format!("luthier {} {} --metric {word} {}", self.typed, names[0], self.after(word));
            let message =
                format!("`{word}` is a metric, expected one of the algorithms {}", names.join(", "));
            return Error::new(message).hint(format!("type `{}`", command.trim_end()));
        }
        let message = match self.typed.as_str() {
            "tune" | "loss" => {
                format!("`{word}` is not an algorithm of `{}`, which are {}", self.typed, names.join(", "))
            }
            "" => format!("`{word}` is not a command of luthier"),
            typed => format!("`{word}` is not a command of `{typed}`, which are {}", names.join(", ")),
        };
        with_nearest(Error::new(message), word, names.into_iter())
    }

    /// A flag that the command does not have, or a word that is no flag.
    fn unknown(&self, word: &str) -> Error {
        if !word.starts_with('-') {
            return self.stray(word);
        }
        if self.lacks_algorithm() {
            return self.no_command();
        }
        let flag = word.split('=').next().unwrap_or(word);
        let message =
            format!("`{}` has no flag {flag}", if self.typed.is_empty() { "luthier" } else { &self.typed });
        // The same flag elsewhere is the likeliest mistake.
        if let Some(e) = self.negative(word) {
            return e;
        }
        if let Some((verb, _)) = self.typed.split_once(' ')
            && let Some(parent) = self.root.find_subcommand(verb)
        {
            let others: Vec<&str> =
                parent.get_subcommands().filter(|c| has(c, flag)).map(Command::get_name).collect();
            if !others.is_empty() {
                let others: Vec<String> = others.iter().map(|o| format!("`{verb} {o}`")).collect();
                return Error::new(message).hint(format!("leave it out, or use {}", others.join(" or ")));
            }
        }
        let near = nearest(flag, longs(self.command).iter().map(String::as_str)).map(str::to_owned);
        if let Some(near) = near {
            return Error::new(message).hint(format!("did you mean {near}?"));
        }
        let others: Vec<&str> =
            self.root.get_subcommands().filter(|c| has(c, flag)).map(Command::get_name).collect();
        let own = self.typed.split(' ').next().unwrap_or_default();
        if others.contains(&own) {
            return Error::new(message).hint("give it after the subcommand");
        }
        match others.as_slice() {
            [] => Error::new(message),
            others => Error::new(message).hint(format!("it is a flag of {}", others.join(", "))),
        }
    }

    /// A negative number after a flag that takes none.
    fn negative(&self, word: &str) -> Option<Error> {
        word.parse::<f64>().ok()?;
        let at = self.words.iter().position(|w| w == word)?;
        let flag = self.words[..at].last()?.to_str().filter(|f| f.starts_with('-'))?;
        Some(Error::new(format!("{flag} is `{word}`, but negative numbers are not allowed")))
    }

    /// A word without a flag before it.
    fn stray(&self, word: &str) -> Error {
        if self.lacks_algorithm() {
            return self.unknown_command(word);
        }
        let message = format!("`{word}` stands where `{}` expects a flag", self.typed);
        let takes = |flag: &str| has(self.command, flag);
        let hint = if takes("--input") {
            "the text goes after --input"
        } else if takes("--nbest") && takes("--ref") {
            "n-best lists go after --nbest, references after --ref"
        } else if takes("--nbest") {
            "n-best lists go after --nbest"
        } else if takes("--source") {
            "the text goes after --source and --target"
        } else {
            return Error::new(message);
        };
        Error::new(message).hint(hint)
    }

    /// A flag for a decoder, where lists are given.
    fn needs_decoder(&self, missing: &[String]) -> Option<Error> {
        const SECTIONS: [&str; 4] = ["Decoder", "Search", "Features", "Held-out sets"];
        let decoder =
            |flag: &String| ["--source", "--model", "<--command"].iter().any(|f| flag.starts_with(f));
        let lists = self.words.iter().any(|w| w == "--nbest");
        if !lists || !missing.iter().any(decoder) {
            return None;
        }
        let typed = |a: &&Arg| {
            long(a).is_some_and(|l| self.words.iter().any(|w| w.to_str().is_some_and(|w| flag_of(w) == l)))
        };
        let of_decoder = |a: &&Arg| a.get_help_heading().is_some_and(|h| SECTIONS.contains(&h));
        let flags: Vec<String> = self
            .command
            .get_arguments()
            .filter(typed)
            .filter(of_decoder)
            .filter(|a| !a.get_id().as_str().ends_with("nbest"))
            .filter_map(long)
            .collect();
        let (first, all) = (flags.first()?, flags.join(" and "));
        let message =
            format!("{first} is for tuning with a decoder, but n-best lists are given with --nbest");
        Some(
            Error::new(message)
                .hint(format!("leave {all} out, or give --model and --source instead of --nbest")),
        )
    }

    /// Required flags that are not there, with their help.
    fn missing(&self, flags: &[String]) -> Error {
        if let Some(e) = self.needs_decoder(flags) {
            return e;
        }
        let describe = |shown: &String| {
            let arg = self.command.get_arguments().find(|a| same(a, shown));
            if let Some(either) = shown.strip_prefix("<--").and_then(|s| s.strip_suffix('>')) {
                return format!("--{}", either.replace('|', " or "));
            }
            let shown = shown.trim_end_matches("...");
            match arg.and_then(Arg::get_help) {
                Some(help) => {
                    let help = help.to_string();
                    format!("{shown} ({})", lower(help.split([';', '[']).next().unwrap_or(&help).trim()))
                }
                None => shown.to_owned(),
            }
        };
        let flags: Vec<String> = flags.iter().map(describe).collect();
        let e = Error::new(format!("`{}` needs {}", self.typed, flags.join(" and ")));
        if flags.iter().any(|f| f.starts_with("--baseline")) {
            return e.hint("give one system after --baseline, and the others without a flag");
        }
        e
    }

    /// A value that is not among the possible ones, or a missing value.
    fn invalid(&self, e: &clap::Error) -> Error {
        let flag = flag_of(&first(e, ContextKind::InvalidArg));
        let value = first(e, ContextKind::InvalidValue);
        let possible = all(e, ContextKind::ValidValue);
        if value.is_empty() {
            let arg = self.command.get_arguments().find(|a| long(a).as_deref() == Some(&flag));
            let of = arg
                .and_then(Arg::get_value_names)
                .and_then(|n| n.first())
                .map_or("a value".into(), ToString::to_string);
            return Error::new(format!("{flag} has no value, expected {of} after it"));
        }
        let message = format!("{flag} is `{value}`, expected {}", list(&possible));
        with_nearest(Error::new(message), &value, possible.iter().map(String::as_str))
    }
}

/// `a, b or c`.
fn list(words: &[String]) -> String {
    match words {
        [] => "another value".to_owned(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
    }
}

/// The reason of a number's parser, in words.
fn plain(reason: &str) -> String {
    let range = |text: &str| match text.split_once("..") {
        Some((low, "" | "=4294967295" | "=18446744073709551615")) => format!("at least {low}"),
        Some((low, high)) => format!("from {low} to {}", high.trim_start_matches('=')),
        None => text.to_owned(),
    };
    match reason {
        "invalid digit found in string" => "expected a whole number without sign".to_owned(),
        "invalid float literal" => "expected a number".to_owned(),
        "number too large to fit in target type" => "the number is too large".to_owned(),
        "cannot parse integer from empty string" | "cannot parse float from empty string" => {
            "expected a number".to_owned()
        }
        other => match other.split_once(" is not in ") {
            Some((_, allowed)) => format!("expected a whole number, {}", range(allowed)),
            None => other.to_owned(),
        },
    }
}

/// Clap's own words in one line.
fn rendered(e: &clap::Error) -> String {
    let text = e.render().to_string();
    let words: Vec<&str> = text
        .lines()
        .take_while(|l| !l.starts_with("Usage:") && !l.starts_with("For more"))
        .map(str::trim)
        .filter(|l| !l.is_empty() && !l.starts_with("tip:"))
        .collect();
    words.join(" ").trim_start_matches("error: ").to_owned()
}

fn all(e: &clap::Error, kind: ContextKind) -> Vec<String> {
    match e.get(kind) {
        Some(ContextValue::String(one)) => vec![one.clone()],
        Some(ContextValue::Strings(many)) => many.clone(),
        _ => Vec::new(),
    }
}

fn first(e: &clap::Error, kind: ContextKind) -> String {
    all(e, kind).into_iter().next().unwrap_or_default()
}

/// `--metric` of `--metric <METRIC>`.
fn flag_of(shown: &str) -> String {
    shown.split([' ', '=']).next().unwrap_or(shown).to_owned()
}

fn long(arg: &Arg) -> Option<String> {
    arg.get_long().map(|l| format!("--{l}"))
}

fn longs(command: &Command) -> Vec<String> {
    command.get_arguments().filter_map(long).collect()
}

/// Whether a flag, as clap shows it, is this one.
fn same(arg: &Arg, shown: &str) -> bool {
    let value = || arg.get_value_names().and_then(|n| n.first()).map(|n| format!("<{n}>"));
    match long(arg) {
        Some(long) => flag_of(shown) == long,
        None => value().is_some_and(|v| shown.starts_with(&v)),
    }
}

/// Whether a command, or one of its subcommands, has a flag.
fn has(command: &Command, flag: &str) -> bool {
    command
        .get_arguments()
        .any(|a| long(a).as_deref() == Some(flag) || a.get_short().is_some_and(|s| format!("-{s}") == flag))
        || command.get_subcommands().any(|c| has(c, flag))
}

fn lower(text: &str) -> String {
    let mut letters = text.chars();
    // Abbreviations keep their capitals.
    match (letters.next(), letters.clone().next()) {
        (Some(first), Some(second)) if second.is_lowercase() => first.to_lowercase().chain(letters).collect(),
        _ => text.to_owned(),
    }
}

fn with_nearest<'a>(e: Error, word: &str, known: impl Iterator<Item = &'a str>) -> Error {
    match nearest(word, known) {
        Some(near) => e.hint(format!("did you mean {near}?")),
        None => e,
    }
}

/// The word that differs least, if it differs little.
fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = if word.trim_start_matches('-').len() < 5 { 1 } else { 2 };
    let close = |k: &&str| {
        edit_distance(word, k) <= most || (word.trim_start_matches('-').len() > 2 && k.starts_with(word))
    };
    known.filter(close).min_by_key(|k| edit_distance(word, k))
}
