//! Progress reports of long computations to their callers, which can stop them.

use crate::{Error, Result};
use std::ops::ControlFlow;

/// One progress report of a computation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Unit of `done` and `total`, in the plural: `starts`, `segments`, `lines`.
    pub what: &'static str,
    /// Number of units completed.
    pub done: u64,
    /// Total number of units; 0 if it is not known.
    pub total: u64,
    /// Best score so far, or value of the objective; `None` if there is neither.
    pub value: Option<f64>,
}

/// The caller's progress callback. It is called at least every 100 ms, from any thread, and may return *stop*
/// ([`ControlFlow::Break`]): then the computation fails with an error of kind
/// [`Interrupted`](crate::ErrorKind::Interrupted), and results completed before are kept.
///
/// ```
/// use luthier_core::{ErrorKind, Progress, Step};
/// use std::ops::ControlFlow;
/// let callback = |step: &Step| match step.done {
///     0..3 => ControlFlow::Continue(()),
///     _ => ControlFlow::Break(()),
/// };
/// let progress = Progress::new(&callback);
/// assert!(progress.count("lines", 2, 10).is_ok());
/// assert_eq!(progress.count("lines", 3, 10).unwrap_err().kind(), ErrorKind::Interrupted);
/// assert!(Progress::NONE.count("lines", 3, 10).is_ok());
/// ```
#[derive(Clone, Copy)]
pub struct Progress<'a>(Option<Callback<'a>>);

type Callback<'a> = &'a (dyn Fn(&Step) -> ControlFlow<()> + Sync);

impl<'a> Progress<'a> {
    /// Progress without a callback: nothing is reported, and the computation is never stopped.
    pub const NONE: Progress<'static> = Progress(None);

    /// Returns a progress that is reported to `callback`.
    pub fn new(callback: &'a (dyn Fn(&Step) -> ControlFlow<()> + Sync)) -> Self {
        Progress(Some(callback))
    }

    /// Calls the callback with a progress report. Fails with an error of kind `Interrupted` if the callback
    /// returns *stop*.
    pub fn report(&self, step: &Step) -> Result<()> {
        match self.0.map(|callback| callback(step)) {
            Some(ControlFlow::Break(())) => Err(Error::interrupted()),
            Some(ControlFlow::Continue(())) | None => Ok(()),
        }
    }

    /// Reports that `done` of `total` units called `what` (in the plural) are completed. Fails with an error
    /// of kind `Interrupted` if the callback returns *stop*.
    pub fn count(&self, what: &'static str, done: usize, total: usize) -> Result<()> {
        self.report(&Step { what, done: done as u64, total: total as u64, value: None })
    }
}

impl Progress<'_> {
    /// Asks the callback whether to stop, without reporting a count. Fails with an error of kind
    /// `Interrupted` if the callback returns *stop*.
    pub fn poll(&self) -> Result<()> {
        self.report(&Step { what: "", done: 0, total: 0, value: None })
    }
}

impl std::fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Progress(callback)" } else { "Progress::NONE" })
    }
}
