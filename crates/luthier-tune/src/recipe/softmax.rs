//! Settings of the softmax loss: likelihood of the oracles.

use super::{
    Algorithm, Context, RecipeInfo,
    parts::{Fit, Interpolation, LearnFrom, Shape, Soft, Stopping},
};
use crate::{
    Learner, Schedule,
    learner::{Loss, Minimize},
    pairs::OracleBy,
};
use luthier_core::Result;
use luthier_metric::SentenceSmoothing;
use serde::{Deserialize, Serialize};

/// Maximum likelihood of the oracles among all candidates (Watanabe 2012, eq. 6).
///
/// Minimises [`Loss::Softmax`] by L-BFGS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(rename_all = "kebab-case", default)]
pub struct Softmax {
    /// Stopping rule of the run.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub stopping: Stopping,
    /// Whether the algorithm learns from n-best lists or from forests.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub learn_from: LearnFrom,
    /// Choice of oracles: by corpus score, or by sentence score.
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t = Softmax::default().oracle, help_heading = "Softmax"))]
    pub oracle: OracleBy,
    /// Smoothing of sentence BLEU, for oracles by sentence.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub sentence: SentenceSmoothing,
    /// Scale γ, regulariser λ and stopping rule of the minimiser.
    #[cfg_attr(feature = "clap", command(flatten, next_help_heading = "Softmax"))]
    #[serde(flatten)]
    pub soft: Soft,
    /// Interpolation of weights and reset of the pool between iterations, with a decoder.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub interpolation: Interpolation,
    /// Constraints on the weights.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub shape: Shape,
}

impl Default for Softmax {
    fn default() -> Self {
        Softmax {
            stopping: Stopping::default(),
            shape: Shape::default(),
            learn_from: LearnFrom::default(),
            oracle: OracleBy::Corpus,
            sentence: SentenceSmoothing::default(),
            soft: Soft::default(),
            interpolation: Interpolation::default(),
        }
    }
}

const INFO: RecipeInfo = RecipeInfo {
    name: "softmax",
    summary: "maximum likelihood of the oracles among all candidates",
    papers: "Watanabe 2012",
    metrics: "all",
    note: "oracles chosen by corpus score, or by sentence score (--oracle)",
    has_objective: true,
};

impl Algorithm for Softmax {
    fn info(&self) -> &'static RecipeInfo {
        &INFO
    }

    fn resolve(&mut self, context: &Context<'_>) -> Result<()> {
        self.soft.resolve()?;
        self.learn_from.resolve(INFO.name, true, context)?;
        // Forests cover only weights near those that they were decoded with, so steps are short. On lists the output of
        // the most likely weights is short, because the best candidate is shorter than the mean one: the line search
        // keeps the length that the metric asks for.
        let psi = self.learn_from.is_forest().then_some(0.1);
        self.interpolation.resolve(context, psi, 0)?;
        self.stopping.resolve_batch(context, 25)
    }

    fn learner(&self, context: &Context<'_>) -> Box<dyn Learner> {
        Box::new(self.minimize(context))
    }

    fn schedule(&self, _: &Context<'_>) -> Schedule {
        self.interpolation.schedule(&self.stopping, !self.learn_from.is_forest())
    }

    fn learn_from(&self) -> Option<&LearnFrom> {
        Some(&self.learn_from)
    }

    fn is_convex(&self) -> bool {
        true
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

impl Softmax {
    fn minimize(&self, context: &Context<'_>) -> Minimize {
        self.soft.minimize(Loss::Softmax { oracle: self.oracle }, self.sentence, &self.shape, context)
    }
}
