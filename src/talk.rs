//! What goes to standard error.

use luthier::{core::Step, metric::Metric};
use std::{
    io::{IsTerminal, Write},
    ops::ControlFlow,
    sync::{Mutex, PoisonError},
};

/// Lines to standard error, unless `--quiet`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Talk {
    pub(crate) quiet: bool,
}

impl Talk {
    /// A line of progress.
    pub(crate) fn say(self, line: &str) {
        if !self.quiet {
            self::line(line);
        }
    }

    /// A line that shows how far work is, with scores of a metric; on a terminal only.
    pub(crate) fn progress(self, metric: &Metric) -> ProgressLine {
        let show = || {
            let style = indicatif::ProgressStyle::with_template(
                "{spinner} {msg}  {elapsed} elapsed, about {eta} left",
            );
            Some(indicatif::ProgressBar::new(1).with_style(style.ok()?))
        };
        let bar = if self.quiet || !std::io::stderr().is_terminal() { None } else { show() };
        ProgressLine { bar, metric: metric.clone(), what: Mutex::default() }
    }

    /// A line that moves while something runs, if a person is looking; it goes when the answer is dropped.
    pub(crate) fn busy(self, what: &str) -> Option<Busy> {
        if self.quiet || !std::io::stderr().is_terminal() {
            return None;
        }
        let style = indicatif::ProgressStyle::with_template("{spinner} {elapsed:>4} {wide_msg}").ok()?;
        let bar = indicatif::ProgressBar::new_spinner().with_style(style).with_message(what.to_owned());
        bar.enable_steady_tick(std::time::Duration::from_millis(120));
        Some(Busy(bar))
    }

    /// Something that works but is probably not meant.
    pub(crate) fn warn(self, line: &str) {
        self.say(&warning(line));
    }
}

/// A warning as it is shown.
pub(crate) fn warning(line: &str) -> String {
    format!("luthier: warning: {line}")
}

/// A line to standard error, in one piece: other processes may write there. If it cannot be written, nobody can be told.
pub(crate) fn line(text: &str) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// What is worth showing; the steps within a sentence are not.
const COUNTED: [&str; 4] = ["starts", "epochs", "segments", "objective"];

/// A line that is overwritten while work goes on: how far it is, the score so far and the time left.
pub(crate) struct ProgressLine {
    bar: Option<indicatif::ProgressBar>,
    metric: Metric,
    /// What is being counted.
    what: Mutex<&'static str>,
}

impl ProgressLine {
    /// Shows a step; never stops the work.
    pub(crate) fn show(&self, step: &Step) -> ControlFlow<()> {
        let shown = step.total > 0 && COUNTED.contains(&step.what);
        let Some(bar) = self.bar.as_ref().filter(|_| shown) else {
            return ControlFlow::Continue(());
        };
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
        ControlFlow::Continue(())
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
    /// Other words beside the movement.
    pub(crate) fn show(&self, what: &str) {
        self.0.set_message(what.to_owned());
    }

    /// A line that stays, above the one that moves.
    pub(crate) fn say(&self, line: &str) {
        self.0.suspend(|| self::line(line));
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
