//! Translation metrics with additive statistics: BLEU, chrF, TER, WER, CER, columns of numbers, and weighted
//! sums.
//!
//! Every metric maps a hypothesis and its references to a short vector of statistics; the vectors are summed
//! over a text, and the score is computed from the sum. Tuners and significance tests use only the
//! statistics, so they work with every metric. BLEU, chrF and TER are equal to sacreBLEU's. Internally,
//! higher is better for every metric: error rates are negated, and [`Metric::display_score`] restores their
//! sign for display.
//!
//! [`corpus_score`] scores a text in one call. [`Metric::prepare`], [`Metric::stats`] and [`Metric::score`]
//! are its parts, for programs that score many hypotheses of the same segment:
//!
//! ```
//! use luthier_metric::{Hypothesis, Metric, Scratch};
//! let metric: Metric = "bleu:order=2".parse()?;
//! let mut scratch = Scratch::default();
//! let prepared = metric.prepare(&["this is a small house"], &mut scratch);
//! let mut stats = vec![0.0; metric.width()];
//! let hypothesis = Hypothesis { text: "this is small house", columns: &[] };
//! metric.stats(&prepared, hypothesis, &mut scratch, &mut stats);
//! let total: Vec<f64> = stats.iter().map(|&s| s.into()).collect();
//! assert_eq!(format!("{:.4}", metric.score(&total)), "63.5888");
//! # Ok::<(), luthier_metric::Error>(())
//! ```
//!
//! The Cargo features `clap` and `serde`, both off by default, provide the settings as command-line flags and
//! in serialised form.

mod bleu;
mod chrf;
mod corpus;
mod edit;
mod error;
mod metric;
mod ngram;
mod numpy;
pub mod significance;
mod spec;
mod ter;
mod tokenize;

pub use bleu::{Bleu, SentenceSmoothing, Smooth};
pub use chrf::Chrf;
pub use corpus::{Score, add, corpus_score};
pub use edit::ErrorRate;
pub use error::{Error, ErrorKind};
pub use metric::{Column, Hypothesis, Metric, Prepared, Scratch, looks_tokenized, looks_untokenized};
pub use spec::edit_distance;
pub use ter::Ter;
pub use tokenize::Tokenizer;
