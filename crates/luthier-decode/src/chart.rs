//! Hierarchical search (Chiang 2007): bottom-up cube pruning over the parse forest of the source sentence ([`Parse`]).
//!
//! A chart item is a node of the parse forest with the language model states at both ends of its translation; items
//! with equal states are recombined. For each node, a priority queue holds combinations of a rule and items for its
//! gaps, ordered by an estimate that scores the words of the rule without context; the exact score is computed when a
//! combination is popped. The pop limit bounds the number of combinations per node, and the stack size the number of
//! items that are available to larger spans. This costs O(nodes · pop limit) language model evaluations of rules.

use crate::{
    limits::Limits,
    model::Model,
    parse::{self, Parse, Special},
    phrase::LN10,
    recombination::{NO_HYPOTHESIS, Recombination},
    rules::{Kind, Rule, RuleBook, features},
    search::{CELLS, Stats},
    sparse::Text,
};
use luthier_core::{Progress, Result};
use luthier_forest::{Builder, Forest, NONE, TAILS};
use luthier_lm::{END, Fragment};
use rustc_hash::FxHashMap;
use std::{
    cmp::Ordering,
    collections::BinaryHeap,
    hash::{Hash, Hasher},
    ops::Range,
    sync::Arc,
    time::Instant,
};

/// A chart item: a node of the parse forest with language model states at both ends.
pub(crate) struct Item {
    /// Score of the best derivation.
    score: f64,
    /// Incoming edge of the best derivation.
    pub(crate) best: u32,
}

/// An edge of the chart: a rule applied to the items of its gaps.
pub(crate) struct Edge {
    head: u32,
    pub(crate) tails: [u32; 2],
    pub(crate) rule: Place,
}

/// Position of a rule: index of its group in the chart, and its rank in the group.
pub(crate) type Place = (u32, u32);

/// All combinations of the rules with one source side and the items of their gaps.
struct Grid {
    /// Index of the group of rules.
    group: u32,
    /// Number of rules in the group.
    rules: u32,
    /// Items of each gap, best first: ranges of `order`.
    tails: [Range<u32>; 2],
}

/// A combination in the priority queue: ranks of the rule and of the items of its gaps.
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

/// Result of the hierarchical search of a sentence: a chart of items over source spans.
///
/// ```
/// use luthier_core::{Progress, Weights};
/// use luthier_decode::{Decoder, Found, Limits, Model};
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("rules");
/// // Rules in Moses' format; the second swaps its gap and the verb.
/// let rules = "das haus [X] ||| the house [X] ||| 0.5 |||\n[X][X] sehen [X] ||| see [X][X] [X] ||| 0.5 ||| 0-1 1-0\n";
/// # std::fs::write(&path, rules).unwrap();
/// let model = Model::new(luthier_table::read_text(&path, None, Progress::NONE).unwrap(), Vec::new(), false).unwrap();
/// let weights = Weights::parse("w", "TranslationModel0 1\nGlue0 -1\n").unwrap();
/// let decoder = Decoder::new(&model, &weights, Limits::default());
/// let Found::Chart(chart) = decoder.search("das haus sehen", Progress::NONE).unwrap() else { panic!() };
/// assert_eq!(chart.best().unwrap().0, "see the house");
/// ```
pub struct Chart<'d> {
    pub(crate) model: &'d Model,
    /// Weights of dense features, in the order of the layout.
    pub(crate) weights: &'d [f64],
    pub(crate) source: Vec<String>,
    /// Groups of rules with the same source side.
    pub(crate) groups: Vec<Arc<[Rule]>>,
    pub(crate) items: Vec<Item>,
    /// First item and source span of each node of the parse forest.
    nodes: Vec<(u32, Range<usize>)>,
    /// Language model states of each item, one per language model.
    ends: Vec<Fragment>,
    pub(crate) edges: Vec<Edge>,
    /// Language model scores that each edge adds, as natural logarithms, one per language model.
    edge_lm: Vec<f32>,
    /// The item of the complete sentence.
    pub(crate) goal: Option<u32>,
    /// Statistics of the search: numbers of words, expansions, chart items and recombinations, and times.
    pub stats: Stats,
}

/// State of a search.
struct Search<'d, 'p> {
    chart: Chart<'d>,
    book: &'d RuleBook<'d>,
    progress: Progress<'p>,
    limits: Limits,
    /// Index of each group, by its first rule.
    by_first: FxHashMap<u32, u32>,
    /// Items of each node, best first: a range of `order`.
    nodes: Vec<Range<u32>>,
    /// Items sorted by node, best first.
    order: Vec<u32>,
    table: Recombination,
}

/// Searches for translations of a sentence. Fails if the progress callback answers *stop*.
pub(crate) fn search<'d>(
    model: &'d Model,
    book: &'d RuleBook<'d>,
    words: &[&str],
    limits: Limits,
    progress: Progress<'_>,
) -> Result<Chart<'d>> {
    let clock = Instant::now();
    let parse = Parse::new(&model.table, words, limits.span(), progress)?;
    let seconds = clock.elapsed().as_secs_f64();
    let mut chart = over(model, book, words, &parse, limits, progress)?;
    chart.stats.parse_seconds = seconds;
    Ok(chart)
}

/// Searches for translations of a sentence in its parse forest. Fails if the progress callback answers *stop*.
pub(crate) fn over<'d>(
    model: &'d Model,
    book: &'d RuleBook<'d>,
    words: &[&str],
    parse: &Parse<'_>,
    limits: Limits,
    progress: Progress<'_>,
) -> Result<Chart<'d>> {
    let chart = Chart {
        model,
        weights: book.weights(),
        source: words.iter().map(ToString::to_string).collect(),
        groups: Vec::new(),
        items: Vec::new(),
        nodes: Vec::with_capacity(parse.nodes()),
        ends: Vec::new(),
        edges: Vec::new(),
        edge_lm: Vec::new(),
        goal: None,
        stats: Stats { words: words.len() as u64, ..Stats::default() },
    };
    let mut search = Search {
        chart,
        book,
        progress,
        limits,
        by_first: FxHashMap::default(),
        nodes: Vec::with_capacity(parse.nodes()),
        order: Vec::new(),
        table: Recombination::default(),
    };
    search.run(parse, words)?;
    Ok(search.chart)
}

impl Search<'_, '_> {
    /// Searches all nodes of the parse forest in order.
    fn run(&mut self, parse: &Parse<'_>, words: &[&str]) -> Result<()> {
        let glue = self.own(&TAILS, Kind::Glue);
        for node in 0..parse.nodes() {
            self.progress.count("spans", node, parse.nodes())?;
            let edges = parse.incoming(node);
            let first = self.chart.items.len() as u32;
            self.chart.nodes.push((first, parse.spans.get(node).cloned().unwrap_or_default()));
            // The beginning and the end of the sentence have nodes of their own.
            match edges.first().and_then(|&e| Special::of(e)) {
                Some(Special::Begin) => {
                    let group = self.own(&[], Kind::Edge);
                    self.begin((group, 0));
                }
                Some(Special::Close) => {
                    let group = self.own(&TAILS[..1], Kind::Edge);
                    self.close((group, 0), edges[0][2]);
                }
                _ => {
                    let grids = self.grids(edges, words, glue);
                    let items = self.take(&grids, (node, parse.nodes()))?;
                    self.nodes.push(items);
                }
            }
        }
        Ok(())
    }

    /// Adds the group of a rule that is not in the table.
    fn own(&mut self, target: &[u32], kind: Kind) -> u32 {
        let scores = vec![0.0; self.book.model.table.shape().scores];
        let rule = self.book.rule(target, &scores, Some(kind), None);
        self.group([rule].into())
    }

    /// Grids of the incoming edges of a node of the parse forest.
    fn grids(&mut self, edges: &[parse::Edge], words: &[&str], glue: u32) -> Vec<Grid> {
        let clock = Instant::now();
        let mut grids = Vec::with_capacity(edges.len());
        for &edge in edges {
            let group = match Special::of(edge) {
                None => self.found(edge[0], edge[1]),
                Some(Special::Passed(at)) => {
                    let rule = self.passed(words, at as usize);
                    self.group([rule].into())
                }
                Some(_) => glue,
            };
            let tails = [edge[2], edge[3]].map(|t| match t {
                NONE => 0..0,
                t => self.nodes[t as usize].clone(),
            });
            let rules = self.chart.groups[group as usize].len() as u32;
            grids.push(Grid { group, rules, tails });
        }
        self.chart.stats.rule_seconds += clock.elapsed().as_secs_f64();
        grids
    }

    /// Adds a group of rules; returns its index.
    fn group(&mut self, rules: Arc<[Rule]>) -> u32 {
        self.chart.groups.push(rules);
        self.chart.groups.len() as u32 - 1
    }

    /// Index of the group of the `count` rules that begin with `first`.
    fn found(&mut self, first: u32, count: u32) -> u32 {
        if let Some(&group) = self.by_first.get(&first) {
            return group;
        }
        let group = self.group(self.book.of(first, count));
        self.by_first.insert(first, group);
        group
    }

    /// Rule for an unknown word, which is copied or dropped.
    fn passed(&mut self, words: &[&str], at: usize) -> Rule {
        let table = &self.book.model.table;
        let word = words[at];
        let first = words.iter().position(|w| *w == word).unwrap_or(at);
        let id = table.target_word(word).unwrap_or((table.words()[1] + first) as u32);
        let target = if self.limits.drop_unknown { &[][..] } else { &[id] };
        let scores = vec![0.0; table.shape().scores];
        self.chart.stats.unknown += 1;
        self.book.rule(target, &scores, Some(Kind::Passed), Some(word))
    }

    /// Adds the item of the beginning of the sentence, with the language models after `<s>`.
    fn begin(&mut self, rule: Place) {
        let fixed = self.rule(rule).fixed;
        let chart = &mut self.chart;
        let item = chart.items.len() as u32;
        chart.items.push(Item { score: fixed, best: chart.edges.len() as u32 });
        for lm in &self.book.model.lms {
            chart.ends.push(Fragment::begin(lm));
            chart.edge_lm.push(0.0);
        }
        chart.edges.push(Edge { head: item, tails: [NONE; 2], rule });
        let at = self.order.len() as u32;
        self.order.push(item);
        self.nodes.push(at..at + 1);
    }

    fn rule(&self, (group, rank): Place) -> &Rule {
        &self.chart.groups[group as usize][rank as usize]
    }

    /// Adds the goal item: every item of node `last`, which covers the sentence, followed by the end of the sentence.
    fn close(&mut self, rule: Place, last: u32) {
        let (weights, layout) = (self.book.weights(), &self.book.model.layout);
        let fixed = self.rule(rule).fixed;
        let range = self.nodes[last as usize].clone();
        let last: Vec<u32> = self.order[range.start as usize..range.end as usize].to_vec();
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

    /// Cube pruning for one node: pops the best combinations, and returns the node's items. `at` is the index of the
    /// node and the number of nodes, for progress.
    fn take(&mut self, grids: &[Grid], at: (usize, usize)) -> Result<Range<u32>> {
        self.table.clear();
        let first = self.chart.items.len() as u32;
        let first_edge = self.chart.edges.len();
        let mut queue: BinaryHeap<Next> = BinaryHeap::with_capacity(2 * grids.len());
        for g in 0..grids.len() as u32 {
            let ranks = [0; 3];
            queue.push(Next { priority: self.priority(&grids[g as usize], ranks), grid: g, ranks });
        }
        let most = self.limits.pops().map_or(u64::MAX, |n| n as u64);
        let mut popped = 0;
        while popped < most {
            let Some(Next { grid: g, ranks, .. }) = queue.pop() else { break };
            popped += 1;
            if popped.is_multiple_of(CELLS) {
                self.progress.count("spans", at.0, at.1)?;
            }
            let grid = &grids[g as usize];
            self.make(grid, ranks, first);
            self.push_next(&mut queue, g, grid, ranks);
        }
        let made = self.chart.items.len() as u64 - u64::from(first);
        let stats = &mut self.chart.stats;
        stats.popped += popped;
        stats.kept += made;
        stats.recombined += (self.chart.edges.len() - first_edge) as u64 - made;
        Ok(self.ranked(first))
    }

    /// Queues the successors of a combination. Each combination has one predecessor, in which its last non-zero rank
    /// is smaller by 1, so that none is queued twice.
    #[inline]
    fn push_next(&self, queue: &mut BinaryHeap<Next>, g: u32, grid: &Grid, ranks: [u32; 3]) {
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

    /// Sorts the items from `first` on, and keeps the best for larger spans, up to the stack size.
    fn ranked(&mut self, first: u32) -> Range<u32> {
        let items = &self.chart.items;
        let mut new: Vec<u32> = (first..items.len() as u32).collect();
        new.sort_by(|&a, &b| items[b as usize].score.total_cmp(&items[a as usize].score).then(a.cmp(&b)));
        new.truncate(self.limits.stack_size as usize);
        let start = self.order.len() as u32;
        self.order.extend(new);
        start..self.order.len() as u32
    }

    /// Item of gap `k` with this rank; `None` if the rule has no such gap.
    fn tail(&self, grid: &Grid, k: usize, rank: u32) -> Option<u32> {
        let range = &grid.tails[k];
        (!range.is_empty()).then(|| self.order[(range.start + rank) as usize])
    }

    /// Estimated score of a combination.
    fn priority(&self, grid: &Grid, ranks: [u32; 3]) -> f64 {
        let mut total = self.rule((grid.group, ranks[0])).estimate;
        for k in 0..2 {
            total += self.tail(grid, k, ranks[k + 1]).map_or(0.0, |t| self.chart.items[t as usize].score);
        }
        total
    }

    /// Computes the exact score of a combination, and adds its item or recombines it; the items of the node begin with
    /// `first`.
    fn make(&mut self, grid: &Grid, ranks: [u32; 3], first: u32) {
        let place = (grid.group, ranks[0]);
        let tails: [u32; 2] = std::array::from_fn(|k| self.tail(grid, k, ranks[k + 1]).unwrap_or(NONE));
        let score = self.score(place, tails);
        let (chart, lms) = (&mut self.chart, self.book.model.lms.len());
        let (new, edge) = (chart.items.len(), chart.edges.len() as u32);
        let ends = &chart.ends;
        let of = |id: usize| &ends[id * lms..(id + 1) * lms];
        self.table.reserve(|id| hash(of(id as usize)));
        let mine = of(new);
        let slot = self.table.find(hash(mine), |id| id >= first && of(id as usize) == mine);
        let mut head = self.table.slots[slot];
        if head == NO_HYPOTHESIS {
            head = new as u32;
            self.table.slots[slot] = head;
            self.table.used.push(slot as u32);
            chart.items.push(Item { score, best: edge });
        } else {
            chart.ends.truncate(new * lms);
            let old = &mut chart.items[head as usize];
            if score > old.score {
                *old = Item { score, best: edge };
            }
        }
        chart.edges.push(Edge { head, tails, rule: place });
    }

    /// Score of a rule applied to items. Appends the language model scores and the new states to those of the chart.
    #[inline]
    fn score(&mut self, place: Place, tails: [u32; 2]) -> f64 {
        let model = self.book.model;
        let (weights, lms) = (self.book.weights(), model.lms.len());
        let chart = &mut self.chart;
        let rule = &chart.groups[place.0 as usize][place.1 as usize];
        let mut score = rule.fixed;
        for &t in tails.iter().filter(|t| **t != NONE) {
            score += chart.items[t as usize].score;
        }
        for (k, lm) in model.lms.iter().enumerate() {
            // A rule that begins with a gap continues the fragment of that gap.
            let mut fragment = Fragment::default();
            let mut added = 0.0;
            for (at, &symbol) in rule.lm(k).iter().enumerate() {
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
        score
    }
}

/// Hash of language model states.
fn hash(ends: &[Fragment]) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    ends.hash(&mut hasher);
    let x = hasher.finish();
    x ^ (x >> 32)
}

impl Chart<'_> {
    /// Source span of an item; empty at the beginning of the sentence.
    pub(crate) fn span(&self, item: u32) -> Range<usize> {
        let node = self.nodes.partition_point(|n| n.0 <= item) - 1;
        self.nodes[node].1.clone()
    }

    pub(crate) fn rule(&self, (group, rank): Place) -> &Rule {
        &self.groups[group as usize][rank as usize]
    }

    /// Returns the best translation and its model score; `None` if there is no complete translation.
    pub fn best(&self) -> Option<(String, f64)> {
        let goal = self.goal?;
        let text = Text { table: &self.model.table, source: &self.source };
        let mut words = Vec::new();
        // Stack of symbols still to be expanded: words (`Ok`) and items (`Err`).
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

    /// Returns the forest of all complete translations; empty if there is none.
    pub fn forest(&self) -> Forest<'static> {
        let Some(goal) = self.goal else { return Forest::default() };
        let mut into: Vec<Vec<u32>> = vec![Vec::new(); self.items.len()];
        for (e, edge) in self.edges.iter().enumerate() {
            into[edge.head as usize].push(e as u32);
        }
        let wanted = self.wanted(goal, &into);
        let (model, lms) = (self.model, self.model.lms.len());
        let mut packing = Packing::default();
        let mut node = vec![NONE; self.items.len()];
        let mut own = Vec::new();
        for item in (0..self.items.len()).filter(|&i| wanted[i]) {
            for &e in &into[item] {
                let edge = &self.edges[e as usize];
                let rule = packing.rule(self, edge.rule);
                own.clear();
                for k in (0..lms).filter(|k| model.uses(model.layout.lm + k)) {
                    own.push((model.place[model.layout.lm + k], self.edge_lm[e as usize * lms + k]));
                }
                let tails = edge.tails.map(|t| if t == NONE { NONE } else { node[t as usize] });
                packing.builder.edge(tails, rule, &own);
            }
            node[item] = packing.builder.node();
        }
        packing.builder.finish(model.local.clone(), Arc::new(packing.words))
    }

    /// Whether each item is part of a complete translation.
    fn wanted(&self, goal: u32, into: &[Vec<u32>]) -> Vec<bool> {
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
        wanted
    }
}

/// A forest under construction.
#[derive(Default)]
struct Packing {
    builder: Builder,
    /// Index of each rule in the forest.
    rules: FxHashMap<Place, u32>,
    /// Target words of the forest.
    words: Vec<String>,
    /// Local number of each target word.
    word_ids: FxHashMap<u32, u32>,
}

impl Packing {
    /// Index of a rule in the forest, to which it is added if it is new.
    fn rule(&mut self, chart: &Chart<'_>, place: Place) -> u32 {
        if let Some(&rule) = self.rules.get(&place) {
            return rule;
        }
        let (model, rule) = (chart.model, chart.rule(place));
        let text = Text { table: &model.table, source: &chart.source };
        let mut all = Vec::new();
        let mut put = |feature: usize, value| all.push((model.place[feature], value));
        features(model, &rule.target, &rule.scores, rule.kind, &|k| rule.unknown(k), &mut put);
        let number = |&s: &u32| {
            if TAILS.contains(&s) {
                return s;
            }
            *self.word_ids.entry(s).or_insert_with(|| {
                self.words.push(text.target(s).to_owned());
                self.words.len() as u32 - 1
            })
        };
        let target: Vec<u32> = rule.target.iter().map(number).collect();
        let rule = self.builder.rule(target, &all);
        self.rules.insert(place, rule);
        rule
    }
}

#[cfg(test)]
pub(crate) mod tests;
