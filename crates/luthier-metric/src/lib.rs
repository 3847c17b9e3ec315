//! Translation metrics as statistics that add.
//!
//! Every metric maps a hypothesis and its references to a short vector of numbers; the vectors of a corpus
//! are summed and the sum is turned into a score. Tuners touch only the vectors, so a metric is written once
//! and every tuner can use it. Higher is better everywhere inside.
//!
//! ```
//! use luthier_metric::{Hypothesis, Metric, Scratch};
//! let metric: Metric = "bleu:order=2".parse().unwrap();
//! let prepared = metric.prepare(&["this is a small house"]);
//! let mut stats = vec![0.0; metric.width()];
//! metric.stats(&prepared, Hypothesis { text: "this is small house" }, &mut Scratch::default(), &mut stats);
//! let total: Vec<f64> = stats.iter().map(|&s| s.into()).collect();
//! assert_eq!(format!("{:.4}", metric.score(&total)), "63.5888");
//! ```

mod bleu;
mod metric;
mod ngram;
mod spec;
mod tokenize;

pub use bleu::{Bleu, Smooth};
pub use metric::{Hypothesis, Metric, Prepared, Scratch};
pub use spec::SpecError;
pub use tokenize::Tokenizer;
