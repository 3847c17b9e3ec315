//! Results of an experiment as Markdown, TSV and JSON.

use super::{
    judge::{self, Judged},
    plan::{Row, Significance, TableSpec, Value},
    work::{Experiment, Finished},
};
use crate::plot;
use luthier::{
    core::{Error, Result},
    io::AtomicFile,
    metric::significance::{Question, Test, compare},
};
use serde_json::{Value as Json, json};
use std::{collections::BTreeMap, fmt::Write as _, path::Path};

/// Mean and standard deviation over the replicas of a group.
#[derive(Clone, Copy)]
struct Mean {
    mean: f64,
    /// Sample standard deviation across replicas; `None` for one replica.
    spread: Option<f64>,
}

impl Mean {
    fn of(values: &[f64]) -> Option<Self> {
        let n = values.len() as f64;
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
        Some(Mean { mean, spread: (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt()) })
    }

    fn json(self) -> Json {
        json!({"mean": self.mean, "spread": self.spread})
    }
}

/// Comparison of a group with the baseline on a test set.
#[derive(Clone, Copy)]
struct Against {
    /// Difference of the mean scores, group minus baseline.
    delta: f64,
    /// p-value of the difference.
    p: f64,
}

impl Against {
    fn significant(self) -> bool {
        self.p < 0.05
    }
}

/// Results of an experiment.
pub(super) struct Results<'a> {
    pub(super) experiment: &'a Experiment<'a>,
    /// Duration of this run of the experiment in seconds.
    seconds: f64,
    /// Signature of the metric and the significance test.
    signature: String,
    /// Comparisons with the baseline, by group and test set; `None` for the baseline itself and without results.
    against: Vec<Vec<Option<Against>>>,
    /// Claims of the file, judged; `None` for those whose cells were not run.
    claims: Vec<Option<Judged>>,
}

impl<'a> Results<'a> {
    /// Compares all groups with the baseline of their system.
    pub(super) fn new(experiment: &'a Experiment<'a>, seconds: f64) -> Self {
        let plan = experiment.plan;
        let (test, samples, short) = match plan.significance {
            Significance::Bootstrap => (Test::Bootstrap, 1000, "bs"),
            Significance::Randomization => (Test::Randomization, 10_000, "ar"),
        };
        let question = Question { test, samples, seed: 12345 };
        let signature = format!(
            "{}|{}",
            experiment.metric.name(),
            experiment.metric.signature(Some(1), &format!("{short}:{samples}|seed:{}", question.seed))
        );
        let mut against = Vec::new();
        for (g, group) in experiment.groups.iter().enumerate() {
            let base = experiment
                .groups
                .iter()
                .position(|b| b.system == group.system && plan.algorithms[b.algorithm].name == plan.baseline);
            let one = |test: usize| {
                let base = base.filter(|b| *b != g)?;
                let sides = [&experiment.finished[g], &experiment.finished[base]];
                let scores =
                    sides.map(|s| s.iter().map(|f| f.result.tests[test].score).collect::<Vec<f64>>());
                let [Some(mine), Some(its)] = scores.map(|s| Mean::of(&s)) else { return None };
                let [ours, theirs] = [mean_stats(sides[0], test)?, mean_stats(sides[1], test)?];
                let found = compare(&experiment.metric, &[&theirs, &ours], question);
                // For identical outputs no resampled difference exceeds the observed one, 0: p would be the smallest
                // value.
                let p = if ours == theirs { 1.0 } else { found[1].p_value? };
                Some(Against { delta: mine.mean - its.mean, p })
            };
            against.push((0..plan.text.test.len()).map(one).collect());
        }
        let mut results = Results { experiment, seconds, signature, against, claims: Vec::new() };
        results.claims = plan.claims.iter().map(|c| judge::judge(&results, c)).collect();
        results
    }

    /// Returns a value for each replica of a group that has it.
    fn values(&self, group: usize, value: &Value) -> Vec<f64> {
        self.numbers(group, value).into_values().collect()
    }

    /// Returns a value of a group by the number of the replica, from 0; without replicas that do not have it.
    pub(super) fn numbers(&self, group: usize, value: &Value) -> BTreeMap<u32, f64> {
        let metric = &self.experiment.tuned_for[group];
        let one = |f: &Finished| -> Option<f64> {
            let r = &f.result;
            match value {
                Value::Dev => Some(r.dev),
                Value::Select => r.select,
                Value::Test(i) => r.tests.get(*i).map(|t| t.score),
                Value::Length(i) => r.tests.get(*i).and_then(|t| t.length),
                Value::Features => Some(r.features as f64),
                Value::Iteration => Some(r.iteration as f64),
                Value::Seconds => Some(r.seconds),
                Value::SecondsPerIteration => Some(r.seconds / r.iterations.max(1) as f64),
                Value::WeightedPhrasePairs => r.weighted_phrase_pairs,
                Value::Logged(name, at) => {
                    logged(f, name, *at).map(|x| if is_score(name) { metric.display_score(x) } else { x })
                }
            }
        };
        self.experiment.finished[group].iter().filter_map(|f| Some((f.replica, one(f)?))).collect()
    }

    /// Formats a value of a group: mean ± standard deviation, with * if the difference from the baseline is
    /// significant.
    fn cell_text(&self, group: usize, value: &Value) -> String {
        let Some(mean) = Mean::of(&self.values(group, value)) else { return "–".to_owned() };
        let star = match value {
            Value::Test(i)
                if self.against[group].get(*i).copied().flatten().is_some_and(Against::significant) =>
            {
                "*"
            }
            _ => "",
        };
        match mean.spread {
            Some(spread) => format!("{}{star} ± {}", value.format(mean.mean), value.format(spread)),
            None => format!("{}{star}", value.format(mean.mean)),
        }
    }

    /// Formats the number of iterations of a group, with a mark if `--iterations` or `--quick` has truncated it.
    fn iterations(&self, group: usize) -> String {
        let finished = &self.experiment.finished[group];
        let Some(most) = finished.iter().map(|f| f.result.iterations).max() else { return "–".to_owned() };
        let stopped = finished.iter().any(|f| f.result.stop == "iterations");
        match self.experiment.groups[group].cut.filter(|_| stopped) {
            Some(planned) => format!("{most} of {planned}, truncated"),
            None => most.to_string(),
        }
    }

    /// Returns the rows of a table: their names, and the groups that they refer to.
    fn rows<'t>(&self, table: &'t TableSpec) -> Vec<(String, Option<usize>, Option<&'t Row>)> {
        let plan = self.experiment.plan;
        let groups = || self.experiment.groups.iter().enumerate();
        let named = |system: usize, label: String| {
            if plan.systems.len() > 1 { format!("{}, {label}", plan.systems[system].name) } else { label }
        };
        if table.rows.is_empty() {
            return groups()
                .map(|(g, group)| (named(group.system, plan.label(group)), Some(g), None))
                .collect();
        }
        let mut rows = Vec::new();
        for row in &table.rows {
            let Some(cell) = &row.cell else {
                rows.push((row.name.clone().unwrap_or_default(), None, Some(row)));
                continue;
            };
            let ours = |system: usize| row.system.as_ref().is_none_or(|s| plan.systems[system].name == *s);
            let found: Vec<_> = groups().filter(|(_, g)| ours(g.system) && plan.matches(g, cell)).collect();
            for (g, group) in &found {
                let name = match &row.name {
                    Some(name) if found.len() == 1 => name.clone(),
                    _ => named(group.system, plan.label(group)),
                };
                rows.push((name, Some(*g), Some(row)));
            }
        }
        rows
    }

    /// Formats a table, with the paper's numbers beside ours.
    fn table(&self, table: &TableSpec) -> String {
        let papers = table.rows.iter().any(|r| !r.paper.is_empty());
        let tests = table.columns.iter().any(|c| c.1 == "test");
        let mut head = vec![String::new()];
        for (name, _) in &table.columns {
            if papers {
                head.push(format!("{name}, paper"));
            }
            head.push(if papers { "ours".to_owned() } else { name.clone() });
        }
        if tests {
            head.extend([format!("against {}", self.experiment.plan.baseline), "p".to_owned()]);
        }
        head.push("iterations".to_owned());
        let mut rows = vec![head];
        for (name, group, row) in self.rows(table) {
            let mut cells = vec![name];
            for (i, (_, value)) in table.columns.iter().enumerate() {
                if papers {
                    cells.push(row.and_then(|r| r.paper.get(i)).cloned().unwrap_or_default());
                }
                let own = row.and_then(|r| r.values.as_ref()).map_or(value, |v| &v[i]);
                cells.push(
                    group.zip(Value::parse(own)).map_or_else(String::new, |(g, v)| self.cell_text(g, &v)),
                );
            }
            if tests {
                let against = group.and_then(|g| self.against[g][0]);
                cells.push(against.map_or_else(String::new, |a| format!("{:+.2}", a.delta)));
                cells.push(against.map_or_else(String::new, |a| format!("{:.4}", a.p)));
            }
            cells.push(group.map_or_else(String::new, |g| self.iterations(g)));
            rows.push(cells);
        }
        format!("## {}\n\n{}", table.title, pipes(&rows))
    }

    /// Formats the table of all cells with all values.
    fn overview(&self) -> String {
        let plan = self.experiment.plan;
        let mut columns = vec![("dev".to_owned(), Value::Dev)];
        if self.experiment.groups.iter().any(|g| g.select.is_some()) {
            columns.push(("select".to_owned(), Value::Select));
        }
        for (i, part) in plan.text.test.iter().enumerate() {
            columns.push((part.name(), Value::Test(i)));
            columns.push(("length".to_owned(), Value::Length(i)));
        }
        columns.push(("features".to_owned(), Value::Features));
        columns.push(("s".to_owned(), Value::Seconds));
        let names = ["system", "cell", "replicas"].map(str::to_owned).into_iter();
        let rest = [format!("against {}", plan.baseline), "p".to_owned(), "iterations".to_owned()];
        let mut rows = vec![names.chain(columns.iter().map(|c| c.0.clone())).chain(rest).collect::<Vec<_>>()];
        for (g, group) in self.experiment.groups.iter().enumerate() {
            let replicas = self.experiment.finished[g].len();
            let mut cells =
                vec![plan.systems[group.system].name.clone(), plan.label(group), replicas.to_string()];
            cells.extend(columns.iter().map(|c| self.cell_text(g, &c.1)));
            let against = self.against[g][0];
            cells.push(against.map_or_else(String::new, |a| format!("{:+.2}", a.delta)));
            cells.push(against.map_or_else(String::new, |a| format!("{:.4}", a.p)));
            cells.push(self.iterations(g));
            rows.push(cells);
        }
        format!("## All cells\n\n{}", pipes(&rows))
    }

    /// Writes each figure as an SVG plot and a TSV table, and returns their Markdown with a table of selected
    /// iterations.
    fn figures(&self, out: &Path) -> Result<String> {
        let plan = self.experiment.plan;
        let mut text = String::new();
        for (f, figure) in plan.figures.iter().enumerate() {
            let groups: Vec<usize> = (0..self.experiment.groups.len())
                .filter(|g| figure.cells.iter().any(|c| plan.matches(&self.experiment.groups[*g], c)))
                .collect();
            let _ = write!(text, "## {}\n\n", figure.title);
            for value in &figure.values {
                let curves: Vec<plot::Curve> = groups.iter().map(|&g| self.curve(g, value)).collect();
                if curves.iter().all(|c| c.points.is_empty()) {
                    let _ = write!(text, "No cell has `{value}` in its log.\n\n");
                    continue;
                }
                let last =
                    curves.iter().filter_map(|c| c.points.last()).map(|p| p.0 as usize).max().unwrap_or(0);
                let (name, title) =
                    (format!("figure{}-{value}", f + 1), format!("{}: {value}", figure.title));
                let svg = plot::curves(&curves, &title, "iteration");
                AtomicFile::write_all_to(&out.join(format!("{name}.svg")), svg.as_bytes())?;
                let head =
                    std::iter::once("iteration".to_owned()).chain(curves.iter().map(|c| c.name.clone()));
                let mut rows = vec![head.collect::<Vec<_>>()];
                for i in 0..=last {
                    let at = |c: &plot::Curve| {
                        let point = c.points.iter().find(|p| p.0 as usize == i);
                        point.map_or_else(String::new, |p| format!("{:.2}", p.1))
                    };
                    rows.push(std::iter::once(i.to_string()).chain(curves.iter().map(at)).collect());
                }
                let tsv: String = rows.iter().map(|r| r.join("\t") + "\n").collect();
                AtomicFile::write_all_to(&out.join(format!("{name}.tsv")), tsv.as_bytes())?;
                let few = |i: usize| i < 4 || i.is_multiple_of(5) || i == last;
                let rows = rows.into_iter().enumerate().filter(|(i, _)| *i == 0 || few(i - 1)).map(|r| r.1);
                let rows: Vec<Vec<String>> = rows.collect();
                let _ = write!(
                    text,
                    "![{title}]({name}.svg)\n\n`{value}` of the log (all iterations in {name}.tsv):\n\n{}\n",
                    pipes(&rows)
                );
            }
        }
        Ok(text)
    }

    /// Returns the learning curve of a group: the mean over replicas of a value of the log at each iteration.
    fn curve(&self, group: usize, value: &str) -> plot::Curve {
        let last = |f: &Finished| f.run.events.iter().map(|e| u64::from(e.iteration)).max().unwrap_or(0);
        let end = self.experiment.finished[group].iter().map(last).max().unwrap_or(0);
        let at = |i: u64| {
            let values = self.values(group, &Value::Logged(value.to_owned(), Some(i as u32)));
            Mean::of(&values).map(|m| (i as f64, m.mean))
        };
        let points = if self.experiment.finished[group].is_empty() {
            Vec::new()
        } else {
            (0..=end).filter_map(at).collect()
        };
        let plan = self.experiment.plan;
        let (system, label) = (
            &plan.systems[self.experiment.groups[group].system].name,
            plan.label(&self.experiment.groups[group]),
        );
        let name = if plan.systems.len() > 1 { format!("{system}, {label}") } else { label };
        plot::Curve { name, points }
    }

    /// Returns the results as Markdown, and writes the figures to `out`.
    pub(super) fn markdown(&self, out: &Path) -> Result<String> {
        let plan = self.experiment.plan;
        let mut text = format!("# {}\n\n", plan.title);
        if !plan.about.is_empty() {
            let _ = write!(text, "{}\n\n", plan.about.trim());
        }
        let test = match plan.significance {
            Significance::Bootstrap => "the paired bootstrap",
            Significance::Randomization => "approximate randomisation",
        };
        let corpus = match &plan.text.data {
            Some(data) => format!("text in {}", data.file_name().unwrap_or(data.as_os_str()).display()),
            None => format!("generated, {} training sentences", plan.text.generate.train),
        };
        let _ = write!(
            text,
            "Corpus: {corpus}. Differences are from {}, with the p-value of {test}; * is p < 0.05. Seeds start at {}; with several replicas, ± is the standard deviation across replicas.\nSignature: {}\n\n",
            plan.baseline, self.experiment.seed, self.signature
        );
        let mut others: Vec<(&str, String)> = Vec::new();
        for group in self.experiment.groups.iter().filter(|g| plan.metric_of(g) != plan.metric) {
            others.push((plan.metric_of(group), plan.label(group)));
        }
        others.dedup();
        for (metric, label) in others {
            let _ = write!(
                text,
                "Scores of {label} on dev, on the selection set and in its log are {metric}.\n\n"
            );
        }
        text += &judge::section(&plan.claims, &self.claims);
        for table in &plan.tables {
            text += &self.table(table);
            text.push('\n');
        }
        text += &self.figures(out)?;
        text += &self.overview();
        let tuning = self.experiment.finished.iter().flatten().fold(0.0, |s, f| s + f.result.seconds);
        let _ =
            write!(text, "\n{tuning:.0} s of tuning in all cells; this run took {:.0} s.\n", self.seconds);
        Ok(text)
    }

    /// Returns the results as TSV, one line per replica.
    pub(super) fn tsv(&self) -> String {
        let plan = self.experiment.plan;
        let mut text = String::from("system\tcell\treplica\tseed\tdev\tselect");
        for part in &plan.text.test {
            let _ = write!(text, "\t{0}\t{0} length", part.name());
        }
        text += "\titeration\titerations\tstop\tcut short of\tfeatures\tseconds\tmemory MB\n";
        let number = |x: Option<f64>| x.map_or_else(String::new, |x| x.to_string());
        for (group, finished) in self.experiment.groups.iter().zip(&self.experiment.finished) {
            for f in finished {
                let r = &f.result;
                let _ = write!(
                    text,
                    "{}\t{}\t{}\t{}\t{}\t{}",
                    plan.systems[group.system].name,
                    plan.label(group),
                    f.replica + 1,
                    r.seed,
                    r.dev,
                    number(r.select)
                );
                for t in &r.tests {
                    let _ = write!(text, "\t{}\t{}", t.score, number(t.length));
                }
                let cut =
                    group.cut.filter(|_| r.stop == "iterations").map_or_else(String::new, |c| c.to_string());
                let _ = writeln!(
                    text,
                    "\t{}\t{}\t{}\t{cut}\t{}\t{:.3}\t{}",
                    r.iteration,
                    r.iterations,
                    r.stop,
                    r.features,
                    r.seconds,
                    number(r.memory_mb)
                );
            }
        }
        text
    }

    /// Returns the results as JSON.
    pub(super) fn json(&self) -> Result<String> {
        let plan = self.experiment.plan;
        let mut cells = Vec::new();
        for (g, group) in self.experiment.groups.iter().enumerate() {
            let mean = |value: Value| Mean::of(&self.values(g, &value)).map(Mean::json);
            let tests: Vec<Json> = (0..plan.text.test.len())
                .map(|i| {
                    let against = self.against[g][i];
                    json!({
                        "text": plan.text.test[i].name(),
                        "score": mean(Value::Test(i)), "length": mean(Value::Length(i)),
                        "delta": against.map(|a| a.delta), "p_value": against.map(|a| a.p),
                    })
                })
                .collect();
            let finished = &self.experiment.finished[g];
            cells.push(json!({
                "system": plan.systems[group.system].name,
                "algorithm": plan.algorithms[group.algorithm].name,
                "settings": group.settings.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
                "replicas": finished.len(),
                "dev": mean(Value::Dev), "select": mean(Value::Select), "tests": tests,
                "iteration": mean(Value::Iteration),
                "iterations": Mean::of(&finished.iter().map(|f| f.result.iterations as f64).collect::<Vec<_>>()).map(Mean::json),
                "cut_short_of": group.cut.filter(|_| finished.iter().any(|f| f.result.stop == "iterations")),
                "features": mean(Value::Features), "seconds": mean(Value::Seconds),
                "runs": finished.iter().map(|f| &f.result).collect::<Vec<_>>(),
            }));
        }
        let all = json!({
            "title": plan.title, "baseline": plan.baseline, "seed": self.experiment.seed, "metric": self.experiment.metric.name(),
            "signature": self.signature, "seconds": self.seconds, "cells": cells,
            "claims": judge::json(&plan.claims, &self.claims),
        });
        serde_json::to_string(&all).map(|s| s + "\n").map_err(|e| Error::new(e.to_string()))
    }
}

/// Returns whether a value of the log is a score, not a ratio or a count.
fn is_score(name: &str) -> bool {
    ["score", "select", "test", "surrogate", "guess"].contains(&name)
}

/// Returns the statistics of each segment, averaged over replicas, so that a segment is one observation of the
/// significance test whatever the number of replicas.
fn mean_stats(finished: &[Finished], test: usize) -> Option<Vec<f32>> {
    let (first, n) = (finished.first()?, finished.len() as f32);
    let mut mean = vec![0f32; first.stats[test].len()];
    for f in finished {
        mean.iter_mut().zip(&f.stats[test]).for_each(|(m, x)| *m += x);
    }
    for m in &mut mean {
        *m /= n;
    }
    Some(mean)
}

/// Returns a value of the log at an iteration, or the last one; after the end of a run, its last value.
fn logged(f: &Finished, name: &str, at: Option<u32>) -> Option<f64> {
    let mut values = f.run.events.iter().rev().filter(|e| at.is_none_or(|at| e.iteration <= at));
    values.find_map(|e| e.number(name))
}

/// Formats rows as a Markdown table; columns of up to 60 characters are aligned.
pub(super) fn pipes(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |c: usize| rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0).clamp(3, 60);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (i, row) in rows.iter().enumerate() {
        let cell = |(c, w): (&String, &usize)| format!(" {:<w$} |", c.replace('|', "/"));
        let _ = writeln!(text, "|{}", row.iter().zip(&widths).map(cell).collect::<String>());
        if i == 0 {
            let _ = writeln!(
                text,
                "|{}",
                widths.iter().map(|w| format!(" {} |", "-".repeat(*w))).collect::<String>()
            );
        }
    }
    text
}
