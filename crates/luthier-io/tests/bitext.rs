//! Bilingual files that polib and translate-toolkit write are read like these libraries read them.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use luthier_io::bitext::{BitextFormat, read_bitext};
use std::{fmt::Write as _, io::Write as _, path::PathBuf, process::Command};

/// Returns the path of the Python interpreter with the reference programs, which scripts/check installs; without it,
/// records that the test is skipped and returns `None`, or fails with CI=true.
fn python() -> Option<PathBuf> {
    let venv = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/bin/python");
    let path = std::env::var_os("LUTHIER_PYTHON").map_or(venv, PathBuf::from);
    if path.exists() {
        return Some(path);
    }
    let why = "no Python environment with the reference programs (run scripts/check)";
    if let Some(file) = std::env::var_os("LUTHIER_SKIPPED") {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
        writeln!(file, "{}: {why}", std::thread::current().name().unwrap_or("a test")).unwrap();
    }
    assert!(std::env::var_os("CI").is_none_or(|v| v != "true"), "with CI=true nothing may be skipped: {why}");
    eprintln!("\n*** SKIPPED: {why} ***\n");
    None
}

#[test]
fn files_are_read_like_by_polib_and_translate_toolkit() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/write_bitext.py");
    // LUTHIER_SEED tries other files.
    let seed = std::env::var("LUTHIER_SEED").unwrap_or_else(|_| "1".to_owned());
    let output = Command::new(python).arg(script).arg(dir.path()).arg(seed).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut formats = Vec::new();
    let mut pairs = 0;
    for file in std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_some_and(|ext| ext == "expected") {
            continue;
        }
        let bitext = read_bitext(&file, Some(("en", "es"))).unwrap();
        let skipped = bitext.skipped;
        let mut found = format!("{} {} {}\n", skipped.untranslated, skipped.fuzzy, skipped.obsolete);
        for (source, target) in &bitext.pairs {
            writeln!(found, "{source}\t{target}").unwrap();
        }
        let expected = std::fs::read_to_string(format!("{}.expected", file.display())).unwrap();
        for (found, expected) in found.lines().zip(expected.lines()) {
            assert_eq!(found, expected, "{}", file.display());
        }
        assert_eq!(found.lines().count(), expected.lines().count(), "{}", file.display());
        assert_eq!(skipped.not_translatable + skipped.other_language, 0);
        formats.push(bitext.format);
        pairs += bitext.pairs.len();
    }
    for (format, count) in [(BitextFormat::Po, 16), (BitextFormat::Tmx, 8), (BitextFormat::Xliff, 16)] {
        assert_eq!(formats.iter().filter(|f| **f == format).count(), count, "{format}");
    }
    assert!(pairs > 1000, "{pairs}");
}
