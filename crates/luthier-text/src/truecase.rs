//! Truecaser: words at the beginning of sentences, in headings and in capitals get the form that they have elsewhere, and
//! the inverse.
//!
//! A line is changed only if its casing can be restored exactly from three facts about it ([`Casing`]), which the
//! translation of the line inherits.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

/// A token of a line whose case is changed or restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Text of the token, without marks.
    pub(crate) text: String,
    /// Whether the token is attached to the one before.
    pub(crate) left: bool,
    /// Whether the token is attached to the one after.
    pub(crate) right: bool,
    /// Whether the token stands for a protected span, which has no case.
    pub(crate) is_span: bool,
}

impl Piece {
    /// Whether the token is a word of letters, possibly with hyphens and apostrophes; identifiers and names such as `iPhone`
    /// or `3D` are not ordinary.
    fn is_ordinary(&self) -> bool {
        let inner = |c: char| c.is_alphabetic() || matches!(c, '-' | '\'' | '’');
        !self.is_span && self.text.starts_with(char::is_alphabetic) && self.text.chars().all(inner)
    }

    /// Whether the token has letters or digits, or is a protected span.
    fn is_content(&self) -> bool {
        self.is_span || self.text.chars().any(char::is_alphanumeric)
    }

    /// Whether the first letter of the token, and no other, is a capital letter.
    fn is_capitalised(&self) -> bool {
        let mut chars = self.text.chars();
        chars.next().is_some_and(char::is_uppercase) && !chars.any(char::is_uppercase)
    }

    /// Whether the token has letters, and all are capital letters.
    fn is_upper(&self) -> bool {
        self.text.chars().any(char::is_alphabetic) && !self.text.chars().any(char::is_lowercase)
    }

    /// Whether the first letter is a small letter.
    fn is_lower(&self) -> bool {
        self.text.starts_with(char::is_lowercase)
    }
}

/// Style of capital letters of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// Sentences, whose first words are capitalised as stated.
    #[default]
    Sentences,
    /// A heading whose words are capitalised, except for small words.
    Title,
    /// Capital letters throughout.
    Capitals,
}

/// Casing of a line: what the truecaser has removed from it, to be restored in its translation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Casing {
    /// Style of the line.
    pub style: Style,
    /// Whether the line begins with a capital letter.
    pub first: bool,
    /// Whether sentences after the first one begin with a capital letter.
    pub later: bool,
}

/// A truecaser of one language.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub(crate) struct Truecaser {
    /// Most frequent form of each word, by its form in small letters.
    forms: FxHashMap<String, String>,
    /// Words that are not capitalised in headings.
    small: FxHashSet<String>,
    /// Whether headings of the language are capitalised.
    pub(crate) titles: bool,
}

/// Counts for a [`Truecaser`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    /// Occurrences of each form at places where case is informative.
    forms: FxHashMap<String, u32>,
    /// Occurrences of capitalised words at the beginning of sentences.
    initial: FxHashMap<String, u32>,
    /// Occurrences of words in headings: in small letters, capitalised.
    titles: FxHashMap<String, [u32; 2]>,
}

impl Counts {
    /// Counts the words of a line.
    pub(crate) fn add(&mut self, pieces: &[Piece]) {
        if is_capitals(pieces) {
            return;
        }
        if is_title(pieces) {
            for p in pieces.iter().skip(1).filter(|p| p.is_ordinary()) {
                let seen = self.titles.entry(p.text.to_lowercase()).or_default();
                seen[usize::from(!p.is_lower())] += 1;
            }
            return;
        }
        let starts = starts(pieces);
        for (i, p) in pieces.iter().enumerate().filter(|(_, p)| p.is_ordinary()) {
            if starts.contains(&i) && !p.is_lower() {
                *self.initial.entry(p.text.to_lowercase()).or_insert(0) += 1;
            } else {
                *self.forms.entry(p.text.clone()).or_insert(0) += 1;
            }
        }
    }

    /// Returns the truecaser: the most frequent form of each word. Words that occur at the beginning of sentences only are
    /// taken to be in small letters, if they occur twice.
    pub(crate) fn truecaser(self, titles: bool) -> Truecaser {
        let mut best: FxHashMap<String, (u32, String)> = FxHashMap::default();
        let mut forms: Vec<(String, u32)> = self.forms.into_iter().collect();
        // In order, with small letters after capitals, so that ties go to small letters.
        forms.sort_unstable();
        for (form, count) in forms {
            let entry = best.entry(form.to_lowercase()).or_default();
            if count >= entry.0 {
                *entry = (count, form);
            }
        }
        for (word, count) in self.initial.into_iter().collect::<std::collections::BTreeMap<_, _>>() {
            if count > 1 {
                best.entry(word.clone()).or_insert((count, word));
            }
        }
        let small = self.titles.into_iter().filter(|(_, [lower, upper])| lower > upper).map(|(word, _)| word);
        Truecaser {
            forms: best.into_iter().map(|(k, (_, form))| (k, form)).collect(),
            small: small.collect(),
            titles,
        }
    }
}

/// Returns the positions of words at the beginning of sentences: the first token with letters or digits, and those after a
/// full stop, exclamation mark or question mark that is attached to what precedes it.
fn starts(pieces: &[Piece]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at_start = true;
    for (i, p) in pieces.iter().enumerate() {
        if p.is_content() {
            let glued = i > 0 && (p.left || pieces[i - 1].right) && pieces[i - 1].is_content();
            if at_start && !glued {
                found.push(i);
            }
            at_start = false;
        } else if matches!(&*p.text, "." | "!" | "?") && i > 0 {
            // A mark that is attached to what follows belongs to it: a.b, ?x.
            at_start = p.left && !p.right;
        } else if at_start && i > 0 && !found.is_empty() {
            // Closing quotes and brackets may follow, other punctuation ends the beginning.
            at_start = matches!(
                &*p.text,
                ")" | "]" | "\"" | "'" | "”" | "’" | "»" | "“" | "(" | "[" | "¿" | "¡" | "«" | "‘"
            );
        }
    }
    found
}

/// Whether all words are in capital letters, and there are at least two of two or more letters.
fn is_capitals(pieces: &[Piece]) -> bool {
    let mut words = pieces.iter().filter(|p| p.is_ordinary() && p.text.chars().count() > 1).peekable();
    let (mut count, mut letters) = (0, 0);
    words.all(|p| {
        count += 1;
        letters += p.text.chars().count();
        p.is_upper()
    }) && count > 1
        && letters > 7
}

/// Whether a line looks like a heading in which words are capitalised: at least two words of four or more letters after the
/// first token, all capitalised, and no full stop at the end.
fn is_title(pieces: &[Piece]) -> bool {
    let long = |p: &&Piece| p.is_ordinary() && p.text.chars().count() > 3;
    let mut words = pieces.iter().skip(1).filter(long).peekable();
    let stop = pieces.last().is_some_and(|p| matches!(&*p.text, "." | "?" | "!"));
    let mut count = 0;
    !stop
        && pieces.len() < 25
        && words.all(|p| {
            count += 1;
            !p.is_lower()
        })
        && count > 1
        && pieces.iter().skip(1).filter(|p| p.is_ordinary() && p.is_capitalised()).count() > 1
}

/// Capitalises the first letter of a text.
fn capitalise(text: &mut String) {
    let mut chars = text.chars();
    if let Some(first) = chars.next() {
        *text = first.to_uppercase().chain(chars).collect();
    }
}

impl Truecaser {
    /// Changes the words of a line to their usual forms where its casing can be restored, and returns the casing.
    pub(crate) fn truecase(&self, pieces: &mut [Piece]) -> Casing {
        for style in [Style::Capitals, Style::Title, Style::Sentences] {
            let mut changed = pieces.to_vec();
            let Some(casing) = self.remove(style, &mut changed) else { continue };
            let mut back = changed.clone();
            self.restore(&mut back, casing);
            if back == pieces {
                pieces.clone_from_slice(&changed);
                return casing;
            }
        }
        Casing::default()
    }

    /// Returns the usual form of a word.
    fn form(&self, word: &str) -> Option<&str> {
        self.forms.get(&word.to_lowercase()).map(String::as_str)
    }

    /// Removes the casing of a style from a line and returns it; `None` if the line does not have the style.
    fn remove(&self, style: Style, pieces: &mut [Piece]) -> Option<Casing> {
        let all = Casing { style, first: true, later: true };
        match style {
            Style::Capitals if is_capitals(pieces) => {
                for p in pieces.iter_mut().filter(|p| p.is_ordinary()) {
                    p.text = self.form(&p.text).map_or_else(|| p.text.to_lowercase(), str::to_owned);
                }
                Some(all)
            }
            Style::Title if is_title(pieces) => {
                pieces.iter_mut().filter(|p| p.is_ordinary()).for_each(|p| self.lower(p));
                Some(all)
            }
            Style::Sentences => Some(self.remove_from_sentences(pieces)),
            Style::Capitals | Style::Title => None,
        }
    }

    /// Changes the first words of sentences to their usual forms.
    fn remove_from_sentences(&self, pieces: &mut [Piece]) -> Casing {
        let starts = starts(pieces);
        let is_lower = |&i: &usize| pieces[i].is_ordinary() && pieces[i].is_lower();
        let first = !starts.first().is_some_and(is_lower);
        let later = !starts.iter().skip(1).any(is_lower);
        for (n, &i) in starts.iter().enumerate() {
            if (if n == 0 { first } else { later }) && pieces[i].is_ordinary() {
                self.lower(&mut pieces[i]);
            }
        }
        Casing { style: Style::Sentences, first, later }
    }

    /// Changes a capitalised word to small letters if that is its usual form.
    fn lower(&self, piece: &mut Piece) {
        if piece.is_capitalised() {
            let lower = piece.text.to_lowercase();
            if self.forms.get(&lower) == Some(&lower) {
                piece.text = lower;
            }
        }
    }

    /// Restores the casing of a line, or gives a translation the casing of its source.
    pub(crate) fn restore(&self, pieces: &mut [Piece], casing: Casing) {
        match casing.style {
            Style::Capitals => {
                for p in pieces.iter_mut().filter(|p| p.is_ordinary()) {
                    p.text = p.text.to_uppercase();
                }
            }
            Style::Title if self.titles => {
                for (i, p) in pieces.iter_mut().enumerate().filter(|(_, p)| p.is_ordinary()) {
                    if i == 0 || !self.small.contains(&p.text) {
                        capitalise(&mut p.text);
                    }
                }
            }
            Style::Sentences | Style::Title => {
                for (n, i) in starts(pieces).into_iter().enumerate() {
                    let wanted = if n == 0 { casing.first } else { casing.later };
                    if wanted && pieces[i].is_ordinary() && pieces[i].is_lower() {
                        capitalise(&mut pieces[i].text);
                    }
                }
            }
        }
    }

    /// Whether a line looks like a capitalised heading.
    pub(crate) fn is_title(pieces: &[Piece]) -> bool {
        is_title(pieces)
    }
}

/// A truecaser as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Stored {
    /// Whether headings are capitalised.
    titles: bool,
    /// Words that are not capitalised in headings.
    small: Vec<String>,
    /// Usual forms of words.
    forms: Vec<String>,
}

impl From<Truecaser> for Stored {
    fn from(truecaser: Truecaser) -> Self {
        let sorted = |words: &mut dyn Iterator<Item = String>| {
            let mut words: Vec<String> = words.collect();
            words.sort_unstable();
            words
        };
        Stored {
            titles: truecaser.titles,
            small: sorted(&mut truecaser.small.into_iter()),
            forms: sorted(&mut truecaser.forms.into_values()),
        }
    }
}

impl From<Stored> for Truecaser {
    fn from(stored: Stored) -> Self {
        Truecaser {
            titles: stored.titles,
            small: stored.small.into_iter().collect(),
            forms: stored.forms.into_iter().map(|form| (form.to_lowercase(), form)).collect(),
        }
    }
}
