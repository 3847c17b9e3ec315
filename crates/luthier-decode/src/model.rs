//! A translation model: a table, language models, and the names of its features.

use crate::sparse::{Sparse, Templates};
use luthier_core::{Error, FeatureKey, Local, Result, Weights};
use luthier_lm::Model as LanguageModel;
use luthier_table::Table;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// What a model directory is made of: `luthier.toml`.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// `phrase` or `hiero`.
    pub kind: String,
    /// The binary table.
    pub table: PathBuf,
    /// Language models.
    pub lm: Vec<PathBuf>,
    /// Initial weights.
    pub weights: PathBuf,
    /// Whether words that a language model does not know are counted as a feature.
    pub oov: bool,
    /// Longest jump, if the model says so.
    pub distortion_limit: Option<usize>,
    /// Translations of a source phrase, if the model says so.
    pub table_limit: Option<usize>,
    /// Words that a rule spans, if the model says so.
    pub span_limit: Option<usize>,
    /// What a glue rule counts; 1 unless the model says otherwise.
    pub glue: Option<f64>,
}

/// What `luthier.toml` may say.
const KEYS: [&str; 9] =
    ["kind", "table", "lm", "weights", "oov", "distortion-limit", "table-limit", "span-limit", "glue"];

impl Config {
    /// Reads `luthier.toml` of a model directory; names of files become whole paths.
    pub fn read(directory: &Path) -> Result<Self> {
        let path = directory.join("luthier.toml");
        let name = path.display().to_string();
        let bytes = std::fs::read(&path).map_err(|e| {
            Error::io(&name, "open it", &e)
                .hint("expected a model directory of `luthier train` or `luthier import`")
        })?;
        let text = String::from_utf8(bytes).map_err(|_| Error::in_file(&name, "is not UTF-8"))?;
        let table: toml::Table = text.parse().map_err(|e: toml::de::Error| {
            let before = e.span().map_or("", |s| text.get(..s.start).unwrap_or(""));
            Error::at(&name, before.matches('\n').count() as u64 + 1, e.message().replace('\n', " "))
        })?;
        let wrong =
            |what: String| Error::in_file(&name, what).hint("make the model again, or mend the file by hand");
        if let Some(key) = table.keys().find(|k| !KEYS.contains(&k.as_str())) {
            return Err(wrong(format!("has the unknown key {key}, expected {}", KEYS.join(", "))));
        }
        let string = |key: &str| match table.get(key) {
            Some(toml::Value::String(s)) => Ok(s.clone()),
            Some(other) => Err(wrong(format!("has {other} as {key}, expected a string"))),
            None => Err(wrong(format!("has no {key}"))),
        };
        let number = |key: &str| match table.get(key) {
            None => Ok(None),
            Some(toml::Value::Integer(n)) if *n >= 0 => Ok(Some(*n as usize)),
            Some(other) => Err(wrong(format!("has {other} as {key}, expected a number, 0 or more"))),
        };
        let kind = string("kind")?;
        if !["phrase", "hiero"].contains(&kind.as_str()) {
            return Err(wrong(format!("has the kind {kind:?}, expected \"phrase\" or \"hiero\"")));
        }
        let models = table.get("lm").and_then(toml::Value::as_array);
        let lm: Option<Vec<PathBuf>> =
            models.and_then(|m| m.iter().map(|m| m.as_str().map(|m| directory.join(m))).collect());
        let oov = match table.get("oov") {
            None => false,
            Some(toml::Value::Boolean(b)) => *b,
            Some(other) => return Err(wrong(format!("has {other} as oov, expected true or false"))),
        };
        let glue = match table.get("glue") {
            None => None,
            Some(toml::Value::Float(x)) if x.is_finite() => Some(*x),
            Some(other) => return Err(wrong(format!("has {other} as glue, expected a number such as 1.0"))),
        };
        Ok(Config {
            kind,
            table: directory.join(string("table")?),
            lm: lm.ok_or_else(|| wrong("has no list of file names as lm".to_owned()))?,
            weights: directory.join(string("weights")?),
            oov,
            distortion_limit: number("distortion-limit")?,
            table_limit: number("table-limit")?,
            span_limit: number("span-limit")?,
            glue,
        })
    }
}

impl Config {
    /// What its table and its language models hold, as digests.
    pub fn digests(&self) -> Result<Vec<String>> {
        std::iter::once(&self.table).chain(&self.lm).map(|p| luthier_io::Input::open(p)?.digest()).collect()
    }
}

/// Where features are in a vector of weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) reordering: Option<usize>,
    pub(crate) distortion: usize,
    pub(crate) lm: usize,
    pub(crate) oov: Option<usize>,
    pub(crate) words: usize,
    pub(crate) phrases: usize,
    pub(crate) table: usize,
    /// Glue rules, and rules without gap, with one and with two; of hierarchical models.
    pub(crate) glue: usize,
    pub(crate) kinds: usize,
    /// Words that are passed through; not among the names, because it is not tuned.
    pub(crate) unknown: usize,
}

/// A model that is ready to translate; threads share it.
pub struct Model {
    pub(crate) table: Table,
    pub(crate) lms: Vec<LanguageModel>,
    /// By language model: its number of each target word.
    pub(crate) lm_words: Vec<Vec<u32>>,
    pub(crate) layout: Layout,
    /// Names of all dense features by their place in the layout, and which of them are used.
    all: Vec<String>,
    used: Vec<bool>,
    /// Names of those that are used.
    names: Vec<String>,
    /// Keys by place in the layout; words that are passed through last.
    pub(crate) keys: Vec<FeatureKey>,
    pub(crate) local: Arc<Local>,
    /// Place in `local` of each feature.
    pub(crate) place: Vec<u32>,
    pub(crate) sparse: Option<Sparse>,
    /// What a glue rule counts.
    pub(crate) glue: f32,
}

/// Words that are passed through. Its weight is not tuned, and n-best lists do not have it, as in Moses: it is there to make
/// the decoder pass words through only where it must.
const UNKNOWN_NAME: &str = "UnknownWordPenalty0";
/// What each of them costs, as in Moses.
pub(crate) const UNKNOWN_COST: f32 = -100.0;

impl Model {
    /// Opens the parts of a model directory.
    pub fn open(config: &Config) -> Result<Self> {
        let table = Table::open(&config.table)?;
        if table.shape().hierarchical != (config.kind == "hiero") {
            let holds = if table.shape().hierarchical { "rules" } else { "phrases" };
            return Err(Error::in_file(
                config.table.display().to_string(),
                format!("holds {holds}, but luthier.toml says that the model is of kind {:?}", config.kind),
            )
            .hint("make the model again"));
        }
        let lms = config.lm.iter().map(|p| LanguageModel::open(p)).collect::<Result<Vec<_>>>()?;
        let mut model = Self::new(table, lms, config.oov)?;
        model.glue = config.glue.unwrap_or(1.0) as f32;
        Ok(model)
    }

    /// Puts a model together.
    pub fn new(table: Table, lms: Vec<LanguageModel>, oov: bool) -> Result<Self> {
        let shape = table.shape();
        let mut names = Vec::new();
        let mut add = |name: &str, n: usize| {
            let at = names.len();
            for k in 0..n {
                names.push(if n > 1 { format!("{name}[{k}]") } else { name.to_owned() });
            }
            at
        };
        let reordering = (shape.reordering > 0).then(|| add("LexicalReordering0", shape.reordering));
        let distortion = add("Distortion0", usize::from(!shape.hierarchical));
        let lm = add("LM0", usize::from(!lms.is_empty()));
        for k in 1..lms.len() {
            add(&format!("LM{k}"), 1);
        }
        let first_oov = oov.then(|| add("OOV0", usize::from(!lms.is_empty())));
        for k in 1..if oov { lms.len() } else { 0 } {
            add(&format!("OOV{k}"), 1);
        }
        let words = add("WordPenalty0", 1);
        let phrases = add("PhrasePenalty0", 1);
        let first = add("TranslationModel0", shape.scores);
        let glue = add("Glue0", usize::from(shape.hierarchical));
        let kinds = add("Rules0", if shape.hierarchical { 3 } else { 0 });
        let layout = Layout {
            reordering,
            distortion,
            lm,
            oov: first_oov,
            words,
            phrases,
            table: first,
            glue,
            kinds,
            unknown: names.len(),
        };
        let all = names.iter().map(String::as_str).chain([UNKNOWN_NAME]);
        let keys: Vec<FeatureKey> = all.map(FeatureKey::of).collect();
        let local = Arc::new(Local::new(keys.clone()));
        let place = keys.iter().map(|k| local.position(*k).unwrap_or_default() as u32).collect();
        let target = table.words()[1] as u32;
        let lm_words =
            lms.iter().map(|lm| (0..target).map(|w| lm.word(table.target_text(w))).collect()).collect();
        let used = vec![true; names.len()];
        let all = names.clone();
        Ok(Model {
            table,
            lms,
            lm_words,
            layout,
            all,
            used,
            names,
            keys,
            local,
            place,
            sparse: None,
            glue: 1.0,
        })
    }

    /// Uses only some of the dense features; the others have no weight and are in no list. Language models and reordering
    /// that nobody asks for are not looked at.
    pub fn keep(&mut self, keep: impl Fn(&str) -> bool) {
        self.used = self.all.iter().map(|n| keep(n)).collect();
        self.names = self.all.iter().zip(&self.used).filter(|n| *n.1).map(|n| n.0.clone()).collect();
        let any = |prefix: &str| self.names.iter().any(|n| n.starts_with(prefix));
        if !any("LM") && !any("OOV") {
            self.lms.clear();
            self.lm_words.clear();
        }
        if !any("LexicalReordering") {
            self.layout.reordering = None;
        }
    }

    /// Uses templates of sparse features.
    pub fn set_templates(&mut self, on: Templates) {
        self.sparse = (!on.is_empty()).then(|| Sparse::new(&self.table, on));
    }

    /// The templates that are used.
    pub fn templates(&self) -> Templates {
        self.sparse.as_ref().map(|s| s.on).unwrap_or_default()
    }

    /// Whether its table holds rules.
    pub fn is_hierarchical(&self) -> bool {
        self.table.shape().hierarchical
    }

    /// Whether a feature of the layout is used.
    pub(crate) fn uses(&self, feature: usize) -> bool {
        self.used.get(feature).copied().unwrap_or(true)
    }

    /// Names of the features, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The name of a dense feature of a forest.
    pub fn name_of(&self, key: FeatureKey) -> Option<&str> {
        let at = self.keys.iter().position(|k| *k == key)?;
        Some(self.all.get(at).map_or(UNKNOWN_NAME, String::as_str))
    }

    /// Weights of all features of the layout, and of words that are passed through, which is 1 unless it is given. A feature
    /// without weight has 0.
    pub(crate) fn weights(&self, weights: &Weights) -> Vec<f64> {
        let unknown = self.keys.len() - 1;
        let weight = |(at, &key): (usize, &FeatureKey)| match at {
            _ if at == unknown && !weights.contains(key) => 1.0,
            _ if self.uses(at) => weights.get(key),
            _ => 0.0,
        };
        self.keys.iter().enumerate().map(weight).collect()
    }
}
