//! Settings of APRO.

use super::{
    Algorithm, Context, RecipeInfo,
    parts::{Fit, Gain, Interpolation, Shape, Stopping},
    range::POSITIVE,
};
use crate::{
    Learner, Outcome, Schedule,
    learner::{Loss, Minimize},
    loss::AproScale,
};
use luthier_core::Result;
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
    /// C: weight of the loss relative to the regulariser ½‖w‖² [default: 20; 0.01 with --scale candidates].
    ///
    /// With --scale candidates, the loss is proportional to the length of the lists: 0.01 suits about 3,600 candidates
    /// per segment; for shorter lists raise it in proportion.
    #[cfg_attr(feature = "clap", arg(long, value_name = "C", allow_negative_numbers = true, value_parser = super::range::flag::positive, help_heading = "APRO"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub c: Option<f64>,
    /// Divisor of the loss: mean over the pairs of each segment, or sum over pairs divided by the number of candidates
    /// (Dreyer and Dong 2015, eq. 3).
    #[cfg_attr(feature = "clap", arg(long, value_name = "BY", value_enum, default_value_t = Apro::default().scale, help_heading = "APRO"))]
    pub scale: AproScale,
    /// How candidates are compared.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub gain: Gain,
    /// Stopping rule of the minimiser.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub fit: Fit,
    /// Interpolation of weights and reset of the pool between iterations, with a decoder.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub interpolation: Interpolation,
    /// Constraints on the weights.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub shape: Shape,
}

/// Mean number of candidates per segment in an accumulated list of Dreyer and Dong (2015, §5.2), taken as the
/// length that their C suits.
const PAPER_LENGTH: usize = 3600;
/// C of Dreyer and Dong (2015, §5.1).
const PAPER_C: f64 = 0.01;
/// C for the mean over pairs: about the weight that the paper's C gives to the mean pair of its lists, 0.01 · 3,600 / 2.
const MEAN_C: f64 = 20.0;

impl Default for Apro {
    fn default() -> Self {
        Apro {
            stopping: Stopping::default(),
            shape: Shape::default(),
            c: None,
            scale: AproScale::Pairs,
            gain: Gain::default(),
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
    note: "ranking by sentence score, BLEU as BLEU+1; or by gain in the whole output (--gain)",
    has_objective: true,
};

impl Algorithm for Apro {
    fn info(&self) -> &'static RecipeInfo {
        &INFO
    }

    fn resolve(&mut self, context: &Context<'_>) -> Result<()> {
        self.gain.check()?;
        POSITIVE.check("c", self.c)?;
        self.c.get_or_insert(self.default_c());
        self.fit.resolve(1e-3)?;
        self.interpolation.resolve(context, Some(1.0), 10)?;
        self.stopping.resolve_batch(context, 30)
    }

    fn learner(&self, context: &Context<'_>) -> Box<dyn Learner> {
        Box::new(self.minimize(context))
    }

    fn schedule(&self, _: &Context<'_>) -> Schedule {
        self.interpolation.schedule(&self.stopping, true)
    }

    fn is_convex(&self) -> bool {
        true
    }

    fn has_l1(&self) -> bool {
        self.fit.l1.is_some()
    }

    fn fit_mut(&mut self) -> Option<&mut Fit> {
        Some(&mut self.fit)
    }

    fn objective(&self, context: &Context<'_>) -> Option<Minimize> {
        Some(self.minimize(context))
    }

    /// Advises a larger C for short lists: the loss grows with the number of pairs, its divisor N with the
    /// number of candidates, so the loss of short lists has less weight.
    fn remarks(&self, _: &Outcome, length: usize) -> Vec<String> {
        let paper = self.scale == AproScale::Candidates && self.c == Some(PAPER_C);
        let short = paper && length * 2 < PAPER_LENGTH && length > 0;
        let same = PAPER_C * PAPER_LENGTH as f64 / length.max(1) as f64;
        let remark = format!(
            "--c 0.01 suits lists of about {PAPER_LENGTH} candidates; for lists of {length}, --c {same:.2} gives \
             the loss the same weight"
        );
        if short { vec![remark] } else { Vec::new() }
    }
}

impl Apro {
    fn default_c(&self) -> f64 {
        match self.scale {
            AproScale::Pairs => MEAN_C,
            AproScale::Candidates => PAPER_C,
        }
    }

    fn minimize(&self, context: &Context<'_>) -> Minimize {
        Minimize {
            metric: context.metric.clone(),
            loss: Loss::Apro { c: self.c.unwrap_or(self.default_c()), scale: self.scale },
            lambda: 1.0,
            gamma: vec![1.0],
            plus_one: self.gain.smoothing,
            gain: self.gain.by,
            l1: self.fit.l1(),
            nonnegative: self.shape.nonnegative(),
            limit: self.fit.limit(),
            seed: context.seed,
        }
    }
}
