//! The n-best list of one segment, stored in columns: features, metric statistics and texts.

use luthier_core::{FeatureKey, Fingerprint, Local, Weights};
use luthier_metric::{Hypothesis, Metric, Prepared, Scratch};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One candidate output of a segment, as [`Candidates::new`] takes it.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// Text of the candidate, as the metric reads it.
    pub text: &'a str,
    /// Features of the candidate as keys and values, in any order, each key at most once; a missing feature is 0.
    pub features: &'a [(FeatureKey, f64)],
    /// Numbers that the metric reads besides the text, in the order of [`Metric::columns`]; empty for most
    /// metrics.
    pub columns: &'a [f64],
}

/// The candidates of one segment, stored in columns: dense and sparse features, metric statistics, texts.
///
/// A list owns its columns, so that merging touches one segment only. Scores cost O(k·d) for k candidates
/// with d dense features, plus the number of non-zero sparse values.
///
/// ```
/// use luthier_core::{FeatureKey, Local, Weights};
/// use luthier_metric::{Metric, Scratch};
/// use luthier_tune::{Candidate, Candidates};
/// use std::sync::Arc;
/// let lm = FeatureKey::of("lm");
/// let columns = Arc::new(Local::new(vec![lm]));
/// let candidates = [("a small house", [(lm, -4.0)]), ("the small house", [(lm, -3.0)])];
/// let candidates = candidates.iter().map(|(text, features)| Candidate { text, features, columns: &[] });
/// let mut list = Candidates::new(&columns, candidates, true);
/// let (metric, mut scratch): (Metric, _) = ("chrf".parse().unwrap(), Scratch::default());
/// list.judge(&metric, &metric.prepare(&["the small house"], &mut scratch), &mut scratch);
///
/// let weights = Weights::parse("w.txt", "lm 0.5").unwrap();
/// assert_eq!(list.best(&[0.5], &weights), Some(1)); // 0.5 · −3 > 0.5 · −4
/// assert_eq!(list.text(1), "the small house");
/// assert_ne!(list.stats_of(list.class[0]), list.stats_of(list.class[1]));
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Candidates {
    /// Number of candidates in the list.
    pub k: usize,
    /// Keys of the dense features, one per column; the same for all lists of a run.
    pub columns: Arc<Local>,
    /// Values of the dense features, column after column: column `c` of candidate `i` is `dense[c * k + i]`.
    pub dense: Vec<f64>,
    /// Starts of the candidates' sparse features, k + 1 numbers: those of candidate `i` are at
    /// `row_starts[i]..row_starts[i + 1]` in `ids` and `values`, in key order.
    pub row_starts: Vec<u32>,
    /// Sparse features by candidate, as positions in `local`; parallel to `values`.
    pub ids: Vec<u32>,
    /// Values of the sparse features by candidate; parallel to `ids`.
    pub values: Vec<f32>,
    /// Keys of all sparse features that occur in the list.
    pub local: Local,
    /// Names of the sparse features in the order of `local`; empty unless set by [`Candidates::named`].
    pub names: Vec<String>,
    /// Constant added to the score of each candidate, such as a decoder's cost of untranslated words; empty
    /// for none. Nothing is learned from it, and merged lists do not have it.
    pub fixed_score: Vec<f64>,
    /// Class of each candidate, its row in `stats`: candidates with equal statistics share one.
    pub class: Vec<u32>,
    /// Metric statistics by class, `width` numbers each; empty until the list is judged.
    pub stats: Vec<f32>,
    /// Length of a statistics vector; 0 until the list is judged.
    pub width: usize,
    /// 128-bit fingerprint of the text and features of each candidate; merging takes equal ones for the same
    /// candidate.
    pub fingerprint: Vec<u128>,
    text: String,
    text_end: Vec<u32>,
    /// Numbers that the metric reads besides the text, per candidate; also given statistics, until
    /// [`Candidates::judge_given`] takes them.
    given: Vec<f64>,
}

impl AsRef<Candidates> for Candidates {
    fn as_ref(&self) -> &Candidates {
        self
    }
}

impl Candidates {
    /// Returns the index of the candidate with the highest score under some weights, the first of equals; `None`
    /// if the list is empty. `dense` holds the weights of the dense columns, the sparse ones are looked up in
    /// `weights`.
    pub fn best(&self, dense: &[f64], weights: &Weights) -> Option<usize> {
        let mut scores = vec![0.0; self.k];
        self.scores(dense, weights, &mut scores);
        (self.k > 0).then(|| argmax(&scores))
    }

    /// Builds a list of candidates in the given order. Features that `columns` names become dense, all others
    /// sparse; with `distinct`, a candidate with the text and features of an earlier one is left out.
    pub fn new<'a>(
        columns: &Arc<Local>,
        candidates: impl Iterator<Item = Candidate<'a>>,
        distinct: bool,
    ) -> Self {
        let mut seen = FxHashSet::default();
        let mut rows = Builder::default();
        let mut layout = Layout::default();
        for candidate in candidates {
            layout.fit(columns, candidate.features);
            let print = layout.fingerprint(candidate);
            if !distinct || seen.insert(print) {
                rows.push(columns.keys().len(), &layout, candidate, print);
            }
        }
        rows.finish(columns)
    }

    /// Builds a list without candidates.
    pub fn empty(columns: &Arc<Local>) -> Self {
        Candidates::new(columns, std::iter::empty(), false)
    }

    /// Stores the names of the list's sparse features in `names`, looked up by `name`.
    #[must_use]
    pub fn named(mut self, name: impl Fn(FeatureKey) -> String) -> Self {
        self.names = self.local.keys().iter().map(|&k| name(k)).collect();
        self
    }

    /// Copies candidate `i`, with its statistics, into a list of its own.
    #[must_use]
    pub fn only(&self, i: usize) -> Candidates {
        let mut rows = Builder::default();
        rows.copy(self, i);
        rows.class[0] = 0;
        let stats = self.stats_of(self.class[i]).to_vec();
        let fixed_score = self.fixed_score.get(i).copied().into_iter().collect();
        let list = Candidates { stats, width: self.width, fixed_score, ..rows.finish(&self.columns) };
        if self.names.is_empty() {
            return list;
        }
        let name = |key| self.local.position(key).map_or(String::new(), |p| self.names[p].clone());
        list.named(name)
    }

    /// Returns the text of candidate `i`.
    pub fn text(&self, i: usize) -> &str {
        let start = if i == 0 { 0 } else { self.text_end[i - 1] };
        &self.text[start as usize..self.text_end[i] as usize]
    }

    /// Returns the values of dense feature `c`, one per candidate.
    pub fn column(&self, c: usize) -> &[f64] {
        &self.dense[c * self.k..(c + 1) * self.k]
    }

    /// Iterates over the features of candidate `i` that are not 0: dense ones first, each group in key order.
    pub fn features(&self, i: usize) -> impl Iterator<Item = (FeatureKey, f64)> {
        let dense =
            self.columns.keys().iter().enumerate().map(move |(c, &key)| (key, self.dense[c * self.k + i]));
        let range = self.row_starts[i] as usize..self.row_starts[i + 1] as usize;
        let sparse = range.map(|p| (self.local.keys()[self.ids[p] as usize], f64::from(self.values[p])));
        dense.chain(sparse).filter(|(_, v)| *v != 0.0)
    }

    /// Returns the metric statistics of a class, `width` numbers; empty before the list is judged.
    pub fn stats_of(&self, class: u32) -> &[f32] {
        &self.stats[class as usize * self.width..][..self.width]
    }

    /// Takes the numbers in [`Candidate::columns`], `width` per candidate, as the metric statistics, for
    /// statistics that were computed elsewhere.
    pub fn judge_given(&mut self, width: usize) {
        let given = std::mem::take(&mut self.given);
        self.width = width;
        let mut classes = Classes::default();
        self.stats.clear();
        for (i, stats) in given.chunks_exact(width).enumerate() {
            let stats: Vec<f32> = stats.iter().map(|&x| x as f32).collect();
            self.class[i] = classes.of(&stats, &mut self.stats);
        }
    }

    /// Computes the metric statistics and the class of every candidate from its text. `prepared` holds the
    /// references of the segment.
    pub fn judge(&mut self, metric: &Metric, prepared: &Prepared, scratch: &mut Scratch) {
        self.width = metric.width();
        let mut out = vec![0.0; self.width];
        let mut classes = Classes::default();
        self.stats.clear();
        let given = std::mem::take(&mut self.given);
        let width = metric.columns().len();
        // Many candidates differ in their features only; numbers besides the text could differ, too.
        let mut known: FxHashMap<&str, u32> = FxHashMap::default();
        let mut class = std::mem::take(&mut self.class);
        let mut stats = std::mem::take(&mut self.stats);
        for (i, class) in class.iter_mut().enumerate() {
            let text = self.text(i);
            if let Some(&same) = known.get(text) {
                *class = same;
                continue;
            }
            let hypothesis = Hypothesis { text, columns: &given[i * width..(i + 1) * width] };
            metric.stats(prepared, hypothesis, scratch, &mut out);
            *class = classes.of(&out, &mut stats);
            if width == 0 {
                known.insert(text, *class);
            }
        }
        drop(known);
        (self.class, self.stats) = (class, stats);
        self.given = given;
    }

    /// Returns the numbers of candidate `i` that the metric reads besides the text.
    pub(crate) fn given(&self, i: usize) -> &[f64] {
        let width = self.given.len().checked_div(self.k).unwrap_or(0);
        &self.given[i * width..(i + 1) * width]
    }

    /// Writes the model score s = Xw of every candidate to `out`, which has k numbers. `dense` holds the
    /// weights of the dense columns, the sparse ones are looked up in `weights`.
    pub fn scores(&self, dense: &[f64], weights: &Weights, out: &mut [f64]) {
        self.sparse_scores(weights, out);
        for (s, x) in out.iter_mut().zip(&self.fixed_score) {
            *s += x;
        }
        for (c, &w) in dense.iter().enumerate() {
            for (s, x) in out.iter_mut().zip(self.column(c)) {
                *s += w * x;
            }
        }
    }

    /// Writes the part of the model score that comes from sparse features to `out`, which has k numbers.
    pub fn sparse_scores(&self, weights: &Weights, out: &mut [f64]) {
        out.fill(0.0);
        if self.ids.is_empty() {
            return;
        }
        let mut local = Vec::new();
        weights.gather(&self.local, &mut local);
        for (i, s) in out.iter_mut().enumerate() {
            for p in self.row_starts[i] as usize..self.row_starts[i + 1] as usize {
                *s += local[self.ids[p] as usize] * f64::from(self.values[p]);
            }
        }
    }

    /// Copies the candidates in `rows`, in that order, into a list that shares their statistics.
    #[must_use]
    pub fn select(&self, rows: &[u32]) -> Candidates {
        let mut picked = Builder::default();
        for &i in rows {
            picked.copy(self, i as usize);
        }
        Candidates { stats: self.stats.clone(), width: self.width, ..picked.finish(&self.columns) }
    }

    /// Returns the list with its dense columns multiplied by `by`; further columns are not changed.
    pub(crate) fn scaled(&self, by: &[f64]) -> Candidates {
        let mut list = self.clone();
        if self.k > 0 {
            for (column, by) in list.dense.chunks_mut(self.k).zip(by) {
                for x in column {
                    *x *= by;
                }
            }
        }
        list
    }

    /// Gives the list the dense columns `columns`, which must include its own; values of new columns are 0.
    #[must_use]
    pub fn widen(mut self, columns: &Arc<Local>) -> Candidates {
        let column = |&key: &FeatureKey| match self.columns.position(key) {
            Some(c) => self.column(c).to_vec(),
            None => vec![0.0; self.k],
        };
        self.dense = columns.keys().iter().flat_map(column).collect();
        self.columns = columns.clone();
        self
    }

    /// Appends the candidates of `other` that are new to this list and returns their number. The statistics
    /// of both lists must come from the same references. Costs O(k) for k candidates in all.
    pub fn merge(&mut self, other: &Candidates) -> usize {
        let mut seen: FxHashSet<u128> = self.fingerprint.iter().copied().collect();
        let new: Vec<usize> = (0..other.k).filter(|&i| seen.insert(other.fingerprint[i])).collect();
        if !new.is_empty() {
            let mut rows = Builder::default();
            for (list, i) in (0..self.k).map(|i| (&*self, i)).chain(new.iter().map(|&i| (other, i))) {
                rows.copy(list, i);
            }
            let stats = rows.classes([&*self, other], self.k);
            let columns = self.columns.clone();
            *self = Candidates { stats, width: self.width.max(other.width), ..rows.finish(&columns) };
        }
        new.len()
    }
}

/// Numbers distinct statistics vectors in the order of their first occurrence.
#[derive(Default)]
struct Classes(FxHashMap<u128, u32>);

impl Classes {
    /// Returns the class of a statistics vector, which is appended to `all` if it is new.
    fn of(&mut self, stats: &[f32], all: &mut Vec<f32>) -> u32 {
        let print = stats.iter().fold(Fingerprint::default(), |f, x| f.word(u64::from(x.to_bits())));
        let next = self.0.len() as u32;
        *self.0.entry(print.finish()).or_insert_with(|| {
            all.extend_from_slice(stats);
            next
        })
    }
}

/// Returns the index of the highest score, the lowest index among equals.
pub(crate) fn argmax(scores: &[f64]) -> usize {
    let mut best = 0;
    for (i, s) in scores.iter().enumerate() {
        if *s > scores[best] {
            best = i;
        }
    }
    best
}

/// Where the features of a candidate go. Most candidates of a list have the same features in the same order, so that it is
/// computed once for many of them.
#[derive(Default)]
struct Layout {
    /// Keys of the features, in the order of the candidate.
    keys: Vec<FeatureKey>,
    /// Dense column of each; `None` if it is sparse.
    column: Vec<Option<u32>>,
    /// Indices of the features in key order.
    order: Vec<u32>,
}

impl Layout {
    /// Makes this the layout of a candidate with the given features.
    fn fit(&mut self, columns: &Local, features: &[(FeatureKey, f64)]) {
        if self.keys.len() == features.len() && self.keys.iter().zip(features).all(|(k, f)| *k == f.0) {
            return;
        }
        self.keys.clear();
        self.keys.extend(features.iter().map(|f| f.0));
        self.column.clear();
        self.column.extend(self.keys.iter().map(|&k| columns.position(k).map(|c| c as u32)));
        self.order.clear();
        self.order.extend(0..features.len() as u32);
        self.order.sort_unstable_by_key(|&i| self.keys[i as usize]);
    }

    /// Returns the fingerprint of text and canonical features: sorted by key, without zeros, at the precision that lists store.
    fn fingerprint(&self, candidate: Candidate<'_>) -> u128 {
        let mut print = Fingerprint::default().bytes(candidate.text.as_bytes());
        for &i in &self.order {
            let (key, value) = candidate.features[i as usize];
            let value = if self.column[i as usize].is_some() { value } else { f64::from(value as f32) };
            if value != 0.0 {
                print = print.word(key.0).word(value.to_bits());
            }
        }
        print.finish()
    }
}

/// Builder of a list: collects candidates by row; [`Builder::finish`] stores them by column.
#[derive(Default)]
struct Builder {
    rows: Vec<f64>,
    sparse: Vec<(FeatureKey, f32)>,
    row_starts: Vec<u32>,
    fingerprint: Vec<u128>,
    class: Vec<u32>,
    text: String,
    text_end: Vec<u32>,
    given: Vec<f64>,
}

impl Builder {
    /// Appends a candidate; `width` is the number of dense columns.
    fn push(&mut self, width: usize, layout: &Layout, candidate: Candidate<'_>, print: u128) {
        let start = self.rows.len();
        self.rows.resize(start + width, 0.0);
        for &i in &layout.order {
            let (key, value) = candidate.features[i as usize];
            match layout.column[i as usize] {
                Some(c) => self.rows[start + c as usize] = value,
                None if value != 0.0 => self.sparse.push((key, value as f32)),
                None => {}
            }
        }
        self.given.extend_from_slice(candidate.columns);
        self.end(candidate.text, print, 0);
    }

    /// Appends candidate `i` of another list.
    fn copy(&mut self, list: &Candidates, i: usize) {
        self.rows.extend((0..list.columns.keys().len()).map(|c| list.dense[c * list.k + i]));
        let range = list.row_starts[i] as usize..list.row_starts[i + 1] as usize;
        self.sparse.extend(range.map(|p| (list.local.keys()[list.ids[p] as usize], list.values[p])));
        self.given.extend_from_slice(list.given(i));
        self.end(list.text(i), list.fingerprint[i], list.class[i]);
    }

    fn end(&mut self, text: &str, print: u128, class: u32) {
        self.row_starts.push(self.sparse.len() as u32);
        self.fingerprint.push(print);
        self.class.push(class);
        self.text.push_str(text);
        self.text_end.push(self.text.len() as u32);
    }

    /// Renumbers the classes of two concatenated lists, the second of which starts at row `split`; returns
    /// their statistics.
    fn classes(&mut self, lists: [&Candidates; 2], split: usize) -> Vec<f32> {
        let mut stats = Vec::new();
        let mut classes = Classes::default();
        for (i, class) in self.class.iter_mut().enumerate() {
            let of = lists[usize::from(i >= split)].stats_of(*class);
            *class = classes.of(of, &mut stats);
        }
        stats
    }

    fn finish(self, columns: &Arc<Local>) -> Candidates {
        let (k, width) = (self.class.len(), columns.keys().len());
        let mut dense = vec![0.0; k * width];
        for (i, row) in self.rows.chunks_exact(width.max(1)).enumerate() {
            for (c, x) in row.iter().enumerate() {
                dense[c * k + i] = *x;
            }
        }
        let local = Local::new(self.sparse.iter().map(|f| f.0).collect());
        // Collected from an iterator of known length: excess capacity would cost a gigabyte in a large pool.
        let ids = self.sparse.iter().map(|f| local.position(f.0).unwrap_or(0) as u32).collect();
        let mut row_starts = vec![0];
        row_starts.extend(self.row_starts);
        Candidates {
            k,
            columns: columns.clone(),
            dense,
            row_starts,
            ids,
            values: self.sparse.iter().map(|f| f.1).collect(),
            local,
            names: Vec::new(),
            fixed_score: Vec::new(),
            class: self.class,
            stats: Vec::new(),
            width: 0,
            fingerprint: self.fingerprint,
            text: self.text,
            text_end: self.text_end,
            given: self.given,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> FeatureKey {
        FeatureKey::of(name)
    }

    fn list(columns: &Arc<Local>, candidates: &[(&str, &[(&str, f64)])]) -> Candidates {
        let features: Vec<Vec<(FeatureKey, f64)>> =
            candidates.iter().map(|c| c.1.iter().map(|f| (key(f.0), f.1)).collect()).collect();
        let candidates =
            candidates.iter().zip(&features).map(|(c, f)| Candidate { text: c.0, features: f, columns: &[] });
        let mut list = Candidates::new(columns, candidates, true);
        let metric: Metric = "bleu".parse().unwrap();
        let mut scratch = Scratch::default();
        list.judge(&metric, &metric.prepare(&["a b c"], &mut scratch), &mut scratch);
        list
    }

    #[test]
    fn merge_keeps_order_and_takes_only_what_is_new() {
        let columns = Arc::new(Local::new(vec![key("lm")]));
        let mut a = list(&columns, &[("a b", &[("lm", 1.0)]), ("c", &[("lm", 2.0), ("s", 1.0)])]);
        let b = list(
            &columns,
            &[
                ("c", &[("s", 1.0), ("lm", 2.0), ("zero", 0.0)]), // the same in another order
                ("c", &[("lm", 2.0), ("t", 1.0)]),                // the same text, other features
                ("a b c", &[("lm", 3.0)]),
            ],
        );
        assert_eq!(a.merge(&b), 2);
        assert_eq!((0..a.k).map(|i| a.text(i)).collect::<Vec<_>>(), ["a b", "c", "c", "a b c"]);
        assert_eq!(a.column(0), [1.0, 2.0, 2.0, 3.0]);
        assert_eq!(a.class, [0, 1, 1, 2]);
        assert_eq!(a.stats_of(a.class[3])[..4], [3.0, 2.0, 1.0, 0.0]);
        assert_eq!(a.features(2).collect::<Vec<_>>(), [(key("lm"), 2.0), (key("t"), 1.0)]);
        assert_eq!(a.merge(&b), 0);
    }

    #[test]
    fn scores_are_the_dot_product() {
        let columns = Arc::new(Local::new(vec![key("lm"), key("tm")]));
        let a = list(&columns, &[("a", &[("lm", 1.0), ("tm", 2.0), ("s", 4.0)]), ("b", &[("tm", 1.0)])]);
        let w = Weights::parse("w", "lm 10\ntm 100\ns 0.5\n").unwrap();
        let mut dense = Vec::new();
        w.gather(&columns, &mut dense);
        let mut s = vec![0.0; 2];
        a.scores(&dense, &w, &mut s);
        assert_eq!(s, [212.0, 100.0]);
    }
}
