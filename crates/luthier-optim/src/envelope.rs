//! Upper envelope of a set of lines y = b + m·x: max over i of bᵢ + mᵢx as a function of x.
//!
//! In a MERT line search along w + x·d, every candidate of an n-best list is such a line with m = d·h and b = w·h for
//! its features h (Och 2003; Cer et al. 2008, §2.1). Lines i and j intersect at x = (bᵢ − bⱼ)/(mⱼ − mᵢ).
//!
//! By duality a line is the point (m, b), and the upper envelope is the upper convex hull of these points, a concave
//! chain. The hull of any subset of the points lies nowhere above the full hull, so a point strictly below it cannot
//! be on the full hull: b is compared with the smallest of the chords of the subset's hull, evaluated at m. The
//! subset is the envelope of a previous search, or the extreme points. This filter pays because only a few per cent
//! of the candidates of an n-best list reach the envelope. The survivors are sorted by slope and pushed on a stack,
//! from which the lines that the new one hides are popped. If all survivors belong to the subset's hull, that hull is the
//! envelope. If many survive, as with a subset that was found far away, the subset first gets the highest line above each of
//! its chords. A copy of the lines in single precision ([`Narrow`]) halves the memory that the filter reads; its chords are
//! lowered by a bound on the rounding errors, so that the result is the same.
//!
//! The cost is O(k·h + s log s) for k lines, h chords and s survivors, compared with O(k log k) for sorting all lines
//! and O(k²) for stepping from one intersection to the next (Cer et al. 2008, algorithm 1).

/// A piece of an upper envelope: the interval on which one line is highest. It ends where the next piece begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Piece {
    /// Index of the line that is highest on this interval.
    pub line: u32,
    /// The x at which the interval begins; −∞ for the first piece.
    pub from: f64,
}

/// Computes upper envelopes of lines, and reuses its buffers from one call to the next.
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
    /// Points of the current subset; the hull is built in place at the front.
    points: Vec<Point>,
    /// All chords of the subset's hull.
    chords: Vec<Chord>,
    /// Chords of a coarse chain through some points of that hull.
    coarse: Vec<Chord>,
    /// All chords, and the coarse chain, in single precision: value at slope 0, and rise.
    narrow: Vec<(f32, f32)>,
    narrow_coarse: Vec<(f32, f32)>,
    /// Whether a line is on the hull; false between searches.
    on_hull: Vec<bool>,
    /// Lines that are not below the coarse chain.
    lines: Vec<u32>,
}

/// A line y = b + m·x as a point of the dual plane.
#[derive(Debug, Clone, Copy)]
struct Point {
    m: f64,
    b: f64,
    line: u32,
}

/// The chord between two neighbouring points of a hull, lowered by a bound on the rounding error: its value at m′ is
/// b + rise·(m′ − m).
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

/// Number of chords of the coarse chain.
const COARSE: usize = 8;

/// Number of lines above the coarse chain, besides those of the hull, from which the hull is refined.
const MANY: usize = 8;

/// Number of lines that are compared at once: a multiple of every vector width that still fits into registers.
const BLOCK: usize = 16;

/// A copy of lines in single precision, by which most of them are ruled out. It is padded with lines of offset −∞ to a
/// multiple of [`Narrow::BLOCK`].
#[derive(Debug, Clone, Copy)]
pub struct Narrow<'a> {
    /// Slopes, rounded to the nearest.
    pub slope: &'a [[f32; Narrow::BLOCK]],
    /// Offsets, rounded to the nearest.
    pub offset: &'a [[f32; Narrow::BLOCK]],
    /// A bound on the absolute values of the slopes.
    pub largest_slope: f64,
    /// A bound on the absolute values of the offsets.
    pub largest_offset: f64,
}

impl Narrow<'_> {
    /// Number of lines that are compared at once.
    pub const BLOCK: usize = 16;
}

/// A line on an envelope: its slope and index.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seed {
    /// Slope of the line.
    pub slope: f64,
    /// Index of the line.
    pub line: u32,
}

impl Envelope {
    /// Returns the pieces of the upper envelope of the lines y = offset + slope·x, from left to right; no pieces if
    /// there are no lines. Among identical lines the one with the lowest index is kept.
    ///
    /// `seed` holds the indices of lines that are likely to be on the envelope: empty, or the lines of an envelope
    /// that was found for the same slopes, in its order. It affects the running time only.
    pub fn find(&mut self, slope: &[f64], offset: &[f64], seed: &[u32]) -> &[Piece] {
        let seed = seed.iter().map(|&line| Seed { slope: slope[line as usize], line });
        self.find_from(slope, offset, None, seed)
    }

    /// Returns the same pieces as [`Envelope::find`], with less memory traffic: slopes of the seed need not be looked up,
    /// and other lines are looked at in single precision first.
    pub fn find_from(
        &mut self,
        slope: &[f64],
        offset: &[f64],
        narrow: Option<Narrow<'_>>,
        seed: impl Iterator<Item = Seed>,
    ) -> &[Piece] {
        self.pieces.clear();
        if slope.is_empty() {
            return &self.pieces;
        }
        self.points.clear();
        self.points.extend(seed.map(|s| Point {
            m: s.slope + 0.0,
            b: offset[s.line as usize] + 0.0,
            line: s.line,
        }));
        if self.points.is_empty() {
            self.points.extend(outer(slope, offset).map(|line| point(slope, offset, line)));
            self.sort();
        }
        self.finish(slope, offset, narrow)
    }

    /// Returns the same pieces as [`Envelope::find`]; `near` holds any lines that may be on the envelope, in any order.
    pub fn find_near(
        &mut self,
        slope: &[f64],
        offset: &[f64],
        narrow: Option<Narrow<'_>>,
        near: impl Iterator<Item = u32>,
    ) -> &[Piece] {
        self.pieces.clear();
        if slope.is_empty() {
            return &self.pieces;
        }
        self.points.clear();
        self.points.extend(near.chain(outer(slope, offset)).map(|line| point(slope, offset, line)));
        self.sort();
        self.finish(slope, offset, narrow)
    }

    /// Builds the envelope from the sorted points of a subset of the lines, which includes those of extreme slopes.
    fn finish(&mut self, slope: &[f64], offset: &[f64], narrow: Option<Narrow<'_>>) -> &[Piece] {
        self.chain();
        self.make_chords();
        if self.survivors(slope, offset, narrow) {
            self.sort();
            self.chain();
        }
        &self.pieces
    }

    /// Returns the pieces of the last envelope, from left to right.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Returns the lines of the last envelope, from left to right.
    pub fn lines(&self) -> impl ExactSizeIterator<Item = Seed> + '_ {
        self.points[..self.pieces.len()].iter().map(|p| Seed { slope: p.m, line: p.line })
    }

    /// Sorts points by slope; parallel lines by decreasing offset, identical lines by index.
    fn sort(&mut self) {
        self.points
            .sort_unstable_by(|p, q| p.m.total_cmp(&q.m).then(q.b.total_cmp(&p.b)).then(p.line.cmp(&q.line)));
    }

    /// Builds the upper hull of the sorted points: `pieces`, and the same points at the front of `points`.
    fn chain(&mut self) {
        self.pieces.clear();
        for i in 0..self.points.len() {
            let p = self.points[i];
            let mut from = f64::NEG_INFINITY;
            let mut keep = true;
            while let Some(top) = self.pieces.last() {
                let q = self.points[self.pieces.len() - 1];
                if q.m == p.m {
                    keep = false; // parallel: in this order q is the higher line, or the first of identical ones
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

    /// Computes the chords of the hull in `points`, all of them and a coarse selection.
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

    /// Writes the hull and every line that is not strictly below it to `points`. Most lines are ruled out by the coarse
    /// chain, several at once; the rest are compared with all chords. Returns false if there are no others than the lines
    /// of the hull; `points` is then as before.
    fn survivors(&mut self, slope: &[f64], offset: &[f64], narrow: Option<Narrow<'_>>) -> bool {
        self.lines.clear();
        let mut narrow = narrow.filter(|&lines| self.narrow_chords(lines));
        if let Some(lines) = narrow {
            above_narrow(lines.slope, lines.offset, &self.narrow_coarse, &mut self.lines);
            if self.lines.len() > self.pieces.len() + MANY {
                self.refine(slope, offset, lines);
                self.lines.clear();
                narrow = Some(lines).filter(|&lines| self.narrow_chords(lines));
                if narrow.is_some() {
                    above_narrow(lines.slope, lines.offset, &self.narrow_coarse, &mut self.lines);
                }
            }
        }
        if narrow.is_none() {
            above(slope, offset, &self.coarse, &mut self.lines);
        }
        // The lines of the hull are not below it.
        if self.lines.len() == self.pieces.len() {
            return false;
        }
        self.on_hull.resize(self.on_hull.len().max(slope.len()), false);
        self.pieces.iter().for_each(|p| self.on_hull[p.line as usize] = true);
        let (on_hull, chords, narrow_chords) = (&self.on_hull, &self.chords, &self.narrow);
        self.lines.retain(|&line| {
            if on_hull[line as usize] {
                return false;
            }
            if let Some(lines) = narrow {
                let (block, i) = (line as usize / Narrow::BLOCK, line as usize % Narrow::BLOCK);
                let (m, b) = (lines.slope[block][i], lines.offset[block][i]);
                if narrow_chords.iter().all(|c| b < c.0 + c.1 * m) {
                    return false;
                }
            }
            let p = point(slope, offset, line);
            chords.iter().any(|c| p.b >= c.b + c.rise * (p.m - c.m))
        });
        self.pieces.iter().for_each(|p| self.on_hull[p.line as usize] = false);
        if self.lines.is_empty() {
            return false;
        }
        self.points.truncate(self.pieces.len());
        self.points.extend(self.lines.iter().map(|&line| point(slope, offset, line)));
        true
    }

    /// Adds the highest line above each chord of the coarse chain to the hull.
    fn refine(&mut self, slope: &[f64], offset: &[f64], lines: Narrow<'_>) {
        self.points.truncate(self.pieces.len());
        for chord in &self.narrow_coarse {
            let line = highest(lines.slope, lines.offset, chord.1);
            self.points.push(point(slope, offset, line));
        }
        self.sort();
        self.chain();
        self.make_chords();
    }

    /// Rounds all chords and the coarse chain to single precision, lowered by a bound on the errors of comparing them with
    /// lines in single precision. Returns false if numbers are too large for that.
    fn narrow_chords(&mut self, lines: Narrow<'_>) -> bool {
        // Half a unit in the last place for rounding each of value at 0, rise, slope, product, sum and offset.
        let unit = f64::from(f32::EPSILON);
        let mut largest: f64 = 0.0;
        let mut rounded = |c: &Chord| {
            let at_zero = c.b - c.rise * c.m;
            let size = at_zero.abs() + c.rise.abs() * lines.largest_slope;
            let error = unit * (4.0 * size + lines.largest_offset) + f64::from(f32::MIN_POSITIVE);
            largest = largest.max(size + lines.largest_offset);
            ((at_zero - error) as f32, c.rise as f32)
        };
        self.narrow.clear();
        self.narrow.extend(self.chords.iter().map(&mut rounded));
        self.narrow_coarse.clear();
        self.narrow_coarse.extend(self.coarse.iter().map(&mut rounded));
        largest < 1e30
    }
}

/// Returns the line that is farthest above a chord with the given rise, up to rounding; the first among equals.
#[multiversion::multiversion(targets("x86_64+avx512f+avx512vl+avx512dq", "x86_64+avx2"))]
fn highest(slope: &[[f32; Narrow::BLOCK]], offset: &[[f32; Narrow::BLOCK]], rise: f32) -> u32 {
    let mut top = [f32::NEG_INFINITY; Narrow::BLOCK];
    let mut at = [0u32; Narrow::BLOCK];
    for (block, (m, b)) in slope.iter().zip(offset).enumerate() {
        for i in 0..Narrow::BLOCK {
            let y = b[i] - rise * m[i];
            at[i] = if y > top[i] { block as u32 } else { at[i] };
            top[i] = if y > top[i] { y } else { top[i] };
        }
    }
    let mut best = 0;
    for i in 1..Narrow::BLOCK {
        if top[i] > top[best] {
            best = i;
        }
    }
    at[best] * Narrow::BLOCK as u32 + best as u32
}

/// Appends to `out` the lines whose offset is not below all chords at their slope. Compiled for several instruction
/// sets, which give the same bits because no fused multiply-add is used.
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

/// Does what [`above`] does, in single precision.
#[multiversion::multiversion(targets("x86_64+avx512f+avx512vl+avx512dq", "x86_64+avx2"))]
fn above_narrow(
    slope: &[[f32; Narrow::BLOCK]],
    offset: &[[f32; Narrow::BLOCK]],
    chords: &[(f32, f32)],
    out: &mut Vec<u32>,
) {
    let mut start = 0;
    for (m, b) in slope.iter().zip(offset) {
        let mut floor = [f32::INFINITY; Narrow::BLOCK];
        for &(at_zero, rise) in chords {
            for i in 0..Narrow::BLOCK {
                let y = at_zero + rise * m[i];
                floor[i] = if y < floor[i] { y } else { floor[i] };
            }
        }
        let mut above = [0_u16; Narrow::BLOCK];
        for i in 0..Narrow::BLOCK {
            above[i] = u16::from(b[i] >= floor[i]) << i;
        }
        let mut mask = above.iter().fold(0, |a, b| a | b);
        while mask != 0 {
            out.push(start + mask.trailing_zeros());
            mask &= mask - 1;
        }
        start += Narrow::BLOCK as u32;
    }
}

/// The dual point of a line, by its index. Adding 0 turns −0 into 0, which are sorted as different numbers.
fn point(slope: &[f64], offset: &[f64], line: u32) -> Point {
    Point { m: slope[line as usize] + 0.0, b: offset[line as usize] + 0.0, line }
}

/// Indices of the lines with the smallest slope, the largest slope, and the largest offset.
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

    /// Value of the upper envelope at x.
    fn highest(m: &[f64], b: &[f64], x: f64) -> f64 {
        m.iter().zip(b).map(|(m, b)| b + m * x).fold(f64::NEG_INFINITY, f64::max)
    }

    proptest! {
        /// With small integers, parallel, identical and concurrent lines are frequent.
        #[test]
        fn equals_brute_force(
            lines in prop::collection::vec((-4i32..5, -6i32..7), 1..90),
            shift in prop::collection::vec(-3i32..4, 90),
        ) {
            let m: Vec<f64> = lines.iter().map(|l| f64::from(l.0)).collect();
            let mut b: Vec<f64> = lines.iter().map(|l| f64::from(l.1)).collect();
            let mut envelope = Envelope::default();
            let mut seed = Vec::new();
            // The second round uses the envelope of the first as the seed, with different offsets.
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

    proptest! {
        /// Single precision changes nothing, also where lines differ by less than it can tell.
        #[test]
        fn single_precision_gives_the_same_pieces(
            lines in prop::collection::vec((-40.0f64..40.0, -1.0f64..1.0, 0u8..3), 1..150),
            scale in prop::sample::select(vec![1e-3, 1.0, 1e6, 1e25, 1e35]),
        ) {
            let near = |x: f64, kind: u8| match kind {
                0 => x,
                1 => x.round(),
                _ => x.round() * (1.0 + 1e-9 * x),
            };
            let m: Vec<f64> = lines.iter().map(|l| scale * near(l.0, l.2)).collect();
            let b: Vec<f64> = lines.iter().map(|l| scale * (near(10.0 * l.1, l.2) - 0.1 * l.0 * l.0)).collect();
            let blocks = |x: &[f64], rest: f32| {
                let mut all = vec![[rest; Narrow::BLOCK]; x.len().div_ceil(Narrow::BLOCK)];
                x.iter().enumerate().for_each(|(i, x)| all[i / Narrow::BLOCK][i % Narrow::BLOCK] = *x as f32);
                all
            };
            let most = |x: &[f64]| x.iter().map(|x| x.abs()).fold(0.0, f64::max);
            let (slope, offset) = (blocks(&m, 0.0), blocks(&b, f32::NEG_INFINITY));
            let narrow = Narrow {
                slope: &slope,
                offset: &offset,
                largest_slope: most(&m),
                largest_offset: most(&b),
            };
            let (mut wide, mut tight) = (Envelope::default(), Envelope::default());
            let expected = wide.find(&m, &b, &[]).to_vec();
            prop_assert_eq!(tight.find_from(&m, &b, Some(narrow), std::iter::empty()), &expected[..]);
            let other: Vec<f64> = b.iter().enumerate().map(|(i, b)| b + scale * (i % 5) as f64).collect();
            wide.find(&m, &other, &[]);
            let seed: Vec<Seed> = wide.lines().collect();
            prop_assert_eq!(tight.find_from(&m, &b, Some(narrow), seed.into_iter()), &expected[..]);
            let near = (0..m.len() as u32).step_by(3);
            prop_assert_eq!(tight.find_near(&m, &b, Some(narrow), near), &expected[..]);
        }
    }

    /// Examples from travatar's tests: pairs of offset and slope, and the boundaries of their envelope.
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
