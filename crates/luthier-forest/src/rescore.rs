//! Rescoring of forests with something that has a state: nodes are split by state, exactly or with cube pruning (Chiang
//! 2007; Huang and Chiang 2007). With a limit of k edges per node it costs O(nodes · k · log k) calls.

use crate::{Builder, Forest, NONE, kbest::Way};
use rustc_hash::{FxHashMap, FxHashSet};
use std::{collections::BinaryHeap, hash::Hash};

/// Anything that splits the nodes of a forest by a state: a language model, n-grams of references, the reference itself. The
/// state and the score of an edge depend on its words and on the states of its tails alone; derivations with equal states
/// are scored alike by everything above them.
pub trait Stateful: Sync {
    /// What later scores can depend on: a summary of the words below a node.
    type State: Clone + Eq + Hash;

    /// The state above an edge with these target symbols and states of its tails, and what is added to the edge's score;
    /// features that are added go into `features`, by local number of the forest. `None` forbids the edge.
    fn edge(
        &self,
        target: &[u32],
        tails: &[&Self::State],
        features: &mut Vec<(u32, f32)>,
    ) -> Option<(Self::State, f64)>;

    /// What the end of the sentence adds to the score of a state of the root; `None` forbids the state there.
    fn end(&self, _state: &Self::State, _features: &mut Vec<(u32, f32)>) -> Option<f64> {
        Some(0.0)
    }
}

/// A new node: a state of an old one.
struct Split<S> {
    state: S,
    best: f64,
    edges: Vec<Made>,
}

/// A new edge.
struct Made {
    old: u32,
    tails: [u32; 2],
    features: Vec<(u32, f32)>,
}

/// The forest whose nodes are split by the state of `s`, with the features that `s` adds. `scores` are the scores of the
/// edges without `s`. At most `pop` new edges are made for each old node, those with the best scores so far first; all of
/// them, exactly, if `pop` is `None`.
///
/// ```
/// # let line = r#"{"rules":["[x] ||| the","[x] ||| a","[x] ||| [x,1] house"],"goal":1,"nodes":[
/// #     [{"rule":1,"feature":{"p":-1}},{"rule":2,"feature":{"p":-2}}],[{"tail":[0],"rule":3}]]}"#;
/// # let forest = luthier_forest::text::from_json(line)?.forest;
/// use luthier_forest::{Stateful, rescore};
/// /// Allows derivations of which no edge has the word 1 ("a").
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
    // By old node: its new ones, best first, with their states and best scores.
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
    // One root over all states of the old one.
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
            splits[at].edges.push(Made { old: edge, tails: new, features });
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
