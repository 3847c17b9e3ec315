//! `luthier score`.

use super::{Done, read_references, write_out};
use luthier::{
    core::{Error, sum, text},
    metric::{Hypothesis, Metric, Scratch, Tokenizer},
};
use serde::Serialize;
use std::{fmt::Write as _, path::PathBuf, process::ExitCode};

/// Scores equal sacreBLEU's with the same settings.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Translations, one segment a line; `-` is standard input.
    #[arg(required = true, value_name = "HYP")]
    hypotheses: Vec<PathBuf>,
    /// References, one segment a line; repeat it for several.
    #[arg(long = "ref", required = true, num_args = 1.., value_name = "FILE")]
    references: Vec<PathBuf>,
    /// Metrics with their settings, such as `bleu` or `bleu:order=2`.
    #[arg(long, default_value = "bleu", value_name = "METRIC")]
    metric: String,
    /// Tokeniser: 13a, or none for text that is tokenised already.
    #[arg(long, default_value = "13a", value_name = "NAME")]
    tokenize: String,
    /// Ignore case.
    #[arg(long)]
    lowercase: bool,
    /// Decimals.
    #[arg(long, default_value_t = 2, value_name = "N")]
    width: usize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row<'a> {
    system: &'a str,
    metric: &'static str,
    score: f64,
    signature: String,
    segments: usize,
    details: String,
}

pub(crate) fn run(args: &Args) -> Done {
    let metric = metric(args)?;
    let files = read_references(&args.references)?;
    let references = text::by_segment(&files)?;
    let mut rows = Vec::new();
    let systems = args.hypotheses.iter().map(|p| text::read_lines(p)).collect::<Result<Vec<_>, _>>()?;
    for system in &systems {
        if system.lines.len() != references.len() {
            let (n, m) = (system.lines.len(), references.len());
            return Err(Error::at(
                &system.file,
                n.min(m) as u64 + 1,
                format!("the file has {n} lines, but {} has {m}", files[0].file),
            )
            .hint("both need one line per segment")
            .into());
        }
        let total = totals(&metric, &system.lines, &references);
        rows.push(Row {
            system: &system.file,
            metric: metric.name(),
            score: metric.score(&total),
            signature: metric.signature(files.len()),
            segments: system.lines.len(),
            details: metric.details(&total),
        });
    }
    let mut out = String::new();
    if args.json {
        out = serde_json::to_string(&rows).map_err(|e| Error::new(e.to_string()))? + "\n";
    } else {
        for row in &rows {
            let system = if rows.len() > 1 { format!("{}\t", row.system) } else { String::new() };
            let _ = writeln!(
                out,
                "{system}{}|{} = {:.*} {}",
                row.metric, row.signature, args.width, row.score, row.details
            );
        }
    }
    write_out(None, out.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn metric(args: &Args) -> Result<Metric, Error> {
    let tokenize = Tokenizer::parse(&args.tokenize).map_err(|e| Error::new(e.to_string()))?;
    let mut metric = Metric::parse(&args.metric, tokenize).map_err(|e| Error::new(e.to_string()))?;
    if args.lowercase {
        metric.set_lowercase();
    }
    Ok(metric)
}

/// Summed statistics of a system.
fn totals(metric: &Metric, lines: &[String], references: &[Vec<&str>]) -> Vec<f64> {
    const CHUNK: usize = 256;
    let parts = sum::map_chunks(lines.len(), CHUNK, |range| {
        let mut scratch = Scratch::default();
        let mut out = vec![0.0; metric.width()];
        let mut total = vec![0.0; metric.width()];
        for s in range {
            let prepared = metric.prepare(&references[s]);
            metric.stats(&prepared, Hypothesis { text: &lines[s] }, &mut scratch, &mut out);
            total.iter_mut().zip(&out).for_each(|(t, x)| *t += f64::from(*x));
        }
        total
    });
    let mut total = vec![0.0; metric.width()];
    for part in parts {
        total.iter_mut().zip(&part).for_each(|(t, x)| *t += x);
    }
    total
}
