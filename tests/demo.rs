//! Tests of `luthier demo` on a small corpus.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Failures, in_dir, ok_in, stderr};
use serde_json::Value;
use std::fs;

/// Starts the demo with --serve on complete results, reads the address and the page, and stops the server.
#[cfg(feature = "serve")]
fn serves_at_the_end(dir: &std::path::Path) {
    use std::{
        io::{BufRead, BufReader, Read, Write},
        net::TcpStream,
        process::{Command, Stdio},
    };
    let mut demo = common::luthier();
    demo.args(["demo", "--data", "c", "--output", "d", "-q", "--serve", "--listen", "127.0.0.1:0"]);
    let mut child = demo.current_dir(dir).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let address =
        lines.map_while(Result::ok).find_map(|l| Some(l.strip_prefix("http://")?.to_owned())).unwrap();
    let mut stream = TcpStream::connect(&address).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    assert!(page.starts_with("HTTP/1.1 200 OK") && page.contains("page.js"), "{page}");
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

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
    // With --serve, the demo ends with a server for the best phrase-based system.
    #[cfg(feature = "serve")]
    serves_at_the_end(dir);
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
