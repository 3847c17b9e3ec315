//! Which features of a model are used, and everything that decides a search in one struct.

use crate::{
    limits::Limits,
    model::Model,
    model_dir::{ModelConfig, ModelKind},
    sparse::Templates,
};
use luthier_core::{Error, Result, Weights};
use serde::{Deserialize, Serialize};

/// Which features of a model are used.
///
/// ```
/// use luthier_decode::FeatureSelection;
///
/// let some: FeatureSelection = toml::from_str("dense = ['LM0', 'WordPenalty0']\nsparse = 'word-pair,deletion'").unwrap();
/// assert!(some.has_sparse() && some.dense.len() == 2);
/// assert_eq!(FeatureSelection::default().sparse, None);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Features"), group(skip))]
pub struct FeatureSelection {
    /// Templates of sparse features: arun-koehn, hopkins-may, or some of phrase-pair, source-bigram, target-bigram,
    /// orientation, source-distortion, word-pair, phrase-length, insertion, deletion; or none [default: templates named in
    /// the weights file].
    #[cfg_attr(feature = "clap", arg(long, requires = "model", value_name = "TEMPLATES"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sparse: Option<Templates>,
    /// Dense features to use, or `none`; a block by its name without index [default: all].
    #[cfg_attr(feature = "clap", arg(long, requires = "model", value_name = "NAMES", value_delimiter = ','))]
    pub dense: Vec<String>,
}

impl FeatureSelection {
    /// Makes a model use these features. Where templates are not given, those of the sparse features with a weight are
    /// used. Fails if the model has no such feature, if no feature is left, or if a hierarchical model is asked for sparse
    /// ones.
    pub fn apply(&self, model: &mut Model, weights: &Weights) -> Result<()> {
        self.keep_dense(model)?;
        if self.has_sparse() && model.is_hierarchical() {
            return Err(Error::new("templates of sparse features are for phrase-based models")
                .hint("leave --sparse out"));
        }
        if model.is_hierarchical() {
            return Ok(());
        }
        model.set_templates(self.sparse.unwrap_or_else(|| Templates::of(weights)));
        if model.names().is_empty() && model.templates().is_empty() {
            return Err(
                Error::new("--dense none leaves no feature").hint("ask for sparse ones with --sparse")
            );
        }
        Ok(())
    }

    fn keep_dense(&self, model: &mut Model) -> Result<()> {
        if self.dense.is_empty() {
            return Ok(());
        }
        let is = |name: &str, asked: &String| {
            name == asked || name.rsplit_once('[').is_some_and(|(block, _)| block == asked)
        };
        let known = |asked: &&String| model.names().iter().any(|n| is(n, asked));
        if self.dense != [NONE]
            && let Some(odd) = self.dense.iter().find(|d| !known(d))
        {
            return Err(Error::new(format!("--dense: no feature is named {odd:?}"))
                .hint(format!("the model has {}", model.names().join(", "))));
        }
        model.keep(|name| self.dense.iter().any(|d| is(name, d)));
        Ok(())
    }

    /// Whether sparse features were asked for.
    pub fn has_sparse(&self) -> bool {
        self.sparse.is_some_and(|t| !t.is_empty())
    }

    /// The features that a model uses, all of them by name.
    pub fn of(model: &Model) -> Self {
        let dense = match model.names() {
            [] => vec![NONE.to_owned()],
            names => names.to_vec(),
        };
        FeatureSelection { sparse: Some(model.templates()), dense }
    }
}

/// The name of no features at all.
const NONE: &str = "none";

/// Everything besides weights and text that decides what a decoder finds: two decoders with equal specifications find the
/// same. All values are resolved; files count by their contents.
///
/// ```
/// use luthier_decode::{FeatureSelection, Limits, ModelConfig, ModelKind, SearchSpec};
///
/// let config = ModelConfig::new(ModelKind::Phrase);
/// let spec = SearchSpec {
///     kind: config.kind,
///     table: "0f3c".to_owned(),
///     lm: Vec::new(),
///     oov: config.oov,
///     glue: config.glue,
///     limits: Limits::default().resolve(&config),
///     features: FeatureSelection { sparse: None, dense: vec!["WordPenalty0".to_owned()] },
/// };
/// let text = toml::to_string(&spec).unwrap();
/// assert!(text.contains("distortion-limit = 6\n"));
/// assert_eq!(toml::from_str::<SearchSpec>(&text).unwrap(), spec);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SearchSpec {
    /// Whether the model translates by phrases or by rules.
    pub kind: ModelKind,
    /// Digest of the phrase or rule table.
    pub table: String,
    /// Digests of the language models.
    pub lm: Vec<String>,
    /// Whether words that a language model does not know are counted as a feature.
    pub oov: bool,
    /// Value of the glue feature for each glue rule; none means 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub glue: Option<f64>,
    /// Limits of the search, all decided.
    #[serde(flatten)]
    pub limits: Limits,
    /// Features that the model uses, all by name.
    #[serde(flatten)]
    pub features: FeatureSelection,
}

impl SearchSpec {
    /// The specification of a search with an open model. `digests` are those of
    /// [`ModelDir::digests`](crate::ModelDir::digests); `limits` may still have values that the model decides.
    pub fn new(config: &ModelConfig, digests: &[String], model: &Model, limits: Limits) -> Self {
        let mut digests = digests.iter().cloned();
        SearchSpec {
            kind: config.kind,
            table: digests.next().unwrap_or_default(),
            lm: digests.collect(),
            oov: config.oov,
            glue: config.glue,
            limits: limits.resolve(config),
            features: FeatureSelection::of(model),
        }
    }
}
