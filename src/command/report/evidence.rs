//! Sections of the report that need n-best lists: runs that were tuned on the same data choose from the same lists,
//! so that their scores, significance, error surfaces and sentences can be compared.

use super::{Args, Run, round};
use crate::{
    command::read_references,
    lists::{own_references, read_rows, reference_file},
};
use luthier::{
    core::{Error, FeatureKey, Names, Result, Weights},
    io::{
        nbest::{Options, Rows},
        text::{self, by_segment},
    },
    metric::{
        Metric, SentenceSmoothing,
        significance::{Question, Test, Verdict, compare},
    },
    optim::{Direction, Walker as _},
    tune::{
        Candidates, Judge, SMALL, columns, lists,
        mert::{Flat, ListWalker, Smoothing, Surface},
        oracle,
    },
};
use rayon::prelude::*;
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// N-best lists and references, with the runs that are compared on them.
pub(super) struct Evidence {
    /// Origin of the lists, for the page.
    origin: String,
    /// Candidates of each segment.
    lists: Vec<Arc<Candidates>>,
    /// Names of the features.
    names: Names,
    /// References of each segment.
    references: Vec<Vec<String>>,
    /// Source text, one line per segment.
    sources: Option<Vec<String>>,
    /// Signature of the metric.
    signature: String,
    /// Indices of the runs that choose from the lists.
    runs: Vec<usize>,
    /// Common prefix of the names of the runs.
    name: String,
}

/// A system that is compared: the best weights of a run, or the initial weights.
struct System<'a> {
    /// Name on the page.
    name: String,
    /// Index of the run; `None` for the initial weights.
    run: Option<usize>,
    /// Weights that candidates are chosen with.
    weights: &'a Weights,
    /// Index of the chosen candidate of each segment.
    chosen: Vec<usize>,
}

/// Returns the digests of the files that a run has read in a role.
fn digests<'a>(run: &'a Run, role: &'a str) -> Vec<&'a str> {
    run.view.inputs_of(role).map(|f| f.digest.as_str()).collect()
}

/// Returns the paths of the files that a run has read in a role.
fn paths(run: &Run, role: &str) -> Vec<PathBuf> {
    run.view.inputs_of(role).map(|f| PathBuf::from(&f.path)).collect()
}

/// Groups the runs that can choose from the same lists: those with the same text, references and features.
fn groups(runs: &[Run]) -> Vec<Vec<usize>> {
    let common = |run: &Run| ["ref", "source", "nbest"].map(|key| digests(run, key).join(" "));
    let model = |run: &Run| {
        let keys =
            ["search.table", "search.lm", "search.dense", "search.sparse", "table", "lm0", "dense", "sparse"];
        keys.map(|key| run.view.setting(key).unwrap_or_default().to_owned())
    };
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (r, run) in runs.iter().enumerate() {
        let same = |g: &&mut Vec<usize>| {
            let other = &runs[g[0]];
            common(other) == common(run) && model(other) == model(run)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(r),
            None => groups.push(vec![r]),
        }
    }
    groups
}

/// Returns the common prefix of names, cut at the last separator.
fn beginning(names: &[&str]) -> String {
    let first: Vec<char> = names.first().map_or_else(Vec::new, |n| n.chars().collect());
    let same = |n: usize| names.iter().all(|name| name.chars().take(n).eq(first[..n].iter().copied()));
    let long = (0..=first.len()).rev().find(|&n| same(n)).unwrap_or(0);
    let text: String = first[..long].iter().collect();
    let end = if long == first.len() { text.len() } else { text.rfind(['.', '/', '-', '_']).unwrap_or(0) };
    text[..end].to_owned()
}

impl Evidence {
    /// Returns one evidence for all runs if lists are given with `--nbest`, else one for each group of runs with
    /// lists; and the errors of groups without.
    pub(super) fn gather(runs: &[Run], metric: &Metric, args: &Args) -> (Vec<Self>, Vec<Error>) {
        let all = if args.lists.nbest.is_empty() { groups(runs) } else { vec![(0..runs.len()).collect()] };
        let (mut found, mut wrong) = (Vec::new(), Vec::new());
        for group in all {
            match Self::of(runs, group, metric, args) {
                Ok(evidence) => found.push(evidence),
                Err(e) => wrong.push(e),
            }
        }
        (found, wrong)
    }

    /// Returns the evidence of a group of runs. Fails if lists or references are missing, or are not those of the runs.
    fn of(runs: &[Run], chosen: Vec<usize>, metric: &Metric, args: &Args) -> Result<Self> {
        let first = &runs[chosen[0]];
        let (rows, origin) = if args.lists.nbest.is_empty() {
            Self::own_lists(runs, &chosen)?
        } else {
            let files: Vec<String> = args.lists.nbest.iter().map(|p| p.display().to_string()).collect();
            (args.lists.read_silently()?, files.join(", "))
        };
        let own = args.lists.nbest.is_empty();
        let reference_paths = if args.references.is_empty() {
            if !digests(first, "moses-scores").is_empty() && digests(first, "ref").is_empty() {
                return Err(Error::new(
                    "runs that were tuned on statistics of Moses' extractor have no references",
                ));
            }
            paths(first, "ref")
        } else {
            args.references.clone()
        };
        // Lists can hold the references, too.
        let lists_read = paths(first, "nbest");
        let within = args.references.is_empty()
            && !reference_paths.is_empty()
            && reference_paths.iter().all(|path| lists_read.contains(path));
        let files_read = if within { own_references(&rows) } else { read_references(&reference_paths) }
            .map_err(|e| if args.references.is_empty() { e.hint("give them with --ref") } else { e })?;
        let now: Vec<&str> = files_read.iter().map(|f| f.digest.as_str()).collect();
        if (own || args.references.is_empty()) && now != digests(first, "ref") {
            return Err(Error::in_file(
                reference_file(&files_read),
                "is not the file that the runs have read",
            ));
        }
        let files = files_read;
        crate::lists::check_references(&files, metric)?;
        let allow_missing = own || args.lists.allow_missing;
        let references = crate::lists::references_of(&files, &rows, allow_missing)?;
        let source = args.source.clone().or_else(|| paths(first, "source").pop().filter(|_| own));
        let sources = match source {
            Some(path) if args.source.is_some() || path.exists() => Some(text::read_lines(&path)?.lines),
            _ => None,
        };
        if let Some(lines) = sources.as_ref().filter(|s| s.len() != references.len()) {
            return Err(Error::new(format!(
                "the source has {} lines, but the lists have {} segments",
                lines.len(),
                references.len()
            )));
        }
        let weighed = |r: &usize| rows.names.keys().iter().any(|&k| runs[*r].best.contains(k));
        if let Some(&r) = chosen.iter().find(|r| !weighed(r)) {
            let run = runs[r].view.path.display().to_string();
            return Err(Error::in_file(run, "has no weight for any feature of the lists")
                .hint("weights and n-best list must use the same feature names"));
        }
        let columns = columns(&rows, Some(metric));
        let mut judge = Judge::new(metric, &references, reference_file(&files));
        judge.allow_missing = allow_missing;
        let lists = lists(&rows, &columns, Some(judge))?.into_iter().map(Arc::new).collect();
        let signature = metric.signature(Some(files.len()), "");
        let references =
            by_segment(&files)?.iter().map(|r| r.iter().map(ToString::to_string).collect()).collect();
        let names: Vec<&str> = chosen.iter().map(|&r| runs[r].name.as_str()).collect();
        let name = beginning(&names);
        Ok(Evidence { origin, lists, names: rows.names, references, sources, signature, runs: chosen, name })
    }

    /// Returns the lists that runs have saved, merged, or else those that they were given, with their origin. Fails if
    /// there are none.
    fn own_lists(runs: &[Run], chosen: &[usize]) -> Result<(Rows, String)> {
        let mut files: Vec<PathBuf> = Vec::new();
        let mut saved = 0;
        for run in chosen.iter().map(|&r| &runs[r]) {
            let before = files.len();
            files.extend(run.view.lists());
            saved += usize::from(files.len() > before);
        }
        let mut options = Options {
            dialect: Some(luthier::io::nbest::Dialect::Bars),
            per_source: None,
            ..Options::default()
        };
        let mut origin = format!("saved by {saved} of {} runs, merged", chosen.len());
        if files.is_empty() {
            files =
                chosen.iter().map(|&r| paths(&runs[r], "nbest")).find(|f| !f.is_empty()).unwrap_or_default();
            if files.is_empty() {
                return Err(
                    Error::new("the runs have saved no lists").hint("give lists with --nbest and --ref")
                );
            }
            if files.iter().any(|f| f.to_string_lossy().contains('=') && !f.exists()) {
                return Err(Error::new("the lists of the runs have features from --score-file")
                    .hint("give the same --nbest, --score-file and --ref again"));
            }
            options = runs[chosen[0]]
                .view
                .spec
                .as_ref()
                .map_or_else(Options::default, |s| s.nbest_options.options());
            origin = files.iter().map(|f| f.display().to_string()).collect::<Vec<_>>().join(", ");
        }
        let paths: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
        let mut rows = read_rows(&paths, &options)?;
        let numbered = runs[chosen[0]].view.spec.as_ref().is_none_or(|s| !s.nbest_options.allow_missing);
        if saved == 0 && numbered {
            rows.count_from_zero();
        }
        Ok((rows, origin))
    }

    /// Returns the systems that are compared, with their choices: the initial weights, and the best weights of each
    /// run.
    fn systems<'a>(&self, runs: &'a [Run]) -> Vec<System<'a>> {
        let first = runs[self.runs[0]].initial.as_ref().map(|w| System {
            name: "initial".to_owned(),
            run: None,
            weights: w,
            chosen: Vec::new(),
        });
        let tuned = self.runs.iter().map(|&r| System {
            name: runs[r].name.clone(),
            run: Some(r),
            weights: &runs[r].best,
            chosen: Vec::new(),
        });
        let mut systems: Vec<System<'_>> = first.into_iter().chain(tuned).collect();
        systems.par_iter_mut().for_each(|s| s.chosen = self.choose(s.weights));
        systems
    }

    /// Returns the index of the best candidate of each segment under some weights; among equal scores, the first.
    fn choose(&self, weights: &Weights) -> Vec<usize> {
        let mut dense = Vec::new();
        if let Some(list) = self.lists.first() {
            weights.gather(&list.columns, &mut dense);
        }
        self.lists.iter().map(|list| list.best(&dense, weights).unwrap_or(0)).collect()
    }

    /// Returns the statistics of chosen candidates, segment after segment; zeros for segments without candidates.
    fn stats(&self, chosen: &[usize], width: usize) -> Vec<f32> {
        let one = |(list, &i): (&Arc<Candidates>, &usize)| {
            if list.k == 0 { vec![0.0; width] } else { list.stats_of(list.class[i]).to_vec() }
        };
        self.lists.iter().zip(chosen).flat_map(one).collect()
    }

    /// Returns the data of the page, with at most `most` sentences.
    pub(super) fn json(&self, runs: &[Run], metric: &Metric, most: usize) -> Value {
        let systems = self.systems(runs);
        let width = metric.width();
        let stats: Vec<Vec<f32>> = systems.iter().map(|s| self.stats(&s.chosen, width)).collect();
        let total = |stats: &[f32]| luthier::metric::significance::totals(metric, stats);
        let best = oracle(&self.lists, metric, false, 1);
        let worst = oracle(&self.lists, metric, true, 1);
        let shown: Vec<Value> = systems
            .iter()
            .zip(&stats)
            .map(|(s, stats)| {
                let total = total(stats);
                json!({
                    "name": s.name, "run": s.run, "score": round(metric.display_score(metric.score(&total))),
                    "length": metric.length_ratio(&total).map(round),
                })
            })
            .collect();
        let (features, sentences) = self.sentences(&systems, &best.chosen, metric, most);
        let weights: Vec<Vec<f64>> = systems
            .iter()
            .map(|s| features.iter().map(|f| round(s.weights.get(FeatureKey::of(f)))).collect())
            .collect();
        json!({
            "name": self.name, "origin": self.origin, "segments": self.lists.len(), "candidates": self.lists.iter().map(|l| l.k).sum::<usize>(),
            "signature": self.signature, "systems": shown,
            "oracle": round(metric.display_score(best.score)), "anti": round(metric.display_score(worst.score)),
            "matrix": matrix(metric, &stats), "surfaces": self.surfaces(&systems, metric),
            "features": features, "weights": weights, "sentences": sentences,
        })
    }

    /// Returns feature names, and the `most` sentences on which systems differ most, with the choices of each system
    /// and their features.
    fn sentences(
        &self,
        systems: &[System<'_>],
        oracle: &[usize],
        metric: &Metric,
        most: usize,
    ) -> (Vec<String>, Vec<Value>) {
        let score = |list: &Candidates, i: usize| {
            metric.display_score(
                metric.sentence_score(list.stats_of(list.class[i]), SentenceSmoothing::default()),
            )
        };
        let spread = |s: usize| {
            let list = &self.lists[s];
            let scores = systems.iter().map(|x| score(list, x.chosen[s]));
            let (low, high) =
                scores.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
            high - low
        };
        let mut some: Vec<usize> = (0..self.lists.len()).filter(|&s| self.lists[s].k > 0).collect();
        if some.len() > most {
            some.sort_by(|&a, &b| spread(b).total_cmp(&spread(a)).then(a.cmp(&b)));
            some.truncate(most);
            some.sort_unstable();
        }
        let mut features: Vec<String> = Vec::new();
        if let Some(list) = self.lists.first() {
            features.extend(
                list.columns.keys().iter().map(|&k| self.names.get(k).unwrap_or_default().to_owned()),
            );
        }
        let dense = features.len();
        let mut place = rustc_hash::FxHashMap::default();
        for (i, name) in features.iter().enumerate() {
            place.insert(FeatureKey::of(name), i);
        }
        let mut sentences = Vec::new();
        for s in some {
            let list = &self.lists[s];
            let mut picked: Vec<usize> = Vec::new();
            let mut pick = |i: usize| {
                picked.iter().position(|&p| p == i).unwrap_or_else(|| {
                    picked.push(i);
                    picked.len() - 1
                })
            };
            let picks: Vec<usize> = systems.iter().map(|x| pick(x.chosen[s])).collect();
            let best = pick(oracle[s]);
            let candidates: Vec<Value> = picked
                .iter()
                .map(|&i| {
                    let mut values: Vec<(usize, f64)> = Vec::new();
                    for (key, value) in list.features(i) {
                        let at = *place.entry(key).or_insert_with(|| {
                            features.push(self.names.get(key).unwrap_or_default().to_owned());
                            features.len() - 1
                        });
                        // Of the sparse features, only those with a weight: there can be thousands.
                        if at < dense || systems.iter().any(|x| x.weights.get(key) != 0.0) {
                            values.push((at, round(value)));
                        }
                    }
                    json!([list.text(i), round(score(list, i)), values])
                })
                .collect();
            let source = self.sources.as_ref().map(|lines| &lines[s]);
            sentences.push(json!({
                "id": s, "source": source, "refs": self.references.get(s), "picks": picks, "oracle": best, "candidates": candidates,
                "size": list.k,
            }));
        }
        (features, sentences)
    }

    /// Returns the error surface along each dense feature, through the weights of each system.
    fn surfaces(&self, systems: &[System<'_>], metric: &Metric) -> Vec<Value> {
        let Some(list) = self.lists.first() else { return Vec::new() };
        let columns = list.columns.clone();
        if columns.keys().len() > SMALL || self.lists.iter().all(|l| l.k == 0) {
            return Vec::new();
        }
        let flat = Arc::new(Flat::new(&self.lists));
        let one = |system: &System<'_>| {
            let mut point = Vec::new();
            system.weights.gather(&columns, &mut point);
            let mut walker = ListWalker::over(&flat, &self.lists, metric, system.weights, &point);
            let here = walker.score();
            // In the order of the weights file.
            let mut axes: Vec<usize> = (0..point.len()).collect();
            axes.sort_by_key(|&axis| system.weights.position(columns.keys()[axis]).unwrap_or(usize::MAX));
            let axes = axes.into_iter().map(|axis| {
                let surface = walker.surface(Direction::Axis(axis)).clone();
                let (name, drawn) = (self.names.get(columns.keys()[axis]), draw(&surface, here, metric));
                json!({"feature": name, "weight": round(point[axis]), "drawn": drawn})
            });
            Value::Array(axes.collect())
        };
        systems.iter().map(one).collect()
    }
}

/// Returns differences and p-values of all pairs of systems, by the paired bootstrap.
fn matrix(metric: &Metric, stats: &[Vec<f32>]) -> Value {
    let question = Question { test: Test::Bootstrap, samples: 1000, seed: 12345 };
    let all: Vec<&[f32]> = stats.iter().map(Vec::as_slice).collect();
    let equal = |i: usize, j: usize| i != j && stats[i] == stats[j];
    let row = |base: usize| {
        let mut order: Vec<&[f32]> = vec![all[base]];
        order.extend(all.iter().enumerate().filter(|(i, _)| *i != base).map(|(_, s)| *s));
        let mut verdicts = compare(metric, &order, question);
        let own = verdicts.remove(0);
        verdicts.insert(base, own);
        // For identical choices no resampled difference exceeds the observed one, 0: p would be the smallest value.
        for (i, v) in verdicts.iter_mut().enumerate().filter(|(i, _)| equal(base, *i)) {
            v.p_value = (i != base).then_some(1.0);
        }
        verdicts
    };
    let rows: Vec<Vec<Verdict>> = (0..all.len()).map(row).collect();
    let cell = |v: &Verdict| json!([round(v.delta), v.p_value.map(round)]);
    let rows: Vec<Vec<Value>> = rows.iter().map(|r| r.iter().map(cell).collect()).collect();
    json!({"test": "paired bootstrap, 1000 samples, seed 12345", "rows": rows})
}

/// Returns an error surface in a size for the page: 160 pieces with the lowest and the highest score of each, over
/// about the middle 90 % of the boundaries, and the plateaus between the 40 boundaries around the current weight.
fn draw(surface: &Surface, here: f64, metric: &Metric) -> Value {
    const PIECES: usize = 160;
    const NEAR: usize = 20;
    let smoothed = surface.smoothed(Smoothing::average(3));
    let n = surface.bounds.len();
    if n == 0 {
        return json!({"plateaus": 1, "here": round(metric.display_score(here))});
    }
    // Exclude boundaries that are very far away.
    let quarter = surface.bounds[n - 1 - n / 4] - surface.bounds[n / 4];
    let low = surface.bounds[n / 20].max(surface.bounds[n / 4] - 3.0 * quarter).min(0.0);
    let high = surface.bounds[n - 1 - n / 20].min(surface.bounds[n - 1 - n / 4] + 3.0 * quarter).max(0.0);
    let margin = 0.05 * (high - low).max(1e-6);
    let (low, high) = (low - margin, high + margin);
    let at = |x: f64| surface.bounds.partition_point(|&b| b <= x);
    let step = (high - low) / PIECES as f64;
    let (mut bottom, mut top, mut middle) = (Vec::new(), Vec::new(), Vec::new());
    for p in 0..PIECES {
        let x = low + step * p as f64;
        let (from, to) = (at(x), at(x + step));
        let seen = || surface.scores[from..=to].iter().copied();
        let (a, b) = (seen().fold(f64::INFINITY, f64::min), seen().fold(f64::NEG_INFINITY, f64::max));
        let mean = smoothed[from..=to].iter().sum::<f64>() / (to - from + 1) as f64;
        bottom.push(round(metric.display_score(a)));
        top.push(round(metric.display_score(b)));
        middle.push(round(metric.display_score(mean)));
    }
    let zero = at(0.0);
    let (from, to) = (zero.saturating_sub(NEAR), (zero + NEAR).min(n));
    let numbers = |some: &[f64]| some.iter().map(|&x| round(metric.display_score(x))).collect::<Vec<f64>>();
    let peak = surface.peak(here, Smoothing::NONE, (f64::NEG_INFINITY, f64::INFINITY));
    let best = surface.peak(here, Smoothing::average(3), (f64::NEG_INFINITY, f64::INFINITY));
    json!({
        "plateaus": surface.scores.len(), "here": round(metric.display_score(here)), "from": round(low), "to": round(high),
        "low": bottom, "high": top, "smooth": middle, "step": round(peak.step), "gain": round(metric.display_score(peak.gain)), "smooth_step": round(best.step),
        "near": {
            "bounds": surface.bounds[from..to].iter().map(|&x| round(x)).collect::<Vec<f64>>(),
            "scores": numbers(&surface.scores[from..=to]), "smooth": numbers(&smoothed[from..=to]),
        },
    })
}
