//! Raw text to tokens and back: Unicode normalisation, a tokeniser with an exact inverse, a truecaser and its inverse,
//! and protected spans (URLs, placeholders, tags, numbers) that pass through a translation unchanged.

mod clean;
mod language;
mod model;
mod normalise;
mod numbers;
mod spans;
mod tokenise;
mod truecase;

pub use clean::{Cleaning, clean};
pub use language::Language;
pub use model::{Prepared, SavedSpan, Side, TextModel, is_placeholder};
pub use normalise::normalise;
pub use numbers::{Numbers, converted};
pub use spans::{JOINER, Span, SpanClass, protected_spans};
pub use tokenise::{Tokeniser, detokenise};
pub use truecase::{Casing, Style};
