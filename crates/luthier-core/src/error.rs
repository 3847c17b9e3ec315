//! One error type: where, what was found, what to do. It prints as one line.

use serde::{Deserialize, Serialize};
use std::{fmt, io};

/// What every fallible function of Luthier returns.
pub type Result<T> = std::result::Result<T, Error>;

/// A mistake in the user's input, or the machine's refusal, as one printable line.
///
/// ```
/// use luthier_core::Error;
/// let e = Error::at("a.nbest", 7, "the value of LM0 is NaN, expected a finite number").hint("remove the line");
/// assert_eq!(e.to_string(), "a.nbest:7: the value of LM0 is NaN, expected a finite number; remove the line");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    file: Option<String>,
    line: Option<u64>,
    message: String,
    hint: Option<String>,
    shared: bool,
}

impl Error {
    /// A mistake in one line of a file.
    pub fn at(file: impl Into<String>, line: u64, message: impl Into<String>) -> Self {
        Error { line: Some(line), ..Self::in_file(file, message) }
    }

    /// A mistake in a file as a whole.
    pub fn in_file(file: impl Into<String>, message: impl Into<String>) -> Self {
        Error { file: Some(file.into()), ..Self::new(message) }
    }

    /// A mistake that lies in no file: settings that contradict each other, say.
    pub fn new(message: impl Into<String>) -> Self {
        Error { file: None, line: None, message: message.into(), hint: None, shared: false }
    }

    /// What the operating system said about a file.
    pub fn io(file: impl Into<String>, doing: &str, error: &io::Error) -> Self {
        let e = Error::in_file(file, format!("cannot {doing}: {}", plain(error)));
        match error.kind() {
            io::ErrorKind::NotFound => e.hint("check the path"),
            io::ErrorKind::StorageFull => e.hint("free some space and run the same command again"),
            _ => e,
        }
    }

    /// Says where, if it is not known yet.
    #[must_use]
    pub fn place(mut self, file: &str, line: u64) -> Self {
        if self.file.is_none() {
            self.file = Some(file.to_owned());
            self.line = Some(line);
        }
        self
    }

    /// Marks what all processes of a job have been told, so that all of them end in order.
    #[must_use]
    pub fn shared(mut self) -> Self {
        self.shared = true;
        self
    }

    /// Whether all processes of a job know it.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// Adds what the user can do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The system's words without Rust's "(os error 2)".
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
