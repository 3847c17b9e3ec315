//! Specification of a run: the content of `run.toml`.

use crate::{HoldOut, recipe::Recipe};
use luthier_core::{Error, Fingerprint, Result, Weights};
use luthier_io::{
    Difference, InputFile,
    nbest::{Dialect, Options},
};
use serde::{Deserialize, Serialize};
use std::path::Path;
use toml::Value;

/// Format number of the run directories that this version writes and resumes.
pub const FORMAT: u32 = 3;

/// [`RunSpec::init`] of a run on fixed lists without initial weights, which are then computed from the lists.
pub const FROM_LISTS: &str = "from the lists";

/// Settings and inputs of a run, all values resolved. Two runs with equal specifications give the same weights,
/// bit for bit; `version` and the paths of inputs are informative and not compared.
///
/// A field that is added later must have a serde default that reproduces the earlier behaviour; a renamed field
/// keeps its old name as an alias.
///
/// ```
/// use luthier_tune::{RunSpec, recipe::{Mert, Recipe}};
/// let spec = RunSpec::new(Recipe::Mert(Mert::default()), "bleu", 1);
/// let text = spec.to_toml().unwrap();
/// assert!(text.contains("algorithm = \"mert\""));
/// assert_eq!(RunSpec::parse("run.toml", &text).unwrap(), spec);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RunSpec {
    /// Format number of the run directory, [`FORMAT`].
    pub format: u32,
    /// Version of Luthier that started the run; informative, not compared.
    pub version: String,
    /// Metric to tune for, with its settings: `bleu:lowercase`.
    pub metric: String,
    /// Signature of the metric in sacreBLEU's form, including the number of references.
    pub signature: String,
    /// Seed of the run's random numbers.
    #[serde(with = "seed")]
    pub seed: u64,
    /// Initial weights as `name value, name value`; if there are many, their number and a digest; [`FROM_LISTS`] if none
    /// are given for fixed lists.
    pub init: String,
    /// Options with which n-best files were read.
    #[serde(default)]
    pub nbest_options: NbestOptions,
    /// Number of candidates per segment requested from a decoder; `None` for fixed lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbest_size: Option<u32>,
    /// External decoder as a shell command with placeholders; `None` for other sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Segments that are held out of this run; `None` if it learns from all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<HeldOutPart>,
    /// Algorithm with its resolved settings.
    pub recipe: Recipe,
    /// Settings of the decoder in this process; `None` for other sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Value>,
    /// Files that the run has read, with digests of their contents.
    #[serde(default)]
    pub inputs: Vec<InputFile>,
}

/// Part of the segments that a run holds out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct HeldOutPart {
    /// How the segments are divided.
    pub plan: HoldOut,
    /// Number of the part that is held out, from 0.
    pub part: u32,
}

/// Options with which n-best files were read, as `run.toml` holds them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct NbestOptions {
    /// Input format that overrode auto-detection; `None` if the format was detected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Number of candidates per segment, for text without segment numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_source: Option<u32>,
    /// Columns that were chosen, as flags without dashes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// Whether segments without candidates were skipped.
    pub allow_missing: bool,
}

impl NbestOptions {
    /// Returns the options of an n-best reader.
    pub fn options(&self) -> Options {
        let dialect = self.format.as_ref().and_then(|f| Dialect::NAMES.iter().find(|n| n.0 == f));
        let mut options =
            Options { dialect: dialect.map(|d| d.1), per_source: self.per_source, ..Options::default() };
        for (flag, name) in self.columns.iter().filter_map(|c| c.split_once('=')) {
            let (columns, name) = (&mut options.columns, name.to_owned());
            match flag {
                "id-column" => columns.id = Some(name),
                "text-column" => columns.text = Some(name),
                "reference-column" => columns.reference = Some(name),
                "group-column" => columns.group = Some(name),
                "feature-columns" => columns.features.push(name),
                "ignore-columns" => columns.ignore.push(name),
                _ => options
                    .missing
                    .extend(name.rsplit_once('=').and_then(|(n, v)| Some((n.to_owned(), v.parse().ok()?)))),
            }
        }
        options
    }

    /// Converts the options of an n-best reader to those of `run.toml`.
    pub fn new(options: &Options, allow_missing: bool) -> Self {
        let format = options.dialect.map(|d| d.name().to_owned());
        let c = &options.columns;
        let one = |flag: &str, name: &Option<String>| name.iter().map(|n| format!("{flag}={n}")).collect();
        let many = |flag: &str, names: &[String]| names.iter().map(|n| format!("{flag}={n}")).collect();
        let missing: Vec<String> = options.missing.iter().map(|(n, v)| format!("missing={n}={v}")).collect();
        let parts: [Vec<String>; 7] = [
            one("id-column", &c.id),
            one("text-column", &c.text),
            one("reference-column", &c.reference),
            one("group-column", &c.group),
            many("feature-columns", &c.features),
            many("ignore-columns", &c.ignore),
            missing,
        ];
        NbestOptions { format, per_source: options.per_source, columns: parts.concat(), allow_missing }
    }
}

/// Serialisation of seeds: those above the largest integer of TOML are written as text.
mod seed {
    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    // Serde passes a reference.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    pub(super) fn serialize<S: Serializer>(seed: &u64, to: S) -> Result<S::Ok, S::Error> {
        match i64::try_from(*seed) {
            Ok(seed) => to.serialize_i64(seed),
            Err(_) => to.serialize_str(&seed.to_string()),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Seed {
            Number(u64),
            Text(String),
        }
        match Seed::deserialize(from)? {
            Seed::Number(seed) => Ok(seed),
            Seed::Text(text) => text.parse().map_err(D::Error::custom),
        }
    }
}

impl RunSpec {
    /// Builds the specification of a run without inputs, initial weights and decoder, which are set
    /// afterwards.
    pub fn new(recipe: Recipe, metric: &str, seed: u64) -> Self {
        RunSpec {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            metric: metric.to_owned(),
            signature: String::new(),
            seed,
            init: String::new(),
            nbest_options: NbestOptions::default(),
            nbest_size: None,
            command: None,
            held_out: None,
            recipe,
            search: None,
            inputs: Vec::new(),
        }
    }

    /// Records the settings of a decoder in this process. Fails for types that TOML cannot hold.
    pub fn set_search(&mut self, search: &impl Serialize) -> Result<()> {
        let value = Value::try_from(search)
            .map_err(|e| Error::new(format!("cannot write the decoder settings as TOML: {e}")))?;
        self.search = Some(value);
        Ok(())
    }

    /// Records the initial weights: as text, or as number and digest where there are more than `few`.
    pub fn set_init(&mut self, weights: &Weights, few: usize) {
        let all = weights.iter().map(|(n, v)| format!("{n} {v}")).collect::<Vec<_>>().join(", ");
        self.init = if weights.len() <= few {
            all
        } else {
            let digest = Fingerprint::default().bytes(all.as_bytes()).finish();
            format!("{} weights {digest:032x}", weights.len())
        };
    }

    /// Returns the text of `run.toml`. Fails only for decoder settings that TOML cannot hold.
    pub fn to_toml(&self) -> Result<String> {
        luthier_io::to_toml(self)
    }

    /// Parses the text of `run.toml`; `file` is its name in error messages. Fails on a directory of an earlier format
    /// and on damaged text.
    pub fn parse(file: &str, text: &str) -> Result<Self> {
        let spec: RunSpec =
            toml::from_str(text).map_err(|e| Error::in_file(file, format!("damaged: {}", e.message())))?;
        if spec.format != FORMAT {
            let message = format!("has format {}, expected {FORMAT}", spec.format);
            return Err(Error::in_file(file, message).hint("use the version of luthier that wrote it"));
        }
        Ok(spec)
    }

    /// Returns whether a difference of settings only extends the run: a larger maximum number of iterations.
    pub(crate) fn extends(difference: &Difference) -> bool {
        let number = |v: &Option<Value>| v.as_ref().and_then(Value::as_integer);
        difference.field == "recipe.iterations"
            && number(&difference.there).is_some_and(|there| number(&difference.here) > Some(there))
    }

    /// Returns every setting as dotted name and value, in the order of `run.toml`; inputs as `path digest`.
    pub fn settings(&self) -> Vec<(String, String)> {
        let table = Value::try_from(self).unwrap_or(Value::Table(toml::Table::new()));
        let mut all = Vec::new();
        flatten("", &table, &mut all);
        all
    }
}

/// Appends every value of a table as dotted name and text to `all`; each input file becomes an entry named by
/// its role.
pub(crate) fn flatten(name: &str, value: &Value, all: &mut Vec<(String, String)>) {
    match value {
        Value::Table(table) => {
            for (key, inner) in table {
                let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                flatten(&name, inner, all);
            }
        }
        Value::Array(files) if name == "inputs" => {
            let text =
                |f: &Value, key: &str| f.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            for file in files {
                all.push((text(file, "role"), format!("{} {}", text(file, "path"), text(file, "digest"))));
            }
        }
        Value::Array(values) => {
            let words: Vec<String> = values.iter().map(plain).collect();
            all.push((name.to_owned(), words.join(", ")));
        }
        other => all.push((name.to_owned(), plain(other))),
    }
}

/// Returns a value as text, strings without quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Name of the settings file in a run directory.
pub(crate) const RUN_TOML: &str = "run.toml";

/// Returns whether a directory holds a run, that is, a `run.toml`.
pub fn is_run(path: &Path) -> bool {
    path.join(RUN_TOML).is_file()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        SourceKind,
        recipe::{Constraints, Context, LearnFrom, Mira, On, Softmax, Xbleu},
    };
    use std::sync::Arc;

    #[test]
    fn other_formats_are_refused() {
        let text = RunSpec::new(Recipe::all()[0].clone(), "bleu", 1).to_toml().unwrap();
        let error = RunSpec::parse("run.toml", &text.replace("format = 3", "format = 4")).unwrap_err();
        assert!(error.to_string().starts_with("run.toml: has format 4, expected 3"), "{error}");
    }

    /// Specifications survive a round trip through TOML, for every algorithm and every kind of source.
    #[test]
    fn specifications_are_read_as_they_were_written() {
        let metric = "bleu".parse().unwrap();
        let forest = LearnFrom { on: On::Forest, density: None };
        let mut recipes = Recipe::all();
        for constraints in [Constraints::Surrogate, Constraints::Oracle] {
            recipes.push(Recipe::Mira(Mira { constraints, ..Mira::default() }));
        }
        recipes.push(Recipe::Softmax(Softmax { learn_from: forest.clone(), ..Softmax::default() }));
        recipes.push(Recipe::Xbleu(Xbleu { learn_from: forest, ..Xbleu::default() }));
        for source in [SourceKind::Fixed, SourceKind::Decoder, SourceKind::Forests] {
            let references = Some(Arc::default());
            let context = Context { metric: &metric, seed: 1, source, references };
            for recipe in &recipes {
                if recipe.forest_density().is_some() != (source == SourceKind::Forests) {
                    continue;
                }
                let recipe = recipe.resolve(&context).unwrap();
                assert_eq!(recipe, recipe.resolve(&context).unwrap());
                let mut spec = RunSpec::new(recipe, "bleu", u64::MAX);
                spec.inputs.push(InputFile::new("nbest", "a, b", "0123"));
                spec.set_search(&std::collections::BTreeMap::from([("pop-limit", 5)])).unwrap();
                let text = spec.to_toml().unwrap();
                assert_eq!(RunSpec::parse("run.toml", &text).unwrap(), spec, "{text}");
                let json = serde_json::to_string(&spec.recipe).unwrap();
                assert_eq!(serde_json::from_str::<Recipe>(&json).unwrap(), spec.recipe, "{json}");
            }
        }
    }
}
