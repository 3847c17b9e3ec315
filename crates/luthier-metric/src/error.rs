//! What can go wrong: a metric's name, or texts that do not fit together.

use std::fmt;

/// A metric that cannot be parsed, or texts that cannot be scored with it. Its text says what was found and what was
/// expected; programs look at [`Error::kind`].
///
/// ```
/// use luthier_metric::{ErrorKind, Metric};
/// let error = "blue".parse::<Metric>().unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Name);
/// assert!(error.to_string().starts_with("unknown metric `blue`: did you mean bleu?"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

/// What kind of mistake an [`Error`] reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A metric, one of its options or a value of an option is not known.
    Name,
    /// There are no hypotheses to score.
    Empty,
    /// The metric compares with references, and none were given.
    NoReferences,
    /// A stream of references is not as long as the hypotheses.
    Length {
        /// Number of hypotheses.
        hypotheses: usize,
        /// Position of the stream among the references, from 0.
        stream: usize,
        /// Number of references in that stream.
        references: usize,
    },
    /// The metric reads a number that comes with each hypothesis, and only texts were given.
    Column,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error { kind, message: message.into() }
    }

    /// An error about a metric's name or options.
    pub(crate) fn name(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Name, message)
    }

    /// What kind of mistake it is.
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
