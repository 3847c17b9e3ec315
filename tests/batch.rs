//! Tests of the batch learners with the real binary.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Failures, fails, luthier, ok_in, python, stderr};
use luthier::core::random::{Purpose, Stream};
use serde_json::Value;
use std::{
    fmt::Write as _,
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

/// Names and arguments of every batch algorithm, with settings that make it fast.
const ALL: &[(&str, &str)] = &[
    ("mert", "mert --restarts 3"),
    ("pro", "pro --draw 200 --keep 10"),
    ("hinge", "pro --pairs oracle --loss hinge --lambda 0.1"),
    ("good-bad", "pro --pairs good-bad --max-length-sigma 2"),
    ("apro", "apro --c 0.5"),
    ("mira", "mira --epochs 10"),
    ("softmax", "softmax"),
    ("xbleu", "xbleu --gamma 0.3,1"),
    ("risk", "risk"),
];

/// Writes `nbest`, `ref` and `init`: 30 segments with 40 candidates, each with 4 dense features and up to 5 sparse ones.
fn write_pool(dir: &Path) {
    let words = ["rot", "blau", "haus", "baum", "see", "tal", "berg", "weg"];
    let mut s = Stream::new(23, Purpose::Test, 0, 0);
    let (mut nbest, mut reference) = (String::new(), String::new());
    for segment in 0..30 {
        let truth: Vec<&str> = (0..9).map(|_| words[s.below(8) as usize]).collect();
        let _ = writeln!(reference, "{}", truth.join(" "));
        for _ in 0..40 {
            let wrong = s.below(6);
            let mut text = truth.clone();
            for _ in 0..wrong {
                text[s.below(9) as usize] = words[s.below(8) as usize];
            }
            let _ = write!(nbest, "{segment} ||| {} ||| A=", text.join(" "));
            for c in 0..4 {
                let _ = write!(nbest, " {:.4}", s.normal() - 0.2 * f64::from(c) * wrong as f64);
            }
            for _ in 0..5 {
                let _ = write!(nbest, " S_{}_{wrong}= 1", s.below(40) * 5 + s.below(5));
            }
            nbest += " ||| 0\n";
        }
    }
    // A repeated feature in a line is an error in the format: keep only the first.
    let clean: String = nbest
        .lines()
        .map(|line| {
            let mut seen = Vec::new();
            let mut words = line.split(' ').peekable();
            let mut out = Vec::new();
            while let Some(word) = words.next() {
                if word.starts_with("S_") {
                    let value = words.next().unwrap();
                    if !seen.contains(&word) {
                        seen.push(word);
                        out.extend([word, value]);
                    }
                } else {
                    out.push(word);
                }
            }
            out.join(" ") + "\n"
        })
        .collect();
    fs::write(dir.join("nbest"), clean).unwrap();
    fs::write(dir.join("ref"), reference).unwrap();
    fs::write(dir.join("init"), "A= 1 0.5 0.5 0.5\n").unwrap();
}

fn fixed(dir: &Path, algorithm: &str, run: &str, threads: u32) -> Command {
    let mut command = luthier();
    let words =
        format!("tune {algorithm} --nbest nbest --ref ref --init init --run {run} --threads {threads} -q");
    command.args(words.split_whitespace()).current_dir(dir).stdout(Stdio::null());
    command
}

fn read(dir: &Path, run: &str, file: &str) -> String {
    fs::read_to_string(dir.join(run).join(file)).unwrap()
}

#[test]
fn same_bits_on_any_number_of_threads_and_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write_pool(dir);
    for (name, algorithm) in ALL {
        let clock = std::time::Instant::now();
        let output = fixed(dir, algorithm, &format!("{name}1"), 1).output().unwrap();
        let length = clock.elapsed();
        assert!(output.status.success(), "{algorithm}: {}", stderr(&output));
        let weights = read(dir, &format!("{name}1"), "weights/001.txt");
        assert!(fixed(dir, algorithm, &format!("{name}2"), 2).status().unwrap().success());
        assert_eq!(weights, read(dir, &format!("{name}2"), "weights/001.txt"), "{algorithm}");
        for kill in 1..4u32 {
            let run = format!("{name}-cut{kill}");
            let mut child = fixed(dir, algorithm, &run, 2).spawn().unwrap();
            std::thread::sleep(length.mul_f64(0.25 * f64::from(kill)));
            let _ = child.kill();
            child.wait().unwrap();
            assert!(fixed(dir, algorithm, &run, 1).status().unwrap().success());
            for file in ["best.txt", "weights/000.txt", "weights/001.txt"] {
                assert_eq!(read(dir, &run, file), read(dir, &format!("{name}1"), file), "{algorithm} {file}");
            }
        }
        // All algorithms except MERT learn weights of sparse features.
        let learned = weights.lines().filter(|l| l.starts_with("S_") && !l.ends_with(" 0")).count();
        assert_eq!(learned > 20, *name != "mert", "{algorithm} learned {learned} sparse features");
    }
}

/// A decoder in Python that prints the `k` best candidates under the weights; it fails at iteration 3 if a file `mood`
/// exists.
const DECODER: &str = r"
import os, sys
weights, k, iteration = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
w = dict((line.rsplit(' ', 1)[0], float(line.rsplit(' ', 1)[1])) for line in open(weights))
if iteration == 3 and os.path.exists('mood'):
    sys.exit(7)
lists = {}
for line in open('nbest'):
    id, text, features, _ = line.rstrip('\n').split(' ||| ')
    label, score, at = '', 0, 0
    for word in features.split():
        if word.endswith('='):
            label, at = word[:-1], 0
        else:
            score += float(word) * w.get(f'A[{at}]' if label == 'A' else label, 0)
            at += 1
    lists.setdefault(int(id), []).append((-score, len(lists.get(int(id), [])), line))
for id in sorted(lists):
    sys.stdout.write(''.join(line for _, _, line in sorted(lists[id])[:k]))
";

fn decoding(dir: &Path, algorithm: &str, run: &str) -> Output {
    let mut command = luthier();
    let words = format!(
        "tune {algorithm} --source ref --ref ref --init init --run {run} --nbest-size 8 --iterations 5"
    );
    command
        .args(words.split_whitespace())
        .args(["--command", "python3 decoder.py {weights} {k} {iteration}"])
        .current_dir(dir);
    command.output().unwrap()
}

/// A decoder fails after the pool was cleared; after it is fixed, the resumed run gives identical weights.
#[test]
fn decoders_break_after_a_reset() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write_pool(dir);
    fs::write(dir.join("decoder.py"), DECODER).unwrap();
    for (name, algorithm) in ALL {
        let schedule = if matches!(*name, "mert" | "mira") { "" } else { "--psi 0.5 --reset-at 2" };
        let algorithm = format!("{algorithm} {schedule}");
        let whole = decoding(dir, &algorithm, &format!("{name}-whole"));
        assert!(whole.status.success(), "{algorithm}: {}", stderr(&whole));
        let candidates = |run: &str| -> Vec<u64> {
            let log = read(dir, run, "log.jsonl");
            let lines = log.lines().map(|l| serde_json::from_str::<Value>(l).unwrap());
            lines.filter_map(|l| l["candidates"].as_u64()).collect()
        };
        let sizes = candidates(&format!("{name}-whole"));
        assert!(sizes.len() > 2, "{algorithm}: {}", stderr(&whole));
        if schedule.is_empty() {
            assert!(sizes[2] >= sizes[1]);
        } else {
            assert_eq!(sizes[2], 240, "the pool is emptied at iteration 2");
        }
        fs::write(dir.join("mood"), "").unwrap();
        let broken = decoding(dir, &algorithm, &format!("{name}-cut"));
        fs::remove_file(dir.join("mood")).unwrap();
        if sizes.len() > 3 {
            assert_eq!(broken.status.code(), Some(2), "{}", stderr(&broken));
        }
        let mended = decoding(dir, &algorithm, &format!("{name}-cut"));
        assert!(mended.status.success(), "{algorithm}: {}", stderr(&mended));
        let best = |run: &str| read(dir, &format!("{name}-{run}"), "best.txt");
        assert_eq!(best("whole"), best("cut"), "{algorithm}");
        assert_eq!(candidates(&format!("{name}-cut")), sizes);
    }
}

/// Writes JSON lines with the features x, y, z and a quality q that depends linearly on them, plus noise.
fn write_columns(file: &Path, seed: u32, segments: u32, k: u32, noise: f64) {
    let mut s = Stream::new(29, Purpose::Test, seed, 0);
    let mut text = String::new();
    for id in 0..segments {
        for i in 0..k {
            let (x, y, z) = (s.normal(), 3.0 * s.normal(), s.normal());
            let q = 0.5 * x - 0.2 * y + 0.1 * z + noise * s.normal();
            let _ = writeln!(text, r#"{{"id":{id},"text":"t{i}","x":{x},"y":{y},"z":{z},"q":{q}}}"#);
        }
    }
    fs::write(file, text).unwrap();
}

#[test]
fn fits_are_scipys() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write_columns(&dir.join("lists"), 0, 8, 9, 0.5);
    let asked = Command::new(python)
        .arg(common::root().join("tests/ask_scipy.py"))
        .args([dir.join("lists").to_str().unwrap(), "0.3"])
        .output()
        .unwrap();
    assert!(asked.status.success(), "{}", stderr(&asked));
    let theirs: Value = serde_json::from_slice(&asked.stdout).unwrap();
    for (name, loss) in [
        ("pro", "pro --pairs all --min-difference 0.3 --tolerance 1e-9"),
        ("hinge", "pro --pairs all --min-difference 0.3 --loss hinge --lambda 0.1 --tolerance 1e-9"),
        ("apro", "apro --scale candidates --c 0.5 --tolerance 1e-9"),
        ("mean", "apro --c 0.5 --tolerance 1e-9"),
    ] {
        ok_in(dir, &format!("tune {loss} --nbest lists --metric column:q --run {name} -q"));
        let value = ok_in(
            dir,
            &format!("loss {loss} --nbest lists --metric column:q --weights {name}/weights/001.txt --json"),
        );
        let value: Value = serde_json::from_str(&value).unwrap();
        let (ours, expected) = (value["value"].as_f64().unwrap(), theirs[name]["value"].as_f64().unwrap());
        assert!((ours - expected).abs() < 1e-6 * expected.abs(), "{name}: {ours} {expected}");
        let text = read(dir, name, "weights/001.txt");
        for (i, feature) in ["x", "y", "z"].iter().enumerate() {
            let line = text.lines().find(|l| l.starts_with(feature)).unwrap();
            let (ours, theirs) =
                (line[2..].parse::<f64>().unwrap(), theirs[name]["weights"][i].as_f64().unwrap());
            assert!((ours - theirs).abs() < 1e-3 * (1.0 + theirs.abs()), "{name} {feature}: {ours} {theirs}");
        }
        assert_eq!((value["segments"].as_u64(), value["candidates"].as_u64()), (Some(8), Some(72)));
        assert_eq!(value["gradient"].as_object().unwrap().len(), 3);
        // The gradient is 0 at the optimum, except for the hinge loss, which is not differentiable there.
        if name != "hinge" {
            let steep = value["gradient"].as_object().unwrap().values().map(|g| g.as_f64().unwrap().abs());
            assert!(steep.fold(0.0, f64::max) < 1e-5, "{value}");
        }
    }
}

/// One step of O-ORO on a batch is the solution of an interior-point solver, for features on different scales.
#[test]
fn optimized_steps_are_those_of_a_qp_solver() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for batch in 0..20 {
        let mut s = Stream::new(37, Purpose::Test, batch, 0);
        let mut text = String::new();
        let (segments, k) = (4 + batch % 13, 20 + 5 * (batch % 20));
        for id in 0..segments {
            for i in 0..k {
                let h: Vec<f64> = SCALES.iter().map(|scale| scale * s.normal()).collect();
                let quality: f64 = h.iter().zip(SCALES).map(|(h, scale)| h / scale).sum();
                let features: String = h.iter().enumerate().map(|(f, h)| format!(r#","f{f}":{h}"#)).collect();
                let q = quality + 3.0 * s.normal();
                let _ = writeln!(text, r#"{{"id":{id},"text":"t{i}","q":{q}{features}}}"#);
            }
        }
        fs::write(dir.join("lists"), text).unwrap();
        let w: String = SCALES
            .iter()
            .enumerate()
            .map(|(f, scale)| format!("f{f} {}\n", s.uniform(-0.2, 0.5) / scale))
            .collect();
        fs::write(dir.join("w"), w).unwrap();
        // One batch of one epoch: k = K = 1, so the learning rate is 0.2 · 0.85.
        let eta = 0.2 * 0.85;
        let asked = Command::new(&python)
            .arg(common::root().join("tests/ask_qp.py"))
            .args([dir.join("lists").to_str().unwrap(), dir.join("w").to_str().unwrap()])
            .args([eta.to_string(), "0.00001".to_owned()])
            .output()
            .unwrap();
        assert!(asked.status.success(), "{}", stderr(&asked));
        let theirs: Value = serde_json::from_slice(&asked.stdout).unwrap();
        assert!(theirs["pairs"].as_u64().unwrap() <= 2000);
        for dual in ["mean", "box"] {
            let run = format!("{dual}{batch}");
            let flags = format!(
                "--eta0 0.2 --optimized --dual {dual} --batch-size 100 --iterations 1 --mixing average --init w"
            );
            ok_in(dir, &format!("tune oro {flags} --nbest lists --metric column:q --run {run} -q"));
            let weights = read(dir, &run, "weights/001.txt");
            for (name, expected) in
                theirs["names"].as_array().unwrap().iter().zip(theirs[dual].as_array().unwrap())
            {
                let (name, expected) = (name.as_str().unwrap(), expected.as_f64().unwrap());
                let line = weights.lines().find(|l| l.split(' ').next() == Some(name)).unwrap();
                let ours: f64 = line.split(' ').nth(1).unwrap().parse().unwrap();
                assert!((ours - expected).abs() < 2e-4, "{dual} {batch} {name}: {ours} {expected}");
            }
        }
    }
}

/// Scales of the features in [`optimized_steps_are_those_of_a_qp_solver`], from counts to sums of log probabilities.
const SCALES: [f64; 8] = [0.1, 0.3, 1.0, 1.0, 2.0, 5.0, 10.0, 30.0];

/// Candidates have four scores and a COMET-like column, a weighted sum of them plus noise: tuning recovers the weights,
/// which come within 0.01 of the oracle on held-out lists.
#[test]
fn a_known_mix_is_recovered_on_held_out_lists() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mix = [("logprob", 0.6), ("lm", 0.3), ("qe", 1.0), ("length", -0.4)];
    let write = |file: &str, seed: u32| {
        let mut s = Stream::new(31, Purpose::Test, seed, 0);
        let mut text = String::new();
        for id in 0..120 {
            let level = s.normal();
            for i in 0..25 {
                let h: Vec<f64> = (0..4).map(|_| s.normal()).collect();
                let sum: f64 = h.iter().zip(mix).map(|(h, m)| h * m.1).sum();
                let comet = 0.7 + 0.05 * level + 0.1 * sum + 0.01 * s.normal();
                let scores: Vec<String> =
                    h.iter().zip(mix).map(|(h, m)| format!(r#""{}":{h}"#, m.0)).collect();
                let _ = writeln!(
                    text,
                    r#"{{"id":{id},"text":"candidate {i}","scores":{{{},"comet":{comet}}}}}"#,
                    scores.join(",")
                );
            }
        }
        fs::write(dir.join(file), text).unwrap();
    };
    write("dev.jsonl", 1);
    write("test.jsonl", 2);
    let best_possible = {
        let json = ok_in(dir, "oracle --nbest test.jsonl --metric column:comet --json");
        serde_json::from_str::<Value>(&json).unwrap()["score"].as_f64().unwrap()
    };
    for algorithm in ["mert --restarts 5", "apro", "risk --gamma 10", "pro", "mira", "softmax"] {
        let name = algorithm.split(' ').next().unwrap();
        ok_in(dir, &format!("tune {algorithm} --nbest dev.jsonl --metric column:comet --run {name} -q"));
        let text = read(dir, name, "best.txt");
        let weight = |feature: &str| -> f64 {
            let line = text.lines().find(|l| l.starts_with(&format!("{feature} "))).unwrap();
            line.rsplit(' ').next().unwrap().parse().unwrap()
        };
        let (mut dot, mut squares) = (0.0, 0.0);
        for (feature, m) in mix {
            dot += weight(feature) * m;
            squares += weight(feature) * weight(feature);
        }
        let norm: f64 = mix.iter().map(|m| m.1 * m.1).sum::<f64>();
        let cosine = dot / (squares * norm).sqrt();
        assert!(cosine > 0.99, "{algorithm}: {cosine}\n{text}");
        let json = ok_in(
            dir,
            &format!(
                "surface --nbest test.jsonl --metric column:comet --weights {name}/best.txt --direction qe --json"
            ),
        );
        let held_out = serde_json::from_str::<Value>(&json).unwrap()["start"]["score"].as_f64().unwrap();
        // The true weights lose 0.003 because of the noise.
        assert!(best_possible - held_out < 0.01, "{algorithm}: {held_out} of {best_possible}");
    }
}

/// Every learner works with the metrics listed in docs/learners.md and rejects the others with a clear message.
#[test]
fn metrics_are_those_of_the_table() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write_pool(dir);
    fs::write(dir.join("zero"), "A= 0 0 0 0 0 0\n").unwrap();
    let all = luthier::tune::recipe::Recipe::all();
    for recipe in all.iter().map(luthier::Recipe::info) {
        for (i, metric) in
            ["bleu:order=3,lowercase", "chrf", "ter", "wer", "0.5*bleu+0.5*chrf"].iter().enumerate()
        {
            let more = if recipe.name == "mert" { "--restarts 1" } else { "" };
            let mut command = luthier();
            let words = format!(
                "tune {} --nbest nbest --ref ref --init zero --metric {metric} --run {}{i} -q --json {more}",
                recipe.name, recipe.name
            );
            let output = command.args(words.split_whitespace()).current_dir(dir).output().unwrap();
            if recipe.metrics == "BLEU" && i > 0 {
                assert_eq!(output.status.code(), Some(2));
                assert!(stderr(&output).contains("xbleu works only with BLEU"), "{}", stderr(&output));
                continue;
            }
            assert!(output.status.success(), "{words}: {}", stderr(&output));
            let json: Value = serde_json::from_slice(&output.stdout).unwrap();
            let better = json["score"].as_f64().unwrap() - json["initial"].as_f64().unwrap();
            let sign = if matches!(*metric, "ter" | "wer") { -1.0 } else { 1.0 };
            assert!(sign * better > 0.0, "{words}: {json}");
        }
    }
    let docs = fs::read_to_string(common::root().join("docs/learners.md")).unwrap();
    for r in all.iter().map(luthier::Recipe::info) {
        let row = format!("| `{}` | {} | {} |", r.name, r.metrics, r.note);
        assert!(docs.contains(&row), "docs/learners.md lacks: {row}");
    }
}

#[test]
fn mistakes_are_one_line() {
    let dir = tempfile::tempdir().unwrap();
    write_pool(dir.path());
    let at = dir.path().display();
    let lists = format!("--nbest {at}/nbest --ref {at}/ref");
    let failures = Failures::default();
    for (words, expected) in [
        (format!("tune apro {lists} --run {at}/R --c 0"), "--c is `0`, expected a number above 0"),
        (format!("tune pro {lists} --run {at}/R --psi 2"), "expected a number above 0 and at most 1"),
        (
            format!("tune softmax {lists} --run {at}/R --interpolate line-search"),
            "have no effect with --nbest",
        ),
        (
            format!("tune apro {lists} --run {at}/R --psi 0.5"),
            "--psi and --interpolate have no effect with --nbest",
        ),
        (format!("tune risk {lists} --run {at}/R --gamma 1,x"), "expected a number above 0"),
        (
            format!("tune pro {lists} --run {at}/R --pairs some"),
            "--pairs is `some`, expected sampled, oracle, all or good-bad",
        ),
        (format!("tune mirra {lists} --run {at}/R"), "`mirra` is not an algorithm of `tune`"),
        (
            format!("loss mert {lists} --weights {at}/init"),
            "`mert` is not an algorithm of `loss`, which are pro",
        ),
        (format!("loss apro {lists} --weights {at}/none"), "none: cannot open it"),
        (format!("loss xbleu {lists} --metric ter --weights {at}/init"), "xbleu works only with BLEU"),
    ] {
        failures.row(&words, || {
            let line = fails(&words);
            assert!(line.contains(expected), "{words}\n{line}");
            assert!(!dir.path().join("R").exists());
        });
    }
}

/// Regression tests for errors that were once silent.
#[test]
fn nothing_goes_wrong_in_silence() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write_columns(&dir.join("lists"), 0, 8, 9, 0.5);
    let run = |words: &str| {
        let output = luthier().args(words.split_whitespace()).current_dir(dir).output().unwrap();
        assert!(output.status.success(), "{words}: {}", stderr(&output));
        (common::stdout(&output).to_owned(), stderr(&output).to_owned())
    };
    // No pair reaches the minimum difference.
    fs::write(dir.join("init"), "x 1\ny 0\nz 0\nq 3\n").unwrap();
    let (_, said) =
        run("tune pro --min-difference 50 --nbest lists --metric column:q --init init --run none");
    assert!(said.contains("nothing was learned; lower --min-difference"), "{said}");
    // The column of the metric is not a feature, even if the weights file has a weight for it.
    assert_eq!(
        read(dir, "none", "weights/001.txt").lines().filter(|l| !l.starts_with('#')).collect::<Vec<_>>(),
        ["x 1", "y 0", "z 0"]
    );
    let (_, said) = run("tune risk --max-steps 1 --nbest lists --metric column:q --run early");
    assert!(said.contains("stopped after 1 steps before it converged"), "{said}");
    let hinge =
        "tune pro --pairs all --loss hinge --max-steps 2 --tolerance 1e-9 --nbest lists --metric column:q";
    let (_, said) = run(&format!("{hinge} --run hinge"));
    assert!(said.contains("stopped after 2 sweeps"), "{said}");
    // A weighted sum of columns has the scale of the columns, not 0 to 100.
    let value = |metric: &str| -> f64 {
        let (json, _) =
            run(&format!("loss risk --lambda 0 --nbest lists --metric {metric} --weights init --json"));
        serde_json::from_str::<Value>(&json).unwrap()["value"].as_f64().unwrap()
    };
    assert!((value("column:q") - value("1*column:q+0*column:x")).abs() > 1e-3, "x is a feature in one only");
    fs::write(dir.join("yz"), "y 1\nz 1\n").unwrap();
    let value = |metric: &str| -> f64 {
        let (json, _) =
            run(&format!("loss risk --lambda 0 --nbest lists --metric {metric} --weights yz --json"));
        serde_json::from_str::<Value>(&json).unwrap()["value"].as_f64().unwrap()
    };
    assert!((2.0 * value("0.5*column:q+0*column:x") - value("1*column:q+0*column:x")).abs() < 1e-9);
    assert!(value("1*column:q+0*column:x").abs() > 0.1);
    // Segments without candidates do not affect the loss.
    let text = fs::read_to_string(dir.join("lists")).unwrap();
    fs::write(dir.join("gaps"), text.replace("\"id\":7", "\"id\":20")).unwrap();
    for loss in ["risk", "softmax"] {
        let value = |file: &str| {
            run(&format!("loss {loss} --nbest {file} --allow-missing --metric column:q --weights yz")).0
        };
        assert_eq!(value("lists").lines().next(), value("gaps").lines().next());
    }
    // A score outside the range of single precision.
    fs::write(dir.join("huge"), "{\"id\":0,\"text\":\"a\",\"x\":1,\"q\":1e300}\n").unwrap();
    let at = dir.display();
    let line = fails(&format!("tune risk --nbest {at}/huge --metric column:q --run {at}/R"));
    assert!(line.contains("huge:1: q is 1e300") || line.contains("huge:1: q is 1000"), "{line}");
}

/// Weights of features that are in no list are kept, because the decoder may use them.
#[test]
fn weights_that_no_list_has_stay() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write_pool(dir);
    fs::write(dir.join("decoder.py"), DECODER).unwrap();
    fs::write(dir.join("init"), "A= 1 0.5 0.5 0.5\nhidden 5\n").unwrap();
    for (name, algorithm) in ALL.iter().filter(|a| a.0 != "mert") {
        let output = decoding(dir, algorithm, name);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(read(dir, name, "weights/001.txt").contains("hidden 5\n"), "{algorithm}");
    }
}
