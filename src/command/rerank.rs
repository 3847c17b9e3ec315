//! `luthier rerank`.

use super::{Done, check_names, one_line, write_out};
use crate::{lists::ListArgs, talk::Talk};
use luthier::{
    io::{
        AtomicFile,
        nbest::{To, Writer},
    },
    tune::{columns, list},
};
use std::{path::PathBuf, process::ExitCode};

/// Picks the candidate with the highest weighted sum of features; the first of equals.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    nbest: ListArgs,
    /// Weights: `name value` a line, as `tune` writes them, or a Moses configuration.
    #[arg(long, value_name = "FILE")]
    weights: PathBuf,
    /// Where the best candidates go, one a line [default: standard output].
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the candidates, best first, with their new scores; `.jsonl` and `.tsv` names choose those formats.
    #[arg(long, value_name = "FILE")]
    nbest_out: Option<PathBuf>,
    /// Keep so many candidates of each segment in --nbest-out [default: all].
    #[arg(long, value_name = "K", requires = "nbest_out")]
    top: Option<usize>,
}

pub(crate) fn run(args: &Args, talk: Talk) -> Done {
    let weights = luthier::io::read_weights(&args.weights)?;
    let rows = args.nbest.read()?;
    check_names(&weights, &args.weights, &rows, None, talk)?;
    if (0..rows.len()).all(|row| rows.text(row).is_empty()) {
        talk.warn("the candidates have no texts, so the best ones are empty lines");
    }
    let groups = rows.by_segment(args.nbest.allow_missing)?;
    let columns = columns(&rows, None);
    let mut dense = Vec::new();
    weights.gather(&columns, &mut dense);
    let mut text = String::new();
    let mut file = args.nbest_out.as_deref().map(AtomicFile::create).transpose()?;
    let mut writer = match (&args.nbest_out, &mut file) {
        (Some(path), Some(file)) => {
            Some(Writer::new(&rows, To::of_path(path), true, file, &path.display().to_string())?)
        }
        _ => None,
    };
    for group in &groups {
        let list = list(&rows, &columns, group);
        let mut scores = vec![0.0; list.k];
        list.scores(&dense, &weights, &mut scores);
        if let Some(i) = scores.iter().position(|s| !s.is_finite()) {
            return Err(rows
                .error(group[i] as usize, "weights times features is too large for a number")
                .hint("scale the weights down")
                .into());
        }
        let mut order: Vec<usize> = (0..list.k).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        if let Some(&best) = order.first() {
            text.push_str(&one_line(list.text(best)));
        }
        text.push('\n');
        if let Some(writer) = &mut writer {
            for &i in order.iter().take(args.top.unwrap_or(usize::MAX)) {
                writer.write(group[i] as usize, Some(scores[i]))?;
            }
        }
    }
    drop(writer);
    write_out(args.output.as_deref(), text.as_bytes())?;
    if let Some(file) = file {
        file.commit()?;
    }
    Ok(ExitCode::SUCCESS)
}
