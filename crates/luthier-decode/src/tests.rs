#![expect(clippy::disallowed_methods, reason = "the functions of std serve as reference")]

use super::*;
use luthier_core::{
    ErrorKind, FeatureKey, Progress, Vocabulary,
    random::{Purpose, Stream},
};
use luthier_forest::KBest;
use luthier_lm::Model as LanguageModel;
use luthier_table::{Builder, Entry};
use std::collections::BTreeMap;

/// Source and target words, translation scores and reordering scores of a phrase pair.
type Row = (Vec<u32>, Vec<u32>, Vec<f64>, Vec<f64>);

/// A model with source words f0…f5, target words e0…e5, random phrase pairs and random bigram language models.
struct World {
    model: Model,
    entries: Vec<Row>,
}

pub(crate) fn language_model(s: &mut Stream) -> LanguageModel {
    let words = ["e0", "e1", "e2", "e3"];
    let mut unigrams = String::from("-2 <unk>\n-99 <s> -0.4\n-1.5 </s>\n");
    let mut bigrams = Vec::new();
    for word in words {
        unigrams += &format!("{:.3} {word} {:.3}\n", -s.uniform(0.3, 2.0), -s.uniform(0.0, 1.0));
        bigrams.push(format!("{:.3} <s> {word}", -s.uniform(0.1, 2.0)));
        for other in words {
            if s.below(2) == 0 {
                bigrams.push(format!("{:.3} {word} {other}", -s.uniform(0.1, 2.0)));
            }
        }
    }
    let text = format!(
        "\\data\\\nngram 1=7\nngram 2={}\n\n\\1-grams:\n{unigrams}\n\\2-grams:\n{}\n\n\\end\\\n",
        bigrams.len(),
        bigrams.join("\n")
    );
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lm");
    std::fs::write(&path, text).unwrap();
    LanguageModel::open(&path).unwrap()
}

fn world(seed: u64, lms: usize) -> World {
    let mut s = Stream::new(seed, Purpose::Test, 0, 0);
    let (mut f, mut e) = (Vocabulary::default(), Vocabulary::default());
    for k in 0..6 {
        f.add(&format!("f{k}"));
        e.add(&format!("e{k}"));
    }
    let mut all = BTreeMap::new();
    for _ in 0..14 {
        let source: Vec<u32> = (0..=s.below(2)).map(|_| s.below(5) as u32).collect();
        let target: Vec<u32> = (0..=s.below(2)).map(|_| s.below(6) as u32).collect();
        // Few different values, so that hypotheses are recombined.
        let number = |s: &mut Stream| [0.25, 0.5][s.below(2) as usize];
        let scores: Vec<f64> = (0..4).map(|_| number(&mut s)).collect();
        let moved: Vec<f64> = (0..6).map(|_| number(&mut s)).collect();
        all.insert((source, target), (scores, moved));
    }
    let mut builder = Builder::new(false);
    let mut entries = Vec::new();
    for ((source, target), (scores, reordering)) in all {
        builder
            .entry(&Entry {
                source: &source,
                target: &target,
                links: &[(0, 0)],
                scores: &scores,
                counts: &[],
                reordering: &reordering,
            })
            .unwrap();
        entries.push((source, target, scores, reordering));
    }
    let table = builder.finish(&f, &e, luthier_core::Progress::NONE).unwrap();
    let lms = (0..lms).map(|_| language_model(&mut s)).collect();
    World { model: Model::new(table, lms, true).unwrap(), entries }
}

fn weights(model: &Model, seed: u64) -> Weights {
    let mut s = Stream::new(seed, Purpose::Test, 1, 0);
    let lines: String = model.names().iter().map(|n| format!("{n} {}\n", s.uniform(0.1, 1.0))).collect();
    Weights::parse("w", &lines).unwrap()
}

/// A derivation by definition: target words, and features by name.
#[derive(Default)]
struct Made {
    /// Source words, target words and first source position of each phrase.
    phrases: Vec<(Vec<String>, Vec<String>, usize)>,
    text: Vec<String>,
    features: BTreeMap<String, f64>,
}

/// All derivations of a sentence within a distortion limit.
fn enumerate(world: &World, sentence: &[u32], limit: usize) -> Vec<Made> {
    let mut all = Vec::new();
    let start = Made::default();
    extend(world, sentence, limit, &vec![false; sentence.len()], (0, 0, None), &start, &mut all);
    all
}

/// Source span of the last phrase, and its table entry.
type Last = (usize, usize, Option<usize>);

fn extend(
    world: &World,
    sentence: &[u32],
    limit: usize,
    covered: &[bool],
    last: Last,
    so_far: &Made,
    all: &mut Vec<Made>,
) {
    let n = sentence.len();
    if covered.iter().all(|c| *c) {
        let mut features = so_far.features.clone();
        for (k, lm) in world.model.lms.iter().enumerate() {
            let words: Vec<u32> = so_far.text.iter().map(|w| lm.word(w)).collect();
            let found = lm.sentence(&words);
            features.insert(format!("LM{k}"), found.log10 * std::f64::consts::LN_10);
            features.insert(format!("OOV{k}"), found.unknown as f64);
        }
        sparse(world, &so_far.phrases, &mut features);
        all.push(Made { phrases: so_far.phrases.clone(), text: so_far.text.clone(), features });
        return;
    }
    let gap = covered.iter().position(|c| !c).unwrap();
    for start in gap..n {
        for end in start + 1..=n {
            if covered[start..end].iter().any(|c| *c) {
                continue;
            }
            if start > gap && (end - gap > limit || start.abs_diff(last.1) > limit) {
                continue;
            }
            let single = |k: usize| world.entries.iter().any(|e| e.0 == sentence[k..=k]);
            let mut options: Vec<(Vec<String>, Option<usize>)> = world
                .entries
                .iter()
                .enumerate()
                .filter(|(_, e)| e.0 == sentence[start..end])
                .map(|(i, e)| (e.1.iter().map(|w| format!("e{w}")).collect(), Some(i)))
                .collect();
            if end == start + 1 && !single(start) {
                options.push((vec![format!("f{}", sentence[start])], None));
            }
            for (words, entry) in options {
                let mut features = so_far.features.clone();
                let mut add = |name: String, v: f64| *features.entry(name).or_insert(0.0) += v;
                add("WordPenalty0".to_owned(), -(words.len() as f64));
                add("PhrasePenalty0".to_owned(), 1.0);
                add("Distortion0".to_owned(), -(start.abs_diff(last.1) as f64));
                let way = if start == last.1 {
                    0
                } else if end == last.0 {
                    1
                } else {
                    2
                };
                match entry {
                    Some(i) => {
                        let (_, _, scores, moved) = &world.entries[i];
                        for (k, p) in scores.iter().enumerate() {
                            add(format!("TranslationModel0[{k}]"), p.ln());
                        }
                        add(format!("LexicalReordering0[{way}]"), moved[way].ln());
                    }
                    None => add("UnknownWordPenalty0".to_owned(), -100.0),
                }
                if let Some(before) = last.2 {
                    add(format!("LexicalReordering0[{}]", 3 + way), world.entries[before].3[3 + way].ln());
                }
                let mut next = covered.to_vec();
                next[start..end].fill(true);
                let source = sentence[start..end].iter().map(|w| format!("f{w}")).collect();
                let mut phrases = so_far.phrases.clone();
                phrases.push((source, words.clone(), start));
                let text = so_far.text.iter().cloned().chain(words).collect();
                let made = Made { phrases, text, features };
                extend(world, sentence, limit, &next, (start, end, entry), &made, all);
            }
        }
    }
}

/// Adds all sparse features of a derivation, by definition.
fn sparse(
    world: &World,
    phrases: &[(Vec<String>, Vec<String>, usize)],
    features: &mut BTreeMap<String, f64>,
) {
    let mut add = |name: String| *features.entry(name).or_insert(0.0) += 1.0;
    let edge = |mark: &str| (vec![mark.to_owned()], vec![mark.to_owned()], 0);
    let all: Vec<_> =
        [edge("<s>")].into_iter().chain(phrases.iter().cloned()).chain([edge("</s>")]).collect();
    let frequent = |side: usize, word: &str| {
        world.entries.iter().any(|e| match side {
            0 => e.0.len() == 1 && format!("f{}", e.0[0]) == word,
            _ => e.0.len() == 1 && e.1.len() == 1 && format!("e{}", e.1[0]) == word,
        })
    };
    for (k, pair) in all.windows(2).enumerate() {
        let (before, now) = (&pair[0], &pair[1]);
        let last = k + 2 == all.len();
        for (name, side) in [("sb", [&before.0, &now.0]), ("tb", [&before.1, &now.1])] {
            let tail = &side[0][side[0].len().saturating_sub(2)..];
            let window: Vec<&str> = tail.iter().chain(side[1]).map(String::as_str).collect();
            for n in [2, 3] {
                for run in window.windows(n).enumerate().filter(|(at, _)| at + n > tail.len()) {
                    add(format!("{name}:{}", run.1.join("_")));
                }
            }
        }
        if last {
            continue;
        }
        add(format!("pp:{}~{}", now.0.join("_"), now.1.join("_")));
        add(format!("pl:{}~{}", now.0.len(), now.1.len()));
        let seam = |x: &[String], y: &[String]| format!("{}_{}", x[x.len() - 1], y[0]);
        let before_end = if k == 0 { 0 } else { before.2 + before.0.len() };
        let jump = i64::from(now.2 as u32) - i64::from(before_end as u32);
        add(format!("sd:{}~{}", seam(&before.0, &now.0), jump.clamp(-6, 6)));
        let way = if jump == 0 {
            "monotone"
        } else if now.2 + now.0.len() == before.2 {
            "swap"
        } else {
            "discontinuous"
        };
        add(format!("or:{}~{}~{way}", seam(&before.0, &now.0), seam(&before.1, &now.1)));
        let class = |side: usize, word: &str| {
            if frequent(side, word) { word.to_owned() } else { "*".to_owned() }
        };
        add(format!("wp:{}~{}", class(0, &now.0[0]), class(1, &now.1[0])));
        for word in now.0[1..].iter().filter(|w| frequent(0, w)) {
            add(format!("de:{word}"));
        }
        for word in now.1[1..].iter().filter(|w| frequent(1, w)) {
            add(format!("in:{word}"));
        }
    }
}

fn total(made: &Made, weights: &Weights) -> f64 {
    let weight = |name: &str| match name {
        "UnknownWordPenalty0" => 1.0,
        _ => weights.get(FeatureKey::of(name)),
    };
    made.features.iter().map(|(n, v)| weight(n) * v).sum()
}

fn everything(pop: Option<u32>, distortion: u32) -> Limits {
    let all = Limits { distortion_limit: Some(distortion), ..Limits::default() }.unpruned();
    pop.map_or(all, |pop_limit| Limits { search: SearchKind::Cube, pop_limit, ..all })
}

#[test]
fn searches_equal_enumeration() {
    for seed in 0..60 {
        let world = world(seed, 1 + (seed % 2) as usize);
        let weights = weights(&world.model, seed);
        let mut s = Stream::new(seed, Purpose::Test, 2, 0);
        let sentence: Vec<u32> = (0..s.below(6)).map(|_| s.below(6) as u32).collect();
        let text = sentence.iter().map(|w| format!("f{w}")).collect::<Vec<_>>().join(" ");
        for distortion in [0, 1, 2, 6] {
            let mut expected: Vec<(f64, String)> = enumerate(&world, &sentence, distortion)
                .iter()
                .map(|m| (total(m, &weights), m.text.join(" ")))
                .collect();
            expected.sort_by(|a, b| b.0.total_cmp(&a.0));
            for pop in [None, Some(u32::MAX)] {
                let decoder = Decoder::new(&world.model, &weights, everything(pop, distortion as u32));
                let lattice = decoder.search(&text, Progress::NONE).unwrap();
                let (_, score) = lattice.best().unwrap();
                assert!(
                    (score - expected[0].0).abs() < 1e-3,
                    "{seed} {distortion} {score} {}",
                    expected[0].0
                );
                // The forest contains every derivation with its score.
                let forest = lattice.forest();
                let scores = forest.scores(&decoder.local_weights(&forest.local));
                let found: Vec<f64> = KBest::new(&forest, &scores, false).map(|d| d.score).collect();
                assert_eq!(found.len(), expected.len(), "{seed} {distortion} {pop:?} {text}");
                for (f, e) in found.iter().zip(&expected) {
                    assert!((f - e.0).abs() < 1e-3, "{f} {}", e.0);
                }
                // Distinct strings have the score of their best derivation.
                let mut best: BTreeMap<&str, f64> = BTreeMap::new();
                for (score, text) in &expected {
                    let known = best.entry(text).or_insert(*score);
                    *known = known.max(*score);
                }
                let distinct: Vec<(String, f64)> =
                    KBest::new(&forest, &scores, true).map(|d| (forest.text(&d.words), d.score)).collect();
                assert_eq!(distinct.len(), best.len());
                assert!(distinct.iter().all(|(t, s)| (best[t.as_str()] - s).abs() < 1e-3));
            }
        }
    }
}

/// With sparse features, the forest contains every derivation with the features and names that the definitions give.
#[test]
fn sparse_features_are_those_of_the_definition() {
    let mut names = 0;
    for seed in 0..40 {
        let mut world = world(seed, 1);
        world.model.set_templates("arun-koehn,hopkins-may".parse().unwrap());
        let mut s = Stream::new(seed, Purpose::Test, 4, 0);
        let sentence: Vec<u32> = (0..s.below(5)).map(|_| s.below(6) as u32).collect();
        let text = sentence.iter().map(|w| format!("f{w}")).collect::<Vec<_>>().join(" ");
        let all = enumerate(&world, &sentence, 6);
        // Weights for half of the sparse features.
        let mut lines = weights(&world.model, seed).to_text(&[]);
        let known: std::collections::BTreeSet<&String> = all.iter().flat_map(|m| m.features.keys()).collect();
        for name in known.iter().filter(|n| n.contains(':')) {
            if s.below(2) == 0 {
                lines += &format!("{name} {}\n", s.uniform(-1.0, 1.0));
            }
        }
        let weights = Weights::parse("w", &lines).unwrap();
        let mut expected: Vec<f64> = all.iter().map(|m| total(m, &weights)).collect();
        expected.sort_by(|a, b| b.total_cmp(a));
        for pop in [None, Some(u32::MAX)] {
            let decoder = Decoder::new(&world.model, &weights, everything(pop, 6));
            let lattice = decoder.search(&text, Progress::NONE).unwrap();
            assert!((lattice.best().unwrap().1 - expected[0]).abs() < 1e-3, "{seed}");
            let forest = lattice.forest();
            let scores = forest.scores(&decoder.local_weights(&forest.local));
            let found: Vec<_> = KBest::new(&forest, &scores, false).collect();
            assert_eq!(found.len(), expected.len());
            let mut spelled = BTreeMap::new();
            lattice.sparse_names(&|_| true, &mut |key, name| {
                spelled.insert(key, name.to_owned());
            });
            let mut sums = Vec::new();
            for (d, e) in found.iter().zip(&expected) {
                assert!((d.score - e).abs() < 1e-3, "{seed} {} {e}", d.score);
                forest.sum_features(&d.edges, &mut sums);
                let words = forest.text(&d.words);
                let mut ours: BTreeMap<&str, f64> = BTreeMap::new();
                for (key, value) in forest.local.keys().iter().zip(&sums).filter(|f| *f.1 != 0.0) {
                    if let Some(name) = spelled.get(key) {
                        ours.insert(name, *value);
                    }
                }
                names += ours.len();
                let of = |m: &Made| -> BTreeMap<String, f64> {
                    m.features.iter().filter(|f| f.0.contains(':')).map(|f| (f.0.clone(), *f.1)).collect()
                };
                let same = |m: &Made| {
                    of(m).iter().map(|(n, v)| (n.as_str(), *v)).eq(ours.iter().map(|(n, v)| (*n, *v)))
                };
                assert!(all.iter().any(|m| m.text.join(" ") == words && same(m)), "{seed} {words} {ours:?}");
            }
        }
    }
    assert!(names > 10_000, "{names}");
}

#[test]
fn templates_and_names() {
    let both: Templates = "arun-koehn,hopkins-may".parse().unwrap();
    assert!(Template::ALL.into_iter().all(|t| both.has(t)));
    assert_eq!(both.to_string().parse::<Templates>().unwrap(), both);
    assert!("none".parse::<Templates>().unwrap().is_empty());
    assert!("x".parse::<Templates>().unwrap_err().to_string().contains("no template is named \"x\""));
    let weights = Weights::parse("w", "pp:a~b 1\nsb:a_b 0\nin:the -1\nLM0 2\n").unwrap();
    assert_eq!(Templates::of(&weights).to_string(), "phrase-pair,insertion");
}

/// Dense features that are not selected have no name, no weight and no value.
#[test]
fn dense_features_can_be_left_out() {
    let mut world = world(4, 1);
    world.model.keep(|n| ["WordPenalty0", "Distortion0"].contains(&n));
    assert_eq!(world.model.names(), ["Distortion0", "WordPenalty0"]);
    let weights =
        Weights::parse("w", "WordPenalty0 -1\nDistortion0 1\nLM0 5\nTranslationModel0[0] 3\n").unwrap();
    let decoder = Decoder::new(&world.model, &weights, everything(None, 6));
    let lattice = decoder.search("f0 f1 f2", Progress::NONE).unwrap();
    let forest = lattice.forest();
    let scores = forest.scores(&decoder.local_weights(&forest.local));
    let mut expected: Vec<f64> = enumerate(&world, &[0, 1, 2], 6)
        .iter()
        .map(|m| {
            let of = |n: &str| m.features.get(n).copied().unwrap_or(0.0);
            of("Distortion0") - of("WordPenalty0") + of("UnknownWordPenalty0")
        })
        .collect();
    expected.sort_by(|a, b| b.total_cmp(a));
    let found: Vec<f64> = KBest::new(&forest, &scores, false).map(|d| d.score).collect();
    assert_eq!(found.len(), expected.len());
    assert!(found.iter().zip(&expected).all(|(f, e)| (f - e).abs() < 1e-6), "{found:?} {expected:?}");
    let mut seen = Vec::new();
    forest.sum_features(&(0..forest.edges() as u32).collect::<Vec<_>>(), &mut seen);
    let used = forest.local.keys().iter().zip(&seen).filter(|f| *f.1 != 0.0).count();
    assert!(used <= 3, "{seen:?}");
}

#[test]
fn features_are_those_of_the_definition() {
    for seed in 0..20 {
        let world = world(seed, 1);
        let weights = weights(&world.model, seed);
        let decoder = Decoder::new(&world.model, &weights, everything(Some(u32::MAX), 6));
        let sentence = [seed as u32 % 6, 1, (seed as u32 + 3) % 6];
        let text = sentence.map(|w| format!("f{w}")).join(" ");
        let all = enumerate(&world, &sentence, 6);
        let lattice = decoder.search(&text, Progress::NONE).unwrap();
        let forest = lattice.forest();
        let scores = forest.scores(&decoder.local_weights(&forest.local));
        let mut sums = Vec::new();
        for derivation in KBest::new(&forest, &scores, false).take(30) {
            forest.sum_features(&derivation.edges, &mut sums);
            let words = forest.text(&derivation.words);
            let same = |m: &&Made| {
                m.text.join(" ") == words
                    && world.model.names().iter().all(|n| {
                        let ours = forest.local.position(FeatureKey::of(n)).map_or(0.0, |p| sums[p]);
                        (ours - m.features.get(n).copied().unwrap_or(0.0)).abs() < 1e-4
                    })
            };
            assert!(all.iter().any(|m| same(&m)), "{words}");
        }
    }
}

#[test]
fn pruning_never_finds_more_and_unknown_words_may_be_dropped() {
    let world = world(3, 1);
    let weights = weights(&world.model, 3);
    let text = "f0 f1 f2 f3 f4 f0 f1 f2";
    let score = |limits: Limits| {
        let decoder = Decoder::new(&world.model, &weights, limits);
        decoder.search(text, Progress::NONE).unwrap().best().unwrap().1
    };
    let best = score(everything(None, 4));
    for (pop, stack_size) in [(1, 1), (3, 2), (10, 5), (50, 20)] {
        let some = score(Limits { stack_size, ..everything(Some(pop), 4) });
        assert!(some <= best + 1e-6, "{pop} {stack_size}: {some} {best}");
    }
    assert!(score(Limits { beam: Some(0.5), ..everything(None, 4) }) <= best + 1e-6);
    let decoder = Decoder::new(&world.model, &weights, Limits::default());
    assert_eq!(decoder.search("x", Progress::NONE).unwrap().best().unwrap().0, "x");
    assert_eq!(decoder.search("", Progress::NONE).unwrap().best().unwrap().0, "");
    let dropping = Limits { drop_unknown: true, ..Limits::default() };
    let decoder = Decoder::new(&world.model, &weights, dropping);
    assert_eq!(decoder.search("x y", Progress::NONE).unwrap().best().unwrap().0, "");
    assert_eq!(decoder.search("x y", Progress::NONE).unwrap().stats().unknown, 2);
}

#[test]
fn long_sentences_are_bounded() {
    let world = world(5, 1);
    let weights = weights(&world.model, 5);
    let decoder =
        Decoder::new(&world.model, &weights, Limits { pop_limit: 20, stack_size: 20, ..Limits::default() });
    let mut s = Stream::new(5, Purpose::Test, 3, 0);
    let text: Vec<String> = (0..3000).map(|_| format!("f{}", s.below(9))).collect();
    let lattice = decoder.search(&text.join(" "), Progress::NONE).unwrap();
    assert!(lattice.best().is_some());
    assert!(lattice.forest().nodes() > 3000);
}

/// A search of either kind ends when the progress callback answers *stop*, and not before.
#[test]
fn a_search_stops_when_it_is_asked_to() {
    use std::{
        ops::ControlFlow,
        sync::atomic::{AtomicU64, Ordering},
    };
    let phrases = world(5, 1);
    let rules = crate::chart::tests::world(5, 1);
    let text: Vec<String> = (0..40).map(|k| format!("f{}", k % 4)).collect();
    let text = text.join(" ");
    for model in [&phrases.model, &rules.model] {
        let weights = weights(model, 5);
        // A single stack or span has thousands of cells.
        let limits = Limits { pop_limit: 5_000, ..Limits::default() };
        let decoder = Decoder::new(model, &weights, limits);
        let asked = AtomicU64::new(0);
        let ask = |last: u64| {
            asked.store(0, Ordering::Relaxed);
            let asked = &asked;
            move |_: &luthier_core::Step| {
                let n = asked.fetch_add(1, Ordering::Relaxed) + 1;
                if n < last { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            }
        };
        let whole = ask(u64::MAX);
        let expected = decoder.search(&text, Progress::new(&whole)).unwrap();
        let questions = asked.load(Ordering::Relaxed);
        // The callback is called for every word, stack or span, and every few cells of a large one.
        let cells = expected.stats().popped;
        assert!(questions > 80 && questions >= cells / 2_000, "{questions} {cells}");
        for last in [1, questions / 3, questions / 2, questions] {
            let stop = ask(last);
            let error = decoder.search(&text, Progress::new(&stop)).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Interrupted);
            assert_eq!(asked.load(Ordering::Relaxed), last);
        }
        let again = decoder.search(&text, Progress::NONE).unwrap();
        assert_eq!(again.best(), expected.best());
    }
}
