//! N-best lists as commands take them.

use crate::command::read_references;
pub(crate) use luthier::nbest::{check_references, read_rows, reference_file, references_of};
use luthier::{
    core::{Error, Local, Result},
    io::{
        Input,
        nbest::{Dialect, Options, RowFile, Rows},
    },
    metric::Metric,
    tune::{Candidates, Judge, columns, lists},
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// Where candidates come from.
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// N-best lists in any dialect, told by content, also gz, bz2, xz or zst; several are merged. `-` is standard
    /// input.
    #[arg(long, num_args = 1.., value_name = "FILE")]
    pub(crate) nbest: Vec<PathBuf>,
    /// The dialect, where content misleads: moses, cdec, joshua, travatar, marian, phrasal, jsonl, tsv, fairseq,
    /// flat, feats.
    #[arg(long, value_name = "NAME", value_parser = dialect)]
    nbest_format: Option<Dialect>,
    /// Candidates per segment, for text without segment numbers.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    per_source: Option<u32>,
    /// A feature from a file with one number per candidate, in their order; repeat it.
    #[arg(long, value_name = "NAME=FILE", value_parser = named_file)]
    score_file: Vec<(String, PathBuf)>,
    /// Go on where a segment has no candidate.
    #[arg(long)]
    pub(crate) allow_missing: bool,
}

impl ListArgs {
    /// Whether anything says how files are understood.
    pub(crate) fn says_how(&self) -> bool {
        let none = self.nbest_format.is_none() && self.per_source.is_none();
        !none || !self.score_file.is_empty() || self.allow_missing
    }

    /// How lists are to be read.
    pub(crate) fn options(&self) -> Options {
        Options { dialect: self.nbest_format, per_source: self.per_source }
    }

    /// Reads everything, files in parallel.
    pub(crate) fn read(&self) -> Result<Rows> {
        if self.nbest.is_empty() {
            return Err(Error::new("no n-best list: give it with --nbest FILE"));
        }
        let paths: Vec<&Path> = self.nbest.iter().map(PathBuf::as_path).collect();
        let mut rows = read_rows(&paths, &self.options())?;
        for (name, path) in &self.score_file {
            let (numbers, digest) = numbers(path, rows.len())?;
            rows.add_feature(name, 0, &numbers)?;
            // No row begins there: it is kept for its digest.
            rows.files.push(RowFile {
                name: format!("{name}={}", path.display()),
                first: usize::MAX,
                digest,
            });
        }
        Ok(rows)
    }
}

/// Lists with what judges them, as `oracle`, `surface` and `loss` take them.
#[derive(Debug, clap::Args)]
pub(crate) struct JudgedArgs {
    #[command(flatten)]
    nbest: ListArgs,
    /// References, one segment a line; repeat it for several. Not needed for columns.
    #[arg(long = "ref", value_name = "FILE")]
    references: Vec<PathBuf>,
    /// The metric. Candidates are taken to be in tokens already (tokenize=none).
    #[arg(long, short, default_value = "bleu", value_name = "METRIC")]
    metric: String,
}

/// Judged lists.
pub(crate) struct Judged {
    pub(crate) metric: Metric,
    pub(crate) rows: Rows,
    pub(crate) columns: Arc<Local>,
    pub(crate) lists: Vec<Arc<Candidates>>,
    /// References by segment.
    pub(crate) references: Vec<Vec<String>>,
    /// The settings behind their scores.
    pub(crate) signature: String,
}

impl JudgedArgs {
    /// Understands the metric's name.
    pub(crate) fn metric(&self) -> Result<Metric> {
        self.metric.parse().map_err(|e| Error::new(format!("{e}")))
    }

    /// Reads and judges. Unless they shall be distinct, candidates stay as they are, repeated ones too.
    pub(crate) fn read(&self, distinct: bool) -> Result<Judged> {
        let metric = self.metric()?;
        let files = read_references(&self.references)?;
        check_references(&files, &metric)?;
        let rows = self.nbest.read()?;
        let references = references_of(&files, &rows, self.nbest.allow_missing)?;
        let mut judge = Judge::new(&metric, &references, reference_file(&files));
        (judge.distinct, judge.allow_missing) = (distinct, self.nbest.allow_missing);
        let columns = columns(&rows, Some(&metric));
        let lists = lists(&rows, &columns, Some(judge))?.into_iter().map(Arc::new).collect();
        let signature = metric.signature(Some(files.len()), "");
        let references = references.iter().map(|r| r.iter().map(ToString::to_string).collect()).collect();
        Ok(Judged { metric, rows, columns, lists, references, signature })
    }
}

/// One number a line, as many as there are candidates.
fn numbers(path: &Path, n: usize) -> Result<(Vec<f64>, String)> {
    let mut input = Input::open(path)?;
    let (mut buffer, mut out) = (Vec::new(), Vec::with_capacity(n));
    while input.line(&mut buffer)? {
        let word = input.utf8(&buffer)?.trim();
        let value: Option<f64> = word.parse().ok().filter(|v: &f64| v.is_finite());
        out.push(value.ok_or_else(|| input.error(format!("found `{word}`, expected a finite number")))?);
    }
    if out.len() == n {
        return Ok((out, input.digest()?));
    }
    let message = format!("{} numbers for {n} candidates", out.len());
    Err(Error::in_file(input.name(), message)
        .hint("there must be one a candidate, in the order of the lists"))
}

fn dialect(text: &str) -> std::result::Result<Dialect, String> {
    let known = Dialect::NAMES.iter().find(|(name, _)| *name == text);
    known.map(|k| k.1).ok_or_else(|| {
        format!("known: {}", Dialect::NAMES.iter().map(|n| n.0).collect::<Vec<_>>().join(", "))
    })
}

fn named_file(text: &str) -> std::result::Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => {
            Ok((name.to_owned(), PathBuf::from(file)))
        }
        _ => Err("expected NAME=FILE".to_owned()),
    }
}
