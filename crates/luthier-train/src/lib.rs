//! From parallel text to models: word alignment, phrases, reordering, hierarchical rules.

pub mod align;
mod corpus;
pub mod links;

pub use corpus::{Corpus, Dropped, Side};
pub use links::{Agreement, Link, Symmetrization};
