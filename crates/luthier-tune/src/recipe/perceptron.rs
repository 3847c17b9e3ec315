//! Settings of the averaged perceptron.

use super::{
    Algorithm, Context, RecipeInfo,
    parts::{Online, Shape, Stopping, Surrogates},
};
use crate::{Learner, Mixing, Outcome, Schedule};
use luthier_core::Result;
use luthier_metric::SentenceSmoothing;
use serde::{Deserialize, Serialize};

/// Averaged perceptron, online: steps w += h(surrogate) − h(guess) (Collins 2002; Arun and Koehn 2007).
///
/// The learner is [`OneBest`](crate::learner::OneBest); the result is the mean of the weights over all visits.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(rename_all = "kebab-case", default)]
pub struct Perceptron {
    /// Stopping rule of the run.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub stopping: Stopping,
    /// Targets of the updates and averaging of the weights.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub surrogates: Surrogates,
    /// Smoothing of sentence BLEU (BLEU+1).
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub sentence: SentenceSmoothing,
    /// Batches, shards and mixing of online learning.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub online: Online,
    /// Constraints on the weights.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub shape: Shape,
}

const INFO: RecipeInfo = RecipeInfo {
    name: "perceptron",
    summary: "averaged perceptron, online: updates from the guess towards the reference or a surrogate",
    papers: "Collins 2002; Arun and Koehn 2007",
    metrics: "all",
    note: "target chosen by sentence score; BLEU as BLEU+1",
    has_objective: false,
};

impl Algorithm for Perceptron {
    fn info(&self) -> &'static RecipeInfo {
        &INFO
    }

    fn resolve(&mut self, context: &Context<'_>) -> Result<()> {
        self.surrogates.resolve(context)?;
        self.online.resolve(&mut self.stopping, INFO.name, (1, Mixing::Average), context)
    }

    fn learner(&self, context: &Context<'_>) -> Box<dyn Learner> {
        Box::new(self.surrogates.learner(context.metric, self.sentence, None))
    }

    fn schedule(&self, context: &Context<'_>) -> Schedule {
        self.online.schedule(&self.stopping, context.seed)
    }

    fn remarks(&self, outcome: &Outcome, _: usize) -> Vec<String> {
        Surrogates::remarks(outcome)
    }

    fn select_share(&self) -> Option<f64> {
        self.online.select_share
    }

    fn sentence_smoothing(&self) -> SentenceSmoothing {
        self.sentence
    }
}
