//! CKY parsing of the source sentence with the rules of a hierarchical model (Chiang 2007). It does not depend on
//! weights.
//!
//! The non-terminal X covers spans up to the span limit; S covers prefixes of the sentence and is built from left to
//! right by the glue rule S → S X. Nodes are pairs of a non-terminal and a span, in topological order; an edge stands
//! for all rules with the same source side over the same spans of its gaps. Source sides are matched by dotted items
//! that walk the table's trie. For n words, span limit L and at most d dotted items per span, this costs O(n·L²·d).

use luthier_core::{Progress, Result};
use luthier_forest::NONE;
use luthier_table::{GAPS, Node, Table};
use std::{borrow::Cow, ops::Range};

/// An edge: index of the first rule, number of rules, and two tails. If the number of rules is 0, the edge is a
/// [`Special`] one.
pub(crate) type Edge = [u32; 4];

/// Edges without rules of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Special {
    /// The beginning of the sentence.
    Begin,
    /// The glue rule S → S X.
    Glue,
    /// The end of the sentence.
    Close,
    /// An unknown word, by its position in the sentence.
    Passed(u32),
}

impl Special {
    /// The edge of this kind with these tails.
    fn edge(self, tails: [u32; 2]) -> Edge {
        let code = match self {
            Special::Begin => 0,
            Special::Glue => 1,
            Special::Close => 2,
            Special::Passed(at) => 3 + at,
        };
        [code, 0, tails[0], tails[1]]
    }

    /// Kind of an edge without rules; `None` for an edge with rules of the table.
    pub(crate) fn of(edge: Edge) -> Option<Self> {
        (edge[1] == 0).then_some(match edge[0] {
            0 => Special::Begin,
            1 => Special::Glue,
            2 => Special::Close,
            code => Special::Passed(code - 3),
        })
    }
}

/// Parse forest of a source sentence.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parse<'a> {
    /// First incoming edge of each node, then the number of edges.
    pub(crate) first: Cow<'a, [u32]>,
    pub(crate) edges: Cow<'a, [Edge]>,
    /// Source span of each node; empty for a forest that was read from a file.
    pub(crate) spans: Vec<Range<usize>>,
}

/// A dotted item: a prefix of source sides that matches a span, and the nodes of its gaps.
#[derive(Clone, Copy)]
struct Dot {
    /// Node of the table's trie.
    node: Node,
    gaps: [u32; 2],
    /// Number of gaps.
    count: u8,
    /// Whether the last symbol is a gap; gaps are never adjacent.
    open: bool,
}

impl Dot {
    /// Advances the dot over a gap that covers a node; `None` if no source side continues with a gap.
    fn gap(&self, table: &Table, node: u32) -> Option<Dot> {
        if self.open || self.count == 2 {
            return None;
        }
        let next = table.step(self.node, GAPS[self.count as usize])?;
        let mut gaps = self.gaps;
        gaps[self.count as usize] = node;
        Some(Dot { node: next, gaps, count: self.count + 1, open: true })
    }
}

/// Nodes of X by first word and length − 1; [`NONE`] if no rule matches.
type Cells = Vec<Vec<u32>>;

impl Parse<'static> {
    /// Parses a sentence; `span` is the maximum span of a rule in words. Fails if the progress callback answers
    /// *stop*.
    pub(crate) fn new(table: &Table, words: &[&str], span: usize, progress: Progress<'_>) -> Result<Self> {
        let (n, span) = (words.len(), span.max(1));
        let ids: Vec<Option<u32>> = words.iter().map(|w| table.source_word(w)).collect();
        let mut parse = Parse { first: vec![0].into(), edges: Vec::new().into(), spans: Vec::new() };
        let mut cells: Cells = vec![Vec::new(); n];
        // Bottom-up: spans from right to left by start, from short to long by length.
        for start in (0..n).rev() {
            let nothing = Dot { node: table.root(), gaps: [NONE; 2], count: 0, open: false };
            let mut dots: Vec<Vec<Dot>> = vec![vec![nothing]];
            for end in start + 1..=n.min(start + span) {
                progress.count("words", n - 1 - start, n)?;
                let mut new = longer(table, &ids, &cells, &dots, (start, end));
                let cell = parse.cell(&new, (start, end));
                cells[start].push(cell);
                if cell != NONE {
                    new.extend(nothing.gap(table, cell));
                }
                dots.push(new);
            }
        }
        parse.glue(&cells, span);
        Ok(parse)
    }

    /// Adds the node of X over a span with the edges of all rules that match it; [`NONE`] if none does. A single word
    /// without rule gets an edge for unknown words.
    fn cell(&mut self, dots: &[Dot], (start, end): (usize, usize)) -> u32 {
        let fits = |dot: &Dot| {
            let rules = dot.node.entries();
            (!rules.is_empty()).then(|| [rules.start, rules.len() as u32, dot.gaps[0], dot.gaps[1]])
        };
        let edges = self.edges.to_mut();
        let before = edges.len();
        edges.extend(dots.iter().filter_map(fits));
        if edges.len() == before && end == start + 1 {
            edges.push(Special::Passed(start as u32).edge([NONE; 2]));
        }
        if edges.len() > before { self.node(start..end) } else { NONE }
    }

    /// Adds the nodes of S: the beginning, one for each prefix of the sentence, and the end.
    fn glue(&mut self, cells: &Cells, span: usize) {
        let n = cells.len();
        self.edges.to_mut().push(Special::Begin.edge([NONE; 2]));
        let mut glued = vec![self.node(0..0)];
        for end in 1..=n {
            for (middle, &before) in glued.iter().enumerate().skip(end.saturating_sub(span)) {
                let cell = cell_of(cells, middle, end);
                if cell != NONE {
                    self.edges.to_mut().push(Special::Glue.edge([before, cell]));
                }
            }
            glued.push(self.node(0..end));
        }
        self.edges.to_mut().push(Special::Close.edge([glued[n], NONE]));
        self.node(0..n);
    }

    /// Completes the node of a source span, and returns its index.
    fn node(&mut self, span: Range<usize>) -> u32 {
        self.spans.push(span);
        let end = self.edges.len() as u32;
        self.first.to_mut().push(end);
        self.first.len() as u32 - 2
    }
}

/// Node of X over a span; [`NONE`] if there is none.
fn cell_of(cells: &Cells, start: usize, end: usize) -> u32 {
    cells[start].get(end - start - 1).copied().unwrap_or(NONE)
}

/// Dotted items that match a span: those of shorter spans with the same start, advanced over one word or one gap.
fn longer(
    table: &Table,
    ids: &[Option<u32>],
    cells: &Cells,
    dots: &[Vec<Dot>],
    (start, end): (usize, usize),
) -> Vec<Dot> {
    let mut new = Vec::new();
    if let Some(id) = ids[end - 1] {
        for dot in &dots[end - 1 - start] {
            let node = table.step(dot.node, id);
            new.extend(node.map(|node| Dot { node, open: false, ..*dot }));
        }
    }
    for middle in start + 1..end {
        let cell = cell_of(cells, middle, end);
        if cell != NONE {
            new.extend(dots[middle - start].iter().filter_map(|dot| dot.gap(table, cell)));
        }
    }
    new
}

impl Parse<'_> {
    /// Number of nodes.
    pub(crate) fn nodes(&self) -> usize {
        self.first.len() - 1
    }

    /// Incoming edges of a node.
    pub(crate) fn incoming(&self, node: usize) -> &[Edge] {
        &self.edges[self.first[node] as usize..self.first[node + 1] as usize]
    }

    /// Whether all indices are valid, for a forest that was read from a file, with this many rules and words.
    pub(crate) fn is_sound(&self, rules: usize, words: usize) -> bool {
        let edges = self.edges.len();
        if self.first.len() < 2 || self.first[0] != 0 || self.first[self.nodes()] as usize != edges {
            return false;
        }
        (0..self.nodes()).all(|node| {
            self.first[node] < self.first[node + 1]
                && self.first[node + 1] as usize <= edges
                && self.incoming(node).iter().all(|&edge| {
                    let tail = |t: u32| t == NONE || (t as usize) < node;
                    let last = node + 1 == self.nodes();
                    tail(edge[2])
                        && tail(edge[3])
                        && (edge[2] != NONE || edge[3] == NONE)
                        && match Special::of(edge) {
                            Some(Special::Passed(at)) => (at as usize) < words,
                            Some(Special::Begin) => edge[2] == NONE,
                            Some(Special::Glue) => edge[3] != NONE,
                            Some(Special::Close) => last && edge[2] != NONE && edge[3] == NONE,
                            None => u64::from(edge[0]) + u64::from(edge[1]) <= rules as u64,
                        }
                })
        }) && self.incoming(self.nodes() - 1).iter().all(|&e| Special::of(e) == Some(Special::Close))
    }
}
