//! From parallel text to models: word alignment, phrases, reordering, hierarchical rules.

pub mod align;
mod corpus;
pub mod extract;
mod lexical;
pub mod links;
mod phrases;

pub use corpus::{Corpus, Dropped, Side};
pub use lexical::Lexicon;
pub use links::{Agreement, Link, Symmetrization};
pub use phrases::{Linked, Orientation, Rule, RuleFinder, RuleLimits, Spans};
