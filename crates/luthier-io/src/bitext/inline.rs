//! Segments of TMX and XLIFF: text with inline elements.
//!
//! An element that represents native code (`bpt`, `ept`, `ph`, `it`, `x` and others) becomes one empty tag without the
//! code, one that encloses text (`g`, `pc`, `hi`, `mrk` and unknown ones) becomes a pair of tags. Of the attributes only the
//! id is kept.

use super::xml::{Element, Node, Xml};
use luthier_core::Result;
use rustc_hash::FxHashMap;
use std::{fmt::Write as _, ops::Range};

/// The text of a segment, or of a `source` or `target` that is segmented by `mrk`.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) text: String,
    /// Id of each `mrk mtype="seg"` and the part of the text that it encloses.
    pub(super) segments: Vec<(String, Range<usize>)>,
}

/// Elements whose content is native code, or that are empty.
const CODES: &[&str] = &["bpt", "ept", "ph", "it", "ut", "x", "bx", "ex", "sc", "ec", "sm", "em", "cp"];

/// Attributes that identify an element, the preferred first: `x` of TMX connects the two languages, `i` only `bpt` and
/// `ept`.
const IDS: &[&str] = &["x", "i", "id", "mid", "startRef", "rid", "hex"];

/// Attribute that identifies each `bpt` of a segment of TMX, by its attribute `i`.
type Begins = FxHashMap<String, String>;

/// Inline element that is open.
enum Open<'a> {
    /// Element that becomes a pair of tags.
    Pair(&'a str),
    /// Segment with its number in [`Content::segments`].
    Segment(usize),
    /// Segment within a segment.
    Nested,
}

impl Content {
    /// Reads the content of the element that was opened last, up to and including its end tag.
    pub(super) fn read(xml: &mut Xml<'_>) -> Result<Self> {
        let mut content = Content::default();
        let mut open: Vec<Open<'_>> = Vec::new();
        let mut begins = Begins::default();
        loop {
            match xml.next()? {
                Node::Text(text) => content.text.push_str(&text),
                Node::Open(element) if CODES.contains(&element.name) => {
                    let id = identity(&element, &mut begins)?;
                    let _ = write!(content.text, "<{}{id}/>", element.name);
                    xml.skip()?;
                }
                Node::Open(element) => open.push(content.open(&element, &open)?),
                Node::Close(_) => match open.pop() {
                    Some(Open::Pair(name)) => {
                        let _ = write!(content.text, "</{name}>");
                    }
                    Some(Open::Segment(n)) => content.segments[n].1.end = content.text.len(),
                    Some(Open::Nested) => {}
                    None => return Ok(content),
                },
                Node::End => return Ok(content),
            }
        }
    }

    /// Begins an element that encloses text.
    fn open<'a>(&mut self, element: &Element<'a>, open: &[Open<'a>]) -> Result<Open<'a>> {
        if element.name == "mrk" && element.attribute("mtype")?.as_deref() == Some("seg") {
            if open.iter().any(|o| matches!(o, Open::Segment(_))) {
                return Ok(Open::Nested);
            }
            let id = element.attribute("mid")?.unwrap_or_default();
            self.segments.push((id, self.text.len()..self.text.len()));
            return Ok(Open::Segment(self.segments.len() - 1));
        }
        let _ = write!(self.text, "<{}{}>", element.name, identity(element, &mut Begins::default())?);
        Ok(Open::Pair(element.name))
    }
}

/// Returns the attribute that identifies an element, such as ` id="1"`; empty if it has none. An `ept` of TMX gets that
/// of its `bpt`.
fn identity(element: &Element<'_>, begins: &mut Begins) -> Result<String> {
    let mut identity = String::new();
    for name in IDS {
        if let Some(value) = element.attribute(name)? {
            identity = format!(" {name}=\"{}\"", quick_xml::escape::escape(value));
            break;
        }
    }
    match (element.name, element.attribute("i")?) {
        ("bpt", Some(i)) => {
            begins.insert(i, identity.clone());
        }
        ("ept", Some(i)) => {
            if let Some(of_begin) = begins.get(&i) {
                identity.clone_from(of_begin);
            }
        }
        _ => {}
    }
    Ok(identity)
}
