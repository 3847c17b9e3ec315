//! Luthier builds statistical machine-translation systems and tunes their weights; and it tunes any reranker
//! that scores n-best lists with a linear model.
//!
//! This crate is the facade: each layer is a crate of its own, re-exported here.
//!
//! ```
//! use luthier::metric::Metric;
//! let metric: Metric = "bleu:lowercase".parse().unwrap();
//! assert!(metric.signature(Some(1), "").starts_with("nrefs:1|case:lc|eff:no|tok:none|smooth:exp|version:luthier-"));
//! ```

#[cfg(feature = "mpi")]
pub mod cluster;
pub mod constrained;
pub mod decoder;
pub mod external;

pub use luthier_core as core;
pub use luthier_decode as decode;
pub use luthier_forest as forest;
pub use luthier_generate as generate;
pub use luthier_io as io;
pub use luthier_lm as lm;
pub use luthier_metric as metric;
pub use luthier_optim as optim;
pub use luthier_table as table;
pub use luthier_train as train;
pub use luthier_tune as tune;
