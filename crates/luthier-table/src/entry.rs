//! One entry of a table: a phrase pair or a rule with its scores.

/// Symbols that stand for the first and the second gap of a rule, in sources and targets; every other symbol is the number
/// of a word.
pub const GAPS: [u32; 2] = [u32::MAX - 1, u32::MAX];

/// A phrase or a rule with its translation. The gaps of the source are in order; a gap of the target stands for the
/// same gap of the source.
///
/// ```
/// use luthier_table::{Entry, GAPS};
/// // haus [1] → [1] house, with words 7 and 4.
/// let rule = Entry {
///     source: &[7, GAPS[0]], target: &[GAPS[0], 4], links: &[(0, 1)], scores: &[1.0], counts: &[], reordering: &[],
/// };
/// assert!(luthier_table::is_word(rule.source[0]) && !luthier_table::is_word(rule.source[1]));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entry<'a> {
    /// Symbols of the source: numbers of source words, and [`GAPS`].
    pub source: &'a [u32],
    /// Symbols of the target: numbers of target words, and [`GAPS`].
    pub target: &'a [u32],
    /// Word alignment: pairs of a position in `source` and one in `target`, from 0; gaps count as positions but are not
    /// linked.
    pub links: &'a [(u8, u8)],
    /// Translation scores as probabilities from 0 to 1, the same number for all entries of a table. Moses has four:
    /// p(source | target), its lexical weight, p(target | source), its lexical weight.
    pub scores: &'a [f64],
    /// Counts of the target, of the source, and of both together in the training text; empty where they are not known.
    pub counts: &'a [f64],
    /// Probabilities of the orientations monotone, swap and discontinuous: towards the phrase before, then towards the phrase
    /// after. Empty without a reordering model.
    pub reordering: &'a [f64],
}
