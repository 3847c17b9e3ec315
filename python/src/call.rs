//! Calls from Python: threads, interrupts, progress, and errors.

use crate::recipe::flag_words;
use luthier::{
    ErrorKind,
    core::{Progress, Step},
};
use pyo3::{create_exception, exceptions::PyValueError, prelude::*};
use std::{
    ops::ControlFlow,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

create_exception!(
    luthier,
    Error,
    PyValueError,
    "Input or settings that Luthier cannot work with: what was found, what was expected, and what to do."
);

/// Interval at which the calling thread looks for interrupts and reports progress.
const TICK: Duration = Duration::from_millis(50);

/// Runs a computation on threads of its own, without the interpreter lock. Fails with the exception of a signal handler
/// (Ctrl-C) or of the progress callback, and with `luthier.Error` for every other failure.
///
/// `progress` is called in the calling thread with unit, number done, total number and score.
pub(crate) fn work<T: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
    job: impl FnOnce(Progress<'_>) -> luthier::Result<T> + Send,
) -> PyResult<T> {
    let stop = AtomicBool::new(false);
    let latest: Mutex<Option<Step>> = Mutex::new(None);
    let ask = |step: &Step| {
        if !step.what.is_empty()
            && let Ok(mut latest) = latest.lock()
        {
            *latest = Some(*step);
        }
        if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let say = |py: Python<'_>| -> PyResult<()> {
        py.check_signals()?;
        let step = latest.lock().ok().and_then(|mut l| l.take());
        match (&progress, step) {
            (Some(call), Some(s)) => call.call1(py, (s.what, s.done, s.total, s.value)).map(drop),
            _ => Ok(()),
        }
    };
    let (done, raised) = py.detach(|| {
        let (alive, dead) = mpsc::channel::<()>();
        thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let _alive = alive;
                catch_unwind(AssertUnwindSafe(|| on_threads(threads, || job(Progress::new(&ask)))))
            });
            let mut raised = None;
            while matches!(dead.recv_timeout(TICK), Err(RecvTimeoutError::Timeout)) {
                if raised.is_none()
                    && let Err(error) = Python::attach(say)
                {
                    stop.store(true, Ordering::Relaxed);
                    raised = Some(error);
                }
            }
            (worker.join().and_then(|outcome| outcome), raised)
        })
    });
    match (done, raised) {
        (_, Some(error)) => Err(error),
        (Ok(Ok(value)), None) => say(py).map(|()| value),
        (Ok(Err(error)), None) => Err(raise(&error)),
        (Err(panic), None) => Err(defect(&*panic)),
    }
}

/// Runs a computation in a thread pool of its own.
fn on_threads<T: Send>(
    threads: Option<usize>,
    job: impl FnOnce() -> luthier::Result<T> + Send,
) -> luthier::Result<T> {
    let threads = threads.unwrap_or(0);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|e| luthier::Error::new(format!("cannot start {threads} threads: {e}")))?;
    pool.install(job)
}

/// Runs a short computation in the calling thread.
pub(crate) fn short<T>(job: impl FnOnce() -> luthier::Result<T>) -> PyResult<T> {
    match catch_unwind(AssertUnwindSafe(job)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(raise(&error)),
        Err(panic) => Err(defect(&*panic)),
    }
}

/// Turns an error into an exception.
pub(crate) fn raise(error: &luthier::Error) -> PyErr {
    if error.kind() == ErrorKind::Interrupted {
        return pyo3::exceptions::PyKeyboardInterrupt::new_err("interrupted");
    }
    Error::new_err(in_python(&error.to_string()))
}

/// Raises `luthier.Error`.
pub(crate) fn wrong(message: impl Into<String>) -> PyErr {
    Error::new_err(message.into())
}

fn defect(panic: &(dyn std::any::Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
    Error::new_err(format!("defect in Luthier: {text}; please report it with the call that led to it"))
}

/// Name of a flag as a keyword argument: with underscores, and with one at the end where Python has a keyword.
#[pyfunction]
pub(crate) fn keyword(flag: &str) -> String {
    match flag {
        "lambda" => "lambda_".to_owned(),
        "ref" => "references".to_owned(),
        "init" => "initial".to_owned(),
        _ => flag.replace('-', "_"),
    }
}

/// Words of the command line and of the Rust library with their forms in Python.
const WORDS: [(&str, &str); 5] = [
    ("--select-nbest and --select-ref", "--select"),
    ("add them with NBest::with_references", "give them with --references"),
    ("fix it and re-run the same command", "fix it and repeat the same call"),
    ("re-run the same command", "repeat the same call"),
    ("in another --run directory", "in another directory (--run)"),
];

/// Writes the flags in a message as keyword arguments: `--select-share` as `select_share=`, with a value after it if
/// there is one.
pub(crate) fn in_python(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    let message = WORDS.iter().fold(message.to_owned(), |text, (old, new)| text.replace(old, new));
    let mut rest = &*message;
    while let Some(at) = rest.find("--") {
        let before = rest[..at].chars().next_back();
        let flag: String = rest[at + 2..]
            .chars()
            .take_while(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-')
            .collect();
        let flag = flag.trim_end_matches('-');
        out.push_str(&rest[..at]);
        if flag.is_empty() || before.is_some_and(|c| c.is_alphanumeric() || c == '-') {
            out.push_str("--");
            rest = &rest[at + 2..];
            continue;
        }
        rest = &rest[at + 2 + flag.len()..];
        match flag {
            "nbest" => out.push_str("n-best lists"),
            // Decoders are on the command line only.
            "model" | "command" | "source" | "nbest-size" => {
                out.push_str(&format!("`--{flag}` of the command line"));
            }
            _ => {
                out.push_str(&format!("{}=", keyword(flag)));
                if let Some(value) = rest.strip_prefix(' ').filter(|value| is_value(flag, value)) {
                    rest = value;
                }
            }
        }
    }
    out.push_str(rest);
    out
}

/// Returns whether a text begins with a value of a flag: a number, or one of its words.
fn is_value(flag: &str, text: &str) -> bool {
    let end = text.find([' ', ',', ';', ':', ')']).unwrap_or(text.len());
    let word = text[..end].trim_end_matches('.');
    word.parse::<f64>().is_ok() || flag_words(flag).iter().any(|w| w == word)
}
