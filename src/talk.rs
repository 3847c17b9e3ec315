//! What goes to standard error.

use crate::interrupt;
use luthier::{
    core::{Error, Step},
    metric::Metric,
};
use std::{
    io::{IsTerminal, Write},
    ops::ControlFlow,
    sync::{Mutex, PoisonError},
};

/// How messages go to standard error.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Talk {
    /// Whether progress and warnings are suppressed.
    pub(crate) quiet: bool,
    /// Whether details are printed besides.
    pub(crate) verbose: bool,
    /// Whether results are JSON on standard output; then warnings are JSON, too, and progress is suppressed.
    pub(crate) json: bool,
    /// Whether messages are coloured.
    pub(crate) color: bool,
}

impl Talk {
    /// Prints a line of progress.
    pub(crate) fn say(self, line: &str) {
        if !self.silent() {
            self::line(line);
        }
    }

    /// Prints a detail, with `--verbose` only.
    pub(crate) fn detail(self, line: &str) {
        if self.verbose {
            self.say(line);
        }
    }

    /// Whether progress is suppressed.
    fn silent(self) -> bool {
        self.quiet || self.json
    }

    /// A line that shows how far work is, with scores of a metric; on a terminal only.
    pub(crate) fn progress(self, metric: &Metric) -> ProgressLine {
        let show = || {
            let style = indicatif::ProgressStyle::with_template(
                "{spinner} {msg}  {elapsed} elapsed, about {eta} left",
            );
            Some(indicatif::ProgressBar::new(1).with_style(style.ok()?))
        };
        let bar = if self.silent() || !std::io::stderr().is_terminal() { None } else { show() };
        ProgressLine { bar, metric: metric.clone(), what: Mutex::default() }
    }

    /// A line that moves while something runs, if a person is looking; it goes when the answer is dropped.
    pub(crate) fn busy(self, what: &str) -> Option<Busy> {
        if self.silent() || !std::io::stderr().is_terminal() {
            return None;
        }
        let style = indicatif::ProgressStyle::with_template("{spinner} {elapsed:>4} {wide_msg}").ok()?;
        let bar = indicatif::ProgressBar::new_spinner().with_style(style).with_message(what.to_owned());
        bar.enable_steady_tick(std::time::Duration::from_millis(120));
        Some(Busy(bar))
    }

    /// Prints a warning: something works, but is probably not what was meant.
    pub(crate) fn warn(self, line: &str) {
        if !self.quiet {
            self::line(&self.warning(line));
        }
    }

    /// Formats a warning.
    fn warning(self, line: &str) -> String {
        match (self.json, self.color) {
            (true, _) => serde_json::json!({ "warning": { "message": line } }).to_string(),
            (false, true) => format!("{YELLOW}luthier: warning:{RESET} {line}"),
            (false, false) => format!("luthier: warning: {line}"),
        }
    }

    /// Prints remarks: progress and warnings in their order.
    pub(crate) fn remarks(self, remarks: &[Remark]) {
        for remark in remarks {
            match remark {
                Remark::Line(line) => self.say(line),
                Remark::Warning(line) => self.warn(line),
            }
        }
    }

    /// Prints an error.
    pub(crate) fn error(self, e: &Error) {
        self::line(&match (self.json, self.color) {
            (true, _) => serde_json::json!({ "error": e }).to_string(),
            (false, true) => format!("{RED}luthier:{RESET} {e}"),
            (false, false) => format!("luthier: {e}"),
        });
    }
}

/// A message about work that is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Remark {
    /// A line of progress.
    Line(String),
    /// A warning.
    Warning(String),
}

/// When output is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set or `TERM` is dumb.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// Whether output to a stream is coloured.
    pub(crate) fn on(self, stream: &impl IsTerminal) -> bool {
        let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
        match self {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                stream.is_terminal()
                    && !set("NO_COLOR")
                    && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
            }
        }
    }
}

const RED: &str = "\x1b[1;31m";
const YELLOW: &str = "\x1b[1;33m";
const RESET: &str = "\x1b[0m";

/// Writes a line to standard error in one call, because other processes may write there, too. Failures are ignored.
pub(crate) fn line(text: &str) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// Steps that are shown; those within a sentence are not.
const COUNTED: [&str; 4] = ["starts", "epochs", "segments", "objective"];

/// A line that is overwritten while work goes on: how far it is, the score so far and the time left.
pub(crate) struct ProgressLine {
    bar: Option<indicatif::ProgressBar>,
    metric: Metric,
    /// What is being counted.
    what: Mutex<&'static str>,
}

impl ProgressLine {
    /// Shows a step; stops the work after Ctrl-C.
    pub(crate) fn show(&self, step: &Step) -> ControlFlow<()> {
        let shown = step.total > 0 && COUNTED.contains(&step.what);
        let Some(bar) = self.bar.as_ref().filter(|_| shown) else { return interrupt::flow() };
        let mut what = self.what.lock().unwrap_or_else(PoisonError::into_inner);
        if *what != step.what || step.done <= 1 {
            *what = step.what;
            bar.reset(); // something new is counted
        }
        let far = format!("{} of {} {}", step.done, step.total, step.what);
        let message = match step.value {
            Some(value) if step.what == "objective" => {
                format!("{} %  objective {value:.6}", step.done * 100 / step.total)
            }
            Some(value) => {
                format!("{far}  best {} {:.2}", self.metric.name(), self.metric.display_score(value))
            }
            None => far,
        };
        bar.set_length(step.total);
        bar.set_message(message);
        bar.set_position(step.done);
        interrupt::flow()
    }

    /// Removes the line, so that another can be written.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A moving line, on a terminal only.
pub(crate) struct Busy(indicatif::ProgressBar);

impl Busy {
    /// Changes the text beside the spinner.
    pub(crate) fn show(&self, what: &str) {
        self.0.set_message(what.to_owned());
    }

    /// Prints a line above the spinner.
    pub(crate) fn say(&self, line: &str) {
        self.suspend(|| self::line(line));
    }

    /// Takes the moving line away while `print` prints.
    pub(crate) fn suspend(&self, print: impl FnOnce()) {
        self.0.suspend(print);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// `1,234,567`.
pub(crate) fn thousands(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, d) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(d);
    }
    out
}
