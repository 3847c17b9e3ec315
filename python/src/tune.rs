//! Tuning on lists, and objectives of algorithms.

use crate::{
    call::{in_python, work},
    lists::{Lists, Pairs, metric_of, weights_of},
    recipe::Recipe,
};
use pyo3::prelude::*;
use serde_json::json;
use std::path::PathBuf;

/// Tunes; returns everything as JSON, in which numbers are exact.
#[pyfunction]
#[pyo3(signature = (lists, recipe, *, metric, seed, initial=None, select=None, test=None, holdout=None, folds=None, bootstrap=None, run=None, threads=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments")]
pub(crate) fn tune(
    py: Python<'_>,
    lists: &Lists,
    recipe: &Recipe,
    metric: &str,
    seed: u64,
    initial: Option<Pairs>,
    select: Option<&Lists>,
    test: Option<&Lists>,
    holdout: Option<f64>,
    folds: Option<u32>,
    bootstrap: Option<u32>,
    run: Option<PathBuf>,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let parsed = metric_of(metric)?;
    let initial = initial.map(|pairs| weights_of(&pairs)).transpose()?;
    let tuned = work(py, threads, progress, |progress| {
        let mut tuning = luthier::tune(&lists.0, &recipe.0).metric(metric)?.seed(seed).progress(progress);
        if let Some(initial) = &initial {
            tuning = tuning.initial(initial);
        }
        if let Some(select) = select {
            tuning = tuning.select(&select.0);
        }
        if let Some(test) = test {
            tuning = tuning.test(&test.0);
        }
        if let Some(share) = holdout {
            tuning = tuning.hold_out(share);
        }
        if let Some(folds) = folds {
            tuning = tuning.folds(folds);
        }
        if let Some(samples) = bootstrap {
            tuning = tuning.bootstrap(samples);
        }
        if let Some(run) = &run {
            tuning = tuning.run_dir(run);
        }
        tuning.run()
    })?;
    let history: Vec<_> = tuned
        .history
        .iter()
        .map(|e| {
            let mut event = serde_json::to_value(e).unwrap_or_default();
            for name in ["score", "select", "test", "surrogate", "guess"] {
                if let Some(score) = event.get(name).and_then(serde_json::Value::as_f64) {
                    event[name] = json!(parsed.display_score(score));
                }
            }
            event
        })
        .collect();
    let bound = tuned.certificate.as_ref().map(|c| serde_json::to_value(c).unwrap_or_default());
    let weights: Vec<(&str, f64)> = tuned.weights.iter().collect();
    let answer = json!({
        "weights": weights,
        "metric": parsed.name(),
        "score": tuned.score,
        "initial": tuned.initial,
        "test": tuned.test,
        "initial_test": tuned.initial_test,
        "held_out": tuned.held_out,
        "stability": tuned.stability,
        "length_ratio": tuned.length_ratio,
        "iteration": tuned.iteration,
        "stop": tuned.stop.text(),
        "remarks": tuned.remarks.iter().map(|r| in_python(r)).collect::<Vec<_>>(),
        "certificate": bound,
        "signature": tuned.signature,
        "recipe": tuned.recipe,
        "history": history,
    });
    Ok(answer.to_string())
}

/// Value and gradient of an algorithm's objective at some weights.
#[pyfunction]
#[pyo3(signature = (lists, recipe, weights, metric, seed, threads=None))]
pub(crate) fn loss(
    py: Python<'_>,
    lists: &Lists,
    recipe: &Recipe,
    weights: Pairs,
    metric: &str,
    seed: u64,
    threads: Option<usize>,
) -> PyResult<(f64, Pairs)> {
    let (weights, metric) = (weights_of(&weights)?, metric_of(metric)?);
    work(py, threads, None, |_| lists.0.loss(&recipe.0, &weights, &metric, seed))
}
