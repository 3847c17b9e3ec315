#![expect(clippy::disallowed_methods, reason = "the functions of std serve as reference")]

use super::*;
use crate::Candidate;
use luthier_core::{Local, SegmentId};
use luthier_metric::Scratch;

const REFERENCE: &str = "a b c d";

/// Text, value of the dense feature x, and sparse features.
type Row<'a> = (&'a str, f64, &'a [(&'a str, f64)]);

/// A list with one dense column x and sparse features.
fn list(candidates: &[Row<'_>]) -> Arc<Candidates> {
    let columns = Arc::new(Local::new(vec![FeatureKey::of("x")]));
    let features: Vec<Vec<(FeatureKey, f64)>> = candidates
        .iter()
        .map(|c| c.2.iter().chain(&[("x", c.1)]).map(|f| (FeatureKey::of(f.0), f.1)).collect())
        .collect();
    let all = candidates.iter().zip(&features);
    let mut list =
        Candidates::new(&columns, all.map(|(c, f)| Candidate { text: c.0, features: f, columns: &[] }), true);
    let metric: Metric = "bleu".parse().unwrap();
    let mut scratch = Scratch::default();
    list.judge(&metric, &metric.prepare(&[REFERENCE], &mut scratch), &mut scratch);
    let names: Vec<&str> = candidates.iter().flat_map(|c| c.2.iter().map(|f| f.0)).collect();
    Arc::new(list.named(|key| (*names.iter().find(|n| FeatureKey::of(n) == key).unwrap()).to_owned()))
}

fn visit(learner: &OneBest, state: &mut State, segment: u32, list: &Arc<Candidates>) {
    state.batch.segments = vec![SegmentId(segment)];
    state.batch.references.clear();
    learner.learn(&Evidence::Lists(vec![list.clone()]), state, &Fleet::ALONE, Progress::NONE).unwrap();
}

fn begin() -> State {
    State::new(Weights::parse("w", "x 1\n").unwrap())
}

fn learner(update: Update, passive: Option<f64>) -> OneBest {
    OneBest::new("bleu".parse().unwrap(), update, passive)
}

/// "a b d" has BLEU+1 exp(1 − 4/3)·(3/3 · 2/3 · 1/2 · 1/1)^¼.
fn near() -> f64 {
    (1.0f64 - 4.0 / 3.0).exp() * (2.0f64 / 3.0 * 0.5).powf(0.25)
}

#[test]
fn steps_by_hand() {
    // The guess is "c", the best is the second.
    let candidates = list(&[("c", 2.0, &[("p", 1.0)]), ("a b d", 0.5, &[("q", 1.0), ("p", 3.0)])]);
    let after = |learner: &OneBest| {
        let mut state = begin();
        visit(learner, &mut state, 0, &candidates);
        ["x", "p", "q"].map(|n| state.weights.get(FeatureKey::of(n)))
    };
    let delta = [-1.5, 2.0, 1.0];
    let by = |a: f64| [1.0 + a * delta[0], a * delta[1], a * delta[2]];
    let close = |x: [f64; 3], y: [f64; 3]| {
        assert!(x.iter().zip(y).all(|(x, y)| (x - y).abs() < 1e-6), "{x:?} {y:?}");
    };
    close(after(&learner(Update::Local, None)), by(1.0));
    close(after(&OneBest { weighted: true, ..learner(Update::Local, None) }), by(near()));
    // "c" has BLEU+1 exp(1 − 4)·1: all its precisions are 1.
    let loss = near() - (1.0f64 - 4.0).exp();
    let square = 1.5 * 1.5 + 4.0 + 1.0;
    close(after(&learner(Update::Local, Some(f64::INFINITY))), by((loss + 1.5) / square));
    let weighted = OneBest { weighted: true, ..learner(Update::Local, Some(f64::INFINITY)) };
    close(after(&weighted), by((loss * near() + 1.5) / square));
    close(after(&learner(Update::Local, Some(0.01))), by(0.01));
    // A reachable reference is the target, whatever the list contains.
    let mut state = begin();
    state.batch.segments = vec![SegmentId(0)];
    state.batch.references = vec![Some(list(&[(REFERENCE, 1.0, &[("r", 1.0)])]))];
    learner(Update::Local, None)
        .learn(&Evidence::Lists(vec![candidates.clone()]), &mut state, &Fleet::ALONE, Progress::NONE)
        .unwrap();
    let all: Vec<(&str, f64)> = state.weights.iter().collect();
    assert!(all.contains(&("x", 0.0)) && all.contains(&("p", -1.0)) && all.contains(&("r", 1.0)), "{all:?}");
    assert_eq!(all.len(), 3, "q is not part of the update: {all:?}");
}

#[test]
fn surrogates_are_remembered() {
    let good = list(&[("c", 2.0, &[("p", 1.0)]), ("a b d", 0.5, &[("q", 1.0)])]);
    let poor = list(&[("d", 2.0, &[("s", 1.0)]), ("b a", 0.5, &[("t", 1.0)])]);
    let best = list(&[(REFERENCE, 2.0, &[("u", 1.0)])]);
    for update in [Update::Local, Update::MaxBleu] {
        let learner = learner(update, None);
        let mut state = begin();
        state.surrogates.insert(7, Arc::new(good.only(1)));
        visit(&learner, &mut state, 7, &poor);
        assert_eq!(state.surrogates[&7].text(0), "a b d");
        assert_eq!(state.weights.get(FeatureKey::of("q")), 1.0, "{update:?}");
        visit(&learner, &mut state, 7, &best);
        assert_eq!(state.surrogates[&7].text(0), REFERENCE);
        // Another segment has no stored surrogate.
        let mut state = begin();
        visit(&learner, &mut state, 8, &poor);
        assert_eq!(state.surrogates[&8].text(0), "b a");
    }
}

/// The lazy average equals the mean of the weights after every visit, including visits without an update.
#[test]
fn lazy_averages_are_plain_ones() {
    let lists = [
        list(&[("c", 2.0, &[("p", 1.0)]), ("a b d", 0.5, &[("q", 1.0)])]),
        list(&[("a b c d", 2.0, &[("p", 1.0)])]),
        list(&[("d", 2.0, &[("s", 1.0)]), ("b a", 0.5, &[("t", 1.0), ("q", -2.0)])]),
        list(&[("c d", -2.0, &[("p", 0.5)]), ("a b c", 0.25, &[("t", 1.0)])]),
    ];
    for passive in [None, Some(f64::INFINITY)] {
        let learner = learner(Update::Local, passive);
        let mut state = begin();
        let mut sum: std::collections::BTreeMap<String, f64> = std::collections::BTreeMap::new();
        let visits = 40;
        for t in 0..visits {
            visit(&learner, &mut state, t % 4, &lists[t as usize % 4]);
            for (name, value) in state.weights.iter() {
                *sum.entry(name.to_owned()).or_insert(0.0) += value;
            }
        }
        assert_eq!(state.pass.visits, u64::from(visits));
        let start = Weights::parse("w", "x 1\n").unwrap();
        let mean =
            crate::mixing::mean(&start, &[crate::mixing::Moved::new(&start, &state, true)], Fleet::ALONE)
                .unwrap();
        for ((name, _), lazy) in mean.weights.iter().zip(&mean.visited) {
            let plain = sum[name] / f64::from(visits);
            assert!((plain - lazy).abs() < 1e-12, "{name} {plain} {lazy}");
        }
    }
}
