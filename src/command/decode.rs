//! `luthier decode`: translation of text with a model directory.

use super::{Common, Done, Failure, write_out};
use crate::{
    interrupt, launch,
    talk::{Talk, thousands},
};
use luthier::{
    constrained::{Forced, force, max_bleu},
    core::{Error, FeatureKey, Fingerprint, Progress, Weights},
    decode::{
        Decoder, FeatureSelection, ForestKind, Forests, ForestsWriter, Found, Limits, Model, ModelDir,
        SearchSpec, Stats,
    },
    decoder::{Translation, for_lists, sparse_names, translations},
    forest::{Forest, text::write_json},
    io::{AtomicFile, Input, nbest::MosesLine, text as lines},
    metric::SentenceSmoothing,
    text::{JOINER, Prepared, Side, TextModel, is_placeholder},
};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Map, json as object};
use std::{
    collections::BTreeMap,
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::mpsc,
    time::Instant,
};

/// Translate text with a model directory of `train` or `import`.
///
/// Input has one sentence per line, tokenised unless the model was trained with --raw; translations are written in the same order, as soon as they are ready. With
/// --json, each translation is a JSON object on its own line, on standard output or in --output: `{"id":0,"text":"…","score":…,"features":{…}}`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Model directory.
    #[arg(long, value_name = "DIR", help_heading = "Input")]
    model: PathBuf,
    /// Weights, one `name value` per line, or a Moses configuration [default: those of the model].
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    weights: Option<PathBuf>,
    /// Text to translate; `-` is standard input.
    #[arg(long, short, value_name = "FILE", default_value = "-", help_heading = "Input")]
    input: PathBuf,
    /// Output file for translations [default: standard output].
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Size of the n-best list per sentence; its translations are distinct.
    #[arg(long, value_name = "K", requires = "nbest_out", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Output")]
    nbest: Option<u32>,
    /// Output file for the n-best list, in Moses' format; `-` is standard output, and the translations are then not printed.
    #[arg(long, value_name = "FILE", requires = "nbest", help_heading = "Output")]
    nbest_out: Option<PathBuf>,
    /// Output file for forests: one line of JSON per sentence, or one binary file (see --forest-kind).
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    forest_out: Option<PathBuf>,
    /// Content of the forests.
    ///
    /// `grammar` saves which rules match which spans, for --forests; nothing is translated then, and of the search flags only
    /// --span-limit has an effect.
    #[arg(long, value_name = "KIND", requires = "forest_out", value_enum, default_value_t = ForestKind::default(), help_heading = "Output")]
    forest_kind: ForestKind,
    /// Translate the sentences of a file written with --forest-kind grammar, without parsing them again.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["input", "force", "max_bleu"], help_heading = "Input")]
    forests: Option<PathBuf>,
    /// Force-decode these references: output is the reference where it is reachable, else an empty line.
    ///
    /// The number of reachable references is reported at the end.
    #[arg(long, value_name = "FILE", conflicts_with = "max_bleu", help_heading = "Constrained decoding")]
    force: Option<PathBuf>,
    /// Search for the translation with the highest sentence BLEU against these references, not for the best model score;
    /// repeatable.
    ///
    /// Sentence BLEU-4 with add-one smoothing (BLEU+1), on the decoder's tokens.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["nbest", "forest_out"], help_heading = "Constrained decoding")]
    max_bleu: Vec<PathBuf>,
    /// Report speed and search statistics at the end.
    #[arg(long, help_heading = "Output")]
    stats: bool,
    #[command(flatten)]
    features: FeatureSelection,
    #[command(flatten)]
    limits: Limits,
    /// Sentences to translate instead of those of `input`.
    #[arg(skip)]
    sentences: Option<Vec<String>>,
}

impl Args {
    /// The arguments for the translation of given sentences with default settings, to standard output.
    pub(crate) fn of_sentences(model: PathBuf, weights: Option<PathBuf>, sentences: Vec<String>) -> Self {
        Args {
            model,
            weights,
            input: PathBuf::from("<arguments>"),
            output: None,
            nbest: None,
            nbest_out: None,
            forest_out: None,
            forest_kind: ForestKind::default(),
            forests: None,
            force: None,
            max_bleu: Vec::new(),
            stats: false,
            features: FeatureSelection::default(),
            limits: Limits::default(),
            sentences: Some(sentences),
        }
    }
}

/// Objective of the search.
enum Goal<'m> {
    /// The translation with the highest model score.
    Model,
    /// Forced decoding of these references.
    Force(lines::Lines),
    /// The translation with the highest sentence BLEU against these references, found by a decoder without scores.
    MaxBleu(Vec<lines::Lines>, Box<Decoder<'m>>),
}

impl<'m> Goal<'m> {
    /// Reads the references. Fails if the model is hierarchical and there are any.
    fn new(args: &Args, model: &'m Model, limits: Limits) -> Result<Self, Error> {
        if model.is_hierarchical() && (args.force.is_some() || !args.max_bleu.is_empty()) {
            return Err(Error::new(
                "--force and --max-bleu are for phrase-based models, but the model is hierarchical",
            ));
        }
        if let Some(path) = &args.force {
            return Ok(Goal::Force(lines::read_lines(path)?));
        }
        if args.max_bleu.is_empty() {
            return Ok(Goal::Model);
        }
        let files = args.max_bleu.iter().map(|p| lines::read_lines(p)).collect::<Result<Vec<_>, _>>()?;
        Ok(Goal::MaxBleu(files, Box::new(Decoder::blind(model, limits))))
    }

    /// Returns the reference files.
    fn files(&self) -> &[lines::Lines] {
        match self {
            Goal::Model => &[],
            Goal::Force(file) => std::slice::from_ref(file),
            Goal::MaxBleu(files, _) => files,
        }
    }

    /// Fails if a reference file has fewer lines than `sentences`; with `all`, after the last sentence, also if it has
    /// more.
    fn check(&self, sentences: usize, all: bool) -> Result<(), Error> {
        let odd = |f: &&lines::Lines| f.lines.len() < sentences || (all && f.lines.len() > sentences);
        match self.files().iter().find(odd) {
            None => Ok(()),
            Some(f) => {
                let lines = f.lines.len();
                // The number of sentences read so far depends on timing; the message must not.
                let text = if all { sentences.to_string() } else { format!("at least {}", lines + 1) };
                Err(Error::in_file(&f.file, format!("has {lines} lines, but the text has {text}"))
                    .hint("both need one line per segment"))
            }
        }
    }

    /// Returns the result of the search of one sentence; `None` if the references are not reachable.
    fn search<'d>(
        &self,
        decoder: &'d Decoder<'_>,
        text: Option<&TextModel>,
        sentence: &Prepared,
        id: usize,
        progress: Progress<'_>,
    ) -> Result<Option<Found<'d>>, Error> {
        let line = &sentence.tokens;
        let reference = |file: &lines::Lines| match text {
            Some(text) => text.prepare_reference(sentence, &file.lines[id]).tokens,
            None => file.lines[id].clone(),
        };
        match self {
            Goal::Model => decoder.search_segment(id, line, progress).map(Some),
            Goal::Force(file) => force(decoder, line, &[&reference(file)], progress),
            Goal::MaxBleu(files, blind) => {
                let references: Vec<String> = files.iter().map(reference).collect();
                let references: Vec<&str> = references.iter().map(String::as_str).collect();
                let best =
                    max_bleu(blind, decoder, line, &references, SentenceSmoothing::default(), progress)?;
                Ok(best.map(|f| f.1))
            }
        }
    }
}

/// Result of one sentence.
#[derive(Default, Serialize, Deserialize)]
struct Answer {
    /// Whether a translation was found.
    reached: bool,
    /// Output line with the translation.
    text: String,
    /// Lines of the n-best list.
    nbest: String,
    /// Line with the forest.
    forest: String,
    /// Statistics of the search.
    stats: Stats,
    /// Model score of the translation.
    score: f64,
    /// Words without a translation, for --stats.
    unknown: Vec<String>,
}

/// Number of sentences per thread that are translated before results are written.
const BATCH: usize = 8;

/// Number of sentences per thread in a batch if there are several processes, which wait for each other after each
/// batch.
const LARGE_BATCH: usize = 32;

/// An opened model with its weights and search limits.
struct Opened {
    dir: ModelDir,
    weights: Weights,
    model: Model,
    /// Search limits as given.
    asked: Limits,
    /// Search limits as used: with --force and --max-bleu those of forced decoding.
    limits: Limits,
    /// Tokenisers and truecasers of a model that translates raw text.
    text: Option<TextModel>,
    /// Saved forests, which replace parsing.
    forests: Option<Forests>,
}

/// Everything that the output depends on, which must be equal in all processes.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct DecodeSpec {
    search: SearchSpec,
    /// Digest of the weights.
    weights: String,
    force: bool,
    /// Number of reference files of --max-bleu.
    max_bleu: usize,
    nbest: u32,
    forest_out: bool,
    json: bool,
    /// Digests of the reference files.
    lines: Vec<String>,
    /// Digest of the sentences of saved forests.
    forests: Option<String>,
}

impl Opened {
    /// Reads and checks everything except the text.
    fn new(args: &Args, dir: ModelDir, talk: Talk) -> Result<Self, Error> {
        let path = args.weights.clone().unwrap_or_else(|| dir.weights());
        let weights = luthier::io::read_weights(&path)?;
        let mut model = Model::open(&dir)?;
        args.features.apply(&mut model, &weights)?;
        check_weights(&weights, &path, &model, talk)?;
        let asked = args.limits.resolve(&dir.config);
        let one = args.force.is_some() || !args.max_bleu.is_empty();
        let limits = if one { Forced::limits(asked) } else { asked };
        let open = |path| open_forests(path, &dir.digests()?, &model, limits);
        let forests = args.forests.as_deref().map(open).transpose()?;
        let text = dir.text().map(|path| TextModel::load(&path)).transpose()?;
        if text.is_some() && args.forests.is_some() {
            return Err(Error::new(
                "--forests has the model's tokens only, but the model translates raw text",
            )
            .hint("give the text with --input"));
        }
        Ok(Opened { dir, weights, model, asked, limits, text, forests })
    }

    /// Returns everything that the output depends on.
    fn spec(&self, args: &Args, json: bool, goal: &Goal<'_>) -> Result<DecodeSpec, Error> {
        let print = |bytes: &[u8]| format!("{:032x}", Fingerprint::default().bytes(bytes).finish());
        Ok(DecodeSpec {
            search: SearchSpec::new(&self.dir.config, &self.dir.digests()?, &self.model, self.asked),
            weights: print(self.weights.to_text(&[]).as_bytes()),
            force: args.force.is_some(),
            max_bleu: args.max_bleu.len(),
            nbest: args.nbest.unwrap_or(0),
            forest_out: args.forest_out.is_some(),
            json,
            lines: goal.files().iter().map(|f| f.digest.clone()).collect(),
            forests: self.forests.as_ref().map(|f| print(&sentences(f))),
        })
    }
}

pub(crate) fn run(args: &Args, common: &Common, talk: Talk) -> Done {
    let clock = Instant::now();
    let fleet = launch::fleet();
    let outputs = [args.output.as_deref(), args.nbest_out.as_deref(), args.forest_out.as_deref()];
    let stop = |_: &luthier::core::Step| interrupt::flow();
    let progress = Progress::new(&stop);
    let json = common.json;
    super::check_json_output(common, args.nbest_out.as_deref().or(args.forest_out.as_deref()))?;
    let dir = launch::agree(ModelDir::open(&args.model).and_then(|dir| {
        check_files(args, &dir, &outputs)?;
        if args.forest_kind == ForestKind::Grammar {
            launch::only_one("luthier decode --forest-kind grammar")?;
        }
        Ok(dir)
    }))?;
    if args.forest_kind == ForestKind::Grammar {
        return save(args, json, &dir, talk, progress);
    }
    let opened = launch::agree(Opened::new(args, dir, talk))?;
    let Opened { weights, model, limits, text, forests, .. } = &opened;
    let goal = launch::agree(Goal::new(args, model, opened.asked))?;
    if !fleet.is_alone() {
        launch::same(&launch::agree(opened.spec(args, json, &goal))?)?;
    }
    let decoder = match forests {
        Some(forests) => Decoder::over(model, weights, *limits, forests),
        None => Decoder::new(model, weights, *limits),
    };
    let opened = clock.elapsed().as_secs_f64();
    talk.detail(&format!(
        "opened {} in {opened:.2} s; features: {}",
        args.model.display(),
        model.names().join(", ")
    ));
    // Only the first process reads the text and writes output.
    let input = |forests: &Option<Forests>| match (forests, &args.sentences) {
        (Some(forests), _) => Input::new("forests", std::io::Cursor::new(sentences(forests))),
        (None, Some(given)) => {
            let lines: String =
                given.iter().map(|s| s.strip_suffix('\n').unwrap_or(s).to_owned() + "\n").collect();
            Input::new("<arguments>", std::io::Cursor::new(lines))
        }
        (None, None) => Input::open(&args.input),
    };
    let lines = fleet.is_first().then(|| input(forests).map(read_ahead)).transpose();
    let mut out = None;
    let lines = launch::agree(lines.and_then(|lines| {
        out = if fleet.is_first() { Some(Outputs::open(outputs)?) } else { None };
        Ok(lines)
    }))?;
    let clock = Instant::now();
    let work = Work { args, json, decoder: &decoder, text: text.as_ref(), goal: &goal, progress };
    let done = translate(&work, lines.as_ref(), out)?;
    if matches!(goal, Goal::Force(_)) {
        talk.say(&format!(
            "{} of {} references are reachable ({:.1} %)",
            thousands(done.reached),
            thousands(done.sentences),
            100.0 * done.reached as f64 / done.sentences.max(1) as f64
        ));
    }
    if args.stats {
        tell(talk, &done, (clock.elapsed().as_secs_f64(), opened), *limits);
    }
    Ok(ExitCode::SUCCESS)
}

/// Totals over all sentences.
#[derive(Default)]
struct Tally {
    /// Number of sentences.
    sentences: usize,
    /// Number of sentences with a translation.
    reached: usize,
    /// Sum of the search statistics.
    stats: Stats,
    /// Sum of the model scores.
    score: f64,
    /// Numbers of occurrences of words without a translation.
    unknown: BTreeMap<String, usize>,
}

/// Translates all lines and writes the results in order. The first process has the lines and the outputs; the others
/// have neither.
fn translate(work: &Work<'_>, lines: Option<&Lines>, mut out: Option<Outputs<'_>>) -> Result<Tally, Failure> {
    let goal = work.goal;
    let fleet = launch::fleet();
    let mut done = Tally::default();
    let mut trouble = None;
    loop {
        // After a write error no more lines are translated.
        let next = || match (lines, &trouble) {
            (Some(lines), None) => Ok(next_batch(lines, fleet.0.size() as usize)),
            _ => Ok((Vec::new(), None)),
        };
        let (batch, failed) = fleet.first(next)?;
        if batch.is_empty() && failed.is_none() {
            break;
        }
        let first = done.sentences;
        done.sentences += batch.len();
        goal.check(done.sentences, false).map_err(|e| fleet.known_to_all(e))?;
        let mine = fleet.mine(batch.len() as u32);
        let answers: Result<Vec<Answer>, Error> =
            mine.into_par_iter().map(|k| work.answer(&batch[k as usize], first + k as usize)).collect();
        let answers = fleet.collect(answers)?.into_iter().collect::<Result<Vec<_>, _>>()?;
        for a in answers.iter().flatten() {
            done.stats += a.stats;
            done.reached += usize::from(a.reached);
            done.score += a.score;
            for word in &a.unknown {
                *done.unknown.entry(word.clone()).or_insert(0) += 1;
            }
            if let Some(out) = out.as_mut().filter(|_| trouble.is_none()) {
                trouble = out.write([&a.text, &a.nbest, &a.forest]).err();
            }
        }
        // Lines before a read error are translated first.
        if let Some(e) = failed {
            return Err(fleet.known_to_all(e).into());
        }
    }
    launch::last(|| {
        if let Some(trouble) = trouble {
            return Err(trouble);
        }
        goal.check(done.sentences, true)?;
        Ok(out.map_or(Ok(()), Outputs::commit)?)
    })?;
    Ok(done)
}

/// Fails if an output is also an input, or if standard input is used for two inputs.
fn check_files(args: &Args, dir: &ModelDir, outputs: &[Option<&Path>]) -> Result<(), Error> {
    let (table, weights, lms) = (dir.table(), dir.weights(), dir.lms());
    let mut inputs: Vec<&Path> = vec![&table, &weights];
    if args.forests.is_none() {
        inputs.push(&args.input);
    }
    inputs.extend(lms.iter().chain(&args.weights).chain(&args.forests).map(PathBuf::as_path));
    inputs.extend(args.force.iter().chain(&args.max_bleu).map(PathBuf::as_path));
    super::check_outputs(outputs, &inputs)?;
    let standard = |p: &Path| p.as_os_str() == "-";
    if inputs.iter().filter(|p| standard(p)).count() > 1 {
        return Err(Error::new("`-` (standard input) can stand for one file only"));
    }
    let mut for_all = args.weights.iter().chain(&args.force).chain(&args.max_bleu);
    launch::no_standard_input(for_all.any(|p| standard(p)))
}

/// Opens saved forests of a model. Fails if the model is phrase-based, or if the forests belong to another model.
pub(crate) fn open_forests(
    path: &Path,
    digests: &[String],
    model: &Model,
    limits: Limits,
) -> Result<Forests, Error> {
    if !model.is_hierarchical() {
        return Err(Error::new("--forests is for hierarchical models, but the model is phrase-based")
            .hint("leave --forests out"));
    }
    Forests::open(path, model, digests, limits.span())
}

/// Returns the source text of saved forests, one sentence per line.
fn sentences(forests: &Forests) -> Vec<u8> {
    let mut text = Vec::new();
    for at in 0..forests.len() {
        text.extend_from_slice(forests.sentence(at).as_bytes());
        text.push(b'\n');
    }
    text
}

/// Fails on flags that have no effect with --forest-kind grammar, which translates nothing.
fn check_grammar(args: &Args, json: bool) -> Result<(), Error> {
    let one_of = "--weights, --output, --nbest-out, --force, --max-bleu, --forests, --json, --stats, --dense, --sparse, \
                  --table-limit, --beam or --drop-unknown";
    let limits_too =
        args.limits.table_limit.is_some() || args.limits.beam.is_some() || args.limits.drop_unknown;
    if limits_too
        || args.weights.is_some()
        || args.stats
        || args.features != FeatureSelection::default()
        || args.output.is_some()
        || args.nbest.is_some()
        || args.force.is_some()
        || !args.max_bleu.is_empty()
        || args.forests.is_some()
        || json
    {
        return Err(Error::new(format!(
            "--forest-kind grammar translates nothing, so {one_of} cannot be given"
        ))
        .hint("leave them out, or translate in another command"));
    }
    Ok(())
}

/// Saves which rules match which spans of a text (--forest-kind grammar).
fn save(args: &Args, json: bool, dir: &ModelDir, talk: Talk, progress: Progress<'_>) -> Done {
    let limits = args.limits.resolve(&dir.config);
    let clock = Instant::now();
    let Some(path) = &args.forest_out else { return Ok(ExitCode::SUCCESS) };
    check_grammar(args, json)?;
    let model = &Model::open(dir)?;
    if !model.is_hierarchical() {
        return Err(Error::new(
            "--forest-kind grammar is for hierarchical models, but the model is phrase-based",
        )
        .hint("use --forest-kind search")
        .into());
    }
    let text = dir.text().map(|path| TextModel::load(&path)).transpose()?;
    let lines = read_ahead(Input::open(&args.input)?);
    let mut writer = ForestsWriter::create(path, model, &dir.digests()?, limits.span())?;
    let mut sentences = 0;
    loop {
        let (mut batch, failed) = next_batch(&lines, 1);
        if let Some(e) = failed {
            return Err(e.into());
        }
        if let Some(text) = &text {
            for line in &mut batch {
                *line = text.prepare(Side::Source, line).tokens;
            }
        }
        if batch.is_empty() {
            break;
        }
        let spans = batch.par_iter().map(|line| writer.spans(line, progress));
        let spans = spans.collect::<Result<Vec<_>, Error>>()?;
        sentences += batch.len();
        for (line, spans) in batch.iter().zip(spans) {
            writer.push(line, spans)?;
        }
    }
    let rules = writer.finish()?;
    let bytes = std::fs::metadata(path).map_or(0, |m| m.len());
    talk.say(&format!(
        "{} sentences, {} rules, {} bytes in {:.2} s",
        thousands(sentences),
        thousands(rules),
        thousands(bytes as usize),
        clock.elapsed().as_secs_f64()
    ));
    Ok(ExitCode::SUCCESS)
}

/// Prints speed and search statistics.
fn tell(talk: Talk, done: &Tally, (seconds, opened): (f64, f64), limits: Limits) {
    let total = done.stats;
    let copied = if limits.drop_unknown { "dropped" } else { "copied" };
    talk.say(&format!(
        "{} sentences, {} words ({} unknown) in {seconds:.2} s, {:.0} words per second; model opened in {opened:.2} s",
        thousands(done.sentences),
        thousands(total.words as usize),
        thousands(total.unknown as usize),
        total.words as f64 / seconds
    ));
    talk.say(&format!(
        "{} extensions, {} recombined, {} hypotheses kept; mean score {:.4}",
        thousands(total.popped as usize),
        thousands(total.recombined as usize),
        thousands(total.kept as usize),
        done.score / done.sentences.max(1) as f64
    ));
    if !done.unknown.is_empty() {
        talk.say(&format!("unknown words, {}: {}", copied, most_frequent(&done.unknown)));
    }
    if total.rule_seconds > 0.0 {
        talk.say(&format!(
            "parsing {:.2} s, scoring rules {:.2} s, both summed over threads",
            total.parse_seconds, total.rule_seconds
        ));
    }
}

/// Returns the twenty most frequent words with their counts.
fn most_frequent(words: &BTreeMap<String, usize>) -> String {
    let mut sorted: Vec<(&String, &usize)> = words.iter().collect();
    sorted.sort_by_key(|w| std::cmp::Reverse(w.1));
    let shown: Vec<String> = sorted.iter().take(20).map(|(word, n)| format!("{word} ({n})")).collect();
    let more = sorted.len().saturating_sub(20);
    shown.join(", ") + &if more > 0 { format!(" and {} more", thousands(more)) } else { String::new() }
}

/// Outputs for translations, n-best list and forests.
struct Outputs<'a>([Sink<'a>; 3]);

/// An output: a file, standard output, or none.
enum Sink<'a> {
    File(&'a Path, AtomicFile),
    Standard,
    Nowhere,
}

impl<'a> Outputs<'a> {
    fn open(paths: [Option<&'a Path>; 3]) -> Result<Self, Error> {
        let standard = |p: &Path| p.as_os_str() == "-";
        let mut sinks = [Sink::Nowhere, Sink::Nowhere, Sink::Nowhere];
        for (sink, path) in sinks.iter_mut().zip(paths) {
            *sink = match path {
                Some(path) if standard(path) => Sink::Standard,
                Some(path) => Sink::File(path, AtomicFile::create(path)?),
                None => Sink::Nowhere,
            };
        }
        // Translations go to standard output unless the list or the forests do.
        if paths[0].is_none() && !paths.iter().flatten().any(|p| standard(p)) {
            sinks[0] = Sink::Standard;
        }
        Ok(Outputs(sinks))
    }

    fn write(&mut self, parts: [&str; 3]) -> Result<(), Failure> {
        for (sink, part) in self.0.iter_mut().zip(parts) {
            match sink {
                Sink::File(path, file) => file
                    .write_all(part.as_bytes())
                    .map_err(|e| Error::io(path.display().to_string(), "write it", &e))?,
                Sink::Standard => write_out(None, part.as_bytes())?,
                Sink::Nowhere => {}
            }
        }
        Ok(())
    }

    fn commit(self) -> Result<(), Error> {
        for sink in self.0 {
            if let Sink::File(_, file) = sink {
                file.commit()?;
            }
        }
        Ok(())
    }
}

/// Fails if no feature of the model has a weight; warns about features without one.
pub(crate) fn check_weights(weights: &Weights, path: &Path, model: &Model, talk: Talk) -> Result<(), Error> {
    let missing = model.check_weights(weights, &path.display().to_string())?;
    if !missing.is_empty() {
        talk.warn(&format!("{} has no weight for {}: taken as 0", path.display(), missing.join(", ")));
    }
    Ok(())
}

/// Lines of the input, which are read in another thread.
type Lines = mpsc::Receiver<Result<String, Error>>;

/// Reads lines in a separate thread, so that translation begins with the first line.
fn read_ahead(mut input: Input) -> Lines {
    let (send, receive) = mpsc::sync_channel(256);
    std::thread::spawn(move || {
        let mut buffer = Vec::new();
        loop {
            let line = match input.line(&mut buffer) {
                Ok(false) => return,
                Ok(true) => input.utf8(&buffer).map(str::to_owned),
                Err(e) => Err(e),
            };
            let failed = line.is_err();
            if send.send(line).is_err() || failed {
                return;
            }
        }
    });
    receive
}

/// Returns the lines that are available, at least one unless the input has ended, and the error that ended the input,
/// if any.
fn next_batch(lines: &Lines, processes: usize) -> (Vec<String>, Option<Error>) {
    let mut batch = Vec::new();
    let each = if processes == 1 { BATCH } else { LARGE_BATCH };
    let most = each * rayon::current_num_threads() * processes;
    let mut next = lines.recv().ok();
    while let Some(line) = next {
        match line {
            Ok(line) => batch.push(line),
            Err(e) => return (batch, Some(e)),
        }
        next = if batch.len() < most { lines.try_recv().ok() } else { None };
    }
    (batch, None)
}

/// Everything that the translation of a sentence needs.
struct Work<'a> {
    args: &'a Args,
    json: bool,
    decoder: &'a Decoder<'a>,
    /// Tokenisers and truecasers of a model that translates raw text.
    text: Option<&'a TextModel>,
    goal: &'a Goal<'a>,
    progress: Progress<'a>,
}

impl Work<'_> {
    /// Translates one line of the input and formats the outputs.
    fn answer(&self, line: &str, id: usize) -> Result<Answer, Error> {
        let sentence = match self.text {
            Some(text) => text.prepare(Side::Source, line),
            None => Prepared { tokens: line.to_owned(), ..Prepared::default() },
        };
        answer(self, &sentence, id)
    }
}

/// Translates one sentence and formats the outputs.
fn answer(work: &Work<'_>, sentence: &Prepared, id: usize) -> Result<Answer, Error> {
    let &Work { args, json, decoder, text: raw, goal, progress } = work;
    let Some(lattice) = goal.search(decoder, raw, sentence, id, progress)? else {
        let text = if json { format!("{}\n", object!({"id": id, "text": null})) } else { "\n".to_owned() };
        let forest = if args.forest_out.is_some() { empty_forest(id) } else { String::new() };
        return Ok(Answer { text, forest, ..Answer::default() });
    };
    let mut answer = Answer { reached: true, stats: lattice.stats(), ..Answer::default() };
    let names = decoder.model().names();
    let k = args.nbest.unwrap_or(0) as usize;
    let forest = (k > 0 || json || args.forest_out.is_some()).then(|| lattice.forest());
    let mut list = match &forest {
        Some(forest) if k > 0 || json => translations(decoder, (&lattice, forest), k.max(1), progress)?,
        _ => Vec::new(),
    };
    let restored =
        |tokens: String| raw.map_or(tokens.clone(), |raw| raw.restore(Side::Target, &tokens, sentence));
    for t in &mut list {
        t.text = restored(std::mem::take(&mut t.text));
    }
    let (text, score) = if let Some(best) = list.first() {
        (best.text.clone(), best.score)
    } else {
        let (tokens, score) = lattice.best().unwrap_or_default();
        (restored(tokens), score)
    };
    if args.stats && answer.stats.unknown > 0 {
        let words = sentence.tokens.split_ascii_whitespace().filter(|w| !decoder.model().translates(w));
        answer.unknown = match raw {
            None => words.map(str::to_owned).collect(),
            Some(_) => words.filter(|w| !is_placeholder(w)).map(|w| w.replace(JOINER, "")).collect(),
        };
    }
    answer.score = score;
    let sparse = sparse_names(&lattice, &list);
    let name_of = |key: &FeatureKey| sparse.get(key).map_or("", String::as_str);
    if json {
        let mut features = Map::new();
        if let Some(best) = list.first() {
            features.extend(names.iter().cloned().zip(best.features.iter().map(|v| object!(v))));
            features.extend(best.sparse.iter().map(|(k, v)| (name_of(k).to_owned(), object!(v))));
        }
        answer.text =
            format!("{}\n", object!({"id": id, "text": text, "score": score, "features": features}));
    } else {
        answer.text = text + "\n";
    }
    for t in list.iter().take(k) {
        nbest_line(&mut answer.nbest, id, names, t, &name_of);
    }
    if let Some(forest) = forest.filter(|_| args.forest_out.is_some()) {
        write_forest(decoder, &lattice, &forest, id, &mut answer.forest);
    }
    Ok(answer)
}

/// Writes a forest as a line of JSON.
fn write_forest(decoder: &Decoder<'_>, found: &Found<'_>, forest: &Forest<'_>, id: usize, out: &mut String) {
    let mut sparse = rustc_hash::FxHashMap::default();
    found.sparse_names(&|key| forest.local.position(key).is_some(), &mut |key, name| {
        sparse.insert(key, name.to_owned());
    });
    let name = |key: FeatureKey| {
        let dense = decoder.model().name_of(key).map(str::to_owned);
        dense.or_else(|| sparse.get(&key).cloned()).unwrap_or_default()
    };
    write_json(forest, id as u64, &name, out);
    out.push('\n');
}

/// Returns the JSON line of the forest of a sentence without translation.
fn empty_forest(id: usize) -> String {
    let mut out = String::new();
    write_json(&Forest::default(), id as u64, &|_| String::new(), &mut out);
    out + "\n"
}

/// Writes a line of an n-best list in Moses' format: `0 ||| the house ||| LM0= -3 TranslationModel0= -1 -2 ||| -7.1`.
fn nbest_line<'n>(
    out: &mut String,
    id: usize,
    names: &[String],
    t: &Translation,
    sparse: &dyn Fn(&FeatureKey) -> &'n str,
) {
    let mut line = MosesLine::new(id, &for_lists(&t.text));
    for (name, &value) in names.iter().zip(&t.features) {
        match name.rsplit_once('[') {
            Some((base, "0]")) => line.block(base, [value]),
            Some(_) => line.more([value]),
            None => line.block(name, [value]),
        }
    }
    for (key, value) in &t.sparse {
        line.block(sparse(key), [*value]);
    }
    *out += &line.end(Some(t.score));
    out.push('\n');
}
