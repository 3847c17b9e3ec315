//! `luthier score`.

use super::{Common, Done, write_out};
use crate::{
    hypotheses::{References, System, reference_count, statistics},
    lists::metric_error,
    table::Table,
    talk::Talk,
};
use luthier::{
    core::Error,
    metric::{Metric, Score, Tokenizer, looks_tokenized, significance::totals},
};
use serde::Serialize;
use serde_json::json;
use std::{fmt::Write as _, path::PathBuf, process::ExitCode};

/// Score translations against references; BLEU, chrF and TER equal sacreBLEU's.
///
/// sacreBLEU's arguments are accepted, too, as in `luthier score ref.txt -i hyp.txt -m bleu chrf`: with -i, positional files are
/// references.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Translations, one segment per line, `-` is standard input; with --input: references.
    #[arg(required_unless_present = "input", value_name = "HYP")]
    hypotheses: Vec<PathBuf>,
    /// Translations, one segment per line; positional files are then references, as in sacreBLEU.
    #[arg(long, short, value_name = "HYP", num_args = 1.., help_heading = "Input")]
    input: Vec<PathBuf>,
    #[command(flatten)]
    judging: Judging,
    /// Print a score for each segment.
    #[arg(long, help_heading = "Output")]
    sentence: bool,
    /// Print the score only.
    #[arg(long, short = 'b', conflicts_with = "sentence", help_heading = "Output")]
    score_only: bool,
}

/// References and metrics, the flags that `score` and `compare` share.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Judging {
    /// References, one segment per line; repeat for several references per segment.
    ///
    /// Not needed for metrics that read a column.
    #[arg(long = "ref", value_name = "FILE", help_heading = "Input")]
    pub(crate) references: Vec<PathBuf>,
    /// Split each line of a reference file at tabs into several references.
    #[arg(long, help_heading = "Input")]
    pub(crate) ref_tabs: bool,
    /// Metrics, separated by commas or spaces.
    #[arg(long, short, default_value = "bleu", value_name = "METRICS", help_heading = "Metric")]
    pub(crate) metric: String,
    /// Tokeniser of BLEU; none for tokenised text.
    #[arg(long, default_value = "13a", value_name = "NAME", help_heading = "Metric")]
    pub(crate) tokenize: Tokenizer,
    /// Ignore case.
    #[arg(long, help_heading = "Metric")]
    pub(crate) lowercase: bool,
    /// Number of decimals.
    #[arg(long, short, default_value_t = 2, value_name = "N", value_parser = decimals, help_heading = "Output")]
    pub(crate) width: usize,
}

fn decimals(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n <= 17).ok_or_else(|| "expected a number from 0 to 17".to_owned())
}

impl Judging {
    pub(crate) fn metrics(&self) -> Result<Vec<Metric>, Error> {
        let metrics = Metric::parse_list(&self.metric, self.tokenize);
        let mut metrics = metrics.map_err(|e| metric_error(&e))?;
        if self.lowercase {
            metrics.iter_mut().for_each(Metric::set_lowercase);
        }
        if self.references.is_empty() && metrics.iter().any(Metric::needs_references) {
            return Err(Error::new("no references").hint("give them with --ref FILE"));
        }
        Ok(metrics)
    }

    /// Reads and checks everything; warns about text that is tokenised and should not be.
    pub(crate) fn read(
        &self,
        paths: &[PathBuf],
        metrics: &[Metric],
        talk: Talk,
    ) -> Result<(Vec<System>, References), Error> {
        let references = References::read(&self.references, self.ref_tabs)?;
        let columns = metrics.iter().any(|m| !m.columns().is_empty());
        let systems = paths.iter().map(|p| System::read(p, columns)).collect::<Result<Vec<_>, _>>()?;
        let by_segment = references.by_segment()?;
        let (n, other) = if by_segment.is_empty() {
            (systems[0].lines.len(), &systems[0].file)
        } else {
            (by_segment.len(), &references.file)
        };
        for system in &systems {
            system.check_length(n, other)?;
            if metrics.iter().any(Metric::tokenizes)
                && looks_tokenized(system.lines.iter().map(String::as_str))
            {
                talk.warn(&format!(
                    "{} looks tokenised (lines end in ` .`), and BLEU will tokenise it again: \
                     detokenise it, or use --tokenize none",
                    system.file
                ));
            }
        }
        for system in &systems {
            talk.detail(&format!("{}: {} segments", system.file, system.lines.len()));
        }
        drop(by_segment);
        Ok((systems, references))
    }
}

#[derive(Serialize)]
struct Row<'a> {
    system: &'a str,
    #[serde(flatten)]
    score: Score,
    segments: usize,
}

impl Args {
    /// Translations and references: with `--input`, as sacreBLEU has them.
    fn files(&self) -> Result<(&[PathBuf], Judging), Error> {
        let mut judging = self.judging.clone();
        if self.input.is_empty() {
            return Ok((&self.hypotheses, judging));
        }
        if !judging.references.is_empty() && !self.hypotheses.is_empty() {
            return Err(Error::new(
                "references are given twice: after --ref, and without a flag beside --input",
            )
            .hint("give translations after --input, references after --ref"));
        }
        judging.references.extend_from_slice(&self.hypotheses);
        Ok((&self.input, judging))
    }
}

pub(crate) fn run(args: &Args, common: &Common, talk: Talk) -> Done {
    let (hypotheses, judging) = args.files()?;
    let metrics = judging.metrics()?;
    let (systems, references) = judging.read(hypotheses, &metrics, talk)?;
    let references = references.by_segment()?;
    let count = reference_count(&references);
    let text = if args.sentence {
        sentences(args, common, &metrics, &systems, &references)?
    } else {
        let mut rows = Vec::new();
        for metric in &metrics {
            for (system, stats) in systems.iter().zip(statistics(metric, &systems, &references)?) {
                let score = Score::from_totals(metric, &totals(metric, &stats), count);
                rows.push(Row { system: &system.file, score, segments: system.lines.len() });
            }
        }
        if common.json {
            serde_json::to_string(&rows).map_err(|e| Error::new(e.to_string()))? + "\n"
        } else if args.score_only {
            rows.iter().map(|r| format!("{:.*}\n", args.judging.width, r.score.value)).collect()
        } else if systems.len() == 1 {
            lines(&rows, args.judging.width)
        } else {
            table(&rows, systems.len(), args.judging.width)
        }
    };
    write_out(None, text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// One system: one line per metric, as sacreBLEU prints it.
fn lines(rows: &[Row<'_>], width: usize) -> String {
    let mut out = String::new();
    for Score { metric, value, signature, details } in rows.iter().map(|r| &r.score) {
        let details = details.as_ref().map(|d| format!(" {d}")).unwrap_or_default();
        let _ = writeln!(out, "{metric}|{signature} = {value:.width$}{details}");
    }
    out
}

/// Several systems: a table, and the signatures below.
fn table(rows: &[Row<'_>], systems: usize, width: usize) -> String {
    let mut table = Table::new("system");
    for by_metric in rows.chunks(systems) {
        table.column(&by_metric[0].score.metric);
    }
    for s in 0..systems {
        let scores = rows.iter().skip(s).step_by(systems).map(|r| format!("{:.width$}", r.score.value));
        table.row(rows[s].system, scores.collect());
    }
    let mut out = table.to_string();
    for by_metric in rows.chunks(systems) {
        let score = &by_metric[0].score;
        let _ = writeln!(out, "{}|{}", score.metric, score.signature);
    }
    out
}

/// One line per segment: tab-separated with a header, or JSON.
fn sentences(
    args: &Args,
    common: &Common,
    metrics: &[Metric],
    systems: &[System],
    references: &[Vec<&str>],
) -> Result<String, Error> {
    let mut scores = Vec::new(); // by metric, system, segment
    for metric in metrics {
        let metric = metric.for_sentences();
        let one = |stats: &[f32]| {
            let wide: Vec<f64> = stats.iter().map(|&x| f64::from(x)).collect();
            metric.display_score(metric.score(&wide))
        };
        let all = statistics(&metric, systems, references)?;
        scores.push(
            all.iter().map(|s| s.chunks_exact(metric.width()).map(one).collect()).collect::<Vec<Vec<f64>>>(),
        );
    }
    if common.json {
        let mut rows = Vec::new();
        for (metric, by_system) in metrics.iter().zip(&scores) {
            let signature = metric.for_sentences().signature(reference_count(references), "");
            for (system, scores) in systems.iter().zip(by_system) {
                rows.push(json!({"system": system.file, "metric": metric.name(), "signature": signature, "scores": scores}));
            }
        }
        return Ok(format!("{}\n", serde_json::Value::from(rows)));
    }
    let mut out = String::from("system\tsegment");
    for metric in metrics {
        let _ = write!(out, "\t{}", metric.name());
    }
    out.push('\n');
    for (s, system) in systems.iter().enumerate() {
        for segment in 0..system.lines.len() {
            let _ = write!(out, "{}\t{segment}", system.file);
            for by_system in &scores {
                let _ = write!(out, "\t{:.*}", args.judging.width, by_system[s][segment]);
            }
            out.push('\n');
        }
    }
    Ok(out)
}
