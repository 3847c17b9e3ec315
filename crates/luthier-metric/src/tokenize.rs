//! Tokenisers, equal to sacreBLEU's.

use crate::{SpecError, spec::choose};

/// How text is cut into words before they are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tokenizer {
    /// At white space only: the text is tokenised already.
    #[default]
    None,
    /// mteval-v13a, the usual one for published scores.
    V13a,
}

impl Tokenizer {
    /// All of them.
    pub const ALL: &'static [Tokenizer] = &[Tokenizer::None, Tokenizer::V13a];

    /// Its name in settings and signatures.
    pub fn name(&self) -> &'static str {
        match self {
            Tokenizer::None => "none",
            Tokenizer::V13a => "13a",
        }
    }

    /// Finds one by its name.
    pub fn parse(name: &str) -> Result<Self, SpecError> {
        choose("tokenizer", name, Self::ALL, Self::name)
    }

    /// Writes the text, with blanks between tokens, to `scratch.text`.
    pub(crate) fn run(self, text: &str, lowercase: bool, scratch: &mut TokenScratch) {
        scratch.text.clear();
        if lowercase {
            // Character by character would miss the final sigma.
            scratch.text.push_str(&text.to_lowercase());
        } else {
            scratch.text.push_str(text);
        }
        match self {
            Tokenizer::None => {}
            Tokenizer::V13a => v13a(scratch),
        }
    }
}

/// Buffers of the tokenisers.
#[derive(Debug, Clone, Default)]
pub(crate) struct TokenScratch {
    pub(crate) text: String,
    from: Vec<u8>,
    to: Vec<u8>,
}

impl TokenScratch {
    /// The tokens of the last run.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = &str> {
        self.text.split(is_space).filter(|t| !t.is_empty())
    }
}

/// White space as Python's `split` sees it: Unicode's, and the four ASCII separators.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

/// The entities that mteval undoes, in its order: `&amp;lt;` becomes `<`.
const ENTITIES: [(&str, &str); 4] = [("&quot;", "\""), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">")];

/// Four substitutions one after the other, each over bytes: the patterns only ever look at ASCII, and a byte
/// of a longer character behaves as any other non-digit.
fn v13a(scratch: &mut TokenScratch) {
    if scratch.text.contains("<skipped>") {
        scratch.text = scratch.text.replace("<skipped>", "");
    }
    if scratch.text.contains('&') {
        for (entity, plain) in ENTITIES {
            if scratch.text.contains(entity) {
                scratch.text = scratch.text.replace(entity, plain);
            }
        }
    }
    let TokenScratch { text, from, to } = scratch;
    from.clear();
    from.push(b' ');
    from.extend_from_slice(text.as_bytes());
    from.push(b' ');

    to.clear();
    for &c in from.iter() {
        if matches!(c, b'{'..=b'~' | b'['..=b'`' | b' '..=b'&' | b'('..=b'+' | b':'..=b'@' | b'/') {
            to.extend_from_slice(&[b' ', c, b' ']);
        } else {
            to.push(c);
        }
    }
    let point = |c: u8| c == b'.' || c == b',';
    pairs(to, from, |a, b| !a.is_ascii_digit() && point(b), |a, b| [a, b' ', b, b' ']);
    pairs(from, to, |a, b| point(a) && !b.is_ascii_digit(), |a, b| [b' ', a, b' ', b]);
    pairs(to, from, |a, b| a.is_ascii_digit() && b == b'-', |a, b| [a, b' ', b, b' ']);

    text.clear();
    // Only ASCII was put between whole characters, so this never replaces anything.
    text.push_str(&String::from_utf8_lossy(from));
}

/// Replaces non-overlapping pairs from left to right, as a regular expression of two characters does.
fn pairs(from: &[u8], to: &mut Vec<u8>, matches: impl Fn(u8, u8) -> bool, put: impl Fn(u8, u8) -> [u8; 4]) {
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
    fn white_space_is_pythons() {
        assert_eq!(cut(Tokenizer::None, " a\u{a0}b\u{1c}c\u{3000}\td "), "a b c d");
    }
}
