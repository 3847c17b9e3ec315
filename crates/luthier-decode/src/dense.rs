//! Names of dense features, as in Moses' n-best lists: the only definition of them.
//!
//! A block of features has a stem and a number, `LM0`; its features have an index if there are several,
//! `TranslationModel0[2]`.

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
    /// Log probabilities of a phrase's orientation: monotone, swap and discontinuous after the phrase before it, then the
    /// same for the phrase behind it.
    LexicalReordering,
    /// Words that are jumped over between two phrases, negative.
    Distortion,
    /// Natural logarithm of the probability of the translation in a language model.
    LanguageModel,
    /// Words of the translation that a language model does not know.
    UnknownToLm,
    /// Words of the translation, negative.
    WordPenalty,
    /// Phrases, or rules, of the derivation.
    PhrasePenalty,
    /// Natural logarithms of the scores in the phrase or rule table.
    TranslationModel,
    /// Glue rules of a hierarchical derivation.
    Glue,
    /// Rules of a hierarchical derivation without gap, with one and with two.
    Rules,
    /// Source words without translation. Its weight is not tuned, and n-best lists do not have it, as in Moses: it makes
    /// the decoder pass words through only where it must.
    UnknownWordPenalty,
}

impl DenseFeature {
    /// All kinds of dense features, in the order of a model's features.
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

    /// The name of the kind without number, such as `LM`.
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

    /// The kind with a given stem; none if there is no such kind.
    pub fn of_stem(stem: &str) -> Option<Self> {
        DenseFeature::ALL.into_iter().find(|f| f.stem() == stem)
    }

    /// The name of a block of features, such as `LM1` for the second language model.
    pub fn block(self, number: usize) -> String {
        format!("{}{number}", self.stem())
    }

    /// The names of the `size` features of a block: indexed if there are several.
    pub fn names(self, number: usize, size: usize) -> Vec<String> {
        let block = self.block(number);
        match size {
            1 => vec![block],
            _ => (0..size).map(|k| format!("{block}[{k}]")).collect(),
        }
    }

    /// Whether a feature's name is of this kind.
    pub(crate) fn is_of(self, name: &str) -> bool {
        name.strip_prefix(self.stem()).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    }
}

/// Where features are in a model's vector of weights: the first place of each kind.
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

impl Layout {
    /// The layout of a model with such a table and so many language models, and the names of its features in order.
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
