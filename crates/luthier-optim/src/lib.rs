//! Optimisers that know only slices and small traits.
//!
//! [`envelope`] finds where which line is highest; [`ascend`] climbs a piecewise constant surface by exact
//! line searches.

pub mod ascend;
pub mod envelope;

pub use ascend::{Ascent, Direction, Peak, Strategy, Walker};
pub use envelope::{Envelope, Piece};
