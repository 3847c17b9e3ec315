//! N-best lists of a text with features and references: the input of tuning and reranking.

use crate::{
    Recipe,
    core::{Error, FeatureKey, Fingerprint, Names, Progress, Result, Weights, math},
    io::{
        InputFile,
        nbest::{self, Options, Rows},
        text::{Lines, by_segment, read_lines},
    },
    metric::{Hypothesis, Metric, Scratch, add},
    tune::{Candidates, Judge, SourceKind, columns, learner::Minimize, list, lists, recipe::Context},
};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::{path::Path, sync::Arc};

/// N-best lists of a text: the candidates of every segment with their features, and optional references.
///
/// ```
/// use luthier::NBest;
/// let mut lists = NBest::default();
/// lists.push(0, "the house", &[("lm", -3.0)], &[])?;
/// lists.push(0, "house the", &[("lm", -7.5)], &[])?;
/// let weights = luthier::core::Weights::parse("w.txt", "lm 1\n")?;
/// assert_eq!(lists.rerank(&weights)?, ["the house"]);
/// # Ok::<(), luthier::core::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct NBest {
    pub(crate) rows: Rows,
    pub(crate) references: Vec<Lines>,
    /// Whether the references come from the lists themselves.
    own: bool,
    /// Format that files were read in.
    pub(crate) options: Options,
}

impl NBest {
    /// Reads n-best lists; the format is detected from the content, and several files are merged. Fails if a file is
    /// not in a recognised n-best format; the error names file and line.
    pub fn read<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<Self> {
        Self::read_with(paths, &Options::default())
    }

    /// Reads n-best lists like [`NBest::read`], in a given format instead of the detected one.
    pub fn read_with<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>, options: &Options) -> Result<Self> {
        let paths: Vec<P> = paths.into_iter().collect();
        let paths: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
        let mut rows = read_rows(&paths, options)?;
        rows.count_from_zero();
        let references = own_references(&rows)?;
        Ok(NBest { rows, own: !references.is_empty(), references, options: options.clone() })
    }

    /// Makes lists of rows, such as those that [`Rows::of_sizes`] makes of columns. Fails if segments differ in their number of
    /// references.
    pub fn from_rows(rows: Rows) -> Result<Self> {
        let references = own_references(&rows)?;
        Ok(NBest { rows, own: !references.is_empty(), references, options: Options::default() })
    }

    /// Returns the candidates.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Returns the number of references of each segment.
    pub fn reference_count(&self) -> usize {
        self.references.len()
    }

    /// Iterates over the references: each entry has one text per segment.
    pub fn reference_lines(&self) -> impl ExactSizeIterator<Item = &[String]> {
        self.references.iter().map(|r| r.lines.as_slice())
    }

    /// Adds reference files, one line per segment; each file is one reference of every segment. References that the lists
    /// themselves hold are not used then. Fails if a file cannot be read, or if files differ in length.
    pub fn with_references<P: AsRef<Path>>(mut self, paths: impl IntoIterator<Item = P>) -> Result<Self> {
        self.leave_own();
        for path in paths {
            self.references.push(read_lines(path.as_ref())?);
        }
        by_segment(&self.references)?;
        Ok(self)
    }

    /// Adds one reference for every segment, in memory; call it once per set of references. Fails if sets differ in
    /// length.
    pub fn with_reference_texts<S: Into<String>>(
        mut self,
        texts: impl IntoIterator<Item = S>,
    ) -> Result<Self> {
        self.leave_own();
        let lines: Vec<String> = texts.into_iter().map(Into::into).collect();
        let file = format!("reference {}", self.references.len() + 1);
        let digest = digest(&lines);
        self.references.push(Lines { file, lines, digest });
        by_segment(&self.references)?;
        Ok(self)
    }

    /// Forgets the references that the lists hold.
    fn leave_own(&mut self) {
        if self.own {
            self.references.clear();
            self.own = false;
        }
    }

    /// Appends a candidate to a segment, numbered from 0, with its features and with scores that are not features but
    /// can be read by `column` metrics. Fails if a name occurs twice or a value is not finite.
    pub fn push(
        &mut self,
        segment: u32,
        text: &str,
        features: &[(&str, f64)],
        scores: &[(&str, f64)],
    ) -> Result<()> {
        self.rows.push(segment, text, features, scores)
    }

    /// Returns the number of candidates of all segments.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there are no candidates.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the names of the features, in the order of their first occurrence.
    pub fn features(&self) -> &[String] {
        self.rows.names.names()
    }

    /// Returns the text of the candidate with the highest score under given weights, for every segment; among equal
    /// scores, the first. Fails if a segment has no candidates, or if none of the weights is for a feature of the
    /// lists.
    pub fn rerank(&self, weights: &Weights) -> Result<Vec<&str>> {
        let best = self.best(weights)?;
        Ok(best.into_iter().map(|row| self.rows.text(row)).collect())
    }

    /// Returns the index of the candidate with the highest score under given weights, for every segment; from 0
    /// within the segment, and among equal scores the first. Fails if a segment has no candidates, or if none of the
    /// weights is for a feature of the lists.
    pub fn rerank_indices(&self, weights: &Weights) -> Result<Vec<usize>> {
        let groups = self.rows.by_segment(false)?;
        let best = self.best(weights)?;
        let place = |(group, row): (&Vec<u32>, usize)| group.iter().position(|&r| r as usize == row);
        Ok(groups.iter().zip(best).map(|pair| place(pair).unwrap_or(0)).collect())
    }

    /// Returns the weighted sum of features of every candidate, segment after segment. Fails as [`NBest::rerank`] does.
    pub fn model_scores(&self, weights: &Weights) -> Result<Vec<f64>> {
        self.check_weights(weights)?;
        let columns = columns(&self.rows, None);
        let mut dense = Vec::new();
        weights.gather(&columns, &mut dense);
        let mut all = Vec::with_capacity(self.len());
        for group in self.rows.by_segment(false)? {
            let list = list(&self.rows, &columns, &group);
            let start = all.len();
            all.resize(start + list.k, 0.0);
            list.scores(&dense, weights, &mut all[start..]);
        }
        Ok(all)
    }

    /// Returns the corpus score of the candidates with the highest scores under given weights, with its signature. Fails as
    /// [`NBest::rerank`] does, and if the metric needs references and there are none.
    pub fn score(&self, weights: &Weights, metric: &Metric) -> Result<(f64, String)> {
        self.check_weights(weights)?;
        let lists = self.judged(metric, false)?;
        let mut dense = Vec::new();
        let mut total = vec![0.0; metric.width()];
        for list in &lists {
            weights.gather(&list.columns, &mut dense);
            if let Some(best) = list.best(&dense, weights) {
                add(&mut total, list.stats_of(list.class[best]));
            }
        }
        let signature = metric.signature(Some(self.references.len()), "");
        Ok((metric.display_score(metric.score(&total)), signature))
    }

    /// Returns the expected utility of every candidate, segment after segment, for decoding by minimum Bayes risk: the
    /// sum over all candidates j of the segment of pⱼ · utility(candidate, candidate j), a score per sentence, where pⱼ ∝ exp(γ w·hⱼ);
    /// without weights, all candidates are equally likely. Error rates have positive values. Takes time quadratic in the number of different texts of
    /// a segment. Fails if the metric reads columns, if γ is not finite, and as [`NBest::rerank`] does.
    ///
    /// ```
    /// use luthier::{NBest, core::Progress};
    /// let mut lists = NBest::default();
    /// for text in ["a b c", "a b d", "x y z"] {
    ///     lists.push(0, text, &[], &[])?;
    /// }
    /// let utilities = lists.expected_utilities(&"chrf".parse().unwrap(), None, 1.0, Progress::NONE)?;
    /// assert!(utilities[0] > utilities[2] && utilities[1] > utilities[2]);
    /// # Ok::<(), luthier::core::Error>(())
    /// ```
    pub fn expected_utilities(
        &self,
        utility: &Metric,
        weights: Option<&Weights>,
        gamma: f64,
        progress: Progress<'_>,
    ) -> Result<Vec<f64>> {
        if !utility.needs_references() || !utility.columns().is_empty() {
            let problem = format!("{} does not compare two texts", utility.name());
            return Err(Error::new(problem).hint("take a metric such as chrf or bleu"));
        }
        if !gamma.is_finite() {
            return Err(Error::new(format!("gamma is {gamma}, expected a finite number")));
        }
        let metric = utility.for_sentences();
        let scores = weights.map(|w| self.model_scores(w)).transpose()?;
        if scores.iter().flatten().any(|s| !(gamma * s).is_finite()) {
            return Err(
                Error::new("gamma times model score is beyond the range of numbers").hint("lower gamma")
            );
        }
        let groups = self.rows.by_segment(false)?;
        let mut start = 0;
        let work: Vec<(&Vec<u32>, usize)> = groups
            .iter()
            .map(|group| {
                start += group.len();
                (group, start - group.len())
            })
            .collect();
        let of_segment = |(group, start): (&Vec<u32>, usize)| {
            progress.poll()?;
            let scores = scores.as_ref().map(|s| &s[start..start + group.len()]);
            let texts: Vec<&str> = group.iter().map(|&row| self.rows.text(row as usize)).collect();
            Ok(utilities(&metric, &texts, scores, gamma))
        };
        let all: Result<Vec<Vec<f64>>> = work.into_par_iter().map(of_segment).collect();
        Ok(all?.concat())
    }

    /// Returns value and gradient of the objective that an algorithm minimises, at given weights. Fails if the algorithm
    /// minimises none, and as [`NBest::score`] does.
    ///
    /// ```
    /// use luthier::{NBest, Recipe, core::Weights};
    /// let dev = NBest::read(["examples/quickstart/nbest.txt"])?.with_references(["examples/quickstart/ref.txt"])?;
    /// let weights = Weights::of([("lm", 1.0)])?;
    /// let (value, gradient) = dev.loss(&Recipe::named("softmax")?, &weights, &"bleu".parse().unwrap(), 1)?;
    /// assert!(value > 0.0 && gradient.iter().any(|(name, _)| name == "lm"));
    /// # Ok::<(), luthier::core::Error>(())
    /// ```
    pub fn loss(
        &self,
        recipe: &Recipe,
        weights: &Weights,
        metric: &Metric,
        seed: u64,
    ) -> Result<(f64, Vec<(String, f64)>)> {
        self.check_weights(weights)?;
        let lists: Vec<_> = self.judged(metric, true)?.into_iter().map(Arc::new).collect();
        let references = Some(Arc::new(self.references()?));
        let context = Context { metric, seed, source: SourceKind::Fixed, references };
        objective_at(&recipe.objective(&context)?, metric, &lists, weights, &self.rows.names)
    }

    /// Returns the key of the group of each segment: of its group column, or else of its id.
    pub(crate) fn groups(&self, segments: u32) -> Result<Vec<u128>> {
        segment_keys(&self.rows, segments as usize)
    }

    /// Fails if there are weights, but none for any feature of the lists.
    pub(crate) fn check_weights(&self, weights: &Weights) -> Result<()> {
        let known = self.rows.names.keys().iter().any(|&key| weights.contains(key));
        if known || weights.is_empty() || self.features().is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = weights.iter().map(|w| w.0).take(5).collect();
        Err(Error::new(format!("no weight for any feature of the lists: {}", self.features().join(", ")))
            .hint(format!("the weights are for {}", names.join(", "))))
    }

    /// Returns the input files with their roles; candidates and references in memory are recorded by digest.
    pub(crate) fn inputs(&self) -> Vec<(&'static str, InputFile)> {
        let mut all = Vec::new();
        for f in &self.references {
            all.push(("ref", InputFile::new("ref", &f.file, &f.digest)));
        }
        for f in &self.rows.files {
            all.push(("nbest", InputFile::new("nbest", &f.name, &f.digest)));
        }
        if self.rows.files.is_empty() {
            all.push(("nbest", InputFile::new("nbest", "candidates in memory", self.rows.digest())));
        }
        all
    }

    /// Returns the row of the best candidate of every segment.
    fn best(&self, weights: &Weights) -> Result<Vec<usize>> {
        self.check_weights(weights)?;
        let columns = columns(&self.rows, None);
        let mut dense = Vec::new();
        weights.gather(&columns, &mut dense);
        let groups = self.rows.by_segment(false)?;
        let best = groups.into_par_iter().map(|group| {
            let list = list(&self.rows, &columns, &group);
            group[list.best(&dense, weights).unwrap_or(0)] as usize
        });
        Ok(best.collect())
    }

    /// Returns the lists of all segments, with features in columns and with the statistics of a metric; with `distinct`,
    /// repeated candidates are left out, as in tuning. Fails if the metric needs references and there are none.
    pub fn judged(&self, metric: &Metric, distinct: bool) -> Result<Vec<Candidates>> {
        if self.references.is_empty() && metric.needs_references() {
            return Err(Error::new(format!("{} needs references, but the lists have none", metric.name()))
                .hint("add them with NBest::with_references"));
        }
        let references = references_of(&self.references, &self.rows, false)?;
        let judge = Judge { distinct, ..Judge::new(metric, &references, reference_file(&self.references)) };
        lists(&self.rows, &columns(&self.rows, Some(metric)), Some(judge))
    }

    /// Returns the references of each segment. Fails if files differ in length.
    pub(crate) fn references(&self) -> Result<Vec<Vec<String>>> {
        let references = by_segment(&self.references)?;
        Ok(references.iter().map(|r| r.iter().map(ToString::to_string).collect()).collect())
    }
}

/// Returns the expected utility of each text, with probabilities from model scores; equal texts are compared once.
fn utilities(metric: &Metric, texts: &[&str], scores: Option<&[f64]>, gamma: f64) -> Vec<f64> {
    let best = scores.map_or(0.0, |s| s.iter().map(|s| gamma * s).fold(f64::NEG_INFINITY, f64::max));
    let mass = |i: usize| scores.map_or(1.0, |s| math::exp(gamma * s[i] - best));
    let mut numbers: FxHashMap<&str, usize> = FxHashMap::default();
    let (mut distinct, mut masses) = (Vec::new(), Vec::new());
    let number_of = texts.iter().enumerate().map(|(i, &text)| {
        let number = *numbers.entry(text).or_insert(distinct.len());
        if number == distinct.len() {
            distinct.push(text);
            masses.push(0.0);
        }
        masses[number] += mass(i);
        number
    });
    let number_of: Vec<usize> = number_of.collect();
    let total: f64 = masses.iter().sum();
    let mut scratch = Scratch::default();
    let (mut stats, mut wide) = (vec![0.0; metric.width()], Vec::new());
    let mut expected = vec![0.0; distinct.len()];
    for (reference, mass) in distinct.iter().zip(&masses) {
        let prepared = metric.prepare(&[reference], &mut scratch);
        for (text, sum) in distinct.iter().zip(&mut expected) {
            metric.stats(&prepared, Hypothesis { text, columns: &[] }, &mut scratch, &mut stats);
            wide.clear();
            wide.extend(stats.iter().map(|&x| f64::from(x)));
            *sum += mass / total * metric.score(&wide);
        }
    }
    number_of.into_iter().map(|n| metric.display_score(expected[n])).collect()
}

/// Returns value and gradient of an objective on some lists, at weights whose features outside the lists do not count. Fails if
/// two names of features have the same key.
pub fn objective_at(
    objective: &Minimize,
    metric: &Metric,
    lists: &[Arc<Candidates>],
    weights: &Weights,
    names: &Names,
) -> Result<(f64, Vec<(String, f64)>)> {
    let mut weights = weights.clone();
    keep_features(&mut weights, names, metric);
    let name = |key: FeatureKey| names.get(key).unwrap_or_default().to_owned();
    if let Some(first) = lists.first() {
        weights.commit(&first.columns, &name)?;
    }
    lists.iter().try_for_each(|l| weights.commit(&l.local, &name))?;
    let mut gradient = vec![0.0; weights.len()];
    let value = objective.objective(lists, &weights, 0).evaluate(weights.values(), &mut gradient);
    Ok((value, weights.iter().map(|w| w.0.to_owned()).zip(gradient).collect()))
}

/// Keeps the weights of features that lists have: Moses' unknown-word penalty, for one, is in none.
pub fn keep_features(weights: &mut Weights, names: &Names, metric: &Metric) {
    let read = metric.columns();
    weights.retain(|key| names.get(key).is_some_and(|n| !read.contains(&n)));
}

/// Returns the digest of lines in memory.
fn digest(lines: &[String]) -> String {
    let add = |f: Fingerprint, line: &String| f.bytes(line.as_bytes());
    format!("{:032x}", lines.iter().fold(Fingerprint::default(), add).finish())
}

/// Reads n-best files in parallel and merges them in the given order. Fails if a file is not in the given format, or
/// not in a recognised one.
pub fn read_rows(paths: &[&Path], options: &Options) -> Result<Rows> {
    // Each thread reads consecutive files into the same table, because merging tables copies them.
    let each = paths.len().div_ceil(rayon::current_num_threads()).max(1);
    let parts: Vec<Result<Rows>> = paths
        .par_chunks(each)
        .map(|files| {
            let mut rows = Rows::default();
            files.iter().try_for_each(|path| nbest::read(path, options, &mut rows)).map(|()| rows)
        })
        .collect();
    let mut parts = parts.into_iter();
    let mut rows = parts.next().unwrap_or_else(|| Ok(Rows::default()))?;
    for part in parts {
        rows.append(part?)?;
    }
    Ok(rows)
}

/// Returns the references that the files of lists hold, as reference files; empty if they hold none. Fails if segments
/// differ in their number of references.
pub fn own_references(rows: &Rows) -> Result<Vec<Lines>> {
    let file = rows.files.first().map_or("candidates", |f| f.name.as_str());
    let lines = |lines: Vec<String>| Lines { file: file.to_owned(), digest: digest(&lines), lines };
    Ok(rows.references()?.into_iter().map(lines).collect())
}

/// Fails if a metric needs references and there are none.
pub fn check_references(files: &[Lines], metric: &Metric) -> Result<()> {
    if files.is_empty() && metric.needs_references() {
        return Err(Error::new("no references").hint("give them with --ref FILE"));
    }
    Ok(())
}

/// Returns the references of each segment; without files, no reference for each segment of the lists. Fails if files
/// differ in length, or without files if a segment has no candidates and `allow_missing` is not set.
pub fn references_of<'a>(files: &'a [Lines], rows: &Rows, allow_missing: bool) -> Result<Vec<Vec<&'a str>>> {
    if files.is_empty() {
        return Ok(vec![Vec::new(); rows.by_segment(allow_missing)?.len()]);
    }
    by_segment(files)
}

/// Returns the name of the first reference file, for messages.
pub fn reference_file(files: &[Lines]) -> &str {
    files.first().map_or("the n-best list", |f| &f.file)
}

/// Returns the key of the group of each segment, by which segments are held out and resampled: of its group column, or else
/// of its id. Fails if a segment has no group although others have one.
pub fn segment_keys(rows: &Rows, segments: usize) -> Result<Vec<u128>> {
    let key = |text: &str| Fingerprint::default().bytes(text.as_bytes()).finish();
    Ok(match rows.groups()? {
        Some(groups) => groups.iter().map(|g| key(g)).collect(),
        None => (0..segments as u32).map(|s| key(&rows.id(s))).collect(),
    })
}
