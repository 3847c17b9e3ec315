//! Settings that several algorithms share.

use super::{
    Context,
    range::{SHARE, check_count},
};
use crate::{
    Batches, Mixing, Schedule, SourceKind,
    learner::{OneBest, Update},
};
use luthier_core::{Error, Result};
use luthier_metric::{Metric, SentenceSmoothing};
use luthier_optim::Limit;
use serde::{Deserialize, Serialize};

/// Stopping rule of a run: maximum number of iterations, and patience.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(rename_all = "kebab-case", default)]
pub struct Stopping {
    /// Maximum number of iterations with a decoder, or of epochs of online learning; batch learning from
    /// fixed lists takes one [default: 25; pro and apro: 30; online: 10].
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u32>,
    /// Stop after this many iterations in a row without a better score, on the selection set if there is one.
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Held-out sets"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience: Option<u32>,
}

impl Stopping {
    /// Sets the number of iterations of batch learning: one on fixed lists, else `usual` unless another was asked for.
    pub(super) fn resolve_batch(&mut self, context: &Context<'_>, usual: u32) -> Result<()> {
        self.check()?;
        let iterations = self.iterations.unwrap_or(usual);
        self.iterations = Some(if context.source == SourceKind::Fixed { 1 } else { iterations });
        Ok(())
    }

    /// Sets the number of epochs of online learning.
    fn resolve_online(&mut self) -> Result<()> {
        self.check()?;
        self.iterations.get_or_insert(10);
        Ok(())
    }

    fn check(&self) -> Result<()> {
        check_count("iterations", self.iterations, 1, u32::MAX)?;
        check_count("patience", self.patience, 1, u32::MAX)
    }

    /// A schedule of batch learning that ends then.
    pub(super) fn schedule(&self) -> Schedule {
        let usual = Schedule::default();
        Schedule { iterations: self.iterations.unwrap_or(usual.iterations), patience: self.patience, ..usual }
    }
}

/// Evidence that an algorithm learns from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum On {
    /// N-best lists.
    #[default]
    Nbest,
    /// Forests of everything that the search has found.
    Forest,
}

/// Edges of a forest per word of the sentence, unless others are asked for.
pub(super) const DENSITY: u32 = 50;

/// Choice of learning from n-best lists or from forests.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Forests"))]
#[serde(rename_all = "kebab-case", default)]
pub struct LearnFrom {
    /// Learn from n-best lists, or from forests of everything that the search has found; forests need
    /// --model.
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHAT", value_enum, default_value_t))]
    pub on: On,
    /// Edges of a forest kept per word of the sentence: those in the best translations [default: 50].
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub density: Option<u32>,
}

impl LearnFrom {
    /// Sets the density of forests. Fails where there are none, or where `needs_bleu` and the metric is another.
    pub(super) fn resolve(&mut self, name: &str, needs_bleu: bool, context: &Context<'_>) -> Result<()> {
        check_count("density", self.density, 1, u32::MAX)?;
        if self.on == On::Nbest {
            return match self.density {
                Some(_) => {
                    Err(Error::new("--density is for --on forest").hint("lists are as long as --nbest-size"))
                }
                None => Ok(()),
            };
        }
        if context.source != SourceKind::Forests {
            return Err(Error::new("--on forest needs --model: only our own decoder gives forests")
                .hint("lists of --nbest and --command are for --on nbest"));
        }
        if needs_bleu {
            only_bleu(name, context.metric)?;
        }
        self.density.get_or_insert(DENSITY);
        Ok(())
    }

    /// Whether it is forests.
    pub(super) fn is_forest(&self) -> bool {
        self.on == On::Forest
    }
}

/// Searches in forests go by BLEU, over the decoder's tokens.
fn only_bleu(name: &str, metric: &Metric) -> Result<()> {
    let hint = "use --on nbest, or mert, which takes any metric";
    match metric.as_bleu() {
        Some(bleu) if bleu.tokenize == luthier_metric::Tokenizer::None => Ok(()),
        Some(_) => Err(Error::new(format!(
            "{name} --on forest works on the decoder's tokens, so BLEU must be tokenize=none"
        ))
        .hint(hint)),
        None => Err(Error::new(format!(
            "{name} --on forest searches forests by n-grams, so the metric must be BLEU"
        ))
        .hint(hint)),
    }
}

/// Interpolation w ← Ψw′ + (1 − Ψ)w and reset of the pool, in batch learning with a decoder.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "With a decoder"))]
#[serde(rename_all = "kebab-case", default)]
pub struct Interpolation {
    /// Ψ: share of the newly learned weights, with a decoder; the rest stays as it was [default: 0.1 for pro
    /// and for softmax on forests, else 1].
    #[cfg_attr(feature = "clap", arg(long, value_name = "PSI", allow_negative_numbers = true, value_parser = super::range::flag::share))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub psi: Option<f64>,
    /// Iteration that begins with an empty pool, with a decoder; 0 for none [default: 10 for pro and apro].
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset_at: Option<u32>,
}

impl Interpolation {
    /// Sets Ψ and the iteration of the reset; fixed lists have neither.
    pub(super) fn resolve(&mut self, context: &Context<'_>, psi: f64, reset_at: u32) -> Result<()> {
        SHARE.check("psi", self.psi)?;
        if context.source == SourceKind::Forests && self.reset_at.is_some_and(|n| n > 0) {
            return Err(Error::new("--reset-at has no effect with --on forest, where nothing is kept"));
        }
        if context.source == SourceKind::Fixed {
            (self.psi, self.reset_at) = (Some(1.0), Some(0));
        }
        self.psi.get_or_insert(psi);
        self.reset_at.get_or_insert(reset_at);
        Ok(())
    }

    /// The schedule of a loss that is minimised over all candidates so far, or over the forests of one pass: in a union of
    /// forests derivations would count twice.
    pub(super) fn schedule(&self, stopping: &Stopping, accumulate: bool) -> Schedule {
        Schedule {
            psi: self.psi.unwrap_or(1.0),
            reset_at: self.reset_at.filter(|&n| n > 0),
            accumulate,
            ..stopping.schedule()
        }
    }
}

/// Tolerance of the minimisers with gradients.
pub(super) const TOLERANCE: f64 = 1e-4;

/// Stopping rule of the minimiser of a loss: tolerance and maximum number of steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Minimiser"))]
#[serde(rename_all = "kebab-case", default)]
pub struct Fit {
    /// Stop when the gradient's norm has fallen to this share of its norm at 0, or at the start if that is
    /// less [default: 0.0001]; for apro of its norm at 0 [default: 0.001]. With hinge losses: relative gap to
    /// the optimum [default: 0.01].
    #[cfg_attr(feature = "clap", arg(long, value_name = "T", allow_negative_numbers = true, value_parser = super::range::flag::positive))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// Maximum number of steps of the minimiser, or of sweeps with hinge losses.
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", default_value_t = Fit::default().max_steps))]
    pub max_steps: usize,
}

impl Default for Fit {
    fn default() -> Self {
        Fit { tolerance: None, max_steps: 1000 }
    }
}

impl Fit {
    /// Sets the tolerance.
    pub(super) fn resolve(&mut self, usual: f64) -> Result<()> {
        super::range::POSITIVE.check("tolerance", self.tolerance)?;
        self.tolerance.get_or_insert(usual);
        Ok(())
    }

    /// The limit, once resolved.
    pub(super) fn limit(&self) -> Limit {
        Limit { tolerance: self.tolerance.unwrap_or(TOLERANCE), steps: self.max_steps }
    }
}

/// Scale γ, regulariser and minimiser of the losses with probabilities p ∝ exp(γ·score).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(rename_all = "kebab-case", default)]
pub struct Soft {
    /// Scale of scores: p ∝ exp(γ·score). Several values, such as 0.1,1,10, are annealed: each starts from
    /// the weights of the one before.
    #[cfg_attr(feature = "clap", arg(long, value_name = "G", default_value = "1", value_delimiter = ',', allow_negative_numbers = true, value_parser = super::range::flag::positive))]
    pub gamma: Vec<f64>,
    /// λ: weight of the regulariser ½‖w‖², 0 or more.
    #[cfg_attr(feature = "clap", arg(long, value_name = "L", default_value_t = Soft::default().lambda, allow_negative_numbers = true, value_parser = super::range::flag::non_negative))]
    pub lambda: f64,
    /// Stopping rule of the minimiser.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub fit: Fit,
}

impl Default for Soft {
    fn default() -> Self {
        Soft { gamma: vec![1.0], lambda: 1e-5, fit: Fit::default() }
    }
}

impl Soft {
    /// Checks numbers and sets the tolerance.
    pub(super) fn resolve(&mut self) -> Result<()> {
        self.gamma.iter().try_for_each(|&g| super::range::POSITIVE.check("gamma", g))?;
        if self.gamma.is_empty() {
            return Err(Error::new("gamma is empty, expected at least one number above 0"));
        }
        super::range::NON_NEGATIVE.check("lambda", self.lambda)?;
        self.fit.resolve(TOLERANCE)
    }
}

/// Batches, shards, mixing and order of online learning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Online learning"))]
#[serde(rename_all = "kebab-case", default)]
pub struct Online {
    /// Segments decoded with the same weights [default: 1 with surrogates, 16 with oracles].
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_size: Option<u32>,
    /// Parts of the data that learn independently for one epoch and are then mixed; each can use a thread
    /// [default: 1].
    #[cfg_attr(feature = "clap", arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=MAX_SHARDS as i64)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shards: Option<u32>,
    /// How the weights of the shards are mixed: their mean, or the best point on the line from the previous
    /// weights through the mean [default: line-search for oro, else average].
    #[cfg_attr(feature = "clap", arg(long, value_name = "HOW"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mixing: Option<Mixing>,
    /// Visit segments in their order, not in random order.
    #[cfg_attr(feature = "clap", arg(id = "in-order", long = "in-order", action = clap::ArgAction::SetFalse))]
    pub shuffle: bool,
}

/// Shards at most.
const MAX_SHARDS: u32 = 4096;

impl Default for Online {
    fn default() -> Self {
        Online { batch_size: None, shards: None, mixing: None, shuffle: true }
    }
}

impl Online {
    /// Whether anything of it was asked for.
    pub(super) fn is_set(&self) -> bool {
        *self != Online::default()
    }

    /// Sets everything that depends on the algorithm, and the number of epochs.
    pub(super) fn resolve(
        &mut self,
        stopping: &mut Stopping,
        name: &str,
        (size, mixing): (u32, Mixing),
        context: &Context<'_>,
    ) -> Result<()> {
        if context.source == SourceKind::Command {
            let message = format!("{name} decodes a few segments at a time, which --command cannot do");
            return Err(Error::new(message).hint("use --model, or --nbest with lists that were made before"));
        }
        check_count("batch-size", self.batch_size, 1, u32::MAX)?;
        check_count("shards", self.shards, 1, MAX_SHARDS)?;
        self.batch_size.get_or_insert(size);
        self.shards.get_or_insert(1);
        self.mixing.get_or_insert(mixing);
        stopping.resolve_online()
    }

    /// The schedule, once resolved.
    pub(super) fn schedule(&self, stopping: &Stopping, seed: u64) -> Schedule {
        let batches = Batches {
            size: self.batch_size.unwrap_or(1) as usize,
            shards: self.shards.unwrap_or(1),
            mixing: self.mixing.unwrap_or(Mixing::Average),
            shuffle: self.shuffle,
            seed,
        };
        Schedule { accumulate: false, online: Some(batches), ..stopping.schedule() }
    }
}

/// Targets of steps from guess to surrogate, and averaging (Arun and Koehn 2007).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Surrogates"))]
#[serde(rename_all = "kebab-case", default)]
pub struct Surrogates {
    /// Target where the reference is not reachable: the best of the list and of earlier targets, or the best
    /// of all reachable translations [default: local].
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHAT"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update: Option<Update>,
    /// Weight each step by the sentence score of its target; with BLEU and chrF.
    #[cfg_attr(feature = "clap", arg(long))]
    pub weighted: bool,
    /// Do not aim at references that are reachable.
    #[cfg_attr(feature = "clap", arg(id = "no-references", long = "no-references", action = clap::ArgAction::SetFalse))]
    pub references: bool,
    /// Keep the last weights, not the mean over all visits.
    #[cfg_attr(feature = "clap", arg(id = "no-average", long = "no-average", action = clap::ArgAction::SetFalse))]
    pub average: bool,
}

impl Default for Surrogates {
    fn default() -> Self {
        Surrogates { update: None, weighted: false, references: true, average: true }
    }
}

impl Surrogates {
    /// Whether anything of it was asked for.
    pub(super) fn is_set(&self) -> bool {
        *self != Surrogates::default()
    }

    /// Sets the target. Fails where steps are weighted by a metric without bounds.
    pub(super) fn resolve(&mut self, context: &Context<'_>) -> Result<()> {
        if self.weighted && !matches!(context.metric, Metric::Bleu(_) | Metric::Chrf(_)) {
            return Err(Error::new("--weighted needs a metric from 0 to 100: BLEU or chrF"));
        }
        self.update.get_or_insert(Update::Local);
        Ok(())
    }

    /// The learner, once resolved; `passive` is the largest step of MIRA, none for the perceptron.
    pub(super) fn learner(
        &self,
        metric: &Metric,
        plus_one: SentenceSmoothing,
        passive: Option<f64>,
    ) -> OneBest {
        OneBest {
            metric: metric.clone(),
            plus_one,
            update: self.update.unwrap_or(Update::Local),
            weighted: self.weighted,
            passive,
            references: self.references,
            average: self.average,
        }
    }
}
