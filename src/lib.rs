//! Luthier builds statistical machine-translation systems and tunes their weights. It also tunes other rerankers that
//! score n-best lists with a linear model.
//!
//! Tuning on n-best lists needs an [`NBest`] (candidates with features, and references), a [`Recipe`] (an algorithm
//! with its settings) and [`tune()`]:
//!
//! ```
//! use luthier::{Mert, NBest, Recipe};
//!
//! let dev = NBest::read(["examples/quickstart/nbest.txt"])?.with_references(["examples/quickstart/ref.txt"])?;
//! let recipe = Recipe::Mert(Mert { restarts: Some(20), ..Mert::default() });
//! let tuned = luthier::tune(&dev, &recipe).metric("bleu")?.seed(1).run()?;
//! println!("{:.2} -> {:.2}", tuned.initial, tuned.score);
//! let best: Vec<&str> = dev.rerank(&tuned.weights)?;
//! # assert_eq!(best.len(), dev.rerank(&tuned.weights)?.len());
//! # Ok::<(), luthier::core::Error>(())
//! ```
//!
//! [`Training`] trains a translation model from parallel text, and [`Translator`] translates with it:
//!
//! ```no_run
//! use luthier::{Training, Translator};
//!
//! Training::new("train.de", "train.en", "model").run()?;
//! for line in Translator::open("model")?.translate(&["das haus ist klein ."])? {
//!     println!("{line}");
//! }
//! # Ok::<(), luthier::core::Error>(())
//! ```
//!
//! Each layer is a separate crate, re-exported here as a module: [`metric`] scores texts; [`lm`], [`table`],
//! [`train`] and [`decode`] build and use translation models; [`forest`] holds packed forests; [`mod@tune`] has the
//! tuning algorithms and the tuning loop. Cargo features: `cli` (the binary; default), `codecs` (bz2, xz and zstd
//! besides gzip; default), `serve` (`luthier serve`, part of the binary; default), `mpi` (several processes).

#[cfg(feature = "mpi")]
pub mod cluster;
pub mod constrained;
pub mod decoder;
pub mod external;
pub mod nbest;
pub mod training;
pub mod translator;
mod tuning;

pub use nbest::NBest;
pub use training::{Trained, Training};
pub use translator::Translator;
pub use tuning::{Tuned, Tuning, tune};

pub use luthier_core::{self as core, Error, ErrorKind, Progress, Result, Weights};
pub use luthier_decode as decode;
pub use luthier_forest as forest;
pub use luthier_generate as generate;
pub use luthier_io as io;
pub use luthier_lm as lm;
pub use luthier_metric as metric;
pub use luthier_optim as optim;
pub use luthier_table as table;
pub use luthier_text as text;
pub use luthier_train as train;
pub use luthier_tune::{
    self as tune,
    recipe::{Online, Recipe, Stopping, algorithms::*},
};
