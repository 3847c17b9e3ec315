//! Exact line search over forests (Kumar et al. 2009): the upper envelope of all derivations instead of a
//! list's.

use crate::{
    ForestPool, SegmentForests,
    line::Sweep,
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
/// Along w + γd every derivation of a segment is a line. The upper envelope of all derivations is computed
/// once from the leaves up by the semiring ⊕ = envelope of the union, ⊗ = Minkowski sum; later searches keep
/// the derivations that were best somewhere and look into the forests only where one may lie above them. The
/// result equals a line search over lists of all derivations.
pub struct ForestWalker<'a> {
    pool: &'a ForestPool,
    metric: &'a Metric,
    point: Vec<f64>,
    score: f64,
    /// By segment and forest: which coordinate each feature of the forest is, or [`NONE`].
    coordinates: Vec<Vec<Vec<u32>>>,
    /// Weights of features that are none, by local number.
    others: Vec<Vec<Vec<f64>>>,
    /// b = w·h of all edges.
    b: Vec<Vec<Vec<f64>>>,
    judge: Classes<'a>,
    /// By segment.
    known: Vec<Known>,
    hull: Hull,
    union: Envelope,
    sweep: Sweep,
    smoothing: Smoothing,
}

/// How far above a height counts as rounding, relative to what was added up.
const SLACK: f64 = 1e-9;

/// Memory of a search.
#[derive(Default)]
struct Room {
    local: Vec<f64>,
    rules: Vec<f64>,
    /// Slopes of the edges of each forest.
    slopes: Vec<Vec<f64>>,
    nodes: Vec<[f64; LANES]>,
    /// Lines of known derivations, their envelope, and points to look at.
    m: Vec<f64>,
    b: Vec<f64>,
    /// Size of what offsets and slopes are sums of.
    size: (f64, f64),
    pieces: Vec<Piece>,
    points: Vec<(f64, f64, f64, f64)>,
}

/// Derivations of a segment that were the best somewhere.
#[derive(Default)]
struct Known {
    /// Coordinates of each, then what its other features are worth.
    rows: Vec<f64>,
    class: Vec<u32>,
}

impl Known {
    fn push(&mut self, row: &[f64], class: u32) {
        if self.rows.chunks_exact(row.len()).any(|r| r == row) {
            return;
        }
        self.rows.extend_from_slice(row);
        self.class.push(class);
    }

    /// Slopes and offsets of all lines, and how large the numbers are that they are sums of.
    fn project(&self, point: &[f64], d: &[f64], room: &mut Room) {
        room.m.clear();
        room.b.clear();
        room.size = (0.0, 0.0);
        let size = |row: &[f64], w: &[f64]| row.iter().zip(w).map(|(x, w)| (x * w).abs()).fold(0.0, f64::max);
        for row in self.rows.chunks_exact(point.len() + 1) {
            let (row, offset) = row.split_at(point.len());
            room.m.push(dot(row, d));
            room.b.push(dot(row, point) + offset[0]);
            room.size.0 = size(row, point).max(offset[0].abs()).max(room.size.0);
            room.size.1 = size(row, d).max(room.size.1);
        }
    }
}

/// Statistics of translations that were met.
struct Classes<'a> {
    metric: &'a Metric,
    /// Classes by segment, forest and words; and by segment and statistics.
    by_words: FxHashMap<u128, u32>,
    by_stats: FxHashMap<u128, u32>,
    stats: Vec<f32>,
    scratch: Scratch,
    out: Vec<f32>,
    words: Vec<u32>,
    out_words: Vec<u32>,
    edges: Vec<u32>,
    sums: Vec<f64>,
}

impl Classes<'_> {
    /// The class of a translation whose words are in `self.words`.
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
    /// `weights` has those of all other features.
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

    /// Makes [`Walker::peak`] score plateaus by smoothed values.
    #[must_use]
    pub fn smoothed(mut self, smoothing: Smoothing) -> Self {
        self.smoothing = smoothing;
        self
    }

    /// Returns the corpus score along the line through the walker's point in a direction.
    pub fn surface(&mut self, direction: Direction<'_>) -> &Surface {
        self.collect(direction);
        self.sweep.surface(self.metric, &self.judge.stats, Metric::score)
    }

    /// Scores of edges under weights of the coordinates; the other features have theirs, or none.
    fn scores(&self, (s, f): (usize, usize), w: &[f64], others: bool, room: &mut Room, out: &mut Vec<f64>) {
        let places = self.coordinates[s][f].iter().zip(&self.others[s][f]);
        room.local.clear();
        room.local.extend(places.map(|(&c, &other)| match c {
            NONE if others => other,
            NONE => 0.0,
            c => w[c as usize],
        }));
        self.pool.segments[s].forests[f].scores_into(&room.local, &mut room.rules, out);
    }

    /// Finds all changes along the line, and the totals at its left end.
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
        let mut room = Room::default();
        for s in 0..self.pool.segments.len() {
            self.envelope(s, d, &mut room);
            let known = &self.known[s];
            let mut before = None;
            for piece in &room.pieces {
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

    /// The envelope of all derivations of a segment, in `room.pieces`, by numbers of known ones.
    ///
    /// The first time it comes from the leaves up. From then on, from derivations that are known: their envelope is convex,
    /// and so is that of each forest; if no forest is above it at its boundaries, at 0 and at both ends, none is above it
    /// anywhere. Where one is, the derivation that is becomes known, too.
    fn envelope(&mut self, s: usize, d: &[f64], room: &mut Room) {
        let pool = self.pool;
        let forests = &pool.segments[s].forests;
        room.slopes.resize_with(room.slopes.len().max(forests.len()), Vec::new);
        for f in 0..forests.len() {
            let mut slopes = std::mem::take(&mut room.slopes[f]);
            self.scores((s, f), d, false, room, &mut slopes);
            room.slopes[f] = slopes;
        }
        if self.known[s].class.is_empty() {
            for (f, forest) in forests.iter().enumerate() {
                let n = self.hull.find(forest, &room.slopes[f], &self.b[s][f]).len();
                for at in 0..n {
                    self.hull.derivation(forest, at, &mut self.judge.words, &mut self.judge.edges);
                    self.learn(s, f);
                }
            }
        }
        loop {
            self.known[s].project(&self.point, d, room);
            room.pieces.clear();
            room.pieces.extend_from_slice(self.union.find(&room.m, &room.b, &[]));
            let Some(last) = room.pieces.last() else { return };
            let (first, last) = (room.pieces[0].line as usize, last.line as usize);
            // Points to look at: shares of offset and slope, the height there, and how much rounding there may be.
            room.points.clear();
            let height = |line: u32, x: f64| {
                let (m, b) = (room.m[line as usize], room.b[line as usize]);
                (1.0, x, b + x * m, SLACK * (room.size.0 + x.abs() * room.size.1))
            };
            let at_zero = room.pieces.partition_point(|p| p.from <= 0.0) - 1;
            room.points.push(height(room.pieces[at_zero].line, 0.0));
            room.points.push((0.0, 1.0, room.m[last], SLACK * room.size.1));
            room.points.push((0.0, -1.0, -room.m[first], SLACK * room.size.1));
            room.points.extend(room.pieces[1..].iter().map(|p| height(p.line, p.from)));
            if !self.look(s, room) {
                return;
            }
        }
    }

    /// Looks whether forests are above the known derivations at some points; those that are become known.
    fn look(&mut self, s: usize, room: &mut Room) -> bool {
        let pool = self.pool;
        let before = self.known[s].class.len();
        for chunk in room.points.chunks(LANES) {
            // What is left over looks at the first point once more.
            let mut lanes = Lanes { here: [chunk[0].0; LANES], along: [chunk[0].1; LANES] };
            for (l, point) in chunk.iter().enumerate() {
                (lanes.here[l], lanes.along[l]) = (point.0, point.1);
            }
            for (f, forest) in pool.segments[s].forests.iter().enumerate() {
                let (m, b) = (&room.slopes[f], &self.b[s][f]);
                let best = best_at(forest, m, b, &lanes, &mut room.nodes);
                for (l, (&(_, _, height, slack), found)) in chunk.iter().zip(best).enumerate() {
                    if found > height + slack {
                        let judge = &mut self.judge;
                        let lines = (&room.slopes[f][..], &self.b[s][f][..]);
                        let out = (&mut judge.words, &mut judge.edges);
                        derivation_at(forest, lines, &lanes, (&room.nodes, l), out);
                        self.learn(s, f);
                    }
                }
            }
        }
        self.known[s].class.len() > before
    }

    /// Takes the derivation that `judge` holds among the known ones, if it is new.
    fn learn(&mut self, s: usize, f: usize) {
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
        self.sweep.peak(self.metric, &self.judge.stats, self.score, self.smoothing, within)
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
        let (mut all, mut room) = (std::mem::take(&mut self.b), Room::default());
        for (s, segment) in all.iter_mut().enumerate() {
            for (f, b) in segment.iter_mut().enumerate() {
                self.scores((s, f), point, true, &mut room, b);
            }
        }
        self.b = all;
        self.score = self.true_score();
    }
}
