#![allow(clippy::field_reassign_with_default)]
#![expect(clippy::disallowed_methods, reason = "the functions of std serve as reference")]

use super::*;
use crate::extract::{self, extract};
use luthier_core::{
    ErrorKind,
    random::{Purpose, Stream},
};
use luthier_io::{AtomicFile, Input};
use std::{io::Cursor, ops::ControlFlow, path::Path, sync::atomic::AtomicUsize};

/// Random sentences with noisy word-by-word translations.
fn corpus(seed: u64, sentences: usize) -> Corpus {
    let mut draw = Stream::new(seed, Purpose::Test, 0, 0);
    let (mut f, mut e) = (String::new(), String::new());
    for _ in 0..sentences {
        let length = 1 + draw.below(7);
        let words: Vec<u64> = (0..length).map(|_| draw.below(12)).collect();
        let mut other: Vec<u64> =
            words.iter().map(|w| if draw.below(5) > 0 { *w } else { draw.below(12) }).collect();
        if draw.below(3) == 0 {
            let half = other.len() / 2;
            other.rotate_left(half);
        }
        if draw.below(4) == 0 {
            other.push(12);
        }
        f += &words.iter().map(|w| format!("f{w} ")).collect::<String>();
        e += &other.iter().map(|w| format!("e{w} ")).collect::<String>();
        f.push('\n');
        e.push('\n');
    }
    let open = |t: String| Input::new("text", Cursor::new(t.into_bytes())).unwrap();
    Corpus::read(&mut open(f), &mut open(e), 100, Progress::NONE).unwrap()
}

const KINDS: [Kind; 3] = [Kind::Ibm1, Kind::Ibm2, Kind::Hmm];

#[test]
fn likelihood_never_falls() {
    for seed in 0..4 {
        let corpus = corpus(seed, 60);
        for kind in KINDS {
            let mut last: Option<(Kind, [f64; 2])> = None;
            let settings = Settings {
                kind,
                first_rounds: 6,
                rounds: 12,
                prior: 0.0,
                agreement: 0.0,
                ..Settings::default()
            };
            let model = Model::train(&corpus, &settings, Progress::NONE).unwrap();
            for r in model.rounds() {
                if let Some((before, log)) = last.filter(|l| l.0 == r.kind) {
                    for (was, is) in log.iter().zip(r.log_likelihood) {
                        assert!(is >= was - 1e-4 * was.abs().sqrt(), "{before:?} {r:?}: {was} then {is}");
                    }
                }
                last = Some((r.kind, r.log_likelihood));
            }
        }
    }
}

/// Joint probability p(generated, links | given) of the HMM by its definition.
fn joint(
    steps: &Steps,
    null: f64,
    words: &[f64],
    of_null: &[f64],
    given: usize,
    links: &[Option<usize>],
) -> f64 {
    let table = steps.table(given);
    let (mut at, mut p) = (0, 1.0);
    for (j, link) in links.iter().enumerate() {
        match link {
            None => p *= null * of_null[j],
            Some(i) => {
                p *= (1.0 - null) * table[at * given + i] * words[j * given + i];
                at = i + 1;
            }
        }
    }
    p
}

#[test]
fn forward_backward_and_best_path_equal_enumeration() {
    let mut draw = Stream::new(1, Purpose::Test, 0, 0);
    for case in 0..40 {
        let (given, generated) = (1 + case % 4, 1 + case / 10);
        let mut steps = Steps::default();
        for w in steps.by_distance.iter_mut().chain(&mut steps.first) {
            *w = draw.uniform(0.01, 1.0);
        }
        let mut scratch = Scratch::default();
        scratch.words = (0..given * generated).map(|_| draw.unit()).collect();
        scratch.of_null = (0..generated).map(|_| draw.unit()).collect();
        let positions = Positions::Steps(steps.clone());
        let prepared = Prepared::new(&positions, 0.2, [given].into_iter());
        let (mut total, mut posterior, mut none) = (0.0, vec![0.0; given * generated], vec![0.0; generated]);
        let (mut top, mut top_links) = (0.0, Vec::new());
        for code in 0..(given + 1).pow(generated as u32) {
            let mut rest = code;
            let links: Vec<Option<usize>> = (0..generated)
                .map(|_| {
                    let digit = rest % (given + 1);
                    rest /= given + 1;
                    digit.checked_sub(1)
                })
                .collect();
            let p = joint(&steps, 0.2, &scratch.words, &scratch.of_null, given, &links);
            total += p;
            for (j, link) in links.iter().enumerate() {
                match link {
                    Some(i) => posterior[j * given + i] += p,
                    None => none[j] += p,
                }
            }
            if p > top {
                (top, top_links) = (p, links);
            }
        }
        let mut best = Vec::new();
        prepared.best(given, &mut scratch, &mut best);
        assert_eq!(best, top_links);
        let log = prepared.infer(given, &mut scratch, &mut Expected::default());
        assert!((log - f64::ln(total)).abs() < 1e-10);
        for (found, expected) in
            scratch.posterior.iter().zip(&posterior).chain(scratch.null.iter().zip(&none))
        {
            assert!((found - expected / total).abs() < 1e-10, "{found} {}", expected / total);
        }
    }
}

#[test]
fn same_bits_on_any_number_of_threads() {
    let corpus = corpus(5, 900);
    for kind in KINDS {
        let settings = Settings { kind, first_rounds: 3, ..Settings::default() };
        let made = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let model = Model::train(&corpus, &settings, Progress::NONE).unwrap();
                let mut saved = Vec::new();
                model.save(&corpus, "m", &mut saved, Progress::NONE).unwrap();
                (saved, model.align(&corpus, Symmetrization::GrowDiagFinalAnd, Progress::NONE).unwrap())
            })
        };
        assert!(made(1) == made(3));
    }
}

#[test]
fn a_saved_model_aligns_the_same_and_knows_no_new_word() {
    let corpus = corpus(9, 80);
    let model = Model::train(&corpus, &Settings::default(), Progress::NONE).unwrap();
    let mut saved = Vec::new();
    model.save(&corpus, "m", &mut saved, Progress::NONE).unwrap();
    let (loaded, start) =
        Model::load(&mut Input::new("m", Cursor::new(saved.clone())).unwrap(), Progress::NONE).unwrap();
    let mut again = Vec::new();
    loaded.save(&start, "m", &mut again, Progress::NONE).unwrap();
    assert!(again == saved);
    let open = |t: &str| Input::new("text", Cursor::new(t.to_owned().into_bytes())).unwrap();
    let text = |side: &crate::Side| {
        let words = |s: usize| side.sentence(s).iter().map(|&w| side.vocabulary.word(w)).collect::<Vec<_>>();
        (0..corpus.len()).map(|s| words(s).join(" ") + "\n").collect::<String>()
    };
    let (mut f, mut e) = (open(&text(&corpus.source)), open(&text(&corpus.target)));
    let read = Corpus::with(&mut f, &mut e, 100, start.clone(), Progress::NONE).unwrap();
    for how in [Symmetrization::Forward, Symmetrization::Backward, Symmetrization::Union] {
        assert_eq!(model.align(&corpus, how, Progress::NONE), loaded.align(&read, how, Progress::NONE));
    }
    let new = Corpus::with(&mut open("x y f1\n"), &mut open("e1 z\n"), 100, start, Progress::NONE).unwrap();
    assert_eq!(loaded.align(&new, Symmetrization::Union, Progress::NONE).unwrap().len(), 1);
}

#[test]
fn digamma_has_its_known_values() {
    for (x, expected) in
        [(1.0, -0.577_215_664_901_532_9), (0.5, -1.963_510_026_021_423_5), (10.0, 2.251_752_589_066_721)]
    {
        assert!((digamma(x) - expected).abs() < 1e-9, "{x}");
    }
}

/// Trains, saves and applies an aligner, and extracts phrases; returns their number.
fn everything(corpus: &Corpus, path: &Path, progress: Progress<'_>) -> Result<u64> {
    let settings = Settings { first_rounds: 2, rounds: 2, ..Settings::default() };
    let model = Model::train(corpus, &settings, progress)?;
    let mut out = AtomicFile::create(path)?;
    model.save(corpus, "aligner", &mut out, progress)?;
    let links = model.align(corpus, settings.symmetrize, progress)?;
    let report = extract(corpus, &links, &extract::Settings::default(), progress, &mut |_| Ok(()))?;
    out.commit()?;
    Model::load(&mut Input::open(path)?, progress)?;
    Ok(report.pairs)
}

/// Whenever the callback returns stop, the work fails with kind `Interrupted`, and no file is incomplete.
#[test]
fn interrupted_work_leaves_nothing() {
    let corpus = corpus(2, 300);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("aligner");
    let calls = AtomicUsize::new(0);
    for last in 0.. {
        calls.store(0, Ordering::Relaxed);
        let stop = |step: &Step| {
            assert!(["lines", "rounds", "pairs", "phrases", "records"].contains(&step.what), "{step:?}");
            match calls.fetch_add(1, Ordering::Relaxed) {
                n if n < last => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        };
        match everything(&corpus, &path, Progress::new(&stop)) {
            Err(error) => assert_eq!(error.kind(), ErrorKind::Interrupted),
            Ok(pairs) => {
                assert!(last > 15 && pairs > 100, "{last} {pairs}");
                break;
            }
        }
        // A file that exists is complete.
        if path.exists() {
            Model::load(&mut Input::open(&path).unwrap(), Progress::NONE).unwrap();
            std::fs::remove_file(&path).unwrap();
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
