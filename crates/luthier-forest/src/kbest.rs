//! Lazy k-best derivations of a forest, best first (Huang and Chiang 2005, algorithm 3).
//!
//! Each node keeps the derivations that have been requested so far, best first, and a heap of candidates for the next
//! one. A candidate is an edge with a rank for each tail; its successors, in which one rank is larger by 1, are
//! queued when the next derivation of the node is requested. The first derivation of the root costs O(edges), each
//! further one O(nodes of the derivation · log k).
//!
//! For distinct strings, a node discards a derivation whose words it already has, because nothing above it could
//! become a new string. Strings are compared by a concatenable hash, a polynomial modulo 2⁶¹ − 1, and their length.
//! The implementation is not recursive, since lattices can be deep.

use crate::{Best, Forest, NONE, TAILS};
use rustc_hash::FxHashSet;
use std::{cmp::Ordering, collections::BinaryHeap};

/// A derivation of a node: its first edge, the ranks of the derivations of the tails, and its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Way {
    pub(crate) score: f64,
    pub(crate) edge: u32,
    pub(crate) ranks: [u32; 2],
}

impl Eq for Way {}

impl Ord for Way {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = self.score.total_cmp(&other.score);
        // Ties go to the edge with the lower index, then to the lower ranks.
        by_score.then_with(|| (other.edge, other.ranks).cmp(&(self.edge, self.ranks)))
    }
}

impl PartialOrd for Way {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// State of the enumeration at a node.
#[derive(Debug, Default)]
struct Node {
    /// Whether the heap has been initialised.
    begun: bool,
    /// Candidates for the next derivation.
    heap: BinaryHeap<Way>,
    /// Derivations popped from the heap, best first.
    taken: Vec<Way>,
    /// Indices into `taken` of the derivations that were not discarded as duplicates.
    kept: Vec<u32>,
    /// Hash and length of the words of each kept derivation.
    strings: Vec<Text>,
    /// Number of derivations in `taken` whose successors have been queued.
    expanded: usize,
    /// Hash and length of all strings found so far.
    known: FxHashSet<(u64, u32)>,
    /// Candidates that have been queued, by edge and ranks.
    queued: FxHashSet<(u32, [u32; 2])>,
}

impl Node {
    /// Whether the node has no further derivations.
    fn is_done(&self) -> bool {
        self.begun && self.heap.is_empty() && self.expanded == self.taken.len()
    }
}

/// Hash and length of a string of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Text {
    hash: u64,
    length: u32,
}

/// Modulus of the polynomial hash.
const PRIME: u64 = (1 << 61) - 1;
/// Base of the polynomial hash.
const BASE: u64 = 0x0123_4567_89ab_cdef % PRIME;

/// a·b modulo `PRIME`.
fn times(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    let folded = (product as u64 & PRIME) + (product >> 61) as u64;
    if folded >= PRIME { folded - PRIME } else { folded }
}

/// `BASEⁿ` modulo `PRIME`.
fn power(mut n: u32) -> u64 {
    let (mut result, mut base) = (1, BASE);
    while n > 0 {
        if n & 1 == 1 {
            result = times(result, base);
        }
        base = times(base, base);
        n >>= 1;
    }
    result
}

impl Text {
    /// Hash and length of the concatenation.
    fn join(self, other: Text) -> Text {
        let sum = times(self.hash, power(other.length)) + other.hash;
        Text { hash: if sum >= PRIME { sum - PRIME } else { sum }, length: self.length + other.length }
    }

    fn word(word: u32) -> Text {
        // Multiplied, so that small numbers differ in many bits; never 0.
        Text { hash: times(u64::from(word) + 1, 0x9e37_79b9_7f4a_7c15 % PRIME), length: 1 }
    }

    const EMPTY: Text = Text { hash: 0, length: 0 };
}

/// One derivation of a forest: its score, words and edges.
#[derive(Debug, Clone, PartialEq)]
pub struct Derivation {
    /// Sum of the scores of the derivation's edges.
    pub score: f64,
    /// Local numbers of the derivation's words, from left to right.
    pub words: Vec<u32>,
    /// Indices of the derivation's edges in pre-order: from the root down, in the order in which the tails occur in
    /// the target side. An edge may occur twice.
    pub edges: Vec<u32>,
}

/// Iterator over the derivations of a forest, best first (Huang and Chiang 2005, algorithm 3). Among equal scores the
/// edge with the lower index comes first.
///
/// ```
/// # let line = r#"{"rules":["[x] ||| the","[x] ||| a","[x] ||| [x,1] house"],"goal":1,"nodes":[
/// #     [{"rule":1,"feature":{"p":-1}},{"rule":2,"feature":{"p":-2}}],[{"tail":[0],"rule":3}]]}"#;
/// # let forest = luthier_forest::text::from_json(line)?.forest;
/// use luthier_forest::KBest;
/// let scores = [-1.0, -3.0, 0.0];
/// let texts: Vec<String> = KBest::new(&forest, &scores, false).map(|d| forest.text(&d.words)).collect();
/// assert_eq!(texts, ["the house", "a house"]);
/// # luthier_core::Result::Ok(())
/// ```
pub struct KBest<'a> {
    forest: &'a Forest<'a>,
    scores: &'a [f64],
    /// Score of the best derivation of each node.
    best: Vec<Best>,
    nodes: Vec<Node>,
    /// Whether strings must be distinct.
    distinct: bool,
    /// Number of derivations returned so far.
    given: usize,
    /// Number of heap pops for the current derivation.
    work: usize,
    /// Maximum number of heap pops per derivation.
    limit: usize,
}

impl<'a> KBest<'a> {
    /// Returns an iterator over the derivations of a forest, best first; `scores` holds one score per edge. With
    /// `distinct`, each string is returned once, with its best derivation.
    pub fn new(forest: &'a Forest<'a>, scores: &'a [f64], distinct: bool) -> Self {
        let edges: Vec<Best> = scores.iter().map(|&s| Best(s)).collect();
        let best = forest.inside(&edges);
        let nodes = (0..forest.nodes()).map(|_| Node::default()).collect();
        KBest { forest, scores, best, nodes, distinct, given: 0, work: 0, limit: usize::MAX }
    }

    /// Ends the iteration when finding the next derivation takes more than `steps` heap pops, not counting one per
    /// node. Useful for distinct strings: a forest may have very many derivations of few strings.
    #[must_use]
    pub fn limit(self, steps: usize) -> Self {
        KBest { limit: steps.saturating_add(self.forest.nodes()), ..self }
    }

    /// Fills the heap of a node with the best derivation of each incoming edge.
    fn begin(&mut self, node: u32) {
        let forest = self.forest;
        let heap = forest.incoming(node).map(|edge| {
            let own = self.scores[edge as usize];
            let score = forest.tails(edge).fold(own, |s, t| s + self.best[t as usize].0);
            Way { score, edge, ranks: [0, 0] }
        });
        let heap: BinaryHeap<Way> = heap.filter(|w| w.score > f64::NEG_INFINITY).collect();
        let state = &mut self.nodes[node as usize];
        state.heap = heap;
        state.begun = true;
    }

    /// Score of the kept derivation of a node with this rank, if it has been found.
    fn kept_score(&self, node: u32, rank: u32) -> Option<f64> {
        let state = &self.nodes[node as usize];
        state.kept.get(rank as usize).map(|&t| state.taken[t as usize].score)
    }

    /// Computes the first `count` derivations of a node, or all if there are fewer.
    fn ensure(&mut self, node: u32, count: usize) {
        let mut tasks = vec![(node, count)];
        while let Some(&(node, count)) = tasks.last() {
            let state = &self.nodes[node as usize];
            if state.kept.len() >= count || state.is_done() || self.work >= self.limit {
                tasks.pop();
                continue;
            }
            if !state.begun {
                self.begin(node);
                continue;
            }
            if state.expanded < state.taken.len() {
                let way = state.taken[state.expanded];
                if self.expand(node, way, &mut tasks) {
                    self.nodes[node as usize].expanded += 1;
                }
                continue;
            }
            // The best candidate can be popped only if the derivations of its tails have been found.
            let Some(way) = state.heap.peek().copied() else { continue };
            let before = tasks.len();
            for (k, tail) in self.forest.both(way.edge).into_iter().enumerate().filter(|t| t.1 != NONE) {
                if self.nodes[tail as usize].kept.len() <= way.ranks[k] as usize {
                    tasks.push((tail, way.ranks[k] as usize + 1));
                }
            }
            if tasks.len() == before {
                self.take(node);
            }
        }
    }

    /// Queues the successors of a derivation. Returns false if derivations of its tails must be found first; they are
    /// then added to `tasks`.
    fn expand(&mut self, node: u32, way: Way, tasks: &mut Vec<(u32, usize)>) -> bool {
        let tails = self.forest.both(way.edge);
        let before = tasks.len();
        for (k, &tail) in tails.iter().enumerate().filter(|t| *t.1 != NONE) {
            let (need, state) = (way.ranks[k] as usize + 2, &self.nodes[tail as usize]);
            if state.kept.len() < need && !state.is_done() {
                tasks.push((tail, need));
            }
        }
        if tasks.len() > before {
            return false;
        }
        for (k, &tail) in tails.iter().enumerate().filter(|t| *t.1 != NONE) {
            let mut ranks = way.ranks;
            ranks[k] += 1;
            if self.kept_score(tail, ranks[k]).is_none() {
                continue;
            }
            let parts = tails.iter().zip(ranks).filter(|t| *t.0 != NONE);
            let score = parts.fold(self.scores[way.edge as usize], |s, (&t, rank)| {
                s + self.kept_score(t, rank).unwrap_or(f64::NEG_INFINITY)
            });
            let state = &mut self.nodes[node as usize];
            // A candidate can be reached in two ways only if it has two tails.
            if tails[1] == NONE || state.queued.insert((way.edge, ranks)) {
                state.heap.push(Way { score, edge: way.edge, ranks });
            }
        }
        true
    }

    /// Pops the best candidate from the heap, and keeps it unless it is a duplicate.
    fn take(&mut self, node: u32) {
        self.work += 1;
        let Some(way) = self.nodes[node as usize].heap.pop() else { return };
        let text = if self.distinct { self.text(&way) } else { Text::EMPTY };
        let state = &mut self.nodes[node as usize];
        state.taken.push(way);
        if !self.distinct || state.known.insert((text.hash, text.length)) {
            state.kept.push(state.taken.len() as u32 - 1);
            state.strings.push(text);
        }
    }

    /// Hash and length of the words of a derivation.
    fn text(&self, way: &Way) -> Text {
        let tails = self.forest.both(way.edge);
        self.forest.target(way.edge).iter().fold(Text::EMPTY, |text, &symbol| {
            text.join(match TAILS.iter().position(|t| *t == symbol) {
                Some(k) => self.nodes[tails[k] as usize].strings[way.ranks[k] as usize],
                None => Text::word(symbol),
            })
        })
    }

    /// Score, words and edges of the derivation of the root with this rank; `None` if there is none.
    fn derivation(&self, rank: u32) -> Option<Derivation> {
        let root = self.forest.root();
        let score = self.kept_score(root, rank)?;
        let (mut words, mut edges) = (Vec::new(), Vec::new());
        // Stack of derivations in progress: each with the position of the next symbol in its target side.
        let mut open = Vec::new();
        let enter = |node: u32, rank: u32, edges: &mut Vec<u32>| {
            let state = &self.nodes[node as usize];
            let way = state.taken[state.kept[rank as usize] as usize];
            edges.push(way.edge);
            (way, 0usize)
        };
        open.push(enter(root, rank, &mut edges));
        while let Some((way, at)) = open.last_mut() {
            let Some(&symbol) = self.forest.target(way.edge).get(*at) else {
                open.pop();
                continue;
            };
            *at += 1;
            match TAILS.iter().position(|t| *t == symbol) {
                Some(k) => {
                    let (tail, rank) = (self.forest.both(way.edge)[k], way.ranks[k]);
                    open.push(enter(tail, rank, &mut edges));
                }
                None => words.push(symbol),
            }
        }
        Some(Derivation { score, words, edges })
    }
}

impl Iterator for KBest<'_> {
    type Item = Derivation;

    fn next(&mut self) -> Option<Derivation> {
        if self.forest.is_empty() {
            return None;
        }
        self.work = 0;
        self.ensure(self.forest.root(), self.given + 1);
        self.given += 1;
        self.derivation(self.given as u32 - 1)
    }
}

impl Forest<'_> {
    /// Returns the best derivation, where `scores` holds one score per edge; `None` if the forest has no derivation.
    pub fn best(&self, scores: &[f64]) -> Option<Derivation> {
        KBest::new(self, scores, false).next()
    }

    /// Writes the words of the best derivation to `words` and returns its score; `None` if the forest has no
    /// derivation. Cheaper than [`Forest::best`], because edges are not returned.
    pub fn best_words(&self, scores: &[f64], words: &mut Vec<u32>) -> Option<f64> {
        let mut best: Vec<(f64, u32)> = Vec::with_capacity(self.nodes());
        for node in 0..self.nodes() as u32 {
            let mut here = (f64::NEG_INFINITY, NONE);
            for edge in self.incoming(node) {
                let score = scores[edge as usize] + self.tails(edge).map(|t| best[t as usize].0).sum::<f64>();
                if score > here.0 {
                    here = (score, edge);
                }
            }
            best.push(here);
        }
        words.clear();
        let &(score, edge) = best.last().filter(|b| b.1 != NONE)?;
        let mut open = vec![(edge, 0usize)];
        while let Some((edge, at)) = open.last_mut() {
            let Some(&symbol) = self.target(*edge).get(*at) else {
                open.pop();
                continue;
            };
            *at += 1;
            match TAILS.iter().position(|t| *t == symbol) {
                Some(k) => {
                    let tail = self.both(*edge)[k];
                    open.push((best[tail as usize].1, 0));
                }
                None => words.push(symbol),
            }
        }
        Some(score)
    }

    /// Writes the sum of the feature vectors of `edges` to `out`, indexed by local feature number. An edge that occurs
    /// twice counts twice.
    pub fn sum_features(&self, edges: &[u32], out: &mut Vec<f64>) {
        out.clear();
        out.resize(self.local.keys().len(), 0.0);
        for &edge in edges {
            for (f, v) in self.features(edge) {
                out[f as usize] += f64::from(v);
            }
        }
    }

    /// Returns the text of words given by their local numbers, separated by single spaces.
    pub fn text(&self, words: &[u32]) -> String {
        let text: Vec<&str> =
            words.iter().map(|&w| self.words.get(w as usize).map_or("", String::as_str)).collect();
        text.join(" ")
    }
}
