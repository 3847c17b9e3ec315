//! Ctrl-C: one line with the command to resume, exit code 130, and the best weights so far in `best.txt`.
#![allow(clippy::unwrap_used)]

mod common;

use common::{luthier, ok_in, stderr};
use std::{
    fs,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

#[test]
fn an_interrupted_run_says_how_to_resume_and_keeps_the_best_weights() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    // New candidates in every iteration, so that the run does not converge.
    let candidates =
        "0 ||| the house ||| a= 1 b= 2 ||| 0\\n0 ||| a house {iteration} ||| a= 2 b= {iteration} ||| 0\\n";
    let decoder = format!("test -s {{weights}} && sleep 0.05 && printf '{candidates}'");
    fs::write(dir.join("source"), "das haus\n").unwrap();
    fs::write(dir.join("ref"), "the house\n").unwrap();
    fs::write(dir.join("init"), "a 1\nb 1\n").unwrap();
    let mut tune = luthier();
    tune.args(["tune", "pro", "--command", &decoder, "--source", "source", "--ref", "ref", "--init", "init"])
        .args(["--iterations", "100000", "--run", "R"])
        .current_dir(dir)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = tune.spawn().unwrap();
    while !dir.join("R/weights/002.txt").exists() {
        thread::sleep(Duration::from_millis(20));
    }
    let best = fs::read_to_string(dir.join("R/best.txt")).unwrap();
    assert!(best.lines().any(|l| l == "# best so far: the run is not finished"), "{best}");
    // A terminal sends the signal to the whole group: to luthier and to the decoder.
    let group = format!("-{}", child.id());
    assert!(Command::new("kill").args(["-INT", "--", &group]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let last = stderr(&output).lines().last().unwrap();
    assert!(
        last.starts_with("luthier: interrupted; resume with: ")
            && last.contains("luthier tune pro --command 'test -s"),
        "{last}"
    );
    assert!(last.ends_with("--iterations 100000 --run R"), "{last}");
    // The directory is not locked, and the best weights can be used.
    ok_in(dir, "report R -o page.html -q");
}
