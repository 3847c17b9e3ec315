//! `luthier tune mira`.

use super::{
    Common, Done, Input, Plan, Settings, Talk, go, metric_of,
    online::{MixingName, OnlineArgs, SurrogateArgs, plan},
    only_bleu,
};
use crate::command::{
    losses::{On as _, OnArgs, Sentence, positive, share},
    value_name,
};
use clap::ValueEnum;
use luthier::{
    core::Error,
    metric::{Metric, PlusOne},
    tune::{HopeFear, Rank, RankMargin, Rule, Schedule},
};
use std::sync::Arc;

#[derive(Debug, clap::Args)]
#[command(after_help = crate::command::METRICS_HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    on: OnArgs,
    /// What is held against what: hope and fear over the pool, as Moses' kbmira; a surrogate against the guess, online (Arun
    /// and Koehn 2007); or oracles against all others, batch by batch (Watanabe 2012, eq. 13).
    #[arg(long, value_name = "WHICH", default_value = "hope-fear", help_heading = "MIRA")]
    constraints: ConstraintsName,
    /// Largest step [default: 0.01 for hope-fear; none for surrogate].
    #[arg(long, value_name = "C", allow_negative_numbers = true, value_parser = positive, help_heading = "MIRA")]
    c: Option<f64>,
    /// With oracles: the largest multiplier is 1/λ [default: 100].
    #[arg(long, value_name = "L", allow_negative_numbers = true, value_parser = positive, help_heading = "MIRA")]
    lambda: Option<f64>,
    /// With oracles: how far they are to be above, 1, or what the batch's score loses [default: one].
    #[arg(long, value_name = "HOW", help_heading = "MIRA")]
    margin: Option<MarginName>,
    /// With hope-fear: what is left of the pseudo-document at every update [default: 0.999].
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true, value_parser = share, help_heading = "MIRA")]
    decay: Option<f64>,
    /// With hope-fear: epochs over the pool [default: 60; 10 over forests].
    #[arg(long, value_name = "N", help_heading = "MIRA", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    epochs: Option<u32>,
    /// With hope-fear: make the pseudo-document of the model's best candidates, not of hopes.
    #[arg(long, help_heading = "MIRA")]
    model_background: bool,
    /// With hope-fear: hold the model's share in the hope down where it drowns the metric's.
    #[arg(long, help_heading = "MIRA")]
    safe_hope: bool,
    /// With hope-fear: visit segments in their order.
    #[arg(long, help_heading = "MIRA")]
    no_shuffle: bool,
    #[command(flatten)]
    surrogates: SurrogateArgs,
    #[command(flatten)]
    sentence: Sentence,
    #[command(flatten)]
    online: OnlineArgs,
}

/// Epochs over forests: each costs two searches for every segment.
const ON_FORESTS: u32 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ConstraintsName {
    /// Hope and fear over the pool.
    HopeFear,
    /// Surrogate and guess.
    Surrogate,
    /// Oracles and all others.
    Oracle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MarginName {
    /// 1.
    One,
    /// What the batch's score loses.
    Error,
}

pub(super) fn run(args: &Args, common: &Common, talk: Talk) -> Done {
    let metric = metric_of(&args.input)?;
    let seed = common.seed.unwrap_or(1);
    args.check()?;
    match args.constraints {
        ConstraintsName::HopeFear => {
            let plan = args.hope_fear(&metric, seed, talk)?;
            go(&args.input, &metric, plan, talk)
        }
        ConstraintsName::Surrogate => {
            let c = args.c.unwrap_or(f64::INFINITY);
            let mut settings = args.settings();
            settings.add("c", c);
            let learner = args.surrogates.learner(&metric, &args.sentence, Some(c), &mut settings)?;
            let schedule = args.online.schedule(&args.input, (1, MixingName::Average), seed, &mut settings);
            let plus_one = args.sentence.plus_one();
            go(&args.input, &metric, plan("mira", Box::new(learner), settings, schedule, plus_one), talk)
        }
        ConstraintsName::Oracle => {
            let lambda = args.lambda.unwrap_or(100.0);
            let margin = args.margin.unwrap_or(MarginName::One);
            let mut settings = args.settings();
            settings.add("lambda", lambda);
            settings.add("margin", value_name(&margin));
            let margin = if margin == MarginName::One { RankMargin::One } else { RankMargin::Error };
            let rule = Rule::Passive { c: 1.0 / lambda, margin };
            let learner = Rank::new(metric.clone(), rule, seed);
            let schedule = args.online.schedule(&args.input, (16, MixingName::Average), seed, &mut settings);
            let plan = plan("mira", Box::new(learner), settings, schedule, PlusOne::default());
            go(&args.input, &metric, plan, talk)
        }
    }
}

impl Args {
    fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        settings.add("constraints", value_name(&self.constraints));
        settings
    }

    /// Settings of other constraints would have no effect.
    fn check(&self) -> Result<(), Error> {
        use ConstraintsName::{HopeFear, Oracle, Surrogate};
        let wrong = |flags: &str, whose: &str| {
            let mine = value_name(&self.constraints);
            Err(Error::new(format!("{flags} has no effect with --constraints {mine}"))
                .hint(format!("it is for --constraints {whose}")))
        };
        let which = self.constraints;
        let hope_fear = self.decay.is_some()
            || self.epochs.is_some()
            || self.model_background
            || self.safe_hope
            || self.no_shuffle;
        let sentence = self.sentence.any();
        match which {
            Oracle if self.c.is_some() => wrong("--c", "hope-fear or surrogate; here it is 1/λ"),
            HopeFear | Surrogate if self.lambda.is_some() || self.margin.is_some() => {
                wrong("--lambda or --margin", "oracle")
            }
            Oracle | Surrogate if hope_fear => {
                wrong("--decay, --epochs, --model-background, --safe-hope or --no-shuffle", "hope-fear")
            }
            HopeFear | Oracle if self.surrogates.any() || sentence => wrong(
                "--update, --weighted, --no-references, --no-average or smoothing of sentence BLEU",
                "surrogate",
            ),
            Oracle | Surrogate if self.on.is_forest() => wrong("--on forest", "hope-fear"),
            HopeFear if self.online.any() => {
                wrong("--batch-size, --shards, --mixing or --in-order", "surrogate or oracle")
            }
            _ => Ok(()),
        }
    }

    fn hope_fear(&self, metric: &Metric, seed: u64, talk: Talk) -> Result<Plan<'_>, Error> {
        let mut settings = Settings::default();
        let density = self.on.density(&mut settings)?;
        if density.is_some() {
            only_bleu("mira", metric)?;
        }
        let base = HopeFear::new(metric.clone(), seed);
        let (c, decay) = (self.c.unwrap_or(base.c), self.decay.unwrap_or(base.decay));
        let usual = if density.is_some() { ON_FORESTS } else { base.epochs };
        let epochs = self.epochs.unwrap_or(usual);
        settings.add("c", c);
        settings.add("decay", decay);
        settings.add("epochs", epochs);
        settings.add("model-background", self.model_background);
        settings.add("safe-hope", self.safe_hope);
        settings.add("shuffle", !self.no_shuffle);
        settings.add("seed", seed);
        let shown = metric.clone();
        let learner = HopeFear {
            c,
            decay,
            epochs,
            model_background: self.model_background,
            safe_hope: self.safe_hope,
            shuffle: !self.no_shuffle,
            progress: talk.bar("epoch {pos} of {len}  best").map(|bar| {
                Arc::new(move |done: u32, all: u32, best: f64| {
                    bar.show(done, all, &format!("{} {:.2}", shown.name(), shown.shown(best)));
                }) as Arc<_>
            }),
            ..base
        };
        let iterations = self.input.iterations.unwrap_or(25);
        let schedule = Schedule { iterations, accumulate: density.is_none(), ..Schedule::default() };
        let plan = plan("mira", Box::new(learner), settings, schedule, PlusOne::default());
        Ok(Plan { density, ..plan })
    }
}
