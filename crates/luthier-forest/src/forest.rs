//! Data structure of packed forests: nodes in topological order, edges and rules in flat arrays.

use luthier_core::Local;
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, ops::Range, sync::Arc};

/// In a list of tail nodes, marks an unused position: an edge has two positions and zero, one or two tails.
pub const NONE: u32 = u32::MAX;

/// Symbols in a rule's target side that stand for the words of the first and the second tail; every other symbol is
/// the local number of a word.
pub const TAILS: [u32; 2] = [u32::MAX - 1, u32::MAX];

/// Rows of numbers of different lengths, stored in one array and accessed by index.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Rows<'a> {
    items: Cow<'a, [u32]>,
    /// End of each row in `items`.
    ends: Cow<'a, [u32]>,
}

/// Sparse feature vectors of rules or edges: for each rule or edge, pairs of local feature number and value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Features<'a> {
    ids: Rows<'a>,
    /// Feature values, parallel to the items of `ids`.
    values: Cow<'a, [f32]>,
}

impl Rows<'_> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Positions of row `i` in `items`.
    fn range(&self, i: u32) -> Range<usize> {
        let start = if i == 0 { 0 } else { self.ends[i as usize - 1] };
        start as usize..self.ends[i as usize] as usize
    }

    /// The row with index `i`. Panics unless `i` is below [`Rows::len`].
    pub fn row(&self, i: u32) -> &[u32] {
        &self.items[self.range(i)]
    }

    /// Appends a row.
    fn push(&mut self, items: impl IntoIterator<Item = u32>) {
        self.items.to_mut().extend(items);
        let end = self.items.len() as u32;
        self.ends.to_mut().push(end);
    }
}

impl Features<'_> {
    /// Features of rule or edge `i`, as pairs of local feature number and value.
    pub fn row(&self, i: u32) -> impl Iterator<Item = (u32, f32)> + '_ {
        let range = self.ids.range(i);
        self.ids.items[range.clone()].iter().copied().zip(self.values[range].iter().copied())
    }

    /// Appends the features of the next rule or edge.
    fn push(&mut self, features: &[(u32, f32)]) {
        self.ids.push(features.iter().map(|f| f.0));
        self.values.to_mut().extend(features.iter().map(|f| f.1));
    }

    /// Score of rule or edge `i`: Σ weight · value over its features.
    fn score(&self, i: u32, weights: &[f64]) -> f64 {
        self.row(i).map(|(f, v)| weights[f as usize] * f64::from(v)).sum()
    }
}

/// The rules of a forest, shared by its edges: target sides and features.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Rules<'a> {
    /// Target side of each rule: local numbers of words, and [`TAILS`] for the words of the tails.
    pub target: Rows<'a>,
    /// Features of each rule, which every edge with this rule has.
    pub features: Features<'a>,
}

/// A packed forest of the derivations of one sentence. Nodes are numbered in topological order, and the last one is
/// the root; each edge has one head node, at most two tail nodes and a rule. Scores are not stored but computed from
/// weights.
///
/// ```
/// use luthier_core::{FeatureKey, Local};
/// use luthier_forest::{Builder, NONE, TAILS};
/// use std::sync::Arc;
/// let mut builder = Builder::default();
/// let the = builder.rule([0], &[(0, -1.0)]); // "the", with feature 0 = −1
/// let house = builder.rule([TAILS[0], 1], &[(0, -0.5)]); // first tail, then "house"
/// builder.edge([NONE, NONE], the, &[]);
/// let leaf = builder.node();
/// builder.edge([leaf, NONE], house, &[]);
/// builder.node();
/// let words = Arc::new(vec!["the".to_owned(), "house".to_owned()]);
/// let forest = builder.finish(Arc::new(Local::new(vec![FeatureKey::of("p")])), words);
/// let best = forest.best(&forest.scores(&[2.0])).unwrap();
/// assert_eq!((best.score, forest.text(&best.words).as_str()), (-3.0, "the house"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Forest<'a> {
    /// First incoming edge of each node, then the number of edges.
    first_edge: Cow<'a, [u32]>,
    /// Tail nodes of each edge.
    tails: Cow<'a, [[u32; 2]]>,
    /// Rule of each edge.
    rule: Cow<'a, [u32]>,
    /// Features of each edge besides those of its rule.
    features: Features<'a>,
    /// The rules, which edges refer to by number.
    pub rules: Rules<'a>,
    /// The features that occur in this forest; the position of a feature is its local number.
    pub local: Arc<Local>,
    /// The target words that occur in this forest; the position of a word is its local number.
    pub words: Arc<Vec<String>>,
}

impl Forest<'_> {
    /// Number of nodes in the forest.
    pub fn nodes(&self) -> usize {
        self.first_edge.len().saturating_sub(1)
    }

    /// Number of edges in the forest.
    pub fn edges(&self) -> usize {
        self.rule.len()
    }

    /// Whether the forest has no edge, and so no derivation.
    pub fn is_empty(&self) -> bool {
        self.edges() == 0
    }

    /// Index of the root node, which is the last node. Panics if the forest has no nodes.
    pub fn root(&self) -> u32 {
        self.nodes() as u32 - 1
    }

    /// Indices of the incoming edges of a node.
    #[inline]
    pub fn incoming(&self, node: u32) -> Range<u32> {
        self.first_edge[node as usize]..self.first_edge[node as usize + 1]
    }

    /// Indices of the tail nodes of an edge: none, one or two, each smaller than the index of the head.
    #[inline]
    pub fn tails(&self, edge: u32) -> impl Iterator<Item = u32> + '_ {
        self.tails[edge as usize].iter().copied().take_while(|&t| t != NONE)
    }

    /// Tail nodes of an edge, with [`NONE`] in unused positions.
    #[inline]
    pub(crate) fn both(&self, edge: u32) -> [u32; 2] {
        self.tails[edge as usize]
    }

    /// First incoming edge of each node followed by the number of edges, and the tail nodes of all edges.
    pub(crate) fn shape(&self) -> (&[u32], &[[u32; 2]]) {
        (&self.first_edge, &self.tails)
    }

    /// Index of the rule of an edge.
    pub fn rule(&self, edge: u32) -> u32 {
        self.rule[edge as usize]
    }

    /// Target side of the rule of an edge: local numbers of words, and [`TAILS`] for the words of its tails.
    #[inline]
    pub fn target(&self, edge: u32) -> &[u32] {
        self.rules.target.row(self.rule[edge as usize])
    }

    /// Features of an edge, those of its rule followed by its own, as pairs of local feature number and value. A
    /// feature may occur twice.
    pub fn features(&self, edge: u32) -> impl Iterator<Item = (u32, f32)> + '_ {
        self.rules.features.row(self.rule[edge as usize]).chain(self.features.row(edge))
    }

    /// Features of an edge without those of its rule, as pairs of local feature number and value.
    pub fn own_features(&self, edge: u32) -> impl Iterator<Item = (u32, f32)> + '_ {
        self.features.row(edge)
    }

    /// Scores of all edges: Σ weight · value over the features of each edge. `weights` are indexed by local feature
    /// number.
    pub fn scores(&self, weights: &[f64]) -> Vec<f64> {
        let (mut rules, mut out) = (Vec::new(), Vec::new());
        self.scores_into(weights, &mut rules, &mut out);
        out
    }

    /// Writes the scores of all edges to `out`, as [`Forest::scores`] returns them; `rules` is a scratch buffer.
    pub fn scores_into(&self, weights: &[f64], rules: &mut Vec<f64>, out: &mut Vec<f64>) {
        rules.clear();
        rules.extend((0..self.rules.target.len() as u32).map(|r| self.rules.features.score(r, weights)));
        let own = |e: usize| self.features.score(e as u32, weights);
        out.clear();
        out.extend(self.rule.iter().enumerate().map(|(e, &r)| rules[r as usize] + own(e)));
    }

    /// Returns the forest of those edges that `keep` accepts and that are part of a derivation of the root. Unused
    /// nodes and rules are removed; the remaining ones are renumbered in the same order.
    #[must_use]
    pub fn filtered(&self, keep: impl Fn(u32) -> bool) -> Forest<'static> {
        let nodes = self.nodes();
        let (mut alive, mut used) = (vec![false; nodes], vec![false; self.edges()]);
        for node in 0..nodes as u32 {
            for edge in self.incoming(node) {
                let sound = keep(edge) && self.tails(edge).all(|t| alive[t as usize]);
                used[edge as usize] = sound;
                alive[node as usize] |= sound;
            }
        }
        let mut wanted = vec![false; nodes];
        if nodes > 0 && alive[nodes - 1] {
            wanted[nodes - 1] = true;
        }
        for node in (0..nodes as u32).rev() {
            if wanted[node as usize] {
                for edge in self.incoming(node).filter(|&e| used[e as usize]) {
                    for t in self.tails(edge) {
                        wanted[t as usize] = true;
                    }
                }
            }
        }
        let mut builder = Builder::default();
        let mut number = vec![NONE; nodes];
        let mut rules = vec![NONE; self.rules.target.len()];
        let mut features = Vec::new();
        for node in (0..nodes as u32).filter(|&n| wanted[n as usize]) {
            for edge in self.incoming(node).filter(|&e| used[e as usize]) {
                let rule = self.rule(edge);
                if rules[rule as usize] == NONE {
                    features.clear();
                    features.extend(self.rules.features.row(rule));
                    rules[rule as usize] =
                        builder.rule(self.rules.target.row(rule).iter().copied(), &features);
                }
                features.clear();
                features.extend(self.features.row(edge));
                let tails = self.both(edge).map(|t| if t == NONE { NONE } else { number[t as usize] });
                builder.edge(tails, rules[rule as usize], &features);
            }
            number[node as usize] = builder.node();
        }
        builder.finish(self.local.clone(), self.words.clone())
    }
}

/// Builds a forest from the leaves to the root: first all incoming edges of a node, then the node itself.
///
/// ```
/// use luthier_forest::{Builder, NONE};
/// let mut builder = Builder::default();
/// let rule = builder.rule([0], &[]);
/// builder.edge([NONE, NONE], rule, &[]);
/// assert_eq!((builder.node(), builder.nodes()), (0, 1));
/// ```
#[derive(Debug, Default)]
pub struct Builder {
    forest: Forest<'static>,
}

impl Builder {
    /// Adds a rule with the given target side (local word numbers and [`TAILS`]) and features (by local number).
    /// Returns its index.
    pub fn rule(&mut self, target: impl IntoIterator<Item = u32>, features: &[(u32, f32)]) -> u32 {
        self.forest.rules.target.push(target);
        self.forest.rules.features.push(features);
        self.forest.rules.target.len() as u32 - 1
    }

    /// Adds an incoming edge of the node that the next call of [`Builder::node`] completes: its tail nodes ([`NONE`]
    /// in unused positions), the index of its rule, and its features besides those of the rule.
    pub fn edge(&mut self, tails: [u32; 2], rule: u32, features: &[(u32, f32)]) {
        self.forest.tails.to_mut().push(tails);
        self.forest.rule.to_mut().push(rule);
        self.forest.features.push(features);
    }

    /// Completes a node, whose incoming edges are all edges added since the previous node. Returns its index.
    pub fn node(&mut self) -> u32 {
        let first = self.forest.first_edge.to_mut();
        if first.is_empty() {
            first.push(0);
        }
        first.push(self.forest.rule.len() as u32);
        first.len() as u32 - 2
    }

    /// Number of nodes completed so far.
    pub fn nodes(&self) -> usize {
        self.forest.nodes()
    }

    /// Returns the forest, whose root is the last node; `local` and `words` are the features and words that local
    /// numbers refer to.
    pub fn finish(self, local: Arc<Local>, words: Arc<Vec<String>>) -> Forest<'static> {
        Forest { local, words, ..self.forest }
    }
}
