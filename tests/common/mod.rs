//! Helpers for the tests that run the real binary.
#![allow(dead_code, clippy::unwrap_used, clippy::print_stderr)]

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// Returns a command that runs the binary under test, without arguments.
pub(crate) fn luthier() -> Command {
    Command::new(env!("CARGO_BIN_EXE_luthier"))
}

/// Runs the binary with the blank-separated arguments in `words`.
pub(crate) fn run(words: &str) -> Output {
    luthier().args(words.split_whitespace()).output().unwrap()
}

pub(crate) fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

pub(crate) fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

/// Runs the binary with the arguments in `words`, asserts success and returns standard output.
pub(crate) fn ok(words: &str) -> String {
    ok_in(Path::new("."), words)
}

/// Runs the binary in the directory `dir`, asserts success and returns standard output.
pub(crate) fn ok_in(dir: &Path, words: &str) -> String {
    let output = in_dir(dir, words);
    assert!(output.status.success(), "luthier {words}\n{}", stderr(&output));
    stdout(&output).to_owned()
}

/// Runs the binary in the directory `dir` and returns its output and exit status, which may be an error.
pub(crate) fn in_dir(dir: &Path, words: &str) -> Output {
    luthier().args(words.split_whitespace()).current_dir(dir).output().unwrap()
}

/// Starts the binary once per delay and kills it after that many milliseconds.
pub(crate) fn kill_after(dir: &Path, words: &str, delays: &[u64]) {
    for &delay in delays {
        let mut child = luthier()
            .args(words.split_whitespace())
            .current_dir(dir)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(delay));
        let _ = child.kill();
        child.wait().unwrap();
    }
}

/// Runs the binary, asserts exit code 2, an empty standard output and one line on standard error besides those that tell how
/// lists were read, and returns that line.
pub(crate) fn fails(words: &str) -> String {
    let output = run(words);
    assert_eq!(output.status.code(), Some(2), "luthier {words}\n{}", stderr(&output));
    assert_eq!(stdout(&output), "");
    let lines: Vec<&str> = stderr(&output).lines().filter(|l| !l.contains(": id: ")).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines[0].to_owned()
}

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the path of a file of the real data; without it, records that the test is skipped and returns `None`, or fails
/// with CI=true.
pub(crate) fn data(file: &str) -> Option<PathBuf> {
    let base = std::env::var_os("LUTHIER_DATA").map_or_else(|| root().join("../shared/data"), PathBuf::from);
    let path = base.join(file);
    if path.exists() {
        return Some(path);
    }
    skip(&format!("no {file} in {} (set LUTHIER_DATA)", base.display()));
    None
}

/// Returns the path of the Python interpreter with the reference programs, which scripts/check installs; without it,
/// records that the test is skipped and returns `None`, or fails with CI=true.
pub(crate) fn python() -> Option<PathBuf> {
    let path = std::env::var_os("LUTHIER_PYTHON")
        .map_or_else(|| root().join("target/venv/bin/python"), PathBuf::from);
    if path.exists() {
        return Some(path);
    }
    skip("no Python environment with the reference programs (run scripts/check)");
    None
}

/// Records that the running test, or a part of it, is skipped: appends a line to the file named by `LUTHIER_SKIPPED`,
/// which scripts/check prints at its end. With CI=true the test fails.
pub(crate) fn skip(why: &str) {
    let thread = std::thread::current();
    let line = format!("{}: {why}\n", thread.name().unwrap_or("a test"));
    if let Some(file) = std::env::var_os("LUTHIER_SKIPPED") {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
        file.write_all(line.as_bytes()).unwrap();
    }
    assert!(std::env::var_os("CI").is_none_or(|v| v != "true"), "with CI=true nothing may be skipped: {why}");
    eprintln!("\n*** SKIPPED: {why} ***\n");
}

/// Collects the failures of a table-driven test: when the value is dropped, the test fails once with all failed rows.
#[derive(Default)]
pub(crate) struct Failures(std::cell::RefCell<Vec<String>>);

impl Failures {
    /// Runs the assertions of one row and records a failure under `name`.
    pub(crate) fn row(&self, name: &str, check: impl FnOnce()) {
        let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)) else { return };
        let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        self.0.borrow_mut().push(format!("{name}\n{text}"));
    }
}

impl Drop for Failures {
    fn drop(&mut self) {
        let failed = self.0.borrow();
        let all = failed.join("\n\n");
        if std::thread::panicking() {
            eprintln!("{all}");
        } else {
            assert!(failed.is_empty(), "{} rows failed:\n\n{all}", failed.len());
        }
    }
}

/// Writes `nbest` and `ref`: 60 segments with 60 candidates and 6 features, enough for MERT to take a noticeable time.
pub(crate) fn write_pool(dir: &Path) {
    write_lists(dir, 60, 60);
}

/// Writes lists of random candidates with six features, and their references.
pub(crate) fn write_lists(dir: &Path, segments: u32, candidates: u32) {
    use luthier::core::random::{Purpose, Stream};
    use std::fmt::Write as _;
    let words = ["rot", "blau", "haus", "baum", "see", "tal", "berg", "weg"];
    let mut s = Stream::new(17, Purpose::Test, 0, 0);
    let (mut nbest, mut reference) = (String::new(), String::new());
    for segment in 0..segments {
        let mut truth: Vec<&str> = (0..9).map(|_| words[s.below(8) as usize]).collect();
        let _ = writeln!(reference, "{}", truth.join(" "));
        for _ in 0..candidates {
            let at = s.below(9) as usize;
            truth[at] = words[s.below(8) as usize];
            let _ = write!(nbest, "{segment} ||| {} ||| A=", truth.join(" "));
            for _ in 0..6 {
                let _ = write!(nbest, " {:.4}", s.uniform(-3.0, 3.0));
            }
            nbest += " ||| 0\n";
        }
    }
    std::fs::write(dir.join("nbest"), nbest).unwrap();
    std::fs::write(dir.join("ref"), reference).unwrap();
}
