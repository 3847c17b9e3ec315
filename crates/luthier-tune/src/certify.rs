//! Proof that weights are optimal on fixed lists, by branch and bound (in the spirit of Galley and Quirk 2011).
//!
//! Segments are assigned candidates one after the other. A prefix of choices is reachable if some weights prefer every
//! chosen candidate to all others of its segment that have other statistics (the first of those with the same features),
//! which a linear program decides: max ε with w·(h − hⱼ) ≥ ε and |wᵢ| ≤ 1, in features divided by their spread within
//! lists. Prefixes with ε ≤ [`MARGIN`] are cut off, and so are those whose bound on the score is not above the best score
//! so far. Constraints enter a program only when its solution violates them, so that its size hardly depends on the number
//! of candidates.
//!
//! **Bound of BLEU.** For total length c from a to b, any λ > 0 and any μ, with matches mₙ of order n = 1…N,
//! the inequality of arithmetic and geometric means and Lagrange's relaxation of the length give
//!
//! BLEU ≤ BP(b)·(1/N)·(Πλₙ)^(−1/N)·[Σₛ maxᵢ(Σₙ λₙmₙ − μ·len) + max(μa, μb)] / Πₙ max(1, a − fₙ)^(1/N)
//!
//! where BP has the shortest reference lengths and fₙ is the largest possible difference between the numbers of words and of
//! n-grams, (n − 1)S for sentences of n words or more. The range of lengths is divided into cells, one word each if there are
//! few; the bound of a cell is the least over a fixed family of (λ, μ), and that of the prefix the largest over cells. An
//! order without match counts as ½ match at most, which covers exponential smoothing.
//!
//! **Other metrics.** Error rates are bounded by the fewest edits over the longest references, columns by the mean of the
//! largest values.

use crate::{Candidates, start::spreads};
use luthier_core::{Error, Progress, Result, math};
use luthier_metric::{Metric, SentenceSmoothing, Smooth, add};
use microlp::{ComparisonOp, OptimizationDirection, Problem, Variable};
use serde::{Deserialize, Serialize};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Margin above which a prefix of choices is reachable.
pub const MARGIN: f64 = 1e-6;

/// Number of segments up to which prefixes are explored; larger pools get the bound of the empty prefix.
const SEGMENTS: usize = 64;

/// Largest number of cells of the range of lengths.
const CELLS: f64 = 64.0;

/// Number of violated constraints that enter a program at a time.
const ENTER: usize = 8;

/// When a search for a certificate gives up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Number of linear programs.
    pub programs: u64,
    /// Time; `None` for no limit. What is found in a limited time depends on the machine.
    pub time: Option<Duration>,
    /// Margin ε that makes weights reachable.
    pub margin: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { programs: 20_000, time: None, margin: MARGIN }
    }
}

/// What is known about the highest score that any weights reach on some lists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// Best score found.
    pub score: f64,
    /// Upper bound on the score of any weights; equal to the score if it is optimal.
    pub bound: f64,
    /// Whether no weights score higher: none that prefer their choices by more than the margin ([`Limits::margin`]), in
    /// features divided by their spread within lists and weights of at most 1.
    pub optimal: bool,
    /// Whether prefixes were explored; otherwise the bound is that of the oracle, which does not measure the search.
    pub explored: bool,
    /// Number of linear programs solved.
    pub programs: u64,
    /// Weights of the dense features that score higher than those given; `None` if there are none, or unknown.
    pub weights: Option<Vec<f64>>,
}

/// Searches weights that score higher than `found` on fixed lists, and proves that there are none if it can; `found` is a
/// score that some weights reach. Sparse features are not considered. Fails if the metric has no bound.
///
/// ```
/// # use luthier_io::nbest::Rows;
/// # use luthier_tune::{Judge, columns, lists, mert::{CertifyLimits, certify}};
/// # let mut rows = Rows::default();
/// # rows.push(0, "the house is very small", &[("lm", -2.0), ("tm", -3.0)], &[]).unwrap();
/// # rows.push(0, "house the small", &[("lm", -6.0), ("tm", -1.0)], &[]).unwrap();
/// # let references = [vec!["the house is very small"]];
/// let metric: luthier_metric::Metric = "bleu".parse().unwrap();
/// # let judge = Judge::new(&metric, &references, "ref.txt");
/// # let lists: Vec<_> = lists(&rows, &columns(&rows, None), Some(judge)).unwrap().into_iter().map(Into::into).collect();
/// let certificate = certify(&lists, &metric, 0.0, CertifyLimits::default(), luthier_core::Progress::NONE).unwrap();
/// assert!(certificate.optimal && certificate.score > 99.9);
/// ```
pub fn certify(
    lists: &[Arc<Candidates>],
    metric: &Metric,
    found: f64,
    limits: Limits,
    progress: Progress<'_>,
) -> Result<Certificate> {
    let spread = spreads(lists);
    let free: Vec<usize> = (0..spread.len()).filter(|&c| spread[c] > 0.0).collect();
    let mut order: Vec<&Candidates> = lists.iter().map(|l| &**l).filter(|l| l.k > 0).collect();
    order.sort_by(|a, b| importance(b, metric).total_cmp(&importance(a, metric)));
    let bound = Bound::new(&order, metric)?;
    let features =
        |list: &Candidates, i: usize| free.iter().map(|&c| list.column(c)[i] / spread[c]).collect();
    let mut search = Search {
        features: order.iter().map(|l| (0..l.k).map(|i| features(l, i)).collect()).collect(),
        lists: order,
        metric,
        bound,
        limits,
        since: Instant::now(),
        progress,
        best: found,
        weights: None,
        programs: 0,
        open: f64::NEG_INFINITY,
    };
    let root = vec![0.0; metric.width()];
    let oracle = search.bound.of(0, &root, metric);
    let explored = search.lists.len() <= SEGMENTS && !free.is_empty();
    if explored {
        search.explore(0, &root, &mut Vec::new(), None)?;
        search.open = search.open.min(oracle);
    } else {
        search.open = oracle;
    }
    let optimal = search.open <= search.best + TINY;
    let spread_out = |w: Vec<f64>| {
        let mut all = vec![0.0; spread.len()];
        free.iter().zip(w).for_each(|(&c, w)| all[c] = w / spread[c]);
        all
    };
    Ok(Certificate {
        score: search.best,
        bound: search.open.max(search.best),
        optimal,
        explored,
        programs: search.programs,
        weights: search.weights.map(spread_out),
    })
}

/// Relative difference of a constraint from the margin up to which it is satisfied.
const SLACK: f64 = 1e-9;

/// Difference of scores that is not a gain.
const TINY: f64 = 1e-9;

/// Range of the sentence scores of a list, times the size of the reference: lists that matter are assigned first.
fn importance(list: &Candidates, metric: &Metric) -> f64 {
    let scores =
        list.class.iter().map(|&c| metric.sentence_score(list.stats_of(c), SentenceSmoothing::default()));
    let (low, high) = scores.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), s| (l.min(s), h.max(s)));
    let size = metric.length_columns().first().map_or(1.0, |c| f64::from(list.stats_of(list.class[0])[c.1]));
    (high - low) * size
}

/// Fails unless a bound on the score of a metric is known.
pub(crate) fn check_metric(metric: &Metric) -> Result<()> {
    Bound::new(&[], metric).map(drop)
}

fn unbounded(metric: &Metric) -> Error {
    Error::new(format!("no bound is known for {} with these settings", metric.name()))
        .hint("certificates are for BLEU with smooth=exp or none, TER, WER, CER and columns")
}

/// A pair (λ, μ) of the bound of BLEU.
struct Member {
    lambda: Vec<f64>,
    mu: f64,
    /// (1/N)·(Πλₙ)^(−1/N).
    scale: f64,
    /// By depth: sum over the segments from there on of maxᵢ(Σₙ λₙmₙ − μ·len).
    rest: Vec<f64>,
}

/// Extremes of the statistics of the segments from a depth on.
#[derive(Clone)]
struct Rest {
    least: Vec<f64>,
    most: Vec<f64>,
    /// By order of BLEU: least number of n-grams minus number of words.
    fewer: Vec<f64>,
}

/// Upper bound on the score of a prefix of choices.
enum Bound {
    Bleu {
        order: usize,
        members: Vec<Member>,
        rest: Vec<Rest>,
    },
    /// Score of the fewest edits over the longest references.
    Edits(Vec<Rest>),
    /// Score of the largest values.
    Values(Vec<Rest>),
}

impl Bound {
    fn new(lists: &[&Candidates], metric: &Metric) -> Result<Self> {
        let width = metric.width();
        let order = if let Metric::Bleu(bleu) = metric { bleu.order } else { 0 };
        let none = Rest { least: vec![0.0; width], most: vec![0.0; width], fewer: vec![0.0; order] };
        let mut rest = vec![none; lists.len() + 1];
        for depth in (0..lists.len()).rev() {
            for i in 0..width {
                let of = lists[depth].class.iter().map(|&c| f64::from(lists[depth].stats_of(c)[i]));
                let (low, high) =
                    of.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
                rest[depth].least[i] = rest[depth + 1].least[i] + low;
                rest[depth].most[i] = rest[depth + 1].most[i] + high;
            }
            for n in 0..order {
                let of = lists[depth].class.iter().map(|&c| lists[depth].stats_of(c));
                let fewest =
                    of.map(|x| f64::from(x[order + n]) - f64::from(x[order])).fold(f64::INFINITY, f64::min);
                rest[depth].fewer[n] = rest[depth + 1].fewer[n] + fewest;
            }
        }
        let whole = |list: &&Candidates| list.stats.iter().all(|x| x.fract() == 0.0);
        match metric {
            Metric::Bleu(bleu)
                if matches!(bleu.smooth, Smooth::Exp | Smooth::None)
                    && !bleu.effective_order
                    && lists.iter().all(whole) =>
            {
                Ok(Bound::Bleu { order, members: family(lists, metric, order), rest })
            }
            Metric::Ter(_) | Metric::ErrorRate(_) => Ok(Bound::Edits(rest)),
            Metric::Column(_) => Ok(Bound::Values(rest)),
            _ => Err(unbounded(metric)),
        }
    }

    /// Returns a bound on the score of all choices for the segments from `depth` on, after choices with statistics
    /// `totals`.
    fn of(&self, depth: usize, totals: &[f64], metric: &Metric) -> f64 {
        match self {
            Bound::Bleu { order, members, rest } => {
                bleu_bound(*order, members, &rest[depth], (depth, totals))
            }
            Bound::Edits(rest) => {
                let rest = &rest[depth];
                metric.score(&[totals[0] + rest.least[0], totals[1] + rest.most[1]])
            }
            Bound::Values(rest) => {
                let all: Vec<f64> = totals.iter().zip(&rest[depth].most).map(|(t, m)| t + m).collect();
                metric.score(&all)
            }
        }
    }
}

/// Returns the family of (λ, μ): λₙ near 1/mₙ of the best sentences, with more or less weight on long n-grams, and prices
/// μ of a word.
fn family(lists: &[&Candidates], metric: &Metric, order: usize) -> Vec<Member> {
    let mut most = vec![0.0; metric.width()];
    for list in lists {
        let score = |&c: &u32| metric.sentence_score(list.stats_of(c), SentenceSmoothing::default());
        let best = list.class.iter().max_by(|a, b| score(a).total_cmp(&score(b)));
        if let Some(&c) = best {
            add(&mut most, list.stats_of(c));
        }
    }
    let mut members = Vec::new();
    for tilt in [0.5, 0.65, 0.8, 0.9, 1.0, 1.12, 1.25, 1.5, 2.0] {
        for price in [-2.0, -1.0, -0.5, -0.2, 0.0, 0.3, 0.6, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0] {
            let mut lambda = Vec::new();
            let mut power = 1.0;
            for matched in &most[..order] {
                lambda.push(1.0 / (matched.max(0.5) * power));
                power *= tilt;
            }
            let mu = price / most[order].max(1.0);
            let product: f64 = lambda.iter().product();
            let scale = math::powf(product, -1.0 / order as f64) / order as f64;
            let mut rest = vec![0.0; lists.len() + 1];
            for depth in (0..lists.len()).rev() {
                let value = |&c: &u32| {
                    let stats = lists[depth].stats_of(c);
                    let matches: f64 = lambda.iter().zip(stats).map(|(l, &m)| l * f64::from(m)).sum();
                    matches - mu * f64::from(stats[order])
                };
                let largest = lists[depth].class.iter().map(value).fold(f64::NEG_INFINITY, f64::max);
                rest[depth] = rest[depth + 1] + largest;
            }
            members.push(Member { lambda, mu, scale, rest });
        }
    }
    members
}

/// Returns the bound of BLEU, see the module's documentation.
fn bleu_bound(order: usize, members: &[Member], rest: &Rest, (depth, totals): (usize, &[f64])) -> f64 {
    let reference = totals[2 * order] + rest.least[2 * order];
    let (a, b) = (totals[order] + rest.least[order], totals[order] + rest.most[order]);
    let matched = |n: usize| if totals[n] > 0.0 { totals[n] } else { 0.5 };
    let base: Vec<f64> = members
        .iter()
        .map(|m| {
            let own: f64 = m.lambda.iter().enumerate().map(|(n, l)| l * matched(n)).sum();
            own - m.mu * totals[order] + m.rest[depth]
        })
        .collect();
    let cells = (b - a + 1.0).clamp(1.0, CELLS).floor();
    let step = (b - a + 1.0) / cells;
    let mut most: f64 = 0.0;
    for cell in 0..cells as u32 {
        let from = a + (step * f64::from(cell)).floor();
        let to = (a + (step * f64::from(cell + 1)).ceil() - 1.0).min(b);
        let brevity = math::exp((1.0 - reference / to.max(1.0)).min(0.0));
        let fewer = |n: usize| totals[order + n] - totals[order] + rest.fewer[n];
        let counted: f64 = (0..order).map(|n| (from + fewer(n)).max(1.0)).product();
        let mut least = f64::INFINITY;
        for (m, base) in members.iter().zip(&base) {
            let value = m.scale * (base + (m.mu * from).max(m.mu * to));
            least = if value < least { value } else { least };
        }
        most = most.max(brevity * least / math::powf(counted, 1.0 / order as f64));
    }
    // Rounding must not cut off the optimum.
    (100.0 * most * (1.0 + 1e-12)).min(100.0)
}

/// State of branch and bound.
struct Search<'a> {
    lists: Vec<&'a Candidates>,
    /// Features of all candidates divided by their spread, by segment and candidate.
    features: Vec<Vec<Vec<f64>>>,
    metric: &'a Metric,
    bound: Bound,
    limits: Limits,
    since: Instant,
    progress: Progress<'a>,
    best: f64,
    weights: Option<Vec<f64>>,
    programs: u64,
    /// Largest bound of the prefixes that are left unexplored.
    open: f64,
}

/// Weights that reach a prefix, with their margin, and the constraints of the program that they are the solution of.
#[derive(Clone)]
struct Witness {
    margin: f64,
    weights: Vec<f64>,
    active: Vec<usize>,
}

/// Product of a constraint and weights.
fn dot(row: &[f64], weights: &[f64]) -> f64 {
    row.iter().zip(weights).map(|(a, b)| a * b).sum()
}

impl Search<'_> {
    /// Explores all choices for the segments from `depth` on, the most promising first. `rows` are the constraints of
    /// the choices before, whose statistics sum to `totals`.
    fn explore(
        &mut self,
        depth: usize,
        totals: &[f64],
        rows: &mut Vec<Vec<f64>>,
        witness: Option<&Witness>,
    ) -> Result<()> {
        let Some(&list) = self.lists.get(depth) else {
            let score = self.metric.score(totals);
            if score > self.best + TINY {
                // The weights with the largest margin are the farthest from other choices.
                let widest = self.solve(rows, witness.map_or(&[], |w| &w.active), f64::INFINITY)?;
                if let Some(widest) = widest.or_else(|| witness.cloned()) {
                    (self.best, self.weights) = (score, Some(widest.weights));
                }
            }
            return Ok(());
        };
        let mut children: Vec<(f64, usize, Vec<f64>)> = Vec::new();
        for i in 0..list.k {
            let mut after = totals.to_vec();
            add(&mut after, list.stats_of(list.class[i]));
            let bound = if depth + 1 == self.lists.len() {
                self.metric.score(&after)
            } else {
                self.bound.of(depth + 1, &after, self.metric)
            };
            children.push((bound, i, after));
        }
        children.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        for (bound, i, after) in children {
            if bound <= self.best + TINY {
                break;
            }
            if self.is_over() {
                self.open = self.open.max(bound);
                continue;
            }
            let before = rows.len();
            let own = &self.features[depth];
            let others = (0..list.k).filter(|&j| list.class[j] != list.class[i]);
            // Of candidates with the same features the first is chosen.
            if others.clone().any(|j| j < i && own[j] == own[i]) {
                continue;
            }
            let others = others.filter(|&j| own[j] != own[i]);
            rows.extend(others.map(|j| own[i].iter().zip(&own[j]).map(|(a, b)| a - b).collect::<Vec<f64>>()));
            let inherited = witness.and_then(|w| {
                let margin = rows[before..].iter().map(|row| dot(row, &w.weights)).fold(w.margin, f64::min);
                (margin > self.limits.margin).then(|| Witness { margin, ..w.clone() })
            });
            let reached = match inherited {
                Some(witness) => Some(witness),
                None => self.solve(rows, witness.map_or(&[], |w| &w.active), self.limits.margin)?,
            };
            if let Some(witness) = reached {
                self.explore(depth + 1, &after, rows, Some(&witness))?;
            }
            rows.truncate(before);
        }
        Ok(())
    }

    /// Returns whether a limit has been reached.
    fn is_over(&self) -> bool {
        self.programs >= self.limits.programs || self.limits.time.is_some_and(|t| self.since.elapsed() >= t)
    }

    /// Returns weights that satisfy all constraints with a margin above `enough`, or else those with the largest margin.
    /// `None` if that is not above the limit, or if a program cannot be solved, which then counts as unexplored. The
    /// constraints `active` are in the program from the start.
    fn solve(&mut self, rows: &[Vec<f64>], active: &[usize], enough: f64) -> Result<Option<Witness>> {
        let mut active: Vec<usize> = active.to_vec();
        let mut violated: Vec<(f64, usize)> = Vec::new();
        loop {
            self.programs += 1;
            self.progress.poll()?;
            let Some((most, weights)) = self.relaxed(rows, &active) else {
                self.open = f64::INFINITY;
                return Ok(None);
            };
            // A solution without the other constraints has at least the margin of one with them.
            if most <= self.limits.margin {
                return Ok(None);
            }
            if !most.is_finite() {
                self.open = f64::INFINITY;
                return Ok(None);
            }
            violated.clear();
            let mut margin = most;
            for (i, row) in rows.iter().enumerate() {
                let value = dot(row, &weights);
                margin = margin.min(value);
                if value < most - SLACK * (1.0 + most) {
                    violated.push((value, i));
                }
            }
            violated.retain(|(_, i)| !active.contains(i));
            if margin > enough || violated.is_empty() {
                if margin > self.limits.margin {
                    return Ok(Some(Witness { margin, weights, active }));
                }
                // The solution is not accurate enough to tell.
                self.open = f64::INFINITY;
                return Ok(None);
            }
            violated.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            active.extend(violated.iter().take(ENTER).map(|v| v.1));
        }
    }

    /// Returns the largest margin of the constraints `active` and its weights.
    fn relaxed(&self, rows: &[Vec<f64>], active: &[usize]) -> Option<(f64, Vec<f64>)> {
        let mut program = Problem::new(OptimizationDirection::Maximize);
        let n = self.features[0][0].len();
        let w: Vec<Variable> = (0..n).map(|_| program.add_var(0.0, (-1.0, 1.0))).collect();
        let margin = program.add_var(1.0, (-1.0, 1e6));
        for &i in active {
            let terms: Vec<(Variable, f64)> =
                w.iter().copied().zip(rows[i].iter().copied()).chain([(margin, -1.0)]).collect();
            program.add_constraint(&terms, ComparisonOp::Ge, 0.0);
        }
        let solved = program.solve().ok()?.into_solution().ok()?;
        Some((solved.objective(), w.iter().map(|&v| solved.var_value(v)).collect()))
    }
}

#[cfg(test)]
mod tests;
