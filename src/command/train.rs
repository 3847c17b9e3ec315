//! `luthier train`.

use super::{
    Common, Done,
    align::{self, TextArgs, read_links},
    check_regular, extract, lm, write_out,
};
use crate::talk::{Talk, thousands};
use clap::ValueEnum;
use luthier::{
    core::{Error, Progress},
    io::{AtomicFile, Input, Settings, WorkDir, WorkKind, sort::SortSettings},
    lm::{MAX_ORDER, Model, Settings as LmSettings},
    table::Builder,
    train::{
        Corpus, Link, PhraseSettings, RuleLimits,
        align::Settings as AlignSettings,
        extract::{Settings as ExtractSettings, What},
    },
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

/// Train a translation model from parallel text.
///
/// The directory gets alignment.gz, table.bin (phrases with reordering, or rules), lm0.bin, weights.txt (initial weights)
/// and luthier.toml, which names them; train.jsonl has one line per stage. Re-run the same command to resume. The language
/// model is estimated from all lines of the target text, also from those that are skipped elsewhere.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    text: TextArgs,
    /// Model directory; created, or resumed if it exists.
    #[arg(long, value_name = "DIR")]
    model: PathBuf,
    /// Kind of the model: phrases with reordering, or hierarchical rules.
    #[arg(long, value_name = "KIND", default_value = "phrase")]
    kind: ModelKind,
    /// Use this word alignment (Pharaoh format, one line of links per line of text) instead of aligning.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["align-model", "rounds", "first_rounds", "null", "prior", "agreement", "symmetrize"])]
    alignment: Option<PathBuf>,
    /// Use this language model, ARPA or binary, instead of one of the target text. May be repeated.
    #[arg(long, value_name = "LM")]
    lm: Vec<PathBuf>,
    /// Order of the language model of the target text.
    #[arg(long, value_name = "N", default_value_t = LmSettings::default().order, conflicts_with = "lm", value_parser = clap::value_parser!(u8).range(1..=MAX_ORDER as i64))]
    order: u8,
    /// Add a feature for each language model that counts the words unknown to it.
    #[arg(long)]
    oov: bool,
    /// Also write tables and language model as text.
    #[arg(long)]
    text_tables: bool,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten, next_help_heading = "Alignment")]
    align: AlignSettings,
    #[command(flatten, next_help_heading = "Phrases")]
    phrases: Option<PhraseSettings>,
    #[command(flatten, next_help_heading = "Rules")]
    rules: Option<RuleLimits>,
    #[command(flatten, next_help_heading = "Sorting")]
    sort: SortSettings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ModelKind {
    Phrase,
    Hiero,
}

/// Everything that decides the model; train.toml in the model directory. Keys are the names of the flags.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct TrainSpec {
    version: String,
    kind: ModelKind,
    source: InputFile,
    target: InputFile,
    max_words: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    alignment: Option<InputFile>,
    #[serde(flatten)]
    align: Option<AlignSettings>,
    #[serde(flatten)]
    phrases: Option<PhraseSettings>,
    #[serde(flatten)]
    rules: Option<RuleLimits>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lm: Vec<InputFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<u8>,
    oov: bool,
    text_tables: bool,
}

/// A file that is read. What counts is what is in it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct InputFile {
    path: PathBuf,
    digest: String,
}

impl InputFile {
    fn new(path: &Path) -> Result<Self, Error> {
        Ok(InputFile { path: path.to_owned(), digest: Input::open(path)?.digest()? })
    }
}

impl TrainSpec {
    fn new(args: &Args) -> Result<Self, Error> {
        let (phrases, rules) = match args.what() {
            What::Phrases(phrases) => (Some(phrases), None),
            What::Rules(rules) => (None, Some(rules)),
        };
        Ok(TrainSpec {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            kind: args.kind,
            source: InputFile::new(&args.text.source)?,
            target: InputFile::new(&args.text.target)?,
            max_words: args.text.max_words,
            alignment: args.alignment.as_deref().map(InputFile::new).transpose()?,
            align: args.alignment.is_none().then(|| args.align.clone()),
            phrases,
            rules,
            lm: args.lm.iter().map(|path| InputFile::new(path)).collect::<Result<_, _>>()?,
            order: args.lm.is_empty().then_some(args.order),
            oov: args.oov,
            text_tables: args.text_tables,
        })
    }

    /// As the named values that a work directory compares.
    fn settings(&self) -> Result<Settings, Error> {
        let table = toml::Value::try_from(self)
            .map_err(|e| Error::new(format!("the settings cannot be written: {e}")))?;
        let mut settings = Settings::default();
        named_values(&mut settings, "", &table);
        Ok(settings)
    }
}

/// Adds all values below `key`: tables by dotted names, lists by numbers, files by their digests.
fn named_values(settings: &mut Settings, key: &str, value: &toml::Value) {
    let below = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
    let text = match value {
        toml::Value::Table(table) => {
            return match (table.len(), table.get("path"), table.get("digest")) {
                (2, Some(_), Some(digest)) => named_values(settings, key, digest),
                _ => table.iter().for_each(|(name, value)| named_values(settings, &below(name), value)),
            };
        }
        toml::Value::Array(list) => {
            let numbered = list.iter().enumerate();
            return numbered.for_each(|(k, value)| named_values(settings, &format!("{key}-{k}"), value));
        }
        toml::Value::String(text) => text.clone(),
        toml::Value::Float(number) => number.to_string(),
        other => other.to_string(),
    };
    settings.add(key, text);
}

impl Args {
    fn what(&self) -> What {
        match self.kind {
            ModelKind::Phrase => What::Phrases(self.phrases.unwrap_or_default()),
            ModelKind::Hiero => What::Rules(self.rules.unwrap_or_default()),
        }
    }
}

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

    fn open(path: &Path, spec: &TrainSpec, talk: Talk) -> Result<Self, Error> {
        let read = |path: &Path| -> Vec<Value> {
            let text = std::fs::read_to_string(Self::log(path)).unwrap_or_default();
            text.lines().map_while(|l| serde_json::from_str(l).ok()).collect()
        };
        let work = WorkDir::open(path, &KIND, &spec.settings()?, |path| read(path).len() > 1)?;
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
    let mut stages = Stages::open(&args.model, &TrainSpec::new(args)?, talk)?;
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
        ModelKind::Phrase if args.rules.is_some() => {
            ("--max-span, --max-symbols, --min-gap and --loose are", "hiero")
        }
        ModelKind::Hiero if args.phrases.is_some() => ("--max-length and --smoothing are", "phrase"),
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
            let model = align::train(corpus, &args.align, talk)?;
            let [target, source] = align::perplexities(&model, corpus);
            entry["perplexity"] = json!({"target_given_source": target, "source_given_target": source});
            align::aligned(&model, corpus, &args.align, talk)?
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
    let settings = ExtractSettings { what: args.what(), sort: args.sort.clone() };
    let hierarchical = settings.what.is_rules();
    let (source, target) = (&corpus.source.vocabulary, &corpus.target.vocabulary);
    let mut builder = Builder::new(hierarchical);
    let mut writer =
        args.text_tables.then(|| extract::text_writer(&settings, stages.work.path())).transpose()?;
    let talk = stages.talk;
    let report = extract::extract(corpus, links, &settings, talk, &mut |entry| {
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
    let table = builder.finish(source, target, Progress::NONE)?;
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
        let settings = LmSettings { order: args.order, prune: Vec::new(), sort: args.sort.clone() };
        lm::build_to(&args.text.target, &settings, &arpa, stages.talk)?;
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
            lm::compile_to(path, &stages.path(&name), stages.talk)?;
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
        add(&format!("LM{k}"), &[0.5]);
    }
    for k in 0..if args.oov { models.len() } else { 0 } {
        add(&format!("OOV{k}"), &[0.0]);
    }
    add("TranslationModel0", &[0.2; 4]);
    add("PhrasePenalty0", &[0.2]);
    add("WordPenalty0", &[-1.0]);
    if args.kind == ModelKind::Phrase {
        add("LexicalReordering0", &[0.3; 6]);
        add("Distortion0", &[0.3]);
    } else {
        add("Glue0", &[1.0]);
        add("Rules0", &[0.0; 3]);
    }
    AtomicFile::write_all_to(&stages.path("weights.txt"), weights.as_bytes())?;
    let mut config = Settings::default();
    config.add("kind", if args.kind == ModelKind::Phrase { "phrase" } else { "hiero" });
    config.add("table", "table.bin");
    config.add("weights", "weights.txt");
    let list = models.iter().map(|m| format!("{m:?}")).collect::<Vec<_>>().join(", ");
    let text = format!(
        "# a model of luthier {}\n{}lm = [{list}]\noov = {}\n",
        env!("CARGO_PKG_VERSION"),
        config.to_toml(),
        args.oov
    );
    AtomicFile::write_all_to(&stages.path("luthier.toml"), text.as_bytes())?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(kind: ModelKind, aligned: bool) -> TrainSpec {
        let file = |name: &str| InputFile { path: name.into(), digest: format!("digest of {name}") };
        TrainSpec {
            version: "0.1.0".to_owned(),
            kind,
            source: file("f"),
            target: file("e"),
            max_words: 100,
            alignment: (!aligned).then(|| file("a")),
            align: aligned.then(AlignSettings::default),
            phrases: (kind == ModelKind::Phrase).then(PhraseSettings::default),
            rules: (kind == ModelKind::Hiero).then(RuleLimits::default),
            lm: if aligned { Vec::new() } else { vec![file("l"), file("m")] },
            order: aligned.then_some(5),
            oov: false,
            text_tables: true,
        }
    }

    #[test]
    fn a_spec_is_read_as_it_was_written() {
        for (kind, aligned) in [(ModelKind::Phrase, true), (ModelKind::Hiero, false)] {
            let text = toml::to_string(&spec(kind, aligned)).unwrap();
            assert_eq!(toml::from_str::<TrainSpec>(&text).unwrap(), spec(kind, aligned), "{text}");
        }
    }

    /// Directories of version 0.1.0 before there was a struct.
    #[test]
    fn named_values_are_those_of_before() {
        let before = "kind = \"hiero\"\nalignment = \"digest of a\"\nlm-0 = \"digest of l\"\nlm-1 = \"digest of m\"\n\
                      loose = \"false\"\nmax-span = \"10\"\nmax-symbols = \"5\"\nmin-gap = \"1\"\nmax-words = \"100\"\n\
                      oov = \"false\"\nsource = \"digest of f\"\ntarget = \"digest of e\"\ntext-tables = \"true\"\n\
                      version = \"0.1.0\"\n";
        assert_eq!(spec(ModelKind::Hiero, false).settings().unwrap().difference_to(before), None);
        let before = "align-model = \"hmm\"\nagreement = \"0.5\"\nfirst-rounds = \"10\"\nkind = \"phrase\"\n\
                      max-length = \"7\"\nmax-words = \"100\"\nnull = \"0.02\"\noov = \"false\"\norder = \"5\"\nprior = \"0.01\"\n\
                      rounds = \"5\"\nsmoothing = \"kneser-ney\"\nsource = \"digest of f\"\nsymmetrize = \"grow-diag-final-and\"\n\
                      target = \"digest of e\"\ntext-tables = \"true\"\nversion = \"0.1.0\"\n";
        assert_eq!(spec(ModelKind::Phrase, true).settings().unwrap().difference_to(before), None);
    }
}
