//! Held-out scores, resamples and constraints on weights with the real binary.
#![allow(clippy::unwrap_used)]

mod common;

use common::{in_dir, kill_after, luthier, ok_in, stderr};
use serde_json::Value;
use std::{fs, path::Path};

fn examples() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/rerank").display().to_string()
}

/// Lists of the example with a document for every four segments.
fn with_documents(dir: &Path) {
    let text = fs::read_to_string(format!("{}/dev.jsonl", examples())).unwrap();
    let mut out = String::new();
    for line in text.lines() {
        let mut row: Value = serde_json::from_str(line).unwrap();
        let id = row["id"].as_u64().unwrap();
        row["doc"] = Value::from(format!("d{}", id / 4));
        out += &format!("{row}\n");
    }
    fs::write(dir.join("dev.jsonl"), out).unwrap();
    fs::copy(format!("{}/dev.en", examples()), dir.join("dev.en")).unwrap();
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Everything that a run has written about its result.
fn results(run: &Path) -> Vec<String> {
    let text = |name: &str| fs::read_to_string(run.join(name)).unwrap();
    vec![text("best.txt"), text("validation.json"), text("bootstrap.json")]
}

#[test]
fn folds_and_resamples_have_the_same_bits_on_any_threads_and_after_kills() {
    let dir = tempfile::tempdir().unwrap();
    with_documents(dir.path());
    for algorithm in ["mert", "pro", "oro"] {
        let words = |run: &str, threads: u32| {
            format!(
                "tune {algorithm} --nbest dev.jsonl --ref dev.en --run {run} --folds 4 --bootstrap 30 --seed 3 \
                 --threads {threads} --group-column doc --quiet"
            )
        };
        let [one, two, killed] = ["one", "two", "killed"].map(|r| format!("{algorithm}-{r}"));
        let said = ok_in(dir.path(), &words(&one, 1));
        assert!(said.contains("(4 folds; weights of 3/4 of the segments)"), "{said}");
        ok_in(dir.path(), &words(&two, 2));
        kill_after(dir.path(), &words(&killed, 2), &[20, 60, 150, 300]);
        ok_in(dir.path(), &words(&killed, 2));
        let results = |run: &str| results(&dir.path().join(run));
        assert_eq!(results(&one), results(&two));
        assert_eq!(results(&one), results(&killed));
        // Documents stay together.
        let part_of = json(&dir.path().join(&one).join("validation.json"))["part_of"].clone();
        let part_of = part_of.as_array().unwrap();
        assert!(part_of.chunks(4).all(|c| c.iter().all(|p| p == &c[0])), "{part_of:?}");
        assert_eq!(part_of.len(), 40);
    }
}

#[test]
fn a_share_is_held_out_from_learning() {
    let dir = tempfile::tempdir().unwrap();
    with_documents(dir.path());
    let common = "--nbest dev.jsonl --ref dev.en --ignore-columns doc --quiet";
    let said = ok_in(dir.path(), &format!("tune mira {common} --run part --holdout 0.25 --json"));
    let said: Value = serde_json::from_str(&said).unwrap();
    let held = &said["held_out"];
    assert_eq!((held["segments"].as_u64(), held["parts"].as_array().unwrap().len()), (Some(10), 1));
    // The held-out score is that of reranking these segments.
    ok_in(
        dir.path(),
        &format!("rerank --nbest dev.jsonl --weights part/best.txt -o out.en {common}")
            .replace("--ref dev.en", ""),
    );
    let part_of = held["part_of"].as_array().unwrap();
    let pick = |name: &str| {
        let text = fs::read_to_string(dir.path().join(name)).unwrap();
        let lines = text.lines().zip(part_of).filter(|(_, p)| !p.is_null());
        lines.map(|(line, _)| format!("{line}\n")).collect::<String>()
    };
    for name in ["out.en", "dev.en"] {
        fs::write(dir.path().join(format!("held.{name}")), pick(name)).unwrap();
    }
    let score = ok_in(dir.path(), "score held.out.en --ref held.dev.en --tokenize none --json");
    let score: Value = serde_json::from_str(&score).unwrap();
    let (ours, theirs) = (held["score"].as_f64().unwrap(), score[0]["score"].as_f64().unwrap());
    assert!((ours - theirs).abs() < 1e-9, "{ours} {theirs}");
}

#[test]
fn folds_and_resamples_with_a_decoder() {
    let dir = tempfile::tempdir().unwrap();
    ok_in(dir.path(), "generate -o corpus --train 300 --dev 30 --test 5 --quiet");
    ok_in(dir.path(), "train --source corpus/train.de --target corpus/train.en --model model --quiet");
    for (algorithm, more) in [("mira", "--bootstrap 10"), ("softmax --on forest", "")] {
        let run = algorithm.split(' ').next().unwrap();
        let words = |run: &str, threads: u32| {
            format!(
                "tune {algorithm} --model model --source corpus/dev.de --ref corpus/dev.en --run {run} --folds 2 \
                 --iterations 2 --threads {threads} {more}"
            )
        };
        let said = in_dir(dir.path(), &words(run, 1));
        assert!(said.status.success(), "{}", stderr(&said));
        assert!(
            stderr(&said).contains("3 runs of up to 2 iterations each: decoding takes about"),
            "{}",
            stderr(&said)
        );
        ok_in(dir.path(), &words(&format!("{run}-again"), 2));
        let text = |run: &str, name: &str| fs::read_to_string(dir.path().join(run).join(name)).unwrap();
        assert_eq!(text(run, "validation.json"), text(&format!("{run}-again"), "validation.json"));
        if !more.is_empty() {
            let found = json(&dir.path().join(run).join("bootstrap.json"));
            assert_eq!(found["samples"], 10);
            assert!(found["features"].as_array().unwrap().len() > 10);
        }
    }
}

#[test]
fn weights_keep_their_constraints() {
    let dir = tempfile::tempdir().unwrap();
    with_documents(dir.path());
    let tune = |words: &str, run: &str| -> Value {
        let words = format!(
            "tune {words} --nbest dev.jsonl --ref dev.en --run {run} --ignore-columns doc --quiet --json"
        );
        serde_json::from_str(&ok_in(dir.path(), &words)).unwrap()
    };
    let algorithms = [
        "mert",
        "pro",
        "apro",
        "mira",
        "perceptron",
        "oro",
        "oro --optimized",
        "softmax",
        "xbleu",
        "risk",
        "mira --constraints oracle",
        "mira --constraints surrogate",
    ];
    for (i, algorithm) in algorithms.into_iter().enumerate() {
        let found = tune(&format!("{algorithm} --nonnegative --standardize"), &format!("positive-{i}"));
        let weights = found["weights"].as_object().unwrap();
        assert!(weights.values().all(|w| w.as_f64().unwrap() >= 0.0), "{algorithm} {weights:?}");
        assert!(weights.values().any(|w| w.as_f64().unwrap() > 0.0), "{algorithm} {weights:?}");
    }
    // Features on another scale: standardised learning gives the same choices, and weights on that scale.
    let text = fs::read_to_string(dir.path().join("dev.jsonl")).unwrap();
    let mut scaled = String::new();
    for line in text.lines() {
        let mut row: Value = serde_json::from_str(line).unwrap();
        let features = if row["features"].is_object() { &mut row["features"] } else { &mut row };
        features["lm"] = Value::from(features["lm"].as_f64().unwrap() * 1024.0);
        scaled += &format!("{row}\n");
    }
    for (i, algorithm) in ["pro", "apro", "softmax", "mira", "oro"].into_iter().enumerate() {
        let raw = tune(&format!("{algorithm} --standardize"), &format!("raw-{i}"));
        fs::write(dir.path().join("dev.jsonl"), &scaled).unwrap();
        let far = tune(&format!("{algorithm} --standardize"), &format!("far-{i}"));
        fs::write(dir.path().join("dev.jsonl"), &text).unwrap();
        let lm = |v: &Value| v["weights"]["lm"].as_f64().unwrap();
        assert!((lm(&raw) / lm(&far) / 1024.0 - 1.0).abs() < 1e-6, "{algorithm} {} {}", lm(&raw), lm(&far));
    }
    let cases = ["pro --l1", "apro --l1", "softmax --l1", "risk --l1", "xbleu --l1", "oro --l1 0.1"];
    for (i, flags) in cases.into_iter().enumerate() {
        let algorithm = flags.split(' ').next().unwrap();
        let found = tune(flags, &format!("l1-{i}"));
        assert_eq!(found["recipe"]["standardize"], true, "{algorithm}");
        let few = tune(&format!("{algorithm} --l1 1e6"), &format!("l1-large-{i}"));
        let weights = few["weights"].as_object().unwrap();
        assert!(weights.values().all(|w| w == 0.0), "{algorithm} {weights:?}");
    }
}

#[test]
fn mistakes_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    with_documents(dir.path());
    for (words, message) in [
        ("mert --holdout 1.5", "--holdout is `1.5`, expected a number above 0 and below 1"),
        ("mert --folds 41", "40 segments cannot be divided into 41 parts; give more data, or fewer folds"),
        (
            "mert --folds 11 --group-column doc",
            "10 groups of segments cannot be divided into 11 parts; give more data, or fewer folds",
        ),
        ("mert --folds 2 --group-column nope", "dev.jsonl: no candidate has `nope`; check --group-column"),
        (
            "mert --nonnegative nope",
            "--nonnegative names `nope`, which is not a feature; the features are logprob, lm, length",
        ),
        (
            "oro --l1 0.1 --mixing line-search",
            "--l1 does not go with --mixing line-search, which mixes removed features in again; use --mixing average",
        ),
        ("pro --loss hinge --l1", "--l1 needs a smooth loss; use --loss logistic"),
        ("softmax --l1 --gamma 1,2", "--l1 does not go with several values of --gamma; give one of them"),
        (
            "mert --certify --nonnegative --fix lm",
            "--certify does not go with --fix and --nonnegative; leave out --certify, or the constraints on the weights",
        ),
        (
            "mert --nonnegative --bound lm=-1,1",
            "--bound lm=-1,1 contradicts --nonnegative; leave out one of them, or give bounds from 0 up",
        ),
        (
            "mert --metric column:lm --feature-columns logprob,length",
            "dev.jsonl:1: the column `lm`, which the metric reads, is ignored; add it to --feature-columns, or \
             leave it out of --ignore-columns; a column that the metric reads is not a feature",
        ),
        (
            "mert --standardize --fix lm",
            "--standardize does not go with --fix and --bound; leave one of them out",
        ),
    ] {
        let group = if words.contains("group") { "" } else { "--ignore-columns doc" };
        let output = in_dir(
            dir.path(),
            &format!("tune {words} --nbest dev.jsonl --ref dev.en --run run {group} --quiet"),
        );
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert_eq!(stderr(&output), format!("luthier: {message}\n"), "{words}");
        assert!(!dir.path().join("run").exists(), "{words}");
    }
}

/// Output that does not change is no evidence of a difference.
#[test]
fn the_same_output_is_not_significant() {
    let dir = tempfile::tempdir().unwrap();
    // The first candidate of every list is the best, and the initial weights choose it.
    let mut lists = String::new();
    for id in 0..12 {
        for (text, lm) in [("a b c d e", 2.0), ("a b x d e", 1.0)] {
            lists += &format!(
                "{{\"id\":{id},\"text\":\"{text}\",\"lm\":{lm},\"tm\":{}}}\n",
                lm + f64::from(id % 3)
            );
        }
    }
    fs::write(dir.path().join("lists.jsonl"), lists).unwrap();
    fs::write(dir.path().join("ref"), "a b c d e\n".repeat(12)).unwrap();
    for flag in ["--holdout 0.5", "--folds 3"] {
        let run = &flag[2..5];
        let said =
            ok_in(dir.path(), &format!("tune mert --nbest lists.jsonl --ref ref --run {run} {flag} --quiet"));
        assert!(said.contains("held-out BLEU 100.00 -> 100.00 ± 0.00, p = 1.0000"), "{said}");
    }
}

/// Documents are the units of interval and p-value; documents of one segment each give the same figures as none.
#[test]
fn documents_are_resampled_as_a_whole() {
    let dir = tempfile::tempdir().unwrap();
    with_documents(dir.path());
    let tune = |run: &str, flag: &str| -> Value {
        let words = format!(
            "tune mira --nbest dev.jsonl --ref dev.en --run {run} --holdout 0.4 {flag} --quiet --json"
        );
        serde_json::from_str(&ok_in(dir.path(), &words)).unwrap()
    };
    let text = fs::read_to_string(dir.path().join("dev.jsonl")).unwrap();
    let grouped = tune("grouped", "--group-column doc");
    // A document of its own for every segment.
    let alone: String = text
        .lines()
        .map(|line| {
            let mut row: Value = serde_json::from_str(line).unwrap();
            row["doc"] = Value::from(format!("{}", row["id"]));
            format!("{row}\n")
        })
        .collect();
    fs::write(dir.path().join("dev.jsonl"), alone).unwrap();
    let own = tune("own", "--group-column doc");
    let ids = tune("ids", "--ignore-columns doc");
    assert_eq!(own["held_out"], ids["held_out"]);
    assert_ne!(grouped["held_out"]["interval"], ids["held_out"]["interval"]);
    let p = grouped["held_out"]["p_value"].as_f64().unwrap();
    assert!(p > 0.0 && p <= 1.0);
}

#[test]
fn empty_groups_are_refused_with_their_line() {
    let dir = tempfile::tempdir().unwrap();
    let table = "id\ttext\tlm\tdoc\n0\ta\t1\tx\n0\tb\t2\tx\n1\ta\t1\t\n";
    fs::write(dir.path().join("lists.tsv"), table).unwrap();
    let json = "{\"id\":0,\"text\":\"a\",\"lm\":1,\"doc\":\" \"}\n";
    fs::write(dir.path().join("lists.jsonl"), json).unwrap();
    fs::write(dir.path().join("ref"), "a\nb\n").unwrap();
    for (file, line) in [("lists.tsv", 4), ("lists.jsonl", 1)] {
        let words =
            format!("tune mert --nbest {file} --ref ref --run run --folds 2 --group-column doc --quiet");
        let output = in_dir(dir.path(), &words);
        let message = format!(
            "luthier: {file}:{line}: `doc` is empty, expected the group of the segment; fill it in, or leave out \
             --group-column\n"
        );
        assert_eq!(stderr(&output), message);
    }
}

/// A penalty that leaves weights with a lower score than the initial ones is warned about, and resamples keep the penalty
/// that was chosen on all data.
#[test]
fn penalties_are_warned_about_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    with_documents(dir.path());
    let words =
        |more: &str| format!("tune {more} --nbest dev.jsonl --ref dev.en --ignore-columns doc --seed 3");
    let said = in_dir(dir.path(), &words("softmax --l1 1e6 --run large"));
    let warning =
        "the weights that were learned with --l1 score worse than the initial ones; try a smaller --l1";
    assert!(stderr(&said).contains(warning), "{}", stderr(&said));
    ok_in(dir.path(), &words("softmax --l1 --bootstrap 8 --run chosen --quiet"));
    let log = fs::read_to_string(dir.path().join("chosen/log.jsonl")).unwrap();
    let l1 =
        log.lines().find_map(|line| serde_json::from_str::<Value>(line).unwrap()["l1"].as_f64()).unwrap();
    ok_in(dir.path(), &words(&format!("softmax --l1 {l1} --bootstrap 8 --run given --quiet")));
    // The answers differ by the accuracy of the minimiser.
    let ends = |run: &str| -> Vec<f64> {
        let found = json(&dir.path().join(run).join("bootstrap.json"));
        let features = found["features"].as_array().unwrap().clone();
        features.iter().flat_map(|f| [f["low"].as_f64().unwrap(), f["high"].as_f64().unwrap()]).collect()
    };
    let (chosen, given) = (ends("chosen"), ends("given"));
    assert!(chosen.iter().zip(&given).all(|(a, b)| (a - b).abs() < 1e-3), "{chosen:?} {given:?}");
}

/// Runs of another kind in the directory are refused before any work.
#[test]
fn directories_of_other_runs_are_refused_first() {
    let dir = tempfile::tempdir().unwrap();
    with_documents(dir.path());
    let words = |more: &str| {
        format!("tune mira --nbest dev.jsonl --ref dev.en --ignore-columns doc --run run --seed 3 {more}")
    };
    ok_in(dir.path(), &words("--folds 3 --quiet"));
    for more in ["--folds 4", "--holdout 0.3", "--folds 3 --epochs 2"] {
        let more = more.replace("--epochs", "--nbest-format jsonl --iterations");
        let output = in_dir(dir.path(), &words(&more));
        assert_eq!(output.status.code(), Some(2), "{more}");
        assert!(!stderr(&output).contains("iteration 0"), "{more}: {}", stderr(&output));
    }
}

/// `mert --standardize` gives weights whose absolute values sum to 1, as without it.
#[test]
fn standardised_weights_of_mert_are_normalised() {
    let dir = tempfile::tempdir().unwrap();
    with_documents(dir.path());
    let words = "tune mert --standardize --nbest dev.jsonl --ref dev.en --ignore-columns doc --run run --quiet --json";
    let found: Value = serde_json::from_str(&ok_in(dir.path(), words)).unwrap();
    let sum: f64 = found["weights"].as_object().unwrap().values().map(|w| w.as_f64().unwrap().abs()).sum();
    assert!((sum - 1.0).abs() < 1e-12, "{sum}");
}

/// Each fold of a run with an external decoder has weights, lists and logs of its own.
#[test]
fn folds_have_decode_directories_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    with_documents(dir.path());
    ok_in(dir.path(), "convert --nbest dev.jsonl --ignore-columns doc --to moses -o nbest");
    fs::write(dir.path().join("source"), "x\n".repeat(40)).unwrap();
    fs::copy(format!("{}/init.txt", examples()), dir.path().join("init")).unwrap();
    let words =
        "tune mira --source source --ref dev.en --init init --run run --folds 2 --iterations 1 --quiet";
    let output = luthier()
        .args(words.split_whitespace())
        .args(["--command", "test -s {weights} && cat nbest"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    for run in ["run", "run/folds/1", "run/folds/2"] {
        assert!(dir.path().join(run).join("decode/000.weights").exists(), "{run}");
    }
    let first = |run: &str| fs::read_to_string(dir.path().join(run).join("decode/001.weights")).unwrap();
    assert_ne!(first("run/folds/1"), first("run/folds/2"));
}
