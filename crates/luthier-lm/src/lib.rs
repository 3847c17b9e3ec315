//! N-gram language models: estimation, ARPA files, one mapped binary layout, queries with carried state.
//!
//! [`estimate`] makes an [`Arpa`] of text (interpolated modified Kneser–Ney), [`Model::compile`] a binary of an
//! `Arpa`; a [`Model`] answers queries from many threads. Probabilities are logarithms to base 10, as in ARPA files.

mod arpa;
mod estimate;
mod fragment;
mod model;
mod sort;
mod vocabulary;

pub use arpa::{Arpa, Grams};
pub use estimate::{Discount, Report, Settings, estimate};
pub use fragment::Fragment;
pub use model::{Info, Model, Scored, Sentence, State};
pub use vocabulary::{BEGIN, END, UNKNOWN, Vocabulary};

/// Longest n-gram.
pub const MAX_ORDER: usize = 6;

#[cfg(test)]
mod tests;
