//! X·w and Xᵀ·d over a pool: written once, for every loss.
//!
//! A segment's features have local numbers; here they get the places that [`Weights`] gave them. Products are per
//! segment, in parallel, and the sums over segments are always in their order.

use crate::List;
use luthier_core::Weights;
use luthier_optim::{axpy, dot};
use rayon::prelude::*;
use std::sync::Arc;

/// The lists of a pool with the places of their features.
pub struct Design {
    lists: Vec<Arc<List>>,
    dense: Vec<u32>,
    sparse: Vec<Vec<u32>>,
    dim: usize,
}

/// Segments whose local gradients are in memory at once.
const BLOCK: usize = 256;

impl Design {
    /// All features must have been committed to `weights`.
    pub fn new(lists: Vec<Arc<List>>, weights: &Weights) -> Self {
        let dense = lists.first().map_or(Vec::new(), |l| weights.places(&l.columns));
        let sparse = lists.par_iter().map(|l| weights.places(&l.local)).collect();
        Design { lists, dense, sparse, dim: weights.len() }
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

    /// g += the local numbers of a segment.
    pub fn scatter(&self, segment: usize, local: &[f64], g: &mut [f64]) {
        for (p, x) in self.places(segment).zip(local) {
            g[p] += x;
        }
    }

    fn places(&self, segment: usize) -> impl Iterator<Item = usize> {
        self.dense.iter().chain(&self.sparse[segment]).map(|&p| p as usize)
    }

    /// The features of a candidate that are not 0, by place.
    pub fn row(&self, segment: usize, i: usize) -> impl Iterator<Item = (u32, f64)> {
        let list = &*self.lists[segment];
        let dense = self.dense.iter().enumerate().map(move |(c, &p)| (p, list.dense[c * list.k + i]));
        let sparse = row(list, i).map(move |(id, x)| (self.sparse[segment][id as usize], f64::from(x)));
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

    /// Works on all segments in parallel; each gives something to keep and a local gradient, which are added to
    /// `gradient` in order of segments.
    pub fn visit<T: Send>(&self, gradient: &mut [f64], f: impl Fn(usize) -> (T, Vec<f64>) + Sync) -> Vec<T> {
        let n = self.lists.len();
        let mut kept = Vec::with_capacity(n);
        for start in (0..n).step_by(BLOCK) {
            let block: Vec<(T, Vec<f64>)> =
                (start..n.min(start + BLOCK)).into_par_iter().with_max_len(4).map(&f).collect();
            for (i, (keep, local)) in block.into_iter().enumerate() {
                self.scatter(start + i, &local, gradient);
                kept.push(keep);
            }
        }
        kept
    }
}

/// The sparse features of a candidate.
#[inline]
fn row(list: &List, i: usize) -> impl Iterator<Item = (u32, f32)> {
    let range = list.offsets[i] as usize..list.offsets[i + 1] as usize;
    list.ids[range.clone()].iter().copied().zip(list.values[range].iter().copied())
}
