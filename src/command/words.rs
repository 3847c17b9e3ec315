//! The words of the command line, as clap is to see them: flags that have new names, and habits from sacreBLEU.

use luthier::metric::{Metric, Tokenizer};
use std::ffi::{OsStr, OsString};

/// A flag that has another name now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Renamed {
    /// Commands that take the flag, such as `lm query`; one word stands for all of its subcommands.
    pub(crate) commands: &'static [&'static str],
    pub(crate) old: &'static str,
    pub(crate) new: &'static str,
}

/// Flags that have another name now; the old one is accepted with a warning.
pub(crate) const RENAMED: &[Renamed] = &[
    Renamed { commands: &["extract", "generate", "experiment", "demo"], old: "--out", new: "--output" },
    Renamed { commands: &["decode", "lm build", "lm query", "table query"], old: "--in", new: "--input" },
    Renamed { commands: &["align"], old: "--model", new: "--aligner" },
    Renamed { commands: &["train"], old: "--align-model", new: "--aligner" },
    Renamed { commands: &["align", "train"], old: "--rounds", new: "--iterations" },
    Renamed { commands: &["align", "train"], old: "--first-rounds", new: "--model1-iterations" },
    Renamed { commands: &["tune"], old: "--in-order", new: "--no-shuffle" },
];

/// Flags of sacreBLEU that clap cannot have, because they are short and have several letters.
const SACREBLEU: &[(&str, &str)] = &[("-tok", "--tokenize"), ("-lc", "--lowercase"), ("-sl", "--sentence")];

/// Flags of every command that take a value.
const WITH_VALUE: [&str; 3] = ["--threads", "--seed", "--color"];

/// Rewritten words, and what the user should know about them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    /// The words for clap, without the program's name.
    pub(crate) words: Vec<OsString>,
    /// Warnings about old names.
    pub(crate) warnings: Vec<String>,
}

impl Words {
    /// Rewrites words after the program's name.
    pub(crate) fn new(typed: impl IntoIterator<Item = OsString>) -> Self {
        let typed: Vec<OsString> = typed.into_iter().collect();
        let command = command_of(&typed);
        if command.split(' ').next() == Some("help") {
            // The page of a command has no flags.
            let words = typed.into_iter().filter(|w| !w.to_string_lossy().starts_with('-')).collect();
            return Words { words, warnings: Vec::new() };
        }
        let (mut words, mut warnings): (Vec<OsString>, Vec<String>) = (Vec::new(), Vec::new());
        let end = typed.iter().position(|w| w == "--").unwrap_or(typed.len());
        let mut at = 0;
        while at < end {
            let (word, consumed) = rewrite(&command, &typed[at..end], &mut warnings);
            words.push(word);
            at += consumed;
        }
        words.extend_from_slice(&typed[end..]);
        Words { words, warnings }
    }

    /// Rewrites words that are text.
    pub(crate) fn of(typed: &[String]) -> Self {
        Self::new(typed.iter().map(OsString::from))
    }
}

/// The command that words begin with, such as `tune mert`: the first two words that are neither flags nor their values.
pub(crate) fn command_of(words: &[OsString]) -> String {
    let mut command: Vec<&str> = Vec::new();
    let mut skip = false;
    for word in words {
        let Some(word) = word.to_str() else { break };
        if std::mem::take(&mut skip) {
            continue;
        }
        if word.starts_with('-') {
            skip = WITH_VALUE.contains(&word);
            if !command.is_empty() && !skip && !["-q", "--quiet", "-v", "--verbose", "--json"].contains(&word)
            {
                break;
            }
            continue;
        }
        command.push(word);
        if command.len() == 2 {
            break;
        }
    }
    command.join(" ")
}

/// The next word for clap, and how many words it stands for.
fn rewrite(command: &str, typed: &[OsString], warnings: &mut Vec<String>) -> (OsString, usize) {
    let Some(word) = typed[0].to_str() else { return (typed[0].clone(), 1) };
    let (flag, value) = word.split_once('=').map_or((word, None), |(flag, value)| (flag, Some(value)));
    let with_value = |flag: &str| OsString::from(value.map_or(flag.to_owned(), |v| format!("{flag}={v}")));
    let verb = command.split(' ').next().unwrap_or_default();
    let takes = |r: &&Renamed| r.old == flag && r.commands.iter().any(|c| *c == command || *c == verb);
    if let Some(renamed) = RENAMED.iter().find(takes) {
        let warning = format!("{} is now called {}", renamed.old, renamed.new);
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
        return (with_value(renamed.new), 1);
    }
    if verb == "score" || verb == "compare" {
        if let Some((_, long)) = SACREBLEU.iter().find(|s| s.0 == flag) {
            return (with_value(long), 1);
        }
        if (flag == "-m" || flag == "--metric") && value.is_none() {
            return metrics(typed);
        }
    }
    (typed[0].clone(), 1)
}

/// Joins the metrics after `-m`, as sacreBLEU takes them: `-m bleu chrf ter hyp.txt` has three.
fn metrics(typed: &[OsString]) -> (OsString, usize) {
    let is_metric =
        |w: &&OsString| w.to_str().is_some_and(|w| Metric::parse_list(w, Tokenizer::default()).is_ok());
    let names: Vec<&str> = typed[1..].iter().take_while(is_metric).filter_map(|w| w.to_str()).collect();
    if names.is_empty() {
        return (typed[0].clone(), 1);
    }
    (OsString::from(format!("--metric={}", names.join(","))), 1 + names.len())
}

/// Whether a flag stands among words, before `--`.
pub(crate) fn has_flag(words: &[OsString], flag: &str) -> bool {
    words.iter().take_while(|w| *w != "--").any(|w| w == OsStr::new(flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(line: &str) -> (String, usize) {
        let words = Words::new(line.split(' ').map(OsString::from));
        let text: Vec<&str> = words.words.iter().filter_map(|w| w.to_str()).collect();
        (text.join(" "), words.warnings.len())
    }

    #[test]
    fn old_names_become_new_ones() {
        let cases = [
            ("--threads 2 lm query --in text m", "--threads 2 lm query --input text m", 1),
            ("lm --quiet query --in=text m", "lm --quiet query --input=text m", 1),
            ("generate --out a -- --out", "generate --output a -- --out", 1),
            (
                "train --model m --align-model ibm2 --rounds 3",
                "train --model m --aligner ibm2 --iterations 3",
                2,
            ),
            ("align --model ibm1", "align --aligner ibm1", 1),
            ("train --model m --out x", "train --model m --out x", 0),
        ];
        for (typed, expected, warnings) in cases {
            assert_eq!(rewritten(typed), (expected.to_owned(), warnings), "{typed}");
        }
    }

    #[test]
    fn help_takes_no_flags() {
        assert_eq!(rewritten("help tune mert --json -h"), ("help tune mert".to_owned(), 0));
    }

    #[test]
    fn every_renamed_flag_is_tested_with_the_binary() {
        let tests = include_str!("../../tests/mistakes.rs");
        for Renamed { old, new, .. } in RENAMED {
            assert!(tests.contains(&format!("{old} is now called {new}")), "{old}");
        }
    }

    #[test]
    fn habits_of_sacrebleu() {
        let cases = [
            ("score ref -i hyp -m bleu chrf", "score ref -i hyp --metric=bleu,chrf"),
            ("score -m bleu chrf++ hyp.txt --ref ref", "score --metric=bleu,chrf++ hyp.txt --ref ref"),
            ("score -m nothing hyp", "score -m nothing hyp"),
            ("score hyp -tok none -lc", "score hyp --tokenize none --lowercase"),
            ("oracle -m bleu chrf", "oracle -m bleu chrf"),
        ];
        for (typed, expected) in cases {
            assert_eq!(rewritten(typed), (expected.to_owned(), 0), "{typed}");
        }
    }
}
