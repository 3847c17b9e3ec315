//! Reader of tables with a header, separated by tabs, commas or semicolons, with quoting: one column each for ids, texts
//! and, if there are any, references; all other columns of numbers are features, but columns `score:NAME` are scores that
//! are not features. Files without a header have lines `text<TAB>score` and a fixed number of lines per segment (`NeMo`).

use super::{
    Options, Rows, not_finite, number,
    sink::{ID, RANK, REFERENCE, Role, Sink, TEXT},
};
use crate::Input;
use luthier_core::Result;

/// Separators, the likelier first.
const SEPARATORS: &[u8] = b"\t,;";

/// Returns the separator of a line that is a header: one of its columns is the text by its name, or the user has chosen
/// columns.
pub(super) fn separator(line: &str, options: &Options) -> Option<u8> {
    let is_text = |name: &str| TEXT.contains(&name.trim().trim_matches('"'));
    let parts = |s: u8| line.split(s as char);
    if options.columns.any() {
        let most = SEPARATORS.iter().copied().rev().max_by_key(|&s| parts(s).count())?;
        return Some(most).filter(|&s| parts(s).count() > 1);
    }
    SEPARATORS.iter().copied().find(|&s| parts(s).count() > 1 && parts(s).any(is_text))
}

/// Returns the header of a feature's column: its name, after `feature:` if a header of that name has another
/// meaning.
pub(super) fn feature_column(name: &str) -> String {
    let special = ["score:", "feature:"].iter().any(|p| name.starts_with(p));
    if special || [ID, TEXT, REFERENCE, RANK].iter().any(|names| names.contains(&name)) {
        format!("feature:{name}")
    } else {
        name.to_owned()
    }
}

/// Content of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Column {
    Id(String),
    Text(String),
    Reference(String),
    Group(String),
    Feature(String),
    Score(String),
    Ignored,
}

/// A line of the table: its number and its cells.
type Line = (u64, Vec<String>);

/// Reads the candidates of a file into `rows`. Fails if it is malformed.
pub(super) fn read(input: &mut Input, options: &Options, rows: &mut Rows, file: usize) -> Result<()> {
    let bytes = input.rest()?;
    let first = bytes.split(|&b| b == b'\n').next().unwrap_or_default();
    let found = separator(&String::from_utf8_lossy(first), options);
    if found.is_none() && options.per_source.is_none() && !bytes.is_empty() {
        let shown: String = String::from_utf8_lossy(first).chars().take(40).collect();
        input.set_line(1);
        return Err(input
            .error(format!("the header is `{shown}`, expected names of columns with the text among them"))
            .hint("name the text's column with --text-column, or call it `text`"));
    }
    let lines = lines(input, &bytes, found.unwrap_or(b'\t'))?;
    input.set_line(1);
    let mut sink = Sink::new(rows, options);
    let (columns, lines) = match found {
        Some(_) => (header(input, &lines, &mut sink)?, &lines[1..]),
        None => (vec![Column::Text("column 1".into()), Column::Feature("score".into())], &lines[..]),
    };
    for (number, cells) in lines {
        input.set_line(*number);
        line(input, cells, &columns, &mut sink)?;
    }
    sink.finish(input, file)
}

/// Splits a table into cells. Fails if it is not UTF-8.
fn lines(input: &mut Input, bytes: &[u8], separator: u8) -> Result<Vec<Line>> {
    let quoted = separator != b'\t' || quotes_match(bytes);
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(separator)
        .has_headers(false)
        .flexible(true)
        .quoting(quoted)
        .from_reader(bytes);
    let mut record = csv::ByteRecord::new();
    let mut all: Vec<Line> = Vec::new();
    // Reading from memory does not fail.
    while reader.read_byte_record(&mut record).unwrap_or(false) {
        let line = record.position().map_or(1, csv::Position::line);
        input.set_line(line);
        let mut cells = Vec::with_capacity(record.len());
        for cell in &record {
            cells.push(input.utf8(cell)?.to_owned());
        }
        all.push((line, cells));
    }
    Ok(all)
}

/// Returns whether the quotation marks of tab-separated text are quoting: each cell that begins with one ends with one, and
/// those inside are doubled. Otherwise they are part of the text.
fn quotes_match(bytes: &[u8]) -> bool {
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'"' {
            let skip =
                bytes[at..].iter().position(|b| matches!(b, b'\t' | b'\n')).unwrap_or(bytes.len() - at);
            at += skip + 1;
            continue;
        }
        at += 1;
        loop {
            match (bytes.get(at), bytes.get(at + 1)) {
                (Some(b'"'), Some(b'"')) => at += 2,
                (Some(b'"'), None | Some(b'\t' | b'\n' | b'\r')) => break,
                (None | Some(b'"'), _) => return false,
                _ => at += 1,
            }
        }
        at += 1;
        while bytes.get(at) == Some(&b'\r') {
            at += 1;
        }
        at += 1;
    }
    true
}

/// Parses the header and looks at the lines to tell numbers from text. Fails if two columns have the same name, or if the
/// text or a chosen column is not there.
fn header(input: &mut Input, lines: &[Line], sink: &mut Sink<'_>) -> Result<Vec<Column>> {
    let names: Vec<&str> = lines[0].1.iter().map(|n| n.trim()).collect();
    let chosen = &sink.options.columns;
    if let Some(i) = (0..names.len()).find(|&i| !names[i].is_empty() && names[..i].contains(&names[i])) {
        return Err(input.error(format!("two columns are named {}", names[i])));
    }
    let wanted = [
        (&chosen.id, "--id-column"),
        (&chosen.text, "--text-column"),
        (&chosen.reference, "--reference-column"),
        (&chosen.group, "--group-column"),
    ];
    for (name, flag) in wanted.into_iter().filter_map(|(name, flag)| Some((name.as_ref()?, flag))) {
        if !names.contains(&name.as_str()) {
            return Err(input
                .error(format!("no column is called {name}; there are: {}", names.join(", ")))
                .hint(format!("check {flag}")));
        }
    }
    let several = |all: String| {
        input
            .error(format!("{all} could all be the text of the candidates"))
            .hint("name it with --text-column NAME, and the reference with --reference-column NAME")
    };
    let (text, reference) = chosen.text_of(&names).map_err(several)?;
    if text.is_none() {
        let message = format!("no column is the text; there are: {}", names.join(", "));
        return Err(input.error(message).hint("name it with --text-column NAME, or call it `text`"));
    }
    let is_number = |c: usize| {
        let filled = lines[1..].iter().filter_map(|l| l.1.get(c)).find(|cell| !cell.trim().is_empty());
        filled.is_none_or(|cell| number(cell.trim()).is_some())
    };
    let mut columns = Vec::new();
    for (c, &name) in names.iter().enumerate() {
        let own = name.to_owned();
        let role = sink.role(name);
        columns.push(match (name.strip_prefix("score:"), name.strip_prefix("feature:")) {
            (Some(score), _) => Column::Score(score.to_owned()),
            (_, Some(feature)) => Column::Feature(feature.to_owned()),
            _ if Some(name) == text => Column::Text(own),
            _ if Some(name) == reference || role == Role::Reference => Column::Reference(own),
            _ if role == Role::Group => Column::Group(own),
            _ if role == Role::Id => Column::Id(own),
            _ if name.is_empty() => {
                sink.ignore(&format!("column {}", c + 1), "without name");
                Column::Ignored
            }
            _ if role == Role::Ignored || RANK.contains(&name) => {
                sink.ignore(name, if is_number(c) { "number" } else { "text" });
                Column::Ignored
            }
            _ if !is_number(c) && !sink.options.columns.features.contains(&own) => {
                sink.ignore(name, "text");
                Column::Ignored
            }
            _ => Column::Feature(own),
        });
    }
    if sink.options.columns.id.is_none() {
        one_id(sink, &mut columns);
    }
    Ok(columns)
}

/// Keeps the first of several columns of ids, in the order of preference.
fn one_id(sink: &mut Sink<'_>, columns: &mut [Column]) {
    let rank = |c: &Column| match c {
        Column::Id(name) => ID.iter().position(|n| n == name),
        _ => None,
    };
    let best = columns.iter().filter_map(rank).min();
    for column in columns {
        if rank(column).is_some() && rank(column) != best {
            if let Column::Id(name) = column {
                sink.ignore(name, "another id");
            }
            *column = Column::Ignored;
        }
    }
}

/// Parses one line into a row. Fails if the line is malformed.
fn line(input: &Input, cells: &[String], columns: &[Column], sink: &mut Sink<'_>) -> Result<()> {
    if cells.len() != columns.len() {
        return Err(input.error(format!("found {} columns, expected {}", cells.len(), columns.len())));
    }
    let given = columns.iter().zip(cells).find_map(|(column, cell)| match column {
        Column::Id(name) => Some((name, cell.trim())),
        _ => None,
    });
    let segment = match given {
        Some((name, "")) => {
            return Err(input.error(format!("`{name}` is empty, expected a segment number or name")));
        }
        Some((name, id)) => sink.segment(name, id),
        None => sink.next_single(input)?,
    };
    let mut total = None;
    for (column, cell) in columns.iter().zip(cells) {
        let cell = cell.trim();
        let value = |name: &str| number(cell).ok_or_else(|| not_finite(input, name, cell));
        match column {
            Column::Id(_) | Column::Ignored => {}
            Column::Text(name) => sink.text(name, cell),
            Column::Reference(name) => sink.references(input, segment, name, vec![cell.to_owned()])?,
            Column::Group(name) => sink.group(input, segment, name, cell)?,
            Column::Feature(name) if cell.is_empty() => sink.null(name),
            // In an empty cell, the candidate does not have the score.
            Column::Score(_) if cell.is_empty() => {}
            Column::Feature(name) => sink.feature(input, name, value(name)?)?,
            Column::Score(name) if name == "total" => total = Some(value(name)?),
            Column::Score(name) => sink.rows.push_score(input, name, value(name)?)?,
        }
    }
    sink.end_row(input, segment, total)
}
