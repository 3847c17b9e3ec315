//! `luthier tune perceptron` and `oro`, and what online learning takes.

use super::{Common, Done, Input, Plan, Settings, Talk, go, metric_of};
use crate::command::{
    losses::{Sentence, positive, share},
    value_name,
};
use clap::ValueEnum;
use luthier::{
    core::Error,
    metric::Metric,
    tune::{
        Batches, Bound, Learner, Linearize, Mixing, Norm, OneBest, Rank, RankLoss, Rate, Rule, Schedule,
        Update,
    },
};

/// How online learning goes.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Online learning")]
pub(super) struct OnlineArgs {
    /// Segments that are decoded with the same weights [default: 1 with surrogates, 16 with oracles].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) batch_size: Option<u32>,
    /// Parts of the data that learn by themselves for an epoch and are then mixed; each can have a thread.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(super) shards: Option<u32>,
    /// What becomes of their weights: the mean, or the best point between the last weights and the mean, and beyond
    /// [default: line-search for oro, else average].
    #[arg(long, value_name = "HOW")]
    pub(super) mixing: Option<MixingName>,
    /// Visit segments in their order.
    #[arg(long = "in-order")]
    pub(super) in_order: bool,
}

/// Epochs, unless others are asked for.
const EPOCHS: u32 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum MixingName {
    /// The mean of the shards.
    Average,
    /// By an exact line search on the lists of the epoch.
    LineSearch,
}

impl OnlineArgs {
    /// Whether anything of it was asked for.
    pub(super) fn any(&self) -> bool {
        self.batch_size.is_some() || self.shards.is_some() || self.mixing.is_some() || self.in_order
    }

    /// The schedule, which becomes part of the settings.
    pub(super) fn schedule(
        &self,
        input: &Input,
        (size, mixing): (u32, MixingName),
        seed: u64,
        settings: &mut Settings,
    ) -> Schedule {
        let mixing = self.mixing.unwrap_or(mixing);
        let batches = Batches {
            size: self.batch_size.unwrap_or(size) as usize,
            shards: self.shards.unwrap_or(1),
            mixing: match mixing {
                MixingName::Average => Mixing::Average,
                MixingName::LineSearch => Mixing::LineSearch,
            },
            shuffle: !self.in_order,
            seed,
        };
        let iterations = input.iterations.unwrap_or(EPOCHS);
        settings.add("batch-size", batches.size);
        settings.add("shards", batches.shards);
        settings.add("mixing", value_name(&mixing));
        settings.add("in-order", self.in_order);
        settings.add("epochs", iterations);
        settings.add("seed", seed);
        Schedule { iterations, accumulate: false, online: Some(batches), ..Schedule::default() }
    }
}

/// What steps with surrogates aim at.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Surrogates")]
pub(super) struct SurrogateArgs {
    /// What to aim at where the reference cannot be made: the best of the list and of what was aimed at before, or the
    /// best of all that can be made [default: local].
    #[arg(long, value_name = "WHAT")]
    update: Option<UpdateName>,
    /// Weigh each step by the sentence score of what it aims at; with BLEU and chrF.
    #[arg(long)]
    weighted: bool,
    /// Do not ask whether references themselves can be made.
    #[arg(long)]
    no_references: bool,
    /// Take the last weights, not the mean over all visits.
    #[arg(long)]
    no_average: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum UpdateName {
    /// The best of the list (Liang et al. 2006).
    Local,
    /// The best of all (Tillmann and Zhang 2006).
    MaxBleu,
}

impl SurrogateArgs {
    /// Whether anything of it was asked for.
    pub(super) fn any(&self) -> bool {
        self.update.is_some() || self.weighted || self.no_references || self.no_average
    }

    pub(super) fn learner(
        &self,
        metric: &Metric,
        sentence: &Sentence,
        passive: Option<f64>,
        settings: &mut Settings,
    ) -> Result<OneBest, Error> {
        if self.weighted && !matches!(metric, Metric::Bleu(_) | Metric::Chrf(_)) {
            return Err(Error::new("--weighted needs a metric from 0 to 100: BLEU or chrF"));
        }
        let update = self.update.unwrap_or(UpdateName::Local);
        settings.add("update", value_name(&update));
        settings.add("weighted", self.weighted);
        settings.add("references", !self.no_references);
        settings.add("average", !self.no_average);
        sentence.settings(settings);
        let update = match update {
            UpdateName::Local => Update::Local,
            UpdateName::MaxBleu => Update::MaxBleu,
        };
        Ok(OneBest {
            plus_one: sentence.plus_one(),
            weighted: self.weighted,
            references: !self.no_references,
            average: !self.no_average,
            ..OneBest::new(metric.clone(), update, passive)
        })
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = crate::command::METRICS_HELP)]
pub(crate) struct PerceptronArgs {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    surrogates: SurrogateArgs,
    #[command(flatten)]
    sentence: Sentence,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn perceptron(args: &PerceptronArgs, common: &Common, talk: Talk) -> Done {
    let metric = metric_of(&args.input)?;
    let mut settings = Settings::default();
    let learner = args.surrogates.learner(&metric, &args.sentence, None, &mut settings)?;
    let seed = common.seed.unwrap_or(1);
    let schedule = args.online.schedule(&args.input, (1, MixingName::Average), seed, &mut settings);
    let plus_one = args.sentence.plus_one();
    go(&args.input, &metric, plan("perceptron", Box::new(learner), settings, schedule, plus_one), talk)
}

pub(super) fn plan(
    name: &str,
    learner: Box<dyn Learner>,
    settings: Settings,
    schedule: Schedule,
    plus_one: luthier::metric::PlusOne,
) -> Plan<'_> {
    Plan {
        name,
        learner: Box::new(move |_| learner),
        settings,
        schedule,
        sparse: true,
        plus_one,
        density: None,
        mentioned: Vec::new(),
        remarks: Box::new(|_, _| Vec::new()),
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = crate::command::METRICS_HELP)]
pub(crate) struct OroArgs {
    #[command(flatten)]
    input: Input,
    /// What wrong order costs.
    #[arg(long, value_name = "LOSS", default_value = "hinge", help_heading = "ORO")]
    loss: LossName,
    /// Weigh each part of a step by its Lagrange multiplier: O-ORO.
    #[arg(long, help_heading = "ORO")]
    optimized: bool,
    /// Weight of ½‖w‖²; weights stay in a ball of radius 1/√λ.
    #[arg(long, value_name = "L", default_value_t = 1e-5, allow_negative_numbers = true, value_parser = positive, help_heading = "ORO")]
    lambda: f64,
    /// The first learning rate [default: 0.2].
    #[arg(long, value_name = "E", allow_negative_numbers = true, value_parser = positive, help_heading = "ORO")]
    eta0: Option<f64>,
    /// What is left of the learning rate after an epoch [default: 0.85].
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true, value_parser = share, help_heading = "ORO")]
    alpha: Option<f64>,
    /// How the learning rate falls: η₀·α^(k/K), or 1/(λk).
    #[arg(long, value_name = "RATE", default_value = "exponential", help_heading = "ORO")]
    rate: RateName,
    /// What the sub-gradient of the hinge loss is divided by: the pairs that cost something, or all [default: violated].
    #[arg(long, value_name = "BY", help_heading = "ORO")]
    normalize: Option<NormName>,
    /// Where multipliers may be, with --optimized: each up to η and then scaled to a sum of η, each up to η, or their sum up to η
    /// [default: normalized].
    #[arg(long, value_name = "SET", requires = "optimized", help_heading = "ORO")]
    dual: Option<DualName>,
    /// What --optimized makes of the softmax loss: eq. 16 as printed, or the tangent plane [default: printed].
    #[arg(long, value_name = "HOW", requires = "optimized", help_heading = "ORO")]
    linearize: Option<LinearizeName>,
    /// Oracles by the score of the batch, or of each segment by itself.
    #[arg(long, value_name = "BY", default_value = "corpus", help_heading = "ORO")]
    oracle: OracleName,
    #[command(flatten)]
    sentence: Sentence,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LossName {
    /// What is missing to a margin of 1, pair by pair.
    Hinge,
    /// The likelihood of the oracles.
    Softmax,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RateName {
    /// η₀·α^(k/K).
    Exponential,
    /// 1/(λk).
    Pegasos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum NormName {
    /// Pairs that cost something (M′).
    Violated,
    /// All pairs (M).
    Pairs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DualName {
    /// Footnote 2.
    Normalized,
    /// Eq. 12.
    Box,
    /// Eq. 14.
    Simplex,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LinearizeName {
    /// Eq. 16.
    Printed,
    /// The tangent plane.
    Tangent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OracleName {
    /// Of the batch.
    Corpus,
    /// Of each segment.
    Sentence,
}

pub(super) fn oro(args: &OroArgs, common: &Common, talk: Talk) -> Done {
    let metric = metric_of(&args.input)?;
    let seed = common.seed.unwrap_or(1);
    let pegasos = args.rate == RateName::Pegasos;
    if pegasos && (args.eta0.is_some() || args.alpha.is_some()) {
        return Err(Error::new("--rate pegasos has neither --eta0 nor --alpha").into());
    }
    if args.loss == LossName::Hinge && args.linearize.is_some() {
        return Err(Error::new("--linearize is about --loss softmax").into());
    }
    if args.normalize.is_some() && (args.optimized || args.loss == LossName::Softmax) {
        return Err(Error::new("--normalize is about --loss hinge without --optimized").into());
    }
    let loss = match args.loss {
        LossName::Hinge => RankLoss::Hinge,
        LossName::Softmax => RankLoss::Softmax,
    };
    let (eta0, alpha) = (args.eta0.unwrap_or(0.2), args.alpha.unwrap_or(0.85));
    let rate = if pegasos { Rate::Pegasos } else { Rate::Exponential { eta0, alpha } };
    let mut settings = Settings::default();
    settings.add("loss", value_name(&args.loss));
    settings.add("optimized", args.optimized);
    settings.add("lambda", args.lambda);
    settings.add("rate", if pegasos { "pegasos".to_owned() } else { format!("{eta0} {alpha}") });
    settings.add("oracle", value_name(&args.oracle));
    args.sentence.settings(&mut settings);
    let lambda = args.lambda;
    let rule = if args.optimized {
        let dual = args.dual.unwrap_or(DualName::Normalized);
        let linearize = args.linearize.unwrap_or(LinearizeName::Printed);
        settings.add("dual", value_name(&dual));
        settings.add("linearize", value_name(&linearize));
        let bound = match dual {
            DualName::Normalized => Bound::Normalized,
            DualName::Box => Bound::Box,
            DualName::Simplex => Bound::Simplex,
        };
        let linearize = match linearize {
            LinearizeName::Printed => Linearize::Printed,
            LinearizeName::Tangent => Linearize::Tangent,
        };
        Rule::Optimized { loss, rate, lambda, bound, linearize }
    } else {
        let norm = args.normalize.unwrap_or(NormName::Violated);
        settings.add("normalize", value_name(&norm));
        let norm = if norm == NormName::Pairs { Norm::Pairs } else { Norm::Violated };
        Rule::Gradient { loss, rate, lambda, norm }
    };
    let learner = Rank {
        plus_one: args.sentence.plus_one(),
        sentence_oracles: args.oracle == OracleName::Sentence,
        ..Rank::new(metric.clone(), rule, seed)
    };
    let schedule = args.online.schedule(&args.input, (16, MixingName::LineSearch), seed, &mut settings);
    let plus_one = args.sentence.plus_one();
    go(&args.input, &metric, plan("oro", Box::new(learner), settings, schedule, plus_one), talk)
}
