//! Exact line search over n-best lists (Och 2003; Cer et al. 2008, §2.1), and smoothing of plateaus (§3.2).
//!
//! Along w + γd every candidate is a line b + γm with b = w·h and m = d·h. The upper envelope of each segment's
//! lines gives the values of γ where its best candidate changes; the changes of all segments are sorted and
//! swept once, with the corpus statistics updated by differences. A search costs O(k log k) per segment of k
//! candidates, and one metric evaluation per interval.

use crate::{Candidates, candidates::argmax};
use luthier_core::Weights;
use luthier_metric::{Metric, add};
use luthier_optim::{Direction, Envelope, Narrow, Peak, Piece, Seed, Walker};
use serde::{Deserialize, Serialize};
use std::{ops::Range, sync::Arc};

/// Boundaries closer than this, relative to their absolute value, are merged.
const SAME: f64 = 1e-12;

/// The corpus score along a line w + γd: piecewise constant, `scores[i]` from `bounds[i - 1]` to `bounds[i]`,
/// the outer intervals unbounded.
///
/// Neighbouring intervals have different statistics; each interval is a plateau.
///
/// ```
/// use luthier_tune::{mert::{Smoothing, Surface}};
/// let surface = Surface { bounds: vec![-1.0, 1.0, 1.5], scores: vec![20.0, 30.0, 50.0, 40.0] };
/// let everywhere = (f64::NEG_INFINITY, f64::INFINITY);
/// let peak = surface.peak(30.0, Smoothing::NONE, everywhere);
/// assert_eq!((peak.step, peak.gain), (1.25, 20.0)); // the middle of the best plateau
/// let smoothed = surface.smoothed(Smoothing::max(3)); // the worst of a plateau and its neighbours
/// assert_eq!(smoothed, [20.0, 20.0, 30.0, 40.0]);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Surface {
    /// Values of γ where the score changes, in ascending order.
    pub bounds: Vec<f64>,
    /// Score of each interval, one more than there are bounds; higher is better.
    pub scores: Vec<f64>,
}

/// Smoothing of a plateau's score over its neighbours on the line (Cer et al. 2008, §3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Smooth {
    /// No smoothing: a plateau is judged by its own score.
    #[default]
    None,
    /// Mean score of the plateaus in the window.
    Average,
    /// Worst score of the plateaus in the window (maximum loss).
    Max,
}

/// Smoothing of plateaus in a line search, with the size of its window (Cer et al. 2008, §3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
pub struct Smoothing {
    /// Smoothing of plateaus (intervals of constant score) by the average or the worst score of their neighbours (Cer
    /// et al. 2008, §3.2).
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub smooth: Smooth,
    /// Number of plateaus in the window of --smooth, an odd number.
    #[cfg_attr(feature = "clap", arg(long, default_value_t = Smoothing::NONE.window, value_name = "N", value_parser = crate::recipe::flag::odd))]
    pub window: u32,
}

impl Default for Smoothing {
    fn default() -> Self {
        Smoothing::NONE
    }
}

impl Smoothing {
    /// No smoothing: a plateau is judged by its own score.
    pub const NONE: Smoothing = Smoothing { smooth: Smooth::None, window: 3 };

    /// Smoothing by the mean score over `window` plateaus centred on the plateau; `window` is odd.
    pub fn average(window: u32) -> Self {
        Smoothing { smooth: Smooth::Average, window }
    }

    /// Smoothing by the worst score over `window` plateaus centred on the plateau; `window` is odd.
    pub fn max(window: u32) -> Self {
        Smoothing { smooth: Smooth::Max, window }
    }

    /// Returns whether there is no smoothing, so that every plateau is judged by its own score.
    pub fn is_none(self) -> bool {
        self.smooth == Smooth::None
    }
}

impl Surface {
    /// Returns the best step from γ = 0 within the bounds `within`, and its gain over `here`, the true score
    /// at 0.
    ///
    /// With smoothing, all plateaus are judged by their smoothed scores, including the one that contains γ = 0;
    /// without smoothing by their true scores. Among equally good plateaus the one that contains 0 is chosen,
    /// then the widest, then the first. The step is 0 if the best plateau contains 0 (otherwise weights would
    /// drift), else the middle of the plateau; in an unbounded plateau it lies beyond the last boundary by the
    /// median gap between boundaries, but at least by 0.1.
    pub fn peak(&self, here: f64, smoothing: Smoothing, within: (f64, f64)) -> Peak {
        let smoothed;
        let (values, here) = if smoothing.is_none() {
            (&self.scores, here)
        } else {
            smoothed = self.smoothed(smoothing);
            let at_zero = smoothed[self.bounds.partition_point(|&x| x <= 0.0)];
            (&smoothed, at_zero)
        };
        match self.best(values, within) {
            Some((i, value, false)) if value > here => {
                Peak { step: self.inside(i, within), gain: value - here }
            }
            _ => Peak::NONE,
        }
    }

    /// Returns the interval with the highest of `values` within the bounds `within`, its value, and whether it
    /// contains 0; among equals the one that contains 0, then the widest, then the first.
    fn best(&self, values: &[f64], within: (f64, f64)) -> Option<(usize, f64, bool)> {
        let mut best: Option<(usize, f64, f64)> = None; // interval, value, width
        for (i, &value) in values.iter().enumerate() {
            if best.is_some_and(|b| value < b.1) {
                continue;
            }
            let (low, high) = self.interval(i);
            if high <= within.0 || low >= within.1 {
                continue;
            }
            let (low, high) = (low.max(within.0), high.min(within.1));
            let width = if low < 0.0 && high > 0.0 { f64::INFINITY } else { (high - low).min(f64::MAX) };
            if best.is_none_or(|(_, v, w)| value > v || width > w) {
                best = Some((i, value, width));
            }
        }
        best.map(|(i, value, width)| (i, value, width == f64::INFINITY))
    }

    /// Returns the smoothed score of each plateau, over a window centred on it and truncated at the ends of the
    /// line.
    pub fn smoothed(&self, smoothing: Smoothing) -> Vec<f64> {
        let over = |window: usize, combine: &dyn Fn(&[f64]) -> f64| {
            let half = window / 2;
            let n = self.scores.len();
            (0..n).map(|i| combine(&self.scores[i.saturating_sub(half)..n.min(i + half + 1)])).collect()
        };
        let window = smoothing.window as usize;
        match smoothing.smooth {
            Smooth::None => self.scores.clone(),
            Smooth::Average => over(window, &|s| s.iter().sum::<f64>() / s.len() as f64),
            Smooth::Max => over(window, &|s| s.iter().copied().fold(f64::INFINITY, f64::min)),
        }
    }

    /// Returns the lower and upper end of interval `i`; the outer ends are infinite.
    pub fn interval(&self, i: usize) -> (f64, f64) {
        let low = if i == 0 { f64::NEG_INFINITY } else { self.bounds[i - 1] };
        (low, self.bounds.get(i).copied().unwrap_or(f64::INFINITY))
    }

    /// Returns the step to interval `i` within the bounds `within`: its middle, or beyond its boundary if it is
    /// unbounded.
    fn inside(&self, i: usize, within: (f64, f64)) -> f64 {
        let (low, high) = self.interval(i);
        match (low.max(within.0), high.min(within.1)) {
            (low, high) if low.is_finite() && high.is_finite() => f64::midpoint(low, high),
            (low, _) if low.is_finite() => low + self.beyond(),
            (_, high) if high.is_finite() => high - self.beyond(),
            _ => 0.0,
        }
    }

    /// Returns the distance of a step beyond the last boundary: the median gap between boundaries, at least 0.1.
    fn beyond(&self) -> f64 {
        let mut gaps: Vec<f64> = self.bounds.windows(2).map(|w| w[1] - w[0]).collect();
        if gaps.is_empty() {
            return 0.1;
        }
        let middle = gaps.len() / 2;
        (*gaps.select_nth_unstable_by(middle, f64::total_cmp).1).max(0.1)
    }
}

/// Change of one segment's best candidate: statistics `from` are replaced by `to`, both as rows of the
/// statistics table.
#[derive(Debug, Clone, Copy)]
struct Change {
    from: u32,
    to: u32,
}

/// Statistics that the changes of a sweep refer to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stats<'a> {
    /// Rows of a table, by class.
    Table(&'a [f32]),
    /// Differences as bytes, by number of the change.
    Packed(&'a [Packed]),
}

/// Position γ of a change as an ordered integer, and index of the change, which breaks ties.
type Place = (u64, u32);

/// Maps a float to an integer such that the order is kept.
fn ordered(x: f64) -> u64 {
    let bits = x.to_bits();
    if bits >> 63 == 1 { !bits } else { bits ^ (1 << 63) }
}

/// Inverse of [`ordered`].
fn unordered(bits: u64) -> f64 {
    f64::from_bits(if bits >> 63 == 1 { bits ^ (1 << 63) } else { !bits })
}

/// Sweep over a line: collects the changes of all segments' best candidates and computes the corpus score of
/// every interval. Statistics are given by class, their row in a table.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    changes: Vec<Change>,
    /// Positions of the changes.
    places: Vec<Place>,
    /// Corpus statistics; before the sweep those of γ = −∞.
    totals: Vec<f64>,
    surface: Surface,
}

impl Sweep {
    /// Clears the sweep, for statistics of `width` numbers.
    pub(crate) fn begin(&mut self, width: usize) {
        self.changes.clear();
        self.places.clear();
        self.totals.clear();
        self.totals.resize(width, 0.0);
    }

    /// Adds the statistics of a segment's best candidate at γ = −∞.
    pub(crate) fn start(&mut self, stats: &[f32], class: u32) {
        let stats = &stats[class as usize * self.totals.len()..];
        add(&mut self.totals, stats);
    }

    /// Adds a segment's envelope: where each piece begins, with the class of its line.
    fn add(&mut self, stats: &[f32], pieces: impl Iterator<Item = (f64, u32)>) {
        let mut class = None;
        for (from, to) in pieces {
            match class {
                None => self.start(stats, to),
                Some(class) if class != to => self.change(from, class, to),
                Some(_) => {}
            }
            class = Some(to);
        }
    }

    /// Adds a segment's envelope with the changes of its packed statistics, which are numbered from `first`.
    fn add_packed(&mut self, base: &[f64], changes: &[Packed], first: usize, pieces: &[Piece]) {
        let Some(own) = changes.first() else { return };
        for ((t, b), &x) in self.totals.iter_mut().zip(base).zip(own) {
            *t += b + f64::from(x);
        }
        for (i, (change, piece)) in changes.iter().zip(pieces).enumerate().skip(1) {
            if *change != [0; PACKED] {
                self.places.push((ordered(piece.from), (first + i) as u32));
            }
        }
    }

    /// Records that a segment's best candidate changes at γ = `at` from class `from` to class `to`.
    #[inline]
    pub(crate) fn change(&mut self, at: f64, from: u32, to: u32) {
        self.places.push((ordered(at), self.changes.len() as u32));
        self.changes.push(Change { from, to });
    }

    /// Sweeps the changes in order of γ and returns the intervals, each with the `value` of its corpus statistics.
    pub(crate) fn surface(
        &mut self,
        metric: &Metric,
        stats: Stats<'_>,
        value: impl Fn(&Metric, &[f64]) -> f64,
    ) -> &Surface {
        self.places.sort_unstable();
        let Surface { bounds, scores } = &mut self.surface;
        bounds.clear();
        scores.clear();
        scores.push(value(metric, &self.totals));
        let width = self.totals.len();
        let mut before = self.totals.clone();
        let mut i = 0;
        while i < self.places.len() {
            let x = unordered(self.places[i].0);
            let limit = ordered(x + SAME * x.abs().max(SAME));
            before.copy_from_slice(&self.totals);
            while let Some(place) = self.places.get(i).filter(|p| p.0 <= limit) {
                i += 1;
                match stats {
                    Stats::Packed(changes) => {
                        let change = &changes[place.1 as usize];
                        self.totals.iter_mut().zip(change).for_each(|(t, &x)| *t += f64::from(x));
                    }
                    Stats::Table(table) => {
                        let change = self.changes[place.1 as usize];
                        let from = &table[change.from as usize * width..][..width];
                        let to = &table[change.to as usize * width..][..width];
                        for ((t, f), n) in self.totals.iter_mut().zip(from).zip(to) {
                            *t += f64::from(*n) - f64::from(*f);
                        }
                    }
                }
            }
            // Changes of several segments can cancel out; then there is no new plateau.
            if before != self.totals {
                bounds.push(x);
                scores.push(value(metric, &self.totals));
            }
        }
        &self.surface
    }

    /// Returns the best step from γ = 0 within the bounds `within`, and its gain over the true score `here` at 0.
    pub(crate) fn peak(
        &mut self,
        metric: &Metric,
        stats: Stats<'_>,
        here: f64,
        smoothing: Smoothing,
        within: (f64, f64),
    ) -> Peak {
        if !smoothing.is_none() {
            return self.surface(metric, stats, Metric::score).peak(here, smoothing, within);
        }
        // Metric::rank orders plateaus as Metric::score does, without logarithms.
        let surface = self.surface(metric, stats, Metric::rank);
        match surface.best(&surface.scores, within) {
            Some((i, rank, false)) if metric.of_rank(rank) > here => {
                Peak { step: surface.inside(i, within), gain: metric.of_rank(rank) - here }
            }
            _ => Peak::NONE,
        }
    }
}

/// Statistics of a segment's best candidate along a line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Track {
    /// Statistics at γ = −∞.
    first: Vec<f32>,
    /// Values of γ where the statistics change, with the new statistics.
    changes: Vec<(f64, Vec<f32>)>,
}

impl Track {
    /// Computes the track of a list whose candidates are the lines `here` + γ·`slopes`; `None` for an empty list.
    pub(crate) fn new(
        list: &Candidates,
        here: &[f64],
        slopes: &[f64],
        envelope: &mut Envelope,
    ) -> Option<Self> {
        let pieces = envelope.find(slopes, here, &[]);
        let mut class = list.class[pieces.first()?.line as usize];
        let mut track = Track { first: list.stats_of(class).to_vec(), changes: Vec::new() };
        for piece in pieces {
            let to = list.class[piece.line as usize];
            if to != class {
                track.changes.push((piece.from, list.stats_of(to).to_vec()));
                class = to;
            }
        }
        Some(track)
    }
}

impl Sweep {
    /// Starts a sweep from the tracks of segments, in their order. Returns the table of their statistics.
    pub(crate) fn follow(&mut self, width: usize, tracks: &[Track]) -> Vec<f32> {
        self.begin(width);
        let mut stats = Vec::new();
        let mut class = 0;
        for track in tracks {
            stats.extend(&track.first);
            self.start(&stats, class);
            for (at, to) in &track.changes {
                stats.extend(to);
                self.change(*at, class, class + 1);
                class += 1;
            }
            class += 1;
        }
        stats
    }
}

/// Numbers in single precision, in blocks.
type Blocks = Vec<[f32; Narrow::BLOCK]>;

/// The dense features and statistics of all lists of a pool in contiguous memory, feature after feature, so that
/// line searches read memory sequentially. Immutable and shared by the walkers of all starts.
pub struct Flat {
    /// First candidate of each segment, and the total number of candidates.
    starts: Vec<usize>,
    /// Values of the dense features, column after column, each over all candidates.
    columns: Vec<f64>,
    /// First block of each segment in a column of `narrow`, and the number of blocks.
    blocks: Vec<usize>,
    /// The columns in single precision; each segment is padded to whole blocks.
    narrow: Blocks,
    /// Largest absolute value of each column.
    largest: Vec<f64>,
    /// Class of each candidate: its row in `stats`.
    class: Vec<u32>,
    /// Statistics of each class.
    stats: Vec<f32>,
    /// Statistics of each class as bytes, minus the smallest of the segment, if they are small whole numbers; else empty.
    packed: Vec<Packed>,
    /// What was subtracted, by segment.
    base: Vec<Vec<f64>>,
}

/// Statistics, or their differences, as bytes.
type Packed = [i8; PACKED];

/// Number of statistics that can be packed.
const PACKED: usize = 16;

impl Flat {
    /// Copies lists that have been judged and have the same dense columns. The copy takes half as much memory again as
    /// their dense features.
    pub fn new(lists: &[Arc<Candidates>]) -> Self {
        let mut flat = Flat {
            starts: vec![0],
            columns: Vec::new(),
            blocks: vec![0],
            narrow: Blocks::new(),
            largest: Vec::new(),
            class: Vec::new(),
            stats: Vec::new(),
            packed: Vec::new(),
            base: Vec::new(),
        };
        let mut packed = Some(());
        for list in lists {
            let first = flat.stats.len().checked_div(list.width).unwrap_or(0);
            flat.class.extend(list.class.iter().map(|&c| first as u32 + c));
            flat.stats.extend_from_slice(&list.stats);
            flat.starts.push(flat.class.len());
            flat.blocks.push(flat.blocks[flat.blocks.len() - 1] + list.k.div_ceil(Narrow::BLOCK));
            packed = packed.and_then(|()| flat.pack(list));
        }
        if packed.is_none() {
            flat.packed.clear();
        }
        let columns = lists.first().map_or(0, |l| l.columns.keys().len());
        flat.columns.reserve_exact(columns * flat.class.len());
        flat.narrow.reserve_exact(columns * flat.blocks[lists.len()]);
        for c in 0..columns {
            let mut largest: f64 = 0.0;
            for list in lists {
                flat.columns.extend_from_slice(list.column(c));
                let at = flat.narrow.len();
                flat.narrow.resize(at + list.k.div_ceil(Narrow::BLOCK), [0.0; Narrow::BLOCK]);
                largest = largest.max(narrow(list.column(c), &mut flat.narrow[at..]));
            }
            flat.largest.push(largest);
        }
        flat
    }

    /// Packs the statistics of a list; `None` if they are not whole numbers that differ by at most 127.
    fn pack(&mut self, list: &Candidates) -> Option<()> {
        let rows = || list.stats.chunks_exact(list.width.max(1));
        let mut base = vec![f64::INFINITY; list.width];
        for row in rows() {
            base.iter_mut().zip(row).for_each(|(b, &x)| *b = b.min(f64::from(x)));
        }
        for row in rows() {
            let mut bytes = [0; PACKED];
            for (i, (&x, b)) in row.iter().zip(&base).enumerate() {
                let over = f64::from(x) - b;
                let whole = over.fract() == 0.0 && b.fract() == 0.0 && over <= 127.0 && b.abs() < 1e6;
                *bytes.get_mut(i)? = Some(over as i8).filter(|_| whole)?;
            }
            self.packed.push(bytes);
        }
        self.base.push(base);
        Some(())
    }

    fn segments(&self) -> usize {
        self.starts.len() - 1
    }

    fn column(&self, c: usize) -> &[f64] {
        &self.columns[c * self.class.len()..(c + 1) * self.class.len()]
    }

    fn narrow_column(&self, c: usize) -> &[[f32; Narrow::BLOCK]] {
        let n = self.blocks[self.segments()];
        &self.narrow[c * n..(c + 1) * n]
    }

    /// Returns the range of a segment's candidates, and that of its blocks.
    fn ranges(&self, s: usize) -> (Range<usize>, Range<usize>) {
        (self.starts[s]..self.starts[s + 1], self.blocks[s]..self.blocks[s + 1])
    }
}

/// Rounds the numbers of a segment to single precision, and returns their largest absolute value. The last block is left
/// as it is beyond the last number.
fn narrow(wide: &[f64], out: &mut [[f32; Narrow::BLOCK]]) -> f64 {
    let mut largest = [0.0; Narrow::BLOCK];
    let (blocks, last) = wide.as_chunks::<{ Narrow::BLOCK }>();
    for (x, y) in blocks.iter().zip(&mut *out) {
        for i in 0..Narrow::BLOCK {
            y[i] = x[i] as f32;
            largest[i] = if x[i].abs() > largest[i] { x[i].abs() } else { largest[i] };
        }
    }
    let mut most = largest.into_iter().fold(0.0, f64::max);
    if let Some(block) = out.get_mut(blocks.len()) {
        for (x, y) in last.iter().zip(block) {
            *y = *x as f32;
            most = most.max(x.abs());
        }
    }
    most
}

/// The envelopes of all segments along an axis, which seed the next search along it.
#[derive(Debug, Clone, Default)]
struct Trail {
    /// Lines of the envelopes, segment after segment.
    lines: Vec<Seed>,
    /// End of each segment's lines.
    ends: Vec<u32>,
    /// Difference of the packed statistics between each line and the one before; the first of a segment has its own.
    changes: Vec<Packed>,
}

impl Trail {
    /// Returns the lines of a segment.
    fn of(&self, s: usize) -> &[Seed] {
        let start = if s == 0 { 0 } else { self.ends[s - 1] as usize };
        &self.lines[start..self.ends[s] as usize]
    }
}

/// Exact line search over n-best lists (Och 2003; Cer et al. 2008, §2.1): a [`Walker`] whose coordinates are
/// the dense columns of the lists, in their order. Sparse features keep their weights.
///
/// Along w + γd every candidate is a line b + γm with b = w·h and m = d·h. The upper envelope of each
/// segment's lines gives the values of γ where its best candidate changes; all changes are sorted and swept
/// once, with the corpus statistics updated by differences. A search costs O(k log k) per segment of k
/// candidates, and one metric evaluation per interval.
///
/// ```
/// use luthier_core::{FeatureKey, Weights};
/// use luthier_io::nbest::Rows;
/// use luthier_optim::{Direction, Walker as _};
/// use luthier_tune::{Judge, columns, lists, mert::ListWalker};
/// let mut rows = Rows::default();
/// rows.push(0, "the small house", &[("lm", 1.0), ("tm", 0.0)], &[]).unwrap();
/// rows.push(0, "small the garden", &[("lm", 0.0), ("tm", 2.0)], &[]).unwrap();
/// let metric = "wer".parse().unwrap();
/// let columns = columns(&rows, None);
/// let references = [vec!["the small house"]];
/// let judge = Judge::new(&metric, &references, "ref.txt");
/// let lists: Vec<_> = lists(&rows, &columns, Some(judge)).unwrap().into_iter().map(Into::into).collect();
/// let weights = Weights::parse("w.txt", "lm 0.5\ntm 1").unwrap();
/// let mut point = Vec::new();
/// weights.gather(&columns, &mut point);
/// let mut walker = ListWalker::new(&lists, &metric, &weights, &point);
///
/// // Along lm the lines are 0.5 + γ and 2: the first candidate is the best beyond γ = 1.5.
/// let lm = Direction::Axis(columns.position(FeatureKey::of("lm")).unwrap());
/// let surface = walker.surface(lm);
/// assert_eq!(surface.bounds, [1.5]);
/// assert!(surface.scores[0] < surface.scores[1]);
/// let peak = walker.peak(lm, (f64::NEG_INFINITY, f64::INFINITY));
/// walker.step(lm, peak.step);
/// assert_eq!(walker.score(), 0.0); // no errors
/// ```
pub struct ListWalker<'a> {
    flat: Arc<Flat>,
    metric: &'a Metric,
    point: Vec<f64>,
    score: f64,
    /// Part of each candidate's score that comes from sparse features; empty if there are none.
    sparse: Vec<f64>,
    /// Intercepts b = w·h of all candidates at the walker's point, segment after segment.
    b: Vec<f64>,
    /// The same in single precision, padded to whole blocks, and the largest absolute value.
    narrow_b: Blocks,
    largest_b: f64,
    /// Last envelopes by axis.
    trails: Vec<Trail>,
    /// Memory of the trail that is replaced.
    spare: Trail,
    /// Last axis that was searched.
    recent: Option<usize>,
    envelope: Envelope,
    /// The last direction that is not an axis; empty before the first.
    vector: Vec<f64>,
    /// Slopes m = d·h of all candidates along it, and the largest absolute value.
    slopes: Vec<f64>,
    largest_slope: f64,
    /// The same in single precision, padded to whole blocks.
    narrow_slopes: Blocks,
    sweep: Sweep,
    smoothing: Smoothing,
}

impl<'a> ListWalker<'a> {
    /// Puts a walker at `point`, the weights of the dense columns; `weights` holds those of sparse features.
    /// All lists must have been judged and have the same dense columns.
    pub fn new(lists: &[Arc<Candidates>], metric: &'a Metric, weights: &Weights, point: &[f64]) -> Self {
        Self::over(&Arc::new(Flat::new(lists)), lists, metric, weights, point)
    }

    /// Puts a walker at `point` as [`ListWalker::new`] does, over lists with their flattened copy.
    pub fn over(
        flat: &Arc<Flat>,
        lists: &[Arc<Candidates>],
        metric: &'a Metric,
        weights: &Weights,
        point: &[f64],
    ) -> Self {
        let mut sparse = Vec::new();
        if lists.iter().any(|l| !l.ids.is_empty()) {
            sparse.resize(flat.class.len(), 0.0);
            for (s, list) in lists.iter().enumerate() {
                list.sparse_scores(weights, &mut sparse[flat.starts[s]..flat.starts[s + 1]]);
            }
        }
        let mut walker = ListWalker {
            flat: flat.clone(),
            metric,
            point: Vec::new(),
            score: 0.0,
            sparse,
            b: vec![0.0; flat.class.len()],
            narrow_b: vec![[f32::NEG_INFINITY; Narrow::BLOCK]; flat.blocks[flat.segments()]],
            largest_b: 0.0,
            trails: vec![Trail::default(); point.len()],
            spare: Trail::default(),
            envelope: Envelope::default(),
            vector: Vec::new(),
            slopes: Vec::new(),
            largest_slope: 0.0,
            recent: None,
            narrow_slopes: Blocks::new(),
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
        let stats = stats_along(direction, &self.flat, &self.trails, &self.spare);
        self.sweep.surface(self.metric, stats, Metric::score)
    }

    /// Searches along the axes `axes` and returns the candidates of each segment that are best for any step of at most
    /// `reach[axis]`, in order.
    pub(crate) fn winners(&mut self, axes: &[usize], reach: &[f64]) -> Vec<Vec<u32>> {
        for &axis in axes {
            self.collect(Direction::Axis(axis));
        }
        let mut all = vec![Vec::new(); self.flat.segments()];
        for &axis in axes {
            for (s, winners) in all.iter_mut().enumerate() {
                let offset = &self.b[self.flat.starts[s]..];
                let lines = self.trails[axis].of(s);
                let crossing = |i: usize| match (lines.get(i.wrapping_sub(1)), lines.get(i)) {
                    (Some(l), Some(r)) => {
                        (offset[l.line as usize] - offset[r.line as usize]) / (r.slope - l.slope)
                    }
                    (None, _) => f64::NEG_INFINITY,
                    (_, None) => f64::INFINITY,
                };
                let near = |i: &usize| crossing(*i) <= reach[axis] && crossing(i + 1) >= -reach[axis];
                winners.extend((0..lines.len()).filter(near).map(|i| lines[i].line));
            }
        }
        for winners in &mut all {
            winners.sort_unstable();
            winners.dedup();
        }
        all
    }

    /// Collects the changes of all segments' best candidates along the line, and the corpus statistics at γ = −∞.
    fn collect(&mut self, direction: Direction<'_>) {
        self.sweep.begin(self.metric.width());
        let mut old = Trail::default();
        let (column, narrow_column, largest_slope) = match direction {
            Direction::Axis(axis) => {
                std::mem::swap(&mut old, &mut self.trails[axis]);
                (self.flat.column(axis), self.flat.narrow_column(axis), self.flat.largest[axis])
            }
            Direction::Vector(d) => {
                self.project(d);
                (&*self.slopes, &*self.narrow_slopes, self.largest_slope)
            }
        };
        let mut new = std::mem::take(&mut self.spare);
        new.lines.clear();
        new.ends.clear();
        new.changes.clear();
        let mut start = 0;
        for s in 0..self.flat.segments() {
            let (range, blocks) = self.flat.ranges(s);
            let end = old.ends.get(s).map_or(0, |e| *e as usize);
            let rounded = Narrow {
                slope: &narrow_column[blocks.clone()],
                offset: &self.narrow_b[blocks],
                largest_slope,
                largest_offset: self.largest_b,
            };
            let (slope, offset) = (&column[range.clone()], &self.b[range.clone()]);
            let seed = &old.lines[start..end];
            match self.recent.filter(|_| old.ends.is_empty() && !slope.is_empty()) {
                // Lines that are high near the point along an axis are likely to be high along other directions.
                Some(axis) => {
                    let near = self.trails[axis].of(s).iter().map(|seed| seed.line);
                    self.envelope.find_near(slope, offset, Some(rounded), near);
                }
                None => {
                    self.envelope.find_from(slope, offset, Some(rounded), seed.iter().copied());
                }
            }
            let at = new.lines.len();
            new.lines.extend(self.envelope.lines());
            let (lines, pieces) = (&new.lines[at..], self.envelope.pieces());
            new.ends.push(new.lines.len() as u32);
            let classes = &self.flat.class[range];
            if self.flat.packed.is_empty() {
                self.sweep.add(
                    &self.flat.stats,
                    lines.iter().zip(pieces).map(|(l, p)| (p.from, classes[l.line as usize])),
                );
                start = end;
                continue;
            }
            if !old.changes.is_empty() && lines == seed {
                new.changes.extend_from_slice(&old.changes[start..end]);
            } else {
                let mut before = [0; PACKED];
                for line in lines {
                    let row = self.flat.packed[classes[line.line as usize] as usize];
                    let mut change = row;
                    for i in 0..PACKED {
                        change[i] -= before[i];
                    }
                    new.changes.push(change);
                    before = row;
                }
            }
            self.sweep.add_packed(&self.flat.base[s], &new.changes[at..], at, pieces);
            start = end;
        }
        match direction {
            Direction::Axis(axis) => {
                self.recent = Some(axis);
                self.trails[axis] = new;
                self.spare = old;
            }
            Direction::Vector(_) => self.spare = new,
        }
    }

    /// Computes the slopes along a direction, unless they are known.
    fn project(&mut self, d: &[f64]) {
        if self.vector != d {
            self.largest_slope = project(&self.flat, d, &mut self.slopes, &mut self.narrow_slopes);
            self.vector.clear();
            self.vector.extend_from_slice(d);
        }
    }

    /// Adds t·d·h to the intercepts, or computes them from a point, and updates what depends on them; returns the corpus
    /// score of the best candidates. `update` changes the intercepts of a range of candidates.
    fn moved(&mut self, update: impl Fn(&mut [f64], Range<usize>)) -> f64 {
        let mut totals = vec![0.0; self.metric.width()];
        self.largest_b = 0.0;
        for s in 0..self.flat.segments() {
            let (range, blocks) = self.flat.ranges(s);
            if range.is_empty() {
                continue;
            }
            let b = &mut self.b[range.clone()];
            update(b, range.clone());
            self.largest_b = self.largest_b.max(narrow(b, &mut self.narrow_b[blocks]));
            let class = self.flat.class[range.start + argmax(b)];
            let stats = &self.flat.stats[class as usize * totals.len()..];
            add(&mut totals, stats);
        }
        self.metric.score(&totals)
    }
}

impl Walker for ListWalker<'_> {
    fn point(&self) -> &[f64] {
        &self.point
    }

    fn score(&self) -> f64 {
        self.score
    }

    fn peak(&mut self, direction: Direction<'_>, within: (f64, f64)) -> Peak {
        self.collect(direction);
        let stats = stats_along(direction, &self.flat, &self.trails, &self.spare);
        self.sweep.peak(self.metric, stats, self.score, self.smoothing, within)
    }

    fn step(&mut self, direction: Direction<'_>, t: f64) {
        let flat = self.flat.clone();
        match direction {
            Direction::Axis(axis) => {
                self.point[axis] += t;
                let column = flat.column(axis);
                self.score = self.moved(|b, range| axpy(b, t, &column[range]));
            }
            Direction::Vector(d) => {
                self.point.iter_mut().zip(d).for_each(|(p, d)| *p += t * d);
                self.project(d);
                let slopes = std::mem::take(&mut self.slopes);
                self.score = self.moved(|b, range| axpy(b, t, &slopes[range]));
                self.slopes = slopes;
            }
        }
    }

    /// Adds up in the order of [`Candidates::scores`], so that both give the same bits.
    fn place(&mut self, point: &[f64]) {
        self.point.clear();
        self.point.extend_from_slice(point);
        let (flat, sparse) = (self.flat.clone(), std::mem::take(&mut self.sparse));
        self.score = self.moved(|b, range| {
            if sparse.is_empty() {
                b.fill(0.0);
            } else {
                b.copy_from_slice(&sparse[range.clone()]);
            }
            for (c, &w) in point.iter().enumerate() {
                axpy(b, w, &flat.column(c)[range.clone()]);
            }
        });
        self.sparse = sparse;
    }
}

/// Returns the statistics that the changes along the last direction refer to.
fn stats_along<'a>(
    direction: Direction<'_>,
    flat: &'a Flat,
    trails: &'a [Trail],
    last: &'a Trail,
) -> Stats<'a> {
    match direction {
        _ if flat.packed.is_empty() => Stats::Table(&flat.stats),
        Direction::Axis(axis) => Stats::Packed(&trails[axis].changes),
        Direction::Vector(_) => Stats::Packed(&last.changes),
    }
}

/// Writes the slopes m = d·h of all candidates to `out`, in both precisions; returns their largest absolute value.
fn project(flat: &Flat, d: &[f64], out: &mut Vec<f64>, rounded: &mut Blocks) -> f64 {
    out.resize(flat.class.len(), 0.0);
    rounded.resize(flat.blocks[flat.segments()], [0.0; Narrow::BLOCK]);
    let mut largest: f64 = 0.0;
    for s in 0..flat.segments() {
        let (range, blocks) = flat.ranges(s);
        let out = &mut out[range.clone()];
        out.fill(0.0);
        for (c, &d) in d.iter().enumerate().filter(|(_, d)| **d != 0.0) {
            axpy(out, d, &flat.column(c)[range.clone()]);
        }
        largest = largest.max(narrow(out, &mut rounded[blocks]));
    }
    largest
}

/// y += a·x.
fn axpy(y: &mut [f64], a: f64, x: &[f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Candidate;
    use luthier_core::{
        FeatureKey, Local,
        random::{Purpose, Stream},
    };
    use luthier_metric::Scratch;

    const ANYWHERE: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

    type Row<'a> = (&'a str, Vec<f64>);

    fn list(names: &[&str], rows: &[Row<'_>], reference: &str, metric: &Metric) -> Arc<Candidates> {
        let keys: Vec<FeatureKey> = names.iter().map(|n| FeatureKey::of(n)).collect();
        let columns = Arc::new(Local::new(keys.clone()));
        let features: Vec<Vec<(FeatureKey, f64)>> =
            rows.iter().map(|r| keys.iter().copied().zip(r.1.iter().copied()).collect()).collect();
        let candidates =
            rows.iter().zip(&features).map(|(r, f)| Candidate { text: r.0, features: f, columns: &[] });
        let mut list = Candidates::new(&columns, candidates, false);
        let mut scratch = Scratch::default();
        list.judge(metric, &metric.prepare(&[reference], &mut scratch), &mut scratch);
        Arc::new(list)
    }

    /// Example of Cer et al. (2008), tables 1 and 2: from w = (tm 1.0, lm 0.5) along lm. Table 2 prints the
    /// ranges of e² and e⁴ in each other's place.
    #[test]
    fn cer_worked_example() {
        let metric: Metric = "bleu:order=2,smooth=none".parse().unwrap();
        let rows: [Row<'_>; 4] = [
            ("This is it", vec![-1.2, -0.1]),
            ("This is small house", vec![-0.2, -1.2]),
            ("This is miniscule building", vec![-1.6, -0.9]),
            ("This is a small house", vec![-0.1, -0.9]),
        ];
        let lists = [list(&["tm", "lm"], &rows, "This is a small house", &metric)];
        let each: Vec<String> = (0..4)
            .map(|i| {
                let stats = lists[0].stats_of(lists[0].class[i]);
                format!("{:.4}", metric.score(&stats.iter().map(|&x| f64::from(x)).collect::<Vec<_>>()))
            })
            .collect();
        assert_eq!(each, ["29.6422", "63.5888", "31.7944", "100.0000"]);

        let at = |name: &str| lists[0].columns.position(FeatureKey::of(name)).unwrap();
        let (tm, lm) = (at("tm"), at("lm"));
        let mut w = [0.0; 2];
        (w[tm], w[lm]) = (1.0, 0.5);
        let weights = Weights::default();
        let mut walker = ListWalker::new(&lists, &metric, &weights, &w);
        assert!((walker.score() - 100.0).abs() < 1e-9);
        let surface = walker.surface(Direction::Axis(lm));
        let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9);
        assert!(near(&surface.bounds, &[-5.0 / 6.0, 7.0 / 8.0]), "{surface:?}");
        assert_eq!(
            surface.scores.iter().map(|s| format!("{s:.4}")).collect::<Vec<_>>(),
            ["63.5888", "100.0000", "29.6422"]
        );
        assert_eq!(walker.peak(Direction::Axis(lm), ANYWHERE), Peak { step: 0.0, gain: 0.0 });
        // From lm = 5 the search goes back, to the middle of (−5/6, 7/8).
        w[lm] = 5.0;
        walker.place(&w);
        let peak = walker.peak(Direction::Axis(lm), ANYWHERE);
        assert!((5.0 + peak.step - (0.5 + (7.0 / 8.0 - 5.0 / 6.0) / 2.0)).abs() < 1e-9, "{peak:?}");
    }

    /// A random pool with difficult cases: ties, duplicates, parallel lines, single candidates, constant
    /// features. Feature values are small integers, or real numbers with `fine`.
    fn random_pool(stream: &mut Stream, metric: &Metric, fine: bool) -> Vec<Arc<Candidates>> {
        let words = ["a", "b", "c", "d"];
        let constant = stream.below(2) == 0;
        (0..=stream.below(3))
            .map(|_| {
                let text = |s: &mut Stream| {
                    (0..s.below(6)).map(|_| words[s.below(4) as usize]).collect::<Vec<_>>().join(" ")
                };
                let reference = format!("a b {}", text(stream));
                let mut rows: Vec<(String, Vec<f64>)> = (0..=stream.below(11))
                    .map(|_| {
                        let mut x: Vec<f64> =
                            (0..3)
                                .map(|_| {
                                    if fine {
                                        stream.uniform(-2.0, 2.0)
                                    } else {
                                        stream.below(5) as f64 - 2.0
                                    }
                                })
                                .collect();
                        if constant {
                            x[1] = 1.5;
                        }
                        (text(stream), x)
                    })
                    .collect();
                let again = rows[0].clone();
                rows.push(again);
                let rows: Vec<Row<'_>> = rows.iter().map(|(t, x)| (t.as_str(), x.clone())).collect();
                list(&["x", "y", "z"], &rows, &reference, metric)
            })
            .collect()
    }

    /// The best true score along a line, evaluated at 0 and in the middle of all intervals between
    /// intersections of any two lines of any segment.
    fn brute_force(lists: &[Arc<Candidates>], metric: &Metric, w: &[f64], d: &[f64]) -> f64 {
        let weights = Weights::default();
        let mut walker = ListWalker::new(lists, metric, &weights, w);
        let mut x: Vec<f64> = Vec::new();
        for list in lists {
            let (mut b, mut m) = (vec![0.0; list.k], vec![0.0; list.k]);
            list.scores(w, &weights, &mut b);
            list.scores(d, &weights, &mut m);
            for i in 0..list.k {
                for j in 0..i {
                    let cut = (b[i] - b[j]) / (m[j] - m[i]);
                    if cut.is_finite() {
                        x.push(cut);
                    }
                }
            }
        }
        x.sort_by(f64::total_cmp);
        let mut points: Vec<f64> =
            x.windows(2).filter(|p| p[1] - p[0] > 1e-9).map(|p| f64::midpoint(p[0], p[1])).collect();
        points.extend(x.first().map(|x| x - 1.0));
        points.extend(x.last().map(|x| x + 1.0));
        let mut best = walker.score();
        for t in points {
            let moved: Vec<f64> = w.iter().zip(d).map(|(w, d)| w + t * d).collect();
            walker.place(&moved);
            best = best.max(walker.score());
        }
        best
    }

    #[test]
    fn a_thousand_random_pools_against_brute_force() {
        let metric: Metric = "bleu:order=2".parse().unwrap();
        let weights = Weights::default();
        for pool in 0..1000 {
            let mut stream = Stream::new(5, Purpose::Test, 0, pool);
            let fine = pool % 2 == 0;
            let lists = random_pool(&mut stream, &metric, fine);
            let w: Vec<f64> = (0..3).map(|_| stream.uniform(-1.0, 1.0)).collect();
            let mut d = vec![0.0; 3];
            let axis = stream.below(4) as usize;
            if axis < 3 {
                d[axis] = 1.0;
            } else {
                for d in &mut d {
                    *d = stream.uniform(-1.0, 1.0);
                }
            }
            let direction = if axis < 3 { Direction::Axis(axis) } else { Direction::Vector(&d) };
            let expected = brute_force(&lists, &metric, &w, &d);
            let mut walker = ListWalker::new(&lists, &metric, &weights, &w);
            let before = walker.score();
            for _ in 0..2 {
                // The second search is seeded by the first one's envelope.
                let peak = walker.peak(direction, ANYWHERE);
                assert!((before + peak.gain - expected).abs() < 1e-9, "pool {pool}: {peak:?} {expected}");
                assert_eq!(peak.step == 0.0, peak.gain == 0.0);
            }
            let peak = walker.peak(direction, ANYWHERE);
            walker.step(direction, peak.step);
            assert!((walker.score() - expected).abs() < 1e-9, "pool {pool}: the step missed");
        }
    }

    fn surface(bounds: &[f64], scores: &[f64]) -> Surface {
        Surface { bounds: bounds.into(), scores: scores.into() }
    }

    #[test]
    fn tie_rules_of_intervals() {
        let peak = |s: &Surface, here: f64| s.peak(here, Smoothing::NONE, ANYWHERE);
        assert_eq!(peak(&surface(&[], &[3.0]), 3.0), Peak::NONE);
        assert_eq!(peak(&surface(&[-1.0, 1.0, 5.0], &[2.0, 2.0, 2.0, 1.0]), 2.0), Peak::NONE);
        // Equal peaks: the widest, in its middle.
        assert_eq!(peak(&surface(&[1.0, 2.0, 3.0, 6.0, 7.0], &[0., 5., 1., 5., 0., 0.]), 0.0).step, 4.5);
        // Unbounded: one median gap beyond, at least 0.1.
        assert_eq!(peak(&surface(&[1.0, 3.0, 7.0], &[0., 0., 0., 9.]), 0.0).step, 7.0 + 4.0);
        assert_eq!(peak(&surface(&[-1.0], &[9., 0.]), 0.0).step, -1.1);
    }

    #[test]
    fn steps_stay_within_bounds() {
        let s = surface(&[1.0, 2.0, 3.0], &[0., 3., 5., 9.]);
        let step = |low: f64, high: f64| s.peak(0.0, Smoothing::NONE, (low, high)).step;
        assert_eq!(step(-1.0, 1.5), 1.25); // the middle of the part of the plateau within the bounds
        assert_eq!(step(-1.0, 2.5), 2.25);
        assert_eq!(step(-1.0, 0.5), 0.0);
        assert_eq!(step(-1.0, 10.0), 6.5);
    }

    /// Smoothed scores against their definition, for every window size.
    #[test]
    fn smoothing_against_brute_force() {
        let mut stream = Stream::new(6, Purpose::Test, 0, 0);
        for _ in 0..200 {
            let n = 1 + stream.below(12) as usize;
            let scores: Vec<f64> = (0..n).map(|_| stream.below(9) as f64).collect();
            let bounds: Vec<f64> = (1..n).map(|i| i as f64 - 4.5).collect();
            let s = surface(&bounds, &scores);
            for window in [1usize, 3, 5, 7, 9] {
                for i in 0..n {
                    let near = |j: &usize| j.abs_diff(i) <= window / 2;
                    let around: Vec<f64> = (0..n).filter(near).map(|j| scores[j]).collect();
                    let mean = around.iter().sum::<f64>() / around.len() as f64;
                    assert_eq!(s.smoothed(Smoothing::average(window as u32))[i], mean);
                    let least = around.iter().copied().fold(f64::INFINITY, f64::min);
                    assert_eq!(s.smoothed(Smoothing::max(window as u32))[i], least);
                }
                for smoothing in [Smoothing::average(window as u32), Smoothing::max(window as u32)] {
                    let values = s.smoothed(smoothing);
                    let at_zero = values[bounds.partition_point(|&x| x <= 0.0)];
                    let best = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let peak = s.peak(f64::NAN, smoothing, ANYWHERE);
                    assert!((peak.gain - (best - at_zero)).abs() < 1e-12);
                }
            }
        }
    }

    /// Cer et al. (2008), §3.2: smoothing avoids a high plateau between bad ones and prefers several good
    /// plateaus in a row.
    #[test]
    fn an_isolated_peak_is_taken_without_smoothing_and_avoided_with_it() {
        let s = surface(&[1., 2., 3., 4., 5., 6., 7.], &[20., 1., 39.1, 1., 2., 30., 31., 30.]);
        let step = |smoothing| s.peak(20.0, smoothing, ANYWHERE).step;
        assert_eq!(step(Smoothing::NONE), 2.5);
        assert_eq!(step(Smoothing::max(3)), 8.0); // the last plateau, one gap beyond its boundary
        assert_eq!(step(Smoothing::average(3)), 8.0);
        assert_eq!(s.smoothed(Smoothing::max(3))[2], 1.0);
    }
}
