//! Hierarchical search (Chiang 2007): which rules fit which spans, then cube pruning from short spans to long ones.
//!
//! X covers up to [`Limits::span`] words; the sentence S is a row of X, put together from left to right by glue rules. A chart
//! item is a span with what language models need to know about both its ends; items with equal ends recombine.
//! For each span the queue holds combinations of a rule and the items of its gaps, by an estimate in which the words of the
//! rule stand alone; the exact score is computed when a combination is taken.

use crate::{
    model::{Model, UNKNOWN_COST},
    phrase::LN10,
    search::{Limits, NOBODY, Recombination, Stats},
    sparse::Text,
};
use luthier_core::Weights;
use luthier_forest::{Builder, Forest, NONE, TAILS};
use luthier_lm::{END, Fragment, UNKNOWN};
use luthier_table::{GAPS, Node};
use rustc_hash::FxHashMap;
use std::{
    cmp::Ordering,
    collections::BinaryHeap,
    hash::{Hash, Hasher},
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

/// A rule with its scores, as far as they can be known before search.
#[derive(Debug)]
pub(crate) struct Rule {
    /// Words and [`TAILS`].
    target: Box<[u32]>,
    /// The same as each language model knows the words.
    lm: Box<[Box<[u32]>]>,
    scores: Box<[f32]>,
    /// Weighted, without language models.
    fixed: f64,
    /// The same with what language models say about its words by themselves.
    estimate: f64,
    kind: Kind,
    /// Words that each language model does not know.
    unknown: Box<[u32]>,
}

/// Where a rule comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The table; with so many gaps.
    Table(u8),
    /// A word that is passed through.
    Passed,
    /// S becomes S X.
    Glue,
    /// The beginning and the end of a sentence.
    Edge,
}

/// Finds rules, and remembers them.
pub(crate) struct RuleBook<'m> {
    model: &'m Model,
    weights: Vec<f64>,
    limit: usize,
    known: Mutex<FxHashMap<u32, Arc<[Rule]>>>,
}

impl<'m> RuleBook<'m> {
    pub(crate) fn new(model: &'m Model, weights: &Weights, limit: usize) -> Self {
        RuleBook { model, weights: model.weights(weights), limit, known: Mutex::default() }
    }

    pub(crate) fn weights(&self) -> &[f64] {
        &self.weights
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, FxHashMap<u32, Arc<[Rule]>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The best rules with a source side, best first.
    fn of(&self, node: Node) -> Arc<[Rule]> {
        let entries = node.entries();
        if let Some(found) = self.lock().get(&entries.start) {
            return found.clone();
        }
        let (mut target, mut scores) = (Vec::new(), Vec::new());
        let mut all: Vec<(u32, Rule)> = Vec::new();
        for entry in entries.clone() {
            self.model.table.target(entry, &mut target);
            self.model.table.scores(entry, &mut scores);
            let gaps = target.iter().filter(|s| GAPS.contains(s)).count() as u8;
            all.push((entry, self.rule(&target, &scores, Kind::Table(gaps), None)));
        }
        all.sort_by(|a, b| b.1.estimate.total_cmp(&a.1.estimate).then(a.0.cmp(&b.0)));
        all.truncate(self.limit);
        let best: Arc<[Rule]> = all.into_iter().map(|r| r.1).collect();
        self.lock().insert(entries.start, best.clone());
        best
    }

    fn rule(&self, target: &[u32], scores: &[f32], kind: Kind, text: Option<&str>) -> Rule {
        let model = self.model;
        let target: Box<[u32]> =
            target.iter().map(|&s| GAPS.iter().position(|g| *g == s).map_or(s, |gap| TAILS[gap])).collect();
        let number = |known: &Vec<u32>, lm: &luthier_lm::Model, s: u32| match (known.get(s as usize), text) {
            _ if TAILS.contains(&s) => s,
            (Some(&id), _) => id,
            (None, Some(text)) => lm.word(text),
            (None, None) => UNKNOWN,
        };
        let each = model.lms.iter().zip(&model.lm_words);
        let lm: Box<[Box<[u32]>]> =
            each.map(|(lm, known)| target.iter().map(|&s| number(known, lm, s)).collect()).collect();
        let count = |words: &[u32]| words.iter().filter(|w| **w == UNKNOWN).count() as u32;
        let mut rule = Rule {
            unknown: lm.iter().map(|words| count(words)).collect(),
            target,
            lm,
            scores: scores.into(),
            fixed: 0.0,
            estimate: 0.0,
            kind,
        };
        let mut fixed = 0.0;
        features(model, &rule, &mut |feature, value| fixed += self.weights[feature] * f64::from(value));
        rule.fixed = fixed;
        rule.estimate = fixed;
        for (k, words) in rule.lm.iter().enumerate() {
            for run in words.split(|w| TAILS.contains(w)) {
                rule.estimate += self.weights[model.layout.lm + k]
                    * Fragment::estimate(&model.lms[k], run)
                    * f64::from(LN10);
            }
        }
        rule
    }
}

/// The features of a rule, without language models.
fn features(model: &Model, rule: &Rule, each: &mut dyn FnMut(usize, f32)) {
    let layout = &model.layout;
    // Moses counts the marks of a sentence as words.
    let words =
        rule.target.iter().filter(|s| !TAILS.contains(s)).count() + usize::from(rule.kind == Kind::Edge);
    let mut put = |feature: usize, value: f32| {
        if value != 0.0 && model.uses(feature) {
            each(feature, value);
        }
    };
    for (k, s) in rule.scores.iter().enumerate() {
        put(layout.table + k, *s);
    }
    put(layout.words, -(words as f32));
    put(layout.phrases, 1.0);
    if let Some(oov) = layout.oov {
        for (k, n) in rule.unknown.iter().enumerate() {
            put(oov + k, *n as f32);
        }
    }
    match rule.kind {
        Kind::Passed => put(layout.unknown, UNKNOWN_COST),
        Kind::Glue => put(layout.glue, model.glue),
        Kind::Table(gaps) => put(layout.kinds + gaps as usize, 1.0),
        Kind::Edge => {}
    }
}

/// A part of a source side that fits from some word on.
#[derive(Clone, Copy)]
struct Dot {
    node: Node,
    gaps: [Cell; 2],
    count: u8,
    /// Whether its last symbol is a gap: two never stand side by side.
    open: bool,
}

/// A span, as first word and end.
type Cell = (u32, u32);

/// A span with the ends of its translation.
struct Item {
    score: f64,
    best: u32,
}

/// A way to make an item.
struct Edge {
    head: u32,
    tails: [u32; 2],
    /// Number of the rule in the sentence.
    rule: u32,
}

/// Rules with the same source side over the same spans.
struct Grid {
    /// First number of the rules.
    first: u32,
    rules: u32,
    /// Items of each gap, best first.
    tails: [Range<u32>; 2],
}

struct Next {
    priority: f64,
    grid: u32,
    ranks: [u32; 3],
}

impl PartialEq for Next {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Next {}

impl Ord for Next {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_priority = self.priority.total_cmp(&other.priority);
        by_priority.then_with(|| (other.grid, other.ranks).cmp(&(self.grid, self.ranks)))
    }
}

impl PartialOrd for Next {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A rule of a sentence: one of several that were found together.
type Numbered = (Arc<[Rule]>, u32);

/// The chart of a sentence after search.
pub struct Chart<'d> {
    model: &'d Model,
    source: Vec<String>,
    rules: Vec<Numbered>,
    items: Vec<Item>,
    /// Ends of the items, one for each language model.
    ends: Vec<Fragment>,
    edges: Vec<Edge>,
    /// Natural logarithms that each edge adds, by language model.
    edge_lm: Vec<f32>,
    goal: Option<u32>,
    /// What the search did.
    pub stats: Stats,
}

struct Search<'d> {
    chart: Chart<'d>,
    book: &'d RuleBook<'d>,
    limits: Limits,
    /// Items of X by first word and length − 1, best first: a range of `order`.
    cells: Vec<Vec<Range<u32>>>,
    /// Items of S by end.
    glued: Vec<Range<u32>>,
    /// Items in the order of their cells, best first.
    order: Vec<u32>,
    table: Recombination,
}

/// Translates a sentence.
pub(crate) fn search<'d>(
    model: &'d Model,
    book: &'d RuleBook<'d>,
    words: &[&str],
    limits: Limits,
) -> Chart<'d> {
    let chart = Chart {
        model,
        source: words.iter().map(ToString::to_string).collect(),
        rules: Vec::new(),
        items: Vec::new(),
        ends: Vec::new(),
        edges: Vec::new(),
        edge_lm: Vec::new(),
        goal: None,
        stats: Stats { words: words.len() as u64, ..Stats::default() },
    };
    let mut search = Search {
        chart,
        book,
        limits,
        cells: vec![Vec::new(); words.len()],
        glued: Vec::new(),
        order: Vec::new(),
        table: Recombination::default(),
    };
    search.parse(words);
    search.glue(words.len());
    search.chart
}

impl Search<'_> {
    /// Fills the cells of X, from the last word to the first and from short spans to long ones.
    fn parse(&mut self, words: &[&str]) {
        let (model, n) = (self.book.model, words.len());
        let ids: Vec<Option<u32>> = words.iter().map(|w| model.table.source_word(w)).collect();
        let nothing = Dot { node: model.table.root(), gaps: [(0, 0); 2], count: 0, open: false };
        for start in (0..n).rev() {
            let mut dots: Vec<Vec<Dot>> = vec![vec![nothing]];
            for end in start + 1..=n.min(start + self.limits.span.max(1)) {
                let mut new = Vec::new();
                if let Some(id) = ids[end - 1] {
                    for dot in &dots[end - 1 - start] {
                        let node = model.table.step(dot.node, id);
                        new.extend(node.map(|node| Dot { node, open: false, ..*dot }));
                    }
                }
                for middle in start + 1..end {
                    if !self.cell(middle, end).is_empty() {
                        for dot in &dots[middle - start] {
                            new.extend(self.gap(dot, middle, end));
                        }
                    }
                }
                self.fill(start, end, &new, words);
                if !self.cell(start, end).is_empty() {
                    new.extend(self.gap(&nothing, start, end));
                }
                dots.push(new);
            }
        }
    }

    /// Items of X over a span.
    fn cell(&self, start: usize, end: usize) -> Range<u32> {
        self.cells[start].get(end - start - 1).cloned().unwrap_or_default()
    }

    /// One gap further, over a span.
    fn gap(&self, dot: &Dot, start: usize, end: usize) -> Option<Dot> {
        if dot.open || dot.count == 2 {
            return None;
        }
        let node = self.book.model.table.step(dot.node, GAPS[dot.count as usize])?;
        let mut gaps = dot.gaps;
        gaps[dot.count as usize] = (start as u32, end as u32);
        Some(Dot { node, gaps, count: dot.count + 1, open: true })
    }

    /// Numbers rules that were found together.
    fn number(&mut self, rules: &Arc<[Rule]>) -> u32 {
        let first = self.chart.rules.len() as u32;
        self.chart.rules.extend((0..rules.len() as u32).map(|k| (rules.clone(), k)));
        first
    }

    fn fill(&mut self, start: usize, end: usize, dots: &[Dot], words: &[&str]) {
        let mut grids = Vec::new();
        for dot in dots.iter().filter(|d| !d.node.entries().is_empty()) {
            let rules = self.book.of(dot.node);
            let first = self.number(&rules);
            let tails = std::array::from_fn(|k| {
                let (from, to) = dot.gaps[k];
                if k < dot.count as usize { self.cell(from as usize, to as usize) } else { 0..0 }
            });
            grids.push(Grid { first, rules: rules.len() as u32, tails });
        }
        // A word that no rule translates is passed through, or left out.
        if end == start + 1 && grids.is_empty() {
            let known = self.book.model.table.words()[1];
            let word = words[start];
            let first = words.iter().position(|w| *w == word).unwrap_or(start);
            let id = self.book.model.table.target_word(word).unwrap_or((known + first) as u32);
            let target = if self.limits.drop_unknown { &[][..] } else { &[id] };
            let scores = vec![0.0; self.book.model.table.shape().scores];
            let rule = self.book.rule(target, &scores, Kind::Passed, Some(word));
            let first = self.number(&[rule].into());
            grids.push(Grid { first, rules: 1, tails: [0..0, 0..0] });
            self.chart.stats.unknown += 1;
        }
        let cell = self.take(&grids);
        self.cells[start].push(cell);
    }

    /// Rows of X, from the left.
    fn glue(&mut self, n: usize) {
        let edge = |book: &RuleBook<'_>, target: &[u32], kind| -> Arc<[Rule]> {
            let scores = vec![0.0; book.model.table.shape().scores];
            [book.rule(target, &scores, kind, None)].into()
        };
        let begin = self.number(&edge(self.book, &[], Kind::Edge));
        let glue = self.number(&edge(self.book, &GAPS, Kind::Glue));
        let close = self.number(&edge(self.book, &GAPS[..1], Kind::Edge));
        // The beginning: no words, but language models know where they are.
        let fixed = self.rule(begin).fixed;
        self.chart.items.push(Item { score: fixed, best: self.chart.edges.len() as u32 });
        for lm in &self.book.model.lms {
            self.chart.ends.push(Fragment::begin(lm));
            self.chart.edge_lm.push(0.0);
        }
        let first = self.chart.items.len() as u32 - 1;
        self.chart.edges.push(Edge { head: first, tails: [NONE; 2], rule: begin });
        let at = self.order.len() as u32;
        self.order.push(first);
        self.glued.push(at..at + 1);
        for end in 1..=n {
            let mut grids = Vec::new();
            for middle in end.saturating_sub(self.limits.span.max(1))..end {
                let (left, right) = (self.glued[middle].clone(), self.cell(middle, end));
                if !left.is_empty() && !right.is_empty() {
                    grids.push(Grid { first: glue, rules: 1, tails: [left, right] });
                }
            }
            let cell = self.take(&grids);
            self.glued.push(cell);
        }
        self.close(close, n);
    }

    fn rule(&self, number: u32) -> &Rule {
        let (rules, k) = &self.chart.rules[number as usize];
        &rules[*k as usize]
    }

    /// The end of the sentence.
    fn close(&mut self, rule: u32, n: usize) {
        let (weights, layout) = (self.book.weights(), &self.book.model.layout);
        let fixed = self.rule(rule).fixed;
        let last: Vec<u32> = self.order[self.glued[n].start as usize..self.glued[n].end as usize].to_vec();
        let head = self.chart.items.len() as u32;
        let mut best: Option<(f64, u32)> = None;
        for item in last {
            let mut score = self.chart.items[item as usize].score + fixed;
            for (k, lm) in self.book.model.lms.iter().enumerate() {
                let right = self.chart.ends[item as usize * self.book.model.lms.len() + k];
                let added = lm.score(right.right(), END).log10 * LN10;
                score += weights[layout.lm + k] * f64::from(added);
                self.chart.edge_lm.push(added);
            }
            let number = self.chart.edges.len() as u32;
            self.chart.edges.push(Edge { head, tails: [item, NONE], rule });
            if best.is_none_or(|b| score > b.0) {
                best = Some((score, number));
            }
        }
        if let Some((score, best)) = best {
            self.chart.items.push(Item { score, best });
            self.chart.ends.extend(self.book.model.lms.iter().map(|_| Fragment::default()));
            self.chart.goal = Some(head);
        }
    }

    /// Takes the most promising combinations of a span, and returns its items.
    fn take(&mut self, grids: &[Grid]) -> Range<u32> {
        self.table.clear();
        let first = self.chart.items.len() as u32;
        let first_edge = self.chart.edges.len();
        let mut queue: BinaryHeap<Next> = BinaryHeap::with_capacity(2 * grids.len());
        for g in 0..grids.len() as u32 {
            let ranks = [0; 3];
            queue.push(Next { priority: self.priority(&grids[g as usize], ranks), grid: g, ranks });
        }
        let mut popped = 0;
        while let Some(Next { grid: g, ranks, .. }) = queue.pop() {
            if self.limits.pop.is_some_and(|most| popped >= most) {
                break;
            }
            popped += 1;
            let grid = &grids[g as usize];
            self.make(grid, ranks, first);
            // Each combination has one that comes before it: the one that is one less in its last rank that is not 0.
            let most = [grid.rules, grid.tails[0].len() as u32, grid.tails[1].len() as u32];
            for k in (0..3).rev() {
                let mut next = ranks;
                next[k] += 1;
                if next[k] < most[k] {
                    queue.push(Next { priority: self.priority(grid, next), grid: g, ranks: next });
                }
                if ranks[k] > 0 {
                    break;
                }
            }
        }
        self.chart.stats.popped += popped as u64;
        self.chart.stats.kept += self.chart.items.len() as u64 - u64::from(first);
        self.chart.stats.recombined +=
            (self.chart.edges.len() - first_edge) as u64 - (self.chart.items.len() as u64 - u64::from(first));
        let mut new: Vec<u32> = (first..self.chart.items.len() as u32).collect();
        let items = &self.chart.items;
        new.sort_by(|&a, &b| items[b as usize].score.total_cmp(&items[a as usize].score).then(a.cmp(&b)));
        new.truncate(self.limits.stack);
        let start = self.order.len() as u32;
        self.order.extend(new);
        start..self.order.len() as u32
    }

    fn tail(&self, grid: &Grid, k: usize, rank: u32) -> Option<u32> {
        let range = &grid.tails[k];
        (!range.is_empty()).then(|| self.order[(range.start + rank) as usize])
    }

    fn priority(&self, grid: &Grid, ranks: [u32; 3]) -> f64 {
        let mut total = self.rule(grid.first + ranks[0]).estimate;
        for k in 0..2 {
            total += self.tail(grid, k, ranks[k + 1]).map_or(0.0, |t| self.chart.items[t as usize].score);
        }
        total
    }

    /// Computes a combination exactly, and puts it where it belongs.
    fn make(&mut self, grid: &Grid, ranks: [u32; 3], first: u32) {
        let model = self.book.model;
        let (weights, lms) = (self.book.weights(), model.lms.len());
        let number = grid.first + ranks[0];
        let tails: [u32; 2] = std::array::from_fn(|k| self.tail(grid, k, ranks[k + 1]).unwrap_or(NONE));
        let chart = &mut self.chart;
        let (rules, k) = &chart.rules[number as usize];
        let rule = &rules[*k as usize];
        let mut score = rule.fixed;
        for &t in tails.iter().filter(|t| **t != NONE) {
            score += chart.items[t as usize].score;
        }
        let new = chart.items.len();
        for (k, symbols) in rule.lm.iter().enumerate() {
            let lm = &model.lms[k];
            // A sentence that has begun goes on where it is.
            let mut fragment = Fragment::default();
            let mut added = 0.0;
            for (at, &symbol) in symbols.iter().enumerate() {
                match TAILS.iter().position(|t| *t == symbol) {
                    Some(gap) => {
                        let tail = &chart.ends[tails[gap] as usize * lms + k];
                        if at == 0 {
                            fragment = *tail;
                        } else {
                            added += fragment.join(lm, tail);
                        }
                    }
                    None => added += fragment.push(lm, symbol),
                }
            }
            let added = (added * f64::from(LN10)) as f32;
            score += weights[model.layout.lm + k] * f64::from(added);
            chart.edge_lm.push(added);
            chart.ends.push(fragment);
        }
        let edge = chart.edges.len() as u32;
        let ends = &chart.ends;
        let of = |id: usize| &ends[id * lms..(id + 1) * lms];
        self.table.reserve(|id| hash(of(id as usize)));
        let mine = of(new);
        let slot = self.table.find(hash(mine), |id| id >= first && of(id as usize) == mine);
        let head = self.table.slots[slot];
        if head == NOBODY {
            self.table.slots[slot] = new as u32;
            self.table.used.push(slot as u32);
            chart.items.push(Item { score, best: edge });
            chart.edges.push(Edge { head: new as u32, tails, rule: number });
        } else {
            chart.ends.truncate(new * lms);
            let old = &mut chart.items[head as usize];
            if score > old.score {
                *old = Item { score, best: edge };
            }
            chart.edges.push(Edge { head, tails, rule: number });
        }
    }
}

fn hash(ends: &[Fragment]) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    ends.hash(&mut hasher);
    let x = hasher.finish();
    x ^ (x >> 32)
}

impl Chart<'_> {
    fn rule(&self, number: u32) -> &Rule {
        let (rules, k) = &self.rules[number as usize];
        &rules[*k as usize]
    }

    /// The best translation and its total score; nothing if there is none.
    pub fn best(&self) -> Option<(String, f64)> {
        let goal = self.goal?;
        let text = Text { table: &self.model.table, source: &self.source };
        let mut words = Vec::new();
        // Symbols that are still to be written, the next one last: words, or items.
        let mut open = vec![Err(goal)];
        while let Some(next) = open.pop() {
            match next {
                Ok(word) => words.push(text.target(word)),
                Err(item) => {
                    let edge = &self.edges[self.items[item as usize].best as usize];
                    let symbols = self.rule(edge.rule).target.iter().rev();
                    open.extend(symbols.map(|&s| match TAILS.iter().position(|t| *t == s) {
                        Some(gap) => Err(edge.tails[gap]),
                        None => Ok(s),
                    }));
                }
            }
        }
        Some((words.join(" "), self.items[goal as usize].score))
    }

    /// The forest of all complete translations.
    pub fn forest(&self) -> Forest<'static> {
        let Some(goal) = self.goal else { return Forest::default() };
        let mut into: Vec<Vec<u32>> = vec![Vec::new(); self.items.len()];
        for (e, edge) in self.edges.iter().enumerate() {
            into[edge.head as usize].push(e as u32);
        }
        let mut wanted = vec![false; self.items.len()];
        wanted[goal as usize] = true;
        for item in (0..self.items.len()).rev().filter(|&i| i <= goal as usize) {
            if wanted[item] {
                for &e in &into[item] {
                    for t in self.edges[e as usize].tails.into_iter().filter(|t| *t != NONE) {
                        wanted[t as usize] = true;
                    }
                }
            }
        }
        let (model, lms) = (self.model, self.model.lms.len());
        let text = Text { table: &model.table, source: &self.source };
        let mut builder = Builder::default();
        let mut node = vec![NONE; self.items.len()];
        let mut rules: FxHashMap<u32, u32> = FxHashMap::default();
        let (mut words, mut word_ids) = (Vec::new(), FxHashMap::default());
        let mut own = Vec::new();
        for item in (0..self.items.len()).filter(|&i| wanted[i]) {
            for &e in &into[item] {
                let edge = &self.edges[e as usize];
                let rule = *rules.entry(edge.rule).or_insert_with(|| {
                    let rule = self.rule(edge.rule);
                    let mut all = Vec::new();
                    features(model, rule, &mut |feature, value| all.push((model.place[feature], value)));
                    let number = |&s: &u32| {
                        if TAILS.contains(&s) {
                            return s;
                        }
                        *word_ids.entry(s).or_insert_with(|| {
                            words.push(text.target(s).to_owned());
                            words.len() as u32 - 1
                        })
                    };
                    let target: Vec<u32> = rule.target.iter().map(number).collect();
                    builder.rule(target, &all)
                });
                own.clear();
                for k in (0..lms).filter(|k| model.uses(model.layout.lm + k)) {
                    own.push((model.place[model.layout.lm + k], self.edge_lm[e as usize * lms + k]));
                }
                let tails = edge.tails.map(|t| if t == NONE { NONE } else { node[t as usize] });
                builder.edge(tails, rule, &own);
            }
            node[item] = builder.node();
        }
        builder.finish(model.local.clone(), Arc::new(words))
    }
}

#[cfg(test)]
mod tests;
