//! Selection of the pairs of candidates that PRO ranks, sentence scores, and oracles.

use crate::{Candidates, oracle};
use luthier_core::random::{Purpose, Stream};
use luthier_metric::{Metric, SentenceSmoothing, add};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Which pairs of candidates of a segment are ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum PairSource {
    /// Random pairs, of which those with the largest difference in sentence score are kept (Hopkins and May
    /// 2011; Dreyer and Dong 2015, §3).
    Sampled,
    /// Every oracle with every other candidate (Watanabe 2012).
    Oracle,
    /// All pairs of candidates with different sentence scores; O(k²) pairs for a list of k, so for short lists
    /// only.
    All,
    /// Every candidate of the best slice of the list with every candidate of the worst slice.
    GoodBad,
}

/// How the oracle candidates of a segment are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum OracleBy {
    /// Candidates that together maximise the corpus score (of the batch, in online learning).
    Corpus,
    /// Candidates with the best sentence score of their segment.
    Sentence,
}

/// Selection of the pairs (better, worse) of candidates that [`Loss::Pro`](crate::learner::Loss::Pro) ranks,
/// with its filters.
///
/// Sampling draws Γ pairs per segment uniformly, discards those whose sentence scores differ by less than β, and
/// keeps the Ξ most different ones. It costs Γ draws per segment; the other sources enumerate all their pairs.
///
/// ```
/// # use luthier_core::Weights;
/// # use luthier_io::nbest::Rows;
/// # use luthier_tune::{Judge, Candidates, columns, lists};
/// # use std::sync::Arc;
/// # let mut rows = Rows::default();
/// # rows.push(0, "the house is very small", &[("lm", -2.0), ("tm", -3.0)], &[]).unwrap();
/// # rows.push(0, "house the small", &[("lm", -6.0), ("tm", -1.0)], &[]).unwrap();
/// use luthier_tune::{loss::Margin, learner::{Loss, Minimize}, pairs::{PairSource, Pairs}};
/// let metric: luthier_metric::Metric = "bleu".parse().unwrap();
/// # let references = [vec!["the house is very small"]];
/// # let judge = Judge::new(&metric, &references, "ref.txt");
/// # let lists = lists(&rows, &columns(&rows, None), Some(judge)).unwrap();
/// # let lists: Vec<Arc<Candidates>> = lists.into_iter().map(Into::into).collect();
/// # let weights = Weights::parse("w.txt", "lm 0\ntm 0").unwrap();
/// let pairs = Pairs {
///     source: PairSource::All,
///     draw: 5000,
///     keep: 50,
///     slice: 0.1,
///     min_difference: 0.05,
///     max_length_sigma: None,
///     seed: 1,
/// };
/// let pro = Minimize::new(metric, Loss::Pro { pairs, margin: Margin::Logistic }, 1);
/// // A list of two candidates has one pair; at w = 0 both of its signs cost log 2.
/// let value = pro.objective(&lists, &weights, 0).evaluate(&[0.0, 0.0], &mut [0.0; 2]);
/// assert!((value - 2.0 * 2f64.ln()).abs() < 1e-12);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pairs {
    /// Which pairs of a segment are taken.
    pub source: PairSource,
    /// Γ: number of pairs drawn per segment, for [`PairSource::Sampled`].
    pub draw: usize,
    /// Ξ: number of drawn pairs kept per segment, those with the largest difference in sentence score, for
    /// [`PairSource::Sampled`].
    pub keep: usize,
    /// Fraction of the list, in (0, 1], that counts as best and as worst, for [`PairSource::GoodBad`].
    pub slice: f64,
    /// β: smallest difference in sentence score, on the scale from 0 to 1; not applied to [`PairSource::Oracle`].
    pub min_difference: f64,
    /// Largest difference in length, in standard deviations of such differences within the list (2 words at
    /// least); `None` for no limit. 2 filters outlier pairs (Nakov et al. 2013).
    pub max_length_sigma: Option<f64>,
    /// Seed of sampled pairs and of the oracle search.
    pub seed: u64,
}

/// Better and worse candidate of a pair, by index in the list.
pub(crate) type Pair = (u32, u32);

/// How the candidates of a segment are scored by a learner that compares them with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum GainBy {
    /// Sentence score; BLEU is smoothed (BLEU+1).
    #[default]
    Sentence,
    /// Change of the corpus score when the candidate replaces the model's best one, times the number of segments; for
    /// BLEU, the rest of the output counts as having the length of the references.
    Document,
}

/// Returns the change of the corpus score, on the learning scale and times the number of segments, when a candidate
/// replaces the best one of its segment, for all candidates by segment. `best` holds the index of the best candidate of
/// each segment, which is not used for an empty list.
///
/// For BLEU the rest of the output counts as having the references' length. Otherwise an output that is longer than the
/// references would make short candidates free, and learning from them makes all output too short.
pub(crate) fn document_gains(lists: &[Arc<Candidates>], best: &[usize], metric: &Metric) -> Vec<Vec<f64>> {
    let mut totals = vec![0.0; metric.width()];
    for (list, &best) in lists.iter().zip(best).filter(|(list, _)| list.k > 0) {
        add(&mut totals, list.stats_of(list.class[best]));
    }
    let lengths = metric.length_columns();
    let scale = metric.unit() * lists.len() as f64;
    let gains = |(list, &best): (&Arc<Candidates>, &usize)| {
        let own = if list.k > 0 { list.class[best] } else { 0 };
        let mut swapped = vec![0.0; totals.len()];
        let mut score = |class: u32| {
            let rows = list.stats_of(own).iter().zip(list.stats_of(class));
            for ((x, t), (o, s)) in swapped.iter_mut().zip(&totals).zip(rows) {
                *x = t - f64::from(*o) + f64::from(*s);
            }
            for &(length, reference) in &lengths {
                let rest = totals[length] - f64::from(list.stats_of(own)[length]);
                swapped[reference] = rest + f64::from(list.stats_of(class)[reference]);
            }
            metric.score(&swapped)
        };
        let classes = list.stats.len().checked_div(list.width).unwrap_or(0) as u32;
        let now = if list.k > 0 { score(own) } else { 0.0 };
        let of: Vec<f64> = (0..classes).map(|class| scale * (score(class) - now)).collect();
        list.class.iter().map(|&c| of[c as usize]).collect()
    };
    lists.par_iter().zip(best).map(gains).collect()
}

/// Returns the sentence scores of all candidates, by segment, on the learning scale: scores in per cent divided
/// by 100.
pub(crate) fn gains(lists: &[Arc<Candidates>], metric: &Metric, how: SentenceSmoothing) -> Vec<Vec<f64>> {
    lists.par_iter().map(|list| gains_of(list, metric, how)).collect()
}

/// Returns the sentence scores of a list's candidates on the learning scale: scores in per cent divided by 100.
pub(crate) fn gains_of(list: &Candidates, metric: &Metric, how: SentenceSmoothing) -> Vec<f64> {
    let classes = list.stats.len().checked_div(list.width).unwrap_or(0) as u32;
    let of: Vec<f64> =
        (0..classes).map(|c| metric.unit() * metric.sentence_score(list.stats_of(c), how)).collect();
    list.class.iter().map(|&c| of[c as usize]).collect()
}

/// Returns for every candidate whether it is an oracle: whether its statistics equal those of the choice with
/// the best corpus score, or whether its sentence score is the best of its segment.
pub(crate) fn oracles(
    lists: &[Arc<Candidates>],
    metric: &Metric,
    how: SentenceSmoothing,
    by: OracleBy,
    seed: u64,
) -> Vec<Vec<bool>> {
    if by == OracleBy::Sentence {
        let best = |gain: &Vec<f64>| {
            let most = gain.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            gain.iter().map(|&g| g == most).collect()
        };
        return gains(lists, metric, how).iter().map(best).collect();
    }
    let chosen = oracle(lists, metric, false, seed).chosen;
    let same =
        |(list, &i): (&Arc<Candidates>, &usize)| list.class.iter().map(|&c| c == list.class[i]).collect();
    lists.iter().zip(&chosen).map(same).collect()
}

impl Pairs {
    /// Returns the selected pairs of every segment; `gain` holds the scores that are compared, `epoch` seeds the sampling.
    pub(crate) fn choose(
        &self,
        lists: &[Arc<Candidates>],
        metric: &Metric,
        (how, gain): (SentenceSmoothing, &[Vec<f64>]),
        epoch: u32,
    ) -> Vec<Vec<Pair>> {
        let oracle = match self.source {
            PairSource::Oracle => oracles(lists, metric, how, OracleBy::Corpus, self.seed),
            _ => Vec::new(),
        };
        (0..lists.len())
            .into_par_iter()
            .map(|s| {
                let near = self.length_filter(&lists[s], metric);
                let different = |(a, b): Pair| {
                    let difference = gain[s][a as usize] - gain[s][b as usize];
                    difference > 0.0 && difference >= self.min_difference && near((a, b))
                };
                match self.source {
                    PairSource::Sampled => {
                        let stream = Stream::new(self.seed, Purpose::Pairs, epoch, s as u32);
                        self.sample(&gain[s], stream, &near)
                    }
                    PairSource::Oracle => {
                        let (good, rest): (Vec<u32>, Vec<u32>) =
                            (0..lists[s].k as u32).partition(|&i| oracle[s][i as usize]);
                        product(&good, &rest, &near)
                    }
                    PairSource::All => {
                        let all: Vec<u32> = (0..lists[s].k as u32).collect();
                        product(&all, &all, &different)
                    }
                    PairSource::GoodBad => {
                        let (good, bad) = ends(&gain[s], self.slice);
                        product(&good, &bad, &different)
                    }
                }
            })
            .collect()
    }

    /// Samples pairs of one segment (Dreyer and Dong 2015, §3, step 2), the most different first.
    fn sample(&self, gain: &[f64], mut stream: Stream, near: &dyn Fn(Pair) -> bool) -> Vec<Pair> {
        let (draw, keep) = (self.draw, self.keep);
        let k = gain.len() as u64;
        if k < 2 {
            return Vec::new();
        }
        let mut drawn: Vec<(f64, u32, Pair)> = Vec::new();
        for n in 0..draw as u32 {
            let (a, b) = (stream.below(k) as u32, stream.below(k) as u32);
            let difference = gain[a as usize] - gain[b as usize];
            if difference.abs() < self.min_difference || difference == 0.0 {
                continue;
            }
            let pair = if difference > 0.0 { (a, b) } else { (b, a) };
            if near(pair) {
                drawn.push((difference.abs(), n, pair));
            }
        }
        let better = |x: &(f64, u32, Pair), y: &(f64, u32, Pair)| y.0.total_cmp(&x.0).then(x.1.cmp(&y.1));
        if drawn.len() > keep && keep > 0 {
            drawn.select_nth_unstable_by(keep - 1, better);
        }
        drawn.truncate(keep);
        drawn.sort_unstable_by(better);
        drawn.into_iter().map(|d| d.2).collect()
    }

    /// Returns a predicate that keeps pairs whose lengths differ by at most [`Pairs::max_length_sigma`]
    /// standard deviations; a standard deviation below 2 words counts as 2.
    fn length_filter(&self, list: &Candidates, metric: &Metric) -> Box<dyn Fn(Pair) -> bool> {
        let Some(sigmas) = self.max_length_sigma else { return Box::new(|_| true) };
        let length = |i: usize| match metric.as_bleu() {
            Some(bleu) => f64::from(list.stats_of(list.class[i])[bleu.order]),
            None => list.text(i).split_whitespace().count() as f64,
        };
        let lengths: Vec<f64> = (0..list.k).map(length).collect();
        let k = lengths.len().max(1) as f64;
        let mean = lengths.iter().sum::<f64>() / k;
        let variance = lengths.iter().map(|l| (l - mean) * (l - mean)).sum::<f64>() / k;
        // The difference of two lengths has twice the variance of one length.
        let limit = sigmas * (2.0 * variance).sqrt().max(2.0);
        Box::new(move |(a, b)| (lengths[a as usize] - lengths[b as usize]).abs() <= limit)
    }
}

/// Returns the pairs of the Cartesian product that satisfy `keep`.
fn product(good: &[u32], bad: &[u32], keep: &dyn Fn(Pair) -> bool) -> Vec<Pair> {
    good.iter().flat_map(|&a| bad.iter().map(move |&b| (a, b))).filter(|&pair| keep(pair)).collect()
}

/// Returns the best and the worst slice of a list by sentence score, at least one candidate each.
fn ends(gain: &[f64], slice: f64) -> (Vec<u32>, Vec<u32>) {
    let mut order: Vec<u32> = (0..gain.len() as u32).collect();
    order.sort_by(|&a, &b| gain[b as usize].total_cmp(&gain[a as usize]));
    let n = ((gain.len() as f64 * slice).ceil() as usize).min(gain.len());
    (order[..n].to_vec(), order[gain.len() - n..].to_vec())
}
