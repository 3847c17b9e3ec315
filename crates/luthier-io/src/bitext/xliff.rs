//! Reader of XLIFF 1.0 to 1.2 (`trans-unit`) and 2.x (`unit` with `segment`).

use super::{
    Parsed,
    inline::Content,
    language::{self, Direction},
    xml::{Element, Node, Xml},
};
use luthier_core::{Error, Result};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Elements that contain other texts in elements of the same names: alternatives, and text between segments.
const OTHER_TEXTS: &[&str] = &["alt-trans", "match", "ignorable", "glossary"];

/// Reads the pairs. Fails if the XML is malformed, the version is not known, or the file is not in the languages.
pub(super) fn parse(file: &str, text: &str, wanted: Option<(&str, &str)>) -> Result<Parsed> {
    let mut reader = Reader {
        xml: Xml::new(file, text),
        wanted,
        direction: Direction::Forward,
        parsed: Parsed::default(),
        languages: (None, None),
        found: BTreeSet::new(),
        is_translatable: Vec::new(),
        unit: Unit::default(),
    };
    reader.read()?;
    reader.check_languages(file)?;
    Ok(reader.parsed)
}

/// Language tags of source and target.
type Languages = (Option<String>, Option<String>);

struct Reader<'a> {
    xml: Xml<'a>,
    wanted: Option<(&'a str, &'a str)>,
    /// Direction of the current `file`.
    direction: Direction,
    parsed: Parsed,
    /// Languages of the current `file`.
    languages: Languages,
    /// Languages that occur.
    found: BTreeSet<Languages>,
    /// Whether each open element that can say so is to be translated.
    is_translatable: Vec<bool>,
    unit: Unit,
}

/// A `trans-unit` or `segment`.
#[derive(Default)]
struct Unit {
    source: Content,
    segmented: Content,
    target: Content,
    state: Option<State>,
}

/// State of a translation that is not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Untranslated,
    NeedsReview,
}

impl State {
    /// Returns the meaning of the attribute `state`; `None` if the translation is finished.
    fn of(attribute: Option<&str>) -> Option<Self> {
        match attribute? {
            "new" | "needs-translation" | "needs-adaptation" | "needs-l10n" | "initial" => {
                Some(State::Untranslated)
            }
            state if state.starts_with("needs-review") => Some(State::NeedsReview),
            _ => None,
        }
    }
}

impl Reader<'_> {
    /// Reads all units.
    fn read(&mut self) -> Result<()> {
        loop {
            match self.xml.next()? {
                Node::Open(element) if element.is_foreign() || OTHER_TEXTS.contains(&element.name) => {
                    self.xml.skip()?;
                }
                Node::Open(element) => self.open(&element)?,
                Node::Close(name) => match name {
                    "trans-unit" => {
                        self.end_unit();
                        self.is_translatable.pop();
                    }
                    "segment" => self.end_unit(),
                    "file" | "group" | "unit" => {
                        self.is_translatable.pop();
                    }
                    _ => {}
                },
                Node::Text(_) => {}
                Node::End => return Ok(()),
            }
        }
    }

    fn open(&mut self, element: &Element<'_>) -> Result<()> {
        match element.name {
            "xliff" => {
                let version = element.attribute("version")?.unwrap_or_default();
                if !version.is_empty() && !version.starts_with("1.") && !version.starts_with("2.") {
                    let message = format!("the version of XLIFF is {version}, expected 1.x or 2.x");
                    return Err(element.error(message).hint("export it as XLIFF 1.2"));
                }
                self.languages = (element.attribute("srcLang")?, element.attribute("trgLang")?);
                self.begin_languages();
            }
            "file" => {
                if let Some(source) = element.attribute("source-language")? {
                    self.languages = (Some(source), element.attribute("target-language")?);
                }
                self.begin_languages();
                self.begin_translatable(element)?;
            }
            "group" | "unit" => self.begin_translatable(element)?,
            "trans-unit" => {
                self.begin_translatable(element)?;
                self.unit = Unit::default();
            }
            "segment" => {
                let state = State::of(element.attribute("state")?.as_deref());
                self.unit = Unit { state, ..Unit::default() };
            }
            "source" => self.unit.source = Content::read(&mut self.xml)?,
            "seg-source" => self.unit.segmented = Content::read(&mut self.xml)?,
            "target" => {
                if let Some(state) = State::of(element.attribute("state")?.as_deref()) {
                    self.unit.state = Some(state);
                }
                self.unit.target = Content::read(&mut self.xml)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Compares the languages of a file with those asked for.
    fn begin_languages(&mut self) {
        let (source, target) = &self.languages;
        self.direction = Direction::of(self.wanted, source.as_deref(), target.as_deref());
        if source.is_some() {
            self.found.insert(self.languages.clone());
        }
        if self.direction != Direction::Other && self.parsed.source_lang.is_none() {
            let (source, target) = self.direction.order(source.clone(), target.clone());
            (self.parsed.source_lang, self.parsed.target_lang) = (source, target);
        }
    }

    /// Records whether an element is to be translated, which it inherits unless it says so.
    fn begin_translatable(&mut self, element: &Element<'_>) -> Result<()> {
        let inherited = self.is_translatable.last().copied().unwrap_or(true);
        let own = element.attribute("translate")?;
        self.is_translatable.push(own.map_or(inherited, |value| value != "no"));
        Ok(())
    }

    /// Adds the pairs of a unit, or counts it.
    fn end_unit(&mut self) {
        let unit = std::mem::take(&mut self.unit);
        let (parsed, direction) = (&mut self.parsed, self.direction);
        let mut push = |source: &str, target: &str| {
            let (source, target) = direction.order(source, target);
            parsed.push_or_skip(source, target);
        };
        let source = if unit.segmented.text.is_empty() { &unit.source } else { &unit.segmented };
        let target = &unit.target;
        if self.is_translatable.last() == Some(&false) {
            parsed.skipped.not_translatable += 1;
        } else if direction == Direction::Other {
            parsed.skipped.other_language += 1;
        } else if let Some(state) = unit.state {
            match state {
                State::Untranslated => parsed.skipped.untranslated += 1,
                State::NeedsReview => parsed.skipped.fuzzy += 1,
            }
        } else if source.segments.is_empty() || target.segments.is_empty() {
            push(&source.text, &target.text);
        } else {
            let targets: FxHashMap<&str, _> =
                target.segments.iter().map(|(id, range)| (id.as_str(), range.clone())).collect();
            for (id, range) in &source.segments {
                let text = targets.get(id.as_str()).map_or("", |range| &target.text[range.clone()]);
                push(&source.text[range.clone()], text);
            }
        }
    }

    /// Fails if no part of the file is in the languages asked for, or if none were asked for and there are several.
    fn check_languages(&mut self, file: &str) -> Result<()> {
        let name = |lang: &Option<String>| lang.clone().unwrap_or_else(|| "unknown".to_owned());
        let shown: Vec<String> =
            self.found.iter().map(|(from, to)| format!("{} to {}", name(from), name(to))).collect();
        let Some((from, to)) = self.wanted else {
            let mut targets: Vec<String> =
                self.found.iter().filter_map(|(_, to)| to.as_deref().map(language::primary)).collect();
            targets.sort();
            targets.dedup();
            if targets.len() < 2 {
                return Ok(());
            }
            let message = format!("expected 2 languages, found: {}", shown.join(", "));
            return Err(Error::in_file(file, message).hint("name two with --source-lang and --target-lang"));
        };
        let in_direction = |(source, target): &Languages| {
            Direction::of(self.wanted, source.as_deref(), target.as_deref()) != Direction::Other
        };
        if self.found.is_empty() || self.found.iter().any(in_direction) {
            return Ok(());
        }
        let message = format!("expected segments from {from} to {to}; the file has: {}", shown.join(", "));
        Err(Error::in_file(file, message).hint("check the languages"))
    }
}
