//! Which rules fit which spans of a sentence: everything that does not depend on weights.
//!
//! X covers up to so many words; the sentence S is a row of X, put together from left to right by glue rules. Nodes are
//! spans, in an order in which parts come before the whole; an edge stands for all rules with one source side over the same
//! spans.

use luthier_core::{Progress, Result};
use luthier_forest::NONE;
use luthier_table::{GAPS, Node, Table};
use std::borrow::Cow;

/// First rule, number of rules, and both tails; without rules a [`Special`] one.
pub(crate) type Edge = [u32; 4];

/// Edges that no rule of the table stands behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Special {
    /// The beginning of the sentence.
    Begin,
    /// S becomes S X.
    Glue,
    /// The end of the sentence.
    Close,
    /// A word that is passed through, by its place in the sentence.
    Passed(u32),
}

impl Special {
    fn edge(self, tails: [u32; 2]) -> Edge {
        let code = match self {
            Special::Begin => 0,
            Special::Glue => 1,
            Special::Close => 2,
            Special::Passed(at) => 3 + at,
        };
        [code, 0, tails[0], tails[1]]
    }

    /// What an edge is, if it has no rules.
    pub(crate) fn of(edge: Edge) -> Option<Self> {
        (edge[1] == 0).then_some(match edge[0] {
            0 => Special::Begin,
            1 => Special::Glue,
            2 => Special::Close,
            code => Special::Passed(code - 3),
        })
    }
}

/// The spans of a sentence and what fits them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parse<'a> {
    /// First edge of each node, and the end.
    pub(crate) first: Cow<'a, [u32]>,
    pub(crate) edges: Cow<'a, [Edge]>,
}

/// A part of a source side that fits from some word on.
#[derive(Clone, Copy)]
struct Dot {
    node: Node,
    gaps: [u32; 2],
    count: u8,
    /// Whether its last symbol is a gap: two never stand side by side.
    open: bool,
}

impl Dot {
    /// One gap further, over a node.
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

/// Nodes of X by first word and length − 1; [`NONE`] where no rule fits.
type Cells = Vec<Vec<u32>>;

impl Parse<'static> {
    /// The spans of a sentence; rules span so many words at most. Fails if the caller asks to stop.
    pub(crate) fn new(table: &Table, words: &[&str], span: usize, progress: Progress<'_>) -> Result<Self> {
        let (n, span) = (words.len(), span.max(1));
        let ids: Vec<Option<u32>> = words.iter().map(|w| table.source_word(w)).collect();
        let mut parse = Parse { first: vec![0].into(), edges: Vec::new().into() };
        let mut cells: Cells = vec![Vec::new(); n];
        // From the last word to the first and from short spans to long ones.
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

    /// The node of X over a span, if a rule fits; a word without rule is passed through.
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
        if edges.len() > before { self.node() } else { NONE }
    }

    /// Nodes of S: the beginning, what is glued together up to each word, and the end.
    fn glue(&mut self, cells: &Cells, span: usize) {
        let n = cells.len();
        self.edges.to_mut().push(Special::Begin.edge([NONE; 2]));
        let mut glued = vec![self.node()];
        for end in 1..=n {
            for (middle, &before) in glued.iter().enumerate().skip(end.saturating_sub(span)) {
                let cell = cell_of(cells, middle, end);
                if cell != NONE {
                    self.edges.to_mut().push(Special::Glue.edge([before, cell]));
                }
            }
            glued.push(self.node());
        }
        self.edges.to_mut().push(Special::Close.edge([glued[n], NONE]));
        self.node();
    }

    /// Ends a node, and says its number.
    fn node(&mut self) -> u32 {
        let end = self.edges.len() as u32;
        self.first.to_mut().push(end);
        self.first.len() as u32 - 2
    }
}

fn cell_of(cells: &Cells, start: usize, end: usize) -> u32 {
    cells[start].get(end - start - 1).copied().unwrap_or(NONE)
}

/// Parts of source sides that fit a span: those of shorter spans from the same word, with one word or one gap more.
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
    pub(crate) fn nodes(&self) -> usize {
        self.first.len() - 1
    }

    /// Edges into a node.
    pub(crate) fn incoming(&self, node: usize) -> &[Edge] {
        &self.edges[self.first[node] as usize..self.first[node + 1] as usize]
    }

    /// Whether all numbers are of things that exist: what was read may be damaged.
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
