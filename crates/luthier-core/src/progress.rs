//! How long work tells its caller how far it is, and how the caller stops it.

use crate::{Error, Result};
use std::ops::ControlFlow;

/// How far a computation is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// What is being counted, in the plural: `starts`, `segments`, `lines`.
    pub what: &'static str,
    /// How many of them are done.
    pub done: u64,
    /// How many there are; 0 where that is not known.
    pub total: u64,
    /// The best score so far, or the value of the objective, where there is one.
    pub value: Option<f64>,
}

/// A callback of the caller. It is asked at least every 100 ms, from any thread, and may answer *stop*
/// ([`ControlFlow::Break`]): then the work ends in an error of kind [`Interrupted`](crate::ErrorKind::Interrupted), and what
/// was complete before is kept.
///
/// ```
/// use luthier_core::{ErrorKind, Progress, Step};
/// use std::ops::ControlFlow;
/// let callback = |step: &Step| if step.done < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
/// let progress = Progress::new(&callback);
/// assert!(progress.count("lines", 2, 10).is_ok());
/// assert_eq!(progress.count("lines", 3, 10).unwrap_err().kind(), ErrorKind::Interrupted);
/// assert!(Progress::NONE.count("lines", 3, 10).is_ok());
/// ```
#[derive(Clone, Copy)]
pub struct Progress<'a>(Option<Callback<'a>>);

type Callback<'a> = &'a (dyn Fn(&Step) -> ControlFlow<()> + Sync);

impl<'a> Progress<'a> {
    /// Nobody is told, and nobody stops the work.
    pub const NONE: Progress<'static> = Progress(None);

    /// Reports to `callback`.
    pub fn new(callback: &'a (dyn Fn(&Step) -> ControlFlow<()> + Sync)) -> Self {
        Progress(Some(callback))
    }

    /// Reports a step. Fails with an error of kind `Interrupted` if the callback answers *stop*.
    pub fn report(&self, step: &Step) -> Result<()> {
        match self.0.map(|callback| callback(step)) {
            Some(ControlFlow::Break(())) => Err(Error::interrupted()),
            Some(ControlFlow::Continue(())) | None => Ok(()),
        }
    }

    /// Reports how many of `total` things are done. Fails if the callback answers *stop*.
    pub fn count(&self, what: &'static str, done: usize, total: usize) -> Result<()> {
        self.report(&Step { what, done: done as u64, total: total as u64, value: None })
    }
}

impl Progress<'_> {
    /// Asks whether to stop, without telling how far the work is.
    pub fn poll(&self) -> Result<()> {
        self.report(&Step { what: "", done: 0, total: 0, value: None })
    }
}

impl std::fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Progress(callback)" } else { "Progress::NONE" })
    }
}
