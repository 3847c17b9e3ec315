//! Stages of training: their statistics, their log `train.jsonl`, and the result of training.

use super::{Event, Observer, raw::RawText, spec::TrainSpec};
use crate::{
    core::{Error, Result},
    io::{AtomicFile, WorkDir, WorkKind, bitext::Skipped},
    lm,
    text::Cleaning,
    train::{Corpus, Dropped},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned, ser::SerializeStruct};
use serde_json::{Map, Value};
use std::{
    path::{Path, PathBuf},
    time::Instant,
};

/// A stage of training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Read both sides of the parallel text and count sentence pairs and words.
    Text,
    /// Align words.
    Align,
    /// Extract phrases or rules.
    Table,
    /// Estimate or convert language models.
    Lm,
    /// Write initial weights and the configuration of the model.
    Weights,
}

impl Stage {
    /// Returns the name of the stage in `train.jsonl`.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Text => "text",
            Stage::Align => "align",
            Stage::Table => "table",
            Stage::Lm => "lm",
            Stage::Weights => "weights",
        }
    }
}

/// A complete stage of training with its statistics: one line of `train.jsonl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Done<F> {
    /// The stage that is complete.
    pub stage: Stage,
    /// Statistics of the stage.
    pub figures: F,
    /// Names and sizes in bytes of the files that the stage has written to the model directory.
    pub files: Vec<(String, u64)>,
    /// Duration of the stage in seconds, rounded to milliseconds.
    pub seconds: f64,
    /// Whether an earlier process completed the stage.
    pub resumed: bool,
}

impl<F: Serialize> Serialize for Done<F> {
    fn serialize<S: Serializer>(&self, out: S) -> std::result::Result<S::Ok, S::Error> {
        self.line().map_err(serde::ser::Error::custom)?.serialize(out)
    }
}

impl<F: Serialize> Done<F> {
    /// Returns the stage as the JSON of its line in `train.jsonl`.
    fn line(&self) -> serde_json::Result<Value> {
        let mut line = serde_json::to_value(&self.figures)?;
        let files: Map<String, Value> = self.files.iter().map(|(f, n)| (f.clone(), (*n).into())).collect();
        line["files"] = files.into();
        line["stage"] = self.stage.name().into();
        line["seconds"] = self.seconds.into();
        Ok(line)
    }
}

impl<F: DeserializeOwned> Done<F> {
    /// Parses the line of a stage in `train.jsonl`; `None` if a value is missing.
    fn read(stage: Stage, line: &Value) -> Option<Self> {
        let files = line["files"].as_object()?.iter().map(|(f, n)| Some((f.clone(), n.as_u64()?)));
        Some(Done {
            stage,
            files: files.collect::<Option<_>>()?,
            seconds: line["seconds"].as_f64()?,
            resumed: true,
            figures: serde_json::from_value(line.clone()).ok()?,
        })
    }
}

/// Statistics of the parallel text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextFigures {
    /// Number of lines of each of the two files.
    pub lines: usize,
    /// Number of sentence pairs that are kept for training.
    pub kept: usize,
    /// Numbers of sentence pairs of raw text that cleaning has left out; `None` for tokenised text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleaning: Option<Cleaning>,
    /// Numbers of entries of a bilingual file that are not sentence pairs; `None` for two files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_read: Option<Skipped>,
    /// Numbers of sentence pairs that are skipped, by reason.
    pub dropped: Dropped,
    /// Number of source words in the pairs that are kept.
    pub source_words: usize,
    /// Number of target words in the pairs that are kept.
    pub target_words: usize,
    /// Number of distinct source words in the pairs that are kept.
    pub source_vocabulary: usize,
    /// Number of distinct target words in the pairs that are kept.
    pub target_vocabulary: usize,
}

impl TextFigures {
    pub(super) fn new(corpus: &Corpus, raw: Option<&RawText>) -> Self {
        TextFigures {
            lines: corpus.total,
            cleaning: raw.map(|raw| raw.cleaning),
            not_read: raw.and_then(|raw| raw.skipped),
            kept: corpus.len(),
            dropped: corpus.dropped,
            source_words: corpus.source.tokens(),
            target_words: corpus.target.tokens(),
            source_vocabulary: corpus.source.vocabulary.len(),
            target_vocabulary: corpus.target.vocabulary.len(),
        }
    }
}

/// Statistics of the word alignment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AlignFigures {
    /// Perplexities of the aligner after its last iteration; `None` if the alignment was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub perplexity: Option<Perplexity>,
    /// Number of links of the symmetrised alignment.
    pub links: usize,
}

/// Perplexities of an aligner on the training text, one for each direction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Perplexity {
    /// Perplexity per target word of the target side given the source side.
    #[serde(deserialize_with = "number")]
    pub target_given_source: f64,
    /// Perplexity per source word of the source side given the target side.
    #[serde(deserialize_with = "number")]
    pub source_given_target: f64,
}

/// Statistics of the phrase or rule table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableFigures {
    /// Number of distinct phrase pairs or rules.
    pub entries: u64,
    /// Number of distinct source sides.
    pub sources: u64,
    /// Number of extracted instances of phrase pairs or rules.
    pub found: u64,
    /// Numbers of rules with zero, one and two gaps; `None` for phrases.
    pub by_gaps: Option<[u64; 3]>,
    /// Size of the binary table in bytes.
    pub bytes: usize,
}

/// Statistics of the language models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LmFigures {
    /// The language models, in the order of their features.
    pub models: Vec<LmFile>,
}

/// Statistics of one language model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LmFile {
    /// Path of the binary: relative to the model directory, or absolute for a given binary.
    pub file: String,
    /// Order of the language model.
    pub order: usize,
    /// Size of the vocabulary, `<unk>`, `<s>` and `</s>` included.
    pub words: usize,
    /// Numbers of n-grams by order, from unigrams on.
    pub counts: Vec<u64>,
    /// Size of the data structures for queries, in bytes.
    pub bytes: usize,
    /// Perplexity of the target text, on which an estimated model was trained; unknown words included.
    #[serde(deserialize_with = "number")]
    pub perplexity_of_target: f64,
}

impl LmFile {
    pub(super) fn new(file: String, model: &lm::Model, perplexity_of_target: f64) -> Self {
        let info = model.info();
        LmFile {
            file,
            order: model.order(),
            words: model.words(),
            counts: info.counts,
            bytes: info.bytes,
            perplexity_of_target,
        }
    }
}

/// Statistics of a stage that has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoFigures {}

/// Deserialises a number; `null`, which JSON has for numbers that are not finite, becomes NaN.
fn number<'de, D: Deserializer<'de>>(input: D) -> std::result::Result<f64, D::Error> {
    Ok(Option::deserialize(input)?.unwrap_or(f64::NAN))
}

/// Result of training: the model directory and the statistics of every stage. Serialises as the summary of
/// `luthier train --json`.
#[derive(Debug, Clone, PartialEq)]
pub struct Trained {
    /// Path of the model directory.
    pub model: PathBuf,
    /// Stage `text`: statistics of the parallel text.
    pub text: Done<TextFigures>,
    /// Stage `align`: statistics of the word alignment.
    pub align: Done<AlignFigures>,
    /// Stage `table`: statistics of the phrase or rule table.
    pub table: Done<TableFigures>,
    /// Stage `lm`: statistics of the language models.
    pub lm: Done<LmFigures>,
    /// Stage `weights`: files of the initial weights and the configuration.
    pub weights: Done<NoFigures>,
    /// Total duration in seconds, without stages that an earlier process completed.
    pub seconds: f64,
}

impl Serialize for Trained {
    fn serialize<S: Serializer>(&self, out: S) -> std::result::Result<S::Ok, S::Error> {
        let stages = (&self.text, &self.align, &self.table, &self.lm, &self.weights);
        let mut out = out.serialize_struct("Trained", 3)?;
        out.serialize_field("model", &self.model.display().to_string())?;
        out.serialize_field("stages", &stages)?;
        out.serialize_field("seconds", &self.seconds)?;
        out.end()
    }
}

impl Trained {
    /// Returns all stages in order, with their durations in seconds.
    pub fn stage_seconds(&self) -> [(Stage, f64); 5] {
        [
            (Stage::Text, self.text.seconds),
            (Stage::Align, self.align.seconds),
            (Stage::Table, self.table.seconds),
            (Stage::Lm, self.lm.seconds),
            (Stage::Weights, self.weights.seconds),
        ]
    }
}

const KIND: WorkKind =
    WorkKind { file: "train.toml", what: "model", flag: "--model", parts: &["alignment.gz", "table.bin"] };

/// Name of the log of stages in the model directory.
const LOG: &str = "train.jsonl";

/// A model directory during training, with the lines of its log: one per complete stage.
pub(super) struct Stages<'a> {
    work: WorkDir,
    done: Vec<Value>,
    observer: Option<Observer<'a>>,
}

impl<'a> Stages<'a> {
    /// Creates a model directory, or opens one with the same settings. Fails if the settings differ, or if another
    /// process is using the directory.
    pub(super) fn open(path: &Path, spec: &TrainSpec, observer: Option<Observer<'a>>) -> Result<Self> {
        let read = |path: &Path| -> Vec<Value> {
            let text = std::fs::read_to_string(path.join(LOG)).unwrap_or_default();
            text.lines().map_while(|l| serde_json::from_str(l).ok()).collect()
        };
        let work = WorkDir::open(path, &KIND, spec, |path| read(path).len() > 1)?;
        Ok(Stages { done: read(path), work, observer })
    }

    /// Returns the path of the model directory.
    pub(super) fn directory(&self) -> &Path {
        self.work.path()
    }

    /// Returns the path of a file in the model directory.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    /// Removes a directory that was created by this process, unless a stage besides `text` is complete.
    pub(super) fn abandon(self) {
        if self.done.len() < 2 {
            self.work.discard();
        }
    }

    /// Returns a stage from the log; `None` if it is not complete, or if a file of it is missing or has another size.
    fn complete<F: DeserializeOwned>(&self, stage: Stage) -> Option<Done<F>> {
        let line = self.done.iter().find(|d| d["stage"] == stage.name())?;
        let found = Done::read(stage, line)?;
        let size = |name: &str| std::fs::metadata(self.path(name)).map(|m| m.len()).ok();
        let whole = found.files.iter().all(|(name, bytes)| size(name) == Some(*bytes));
        whole.then_some(found)
    }

    /// Runs a stage unless it is complete, and adds it to the log after its files are written. `work` returns the
    /// statistics and the names of the files.
    pub(super) fn stage<F: Serialize + DeserializeOwned>(
        &mut self,
        stage: Stage,
        work: impl FnOnce(&Self) -> Result<(F, Vec<String>)>,
    ) -> Result<Done<F>> {
        if let Some(done) = self.complete(stage) {
            self.tell(&Event::End { stage, seconds: done.seconds, resumed: true });
            return Ok(done);
        }
        self.tell(&Event::Begin(stage));
        let clock = Instant::now();
        let (figures, names) = work(self)?;
        let mut files = Vec::new();
        for name in names {
            let size = std::fs::metadata(self.path(&name)).map(|m| m.len());
            let size = size.map_err(|e| Error::io(self.path(&name).display().to_string(), "find it", &e))?;
            files.push((name, size));
        }
        let seconds = (1e3 * clock.elapsed().as_secs_f64()).round() / 1e3;
        let done = Done { stage, figures, files, seconds, resumed: false };
        let line =
            done.line().map_err(|e| Error::new(format!("cannot write the statistics of a stage: {e}")))?;
        self.done.retain(|d| d["stage"] != stage.name());
        self.done.push(line);
        let lines: String = self.done.iter().map(|d| format!("{d}\n")).collect();
        AtomicFile::write_all_to(&self.path(LOG), lines.as_bytes())?;
        self.tell(&Event::End { stage, seconds, resumed: false });
        Ok(done)
    }

    fn tell(&self, event: &Event<'_>) {
        if let Some(observer) = self.observer {
            observer(event);
        }
    }
}
