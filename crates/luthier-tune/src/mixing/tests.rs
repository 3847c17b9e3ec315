use super::*;
use crate::{Candidate, fleet::tests::play};
use luthier_core::{
    Local,
    random::{Purpose, Stream},
};

/// Features and statistics of a candidate.
type Row = (Vec<(FeatureKey, f64)>, Vec<f64>);

/// Random lists with two dense and two sparse features.
fn lists(s: &mut Stream, metric: &Metric) -> Vec<Arc<Candidates>> {
    let columns = Arc::new(Local::new(vec![FeatureKey::of("a"), FeatureKey::of("b")]));
    (0..12)
        .map(|_| {
            let rows: Vec<Row> = (0..10)
                .map(|_| {
                    let names = ["a", "b", "s", "t"];
                    let f = names.iter().map(|n| (FeatureKey::of(n), s.uniform(-1.0, 1.0))).collect();
                    let matched = 1.0 + s.below(6) as f64;
                    let stats = vec![matched, (matched - 1.0).max(0.0), 7.0, 6.0, 7.0];
                    (f, stats)
                })
                .collect();
            let texts: Vec<String> = (0..10).map(|i| i.to_string()).collect();
            let all = rows.iter().zip(&texts);
            let mut list = Candidates::new(
                &columns,
                all.map(|(r, t)| Candidate { text: t, features: &r.0, columns: &r.1 }),
                true,
            );
            list.judge_given(metric.width());
            Arc::new(list)
        })
        .collect()
}

fn score(lists: &[Arc<Candidates>], metric: &Metric, weights: &Weights) -> f64 {
    let mut total = vec![0.0; metric.width()];
    for list in lists {
        let score = |i: usize| list.features(i).map(|(k, v)| v * weights.get(k)).sum::<f64>();
        let best = (1..list.k).fold(0, |b, i| if score(i) > score(b) { i } else { b });
        for (t, x) in total.iter_mut().zip(list.stats_of(list.class[best])) {
            *t += f64::from(*x);
        }
    }
    metric.score(&total)
}

#[test]
fn line_search_is_never_worse_than_either_end() {
    let metric: Metric = "bleu:order=2".parse().unwrap();
    let (mut elsewhere, mut beyond) = (0, 0);
    for seed in 0..200 {
        let mut s = Stream::new(seed, Purpose::Test, 0, 0);
        let lists = lists(&mut s, &metric);
        let weights = |s: &mut Stream| {
            let text: String =
                ["a", "b", "s", "t"].iter().map(|n| format!("{n} {}\n", s.uniform(-1.0, 1.0))).collect();
            Weights::parse("w", &text).unwrap()
        };
        let (start, mean) = (weights(&mut s), weights(&mut s));
        // The same lists in one shard, and in three.
        let sharded: Vec<Vec<Arc<Candidates>>> =
            if seed % 2 == 0 { vec![lists.clone()] } else { lists.chunks(5).map(<[_]>::to_vec).collect() };
        let (mixed, rho) =
            mix((Mixing::LineSearch, (-1.0, 2.0)), &start, &mean, &sharded, &metric, Fleet::ALONE).unwrap();
        assert!((-1.0..=2.0).contains(&rho));
        let reached = score(&lists, &metric, &mixed);
        assert!(
            reached >= score(&lists, &metric, &start) && reached >= score(&lists, &metric, &mean),
            "{seed}"
        );
        for (m, (a, b)) in mixed.values().iter().zip(start.values().iter().zip(mean.values())) {
            assert!((m - ((1.0 - rho) * a + rho * b)).abs() < 1e-12);
        }
        // A grid finds nothing better.
        for step in -100..=200 {
            let at = f64::from(step) / 100.0;
            let values = start.values().iter().zip(mean.values()).map(|(a, b)| (1.0 - at) * a + at * b);
            let there = score(&lists, &metric, &start.with_values(values.collect()));
            assert!(there <= reached + 1e-9, "{seed} {at}: {there} {reached}");
        }
        elsewhere += usize::from(rho != 1.0);
        beyond += usize::from(!(0.0..=1.0).contains(&rho));
        let none = start.with_values(vec![0.0; 4]);
        let other =
            |mixing, from| mix((mixing, (-1.0, 2.0)), from, &mean, &sharded, &metric, Fleet::ALONE).unwrap();
        assert_eq!(other(Mixing::LineSearch, &none).1, 1.0);
        assert_eq!(other(Mixing::Average, &start), (mean.clone(), 1.0));
    }
    assert!(elsewhere > 50 && beyond > 10, "{elsewhere} {beyond}");
}

#[test]
fn means_know_the_features_of_all_shards() {
    let start = Weights::parse("w", "a 1\n").unwrap();
    let shard = |text: &str, visits: u64, lag: &[f64]| {
        let mut state = State::new(Weights::parse("w", text).unwrap());
        state.pass.visits = visits;
        state.pass.lag = lag.to_vec();
        Moved::new(&start, &state, true)
    };
    let shards = [shard("a 2\nx 4\n", 4, &[2.0, 4.0]), shard("a 4\ny 6\nx 2\n", 2, &[0.0, 1.0])];
    for size in [1, 2, 3] {
        let means = play(size, |fleet| {
            let mine = fleet.mine(2);
            mean(&start, &shards[mine.start as usize..mine.end as usize], fleet).unwrap()
        });
        for mean in means {
            let mut found: Vec<_> = mean.weights.iter().zip(mean.visited).collect();
            assert_eq!(found[0], (("a", 3.0), 2.75));
            found.sort_by_key(|f| f.0.0);
            assert_eq!(found[1..], [(("x", 3.0), 2.5), (("y", 3.0), 2.75)]);
        }
    }
}
