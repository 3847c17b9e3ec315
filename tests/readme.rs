//! The README's commands are run, and print what it says.
#![allow(clippy::unwrap_used)]

mod common;

use std::process::Command;

/// A command and the output below it.
struct Step {
    command: String,
    expected: String,
}

fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            steps.push(Step { command: command.to_owned(), expected: String::new() });
        } else if inside && let Some(step) = steps.last_mut() {
            step.expected += line;
            step.expected.push('\n');
        }
    }
    steps
}

#[test]
fn commands_work_as_printed() {
    let readme = std::fs::read_to_string(common::root().join("README.md")).unwrap();
    let steps = steps(&readme);
    assert!(steps.len() >= 4, "only {} commands found", steps.len());
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(common::root().join("examples"), dir.path().join("examples")).unwrap();
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_luthier")).parent().unwrap().to_owned();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    for step in steps {
        let output = Command::new("bash")
            .args(["-c", &step.command])
            .current_dir(dir.path())
            .env("PATH", &path)
            .output()
            .unwrap();
        assert!(output.status.success(), "$ {}\n{}", step.command, common::stderr(&output));
        assert_eq!(common::stdout(&output), step.expected, "$ {}", step.command);
    }
}
