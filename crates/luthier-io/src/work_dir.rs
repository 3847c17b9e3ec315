//! Directories that long work is done in: the settings of the work, a lock, and what a killed process left behind.

use crate::AtomicFile;
use luthier_core::{Error, ErrorKind, Result};
use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

/// Everything that decides a result, as named values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings(Vec<(String, String)>);

impl Settings {
    /// Adds one.
    pub fn add(&mut self, key: &str, value: impl std::fmt::Display) {
        self.0.push((key.to_owned(), value.to_string()));
    }

    /// Adds all of another.
    pub fn extend(&mut self, more: Settings) {
        self.0.extend(more.0);
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }

    /// As lines of TOML.
    pub fn to_toml(&self) -> String {
        let line = |(k, v): &(String, String)| format!("{k} = {}\n", toml::Value::String(v.clone()));
        self.0.iter().map(line).collect()
    }

    /// The first setting that is not the same as in lines of TOML, as `key is A there and B here`.
    pub fn difference_to(&self, there: &str) -> Option<String> {
        match there.parse() {
            Ok(there) => self.difference(&there),
            Err(e) => Some(format!("settings cannot be read there: {e}")),
        }
    }

    fn difference(&self, there: &toml::Table) -> Option<String> {
        let text = |v: Option<&toml::Value>| v.and_then(|v| v.as_str()).unwrap_or("not set").to_owned();
        let changed = self.0.iter().find(|(k, v)| text(there.get(k)) != *v);
        if let Some((k, v)) = changed {
            return Some(format!("{k} is {} there and {v} here", text(there.get(k))));
        }
        let gone = there.keys().find(|k| !self.0.iter().any(|(mine, _)| mine == *k))?;
        Some(format!("{gone} is {} there and not set here", text(there.get(gone))))
    }
}

/// What kind of work.
#[derive(Debug)]
pub struct WorkKind {
    /// The file of settings.
    pub file: &'static str,
    /// What the directory holds, in messages: `run`.
    pub what: &'static str,
    /// The flag that names it.
    pub flag: &'static str,
    /// What else may be in it before there are settings; directories among them may hold unfinished files.
    pub parts: &'static [&'static str],
}

/// A directory that is worked in, by nobody else at the same time.
#[derive(Debug)]
pub struct WorkDir {
    path: PathBuf,
    created: bool,
    _lock: File,
}

impl WorkDir {
    /// Makes a directory, or opens one to go on. Settings must be the same as before if work has `begun` there.
    pub fn open(
        path: &Path,
        kind: &WorkKind,
        settings: &Settings,
        begun: impl Fn(&Path) -> bool,
    ) -> Result<Self> {
        let name = path.display().to_string();
        let failed = |doing: &str| {
            let (name, doing) = (name.clone(), doing.to_owned());
            move |e: io::Error| Error::io(name, &doing, &e)
        };
        let (what, flag) = (kind.what, kind.flag);
        let a = if what.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
        let created = !path.exists();
        let known = path.join(kind.file);
        let foreign = || Ok(!path.is_dir() || !kind.only_ours(path).map_err(failed("read it"))?);
        if !created && !known.exists() && foreign()? {
            return Err(Error::in_file(&name, format!("exists and is not {a} {what} directory"))
                .hint(format!("give {flag} a new directory, or one of an earlier {what} to go on with")));
        }
        fs::create_dir_all(path).map_err(failed("make it"))?;
        let lock = kind.lock(path)?;
        kind.sweep(path);
        if known.exists() && begun(path) {
            let text = fs::read_to_string(&known).map_err(failed("read it"))?;
            let there: toml::Table = text.parse().map_err(|e: toml::de::Error| {
                Error::in_file(known.display().to_string(), format!("damaged: {}", e.message()))
            })?;
            if let Some(difference) = settings.difference(&there) {
                return Err(Error::in_file(
                    &name,
                    format!("holds {a} {what} with other settings: {difference}"),
                )
                .of_kind(ErrorKind::Mismatch)
                .hint(format!("use the same settings to go on, or another {flag} directory")));
            }
        } else {
            AtomicFile::write_all_to(&known, settings.to_toml().as_bytes())?;
        }
        Ok(WorkDir { path: path.to_owned(), created, _lock: lock })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the directory if it was made here, so that a failure leaves nothing behind.
    pub fn discard(self) {
        if self.created {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

impl WorkKind {
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

    /// Removes what a killed process was writing. We hold the lock, so nobody is writing now.
    fn sweep(&self, path: &Path) {
        for part in [""].iter().chain(self.parts) {
            for entry in fs::read_dir(path.join(part)).into_iter().flatten().flatten() {
                if is_temporary(&entry.file_name().to_string_lossy()) {
                    let _ = fs::remove_file(entry.path());
                }
            }
        }
    }

    /// Two processes in one directory would overwrite each other.
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
            // Some network file systems have no locks; the work is sound without.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(lock),
        }
    }
}

fn is_temporary(name: &str) -> bool {
    name.starts_with('.') && Path::new(name).extension().is_some_and(|e| e == "tmp")
}
