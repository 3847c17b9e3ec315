//! Settings of APRO.

use super::{
    Algorithm, Context, RecipeInfo,
    parts::{Fit, Interpolation, Stopping},
    range::POSITIVE,
};
use crate::{
    Learner, Outcome, Schedule,
    learner::{Loss, Minimize},
};
use luthier_core::Result;
use luthier_metric::SentenceSmoothing;
use serde::{Deserialize, Serialize};

/// All-pairs ranking optimisation (Dreyer and Dong 2015): a squared hinge loss over all pairs of candidates,
/// in O(k log k) per segment of k candidates.
///
/// Minimises [`Loss::Apro`] by trust-region Newton; deterministic given the initial weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(rename_all = "kebab-case", default)]
pub struct Apro {
    /// Stopping rule of the run.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub stopping: Stopping,
    /// C: weight of the loss relative to the regulariser ½‖w‖² (Dreyer and Dong 2015, eq. 3).
    ///
    /// The loss is summed over all pairs and divided by the number of candidates, so it is proportional to the
    /// length of the lists. 0.01 suits about 3,600 candidates per segment; for shorter lists raise it in
    /// proportion.
    #[cfg_attr(feature = "clap", arg(long, value_name = "C", default_value_t = Apro::default().c, allow_negative_numbers = true, value_parser = super::range::flag::positive, help_heading = "APRO"))]
    pub c: f64,
    /// Smoothing of sentence BLEU (BLEU+1).
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub sentence: SentenceSmoothing,
    /// Stopping rule of the minimiser.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub fit: Fit,
    /// Interpolation of weights and reset of the pool between iterations, with a decoder.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub interpolation: Interpolation,
}

/// Mean number of candidates per segment in an accumulated list of Dreyer and Dong (2015, §5.2), taken as the
/// length that their C suits.
const PAPER_LENGTH: usize = 3600;
/// C of Dreyer and Dong (2015, §5.1).
const PAPER_C: f64 = 0.01;

impl Default for Apro {
    fn default() -> Self {
        Apro {
            stopping: Stopping::default(),
            c: PAPER_C,
            sentence: SentenceSmoothing::default(),
            fit: Fit::default(),
            interpolation: Interpolation::default(),
        }
    }
}

const INFO: RecipeInfo = RecipeInfo {
    name: "apro",
    summary: "all-pairs ranking: squared hinge loss over all pairs of candidates in O(k log k), deterministic",
    papers: "Dreyer and Dong 2015",
    metrics: "all",
    note: "ranking by sentence score; BLEU as BLEU+1",
    has_objective: true,
};

impl Algorithm for Apro {
    fn info(&self) -> &'static RecipeInfo {
        &INFO
    }

    fn resolve(&mut self, context: &Context<'_>) -> Result<()> {
        POSITIVE.check("c", self.c)?;
        self.fit.resolve(1e-3)?;
        self.interpolation.resolve(context, 1.0, 10)?;
        self.stopping.resolve_batch(context, 30)
    }

    fn learner(&self, context: &Context<'_>) -> Box<dyn Learner> {
        Box::new(self.minimize(context))
    }

    fn schedule(&self, _: &Context<'_>) -> Schedule {
        self.interpolation.schedule(&self.stopping, true)
    }

    fn objective(&self, context: &Context<'_>) -> Option<Minimize> {
        Some(self.minimize(context))
    }

    /// Advises a larger C for short lists: the loss grows with the number of pairs, its divisor N with the
    /// number of candidates, so the loss of short lists has less weight.
    fn remarks(&self, _: &Outcome, length: usize) -> Vec<String> {
        let short = self.c == PAPER_C && length * 2 < PAPER_LENGTH && length > 0;
        let same = self.c * PAPER_LENGTH as f64 / length.max(1) as f64;
        let remark = format!(
            "--c 0.01 suits lists of about {PAPER_LENGTH} candidates; for lists of {length}, --c {same:.2} gives \
             the loss the same weight"
        );
        if short { vec![remark] } else { Vec::new() }
    }
}

impl Apro {
    fn minimize(&self, context: &Context<'_>) -> Minimize {
        Minimize {
            metric: context.metric.clone(),
            loss: Loss::Apro { c: self.c },
            lambda: 1.0,
            gamma: vec![1.0],
            plus_one: self.sentence,
            limit: self.fit.limit(),
            seed: context.seed,
        }
    }
}
