//! Priors over alignment positions, and inference of links from priors and translation probabilities.
//!
//! Every word of the *generated* sentence, of J words, is aligned with one word of the *given* sentence, of I
//! words, or with the null word (with probability `null`). Inference costs O(I·J) per sentence pair for the
//! IBM models, in which links are independent, and O(I²·J) for the HMM.
//!
//! The HMM (Vogel et al. 1996) has one state per given word, an initial state, and for each of them a null
//! state, which keeps its position (Och and Ney 2003). The transition from position i′ to i has the
//! probability (1 − ε)·s(i − i′)/Z(i′) + ε/I with Z(i′) = Σₗ s(l − i′) and ε = 0.01. The maximum-likelihood s
//! has no closed form, because Z depends on the sentence length. The M-step therefore takes ten
//! minorise–maximise steps (Hunter 2004), which never decrease the likelihood: s(d) becomes the expected
//! number of transitions of distance d, divided by Σ n(i′)/Z(i′), where n(i′) is the expected number of
//! transitions from i′ and the sum is over all positions i′ from which distance d is possible.

use luthier_core::{Result, math};
use luthier_io::Meter;
use rustc_hash::FxHashMap;

/// Probability ε of a transition to a position drawn uniformly.
const ANYWHERE: f64 = 0.01;
/// States with a smaller forward probability are skipped.
const NEGLIGIBLE: f64 = 1e-13;
/// Largest transition distance that has a weight of its own.
const FAR: usize = 20;
/// Number of distance classes: −FAR to FAR, and one for larger distances in each direction.
pub(super) const STEPS: usize = 2 * FAR + 3;
/// Number of classes of first positions: 0 to FAR, and one for later positions.
pub(super) const FIRST: usize = FAR + 2;

/// Prior over the position of the given word that a generated word is aligned with.
#[derive(Debug, Clone, PartialEq)]
pub enum Positions {
    /// Uniform prior: IBM Model 1.
    Uniform,
    /// Prior ∝ exp(−λ |i/I − j/J|), which favours the diagonal, with this λ > 0: IBM Model 2 as in
    /// `fast_align` (Dyer et al. 2013).
    Diagonal(f64),
    /// Prior by the distance from the position of the previous word: the HMM (Vogel et al. 1996).
    Steps(Steps),
}

/// Transition weights s of the HMM aligner by distance between the positions of consecutive words; only their
/// ratios matter.
///
/// ```
/// let steps = luthier_train::align::Steps::default();
/// let next_word = steps.by_distance.len() / 2 + 1; // a step of +1
/// assert!(steps.by_distance.iter().all(|w| *w <= steps.by_distance[next_word]));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Steps {
    /// Weight of each distance, above 0: one for all distances below −20, then those of −20 to 20, then one
    /// for all distances above 20.
    pub by_distance: Vec<f64>,
    /// Weight of each first position, above 0: those of 0 to 20, then one for all later positions.
    pub first: Vec<f64>,
}

impl Default for Steps {
    /// Returns weights that are largest for distance 1 and for first position 0.
    fn default() -> Self {
        let near = |d: f64| 1.0 / (1.0 + (d - 1.0).abs());
        Steps {
            by_distance: (0..STEPS).map(|k| near(k as f64 - (FAR + 1) as f64)).collect(),
            first: (0..FIRST).map(|k| near(k as f64 + 1.0)).collect(),
        }
    }
}

/// Returns the distance class of the transition between two positions.
#[inline]
fn step(from: usize, to: usize) -> usize {
    (to + FAR + 1).saturating_sub(from).min(STEPS - 1)
}

/// Prior over positions with precomputed transition probabilities.
pub(super) struct Prepared<'a> {
    positions: &'a Positions,
    /// Probability of an alignment with the null word.
    null: f64,
    /// Transition probabilities of the HMM by length I of the given sentence: row 0 from the initial state,
    /// row i′ + 1 from position i′, with I columns each.
    tables: FxHashMap<usize, Vec<f64>>,
}

/// Expected counts of the E-step, from which the M-step computes the prior over positions.
#[derive(Debug, Clone, Default)]
pub(super) struct Expected {
    /// Sum of ln p(generated | given) over sentence pairs.
    pub(super) log_likelihood: f64,
    /// Expected number of transitions of each distance class.
    steps: Vec<f64>,
    /// Expected number of each class of first positions.
    first: Vec<f64>,
    /// Expected number of transitions from the initial state and from each position, by length I of the given
    /// sentence; those of length I start at I(I + 1)/2.
    from: Vec<f64>,
    /// Expected sum of |i/I − j/J| over links.
    distance: f64,
    /// Expected number of links of each generated position, by the lengths I and J.
    linked: FxHashMap<(usize, usize), Vec<f64>>,
}

impl Expected {
    /// Adds the expected counts of other sentence pairs; must be called in a fixed order.
    pub(super) fn add(&mut self, other: Expected) {
        self.log_likelihood += other.log_likelihood;
        self.distance += other.distance;
        for (mine, theirs) in
            [(&mut self.steps, other.steps), (&mut self.first, other.first), (&mut self.from, other.from)]
        {
            if mine.len() < theirs.len() {
                mine.resize(theirs.len(), 0.0);
            }
            for (m, t) in mine.iter_mut().zip(theirs) {
                *m += t;
            }
        }
        // The order of iteration does not matter, because each entry is added to one other.
        #[allow(clippy::iter_over_hash_type)]
        for (lengths, theirs) in other.linked {
            let mine = self.linked.entry(lengths).or_insert_with(|| vec![0.0; theirs.len()]);
            for (m, t) in mine.iter_mut().zip(theirs) {
                *m += t;
            }
        }
    }
}

/// Input, output and working memory of inference for one sentence pair.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Input: t(generated word j | given word i) at j·I + i.
    pub(super) words: Vec<f64>,
    /// Input: t(generated word j | null word).
    pub(super) of_null: Vec<f64>,
    /// Output: posterior probability that j is aligned with i, at j·I + i.
    pub(super) posterior: Vec<f64>,
    /// Output: posterior probability that j is aligned with the null word.
    pub(super) null: Vec<f64>,
    /// Scaled forward probabilities of the states after each word.
    forward: Vec<f64>,
    /// Scaling factor of each word.
    scale: Vec<f64>,
    /// Scaled backward probabilities of the states.
    backward: Vec<f64>,
    /// Emission times backward probability of each position.
    next: Vec<f64>,
    /// Expected transitions between states, without the factor of the transition probability.
    counts: Vec<f64>,
    /// Back pointers of the Viterbi algorithm.
    back: Vec<u16>,
}

/// Returns the start of the numbers of length I = `given` in the field `from` of [`Expected`].
fn triangle(given: usize) -> usize {
    given * (given + 1) / 2
}

/// Returns the distance |i/I − j/J| of a link from the diagonal, with positions from 1.
fn off_diagonal(i: usize, j: usize, given: usize, generated: usize) -> f64 {
    ((i + 1) as f64 / given as f64 - (j + 1) as f64 / generated as f64).abs()
}

impl<'a> Prepared<'a> {
    /// Prepares a prior for given sentences of these lengths.
    pub(super) fn new(positions: &'a Positions, null: f64, lengths: impl Iterator<Item = usize>) -> Self {
        let mut tables = FxHashMap::default();
        if let Positions::Steps(steps) = positions {
            for length in lengths {
                tables.entry(length).or_insert_with(|| steps.table(length));
            }
        }
        Prepared { positions, null, tables }
    }

    /// E-step of one sentence pair: writes the posterior probabilities of links to `scratch`, adds to the
    /// expected counts, and returns ln p(generated | given).
    pub(super) fn infer(&self, given: usize, scratch: &mut Scratch, expected: &mut Expected) -> f64 {
        let generated = scratch.of_null.len();
        scratch.posterior.clear();
        scratch.posterior.resize(given * generated, 0.0);
        scratch.null.clear();
        scratch.null.resize(generated, 0.0);
        let log = match self.positions {
            Positions::Uniform => self.independent(given, scratch, |_, row| row.fill(1.0)),
            Positions::Diagonal(tension) => {
                let log = self.independent(given, scratch, |j, row| {
                    for (i, p) in row.iter_mut().enumerate() {
                        *p = -tension * off_diagonal(i, j, given, generated);
                    }
                    math::exp_in_place(row);
                });
                let linked =
                    expected.linked.entry((given, generated)).or_insert_with(|| vec![0.0; generated]);
                for (j, l) in linked.iter_mut().enumerate() {
                    *l += 1.0 - scratch.null[j];
                    for (i, p) in scratch.posterior[j * given..(j + 1) * given].iter().enumerate() {
                        expected.distance += p * off_diagonal(i, j, given, generated);
                    }
                }
                log
            }
            Positions::Steps(_) => self.forward_backward(given, scratch, expected),
        };
        expected.log_likelihood += log;
        log
    }

    /// E-step of models with independent links; `prior(j, row)` writes the unnormalised prior over the given
    /// positions for generated position j to `row`.
    fn independent(&self, given: usize, s: &mut Scratch, prior: impl Fn(usize, &mut [f64])) -> f64 {
        let mut log = 0.0;
        for (j, row) in s.words.chunks_exact(given).enumerate() {
            let out = &mut s.posterior[j * given..(j + 1) * given];
            prior(j, out);
            let z: f64 = out.iter().sum();
            let share = (1.0 - self.null) / z;
            let mut total = self.null * s.of_null[j];
            for (o, p) in out.iter_mut().zip(row) {
                *o *= share * p;
                total += *o;
            }
            let inverse = 1.0 / total;
            for o in out.iter_mut() {
                *o *= inverse;
            }
            s.null[j] = self.null * s.of_null[j] * inverse;
            log += math::ln(total);
        }
        log
    }

    /// E-step of the HMM by the forward–backward algorithm.
    fn forward_backward(&self, given: usize, s: &mut Scratch, expected: &mut Expected) -> f64 {
        let table = &self.tables[&given];
        let generated = s.of_null.len();
        let states = given + 1; // state 0 is the initial state
        let log = self.forward(given, s);
        // Backward probabilities, from the last word to the first.
        s.backward.clear();
        s.backward.resize(states, 1.0);
        s.next.resize(given.max(s.next.len()), 0.0);
        s.counts.clear();
        s.counts.resize(states * given, 0.0);
        for j in (0..generated).rev() {
            let inverse = 1.0 / s.scale[j];
            let row = &s.words[j * given..(j + 1) * given];
            let (before, now) = s.forward[j * states..].split_at(states);
            let null = self.null * s.of_null[j] * inverse;
            let mut of_null = 0.0;
            for (b, f) in s.backward.iter().zip(before) {
                of_null += f * null * b;
            }
            s.null[j] = of_null;
            let next = &mut s.next[..given];
            for ((n, p), b) in next.iter_mut().zip(row).zip(&s.backward[1..]) {
                *n = (1.0 - self.null) * inverse * p * b;
            }
            // Posterior of a state without the contribution of its null state.
            for (i, o) in s.posterior[j * given..(j + 1) * given].iter_mut().enumerate() {
                *o = (now[i + 1] - before[i + 1] * null).max(0.0) * s.backward[i + 1];
            }
            for (i, f) in before.iter().enumerate() {
                if *f < NEGLIGIBLE {
                    s.backward[i] = 0.0;
                    continue;
                }
                let steps = &table[i * given..(i + 1) * given];
                let counts = &mut s.counts[i * given..(i + 1) * given];
                for (c, n) in counts.iter_mut().zip(next.iter()) {
                    *c += f * n;
                }
                s.backward[i] = dot(steps, next) + null * s.backward[i];
            }
        }
        self.count_steps(given, &s.counts, expected);
        log
    }

    /// Computes the forward probabilities, scaled to sum to 1 after each word, at (j + 1)·states + state;
    /// returns ln p(generated | given).
    fn forward(&self, given: usize, s: &mut Scratch) -> f64 {
        let table = &self.tables[&given];
        let generated = s.of_null.len();
        let states = given + 1;
        s.forward.clear();
        s.forward.resize(states * (generated + 1), 0.0);
        s.scale.clear();
        s.forward[0] = 1.0;
        let mut log = 0.0;
        for j in 0..generated {
            let row = &s.words[j * given..(j + 1) * given];
            let (before, after) = s.forward[j * states..].split_at_mut(states);
            let after = &mut after[..states];
            for (i, f) in before.iter().enumerate() {
                if *f >= NEGLIGIBLE {
                    for (a, t) in after[1..].iter_mut().zip(&table[i * given..(i + 1) * given]) {
                        *a += f * t;
                    }
                }
            }
            for (a, p) in after[1..].iter_mut().zip(row) {
                *a *= (1.0 - self.null) * p;
            }
            let null = self.null * s.of_null[j];
            let mut total = 0.0;
            for (a, b) in after.iter_mut().zip(before.iter()) {
                *a += null * b;
                total += *a;
            }
            let inverse = 1.0 / total;
            for a in after.iter_mut() {
                *a *= inverse;
            }
            s.scale.push(total);
            log += math::ln(total);
        }
        log
    }

    /// Adds the expected transitions of one sentence pair; `counts` lacks the factor of the transition
    /// probability.
    fn count_steps(&self, given: usize, counts: &[f64], expected: &mut Expected) {
        let table = &self.tables[&given];
        expected.steps.resize(STEPS, 0.0);
        expected.first.resize(FIRST, 0.0);
        if expected.from.len() < triangle(given + 1) {
            expected.from.resize(triangle(given + 1), 0.0);
        }
        let anywhere = ANYWHERE / given as f64;
        for i in 0..=given {
            let mut total = 0.0;
            for to in 0..given {
                let k = i * given + to;
                // Without the part of the uniform distribution ε/I.
                let count = counts[k] * (table[k] - anywhere);
                total += count;
                if i == 0 {
                    expected.first[to.min(FIRST - 1)] += count;
                } else {
                    expected.steps[step(i - 1, to)] += count;
                }
            }
            expected.from[triangle(given) + i] += total;
        }
    }

    /// Writes the most probable alignment to `best`: the given position of each generated word, or `None` for
    /// the null word.
    pub(super) fn best(&self, given: usize, scratch: &mut Scratch, best: &mut Vec<Option<usize>>) {
        best.clear();
        if let Positions::Steps(_) = self.positions {
            return self.viterbi(given, scratch, best);
        }
        self.infer(given, scratch, &mut Expected::default());
        for (row, null) in scratch.posterior.chunks_exact(given).zip(&scratch.null) {
            let (mut top, mut at) = (*null, None);
            for (i, p) in row.iter().enumerate() {
                if *p > top {
                    (top, at) = (*p, Some(i));
                }
            }
            best.push(at);
        }
    }

    /// Finds the most probable alignment of the HMM by the Viterbi algorithm.
    fn viterbi(&self, given: usize, s: &mut Scratch, best: &mut Vec<Option<usize>>) {
        let table = &self.tables[&given];
        let generated = s.of_null.len();
        let states = given + 1;
        s.back.clear();
        s.back.resize(states * generated, 0);
        let (mut before, mut after) = (vec![0.0; states], vec![0.0; states]);
        before[0] = 1.0;
        for j in 0..generated {
            let row = &s.words[j * given..(j + 1) * given];
            let back = &mut s.back[j * states..(j + 1) * states];
            after.fill(0.0);
            let null = self.null * s.of_null[j];
            for (i, f) in before.iter().enumerate() {
                if *f <= 0.0 {
                    continue;
                }
                for (to, t) in table[i * given..(i + 1) * given].iter().enumerate() {
                    let p = f * t;
                    if p > after[to + 1] {
                        after[to + 1] = p;
                        back[to + 1] = i as u16;
                    }
                }
            }
            let mut top = 0.0f64;
            for (i, a) in after.iter_mut().enumerate() {
                if i > 0 {
                    *a *= (1.0 - self.null) * row[i - 1];
                }
                // The null state keeps the position: its predecessor is the same state.
                let stay = null * before[i];
                if stay > *a {
                    *a = stay;
                    back[i] = STAY;
                }
                top = top.max(*a);
            }
            for a in &mut after {
                *a /= top;
            }
            std::mem::swap(&mut before, &mut after);
        }
        let mut at = 0;
        for (i, p) in before.iter().enumerate() {
            if *p > before[at] {
                at = i;
            }
        }
        for j in (0..generated).rev() {
            let from = s.back[j * states + at];
            if from == STAY {
                best.push(None);
            } else {
                best.push(Some(at - 1));
                at = from as usize;
            }
        }
        best.reverse();
    }
}

/// Back pointer of a word aligned with the null word.
const STAY: u16 = u16::MAX;

/// Returns the dot product, with four partial sums.
#[inline]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a4, a_rest) = a.as_chunks::<4>();
    let (b4, b_rest) = b.as_chunks::<4>();
    let mut lanes = [0.0; 4];
    for (x, y) in a4.iter().zip(b4) {
        for k in 0..4 {
            lanes[k] += x[k] * y[k];
        }
    }
    let mut total = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
    for (x, y) in a_rest.iter().zip(b_rest) {
        total += x * y;
    }
    total
}

impl Steps {
    /// Returns the transition probabilities for a given sentence of this length, by state, then position.
    pub(super) fn table(&self, given: usize) -> Vec<f64> {
        let mut table = vec![0.0; (given + 1) * given];
        for (i, row) in table.chunks_exact_mut(given).enumerate() {
            for (to, r) in row.iter_mut().enumerate() {
                *r = self.weight(i, to);
            }
            let z: f64 = row.iter().sum();
            for r in row.iter_mut() {
                *r = (1.0 - ANYWHERE) * *r / z + ANYWHERE / given as f64;
            }
        }
        table
    }

    /// Returns the weight of the transition from a state to a position; state 0 is the initial state.
    fn weight(&self, state: usize, to: usize) -> f64 {
        if state == 0 { self.first[to.min(FIRST - 1)] } else { self.by_distance[step(state - 1, to)] }
    }

    /// M-step of the HMM: returns weights that do not decrease the likelihood of the expected transitions.
    /// Fails if the progress callback returns *stop*.
    fn raised(&self, expected: &Expected, meter: &Meter<'_>) -> Result<Steps> {
        let mut steps = self.clone();
        let lengths = (1..).take_while(|&g| triangle(g + 1) <= expected.from.len());
        let lengths: Vec<usize> = lengths.collect();
        for _ in 0..10 {
            let (mut distance, mut first) = (vec![0.0; STEPS], vec![0.0; FIRST]);
            for &given in &lengths {
                meter.add(0)?;
                for i in 0..=given {
                    let n = expected.from[triangle(given) + i];
                    if n <= 0.0 {
                        continue;
                    }
                    let z: f64 = (0..given).map(|to| steps.weight(i, to)).sum();
                    for to in 0..given {
                        if i == 0 {
                            first[to.min(FIRST - 1)] += n / z;
                        } else {
                            distance[step(i - 1, to)] += n / z;
                        }
                    }
                }
            }
            for (weights, counts, chances) in [
                (&mut steps.by_distance, &expected.steps, distance),
                (&mut steps.first, &expected.first, first),
            ] {
                for ((w, c), chance) in weights.iter_mut().zip(counts).zip(&chances) {
                    if *chance > 0.0 {
                        *w = (c / chance).max(1e-12);
                    }
                }
            }
        }
        Ok(steps)
    }
}

impl Positions {
    /// M-step: returns the prior over positions for the expected counts. Fails if the progress callback
    /// returns *stop*.
    pub(super) fn raised(&self, expected: &Expected, meter: &Meter<'_>) -> Result<Positions> {
        Ok(match self {
            Positions::Uniform => Positions::Uniform,
            Positions::Diagonal(_) => Positions::Diagonal(best_tension(expected, meter)?),
            Positions::Steps(steps) => Positions::Steps(steps.raised(expected, meter)?),
        })
    }
}

/// M-step of IBM Model 2: returns the λ from 0.1 to 30 that maximises the expected log-probability, which is
/// concave in λ, by 25 bisections of its derivative. Fails if the progress callback returns *stop*.
fn best_tension(expected: &Expected, meter: &Meter<'_>) -> Result<f64> {
    let mut lengths: Vec<_> = expected.linked.iter().collect();
    lengths.sort_unstable_by_key(|l| *l.0);
    let mut row = Vec::new();
    let mut slope = |tension: f64| {
        let mut slope = -expected.distance;
        for (k, ((given, generated), linked)) in lengths.iter().enumerate() {
            if k.is_multiple_of(64) {
                meter.add(0)?;
            }
            for (j, n) in linked.iter().enumerate() {
                let (mut z, mut first) = (0.0, 0.0);
                row.clear();
                row.extend((0..*given).map(|i| -tension * off_diagonal(i, j, *given, *generated)));
                math::exp_in_place(&mut row);
                for (i, p) in row.iter().enumerate() {
                    z += p;
                    first += p * off_diagonal(i, j, *given, *generated);
                }
                slope += n * first / z;
            }
        }
        Result::Ok(slope)
    };
    let (mut low, mut high) = (0.1, 30.0);
    for _ in 0..25 {
        let middle = 0.5 * (low + high);
        if slope(middle)? > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(0.5 * (low + high))
}
