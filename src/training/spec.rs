//! The settings and inputs that a trained model depends on, as stored in `train.toml` of the model directory.

use super::{Alignment, LanguageModels, Languages, Parallel, Settings};
use crate::{
    core::Result,
    decode::ModelKind,
    io::InputFile,
    train::{PhraseSettings, RuleLimits, align, extract::What},
};
use serde::{Deserialize, Serialize};

/// Settings and inputs of a trained model. Keys are the flags of `luthier train`.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct TrainSpec {
    format: u32,
    version: String,
    kind: ModelKind,
    #[serde(flatten)]
    raw: Option<Languages>,
    max_words: u16,
    #[serde(flatten)]
    align: Option<align::Settings>,
    #[serde(flatten)]
    phrases: Option<PhraseSettings>,
    #[serde(flatten)]
    rules: Option<RuleLimits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<u8>,
    oov: bool,
    text_tables: bool,
    inputs: Vec<InputFile>,
}

impl TrainSpec {
    /// Returns the specification of training on a text. Reads all inputs for their digests; fails if one cannot be
    /// read.
    pub(super) fn new(parallel: &Parallel, settings: &Settings) -> Result<Self> {
        let (phrases, rules) = match settings.what {
            What::Phrases(phrases) => (Some(phrases), None),
            What::Rules(rules) => (None, Some(rules)),
        };
        let mut inputs = match parallel {
            Parallel::Files(source, target) => {
                vec![InputFile::read("source", source)?, InputFile::read("target", target)?]
            }
            Parallel::Bitext(path) => vec![InputFile::read("corpus", path)?],
        };
        let align = match &settings.alignment {
            Alignment::Train(settings) => Some(settings.clone()),
            Alignment::Given(path) => {
                inputs.push(InputFile::read("alignment", path)?);
                None
            }
        };
        let order = match settings.lm {
            LanguageModels::Estimate { order } => Some(order),
            LanguageModels::Given(_) => None,
        };
        for path in settings.lm.given() {
            inputs.push(InputFile::read("lm", path)?);
        }
        Ok(TrainSpec {
            format: 2,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            kind: settings.kind(),
            raw: settings.raw.clone(),
            max_words: settings.max_words,
            align,
            phrases,
            rules,
            order,
            oov: settings.oov,
            text_tables: settings.text_tables,
            inputs,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(kind: ModelKind, aligned: bool) -> TrainSpec {
        let file = |role: &str| InputFile::new(role, format!("a {role}"), "0123");
        let mut inputs = vec![file("source"), file("target")];
        if !aligned {
            inputs.extend([file("alignment"), file("lm"), file("lm")]);
        }
        TrainSpec {
            format: 2,
            version: "0.1.0".to_owned(),
            kind,
            raw: None,
            max_words: 100,
            align: aligned.then(align::Settings::default),
            phrases: (kind == ModelKind::Phrase).then(PhraseSettings::default),
            rules: (kind == ModelKind::Hiero).then(RuleLimits::default),
            order: aligned.then_some(5),
            oov: false,
            text_tables: true,
            inputs,
        }
    }

    #[test]
    fn a_spec_is_read_as_it_was_written() {
        for (kind, aligned) in [(ModelKind::Phrase, true), (ModelKind::Hiero, false)] {
            let text = toml::to_string(&spec(kind, aligned)).unwrap();
            assert_eq!(toml::from_str::<TrainSpec>(&text).unwrap(), spec(kind, aligned), "{text}");
        }
    }
}
