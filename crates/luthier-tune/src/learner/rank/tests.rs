#![expect(clippy::disallowed_methods, reason = "the functions of std serve as reference")]

use super::*;
use crate::Candidate;
use luthier_core::{FeatureKey, Local};
use luthier_metric::Scratch;

const NAMES: [&str; 5] = ["a", "b", "c", "s", "t"];

/// Lists with three dense columns and two sparse features, the second of which is rare.
fn lists(seed: u64, segments: usize) -> Vec<Arc<Candidates>> {
    let mut s = Stream::new(seed, Purpose::Test, 0, 0);
    let columns = Arc::new(Local::new(NAMES[..3].iter().map(|n| FeatureKey::of(n)).collect()));
    let metric: Metric = "bleu:order=2".parse().unwrap();
    let mut scratch = Scratch::default();
    (0..segments)
        .map(|_| {
            let k = 2 + s.below(7);
            let texts: Vec<String> = (0..k)
                .map(|_| {
                    let words = ["u", "v", "w", "x"];
                    let n = 2 + s.below(4);
                    (0..n).map(|_| words[s.below(4) as usize]).collect::<Vec<_>>().join(" ")
                })
                .collect();
            let features: Vec<Vec<(FeatureKey, f64)>> = (0..k)
                .map(|_| {
                    let mut f: Vec<(FeatureKey, f64)> =
                        NAMES[..3].iter().map(|n| (FeatureKey::of(n), s.uniform(-2.0, 2.0))).collect();
                    for name in &NAMES[3..] {
                        if s.below(3) == 0 {
                            f.push((FeatureKey::of(name), 0.5));
                        }
                    }
                    f
                })
                .collect();
            let all = texts.iter().zip(&features);
            let mut list = Candidates::new(
                &columns,
                all.map(|(t, f)| Candidate { text: t, features: f, columns: &[] }),
                true,
            );
            list.judge(&metric, &metric.prepare(&["u v w x u"], &mut scratch), &mut scratch);
            let name = |key| NAMES.iter().find(|n| FeatureKey::of(n) == key).unwrap().to_string();
            Arc::new(list.named(name))
        })
        .collect()
}

fn weights(seed: u64) -> Weights {
    let mut s = Stream::new(seed, Purpose::Test, 1, 0);
    let text: String = NAMES.iter().map(|n| format!("{n} {}\n", s.uniform(-1.0, 1.0))).collect();
    Weights::parse("w", &text).unwrap()
}

/// Values of all features of a candidate in the order of `NAMES`.
fn dense(list: &Candidates, i: usize) -> [f64; 5] {
    let mut h = [0.0; 5];
    for (key, value) in list.features(i) {
        h[NAMES.iter().position(|n| FeatureKey::of(n) == key).unwrap()] = value;
    }
    h
}

fn learn(rule: Rule, lists: &[Arc<Candidates>], start: &Weights, epoch: u32, at: u32) -> Vec<f64> {
    let by_descent = learn_by(rule, lists, start, (epoch, at), 0);
    let by_newton = learn_by(rule, lists, start, (epoch, at), 64);
    assert!(
        by_descent.iter().zip(&by_newton).all(|(x, y)| (x - y).abs() < 1e-4),
        "{rule:?} {by_descent:?} {by_newton:?}"
    );
    by_descent
}

fn learn_by(
    rule: Rule,
    lists: &[Arc<Candidates>],
    start: &Weights,
    (epoch, at): (u32, u32),
    few: usize,
) -> Vec<f64> {
    let learner = Rank { tolerance: 1e-5, few, ..Rank::new("bleu:order=2".parse().unwrap(), rule, 1) };
    let mut state = State::new(start.clone());
    state.epoch = epoch;
    state.pass.batches = 4;
    state.batch.number = at;
    learner.learn(&Evidence::Lists(lists.to_vec()), &mut state, &Fleet::ALONE, Progress::NONE).unwrap();
    NAMES.iter().map(|n| state.weights.get(FeatureKey::of(n))).collect()
}

/// Φ of all pairs of an oracle and another candidate, by definition (Watanabe 2012, eq. 5).
fn differences(lists: &[Arc<Candidates>]) -> Vec<Vec<f64>> {
    let oracle =
        oracles(lists, &"bleu:order=2".parse().unwrap(), SentenceSmoothing::default(), OracleBy::Corpus, 1);
    let mut all = Vec::new();
    for (list, oracle) in lists.iter().zip(&oracle) {
        for i in (0..list.k).filter(|&i| oracle[i]) {
            for j in (0..list.k).filter(|&j| !oracle[j]) {
                let (x, y) = (dense(list, i), dense(list, j));
                all.push(x.iter().zip(y).map(|(x, y)| x - y).collect());
            }
        }
    }
    all
}

fn close(x: &[f64], y: &[f64], what: &str) {
    assert!(x.iter().zip(y).all(|(x, y)| (x - y).abs() < 1e-6), "{what}: {x:?} {y:?}");
}

fn by_hand(w: &[f64], lambda: f64, eta: f64, step: &[f64]) -> Vec<f64> {
    let mut new: Vec<f64> = w.iter().zip(step).map(|(w, g)| (1.0 - lambda * eta) * w + g).collect();
    let norm = new.iter().map(|x| x * x).sum::<f64>().sqrt();
    let most = (1.0 / lambda.sqrt() / norm).min(1.0);
    for x in &mut new {
        *x *= most;
    }
    new
}

const RATE: Rate = Rate::exponential(0.2, 0.85);

#[test]
fn gradient_steps_by_definition() {
    for seed in 0..30 {
        let lists = lists(seed, 1 + seed as usize % 4);
        let start = weights(seed);
        let w = start.values();
        let pairs = differences(&lists);
        let violated: Vec<&Vec<f64>> = pairs.iter().filter(|x| 1.0 - dot(x, w) > 0.0).collect();
        let (epoch, at) = ((seed % 3) as u32, (seed % 4) as u32);
        let k = f64::from(epoch * 4 + at + 1);
        // One λ whose ball excludes the weights, and one whose ball includes them.
        for lambda in [1e-5, 4.0] {
            for (rate, eta) in [(RATE, 0.2 * 0.85f64.powf(k / 4.0)), (Rate::PEGASOS, 1.0 / (lambda * k))] {
                for (norm, n) in [(Norm::Violated, violated.len()), (Norm::Pairs, pairs.len())] {
                    let mut step = vec![0.0; 5];
                    for x in &violated {
                        luthier_optim::axpy(eta / n as f64, x, &mut step);
                    }
                    let expected = by_hand(w, lambda, eta, &step);
                    let rule = Rule::Gradient { loss: RankLoss::Hinge, rate, lambda, norm };
                    close(&learn(rule, &lists, &start, epoch, at), &expected, "hinge");
                }
                // Softmax: against finite differences of the loss.
                let mut step = vec![0.0; 5];
                for (d, g) in step.iter_mut().enumerate() {
                    let at = |by: f64| {
                        let mut w = w.to_vec();
                        w[d] += by;
                        likelihood(&lists, &w)
                    };
                    *g = eta * (at(1e-5) - at(-1e-5)) / 2e-5 / lists.len() as f64;
                }
                let rule = Rule::Gradient { loss: RankLoss::Softmax, rate, lambda, norm: Norm::Violated };
                let found = learn(rule, &lists, &start, epoch, at);
                let expected = by_hand(w, lambda, eta, &step);
                let scale = 1.0 + eta;
                assert!(
                    found.iter().zip(&expected).all(|(x, y)| (x - y).abs() < 1e-6 * scale),
                    "{found:?} {expected:?}"
                );
            }
        }
    }
}

/// Σ log(Zₒ/Zₙ) over segments (Watanabe 2012, eq. 6).
fn likelihood(lists: &[Arc<Candidates>], w: &[f64]) -> f64 {
    each_likelihood(lists, w).iter().sum()
}

fn each_likelihood(lists: &[Arc<Candidates>], w: &[f64]) -> Vec<f64> {
    let oracle =
        oracles(lists, &"bleu:order=2".parse().unwrap(), SentenceSmoothing::default(), OracleBy::Corpus, 1);
    let sum = |list: &Arc<Candidates>, keep: &dyn Fn(usize) -> bool| {
        (0..list.k).filter(|&i| keep(i)).map(|i| dot(&dense(list, i), w).exp()).sum::<f64>()
    };
    lists.iter().zip(&oracle).map(|(l, o)| (sum(l, &|i| o[i]) / sum(l, &|_| true)).ln()).collect()
}

/// Feasible set of the Lagrange multipliers.
enum Set {
    Box,
    Simplex,
}

/// Minimises the dual ½‖Σ τx‖² − Σ τ(m − w·x) (Watanabe 2012, eq. 14) by accelerated projected gradient descent.
fn reference(xs: &[Vec<f64>], margins: &[f64], w: &[f64], eta: f64, set: &Set) -> Vec<f64> {
    let mut tau = vec![0.0; xs.len()];
    let lipschitz: f64 = xs.iter().map(|x| dot(x, x)).sum::<f64>().max(1e-9);
    let mut at = w.to_vec();
    let mut momentum = tau.clone();
    let (mut t, mut old) = (1.0f64, tau.clone());
    for _ in 0..60_000 {
        at.copy_from_slice(w);
        for (x, a) in xs.iter().zip(&momentum) {
            luthier_optim::axpy(*a, x, &mut at);
        }
        let gradient: Vec<f64> = xs.iter().zip(margins).map(|(x, m)| dot(x, &at) - m).collect();
        tau = momentum.iter().zip(&gradient).map(|(a, g)| a - g / lipschitz).collect();
        match set {
            Set::Box => {
                for a in &mut tau {
                    *a = a.clamp(0.0, eta);
                }
            }
            Set::Simplex => {
                let positive: f64 = tau.iter().map(|a| a.max(0.0)).sum();
                let mut cut = 0.0;
                if positive > eta {
                    // Threshold θ with Σ max(0, τ − θ) = η: projection onto the simplex.
                    let mut sorted = tau.clone();
                    sorted.sort_by(|a, b| b.total_cmp(a));
                    let mut sum = 0.0;
                    for (k, a) in sorted.iter().enumerate() {
                        sum += a;
                        let level = (sum - eta) / (k + 1) as f64;
                        if level < *a {
                            cut = level;
                        }
                    }
                }
                for a in &mut tau {
                    *a = (*a - cut).max(0.0);
                }
            }
        }
        let next = f64::midpoint(1.0, (1.0 + 4.0 * t * t).sqrt());
        momentum = tau.iter().zip(&old).map(|(a, b)| a + (t - 1.0) / next * (a - b)).collect();
        (t, old) = (next, tau.clone());
    }
    tau
}

fn moved(xs: &[Vec<f64>], tau: &[f64]) -> Vec<f64> {
    let mut step = vec![0.0; 5];
    for (x, a) in xs.iter().zip(tau) {
        luthier_optim::axpy(*a, x, &mut step);
    }
    step
}

#[test]
fn optimized_steps_against_a_plain_solver() {
    let (lambda, epoch, at) = (1e-3, 1, 2);
    let eta = 0.2 * 0.85f64.powf(7.0 / 4.0);
    for seed in 0..8 {
        let lists = lists(100 + seed, 3);
        let start = weights(seed);
        let shrunk: Vec<f64> = start.values().iter().map(|w| (1.0 - lambda * eta) * w).collect();
        let planes: Vec<Vec<f64>> = (0..lists.len())
            .map(|s| {
                let slope = |d: usize| {
                    let at = |by: f64| {
                        let mut w = start.values().to_vec();
                        w[d] += by;
                        each_likelihood(&lists, &w)[s]
                    };
                    (at(1e-5) - at(-1e-5)) / 2e-5
                };
                (0..5).map(slope).collect()
            })
            .collect();
        let likelihoods = each_likelihood(&lists, start.values());
        let printed: Vec<f64> = likelihoods.iter().map(|l| -l).collect();
        let tangent: Vec<f64> =
            planes.iter().zip(&printed).map(|(p, m)| m + dot(p, start.values())).collect();
        let pairs = differences(&lists);
        let ones = vec![1.0; pairs.len()];
        let cases = [
            (RankLoss::Hinge, Linearize::Printed, &pairs, &ones),
            (RankLoss::Softmax, Linearize::Printed, &planes, &printed),
            (RankLoss::Softmax, Linearize::Tangent, &planes, &tangent),
        ];
        for (loss, linearize, xs, margins) in cases {
            let violated = || xs.iter().filter(|x| 1.0 - dot(x, start.values()) > 0.0).count();
            let terms = if loss == RankLoss::Hinge { violated() } else { lists.len() };
            for bound in [Bound::Mean, Bound::Normalized, Bound::Box, Bound::Simplex] {
                let set = if bound == Bound::Simplex { Set::Simplex } else { Set::Box };
                let c = if bound == Bound::Mean { eta / terms as f64 } else { eta };
                let mut tau = reference(xs, margins, &shrunk, c, &set);
                let sum: f64 = tau.iter().sum();
                if bound == Bound::Normalized && sum > eta {
                    for a in &mut tau {
                        *a *= eta / sum;
                    }
                }
                let step = moved(xs, &tau);
                let expected = by_hand(start.values(), lambda, eta, &step);
                let rule =
                    Rule::Optimized { loss, rate: RATE, lambda, bound, pairs: InnerPairs::All, linearize };
                let found = learn(rule, &lists, &start, epoch, at);
                let same = found.iter().zip(&expected).all(|(x, y)| (x - y).abs() < 2e-4);
                assert!(same, "{seed} {loss:?} {linearize:?} {bound:?}: {found:?} {expected:?}");
            }
        }
        // Over the violated pairs alone, the sum of τ is at most η.
        let violated: Vec<Vec<f64>> =
            pairs.iter().filter(|x| 1.0 - dot(x, start.values()) > 0.0).cloned().collect();
        let tau =
            reference(&violated, &vec![1.0; violated.len()], &shrunk, eta / violated.len() as f64, &Set::Box);
        assert!(tau.iter().sum::<f64>() <= eta + 1e-9);
        let expected = by_hand(start.values(), lambda, eta, &moved(&violated, &tau));
        let (loss, bound, linearize) = (RankLoss::Hinge, Bound::Mean, Linearize::Tangent);
        let rule =
            Rule::Optimized { loss, rate: RATE, lambda, bound, pairs: InnerPairs::Violated, linearize };
        let found = learn(rule, &lists, &start, epoch, at);
        assert!(found.iter().zip(&expected).all(|(x, y)| (x - y).abs() < 2e-4), "{found:?} {expected:?}");
        // MIRA: no shrinking, no projection; margin 1, or the loss in the batch's score.
        let scale = MiraScale::Sum;
        let tau = reference(&pairs, &ones, start.values(), 0.01, &Set::Box);
        let expected: Vec<f64> = start.values().iter().zip(moved(&pairs, &tau)).map(|(w, d)| w + d).collect();
        let found =
            learn(Rule::Passive { c: 0.01, margin: RankMargin::One, scale }, &lists, &start, epoch, at);
        assert!(found.iter().zip(&expected).all(|(x, y)| (x - y).abs() < 1e-4), "{found:?} {expected:?}");
        // With the mean, the bound is C/M′ for the M′ violated pairs.
        let violated = pairs.iter().filter(|x| 1.0 - dot(x, start.values()) > 0.0).count();
        let tau = reference(&pairs, &ones, start.values(), 0.3 / violated as f64, &Set::Box);
        let expected: Vec<f64> = start.values().iter().zip(moved(&pairs, &tau)).map(|(w, d)| w + d).collect();
        let mean = Rule::Passive { c: 0.3, margin: RankMargin::One, scale: MiraScale::Mean };
        let found = learn(mean, &lists, &start, epoch, at);
        assert!(found.iter().zip(&expected).all(|(x, y)| (x - y).abs() < 1e-4), "{found:?} {expected:?}");
        let errors = losses(&lists);
        let tau = reference(&pairs, &errors, start.values(), 0.01, &Set::Box);
        let expected: Vec<f64> = start.values().iter().zip(moved(&pairs, &tau)).map(|(w, d)| w + d).collect();
        let found =
            learn(Rule::Passive { c: 0.01, margin: RankMargin::Error, scale }, &lists, &start, epoch, at);
        assert!(found.iter().zip(&expected).all(|(x, y)| (x - y).abs() < 1e-4), "{found:?} {expected:?}");
    }
}

/// Loss in the batch's BLEU when the worse candidate of each pair replaces the oracle, computed from texts.
fn losses(lists: &[Arc<Candidates>]) -> Vec<f64> {
    let metric: Metric = "bleu:order=2".parse().unwrap();
    let oracle = oracles(lists, &metric, SentenceSmoothing::default(), OracleBy::Corpus, 1);
    let total = |swap: Option<(usize, usize)>| {
        let mut total = vec![0.0; metric.width()];
        for (s, list) in lists.iter().enumerate() {
            let i = match swap {
                Some((t, j)) if t == s => j,
                _ => oracle[s].iter().position(|o| *o).unwrap(),
            };
            for (t, x) in total.iter_mut().zip(list.stats_of(list.class[i])) {
                *t += f64::from(*x);
            }
        }
        metric.score(&total) / 100.0
    };
    let mut all = Vec::new();
    for (s, list) in lists.iter().enumerate() {
        for _ in (0..list.k).filter(|&i| oracle[s][i]) {
            for j in (0..list.k).filter(|&j| !oracle[s][j]) {
                all.push(total(None) - total(Some((s, j))));
            }
        }
    }
    all
}

/// A batch without violated pairs still shrinks the weights.
#[test]
fn batches_without_violation_shrink() {
    let lists = lists(3, 2);
    let oracle =
        oracles(&lists, &"bleu:order=2".parse().unwrap(), SentenceSmoothing::default(), OracleBy::Corpus, 1);
    let only: Vec<Arc<Candidates>> = lists
        .iter()
        .zip(&oracle)
        .map(|(l, o)| Arc::new(l.only(o.iter().position(|o| *o).unwrap())))
        .collect();
    let start = weights(3);
    for loss in [RankLoss::Hinge, RankLoss::Softmax] {
        let rule = Rule::Gradient { loss, rate: RATE, lambda: 0.1, norm: Norm::Violated };
        let eta = 0.2 * 0.85f64.powf(0.25);
        let expected: Vec<f64> = start.values().iter().map(|w| w * (1.0 - 0.1 * eta)).collect();
        close(&learn(rule, &only, &start, 0, 0), &expected, "shrunk");
    }
}

/// With steps that are independent of the weights, the cumulative penalty of an epoch is one soft threshold, whenever a
/// weight has been touched before.
#[test]
fn penalties_of_an_epoch_add_up() {
    let mut state = State::new(Weights::parse("w", "a 1\nb -1\nc 0.2\nd -3\n").unwrap());
    for step in 0..4 {
        state.pass.penalty += 0.125;
        penalize(&mut state, if step % 2 == 0 { &[0, 1, 2] } else { &[0, 2] });
    }
    assert_eq!(state.weights.values(), [0.5, -0.625, 0.0, -3.0]);
    penalize(&mut state, &[0, 1, 2, 3]);
    assert_eq!(state.weights.values(), [0.5, -0.5, 0.0, -2.5]);
    // A weight that comes back from 0 pays for its steps only.
    state.weights.values_mut()[2] = 1.0;
    state.pass.penalty += 0.125;
    penalize(&mut state, &[2]);
    assert!((state.weights.values()[2] - (1.0 - 0.625 + 0.2)).abs() < 1e-12);
}
