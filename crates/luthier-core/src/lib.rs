//! Basic types of all Luthier crates: feature keys, weights, vocabularies, errors that name file and line,
//! floating-point sums that are bit-for-bit the same on any number of threads, exponentials and logarithms that are
//! the same on any processor, and named random streams.
//!
//! ```
//! use luthier_core::{FeatureKey, Weights};
//! let w = Weights::parse("w.txt", "lm 0.5\nlength -1\n").unwrap();
//! assert_eq!(w.get(FeatureKey::of("lm")), 0.5);
//! assert_eq!(w.get(FeatureKey::of("never seen")), 0.0);
//! ```

mod error;
mod feature;
mod fingerprint;
pub mod math;
mod names;
mod progress;
pub mod random;
pub mod sum;
mod vocabulary;
mod weights;

pub use error::{Error, ErrorKind, Result};
pub use feature::{FeatureKey, Local, SegmentId, ShardId};
pub use fingerprint::Fingerprint;
pub use names::Names;
pub use progress::{Progress, Step};
pub use sum::discounts;
pub use vocabulary::Vocabulary;
pub use weights::Weights;
