//! Settings of MIRA in its three forms: hope and fear, surrogates, oracles.

use super::{
    Algorithm, Context, RecipeInfo,
    parts::{LearnFrom, Online, Shape, Stopping, Surrogates, first_set},
    range::{POSITIVE, SHARE, check_count},
};
use crate::{
    Learner, Mixing, Outcome, Schedule, SourceKind,
    learner::HopeFear,
    learner::rank::TOLERANCE,
    rank::{MiraScale, Rank, RankMargin, Rule},
};
use luthier_core::{Error, Result};
use luthier_metric::{Metric, SentenceSmoothing};
use serde::{Deserialize, Serialize};

/// Pairs of candidates that MIRA separates by a margin; the choice decides its learner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Constraints {
    /// Hope and fear of each segment, over the pool, as in Moses' kbmira (Cherry and Foster 2012).
    HopeFear,
    /// Surrogate and guess (the model's best candidate) of each segment, online: 1-best MIRA (Arun and Koehn 2007).
    Surrogate,
    /// Every oracle and every other candidate of a segment, online, batch by batch (Watanabe 2012, eq. 13).
    Oracle,
}

impl Constraints {
    /// Value of the flag `--constraints`.
    fn name(self) -> &'static str {
        match self {
            Constraints::HopeFear => "hope-fear",
            Constraints::Surrogate => "surrogate",
            Constraints::Oracle => "oracle",
        }
    }
}

/// Margin-infused relaxed algorithm (MIRA): passive-aggressive updates from fear to hope over the pool (Cherry
/// and Foster 2012), from guess to surrogate (Arun and Koehn 2007), or from all other candidates to the oracles
/// (Watanabe 2012).
///
/// The learner is [`HopeFear`], [`OneBest`](crate::learner::OneBest) or [`Rank`], by `constraints`; settings of the
/// other two must keep their defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(rename_all = "kebab-case", default)]
pub struct Mira {
    /// Stopping rule of the run.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub stopping: Stopping,
    /// Whether hope and fear are searched in n-best lists or in forests.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub learn_from: LearnFrom,
    /// Pairs of candidates to separate.
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHICH", value_enum, default_value_t = Mira::default().constraints, help_heading = "MIRA"))]
    pub constraints: Constraints,
    /// C: maximum step size [default: hope-fear 0.01, surrogate unlimited].
    #[cfg_attr(feature = "clap", arg(long, value_name = "C", allow_negative_numbers = true, value_parser = super::range::flag::positive, help_heading = "MIRA"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub c: Option<f64>,
    /// λ with --constraints oracle: larger values give smaller updates [default: 5; 100 with --scale sum].
    ///
    /// Lagrange multipliers are at most 1/λ divided by the number of violated pairs, with --scale sum at most 1/λ
    /// (Watanabe 2012, eq. 13).
    #[cfg_attr(feature = "clap", arg(long, value_name = "L", allow_negative_numbers = true, value_parser = super::range::flag::positive, help_heading = "MIRA"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lambda: Option<f64>,
    /// Required margin with --constraints oracle: 1, or the loss in the batch's corpus score [default: one].
    #[cfg_attr(feature = "clap", arg(long, value_name = "HOW", help_heading = "MIRA"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<RankMargin>,
    /// Scale of the losses with --constraints oracle: divided by the number of violated pairs, or their sum (Watanabe
    /// 2012, eq. 13) [default: mean].
    ///
    /// With the sum, the step grows with the number of pairs, and does not learn from weights that are already good.
    #[cfg_attr(feature = "clap", arg(long, value_name = "HOW", help_heading = "MIRA"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<MiraScale>,
    /// Accuracy of the inner problem with --constraints oracle: largest distance of the weights from its solution
    /// [default: 0.0001].
    #[cfg_attr(feature = "clap", arg(long, value_name = "T", allow_negative_numbers = true, value_parser = super::range::flag::positive, help_heading = "MIRA"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// Decay factor of the pseudo-document with --constraints hope-fear [default: 0.999].
    ///
    /// The pseudo-document is the sum of the statistics of earlier hopes, the context in which candidates are scored; it is
    /// multiplied by this factor before each addition.
    #[cfg_attr(feature = "clap", arg(long, value_name = "SHARE", allow_negative_numbers = true, value_parser = super::range::flag::share, help_heading = "MIRA"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decay: Option<f64>,
    /// Number of epochs over the pool per iteration, with --constraints hope-fear [default: 60; on forests 10].
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", help_heading = "MIRA", value_parser = clap::value_parser!(u32).range(1..=MAX_EPOCHS as i64)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epochs: Option<u32>,
    /// Build the pseudo-document from the model's best candidates instead of the hopes, with --constraints
    /// hope-fear.
    #[cfg_attr(feature = "clap", arg(long, help_heading = "MIRA"))]
    pub model_background: bool,
    /// Scale the model score down to at most five times the metric score when choosing the hope, with --constraints
    /// hope-fear.
    #[cfg_attr(feature = "clap", arg(long, help_heading = "MIRA"))]
    pub safe_hope: bool,
    /// Whether segments are visited in random order, for [`Constraints::HopeFear`]; set by `online.shuffle = false`, too, which
    /// is the flag `--no-shuffle`.
    #[cfg_attr(feature = "clap", arg(skip = true))]
    pub shuffle_pool: bool,
    /// Targets of the updates and averaging of the weights, for [`Constraints::Surrogate`].
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub surrogates: Surrogates,
    /// Smoothing of sentence BLEU (BLEU+1), for [`Constraints::Surrogate`].
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub sentence: SentenceSmoothing,
    /// Batches, shards and mixing of online learning, for [`Constraints::Surrogate`] and [`Constraints::Oracle`].
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub online: Online,
    /// Constraints on the weights.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub shape: Shape,
}

/// Maximum number of epochs over the pool per iteration.
const MAX_EPOCHS: u32 = 100_000;
/// Default λ with oracles and the sum of losses (Watanabe 2012, §5).
const SUM_LAMBDA: f64 = 100.0;
/// Default λ with oracles and the mean of losses: better than 20 on Multi30k and on pydocs.
const MEAN_LAMBDA: f64 = 5.0;
/// Default number of epochs over forests, where each visit of a segment costs at least two searches.
const FOREST_EPOCHS: u32 = 10;

/// Default λ of the losses of oracles.
fn default_lambda(scale: MiraScale) -> f64 {
    match scale {
        MiraScale::Sum => SUM_LAMBDA,
        MiraScale::Mean => MEAN_LAMBDA,
    }
}

impl Default for Mira {
    fn default() -> Self {
        Mira {
            stopping: Stopping::default(),
            shape: Shape::default(),
            learn_from: LearnFrom::default(),
            constraints: Constraints::HopeFear,
            c: None,
            lambda: None,
            margin: None,
            scale: None,
            tolerance: None,
            decay: None,
            epochs: None,
            model_background: false,
            safe_hope: false,
            shuffle_pool: true,
            surrogates: Surrogates::default(),
            sentence: SentenceSmoothing::default(),
            online: Online::default(),
        }
    }
}

const INFO: RecipeInfo = RecipeInfo {
    name: "mira",
    summary: "margin-infused relaxed algorithm: hope and fear over the pool (kbmira), or online with surrogates or oracles",
    papers: "Cherry and Foster 2012; Arun and Koehn 2007; Watanabe 2012",
    metrics: "all",
    note: "score gain in the context of a decaying pseudo-document; edits, column values",
    has_objective: false,
};

impl Mira {
    /// Fails on settings of the other two forms of MIRA, which would have no effect.
    fn check(&self) -> Result<()> {
        use Constraints::{HopeFear, Oracle, Surrogate};
        let wrong = |flags: &str, whose: &str| {
            let mine = self.constraints.name();
            Err(Error::new(format!("{flags} has no effect with --constraints {mine}"))
                .hint(format!("it is for --constraints {whose}")))
        };
        let hope_fear = first_set([
            (self.decay.is_some(), "--decay"),
            (self.epochs.is_some(), "--epochs"),
            (self.model_background, "--model-background"),
            (self.safe_hope, "--safe-hope"),
            (!self.shuffle_pool, "shuffle-pool = false"),
        ]);
        let oracle = first_set([
            (self.lambda.is_some(), "--lambda"),
            (self.margin.is_some(), "--margin"),
            (self.scale.is_some(), "--scale"),
            (self.tolerance.is_some(), "--tolerance"),
        ]);
        let sentence = self.sentence != SentenceSmoothing::default();
        match self.constraints {
            Oracle if self.c.is_some() => {
                wrong("--c", "hope-fear or surrogate; with oracle, C is 1/--lambda")
            }
            HopeFear | Surrogate if oracle.is_some() => wrong(oracle.unwrap_or_default(), "oracle"),
            Oracle | Surrogate if hope_fear.is_some() => wrong(hope_fear.unwrap_or_default(), "hope-fear"),
            HopeFear | Oracle if self.surrogates.is_set() || sentence => wrong(
                "--update, --weighted, --no-references, --no-average or smoothing of sentence BLEU",
                "surrogate",
            ),
            Oracle | Surrogate if self.learn_from.is_forest() => wrong("--on forest", "hope-fear"),
            HopeFear if (Online { shuffle: true, ..self.online.clone() }).is_set() => {
                wrong(self.online.named(), "surrogate or oracle")
            }
            _ => Ok(()),
        }
    }

    /// Builds the learner for [`Constraints::HopeFear`].
    pub(crate) fn hope_fear(&self, metric: Metric, seed: u64) -> HopeFear {
        HopeFear {
            metric,
            c: self.c.unwrap_or(0.01),
            decay: self.decay.unwrap_or(0.999),
            epochs: self.epochs.unwrap_or(60),
            model_background: self.model_background,
            safe_hope: self.safe_hope,
            shuffle: self.shuffle_pool && self.online.shuffle,
            keep_initial: true,
            nonnegative: self.shape.nonnegative(),
            seed,
        }
    }
}

impl Algorithm for Mira {
    fn info(&self) -> &'static RecipeInfo {
        &INFO
    }

    fn resolve(&mut self, context: &Context<'_>) -> Result<()> {
        self.check()?;
        POSITIVE.check("c", self.c)?;
        POSITIVE.check("lambda", self.lambda)?;
        POSITIVE.check("tolerance", self.tolerance)?;
        SHARE.check("decay", self.decay)?;
        check_count("epochs", self.epochs, 1, MAX_EPOCHS)?;
        self.learn_from.resolve(INFO.name, true, context)?;
        match self.constraints {
            Constraints::HopeFear => {
                let usual = self.hope_fear(context.metric.clone(), context.seed);
                (self.shuffle_pool, self.online.shuffle) = (usual.shuffle, true);
                self.c = Some(usual.c);
                self.decay = Some(usual.decay);
                let forest = self.learn_from.is_forest();
                self.epochs.get_or_insert(if forest { FOREST_EPOCHS } else { usual.epochs });
                self.stopping.resolve_batch(context, 25)
            }
            Constraints::Surrogate => {
                self.surrogates.resolve(context)?;
                self.online.resolve(&mut self.stopping, INFO.name, (1, Mixing::Average), context)
            }
            Constraints::Oracle => {
                self.margin.get_or_insert(RankMargin::One);
                let scale = *self.scale.get_or_insert(MiraScale::Mean);
                self.lambda.get_or_insert(default_lambda(scale));
                self.tolerance.get_or_insert(TOLERANCE);
                self.online.resolve(&mut self.stopping, INFO.name, (16, Mixing::LineSearch), context)
            }
        }
    }

    fn learner(&self, context: &Context<'_>) -> Box<dyn Learner> {
        let (metric, seed) = (context.metric, context.seed);
        match self.constraints {
            Constraints::HopeFear => {
                let keep_initial = context.source == SourceKind::Fixed;
                Box::new(HopeFear { keep_initial, ..self.hope_fear(metric.clone(), seed) })
            }
            Constraints::Surrogate => {
                let c = self.c.unwrap_or(f64::INFINITY);
                Box::new(self.surrogates.learner(metric, self.sentence, Some(c)))
            }
            Constraints::Oracle => {
                let scale = self.scale.unwrap_or(MiraScale::Mean);
                let c = 1.0 / self.lambda.unwrap_or(default_lambda(scale));
                let margin = self.margin.unwrap_or(RankMargin::One);
                let tolerance = self.tolerance.unwrap_or(TOLERANCE);
                let rule = Rule::Passive { c, margin, scale };
                Box::new(Rank { tolerance, ..Rank::new(metric.clone(), rule, seed) })
            }
        }
    }

    fn schedule(&self, context: &Context<'_>) -> Schedule {
        match self.constraints {
            Constraints::HopeFear => {
                Schedule { accumulate: !self.learn_from.is_forest(), ..self.stopping.schedule() }
            }
            Constraints::Surrogate | Constraints::Oracle => {
                self.online.schedule(&self.stopping, context.seed)
            }
        }
    }

    fn learn_from(&self) -> Option<&LearnFrom> {
        Some(&self.learn_from)
    }

    fn remarks(&self, outcome: &Outcome, _: usize) -> Vec<String> {
        match self.constraints {
            Constraints::Surrogate => Surrogates::remarks(outcome),
            Constraints::HopeFear | Constraints::Oracle => Vec::new(),
        }
    }

    fn select_share(&self) -> Option<f64> {
        self.online.select_share
    }

    fn sentence_smoothing(&self) -> SentenceSmoothing {
        self.sentence
    }
}
