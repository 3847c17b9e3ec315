//! N-best lists from arrays and from files, reranking, and weights.

use crate::call::{raise, short, work, wrong};
use luthier::{
    NBest, Weights,
    core::{Error, FeatureKey},
    io::{
        AtomicFile,
        nbest::{Columns, Dialect, Options, Rows, To, Writer},
    },
    metric::Metric,
    optim::{Direction, Walker},
    tune::{
        Candidates, Choice, columns,
        mert::{ListWalker, Smooth, Smoothing},
        oracle_with,
    },
};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::{prelude::*, pybacked::PyBackedStr, types::PyString};
use std::{path::PathBuf, sync::Arc};

/// Names and values of weights, as they come from and go to Python.
pub(crate) type Pairs = Vec<(String, f64)>;

/// Returns weights by name.
pub(crate) fn weights_of(pairs: &[(String, f64)]) -> PyResult<Weights> {
    Weights::of(pairs.iter().map(|(n, v)| (n.as_str(), *v))).map_err(|e| raise(&e))
}

/// Returns names and values of weights.
pub(crate) fn pairs_of(weights: &Weights) -> Pairs {
    weights.iter().map(|(n, v)| (n.to_owned(), v)).collect()
}

/// Parses a metric for lists, whose texts are not tokenised unless the metric says so.
pub(crate) fn metric_of(spec: &str) -> PyResult<Metric> {
    spec.parse::<Metric>().map_err(|e| wrong(e.to_string()))
}

/// Reads a weights file.
#[pyfunction]
pub(crate) fn read_weights(path: PathBuf) -> PyResult<Pairs> {
    short(|| Ok(pairs_of(&luthier::io::read_weights(&path)?)))
}

/// Writes a weights file.
#[pyfunction]
pub(crate) fn write_weights(path: PathBuf, pairs: Pairs, comments: Vec<String>) -> PyResult<()> {
    let weights = weights_of(&pairs)?;
    short(|| AtomicFile::write_all_to(&path, weights.to_text(&comments).as_bytes()))
}

/// Lists in the making, column by column.
#[pyclass(module = "luthier._luthier")]
pub(crate) struct Builder {
    rows: Rows,
    references: Vec<Vec<String>>,
}

#[pymethods]
impl Builder {
    /// Begins lists with a number of candidates per segment, and room for some features and scores.
    #[new]
    fn new(sizes: PyReadonlyArray1<'_, i64>, features: usize, scores: usize) -> PyResult<Self> {
        let sizes: Vec<usize> = sizes.as_array().iter().map(|&n| n.max(0) as usize).collect();
        let rows = short(|| Rows::of_sizes(&sizes, features, scores))?;
        Ok(Builder { rows, references: Vec::new() })
    }

    fn feature(&mut self, name: &str, values: PyReadonlyArray1<'_, f64>) -> PyResult<()> {
        short(|| self.rows.fill_feature(name, values.as_array().iter().copied()))
    }

    fn score(&mut self, name: &str, values: PyReadonlyArray1<'_, f64>) -> PyResult<()> {
        short(|| self.rows.fill_score(name, values.as_array().iter().copied()))
    }

    /// Sets the texts of all candidates, any iterable of strings.
    fn texts(&mut self, texts: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut filler = self.rows.texts();
        for (i, text) in texts.try_iter()?.enumerate() {
            let text = text?;
            match text.extract::<PyBackedStr>() {
                Ok(text) => filler.push(&text),
                Err(_) => return Err(not_text(i, &text)),
            }
        }
        filler.finish().map_err(|e| raise(&e))
    }

    /// Sets the names of the segments.
    fn ids(&mut self, ids: Vec<String>) -> PyResult<()> {
        short(|| self.rows.name_all(ids))
    }

    /// Sets the groups of the segments, such as documents.
    fn groups(&mut self, groups: Vec<String>) -> PyResult<()> {
        short(|| self.rows.group_all(groups))
    }

    /// Adds a reference of every segment.
    fn references(&mut self, texts: Vec<String>) {
        self.references.push(texts);
    }

    fn finish(&mut self) -> PyResult<Lists> {
        let rows = std::mem::take(&mut self.rows);
        let references = std::mem::take(&mut self.references);
        short(|| {
            let mut lists = NBest::from_rows(rows)?;
            for texts in references {
                lists = lists.with_reference_texts(texts)?;
            }
            Ok(Lists(Arc::new(lists)))
        })
    }
}

fn not_text(i: usize, found: &Bound<'_, PyAny>) -> PyErr {
    if found.is_instance_of::<PyString>() {
        return wrong(format!("text {i} has a character that cannot be encoded; remove it"));
    }
    let kind = found.get_type().name().map_or_else(|_| "something else".to_owned(), |n| n.to_string());
    wrong(format!("text {i} is of type {kind}, expected str; replace missing texts by an empty string"))
}

/// N-best lists of a text.
#[pyclass(frozen, module = "luthier._luthier")]
#[derive(Clone)]
pub(crate) struct Lists(pub(crate) Arc<NBest>);

/// Lists with the statistics of a metric, for questions about all candidates in their order.
struct Judged {
    lists: Vec<Arc<Candidates>>,
    metric: Metric,
}

impl Lists {
    fn judged(&self, metric: &Metric) -> luthier::Result<Judged> {
        let lists = self.0.judged(metric, false)?.into_iter().map(Arc::new).collect();
        Ok(Judged { lists, metric: metric.clone() })
    }
}

#[pymethods]
impl Lists {
    /// Reads files in any format of the command line.
    #[staticmethod]
    #[pyo3(signature = (paths, references, *, format=None, per_source=None, id=None, text=None, reference=None, group=None, features=Vec::new(), ignore=Vec::new(), missing=Vec::new(), threads=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments")]
    fn read(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        references: Vec<PathBuf>,
        format: Option<&str>,
        per_source: Option<u32>,
        id: Option<String>,
        text: Option<String>,
        reference: Option<String>,
        group: Option<String>,
        features: Vec<String>,
        ignore: Vec<String>,
        missing: Pairs,
        threads: Option<usize>,
    ) -> PyResult<Self> {
        let dialect = match format {
            None => None,
            Some(name) => Some(dialect(name)?),
        };
        let columns = Columns { id, text, reference, group, features, ignore };
        let options = Options { dialect, per_source, columns, missing };
        work(py, threads, None, |_| {
            let lists = NBest::read_with(&paths, &options)?;
            let lists = if references.is_empty() { lists } else { lists.with_references(&references)? };
            Ok(Lists(Arc::new(lists)))
        })
    }

    /// What the columns of the files were read as, a line per file.
    fn usage(&self) -> Vec<String> {
        let files = self.0.rows().files.iter();
        files.filter_map(|f| Some(format!("{}: {}", f.name, f.usage.as_ref()?))).collect()
    }

    /// Writes the lists to a file.
    #[pyo3(signature = (path, format=None))]
    fn write(&self, py: Python<'_>, path: PathBuf, format: Option<&str>) -> PyResult<()> {
        let to = match format {
            None => To::of_path(&path),
            Some("moses") => To::Moses,
            Some("jsonl") => To::Json,
            Some("tsv") => To::Tsv,
            Some(other) => {
                return Err(wrong(format!("format is '{other}', expected 'moses', 'jsonl' or 'tsv'")));
            }
        };
        let rows = self.0.rows();
        work(py, Some(1), None, |_| {
            let mut file = AtomicFile::create(&path)?;
            let mut writer =
                Writer::new(rows, to, rows.has_totals(), &mut file, &path.display().to_string())?;
            for row in rows.by_segment(true)?.into_iter().flatten() {
                writer.write(row as usize, None)?;
            }
            drop(writer);
            file.commit()
        })
    }

    /// Number of candidates of each segment.
    fn sizes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let groups = self.0.rows().by_segment(true).map_err(|e| raise(&e))?;
        let sizes: Vec<i64> = groups.iter().map(|g| g.len().cast_signed() as i64).collect();
        Ok(sizes.into_pyarray(py))
    }

    fn size(&self) -> usize {
        self.0.len()
    }

    fn feature_names(&self) -> Vec<String> {
        self.0.features().to_vec()
    }

    fn score_names(&self) -> Vec<String> {
        self.0.rows().score_names.names().to_vec()
    }

    fn reference_count(&self) -> usize {
        self.0.reference_count()
    }

    fn ids(&self) -> PyResult<Vec<String>> {
        let rows = self.0.rows();
        let groups = rows.by_segment(true).map_err(|e| raise(&e))?;
        Ok((0..groups.len() as u32).map(|s| rows.id(s)).collect())
    }

    /// Document of each segment; `None` without any.
    fn groups(&self) -> PyResult<Option<Vec<String>>> {
        let groups = self.0.rows().groups().map_err(|e| raise(&e))?;
        Ok(groups.map(|all| all.into_iter().map(str::to_owned).collect()))
    }

    /// Texts of all candidates, a list per segment.
    fn texts(&self) -> PyResult<Vec<Vec<String>>> {
        let rows = self.0.rows();
        let groups = rows.by_segment(true).map_err(|e| raise(&e))?;
        let text = |&row: &u32| rows.text(row as usize).to_owned();
        Ok(groups.iter().map(|g| g.iter().map(text).collect()).collect())
    }

    /// Texts of one segment.
    fn segment_texts(&self, segment: usize) -> PyResult<Vec<String>> {
        let rows = self.0.rows();
        let groups = rows.by_segment(true).map_err(|e| raise(&e))?;
        let Some(group) = groups.get(segment) else { return Ok(Vec::new()) };
        Ok(group.iter().map(|&row| rows.text(row as usize).to_owned()).collect())
    }

    /// References of all segments, a list per reference.
    fn reference_texts(&self) -> Vec<Vec<String>> {
        self.0.reference_lines().map(<[String]>::to_vec).collect()
    }

    /// Values of a feature, a score or `total` for every candidate, segment after segment; NaN where there is none.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let rows = self.0.rows();
        let groups = rows.by_segment(true).map_err(|e| raise(&e))?;
        let value = |row: u32| rows.column(row as usize, name).unwrap_or(f64::NAN);
        let values: Vec<f64> = groups.into_iter().flatten().map(value).collect();
        if values.iter().all(|v| v.is_nan()) {
            let names = [self.feature_names(), self.score_names()].concat().join(", ");
            return Err(wrong(format!("no feature or score is named {name}; the lists have {names}")));
        }
        Ok(values.into_pyarray(py))
    }

    /// Index of the best candidate of each segment, and its text.
    #[pyo3(signature = (weights, threads=None))]
    fn rerank<'py>(
        &self,
        py: Python<'py>,
        weights: Pairs,
        threads: Option<usize>,
    ) -> PyResult<(Bound<'py, PyArray1<i64>>, Vec<String>)> {
        let weights = weights_of(&weights)?;
        let (places, texts) = work(py, threads, None, |_| {
            let places = self.0.rerank_indices(&weights)?;
            let texts: Vec<String> = self.0.rerank(&weights)?.into_iter().map(str::to_owned).collect();
            Ok((places, texts))
        })?;
        let places: Vec<i64> = places.into_iter().map(|p| p.cast_signed() as i64).collect();
        Ok((places.into_pyarray(py), texts))
    }

    /// Model score of every candidate, segment after segment.
    fn model_scores<'py>(&self, py: Python<'py>, weights: Pairs) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let weights = weights_of(&weights)?;
        let scores = work(py, Some(1), None, |_| self.0.model_scores(&weights))?;
        Ok(scores.into_pyarray(py))
    }

    /// Corpus score of the best candidates under some weights, with its signature.
    #[pyo3(signature = (weights, metric, threads=None))]
    fn corpus_score(
        &self,
        py: Python<'_>,
        weights: Pairs,
        metric: &str,
        threads: Option<usize>,
    ) -> PyResult<(f64, String)> {
        let (weights, metric) = (weights_of(&weights)?, metric_of(metric)?);
        work(py, threads, None, |_| self.0.score(&weights, &metric))
    }

    /// Expected utility of every candidate, segment after segment, and whether less is better.
    #[pyo3(signature = (utility, weights, gamma, threads=None, progress=None))]
    fn expected_utilities<'py>(
        &self,
        py: Python<'py>,
        utility: &str,
        weights: Option<Pairs>,
        gamma: f64,
        threads: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, bool)> {
        let metric = metric_of(utility)?;
        let weights = weights.map(|pairs| weights_of(&pairs)).transpose()?;
        let all = work(py, threads, progress, |progress| {
            self.0.expected_utilities(&metric, weights.as_ref(), gamma, progress)
        })?;
        Ok((all.into_pyarray(py), metric.is_error()))
    }

    /// Best and worst choice of one candidate per segment, and the score of the first candidates.
    #[pyo3(signature = (metric, seed=1, threads=None))]
    #[expect(clippy::type_complexity, reason = "a tuple for Python")]
    fn oracle<'py>(
        &self,
        py: Python<'py>,
        metric: &str,
        seed: u64,
        threads: Option<usize>,
    ) -> PyResult<((f64, Bound<'py, PyArray1<i64>>), (f64, Bound<'py, PyArray1<i64>>), f64, String)> {
        let metric = metric_of(metric)?;
        let (best, worst, first) = work(py, threads, None, |progress| {
            let Judged { lists, metric } = self.judged(&metric)?;
            let first = luthier::tune::first_score(&lists, &metric);
            let find = |worst| oracle_with(&lists, &metric, (worst, seed), progress);
            Ok((find(false)?, find(true)?, first))
        })?;
        let shown = |choice: Choice| {
            let chosen: Vec<i64> = choice.chosen.iter().map(|&c| c.cast_signed() as i64).collect();
            (metric.display_score(choice.score), chosen.into_pyarray(py))
        };
        let signature = metric.signature(Some(self.0.reference_count()), "");
        Ok((shown(best), shown(worst), metric.display_score(first), signature))
    }

    /// Corpus score along a line: bounds, scores, smoothed scores, and step and score of the peak.
    #[pyo3(signature = (weights, direction, metric, smooth, window, threads=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments")]
    #[expect(clippy::type_complexity, reason = "a tuple for Python")]
    fn surface<'py>(
        &self,
        py: Python<'py>,
        weights: Pairs,
        direction: Pairs,
        metric: &str,
        smooth: &str,
        window: u32,
        threads: Option<usize>,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>, f64, f64)>
    {
        let (weights, direction, metric) =
            (weights_of(&weights)?, weights_of(&direction)?, metric_of(metric)?);
        let smooth = match smooth {
            "none" => Smooth::None,
            "average" => Smooth::Average,
            "max" => Smooth::Max,
            other => return Err(wrong(format!("smooth is '{other}', expected 'none', 'average' or 'max'"))),
        };
        let smoothing = Smoothing { smooth, window };
        if window.is_multiple_of(2) {
            return Err(wrong(format!("window is {window}, expected an odd number")));
        }
        let (surface, smoothed, peak, score) = work(py, threads, None, |_| {
            let columns = columns(self.0.rows(), Some(&metric));
            let unknown = |name: &str| columns.position(FeatureKey::of(name)).is_none();
            if let Some((name, _)) = direction.iter().find(|(name, _)| unknown(name)) {
                let names = self.0.features().join(", ");
                return Err(
                    Error::new(format!("no feature is named {name}")).hint(format!("the lists have {names}"))
                );
            }
            let Judged { lists, metric } = self.judged(&metric)?;
            let (mut point, mut vector) = (Vec::new(), Vec::new());
            weights.gather(&columns, &mut point);
            direction.gather(&columns, &mut vector);
            let mut walker = ListWalker::new(&lists, &metric, &weights, &point);
            let here = walker.score();
            let surface = walker.surface(Direction::Vector(&vector)).clone();
            let peak = surface.peak(here, smoothing, (f64::NEG_INFINITY, f64::INFINITY));
            let smoothed = surface.smoothed(smoothing);
            let at = surface.bounds.partition_point(|&x| x <= peak.step);
            let score = surface.scores[at];
            Ok((surface, smoothed, peak.step, score))
        })?;
        let shown =
            |scores: Vec<f64>| -> Vec<f64> { scores.into_iter().map(|s| metric.display_score(s)).collect() };
        Ok((
            surface.bounds.into_pyarray(py),
            shown(surface.scores).into_pyarray(py),
            shown(smoothed).into_pyarray(py),
            peak,
            metric.display_score(score),
        ))
    }
}

fn dialect(name: &str) -> PyResult<Dialect> {
    let known = Dialect::NAMES.iter().find(|(n, _)| *n == name);
    known.map(|k| k.1).ok_or_else(|| {
        let names = Dialect::NAMES.iter().map(|n| n.0).collect::<Vec<_>>().join(", ");
        wrong(format!("format is '{name}', expected one of {names}; leave it out to detect the format"))
    })
}
