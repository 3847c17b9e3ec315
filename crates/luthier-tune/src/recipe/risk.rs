//! Settings of minimum risk training.

use super::{
    Algorithm, Context, RecipeInfo,
    parts::{Fit, Gain, Interpolation, Shape, Soft, Stopping},
};
use crate::{
    Learner, Schedule,
    learner::{Loss, Minimize},
};
use luthier_core::Result;
use serde::{Deserialize, Serialize};

/// Minimum risk training (Smith and Eisner 2006): maximises the expected sentence score.
///
/// Minimises [`Loss::Risk`] by L-BFGS, for any metric.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(rename_all = "kebab-case", default)]
pub struct Risk {
    /// Stopping rule of the run.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub stopping: Stopping,
    /// Scale γ, regulariser λ and stopping rule of the minimiser.
    #[cfg_attr(feature = "clap", command(flatten, next_help_heading = "Risk"))]
    #[serde(flatten)]
    pub soft: Soft,
    /// How candidates are compared.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub gain: Gain,
    /// Interpolation of weights and reset of the pool between iterations, with a decoder.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub interpolation: Interpolation,
    /// Constraints on the weights.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub shape: Shape,
}

const INFO: RecipeInfo = RecipeInfo {
    name: "risk",
    summary: "minimum risk training: expected sentence score",
    papers: "Smith and Eisner 2006",
    metrics: "all",
    note: "sentence scores, BLEU as BLEU+1; or gains in the whole output (--gain)",
    has_objective: true,
};

impl Algorithm for Risk {
    fn info(&self) -> &'static RecipeInfo {
        &INFO
    }

    fn resolve(&mut self, context: &Context<'_>) -> Result<()> {
        self.gain.check()?;
        self.soft.resolve()?;
        self.interpolation.resolve(context, Some(1.0), 0)?;
        self.stopping.resolve_batch(context, 25)
    }

    fn learner(&self, context: &Context<'_>) -> Box<dyn Learner> {
        Box::new(self.minimize(context))
    }

    fn schedule(&self, _: &Context<'_>) -> Schedule {
        self.interpolation.schedule(&self.stopping, true)
    }

    fn has_l1(&self) -> bool {
        self.soft.fit.l1.is_some()
    }

    fn is_annealed(&self) -> bool {
        self.soft.gamma.len() > 1
    }

    fn fit_mut(&mut self) -> Option<&mut Fit> {
        Some(&mut self.soft.fit)
    }

    fn objective(&self, context: &Context<'_>) -> Option<Minimize> {
        Some(self.minimize(context))
    }
}

impl Risk {
    fn minimize(&self, context: &Context<'_>) -> Minimize {
        let Gain { by: gain, smoothing } = self.gain;
        Minimize { gain, ..self.soft.minimize(Loss::Risk, smoothing, &self.shape, context) }
    }
}
