//! `luthier rerank`.

use super::{Common, Done, check_names, one_line, write_out};
use crate::{
    lists::{ListArgs, detail},
    talk::Talk,
};
use luthier::{
    io::{
        AtomicFile,
        nbest::{To, Writer},
    },
    tune::{columns, list},
};
use serde_json::json;
use std::{path::PathBuf, process::ExitCode};

/// Select the candidate with the highest weighted sum of features.
///
/// With --json, one line per segment, also in --output: `{"segment":0,"candidate":2,"score":-1.5,"text":"…"}`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    nbest: ListArgs,
    /// Weights, one `name value` per line, as `tune` writes them, or a Moses configuration.
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    weights: PathBuf,
    /// Output file for the best candidates, one per line [default: standard output].
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Output file for all candidates, best first, with their new scores; .jsonl or .tsv in the name selects that format.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    nbest_out: Option<PathBuf>,
    /// Number of candidates per segment in --nbest-out [default: all].
    #[arg(long, value_name = "K", requires = "nbest_out", help_heading = "Output")]
    top: Option<usize>,
}

pub(crate) fn run(args: &Args, common: &Common, talk: Talk) -> Done {
    let weights = luthier::io::read_weights(&args.weights)?;
    let rows = args.nbest.read(talk)?;
    check_names(&weights, &args.weights, &rows, None, talk)?;
    if (0..rows.len()).all(|row| rows.text(row).is_empty()) {
        talk.warn("the candidates have no texts, so the best ones are empty lines");
    }
    let groups = rows.by_segment(args.nbest.allow_missing)?;
    detail(&rows, groups.len(), talk);
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
    for (segment, group) in groups.iter().enumerate() {
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
        let best = order.first().copied();
        if common.json {
            let (score, words) = (best.map(|b| scores[b]), best.map(|b| list.text(b)));
            let id = rows.id(segment as u32);
            let id = id.parse::<u32>().map_or(json!(id), |number| json!(number));
            text += &json!({"segment": id, "candidate": best, "score": score, "text": words}).to_string();
        } else if let Some(best) = best {
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
