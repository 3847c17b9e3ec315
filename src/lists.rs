//! N-best lists as commands take them.

use crate::{command::read_references, talk::Talk};
pub(crate) use luthier::nbest::{check_references, own_references, read_rows, reference_file, references_of};
use luthier::{
    core::{Error, Local, Result},
    io::{
        Input,
        nbest::{Columns, Dialect, Options, RowFile, Rows},
    },
    metric::{Metric, Tokenizer, looks_untokenized},
    tune::{Candidates, Judge, columns, lists},
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// Files of candidates, and how they are read.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct ListArgs {
    /// N-best lists in any format, plain or compressed.
    ///
    /// Candidates of the same segment from several files are merged. The format is detected from the content (see
    /// --nbest-format); `-` is standard input.
    #[arg(long, num_args = 1.., value_name = "FILE")]
    pub(crate) nbest: Vec<PathBuf>,
    /// Input format, overrides auto-detection: moses, cdec, joshua, travatar, marian, phrasal, zmert, jsonl, json, tsv, csv,
    /// fairseq, kaldi, flat (plain text, needs --per-source), feats (features of Moses' extractor).
    #[arg(long, value_name = "NAME", value_parser = format)]
    nbest_format: Option<Dialect>,
    /// Number of candidates per segment, for text without segment numbers.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    per_source: Option<u32>,
    #[command(flatten)]
    columns: ColumnArgs,
    /// Feature from a file with one number per candidate, in the order of the lists; repeatable.
    #[arg(long, value_name = "NAME=FILE", value_parser = named_file)]
    score_file: Vec<(String, PathBuf)>,
    /// Leave segments without candidates out of learning and scoring [default: error].
    #[arg(long)]
    pub(crate) allow_missing: bool,
}

/// Columns of tables and keys of JSON.
#[derive(Debug, clap::Args)]
pub(crate) struct ColumnArgs {
    /// Column, or key of JSON, with the ids of segments: numbers from 0 or 1, or names [default: by the usual names].
    #[arg(long, value_name = "NAME")]
    id_column: Option<String>,
    /// Column, or key of JSON, with the candidates' texts [default: by the usual names].
    #[arg(long, value_name = "NAME")]
    text_column: Option<String>,
    /// Column, or key of JSON, with references, which are used without --ref [default: by the usual names].
    #[arg(long, value_name = "NAME")]
    reference_column: Option<String>,
    /// Column, or key of JSON, with the document of a segment: held-out sets and resamples keep documents together.
    #[arg(long, value_name = "NAME")]
    group_column: Option<String>,
    /// Columns, or keys of JSON, that are features [default: all numbers].
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    feature_columns: Vec<String>,
    /// Columns, or keys of JSON, that are ignored.
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    ignore_columns: Vec<String>,
    /// Value of a feature for candidates that do not have it, in tables and JSON; repeatable [default: error].
    #[arg(long, value_name = "NAME=VALUE", value_parser = named_value, allow_hyphen_values = true)]
    missing: Vec<(String, f64)>,
}

impl ColumnArgs {
    /// Whether any is given.
    fn any(&self) -> bool {
        self.columns().any() || !self.missing.is_empty()
    }

    fn columns(&self) -> Columns {
        Columns {
            id: self.id_column.clone(),
            text: self.text_column.clone(),
            reference: self.reference_column.clone(),
            group: self.group_column.clone(),
            features: self.feature_columns.clone(),
            ignore: self.ignore_columns.clone(),
        }
    }
}

impl ListArgs {
    /// Whether a flag says how files are read.
    pub(crate) fn has_format_flags(&self) -> bool {
        let none = self.nbest_format.is_none() && self.per_source.is_none();
        !none || self.columns.any() || !self.score_file.is_empty() || self.allow_missing
    }

    /// Options of the reader.
    pub(crate) fn options(&self) -> Options {
        Options {
            dialect: self.nbest_format,
            per_source: self.per_source,
            columns: self.columns.columns(),
            missing: self.columns.missing.clone(),
        }
    }

    /// Reads all files, as [`ListArgs::read_silently`] does, and says what the columns of tables were read as.
    pub(crate) fn read(&self, talk: Talk) -> Result<Rows> {
        let rows = self.read_silently()?;
        say_usage(&rows, talk);
        Ok(rows)
    }

    /// Reads all files, in parallel, and adds features from score files.
    pub(crate) fn read_silently(&self) -> Result<Rows> {
        if self.nbest.is_empty() {
            return Err(Error::new("no n-best list: give it with --nbest FILE"));
        }
        let paths: Vec<&Path> = self.nbest.iter().map(PathBuf::as_path).collect();
        let mut rows = read_rows(&paths, &self.options())?;
        if !self.allow_missing {
            rows.count_from_zero();
        }
        for (name, path) in &self.score_file {
            let (numbers, digest) = numbers(path, rows.len())?;
            rows.add_feature(name, 0, &numbers)?;
            // No row begins there: it is kept for its digest.
            rows.files.push(RowFile {
                name: format!("{name}={}", path.display()),
                first: usize::MAX,
                digest,
                usage: None,
            });
        }
        Ok(rows)
    }
}

/// The metric of commands that score candidates.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Metric")]
pub(crate) struct MetricArgs {
    /// Metric, such as bleu, chrf, ter, wer or column:comet.
    ///
    /// BLEU splits candidates and references at spaces unless --tokenize is given or the model translates raw text.
    #[arg(long, short, default_value = "bleu", value_name = "METRIC")]
    metric: String,
    /// Tokeniser of BLEU [default: none; with a model that translates raw text 13a].
    #[arg(long, value_name = "NAME", hide_possible_values = true, long_help = TOKENIZE)]
    tokenize: Option<Tokenizer>,
}

const TOKENIZE: &str = "Tokeniser of BLEU: 13a (sacreBLEU's default), intl, zh, char, or none for tokenised text [default: none]";

impl MetricArgs {
    /// Parses the metric.
    pub(crate) fn parse(&self) -> Result<Metric> {
        self.parse_with(Tokenizer::None)
    }

    /// Parses the metric, whose tokeniser is `default` unless it is given.
    pub(crate) fn parse_with(&self, default: Tokenizer) -> Result<Metric> {
        Metric::parse(&self.metric, self.tokenize.unwrap_or(default)).map_err(|e| metric_error(&e))
    }

    /// Whether a tokeniser is given.
    pub(crate) fn has_tokenizer(&self) -> bool {
        self.tokenize.is_some()
    }

    /// The name to record: as it was typed, with the tokeniser unless it is the default.
    pub(crate) fn name(&self, metric: &Metric) -> String {
        let typed = Metric::parse(&self.metric, Tokenizer::None);
        if self.tokenize.is_some() || typed.as_ref() != Ok(metric) {
            metric.to_string()
        } else {
            self.metric.clone()
        }
    }

    /// Warns about text that looks untokenised although BLEU does not tokenise it.
    pub(crate) fn check_tokens<'a>(
        metric: &Metric,
        file: &str,
        lines: impl ExactSizeIterator<Item = &'a str>,
        talk: Talk,
    ) {
        if metric.splits_at_spaces() && looks_untokenized(lines) {
            talk.warn(&format!(
                "{file} looks untokenised (lines end in a word with a full stop), and BLEU splits at spaces only: use \
                 --tokenize 13a, or tokenise candidates and references"
            ));
        }
    }
}

/// The error about a metric that was typed, with the advice as its hint.
pub(crate) fn metric_error(e: &luthier::metric::Error) -> Error {
    let text = e.to_string();
    match text.rsplit_once("; ") {
        Some((message, hint)) => Error::new(format!("--metric: {message}")).hint(hint),
        None => Error::new(format!("--metric: {text}")),
    }
}

/// N-best lists, references and a metric, as `oracle`, `surface` and `loss` take them.
#[derive(Debug, clap::Args)]
pub(crate) struct JudgedArgs {
    #[command(flatten)]
    nbest: ListArgs,
    /// References, one segment per line; repeat for several references per segment.
    ///
    /// Not needed for metrics that read a column.
    #[arg(long = "ref", value_name = "FILE", help_heading = "Input")]
    references: Vec<PathBuf>,
    #[command(flatten)]
    metric: MetricArgs,
}

/// Lists with the statistics of their candidates.
pub(crate) struct Judged {
    pub(crate) metric: Metric,
    pub(crate) rows: Rows,
    pub(crate) columns: Arc<Local>,
    pub(crate) lists: Vec<Arc<Candidates>>,
    /// References by segment.
    pub(crate) references: Vec<Vec<String>>,
    /// Signature of their scores.
    pub(crate) signature: String,
}

impl JudgedArgs {
    /// Reads lists and references and computes the statistics of all candidates. Unless `distinct`, repeated candidates
    /// are kept.
    pub(crate) fn read(&self, distinct: bool, talk: Talk) -> Result<Judged> {
        let metric = self.metric.parse()?;
        check_distinct(&self.nbest.nbest, &self.references)?;
        let mut files = read_references(&self.references)?;
        let rows = self.nbest.read(talk)?;
        if files.is_empty() {
            files = own_references(&rows)?;
        } else {
            say_other_references(&rows, talk);
        }
        check_references(&files, &metric)?;
        if let Some(first) = files.first() {
            MetricArgs::check_tokens(&metric, &first.file, first.lines.iter().map(String::as_str), talk);
        }
        let references = references_of(&files, &rows, self.nbest.allow_missing)?;
        let mut judge = Judge::new(&metric, &references, reference_file(&files));
        (judge.distinct, judge.allow_missing) = (distinct, self.nbest.allow_missing);
        let columns = columns(&rows, Some(&metric));
        let lists: Vec<_> = lists(&rows, &columns, Some(judge))?.into_iter().map(Arc::new).collect();
        detail(&rows, lists.len(), talk);
        let signature = metric.signature(Some(files.len()), "");
        let references = references.iter().map(|r| r.iter().map(ToString::to_string).collect()).collect();
        Ok(Judged { metric, rows, columns, lists, references, signature })
    }
}

/// Says what the columns of tables and JSON were read as, a line per file.
pub(crate) fn say_usage(rows: &Rows, talk: Talk) {
    for (file, usage) in rows.files.iter().filter_map(|f| Some((f, f.usage.as_ref()?))) {
        talk.say(&format!("{}: {usage}", file.name));
    }
    if rows.counts_from_one() {
        talk.say("ids of segments begin at 1: line 1 of the references belongs to segment 1");
    }
}

/// Says that the references that lists hold are not used, because others are given.
pub(crate) fn say_other_references(rows: &Rows, talk: Talk) {
    if rows.has_references() {
        talk.say("references are read from --ref, not from the lists");
    }
}

/// Prints the files, the size and the features of lists, with `--verbose` only.
pub(crate) fn detail(rows: &Rows, segments: usize, talk: Talk) {
    for file in &rows.files {
        talk.detail(&format!("read {} (digest {})", file.name, file.digest));
    }
    let names = rows.names.names();
    let shown = names.iter().take(20).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = if names.len() > 20 { ", …" } else { "" };
    talk.detail(&format!(
        "{segments} segments, {} candidates, {} features: {shown}{more}",
        rows.len(),
        names.len()
    ));
}

/// Fails if a file is given both as a list and as references.
pub(crate) fn check_distinct(lists: &[PathBuf], references: &[PathBuf]) -> Result<()> {
    match lists.iter().find(|l| references.contains(l)) {
        None => Ok(()),
        Some(both) => {
            Err(Error::in_file(both.display().to_string(), "is given both with --nbest and with --ref")
                .hint("give the n-best list with --nbest and the references with --ref"))
        }
    }
}

/// Reads one number per candidate.
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
    let message = format!("found {} numbers, expected {n}: one per candidate", out.len());
    Err(Error::in_file(input.name(), message).hint("give one number per line, in the order of the lists"))
}

fn format(text: &str) -> std::result::Result<Dialect, String> {
    let known = Dialect::NAMES.iter().find(|(name, _)| *name == text);
    known.map(|k| k.1).ok_or_else(|| {
        let names = Dialect::NAMES.iter().map(|n| n.0).collect::<Vec<_>>().join(", ");
        format!("expected one of {names}; leave it out to detect the format")
    })
}

fn named_value(text: &str) -> std::result::Result<(String, f64), String> {
    let parsed = text.rsplit_once('=').and_then(|(name, value)| {
        let value: f64 = value.parse().ok().filter(|v: &f64| v.is_finite())?;
        (!name.is_empty()).then(|| (name.to_owned(), value))
    });
    parsed.ok_or_else(|| "expected NAME=VALUE with a finite number".to_owned())
}

fn named_file(text: &str) -> std::result::Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => {
            Ok((name.to_owned(), PathBuf::from(file)))
        }
        _ => Err("expected NAME=FILE".to_owned()),
    }
}
