use super::*;
use crate::{
    core::{
        Vocabulary, Weights,
        random::{Purpose, Stream},
    },
    decode::Model,
    forest::{KBest, rescore},
    metric::{Hypothesis, Scratch},
    table::{Builder, Entry},
};
use std::collections::BTreeMap;

/// Returns a model whose table has random phrases over a few words.
fn model(seed: u64) -> Model {
    let mut s = Stream::new(seed, Purpose::Test, 0, 0);
    let (mut f, mut e) = (Vocabulary::default(), Vocabulary::default());
    for k in 0..5 {
        f.add(&format!("f{k}"));
        e.add(&format!("e{k}"));
    }
    let mut all = BTreeMap::new();
    for _ in 0..14 {
        let mut phrase = |n: u64| -> Vec<u32> { (0..=s.below(2)).map(|_| s.below(n) as u32).collect() };
        let pair = (phrase(4), phrase(5));
        all.insert(pair, vec![s.uniform(0.1, 1.0)]);
    }
    let mut builder = Builder::new(false);
    for ((source, target), scores) in &all {
        let entry = Entry { source, target, links: &[], scores, counts: &[], reordering: &[] };
        builder.entry(&entry).unwrap();
    }
    Model::new(builder.finish(&f, &e, crate::core::Progress::NONE).unwrap(), Vec::new(), false).unwrap()
}

fn limits() -> Limits {
    Limits { distortion_limit: Some(3), ..Limits::default() }.unpruned()
}

fn highest_bleu<'d>(
    blind: &Decoder<'_>,
    forcing: &'d Decoder<'_>,
    sentence: &str,
    references: &[&str],
) -> (String, Found<'d>) {
    let found = max_bleu(blind, forcing, sentence, references, SentenceSmoothing::default(), Progress::NONE);
    found.unwrap().unwrap()
}

fn forced<'d>(decoder: &'d Decoder<'_>, sentence: &str, translations: &[&str]) -> Option<Found<'d>> {
    force(decoder, sentence, translations, Progress::NONE).unwrap()
}

fn bleu(text: &str, references: &[&str]) -> f64 {
    let metric = Metric::Bleu(Bleu::default());
    let mut scratch = Scratch::default();
    let mut stats = vec![0.0; metric.width()];
    let prepared = metric.prepare(references, &mut scratch);
    metric.stats(&prepared, Hypothesis { text, columns: &[] }, &mut scratch, &mut stats);
    metric.sentence_score(&stats, SentenceSmoothing::default())
}

/// Forced decoding reaches exactly the strings in the forest of all derivations, with the score of the best derivation;
/// the search for BLEU finds the best of these strings.
#[test]
fn searches_equal_enumeration() {
    let (mut reached, mut missed) = (0, 0);
    for seed in 0..60 {
        let model = model(seed);
        let weights =
            Weights::parse("w", "TranslationModel0 1\nWordPenalty0 0.3\nDistortion0 0.2\n").unwrap();
        let mut s = Stream::new(seed, Purpose::Test, 1, 0);
        let sentence: Vec<String> = (0..=s.below(4)).map(|_| format!("f{}", s.below(5))).collect();
        let sentence = sentence.join(" ");
        let decoder = Decoder::new(&model, &weights, limits());
        let lattice = decoder.search(&sentence, Progress::NONE).unwrap();
        let forest = lattice.forest();
        let scores = forest.scores(&decoder.local_weights(&forest.local));
        let all: BTreeMap<String, f64> =
            KBest::new(&forest, &scores, true).map(|d| (forest.text(&d.words), d.score)).collect();
        let forcing = Decoder::new(&model, &weights, Forced::limits(limits()));
        for k in 0..12 {
            // A reachable translation, with one word replaced in every other round.
            let known = all.keys().nth(s.below(all.len() as u64) as usize).unwrap();
            let mut words: Vec<String> = known.split(' ').map(str::to_owned).collect();
            if k % 2 == 1 {
                let at = s.below(words.len() as u64) as usize;
                words[at] = format!("e{}", s.below(6));
            }
            let text = words.join(" ");
            let found = force(&forcing, &sentence, &[&text], Progress::NONE).unwrap().and_then(|l| l.best());
            if let Some(score) = all.get(&text) {
                let (made, best) = found.unwrap();
                assert_eq!(made, text);
                assert!((best - score).abs() < 1e-6, "{seed} {text}: {best} {score}");
                reached += 1;
            } else {
                assert!(found.is_none(), "{seed} {text}");
                missed += 1;
            }
            // Rescoring the forest with the same constraint gives the same answer.
            let numbers: Vec<u32> = (0..forest.words.len() as u32).collect();
            let number = |w: &str| numbers.iter().copied().find(|&n| forest.words[n as usize] == w);
            if let Some(words) = text.split(' ').map(number).collect::<Option<Vec<u32>>>() {
                let only = rescore(&forest, &Forced { words }, &scores, None);
                assert_eq!(only.is_empty(), !all.contains_key(&text), "{seed} {text}");
            }
            let reference = format!("{text} e0 e1");
            let blind = Decoder::blind(&model, limits());
            let (best, lattice) = highest_bleu(&blind, &forcing, &sentence, &[&reference, "e2 e3"]);
            let most = all.keys().map(|t| bleu(t, &[&reference, "e2 e3"])).fold(0.0, f64::max);
            let ours = bleu(&best, &[&reference, "e2 e3"]);
            assert!((ours - most).abs() < 1e-4, "{seed} {reference}: {best} {ours} {most}");
            assert_eq!(lattice.best().unwrap().0, best);
        }
    }
    assert!(reached > 200 && missed > 100, "{reached} {missed}");
}

#[test]
fn empty_and_unknown() {
    let model = model(1);
    let weights = Weights::parse("w", "TranslationModel0 1\n").unwrap();
    let decoder = Decoder::new(&model, &weights, Forced::limits(limits()));
    assert_eq!(forced(&decoder, "", &[""]).unwrap().best().unwrap().0, "");
    assert!(forced(&decoder, "", &["e0"]).is_none());
    assert!(forced(&decoder, "x y", &[""]).is_none());
    assert_eq!(forced(&decoder, "x y x", &["q", "x y x"]).unwrap().best().unwrap().0, "x y x");
    let blind = Decoder::blind(&model, limits());
    for references in [&[""][..], &["x"], &["q"], &[]] {
        let (text, _) = highest_bleu(&blind, &decoder, "x", references);
        assert_eq!(text, "x");
    }
}

/// Forced decoding and the search for BLEU stop when the progress callback answers *stop*.
#[test]
fn a_constrained_search_can_be_stopped() {
    use crate::core::{ErrorKind, Step};
    use std::{
        ops::ControlFlow,
        sync::atomic::{AtomicU32, Ordering},
    };
    let model = model(1);
    let weights = Weights::parse("w", "TranslationModel0 1\n").unwrap();
    let forcing = Decoder::new(&model, &weights, Forced::limits(limits()));
    let blind = Decoder::blind(&model, limits());
    let (sentence, reference) = ("f0 f1 f2 f0", "e0 e1 e2 e1");
    let asked = AtomicU32::new(0);
    for last in [1, 3, 9] {
        asked.store(0, Ordering::Relaxed);
        let stop = |_: &Step| {
            let n = asked.fetch_add(1, Ordering::Relaxed) + 1;
            if n < last { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let progress = Progress::new(&stop);
        let error =
            max_bleu(&blind, &forcing, sentence, &[reference], SentenceSmoothing::default(), progress).err();
        assert_eq!(error.map(|e| e.kind()), Some(ErrorKind::Interrupted));
        assert_eq!(asked.load(Ordering::Relaxed), last);
    }
}
