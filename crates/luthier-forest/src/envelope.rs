//! MERT on forests: the upper envelope of the scores of all derivations along a line of weights (Kumar et al. 2009).
//!
//! Along w + γd, an edge with features h scores b + γm with b = w·h and m = d·h, and a derivation scores the sum of
//! its edges. The envelope of a node v is the inside value of v in a semiring of envelopes:
//!
//! - sum: the envelope of the union of two sets of lines, for the incoming edges of a node;
//! - product: the Minkowski sum, which adds two envelopes and keeps the boundaries of both, for the tails of an edge.
//!
//! By duality, a line is the point (m, b) and an envelope is the upper convex hull of its points. The lines of an
//! edge come in order of slope; one walk along the hull so far discards those below it, and the rest are merged into
//! it. Each piece points to the pieces of the tails that it is built from, so that its derivation can be read off.
//! The cost is linear in the total number of pieces over all nodes and edges.

use crate::{Forest, NONE, TAILS};

/// A piece of an upper envelope: one derivation, with score b + γm, is best for γ from `from` to the next piece.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stretch {
    /// Slope m of the derivation's score along the line.
    pub m: f64,
    /// Score b of the derivation at γ = 0.
    pub b: f64,
    /// The γ at which the piece begins; −∞ for the first one.
    pub from: f64,
    /// First edge of the derivation.
    edge: u32,
    /// Pieces of the tails' envelopes, as indices into all pieces.
    tails: [u32; 2],
}

/// Computes the upper envelope of the derivations of a forest (Kumar et al. 2009), and reuses its buffers from one
/// forest to the next.
///
/// ```
/// # let line = r#"{"rules":["[x] ||| the","[x] ||| a","[x] ||| [x,1] house"],"goal":1,"nodes":[
/// #     [{"rule":1,"feature":{"p":-1}},{"rule":2,"feature":{"p":-2}}],[{"tail":[0],"rule":3}]]}"#;
/// # let forest = luthier_forest::text::from_json(line)?.forest;
/// use luthier_forest::Hull;
/// let mut hull = Hull::default();
/// let stretches = hull.find(&forest, &[0.0, 1.0, 0.0], &[-1.0, -2.0, 0.0]);
/// assert_eq!(stretches.iter().map(|s| s.from).collect::<Vec<_>>(), [f64::NEG_INFINITY, 1.0]); // "a" wins from γ = 1 on
/// let (mut words, mut edges) = (Vec::new(), Vec::new());
/// hull.derivation(&forest, 1, &mut words, &mut edges);
/// assert_eq!(forest.text(&words), "a house");
/// # luthier_core::Result::Ok(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Hull {
    /// Envelopes of all nodes, one after another.
    kept: Vec<Stretch>,
    /// End of each node's envelope in `kept`.
    ends: Vec<u32>,
    /// Hull of the current node so far.
    chain: Vec<Stretch>,
    /// Lines of the current edge that are not below the hull.
    above: Vec<Stretch>,
    /// Scratch buffer for merging the two.
    merged: Vec<Stretch>,
    /// Stack of pieces and positions in their target sides, for reading off a derivation.
    open: Vec<(u32, u32)>,
}

impl Hull {
    /// Returns the upper envelope of all derivations of the root, from left to right; empty for an empty forest. An
    /// edge scores offset + γ·slope. Among equal lines the one whose edge comes first is kept.
    pub fn find(&mut self, forest: &Forest<'_>, slopes: &[f64], offsets: &[f64]) -> &[Stretch] {
        self.kept.clear();
        self.ends.clear();
        for node in 0..forest.nodes() as u32 {
            self.chain.clear();
            for edge in forest.incoming(node) {
                let (m, b) = (slopes[edge as usize], offsets[edge as usize]);
                if self.chain.is_empty() {
                    let hull = &mut self.chain;
                    lines(forest, &self.kept, &self.ends, edge, m, b, |line| hull.push(line));
                    continue;
                }
                self.above.clear();
                let (hull, above, mut at) = (&self.chain, &mut self.above, 0);
                lines(forest, &self.kept, &self.ends, edge, m, b, |line| {
                    while hull.get(at + 1).is_some_and(|next| next.m <= line.m) {
                        at += 1;
                    }
                    if !is_below(&hull[at..], &line) {
                        above.push(line);
                    }
                });
                if !self.above.is_empty() {
                    self.merge();
                }
            }
            self.kept.extend_from_slice(&self.chain);
            self.ends.push(self.kept.len() as u32);
        }
        match forest.nodes() {
            0 => &[],
            n => of(&self.kept, &self.ends, n as u32 - 1).1,
        }
    }

    /// Replaces the hull so far by the hull of itself and the lines in `above`; both are in order of slope.
    fn merge(&mut self) {
        self.merged.clear();
        let (mut i, mut j) = (0, 0);
        loop {
            let line = match (self.chain.get(i), self.above.get(j)) {
                (Some(p), q) if q.is_none_or(|q| p.m < q.m || (p.m == q.m && p.b >= q.b)) => {
                    i += 1;
                    *p
                }
                (_, Some(q)) => {
                    j += 1;
                    *q
                }
                (_, None) => break,
            };
            push(&mut self.merged, line);
        }
        std::mem::swap(&mut self.chain, &mut self.merged);
    }

    /// Writes the words (local numbers) and edges of the derivation of one piece. `place` is the index of the piece
    /// in the result of the last call of [`Hull::find`], which must have been for the same forest.
    pub fn derivation(
        &mut self,
        forest: &Forest<'_>,
        place: usize,
        words: &mut Vec<u32>,
        edges: &mut Vec<u32>,
    ) {
        words.clear();
        edges.clear();
        self.open.clear();
        let first = of(&self.kept, &self.ends, forest.root()).0;
        self.open.push((first + place as u32, 0));
        while let Some((at, symbol)) = self.open.last_mut() {
            let stretch = self.kept[*at as usize];
            if *symbol == 0 {
                edges.push(stretch.edge);
            }
            let Some(&next) = forest.target(stretch.edge).get(*symbol as usize) else {
                self.open.pop();
                continue;
            };
            *symbol += 1;
            match TAILS.iter().position(|t| *t == next) {
                Some(k) => self.open.push((stretch.tails[k], 0)),
                None => words.push(next),
            }
        }
    }
}

/// The envelope of a node, and the index of its first piece in `kept`.
fn of<'k>(kept: &'k [Stretch], ends: &[u32], node: u32) -> (u32, &'k [Stretch]) {
    let start = if node == 0 { 0 } else { ends[node as usize - 1] };
    (start, &kept[start as usize..ends[node as usize] as usize])
}

/// Calls `each` with the pieces of the envelope of an edge, from left to right: the Minkowski sum of the envelopes of
/// its tails, plus the line of the edge itself.
#[inline]
fn lines(
    forest: &Forest<'_>,
    kept: &[Stretch],
    ends: &[u32],
    edge: u32,
    m: f64,
    b: f64,
    mut each: impl FnMut(Stretch),
) {
    match forest.both(edge) {
        [NONE, _] => each(Stretch { m, b, from: f64::NEG_INFINITY, edge, tails: [NONE; 2] }),
        [tail, NONE] => {
            let (start, below) = of(kept, ends, tail);
            for (at, s) in (start..).zip(below) {
                each(Stretch { m: s.m + m, b: s.b + b, from: s.from, edge, tails: [at, NONE] });
            }
        }
        [left, right] => {
            let ((l, left), (r, right)) = (of(kept, ends, left), of(kept, ends, right));
            let (mut i, mut j) = (0, 0);
            let mut from = f64::NEG_INFINITY;
            while let (Some(p), Some(q)) = (left.get(i), right.get(j)) {
                let tails = [l + i as u32, r + j as u32];
                each(Stretch { m: p.m + q.m + m, b: p.b + q.b + b, from, edge, tails });
                let next = |side: &[Stretch], at: usize| side.get(at + 1).map(|s| s.from);
                match (next(left, i), next(right, j)) {
                    (Some(x), y) if y.is_none_or(|y| x < y) => (i, from) = (i + 1, x),
                    (Some(x), Some(y)) if x == y => (i, j, from) = (i + 1, j + 1, x),
                    (_, Some(y)) => (j, from) = (j + 1, y),
                    (_, None) => break,
                }
            }
        }
    }
}

/// Whether a line is nowhere above a hull. `hull` begins with the last of its lines whose slope is not larger.
#[inline]
fn is_below(hull: &[Stretch], line: &Stretch) -> bool {
    let p = hull[0];
    if p.m == line.m {
        return line.b <= p.b;
    }
    match hull.get(1) {
        Some(q) if p.m < line.m => (line.b - p.b) * (q.m - p.m) < (q.b - p.b) * (line.m - p.m),
        _ => false,
    }
}

/// Pushes the next line in order of slope on the stack of an envelope, and pops those that it hides. Among lines of
/// equal slope the highest must come first.
#[inline]
fn push(stack: &mut Vec<Stretch>, mut line: Stretch) {
    line.from = f64::NEG_INFINITY;
    while let Some(top) = stack.last() {
        if top.m == line.m {
            return;
        }
        line.from = (top.b - line.b) / (line.m - top.m);
        if line.from > top.from {
            break;
        }
        stack.pop();
        line.from = f64::NEG_INFINITY;
    }
    stack.push(line);
}

/// Number of points on a line of weights that [`best_at`] evaluates at once.
pub const LANES: usize = 16;

/// Points on a line of weights w + γd. At each point an edge scores `here`·offset + `along`·slope.
#[derive(Debug, Clone, Copy)]
pub struct Lanes {
    /// Factor of the offsets at each point: 1, or 0 for a point at infinity.
    pub here: [f64; LANES],
    /// Factor of the slopes at each point: γ, or ±1 for a point at infinity.
    pub along: [f64; LANES],
}

/// Returns the score of the best derivation at each of several points on a line of weights; −∞ if there is no
/// derivation. Writes the best scores of all nodes to `node_best`, for [`derivation_at`].
///
/// ```
/// # let line = r#"{"rules":["[x] ||| the","[x] ||| a","[x] ||| [x,1] house"],"goal":1,"nodes":[
/// #     [{"rule":1,"feature":{"p":-1}},{"rule":2,"feature":{"p":-2}}],[{"tail":[0],"rule":3}]]}"#;
/// # let forest = luthier_forest::text::from_json(line)?.forest;
/// use luthier_forest::{LANES, Lanes, best_at};
/// let mut points = Lanes { here: [1.0; LANES], along: [0.0; LANES] };
/// points.along[1] = 3.0;
/// let best = best_at(&forest, &[0.0, 1.0, 0.0], &[-1.0, -2.0, 0.0], &points, &mut Vec::new());
/// assert_eq!((best[0], best[1]), (-1.0, 1.0)); // max(−1, −2) and max(−1, −2 + 3)
/// # luthier_core::Result::Ok(())
/// ```
pub fn best_at(
    forest: &Forest<'_>,
    slopes: &[f64],
    offsets: &[f64],
    points: &Lanes,
    node_best: &mut Vec<[f64; LANES]>,
) -> [f64; LANES] {
    node_best.clear();
    let (first, tails) = forest.shape();
    sweep(first, tails, slopes, offsets, points, node_best);
    node_best.last().copied().unwrap_or([f64::NEG_INFINITY; LANES])
}

/// Writes the words (local numbers) and edges of the best derivation at the point with index `lane`. `node_best` is
/// what [`best_at`] wrote for the same forest, slopes, offsets and points.
pub fn derivation_at(
    forest: &Forest<'_>,
    (slopes, offsets): (&[f64], &[f64]),
    points: &Lanes,
    (node_best, lane): (&[[f64; LANES]], usize),
    (words, edges): (&mut Vec<u32>, &mut Vec<u32>),
) {
    words.clear();
    edges.clear();
    // The best edge is found by comparing scores: the same sums in the same order give the same bits.
    let best = |node: u32| {
        let score = |edge: u32| {
            let own = points.here[lane] * offsets[edge as usize] + points.along[lane] * slopes[edge as usize];
            forest.tails(edge).fold(own, |sum, t| sum + node_best[t as usize][lane])
        };
        forest.incoming(node).find(|&e| score(e) == node_best[node as usize][lane])
    };
    let mut open: Vec<(u32, usize)> = best(forest.root()).map(|e| (e, 0)).into_iter().collect();
    while let Some((edge, at)) = open.last_mut() {
        if *at == 0 {
            edges.push(*edge);
        }
        let Some(&symbol) = forest.target(*edge).get(*at) else {
            open.pop();
            continue;
        };
        *at += 1;
        match TAILS.iter().position(|t| *t == symbol) {
            Some(k) => {
                let tail = forest.both(*edge)[k];
                open.extend(best(tail).map(|e| (e, 0)));
            }
            None => words.push(symbol),
        }
    }
}

/// Appends the best scores of all nodes to `node_best`. Compiled for several instruction sets, which give the same
/// bits because no fused multiply-add is used.
#[multiversion::multiversion(targets("x86_64+avx512f+avx512vl+avx512dq", "x86_64+avx2"))]
fn sweep(
    first: &[u32],
    tails: &[[u32; 2]],
    slopes: &[f64],
    offsets: &[f64],
    points: &Lanes,
    node_best: &mut Vec<[f64; LANES]>,
) {
    for node in first.windows(2) {
        let mut best = [f64::NEG_INFINITY; LANES];
        for edge in node[0] as usize..node[1] as usize {
            let (m, b) = (slopes[edge], offsets[edge]);
            let mut score: [f64; LANES] = std::array::from_fn(|l| points.here[l] * b + points.along[l] * m);
            for &tail in tails[edge].iter().take_while(|t| **t != NONE) {
                for (s, below) in score.iter_mut().zip(&node_best[tail as usize]) {
                    *s += below;
                }
            }
            for (best, s) in best.iter_mut().zip(score) {
                *best = if s > *best { s } else { *best };
            }
        }
        node_best.push(best);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Builder, KBest,
        tests::{numbers, random},
    };
    use luthier_core::{
        Local,
        random::{Purpose, Stream},
    };
    use std::sync::Arc;

    fn found(forest: &Forest<'_>, m: &[f64], b: &[f64]) -> Vec<(f64, f64, f64)> {
        Hull::default().find(forest, m, b).iter().map(|s| (s.m, s.b, s.from)).collect()
    }

    /// The envelope of a binary edge over two leaves with two lines each.
    fn two_tails(lines: [[(f64, f64); 2]; 2]) -> Vec<(f64, f64, f64)> {
        let mut builder = Builder::default();
        let word = builder.rule([0], &[]);
        let both = builder.rule(TAILS, &[]);
        for _ in 0..2 {
            builder.edge([NONE; 2], word, &[]);
            builder.edge([NONE; 2], word, &[]);
            builder.node();
        }
        builder.edge([0, 1], both, &[]);
        builder.node();
        let forest = builder.finish(Arc::new(Local::default()), Arc::new(vec!["w".to_owned()]));
        let all = lines.concat();
        let m: Vec<f64> = all.iter().map(|l| l.0).chain([0.0]).collect();
        let b: Vec<f64> = all.iter().map(|l| l.1).chain([0.0]).collect();
        found(&forest, &m, &b)
    }

    /// The boundaries of both tails are kept: tails with boundaries at 2 and 0, and an example from cdec's tests.
    #[test]
    fn boundaries_of_both_tails_are_kept() {
        let low = f64::NEG_INFINITY;
        let breaks = two_tails([[(-1.0, 2.0), (1.0, -2.0)], [(-1.0, 0.0), (1.0, 0.0)]]);
        assert_eq!(breaks, [(-2.0, 2.0, low), (0.0, 2.0, 0.0), (2.0, -2.0, 2.0)]);
        let cdec = two_tails([[(-1.0, 0.0), (1.0, 0.0)], [(-1.0, 1.0), (1.0, -1.0)]]);
        assert_eq!(cdec, [(-2.0, 1.0, low), (0.0, 1.0, 0.0), (2.0, -1.0, 1.0)]);
    }

    /// A lattice from Moses' tests: features foo and bar, weights 2 and 1.
    #[test]
    fn moses_lattice() {
        let mut builder = Builder::default();
        let mut edge = |words: &[u32], tail: u32| {
            let target: Vec<u32> =
                (tail != NONE).then_some(TAILS[0]).into_iter().chain(words.iter().copied()).collect();
            let rule = builder.rule(target, &[]);
            (rule, [tail, NONE])
        };
        // ab | hi, then cd hk | cd efg | jk; words are their numbers.
        let first = [edge(&[0, 1], NONE), edge(&[2, 3], NONE)];
        let rest = [edge(&[4, 5], 0), edge(&[4, 6], 0), edge(&[7], 0)];
        for (rule, tails) in first {
            builder.edge(tails, rule, &[]);
        }
        builder.node();
        for (rule, tails) in rest {
            builder.edge(tails, rule, &[]);
        }
        builder.node();
        let words = (0..8).map(|w| w.to_string()).collect();
        let forest = builder.finish(Arc::new(Local::default()), Arc::new(words));
        // ab cd hk (1,5), hi cd hk (2,2), ab jk (3,4), hi jk (4,1), ab cd efg (2,4), hi cd efg (3,1).
        let foo = [0.0, 1.0, 1.0, 2.0, 3.0];
        let bar = [3.0, 0.0, 2.0, 1.0, 1.0];
        let here: Vec<f64> = foo.iter().zip(bar).map(|(f, b)| 2.0 * f + b).collect();
        let low = f64::NEG_INFINITY;
        assert_eq!(found(&forest, &foo, &here), [(1.0, 7.0, low), (3.0, 10.0, -1.5), (4.0, 9.0, 1.0)]);
        assert_eq!(found(&forest, &bar, &here), [(1.0, 9.0, low), (4.0, 10.0, -1.0 / 3.0), (5.0, 7.0, 3.0)]);
    }

    /// Best derivation and score at random points, against enumeration.
    #[test]
    fn points_equal_enumeration() {
        for seed in 0..100 {
            let mut stream = Stream::new(seed, Purpose::Test, 6, 0);
            let forest = random(seed).0;
            let (m, b) = (numbers(&mut stream, &forest), numbers(&mut stream, &forest));
            let mut points = Lanes { here: [1.0; LANES], along: [0.0; LANES] };
            for x in &mut points.along {
                *x = stream.uniform(-3.0, 3.0);
            }
            points.here[3] = 0.0;
            let mut node_best = Vec::new();
            let best = best_at(&forest, &m, &b, &points, &mut node_best);
            for (l, best) in best.into_iter().enumerate() {
                let scores: Vec<f64> =
                    m.iter().zip(&b).map(|(m, b)| points.here[l] * b + points.along[l] * m).collect();
                let expected = KBest::new(&forest, &scores, false).next().unwrap();
                assert!((best - expected.score).abs() < 1e-9);
                let (mut words, mut edges) = (Vec::new(), Vec::new());
                derivation_at(&forest, (&m, &b), &points, (&node_best, l), (&mut words, &mut edges));
                assert_eq!((words, edges), (expected.words, expected.edges), "{seed}");
            }
        }
    }

    /// The envelope equals that of all derivations enumerated, and the words of each piece are those of a best
    /// derivation.
    #[test]
    fn equals_enumeration() {
        let mut stretches = 0;
        for seed in 0..150 {
            let mut stream = Stream::new(seed, Purpose::Test, 4, 0);
            let forest = random(seed).0;
            let (m, b) = (numbers(&mut stream, &forest), numbers(&mut stream, &forest));
            let all: Vec<(f64, f64, String)> = KBest::new(&forest, &b, false)
                .take(2_000)
                .map(|d| {
                    let slope = d.edges.iter().map(|&e| m[e as usize]).sum();
                    (slope, d.score, forest.text(&d.words))
                })
                .collect();
            if all.len() == 2_000 {
                continue;
            }
            let mut hull = Hull::default();
            let root = hull.find(&forest, &m, &b).to_vec();
            let (mut words, mut edges) = (Vec::new(), Vec::new());
            for (i, s) in root.iter().enumerate() {
                let to = root.get(i + 1).map_or(s.from.max(0.0) + 2.0, |n| n.from);
                let from = if s.from.is_finite() { s.from } else { to - 2.0 };
                assert!(from < to, "{seed}");
                let x = f64::midpoint(from, to);
                let best = all.iter().map(|l| l.1 + x * l.0).fold(f64::NEG_INFINITY, f64::max);
                assert!((s.b + x * s.m - best).abs() < 1e-9 * (1.0 + best.abs()), "{seed}");
                hull.derivation(&forest, i, &mut words, &mut edges);
                let slope: f64 = edges.iter().map(|&e| m[e as usize]).sum();
                assert!((slope - s.m).abs() < 1e-9);
                let text = forest.text(&words);
                assert!(
                    all.iter()
                        .any(|l| l.2 == text && (l.1 + x * l.0 - best).abs() < 1e-9 * (1.0 + best.abs()))
                );
                stretches += 1;
            }
        }
        assert!(stretches > 300, "{stretches}");
    }
}
