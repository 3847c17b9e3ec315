//! Model directories: a `luthier.toml`, and the table, language models and weights that it refers to.

use luthier_core::{Error, Result};
use luthier_io::{AtomicFile, Input};
use serde::{Deserialize, Deserializer, Serialize, de};
use std::path::{Path, PathBuf};

/// Kind of a translation model: phrase-based or hierarchical.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum ModelKind {
    /// Phrase-based, with lexicalised reordering.
    Phrase,
    /// Hierarchical (synchronous rules with gaps).
    Hiero,
}

impl ModelKind {
    /// Name of the kind in `luthier.toml` and on the command line: `phrase` or `hiero`.
    pub fn name(self) -> &'static str {
        match self {
            ModelKind::Phrase => "phrase",
            ModelKind::Hiero => "hiero",
        }
    }
}

/// Contents of `luthier.toml`: the files of a model, and recommended search limits. File names are absolute, or
/// relative to the model directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ModelConfig {
    /// Kind of the model: phrase-based or hierarchical.
    pub kind: ModelKind,
    /// File name of the binary phrase or rule table.
    pub table: PathBuf,
    /// File name of the initial weights.
    pub weights: PathBuf,
    /// File names of the language models.
    pub lm: Vec<PathBuf>,
    /// File name of the tokenisers and truecasers of a model that translates raw text; `None` if the model's text is
    /// tokenised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<PathBuf>,
    /// Whether the model has a feature per language model that counts its out-of-vocabulary words.
    #[serde(default)]
    pub oov: bool,
    /// Value of the glue feature of each glue rule; `None` means 1.
    #[serde(default, deserialize_with = "finite", skip_serializing_if = "Option::is_none")]
    pub glue: Option<f64>,
    /// Recommended maximum span of a rule, in source words.
    #[serde(default, deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub span_limit: Option<usize>,
    /// Recommended maximum number of translations per source phrase or source side of a rule.
    #[serde(default, deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub table_limit: Option<usize>,
    /// Recommended distortion limit, in source words.
    #[serde(default, deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub distortion_limit: Option<usize>,
}

/// File name of the table in a new model directory.
const TABLE: &str = "table.bin";
/// File name of the weights in a new model directory.
const WEIGHTS: &str = "weights.txt";

impl ModelConfig {
    /// Returns the configuration of a new model without language models, with the default file names `table.bin` and
    /// `weights.txt`.
    pub fn new(kind: ModelKind) -> Self {
        ModelConfig {
            kind,
            table: TABLE.into(),
            weights: WEIGHTS.into(),
            lm: Vec::new(),
            text: None,
            oov: false,
            glue: None,
            span_limit: None,
            table_limit: None,
            distortion_limit: None,
        }
    }

    /// Parses the text of a `luthier.toml`. `name` is the file name in error messages. Fails if a key is missing,
    /// unknown or has an invalid value; the error names the line where possible.
    ///
    /// ```
    /// use luthier_decode::{ModelConfig, ModelKind};
    ///
    /// let text = "kind = 'hiero'\ntable = 'table.bin'\nweights = 'weights.txt'\nlm = ['lm0.bin']\n";
    /// assert_eq!(ModelConfig::parse("m", text).unwrap().kind, ModelKind::Hiero);
    /// let e = ModelConfig::parse("m", &text.replace("hiero", "tree")).unwrap_err();
    /// assert_eq!(e.line(), Some(1));
    /// ```
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        toml::from_str(text).map_err(|e: toml::de::Error| {
            let message = e.message().replace('\n', " ");
            // A missing key has an empty span at the beginning of the file.
            let of_line = |s: &std::ops::Range<usize>| s.end > 0 && text.is_char_boundary(s.start);
            let error = match e.span().filter(of_line) {
                Some(span) => {
                    let line = text[..span.start].matches('\n').count();
                    let found = text.lines().nth(line).unwrap_or_default().trim();
                    Error::at(name, line as u64 + 1, format!("found `{found}`: {message}"))
                }
                None => Error::in_file(name, message),
            };
            error.hint("create the model again, or fix the file by hand")
        })
    }
}

/// Deserialises an integer, 0 or more.
fn count<'de, D: Deserializer<'de>>(input: D) -> std::result::Result<Option<usize>, D::Error> {
    let n = i64::deserialize(input)?;
    let wrong = || de::Error::custom(format!("{n} is negative, expected 0 or more"));
    usize::try_from(n).map(Some).map_err(|_| wrong())
}

/// Deserialises a finite number.
fn finite<'de, D: Deserializer<'de>>(input: D) -> std::result::Result<Option<f64>, D::Error> {
    let x = f64::deserialize(input)?;
    if x.is_finite() {
        return Ok(Some(x));
    }
    Err(de::Error::custom(format!("{x} is not a finite number such as 1.0")))
}

/// A model directory, as `luthier train` and `luthier import` create it.
///
/// ```
/// use luthier_decode::{ModelConfig, ModelDir, ModelKind};
///
/// let dir = tempfile::tempdir().unwrap();
/// let config = ModelConfig { lm: vec!["lm0.bin".into()], ..ModelConfig::new(ModelKind::Phrase) };
/// let made = ModelDir::create(dir.path(), config, "a model for this test").unwrap();
/// assert_eq!(ModelDir::open(dir.path()).unwrap(), made);
/// assert_eq!(made.table(), dir.path().join("table.bin"));
/// assert_eq!(made.lms(), [dir.path().join("lm0.bin")]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ModelDir {
    /// Path of the model directory.
    pub path: PathBuf,
    /// Contents of the directory's `luthier.toml`.
    pub config: ModelConfig,
}

impl ModelDir {
    /// Name of the configuration file in a model directory.
    pub const FILE: &'static str = "luthier.toml";

    /// Reads the `luthier.toml` of a model directory. Fails if the file does not exist or is invalid. The files that
    /// it refers to are not opened.
    pub fn open(path: &Path) -> Result<Self> {
        let file = path.join(Self::FILE);
        let name = file.display().to_string();
        if !path.exists() {
            return Err(Error::in_file(
                path.display().to_string(),
                "does not exist, expected a model directory",
            )
            .of_kind(luthier_core::ErrorKind::NotFound)
            .hint("give a directory created by `luthier train` or `luthier import`"));
        }
        let bytes = std::fs::read(&file).map_err(|e| {
            Error::io(&name, "open it", &e)
                .hint("give a model directory created by `luthier train` or `luthier import`")
        })?;
        let text = String::from_utf8(bytes).map_err(|_| Error::in_file(&name, "is not UTF-8"))?;
        Ok(ModelDir { path: path.to_owned(), config: ModelConfig::parse(&name, &text)? })
    }

    /// Writes a `luthier.toml` into a directory, with a comment in its first line. Call it last: a directory without
    /// this file is not a model directory. Fails if the file cannot be written.
    pub fn create(path: &Path, config: ModelConfig, comment: &str) -> Result<Self> {
        let file = path.join(Self::FILE);
        let text = toml::to_string(&config)
            .map_err(|e| Error::in_file(file.display().to_string(), format!("cannot be written: {e}")))?;
        let text = format!("# {}\n{text}", comment.replace(char::is_control, " "));
        AtomicFile::write_all_to(&file, text.as_bytes())?;
        Ok(ModelDir { path: path.to_owned(), config })
    }

    /// Removes the `luthier.toml` of a directory, so that it is not taken for a model while its files are being
    /// replaced.
    pub fn invalidate(path: &Path) {
        let _ = std::fs::remove_file(path.join(Self::FILE));
    }

    /// Whether a directory contains a complete model.
    pub fn exists(path: &Path) -> bool {
        path.join(Self::FILE).exists()
    }

    /// Path of the binary phrase or rule table.
    pub fn table(&self) -> PathBuf {
        self.path.join(&self.config.table)
    }

    /// Paths of the language models.
    pub fn lms(&self) -> Vec<PathBuf> {
        self.config.lm.iter().map(|name| self.path.join(name)).collect()
    }

    /// Path of the initial weights.
    pub fn weights(&self) -> PathBuf {
        self.path.join(&self.config.weights)
    }

    /// Path of the tokenisers and truecasers of a model that translates raw text.
    pub fn text(&self) -> Option<PathBuf> {
        self.config.text.as_ref().map(|name| self.path.join(name))
    }

    /// Returns digests of the contents of the table, of each language model and, if it has them, of the tokenisers and
    /// truecasers, in this order. Reads these files completely; fails if one cannot be read.
    pub fn digests(&self) -> Result<Vec<String>> {
        let files = std::iter::once(self.table()).chain(self.lms()).chain(self.text());
        files.map(|path| Input::open(&path)?.digest()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files as `train` and `import` wrote them before [`ModelConfig`] existed.
    const TRAINED: &str = "# a model of luthier 0.1.0\nkind = \"phrase\"\ntable = \"table.bin\"\nweights = \"weights.txt\"\n\
                           lm = [\"lm0.bin\", \"/elsewhere/lm.bin\"]\noov = false\n";
    const IMPORTED: &str = "# a model of luthier 0.1.0, imported from moses.ini\nkind = \"hiero\"\ntable = \"table.bin\"\n\
                            weights = \"weights.txt\"\nlm = []\nglue = 0.9999999999999999\nspan-limit = 20\ntable-limit = 0\n\
                            distortion-limit = 60\n";

    #[test]
    fn directories_of_before_are_read() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("luthier.toml"), TRAINED).unwrap();
        let trained = ModelDir::open(dir.path()).unwrap();
        let expected = ModelConfig {
            lm: vec!["lm0.bin".into(), "/elsewhere/lm.bin".into()],
            ..ModelConfig::new(ModelKind::Phrase)
        };
        assert_eq!(trained.config, expected);
        assert_eq!(trained.lms(), [dir.path().join("lm0.bin"), "/elsewhere/lm.bin".into()]);
        // Writing the configuration reproduces the file.
        ModelDir::create(dir.path(), expected, "a model of luthier 0.1.0").unwrap();
        assert_eq!(std::fs::read_to_string(dir.path().join("luthier.toml")).unwrap(), TRAINED);
        std::fs::write(dir.path().join("luthier.toml"), IMPORTED).unwrap();
        let imported = ModelConfig {
            glue: Some(0.9999999999999999),
            span_limit: Some(20),
            table_limit: Some(0),
            distortion_limit: Some(60),
            ..ModelConfig::new(ModelKind::Hiero)
        };
        assert_eq!(ModelDir::open(dir.path()).unwrap().config, imported);
    }

    #[test]
    fn mistakes_are_named() {
        let hint = "; create the model again, or fix the file by hand";
        for (from, to, expected) in [
            (
                "oov = false",
                "ooov = false",
                "m:6: found `ooov = false`: unknown field `ooov`, expected one of `kind`",
            ),
            (
                "oov = false",
                "oov = \"yes\"",
                "m:6: found `oov = \"yes\"`: invalid type: string \"yes\", expected a boolean",
            ),
            ("oov = false", "oov =", "m:6: found `oov =`: "),
            ("oov = false", "glue = inf", "m:6: found `glue = inf`: inf is not a finite number such as 1.0"),
            (
                "oov = false",
                "table-limit = -3",
                "m:6: found `table-limit = -3`: -3 is negative, expected 0 or more",
            ),
            (
                "oov = false",
                "span-limit = 1.5",
                "m:6: found `span-limit = 1.5`: invalid type: floating point `1.5`",
            ),
            (
                "\"phrase\"",
                "\"tree\"",
                "m:2: found `kind = \"tree\"`: unknown variant `tree`, expected `phrase` or `hiero`",
            ),
            ("table = \"table.bin\"", "", "m: missing field `table`"),
        ] {
            let message = ModelConfig::parse("m", &TRAINED.replace(from, to)).unwrap_err().to_string();
            assert!(message.starts_with(expected) && message.ends_with(hint), "{message}");
        }
    }
}
