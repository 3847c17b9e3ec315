//! `luthier oracle`.

use super::{Common, Done, one_line, read_references, write_out};
use crate::lists::ListArgs;
use luthier::{
    core::{AtomicFile, Error, text},
    metric::Metric,
    tune::{Choice, Judge, List, columns, lists, oracle},
};
use serde_json::json;
use std::{path::PathBuf, process::ExitCode};

/// The best and the worst that a choice of one candidate per segment can score: what is to be gained.
#[derive(Debug, clap::Args)]
#[command(after_help = super::METRICS_HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    nbest: ListArgs,
    /// References, one segment a line; repeat it for several. Not needed for columns.
    #[arg(long = "ref", value_name = "FILE")]
    references: Vec<PathBuf>,
    /// The metric. Candidates are taken to be in tokens already (tokenize=none).
    #[arg(long, short, default_value = "bleu", value_name = "METRIC")]
    metric: String,
    /// Where the best candidates go, one a line.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print JSON, with the candidates chosen.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, common: &Common) -> Done {
    let metric: Metric = args.metric.parse().map_err(|e| Error::new(format!("{e}")))?;
    if args.references.is_empty() && metric.needs_references() {
        return Err(Error::new("no references: give them with --ref FILE").into());
    }
    let files = read_references(&args.references)?;
    let rows = args.nbest.read()?;
    let mut references = text::by_segment(&files)?;
    if references.is_empty() {
        references = vec![Vec::new(); rows.by_segment(args.nbest.allow_missing)?.len()];
    }
    let mut judge = Judge::new(&metric, &references, files.first().map_or("the n-best list", |f| &f.file));
    (judge.distinct, judge.allow_missing) = (false, args.nbest.allow_missing);
    let lists = lists(&rows, &columns(&rows, Some(&metric)), Some(judge))?;
    let seed = common.seed.unwrap_or(1);
    let best = oracle(&lists, &metric, false, seed);
    let worst = oracle(&lists, &metric, true, seed);
    let first = first_score(&lists, &metric);
    if let Some(path) = &args.output {
        let text: String = lists
            .iter()
            .zip(&best.chosen)
            .map(|(l, &i)| one_line(if l.k > 0 { l.text(i) } else { "" }) + "\n")
            .collect();
        AtomicFile::write_all_to(path, text.as_bytes())?;
    }
    let shown = |choice: &Choice| metric.shown(choice.score);
    let text = if args.json {
        let value = json!({
            "metric": metric.name(), "score": shown(&best), "chosen": best.chosen,
            "first": metric.shown(first),
            "anti": {"score": shown(&worst), "chosen": worst.chosen},
            "signature": metric.signature(Some(files.len()), ""),
        });
        format!("{value}\n")
    } else {
        format!(
            "oracle       {} {:.2}\nfirst        {} {:.2}\nanti-oracle  {} {:.2}\n{}\n",
            metric.name(),
            shown(&best),
            metric.name(),
            metric.shown(first),
            metric.name(),
            shown(&worst),
            metric.signature(Some(files.len()), "")
        )
    };
    write_out(None, text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The score of the first candidates, as the lists came.
fn first_score(lists: &[List], metric: &Metric) -> f64 {
    let mut total = vec![0.0; metric.width()];
    for list in lists.iter().filter(|l| l.k > 0) {
        total.iter_mut().zip(list.stats_of(list.class[0])).for_each(|(t, x)| *t += f64::from(*x));
    }
    metric.score(&total)
}
