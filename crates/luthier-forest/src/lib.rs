//! Packed forests: all derivations of a sentence that a decoder has looked at. A phrase-based lattice is a forest whose
//! edges have one tail.
//!
//! Sums over derivations go through a [`Semiring`]; [`KBest`] gives out derivations best first; [`rescore`] splits nodes by
//! anything [`Stateful`].

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
