//! Exact line search over forests (Kumar et al. 2009): the upper envelope is that of all derivations of a segment.
//!
//! The first search of a segment computes the envelope bottom-up, by the semiring ⊕ = envelope of the union,
//! ⊗ = Minkowski sum. Later searches start from the derivations that were once best and query the forests only
//! at the boundaries of their envelope; derivations found above it are added until there are none.

use crate::{
    ForestPool, SegmentForests,
    line::{Stats, Sweep},
    mert::{Smoothing, Surface},
};
use luthier_core::{Fingerprint, Local, Weights};
use luthier_forest::{Forest, Hull, LANES, Lanes, NONE, best_at, derivation_at};
use luthier_metric::{Metric, Scratch, add};
use luthier_optim::{Direction, Envelope, Peak, Piece, Walker, dot};
use rustc_hash::FxHashMap;

/// Exact line search over forests (Kumar et al. 2009): a [`Walker`] whose coordinates are the learned dense
/// features.
///
/// Along w + γd every derivation of a segment is a line. The first search computes the upper envelope of all
/// derivations bottom-up, by the semiring ⊕ = envelope of the union, ⊗ = Minkowski sum; later searches keep the
/// derivations that were once best and query the forests only where another one could lie above them. The
/// result equals a line search over lists of all derivations.
pub struct ForestWalker<'a> {
    pool: &'a ForestPool,
    metric: &'a Metric,
    point: Vec<f64>,
    score: f64,
    /// By segment and forest: coordinate of each feature of the forest, or [`NONE`] if it is not tuned.
    coordinates: Vec<Vec<Vec<u32>>>,
    /// By segment and forest: weight of each feature, used for those that are not tuned.
    others: Vec<Vec<Vec<f64>>>,
    /// By segment and forest: b = w·h of each edge.
    b: Vec<Vec<Vec<f64>>>,
    judge: Classes<'a>,
    /// Known derivations of each segment.
    known: Vec<Known>,
    /// Computes the envelope of a forest.
    hull: Hull,
    /// Computes the envelope of known derivations.
    union: Envelope,
    sweep: Sweep,
    smoothing: Smoothing,
}

/// Tolerance for rounding in comparisons of scores, relative to the largest summand.
const SLACK: f64 = 1e-9;

/// Buffers of a search.
#[derive(Default)]
struct Buffers {
    /// Weights by local feature number.
    local: Vec<f64>,
    /// Scores of rules.
    rules: Vec<f64>,
    /// Slopes of the edges of each forest.
    slopes: Vec<Vec<f64>>,
    /// Best scores of the nodes.
    nodes: Vec<[f64; LANES]>,
    /// Slopes of known derivations.
    m: Vec<f64>,
    /// Intercepts of known derivations.
    b: Vec<f64>,
    /// Largest absolute summand of the intercepts, and of the slopes.
    size: (f64, f64),
    /// Envelope of known derivations.
    pieces: Vec<Piece>,
    /// Queries: factors of intercept and slope, height of the envelope there, tolerance.
    points: Vec<(f64, f64, f64, f64)>,
}

/// Derivations of a segment that have been best at some point of a search.
#[derive(Default)]
struct Known {
    /// Values of the tuned features of each derivation, then the score of its other features.
    rows: Vec<f64>,
    /// Class of each derivation: its row in the statistics.
    class: Vec<u32>,
}

impl Known {
    /// Adds a derivation unless its row is known.
    fn push(&mut self, row: &[f64], class: u32) {
        if self.rows.chunks_exact(row.len()).any(|r| r == row) {
            return;
        }
        self.rows.extend_from_slice(row);
        self.class.push(class);
    }

    /// Writes slopes and intercepts of all lines through `point` along `d` to the buffers, with their largest
    /// absolute summands.
    fn project(&self, point: &[f64], d: &[f64], buffers: &mut Buffers) {
        buffers.m.clear();
        buffers.b.clear();
        buffers.size = (0.0, 0.0);
        let size = |row: &[f64], w: &[f64]| row.iter().zip(w).map(|(x, w)| (x * w).abs()).fold(0.0, f64::max);
        for row in self.rows.chunks_exact(point.len() + 1) {
            let (row, offset) = row.split_at(point.len());
            buffers.m.push(dot(row, d));
            buffers.b.push(dot(row, point) + offset[0]);
            buffers.size.0 = size(row, point).max(offset[0].abs()).max(buffers.size.0);
            buffers.size.1 = size(row, d).max(buffers.size.1);
        }
    }
}

/// Statistics of translations, computed once per translation.
struct Classes<'a> {
    metric: &'a Metric,
    /// Classes by fingerprint of segment, forest and words.
    by_words: FxHashMap<u128, u32>,
    /// Classes by fingerprint of segment and statistics.
    by_stats: FxHashMap<u128, u32>,
    /// Statistics of each class.
    stats: Vec<f32>,
    scratch: Scratch,
    /// Buffer: statistics of a translation.
    out: Vec<f32>,
    /// Words of the current derivation.
    words: Vec<u32>,
    /// Buffer: words of another derivation.
    out_words: Vec<u32>,
    /// Edges of the current derivation.
    edges: Vec<u32>,
    /// Buffer: summed features of a derivation.
    sums: Vec<f64>,
}

impl Classes<'_> {
    /// Returns the class of the translation whose words are in `self.words`, from forest `f` of segment `s`.
    fn of(&mut self, segment: &SegmentForests, (s, f): (usize, usize), forest: &Forest<'_>) -> u32 {
        let place = Fingerprint::default().word(s as u64);
        let words = self.words.iter().fold(place.word(f as u64), |p, &w| p.word(w.into())).finish();
        if let Some(&class) = self.by_words.get(&words) {
            return class;
        }
        segment.judge(self.metric, &forest.text(&self.words), &mut self.scratch, &mut self.out);
        let print = self.out.iter().fold(place, |p, x| p.word(u64::from(x.to_bits()))).finish();
        let next = self.by_stats.len() as u32;
        let class = *self.by_stats.entry(print).or_insert_with(|| {
            self.stats.extend_from_slice(&self.out);
            next
        });
        self.by_words.insert(words, class);
        class
    }
}

impl<'a> ForestWalker<'a> {
    /// Puts a walker at `point`, the weights of the learned features in the order of [`ForestPool::columns`];
    /// `weights` holds those of all other features.
    pub fn new(pool: &'a ForestPool, metric: &'a Metric, weights: &Weights, point: &[f64]) -> Self {
        let coordinates = |local: &Local| -> Vec<u32> {
            let place = |key| pool.columns.position(key).map_or(NONE, |p| p as u32);
            local.keys().iter().map(|&k| place(k)).collect()
        };
        let each = |f: &dyn Fn(&Forest<'static>) -> Vec<u32>| -> Vec<Vec<Vec<u32>>> {
            pool.segments.iter().map(|s| s.forests.iter().map(|forest| f(forest)).collect()).collect()
        };
        let others = pool.segments.iter().map(|s| {
            let weights = |forest: &std::sync::Arc<Forest<'static>>| pool.local(forest, weights);
            s.forests.iter().map(weights).collect()
        });
        let mut walker = ForestWalker {
            pool,
            metric,
            point: Vec::new(),
            score: 0.0,
            coordinates: each(&|forest| coordinates(&forest.local)),
            others: others.collect(),
            b: pool.segments.iter().map(|s| vec![Vec::new(); s.forests.len()]).collect(),
            judge: Classes {
                metric,
                by_words: FxHashMap::default(),
                by_stats: FxHashMap::default(),
                stats: Vec::new(),
                scratch: Scratch::default(),
                out: vec![0.0; metric.width()],
                words: Vec::new(),
                out_words: Vec::new(),
                edges: Vec::new(),
                sums: Vec::new(),
            },
            known: pool.segments.iter().map(|_| Known::default()).collect(),
            hull: Hull::default(),
            union: Envelope::default(),
            sweep: Sweep::default(),
            smoothing: Smoothing::NONE,
        };
        walker.place(point);
        walker
    }

    /// Makes [`Walker::peak`] judge plateaus by smoothed scores.
    #[must_use]
    pub fn smoothed(mut self, smoothing: Smoothing) -> Self {
        self.smoothing = smoothing;
        self
    }

    /// Returns the corpus score along the line through the walker's point in a direction.
    pub fn surface(&mut self, direction: Direction<'_>) -> &Surface {
        self.collect(direction);
        self.sweep.surface(self.metric, Stats::Table(&self.judge.stats), Metric::score)
    }

    /// Writes the scores of a forest's edges to `out`, with weights `w` of the tuned features; the other
    /// features have their own weights with `others`, else 0.
    fn scores(
        &self,
        (s, f): (usize, usize),
        w: &[f64],
        others: bool,
        buffers: &mut Buffers,
        out: &mut Vec<f64>,
    ) {
        let places = self.coordinates[s][f].iter().zip(&self.others[s][f]);
        buffers.local.clear();
        buffers.local.extend(places.map(|(&c, &other)| match c {
            NONE if others => other,
            NONE => 0.0,
            c => w[c as usize],
        }));
        self.pool.segments[s].forests[f].scores_into(&buffers.local, &mut buffers.rules, out);
    }

    /// Collects the changes of all segments' best derivations along the line, and the corpus statistics at γ = −∞.
    fn collect(&mut self, direction: Direction<'_>) {
        let axis;
        let d = match direction {
            Direction::Vector(d) => d,
            Direction::Axis(c) => {
                let mut one = vec![0.0; self.point.len()];
                one[c] = 1.0;
                axis = one;
                &axis
            }
        };
        self.sweep.begin(self.metric.width());
        let mut buffers = Buffers::default();
        for s in 0..self.pool.segments.len() {
            self.envelope(s, d, &mut buffers);
            let known = &self.known[s];
            let mut before = None;
            for piece in &buffers.pieces {
                let class = known.class[piece.line as usize];
                match before {
                    None => self.sweep.start(&self.judge.stats, class),
                    Some(before) if before != class => self.sweep.change(piece.from, before, class),
                    Some(_) => {}
                }
                before = Some(class);
            }
        }
    }

    /// Computes the envelope of all derivations of segment `s` along `d`, as lines of known derivations in
    /// `buffers.pieces`.
    ///
    /// The first search computes it bottom-up. Later searches start from the known derivations: their envelope
    /// is convex, and so is that of each forest; if no forest lies above it at its boundaries, at 0 and at both
    /// ends, none lies above it anywhere. Derivations that do lie above it are added, and the envelope is
    /// computed again.
    fn envelope(&mut self, s: usize, d: &[f64], buffers: &mut Buffers) {
        let pool = self.pool;
        let forests = &pool.segments[s].forests;
        buffers.slopes.resize_with(buffers.slopes.len().max(forests.len()), Vec::new);
        for f in 0..forests.len() {
            let mut slopes = std::mem::take(&mut buffers.slopes[f]);
            self.scores((s, f), d, false, buffers, &mut slopes);
            buffers.slopes[f] = slopes;
        }
        if self.known[s].class.is_empty() {
            for (f, forest) in forests.iter().enumerate() {
                let n = self.hull.find(forest, &buffers.slopes[f], &self.b[s][f]).len();
                for at in 0..n {
                    self.hull.derivation(forest, at, &mut self.judge.words, &mut self.judge.edges);
                    self.add_known(s, f);
                }
            }
        }
        loop {
            self.known[s].project(&self.point, d, buffers);
            buffers.pieces.clear();
            buffers.pieces.extend_from_slice(self.union.find(&buffers.m, &buffers.b, &[]));
            let Some(last) = buffers.pieces.last() else { return };
            let (first, last) = (buffers.pieces[0].line as usize, last.line as usize);
            // Queries: factors of intercept and slope, height of the envelope there, tolerance for rounding.
            buffers.points.clear();
            let height = |line: u32, x: f64| {
                let (m, b) = (buffers.m[line as usize], buffers.b[line as usize]);
                (1.0, x, b + x * m, SLACK * (buffers.size.0 + x.abs() * buffers.size.1))
            };
            let at_zero = buffers.pieces.partition_point(|p| p.from <= 0.0) - 1;
            buffers.points.push(height(buffers.pieces[at_zero].line, 0.0));
            buffers.points.push((0.0, 1.0, buffers.m[last], SLACK * buffers.size.1));
            buffers.points.push((0.0, -1.0, -buffers.m[first], SLACK * buffers.size.1));
            buffers.points.extend(buffers.pieces[1..].iter().map(|p| height(p.line, p.from)));
            if !self.query(s, buffers) {
                return;
            }
        }
    }

    /// Queries the forests of segment `s` at `buffers.points` and adds derivations that lie above the envelope.
    /// Returns whether any is new.
    fn query(&mut self, s: usize, buffers: &mut Buffers) -> bool {
        let pool = self.pool;
        let before = self.known[s].class.len();
        for chunk in buffers.points.chunks(LANES) {
            // Unused lanes repeat the first query.
            let mut lanes = Lanes { here: [chunk[0].0; LANES], along: [chunk[0].1; LANES] };
            for (l, point) in chunk.iter().enumerate() {
                (lanes.here[l], lanes.along[l]) = (point.0, point.1);
            }
            for (f, forest) in pool.segments[s].forests.iter().enumerate() {
                let (m, b) = (&buffers.slopes[f], &self.b[s][f]);
                let best = best_at(forest, m, b, &lanes, &mut buffers.nodes);
                for (l, (&(_, _, height, slack), found)) in chunk.iter().zip(best).enumerate() {
                    if found > height + slack {
                        let judge = &mut self.judge;
                        let lines = (&buffers.slopes[f][..], &self.b[s][f][..]);
                        let out = (&mut judge.words, &mut judge.edges);
                        derivation_at(forest, lines, &lanes, (&buffers.nodes, l), out);
                        self.add_known(s, f);
                    }
                }
            }
        }
        self.known[s].class.len() > before
    }

    /// Adds the derivation in `judge`, from forest `f` of segment `s`, to the known ones if it is new.
    fn add_known(&mut self, s: usize, f: usize) {
        let forest = &self.pool.segments[s].forests[f];
        let mut row = vec![0.0; self.point.len() + 1];
        forest.sum_features(&self.judge.edges, &mut self.judge.sums);
        let each = self.coordinates[s][f].iter().zip(&self.others[s][f]).zip(&self.judge.sums);
        for ((&c, other), x) in each {
            match c {
                NONE => row[self.point.len()] += other * x,
                c => row[c as usize] += x,
            }
        }
        let class = self.judge.of(&self.pool.segments[s], (s, f), forest);
        self.known[s].push(&row, class);
    }

    /// Computes the corpus score of the best derivations at the walker's point.
    fn true_score(&mut self) -> f64 {
        let width = self.metric.width();
        let mut totals = vec![0.0; width];
        let pool = self.pool;
        for (s, segment) in pool.segments.iter().enumerate() {
            let mut best: Option<(f64, usize)> = None;
            for (f, forest) in segment.forests.iter().enumerate() {
                let found = forest.best_words(&self.b[s][f], &mut self.judge.out_words);
                if let Some(score) = found.filter(|x| best.is_none_or(|b| *x > b.0)) {
                    best = Some((score, f));
                    std::mem::swap(&mut self.judge.words, &mut self.judge.out_words);
                }
            }
            if let Some((_, f)) = best {
                let class = self.judge.of(segment, (s, f), &segment.forests[f]);
                let stats = &self.judge.stats[class as usize * width..];
                add(&mut totals, stats);
            }
        }
        self.metric.score(&totals)
    }
}

impl Walker for ForestWalker<'_> {
    fn point(&self) -> &[f64] {
        &self.point
    }

    fn score(&self) -> f64 {
        self.score
    }

    fn peak(&mut self, direction: Direction<'_>, within: (f64, f64)) -> Peak {
        self.collect(direction);
        self.sweep.peak(self.metric, Stats::Table(&self.judge.stats), self.score, self.smoothing, within)
    }

    fn step(&mut self, direction: Direction<'_>, t: f64) {
        let mut point = self.point.clone();
        match direction {
            Direction::Axis(axis) => point[axis] += t,
            Direction::Vector(d) => point.iter_mut().zip(d).for_each(|(p, d)| *p += t * d),
        }
        self.place(&point);
    }

    fn place(&mut self, point: &[f64]) {
        self.point.clear();
        self.point.extend_from_slice(point);
        let (mut all, mut buffers) = (std::mem::take(&mut self.b), Buffers::default());
        for (s, segment) in all.iter_mut().enumerate() {
            for (f, b) in segment.iter_mut().enumerate() {
                self.scores((s, f), point, true, &mut buffers, b);
            }
        }
        self.b = all;
        self.score = self.true_score();
    }
}
