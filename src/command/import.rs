//! `luthier import`: conversion of a Moses model to a model directory.

use super::{Common, Done};
use crate::talk::{Talk, thousands};
use luthier::{
    core::{Error, FeatureKey, Progress, Weights, math},
    decode::{DenseFeature, MAX_DISTORTION, ModelConfig, ModelDir, ModelKind},
    io::{AtomicFile, InputFile, WorkDir, WorkKind, moses_ini, text::read_lines},
    lm::{Arpa, Model},
    table::{Table, read_text},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

/// Convert a Moses model to a model directory.
///
/// Compiles the tables and language models of a moses.ini, phrase-based or hierarchical; its weights become weights.txt.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Moses configuration (moses.ini); its paths are relative to the working directory or to its own.
    ini: PathBuf,
    /// Model directory to create.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    model: PathBuf,
}

const KIND: WorkKind = WorkKind { file: "import.toml", what: "model", flag: "--model", parts: &[] };

/// A line of the `[feature]` section.
struct Feature {
    line: u64,
    kind: String,
    name: String,
    settings: Vec<(String, String)>,
}

/// A parsed moses.ini.
#[derive(Default)]
struct Ini {
    /// Features of the `[feature]` section.
    features: Vec<Feature>,
    /// Distortion limit in words; −1 for none.
    distortion_limit: Option<i64>,
    /// Whether the decoder is the chart decoder of hierarchical models.
    chart: bool,
    /// Maximum span of a rule in words.
    span_limit: Option<usize>,
    /// Sections with search limits, which are flags of `decode` and `tune` here.
    ignored: Vec<String>,
}

/// Parses a moses.ini. Fails on features and numbers that are not valid.
fn parse(file: &str, lines: &[String]) -> Result<Ini, Error> {
    let mut ini = Ini::default();
    let mut section = String::new();
    let mut numbers = BTreeMap::new();
    for (k, line) in lines.iter().enumerate() {
        // A comment extends to the end of the line.
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
            "feature" => ini.features.push(Feature::parse(file, at, line, &mut numbers)?),
            "distortion-limit" => ini.distortion_limit = Some(number(file, at, line, "distortion limit")?),
            "search-algorithm" => ini.chart |= line == "3",
            "max-chart-span" if ini.span_limit.is_none() => {
                ini.span_limit = Some(number(file, at, line, "longest span")?);
            }
            "stack" | "cube-pruning-pop-limit" | "beam-threshold" | "drop-unknown" | "ttable-limit" => {
                ini.ignored.push(section.clone());
            }
            _ => {}
        }
    }
    Ok(ini)
}

/// Parses a number of the configuration.
fn number<T: std::str::FromStr>(file: &str, at: u64, text: &str, what: &str) -> Result<T, Error> {
    text.parse().map_err(|_| Error::at(file, at, format!("the {what} is {text:?}, expected a number")))
}

impl Feature {
    /// Parses a line such as `KENLM name=LM0 path=lm.arpa order=5`. Features without a name are numbered by kind, as in
    /// Moses.
    fn parse(file: &str, at: u64, line: &str, numbers: &mut BTreeMap<String, usize>) -> Result<Self, Error> {
        let mut words = line.split_ascii_whitespace();
        let kind = words.next().unwrap_or_default().to_owned();
        let settings: Vec<(String, String)> = words
            .map(|w| {
                let pair = w.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()));
                pair.ok_or_else(|| Error::at(file, at, format!("found {w:?}, expected key=value")))
            })
            .collect::<Result<_, _>>()?;
        let number = numbers.entry(kind.clone()).or_insert(0);
        let mut feature = Feature { line: at, name: format!("{kind}{number}"), kind, settings };
        *number += 1;
        if let Some(name) = feature.get("name") {
            feature.name = name.to_owned();
        }
        Ok(feature)
    }

    /// Returns the value of a key.
    fn get(&self, key: &str) -> Option<&str> {
        self.settings.iter().find(|s| s.0 == key).map(|s| s.1.as_str())
    }
}

/// Returns the file of a feature, relative to the working directory or to the configuration, with or without `.gz`.
/// Fails if it does not exist.
fn find(ini: &Path, feature: &Feature) -> Result<PathBuf, Error> {
    let name = ini.display().to_string();
    let path = feature
        .get("path")
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
    Err(Error::at(&name, feature.line, format!("the file {path} of {} does not exist", feature.name))
        .hint(format!("tried {} and {}", candidates[0].display(), candidates[1].display())))
}

pub(crate) fn run(args: &Args, common: &Common, talk: Talk) -> Done {
    let clock = Instant::now();
    let lines = read_lines(&args.ini)?;
    if !moses_ini::is_moses_ini(&lines.lines.join("\n")) {
        return Err(
            Error::in_file(&lines.file, "has no [weight] section, expected a Moses configuration").into()
        );
    }
    let ini = parse(&lines.file, &lines.lines)?;
    let weights = luthier::io::read_weights(&args.ini)?;
    let plan = Planner::new(&args.ini, &lines.file, &ini).plan()?;
    if !ini.ignored.is_empty() {
        talk.warn(&format!(
            "[{}] of {} is ignored: give search limits to decode and tune as flags",
            ini.ignored.join("], ["),
            lines.file
        ));
    }
    let spec = ImportSpec::new(InputFile::new("ini", args.ini.display().to_string(), lines.digest), &plan)?;
    let work = WorkDir::open(&args.model, &KIND, &spec, ModelDir::exists)?;
    match convert(args, plan.config.clone(), &plan, &weights, talk) {
        Ok(()) => {
            if common.json {
                let kind = plan.config.kind;
                super::print_json(
                    &serde_json::json!({"model": args.model, "kind": kind, "lm": plan.lms.len()}),
                )?;
            }
            talk.say(&format!("{} in {:.1} s", args.model.display(), clock.elapsed().as_secs_f64()));
            Ok(ExitCode::SUCCESS)
        }
        Err(e) => {
            work.discard();
            Err(e.into())
        }
    }
}

/// Inputs of an imported model, as stored in `import.toml`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct ImportSpec {
    format: u32,
    version: String,
    inputs: Vec<InputFile>,
}

impl ImportSpec {
    fn new(ini: InputFile, plan: &Plan) -> Result<Self, Error> {
        let mut inputs = vec![ini, InputFile::read("table", &plan.table)?];
        if let Some(path) = &plan.reordering {
            inputs.push(InputFile::read("reordering", path)?);
        }
        if let Some(path) = &plan.glue_grammar {
            inputs.push(InputFile::read("glue-grammar", path)?);
        }
        for path in &plan.lms {
            inputs.push(InputFile::read("lm", path)?);
        }
        Ok(ImportSpec { format: 2, version: env!("CARGO_PKG_VERSION").to_owned(), inputs })
    }
}

/// Files of the Moses model, and the features that they become.
struct Plan {
    table: PathBuf,
    reordering: Option<PathBuf>,
    glue_grammar: Option<PathBuf>,
    lms: Vec<PathBuf>,
    /// Names of features in Moses, with the features and their numbers in Luthier.
    names: Vec<(String, DenseFeature, usize)>,
    config: ModelConfig,
}

/// Returns the logarithm of the score of the glue rule, which joins S and X. Fails if the grammar has no such rule.
fn glue(path: &Path) -> Result<f64, Error> {
    let lines = read_lines(path)?;
    for (k, line) in lines.lines.iter().enumerate() {
        let fields: Vec<&str> = line.split("|||").map(str::trim).collect();
        if fields.first().is_some_and(|s| *s == "[X][S] [X][X] [X]") {
            let value = fields.get(2).and_then(|v| v.parse::<f64>().ok()).filter(|v| *v > 0.0);
            return value.map(math::ln).ok_or_else(|| {
                Error::at(&lines.file, k as u64 + 1, "the glue rule has no score, expected a number above 0")
            });
        }
    }
    Err(Error::in_file(&lines.file, "has no rule `[X][S] [X][X] [X]`, expected a Moses glue grammar"))
}

/// Builder of a [`Plan`], to which features are added one after another.
struct Planner<'a> {
    /// Path of the configuration.
    path: &'a Path,
    /// Name of the configuration in messages.
    file: &'a str,
    ini: &'a Ini,
    table: Option<PathBuf>,
    reordering: Option<PathBuf>,
    glue_grammar: Option<PathBuf>,
    lms: Vec<PathBuf>,
    names: Vec<(String, DenseFeature, usize)>,
    config: ModelConfig,
}

impl<'a> Planner<'a> {
    fn new(path: &'a Path, file: &'a str, ini: &'a Ini) -> Self {
        let kind = if ini.chart { ModelKind::Hiero } else { ModelKind::Phrase };
        // In Moses, −1 means no limit.
        let jump = |limit| usize::try_from(limit).unwrap_or(MAX_DISTORTION).min(MAX_DISTORTION);
        let config = ModelConfig {
            span_limit: ini.span_limit,
            distortion_limit: ini.distortion_limit.map(jump),
            ..ModelConfig::new(kind)
        };
        Planner {
            path,
            file,
            ini,
            table: None,
            reordering: None,
            glue_grammar: None,
            lms: Vec::new(),
            names: Vec::new(),
            config,
        }
    }

    /// Adds all features. Fails if one is not supported, or if a table is missing.
    fn plan(mut self) -> Result<Plan, Error> {
        for feature in &self.ini.features {
            self.add(feature)?;
        }
        let Planner { file, ini, table, reordering, glue_grammar, lms, names, mut config, .. } = self;
        let table = table.ok_or_else(|| Error::in_file(file, "has no PhraseDictionaryMemory"))?;
        if ini.chart && config.glue.is_none() {
            return Err(Error::in_file(
                file,
                "has no second PhraseDictionaryMemory, expected the glue grammar",
            ));
        }
        config.lm = (0..lms.len()).map(lm_name).map(PathBuf::from).collect();
        Ok(Plan { table, reordering, glue_grammar, lms, names, config })
    }

    /// Adds a feature. Fails if it is not supported, or if its file does not exist.
    fn add(&mut self, feature: &Feature) -> Result<(), Error> {
        match feature.kind.as_str() {
            kind @ ("UnknownWordPenalty" | "WordPenalty" | "PhrasePenalty" | "Distortion") => {
                let here = DenseFeature::of_stem(kind);
                self.once(feature, self.names.iter().any(|n| Some(n.1) == here))?;
                self.names.extend(here.map(|here| (feature.name.clone(), here, 0)));
                Ok(())
            }
            "PhraseDictionaryMemory" | "PhraseDictionaryCompact" | "PhraseDictionaryOnDisk" => {
                self.add_table(feature)
            }
            "LexicalReordering" => self.add_reordering(feature),
            "KENLM" | "SRILM" | "IRSTLM" => {
                self.names.push((feature.name.clone(), DenseFeature::LanguageModel, self.lms.len()));
                self.lms.push(find(self.path, feature)?);
                Ok(())
            }
            other => Err(self
                .wrong(feature, format!("feature {other} is not supported"))
                .hint("remove its line and its weight, then tune")),
        }
    }

    /// Returns an error at the line of a feature.
    fn wrong(&self, feature: &Feature, what: String) -> Error {
        Error::at(self.file, feature.line, what)
    }

    /// Fails if a feature of this kind was added before.
    fn once(&self, feature: &Feature, taken: bool) -> Result<(), Error> {
        if !taken {
            return Ok(());
        }
        Err(self
            .wrong(feature, format!("a second {}, expected one", feature.kind))
            .hint("only models with one phrase table and one reordering table can be imported"))
    }

    /// Adds the phrase or rule table, or the glue grammar, which is the second table of a hierarchical model.
    fn add_table(&mut self, feature: &Feature) -> Result<(), Error> {
        let second = self.table.is_some();
        self.once(feature, second && (!self.ini.chart || self.config.glue.is_some()))?;
        if feature.kind != "PhraseDictionaryMemory" {
            return Err(self
                .wrong(feature, format!("{} is a binary Moses table", feature.kind))
                .hint("give the text table that it was compiled from, as PhraseDictionaryMemory"));
        }
        let path = find(self.path, feature)?;
        if second {
            self.config.glue = Some(glue(&path)?);
            self.glue_grammar = Some(path);
            self.names.push((feature.name.clone(), DenseFeature::Glue, 0));
        } else {
            self.table = Some(path);
            self.config.table_limit = feature.get("table-limit").and_then(|n| n.parse().ok());
            self.names.push((feature.name.clone(), DenseFeature::TranslationModel, 0));
        }
        Ok(())
    }

    /// Adds the reordering table. Fails unless its orientations are word-based and have one weight each.
    fn add_reordering(&mut self, feature: &Feature) -> Result<(), Error> {
        self.once(feature, self.reordering.is_some())?;
        let kind = feature.get("type").unwrap_or_default();
        let plain = kind.strip_prefix("wbe-").unwrap_or(kind);
        if plain.strip_suffix("-allff").unwrap_or(plain) != "msd-bidirectional-fe" {
            return Err(self
                .wrong(feature, format!("reordering of type {kind:?} is not supported"))
                .hint("expected wbe-msd-bidirectional-fe-allff"));
        }
        self.reordering = Some(find(self.path, feature)?);
        self.names.push((feature.name.clone(), DenseFeature::LexicalReordering, 0));
        Ok(())
    }
}

/// Returns the file name of a converted language model.
fn lm_name(k: usize) -> String {
    format!("lm{k}.bin")
}

/// Converts tables, language models and weights, and writes `luthier.toml` last.
fn convert(
    args: &Args,
    config: ModelConfig,
    plan: &Plan,
    weights: &Weights,
    talk: Talk,
) -> Result<(), Error> {
    // A model that is only partly replaced must not be opened.
    ModelDir::invalidate(&args.model);
    let table = read_text(&plan.table, plan.reordering.as_deref(), Progress::NONE)?;
    let chart = config.kind == ModelKind::Hiero;
    if table.shape().hierarchical != chart {
        let (found, expected) = if chart { ("phrases", "rules") } else { ("rules", "phrases") };
        return Err(Error::in_file(
            plan.table.display().to_string(),
            format!("is a table of {found}, expected {expected}"),
        ));
    }
    check_weights(args, plan, weights, &table)?;
    table.write(&args.model.join(&config.table))?;
    let what = if chart { "rules" } else { "phrase pairs" };
    talk.say(&format!("{}: {} {what}", plan.table.display(), thousands(table.len())));
    for (path, name) in plan.lms.iter().zip(&config.lm) {
        let arpa = Arpa::read(path, Progress::NONE)?;
        let model =
            Model::compile(&arpa, &path.display().to_string(), &args.model.join(name), Progress::NONE)?;
        talk.say(&format!("{}: order {}, {} words", path.display(), model.order(), thousands(model.words())));
    }
    let text = renamed(plan, weights, &table);
    AtomicFile::write_all_to(&args.model.join(&config.weights), text.as_bytes())?;
    let comment =
        format!("a model of luthier {}, imported from {}", env!("CARGO_PKG_VERSION"), args.ini.display());
    ModelDir::create(&args.model, config, &comment).map(|_| ())
}

/// Fails unless every feature has the expected number of weights.
fn check_weights(args: &Args, plan: &Plan, weights: &Weights, table: &Table) -> Result<(), Error> {
    for (there, here, _) in &plan.names {
        let expected = match here {
            DenseFeature::TranslationModel => table.shape().scores,
            DenseFeature::LexicalReordering => table.shape().reordering,
            DenseFeature::UnknownWordPenalty => continue,
            _ => 1,
        };
        let has = |index: &str| weights.contains(FeatureKey::of(&format!("{there}{index}")));
        let found = if has("") { 1 } else { (0..100).take_while(|k| has(&format!("[{k}]"))).count() };
        if found != expected {
            return Err(Error::in_file(
                args.ini.display().to_string(),
                format!("has {found} weights for {there}, expected {expected}"),
            )
            .hint("use the same names under [weight] and [feature]"));
        }
    }
    Ok(())
}

/// Returns the text of the weights file, with the names of Luthier's features.
fn renamed(plan: &Plan, weights: &Weights, table: &Table) -> String {
    let mut text = String::from("# weights of the Moses configuration\n");
    let most = table.shape().scores.max(6);
    for (there, here, number) in &plan.names {
        let here = here.block(*number);
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
