//! Luthier commands as subprocesses: the steps of `demo` and `experiment`.

use crate::{command::Common, talk::Talk};
use luthier::{
    core::{Error, ErrorKind, Result},
    tune::RunView,
};
use serde_json::Value;
use std::{
    cell::Cell,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Runs commands of this program as subprocesses, with the same number of threads and the same seed.
pub(crate) struct Rerun<'a> {
    program: PathBuf,
    common: &'a Common,
    talk: Talk,
    clock: Instant,
    /// Number of commands that are complete.
    done: Cell<usize>,
    /// Total number of commands; 0 if it is not known.
    all: usize,
}

impl<'a> Rerun<'a> {
    /// Fails if the path of this program is not known.
    pub(crate) fn new(common: &'a Common, talk: Talk) -> Result<Self> {
        let program = std::env::current_exe().map_err(|e| Error::io("luthier", "find this program", &e))?;
        Ok(Rerun { program, common, talk, clock: Instant::now(), done: Cell::new(0), all: 0 })
    }

    /// Runs another program instead of this one.
    #[cfg(test)]
    pub(crate) fn with_program(self, program: &str) -> Self {
        Rerun { program: program.into(), ..self }
    }

    /// Sets the total number of commands, for the estimate of the remaining time.
    #[must_use]
    pub(crate) fn expecting(self, all: usize) -> Self {
        Rerun { all, ..self }
    }

    /// Returns a command to be started, without progress output, with errors as JSON and with an empty standard input.
    pub(crate) fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words).args(["--quiet", "--json-errors"]).stdin(Stdio::null());
        command
    }

    /// Runs a command, prints it with its duration, and returns its standard output. Fails with the error of the
    /// command.
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
        let shown = shell_quote(&words);
        let output = self.watched(&mut command, &words, &shown)?;
        self.done.set(self.done.get() + 1);
        if !matches!(output.status.code(), Some(0 | 1)) {
            let e = last_error(&String::from_utf8_lossy(&output.stderr));
            return Err(Error::new(format!("{shown}: {e}")).of_kind(e.kind()));
        }
        self.talk.say(&format!("{:5.1} s  {shown}", clock.elapsed().as_secs_f64()));
        String::from_utf8(output.stdout).map_err(|e| Error::new(format!("{shown}: {e}")))
    }

    /// Runs a command like [`Rerun::run`]; if another process is still using its directory, such as one of a demo or an
    /// experiment that was killed, waits for it first.
    pub(crate) fn run_after(&self, words: &[&str]) -> Result<String> {
        let mut told = false;
        loop {
            match self.run(words) {
                Err(e) if e.kind() == ErrorKind::Busy => {
                    if !told {
                        self.talk.say(&format!("waiting: {e}"));
                    }
                    told = true;
                    thread::sleep(Duration::from_millis(500));
                }
                done => return done,
            }
        }
    }

    /// Runs a command, and meanwhile shows its progress on a terminal.
    fn watched(&self, command: &mut Command, words: &[String], shown: &str) -> Result<Output> {
        let failed = |e| Error::io("luthier", "start a subprocess", &e);
        let Some(busy) = self.talk.busy(shown) else { return command.output().map_err(failed) };
        let run = words.iter().skip_while(|w| *w != "--run").nth(1).map(PathBuf::from);
        let (gone, done) = (self.clock.elapsed().as_secs_f64(), self.done.get());
        let far = match self.all.checked_sub(done) {
            Some(left) if done > 0 => {
                let seconds = duration(gone / done as f64 * left as f64);
                format!("{} of {}, about {seconds} left: ", done + 1, self.all)
            }
            _ => String::new(),
        };
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let at = run.as_deref().and_then(progress).map_or_else(String::new, |p| format!("{p}  "));
                    busy.show(&format!("{far}{at}{shown}"));
                    thread::park_timeout(Duration::from_millis(200));
                }
            });
            let output = command.output().map_err(failed);
            over.store(true, Ordering::Relaxed);
            output
        })
    }

    /// Runs a command with `--json` and returns its output. Fails with the error of the command, or if the output is
    /// not JSON.
    pub(crate) fn json(&self, words: &[&str]) -> Result<Value> {
        let text = self.run(&[words, &["--json"]].concat())?;
        serde_json::from_str(&text).map_err(|e| Error::new(format!("luthier {}: {e}", words.join(" "))))
    }
}

/// Returns a command as it would be typed in a shell.
pub(crate) fn shell_quote(words: &[String]) -> String {
    let words = words.iter().map(|w| quoted(w));
    std::iter::once("luthier".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// A word as it is typed in a shell.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./,=:+@%{}".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Returns the progress of a run, as `iteration 3: 41.20`; `None` if the run has no complete iteration.
pub(crate) fn progress(run: &Path) -> Option<String> {
    let view = RunView::open(run).ok()?;
    let last = view.events.last()?;
    Some(format!("iteration {}: {:.2}", last.iteration, view.metric().ok()?.display_score(last.score)))
}

/// Formats a duration as `40 s`, `12 min` or `3.5 h`.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// Returns the error that a command ended with: the last line of its standard error.
pub(crate) fn last_error(stderr: &str) -> Error {
    #[derive(serde::Deserialize)]
    struct Line {
        error: Error,
    }
    let last = stderr.lines().rfind(|l| !l.trim().is_empty()).unwrap_or("no error message");
    match serde_json::from_str::<Line>(last) {
        Ok(line) => line.error,
        Err(_) => Error::new(last.trim_start_matches("luthier: ")),
    }
}
