use super::*;
use crate::{Judge, columns, mert::ListWalker};
use luthier_core::{
    Weights,
    random::{Purpose, Stream},
};
use luthier_io::nbest::Rows;
use luthier_optim::Walker as _;

/// A random pool of three segments: up to four features on different scales, and a column `q` for metrics.
fn pool(seed: u64, metric: &Metric) -> Vec<Arc<Candidates>> {
    let mut s = Stream::new(seed, Purpose::Test, 0, 0);
    let mut rows = Rows::default();
    let words = ["u", "v", "w", "x", "y"];
    let features = 2 + s.below(3) as usize;
    let candidates = 3 + s.below(5);
    let mut references = Vec::new();
    for segment in 0..3 {
        let mut sentence =
            |n: u64| -> String { (0..n).map(|_| words[s.below(5) as usize]).collect::<Vec<_>>().join(" ") };
        references.push(vec![sentence(6)]);
        let texts: Vec<String> = (0..candidates).map(|k| sentence(4 + k % 4)).collect();
        for text in texts {
            let values: Vec<(&str, f64)> = ["a", "b", "c", "d"][..features]
                .iter()
                .zip([1.0, 100.0, 0.01, 1.0])
                .map(|(name, scale)| (*name, scale * s.normal()))
                .collect();
            rows.push(segment, &text, &values, &[("q", s.normal())]).unwrap();
        }
    }
    let references: Vec<Vec<&str>> =
        references.iter().map(|r| r.iter().map(String::as_str).collect()).collect();
    let judge = Judge::new(metric, &references, "ref.txt");
    let lists = crate::lists(&rows, &columns(&rows, None), Some(judge)).unwrap();
    lists.into_iter().map(Into::into).collect()
}

/// Highest score of all choices that a linear program with all constraints calls reachable.
fn brute_force(lists: &[Arc<Candidates>], metric: &Metric) -> f64 {
    let spread = spreads(lists);
    let mut best = f64::NEG_INFINITY;
    let mut choice = vec![0; lists.len()];
    loop {
        let mut totals = vec![0.0; metric.width()];
        let mut program = Problem::new(OptimizationDirection::Maximize);
        let w: Vec<Variable> = spread.iter().map(|_| program.add_var(0.0, (-1.0, 1.0))).collect();
        let margin = program.add_var(1.0, (-10.0, 1e6));
        for (list, &i) in lists.iter().zip(&choice) {
            add(&mut totals, list.stats_of(list.class[i]));
            for j in (0..list.k).filter(|&j| list.class[j] != list.class[i]) {
                let difference =
                    (0..spread.len()).map(|c| (w[c], (list.column(c)[i] - list.column(c)[j]) / spread[c]));
                let terms: Vec<(Variable, f64)> = difference.chain([(margin, -1.0)]).collect();
                program.add_constraint(&terms, ComparisonOp::Ge, 0.0);
            }
        }
        let score = metric.score(&totals);
        if score > best && program.solve().unwrap().into_solution().unwrap().objective() > MARGIN {
            best = score;
        }
        let Some(next) = (0..lists.len()).rfind(|&s| choice[s] + 1 < lists[s].k) else { return best };
        choice[next] += 1;
        choice[next + 1..].fill(0);
    }
}

fn metric(name: &str) -> Metric {
    name.parse().unwrap()
}

#[test]
fn certificates_agree_with_brute_force() {
    let metrics =
        [("bleu", 50), ("bleu:order=2,smooth=none", 10), ("ter", 10), ("wer", 10), ("column:q", 10)];
    for (name, pools) in metrics {
        let metric = metric(name);
        for seed in 0..pools {
            let lists = pool(seed, &metric);
            let best = brute_force(&lists, &metric);
            let limits = Limits::default();
            let proof = certify(&lists, &metric, f64::NEG_INFINITY, limits, Progress::NONE).unwrap();
            assert!(proof.optimal && proof.explored, "{name} {seed}: {proof:?}");
            assert!((proof.score - best).abs() < 1e-9, "{name} {seed}: {} instead of {best}", proof.score);
            assert_eq!(proof.bound, proof.score);
            let weights = proof.weights.unwrap();
            let reached = ListWalker::new(&lists, &metric, &Weights::default(), &weights).score();
            assert!((reached - best).abs() < 1e-9, "{name} {seed}: the weights reach {reached}, not {best}");
            // Told the optimum, it finds nothing better.
            let proof = certify(&lists, &metric, best, limits, Progress::NONE).unwrap();
            assert!(proof.optimal && proof.weights.is_none());
        }
    }
}

#[test]
fn bounds_are_never_below_the_optimum() {
    for name in ["bleu", "ter", "column:q"] {
        let metric = metric(name);
        for seed in 0..30 {
            let lists = pool(seed, &metric);
            let best =
                certify(&lists, &metric, f64::NEG_INFINITY, Limits::default(), Progress::NONE).unwrap().score;
            for programs in [0, 1, 3, 10, 30] {
                let limits = Limits { programs, ..Limits::default() };
                let found = certify(&lists, &metric, f64::NEG_INFINITY, limits, Progress::NONE).unwrap();
                assert!(found.bound >= best - 1e-9, "{name} {seed}: {} is below {best}", found.bound);
                assert!(found.score <= best + 1e-9);
                assert!(!found.optimal || (found.score - best).abs() < 1e-9);
            }
        }
    }
}

/// Of two candidates with the same features the first is chosen, whatever the weights.
#[test]
fn equal_features_are_decided_by_order() {
    let metric = metric("bleu");
    let mut rows = Rows::default();
    let texts = [["x y z u", "u v w x"], ["u v w x", "v u x y"]];
    for (segment, texts) in texts.iter().enumerate() {
        for (i, text) in texts.iter().enumerate() {
            let value = if segment == 0 { 1.0 } else { i as f64 };
            rows.push(segment as u32, text, &[("a", value)], &[]).unwrap();
        }
    }
    let references = [vec!["u v w x"], vec!["u v w x"]];
    let judge = Judge::new(&metric, &references, "ref.txt");
    let lists: Vec<Arc<Candidates>> = crate::lists(&rows, &columns(&rows, None), Some(judge))
        .unwrap()
        .into_iter()
        .map(Into::into)
        .collect();
    let score = |w: f64| ListWalker::new(&lists, &metric, &Weights::default(), &[w]).score();
    let best = score(1.0).max(score(-1.0));
    let proof = certify(&lists, &metric, 0.0, Limits::default(), Progress::NONE).unwrap();
    assert!(proof.optimal && (proof.score - best).abs() < 1e-9, "{proof:?}, expected {best}");
}

#[test]
fn metrics_without_bound_are_refused() {
    for (name, start) in
        [("chrf", "no bound is known for chrF2"), ("bleu:effective-order", "no bound is known for BLEU")]
    {
        let message = check_metric(&metric(name)).unwrap_err().to_string();
        assert!(message.starts_with(start), "{message}");
    }
}
