//! `score` against sacreBLEU.
#![allow(clippy::unwrap_used)]

mod common;

use common::{data, ok, python};
use std::{fs, path::Path, process::Command};

fn sacrebleu(python: &Path, hypothesis: &Path, references: &[&Path], tokenize: &str) -> String {
    let output = Command::new(python)
        .args(["-m", "sacrebleu", "-b", "-w", "6", "--force", "-tok", tokenize])
        .args(references)
        .arg("-i")
        .arg(hypothesis)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", common::stderr(&output));
    common::stdout(&output).trim().to_owned()
}

#[test]
fn bleu_equals_sacrebleu_on_real_text() {
    let (Some(python), Some(reference), Some(hypothesis)) =
        (python(), data("multi30k/test.en.gz"), data("moses/test.mert.out"))
    else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("ref");
    let lines = luthier::core::text::read_lines(&reference).unwrap().lines;
    fs::write(&plain, lines.join("\n") + "\n").unwrap();
    for tokenize in ["none", "13a"] {
        let ours = ok(&format!(
            "score {} --ref {} --tokenize {tokenize} --width 6",
            hypothesis.display(),
            reference.display()
        ));
        let ours = ours.split(" = ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
        assert_eq!(ours, sacrebleu(&python, &hypothesis, &[&plain], tokenize), "{tokenize}");
    }
}
