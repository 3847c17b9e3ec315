//! The forest: nodes in topological order, edges and rules in flat arrays.

use luthier_core::Local;
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, ops::Range, sync::Arc};

/// Marks the absence of a tail, in a place where an edge could have one.
pub const NONE: u32 = u32::MAX;

/// Symbols in a rule's target that stand for the words of the first and of the second tail; every other symbol is the local
/// number of a word.
pub const TAILS: [u32; 2] = [u32::MAX - 1, u32::MAX];

/// Lists of numbers stored one behind another, each found by its index.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Rows<'a> {
    items: Cow<'a, [u32]>,
    ends: Cow<'a, [u32]>,
}

/// Features of rules or of edges: for each rule or edge, local numbers of features with their values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Features<'a> {
    ids: Rows<'a>,
    values: Cow<'a, [f32]>,
}

impl Rows<'_> {
    /// Number of lists that are stored.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether no list is stored.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn range(&self, i: u32) -> Range<usize> {
        let start = if i == 0 { 0 } else { self.ends[i as usize - 1] };
        start as usize..self.ends[i as usize] as usize
    }

    /// The list with index `i`, which is below [`Rows::len`].
    pub fn row(&self, i: u32) -> &[u32] {
        &self.items[self.range(i)]
    }

    fn push(&mut self, items: impl IntoIterator<Item = u32>) {
        self.items.to_mut().extend(items);
        let end = self.items.len() as u32;
        self.ends.to_mut().push(end);
    }
}

impl Features<'_> {
    /// The features of rule or edge `i`: pairs of a local number of a feature and its value.
    pub fn row(&self, i: u32) -> impl Iterator<Item = (u32, f32)> + '_ {
        let range = self.ids.range(i);
        self.ids.items[range.clone()].iter().copied().zip(self.values[range].iter().copied())
    }

    fn push(&mut self, features: &[(u32, f32)]) {
        self.ids.push(features.iter().map(|f| f.0));
        self.values.to_mut().extend(features.iter().map(|f| f.1));
    }

    fn score(&self, i: u32, weights: &[f64]) -> f64 {
        self.row(i).map(|(f, v)| weights[f as usize] * f64::from(v)).sum()
    }
}

/// The rules of a forest, which edges share: target words with the places of tails, and features.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Rules<'a> {
    /// Target symbols of each rule: local numbers of words, and [`TAILS`].
    pub target: Rows<'a>,
    /// Features that each rule adds to an edge.
    pub features: Features<'a>,
}

/// A packed forest: all derivations of one sentence. Nodes are numbered in topological order, and the last one is the root;
/// each edge leads into a node from up to two tails. Scores are never stored: they come from weights.
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
    first_edge: Cow<'a, [u32]>,
    tails: Cow<'a, [[u32; 2]]>,
    rule: Cow<'a, [u32]>,
    features: Features<'a>,
    /// The rules that edges refer to by number.
    pub rules: Rules<'a>,
    /// The features that occur in this forest; their positions are the local numbers.
    pub local: Arc<Local>,
    /// The target words that occur in this forest; their positions are the local numbers.
    pub words: Arc<Vec<String>>,
}

impl Forest<'_> {
    /// Number of nodes of the forest.
    pub fn nodes(&self) -> usize {
        self.first_edge.len().saturating_sub(1)
    }

    /// Number of edges of the forest.
    pub fn edges(&self) -> usize {
        self.rule.len()
    }

    /// Whether the forest has no edge, and so no derivation.
    pub fn is_empty(&self) -> bool {
        self.edges() == 0
    }

    /// Number of the root node, which is the last one. Panics if there is no node.
    pub fn root(&self) -> u32 {
        self.nodes() as u32 - 1
    }

    /// Numbers of the edges into a node.
    #[inline]
    pub fn incoming(&self, node: u32) -> Range<u32> {
        self.first_edge[node as usize]..self.first_edge[node as usize + 1]
    }

    /// Numbers of the nodes that are the tails of an edge: none, one or two, all before its head.
    #[inline]
    pub fn tails(&self, edge: u32) -> impl Iterator<Item = u32> + '_ {
        self.tails[edge as usize].iter().copied().take_while(|&t| t != NONE)
    }

    /// Both places for tails of an edge.
    #[inline]
    pub(crate) fn both(&self, edge: u32) -> [u32; 2] {
        self.tails[edge as usize]
    }

    /// First edge of each node with the end, and tails of all edges.
    pub(crate) fn shape(&self) -> (&[u32], &[[u32; 2]]) {
        (&self.first_edge, &self.tails)
    }

    /// Number of the rule of an edge.
    pub fn rule(&self, edge: u32) -> u32 {
        self.rule[edge as usize]
    }

    /// Target symbols of an edge: local numbers of words, and [`TAILS`] where the words of its tails go.
    #[inline]
    pub fn target(&self, edge: u32) -> &[u32] {
        self.rules.target.row(self.rule[edge as usize])
    }

    /// Features of an edge, those of its rule and then its own: pairs of local number and value; one number may come twice.
    pub fn features(&self, edge: u32) -> impl Iterator<Item = (u32, f32)> + '_ {
        self.rules.features.row(self.rule[edge as usize]).chain(self.features.row(edge))
    }

    /// Features of an edge without those of its rule: pairs of local number and value.
    pub fn own_features(&self, edge: u32) -> impl Iterator<Item = (u32, f32)> + '_ {
        self.features.row(edge)
    }

    /// Scores of all edges, Σ weight · value over the features of each; `weights` are by local number.
    pub fn scores(&self, weights: &[f64]) -> Vec<f64> {
        let (mut rules, mut out) = (Vec::new(), Vec::new());
        self.scores_into(weights, &mut rules, &mut out);
        out
    }

    /// Writes the scores of all edges to `out`, as [`Forest::scores`] returns them; `rules` is room for the scores of rules.
    pub fn scores_into(&self, weights: &[f64], rules: &mut Vec<f64>, out: &mut Vec<f64>) {
        rules.clear();
        rules.extend((0..self.rules.target.len() as u32).map(|r| self.rules.features.score(r, weights)));
        let own = |e: usize| self.features.score(e as u32, weights);
        out.clear();
        out.extend(self.rule.iter().enumerate().map(|(e, &r)| rules[r as usize] + own(e)));
    }

    /// The forest of those edges for which `keep` is true and that are part of some derivation of the root. Nodes and rules
    /// that are left over go away; the numbers of the others change, their order does not.
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

/// A forest under construction: first all edges into a node, then the node, from the leaves to the root.
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
    /// Adds a rule with these target symbols and features (by local number); returns its number.
    pub fn rule(&mut self, target: impl IntoIterator<Item = u32>, features: &[(u32, f32)]) -> u32 {
        self.forest.rules.target.push(target);
        self.forest.rules.features.push(features);
        self.forest.rules.target.len() as u32 - 1
    }

    /// Adds an edge into the node that is ended next, with its tails ([`NONE`] where there is none), the number of its rule,
    /// and features beside those of the rule.
    pub fn edge(&mut self, tails: [u32; 2], rule: u32, features: &[(u32, f32)]) {
        self.forest.tails.to_mut().push(tails);
        self.forest.rule.to_mut().push(rule);
        self.forest.features.push(features);
    }

    /// Ends a node, into which all edges since the last node lead; returns its number.
    pub fn node(&mut self) -> u32 {
        let first = self.forest.first_edge.to_mut();
        if first.is_empty() {
            first.push(0);
        }
        first.push(self.forest.rule.len() as u32);
        first.len() as u32 - 2
    }

    /// Number of nodes that have been ended.
    pub fn nodes(&self) -> usize {
        self.forest.nodes()
    }

    /// The forest, whose root is the last node, with the features and words that local numbers refer to.
    pub fn finish(self, local: Arc<Local>, words: Arc<Vec<String>>) -> Forest<'static> {
        Forest { local, words, ..self.forest }
    }
}
