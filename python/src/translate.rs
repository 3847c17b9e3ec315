//! Translation with a model directory, and training of one.

use crate::{
    call::{raise, short, work},
    lists::{Pairs, pairs_of, weights_of},
};
use luthier::{
    Training,
    core::Progress,
    text::Language,
    training::{LanguageModels, Languages, Parallel, Settings},
    translator::AlignedPhrase,
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

    /// The sentence as the model reads it, its translation, and the phrases of the translation.
    #[pyo3(signature = (sentence, options, progress=None))]
    fn explain(
        &self,
        py: Python<'_>,
        sentence: &str,
        options: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(String, String, Vec<Phrase>)> {
        let explain =
            |progress: Progress<'_>| self.0.explain(&self.0.decoder(), sentence, 1, options, progress);
        let found = work(py, Some(1), progress, explain)?;
        let text = found.nbest.into_iter().next().map(|t| t.text).unwrap_or_default();
        let phrase = |p: AlignedPhrase| {
            let options = p.options.into_iter().map(|o| (o.text, o.score, o.is_chosen, o.features));
            let places = AlignedPhrase::in_characters;
            (places(&found.source, &p.source), places(&text, &p.target), p.is_unknown, options.collect())
        };
        let phrases = found.phrases.into_iter().map(phrase).collect();
        Ok((found.source, text, phrases))
    }
}

/// Source and target ranges of a phrase, whether it is unknown, and its translations: text, score, whether chosen, features.
type Phrase = (Vec<[usize; 2]>, Vec<[usize; 2]>, bool, Vec<(String, f64, bool, Pairs)>);

/// Trains a model directory from parallel text, two files or with `corpus` one bilingual file of raw text, and returns the
/// figures of its stages as JSON.
#[pyfunction]
#[pyo3(signature = (
    source, target, model, *, corpus=None, raw=false, source_lang=None, target_lang=None, max_words=100, hiero=false,
    order=None, threads=None, progress=None
))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments")]
pub(crate) fn train(
    py: Python<'_>,
    source: Option<PathBuf>,
    target: Option<PathBuf>,
    model: PathBuf,
    corpus: Option<PathBuf>,
    raw: bool,
    source_lang: Option<&str>,
    target_lang: Option<&str>,
    max_words: u16,
    hiero: bool,
    order: Option<u8>,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let mut settings =
        if hiero { Settings::hiero(luthier::train::RuleLimits::default()) } else { Settings::default() };
    settings.max_words = max_words;
    if let Some(order) = order {
        settings.lm = LanguageModels::Estimate { order };
    }
    let given = [source_lang, target_lang];
    let parallel = match (source, target, corpus) {
        (Some(source), Some(target), None) => Parallel::Files(source, target),
        (None, None, Some(corpus)) if given.iter().all(Option::is_some) => Parallel::Bitext(corpus),
        (None, None, Some(_)) => {
            return Err(refused("corpus= needs both languages", "give source_lang= and target_lang="));
        }
        _ => {
            return Err(refused(
                "expected two files, or one bilingual file",
                "give the files of source and target, or corpus=",
            ));
        }
    };
    let bilingual = matches!(parallel, Parallel::Bitext(_));
    if raw || bilingual {
        let [source, target] = given.map(|code| code.map(|code| short(|| Language::new(code))).transpose());
        settings.raw = Some(Languages::choose([source?, target?], &parallel));
    } else if given.iter().any(Option::is_some) {
        return Err(refused(
            "source_lang= and target_lang= are for raw text",
            "set raw=True, or leave them out",
        ));
    }
    let trained = work(py, threads, progress, |progress| {
        Training::on(parallel, &model).settings(settings).progress(progress).run()
    })?;
    serde_json::to_string(&trained)
        .map_err(|e| refused(&format!("the figures of training cannot be written: {e}"), "report this"))
}

/// Returns an error about arguments.
fn refused(message: &str, hint: &str) -> PyErr {
    raise(&luthier::core::Error::new(message).hint(hint))
}
