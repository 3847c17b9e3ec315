//! Unicode normalisation and repair of a line of text.

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// Returns a line in Unicode's composed form (NFC), with white space folded to single blanks and ends trimmed. Control
/// and invisible characters (byte order marks, zero-width spaces, soft hyphens) are removed, and UTF-8 that was once
/// read as Windows-1252 (`Ã©` for `é`) is repaired. Joiners, which some scripts need, are kept.
///
/// ```
/// use luthier_text::normalise;
///
/// assert_eq!(normalise("\u{feff} a\u{a0}\u{200b}b\t e\u{301} "), "a b é");
/// assert_eq!(normalise("cafÃ© â€™ naïve Ã"), "café ’ naïve Ã");
/// ```
pub fn normalise(line: &str) -> String {
    if is_normal(line.as_bytes()) {
        return line.to_owned();
    }
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        if c.is_whitespace() {
            if !out.is_empty() && !out.ends_with(' ') {
                out.push(' ');
            }
        } else if !is_invisible(c) {
            out.push(c);
        }
    }
    out.truncate(out.trim_end_matches(' ').len());
    if out.is_ascii() {
        return out;
    }
    if let Some(repaired) = repaired(&out) {
        out = repaired;
    }
    if is_nfc_quick(out.chars()) == IsNormalized::Yes { out } else { out.nfc().collect() }
}

/// Whether a line certainly is as [`normalise`] leaves it: words of printable ASCII, of composed Latin letters and of common
/// punctuation, divided by single blanks.
fn is_normal(line: &[u8]) -> bool {
    let (mut at, mut previous) = (0, b' ');
    while at < line.len() {
        at += match line[at..] {
            [b'!'..=b'~', ..] => 1,
            [b' ', ..] if previous != b' ' => 1,
            // Â, Ã, Ä, Å and â may be the beginning of text to repair.
            [0xc3, 0x82..=0x85 | 0xa2, ..] => return false,
            [0xc3..=0xc8, _, ..] | [0xc2, 0xa1 | 0xab | 0xbb | 0xbf, ..] => 2,
            [0xe2, 0x80, 0x93 | 0x94 | 0x98 | 0x99 | 0x9c | 0x9d | 0xa6, ..] => 3,
            _ => return false,
        };
        previous = line[at - 1];
    }
    previous != b' ' || line.is_empty()
}

/// Whether a character has no glyph and no effect that a translation would need.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{fffe}')
}

/// Returns the text with sequences of characters replaced that are UTF-8 read as Windows-1252; `None` if there are none.
fn repaired(text: &str) -> Option<String> {
    let starts = |c: char| matches!(c, 'Ã' | 'Â' | 'â' | 'Ä' | 'Å');
    if !text.contains(starts) {
        return None;
    }
    let chars: Vec<char> = text.chars().collect();
    let (mut out, mut at, mut changed) = (String::with_capacity(text.len()), 0, false);
    while at < chars.len() {
        let found = decoded(&chars[at..]);
        let (c, length) = found.unwrap_or((chars[at], 1));
        out.push(c);
        at += length;
        changed |= found.is_some();
    }
    changed.then_some(out)
}

/// Decodes a character of two or three bytes, each read as one character of Windows-1252. Returns the character and
/// the number of characters that it was read as. Only sequences that hardly occur in text are decoded.
fn decoded(chars: &[char]) -> Option<(char, usize)> {
    let length = match chars.first()? {
        'Ã' | 'Â' | 'Ä' | 'Å' => 2,
        'â' => 3,
        _ => return None,
    };
    let bytes: Option<Vec<u8>> = chars.get(..length)?.iter().map(|&c| windows_1252(c)).collect();
    let bytes = bytes?;
    let c = std::str::from_utf8(&bytes).ok()?.chars().next()?;
    (!c.is_control()).then_some((c, length))
}

/// Returns the byte of a character in Windows-1252; `None` if it has none.
fn windows_1252(c: char) -> Option<u8> {
    const HIGH: &str = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8d}Ž\u{8f}\u{90}‘’“”•–—˜™š›œ\u{9d}žŸ";
    if let Some(at) = HIGH.chars().position(|h| h == c) {
        return Some(0x80 + at as u8);
    }
    u8::try_from(c as u32).ok()
}
