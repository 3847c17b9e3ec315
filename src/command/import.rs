//! `luthier import`.

use super::Done;
use crate::talk::{Talk, thousands};
use luthier::{
    core::{Error, FeatureKey, Progress, Weights},
    io::{AtomicFile, Settings, WorkDir, WorkKind, moses_ini, text::read_lines},
    lm::{Arpa, Model},
    table::{Table, read_text},
};
use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

/// Make a model directory of a Moses configuration, phrase-based or hierarchical.
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
    span_limit: Option<u64>,
    /// Sections that say how to search, which are flags here.
    ignored: Vec<String>,
}

fn parse(file: &str, lines: &[String]) -> Result<Ini, Error> {
    let mut ini = Ini::default();
    let mut section = String::new();
    let mut numbers = std::collections::BTreeMap::new();
    for (k, line) in lines.iter().enumerate() {
        // A comment goes to the end of the line.
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
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
            "distortion-limit" => {
                let limit = line.parse().map_err(|_| {
                    Error::at(file, at, format!("the distortion limit is {line:?}, expected a number"))
                })?;
                ini.distortion_limit = Some(limit);
            }
            "search-algorithm" => ini.chart |= line == "3",
            "max-chart-span" if ini.span_limit.is_none() => {
                let limit = line.parse().map_err(|_| {
                    Error::at(file, at, format!("the longest span is {line:?}, expected a number"))
                })?;
                ini.span_limit = Some(limit);
            }
            "stack" | "cube-pruning-pop-limit" | "beam-threshold" | "drop-unknown" | "ttable-limit" => {
                ini.ignored.push(section.clone());
            }
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
    if !moses_ini::is_moses_ini(&lines.lines.join("\n")) {
        return Err(
            Error::in_file(&lines.file, "has no [weight] section, expected a Moses configuration").into()
        );
    }
    let ini = parse(&lines.file, &lines.lines)?;
    let weights = luthier::io::read_weights(&args.ini)?;
    let plan = plan(&args.ini, &lines.file, &ini)?;
    if !ini.ignored.is_empty() {
        talk.warn(&format!(
            "[{}] of {} is not taken over: give limits of the search to decode and tune",
            ini.ignored.join("], ["),
            lines.file
        ));
    }
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
    table_limit: Option<usize>,
    /// What a glue rule counts.
    glue: Option<f64>,
}

/// What the rule that puts S and X together counts in a glue grammar.
fn glue(path: &Path) -> Result<f64, Error> {
    let lines = read_lines(path)?;
    for (k, line) in lines.lines.iter().enumerate() {
        let fields: Vec<&str> = line.split("|||").map(str::trim).collect();
        if fields.first().is_some_and(|s| *s == "[X][S] [X][X] [X]") {
            let value = fields.get(2).and_then(|v| v.parse::<f64>().ok()).filter(|v| *v > 0.0);
            return value.map(f64::ln).ok_or_else(|| {
                Error::at(&lines.file, k as u64 + 1, "the glue rule has no score, expected a number above 0")
            });
        }
    }
    Err(Error::in_file(&lines.file, "has no rule `[X][S] [X][X] [X]`, expected a glue grammar of Moses"))
}

fn plan(path: &Path, file: &str, ini: &Ini) -> Result<Plan, Error> {
    let (mut table, mut reordering, mut lms, mut names) = (None, None, Vec::new(), Vec::new());
    let (mut seen, mut table_limit, mut glued) = (Vec::new(), None, None);
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
            kind @ ("UnknownWordPenalty" | "WordPenalty" | "PhrasePenalty" | "Distortion") => {
                once(seen.contains(&kind))?;
                seen.push(kind);
                name(&feature.name, &format!("{kind}0"));
            }
            "PhraseDictionaryMemory" | "PhraseDictionaryCompact" | "PhraseDictionaryOnDisk" => {
                let second = table.is_some();
                once(second && (!ini.chart || glued.is_some()))?;
                if feature.kind != "PhraseDictionaryMemory" {
                    return Err(Error::at(
                        file,
                        feature.line,
                        format!("{} is a binary of Moses", feature.kind),
                    )
                    .hint("name the text table that it was made of, as PhraseDictionaryMemory"));
                }
                if second {
                    glued = Some(glue(&find(path, feature)?)?);
                    name(&feature.name, "Glue0");
                    continue;
                }
                table = Some(find(path, feature)?);
                table_limit =
                    feature.settings.iter().find(|s| s.0 == "table-limit").and_then(|s| s.1.parse().ok());
                name(&feature.name, "TranslationModel0");
            }
            "LexicalReordering" => {
                once(reordering.is_some())?;
                let kind = feature.settings.iter().find(|s| s.0 == "type").map_or("", |s| s.1.as_str());
                // Words decide about orientation, and each orientation has a weight of its own.
                let plain = kind.strip_prefix("wbe-").unwrap_or(kind);
                if plain.strip_suffix("-allff").unwrap_or(plain) != "msd-bidirectional-fe" {
                    return Err(Error::at(file, feature.line, format!("the reordering is of type {kind:?}"))
                        .hint("expected wbe-msd-bidirectional-fe-allff"));
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
    if ini.chart && glued.is_none() {
        return Err(Error::in_file(file, "has no second PhraseDictionaryMemory, expected the glue grammar"));
    }
    Ok(Plan { table, reordering, lms, names, table_limit, glue: glued })
}

fn convert(args: &Args, ini: &Ini, plan: &Plan, weights: &Weights, talk: Talk) -> Result<(), Error> {
    let at = |name: &str| args.model.join(name);
    // A model that is half new is none.
    let _ = std::fs::remove_file(at("luthier.toml"));
    let table = read_text(&plan.table, plan.reordering.as_deref(), Progress::NONE)?;
    if table.shape().hierarchical != ini.chart {
        let (found, expected) = if ini.chart { ("phrases", "rules") } else { ("rules", "phrases") };
        return Err(Error::in_file(
            plan.table.display().to_string(),
            format!("is a table of {found}, expected {expected}"),
        ));
    }
    check_weights(args, plan, weights, &table)?;
    table.write(&at("table.bin"))?;
    let what = if ini.chart { "rules" } else { "phrase pairs" };
    talk.say(&format!("{}: {} {what}", plan.table.display(), thousands(table.len())));
    let mut lms = Vec::new();
    for (k, path) in plan.lms.iter().enumerate() {
        let name = format!("lm{k}.bin");
        let arpa = Arpa::read(path, Progress::NONE)?;
        let model = Model::compile(&arpa, &path.display().to_string(), &at(&name), Progress::NONE)?;
        talk.say(&format!("{}: order {}, {} words", path.display(), model.order(), thousands(model.words())));
        lms.push(format!("{name:?}"));
    }
    AtomicFile::write_all_to(&at("weights.txt"), renamed(plan, weights, &table).as_bytes())?;
    let mut text = format!(
        "# a model of luthier {}, imported from {}\nkind = \"{}\"\ntable = \"table.bin\"\nweights = \"weights.txt\"\n\
         lm = [{}]\n",
        env!("CARGO_PKG_VERSION"),
        args.ini.display().to_string().replace(char::is_control, " "),
        if ini.chart { "hiero" } else { "phrase" },
        lms.join(", ")
    );
    if let Some(glue) = plan.glue {
        let _ = writeln!(text, "glue = {glue:?}");
    }
    if let Some(limit) = ini.span_limit {
        let _ = writeln!(text, "span-limit = {limit}");
    }
    if let Some(limit) = plan.table_limit {
        let _ = writeln!(text, "table-limit = {limit}");
    }
    if let Some(limit) = ini.distortion_limit {
        // Moses says −1 where there is none.
        let limit = usize::try_from(limit).unwrap_or(luthier::decode::MAX_DISTORTION);
        let _ = writeln!(text, "distortion-limit = {}", limit.min(luthier::decode::MAX_DISTORTION));
    }
    AtomicFile::write_all_to(&at("luthier.toml"), text.as_bytes())
}

/// Every feature needs its weights.
fn check_weights(args: &Args, plan: &Plan, weights: &Weights, table: &Table) -> Result<(), Error> {
    for (there, here) in &plan.names {
        let expected = match here.as_str() {
            "TranslationModel0" => table.shape().scores,
            "LexicalReordering0" => table.shape().reordering,
            "UnknownWordPenalty0" => continue,
            _ => 1,
        };
        let has = |index: &str| weights.contains(FeatureKey::of(&format!("{there}{index}")));
        let found = if has("") { 1 } else { (0..100).take_while(|k| has(&format!("[{k}]"))).count() };
        if found != expected {
            return Err(Error::in_file(
                args.ini.display().to_string(),
                format!("has {found} weights for {there}, expected {expected}"),
            )
            .hint("names under [weight] must be those under [feature]"));
        }
    }
    Ok(())
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
