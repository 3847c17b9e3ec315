//! `luthier oracle`.

use super::{Common, Done, one_line, write_out};
use crate::{
    lists::{Judged, JudgedArgs},
    talk::Talk,
};
use luthier::{
    io::AtomicFile,
    tune::{Choice, first_score, oracle},
};
use serde_json::json;
use std::{path::PathBuf, process::ExitCode};

/// Headroom of n-best lists: best and worst corpus score of one candidate per segment.
///
/// Up to 100,000 combinations are all tried; with more, oracle and anti-oracle are found by hill climbing on the corpus score,
/// so that the true best may be better, and the true worst worse. `first` is the score of the first candidate of each list.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    judged: JudgedArgs,
    /// Output file for the best candidates, one per line.
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, common: &Common, talk: Talk) -> Done {
    super::check_json_output(common, args.output.as_deref())?;
    let Judged { metric, lists, signature, .. } = args.judged.read(false, talk)?;
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
    let shown = |choice: &Choice| metric.display_score(choice.score);
    let text = if common.json {
        let value = json!({
            "metric": metric.name(), "score": shown(&best), "chosen": best.chosen,
            "first": metric.display_score(first),
            "anti": {"score": shown(&worst), "chosen": worst.chosen},
            "signature": signature,
        });
        format!("{value}\n")
    } else {
        format!(
            "oracle       {} {:.2}\nfirst        {} {:.2}\nanti-oracle  {} {:.2}\n{}\n",
            metric.name(),
            shown(&best),
            metric.name(),
            metric.display_score(first),
            metric.name(),
            shown(&worst),
            signature
        )
    };
    write_out(None, text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
