//! The way of a raw line to the tokens of a translation model and back, learned from parallel text.

use crate::{
    Language, Numbers, SpanClass, Tokeniser, converted, normalise,
    spans::{BLANK, CLOSE, JOINER, OPEN},
    tokenise::{Atom, Kind, Line, is_blank_token, push_text, unmarked},
    truecase::{Casing, Counts, Piece, Truecaser},
};
use luthier_core::{Error, Result};
use luthier_io::{AtomicFile, text};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::{ops::Range, path::Path};

/// A side of parallel text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The language that is translated.
    Source,
    /// The language of the translations.
    Target,
}

/// A line as tokens, with what is needed to turn their translation into text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prepared {
    /// Tokens, separated by blanks; protected spans are placeholders such as `⟦url1⟧`.
    pub tokens: String,
    /// Protected spans of the line that placeholders stand for, in order.
    pub spans: Vec<SavedSpan>,
    /// Casing that was removed from the line.
    pub casing: Casing,
}

/// A protected span that a placeholder stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedSpan {
    /// The placeholder in the tokens.
    pub placeholder: String,
    /// Text of the span in the line.
    pub text: String,
    /// Class of the span.
    pub class: SpanClass,
    /// Whether the span is attached to a word before it.
    left: bool,
    /// Whether the span is attached to a word after it.
    right: bool,
}

/// A [`TextModel`] as it is stored.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Stored {
    /// Version of the rules of tokenisation.
    rules: u32,
    numbers: Numbers,
    source: StoredSide,
    target: StoredSide,
}

/// One language of a [`TextModel`] as it is stored.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct StoredSide {
    language: Language,
    #[serde(flatten)]
    truecaser: Truecaser,
}

/// Version of the rules of tokenisation: models trained with other rules are refused.
const RULES: u32 = 1;

/// Rules and truecaser of one language.
#[derive(Debug, Clone)]
struct Rules {
    language: Language,
    tokeniser: Tokeniser,
    truecaser: Truecaser,
}

impl Rules {
    fn new(language: &Language) -> Self {
        Rules {
            language: language.clone(),
            tokeniser: Tokeniser::new(language),
            truecaser: Truecaser::default(),
        }
    }
}

/// Preparation of raw text for a translation model and restoration of raw text from its translations: tokenisers and
/// truecasers of both languages, and protected spans.
///
/// ```
/// use luthier_text::{Language, Side, TextModel};
///
/// let pairs = [
///     ("The file is big. The file is new.", "El archivo es grande. El archivo es nuevo."),
///     ("Open the file {0}.", "Abra el archivo {0}."),
/// ];
/// let model = TextModel::train(&pairs, &Language::new("en")?, &Language::new("es")?);
/// let prepared = model.prepare(Side::Source, "The file {0}: see \"x\".");
/// assert_eq!(prepared.tokens, "the file ⟦fmt1⟧ ￭: see \"￭ x ￭\" ￭.");
/// assert_eq!(model.restore(Side::Target, "el archivo ⟦fmt1⟧ ￭: ver \"￭ x ￭\" ￭.", &prepared), "El archivo {0}: ver \"x\".");
/// assert_eq!(model.restore(Side::Source, &prepared.tokens, &prepared), "The file {0}: see \"x\".");
/// # Ok::<(), luthier_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct TextModel {
    source: Rules,
    target: Rules,
    numbers: Numbers,
}

impl TextModel {
    /// Returns a model without truecasers that copies numbers.
    pub fn new(source: &Language, target: &Language) -> Self {
        TextModel { source: Rules::new(source), target: Rules::new(target), numbers: Numbers::Copy }
    }

    /// Learns truecasers and the treatment of numbers from raw parallel text.
    pub fn train<S: AsRef<str>, T: AsRef<str>>(
        pairs: &[(S, T)],
        source: &Language,
        target: &Language,
    ) -> Self {
        let mut model = Self::new(source, target);
        let mut counts = [Counts::default(), Counts::default()];
        // Capitalised headings of either side, and those among them that are so on both sides.
        let (mut titles, mut both) = ([0usize; 2], 0usize);
        let mut numbers = [0usize; 2];
        for (s, t) in pairs {
            let (s, t) = (normalise(s.as_ref()), normalise(t.as_ref()));
            let pieces = [(Side::Source, &*s), (Side::Target, &*t)].map(|(side, line)| {
                let rules = model.side(side);
                pieces(line, &rules.tokeniser.atoms(line))
            });
            let is_title = [Truecaser::is_title(&pieces[0]), Truecaser::is_title(&pieces[1])];
            for side in 0..2 {
                counts[side].add(&pieces[side]);
                titles[side] += usize::from(is_title[side]);
            }
            both += usize::from(is_title[0] && is_title[1]);
            model.count_numbers(&s, &t, &mut numbers);
        }
        let [of_source, of_target] = counts;
        // A side capitalises headings unless those of the other side mostly have another style.
        model.source.truecaser = of_source.truecaser(2 * both >= titles[1] && titles[0] > 0);
        model.target.truecaser = of_target.truecaser(2 * both >= titles[0] && titles[1] > 0);
        model.numbers = if numbers[1] > numbers[0] { Numbers::Convert } else { Numbers::Copy };
        model
    }

    /// Counts numbers that the target copies and converts.
    fn count_numbers(&self, source: &str, target: &str, counts: &mut [usize; 2]) {
        if self.source.language.has_decimal_comma() == self.target.language.has_decimal_comma() {
            return;
        }
        for span in crate::protected_spans(source).iter().filter(|s| s.class == SpanClass::Number) {
            let number = &source[span.start..span.end];
            if let Some(other) = converted(number, &self.source.language, &self.target.language) {
                let (copied, changed) = (target.contains(number), target.contains(&*other));
                counts[0] += usize::from(copied && !changed);
                counts[1] += usize::from(changed && !copied);
            }
        }
    }

    /// Returns the language of a side.
    pub fn language(&self, side: Side) -> &Language {
        &self.side(side).language
    }

    /// Returns what translations do with numbers.
    pub fn numbers(&self) -> Numbers {
        self.numbers
    }

    fn side(&self, side: Side) -> &Rules {
        match side {
            Side::Source => &self.source,
            Side::Target => &self.target,
        }
    }

    /// Returns the tokens of a raw line, with placeholders for all protected spans.
    pub fn prepare(&self, side: Side, line: &str) -> Prepared {
        self.prepared(side, &normalise(line), &mut |_, _| true)
    }

    /// Returns a raw line in its normalised form, and for each token of [`TextModel::prepare`] the bytes of this form that it
    /// stands for.
    ///
    /// ```
    /// use luthier_text::{Language, Side, TextModel};
    ///
    /// let model = TextModel::new(&Language::new("en")?, &Language::new("es")?);
    /// let (line, ranges) = model.token_ranges(Side::Source, "Open  http://a.org, please.");
    /// let texts: Vec<&str> = ranges.into_iter().map(|r| &line[r]).collect();
    /// assert_eq!(texts, ["Open", "http://a.org", ",", "please", "."]);
    /// # Ok::<(), luthier_core::Error>(())
    /// ```
    pub fn token_ranges(&self, side: Side, line: &str) -> (String, Vec<Range<usize>>) {
        let line = normalise(line);
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let mut previous = None;
        for atom in self.side(side).tokeniser.atoms(&line) {
            if let Some(before) = previous.filter(|before| is_blank_token(before, &atom)) {
                ranges.push(before.end..atom.start);
            }
            ranges.push(atom.start..atom.end);
            previous = Some(atom);
        }
        (line, ranges)
    }

    /// Returns the tokens of a sentence pair for training. Placeholders stand for the protected spans that occur on both
    /// sides; other spans are ordinary tokens.
    pub fn prepare_pair(&self, source: &str, target: &str) -> (Prepared, Prepared) {
        let (source, target) = (normalise(source), normalise(target));
        let of_source = crate::protected_spans(&source);
        let of_target = crate::protected_spans(&target);
        let mut partner: Vec<Option<usize>> = vec![None; of_target.len()];
        let mut matched = vec![false; of_source.len()];
        for (i, s) in of_source.iter().enumerate() {
            let text = &source[s.start..s.end];
            let other = self.translated(text, s.class);
            let same = |t: &str| t == text || t == other;
            let free =
                |j: &usize| partner[*j].is_none() && same(&target[of_target[*j].start..of_target[*j].end]);
            if let Some(j) = (0..of_target.len()).find(free) {
                partner[j] = Some(i);
                matched[i] = true;
            }
        }
        let prepared = self.prepared(Side::Source, &source, &mut |n, _| matched[n]);
        // Placeholders of the source by the number of the span.
        let mut names = vec![String::new(); of_source.len()];
        for (span, i) in prepared.spans.iter().zip((0..of_source.len()).filter(|&i| matched[i])) {
            names[i].clone_from(&span.placeholder);
        }
        let mut of_pair = |n: usize, name: &mut String| {
            if let Some(i) = partner[n] {
                name.clone_from(&names[i]);
            }
            partner[n].is_some()
        };
        let target = self.prepared(Side::Target, &target, &mut of_pair);
        (prepared, target)
    }

    /// Returns the tokens of a reference translation of a prepared line, with its placeholders for the protected spans that
    /// occur on both sides.
    pub fn prepare_reference(&self, source: &Prepared, reference: &str) -> Prepared {
        let line = normalise(reference);
        let spans = crate::protected_spans(&line);
        let mut used = vec![false; source.spans.len()];
        self.prepared(Side::Target, &line, &mut |n, name| {
            let text = &line[spans[n].start..spans[n].end];
            let is_same = |s: &SavedSpan| s.text == text || self.translated(&s.text, s.class) == text;
            let found = (0..used.len()).find(|&i| !used[i] && is_same(&source.spans[i]));
            if let Some(i) = found {
                used[i] = true;
                name.clone_from(&source.spans[i].placeholder);
            }
            found.is_some()
        })
    }

    /// Returns the tokens of a normalised line. `protect` says for each protected span whether a placeholder stands for it,
    /// and may change the placeholder.
    fn prepared(
        &self,
        side: Side,
        line: &str,
        protect: &mut dyn FnMut(usize, &mut String) -> bool,
    ) -> Prepared {
        let rules = self.side(side);
        let atoms = rules.tokeniser.atoms(line);
        let mut pieces = pieces(line, &atoms);
        let casing = rules.truecaser.truecase(&mut pieces);
        let mut out = Prepared { tokens: String::with_capacity(2 * line.len()), spans: Vec::new(), casing };
        let mut seen: FxHashMap<SpanClass, usize> = FxHashMap::default();
        let mut spans = 0;
        for (i, (atom, piece)) in atoms.iter().zip(&pieces).enumerate() {
            if i > 0 {
                crate::tokenise::separate(&mut out.tokens, &atoms[i - 1], atom);
            }
            if let Kind::Protected(class) = atom.kind {
                let count = seen.get(&class).map_or(1, |n| n + 1);
                let mut placeholder = format!("{OPEN}{}{count}{CLOSE}", class.name());
                spans += 1;
                if protect(spans - 1, &mut placeholder) {
                    seen.insert(class, count);
                    out.tokens.push_str(&placeholder);
                    let text = line[atom.start..atom.end].to_owned();
                    out.spans.push(SavedSpan {
                        placeholder,
                        text,
                        class,
                        left: atom.left,
                        right: atom.right,
                    });
                    continue;
                }
            }
            if atom.left {
                out.tokens.push(JOINER);
            }
            push_text(&mut out.tokens, &piece.text);
            if atom.right {
                out.tokens.push(JOINER);
            }
        }
        out
    }

    /// Returns the text of a span in a translation into the target language.
    fn translated(&self, text: &str, class: SpanClass) -> String {
        let other = (class == SpanClass::Number && self.numbers == Numbers::Convert)
            .then(|| converted(text, &self.source.language, &self.target.language));
        other.flatten().unwrap_or_else(|| text.to_owned())
    }

    /// Returns the raw text of tokens in the language of `side`, with the protected spans and the casing of `source`, of which
    /// they are a translation. Spans without a placeholder in the tokens are appended.
    pub fn restore(&self, side: Side, tokens: &str, source: &Prepared) -> String {
        self.restore_ranges(side, tokens, source).0
    }

    /// Returns the raw text of [`TextModel::restore`], and for each token the bytes of the text that stand for it.
    ///
    /// ```
    /// use luthier_text::{Language, Side, TextModel};
    ///
    /// let model = TextModel::new(&Language::new("en")?, &Language::new("es")?);
    /// let source = model.prepare(Side::Source, "see http://a.org");
    /// let (text, ranges) = model.restore_ranges(Side::Target, "ver ⟦url1⟧ ￭.", &source);
    /// let texts: Vec<&str> = ranges.into_iter().map(|r| &text[r]).collect();
    /// assert_eq!((text.as_str(), texts), ("ver http://a.org.", vec!["ver", "http://a.org", "."]));
    /// # Ok::<(), luthier_core::Error>(())
    /// ```
    pub fn restore_ranges(&self, side: Side, tokens: &str, source: &Prepared) -> (String, Vec<Range<usize>>) {
        let (mut line, ranges, used) = self.joined(side, tokens, source, source.casing);
        for (span, _) in source.spans.iter().zip(&used).filter(|(_, used)| !**used) {
            self.append_span(&mut line, side, span, (false, false));
        }
        (line.text, ranges)
    }

    /// Returns the raw text of tokens that are a part of a translation of `source`. Casing is not restored, and spans without a
    /// placeholder in the tokens are not appended.
    ///
    /// ```
    /// use luthier_text::{Language, Side, TextModel};
    ///
    /// let model = TextModel::new(&Language::new("en")?, &Language::new("es")?);
    /// let source = model.prepare(Side::Source, "see http://a.org");
    /// assert_eq!(model.restore_part(Side::Target, "⟦url1⟧ ￭.", &source), "http://a.org.");
    /// assert_eq!(model.restore_part(Side::Target, "￭, ver", &source), ", ver");
    /// # Ok::<(), luthier_core::Error>(())
    /// ```
    pub fn restore_part(&self, side: Side, tokens: &str, source: &Prepared) -> String {
        self.joined(side, tokens, source, Casing::default()).0.text
    }

    /// Returns the raw text of tokens, the bytes of each token, and whether each span of the source has a placeholder in them.
    fn joined(
        &self,
        side: Side,
        tokens: &str,
        source: &Prepared,
        casing: Casing,
    ) -> (Line, Vec<Range<usize>>, Vec<bool>) {
        let rules = self.side(side);
        let mut used = vec![false; source.spans.len()];
        let mut pieces = Vec::new();
        let mut saved: Vec<Option<usize>> = Vec::new();
        for token in tokens.split_ascii_whitespace() {
            let (text, left, right) = unmarked(token);
            let place = (0..used.len()).find(|&i| !used[i] && source.spans[i].placeholder == text);
            if let Some(i) = place {
                used[i] = true;
            }
            pieces.push(Piece { text: text.to_owned(), left, right, is_span: place.is_some() });
            saved.push(place);
        }
        rules.truecaser.restore(&mut pieces, casing);
        let mut line = Line::default();
        let mut ranges = Vec::with_capacity(pieces.len());
        for (piece, place) in pieces.iter().zip(&saved) {
            let before = line.text.len();
            match place {
                Some(i) => self.append_span(&mut line, side, &source.spans[*i], (piece.left, piece.right)),
                None if piece.text.starts_with(BLANK) && piece.text.chars().count() == 1 => {
                    line.push(&piece.text);
                }
                None => line.append(&piece.text, piece.left, piece.right),
            }
            // The blank before a token does not belong to it.
            let blank = usize::from(line.text[before..].starts_with(' '));
            ranges.push(before + blank..line.text.len());
        }
        (line, ranges, used)
    }

    /// Appends a protected span as it stands in a translation; `marks` are those of its placeholder.
    fn append_span(&self, line: &mut Line, side: Side, span: &SavedSpan, marks: (bool, bool)) {
        let text = match side {
            Side::Source => span.text.clone(),
            Side::Target => self.translated(&span.text, span.class),
        };
        line.append_span(&text, span.left || marks.0, span.right || marks.1);
    }

    /// Writes the model to a file.
    pub fn save(&self, path: &Path) -> Result<()> {
        let side = |rules: &Rules| StoredSide {
            language: rules.language.clone(),
            truecaser: rules.truecaser.clone(),
        };
        let stored = Stored {
            rules: RULES,
            numbers: self.numbers,
            source: side(&self.source),
            target: side(&self.target),
        };
        let text = toml::to_string_pretty(&stored)
            .map_err(|e| Error::in_file(path.display().to_string(), format!("cannot be written: {e}")))?;
        AtomicFile::write_all_to(path, text.as_bytes())
    }

    /// Reads a model from a file. Fails if the file cannot be read or is invalid, or if the rules of tokenisation have
    /// changed since the model was trained.
    pub fn load(path: &Path) -> Result<Self> {
        let read = text::read_lines(path)?;
        let stored: Stored = toml::from_str(&read.lines.join("\n")).map_err(|e| {
            Error::in_file(&read.file, e.message().replace('\n', " ")).hint("train the model again")
        })?;
        if stored.rules != RULES {
            let found = stored.rules;
            return Err(Error::in_file(
                &read.file,
                format!(
                    "has version {found} of the tokenisation rules, but this program has version {RULES}"
                ),
            )
            .hint("train the model again"));
        }
        let side = |stored: StoredSide| Rules { truecaser: stored.truecaser, ..Rules::new(&stored.language) };
        Ok(TextModel { source: side(stored.source), target: side(stored.target), numbers: stored.numbers })
    }
}

/// Returns the tokens of a line for the truecaser.
fn pieces(line: &str, atoms: &[Atom]) -> Vec<Piece> {
    let piece = |a: &Atom| Piece {
        text: line[a.start..a.end].to_owned(),
        left: a.left,
        right: a.right,
        is_span: matches!(a.kind, Kind::Protected(_)),
    };
    atoms.iter().map(piece).collect()
}

/// Whether a token is a placeholder of a protected span, such as `⟦url1⟧`.
///
/// ```
/// assert!(luthier_text::is_placeholder("⟦url1⟧") && !luthier_text::is_placeholder("url1"));
/// ```
pub fn is_placeholder(token: &str) -> bool {
    let (text, _, _) = unmarked(token);
    text.len() > OPEN.len_utf8() + CLOSE.len_utf8() && text.starts_with(OPEN) && text.ends_with(CLOSE)
}
