//! `luthier decode`.

use super::{Done, Failure, write_out};
use crate::talk::{Talk, thousands};
use clap::ValueEnum;
use luthier::{
    core::{AtomicFile, Error, FeatureKey, Input, Weights},
    decode::{Config, Decoder, Limits, MAX_DISTORTION, Model, Stats},
    decoder::{Translation, for_lists, translations},
    forest::{Forest, text::write_json},
};
use rayon::prelude::*;
use serde_json::{Map, json};
use std::{
    fmt::Write as _,
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::mpsc,
    time::Instant,
};

/// Translate text with a model directory of `train` or `import`.
///
/// Each line is a sentence in tokens; its translation is a line, in order, as soon as those before it are done.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The model directory.
    #[arg(long, value_name = "DIR")]
    model: PathBuf,
    /// Weights: `name value` a line, or a Moses configuration [default: those of the model].
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
    /// Text to translate; `-` is standard input.
    #[arg(long = "in", value_name = "TEXT", default_value = "-")]
    input: PathBuf,
    /// Where translations go [default: standard output].
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How many translations of each sentence go to the n-best list; they differ in words.
    #[arg(long, value_name = "K", requires = "nbest_out", value_parser = clap::value_parser!(u32).range(1..))]
    nbest: Option<u32>,
    /// Where the n-best list goes, in Moses' format; `-` is standard output, and then only the list is written.
    #[arg(long, value_name = "FILE", requires = "nbest")]
    nbest_out: Option<PathBuf>,
    /// Where the forest of each sentence goes, a line of JSON each; `-` is standard output, and then only forests are written.
    #[arg(long, value_name = "FILE")]
    forest_out: Option<PathBuf>,
    /// Print JSON: `{"id":0,"text":"…","score":…,"features":{…}}` per line.
    #[arg(long)]
    json: bool,
    /// Say in the end how fast it was and what the search did.
    #[arg(long)]
    stats: bool,
    #[command(flatten)]
    limits: LimitArgs,
}

/// How far to search.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Search")]
pub(crate) struct LimitArgs {
    /// Cube pruning, or all extensions of what the stacks hold.
    #[arg(long, requires = "model", value_name = "HOW", default_value = "cube")]
    search: SearchName,
    /// Extensions that cube pruning looks at for each stack.
    #[arg(long, requires = "model", value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    pop_limit: u32,
    /// Hypotheses that a stack keeps.
    #[arg(long, requires = "model", value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    stack_size: u32,
    /// Drop hypotheses whose score is this much below the best of their stack.
    #[arg(long, requires = "model", value_name = "X", allow_negative_numbers = true, value_parser = super::losses::non_negative)]
    beam: Option<f64>,
    /// Longest jump, in words [default: what the model says, else 6].
    #[arg(long, requires = "model", value_name = "N", value_parser = clap::value_parser!(u8).range(0..=MAX_DISTORTION as i64))]
    distortion_limit: Option<u8>,
    /// Translations of a source phrase [default: what the model says, else 20].
    #[arg(long, requires = "model", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    table_limit: Option<u32>,
    /// Leave unknown words out instead of passing them through.
    #[arg(long, requires = "model")]
    drop_unknown: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SearchName {
    /// The likeliest extensions first, up to --pop-limit.
    Cube,
    /// All extensions of what the stacks keep.
    Stack,
}

impl LimitArgs {
    pub(crate) fn limits(&self, config: &Config) -> Limits {
        Limits {
            pop: (self.search == SearchName::Cube).then_some(self.pop_limit as usize),
            stack: self.stack_size as usize,
            beam: self.beam.unwrap_or(f64::INFINITY),
            distortion: self.distortion_limit.map(usize::from).or(config.distortion_limit).unwrap_or(6),
            table: self.table_limit.map(|n| n as usize).or(config.table_limit).unwrap_or(20),
            drop_unknown: self.drop_unknown,
        }
    }

    /// Everything that decides translations, for a run's settings.
    pub(crate) fn describe(&self, limits: &Limits, settings: &mut luthier::core::Settings) {
        settings.add("search", super::value_name(&self.search));
        settings.add("pop-limit", limits.pop.map_or("none".to_owned(), |p| p.to_string()));
        settings.add("stack-size", limits.stack);
        settings.add("beam", limits.beam);
        settings.add("distortion-limit", limits.distortion);
        settings.add("table-limit", limits.table);
        settings.add("drop-unknown", limits.drop_unknown);
    }
}

/// What one sentence becomes.
#[derive(Default)]
struct Answer {
    text: String,
    nbest: String,
    forest: String,
    stats: Stats,
    score: f64,
}

/// Sentences that each thread translates before answers are written.
const BATCH: usize = 8;

pub(crate) fn run(args: &Args, talk: Talk) -> Done {
    let clock = Instant::now();
    let config = Config::read(&args.model)?;
    let outputs = [args.output.as_deref(), args.nbest_out.as_deref(), args.forest_out.as_deref()];
    let mut inputs: Vec<&Path> = vec![&args.input, &config.table, &config.weights];
    inputs.extend(config.lm.iter().chain(&args.weights).map(PathBuf::as_path));
    super::check_outputs(&outputs, &inputs)?;
    if inputs.iter().filter(|p| p.as_os_str() == "-").count() > 1 {
        return Err(Error::new("standard input can be one of the files only").into());
    }
    let path = args.weights.as_deref().unwrap_or(&config.weights);
    let weights = Weights::read(path)?;
    let model = Model::open(&config)?;
    check_weights(&weights, path, model.names(), talk)?;
    let limits = args.limits.limits(&config);
    let decoder = Decoder::new(&model, &weights, limits);
    let opened = clock.elapsed().as_secs_f64();
    let input = Input::open(&args.input)?;
    let mut out = Outputs::open(outputs)?;
    let lines = read_ahead(input);
    let clock = Instant::now();
    let (mut id, mut total, mut score) = (0, Stats::default(), 0.0);
    loop {
        let (batch, failed) = next_batch(&lines);
        if batch.is_empty() && failed.is_none() {
            break;
        }
        let answers: Vec<Answer> =
            batch.par_iter().enumerate().map(|(k, line)| answer(args, &decoder, line, id + k)).collect();
        id += batch.len();
        for a in &answers {
            total += a.stats;
            score += a.score;
            out.write([&a.text, &a.nbest, &a.forest])?;
        }
        // What stands before a mistake is answered first.
        if let Some(e) = failed {
            return Err(e.into());
        }
    }
    out.commit()?;
    if args.stats {
        let seconds = clock.elapsed().as_secs_f64();
        talk.say(&format!(
            "{} sentences, {} words ({} unknown) in {seconds:.2} s, {:.0} words a second; model opened in {opened:.2} s",
            thousands(id),
            thousands(total.words as usize),
            thousands(total.unknown as usize),
            total.words as f64 / seconds
        ));
        talk.say(&format!(
            "{} extensions, {} recombined, {} hypotheses kept; mean score {:.4}",
            thousands(total.popped as usize),
            thousands(total.recombined as usize),
            thousands(total.kept as usize),
            score / id.max(1) as f64
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Where text, list and forests go: to a file, to standard output, or nowhere.
struct Outputs<'a>([Sink<'a>; 3]);

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
        // Text goes to standard output unless something else does.
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

/// Larger weights than this are a mistake.
const LARGEST: f64 = 1e9;

/// Weights must be those of the model.
pub(crate) fn check_weights(
    weights: &Weights,
    path: &Path,
    names: &[String],
    talk: Talk,
) -> Result<(), Error> {
    let missing: Vec<&str> =
        names.iter().map(String::as_str).filter(|n| !weights.contains(FeatureKey::of(n))).collect();
    if missing.len() == names.len() {
        return Err(Error::in_file(
            path.display().to_string(),
            format!("has no weight for any feature of the model: {}", names.join(", ")),
        ));
    }
    if let Some((name, value)) = weights.iter().find(|w| w.1.abs() > LARGEST) {
        return Err(Error::in_file(path.display().to_string(), format!("the weight of {name} is {value}"))
            .hint(format!("expected at most {LARGEST:e} in size: scores would overflow")));
    }
    if !missing.is_empty() {
        talk.warn(&format!("{} has no weight for {}: taken as 0", path.display(), missing.join(", ")));
    }
    Ok(())
}

type Lines = mpsc::Receiver<Result<String, Error>>;

/// Reads lines in a thread of their own: translation begins with the first one.
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

/// What is there: one line at least, unless the input has ended; and why it ended, if that was an error.
fn next_batch(lines: &Lines) -> (Vec<String>, Option<Error>) {
    let mut batch = Vec::new();
    let most = BATCH * rayon::current_num_threads();
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

fn answer(args: &Args, decoder: &Decoder<'_>, line: &str, id: usize) -> Answer {
    let lattice = decoder.search(line);
    let mut answer = Answer { stats: lattice.stats, ..Answer::default() };
    let names = decoder.model().names();
    let k = args.nbest.unwrap_or(0) as usize;
    let needed = k > 0 || args.json || args.forest_out.is_some();
    let forest = if needed { lattice.forest() } else { Forest::default() };
    let list = if k > 0 || args.json { translations(decoder, &forest, k.max(1)) } else { Vec::new() };
    let (text, score) = match list.first() {
        Some(best) => (best.text.clone(), best.score),
        None => lattice.best().unwrap_or_default(),
    };
    answer.score = score;
    if args.json {
        let features: Map<_, _> = list
            .first()
            .map(|b| names.iter().cloned().zip(b.features.iter().map(|v| json!(v))).collect())
            .unwrap_or_default();
        answer.text = format!("{}\n", json!({"id": id, "text": text, "score": score, "features": features}));
    } else {
        answer.text = text + "\n";
    }
    for t in list.iter().take(k) {
        nbest_line(&mut answer.nbest, id, names, t);
    }
    if args.forest_out.is_some() {
        let name = |key: FeatureKey| decoder.model().name_of(key).unwrap_or_default().to_owned();
        write_json(&forest, id as u64, &name, &mut answer.forest);
        answer.forest.push('\n');
    }
    answer
}

/// `0 ||| the house ||| LM0= -3 TranslationModel0= -1 -2 ||| -7.1`.
fn nbest_line(out: &mut String, id: usize, names: &[String], t: &Translation) {
    let _ = write!(out, "{id} ||| {} |||", for_lists(&t.text));
    for (name, value) in names.iter().zip(&t.features) {
        match name.rsplit_once('[') {
            Some((base, "0]")) => {
                let _ = write!(out, " {base}= {value}");
            }
            Some(_) => {
                let _ = write!(out, " {value}");
            }
            None => {
                let _ = write!(out, " {name}= {value}");
            }
        }
    }
    let _ = writeln!(out, " ||| {}", t.score);
}
