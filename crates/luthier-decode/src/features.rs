//! Selection of a model's features, and the specification of a search.

use crate::{
    limits::Limits,
    model::Model,
    model_dir::{ModelConfig, ModelKind},
    sparse::Templates,
};
use luthier_core::{Error, Result, Weights};
use serde::{Deserialize, Serialize};

/// Selection of the dense and sparse features of a model.
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
    /// Sparse feature templates: none, arun-koehn, hopkins-may, or a list of phrase-pair, source-bigram,
    /// target-bigram, orientation, source-distortion, word-pair, phrase-length, insertion, deletion
    /// [default: the templates whose features occur in --init (decode: in --weights), else none].
    #[cfg_attr(feature = "clap", arg(long, requires = "model", value_name = "TEMPLATES"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sparse: Option<Templates>,
    /// Dense features of the model to use, by name, or `none`; a name without index selects all scores of that feature
    /// function [default: all].
    #[cfg_attr(feature = "clap", arg(long, requires = "model", value_name = "NAMES", value_delimiter = ','))]
    pub dense: Vec<String>,
}

impl FeatureSelection {
    /// Restricts a model to the selected features. If no templates are given, the templates of the sparse features in
    /// `weights` are used. Fails if the model lacks a selected feature, if no feature is left, or if sparse features
    /// are selected for a hierarchical model.
    pub fn apply(&self, model: &mut Model, weights: &Weights) -> Result<()> {
        self.keep_dense(model)?;
        if self.has_sparse() && model.is_hierarchical() {
            return Err(Error::new("sparse features are only available for phrase-based models")
                .hint("leave --sparse out"));
        }
        if model.is_hierarchical() {
            return Ok(());
        }
        model.set_templates(self.sparse.unwrap_or_else(|| Templates::of(weights)));
        if model.names().is_empty() && model.templates().is_empty() {
            return Err(
                Error::new("--dense none leaves no feature").hint("select sparse features with --sparse")
            );
        }
        Ok(())
    }

    /// Restricts a model to the selected dense features. Fails if the model lacks one of them.
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

    /// Whether sparse features are selected explicitly.
    pub fn has_sparse(&self) -> bool {
        self.sparse.is_some_and(|t| !t.is_empty())
    }

    /// Returns the selection of exactly the features that a model uses, all by name.
    pub fn of(model: &Model) -> Self {
        let dense = match model.names() {
            [] => vec![NONE.to_owned()],
            names => names.to_vec(),
        };
        FeatureSelection { sparse: Some(model.templates()), dense }
    }
}

/// Name of the empty selection of dense features.
const NONE: &str = "none";

/// Everything besides weights and source text that affects the result of a search: decoders with equal specifications
/// give equal results. All values are resolved; files are represented by digests of their contents.
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
    /// Kind of the model: phrase-based or hierarchical.
    pub kind: ModelKind,
    /// Digest of the contents of the phrase or rule table.
    pub table: String,
    /// Digests of the contents of the language models.
    pub lm: Vec<String>,
    /// Whether the model has a feature per language model that counts its out-of-vocabulary words.
    pub oov: bool,
    /// Value of the glue feature of each glue rule; `None` means 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub glue: Option<f64>,
    /// Limits of the search, with all values resolved.
    #[serde(flatten)]
    pub limits: Limits,
    /// Features that the model uses, all by name.
    #[serde(flatten)]
    pub features: FeatureSelection,
}

impl SearchSpec {
    /// Returns the specification of a search with an open model. `digests` is the result of
    /// [`ModelDir::digests`](crate::ModelDir::digests); values that `limits` leaves open are resolved.
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
