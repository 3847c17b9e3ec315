//! Translation models in memory: phrase or rule table, language models, and features.

use crate::{
    dense::{DenseFeature, Layout},
    model_dir::{ModelDir, ModelKind},
    sparse::{Sparse, Templates},
};
use luthier_core::{Error, FeatureKey, Local, Result, Weights};
use luthier_lm::Model as LanguageModel;
use luthier_table::Table;
use std::sync::Arc;

/// A translation model in memory: a phrase or rule table, language models, and the selected features. Threads can
/// share it.
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
    /// For each language model, its word number of each target word of the table.
    pub(crate) lm_words: Vec<Vec<u32>>,
    pub(crate) layout: Layout,
    /// Names of all dense features in the order of the layout, the unknown word penalty last.
    all: Vec<String>,
    /// Whether each dense feature of the layout is used; the unknown word penalty always is.
    used: Vec<bool>,
    /// Names of the dense features that are used, without the unknown word penalty.
    names: Vec<String>,
    /// Keys of all dense features in the order of the layout, the unknown word penalty last.
    pub(crate) keys: Vec<FeatureKey>,
    pub(crate) local: Arc<Local>,
    /// Position in `local` of each dense feature of the layout.
    pub(crate) place: Vec<u32>,
    /// Sparse features; `None` without templates.
    pub(crate) sparse: Option<Sparse>,
    /// Value of the glue feature of a glue rule.
    pub(crate) glue: f32,
}

/// Value of the unknown word penalty for each unknown word, as in Moses.
pub(crate) const UNKNOWN_COST: f32 = -100.0;

/// Maximum absolute value of a weight.
const LARGEST_WEIGHT: f64 = 1e9;

impl Model {
    /// Opens the table and the language models of a model directory. Fails if one of them cannot be read, or if the
    /// kind of the table is not the one in `luthier.toml`.
    pub fn open(dir: &ModelDir) -> Result<Self> {
        let path = dir.table();
        let table = Table::open(&path)?;
        let kind = dir.config.kind;
        if table.shape().hierarchical != (kind == ModelKind::Hiero) {
            let holds = if table.shape().hierarchical { "rules" } else { "phrases" };
            return Err(Error::in_file(
                path.display().to_string(),
                format!("contains {holds}, but the kind of the model in luthier.toml is {:?}", kind.name()),
            )
            .hint("create the model again"));
        }
        let lms = dir.lms().iter().map(|p| LanguageModel::open(p)).collect::<Result<Vec<_>>>()?;
        let mut model = Self::new(table, lms, dir.config.oov)?;
        model.glue = dir.config.glue.unwrap_or(1.0) as f32;
        Ok(model)
    }

    /// Creates a model from a table and language models, with all dense features and without sparse features. With
    /// `oov`, it has a feature per language model that counts its out-of-vocabulary words.
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

    /// Restricts the model to the dense features whose names `keep` accepts. The others have weight 0 and do not
    /// occur in n-best lists. Language models and the reordering model are skipped if none of their features are
    /// used.
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

    /// Returns the names of the dense features without a weight, whose weight is taken as 0. Fails if neither a dense
    /// feature nor a sparse feature has a weight, or if a weight is above 10⁹ in absolute value, since scores would
    /// overflow; `name` is the name of the weights file in error messages.
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
                .hint(format!("expected an absolute value of at most {LARGEST_WEIGHT:e}")));
        }
        Ok(missing)
    }

    /// Sets the sparse feature templates, replacing previous ones.
    pub fn set_templates(&mut self, on: Templates) {
        self.sparse = (!on.is_empty()).then(|| Sparse::new(&self.table, on));
    }

    /// Returns the sparse feature templates in use.
    pub fn templates(&self) -> Templates {
        self.sparse.as_ref().map(|s| s.on).unwrap_or_default()
    }

    /// Returns whether the table has a translation of a source word by itself. The decoder copies or drops other words.
    pub fn translates(&self, word: &str) -> bool {
        let node = self.table.source_word(word).and_then(|id| self.table.step(self.table.root(), id));
        node.is_some_and(|node| !node.entries().is_empty())
    }

    /// Whether the model is hierarchical, not phrase-based.
    pub fn is_hierarchical(&self) -> bool {
        self.table.shape().hierarchical
    }

    /// Whether the dense feature at a position of the layout is used.
    pub(crate) fn uses(&self, feature: usize) -> bool {
        self.used.get(feature).copied().unwrap_or(true)
    }

    /// Returns the names of the dense features in use, in the order of their values in n-best lists.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the name of the dense feature with this key, whether used or not; `None` if there is none.
    pub fn name_of(&self, key: FeatureKey) -> Option<&str> {
        let at = self.keys.iter().position(|k| *k == key)?;
        Some(&self.all[at])
    }

    /// Weights of all dense features in the order of the layout; 0 for a feature without weight, except for the
    /// unknown word penalty, which then has weight 1.
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
