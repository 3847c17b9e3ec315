//! Tests of n-best formats with the real binary: `convert`, `rerank`, and tuning on fixed lists.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Failures, fails, luthier, ok_in, run, stderr, stdout};
use luthier::core::random::{Purpose, Stream};
use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

const MOSES: &str = "0 ||| a b ||| lm= -1 tm= 0.5 2 ||| -3\n0 |||  ||| lm= -2 tm= 0 1 ||| -4\n1 ||| c ||| lm= 1 tm= 1 1 ||| 2\n";

fn dir_with(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

#[test]
fn there_and_back_again() {
    let dir = dir_with(&[("n", MOSES)]);
    for (to, file) in [("jsonl", "a.jsonl"), ("tsv", "a.tsv.gz"), ("moses", "a.gz")] {
        ok_in(dir.path(), &format!("convert --nbest n --to {to} -o {file}"));
        assert_eq!(ok_in(dir.path(), &format!("convert --nbest {file} --to moses")), MOSES, "{to}");
    }
    let json = ok_in(dir.path(), "convert --nbest n --to jsonl");
    let first =
        r#"{"id":0,"text":"a b","features":{"lm":-1.0,"tm[0]":0.5,"tm[1]":2.0},"scores":{"total":-3.0}}"#;
    assert_eq!(json.lines().next(), Some(first));
}

/// Lists with their own references are tuned on, and every output has the names of the segments.
#[test]
fn lists_with_names_and_references() {
    let csv = "utt,hyp,reference,am,lm,speaker\nu1,\"the, house\",the house,-1,-2,ann\nu1,the house,the house,-2,-1,ann\nu2,a tree,the tree,-1,-3,bob\nu2,the tree,the tree,-2,-2,bob\n";
    let dir = dir_with(&[("n.csv", csv), ("w", "am 1\nlm 2\n")]);
    let output = common::in_dir(dir.path(), "tune mert --nbest n.csv --metric wer --run R");
    let said = stderr(&output);
    let usage = "n.csv: id: utt; text: hyp; reference: reference; features: am, lm; ignored: speaker (text)";
    assert_eq!(said.lines().next(), Some(usage), "{said}");
    assert!(stdout(&output).starts_with("tuning WER 0.00 -> 0.00"), "{}", stdout(&output));
    let page = common::in_dir(dir.path(), "report R -o page.html");
    assert!(!stderr(&page).contains("warning"), "{}", stderr(&page));
    let best = ok_in(dir.path(), "rerank --nbest n.csv --weights w --json");
    assert_eq!(
        best.lines().next(),
        Some(r#"{"segment":"u1","candidate":1,"score":-4.0,"text":"the house"}"#)
    );
    let moses = ok_in(dir.path(), "convert --nbest n.csv --to moses");
    assert_eq!(moses.lines().next(), Some("u1 ||| the, house ||| am= -1 lm= -2 |||"));
    // Chosen columns are recorded: without them it is another run.
    let chosen = "tune mert --nbest n.csv --metric wer --run S --ignore-columns am";
    assert!(common::in_dir(dir.path(), chosen).status.success());
    let other = common::in_dir(dir.path(), "tune mert --nbest n.csv --metric wer --run S");
    assert!(stderr(&other).contains("other settings"), "{}", stderr(&other));
    assert!(!stderr(&common::in_dir(dir.path(), "report S -o page.html")).contains("warning"));
}

/// Compression is detected from content: files are compressed by the system tools and have no extension.
#[test]
fn compression_is_told_by_content() {
    let dir = dir_with(&[("n", MOSES)]);
    let mut tried = 0;
    for tool in ["gzip", "bzip2", "xz", "zstd"] {
        let Ok(output) = Command::new(tool).arg("-c").arg(dir.path().join("n")).output() else {
            common::skip(&format!("no {tool}"));
            continue;
        };
        fs::write(dir.path().join("packed"), &output.stdout).unwrap();
        assert_eq!(ok_in(dir.path(), "convert --nbest packed --to moses"), MOSES, "{tool}");
        fs::write(dir.path().join("cut"), &output.stdout[..output.stdout.len() - 9]).unwrap();
        let message = fails(&format!("convert --nbest {}/cut --to moses", dir.path().display()));
        assert!(message.contains("compressed data"), "{tool}: {message}");
        tried += 1;
    }
    assert!(tried > 0);
}

#[test]
fn standard_input_and_a_reader_that_goes_away() {
    let dir = dir_with(&[("n", MOSES), ("w", "lm 1\ntm[0] 0\ntm[1] 0\n")]);
    let mut child = luthier()
        .args(["rerank", "--nbest", "-", "--weights", "w"])
        .current_dir(dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(MOSES.as_bytes()).unwrap();
    assert_eq!(stdout(&child.wait_with_output().unwrap()), "a b\nc\n");

    let many: String = (0..50_000).map(|i| format!("{i} ||| text {i} ||| lm= 1 ||| 2\n")).collect();
    fs::write(dir.path().join("many"), many).unwrap();
    let head = format!(
        "{} convert --nbest many --to jsonl | head -n 1; echo ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_luthier")
    );
    let output = Command::new("bash").args(["-c", &head]).current_dir(dir.path()).output().unwrap();
    assert_eq!(stdout(&output).lines().last(), Some("0"));
    assert_eq!(stderr(&output), "");
}

#[test]
fn rerank_keeps_the_best_of_each_segment() {
    let dir = dir_with(&[("n", MOSES), ("w", "lm -1\ntm[0] 0\ntm[1] 0\n")]);
    ok_in(dir.path(), "rerank --nbest n --weights w --nbest-out top.jsonl --top 1");
    let top = fs::read_to_string(dir.path().join("top.jsonl")).unwrap();
    let texts: Vec<String> = top
        .lines()
        .map(|l| {
            let v: serde_json::Value = serde_json::from_str(l).unwrap();
            format!("{} {} {}", v["id"], v["text"], v["scores"]["total"])
        })
        .collect();
    assert_eq!(texts, ["0 \"\" 2.0", "1 \"c\" -1.0"]);
}

#[test]
fn missing_segments() {
    let dir = dir_with(&[
        ("n", "2 ||| c ||| x= 2 ||| 1\n2 ||| d ||| x= 1 ||| 1\n0 ||| a ||| x= 1 ||| 1\n"),
        ("w", "x 1\n"),
        ("ref", "a\nb\nc\n"),
    ]);
    let at = dir.path().display();
    let message = fails(&format!("rerank --nbest {at}/n --weights {at}/w"));
    assert!(
        message.contains("segment 1 has no candidate; segments are numbered from 0; --allow-missing"),
        "{message}"
    );
    assert_eq!(ok_in(dir.path(), "rerank --nbest n --weights w --allow-missing"), "a\n\nc\n");
    assert!(
        fails(&format!("tune mert --nbest {at}/n --ref {at}/ref --run {at}/R"))
            .contains("segment 1 has no candidate")
    );
    ok_in(dir.path(), "tune mert --nbest n --ref ref --run R --allow-missing -q");
    ok_in(dir.path(), "oracle --nbest n --ref ref --allow-missing");
}

#[test]
fn flat_text_with_score_files() {
    let dir = dir_with(&[
        ("hyps", "bad one\nthe good one\nworse\nbest\n"),
        ("lm", "-2\n-1\n-5\n-4\n"),
        ("qe", "0.1\n0.9\n0.2\n0.8\n"),
        ("short", "1\n2\n"),
        ("ref", "the good one\nbest\n"),
    ]);
    let lists = "--nbest hyps --per-source 2 --score-file lm=lm --score-file qe=qe";
    ok_in(dir.path(), &format!("tune mert {lists} --ref ref --run R -q -m chrf"));
    assert_eq!(ok_in(dir.path(), &format!("rerank {lists} --weights R/best.txt")), "the good one\nbest\n");
    let at = dir.path().display();
    let message = fails(&format!(
        "rerank --nbest {at}/hyps --per-source 2 --score-file x={at}/short --weights {at}/lm"
    ));
    // The weights are read first, and a score file is not a weights file.
    assert!(message.contains("lm:1: found `-2`, expected `name value`"), "{message}");
}

/// Candidates have a `comet` column and no references; the column that the metric reads is not a feature.
#[test]
fn a_column_is_tuned_for() {
    let mut s = Stream::new(5, Purpose::Test, 0, 0);
    let mut text = String::new();
    for id in 0..40 {
        for i in 0..8 {
            let (a, b) = (s.uniform(-1.0, 1.0), s.uniform(-1.0, 1.0));
            let comet = 0.7 * a + 0.3 * b + 0.02 * s.unit();
            text += &format!("{{\"id\":{id},\"text\":\"c {i}\",\"a\":{a},\"b\":{b},\"comet\":{comet}}}\n");
        }
    }
    let dir = dir_with(&[("n.jsonl", &text)]);
    let json = ok_in(dir.path(), "tune mert --nbest n.jsonl -m column:comet --run R --json -q");
    let result: serde_json::Value = serde_json::from_str(&json).unwrap();
    let weights = result["weights"].as_object().unwrap();
    assert_eq!(weights.keys().collect::<Vec<_>>(), ["a", "b"]);
    let share = weights["a"].as_f64().unwrap();
    assert!((0.6..0.8).contains(&share), "{weights:?}");
    assert!(result["score"].as_f64().unwrap() > result["initial"].as_f64().unwrap());
}

/// Files of Moses' `extractor` give the same result as the n-best list itself.
#[test]
fn extractor_files_are_tuned_on() {
    let dir = tempfile::tempdir().unwrap();
    common::write_pool(dir.path());
    let (nbest, reference) = (fs::read_to_string(dir.path().join("nbest")).unwrap(), dir.path().join("ref"));
    let references = fs::read_to_string(reference).unwrap();
    let references: Vec<&str> = references.lines().collect();
    let (feats, scores) = extractor(&nbest, &references);
    fs::write(dir.path().join("features.dat"), feats).unwrap();
    fs::write(dir.path().join("scores.dat"), scores).unwrap();
    let plain = ok_in(dir.path(), "tune mert --nbest nbest --ref ref --run R1 -q --restarts 5");
    let dat = ok_in(
        dir.path(),
        "tune mert --nbest features.dat --moses-scores scores.dat --run R2 -q --restarts 5",
    );
    assert_eq!(plain.split(' ').take(4).collect::<Vec<_>>(), dat.split(' ').take(4).collect::<Vec<_>>());
    let at = dir.path().display();
    let message = fails(&format!("tune mert --nbest {at}/features.dat --run {at}/R3"));
    assert!(message.contains("no references"), "{message}");
}

/// Returns the feature and score files that Moses' `extractor` writes for an n-best list: an independent implementation.
fn extractor(nbest: &str, references: &[&str]) -> (String, String) {
    let (mut feats, mut scores) = (String::new(), String::new());
    let lines: Vec<Vec<&str>> = nbest.lines().map(|l| l.split(" ||| ").collect()).collect();
    for block in lines.chunk_by(|a, b| a[0] == b[0]) {
        let id: usize = block[0][0].parse().unwrap();
        feats += &format!("FEATURES_TXT_BEGIN_0 {id} {} 6 A_0 A_1 A_2 A_3 A_4 A_5\n", block.len());
        scores += &format!("SCORES_TXT_BEGIN_0 {id} {} 9 BLEU\n", block.len());
        let reference: Vec<&str> = references[id].split(' ').collect();
        for candidate in block {
            feats += &format!("{}\n", candidate[2].trim_start_matches("A= "));
            let words: Vec<&str> = candidate[1].split(' ').collect();
            for n in 1..=4 {
                let mut left: Vec<&[&str]> = reference.windows(n).collect();
                let found = words
                    .windows(n)
                    .filter(|g| left.iter().position(|r| r == g).map(|i| left.remove(i)).is_some());
                scores += &format!("{} {} ", found.count(), words.len() + 1 - n);
            }
            scores += &format!("{}\n", reference.len());
        }
        feats += "FEATURES_TXT_END_0\n";
        scores += "SCORES_TXT_END_0\n";
    }
    (feats, scores)
}

#[test]
fn a_moses_configuration_gives_initial_weights() {
    let ini = "[feature]\nKENLM name=lm\n\n[weight]\nUnknownWordPenalty0= 1\nlm= 0.5\ntm= 0.2 0.3\n";
    let dir = dir_with(&[("n", MOSES), ("ref", "a b\nc\n"), ("moses.ini", ini)]);
    ok_in(dir.path(), "tune mert --nbest n --ref ref --init moses.ini --run R -q");
    let first = fs::read_to_string(dir.path().join("R/weights/000.txt")).unwrap();
    assert_eq!(first, "lm 0.5\ntm[0] 0.2\ntm[1] 0.3\n");
    assert_eq!(ok_in(dir.path(), "rerank --nbest n --weights moses.ini"), "a b\nc\n");
}

#[test]
fn mistakes_leave_no_output() {
    let dir = dir_with(&[
        ("n", MOSES),
        ("bad", "0 ||| a ||| lm= 1 ||| 1\n0 ||| b ||| lm= x ||| 1\n"),
        ("json", "{\"id\":0,\"text\":\"a ||| b\",\"features\":{\"x\":1}}\n"),
        ("w", "lm 1\n"),
        ("twice", "lm 1\nlm 2\n"),
    ]);
    let at = dir.path().display();
    let cases: &[(&str, &str)] = &[
        (
            "convert --nbest {at}/bad --to jsonl -o {at}/out",
            "bad:2: the value of lm is `x`, expected a finite number; replace it, or remove the candidate",
        ),
        (
            "convert --nbest {at}/json --to moses -o {at}/out",
            "json:1: the text contains \"|||\", which Moses' format cannot hold; write JSON lines (--to jsonl)",
        ),
        ("convert --nbest {at}/n --to yaml -o {at}/out", "--to is `yaml`, expected moses, jsonl or tsv"),
        (
            "convert --nbest {at}/n --nbest-format mosse --to tsv -o {at}/out",
            "--nbest-format is `mosse`, expected one of moses, cdec, joshua, travatar, marian, phrasal, jsonl, json, tsv, csv, fairseq, flat, feats, kaldi, zmert; leave it out to detect the format",
        ),
        (
            "rerank --nbest {at}/n --weights {at}/n -o {at}/out",
            "n:1: found an n-best line, expected `name value`; give a weights file, as `tune` writes it; n-best lists go after --nbest",
        ),
        (
            "rerank --nbest {at}/n --weights {at}/twice -o {at}/out",
            "twice:2: a second weight for lm; remove one of the two",
        ),
        (
            "rerank --nbest {at}/w --weights {at}/w -o {at}/out",
            "w:1: found `lm 1`, which is not a recognised n-best format; give --per-source N for plain text with N lines per segment, name the text of a table with --text-column, or set --nbest-format; is this a file of references or weights?",
        ),
        (
            "rerank --nbest {at}/n --weights {at}/w --nbest-out {at}/none/out",
            "none/out: cannot write it: no such file or directory; check the path",
        ),
    ];
    let failures = Failures::default();
    for (command, expected) in cases {
        failures.row(command, || {
            let found = fails(&format!("{} -q", command.replace("{at}", &at.to_string())));
            assert_eq!(found.replace(&format!("{at}/"), ""), format!("luthier: {expected}"), "{command}");
            assert!(!dir.path().join("out").exists(), "{command}");
        });
    }
    let left: Vec<_> = fs::read_dir(Path::new(dir.path())).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 5, "{left:?}");
    assert!(run("rerank --help").status.success());
}

/// Line breaks in JSON texts are replaced, so that the output keeps one line per segment.
#[test]
fn line_ends_in_texts_become_blanks() {
    let json = "{\"id\":0,\"text\":\"a\\nb\",\"x\":1}\n{\"id\":1,\"text\":\"c\",\"x\":1}\n";
    let dir = dir_with(&[("n", json), ("w", "x 1\n"), ("ref", "a b\nc\n")]);
    assert_eq!(ok_in(dir.path(), "rerank --nbest n --weights w"), "a b\nc\n");
    ok_in(dir.path(), "oracle --nbest n --ref ref -o best");
    assert_eq!(fs::read_to_string(dir.path().join("best")).unwrap(), "a b\nc\n");
}

#[test]
fn other_score_files_are_another_run() {
    let dir = dir_with(&[("n", "a\nb\n"), ("ref", "b\n"), ("s1", "1\n0\n"), ("s2", "0\n1\n")]);
    let tune = |file: &str| {
        let words =
            format!("tune mert --nbest n --per-source 2 --score-file f={file} --ref ref -m chrf --run R -q");
        luthier().args(words.split_whitespace()).current_dir(dir.path()).output().unwrap()
    };
    assert!(tune("s1").status.success());
    let other = tune("s2");
    assert_eq!(other.status.code(), Some(2));
    assert!(
        stderr(&other).contains("holds a run with other settings: the input nbest is"),
        "{}",
        stderr(&other)
    );
}

#[test]
fn names_of_all_kinds_survive_tuning() {
    let json: String =
        ["lm score", "WT_#~=", "#1", "a= b"].iter().map(|n| format!("{n:?}:1,")).collect::<String>();
    let line = |id: u32, text: &str| {
        format!("{{\"id\":{id},\"text\":{text:?},\"features\":{{{json}\"x\":{}}}}}\n", text.len())
    };
    let list = line(0, "a b c d") + &line(0, "a b") + &line(1, "e f g h") + &line(1, "e");
    let dir = dir_with(&[("n", &list), ("ref", "a b c d\ne f g h\n")]);
    ok_in(dir.path(), "tune mert --nbest n --ref ref --run R -q");
    let output = luthier()
        .args(["rerank", "--nbest", "n", "--weights", "R/best.txt"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let usage = "n: id: id; text: text; features: lm score, WT_#~=, #1, a= b, x\n";
    assert_eq!((stdout(&output), stderr(&output)), ("a b c d\ne f g h\n", usage));
}

#[test]
fn output_that_cannot_be_written_is_no_panic() {
    let bash = |command: &str| {
        let command = command.replace("luthier", env!("CARGO_BIN_EXE_luthier"));
        Command::new("bash").args(["-c", &command]).output().unwrap().status.code()
    };
    assert_eq!(bash("luthier rerank --nbest none --weights none 2>/dev/full"), Some(2));
    assert_eq!(bash("luthier tune mert --help >/dev/full"), Some(0));
    assert!(fails("tune mert --restarts 4294967295 --run R").contains("4294967295"));
    assert!(fails("score a --ref b --width 70000").contains("from 0 to 17"));
}
