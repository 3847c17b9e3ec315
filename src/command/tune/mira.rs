//! `luthier tune mira`.

use super::{Common, Done, Input, Plan, Settings, Talk, go, metric_of};
use crate::command::losses::{positive, share};
use luthier::tune::{HopeFear, Schedule};
use std::sync::Arc;

#[derive(Debug, clap::Args)]
#[command(after_help = crate::command::METRICS_HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// Largest step.
    #[arg(long, value_name = "C", default_value_t = 0.01, allow_negative_numbers = true, value_parser = positive, help_heading = "MIRA")]
    c: f64,
    /// What is left of the pseudo-document at every update.
    #[arg(long, value_name = "SHARE", default_value_t = 0.999, allow_negative_numbers = true, value_parser = share, help_heading = "MIRA")]
    decay: f64,
    /// Epochs over the pool.
    #[arg(long, value_name = "N", default_value_t = 60, help_heading = "MIRA", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    epochs: u32,
    /// Make the pseudo-document of the model's best candidates, not of hopes.
    #[arg(long, help_heading = "MIRA")]
    model_background: bool,
    /// Hold the model's share in the hope down where it drowns the metric's.
    #[arg(long, help_heading = "MIRA")]
    safe_hope: bool,
    /// Visit segments in their order.
    #[arg(long, help_heading = "MIRA")]
    no_shuffle: bool,
}

pub(super) fn run(args: &Args, common: &Common, talk: Talk) -> Done {
    let metric = metric_of(&args.input)?;
    let seed = common.seed.unwrap_or(1);
    let mut settings = Settings::default();
    settings.add("c", args.c);
    settings.add("decay", args.decay);
    settings.add("epochs", args.epochs);
    settings.add("model-background", args.model_background);
    settings.add("safe-hope", args.safe_hope);
    settings.add("shuffle", !args.no_shuffle);
    settings.add("seed", seed);
    let shown = metric.clone();
    let learner = HopeFear {
        c: args.c,
        decay: args.decay,
        epochs: args.epochs,
        model_background: args.model_background,
        safe_hope: args.safe_hope,
        shuffle: !args.no_shuffle,
        progress: talk.bar("epoch {pos} of {len}  best").map(|bar| {
            Arc::new(move |done: u32, all: u32, best: f64| {
                bar.show(done, all, &format!("{} {:.2}", shown.name(), shown.shown(best)));
            }) as Arc<_>
        }),
        ..HopeFear::new(metric.clone(), seed)
    };
    let plan = Plan {
        name: "mira",
        learner: Box::new(move |_| Box::new(learner)),
        settings,
        schedule: Schedule { iterations: args.input.iterations.unwrap_or(25), ..Schedule::default() },
        sparse: true,
        mentioned: Vec::new(),
        remarks: Box::new(|_, _| Vec::new()),
    };
    go(&args.input, &metric, plan, talk)
}
