//! X·w and Xᵀ·d over a pool: written once, for every loss.
//!
//! A segment's features have local numbers; here they get the places that [`Weights`] gave them. Products are per
//! segment, in parallel; sums over segments are made of pieces that depend on the number of segments alone, wherever each of
//! them is added up.

use crate::{
    Fleet, List,
    fleet::{own, pieces},
};
use luthier_core::Weights;
use luthier_optim::{axpy, dot};
use rayon::prelude::*;
use std::{ops::Range, sync::Arc};

/// The lists of a pool with the places of their features.
pub struct Design {
    lists: Vec<Arc<List>>,
    dense: Vec<u32>,
    /// By segment: numbers of its sparse features in the piece that it belongs to.
    sparse: Vec<Vec<u32>>,
    /// By segment: which piece that is.
    piece: Vec<u32>,
    pieces: Vec<Piece>,
    dim: usize,
}

/// Consecutive segments.
struct Piece {
    segments: Range<usize>,
    /// Places of all their features: dense ones first, sparse ones in ascending order.
    places: Vec<u32>,
}

/// What a segment gives: something to keep, and a local gradient.
type Given<T> = (T, Vec<f64>);

impl Design {
    /// All features must have been committed to `weights`.
    pub fn new(lists: Vec<Arc<List>>, weights: &Weights) -> Self {
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
        Design { lists, dense, sparse, piece, pieces: all, dim: weights.len() }
    }

    /// Number of weights.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The lists.
    pub fn lists(&self) -> &[Arc<List>] {
        &self.lists
    }

    /// For every weight whether some candidate has its feature, or may have.
    pub fn seen(&self) -> Vec<bool> {
        let mut seen = vec![false; self.dim];
        for segment in 0..self.lists.len() {
            self.places(segment).for_each(|p| seen[p] = true);
        }
        seen
    }

    /// Numbers that are stored: what a product reads.
    pub fn size(&self) -> usize {
        self.lists.iter().map(|l| l.dense.len() + l.values.len()).sum()
    }

    /// The weights of a segment's features: dense ones first.
    pub fn gather(&self, segment: usize, w: &[f64]) -> Vec<f64> {
        self.places(segment).map(|p| w[p]).collect()
    }

    /// Where a segment's features are in its piece.
    fn numbers(&self, segment: usize) -> impl Iterator<Item = usize> {
        (0..self.dense.len()).chain(self.sparse[segment].iter().map(|&n| n as usize))
    }

    fn places(&self, segment: usize) -> impl Iterator<Item = usize> {
        let places = &self.pieces[self.piece[segment] as usize].places;
        self.numbers(segment).map(|n| places[n] as usize)
    }

    /// The features of a candidate that are not 0, by place.
    pub fn row(&self, segment: usize, i: usize) -> impl Iterator<Item = (u32, f64)> {
        let list = &*self.lists[segment];
        let dense = self.dense.iter().enumerate().map(move |(c, &p)| (p, list.dense[c * list.k + i]));
        let places = &self.pieces[self.piece[segment] as usize].places;
        let place = move |id: u32| places[self.sparse[segment][id as usize] as usize];
        let sparse = row(list, i).map(move |(id, x)| (place(id), f64::from(x)));
        dense.filter(|f| f.1 != 0.0).chain(sparse)
    }

    /// X·w of a segment, of weights that were gathered.
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

    /// Xᵀ·d of a segment, in local numbers.
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

    /// Works on all segments in parallel, here and in other processes. Each adds to `totals` and gives something to keep and a
    /// local gradient, or nothing for that; gradients are added to `gradient`. What is kept is that of the segments of this
    /// process, the first of which is returned, too.
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

/// The sparse features of a candidate.
#[inline]
fn row(list: &List, i: usize) -> impl Iterator<Item = (u32, f32)> {
    let range = list.offsets[i] as usize..list.offsets[i + 1] as usize;
    list.ids[range.clone()].iter().copied().zip(list.values[range].iter().copied())
}
