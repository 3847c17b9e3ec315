//! Settings of xBLEU (expected BLEU).

use super::{
    Algorithm, Context, RecipeInfo,
    parts::{Fit, Interpolation, LearnFrom, Shape, Soft, Stopping},
};
use crate::{
    Learner, Schedule,
    learner::{Loss, Minimize},
    loss::{Brevity, Clip},
};
use luthier_core::{Error, Result};
use luthier_metric::SentenceSmoothing;
use serde::{Deserialize, Serialize};

/// Expected BLEU (Rosti et al. 2010, 2011): maximises the BLEU of expected n-gram counts.
///
/// Minimises [`Loss::Xbleu`] by L-BFGS; for BLEU only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(rename_all = "kebab-case", default)]
pub struct Xbleu {
    /// Stopping rule of the run.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub stopping: Stopping,
    /// Whether the algorithm learns from n-best lists or from forests.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub learn_from: LearnFrom,
    /// Clipping of n-gram matches: of the expected count, of the count in each candidate, or none.
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t = Xbleu::default().clip, help_heading = "xBLEU"))]
    pub clip: Clip,
    /// Brevity penalty: as in BLEU, smoothed at its corner, or none.
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t = Xbleu::default().brevity, help_heading = "xBLEU"))]
    pub brevity: Brevity,
    /// Scale γ, regulariser λ and stopping rule of the minimiser.
    #[cfg_attr(feature = "clap", command(flatten, next_help_heading = "xBLEU"))]
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

impl Default for Xbleu {
    fn default() -> Self {
        Xbleu {
            stopping: Stopping::default(),
            shape: Shape::default(),
            learn_from: LearnFrom::default(),
            clip: Clip::Expected,
            brevity: Brevity::Exact,
            soft: Soft::default(),
            interpolation: Interpolation::default(),
        }
    }
}

const INFO: RecipeInfo = RecipeInfo {
    name: "xbleu",
    summary: "expected BLEU: BLEU of expected n-gram counts",
    papers: "Rosti et al. 2010, 2011",
    metrics: "BLEU",
    note: "expected n-gram counts, which only BLEU has; use risk for other metrics",
    has_objective: true,
};

impl Algorithm for Xbleu {
    fn info(&self) -> &'static RecipeInfo {
        &INFO
    }

    fn resolve(&mut self, context: &Context<'_>) -> Result<()> {
        let metric = context.metric;
        if metric.as_bleu().is_none() {
            let message = format!("xbleu works only with BLEU, not with {}", metric.name());
            return Err(
                Error::new(message).hint("leave --metric out, or use risk, which works with every metric")
            );
        }
        if context.references.is_none() && self.clip != Clip::Candidate {
            return Err(Error::new("--moses-scores holds counts that are already clipped")
                .hint("use --clip candidate, or --ref instead of --moses-scores"));
        }
        self.soft.resolve()?;
        self.learn_from.resolve(INFO.name, true, context)?;
        self.interpolation.resolve(context, Some(1.0), 0)?;
        if self.learn_from.is_forest() && self.clip == Clip::Candidate {
            return Err(Error::new("--clip candidate needs single candidates, which forests do not have")
                .hint("use --clip expected or none"));
        }
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

impl Xbleu {
    fn minimize(&self, context: &Context<'_>) -> Minimize {
        let (clip, brevity, references) = (self.clip, self.brevity, context.references.clone());
        self.soft.minimize(
            Loss::Xbleu { clip, brevity, references },
            SentenceSmoothing::default(),
            &self.shape,
            context,
        )
    }
}
