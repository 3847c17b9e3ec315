//! Names of dense features, as in Moses' n-best lists. All code takes them from here.
//!
//! A block of features is named by a stem and a number, such as `LM0`. If a block has several features, they are
//! indexed, such as `TranslationModel0[2]`.

use luthier_table::Shape;

/// A kind of dense feature of a translation model.
///
/// ```
/// use luthier_decode::DenseFeature;
///
/// assert_eq!(DenseFeature::LanguageModel.block(1), "LM1");
/// assert_eq!(DenseFeature::WordPenalty.names(0, 1), ["WordPenalty0"]);
/// assert_eq!(DenseFeature::Rules.names(0, 3), ["Rules0[0]", "Rules0[1]", "Rules0[2]"]);
/// assert_eq!(DenseFeature::of_stem("Distortion"), Some(DenseFeature::Distortion));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DenseFeature {
    /// Lexicalised reordering: log-probabilities of a phrase's orientation (monotone, swap, discontinuous) relative
    /// to the previous phrase, then of the next phrase's orientation relative to it.
    LexicalReordering,
    /// Linear distortion: minus the distance of the jumps between consecutive phrases, in source words.
    Distortion,
    /// Natural logarithm of the language model probability of the translation.
    LanguageModel,
    /// Number of target words that are out of a language model's vocabulary.
    UnknownToLm,
    /// Word penalty: minus the number of target words.
    WordPenalty,
    /// Phrase penalty: number of phrases or rules of the derivation.
    PhrasePenalty,
    /// Natural logarithms of the scores in the phrase or rule table.
    TranslationModel,
    /// Number of glue rules of a hierarchical derivation.
    Glue,
    /// Numbers of rules of a hierarchical derivation with no gap, one gap and two gaps.
    Rules,
    /// Unknown word penalty: −100 for each source word without translation. Its weight is not tuned, and n-best lists
    /// do not contain it, as in Moses; it keeps the decoder from copying words that it can translate.
    UnknownWordPenalty,
}

impl DenseFeature {
    /// All kinds of dense features, in the order of their features in a model.
    pub const ALL: [DenseFeature; 10] = [
        DenseFeature::LexicalReordering,
        DenseFeature::Distortion,
        DenseFeature::LanguageModel,
        DenseFeature::UnknownToLm,
        DenseFeature::WordPenalty,
        DenseFeature::PhrasePenalty,
        DenseFeature::TranslationModel,
        DenseFeature::Glue,
        DenseFeature::Rules,
        DenseFeature::UnknownWordPenalty,
    ];

    /// Name of this kind without number, such as `LM`.
    pub const fn stem(self) -> &'static str {
        match self {
            DenseFeature::LexicalReordering => "LexicalReordering",
            DenseFeature::Distortion => "Distortion",
            DenseFeature::LanguageModel => "LM",
            DenseFeature::UnknownToLm => "OOV",
            DenseFeature::WordPenalty => "WordPenalty",
            DenseFeature::PhrasePenalty => "PhrasePenalty",
            DenseFeature::TranslationModel => "TranslationModel",
            DenseFeature::Glue => "Glue",
            DenseFeature::Rules => "Rules",
            DenseFeature::UnknownWordPenalty => "UnknownWordPenalty",
        }
    }

    /// Returns the kind with the given stem; `None` if there is no such kind.
    pub fn of_stem(stem: &str) -> Option<Self> {
        DenseFeature::ALL.into_iter().find(|f| f.stem() == stem)
    }

    /// Name of a block of features of this kind, such as `LM1` for the second language model.
    pub fn block(self, number: usize) -> String {
        format!("{}{number}", self.stem())
    }

    /// Names of the `size` features of a block of this kind: indexed if there are several.
    pub fn names(self, number: usize, size: usize) -> Vec<String> {
        let block = self.block(number);
        match size {
            1 => vec![block],
            _ => (0..size).map(|k| format!("{block}[{k}]")).collect(),
        }
    }

    /// Whether the name of a feature belongs to this kind.
    pub(crate) fn is_of(self, name: &str) -> bool {
        name.strip_prefix(self.stem()).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    }
}

/// Layout of a model's vector of dense weights: first position of each kind of feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) reordering: Option<usize>,
    pub(crate) distortion: usize,
    pub(crate) lm: usize,
    pub(crate) oov: Option<usize>,
    pub(crate) words: usize,
    pub(crate) phrases: usize,
    pub(crate) table: usize,
    /// Glue rules, for hierarchical models.
    pub(crate) glue: usize,
    /// Rules with no gap, one gap and two gaps, for hierarchical models.
    pub(crate) kinds: usize,
    /// Unknown word penalty, at the end; it has no name in the model, because it is not tuned.
    pub(crate) unknown: usize,
}

impl Layout {
    /// Returns the layout for a table of this shape and `lms` language models, and the names of the features in order.
    pub(crate) fn new(shape: Shape, lms: usize, oov: bool) -> (Self, Vec<String>) {
        let mut names = Vec::new();
        let mut blocks = |feature: DenseFeature, count: usize, size: usize| {
            let first = names.len();
            for number in 0..count {
                names.extend(feature.names(number, size));
            }
            first
        };
        let (phrases, rules) = (usize::from(!shape.hierarchical), usize::from(shape.hierarchical));
        let layout = Layout {
            reordering: (shape.reordering > 0)
                .then(|| blocks(DenseFeature::LexicalReordering, 1, shape.reordering)),
            distortion: blocks(DenseFeature::Distortion, phrases, 1),
            lm: blocks(DenseFeature::LanguageModel, lms, 1),
            oov: oov.then(|| blocks(DenseFeature::UnknownToLm, lms, 1)),
            words: blocks(DenseFeature::WordPenalty, 1, 1),
            phrases: blocks(DenseFeature::PhrasePenalty, 1, 1),
            table: blocks(DenseFeature::TranslationModel, 1, shape.scores),
            glue: blocks(DenseFeature::Glue, rules, 1),
            kinds: blocks(DenseFeature::Rules, rules, 3),
            unknown: 0,
        };
        (Layout { unknown: names.len(), ..layout }, names)
    }
}
