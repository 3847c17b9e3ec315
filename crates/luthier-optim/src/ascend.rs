//! Maximisation of a piecewise constant function, such as a corpus score of one-best output, by exact line searches (Och 2003;
//! Cer et al. 2008).
//!
//! A [`Walker`] stands at a point w, and finds the best t on a line w + t·d; an [`Ascent`] chooses the lines. It stops where
//! no line gains more than a threshold, or after a fixed number of moves. The cost is that of the line searches: for koehn
//! one per free coordinate and move.

/// Direction of a line search.
#[derive(Debug, Clone, Copy)]
pub enum Direction<'a> {
    /// The axis of one coordinate, by its index.
    Axis(usize),
    /// A vector with one number per coordinate.
    Vector(&'a [f64]),
}

/// The best point that a line search found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peak {
    /// Distance to the best point in units of the direction; 0 where nothing is better than the present point.
    pub step: f64,
    /// Score of the best point minus score of the present one, both as judged on the line (smoothed, if the walker
    /// smooths); 0 where nothing is better.
    pub gain: f64,
}

impl Peak {
    /// The peak of a line on which nothing is better than the present point.
    pub const NONE: Peak = Peak { step: 0.0, gain: 0.0 };
}

/// A point on a piecewise constant surface, and the exact search of lines through it. One walker per start.
///
/// Laws: `score()` is the true score at `point()`; after `step(d, t)` the point has moved by t·d; `peak` moves
/// nothing, stays within the given steps, and its step is 0 exactly if its gain is 0.
pub trait Walker {
    /// The present point.
    fn point(&self) -> &[f64];
    /// The true score at the present point; higher is better.
    fn score(&self) -> f64;
    /// The best point on the line through the present point, with a step from `within.0` to `within.1`.
    fn peak(&mut self, direction: Direction<'_>, within: (f64, f64)) -> Peak;
    /// Moves the point by `t` along a direction, and computes the true score afresh.
    fn step(&mut self, direction: Direction<'_>, t: f64);
    /// Moves to another point, and computes the true score afresh.
    fn place(&mut self, point: &[f64]);
}

/// Search strategy of an [`Ascent`]: how directions of line searches are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Strategy {
    /// Searches all axes and moves along the best one, until none gains (Cer et al. 2008, §2.2.2).
    #[default]
    Koehn,
    /// Powell's method: directions become the sums of earlier moves (Press et al. 2007; Och 2003).
    Powell,
    /// Random Gaussian directions (Cer et al. 2008, §3.1).
    Random,
    /// Downhill simplex on the score itself, without line searches (Nelder and Mead 1965).
    Simplex,
}

/// Search for a maximum by exact line searches, with its strategy and limits.
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
    /// Search strategy.
    pub strategy: Strategy,
    /// Indices of the coordinates that may move; all others stay as they are.
    pub free: Vec<usize>,
    /// Least and largest value of each coordinate; infinite where unbounded.
    pub bounds: Vec<(f64, f64)>,
    /// Number of random directions that [`Strategy::Koehn`] tries besides the axes, drawn anew for each move.
    pub random_directions: usize,
    /// Number of directions in a row without gain after which [`Strategy::Random`] stops.
    pub patience: usize,
    /// Whether the walker judges lines by smoothed scores. Then a move need not raise the true score, and cycles are
    /// possible, so there are fewer moves: at most 100 instead of 1,000.
    pub smoothed: bool,
    /// Gain above which a move is made, in units of the score.
    pub min_gain: f64,
}

impl Ascent {
    /// Search by [`Strategy::Koehn`] over `n` free and unbounded coordinates, with a least gain of 10⁻⁶.
    pub fn new(n: usize) -> Self {
        Ascent {
            strategy: Strategy::Koehn,
            free: (0..n).collect(),
            bounds: vec![(f64::NEG_INFINITY, f64::INFINITY); n],
            random_directions: 0,
            patience: 30,
            smoothed: false,
            min_gain: 1e-6,
        }
    }

    /// Moves the walker from its present point to a local maximum. `normal` draws from N(0, 1), for random directions.
    pub fn climb(&self, walker: &mut dyn Walker, normal: &mut dyn FnMut() -> f64) {
        match self.strategy {
            Strategy::Koehn => self.koehn(walker, normal),
            Strategy::Powell => self.powell(walker),
            Strategy::Random => self.random(walker, normal),
            Strategy::Simplex => self.simplex(walker),
        }
    }

    fn max_moves(&self) -> usize {
        if self.smoothed { 100 } else { 1000 }
    }

    /// Rounds of `Powell`, and how many times its patience `Random` may last: each is many searches.
    fn max_rounds(&self) -> usize {
        self.max_moves() / 10
    }

    /// Steps along a line that keep every coordinate within its bounds.
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

    fn peak(&self, walker: &mut dyn Walker, direction: Direction<'_>) -> Peak {
        let within = self.within(walker.point(), direction);
        walker.peak(direction, within)
    }

    /// Makes a move, or takes it back: a plateau can be so narrow that rounding misses it. True if it was made.
    fn take_step(&self, walker: &mut dyn Walker, direction: Direction<'_>, peak: Peak) -> bool {
        let (before, point) = (walker.score(), walker.point().to_vec());
        walker.step(direction, peak.step);
        let made = self.smoothed || walker.score() > before;
        if !made {
            walker.place(&point);
        }
        made
    }

    /// One trial per direction, then one step along the one that gains most (the first of equals), until none
    /// gains more than `min_gain`. A direction whose step was taken back is left out until another one succeeds.
    fn koehn(&self, walker: &mut dyn Walker, normal: &mut dyn FnMut() -> f64) {
        let mut missed = vec![false; self.free.len() + self.random_directions];
        // The axis that was just searched has nothing left to give.
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

    fn gaussian(&self, n: usize, normal: &mut dyn FnMut() -> f64) -> Vec<f64> {
        let mut d = vec![0.0; n];
        for &i in &self.free {
            d[i] = normal();
        }
        d
    }

    /// A round goes along every direction of the set in turn; then along the sum of its moves, which replaces the
    /// direction that gained most. A round without gain resets the set to the axes; the axes without gain are the
    /// end.
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

    /// Goes to the peak of a line; returns what it brought.
    fn along(&self, walker: &mut dyn Walker, direction: Direction<'_>) -> f64 {
        let peak = self.peak(walker, direction);
        if peak.gain > self.min_gain && self.take_step(walker, direction, peak) { peak.gain } else { 0.0 }
    }

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

    /// Reflects, expands, contracts and shrinks n + 1 points (coefficients 1, 2, ½, ½) until their scores agree to
    /// `min_gain` or 200 evaluations per coordinate are spent. Ends at the best point seen.
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
    start: Vec<f64>,
    /// Score and place of each corner; the best first, once they are sorted.
    corners: Vec<(f64, Vec<f64>)>,
    /// Evaluations that are left.
    left: usize,
}

impl<'a> Simplex<'a> {
    /// The start, and from it one corner along each free coordinate.
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

    /// The score at a place, which is moved into the bounds.
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

    /// Puts a better corner in place of the worst one, or shrinks the simplex. False if the evaluations were spent before
    /// it shrank.
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

    /// The corner on the line from the worst one through the centre, `t` times as far beyond it.
    fn beyond(&mut self, centre: &[f64], worst: &[f64], t: f64) -> (f64, Vec<f64>) {
        let x: Vec<f64> = centre.iter().zip(worst).map(|(c, w)| c + t * (c - w)).collect();
        (self.value(&x), x)
    }

    /// Moves all corners half way to the best one.
    fn shrink(&mut self) {
        let best = self.corners[0].1.clone();
        for corner in 1..self.corners.len() {
            let x: Vec<f64> =
                self.corners[corner].1.iter().zip(&best).map(|(x, b)| f64::midpoint(*x, *b)).collect();
            self.corners[corner] = (self.value(&x), x);
        }
    }
}

fn unit(n: usize, axis: usize) -> Vec<f64> {
    let mut d = vec![0.0; n];
    d[axis] = 1.0;
    d
}

/// A unit vector is an axis, which walkers search faster.
fn direction(d: &[f64]) -> Direction<'_> {
    let mut moved = d.iter().enumerate().filter(|(_, x)| **x != 0.0);
    match (moved.next(), moved.next()) {
        (Some((axis, 1.0)), None) => Direction::Axis(axis),
        _ => Direction::Vector(d),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// −|x−3| − |y+1| − |x+y−2| on the integers: plateaus with the summit at (3, −1), where a ridge makes axes
    /// alone slow.
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

    /// Not random, but spread well enough for a test.
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
        for strategy in [Strategy::Koehn, Strategy::Powell, Strategy::Random, Strategy::Simplex] {
            let end = climbed(|a| a.strategy = strategy).score();
            assert!(end > start, "{strategy:?} ended at {end}");
        }
        // Along the ridge only diagonals help.
        let koehn = climbed(|_| {}).score();
        assert!(climbed(|a| a.random_directions = 8).score() > koehn);
        assert_eq!(climbed(|a| a.strategy = Strategy::Random).score(), 0.0);
    }

    #[test]
    fn fixed_and_bounded_coordinates() {
        for strategy in [Strategy::Koehn, Strategy::Powell, Strategy::Random, Strategy::Simplex] {
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
