//! Forest rescoring with non-local features: every node is split by the state of the features, exactly or with cube
//! pruning (Chiang 2007; Huang and Chiang 2007).
//!
//! For each node, a priority queue holds pairs of an incoming edge and the ranks of its tails' new nodes, ordered by
//! the score without the added features. Popping one computes its exact score and queues its successors, in which one
//! rank is larger by 1. With a limit of k pops per node this costs O(nodes · k) calls of [`Stateful::edge`] and
//! O(nodes · k · log k) queue operations.

use crate::{Builder, Forest, NONE, kbest::Way};
use rustc_hash::{FxHashMap, FxHashSet};
use std::{collections::BinaryHeap, hash::Hash};

/// A non-local feature, such as a language model, n-gram matches with references, or a constraint to a reference. Its
/// state and score at an edge must depend only on the edge's target side and the states of its tails; derivations with
/// equal states must get equal scores from everything above them.
pub trait Stateful: Sync {
    /// State of a node: the information about the words below it that later scores depend on.
    type State: Clone + Eq + Hash;

    /// Returns the state at the head of an edge with the given target side and tail states, and what the feature adds
    /// to the edge's score; `None` if the edge is forbidden. Appends added features to `features`, by local feature
    /// number.
    fn edge(
        &self,
        target: &[u32],
        tails: &[&Self::State],
        features: &mut Vec<(u32, f32)>,
    ) -> Option<(Self::State, f64)>;

    /// Returns what the end of the sentence adds to the score of a root state; `None` if the state is forbidden there.
    /// Appends added features to `features`, by local feature number. Adds nothing by default.
    fn end(&self, _state: &Self::State, _features: &mut Vec<(u32, f32)>) -> Option<f64> {
        Some(0.0)
    }
}

/// A new node: one state of an old node.
struct Split<S> {
    state: S,
    /// Score of the best derivation of the new node.
    best: f64,
    edges: Vec<NewEdge>,
}

/// A new edge: the old edge that it comes from, its new tails, and the added features.
struct NewEdge {
    old: u32,
    tails: [u32; 2],
    features: Vec<(u32, f32)>,
}

/// Returns the forest whose nodes are split by the state of `s`, with the features that `s` adds. `scores` holds the
/// scores of the edges without `s`. At most `pop` new edges are built per old node, by cube pruning; with `None` all
/// of them, which is exact.
///
/// ```
/// # let line = r#"{"rules":["[x] ||| the","[x] ||| a","[x] ||| [x,1] house"],"goal":1,"nodes":[
/// #     [{"rule":1,"feature":{"p":-1}},{"rule":2,"feature":{"p":-2}}],[{"tail":[0],"rule":3}]]}"#;
/// # let forest = luthier_forest::text::from_json(line)?.forest;
/// use luthier_forest::{Stateful, rescore};
/// /// Forbids the word 1 ("a").
/// struct Without;
/// impl Stateful for Without {
///     type State = ();
///     fn edge(&self, target: &[u32], _: &[&()], _: &mut Vec<(u32, f32)>) -> Option<((), f64)> {
///         (!target.contains(&1)).then_some(((), 0.0))
///     }
/// }
/// let left = rescore(&forest, &Without, &forest.scores(&[1.0]), None);
/// assert_eq!(luthier_forest::KBest::new(&left, &left.scores(&[1.0]), false).count(), 1);
/// # luthier_core::Result::Ok(())
/// ```
pub fn rescore<S: Stateful>(
    forest: &Forest<'_>,
    s: &S,
    scores: &[f64],
    pop: Option<usize>,
) -> Forest<'static> {
    let mut builder = Builder::default();
    let mut rules = FxHashMap::default();
    // For each old node: its new nodes with state and best score, best first.
    let mut made: Vec<Vec<(u32, S::State, f64)>> = Vec::with_capacity(forest.nodes());
    for node in 0..forest.nodes() as u32 {
        let mut splits = split(forest, s, scores, pop, node, &made);
        splits.sort_by(|a, b| b.best.total_cmp(&a.best));
        let mut new = Vec::with_capacity(splits.len());
        for one in splits {
            for edge in one.edges {
                let rule = forest.rule(edge.old);
                let rule = *rules.entry(rule).or_insert_with(|| {
                    let features: Vec<(u32, f32)> = forest.rules.features.row(rule).collect();
                    builder.rule(forest.rules.target.row(rule).iter().copied(), &features)
                });
                let features: Vec<(u32, f32)> =
                    forest.own_features(edge.old).chain(edge.features.iter().copied()).collect();
                builder.edge(edge.tails, rule, &features);
            }
            new.push((builder.node(), one.state, one.best));
        }
        made.push(new);
    }
    // A single root above all states of the old root.
    if let Some(last) = made.last() {
        let through = builder.rule([crate::TAILS[0]], &[]);
        let mut features = Vec::new();
        for (node, state, _) in last {
            features.clear();
            if s.end(state, &mut features).is_some() {
                builder.edge([*node, NONE], through, &features);
            }
        }
        builder.node();
    }
    let all = builder.finish(forest.local.clone(), forest.words.clone());
    all.filtered(|_| true)
}

/// Splits a node by state; `made` holds the new nodes of all earlier nodes.
fn split<S: Stateful>(
    forest: &Forest<'_>,
    s: &S,
    scores: &[f64],
    pop: Option<usize>,
    node: u32,
    made: &[Vec<(u32, S::State, f64)>],
) -> Vec<Split<S::State>> {
    let mut heap = BinaryHeap::new();
    let mut seen = FxHashSet::default();
    let score = |edge: u32, ranks: [u32; 2]| {
        let tails = forest.both(edge).into_iter().zip(ranks).filter(|t| t.0 != NONE);
        tails.map(|(t, rank)| made[t as usize].get(rank as usize).map(|n| n.2)).sum::<Option<f64>>()
    };
    for edge in forest.incoming(node) {
        if let Some(below) = score(edge, [0, 0]) {
            heap.push(Way { score: scores[edge as usize] + below, edge, ranks: [0, 0] });
        }
    }
    let mut splits: Vec<Split<S::State>> = Vec::new();
    let mut by_state: FxHashMap<S::State, usize> = FxHashMap::default();
    let mut popped = 0;
    while let Some(next) = heap.pop() {
        if pop.is_some_and(|limit| popped >= limit) {
            break;
        }
        popped += 1;
        let Way { score: estimate, edge, ranks } = next;
        let tails = forest.both(edge);
        let parts: Vec<&(u32, S::State, f64)> = tails
            .iter()
            .zip(ranks)
            .filter(|t| *t.0 != NONE)
            .map(|(&t, rank)| &made[t as usize][rank as usize])
            .collect();
        let states: Vec<&S::State> = parts.iter().map(|p| &p.1).collect();
        let mut features = Vec::new();
        if let Some((state, added)) = s.edge(forest.target(edge), &states, &mut features) {
            let total = estimate + added;
            let at = *by_state.entry(state.clone()).or_insert_with(|| {
                splits.push(Split { state, best: f64::NEG_INFINITY, edges: Vec::new() });
                splits.len() - 1
            });
            let mut new = [NONE; 2];
            for (n, p) in new.iter_mut().zip(&parts) {
                *n = p.0;
            }
            splits[at].best = splits[at].best.max(total);
            splits[at].edges.push(NewEdge { old: edge, tails: new, features });
        }
        for k in 0..parts.len() {
            let mut next = ranks;
            next[k] += 1;
            if let Some(below) = score(edge, next).filter(|_| seen.insert((edge, next))) {
                heap.push(Way { score: scores[edge as usize] + below, edge, ranks: next });
            }
        }
    }
    splits
}
