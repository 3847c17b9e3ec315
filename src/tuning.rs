//! Tuning on n-best lists with the library.

use crate::{
    NBest, Recipe,
    core::{Error, Progress, Result, Weights},
    io::InputFile,
    metric::Metric,
    tune::{
        Event, FROM_LISTS, FixedLists, Fleet, Job, NbestOptions, RunDir, RunSpec, SMALL, SourceKind, Stop,
        mert::Certificate, recipe::Context, run as run_job,
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
    progress: Progress<'a>,
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
    /// Ratio of output length to reference length under the tuned weights; `None` for metrics without lengths.
    pub length_ratio: Option<f64>,
    /// Iteration that the tuned weights come from.
    pub iteration: u32,
    /// Reason why the run ended.
    pub stop: Stop,
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
        let metric: Metric = self.metric.parse().map_err(|e| Error::new(format!("{e}")))?;
        let references = Arc::new(self.dev.references()?);
        let context = Context {
            metric: &metric,
            seed: self.seed,
            source: SourceKind::Fixed,
            references: Some(references.clone()),
        };
        let tuner = self.recipe.build(&context)?;
        tuner.recipe.check_features(self.dev.features())?;
        let source = |lists: &NBest| Ok(FixedLists::new(lists.judged(&metric)?, lists.rows.names.clone()));
        let dev = source(self.dev)?;
        let initial = match &self.initial {
            Some(initial) => {
                self.dev.check_weights(initial)?;
                initial.clone()
            }
            None => dev.initial_weights(&metric)?,
        };
        let select = self.select.map(source).transpose()?;
        let test = self.test.map(source).transpose()?;
        let spec = self.spec(&metric, &tuner.recipe);
        let signature = spec.signature.clone();
        let mut dir = match &self.run {
            Some(path) => RunDir::open(path, spec, references, Fleet::ALONE)?,
            None => RunDir::in_memory(spec),
        };
        let job = Job {
            source: &dev,
            select: select.as_ref().map(|s| s as _),
            test: test.as_ref().map(|s| s as _),
            learner: &*tuner.learner,
            schedule: &tuner.schedule,
            metric: &metric,
            initial: &initial,
            progress: self.progress,
        };
        let outcome = match run_job(&job, &mut dir, &Fleet::ALONE, &mut |_| {}) {
            Ok(outcome) => outcome,
            Err(e) => {
                dir.discard();
                return Err(e);
            }
        };
        let history: Vec<Event> = dir.events().cloned().collect();
        Ok(Tuned {
            score: metric.display_score(outcome.score),
            initial: metric.display_score(outcome.initial),
            test: outcome.test.map(|t| metric.display_score(t)),
            initial_test: outcome.initial_test.map(|t| metric.display_score(t)),
            length_ratio: outcome.length_ratio,
            iteration: outcome.iteration,
            stop: outcome.stop,
            certificate: history.iter().find_map(|e| e.certificate.clone()),
            signature,
            recipe: tuner.recipe,
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
