//! Reader of translation memories in TMX.

use super::{
    Parsed,
    inline::Content,
    language,
    xml::{Node, Xml},
};
use luthier_core::{Error, Result};
use std::collections::BTreeSet;

/// Reads the pairs. Fails if the XML is malformed, or a language does not occur.
pub(super) fn parse(file: &str, text: &str, wanted: Option<(&str, &str)>) -> Result<Parsed> {
    let mut reader = Reader { xml: Xml::new(file, text), parsed: Parsed::default(), found: BTreeSet::new() };
    let (from, to) = match wanted {
        Some((from, to)) => (from.to_owned(), to.to_owned()),
        None => both_languages(file, text)?,
    };
    reader.read((&from, &to))?;
    let occurs = |lang: &str| reader.found.iter().any(|found| language::matches(lang, found));
    let missing = match (occurs(&from), occurs(&to)) {
        (true, true) => return Ok(reader.parsed),
        (false, false) => format!("{from} or {to}"),
        (false, true) => from,
        (true, false) => to,
    };
    let found: Vec<String> = reader.found.into_iter().collect();
    let e = match found.as_slice() {
        [] => Error::in_file(file, "has no translation unit with text").hint("export it again"),
        _ => Error::in_file(file, format!("no segment is in {missing}; the file has: {}", found.join(", ")))
            .hint("check the languages"),
    };
    Err(e)
}

struct Reader<'a> {
    xml: Xml<'a>,
    parsed: Parsed,
    /// Language tags that occur.
    found: BTreeSet<String>,
}

/// One side of a translation unit: the variant that matches best.
#[derive(Default)]
struct Side {
    /// Number of further subtags, see [`language::distance`].
    distance: usize,
    lang: String,
    text: Option<String>,
}

impl Side {
    /// Returns whether a language matches better than the present text.
    fn accepts(&self, wanted: &str, found: &str) -> Option<usize> {
        language::distance(wanted, found).filter(|d| self.text.is_none() || *d < self.distance)
    }
}

impl Reader<'_> {
    /// Reads all units.
    fn read(&mut self, (from, to): (&str, &str)) -> Result<()> {
        let (mut source, mut target) = (Side::default(), Side::default());
        let mut lang: Option<String> = None;
        loop {
            match self.xml.next()? {
                Node::Open(element) => match element.name {
                    "tu" => (source, target) = (Side::default(), Side::default()),
                    "tuv" => {
                        let tag = element.any(&["xml:lang", "lang"])?.ok_or_else(|| {
                            element.error("<tuv> has no language").hint("add the attribute xml:lang")
                        })?;
                        self.found.insert(tag.clone());
                        lang = Some(tag);
                    }
                    "seg" => {
                        // Further segments of a variant are not valid.
                        let Some(tag) = lang.take() else { continue };
                        let sides = [(&mut source, from), (&mut target, to)];
                        let accepted = sides.into_iter().find_map(|(s, w)| Some((s.accepts(w, &tag)?, s)));
                        if let Some((distance, side)) = accepted {
                            let text = Content::read(&mut self.xml)?.text;
                            *side = Side { distance, lang: tag, text: Some(text) };
                        } else {
                            self.xml.skip()?;
                        }
                    }
                    _ => {}
                },
                Node::Close("tu") => self.end_unit(std::mem::take(&mut source), std::mem::take(&mut target)),
                Node::Close("tuv") => lang = None,
                Node::Close(_) | Node::Text(_) => {}
                Node::End => return Ok(()),
            }
        }
    }

    /// Adds the pair of a unit.
    fn end_unit(&mut self, source: Side, target: Side) {
        let (Some(source_text), Some(target_text)) = (source.text, target.text) else {
            self.parsed.skipped.other_language += 1;
            return;
        };
        self.parsed.push_or_skip(&source_text, &target_text);
        self.parsed.source_lang.get_or_insert(source.lang);
        self.parsed.target_lang.get_or_insert(target.lang);
    }
}

/// Returns source and target language of a file that has two. The source is that of the header, or else the first.
/// Languages that differ only in further subtags count as one, unless there are only two tags. Fails if there are not
/// two languages.
fn both_languages(file: &str, text: &str) -> Result<(String, String)> {
    let (header, mut tags) = languages(file, text)?;
    let mut seen = BTreeSet::new();
    let mut short: Vec<String> =
        tags.iter().map(|tag| language::primary(tag)).filter(|tag| seen.insert(tag.clone())).collect();
    let both = if tags.len() == 2 { &mut tags } else { &mut short };
    if both.len() != 2 {
        let count = both.len();
        tags.sort();
        let message = format!("expected 2 languages, found {count}: {}", tags.join(", "));
        return Err(Error::in_file(file, message).hint("name two with --source-lang and --target-lang"));
    }
    let is_source = |tag: &str| language::matches(tag, &header) || language::matches(&header, tag);
    if !is_source(&both[0]) && is_source(&both[1]) {
        both.reverse();
    }
    Ok((both.swap_remove(0), both.swap_remove(0)))
}

/// Returns the source language that the header names, empty if it does not, and the language tags that occur, in the
/// order of their first occurrence.
fn languages(file: &str, text: &str) -> Result<(String, Vec<String>)> {
    let mut xml = Xml::new(file, text);
    let (mut header, mut tags, mut seen) = (String::new(), Vec::new(), BTreeSet::new());
    loop {
        match xml.next()? {
            Node::Open(element) if element.name == "header" => {
                header = element.attribute("srclang")?.unwrap_or_default();
            }
            Node::Open(element) if element.name == "tuv" => {
                let tag = element.any(&["xml:lang", "lang"])?.unwrap_or_default();
                if seen.insert(tag.clone()) {
                    tags.push(tag);
                }
            }
            Node::End => return Ok((header, tags)),
            _ => {}
        }
    }
}
