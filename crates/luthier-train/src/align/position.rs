//! Which word of a sentence gives rise to which word of its translation: priors over positions, and what the words
//! say together with them.
//!
//! An iteration costs O(I·J) per pair of sentences for independent links, O(I²·J) for the HMM.
//!
//! A *generated* sentence of J words has, for each word, one word of the *given* sentence of I words behind it, or
//! none (the null word, with probability `null`).
//!
//! The HMM (Vogel et al. 1996) has a state for each given word, one for the beginning, and a copy of each for the null
//! word that keeps the place (Och and Ney 2003). A step from i′ to i has the probability
//! (1 − ε)·s(i − i′)/Σₗ s(l − i′) + ε/I. Its maximum-likelihood s has no closed form under that normalisation, so each
//! round raises the likelihood by steps of the minorise–maximise kind for choice models (Hunter 2004): s(d) becomes
//! the expected number of steps d over Σ n(i′)/Z(i′), where n counts how often d was there to be chosen.

use luthier_core::Result;
use luthier_io::Meter;
use rustc_hash::FxHashMap;

/// Probability of a step to anywhere.
const ANYWHERE: f64 = 0.01;
/// States with less than this share of the probability are not followed.
const NEGLIGIBLE: f64 = 1e-13;
/// Steps farther than this are alike.
const FAR: usize = 20;
/// Kinds of steps: −FAR…FAR, and those farther to either side.
pub(super) const STEPS: usize = 2 * FAR + 3;
/// Kinds of first steps: to position 0…FAR, and farther.
pub(super) const FIRST: usize = FAR + 2;

/// Prior over the position of the word behind a generated word, before words are looked at.
#[derive(Debug, Clone, PartialEq)]
pub enum Positions {
    /// All positions are equally likely: IBM Model 1.
    Uniform,
    /// Positions near the diagonal are likelier, with this tension λ > 0: IBM Model 2 as in `fast_align` (Dyer et al. 2013).
    Diagonal(f64),
    /// Positions by their distance from the one of the word before: the HMM (Vogel et al. 1996).
    Steps(Steps),
}

/// Weights of the steps of the HMM aligner from one source position to the next; only their ratios matter.
///
/// ```
/// let steps = luthier_train::align::Steps::default();
/// let next_word = steps.by_distance.len() / 2 + 1; // a step of +1
/// assert!(steps.by_distance.iter().all(|w| *w <= steps.by_distance[next_word]));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Steps {
    /// Weight of each distance, above 0: one for all steps back by more than 20, then −20 to 20, then one for all steps on
    /// by more than 20.
    pub by_distance: Vec<f64>,
    /// Weight of each first position, above 0: 0 to 20, then one for all later positions.
    pub first: Vec<f64>,
}

impl Default for Steps {
    /// The next word is likeliest.
    fn default() -> Self {
        let near = |d: f64| 1.0 / (1.0 + (d - 1.0).abs());
        Steps {
            by_distance: (0..STEPS).map(|k| near(k as f64 - (FAR + 1) as f64)).collect(),
            first: (0..FIRST).map(|k| near(k as f64 + 1.0)).collect(),
        }
    }
}

/// Kind of the step between positions.
#[inline]
fn step(from: usize, to: usize) -> usize {
    (to + FAR + 1).saturating_sub(from).min(STEPS - 1)
}

/// Priors by length of the given sentence, ready for use.
pub(super) struct Prepared<'a> {
    positions: &'a Positions,
    null: f64,
    /// For the HMM: rows from the beginning (0) and from position i′ (i′ + 1), each with I columns.
    tables: FxHashMap<usize, Vec<f64>>,
}

/// What one round of expectations leaves for the next maximisation.
#[derive(Debug, Clone, Default)]
pub(super) struct Expected {
    pub(super) log_likelihood: f64,
    steps: Vec<f64>,
    first: Vec<f64>,
    /// Steps taken from the beginning and from each position, by length: I(I + 1)/2 numbers for all shorter lengths before.
    from: Vec<f64>,
    /// Σ over links of the distance to the diagonal.
    distance: f64,
    /// Words with a link, by lengths.
    linked: FxHashMap<(usize, usize), Vec<f64>>,
}

impl Expected {
    /// Adds another part; parts come in a fixed order.
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
        // Each entry is added to one other: the order of entries does not matter.
        #[allow(clippy::iter_over_hash_type)]
        for (lengths, theirs) in other.linked {
            let mine = self.linked.entry(lengths).or_insert_with(|| vec![0.0; theirs.len()]);
            for (m, t) in mine.iter_mut().zip(theirs) {
                *m += t;
            }
        }
    }
}

/// Buffers for one pair of sentences; `posterior` and `null` are the answer.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// p(generated j | given i) at j·I + i, to be filled before.
    pub(super) words: Vec<f64>,
    /// p(generated j | null word), to be filled before.
    pub(super) of_null: Vec<f64>,
    /// Probability that i is behind j, at j·I + i.
    pub(super) posterior: Vec<f64>,
    /// Probability that the null word is behind j.
    pub(super) null: Vec<f64>,
    forward: Vec<f64>,
    scale: Vec<f64>,
    backward: Vec<f64>,
    next: Vec<f64>,
    counts: Vec<f64>,
    back: Vec<u16>,
}

/// Where the lengths below I end in a triangle of numbers.
fn triangle(given: usize) -> usize {
    given * (given + 1) / 2
}

/// Distance of a link from the diagonal.
fn off_diagonal(i: usize, j: usize, given: usize, generated: usize) -> f64 {
    ((i + 1) as f64 / given as f64 - (j + 1) as f64 / generated as f64).abs()
}

impl<'a> Prepared<'a> {
    /// For sentences of these lengths.
    pub(super) fn new(positions: &'a Positions, null: f64, lengths: impl Iterator<Item = usize>) -> Self {
        let mut tables = FxHashMap::default();
        if let Positions::Steps(steps) = positions {
            for length in lengths {
                tables.entry(length).or_insert_with(|| steps.table(length));
            }
        }
        Prepared { positions, null, tables }
    }

    /// Probabilities of links given both sentences; adds to what is expected, and returns ln p(generated | given).
    pub(super) fn infer(&self, given: usize, scratch: &mut Scratch, expected: &mut Expected) -> f64 {
        let generated = scratch.of_null.len();
        scratch.posterior.clear();
        scratch.posterior.resize(given * generated, 0.0);
        scratch.null.clear();
        scratch.null.resize(generated, 0.0);
        let log = match self.positions {
            Positions::Uniform => self.independent(given, scratch, |_, _| 1.0),
            Positions::Diagonal(tension) => {
                let log = self.independent(given, scratch, |i, j| {
                    (-tension * off_diagonal(i, j, given, generated)).exp()
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

    /// Models in which each word has its link for itself.
    fn independent(&self, given: usize, s: &mut Scratch, prior: impl Fn(usize, usize) -> f64) -> f64 {
        let mut log = 0.0;
        for (j, row) in s.words.chunks_exact(given).enumerate() {
            let out = &mut s.posterior[j * given..(j + 1) * given];
            let mut z = 0.0;
            for (i, o) in out.iter_mut().enumerate() {
                *o = prior(i, j);
                z += *o;
            }
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
            log += total.ln();
        }
        log
    }

    fn forward_backward(&self, given: usize, s: &mut Scratch, expected: &mut Expected) -> f64 {
        let table = &self.tables[&given];
        let generated = s.of_null.len();
        let states = given + 1; // the beginning is state 0
        let log = self.forward(given, s);
        // What the future says of each state, from the last word back.
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
            // A state's probability without what came from its null copy.
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

    /// Probability of each state after each word, scaled to 1, at (j + 1)·states + state; returns ln of the whole.
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
            log += total.ln();
        }
        log
    }

    /// Expected steps of one pair: `counts` lacks the probability of the step itself.
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
                // The share that chose by distance, not blindly.
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

    /// The likeliest links: the word behind each generated word, or none.
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
                // The null copy of a state keeps the place: it comes from the same state.
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

/// Marks a word of the null word on the way back.
const STAY: u16 = u16::MAX;

/// Σ a·b in four lanes.
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
    /// Probabilities of steps in a sentence of this length.
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

    /// Weight of a step from a state, of which 0 is the beginning.
    fn weight(&self, state: usize, to: usize) -> f64 {
        if state == 0 { self.first[to.min(FIRST - 1)] } else { self.by_distance[step(state - 1, to)] }
    }

    /// Weights that make the expected steps likelier.
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
    /// Positions that make what is expected likelier.
    pub(super) fn raised(&self, expected: &Expected, meter: &Meter<'_>) -> Result<Positions> {
        Ok(match self {
            Positions::Uniform => Positions::Uniform,
            Positions::Diagonal(_) => Positions::Diagonal(raised_tension(expected, meter)?),
            Positions::Steps(steps) => Positions::Steps(steps.raised(expected, meter)?),
        })
    }
}

/// The expected log-probability is concave in the tension: its slope is 0 at one place, found by halving.
fn raised_tension(expected: &Expected, meter: &Meter<'_>) -> Result<f64> {
    let mut lengths: Vec<_> = expected.linked.iter().collect();
    lengths.sort_unstable_by_key(|l| *l.0);
    let slope = |tension: f64| {
        let mut slope = -expected.distance;
        for (k, ((given, generated), linked)) in lengths.iter().enumerate() {
            if k.is_multiple_of(64) {
                meter.add(0)?;
            }
            for (j, n) in linked.iter().enumerate() {
                let (mut z, mut first) = (0.0, 0.0);
                for i in 0..*given {
                    let h = off_diagonal(i, j, *given, *generated);
                    let p = (-tension * h).exp();
                    z += p;
                    first += p * h;
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
