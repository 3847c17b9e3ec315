//! Tokenisers, equal to sacreBLEU's.

use crate::{Error, spec::choose};
use std::borrow::Cow;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

/// Tokeniser that BLEU applies to hypotheses and references.
///
/// ```
/// use luthier_metric::Tokenizer;
/// assert_eq!(Tokenizer::parse("13a")?, Tokenizer::V13a);
/// assert!(Tokenizer::parse("13b").unwrap_err().to_string().contains("did you mean 13a?"));
/// # Ok::<(), luthier_metric::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Tokenizer {
    /// Split at white space only, for tokenised text.
    #[default]
    None,
    /// Tokeniser of mteval-v13a, the standard for published scores.
    #[cfg_attr(feature = "serde", serde(rename = "13a"))]
    #[cfg_attr(feature = "clap", value(name = "13a"))]
    V13a,
    /// International tokeniser of mteval-v14: separates punctuation and symbols by Unicode category.
    Intl,
    /// One token per Chinese character, other text as in mteval-v13a.
    Zh,
    /// One token per character.
    Char,
}

impl Tokenizer {
    /// All tokenisers, the most common first.
    pub const ALL: &'static [Tokenizer] =
        &[Tokenizer::V13a, Tokenizer::Intl, Tokenizer::Zh, Tokenizer::Char, Tokenizer::None];

    /// Returns the name of the tokeniser in settings and signatures, such as `13a`.
    pub fn name(&self) -> &'static str {
        match self {
            Tokenizer::None => "none",
            Tokenizer::V13a => "13a",
            Tokenizer::Intl => "intl",
            Tokenizer::Zh => "zh",
            Tokenizer::Char => "char",
        }
    }

    /// Returns the tokeniser with a name. Fails if there is none; the message suggests the most similar name.
    pub fn parse(name: &str) -> Result<Self, Error> {
        choose("tokenizer", name, Self::ALL, Self::name)
    }

    /// Writes the text, with spaces between tokens, to `scratch.text`.
    pub(crate) fn run(self, text: &str, lowercase: bool, scratch: &mut TokenScratch) {
        scratch.text.clear();
        let text = text.trim_end_matches(is_space);
        scratch.text.push_str(&lowered(text, lowercase));
        match self {
            Tokenizer::None => {}
            Tokenizer::V13a => v13a(scratch),
            Tokenizer::Intl => international(scratch),
            Tokenizer::Zh => chinese(scratch),
            Tokenizer::Char => characters(scratch),
        }
    }
}

/// Buffers of the tokenisers.
#[derive(Debug, Clone, Default)]
pub(crate) struct TokenScratch {
    /// Tokenised text of the last run.
    pub(crate) text: String,
    cut: Vec<u8>,
    bytes: [Vec<u8>; 2],
    chars: [Vec<char>; 2],
}

impl TokenScratch {
    /// Iterates over the tokens of the last run.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = &str> {
        words(&self.text)
    }
}

/// Returns whether a character is white space for Python's `split`: Unicode's white space and the four ASCII
/// separators.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

/// Returns the text, lower-cased if `lowercase`. The whole text is converted at once because of the Greek
/// final sigma.
pub(crate) fn lowered(text: &str, lowercase: bool) -> Cow<'_, str> {
    if lowercase { Cow::Owned(text.to_lowercase()) } else { Cow::Borrowed(text) }
}

/// Iterates over the words of a text, which are separated by white space.
pub(crate) fn words(text: &str) -> Words<'_> {
    Words { text, at: 0 }
}

/// Iterator over the words of a text; reads bytes and decodes only characters that are not ASCII.
pub(crate) struct Words<'a> {
    text: &'a str,
    /// Position in the text, in bytes.
    at: usize,
}

impl Words<'_> {
    /// Returns the length of the white-space character at position `at`, in bytes; 0 if there is none.
    fn space(&self, at: usize) -> usize {
        match self.text.as_bytes()[at] {
            b' ' | b'\t'..=b'\r' | 0x1c..=0x1f => 1,
            0..0x80 => 0,
            _ if !self.text.is_char_boundary(at) => 0,
            _ => self.text[at..].chars().next().filter(|&c| is_space(c)).map_or(0, char::len_utf8),
        }
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let n = self.text.len();
        while self.at < n {
            match self.space(self.at) {
                0 => break,
                length => self.at += length,
            }
        }
        let start = self.at;
        while self.at < n && self.space(self.at) == 0 {
            self.at += 1;
        }
        (start < self.at).then(|| &self.text[start..self.at])
    }
}

/// Entities that mteval decodes, in its order: `&amp;lt;` becomes `<`.
const ENTITIES: [(&str, &str); 4] = [("&quot;", "\""), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">")];

/// Decodes the entities of [`ENTITIES`].
pub(crate) fn undo_entities(text: &mut String) {
    if text.contains('&') {
        for (entity, plain) in ENTITIES {
            if text.contains(entity) {
                *text = text.replace(entity, plain);
            }
        }
    }
}

/// Tokenises as mteval-v13a does.
fn v13a(scratch: &mut TokenScratch) {
    if scratch.text.contains("<skipped>") {
        scratch.text = scratch.text.replace("<skipped>", "");
    }
    undo_entities(&mut scratch.text);
    mteval(scratch, true);
}

/// Whether the tokeniser of mteval can change a byte: printable ASCII other than letters, digits and the
/// apostrophe.
const SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let mut c = b' ';
    while c < 0x7f {
        special[c as usize] = !(c.is_ascii_alphanumeric() || c == b'\'');
        c += 1;
    }
    special
};

/// Applies the four regular expressions of mteval. The first puts spaces around every space, so the parts
/// between two spaces can be tokenised separately, and most of them do not change. If `padded`, the text is
/// treated as if a space preceded and followed it.
fn mteval(scratch: &mut TokenScratch, padded: bool) {
    let TokenScratch { text, cut: out, bytes, .. } = scratch;
    out.clear();
    let last = text.len();
    let mut start = 0;
    for part in text.split(' ') {
        let end = start + part.len();
        if part.bytes().any(|c| SPECIAL[c as usize]) {
            mteval_part(part.as_bytes(), padded || start > 0, padded || end < last, bytes, out);
        } else {
            out.extend_from_slice(part.as_bytes());
        }
        out.push(b' ');
        start = end + 1;
    }
    text.clear();
    match std::str::from_utf8(out) {
        Ok(cut) => text.push_str(cut),
        // Only ASCII is inserted, and only between whole characters.
        Err(_) => unreachable!("tokenising broke a character"),
    }
}

/// Appends the tokenised `part` to `out`; `before` and `after` are whether a space precedes and follows it.
/// Works on bytes, because the patterns match only ASCII, and the bytes of other characters behave like any
/// non-digit.
fn mteval_part(part: &[u8], before: bool, after: bool, bytes: &mut [Vec<u8>; 2], out: &mut Vec<u8>) {
    let [from, to] = bytes;
    from.clear();
    from.extend(before.then_some(b' '));
    for &c in part {
        if matches!(c, b'{'..=b'~' | b'['..=b'`' | b' '..=b'&' | b'('..=b'+' | b':'..=b'@' | b'/') {
            from.extend_from_slice(&[b' ', c, b' ']);
        } else {
            from.push(c);
        }
    }
    from.extend(after.then_some(b' '));
    let point = |c: u8| c == b'.' || c == b',';
    pairs(from, to, |a, b| !a.is_ascii_digit() && point(b), |a, b| [a, b' ', b, b' ']);
    pairs(to, from, |a, b| point(a) && !b.is_ascii_digit(), |a, b| [b' ', a, b' ', b]);
    pairs(from, to, |a, b| a.is_ascii_digit() && b == b'-', |a, b| [a, b' ', b, b' ']);
    out.extend_from_slice(to);
}

/// Tokenises as mteval-v14 does for international text: separates punctuation, except next to a number, and
/// symbols.
fn international(scratch: &mut TokenScratch) {
    let TokenScratch { text, chars: [from, to], .. } = scratch;
    from.clear();
    from.extend(text.chars());
    pairs(from, to, |a, b| !is(a, NUMBER) && is(b, PUNCTUATION), |a, b| [a, ' ', b, ' ']);
    pairs(to, from, |a, b| is(a, PUNCTUATION) && !is(b, NUMBER), |a, b| [' ', a, ' ', b]);
    text.clear();
    for &c in from.iter() {
        if is(c, SYMBOL) {
            text.extend([' ', c, ' ']);
        } else {
            text.push(c);
        }
    }
}

const NUMBER: GeneralCategoryGroup = GeneralCategoryGroup::Number;
const PUNCTUATION: GeneralCategoryGroup = GeneralCategoryGroup::Punctuation;
const SYMBOL: GeneralCategoryGroup = GeneralCategoryGroup::Symbol;

/// Returns whether a character is in a group of Unicode categories.
fn is(c: char, group: GeneralCategoryGroup) -> bool {
    if c.is_ascii_alphabetic() || c == ' ' {
        return false; // fast path for most characters
    }
    c.general_category_group() == group
}

/// Makes every Chinese character a token, and tokenises other text as mteval does.
fn chinese(scratch: &mut TokenScratch) {
    let mut out = String::with_capacity(scratch.text.len() * 2);
    for c in scratch.text.trim_matches(is_space).chars() {
        if is_chinese(c) {
            out.extend([' ', c, ' ']);
        } else {
            out.push(c);
        }
    }
    scratch.text = out;
    mteval(scratch, false);
}

/// Returns whether a character is in sacreBLEU's ranges of Chinese characters. Two of its ranges, meant for
/// characters beyond U+FFFF, are written there with four digits and therefore cover U+2001 to U+2A6D and
/// U+2F81 to U+2FA1; this function does the same.
fn is_chinese(c: char) -> bool {
    matches!(c,
        '\u{2001}'..='\u{2a6d}'
        | '\u{2e80}'..='\u{2eff}'
        | '\u{2f00}'..='\u{2fdf}'
        | '\u{2ff0}'..='\u{303f}'
        | '\u{3100}'..='\u{312f}'
        | '\u{31a0}'..='\u{31bf}'
        | '\u{31c0}'..='\u{31ef}'
        | '\u{3200}'..='\u{33ff}'
        | '\u{3400}'..='\u{4db5}'
        | '\u{4e00}'..='\u{9fbb}'
        | '\u{f900}'..='\u{fa2d}'
        | '\u{fa30}'..='\u{fa6a}'
        | '\u{fa70}'..='\u{fad9}'
        | '\u{fe10}'..='\u{fe1f}'
        | '\u{fe30}'..='\u{fe4f}'
        | '\u{ff00}'..='\u{ffef}')
}

/// Makes every character a token.
fn characters(scratch: &mut TokenScratch) {
    let mut out = String::with_capacity(scratch.text.len() * 2);
    for c in scratch.text.chars() {
        out.extend([c, ' ']);
    }
    scratch.text = out;
}

/// Replaces non-overlapping pairs from left to right, as the substitution of a regular expression for two
/// characters does.
pub(crate) fn pairs<T: Copy>(
    from: &[T],
    to: &mut Vec<T>,
    matches: impl Fn(T, T) -> bool,
    put: impl Fn(T, T) -> [T; 4],
) {
    to.clear();
    let mut i = 0;
    while i < from.len() {
        if i + 1 < from.len() && matches(from[i], from[i + 1]) {
            to.extend_from_slice(&put(from[i], from[i + 1]));
            i += 2;
        } else {
            to.push(from[i]);
            i += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(t: Tokenizer, text: &str) -> String {
        let mut s = TokenScratch::default();
        t.run(text, false, &mut s);
        s.tokens().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn mteval_13a() {
        let t = |s| cut(Tokenizer::V13a, s);
        assert_eq!(t("Hello, world!"), "Hello , world !");
        assert_eq!(t("1,000.5 and 3-4, U.S.A."), "1,000.5 and 3 - 4 , U . S . A .");
        assert_eq!(t("a &quot;b&quot; &amp;lt; it's €5...x"), "a \" b \" < it's €5 . . . x");
    }

    #[test]
    fn others() {
        assert_eq!(cut(Tokenizer::Intl, "“Größe” 1,5 €3 in 1999."), "“ Größe ” 1,5 € 3 in 1999.");
        assert_eq!(cut(Tokenizer::Zh, "我有2.5个apple."), "我 有 2.5 个 apple .");
        assert_eq!(cut(Tokenizer::Char, "ab c"), "a b c");
        assert_eq!(cut(Tokenizer::None, " a\u{a0}b\u{1c}c\u{3000}\td "), "a b c d");
    }
}
