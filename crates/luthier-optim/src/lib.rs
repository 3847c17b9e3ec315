//! Optimisers that know only slices and small traits.
//!
//! [`lbfgs`] and [`newton`] minimise smooth functions, [`dual`] solves for margins; [`envelope`] finds where which
//! line is highest; [`ascend`] climbs a piecewise constant surface by exact line searches.

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
