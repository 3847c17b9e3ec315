//! Tests of `tune`, `rerank` and `score` with the real binary.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Failures, data, fails, luthier, ok, run, stderr, write_lists, write_pool};
use std::{fs, path::Path, process::Stdio, time::Duration};

/// Initial weights from the README of the data set.
const INITIAL: &str = "LexicalReordering0= 0.3 0.3 0.3 0.3 0.3 0.3\nDistortion0= 0.3\nLM0= 0.5\n\
    WordPenalty0= -1\nPhrasePenalty0= 0.2\nTranslationModel0= 0.2 0.2 0.2 0.2\n";

#[test]
fn multi30k_improves_and_can_be_reproduced() {
    let (Some(nbest), Some(reference)) = (data("moses/nbest/run1.nbest.gz"), data("multi30k/dev.en.gz"))
    else {
        return;
    };
    let (nbest, reference) = (nbest.display(), reference.display());
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().display();
    fs::write(dir.path().join("init"), INITIAL).unwrap();
    let json = ok(&format!(
        "tune mert --nbest {nbest} --ref {reference} --init {at}/init --restarts 4 --run {at}/R --json -q"
    ));
    let result: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(format!("{:.2}", result["initial"].as_f64().unwrap()), "39.05");
    let score = result["score"].as_f64().unwrap();
    assert!(score >= 40.8, "{score}");
    ok(&format!("rerank --nbest {nbest} --weights {at}/R/best.txt -o {at}/out"));
    let scored = ok(&format!("score {at}/out --ref {reference} --tokenize none --json"));
    let scored: serde_json::Value = serde_json::from_str(&scored).unwrap();
    assert_eq!(scored[0]["score"], result["score"]);
}

fn tune(dir: &Path, run: &str, more: &str) -> std::process::Command {
    let mut command = luthier();
    let words = format!("tune mert --nbest nbest --ref ref --run {run} --restarts 150 -q {more}");
    command.args(words.split_whitespace()).current_dir(dir);
    command
}

#[test]
fn one_thread_two_threads_same_bits() {
    let dir = tempfile::tempdir().unwrap();
    write_pool(dir.path());
    for threads in ["1", "2", "3"] {
        let status = tune(dir.path(), threads, &format!("--threads {threads}")).status().unwrap();
        assert!(status.success());
    }
    let best = |run: &str| fs::read_to_string(dir.path().join(run).join("best.txt")).unwrap();
    assert_eq!(best("1"), best("2"));
    assert_eq!(best("1"), best("3"));
}

/// Runs that are killed at five points in time and resumed give the same files as an uninterrupted run.
#[test]
fn killed_and_started_again_gives_the_same_bits() {
    let dir = tempfile::tempdir().unwrap();
    write_pool(dir.path());
    let clock = std::time::Instant::now();
    assert!(tune(dir.path(), "whole", "").status().unwrap().success());
    let length = clock.elapsed();
    let mut s = luthier::core::random::Stream::new(4, luthier::core::random::Purpose::Test, 0, 0);
    for kill in 0..5u32 {
        let name = format!("cut{kill}");
        let mut child = tune(dir.path(), &name, "").spawn().unwrap();
        std::thread::sleep(length.mul_f64(s.uniform(0.2 * f64::from(kill), 0.2 * f64::from(kill + 1))));
        let _ = child.kill(); // SIGKILL; the run may already be complete
        child.wait().unwrap();
        assert!(tune(dir.path(), &name, "").status().unwrap().success());
        for file in ["best.txt", "run.toml", "weights/000.txt", "weights/001.txt"] {
            let read = |run: &str| fs::read_to_string(dir.path().join(run).join(file)).unwrap();
            assert_eq!(read(&name), read("whole"), "{file} after kill {kill}");
        }
    }
}

/// A run that is killed while it creates its directory can be started again.
#[test]
fn killed_at_once_and_started_again() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("nbest"), "0 ||| a b ||| x= 1 ||| 1\n0 ||| a c ||| x= 2 ||| 1\n").unwrap();
    fs::write(dir.path().join("ref"), "a b\n").unwrap();
    let mut s = luthier::core::random::Stream::new(5, luthier::core::random::Purpose::Test, 0, 0);
    for kill in 0..60 {
        let name = format!("cut{kill}");
        let mut child = tune(dir.path(), &name, "").stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(s.below(12_000)));
        let _ = child.kill();
        child.wait().unwrap();
        let again = tune(dir.path(), &name, "").output().unwrap();
        assert!(again.status.success(), "{}", stderr(&again));
        let hidden = |e: &fs::DirEntry| e.file_name().to_string_lossy().ends_with(".tmp");
        assert!(!fs::read_dir(dir.path().join(&name)).unwrap().flatten().any(|e| hidden(&e)));
    }
}

/// Weights are written even if the initial weights cannot be improved.
#[test]
fn weights_that_cannot_be_improved_are_written() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("nbest"), "0 ||| a b c d ||| x= 1 y= 0 ||| 1\n0 ||| a c ||| x= 0 y= 1 ||| 1\n")
        .unwrap();
    fs::write(dir.path().join("ref"), "a b c d\n").unwrap();
    fs::write(dir.path().join("init"), "x 2\n").unwrap();
    for (run, init, expected) in [("R", "", "x 0.5\ny -0.5\n"), ("S", "--init init", "x 0.5\ny -0.5\n")] {
        let output = tune(dir.path(), run, init).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let text = fs::read_to_string(dir.path().join(run).join("best.txt")).unwrap();
        let weights: String =
            text.lines().filter(|l| !l.starts_with('#')).map(|l| format!("{l}\n")).collect();
        let sorted = |t: &str| {
            let mut l: Vec<String> = t.lines().map(str::to_owned).collect();
            l.sort();
            l
        };
        if init.is_empty() {
            assert_eq!(sorted(&weights), sorted(expected));
        }
        let value = |name: &str| -> f64 {
            weights.lines().find_map(|l| l.strip_prefix(name)).unwrap().trim().parse().unwrap()
        };
        assert!(value("x ") > value("y "), "the first candidate wins: {weights}");
        fs::remove_file(dir.path().join(run).join("best.txt")).unwrap();
        assert!(tune(dir.path(), run, init).status().unwrap().success());
        assert_eq!(fs::read_to_string(dir.path().join(run).join("best.txt")).unwrap(), text, "written again");
    }
}

#[test]
fn wrong_input_gives_one_line_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().display();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    write("good", "0 ||| a b ||| x= 1 ||| 1\n0 ||| a ||| x= 2 ||| 1\n1 ||| c ||| x= 0 ||| 1\n");
    write("ref", "a b\nc\n");
    write("short", "a b\n");
    write("long", "a b\nc\nd\n");
    write("nan", "0 ||| a b ||| x= 1 ||| 1\n0 ||| a ||| x= NaN ||| 1\n1 ||| c ||| x= 0 ||| 1\n");
    write("other", "y 1\n");
    write("empty", "");
    let message = |more: &str| {
        let line = fails(&format!("tune mert --run {at}/R {more}"));
        assert!(!dir.path().join("R").exists(), "{more} left a run directory");
        line.replace(&format!("{at}/"), "")
    };
    let cases = [
        (
            "--nbest {at}/gone --ref {at}/ref",
            "luthier: gone: cannot open it: no such file or directory; check the path",
        ),
        (
            "--nbest {at}/nan --ref {at}/ref",
            "luthier: nan:2: the value of x is `NaN`, expected a finite number; replace it, or remove the candidate",
        ),
        (
            "--nbest {at}/good --ref {at}/short",
            "luthier: good:3: segment 1 has no reference: short ends after line 1; give references with one line per segment (segments count from 0); is the file truncated, or from another set?",
        ),
        (
            "--nbest {at}/good --ref {at}/long",
            "luthier: good: segment 2 has no candidate for line 3 of long; --allow-missing skips segments without candidates",
        ),
        (
            "--nbest {at}/good --ref {at}/ref --ref {at}/short",
            "luthier: short:2: the file ends here, but ref has 2 lines; \
             reference files need one line per segment, in the same order",
        ),
        (
            "--nbest {at}/good --ref {at}/ref --init {at}/other",
            "luthier: other: no weight for x; the file has: y; rename the weights, or give a file for the features of the lists",
        ),
        ("--nbest {at}/empty --ref {at}/ref", "luthier: empty: holds no candidate, expected an n-best list"),
        ("--nbest {at}/good --ref {at}/empty", "luthier: empty: is empty, expected one reference per line"),
        (
            "--nbest {at} --ref {at}/ref",
            "luthier: DIR: is a directory without n-best lists; give a file, or a directory of ESPnet (with 1best_recog/text) or Kaldi (with words and keys utterance-1)",
        ),
    ];
    let failures = Failures::default();
    for (more, expected) in cases {
        failures.row(more, || {
            let found = message(&more.replace("{at}", &at.to_string()));
            assert_eq!(found.replace(&at.to_string(), "DIR"), expected);
        });
    }
}

#[test]
fn a_run_directory_is_guarded() {
    let dir = tempfile::tempdir().unwrap();
    write_pool(dir.path());
    assert!(
        tune(dir.path(), "R", "--restarts 1").output().unwrap().status.code() == Some(2),
        "flag given twice"
    );
    assert!(tune(dir.path(), "R", "").status().unwrap().success());
    let other = tune(dir.path(), "R", "--seed 9").output().unwrap();
    assert_eq!(other.status.code(), Some(2));
    assert!(stderr(&other).contains("seed is 1 there and 9 here"), "{}", stderr(&other));
    fs::create_dir(dir.path().join("mine")).unwrap();
    fs::write(dir.path().join("mine/thesis.tex"), "x").unwrap();
    let mine = tune(dir.path(), "mine", "").output().unwrap();
    assert!(stderr(&mine).contains("is not a run directory"), "{}", stderr(&mine));
    assert_eq!(fs::read_dir(dir.path().join("mine")).unwrap().count(), 1);
}

#[test]
fn rerank_writes_a_sorted_list_that_can_be_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().display();
    let nbest =
        "0 ||| a ||| x= 1 t= 1 2 ||| 1\n0 ||| b ||| x= 3 t= 0 0 ||| 1\n1 |||  ||| x= 0 t= 1 1 ||| 1\n";
    fs::write(dir.path().join("n"), nbest).unwrap();
    fs::write(dir.path().join("w"), "x 1\nt[0] 0.5\nt[1] 0\n").unwrap();
    assert_eq!(ok(&format!("rerank --nbest {at}/n --weights {at}/w --nbest-out {at}/sorted")), "b\n\n");
    let sorted = fs::read_to_string(dir.path().join("sorted")).unwrap();
    assert_eq!(
        sorted,
        "0 ||| b ||| x= 3 t= 0 0 ||| 3\n0 ||| a ||| x= 1 t= 1 2 ||| 1.5\n1 |||  ||| x= 0 t= 1 1 ||| 0.5\n"
    );
    assert_eq!(ok(&format!("rerank --nbest {at}/sorted --weights {at}/w")), "b\n\n");
}

#[test]
fn mistyped_flags_are_one_line_with_the_nearest() {
    assert_eq!(
        fails("tune mert --nbset x"),
        "luthier: `tune mert` has no flag --nbset; did you mean --nbest?"
    );
    assert_eq!(
        fails("score x --ref y --metric blue"),
        "luthier: --metric: unknown metric `blue`, expected one of bleu, chrf, chrf++, ter, wer, cer, column:NAME; did you mean bleu?"
    );
    let help = run("tune mert --help");
    assert!(help.status.success() && common::stdout(&help).contains("--restarts"));
}

/// A build without MPI rejects several processes, because each would do all the work.
#[cfg(not(feature = "mpi"))]
#[test]
fn several_processes_are_refused() {
    let started = |rank: &str| {
        let words = ["tune", "mert", "--nbest", "x", "--ref", "y", "--run", "z"];
        let job = [("OMPI_COMM_WORLD_SIZE", "3"), ("OMPI_COMM_WORLD_RANK", rank)];
        let output = common::luthier().args(words).envs(job).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        common::stderr(&output).to_owned()
    };
    let message = "luthier: 3 processes were started, but this luthier was built without MPI; build it with \
                   `cargo build --release --features mpi`, or start one process\n";
    assert_eq!((started("0").as_str(), started("1").as_str()), (message, ""));
}

/// Runs scripts/pools with Python.
fn pools(python: &Path, args: &[&std::ffi::OsStr]) -> String {
    let output = std::process::Command::new(python)
        .arg(common::root().join("scripts/pools"))
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn mert_reaches_proved_optima() {
    let Some(python) = common::python() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (optima, pool) = (common::root().join("tests/pools/optima.tsv"), dir.path().as_os_str());
    pools(&python, &["write".as_ref(), optima.as_os_str(), pool]);
    let luthier = env!("CARGO_BIN_EXE_luthier");
    let table = pools(&python, &["judge".as_ref(), optima.as_os_str(), pool, luthier.as_ref()]);
    assert_eq!(table.lines().count(), 3, "{table}");
    for line in table.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (reached, loss): (u32, f64) = (words[1].parse().unwrap(), words[8].parse().unwrap());
        assert!(words[3] == "200" && reached >= 190 && loss <= 0.15, "{table}");
    }
}

#[test]
fn mert_proves_what_it_can() {
    let dir = tempfile::tempdir().unwrap();
    write_lists(dir.path(), 4, 6);
    let at = dir.path().display();
    let base = format!("tune mert --nbest {at}/nbest --ref {at}/ref --certify -q");
    let text = ok(&format!("{base} --run {at}/A"));
    assert!(
        text.lines().nth(1).unwrap().starts_with("optimal: no weights have a better BLEU than "),
        "{text}"
    );
    let json: serde_json::Value = serde_json::from_str(&ok(&format!("{base} --run {at}/B --json"))).unwrap();
    assert_eq!(json["certificate"]["bound"], json["score"]);
    assert_eq!(json["certificate"]["optimal"], true);
    // A complete run says it again.
    assert_eq!(ok(&format!("{base} --run {at}/A")), text);
    for (more, message) in [
        ("--metric chrf", "no bound is known for chrF2"),
        ("--fix A[0]", "--certify does not go with --fix; leave out --certify"),
    ] {
        assert!(fails(&format!("{base} --run {at}/C {more}")).contains(message));
    }
    write_lists(dir.path(), 70, 4);
    let text = ok(&format!("{base} --run {at}/D"));
    assert!(text.lines().nth(1).unwrap().starts_with("oracle bound: "), "{text}");
}
