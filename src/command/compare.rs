//! `luthier compare`.

use super::{Common, Done, score::Judging, write_out};
use crate::{
    hypotheses::{reference_count, statistics},
    table::Table,
    talk::Talk,
};
use luthier::{
    core::Error,
    metric::{
        Metric,
        significance::{Question, Test, Verdict, compare},
    },
};
use serde_json::json;
use std::{path::PathBuf, process::ExitCode};

/// Test whether systems differ significantly from a baseline.
///
/// With sacreBLEU's seed, which is the default, p-values equal sacreBLEU's. The exit code is 1 if no difference is
/// significant.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Baseline that the other systems are compared with.
    #[arg(long, value_name = "HYP", help_heading = "Input")]
    baseline: PathBuf,
    /// Systems to compare with the baseline.
    #[arg(required = true, value_name = "HYP")]
    systems: Vec<PathBuf>,
    #[command(flatten)]
    judging: Judging,
    /// Significance test.
    #[arg(long, value_enum, default_value_t, help_heading = "Test")]
    test: Test,
    /// Number of samples [default: 1000 for bootstrap, 10000 for randomization].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000), help_heading = "Test")]
    samples: Option<u32>,
    /// P-value below which a difference is significant.
    #[arg(long, default_value_t = 0.05, value_name = "P", value_parser = probability, help_heading = "Test")]
    alpha: f64,
}

fn probability(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|p| (0.0..=1.0).contains(p))
        .ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

impl Args {
    /// Two equal systems never differ more in a sample than they do, so their p-value is the smallest and means nothing.
    fn significant(&self, v: &Verdict) -> bool {
        v.delta != 0.0 && v.p_value.is_some_and(|p| p < self.alpha)
    }
}

pub(crate) fn run(args: &Args, common: &Common, talk: Talk) -> Done {
    let metrics = args.judging.metrics()?;
    let paths: Vec<PathBuf> = std::iter::once(&args.baseline).chain(&args.systems).cloned().collect();
    let (systems, references) = args.judging.read(&paths, &metrics, talk)?;
    let references = references.by_segment()?;
    let usual = Question::new(args.test);
    let question = Question {
        samples: args.samples.map_or(usual.samples, |n| n as usize),
        seed: common.seed.unwrap_or(usual.seed),
        ..usual
    };
    let mut results: Vec<(&Metric, Vec<Verdict>)> = Vec::new();
    for metric in &metrics {
        let stats = statistics(metric, &systems, &references)?;
        let stats: Vec<&[f32]> = stats.iter().map(Vec::as_slice).collect();
        results.push((metric, compare(metric, &stats, question)));
    }
    let names: Vec<&str> = systems.iter().map(|s| s.file.as_str()).collect();
    let count = reference_count(&references);
    let signature = |m: &Metric| m.signature(count, &question.signature());
    let text = if common.json {
        as_json(&names, &results, signature)?
    } else {
        as_table(args, &names, &results, signature)
    };
    write_out(None, text.as_bytes())?;
    let significant = results.iter().flat_map(|r| &r.1).any(|v| args.significant(v));
    Ok(if significant { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn as_json(
    names: &[&str],
    results: &[(&Metric, Vec<Verdict>)],
    signature: impl Fn(&Metric) -> String,
) -> Result<String, Error> {
    let entry = |name: &str, metric: &Metric, v: &Verdict| {
        json!({
            "system": name, "metric": metric.name(), "score": v.score, "delta": v.delta, "p_value": v.p_value,
            "mean": v.mean, "interval": v.interval, "signature": signature(metric),
        })
    };
    let (mut baseline, mut systems) = (Vec::new(), Vec::new());
    for (metric, verdicts) in results {
        baseline.push(entry(names[0], metric, &verdicts[0]));
        systems.extend(names.iter().zip(verdicts).skip(1).map(|(n, v)| entry(n, metric, v)));
    }
    let all = json!({"baseline": names[0], "baseline_scores": baseline, "systems": systems});
    serde_json::to_string(&all).map(|s| s + "\n").map_err(|e| Error::new(e.to_string()))
}

fn as_table(
    args: &Args,
    names: &[&str],
    results: &[(&Metric, Vec<Verdict>)],
    signature: impl Fn(&Metric) -> String,
) -> String {
    let w = args.judging.width;
    let mut out = String::new();
    for (metric, verdicts) in results {
        let mut table = Table::new("system");
        for column in [&metric.name(), "difference", "mean ± 95 %", "p"] {
            table.column(column);
        }
        for (name, v) in names.iter().zip(verdicts) {
            let spread = format!("{:.w$} ± {:.w$}", v.mean, v.interval);
            let (difference, p) = match v.p_value {
                Some(p) => {
                    let star = if args.significant(v) { "*" } else { " " };
                    (format!("{:+.w$}", v.delta), format!("{p:.4}{star}"))
                }
                None => ("baseline".to_owned(), String::new()),
            };
            table.row(name, vec![format!("{:.w$}", v.score), difference, spread, p]);
        }
        out += &format!("{table}{}|{}\n", metric.name(), signature(metric));
    }
    out
}
