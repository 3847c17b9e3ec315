//! Tests of estimates against a direct implementation, queries against recursion, and fragments against scores from
//! left to right.

#![expect(clippy::disallowed_methods, reason = "the functions of std serve as reference")]

use super::*;
use luthier_core::{
    ErrorKind, Progress, Step,
    random::{Purpose, Stream},
};
use luthier_io::{
    AtomicFile, Input,
    sort::{ByteSize, SortSettings},
};
use std::{collections::BTreeMap, ops::ControlFlow, path::Path};

fn settings(order: usize, memory: usize) -> Settings {
    let sort = SortSettings { memory: ByteSize::new(memory), directory: None };
    Settings { order: order as u8, prune: Vec::new(), sort }
}

fn built(text: &str, settings: &Settings) -> (String, Report) {
    let mut input = Input::new("text", std::io::Cursor::new(text.to_owned().into_bytes())).unwrap();
    let mut out = Vec::new();
    let report = estimate(&mut input, settings, &mut out, Progress::NONE).unwrap();
    (String::from_utf8(out).unwrap(), report)
}

fn read(arpa: &str) -> Arpa {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), arpa).unwrap();
    Arpa::read(file.path(), Progress::NONE).unwrap()
}

/// Random sentences over twelve words with a skewed distribution.
fn random_text(seed: u32, sentences: usize) -> String {
    let mut s = Stream::new(11, Purpose::Test, 0, seed);
    let mut text = String::new();
    for _ in 0..sentences {
        let words: Vec<String> =
            (0..s.below(9)).map(|_| format!("w{}", s.below(12).min(s.below(12)).min(s.below(12)))).collect();
        text += &words.join(" ");
        text.push('\n');
    }
    text
}

type Gram = Vec<String>;

/// Modified Kneser–Ney by the textbook formulas, with maps of strings.
struct Slow {
    /// Adjusted counts and raw counts by order.
    counts: Vec<BTreeMap<Gram, (f64, f64)>>,
    discounts: Vec<[f64; 4]>,
    words: f64,
    prune: Vec<f64>,
}

impl Slow {
    fn new(text: &str, order: usize, prune: &[u64]) -> Self {
        let mut raw: Vec<BTreeMap<Gram, f64>> = vec![BTreeMap::new(); order];
        let mut words: std::collections::BTreeSet<String> = ["<unk>".to_owned(), "</s>".to_owned()].into();
        for line in text.lines() {
            let mut sentence = vec!["<s>".to_owned()];
            sentence.extend(line.split_whitespace().map(str::to_owned));
            sentence.push("</s>".to_owned());
            words.extend(sentence[1..].iter().cloned());
            for n in 1..=order {
                for gram in sentence.windows(n) {
                    *raw[n - 1].entry(gram.to_vec()).or_default() += 1.0;
                }
            }
        }
        raw[0].remove(&vec!["<s>".to_owned()]);
        let mut counts = Vec::new();
        for n in 1..=order {
            let adjusted = raw[n - 1].iter().map(|(gram, &count)| {
                let before = match raw.get(n) {
                    Some(longer) if gram[0] != "<s>" => {
                        longer.keys().filter(|g| g[1..] == gram[..]).count() as f64
                    }
                    _ => count,
                };
                (gram.clone(), (before, count))
            });
            counts.push(adjusted.collect::<BTreeMap<_, _>>());
        }
        let discounts = counts.iter().map(|c| {
            let t = |k: f64| c.values().filter(|a| a.0 == k).count() as f64;
            let y = t(1.0) / (t(1.0) + 2.0 * t(2.0));
            let d = |k: f64| k - (k + 1.0) * y * t(k + 1.0) / t(k);
            let all = [0.0, d(1.0), d(2.0), d(3.0)];
            if (1..4).all(|k| all[k] >= 0.0 && all[k] <= k as f64) { all } else { [0.0, 0.5, 1.0, 1.5] }
        });
        let prune = (0..order).map(|n| prune.get(n).or(prune.last()).copied().unwrap_or(0) as f64).collect();
        Slow { discounts: discounts.collect(), counts, words: words.len() as f64, prune }
    }

    fn kept(&self, gram: &[String]) -> bool {
        gram.len() == 1
            || self.counts[gram.len() - 1].get(gram).is_some_and(|c| c.1 > self.prune[gram.len() - 1])
    }

    /// Interpolation weight γ of a context.
    fn rest(&self, context: &[String]) -> Option<f64> {
        let n = context.len();
        let all: Vec<_> = self.counts[n].iter().filter(|(g, _)| g[..n] == *context).collect();
        let total: f64 = all.iter().map(|(_, c)| c.0).sum();
        let taken: f64 = all
            .iter()
            .map(|(g, c)| if self.kept(g) { self.discounts[n][(c.0 as usize).min(3)] } else { c.0 })
            .sum();
        (!all.is_empty()).then_some(taken / total)
    }

    fn probability(&self, gram: &[String]) -> f64 {
        let n = gram.len();
        let lower = if n == 1 { 1.0 / self.words } else { self.probability(&gram[1..]) };
        let total: f64 =
            self.counts[n - 1].iter().filter(|(g, _)| g[..n - 1] == gram[..n - 1]).map(|(_, c)| c.0).sum();
        let count = self.counts[n - 1].get(gram).map_or(0.0, |c| c.0);
        (count - self.discounts[n - 1][(count as usize).min(3)]) / total
            + self.rest(&gram[..n - 1]).unwrap_or(1.0) * lower
    }
}

#[test]
fn estimates_against_the_textbook() {
    for (seed, order, prune) in [
        (1, 3, vec![]),
        (2, 4, vec![]),
        (3, 2, vec![]),
        (4, 1, vec![]),
        (5, 3, vec![0, 0, 1]),
        (6, 6, vec![0, 1]),
    ] {
        let text = random_text(seed, 60);
        let (arpa, report) = built(&text, &Settings { prune: prune.clone(), ..settings(order, 1 << 24) });
        let slow = Slow::new(&text, order, &prune);
        for (n, d) in report.discounts.iter().enumerate() {
            assert_eq!(d.amount, slow.discounts[n], "order {} of text {seed}", n + 1);
        }
        let arpa = read(&arpa);
        for (n, grams) in arpa.orders.iter().enumerate() {
            let expected =
                slow.counts[n].keys().filter(|g| slow.kept(g)).count() + if n == 0 { 2 } else { 0 };
            assert_eq!(grams.len(), expected, "order {} of text {seed}", n + 1);
            for i in 0..grams.len() {
                let words: Gram =
                    grams.words(i).iter().map(|&w| arpa.vocabulary.word(w).to_owned()).collect();
                let p = if words == ["<s>"] { 0.0 } else { slow.probability(&words).log10() };
                assert!(
                    (f64::from(grams.probability[i]) - p).abs() < 1e-5,
                    "{words:?} {} {p}",
                    grams.probability[i]
                );
                let back = if n + 1 < order { slow.rest(&words).map_or(0.0, f64::log10) } else { 0.0 };
                assert!((f64::from(grams.back_off[i]) - back).abs() < 1e-5, "{words:?} back-off");
            }
        }
        // The probabilities of all words after a context sum to 1.
        let model = Model::of_arpa(&arpa, "m", Progress::NONE).unwrap();
        let mut state = model.begin();
        for word in text.split_whitespace().take(20) {
            let sum: f64 = (0..model.words() as u32)
                .filter(|&w| w != BEGIN)
                .map(|w| 10f64.powf(f64::from(model.score(&state, w).log10)))
                .sum();
            assert!((sum - 1.0).abs() < 1e-4, "{sum}");
            state = model.score(&state, model.word(word)).state;
        }
    }
}

#[test]
fn little_memory_gives_the_same_file() {
    let text = random_text(7, 3000);
    assert_eq!(built(&text, &settings(4, 1 << 28)).0, built(&text, &settings(4, 1000)).0);
}

/// p(w | context) by recursion over the ARPA file.
fn naive(arpa: &BTreeMap<Vec<u32>, (f32, f32)>, context: &[u32], word: u32) -> f32 {
    let gram: Vec<u32> = context.iter().copied().chain([word]).collect();
    if let Some(found) = arpa.get(&gram) {
        return found.0;
    }
    let back = arpa.get(context).map_or(0.0, |c| c.1);
    naive(arpa, &context[1..], word) + back
}

fn table(arpa: &Arpa) -> BTreeMap<Vec<u32>, (f32, f32)> {
    let all = arpa.orders.iter().flat_map(|g| (0..g.len()).map(move |i| (g, i)));
    all.map(|(g, i)| (g.words(i).to_vec(), (g.probability[i], g.back_off[i]))).collect()
}

/// A model that randomly lacks n-grams, as after pruning by other toolkits.
fn with_holes(seed: u32, order: usize) -> Arpa {
    let mut arpa = read(&built(&random_text(seed, 80), &settings(order, 1 << 24)).0);
    let mut s = Stream::new(13, Purpose::Test, 0, seed);
    for n in 2..=order {
        let old = arpa.orders[n - 1].clone();
        let mut new = Grams::new(n);
        for i in 0..old.len() {
            if s.below(4) > 0 {
                new.words.extend_from_slice(old.words(i));
                new.probability.push(old.probability[i]);
                // Some back-offs belong to n-grams that no longer n-gram begins with.
                let odd = n < order && s.below(3) == 0;
                new.back_off.push(if odd { -0.5 } else { old.back_off[i] });
            }
        }
        arpa.orders[n - 1] = new;
    }
    arpa
}

/// The first six seeds give complete models.
fn whole_or_with_holes(seed: u32, order: usize) -> Arpa {
    if seed < 6 {
        return read(&built(&random_text(seed, 80), &settings(order, 1 << 24)).0);
    }
    with_holes(seed, order)
}

/// Random words other than `<s>`.
fn random_words(model: &Model, n: u64, s: &mut Stream) -> Vec<u32> {
    let word = |s: &mut Stream| match s.below(model.words() as u64) as u32 {
        BEGIN => UNKNOWN,
        w => w,
    };
    (0..n).map(|_| word(s)).collect()
}

#[test]
fn queries_against_recursion_and_recombination() {
    for seed in 0..12 {
        let order = 1 + seed as usize % 6;
        let arpa = whole_or_with_holes(seed, order);
        let (model, slow) = (Model::of_arpa(&arpa, "m", Progress::NONE).unwrap(), table(&arpa));
        let mut s = Stream::new(12, Purpose::Test, 0, seed);
        let mut met: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
        for _ in 0..200 {
            let words = random_words(&model, 10, &mut s);
            let mut state = model.begin();
            let mut history = vec![BEGIN];
            for &word in &words {
                let context = &history[history.len().saturating_sub(order - 1)..];
                let scored = model.score(&state, word);
                let expected = naive(&slow, context, word);
                assert!(scored.log10 == expected, "{context:?} {word}: {} {expected}", scored.log10);
                history.push(word);
                state = scored.state;
                assert!(state.len() < order.max(1));
                // Equal states score the next words alike.
                let other = met.entry(state.words().to_vec()).or_insert_with(|| history.clone());
                let mut there = model.begin();
                for &w in &other[1..] {
                    there = model.score(&there, w).state;
                }
                assert_eq!(there, state);
                for next in 0..model.words() as u32 {
                    assert_eq!(model.score(&there, next).log10, model.score(&state, next).log10);
                }
            }
        }
    }
}

/// Score of the words combined by a random binary bracketing.
fn bracketed(model: &Model, words: &[u32], s: &mut Stream) -> (Fragment, f64) {
    if words.len() <= 1 || s.below(4) == 0 {
        let mut fragment = Fragment::default();
        let score = words.iter().map(|&w| fragment.push(model, w)).sum();
        return (fragment, score);
    }
    let cut = 1 + s.below(words.len() as u64 - 1) as usize;
    let (mut left, a) = bracketed(model, &words[..cut], s);
    let (right, b) = bracketed(model, &words[cut..], s);
    let change = left.join(model, &right);
    (left, a + b + change)
}

#[test]
fn any_bracketing_is_left_to_right() {
    for seed in 0..12 {
        let order = 1 + seed as usize % 6;
        let arpa = whole_or_with_holes(seed, order);
        let model = Model::of_arpa(&arpa, "m", Progress::NONE).unwrap();
        let mut s = Stream::new(14, Purpose::Test, 0, seed);
        for _ in 0..300 {
            let n = 1 + s.below(12);
            let words = random_words(&model, n, &mut s);
            let mut state = model.begin();
            let mut expected = 0.0;
            for &w in &words {
                let scored = model.score(&state, w);
                expected += f64::from(scored.log10);
                state = scored.state;
            }
            let (fragment, score) = bracketed(&model, &words, &mut s);
            let mut whole = Fragment::begin(&model);
            let total = score + whole.join(&model, &fragment);
            assert!((total - expected).abs() < 1e-4, "{words:?} {total} {expected}");
            assert_eq!(*whole.right(), state);
        }
    }
}

#[test]
fn binaries_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lm.bin");
    let arpa = read(&built(&random_text(1, 50), &settings(3, 1 << 24)).0);
    Model::compile(&arpa, "m", &path, Progress::NONE).unwrap();
    let model = Model::open(&path).unwrap();
    assert!(model.info().mapped);
    let words: Vec<u32> = ["w0", "w1", "none"].iter().map(|w| model.word(w)).collect();
    assert_eq!(model.sentence(&words), Model::of_arpa(&arpa, "m", Progress::NONE).unwrap().sentence(&words));
    assert_eq!((words[2], model.text(words[1]), model.sentence(&words).unknown), (UNKNOWN, "w1", 1));
    let whole = std::fs::read(&path).unwrap();
    let broken = |change: &dyn Fn(&mut Vec<u8>), expected: &str| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        let path = dir.path().join("broken");
        std::fs::write(&path, bytes).unwrap();
        let message = Model::open(&path).err().unwrap().to_string();
        assert!(message.contains(expected) && message.contains("lm compile"), "{message}");
    };
    broken(&|b| b[8] = 9, "version 9, expected 1");
    broken(&|b| b[12] = 0, "was not finished");
    broken(&|b| b.truncate(b.len() / 2), "truncated");
    broken(&|b| b.truncate(100), "truncated");
    broken(&|b| b[80..88].fill(0xff), "damaged");
    assert!(
        !dir.path().read_dir().unwrap().flatten().any(|e| e.path().extension().is_some_and(|x| x == "tmp"))
    );
    assert!(Model::open(Path::new("/nowhere")).is_err());
    let shared = |_: &(dyn Send + Sync)| {};
    shared(&model);
    // Damage anywhere gives an error or wrong numbers, never a panic or an infinite loop.
    let mut s = Stream::new(15, Purpose::Test, 0, 0);
    for _ in 0..2000 {
        let mut bytes = whole.clone();
        let at = s.below(bytes.len() as u64) as usize;
        bytes[at] = s.below(256) as u8;
        let path = dir.path().join("flipped");
        std::fs::write(&path, bytes).unwrap();
        if let Ok(model) = Model::open(&path) {
            let words: Vec<u32> = ["w0", "w3", "none", "w1"].iter().map(|w| model.word(w)).collect();
            model.sentence(&words);
            for w in words {
                model.text(w);
            }
        }
    }
}

/// Whenever the callback answers *stop*, the call fails with that error and leaves no file.
#[test]
fn interrupted_work_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (arpa_path, binary_path) = (dir.path().join("lm.arpa"), dir.path().join("lm.bin"));
    let text = random_text(3, 300);
    let whole = read(&built(&text, &settings(3, 1 << 24)).0);
    let make = |progress: Progress<'_>| -> luthier_core::Result<()> {
        let mut input = Input::new("text", std::io::Cursor::new(text.clone().into_bytes()))?;
        let mut out = AtomicFile::create(&arpa_path)?;
        estimate(&mut input, &settings(3, 1 << 24), &mut out, progress)?;
        out.commit()?;
        let arpa = Arpa::read(&arpa_path, progress)?;
        std::fs::remove_file(&arpa_path).unwrap();
        Model::compile(&arpa, "lm", &binary_path, progress).map(|_| ())
    };
    let calls = std::sync::atomic::AtomicUsize::new(0);
    for last in 0.. {
        calls.store(0, std::sync::atomic::Ordering::Relaxed);
        let stop = |step: &Step| {
            assert!(["lines", "n-grams", "records"].contains(&step.what));
            match calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
                n if n < last => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        };
        let Err(error) = make(Progress::new(&stop)) else {
            assert!(last > 10, "{last}");
            break;
        };
        assert_eq!(error.kind(), ErrorKind::Interrupted);
        let left = std::fs::read_dir(dir.path()).unwrap().flatten().map(|e| e.path());
        assert!(left.filter(|p| *p != arpa_path).count() == 0);
    }
    assert_eq!(Model::open(&binary_path).unwrap().words(), whole.vocabulary.len());
}
