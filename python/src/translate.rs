//! Translation with a model directory, and training of one.

use crate::{
    call::{short, work},
    lists::{Pairs, pairs_of, weights_of},
};
use luthier::{
    Training,
    training::{LanguageModels, Settings},
};
use pyo3::{prelude::*, pybacked::PyBackedStr};
use std::path::PathBuf;

/// A translation model with weights.
#[pyclass(frozen, module = "luthier._luthier")]
pub(crate) struct Translator(luthier::Translator);

#[pymethods]
impl Translator {
    #[new]
    #[pyo3(signature = (path, weights=None))]
    fn new(py: Python<'_>, path: PathBuf, weights: Option<Pairs>) -> PyResult<Self> {
        let weights = weights.map(|pairs| weights_of(&pairs)).transpose()?;
        let open = || {
            let translator = luthier::Translator::open(&path)?;
            match &weights {
                Some(weights) => translator.with_weights(weights),
                None => Ok(translator),
            }
        };
        py.detach(|| short(open)).map(Translator)
    }

    fn weights(&self) -> Pairs {
        pairs_of(self.0.weights())
    }

    #[pyo3(signature = (sentences, threads=None, progress=None))]
    fn translate(
        &self,
        py: Python<'_>,
        sentences: Vec<PyBackedStr>,
        threads: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Vec<String>> {
        work(py, threads, progress, |progress| self.0.translate_with(&sentences, progress))
    }

    /// Text, score and features of the best translations of each sentence.
    #[pyo3(signature = (sentences, k, threads=None, progress=None))]
    fn nbest(
        &self,
        py: Python<'_>,
        sentences: Vec<PyBackedStr>,
        k: usize,
        threads: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Vec<Vec<(String, f64, Pairs)>>> {
        let lists = work(py, threads, progress, |progress| self.0.nbest_with(&sentences, k, progress))?;
        let all = lists.into_iter().map(|l| l.into_iter().map(|t| (t.text, t.score, t.features)).collect());
        Ok(all.collect())
    }
}

/// Trains a model directory from parallel text.
#[pyfunction]
#[pyo3(signature = (source, target, model, *, hiero=false, order=None, threads=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments")]
pub(crate) fn train(
    py: Python<'_>,
    source: PathBuf,
    target: PathBuf,
    model: PathBuf,
    hiero: bool,
    order: Option<u8>,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<()> {
    let mut settings =
        if hiero { Settings::hiero(luthier::train::RuleLimits::default()) } else { Settings::default() };
    if let Some(order) = order {
        settings.lm = LanguageModels::Estimate { order };
    }
    work(py, threads, progress, |progress| {
        Training::new(&source, &target, &model).settings(settings).progress(progress).run().map(drop)
    })
}
