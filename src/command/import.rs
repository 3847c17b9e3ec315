//! `luthier import`.

use super::Done;
use crate::talk::{Talk, thousands};
use luthier::{
    core::{AtomicFile, Error, FeatureKey, Settings, Weights, WorkDir, WorkKind, text::read_lines},
    lm::{Arpa, Model},
    table::{Table, read_text},
};
use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

/// Make a model directory of a phrase-based Moses configuration.
///
/// Tables and language models are compiled; the weights of the configuration become weights.txt.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The configuration, moses.ini. Paths in it are looked for from here, then from its own directory.
    ini: PathBuf,
    /// Directory that the model goes to.
    #[arg(long, value_name = "DIR")]
    model: PathBuf,
}

const KIND: WorkKind = WorkKind { file: "import.toml", what: "model", flag: "--model", parts: &[] };

/// A line of the `[feature]` section.
struct Feature {
    line: u64,
    kind: String,
    name: String,
    path: Option<String>,
    settings: Vec<(String, String)>,
}

/// What a configuration says.
#[derive(Default)]
struct Ini {
    features: Vec<Feature>,
    distortion_limit: Option<i64>,
    chart: bool,
}

fn parse(file: &str, lines: &[String]) -> Result<Ini, Error> {
    let mut ini = Ini::default();
    let mut section = String::new();
    let mut numbers = std::collections::BTreeMap::new();
    for (k, line) in lines.iter().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            name.clone_into(&mut section);
            continue;
        }
        let at = k as u64 + 1;
        match section.as_str() {
            "feature" => {
                let mut words = line.split_ascii_whitespace();
                let kind = words.next().unwrap_or_default().to_owned();
                let settings: Vec<(String, String)> = words
                    .map(|w| {
                        let pair = w.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()));
                        pair.ok_or_else(|| Error::at(file, at, format!("found {w:?}, expected key=value")))
                    })
                    .collect::<Result<_, _>>()?;
                let get = |key: &str| settings.iter().find(|s| s.0 == key).map(|s| s.1.clone());
                // Moses numbers features of a kind that have no name.
                let number = numbers.entry(kind.clone()).or_insert(0);
                let name = get("name").unwrap_or_else(|| format!("{kind}{number}"));
                *number += 1;
                ini.features.push(Feature { line: at, path: get("path"), kind, name, settings });
            }
            "distortion-limit" => ini.distortion_limit = line.parse().ok(),
            "search-algorithm" => ini.chart |= line == "3",
            _ => {}
        }
    }
    Ok(ini)
}

/// A file of the configuration.
fn find(ini: &Path, feature: &Feature) -> Result<PathBuf, Error> {
    let name = ini.display().to_string();
    let path = feature
        .path
        .as_deref()
        .ok_or_else(|| Error::at(&name, feature.line, format!("{} has no path=", feature.kind)))?;
    let beside = ini.parent().unwrap_or(Path::new("")).join(path);
    let candidates = [PathBuf::from(path), beside];
    for candidate in &candidates {
        for ending in ["", ".gz"] {
            let file = PathBuf::from(format!("{}{ending}", candidate.display()));
            if file.is_file() {
                return Ok(file);
            }
        }
    }
    Err(Error::at(&name, feature.line, format!("the file {path} of {} is not there", feature.name))
        .hint(format!("looked for it as {} and {}", candidates[0].display(), candidates[1].display())))
}

pub(crate) fn run(args: &Args, talk: Talk) -> Done {
    let clock = Instant::now();
    let lines = read_lines(&args.ini)?;
    let ini = parse(&lines.file, &lines.lines)?;
    let weights = Weights::read(&args.ini)?;
    if ini.chart {
        return Err(Error::in_file(
            &lines.file,
            "is a configuration of the chart decoder, expected phrase-based",
        )
        .into());
    }
    let plan = plan(&args.ini, &lines.file, &ini)?;
    let mut settings = Settings::default();
    settings.add("version", env!("CARGO_PKG_VERSION"));
    settings.add("ini", lines.digest);
    let work = WorkDir::open(&args.model, &KIND, &settings, |dir| dir.join("luthier.toml").exists())?;
    match convert(args, &ini, &plan, &weights, talk) {
        Ok(()) => {
            talk.say(&format!("{} in {:.1} s", args.model.display(), clock.elapsed().as_secs_f64()));
            Ok(ExitCode::SUCCESS)
        }
        Err(e) => {
            work.discard();
            Err(e.into())
        }
    }
}

/// What becomes of the features.
struct Plan {
    table: PathBuf,
    reordering: Option<PathBuf>,
    lms: Vec<PathBuf>,
    /// Names there and here.
    names: Vec<(String, String)>,
}

fn plan(path: &Path, file: &str, ini: &Ini) -> Result<Plan, Error> {
    let (mut table, mut reordering, mut lms, mut names) = (None, None, Vec::new(), Vec::new());
    let mut name = |there: &str, here: &str| names.push((there.to_owned(), here.to_owned()));
    for feature in &ini.features {
        let once = |taken: bool| {
            if !taken {
                return Ok(());
            }
            Err(Error::at(file, feature.line, format!("a second {} stands here", feature.kind))
                .hint("models with one phrase table and one reordering table can be imported"))
        };
        match feature.kind.as_str() {
            "UnknownWordPenalty" => name(&feature.name, "UnknownWordPenalty0"),
            "WordPenalty" => name(&feature.name, "WordPenalty0"),
            "PhrasePenalty" => name(&feature.name, "PhrasePenalty0"),
            "Distortion" => name(&feature.name, "Distortion0"),
            "PhraseDictionaryMemory" | "PhraseDictionaryCompact" | "PhraseDictionaryOnDisk" => {
                once(table.is_some())?;
                if feature.kind != "PhraseDictionaryMemory" {
                    return Err(Error::at(
                        file,
                        feature.line,
                        format!("{} is a binary of Moses", feature.kind),
                    )
                    .hint("name the text table that it was made of, as PhraseDictionaryMemory"));
                }
                table = Some(find(path, feature)?);
                name(&feature.name, "TranslationModel0");
            }
            "LexicalReordering" => {
                once(reordering.is_some())?;
                let kind = feature.settings.iter().find(|s| s.0 == "type").map_or("", |s| s.1.as_str());
                if !kind.contains("msd-bidirectional-fe") {
                    return Err(Error::at(file, feature.line, format!("the reordering is of type {kind:?}"))
                        .hint("expected msd-bidirectional-fe"));
                }
                reordering = Some(find(path, feature)?);
                name(&feature.name, "LexicalReordering0");
            }
            "KENLM" | "SRILM" | "IRSTLM" => {
                name(&feature.name, &format!("LM{}", lms.len()));
                lms.push(find(path, feature)?);
            }
            other => {
                return Err(Error::at(file, feature.line, format!("the feature {other} is not known"))
                    .hint("remove it, and tune again"));
            }
        }
    }
    let table = table.ok_or_else(|| Error::in_file(file, "has no PhraseDictionaryMemory"))?;
    Ok(Plan { table, reordering, lms, names })
}

fn convert(args: &Args, ini: &Ini, plan: &Plan, weights: &Weights, talk: Talk) -> Result<(), Error> {
    let at = |name: &str| args.model.join(name);
    let table = read_text(&plan.table, plan.reordering.as_deref())?;
    table.write(&at("table.bin"))?;
    talk.say(&format!("{}: {} phrase pairs", plan.table.display(), thousands(table.len())));
    let mut lms = Vec::new();
    for (k, path) in plan.lms.iter().enumerate() {
        let name = format!("lm{k}.bin");
        let model = Model::compile(&Arpa::read(path)?, &path.display().to_string(), &at(&name))?;
        talk.say(&format!("{}: order {}, {} words", path.display(), model.order(), thousands(model.words())));
        lms.push(format!("{name:?}"));
    }
    AtomicFile::write_all_to(&at("weights.txt"), renamed(plan, weights, &table).as_bytes())?;
    let mut text = format!(
        "# a model of luthier {}, imported from {}\nkind = \"phrase\"\ntable = \"table.bin\"\nweights = \"weights.txt\"\n\
         lm = [{}]\n",
        env!("CARGO_PKG_VERSION"),
        args.ini.display(),
        lms.join(", ")
    );
    if let Some(limit) = ini.distortion_limit {
        // Moses says −1 where there is none.
        let limit = usize::try_from(limit).unwrap_or(luthier::decode::MAX_DISTORTION);
        let _ = writeln!(text, "distortion-limit = {}", limit.min(luthier::decode::MAX_DISTORTION));
    }
    AtomicFile::write_all_to(&at("luthier.toml"), text.as_bytes())
}

/// Weights under our names.
fn renamed(plan: &Plan, weights: &Weights, table: &Table) -> String {
    let mut text = String::from("# weights of the Moses configuration\n");
    let most = table.shape().scores.max(6);
    for (there, here) in &plan.names {
        let indices = (0..most).map(|k| format!("[{k}]"));
        for index in [String::new()].into_iter().chain(indices) {
            let key = FeatureKey::of(&format!("{there}{index}"));
            if weights.contains(key) {
                let _ = writeln!(text, "{here}{index} {}", weights.get(key));
            }
        }
    }
    text
}
