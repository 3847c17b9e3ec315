//! Softmax loss and expected BLEU over all derivations of forests.
//!
//! Values and gradients equal those of [`Softmax`](super::Softmax) and [`Xbleu`](super::Xbleu) over lists of
//! all derivations with p ∝ exp(γs).
//!
//! - Softmax: 1/N Σ −log(Zₒ/Zₙ), where Zₙ is the inside sum of a segment's forest and Zₒ that of the
//!   sub-forest of the oracle translation; the gradient is the difference of expected features, by
//!   inside–outside.
//! - xBLEU: forests are split so that each node knows the n − 1 words at its ends, which makes n-gram counts
//!   additive over edges; expected counts come from inside–outside, gradients from the first-order expectation
//!   of edge values.
//!
//! An evaluation costs O(edges).

use super::{Brevity, Clip, xbleu::value};
use crate::{
    Candidate, Candidates, Fleet, ForestPool, SegmentForests,
    fleet::{own, pieces},
    forest_oracle::{Aim, Ngrams, Only},
    forest_pool::Places,
    oracle::oracle,
    pairs::OracleBy,
};
use luthier_core::{Local, Weights};
use luthier_forest::{Expectation, Forest, rescore};
use luthier_metric::{Bleu, Metric, Prepared, Scratch, SentenceSmoothing};
use luthier_optim::{Objective, axpy, dot};
use rayon::prelude::*;
use std::{ops::Range, sync::Arc};

/// Pop limit of cube pruning per node in the search for oracles.
const POP: usize = 50;
/// Maximum number of hyperedges per node when nodes are split by n-grams; only very dense forests reach it.
const SPLITS: usize = 20_000;
/// Number of translations per segment among which the oracle by corpus score is chosen.
const ORACLES: usize = 50;

/// The objective of softmax or xBLEU over all derivations of forests, plus l2/2 ‖w‖², in the form that minimisers
/// take.
///
/// Sums over derivations are inside sums, gradients come from inside–outside; an evaluation costs O(edges).
/// Of several forests of a segment only the last one is used, because a union would count derivations twice.
pub struct OnForests<'a> {
    kind: Kind,
    /// Scale γ of the scores.
    gamma: f64,
    /// Weight of the regulariser ½‖w‖².
    l2: f64,
    /// Number of weights.
    dim: usize,
    parts: Vec<Part>,
    /// Positions in the weights of the learned features, in ascending order.
    learned: Vec<u32>,
    fleet: Fleet<'a>,
}

/// Loss that is computed.
enum Kind {
    Softmax,
    Xbleu { order: usize, clip: Clip, brevity: Brevity },
}

/// Forests of one segment.
struct Part {
    /// All derivations; for xBLEU with n-gram counts as features.
    forest: Forest<'static>,
    /// Derivations of the oracle, for softmax.
    oracle: Option<Forest<'static>>,
    /// Positions of the forest's features in the weights.
    places: Places,
    /// N-gram counts, for xBLEU.
    counts: Option<Counts>,
}

/// N-gram counts of a forest, for expected BLEU.
struct Counts {
    /// Local feature number of the first n-gram.
    base: u32,
    /// Order of each n-gram and its largest count c* in a reference.
    limits: Vec<(usize, u32)>,
    references: Arc<Prepared>,
}

/// Inside–outside sums of a segment at some weights.
struct Point {
    /// Over all derivations.
    all: Expectation,
    /// Over the derivations of the oracle.
    oracle: Option<Expectation>,
    /// Whether the expected count of each n-gram is below its limit c*, so that it is not clipped.
    open: Vec<bool>,
}

impl<'a> OnForests<'a> {
    /// Builds the negative log-likelihood of oracle translations, which are searched for in the forests by
    /// BLEU: per segment, or for the corpus score. The tuples are (choice of oracles, smoothing of sentence
    /// BLEU, seed) and (γ, l2).
    pub fn softmax(
        pool: &ForestPool,
        bleu: &Bleu,
        (by, how, seed): (OracleBy, SentenceSmoothing, u64),
        weights: &Weights,
        (gamma, l2): (f64, f64),
        fleet: Fleet<'a>,
    ) -> Self {
        Self::towards(pool, &oracles(pool, bleu, by, how, seed), weights, (gamma, l2), fleet)
    }

    /// Builds the negative log-likelihood of given translations, one per segment, as word numbers of its
    /// forest. Segments whose forest does not contain the translation are left out.
    pub(crate) fn towards(
        pool: &ForestPool,
        oracles: &[Vec<u32>],
        weights: &Weights,
        (gamma, l2): (f64, f64),
        fleet: Fleet<'a>,
    ) -> Self {
        let mut loss = Self::new(pool, weights, Kind::Softmax, (gamma, l2), fleet, |s, forest| {
            let only = rescore(forest, &Only(&oracles[s]), &vec![0.0; forest.edges()], None);
            (forest.clone(), Some(only), None, 0)
        });
        loss.parts.retain(|p| p.oracle.as_ref().is_none_or(|o| !o.is_empty()));
        loss
    }

    /// Builds minus the BLEU of expected n-gram counts; the tuples are (clipping, brevity penalty) and (γ,
    /// l2). [`Clip::Candidate`] is not possible on forests.
    pub fn xbleu(
        pool: &ForestPool,
        bleu: &Bleu,
        (clip, brevity): (Clip, Brevity),
        weights: &Weights,
        (gamma, l2): (f64, f64),
        fleet: Fleet<'a>,
    ) -> Self {
        let kind = Kind::Xbleu { order: bleu.order, clip, brevity };
        Self::new(pool, weights, kind, (gamma, l2), fleet, |s, forest| {
            let references = &pool.segments[s].references;
            let ngrams = Ngrams::new(forest, bleu, references);
            let scores = forest.scores(&pool.local(forest, weights));
            let counted = rescore(forest, &ngrams, &scores, Some(SPLITS));
            let counts =
                Counts { base: ngrams.base, limits: ngrams.limits.clone(), references: references.clone() };
            (counted, None, Some(counts), ngrams.width())
        })
    }

    /// Builds the objective over the last forest of each segment; `make` returns the forest to learn from, the
    /// sub-forest of its oracle, its n-gram counts, and the number of local feature numbers that these take.
    fn new<'p>(
        pool: &'p ForestPool,
        weights: &Weights,
        kind: Kind,
        (gamma, l2): (f64, f64),
        fleet: Fleet<'a>,
        make: impl Fn(
            usize,
            &'p Forest<'static>,
        ) -> (Forest<'static>, Option<Forest<'static>>, Option<Counts>, usize)
        + Sync,
    ) -> Self {
        let part = |s: usize| {
            let old = pool.segments[s].forests.last().filter(|f| !f.is_empty())?;
            let (forest, oracle, counts, width) = make(s, old);
            let places = pool.places(old, weights).wider(width);
            Some(Part { forest, oracle, places, counts })
        };
        let parts = (0..pool.segments.len()).into_par_iter().filter_map(part).collect();
        let mut learned = weights.places(&pool.columns);
        learned.sort_unstable();
        OnForests { kind, gamma, l2, dim: weights.len(), parts, learned, fleet }
    }

    /// Sets γ, the scale of scores in p ∝ exp(γs).
    pub fn set_scale(&mut self, gamma: f64) {
        self.gamma = gamma;
    }

    /// Returns the number of sums over segments that the value is a function of.
    fn width(&self) -> usize {
        match self.kind {
            Kind::Softmax => 1,
            Kind::Xbleu { order, .. } => 2 * order + 1,
        }
    }

    /// Returns the inside–outside sums of a segment at `w`, and its share of the sums over segments.
    fn forward(&self, part: &Part, w: &[f64]) -> (Point, Vec<f64>) {
        let mut local = part.places.weights(w);
        for x in &mut local {
            *x *= self.gamma;
        }
        let mut point = Point {
            all: Expectation::new(&part.forest, &part.forest.scores(&local)),
            oracle: part.oracle.as_ref().map(|o| Expectation::new(o, &o.scores(&local))),
            open: Vec::new(),
        };
        let (Kind::Xbleu { order, clip, .. }, Some(counts)) = (&self.kind, &part.counts) else {
            let good = point.oracle.as_ref().map_or(0.0, |o| o.log_z);
            let lost = point.all.log_z - good;
            return (point, vec![lost]);
        };
        let n = *order;
        let mut expected = vec![0.0; part.places.len()];
        part.forest.add_features(&point.all.counts(&part.forest), &mut expected);
        let (grams, totals) = expected[counts.base as usize..].split_at(counts.limits.len());
        let mut sums = vec![0.0; 2 * n + 1];
        let limit = |l: u32| if *clip == Clip::Expected { f64::from(l) } else { f64::INFINITY };
        for (count, &(order, l)) in grams.iter().zip(&counts.limits).filter(|c| c.1.0 > 0) {
            sums[order - 1] += count.min(limit(l));
        }
        point.open = grams.iter().zip(&counts.limits).map(|(c, l)| *c < limit(l.1)).collect();
        sums[n..2 * n].copy_from_slice(totals);
        sums[2 * n] = Bleu::closest_length(&counts.references, totals[0]);
        (point, sums)
    }

    /// Returns the loss as a function of the sums over segments, and writes its derivative to `d_sums`.
    fn value(&self, sums: &[f64], d_sums: &mut [f64]) -> f64 {
        match self.kind {
            Kind::Xbleu { order, brevity, .. } => value(order, brevity, sums, d_sums),
            Kind::Softmax => {
                let n = self.parts.len().max(1) as f64;
                d_sums[0] = 1.0 / n;
                sums[0] / n
            }
        }
    }

    /// Returns the derivative of the loss with respect to the local weights of a segment, times 1/γ.
    fn backward(&self, part: &Part, point: &Point, d_sums: &[f64]) -> Vec<f64> {
        let forest = &part.forest;
        let mut out = vec![0.0; part.places.len()];
        let (Kind::Xbleu { order, .. }, Some(counts)) = (&self.kind, &part.counts) else {
            forest.add_features(&point.all.counts(forest), &mut out);
            if let (Some(oracle), Some(expectation)) = (&part.oracle, &point.oracle) {
                let counts: Vec<f64> = expectation.counts(oracle).iter().map(|c| -c).collect();
                oracle.add_features(&counts, &mut out);
            }
            for x in &mut out {
                *x *= d_sums[0];
            }
            return out;
        };
        let n = *order;
        let first = counts.base as usize;
        let worth = |f: u32| {
            let g = f as usize - first;
            match counts.limits.get(g) {
                Some(l) if point.open[g] => d_sums[l.0 - 1],
                Some(_) => 0.0,
                None => d_sums[n + g - counts.limits.len()],
            }
        };
        let values: Vec<f64> = (0..forest.edges() as u32)
            .map(|e| {
                let own = forest.own_features(e).filter(|f| f.0 >= counts.base);
                own.map(|(f, v)| worth(f) * f64::from(v)).sum()
            })
            .collect();
        forest.add_features(&point.all.slopes(forest, &values), &mut out);
        out
    }
}

impl Objective for OnForests<'_> {
    fn dim(&self) -> usize {
        self.dim
    }

    fn evaluate(&mut self, w: &[f64], gradient: &mut [f64]) -> f64 {
        let all: Vec<Range<usize>> = pieces(self.parts.len()).collect();
        let mine = &all[own(self.fleet, all.len())];
        let forward = |piece: &Range<usize>| {
            let parts = self.parts[piece.clone()].par_iter();
            let (points, sums): (Vec<Point>, Vec<Vec<f64>>) = parts.map(|part| self.forward(part, w)).unzip();
            let mut total = vec![0.0; self.width()];
            for part in &sums {
                axpy(1.0, part, &mut total);
            }
            (points, total)
        };
        let (points, sums): (Vec<Vec<Point>>, Vec<Vec<f64>>) = mine.par_iter().map(forward).unzip();
        let mut total = vec![0.0; self.width()];
        for sums in self.fleet.rows(sums) {
            axpy(1.0, &sums, &mut total);
        }
        let mut d_sums = vec![0.0; self.width()];
        let value = self.value(&total, &mut d_sums);
        let backward = |(piece, points): (&Range<usize>, &Vec<Point>)| {
            let parts = &self.parts[piece.clone()];
            let local: Vec<Vec<f64>> = parts
                .par_iter()
                .zip(points)
                .map(|(part, point)| self.backward(part, point, &d_sums))
                .collect();
            let mut sums = vec![0.0; self.learned.len()];
            for (part, local) in parts.iter().zip(&local) {
                for (p, x) in part.places.learned(local) {
                    sums[self.learned.partition_point(|l| *l < p)] += self.gamma * x;
                }
            }
            sums
        };
        let sums = mine.par_iter().zip(&points).map(backward).collect();
        gradient.fill(0.0);
        for sums in self.fleet.rows(sums) {
            for (&p, x) in self.learned.iter().zip(sums) {
                gradient[p as usize] += x;
            }
        }
        axpy(self.l2, w, gradient);
        value + 0.5 * self.l2 * dot(w, w)
    }
}

/// Returns the oracle translation of each segment as word numbers of its forest; empty for an empty forest.
fn oracles(pool: &ForestPool, bleu: &Bleu, by: OracleBy, how: SentenceSmoothing, seed: u64) -> Vec<Vec<u32>> {
    let metric = Metric::Bleu(bleu.clone());
    let found: Vec<(Vec<Vec<u32>>, Candidates)> = pool
        .segments
        .par_iter()
        .map(|segment| {
            competitors(segment, bleu, &metric, if by == OracleBy::Sentence { 1 } else { ORACLES }, how)
        })
        .collect();
    let lists: Vec<&Candidates> = found.iter().map(|f| &f.1).collect();
    let chosen = oracle(&lists, &metric, false, seed).chosen;
    found.iter().zip(chosen).map(|(f, at)| f.0.get(at).cloned().unwrap_or_default()).collect()
}

/// Searches a segment's last forest for the `k` translations with the highest sentence BLEU; returns their
/// words and the judged list.
fn competitors(
    segment: &SegmentForests,
    bleu: &Bleu,
    metric: &Metric,
    k: usize,
    how: SentenceSmoothing,
) -> (Vec<Vec<u32>>, Candidates) {
    let columns = Arc::new(Local::default());
    let Some(forest) = segment.forests.last().filter(|f| !f.is_empty()) else {
        return (Vec::new(), Candidates::empty(&columns));
    };
    let gain = |stats: &[f32]| metric.sentence_score(stats, how);
    let aim = Aim::new(forest, bleu, &segment.references, &gain);
    let found = aim.best(forest, &vec![0.0; forest.local.keys().len()], k, POP);
    let texts: Vec<String> = found.iter().map(|f| forest.text(&f.words)).collect();
    let candidates = texts.iter().map(|text| Candidate { text, features: &[], columns: &[] });
    let mut list = Candidates::new(&columns, candidates, false);
    list.judge(metric, &segment.references, &mut Scratch::default());
    (found.into_iter().map(|f| f.words).collect(), list)
}
