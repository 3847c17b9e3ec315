//! Settings of PRO.

use super::{
    Algorithm, Context, RecipeInfo,
    parts::{Fit, Gain, Interpolation, Shape, Stopping, TOLERANCE},
    range::{NON_NEGATIVE, POSITIVE, SHARE, check_count},
};
use crate::{
    Learner, Schedule,
    learner::{Loss, Minimize},
    loss::Margin,
    pairs::{GainBy, PairSource, Pairs},
};
use luthier_core::{Error, Result};
use serde::{Deserialize, Serialize};

/// Pairwise ranking optimisation (Hopkins and May 2011): a linear classifier that ranks pairs of candidates.
///
/// Minimises [`Loss::Pro`]. By default, Γ pairs of candidates are sampled per segment, those whose sentence
/// scores differ by less than β are discarded, and the Ξ most different ones are kept; with a decoder the new
/// weights are interpolated with the old ones by Ψ = 0.5 (symbols as in Dreyer and Dong 2015, §3, where Ψ is 0.1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "PRO"))]
#[serde(rename_all = "kebab-case", default)]
pub struct Pro {
    /// Stopping rule of the run.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub stopping: Stopping,
    /// Pairs of candidates to rank.
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t = Pro::default().pairs, help_heading = "PRO"))]
    pub pairs: PairSource,
    /// Loss of a pair: logistic or hinge.
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t = Pro::default().loss, help_heading = "PRO"))]
    pub loss: Margin,
    /// Γ: number of pairs sampled per segment.
    #[cfg_attr(feature = "clap", arg(long, default_value_t = Pro::default().draw, value_name = "N", help_heading = "PRO", value_parser = clap::value_parser!(u32).range(1..=MAX_DRAWS as i64)))]
    pub draw: u32,
    /// Ξ: number of sampled pairs kept per segment, those with the largest difference in sentence score.
    #[cfg_attr(feature = "clap", arg(long, default_value_t = Pro::default().keep, value_name = "N", help_heading = "PRO", value_parser = clap::value_parser!(u32).range(1..)))]
    pub keep: u32,
    /// β: minimum difference in sentence score, on the scale from 0 to 1, or in units of a column; not applied to
    /// --pairs oracle.
    #[cfg_attr(feature = "clap", arg(long, default_value_t = Pro::default().min_difference, value_name = "D", help_heading = "PRO", allow_negative_numbers = true, value_parser = super::range::flag::non_negative))]
    pub min_difference: f64,
    /// Fraction of the list that counts as best, and as worst, with --pairs good-bad.
    #[cfg_attr(feature = "clap", arg(long, default_value_t = Pro::default().slice, value_name = "SHARE", help_heading = "PRO", allow_negative_numbers = true, value_parser = super::range::flag::share))]
    pub slice: f64,
    /// Drop pairs whose lengths differ by more than this many standard deviations; 2 filters outlier pairs
    /// (Nakov et al. 2013) [default: keep all pairs].
    ///
    /// The standard deviation is that of length differences within the list, at least 2 words.
    #[cfg_attr(feature = "clap", arg(long, value_name = "SIGMAS", help_heading = "PRO", allow_negative_numbers = true, value_parser = super::range::flag::positive))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length_sigma: Option<f64>,
    /// λ: weight of the regulariser ½‖w‖² [default: 1 with the sum of logistic losses, 0.00001 with the mean of
    /// hinge losses].
    #[cfg_attr(feature = "clap", arg(long, value_name = "L", help_heading = "PRO", allow_negative_numbers = true, value_parser = super::range::flag::positive))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lambda: Option<f64>,
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

/// Maximum number of pairs sampled per segment.
const MAX_DRAWS: u32 = 10_000_000;

impl Default for Pro {
    /// Γ, Ξ and β of Hopkins and May (2011).
    fn default() -> Self {
        Pro {
            stopping: Stopping::default(),
            shape: Shape::default(),
            pairs: PairSource::Sampled,
            loss: Margin::Logistic,
            draw: 5000,
            keep: 50,
            min_difference: 0.05,
            slice: 0.1,
            max_length_sigma: None,
            lambda: None,
            gain: Gain::default(),
            fit: Fit::default(),
            interpolation: Interpolation::default(),
        }
    }
}

const INFO: RecipeInfo = RecipeInfo {
    name: "pro",
    summary: "pairwise ranking: logistic regression on sampled pairs of candidates",
    papers: "Hopkins and May 2011",
    metrics: "all",
    note: "sentence scores, BLEU as BLEU+1; or gains in the whole output (--gain)",
    has_objective: true,
};

impl Algorithm for Pro {
    fn info(&self) -> &'static RecipeInfo {
        &INFO
    }

    fn resolve(&mut self, context: &Context<'_>) -> Result<()> {
        self.gain.check()?;
        if self.pairs == PairSource::Oracle && self.gain.by == GainBy::Document {
            return Err(Error::new("--gain document has no effect with --pairs oracle"));
        }
        check_count("draw", self.draw, 1, MAX_DRAWS)?;
        check_count("keep", self.keep, 1, u32::MAX)?;
        NON_NEGATIVE.check("min-difference", self.min_difference)?;
        SHARE.check("slice", self.slice)?;
        POSITIVE.check("max-length-sigma", self.max_length_sigma)?;
        POSITIVE.check("lambda", self.lambda)?;
        let (lambda, tolerance) = if self.loss == Margin::Logistic { (1.0, TOLERANCE) } else { (1e-5, 0.01) };
        self.lambda.get_or_insert(lambda);
        self.fit.resolve(tolerance)?;
        // With Ψ = 0.1 (Hopkins and May 2011) the weights still move after 30 iterations, with 0.5 the same scores are
        // reached in a quarter of the time. The pool is emptied at iteration 10 as in Dreyer and Dong (2015, §5.1).
        self.interpolation.resolve(context, Some(0.5), 10)?;
        self.stopping.resolve_batch(context, 30)
    }

    fn learner(&self, context: &Context<'_>) -> Box<dyn Learner> {
        Box::new(self.minimize(context))
    }

    fn schedule(&self, _: &Context<'_>) -> Schedule {
        self.interpolation.schedule(&self.stopping, true)
    }

    fn is_smooth(&self) -> bool {
        self.loss == Margin::Logistic
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
}

impl Pro {
    fn minimize(&self, context: &Context<'_>) -> Minimize {
        let pairs = Pairs {
            source: self.pairs,
            draw: self.draw as usize,
            keep: self.keep as usize,
            slice: self.slice,
            min_difference: self.min_difference,
            max_length_sigma: self.max_length_sigma,
            seed: context.seed,
        };
        Minimize {
            metric: context.metric.clone(),
            loss: Loss::Pro { pairs, margin: self.loss },
            lambda: self.lambda.unwrap_or(1.0),
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
