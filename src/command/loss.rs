//! `luthier loss`.

use super::{
    Common, Done, check_names,
    recipes::{RecipeInput, WithRecipe, flags_of},
    write_out,
};
use crate::{
    lists::{Judged, JudgedArgs},
    talk::Talk,
};
use luthier::{
    nbest::objective_at,
    tune::{
        SourceKind,
        recipe::{Context, Interpolation, LearnFrom, RecipeInfo, Stopping},
    },
};
use serde_json::json;
use std::{path::PathBuf, process::ExitCode, sync::Arc};

/// Value and gradient of a learner's objective at given weights.
///
/// Takes the flags of `tune`; of several --gamma the last one counts, and the minimiser's limits have no effect.
#[derive(Debug, clap::Args)]
#[command(subcommand_value_name = "LOSS", subcommand_help_heading = "Losses", subcommand_required = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    loss: WithRecipe<Input>,
}

/// Inputs and outputs.
#[derive(Debug, clap::Args)]
pub(crate) struct Input {
    #[command(flatten)]
    judged: JudgedArgs,
    /// Weights to evaluate the objective at.
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    weights: PathBuf,
}

impl RecipeInput for Input {
    fn takes(info: &RecipeInfo) -> bool {
        info.has_objective
    }

    fn ignored() -> Vec<String> {
        [flags_of::<Stopping>(), flags_of::<Interpolation>(), flags_of::<LearnFrom>()].concat()
    }
}

pub(crate) fn run(args: &Args, common: &Common, talk: Talk) -> Done {
    let WithRecipe { recipe, input } = &args.loss;
    let Judged { metric, rows, lists, references, .. } = input.judged.read(true, talk)?;
    let (seed, references) = (common.seed.unwrap_or(1), Some(Arc::new(references)));
    let context = Context { metric: &metric, seed, source: SourceKind::Fixed, references };
    let objective = recipe.objective(&context)?;
    let weights = luthier::io::read_weights(&input.weights)?;
    check_names(&weights, &input.weights, &rows, Some(&metric), talk)?;
    let (value, gradient) = objective_at(&objective, &metric, &lists, &weights, &rows.names)?;
    let loss = recipe.info().name;
    let text = if common.json {
        let gradient: serde_json::Map<_, _> = gradient.into_iter().map(|(n, g)| (n, json!(g))).collect();
        let candidates: usize = lists.iter().map(|l| l.k).sum();
        let value = json!({
            "loss": loss,
            "value": value,
            "gradient": gradient,
            "segments": lists.len(),
            "candidates": candidates,
        });
        format!("{value}\n")
    } else {
        let lines: String = gradient.iter().map(|(n, g)| format!("{n}\t{g}\n")).collect();
        format!("{loss}\t{value}\n{lines}")
    };
    write_out(None, text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
