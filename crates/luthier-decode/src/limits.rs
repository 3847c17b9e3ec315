//! Search limits: stack size, pop limit, beam, distortion limit, table limit and span limit.

use crate::model_dir::ModelConfig;
use serde::{Deserialize, Serialize};

/// Maximum distortion limit, in words: the coverage after the first uncovered word must fit into one machine word.
pub const MAX_DISTORTION: usize = 60;

/// Search strategy: which extensions of hypotheses are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum SearchKind {
    /// Cube pruning: best extensions first, up to --pop-limit.
    #[default]
    Cube,
    /// All extensions of the hypotheses in the stacks.
    Stack,
}

/// Limits of a search. A limit that is `None` is taken from the model, or else from a default (see
/// [`Limits::resolve`]).
///
/// ```
/// use luthier_decode::{Limits, SearchKind};
///
/// let wide = Limits { pop_limit: 2000, beam: Some(10.0), ..Limits::default() };
/// assert_eq!((wide.search, wide.stack_size), (SearchKind::Cube, 200));
/// let text = toml::to_string(&wide).unwrap();
/// assert!(text.contains("pop-limit = 2000\n"));
/// assert_eq!(toml::from_str::<Limits>(&text).unwrap(), wide);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Search"), group(skip))]
pub struct Limits {
    /// Search method of the decoder.
    #[cfg_attr(
        feature = "clap",
        arg(long, requires = "model", value_name = "HOW", value_enum, default_value_t = Limits::default().search)
    )]
    pub search: SearchKind,
    /// Cube pruning pop limit per stack, or per span of a hierarchical model.
    #[cfg_attr(
        feature = "clap",
        arg(long, requires = "model", value_name = "N", default_value_t = Limits::default().pop_limit,
            value_parser = clap::value_parser!(u32).range(1..))
    )]
    pub pop_limit: u32,
    /// Maximum number of hypotheses per stack, or per span of a hierarchical model.
    #[cfg_attr(
        feature = "clap",
        arg(long, requires = "model", value_name = "N", default_value_t = Limits::default().stack_size,
            value_parser = clap::value_parser!(u32).range(1..))
    )]
    pub stack_size: u32,
    /// Beam threshold: largest difference in model score from the best hypothesis of the stack [default: none].
    ///
    /// Model scores are weighted sums of natural logarithms; Moses' threshold 0.00001 is a difference of about 11.5.
    #[cfg_attr(
        feature = "clap",
        arg(long, requires = "model", value_name = "X", allow_negative_numbers = true, value_parser = non_negative)
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beam: Option<f64>,
    /// Distortion limit, in words [default: from the model, else 6].
    #[cfg_attr(
        feature = "clap",
        arg(long, requires = "model", value_name = "N",
            value_parser = clap::value_parser!(u32).range(0..=MAX_DISTORTION as i64))
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distortion_limit: Option<u32>,
    /// Maximum number of translations per source phrase or source side of a rule [default: from the model, else 20].
    #[cfg_attr(
        feature = "clap",
        arg(long, requires = "model", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table_limit: Option<u32>,
    /// Maximum span of a rule in words, for hierarchical models [default: from the model, else 20].
    #[cfg_attr(
        feature = "clap",
        arg(long, requires = "model", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span_limit: Option<u32>,
    /// Drop unknown words instead of copying them to the output.
    #[cfg_attr(feature = "clap", arg(long, requires = "model"))]
    pub drop_unknown: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            search: SearchKind::Cube,
            pop_limit: 500,
            stack_size: 200,
            beam: None,
            distortion_limit: None,
            table_limit: None,
            span_limit: None,
            drop_unknown: false,
        }
    }
}

/// Default distortion limit, in words.
const DISTORTION: u32 = 6;
/// Default number of translations per source phrase or source side of a rule.
const TABLE: u32 = 20;
/// Default maximum span of a rule, in words.
const SPAN: u32 = 20;

impl Limits {
    /// Returns the limits without any pruning of hypotheses or translations; the distortion and span limits are kept.
    /// The search time then grows exponentially with the length of the sentence.
    ///
    /// ```
    /// use luthier_decode::{Limits, SearchKind};
    ///
    /// let all = Limits { distortion_limit: Some(3), ..Limits::default() }.unpruned();
    /// assert_eq!((all.search, all.stack_size, all.distortion_limit), (SearchKind::Stack, u32::MAX, Some(3)));
    /// ```
    #[must_use]
    pub fn unpruned(self) -> Self {
        Limits {
            search: SearchKind::Stack,
            stack_size: u32::MAX,
            beam: None,
            table_limit: Some(u32::MAX),
            ..self
        }
    }

    /// Returns the limits with every value resolved: a limit that is `None` is taken from the model, or else from the
    /// defaults. A pop limit that the search strategy does not use becomes the default, so that equal searches have
    /// equal limits.
    ///
    /// ```
    /// use luthier_decode::{Limits, ModelConfig, ModelKind};
    ///
    /// let config = ModelConfig { table_limit: Some(50), ..ModelConfig::new(ModelKind::Phrase) };
    /// let limits = Limits { distortion_limit: Some(0), ..Limits::default() }.resolve(&config);
    /// assert_eq!((limits.distortion_limit, limits.table_limit, limits.span_limit), (Some(0), Some(50), Some(20)));
    /// ```
    #[must_use]
    pub fn resolve(self, config: &ModelConfig) -> Self {
        let first = |given: Option<u32>, model: Option<usize>, default: u32| {
            Some(given.or(model.map(|n| u32::try_from(n).unwrap_or(u32::MAX))).unwrap_or(default))
        };
        Limits {
            pop_limit: match self.search {
                SearchKind::Cube => self.pop_limit,
                SearchKind::Stack => Limits::default().pop_limit,
            },
            distortion_limit: first(self.distortion_limit, config.distortion_limit, DISTORTION),
            table_limit: first(self.table_limit, config.table_limit, TABLE),
            span_limit: first(self.span_limit, config.span_limit, SPAN),
            ..self
        }
    }

    /// Maximum span of a rule, in source words; 20 unless a limit is set.
    pub fn span(&self) -> usize {
        self.span_limit.unwrap_or(SPAN) as usize
    }

    /// Pop limit per stack or span; `None` for full expansion.
    pub(crate) fn pops(&self) -> Option<usize> {
        (self.search == SearchKind::Cube).then_some(self.pop_limit as usize)
    }

    /// Distortion limit, in source words.
    pub(crate) fn distortion(&self) -> usize {
        (self.distortion_limit.unwrap_or(DISTORTION) as usize).min(MAX_DISTORTION)
    }

    /// Maximum number of translations per source phrase or source side of a rule.
    pub(crate) fn table(&self) -> usize {
        self.table_limit.unwrap_or(TABLE) as usize
    }
}

/// Parses a finite number, 0 or more, from the command line.
#[cfg(feature = "clap")]
fn non_negative(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|x| x.is_finite() && *x >= 0.0);
    number.ok_or_else(|| "expected a number, 0 or more".to_owned())
}

#[cfg(all(test, feature = "clap"))]
mod tests {
    use super::*;
    use crate::FeatureSelection;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[arg(long)]
        model: Option<String>,
        #[command(flatten)]
        features: FeatureSelection,
        #[command(flatten)]
        limits: Limits,
    }

    #[test]
    fn flags_are_the_settings() {
        let none = Command::try_parse_from(["x"]).unwrap();
        assert_eq!((none.limits, none.features), (Limits::default(), FeatureSelection::default()));
        let words = "x --model m --search stack --pop-limit 7 --stack-size 8 --beam 0.5 --distortion-limit 0 --table-limit 9 \
                     --span-limit 10 --drop-unknown --sparse word-pair --dense LM0,Glue0";
        let all = Command::try_parse_from(words.split_ascii_whitespace()).unwrap();
        let limits = Limits {
            search: SearchKind::Stack,
            pop_limit: 7,
            stack_size: 8,
            beam: Some(0.5),
            distortion_limit: Some(0),
            table_limit: Some(9),
            span_limit: Some(10),
            drop_unknown: true,
        };
        assert_eq!((all.model.as_deref(), all.limits), (Some("m"), limits));
        assert_eq!(all.features.dense, ["LM0", "Glue0"]);
        for wrong in
            ["--pop-limit 0", "--distortion-limit 61", "--beam -1", "--sparse words", "--stack-size 9"]
        {
            let words = if wrong.contains("stack") { "x" } else { "x --model m" };
            let words = words.split(' ').chain(wrong.split(' '));
            assert!(Command::try_parse_from(words).is_err(), "{wrong}");
        }
    }
}
