//! Settings of ORO and O-ORO.

use super::{
    Algorithm, Context, RecipeInfo,
    parts::{Online, Shape, Stopping},
    range::{POSITIVE, SHARE},
};
use crate::{
    Learner, Mixing, Schedule,
    learner::rank::TOLERANCE,
    pairs::OracleBy,
    rank::{Bound, Decay, InnerPairs, Linearize, Norm, Rank, RankLoss, Rate, Rule},
};
use luthier_core::{Error, Result, Weights};
use luthier_metric::SentenceSmoothing;
use serde::{Deserialize, Serialize};

/// Online rank optimisation (Watanabe 2012): ranks oracles above all other candidates, batch by batch, by
/// sub-gradient steps (ORO, Algorithm 2) or by optimised updates (O-ORO, §4.1).
///
/// The learner is [`Rank`]; by default the weights of shards are mixed by a line search (§4.2).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(rename_all = "kebab-case", default)]
pub struct Oro {
    /// Stopping rule of the run.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub stopping: Stopping,
    /// Ranking loss.
    #[cfg_attr(feature = "clap", arg(long, value_name = "LOSS", value_enum, default_value_t = Oro::default().loss, help_heading = "ORO"))]
    pub loss: RankLoss,
    /// Use optimised updates (O-ORO).
    ///
    /// They weight the terms of a step by Lagrange multipliers (Watanabe 2012, eq. 12–17).
    #[cfg_attr(feature = "clap", arg(long, help_heading = "ORO"))]
    pub optimized: bool,
    /// λ: weight of the regulariser ½‖w‖²; weights are projected onto the ball of radius 1/√λ.
    #[cfg_attr(feature = "clap", arg(long, value_name = "L", default_value_t = Oro::default().lambda, allow_negative_numbers = true, value_parser = super::range::flag::positive, help_heading = "ORO"))]
    pub lambda: f64,
    /// Weight of an L1 penalty Σ|w| besides it, which removes features that do not matter.
    ///
    /// Implies --standardize, and --mixing average, because a line search mixes removed features in again. Steps move
    /// weights towards 0 by the penalties of all steps of the epoch so far (Tsuruoka, Tsujii and Ananiadou 2009, whose sums
    /// go on over all epochs).
    #[cfg_attr(feature = "clap", arg(long, value_name = "L", allow_negative_numbers = true, value_parser = super::range::flag::positive, help_heading = "ORO"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l1: Option<f64>,
    /// η₀: initial learning rate [default: 0.05].
    #[cfg_attr(feature = "clap", arg(long, value_name = "E", allow_negative_numbers = true, value_parser = super::range::flag::positive, help_heading = "ORO"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eta0: Option<f64>,
    /// α: factor by which the learning rate decays per epoch [default: 0.85].
    #[cfg_attr(feature = "clap", arg(long, value_name = "SHARE", allow_negative_numbers = true, value_parser = super::range::flag::share, help_heading = "ORO"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// Learning rate η at step k: η₀·α^(k/K) with K batches per epoch, or 1/(λk).
    #[cfg_attr(feature = "clap", arg(long, value_name = "RATE", value_enum, default_value_t = Oro::default().rate, help_heading = "ORO"))]
    pub rate: Decay,
    /// Divisor of the sub-gradient of the hinge loss: the number M′ of violated pairs, or M of all pairs [default:
    /// violated].
    #[cfg_attr(feature = "clap", arg(long, value_name = "BY", help_heading = "ORO"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub normalize: Option<Norm>,
    /// Bound of the Lagrange multipliers τ, with --optimized [default: mean].
    ///
    /// It decides the length of a step. `mean` suits any initial weights; the others are readings of the paper.
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "SET", requires = "optimized", help_heading = "ORO")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dual: Option<Bound>,
    /// Pairs of the inner problem, with --optimized: all, or those that are violated before the step [default: all].
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "WHICH", requires = "optimized", help_heading = "ORO")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pairs: Option<InnerPairs>,
    /// Accuracy of the inner problem, with --optimized: largest distance of the weights from its solution [default:
    /// 0.0001].
    ///
    /// The distance is proved by the duality gap, and is relative to the norm of the weights if that is above 1.
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "T", requires = "optimized", allow_negative_numbers = true, value_parser = super::range::flag::positive, help_heading = "ORO")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// Linearisation of the softmax loss, with --optimized: eq. 16 of Watanabe (2012) as printed, or the
    /// tangent plane [default: tangent].
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "HOW", requires = "optimized", help_heading = "ORO")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linearize: Option<Linearize>,
    /// Choice of oracles: by the corpus score of the batch, or by sentence score.
    #[cfg_attr(feature = "clap", arg(long, value_name = "BY", value_enum, default_value_t = Oro::default().oracle, help_heading = "ORO"))]
    pub oracle: OracleBy,
    /// Smoothing of sentence BLEU, for oracles by sentence.
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

impl Default for Oro {
    /// λ, α, batches of 16 and line-search mixing as in Watanabe (2012); η₀ is 0.05, in the paper 0.2.
    fn default() -> Self {
        Oro {
            stopping: Stopping::default(),
            shape: Shape::default(),
            loss: RankLoss::Hinge,
            optimized: false,
            lambda: 1e-5,
            l1: None,
            eta0: None,
            alpha: None,
            rate: Decay::Exponential,
            normalize: None,
            dual: None,
            pairs: None,
            tolerance: None,
            linearize: None,
            oracle: OracleBy::Corpus,
            sentence: SentenceSmoothing::default(),
            online: Online::default(),
        }
    }
}

/// Default η₀. Watanabe (2012, footnote 1) starts from weights of 0 with 0.2. From the weights of `train`, 0.2 and 0.05 do
/// not differ clearly in score; with 0.05 the length of the output was closer to that of MERT on a hierarchical system.
const ETA0: f64 = 0.05;
/// Default α (Watanabe 2012, footnote 1).
const ALPHA: f64 = 0.85;

const INFO: RecipeInfo = RecipeInfo {
    name: "oro",
    summary: "online rank optimisation: ranks oracles above all other candidates, batch by batch; O-ORO with --optimized",
    papers: "Watanabe 2012",
    metrics: "all",
    note: "oracles chosen by the corpus score of the batch, or by sentence score (--oracle)",
    has_objective: false,
};

impl Algorithm for Oro {
    fn info(&self) -> &'static RecipeInfo {
        &INFO
    }

    fn resolve(&mut self, context: &Context<'_>) -> Result<()> {
        POSITIVE.check("lambda", self.lambda)?;
        POSITIVE.check("eta0", self.eta0)?;
        POSITIVE.check("l1", self.l1)?;
        if self.l1.is_some() && self.online.mixing == Some(Mixing::LineSearch) {
            return Err(Error::new(
                "--l1 does not go with --mixing line-search, which mixes removed features in again",
            )
            .hint("use --mixing average"));
        }
        SHARE.check("alpha", self.alpha)?;
        let hinge = self.loss == RankLoss::Hinge;
        if self.rate == Decay::Pegasos && (self.eta0.is_some() || self.alpha.is_some()) {
            return Err(Error::new("--eta0 and --alpha have no effect with --rate pegasos"));
        }
        if hinge && self.linearize.is_some() {
            return Err(Error::new("--linearize has no effect without --loss softmax"));
        }
        if self.normalize.is_some() && (self.optimized || !hinge) {
            return Err(Error::new("--normalize applies only to --loss hinge without --optimized"));
        }
        let inner = self.dual.is_some() || self.pairs.is_some() || self.tolerance.is_some();
        if !self.optimized && (inner || self.linearize.is_some()) {
            return Err(Error::new(
                "--dual, --pairs, --tolerance and --linearize have no effect without --optimized",
            ));
        }
        if !hinge && self.pairs.is_some() {
            return Err(Error::new("--pairs has no effect with --loss softmax"));
        }
        POSITIVE.check("tolerance", self.tolerance)?;
        if self.rate == Decay::Exponential {
            self.eta0.get_or_insert(ETA0);
            self.alpha.get_or_insert(ALPHA);
        }
        if self.optimized {
            self.dual.get_or_insert(Bound::Mean);
            self.tolerance.get_or_insert(TOLERANCE);
            if hinge {
                self.pairs.get_or_insert(InnerPairs::All);
            } else {
                self.linearize.get_or_insert(Linearize::Tangent);
            }
        } else if hinge {
            self.normalize.get_or_insert(Norm::Violated);
        }
        let mixing = if self.l1.is_some() { Mixing::Average } else { Mixing::LineSearch };
        self.online.resolve(&mut self.stopping, INFO.name, (16, mixing), context)
    }

    fn learner(&self, context: &Context<'_>) -> Box<dyn Learner> {
        let rate = match self.rate {
            Decay::Exponential => Rate::exponential(self.eta0.unwrap_or(ETA0), self.alpha.unwrap_or(ALPHA)),
            Decay::Pegasos => Rate::PEGASOS,
        };
        let (loss, lambda) = (self.loss, self.lambda);
        let rule = if self.optimized {
            let bound = self.dual.unwrap_or(Bound::Mean);
            let pairs = self.pairs.unwrap_or(InnerPairs::All);
            let linearize = self.linearize.unwrap_or(Linearize::Tangent);
            Rule::Optimized { loss, rate, lambda, bound, pairs, linearize }
        } else {
            Rule::Gradient { loss, rate, lambda, norm: self.normalize.unwrap_or(Norm::Violated) }
        };
        Box::new(Rank {
            plus_one: self.sentence,
            oracle: self.oracle,
            tolerance: self.tolerance.unwrap_or(TOLERANCE),
            l1: self.l1,
            ..Rank::new(context.metric.clone(), rule, context.seed)
        })
    }

    fn schedule(&self, context: &Context<'_>) -> Schedule {
        self.online.schedule(&self.stopping, context.seed)
    }

    fn cautions(&self, initial: &Weights) -> Vec<String> {
        let start = initial.values().iter().any(|w| *w != 0.0);
        let hinge = self.loss == RankLoss::Hinge;
        match self.dual {
            Some(Bound::Normalized) if start && hinge => vec![
                "--dual normalized learns only from weights that are 0, because its steps do not depend on the learning \
                 rate: use --dual mean, or initial weights of 0"
                    .to_owned(),
            ],
            Some(Bound::Simplex) if hinge => vec![
                "--dual simplex is degenerate: if no weights rank all oracles above all other candidates, it shrinks the \
                 weights to 0; use --dual mean"
                    .to_owned(),
            ],
            _ => Vec::new(),
        }
    }

    fn has_l1(&self) -> bool {
        self.l1.is_some()
    }

    fn select_share(&self) -> Option<f64> {
        self.online.select_share
    }

    fn sentence_smoothing(&self) -> SentenceSmoothing {
        self.sentence
    }
}
