//! From evidence to new weights.

use crate::{Evidence, Fleet, ListWalker, State};
use luthier_core::{
    Result,
    random::{Purpose, Stream},
};
use luthier_metric::Metric;
use luthier_optim::{Ascent, Walker, koehn};

/// One step of learning. Law: the same evidence and state give the same new state, to the bit, on any number
/// of threads and processes.
pub trait Learner {
    /// Learns.
    fn learn(&self, evidence: &Evidence, state: &mut State, fleet: &Fleet<'_>) -> Result<()>;
}

/// MERT (Och 2003): the weights that maximise the corpus score of the best candidates, by exact line searches
/// along the axes from the current weights and from `restarts` random ones. The best true score wins, the
/// earlier start among equals. Weights are scaled to Σ|w| = 1.
#[derive(Debug, Clone)]
pub struct LineSearch {
    /// What is maximised.
    pub metric: Metric,
    /// Random starts besides the current weights.
    pub restarts: u32,
    /// Seed of the starts.
    pub seed: u64,
}

/// Where a start ended: its score and its weights.
type End = (f64, Vec<f64>);

impl Learner for LineSearch {
    fn learn(&self, evidence: &Evidence, state: &mut State, fleet: &Fleet<'_>) -> Result<()> {
        let Evidence::Lists(lists) = evidence;
        let Some(first) = lists.first() else { return Ok(()) };
        let columns = first.columns.clone();
        let mut start = Vec::new();
        state.weights.gather(&columns, &mut start);
        let axes: Vec<usize> = (0..start.len()).collect();
        let climb = |index: u32| -> End {
            let point = if index == 0 { start.clone() } else { self.restart(&start, state.epoch, index) };
            let mut walker = ListWalker::new(lists, &self.metric, &state.weights, &point);
            koehn(&mut walker, &axes, Ascent::default());
            let mut weights = state.weights.clone();
            weights.set(&columns, walker.point());
            let scale = if weights.l1() > 0.0 { 1.0 / weights.l1() } else { 1.0 };
            weights.scale(scale);
            // Scaling rounds, so the score that counts is taken afresh from what will be written.
            let mut scaled = Vec::new();
            weights.gather(&columns, &mut scaled);
            let walker = ListWalker::new(lists, &self.metric, &weights, &scaled);
            (walker.score(), weights.iter().map(|(_, v)| v).collect())
        };
        let ends = fleet.map(self.restarts + 1, |shard| climb(shard.0), encode, decode);
        let mut best = &ends[0];
        for end in &ends[1..] {
            if end.0 > best.0 {
                best = end;
            }
        }
        state.weights.replace(&best.1);
        Ok(())
    }
}

impl LineSearch {
    /// Uniform in [0, 1] where the start is positive, in [−1, 0] where negative, in [−1, 1] where zero.
    fn restart(&self, start: &[f64], epoch: u32, index: u32) -> Vec<f64> {
        let mut stream = Stream::new(self.seed, Purpose::Restart, epoch, index);
        start
            .iter()
            .map(|&w| stream.uniform(if w > 0.0 { 0.0 } else { -1.0 }, if w < 0.0 { 0.0 } else { 1.0 }))
            .collect()
    }
}

fn encode((score, weights): &End) -> Vec<u8> {
    std::iter::once(score).chain(weights).flat_map(|x| x.to_le_bytes()).collect()
}

fn decode(bytes: &[u8]) -> End {
    let mut numbers = bytes.as_chunks::<8>().0.iter().map(|w| f64::from_le_bytes(*w));
    (numbers.next().unwrap_or(f64::NAN), numbers.collect())
}
