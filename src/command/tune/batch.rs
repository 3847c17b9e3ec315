//! `luthier tune pro`, `apro`, `softmax`, `xbleu`, `risk`: a loss to minimise.

use super::{Common, Done, Input, Plan, Talk, go, metric_of, only_bleu};
use crate::command::losses::{Flags, On as _, share};
use luthier::{
    core::Error,
    tune::{Loss, Schedule, loss::Clip},
};
use std::sync::Arc;

#[derive(Debug, clap::Args)]
#[command(after_help = crate::command::METRICS_HELP)]
pub(crate) struct Args<F: Flags> {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    on: F::On,
    #[command(flatten)]
    flags: F,
    /// How much of the newly learned weights is taken, with a decoder [default: 0.1 for pro and for softmax on forests, else 1].
    #[arg(long, value_name = "PSI", allow_negative_numbers = true, value_parser = share, help_heading = "With a decoder")]
    psi: Option<f64>,
    /// The iteration that begins with an empty pool, with a decoder; 0 for none [default: 10 for pro and apro].
    #[arg(long, value_name = "N", help_heading = "With a decoder")]
    reset_at: Option<u32>,
}

pub(super) fn run<F: Flags>(args: &Args<F>, common: &Common, talk: Talk) -> Done {
    let metric = metric_of(&args.input)?;
    let seed = common.seed.unwrap_or(1);
    let mut learner = args.flags.minimize(&metric, seed)?;
    let from_statistics = !args.input.moses_scores.is_empty();
    if let Loss::Xbleu { clip: Clip::Expected | Clip::None, .. } = learner.loss
        && from_statistics
    {
        return Err(Error::new("--moses-scores has counts that were clipped already")
            .hint("use --clip candidate, or --ref instead")
            .into());
    }
    let mut settings = args.flags.settings();
    settings.add("seed", seed);
    let density = args.on.density(&mut settings)?;
    if density.is_some() {
        only_bleu(F::NAME, &metric)?;
        if args.reset_at.is_some() {
            return Err(Error::new("--reset-at has no effect with --on forest, where nothing is kept").into());
        }
        if let Loss::Xbleu { clip: Clip::Candidate, .. } = learner.loss {
            return Err(Error::new(
                "--clip candidate needs candidates one by one, which forests do not have",
            )
            .hint("use --clip expected or none")
            .into());
        }
    }
    let bar = talk.bar("{percent} %  objective");
    learner.progress = bar.map(|bar| {
        Arc::new(move |done: f64, value: f64| bar.show((1e3 * done) as u32, 1000, &format!("{value:.6}")))
            as Arc<_>
    });
    let schedule = Schedule {
        iterations: args.input.iterations.unwrap_or(F::ITERATIONS),
        psi: args.psi.unwrap_or(if density.is_some() { F::FOREST_PSI } else { F::PSI }),
        reset_at: Some(args.reset_at.unwrap_or(F::RESET_AT)).filter(|&n| n > 0),
        // In a union of forests derivations would be counted twice.
        accumulate: density.is_none(),
        ..Schedule::default()
    };
    let plan = Plan {
        name: F::NAME,
        learner: Box::new(move |read: &Arc<Vec<Vec<String>>>| {
            if let Loss::Xbleu { references, .. } = &mut learner.loss {
                *references = (!from_statistics).then(|| read.clone());
            }
            Box::new(learner)
        }),
        settings,
        schedule,
        sparse: true,
        plus_one: luthier::metric::PlusOne::default(),
        density,
        mentioned: Vec::new(),
        remarks: Box::new(|_, length| args.flags.remark(length).into_iter().collect()),
    };
    go(&args.input, &metric, plan, talk)
}
