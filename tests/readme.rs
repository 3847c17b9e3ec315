//! The commands of the README and of the guide are run, one page after the other in one directory, in bash and in zsh, and print
//! what the pages show.
#![allow(clippy::unwrap_used)]

mod common;

use std::{path::Path, process::Command};

const PAGES: [(&str, usize); 2] = [("README.md", 20), ("docs/guide.md", 30)];

/// Runs every `$ command` of a page's console blocks with a shell in a directory, and returns the page with the outputs
/// of the commands, and their number.
fn played(page: &str, shell: &str, dir: &Path) -> (String, usize) {
    let bin = Path::new(env!("CARGO_BIN_EXE_luthier")).parent().unwrap().to_owned();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let (mut out, mut inside, mut commands) = (String::new(), false, 0);
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        }
        let command = line.strip_prefix("$ ").filter(|_| inside);
        if !inside || line.starts_with("```") || command.is_some() {
            out += &format!("{line}\n");
        }
        if let Some(command) = command {
            let mut run = Command::new(shell);
            run.args(["-c", command]).current_dir(dir).env("PATH", &path);
            let output = run.output().unwrap();
            assert!(output.status.success(), "{shell}$ {command}\n{}", common::stderr(&output));
            out += common::stdout(&output);
            commands += 1;
        }
    }
    (out, commands)
}

/// Runs both pages in an empty directory with the examples, and compares them with what they show.
fn check(shell: &str, bless: bool) {
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(common::root().join("examples"), dir.path().join("examples")).unwrap();
    for (file, least) in PAGES {
        let path = common::root().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        let (played, commands) = played(&text, shell, dir.path());
        assert!(commands >= least, "only {commands} commands found in {file}");
        if bless {
            std::fs::write(&path, played).unwrap();
        } else {
            let differs = played.lines().zip(text.lines()).find(|(now, said)| now != said);
            assert!(
                played == text,
                "{file} in {shell}: (now, shown) {differs:?}; LUTHIER_BLESS=1 updates it"
            );
        }
    }
}

/// With `LUTHIER_BLESS=1` the pages are rewritten instead; read the difference before committing it.
#[test]
fn commands_work_as_printed() {
    check("bash", std::env::var_os("LUTHIER_BLESS").is_some());
}

#[test]
fn commands_work_in_zsh() {
    if Command::new("zsh").arg("--version").output().is_err() {
        common::skip("readme: zsh is not installed");
        return;
    }
    check("zsh", false);
}
