//! Reader of tab-separated values with a header: `id`, `text`, and one column per feature; columns
//! `score:NAME` are scores that are not features. Files without a header have lines `text<TAB>score` and a
//! fixed number of lines per segment (`NeMo`).

use super::{Rows, not_finite, number, segment_id};
use crate::Input;
use luthier_core::Result;

/// Headers of the column of texts.
const TEXT: &[&str] = &["text", "hyp", "hypothesis", "translation", "output", "sentence", "mt"];
/// Headers of the column of segment numbers.
const ID: &[&str] = &["id", "segment", "index", "idx", "segment_id", "sent_id"];

/// Returns whether a line is a header with a text column.
pub(super) fn is_header(line: &str) -> bool {
    line.contains('\t') && line.split('\t').any(|name| TEXT.contains(&name.trim()))
}

/// Returns the header of a feature's column: its name, after `feature:` if a header of that name has another
/// meaning.
pub(super) fn feature_column(name: &str) -> String {
    let special = ["score:", "feature:"].iter().any(|p| name.starts_with(p));
    if special || ID.contains(&name) || TEXT.contains(&name) {
        format!("feature:{name}")
    } else {
        name.to_owned()
    }
}

/// Content of a column.
enum Column {
    Id,
    Text,
    Feature(String),
    Score(String),
}

/// Reads the candidates of a file into `rows`. Fails on a malformed line.
pub(super) fn read(input: &mut Input, per_source: Option<u32>, rows: &mut Rows) -> Result<()> {
    let mut buffer = Vec::new();
    if !input.line(&mut buffer)? {
        return Ok(());
    }
    let first = input.utf8(&buffer)?.to_owned();
    let headed = is_header(&first);
    let columns =
        if headed { header(input, &first)? } else { vec![Column::Text, Column::Feature("score".into())] };
    let mut count = 0;
    if !headed {
        line(input, &first, &columns, per_source, &mut count, rows)?;
    }
    while input.line(&mut buffer)? {
        let text = input.utf8(&buffer)?;
        if !text.is_empty() {
            line(input, text, &columns, per_source, &mut count, rows)?;
        }
    }
    let given = columns.iter().any(|c| matches!(c, Column::Id));
    super::whole_segments(input, count, per_source.filter(|_| !given))
}

/// Parses the header. Fails if a column has no name or two have the same name.
fn header(input: &Input, line: &str) -> Result<Vec<Column>> {
    let mut seen: Vec<&str> = Vec::new();
    let mut columns = Vec::new();
    for name in line.split('\t').map(str::trim) {
        if name.is_empty() || seen.contains(&name) {
            let what = if name.is_empty() {
                "a column has no name".to_owned()
            } else {
                format!("two columns are named {name}")
            };
            return Err(input.error(what));
        }
        seen.push(name);
        let has_text = columns.iter().any(|c| matches!(c, Column::Text));
        columns.push(match (name.strip_prefix("score:"), name.strip_prefix("feature:")) {
            (Some(score), _) => Column::Score(score.to_owned()),
            (_, Some(feature)) => Column::Feature(feature.to_owned()),
            _ if ID.contains(&name) => Column::Id,
            _ if TEXT.contains(&name) && !has_text => Column::Text,
            _ => Column::Feature(name.to_owned()),
        });
    }
    Ok(columns)
}

/// Parses one line into a row; `count` is the number of rows read before. Fails if the line is malformed.
fn line(
    input: &Input,
    text: &str,
    columns: &[Column],
    per_source: Option<u32>,
    count: &mut u32,
    rows: &mut Rows,
) -> Result<()> {
    let cells: Vec<&str> = text.split('\t').collect();
    if cells.len() != columns.len() {
        return Err(input.error(format!("found {} columns, expected {}", cells.len(), columns.len())));
    }
    let mut segment = per_source.map(|n| *count / n.max(1));
    let mut total = None;
    for (column, cell) in columns.iter().zip(cells) {
        let value = |name: &str| number(cell.trim()).ok_or_else(|| not_finite(input, name, cell));
        match column {
            Column::Id => segment = Some(segment_id(input, cell.trim())?),
            Column::Text => rows.push_text(cell.trim()),
            // In an empty cell, the candidate does not have the feature or score.
            Column::Feature(_) | Column::Score(_) if cell.trim().is_empty() => {}
            Column::Feature(name) => rows.push_named(input, name, value(name)?)?,
            Column::Score(name) if name == "total" => total = Some(value(name)?),
            Column::Score(name) => rows.push_score(input, name, value(name)?)?,
        }
    }
    let Some(segment) = segment else {
        return Err(input
            .error("no column has segment numbers")
            .hint("add a column `id`, or give --per-source N"));
    };
    *count += 1;
    rows.end_row(segment, input.line_number(), total);
    Ok(())
}
