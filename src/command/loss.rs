//! `luthier loss`.

use super::{
    Common, Done, check_names, keep_features,
    losses::{AproFlags, Flags, ProFlags, RiskFlags, SoftmaxFlags, XbleuFlags},
    write_out,
};
use crate::{
    lists::{Judged, JudgedArgs},
    talk::Talk,
};
use clap::Subcommand;
use luthier::{core::FeatureKey, tune::Loss};
use serde_json::json;
use std::{path::PathBuf, process::ExitCode, sync::Arc};

/// The value and the gradient of what a tuner minimises, at given weights. It takes the tuner's flags; of several --gamma
/// the last counts, and how far to minimise does not matter.
#[derive(Debug, clap::Args)]
#[command(subcommand_value_name = "LOSS", subcommand_help_heading = "Losses", arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    loss: LossName,
}

#[derive(Debug, Subcommand)]
enum LossName {
    /// Pairs of candidates with a logistic or hinge loss.
    Pro(Box<One<ProFlags>>),
    /// All pairs with a squared hinge.
    Apro(Box<One<AproFlags>>),
    /// Likelihood of the oracles.
    Softmax(Box<One<SoftmaxFlags>>),
    /// Minus the BLEU of expected counts, from 0 to 1.
    Xbleu(Box<One<XbleuFlags>>),
    /// Minus the expected sentence score, from 0 to 1.
    Risk(Box<One<RiskFlags>>),
}

#[derive(Debug, clap::Args)]
#[command(after_help = super::METRICS_HELP)]
struct One<F: Flags> {
    #[command(flatten)]
    judged: JudgedArgs,
    /// Where.
    #[arg(long, value_name = "FILE")]
    weights: PathBuf,
    #[command(flatten)]
    flags: F,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, common: &Common, talk: Talk) -> Done {
    match &args.loss {
        LossName::Pro(one) => print(one, common, talk),
        LossName::Apro(one) => print(one, common, talk),
        LossName::Softmax(one) => print(one, common, talk),
        LossName::Xbleu(one) => print(one, common, talk),
        LossName::Risk(one) => print(one, common, talk),
    }
}

fn print<F: Flags>(args: &One<F>, common: &Common, talk: Talk) -> Done {
    let mut minimize = args.flags.minimize(&args.judged.metric()?, common.seed.unwrap_or(1))?;
    let Judged { metric, rows, columns, lists, references, .. } = args.judged.read(true)?;
    let mut weights = luthier::io::read_weights(&args.weights)?;
    check_names(&weights, &args.weights, &rows, Some(&metric), talk)?;
    keep_features(&mut weights, &rows, &metric);
    let name = |key: FeatureKey| rows.names.get(key).unwrap_or_default().to_owned();
    weights.commit(&columns, &name)?;
    lists.iter().try_for_each(|l| weights.commit(&l.local, &name))?;
    if let Loss::Xbleu { references: own, .. } = &mut minimize.loss {
        *own = Some(Arc::new(references));
    }
    let mut gradient = vec![0.0; weights.len()];
    let value = minimize.objective(&lists, &weights, 0).evaluate(weights.values(), &mut gradient);
    let named = weights.iter().map(|w| w.0).zip(&gradient);
    let candidates: usize = lists.iter().map(|l| l.k).sum();
    let text = if args.json {
        let gradient: serde_json::Map<_, _> = named.map(|(n, g)| (n.to_owned(), json!(g))).collect();
        let value = json!({
            "loss": F::NAME,
            "value": value,
            "gradient": gradient,
            "segments": lists.len(),
            "candidates": candidates,
        });
        format!("{value}\n")
    } else {
        let lines: String = named.map(|(n, g)| format!("{n}\t{g}\n")).collect();
        format!("{}\t{value}\n{lines}", F::NAME)
    };
    write_out(None, text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
