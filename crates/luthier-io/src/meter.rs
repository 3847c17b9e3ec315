//! Counting finished work on any number of threads, and telling a [`Progress`] callback about it in good time.

use luthier_core::{Error, Progress, Result};
use std::{
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    time::Instant,
};

/// Nanoseconds between two reports: often enough to obey within 100 ms, rare enough to cost nothing.
const INTERVAL: u64 = 40_000_000;

/// Counts the lines, records or other things that one pass has finished, and reports the count: at the first
/// call of [`Meter::add`], then at most every 40 ms, and at the end. All threads of a pass share one meter;
/// once the callback has answered *stop*, every call fails with an error of kind
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
    /// Nanoseconds after the beginning from which on the next report is due.
    due: AtomicU64,
    stopped: AtomicBool,
}

impl<'a> Meter<'a> {
    /// A meter of one pass over `total` things (0 if the number is not known) that are called `what`, in the
    /// plural.
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

    /// Counts `n` more things as finished; 0 only asks whether to stop. Takes about 50 ns, so loops with
    /// shorter turns call it every few turns, or use [`Meter::set`]. Fails if the callback has answered
    /// *stop*, to this call or before.
    pub fn add(&self, n: usize) -> Result<()> {
        self.ask(self.done.fetch_add(n, Ordering::Relaxed) + n)
    }

    /// Says that a loop on one thread has finished `done` things in all; for short turns, because it looks at
    /// the clock only every 1,024 things. Fails if the callback has answered *stop*.
    #[inline]
    pub fn set(&self, done: usize) -> Result<()> {
        self.done.store(done, Ordering::Relaxed);
        if done % 1024 == 1 { self.ask(done) } else { Ok(()) }
    }

    fn ask(&self, done: usize) -> Result<()> {
        let (now, due) = (self.begun.elapsed().as_nanos() as u64, self.due.load(Ordering::Relaxed));
        if now >= due
            && self.due.compare_exchange(due, now + INTERVAL, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            self.report(done)?;
        }
        if self.stopped.load(Ordering::Relaxed) { Err(Error::interrupted()) } else { Ok(()) }
    }

    /// Reports the final count. Fails if the callback has answered *stop*.
    pub fn finish(self) -> Result<()> {
        self.report(self.done.load(Ordering::Relaxed))?;
        if self.stopped.into_inner() { Err(Error::interrupted()) } else { Ok(()) }
    }

    fn report(&self, done: usize) -> Result<()> {
        let told = self.progress.count(self.what, done, self.total);
        self.stopped.fetch_or(told.is_err(), Ordering::Relaxed);
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use luthier_core::{ErrorKind, Step};
    use std::ops::ControlFlow;

    #[test]
    fn every_thread_hears_of_a_stop() {
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
