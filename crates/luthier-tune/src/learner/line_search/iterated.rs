//! Iterated local search: the starts of [`Strategy::Iterated`](luthier_optim::Strategy::Iterated) on n-best lists.
//!
//! Distances are in standardised features: a weight counts in units of 1/spread, with the spread of the feature within
//! lists, so that badly scaled features are searched as well as others.
//!
//! - **Starts.** The current weights and random ones. Fixed lists also start from the best of 2D + 1 simple weight
//!   vectors ([`signed_start`]), whose signs most of the random starts have. With a decoder, they are near the current
//!   weights and have their signs, and no weight crosses 0 by much: reversed signs win on lists that do not represent them,
//!   and the next output collapses.
//! - **Successive halving.** With many lists, each start makes two passes of cyclic ascent on every [`EVERY`]th of them; the
//!   current weights and the best [`KEEP`] others go on. Each makes one pass on all lists; the better half makes another one,
//!   and so on.
//! - **Perturbations** of what the best four starts have reached, the heads of four chains, eight perturbations at a time:
//!   noise in all features or in one, or a step towards another good vector. Each climbs to a local maximum, but is given up
//!   if it is [`FAR`] below the head of its chain after one pass; the best becomes the head. With many lists, it climbs first
//!   on the candidates that are best somewhere near the heads, about one in eight, and on all only if it comes close to the
//!   head. After every [`ROUNDS`] rounds the better half of the chains goes on, and the nearby candidates are looked up again.
//! - **Cycles.** When [`PATIENCE`] perturbations in a row have not gained [`GAIN`], other random starts are tried in the
//!   same way. The search ends after `budget` line searches, or after [`CYCLES`] cycles.
//! - **Choice.** Among the ends whose score is within [`CLOSE`] of the best, the one that is farthest from a change of
//!   statistics along the axes and 2D fixed random directions.
//!
//! Small pools of fixed lists are then searched exhaustively by [`certify`](crate::mert::certify).

use super::{End, Job, Polled, SearchSpace};
use crate::{
    Candidates, Evidence, Fleet, Learner, State,
    certify::{Limits as CertifyLimits, certify},
    learner::{HopeFear, Loss, Minimize},
    mert::{Flat, ListWalker},
    start::signed_start,
};
use luthier_core::{
    Error, Result,
    random::{Purpose, Stream},
};
use luthier_optim::{Direction, Limit, Walker as _};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};

/// Number of line searches per free feature, and at least, by default.
const PER_FEATURE: u64 = 370;
const LEAST: u64 = 2000;
/// The same with a decoder in the loop, whose next lists correct what a short search misses.
const PER_FEATURE_IN_LOOP: u64 = 100;
const LEAST_IN_LOOP: u64 = 500;
/// Number of candidates that are looked at by default even if the pool is small.
const WORK: u64 = 2_000_000;
/// With so many lists, starts are first compared on every `EVERY`th of them, after so many passes; so many go on.
const MANY_LISTS: usize = 400;
const EVERY: usize = 8;
const SAMPLE_PASSES: usize = 2;
const KEEP: usize = 12;
/// With a decoder, random starts lie between the current weights and random ones, at these shares of the way.
const NEAR: [f64; 3] = [0.1, 0.3, 0.9];
/// Number of chains of perturbations at the start.
const CHAINS: usize = 4;
/// Number of perturbations per round, of all chains together. It belongs to the search, not to the machine.
const WIDTH: usize = 8;
/// Number of rounds after which the better half of the chains goes on.
const ROUNDS: u32 = 6;
/// Largest number of passes from a perturbation.
const PASSES: usize = 20;
/// Difference from the head of its chain from which a perturbation is given up after one pass, in per cent.
const FAR: f64 = 0.1;
/// Sizes of perturbations, relative to the norm of the point.
const SIZES: [f64; 3] = [0.03, 0.1, 0.3];
/// Number of points whose neighbourhoods decide which candidates perturbations are tried on, and their size, relative to the
/// norm of the point.
const LOOKS: usize = 12;
/// Number of times that the search for nearby candidates must fit into the rest of the budget to be worth its cost.
const WORTH: u64 = 3;
const REACH: f64 = 0.3;
/// Cost of a line search on nearby candidates, relative to one on all.
const NEARBY_COST: f64 = 0.3;
/// Difference from the head of its chain up to which a perturbation that has climbed on nearby candidates climbs on all of
/// them, in per cent.
const MARGIN: f64 = 0.02;
/// Number of perturbations in a row without gain after which a cycle ends.
const PATIENCE: usize = 48;
/// Number of cycles of starts and perturbations at most, while the budget lasts.
const CYCLES: u32 = 8;
/// Smallest gain that counts for the patience, in per cent.
const GAIN: f64 = 0.005;
/// Difference of scores up to which the more robust answer wins, in per cent.
const CLOSE: f64 = 0.01;
/// Number of epochs of hope–fear MIRA, whose weights are one of the starts.
const MIRA_EPOCHS: u32 = 5;
/// Tolerance and largest number of steps of minimum risk training, whose weights are another start.
const RISK_TOLERANCE: f64 = 1e-2;
const RISK_STEPS: usize = 50;
/// Number of good ends that are kept, in all and by chain.
const ELITE: usize = 8;
/// Number of candidates and of linear programs up to which fixed lists are searched exhaustively.
const SMALL: usize = 400;
const PROGRAMS: u64 = 2000;

/// End of an ascent.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Climbed {
    score: f64,
    point: Vec<f64>,
    searches: u64,
    /// Whether no direction gains any more.
    ended: bool,
}

/// Lists that are searched, all or a sample.
struct Ground<'a> {
    lists: Vec<Arc<Candidates>>,
    flat: Arc<Flat>,
    /// Walkers that are not in use. Their envelopes speed up the next ascent and do not affect it.
    walkers: Mutex<Vec<ListWalker<'a>>>,
}

impl Ground<'_> {
    fn new(lists: &[Arc<Candidates>], flat: Arc<Flat>) -> Self {
        Ground { lists: lists.to_vec(), flat, walkers: Mutex::new(Vec::new()) }
    }
}

/// State of an iterated local search.
pub(super) struct Iterated<'a, 'b> {
    job: &'b Job<'a>,
    lists: &'a [Arc<Candidates>],
    ground: Ground<'a>,
    fleet: &'b Fleet<'b>,
    /// Spread of each feature.
    spread: &'b [f64],
    /// Simple start of fixed lists, whose signs most of the random starts have.
    simple: Option<Vec<f64>>,
    /// Best ends so far, best first, the earlier among equals.
    elite: Vec<Climbed>,
    /// Number of line searches so far, and their limit.
    spent: u64,
    budget: u64,
}

impl<'a, 'b> Iterated<'a, 'b> {
    pub(super) fn new(job: &'b Job<'a>, fleet: &'b Fleet<'b>, spread: &'b [f64]) -> Option<Self> {
        let SearchSpace::Lists(lists, flat) = &job.space else { return None };
        let lists: &'a [Arc<Candidates>] = lists;
        let candidates = lists.iter().map(|l| l.k as u64).sum::<u64>().max(1);
        let free = job.ascent.free.len() as u64;
        let (each, least) =
            if job.search.fixed_lists { (PER_FEATURE, LEAST) } else { (PER_FEATURE_IN_LOOP, LEAST_IN_LOOP) };
        let usual = (each * free).max(least).max(WORK / candidates);
        let budget = job.search.budget.map_or(usual, u64::from);
        let ground = Ground::new(lists, flat.clone());
        let mut search =
            Iterated { job, lists, ground, fleet, spread, simple: None, elite: Vec::new(), spent: 0, budget };
        search.simple = if job.search.local { None } else { search.simple_start() };
        Some(search)
    }

    /// Searches and returns the best end.
    pub(super) fn run(mut self) -> Result<End> {
        if self.job.search.local {
            let (seed, epoch) = (self.job.search.seed, self.job.state.epoch);
            let mut stream = Stream::new(seed, Purpose::Direction, epoch, 0);
            let end = self.climb(&self.ground, &self.job.start, PASSES, &mut stream)?;
            return Ok(self.job.end(&end.point));
        }
        for cycle in 0..CYCLES {
            let reached = self.halve(cycle)?;
            self.perturb(cycle, &reached)?;
            if self.spent >= self.budget || self.elite.is_empty() {
                break;
            }
        }
        if self.elite.is_empty() {
            return Ok(self.job.end(&self.job.start));
        }
        let best = self.choose()?;
        let found = self.job.end(&best.point);
        let exact = self.exact(found.0).map(|point| self.job.end(&point));
        self.job.progress.poll()?;
        Ok(exact.filter(|exact| exact.0 > found.0).unwrap_or(found))
    }

    /// Climbs from a point for at most `passes` passes.
    fn climb(
        &self,
        ground: &Ground<'a>,
        point: &[f64],
        passes: usize,
        stream: &mut Stream,
    ) -> Result<Climbed> {
        self.climb_unless(ground, point, [passes, 0], f64::NEG_INFINITY, stream)
    }

    /// Climbs from a point for at most `passes[0]` passes, and for `passes[1]` more unless the score is below `give_up` then.
    fn climb_unless(
        &self,
        ground: &Ground<'a>,
        point: &[f64],
        passes: [usize; 2],
        give_up: f64,
        stream: &mut Stream,
    ) -> Result<Climbed> {
        let take = || ground.walkers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let (metric, weights) = (&self.job.search.metric, &self.job.state.weights);
        let mut walker = match take() {
            Some(mut walker) => {
                walker.place(point);
                walker
            }
            None => ListWalker::over(&ground.flat, &ground.lists, metric, weights, point),
        };
        let mut polled =
            Polled { walker: &mut walker, progress: self.job.progress, searches: 0, stopped: false };
        let mut normal = || stream.normal();
        let mut ended = self.job.ascent.cyclic(&mut polled, passes[0], &mut normal);
        if !ended && passes[1] > 0 && polled.score() >= give_up {
            ended = self.job.ascent.cyclic(&mut polled, passes[1], &mut normal);
        }
        let (searches, stopped) = (polled.searches, polled.stopped);
        let climbed = Climbed { score: walker.score(), point: walker.point().to_vec(), searches, ended };
        ground.walkers.lock().unwrap_or_else(PoisonError::into_inner).push(walker);
        if stopped { Err(Error::interrupted()) } else { Ok(climbed) }
    }

    /// Counts the line searches of ends, and keeps those that are among the best. All weights 0 are no answer: they leave the
    /// choice to the order of the lists.
    fn keep(&mut self, ends: &[Climbed]) -> Result<()> {
        for end in ends {
            self.spent += end.searches;
            if self.norm(&end.point) > 0.0 {
                insert(&mut self.elite, end);
            }
        }
        let best = self.elite.first().map_or(f64::NEG_INFINITY, |e| e.score);
        self.job.report_searches(self.spent, self.budget, best)
    }

    /// Climbs from all starts, pass by pass; the better half continues. Returns where each start has come, best first.
    fn halve(&mut self, cycle: u32) -> Result<Vec<Climbed>> {
        let mut starts = if cycle == 0 { self.own_starts()? } else { Vec::new() };
        let random = self.random_starts(cycle);
        starts.extend(self.sifted(cycle, random)?);
        let mut alive: Vec<usize> = (0..starts.len()).collect();
        let mut reached: Vec<Option<Climbed>> = vec![None; starts.len()];
        let mut pass = 0;
        while !alive.is_empty() && (pass == 0 || self.spent < self.budget) {
            let ends = self.fleet.map(alive.len() as u32, |shard| {
                let (seed, epoch) = (self.job.search.seed, self.job.state.epoch);
                let start = alive[shard.0 as usize];
                let point = reached[start].as_ref().map_or(&starts[start], |r| &r.point);
                let mut stream =
                    Stream::new(seed, Purpose::Direction, epoch, (cycle << 24) + (pass << 16) + shard.0);
                self.climb(&self.ground, point, 1, &mut stream)
            })?;
            self.keep(&ends)?;
            let go_on = ends.len() / 2;
            for (&start, end) in alive.iter().zip(ends) {
                reached[start] = Some(end);
            }
            let score = |start: &usize| reached[*start].as_ref().map_or(f64::NEG_INFINITY, |r| r.score);
            alive.retain(|&start| reached[start].as_ref().is_some_and(|r| !r.ended));
            alive.sort_by(|a, b| score(b).total_cmp(&score(a)));
            alive.truncate(go_on);
            pass += 1;
        }
        let mut reached: Vec<Climbed> =
            reached.into_iter().flatten().filter(|r| self.norm(&r.point) > 0.0).collect();
        reached.sort_by(|a, b| b.score.total_cmp(&a.score));
        reached.dedup_by(|a, b| a.score == b.score);
        Ok(reached)
    }

    /// Returns every [`EVERY`]th list if there are many, else all.
    fn sample(&self) -> Vec<Arc<Candidates>> {
        let every = if self.lists.len() < MANY_LISTS { 1 } else { EVERY };
        self.lists.iter().step_by(every).cloned().collect()
    }

    /// Climbs from random starts on a sample of the lists, if there are many, and returns the ends of the best.
    fn sifted(&mut self, cycle: u32, starts: Vec<Vec<f64>>) -> Result<Vec<Vec<f64>>> {
        if self.lists.len() < MANY_LISTS || starts.len() <= KEEP {
            return Ok(starts);
        }
        let sample = self.sample();
        let ground = Ground::new(&sample, Arc::new(Flat::new(&sample)));
        let ends = self.fleet.map(starts.len() as u32, |shard| {
            let (seed, epoch) = (self.job.search.seed, self.job.state.epoch);
            let mut stream = Stream::new(seed, Purpose::Direction, epoch, u32::MAX - (cycle << 24) - shard.0);
            self.climb(&ground, &starts[shard.0 as usize], SAMPLE_PASSES, &mut stream)
        })?;
        self.spent += ends.iter().map(|e| e.searches).sum::<u64>() / EVERY as u64;
        let mut ends: Vec<Climbed> = ends.into_iter().filter(|e| self.norm(&e.point) > 0.0).collect();
        ends.sort_by(|a, b| b.score.total_cmp(&a.score));
        Ok(ends.into_iter().take(KEEP).map(|e| e.point).collect())
    }

    /// Returns the simple start of fixed lists whose initial weights the user has not given.
    fn simple_start(&self) -> Option<Vec<f64>> {
        let search = self.job.search;
        if !search.fixed_lists {
            return None;
        }
        let simple = signed_start(self.lists, &search.metric, self.spread)?;
        // Weights that the user has given tell the signs; those that come from the lists do not.
        (simple == self.job.start || self.norm(&self.job.start) == 0.0).then_some(simple)
    }

    /// Returns the starts that are not random: the current weights, the simple ones of fixed lists and those of other
    /// learners.
    fn own_starts(&self) -> Result<Vec<Vec<f64>>> {
        let mut starts = vec![self.job.start.clone()];
        let simple = self.simple.as_ref().map(|simple| self.within(simple));
        starts.extend(simple.filter(|simple| *simple != self.job.start));
        starts.extend(self.by_others()?.iter().map(|point| self.within(point)));
        Ok(starts)
    }

    /// Draws the random starts of a cycle.
    fn random_starts(&self, cycle: u32) -> Vec<Vec<f64>> {
        let job = self.job;
        let signs = self.simple.as_ref().unwrap_or(&job.start);
        let size = self.norm(&job.start);
        let size = if size > 0.0 { size } else { 1.0 };
        let draw = |k: u32| {
            let mut stream = Stream::new(job.search.seed, Purpose::Restart, job.state.epoch, k);
            let free_signs = self.simple.is_some() && k % 4 == 3;
            let draw: Vec<f64> = (0..signs.len())
                .map(|c| {
                    let x = stream.normal();
                    let keep = signs[c] != 0.0 && !free_signs;
                    (if keep { x.abs() * signs[c].signum() } else { x }) * job.ascent.unit[c]
                })
                .collect();
            let by = size / self.norm(&draw).max(f64::MIN_POSITIVE);
            let far = if job.search.fixed_lists { 1.0 } else { NEAR[k as usize % NEAR.len()] };
            let point: Vec<f64> =
                draw.iter().zip(&job.start).map(|(x, w)| far * by * x + (1.0 - far) * w).collect();
            self.within(&point)
        };
        let first = cycle * job.search.restarts;
        (first..first + job.search.restarts).map(draw).collect()
    }

    /// Returns the weights that other learners find: hope–fear MIRA on the sample and, on fixed lists, minimum risk training
    /// on the sample and then on all lists.
    fn by_others(&self) -> Result<Vec<Vec<f64>>> {
        let search = self.job.search;
        let mira = HopeFear {
            epochs: MIRA_EPOCHS,
            keep_initial: false,
            ..HopeFear::new(search.metric.clone(), search.seed)
        };
        let start = self.simple.as_ref().unwrap_or(&self.job.start);
        let sample = Evidence::Lists(self.sample());
        let mut starts = vec![self.learned(&mira, &[&sample], start)?];
        if search.fixed_lists {
            let limit = Limit { tolerance: RISK_TOLERANCE, steps: RISK_STEPS };
            let risk = Minimize { limit, ..Minimize::new(search.metric.clone(), Loss::Risk, search.seed) };
            let all = Evidence::Lists(self.lists.to_vec());
            starts.push(self.learned(&risk, &[&sample, &all], start)?);
        }
        Ok(starts)
    }

    /// Returns the weights that a learner finds from `start` on one evidence after the other.
    fn learned(&self, learner: &dyn Learner, evidence: &[&Evidence], start: &[f64]) -> Result<Vec<f64>> {
        let job = self.job;
        let mut weights = job.state.weights.clone();
        weights.set(job.columns, start);
        let norm = self.norm(start);
        // A scale at which steps are neither too small nor too large: scores differ by about 1.
        weights.scale(if norm > 0.0 { 1.0 / norm } else { 1.0 });
        let mut state = State { weights, epoch: job.state.epoch, ..State::default() };
        for evidence in evidence {
            learner.learn(evidence, &mut state, self.fleet, job.progress)?;
        }
        let mut point = Vec::new();
        state.weights.gather(job.columns, &mut point);
        Ok(point)
    }

    /// One per cent in units of the score.
    fn per_cent(&self) -> f64 {
        0.01 / self.job.search.metric.unit()
    }

    /// Norm of a point in standardised features.
    fn norm(&self, point: &[f64]) -> f64 {
        point.iter().zip(self.spread).map(|(w, s)| (w * s) * (w * s)).sum::<f64>().sqrt()
    }

    /// Returns a point with the fixed coordinates of the start, within the bounds.
    fn within(&self, point: &[f64]) -> Vec<f64> {
        self.job.scatter(|c| {
            let (low, high) = self.job.ascent.bounds[c];
            point[c].clamp(low, high)
        })
    }

    /// Climbs from perturbations of the best of `reached`, until the budget or the patience is spent.
    fn perturb(&mut self, cycle: u32, reached: &[Climbed]) -> Result<()> {
        let mut chains: Vec<Vec<Climbed>> = reached.iter().take(CHAINS).map(|e| vec![e.clone()]).collect();
        if chains.is_empty() || self.job.ascent.free.is_empty() {
            return Ok(());
        }
        let best =
            |chains: &[Vec<Climbed>]| chains.iter().map(|c| c[0].score).fold(f64::NEG_INFINITY, f64::max);
        let (mut round, mut idle, mut nearby) = (0u32, 0, None);
        while self.spent < self.budget && idle < PATIENCE {
            if round.is_multiple_of(ROUNDS) {
                nearby = self.nearby(&chains)?;
            }
            let before = best(&chains);
            let each = WIDTH / chains.len();
            let ends = self.fleet.map((chains.len() * each) as u32, |shard| {
                let n = (cycle << 24) + round * WIDTH as u32 + shard.0;
                let mut stream = Stream::new(self.job.search.seed, Purpose::Perturb, self.job.state.epoch, n);
                let step = round * each as u32 + shard.0 % each as u32;
                let own = shard.0 as usize / each;
                let point = self.perturbed((&chains, own), step, &mut stream);
                self.climb_near(nearby.as_ref(), &point, chains[own][0].score, &mut stream)
            })?;
            self.keep(&ends)?;
            for (i, end) in ends.iter().enumerate() {
                insert(&mut chains[i / each], end);
            }
            round += 1;
            idle = if best(&chains) > before + GAIN * self.per_cent() { 0 } else { idle + WIDTH };
            if round.is_multiple_of(ROUNDS) {
                chains.sort_by(|a, b| b[0].score.total_cmp(&a[0].score));
                chains.truncate(chains.len().div_ceil(2));
            }
        }
        Ok(())
    }

    /// Climbs from a perturbation of a point with score `head`; first on the nearby lists if there are any, and on all lists
    /// only if that is promising. The score of an end is that on all lists, −∞ if it was given up.
    fn climb_near(
        &self,
        nearby: Option<&Ground<'a>>,
        point: &[f64],
        head: f64,
        stream: &mut Stream,
    ) -> Result<Climbed> {
        let passes = [1, PASSES - 1];
        let far = head - FAR * self.per_cent();
        let Some(nearby) = nearby else {
            return self.climb_unless(&self.ground, point, passes, far, stream);
        };
        let tried = self.climb_unless(nearby, point, passes, far, stream)?;
        let cost = (tried.searches as f64 * NEARBY_COST).ceil() as u64;
        if tried.score < head - MARGIN * self.per_cent() {
            return Ok(Climbed { searches: cost, score: f64::NEG_INFINITY, ..tried });
        }
        let end = self.climb(&self.ground, &tried.point, PASSES, stream)?;
        Ok(Climbed { searches: end.searches + cost, ..end })
    }

    /// Returns the lists with those candidates only that are best for some weights near the heads of the chains; `None` if
    /// there are few lists or if little of the budget is left. They are found by searches along the axes from the heads and
    /// from points around them.
    fn nearby(&mut self, chains: &[Vec<Climbed>]) -> Result<Option<Ground<'a>>> {
        let (unit, free) = (&self.job.ascent.unit, &self.job.ascent.free);
        let cost = (LOOKS * free.len()) as u64;
        if self.lists.len() < MANY_LISTS || self.spent + WORTH * cost > self.budget {
            return Ok(None);
        }
        let each = LOOKS / chains.len();
        let found = self.fleet.map((chains.len() * each) as u32, |shard| {
            let (own, look) = (shard.0 as usize / each, shard.0 as usize % each);
            let mut point = chains[own][0].point.clone();
            let norm = self.norm(&point);
            let mut stream =
                Stream::new(self.job.search.seed, Purpose::Perturb, self.job.state.epoch, u32::MAX - shard.0);
            let size = if look == 0 { 0.0 } else { norm * SIZES[1 + look % 2] / (free.len() as f64).sqrt() };
            for &c in free {
                point[c] += size * stream.normal() * unit[c];
            }
            let (metric, weights) = (&self.job.search.metric, &self.job.state.weights);
            let mut walker = ListWalker::over(&self.ground.flat, self.lists, metric, weights, &point);
            let reach: Vec<f64> = unit.iter().map(|u| REACH * norm * u).collect();
            Ok(walker.winners(free, &reach))
        })?;
        self.spent += (found.len() * free.len()) as u64;
        let kept = |(s, list): (usize, &Arc<Candidates>)| {
            let mut rows: Vec<u32> = found.iter().flat_map(|f| f[s].iter().copied()).collect();
            rows.sort_unstable();
            rows.dedup();
            Arc::new(list.select(&rows))
        };
        let lists: Vec<Arc<Candidates>> = self.lists.iter().enumerate().map(kept).collect();
        Ok(Some(Ground::new(&lists, Arc::new(Flat::new(&lists)))))
    }

    /// Returns perturbation number `n` of the head of a chain.
    fn perturbed(&self, (chains, own): (&[Vec<Climbed>], usize), n: u32, stream: &mut Stream) -> Vec<f64> {
        let (unit, free) = (&self.job.ascent.unit, &self.job.ascent.free);
        let mut point = chains[own][0].point.clone();
        let norm = self.norm(&point);
        let size = if norm > 0.0 { norm } else { 1.0 } * SIZES[n as usize % SIZES.len()];
        let others: Vec<&Climbed> =
            chains.iter().enumerate().flat_map(|(i, chain)| &chain[usize::from(i == own)..]).collect();
        if n.is_multiple_of(4) && !others.is_empty() {
            let other = &others[stream.below(others.len() as u64) as usize].point;
            let by = stream.uniform(-0.3, 0.7);
            point.iter_mut().zip(other).for_each(|(p, o)| *p += by * (o - *p));
        } else if n.is_multiple_of(2) {
            let c = free[stream.below(free.len() as u64) as usize];
            point[c] += 2.0 * size * stream.normal() * unit[c];
        } else {
            let each = size / (free.len() as f64).sqrt();
            for &c in free {
                point[c] += each * stream.normal() * unit[c];
            }
        }
        self.within(&point)
    }

    /// Returns the most robust of the ends that are close to the best.
    fn choose(&self) -> Result<Climbed> {
        let best = &self.elite[0];
        let far = |e: &&Climbed| best.score - e.score > CLOSE * self.per_cent();
        let close: Vec<&Climbed> = self.elite.iter().filter(|e| !far(e)).collect();
        if close.len() == 1 {
            return Ok(best.clone());
        }
        let rooms =
            self.fleet.map(close.len() as u32, |shard| Ok(self.room(&close[shard.0 as usize].point)))?;
        let mut most = 0;
        for i in 1..close.len() {
            if rooms[i] > rooms[most] {
                most = i;
            }
        }
        Ok(close[most].clone())
    }

    /// Returns the least distance of a point from a change of statistics, along the axes and 2D fixed random directions,
    /// in standardised features and relative to the norm of the point.
    fn room(&self, point: &[f64]) -> f64 {
        let (metric, weights) = (&self.job.search.metric, &self.job.state.weights);
        let mut walker = ListWalker::over(&self.ground.flat, self.lists, metric, weights, point);
        let free = &self.job.ascent.free;
        let mut directions: Vec<Vec<f64>> = Vec::new();
        for &c in free {
            let mut axis = vec![0.0; point.len()];
            axis[c] = self.job.ascent.unit[c];
            directions.push(axis);
        }
        let mut stream = Stream::new(0, Purpose::Direction, 0, u32::MAX);
        for _ in 0..2 * free.len() {
            let mut d = vec![0.0; point.len()];
            for &c in free {
                d[c] = stream.normal() * self.job.ascent.unit[c];
            }
            directions.push(d);
        }
        let norm = self.norm(point).max(f64::MIN_POSITIVE);
        let distance = |d: &Vec<f64>| {
            let bounds = &walker.surface(Direction::Vector(d)).bounds;
            let nearest = bounds.iter().map(|x| x.abs()).fold(f64::INFINITY, f64::min);
            nearest * self.norm(d) / norm
        };
        directions.iter().map(distance).fold(f64::INFINITY, f64::min)
    }

    /// Searches small pools of fixed lists exhaustively. Returns a point with a higher score than `found`.
    fn exact(&self, found: f64) -> Option<Vec<f64>> {
        let search = &self.job.search;
        let candidates: usize = self.lists.iter().map(|l| l.k).sum();
        let sparse = self.lists.iter().any(|l| !l.ids.is_empty());
        if !search.fixed_lists || search.limits.any() || sparse || candidates > SMALL {
            return None;
        }
        let limits = CertifyLimits { programs: PROGRAMS, ..CertifyLimits::default() };
        certify(self.lists, &search.metric, found, limits, self.job.progress).ok()?.weights
    }
}

/// Inserts an end into a list of the best ones, best first, the earlier among equals, unless it was given up.
fn insert(best: &mut Vec<Climbed>, end: &Climbed) {
    if end.score == f64::NEG_INFINITY || best.iter().any(|e| e.score == end.score && e.point == end.point) {
        return;
    }
    let at = best.partition_point(|e| e.score >= end.score);
    best.insert(at, end.clone());
    best.truncate(ELITE);
}
