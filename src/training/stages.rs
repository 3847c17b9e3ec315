//! Stages of training: their log `train.jsonl`, their figures, and what training has come to.

use super::{Event, Observer, spec::TrainSpec};
use crate::{
    core::{Error, Result},
    io::{AtomicFile, WorkDir, WorkKind},
    lm,
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
    /// Both sides of the parallel text are counted.
    Text,
    /// Words are aligned.
    Align,
    /// Phrases or rules are extracted.
    Table,
    /// Language models are estimated and converted.
    Lm,
    /// Initial weights and the configuration of the model are written.
    Weights,
}

impl Stage {
    /// The name of the stage in `train.jsonl`.
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

/// A stage of training that is complete, with its figures: a line of `train.jsonl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Done<F> {
    /// The stage.
    pub stage: Stage,
    /// What was counted and measured in the stage.
    pub figures: F,
    /// Names and sizes in bytes of the files in the model directory that the stage has written.
    pub files: Vec<(String, u64)>,
    /// Seconds that the stage took, to the millisecond.
    pub seconds: f64,
    /// Whether the stage was complete before this training began.
    pub resumed: bool,
}

impl<F: Serialize> Serialize for Done<F> {
    fn serialize<S: Serializer>(&self, out: S) -> std::result::Result<S::Ok, S::Error> {
        self.line().map_err(serde::ser::Error::custom)?.serialize(out)
    }
}

impl<F: Serialize> Done<F> {
    /// The stage as a line of `train.jsonl`.
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
    /// A stage from its line of `train.jsonl`, unless something is missing there.
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

/// Figures of the parallel text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextFigures {
    /// Number of lines of each of the two files.
    pub lines: usize,
    /// Number of sentence pairs that are trained on.
    pub kept: usize,
    /// Numbers of sentence pairs that were skipped, by reason.
    pub dropped: Dropped,
    /// Number of words of the source side, in the pairs that are kept.
    pub source_words: usize,
    /// Number of words of the target side, in the pairs that are kept.
    pub target_words: usize,
    /// Number of different words of the source side.
    pub source_vocabulary: usize,
    /// Number of different words of the target side.
    pub target_vocabulary: usize,
}

impl TextFigures {
    pub(super) fn new(corpus: &Corpus) -> Self {
        TextFigures {
            lines: corpus.total,
            kept: corpus.len(),
            dropped: corpus.dropped,
            source_words: corpus.source.tokens(),
            target_words: corpus.target.tokens(),
            source_vocabulary: corpus.source.vocabulary.len(),
            target_vocabulary: corpus.target.vocabulary.len(),
        }
    }
}

/// Figures of the word alignment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AlignFigures {
    /// Perplexities in the last iteration of the aligner; none where the alignment was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub perplexity: Option<Perplexity>,
    /// Number of links of the symmetrised alignment.
    pub links: usize,
}

/// Perplexities of an aligner, one of each direction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Perplexity {
    /// Perplexity of a target word given the source sentence.
    #[serde(deserialize_with = "number")]
    pub target_given_source: f64,
    /// Perplexity of a source word given the target sentence.
    #[serde(deserialize_with = "number")]
    pub source_given_target: f64,
}

/// Figures of the table of phrases or rules.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableFigures {
    /// Number of different phrase pairs or rules.
    pub entries: u64,
    /// Number of different source sides of the entries.
    pub sources: u64,
    /// Number of occurrences of phrase pairs or rules in the text.
    pub found: u64,
    /// Number of rules with no, one and two gaps; none for phrases.
    pub by_gaps: Option<[u64; 3]>,
    /// Size of the binary table in bytes.
    pub bytes: usize,
}

/// Figures of the language models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LmFigures {
    /// The language models, in the order of their features.
    pub models: Vec<LmFile>,
}

/// Figures of one language model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LmFile {
    /// Name of the binary: in the model directory, or absolute for a binary that was given.
    pub file: String,
    /// Longest n-gram of the language model, in words.
    pub order: usize,
    /// Number of words of its vocabulary.
    pub words: usize,
    /// Number of n-grams by order, from single words on.
    pub counts: Vec<u64>,
    /// Size for queries in bytes.
    pub bytes: usize,
    /// Perplexity of the target text, unknown words included.
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

/// Figures of a stage that counts nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoFigures {}

/// A number that JSON writes as `null` where it is not finite.
fn number<'de, D: Deserializer<'de>>(input: D) -> std::result::Result<f64, D::Error> {
    Ok(Option::deserialize(input)?.unwrap_or(f64::NAN))
}

/// What training has come to: the model directory, and figures of every stage. Serialises as the summary of
/// `luthier train --json`.
#[derive(Debug, Clone, PartialEq)]
pub struct Trained {
    /// The model directory.
    pub model: PathBuf,
    /// The parallel text that was read.
    pub text: Done<TextFigures>,
    /// The word alignment.
    pub align: Done<AlignFigures>,
    /// The table of phrases or rules.
    pub table: Done<TableFigures>,
    /// The language models.
    pub lm: Done<LmFigures>,
    /// The initial weights and the configuration.
    pub weights: Done<NoFigures>,
    /// Seconds of this training in all, without stages that were complete before.
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
    /// Names and seconds of all stages, in order.
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

/// Name of the log of stages.
const LOG: &str = "train.jsonl";

/// A model directory in the making, and the lines of its log: one for each stage that is complete.
pub(super) struct Stages<'a> {
    work: WorkDir,
    done: Vec<Value>,
    observer: Option<Observer<'a>>,
}

impl<'a> Stages<'a> {
    /// Creates a model directory, or opens one that was made with the same settings.
    pub(super) fn open(path: &Path, spec: &TrainSpec, observer: Option<Observer<'a>>) -> Result<Self> {
        let read = |path: &Path| -> Vec<Value> {
            let text = std::fs::read_to_string(path.join(LOG)).unwrap_or_default();
            text.lines().map_while(|l| serde_json::from_str(l).ok()).collect()
        };
        let work = WorkDir::open(path, &KIND, spec, |path| read(path).len() > 1)?;
        Ok(Stages { done: read(path), work, observer })
    }

    /// The model directory.
    pub(super) fn directory(&self) -> &Path {
        self.work.path()
    }

    /// Path of a file in the model directory.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    /// Removes a new directory in which nothing is complete; to count lines is no work. Stages that are complete stay.
    pub(super) fn abandon(self) {
        if self.done.len() < 2 {
            self.work.discard();
        }
    }

    /// A stage that is complete and whose files are still there.
    fn complete<F: DeserializeOwned>(&self, stage: Stage) -> Option<Done<F>> {
        let line = self.done.iter().find(|d| d["stage"] == stage.name())?;
        let found = Done::read(stage, line)?;
        let size = |name: &str| std::fs::metadata(self.path(name)).map(|m| m.len()).ok();
        let whole = found.files.iter().all(|(name, bytes)| size(name) == Some(*bytes));
        whole.then_some(found)
    }

    /// Does a stage, unless it is complete; its files are complete before it counts as such. `work` returns figures and names
    /// of files.
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
        let line = done.line().map_err(|e| Error::new(format!("figures cannot be written: {e}")))?;
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
