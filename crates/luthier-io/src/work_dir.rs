//! Directories that hold the settings and results of long, resumable work: a settings file and a lock;
//! temporary files of killed processes are removed.
//!
//! Settings are any serialisable struct, stored in a TOML file. A directory cannot be reused with different
//! settings; the error names the first field that differs. Input files are compared by the digests of their
//! contents, not by their paths (see [`InputFile`]).

use crate::{AtomicFile, Input};
use luthier_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};
use toml::{Table, Value};

/// An input file of a work directory: two runs have the same input if the digests of its contents are equal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct InputFile {
    /// Role of the file: `nbest`, `ref`, `source`, `table`.
    pub role: String,
    /// Path of the file as the user gave it; shown, never compared.
    pub path: String,
    /// Digest of the file's bytes, 16 hexadecimal digits.
    pub digest: String,
}

impl InputFile {
    /// Returns the record of a file with its role, path and digest.
    pub fn new(role: &str, path: impl Into<String>, digest: impl Into<String>) -> Self {
        InputFile { role: role.to_owned(), path: path.into(), digest: digest.into() }
    }

    /// Reads a file to compute its digest, and returns its record. Fails if the file cannot be read.
    pub fn read(role: &str, path: &Path) -> Result<Self> {
        Ok(InputFile::new(role, path.display().to_string(), Input::open(path)?.digest()?))
    }
}

/// A setting that differs between a work directory and the given settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Name of the setting, with dots between levels: `recipe.restarts`.
    pub field: String,
    /// Value in the work directory; `None` if the setting is missing there.
    pub there: Option<Value>,
    /// Value that was given; `None` if the setting is missing.
    pub here: Option<Value>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let show = |v: &Option<Value>| match v {
            None => "not set".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        };
        write!(f, "{} is {} there and {} here", self.field, show(&self.there), show(&self.here))
    }
}

/// Serialises settings as the TOML text of a work directory. Fails only for types that TOML cannot hold.
pub fn to_toml(settings: &impl Serialize) -> Result<String> {
    toml::to_string(settings).map_err(|e| Error::new(format!("the settings cannot be written: {e}")))
}

/// Returns all settings that differ between two tables, in the order of `here`. Paths of input files and the
/// top-level fields `version` and `signature` are never compared.
///
/// ```
/// let there = "seed = 1\n[recipe]\nrestarts = 20\n".parse().unwrap();
/// let here = "seed = 1\n[recipe]\nrestarts = 5\n".parse().unwrap();
/// let found = luthier_io::differences(&there, &here);
/// assert_eq!(found[0].to_string(), "recipe.restarts is 20 there and 5 here");
/// ```
pub fn differences(there: &Table, here: &Table) -> Vec<Difference> {
    let mut found = Vec::new();
    let (mut there, mut here) = (there.clone(), here.clone());
    // A signature includes the version; its other parts follow from the metric and the inputs.
    for name in ["version", "signature"] {
        there.remove(name);
        here.remove(name);
    }
    compare("", Some(&Value::Table(there)), Some(&Value::Table(here)), &mut found);
    found
}

/// Appends the differences between two values of the setting called `field` to `found`, recursively.
fn compare(field: &str, there: Option<&Value>, here: Option<&Value>, found: &mut Vec<Difference>) {
    let inside = |key: &str| if field.is_empty() { key.to_owned() } else { format!("{field}.{key}") };
    match (there, here) {
        (Some(Value::Table(a)), Some(Value::Table(b))) => {
            let gone = a.keys().filter(|k| !b.contains_key(*k));
            for key in b.keys().chain(gone) {
                compare(&inside(key), a.get(key), b.get(key), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) if [a, b].iter().any(|v| v.iter().any(is_file)) => {
            compare_files(&digests(a), &digests(b), found);
        }
        (a, b) if a == b => {}
        (a, b) => {
            found.push(Difference { field: field.to_owned(), there: a.cloned(), here: b.cloned() });
        }
    }
}

/// Appends the differences between two lists of input files, role by role, to `found`.
fn compare_files(there: &[File3], here: &[File3], found: &mut Vec<Difference>) {
    let mut roles: Vec<&String> = here.iter().chain(there).map(|f| &f.0).collect();
    roles.sort();
    roles.dedup();
    for role in roles {
        let of =
            |files: &'_ [File3]| -> Vec<File3> { files.iter().filter(|f| f.0 == *role).cloned().collect() };
        let (there, here) = (of(there), of(here));
        for i in 0..there.len().max(here.len()) {
            let (there, here) = (there.get(i), here.get(i));
            if there.map(|f| &f.2) != here.map(|f| &f.2) {
                let show = |f: Option<&File3>| {
                    f.map(|(_, path, digest)| Value::String(format!("{path} ({digest})")))
                };
                let field = format!("the input {role}");
                found.push(Difference { field, there: show(there), here: show(here) });
            }
        }
    }
}

/// Returns whether a value is the record of an input file.
fn is_file(value: &Value) -> bool {
    value.as_table().is_some_and(|t| t.contains_key("digest"))
}

/// Role, path and digest of an input file.
type File3 = (String, String, String);

/// Returns role, path and digest of every input file.
fn digests(files: &[Value]) -> Vec<File3> {
    let text = |v: &Value, key: &str| v.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    files.iter().map(|f| (text(f, "role"), text(f, "path"), text(f, "digest"))).collect()
}

/// Kind of work that a directory holds: its settings file, and its names in messages.
#[derive(Debug)]
pub struct WorkKind {
    /// Name of the settings file: `run.toml`.
    pub file: &'static str,
    /// Name of the work in messages: `run`.
    pub what: &'static str,
    /// Command-line flag that names the directory, in messages: `--run`.
    pub flag: &'static str,
    /// Names of files and directories that may exist before the settings file is written; temporary files in
    /// these directories are removed.
    pub parts: &'static [&'static str],
}

/// A work directory that this process has locked, with its settings written.
///
/// ```
/// use luthier_core::ErrorKind;
/// use luthier_io::{WorkDir, WorkKind};
/// const KIND: WorkKind = WorkKind { file: "run.toml", what: "run", flag: "--run", parts: &[] };
/// let parent = tempfile::tempdir().unwrap();
/// let path = parent.path().join("tuned");
/// let settings = |seed: u32| toml::toml! { seed = seed };
/// let open = |seed| WorkDir::open(&path, &KIND, &settings(seed), |_| true);
/// let first = open(1).unwrap();
/// assert_eq!(open(1).unwrap_err().kind(), ErrorKind::Busy);
/// drop(first);
/// assert_eq!(open(2).unwrap_err().kind(), ErrorKind::Mismatch);
/// assert_eq!(open(1).unwrap().path(), path);
/// ```
#[derive(Debug)]
pub struct WorkDir {
    path: PathBuf,
    created: bool,
    _lock: File,
}

impl WorkDir {
    /// Creates and locks a directory, or opens one to resume its work; `begun` returns whether a directory
    /// holds results.
    ///
    /// Fails if the directory holds other files, if it holds results with different settings, or if another
    /// process is using it.
    pub fn open<S: Serialize + DeserializeOwned>(
        path: &Path,
        kind: &WorkKind,
        settings: &S,
        begun: impl Fn(&Path) -> bool,
    ) -> Result<Self> {
        Self::open_with(path, kind, settings, begun, |_| false)
    }

    /// Opens a directory as [`WorkDir::open`] does; if `accept` returns true for every setting that differs,
    /// the new settings replace the old ones.
    pub fn open_with<S: Serialize + DeserializeOwned>(
        path: &Path,
        kind: &WorkKind,
        settings: &S,
        begun: impl Fn(&Path) -> bool,
        accept: impl Fn(&Difference) -> bool,
    ) -> Result<Self> {
        let name = path.display().to_string();
        let failed = |doing: &str| {
            let (name, doing) = (name.clone(), doing.to_owned());
            move |e: io::Error| Error::io(name, &doing, &e)
        };
        let (what, flag) = (kind.what, kind.flag);
        let created = !path.exists();
        let known = path.join(kind.file);
        let foreign = || Ok(!path.is_dir() || !kind.only_ours(path).map_err(failed("read it"))?);
        if !created && !known.exists() && foreign()? {
            return Err(Error::in_file(&name, format!("exists and is not {} directory", kind.a()))
                .hint(format!("give {flag} a new directory, or one of an earlier {what} to resume")));
        }
        fs::create_dir_all(path).map_err(failed("create it"))?;
        let lock = kind.lock(path)?;
        kind.sweep(path);
        let text = to_toml(settings)?;
        if known.exists() && begun(path) {
            let there = fs::read_to_string(&known).map_err(failed("read it"))?;
            // Settings that did not exist when the file was written get the values of the former behaviour.
            let there = toml::from_str::<S>(&there).ok().map_or(Ok(there), |there| to_toml(&there))?;
            let accepted = kind.check(path, &there, &text, &accept)?;
            if accepted {
                AtomicFile::write_all_to(&known, text.as_bytes())?;
            }
        } else {
            AtomicFile::write_all_to(&known, text.as_bytes())?;
        }
        Ok(WorkDir { path: path.to_owned(), created, _lock: lock })
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the directory if this process created it, so that a failure leaves nothing behind.
    pub fn discard(self) {
        if self.created {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

impl WorkKind {
    /// Returns the name of the work with its article: `a run`, `an import`.
    fn a(&self) -> String {
        let article = if self.what.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
        format!("{article} {}", self.what)
    }

    /// Returns whether the settings in a directory differ from those given. Fails if `accept` returns false
    /// for a difference, or if the formats differ.
    fn check(
        &self,
        path: &Path,
        there: &str,
        here: &str,
        accept: &dyn Fn(&Difference) -> bool,
    ) -> Result<bool> {
        let name = path.display().to_string();
        let parse = |text: &str| {
            text.parse::<Table>().map_err(|e: toml::de::Error| {
                let file = path.join(self.file).display().to_string();
                Error::in_file(file, format!("damaged: {}", e.message()))
            })
        };
        let (there, here) = (parse(there)?, parse(here)?);
        let (what, flag) = (self.a(), self.flag);
        let format = |table: &Table| table.get("format").and_then(Value::as_integer).unwrap_or(1);
        if format(&there) != format(&here) {
            return Err(Error::in_file(name, format!("holds {what} of another version of luthier"))
                .of_kind(ErrorKind::Mismatch)
                .hint(format!(
                    "its results can be read, but it cannot be resumed; use another {flag} directory"
                )));
        }
        let found = differences(&there, &here);
        match found.iter().find(|d| !accept(d)) {
            None => Ok(!found.is_empty()),
            Some(difference) => {
                Err(Error::in_file(name, format!("holds {what} with other settings: {difference}"))
                    .of_kind(ErrorKind::Mismatch)
                    .hint(format!("use the same settings to resume, or another {flag} directory")))
            }
        }
    }

    /// Returns whether a directory has only files of this kind of work.
    fn only_ours(&self, path: &Path) -> io::Result<bool> {
        for entry in fs::read_dir(path)? {
            let name = entry?.file_name();
            let name = name.to_string_lossy();
            if !(name == ".lock" || self.parts.contains(&&*name) || is_temporary(&name)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Removes temporary files of a killed process. This process holds the lock, so no other is writing them.
    fn sweep(&self, path: &Path) {
        for part in [""].iter().chain(self.parts) {
            for entry in fs::read_dir(path.join(part)).into_iter().flatten().flatten() {
                if is_temporary(&entry.file_name().to_string_lossy()) {
                    let _ = fs::remove_file(entry.path());
                }
            }
        }
    }

    /// Locks a directory against use by other processes. Fails if another process holds the lock.
    fn lock(&self, path: &Path) -> Result<File> {
        let file = path.join(".lock");
        let failed = |e: io::Error| Error::io(path.display().to_string(), "write to it", &e);
        let lock = File::create(&file).map_err(failed)?;
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => Err(Error::in_file(
                path.display().to_string(),
                "another luthier process is using this directory",
            )
            .of_kind(ErrorKind::Busy)
            .hint(format!("wait for it, or use another {} directory", self.flag))),
            // Some network file systems have no locks; then the directory is used without one.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(lock),
        }
    }
}

/// Returns whether a file name is that of a temporary file: `.….tmp`.
fn is_temporary(name: &str) -> bool {
    name.starts_with('.') && Path::new(name).extension().is_some_and(|e| e == "tmp")
}
