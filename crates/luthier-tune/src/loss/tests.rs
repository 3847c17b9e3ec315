//! Gradients of every loss against finite differences, and values against a direct implementation of the
//! definition.

#![expect(clippy::disallowed_methods, reason = "the functions of std serve as reference")]

use super::*;
use crate::{
    Candidate, Candidates,
    learner::{Loss, Minimize},
    pairs::{OracleBy, PairSource, Pairs, document_gains, gains},
};
use luthier_core::{
    FeatureKey, Local, Weights,
    random::{Purpose, Stream},
};
use luthier_metric::{Metric, Scratch, SentenceSmoothing};
use std::sync::Arc;

/// A pool with 3 dense and some sparse features, its references, and random weights.
struct Pool {
    lists: Vec<Arc<Candidates>>,
    references: Arc<Vec<Vec<String>>>,
    weights: Weights,
}

fn pool(seed: u32, metric: &Metric, segments: usize, k: usize) -> Pool {
    let mut s = Stream::new(5, Purpose::Test, 0, seed);
    let words = ["a", "b", "c", "d", "e"];
    let names: Vec<String> =
        ["x", "y", "z"].iter().map(|n| (*n).to_owned()).chain((0..12).map(|i| format!("s{i}"))).collect();
    let keys: Vec<FeatureKey> = names.iter().map(|n| FeatureKey::of(n)).collect();
    let columns = Arc::new(Local::new(keys[..3].to_vec()));
    let mut scratch = Scratch::default();
    let mut references = Vec::new();
    let mut lists = Vec::new();
    for segment in 0..segments {
        let mut text = |n: u64| (0..n).map(|_| words[s.below(5) as usize]).collect::<Vec<_>>().join(" ");
        let reference = vec![text(7), text(9)];
        // One segment has a single candidate, one has none.
        let k = match segment {
            1 => 1,
            2 => 0,
            _ => k,
        };
        let texts: Vec<String> = (0..k as u64).map(|i| text(4 + i % 6)).collect();
        let features: Vec<Vec<(FeatureKey, f64)>> = (0..k)
            .map(|_| {
                let sparse = keys[3..].iter().filter(|k| k.0 % 3 == s.below(3));
                let mut row: Vec<(FeatureKey, f64)> = sparse.map(|&k| (k, 1.0)).collect();
                row.extend(keys[..3].iter().map(|&k| (k, s.normal())));
                row
            })
            .collect();
        let candidates =
            texts.iter().zip(&features).map(|(text, features)| Candidate { text, features, columns: &[] });
        let mut list = Candidates::new(&columns, candidates, true);
        let parts: Vec<&str> = reference.iter().map(String::as_str).collect();
        list.judge(metric, &metric.prepare(&parts, &mut scratch), &mut scratch);
        references.push(reference);
        lists.push(Arc::new(list));
    }
    let mut weights = Weights::default();
    let find = |key| names.iter().find(|n| FeatureKey::of(n) == key).unwrap().clone();
    weights.commit(&Local::new(keys), &find).unwrap();
    let values: Vec<f64> = (0..weights.len()).map(|_| 0.5 * s.normal()).collect();
    weights.replace(&values);
    Pool { lists, references: Arc::new(references), weights }
}

fn minimize(metric: &Metric, loss: Loss) -> Minimize {
    Minimize { lambda: 0.3, gamma: vec![0.7], ..Minimize::new(metric.clone(), loss, 1) }
}

fn all_losses(pool: &Pool) -> Vec<(String, Loss)> {
    let mut all = vec![
        ("apro".to_owned(), Loss::Apro { c: 2.0, scale: AproScale::Candidates }),
        ("apro by pairs".to_owned(), Loss::Apro { c: 2.0, scale: AproScale::Pairs }),
        ("risk".to_owned(), Loss::Risk),
        ("softmax".to_owned(), Loss::Softmax { oracle: OracleBy::Corpus }),
        ("softmax, sentence".to_owned(), Loss::Softmax { oracle: OracleBy::Sentence }),
    ];
    let sources = [PairSource::Sampled, PairSource::Oracle, PairSource::All, PairSource::GoodBad];
    for source in sources {
        for margin in [Margin::Logistic, Margin::Hinge] {
            let pairs = Pairs {
                source,
                draw: 60,
                keep: 10,
                slice: 0.25,
                min_difference: 0.05,
                max_length_sigma: Some(2.0),
                seed: 3,
            };
            all.push((format!("pro {source:?} {margin:?}"), Loss::Pro { pairs, margin }));
        }
    }
    for clip in [Clip::Expected, Clip::Candidate, Clip::None] {
        for brevity in [Brevity::Exact, Brevity::Smooth, Brevity::None] {
            let references = Some(pool.references.clone());
            all.push((format!("xbleu {clip:?} {brevity:?}"), Loss::Xbleu { clip, brevity, references }));
        }
    }
    let (clip, brevity) = (Clip::Candidate, Brevity::Exact);
    all.push(("xbleu of statistics".to_owned(), Loss::Xbleu { clip, brevity, references: None }));
    all
}

#[test]
fn gradients_against_central_differences() {
    let metric: Metric = "bleu".parse().unwrap();
    for seed in 0..4 {
        let pool = pool(seed, &metric, 6, 12);
        for (name, loss) in all_losses(&pool) {
            let minimize = minimize(&metric, loss);
            let mut objective = minimize.objective(&pool.lists, &pool.weights, 0);
            let w = pool.weights.values().to_vec();
            let n = w.len();
            let (mut g, mut high, mut low) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
            let value = objective.evaluate(&w, &mut g);
            assert!(value.is_finite() && g.iter().any(|x| x.abs() > 1e-3), "{name}");
            for i in 0..n {
                let h = 1e-6;
                let (mut up, mut down) = (w.clone(), w.clone());
                up[i] += h;
                down[i] -= h;
                let slope =
                    (objective.evaluate(&up, &mut high) - objective.evaluate(&down, &mut low)) / (2.0 * h);
                assert!((slope - g[i]).abs() < 1e-6 * (1.0 + g[i].abs()), "{name} {i}: {slope} {}", g[i]);
            }
        }
    }
}

#[test]
fn products_with_the_hessian_against_differences_of_gradients() {
    let metric: Metric = "bleu".parse().unwrap();
    let pool = pool(9, &metric, 6, 12);
    let mut known = 0;
    for (name, loss) in all_losses(&pool) {
        let minimize = minimize(&metric, loss);
        let mut objective = minimize.objective(&pool.lists, &pool.weights, 0);
        let w = pool.weights.values().to_vec();
        let n = w.len();
        let v: Vec<f64> = (0..n).map(|i| ((i * 7 % 5) as f64 - 2.0) / 3.0).collect();
        let (mut product, mut high, mut low) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        objective.evaluate(&w, &mut high);
        if !objective.curve(&v, &mut product) {
            continue;
        }
        known += 1;
        let moved = |h: f64| w.iter().zip(&v).map(|(w, v)| w + h * v).collect::<Vec<_>>();
        objective.evaluate(&moved(1e-6), &mut high);
        objective.evaluate(&moved(-1e-6), &mut low);
        for i in 0..n {
            let slope = (high[i] - low[i]) / 2e-6;
            assert!(
                (slope - product[i]).abs() < 1e-5 * (1.0 + slope.abs()),
                "{name}: {slope} {}",
                product[i]
            );
        }
    }
    assert_eq!(known, 6); // APRO with both divisors, and logistic pairs from four sources
}

/// Value, gradient and Hessian product of all pairs by two nested loops.
#[test]
fn apro_against_all_pairs() {
    for round in 0..200u32 {
        let mut s = Stream::new(6, Purpose::Test, 1, round);
        let k = 1 + s.below(60) as usize;
        let spread = [0.01, 1.0, 10.0, 100.0][round as usize % 4];
        // Ties in model and sentence scores, and scores far from 0.
        let b: Vec<f64> = (0..k).map(|_| s.below(1 + u64::from(round % 20)) as f64).collect();
        let scores: Vec<f64> = (0..k).map(|_| spread * (s.below(30) as f64 / 15.0) - 300.0).collect();
        let v: Vec<f64> = (0..k).map(|_| s.normal()).collect();
        let (mut value, mut slope, mut product) = (0.0, vec![0.0; k], vec![0.0; k]);
        for i in 0..k {
            for j in 0..k {
                let gap = 1.0 - (scores[i] - scores[j]);
                if b[i] > b[j] && scores[i] - scores[j] < 1.0 {
                    value += gap * gap;
                    slope[i] -= 2.0 * gap;
                    slope[j] += 2.0 * gap;
                    product[i] += 2.0 * (v[i] - v[j]);
                    product[j] -= 2.0 * (v[i] - v[j]);
                }
            }
        }
        let loss = Apro::new(k as f64, AproScale::Candidates, std::slice::from_ref(&b));
        let (mut sums, mut d_sums) = ([0.0], [0.0]);
        let point = loss.forward(0, scores, &mut sums);
        let near = |x: f64, y: f64| assert!((x - y).abs() <= 1e-9 * (1.0 + y.abs()), "{x} {y} in {round}");
        near(loss.value(&sums, &mut d_sums), value);
        let (mut d, mut out) = (vec![0.0; k], vec![0.0; k]);
        loss.backward(0, &point, &d_sums, &mut d);
        assert!(loss.curve(0, &point, &d_sums, &v, &mut out));
        for i in 0..k {
            near(d[i], slope[i]);
            near(out[i], product[i]);
        }
    }
}

/// A list of texts with one indicator feature each.
fn indicators(metric: &Metric, reference: &str, texts: &[(&str, &str)]) -> Arc<Candidates> {
    let columns = Arc::new(Local::new(["fa", "fb", "fc", "fd"].iter().map(|n| FeatureKey::of(n)).collect()));
    let features: Vec<[(FeatureKey, f64); 1]> = texts.iter().map(|t| [(FeatureKey::of(t.0), 1.0)]).collect();
    let candidates =
        texts.iter().zip(&features).map(|(t, f)| Candidate { text: t.1, features: f, columns: &[] });
    let mut list = Candidates::new(&columns, candidates, true);
    let mut scratch = Scratch::default();
    list.judge(metric, &metric.prepare(&[reference], &mut scratch), &mut scratch);
    Arc::new(list)
}

/// Example from Travatar's tests, whose gradient is of BLEU; here it is of minus BLEU.
#[test]
fn xbleu_of_travatar() {
    let metric: Metric = "bleu".parse().unwrap();
    let four = [("fa", "a b"), ("fb", "a"), ("fc", "a b c"), ("fd", "c")];
    let check = |texts: &[(&str, &str)], weights: &str, expected: &[f64]| {
        let lists = [indicators(&metric, "a b", texts), indicators(&metric, "a b c d", &[("fa", "a b c d")])];
        let weights = Weights::parse("w", weights).unwrap();
        let references = Arc::new(vec![vec!["a b".to_owned()], vec!["a b c d".to_owned()]]);
        let xbleu =
            Loss::Xbleu { clip: Clip::Candidate, brevity: Brevity::Exact, references: Some(references) };
        let minimize = Minimize { lambda: 0.0, gamma: vec![1.0], ..minimize(&metric, xbleu) };
        let mut g = vec![0.0; 4];
        minimize.objective(&lists, &weights, 0).evaluate(weights.values(), &mut g);
        let names: Vec<&str> = weights.iter().map(|w| w.0).collect();
        for (i, e) in expected.iter().enumerate() {
            let at = names.iter().position(|n| *n == ["fa", "fb", "fc", "fd"][i]).unwrap();
            assert!((g[at] + e).abs() < 5e-8, "{}: {} {e}", names[at], -g[at]);
        }
        // The derivative with respect to γ: scores are γ·w·h.
        -luthier_optim::dot(&g, weights.values())
    };
    check(&four, "fa 0\nfb 0\nfc 0\nfd 0\n", &[0.0261355, -0.0163770, 0.0172520, -0.0270106]);
    let half = 0.5f64.ln();
    let by_gamma = check(
        &[("fa", "a b"), ("fb", "a"), ("fc", "c")],
        &format!("fa 0\nfb {half}\nfc {half}\nfd 0\n"),
        &[0.0506149, -0.0199352, -0.0306797],
    );
    assert!((by_gamma - 0.0350835).abs() < 5e-8, "{by_gamma}");
}

/// Expected clipping by its definition: E[count] of every n-gram, then the minimum.
#[test]
fn xbleu_by_definition() {
    let metric: Metric = "bleu:order=2".parse().unwrap();
    let list = indicators(&metric, "a a b", &[("fa", "a a a b"), ("fb", "b"), ("fc", "a b")]);
    let weights = Weights::parse("w", &format!("fa 0\nfb {}\nfc 0\nfd 0\n", 2f64.ln())).unwrap();
    // p = 1/4, 1/2, 1/4. a: 3/4 + 1/4 = 1 ≤ 2; b: 1 ≤ 1; aa: 2/4 ≤ 1; ab: 1/2 ≤ 1.
    let references = Arc::new(vec![vec!["a a b".to_owned()]]);
    let value = |clip, brevity| {
        let loss = Loss::Xbleu { clip, brevity, references: Some(references.clone()) };
        let minimize = Minimize { lambda: 0.0, gamma: vec![1.0], ..minimize(&metric, loss) };
        -minimize
            .objective(std::slice::from_ref(&list), &weights, 0)
            .evaluate(weights.values(), &mut [0.0; 4])
    };
    let totals = [4.0 / 4.0 + 1.0 / 2.0 + 2.0 / 4.0, 3.0 / 4.0 + 1.0 / 4.0];
    let expected = (2.0f64 / totals[0] * (1.0 / totals[1])).sqrt();
    assert!((value(Clip::Expected, Brevity::None) - expected).abs() < 1e-12);
    let brevity = (1.0 - 3.0 / totals[0]).exp();
    assert!((value(Clip::Expected, Brevity::Exact) - expected * brevity).abs() < 1e-12);
    // Clipped per candidate: `a` in `a a a` counts 2, `a a` counts 1.
    let candidate = ((2.0f64 + 1.0) / 4.0 + 0.5 + 2.0 / 4.0) / totals[0] * ((1.0 + 1.0) / 4.0 + 1.0 / 4.0);
    assert!((value(Clip::Candidate, Brevity::None) - candidate.sqrt()).abs() < 1e-12);
}

#[test]
fn a_metric_without_matches_has_a_floor() {
    let metric: Metric = "bleu".parse().unwrap();
    let list = indicators(&metric, "x", &[("fa", "a"), ("fb", "a b")]);
    let weights = Weights::parse("w", "fa 0\nfb 0\nfc 0\nfd 0\n").unwrap();
    let references = Some(Arc::new(vec![vec!["x".to_owned()]]));
    let loss = Loss::Xbleu { clip: Clip::Expected, brevity: Brevity::Exact, references };
    let mut g = [1.0; 4];
    let minimize = minimize(&metric, loss);
    let value = minimize.objective(&[list], &weights, 0).evaluate(weights.values(), &mut g);
    assert!(value.is_finite() && g.iter().all(|x| x.is_finite()));
}

/// Selected pairs against their definition.
#[test]
fn pairs_by_definition() {
    let metric: Metric = "bleu".parse().unwrap();
    let pool = pool(4, &metric, 5, 20);
    let gain = gains(&pool.lists, &metric, SentenceSmoothing::default());
    let choose = |source, max_length_sigma| {
        let pairs = Pairs {
            source,
            draw: 100_000,
            keep: 10,
            slice: 0.1,
            min_difference: 0.05,
            max_length_sigma,
            seed: 1,
        };
        pairs.choose(&pool.lists, &metric, (SentenceSmoothing::default(), &gain), 0)
    };
    let difference = |s: usize, (a, b): (u32, u32)| gain[s][a as usize] - gain[s][b as usize];
    let all = choose(PairSource::All, None);
    for (s, list) in pool.lists.iter().enumerate() {
        let expected = (0..list.k as u32)
            .flat_map(|a| (0..list.k as u32).map(move |b| (a, b)))
            .filter(|&p| difference(s, p) >= 0.05);
        assert_eq!(all[s], expected.collect::<Vec<_>>());
    }
    // With enough draws every pair is sampled, so that the kept pairs are the most different of all.
    let sampled = choose(PairSource::Sampled, None);
    for (s, kept) in sampled.iter().enumerate() {
        let most = all[s].iter().map(|&p| difference(s, p)).fold(0.0, f64::max);
        assert!(kept.len() <= 10 && (kept.is_empty() || difference(s, kept[0]) == most));
        assert!(kept.windows(2).all(|w| difference(s, w[0]) >= difference(s, w[1])));
    }
    let short = choose(PairSource::All, Some(0.5));
    for (s, list) in pool.lists.iter().enumerate() {
        let words = |i: u32| list.text(i as usize).split(' ').count().abs_diff(0);
        assert!(short[s].iter().all(|&(a, b)| words(a).abs_diff(words(b)) <= 2));
        assert!(short[s].len() <= all[s].len());
    }
    assert!(choose(PairSource::Oracle, None).iter().all(|p| p.len() < 400));
    for (s, pairs) in choose(PairSource::GoodBad, None).iter().enumerate() {
        let most = gain[s].iter().copied().fold(0.0, f64::max);
        assert!(pairs.iter().all(|p| gain[s][p.0 as usize] >= most - 0.5) && pairs.len() <= 4);
    }
}

/// Gains in the document against the score of the whole output with one candidate replaced, where the rest of the output
/// has the references' length.
#[test]
fn document_gains_by_definition() {
    let metric: Metric = "bleu:order=2".parse().unwrap();
    let pool = pool(6, &metric, 5, 8);
    let best: Vec<usize> = (0..pool.lists.len()).map(|s| s % pool.lists[s].k.max(1)).collect();
    // Statistics of BLEU: matches of two orders, n-grams of two orders, length of the reference.
    let (words, reference) = (2, 4);
    let score = |s: usize, i: usize| {
        let mut total = vec![0.0; metric.width()];
        for (t, list) in pool.lists.iter().enumerate().filter(|l| l.1.k > 0 && l.0 != s) {
            luthier_metric::add(&mut total, list.stats_of(list.class[best[t]]));
        }
        total[reference] = total[words];
        luthier_metric::add(&mut total, pool.lists[s].stats_of(pool.lists[s].class[i]));
        metric.score(&total) / 100.0
    };
    let gain = document_gains(&pool.lists, &best, &metric);
    for (s, list) in pool.lists.iter().enumerate() {
        assert_eq!(gain[s].len(), list.k);
        for (i, found) in gain[s].iter().enumerate() {
            let expected = (score(s, i) - score(s, best[s])) * pool.lists.len() as f64;
            assert!((found - expected).abs() < 1e-9, "{s} {i}: {found} {expected}");
        }
    }
}

/// APRO by pairs is C times the mean over segments with pairs of the mean over pairs; segments whose candidates all tie do
/// not count.
#[test]
fn apro_is_a_mean_over_segments_with_pairs() {
    let gain = vec![vec![0.1, 0.5, 0.3], vec![0.4, 0.4], vec![0.2, 0.9]];
    let scores = [vec![0.3, -0.2, 0.1], vec![2.0, -1.0], vec![0.7, 0.4]];
    let loss = Apro::new(3.0, AproScale::Pairs, &gain);
    let (mut expected, mut segments) = (0.0, 0.0);
    for (gain, scores) in gain.iter().zip(&scores) {
        let (mut sum, mut pairs) = (0.0, 0.0);
        for i in 0..gain.len() {
            for j in (0..gain.len()).filter(|&j| gain[i] > gain[j]) {
                sum += f64::powi(f64::max(0.0, 1.0 - scores[i] + scores[j]), 2);
                pairs += 1.0;
            }
        }
        if pairs > 0.0 {
            expected += sum / pairs;
            segments += 1.0;
        }
    }
    let (mut sums, mut d_sums) = ([0.0], [0.0]);
    for (s, scores) in scores.iter().enumerate() {
        loss.forward(s, scores.clone(), &mut sums);
    }
    let total = loss.value(&sums, &mut d_sums);
    assert!((total - 3.0 * expected / segments).abs() < 1e-12, "{total} {expected}");
}
