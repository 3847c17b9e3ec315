//! Reading and writing of n-best lists in the formats of common decoders, as a table with one row per
//! candidate.
//!
//! The input format is detected from the content. In every format, a candidate has a segment number, a text,
//! named features, and named scores that are not features: `total`, the decoder's model score, and others
//! such as COMET.

mod bars;
mod fairseq;
mod flat;
mod json;
mod keyed;
mod moses_dat;
mod rows;
mod sink;
mod table;
mod write;

pub use moses_dat::read_scores;
pub use rows::{RowFile, Rows, Texts};
pub use sink::{Columns, Usage};
pub use write::{MosesLine, To, Writer};

use crate::Input;
use luthier_core::{Error, Result};
use sink::Ids;
use std::path::Path;

/// Format of an n-best list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Fields separated by `|||`, as of Moses, cdec, Joshua, Marian and Phrasal:
    /// `id ||| text ||| features ||| score`; travatar puts the score before the features.
    Bars,
    /// JSON: one value per line, or one array or object per file.
    Json,
    /// Table with a header, separated by tabs, commas or semicolons.
    Table,
    /// Output of `fairseq-generate`.
    Fairseq,
    /// Plain text, one candidate per line, with the same number of candidates for every segment.
    Flat,
    /// Feature file of Moses' extractor, without texts.
    Feats,
    /// Text of Kaldi: a key such as `utterance-1` and words per line.
    Kaldi,
}

impl Dialect {
    /// All formats with the names that `--nbest-format` accepts; the `|||` format has the names of the
    /// decoders that write it.
    pub const NAMES: &'static [(&'static str, Dialect)] = &[
        ("moses", Dialect::Bars),
        ("cdec", Dialect::Bars),
        ("joshua", Dialect::Bars),
        ("travatar", Dialect::Bars),
        ("marian", Dialect::Bars),
        ("phrasal", Dialect::Bars),
        ("jsonl", Dialect::Json),
        ("json", Dialect::Json),
        ("tsv", Dialect::Table),
        ("csv", Dialect::Table),
        ("fairseq", Dialect::Fairseq),
        ("flat", Dialect::Flat),
        ("feats", Dialect::Feats),
        ("kaldi", Dialect::Kaldi),
        ("zmert", Dialect::Bars),
    ];

    /// Returns the first name of the format in [`Dialect::NAMES`].
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|n| n.1 == self).map_or("unknown", |n| n.0)
    }
}

/// Options for reading an n-best list.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Input format; `None` to detect it from the content.
    pub dialect: Option<Dialect>,
    /// Number of candidates per segment, for files without segment numbers.
    pub per_source: Option<u32>,
    /// Columns of tables and JSON that are read as ids, texts, references and features.
    pub columns: Columns,
    /// Values of features for the candidates of tables and JSON that do not have them.
    pub missing: Vec<(String, f64)>,
}

/// Number of bytes from which the format of a file is detected. Log lines may come before the candidates of
/// fairseq.
const LOOK: usize = 1 << 16;

/// Reads an n-best file (`-` is standard input), plain or compressed, or a directory of `ESPnet` or Kaldi, and appends its candidates to `rows`.
/// Fails if the file cannot be read, is not in a recognised n-best format, or has no candidate; errors name
/// the line.
///
/// ```
/// use luthier_io::nbest::{Options, Rows, read};
/// let dir = tempfile::tempdir().unwrap();
/// let path = dir.path().join("dev.nbest");
/// std::fs::write(&path, "0 ||| the house ||| LM0= -3.5 TM0= -1 -0.25 ||| -4.75\n").unwrap();
/// let mut rows = Rows::default();
/// read(&path, &Options::default(), &mut rows).unwrap();
/// assert_eq!((rows.len(), rows.text(0), rows.total(0)), (1, "the house", Some(-4.75)));
/// assert_eq!(rows.column(0, "TM0[1]"), Some(-0.25));
/// ```
pub fn read(path: &Path, options: &Options, rows: &mut Rows) -> Result<()> {
    if path.is_dir() {
        return keyed::read_dir(path, options, rows);
    }
    read_input(Input::open(path)?, options, rows)
}

/// Reads an n-best list from an open input and appends its candidates to `rows`. Fails as [`read`] does.
pub fn read_input(mut input: Input, options: &Options, rows: &mut Rows) -> Result<()> {
    let dialect = match options.dialect {
        Some(dialect) => dialect,
        None => recognize(&mut input, options)?,
    };
    let file = rows.begin_file(input.name());
    let by_column = matches!(dialect, Dialect::Json | Dialect::Table);
    if !by_column && (options.columns.any() || !options.missing.is_empty()) {
        let message = format!("is in the format {}, which has no named columns", dialect.name());
        return Err(Error::in_file(input.name(), message)
            .hint("leave out --id-column, --text-column, --reference-column, --feature-columns, --ignore-columns and --missing"));
    }
    match dialect {
        Dialect::Bars => bars::read(&mut input, rows)?,
        Dialect::Json => json::read(&mut input, options, rows, file)?,
        Dialect::Table => table::read(&mut input, options, rows, file)?,
        Dialect::Fairseq => fairseq::read(&mut input, rows)?,
        Dialect::Flat => flat::read(&mut input, options.per_source, rows)?,
        Dialect::Feats => moses_dat::read_features(&mut input, rows)?,
        Dialect::Kaldi => keyed::read(&mut input, options, rows, file)?,
    }
    if rows.files[file].first == rows.len() {
        return Err(Error::in_file(input.name(), "holds no candidate, expected an n-best list"));
    }
    rows.files[file].digest = input.digest()?;
    Ok(())
}

/// Detects the format of an n-best list from its first bytes. Fails if it is not a recognised format.
fn recognize(input: &mut Input, options: &Options) -> Result<Dialect> {
    let head = input.peek(LOOK)?;
    let text = String::from_utf8_lossy(head);
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = text.lines().filter(|l| !l.trim().is_empty());
    let first = lines.next().unwrap_or_default();
    Ok(if json::is_json(text) {
        Dialect::Json
    } else if first.starts_with("FEATURES_") {
        Dialect::Feats
    } else if first.contains("|||") || first.is_empty() {
        Dialect::Bars
    } else if text.lines().any(fairseq::is_candidate) {
        Dialect::Fairseq
    } else if table::separator(first, options).is_some()
        || (first.contains('\t') && options.per_source.is_some())
    {
        Dialect::Table
    } else if keyed::is_kaldi(text.lines()) {
        Dialect::Kaldi
    } else if options.per_source.is_some() {
        Dialect::Flat
    } else {
        let shown: String = first.chars().take(40).collect();
        return Err(Error::at(
            input.name(),
            1,
            format!("found `{shown}`, which is not a recognised n-best format"),
        )
        .hint("give --per-source N for plain text with N lines per segment, name the text of a table with --text-column, or set --nbest-format; is this a file of references or weights?"));
    })
}

/// Fails unless the number of candidates is a multiple of `per_source`.
fn whole_segments(input: &Input, count: u32, per_source: Option<u32>) -> Result<()> {
    match per_source {
        Some(n) if !count.is_multiple_of(n) => Err(input
            .error(format!("the file has {count} candidates, which is not a multiple of {n}"))
            .hint("every segment needs exactly --per-source candidates")),
        _ => Ok(()),
    }
}

/// Parses a finite number; `None` for anything else, including infinities, NaN and numbers too large for a
/// double.
fn number(word: &str) -> Option<f64> {
    word.parse().ok().filter(|v: &f64| v.is_finite())
}

/// Parses a segment number. Fails unless it is from 0 to [`rows::MAX_SEGMENT`].
fn segment_id(input: &Input, word: &str) -> Result<u32> {
    word.parse().ok().filter(|&id| id <= rows::MAX_SEGMENT).ok_or_else(|| {
        input
            .error(format!("the segment id is `{word}`, expected a whole number from 0"))
            .hint("number the segments in the order of the references")
    })
}

/// Builds the error about a value `word` of the feature or score `name` that is not a finite number.
fn not_finite(input: &Input, name: &str, word: &str) -> Error {
    input
        .error(format!("the value of {name} is `{word}`, expected a finite number"))
        .hint("replace it, or remove the candidate")
}

/// Returns the plural ending of a noun that is counted `n` times.
fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

#[cfg(test)]
mod tests;
