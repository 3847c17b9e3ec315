//! Tests of `score` and `compare` against sacreBLEU, and of their error messages.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Failures, data, fails, ok, ok_in, python, run, stderr, stdout};
use luthier::core::random::{Purpose, Stream};
use serde_json::{Value, json};
use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Returns the answer of sacreBLEU to a question, see `ask_sacrebleu.py`.
fn sacrebleu(python: &Path, question: &Value) -> Value {
    let mut child = Command::new(python)
        .arg(common::root().join("tests/ask_sacrebleu.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(question.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

fn json_of(words: &str) -> Value {
    serde_json::from_str(&ok(words)).unwrap()
}

fn close(a: &Value, b: &Value, what: &str) {
    let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
    assert!((a - b).abs() <= 1e-10 * b.abs().max(1.0), "{what}: ours {a}, sacreBLEU's {b}");
}

/// Returns random lines with words that are difficult for tokenisers; with `like`, most lines are edited copies of its
/// lines.
fn odd_text(s: &mut Stream, lines: usize, like: Option<&[String]>) -> Vec<String> {
    const WORDS: &[&str] = &[
        "the",
        "The",
        "house",
        "Haus",
        "it's",
        "1,000.5",
        "3-4",
        "U.S.A.",
        "(hi)",
        "\"so\"",
        "&quot;x&quot;",
        "&amp;lt;",
        "£5",
        "50%",
        "a.b,c",
        "…",
        "“quoted”",
        "naïve",
        "na\u{ef}ve",
        "nai\u{308}ve",
        "我有苹果",
        "苹果。",
        "😀",
        "👩‍👩‍👧",
        "🇩🇪",
        "ΣΑΣ",
        "ß",
        "İ",
        "-",
        "--",
        ".",
        ",",
        "'s",
        "don't",
        "x_y",
        "a/b",
        "<skipped>",
        "٣٤",
        "½",
        "²",
        "\u{a0}",
        "\u{3000}",
        "हिन्दी",
        "한국어",
        "日本語テスト",
        "e\u{301}",
        "ﬁ",
        "＄１０",
        "!?",
        "[X]",
        "{y}",
        "~",
        "`q`",
        "@",
        "#1",
    ];
    (0..lines)
        .map(|i| {
            let n = [0, 1, 1, 4, 8, 15, 30][s.below(7) as usize];
            let mut words: Vec<&str> = (0..n).map(|_| WORDS[s.below(WORDS.len() as u64) as usize]).collect();
            // In three of four cases, an edited copy of the given line.
            if let Some(base) = like.map(|l| &l[i]).filter(|_| s.below(4) > 0) {
                words = base.split(' ').collect();
                for _ in 0..s.below(4) {
                    let (a, b) = (s.below(words.len() as u64) as usize, s.below(words.len() as u64) as usize);
                    match s.below(3) {
                        0 => words.swap(a, b),
                        1 => words[a] = WORDS[s.below(WORDS.len() as u64) as usize],
                        _ => {
                            let cut: Vec<&str> = words.drain(a.min(b)..a.max(b)).collect();
                            words.extend(cut);
                        }
                    }
                }
            }
            words.join(" ")
        })
        .collect()
}

fn write_lines(path: PathBuf, lines: &[String], end: &str) -> PathBuf {
    fs::write(&path, lines.join(end) + end).unwrap();
    path
}

/// Asserts that scores and signatures of all metrics and settings of `ask_sacrebleu.py` equal those of sacreBLEU.
fn same_scores(python: &Path, hypothesis: &Path, references: &[PathBuf]) {
    let answers =
        sacrebleu(python, &json!({"ask": "score", "hypothesis": hypothesis, "references": references}));
    let refs: String = references.iter().map(|r| format!(" --ref {}", r.display())).collect();
    for answer in answers.as_array().unwrap() {
        let metric = answer["metric"].as_str().unwrap();
        let command = format!("score {}{refs} -q --metric {metric} --json", hypothesis.display());
        if let Some(sentences) = answer["sentences"].as_array() {
            let ours = json_of(&format!("{command} --sentence"));
            for (i, theirs) in sentences.iter().enumerate() {
                close(&ours[0]["scores"][i], theirs, &format!("{metric} of segment {i}"));
            }
            continue;
        }
        let ours = json_of(&command);
        close(&ours[0]["score"], &answer["score"], metric);
        let printed = format!("{:.2}", ours[0]["score"].as_f64().unwrap());
        assert_eq!(printed, answer["text"].as_str().unwrap(), "{metric}");
        let settings =
            |v: &Value| v.as_str().unwrap().rsplit_once("|version").unwrap().0.replace("|order:2", "");
        assert_eq!(settings(&ours[0]["signature"]), settings(&answer["signature"]), "{metric}");
    }
}

#[test]
fn scores_equal_sacrebleus_on_odd_text() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    for round in 0..3u32 {
        let mut s = Stream::new(23, Purpose::Test, 0, round);
        let reference = odd_text(&mut s, 150, None);
        let hypothesis = odd_text(&mut s, 150, Some(&reference));
        let end = if round == 1 { "\r\n" } else { "\n" };
        let mut references = vec![write_lines(dir.path().join("r0"), &reference, end)];
        for r in 0..round {
            let more = odd_text(&mut s, 150, Some(&reference));
            references.push(write_lines(dir.path().join(format!("r{}", r + 1)), &more, end));
        }
        same_scores(&python, &write_lines(dir.path().join("h"), &hypothesis, end), &references);
    }
}

/// Returns the paths of the uncompressed test references and of two Moses outputs; `None` without the real data.
fn real(dir: &Path) -> Option<(PathBuf, [PathBuf; 2])> {
    let reference = data("multi30k/test.en.gz")?;
    let lines = luthier::io::text::read_lines(&reference).unwrap().lines;
    let systems = [data("moses/test.mert.out")?, data("hiero/test.mert.out")?];
    Some((write_lines(dir.join("real"), &lines, "\n"), systems))
}

#[test]
fn scores_equal_sacrebleus_on_real_text() {
    let dir = tempfile::tempdir().unwrap();
    let (Some(python), Some((reference, systems))) = (python(), real(dir.path())) else { return };
    same_scores(&python, &systems[0], &[reference]);
}

fn same_tests(python: &Path, systems: &[PathBuf], references: &[PathBuf]) {
    let refs: String = references.iter().map(|r| format!(" --ref {}", r.display())).collect();
    let others: String = systems[1..].iter().map(|s| format!(" {}", s.display())).collect();
    for (test, short) in [("bootstrap", "bs"), ("randomization", "ar")] {
        let question = json!({"ask": "compare", "test": short, "systems": systems, "references": references});
        let theirs = sacrebleu(python, &question);
        let command = format!(
            "compare --baseline {}{others}{refs} -q --metric bleu,chrf,ter --test {test} --json",
            systems[0].display()
        );
        let output = run(&format!("{command} --threads 1"));
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
        assert_eq!(stdout(&output), stdout(&run(&format!("{command} --threads 2"))));
        let ours: Value = serde_json::from_str(stdout(&output)).unwrap();
        let four = |v: &Value| v.as_f64().map(|x| format!("{x:.4}"));
        for row in
            ours["baseline_scores"].as_array().unwrap().iter().chain(ours["systems"].as_array().unwrap())
        {
            let (metric, name) = (row["metric"].as_str().unwrap(), row["system"].as_str().unwrap());
            let at = systems.iter().position(|s| s.display().to_string() == name).unwrap();
            let expected = &theirs["results"][metric][at];
            let what = format!("{metric} of {name} by {test}");
            close(&row["score"], &expected["score"], &what);
            assert_eq!(row["p_value"].as_f64(), expected["p_value"].as_f64(), "{what}");
            if !expected["mean"].is_null() {
                assert_eq!(four(&row["mean"]), four(&expected["mean"]), "{what}");
                assert_eq!(four(&row["interval"]), four(&expected["ci"]), "{what}");
            }
            let settings = |v: &Value| v.as_str().unwrap().rsplit_once("|version").unwrap().0.to_owned();
            assert_eq!(settings(&row["signature"]), settings(&theirs["signatures"][metric]));
        }
    }
}

#[test]
fn significance_equals_sacrebleus() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    // One reference and three systems; three references and two systems.
    for (round, references, systems) in [(0u32, 1, 3), (1, 3, 2)] {
        let mut s = Stream::new(29, Purpose::Test, 0, round);
        let reference = odd_text(&mut s, 120, None);
        let mut refs = vec![write_lines(dir.path().join("r0"), &reference, "\n")];
        for r in 1..references {
            let more = odd_text(&mut s, 120, Some(&reference));
            refs.push(write_lines(dir.path().join(format!("r{r}")), &more, "\n"));
        }
        let paths: Vec<PathBuf> = (0..systems)
            .map(|i| {
                let lines = odd_text(&mut s, 120, Some(&reference));
                write_lines(dir.path().join(format!("s{i}")), &lines, "\n")
            })
            .collect();
        same_tests(&python, &paths, &refs);
    }
    if let Some((reference, systems)) = real(dir.path()) {
        same_tests(&python, &systems, &[reference]);
    }
}

#[test]
fn several_systems_make_a_table() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a"), "the cat sat on the mat\nhello\n").unwrap();
    fs::write(dir.path().join("b"), "the cat sat on a mat\nhello\n").unwrap();
    fs::write(dir.path().join("r"), "the cat sat on the mat\nhello\n").unwrap();
    let table = ok_in(dir.path(), "score a b --ref r -m bleu,ter");
    let expected = "system    BLEU    TER\n\
                    a       100.00   0.00\n\
                    b        54.11  14.29\n\
                    BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:luthier-0.1.0\n\
                    TER|nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:luthier-0.1.0\n";
    assert_eq!(table, expected);
    let sentences = ok_in(dir.path(), "score b --ref r --sentence -m wer");
    assert_eq!(sentences, "system\tsegment\tWER\nb\t0\t16.67\nb\t1\t0.00\n");
}

#[test]
fn references_that_differ_in_number() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().display();
    fs::write(dir.path().join("h"), "the cat sat here today\na dog ran over the road\n").unwrap();
    fs::write(
        dir.path().join("r"),
        "a cat sat here today\tthe cat sat there today\na dog ran over the road\n",
    )
    .unwrap();
    let line = ok(&format!("score {at}/h --ref {at}/r --ref-tabs"));
    assert!(line.starts_with("BLEU|nrefs:var|case:mixed|eff:no|tok:13a|smooth:exp|"), "{line}");
    assert!(line.contains(" = 94.57 100.0/100.0/100.0/80.0 "), "{line}");
}

#[test]
fn columns_are_scored_and_compared() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().display();
    let mut s = Stream::new(1, Purpose::Test, 0, 0);
    let (mut a, mut b, mut plain) = (String::new(), String::new(), String::new());
    for i in 0..200 {
        let x = s.unit();
        a += &format!("{{\"text\":\"line {i}\",\"comet\":{x}}}\n");
        b += &format!("{{\"text\":\"line {i}\",\"scores\":{{\"comet\":{}}}}}\n", x + 0.05 * s.unit());
        plain += &format!("{x}\n");
    }
    fs::write(dir.path().join("a.jsonl"), a).unwrap();
    fs::write(dir.path().join("b.jsonl"), b).unwrap();
    fs::write(dir.path().join("plain"), plain).unwrap();
    fs::write(dir.path().join("large"), "123456789\n0.1\n").unwrap();
    assert_eq!(
        ok(&format!("score {at}/large -m column:x --width 3")).split(" = ").nth(1),
        Some("61728394.550\n")
    );
    let scores = json_of(&format!("score {at}/a.jsonl {at}/plain -m column:comet --json"));
    assert_eq!(scores[0]["score"], scores[1]["score"]);
    for test in ["bootstrap", "randomization"] {
        let result = json_of(&format!(
            "compare --baseline {at}/a.jsonl {at}/b.jsonl -m column:comet --test {test} --json"
        ));
        assert!(result["systems"][0]["p_value"].as_f64().unwrap() < 0.05);
        assert!(result["systems"][0]["delta"].as_f64().unwrap() > 0.02);
        let same = run(&format!("compare --baseline {at}/a.jsonl {at}/plain -m column:comet --test {test}"));
        assert_eq!(same.status.code(), Some(1), "nothing is significant");
    }
}

#[test]
fn bad_input_is_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().display();
    let write = |name: &str, text: &[u8]| fs::write(dir.path().join(name), text).unwrap();
    write("h", b"a\nb\nc\n");
    write("short", b"a\nb\n");
    write("empty", b"");
    write("latin1", b"a\nb\xe9\nc\n");
    write("json", b"{\"comet\":1}\n{\"comet\":\"x\"}\n3\n");
    let cases = [
        (
            "score {at}/short --ref {at}/h",
            "short:3: the file has 2 lines, but h has 3; give files with one line per segment, in the same order; is one truncated?",
        ),
        (
            "score {at}/h --ref {at}/h --ref {at}/short",
            "short:3: the file ends here, but h has 3 lines; reference files need one line per segment, in the same order",
        ),
        (
            "score {at}/latin1 --ref {at}/h",
            "latin1:2: byte 2 of the line (0xe9) is not UTF-8; convert the file to UTF-8, with iconv for instance",
        ),
        ("score {at} --ref {at}/h", "DIR: is a directory, expected a file"),
        ("score {at}/empty --ref {at}/h", "empty: is empty, expected one translation per line"),
        ("score {at}/h --ref {at}/empty", "empty: is empty, expected one reference per line"),
        ("score {at}/h", "no references; give them with --ref FILE"),
        (
            "score {at}/h --ref {at}/h --tokenize 13b",
            "--tokenize is `13b`, expected none, 13a, intl, zh or char; did you mean 13a?",
        ),
        (
            "score {at}/h --ref {at}/h -m bleu:ordr=3",
            "--metric: unknown option of BLEU `ordr`: did you mean order? known: order, tokenize, smooth, smooth-value, effective-order, lowercase",
        ),
        (
            "score {at}/h --ref {at}/h -m column:comet",
            "h:1: found `a`, expected a JSON object or a number; a column metric reads one number per segment",
        ),
        (
            "score {at}/json -m column:comet",
            "json:2: has no number `comet`; column:comet reads it from every line",
        ),
        ("score {at}/h --ref {at}/h --lowercse", "`score` has no flag --lowercse; did you mean --lowercase?"),
        (
            "compare --baseline {at}/h {at}/short --ref {at}/h",
            "short:3: the file has 2 lines, but h has 3; give files with one line per segment, in the same order; is one truncated?",
        ),
        (
            "compare --baseline {at}/h {at}/h --ref {at}/h --test boot",
            "--test is `boot`, expected bootstrap or randomization; did you mean bootstrap?",
        ),
    ];
    let failures = Failures::default();
    for (command, expected) in cases {
        failures.row(command, || {
            let found = fails(&command.replace("{at}", &at.to_string()));
            let found = found.replace(&format!("{at}/"), "").replace(&at.to_string(), "DIR");
            assert_eq!(found, format!("luthier: {expected}"), "{command}");
        });
    }
}

#[test]
fn tokenised_text_is_warned_about() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().display();
    fs::write(dir.path().join("t"), "a b .\nc d .\ne f .\n").unwrap();
    let warned = |more: &str| !stderr(&run(&format!("score {at}/t --ref {at}/t {more}"))).is_empty();
    assert!(warned(""));
    assert!(!warned("--tokenize none") && !warned("-m chrf") && !warned("-q"));
}

#[test]
fn oracle_of_real_lists_is_far_above_the_first() {
    let (Some(nbest), Some(reference)) = (data("moses/nbest/run1.nbest.gz"), data("multi30k/dev.en.gz"))
    else {
        return;
    };
    let result = json_of(&format!("oracle --nbest {} --ref {} --json", nbest.display(), reference.display()));
    let score = |v: &Value| v["score"].as_f64().unwrap();
    eprintln!("oracle {:.2}, anti-oracle {:.2}", score(&result), score(&result["anti"]));
    assert!(score(&result) > 50.0 && score(&result["anti"]) < 25.0);
    assert_eq!(result["chosen"].as_array().unwrap().len(), 1014);
}

#[test]
fn completions_know_the_verbs() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(ok(&format!("completions {shell}")).contains("rerank"));
    }
}
