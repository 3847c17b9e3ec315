//! Reader of tab-separated text; quoting and headers are described at
//! [`BitextFormat::Tsv`](super::BitextFormat::Tsv).

use super::{Parsed, language};
use luthier_core::{Error, Result};
use std::borrow::Cow;

/// Reads the pairs. Fails if a line does not have the expected number of columns, or the header does not name the
/// languages.
pub(super) fn parse(file: &str, text: &str, wanted: Option<(&str, &str)>) -> Result<Parsed> {
    let quoting = Quoting::of(text);
    let mut parsed = Parsed::default();
    let mut columns = Columns { count: 2, source: 0, target: 1, are_languages: false };
    let mut is_first = true;
    for line in Lines::new(text, quoting == Quoting::Quoted) {
        let Ok(cells) = line.cells else { continue };
        if cells.iter().all(|c| c.trim().is_empty()) {
            if cells.len() > 1 {
                parsed.skipped.untranslated += 1;
            }
            continue;
        }
        if std::mem::take(&mut is_first)
            && let Some(header) = header(file, line.number, &cells, wanted)?
        {
            columns = header;
            if columns.are_languages {
                parsed.source_lang = Some(cells[columns.source].trim().to_owned());
                parsed.target_lang = Some(cells[columns.target].trim().to_owned());
            }
            continue;
        }
        if cells.len() != columns.count {
            return Err(wrong_columns(file, line.number, cells.len(), columns.count, quoting));
        }
        parsed.push_or_skip(&cells[columns.source], &cells[columns.target]);
    }
    Ok(parsed)
}

/// Number of columns, and which are source and target, from 0.
struct Columns {
    count: usize,
    source: usize,
    target: usize,
    /// Whether a header names the languages of these columns.
    are_languages: bool,
}

/// Returns the columns if the first line is a header. Fails if it names languages, but not those asked for, or more
/// than two and none were asked for.
fn header(
    file: &str,
    line: u64,
    cells: &[Cow<'_, str>],
    wanted: Option<(&str, &str)>,
) -> Result<Option<Columns>> {
    let names: Vec<&str> = cells.iter().map(|c| c.trim()).collect();
    let count = names.len();
    let pair = |source: Option<usize>, target: Option<usize>, are_languages| match (source, target) {
        (Some(source), Some(target)) if source != target => {
            Some(Columns { count, source, target, are_languages })
        }
        _ => None,
    };
    if let Some((from, to)) = wanted
        && let Some(found) = pair(column_in(from, &names), column_in(to, &names), true)
    {
        return Ok(Some(found));
    }
    let named =
        |words: &[&str]| (0..count).find(|&i| words.iter().any(|word| names[i].eq_ignore_ascii_case(word)));
    let by_words = pair(named(&["source", "src"]), named(&["target", "tgt", "trg"]), false);
    let is_new = |i: usize| !names[..i].iter().any(|other| other.eq_ignore_ascii_case(names[i]));
    let are_codes = count > 1 && (0..count).all(|i| language::is_code(names[i]) && is_new(i));
    if by_words.is_some() || !are_codes {
        return Ok(by_words);
    }
    if wanted.is_none() && count == 2 {
        return Ok(pair(Some(0), Some(1), true));
    }
    Err(wrong_languages(file, line, &names, wanted))
}

/// Returns the column whose name matches a language best; the first of several.
fn column_in(lang: &str, names: &[&str]) -> Option<usize> {
    let tags = (0..names.len()).filter(|&i| language::is_tag(names[i]));
    tags.filter_map(|i| Some((language::distance(lang, names[i])?, i))).min().map(|(_, i)| i)
}

/// Builds the error of a header of languages without those asked for, or with more than two if none were.
fn wrong_languages(file: &str, line: u64, names: &[&str], wanted: Option<(&str, &str)>) -> Error {
    let all = names.join(", ");
    let Some((from, to)) = wanted else {
        let message = format!("the header has {} languages: {all}, expected 2", names.len());
        return Error::at(file, line, message).hint("name two with --source-lang and --target-lang");
    };
    let missing = if column_in(from, names).is_none() { from } else { to };
    let hint = format!("check the languages; if this line is text, add the header {from}<TAB>{to} before it");
    Error::at(file, line, format!("no column is in {missing}; the header has: {all}")).hint(hint)
}

/// Builds the error of a line with an unexpected number of columns.
fn wrong_columns(file: &str, line: u64, found: usize, expected: usize, quoting: Quoting) -> Error {
    let message = match (found, expected) {
        (1, 2) => {
            "found no tab, expected source and target separated by a tab (no other bilingual format was \
             recognised either)"
                .to_owned()
        }
        (_, 2) => format!("found {found} columns, expected 2: source and target separated by a tab"),
        _ => format!("found {found} columns, expected {expected}, as in the header"),
    };
    let hint = match (quoting, found, expected) {
        (Quoting::Inconsistent(at), ..) => format!(
            "correct the line; quotation marks are read as text, because those of line {at} do not quote a cell"
        ),
        (_, 3.., 2) => {
            "remove the other columns, or add a header of language codes such as en<TAB>es".to_owned()
        }
        (_, 1, 2) => "give a file in TSV, TMX, XLIFF or PO".to_owned(),
        _ => "correct the line".to_owned(),
    };
    Error::at(file, line, message).hint(hint)
}

/// What quotation marks mean in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quoting {
    /// No cell begins with one.
    None,
    /// They enclose cells.
    Quoted,
    /// They are text, because those of this line do not enclose a cell.
    Inconsistent(u64),
}

impl Quoting {
    /// Looks at the whole file: quotation marks quote only if all of them can. They do not if that would join cells or
    /// lines of a file in which all lines have the same number of columns without quoting.
    fn of(text: &str) -> Self {
        if !text.starts_with('"') && !text.contains("\n\"") && !text.contains("\t\"") {
            return Quoting::None;
        }
        let tabs = |line: &str| line.bytes().filter(|b| *b == b'\t').count();
        let mut plain = text.lines().filter(|line| !line.trim().is_empty()).map(tabs);
        let first = plain.next().unwrap_or_default();
        let is_plain = first > 0 && plain.all(|n| n == first);
        let mut columns = None;
        for line in Lines::new(text, true) {
            let is_quoted = line.cells.is_ok_and(|cells| {
                let is_blank = cells.len() == 1 && cells[0].trim().is_empty();
                is_blank || *columns.get_or_insert(cells.len()) == cells.len()
            });
            if !is_quoted || (is_plain && line.joins) {
                return Quoting::Inconsistent(line.number);
            }
        }
        Quoting::Quoted
    }
}

/// A quotation mark that does not quote a cell.
struct NotQuoting;

/// A line of the table, which is several lines of the file if a quoted cell contains line breaks.
struct Line<'a> {
    /// Number of its first line in the file, from 1.
    number: u64,
    /// Whether a quoted cell contains a tab or a line break.
    joins: bool,
    cells: std::result::Result<Vec<Cow<'a, str>>, NotQuoting>,
}

/// Splits text into the cells of its lines; after a quotation mark that does not quote a cell it ends.
struct Lines<'a> {
    rest: &'a str,
    number: u64,
    quoted: bool,
    /// Whether a quoted cell of the current line contains a tab or a line break.
    joins: bool,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str, quoted: bool) -> Self {
        Lines { rest: text, number: 1, quoted, joins: false }
    }

    /// Returns the next cell, and whether it is the last of its line. Fails on a quotation mark that does not quote a
    /// cell, if the text is quoted.
    fn cell(&mut self) -> std::result::Result<(Cow<'a, str>, bool), NotQuoting> {
        if let Some(inside) = self.rest.strip_prefix('"').filter(|_| self.quoted) {
            return self.quoted_cell(inside);
        }
        let end = memchr::memchr2(b'\t', b'\n', self.rest.as_bytes()).unwrap_or(self.rest.len());
        let cell = &self.rest[..end];
        let is_last = self.end_cell(end);
        if self.quoted && cell.contains('"') {
            return Err(NotQuoting);
        }
        Ok((if is_last { cell.strip_suffix('\r').unwrap_or(cell) } else { cell }.into(), is_last))
    }

    /// Returns a cell from the text after its opening quotation mark, and whether it is the last of its line.
    fn quoted_cell(&mut self, inside: &'a str) -> std::result::Result<(Cow<'a, str>, bool), NotQuoting> {
        let bytes = inside.as_bytes();
        let mut end = 0;
        loop {
            end += memchr::memchr(b'"', &bytes[end..]).ok_or(NotQuoting)?;
            if bytes.get(end + 1) != Some(&b'"') {
                break;
            }
            end += 2;
        }
        let cell = &inside[..end];
        let after = &inside[end + 1..];
        let is_closed = after.is_empty() || ["\t", "\n", "\r\n"].iter().any(|d| after.starts_with(d));
        let (has_break, has_tab) = (cell.contains('\n'), cell.contains('\t'));
        if !is_closed || (has_break && has_tab) {
            return Err(NotQuoting);
        }
        self.joins |= has_break || has_tab;
        self.number += cell.bytes().filter(|b| *b == b'\n').count() as u64;
        self.rest = after.strip_prefix('\r').unwrap_or(after);
        let is_last = self.end_cell(0);
        Ok((if cell.contains('"') { cell.replace("\"\"", "\"").into() } else { cell.into() }, is_last))
    }

    /// Moves behind the tab or line break at a position; returns whether the line ends there.
    fn end_cell(&mut self, at: usize) -> bool {
        let is_tab = self.rest.as_bytes().get(at) == Some(&b'\t');
        self.rest = self.rest.get(at + 1..).unwrap_or_default();
        self.number += u64::from(!is_tab);
        !is_tab
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let number = self.number;
        self.joins = false;
        let mut cells = Vec::with_capacity(2);
        loop {
            match self.cell() {
                Ok((cell, is_last)) => {
                    cells.push(cell);
                    if is_last {
                        return Some(Line { number, joins: self.joins, cells: Ok(cells) });
                    }
                }
                Err(e) => {
                    self.rest = "";
                    return Some(Line { number, joins: self.joins, cells: Err(e) });
                }
            }
        }
    }
}
