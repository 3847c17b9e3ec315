//! Packed forests (acyclic hypergraphs) of the derivations that a decoder has explored for a sentence. A phrase-based
//! lattice is a forest whose edges have at most one tail.
//!
//! [`Semiring`] defines sums over all derivations by the inside–outside algorithm; [`KBest`] enumerates derivations,
//! best first; [`Hull`] computes the upper envelope of all derivations along a line of weights, for MERT;
//! [`Expectation`] computes expected counts and their derivatives; [`rescore`] splits nodes by the state of a
//! non-local feature ([`Stateful`]), such as a language model. Each algorithm makes one pass over the edges, or a
//! few.
//!
//! ```
//! use luthier_forest::{KBest, text::from_json};
//! // "the" or "a", followed by "house".
//! let line = r#"{"rules":["[x] ||| the","[x] ||| a","[x] ||| [x,1] house"],"goal":1,"nodes":[
//!     [{"rule":1,"feature":{"p":-1}},{"rule":2,"feature":{"p":-2}}],[{"tail":[0],"rule":3}]]}"#;
//! let forest = from_json(line)?.forest;
//! let scores = forest.scores(&[1.0]);
//! let best: Vec<(f64, String)> = KBest::new(&forest, &scores, true).map(|d| (d.score, forest.text(&d.words))).collect();
//! assert_eq!(best, [(-1.0, "the house".to_owned()), (-2.0, "a house".to_owned())]);
//! # luthier_core::Result::Ok(())
//! ```

mod envelope;
mod expect;
mod forest;
mod kbest;
mod rescore;
mod semiring;
pub mod text;

pub use envelope::{Hull, LANES, Lanes, Stretch, best_at, derivation_at};
pub use expect::Expectation;
pub use forest::{Builder, Features, Forest, NONE, Rows, Rules, TAILS};
pub use kbest::{Derivation, KBest};
pub use rescore::{Stateful, rescore};
pub use semiring::{Best, Log, Real, Semiring};

#[cfg(test)]
mod tests;
