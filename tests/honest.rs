//! Held-out scores, bootstrap intervals and L1 penalties on generated lists whose truth is known.
//!
//! A list has ten candidates with ten features, N(0, 1) each. The judgement of a candidate is h·w* plus noise, with w* = (1,
//! −0.5, 0.25, 0, …, 0): three features matter. The true score of weights is the mean judgement of the candidates that they
//! choose from fresh lists.

use luthier::{
    Apro, Mert, NBest, Pro, Recipe, Softmax, Weights,
    core::{
        FeatureKey,
        random::{Purpose, Stream},
    },
    tune,
    tune::{
        Stability,
        recipe::{Fit, L1Setting, Oro, Soft},
    },
};

const TRUTH: [f64; 10] = [1.0, -0.5, 0.25, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
const LISTS: u32 = 100;
const CANDIDATES: usize = 10;
const FRESH: usize = 20_000;
/// Scale of the noise of a judgement.
const NOISE: f64 = 0.4;

fn names() -> Vec<String> {
    (0..TRUTH.len()).map(|i| format!("f{i}")).collect()
}

/// Draws features and judgement of a candidate. Gumbel noise makes the choice of the best candidate a softmax.
fn candidate(stream: &mut Stream, noise: f64) -> (Vec<f64>, f64) {
    let h: Vec<f64> = TRUTH.iter().map(|_| stream.normal()).collect();
    let gumbel = -luthier::core::math::ln(-luthier::core::math::ln(stream.uniform(1e-12, 1.0)));
    let y = h.iter().zip(TRUTH).map(|(h, w)| h * w).sum::<f64>() + noise * gumbel;
    (h, y)
}

fn lists(seed: u64) -> NBest {
    let mut stream = Stream::new(seed, Purpose::Test, 0, 0);
    let names = names();
    let mut lists = NBest::default();
    for segment in 0..LISTS {
        for c in 0..CANDIDATES {
            let (h, y) = candidate(&mut stream, NOISE);
            let features: Vec<(&str, f64)> = names.iter().map(String::as_str).zip(h).collect();
            lists.push(segment, &c.to_string(), &features, &[("y", y)]).expect("a candidate");
        }
    }
    lists
}

/// Mean judgement, without its noise, of the candidates that weights choose from fresh lists; the noise has mean 0.5772 times its scale.
struct Fresh(Vec<Vec<(Vec<f64>, f64)>>);

impl Fresh {
    fn new() -> Self {
        let mut stream = Stream::new(99, Purpose::Test, 1, 0);
        let list = |_| (0..CANDIDATES).map(|_| candidate(&mut stream, 0.0)).collect();
        Fresh((0..FRESH).map(list).collect())
    }

    fn score(&self, weights: &Weights) -> f64 {
        let w: Vec<f64> = names().iter().map(|n| weights.get(FeatureKey::of(n))).collect();
        let value = |h: &[f64]| h.iter().zip(&w).map(|(h, w)| h * w).sum::<f64>();
        let best = |list: &Vec<(Vec<f64>, f64)>| {
            list.iter().max_by(|a, b| value(&a.0).total_cmp(&value(&b.0))).map_or(0.0, |c| c.1)
        };
        self.0.iter().map(best).sum::<f64>() / self.0.len() as f64 + NOISE * 0.577_215_664_9
    }
}

/// Mean and standard error.
fn mean(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

fn seeds() -> std::ops::Range<u64> {
    0..50
}

#[test]
fn held_out_scores_are_unbiased_and_tuning_scores_are_not() {
    let fresh = Fresh::new();
    let recipe = Recipe::Mert(Mert { budget: Some(400), ..Mert::default() });
    let (mut held, mut tuned, mut folds) = (Vec::new(), Vec::new(), Vec::new());
    for seed in seeds() {
        let lists = lists(seed);
        let fit = || tune(&lists, &recipe).metric("column:y").unwrap().seed(seed);
        let part = fit().hold_out(0.3).run().unwrap();
        let truth = fresh.score(&part.weights);
        held.push(part.held_out.unwrap().score - truth);
        tuned.push(part.score - truth);
        let at = tempfile::tempdir().unwrap();
        let whole = fit().folds(5).run_dir(at.path().join("run")).run().unwrap();
        let weights = (0..5).map(|k| {
            let path = tune::RunView::fold_path(&at.path().join("run"), k);
            tune::RunView::open(&path).unwrap().best_weights().unwrap()
        });
        let truth = weights.map(|w| fresh.score(&w)).sum::<f64>() / 5.0;
        folds.push(whole.held_out.unwrap().score - truth);
    }
    for (name, values) in [("held out", &held), ("folds", &folds), ("tuning", &tuned)] {
        let (mean, error) = mean(values);
        println!("{name}: mean of score − true score {mean:.4}, standard error {error:.4}");
        let far = mean / error;
        assert!(if name == "tuning" { far > 3.0 } else { far.abs() < 2.0 }, "{name} {mean} {error}");
    }
}

/// Number of the nine ratios that an interval covers.
fn covered(found: &Stability) -> usize {
    let of = |name: &str| found.features.iter().find(|f| f.name == name).expect("a feature of the lists");
    let anchor: usize = found.anchor[1..].parse().expect("a name with a number");
    let inside = |i: usize| {
        let truth = TRUTH[i] / TRUTH[anchor].abs();
        let f = of(&format!("f{i}"));
        f.low <= truth && truth <= f.high
    };
    (0..10).filter(|&i| i != anchor).filter(|&i| inside(i)).count()
}

#[test]
fn bootstrap_intervals_cover_the_truth() {
    let recipes = [
        (Recipe::Softmax(Softmax::default()), 0.85),
        (Recipe::Pro(Pro { draw: 500, ..Pro::default() }), 0.85),
        (Recipe::Mert(Mert { budget: Some(300), ..Mert::default() }), 0.0),
    ];
    for (recipe, least) in recipes {
        let mut inside = 0;
        for seed in seeds() {
            let lists = lists(seed);
            let fit =
                tune(&lists, &recipe).metric("column:y").unwrap().seed(seed).bootstrap(100).run().unwrap();
            let found = fit.stability.unwrap();
            assert_eq!(found.confidence, recipe.info().name != "mert");
            inside += covered(&found);
        }
        let share = inside as f64 / (9.0 * 50.0);
        println!("{}: {:.1} % of the intervals cover the truth", recipe.info().name, 100.0 * share);
        assert!(share >= least, "{share}");
    }
}

#[test]
fn an_l1_penalty_keeps_real_features_and_drops_noise() {
    let fit = || Fit { l1: Some(L1Setting(None)), ..Fit::default() };
    let recipes = [
        Recipe::Softmax(Softmax { soft: Soft { fit: fit(), ..Soft::default() }, ..Softmax::default() }),
        // A list of ten has 45 pairs. With the default of 5,000 draws, the 50 pairs that are kept are copies of the most
        // different one, and the smallest of the real features is often dropped.
        Recipe::Pro(Pro { draw: 50, fit: fit(), ..Pro::default() }),
        Recipe::Apro(Apro { fit: fit(), ..Apro::default() }),
        // For online learning the value has to be given; 0.3 drops more, and the weakest real feature in 3 of 50 trials.
        Recipe::Oro(Oro { l1: Some(0.2), ..Oro::default() }),
    ];
    for recipe in recipes {
        let (mut kept, mut dropped) = (0, 0);
        for seed in seeds() {
            let lists = lists(seed);
            let fit = tune(&lists, &recipe).metric("column:y").unwrap().seed(seed).run().unwrap();
            let w = |i: usize| fit.weights.get(FeatureKey::of(&format!("f{i}")));
            kept += usize::from((0..3).all(|i| w(i) * TRUTH[i] > 0.0));
            dropped += (3..10).filter(|&i| w(i) == 0.0).count();
        }
        let dropped = dropped as f64 / 50.0;
        println!("{}: kept in {kept} of 50, {dropped:.2} of 7 dropped", recipe.info().name);
        let least = if recipe.info().name == "oro" { 5.0 } else { 6.0 };
        assert!(kept == 50 && dropped >= least, "{} {kept} {dropped}", recipe.info().name);
    }
}
