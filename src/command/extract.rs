//! `luthier extract`.

use super::{
    Common, Done,
    align::{TextArgs, read_links},
};
use crate::{
    phases::{Phases, counted},
    talk::{Talk, thousands},
};
use clap::Subcommand;
use luthier::{
    core::{Error, Progress, Step},
    io::{AtomicFile, sort::SortSettings},
    table::{Entry, TextWriter},
    train::{
        Corpus, Link, PhraseSettings, RuleLimits,
        extract::{self, Report, Settings, What},
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
    /// Phrases with lexical reordering: phrase-table.gz and reordering-table.gz, in the format of Moses.
    Phrase(PhraseArgs),
    /// Hierarchical rules (Chiang 2007): rule-table.gz and glue-grammar, in the format of Moses.
    Hiero(HieroArgs),
}

#[derive(Debug, clap::Args)]
// Tables for Moses are as Moses makes them.
#[command(mut_arg("smoothing", |flag| flag.default_value("none")))]
struct PhraseArgs {
    #[command(flatten)]
    from: FromArgs,
    #[command(flatten)]
    phrases: PhraseSettings,
    #[command(flatten)]
    sort: SortSettings,
}

#[derive(Debug, clap::Args)]
struct HieroArgs {
    #[command(flatten)]
    from: FromArgs,
    #[command(flatten)]
    rules: RuleLimits,
    #[command(flatten)]
    sort: SortSettings,
}

#[derive(Debug, clap::Args)]
struct FromArgs {
    #[command(flatten)]
    text: TextArgs,
    /// Word alignment in Pharaoh format, one line of links per line of text.
    #[arg(long, value_name = "FILE")]
    alignment: PathBuf,
    /// Output directory of the tables.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
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
        Kind::Phrase(args) => (&args.from, settings(What::Phrases(args.phrases), &args.sort)),
        Kind::Hiero(args) => (&args.from, settings(What::Rules(args.rules), &args.sort)),
    };
    let corpus = from.text.read(Corpus::default(), talk)?;
    let links = read_links(&from.alignment, &corpus)?;
    let made = !from.out.exists();
    std::fs::create_dir_all(&from.out)
        .map_err(|e| Error::io(from.out.display().to_string(), "make the directory", &e))?;
    let done = write_text(&corpus, &links, &settings, &from.out, talk);
    if done.is_err() && made {
        // Nothing half-done stays; it is empty unless somebody else wrote to it.
        let _ = std::fs::remove_dir(&from.out);
    }
    let report = done?;
    warn_guess(&report, talk);
    talk.say(&summary(&report, settings.what.is_rules()));
    talk.say(&format!("{} in {:.1} s", from.out.display(), clock.elapsed().as_secs_f64()));
    Ok(ExitCode::SUCCESS)
}

fn settings(what: What, sort: &SortSettings) -> Settings {
    Settings { what, sort: sort.clone() }
}

/// Extracts, and shows how it goes.
pub(crate) fn extract(
    corpus: &Corpus,
    links: &[Vec<Link>],
    settings: &Settings,
    talk: Talk,
    each: &mut dyn FnMut(&Entry<'_>) -> Result<(), Error>,
) -> Result<Report, Error> {
    let phases = Phases::new(talk, &|step| Some(counted(step)));
    let show = |step: &Step| phases.show(step);
    let report = extract::extract(corpus, links, settings, Progress::new(&show), each)?;
    phases.end();
    Ok(report)
}

/// Extracts into text tables.
fn write_text(
    corpus: &Corpus,
    links: &[Vec<Link>],
    settings: &Settings,
    out: &Path,
    talk: Talk,
) -> Result<Report, Error> {
    let mut writer = text_writer(settings, out)?;
    let (source, target) = (&corpus.source.vocabulary, &corpus.target.vocabulary);
    let report = extract(corpus, links, settings, talk, &mut |entry| writer.entry(entry, source, target))?;
    finish_text(writer, settings, out)?;
    Ok(report)
}

/// Opens text tables in a directory.
pub(crate) fn text_writer(settings: &Settings, out: &Path) -> Result<TextWriter, Error> {
    if settings.what.is_rules() {
        return TextWriter::create(&out.join("rule-table.gz"), None, true);
    }
    TextWriter::create(&out.join("phrase-table.gz"), Some(&out.join("reordering-table.gz")), false)
}

/// Gives text tables their names; rules come with glue.
pub(crate) fn finish_text(writer: TextWriter, settings: &Settings, out: &Path) -> Result<(), Error> {
    writer.commit()?;
    if settings.what.is_rules() {
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
