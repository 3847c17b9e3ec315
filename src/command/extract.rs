//! `luthier extract`.

use super::{
    Common, Done,
    align::{TextArgs, read_links},
    lm::bytes,
};
use crate::talk::{Talk, thousands};
use clap::{Subcommand, ValueEnum};
use luthier::{
    core::Error,
    io::AtomicFile,
    table::TextWriter,
    train::{
        Corpus, Link, RuleLimits,
        extract::{self, Report, Settings, Smoothing, What},
    },
};
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

/// Extract tables of phrases or hierarchical rules from aligned text.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Debug, Subcommand)]
enum Kind {
    /// Phrases with lexical reordering: phrase-table.gz and reordering-table.gz, as Moses has them.
    Phrase(PhraseArgs),
    /// Hierarchical rules (Chiang 2007): rule-table.gz and glue-grammar, as Moses has them.
    Hiero(HieroArgs),
}

#[derive(Debug, clap::Args)]
struct PhraseArgs {
    #[command(flatten)]
    from: FromArgs,
    #[command(flatten)]
    phrases: PhraseLimits,
    #[command(flatten)]
    sort: SortArgs,
}

#[derive(Debug, clap::Args)]
struct HieroArgs {
    #[command(flatten)]
    from: FromArgs,
    #[command(flatten)]
    rules: HieroLimits,
    #[command(flatten)]
    sort: SortArgs,
}

#[derive(Debug, clap::Args)]
struct FromArgs {
    #[command(flatten)]
    text: TextArgs,
    /// Links in Pharaoh format, a line per line of text.
    #[arg(long, value_name = "FILE")]
    alignment: PathBuf,
    /// Directory that the tables go to.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PhraseLimits {
    /// Longest phrase, in words of each side [default: 7].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=100))]
    max_length: Option<u8>,
    /// Smoothing of phrase translation probabilities [default: none, as in Moses; train: kneser-ney].
    #[arg(long, value_name = "HOW")]
    smoothing: Option<SmoothingName>,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct HieroLimits {
    /// Longest phrase that rules are made from, in words of each side [default: 10].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=30))]
    max_span: Option<u8>,
    /// Most words and gaps of a rule's source [default: 5].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=30))]
    max_symbols: Option<u8>,
    /// Fewest source words that a gap stands for [default: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=30))]
    min_gap: Option<u8>,
    /// Allow unaligned words at the edges of phrases and gaps.
    #[arg(long)]
    loose: bool,
}

/// How much is sorted at once.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SortArgs {
    /// Memory for sorting, such as 500M or 4G; what does not fit goes to TMPDIR. Text and binary tables come on top.
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = bytes)]
    pub(crate) memory: usize,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum SmoothingName {
    /// Relative frequencies.
    None,
    /// Modified Kneser–Ney (Foster et al. 2006).
    KneserNey,
}

impl PhraseLimits {
    fn max_length(&self) -> u8 {
        self.max_length.unwrap_or(7)
    }

    pub(crate) fn given(&self) -> bool {
        self.max_length.is_some() || self.smoothing.is_some()
    }

    /// What to extract, smoothed like this unless the flag says otherwise.
    pub(crate) fn settings(&self, sort: &SortArgs, smoothing: SmoothingName) -> Settings {
        let smoothing = match self.smoothing.unwrap_or(smoothing) {
            SmoothingName::None => Smoothing::None,
            SmoothingName::KneserNey => Smoothing::KneserNey,
        };
        sort.settings(What::Phrases(self.max_length().into()), smoothing)
    }

    pub(crate) fn describe(&self, settings: &mut luthier::io::Settings, smoothing: SmoothingName) {
        settings.add("max-length", self.max_length());
        let smoothing = self.smoothing.unwrap_or(smoothing);
        settings.add("smoothing", super::value_name(&smoothing));
    }
}

impl HieroLimits {
    fn limits(&self) -> RuleLimits {
        let default = RuleLimits::default();
        RuleLimits {
            span: self.max_span.map_or(default.span, usize::from),
            symbols: self.max_symbols.map_or(default.symbols, usize::from),
            min_gap: self.min_gap.map_or(default.min_gap, usize::from),
            loose: self.loose,
        }
    }

    pub(crate) fn given(&self) -> bool {
        self.max_span.is_some() || self.max_symbols.is_some() || self.min_gap.is_some() || self.loose
    }

    pub(crate) fn settings(&self, sort: &SortArgs) -> Settings {
        sort.settings(What::Rules(self.limits()), Smoothing::None)
    }

    pub(crate) fn describe(&self, settings: &mut luthier::io::Settings) {
        let limits = self.limits();
        settings.add("max-span", limits.span);
        settings.add("max-symbols", limits.symbols);
        settings.add("min-gap", limits.min_gap);
        settings.add("loose", limits.loose);
    }
}

impl SortArgs {
    fn settings(&self, what: What, smoothing: Smoothing) -> Settings {
        Settings { what, smoothing, memory: self.memory, directory: std::env::temp_dir() }
    }
}

/// Rules that put phrases one after another, as Moses writes them.
const GLUE: &str = "\
<s> [X] ||| <s> [S] ||| 1 ||| 0-0 ||| 0 ||| |||
[X][S] </s> [X] ||| [X][S] </s> [S] ||| 1 ||| 0-0 1-1 ||| 0 ||| |||
[X][S] [X][X] [X] ||| [X][S] [X][X] [S] ||| 2.718 ||| 0-0 1-1 ||| 0 ||| |||
";

pub(crate) fn run(args: &Args, _: &Common, talk: Talk) -> Done {
    let clock = Instant::now();
    let (from, settings) = match &args.kind {
        Kind::Phrase(args) => (&args.from, args.phrases.settings(&args.sort, SmoothingName::None)),
        Kind::Hiero(args) => (&args.from, args.rules.settings(&args.sort)),
    };
    let corpus = from.text.read(Corpus::default(), talk)?;
    let links = read_links(&from.alignment, &corpus)?;
    let made = !from.out.exists();
    std::fs::create_dir_all(&from.out)
        .map_err(|e| Error::io(from.out.display().to_string(), "make the directory", &e))?;
    let done = write_text(&corpus, &links, &settings, &from.out, talk, clock);
    if done.is_err() && made {
        // Nothing half-done stays; it is empty unless somebody else wrote to it.
        let _ = std::fs::remove_dir(&from.out);
    }
    let report = done?;
    warn_guess(&report, talk);
    talk.say(&summary(&report, matches!(settings.what, What::Rules(_))));
    talk.say(&format!("{} in {:.1} s", from.out.display(), clock.elapsed().as_secs_f64()));
    Ok(ExitCode::SUCCESS)
}

/// Extracts into text tables.
fn write_text(
    corpus: &Corpus,
    links: &[Vec<Link>],
    settings: &Settings,
    out: &Path,
    talk: Talk,
    clock: Instant,
) -> Result<Report, Error> {
    let mut writer = text_writer(settings, out)?;
    let mut told = |line: &str| talk.say(&format!("{line}  {:.1} s", clock.elapsed().as_secs_f64()));
    let (source, target) = (&corpus.source.vocabulary, &corpus.target.vocabulary);
    let report = extract::extract(corpus, links, settings, &mut told, &mut |entry| {
        writer.entry(entry, source, target)
    })?;
    finish_text(writer, settings, out)?;
    Ok(report)
}

/// Opens text tables in a directory.
pub(crate) fn text_writer(settings: &Settings, out: &Path) -> Result<TextWriter, Error> {
    if matches!(settings.what, What::Rules(_)) {
        return TextWriter::create(&out.join("rule-table.gz"), None, true);
    }
    TextWriter::create(&out.join("phrase-table.gz"), Some(&out.join("reordering-table.gz")), false)
}

/// Gives text tables their names; rules come with glue.
pub(crate) fn finish_text(writer: TextWriter, settings: &Settings, out: &Path) -> Result<(), Error> {
    writer.commit()?;
    if matches!(settings.what, What::Rules(_)) {
        AtomicFile::write_all_to(&out.join("glue-grammar"), GLUE.as_bytes())?;
    }
    Ok(())
}

/// Says when smoothing had nothing to go by.
pub(crate) fn warn_guess(report: &Report, talk: Talk) {
    if report.guessed {
        talk.warn(
            "pairs are not seen 1, 2, 3 and 4 times as often as natural text has them, so discounts are a guess: is the text tiny?",
        );
    }
}

/// What was found, in a line.
pub(crate) fn summary(report: &Report, hierarchical: bool) -> String {
    let mut line = format!(
        "{} {} of {} sources, from {} found",
        thousands(report.pairs as usize),
        if hierarchical { "rules" } else { "phrase pairs" },
        thousands(report.sources as usize),
        thousands(report.found as usize)
    );
    if hierarchical {
        let [none, one, two] = report.entries.map(|n| thousands(n as usize));
        line += &format!("; {none} without gap, {one} with one, {two} with two");
    }
    if let Some([one, two, more]) = report.discounts {
        line += &format!("; discounts {one:.3} {two:.3} {more:.3}");
    }
    line
}
