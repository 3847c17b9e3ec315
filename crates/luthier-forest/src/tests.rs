#![expect(clippy::disallowed_methods, reason = "the functions of std serve as reference")]

use super::*;
use luthier_core::{
    FeatureKey, Local,
    random::{Purpose, Stream},
};
use luthier_io::Input;
use std::{collections::BTreeMap, io::Cursor, sync::Arc};

/// A small random forest over three words and three features, and random weights.
pub(crate) fn random(seed: u64) -> (Forest<'static>, Vec<f64>) {
    let mut s = Stream::new(seed, Purpose::Test, 0, 0);
    let names = ["a", "b", "c"];
    let local = Arc::new(Local::new(names.iter().map(|n| FeatureKey::of(n)).collect()));
    let mut builder = Builder::default();
    for node in 0..2 + s.below(4) as u32 {
        for _ in 0..=s.below(3) {
            let arity = if node == 0 { 0 } else { s.below(3) as usize };
            let mut tails = [NONE; 2];
            for t in tails.iter_mut().take(arity) {
                *t = s.below(node.into()) as u32;
            }
            let mut target: Vec<u32> = (0..s.below(3)).map(|_| s.below(3) as u32).collect();
            for &tail in TAILS.iter().take(arity) {
                let at = s.below(target.len() as u64 + 1) as usize;
                target.insert(at, tail);
            }
            let value = |s: &mut Stream| (s.below(9) as f32 - 4.0) / 4.0;
            let rule = builder.rule(target, &[(s.below(3) as u32, value(&mut s))]);
            builder.edge(tails, rule, &[(s.below(3) as u32, value(&mut s))]);
        }
        builder.node();
    }
    let words = ["x", r"\[y]|||", "[x,1]"].map(str::to_owned).to_vec();
    let weights = (0..3).map(|_| s.uniform(-1.0, 1.0)).collect();
    (builder.finish(local, Arc::new(words)), weights)
}

/// A random number for each edge.
pub(crate) fn numbers(stream: &mut Stream, forest: &Forest<'_>) -> Vec<f64> {
    (0..forest.edges()).map(|_| stream.uniform(-1.0, 1.0)).collect()
}

/// All derivations of a node by recursion: score, words, edges.
fn enumerate(forest: &Forest<'_>, scores: &[f64], node: u32) -> Vec<(f64, Vec<u32>, Vec<u32>)> {
    let mut all = Vec::new();
    for edge in forest.incoming(node) {
        let mut partial = vec![(scores[edge as usize], Vec::new(), vec![edge], Vec::<Vec<u32>>::new())];
        for tail in forest.tails(edge) {
            let below = enumerate(forest, scores, tail);
            partial = partial
                .iter()
                .flat_map(|(s, w, e, parts)| {
                    below.iter().map(move |(s2, w2, e2)| {
                        (
                            s + s2,
                            w.clone(),
                            [&e[..], &e2[..]].concat(),
                            [&parts[..], std::slice::from_ref(w2)].concat(),
                        )
                    })
                })
                .collect();
        }
        for (score, mut words, edges, parts) in partial {
            for &symbol in forest.target(edge) {
                match TAILS.iter().position(|t| *t == symbol) {
                    Some(k) => words.extend(&parts[k]),
                    None => words.push(symbol),
                }
            }
            all.push((score, words, edges));
        }
    }
    all
}

#[test]
fn sums_equal_enumeration_and_outside_is_the_derivative() {
    let mut twice = 0;
    for seed in 0..300 {
        let (forest, weights) = random(seed);
        let scores = forest.scores(&weights);
        let all = enumerate(&forest, &scores, forest.root());
        let real: Vec<Real> = scores.iter().map(|s| Real(s.exp())).collect();
        let log: Vec<Log> = scores.iter().map(|&s| Log(s)).collect();
        let total: f64 = all.iter().map(|d| d.0.exp()).sum();
        let inside = forest.inside(&real);
        let root = forest.root() as usize;
        assert!((inside[root].0 - total).abs() < 1e-9 * total);
        assert!((forest.inside(&log)[root].0 - total.ln()).abs() < 1e-9);
        let best = all.iter().map(|d| d.0).fold(f64::NEG_INFINITY, f64::max);
        let tropical: Vec<Best> = scores.iter().map(|&s| Best(s)).collect();
        assert!((forest.inside(&tropical)[root].0 - best).abs() < 1e-9);
        let outside = forest.outside(&real, &inside);
        let through = forest.through(&real, &inside, &outside);
        for edge in 0..forest.edges() as u32 {
            let uses = |d: &(f64, Vec<u32>, Vec<u32>)| d.2.iter().filter(|e| **e == edge).count() as f64;
            let expected: f64 = all.iter().map(|d| uses(d) * d.0.exp()).sum();
            assert!((through[edge as usize].0 - expected).abs() < 1e-9 * total.max(1.0));
            let both: Vec<u32> = forest.tails(edge).collect();
            twice += usize::from(both.len() == 2 && both[0] == both[1] && expected > 0.0);
            // The derivative of the root's inside value, by finite differences.
            let node = (0..forest.nodes() as u32).find(|n| forest.incoming(*n).contains(&edge)).unwrap();
            let h = 1e-6;
            let mut changed = real.clone();
            changed[edge as usize].0 += h;
            let slope = (forest.inside(&changed)[root].0 - inside[root].0) / h;
            let below: f64 = forest.tails(edge).map(|t| inside[t as usize].0).product();
            assert!((slope - outside[node as usize].0 * below).abs() < 1e-3 * slope.abs().max(1.0));
        }
    }
    assert!(twice > 20, "only {twice} edges with the same tail twice");
}

#[test]
fn k_best_equals_sorted_enumeration() {
    for seed in 0..400 {
        let (forest, weights) = random(seed);
        let scores = forest.scores(&weights);
        let mut all = enumerate(&forest, &scores, forest.root());
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        let found: Vec<Derivation> = KBest::new(&forest, &scores, false).take(2000).collect();
        assert_eq!(found.len(), all.len().min(2000), "seed {seed}");
        for (f, a) in found.iter().zip(&all) {
            assert!((f.score - a.0).abs() < 1e-9);
            let mut features = Vec::new();
            forest.sum_features(&f.edges, &mut features);
            let again: f64 = features.iter().zip(&weights).map(|(v, w)| v * w).sum();
            assert!((again - f.score).abs() < 1e-9);
        }
        let mut best: BTreeMap<Vec<u32>, f64> = BTreeMap::new();
        for (score, words, _) in &all {
            let entry = best.entry(words.clone()).or_insert(f64::NEG_INFINITY);
            *entry = entry.max(*score);
        }
        let distinct: Vec<Derivation> = KBest::new(&forest, &scores, true).collect();
        assert_eq!(distinct.len(), best.len());
        for (d, next) in distinct.iter().zip(distinct.iter().skip(1).map(Some).chain([None])) {
            assert!((best[&d.words] - d.score).abs() < 1e-9);
            assert!(next.is_none_or(|n| n.score <= d.score + 1e-12));
        }
    }
}

#[test]
fn pruning_keeps_what_is_near_the_best() {
    for seed in 0..200 {
        let (forest, weights) = random(seed);
        let scores = forest.scores(&weights);
        let all = enumerate(&forest, &scores, forest.root());
        let best = all.iter().map(|d| d.0).fold(f64::NEG_INFINITY, f64::max);
        let pruned = forest.pruned(&scores, 0.5);
        let left = enumerate(&pruned, &pruned.scores(&weights), pruned.root());
        let near = all.iter().filter(|d| d.0 >= best - 0.5).count();
        assert!(left.len() >= near && left.len() <= all.len());
        assert!((left.iter().map(|d| d.0).fold(f64::NEG_INFINITY, f64::max) - best).abs() < 1e-9);
        let kept: Vec<_> = left.iter().filter(|d| d.0 >= best - 0.5).collect();
        assert_eq!(kept.len(), near);
        assert_eq!(forest.filtered(|_| false).edges(), 0);
    }
}

/// A bigram model over words.
struct Bigrams;

impl Stateful for Bigrams {
    /// First and last word; `None` without words.
    type State = Option<(u32, u32)>;

    fn edge(
        &self,
        target: &[u32],
        tails: &[&Self::State],
        features: &mut Vec<(u32, f32)>,
    ) -> Option<(Self::State, f64)> {
        let (mut state, mut score): (Self::State, f32) = (None, 0.0);
        for &symbol in target {
            let part = match TAILS.iter().position(|t| *t == symbol) {
                Some(k) => *tails[k],
                None => Some((symbol, symbol)),
            };
            state = match (state, part) {
                (Some((first, last)), Some((next, end))) => {
                    score += bigram(last, next);
                    Some((first, end))
                }
                (a, b) => a.or(b),
            };
        }
        features.push((0, score));
        Some((state, f64::from(score)))
    }

    fn end(&self, state: &Self::State, features: &mut Vec<(u32, f32)>) -> Option<f64> {
        let score = state.map_or(0.0, |(first, last)| bigram(7, first) + bigram(last, 7));
        features.push((0, score));
        Some(f64::from(score))
    }
}

fn bigram(a: u32, b: u32) -> f32 {
    ((a * 5 + b * 3) % 8) as f32 / 4.0 - 1.0
}

#[test]
fn rescoring_exactly_equals_enumeration() {
    for seed in 0..200 {
        let (forest, mut weights) = random(seed);
        weights[0] = 1.0;
        let scores = forest.scores(&weights);
        let model = |words: &[u32]| -> f64 {
            let ends = [&[7], words, &[7]].concat();
            if words.is_empty() { 0.0 } else { ends.windows(2).map(|w| f64::from(bigram(w[0], w[1]))).sum() }
        };
        let mut expected: Vec<f64> =
            enumerate(&forest, &scores, forest.root()).iter().map(|d| d.0 + model(&d.1)).collect();
        expected.sort_by(|a, b| b.total_cmp(a));
        let exact = rescore(&forest, &Bigrams, &scores, None);
        let mut found: Vec<f64> =
            enumerate(&exact, &exact.scores(&weights), exact.root()).iter().map(|d| d.0).collect();
        found.sort_by(|a, b| b.total_cmp(a));
        assert_eq!(found.len(), expected.len());
        for (f, e) in found.iter().zip(&expected) {
            assert!((f - e).abs() < 1e-4, "{f} {e}");
        }
        // With a limit there are fewer derivations, each with its exact score.
        let few = rescore(&forest, &Bigrams, &scores, Some(2));
        let some = KBest::new(&few, &few.scores(&weights), false).next().unwrap().score;
        assert!(some <= expected[0] + 1e-4 && few.edges() <= exact.edges());
    }
}

#[test]
fn text_forms() {
    let spell =
        |key: FeatureKey| ["a", "b", "c"].iter().find(|n| FeatureKey::of(n) == key).unwrap().to_string();
    for seed in 0..100 {
        let (forest, weights) = random(seed);
        let forest = forest.filtered(|_| true);
        let read = {
            let mut line = String::new();
            text::write_json(&forest, 7, &spell, &mut line);
            text::from_json(&line).unwrap()
        };
        assert_eq!(read.id, 7);
        let by_key = |f: &Forest<'_>| -> Vec<f64> {
            let at = |k: &FeatureKey| forest.local.position(*k).map_or(0.0, |p| weights[p]);
            f.local.keys().iter().map(at).collect()
        };
        let said = |f: &Forest<'_>, w: &[f64]| {
            let scores = f.scores(w);
            KBest::new(f, &scores, true)
                .take(50)
                .map(|d| (format!("{:.6}", d.score + 1e-9), f.text(&d.words)))
                .collect::<Vec<_>>()
        };
        let (mut a, mut b) = (said(&forest, &weights), said(&read.forest, &by_key(&read.forest)));
        a.sort();
        b.sort();
        assert_eq!(a, b);
    }
    let cicada = r#"3 ||| {"rules":["[x] ||| the","[x] ||| [x,1] house"],"nodes":[[{"rule":1,"feature":{"lm":-1.2}}],[{"tail":[0],"rule":2,"feature":{"lm":-2.0,"wp":-1}}]],"goal":1}"#;
    let read = text::from_json(cicada).unwrap();
    assert_eq!(read.id, 3);
    let best = read.forest.best(&read.forest.scores(&[1.0, 1.0])).unwrap();
    assert_eq!((read.forest.text(&best.words).as_str(), (best.score * 10.0).round()), ("the house", -42.0));
    let moses = "# target ||| features ||| source-covered\n4 4\n1\n<s> |||  ||| 0\n1\n[0] a house ||| LM0=-3.1 WT_x~y=1 ||| 2\n1\n\
                 [1] here ||| LM0=-1 ||| 3\n1\n[2] </s> ||| ||| 3\n";
    let forest = text::read_moses(&mut Input::new("hg", Cursor::new(moses)).unwrap()).unwrap();
    let best = forest.best(&forest.scores(&[1.0, 1.0])).unwrap();
    assert_eq!(forest.text(&best.words), "a house here");
    assert!((best.score + 3.1).abs() < 1e-5);
    for (line, expected) in [
        ("{", "the line is not JSON"),
        ("{}", "the list of rules is missing"),
        (
            r#"{"rules":[],"nodes":[[{"rule":1}]],"goal":0}"#,
            "an edge of node 0 has rule 1, but the number of rules is 0",
        ),
        (r#"{"rules":["[x] ||| [x,1]"],"nodes":[[{"tail":[0],"rule":1}]],"goal":0}"#, "node 0 is on a cycle"),
        (
            r#"{"rules":["[x] ||| [x,2]"],"nodes":[[],[{"tail":[0],"rule":1}]],"goal":1}"#,
            "the gap [x,2], but the edge has 1 tails",
        ),
        (r#"{"rules":[],"nodes":[[]],"goal":5}"#, "the goal is node 5, but the number of nodes is 1"),
        (
            r#"{"rules":["[x] ||| a"],"nodes":[[{"rule":1,"feature":{"f":"x"}}]],"goal":0}"#,
            "the feature f is not a number",
        ),
    ] {
        let message = text::from_json(line).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
    for (hg, expected) in [
        ("3\n", "expected the numbers of nodes and edges"),
        ("1 1\n2\n<s> ||| ||| 0\n", "hg:4: truncated hypergraph"),
        ("1 1\n1\n[0] a ||| ||| 0\n", "hg:3: an edge of node 0 has the tail 0"),
        ("1 1\n1\na ||| LM ||| 0\n", "hg:3: found \"LM\", expected name=value"),
        ("1 2\n1\na ||| ||| 0\n", "hg: has 1 edges, but its header says 2"),
    ] {
        let message =
            text::read_moses(&mut Input::new("hg", Cursor::new(hg)).unwrap()).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn deep_and_empty_forests() {
    let mut builder = Builder::default();
    let word = builder.rule([0], &[]);
    let more = builder.rule([TAILS[0], 0], &[]);
    builder.edge([NONE; 2], word, &[]);
    builder.edge([NONE; 2], word, &[]);
    builder.node();
    for n in 0..20_000 {
        builder.edge([n, NONE], more, &[]);
        builder.node();
    }
    let forest = builder.finish(Arc::new(Local::new(Vec::new())), Arc::new(vec!["w".to_owned()]));
    let scores = forest.scores(&[]);
    assert_eq!(KBest::new(&forest, &scores, true).count(), 1);
    assert_eq!(KBest::new(&forest, &scores, false).map(|d| d.words.len()).collect::<Vec<_>>(), [20_001; 2]);
    let empty = Forest::default();
    assert!(empty.best(&[]).is_none() && empty.is_empty());
    assert!(empty.pruned(&[], 1.0).is_empty());
}
