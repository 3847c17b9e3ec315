//! Tests of saved forests, and of learning on forests, with the real binary.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod common;

use common::{Failures, in_dir, kill_after, ok_in, stderr};
use std::{fs, path::Path};

/// Generates the corpus `c`, trains the hierarchical model `m` on it and saves the forests `f` of its development set.
fn small_model(dir: &Path) {
    ok_in(dir, "generate --output c --train 1200 --dev 30 --test 30 -q");
    ok_in(dir, "train --source c/train.de --target c/train.en --model m --kind hiero --oov -q");
    ok_in(dir, "decode --model m --input c/dev.de --forest-kind grammar --forest-out f -q");
}

fn best(dir: &Path, run: &str) -> String {
    let text = fs::read_to_string(dir.join(run).join("best.txt")).unwrap();
    text.lines().filter(|l| !l.starts_with('#')).map(|l| format!("{l}\n")).collect()
}

fn fails_in(dir: &Path, words: &str) -> String {
    let output = in_dir(dir, words);
    assert_eq!(output.status.code(), Some(2), "{words}");
    let text = stderr(&output).trim_end().to_owned();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn saved_forests_give_what_decoding_gives() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    small_model(dir);
    let text = fs::read_to_string(dir.join("m/weights.txt")).unwrap();
    fs::write(dir.join("w"), text.replace("LM0 0.5", "LM0 0.9").replace("Glue0 1", "Glue0 -1")).unwrap();
    for weights in ["m/weights.txt", "w"] {
        for table in [1, 20] {
            let words = format!(
                "decode --model m --weights {weights} --pop-limit 30 --table-limit {table} --nbest 20 -q"
            );
            ok_in(dir, &format!("{words} --input c/dev.de -o a --nbest-out a.n"));
            ok_in(dir, &format!("{words} --forests f -o b --nbest-out b.n --threads 2"));
            for (a, b) in [("a", "b"), ("a.n", "b.n")] {
                assert_eq!(fs::read(dir.join(a)).unwrap(), fs::read(dir.join(b)).unwrap(), "{weights}");
            }
        }
    }
    let words = "--model m --source c/dev.de --ref c/dev.en --nbest-size 30 --pop-limit 30 --iterations 2 -q";
    for algorithm in ["mert", "oro --optimized --shards 4 --mixing line-search", "perceptron"] {
        let name = algorithm.split(' ').next().unwrap();
        ok_in(dir, &format!("tune {algorithm} {words} --run {name}-a"));
        ok_in(dir, &format!("tune {algorithm} {words} --run {name}-b --forests f"));
        assert_eq!(best(dir, &format!("{name}-a")), best(dir, &format!("{name}-b")), "{algorithm}");
    }
}

/// Weights are bit-for-bit identical with 1 and 2 threads and after interruptions.
#[test]
fn learning_on_forests_does_not_depend_on_the_machine() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    small_model(dir);
    ok_in(dir, "train --source c/train.de --target c/train.en --model p -q");
    let algorithms =
        ["mert --restarts 2 --random-directions 2", "xbleu", "softmax --psi 0.1", "mira --epochs 3"];
    for model in ["m --forests f", "p"] {
        for algorithm in algorithms {
            let words = format!(
                "tune {algorithm} --on forest --density 20 --model {model} --source c/dev.de --ref c/dev.en \
                 --iterations 3 --pop-limit 30 --stack-size 30 -q"
            );
            let run = format!("{}{}", &model[..1], algorithm.split(' ').next().unwrap());
            let made = ok_in(dir, &format!("{words} --run {run}-1 --threads 1 --json"));
            let made: serde_json::Value = serde_json::from_str(&made).unwrap();
            // With 30 sentences, only MERT, which optimises the score itself, is certain to improve it.
            let better = made["score"].as_f64() > made["initial"].as_f64();
            assert!(better || !algorithm.starts_with("mert"), "{words}: {made}");
            ok_in(dir, &format!("{words} --run {run}-2 --threads 2"));
            let expected = best(dir, &format!("{run}-1"));
            assert_eq!(best(dir, &format!("{run}-2")), expected, "{words}");
            kill_after(dir, &format!("{words} --run {run}-k"), &[100, 250, 500]);
            ok_in(dir, &format!("{words} --run {run}-k"));
            assert_eq!(best(dir, &format!("{run}-k")), expected, "{words}");
            // The reported score is the score of the decoder's output.
            let weights = format!("{run}-1/best.txt");
            let model = &model[..1];
            ok_in(
                dir,
                &format!(
                    "decode --model {model} --weights {weights} --input c/dev.de -o out --pop-limit 30 --stack-size 30 -q"
                ),
            );
            let found: serde_json::Value =
                serde_json::from_str(&ok_in(dir, "score out --ref c/dev.en --tokenize none --json")).unwrap();
            let (a, b) = (found[0]["score"].as_f64().unwrap(), made["score"].as_f64().unwrap());
            assert!((a - b).abs() < 1e-9, "{words}: {a} {b}");
        }
    }
}

#[test]
fn bad_input_is_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    small_model(dir);
    ok_in(dir, "train --source c/train.de --target c/train.en --model p -q");
    ok_in(dir, "train --source c/dev.de --target c/dev.en --model other --kind hiero --oov -q");
    let whole = fs::read(dir.join("f")).unwrap();
    fs::write(dir.join("short"), &whole[..whole.len() / 2]).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 3] ^= 1;
    fs::write(dir.join("damaged"), &damaged).unwrap();
    let mut unfinished = whole;
    unfinished[12..16].fill(0);
    fs::write(dir.join("unfinished"), &unfinished).unwrap();
    let tune = "tune mert --model m --ref c/dev.en --run r -q --source c/dev.de";
    let cases = [
        ("decode --model m --forests c/dev.de", "c/dev.de: is not a file of forests"),
        ("decode --model m --forests short", "truncated or appended to"),
        ("decode --model m --forests damaged", "damaged: is a damaged file of forests"),
        ("decode --model m --forests unfinished", "whose writing was not finished"),
        ("decode --model m --forests nowhere", "nowhere: cannot open it"),
        ("decode --model other --forests f", "was made with another table or other language models"),
        ("decode --model m --forests f --span-limit 7", "was made with --span-limit 20, not 7"),
        ("decode --model p --forests f", "--forests is for hierarchical models"),
        (
            "decode --model p --input c/dev.de --forest-kind grammar --forest-out x",
            "is for hierarchical models",
        ),
        (
            "decode --model m --input c/dev.de --forest-kind grammar --forest-out -",
            "is not a regular, uncompressed file",
        ),
        (
            "decode --model m --input c/dev.de --forest-kind grammar --forest-out x --json",
            "translates nothing",
        ),
        (&format!("{tune} --forests damaged"), "is a damaged file of forests"),
        (
            &tune.replace("dev", "test").replace("-q", "-q --forests f"),
            "sentence 1 is not line 1 of --source",
        ),
        (
            "tune mert --model p --ref c/dev.en --run r -q --source c/dev.de --forests f",
            "is for hierarchical models",
        ),
        (&format!("{tune} --density 3"), "--density has no effect without --on forest"),
        ("tune mert --nbest x --ref c/dev.en --run r -q --on forest", "--on forest needs --model"),
        (
            &format!("{} --on forest --metric chrf", tune.replace("mert", "softmax")),
            "the metric must be BLEU",
        ),
        (
            &format!("{} --on forest --clip candidate", tune.replace("mert", "xbleu")),
            "--clip candidate needs single candidates",
        ),
        (
            &format!("{} --on forest --constraints oracle", tune.replace("mert", "mira")),
            "--on forest has no effect",
        ),
    ];
    for (words, expected) in cases {
        let line = fails_in(dir, words);
        assert!(line.contains(expected), "{words}\n{line}");
    }
    for left in ["x", "r"] {
        assert!(!dir.join(left).exists(), "{left}");
    }
    assert!(fs::read_dir(dir).unwrap().all(|f| !f.unwrap().file_name().to_string_lossy().starts_with('.')));
}

#[test]
fn found_in_review() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    small_model(dir);
    // A feature without initial weight is numbered and bounded before the first decoding, so that a resumed run gives
    // identical weights.
    let text = fs::read_to_string(dir.join("m/weights.txt")).unwrap();
    let some: String = text.lines().filter(|l| !l.starts_with("LM0")).map(|l| format!("{l}\n")).collect();
    fs::write(dir.join("some"), some).unwrap();
    let words = "tune mert --on forest --density 5 --model m --forests f --source c/dev.de --ref c/dev.en --init some \
                 --bound LM0=0.3,1 --restarts 1 --random-directions 1 --iterations 4 --pop-limit 30";
    ok_in(dir, &format!("{words} -q --run a"));
    kill_after(dir, &format!("{words} -q --run b"), &[80, 160, 240, 320]);
    ok_in(dir, &format!("{words} -q --run b"));
    assert_eq!(best(dir, "a"), best(dir, "b"));
    ok_in(dir, "decode --model m --weights a/weights/000.txt --input c/dev.de -o out --pop-limit 30 -q");
    let found: serde_json::Value =
        serde_json::from_str(&ok_in(dir, "score out --ref c/dev.en --tokenize none --json")).unwrap();
    let log = fs::read_to_string(dir.join("a/log.jsonl")).unwrap();
    let first: serde_json::Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    assert!((found[0]["score"].as_f64().unwrap() - first["score"].as_f64().unwrap()).abs() < 1e-9);
    // Ties do not enlarge the pruned forests.
    fs::write(dir.join("zero"), "LM0 0\nWordPenalty0 0\n").unwrap();
    let output = in_dir(
        dir,
        "tune mira --on forest --density 5 --epochs 1 --model m --forests f --source c/dev.de --ref c/dev.en --init zero \
         --iterations 1 --pop-limit 30 --run z",
    );
    let log = fs::read_to_string(dir.join("z/log.jsonl")).unwrap();
    let first: serde_json::Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    let words = fs::read_to_string(dir.join("c/dev.de")).unwrap().split_whitespace().count() as u64;
    assert!(first["candidates"].as_u64().unwrap() < 11 * words, "{}", stderr(&output));
    assert!(stderr(&output).contains(" edges  change"), "{}", stderr(&output));
    // Saved forests do not fix the treatment of unknown words.
    fs::write(dir.join("odd"), "x y\n\n").unwrap();
    ok_in(dir, "decode --model m --input odd --forest-kind grammar --forest-out o -q");
    ok_in(dir, "decode --model m --forests o --drop-unknown -o dropped -q");
    assert_eq!(fs::read_to_string(dir.join("dropped")).unwrap(), "\n\n");
    // Flags without effect are errors.
    let tune = "--on forest --model m --source c/dev.de --ref c/dev.en --run r -q";
    let failures = Failures::default();
    for (words, expected) in [
        (format!("tune xbleu {tune} --metric bleu:tokenize=char"), "so BLEU must have tokenize=none"),
        (format!("tune softmax {tune} --sparse word-pair"), "but --sparse is given"),
        (format!("tune xbleu {tune} --reset-at 3"), "--reset-at has no effect"),
        (format!("tune mert {tune} --nbest-size 30"), "--nbest-size has no effect"),
        (
            "decode --model m --input odd --forest-kind grammar --forest-out x --stats".to_owned(),
            "cannot be given",
        ),
        ("decode --model m --forests .".to_owned(), "is not a regular file"),
        ("decode --model m --forests -".to_owned(), "cannot open it"),
        ("decode --model m --forests m/table.bin".to_owned(), "is not a file of forests; make one with"),
    ] {
        failures.row(&words, || {
            let line = fails_in(dir, &words);
            assert!(line.contains(expected), "{words}\n{line}");
        });
    }
}
