//! Progress of long computations on standard error: a status line on a terminal, and one line per completed phase.

use crate::{
    interrupt,
    talk::{Busy, Remark, Talk, thousands},
};
use luthier::core::Step;
use std::{
    ops::ControlFlow,
    sync::{Mutex, PoisonError},
    time::Instant,
};

/// Formats the last step of a phase as a line of progress; `None` prints nothing.
type Line<'a> = &'a (dyn Fn(&Step) -> Option<String> + Sync);

/// Prints the progress of a computation. Consecutive steps that count the same things are one phase.
pub(crate) struct Phases<'a> {
    talk: Talk,
    line: Line<'a>,
    begun: Mutex<Instant>,
    busy: Option<Busy>,
    last: Mutex<Option<Step>>,
}

impl<'a> Phases<'a> {
    pub(crate) fn new(talk: Talk, line: Line<'a>) -> Self {
        Phases { talk, line, begun: Mutex::new(Instant::now()), busy: talk.busy(""), last: Mutex::new(None) }
    }

    /// Shows a step; answers *stop* after Ctrl-C.
    pub(crate) fn show(&self, step: &Step) -> ControlFlow<()> {
        if let Some(busy) = &self.busy {
            busy.show(&counted(step));
        }
        // Sorting, which counts records, is part of the phase that it happens in.
        if step.what != "records" {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(ended) = last.replace(*step).filter(|l| l.what != step.what) {
                self.say(&ended);
            }
        }
        interrupt::flow()
    }

    /// Prints the line of the last phase; called only after success.
    pub(crate) fn end(&self) {
        if let Some(ended) = self.last.lock().unwrap_or_else(PoisonError::into_inner).take() {
            self.say(&ended);
        }
    }

    /// Restarts the clock.
    pub(crate) fn begin(&self) {
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Prints a line, above the status line if there is one.
    fn tell(&self, line: &str) {
        match &self.busy {
            Some(busy) => busy.say(line),
            None => self.talk.say(line),
        }
    }

    /// Prints remarks, above the status line if there is one.
    pub(crate) fn remarks(&self, remarks: &[Remark]) {
        let print = || self.talk.remarks(remarks);
        match &self.busy {
            Some(busy) => busy.suspend(print),
            None => print(),
        }
    }

    /// Prints the line of a completed phase with the time since the clock was started.
    fn say(&self, ended: &Step) {
        if let Some(line) = (self.line)(ended) {
            let begun = *self.begun.lock().unwrap_or_else(PoisonError::into_inner);
            self.tell(&format!("{line}  {:.1} s", begun.elapsed().as_secs_f64()));
        }
    }
}

/// Formats a step as `1,234 of 29,000 lines`.
pub(crate) fn counted(step: &Step) -> String {
    let of = if step.total > step.done {
        format!(" of {}", thousands(step.total as usize))
    } else {
        String::new()
    };
    format!("{}{of} {}", thousands(step.done as usize), step.what)
}
