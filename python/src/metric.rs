//! Metrics on texts, and significance tests.

use crate::call::{short, work, wrong};
use luthier::{
    core::{Error, Progress},
    metric::{
        self as metrics, Hypothesis, Scratch, Tokenizer,
        significance::{Question, Test, Verdict, compare_while, totals},
    },
};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::{prelude::*, pybacked::PyBackedStr};

/// Number of segments between two looks for an interrupt.
const CHUNK: usize = 1 << 14;

/// A metric with its settings.
#[pyclass(frozen, module = "luthier._luthier")]
pub(crate) struct Metric(metrics::Metric);

fn refused(error: &metrics::Error) -> Error {
    Error::new(error.to_string())
}

/// Tests systems until an interrupt.
fn tested(
    metric: &metrics::Metric,
    systems: &[&[f32]],
    question: Question,
    progress: Progress<'_>,
) -> luthier::Result<Vec<Verdict>> {
    let mut polled = Ok(());
    let verdicts = compare_while(metric, systems, question, &mut || {
        polled = progress.poll();
        polled.is_ok()
    });
    polled.map(|()| verdicts.unwrap_or_default())
}

impl Metric {
    /// Statistics of all segments.
    fn stats(
        &self,
        py: Python<'_>,
        hypotheses: &[PyBackedStr],
        references: &[Vec<PyBackedStr>],
        threads: Option<usize>,
    ) -> PyResult<Vec<f32>> {
        work(py, threads, None, |progress| {
            if let Some(wrong) = references.iter().position(|r| r.len() != hypotheses.len()) {
                let (n, found) = (hypotheses.len(), references[wrong].len());
                return Err(Error::new(format!(
                    "{n} hypotheses, but references[{wrong}] has {found}; expected references[j][i], the \
                     j-th reference of hypothesis i"
                )));
            }
            let mut stats = Vec::with_capacity(self.0.width() * hypotheses.len());
            let starts = (0..hypotheses.len().max(1)).step_by(CHUNK);
            for start in starts {
                let range = start..(start + CHUNK).min(hypotheses.len());
                let some: Vec<&[PyBackedStr]> = references.iter().map(|r| &r[range.clone()]).collect();
                stats.extend(self.0.segment_stats(&hypotheses[range], &some).map_err(|e| refused(&e))?);
                progress.count("segments", stats.len() / self.0.width(), hypotheses.len())?;
            }
            Ok(stats)
        })
    }
}

#[pymethods]
impl Metric {
    /// Parses a metric; BLEU does not tokenise unless the metric says so, or else with 13a.
    #[new]
    #[pyo3(signature = (spec, tokenize="none"))]
    fn new(spec: &str, tokenize: &str) -> PyResult<Self> {
        let parsed = Tokenizer::parse(tokenize).and_then(|t| metrics::Metric::parse(spec, t));
        parsed.map(Metric).map_err(|e| wrong(e.to_string()))
    }

    fn name(&self) -> String {
        self.0.name()
    }

    fn spec(&self) -> String {
        self.0.to_string()
    }

    /// The metric with the settings for single sentences.
    fn for_sentences(&self) -> Self {
        Metric(self.0.for_sentences())
    }

    #[pyo3(signature = (references=None, test=""))]
    fn signature(&self, references: Option<usize>, test: &str) -> String {
        self.0.signature(references, test)
    }

    /// Summed statistics of a text.
    #[pyo3(signature = (hypotheses, references, threads=None))]
    fn totals(
        &self,
        py: Python<'_>,
        hypotheses: Vec<PyBackedStr>,
        references: Vec<Vec<PyBackedStr>>,
        threads: Option<usize>,
    ) -> PyResult<Vec<f64>> {
        let stats = self.stats(py, &hypotheses, &references, threads)?;
        Ok(totals(&self.0, &stats))
    }

    /// Summed statistics of a text, and mean and half the width of the 95 % interval of its score over resamples.
    fn totals_and_interval(
        &self,
        py: Python<'_>,
        hypotheses: Vec<PyBackedStr>,
        references: Vec<Vec<PyBackedStr>>,
        samples: usize,
        threads: Option<usize>,
    ) -> PyResult<(Vec<f64>, f64, f64)> {
        let stats = self.stats(py, &hypotheses, &references, threads)?;
        let question = Question { samples, ..Question::new(Test::Bootstrap) };
        let verdict = work(py, threads, None, |progress| tested(&self.0, &[&stats], question, progress))?[0];
        Ok((totals(&self.0, &stats), verdict.mean, verdict.interval))
    }

    /// Statistics of one sentence.
    fn sentence(&self, hypothesis: PyBackedStr, references: Vec<PyBackedStr>) -> PyResult<Vec<f64>> {
        short(|| {
            let mut scratch = Scratch::default();
            if references.is_empty() {
                return Err(Error::new(format!("{} needs references", self.0.name())));
            }
            let references: Vec<&str> = references.iter().map(|r| &**r).collect();
            let prepared = self.0.prepare(&references, &mut scratch);
            let mut out = vec![0.0; self.0.width()];
            let hypothesis = Hypothesis { text: &hypothesis, columns: &[] };
            self.0.stats(&prepared, hypothesis, &mut scratch, &mut out);
            Ok(out.into_iter().map(f64::from).collect())
        })
    }

    /// Scores of all sentences of a text.
    #[pyo3(signature = (hypotheses, references, threads=None))]
    fn sentences<'py>(
        &self,
        py: Python<'py>,
        hypotheses: Vec<PyBackedStr>,
        references: Vec<Vec<PyBackedStr>>,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let stats = self.stats(py, &hypotheses, &references, threads)?;
        let mut wide = Vec::new();
        let score = |row: &[f32]| {
            wide.clear();
            wide.extend(row.iter().map(|&x| f64::from(x)));
            self.0.display_score(self.0.score(&wide))
        };
        let scores: Vec<f64> = stats.chunks_exact(self.0.width().max(1)).map(score).collect();
        Ok(scores.into_pyarray(py))
    }

    /// Score of every hypothesis against every reference, as a matrix.
    #[pyo3(signature = (hypotheses, references, threads=None))]
    fn pairwise<'py>(
        &self,
        py: Python<'py>,
        hypotheses: Vec<PyBackedStr>,
        references: Vec<PyBackedStr>,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        use rayon::prelude::*;
        let (rows, width) = (hypotheses.len(), references.len());
        let by_reference: Vec<Vec<f64>> = work(py, threads, None, |progress| {
            let column = |reference: &PyBackedStr| {
                progress.poll()?;
                let mut scratch = Scratch::default();
                let prepared = self.0.prepare(&[&**reference], &mut scratch);
                let mut out = vec![0.0; self.0.width()];
                let score = |text: &PyBackedStr| {
                    self.0.stats(&prepared, Hypothesis { text, columns: &[] }, &mut scratch, &mut out);
                    let wide: Vec<f64> = out.iter().map(|&x| f64::from(x)).collect();
                    self.0.display_score(self.0.score(&wide))
                };
                Ok(hypotheses.iter().map(score).collect())
            };
            references.par_iter().map(column).collect()
        })?;
        let at = |i: usize| by_reference[i % width][i / width];
        let scores: Vec<f64> = (0..rows * width).map(at).collect();
        scores.into_pyarray(py).reshape([rows, width])
    }

    /// Score of summed statistics, error rates positive.
    fn score(&self, totals: Vec<f64>) -> f64 {
        self.0.display_score(self.0.score(&totals))
    }

    /// Smoothed n-gram precisions of BLEU in per cent, and the brevity penalty.
    fn precisions(&self, totals: Vec<f64>) -> Option<(Vec<f64>, f64)> {
        self.0.as_bleu().map(|bleu| bleu.parts(&totals))
    }

    /// Precisions, brevity penalty and lengths of BLEU in sacreBLEU's form.
    fn details(&self, totals: Vec<f64>) -> Option<String> {
        self.0.details(&totals)
    }
}

/// Tests systems against a baseline; returns score, difference, mean, interval and p-value of each, and the signature.
#[pyfunction]
#[pyo3(signature = (metric, systems, references, test, samples=None, seed=None, threads=None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments")]
#[expect(clippy::type_complexity, reason = "a tuple for Python")]
pub(crate) fn compare(
    py: Python<'_>,
    metric: &Metric,
    systems: Vec<Vec<PyBackedStr>>,
    references: Vec<Vec<PyBackedStr>>,
    test: &str,
    samples: Option<usize>,
    seed: Option<u64>,
    threads: Option<usize>,
) -> PyResult<(Vec<(f64, f64, f64, f64, Option<f64>)>, String)> {
    let test = match test {
        "bootstrap" => Test::Bootstrap,
        "randomization" => Test::Randomization,
        other => return Err(wrong(format!("test is '{other}', expected 'bootstrap' or 'randomization'"))),
    };
    let usual = Question::new(test);
    let question =
        Question { samples: samples.unwrap_or(usual.samples), seed: seed.unwrap_or(usual.seed), ..usual };
    if question.samples == 0 {
        return Err(wrong("samples is 0, expected at least 1"));
    }
    let stats: Vec<Vec<f32>> =
        systems.iter().map(|s| metric.stats(py, s, &references, threads)).collect::<PyResult<_>>()?;
    let slices: Vec<&[f32]> = stats.iter().map(Vec::as_slice).collect();
    let verdicts = work(py, threads, None, |progress| tested(&metric.0, &slices, question, progress))?;
    let rows = verdicts.iter().map(|v| (v.score, v.delta, v.mean, v.interval, v.p_value)).collect();
    Ok((rows, metric.0.signature(Some(references.len()), &question.signature())))
}
