//! Losses and line searches over a forest equal those over the list of all its derivations.

use crate::{
    Candidate, Candidates, Evidence, FeatureMatrix, ForestPool, Learner, SegmentForests, State,
    fleet::{Fleet, tests::play},
    forest_oracle::{Aim, Only},
    learner::{HopeFear, Loss, Minimize},
    loss::{Brevity, Clip, OnForests, Regularized, Softmax, Xbleu},
    mert::{ForestWalker, ListWalker},
};
use luthier_core::{
    FeatureKey, Local, Weights,
    random::{Purpose, Stream},
};
use luthier_forest::{Builder, Forest, KBest, NONE, TAILS, rescore};
use luthier_metric::{Bleu, Metric, Scratch, SentenceSmoothing};
use luthier_optim::{Direction, Objective, Walker};
use std::sync::Arc;

const NAMES: [&str; 3] = ["x", "y", "z"];
const WORDS: [&str; 5] = ["a", "b", "c", "d", "e"];
/// Maximum number of derivations of a forest.
const MOST: usize = 400;

fn forest(stream: &mut Stream) -> Forest<'static> {
    let names = NAMES.iter().copied().chain(["untuned"]);
    let local = Arc::new(Local::new(names.map(FeatureKey::of).collect()));
    let place = |name: &str| local.position(FeatureKey::of(name)).unwrap() as u32;
    loop {
        let mut builder = Builder::default();
        for node in 0..3 + stream.below(3) as u32 {
            for _ in 0..=stream.below(3) {
                let arity = if node == 0 { 0 } else { stream.below(3) as usize };
                let mut tails = [NONE; 2];
                for t in tails.iter_mut().take(arity) {
                    *t = stream.below(node.into()) as u32;
                }
                let mut target: Vec<u32> = (0..stream.below(3)).map(|_| stream.below(5) as u32).collect();
                for &tail in TAILS.iter().take(arity) {
                    target.insert(stream.below(target.len() as u64 + 1) as usize, tail);
                }
                let value = |s: &mut Stream| s.uniform(-1.0, 1.0) as f32;
                let rule: Vec<(u32, f32)> = NAMES[..2].iter().map(|n| (place(n), value(stream))).collect();
                // Values whose sums are exact in single precision.
                let untuned = stream.below(129) as f32 / 64.0 - 1.0;
                let own = [(place("z"), value(stream)), (place("untuned"), untuned)];
                let rule = builder.rule(target, &rule);
                builder.edge(tails, rule, &own);
            }
            builder.node();
        }
        let words = Arc::new(WORDS.iter().map(ToString::to_string).collect());
        let made = builder.finish(local.clone(), words).filtered(|_| true);
        let n = KBest::new(&made, &vec![0.0; made.edges()], false).take(MOST).count();
        if (2..MOST).contains(&n) {
            return made;
        }
    }
}

fn reference(stream: &mut Stream) -> String {
    let word = |s: &mut Stream| WORDS[s.below(4) as usize];
    (0..3 + stream.below(4)).map(|_| word(stream)).collect::<Vec<_>>().join(" ")
}

/// Weight of the feature that is not tuned.
const UNTUNED: f64 = 0.7;

/// Forests of some segments, and lists of all their derivations. The feature that is not tuned is sparse in the
/// lists.
fn both(
    stream: &mut Stream,
    metric: &Metric,
    segments: usize,
    forests: usize,
) -> (ForestPool, Vec<Arc<Candidates>>) {
    let (pool, lists, _) = both_with(stream, metric, segments, forests);
    (pool, lists)
}

type With = (ForestPool, Vec<Arc<Candidates>>, Vec<Vec<String>>);

fn both_with(stream: &mut Stream, metric: &Metric, segments: usize, forests: usize) -> With {
    let columns = Arc::new(Local::new(NAMES.iter().map(|n| FeatureKey::of(n)).collect()));
    let mut pool = ForestPool {
        columns: columns.clone(),
        fixed: [(FeatureKey::of("untuned"), UNTUNED)].into(),
        segments: Vec::new(),
    };
    let (mut lists, mut texts) = (Vec::new(), Vec::new());
    let mut scratch = Scratch::default();
    for _ in 0..segments {
        let own = vec![reference(stream), reference(stream)];
        let references: Vec<&str> = own.iter().map(String::as_str).collect();
        let prepared = Arc::new(metric.prepare(&references, &mut scratch));
        let forests: Vec<Arc<Forest<'static>>> = (0..forests).map(|_| Arc::new(forest(stream))).collect();
        let mut rows: Vec<(String, Vec<(FeatureKey, f64)>)> = Vec::new();
        for forest in &forests {
            for d in KBest::new(forest, &vec![0.0; forest.edges()], false) {
                let mut sums = Vec::new();
                forest.sum_features(&d.edges, &mut sums);
                let features = forest.local.keys().iter().copied().zip(sums).collect();
                rows.push((forest.text(&d.words), features));
            }
        }
        let candidates = rows.iter().map(|(text, features)| Candidate { text, features, columns: &[] });
        let mut list = Candidates::new(&columns, candidates, false);
        list.judge(metric, &prepared, &mut scratch);
        lists.push(Arc::new(list));
        pool.segments.push(SegmentForests { forests, references: prepared });
        texts.push(own);
    }
    (pool, lists, texts)
}

fn weights(stream: &mut Stream) -> Weights {
    let text: String = NAMES.iter().map(|n| format!("{n} {}\n", stream.uniform(-1.0, 1.0))).collect();
    Weights::parse("w", &format!("{text}untuned {UNTUNED}\n")).unwrap()
}

#[test]
fn surfaces_of_forests_are_those_of_all_derivations() {
    let mut plateaus = 0;
    for (round, name) in ["bleu:order=2", "chrf", "ter", "bleu"].iter().cycle().take(120).enumerate() {
        let metric: Metric = name.parse().unwrap();
        let mut stream = Stream::new(11, Purpose::Test, 0, round as u32);
        let (pool, lists) = both(&mut stream, &metric, 3, 1 + round % 2);
        let w = weights(&mut stream);
        let mut point = Vec::new();
        w.gather(&pool.columns, &mut point);
        let d: Vec<f64> = (0..3).map(|_| stream.normal()).collect();
        let mut on_forests = ForestWalker::new(&pool, &metric, &w, &point);
        let mut on_lists = ListWalker::new(&lists, &metric, &w, &point);
        assert!((on_forests.score() - on_lists.score()).abs() < 1e-9, "{round}");
        for direction in [Direction::Axis(0), Direction::Axis(2), Direction::Vector(&d)] {
            let a = on_forests.surface(direction).clone();
            let b = on_lists.surface(direction).clone();
            assert_eq!(a.bounds.len(), b.bounds.len(), "{round}");
            for (x, y) in a.bounds.iter().chain(&a.scores).zip(b.bounds.iter().chain(&b.scores)) {
                assert!((x - y).abs() < 1e-6 * (1.0 + y.abs()), "{round}: {x} {y}");
            }
            let within = (f64::NEG_INFINITY, f64::INFINITY);
            let (p, q) = (on_forests.peak(direction, within), on_lists.peak(direction, within));
            assert!((p.gain - q.gain).abs() < 1e-9 && (p.step - q.step).abs() < 1e-6 * (1.0 + q.step.abs()));
            on_forests.step(direction, p.step);
            on_lists.step(direction, p.step);
            assert!((on_forests.score() - on_lists.score()).abs() < 1e-9, "{round}");
            plateaus += a.scores.len();
        }
    }
    assert!(plateaus > 1000, "{plateaus}");
}

/// Compares values and gradients of two functions at some points, with a relative tolerance of 1e-9.
fn same(a: &mut dyn Objective, b: &mut dyn Objective, stream: &mut Stream) {
    for _ in 0..3 {
        let mut w: Vec<f64> = (0..3).map(|_| stream.uniform(-1.5, 1.5)).collect();
        w.push(UNTUNED);
        let (mut ga, mut gb) = (vec![0.0; 4], vec![0.0; 4]);
        let (x, y) = (a.evaluate(&w, &mut ga), b.evaluate(&w, &mut gb));
        assert!((x - y).abs() < 1e-9 * (1.0 + y.abs()), "{x} {y}");
        for (x, y) in ga.iter().zip(&gb).take(3) {
            assert!((x - y).abs() < 1e-9 * (1.0 + y.abs()), "{ga:?} {gb:?}");
        }
    }
}

#[test]
fn expected_bleu_of_forests_is_that_of_all_derivations() {
    for round in 0..40u32 {
        let mut stream = Stream::new(12, Purpose::Test, 0, round);
        let bleu = Bleu { order: 1 + round as usize % 4, ..Bleu::default() };
        let metric = Metric::Bleu(bleu.clone());
        let (pool, lists, references) = both_with(&mut stream, &metric, 4, 1);
        let w = weights(&mut stream);
        for clip in [Clip::Expected, Clip::None] {
            for brevity in [Brevity::Exact, Brevity::Smooth, Brevity::None] {
                let mut a = OnForests::xbleu(&pool, &bleu, (clip, brevity), &w, (1.3, 0.01), Fleet::ALONE);
                let list_loss = Xbleu::new(1.3, &bleu, clip, brevity, lists.clone(), Some(&references));
                let design = Arc::new(FeatureMatrix::new(lists.clone(), &w));
                same(&mut a, &mut Regularized::new(design, list_loss, 0.01, Fleet::ALONE), &mut stream);
            }
        }
    }
}

#[test]
fn likelihood_in_forests_is_that_of_all_derivations() {
    for round in 0..40u32 {
        let mut stream = Stream::new(13, Purpose::Test, 0, round);
        let metric: Metric = "bleu".parse().unwrap();
        let (pool, lists) = both(&mut stream, &metric, 4, 1);
        let w = weights(&mut stream);
        let texts: Vec<String> =
            lists.iter().map(|l| l.text(stream.below(l.k as u64) as usize).to_owned()).collect();
        let oracle =
            lists.iter().zip(&texts).map(|(l, t)| (0..l.k).map(|i| l.text(i) == t).collect()).collect();
        let words: Vec<Vec<u32>> = texts
            .iter()
            .map(|t| {
                let number = |w: &str| WORDS.iter().position(|x| *x == w).unwrap() as u32;
                t.split_whitespace().map(number).collect()
            })
            .collect();
        let mut a = OnForests::towards(&pool, &words, &w, (0.7, 0.01), Fleet::ALONE);
        let design = Arc::new(FeatureMatrix::new(lists.clone(), &w));
        same(
            &mut a,
            &mut Regularized::new(design, Softmax { gamma: 0.7, oracle }, 0.01, Fleet::ALONE),
            &mut stream,
        );
        // The sub-forest has exactly the derivations of the oracle.
        for (s, only) in words.iter().enumerate() {
            let forest = &pool.segments[s].forests[0];
            let found = rescore(forest, &Only(only), &vec![0.0; forest.edges()], None);
            let n = KBest::new(&found, &vec![0.0; found.edges()], false).count();
            assert_eq!(n, (0..lists[s].k).filter(|&i| lists[s].text(i) == texts[s]).count());
        }
    }
}

/// Hope, fear and oracles: with a large pop limit, the search finds the best of all derivations.
#[test]
fn hope_fear_and_oracles_are_the_best_of_all_derivations() {
    for round in 0..60u32 {
        let mut stream = Stream::new(14, Purpose::Test, 0, round);
        let bleu = Bleu { order: 2 + round as usize % 3, ..Bleu::default() };
        let metric = Metric::Bleu(bleu.clone());
        let (pool, lists) = both(&mut stream, &metric, 1, 1);
        let (segment, list) = (&pool.segments[0], &lists[0]);
        let forest = &segment.forests[0];
        let w = weights(&mut stream);
        let local = pool.local(forest, &w);
        let sign = if round % 2 == 0 { 3.0 } else { -3.0 };
        let gain = |stats: &[f32]| sign * metric.sentence_score(stats, SentenceSmoothing::default());
        // Matches are not clipped here, as in the search.
        let n = bleu.order;
        let mut scratch = Scratch::default();
        let limits = Bleu::ngram_limits(&segment.references);
        let worth = |i: usize, scratch: &mut Scratch| {
            let mut stats = list.stats_of(list.class[i]).to_vec();
            let mut grams = Vec::new();
            bleu.ngrams(&segment.references, list.text(i), scratch, &mut grams);
            for (k, stat) in stats.iter_mut().enumerate().take(n) {
                *stat = grams.iter().filter(|g| limits[**g as usize].0 == k + 1).count() as f32;
            }
            gain(&stats)
        };
        let mut dense = Vec::new();
        let keys = forest.local.keys();
        let weight = |key: &FeatureKey| local[keys.iter().position(|k| k == key).unwrap()];
        dense.extend(pool.columns.keys().iter().map(weight));
        let mut scores = vec![0.0; list.k];
        list.scores(&dense, &w, &mut scores);
        let best = (0..list.k).map(|i| scores[i] + worth(i, &mut scratch)).fold(f64::MIN, f64::max);
        let aim = Aim::new(forest, &bleu, &segment.references, &gain);
        let found = aim.best(forest, &local, 1, usize::MAX).pop().unwrap();
        let model: f64 = found.features.iter().zip(&local).map(|(x, w)| x * w).sum();
        let text = forest.text(&found.words);
        let at = (0..list.k).find(|&i| list.text(i) == text).unwrap();
        assert!((model + worth(at, &mut scratch) - best).abs() < 1e-4, "{round}");
    }
}

/// All learners on forests give the same weights, bit for bit, on any number of threads and processes.
#[test]
fn learners_do_not_depend_on_threads_and_processes() {
    let metric: Metric = "bleu:order=2".parse().unwrap();
    let mut stream = Stream::new(15, Purpose::Test, 0, 0);
    let (pool, _) = both(&mut stream, &metric, 12, 1);
    let start = weights(&mut stream);
    let soft = |loss| Minimize {
        limit: luthier_optim::Limit { tolerance: 1e-4, steps: 20 },
        ..Minimize::new(metric.clone(), loss, 1)
    };
    let xbleu = Loss::Xbleu { clip: Clip::Expected, brevity: Brevity::Smooth, references: None };
    let learners: Vec<Box<dyn Learner>> = vec![
        Box::new(crate::mert::LineSearch {
            restarts: 3,
            random_directions: 2,
            ..crate::mert::LineSearch::new(metric.clone(), 1)
        }),
        Box::new(soft(xbleu)),
        Box::new(soft(Loss::Softmax { oracle: crate::pairs::OracleBy::Corpus })),
        Box::new(soft(Loss::Softmax { oracle: crate::pairs::OracleBy::Sentence })),
        Box::new(HopeFear { epochs: 3, ..HopeFear::new(metric.clone(), 1) }),
        Box::new(HopeFear {
            epochs: 2,
            safe_hope: true,
            model_background: true,
            ..HopeFear::new(metric.clone(), 1)
        }),
    ];
    for (k, learner) in learners.iter().enumerate() {
        let learned = |fleet: Fleet<'_>| {
            let mut state = State::new(start.clone());
            learner
                .learn(&Evidence::Forests(pool.clone()), &mut state, &fleet, luthier_core::Progress::NONE)
                .unwrap();
            state.weights
        };
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| learned(Fleet::ALONE))
        };
        let one = run(1);
        assert_eq!(one, run(3), "learner {k}");
        for size in [2, 5] {
            assert!(play(size, learned).iter().all(|w| *w == one), "learner {k}, {size} processes");
        }
        let before = pool.best_totals(&start, &metric);
        let after = pool.best_totals(&one, &metric);
        assert!(k > 0 || metric.score(&after) >= metric.score(&before));
        assert!(one.values().iter().all(|w| w.is_finite()));
    }
}
