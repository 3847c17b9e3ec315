//! Feature matrix X of a pool: products X·w and Xᵀ·d, for every loss that is a function of the scores.
//!
//! A segment numbers its features locally; the matrix maps these numbers to positions in [`Weights`]. Products are
//! computed per segment, in parallel. Sums over segments are added piece by piece, and the pieces depend on the
//! number of segments alone, not on threads and processes.

use crate::{
    Candidates, Fleet,
    fleet::{own, pieces},
};
use luthier_core::Weights;
use luthier_optim::{axpy, dot};
use rayon::prelude::*;
use std::{ops::Range, sync::Arc};

/// The feature matrix X of a pool: one row per candidate, one column per weight, stored by segment.
///
/// A product reads [`FeatureMatrix::size`] numbers. Sums over segments are added in an order that depends on the
/// number of segments alone, so results are bit-for-bit reproducible on any number of threads and processes.
///
/// ```
/// use luthier_core::Weights;
/// use luthier_io::nbest::Rows;
/// use luthier_tune::{FeatureMatrix, columns, lists};
/// let mut rows = Rows::default();
/// rows.push(0, "a", &[("lm", -3.0)], &[]).unwrap();
/// rows.push(0, "b", &[("lm", -4.0)], &[]).unwrap();
/// let lists = lists(&rows, &columns(&rows, None), None).unwrap();
/// let lists = lists.into_iter().map(Into::into).collect();
/// let design = FeatureMatrix::new(lists, &Weights::parse("w", "lm 1").unwrap());
/// assert_eq!(design.scores(0, &design.gather(0, &[0.5])), [-1.5, -2.0]); // X·w
/// assert_eq!(design.transpose(0, &[1.0, -1.0]), [1.0]); // Xᵀ·d = −3 + 4
/// ```
pub struct FeatureMatrix {
    lists: Vec<Arc<Candidates>>,
    /// Positions of the dense features in the weights.
    dense: Vec<u32>,
    /// By segment: indices of its sparse features in the features of its piece.
    sparse: Vec<Vec<u32>>,
    /// By segment: index of its piece.
    piece: Vec<u32>,
    pieces: Vec<Piece>,
    /// Number of weights.
    dim: usize,
}

/// Consecutive segments whose sums are added together.
struct Piece {
    segments: Range<usize>,
    /// Positions in the weights of all their features: dense features first, sparse ones in ascending order.
    places: Vec<u32>,
}

/// Result of a segment: a value to keep, and a gradient in local order.
type Given<T> = (T, Vec<f64>);

impl FeatureMatrix {
    /// Builds the matrix of some lists with the same dense columns. Every feature must have been committed to
    /// `weights` before.
    pub fn new(lists: Vec<Arc<Candidates>>, weights: &Weights) -> Self {
        let dense = lists.first().map_or(Vec::new(), |l| weights.places(&l.columns));
        let mut sparse: Vec<Vec<u32>> = lists.par_iter().map(|l| weights.places(&l.local)).collect();
        let mut piece = vec![0; lists.len()];
        let mut all = Vec::new();
        for (number, segments) in pieces(lists.len()).enumerate() {
            let own = &mut sparse[segments.clone()];
            let mut known = own.concat();
            known.sort_unstable();
            known.dedup();
            own.par_iter_mut().flatten().for_each(|p| {
                *p = (dense.len() + known.partition_point(|k| k < p)) as u32;
            });
            piece[segments.clone()].fill(number as u32);
            all.push(Piece { segments, places: [&dense[..], &known].concat() });
        }
        FeatureMatrix { lists, dense, sparse, piece, pieces: all, dim: weights.len() }
    }

    /// Returns the number of columns of X, which is the number of weights.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Returns the lists that the matrix was built of, one per segment.
    pub fn lists(&self) -> &[Arc<Candidates>] {
        &self.lists
    }

    /// Returns for every weight whether some list holds its feature; dense features count in every list.
    pub fn seen(&self) -> Vec<bool> {
        let mut seen = vec![false; self.dim];
        for segment in 0..self.lists.len() {
            self.places(segment).for_each(|p| seen[p] = true);
        }
        seen
    }

    /// Returns how many numbers of X are stored: the cost of one product.
    pub fn size(&self) -> usize {
        self.lists.iter().map(|l| l.dense.len() + l.values.len()).sum()
    }

    /// Returns the weights of a segment's features in local order: dense ones first.
    pub fn gather(&self, segment: usize, w: &[f64]) -> Vec<f64> {
        self.places(segment).map(|p| w[p]).collect()
    }

    /// Indices of a segment's features in the features of its piece, in local order.
    fn numbers(&self, segment: usize) -> impl Iterator<Item = usize> {
        (0..self.dense.len()).chain(self.sparse[segment].iter().map(|&n| n as usize))
    }

    /// Positions of a segment's features in the weights, in local order.
    fn places(&self, segment: usize) -> impl Iterator<Item = usize> {
        let places = &self.pieces[self.piece[segment] as usize].places;
        self.numbers(segment).map(|n| places[n] as usize)
    }

    /// Iterates over the features of candidate `i` of a segment that are not 0, as place in the weights and
    /// value.
    pub fn row(&self, segment: usize, i: usize) -> impl Iterator<Item = (u32, f64)> {
        let list = &*self.lists[segment];
        let dense = self.dense.iter().enumerate().map(move |(c, &p)| (p, list.dense[c * list.k + i]));
        let places = &self.pieces[self.piece[segment] as usize].places;
        let place = move |id: u32| places[self.sparse[segment][id as usize] as usize];
        let sparse = row(list, i).map(move |(id, x)| (place(id), f64::from(x)));
        dense.filter(|f| f.1 != 0.0).chain(sparse)
    }

    /// Returns the scores X·w of a segment's candidates; `local` are the weights that [`FeatureMatrix::gather`]
    /// returned.
    pub fn scores(&self, segment: usize, local: &[f64]) -> Vec<f64> {
        let list = &*self.lists[segment];
        let (dense, sparse) = local.split_at(self.dense.len());
        let mut out = vec![0.0; list.k];
        if !list.ids.is_empty() {
            for (i, s) in out.iter_mut().enumerate() {
                *s = row(list, i).map(|(id, value)| sparse[id as usize] * f64::from(value)).sum();
            }
        }
        for (c, &w) in dense.iter().enumerate().filter(|c| *c.1 != 0.0) {
            axpy(w, list.column(c), &mut out);
        }
        out
    }

    /// Returns Xᵀ·d of a segment in local order; `d` has one number per candidate.
    pub fn transpose(&self, segment: usize, d: &[f64]) -> Vec<f64> {
        let list = &*self.lists[segment];
        let mut out = vec![0.0; self.dense.len() + self.sparse[segment].len()];
        let (dense, sparse) = out.split_at_mut(self.dense.len());
        for (c, g) in dense.iter_mut().enumerate() {
            *g = dot(list.column(c), d);
        }
        if !list.ids.is_empty() {
            for (i, &d) in d.iter().enumerate().filter(|d| *d.1 != 0.0) {
                for (id, value) in row(list, i) {
                    sparse[id as usize] += d * f64::from(value);
                }
            }
        }
        out
    }

    /// Applies `f` to all segments in parallel, divided among the processes of the fleet, and sums up what it
    /// returns.
    ///
    /// `f(segment, sums)` adds to `sums`, which are added to `totals`, and returns a value to keep and a
    /// local gradient, or an empty one, which is added to `gradient`. Every process receives the same totals
    /// and gradient. Returned are the first segment of this process and the values kept for its segments.
    pub fn visit<T: Send>(
        &self,
        fleet: Fleet<'_>,
        totals: &mut [f64],
        gradient: &mut [f64],
        f: impl Fn(usize, &mut [f64]) -> Given<T> + Sync,
    ) -> (usize, Vec<T>) {
        let width = totals.len();
        let one = |piece: &Piece| {
            let given: Vec<(Given<T>, Vec<f64>)> = piece
                .segments
                .clone()
                .into_par_iter()
                .with_max_len(4)
                .map(|s| {
                    let mut own = vec![0.0; width];
                    (f(s, &mut own), own)
                })
                .collect();
            let mut sums = vec![0.0; width];
            let mut kept = Vec::with_capacity(given.len());
            for (s, ((keep, local), own)) in piece.segments.clone().zip(given) {
                axpy(1.0, &own, &mut sums[..width]);
                if !local.is_empty() {
                    sums.resize(width + piece.places.len(), 0.0);
                }
                for (n, x) in self.numbers(s).zip(local) {
                    sums[width + n] += x;
                }
                kept.push(keep);
            }
            (kept, sums)
        };
        let mine = own(fleet, self.pieces.len());
        let (kept, sums): (Vec<Vec<T>>, Vec<Vec<f64>>) =
            self.pieces[mine.clone()].par_iter().map(one).unzip();
        for (piece, sums) in self.pieces.iter().zip(fleet.rows(sums)) {
            let (own, local) = sums.split_at(width);
            axpy(1.0, own, totals);
            for (&p, x) in piece.places.iter().zip(local) {
                gradient[p as usize] += x;
            }
        }
        let first = self.pieces.get(mine.start).map_or(self.lists.len(), |p| p.segments.start);
        (first, kept.into_iter().flatten().collect())
    }
}

/// Iterates over the sparse features of candidate `i` as local number and value.
#[inline]
fn row(list: &Candidates, i: usize) -> impl Iterator<Item = (u32, f32)> {
    let range = list.row_starts[i] as usize..list.row_starts[i + 1] as usize;
    list.ids[range.clone()].iter().copied().zip(list.values[range].iter().copied())
}
