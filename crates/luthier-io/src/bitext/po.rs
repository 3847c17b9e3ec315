//! Reader of PO files, the catalogues of GNU gettext.
//!
//! Strings have the escapes of C: octal (`\303`) and hexadecimal ones (`\xC3`, two digits) are bytes of UTF-8,
//! `\u` and `\U` are characters. Comments, contexts (`msgctxt`) and previous messages (`#|`) are not read.

use super::{
    Parsed, encoding,
    language::{self, Direction},
};
use luthier_core::{Error, Result};

/// Returns whether a text is in PO: its first line that is neither blank nor a comment begins with a keyword and a
/// string, or its comments contain an obsolete message.
pub(super) fn is_po(text: &str) -> bool {
    let begins = |line: &str, words: &[&str]| {
        let word = words.iter().find_map(|word| line.strip_prefix(word));
        word.is_some_and(|rest| rest.trim_start().starts_with('"'))
    };
    for line in text.lines().map(str::trim) {
        if line.strip_prefix("#~").is_some_and(|rest| begins(rest.trim_start(), &["msgid", "msgctxt"])) {
            return true;
        }
        if !line.is_empty() && !line.starts_with('#') {
            return begins(line, &["msgid", "msgctxt", "domain"]);
        }
    }
    false
}

/// Reads the pairs. Fails on malformed lines, if the header declares another encoding than UTF-8, or if it declares
/// another language than those asked for.
pub(super) fn parse(file: &str, text: &str, wanted: Option<(&str, &str)>) -> Result<Parsed> {
    let mut reader = Reader {
        file,
        text,
        wanted,
        line: 0,
        direction: Direction::Forward,
        parsed: Parsed::default(),
        message: Message::default(),
    };
    for (number, line) in (1..).zip(text.lines()) {
        reader.line = number;
        reader.read_line(line.trim())?;
    }
    reader.end_message()?;
    if reader.direction == Direction::Backward {
        let parsed = &mut reader.parsed;
        std::mem::swap(&mut parsed.source_lang, &mut parsed.target_lang);
    }
    Ok(reader.parsed)
}

/// A message as far as it has been read. Strings are bytes, since escapes can split characters.
#[derive(Default)]
struct Message {
    /// Line of its first keyword.
    line: u64,
    is_fuzzy: bool,
    context: Option<Vec<u8>>,
    id: Option<Vec<u8>>,
    plural: Option<Vec<u8>>,
    /// The translations: `msgstr`, or `msgstr[0]` and so on.
    forms: Vec<Vec<u8>>,
    field: Field,
}

/// The string that continuation lines belong to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Field {
    #[default]
    None,
    Domain,
    Context,
    Id,
    Plural,
    /// The last of the translations.
    Form,
}

struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    wanted: Option<(&'a str, &'a str)>,
    line: u64,
    direction: Direction,
    parsed: Parsed,
    message: Message,
}

impl Reader<'_> {
    fn error(&self, message: impl Into<String>) -> Error {
        Error::at(self.file, self.line, message)
    }

    fn read_line(&mut self, line: &str) -> Result<()> {
        if line.is_empty() {
            return Ok(());
        }
        if let Some(obsolete) = line.strip_prefix("#~") {
            self.end_message()?;
            let id = obsolete.trim_start().strip_prefix("msgid");
            self.parsed.skipped.obsolete +=
                usize::from(id.is_some_and(|rest| rest.trim_start().starts_with('"')));
            return Ok(());
        }
        if line.starts_with('#') {
            if !self.message.forms.is_empty() || self.message.field == Field::Domain {
                self.end_message()?;
            }
            if let Some(flags) = line.strip_prefix("#,").or_else(|| line.strip_prefix("#=")) {
                self.message.is_fuzzy |= flags.split(',').any(|flag| flag.trim() == "fuzzy");
            }
            return Ok(());
        }
        if line.starts_with('"') { self.strings(line) } else { self.keyword(line) }
    }

    /// Reads a line that begins with a keyword.
    fn keyword(&mut self, line: &str) -> Result<()> {
        let end = line.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(line.len());
        let (word, mut rest) = (&line[..end], line[end..].trim_start());
        if word == "msgstr"
            && let Some(index) = rest.strip_prefix('[')
        {
            rest = self.plural_index(index)?.trim_start();
        } else if word == "msgstr" && !self.message.forms.is_empty() {
            return Err(self.error("found a second msgstr, expected msgid").hint("remove one of them"));
        }
        let field = match word {
            "domain" => Field::Domain,
            "msgctxt" => Field::Context,
            "msgid" => Field::Id,
            "msgid_plural" => Field::Plural,
            "msgstr" => Field::Form,
            _ => {
                let found: String = line.chars().take(20).collect();
                let message =
                    format!("found `{found}`, expected msgid, msgstr, a string in quotes or a comment");
                return Err(self.error(message).hint("correct the line; msgfmt -c finds such errors"));
            }
        };
        self.begin_field(field)?;
        self.strings(rest)
    }

    /// Checks `N]` of `msgstr[N]` and returns the text after it. Fails if N is not the next number.
    fn plural_index<'a>(&self, text: &'a str) -> Result<&'a str> {
        let expected = self.message.forms.len();
        let (index, rest) = text.split_once(']').unwrap_or((text, ""));
        if index.trim().parse() == Ok(expected) {
            return Ok(rest);
        }
        let found: String = index.chars().take(20).collect();
        Err(self
            .error(format!("found msgstr[{found}], expected msgstr[{expected}]"))
            .hint("number the plural forms from 0"))
    }

    /// Begins a string of the message, or the next message.
    fn begin_field(&mut self, field: Field) -> Result<()> {
        let starts = matches!(field, Field::Domain | Field::Context | Field::Id);
        if starts && (!self.message.forms.is_empty() || self.message.field == Field::Domain) {
            self.end_message()?;
        }
        let (line, message) = (self.line, &mut self.message);
        if message.field == Field::None {
            message.line = line;
        }
        let slot = match field {
            Field::Context => Some(&mut message.context),
            Field::Id => Some(&mut message.id),
            Field::Plural => Some(&mut message.plural),
            Field::None | Field::Domain | Field::Form => None,
        };
        if slot.is_some_and(|slot| slot.replace(Vec::new()).is_some()) {
            return Err(self
                .error("a message has two strings of the same kind")
                .hint("add the missing msgstr"));
        }
        if field == Field::Form {
            message.forms.push(Vec::new());
        }
        message.field = field;
        Ok(())
    }

    /// Reads the strings that fill the rest of a line.
    fn strings(&mut self, line: &str) -> Result<()> {
        let mut value = Vec::new();
        let mut rest = line;
        loop {
            let Some(string) = rest.strip_prefix('"') else {
                let found: String = rest.chars().take(20).collect();
                let message = format!("found `{found}`, expected a string in quotes");
                return Err(self.error(message).hint("correct the line"));
            };
            rest = self.unescape(string, &mut value)?.trim_start();
            if rest.is_empty() {
                break;
            }
        }
        let message = &mut self.message;
        let slot = match message.field {
            Field::Context => message.context.as_mut(),
            Field::Id => message.id.as_mut(),
            Field::Plural => message.plural.as_mut(),
            Field::Form => message.forms.last_mut(),
            Field::Domain => return Ok(()),
            Field::None => None,
        };
        let Some(slot) = slot else {
            return Err(self.error("found a string, expected a keyword such as msgid before it"));
        };
        slot.extend_from_slice(&value);
        Ok(())
    }

    /// Appends a string without its escapes to `value`; returns the text after its closing quotation mark.
    fn unescape<'a>(&self, string: &'a str, value: &mut Vec<u8>) -> Result<&'a str> {
        let mut rest = string;
        loop {
            let Some(end) = rest.find(['"', '\\']) else {
                return Err(self.error("a string is not closed").hint("end it with a quotation mark"));
            };
            value.extend_from_slice(&rest.as_bytes()[..end]);
            let after = &rest[end + 1..];
            if rest.as_bytes()[end] == b'"' {
                return Ok(after);
            }
            rest = escape(after, value).ok_or_else(|| {
                let found: String = after.chars().take(1).collect();
                self.error(format!("`\\{found}` is not an escape of C"))
                    .hint("write \\\\ for the character \\")
            })?;
        }
    }

    /// Adds the message that was read, if any, and begins another. Fails, at its first line, if it is incomplete.
    fn end_message(&mut self) -> Result<()> {
        let message = std::mem::take(&mut self.message);
        if matches!(message.field, Field::None | Field::Domain) {
            return Ok(());
        }
        let current = std::mem::replace(&mut self.line, message.line);
        let added = self.add(message);
        self.line = current;
        added
    }

    /// Adds a message, or reads the header. Fails if it is incomplete.
    fn add(&mut self, message: Message) -> Result<()> {
        let has_context = message.context.is_some();
        let Some(id) = message.id else {
            return Err(self.error("a message has no msgid").hint("add it, or remove the message"));
        };
        if message.forms.is_empty() {
            return Err(self.error("a message has no msgstr").hint("add it, or remove the message"));
        }
        let id = self.utf8(id)?;
        if id.is_empty() && !has_context {
            let header = self.utf8(message.forms.concat())?;
            return self.header(&header);
        }
        if message.is_fuzzy {
            self.parsed.skipped.fuzzy += 1;
            return Ok(());
        }
        let plural = message.plural.map(|plural| self.utf8(plural)).transpose()?;
        let mut is_complete = true;
        for (n, form) in message.forms.into_iter().enumerate() {
            let form = self.utf8(form)?;
            let id = if n == 0 { &id } else { plural.as_ref().unwrap_or(&id) };
            let (source, target) = self.direction.order(id, &form);
            is_complete &= self.parsed.push(source, target);
        }
        self.parsed.skipped.untranslated += usize::from(!is_complete);
        Ok(())
    }

    /// Returns a string as text. Fails if its escapes are not UTF-8.
    fn utf8(&self, bytes: Vec<u8>) -> Result<String> {
        String::from_utf8(bytes).map_err(|_| {
            self.error("the message has escapes that are not UTF-8").hint("write the characters themselves")
        })
    }

    /// Checks encoding and languages that the header declares. Without a declared source language, messages are taken to be
    /// in the language asked for; to read the file in the reverse direction they must be in English, as is usual.
    fn header(&mut self, header: &str) -> Result<()> {
        let value = |key: &str| {
            let mut fields = header.lines().filter_map(|line| line.split_once(':'));
            let found = fields.find(|(name, _)| name.trim().eq_ignore_ascii_case(key))?.1.trim();
            Some(found).filter(|value| !value.is_empty())
        };
        let content = value("Content-Type").and_then(|content| content.split_once("charset="));
        if let Some((_, charset)) = content {
            let hint = "convert it with msgconv -t UTF-8";
            encoding::check(self.file, self.line, self.text, charset.trim(), hint)?;
        }
        let (source, target) = (value("X-Source-Language"), value("Language"));
        let mut direction = Direction::of(self.wanted, source, target);
        let to_english = || self.wanted.is_some_and(|(_, to)| language::primary(to) == "en");
        if direction == Direction::Backward && source.is_none() && !to_english() {
            direction = Direction::Other;
        }
        if let (Direction::Other, Some((from, to))) = (direction, self.wanted) {
            let found = match (source, target) {
                (Some(source), Some(target)) => format!("{source} to {target}"),
                (None, Some(one)) | (Some(one), None) => one.to_owned(),
                (None, None) => String::new(),
            };
            let message = format!("the header declares the language {found}, expected {from} to {to}");
            return Err(self.error(message).hint("check the languages, or correct the header"));
        }
        self.direction = direction;
        self.parsed.source_lang = source.map(str::to_owned);
        self.parsed.target_lang = target.map(str::to_owned);
        Ok(())
    }
}

/// Decodes the escape at the beginning of a text, after its backslash, and returns the text after it; `None` if it is
/// not an escape.
fn escape<'a>(text: &'a str, value: &mut Vec<u8>) -> Option<&'a str> {
    let bytes = text.as_bytes();
    // Returns the number of up to `most` digits, and the text after them.
    let number = |start: usize, most: usize, radix: u32| {
        let is_digit = |b: &&u8| (**b as char).is_digit(radix);
        let count = bytes[start..].iter().take(most).take_while(is_digit).count();
        let value = u32::from_str_radix(&text[start..start + count], radix).ok()?;
        Some((value, &text[start + count..]))
    };
    let plain = match bytes.first()? {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'v' => 0x0b,
        c @ (b'\\' | b'"' | b'\'' | b'?') => *c,
        b'0'..=b'7' => {
            let (byte, rest) = number(0, 3, 8)?;
            value.push(u8::try_from(byte).ok()?);
            return Some(rest);
        }
        b'x' => {
            let (byte, rest) = number(1, 2, 16)?;
            value.push(u8::try_from(byte).ok()?);
            return Some(rest);
        }
        c @ (b'u' | b'U') => {
            let (code, rest) = number(1, if *c == b'u' { 4 } else { 8 }, 16)?;
            value.extend_from_slice(char::from_u32(code)?.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(rest);
        }
        _ => return None,
    };
    value.push(plain);
    Some(&text[1..])
}
