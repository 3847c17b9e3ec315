//! `luthier train`.

use super::{
    Common, Done,
    align::{self, AlignArgs, KindName, TextArgs, read_links},
    check_regular,
    extract::{self, HieroLimits, PhraseLimits, SmoothingName, SortArgs},
    lm, value_name, write_out,
};
use crate::talk::{Talk, thousands};
use clap::ValueEnum;
use luthier::{
    core::Error,
    decode::{self, DenseFeature, ModelConfig, ModelDir},
    io::{AtomicFile, Input, Settings, WorkDir, WorkKind},
    lm::{Arpa, MAX_ORDER, Model},
    table::Builder,
    train::{Corpus, Link, extract::extract},
};
use serde_json::{Value, json};
use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

/// Make a translation model of two text files.
///
/// The directory gets alignment.gz, table.bin (phrases with reordering, or rules), lm0.bin, weights.txt (initial weights)
/// and luthier.toml, which names them; train.jsonl tells about each stage. The same command goes on where it was
/// interrupted. The language model is made of all lines of the target text, also of those that are left out elsewhere.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    text: TextArgs,
    /// Directory that the model goes to.
    #[arg(long, value_name = "DIR")]
    model: PathBuf,
    /// Phrases with reordering, or hierarchical rules.
    #[arg(long, value_name = "KIND", default_value = "phrase")]
    kind: ModelKind,
    /// Use these links (Pharaoh format, a line per line of text) instead of aligning.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["align_model", "rounds", "first_rounds", "null", "prior", "agreement", "symmetrize"])]
    alignment: Option<PathBuf>,
    /// Use these language models, ARPA or binary, instead of one of the target text. May be repeated.
    #[arg(long, value_name = "LM")]
    lm: Vec<PathBuf>,
    /// Order of the language model of the target text.
    #[arg(long, value_name = "N", default_value_t = 5, conflicts_with = "lm", value_parser = clap::value_parser!(u8).range(1..=MAX_ORDER as i64))]
    order: u8,
    /// Count words that a language model does not know, as a feature of each.
    #[arg(long)]
    oov: bool,
    /// Write tables and language model as text, too.
    #[arg(long)]
    text_tables: bool,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
    /// Model of the alignment.
    #[arg(long, value_name = "MODEL", default_value = "hmm", help_heading = "Alignment")]
    align_model: KindName,
    #[command(flatten, next_help_heading = "Alignment")]
    align: AlignArgs,
    #[command(flatten, next_help_heading = "Phrases")]
    phrases: PhraseLimits,
    #[command(flatten, next_help_heading = "Rules")]
    rules: HieroLimits,
    #[command(flatten, next_help_heading = "Sorting")]
    sort: SortArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ModelKind {
    Phrase,
    Hiero,
}

/// On real text it is worth half a point of BLEU.
const SMOOTHING: SmoothingName = SmoothingName::KneserNey;

const KIND: WorkKind =
    WorkKind { file: "train.toml", what: "model", flag: "--model", parts: &["alignment.gz", "table.bin"] };

/// What a stage says about itself, and the files that it made.
type Made = Result<(Value, Vec<String>), Error>;

/// The work so far: a line of JSON per stage that is done.
struct Stages {
    work: WorkDir,
    done: Vec<Value>,
    talk: Talk,
}

impl Stages {
    fn log(path: &Path) -> PathBuf {
        path.join("train.jsonl")
    }

    fn open(path: &Path, settings: &Settings, talk: Talk) -> Result<Self, Error> {
        let read = |path: &Path| -> Vec<Value> {
            let text = std::fs::read_to_string(Self::log(path)).unwrap_or_default();
            text.lines().map_while(|l| serde_json::from_str(l).ok()).collect()
        };
        let work = WorkDir::open(path, &KIND, settings, |path| read(path).len() > 1)?;
        Ok(Stages { done: read(path), work, talk })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    fn found(&self, stage: &str) -> Option<&Value> {
        self.done.iter().find(|d| d["stage"] == stage)
    }

    /// Whether a stage was done and its files are still there.
    fn is_done(&self, stage: &str) -> bool {
        let Some(found) = self.found(stage) else { return false };
        let files = found["files"].as_object().into_iter().flatten();
        let there = |name: &str| std::fs::metadata(self.path(name)).map(|m| m.len()).ok();
        files.map(|(name, size)| (there(name), size.as_u64())).all(|(is, was)| is.is_some() && is == was)
    }

    /// Does a stage, unless it was done before; its files are complete before it counts as done.
    fn stage(&mut self, name: &str, work: impl FnOnce(&Self) -> Made) -> Result<(), Error> {
        if let Some(found) = self.found(name).filter(|_| self.is_done(name)) {
            self.talk
                .say(&format!("{name}: done before, in {:.1} s", found["seconds"].as_f64().unwrap_or(0.0)));
            return Ok(());
        }
        let clock = Instant::now();
        let (mut entry, files) = work(self)?;
        let mut sizes = serde_json::Map::new();
        for file in files {
            let size = std::fs::metadata(self.path(&file)).map(|m| m.len());
            let size = size.map_err(|e| Error::io(self.path(&file).display().to_string(), "find it", &e))?;
            sizes.insert(file, size.into());
        }
        entry["files"] = sizes.into();
        entry["stage"] = name.into();
        self.done.retain(|d| d["stage"] != name);
        entry["seconds"] = ((1e3 * clock.elapsed().as_secs_f64()).round() / 1e3).into();
        self.talk.say(&format!("{name}: {:.1} s", clock.elapsed().as_secs_f64()));
        self.done.push(entry);
        let lines: String = self.done.iter().map(|d| format!("{d}\n")).collect();
        AtomicFile::write_all_to(&Self::log(self.work.path()), lines.as_bytes())
    }
}

pub(crate) fn run(args: &Args, _: &Common, talk: Talk) -> Done {
    let clock = Instant::now();
    check_flags(args)?;
    // Mistakes in what is read come before anything is written.
    let corpus = args.text.read(Corpus::default(), talk)?;
    let links = args.alignment.as_deref().map(|path| read_links(path, &corpus)).transpose()?;
    let mut stages = Stages::open(&args.model, &settings(args)?, talk)?;
    if let Err(e) = train(args, &mut stages, &corpus, links) {
        // A model that never got anywhere leaves nothing behind; stages that are done stay. To count lines is no work.
        if stages.done.len() < 2 {
            stages.work.discard();
        }
        return Err(e.into());
    }
    let summary = json!({"model": args.model.display().to_string(), "stages": stages.done,
                         "seconds": clock.elapsed().as_secs_f64()});
    if args.json {
        write_out(None, format!("{summary}\n").as_bytes())?;
    } else {
        talk.say(&told(&stages));
    }
    talk.say(&format!("{} in {:.1} s", args.model.display(), clock.elapsed().as_secs_f64()));
    Ok(ExitCode::SUCCESS)
}

/// Mistakes that would show late.
fn check_flags(args: &Args) -> Result<(), Error> {
    let given = [&args.text.source, &args.text.target];
    for path in given.into_iter().chain(&args.alignment).chain(&args.lm) {
        check_regular(path)?;
    }
    let (stray, kind) = match args.kind {
        ModelKind::Phrase if args.rules.given() => {
            ("--max-span, --max-symbols, --min-gap and --loose are", "hiero")
        }
        ModelKind::Hiero if args.phrases.given() => ("--max-length and --smoothing are", "phrase"),
        _ => ("", ""),
    };
    if !stray.is_empty() {
        return Err(
            Error::new(format!("{stray} for --kind {kind}")).hint("leave them out, or change the kind")
        );
    }
    if args.alignment.is_none() {
        args.align.check()?;
    }
    for lm in &args.lm {
        Model::open(lm)?;
    }
    Ok(())
}

/// Everything that decides the model. Files count by what is in them.
fn settings(args: &Args) -> Result<Settings, Error> {
    let mut s = Settings::default();
    let digest = |path: &Path| Input::open(path)?.digest();
    s.add("version", env!("CARGO_PKG_VERSION"));
    s.add("kind", if args.kind == ModelKind::Phrase { "phrase" } else { "hiero" });
    s.add("source", digest(&args.text.source)?);
    s.add("target", digest(&args.text.target)?);
    s.add("max-words", args.text.max_words);
    if let Some(path) = &args.alignment {
        s.add("alignment", digest(path)?);
    } else {
        let a = &args.align;
        s.add("align-model", value_name(&args.align_model));
        s.add("first-rounds", a.first_rounds);
        s.add("rounds", a.rounds);
        s.add("null", a.null);
        s.add("prior", a.prior);
        s.add("agreement", a.agreement);
        s.add("symmetrize", value_name(&a.symmetrize));
    }
    match args.kind {
        ModelKind::Phrase => args.phrases.describe(&mut s, SMOOTHING),
        ModelKind::Hiero => args.rules.describe(&mut s),
    }
    for lm in &args.lm {
        s.add(&format!("lm-{}", s.iter().filter(|(k, _)| k.starts_with("lm-")).count()), digest(lm)?);
    }
    if args.lm.is_empty() {
        s.add("order", args.order);
    }
    s.add("oov", args.oov);
    s.add("text-tables", args.text_tables);
    Ok(s)
}

fn train(
    args: &Args,
    stages: &mut Stages,
    corpus: &Corpus,
    given: Option<Vec<Vec<Link>>>,
) -> Result<(), Error> {
    let talk = stages.talk;
    stages.stage("text", |_| {
        let d = corpus.dropped;
        let entry = json!({"lines": corpus.total, "kept": corpus.len(),
                           "dropped": {"empty": d.empty, "long": d.long, "marks": d.marks},
                           "source_words": corpus.source.tokens(), "target_words": corpus.target.tokens(),
                           "source_vocabulary": corpus.source.vocabulary.len(),
                           "target_vocabulary": corpus.target.vocabulary.len()});
        Ok((entry, vec![]))
    })?;
    let mut links = given;
    stages.stage("align", |stages| {
        let mut entry = json!({});
        let made = if let Some(given) = links.take() {
            given
        } else {
            let (model, [target, source]) = args.align.train(corpus, args.align_model, talk)?;
            entry["perplexity"] = json!({"target_given_source": target, "source_given_target": source});
            model.align(corpus, args.align.symmetrize.into())
        };
        AtomicFile::write_all_to(&stages.path("alignment.gz"), align::lines(corpus, &made).as_bytes())?;
        entry["links"] = made.iter().map(Vec::len).sum::<usize>().into();
        links = Some(made);
        Ok((entry, vec!["alignment.gz".to_owned()]))
    })?;
    stages.stage("table", |stages| {
        let links = match links.take() {
            Some(links) => links,
            None => read_links(&stages.path("alignment.gz"), corpus)?,
        };
        table(args, stages, corpus, &links)
    })?;
    stages.stage("lm", |stages| language_models(args, stages))?;
    stages.stage("weights", |stages| configure(args, stages))
}

/// Phrases or rules, into the binary table, and into text if wanted.
fn table(args: &Args, stages: &Stages, corpus: &Corpus, links: &[Vec<Link>]) -> Made {
    let clock = Instant::now();
    let hierarchical = args.kind == ModelKind::Hiero;
    let settings = if hierarchical {
        args.rules.settings(&args.sort)
    } else {
        args.phrases.settings(&args.sort, SMOOTHING)
    };
    let (source, target) = (&corpus.source.vocabulary, &corpus.target.vocabulary);
    let mut builder = Builder::new(hierarchical);
    let mut writer =
        args.text_tables.then(|| extract::text_writer(&settings, stages.work.path())).transpose()?;
    let talk = stages.talk;
    let mut told = |line: &str| talk.say(&format!("{line}  {:.1} s", clock.elapsed().as_secs_f64()));
    let report = extract(corpus, links, &settings, &mut told, &mut |entry| {
        if let Some(writer) = &mut writer {
            writer.entry(entry, source, target)?;
        }
        builder.entry(entry)
    })?;
    let mut files = vec!["table.bin".to_owned()];
    if let Some(writer) = writer {
        extract::finish_text(writer, &settings, stages.work.path())?;
        let names: &[&str] = if hierarchical {
            &["rule-table.gz", "glue-grammar"]
        } else {
            &["phrase-table.gz", "reordering-table.gz"]
        };
        files.extend(names.iter().map(|n| (*n).to_owned()));
    }
    extract::warn_guess(&report, talk);
    talk.say(&extract::summary(&report, hierarchical));
    let table = builder.finish(source, target)?;
    table.write(&stages.path("table.bin"))?;
    let by_gaps = if hierarchical { json!(report.entries) } else { Value::Null };
    let entry = json!({"entries": report.pairs, "sources": report.sources, "found": report.found, "by_gaps": by_gaps,
                       "bytes": table.bytes()});
    Ok((entry, files))
}

/// The model of the target text, or binaries of those that were given.
fn language_models(args: &Args, stages: &Stages) -> Made {
    let (mut rows, mut built, mut files) = (Vec::new(), Vec::new(), Vec::new());
    let paths = if args.lm.is_empty() {
        let arpa = stages.path(if args.text_tables { "lm.arpa.gz" } else { "lm.arpa" });
        lm::build_to(&args.text.target, args.order.into(), &[], args.sort.memory, &arpa, stages.talk)?;
        built.push(arpa.clone());
        vec![arpa]
    } else {
        args.lm.clone()
    };
    for (k, path) in paths.iter().enumerate() {
        let name = if Model::is_binary(path) {
            let whole = std::fs::canonicalize(path);
            whole.map_err(|e| Error::io(path.display().to_string(), "open it", &e))?.display().to_string()
        } else {
            let name = format!("lm{k}.bin");
            Model::compile(&Arpa::read(path)?, &path.display().to_string(), &stages.path(&name))?;
            files.push(name.clone());
            name
        };
        let model = Model::open(&stages.path(&name))?;
        let perplexity = lm::perplexity(&model, &args.text.target)?;
        rows.push(json!({"file": name, "order": model.order(), "words": model.words(), "counts": model.info().counts,
                         "bytes": model.info().bytes, "perplexity_of_target": perplexity}));
    }
    if args.text_tables {
        files.extend(built.iter().map(|_| "lm.arpa.gz".to_owned()));
    } else {
        for path in built {
            std::fs::remove_file(&path)
                .map_err(|e| Error::io(path.display().to_string(), "remove it", &e))?;
        }
    }
    Ok((json!({"models": rows}), files))
}

/// Initial weights, and the file that says what the model is made of.
fn configure(args: &Args, stages: &Stages) -> Made {
    let models: Vec<String> = stages
        .found("lm")
        .and_then(|l| l["models"].as_array())
        .into_iter()
        .flatten()
        .filter_map(|m| m["file"].as_str().map(str::to_owned))
        .collect();
    let mut weights = String::from("# initial weights, before tuning\n");
    let mut add = |name: &str, values: &[f64]| {
        for (k, value) in values.iter().enumerate() {
            let index = if values.len() > 1 { format!("[{k}]") } else { String::new() };
            let _ = writeln!(weights, "{name}{index} {value}");
        }
    };
    for k in 0..models.len() {
        add(&DenseFeature::LanguageModel.block(k), &[0.5]);
    }
    for k in 0..if args.oov { models.len() } else { 0 } {
        add(&DenseFeature::UnknownToLm.block(k), &[0.0]);
    }
    add(&DenseFeature::TranslationModel.block(0), &[0.2; 4]);
    add(&DenseFeature::PhrasePenalty.block(0), &[0.2]);
    add(&DenseFeature::WordPenalty.block(0), &[-1.0]);
    if args.kind == ModelKind::Phrase {
        add(&DenseFeature::LexicalReordering.block(0), &[0.3; 6]);
        add(&DenseFeature::Distortion.block(0), &[0.3]);
    } else {
        add(&DenseFeature::Glue.block(0), &[1.0]);
        add(&DenseFeature::Rules.block(0), &[0.0; 3]);
    }
    let kind = match args.kind {
        ModelKind::Phrase => decode::ModelKind::Phrase,
        ModelKind::Hiero => decode::ModelKind::Hiero,
    };
    let config = ModelConfig {
        lm: models.iter().map(PathBuf::from).collect(),
        oov: args.oov,
        ..ModelConfig::new(kind)
    };
    AtomicFile::write_all_to(&stages.path("weights.txt"), weights.as_bytes())?;
    ModelDir::create(
        stages.work.path(),
        config,
        &format!("a model of luthier {}", env!("CARGO_PKG_VERSION")),
    )?;
    Ok((json!({}), vec!["weights.txt".to_owned(), "luthier.toml".to_owned()]))
}

/// The summary for people.
fn told(stages: &Stages) -> String {
    let get = |stage: &str, key: &str| stages.found(stage).map_or(Value::Null, |s| s[key].clone());
    let n = |v: Value| thousands(v.as_u64().unwrap_or(0) as usize);
    let d = get("text", "dropped");
    let mut text = format!(
        "text    {} of {} pairs kept ({} empty, {} too long, {} with marks left out)\n",
        n(get("text", "kept")),
        n(get("text", "lines")),
        n(d["empty"].clone()),
        n(d["long"].clone()),
        n(d["marks"].clone())
    );
    let _ = writeln!(text, "align   {} links", n(get("align", "links")));
    let _ =
        writeln!(text, "table   {} entries, {} bytes", n(get("table", "entries")), n(get("table", "bytes")));
    for m in get("lm", "models").as_array().into_iter().flatten() {
        let _ = writeln!(
            text,
            "lm      order {}, {} words, {} bytes, perplexity of the target text {:.2}",
            m["order"],
            n(m["words"].clone()),
            n(m["bytes"].clone()),
            m["perplexity_of_target"].as_f64().unwrap_or(f64::NAN)
        );
    }
    let seconds = |d: &Value| {
        format!("{} {:.1}", d["stage"].as_str().unwrap_or(""), d["seconds"].as_f64().unwrap_or(0.0))
    };
    let _ = write!(text, "seconds {}", stages.done.iter().map(seconds).collect::<Vec<_>>().join(", "));
    text
}
