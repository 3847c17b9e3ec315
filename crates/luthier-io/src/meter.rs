//! Counting of completed work on any number of threads, with reports to a [`Progress`] callback.

use luthier_core::{Error, Progress, Result};
use std::{
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    time::Instant,
};

/// Nanoseconds between two reports: a request to stop takes effect within 100 ms, at negligible cost.
const INTERVAL: u64 = 40_000_000;

/// Counts the lines, records or other items that one pass has completed, and reports the count: at the first
/// call of [`Meter::add`], then at most every 40 ms, and at the end. All threads of a pass share one meter;
/// once the callback has returned *stop*, every call fails with an error of kind
/// [`Interrupted`](luthier_core::ErrorKind::Interrupted).
///
/// ```
/// use luthier_core::{ErrorKind, Progress, Step};
/// use luthier_io::Meter;
/// use std::ops::ControlFlow;
/// let stop = |step: &Step| if step.done < 10 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
/// let meter = Meter::new(Progress::new(&stop), "lines", 10);
/// assert!(meter.add(5).is_ok());
/// meter.add(5).ok();
/// assert_eq!(meter.finish().unwrap_err().kind(), ErrorKind::Interrupted);
/// ```
#[derive(Debug)]
pub struct Meter<'a> {
    progress: Progress<'a>,
    what: &'static str,
    total: usize,
    done: AtomicUsize,
    begun: Instant,
    /// Time of the next report, in nanoseconds after `begun`.
    due: AtomicU64,
    stopped: AtomicBool,
}

impl<'a> Meter<'a> {
    /// Returns a meter of one pass over `total` items (0 if the number is not known); `what` names them in
    /// the plural, such as `lines`.
    pub fn new(progress: Progress<'a>, what: &'static str, total: usize) -> Self {
        Meter {
            progress,
            what,
            total,
            done: AtomicUsize::new(0),
            begun: Instant::now(),
            due: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
        }
    }

    /// Counts `n` more items as completed; 0 only asks whether to stop. Takes about 50 ns, so loops with
    /// shorter iterations should call it every few iterations, or use [`Meter::set`]. Fails if the callback
    /// has returned *stop*, in this call or before.
    pub fn add(&self, n: usize) -> Result<()> {
        self.ask(self.done.fetch_add(n, Ordering::Relaxed) + n)
    }

    /// Sets the total number of completed items, for loops on one thread with short iterations: the clock is
    /// read only once per 1,024 items. Fails if the callback has returned *stop*.
    #[inline]
    pub fn set(&self, done: usize) -> Result<()> {
        self.done.store(done, Ordering::Relaxed);
        if done % 1024 == 1 { self.ask(done) } else { Ok(()) }
    }

    /// Reports the count if a report is due. Fails if the callback has returned *stop*.
    fn ask(&self, done: usize) -> Result<()> {
        let (now, due) = (self.begun.elapsed().as_nanos() as u64, self.due.load(Ordering::Relaxed));
        if now >= due
            && self.due.compare_exchange(due, now + INTERVAL, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            self.report(done)?;
        }
        if self.stopped.load(Ordering::Relaxed) { Err(Error::interrupted()) } else { Ok(()) }
    }

    /// Reports the final count. Fails if the callback has returned *stop*.
    pub fn finish(self) -> Result<()> {
        self.report(self.done.load(Ordering::Relaxed))?;
        if self.stopped.into_inner() { Err(Error::interrupted()) } else { Ok(()) }
    }

    /// Reports the count, and records whether the callback has returned *stop*.
    fn report(&self, done: usize) -> Result<()> {
        let reported = self.progress.count(self.what, done, self.total);
        self.stopped.fetch_or(reported.is_err(), Ordering::Relaxed);
        reported
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use luthier_core::{ErrorKind, Step};
    use std::ops::ControlFlow;

    #[test]
    fn a_stop_reaches_every_thread() {
        let calls = AtomicUsize::new(0);
        let stop = |_: &Step| {
            calls.fetch_add(1, Ordering::Relaxed);
            ControlFlow::Break(())
        };
        let meter = Meter::new(Progress::new(&stop), "lines", 0);
        assert!(meter.add(1).is_err());
        let other = std::thread::scope(|s| s.spawn(|| meter.add(1)).join().unwrap());
        assert_eq!(other.unwrap_err().kind(), ErrorKind::Interrupted);
        assert_eq!(calls.load(Ordering::Relaxed), 1, "a second report is not due yet");
        assert!(meter.finish().is_err());
    }
}
