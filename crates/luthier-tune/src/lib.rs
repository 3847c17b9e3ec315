//! Tuning: lists of candidates, learners, schedules and the one loop.
//!
//! Every algorithm is a composition of a [`Source`] (where candidates come from), a [`Learner`] (what is
//! learned from them) and a [`Schedule`] (in which order); [`run`] is the only loop. `recipes` holds the list of
//! algorithms.

mod fleet;
mod learner;
mod line;
mod list;
mod oracle;
mod pool;
pub mod recipes;
mod run;
mod run_dir;
mod schedule;
mod source;
mod state;

pub use fleet::{Alone, Fleet, Wire};
pub use learner::{Learner, Limits, LineSearch, Progress};
pub use line::{Flat, ListWalker, Smoothing, Surface};
pub use list::{Candidate, List};
pub use oracle::{Choice, oracle};
pub use pool::{Judge, SMALL, columns, list, lists};
pub use run::{Event, Outcome, Stop, run};
pub use run_dir::{RunDir, Settings};
pub use schedule::Schedule;
pub use source::{Evidence, FixedLists, Goal, Source};
pub use state::State;
