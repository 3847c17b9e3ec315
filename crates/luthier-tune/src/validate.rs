//! Held-out scores without separate files: some segments are left out of learning and scored afterwards.
//!
//! - [`HoldOut`] says how many: a share of the segments, or k folds, each of which is held out once.
//! - Segments are assigned by a seeded hash of their groups (a segment's id, or its document), so that the segments of a
//!   group stay together.
//! - [`validate`] learns each part, chooses the output of its held-out segments with the initial and with the learned
//!   weights, pools the choices of all parts and tests the difference of the two pooled corpus scores once.
//!
//! Held-out segments never select anything: initial weights, iterations and settings come from the learning part.

use crate::{Evidence, Fleet, Source, SourceKind, Subset, run::all_candidates};
use luthier_core::{Error, Fingerprint, Progress, Result, SegmentId, Weights};
use luthier_metric::{
    Metric, add,
    significance::{Question, Test, compare, totals},
};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Which segments are held out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HoldOut {
    /// A share of the segments, above 0 and below 1; nothing is learned from them.
    Share(f64),
    /// Number of folds, at least 2: each fold is held out from one run of its own.
    Folds(u32),
}

/// Segments that are held out together, and those that are learned from meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Segments that are held out, ascending.
    pub held: Vec<SegmentId>,
    /// Segments that are learned from, ascending.
    pub learned: Vec<SegmentId>,
}

impl HoldOut {
    /// Divides segments, given by the keys of their groups, into parts. Groups are visited in the order of a seeded hash
    /// of their keys. Fails if there are too few groups, if a share is not above 0 and below 1, and on fewer than two folds.
    ///
    /// ```
    /// use luthier_tune::HoldOut;
    /// // Ten segments of five documents.
    /// let documents: Vec<u128> = (0..10).map(|s| s / 2).collect();
    /// let parts = HoldOut::Folds(5).parts(&documents, 1).unwrap();
    /// assert_eq!(parts.len(), 5);
    /// for part in &parts {
    ///     assert_eq!((part.held.len(), part.learned.len()), (2, 8));
    ///     assert_eq!(part.held[0].0 / 2, part.held[1].0 / 2);
    /// }
    /// assert_eq!(HoldOut::Share(0.3).parts(&documents, 1).unwrap()[0].held.len(), 4);
    /// ```
    pub fn parts(self, groups: &[u128], seed: u64) -> Result<Vec<Part>> {
        self.check()?;
        let n = groups.len();
        let mut order: Vec<(u128, u128)> = groups.iter().map(|&g| (mixed(g, seed), g)).collect();
        order.sort_unstable();
        order.dedup();
        let parts = match self {
            HoldOut::Share(_) => 2,
            HoldOut::Folds(k) => k as usize,
        };
        if order.len() < parts {
            let found = format!("{} cannot be divided into {parts} parts", counted(order.len(), n));
            let fewer = matches!(self, HoldOut::Folds(k) if k > 2);
            return Err(Error::new(found).hint(if fewer {
                "give more data, or fewer folds"
            } else {
                "give more data"
            }));
        }
        let fold_of = match self {
            HoldOut::Share(share) => first_groups(&order, groups, (n as f64 * share).ceil() as usize),
            HoldOut::Folds(k) => dealt(&order, groups, k as usize),
        };
        let held = |fold: usize| -> Part {
            let (held, learned): (Vec<u32>, Vec<u32>) =
                (0..n as u32).partition(|&s| fold_of[s as usize] == fold);
            let ids = |segments: Vec<u32>| segments.into_iter().map(SegmentId).collect();
            Part { held: ids(held), learned: ids(learned) }
        };
        Ok((0..if matches!(self, HoldOut::Share(_)) { 1 } else { parts }).map(held).collect())
    }

    /// Fails if a share is not above 0 and below 1, and on fewer than two folds.
    pub fn check(self) -> Result<()> {
        match self {
            HoldOut::Share(share) if !(share > 0.0 && share < 1.0) => Err(Error::new(format!(
                "the share of segments to hold out is {share}, expected a number above 0 and below 1"
            ))),
            HoldOut::Folds(k) if k < 2 => {
                Err(Error::new(format!("the number of folds is {k}, expected at least 2")))
            }
            _ => Ok(()),
        }
    }
}

/// Number of groups as it is printed: they are segments unless some have several.
fn counted(groups: usize, segments: usize) -> String {
    if groups == segments { format!("{segments} segments") } else { format!("{groups} groups of segments") }
}

fn mixed(group: u128, seed: u64) -> u128 {
    Fingerprint::default().word(seed).word(group as u64).word((group >> 64) as u64).finish()
}

/// Returns 0 for the segments of the first groups, until they are at least `wanted`, and 1 for the others, of which at
/// least one group is left.
fn first_groups(order: &[(u128, u128)], groups: &[u128], wanted: usize) -> Vec<usize> {
    let members = members(groups);
    let mut fold_of = vec![1; groups.len()];
    let mut held = 0;
    for (_, group) in &order[..order.len() - 1] {
        if held >= wanted.max(1) {
            break;
        }
        for &s in &members[group] {
            fold_of[s] = 0;
        }
        held += members[group].len();
    }
    fold_of
}

/// Returns the segments of each group, ascending.
fn members(groups: &[u128]) -> FxHashMap<u128, Vec<usize>> {
    let mut members: FxHashMap<u128, Vec<usize>> = FxHashMap::default();
    for (s, &group) in groups.iter().enumerate() {
        members.entry(group).or_default().push(s);
    }
    members
}

/// Deals groups to `k` folds: each to the fold with the fewest segments, the first of equals.
fn dealt(order: &[(u128, u128)], groups: &[u128], k: usize) -> Vec<usize> {
    let members = members(groups);
    let (mut fold_of, mut sizes) = (vec![0; groups.len()], vec![0; k]);
    for (_, group) in order {
        let fold = (0..k).min_by_key(|&f| sizes[f]).unwrap_or(0);
        for &s in &members[group] {
            fold_of[s] = fold;
        }
        sizes[fold] += members[group].len();
    }
    fold_of
}

/// What was learned from a part.
#[derive(Debug, Clone)]
pub struct Learned {
    /// Weights that learning began with.
    pub initial: Weights,
    /// Weights that were learned.
    pub weights: Weights,
    /// Score of the learned weights on the segments that they were learned from; higher is better.
    pub tuning: f64,
}

/// Scores of weights on segments that they were not learned from. Scores are on the scale of the metric, error rates
/// positive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldOut {
    /// Which segments were held out.
    pub plan: HoldOut,
    /// Number of held-out segments, over all parts.
    pub segments: usize,
    /// Corpus score of the held-out output chosen with initial weights, pooled over the parts.
    pub initial: f64,
    /// Corpus score of the held-out output chosen with learned weights, pooled over the parts.
    pub score: f64,
    /// Half the width of the 95 % confidence interval of `score`, by the bootstrap over groups of segments.
    pub interval: f64,
    /// P-value of the difference between `score` and `initial`, by the paired bootstrap over groups of segments; 1 if the
    /// output is the same, and with a single group.
    pub p_value: f64,
    /// Entries of the test in a signature: `bs:1000|seed:12345`.
    pub test: String,
    /// Scores of each part.
    pub parts: Vec<PartScore>,
    /// Number of the part that held a segment out, from 0; `None` for segments that only were learned from.
    pub part_of: Vec<Option<u32>>,
}

/// Scores of one part. Scores are on the scale of the metric, error rates positive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartScore {
    /// Number of held-out segments.
    pub segments: usize,
    /// Score of the learned weights on the segments that they were learned from.
    pub tuning: f64,
    /// Score of the initial weights on the held-out segments.
    pub initial: f64,
    /// Score of the learned weights on the held-out segments.
    pub score: f64,
}

/// Learns each part with `learn`, and scores its held-out segments with the initial and the learned weights. `groups` has
/// the key of the group of each segment, such as its document; the significance test resamples groups as a whole. Fails if
/// `learn` or the source fails.
pub fn validate(
    (plan, parts): (HoldOut, &[Part]),
    groups: &[u128],
    source: &dyn Source,
    metric: &Metric,
    fleet: &Fleet<'_>,
    progress: Progress<'_>,
    learn: &mut dyn FnMut(usize, &Subset<'_>) -> Result<Learned>,
) -> Result<HeldOut> {
    let mut part_of: Vec<Option<u32>> = vec![None; source.segments() as usize];
    let mut rows: Vec<(SegmentId, [Vec<f32>; 2])> = Vec::new();
    let mut scores = Vec::new();
    let display = |stats: &[f32]| metric.display_score(metric.score(&totals(metric, stats)));
    for (number, part) in parts.iter().enumerate() {
        let learned = learn(number, &Subset::new(source, part.learned.clone()))?;
        let held = Subset::new(source, part.held.clone());
        let both = [&learned.initial, &learned.weights];
        let [before, after] = both.map(|w| output_stats(&held, w, metric, fleet, progress));
        let (before, after) = (before?, after?);
        scores.push(PartScore {
            segments: part.held.len(),
            tuning: metric.display_score(learned.tuning),
            initial: display(&before),
            score: display(&after),
        });
        let width = metric.width();
        for (i, &segment) in part.held.iter().enumerate() {
            part_of[segment.0 as usize] = Some(number as u32);
            let row = |stats: &[f32]| stats[i * width..(i + 1) * width].to_vec();
            rows.push((segment, [row(&before), row(&after)]));
        }
    }
    rows.sort_by_key(|r| r.0);
    let [before, after] = [0, 1].map(|i| group_sums(&rows, i, groups));
    let question = Question::new(Test::Bootstrap);
    let verdicts = compare(metric, &[&before, &after], question);
    // A difference that is the same in every resample, even 0, would get the smallest p-value.
    let testable = before != after && before.len() > metric.width();
    Ok(HeldOut {
        plan,
        segments: rows.len(),
        initial: verdicts[0].score,
        score: verdicts[1].score,
        interval: verdicts[1].interval,
        p_value: verdicts[1].p_value.filter(|_| testable).unwrap_or(1.0),
        test: question.signature(),
        parts: scores,
        part_of,
    })
}

/// Returns the statistics of one of two outputs, summed over the segments of each group; groups in the order of their first
/// segments.
fn group_sums(rows: &[(SegmentId, [Vec<f32>; 2])], which: usize, groups: &[u128]) -> Vec<f32> {
    let mut place: FxHashMap<u128, usize> = FxHashMap::default();
    let mut sums: Vec<Vec<f64>> = Vec::new();
    for (segment, stats) in rows {
        let at = *place.entry(groups[segment.0 as usize]).or_insert(sums.len());
        if at == sums.len() {
            sums.push(vec![0.0; stats[which].len()]);
        }
        add(&mut sums[at], &stats[which]);
    }
    sums.into_iter().flatten().map(|x| x as f32).collect()
}

/// Returns the statistics of the output under some weights, [`Metric::width`] numbers per segment; all 0 for segments
/// without candidates.
pub(crate) fn output_stats(
    source: &dyn Source,
    weights: &Weights,
    metric: &Metric,
    fleet: &Fleet<'_>,
    progress: Progress<'_>,
) -> Result<Vec<f32>> {
    let width = metric.width();
    let evidence = all_candidates(source, weights, progress, *fleet)?;
    if let Evidence::Forests(pool) = &evidence {
        return Ok(pool.best_stats(weights, metric));
    }
    let lists = evidence.lists();
    let mut dense = Vec::new();
    if let Some(first) = lists.first() {
        weights.gather(&first.columns, &mut dense);
    }
    let mut stats = vec![0.0; lists.len() * width];
    for (list, out) in lists.iter().zip(stats.chunks_mut(width)) {
        // The output of a decoder is its first candidate, see `run`.
        let first = source.kind() == SourceKind::Decoder && list.k > 0;
        if let Some(best) = if first { Some(0) } else { list.best(&dense, weights) } {
            out.copy_from_slice(list.stats_of(list.class[best]));
        }
    }
    Ok(stats)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every segment is held out exactly once by folds of nearly equal sizes, groups stay together, and another
        /// order of segments does not move a group to another fold.
        #[test]
        fn folds_are_a_partition(groups in prop::collection::vec(0u128..40, 12..80), k in 2u32..6, seed: u64) {
            let distinct = { let mut g = groups.clone(); g.sort_unstable(); g.dedup(); g.len() };
            prop_assume!(distinct >= k as usize);
            let parts = HoldOut::Folds(k).parts(&groups, seed).unwrap();
            let mut held: Vec<u32> = parts.iter().flat_map(|p| p.held.iter().map(|s| s.0)).collect();
            held.sort_unstable();
            prop_assert_eq!(held, (0..groups.len() as u32).collect::<Vec<_>>());
            for part in &parts {
                prop_assert_eq!(part.held.len() + part.learned.len(), groups.len());
                prop_assert!(!part.held.is_empty());
                let of = |s: &SegmentId| groups[s.0 as usize];
                prop_assert!(part.held.iter().all(|s| part.learned.iter().all(|t| of(s) != of(t))));
            }
        }

        /// A share holds out at least that share, and leaves something to learn from.
        #[test]
        fn shares_leave_something(n in 2usize..60, share in 0.01f64..0.99, seed: u64) {
            let groups: Vec<u128> = (0..n as u128).collect();
            let part = &HoldOut::Share(share).parts(&groups, seed).unwrap()[0];
            let wanted = ((n as f64 * share).ceil() as usize).min(n - 1);
            prop_assert_eq!((part.held.len(), part.learned.len()), (wanted, n - wanted));
        }
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        for (plan, message) in [
            (HoldOut::Folds(0), "the number of folds is 0, expected at least 2"),
            (HoldOut::Folds(1), "the number of folds is 1, expected at least 2"),
            (
                HoldOut::Share(2.0),
                "the share of segments to hold out is 2, expected a number above 0 and below 1",
            ),
            (
                HoldOut::Share(f64::NAN),
                "the share of segments to hold out is NaN, expected a number above 0 and below 1",
            ),
            (
                HoldOut::Share(0.0),
                "the share of segments to hold out is 0, expected a number above 0 and below 1",
            ),
        ] {
            assert_eq!(plan.parts(&[1, 2, 3], 1).unwrap_err().to_string(), message);
        }
    }

    /// Statistics of groups are sums over their segments, in the order of the first segments.
    #[test]
    fn statistics_of_groups_add_up() {
        let row = |s: u32, x: f32| (SegmentId(s), [vec![x, 1.0], vec![2.0 * x, 1.0]]);
        let rows = [row(0, 1.0), row(2, 4.0), row(3, 8.0)];
        let groups = [9, 9, 5, 9];
        assert_eq!(group_sums(&rows, 0, &groups), [9.0, 2.0, 4.0, 1.0]);
        assert_eq!(group_sums(&rows, 1, &groups), [18.0, 2.0, 8.0, 1.0]);
    }

    #[test]
    fn too_few_groups_are_refused() {
        let error = HoldOut::Folds(5).parts(&[1, 1, 2, 2], 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "2 groups of segments cannot be divided into 5 parts; give more data, or fewer folds"
        );
    }
}
