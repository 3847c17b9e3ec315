//! External decoders as a source of candidates: a program that is run in every iteration with the current weights.
//!
//! The program is given as a shell command with these placeholders:
//!
//! | placeholder | replaced by |
//! | --- | --- |
//! | `{weights}` | path of a weights file, one `name value` per line |
//! | `{weights:moses}` | weights as `Name= v v Other= v`, for `moses -weight-overwrite`, in full precision |
//! | `{nbest}` | path that the n-best list must be written to; without it, the list is read from standard output |
//! | `{k}` | number of candidates per segment |
//! | `{source}` | path of the text to translate |
//! | `{iteration}` | number of the iteration, from 0 |
//!
//! An iteration fails if the command fails or writes no list. Standard error of the command is kept in the run
//! directory, as `decode/000.log` for iteration 0; each fold has a run directory of its own.

use crate::{
    core::{Error, FeatureKey, Local, Names, Progress, Result, SegmentId, Weights},
    io::nbest::{self, Options, Rows},
    metric::Metric,
    tune::{Evidence, Goal, Judge, SMALL, Source, SourceKind, columns, lists},
};
use std::{
    ffi::OsString,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

/// An external decoder: a shell command that writes n-best lists under given weights.
pub struct External {
    /// Shell command with placeholders such as `{weights}`.
    pub command: String,
    /// Path of the text to translate.
    pub source: PathBuf,
    /// Number of candidates per segment that the command is asked for.
    pub k: u32,
    /// Directory of the weights, lists and logs of each iteration, in the run directory: `decode`.
    pub dir: PathBuf,
    /// Metric that candidates are scored with.
    pub metric: Metric,
    /// References of each segment.
    pub references: Vec<Vec<String>>,
    /// Name of the reference file in messages.
    pub reference_file: String,
    /// Format of the lists.
    pub options: Options,
    /// Whether segments without candidates are skipped; otherwise they are an error.
    pub allow_missing: bool,
    /// Environment variables that are removed for the command.
    pub hidden: Vec<OsString>,
    /// State that is kept between iterations.
    pub memory: Memory,
}

/// State of an [`External`] between iterations: directory of the run, feature names, dense features and the number of the next iteration.
#[derive(Default)]
pub struct Memory {
    run: Mutex<PathBuf>,
    names: Mutex<Names>,
    columns: Mutex<Option<Arc<Local>>>,
    iteration: AtomicU32,
}

impl External {
    /// Fails if the command has a misspelt placeholder, or no placeholder for the weights.
    pub fn check(&self) -> Result<()> {
        let known = ["{weights}", "{weights:moses}", "{nbest}", "{k}", "{source}", "{iteration}"];
        for (i, _) in self.command.match_indices('{').filter(|(i, _)| !self.command[..*i].ends_with('$')) {
            let word = self.command[i..].split_inclusive('}').next().unwrap_or_default();
            let mistyped = known.iter().any(|k| k.len() > 3 && word.len() > 3 && word.get(..4) == k.get(..4));
            if mistyped && word.ends_with('}') && !known.contains(&word) {
                return Err(Error::new(format!("--command has the unknown placeholder {word}"))
                    .hint(format!("known: {}", known.join(" "))));
            }
        }
        if self.command.contains("{weights}") || self.command.contains("{weights:moses}") {
            return Ok(());
        }
        Err(Error::new("the command does not use the weights")
            .hint("put {weights} (a file) or '{weights:moses}' (Moses' -weight-overwrite) into --command"))
    }

    /// Path of the n-best list of an iteration. It contains the process id, because a decoder that outlived an earlier,
    /// killed luthier process may still write its own list.
    fn list_path(&self, iteration: u32) -> PathBuf {
        self.path(iteration, &format!("{}.nbest", std::process::id()))
    }

    /// Path of a file of an iteration.
    fn path(&self, iteration: u32, ending: &str) -> PathBuf {
        self.directory().join(format!("{iteration:03}.{ending}"))
    }

    /// Directory of the weights, lists and logs.
    fn directory(&self) -> PathBuf {
        self.memory.run.lock().unwrap_or_else(PoisonError::into_inner).join(&self.dir)
    }

    /// Returns the dense features: those of the first list, and those of later lists while they are at most `SMALL` in
    /// total.
    fn columns(&self, rows: &Rows) -> Arc<Local> {
        let mut known = self.memory.columns.lock().unwrap_or_else(PoisonError::into_inner);
        let now = columns(rows, Some(&self.metric));
        let joined = match &*known {
            None => now,
            Some(old) if now.keys().iter().all(|k| old.position(*k).is_some()) => old.clone(),
            Some(old) => {
                let both = Local::new([old.keys(), now.keys()].concat());
                if both.keys().len() <= SMALL { Arc::new(both) } else { old.clone() }
            }
        };
        *known = Some(joined.clone());
        joined
    }

    /// Runs the command and returns the path of its n-best list. Fails if the command fails or writes no list.
    fn decode(&self, iteration: u32, weights: &Weights) -> Result<PathBuf> {
        let failed = |path: &Path, e: &std::io::Error| Error::io(path.display().to_string(), "write it", e);
        let dir = self.directory();
        fs::create_dir_all(&dir).map_err(|e| failed(&dir, &e))?;
        let (file, list, log) =
            (self.path(iteration, "weights"), self.list_path(iteration), self.path(iteration, "log"));
        fs::write(&file, weights.to_text(&[])).map_err(|e| failed(&file, &e))?;
        // A list of an earlier, failed attempt must not be read as the result of this one.
        let _ = fs::remove_file(&list);
        let command = self
            .command
            .replace("{weights:moses}", &overwrite(weights))
            .replace("{weights}", &quoted(&file))
            .replace("{nbest}", &quoted(&list))
            .replace("{k}", &self.k.to_string())
            .replace("{source}", &quoted(&self.source))
            .replace("{iteration}", &iteration.to_string());
        let talk = File::create(&log).map_err(|e| failed(&log, &e))?;
        let mut shell = Command::new("sh");
        shell.args(["-c", &command]).stdin(Stdio::null()).stderr(talk);
        for name in &self.hidden {
            shell.env_remove(name);
        }
        if self.command.contains("{nbest}") {
            shell.stdout(File::options().append(true).open(&log).map_err(|e| failed(&log, &e))?);
        } else {
            shell.stdout(File::create(&list).map_err(|e| failed(&list, &e))?);
        }
        let status = shell.status().map_err(|e| Error::io("sh", "start it", &e))?;
        if status.success() {
            if fs::metadata(&list).is_ok_and(|m| m.len() > 0) {
                return Ok(list);
            }
            return Err(Error::new(format!(
                "the decoder wrote no list at iteration {iteration}: {}",
                last_lines(&log)
            ))
            .hint(format!("see {}; fix it and re-run the same command", log.display())));
        }
        if interrupted(status) {
            return Err(Error::interrupted());
        }
        Err(Error::new(format!(
            "the decoder {} at iteration {iteration}: {}",
            ended(status),
            last_lines(&log)
        ))
        .hint(format!("see {}; fix it and re-run the same command", log.display())))
    }
}

/// Returns whether Ctrl-C ended a command, directly or through its shell.
fn interrupted(status: std::process::ExitStatus) -> bool {
    const SIGINT: i32 = 2;
    #[cfg(unix)]
    if std::os::unix::process::ExitStatusExt::signal(&status) == Some(SIGINT) {
        return true;
    }
    status.code() == Some(128 + SIGINT)
}

impl Source for External {
    fn segments(&self) -> u32 {
        self.references.len() as u32
    }

    fn candidates(
        &self,
        _: &[SegmentId],
        weights: &Weights,
        _: Goal,
        progress: Progress<'_>,
    ) -> Result<Evidence> {
        progress.poll()?;
        let iteration = self.memory.iteration.fetch_add(1, Ordering::Relaxed);
        let path = self.decode(iteration, weights)?;
        let mut rows = Rows::default();
        nbest::read(&path, &self.options, &mut rows)?;
        let columns = &self.columns(&rows);
        let references: Vec<Vec<&str>> =
            self.references.iter().map(|r| r.iter().map(String::as_str).collect()).collect();
        let mut judge = Judge::new(&self.metric, &references, &self.reference_file);
        judge.allow_missing = self.allow_missing;
        let lists = lists(&rows, columns, Some(judge))?;
        let mut names = self.memory.names.lock().unwrap_or_else(PoisonError::into_inner);
        for name in rows.names.names() {
            names.intern(name)?;
        }
        // New candidates are stored in the run directory, in its own format.
        let _ = fs::remove_file(&path);
        Ok(Evidence::Lists(lists.into_iter().map(Arc::new).collect()))
    }

    fn name(&self, key: FeatureKey) -> String {
        let names = self.memory.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.get(key).unwrap_or_default().to_owned()
    }

    fn kind(&self) -> SourceKind {
        SourceKind::Command
    }

    fn learn_names(&self, names: &[String]) -> Result<()> {
        let mut known = self.memory.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.iter().try_for_each(|name| known.intern(name).map(drop))
    }

    fn enter(&self, run: &Path) {
        run.clone_into(&mut self.memory.run.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn resume_at(&self, epoch: u32, columns: Option<&Arc<Local>>) {
        self.memory.iteration.store(epoch, Ordering::Relaxed);
        *self.memory.columns.lock().unwrap_or_else(PoisonError::into_inner) = columns.cloned();
    }
}

/// Formats weights for `moses -weight-overwrite`, as `Name= v v Other= v`: `Name[0]`, `Name[1]`, … become one block.
fn overwrite(weights: &Weights) -> String {
    let mut out = String::new();
    let mut open = String::new();
    for (name, value) in weights.iter() {
        let block = name.strip_suffix(']').and_then(|n| n.rsplit_once('['));
        match block {
            Some((base, number)) if number != "0" && base == open => {}
            Some((base, _)) => {
                base.clone_into(&mut open);
                out += &format!(" {base}=");
            }
            None => {
                open.clear();
                out += &format!(" {name}=");
            }
        }
        out += &format!(" {value}");
    }
    out.trim_start().to_owned()
}

/// Quotes a path as one word of a shell command.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+=,@%".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Describes how a process ended.
fn ended(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        // A shell reports a child that was killed by signal n as exit code 128 + n.
        (Some(code @ 129..=192), _) => format!("was killed by signal {}", code - 128),
        (Some(code), _) => format!("failed with exit code {code}"),
        (_, Some(signal)) => format!("was killed by signal {signal}"),
        _ => "failed".to_owned(),
    }
}

/// Returns the last three lines of a log that are not empty, joined to one line.
fn last_lines(log: &Path) -> String {
    let text = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
    let text: String = text.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    if lines.is_empty() {
        return "no output".to_owned();
    }
    lines[lines.len().saturating_sub(3)..].join(" / ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_for_moses_in_full_precision() {
        let w = Weights::parse("w", "LM0 0.1\nTM0[0] 0.30000000000000004\nTM0[1] -1\nd 0\nX[0] 1\n").unwrap();
        assert_eq!(overwrite(&w), "LM0= 0.1 TM0= 0.30000000000000004 -1 d= 0 X= 1");
    }

    #[test]
    fn paths_are_one_word() {
        assert_eq!(quoted(Path::new("a/b.txt")), "a/b.txt");
        assert_eq!(quoted(Path::new("my run/it's")), r"'my run/it'\''s'");
    }
}
