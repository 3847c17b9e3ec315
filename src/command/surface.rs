//! `luthier surface`.

use super::{Common, Done, check_names, write_out};
use crate::{
    lists::{Judged, JudgedArgs},
    plot,
    talk::Talk,
};
use luthier::{
    core::{Error, FeatureKey, Local, Names},
    io::AtomicFile,
    metric::{Metric, edit_distance},
    optim::{Direction, Walker},
    tune::mert::{ListWalker, Smoothing, Surface},
};
use serde_json::{Value, json};
use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Exact score along a line in weight space, as MERT's line search sees it.
///
/// The columns `from` and `to` are steps along the direction, added to the given weights; the score is on the given lists.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    judged: JudgedArgs,
    /// Weights that the line passes through.
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    weights: PathBuf,
    /// Direction of the line: a feature's name, or a weights file.
    #[arg(long, value_name = "NAME|FILE", help_heading = "Input")]
    direction: String,
    #[command(flatten, next_help_heading = "Smoothing")]
    smoothing: Smoothing,
    /// Output file for a plot of the scores (SVG).
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    svg: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, common: &Common, talk: Talk) -> Done {
    super::check_json_output(common, args.svg.as_deref())?;
    let Judged { metric, rows, columns, lists, .. } = args.judged.read(false, talk)?;
    let weights = luthier::io::read_weights(&args.weights)?;
    check_names(&weights, &args.weights, &rows, Some(&metric), talk)?;
    let direction = direction(&args.direction, &columns, &rows.names)?;
    let mut point = Vec::new();
    weights.gather(&columns, &mut point);
    let mut walker = ListWalker::new(&lists, &metric, &weights, &point);
    let here = walker.score();
    let surface = walker.surface(Direction::Vector(&direction)).clone();
    let smoothing = args.smoothing;
    if let Some(path) = &args.svg {
        let title = format!("{} along {}", metric.name(), args.direction);
        AtomicFile::write_all_to(path, plot::surface(&surface, smoothing, &metric, &title).as_bytes())?;
    }
    let text = if common.json {
        as_json(&surface, smoothing, &metric, here)
    } else {
        as_tsv(&surface, smoothing, &metric)
    };
    write_out(None, text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// A feature's axis, or the vector in a file.
fn direction(text: &str, columns: &Local, names: &Names) -> Result<Vec<f64>, Error> {
    if let Some(axis) = columns.position(FeatureKey::of(text)) {
        let mut d = vec![0.0; columns.keys().len()];
        d[axis] = 1.0;
        return Ok(d);
    }
    if !Path::new(text).exists() {
        let named: Vec<&str> = columns.keys().iter().filter_map(|k| names.get(*k)).collect();
        let near = named.iter().find(|n| n.eq_ignore_ascii_case(text) || edit_distance(n, text) <= 1);
        let guess = near.map(|n| format!("; did you mean {n}?")).unwrap_or_default();
        let shown = named.iter().take(20).copied().collect::<Vec<_>>().join(", ");
        return Err(Error::new(format!(
            "--direction is `{text}`, which is neither a feature of the lists nor a file"
        ))
        .hint(format!("the features are {shown}{guess}")));
    }
    let mut d = Vec::new();
    luthier::io::read_weights(Path::new(text))?.gather(columns, &mut d);
    if d.iter().all(|x| *x == 0.0) {
        return Err(Error::in_file(text, "is 0 for all features of the lists, expected a direction"));
    }
    Ok(d)
}

fn as_tsv(surface: &Surface, smoothing: Smoothing, metric: &Metric) -> String {
    let mut out = String::from("from\tto\tscore");
    out += if smoothing.is_none() { "\n" } else { "\tsmoothed\n" };
    let smoothed = surface.smoothed(smoothing);
    for (i, &score) in surface.scores.iter().enumerate() {
        let (from, to) = surface.interval(i);
        let _ = write!(out, "{from}\t{to}\t{}", metric.display_score(score));
        if !smoothing.is_none() {
            let _ = write!(out, "\t{}", metric.display_score(smoothed[i]));
        }
        out.push('\n');
    }
    out
}

fn as_json(surface: &Surface, smoothing: Smoothing, metric: &Metric, here: f64) -> String {
    let finite = |x: f64| if x.is_finite() { json!(x) } else { Value::Null };
    let smoothed = surface.smoothed(smoothing);
    let interval = |i: usize| {
        let (from, to) = surface.interval(i);
        let mut v =
            json!({"from": finite(from), "to": finite(to), "score": metric.display_score(surface.scores[i])});
        if !smoothing.is_none() {
            v["smoothed"] = json!(metric.display_score(smoothed[i]));
        }
        v
    };
    let peak = surface.peak(here, smoothing, (f64::NEG_INFINITY, f64::INFINITY));
    let at = surface.bounds.partition_point(|&x| x <= peak.step);
    let mut best = interval(at);
    best["step"] = json!(peak.step);
    let all: Vec<Value> = (0..surface.scores.len()).map(interval).collect();
    format!("{}\n", json!({"start": {"score": metric.display_score(here)}, "best": best, "intervals": all}))
}
