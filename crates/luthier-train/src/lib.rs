//! From parallel text to translation models: word alignment, phrases, lexical reordering, hierarchical rules.
//!
//! A [`Corpus`] holds the text, [`align::Model`] finds word alignments, [`extract::extract`] makes a scored table of phrases
//! or rules of them. Every step is bit-for-bit reproducible on any number of threads, reports its progress and can be
//! stopped by the same callback ([`luthier_core::Progress`]).

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
