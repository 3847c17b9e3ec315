//! An entry of a table: a phrase pair or a hierarchical rule with its scores.

/// Symbols of the first and the second gap (non-terminal) of a rule, in sources and targets; every other
/// symbol is the number of a word.
pub const GAPS: [u32; 2] = [u32::MAX - 1, u32::MAX];

/// A phrase pair or a rule. The gaps of the source are numbered from left to right; a gap of the target is
/// linked to the same gap of the source.
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
    /// Word alignment: pairs of a position in `source` and one in `target`, from 0; gaps occupy positions but
    /// have no links here.
    pub links: &'a [(u8, u8)],
    /// Translation scores, as probabilities from 0 to 1; all entries of a table have the same number. Moses
    /// has four: p(source | target), lexical weight of the source given the target, p(target | source),
    /// lexical weight of the target given the source.
    pub scores: &'a [f64],
    /// Counts of the target, of the source and of the pair in the training text; empty if they are not known.
    pub counts: &'a [f64],
    /// Probabilities of the orientations monotone, swap and discontinuous, from 0 to 1: with respect to the
    /// previous phrase, then to the next phrase. Empty without a reordering model.
    pub reordering: &'a [f64],
}
