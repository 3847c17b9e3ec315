//! Run directories of all earlier formats are resumed or rejected with a one-line error; runs can be extended.
#![allow(clippy::unwrap_used)]

mod common;

use common::{luthier, root, stderr, stdout};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

const RUNS: [&str; 3] = ["list", "loop", "online"];

/// Returns a directory with the examples and a copy of a stored run as `R`.
fn with_run(format: &str, run: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root().join("examples"), dir.path().join("examples")).unwrap();
    copy(&root().join("tests/runs").join(format).join(run), &dir.path().join("R"));
    dir
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let there = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &there);
        } else {
            fs::copy(&path, &there).unwrap();
        }
    }
}

/// Runs the command that produced a stored run.
fn repeat(dir: &Path, format: &str, run: &str) -> Output {
    let script = root().join("tests/runs").join(format).join(format!("{run}.sh"));
    let command = fs::read_to_string(script).unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_luthier")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    Command::new("sh").args(["-c", &command]).current_dir(dir).env("PATH", path).output().unwrap()
}

/// Returns the paths and contents of all files of a run except its lock.
fn contents(run: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    let mut open = vec![run.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.file_name().is_some_and(|n| n != ".lock") {
                let bytes = fs::read(&path).unwrap();
                all.push((path.strip_prefix(run).unwrap().to_owned(), bytes));
            }
        }
    }
    all.sort();
    all
}

/// Returns the weights files of all iterations and best.txt, without comments.
fn weights(run: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = contents(run);
    all.retain(|(path, _)| path.starts_with("weights") || path == Path::new("best.txt"));
    for (_, bytes) in &mut all {
        let text = String::from_utf8(bytes.clone()).unwrap();
        let kept: String = text.lines().filter(|l| !l.starts_with('#')).map(|l| format!("{l}\n")).collect();
        *bytes = kept.into_bytes();
    }
    all
}

#[test]
fn earlier_formats_are_refused_in_one_line() {
    for (format, run) in ["format-1", "format-2"].into_iter().flat_map(|f| RUNS.map(|run| (f, run))) {
        let dir = with_run(format, run);
        let before = contents(&dir.path().join("R"));
        let output = repeat(dir.path(), format, run);
        assert_eq!(output.status.code(), Some(2), "{run}");
        let last = stderr(&output).lines().last().unwrap();
        assert_eq!(
            last,
            "luthier: R: holds a run of another version of luthier; its results can be read, but it cannot be resumed; \
             use another --run directory",
            "{run}"
        );
        assert_eq!(contents(&dir.path().join("R")), before, "{run}");
    }
}

#[test]
fn earlier_formats_can_be_reported_on() {
    let algorithm = |run: &str| if run == "online" { "perceptron" } else { "mert" };
    for (format, run) in ["format-1", "format-2"].into_iter().flat_map(|f| RUNS.map(|run| (f, run))) {
        let (dir, algorithm) = (with_run(format, run), algorithm(run));
        let output =
            luthier().args(["report", "R", "-o", "page.html"]).current_dir(dir.path()).output().unwrap();
        assert!(output.status.success(), "{run}: {}", stderr(&output));
        let page = fs::read_to_string(dir.path().join("page.html")).unwrap();
        assert!(page.contains(&format!("\"algorithm\":\"{algorithm}\"")), "{run}");
    }
}

#[test]
fn format_3_is_resumed_to_the_same_weights() {
    for run in RUNS {
        let dir = with_run("format-3", run);
        let output = repeat(dir.path(), "format-3", run);
        assert!(output.status.success(), "{run}: {}", stderr(&output));
        assert_eq!(stderr(&output).contains("R is already complete"), run != "loop", "{run}");
        let fresh = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(root().join("examples"), fresh.path().join("examples")).unwrap();
        let whole = repeat(fresh.path(), "format-3", run);
        assert_eq!(stdout(&whole), stdout(&output), "{run}");
        assert_eq!(weights(&fresh.path().join("R")), weights(&dir.path().join("R")), "{run}");
    }
}

/// Runs `tune` on the quickstart lists with the run directory `R`.
fn tune(dir: &Path, words: &str) -> Output {
    let lists = "--nbest examples/quickstart/nbest.txt --ref examples/quickstart/ref.txt --run";
    common::in_dir(dir, &format!("tune {words} {lists} R"))
}

#[test]
fn more_iterations_extend_a_run() {
    let new = || {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(root().join("examples"), dir.path().join("examples")).unwrap();
        dir
    };
    for algorithm in ["perceptron", "oro --shards 2", "mira --constraints oracle"] {
        let (whole, extended) = (new(), new());
        let run = |dir: &Path, n: u32| tune(dir, &format!("{algorithm} --iterations {n}"));
        assert!(run(whole.path(), 5).status.success());
        assert!(run(extended.path(), 2).status.success());
        assert_ne!(weights(&whole.path().join("R")), weights(&extended.path().join("R")));
        assert!(run(extended.path(), 5).status.success());
        assert_eq!(weights(&whole.path().join("R")), weights(&extended.path().join("R")), "{algorithm}");
        let fewer = run(extended.path(), 4);
        assert_eq!(fewer.status.code(), Some(2));
        let said = stderr(&fewer).lines().last().unwrap();
        assert!(said.contains("other settings: recipe.iterations is 5 there and 4 here"), "{said}");
        let other = tune(extended.path(), &format!("{algorithm} --iterations 6 --batch-size 3"));
        assert!(stderr(&other).contains("recipe.batch-size is"), "{}", stderr(&other));
    }
    // A run that stopped for another reason is not extended, and the reason is printed.
    let dir = new();
    assert!(tune(dir.path(), "mert --iterations 2").status.success());
    let again = tune(dir.path(), "mert --iterations 9");
    assert!(again.status.success());
    assert!(
        stderr(&again).contains("R is already complete: fixed lists: one optimisation"),
        "{}",
        stderr(&again)
    );
}
