//! Speed of MERT's line search against a simple implementation in the same run; run by `scripts/bench mert`.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod pool;

use luthier::{
    core::{
        FeatureKey, Local, Weights,
        random::{Purpose, Stream},
    },
    metric::Metric,
    optim::{Ascent, Direction, Peak, Walker},
    tune::{
        Candidate, Candidates,
        mert::{Flat, ListWalker},
    },
};
use std::{path::PathBuf, sync::Arc, time::Instant};

/// Seconds that Moses' `mert` takes for 21 starting points on the same pool, on one thread of a comparable machine.
const MOSES: f64 = 115.0;

fn main() {
    let Some(data) = std::env::var_os("LUTHIER_DATA").map(PathBuf::from) else {
        println!("LUTHIER_DATA is not set; run this benchmark with scripts/bench mert");
        return;
    };
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().unwrap();
    let metric: Metric = "bleu".parse().unwrap();
    let (pool, initial) = pool::read(&data, &metric);
    let dense = pool[0].columns.clone();
    let mut start = Vec::new();
    initial.gather(&dense, &mut start);
    let none = Weights::default();

    let flat = Arc::new(Flat::new(&pool));
    let fast = climb(&pool, &start, 21, |p| Box::new(ListWalker::over(&flat, &pool, &metric, &none, p)));
    let candidates: usize = pool.iter().map(|l| l.k).sum();
    println!("coordinate descent from 21 starting points on {candidates} candidates, one thread");
    println!(
        "  {:.2} s, best BLEU {:.2}, {} line searches, {:.0} per second, {:.2} ns per candidate",
        fast.seconds,
        fast.best,
        fast.searches,
        fast.searches as f64 / fast.seconds,
        1e9 * fast.seconds / fast.searches as f64 / candidates as f64
    );
    println!("  {:.1} times as fast as Moses' mert ({MOSES} s; target 20, then 50)", MOSES / fast.seconds);

    let few = climb(&pool, &start, 1, |p| Box::new(ListWalker::new(&pool, &metric, &none, p)));
    let plain = climb(&pool, &start, 1, |p| Box::new(Plain::new(&pool, &metric, p)));
    let (mut ours, mut theirs) =
        (ListWalker::new(&pool, &metric, &none, &start), Plain::new(&pool, &metric, &start));
    for axis in (0..start.len()).map(Direction::Axis) {
        let anywhere = (f64::NEG_INFINITY, f64::INFINITY);
        assert!((ours.peak(axis, anywhere).gain - theirs.peak(axis, anywhere).gain).abs() < 1e-9);
    }
    let each = |r: &Run| r.seconds / r.searches as f64;
    println!(
        "one starting point: {:.2} ms per line search, simple sort-based search {:.2} ms, ratio {:.1}",
        1e3 * each(&few),
        1e3 * each(&plain),
        each(&plain) / each(&few)
    );

    println!("by pool size, one starting point: milliseconds per line search");
    for (copies, wider) in [(1, 1), (2, 1), (4, 1), (1, 2), (1, 4)] {
        let grown = grow(&pool, copies, wider);
        let mut point = Vec::new();
        for _ in 0..wider {
            point.extend(start.iter().map(|w| w / wider as f64));
        }
        let run = climb(&grown, &point, 1, |p| Box::new(ListWalker::new(&grown, &metric, &none, p)));
        let k: usize = grown.iter().map(|l| l.k).sum();
        println!(
            "  {k:8} candidates, {:2} features: {:.2} ms, {} searches, {:.2} s",
            14 * wider,
            1e3 * each(&run),
            run.searches,
            run.seconds
        );
    }
}

struct Run {
    seconds: f64,
    searches: usize,
    best: f64,
}

/// Runs MERT from `start` and from random starting points, as `tune mert` does; returns the total time, the number of line
/// searches and the best score.
fn climb<'a>(
    pool: &[Arc<Candidates>],
    start: &[f64],
    starts: u32,
    walker: impl Fn(&[f64]) -> Box<dyn Walker + 'a>,
) -> Run {
    let clock = Instant::now();
    let ascent = Ascent::new(pool[0].columns.keys().len());
    let mut run = Run { seconds: 0.0, searches: 0, best: 0.0 };
    for index in 0..starts {
        let mut stream = Stream::new(1, Purpose::Restart, 0, index);
        let mut draw =
            |w: &f64| stream.uniform(if *w > 0.0 { 0.0 } else { -1.0 }, if *w < 0.0 { 0.0 } else { 1.0 });
        let point: Vec<f64> = if index == 0 { start.to_vec() } else { start.iter().map(&mut draw).collect() };
        let mut counting = Counting { inner: walker(&point), searches: 0 };
        ascent.climb(&mut counting, &mut || 0.0);
        run.searches += counting.searches;
        run.best = run.best.max(counting.score());
    }
    run.seconds = clock.elapsed().as_secs_f64();
    run
}

struct Counting<'a> {
    inner: Box<dyn Walker + 'a>,
    searches: usize,
}

impl Walker for Counting<'_> {
    fn point(&self) -> &[f64] {
        self.inner.point()
    }
    fn score(&self) -> f64 {
        self.inner.score()
    }
    fn peak(&mut self, direction: Direction<'_>, within: (f64, f64)) -> Peak {
        self.searches += 1;
        self.inner.peak(direction, within)
    }
    fn step(&mut self, direction: Direction<'_>, t: f64) {
        self.inner.step(direction, t);
    }
    fn place(&mut self, point: &[f64]) {
        self.inner.place(point);
    }
}

/// Simple line search: sorts the lines of each segment by slope, computes their upper envelope on a stack, sorts all
/// boundaries and scores every interval.
struct Plain<'a> {
    pool: &'a [Arc<Candidates>],
    metric: &'a Metric,
    point: Vec<f64>,
    score: f64,
}

impl<'a> Plain<'a> {
    fn new(pool: &'a [Arc<Candidates>], metric: &'a Metric, point: &[f64]) -> Self {
        let mut plain = Plain { pool, metric, point: Vec::new(), score: 0.0 };
        plain.place(point);
        plain
    }

    fn offsets(&self, list: &Candidates) -> Vec<f64> {
        let mut b = vec![0.0; list.k];
        list.scores(&self.point, &Weights::default(), &mut b);
        b
    }
}

impl Walker for Plain<'_> {
    fn point(&self) -> &[f64] {
        &self.point
    }

    fn score(&self) -> f64 {
        self.score
    }

    fn peak(&mut self, direction: Direction<'_>, _: (f64, f64)) -> Peak {
        let Direction::Axis(axis) = direction else { return Peak::NONE };
        let mut totals = vec![0.0; self.metric.width()];
        let mut changes: Vec<(f64, usize, u32, u32)> = Vec::new();
        for (s, list) in self.pool.iter().enumerate() {
            let (m, b) = (list.column(axis), self.offsets(list));
            let mut order: Vec<usize> = (0..list.k).collect();
            order.sort_by(|&i, &j| m[i].total_cmp(&m[j]).then(b[j].total_cmp(&b[i])).then(i.cmp(&j)));
            let mut hull: Vec<(usize, f64)> = Vec::new();
            for i in order {
                let mut from = f64::NEG_INFINITY;
                let mut keep = true;
                while let Some(&(top, since)) = hull.last() {
                    if m[top] == m[i] {
                        keep = false;
                        break;
                    }
                    from = (b[top] - b[i]) / (m[i] - m[top]);
                    if from > since {
                        break;
                    }
                    hull.pop();
                    from = f64::NEG_INFINITY;
                }
                if keep {
                    hull.push((i, from));
                }
            }
            let class = |i: usize| list.class[i];
            totals.iter_mut().zip(list.stats_of(class(hull[0].0))).for_each(|(t, x)| *t += f64::from(*x));
            for pair in hull.windows(2) {
                changes.push((pair[1].1, s, class(pair[0].0), class(pair[1].0)));
            }
        }
        changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let (mut best, mut step) = (self.metric.score(&totals), f64::NAN);
        for (i, &(x, s, from, to)) in changes.iter().enumerate() {
            let list = &self.pool[s];
            for ((t, f), n) in totals.iter_mut().zip(list.stats_of(from)).zip(list.stats_of(to)) {
                *t += f64::from(*n) - f64::from(*f);
            }
            let next = changes.get(i + 1).map_or(x + 0.2, |c| c.0);
            let score = self.metric.score(&totals);
            if score > best && next > x {
                (best, step) = (score, f64::midpoint(x, next));
            }
        }
        if best > self.score && step.is_finite() {
            Peak { step, gain: best - self.score }
        } else {
            Peak::NONE
        }
    }

    fn step(&mut self, direction: Direction<'_>, t: f64) {
        let mut point = self.point.clone();
        if let Direction::Axis(axis) = direction {
            point[axis] += t;
        }
        self.place(&point);
    }

    fn place(&mut self, point: &[f64]) {
        self.point = point.to_vec();
        let mut totals = vec![0.0; self.metric.width()];
        for list in self.pool {
            let b = self.offsets(list);
            let best = (0..list.k).fold(0, |best, i| if b[i] > b[best] { i } else { best });
            totals.iter_mut().zip(list.stats_of(list.class[best])).for_each(|(t, x)| *t += f64::from(*x));
        }
        self.score = self.metric.score(&totals);
    }
}

type Features = Vec<(FeatureKey, f64)>;

/// Returns a pool with every candidate repeated `copies` times and every feature `wider` times; values of copies are
/// multiplied by a random factor between 0.98 and 1.02.
fn grow(pool: &[Arc<Candidates>], copies: usize, wider: usize) -> Vec<Arc<Candidates>> {
    let width = pool[0].width;
    let old = pool[0].columns.keys();
    let key = |c: usize, w: usize| FeatureKey(old[c].0.wrapping_add(w as u64));
    let columns = Arc::new(Local::new(
        (0..wider).flat_map(|w| (0..old.len()).map(move |c| (c, w))).map(|(c, w)| key(c, w)).collect(),
    ));
    let mut stream = Stream::new(1, Purpose::Test, 0, 0);
    let one = |list: &Arc<Candidates>| {
        let mut rows: Vec<(Features, Vec<f64>)> = Vec::new();
        for copy in 0..copies {
            for i in 0..list.k {
                let mut features = Vec::new();
                for w in 0..wider {
                    for c in 0..old.len() {
                        let jitter = if copy + w == 0 { 1.0 } else { stream.uniform(0.98, 1.02) };
                        features.push((key(c, w), list.column(c)[i] * jitter));
                    }
                }
                let stats = list.stats_of(list.class[i]).iter().map(|&x| f64::from(x)).collect();
                rows.push((features, stats));
            }
        }
        let candidates = rows.iter().map(|(f, s)| Candidate { text: "", features: f, columns: s });
        let mut list = Candidates::new(&columns, candidates, false);
        list.judge_given(width);
        Arc::new(list)
    };
    pool.iter().map(one).collect()
}
