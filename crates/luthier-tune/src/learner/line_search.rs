//! MERT (Och 2003; Cer et al. 2008): maximises the corpus score of the one-best output by exact line searches.
//!
//! With Ẽ(w) the candidates of highest model score w·h, one per segment (Cer et al. 2008, eq. 1), MERT searches
//! w* = argmin ℓ(Ẽ(w)) (eq. 2), where the loss ℓ is minus the corpus score.
//!
//! - Line search (Cer et al. 2008, §2.1): along w + γd every candidate is a line b + γm with b = w·h and m =
//!   d·h, and two candidates change places at γ = (b₁ − b₂)/(m₂ − m₁). The upper envelope of a segment's lines
//!   gives its one-best output for all γ; [`ListWalker`] and [`ForestWalker`] compute it.
//! - Search strategy (§2.2, §3.1): [`Strategy`] chooses the directions d. Koehn's coordinate descent searches
//!   all axes and moves along the one that gains most, until none gains more than 10⁻⁶. The default on lists is an
//!   iterated local search, see the module `iterated`.
//! - Regularisation (§3.2): [`Smoothing`] replaces the score of a plateau by the average or the worst over its
//!   neighbours.
//! - Restarts, of the other strategies: each round climbs from `restarts` random starts, the first round also from the current weights.
//!   The end with the highest true score is the result, the earlier start among equals.
//!
//! Departures from Algorithm 1 of Cer et al.: lines are searched in both directions; the envelope costs O(k log
//! k) per segment of k candidates instead of O(k²); the step goes to the middle of the best plateau, not to its
//! edge.
//!
//! A start ends where its strategy finds no gain; Koehn's coordinate descent ends after 1,000 moves (100 with
//! smoothing) at the latest. A move costs one line search per free feature. Weights are L1-normalised, because
//! MERT does not determine their scale; not so if some are fixed or bounded.

mod iterated;

use super::{Learner, Nonnegative, Note};
use crate::{
    Candidates, Evidence, Fleet, ForestPool, State,
    certify::certify,
    mert::{Certificate, CertifyLimits, Flat, ForestWalker, ListWalker, Smoothing},
    recipe::Mert,
    start::spreads,
};
use iterated::Iterated;
use luthier_core::{
    Error, FeatureKey, Local, Progress, Result, Step, Weights,
    random::{Purpose, Stream},
};
use luthier_metric::Metric;
use luthier_optim::{Ascent, Direction, Peak, Strategy, Walker};
use rustc_hash::FxHashMap;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
};

/// Minimum error rate training (Och 2003): maximises the corpus score of the one-best output over the pool,
/// argmax over w of score(Σₛ stats(argmaxₑ w·h(e))), by exact line searches.
///
/// Along w + γd every candidate is a line b + γm with b = w·h and m = d·h, so the score is piecewise constant
/// in γ and its best interval is found exactly, in O(k log k) per segment of k candidates ([`ListWalker`], or
/// [`ForestWalker`] on forests). Each start follows the search strategy until it finds no gain (with koehn,
/// until no axis gains more than 10⁻⁶). The weights with the highest score of all starts are the result, those
/// of the earlier start among equals. Only dense features are tuned. Weights are L1-normalised unless some are
/// fixed or bounded.
///
/// ```
/// # use luthier_core::{Progress, Weights};
/// # use luthier_io::nbest::Rows;
/// # use luthier_tune::{Evidence, Fleet, Judge, Learner, State, columns, lists};
/// # let mut rows = Rows::default();
/// # rows.push(0, "the house is very small", &[("lm", -2.0), ("tm", -3.0)], &[]).unwrap();
/// # rows.push(0, "house the small", &[("lm", -6.0), ("tm", -1.0)], &[]).unwrap();
/// # let references = [vec!["the house is very small"]];
/// use luthier_tune::mert::LineSearch;
/// let metric: luthier_metric::Metric = "bleu".parse().unwrap();
/// # let judge = Judge::new(&metric, &references, "ref.txt");
/// # let lists = lists(&rows, &columns(&rows, None), Some(judge)).unwrap();
/// # let evidence = Evidence::Lists(lists.into_iter().map(Into::into).collect());
/// // Under these weights the second of two candidates wins, which scores 0.
/// let mut state = State::new(Weights::parse("w.txt", "lm 0.1\ntm 1").unwrap());
/// let mert = LineSearch { restarts: 5, ..LineSearch::new(metric, 1) };
/// mert.learn(&evidence, &mut state, &Fleet::ALONE, Progress::NONE).unwrap();
/// let list = &evidence.lists()[0];
/// let mut dense = Vec::new();
/// state.weights.gather(&list.columns, &mut dense);
/// assert_eq!(list.best(&dense, &state.weights), Some(0));
/// assert!((state.weights.l1() - 1.0).abs() < 1e-12);
/// ```
#[derive(Clone)]
pub struct LineSearch {
    /// Metric whose corpus score is maximised.
    pub metric: Metric,
    /// Search strategy: how each start chooses the directions of its line searches.
    pub strategy: Strategy,
    /// Number of random directions that [`Strategy::Koehn`] searches besides the axes at every move, and
    /// [`Strategy::Iterated`] in every pass.
    pub random_directions: usize,
    /// Number of line searches after which [`Strategy::Iterated`] ends; `None` for the default, which depends on the
    /// number of free features.
    pub budget: Option<u32>,
    /// Whether the lists are fixed, so that weights of any sign may be tried; with a decoder the signs of the current
    /// weights are kept in random starts.
    pub fixed_lists: bool,
    /// Whether only the current weights are climbed from: no other starts and no perturbations.
    pub local: bool,
    /// Number of directions in a row without gain after which [`Strategy::Random`] stops.
    pub patience: usize,
    /// Smoothing of plateaus: how an interval of a line is scored together with its neighbours (Cer et al.
    /// 2008, §3.2).
    pub smoothing: Smoothing,
    /// Number of random starts per round; the first round also starts from the current weights.
    pub restarts: u32,
    /// Number of rounds of restarts, at least 1; from the second round on, starts are drawn near the best
    /// weights so far.
    pub rounds: u32,
    /// Features whose weights are fixed or bounded.
    pub limits: Limits,
    /// Limits of the search for a certificate that follows learning from fixed lists; `None` to search for none.
    pub certify: Option<CertifyLimits>,
    /// Seed of random starts and directions.
    pub seed: u64,
}

/// Constraints on the weights that [`LineSearch`] may choose; the default has none.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// Features whose weights are not changed.
    pub fixed: Vec<FeatureKey>,
    /// Smallest and largest weight of a feature, −∞ or ∞ for no bound; features that are not listed are unbounded.
    pub bounds: FxHashMap<FeatureKey, (f64, f64)>,
    /// Features whose weights must not be negative.
    pub nonnegative: Nonnegative,
}

impl LineSearch {
    /// MERT with the default settings of the recipe [`Mert`] on lists from a decoder: strategy iterated, 15 random starts,
    /// no smoothing.
    pub fn new(metric: Metric, seed: u64) -> Self {
        Mert::default().line_search(metric, seed)
    }
}

/// Result of a start: its true score and its weights.
type End = (f64, Vec<f64>);

impl Learner for LineSearch {
    fn prepare(&self, weights: &mut Weights) {
        let clamped: Vec<f64> = weights
            .iter()
            .map(|(name, w)| {
                let (low, high) = self.limits.of(FeatureKey::of(name));
                w.clamp(low, high)
            })
            .collect();
        weights.replace(&clamped);
    }

    fn normalizes(&self) -> bool {
        !self.limits.fix_scale()
    }

    fn learn(
        &self,
        evidence: &Evidence,
        state: &mut State,
        fleet: &Fleet<'_>,
        progress: Progress<'_>,
    ) -> Result<Note> {
        let (space, columns) = match evidence {
            Evidence::Lists(lists) => {
                let Some(first) = lists.first() else { return Ok(None) };
                if self.certify.is_some() {
                    only_dense(&state.weights, &first.columns)?;
                }
                (SearchSpace::Lists(lists, Arc::new(Flat::new(lists))), &first.columns)
            }
            Evidence::Forests(pool) => (SearchSpace::Forests(pool), &pool.columns),
        };
        let mut start = Vec::new();
        state.weights.gather(columns, &mut start);
        let mut ascent = self.ascent(columns);
        let iterated = self.strategy == Strategy::Iterated && matches!(space, SearchSpace::Lists(..));
        let spread = if iterated { spreads(evidence.lists()) } else { Vec::new() };
        if iterated {
            ascent.unit = spread.iter().map(|s| if *s > 0.0 { 1.0 / s } else { 0.0 }).collect();
            ascent.free.retain(|&c| spread[c] > 0.0);
            if !self.fixed_lists {
                keep_signs(&mut ascent.bounds, &start);
            }
        }
        // A feature that first occurs in a later iteration starts at 0, which can be out of bounds.
        for (w, &(low, high)) in start.iter_mut().zip(&ascent.bounds) {
            *w = w.clamp(low, high);
        }
        let job = Job {
            search: self,
            space,
            columns,
            state,
            ascent,
            start,
            progress,
            best: Mutex::new(f64::NEG_INFINITY),
            done: AtomicU32::new(0),
        };
        if let Some(search) = iterated.then(|| Iterated::new(&job, fleet, &spread)).flatten() {
            let best = search.run()?;
            state.weights.replace(&best.1);
            return Ok(None);
        }
        let mut best = job.round(0, None, fleet)?;
        for round in 1..self.rounds {
            let end = job.round(round, Some(&best), fleet)?;
            if end.0 > best.0 {
                best = end;
            }
        }
        state.weights.replace(&best.1);
        Ok(None)
    }

    fn certify(
        &self,
        lists: &[Arc<Candidates>],
        state: &mut State,
        fleet: &Fleet<'_>,
        progress: Progress<'_>,
    ) -> Result<Option<Certificate>> {
        let (Some(limits), Some(first)) = (self.certify, lists.first()) else { return Ok(None) };
        let mut dense = Vec::new();
        state.weights.gather(&first.columns, &mut dense);
        let score = ListWalker::new(lists, &self.metric, &state.weights, &dense).score();
        // One process searches: time limits must not divide them.
        let mut found = fleet.map(1, |_| certify(lists, &self.metric, score, limits, progress))?;
        let mut certificate = found.swap_remove(0);
        certificate.score = score;
        if let Some(better) = certificate.weights.take() {
            let mut weights = state.weights.clone();
            weights.set(&first.columns, &better);
            weights.scale(1.0 / weights.l1());
            weights.gather(&first.columns, &mut dense);
            let reached = ListWalker::new(lists, &self.metric, &weights, &dense).score();
            if reached > score {
                (state.weights, certificate.score) = (weights, reached);
            }
        }
        certificate.optimal = certificate.optimal && certificate.score >= certificate.bound - 1e-9;
        Ok(Some(certificate))
    }
}

impl LineSearch {
    /// Builds the search over the dense columns, with its free coordinates and bounds.
    fn ascent(&self, columns: &Local) -> Ascent {
        let keys = columns.keys();
        Ascent {
            strategy: self.strategy,
            free: (0..keys.len()).filter(|&c| !self.limits.fixed.contains(&keys[c])).collect(),
            bounds: keys.iter().map(|k| self.limits.of(*k)).collect(),
            random_directions: self.random_directions,
            patience: self.patience,
            smoothed: !self.smoothing.is_none(),
            ..Ascent::new(keys.len())
        }
    }
}

impl Limits {
    /// Returns the smallest and largest weight of a feature; infinite without a bound.
    fn of(&self, key: FeatureKey) -> (f64, f64) {
        let (low, high) = self.bounds.get(&key).copied().unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
        if self.nonnegative.contains(key) { (low.max(0.0), high.max(0.0)) } else { (low, high) }
    }

    /// Returns whether any weight is fixed or bounded or must not be negative.
    pub fn any(&self) -> bool {
        self.fix_scale() || self.nonnegative != Nonnegative::None
    }

    /// Returns whether any weight is fixed or bounded; weights are then not L1-normalised.
    pub fn fix_scale(&self) -> bool {
        !self.fixed.is_empty() || !self.bounds.is_empty()
    }
}

/// Fails if a feature that is not dense has a weight, which a certificate does not cover.
fn only_dense(weights: &Weights, columns: &Local) -> Result<()> {
    let sparse = |(name, w): (&str, f64)| {
        (w != 0.0 && !columns.keys().contains(&FeatureKey::of(name))).then(|| name.to_owned())
    };
    match weights.iter().find_map(sparse) {
        Some(name) => {
            let message = format!("--certify covers dense features only, and the weight of {name} is not 0");
            Err(Error::new(message).hint("leave out --certify or the weights of sparse features"))
        }
        None => Ok(()),
    }
}

/// Largest weight of the opposite sign that one iteration with a decoder can give a feature, relative to its weight.
const CROSSING: f64 = 0.25;

/// Tightens bounds so that weights keep their signs, or cross 0 by little. Lists of a decoder tell nothing about the output
/// under reversed signs: a small step lets the next lists show it.
fn keep_signs(bounds: &mut [(f64, f64)], weights: &[f64]) {
    for ((low, high), &w) in bounds.iter_mut().zip(weights) {
        if w > 0.0 {
            *low = low.max(-CROSSING * w);
        } else if w < 0.0 {
            *high = high.min(-CROSSING * w);
        }
    }
}

/// Candidates that lines are searched over: n-best lists, with their flattened form, or forests.
enum SearchSpace<'a> {
    Lists(&'a [Arc<Candidates>], Arc<Flat>),
    Forests(&'a ForestPool),
}

impl SearchSpace<'_> {
    /// Puts a walker at `point`; `weights` holds the weights of the features that are not searched.
    fn walker<'a>(
        &'a self,
        search: &'a LineSearch,
        weights: &Weights,
        point: &[f64],
    ) -> Box<dyn Walker + 'a> {
        let (metric, smoothing) = (&search.metric, search.smoothing);
        match self {
            SearchSpace::Lists(lists, flat) => {
                Box::new(ListWalker::over(flat, lists, metric, weights, point).smoothed(smoothing))
            }
            SearchSpace::Forests(pool) => {
                Box::new(ForestWalker::new(pool, metric, weights, point).smoothed(smoothing))
            }
        }
    }
}

/// A walker that counts line searches and polls `progress` before each. Once stopped, no search finds a gain, so that the
/// ascent ends at once.
struct Polled<'a> {
    walker: &'a mut dyn Walker,
    progress: Progress<'a>,
    searches: u64,
    stopped: bool,
}

impl Walker for Polled<'_> {
    fn point(&self) -> &[f64] {
        self.walker.point()
    }

    fn score(&self) -> f64 {
        self.walker.score()
    }

    fn peak(&mut self, direction: Direction<'_>, within: (f64, f64)) -> Peak {
        self.searches += 1;
        self.stopped = self.stopped || self.progress.poll().is_err();
        if self.stopped { Peak::NONE } else { self.walker.peak(direction, within) }
    }

    fn step(&mut self, direction: Direction<'_>, t: f64) {
        self.walker.step(direction, t);
    }

    fn place(&mut self, point: &[f64]) {
        self.stopped = self.stopped || self.progress.poll().is_err();
        if !self.stopped {
            self.walker.place(point);
        }
    }
}

/// State of one call of `learn`, shared by all starts.
struct Job<'a> {
    search: &'a LineSearch,
    space: SearchSpace<'a>,
    columns: &'a Local,
    state: &'a State,
    ascent: Ascent,
    start: Vec<f64>,
    progress: Progress<'a>,
    /// Highest score of the starts that are done, for progress reports.
    best: Mutex<f64>,
    /// Number of starts that are done.
    done: AtomicU32,
}

impl Job<'_> {
    /// Runs all starts of a round and returns the best result, `best` of earlier rounds included; the earliest
    /// of equals. Only the first round starts from the current weights.
    fn round(&self, round: u32, best: Option<&End>, fleet: &Fleet<'_>) -> Result<End> {
        let restarts = self.search.restarts;
        let (first, n) = if round == 0 { (0, restarts + 1) } else { (1 + round * restarts, restarts) };
        let ends = fleet.map(n, |shard| self.run_start(first + shard.0, best))?;
        let mut winner = best.cloned().unwrap_or((f64::NEG_INFINITY, Vec::new()));
        for end in ends {
            if end.0 > winner.0 {
                winner = end;
            }
        }
        Ok(winner)
    }

    /// Runs start number `index`: the current weights for 0, else random weights, or weights near `best`. Fails
    /// with an error of kind `Interrupted` if the progress callback stops the run.
    fn run_start(&self, index: u32, best: Option<&End>) -> Result<End> {
        let epoch = self.state.epoch;
        let point = match best {
            _ if index == 0 => self.start.clone(),
            None => self.random_start(index),
            Some(best) => self.near(best, index),
        };
        let mut walker = self.space.walker(self.search, &self.state.weights, &point);
        let mut walker =
            Polled { walker: &mut *walker, progress: self.progress, searches: 0, stopped: false };
        let mut stream = Stream::new(self.search.seed, Purpose::Direction, epoch, index);
        self.ascent.climb(&mut walker, &mut || stream.normal());
        if walker.stopped {
            return Err(Error::interrupted());
        }
        let point = walker.point().to_vec();
        let end = self.end(&point);
        self.report(end.0)?;
        Ok(end)
    }

    /// Returns the weights at a point, normalised, with their score.
    fn end(&self, point: &[f64]) -> End {
        let mut weights = self.state.weights.clone();
        weights.set(self.columns, point);
        if !self.search.limits.fix_scale() && weights.l1() > 0.0 {
            weights.scale(1.0 / weights.l1());
        }
        // Scaling rounds, so the score is recomputed from the weights that are written.
        let mut scaled = Vec::new();
        weights.gather(self.columns, &mut scaled);
        let score = self.space.walker(self.search, &weights, &scaled).score();
        (score, weights.iter().map(|(_, v)| v).collect())
    }

    /// Draws a start: each free weight uniformly from its bounds; without bounds from [0, 1] where the current
    /// weight is positive, from [−1, 0] where it is negative, from [−1, 1] where it is 0.
    fn random_start(&self, index: u32) -> Vec<f64> {
        let mut stream = Stream::new(self.search.seed, Purpose::Restart, self.state.epoch, index);
        self.scatter(|c| {
            let w = self.start[c];
            let (low, high) = self.ascent.bounds[c];
            let usual: (f64, f64) = (if w > 0.0 { 0.0 } else { -1.0 }, if w < 0.0 { 0.0 } else { 1.0 });
            let low = if low.is_finite() { low } else { usual.0.min(high - 1.0) };
            let high = if high.is_finite() { high } else { usual.1.max(low + 1.0) };
            stream.uniform(low, high)
        })
    }

    /// Draws a start near the best weights so far: adds Gaussian noise to each free weight, with a standard
    /// deviation of 0.1, 0.25, 0.5 or 1 times the mean absolute weight, by start number.
    fn near(&self, best: &End, index: u32) -> Vec<f64> {
        let mut stream = Stream::new(self.search.seed, Purpose::Perturb, self.state.epoch, index);
        let mut weights = self.state.weights.clone();
        weights.replace(&best.1);
        let mut point = Vec::new();
        weights.gather(self.columns, &mut point);
        let mean = point.iter().map(|w| w.abs()).sum::<f64>() / point.len().max(1) as f64;
        let size = mean * [0.1, 0.25, 0.5, 1.0][index as usize % 4];
        self.scatter(|c| {
            let (low, high) = self.ascent.bounds[c];
            (point[c] + size * stream.normal()).clamp(low, high)
        })
    }

    /// Returns the current weights with every free coordinate replaced by a draw.
    fn scatter(&self, mut draw: impl FnMut(usize) -> f64) -> Vec<f64> {
        let mut point = self.start.clone();
        for &c in &self.ascent.free {
            point[c] = draw(c);
        }
        point
    }

    /// Reports the number of line searches and the best score so far.
    fn report_searches(&self, done: u64, total: u64, best: f64) -> Result<()> {
        let (done, total) = (done.min(total), total);
        self.progress.report(&Step { what: "line searches", done, total, value: Some(best) })
    }

    /// Reports a finished start and the best score so far.
    fn report(&self, score: f64) -> Result<()> {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let mut best = self.best.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *best = best.max(score);
        let total = u64::from(1 + self.search.restarts * self.search.rounds);
        self.progress.report(&Step { what: "starts", done: u64::from(done), total, value: Some(*best) })
    }
}
