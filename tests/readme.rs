//! Runs the commands of the README and of the guide and compares their output with the text.
#![allow(clippy::unwrap_used)]

mod common;

use std::process::Command;

/// Runs every `$ command` in the console blocks of a Markdown text, in an empty directory with the examples; returns the
/// text with the actual outputs, and the number of commands.
fn played(readme: &str) -> (String, usize) {
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(common::root().join("examples"), dir.path().join("examples")).unwrap();
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_luthier")).parent().unwrap().to_owned();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let (mut out, mut inside, mut commands) = (String::new(), false, 0);
    for line in readme.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        }
        let command = line.strip_prefix("$ ").filter(|_| inside);
        if !inside || line.starts_with("```") || command.is_some() {
            out += &format!("{line}\n");
        }
        if let Some(command) = command {
            let mut bash = Command::new("bash");
            bash.args(["-c", command]).current_dir(dir.path()).env("PATH", &path);
            let output = bash.output().unwrap();
            assert!(output.status.success(), "$ {command}\n{}", common::stderr(&output));
            out += common::stdout(&output);
            commands += 1;
        }
    }
    (out, commands)
}

/// With `LUTHIER_BLESS=1`, the files are rewritten with the actual outputs; review the difference before committing.
#[test]
fn commands_work_as_printed() {
    for (file, least) in [("README.md", 20), ("docs/guide.md", 30)] {
        let path = common::root().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        let (played, commands) = played(&text);
        assert!(commands >= least, "only {commands} commands found in {file}");
        if std::env::var_os("LUTHIER_BLESS").is_some() {
            std::fs::write(&path, played).unwrap();
        } else {
            let differs = played.lines().zip(text.lines()).find(|(now, said)| now != said);
            assert!(played == text, "{file}: (now, said) {differs:?}; LUTHIER_BLESS=1 writes it anew");
        }
    }
}
