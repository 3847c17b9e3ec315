//! The error type of all Luthier crates: file, line, what was found and expected, what to do; it prints as
//! one line.

use serde::{Deserialize, Serialize};
use std::{fmt, io};

/// Result of every fallible function of Luthier.
pub type Result<T> = std::result::Result<T, Error>;

/// An error in the user's input or settings, or one reported by the operating system, as one printable line.
///
/// ```
/// use luthier_core::{Error, ErrorKind};
/// let e = Error::at("a.nbest", 7, "LM0 is NaN, expected a finite number").hint("remove the line");
/// assert_eq!(e.to_string(), "a.nbest:7: LM0 is NaN, expected a finite number; remove the line");
/// assert_eq!((e.kind(), e.line(), e.advice()), (ErrorKind::Input, Some(7), Some("remove the line")));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    /// Name of the file that the error is in, as the user gave it.
    file: Option<String>,
    /// Line of the file, from 1.
    line: Option<u64>,
    /// What is wrong.
    message: String,
    /// What the user can do about it.
    hint: Option<String>,
    kind: ErrorKind,
}

/// Class of an [`Error`], for programs to decide by; the text of a message is for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file has unexpected content; [`Error::file`] and [`Error::line`] say where.
    Input,
    /// Settings contradict each other, or an algorithm does not support them.
    Settings,
    /// A directory holds work with settings different from those given.
    Mismatch,
    /// Another process is using the directory.
    Busy,
    /// A file that was named does not exist.
    NotFound,
    /// The process that reads standard output has closed it.
    BrokenPipe,
    /// The caller asked a long computation to stop; results completed before are kept.
    Interrupted,
    /// The operating system reported any other error.
    System,
}

impl ErrorKind {
    /// Returns the kind's name in machine-readable output, such as `broken-pipe`.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Input => "input",
            ErrorKind::Settings => "settings",
            ErrorKind::Mismatch => "mismatch",
            ErrorKind::Busy => "busy",
            ErrorKind::NotFound => "not-found",
            ErrorKind::BrokenPipe => "broken-pipe",
            ErrorKind::Interrupted => "interrupted",
            ErrorKind::System => "system",
        }
    }
}

impl Error {
    /// Builds an error at one line of a file, counted from 1; its kind is [`ErrorKind::Input`].
    pub fn at(file: impl Into<String>, line: u64, message: impl Into<String>) -> Self {
        Error { line: Some(line), ..Self::in_file(file, message) }
    }

    /// Builds an error about a file as a whole; its kind is [`ErrorKind::Input`].
    pub fn in_file(file: impl Into<String>, message: impl Into<String>) -> Self {
        Error { file: Some(file.into()), kind: ErrorKind::Input, ..Self::new(message) }
    }

    /// Builds an error that concerns no file, such as settings that contradict each other; its kind is
    /// [`ErrorKind::Settings`].
    pub fn new(message: impl Into<String>) -> Self {
        Error { file: None, line: None, message: message.into(), hint: None, kind: ErrorKind::Settings }
    }

    /// Builds the error of a computation that its caller asked to stop; its kind is
    /// [`ErrorKind::Interrupted`].
    pub fn interrupted() -> Self {
        Error::new("interrupted").of_kind(ErrorKind::Interrupted)
    }

    /// Builds an error from one that the operating system reported about a file, as
    /// `cannot <doing>: <reason>`; its kind is [`ErrorKind::NotFound`], [`ErrorKind::BrokenPipe`] or
    /// [`ErrorKind::System`].
    pub fn io(file: impl Into<String>, doing: &str, error: &io::Error) -> Self {
        let e = Error::in_file(file, format!("cannot {doing}: {}", plain(error)));
        match error.kind() {
            io::ErrorKind::NotFound => e.of_kind(ErrorKind::NotFound).hint("check the path"),
            io::ErrorKind::BrokenPipe => e.of_kind(ErrorKind::BrokenPipe),
            io::ErrorKind::StorageFull => {
                e.of_kind(ErrorKind::System).hint("free some disk space and re-run the same command")
            }
            _ => e.of_kind(ErrorKind::System),
        }
    }

    /// Returns the class of the error, for programs to decide by.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the same error with another kind.
    #[must_use]
    pub fn of_kind(mut self, kind: ErrorKind) -> Self {
        self.kind = kind;
        self
    }

    /// Returns the file that the error is in, as the user named it; `None` if it concerns no file.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// Returns the line of the file that the error is in, from 1; `None` if it concerns no single line.
    pub fn line(&self) -> Option<u64> {
        self.line
    }

    /// Returns what is wrong, without file, line and advice.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns what the user can do about the error; `None` without advice.
    pub fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Sets file and line of the error, and kind [`ErrorKind::Input`], unless a file is set already.
    #[must_use]
    pub fn place(mut self, file: &str, line: u64) -> Self {
        if self.file.is_none() {
            self.file = Some(file.to_owned());
            self.line = Some(line);
            self.kind = ErrorKind::Input;
        }
        self
    }

    /// Sets the advice: what the user can do about the error.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Returns the operating system's message in lower case, without the "(os error 2)" that Rust adds.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(cut) => text[..cut].to_lowercase(),
        None => text,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}:")?;
            if let Some(line) = self.line {
                write!(f, "{line}:")?;
            }
            f.write_str(" ")?;
        }
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
