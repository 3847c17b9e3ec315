//! Tuning on n-best lists with the library.

use crate::{
    NBest, Recipe,
    core::{Error, Progress, Result, SegmentId, Weights},
    io::InputFile,
    metric::Metric,
    nbest::keep_features,
    tune::{
        Bootstrap, Event, FROM_LISTS, FixedLists, Fleet, HeldOut, HeldOutPart, HoldOut, Job, Learned,
        NbestOptions, Outcome, RunDir, RunSpec, RunView, SMALL, Source, SourceKind, Stability, Stop, Subset,
        check_samples,
        mert::Certificate,
        recipe::{Context, Tuner},
        run as run_job, validate,
    },
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// Prepares the tuning of weights on n-best lists with an algorithm. Returns a builder for further settings;
/// [`Tuning::run`] tunes.
///
/// ```
/// use luthier::{Mert, NBest, Recipe};
///
/// let dev = NBest::read(["examples/quickstart/nbest.txt"])?.with_references(["examples/quickstart/ref.txt"])?;
/// let recipe = Recipe::Mert(Mert { restarts: Some(5), ..Mert::default() });
/// let tuned = luthier::tune(&dev, &recipe).metric("bleu")?.seed(1).run()?;
/// println!("{:.2} -> {:.2}", tuned.initial, tuned.score);
/// assert!(tuned.score > tuned.initial);
/// let best: Vec<&str> = dev.rerank(&tuned.weights)?;
/// assert_eq!(best.len(), dev.rerank_indices(&tuned.weights)?.len());
/// # Ok::<(), luthier::core::Error>(())
/// ```
pub fn tune<'a>(dev: &'a NBest, recipe: &'a Recipe) -> Tuning<'a> {
    Tuning {
        dev,
        recipe,
        metric: "bleu".to_owned(),
        seed: 1,
        initial: None,
        select: None,
        test: None,
        run: None,
        threads: None,
        hold_out: None,
        bootstrap: None,
        progress: Progress::NONE,
    }
}

/// Builder for a tuning run: lists, algorithm and settings. [`Tuning::run`] tunes.
#[derive(Debug, Clone)]
pub struct Tuning<'a> {
    dev: &'a NBest,
    recipe: &'a Recipe,
    metric: String,
    seed: u64,
    initial: Option<Weights>,
    select: Option<&'a NBest>,
    test: Option<&'a NBest>,
    run: Option<PathBuf>,
    threads: Option<usize>,
    hold_out: Option<HoldOut>,
    bootstrap: Option<u32>,
    progress: Progress<'a>,
}

/// Judged lists of all sets.
struct Sources {
    dev: FixedLists,
    select: Option<FixedLists>,
    test: Option<FixedLists>,
    references: Arc<Vec<Vec<String>>>,
    metric: Metric,
}

/// A run that is about to begin.
struct Opened<'s> {
    tuner: Tuner,
    dir: RunDir,
    initial: Weights,
    /// Segments to learn from; `None` for all.
    subset: Option<&'s Subset<'s>>,
}

/// A run that has ended.
struct Run {
    recipe: Recipe,
    outcome: Outcome,
    dir: RunDir,
    signature: String,
    /// Segments that were learned from; `None` for all.
    subset: Option<Vec<SegmentId>>,
}

/// Result of tuning.
#[derive(Debug, Clone)]
pub struct Tuned {
    /// Tuned weights, of the best iteration.
    pub weights: Weights,
    /// Score of the tuned weights on the scale of the metric: on the selection set if there is one, else on the lists
    /// that they were tuned on (a training score).
    pub score: f64,
    /// Score of the initial weights on the same set as `score`.
    pub initial: f64,
    /// Score of the tuned weights on the test set; `None` without a test set.
    pub test: Option<f64>,
    /// Score of the initial weights on the test set; `None` without a test set.
    pub initial_test: Option<f64>,
    /// Scores on segments that were held out, if [`Tuning::hold_out`] or [`Tuning::folds`] asks for them.
    pub held_out: Option<HeldOut>,
    /// Variation of the weights between resamples of the segments, if [`Tuning::bootstrap`] asks for it.
    pub stability: Option<Stability>,
    /// Ratio of output length to reference length under the tuned weights; `None` for metrics without lengths.
    pub length_ratio: Option<f64>,
    /// Iteration that the tuned weights come from.
    pub iteration: u32,
    /// Reason why the run ended.
    pub stop: Stop,
    /// Advice about the result, such as that the weights that an L1 penalty leaves score worse than the initial ones. Settings
    /// are named as on the command line.
    pub remarks: Vec<String>,
    /// What is known about the highest score on the tuning lists, with scores for which higher is better; `None` unless
    /// [`Mert::certify`](crate::Mert::certify) asks for it.
    pub certificate: Option<Certificate>,
    /// Signature of the metric.
    pub signature: String,
    /// Algorithm with the values of all settings.
    pub recipe: Recipe,
    /// Events of all iterations, with scores for which higher is better.
    pub history: Vec<Event>,
}

impl<'a> Tuning<'a> {
    /// Sets the metric to tune for: `bleu`, `chrf`, `0.5*bleu+0.5*chrf`, `column:comet` [default: `bleu`]. Fails if
    /// it is not a metric.
    pub fn metric(mut self, metric: &str) -> Result<Self> {
        metric.parse::<Metric>().map_err(|e| Error::new(e.to_string()))?;
        metric.clone_into(&mut self.metric);
        Ok(self)
    }

    /// Sets the random seed [default: 1].
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Tuning { seed, ..self }
    }

    /// Sets the initial weights [default: the best of each feature alone, with either sign, and of the mean of all with
    /// their better signs, in units of their spread within lists].
    #[must_use]
    pub fn initial(self, initial: &Weights) -> Self {
        Tuning { initial: Some(initial.clone()), ..self }
    }

    /// Sets the selection set: the weights of the iteration that scores best on these lists are kept.
    #[must_use]
    pub fn select(self, lists: &'a NBest) -> Self {
        Tuning { select: Some(lists), ..self }
    }

    /// Sets the test set: the weights are scored on these lists, which do not affect tuning.
    #[must_use]
    pub fn test(self, lists: &'a NBest) -> Self {
        Tuning { test: Some(lists), ..self }
    }

    /// Holds out a share of the segments, above 0 and below 1: they are scored with the initial and with the tuned weights,
    /// and nothing is learned from them. Segments of a group (a column of the lists) stay together, also in the significance
    /// test.
    #[must_use]
    pub fn hold_out(self, share: f64) -> Self {
        Tuning { hold_out: Some(HoldOut::Share(share)), ..self }
    }

    /// Cross-validates with a number of folds, at least 2, each held out from a run of its own; the tuned weights come from one
    /// more run on all segments.
    ///
    /// ```
    /// use luthier::{Mira, NBest, Recipe};
    ///
    /// let dev = NBest::read(["examples/rerank/dev.jsonl"])?.with_references(["examples/rerank/dev.en"])?;
    /// let tuned = luthier::tune(&dev, &Recipe::Mira(Mira::default())).folds(5).bootstrap(20).run()?;
    /// let held_out = tuned.held_out.unwrap();
    /// assert_eq!((held_out.segments, held_out.parts.len()), (40, 5));
    /// assert!(held_out.score < tuned.score); // the score on the tuning lists is optimistic
    /// assert_eq!(tuned.stability.unwrap().features.len(), 3);
    /// # Ok::<(), luthier::core::Error>(())
    /// ```
    #[must_use]
    pub fn folds(self, folds: u32) -> Self {
        Tuning { hold_out: Some(HoldOut::Folds(folds)), ..self }
    }

    /// Tunes also on a number of resamples of the segments, at least 2, to see how much each weight varies.
    #[must_use]
    pub fn bootstrap(self, samples: u32) -> Self {
        Tuning { bootstrap: Some(samples), ..self }
    }

    /// Sets the run directory; created, or resumed if it exists [default: the run is kept in memory].
    #[must_use]
    pub fn run_dir(self, path: impl AsRef<Path>) -> Self {
        Tuning { run: Some(path.as_ref().to_owned()), ..self }
    }

    /// Sets the number of threads [default: those of the current thread pool]; it does not affect results.
    #[must_use]
    pub fn threads(self, threads: usize) -> Self {
        Tuning { threads: Some(threads), ..self }
    }

    /// Sets a progress callback; it can stop the run.
    #[must_use]
    pub fn progress(self, progress: Progress<'a>) -> Self {
        Tuning { progress, ..self }
    }

    /// Tunes and returns the best weights. Fails if settings contradict each other, if lists and references do not
    /// match, if the run directory has a run with other settings, and with an error of kind `Interrupted` if the
    /// progress callback answers *stop*.
    pub fn run(&self) -> Result<Tuned> {
        let Some(threads) = self.threads else { return self.run_here() };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|e| Error::new(format!("cannot start {threads} threads: {e}")))?;
        pool.install(|| self.run_here())
    }

    fn run_here(&self) -> Result<Tuned> {
        self.hold_out.map_or(Ok(()), HoldOut::check)?;
        self.bootstrap.map_or(Ok(()), check_samples)?;
        let metric: Metric = self.metric.parse().map_err(|e| Error::new(format!("{e}")))?;
        let references = Arc::new(self.dev.references()?);
        let source =
            |lists: &NBest| Ok(FixedLists::new(lists.judged(&metric, true)?, lists.rows.names.clone()));
        let sources = Sources {
            dev: source(self.dev)?,
            select: self.select.map(source).transpose()?,
            test: self.test.map(source).transpose()?,
            references,
            metric,
        };
        if let Some(initial) = &self.initial {
            self.dev.check_weights(initial)?;
        }
        let groups = self.dev.groups(sources.dev.segments())?;
        let Some(plan) = self.hold_out else {
            let run = self.run_on(&sources, self.open(&sources, None, self.run.as_deref())?)?;
            return self.finish(run, &sources, &groups, None);
        };
        let parts = plan.parts(&groups, self.seed)?;
        let folds = matches!(plan, HoldOut::Folds(_));
        // Opened first: a directory of another run is refused before any work.
        let whole = folds.then(|| self.open(&sources, None, self.run.as_deref())).transpose()?;
        let fold_path = |number| Some(RunView::fold_path(self.run.as_ref()?, number));
        if let Some(first) = fold_path(0).filter(|p| folds && p.exists()) {
            let subset = Subset::new(&sources.dev, parts[0].learned.clone());
            self.open(&sources, Some((&subset, HeldOutPart { plan, part: 0 })), Some(&first))?;
        }
        let mut run = None;
        let scores = validate(
            (plan, &parts),
            &groups,
            &sources.dev,
            &sources.metric,
            &Fleet::ALONE,
            self.progress,
            &mut |number, subset| {
                let path = if folds { fold_path(number) } else { self.run.clone() };
                let part = HeldOutPart { plan, part: number as u32 };
                let opened = self.open(&sources, Some((subset, part)), path.as_deref())?;
                let done = self.run_on(&sources, opened)?;
                let best = done.dir.events().find(|e| e.iteration == done.outcome.iteration);
                let learned = Learned {
                    initial: done.outcome.start.clone(),
                    weights: done.outcome.weights.clone(),
                    tuning: best.map_or(done.outcome.score, |e| e.score),
                };
                run = Some(done);
                Ok(learned)
            },
        )?;
        if let Some(whole) = whole {
            run = Some(self.run_on(&sources, whole)?);
        }
        let run = run.ok_or_else(|| Error::new("no part to learn from"))?;
        run.dir.write_validation(&scores)?;
        self.finish(run, &sources, &groups, Some(scores))
    }

    /// Opens a run on all segments, or on those of a part.
    fn open<'s>(
        &self,
        sources: &'s Sources,
        part: Option<(&'s Subset<'s>, HeldOutPart)>,
        path: Option<&Path>,
    ) -> Result<Opened<'s>> {
        let Sources { dev, references, metric, .. } = sources;
        let references = part.map_or_else(|| references.clone(), |(s, _)| Arc::new(s.pick(references)));
        let context = Context {
            metric,
            seed: self.seed,
            source: SourceKind::Fixed,
            references: Some(references.clone()),
        };
        let tuner = self.recipe.build(&context)?;
        tuner.recipe.check_features(self.dev.features())?;
        let initial = match (&self.initial, part) {
            (Some(initial), _) => {
                let mut initial = initial.clone();
                keep_features(&mut initial, &self.dev.rows.names, metric);
                initial
            }
            (None, Some((subset, _))) => subset.initial_weights(metric)?,
            (None, None) => dev.initial_weights(metric)?,
        };
        let mut spec = self.spec(metric, &tuner.recipe);
        spec.held_out = part.map(|p| p.1);
        let dir = match path {
            Some(path) => RunDir::open(path, spec, references, Fleet::ALONE)?,
            None => RunDir::in_memory(spec),
        };
        Ok(Opened { tuner, dir, initial, subset: part.map(|p| p.0) })
    }

    /// Tunes on the segments of an opened run.
    fn run_on(&self, sources: &Sources, opened: Opened<'_>) -> Result<Run> {
        let Sources { dev, select, test, metric, .. } = sources;
        let Opened { tuner, mut dir, initial, subset } = opened;
        let job = Job {
            source: subset.map_or(dev as &dyn Source, |s| s),
            select: select.as_ref().map(|s| s as _),
            test: test.as_ref().map(|s| s as _),
            learner: &*tuner.learner,
            schedule: &tuner.schedule,
            metric,
            initial: &initial,
            progress: self.progress,
        };
        match run_job(&job, &mut dir, &Fleet::ALONE, &mut |_| {}) {
            Ok(outcome) => {
                let signature = dir.spec().signature.clone();
                Ok(Run { recipe: tuner.recipe, outcome, dir, signature, subset: subset.map(Subset::ids) })
            }
            Err(e) => {
                if !self.run.as_ref().is_some_and(|p| p.join("folds").exists()) {
                    dir.discard();
                }
                Err(e)
            }
        }
    }

    /// Resamples the segments if this is asked for, and collects the results.
    fn finish(
        &self,
        run: Run,
        sources: &Sources,
        groups: &[u128],
        held_out: Option<HeldOut>,
    ) -> Result<Tuned> {
        let Run { recipe, outcome, dir, signature, subset } = run;
        let metric = &sources.metric;
        let all = || (0..sources.dev.segments()).map(SegmentId).collect();
        let stability = match self.bootstrap {
            None => None,
            Some(samples) => {
                let learned = Subset::new(&sources.dev, subset.unwrap_or_else(all));
                let references = Some(Arc::new(learned.pick(&sources.references)));
                let context = Context { metric, seed: self.seed, source: SourceKind::Fixed, references };
                let groups = &learned.pick(groups)[..];
                let weights = &outcome.weights;
                let recipe = recipe.with_l1(dir.l1_of(outcome.iteration));
                let found =
                    Bootstrap { source: &learned, recipe: &recipe, context, groups, samples, weights }
                        .run(&Fleet::ALONE, self.progress)?;
                dir.write_bootstrap(&found)?;
                Some(found)
            }
        };
        let history: Vec<Event> = dir.events().cloned().collect();
        Ok(Tuned {
            score: metric.display_score(outcome.score),
            initial: metric.display_score(outcome.initial),
            test: outcome.test.map(|t| metric.display_score(t)),
            initial_test: outcome.initial_test.map(|t| metric.display_score(t)),
            held_out,
            stability,
            length_ratio: outcome.length_ratio,
            iteration: outcome.iteration,
            stop: outcome.stop,
            certificate: history.iter().find_map(|e| e.certificate.clone()),
            signature,
            remarks: recipe.remarks(&outcome, self.dev.len() / sources.dev.segments().max(1) as usize),
            recipe,
            history,
            weights: outcome.weights,
        })
    }

    /// Returns everything that the results of the run depend on, for the run directory.
    fn spec(&self, metric: &Metric, recipe: &Recipe) -> RunSpec {
        let mut spec = RunSpec::new(recipe.clone(), &self.metric, self.seed);
        spec.signature = metric.signature(Some(self.dev.references.len()), "");
        spec.nbest_options = NbestOptions::new(&self.dev.options, false);
        match &self.initial {
            Some(initial) => spec.set_init(initial, SMALL),
            None => FROM_LISTS.clone_into(&mut spec.init),
        }
        let sets = [("", Some(self.dev)), ("select-", self.select), ("test-", self.test)];
        for (prefix, set) in sets.into_iter().filter_map(|(prefix, set)| Some((prefix, set?))) {
            for (role, file) in set.inputs() {
                spec.inputs.push(InputFile { role: format!("{prefix}{role}"), ..file });
            }
        }
        spec
    }
}
