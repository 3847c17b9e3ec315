//! The upper envelope of lines y = b + m·x: which line is highest where.
//!
//! In an n-best list every candidate is such a line along a search direction (Och 2003), and only a few per
//! cent of them ever reach the envelope. Lines are points (m, b) in the dual plane, and the envelope is the
//! upper hull of these points: a concave chain. Any subset of the points gives a chain that lies nowhere
//! above the true one, so a point strictly below it can be ruled out by comparing b with the smallest of the
//! chain's chords at m. The chain of an earlier search, or the outermost points, is such a subset. What
//! survives is sorted by slope and run through a monotone stack: O(k·h + s log s) for k lines, h chords and
//! s survivors.

/// A piece of an upper envelope: the interval on which one line is highest, which ends where the next piece begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Piece {
    /// Index of the line that is highest here.
    pub line: u32,
    /// The x at which the piece begins; −∞ for the first piece.
    pub from: f64,
}

/// Finder of upper envelopes, with memory that it reuses from one search to the next.
///
/// ```
/// use luthier_optim::Envelope;
/// // Cer et al. (2008), table 2: slopes and intercepts of e1…e4.
/// let (slope, offset) = ([-0.1, -1.2, -0.9, -0.9], [-1.25, -0.8, -2.05, -0.55]);
/// let mut envelope = Envelope::default();
/// let pieces = envelope.find(&slope, &offset, &[]);
/// let lines: Vec<u32> = pieces.iter().map(|p| p.line + 1).collect();
/// assert_eq!(lines, [2, 4, 1]);
/// assert!((pieces[1].from - -5.0 / 6.0).abs() < 1e-12 && (pieces[2].from - 7.0 / 8.0).abs() < 1e-12);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Envelope {
    pieces: Vec<Piece>,
    points: Vec<Point>,
    chords: Vec<Chord>,
    coarse: Vec<Chord>,
    lines: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Point {
    m: f64,
    b: f64,
    line: u32,
}

/// The straight line between two neighbours of the chain, lowered by the rounding that it may carry.
#[derive(Debug, Clone, Copy)]
struct Chord {
    m: f64,
    b: f64,
    rise: f64,
}

impl Chord {
    fn between(p: Point, q: Point, slack: f64) -> Self {
        Chord { m: p.m, b: p.b - slack, rise: (q.b - p.b) / (q.m - p.m) }
    }
}

/// Chords of the coarse chain.
const COARSE: usize = 8;

/// Lines that are compared at once: a multiple of every vector width, and few enough to stay in registers.
const BLOCK: usize = 16;

impl Envelope {
    /// The pieces of the upper envelope of the lines y = offset + slope·x, from left to right; none if there are no lines.
    /// `seed` holds the indices of lines that are probably on it: empty, or those that a search with the same slopes found, in
    /// its order. Of identical lines the lowest index is kept.
    pub fn find(&mut self, slope: &[f64], offset: &[f64], seed: &[u32]) -> &[Piece] {
        self.pieces.clear();
        if slope.is_empty() {
            return &self.pieces;
        }
        let outermost;
        let fresh = seed.is_empty();
        let seed = if fresh {
            outermost = outer(slope, offset);
            &outermost
        } else {
            seed
        };
        self.points.clear();
        self.points.extend(seed.iter().map(|&l| point(slope, offset, l)));
        if fresh {
            self.sort();
        }
        self.chain();
        self.make_chords();
        self.survivors(slope, offset);
        self.sort();
        self.chain();
        &self.pieces
    }

    /// By slope; of parallel lines the highest first, of identical ones the first.
    fn sort(&mut self) {
        self.points
            .sort_unstable_by(|p, q| p.m.total_cmp(&q.m).then(q.b.total_cmp(&p.b)).then(p.line.cmp(&q.line)));
    }

    /// Keeps the upper hull of sorted points in `pieces`.
    fn chain(&mut self) {
        // The hull grows at the front of `points`; `pieces` runs beside it with the boundaries.
        self.pieces.clear();
        for i in 0..self.points.len() {
            let p = self.points[i];
            let mut from = f64::NEG_INFINITY;
            let mut keep = true;
            while let Some(top) = self.pieces.last() {
                let q = self.points[self.pieces.len() - 1];
                if q.m == p.m {
                    keep = false; // the same slope, and sorted so that q is higher or first
                    break;
                }
                from = (q.b - p.b) / (p.m - q.m);
                if from > top.from {
                    break;
                }
                self.pieces.pop();
                from = f64::NEG_INFINITY;
            }
            if keep {
                self.points[self.pieces.len()] = p;
                self.pieces.push(Piece { line: p.line, from });
            }
        }
    }

    fn make_chords(&mut self) {
        let hull = &self.points[..self.pieces.len()];
        let largest = hull.iter().map(|p| p.b.abs()).fold(1.0, f64::max);
        let slack = 1e-9 * largest;
        self.chords.clear();
        if let [only] = hull {
            self.chords.push(Chord { m: only.m, b: only.b - slack, rise: 0.0 });
        }
        self.chords.extend(hull.windows(2).map(|w| Chord::between(w[0], w[1], slack)));
        self.coarse.clear();
        if hull.len() <= COARSE + 1 {
            self.coarse.extend_from_slice(&self.chords);
        } else {
            let knot = |i: usize| hull[i * (hull.len() - 1) / COARSE];
            self.coarse.extend((0..COARSE).map(|i| Chord::between(knot(i), knot(i + 1), slack)));
        }
    }

    /// Puts every line that may reach above the chain into `points`. A coarse chain through a few of its knots rules
    /// most lines out, all at once; the rest are compared with the whole.
    fn survivors(&mut self, slope: &[f64], offset: &[f64]) {
        self.lines.clear();
        above(slope, offset, &self.coarse, &mut self.lines);
        self.points.clear();
        for &line in &self.lines {
            let p = point(slope, offset, line);
            if self.chords.iter().any(|c| p.b >= c.b + c.rise * (p.m - c.m)) {
                self.points.push(p);
            }
        }
    }
}

/// The lines whose offset is not below every chord at their slope. Compiled for several instruction sets; without
/// fused operations all give the same bits.
#[multiversion::multiversion(targets("x86_64+avx512f+avx512vl+avx512dq", "x86_64+avx2"))]
fn above(slope: &[f64], offset: &[f64], chords: &[Chord], out: &mut Vec<u32>) {
    let (slopes, last_slopes) = slope.as_chunks::<BLOCK>();
    let (offsets, last_offsets) = offset.as_chunks::<BLOCK>();
    let mut start = 0;
    for (m, b) in slopes.iter().zip(offsets) {
        let mut floor = [f64::INFINITY; BLOCK];
        for c in chords {
            for i in 0..BLOCK {
                let y = c.b + c.rise * (m[i] - c.m);
                floor[i] = if y < floor[i] { y } else { floor[i] };
            }
        }
        let mut any = false;
        for i in 0..BLOCK {
            any |= b[i] >= floor[i];
        }
        if any {
            out.extend((0..BLOCK).filter(|&i| b[i] >= floor[i]).map(|i| (start + i) as u32));
        }
        start += BLOCK;
    }
    for (i, (m, b)) in last_slopes.iter().zip(last_offsets).enumerate() {
        if chords.iter().any(|c| *b >= c.b + c.rise * (m - c.m)) {
            out.push((start + i) as u32);
        }
    }
}

fn point(slope: &[f64], offset: &[f64], line: u32) -> Point {
    Point { m: slope[line as usize], b: offset[line as usize], line }
}

/// The lines with the smallest and the largest slope and the one with the largest offset.
fn outer(slope: &[f64], offset: &[f64]) -> [u32; 3] {
    let (mut low, mut high, mut top) = (0, 0, 0);
    for i in 1..slope.len() {
        let better = |j: usize| offset[i] > offset[j];
        if slope[i] < slope[low] || (slope[i] == slope[low] && better(low)) {
            low = i;
        }
        if slope[i] > slope[high] || (slope[i] == slope[high] && better(high)) {
            high = i;
        }
        if better(top) {
            top = i;
        }
    }
    [low as u32, high as u32, top as u32]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The highest line at x; of identical lines the first.
    fn highest(m: &[f64], b: &[f64], x: f64) -> f64 {
        m.iter().zip(b).map(|(m, b)| b + m * x).fold(f64::NEG_INFINITY, f64::max)
    }

    proptest! {
        /// Small integers make parallel, identical and concurrent lines frequent.
        #[test]
        fn equals_brute_force(
            lines in prop::collection::vec((-4i32..5, -6i32..7), 1..90),
            shift in prop::collection::vec(-3i32..4, 90),
        ) {
            let m: Vec<f64> = lines.iter().map(|l| f64::from(l.0)).collect();
            let mut b: Vec<f64> = lines.iter().map(|l| f64::from(l.1)).collect();
            let mut envelope = Envelope::default();
            let mut seed = Vec::new();
            // The second round reuses the first one's envelope as the seed, with other offsets.
            for round in 0..2 {
                let pieces = envelope.find(&m, &b, &seed).to_vec();
                prop_assert_eq!(pieces[0].from, f64::NEG_INFINITY);
                for (i, p) in pieces.iter().enumerate() {
                    let to = pieces.get(i + 1).map_or(p.from.max(0.0) + 2.0, |q| q.from);
                    let from = if p.from.is_finite() { p.from } else { to - 2.0 };
                    prop_assert!(from < to);
                    let x = f64::midpoint(from, to);
                    let line = p.line as usize;
                    prop_assert!((b[line] + m[line] * x - highest(&m, &b, x)).abs() < 1e-9);
                    let first = (0..m.len()).find(|&j| m[j] == m[line] && b[j] == b[line]);
                    prop_assert_eq!(first, Some(line), "round {}", round);
                }
                seed = pieces.iter().map(|p| p.line).collect();
                for (b, s) in b.iter_mut().zip(&shift) {
                    *b += f64::from(*s);
                }
            }
        }
    }

    /// Worked examples of travatar's tests: {offset, slope}, and where the envelope breaks.
    #[test]
    fn peers_examples() {
        let breaks = |lines: &[(f64, f64)]| {
            let (b, m): (Vec<f64>, Vec<f64>) = lines.iter().copied().unzip();
            Envelope::default().find(&m, &b, &[]).iter().skip(1).map(|p| p.from).collect::<Vec<_>>()
        };
        assert_eq!(breaks(&[(1., -1.), (3., 1.), (1., 1.)]), [-1.0]);
        assert_eq!(breaks(&[(7., -1.), (3., 1.), (6., 0.)]), [1.0, 3.0]);
        assert!(breaks(&[(7., 2.), (3., 2.)]).is_empty());
    }
}
