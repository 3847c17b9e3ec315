//! What readers of tables and JSON have in common: which columns are read as what, ids of segments, references, missing
//! numbers, and the summary of all that.

use super::{Options, Rows, plural};
use crate::Input;
use luthier_core::{Error, Result};
use rustc_hash::FxHashMap;
use std::fmt;

/// Names of the text of a candidate.
pub(super) const TEXT: &[&str] = &[
    "text",
    "hyp",
    "hypothesis",
    "translation",
    "output",
    "sentence",
    "mt",
    "pred",
    "pred_text",
    "generated_text",
    "translation_text",
];
/// Names of the id of a segment.
pub(super) const ID: &[&str] = &[
    "id",
    "segment",
    "index",
    "idx",
    "segment_id",
    "sent_id",
    "utt",
    "utt_id",
    "utterance_id",
    "request_id",
    "custom_id",
    "audio_filepath",
];
/// Names of the reference, or of several.
pub(super) const REFERENCE: &[&str] =
    &["ref", "refs", "reference", "references", "target", "tgt", "gold", "ground_truth"];
/// Names of numbers that are ranks of candidates, not features.
pub(super) const RANK: &[&str] = &["rank", "beam"];

/// Which columns of a table, or keys of JSON objects, are read as what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Columns {
    /// Column of the id of the segment; `None` to go by the name.
    pub id: Option<String>,
    /// Column of the text; `None` to go by the name.
    pub text: Option<String>,
    /// Column of the reference; `None` to go by the name.
    pub reference: Option<String>,
    /// Column of the group of a segment, such as its document; `None` for none.
    pub group: Option<String>,
    /// Columns that are features; empty for all numbers.
    pub features: Vec<String>,
    /// Columns that are ignored.
    pub ignore: Vec<String>,
}

/// What a column is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Id,
    Text,
    Reference,
    Group,
    /// A feature if it is a number.
    Feature,
    Ignored,
}

impl Columns {
    /// Returns whether any column was chosen by the user.
    pub fn any(&self) -> bool {
        *self != Columns::default()
    }

    /// Returns what a column is read as. Names tell unless the user does; the text is settled by [`Columns::text_of`].
    pub(super) fn role(&self, name: &str) -> Role {
        let is = |chosen: &Option<String>, usual: &[&str]| match chosen {
            Some(chosen) => chosen == name,
            None => usual.contains(&name),
        };
        if self.ignore.iter().any(|n| n == name) {
            Role::Ignored
        } else if is(&self.group, &[]) {
            Role::Group
        } else if self.features.iter().any(|n| n == name) {
            Role::Feature
        } else if is(&self.text, &[]) {
            Role::Text
        } else if is(&self.reference, REFERENCE) {
            Role::Reference
        } else if is(&self.id, ID) {
            Role::Id
        } else if self.features.is_empty() {
            Role::Feature
        } else {
            Role::Ignored
        }
    }

    /// Returns the column of the text among those with texts, and that of the reference if the names imply it. Fails if
    /// several could be the text.
    pub(super) fn text_of<'a>(
        &self,
        names: &[&'a str],
    ) -> std::result::Result<(Option<&'a str>, Option<&'a str>), String> {
        let named = |wanted: &str| names.iter().copied().find(|n| *n == wanted);
        if let Some(chosen) = &self.text {
            return Ok((named(chosen), None));
        }
        // A choice of features does not concern the text.
        let others = Columns { features: Vec::new(), ..self.clone() };
        let free = |n: &&str| {
            TEXT.contains(n) && others.role(n) == Role::Feature && !self.features.iter().any(|f| f == n)
        };
        let all: Vec<&str> = names.iter().copied().filter(free).collect();
        match all[..] {
            [] => Ok((None, None)),
            [text] => Ok((Some(text), None)),
            // In manifests of NeMo, `text` is the reference.
            [a, b] if [a, b].contains(&"pred_text") && [a, b].contains(&"text") => {
                Ok((Some("pred_text").and_then(named), Some("text").and_then(named)))
            }
            _ => Err(all.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(" and ")),
        }
    }
}

/// What the columns of a file were read as.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// Column of the ids of segments, or how segments are numbered without one.
    pub id: String,
    /// Column of the texts.
    pub text: String,
    /// Column of the references; empty if there are none.
    pub reference: String,
    /// Column of the groups of segments; empty if there is none.
    pub group: String,
    /// Features, in the order of their first occurrence.
    pub features: Vec<String>,
    /// What was ignored, each with what it is, in the order of first occurrence.
    pub ignored: Vec<(String, &'static str)>,
}

/// Maximum number of features and of ignored columns that a summary names.
const SHOWN: usize = 12;

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |items: &mut dyn ExactSizeIterator<Item = String>| {
            let more = items.len().saturating_sub(SHOWN);
            let shown = items.take(SHOWN).collect::<Vec<_>>().join(", ");
            if more > 0 { format!("{shown} and {more} more") } else { shown }
        };
        write!(f, "id: {}; text: {}", self.id, self.text)?;
        if !self.reference.is_empty() {
            write!(f, "; reference: {}", self.reference)?;
        }
        if !self.group.is_empty() {
            write!(f, "; group: {}", self.group)?;
        }
        let features = list(&mut self.features.iter().cloned());
        write!(f, "; features: {}", if features.is_empty() { "none" } else { &features })?;
        if !self.ignored.is_empty() {
            write!(
                f,
                "; ignored: {}",
                list(&mut self.ignored.iter().map(|(n, what)| format!("{n} ({what})")))
            )?;
        }
        Ok(())
    }
}

/// What a file tells about a segment besides its candidates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Beside {
    pub(super) references: Vec<String>,
    pub(super) group: Option<String>,
}

impl Beside {
    /// Adds what another place tells about the segment `id`. Returns message and hint if the two contradict each other.
    pub(super) fn join(&mut self, id: &str, new: Beside) -> std::result::Result<(), (String, &'static str)> {
        if self.references.is_empty() {
            self.references = new.references;
        } else if !new.references.is_empty() && self.references != new.references {
            let message = format!("segment {id} has two different references");
            return Err((message, "give several references of a segment as an array"));
        }
        match (&self.group, new.group) {
            (Some(old), Some(new)) if *old != new => {
                Err((format!("segment {id} belongs to `{old}` and to `{new}`"), "check --group-column"))
            }
            (None, group @ Some(_)) => {
                self.group = group;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Ids of the segments of a file in the order of their first occurrence, with their references and groups.
#[derive(Debug, Default)]
pub(super) struct Ids {
    pub(super) names: Vec<String>,
    pub(super) beside: Vec<Beside>,
    index: FxHashMap<String, u32>,
}

impl Ids {
    pub(super) fn of(names: Vec<String>, beside: Vec<Beside>) -> Self {
        Ids { names, beside, index: FxHashMap::default() }
    }

    /// Returns the index of an id.
    pub(super) fn index(&mut self, id: &str) -> u32 {
        if let Some(&known) = self.index.get(id) {
            return known;
        }
        let new = self.names.len() as u32;
        self.names.push(id.to_owned());
        self.beside.push(Beside::default());
        self.index.insert(id.to_owned(), new);
        new
    }
}

/// Rows of one file that are being read.
pub(super) struct Sink<'a> {
    pub(super) rows: &'a mut Rows,
    pub(super) options: &'a Options,
    ids: Ids,
    /// First row of the file.
    first: usize,
    /// Number of rows without id, and of lists without id.
    single: u32,
    lists: u32,
    pub(super) usage: Usage,
    /// Number of candidates with each feature that every candidate must have, by number in [`Rows::names`]; 0 for others.
    required: Vec<usize>,
    /// Names whose value is `null` somewhere.
    nulls: Vec<String>,
    /// Names that the user has given and that do not occur in the file so far, each with its flag.
    unseen: Vec<(String, &'static str)>,
}

impl<'a> Sink<'a> {
    pub(super) fn new(rows: &'a mut Rows, options: &'a Options) -> Self {
        let first = rows.len();
        let chosen = &options.columns;
        let mut unseen: Vec<(String, &'static str)> = Vec::new();
        unseen.extend(chosen.reference.iter().map(|n| (n.clone(), "--reference-column")));
        unseen.extend(chosen.group.iter().map(|n| (n.clone(), "--group-column")));
        unseen.extend(chosen.features.iter().map(|n| (n.clone(), "--feature-columns")));
        unseen.extend(chosen.ignore.iter().map(|n| (n.clone(), "--ignore-columns")));
        unseen.extend(options.missing.iter().map(|(n, _)| (n.clone(), "--missing")));
        Sink {
            rows,
            options,
            ids: Ids::default(),
            first,
            single: 0,
            lists: 0,
            usage: Usage::default(),
            required: Vec::new(),
            nulls: Vec::new(),
            unseen,
        }
    }

    /// Returns what a column is read as, and notes that it occurs.
    pub(super) fn role(&mut self, name: &str) -> Role {
        self.unseen.retain(|(n, _)| n != name);
        self.options.columns.role(name)
    }

    /// Notes that something is ignored, and what it is.
    pub(super) fn ignore(&mut self, name: &str, what: &'static str) {
        if !self.usage.ignored.iter().any(|(n, _)| n == name) {
            self.usage.ignored.push((name.to_owned(), what));
        }
    }

    /// Returns the segment with an id that the column `column` has.
    pub(super) fn segment(&mut self, column: &str, id: &str) -> u32 {
        if self.usage.id.is_empty() {
            column.clone_into(&mut self.usage.id);
        }
        self.ids.index(id)
    }

    /// Returns the segment of the next list of candidates without id.
    pub(super) fn next_list(&mut self) -> u32 {
        if self.usage.id.is_empty() {
            "order of the lists".clone_into(&mut self.usage.id);
        }
        self.lists += 1;
        let id = (self.lists - 1).to_string();
        self.ids.index(&id)
    }

    /// Returns the segment of the next single candidate without id. Fails unless the number of candidates per segment is
    /// given.
    pub(super) fn next_single(&mut self, input: &Input) -> Result<u32> {
        let Some(n) = self.options.per_source else {
            return Err(input
                .error("the candidate has no segment number")
                .hint("add an `id`, name its column with --id-column, or give --per-source N"));
        };
        if self.usage.id.is_empty() {
            self.usage.id = format!("{n} candidate{} per segment", plural(n as usize));
        }
        self.single += 1;
        let id = ((self.single - 1) / n.max(1)).to_string();
        Ok(self.ids.index(&id))
    }

    /// Adds references of a segment. Fails if it has others.
    pub(super) fn references(
        &mut self,
        input: &Input,
        segment: u32,
        column: &str,
        texts: Vec<String>,
    ) -> Result<()> {
        if self.usage.reference.is_empty() {
            column.clone_into(&mut self.usage.reference);
        }
        self.join(input, segment, Beside { references: texts, group: None })
    }

    /// Sets the group of a segment. Fails if it is empty, or if the segment has another one.
    pub(super) fn group(&mut self, input: &Input, segment: u32, column: &str, group: &str) -> Result<()> {
        if group.trim().is_empty() {
            return Err(input
                .error(format!("`{column}` is empty, expected the group of the segment"))
                .hint("fill it in, or leave out --group-column"));
        }
        if self.usage.group.is_empty() {
            column.clone_into(&mut self.usage.group);
        }
        self.join(input, segment, Beside { references: Vec::new(), group: Some(group.to_owned()) })
    }

    fn join(&mut self, input: &Input, segment: u32, new: Beside) -> Result<()> {
        let (id, here) = (&self.ids.names[segment as usize], &mut self.ids.beside[segment as usize]);
        here.join(id, new).map_err(|(message, hint)| input.error(message).hint(hint))
    }

    /// Adds the text of the row being read, which comes from the column `column`.
    pub(super) fn text(&mut self, column: &str, text: &str) {
        if self.usage.text.is_empty() {
            column.clone_into(&mut self.usage.text);
        }
        self.rows.push_text(text.trim());
    }

    /// Adds a feature that all candidates must have to the row being read. Fails if the row has it or it is not finite.
    pub(super) fn feature(&mut self, input: &Input, name: &str, value: f64) -> Result<()> {
        self.unseen.retain(|(n, _)| n != name);
        self.count(input, name)?;
        self.sparse(input, name, value)
    }

    /// Counts a feature that all candidates must have.
    fn count(&mut self, input: &Input, name: &str) -> Result<()> {
        let id = self.rows.intern(input, name)? as usize;
        if self.required.len() <= id {
            self.required.resize(id + 1, 0);
        }
        self.required[id] += 1;
        Ok(())
    }

    /// Adds a feature to the row being read; candidates without it have the value 0. Fails as [`Sink::feature`] does.
    pub(super) fn sparse(&mut self, input: &Input, name: &str, value: f64) -> Result<()> {
        if !value.is_finite() {
            return Err(super::not_finite(input, name, &value.to_string()));
        }
        if self.usage.features.len() <= 2 * SHOWN && !self.usage.features.iter().any(|n| n == name) {
            self.usage.features.push(name.to_owned());
        }
        self.rows.push_named(input, name, value)
    }

    /// Notes that a value is `null`, or an empty cell.
    pub(super) fn null(&mut self, name: &str) {
        if !self.nulls.iter().any(|n| n == name) {
            self.nulls.push(name.to_owned());
        }
    }

    /// Ends the row being read, with values for missing features.
    pub(super) fn end_row(&mut self, input: &Input, segment: u32, total: Option<f64>) -> Result<()> {
        for (name, value) in &self.options.missing {
            let id = self.rows.intern(input, name)?;
            if !self.rows.open_row_has(id) {
                self.count(input, name)?;
                self.sparse(input, name, *value)?;
            }
        }
        self.rows.end_row(segment, input.line_number(), total);
        Ok(())
    }

    /// Ends the file: gives segments their numbers, and checks that no number is missing.
    pub(super) fn finish(self, input: &Input, file: usize) -> Result<()> {
        super::whole_segments(input, self.single, self.options.per_source)?;
        let rows = self.rows.len() - self.first;
        if let Some((name, flag)) = self.unseen.first().filter(|_| rows > 0) {
            let message = format!("no candidate has `{name}`");
            return Err(Error::in_file(input.name(), message).hint(format!("check {flag}")));
        }
        if let Some(id) = self.required.iter().position(|&n| n > 0 && n < rows) {
            return Err(self.missing(id as u32, rows - self.required[id], rows));
        }
        let names = self.rows.names.names();
        let known = |name: &String| {
            names
                .iter()
                .position(|n| n == name)
                .is_some_and(|id| self.required.get(id).is_some_and(|&n| n > 0))
        };
        let mut usage = self.usage;
        for name in self.nulls.iter().filter(|name| !known(name)) {
            usage.ignored.push((name.clone(), "null"));
        }
        let name = input.name().to_owned();
        self.rows.settle_ids(&name, self.first, self.ids)?;
        self.rows.files[file].usage = Some(usage);
        Ok(())
    }

    /// Builds the error about a feature that some candidates do not have.
    fn missing(&self, id: u32, lacking: usize, rows: usize) -> Error {
        let name = &self.rows.names.names()[id as usize];
        let without = |row: &usize| !self.rows.features(*row).0.contains(&id);
        let row = (self.first..self.rows.len()).find(without).unwrap_or(self.first);
        let has = if lacking == 1 { "has" } else { "have" };
        let message = format!("{lacking} of {rows} candidates {has} no {name}, this one is the first");
        self.rows.error(row, message).hint(format!(
            "give a value for them with --missing {name}=VALUE, or leave the column out with --ignore-columns {name}"
        ))
    }
}
