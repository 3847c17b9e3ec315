//! Ctrl-C: long work is asked to stop, so that nothing half-written stays behind; work that does not answer is ended.

use crate::{launch, subprocess::quoted, talk::Talk};
use luthier::core::{Error, ErrorKind};
use std::{
    ops::ControlFlow,
    process::ExitCode,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// Exit code of a command that was interrupted, by the convention of shells: 128 + SIGINT.
const CODE: u8 = 130;

/// How long work may take to answer before the process ends anyway.
const PATIENCE: Duration = Duration::from_secs(2);

static REQUESTED: AtomicBool = AtomicBool::new(false);
static TOLD: AtomicBool = AtomicBool::new(false);
static LEFT_TO_COMMAND: AtomicBool = AtomicBool::new(false);

/// How the command that is running is resumed, and how messages are printed.
static COMMAND: OnceLock<(Option<String>, Talk)> = OnceLock::new();

/// Listens for Ctrl-C; `resumes` says whether the same command resumes the work. A job of several processes leaves that to its launcher.
pub(crate) fn listen(resumes: bool, talk: Talk) {
    if !launch::fleet().is_alone() {
        return;
    }
    let resume = resumes
        .then(|| std::env::args_os().map(|w| quoted(&w.to_string_lossy())).collect::<Vec<_>>().join(" "));
    let _ = COMMAND.set((resume, talk));
    // Where signals cannot be handled, Ctrl-C ends the process as it always does.
    let _ = ctrlc::set_handler(|| {
        if LEFT_TO_COMMAND.load(Ordering::Relaxed) {
            return;
        }
        if REQUESTED.swap(true, Ordering::Relaxed) {
            end();
        }
        thread::spawn(|| {
            thread::sleep(PATIENCE);
            end();
        });
    });
}

/// Leaves Ctrl-C to the command, which handles the signal itself.
#[cfg(feature = "serve")]
pub(crate) fn leave_to_command() {
    LEFT_TO_COMMAND.store(true, Ordering::Relaxed);
}

/// Whether work goes on, for progress callbacks.
pub(crate) fn flow() -> ControlFlow<()> {
    if REQUESTED.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Prints how to resume and returns the exit code.
pub(crate) fn ended() -> ExitCode {
    tell();
    ExitCode::from(CODE)
}

fn tell() {
    if TOLD.swap(true, Ordering::Relaxed) {
        return;
    }
    if let Some((resume, talk)) = COMMAND.get() {
        let e = Error::new("interrupted").of_kind(ErrorKind::Interrupted);
        talk.error(&match resume {
            Some(command) => e.hint(format!("resume with: {command}")),
            None => e,
        });
    }
}

/// Ends the process at once; files that are being written keep their temporary names, as after `kill`.
#[allow(clippy::exit)]
fn end() {
    tell();
    std::process::exit(CODE.into());
}
