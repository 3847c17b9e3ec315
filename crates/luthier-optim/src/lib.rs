//! Optimisers that see only slices and small traits.
//!
//! | problem | optimiser |
//! | --- | --- |
//! | smooth, value and gradient ([`Objective`]) | [`lbfgs`] |
//! | smooth, also products with the Hessian | [`newton`] |
//! | margins: ½‖w − w₀‖² and hinge losses ([`Examples`]) | [`dual`], [`dual_newton`], [`dual_simplex`] |
//! | piecewise constant, exact line searches ([`Walker`]) | [`Ascent`] |
//! | which of many lines is highest where | [`Envelope`] |
//!
//! Results are the same to the bit on every machine: sums have a fixed order, and random numbers come from the caller.
//! The cargo features `clap` and `serde`, both off by default, make settings flags of a command line and values in files.

pub mod ascend;
mod dual;
pub mod envelope;
mod lbfgs;
mod newton;
mod objective;

pub use ascend::{Ascent, Direction, Peak, Strategy, Walker};
pub use dual::{Dual, Examples, dual, dual_newton, dual_simplex};
pub use envelope::{Envelope, Piece};
pub use lbfgs::lbfgs;
pub use newton::newton;
pub use objective::{Ended, Limit, Objective, Watch, axpy, dot};

#[cfg(test)]
mod tests;
