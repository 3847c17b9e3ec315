//! What every algorithm takes, read and checked before any work begins.

use super::{Plan, mert::keys};
use crate::{
    command::{
        check_names,
        decode::{check_weights, open_forests},
        keep_features, read_references,
        spec::settings_of,
    },
    lists::{ListArgs, check_references, reference_file, references_of},
    talk::{Talk, thousands},
    world,
};
use luthier::{
    core::{Error, FeatureKey, Fingerprint, Result, Weights},
    decode::{DenseFeature, FeatureSelection, Forests, Limits, Model, ModelDir, SearchSpec, Template},
    decoder::InProcess,
    external::{External, Memory},
    io::{
        AtomicFile, Settings, moses_ini,
        nbest::{Rows, read_scores},
        text,
    },
    metric::Metric,
    tune::{FixedLists, Judge, SMALL, Source, columns, lists},
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

/// What every algorithm needs.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("decoder").args(["command", "model"])))]
pub(super) struct Input {
    #[command(flatten)]
    nbest: ListArgs,
    /// A decoder to run in every iteration instead of fixed lists: a shell command with {weights} (a file) or
    /// '{weights:moses}', and {source}, {k}, {iteration}, {nbest} (else the list is its standard output).
    #[arg(long, value_name = "CMD", conflicts_with = "nbest", requires = "source")]
    command: Option<String>,
    /// A model directory of `train` or `import`: its decoder makes lists in every iteration.
    #[arg(long, value_name = "DIR", conflicts_with = "nbest", requires = "source")]
    model: Option<PathBuf>,
    /// The text that the decoder translates.
    #[arg(long, value_name = "FILE", requires = "decoder")]
    source: Option<PathBuf>,
    /// Forests of that text, saved by `decode --forest-kind grammar`: rescored in every iteration instead of parsing again.
    #[arg(long, value_name = "FILE", requires = "model")]
    forests: Option<PathBuf>,
    /// Candidates per segment to ask the decoder for [default: 100].
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    nbest_size: Option<u32>,
    /// Iterations of a decoder at most, and epochs of online learning; else fixed lists have one [default: 25; pro and apro:
    /// 30; online: 10].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) iterations: Option<u32>,
    /// References, one segment a line; repeat it for several. Not needed for columns.
    #[arg(long = "ref", value_name = "FILE")]
    references: Vec<PathBuf>,
    /// BLEU statistics of Moses' extractor instead of references, one file per feature file in --nbest.
    #[arg(long, num_args = 1.., value_name = "FILE", conflicts_with_all = ["references", "metric", "command"])]
    pub(super) moses_scores: Vec<PathBuf>,
    /// What to tune for. Candidates are taken to be in tokens already (tokenize=none).
    #[arg(long, short, default_value = "bleu", value_name = "METRIC")]
    pub(super) metric: String,
    /// Initial weights: `name value` a line, or a Moses configuration [default: those of the model, else all 0].
    #[arg(long, value_name = "FILE")]
    init: Option<PathBuf>,
    /// A Moses configuration: initial weights, unless --init gives them.
    #[arg(long, value_name = "FILE")]
    moses_ini: Option<PathBuf>,
    /// Write that configuration again with the tuned weights.
    #[arg(long, value_name = "FILE", requires = "moses_ini")]
    moses_ini_out: Option<PathBuf>,
    /// Directory of this run: made new, or gone on with.
    #[arg(long, value_name = "DIR")]
    pub(super) run: PathBuf,
    /// Print the result as JSON.
    #[arg(long)]
    pub(super) json: bool,
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
    /// Text that is decoded after every iteration: the weights that score best on it are the answer.
    #[arg(long, value_name = "FILE", requires = "decoder")]
    select_source: Option<PathBuf>,
    /// N-best lists instead, with --nbest.
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["decoder", "select_source"])]
    select_nbest: Vec<PathBuf>,
    /// Its references; repeat it for several.
    #[arg(long, value_name = "FILE")]
    select_ref: Vec<PathBuf>,
    /// Text that is decoded after every iteration and only reported.
    #[arg(long, value_name = "FILE", requires = "decoder")]
    test_source: Option<PathBuf>,
    /// N-best lists instead, with --nbest.
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["decoder", "test_source"])]
    test_nbest: Vec<PathBuf>,
    /// Its references; repeat it for several.
    #[arg(long, value_name = "FILE")]
    test_ref: Vec<PathBuf>,
    /// Stop when so many iterations in a row bring no better score, on the selection set if there is one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    patience: Option<u32>,
}

/// One of them.
struct HeldOut<'a> {
    name: &'static str,
    source: Option<&'a Path>,
    nbest: &'a [PathBuf],
    references: &'a [PathBuf],
}

impl HeldOutArgs {
    /// What becomes of the set to select with, and of the one to test with.
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

/// Everything that was read.
pub(super) struct Loaded {
    pub(super) source: Box<dyn Source>,
    pub(super) select: Option<Box<dyn Source>>,
    pub(super) test: Option<Box<dyn Source>>,
    pub(super) initial: Weights,
    pub(super) references: Vec<Vec<String>>,
    /// How many references a segment has.
    pub(super) reference_count: Option<usize>,
    pub(super) settings: Settings,
}

/// More features than this are beyond MERT's reach, and slow for line searches.
const MANY: usize = 50;

pub(super) fn load(input: &Input, metric: &Metric, plan: &Plan<'_>, talk: Talk) -> Result<Loaded> {
    let clock = Instant::now();
    let files = read_references(&input.references)?;
    if input.moses_scores.is_empty() {
        check_references(&files, metric)?;
    }
    input.check_moses_ini()?;
    let dir = input.model.as_deref().map(ModelDir::open).transpose()?;
    let own = dir.as_ref().map(ModelDir::weights);
    let start = input.init.as_ref().or(input.moses_ini.as_ref()).or(own.as_ref());
    let mut initial = start.map_or(Ok(Weights::default()), |path| luthier::io::read_weights(path))?;
    let mut settings = Settings::default();
    settings.add("metric", &input.metric);
    // The extractor's statistics do not tell how many references there were.
    let reference_count = input.moses_scores.is_empty().then_some(files.len());
    settings.add("signature", metric.signature(reference_count, ""));
    let digests = |files: Vec<(&String, &String)>| {
        files.iter().map(|(name, digest)| format!("{name} {digest}")).collect::<Vec<_>>().join(", ")
    };
    settings.add("nbest-options", input.nbest.settings());
    let scores = input.moses_scores.iter().map(|p| text::read_lines(p)).collect::<Result<Vec<_>>>()?;
    settings.add("moses-scores", digests(scores.iter().map(|f| (&f.file, &f.digest)).collect()));
    settings.add("ref", digests(files.iter().map(|f| (&f.file, &f.digest)).collect()));
    let owned = by_segment(&files)?;
    if let Some(patience) = input.held_out.patience {
        settings.add("patience", patience);
    }
    if plan.density.is_some() && input.model.is_none() {
        return Err(Error::new("--on forest needs --model: only our own decoder gives forests")
            .hint("lists of --nbest and --command are for --on nbest"));
    }
    if plan.density.is_some() && input.nbest_size.is_some() {
        return Err(Error::new("--nbest-size has no effect with --on forest").hint("see --density"));
    }
    if plan.density.is_some() && input.features.has_sparse() {
        return Err(Error::new("--on forest tunes dense features only, so --sparse has no use")
            .hint("leave it out, or use --on nbest"));
    }
    let (source, [select, test]) = if let Some(text) = &input.source {
        let sentences = read_source(text, &files, owned.len(), &mut settings)?;
        if plan.density.is_none() {
            settings.add("nbest-size", input.k());
        }
        settings.add("iterations", plan.schedule.iterations);
        settings.add("psi", plan.schedule.psi);
        settings.add("reset-at", plan.schedule.reset_at.unwrap_or(0));
        // Moses does not tune it and does not list it: scaled with the others it would lose its effect.
        let untuned: Vec<FeatureKey> =
            (0..10).map(|i| FeatureKey::of(&DenseFeature::UnknownWordPenalty.block(i))).collect();
        initial.retain(|key| !untuned.contains(&key));
        let task = Task { input, metric, plan, references: &owned, file: reference_file(&files) };
        match (&input.command, &dir) {
            (Some(command), _) => task.by_command(command, text, &mut settings)?,
            (None, Some(dir)) => {
                let path = start.map(PathBuf::as_path);
                task.by_model(dir, sentences, (&mut initial, path), &mut settings, talk)?
            }
            (None, None) => return Err(Error::new("--source needs --model or --command")),
        }
    } else {
        let (lists, rows) = fixed(input, metric, &files, plan.sparse, talk)?;
        let held = input.held_out.each(|set| set.lists(input, metric, &rows, &mut settings))?;
        check_mentioned(&plan.mentioned, rows.names.names())?;
        if let Some(path) = start {
            check_names(&initial, path, &rows, Some(metric), talk)?;
            keep_features(&mut initial, &rows, metric);
        }
        settings.add("nbest", digests(rows.files.iter().map(|f| (&f.name, &f.digest)).collect()));
        talk.say(&format!(
            "read {} candidates, {} of them different, in {:.2} s",
            thousands(rows.len()),
            thousands(lists.iter().map(|l| l.k).sum()),
            clock.elapsed().as_secs_f64()
        ));
        (Box::new(FixedLists::new(lists, rows.names)) as Box<dyn Source>, held)
    };
    settings.add("init", short(&initial));
    Ok(Loaded { source, select, test, initial, references: owned, reference_count, settings })
}

/// A source, and the held-out sets to select and to test with.
type Sources = (Box<dyn Source>, [Option<Box<dyn Source>>; 2]);

/// What a decoder is to do.
struct Task<'a> {
    input: &'a Input,
    metric: &'a Metric,
    plan: &'a Plan<'a>,
    references: &'a [Vec<String>],
    /// The reference file, for messages.
    file: &'a str,
}

impl Task<'_> {
    /// With another program.
    fn by_command(&self, command: &str, text: &Path, settings: &mut Settings) -> Result<Sources> {
        let Task { input, metric, plan, .. } = *self;
        if plan.schedule.online.is_some() {
            let message =
                format!("{} decodes a few segments at a time, which --command cannot do", plan.name);
            return Err(Error::new(message).hint("use --model, or --nbest with lists that were made before"));
        }
        settings.add("command", command);
        let held = input.held_out.each(|set| {
            let Some((text, _, files)) = set.read(metric, settings)? else { return Ok(None) };
            let (references, file) = (by_segment(&files)?, reference_file(&files));
            let made = external(input, command, (&text, set.name), metric, references, file)?;
            Ok(Some(Box::new(made) as Box<dyn Source>))
        })?;
        let own = external(input, command, (text, ""), metric, self.references.to_vec(), self.file)?;
        Ok((Box::new(own), held))
    }

    /// With our own decoder. Initial weights lose what the model does not have.
    fn by_model(
        &self,
        dir: &ModelDir,
        sentences: Vec<String>,
        (initial, path): (&mut Weights, Option<&Path>),
        settings: &mut Settings,
        talk: Talk,
    ) -> Result<Sources> {
        let Task { input, metric, plan, .. } = *self;
        let (model, limits, digests) = open_model(input, dir, metric, initial, plan, settings)?;
        let held = input.held_out.each(|set| {
            let Some((_, sentences, files)) = set.read(metric, settings)? else { return Ok(None) };
            let references = by_segment(&files)?;
            let made = InProcess::new(model.clone(), sentences, limits, 1, metric, &references);
            Ok(Some(Box::new(made) as Box<dyn Source>))
        })?;
        if let Some(path) = path {
            check_weights(initial, path, model.names(), talk)?;
            let mut keys: Vec<FeatureKey> = model.names().iter().map(|n| FeatureKey::of(n)).collect();
            let on = model.templates();
            let sparse = |n: &str| Template::ALL.iter().any(|t| on.has(*t) && n.starts_with(t.prefix()));
            keys.extend(initial.iter().filter(|w| sparse(w.0)).map(|w| FeatureKey::of(w.0)));
            keys.sort_unstable();
            initial.retain(|key| keys.binary_search(&key).is_ok());
        }
        check_mentioned(&plan.mentioned, model.names())?;
        // What is decoded first is what is written first: features without weight have 0 from the start.
        for name in model.names() {
            initial.place(FeatureKey::of(name), name)?;
        }
        let k = input.k() as usize;
        let forests = input.forests.as_ref().map(|path| {
            let forests = open_forests(path, &digests, &model, limits)?;
            check_sentences(path, &forests, &sentences)?;
            Ok::<_, Error>(forests)
        });
        let forests = forests.transpose()?;
        let own = InProcess::new(model, sentences, limits, k, metric, self.references)
            .with_forests(forests)
            .on_forests(plan.density);
        Ok((Box::new(own.smoothed(plan.plus_one)), held))
    }
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
fn by_segment(files: &[text::Lines]) -> Result<Vec<Vec<String>>> {
    let references = text::by_segment(files)?;
    Ok(references.iter().map(|r| r.iter().map(ToString::to_string).collect()).collect())
}

/// A text with its lines, and references.
type Text = (PathBuf, Vec<String>, Vec<text::Lines>);

impl HeldOut<'_> {
    /// The references, which must be there.
    fn read_references(&self, metric: &Metric, settings: &mut Settings) -> Result<Vec<text::Lines>> {
        let name = self.name;
        if self.references.is_empty() && metric.columns().is_empty() {
            return Err(Error::new(format!(
                "no references for the {name} set: give them with --{name}-ref FILE"
            )));
        }
        let files = read_references(self.references)?;
        check_references(&files, metric)?;
        let digests: Vec<String> = files.iter().map(|f| format!("{} {}", f.file, f.digest)).collect();
        settings.add(&format!("{name}-ref"), digests.join(", "));
        Ok(files)
    }

    /// References alone are of no use.
    fn check(&self, option: &str) -> Result<()> {
        if self.references.is_empty() {
            return Ok(());
        }
        let name = self.name;
        Err(Error::new(format!(
            "--{name}-ref without --{name}-{option}: there is nothing to compare with it"
        )))
    }

    /// A text for a decoder.
    fn read(&self, metric: &Metric, settings: &mut Settings) -> Result<Option<Text>> {
        let Some(path) = self.source else { return self.check("source").map(|()| None) };
        let files = self.read_references(metric, settings)?;
        let segments = files.first().map_or(0, |f| f.lines.len());
        let mut own = Settings::default();
        let sentences = read_source(path, &files, segments, &mut own)?;
        for (key, value) in own.iter() {
            settings.add(&format!("{}-{key}", self.name), value);
        }
        Ok(Some((path.to_owned(), sentences, files)))
    }

    /// Lists that were made before, with features that occur in those that are learned from.
    fn lists(
        &self,
        input: &Input,
        metric: &Metric,
        learned: &Rows,
        settings: &mut Settings,
    ) -> Result<Option<Box<dyn Source>>> {
        if self.nbest.is_empty() {
            return self.check("nbest").map(|()| None);
        }
        let files = self.read_references(metric, settings)?;
        let mut rows = Rows::default();
        for path in self.nbest {
            luthier::io::nbest::read(path, &input.nbest.options(), &mut rows)?;
        }
        let digests: Vec<String> = rows.files.iter().map(|f| format!("{} {}", f.name, f.digest)).collect();
        settings.add(&format!("{}-nbest", self.name), digests.join(", "));
        if !rows.names.keys().iter().any(|k| learned.names.get(*k).is_some()) {
            let message = format!("has no feature of the lists that are learned from ({})", self.name);
            return Err(Error::in_file(self.nbest[0].display().to_string(), message)
                .hint(format!("those have {}", learned.names.names().join(", "))));
        }
        let references = references_of(&files, &rows, input.nbest.allow_missing)?;
        let mut judge = Judge::new(metric, &references, reference_file(&files));
        judge.allow_missing = input.nbest.allow_missing;
        let lists = lists(&rows, &columns(&rows, Some(metric)), Some(judge))?;
        Ok(Some(Box::new(FixedLists::new(lists, rows.names))))
    }
}

/// Weights in a line; a digest of them where they are many.
fn short(weights: &Weights) -> String {
    let all = weights.iter().map(|(n, v)| format!("{n} {v}")).collect::<Vec<_>>().join(", ");
    if weights.len() <= SMALL {
        return all;
    }
    format!("{} weights {:032x}", weights.len(), Fingerprint::default().bytes(all.as_bytes()).finish())
}

/// The text for a decoder must go with the references.
fn read_source(
    path: &Path,
    files: &[text::Lines],
    segments: usize,
    settings: &mut Settings,
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
    settings.add("source", format!("{} {}", path.display(), source.digest));
    Ok(source.lines)
}

/// Our own decoder, and digests of its files: a model counts by what is in them.
fn open_model(
    input: &Input,
    dir: &ModelDir,
    metric: &Metric,
    initial: &Weights,
    plan: &Plan<'_>,
    settings: &mut Settings,
) -> Result<(Arc<Model>, Limits, Vec<String>)> {
    if let Some(column) = metric.columns().first() {
        return Err(Error::new(format!(
            "the metric reads the column {column}, which a decoder does not make"
        ))
        .hint("tune for such a metric on n-best lists that have it"));
    }
    let digests = dir.digests()?;
    let limits = input.limits.resolve(&dir.config);
    if input.features.has_sparse() && !plan.sparse {
        return Err(Error::new(format!("{} tunes dense features only, so --sparse has no use", plan.name))
            .hint("perceptron, mira, oro, pro and the other learners tune sparse ones"));
    }
    let mut model = Model::open(dir)?;
    input.features.apply(&mut model, initial)?;
    let search = SearchSpec::new(&dir.config, &digests, &model, limits);
    settings.extend(settings_of(&std::collections::BTreeMap::from([("search", search)]))?);
    Ok((Arc::new(model), limits, digests))
}

/// Features that settings name must exist.
fn check_mentioned(mentioned: &[String], names: &[String]) -> Result<()> {
    let known = |key: FeatureKey| names.iter().any(|n| FeatureKey::of(n) == key);
    match mentioned.iter().find(|name| !keys(name).any(known)) {
        None => Ok(()),
        Some(name) => {
            let some = names.iter().take(20).cloned().collect::<Vec<_>>().join(", ");
            Err(Error::new(format!("no feature is named {name}")).hint(format!("the list has {some}")))
        }
    }
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
        dir: input.run.join("decode").join(set),
        metric: metric.clone(),
        references,
        reference_file: reference_file.to_owned(),
        options: input.nbest.options(),
        allow_missing: input.nbest.allow_missing,
        // It is no part of a job of several processes.
        hidden: world::variables(),
        memory: Memory::default(),
    };
    external.check()?;
    Ok(external)
}

/// Reads and judges fixed lists.
fn fixed(
    input: &Input,
    metric: &Metric,
    files: &[text::Lines],
    sparse: bool,
    talk: Talk,
) -> Result<(Vec<luthier::tune::List>, Rows)> {
    let rows = input.nbest.read()?;
    let references = references_of(files, &rows, input.nbest.allow_missing)?;
    let stats = moses_scores(&input.moses_scores, &rows)?;
    let mut judge = Judge::new(metric, &references, reference_file(files));
    judge.allow_missing = input.nbest.allow_missing;
    judge.given = (!input.moses_scores.is_empty()).then_some(&stats[..]);
    let columns = columns(&rows, Some(metric));
    let lists = lists(&rows, &columns, Some(judge))?;
    if sparse {
        return Ok((lists, rows));
    }
    let (all, dense) = (rows.names.names().len(), columns.keys().len());
    if dense == 0 {
        return Err(Error::new(format!(
            "none of the {all} features is in half of the candidates: nothing to tune"
        ))
        .hint("line searches need dense features; pro, apro, mira, softmax, xbleu and risk do not"));
    }
    if all > dense + metric.columns().len() {
        talk.warn(&format!(
            "{dense} of {all} features are in most candidates and tuned; the others keep their weights"
        ));
    } else if dense > MANY {
        talk.warn(&format!("{dense} features are many for line searches: results vary with the seed"));
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
                let message = format!("candidate {row} is of segment {segment}, elsewhere than in --nbest");
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
            let message = format!("statistics of {row} candidates for {}", rows.len());
            Err(Error::in_file(last.display().to_string(), message)
                .hint("one --moses-scores file is missing"))
        }
        _ => Ok(stats),
    }
}

impl Input {
    /// Candidates per segment.
    fn k(&self) -> u32 {
        self.nbest_size.unwrap_or(100)
    }

    /// How long to wait for a better score.
    pub(super) fn patience(&self) -> Option<u32> {
        self.held_out.patience
    }

    /// Whether there is a configuration to put weights into, and a place for it: asked before the work, not after it.
    fn check_moses_ini(&self) -> Result<()> {
        let Some(path) = &self.moses_ini else { return Ok(()) };
        let ini = text::read_lines(path)?;
        moses_ini::replace(&ini.file, &ini.lines.join("\n"), &Weights::default())?;
        match self.moses_ini_out.as_ref().and_then(|p| p.parent()) {
            Some(parent) if !parent.as_os_str().is_empty() && !parent.is_dir() => Err(Error::in_file(
                parent.display().to_string(),
                "is no directory, so --moses-ini-out cannot go there",
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
