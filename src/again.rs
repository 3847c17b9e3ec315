//! This program, started again: what `demo` and `experiment` are made of.

use crate::{command::Common, talk::Talk};
use luthier::core::{Error, Result};
use serde_json::Value;
use std::{
    path::PathBuf,
    process::{Command, Stdio},
    time::Instant,
};

/// Starts commands of this program with the same threads and seed.
pub(crate) struct Again<'a> {
    program: PathBuf,
    common: &'a Common,
    talk: Talk,
}

impl<'a> Again<'a> {
    pub(crate) fn new(common: &'a Common, talk: Talk) -> Result<Self> {
        let program = std::env::current_exe().map_err(|e| Error::io("luthier", "find this program", &e))?;
        Ok(Again { program, common, talk })
    }

    /// A command that is to be started. It reads nothing.
    pub(crate) fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words).arg("--quiet").stdin(Stdio::null());
        command
    }

    /// Runs a command to its end, shows it with its time, and returns what it printed.
    pub(crate) fn run(&self, words: &[&str]) -> Result<String> {
        let clock = Instant::now();
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let mut command = self.command(&words);
        if let Some(n) = self.common.threads {
            command.args(["--threads", &n.to_string()]);
        }
        if let Some(seed) = self.common.seed.filter(|_| words[0] != "compare") {
            command.args(["--seed", &seed.to_string()]);
        }
        let shown = shown(&words);
        let output = {
            let _alive = self.talk.busy(&shown);
            command.output().map_err(|e| Error::io("luthier", "start it again", &e))?
        };
        if !matches!(output.status.code(), Some(0 | 1)) {
            return Err(Error::new(format!("{shown}: {}", said(&String::from_utf8_lossy(&output.stderr)))));
        }
        self.talk.say(&format!("{:5.1} s  {shown}", clock.elapsed().as_secs_f64()));
        String::from_utf8(output.stdout).map_err(|e| Error::new(format!("{shown}: {e}")))
    }

    /// The same of a command that prints JSON.
    pub(crate) fn json(&self, words: &[&str]) -> Result<Value> {
        let text = self.run(&[words, &["--json"]].concat())?;
        serde_json::from_str(&text).map_err(|e| Error::new(format!("luthier {}: {e}", words.join(" "))))
    }
}

/// A command as one would type it.
pub(crate) fn shown(words: &[String]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./,=:+@%".contains(c);
    let quoted = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    std::iter::once("luthier".to_owned()).chain(words.iter().map(quoted)).collect::<Vec<_>>().join(" ")
}

/// The error that a command ended with.
pub(crate) fn said(stderr: &str) -> String {
    let last = stderr.lines().rfind(|l| !l.trim().is_empty()).unwrap_or("it said nothing");
    last.trim_start_matches("luthier: ").to_owned()
}
