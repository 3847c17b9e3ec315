//! Training of translation models from parallel text: word alignment, phrases, lexical reordering,
//! hierarchical rules.
//!
//! A [`Corpus`] holds the text, [`align::Model`] aligns its words, and [`extract::extract`] extracts a scored
//! table of phrases or rules. Every step is bit-for-bit reproducible on any number of threads, reports its
//! progress and can be stopped through the same callback ([`luthier_core::Progress`]).

pub mod align;
mod corpus;
pub mod extract;
mod lexical;
pub mod links;
mod phrases;

pub use corpus::{Corpus, Dropped, Side};
pub use lexical::Lexicon;
pub use links::{Agreement, Link, Symmetrization};
pub use phrases::{Linked, Orientation, PhraseSettings, Rule, RuleFinder, RuleLimits, Smoothing, Spans};
