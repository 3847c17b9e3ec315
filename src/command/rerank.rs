//! `luthier rerank`.

use super::{Done, check_names, read_nbest, write_out};
use crate::talk::Talk;
use luthier::{
    core::{AtomicFile, Error, Weights, nbest::write_moses},
    tune::{columns, lists},
};
use std::{path::PathBuf, process::ExitCode};

/// Picks the candidate with the highest weighted sum of features; the first of equals.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// N-best lists in Moses' format, plain or gzip; `-` is standard input.
    #[arg(long, required = true, num_args = 1.., value_name = "FILE")]
    nbest: Vec<PathBuf>,
    /// Weights: `name value` a line, as `tune` writes them.
    #[arg(long, value_name = "FILE")]
    weights: PathBuf,
    /// Where the best candidates go, one a line [default: standard output].
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also write all candidates, best first, with their new scores.
    #[arg(long, value_name = "FILE")]
    nbest_out: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, talk: Talk) -> Done {
    let weights = Weights::read(&args.weights)?;
    let rows = read_nbest(&args.nbest)?;
    check_names(&weights, &args.weights, rows.names.names(), talk)?;
    let groups = rows.by_segment();
    if let Some(missing) = groups.iter().position(Vec::is_empty) {
        return Err(Error::in_file(&rows.files[0].name, format!("segment {missing} has no candidate"))
            .hint("the output would lose its line; add a candidate for it")
            .into());
    }
    let columns = columns(&rows);
    let lists = lists(&rows, &columns, None)?;
    let mut dense = Vec::new();
    weights.gather(&columns, &mut dense);
    let mut text = String::new();
    let mut resorted = args.nbest_out.as_deref().map(AtomicFile::create).transpose()?;
    for (segment, (list, group)) in lists.iter().zip(&groups).enumerate() {
        let mut scores = vec![0.0; list.k];
        list.scores(&dense, &weights, &mut scores);
        let mut order: Vec<usize> = (0..list.k).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        text.push_str(list.text(order[0]));
        text.push('\n');
        let Some(out) = &mut resorted else { continue };
        for &i in &order {
            let (ids, values) = rows.features(group[i] as usize);
            let names = ids.iter().map(|&id| rows.names.names()[id as usize].as_str());
            write_moses(out, segment as u32, list.text(i), names.zip(values.iter().copied()), scores[i])
                .map_err(|e| Error::io("--nbest-out", "write it", &e))?;
        }
    }
    write_out(args.output.as_deref(), text.as_bytes())?;
    if let Some(out) = resorted {
        out.commit()?;
    }
    Ok(ExitCode::SUCCESS)
}
