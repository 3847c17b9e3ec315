//! Tests of online learning, sparse features and constrained decoding, with the real binary.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod common;

use common::{Failures, in_dir, kill_after, ok_in, stderr, write_pool};
use serde_json::Value;
use std::{fs, path::Path};

/// Generates the corpus `c`, trains the model `m` with phrases of up to three words and writes 40 training sentences as
/// `some.de` and `some.en`.
fn small_model(dir: &Path) {
    ok_in(dir, "generate --output c --train 1500 --dev 40 --test 40 -q");
    ok_in(dir, "train --source c/train.de --target c/train.en --model m --max-length 3 -q");
    for side in ["de", "en"] {
        let text = fs::read_to_string(dir.join(format!("c/train.{side}"))).unwrap();
        let some: Vec<&str> = text.lines().take(40).collect();
        fs::write(dir.join(format!("some.{side}")), some.join("\n") + "\n").unwrap();
    }
    fs::write(dir.join("zero"), "WordPenalty0 0\nDistortion0 0\n").unwrap();
}

fn log(dir: &Path, run: &str) -> Vec<Value> {
    let text = fs::read_to_string(dir.join(run).join("log.jsonl")).unwrap();
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn best(dir: &Path, run: &str) -> String {
    let text = fs::read_to_string(dir.join(run).join("best.txt")).unwrap();
    text.lines().filter(|l| !l.starts_with('#')).map(|l| format!("{l}\n")).collect()
}

/// Threads and interruptions during an epoch do not affect the result, also when sparse features and surrogates are added.
#[test]
fn learning_does_not_depend_on_the_machine() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    small_model(dir);
    let common = "--source some.de --ref some.en --select-source c/dev.de --select-ref c/dev.en --model m --iterations 3 \
                  --nbest-size 20 --pop-limit 50 --stack-size 30 -q";
    let sparse = "--sparse arun-koehn,hopkins-may --dense WordPenalty0,Distortion0 --init zero";
    for (name, words) in [
        ("perceptron", format!("tune perceptron --update local {sparse} --shards 2")),
        ("max-bleu", format!("tune mira --constraints surrogate --update max-bleu --weighted {sparse}")),
        ("oracle", "tune mira --constraints oracle --shards 3".to_owned()),
        ("oro", format!("tune oro {sparse} --batch-size 4 --shards 2")),
        ("o-oro", "tune oro --optimized --batch-size 8".to_owned()),
    ] {
        ok_in(dir, &format!("{words} {common} --run {name}-1 --threads 1"));
        ok_in(dir, &format!("{words} {common} --run {name}-2 --threads 2"));
        let expected = best(dir, &format!("{name}-1"));
        assert_eq!(best(dir, &format!("{name}-2")), expected);
        let run = format!("{name}-killed");
        kill_after(dir, &format!("{words} {common} --run {run}"), &[60, 150, 300]);
        ok_in(dir, &format!("{words} {common} --run {run}"));
        assert_eq!(best(dir, &run), expected, "{name}");
        let scores = |run: &str| -> Vec<String> {
            let of =
                |e: &Value| format!("{:?} {:?} {:?}", e.get("select"), e.get("surrogate"), e.get("features"));
            log(dir, run).iter().map(of).collect()
        };
        assert_eq!(scores(&run), scores(&format!("{name}-1")));
    }
    // The log has the values that the papers report, and decoding reproduces the score of the run.
    let events = log(dir, "perceptron-1");
    let number = |e: &Value, key: &str| e[key].as_f64().unwrap_or_else(|| panic!("{key} in {e}"));
    for key in [
        "score",
        "select",
        "length_ratio",
        "surrogate",
        "guess",
        "features",
        "decode_seconds",
        "learn_seconds",
    ] {
        number(&events[0], key);
    }
    assert!(number(&log(dir, "oro-1")[1], "rho") >= -1.0);
    assert!(number(&events[2], "features") > 1000.0);
    assert!(number(&events[2], "guess") > number(&events[0], "guess"));
    assert!(number(&events[0], "surrogate") > number(&events[0], "guess"));
    let end = events.last().unwrap();
    ok_in(
        dir,
        "decode --model m --weights perceptron-1/best.txt --dense WordPenalty0,Distortion0 --input c/dev.de -o out --pop-limit 50 \
         --stack-size 30",
    );
    let score: Value =
        serde_json::from_str(&ok_in(dir, "score out --ref c/dev.en --tokenize none --json")).unwrap();
    assert!(
        (score[0]["score"].as_f64().unwrap() - end["score"].as_f64().unwrap()).abs() < 1e-9,
        "{score} {end}"
    );
    // Batch learners support sparse features too.
    ok_in(
        dir,
        "tune pro --source c/dev.de --ref c/dev.en --model m --sparse phrase-length --iterations 2 --run p --nbest-size 20 \
         --pop-limit 50 -q",
    );
    assert!(best(dir, "p").contains("pl:1~1 "), "{}", best(dir, "p"));
}

#[test]
fn constrained_decoding() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    small_model(dir);
    let output = in_dir(dir, "decode --model m --input some.de --force some.en -o forced");
    let said = stderr(&output);
    let (made, wanted) = ["forced", "some.en"].map(|f| fs::read_to_string(dir.join(f)).unwrap()).into();
    let reached = made.lines().filter(|l| !l.is_empty()).count();
    assert!(reached > 5, "{said}");
    assert_eq!(said, format!("{reached} of 40 references are reachable ({:.1} %)\n", 2.5 * reached as f64));
    for (m, w) in made.lines().zip(wanted.lines()) {
        assert!(m.is_empty() || m == w, "{m} {w}");
    }
    // Max-BLEU decoding scores higher than the oracle of 200-best lists.
    ok_in(dir, "decode --model m --input some.de --max-bleu some.en -o most -q");
    ok_in(dir, "decode --model m --input some.de --nbest 200 --nbest-out list -o out -q");
    let score = |words: &str| -> f64 {
        let found: Value = serde_json::from_str(&ok_in(dir, words)).unwrap();
        found.get("score").or(found[0].get("score")).unwrap().as_f64().unwrap()
    };
    let (most, oracle) = (
        score("score most --ref some.en --tokenize none --json"),
        score("oracle --nbest list --ref some.en --json"),
    );
    assert!(most > oracle, "{most} {oracle}");
    // Forced decoding outputs sparse features.
    let json = ok_in(dir, "decode --model m --input some.de --force some.en --json --sparse phrase-pair -q");
    let first: Value = serde_json::from_str(json.lines().find(|l| !l.contains("null")).unwrap()).unwrap();
    assert!(first["features"].as_object().unwrap().keys().any(|k| k.starts_with("pp:")), "{first}");
    fs::write(dir.join("short"), "a\n").unwrap();
    let fails = |words: &str, message: &str| {
        let output = in_dir(dir, words);
        assert_eq!(
            (output.status.code(), stderr(&output)),
            (Some(2), format!("{message}\n").as_str()),
            "{words}"
        );
    };
    fails(
        "decode --model m --input some.de --force short -o x",
        "luthier: short: has 1 lines, but the text has at least 2; both need one line per segment",
    );
}

/// On fixed lists, the epoch with the best score on the lists, or on the selection lists, is selected.
#[test]
fn fixed_lists() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write_pool(dir);
    fs::write(dir.join("zero"), "A= 0 0 0 0 0 0\n").unwrap();
    for words in [
        "perceptron",
        "mira --constraints surrogate",
        "mira --constraints oracle",
        "oro",
        "oro --optimized --loss softmax",
    ] {
        let run = words.replace(' ', "");
        let base = format!("tune {words} --nbest nbest --ref ref --init zero --iterations 4 -q");
        ok_in(dir, &format!("{base} --run {run}"));
        let events = log(dir, &run);
        let scores: Vec<f64> = events[..5].iter().map(|e| e["score"].as_f64().unwrap()).collect();
        // Weights of 0 are no answer, however the lists are sorted.
        let most = scores[1..].iter().copied().fold(0.0, f64::max);
        assert_eq!(events[5]["score"].as_f64().unwrap(), most, "{scores:?}");
        // Reranking with the selected weights reproduces the score.
        ok_in(dir, &format!("rerank --nbest nbest --weights {run}/best.txt -o out"));
        let found: Value =
            serde_json::from_str(&ok_in(dir, "score out --ref ref --tokenize none --json")).unwrap();
        assert!((found[0]["score"].as_f64().unwrap() - most).abs() < 1e-9, "{found} {most}");
        ok_in(dir, &format!("{base} --run {run}-s --select-nbest nbest --select-ref ref --patience 2"));
        assert_eq!(log(dir, &format!("{run}-s"))[1]["select"], events[1]["score"]);
        assert_eq!(best(dir, &format!("{run}-s")), best(dir, &run));
    }
}

#[test]
fn bad_input_is_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    ok_in(dir, "generate --output c --train 200 --dev 10 --test 10 -q");
    ok_in(dir, "train --source c/train.de --target c/train.en --model m -q");
    let base = "--model m --source c/dev.de --ref c/dev.en --run r -q";
    let failures = Failures::default();
    let fails = |words: &str, message: &str| {
        failures.row(words, || {
            let output = in_dir(dir, words);
            assert_eq!(output.status.code(), Some(2), "{words}");
            assert_eq!(stderr(&output).lines().count(), 1, "{words}: {}", stderr(&output));
            assert!(stderr(&output).contains(message), "{words}: {}", stderr(&output));
            assert!(!dir.join("r").exists(), "{words}");
        });
    };
    fails(
        &format!("tune oro {base} --select-source c/test.de"),
        "no references for the select set; give them with --select-ref FILE",
    );
    fails(&format!("tune oro {base} --test-ref c/test.en"), "--test-ref is given without --test-source");
    fails(
        &format!("tune oro {base} --dense LM"),
        "--dense: no feature is named \"LM\"; the model has LexicalReordering0[0], ",
    );
    fails(
        &format!("tune oro {base} --sparse x"),
        "no template is named \"x\", expected none, arun-koehn, hopkins-may, phrase-pair, ",
    );
    fails(
        &format!("tune mert {base} --sparse arun-koehn"),
        "mert tunes dense features only, but --sparse is given",
    );
    fails(
        &format!("tune oro {base} --rate pegasos --eta0 1"),
        "--eta0 and --alpha have no effect with --rate pegasos",
    );
    fails(
        &format!("tune oro {base} --linearize tangent --optimized"),
        "--linearize has no effect without --loss softmax",
    );
    fails(
        &format!("tune oro {base} --normalize pairs --optimized"),
        "--normalize applies only to --loss hinge without --optimized",
    );
    fails(
        &format!("tune oro {base} --select-share 0.2 --select-source c/dev.de --select-ref c/dev.en"),
        "--select-share has no effect with a selection set",
    );
    fails(
        &format!("tune oro {base} --select-share 0.6"),
        "--select-share is `0.6`, expected a number from 0 to 0.5",
    );
    fails(&format!("tune oro {base} --max-rho 3"), "--max-rho is `3`, expected a number from 1 to 2");
    fails(
        &format!("tune mira {base} --lambda 3"),
        "--lambda has no effect with --constraints hope-fear; it is for --constraints oracle",
    );
    fails(&format!("tune mira {base} --shards 3"), "--shards has no effect with --constraints hope-fear");
    fails(&format!("tune mira {base} --max-rho 1.5"), "--max-rho has no effect with --constraints hope-fear");
    fails(
        &format!("tune pro {base} --pairs oracle --gain document"),
        "--gain document has no effect with --pairs oracle",
    );
    fails(
        &format!("tune mira {base} --constraints oracle --c 3"),
        "--c has no effect with --constraints oracle",
    );
    fails(&format!("tune mira {base} --constraints oracle --weighted"), "it is for --constraints surrogate");
    fails(
        &format!("tune mira {base} --constraints surrogate --decay 0.5"),
        "it is for --constraints hope-fear",
    );
    fails(
        "tune oro --command true{weights} --source c/dev.de --ref c/dev.en --run r -q",
        "oro decodes batch by batch, which --command cannot do; use --model, or --nbest with existing lists",
    );
    fails("tune oro --nbest c/dev.de --ref c/dev.en --run r --sparse arun-koehn", "--model");
}

#[test]
fn found_in_review() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    small_model(dir);
    write_pool(dir);
    let small = "--nbest-size 15 --pop-limit 50 --stack-size 30 -q";
    let base = format!("--model m --source c/dev.de --ref c/dev.en {small}");
    let score = |words: &str| -> f64 {
        ok_in(
            dir,
            &format!("decode --model m --input c/dev.de -o out --pop-limit 50 --stack-size 30 -q {words}"),
        );
        let found: Value =
            serde_json::from_str(&ok_in(dir, "score out --ref c/dev.en --tokenize none --json")).unwrap();
        found[0]["score"].as_f64().unwrap()
    };
    // The initial and the final score are those of the decoder's output; patience does not need a selection set.
    for words in
        ["perceptron --sparse arun-koehn --patience 1 --iterations 8", "oro --patience 2 --iterations 4"]
    {
        let run = words.split(' ').next().unwrap();
        let result: Value =
            serde_json::from_str(&ok_in(dir, &format!("tune {words} {base} --run {run} --json"))).unwrap();
        let near = |x: &Value, y: f64| assert!((x.as_f64().unwrap() - y).abs() < 1e-9, "{run} {x} {y}");
        near(&result["initial"], score(""));
        near(&result["score"], score(&format!("--weights {run}/best.txt")));
    }
    // `--sparse` overrides the templates that the weights file implies.
    let with = score("--weights perceptron/best.txt");
    assert_ne!(score("--weights perceptron/best.txt --sparse none"), with);
    // A weights file with sparse features only is valid.
    ok_in(
        dir,
        &format!("tune perceptron --dense none --sparse phrase-pair --iterations 1 --run alone {base}"),
    );
    let bare: String =
        best(dir, "alone").lines().filter(|l| l.starts_with("pp:")).map(|l| format!("{l}\n")).collect();
    fs::write(dir.join("bare"), bare).unwrap();
    score("--weights bare");
    score("--weights bare --dense none");
    // Empty shards do not affect the mean.
    for shards in [40, 90] {
        ok_in(
            dir,
            &format!("tune oro --mixing average --iterations 1 --shards {shards} --run s{shards} {base}"),
        );
    }
    assert_eq!(best(dir, "s40"), best(dir, "s90"));
    // On fixed lists, `--update max-bleu` takes the best candidate of the list.
    ok_in(dir, "tune perceptron --update max-bleu --nbest nbest --ref ref --iterations 1 --run f -q");
    let weights = |n: &str| fs::read_to_string(dir.join(format!("f/weights/{n}.txt"))).unwrap();
    assert_ne!(weights("000"), weights("001"));
    let failures = Failures::default();
    let fails = |words: &str, message: &str| {
        failures.row(words, || {
            let output = in_dir(dir, words);
            assert_eq!(output.status.code(), Some(2), "{words}");
            assert!(stderr(&output).contains(message), "{words}: {}", stderr(&output));
        });
    };
    fails(
        "tune perceptron --weighted --metric ter --nbest nbest --ref ref --run g",
        "--weighted needs a metric from 0 to 100: BLEU or chrF",
    );
    fails(&format!("tune perceptron --dense none --run g {base}"), "--dense none leaves no feature");
}
