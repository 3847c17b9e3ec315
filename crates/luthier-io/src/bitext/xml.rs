//! XML as a sequence of elements and texts, with errors that name file and line.
//!
//! No document type is read and no entity is expanded beyond the five of XML and character references, so that
//! a small file cannot become a large one.

use super::encoding;
use luthier_core::{Error, Result};
use quick_xml::{
    Reader, XmlVersion,
    errors::IllFormedError,
    escape::resolve_predefined_entity,
    events::{BytesStart, Event},
};
use std::borrow::Cow;

/// What to do about XML that ends too early.
const TRUNCATED: &str = "the file may be truncated: copy or create it again";

/// A part of a document.
pub(super) enum Node<'a> {
    /// A start tag. An empty element is followed by its end.
    Open(Element<'a>),
    /// The end of the element that was opened last, with its name as in [`Element::name`].
    Close(&'a str),
    /// A piece of text, with references resolved.
    Text(Cow<'a, str>),
    /// The end of the document.
    End,
}

/// A start tag.
pub(super) struct Element<'a> {
    /// Name without prefix if the element is of the root's namespace, with prefix otherwise.
    pub(super) name: &'a str,
    start: BytesStart<'a>,
    file: &'a str,
    line: u64,
}

impl Element<'_> {
    /// Returns whether the element has another namespace prefix than the root.
    pub(super) fn is_foreign(&self) -> bool {
        self.name.contains(':')
    }

    /// Returns the value of an attribute, such as `xml:lang`. Fails if the attributes are malformed.
    pub(super) fn attribute(&self, name: &str) -> Result<Option<String>> {
        // Without a search for duplicates, which takes quadratic time.
        for attribute in self.start.attributes().with_checks(false) {
            let attribute = attribute.map_err(|e| {
                self.error(format!("<{}> has malformed attributes ({e})", self.name)).hint("correct the line")
            })?;
            if attribute.key.as_ref() == name {
                let value = attribute.normalized_value(XmlVersion::Implicit1_0).map_err(|_| {
                    let what = "a reference to no character or to an entity that is not one of XML's five";
                    self.error(format!("{name} of <{}> has {what}", self.name))
                        .hint("write the character itself")
                })?;
                return Ok(Some(value.into_owned()));
            }
        }
        Ok(None)
    }

    /// Returns the value of the first of several attributes that the element has.
    pub(super) fn any(&self, names: &[&str]) -> Result<Option<String>> {
        for name in names {
            if let Some(value) = self.attribute(name)? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// Builds an error at the element.
    pub(super) fn error(&self, message: impl Into<String>) -> Error {
        Error::at(self.file, self.line, message)
    }
}

/// Reader of a document.
pub(super) struct Xml<'a> {
    file: &'a str,
    text: &'a str,
    reader: Reader<&'a [u8]>,
    /// Names of the open elements, with the lines they begin at.
    open: Vec<(&'a str, u64)>,
    /// Namespace prefix of the root, with its colon; may be empty. `None` before the root.
    prefix: Option<&'a str>,
    /// Position up to which line breaks have been counted, and the line there.
    counted: (usize, u64),
}

/// Returns the name of the root element without prefix, or `None` if the text is not XML. Fails if the XML before
/// the root is malformed.
pub(super) fn root<'a>(file: &'a str, text: &'a str) -> Result<Option<&'a str>> {
    let begin = text.trim_start();
    if !begin.starts_with('<') {
        return Ok(None);
    }
    let name = local(name_at(begin, 0));
    // A line of TSV can begin with a tag.
    let first = begin.lines().next().unwrap_or_default();
    if !begin.starts_with("<?") && !begin.starts_with("<!") && !matches!(name, "tmx" | "xliff") {
        return Ok(if first.contains('\t') || name.is_empty() { None } else { Some(name) });
    }
    let mut xml = Xml::new(file, text);
    loop {
        match xml.next()? {
            Node::Open(element) => return Ok(Some(local(element.name))),
            Node::End => {
                return Err(Error::in_file(file, "is XML without a root element, expected <tmx> or <xliff>")
                    .hint(TRUNCATED));
            }
            Node::Text(_) | Node::Close(_) => {}
        }
    }
}

/// Returns a name without its namespace prefix.
fn local(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or(name)
}

/// Returns the name of the tag that begins at a position.
fn name_at(text: &str, at: usize) -> &str {
    let name = text.get(at..).unwrap_or_default().trim_start_matches('<');
    &name[..name.find(|c: char| c.is_whitespace() || matches!(c, '/' | '>' | '<')).unwrap_or(name.len())]
}

impl<'a> Xml<'a> {
    /// Returns a reader at the beginning of a document.
    pub(super) fn new(file: &'a str, text: &'a str) -> Self {
        let mut reader = Reader::from_str(text);
        reader.config_mut().expand_empty_elements = true;
        Xml { file, text, reader, open: Vec::new(), prefix: None, counted: (0, 1) }
    }

    /// Returns the next part of the document. Fails if it is malformed, has an entity that XML does not define, or
    /// declares another encoding than UTF-8.
    pub(super) fn next(&mut self) -> Result<Node<'a>> {
        loop {
            let at = self.reader.buffer_position() as usize;
            let line = self.line_at(at);
            match self.reader.read_event().map_err(|e| self.malformed(&e))? {
                Event::Start(start) => return self.open(start, at, line).map(Node::Open),
                Event::End(_) => {
                    let (name, _) = self.open.pop().unwrap_or_default();
                    return Ok(Node::Close(name));
                }
                Event::Text(text) => {
                    let text = text.into_inner();
                    if !self.open.is_empty() {
                        return Ok(Node::Text(text));
                    }
                    self.outside(&text, line)?;
                }
                Event::CData(data) if !self.open.is_empty() => return Ok(Node::Text(data.into_inner())),
                Event::GeneralRef(name) => return Ok(Node::Text(self.resolve(&name, line)?)),
                Event::Decl(declaration) => {
                    if let Some(Ok(name)) = declaration.encoding() {
                        let hint = format!("convert it with iconv -f {name} -t UTF-8, and declare UTF-8");
                        encoding::check(self.file, line, self.text, &name, &hint)?;
                    }
                }
                Event::Eof => return self.end(),
                _ => {}
            }
        }
    }

    /// Skips the rest of the element that was opened last.
    pub(super) fn skip(&mut self) -> Result<()> {
        let outside = self.open.len().saturating_sub(1);
        while self.open.len() > outside {
            self.next()?;
        }
        Ok(())
    }

    /// Returns the line of a position that does not decrease from call to call.
    fn line_at(&mut self, at: usize) -> u64 {
        let (from, line) = self.counted;
        let at = at.min(self.text.len());
        let breaks = memchr::memchr_iter(b'\n', &self.text.as_bytes()[from.min(at)..at]).count();
        self.counted = (at, line + breaks as u64);
        self.counted.1
    }

    /// Records an open element. Fails if it is a second root.
    fn open(&mut self, start: BytesStart<'a>, at: usize, line: u64) -> Result<Element<'a>> {
        let qualified = name_at(self.text, at);
        let prefix = match self.prefix {
            Some(_) if self.open.is_empty() => return Err(self.second(line)),
            Some(prefix) => prefix,
            None => *self.prefix.insert(&qualified[..qualified.find(':').map_or(0, |i| i + 1)]),
        };
        let name = qualified.strip_prefix(prefix).unwrap_or(qualified);
        self.open.push((name, line));
        Ok(Element { name, start, file: self.file, line })
    }

    /// Checks text outside the root element, which must be blank.
    fn outside(&self, text: &str, line: u64) -> Result<()> {
        let blank =
            text.chars().take_while(|c| c.is_whitespace() || *c == '\u{feff}').map(char::len_utf8).sum();
        if text.len() == blank {
            return Ok(());
        }
        let line = line + text[..blank].matches('\n').count() as u64;
        if self.prefix.is_some() {
            return Err(self.second(line));
        }
        Err(Error::at(self.file, line, "found text before the root element of XML").hint("remove it"))
    }

    /// Builds the error of data after the root element.
    fn second(&self, line: u64) -> Error {
        Error::at(self.file, line, "found data after the end of the XML document")
            .hint("give one document per file")
    }

    /// Returns the end of the document. Fails if an element is open.
    fn end(&self) -> Result<Node<'a>> {
        let Some((name, line)) = self.open.last() else { return Ok(Node::End) };
        let last = self.text.trim_end().len();
        let message = format!("the file ends here, but <{name}> of line {line} is not closed");
        Err(Error::at(self.file, encoding::line_at(self.text.as_bytes(), last), message).hint(TRUNCATED))
    }

    /// Returns the text that a reference such as `lt` or `#233` represents. Fails if it is not defined by XML.
    fn resolve(&self, name: &str, line: u64) -> Result<Cow<'a, str>> {
        if let Some(text) = resolve_predefined_entity(name) {
            return Ok(text.into());
        }
        let name: String = name.chars().take(30).collect();
        let e = match quick_xml::events::BytesRef::new(name.as_str()).resolve_char_ref() {
            Ok(Some(c)) => return Ok(c.to_string().into()),
            Ok(None) => Error::at(self.file, line, format!("the entity &{name}; is not one of XML's five"))
                .hint("write the character itself; entities that a file defines are not expanded"),
            Err(_) => Error::at(self.file, line, format!("&{name}; is not a character"))
                .hint("write the character itself"),
        };
        Err(e)
    }

    /// Builds the error of malformed XML.
    fn malformed(&self, e: &quick_xml::Error) -> Error {
        use quick_xml::Error as Xml;
        let at = (self.reader.error_position() as usize).min(self.text.len());
        let line = encoding::line_at(self.text.as_bytes(), at);
        let (message, hint) = match e {
            Xml::Syntax(_) => {
                let found: String = self.text.get(at..).unwrap_or_default().chars().take(20).collect();
                let found = found.lines().next().unwrap_or_default();
                (format!("the markup `{found}` is not closed"), TRUNCATED)
            }
            Xml::IllFormed(IllFormedError::MismatchedEndTag { expected, found }) => {
                (format!("found </{found}>, expected </{expected}>"), "correct the line")
            }
            Xml::IllFormed(IllFormedError::UnmatchedEndTag(found)) => {
                (format!("found </{found}>, which was not opened"), "correct the line")
            }
            Xml::IllFormed(IllFormedError::UnclosedReference) => {
                ("found `&` without an entity".to_owned(), "write &amp; for the character &")
            }
            other => (format!("malformed XML: {other}"), "correct the line"),
        };
        Error::at(self.file, line, message).hint(hint)
    }
}
