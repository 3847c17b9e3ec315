//! Languages: the rules of tokenisation, of numbers and of sentence ends that depend on them.

use luthier_core::{Error, Result};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// How an apostrophe between two letters divides a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Apostrophe {
    /// Before the apostrophe: *don* + *'t*.
    Before,
    /// After the apostrophe: *l'* + *eau*.
    After,
    /// Not at all.
    Within,
}

/// A language by its code, such as `en`, `pt-BR` or `zh`. Codes without rules of their own get general rules.
///
/// ```
/// use luthier_text::Language;
///
/// assert_eq!(Language::new("pt-BR")?.code(), "pt-BR");
/// assert!(Language::new("fr")?.has_rules() && !Language::new("fi")?.has_rules());
/// assert_eq!(Language::of_file("data/train.es.gz".as_ref()).unwrap().code(), "es");
/// assert!(Language::new("Spanish language").is_err());
/// # Ok::<(), luthier_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Language {
    code: String,
}

impl Language {
    /// Languages with abbreviation lists and apostrophe rules.
    pub const WITH_RULES: [&'static str; 8] = ["cs", "de", "en", "es", "fr", "it", "nl", "pt"];

    /// Returns the language with a code of ISO 639 (two or three letters), optionally with a region or script after
    /// `-` or `_`. Fails if `code` is not of this form.
    pub fn new(code: &str) -> Result<Self> {
        let (main, rest) =
            code.split_once(['-', '_']).map_or((code, None), |(main, rest)| (main, Some(rest)));
        let is_main = (2..=3).contains(&main.len()) && main.bytes().all(|b| b.is_ascii_alphabetic());
        let is_rest = rest.is_none_or(|r| {
            !r.is_empty() && r.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        });
        if is_main && is_rest {
            return Ok(Language { code: code.to_owned() });
        }
        Err(Error::new(format!("`{code}` is not a language code"))
            .hint("expected two or three letters of ISO 639, such as en, or with a region, such as pt-BR"))
    }

    /// Returns the language without rules of its own.
    pub fn general() -> Self {
        Language { code: "und".to_owned() }
    }

    /// Returns the language that the extension of a file names (`train.es`, `train.es.gz`); `None` if the extension is
    /// not a code of two or three letters, or is that of a text file (`.txt`).
    pub fn of_file(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let plain =
            [".gz", ".bz2", ".xz", ".zst"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        let (stem, code) = plain.rsplit_once('.')?;
        let other = matches!(
            code,
            "txt" | "tok" | "raw" | "out" | "src" | "tgt" | "trg" | "ref" | "hyp" | "tsv" | "csv"
        );
        if stem.is_empty() || other { None } else { Language::new(code).ok() }
    }

    /// Returns the code, as it was given.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// Returns the code without region and script, in lower case.
    pub fn main(&self) -> String {
        self.code.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase()
    }

    /// Whether the language has an abbreviation list and apostrophe rules, or one token per character.
    pub fn has_rules(&self) -> bool {
        let main = self.main();
        Self::WITH_RULES.contains(&main.as_str()) || matches!(main.as_str(), "zh" | "ja")
    }

    /// How an apostrophe between letters divides a word.
    pub(crate) fn apostrophe(&self) -> Apostrophe {
        match self.main().as_str() {
            "en" => Apostrophe::Before,
            "fr" | "it" | "ca" | "ga" => Apostrophe::After,
            _ => Apostrophe::Within,
        }
    }

    /// Whether the decimal mark is a comma.
    pub(crate) fn has_decimal_comma(&self) -> bool {
        !matches!(self.main().as_str(), "en" | "zh" | "ja" | "ko" | "th" | "he" | "hi" | "ga" | "und")
    }

    /// Returns the abbreviations of the language, without their final full stops.
    pub(crate) fn abbreviations(&self) -> FxHashSet<&'static str> {
        let list = match self.main().as_str() {
            "cs" => include_str!("abbreviations/cs.txt"),
            "de" => include_str!("abbreviations/de.txt"),
            "en" => include_str!("abbreviations/en.txt"),
            "es" => include_str!("abbreviations/es.txt"),
            "fr" => include_str!("abbreviations/fr.txt"),
            "it" => include_str!("abbreviations/it.txt"),
            "nl" => include_str!("abbreviations/nl.txt"),
            "pt" => include_str!("abbreviations/pt.txt"),
            _ => "",
        };
        list.split_ascii_whitespace().collect()
    }
}

impl TryFrom<String> for Language {
    type Error = Error;

    fn try_from(code: String) -> Result<Self> {
        Language::new(&code)
    }
}

impl From<Language> for String {
    fn from(language: Language) -> String {
        language.code
    }
}
