//! `luthier extract`.

use super::{
    Common, Done,
    align::{TextArgs, read_links},
    lm::bytes,
};
use crate::talk::{Talk, thousands};
use clap::{Subcommand, ValueEnum};
use luthier::{
    core::{AtomicFile, Error},
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

/// Tables of phrases or hierarchical rules from aligned text.
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
    how: ScoreArgs,
}

#[derive(Debug, clap::Args)]
struct HieroArgs {
    #[command(flatten)]
    from: FromArgs,
    #[command(flatten)]
    rules: HieroLimits,
    #[command(flatten)]
    how: ScoreArgs,
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
    /// Longest phrase, in words of each side.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) max_length: u8,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct HieroLimits {
    /// Longest phrase that rules are made from, in words of each side.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u8).range(1..=30))]
    pub(crate) max_span: u8,
    /// Most words and gaps of a rule's source.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=30))]
    pub(crate) max_symbols: u8,
    /// Fewest source words that a gap stands for.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=30))]
    pub(crate) min_gap: u8,
    /// Allow unaligned words at the edges of phrases and gaps.
    #[arg(long)]
    pub(crate) loose: bool,
}

/// How counts become scores.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ScoreArgs {
    /// Smoothing of phrase translation probabilities.
    #[arg(long, value_name = "HOW", default_value = "none")]
    pub(crate) smoothing: SmoothingName,
    /// Memory for sorting, such as 500M or 4G; what does not fit goes to TMPDIR.
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
    pub(crate) fn what(&self) -> What {
        What::Phrases(self.max_length.into())
    }
}

impl HieroLimits {
    pub(crate) fn what(&self) -> What {
        What::Rules(RuleLimits {
            span: self.max_span.into(),
            symbols: self.max_symbols.into(),
            min_gap: self.min_gap.into(),
            loose: self.loose,
        })
    }
}

impl ScoreArgs {
    pub(crate) fn settings(&self, what: What) -> Settings {
        Settings {
            what,
            smoothing: match self.smoothing {
                SmoothingName::None => Smoothing::None,
                SmoothingName::KneserNey => Smoothing::KneserNey,
            },
            memory: self.memory,
            directory: std::env::temp_dir(),
        }
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
        Kind::Phrase(args) => (&args.from, args.how.settings(args.phrases.what())),
        Kind::Hiero(args) => (&args.from, args.how.settings(args.rules.what())),
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
    writer.commit()?;
    Ok(report)
}

/// Opens text tables in a directory.
pub(crate) fn text_writer(settings: &Settings, out: &Path) -> Result<TextWriter, Error> {
    if matches!(settings.what, What::Rules(_)) {
        AtomicFile::write_all_to(&out.join("glue-grammar"), GLUE.as_bytes())?;
        return TextWriter::create(&out.join("rule-table.gz"), None, true);
    }
    TextWriter::create(&out.join("phrase-table.gz"), Some(&out.join("reordering-table.gz")), false)
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
