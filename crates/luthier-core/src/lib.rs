//! The ground floor of Luthier: ids, feature keys, weights, text formats whose errors name file and line,
//! transparent decompression, deterministic sums and random streams.
//!
//! ```
//! use luthier_core::{FeatureKey, Weights};
//! let w = Weights::parse("w.txt", "lm 0.5\nlength -1\n").unwrap();
//! assert_eq!(w.get(FeatureKey::of("lm")), 0.5);
//! assert_eq!(w.get(FeatureKey::of("never seen")), 0.0);
//! ```

pub mod container;
mod error;
mod feature;
mod fingerprint;
mod input;
pub mod moses_ini;
mod names;
pub mod nbest;
mod output;
pub mod random;
pub mod sort;
pub mod sum;
pub mod text;
mod vocabulary;
mod weights;
mod work_dir;

pub use error::{Error, Result};
pub use feature::{FeatureKey, Local, SegmentId, ShardId};
pub use fingerprint::Fingerprint;
pub use input::Input;
pub use names::Names;
pub use output::AtomicFile;
pub use sum::discounts;
pub use vocabulary::Vocabulary;
pub use weights::Weights;
pub use work_dir::{Settings, WorkDir, WorkKind};
