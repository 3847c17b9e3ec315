//! What every algorithm takes, read and checked before any work begins.

use crate::{
    command::{
        check_names,
        decode::{check_weights, open_forests},
        read_references,
    },
    launch,
    lists::{
        ListArgs, MetricArgs, check_distinct, check_references, own_references, reference_file,
        references_of, say_other_references, say_usage,
    },
    talk::{Talk, thousands},
};
use luthier::{
    core::{Error, FeatureKey, Fingerprint, Result, Weights},
    decode::{DenseFeature, FeatureSelection, Forests, Limits, Model, ModelDir, SearchSpec, Template},
    decoder::InProcess,
    external::{External, Memory},
    io::{
        AtomicFile, InputFile, moses_ini,
        nbest::{Rows, read_scores},
        read_weights,
        text::{self, Lines},
    },
    metric::Metric,
    nbest::{keep_features, segment_keys},
    text::{Side, TextModel},
    tune::{
        Candidates, FROM_LISTS, FixedLists, HoldOut, Judge, NbestOptions, RunSpec, SMALL, Source, SourceKind,
        columns, lists, recipe::Recipe,
    },
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

/// Inputs and outputs of a run.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("decoder").args(["command", "model"])))]
pub(crate) struct Input {
    #[command(flatten)]
    nbest: ListArgs,
    /// References, one segment per line; repeat for several references per segment.
    ///
    /// Not needed for metrics that read a column.
    #[arg(long = "ref", value_name = "FILE", help_heading = "Input")]
    references: Vec<PathBuf>,
    /// Statistics from Moses' extractor instead of references, one file per feature file in --nbest.
    #[arg(long, num_args = 1.., value_name = "FILE", conflicts_with_all = ["references", "metric", "tokenize", "command"], help_heading = "Input")]
    moses_scores: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) metric: MetricArgs,
    /// Run directory; created, or resumed if it exists.
    #[arg(long, value_name = "DIR", help_heading = "Run")]
    pub(super) run: PathBuf,
    /// Initial weights, one `name value` per line [default: the model's, or found].
    ///
    /// Fixed lists start from the best of each feature alone, with either sign, and of the mean of all features with their
    /// better signs, each in units of its spread. --command needs initial weights. A Moses configuration is accepted, too. With all weights 0 the first candidate of each list is selected.
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    init: Option<PathBuf>,
    /// Model directory of `train` or `import`, whose decoder generates the lists.
    ///
    /// It translates --source into new n-best lists in every iteration.
    #[arg(long, value_name = "DIR", conflicts_with = "nbest", requires = "source", help_heading = "Decoder")]
    model: Option<PathBuf>,
    /// Shell command of a decoder that generates the lists.
    ///
    /// Placeholders are replaced: {weights} by the path of a file with one `name value` per line, {weights:moses} by the value for Moses'
    /// -weight-overwrite (put it in single quotes), {source} by --source, {k} by --nbest-size, {iteration} by the number
    /// of the iteration, {nbest} by the path of the list to write; without {nbest} the list is read from standard output. Either {weights}
    /// or {weights:moses} is required.
    #[arg(long, value_name = "CMD", conflicts_with = "nbest", requires = "source", help_heading = "Decoder")]
    command: Option<String>,
    /// Text for the decoder, one segment per line.
    #[arg(long, value_name = "FILE", requires = "decoder", help_heading = "Decoder")]
    source: Option<PathBuf>,
    /// Rule matches of the --source text, saved by `decode --forest-kind grammar`, instead of parsing in every iteration.
    ///
    /// For hierarchical models; works with --on nbest and with --on forest.
    #[arg(long, value_name = "FILE", requires = "model", help_heading = "Decoder")]
    forests: Option<PathBuf>,
    /// Number of candidates per segment to ask the decoder for [default: 100].
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..), requires = "decoder", help_heading = "Decoder")]
    nbest_size: Option<u32>,
    /// Moses configuration: initial weights, unless --init gives them, and template for --moses-ini-out.
    #[arg(long, value_name = "FILE", help_heading = "Moses")]
    moses_ini: Option<PathBuf>,
    /// Output file for the Moses configuration with the tuned weights.
    #[arg(long, value_name = "FILE", requires = "moses_ini", help_heading = "Moses")]
    moses_ini_out: Option<PathBuf>,
    #[command(flatten)]
    held_out: HeldOutArgs,
    #[command(flatten)]
    features: FeatureSelection,
    #[command(flatten)]
    limits: Limits,
}

/// Sets that nothing is learned from.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Held-out sets")]
struct HeldOutArgs {
    /// N-best lists of the selection set.
    ///
    /// Keeps the weights that score best on this set, among the initial weights and those of every iteration.
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["decoder", "select_source"])]
    select_nbest: Vec<PathBuf>,
    /// Source text of the selection set, to be decoded (needs --model or --command).
    ///
    /// Keeps the weights that score best on this set, among the initial weights and those of every iteration.
    #[arg(long, value_name = "FILE", requires = "decoder")]
    select_source: Option<PathBuf>,
    /// References of the selection set; repeatable.
    #[arg(long, value_name = "FILE")]
    select_ref: Vec<PathBuf>,
    /// N-best lists of the test set: scored, not used for tuning.
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["decoder", "test_source"])]
    test_nbest: Vec<PathBuf>,
    /// Share of the segments to hold out: scored before and after, not tuned on.
    ///
    /// Segments are chosen by a seeded hash of their ids, or of their documents (--group-column); documents are then also the
    /// units of the significance test.
    #[arg(long, value_name = "SHARE", conflicts_with = "folds", value_parser = share)]
    holdout: Option<f64>,
    /// Cross-validate with this number of folds, then tune on all segments.
    ///
    /// Each fold is held out from a run of its own, in the directory folds/N of the run; the choices for all held-out
    /// segments are scored together. The weights come from one more run on all segments, so that K folds take about K + 1 times
    /// as long.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(2..=1000))]
    folds: Option<u32>,
    /// Tune on this number of resamples of the segments, to see how much each weight varies.
    ///
    /// A resample is learned from the tuned weights and, unless the objective is convex, from two random points. For mert, each
    /// of the three is a single climb, and the table shows the stability of the weights, not a confidence interval. A
    /// penalty that --l1 has chosen is not chosen again.
    #[arg(long, value_name = "B", value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    bootstrap: Option<u32>,
    /// Source text of the test set, to be decoded: scored, not used for tuning.
    #[arg(long, value_name = "FILE", requires = "decoder")]
    test_source: Option<PathBuf>,
    /// References of the test set; repeatable.
    #[arg(long, value_name = "FILE")]
    test_ref: Vec<PathBuf>,
}

/// The selection set or the test set.
struct HeldOut<'a> {
    name: &'static str,
    source: Option<&'a Path>,
    nbest: &'a [PathBuf],
    references: &'a [PathBuf],
}

impl HeldOutArgs {
    /// What `make` makes of the selection set and of the test set.
    fn each<T>(&self, mut make: impl FnMut(HeldOut<'_>) -> Result<T>) -> Result<[T; 2]> {
        let select = HeldOut {
            name: "select",
            source: self.select_source.as_deref(),
            nbest: &self.select_nbest,
            references: &self.select_ref,
        };
        let test = HeldOut {
            name: "test",
            source: self.test_source.as_deref(),
            nbest: &self.test_nbest,
            references: &self.test_ref,
        };
        Ok([make(select)?, make(test)?])
    }
}

/// Sources of candidates and the weights to begin with.
pub(super) struct Loaded {
    pub(super) source: Box<dyn Source>,
    pub(super) select: Option<Box<dyn Source>>,
    pub(super) test: Option<Box<dyn Source>>,
    pub(super) initial: Weights,
    /// Whether the initial weights come from the lists that are learned from.
    pub(super) from_lists: bool,
    /// Key of the group of each segment: segments of a group are held out together.
    pub(super) groups: Vec<u128>,
}

/// Tokenisers and truecasers of a model that translates raw text.
#[derive(Clone)]
pub(super) struct RawText {
    model: Arc<TextModel>,
    /// Whether forests are learned from: then texts are scored as the model's tokens, else as raw text.
    pub(super) as_tokens: bool,
}

impl RawText {
    /// Replaces reference lines by the model's tokens if texts are scored as tokens.
    fn prepare_references(&self, files: &mut [Lines], sentences: &[String]) {
        if !self.as_tokens {
            return;
        }
        for (s, sentence) in sentences.iter().enumerate() {
            let sentence = self.model.prepare(Side::Source, sentence);
            for line in files.iter_mut().filter_map(|f| f.lines.get_mut(s)) {
                *line = self.model.prepare_reference(&sentence, line).tokens;
            }
        }
    }

    /// Returns the sentences as [`InProcess`] takes them.
    fn prepare_sentences(&self, sentences: Vec<String>) -> Vec<String> {
        if !self.as_tokens {
            return sentences;
        }
        sentences.iter().map(|line| self.model.prepare(Side::Source, line).tokens).collect()
    }

    /// Returns the model if texts are scored as raw text.
    fn for_decoder(&self) -> Option<Arc<TextModel>> {
        (!self.as_tokens).then(|| self.model.clone())
    }
}

/// More features than this are beyond MERT's reach, and slow for line searches.
const MANY: usize = 50;

/// Reads everything that a run needs but its references, which are given, and records it in `spec`.
pub(super) fn load(
    input: &Input,
    (metric, raw): (&Metric, Option<&RawText>),
    (files, rows): (&[Lines], Option<Rows>),
    references: &[Vec<String>],
    spec: &mut RunSpec,
    talk: Talk,
) -> Result<Loaded> {
    input.check_moses_ini()?;
    input.check_forests(&spec.recipe)?;
    spec.nbest_options = NbestOptions::new(&input.nbest.options(), input.nbest.allow_missing);
    record(spec, "ref", files);
    let dir = input.model.as_deref().map(ModelDir::open).transpose()?;
    let own = dir.as_ref().map(ModelDir::weights);
    let start = input.init.clone().or(input.moses_ini.clone()).or(own);
    let initial = start.as_deref().map_or(Ok(Weights::default()), read_weights)?;
    let mut reader = Reader {
        input,
        metric,
        raw,
        files,
        rows,
        references,
        spec,
        start,
        initial,
        groups: Vec::new(),
        talk,
    };
    let (source, [select, test]) = match (&input.source, &input.command, &dir) {
        (None, ..) => reader.lists()?,
        (Some(text), Some(command), _) => reader.by_command(command, text)?,
        (Some(text), None, Some(dir)) => reader.by_model(dir, text)?,
        (Some(_), None, None) => return Err(Error::new("--source needs --model or --command")),
    };
    let from_lists = reader.start.is_none() && input.source.is_none();
    let (initial, groups) = (reader.initial, reader.groups);
    if from_lists {
        FROM_LISTS.clone_into(&mut spec.init);
    } else {
        spec.set_init(&initial, SMALL);
    }
    let number = |s: u32| Fingerprint::default().bytes(s.to_string().as_bytes()).finish();
    let groups = if groups.is_empty() { (0..source.segments()).map(number).collect() } else { groups };
    Ok(Loaded { source, select, test, initial, from_lists, groups })
}

/// A source, and the held-out sets to select and to test with.
type Sources = (Box<dyn Source>, [Option<Box<dyn Source>>; 2]);

/// Reads the candidates of a run, or prepares their decoder.
struct Reader<'a> {
    input: &'a Input,
    metric: &'a Metric,
    /// Tokenisers of the model, if it translates raw text.
    raw: Option<&'a RawText>,
    files: &'a [Lines],
    /// Lists that have been read for their references.
    rows: Option<Rows>,
    references: &'a [Vec<String>],
    spec: &'a mut RunSpec,
    /// Where the initial weights come from.
    start: Option<PathBuf>,
    initial: Weights,
    /// Key of the group of each segment of lists.
    groups: Vec<u128>,
    talk: Talk,
}

impl Reader<'_> {
    /// Reads the n-best lists of --nbest and of the held-out sets.
    fn lists(&mut self) -> Result<Sources> {
        let clock = Instant::now();
        let (input, metric, talk) = (self.input, self.metric, self.talk);
        for path in &input.moses_scores {
            let scores = text::read_lines(path)?;
            record(self.spec, "moses-scores", &[scores]);
        }
        let rows = self.rows.take().map_or_else(|| input.nbest.read(talk), Ok)?;
        if !input.references.is_empty() {
            say_other_references(&rows, talk);
        }
        let (lists, rows) = fixed(input, metric, (self.files, rows), self.spec.recipe.learns_sparse(), talk)?;
        let held = input.held_out.each(|set| set.lists(input, metric, &rows, self.spec, talk))?;
        self.spec.recipe.check_features(rows.names.names())?;
        if let Some(path) = &self.start {
            check_names(&self.initial, path, &rows, Some(metric), talk)?;
            keep_features(&mut self.initial, &rows.names, metric);
        }
        record_rows(self.spec, "nbest", &rows);
        talk.say(&format!(
            "read {} candidates of {} segments, {} distinct, in {:.2} s",
            thousands(rows.len()),
            thousands(lists.len()),
            thousands(lists.iter().map(|l| l.k).sum()),
            clock.elapsed().as_secs_f64()
        ));
        self.groups = segment_keys(&rows, lists.len())?;
        let source = FixedLists::new(lists, rows.names);
        if self.start.is_none() {
            self.initial = source.initial_weights(metric)?;
        }
        Ok((Box::new(source), held))
    }

    /// The text that a decoder translates. Its settings are recorded, too.
    fn source(&mut self, path: &Path) -> Result<Vec<String>> {
        let sentences = read_source("source", path, self.files, self.references.len(), self.spec)?;
        if self.spec.recipe.forest_density().is_none() {
            self.spec.nbest_size = Some(self.input.k());
        }
        // Moses does not tune it and does not list it: scaled with the others it would lose its effect.
        let untuned: Vec<FeatureKey> =
            (0..10).map(|i| FeatureKey::of(&DenseFeature::UnknownWordPenalty.block(i))).collect();
        self.initial.retain(|key| !untuned.contains(&key));
        Ok(sentences)
    }

    /// Prepares an external decoder for all sets.
    fn by_command(&mut self, command: &str, path: &Path) -> Result<Sources> {
        if self.start.is_none() {
            return Err(Error::new("--command needs initial weights")
                .hint("give --init FILE with one `name value` per line, or --moses-ini FILE"));
        }
        self.source(path)?;
        let (input, metric) = (self.input, self.metric);
        self.spec.command = Some(command.to_owned());
        let held = input.held_out.each(|set| {
            let Some((text, _, files)) = set.text(metric, self.spec)? else { return Ok(None) };
            let (references, file) = (by_segment(&files)?, reference_file(&files));
            let made = external(input, command, (&text, set.name), metric, references, file)?;
            Ok(Some(Box::new(made) as Box<dyn Source>))
        })?;
        let (references, file) = (self.references.to_vec(), reference_file(self.files));
        let own = external(input, command, (path, ""), metric, references, file)?;
        Ok((Box::new(own), held))
    }

    /// Prepares the built-in decoder for all sets. Initial weights of features that the model does not have are dropped.
    fn by_model(&mut self, dir: &ModelDir, path: &Path) -> Result<Sources> {
        let sentences = self.source(path)?;
        let (input, metric, raw) = (self.input, self.metric, self.raw);
        let sentences = raw.map_or_else(|| sentences.clone(), |raw| raw.prepare_sentences(sentences.clone()));
        let (model, limits, digests) = self.open_model(dir)?;
        let held = input.held_out.each(|set| {
            let Some((_, mut sentences, mut files)) = set.text(metric, self.spec)? else { return Ok(None) };
            if let Some(raw) = raw {
                raw.prepare_references(&mut files, &sentences);
                sentences = raw.prepare_sentences(sentences);
            }
            let references = by_segment(&files)?;
            let made = InProcess::new(model.clone(), sentences, limits, 1, metric, &references);
            Ok(Some(Box::new(made.on_raw_text(raw.and_then(RawText::for_decoder))) as Box<dyn Source>))
        })?;
        self.place_weights(&model)?;
        self.spec.recipe.check_features(model.names())?;
        let recipe = &self.spec.recipe;
        let own =
            InProcess::new(model.clone(), sentences, limits, input.k() as usize, metric, self.references)
                .on_raw_text(raw.and_then(RawText::for_decoder));
        let forests = match &input.forests {
            Some(path) => {
                let forests = open_forests(path, &digests, &model, limits)?;
                check_sentences(path, &forests, own.sentences())?;
                Some(forests)
            }
            None => None,
        };
        let own = own
            .with_forests(forests)
            .on_forests(recipe.forest_density())
            .smoothed(recipe.sentence_smoothing());
        Ok((Box::new(own), held))
    }

    /// The decoder's model, its limits, and digests of its files: a model counts by what is in them.
    fn open_model(&mut self, dir: &ModelDir) -> Result<(Arc<Model>, Limits, Vec<String>)> {
        if let Some(column) = self.metric.columns().first() {
            return Err(Error::new(format!(
                "the metric reads column `{column}`, which a decoder does not produce"
            ))
            .hint("tune for such a metric on n-best lists that have it"));
        }
        let digests = dir.digests()?;
        let limits = self.input.limits.resolve(&dir.config);
        let recipe = &self.spec.recipe;
        if self.input.features.has_sparse() && !recipe.learns_sparse() {
            let name = recipe.info().name;
            return Err(Error::new(format!("{name} tunes dense features only, but --sparse is given"))
                .hint("leave --sparse out, or use another algorithm, such as mira or pro"));
        }
        let mut model = Model::open(dir)?;
        self.input.features.apply(&mut model, &self.initial)?;
        self.spec.set_search(&SearchSpec::new(&dir.config, &digests, &model, limits))?;
        Ok((Arc::new(model), limits, digests))
    }

    /// Leaves weights of the model's features, and gives 0 to those that have none: what is decoded first is what is written
    /// first.
    fn place_weights(&mut self, model: &Model) -> Result<()> {
        if let Some(path) = &self.start {
            check_weights(&self.initial, path, model, self.talk)?;
            let mut keys: Vec<FeatureKey> = model.names().iter().map(|n| FeatureKey::of(n)).collect();
            let on = model.templates();
            let sparse = |n: &str| Template::ALL.iter().any(|t| on.has(*t) && n.starts_with(t.prefix()));
            keys.extend(self.initial.iter().filter(|w| sparse(w.0)).map(|w| FeatureKey::of(w.0)));
            keys.sort_unstable();
            self.initial.retain(|key| keys.binary_search(&key).is_ok());
        }
        model.names().iter().try_for_each(|name| self.initial.place(FeatureKey::of(name), name).map(drop))
    }
}

/// Records files that were read in a role.
fn record(spec: &mut RunSpec, role: &str, files: &[Lines]) {
    spec.inputs.extend(files.iter().map(|f| InputFile::new(role, &f.file, &f.digest)));
}

/// Records n-best files that were read in a role.
fn record_rows(spec: &mut RunSpec, role: &str, rows: &Rows) {
    spec.inputs.extend(rows.files.iter().map(|f| InputFile::new(role, &f.name, &f.digest)));
}

/// Saved forests must be those of the text.
fn check_sentences(path: &Path, forests: &Forests, sentences: &[String]) -> Result<()> {
    let name = path.display().to_string();
    let hint = "make forests of this --source with `luthier decode --forest-kind grammar`";
    if forests.len() != sentences.len() {
        let message = format!("has {} sentences, but --source has {}", forests.len(), sentences.len());
        return Err(Error::in_file(name, message).hint(hint));
    }
    match (0..sentences.len()).find(|&s| forests.sentence(s) != sentences[s]) {
        None => Ok(()),
        Some(s) => {
            let message = format!("sentence {} is not line {} of --source", s + 1, s + 1);
            Err(Error::in_file(name, message).hint(hint))
        }
    }
}

/// References of each segment.
pub(super) fn by_segment(files: &[Lines]) -> Result<Vec<Vec<String>>> {
    let references = text::by_segment(files)?;
    Ok(references.iter().map(|r| r.iter().map(ToString::to_string).collect()).collect())
}

/// A text with its lines, and references.
type Text = (PathBuf, Vec<String>, Vec<Lines>);

impl HeldOut<'_> {
    /// Reads the references of a held-out set. Fails if there are none and the metric needs them.
    fn read_references(&self, metric: &Metric, spec: &mut RunSpec) -> Result<Vec<Lines>> {
        let name = self.name;
        if self.references.is_empty() && metric.columns().is_empty() {
            return Err(Error::new(format!("no references for the {name} set"))
                .hint(format!("give them with --{name}-ref FILE")));
        }
        let files = read_references(self.references)?;
        check_references(&files, metric)?;
        record(spec, &format!("{name}-ref"), &files);
        Ok(files)
    }

    /// Fails if references are given without what they belong to.
    fn check(&self, option: &str) -> Result<()> {
        if self.references.is_empty() {
            return Ok(());
        }
        let name = self.name;
        Err(Error::new(format!("--{name}-ref is given without --{name}-{option}"))
            .hint(format!("give both, or leave --{name}-ref out")))
    }

    /// Reads source text and references of a held-out set for a decoder; `None` if the set is not given.
    fn text(&self, metric: &Metric, spec: &mut RunSpec) -> Result<Option<Text>> {
        let Some(path) = self.source else { return self.check("source").map(|()| None) };
        let files = self.read_references(metric, spec)?;
        let segments = files.first().map_or(0, |f| f.lines.len());
        let sentences = read_source(&format!("{}-source", self.name), path, &files, segments, spec)?;
        Ok(Some((path.to_owned(), sentences, files)))
    }

    /// Lists that were made before, with features that occur in those that are learned from.
    fn lists(
        &self,
        input: &Input,
        metric: &Metric,
        learned: &Rows,
        spec: &mut RunSpec,
        talk: Talk,
    ) -> Result<Option<Box<dyn Source>>> {
        if self.nbest.is_empty() {
            return self.check("nbest").map(|()| None);
        }
        let mut rows = Rows::default();
        for path in self.nbest {
            luthier::io::nbest::read(path, &input.nbest.options(), &mut rows)?;
        }
        if !input.nbest.allow_missing {
            rows.count_from_zero();
        }
        say_usage(&rows, talk);
        let own = if self.references.is_empty() { own_references(&rows)? } else { Vec::new() };
        let files = if own.is_empty() { self.read_references(metric, spec)? } else { own };
        record_rows(spec, &format!("{}-nbest", self.name), &rows);
        if !rows.names.keys().iter().any(|k| learned.names.get(*k).is_some()) {
            let message = format!("the {} lists share no feature with the lists to learn from", self.name);
            return Err(Error::in_file(self.nbest[0].display().to_string(), message)
                .hint(format!("those have {}", learned.names.names().join(", "))));
        }
        let dense = columns(learned, Some(metric));
        let missing = dense.keys().iter().filter(|key| rows.names.get(**key).is_none());
        let missing: Vec<&str> = missing.filter_map(|key| learned.names.get(*key)).collect();
        if !missing.is_empty() {
            let (name, missing) = (self.name, missing.join(", "));
            talk.warn(&format!("the {name} lists have no feature {missing}: taken as 0 there"));
        }
        let references = references_of(&files, &rows, input.nbest.allow_missing)?;
        let mut judge = Judge::new(metric, &references, reference_file(&files));
        judge.allow_missing = input.nbest.allow_missing;
        let lists = lists(&rows, &columns(&rows, Some(metric)), Some(judge))?;
        Ok(Some(Box::new(FixedLists::new(lists, rows.names))))
    }
}

fn share(text: &str) -> std::result::Result<f64, String> {
    let share: Option<f64> = text.parse().ok().filter(|v: &f64| *v > 0.0 && *v < 1.0);
    share.ok_or_else(|| "expected a number above 0 and below 1".to_owned())
}

/// The text for a decoder, which must go with the references.
fn read_source(
    role: &str,
    path: &Path,
    files: &[Lines],
    segments: usize,
    spec: &mut RunSpec,
) -> Result<Vec<String>> {
    let source = text::read_lines(path)?;
    if source.lines.len() != segments {
        let message = format!(
            "the source has {} lines, but {} has {segments}",
            source.lines.len(),
            reference_file(files)
        );
        return Err(Error::in_file(source.file, message).hint("both need one line per segment"));
    }
    spec.inputs.push(InputFile::new(role, path.display().to_string(), &source.digest));
    Ok(source.lines)
}

fn external(
    input: &Input,
    command: &str,
    (source, set): (&Path, &str),
    metric: &Metric,
    references: Vec<Vec<String>>,
    reference_file: &str,
) -> Result<External> {
    let external = External {
        command: command.to_owned(),
        source: source.to_owned(),
        k: if set.is_empty() { input.k() } else { 1 },
        dir: Path::new("decode").join(set),
        metric: metric.clone(),
        references,
        reference_file: reference_file.to_owned(),
        options: input.nbest.options(),
        allow_missing: input.nbest.allow_missing,
        // The decoder is not a process of the job.
        hidden: launch::variables(),
        memory: Memory::default(),
    };
    external.check()?;
    Ok(external)
}

/// Reads and judges fixed lists.
fn fixed(
    input: &Input,
    metric: &Metric,
    (files, rows): (&[Lines], Rows),
    sparse: bool,
    talk: Talk,
) -> Result<(Vec<Candidates>, Rows)> {
    let references = references_of(files, &rows, input.nbest.allow_missing)?;
    let stats = moses_scores(&input.moses_scores, &rows)?;
    let mut judge = Judge::new(metric, &references, reference_file(files));
    judge.allow_missing = input.nbest.allow_missing;
    judge.given = input.has_statistics().then_some(&stats[..]);
    let columns = columns(&rows, Some(metric));
    let lists = lists(&rows, &columns, Some(judge))?;
    if sparse {
        return Ok((lists, rows));
    }
    let (all, dense) = (rows.names.names().len(), columns.keys().len());
    if dense == 0 {
        return Err(Error::new(format!(
            "none of the {all} features occurs in half of the candidates, so there is no dense feature to tune"
        ))
        .hint("use pro, apro, mira, softmax, xbleu or risk, which tune sparse features"));
    }
    if all > dense + metric.columns().len() {
        talk.warn(&format!(
            "tuning the {dense} of {all} features that occur in most candidates; the others keep their weights"
        ));
    } else if dense > MANY {
        talk.warn(&format!("{dense} features are many for line searches: results will vary with the seed"));
    }
    Ok((lists, rows))
}

/// Statistics of every row, from files that go with the feature files.
fn moses_scores(paths: &[PathBuf], rows: &Rows) -> Result<Vec<f32>> {
    let mut stats = Vec::new();
    let mut row = 0;
    for path in paths {
        for (segment, numbers) in read_scores(path)? {
            if row >= rows.len() || rows.segment(row) != segment {
                let message = format!(
                    "candidate {row} belongs to segment {segment}, not to the segment of that candidate in --nbest"
                );
                return Err(Error::in_file(path.display().to_string(), message).hint(
                    "give the score files that were written with the feature files, in the same order",
                ));
            }
            stats.extend(numbers);
            row += 1;
        }
    }
    match paths.last() {
        Some(last) if row < rows.len() => {
            let message = format!("found statistics of {row} candidates, expected {}", rows.len());
            Err(Error::in_file(last.display().to_string(), message)
                .hint("one --moses-scores file is missing"))
        }
        _ => Ok(stats),
    }
}

impl Input {
    /// What candidates come from.
    pub(super) fn kind(&self) -> SourceKind {
        if self.command.is_some() {
            SourceKind::Command
        } else if self.model.is_some() {
            SourceKind::Decoder
        } else {
            SourceKind::Fixed
        }
    }

    /// Which segments are held out.
    pub(super) fn hold_out(&self) -> Option<HoldOut> {
        self.held_out.holdout.map(HoldOut::Share).or(self.held_out.folds.map(HoldOut::Folds))
    }

    /// Number of resamples of the segments.
    pub(super) fn resamples(&self) -> Option<u32> {
        self.held_out.bootstrap
    }

    /// Whether a set for the selection of weights was given.
    pub(super) fn has_selection_set(&self) -> bool {
        self.held_out.select_source.is_some() || !self.held_out.select_nbest.is_empty()
    }

    /// Whether statistics of the candidates were given instead of references.
    pub(super) fn has_statistics(&self) -> bool {
        !self.moses_scores.is_empty()
    }

    /// Tokenisers and truecasers of --model; `None` without it, or if its text is tokenised.
    pub(super) fn raw_text(&self, recipe: &Recipe) -> Result<Option<RawText>> {
        let Some(path) = self.model.as_deref().map(ModelDir::open).transpose()?.and_then(|dir| dir.text())
        else {
            return Ok(None);
        };
        let as_tokens = recipe.forest_density().is_some();
        if as_tokens && self.metric.has_tokenizer() {
            return Err(Error::new(
                "--tokenize has no effect with --on forest, which scores the tokens of the model",
            )
            .hint("leave it out, or use --on nbest"));
        }
        Ok(Some(RawText { model: Arc::new(TextModel::load(&path)?), as_tokens }))
    }

    /// The references to tune with.
    pub(super) fn read_references(
        &self,
        (metric, raw): (&Metric, Option<&RawText>),
        talk: Talk,
    ) -> Result<(Vec<Lines>, Option<Rows>)> {
        check_distinct(&self.nbest.nbest, &self.references)?;
        let mut files = read_references(&self.references)?;
        let mut rows = None;
        if files.is_empty() && self.source.is_none() && !self.has_statistics() && metric.needs_references() {
            let read = self.nbest.read(talk)?;
            files = own_references(&read)?;
            rows = Some(read);
        }
        if !self.has_statistics() {
            check_references(&files, metric)?;
        }
        if let (Some(raw), Some(source)) = (raw, &self.source) {
            raw.prepare_references(&mut files, &text::read_lines(source)?.lines);
        }
        if let Some(first) = files.first() {
            MetricArgs::check_tokens(metric, &first.file, first.lines.iter().map(String::as_str), talk);
        }
        Ok((files, rows))
    }

    /// Candidates per segment.
    fn k(&self) -> u32 {
        self.nbest_size.unwrap_or(100)
    }

    /// Flags that have no effect where forests are learned from.
    fn check_forests(&self, recipe: &Recipe) -> Result<()> {
        if recipe.forest_density().is_some() && self.nbest_size.is_some() {
            return Err(Error::new("--nbest-size has no effect with --on forest").hint("use --density"));
        }
        if recipe.forest_density().is_some() && self.features.has_sparse() {
            return Err(Error::new("--on forest tunes dense features only, but --sparse is given")
                .hint("leave it out, or use --on nbest"));
        }
        Ok(())
    }

    /// Whether there is a configuration to put weights into, and a place for it: asked before the work, not after it.
    fn check_moses_ini(&self) -> Result<()> {
        let Some(path) = &self.moses_ini else { return Ok(()) };
        let ini = text::read_lines(path)?;
        moses_ini::replace(&ini.file, &ini.lines.join("\n"), &Weights::default())?;
        match self.moses_ini_out.as_ref().and_then(|p| p.parent()) {
            Some(parent) if !parent.as_os_str().is_empty() && !parent.is_dir() => Err(Error::in_file(
                parent.display().to_string(),
                "is not a directory, so --moses-ini-out cannot be written there",
            )),
            _ => Ok(()),
        }
    }

    /// Puts tuned weights into a Moses configuration.
    pub(super) fn write_moses_ini(&self, weights: &Weights, talk: Talk) -> Result<()> {
        let (Some(from), Some(to)) = (&self.moses_ini, &self.moses_ini_out) else { return Ok(()) };
        let name = from.display().to_string();
        let text = std::fs::read_to_string(from).map_err(|e| Error::io(&name, "read it", &e))?;
        let known = luthier::io::parse_weights(&name, &text)?;
        let lost: Vec<&str> =
            weights.iter().map(|(n, _)| n).filter(|n| !known.contains(FeatureKey::of(n))).collect();
        if !lost.is_empty() {
            talk.warn(&format!(
                "{name} has no line for {}: their weights are in best.txt only",
                lost.join(", ")
            ));
        }
        AtomicFile::write_all_to(to, moses_ini::replace(&name, &text, weights)?.as_bytes())
    }
}
