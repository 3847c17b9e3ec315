//! Sparse lexical features, by template.
//!
//! The five templates of Arun and Koehn (2007, §5), with the previous phrase pair bᵢ and the current one bⱼ, and
//! those of Hopkins and May (2011) for phrase-based systems:
//!
//! | template | example | consists of |
//! | --- | --- | --- |
//! | phrase-pair | `pp:das_haus~the_house` | source and target phrase of bⱼ |
//! | source-bigram | `sb:das_haus`, `sb:in_das_haus` | 2 or 3 source words in order of translation that end in bⱼ and begin in bⱼ or the last two words of bᵢ |
//! | target-bigram | `tb:the_house` | 2 or 3 consecutive target words that end in bⱼ and begin in bⱼ or the last two words of bᵢ |
//! | orientation | `or:morgen_ich~tomorrow_i~swap` | last words of bᵢ and first words of bⱼ on both sides, and the orientation of bⱼ |
//! | source-distortion | `sd:morgen_ich~3` | last source word of bᵢ, first of bⱼ, and the distance between them, truncated to ±6 |
//! | word-pair | `wp:haus~house`, `wp:*~the` | aligned words; all but the 500 most frequent words are one class, `*` |
//! | phrase-length | `pl:2~3` | numbers of source and target words of bⱼ |
//! | insertion, deletion | `in:the`, `de:das` | frequent target or source word without alignment link |
//!
//! Both sides of a sentence begin with `<s>` and end with `</s>`. Characters that would make a name ambiguous are
//! percent-encoded: `%5F` is `_`.

use crate::model::Model;
use luthier_core::{Error, FeatureKey, Result, Weights};
use luthier_table::Table;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::{fmt::Write as _, str::FromStr, sync::OnceLock};

/// A template of sparse features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Template {
    /// Source and target phrase of a phrase pair: `pp:das_haus~the_house`.
    PhrasePair,
    /// Two or three consecutive source words in the order of translation: `sb:das_haus`.
    SourceBigram,
    /// Two or three consecutive target words: `tb:the_house`.
    TargetBigram,
    /// The words on both sides of the boundary between two phrase pairs, and their orientation (monotone, swap or
    /// discontinuous): `or:morgen_ich~tomorrow_i~swap`.
    Orientation,
    /// The source words on both sides of the boundary between two phrase pairs, and the distance between them, from
    /// −6 to 6: `sd:morgen_ich~3`.
    SourceDistortion,
    /// An aligned source and target word: `wp:haus~house`.
    WordPair,
    /// Numbers of source and target words of a phrase pair: `pl:2~3`.
    PhraseLength,
    /// A frequent target word without alignment link: `in:the`.
    Insertion,
    /// A frequent source word without alignment link: `de:das`.
    Deletion,
}

impl Template {
    /// All templates, those of Arun and Koehn (2007) first.
    pub const ALL: [Template; 9] = [
        Template::PhrasePair,
        Template::SourceBigram,
        Template::TargetBigram,
        Template::Orientation,
        Template::SourceDistortion,
        Template::WordPair,
        Template::PhraseLength,
        Template::Insertion,
        Template::Deletion,
    ];

    /// Name of the template in settings and on the command line, such as `phrase-pair`.
    pub fn name(self) -> &'static str {
        match self {
            Template::PhrasePair => "phrase-pair",
            Template::SourceBigram => "source-bigram",
            Template::TargetBigram => "target-bigram",
            Template::Orientation => "orientation",
            Template::SourceDistortion => "source-distortion",
            Template::WordPair => "word-pair",
            Template::PhraseLength => "phrase-length",
            Template::Insertion => "insertion",
            Template::Deletion => "deletion",
        }
    }

    /// Prefix of the names of this template's features, such as `pp:`.
    pub fn prefix(self) -> &'static str {
        match self {
            Template::PhrasePair => "pp:",
            Template::SourceBigram => "sb:",
            Template::TargetBigram => "tb:",
            Template::Orientation => "or:",
            Template::SourceDistortion => "sd:",
            Template::WordPair => "wp:",
            Template::PhraseLength => "pl:",
            Template::Insertion => "in:",
            Template::Deletion => "de:",
        }
    }
}

/// A set of sparse feature templates. Its text form is a comma-separated list of names; `arun-koehn` and `hopkins-may`
/// stand for all templates of these papers, `none` for the empty set.
///
/// ```
/// use luthier_decode::{Template, Templates};
///
/// let on: Templates = "word-pair,phrase-length".parse().unwrap();
/// assert!(on.has(Template::WordPair) && !on.has(Template::PhrasePair));
/// assert_eq!(on.with(Template::Deletion).to_string(), "word-pair,phrase-length,deletion");
/// assert!("none".parse::<Templates>().unwrap().is_empty());
/// assert!("word".parse::<Templates>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Templates(u16);

impl From<Templates> for String {
    fn from(on: Templates) -> Self {
        on.to_string()
    }
}

impl TryFrom<String> for Templates {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl Templates {
    /// Returns the templates of the features with non-zero weights.
    pub fn of(weights: &Weights) -> Self {
        let mut on = Templates::default();
        for (name, _) in weights.iter().filter(|w| w.1 != 0.0) {
            if let Some(t) = Template::ALL.into_iter().find(|t| name.starts_with(t.prefix())) {
                on = on.with(t);
            }
        }
        on
    }

    /// Returns the set with a template added.
    #[must_use]
    pub fn with(self, template: Template) -> Self {
        Templates(self.0 | 1 << template as u16)
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the set contains a template.
    #[inline]
    pub fn has(self, template: Template) -> bool {
        self.0 >> template as u16 & 1 == 1
    }

    /// Whether a template of the set depends on the previous phrase pair.
    fn look_back(self) -> bool {
        let back = [
            Template::SourceBigram,
            Template::TargetBigram,
            Template::Orientation,
            Template::SourceDistortion,
        ];
        back.into_iter().any(|t| self.has(t))
    }
}

impl std::fmt::Display for Templates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> =
            Template::ALL.into_iter().filter(|t| self.has(*t)).map(Template::name).collect();
        f.write_str(if names.is_empty() { "none".to_owned() } else { names.join(",") }.as_str())
    }
}

impl FromStr for Templates {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut on = Templates::default();
        for name in text.split(',') {
            let some = match name {
                "none" => &[][..],
                "arun-koehn" => &Template::ALL[..5],
                "hopkins-may" => &Template::ALL[5..],
                _ => {
                    let at = Template::ALL.iter().position(|t| t.name() == name).ok_or_else(|| {
                        let all: Vec<&str> = Template::ALL.into_iter().map(Template::name).collect();
                        Error::new(format!(
                            "no template is named {name:?}, expected none, arun-koehn, hopkins-may, {}",
                            all.join(", ")
                        ))
                    })?;
                    &Template::ALL[at..=at]
                }
            };
            on = some.iter().fold(on, |on, t| on.with(*t));
        }
        Ok(on)
    }
}

/// Number of frequent words of each side, which have features of their own.
const FREQUENT: usize = 500;
/// Distance to which source distortion is truncated, in words.
const MAX_JUMP: u32 = 6;
const BEGIN: &str = "<s>";
const END: &str = "</s>";
const ORIENTATIONS: [&str; 3] = ["monotone", "swap", "discontinuous"];

/// Sparse features of a model.
pub(crate) struct Sparse {
    /// Templates in use.
    pub(crate) on: Templates,
    /// For each entry of the table, the features that do not depend on the previous phrase; computed on first use.
    keys: Vec<OnceLock<Box<[FeatureKey]>>>,
    /// Whether each source word and each target word is frequent.
    frequent: [Vec<bool>; 2],
}

impl Sparse {
    pub(crate) fn new(table: &Table, on: Templates) -> Self {
        let words = [Template::WordPair, Template::Insertion, Template::Deletion];
        let frequent =
            if words.into_iter().any(|t| on.has(t)) { frequent(table) } else { Default::default() };
        Sparse { on, keys: (0..table.len()).map(|_| OnceLock::new()).collect(), frequent }
    }

    /// Features of a table entry that do not depend on the previous phrase.
    pub(crate) fn keys_of(
        &self,
        table: &Table,
        entry: u32,
        source: &[&str],
        target: &[u32],
    ) -> &[FeatureKey] {
        self.keys[entry as usize].get_or_init(|| {
            let (mut links, mut keys) = (Vec::new(), Vec::new());
            table.links(entry, &mut links);
            let words: Vec<&str> = target.iter().map(|&w| table.target_text(w)).collect();
            self.alone(table, source, &words, &links, &mut |name| keys.push(FeatureKey::of(name)));
            keys.into()
        })
    }

    /// Calls `each` with the names of the features of a phrase pair that do not depend on the previous phrase.
    pub(crate) fn alone(
        &self,
        table: &Table,
        source: &[&str],
        target: &[&str],
        links: &[(u8, u8)],
        each: &mut dyn FnMut(&str),
    ) {
        let mut name = String::new();
        if self.on.has(Template::PhrasePair) {
            start(&mut name, Template::PhrasePair, source);
            name.push('~');
            words(&mut name, target);
            each(&name);
        }
        for (template, side) in [(Template::SourceBigram, source), (Template::TargetBigram, target)] {
            if self.on.has(template) {
                for run in side.windows(2).chain(side.windows(3)) {
                    start(&mut name, template, run);
                    each(&name);
                }
            }
        }
        if self.on.has(Template::PhraseLength) {
            name.clear();
            let _ = write!(name, "{}{}~{}", Template::PhraseLength.prefix(), source.len(), target.len());
            each(&name);
        }
        if self.on.has(Template::WordPair) {
            self.word_pairs(table, [source, target], links, each);
        }
        self.unlinked(table, [source, target], links, each);
    }

    /// Whether a word is frequent; `side` is 0 for source and 1 for target words.
    fn is_frequent(&self, table: &Table, side: usize, word: &str) -> bool {
        let id = if side == 0 { table.source_word(word) } else { table.target_word(word) };
        id.is_some_and(|id| self.frequent[side].get(id as usize).copied().unwrap_or(false))
    }

    /// Features of aligned words.
    fn word_pairs(&self, table: &Table, sides: [&[&str]; 2], links: &[(u8, u8)], each: &mut dyn FnMut(&str)) {
        let mut name = String::new();
        for &(s, t) in links {
            name.clear();
            name += Template::WordPair.prefix();
            for (side, at) in [s, t].into_iter().enumerate() {
                if side == 1 {
                    name.push('~');
                }
                match sides[side].get(at as usize) {
                    Some(word) if self.is_frequent(table, side, word) => escape(&mut name, word),
                    _ => name.push('*'),
                }
            }
            each(&name);
        }
    }

    /// Features of frequent words without alignment link.
    fn unlinked(&self, table: &Table, sides: [&[&str]; 2], links: &[(u8, u8)], each: &mut dyn FnMut(&str)) {
        let mut name = String::new();
        for (side, template) in [Template::Deletion, Template::Insertion].into_iter().enumerate() {
            for (at, word) in sides[side].iter().enumerate().filter(|_| self.on.has(template)) {
                let linked = links.iter().any(|&(s, t)| at == usize::from(if side == 0 { s } else { t }));
                if !linked && self.is_frequent(table, side, word) {
                    start(&mut name, template, &[word]);
                    each(&name);
                }
            }
        }
    }
}

/// Whether each source word and each target word is among the most frequent in one-word phrases of the table; ties go
/// to the lower word number.
fn frequent(table: &Table) -> [Vec<bool>; 2] {
    let mut counts = table.words().map(|n| vec![0.0; n]);
    let (mut target, mut seen) = (Vec::new(), Vec::new());
    for word in 0..table.words()[0] as u32 {
        let Some(node) = table.step(table.root(), word) else { continue };
        for entry in node.entries() {
            table.target(entry, &mut target);
            table.counts(entry, &mut seen);
            // The joint count of the phrase pair; 1 if the table has no counts.
            let n = seen.get(2).map_or(1.0, |&n| f64::from(n));
            counts[0][word as usize] += n;
            if let [one] = target[..] {
                counts[1][one as usize] += n;
            }
        }
    }
    counts.map(|counts| {
        let mut order: Vec<usize> = (0..counts.len()).filter(|&w| counts[w] > 0.0).collect();
        order.sort_by(|&a, &b| counts[b].total_cmp(&counts[a]).then(a.cmp(&b)));
        let mut frequent = vec![false; counts.len()];
        for &w in order.iter().take(FREQUENT) {
            frequent[w] = true;
        }
        frequent
    })
}

/// Sets `name` to a template's prefix followed by words.
fn start(name: &mut String, template: Template, all: &[&str]) {
    name.clear();
    *name += template.prefix();
    words(name, all);
}

/// Appends words to a feature name, separated by `_`.
fn words(name: &mut String, all: &[&str]) {
    for (i, word) in all.iter().enumerate() {
        if i > 0 {
            name.push('_');
        }
        escape(name, word);
    }
}

/// Appends a percent-encoded word to a feature name.
fn escape(name: &mut String, word: &str) {
    // A word of the text that looks like a sentence marker is encoded, too.
    let mark = [BEGIN, END].contains(&word);
    for c in word.chars() {
        if "%_~|*=".contains(c) || c.is_control() || c.is_whitespace() || (mark && c == '<') {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                let _ = write!(name, "%{byte:02X}");
            }
        } else {
            name.push(c);
        }
    }
}

/// Marks the absence of a word.
pub(crate) const NO_WORD: u32 = u32::MAX;
/// Word number of the sentence-begin marker.
const BEFORE: u32 = u32::MAX - 1;
/// Word number of the sentence-end marker.
const BEHIND: u32 = u32::MAX - 2;

/// The previous phrase of a hypothesis: its source span, and its last two target words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Last {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) words: [u32; 2],
}

impl Last {
    /// Last two target words before anything is translated.
    pub(crate) const BEGIN: [u32; 2] = [NO_WORD, BEFORE];

    /// Last two words of a target phrase.
    pub(crate) fn words(phrase: &[u32]) -> [u32; 2] {
        match *phrase {
            [.., a, b] => [a, b],
            [a] => [NO_WORD, a],
            [] => [NO_WORD; 2],
        }
    }

    /// Positions of the last two source words.
    fn source(&self) -> [u32; 2] {
        match self.end - self.start {
            0 => [NO_WORD, BEFORE],
            1 => [NO_WORD, self.start as u32],
            _ => [self.end as u32 - 2, self.end as u32 - 1],
        }
    }
}

/// Spelling of source and target words in the search of one sentence.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a> {
    pub(crate) table: &'a Table,
    pub(crate) source: &'a [String],
}

impl<'a> Text<'a> {
    /// Spelling of a target word: numbers of the table's words come first, then those of source positions whose words
    /// are copied.
    pub(crate) fn target(&self, id: u32) -> &'a str {
        match (id as usize).checked_sub(self.table.words()[1]) {
            Some(passed) => &self.source[passed],
            None => self.table.target_text(id),
        }
    }
}

/// A feature at the boundary of two phrases: its template with the orientation or distance, then positions of source
/// words or numbers of target words.
pub(crate) type Seam = [u32; 5];

/// Calls `each` with the features at a phrase boundary that depend on source words only; `span` is the span of the new
/// phrase.
pub(crate) fn source_seams(on: Templates, last: &Last, span: (usize, usize), mut each: impl FnMut(Seam)) {
    let before = last.source();
    let (first, second) = (span.0 as u32, (span.1 - span.0 > 1).then_some(span.0 as u32 + 1));
    if on.has(Template::SourceBigram) {
        runs(Template::SourceBigram, before, (first, second), &mut each);
    }
    if on.has(Template::SourceDistortion) {
        // The truncated distance, shifted to 0…2·MAX_JUMP.
        let jump = ((span.0 + MAX_JUMP as usize).saturating_sub(last.end) as u32).min(2 * MAX_JUMP);
        let kind = Template::SourceDistortion as u32 + jump * 16;
        each([kind, before[1], first, NO_WORD, NO_WORD]);
    }
}

/// Calls `each` with the features at a phrase boundary that depend on target words. `start` is the first source
/// position of the new phrase, `phrase` its target words.
#[inline]
pub(crate) fn target_seams(
    on: Templates,
    last: &Last,
    (start, orientation): (usize, usize),
    phrase: &[u32],
    mut each: impl FnMut(Seam),
) {
    let Some(&first) = phrase.first().filter(|_| last.words[1] != NO_WORD) else { return };
    if on.has(Template::TargetBigram) {
        runs(Template::TargetBigram, last.words, (first, phrase.get(1).copied()), &mut each);
    }
    if on.has(Template::Orientation) {
        let kind = Template::Orientation as u32 + (orientation as u32 * 16);
        each([kind, last.source()[1], start as u32, last.words[1], first]);
    }
}

/// Calls `each` with the features at the end of the sentence.
pub(crate) fn end_seams(on: Templates, last: &Last, mut each: impl FnMut(Seam)) {
    let sides = [(Template::SourceBigram, last.source()), (Template::TargetBigram, last.words)];
    for (template, before) in sides {
        if on.has(template) && before[1] != NO_WORD {
            runs(template, before, (BEHIND, None), &mut each);
        }
    }
}

/// Sequences of two and three words across a phrase boundary: `before` are the last words before it, `first` and
/// `second` the first words after it.
#[inline]
fn runs(
    template: Template,
    before: [u32; 2],
    (first, second): (u32, Option<u32>),
    each: &mut impl FnMut(Seam),
) {
    let kind = template as u32;
    each([kind, before[1], first, NO_WORD, NO_WORD]);
    if before[0] != NO_WORD {
        each([kind, before[0], before[1], first, NO_WORD]);
    }
    if let Some(second) = second {
        each([kind, before[1], first, second, NO_WORD]);
    }
}

/// Cache of the features at phrase boundaries in the search of one sentence, with keys and weights.
pub(crate) struct Seams<'d> {
    /// Templates in use.
    pub(crate) on: Templates,
    weights: &'d Weights,
    /// Index of each feature in `all`.
    known: FxHashMap<Seam, u32>,
    all: Vec<(Seam, FeatureKey, f64)>,
    /// Scratch buffer for names.
    name: String,
}

impl<'d> Seams<'d> {
    /// Returns an empty cache; `None` if no template of the model depends on the previous phrase.
    pub(crate) fn new(model: &Model, weights: &'d Weights) -> Option<Self> {
        let on = model.templates();
        on.look_back().then(|| Seams {
            on,
            weights,
            known: FxHashMap::default(),
            all: Vec::new(),
            name: String::new(),
        })
    }

    /// Number of features in the cache.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Index of a feature, if it is in the cache.
    pub(crate) fn number(&self, seam: Seam) -> Option<u32> {
        self.known.get(&seam).copied()
    }

    /// Key of the feature with this index.
    pub(crate) fn key(&self, number: u32) -> FeatureKey {
        self.all[number as usize].1
    }

    /// Calls `each` with the key and name of every cached feature whose key `wanted` accepts.
    pub(crate) fn names(
        &self,
        wanted: &dyn Fn(FeatureKey) -> bool,
        text: Text<'_>,
        each: &mut dyn FnMut(FeatureKey, &str),
    ) {
        let mut name = String::new();
        for (seam, key, _) in self.all.iter().filter(|s| wanted(s.1)) {
            name.clear();
            spell(&mut name, *seam, text);
            each(*key, &name);
        }
    }

    /// Weight of a feature, which is added to the cache if it is new.
    #[inline]
    pub(crate) fn weight(&mut self, seam: Seam, text: Text<'_>) -> f64 {
        let next = self.all.len() as u32;
        let number = *self.known.entry(seam).or_insert(next);
        if number == next {
            self.name.clear();
            spell(&mut self.name, seam, text);
            let key = FeatureKey::of(&self.name);
            self.all.push((seam, key, self.weights.get(key)));
        }
        self.all[number as usize].2
    }
}

/// Appends the name of a feature at a phrase boundary.
fn spell(name: &mut String, seam: Seam, text: Text<'_>) {
    let template = Template::ALL[seam[0] as usize % 16];
    let put = |name: &mut String, of_source: bool, id: u32| match id {
        BEFORE => *name += BEGIN,
        BEHIND => *name += END,
        _ if of_source => escape(name, &text.source[id as usize]),
        _ => escape(name, text.target(id)),
    };
    *name += template.prefix();
    let target = template == Template::TargetBigram;
    put(name, !target, seam[1]);
    name.push('_');
    put(name, !target, seam[2]);
    match template {
        Template::Orientation => {
            name.push('~');
            put(name, false, seam[3]);
            name.push('_');
            put(name, false, seam[4]);
            name.push('~');
            *name += ORIENTATIONS[seam[0] as usize / 16];
        }
        Template::SourceDistortion => {
            let _ = write!(name, "~{}", i64::from(seam[0] / 16) - i64::from(MAX_JUMP));
        }
        _ if seam[3] != NO_WORD => {
            name.push('_');
            put(name, !target, seam[3]);
        }
        _ => {}
    }
}
