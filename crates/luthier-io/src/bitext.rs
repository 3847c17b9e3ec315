//! Reading of bilingual files, as translators and localisation teams have them, into segment pairs: TSV, TMX,
//! XLIFF and PO.
//!
//! The format is detected from the content. A segment is one line of text: each run of blanks, line breaks
//! and control characters becomes one blank, and white space at both ends is removed. Inline elements of
//! TMX and XLIFF are kept as tags such as `<ph id="1"/>` or `<g id="1">…</g>`; the native code that they wrap
//! is dropped, so equal ids give equal tags on both sides.
//!
//! Only finished translations are read; [`Skipped`] counts the others. Files are UTF-8, or UTF-16 with a byte
//! order mark, plain or compressed. Reading takes time linear in the size of the file, which is kept in
//! memory together with the pairs.

mod encoding;
mod inline;
mod language;
mod po;
mod tmx;
mod tsv;
mod xliff;
mod xml;

use crate::Input;
use luthier_core::{Error, Result};
use serde::{Deserialize, Serialize};
use std::{fmt, path::Path};

/// The segment pairs of a bilingual file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bitext {
    /// Name of the file as the user gave it.
    pub file: String,
    /// Format of the file, as detected.
    pub format: BitextFormat,
    /// Source and target of each segment, in the order of the file; none is empty.
    pub pairs: Vec<(String, String)>,
    /// Language tag of the source in the file, such as `en-US`; `None` if the file does not name it.
    pub source_lang: Option<String>,
    /// Language tag of the target in the file; `None` if the file does not name it.
    pub target_lang: Option<String>,
    /// Numbers of entries that were skipped, by reason.
    pub skipped: Skipped,
    /// Digest of the file's bytes, 16 hexadecimal digits.
    pub digest: String,
}

/// Format of a bilingual file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BitextFormat {
    /// Two columns of text separated by a tab, with or without a header of language codes.
    ///
    /// Cells can be quoted as by spreadsheets: one in quotation marks can contain line breaks, and quotation
    /// marks doubled. Marks quote only if all of the file is consistent with that: each cell that begins with
    /// one is closed, no other cell contains one, all lines have the same number of columns, and no cell has
    /// both a tab and a line break. Otherwise they are text, and also if lines or cells would be joined in a
    /// file whose lines all have the same number of columns without quoting.
    ///
    /// The first line is a header if two of its cells are the languages asked for, or the words `source` and
    /// `target`, or if its cells are different language codes such as `en` or `pt-BR`. With a header there can be
    /// more than two columns.
    Tsv,
    /// Translation memory, TMX 1.1 to 1.4.
    ///
    /// One pair per `tu`: the first `tuv` in each of the two languages, an exact match of the language tag
    /// before one with further subtags.
    Tmx,
    /// XLIFF 1.0 to 1.2 and 2.x.
    ///
    /// One pair per `trans-unit` or per `segment`; a `trans-unit` that is segmented by `mrk mtype="seg"` gives
    /// one pair per segment. Units with `translate="no"`, states before translation (`new`,
    /// `needs-translation`, `needs-adaptation`, `needs-l10n`, `initial`) and states that ask for a review
    /// (`needs-review-…`) are skipped.
    Xliff,
    /// Catalogue of GNU gettext.
    ///
    /// One pair per message; a message with plural forms gives `msgid` with `msgstr[0]`, and `msgid_plural`
    /// with each further form.
    Po,
}

impl fmt::Display for BitextFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BitextFormat::Tsv => "TSV",
            BitextFormat::Tmx => "TMX",
            BitextFormat::Xliff => "XLIFF",
            BitextFormat::Po => "PO",
        })
    }
}

/// Numbers of entries that were skipped, by reason. An entry is a line of TSV, a translation unit of TMX, a
/// segment of XLIFF, or a message of PO.
///
/// Displayed as the nonzero counts, such as `2 untranslated, 1 fuzzy`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Entries without text on one side, or whose state says that they are not translated yet. A message of
    /// PO counts if any of its plural forms is empty; its other forms are read.
    pub untranslated: usize,
    /// Entries whose translation is marked as needing a review.
    pub fuzzy: usize,
    /// Messages of PO that are no longer used (`#~`).
    pub obsolete: usize,
    /// Units of XLIFF that must not be translated (`translate="no"`).
    pub not_translatable: usize,
    /// Entries that do not have both languages.
    pub other_language: usize,
}

impl Skipped {
    /// Returns the number of all entries that were skipped.
    pub fn total(&self) -> usize {
        self.untranslated + self.fuzzy + self.obsolete + self.not_translatable + self.other_language
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            (self.untranslated, "untranslated"),
            (self.fuzzy, "fuzzy"),
            (self.obsolete, "obsolete"),
            (self.not_translatable, "not translatable"),
            (self.other_language, "in other languages"),
        ];
        let shown: Vec<String> =
            counts.iter().filter(|(n, _)| *n > 0).map(|(n, why)| format!("{n} {why}")).collect();
        f.write_str(if shown.is_empty() { "none" } else { "" })?;
        f.write_str(&shown.join(", "))
    }
}

/// Reads a bilingual file (`-` is standard input), plain or compressed, in any [`BitextFormat`].
///
/// `languages` are the tags of source and target; `en` matches `en`, `en-US` and `en_GB`. XLIFF and PO are read
/// in the reverse direction if that is what the languages ask for. Without `languages`, the direction is that of
/// the file, which must then have only two languages.
///
/// Fails if the file cannot be read or is malformed, is not in UTF-8 or UTF-16, does not have the languages, or
/// has no pair.
///
/// ```
/// let dir = tempfile::tempdir().unwrap();
/// let path = dir.path().join("es.po");
/// std::fs::write(&path, "msgid \"house\"\nmsgstr \"casa\"\n\nmsgid \"tree\"\nmsgstr \"\"\n").unwrap();
/// let bitext = luthier_io::bitext::read_bitext(&path, Some(("en", "es"))).unwrap();
/// assert_eq!(bitext.pairs, [("house".to_owned(), "casa".to_owned())]);
/// assert_eq!(bitext.skipped.to_string(), "1 untranslated");
/// ```
pub fn read_bitext(path: &Path, languages: Option<(&str, &str)>) -> Result<Bitext> {
    parse_bitext(Input::open(path)?, languages)
}

/// Reads a bilingual file from an input of which no line was read, like [`read_bitext`].
pub fn parse_bitext(mut input: Input, languages: Option<(&str, &str)>) -> Result<Bitext> {
    let bytes = input.rest()?;
    let digest = input.digest()?;
    let file = input.name();
    let text = encoding::decode(file, bytes)?;
    let format = detect(file, &text)?;
    let parsed = match format {
        BitextFormat::Tsv => tsv::parse(file, &text, languages),
        BitextFormat::Tmx => tmx::parse(file, &text, languages),
        BitextFormat::Xliff => xliff::parse(file, &text, languages),
        BitextFormat::Po => po::parse(file, &text, languages),
    }?;
    let Parsed { pairs, skipped, source_lang, target_lang } = parsed;
    if pairs.is_empty() {
        let e = Error::in_file(file, format!("has no segment pair (format: {format}; skipped: {skipped})"));
        return Err(e.hint("give a file with finished translations"));
    }
    Ok(Bitext { file: file.to_owned(), format, pairs, source_lang, target_lang, skipped, digest })
}

/// Detects the format from the beginning of a text. Fails if the text is empty or in another format.
fn detect(file: &str, text: &str) -> Result<BitextFormat> {
    if text.trim_start().is_empty() {
        return Err(Error::in_file(file, "is empty, expected a bilingual file (TSV, TMX, XLIFF or PO)"));
    }
    match xml::root(file, text)? {
        Some("tmx") => Ok(BitextFormat::Tmx),
        Some("xliff") => Ok(BitextFormat::Xliff),
        Some(other) => {
            let message = format!("is XML with the root element <{other}>, expected <tmx> or <xliff>");
            Err(Error::in_file(file, message).hint("export it as TMX, XLIFF, PO or TSV"))
        }
        None if po::is_po(text) => Ok(BitextFormat::Po),
        None => Ok(BitextFormat::Tsv),
    }
}

/// What a format's parser returns.
#[derive(Debug, Default)]
struct Parsed {
    pairs: Vec<(String, String)>,
    skipped: Skipped,
    source_lang: Option<String>,
    target_lang: Option<String>,
}

impl Parsed {
    /// Adds a pair after cleaning both sides; returns false if one of them is empty.
    fn push(&mut self, source: &str, target: &str) -> bool {
        let pair = (one_line(source), one_line(target));
        let is_pair = !pair.0.is_empty() && !pair.1.is_empty();
        if is_pair {
            self.pairs.push(pair);
        }
        is_pair
    }

    /// Adds a pair, or counts an entry as untranslated if one side is empty.
    fn push_or_skip(&mut self, source: &str, target: &str) {
        if !self.push(source, target) {
            self.skipped.untranslated += 1;
        }
    }
}

/// Returns a text as one line: runs of blanks, line breaks and control characters become one blank, and white
/// space at both ends is removed.
fn one_line(text: &str) -> String {
    // Also the separators at which other programs break lines.
    let is_gap = |c: char| c == ' ' || c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let mut line = String::with_capacity(text.len());
    for part in text.split(is_gap).filter(|part| !part.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(part);
    }
    line.trim().to_owned()
}

#[cfg(test)]
mod tests;
