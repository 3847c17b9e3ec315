//! Luthier's decoder as a source of candidates, in the process of the tuner.

use crate::{
    constrained::{Forced, force, max_bleu},
    core::{FeatureKey, Local, Progress, Result, SegmentId, Weights},
    decode::{Decoder, Forests, Found, Limits, Model},
    forest::{Derivation, Forest, KBest},
    metric::{Metric, Prepared, Scratch, SentenceSmoothing},
    text::{self, Side, TextModel},
    tune::{Candidate, Candidates, Evidence, ForestPool, Goal, SegmentForests, Source, SourceKind},
};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// A translation with its score and its features.
#[derive(Debug, Clone, PartialEq)]
pub struct Translation {
    /// The words of the translation, separated by blanks.
    pub text: String,
    /// Model score: weights times features, plus `passed`; higher is better.
    pub score: f64,
    /// Values of the dense features, in the order of the model's names.
    pub features: Vec<f64>,
    /// Keys and values of the sparse features, in the order of the keys.
    pub sparse: Vec<(FeatureKey, f64)>,
    /// Part of the score that is not tuned, 0 or less: the penalty for words that are passed through.
    pub passed: f64,
}

/// Maximum number of steps of k-best extraction between two distinct strings.
const STEPS: usize = 100_000;

/// Returns the `k` best translations of a search and its forest that are distinct as text, best first; fewer if it has
/// found fewer. The first one is the search's own best, [`Found::best`], unless more than 10,000 have the same score.
/// Fails with an error of kind `Interrupted` if `progress` answers *stop*.
pub fn translations(
    decoder: &Decoder<'_>,
    (found, forest): (&Found<'_>, &Forest<'_>),
    k: usize,
    progress: Progress<'_>,
) -> Result<Vec<Translation>> {
    let best = found.best().map(|b| b.0);
    // With many ties the search's own best may be found after the first k.
    let mut most = k;
    loop {
        let mut list = translations_of(decoder, forest, most, progress)?;
        let all_tied = best_first(&mut list, best.as_deref()).is_none() && list.len() == most;
        if !all_tied || most >= TIES {
            list.truncate(k);
            return Ok(list);
        }
        most = (4 * most).clamp(1, TIES.max(k));
    }
}

/// Moves the search's own best translation to the front if its score equals that of the first one up to rounding. The search
/// and the extraction from the forest add the same numbers in different order, so they may break ties differently.
/// Returns `None` if it is not in the list although all scores are tied.
fn best_first(list: &mut [Translation], best: Option<&str>) -> Option<()> {
    let first = list.first()?.score;
    let tied = |t: &Translation| first - t.score <= TIE * first.abs().max(1.0);
    let ties = list.iter().take_while(|t| tied(t)).count();
    match list[..ties].iter().position(|t| Some(&*t.text) == best) {
        Some(at) => list[..=at].rotate_right(1),
        None if ties == list.len() => return None,
        None => {}
    }
    Some(())
}

/// Number of tied translations among which the search's own best one is looked for.
const TIES: usize = 10_000;

/// Relative difference below which two model scores are equal up to rounding.
const TIE: f64 = 1e-9;

/// Returns the `k` best translations of a forest that are distinct as text, best first.
fn translations_of(
    decoder: &Decoder<'_>,
    forest: &Forest<'_>,
    k: usize,
    progress: Progress<'_>,
) -> Result<Vec<Translation>> {
    let model = decoder.model();
    let weights = decoder.local_weights(&forest.local);
    let scores = forest.scores(&weights);
    let places: Vec<Option<usize>> =
        model.names().iter().map(|n| forest.local.position(FeatureKey::of(n))).collect();
    let is_sparse: Vec<bool> = forest.local.keys().iter().map(|&k| model.name_of(k).is_none()).collect();
    let mut tuned = vec![false; weights.len()];
    for p in places.iter().flatten() {
        tuned[*p] = true;
    }
    let rest = |sums: &FxHashMap<u32, f64>, own: &[u32]| -> f64 {
        let fixed = own.iter().map(|&p| p as usize).filter(|&p| !tuned[p] && !is_sparse[p]);
        fixed.map(|p| weights[p] * sums[&(p as u32)]).sum()
    };
    let mut sums = FxHashMap::default();
    let best = KBest::new(forest, &scores, true).limit(STEPS);
    let mut whole = |d: Derivation| {
        sums.clear();
        for &edge in &d.edges {
            for (feature, value) in forest.features(edge) {
                *sums.entry(feature).or_insert(0.0) += f64::from(value);
            }
        }
        let sum = |p: usize| sums.get(&(p as u32)).copied().unwrap_or(0.0);
        let mut own: Vec<u32> = sums.keys().copied().collect();
        own.sort_unstable();
        let passed = rest(&sums, &own);
        own.retain(|&p| is_sparse[p as usize]);
        Translation {
            passed,
            text: forest.text(&d.words),
            score: d.score,
            features: places.iter().map(|p| p.map_or(0.0, sum)).collect(),
            sparse: own.iter().map(|&p| (forest.local.keys()[p as usize], sum(p as usize))).collect(),
        }
    };
    let mut found = Vec::new();
    for d in best.take(k) {
        progress.poll()?;
        found.push(whole(d));
    }
    Ok(found)
}

/// Returns the names of the sparse features of translations that a search has found, by key.
pub fn sparse_names(lattice: &Found<'_>, found: &[Translation]) -> FxHashMap<FeatureKey, String> {
    let wanted: FxHashSet<FeatureKey> = found.iter().flat_map(|t| t.sparse.iter().map(|f| f.0)).collect();
    let mut names = FxHashMap::default();
    if !wanted.is_empty() {
        lattice.sparse_names(&|key| wanted.contains(&key), &mut |key, name| {
            names.entry(key).or_insert_with(|| name.to_owned());
        });
    }
    names
}

/// Escapes `|||`, the field separator of n-best lists in Moses' format, in a text.
pub fn for_lists(text: &str) -> String {
    text.replace("|||", "&#124;&#124;&#124;")
}

/// A decoder with a fixed set of sentences and references: the source of candidates of a tuner that decodes in process.
///
/// ```
/// use luthier::{
///     core::{Progress, SegmentId, Weights},
///     decode::{Limits, Model},
///     decoder::InProcess,
///     metric::Metric,
///     tune::{Evidence, Goal, Source},
/// };
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("table");
/// # let pairs = "das ||| the ||| 0.5\ndas ||| that ||| 0.25\ndas haus ||| the house ||| 0.8\nhaus ||| house ||| 0.9\n";
/// # std::fs::write(&path, pairs).unwrap();
/// # let model = Model::new(luthier::table::read_text(&path, None, Progress::NONE).unwrap(), Vec::new(), false).unwrap();
/// let metric: Metric = "bleu".parse().unwrap();
/// let references = [vec!["the house".to_owned()]];
/// let sentences = vec!["das haus".to_owned()];
/// let source = InProcess::new(model.into(), sentences, Limits::default(), 10, &metric, &references);
/// let weights = Weights::parse("w", "TranslationModel0 1\nDistortion0 0.3\n").unwrap();
/// let found = source.candidates(&[SegmentId(0)], &weights, Goal::Model, Progress::NONE).unwrap();
/// let Evidence::Lists(lists) = found else { panic!() };
/// assert_eq!(lists[0].k, 4);
/// ```
pub struct InProcess {
    model: Arc<Model>,
    sentences: Vec<String>,
    limits: Limits,
    k: usize,
    metric: Metric,
    plus_one: SentenceSmoothing,
    references: Vec<Vec<String>>,
    prepared: Vec<Arc<Prepared>>,
    /// Of a model that translates raw text: what restores raw text from tokens, and the sentences as it has prepared them.
    raw: Option<(Arc<TextModel>, Vec<text::Prepared>)>,
    /// Maximum number of edges per source word of the forests to learn from; `None` to learn from lists.
    density: Option<usize>,
    /// Saved forests of the sentences, which replace parsing.
    forests: Option<Forests>,
    /// Whether forced decoding has found the references of a sentence unreachable; this does not depend on weights.
    unreachable: Vec<AtomicBool>,
}

impl InProcess {
    /// Returns a source of `k` candidates per sentence, scored with a metric against the references of the sentence.
    pub fn new(
        model: Arc<Model>,
        sentences: Vec<String>,
        limits: Limits,
        k: usize,
        metric: &Metric,
        references: &[Vec<String>],
    ) -> Self {
        let mut scratch = Scratch::default();
        let prepare = |r: &Vec<String>| {
            let texts: Vec<&str> = r.iter().map(String::as_str).collect();
            Arc::new(metric.prepare(&texts, &mut scratch))
        };
        InProcess {
            model,
            unreachable: sentences.iter().map(|_| AtomicBool::new(false)).collect(),
            sentences,
            limits,
            k,
            metric: metric.clone(),
            plus_one: SentenceSmoothing::default(),
            forests: None,
            density: None,
            raw: None,
            references: references.to_vec(),
            prepared: references.iter().map(prepare).collect(),
        }
    }

    /// Takes sentences and references as raw text: the model of the text prepares them for the decoder, and candidates are
    /// scored as raw text.
    #[must_use]
    pub fn on_raw_text(mut self, text: Option<Arc<TextModel>>) -> Self {
        let Some(text) = text else { return self };
        let sentences: Vec<text::Prepared> =
            self.sentences.par_iter().map(|line| text.prepare(Side::Source, line)).collect();
        self.references.par_iter_mut().zip(&sentences).for_each(|(references, sentence)| {
            for r in references {
                *r = text.prepare_reference(sentence, r).tokens;
            }
        });
        self.sentences = sentences.iter().map(|s| s.tokens.clone()).collect();
        self.raw = Some((text, sentences));
        self
    }

    /// Returns the sentences as the decoder takes them.
    pub fn sentences(&self) -> &[String] {
        &self.sentences
    }

    /// Rescores saved forests of the sentences, in the same order, instead of parsing the sentences in every iteration.
    #[must_use]
    pub fn with_forests(mut self, forests: Option<Forests>) -> Self {
        self.forests = forests;
        self
    }

    /// Answers with forests instead of lists, pruned to `density` edges per source word; `None` keeps lists.
    #[must_use]
    pub fn on_forests(mut self, density: Option<usize>) -> Self {
        self.density = density;
        self
    }

    /// Returns the forests of a batch, pruned to `density` edges per source word.
    fn packed(
        &self,
        decoder: &Decoder<'_>,
        batch: &[SegmentId],
        columns: &Columns,
        density: usize,
        progress: Progress<'_>,
    ) -> Result<ForestPool> {
        let fixed: Arc<[(FeatureKey, f64)]> = decoder.fixed().into();
        let segments = batch.par_iter().map(|segment| {
            let at = segment.0 as usize;
            let sentence = &self.sentences[at];
            let forest = decoder.search_segment(at, sentence, progress)?.forest();
            let scores = forest.scores(&decoder.local_weights(&forest.local));
            let words = sentence.split_ascii_whitespace().count().max(1);
            let forest = forest.densest(&scores, words.saturating_mul(density));
            Ok(SegmentForests { forests: vec![Arc::new(forest)], references: self.prepared[at].clone() })
        });
        Ok(ForestPool { columns: columns.local.clone(), fixed, segments: segments.collect::<Result<_>>()? })
    }

    /// Sets the smoothing of sentence BLEU in the search for the translation with the highest sentence BLEU.
    #[must_use]
    pub fn smoothed(mut self, plus_one: SentenceSmoothing) -> Self {
        self.plus_one = plus_one;
        self
    }

    /// Returns the `k` best translations that a search has found for segment `at`, scored with the metric; an empty
    /// list without a search.
    fn list(
        &self,
        decoder: &Decoder<'_>,
        lattice: Option<&Found<'_>>,
        columns: &Columns,
        (at, k): (usize, usize),
        scratch: &mut Scratch,
        progress: Progress<'_>,
    ) -> Result<Arc<Candidates>> {
        let Some(lattice) = lattice else { return Ok(Arc::new(Candidates::empty(&columns.local))) };
        let mut found = translations(decoder, (lattice, &lattice.forest()), k, progress)?;
        for t in &mut found {
            let raw = self
                .raw
                .as_ref()
                .map(|(text, sentences)| text.restore(Side::Target, &t.text, &sentences[at]));
            t.text = for_lists(raw.as_ref().unwrap_or(&t.text));
        }
        let features: Vec<Vec<(FeatureKey, f64)>> = found
            .iter()
            .map(|t| {
                let dense = columns.keys.iter().copied().zip(t.features.iter().copied());
                dense.chain(t.sparse.iter().copied()).collect()
            })
            .collect();
        let candidates = found.iter().zip(&features).map(|(t, features)| Candidate {
            text: &t.text,
            features,
            columns: &[],
        });
        let mut list = Candidates::new(&columns.local, candidates, true);
        list.judge(&self.metric, &self.prepared[at], scratch);
        // The penalty for words that are passed through is not tuned.
        if found.iter().any(|t| t.passed != 0.0) && found.len() == list.k {
            list.fixed_score = found.iter().map(|t| t.passed).collect();
        }
        if !list.local.keys().is_empty() {
            let names = sparse_names(lattice, &found);
            list = list.named(|key| names.get(&key).cloned().unwrap_or_default());
        }
        Ok(Arc::new(list))
    }

    /// Returns the candidates of the segments of a batch under given weights, for a goal. Fails with an error of kind
    /// `Interrupted` if `progress` answers *stop*.
    pub fn decode(
        &self,
        batch: &[SegmentId],
        weights: &Weights,
        goal: Goal,
        progress: Progress<'_>,
    ) -> Result<Evidence> {
        let keys: Vec<FeatureKey> = self.model.names().iter().map(|n| FeatureKey::of(n)).collect();
        let columns = &Columns { local: Arc::new(Local::new(keys.clone())), keys };
        let limits = if goal == Goal::Model { self.limits } else { Forced::limits(self.limits) };
        let decoder = match &self.forests {
            Some(forests) => Decoder::over(&self.model, weights, limits, forests),
            None => Decoder::new(&self.model, weights, limits),
        };
        if let (Goal::Model, Some(density)) = (goal, self.density) {
            return Ok(Evidence::Forests(self.packed(&decoder, batch, columns, density, progress)?));
        }
        let searches_bleu = goal == Goal::Metric && !self.model.is_hierarchical();
        let blind = searches_bleu.then(|| Decoder::blind(&self.model, self.limits));
        let done = AtomicUsize::new(0);
        let lists = batch.par_iter().map_init(Scratch::default, |scratch, segment| {
            let at = segment.0 as usize;
            let found = self.find(&decoder, blind.as_ref(), goal, at, progress)?;
            let k = if goal == Goal::Model { self.k } else { 1 };
            let list = self.list(&decoder, found.as_ref(), columns, (at, k), scratch, progress)?;
            progress.count("segments", done.fetch_add(1, Ordering::Relaxed) + 1, batch.len())?;
            Ok(list)
        });
        Ok(Evidence::Lists(lists.collect::<Result<_>>()?))
    }

    /// Returns the result of the search of one segment for a goal; `None` if the goal is not reachable.
    fn find<'d>(
        &self,
        decoder: &'d Decoder<'_>,
        blind: Option<&Decoder<'_>>,
        goal: Goal,
        at: usize,
        progress: Progress<'_>,
    ) -> Result<Option<Found<'d>>> {
        let sentence = &self.sentences[at];
        let references: Vec<&str> = self.references[at].iter().map(String::as_str).collect();
        match (goal, blind) {
            (Goal::Model, _) => decoder.search_segment(at, sentence, progress).map(Some),
            // Constrained decoding is for phrase-based models only; others take surrogates from lists.
            _ if self.model.is_hierarchical() => Ok(None),
            (Goal::Metric, Some(blind)) => {
                let found = max_bleu(blind, decoder, sentence, &references, self.plus_one, progress)?;
                Ok(found.map(|f| f.1))
            }
            _ if self.unreachable[at].load(Ordering::Relaxed) => Ok(None),
            _ => {
                let found = force(decoder, sentence, &references, progress)?;
                self.unreachable[at].store(found.is_none(), Ordering::Relaxed);
                Ok(found)
            }
        }
    }
}

/// The dense features: in the order of the model, and as local columns.
struct Columns {
    keys: Vec<FeatureKey>,
    local: Arc<Local>,
}

impl Source for InProcess {
    fn segments(&self) -> u32 {
        self.sentences.len() as u32
    }

    fn candidates(
        &self,
        batch: &[SegmentId],
        weights: &Weights,
        goal: Goal,
        progress: Progress<'_>,
    ) -> Result<Evidence> {
        self.decode(batch, weights, goal, progress)
    }

    fn name(&self, key: FeatureKey) -> String {
        self.model.name_of(key).unwrap_or_default().to_owned()
    }

    fn references(&self, segment: SegmentId) -> Option<Arc<Prepared>> {
        self.prepared.get(segment.0 as usize).cloned()
    }

    fn kind(&self) -> SourceKind {
        if self.density.is_some() { SourceKind::Forests } else { SourceKind::Decoder }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ties up to rounding go to the search's own best; other candidates keep their order.
    #[test]
    fn ties_go_to_the_best_of_the_search() {
        let order = |scores: [f64; 3], best: &str| {
            let one = |(text, score): (&str, f64)| Translation {
                text: text.to_owned(),
                score,
                features: Vec::new(),
                sparse: Vec::new(),
                passed: 0.0,
            };
            let mut list: Vec<Translation> = ["a", "b", "c"].into_iter().zip(scores).map(one).collect();
            best_first(&mut list, Some(best));
            list.iter().map(|t| t.text.clone()).collect::<String>()
        };
        assert_eq!(order([-40.0, -40.000_000_000_01, -41.0], "b"), "bac");
        assert_eq!(order([-40.0, -40.0, -40.0], "c"), "cab");
        assert_eq!(order([-40.0, -40.1, -41.0], "b"), "abc");
        best_first(&mut [], Some("a"));
    }
}
