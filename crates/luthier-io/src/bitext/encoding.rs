//! Character encodings of bilingual files: UTF-8 and UTF-16 are decoded, others are rejected with the name that
//! the file declares.

use luthier_core::{Error, Result};

/// How far from the beginning a declaration of the encoding is searched.
const HEAD: usize = 4096;

/// Decodes a file. UTF-16 is recognised by its byte order mark, or by `<` as its first character. Fails if the
/// bytes are neither UTF-8 nor UTF-16, naming line and byte.
pub(super) fn decode(file: &str, bytes: Vec<u8>) -> Result<String> {
    match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => utf16(file, rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(file, rest, u16::from_be_bytes),
        [b'<', 0, ..] => utf16(file, &bytes, u16::from_le_bytes),
        [0, b'<', ..] => utf16(file, &bytes, u16::from_be_bytes),
        [0xde, 0x12, 0x04, 0x95, ..] | [0x95, 0x04, 0x12, 0xde, ..] => {
            Err(Error::in_file(file, "is a compiled catalogue of gettext (MO), expected PO")
                .hint("give the PO file, or convert it with msgunfmt"))
        }
        _ => String::from_utf8(bytes).map_err(|e| {
            let (at, bytes) = (e.utf8_error().valid_up_to(), e.as_bytes());
            let line_start = bytes[..at].iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
            let line = line_at(bytes, at);
            let message =
                format!("byte {} of the line (0x{:02x}) is not UTF-8", at - line_start + 1, bytes[at]);
            Error::at(file, line, message).hint(match declared(&bytes[..bytes.len().min(HEAD)]) {
                Some(name) if !is_utf8(&name) => {
                    format!("the file declares {name}: convert it with iconv -f {name} -t UTF-8")
                }
                _ => "convert the file to UTF-8, with iconv for instance".to_owned(),
            })
        }),
    }
}

/// Returns the number of the line, from 1, that the byte at an offset belongs to.
pub(super) fn line_at(bytes: &[u8], at: usize) -> u64 {
    memchr::memchr_iter(b'\n', &bytes[..at.min(bytes.len())]).count() as u64 + 1
}

/// Decodes UTF-16. Fails at an unpaired surrogate or an odd byte at the end.
fn utf16(file: &str, bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String> {
    let (units, rest) = bytes.as_chunks::<2>();
    let mut text = String::with_capacity(bytes.len());
    for c in char::decode_utf16(units.iter().map(|pair| unit(*pair))) {
        match c {
            Ok(c) => text.push(c),
            Err(e) => {
                let message = format!("0x{:04x} is not a character of UTF-16", e.unpaired_surrogate());
                return Err(Error::at(file, line_at(text.as_bytes(), text.len()), message)
                    .hint("save the file as UTF-8"));
            }
        }
    }
    if rest.is_empty() {
        return Ok(text);
    }
    let message = "the text in UTF-16 ends within a character; the file is truncated";
    Err(Error::at(file, line_at(text.as_bytes(), text.len()), message).hint("copy or create the file again"))
}

/// Returns the encoding that the first bytes of XML or PO declare.
fn declared(head: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(head);
    let start = ["encoding=", "charset="].iter().find_map(|key| Some(head.find(key)? + key.len()))?;
    let value = head[start..].trim_start_matches(['"', '\'']);
    let end = value.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.:".contains(c)).unwrap_or(value.len());
    Some(value[..end].to_owned()).filter(|name| !name.is_empty())
}

/// Returns whether a declared encoding is UTF-8.
fn is_utf8(name: &str) -> bool {
    matches!(name.to_ascii_lowercase().as_str(), "utf-8" | "utf8")
}

/// Fails if a text that was decoded as UTF-8 or UTF-16 declares an encoding in which it would mean something else.
/// `hint` says how to convert the file.
pub(super) fn check(file: &str, line: u64, text: &str, declared: &str, hint: &str) -> Result<()> {
    let name = declared.to_ascii_lowercase();
    let is_unicode = is_utf8(&name) || name.starts_with("utf-16") || name == "ucs-2";
    // CHARSET is the placeholder of templates. These encodings agree with UTF-8 on ASCII, unlike ISO-2022.
    let placeholder = matches!(name.as_str(), "charset" | "ascii" | "us-ascii" | "ansi_x3.4-1968");
    let extends_ascii =
        ["iso-8859", "iso8859", "iso_8859", "windows-", "cp125", "latin", "koi8", "euc", "gb"];
    let same = text.is_ascii() && extends_ascii.iter().any(|prefix| name.starts_with(prefix));
    if is_unicode || placeholder || same {
        return Ok(());
    }
    Err(Error::at(file, line, format!("the file declares the encoding {declared}, expected UTF-8"))
        .hint(hint))
}
