//! Sums over all derivations.

use crate::{Forest, KBest};

/// Numbers that edges multiply and alternatives add up.
pub trait Semiring: Copy {
    /// Nothing.
    const ZERO: Self;
    /// The empty product.
    const ONE: Self;
    /// Alternatives.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// Parts of one derivation.
    #[must_use]
    fn times(self, other: Self) -> Self;
}

/// Plain numbers.
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

/// Logarithms of numbers.
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

/// Scores of which the best counts.
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
    /// By node: the sum over its derivations of the products of their edges.
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

    /// By node: the derivative of the root's inside value with respect to the node's.
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

    /// By edge: the sum over derivations that use it, each as often as it does.
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

    /// Keeps the edges whose best derivation is at most `beam` worse than the best of all.
    #[must_use]
    pub fn pruned(&self, scores: &[f64], beam: f64) -> Forest<'static> {
        let through = self.best_through(scores);
        let best = through.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        self.filtered(|e| through[e as usize] >= best - beam - slack(scores))
    }

    /// Keeps so many edges, those in the best derivations. What is as good as the last of them stays, too, unless that is
    /// more than as many again: then the best derivations are taken one by one, and may make it a few edges more.
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
