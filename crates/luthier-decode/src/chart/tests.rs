#![expect(clippy::disallowed_methods, reason = "the functions of std serve as reference")]

use crate::{Decoder, Forests, ForestsWriter, Limits, Model, SearchKind, tests::language_model};
use luthier_core::{
    FeatureKey, Progress, Vocabulary, Weights,
    random::{Purpose, Stream},
};
use luthier_forest::KBest;
use luthier_table::{Builder, Entry, GAPS};
use std::collections::BTreeMap;

type Row = (Vec<u32>, Vec<u32>, Vec<f64>);

pub(crate) struct World {
    pub(crate) model: Model,
    rules: Vec<Row>,
}

/// A model with random rules over four source and four target words.
pub(crate) fn world(seed: u64, lms: usize) -> World {
    let mut s = Stream::new(seed, Purpose::Test, 0, 0);
    let (mut f, mut e) = (Vocabulary::default(), Vocabulary::default());
    for k in 0..5 {
        f.add(&format!("f{k}"));
        e.add(&format!("e{k}"));
    }
    let mut all = BTreeMap::new();
    for _ in 0..22 {
        let word = |s: &mut Stream| s.below(4) as u32;
        let gaps = s.below(3) as usize;
        let mut source = vec![word(&mut s)];
        let mut target = vec![word(&mut s)];
        match gaps {
            1 => {
                let at = s.below(2) as usize;
                source.insert(at, GAPS[0]);
                target.insert(s.below(2) as usize, GAPS[0]);
            }
            2 => {
                source = vec![GAPS[0], source[0], GAPS[1]];
                let mut order = GAPS;
                if s.below(2) == 0 {
                    order.swap(0, 1);
                }
                target = vec![order[0], order[1]];
                if s.below(2) == 0 {
                    target.insert(s.below(3) as usize, word(&mut s));
                }
            }
            _ => {
                if s.below(2) == 0 {
                    source.push(word(&mut s));
                }
                if s.below(2) == 0 {
                    target.push(word(&mut s));
                }
            }
        }
        all.insert((source, target), vec![s.uniform(0.1, 1.0), s.uniform(0.1, 1.0)]);
    }
    let mut builder = Builder::new(true);
    let mut rules = Vec::new();
    for ((source, target), scores) in all {
        let entry = Entry {
            source: &source,
            target: &target,
            links: &[],
            scores: &scores,
            counts: &[],
            reordering: &[],
        };
        builder.entry(&entry).unwrap();
        rules.push((source, target, scores));
    }
    let lms = (0..lms).map(|_| language_model(&mut s)).collect();
    World {
        model: Model::new(builder.finish(&f, &e, luthier_core::Progress::NONE).unwrap(), lms, true).unwrap(),
        rules,
    }
}

/// A derivation: target words, and features by name.
type Made = (Vec<String>, BTreeMap<String, f64>);

fn join(parts: &[&BTreeMap<String, f64>]) -> BTreeMap<String, f64> {
    let mut sum = BTreeMap::new();
    for (name, value) in parts.iter().copied().flatten() {
        *sum.entry(name.clone()).or_insert(0.0) += value;
    }
    sum
}

/// All derivations of X over a span, by recursion.
fn all(world: &World, sentence: &[u32], span: usize, start: usize, end: usize) -> Vec<Made> {
    let mut out = Vec::new();
    if end - start > span {
        return out;
    }
    for (source, target, scores) in &world.rules {
        // All ways to match the source side, with the spans of its gaps.
        let mut ways: Vec<(usize, Vec<(usize, usize)>)> = vec![(start, Vec::new())];
        for symbol in source {
            let mut next = Vec::new();
            for (at, gaps) in ways {
                if GAPS.contains(symbol) {
                    for to in at + 1..=end {
                        let mut gaps = gaps.clone();
                        gaps.push((at, to));
                        next.push((to, gaps));
                    }
                } else if at < end && sentence[at] == *symbol {
                    next.push((at + 1, gaps));
                }
            }
            ways = next;
        }
        for (_, gaps) in ways.into_iter().filter(|w| w.0 == end) {
            let mut combinations: Vec<Vec<Made>> = vec![Vec::new()];
            for &(from, to) in &gaps {
                let inner = all(world, sentence, span, from, to);
                combinations = combinations
                    .iter()
                    .flat_map(|c| inner.iter().map(move |i| c.iter().cloned().chain([i.clone()]).collect()))
                    .collect();
            }
            for parts in combinations {
                let mut own = BTreeMap::new();
                let words = target.iter().filter(|s| !GAPS.contains(s)).count();
                own.insert("WordPenalty0".to_owned(), -(words as f64));
                own.insert("PhrasePenalty0".to_owned(), 1.0);
                own.insert(format!("Rules0[{}]", gaps.len()), 1.0);
                for (k, p) in scores.iter().enumerate() {
                    own.insert(format!("TranslationModel0[{k}]"), p.ln());
                }
                let mut text = Vec::new();
                for s in target {
                    match GAPS.iter().position(|g| g == s) {
                        Some(gap) => text.extend(parts[gap].0.iter().cloned()),
                        None => text.push(format!("e{s}")),
                    }
                }
                let features: Vec<&BTreeMap<String, f64>> =
                    parts.iter().map(|p| &p.1).chain([&own]).collect();
                out.push((text, join(&features)));
            }
        }
    }
    let known = world.rules.iter().any(|r| r.0[..] == sentence[start..=start]);
    if end == start + 1 && !known {
        let own = [("WordPenalty0", -1.0), ("PhrasePenalty0", 1.0), ("UnknownWordPenalty0", -100.0)];
        let features = own.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
        out.push((vec![format!("f{}", sentence[start])], features));
    }
    out
}

/// All derivations of a sentence: sequences of X joined by glue rules.
fn sentences(world: &World, sentence: &[u32], span: usize) -> Vec<Made> {
    let mut rows: Vec<Vec<Made>> = vec![vec![(Vec::new(), BTreeMap::new())]];
    let glue: BTreeMap<String, f64> =
        [("Glue0", 1.0), ("PhrasePenalty0", 1.0)].iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
    for end in 1..=sentence.len() {
        let mut here = Vec::new();
        for (middle, left) in rows.iter().enumerate() {
            for x in all(world, sentence, span, middle, end) {
                for (words, features) in left {
                    let text = words.iter().chain(&x.0).cloned().collect();
                    here.push((text, join(&[features, &x.1, &glue])));
                }
            }
        }
        rows.push(here);
    }
    let mut whole = rows.pop().unwrap();
    for (words, features) in &mut whole {
        *features.entry("WordPenalty0".to_owned()).or_insert(0.0) -= 2.0;
        *features.entry("PhrasePenalty0".to_owned()).or_insert(0.0) += 2.0;
        for (k, lm) in world.model.lms.iter().enumerate() {
            let ids: Vec<u32> = words.iter().map(|w| lm.word(w)).collect();
            let found = lm.sentence(&ids);
            features.insert(format!("LM{k}"), found.log10 * std::f64::consts::LN_10);
            features.insert(format!("OOV{k}"), found.unknown as f64);
        }
    }
    whole
}

#[test]
fn searches_equal_enumeration() {
    let (mut derivations, mut with_gaps) = (0, 0);
    for seed in 0..60 {
        let world = world(seed, 1 + (seed % 2) as usize);
        let mut s = Stream::new(seed, Purpose::Test, 1, 0);
        let text: String =
            world.model.names().iter().map(|n| format!("{n} {}\n", s.uniform(-1.0, 1.0))).collect();
        let weights = Weights::parse("w", &text).unwrap();
        let sentence: Vec<u32> = (0..s.below(6)).map(|_| s.below(5) as u32).collect();
        let line = sentence.iter().map(|w| format!("f{w}")).collect::<Vec<_>>().join(" ");
        for span in [1, 2, 4, 20] {
            let mut expected = sentences(&world, &sentence, span);
            let total = |m: &Made| -> f64 {
                let weight = |n: &str| match n {
                    "UnknownWordPenalty0" => 1.0,
                    _ => weights.get(FeatureKey::of(n)),
                };
                m.1.iter().map(|(n, v)| weight(n) * v).sum()
            };
            expected.sort_by(|a, b| total(b).total_cmp(&total(a)));
            let limits = Limits { span_limit: Some(span as u32), ..Limits::default() }.unpruned();
            let decoder = Decoder::new(&world.model, &weights, limits);
            let found = decoder.search(&line, Progress::NONE).unwrap();
            let (_, score) = found.best().unwrap();
            assert!(
                (score - total(&expected[0])).abs() < 1e-3,
                "{seed} {span} {score} {}",
                total(&expected[0])
            );
            let forest = found.forest();
            let scores = forest.scores(&decoder.local_weights(&forest.local));
            let ours: Vec<_> = KBest::new(&forest, &scores, false).collect();
            assert_eq!(ours.len(), expected.len(), "{seed} {span} {line}");
            let mut sums = Vec::new();
            for (d, e) in ours.iter().zip(&expected) {
                assert!((d.score - total(e)).abs() < 1e-3, "{seed} {} {}", d.score, total(e));
                forest.sum_features(&d.edges, &mut sums);
                let words = forest.text(&d.words);
                let same = |m: &&Made| {
                    m.0.join(" ") == words
                        && world.model.names().iter().all(|n| {
                            let mine = forest.local.position(FeatureKey::of(n)).map_or(0.0, |p| sums[p]);
                            (mine - m.1.get(n).copied().unwrap_or(0.0)).abs() < 1e-4
                        })
                };
                assert!(expected.iter().any(|m| same(&m)), "{seed} {words}");
                with_gaps += usize::from(e.1.get("Rules0[2]").is_some_and(|n| *n > 0.0));
            }
            assert_eq!(found.best().unwrap().0, forest.text(&ours[0].words));
            derivations += ours.len();
            // Pruned searches find no better translation.
            for pop in [1, 3, 10] {
                let few = Limits { search: SearchKind::Cube, pop_limit: pop, ..limits };
                let decoder = Decoder::new(&world.model, &weights, few);
                let (_, some) = decoder.search(&line, Progress::NONE).unwrap().best().unwrap();
                assert!(some <= score + 1e-6);
            }
        }
    }
    assert!(derivations > 1500 && with_gaps > 300, "{derivations} {with_gaps}");
}

/// Random sentences with some unknown words.
fn lines(seed: u64) -> Vec<String> {
    let mut s = Stream::new(seed, Purpose::Test, 2, 0);
    (0..6)
        .map(|_| {
            let words: Vec<String> = (0..s.below(7)).map(|_| format!("f{}", s.below(6))).collect();
            words.join(" ")
        })
        .collect()
}

fn save(path: &std::path::Path, model: &Model, digests: &[String], lines: &[String], span: usize) {
    let mut writer = ForestsWriter::create(path, model, digests, span).unwrap();
    for line in lines {
        let spans = writer.spans(line, Progress::NONE).unwrap();
        writer.push(line, spans).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn saved_forests_give_what_decoding_gives() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    let digests = ["table".to_owned(), "lm".to_owned()];
    for seed in 0..40 {
        let world = world(seed, (seed % 3) as usize);
        let (lines, span) = (lines(seed), 2 + (seed % 5) as usize);
        save(&path, &world.model, &digests, &lines, span);
        let forests = Forests::open(&path, &world.model, &digests, span).unwrap();
        assert_eq!(forests.len(), lines.len());
        // New weights for each pass, and limits that prune.
        for (pass, table) in [(0, 1), (1, 2), (2, 20)] {
            let mut s = Stream::new(seed, Purpose::Test, 3, pass);
            let text: String =
                world.model.names().iter().map(|n| format!("{n} {}\n", s.uniform(-1.0, 1.0))).collect();
            let weights = Weights::parse("w", &text).unwrap();
            let limits = Limits {
                pop_limit: 3,
                table_limit: Some(table),
                span_limit: Some(span as u32),
                ..Limits::default()
            };
            let fresh = Decoder::new(&world.model, &weights, limits);
            let saved = Decoder::over(&world.model, &weights, limits, &forests);
            for (at, line) in lines.iter().enumerate() {
                let (a, b) = (
                    fresh.search(line, Progress::NONE).unwrap(),
                    saved.rescore(at, Progress::NONE).unwrap().unwrap(),
                );
                assert_eq!(a.best(), b.best(), "{seed} {line}");
                assert_eq!(a.forest(), b.forest());
                assert_eq!(saved.search(line, Progress::NONE).unwrap().best(), a.best());
            }
            assert!(fresh.rescore(0, Progress::NONE).unwrap().is_none());
        }
    }
}

#[test]
fn damaged_and_foreign_forests_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    let digests = ["table".to_owned()];
    let world = world(3, 1);
    let lines = lines(3);
    save(&path, &world.model, &digests, &lines, 4);
    let open = |digests: &[String], span| {
        Forests::open(&path, &world.model, digests, span).map(drop).map_err(|e| e.to_string())
    };
    assert_eq!(open(&digests, 4), Ok(()));
    assert!(open(&["other".to_owned()], 4).unwrap_err().contains("another table"));
    assert!(open(&digests, 5).unwrap_err().contains("--span-limit 4, not 5"));
    let whole = std::fs::read(&path).unwrap();
    for length in [0, 10, 256, whole.len() - 1] {
        std::fs::write(&path, &whole[..length]).unwrap();
        assert!(open(&digests, 4).is_err(), "{length}");
    }
    // A change of any byte is detected, unless it is padding.
    let mut noticed = 0;
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x11;
        std::fs::write(&path, &bytes).unwrap();
        match open(&digests, 4) {
            Err(_) => noticed += 1,
            Ok(()) => assert_eq!(whole[at], 0, "byte {at}"),
        }
    }
    assert!(noticed > whole.len() / 2, "{noticed} of {}", whole.len());
    // A file whose writing was not finished is recognised.
    let mut unfinished = whole;
    unfinished[12..16].fill(0);
    std::fs::write(&path, unfinished).unwrap();
    assert!(open(&digests, 4).unwrap_err().contains("not finished"));
}
