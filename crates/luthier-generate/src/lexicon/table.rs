//! Parser of tab-separated files that reports all errors at once.
//!
//! Parsing does not stop at an error, so that an editor of the lexicon can fix all errors together: each
//! error is recorded with file and line, a placeholder replaces the invalid field, and parsing continues. The
//! caller inspects the list of errors after all files have been parsed.

use super::names::{Bits, Named, by_name};
use std::fmt;

/// An error in a lexicon file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Name of the file, without its directory.
    pub(crate) file: &'static str,
    /// Line, counted from 1; 0 if the error concerns the file as a whole.
    pub(crate) line: usize,
    /// What is wrong.
    pub(crate) what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            write!(f, "{}: {}", self.file, self.what)
        } else {
            write!(f, "{}:{}: {}", self.file, self.line, self.what)
        }
    }
}

/// A lexicon file: its name, its text, and the columns that its header line must have.
pub(crate) struct File {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    pub(crate) columns: &'static [&'static str],
}

/// Parses all rows below the header of a file. Rows with a wrong number of fields are reported and skipped.
pub(crate) fn rows<T>(
    file: &File,
    faults: &mut Vec<Fault>,
    mut read: impl FnMut(&mut Row<'_>) -> T,
) -> Vec<T> {
    let mut list = Vec::new();
    for (line, text) in (1..).zip(file.text.lines()) {
        let mut row = Row { file, line, fields: text.split('\t').collect(), faults };
        if line == 1 {
            if row.fields != file.columns {
                row.fault(format!("the header must be {:?}", file.columns.join("\t")));
            }
        } else if row.is_complete() {
            list.push(read(&mut row));
        }
    }
    if list.is_empty() {
        faults.push(Fault { file: file.name, line: 0, what: "has no usable row".to_string() });
    }
    list
}

/// A row of a file. Fields are accessed by the name of their column.
pub(crate) struct Row<'a> {
    file: &'a File,
    line: usize,
    fields: Vec<&'static str>,
    faults: &'a mut Vec<Fault>,
}

impl Row<'_> {
    /// Records an error in this row.
    pub(crate) fn fault(&mut self, what: impl Into<String>) {
        self.faults.push(Fault { file: self.file.name, line: self.line, what: what.into() });
    }

    /// Records an error unless the condition holds.
    pub(crate) fn check(&mut self, holds: bool, what: &str) {
        if !holds {
            self.fault(what);
        }
    }

    /// Returns the line of the row in the file, counted from 1.
    pub(crate) fn line(&self) -> usize {
        self.line
    }

    /// Returns whether the row has a field for every column; records an error if not, or if a field is empty.
    fn is_complete(&mut self) -> bool {
        let (found, wanted) = (self.fields.len(), self.file.columns.len());
        if found != wanted {
            self.fault(format!("found {found} fields, expected {wanted}"));
            return false;
        }
        for n in 0..wanted {
            let field = self.fields[n];
            if field.is_empty() || field.trim() != field {
                let column = self.file.columns[n];
                self.fault(format!("{column}: {field:?} is empty or has spaces around it; write - for none"));
            }
        }
        true
    }

    /// Returns a field as written in the file.
    ///
    /// # Panics
    /// If the file has no such column, which is an error in the code, not in the file.
    pub(crate) fn raw(&self, column: &str) -> &'static str {
        match self.file.columns.iter().position(|name| *name == column) {
            Some(n) => self.fields[n],
            None => panic!("{} has no column {column}", self.file.name),
        }
    }

    /// Returns whether a field has a value, that is, is not "-".
    pub(crate) fn has(&self, column: &str) -> bool {
        self.raw(column) != "-"
    }

    /// Returns whether both fields have a value, or neither has.
    pub(crate) fn has_both_or_none(&self, one: &str, other: &str) -> bool {
        self.has(one) == self.has(other)
    }

    /// Returns a field of one or more words, such as "in der nähe von".
    pub(crate) fn words(&mut self, column: &str) -> &'static str {
        let text = self.raw(column);
        if !text.split(' ').all(is_word) {
            self.fault(format!("{column}: {text:?} does not consist of lower-case words"));
        }
        text
    }

    /// Returns a field of one or more words; empty if the field is "-".
    pub(crate) fn optional(&mut self, column: &str) -> &'static str {
        if self.has(column) { self.words(column) } else { "" }
    }

    /// Returns a field of alternatives separated by "/", each of one or more words, or "~" for no words.
    pub(crate) fn alternatives(&mut self, column: &str) -> &'static str {
        let text = self.raw(column);
        for alternative in text.split('/') {
            if alternative != "~" && !alternative.split(' ').all(is_word) {
                self.fault(format!("{column}: {alternative:?} does not consist of lower-case words"));
            }
        }
        text
    }

    /// Returns a field of alternatives separated by "/"; empty if the field is "-".
    pub(crate) fn optional_alternatives(&mut self, column: &str) -> &'static str {
        if self.has(column) { self.alternatives(column) } else { "" }
    }

    /// Returns a German and an English expression whose words may have marks, as in `am_1 abend_2`. The
    /// English side may have alternatives, and only marks of the German side.
    pub(crate) fn expression(&mut self, german: &str, english: &str) -> (&'static str, &'static str) {
        let (source, target) = (self.raw(german), self.raw(english));
        let known = self.marks(german, source);
        for alternative in target.split('/') {
            for mark in self.marks(english, alternative) {
                if !known.contains(&mark) {
                    self.fault(format!(
                        "{english}: {alternative:?} has the mark {mark}, which {source:?} does not have"
                    ));
                }
            }
        }
        (source, target)
    }

    /// Returns the marks of an expression without alternatives; a word without "_" has the mark 0, one with
    /// "_-" none.
    fn marks(&mut self, column: &str, text: &str) -> Vec<char> {
        let mut all = Vec::new();
        for item in text.split(' ') {
            let (word, marks) = item.split_once('_').unwrap_or((item, "0"));
            let sound = marks == "-" || (!marks.is_empty() && marks.bytes().all(|b| b.is_ascii_digit()));
            if !is_word(word) || !sound {
                self.fault(format!("{column}: {item:?} is not a word with marks"));
            }
            all.extend(marks.chars().filter(|mark| *mark != '-'));
        }
        all
    }

    /// Returns the value whose name is in the field.
    pub(crate) fn named<T: Named>(&mut self, column: &str) -> T {
        let name = self.raw(column);
        by_name(name).unwrap_or_else(|| {
            let known: Vec<&str> = T::ALL.iter().map(|entry| entry.0).collect();
            self.fault(format!("{column}: {name:?} is not one of {}", known.join(", ")));
            T::ALL[0].1
        })
    }

    /// Returns the value whose name is in the field; `None` if the field is "-".
    pub(crate) fn optional_named<T: Named>(&mut self, column: &str) -> Option<T> {
        self.has(column).then(|| self.named(column))
    }

    /// Returns a set of names joined by "|"; "-" is the empty set.
    pub(crate) fn set(&mut self, column: &str, names: Bits) -> u64 {
        let text = self.raw(column);
        if text == "-" {
            return 0;
        }
        let mut set = 0;
        for name in text.split('|') {
            let lower = !name.contains(|c: char| c.is_ascii_uppercase());
            match names.iter().find(|entry| lower && entry.0.eq_ignore_ascii_case(name)) {
                Some(&(_, bit)) if set & bit == 0 => set |= bit,
                Some(_) => self.fault(format!("{column}: {name:?} occurs twice")),
                None => self.fault(format!("{column}: {name:?} is not a known name")),
            }
        }
        set
    }

    /// Returns a set of at least one name, joined by "|".
    pub(crate) fn some(&mut self, column: &str, names: Bits) -> u64 {
        let set = self.set(column, names);
        self.check(set != 0, &format!("{column}: at least one name is needed"));
        set
    }

    /// Returns a percentage from 1 to 100; "-" is 0.
    pub(crate) fn percent(&mut self, column: &str) -> usize {
        if !self.has(column) {
            return 0;
        }
        let number = self.number(column);
        self.check((1..=100).contains(&number), &format!("{column}: {number} is not between 1 and 100"));
        number
    }

    /// Returns a whole number.
    pub(crate) fn number(&mut self, column: &str) -> usize {
        let text = self.raw(column);
        text.parse().unwrap_or_else(|_| {
            self.fault(format!("{column}: {text:?} is not a number"));
            0
        })
    }
}

/// Returns whether a text is one lower-case word, in which hyphens and apostrophes are allowed.
pub(crate) fn is_word(text: &str) -> bool {
    text.starts_with(char::is_alphabetic) && text.chars().all(|c| c.is_lowercase() || c == '-' || c == '\'')
}

#[cfg(test)]
mod tests {
    use super::super::names::{Case, class};
    use super::*;

    /// Returns the errors in rows of three columns: a German and an English expression, and a case.
    fn faults(text: &'static str) -> Vec<String> {
        let file = File { name: "test.tsv", text, columns: &["german", "english", "case"] };
        let mut faults = Vec::new();
        rows(&file, &mut faults, |row| {
            row.expression("german", "english");
            row.optional_named::<Case>("case");
        });
        faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn good_rows_have_no_faults() {
        let text =
            "german\tenglish\tcase\nam_1 abend_2\tin_1 the_- evening_2/tonight_12\tdat\nheute\ttoday\t-\n";
        assert_eq!(faults(text), [""; 0]);
    }

    #[test]
    fn every_bad_row_is_reported_with_its_line() {
        let text =
            "german\tenglish\tcase\nheute\ttoday\nam_1\tin_3\tdat\nUm\tat\tdative\n \tx\t-\nja\tyes\t-\n";
        assert_eq!(
            faults(text),
            [
                "test.tsv:2: found 2 fields, expected 3",
                "test.tsv:3: english: \"in_3\" has the mark 3, which \"am_1\" does not have",
                "test.tsv:4: german: \"Um\" is not a word with marks",
                "test.tsv:4: case: \"dative\" is not one of nom, acc, dat, gen",
                "test.tsv:5: german: \" \" is empty or has spaces around it; write - for none",
                "test.tsv:5: german: \"\" is not a word with marks",
                "test.tsv:5: german: \"\" is not a word with marks",
            ]
        );
    }

    #[test]
    fn wrong_headers_and_empty_files_are_reported() {
        assert_eq!(
            faults("german\tenglish\n"),
            ["test.tsv:1: the header must be \"german\\tenglish\\tcase\"", "test.tsv: has no usable row"]
        );
    }

    #[test]
    fn sets_know_their_names() {
        let file = File {
            name: "test.tsv",
            text: "classes\nperson|kin\n-\nperson|Kin\nfood|food\nfod\n",
            columns: &["classes"],
        };
        let mut faults = Vec::new();
        let sets = rows(&file, &mut faults, |row| row.set("classes", class::ALL));
        assert_eq!(sets[..2], [class::PERSON | class::KIN, 0]);
        let lines: Vec<usize> = faults.iter().map(|fault| fault.line).collect();
        assert_eq!(lines, [4, 5, 6]);
    }
}
