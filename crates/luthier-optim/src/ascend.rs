//! Maximisation of a piecewise constant function S(w), such as a corpus score of 1-best output as a function of the
//! weights, by exact line searches (Och 2003; Cer et al. 2008).
//!
//! A [`Walker`] holds a point w and finds the best step size t on a line, max over t of S(w + t·d). An [`Ascent`]
//! chooses the directions d by one of five strategies:
//!
//! - Cyclic ascent, the local search of [`Strategy::Iterated`]: passes over all axes in random order; each line search
//!   that gains moves the point at once. A pass costs n line searches and can make as many moves, where Koehn's coordinate
//!   descent makes one. Random directions are searched where no axis gains.
//! - Koehn's coordinate descent, here ascent (Cer et al. 2008, §2.2.2): a line search along every axis, and along
//!   optional random directions; then one move along the direction with the largest gain.
//! - Powell's method (§2.2.1): a round moves along every direction of a set in turn, from w to w′; then it moves along
//!   w′ − w, which replaces the direction of the largest gain in the set.
//! - Random directions (§3.1): a move along each direction d with dᵢ ~ N(0, 1).
//! - Downhill simplex (Nelder and Mead 1965): no line searches. With the worst vertex x and the centroid c of the n
//!   others, it tries the reflection c + (c − x), the expansion c + 2(c − x) and the contractions c ± ½(c − x); if
//!   none is better, it moves all vertices half way to the best one.
//!
//! The search stops when no direction gains more than a threshold, or after a maximum number of moves. The cost is
//! that of the line searches: for n free coordinates and R random directions, n + R per move (Koehn), up to n + 1 per
//! round (Powell), one per move (random); at most about 200·n evaluations of S for the simplex.

/// Direction d of a line search w + t·d.
#[derive(Debug, Clone, Copy)]
pub enum Direction<'a> {
    /// The unit vector of the coordinate with this index.
    Axis(usize),
    /// A vector with one component per coordinate.
    Vector(&'a [f64]),
}

/// Result of a line search: the best point on the line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peak {
    /// Step size t of the best point, in units of the direction; 0 if no point on the line is better than the current
    /// one.
    pub step: f64,
    /// Score of the best point minus score of the current point, both smoothed if the walker smooths scores along the
    /// line; 0 if no point on the line is better.
    pub gain: f64,
}

impl Peak {
    /// Result of a line search that found no point better than the current one.
    pub const NONE: Peak = Peak { step: 0.0, gain: 0.0 };
}

/// A point in the domain of a piecewise constant function, with exact line searches through it. Each restart of a
/// search has its own walker.
///
/// Implementations must guarantee: `score()` is the unsmoothed score at `point()`; `step(d, t)` moves the point by
/// t·d; `peak` does not move the point, returns a step size within the given bounds, and returns step size 0 exactly
/// when the gain is 0.
pub trait Walker {
    /// The current point w.
    fn point(&self) -> &[f64];
    /// The unsmoothed score S(w) at the current point; higher is better.
    fn score(&self) -> f64;
    /// Searches the line w + t·d through the current point and returns its best point, with t from `within.0` to
    /// `within.1`.
    fn peak(&mut self, direction: Direction<'_>, within: (f64, f64)) -> Peak;
    /// Moves the current point by `t` times a direction, and recomputes the unsmoothed score.
    fn step(&mut self, direction: Direction<'_>, t: f64);
    /// Moves the current point to `point`, and recomputes the unsmoothed score.
    fn place(&mut self, point: &[f64]);
}

/// Search strategy of an [`Ascent`]: how the directions of line searches are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Strategy {
    /// Iterated local search: cyclic ascent from many starts, of which the better half continues after each pass, then from
    /// perturbations of the best.
    #[default]
    Iterated,
    /// Koehn's coordinate descent: search along every axis, move along the best (Cer et al. 2008, §2.2.2).
    Koehn,
    /// Powell's method: combine the moves of each pass over the directions into new directions (Cer et al. 2008, §2.2.1).
    Powell,
    /// Random Gaussian directions (Cer et al. 2008, §3.1).
    Random,
    /// Downhill simplex on the score itself, without line searches (Nelder and Mead 1965).
    Simplex,
}

/// Maximiser of a piecewise constant function by exact line searches: search strategy, bounds and stopping rule.
///
/// ```
/// use luthier_optim::{Ascent, Direction, Peak, Walker};
/// /// −|⌊x⌋ − 3|: plateaus of width 1, the highest from 3 to 4.
/// struct Stairs([f64; 1]);
/// impl Walker for Stairs {
///     fn point(&self) -> &[f64] { &self.0 }
///     fn score(&self) -> f64 { -(self.0[0].floor() - 3.0).abs() }
///     fn peak(&mut self, _: Direction<'_>, _: (f64, f64)) -> Peak {
///         if self.score() == 0.0 { return Peak::NONE; }
///         Peak { step: 3.5 - self.0[0], gain: -self.score() }
///     }
///     fn step(&mut self, _: Direction<'_>, t: f64) { self.0[0] += t; }
///     fn place(&mut self, point: &[f64]) { self.0.copy_from_slice(point); }
/// }
/// let mut walker = Stairs([-4.5]);
/// Ascent::new(1).climb(&mut walker, &mut || 0.0);
/// assert_eq!((walker.point(), walker.score()), (&[3.5][..], 0.0));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Ascent {
    /// Strategy by which the directions of line searches are chosen.
    pub strategy: Strategy,
    /// Indices of the coordinates to be optimised; all other coordinates keep their values.
    pub free: Vec<usize>,
    /// Lower and upper bound of each coordinate; infinite where there is none.
    pub bounds: Vec<(f64, f64)>,
    /// Number of random directions that are searched besides the axes, newly drawn for each move of [`Strategy::Koehn`]
    /// and where no axis gains in [`Strategy::Iterated`].
    pub random_directions: usize,
    /// Unit of each coordinate in random directions; 0 leaves a coordinate out.
    pub unit: Vec<f64>,
    /// Number of consecutive directions without gain after which [`Strategy::Random`] stops.
    pub patience: usize,
    /// Whether the walker smooths scores along a line. A move then need not raise the unsmoothed score, and cycles are
    /// possible; the maximum number of moves is 100 instead of 1,000.
    pub smoothed: bool,
    /// Minimum gain of a move, in units of the score; moves with this gain or less are not made.
    pub min_gain: f64,
}

impl Ascent {
    /// Returns a search by [`Strategy::Koehn`] over `n` free coordinates without bounds, with a minimum gain of 10⁻⁶.
    pub fn new(n: usize) -> Self {
        Ascent {
            strategy: Strategy::Koehn,
            free: (0..n).collect(),
            bounds: vec![(f64::NEG_INFINITY, f64::INFINITY); n],
            random_directions: 0,
            unit: vec![1.0; n],
            patience: 30,
            smoothed: false,
            min_gain: 1e-6,
        }
    }

    /// Moves the walker from its current point to a local maximum, by the strategy of this search. `normal` draws
    /// samples from N(0, 1), for random directions.
    pub fn climb(&self, walker: &mut dyn Walker, normal: &mut dyn FnMut() -> f64) {
        match self.strategy {
            Strategy::Iterated => {
                self.cyclic(walker, self.max_rounds(), normal);
            }
            Strategy::Koehn => self.koehn(walker, normal),
            Strategy::Powell => self.powell(walker),
            Strategy::Random => self.random(walker, normal),
            Strategy::Simplex => self.simplex(walker),
        }
    }

    /// Maximum number of moves of [`Strategy::Koehn`].
    fn max_moves(&self) -> usize {
        if self.smoothed { 100 } else { 1000 }
    }

    /// Maximum number of rounds of [`Strategy::Powell`]. Times the patience, it is the maximum number of directions of
    /// [`Strategy::Random`].
    fn max_rounds(&self) -> usize {
        self.max_moves() / 10
    }

    /// Range of step sizes that keep every coordinate within its bounds.
    fn within(&self, point: &[f64], direction: Direction<'_>) -> (f64, f64) {
        let one = |i: usize, d: f64| {
            let (low, high) = self.bounds[i];
            let (a, b) = ((low - point[i]) / d, (high - point[i]) / d);
            if d > 0.0 { (a, b) } else { (b, a) }
        };
        match direction {
            Direction::Axis(i) => one(i, 1.0),
            Direction::Vector(d) => d
                .iter()
                .enumerate()
                .filter(|(_, d)| **d != 0.0)
                .map(|(i, &d)| one(i, d))
                .fold((f64::NEG_INFINITY, f64::INFINITY), |w, s| (w.0.max(s.0), w.1.min(s.1))),
        }
    }

    /// Line search within the bounds.
    fn peak(&self, walker: &mut dyn Walker, direction: Direction<'_>) -> Peak {
        let within = self.within(walker.point(), direction);
        walker.peak(direction, within)
    }

    /// Moves to the peak of a line. Unless scores are smoothed, undoes the move if the score did not rise: a plateau
    /// can be so narrow that the rounded point misses it. Returns whether the move was kept.
    fn take_step(&self, walker: &mut dyn Walker, direction: Direction<'_>, peak: Peak) -> bool {
        let (before, point) = (walker.score(), walker.point().to_vec());
        walker.step(direction, peak.step);
        let made = self.smoothed || walker.score() > before;
        if !made {
            walker.place(&point);
        }
        made
    }

    /// Koehn's coordinate descent (Cer et al. 2008, §2.2.2): one line search per direction, then one move along the
    /// direction with the largest gain (the first among equals), until no gain exceeds `min_gain`. A direction whose
    /// move was undone is skipped until another move succeeds.
    fn koehn(&self, walker: &mut dyn Walker, normal: &mut dyn FnMut() -> f64) {
        let mut missed = vec![false; self.free.len() + self.random_directions];
        // The current point is already the maximum along the axis of the last move.
        let mut done = usize::MAX;
        for _ in 0..self.max_moves() {
            let vectors: Vec<Vec<f64>> =
                (0..self.random_directions).map(|_| self.gaussian(walker.point().len(), normal)).collect();
            let axes = self.free.iter().map(|&a| Direction::Axis(a));
            let directions: Vec<Direction<'_>> =
                axes.chain(vectors.iter().map(|v| Direction::Vector(v))).collect();
            let mut best: Option<(usize, Peak)> = None;
            for (i, &direction) in directions.iter().enumerate().filter(|(i, _)| !missed[*i] && *i != done) {
                let peak = self.peak(walker, direction);
                if peak.gain > best.map_or(self.min_gain, |(_, b)| b.gain) {
                    best = Some((i, peak));
                }
            }
            let Some((i, peak)) = best else { return };
            if self.take_step(walker, directions[i], peak) {
                missed.fill(false);
                done = if self.smoothed || i >= self.free.len() { usize::MAX } else { i };
            } else {
                missed[i] = true;
            }
        }
    }

    /// Cyclic ascent: at most `passes` passes over the axes, in random order, each move made at once. Where no axis gains,
    /// random directions are searched, until one gains. Ends when none does; returns whether it has ended before `passes`.
    pub fn cyclic(&self, walker: &mut dyn Walker, passes: usize, normal: &mut dyn FnMut() -> f64) -> bool {
        let mut idle = 0;
        for _ in 0..passes {
            let mut order: Vec<(f64, usize)> = self.free.iter().map(|&axis| (normal(), axis)).collect();
            order.sort_by(|a, b| a.0.total_cmp(&b.0));
            for (_, axis) in order {
                if idle >= self.free.len() {
                    break;
                }
                idle = if self.along(walker, Direction::Axis(axis)) > 0.0 { 0 } else { idle + 1 };
            }
            if idle >= self.free.len() {
                let gains = (0..self.random_directions).any(|_| {
                    let d = self.gaussian(walker.point().len(), normal);
                    self.along(walker, Direction::Vector(&d)) > 0.0
                });
                if !gains {
                    return true;
                }
                idle = 0;
            }
        }
        false
    }

    /// A random direction: N(0, 1) units in every free coordinate, 0 elsewhere.
    fn gaussian(&self, n: usize, normal: &mut dyn FnMut() -> f64) -> Vec<f64> {
        let mut d = vec![0.0; n];
        for &i in &self.free {
            d[i] = normal() * self.unit[i];
        }
        d
    }

    /// Powell's method (Cer et al. 2008, §2.2.1). A round moves along every direction of the set in turn, then along
    /// the sum of these moves, which replaces the direction of the largest gain. A round without gain resets the set
    /// to the axes; if the set already consists of the axes, the search ends.
    fn powell(&self, walker: &mut dyn Walker) {
        let n = walker.point().len();
        let axes: Vec<Vec<f64>> = self.free.iter().map(|&a| unit(n, a)).collect();
        let mut set = axes.clone();
        let mut fresh = true;
        for _ in 0..self.max_rounds() {
            let start = walker.point().to_vec();
            let mut largest = (0, 0.0);
            let mut total = 0.0;
            for (i, d) in set.iter().enumerate() {
                let gain = self.along(walker, direction(d));
                total += gain;
                if gain > largest.1 {
                    largest = (i, gain);
                }
            }
            if total <= self.min_gain {
                if fresh {
                    return;
                }
                set.clone_from(&axes);
                fresh = true;
                continue;
            }
            let sum: Vec<f64> = walker.point().iter().zip(&start).map(|(a, b)| a - b).collect();
            if sum.iter().filter(|x| **x != 0.0).count() > 1 {
                self.along(walker, Direction::Vector(&sum));
                set.remove(largest.0);
                set.push(sum);
                fresh = false;
            }
        }
    }

    /// Moves to the peak of a line if its gain exceeds `min_gain`; returns the gain, or 0 without a move.
    fn along(&self, walker: &mut dyn Walker, direction: Direction<'_>) -> f64 {
        let peak = self.peak(walker, direction);
        if peak.gain > self.min_gain && self.take_step(walker, direction, peak) { peak.gain } else { 0.0 }
    }

    /// Random directions (Cer et al. 2008, §3.1), until `patience` of them in a row bring no gain.
    fn random(&self, walker: &mut dyn Walker, normal: &mut dyn FnMut() -> f64) {
        let mut idle = 0;
        for _ in 0..self.max_rounds() * self.patience {
            if idle >= self.patience {
                return;
            }
            let d = self.gaussian(walker.point().len(), normal);
            idle = if self.along(walker, Direction::Vector(&d)) > 0.0 { 0 } else { idle + 1 };
        }
    }

    /// Downhill simplex (Nelder and Mead 1965): reflects, expands, contracts and shrinks n + 1 vertices (coefficients
    /// 1, 2, ½, ½) until their scores differ by at most `min_gain` or 200 evaluations per free coordinate are spent.
    /// Ends at the best vertex.
    fn simplex(&self, walker: &mut dyn Walker) {
        let n = self.free.len();
        let mut simplex = Simplex::new(self, walker);
        let mut more = n > 0;
        while more {
            simplex.sort();
            if simplex.corners[0].0 - simplex.corners[n].0 <= self.min_gain {
                break;
            }
            more = simplex.replace_worst();
        }
        simplex.sort();
        let best = simplex.corners[0].1.clone();
        simplex.value(&best);
    }
}

/// A simplex in the free coordinates (Nelder and Mead 1965).
struct Simplex<'a> {
    ascent: &'a Ascent,
    walker: &'a mut dyn Walker,
    /// Starting point, in all coordinates.
    start: Vec<f64>,
    /// Score and free coordinates of each vertex; best first after sorting.
    corners: Vec<(f64, Vec<f64>)>,
    /// Number of evaluations left.
    left: usize,
}

impl<'a> Simplex<'a> {
    /// The initial simplex: the starting point, and one vertex along each free coordinate.
    fn new(ascent: &'a Ascent, walker: &'a mut dyn Walker) -> Self {
        let n = ascent.free.len();
        let start = walker.point().to_vec();
        let origin: Vec<f64> = ascent.free.iter().map(|&i| start[i]).collect();
        let size = origin.iter().map(|x| x.abs()).fold(0.0, f64::max).max(0.1) * 0.5;
        let mut simplex = Simplex { ascent, walker, start, corners: Vec::new(), left: 200 * n };
        for corner in 0..=n {
            let mut x = origin.clone();
            if corner > 0 {
                x[corner - 1] += size;
            }
            let score = simplex.value(&x);
            simplex.corners.push((score, x));
        }
        simplex
    }

    /// Moves the walker to a point given by its free coordinates, clamped to the bounds, and returns the score there.
    fn value(&mut self, x: &[f64]) -> f64 {
        let mut point = self.start.clone();
        for (&i, &x) in self.ascent.free.iter().zip(x) {
            point[i] = x.clamp(self.ascent.bounds[i].0, self.ascent.bounds[i].1);
        }
        self.walker.place(&point);
        self.left = self.left.saturating_sub(1);
        self.walker.score()
    }

    fn sort(&mut self) {
        self.corners.sort_by(|a, b| b.0.total_cmp(&a.0));
    }

    /// One iteration: replaces the worst vertex by a better point, or shrinks the simplex. Returns false if all
    /// evaluations are spent (not counting those of the shrinking).
    fn replace_worst(&mut self) -> bool {
        let n = self.corners.len() - 1;
        let worst = self.corners[n].clone();
        let centre: Vec<f64> =
            (0..n).map(|j| self.corners[..n].iter().map(|c| c.1[j]).sum::<f64>() / n as f64).collect();
        let reflected = self.beyond(&centre, &worst.1, 1.0);
        if reflected.0 > self.corners[0].0 {
            let expanded = self.beyond(&centre, &worst.1, 2.0);
            self.corners[n] = if expanded.0 > reflected.0 { expanded } else { reflected };
        } else if reflected.0 > self.corners[n - 1].0 {
            self.corners[n] = reflected;
        } else {
            let t = if reflected.0 > worst.0 { 0.5 } else { -0.5 };
            let contracted = self.beyond(&centre, &worst.1, t);
            let more = self.left > 0;
            if contracted.0 > worst.0.max(reflected.0) {
                self.corners[n] = contracted;
            } else {
                self.shrink();
            }
            return more;
        }
        self.left > 0
    }

    /// Score and coordinates of the point centre + t·(centre − worst).
    fn beyond(&mut self, centre: &[f64], worst: &[f64], t: f64) -> (f64, Vec<f64>) {
        let x: Vec<f64> = centre.iter().zip(worst).map(|(c, w)| c + t * (c - w)).collect();
        (self.value(&x), x)
    }

    /// Moves all vertices half way to the best one.
    fn shrink(&mut self) {
        let best = self.corners[0].1.clone();
        for corner in 1..self.corners.len() {
            let x: Vec<f64> =
                self.corners[corner].1.iter().zip(&best).map(|(x, b)| f64::midpoint(*x, *b)).collect();
            self.corners[corner] = (self.value(&x), x);
        }
    }
}

/// Unit vector of a coordinate.
fn unit(n: usize, axis: usize) -> Vec<f64> {
    let mut d = vec![0.0; n];
    d[axis] = 1.0;
    d
}

/// Turns a unit vector into [`Direction::Axis`], which walkers search faster than a general vector.
fn direction(d: &[f64]) -> Direction<'_> {
    let mut moved = d.iter().enumerate().filter(|(_, x)| **x != 0.0);
    match (moved.next(), moved.next()) {
        (Some((axis, 1.0)), None) => Direction::Axis(axis),
        _ => Direction::Vector(d),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test function, not a reference for digits")]
mod tests {
    use super::*;

    /// −|x−3| − |y+1| − 3|x+y−2| of integer parts: plateaus with the maximum at (3, −1), on a diagonal ridge that is
    /// slow to climb along the axes alone.
    struct Steps {
        at: Vec<f64>,
    }

    fn value(at: &[f64]) -> f64 {
        let (x, y) = (at[0].floor(), at[1].floor());
        -(x - 3.0).abs() - (y + 1.0).abs() - 3.0 * (x + y - 2.0).abs()
    }

    impl Walker for Steps {
        fn point(&self) -> &[f64] {
            &self.at
        }
        fn score(&self) -> f64 {
            value(&self.at)
        }
        fn peak(&mut self, direction: Direction<'_>, within: (f64, f64)) -> Peak {
            let mut best = Peak::NONE;
            for t in (-400..=400).map(|t| f64::from(t) / 20.0).filter(|t| within.0 <= *t && *t <= within.1) {
                let mut other = Steps { at: self.at.clone() };
                other.step(direction, t);
                if other.score() - self.score() > best.gain {
                    best = Peak { step: t, gain: other.score() - self.score() };
                }
            }
            best
        }
        fn step(&mut self, direction: Direction<'_>, t: f64) {
            match direction {
                Direction::Axis(axis) => self.at[axis] += t,
                Direction::Vector(d) => self.at.iter_mut().zip(d).for_each(|(x, d)| *x += t * d),
            }
        }
        fn place(&mut self, point: &[f64]) {
            self.at.copy_from_slice(point);
        }
    }

    /// A deterministic sequence in place of random numbers.
    fn waves() -> impl FnMut() -> f64 {
        let mut t = 0.0;
        move || {
            t += 1.0;
            2.0 * f64::sin(t * 12.9898)
        }
    }

    fn climbed(change: impl Fn(&mut Ascent)) -> Steps {
        let mut ascent = Ascent::new(2);
        change(&mut ascent);
        let mut walker = Steps { at: vec![-4.5, 6.5] };
        ascent.climb(&mut walker, &mut waves());
        walker
    }

    #[test]
    fn every_strategy_climbs() {
        let start = value(&[-4.5, 6.5]);
        for strategy in
            [Strategy::Iterated, Strategy::Koehn, Strategy::Powell, Strategy::Random, Strategy::Simplex]
        {
            let end = climbed(|a| a.strategy = strategy).score();
            assert!(end > start, "{strategy:?} ended at {end}");
        }
        // Along the ridge only diagonal directions gain.
        for strategy in [Strategy::Koehn, Strategy::Iterated] {
            let axes = climbed(|a| a.strategy = strategy).score();
            assert!(climbed(|a| (a.strategy, a.random_directions) = (strategy, 8)).score() > axes);
        }
        assert_eq!(climbed(|a| a.strategy = Strategy::Random).score(), 0.0);
    }

    #[test]
    fn fixed_and_bounded_coordinates() {
        for strategy in
            [Strategy::Iterated, Strategy::Koehn, Strategy::Powell, Strategy::Random, Strategy::Simplex]
        {
            let end = climbed(|a| (a.strategy, a.free) = (strategy, vec![1]));
            assert_eq!(end.at[0], -4.5, "{strategy:?}");
            let end = climbed(|a| {
                a.strategy = strategy;
                a.bounds = vec![(-5.0, 0.5), (2.5, 7.0)];
                a.random_directions = 2;
            });
            assert!(
                (-5.0..=0.5).contains(&end.at[0]) && (2.5..=7.0).contains(&end.at[1]),
                "{strategy:?} {:?}",
                end.at
            );
        }
    }
}
