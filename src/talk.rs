//! What goes to standard error.

use std::io::{IsTerminal, Write};

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

    /// A progress bar that tells how far it is in the given words, if a person is looking.
    pub(crate) fn bar(self, far: &str) -> Option<Bar> {
        if self.quiet || !std::io::stderr().is_terminal() {
            return None;
        }
        let style = format!("{{spinner}} {far} {{msg}}  {{elapsed}} gone, {{eta}} left");
        let style = indicatif::ProgressStyle::with_template(&style).ok()?;
        let bar = indicatif::ProgressBar::new(1).with_style(style);
        Some(Bar(bar))
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
        self.say(&format!("luthier: warning: {line}"));
    }
}

/// A line to standard error, in one piece: other processes may write there. If it cannot be written, nobody can be told.
pub(crate) fn line(text: &str) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// A line that is overwritten, on a terminal only.
pub(crate) struct Bar(indicatif::ProgressBar);

impl Bar {
    /// How far it is, with the score so far and the time left.
    pub(crate) fn show(&self, done: u32, all: u32, score: &str) {
        if done >= all {
            self.0.finish_and_clear();
            return;
        }
        if done == 1 {
            self.0.reset(); // a new iteration
        }
        self.0.set_length(u64::from(all));
        self.0.set_message(score.to_owned());
        self.0.set_position(u64::from(done));
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
