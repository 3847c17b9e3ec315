//! `luthier train`: a translation model from parallel text.

use super::{Common, Done, align, extract, lm, write_out};
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
    text::{Cleaning, Language},
    train::{PhraseSettings, RuleLimits, align::Settings as AlignSettings, extract::What},
    training::{Alignment, Event, LanguageModels, Languages, Parallel, Settings, Stage},
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
///
/// With --raw, text is neither tokenised nor lower-cased: it is cleaned and tokenised, and the model translates raw text.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Source text, one sentence per line: tokenised, or raw with --raw.
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present = "corpus",
        requires = "target",
        help_heading = "Input"
    )]
    source: Option<PathBuf>,
    /// Translation of the source text, line by line.
    #[arg(long, value_name = "FILE", requires = "source", help_heading = "Input")]
    target: Option<PathBuf>,
    /// Text is raw: clean it, learn tokenisation and casing from it, and train a model that translates raw text.
    #[arg(long, help_heading = "Input")]
    raw: bool,
    /// One bilingual file instead of two: tab-separated columns, TMX 1.4, XLIFF 1.2 or 2, or PO (with --raw).
    #[arg(long, value_name = "FILE", requires = "raw", conflicts_with_all = ["source", "alignment"], help_heading = "Input")]
    corpus: Option<PathBuf>,
    /// Language of the source text, such as en or pt-BR (with --raw) [default: the extension of the file].
    #[arg(long, value_name = "CODE", requires = "raw", value_parser = language, help_heading = "Input")]
    source_lang: Option<Language>,
    /// Language of the target text (with --raw) [default: the extension of the file].
    #[arg(long, value_name = "CODE", requires = "raw", value_parser = language, help_heading = "Input")]
    target_lang: Option<Language>,
    /// Skip sentence pairs with more words than this on a side.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000), help_heading = "Input")]
    max_words: u16,
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

/// Parses a language code.
fn language(code: &str) -> Result<Language, String> {
    Language::new(code).map_err(|e| e.to_string())
}

impl Args {
    /// Returns the files of the text.
    fn parallel(&self) -> Parallel {
        match (&self.corpus, &self.source, &self.target) {
            (Some(corpus), ..) => Parallel::Bitext(corpus.clone()),
            (None, source, target) => {
                Parallel::Files(source.clone().unwrap_or_default(), target.clone().unwrap_or_default())
            }
        }
    }

    /// Returns the languages of raw text.
    fn languages(&self) -> Option<Languages> {
        let given = [self.source_lang.clone(), self.target_lang.clone()];
        self.raw.then(|| Languages::choose(given, &self.parallel()))
    }

    /// Returns the settings of training for these flags.
    fn settings(&self) -> Settings {
        Settings {
            raw: self.languages(),
            what: match self.kind {
                ModelKind::Phrase => What::Phrases(self.phrases.unwrap_or_default()),
                ModelKind::Hiero => What::Rules(self.rules.unwrap_or_default()),
            },
            max_words: self.max_words,
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
            _ => return self.check_raw(),
        };
        Err(Error::new(format!("{stray} for --kind {kind}")).hint("leave them out, or change the kind"))
    }
}

impl Args {
    /// Fails on settings that raw text does not go with.
    fn check_raw(&self) -> Result<(), Error> {
        if self.raw && self.alignment.is_some() {
            return Err(Error::new(
                "--alignment is for tokenised text, but --raw cleans and tokenises the text",
            )
            .hint("leave one of them out"));
        }
        let missing = self.source_lang.is_none() || self.target_lang.is_none();
        if self.corpus.is_some() && missing {
            return Err(
                Error::new("--corpus needs both languages").hint("give --source-lang and --target-lang")
            );
        }
        Ok(())
    }
}

/// Returns a line about the languages of raw text and their rules.
fn rules(languages: &Languages) -> String {
    let rules = |language: &Language| match (language.has_rules(), language == &Language::general()) {
        (true, _) => format!("rules for {}", language.code()),
        (false, true) => "general rules (no language given)".to_owned(),
        (false, false) => format!("general rules ({} has none of its own)", language.code()),
    };
    format!("source: {}; target: {}", rules(&languages.source), rules(&languages.target))
}

pub(crate) fn run(args: &Args, common: &Common, talk: Talk) -> Done {
    args.check()?;
    let settings = args.settings();
    if let Some(languages) = &settings.raw {
        talk.say(&rules(languages));
    }
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
    let training = Training::on(args.parallel(), &args.model);
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
            Event::Cleaned { cleaning, skipped } => {
                let entries = skipped.filter(|s| s.total() > 0);
                let entries = entries.map(|s| Remark::Line(format!("not read: {s}")));
                entries.into_iter().chain([Remark::Line(cleaned(cleaning))]).collect()
            }
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

/// Returns a line with the number of sentence pairs that cleaning keeps, and the reasons why others are left out.
fn cleaned(cleaning: &Cleaning) -> String {
    let kept = cleaning.pairs - cleaning.dropped();
    let mut line = format!("cleaned: {} of {} pairs", thousands(kept), thousands(cleaning.pairs));
    let reasons = [
        (cleaning.empty, "with an empty side"),
        (cleaning.identical, "with equal sides"),
        (cleaning.ratio, "with very different lengths"),
        (cleaning.duplicate, "that occur twice"),
        (cleaning.language, "in the wrong language"),
    ];
    for (n, why) in reasons.iter().filter(|r| r.0 > 0) {
        line += &format!("; left out: {} {why}", thousands(*n));
    }
    line
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
