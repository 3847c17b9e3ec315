//! A translation model: a table, language models, and the names of its features.

use crate::{
    dense::{DenseFeature, Layout},
    model_dir::{ModelDir, ModelKind},
    sparse::{Sparse, Templates},
};
use luthier_core::{Error, FeatureKey, Local, Result, Weights};
use luthier_lm::Model as LanguageModel;
use luthier_table::Table;
use std::sync::Arc;

/// A translation model in memory: a phrase or rule table, language models, and the features that are used. Threads share
/// it.
///
/// ```
/// use luthier_core::{Progress, Vocabulary};
/// use luthier_decode::Model;
/// use luthier_table::{Builder, Entry};
///
/// let (mut source, mut target) = (Vocabulary::default(), Vocabulary::default());
/// let pair = ([source.add("haus")], [target.add("house")]);
/// let mut table = Builder::new(false);
/// let entry = Entry { source: &pair.0, target: &pair.1, links: &[], scores: &[0.9], counts: &[], reordering: &[] };
/// table.entry(&entry).unwrap();
/// let mut model = Model::new(table.finish(&source, &target, Progress::NONE).unwrap(), Vec::new(), false).unwrap();
/// assert_eq!(model.names(), ["Distortion0", "WordPenalty0", "PhrasePenalty0", "TranslationModel0"]);
/// model.keep(|name| name != "PhrasePenalty0");
/// assert_eq!(model.names().len(), 3);
/// ```
pub struct Model {
    pub(crate) table: Table,
    pub(crate) lms: Vec<LanguageModel>,
    /// By language model: its number of each target word.
    pub(crate) lm_words: Vec<Vec<u32>>,
    pub(crate) layout: Layout,
    /// Names of all dense features by their place in the layout, words that are passed through last.
    all: Vec<String>,
    /// Which of them are used; words that are passed through always are.
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

/// What a word that is passed through costs, as in Moses.
pub(crate) const UNKNOWN_COST: f32 = -100.0;

/// Larger weights than this are a mistake.
const LARGEST_WEIGHT: f64 = 1e9;

impl Model {
    /// Opens the table and the language models of a model directory. Fails if one of them cannot be read, or if the table
    /// is not of the kind that `luthier.toml` says.
    pub fn open(dir: &ModelDir) -> Result<Self> {
        let path = dir.table();
        let table = Table::open(&path)?;
        let kind = dir.config.kind;
        if table.shape().hierarchical != (kind == ModelKind::Hiero) {
            let holds = if table.shape().hierarchical { "rules" } else { "phrases" };
            return Err(Error::in_file(
                path.display().to_string(),
                format!("holds {holds}, but luthier.toml says that the model is of kind {:?}", kind.name()),
            )
            .hint("create the model again"));
        }
        let lms = dir.lms().iter().map(|p| LanguageModel::open(p)).collect::<Result<Vec<_>>>()?;
        let mut model = Self::new(table, lms, dir.config.oov)?;
        model.glue = dir.config.glue.unwrap_or(1.0) as f32;
        Ok(model)
    }

    /// Puts a model together from a table and language models. With `oov`, words that a language model does not know are
    /// counted as a feature.
    pub fn new(table: Table, lms: Vec<LanguageModel>, oov: bool) -> Result<Self> {
        let (layout, names) = Layout::new(table.shape(), lms.len(), oov);
        let unknown = DenseFeature::UnknownWordPenalty.block(0);
        let all: Vec<String> = names.iter().cloned().chain([unknown]).collect();
        let keys: Vec<FeatureKey> = all.iter().map(|n| FeatureKey::of(n)).collect();
        let local = Arc::new(Local::new(keys.clone()));
        let place = keys.iter().map(|k| local.position(*k).unwrap_or_default() as u32).collect();
        let target = table.words()[1] as u32;
        let numbers = |lm: &LanguageModel| (0..target).map(|w| lm.word(table.target_text(w))).collect();
        let lm_words = lms.iter().map(numbers).collect();
        let used = vec![true; names.len()];
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

    /// Uses only those dense features whose names `keep` accepts; the others have no weight and are in no list. Language
    /// models and reordering without a feature that is used are not looked at.
    pub fn keep(&mut self, keep: impl Fn(&str) -> bool) {
        self.used = self.all[..self.layout.unknown].iter().map(|n| keep(n)).collect();
        self.names = self.all.iter().zip(&self.used).filter(|n| *n.1).map(|n| n.0.clone()).collect();
        let any = |feature: DenseFeature| self.names.iter().any(|n| feature.is_of(n));
        if !any(DenseFeature::LanguageModel) && !any(DenseFeature::UnknownToLm) {
            self.lms.clear();
            self.lm_words.clear();
        }
        if !any(DenseFeature::LexicalReordering) {
            self.layout.reordering = None;
        }
    }

    /// Names of the dense features that have no weight, which count 0. Fails if no feature has a weight, neither a dense one
    /// nor one of a sparse template, or if a weight is so large that scores would overflow; `name` stands for the weights in
    /// errors.
    ///
    /// ```
    /// use luthier_core::{Progress, Weights};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("table");
    /// # std::fs::write(&path, "das ||| the ||| 0.5\n").unwrap();
    /// # let table = luthier_table::read_text(&path, None, Progress::NONE).unwrap();
    /// # let model = luthier_decode::Model::new(table, Vec::new(), false).unwrap();
    /// let weights = Weights::parse("w", "TranslationModel0 1\nDistortion0 0.3\n").unwrap();
    /// assert_eq!(model.check_weights(&weights, "w").unwrap(), ["WordPenalty0", "PhrasePenalty0"]);
    /// assert!(model.check_weights(&Weights::default(), "w").is_err());
    /// ```
    pub fn check_weights(&self, weights: &Weights, name: &str) -> Result<Vec<&str>> {
        let names = self.names.iter().map(String::as_str);
        let missing: Vec<&str> = names.filter(|n| !weights.contains(FeatureKey::of(n))).collect();
        if missing.len() == self.names.len() && !missing.is_empty() && Templates::of(weights).is_empty() {
            let all = self.names.join(", ");
            return Err(Error::in_file(name, format!("has no weight for any feature of the model: {all}")));
        }
        if let Some((feature, value)) = weights.iter().find(|w| w.1.abs() > LARGEST_WEIGHT) {
            return Err(Error::in_file(name, format!("the weight of {feature} is {value}"))
                .hint(format!("expected at most {LARGEST_WEIGHT:e} in size: scores would overflow")));
        }
        Ok(missing)
    }

    /// Uses templates of sparse features, in place of those that were used before.
    pub fn set_templates(&mut self, on: Templates) {
        self.sparse = (!on.is_empty()).then(|| Sparse::new(&self.table, on));
    }

    /// The templates of sparse features that are used.
    pub fn templates(&self) -> Templates {
        self.sparse.as_ref().map(|s| s.on).unwrap_or_default()
    }

    /// Whether the model translates by hierarchical rules, not by phrases.
    pub fn is_hierarchical(&self) -> bool {
        self.table.shape().hierarchical
    }

    /// Whether a feature of the layout is used.
    pub(crate) fn uses(&self, feature: usize) -> bool {
        self.used.get(feature).copied().unwrap_or(true)
    }

    /// Names of the dense features that are used, in the order of the values in n-best lists.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The name of a dense feature, used or not, by its key; nothing if no dense feature has that key.
    pub fn name_of(&self, key: FeatureKey) -> Option<&str> {
        let at = self.keys.iter().position(|k| *k == key)?;
        Some(&self.all[at])
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
