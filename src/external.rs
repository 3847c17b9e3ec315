//! Another program as the source of candidates: a decoder that is run anew in every iteration.
//!
//! The command is a shell template with these places:
//!
//! | place | becomes |
//! | --- | --- |
//! | `{weights}` | a file with `name value` lines |
//! | `{weights:moses}` | `Name= v v Other= v`, what `moses -weight-overwrite` takes, in full precision |
//! | `{nbest}` | the file that the list must be written to; without it, the list is standard output |
//! | `{k}` | how many candidates are wanted |
//! | `{source}` | the text to translate |
//! | `{iteration}` | the iteration, from 0 |

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

/// An external decoder.
pub struct External {
    /// The template.
    pub command: String,
    /// The text to translate.
    pub source: PathBuf,
    /// How many candidates are wanted.
    pub k: u32,
    /// Where its files go: `decode/` in the run directory.
    pub dir: PathBuf,
    /// The metric.
    pub metric: Metric,
    /// References by segment.
    pub references: Vec<Vec<String>>,
    /// The reference file, for messages.
    pub reference_file: String,
    /// How its lists are read.
    pub options: Options,
    /// Whether segments may have no candidate.
    pub allow_missing: bool,
    /// Variables of the environment that it shall not see.
    pub hidden: Vec<OsString>,
    /// What it has learned on the way.
    pub memory: Memory,
}

/// Names and columns that the lists brought.
#[derive(Default)]
pub struct Memory {
    names: Mutex<Names>,
    columns: Mutex<Option<Arc<Local>>>,
    iteration: AtomicU32,
}

impl External {
    /// Checks the template before anything runs.
    pub fn check(&self) -> Result<()> {
        let known = ["{weights}", "{weights:moses}", "{nbest}", "{k}", "{source}", "{iteration}"];
        for (i, _) in self.command.match_indices('{').filter(|(i, _)| !self.command[..*i].ends_with('$')) {
            let word = self.command[i..].split_inclusive('}').next().unwrap_or_default();
            let mistyped = known.iter().any(|k| k.len() > 3 && word.len() > 3 && word.get(..4) == k.get(..4));
            if mistyped && word.ends_with('}') && !known.contains(&word) {
                return Err(
                    Error::new(format!("the command has {word}, which I do not know")).hint(known.join(" "))
                );
            }
        }
        if self.command.contains("{weights}") || self.command.contains("{weights:moses}") {
            return Ok(());
        }
        Err(Error::new("the command does not use the weights")
            .hint("put {weights} (a file) or '{weights:moses}' (Moses' -weight-overwrite) into --command"))
    }

    /// Where the list goes. A decoder that outlived an earlier, killed luthier must not write into this one's.
    fn list_path(&self, iteration: u32) -> PathBuf {
        self.path(iteration, &format!("{}.nbest", std::process::id()))
    }

    fn path(&self, iteration: u32, ending: &str) -> PathBuf {
        self.dir.join(format!("{iteration:03}.{ending}"))
    }

    /// The dense features: those of the first list, and later ones too while there are few in all.
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

    fn decode(&self, iteration: u32, weights: &Weights) -> Result<PathBuf> {
        let failed = |path: &Path, e: &std::io::Error| Error::io(path.display().to_string(), "write it", e);
        fs::create_dir_all(&self.dir).map_err(|e| failed(&self.dir, &e))?;
        let (file, list, log) =
            (self.path(iteration, "weights"), self.list_path(iteration), self.path(iteration, "log"));
        fs::write(&file, weights.to_text(&[])).map_err(|e| failed(&file, &e))?;
        // A list of an earlier, broken attempt must not be taken for this one's.
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
            .hint(format!("see {}; mend it and run the same command again", log.display())));
        }
        Err(Error::new(format!(
            "the decoder {} at iteration {iteration}: {}",
            ended(status),
            last_lines(&log)
        ))
        .hint(format!("see {}; mend it and run the same command again", log.display())))
    }
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
        // The run keeps what is new in a form of its own.
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

    fn resume_at(&self, epoch: u32, columns: Option<&Arc<Local>>) {
        self.memory.iteration.store(epoch, Ordering::Relaxed);
        *self.memory.columns.lock().unwrap_or_else(PoisonError::into_inner) = columns.cloned();
    }
}

/// `Name= v v Other= v`: blocks as Moses knows them.
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

/// A path as one word of a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+=,@%".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

fn ended(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        // A shell says so of the program that it waited for.
        (Some(code @ 129..=192), _) => format!("was killed by signal {}", code - 128),
        (Some(code), _) => format!("failed with exit code {code}"),
        (_, Some(signal)) => format!("was killed by signal {signal}"),
        _ => "failed".to_owned(),
    }
}

/// The end of a log, in one line.
fn last_lines(log: &Path) -> String {
    let text = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
    let text: String = text.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    if lines.is_empty() {
        return "it said nothing".to_owned();
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
