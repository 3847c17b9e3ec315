//! Climbing a piecewise constant surface by exact line searches (Och 2003; Cer et al. 2008).

/// Along which line.
#[derive(Debug, Clone, Copy)]
pub enum Direction<'a> {
    /// One coordinate.
    Axis(usize),
    /// Any vector, one number per coordinate.
    Vector(&'a [f64]),
}

/// The best point on a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peak {
    /// How far to go; 0 where nothing is better than the present point.
    pub step: f64,
    /// What it brings, judged on that line.
    pub gain: f64,
}

impl Peak {
    /// Stay.
    pub const NONE: Peak = Peak { step: 0.0, gain: 0.0 };
}

/// A point on a surface, and the instrument that searches lines through it. One walker per start.
///
/// Laws: `score()` is the true score at `point()`; after `step(d, t)` the point has moved by t·d; `peak` moves
/// nothing, stays within the given steps, and its step is 0 exactly if its gain is 0.
pub trait Walker {
    /// Where it stands.
    fn point(&self) -> &[f64];
    /// The true score there; higher is better.
    fn score(&self) -> f64;
    /// The best point along a line through it, no further than `within` allows.
    fn peak(&mut self, direction: Direction<'_>, within: (f64, f64)) -> Peak;
    /// Goes there, and computes the true score afresh.
    fn step(&mut self, direction: Direction<'_>, t: f64);
    /// Starts from somewhere else.
    fn place(&mut self, point: &[f64]);
}

/// How to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Strategy {
    /// The best of trial searches along all axes, again and again (Cer et al. 2008, §2.2.2).
    Koehn,
    /// Directions that sum up what earlier rounds achieved (Press et al. 2007; Och 2003).
    Powell,
    /// Gaussian directions (Cer et al. 2008, §3.1).
    Random,
    /// Downhill simplex on the score itself (Nelder and Mead 1965).
    Simplex,
}

/// A search with its limits.
#[derive(Debug, Clone)]
pub struct Ascent {
    /// How.
    pub strategy: Strategy,
    /// Coordinates that may move.
    pub free: Vec<usize>,
    /// Least and largest value of each coordinate; infinite where unbounded.
    pub bounds: Vec<(f64, f64)>,
    /// Random directions that `Koehn` tries besides the axes, drawn anew for each move.
    pub random_directions: usize,
    /// Directions in a row without gain after which `Random` stops.
    pub patience: usize,
    /// Whether lines are judged by smoothed values. Then a move need not raise the true score, and cycles are
    /// possible: there are fewer moves.
    pub smoothed: bool,
    /// A move must bring more than this.
    pub min_gain: f64,
}

impl Ascent {
    /// Koehn's search over `n` free and unbounded coordinates.
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

    /// Climbs from where the walker stands. `normal` draws from N(0, 1).
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
    fn go(&self, walker: &mut dyn Walker, direction: Direction<'_>, peak: Peak) -> bool {
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
            if self.go(walker, directions[i], peak) {
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
        if peak.gain > self.min_gain && self.go(walker, direction, peak) { peak.gain } else { 0.0 }
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
        let start = walker.point().to_vec();
        let size = self.free.iter().map(|&i| start[i].abs()).fold(0.0, f64::max).max(0.1) * 0.5;
        let mut left = 200 * n;
        let mut value = |walker: &mut dyn Walker, x: &[f64]| {
            let mut point = start.clone();
            for (&i, &x) in self.free.iter().zip(x) {
                point[i] = x.clamp(self.bounds[i].0, self.bounds[i].1);
            }
            walker.place(&point);
            left = left.saturating_sub(1);
            (walker.score(), left > 0)
        };
        let origin: Vec<f64> = self.free.iter().map(|&i| start[i]).collect();
        let mut corners: Vec<(f64, Vec<f64>)> = Vec::new();
        for corner in 0..=n {
            let mut x = origin.clone();
            if corner > 0 {
                x[corner - 1] += size;
            }
            corners.push((value(walker, &x).0, x));
        }
        let mut going = n > 0;
        while going {
            corners.sort_by(|a, b| b.0.total_cmp(&a.0));
            if corners[0].0 - corners[n].0 <= self.min_gain {
                break;
            }
            let worst = corners[n].clone();
            let centre: Vec<f64> =
                (0..n).map(|j| corners[..n].iter().map(|c| c.1[j]).sum::<f64>() / n as f64).collect();
            let at =
                |t: f64| -> Vec<f64> { centre.iter().zip(&worst.1).map(|(c, w)| c + t * (c - w)).collect() };
            let mut try_at = |t: f64| {
                let x = at(t);
                let (score, more) = value(walker, &x);
                going = more;
                (score, x)
            };
            let reflected = try_at(1.0);
            if reflected.0 > corners[0].0 {
                let expanded = try_at(2.0);
                corners[n] = if expanded.0 > reflected.0 { expanded } else { reflected };
            } else if reflected.0 > corners[n - 1].0 {
                corners[n] = reflected;
            } else {
                let contracted = try_at(if reflected.0 > worst.0 { 0.5 } else { -0.5 });
                if contracted.0 > worst.0.max(reflected.0) {
                    corners[n] = contracted;
                } else {
                    let best = corners[0].1.clone();
                    for corner in &mut corners[1..] {
                        let x: Vec<f64> =
                            corner.1.iter().zip(&best).map(|(x, b)| f64::midpoint(*x, *b)).collect();
                        *corner = (value(walker, &x).0, x);
                    }
                }
            }
        }
        corners.sort_by(|a, b| b.0.total_cmp(&a.0));
        value(walker, &corners[0].1);
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
