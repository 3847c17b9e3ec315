//! Oracle search: the choice of one candidate per segment with the best, or the worst, corpus score (Watanabe
//! 2012, §3.1).

use crate::Candidates;
use luthier_core::{
    Progress, Result,
    random::{Purpose, Stream},
};
use luthier_metric::{Bleu, Metric, SentenceSmoothing, Smooth};

/// A choice of one candidate per segment, as [`oracle`] returns it.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Index of the chosen candidate of each segment; 0 for a segment without candidates.
    pub chosen: Vec<usize>,
    /// Corpus score of the chosen candidates; higher is better.
    pub score: f64,
}

/// Returns the corpus score of the first candidates of all lists; higher is better.
pub fn first_score<L: AsRef<Candidates>>(lists: &[L], metric: &Metric) -> f64 {
    let mut total = vec![0.0; metric.width()];
    for list in lists.iter().map(AsRef::as_ref).filter(|l| l.k > 0) {
        luthier_metric::add(&mut total, list.stats_of(list.class[0]));
    }
    metric.score(&total)
}

/// Largest number of combinations of statistics that is searched exhaustively.
const EXHAUSTIVE: usize = 100_000;

/// Finds the choice of one candidate per segment with the highest corpus score, or with `worst` the lowest
/// (Watanabe 2012, §3.1).
///
/// Corpus scores such as BLEU are not sums over segments, so the choice is found by hill climbing: start from
/// the best candidates by sentence score, visit segments in random order, replace a choice where another
/// candidate raises the corpus score, stop when a pass changes nothing. A trial costs O(width of the
/// statistics). Up to 100,000 combinations are searched exhaustively instead, which is exact. All lists must
/// have been judged by `metric`.
///
/// ```
/// use luthier_io::nbest::Rows;
/// use luthier_tune::{Judge, columns, lists, oracle};
/// let mut rows = Rows::default();
/// rows.push(0, "the small garden", &[], &[]).unwrap();
/// rows.push(0, "the small house", &[], &[]).unwrap();
/// rows.push(1, "it is green", &[], &[]).unwrap();
/// let metric = "wer".parse().unwrap();
/// let references = [vec!["the small house"], vec!["it is red"]];
/// let judge = Judge::new(&metric, &references, "ref.txt");
/// let lists = lists(&rows, &columns(&rows, None), Some(judge)).unwrap();
/// let best = oracle(&lists, &metric, false, 1);
/// assert_eq!(best.chosen, [1, 0]);
/// assert!((metric.display_score(best.score) - 100.0 / 6.0).abs() < 1e-9); // 1 edit in 6 words
/// assert!(oracle(&lists, &metric, true, 1).score < best.score);
/// ```
pub fn oracle<L: AsRef<Candidates>>(lists: &[L], metric: &Metric, worst: bool, seed: u64) -> Choice {
    search(lists, metric, (worst, seed), &mut || true)
}

/// Finds the best or the worst choice like [`oracle`]. Fails with an error of kind `Interrupted` if `progress` answers *stop*.
pub fn oracle_with<L: AsRef<Candidates>>(
    lists: &[L],
    metric: &Metric,
    (worst, seed): (bool, u64),
    progress: Progress<'_>,
) -> Result<Choice> {
    let mut polled = Ok(());
    let choice = search(lists, metric, (worst, seed), &mut || {
        polled = progress.poll();
        polled.is_ok()
    });
    polled.map(|()| choice)
}

/// Searches for the best or the worst choice while `go_on` holds, which is asked at every segment.
fn search<L: AsRef<Candidates>>(
    lists: &[L],
    metric: &Metric,
    (worst, seed): (bool, u64),
    go_on: &mut dyn FnMut() -> bool,
) -> Choice {
    let sign = if worst { -1.0 } else { 1.0 };
    let mut search = Search::new(lists, metric, sign);
    let combinations =
        search.classes.iter().try_fold(1usize, |n, &c| n.checked_mul(c).filter(|&n| n <= EXHAUSTIVE));
    match combinations {
        Some(_) => search.exhaust(),
        None => search.climb(seed, go_on),
    }
    let chosen = (0..lists.len()).map(|s| search.candidate(s)).collect();
    Choice { chosen, score: metric.score(&search.total) }
}

/// State of an oracle search: the current choice and its corpus statistics.
struct Search<'a, L> {
    lists: &'a [L],
    metric: &'a Metric,
    /// 1 to search for the best score, −1 for the worst.
    sign: f64,
    /// Number of distinct statistics (classes) of each segment, at least 1.
    classes: Vec<usize>,
    /// Chosen class of each segment.
    class: Vec<u32>,
    /// Corpus statistics of the choice.
    total: Vec<f64>,
}

impl<'a, L: AsRef<Candidates>> Search<'a, L> {
    /// Starts from the candidates with the best (or worst) sentence scores.
    fn new(lists: &'a [L], metric: &'a Metric, sign: f64) -> Self {
        let mut search = Search {
            lists,
            metric,
            sign,
            classes: Vec::new(),
            class: Vec::new(),
            total: vec![0.0; metric.width()],
        };
        for list in lists.iter().map(AsRef::as_ref) {
            let n = list.stats.len() / metric.width();
            let score = |c: u32| sign * metric.sentence_score(list.stats_of(c), SentenceSmoothing::default());
            let mut best = 0;
            for c in 1..n as u32 {
                if score(c) > score(best) {
                    best = c;
                }
            }
            search.classes.push(n.max(1));
            search.class.push(best);
            if n > 0 {
                add(&mut search.total, list.stats_of(best), 1.0);
            }
        }
        search
    }

    /// Returns the value that hill climbing maximises: the corpus score times `sign`. While some order of BLEU
    /// has no match in the corpus, the score for the best choice is add-one-smoothed BLEU.
    fn height(&self, total: &[f64]) -> f64 {
        if let Metric::Bleu(b) = self.metric
            && self.sign > 0.0
            && total[..b.order].contains(&0.0)
        {
            // Shifted below every true score, so that the first match of an order is always a gain.
            let smooth = Bleu { smooth: Smooth::AddK(1.0), ..b.clone() };
            return Metric::Bleu(smooth).score(total) - 100.0;
        }
        self.sign * self.metric.score(total)
    }

    /// Hill climbing: replaces choices segment by segment until a pass changes nothing, or `go_on` no longer holds.
    fn climb(&mut self, seed: u64, go_on: &mut dyn FnMut() -> bool) {
        let mut stream = Stream::new(seed, Purpose::Oracle, 0, 0);
        let mut order: Vec<usize> = (0..self.lists.len()).collect();
        let mut trial = vec![0.0; self.total.len()];
        let mut changed = true;
        while changed {
            changed = false;
            stream.shuffle(&mut order);
            for &s in &order {
                if !go_on() {
                    return;
                }
                let list = self.lists[s].as_ref();
                let mut best = (self.class[s], self.height(&self.total));
                for c in (0..self.classes[s] as u32).filter(|_| list.k > 0) {
                    trial.copy_from_slice(&self.total);
                    add(&mut trial, list.stats_of(self.class[s]), -1.0);
                    add(&mut trial, list.stats_of(c), 1.0);
                    let height = self.height(&trial);
                    // The threshold prevents cycles caused by rounding.
                    if height > best.1 + 1e-10 {
                        best = (c, height);
                    }
                }
                if best.0 != self.class[s] {
                    self.replace(s, best.0);
                    changed = true;
                }
            }
        }
    }

    /// Exhaustive search: enumerates all combinations, the last segment fastest.
    fn exhaust(&mut self) {
        // At most 17 segments have a choice.
        let open: Vec<usize> = (0..self.lists.len()).filter(|&s| self.classes[s] > 1).collect();
        for &s in &open {
            self.replace(s, 0);
        }
        let choice = |search: &Self| open.iter().map(|&s| search.class[s]).collect::<Vec<u32>>();
        let mut best = (choice(self), self.sign * self.metric.score(&self.total));
        while let Some(at) = open.iter().rposition(|&s| self.class[s] as usize + 1 < self.classes[s]) {
            self.replace(open[at], self.class[open[at]] + 1);
            for &later in &open[at + 1..] {
                self.replace(later, 0);
            }
            let score = self.sign * self.metric.score(&self.total);
            if score > best.1 {
                best = (choice(self), score);
            }
        }
        for (&s, class) in open.iter().zip(best.0) {
            self.replace(s, class);
        }
    }

    /// Chooses another class for segment `s` and updates the corpus statistics.
    fn replace(&mut self, s: usize, class: u32) {
        let list = self.lists[s].as_ref();
        if list.k > 0 && class != self.class[s] {
            add(&mut self.total, list.stats_of(self.class[s]), -1.0);
            add(&mut self.total, list.stats_of(class), 1.0);
            self.class[s] = class;
        }
    }

    /// Returns the first candidate of the chosen class of segment `s`.
    fn candidate(&self, s: usize) -> usize {
        self.lists[s].as_ref().class.iter().position(|&c| c == self.class[s]).unwrap_or(0)
    }
}

fn add(total: &mut [f64], stats: &[f32], sign: f64) {
    total.iter_mut().zip(stats).for_each(|(t, x)| *t += sign * f64::from(*x));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Candidate;
    use luthier_core::Local;
    use luthier_metric::Scratch;
    use std::sync::Arc;

    fn pool(stream: &mut Stream, metric: &Metric, segments: usize, k: u64) -> Vec<Arc<Candidates>> {
        let words = ["a", "b", "c", "d"];
        let columns = Arc::new(Local::default());
        (0..segments)
            .map(|_| {
                let mut text =
                    |n: u64| (0..n).map(|_| words[stream.below(4) as usize]).collect::<Vec<_>>().join(" ");
                let reference = text(6);
                let texts: Vec<String> = (0..k).map(|i| text(3 + i % 5)).collect();
                let candidates = texts.iter().map(|t| Candidate { text: t, features: &[], columns: &[] });
                let mut list = Candidates::new(&columns, candidates, false);
                let mut scratch = Scratch::default();
                list.judge(metric, &metric.prepare(&[&reference], &mut scratch), &mut scratch);
                Arc::new(list)
            })
            .collect()
    }

    fn score(lists: &[Arc<Candidates>], metric: &Metric, chosen: &[usize]) -> f64 {
        let mut total = vec![0.0; metric.width()];
        for (list, &i) in lists.iter().zip(chosen) {
            add(&mut total, list.stats_of(list.class[i]), 1.0);
        }
        metric.score(&total)
    }

    #[test]
    fn small_pools_against_all_choices() {
        for (round, name) in ["bleu", "chrf", "ter", "0.5*bleu+0.5*wer"].iter().cycle().take(24).enumerate() {
            let metric: Metric = name.parse().unwrap();
            let mut stream = Stream::new(2, Purpose::Test, 0, round as u32);
            let lists = pool(&mut stream, &metric, 4, 5);
            let all: Vec<f64> = (0..5usize.pow(4))
                .map(|n| score(&lists, &metric, &[n % 5, n / 5 % 5, n / 25 % 5, n / 125]))
                .collect();
            let best = oracle(&lists, &metric, false, 1);
            let worst = oracle(&lists, &metric, true, 1);
            assert!((best.score - all.iter().copied().fold(f64::MIN, f64::max)).abs() < 1e-9, "{name}");
            assert!((worst.score - all.iter().copied().fold(f64::MAX, f64::min)).abs() < 1e-9, "{name}");
            assert!((score(&lists, &metric, &best.chosen) - best.score).abs() < 1e-9);
        }
    }

    /// No single replacement improves the result of hill climbing, which scores at least as high as every fixed
    /// rank.
    #[test]
    fn larger_pools_cannot_be_improved_by_one_replacement() {
        let metric: Metric = "bleu".parse().unwrap();
        let mut stream = Stream::new(3, Purpose::Test, 0, 0);
        let lists = pool(&mut stream, &metric, 40, 12);
        let best = oracle(&lists, &metric, false, 1);
        for s in 0..lists.len() {
            for i in 0..12 {
                let mut other = best.chosen.clone();
                other[s] = i;
                assert!(score(&lists, &metric, &other) <= best.score + 1e-9);
            }
        }
        for rank in 0..12 {
            assert!(score(&lists, &metric, &[rank; 40]) <= best.score);
        }
        // Rank 0 is left out: its candidates have three words and no 4-gram, so its BLEU is 0.
        assert!((1..5).all(|r| oracle(&lists, &metric, true, 1).score < score(&lists, &metric, &[r; 40])));
    }
}
