//! N-gram language models: estimation, ARPA files, a memory-mapped binary format, and queries with state.
//!
//! [`estimate`] estimates a model from text (interpolated modified Kneser–Ney) and writes an ARPA file,
//! [`Arpa::read`] reads one, [`Model::compile`] converts it to a memory-mapped binary, and a [`Model`] answers
//! queries from many threads. Probabilities are base-10 logarithms, as in ARPA files.
//!
//! ```
//! use luthier_core::Progress;
//! use luthier_io::Input;
//! use luthier_lm::{Arpa, Model, Settings, estimate};
//! let mut text = Input::new("text", "the house\nthe small house\n".as_bytes())?;
//! let mut file = Vec::new();
//! estimate(&mut text, &Settings { order: 2, ..Settings::default() }, &mut file, Progress::NONE)?;
//! let arpa = Arpa::parse(Input::new("lm.arpa", std::io::Cursor::new(file))?, Progress::NONE)?;
//! let model = Model::of_arpa(&arpa, "lm.arpa", Progress::NONE)?;
//! let score = |text: &str| {
//!     let words: Vec<u32> = text.split(' ').map(|w| model.word(w)).collect();
//!     model.sentence(&words).log10
//! };
//! assert!(score("the house") > score("house the"));
//! # luthier_core::Result::Ok(())
//! ```

mod arpa;
mod estimate;
mod fragment;
mod gram;
mod model;

pub use arpa::{Arpa, Grams};
pub use estimate::{Discount, Report, Settings, estimate, estimate_file};
pub use fragment::Fragment;
pub use model::{Info, Model, Scored, Sentence, State};

/// Word number of the unknown word `<unk>`, in every model and ARPA file.
pub const UNKNOWN: u32 = 0;
/// Word number of the sentence-begin marker `<s>`, in every model and ARPA file.
pub const BEGIN: u32 = 1;
/// Word number of the sentence-end marker `</s>`, in every model and ARPA file.
pub const END: u32 = 2;

/// A vocabulary whose first three words are `<unk>`, `<s>` and `</s>`.
fn marked_vocabulary() -> luthier_core::Vocabulary {
    let mut new = luthier_core::Vocabulary::default();
    for word in ["<unk>", "<s>", "</s>"] {
        new.add(word);
    }
    new
}

/// Maximum order of a model: number of words of its longest n-grams.
pub const MAX_ORDER: usize = 6;

#[cfg(test)]
mod tests;
