//! Errors of parsing metrics and of scoring texts.

use std::fmt;

/// Error of parsing a metric or of scoring texts. Its message says what was found and what was expected;
/// programs should use [`Error::kind`].
///
/// ```
/// use luthier_metric::{ErrorKind, Metric};
/// let error = "blue".parse::<Metric>().unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Name);
/// assert!(error.to_string().ends_with("did you mean bleu?"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

/// Class of an [`Error`], for programs to decide by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A metric, one of its options or the value of an option is unknown.
    Name,
    /// There are no hypotheses to score.
    Empty,
    /// The metric needs references, and none were given.
    NoReferences,
    /// The number of references in a stream differs from the number of hypotheses.
    Length {
        /// Number of hypotheses.
        hypotheses: usize,
        /// Index of the stream of references, from 0.
        stream: usize,
        /// Number of references in that stream.
        references: usize,
    },
    /// The metric reads a column of numbers, and only texts were given.
    Column,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error { kind, message: message.into() }
    }

    /// Builds an error of kind [`ErrorKind::Name`].
    pub(crate) fn name(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Name, message)
    }

    /// Returns the class of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
