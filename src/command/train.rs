//! `luthier train`: a translation model from parallel text.

use super::{
    Common, Done,
    align::{self, TextArgs},
    extract, lm, write_out,
};
use crate::{
    phases::{Phases, counted},
    talk::{Remark, Talk, thousands},
};
use luthier::{
    Trained, Training,
    core::{Error, Progress, Step},
    decode::ModelKind,
    io::sort::SortSettings,
    lm::{MAX_ORDER, Settings as LmSettings},
    train::{PhraseSettings, RuleLimits, align::Settings as AlignSettings, extract::What},
    training::{Alignment, Event, LanguageModels, Settings, Stage},
};
use std::{
    fmt::Write as _,
    path::PathBuf,
    process::ExitCode,
    sync::{Mutex, PoisonError},
};

/// Train a translation model from parallel text.
///
/// Writes alignment.gz, table.bin (phrases with reordering, or rules), lm0.bin, weights.txt (initial weights), luthier.toml,
/// which names them, and train.jsonl, one line per stage. Re-run the same command to resume. The language model is estimated
/// from all lines of the target text, including lines that alignment skips.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    text: TextArgs,
    /// Model directory; created, or resumed if it exists.
    #[arg(long, value_name = "DIR", help_heading = "Model")]
    model: PathBuf,
    /// Kind of the model: phrases with reordering, or hierarchical rules.
    #[arg(long, value_name = "KIND", default_value = "phrase", help_heading = "Model")]
    kind: ModelKind,
    /// Word alignment (Pharaoh format, one line of links per line of text), instead of aligning.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["aligner", "iterations", "model1_iterations", "null", "prior", "agreement", "symmetrize"], help_heading = "Input")]
    alignment: Option<PathBuf>,
    /// Language model (ARPA, or binary of `lm compile`), instead of one estimated from the target text; repeatable.
    #[arg(long, value_name = "LM", help_heading = "Input")]
    lm: Vec<PathBuf>,
    /// Order of the language model that is estimated from the target text.
    #[arg(long, value_name = "N", default_value_t = LmSettings::default().order, conflicts_with = "lm", value_parser = clap::value_parser!(u8).range(1..=MAX_ORDER as i64), help_heading = "Model")]
    order: u8,
    /// Add a feature for each language model that counts the words unknown to it.
    #[arg(long, help_heading = "Model")]
    oov: bool,
    /// Also write tables and language model as text.
    #[arg(long, help_heading = "Model")]
    text_tables: bool,
    #[command(flatten, next_help_heading = "Alignment")]
    align: AlignSettings,
    #[command(flatten, next_help_heading = "Phrases")]
    phrases: Option<PhraseSettings>,
    #[command(flatten, next_help_heading = "Rules")]
    rules: Option<RuleLimits>,
    #[command(flatten, next_help_heading = "Sorting")]
    sort: SortSettings,
}

impl Args {
    /// Returns the settings of training for these flags.
    fn settings(&self) -> Settings {
        Settings {
            what: match self.kind {
                ModelKind::Phrase => What::Phrases(self.phrases.unwrap_or_default()),
                ModelKind::Hiero => What::Rules(self.rules.unwrap_or_default()),
            },
            max_words: self.text.max_words,
            alignment: match &self.alignment {
                Some(path) => Alignment::Given(path.clone()),
                None => Alignment::Train(self.align.clone()),
            },
            lm: match self.lm.as_slice() {
                [] => LanguageModels::Estimate { order: self.order },
                given => LanguageModels::Given(given.to_vec()),
            },
            oov: self.oov,
            text_tables: self.text_tables,
            sort: self.sort.clone(),
        }
    }

    /// Fails on flags of the other kind of model.
    fn check(&self) -> Result<(), Error> {
        let (stray, kind) = match self.kind {
            ModelKind::Phrase if self.rules.is_some() => {
                ("--max-span, --max-symbols, --min-gap and --loose are", "hiero")
            }
            ModelKind::Hiero if self.phrases.is_some() => ("--max-length and --smoothing are", "phrase"),
            _ => return Ok(()),
        };
        Err(Error::new(format!("{stray} for --kind {kind}")).hint("leave them out, or change the kind"))
    }
}

pub(crate) fn run(args: &Args, common: &Common, talk: Talk) -> Done {
    args.check()?;
    let settings = args.settings();
    let shown = Mutex::new(Shown { words: 0, stage: Stage::Text });
    let line = |step: &Step| shown.lock().unwrap_or_else(PoisonError::into_inner).line(step);
    let phases = Phases::new(talk, &line);
    let show = |step: &Step| phases.show(step);
    let observe = |event: &Event<'_>| {
        phases.end();
        let told = shown.lock().unwrap_or_else(PoisonError::into_inner).told(event, &settings);
        phases.remarks(&told);
        if matches!(event, Event::Begin(_)) {
            phases.begin();
        }
    };
    let training = Training::new(&args.text.source, &args.text.target, &args.model);
    let training = training.settings(settings.clone()).progress(Progress::new(&show)).observe(&observe);
    let trained = training.run()?;
    drop(phases);
    if common.json {
        let summary = serde_json::to_string(&trained);
        let summary = summary.map_err(|e| Error::new(format!("the summary cannot be written: {e}")))?;
        write_out(None, format!("{summary}\n").as_bytes())?;
    } else {
        talk.say(&summary(&trained));
    }
    talk.say(&format!("{} in {:.1} s", args.model.display(), trained.seconds));
    Ok(ExitCode::SUCCESS)
}

/// State that the messages about progress depend on.
struct Shown {
    /// Number of words of both sides of the text.
    words: usize,
    /// Current stage of training.
    stage: Stage,
}

impl Shown {
    /// Returns the line about the last step of a phase; `None` for phases without one.
    fn line(&self, step: &Step) -> Option<String> {
        match self.stage {
            Stage::Align => align::iteration(step, self.words),
            Stage::Table if step.what != "entries" => Some(counted(step)),
            Stage::Lm if step.what == "lines" => Some(counted(step)),
            _ => None,
        }
    }

    /// Returns the messages about an event.
    fn told(&mut self, event: &Event<'_>, settings: &Settings) -> Vec<Remark> {
        match event {
            Event::Read(corpus) => {
                self.words = corpus.source.tokens() + corpus.target.tokens();
                align::told(corpus, settings.max_words)
            }
            Event::Begin(stage) => {
                self.stage = *stage;
                Vec::new()
            }
            Event::Extracted(report) => extract::told(report, settings.what.is_rules()),
            Event::Estimated(report) => lm::told(report),
            Event::End { stage, seconds, resumed: true } => {
                vec![Remark::Line(format!("{}: already complete ({seconds:.1} s)", stage.name()))]
            }
            Event::End { stage, seconds, .. } => {
                vec![Remark::Line(format!("{}: {seconds:.1} s", stage.name()))]
            }
        }
    }
}

/// Returns the summary as text.
fn summary(trained: &Trained) -> String {
    let (t, table) = (&trained.text.figures, &trained.table.figures);
    let mut text = format!(
        "text    {} of {} pairs kept (skipped: {} empty, {} too long, {} with reserved words)\n",
        thousands(t.kept),
        thousands(t.lines),
        thousands(t.dropped.empty),
        thousands(t.dropped.long),
        thousands(t.dropped.marks)
    );
    let _ = writeln!(text, "align   {} links", thousands(trained.align.figures.links));
    let (entries, bytes) = (thousands(table.entries as usize), thousands(table.bytes));
    let _ = writeln!(text, "table   {entries} entries, {bytes} bytes");
    for m in &trained.lm.figures.models {
        let _ = writeln!(
            text,
            "lm      order {}, {} words, {} bytes, perplexity of the target text {:.2}",
            m.order,
            thousands(m.words),
            thousands(m.bytes),
            m.perplexity_of_target
        );
    }
    let seconds = trained.stage_seconds().map(|(stage, seconds)| format!("{} {seconds:.1}", stage.name()));
    let _ = write!(text, "seconds {}", seconds.join(", "));
    text
}
