//! Raw parallel text: reading, cleaning and tokenisation before training.

use super::stages::Stages;
use crate::{
    core::{Error, Progress, Result},
    io::{
        AtomicFile, Input, Meter,
        bitext::{Skipped, read_bitext},
    },
    text::{Cleaning, Language, TextModel, clean},
};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::{
    io::Cursor,
    path::{Path, PathBuf},
};

/// Name of the tokenisers and truecasers in the model directory.
pub(super) const TEXT: &str = "text.toml";
/// Names of the tokenised text in the model directory.
const SOURCE: &str = "source.gz";
pub(super) const TARGET: &str = "target.gz";

/// Languages of raw parallel text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Languages {
    /// Language that is translated.
    #[serde(rename = "source-lang")]
    pub source: Language,
    /// Language of the translations.
    #[serde(rename = "target-lang")]
    pub target: Language,
}

impl Languages {
    /// Returns the given languages of source and target; for those not given the languages that the extensions of the files
    /// name (`train.de`), or else general rules.
    pub fn choose(given: [Option<Language>; 2], parallel: &Parallel) -> Self {
        let named = match parallel {
            Parallel::Files(source, target) => [source, target].map(|path| Language::of_file(path)),
            Parallel::Bitext(_) => [None, None],
        };
        let [source, target] = given;
        let [of_source, of_target] = named.map(|language| language.unwrap_or_else(Language::general));
        Languages { source: source.unwrap_or(of_source), target: target.unwrap_or(of_target) }
    }
}

/// Files of a parallel text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parallel {
    /// Source text and target text, line by line.
    Files(PathBuf, PathBuf),
    /// One file with both languages (raw text only): tab-separated columns, TMX, XLIFF or PO.
    Bitext(PathBuf),
}

/// Sentence pairs, and the numbers of entries of a bilingual file that are not sentence pairs.
type Pairs = (Vec<(String, String)>, Option<Skipped>);

impl Parallel {
    /// Returns the paths of the files.
    pub(super) fn paths(&self) -> Vec<&Path> {
        match self {
            Parallel::Files(source, target) => vec![source, target],
            Parallel::Bitext(path) => vec![path],
        }
    }

    /// Opens both files of a text.
    pub(super) fn inputs(&self) -> Result<[Input; 2]> {
        match self {
            Parallel::Files(source, target) => Ok([Input::open(source)?, Input::open(target)?]),
            Parallel::Bitext(path) => {
                Err(Error::in_file(path.display().to_string(), "is one file, expected two"))
            }
        }
    }

    /// Reads all sentence pairs, with the numbers of entries of a bilingual file that are not pairs. Fails if two files differ
    /// in their number of lines.
    fn pairs(&self, languages: &Languages, progress: Progress<'_>) -> Result<Pairs> {
        if let Parallel::Bitext(path) = self {
            let read = read_bitext(path, Some((languages.source.code(), languages.target.code())))?;
            return Ok((read.pairs, Some(read.skipped)));
        }
        let [mut source, mut target] = self.inputs()?;
        let meter = Meter::new(progress, "lines", 0);
        let (mut pairs, mut f, mut e) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            let ended = [!source.line(&mut f)?, !target.line(&mut e)?];
            match ended {
                [true, true] => break,
                [false, false] => pairs.push((source.utf8(&f)?.to_owned(), target.utf8(&e)?.to_owned())),
                _ => {
                    let (short, long) = if ended[0] { (&source, &target) } else { (&target, &source) };
                    let message =
                        format!("the file ends after line {}, but {} goes on", pairs.len(), long.name());
                    return Err(Error::at(short.name(), pairs.len() as u64 + 1, message).hint(
                        "give files in which line N of one is the translation of line N of the other",
                    ));
                }
            }
            meter.add(1)?;
        }
        Ok((pairs, None))
    }
}

/// A raw parallel text, cleaned and tokenised.
pub(super) struct RawText {
    /// Tokenisers and truecasers, learned from the text.
    model: TextModel,
    /// Numbers of sentence pairs that cleaning has left out.
    pub(super) cleaning: Cleaning,
    /// Numbers of entries of a bilingual file that are not sentence pairs; `None` for two files.
    pub(super) skipped: Option<Skipped>,
    /// Tokens of both sides, one line per sentence pair.
    sides: [Vec<u8>; 2],
    /// Names of the files, for messages.
    names: [String; 2],
}

impl RawText {
    /// Reads, cleans and tokenises a raw text. Fails if a file cannot be read, or if cleaning leaves nothing.
    pub(super) fn read(parallel: &Parallel, languages: &Languages, progress: Progress<'_>) -> Result<Self> {
        let (mut pairs, skipped) = parallel.pairs(languages, progress)?;
        let cleaning = clean(&mut pairs);
        let name = |path: &Path| path.display().to_string();
        let paths = parallel.paths();
        let names = [name(paths[0]), name(paths[paths.len() - 1])];
        if pairs.is_empty() {
            return Err(Error::in_file(&names[0], format!("no sentence pair is left of {}", cleaning.pairs))
                .hint("check that the two sides are translations of each other, line by line"));
        }
        let model = TextModel::train(&pairs, &languages.source, &languages.target);
        let prepared: Vec<(String, String)> = pairs
            .par_iter()
            .map(|(source, target)| {
                let (source, target) = model.prepare_pair(source, target);
                (source.tokens, target.tokens)
            })
            .collect();
        let mut sides = [Vec::new(), Vec::new()];
        for (source, target) in prepared {
            for (side, tokens) in sides.iter_mut().zip([source, target]) {
                side.extend_from_slice(tokens.as_bytes());
                side.push(b'\n');
            }
        }
        Ok(RawText { model, cleaning, skipped, sides, names })
    }

    /// Returns the tokens as inputs.
    pub(super) fn inputs(&self) -> Result<[Input; 2]> {
        let open = |side: usize| Input::new(&self.names[side], Cursor::new(self.sides[side].clone()));
        Ok([open(0)?, open(1)?])
    }

    /// Writes the tokenisers and truecasers and the tokens to the model directory, and returns the names of the files.
    pub(super) fn write(&self, stages: &Stages<'_>) -> Result<Vec<String>> {
        self.model.save(&stages.path(TEXT))?;
        for (name, side) in [SOURCE, TARGET].into_iter().zip(&self.sides) {
            AtomicFile::write_all_to(&stages.path(name), side)?;
        }
        Ok([TEXT, SOURCE, TARGET].map(str::to_owned).into())
    }
}
