//! Tests of `luthier demo` on a small corpus.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Failures, in_dir, ok_in, stderr};
use serde_json::Value;
use std::fs;

#[test]
fn everything_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    ok_in(dir, "generate --output c --train 600 --dev 20 --test 20 -q");
    let output = in_dir(dir, "demo --data c --output d");
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    // Every step is printed as a command.
    assert!(
        said.contains(" s  luthier tune mert --iterations 5 --model d/phrase --source c/dev.de"),
        "{said}"
    );
    let last = said.lines().last().unwrap();
    assert!(last.ends_with("s in total; results are in d; open d/report.html in a browser"), "{last}");
    assert!(fs::read_to_string(dir.join("d/report.html")).unwrap().contains("hiero.O-ORO-L"));
    let output = in_dir(dir, "demo --data c --output d --json");
    assert_eq!((output.status.success(), stderr(&output)), (true, ""));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let cells = found["systems"].as_array().unwrap();
    assert_eq!((found["untuned"].as_array().unwrap().len(), cells.len()), (2, 12));
    for cell in cells {
        for key in ["dev", "score", "delta", "p_value", "seconds"] {
            assert!(cell[key].as_f64().is_some_and(f64::is_finite), "{key}: {cell}");
        }
    }
    // A second run reuses all results and prints the table and three sentences.
    let again = ok_in(dir, "demo --data c --output d -q");
    assert_eq!(again.lines().filter(|l| l.starts_with("phrase, ") || l.starts_with("hiero, ")).count(), 14);
    assert_eq!(again.lines().filter(|l| l.starts_with("  source ")).count(), 3, "{again}");
    let first = &cells[0];
    let score = format!("{:.2}", first["score"].as_f64().unwrap());
    assert!(again.lines().any(|l| l.starts_with("phrase, MERT") && l.contains(&score)), "{again}");
    // Invalid corpora.
    let failures = Failures::default();
    let fails = |words: &str, message: &str| {
        failures.row(words, || {
            let output = in_dir(dir, words);
            let found = (output.status.code(), stderr(&output));
            assert_eq!(found, (Some(2), format!("luthier: {message}\n").as_str()));
            assert!(!dir.join("e").exists());
        });
    };
    fails(
        "demo --data nowhere --output e",
        "nowhere/train.de: cannot open it: no such file or directory; check the path",
    );
    fails(
        "demo --data c --languages de-fr --output e",
        "c/train.fr: cannot open it: no such file or directory; check the path",
    );
    fails(
        "demo --output e --languages de-en",
        "`demo` needs --data <DIR> (directory of a tokenised corpus of your own: train, dev and test in two languages, such as train.de and train.en); see `luthier demo -h`",
    );
    fs::write(dir.join("c/dev.en"), "one line\n").unwrap();
    fails(
        "demo --data c --output e",
        "c/dev.de: has 20 lines, but c/dev.en has 1; both need one line per segment, and at least one",
    );
}
