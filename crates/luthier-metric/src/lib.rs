//! Translation metrics as statistics that add.
//!
//! Every metric maps a hypothesis and its references to a short vector of numbers; the vectors of a corpus
//! are summed and the sum is turned into a score. Tuners touch only the vectors, so a metric is written once
//! and every tuner can use it. Higher is better everywhere inside; error rates turn round at the border
//! ([`Metric::shown`]).
//!
//! ```
//! use luthier_metric::{Hypothesis, Metric, Scratch};
//! let metric: Metric = "bleu:order=2".parse().unwrap();
//! let mut scratch = Scratch::default();
//! let prepared = metric.prepare(&["this is a small house"], &mut scratch);
//! let mut stats = vec![0.0; metric.width()];
//! let hypothesis = Hypothesis { text: "this is small house", columns: &[] };
//! metric.stats(&prepared, hypothesis, &mut scratch, &mut stats);
//! let total: Vec<f64> = stats.iter().map(|&s| s.into()).collect();
//! assert_eq!(format!("{:.4}", metric.score(&total)), "63.5888");
//! ```

mod bleu;
mod chrf;
mod edit;
mod metric;
mod ngram;
mod numpy;
pub mod significance;
mod spec;
mod ter;
mod tokenize;

pub use bleu::{Bleu, PlusOne, Smooth};
pub use chrf::Chrf;
pub use edit::ErrorRate;
pub use metric::{Column, Hypothesis, Metric, Prepared, Scratch, looks_tokenized};
pub use spec::SpecError;
pub use ter::Ter;
pub use tokenize::Tokenizer;
