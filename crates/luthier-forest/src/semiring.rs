//! Sums over all derivations by the inside–outside algorithm, in any commutative semiring (Goodman 1999).
//!
//! For nodes v, edges e with value w(e) and tails T(e), and the semiring's sum ⊕ and product ⊗:
//!
//! - inside(v) = ⊕ over incoming edges e of v of w(e) ⊗ ⨂ inside(t) for t in T(e)
//! - outside(root) = 1; outside(t) = ⊕ over edges e with tail t of outside(head of e) ⊗ w(e) ⊗ ⨂ inside(u) over the
//!   other tails u of e. In the real semiring this is ∂inside(root)/∂inside(t).
//! - through(e) = outside(head of e) ⊗ w(e) ⊗ ⨂ inside(t) for t in T(e): the sum over all derivations that use e
//!
//! Each is one pass over the edges.

use crate::{Forest, KBest};
use luthier_core::math;

/// A commutative semiring: `times` combines the parts of one derivation, `plus` combines alternative derivations.
/// Both are associative and commutative, and `times` distributes over `plus`; `ZERO` is the identity of `plus` and
/// annihilates under `times`, `ONE` is the identity of `times`.
///
/// ```
/// use luthier_forest::{Best, Log, Real, Semiring};
/// assert_eq!(Real(2.0).plus(Real(3.0)).times(Real(0.5)), Real(2.5));
/// assert_eq!(Best(-1.0).plus(Best(-2.0)), Best(-1.0));
/// assert!((Log(0.0).plus(Log(0.0)).0 - 2f64.ln()).abs() < 1e-12);
/// ```
pub trait Semiring: Copy {
    /// Identity of `plus`: the value of an empty set of derivations.
    const ZERO: Self;
    /// Identity of `times`: the value of an empty derivation.
    const ONE: Self;
    /// Sum of the values of two sets of alternative derivations.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// Product of the values of two parts of one derivation.
    #[must_use]
    fn times(self, other: Self) -> Self;
}

/// The real semiring (+, ×): sums of probabilities, or numbers of derivations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Real(pub f64);

impl Semiring for Real {
    const ZERO: Self = Real(0.0);
    const ONE: Self = Real(1.0);
    fn plus(self, other: Self) -> Self {
        Real(self.0 + other.0)
    }
    fn times(self, other: Self) -> Self {
        Real(self.0 * other.0)
    }
}

/// The log semiring: [`Real`] in natural logarithms, so that nothing overflows. `plus` is ln(eᵃ + eᵇ), `times` is +.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Log(pub f64);

impl Semiring for Log {
    const ZERO: Self = Log(f64::NEG_INFINITY);
    const ONE: Self = Log(0.0);
    fn plus(self, other: Self) -> Self {
        let (high, low) = if self.0 >= other.0 { (self.0, other.0) } else { (other.0, self.0) };
        if low == f64::NEG_INFINITY { Log(high) } else { Log(high + math::ln_1p(math::exp(low - high))) }
    }
    fn times(self, other: Self) -> Self {
        Log(self.0 + other.0)
    }
}

/// The Viterbi semiring (max, +) on scores: the score of the best derivation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Best(pub f64);

impl Semiring for Best {
    const ZERO: Self = Best(f64::NEG_INFINITY);
    const ONE: Self = Best(0.0);
    fn plus(self, other: Self) -> Self {
        Best(self.0.max(other.0))
    }
    fn times(self, other: Self) -> Self {
        Best(self.0 + other.0)
    }
}

impl Forest<'_> {
    /// Inside values of all nodes: for each node, the sum over its derivations of the product of their edge values.
    /// `edges` holds one value per edge.
    ///
    /// ```
    /// # let line = r#"{"rules":["[x] ||| the","[x] ||| a","[x] ||| [x,1] house"],"goal":1,"nodes":[
    /// #     [{"rule":1,"feature":{"p":-1}},{"rule":2,"feature":{"p":-2}}],[{"tail":[0],"rule":3}]]}"#;
    /// # let forest = luthier_forest::text::from_json(line)?.forest;
    /// use luthier_forest::Real;
    /// let edges: Vec<Real> = [0.75, 0.25, 1.0].map(Real).to_vec();
    /// let inside = forest.inside(&edges);
    /// assert_eq!(inside.last(), Some(&Real(1.0)));
    /// assert_eq!(forest.through(&edges, &inside, &forest.outside(&edges, &inside))[1], Real(0.25));
    /// # luthier_core::Result::Ok(())
    /// ```
    pub fn inside<S: Semiring>(&self, edges: &[S]) -> Vec<S> {
        let mut inside = Vec::with_capacity(self.nodes());
        for node in 0..self.nodes() as u32 {
            let mut total = S::ZERO;
            for edge in self.incoming(node) {
                let product = self.tails(edge).fold(edges[edge as usize], |p, t| p.times(inside[t as usize]));
                total = total.plus(product);
            }
            inside.push(total);
        }
        inside
    }

    /// Outside values of all nodes: the derivative of the inside value of the root with respect to that of each node.
    /// `edges` holds one value per edge, and `inside` is the result of [`Forest::inside`] for them.
    pub fn outside<S: Semiring>(&self, edges: &[S], inside: &[S]) -> Vec<S> {
        let mut outside = vec![S::ZERO; self.nodes()];
        if let Some(root) = outside.last_mut() {
            *root = S::ONE;
        }
        for node in (0..self.nodes() as u32).rev() {
            for edge in self.incoming(node) {
                let above = outside[node as usize].times(edges[edge as usize]);
                for (k, tail) in self.tails(edge).enumerate() {
                    // A node that is both tails of an edge contributes once for each position.
                    let others = self.tails(edge).enumerate().filter(|o| o.0 != k);
                    let product = others.fold(above, |p, o| p.times(inside[o.1 as usize]));
                    outside[tail as usize] = outside[tail as usize].plus(product);
                }
            }
        }
        outside
    }

    /// For each edge, the sum of the values of all derivations that use it, counted once per use. `inside` and
    /// `outside` are the results of [`Forest::inside`] and [`Forest::outside`] for the same edge values.
    pub fn through<S: Semiring>(&self, edges: &[S], inside: &[S], outside: &[S]) -> Vec<S> {
        let mut through = Vec::with_capacity(self.edges());
        for node in 0..self.nodes() as u32 {
            for edge in self.incoming(node) {
                let above = outside[node as usize].times(edges[edge as usize]);
                through.push(self.tails(edge).fold(above, |p, t| p.times(inside[t as usize])));
            }
        }
        through
    }

    /// For each edge, the score of the best derivation that uses it.
    fn best_through(&self, scores: &[f64]) -> Vec<f64> {
        let edges: Vec<Best> = scores.iter().map(|&s| Best(s)).collect();
        let inside = self.inside(&edges);
        let outside = self.outside(&edges, &inside);
        self.through(&edges, &inside, &outside).into_iter().map(|b| b.0).collect()
    }

    /// Returns the forest of the edges whose best derivation scores at most `beam` below the best derivation of the
    /// forest. `scores` holds one score per edge.
    #[must_use]
    pub fn pruned(&self, scores: &[f64], beam: f64) -> Forest<'static> {
        let through = self.best_through(scores);
        let best = through.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        self.filtered(|e| through[e as usize] >= best - beam - slack(scores))
    }

    /// Returns a forest of about `edges` edges, those whose best derivations score highest. Edges that tie with the
    /// last one are kept, too, unless there would be more than twice as many; then whole derivations are kept, best
    /// first, until they have `edges` edges, the last of them in full.
    #[must_use]
    pub fn densest(&self, scores: &[f64], edges: usize) -> Forest<'static> {
        let through = self.best_through(scores);
        let mut sorted = through.clone();
        sorted.sort_unstable_by(|a, b| b.total_cmp(a));
        let Some(least) = sorted.get(edges.max(1) - 1) else { return self.filtered(|_| true) };
        let least = least - slack(scores);
        if sorted.partition_point(|t| *t >= least) <= edges.saturating_mul(2) {
            return self.filtered(|e| through[e as usize] >= least);
        }
        let mut keep = vec![false; self.edges()];
        let mut kept = 0;
        for derivation in KBest::new(self, scores, false).take(edges) {
            for edge in derivation.edges {
                kept += usize::from(!std::mem::replace(&mut keep[edge as usize], true));
            }
            if kept >= edges {
                break;
            }
        }
        self.filtered(|e| keep[e as usize])
    }
}

/// Tolerance for comparing scores that were summed in different orders.
fn slack(scores: &[f64]) -> f64 {
    1e-9 * scores.iter().fold(0.0, |most: f64, s| most.max(s.abs()))
}
