//! Settings that several algorithms share.

use super::{
    Context,
    range::{HALF, RHO, SHARE, check_count},
};
use crate::{
    Batches, Interpolate, Learner, Mixing, Outcome, Schedule, SourceKind,
    learner::{L1, Nonnegative, OneBest, Shaped, Update},
    pairs::GainBy,
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
    /// Maximum number of iterations [default: 25; pro, apro: 30; online: 10].
    ///
    /// Iterations of online learning are epochs. Batch learning from fixed lists always takes one iteration.
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Run"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u32>,
    /// Stop after this many iterations in a row without a better score, on the selection set if there is one
    /// [default: no limit].
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Held-out sets"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience: Option<u32>,
}

impl Stopping {
    /// Sets the number of iterations of batch learning: one on fixed lists, else `usual` unless the user has
    /// set another. Fails on a number or a patience of 0.
    pub(super) fn resolve_batch(&mut self, context: &Context<'_>, usual: u32) -> Result<()> {
        self.check()?;
        let iterations = self.iterations.unwrap_or(usual);
        self.iterations = Some(if context.source == SourceKind::Fixed { 1 } else { iterations });
        Ok(())
    }

    /// Sets the number of epochs of online learning, 10 by default. Fails on a number or a patience of 0.
    fn resolve_online(&mut self) -> Result<()> {
        self.check()?;
        self.iterations.get_or_insert(10);
        Ok(())
    }

    fn check(&self) -> Result<()> {
        check_count("iterations", self.iterations, 1, u32::MAX)?;
        check_count("patience", self.patience, 1, u32::MAX)
    }

    /// Builds the schedule of batch learning with this stopping rule.
    pub(super) fn schedule(&self) -> Schedule {
        let usual = Schedule::default();
        Schedule { iterations: self.iterations.unwrap_or(usual.iterations), patience: self.patience, ..usual }
    }
}

/// Kind of evidence that an algorithm learns from: n-best lists or forests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum On {
    /// N-best lists.
    #[default]
    Nbest,
    /// Forests: all derivations that the decoder's search has kept.
    Forest,
}

/// Default number of edges per source word that forests are pruned to.
pub(super) const DENSITY: u32 = 50;

/// Choice of learning from n-best lists or from forests.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Forests"))]
#[serde(rename_all = "kebab-case", default)]
pub struct LearnFrom {
    /// Learn from n-best lists, or from forests of all derivations that the decoder's search has kept; forests need
    /// --model.
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHAT", value_enum, default_value_t))]
    pub on: On,
    /// Number of edges per source word that forests are pruned to, keeping those of the best translations [default:
    /// 50].
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub density: Option<u32>,
}

impl LearnFrom {
    /// Sets the density of forests. Fails if the source has no forests, if `needs_bleu` is set and the metric
    /// is not BLEU over the decoder's tokens, and if a density is set for n-best lists.
    pub(super) fn resolve(&mut self, name: &str, needs_bleu: bool, context: &Context<'_>) -> Result<()> {
        check_count("density", self.density, 1, u32::MAX)?;
        if self.on == On::Nbest {
            return match self.density {
                Some(_) => Err(Error::new("--density has no effect without --on forest")
                    .hint("--nbest-size sets the length of n-best lists")),
                None => Ok(()),
            };
        }
        if context.source != SourceKind::Forests {
            return Err(Error::new("--on forest needs --model: only the built-in decoder outputs forests")
                .hint("use --on nbest with --nbest or --command"));
        }
        if needs_bleu {
            only_bleu(name, context.metric)?;
        }
        self.density.get_or_insert(DENSITY);
        Ok(())
    }

    /// Returns whether the algorithm learns from forests.
    pub(super) fn is_forest(&self) -> bool {
        self.on == On::Forest
    }
}

/// Fails unless the metric is BLEU over the decoder's tokens, by which forests are searched; `name` is the
/// algorithm's.
fn only_bleu(name: &str, metric: &Metric) -> Result<()> {
    let hint = "use --on nbest, or mert, which takes any metric";
    match metric.as_bleu() {
        Some(bleu) if bleu.tokenize == luthier_metric::Tokenizer::None => Ok(()),
        Some(_) => Err(Error::new(format!(
            "{name} --on forest works on the decoder's tokens, so BLEU must have tokenize=none"
        ))
        .hint(hint)),
        None => Err(Error::new(format!(
            "{name} --on forest counts the n-grams of BLEU, so the metric must be BLEU"
        ))
        .hint(hint)),
    }
}

/// Interpolation w ← Ψw′ + (1 − Ψ)w and reset of the pool, in batch learning with a decoder.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "With a decoder"))]
#[serde(rename_all = "kebab-case", default)]
pub struct Interpolation {
    /// Ψ: interpolation of the newly learned weights w′ with the current ones, w ← Ψw′ + (1 − Ψ)w, with a decoder
    /// [default: 0.5 for pro, 0.1 for softmax on forests, else 1].
    #[cfg_attr(feature = "clap", arg(long, value_name = "PSI", allow_negative_numbers = true, value_parser = super::range::flag::share))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub psi: Option<f64>,
    /// Choice of Ψ, with a decoder: --psi, or the value from 0 to 1 whose weights score best on the pool [default:
    /// line-search for softmax on lists without --psi, else psi].
    #[cfg_attr(feature = "clap", arg(long, value_name = "HOW"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpolate: Option<Interpolate>,
    /// Iteration that starts with an empty pool, with a decoder; 0 for never [default: 10 for pro and apro,
    /// else 0].
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset_at: Option<u32>,
}

impl Interpolation {
    /// Sets Ψ and the iteration of the reset; `psi` is the default Ψ, `None` for that of a line search. Fixed lists are
    /// learned with Ψ = 1 and no reset. Fails if Ψ is out of range or has no effect, or if a reset or a line search is
    /// set for forests.
    pub(super) fn resolve(&mut self, context: &Context<'_>, psi: Option<f64>, reset_at: u32) -> Result<()> {
        SHARE.check("psi", self.psi)?;
        let search = self.interpolate == Some(Interpolate::LineSearch);
        if search && context.source == SourceKind::Forests {
            return Err(
                Error::new("--interpolate line-search needs n-best lists").hint("leave out --on forest")
            );
        }
        let set = search || self.psi.is_some_and(|psi| psi != 1.0);
        if set && context.source == SourceKind::Fixed {
            return Err(Error::new(
                "--psi and --interpolate have no effect with --nbest: fixed lists are learned once",
            ));
        }
        if search && self.psi.is_some() {
            return Err(Error::new("--psi has no effect with --interpolate line-search"));
        }
        if context.source == SourceKind::Forests && self.reset_at.is_some_and(|n| n > 0) {
            return Err(Error::new(
                "--reset-at has no effect with --on forest, which keeps no candidates of earlier iterations",
            ));
        }
        if context.source == SourceKind::Fixed {
            (self.psi, self.reset_at, self.interpolate) = (Some(1.0), Some(0), Some(Interpolate::Psi));
        }
        let by_search = psi.is_none() && self.psi.is_none();
        let usual = if by_search { Interpolate::LineSearch } else { Interpolate::Psi };
        if *self.interpolate.get_or_insert(usual) == Interpolate::Psi {
            self.psi.get_or_insert(psi.unwrap_or(1.0));
        }
        self.reset_at.get_or_insert(reset_at);
        Ok(())
    }

    /// Builds the schedule of batch learning; with `accumulate`, candidates of earlier iterations stay in the
    /// pool. Losses over forests use those of the current iteration alone: a union would count derivations
    /// twice.
    pub(super) fn schedule(&self, stopping: &Stopping, accumulate: bool) -> Schedule {
        Schedule {
            interpolate: self.interpolate.unwrap_or(Interpolate::Psi),
            psi: self.psi.unwrap_or(1.0),
            reset_at: self.reset_at.filter(|&n| n > 0),
            accumulate,
            ..stopping.schedule()
        }
    }
}

/// Returns the name of the first setting that is set.
pub(super) fn first_set<const N: usize>(settings: [(bool, &'static str); N]) -> Option<&'static str> {
    settings.into_iter().find(|s| s.0).map(|s| s.1)
}

/// How candidates of a segment are compared: by sentence score, or in the context of the whole output.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args), group(skip))]
#[serde(rename_all = "kebab-case", default)]
pub struct Gain {
    /// Score by which candidates are compared: sentence score, or change of the corpus score when the candidate
    /// replaces the current best one.
    ///
    /// In the corpus score by BLEU, the rest of the output counts as having the length of the references.
    #[cfg_attr(
        feature = "clap",
        arg(long = "gain", value_name = "BY", value_enum, default_value_t, help_heading = "Sentence BLEU")
    )]
    #[serde(rename = "gain")]
    pub by: GainBy,
    /// Smoothing of sentence BLEU (BLEU+1).
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub smoothing: SentenceSmoothing,
}

impl Gain {
    /// Fails if sentence BLEU is to be smoothed but not used.
    pub(super) fn check(self) -> Result<()> {
        if self.by == GainBy::Document && self.smoothing != SentenceSmoothing::default() {
            return Err(Error::new(
                "--smooth-unigrams and --smooth-brevity have no effect with --gain document",
            ));
        }
        Ok(())
    }
}

/// Default tolerance of L-BFGS: relative norm of the gradient.
pub(super) const TOLERANCE: f64 = 1e-4;

/// Stopping rule of the minimiser of a loss: tolerance and maximum number of steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Minimiser"))]
#[serde(rename_all = "kebab-case", default)]
pub struct Fit {
    /// Tolerance of the minimiser: relative norm of the gradient, or relative duality gap with hinge losses
    /// [default: 0.0001; apro: 0.001; hinge losses: 0.01].
    ///
    /// L-BFGS stops when the norm of the gradient is at most this fraction of its norm at w = 0 or at the
    /// initial weights, whichever is smaller; trust-region Newton (apro) takes the norm at w = 0. Dual
    /// coordinate descent (hinge losses) stops when the gap between primal and dual value is at most this
    /// fraction of the primal value.
    #[cfg_attr(feature = "clap", arg(long, value_name = "T", allow_negative_numbers = true, value_parser = super::range::flag::positive))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// Maximum number of steps of the minimiser, or of sweeps over the pairs with hinge losses.
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", default_value_t = Fit::default().max_steps))]
    pub max_steps: usize,
    /// Weight of an L1 penalty Σ|w|, which removes features that do not matter; without a value, chosen by folds.
    ///
    /// Implies --standardize. Without a value, 20 values down to a thousandth of the one at which all weights are 0 are
    /// fitted, and the largest one whose held-out loss is within one standard error of the lowest is taken. With the
    /// objectives of xbleu and risk, which are not convex, the result is a local optimum.
    #[cfg_attr(feature = "clap", arg(long, value_name = "L", num_args = 0..=1, default_missing_value = "auto", allow_negative_numbers = true))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l1: Option<L1Setting>,
}

/// Weight of an L1 penalty as it is set: a number above 0, or `auto` for a choice by folds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "toml::Value", into = "toml::Value")]
pub struct L1Setting(pub Option<f64>);

impl std::str::FromStr for L1Setting {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "auto" {
            return Ok(L1Setting(None));
        }
        let value: Option<f64> = text.parse().ok().filter(|v: &f64| *v > 0.0 && v.is_finite());
        value.map(|v| L1Setting(Some(v))).ok_or_else(|| Error::new("expected a number above 0, or `auto`"))
    }
}

impl TryFrom<toml::Value> for L1Setting {
    type Error = Error;

    fn try_from(value: toml::Value) -> Result<Self> {
        match &value {
            toml::Value::String(text) => text.parse(),
            toml::Value::Float(x) => x.to_string().parse(),
            toml::Value::Integer(x) => x.to_string().parse(),
            _ => Err(Error::new("l1 is neither a number above 0 nor `auto`")),
        }
    }
}

impl From<L1Setting> for toml::Value {
    fn from(setting: L1Setting) -> Self {
        setting.0.map_or_else(|| toml::Value::String("auto".to_owned()), toml::Value::Float)
    }
}

/// Constraints on the weights: their signs, and the units in which they are learned.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Weights"))]
#[serde(rename_all = "kebab-case", default)]
pub struct Shape {
    /// Features whose weights must not be negative; without names, all.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME", num_args = 0.., default_missing_value = ALL))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nonnegative: Vec<String>,
    /// Learn with dense features divided by their spread within lists; weights are reported for the features as they are.
    ///
    /// Regularisers and steps then treat features of any scale alike.
    #[cfg_attr(feature = "clap", arg(long))]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub standardize: bool,
}

/// Name in [`Shape::nonnegative`] that stands for all features.
pub(super) const ALL: &str = "*";

impl Shape {
    /// Returns the features whose weights must not be negative.
    pub(crate) fn nonnegative(&self) -> Nonnegative {
        if self.nonnegative.is_empty() {
            Nonnegative::None
        } else if self.nonnegative.iter().any(|n| n == ALL) {
            Nonnegative::All
        } else {
            Nonnegative::Some(self.nonnegative.iter().flat_map(|n| super::mert::keys(n)).collect())
        }
    }

    /// Wraps a learner whose weights must keep these constraints.
    pub(super) fn wrap(&self, inner: Box<dyn Learner>) -> Box<dyn Learner> {
        let nonnegative = self.nonnegative();
        if !self.standardize && nonnegative == Nonnegative::None {
            return inner;
        }
        Box::new(Shaped { inner, nonnegative, standardize: self.standardize })
    }
}

impl Default for Fit {
    fn default() -> Self {
        Fit { tolerance: None, max_steps: 1000, l1: None }
    }
}

impl Fit {
    /// Sets the tolerance to `usual` unless the user has set another. Fails unless it and the weight of an L1 penalty are
    /// above 0.
    pub(super) fn resolve(&mut self, usual: f64) -> Result<()> {
        super::range::POSITIVE.check("tolerance", self.tolerance)?;
        super::range::POSITIVE.check("l1", self.l1.and_then(|setting| setting.0))?;
        self.tolerance.get_or_insert(usual);
        Ok(())
    }

    /// Returns the L1 penalty.
    pub(super) fn l1(&self) -> Option<L1> {
        self.l1.map(|setting| setting.0.map_or(L1::Path, L1::Value))
    }

    /// Returns the stopping rule for the minimiser; the settings must have been resolved.
    pub(super) fn limit(&self) -> Limit {
        Limit { tolerance: self.tolerance.unwrap_or(TOLERANCE), steps: self.max_steps }
    }
}

/// Scale γ, regulariser λ and stopping rule of the losses with probabilities p ∝ exp(γ·score).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(rename_all = "kebab-case", default)]
pub struct Soft {
    /// γ: scale of the model scores in p ∝ exp(γ·score); several values, such as 0.1,1,10, are annealed in order.
    ///
    /// Each value starts from the weights learned with the previous one.
    #[cfg_attr(feature = "clap", arg(long, value_name = "G", default_value = "1", value_delimiter = ',', allow_negative_numbers = true, value_parser = super::range::flag::positive))]
    pub gamma: Vec<f64>,
    /// λ: weight of the regulariser ½‖w‖², 0 for none.
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
    /// Sets the tolerance. Fails if γ is empty or not above 0, or if λ is negative.
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
    /// Batch size: number of segments decoded with the same weights [default: 1 with surrogates, 16 with oracles].
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_size: Option<u32>,
    /// Number of shards of the data [default: 1].
    ///
    /// Shards learn independently for one epoch and are then mixed; their number affects results, unlike that of threads.
    #[cfg_attr(feature = "clap", arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=MAX_SHARDS as i64)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shards: Option<u32>,
    /// Mixing of the shards' weights after an epoch: their mean, or the best point on the line from the
    /// previous weights through the mean [default: line-search with oracles, else average].
    #[cfg_attr(feature = "clap", arg(long, value_name = "HOW"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mixing: Option<Mixing>,
    /// Upper bound of ρ in line-search mixing, from 1 to 2: 1 does not go beyond the mean of the shards [default: 2].
    #[cfg_attr(feature = "clap", arg(long, value_name = "RHO", allow_negative_numbers = true, value_parser = super::range::flag::rho))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rho: Option<f64>,
    /// Share of the segments to hold out for the selection of the epoch, with --model and without a selection set; 0 for
    /// none [default: 0.15 of 300 or more segments].
    ///
    /// At least 50 and at most 300 segments are held out, chosen at random by --seed. With fewer than 300 segments none
    /// is held out, and the last weights are kept.
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "SHARE", allow_negative_numbers = true, help_heading = "Held-out sets", value_parser = super::range::flag::half)
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub select_share: Option<f64>,
    /// Visit segments in corpus order instead of random order.
    #[cfg_attr(feature = "clap", arg(id = "no-shuffle", long = "no-shuffle", action = clap::ArgAction::SetFalse))]
    pub shuffle: bool,
}

/// Maximum number of shards.
const MAX_SHARDS: u32 = 4096;
/// Largest and default upper bound of ρ in line-search mixing: twice the change of an epoch.
const MAX_RHO: f64 = 2.0;
/// Default share of the segments that are held out to select the epoch.
pub const SELECT_SHARE: f64 = 0.15;
/// Largest number of features of a model without sparse features.
const FEW: usize = 100;

impl Default for Online {
    fn default() -> Self {
        Online {
            batch_size: None,
            shards: None,
            mixing: None,
            max_rho: None,
            select_share: None,
            shuffle: true,
        }
    }
}

impl Online {
    /// Returns whether any of these settings differs from its default.
    pub(super) fn is_set(&self) -> bool {
        *self != Online::default()
    }

    /// Returns the flag of the first of these settings that differs from its default; empty if none does.
    pub(super) fn named(&self) -> &'static str {
        let usual = Online::default();
        let set = first_set([
            (self.batch_size != usual.batch_size, "--batch-size"),
            (self.shards != usual.shards, "--shards"),
            (self.mixing != usual.mixing, "--mixing"),
            (self.max_rho != usual.max_rho, "--max-rho"),
            (self.select_share != usual.select_share, "--select-share"),
            (self.shuffle != usual.shuffle, "--no-shuffle"),
        ]);
        set.unwrap_or_default()
    }

    /// Sets the default batch size and mixing of the algorithm `name`, and the number of epochs. Fails on
    /// numbers out of range, and if the source is an external command, which cannot decode single batches.
    pub(super) fn resolve(
        &mut self,
        stopping: &mut Stopping,
        name: &str,
        (size, mixing): (u32, Mixing),
        context: &Context<'_>,
    ) -> Result<()> {
        if context.source == SourceKind::Command {
            let message = format!("{name} decodes batch by batch, which --command cannot do");
            return Err(Error::new(message).hint("use --model, or --nbest with existing lists"));
        }
        check_count("batch-size", self.batch_size, 1, u32::MAX)?;
        check_count("shards", self.shards, 1, MAX_SHARDS)?;
        self.batch_size.get_or_insert(size);
        self.shards.get_or_insert(1);
        let mixing = *self.mixing.get_or_insert(mixing);
        match self.max_rho {
            Some(_) if mixing == Mixing::Average => {
                return Err(Error::new("--max-rho has no effect without --mixing line-search"));
            }
            rho => RHO.check("max-rho", rho)?,
        }
        match self.select_share {
            Some(_) if context.source == SourceKind::Fixed => {
                return Err(Error::new("--select-share has no effect with --nbest")
                    .hint("give a selection set with --select-nbest and --select-ref"));
            }
            None if context.source != SourceKind::Fixed => self.select_share = Some(SELECT_SHARE),
            share => HALF.check("select-share", share)?,
        }
        stopping.resolve_online()
    }

    /// Builds the schedule of online learning; the settings must have been resolved.
    pub(super) fn schedule(&self, stopping: &Stopping, seed: u64) -> Schedule {
        let batches = Batches {
            size: self.batch_size.unwrap_or(1) as usize,
            shards: self.shards.unwrap_or(1),
            mixing: self.mixing.unwrap_or(Mixing::Average),
            max_rho: self.max_rho.unwrap_or(MAX_RHO),
            select_share: self.select_share.unwrap_or(0.0),
            shuffle: self.shuffle,
            seed,
        };
        Schedule { accumulate: false, online: Some(batches), ..stopping.schedule() }
    }
}

/// Targets of updates from guess to surrogate, and averaging of the weights (Arun and Koehn 2007).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Surrogates"))]
#[serde(rename_all = "kebab-case", default)]
pub struct Surrogates {
    /// Target of an update where the decoder cannot produce the reference [default: local].
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHAT"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update: Option<Update>,
    /// Weight each update by the sentence score of its target (Arun and Koehn 2007, eq. 3–4); needs BLEU or chrF.
    #[cfg_attr(feature = "clap", arg(long))]
    pub weighted: bool,
    /// Do not use reachable references as targets.
    #[cfg_attr(feature = "clap", arg(id = "no-references", long = "no-references", action = clap::ArgAction::SetFalse))]
    pub references: bool,
    /// Keep the last weights instead of the mean over all visits of segments.
    #[cfg_attr(feature = "clap", arg(id = "no-average", long = "no-average", action = clap::ArgAction::SetFalse))]
    pub average: bool,
}

impl Default for Surrogates {
    fn default() -> Self {
        Surrogates { update: None, weighted: false, references: true, average: true }
    }
}

impl Surrogates {
    /// Returns whether any of these settings differs from its default.
    pub(super) fn is_set(&self) -> bool {
        *self != Surrogates::default()
    }

    /// Sets the target. Fails if updates are to be weighted by a metric other than BLEU and chrF, whose scores
    /// are not from 0 to 1.
    pub(super) fn resolve(&mut self, context: &Context<'_>) -> Result<()> {
        if self.weighted && !matches!(context.metric, Metric::Bleu(_) | Metric::Chrf(_)) {
            return Err(Error::new("--weighted needs a metric from 0 to 100: BLEU or chrF"));
        }
        self.update.get_or_insert(Update::Local);
        Ok(())
    }

    /// Returns advice if nothing was learned for a model with few features, whose differences are large.
    pub(super) fn remarks(outcome: &Outcome) -> Vec<String> {
        if outcome.iteration > 0 || outcome.weights.len() > FEW {
            return Vec::new();
        }
        vec![format!(
            "updates from the guess to a surrogate suit thousands of sparse features, not {} dense ones: use oro, mira \
             --constraints hope-fear or mert",
            outcome.weights.len()
        )]
    }

    /// Builds the learner from resolved settings; `passive` is the maximum step size C of MIRA, `None` for the
    /// perceptron.
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
