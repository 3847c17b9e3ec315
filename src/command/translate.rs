//! `luthier translate`: `decode` with text in the arguments.

use super::{Common, Done, decode};
use crate::talk::Talk;
use std::path::PathBuf;

/// Translate text that is given as arguments.
///
/// Each argument is a sentence, or several with one per line; translations are printed one per line, as by `decode`, which has flags
/// for files, n-best lists and the search.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Sentences to translate.
    #[arg(required = true, value_name = "TEXT")]
    text: Vec<String>,
    /// Model directory.
    #[arg(long, value_name = "DIR", default_value = "model", help_heading = "Input")]
    model: PathBuf,
    /// Weights, one `name value` per line, or a Moses configuration [default: those of the model].
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    weights: Option<PathBuf>,
}

pub(crate) fn run(args: Args, common: &Common, talk: Talk) -> Done {
    decode::run(&decode::Args::of_sentences(args.model, args.weights, args.text), common, talk)
}
