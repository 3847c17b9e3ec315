//! Exact line search over forests (Kumar et al. 2009): the envelope of all derivations instead of a list's.

use crate::{Packed, Segment, Smoothing, Surface, line::Sweep};
use luthier_core::{Fingerprint, Local, Weights};
use luthier_forest::{Forest, Hull, NONE};
use luthier_metric::{Metric, Scratch};
use luthier_optim::{Direction, Envelope, Peak, Walker};
use rustc_hash::FxHashMap;

/// A walker over forests. The coordinates are the dense features that are learned.
pub struct ForestWalker<'a> {
    packed: &'a Packed,
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
    hulls: Vec<Hull>,
    union: Envelope,
    sweep: Sweep,
    smoothing: Smoothing,
}

/// Memory for scores.
#[derive(Default)]
struct Room {
    local: Vec<f64>,
    rules: Vec<f64>,
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
}

impl Classes<'_> {
    /// The class of a translation whose words are in `self.words`.
    fn of(&mut self, segment: &Segment, (s, f): (usize, usize), forest: &Forest<'_>) -> u32 {
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
    /// A walker at `point`.
    pub fn new(packed: &'a Packed, metric: &'a Metric, weights: &Weights, point: &[f64]) -> Self {
        let coordinates = |local: &Local| -> Vec<u32> {
            let place = |key| packed.columns.position(key).map_or(NONE, |p| p as u32);
            local.keys().iter().map(|&k| place(k)).collect()
        };
        let each = |f: &dyn Fn(&Forest<'static>) -> Vec<u32>| -> Vec<Vec<Vec<u32>>> {
            packed.segments.iter().map(|s| s.forests.iter().map(|forest| f(forest)).collect()).collect()
        };
        let others = packed.segments.iter().map(|s| {
            let weights = |forest: &std::sync::Arc<Forest<'static>>| packed.local(forest, weights);
            s.forests.iter().map(weights).collect()
        });
        let mut walker = ForestWalker {
            packed,
            metric,
            point: Vec::new(),
            score: 0.0,
            coordinates: each(&|forest| coordinates(&forest.local)),
            others: others.collect(),
            b: packed.segments.iter().map(|s| vec![Vec::new(); s.forests.len()]).collect(),
            judge: Classes {
                metric,
                by_words: FxHashMap::default(),
                by_stats: FxHashMap::default(),
                stats: Vec::new(),
                scratch: Scratch::default(),
                out: vec![0.0; metric.width()],
                words: Vec::new(),
                out_words: Vec::new(),
            },
            hulls: Vec::new(),
            union: Envelope::default(),
            sweep: Sweep::default(),
            smoothing: Smoothing::None,
        };
        walker.place(point);
        walker
    }

    /// Judges lines by smoothed values from now on.
    #[must_use]
    pub fn smoothed(mut self, smoothing: Smoothing) -> Self {
        self.smoothing = smoothing;
        self
    }

    /// The score along a line through the point.
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
        self.packed.segments[s].forests[f].scores_into(&room.local, &mut room.rules, out);
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
        let packed = self.packed;
        let (mut m, mut b, mut places) = (Vec::new(), Vec::new(), Vec::new());
        let (mut room, mut slopes) = (Room::default(), Vec::new());
        for (s, segment) in packed.segments.iter().enumerate() {
            self.hulls.resize_with(self.hulls.len().max(segment.forests.len()), Hull::default);
            m.clear();
            b.clear();
            places.clear();
            for (f, forest) in segment.forests.iter().enumerate() {
                self.scores((s, f), d, false, &mut room, &mut slopes);
                let root = self.hulls[f].find(forest, &slopes, &self.b[s][f]);
                for (at, stretch) in root.iter().enumerate() {
                    m.push(stretch.m);
                    b.push(stretch.b);
                    places.push((f, at, stretch.from));
                }
            }
            // All forests of a segment under one root.
            let pieces: Vec<(usize, f64)> = if segment.forests.len() == 1 {
                places.iter().enumerate().map(|(i, p)| (i, p.2)).collect()
            } else {
                self.union.find(&m, &b, &[]).iter().map(|p| (p.line as usize, p.from)).collect()
            };
            let mut before = None;
            for (line, from) in pieces {
                let (f, at, _) = places[line];
                let forest = &segment.forests[f];
                self.hulls[f].words(forest, at, &mut self.judge.words);
                let class = self.judge.of(segment, (s, f), forest);
                match before {
                    None => self.sweep.start(&self.judge.stats, class),
                    Some(before) if before != class => self.sweep.change(from, before, class),
                    Some(_) => {}
                }
                before = Some(class);
            }
        }
    }

    fn true_score(&mut self) -> f64 {
        let width = self.metric.width();
        let mut totals = vec![0.0; width];
        let packed = self.packed;
        for (s, segment) in packed.segments.iter().enumerate() {
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
                totals.iter_mut().zip(stats).for_each(|(t, x)| *t += f64::from(*x));
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
