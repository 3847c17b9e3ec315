//! Sums over all derivations, by the inside–outside algorithm (Goodman 1999).
//!
//! inside(v) = Σ over edges into v of (edge ⊗ inside of its tails); outside(v) is the derivative of the root's inside value
//! with respect to that of v. Both are one pass over the edges.

use crate::{Forest, KBest};

/// A semiring: values of which parts of one derivation are multiplied and alternatives are added. `plus` and `times` are
/// associative, `plus` is commutative, `times` distributes over `plus`; `ZERO` is neutral for `plus` and annihilates under
/// `times`, `ONE` is neutral for `times`.
///
/// ```
/// use luthier_forest::{Best, Log, Real, Semiring};
/// assert_eq!(Real(2.0).plus(Real(3.0)).times(Real(0.5)), Real(2.5));
/// assert_eq!(Best(-1.0).plus(Best(-2.0)), Best(-1.0));
/// assert!((Log(0.0).plus(Log(0.0)).0 - 2f64.ln()).abs() < 1e-12);
/// ```
pub trait Semiring: Copy {
    /// The value of no derivation at all: the neutral element of `plus`.
    const ZERO: Self;
    /// The value of an empty product: the neutral element of `times`.
    const ONE: Self;
    /// The value of two alternatives together.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// The value of two parts of one derivation.
    #[must_use]
    fn times(self, other: Self) -> Self;
}

/// The semiring of numbers with + and ×: sums of probabilities, numbers of derivations.
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

/// The semiring of natural logarithms: `plus` is ln(eᵃ + eᵇ), `times` is +. No overflow where [`Real`] would.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Log(pub f64);

impl Semiring for Log {
    const ZERO: Self = Log(f64::NEG_INFINITY);
    const ONE: Self = Log(0.0);
    fn plus(self, other: Self) -> Self {
        let (high, low) = if self.0 >= other.0 { (self.0, other.0) } else { (other.0, self.0) };
        if low == f64::NEG_INFINITY { Log(high) } else { Log(high + (low - high).exp().ln_1p()) }
    }
    fn times(self, other: Self) -> Self {
        Log(self.0 + other.0)
    }
}

/// The semiring of scores with max and +: the score of the best derivation.
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
    /// Inside values of all nodes: the sum over the derivations of a node of the products of their edges' values.
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

    /// Outside values of all nodes: the derivative of the root's inside value with respect to each node's. `inside` comes
    /// from [`Forest::inside`] with the same edges.
    pub fn outside<S: Semiring>(&self, edges: &[S], inside: &[S]) -> Vec<S> {
        let mut outside = vec![S::ZERO; self.nodes()];
        if let Some(root) = outside.last_mut() {
            *root = S::ONE;
        }
        for node in (0..self.nodes() as u32).rev() {
            for edge in self.incoming(node) {
                let above = outside[node as usize].times(edges[edge as usize]);
                for (k, tail) in self.tails(edge).enumerate() {
                    // A node that is both tails has a share in each place.
                    let others = self.tails(edge).enumerate().filter(|o| o.0 != k);
                    let product = others.fold(above, |p, o| p.times(inside[o.1 as usize]));
                    outside[tail as usize] = outside[tail as usize].plus(product);
                }
            }
        }
        outside
    }

    /// Values of all edges: the sum over the derivations that use an edge, each as often as it does. `inside` and `outside`
    /// come from [`Forest::inside`] and [`Forest::outside`] with the same edges.
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

    /// By edge: the score of the best derivation that uses it.
    fn best_through(&self, scores: &[f64]) -> Vec<f64> {
        let edges: Vec<Best> = scores.iter().map(|&s| Best(s)).collect();
        let inside = self.inside(&edges);
        let outside = self.outside(&edges, &inside);
        self.through(&edges, &inside, &outside).into_iter().map(|b| b.0).collect()
    }

    /// The forest of the edges whose best derivation scores at most `beam` less than the best of all.
    #[must_use]
    pub fn pruned(&self, scores: &[f64], beam: f64) -> Forest<'static> {
        let through = self.best_through(scores);
        let best = through.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        self.filtered(|e| through[e as usize] >= best - beam - slack(scores))
    }

    /// The forest of the `edges` edges with the best derivations. Edges as good as the last of them stay, too, unless that
    /// would double the number: then whole derivations are taken best first, and may make it a few edges more.
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

/// Sums of the same numbers in another order differ in the last digits.
fn slack(scores: &[f64]) -> f64 {
    1e-9 * scores.iter().fold(0.0, |most: f64, s| most.max(s.abs()))
}
