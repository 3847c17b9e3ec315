//! Tuning: lists of candidates, learners, schedules and the one loop.
//!
//! Every algorithm is a composition of a [`Source`] (where candidates come from), a [`Learner`] (what is
//! learned from them) and a [`Schedule`] (in which order); [`run`] is the only loop. [`recipe`] is the list
//! of algorithms.

mod design;
mod fleet;
mod forest_line;
mod learner;
mod line;
mod list;
pub mod loss;
mod mixing;
mod oracle;
mod packed;
mod pairs;
mod pool;
pub mod recipe;
mod run;
mod run_dir;
mod run_spec;
mod run_view;
mod schedule;
mod source;
mod state;
mod steer;

pub use design::Design;
pub use fleet::{Alone, Fleet, Traffic, Wire};
pub use forest_line::ForestWalker;
pub use learner::{
    Bound, Decay, HopeFear, Learner, Limits, LineSearch, Linearize, Loss, Minimize, Norm, Note, OneBest,
    Rank, RankLoss, RankMargin, Rate, Rule, Update,
};
pub use line::{Flat, ListWalker, Smooth, Smoothing, Surface};
pub use list::{Candidate, List};
pub use oracle::{Choice, oracle};
pub use packed::{Packed, Segment};
pub use pairs::{OracleBy, PairSource, Pairs};
pub use pool::{Judge, SMALL, columns, list, lists};
pub use run::{Event, Job, Outcome, Stop, run};
pub use run_dir::RunDir;
pub use run_spec::{FORMAT, NbestOptions, RunSpec, is_run};
pub use run_view::{RunEnd, RunView};
pub use schedule::{Batches, Mixing, Schedule};
pub use source::{Evidence, FixedLists, Goal, Source, SourceKind};
pub use state::{Batch, Pass, State};
