//! Tokeniser for languages with blanks between words, and for Chinese and Japanese; and its exact inverse.
//!
//! Tokens are words and punctuation marks, separated by blanks. A token that is attached to its neighbour carries a
//! [`JOINER`] on that side: `(see it)` becomes `(￭ see it ￭)`. A translation system that is trained on such tokens learns
//! the spacing of its output, quotation marks included, and [`detokenise`] only has to follow the marks. Between a Chinese
//! or Japanese character and its neighbour, no blank is the rule, and a blank is a token of its own.

use crate::{
    Language,
    language::Apostrophe,
    spans::{BLANK, INNER_BLANK, JOINER, Span, SpanClass, is_word, latin, protected_spans},
};
use rustc_hash::FxHashSet;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

/// A tokeniser of one language.
///
/// ```
/// use luthier_text::{Language, Tokeniser, detokenise};
///
/// let english = Tokeniser::new(&Language::new("en")?);
/// let line = "\"Don't use foo(), e.g. in C++ (or 3.11),\" Dr. Who said.";
/// let tokens = english.tokenise(line);
/// assert_eq!(tokens, "\"￭ Don ￭'t use foo ￭() ￭, e.g. in C++ (￭ or 3.11 ￭) ￭, ￭\" Dr. Who said ￭.");
/// assert_eq!(detokenise(&tokens), line);
/// # Ok::<(), luthier_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tokeniser {
    apostrophe: Apostrophe,
    abbreviations: FxHashSet<&'static str>,
}

/// Kind of an [`Atom`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Letters, digits and what holds them together.
    Word,
    /// Punctuation marks and symbols.
    Punctuation,
    /// A character of a script that is written without blanks.
    Character,
    /// A protected span.
    Protected(SpanClass),
}

/// A token as a part of its line, with its attachment to its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Atom {
    /// First byte in the line.
    pub(crate) start: usize,
    /// End in the line, exclusive.
    pub(crate) end: usize,
    /// Kind of the token.
    pub(crate) kind: Kind,
    /// Whether the token is marked as attached to the one before.
    pub(crate) left: bool,
    /// Whether the token is marked as attached to the one after.
    pub(crate) right: bool,
}

impl Tokeniser {
    /// Returns the tokeniser of a language.
    pub fn new(language: &Language) -> Self {
        Tokeniser { apostrophe: language.apostrophe(), abbreviations: language.abbreviations() }
    }

    /// Returns the tokens of a line, separated by blanks. The line should be normalised
    /// ([`normalise`](crate::normalise)); then `detokenise(&tokenise(line)) == line`.
    pub fn tokenise(&self, line: &str) -> String {
        let atoms = self.atoms(line);
        let mut out = String::with_capacity(line.len() + 4 * atoms.len());
        let mut previous: Option<&Atom> = None;
        for atom in &atoms {
            if let Some(p) = previous {
                separate(&mut out, p, atom);
            }
            if atom.left {
                out.push(JOINER);
            }
            push_text(&mut out, &line[atom.start..atom.end]);
            if atom.right {
                out.push(JOINER);
            }
            previous = Some(atom);
        }
        out
    }

    /// Returns the tokens of a line as its parts.
    pub(crate) fn atoms(&self, line: &str) -> Vec<Atom> {
        let mut cutter = Cutter { rules: self, line, atoms: Vec::with_capacity(line.len() / 4 + 4) };
        let mut at = 0;
        for span in protected_spans(line) {
            cutter.cut(at, span.start);
            cutter.protect(span);
            at = span.end;
        }
        cutter.cut(at, line.len());
        attach(line, &mut cutter.atoms);
        cutter.atoms
    }
}

/// Appends what stands between two tokens: a blank, or a token for a blank beside a character of a script without blanks.
pub(crate) fn separate(out: &mut String, before: &Atom, after: &Atom) {
    out.push(' ');
    if is_blank_token(before, after) {
        out.push(BLANK);
        out.push(' ');
    }
}

/// Whether the blank between two tokens is a token of its own: beside a character of a script without blanks.
pub(crate) fn is_blank_token(before: &Atom, after: &Atom) -> bool {
    let joined = before.kind == Kind::Character || after.kind == Kind::Character;
    joined && before.end < after.start
}

/// Appends the text of a token; blanks inside it are replaced.
pub(crate) fn push_text(out: &mut String, text: &str) {
    if text.contains(' ') {
        out.extend(text.chars().map(|c| if c == ' ' { INNER_BLANK } else { c }));
    } else {
        out.push_str(text);
    }
}

/// Operators that are one token.
const OPERATORS: [&str; 22] = [
    "<=>", "===", "!==", ">>>", "...", "->", "=>", "==", "!=", "<=", ">=", ":=", "+=", "-=", "*=", "/=",
    "&&", "||", "::", "()", "[]", "{}",
];

/// Cuts lines into tokens.
struct Cutter<'a> {
    rules: &'a Tokeniser,
    line: &'a str,
    atoms: Vec<Atom>,
}

impl Cutter<'_> {
    fn push(&mut self, start: usize, end: usize, kind: Kind) {
        self.atoms.push(Atom { start, end, kind, left: false, right: false });
    }

    fn protect(&mut self, span: Span) {
        self.push(span.start, span.end, Kind::Protected(span.class));
    }

    /// Cuts the part of the line from `start` to `end`, which has no protected span.
    fn cut(&mut self, start: usize, end: usize) {
        let mut at = start;
        while at < end {
            let rest = &self.line[at..end];
            if rest.starts_with(' ') {
                at += 1;
                continue;
            }
            let Some(c) = rest.chars().next() else { break };
            let (length, kind) = if latin(rest.as_bytes()) > 0 {
                (self.word(at, 0, end), Kind::Word)
            } else if is_character(c) {
                (c.len_utf8(), Kind::Character)
            } else if let Some(prefix) = self.word_prefix(at, rest, c) {
                (self.word(at, prefix, end), Kind::Word)
            } else {
                (symbol(rest, c), Kind::Punctuation)
            };
            self.push(at, at + length, kind);
            at += length;
        }
    }

    /// Returns the length of what precedes the first letter or digit of a word that begins here: `-` of options, a full
    /// stop of names such as `.profile`, an apostrophe after a word; `None` if no word begins here.
    fn word_prefix(&self, at: usize, rest: &str, c: char) -> Option<usize> {
        if is_inner(c) {
            return Some(0);
        }
        let attached = self.atoms.last().is_some_and(|a| a.end == at);
        let length = match c {
            '-' if rest.starts_with("--") => 2,
            '-' | '.' => 1,
            '\'' | '’' if self.after_letter(at) && self.rules.apostrophe == Apostrophe::Before => {
                c.len_utf8()
            }
            _ => return None,
        };
        let free = !attached
            || matches!(
                self.line[..at].chars().next_back(),
                Some('(' | '[' | '{' | '"' | '=' | '“' | '\'' | '¿' | '¡')
            );
        let clitic = matches!(c, '\'' | '’');
        let next = rest[length..].chars().next()?;
        let follows =
            if clitic { next.is_alphabetic() } else { free && is_word(next) && !is_character(next) };
        follows.then_some(length)
    }

    /// Whether a word ends here with a letter or digit.
    fn after_letter(&self, at: usize) -> bool {
        self.atoms.last().is_some_and(|a| a.kind == Kind::Word && a.end == at)
            && self.line[..at].chars().next_back().is_some_and(char::is_alphanumeric)
    }

    /// Returns the length of the word at `start`, whose first letter is `prefix` bytes further; the word ends at `end`
    /// at the latest.
    fn word(&self, start: usize, prefix: usize, end: usize) -> usize {
        let line = &self.line[..end];
        let mut at = start + prefix;
        let mut previous = ' ';
        loop {
            let length = latin(&line.as_bytes()[at..]);
            if length > 0 {
                at += length;
                previous = line[..at].chars().next_back().unwrap_or(' ');
            }
            let Some(c) = line[at..].chars().next().filter(|&c| c != ' ') else { break };
            if is_inner(c) {
                at += c.len_utf8();
                previous = c;
                continue;
            }
            let next = line[at + c.len_utf8()..].chars().next();
            let inner = next.is_some_and(is_inner);
            match c {
                '.' | '-' if inner && is_word(previous) => {}
                ',' if previous.is_ascii_digit() && next.is_some_and(|n| n.is_ascii_digit()) => {}
                '·' if inner => {}
                '\'' | '’' if next.is_some_and(char::is_alphabetic) && previous.is_alphabetic() => {
                    match self.rules.apostrophe {
                        Apostrophe::Before => break,
                        Apostrophe::After => return at + c.len_utf8() - start,
                        Apostrophe::Within => {}
                    }
                }
                _ => break,
            }
            at += c.len_utf8();
            previous = c;
        }
        let rest = &line[at..];
        if rest.is_empty() || rest.starts_with(' ') {
            return at - start;
        }
        if rest.starts_with("++") && !rest[2..].starts_with(is_word) {
            return at + 2 - start;
        }
        if rest.starts_with('#')
            && at - start == 1
            && previous.is_ascii_uppercase()
            && !rest[1..].starts_with(is_word)
        {
            return at + 1 - start;
        }
        let stop = rest.starts_with('.')
            && !rest.starts_with("..")
            && self.is_abbreviation(&line[start..at], at + 1);
        at + usize::from(stop) - start
    }

    /// Whether a full stop belongs to the word before it, which is an abbreviation; `after` is the position after the
    /// full stop. At the end of a line it does only if the word has other full stops.
    fn is_abbreviation(&self, word: &str, after: usize) -> bool {
        let mut parts = word.split('.');
        let is_dotted =
            word.contains('.') && parts.all(|p| p.chars().count() <= 2 && p.chars().all(char::is_alphabetic));
        if is_dotted {
            return true;
        }
        let at_end = !self.line[after..].chars().any(char::is_alphanumeric);
        let mut letters = word.chars();
        let is_initial = letters.next().is_some_and(char::is_uppercase) && letters.next().is_none();
        let is_listed = |word: &str| self.rules.abbreviations.contains(word);
        !at_end && (is_initial || is_listed(word) || is_listed(&word.to_lowercase()))
    }
}

/// Whether a character is part of words wherever it stands.
fn is_inner(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || c == '_';
    }
    (c.is_alphanumeric()
        || c.general_category_group() == GeneralCategoryGroup::Mark
        || matches!(c, '\u{200c}' | '\u{200d}'))
        && !is_character(c)
}

/// Whether a character belongs to a script that is written without blanks between words: Chinese and Japanese, with their
/// punctuation and full-width forms.
pub(crate) fn is_character(c: char) -> bool {
    matches!(u32::from(c),
        0x2e80..=0x303f | 0x3041..=0x30ff | 0x31f0..=0x31ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff
        | 0xff01..=0xff9f | 0xffe0..=0xffe6 | 0x20000..=0x3134f)
}

/// Length of the operator, the run of equal marks or the single mark at the beginning of `rest`.
fn symbol(rest: &str, c: char) -> usize {
    if rest.as_bytes().get(c.len_utf8()).is_none_or(|b| b.is_ascii_alphanumeric() || *b == b' ') {
        return c.len_utf8();
    }
    let first = rest.as_bytes()[0];
    let operator = OPERATORS.iter().find(|o| o.as_bytes()[0] == first && rest.starts_with(**o));
    let repeats = matches!(c, '.' | '-' | '=' | '*' | '/' | '!' | '?' | '<' | '>' | '+' | '#' | '~' | '\\');
    let run = if repeats { rest.chars().take_while(|&r| r == c).count() } else { 1 };
    operator.map_or(0, |o| o.len()).max(run * c.len_utf8())
}

/// Marks tokens that are attached to a neighbour: punctuation rather than words.
fn attach(line: &str, atoms: &mut [Atom]) {
    for i in 1..atoms.len() {
        let (before, after) = (atoms[i - 1], atoms[i]);
        let joined = before.kind == Kind::Character || after.kind == Kind::Character;
        if before.end < after.start || joined {
            continue;
        }
        let on_first = match (before.kind, after.kind) {
            (Kind::Punctuation, Kind::Punctuation) => is_opening(&line[before.start..before.end], &before),
            (Kind::Word, Kind::Word) => line[..before.end].ends_with(['\'', '’']),
            (Kind::Punctuation | Kind::Protected(_), Kind::Word)
            | (Kind::Punctuation, Kind::Protected(_)) => true,
            _ => false,
        };
        if on_first {
            atoms[i - 1].right = true;
        } else {
            atoms[i].left = true;
        }
    }
}

/// Whether a mark opens what follows it: a bracket, or a quotation mark that is not attached to the token before.
fn is_opening(mark: &str, atom: &Atom) -> bool {
    let mut chars = mark.chars();
    match (chars.next(), chars.next()) {
        (Some('(' | '[' | '{' | '¿' | '¡' | '„' | '‚'), None) => true,
        // Languages use these in different directions.
        (Some('"' | '\'' | '`' | '*' | '“' | '‘' | '«' | '»' | '‹' | '›'), _) => !atom.left,
        _ => false,
    }
}

/// Returns the line that tokens stand for: the inverse of [`Tokeniser::tokenise`] for any language. Accepts any tokens,
/// such as those of a translation.
///
/// ```
/// use luthier_text::detokenise;
///
/// assert_eq!(detokenise("(￭ das ist gut ￭) ￭, a ￭/￭ b"), "(das ist gut), a/b");
/// assert_eq!(detokenise("我 用 Python ▁ 3 。"), "我用Python 3。");
/// ```
pub fn detokenise(tokens: &str) -> String {
    let mut line = Line::default();
    for token in tokens.split_ascii_whitespace() {
        line.push(token);
    }
    line.text
}

/// Returns the text of a token and whether it is attached to its left and right neighbour.
pub(crate) fn unmarked(token: &str) -> (&str, bool, bool) {
    let (mut text, mut left, mut right) = (token, false, false);
    if let Some(rest) = text.strip_prefix(JOINER).filter(|r| !r.is_empty()) {
        (text, left) = (rest, true);
    }
    if let Some(rest) = text.strip_suffix(JOINER).filter(|r| !r.is_empty()) {
        (text, right) = (rest, true);
    }
    (text, left, right)
}

/// A line of text under construction from tokens.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// The text so far.
    pub(crate) text: String,
    /// Whether the next token is attached to the text so far.
    open: bool,
}

impl Line {
    /// Appends a token with its marks.
    pub(crate) fn push(&mut self, token: &str) {
        if token.starts_with(BLANK) && token.chars().count() == 1 {
            self.text.push(' ');
            self.open = true;
            return;
        }
        let (text, left, right) = unmarked(token);
        self.append(text, left, right);
    }

    /// Appends the text of a token that is attached as stated.
    pub(crate) fn append(&mut self, text: &str, left: bool, right: bool) {
        let mut chars = text.chars();
        let single = chars.next().is_some_and(is_character) && chars.next().is_none();
        self.begin(left || single);
        if text.contains(INNER_BLANK) {
            self.text.extend(text.chars().map(|c| if c == INNER_BLANK { ' ' } else { c }));
        } else {
            self.text.push_str(text);
        }
        self.open = right || single;
    }

    /// Appends a protected span, whose characters stand for themselves.
    pub(crate) fn append_span(&mut self, text: &str, left: bool, right: bool) {
        self.begin(left);
        self.text.push_str(text);
        self.open = right;
    }

    /// Appends a blank unless the next token is attached.
    fn begin(&mut self, attached: bool) {
        if !(self.text.is_empty() || self.open || attached) {
            self.text.push(' ');
        }
    }
}
