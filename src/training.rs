//! Training of a translation model from parallel text: word alignment, a phrase or rule table, a language model and
//! initial weights, written to a model directory that a decoder can open.
//!
//! Text is tokenised, or raw with [`Settings::raw`]: it is then cleaned and tokenised, and the model translates raw text.
//!
//! Training has five stages: `text` (reads both sides; for raw text also `text.toml`, `source.gz` and `target.gz`), `align` (writes `alignment.gz`), `table` (`table.bin`), `lm`
//! (`lm0.bin`) and `weights` (`weights.txt` and `luthier.toml`). Each complete stage has a line in `train.jsonl`;
//! interrupted training resumes after the last of them, with the same settings, which are stored in `train.toml`. The
//! files are bit-for-bit reproducible for any number of threads and any amount of memory. Text and word alignment are
//! held in memory; phrase extraction and n-gram counting sort on disk if memory is not sufficient.

mod raw;
mod spec;
mod stages;

use crate::{
    core::{Error, Progress, Result},
    decode::{DenseFeature, ModelConfig, ModelDir, ModelKind},
    io::{AtomicFile, Input, bitext::Skipped, sort::SortSettings},
    lm,
    table::Builder,
    text::{Cleaning, is_placeholder},
    train::{
        Corpus, Link, PhraseSettings, RuleLimits,
        align::{self, Settings as AlignSettings},
        extract::{self, TextTables, What},
        links,
    },
};
use raw::RawText;
pub use raw::{Languages, Parallel};
use spec::TrainSpec;
use stages::Stages;
pub use stages::{
    AlignFigures, Done, LmFigures, LmFile, NoFigures, Perplexity, Stage, TableFigures, TextFigures, Trained,
};
use std::{
    fmt,
    fmt::Write as _,
    path::{Path, PathBuf},
    time::Instant,
};

/// Settings of training: everything besides the text that the model depends on.
///
/// ```
/// use luthier::{train::RuleLimits, training::{LanguageModels, Settings}};
///
/// let settings = Settings { lm: LanguageModels::Estimate { order: 3 }, ..Settings::hiero(RuleLimits::default()) };
/// assert_eq!(settings.max_words, 100);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Translation units of the model, phrases or hierarchical rules, with the limits of their extraction.
    pub what: What,
    /// Languages of raw text; `None` if the text is tokenised.
    pub raw: Option<Languages>,
    /// Maximum number of words on a side of a sentence pair, from 1 to 1000; longer pairs are skipped, except by the
    /// language model.
    pub max_words: u16,
    /// Origin of the word alignment: trained or given.
    pub alignment: Alignment,
    /// Origin of the language models: estimated or given.
    pub lm: LanguageModels,
    /// Whether each language model gets a feature that counts the words unknown to it.
    pub oov: bool,
    /// Whether tables and language model are also written as text.
    pub text_tables: bool,
    /// Memory limit and temporary directory of sorting; they do not affect the model.
    pub sort: SortSettings,
}

impl Default for Settings {
    /// Returns the settings of a phrase-based model with default limits.
    fn default() -> Self {
        Settings {
            what: What::Phrases(PhraseSettings::default()),
            raw: None,
            max_words: 100,
            alignment: Alignment::default(),
            lm: LanguageModels::default(),
            oov: false,
            text_tables: false,
            sort: SortSettings::default(),
        }
    }
}

impl Settings {
    /// Returns the settings of a phrase-based model with lexicalised reordering; all other settings have their
    /// defaults.
    pub fn phrase(phrases: PhraseSettings) -> Self {
        Settings { what: What::Phrases(phrases), ..Settings::default() }
    }

    /// Returns the settings of a hierarchical model (Chiang 2007); all other settings have their defaults.
    pub fn hiero(rules: RuleLimits) -> Self {
        Settings { what: What::Rules(rules), ..Settings::default() }
    }

    /// Returns the kind of the model, as written to `luthier.toml`.
    pub fn kind(&self) -> ModelKind {
        if self.what.is_rules() { ModelKind::Hiero } else { ModelKind::Phrase }
    }

    /// Returns the settings of the language model of the target text; `None` if language models are given.
    fn lm_settings(&self) -> Option<lm::Settings> {
        let LanguageModels::Estimate { order } = self.lm else { return None };
        Some(lm::Settings { order, prune: Vec::new(), sort: self.sort.clone() })
    }

    /// Fails if a number is out of range, or if a given language model cannot be opened.
    fn check(&self) -> Result<()> {
        if !(1..=1000).contains(&self.max_words) {
            return Err(Error::new(format!("max-words is {}, expected 1 to 1000", self.max_words)));
        }
        if let Alignment::Train(settings) = &self.alignment {
            settings.check()?;
        }
        if let Some(settings) = self.lm_settings() {
            settings.check()?;
        }
        for path in self.lm.given() {
            lm::Model::open(path)?;
        }
        Ok(())
    }
}

/// Origin of the word alignment of the training text.
#[derive(Debug, Clone, PartialEq)]
pub enum Alignment {
    /// Train an aligner on the text and align it.
    Train(AlignSettings),
    /// Read the alignment from a file in Pharaoh format, one line of links per line of text.
    Given(PathBuf),
}

impl Default for Alignment {
    /// Returns an aligner with default settings, to be trained on the text.
    fn default() -> Self {
        Alignment::Train(AlignSettings::default())
    }
}

/// Origin of the language models of a translation model.
#[derive(Debug, Clone, PartialEq)]
pub enum LanguageModels {
    /// Estimate one model from the target text.
    Estimate {
        /// Order of the model, from 1 to 6.
        order: u8,
    },
    /// Use these files, ARPA or binary; the list can be empty. Binary files are referenced by path, not copied.
    Given(Vec<PathBuf>),
}

impl Default for LanguageModels {
    /// Returns one model of order 5, to be estimated from the target text.
    fn default() -> Self {
        LanguageModels::Estimate { order: lm::Settings::default().order }
    }
}

impl LanguageModels {
    /// Returns the files of given models; empty if a model is estimated.
    fn given(&self) -> &[PathBuf] {
        match self {
            LanguageModels::Estimate { .. } => &[],
            LanguageModels::Given(paths) => paths,
        }
    }
}

/// An event during training, for programs that report progress.
#[derive(Debug)]
pub enum Event<'a> {
    /// Raw text has been cleaned.
    Cleaned {
        /// Numbers of sentence pairs that were left out.
        cleaning: &'a Cleaning,
        /// Numbers of entries of a bilingual file that are not sentence pairs; `None` for two files.
        skipped: Option<&'a Skipped>,
    },
    /// The parallel text has been read; nothing has been written yet.
    Read(&'a Corpus),
    /// A stage that is not complete begins.
    Begin(Stage),
    /// Extraction of phrases or rules is complete, with these statistics.
    Extracted(&'a extract::Report),
    /// Estimation of the language model of the target text is complete, with these statistics.
    Estimated(&'a lm::Report),
    /// A stage is complete.
    End {
        /// The stage that is complete.
        stage: Stage,
        /// Duration of the stage in seconds, in the process that completed it.
        seconds: f64,
        /// Whether an earlier process completed the stage.
        resumed: bool,
    },
}

/// A callback for events; may be called from any thread.
type Observer<'a> = &'a (dyn Fn(&Event<'_>) + Sync);

/// Builder for the training of a translation model: a tokenised parallel text, a model directory and settings.
/// [`Training::run`] trains.
///
/// ```
/// use luthier::{Training, generate::{Generator, Part}};
/// # let dir = tempfile::tempdir().unwrap();
/// # let dir = dir.path();
///
/// let (mut german, mut english, mut corpus) = (String::new(), String::new(), Generator::new(1));
/// for _ in 0..50 {
///     let pair = corpus.next(Part::Train, 1);
///     german += &format!("{}\n", pair.source.join(" "));
///     english += &format!("{}\n", pair.targets[0].join(" "));
/// }
/// std::fs::write(dir.join("train.de"), german).unwrap();
/// std::fs::write(dir.join("train.en"), english).unwrap();
/// let trained = Training::new(dir.join("train.de"), dir.join("train.en"), dir.join("model")).run()?;
/// assert_eq!(trained.text.figures.kept, 50);
/// println!("{} phrase pairs in {:.1} s", trained.table.figures.entries, trained.seconds);
/// # Ok::<(), luthier::core::Error>(())
/// ```
#[derive(Clone)]
pub struct Training<'a> {
    parallel: Parallel,
    model: PathBuf,
    settings: Settings,
    threads: Option<usize>,
    progress: Progress<'a>,
    observer: Option<Observer<'a>>,
}

impl fmt::Debug for Training<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Training");
        out.field("parallel", &self.parallel).field("model", &self.model);
        out.field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl<'a> Training<'a> {
    /// Prepares training on a source text and its translation, one tokenised sentence per line, with default
    /// settings. The model directory is created, or resumed if it exists.
    pub fn new(source: impl AsRef<Path>, target: impl AsRef<Path>, model: impl AsRef<Path>) -> Self {
        Self::on(Parallel::Files(source.as_ref().to_owned(), target.as_ref().to_owned()), model)
    }

    /// Prepares training on parallel text in one file or two, like [`Training::new`].
    pub fn on(parallel: Parallel, model: impl AsRef<Path>) -> Self {
        Training {
            parallel,
            model: model.as_ref().to_owned(),
            settings: Settings::default(),
            threads: None,
            progress: Progress::NONE,
            observer: None,
        }
    }

    /// Sets the settings of training [default: a phrase-based model].
    #[must_use]
    pub fn settings(self, settings: Settings) -> Self {
        Training { settings, ..self }
    }

    /// Sets the number of threads [default: those of the current thread pool]; it does not affect the model.
    #[must_use]
    pub fn threads(self, threads: usize) -> Self {
        Training { threads: Some(threads), ..self }
    }

    /// Sets a callback for the progress of each stage; it can stop the training.
    #[must_use]
    pub fn progress(self, progress: Progress<'a>) -> Self {
        Training { progress, ..self }
    }

    /// Sets a callback for the start, the end and the statistics of each stage.
    #[must_use]
    pub fn observe(self, observer: &'a (dyn Fn(&Event<'_>) + Sync)) -> Self {
        Training { observer: Some(observer), ..self }
    }

    /// Trains the model, starting with the first stage that is not complete, and returns statistics of all stages.
    /// Fails if settings are out of range, if text and alignment do not match, if the directory holds a model with
    /// other settings, and with an error of kind `Interrupted` if the progress callback answers *stop*; the same call
    /// then resumes. After an error, a directory that was created by this call and has no complete stage besides
    /// `text` is removed.
    pub fn run(&self) -> Result<Trained> {
        let Some(threads) = self.threads else { return self.run_here() };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|e| Error::new(format!("cannot start {threads} threads: {e}")))?;
        pool.install(|| self.run_here())
    }

    fn run_here(&self) -> Result<Trained> {
        let clock = Instant::now();
        self.check()?;
        // Errors in the input are reported before anything is written.
        let (corpus, raw) = self.read()?;
        let given = match &self.settings.alignment {
            Alignment::Train(_) => None,
            Alignment::Given(path) => Some(links::read(path, &corpus)?),
        };
        let spec = TrainSpec::new(&self.parallel, &self.settings)?;
        let mut stages = Stages::open(&self.model, &spec, self.observer)?;
        match self.train(&mut stages, (&corpus, raw.as_ref()), given, clock) {
            Ok(trained) => Ok(trained),
            Err(e) => {
                stages.abandon();
                Err(e)
            }
        }
    }

    /// Fails early on settings out of range and on inputs that are not regular files.
    fn check(&self) -> Result<()> {
        let alignment = match &self.settings.alignment {
            Alignment::Train(_) => None,
            Alignment::Given(path) => Some(path),
        };
        for path in self.parallel.paths().into_iter().chain(alignment.map(PathBuf::as_path)) {
            check_regular(path)?;
        }
        self.settings.lm.given().iter().try_for_each(|path| check_regular(path))?;
        self.settings.check()
    }

    /// Reads the parallel text; raw text is cleaned and tokenised.
    fn read(&self) -> Result<(Corpus, Option<RawText>)> {
        let raw = match (&self.settings.raw, &self.parallel) {
            (Some(languages), parallel) => Some(RawText::read(parallel, languages, self.progress)?),
            (None, Parallel::Files(..)) => None,
            (None, Parallel::Bitext(path)) => {
                return Err(Error::in_file(
                    path.display().to_string(),
                    "is raw text, but training is on tokenised text",
                )
                .hint("train on raw text, or give two tokenised files"));
            }
        };
        if let Some(raw) = &raw {
            self.tell(&Event::Cleaned { cleaning: &raw.cleaning, skipped: raw.skipped.as_ref() });
        }
        let [mut source, mut target] = match (&raw, &self.parallel) {
            (Some(raw), _) => raw.inputs()?,
            (None, parallel) => parallel.inputs()?,
        };
        let corpus = Corpus::read(&mut source, &mut target, self.settings.max_words.into(), self.progress)?;
        self.tell(&Event::Read(&corpus));
        Ok((corpus, raw))
    }

    fn tell(&self, event: &Event<'_>) {
        if let Some(observer) = self.observer {
            observer(event);
        }
    }

    /// Runs all stages in order.
    fn train(
        &self,
        stages: &mut Stages<'_>,
        (corpus, raw): (&Corpus, Option<&RawText>),
        given: Option<Vec<Vec<Link>>>,
        clock: Instant,
    ) -> Result<Trained> {
        let text = stages.stage(Stage::Text, |stages| {
            let files = raw.map_or(Ok(Vec::new()), |raw| raw.write(stages))?;
            Ok((TextFigures::new(corpus, raw), files))
        })?;
        let mut links = given;
        let align = stages.stage(Stage::Align, |stages| {
            let (mut made, perplexity) = match links.take() {
                Some(given) => (given, None),
                None => self.align(corpus)?,
            };
            if raw.is_some() {
                // A protected span must not be lost or doubled by any phrase.
                links::pin(corpus, &mut made, is_placeholder);
            }
            let file = "alignment.gz";
            AtomicFile::write_all_to(&stages.path(file), links::to_text(corpus, &made).as_bytes())?;
            let figures = AlignFigures { perplexity, links: made.iter().map(Vec::len).sum() };
            links = Some(made);
            Ok((figures, vec![file.to_owned()]))
        })?;
        let table = stages.stage(Stage::Table, |stages| {
            let links = match links.take() {
                Some(links) => links,
                None => links::read(&stages.path("alignment.gz"), corpus)?,
            };
            self.table(stages, corpus, &links)
        })?;
        let target = match &self.parallel {
            Parallel::Files(_, target) if raw.is_none() => target.clone(),
            _ => stages.path(raw::TARGET),
        };
        let lm = stages.stage(Stage::Lm, |stages| self.language_models(stages, &target))?;
        let weights = stages.stage(Stage::Weights, |stages| self.configure(stages, &lm.figures))?;
        let seconds = clock.elapsed().as_secs_f64();
        Ok(Trained { model: self.model.clone(), text, align, table, lm, weights, seconds })
    }

    /// Trains an aligner and returns the alignment of the text and the perplexities of the aligner.
    fn align(&self, corpus: &Corpus) -> Result<(Vec<Vec<Link>>, Option<Perplexity>)> {
        let settings = match &self.settings.alignment {
            Alignment::Train(settings) => settings.clone(),
            Alignment::Given(_) => AlignSettings::default(),
        };
        let model = align::Model::train(corpus, &settings, self.progress)?;
        let [target_given_source, source_given_target] = model.perplexities(corpus);
        let links = model.align(corpus, settings.symmetrize, self.progress)?;
        Ok((links, Some(Perplexity { target_given_source, source_given_target })))
    }

    /// Extracts phrases or rules and writes the binary table, and text tables with `text_tables`.
    fn table(
        &self,
        stages: &Stages<'_>,
        corpus: &Corpus,
        links: &[Vec<Link>],
    ) -> Result<(TableFigures, Vec<String>)> {
        let what = self.settings.what;
        let settings = extract::Settings { what, sort: self.settings.sort.clone() };
        let mut builder = Builder::new(what.is_rules());
        let create = || TextTables::create(what, stages.directory());
        let mut text = self.settings.text_tables.then(create).transpose()?;
        let report = extract::extract(corpus, links, &settings, self.progress, &mut |entry| {
            if let Some(text) = &mut text {
                text.entry(entry, corpus)?;
            }
            builder.entry(entry)
        })?;
        self.tell(&Event::Extracted(&report));
        let mut files = vec!["table.bin".to_owned()];
        if let Some(text) = text {
            files.extend(text.commit()?.map(str::to_owned));
        }
        let table = builder.finish(&corpus.source.vocabulary, &corpus.target.vocabulary, self.progress)?;
        table.write(&stages.path("table.bin"))?;
        let figures = TableFigures {
            entries: report.pairs,
            sources: report.sources,
            found: report.found,
            by_gaps: what.is_rules().then_some(report.entries),
            bytes: table.bytes(),
        };
        Ok((figures, files))
    }

    /// Estimates the language model of the target text, or converts given ARPA files to binaries.
    fn language_models(&self, stages: &Stages<'_>, target: &Path) -> Result<(LmFigures, Vec<String>)> {
        let (mut models, mut files) = (Vec::new(), Vec::new());
        let arpa = if self.settings.text_tables { "lm.arpa.gz" } else { "lm.arpa" };
        let estimated = self.settings.lm_settings().map(|settings| (stages.path(arpa), settings));
        let paths = match &estimated {
            Some((path, settings)) => {
                let report = lm::estimate_file(target, settings, path, self.progress)?;
                self.tell(&Event::Estimated(&report));
                std::slice::from_ref(path)
            }
            None => self.settings.lm.given(),
        };
        for (k, path) in paths.iter().enumerate() {
            let file = if lm::Model::is_binary(path) {
                let whole = std::fs::canonicalize(path);
                whole.map_err(|e| Error::io(path.display().to_string(), "open it", &e))?.display().to_string()
            } else {
                let file = format!("lm{k}.bin");
                lm::Model::compile_file(path, &stages.path(&file), self.progress)?;
                files.push(file.clone());
                file
            };
            let model = lm::Model::open(&stages.path(&file))?;
            let perplexity = model.perplexity(&mut Input::open(target)?, self.progress)?;
            models.push(LmFile::new(file, &model, perplexity));
        }
        if let Some((path, _)) = &estimated {
            if self.settings.text_tables {
                files.push(arpa.to_owned());
            } else {
                std::fs::remove_file(path)
                    .map_err(|e| Error::io(path.display().to_string(), "remove it", &e))?;
            }
        }
        Ok((LmFigures { models }, files))
    }

    /// Writes the initial weights and `luthier.toml`, which names the parts of the model.
    fn configure(&self, stages: &Stages<'_>, lm: &LmFigures) -> Result<(NoFigures, Vec<String>)> {
        let config = ModelConfig {
            lm: lm.models.iter().map(|m| PathBuf::from(&m.file)).collect(),
            text: self.settings.raw.is_some().then(|| raw::TEXT.into()),
            oov: self.settings.oov,
            ..ModelConfig::new(self.settings.kind())
        };
        let weights = initial_weights(&config);
        AtomicFile::write_all_to(&stages.path("weights.txt"), weights.as_bytes())?;
        let comment = format!("a model of luthier {}", env!("CARGO_PKG_VERSION"));
        ModelDir::create(stages.directory(), config, &comment)?;
        Ok((NoFigures {}, vec!["weights.txt".to_owned(), ModelDir::FILE.to_owned()]))
    }
}

/// Returns the text of `weights.txt`: a fixed initial weight for each feature.
fn initial_weights(config: &ModelConfig) -> String {
    let mut weights = String::from("# initial weights, before tuning\n");
    let mut add = |name: &str, values: &[f64]| {
        for (k, value) in values.iter().enumerate() {
            let index = if values.len() > 1 { format!("[{k}]") } else { String::new() };
            let _ = writeln!(weights, "{name}{index} {value}");
        }
    };
    let models = config.lm.len();
    for k in 0..models {
        add(&DenseFeature::LanguageModel.block(k), &[0.5]);
    }
    for k in 0..if config.oov { models } else { 0 } {
        add(&DenseFeature::UnknownToLm.block(k), &[0.0]);
    }
    add(&DenseFeature::TranslationModel.block(0), &[0.2; 4]);
    add(&DenseFeature::PhrasePenalty.block(0), &[0.2]);
    add(&DenseFeature::WordPenalty.block(0), &[-1.0]);
    match config.kind {
        ModelKind::Phrase => {
            add(&DenseFeature::LexicalReordering.block(0), &[0.3; 6]);
            add(&DenseFeature::Distortion.block(0), &[0.3]);
        }
        ModelKind::Hiero => {
            add(&DenseFeature::Glue.block(0), &[1.0]);
            add(&DenseFeature::Rules.block(0), &[0.0; 3]);
        }
    }
    weights
}

/// Fails if a path is a pipe or another file that cannot be read more than once.
fn check_regular(path: &Path) -> Result<()> {
    if path.is_file() || (path.as_os_str() != "-" && !path.exists()) {
        return Ok(());
    }
    Err(Error::in_file(
        path.display().to_string(),
        "is not a regular file, but training reads it more than once",
    )
    .hint("give the path of a regular file"))
}
