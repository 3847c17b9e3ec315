//! Translation of text with a model directory.

use crate::{
    core::{FeatureKey, Progress, Result, Step, Weights},
    decode::{Decoder, FeatureSelection, Found, Limits, Model, ModelConfig, ModelDir, TranslationOption},
    decoder::{sparse_names, translations},
    io::{Meter, read_weights},
    text::{Prepared, Side, TextModel, is_placeholder},
};
use rayon::prelude::*;
use std::{
    ops::{ControlFlow, Range},
    path::Path,
};

/// A translation model with weights, ready to translate; may be shared by threads.
///
/// ```
/// use luthier::{Training, Translator, generate::{Generator, Part}};
/// # let dir = tempfile::tempdir().unwrap();
/// # let dir = dir.path();
///
/// // A small parallel text.
/// let (mut german, mut english, mut corpus) = (String::new(), String::new(), Generator::new(1));
/// for _ in 0..100 {
///     let pair = corpus.next(Part::Train, 1);
///     german += &format!("{}\n", pair.source.join(" "));
///     english += &format!("{}\n", pair.targets[0].join(" "));
/// }
/// std::fs::write(dir.join("train.de"), german).unwrap();
/// std::fs::write(dir.join("train.en"), english).unwrap();
///
/// Training::new(dir.join("train.de"), dir.join("train.en"), dir.join("model")).run()?;
/// let translator = Translator::open(dir.join("model"))?;
/// let translations = translator.translate(&["er schläft .", "unbekanntes"])?;
/// assert_eq!(translations[1], "unbekanntes"); // unknown words are passed through
///
/// let best = translator.nbest("er schläft .", 3)?;
/// assert_eq!(best[0].text, translations[0]);
/// assert!(best[0].score >= best[1].score);
/// assert!(best[0].features.iter().any(|(name, value)| name == "LM0" && *value < 0.0));
/// # Ok::<(), luthier::core::Error>(())
/// ```
pub struct Translator {
    model: Model,
    text: Option<TextModel>,
    config: ModelConfig,
    weights: Weights,
    limits: Limits,
}

/// A translation with its score and its features by name: an entry of an n-best list.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoredTranslation {
    /// The translation: raw text if the model translates raw text, else tokens separated by blanks.
    pub text: String,
    /// Model score, higher is better: weights times features, plus `fixed_score`.
    pub score: f64,
    /// Names and values of the features: all dense ones in the order of the model, then the sparse ones that occur.
    pub features: Vec<(String, f64)>,
    /// Part of the score that is not tuned, 0 or less: the penalty for words that are passed through.
    pub fixed_score: f64,
}

/// The best translations of a sentence with the phrases of the first one: the result of [`Translator::explain`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Explanation {
    /// The sentence as the model reads it: in normalised form if the model translates raw text, else as given.
    pub source: String,
    /// Translations that are distinct as tokens, best first.
    pub nbest: Vec<ScoredTranslation>,
    /// Phrases of the first translation, in the order of their first source words.
    pub phrases: Vec<AlignedPhrase>,
}

/// A phrase pair or a rule in a translation, with its place on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct AlignedPhrase {
    /// Ranges of bytes of the source words in the sentence, ascending; a rule with gaps has several.
    pub source: Vec<Range<usize>>,
    /// Ranges of bytes of the target words in the translation, ascending; empty if the source words are dropped.
    pub target: Vec<Range<usize>>,
    /// Whether the source word is unknown, so that it is copied or dropped; false for a protected span of raw text.
    pub is_unknown: bool,
    /// Translations of the source words that the search considered, best first. Their texts are raw text if the model
    /// translates raw text.
    pub options: Vec<TranslationOption>,
}

impl AlignedPhrase {
    /// Returns ranges of bytes of a text as ranges of characters (Unicode code points), start and end.
    pub fn in_characters(text: &str, ranges: &[Range<usize>]) -> Vec<[usize; 2]> {
        let at = |byte: usize| text[..byte].chars().count();
        ranges.iter().map(|r| [at(r.start), at(r.end)]).collect()
    }
}

impl Translator {
    /// Opens a model directory written by `luthier train`, `luthier import` or [`Training`](crate::Training), with
    /// its weights and its search limits. Fails if a file is missing or damaged, or if no feature of the model has a
    /// weight.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let dir = ModelDir::open(path.as_ref())?;
        let file = dir.weights();
        let weights = read_weights(&file)?;
        let model = Model::open(&dir)?;
        let text = dir.text().map(|path| TextModel::load(&path)).transpose()?;
        let limits = Limits::default().resolve(&dir.config);
        let translator = Translator { model, text, config: dir.config, weights: Weights::default(), limits };
        translator.weighted(weights, &file.display().to_string())
    }

    /// Sets the weights, for example tuned ones, instead of those of the model directory. Features without a weight
    /// have weight 0; sparse feature templates are enabled if one of their features has a weight. Fails if no feature
    /// of the model has a weight, or if a weight is too large.
    pub fn with_weights(self, weights: &Weights) -> Result<Self> {
        self.weighted(weights.clone(), "the weights")
    }

    /// Sets the weights; `name` is their file in messages.
    fn weighted(mut self, weights: Weights, name: &str) -> Result<Self> {
        FeatureSelection::default().apply(&mut self.model, &weights)?;
        self.model.check_weights(&weights, name)?;
        Ok(Translator { weights, ..self })
    }

    /// Sets the search limits; limits that are `None` come from the model directory.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Translator { limits: limits.resolve(&self.config), ..self }
    }

    /// Returns the translation model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Returns the tokenisers and truecasers of a model that translates raw text; `None` if its text is tokenised.
    pub fn text(&self) -> Option<&TextModel> {
        self.text.as_ref()
    }

    /// Returns the weights of the model's features.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Returns a decoder with this model, its weights and its search limits, for forests, statistics and constrained
    /// decoding.
    pub fn decoder(&self) -> Decoder<'_> {
        Decoder::new(&self.model, &self.weights, self.limits)
    }

    /// Translates sentences in parallel and returns translations in the same order; they do not depend on the number of
    /// threads. Both are raw text if the model was trained on raw text, else tokens separated by blanks. The translation of
    /// an empty sentence is empty.
    pub fn translate<S: AsRef<str> + Sync>(&self, sentences: &[S]) -> Result<Vec<String>> {
        self.translate_with(sentences, Progress::NONE)
    }

    /// Translates sentences like [`Translator::translate`] and reports progress in `sentences`. Fails with an
    /// error of kind `Interrupted` if `progress` answers *stop*.
    pub fn translate_with<S: AsRef<str> + Sync>(
        &self,
        sentences: &[S],
        progress: Progress<'_>,
    ) -> Result<Vec<String>> {
        let best = |decoder: &Decoder<'_>, sentence: &Prepared, progress: Progress<'_>| {
            let found = decoder.search(&sentence.tokens, progress)?;
            Ok(self.restored(found.best().unwrap_or_default().0, sentence))
        };
        self.each(sentences, progress, best)
    }

    /// Returns the `k` best translations of a sentence that are distinct as tokens, best first; fewer if the
    /// search has found fewer.
    pub fn nbest(&self, sentence: &str, k: usize) -> Result<Vec<ScoredTranslation>> {
        Ok(self.nbest_with(&[sentence], k, Progress::NONE)?.pop().unwrap_or_default())
    }

    /// Returns the `k` best translations of each of several sentences, like [`Translator::nbest`], in
    /// parallel. Reports progress in `sentences`. Fails with an error of kind `Interrupted` if `progress` answers
    /// *stop*.
    pub fn nbest_with<S: AsRef<str> + Sync>(
        &self,
        sentences: &[S],
        k: usize,
        progress: Progress<'_>,
    ) -> Result<Vec<Vec<ScoredTranslation>>> {
        self.each(sentences, progress, |decoder, sentence, progress| {
            let found = decoder.search(&sentence.tokens, progress)?;
            let mut list = scored(decoder, &found, k, progress)?;
            for t in &mut list {
                t.text = self.restored(std::mem::take(&mut t.text), sentence);
            }
            Ok(list)
        })
    }

    /// Returns the `k` best translations of a sentence, as [`Translator::nbest`] does, and the phrases of the first one, each
    /// with at most `options` alternatives; no phrases if `options` is 0. The decoder must be one of this translator; it keeps
    /// a cache of phrases for its next sentence. Fails with an error of kind `Interrupted` if `progress` answers *stop*.
    ///
    /// ```
    /// use luthier::{Progress, Training, Translator, generate::{Generator, Part}};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let dir = dir.path();
    /// # let (mut german, mut english, mut corpus) = (String::new(), String::new(), Generator::new(1));
    /// # for _ in 0..100 {
    /// #     let pair = corpus.next(Part::Train, 1);
    /// #     german += &format!("{}\n", pair.source.join(" "));
    /// #     english += &format!("{}\n", pair.targets[0].join(" "));
    /// # }
    /// # std::fs::write(dir.join("train.de"), german).unwrap();
    /// # std::fs::write(dir.join("train.en"), english).unwrap();
    /// # Training::new(dir.join("train.de"), dir.join("train.en"), dir.join("model")).run()?;
    /// let translator = Translator::open(dir.join("model"))?;
    /// let found = translator.explain(&translator.decoder(), "er schläft Xaver", 1, 5, Progress::NONE)?;
    /// let last = found.phrases.last().unwrap();
    /// assert!(last.is_unknown && &found.source[last.source[0].clone()] == "Xaver");
    /// assert_eq!(&found.nbest[0].text[last.target[0].clone()], "Xaver");
    /// # Ok::<(), luthier::core::Error>(())
    /// ```
    pub fn explain(
        &self,
        decoder: &Decoder<'_>,
        sentence: &str,
        k: usize,
        options: usize,
        progress: Progress<'_>,
    ) -> Result<Explanation> {
        let prepared = self.prepared(sentence);
        let found = decoder.search(&prepared.tokens, progress)?;
        let mut nbest = scored(decoder, &found, k.max(1), progress)?;
        let steps = if options == 0 { Vec::new() } else { found.derivation(options) };
        let best = nbest.first().map(|t| t.text.clone()).unwrap_or_default();
        for t in &mut nbest {
            t.text = self.restored(std::mem::take(&mut t.text), &prepared);
        }
        let (source, from) = match &self.text {
            Some(text) => text.token_ranges(Side::Source, sentence),
            None => (sentence.to_owned(), word_ranges(sentence)),
        };
        // With thousands of ties, the first translation can have another derivation than the search's own best.
        let steps = if found.best().is_some_and(|b| b.0 == best) { steps } else { Vec::new() };
        let to = match &self.text {
            Some(text) => text.restore_ranges(Side::Target, &best, &prepared).1,
            None => word_ranges(&best),
        };
        let surface = |mut option: TranslationOption| {
            if let Some(text) = &self.text {
                option.text = text.restore_part(Side::Target, &option.text, &prepared);
            }
            option
        };
        // Protected spans are copied as intended.
        let tokens: Vec<&str> = prepared.tokens.split_ascii_whitespace().collect();
        let is_span = |at: &usize| self.text.is_some() && tokens.get(*at).is_some_and(|t| is_placeholder(t));
        let aligned = steps.into_iter().map(|step| AlignedPhrase {
            source: joined_ranges(&step.source, &from),
            target: joined_ranges(&step.target, &to),
            is_unknown: step.is_unknown && !step.source.iter().any(is_span),
            options: step.options.into_iter().map(surface).collect(),
        });
        Ok(Explanation { source, nbest, phrases: aligned.collect() })
    }

    /// Returns a sentence as the decoder takes it.
    fn prepared(&self, sentence: &str) -> Prepared {
        match &self.text {
            Some(text) => text.prepare(Side::Source, sentence),
            None => Prepared { tokens: sentence.to_owned(), ..Prepared::default() },
        }
    }

    /// Returns a translation of the decoder as the user takes it.
    fn restored(&self, tokens: String, sentence: &Prepared) -> String {
        match &self.text {
            Some(text) => text.restore(Side::Target, &tokens, sentence),
            None => tokens,
        }
    }

    /// Applies a function to each sentence in parallel and returns the results in order.
    fn each<S: AsRef<str> + Sync, T: Send>(
        &self,
        sentences: &[S],
        progress: Progress<'_>,
        work: impl Fn(&Decoder<'_>, &Prepared, Progress<'_>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let decoder = self.decoder();
        let meter = Meter::new(progress, "sentences", sentences.len());
        // Searches report stacks and spans, but the caller expects sentences: searches only poll for *stop*.
        let ask = |_: &Step| match progress.poll() {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        };
        let answers = sentences.par_iter().map(|sentence| {
            let answer = work(&decoder, &self.prepared(sentence.as_ref()), Progress::new(&ask))?;
            meter.add(1)?;
            Ok(answer)
        });
        let answers = answers.collect::<Result<Vec<T>>>()?;
        meter.finish()?;
        Ok(answers)
    }
}

/// Returns the ranges of bytes of the words of a tokenised text.
fn word_ranges(text: &str) -> Vec<Range<usize>> {
    let start = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
    text.split_ascii_whitespace().map(|word| start(word)..start(word) + word.len()).collect()
}

/// Returns the ranges of words at ascending positions, those of neighbouring words joined.
fn joined_ranges(positions: &[usize], words: &[Range<usize>]) -> Vec<Range<usize>> {
    let runs = positions.chunk_by(|a, b| a + 1 == *b);
    let range = |run: &[usize]| Some(words.get(*run.first()?)?.start..words.get(*run.last()?)?.end);
    runs.filter_map(range).collect()
}

/// Returns the `k` best translations that a search has found, with the names of their features.
fn scored(
    decoder: &Decoder<'_>,
    found: &Found<'_>,
    k: usize,
    progress: Progress<'_>,
) -> Result<Vec<ScoredTranslation>> {
    let list = translations(decoder, (found, &found.forest()), k, progress)?;
    let sparse = sparse_names(found, &list);
    let name_of = |key: &FeatureKey| sparse.get(key).cloned().unwrap_or_default();
    let named = list.into_iter().map(|t| {
        let dense = decoder.model().names().iter().cloned().zip(t.features);
        ScoredTranslation {
            features: dense.chain(t.sparse.iter().map(|(key, value)| (name_of(key), *value))).collect(),
            text: t.text,
            score: t.score,
            fixed_score: t.passed,
        }
    });
    Ok(named.collect())
}
