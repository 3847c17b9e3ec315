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

/// A point on a surface, and the instrument that searches lines through it. One walker per start.
///
/// Laws: `score()` is the true score at `point()`; after `step(d, t)` the point has moved by t·d; `peak` moves
/// nothing, and its step is 0 exactly if its gain is 0.
pub trait Walker {
    /// Where it stands.
    fn point(&self) -> &[f64];
    /// The true score there; higher is better.
    fn score(&self) -> f64;
    /// The best point along a line through it.
    fn peak(&mut self, direction: Direction<'_>) -> Peak;
    /// Goes there, and computes the true score afresh.
    fn step(&mut self, direction: Direction<'_>, t: f64);
    /// Starts from somewhere else.
    fn place(&mut self, point: &[f64]);
}

/// When to stop climbing.
#[derive(Debug, Clone, Copy)]
pub struct Ascent {
    /// A move must bring more than this.
    pub min_gain: f64,
    /// And there are at most this many.
    pub max_moves: usize,
}

impl Default for Ascent {
    fn default() -> Self {
        Ascent { min_gain: 1e-6, max_moves: 1000 }
    }
}

/// Koehn's coordinate ascent (Cer et al. 2008, §2.2.2): a trial line search along every axis, then one step
/// along the one that gains most (the first of equals), until none gains more than `min_gain`.
///
/// A plateau can be so narrow that rounding misses it: a step that does not improve the true score is taken
/// back and its axis left out until another step succeeds.
pub fn koehn(walker: &mut dyn Walker, axes: &[usize], ascent: Ascent) {
    let mut missed = vec![false; axes.len()];
    for _ in 0..ascent.max_moves {
        let mut best: Option<(usize, Peak)> = None;
        for (i, &axis) in axes.iter().enumerate() {
            if missed[i] {
                continue;
            }
            let peak = walker.peak(Direction::Axis(axis));
            if peak.gain > best.map_or(ascent.min_gain, |(_, b)| b.gain) {
                best = Some((i, peak));
            }
        }
        let Some((i, peak)) = best else { return };
        let (before, point) = (walker.score(), walker.point().to_vec());
        walker.step(Direction::Axis(axes[i]), peak.step);
        if walker.score() > before {
            missed.fill(false);
        } else {
            walker.place(&point);
            missed[i] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// −|x−3| − |y+1| on the integers: plateaus with a known summit.
    struct Steps {
        at: [f64; 2],
    }

    impl Steps {
        fn value(at: [f64; 2]) -> f64 {
            -(at[0].floor() - 3.0).abs() - (at[1].floor() + 1.0).abs()
        }
    }

    impl Walker for Steps {
        fn point(&self) -> &[f64] {
            &self.at
        }
        fn score(&self) -> f64 {
            Self::value(self.at)
        }
        fn peak(&mut self, direction: Direction<'_>) -> Peak {
            let Direction::Axis(axis) = direction else { return Peak { step: 0.0, gain: 0.0 } };
            let here = self.score();
            let mut best = Peak { step: 0.0, gain: 0.0 };
            for t in -10..=10 {
                let mut at = self.at;
                at[axis] += f64::from(t);
                if Self::value(at) - here > best.gain {
                    best = Peak { step: f64::from(t), gain: Self::value(at) - here };
                }
            }
            best
        }
        fn step(&mut self, direction: Direction<'_>, t: f64) {
            if let Direction::Axis(axis) = direction {
                self.at[axis] += t;
            }
        }
        fn place(&mut self, point: &[f64]) {
            self.at.copy_from_slice(point);
        }
    }

    #[test]
    fn koehn_finds_the_summit_and_leaves_other_axes_alone() {
        let mut walker = Steps { at: [-4.5, 6.5] };
        koehn(&mut walker, &[0, 1], Ascent::default());
        assert_eq!(walker.score(), 0.0);
        let mut walker = Steps { at: [-4.5, 6.5] };
        koehn(&mut walker, &[1], Ascent::default());
        assert_eq!(walker.point(), [-4.5, -0.5]);
    }
}
