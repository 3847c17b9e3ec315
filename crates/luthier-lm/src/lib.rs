//! N-gram language models: estimation, ARPA files, one mapped binary layout, queries with carried state.
//!
//! [`estimate`] makes an [`Arpa`] of text (interpolated modified Kneser–Ney), [`Model::compile`] a binary of an
//! `Arpa`; a [`Model`] answers queries from many threads. Probabilities are logarithms to base 10, as in ARPA files.

mod arpa;
mod estimate;
mod fragment;
mod gram;
mod model;

pub use arpa::{Arpa, Grams};
pub use estimate::{Discount, Report, Settings, estimate};
pub use fragment::Fragment;
pub use model::{Info, Model, Scored, Sentence, State};

/// Number of the unknown word, `<unk>`.
pub const UNKNOWN: u32 = 0;
/// Number of the beginning of a sentence, `<s>`.
pub const BEGIN: u32 = 1;
/// Number of the end of a sentence, `</s>`.
pub const END: u32 = 2;

/// A vocabulary whose first three words are `<unk>`, `<s>` and `</s>`.
fn marked_vocabulary() -> luthier_core::Vocabulary {
    let mut new = luthier_core::Vocabulary::default();
    for word in ["<unk>", "<s>", "</s>"] {
        new.add(word);
    }
    new
}

/// Longest n-gram.
pub const MAX_ORDER: usize = 6;

#[cfg(test)]
mod tests;
