//! What tables hold.

/// Symbols of the first and of the second gap of a rule; all other symbols are numbers of words.
pub const GAPS: [u32; 2] = [u32::MAX - 1, u32::MAX];

/// A phrase or a rule with its translation. The gaps of the source are in order; a gap of the target stands for the
/// same gap of the source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entry<'a> {
    /// Source words and gaps.
    pub source: &'a [u32],
    /// Target words and gaps.
    pub target: &'a [u32],
    /// Which words translate which: positions in source and target, gaps counted but not linked.
    pub links: &'a [(u8, u8)],
    /// Probabilities: p(source | target), its lexical weight, p(target | source), its lexical weight; or others.
    pub scores: &'a [f64],
    /// How often target, source, and both together were seen; empty if that is not known.
    pub counts: &'a [f64],
    /// Monotone, swap and discontinuous: backward, then forward. Empty without a reordering model.
    pub reordering: &'a [f64],
}
