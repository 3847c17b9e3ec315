//! Numerical optimisers over slices and small traits.
//!
//! | problem | solver |
//! | --- | --- |
//! | minimise a smooth function from value and gradient ([`Objective`]) | [`lbfgs`] |
//! | the same plus an L1 penalty, with non-negative variables | [`owlqn`] |
//! | minimise a smooth function with Hessian-vector products | [`newton`] |
//! | minimise ½‖w − w₀‖² plus hinge losses ([`Examples`]) | [`dual`], [`dual_newton`], [`dual_simplex`] |
//! | maximise a piecewise constant function by exact line searches ([`Walker`]) | [`Ascent`] |
//! | find the upper envelope of a set of lines | [`Envelope`] |
//!
//! Results are bit-for-bit reproducible on every machine: sums have a fixed order, and random numbers come from the
//! caller. The cargo features `clap` and `serde`, both off by default, derive command-line flags and serialisation for
//! the settings.

pub mod ascend;
mod dual;
pub mod envelope;
mod lbfgs;
mod newton;
mod objective;
mod owlqn;

pub use ascend::{Ascent, Direction, Peak, Strategy, Walker};
pub use dual::{Accuracy, Dual, Examples, dual, dual_newton, dual_simplex};
pub use envelope::{Envelope, Narrow, Piece, Seed};
pub use lbfgs::lbfgs;
pub use newton::newton;
pub use objective::{Ended, Limit, Objective, Watch, axpy, dot};
pub use owlqn::{Penalty, owlqn};

#[cfg(test)]
mod tests;
