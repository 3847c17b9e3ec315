//! Writer of n-best lists as Moses' format, JSON lines or TSV.

use super::Rows;
use luthier_core::{Error, FeatureKey, Result};
use serde_json::{Map, Value, json};
use std::io::Write;

/// Output format of an n-best list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum To {
    /// Moses' format: `id ||| text ||| Name= v v ||| score`.
    Moses,
    /// JSON lines, one object per line: `{"id":0,"text":"…","features":{…},"scores":{…}}`.
    #[cfg_attr(feature = "clap", value(name = "jsonl"))]
    Json,
    /// Tab-separated values with a header.
    Tsv,
}

impl To {
    /// Returns the format for a file name: JSON lines for `.jsonl` and `.json`, TSV for `.tsv`, also before
    /// `.gz`, else Moses' format.
    pub fn of_path(path: &std::path::Path) -> To {
        let name = path.to_string_lossy();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        match name.rsplit('.').next() {
            Some("jsonl" | "json") => To::Json,
            Some("tsv") => To::Tsv,
            _ => To::Moses,
        }
    }
}

/// Maximum number of features in a TSV file, in which every candidate has a cell for every feature.
const MAX_COLUMNS: usize = 4096;

/// Writer of candidates of an n-best list, in any order, in one format.
pub struct Writer<'a> {
    rows: &'a Rows,
    to: To,
    out: &'a mut dyn Write,
    /// Whether a TSV file has a column for the total score.
    totals: bool,
    /// Name of the output in error messages.
    file: String,
    /// Cells of the TSV line being written.
    cells: Vec<String>,
}

impl<'a> Writer<'a> {
    /// Begins an n-best list; `totals` is whether a TSV file has a column for the total score, `file` is the
    /// output's name in error messages. Fails if the header cannot be written, or has too many columns.
    pub fn new(rows: &'a Rows, to: To, totals: bool, out: &'a mut dyn Write, file: &str) -> Result<Self> {
        let mut writer = Writer { rows, to, totals, out, file: file.to_owned(), cells: Vec::new() };
        if to == To::Tsv {
            let mut header = vec!["id".to_owned(), "text".to_owned()];
            if rows.names.names().len() > MAX_COLUMNS {
                let features = rows.names.names().len();
                let message =
                    format!("cannot write {features} features as TSV, expected at most {MAX_COLUMNS}");
                return Err(Error::in_file(file, message).hint("write JSON lines (--to jsonl)"));
            }
            header.extend(rows.names.names().iter().map(|n| super::table::feature_column(n)));
            header.extend(totals.then(|| "score:total".to_owned()));
            header.extend(rows.score_names.names().iter().map(|n| format!("score:{n}")));
            writer.line(&header.join("\t"))?;
        }
        Ok(writer)
    }

    /// Returns whether `rows` has scores that are not features and that the format cannot hold.
    pub fn loses_scores(rows: &Rows, to: To) -> bool {
        to == To::Moses && !rows.score_names.names().is_empty()
    }

    /// Writes the candidate of a row, with `total` in place of its own total score if given. Fails if the
    /// format cannot hold its text or features, or if writing fails.
    pub fn write(&mut self, row: usize, total: Option<f64>) -> Result<()> {
        let total = total.or_else(|| self.rows.total(row));
        match self.to {
            To::Moses => self.moses(row, total),
            To::Json => self.json(row, total),
            To::Tsv => self.tsv(row, total),
        }
    }

    /// Writes one line. Fails if writing fails.
    fn line(&mut self, line: &str) -> Result<()> {
        writeln!(self.out, "{line}").map_err(|e| Error::io(&self.file, "write it", &e))
    }

    /// Fails if the text of a row contains a string that the format cannot hold.
    fn check(&self, row: usize, forbidden: &[&str], format: &str) -> Result<()> {
        let text = self.rows.text(row);
        match forbidden.iter().find(|f| text.contains(**f)) {
            None => Ok(()),
            Some(f) => Err(self
                .rows
                .error(row, format!("the text contains {f:?}, which {format} cannot hold"))
                .hint("write JSON lines (--to jsonl)")),
        }
    }

    /// Writes the candidate of a row in Moses' format.
    fn moses(&mut self, row: usize, total: Option<f64>) -> Result<()> {
        self.check(row, &["|||", "\n", "\r"], "Moses' format")?;
        let mut line = MosesLine::new(self.rows.id(self.rows.segment(row)), self.rows.text(row));
        let features: Vec<(&str, f64)> = self.rows.named_features(row).collect();
        let mut i = 0;
        while i < features.len() {
            let n = self.block(&features[i..]);
            let name = features[i].0;
            let label = if n > 1 { &name[..name.len() - 3] } else { name };
            if label.contains(|c: char| c.is_whitespace()) || super::number(label).is_some() {
                return Err(self
                    .rows
                    .error(row, format!("the feature name `{label}` cannot be written in Moses' format"))
                    .hint("write JSON lines (--to jsonl)"));
            }
            line.block(label, features[i..i + n].iter().map(|f| f.1));
            i += n;
        }
        self.line(&line.end(total))
    }

    /// Returns the number of features, from the first on, that form one complete block `Name[0]`, `Name[1]`,
    /// …; at least 1. A block that is longer in other candidates, or whose name is also the name of a
    /// feature, is written value by value.
    fn block(&self, features: &[(&str, f64)]) -> usize {
        let Some(base) = features[0].0.strip_suffix("[0]").filter(|b| !b.is_empty()) else { return 1 };
        let in_turn = |(i, f): &(usize, &(&str, f64))| {
            f.0.strip_prefix(base).is_some_and(|rest| rest == format!("[{i}]"))
        };
        let n = features.iter().enumerate().take_while(in_turn).count();
        let known = |name: &str| self.rows.names.get(FeatureKey::of(name)).is_some();
        if known(&format!("{base}[{n}]")) || known(base) { 1 } else { n }
    }

    /// Writes the candidate of a row as a JSON line.
    fn json(&mut self, row: usize, total: Option<f64>) -> Result<()> {
        let map = |items: &mut dyn Iterator<Item = (&str, f64)>| {
            Value::Object(items.map(|(n, v)| (n.to_owned(), json!(v))).collect::<Map<_, _>>())
        };
        let features = map(&mut self.rows.named_features(row));
        let scores = map(&mut total.map(|t| ("total", t)).into_iter().chain(self.rows.named_scores(row)));
        let segment = self.rows.segment(row);
        let id = self.rows.id(segment);
        let id = if self.rows.has_names() { json!(id) } else { json!(id.parse::<u32>().unwrap_or(segment)) };
        let object = json!({
            "id": id, "text": self.rows.text(row), "features": features, "scores": scores,
        });
        self.line(&object.to_string())
    }

    /// Writes the candidate of a row as a TSV line.
    fn tsv(&mut self, row: usize, total: Option<f64>) -> Result<()> {
        self.check(row, &["\t", "\n", "\r"], "TSV")?;
        let rows = self.rows;
        let (features, scores) = (rows.names.names().len(), rows.score_names.names().len());
        self.cells.clear();
        self.cells.resize(2 + features + usize::from(self.totals) + scores, String::new());
        self.cells[0] = quoted(&rows.id(rows.segment(row)));
        self.cells[1] = quoted(rows.text(row));
        // A feature that a candidate does not have is 0.
        self.cells[2..2 + features].fill("0".to_owned());
        let (ids, values) = rows.features(row);
        for (&id, value) in ids.iter().zip(values) {
            self.cells[2 + id as usize] = value.to_string();
        }
        if self.totals {
            self.cells[2 + features] = total.map(|t| t.to_string()).unwrap_or_default();
        }
        for (name, value) in rows.named_scores(row) {
            let at = rows.score_names.names().iter().position(|n| n == name).unwrap_or(0);
            self.cells[2 + features + usize::from(self.totals) + at] = value.to_string();
        }
        let line = self.cells.join("\t");
        self.line(&line)
    }
}

/// Quotes a cell that begins with a quotation mark, as readers of tables expect.
fn quoted(cell: &str) -> String {
    if cell.starts_with('"') { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}

/// Builder of a candidate's line in Moses' format, `id ||| text ||| Label= v v Label= v ||| total`.
///
/// ```
/// let mut line = luthier_io::nbest::MosesLine::new(0, "the house");
/// line.block("LM0", [-3.5]);
/// line.block("TranslationModel0", [-1.0, -0.25]);
/// assert_eq!(line.end(Some(-4.75)), "0 ||| the house ||| LM0= -3.5 TranslationModel0= -1 -0.25 ||| -4.75");
/// ```
#[derive(Debug, Clone)]
pub struct MosesLine(String);

impl MosesLine {
    /// Begins the line of a candidate of a segment. The text must not contain `|||` or line ends.
    pub fn new(segment: impl std::fmt::Display, text: &str) -> Self {
        MosesLine(format!("{segment} ||| {text} |||"))
    }

    /// Adds a feature, or a block of features under one label.
    pub fn block(&mut self, label: &str, values: impl IntoIterator<Item = f64>) {
        self.0 += &format!(" {label}=");
        self.more(values);
    }

    /// Adds values to the last block.
    pub fn more(&mut self, values: impl IntoIterator<Item = f64>) {
        for value in values {
            self.0 += &format!(" {value}");
        }
    }

    /// Returns the complete line without line end, with the total score if given.
    pub fn end(mut self, total: Option<f64>) -> String {
        self.0 += " |||";
        if let Some(total) = total {
            self.0 += &format!(" {total}");
        }
        self.0
    }
}
