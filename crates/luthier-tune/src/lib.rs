//! Tuning of the weights of rerankers and statistical machine translation systems.
//!
//! A reranker or decoder outputs the candidate e of a segment with the highest score w·h(e); tuning finds
//! weights w whose output scores best under a metric. Every algorithm is composed of a [`Source`] (candidates
//! of each segment), a [`Learner`] (new weights from candidates) and a [`Schedule`] (iterations, batches,
//! stopping rule). [`run`] is the only loop, [`RunDir`] its checkpoint. [`recipe`] lists the algorithms with
//! their settings, [`loss`] the objectives of those that minimise one.
//!
//! Results depend on inputs, settings and seed alone: they are bit-for-bit reproducible on any number of
//! threads and processes ([`Fleet`]).
//!
//! ```
//! use luthier_core::{Progress, Weights};
//! use luthier_io::nbest::Rows;
//! use luthier_tune::recipe::{Context, Recipe};
//! use luthier_tune::{FixedLists, Fleet, Job, Judge, RunDir, RunSpec, SourceKind, columns, lists, run};
//! let mut rows = Rows::default();
//! rows.push(0, "the house is very small", &[("lm", -2.0), ("tm", -3.0)], &[]).unwrap();
//! rows.push(0, "house the small", &[("lm", -6.0), ("tm", -1.0)], &[]).unwrap();
//! let metric = "bleu".parse().unwrap();
//! let references = [vec!["the house is very small"]];
//! let judge = Judge::new(&metric, &references, "ref.txt");
//! let source = FixedLists::new(lists(&rows, &columns(&rows, None), Some(judge)).unwrap(), rows.names);
//!
//! let context = Context { metric: &metric, seed: 1, source: SourceKind::Fixed, references: None };
//! let tuner = Recipe::named("pro").unwrap().build(&context).unwrap();
//! let job = Job {
//!     source: &source,
//!     select: None,
//!     test: None,
//!     learner: &*tuner.learner,
//!     schedule: &tuner.schedule,
//!     metric: &metric,
//!     initial: &Weights::parse("w.txt", "tm 1").unwrap(),
//!     progress: Progress::NONE,
//! };
//! let mut dir = RunDir::in_memory(RunSpec::new(tuner.recipe.clone(), "bleu", 1));
//! let outcome = run(&job, &mut dir, &Fleet::ALONE, &mut |_| ()).unwrap();
//! assert_eq!(outcome.initial, 0.0);
//! assert!(outcome.score > 99.9);
//! ```

mod candidates;
mod certify;
mod feature_matrix;
mod fleet;
mod forest_line;
mod forest_oracle;
mod forest_pool;
pub mod learner;
mod line;
pub mod loss;
mod mixing;
mod oracle;
pub mod pairs;
mod pool;
pub mod recipe;
mod run;
mod run_dir;
mod run_spec;
mod run_view;
mod schedule;
mod source;
mod stability;
mod start;
mod state;
mod validate;

pub use candidates::{Candidate, Candidates};
pub use feature_matrix::FeatureMatrix;
pub use fleet::{Alone, Fleet, Traffic, Wire};
pub use forest_pool::{ForestPool, SegmentForests};
pub use learner::{Learner, Note};
pub use oracle::{Choice, first_score, oracle, oracle_with};
pub use pool::{Judge, SMALL, columns, list, lists};
pub use run::{Event, Job, Outcome, Stop, run};
pub use run_dir::RunDir;
pub use run_spec::{FORMAT, FROM_LISTS, HeldOutPart, NbestOptions, RunSpec, is_run};
pub use run_view::{RunEnd, RunView};
pub use schedule::{Batches, Interpolate, Mixing, Schedule};
pub use source::{Evidence, FixedLists, Goal, Source, SourceKind, Subset};
pub use stability::{Bootstrap, FeatureStability, Stability, check_resampling, check_samples};
pub use state::{Batch, Pass, State};
pub use validate::{HeldOut, HoldOut, Learned, Part, PartScore, validate};

/// Minimum error rate training (Och 2003): exact line search over n-best lists and over forests, smoothing of
/// plateaus, and the learner that chooses the lines.
pub mod mert {
    pub use crate::{
        certify::{Certificate, Limits as CertifyLimits, MARGIN, certify},
        forest_line::ForestWalker,
        learner::line_search::{Limits, LineSearch},
        line::{Flat, ListWalker, Smooth, Smoothing, Surface},
    };
}

/// Online rank learning (Watanabe 2012): the learner of ORO, O-ORO and batch MIRA, with its settings.
pub mod rank {
    pub use crate::learner::rank::{
        Bound, Decay, InnerPairs, Linearize, MiraScale, Norm, Rank, RankLoss, RankMargin, Rate, Rule,
    };
}
