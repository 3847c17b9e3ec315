//! `luthier extract`: phrase and rule tables from aligned text.

use super::{Common, Done, align::TextArgs};
use crate::{
    phases::{Phases, counted},
    talk::{Remark, Talk, thousands},
};
use clap::Subcommand;
use luthier::{
    core::{Error, Progress, Step},
    io::sort::SortSettings,
    train::{
        Corpus, Link, PhraseSettings, RuleLimits,
        extract::{self, Report, Settings, TextTables, What},
        links,
    },
};
use serde_json::json;
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

/// Extract tables of phrases or hierarchical rules from aligned text.
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true)]
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
// Moses does not smooth by default.
#[command(mut_arg("smoothing", |flag| flag.default_value("none")))]
struct PhraseArgs {
    #[command(flatten)]
    from: FromArgs,
    #[command(flatten, next_help_heading = "Phrases")]
    phrases: PhraseSettings,
    #[command(flatten, next_help_heading = "Sorting")]
    sort: SortSettings,
}

#[derive(Debug, clap::Args)]
struct HieroArgs {
    #[command(flatten)]
    from: FromArgs,
    #[command(flatten, next_help_heading = "Rules")]
    rules: RuleLimits,
    #[command(flatten, next_help_heading = "Sorting")]
    sort: SortSettings,
}

#[derive(Debug, clap::Args)]
struct FromArgs {
    #[command(flatten)]
    text: TextArgs,
    /// Word alignment in Pharaoh format, one line of links per line of text.
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    alignment: PathBuf,
    /// Output directory of the tables.
    #[arg(long, short, value_name = "DIR", help_heading = "Output")]
    output: PathBuf,
}

pub(crate) fn run(args: &Args, common: &Common, talk: Talk) -> Done {
    let clock = Instant::now();
    let (from, settings) = match &args.kind {
        Kind::Phrase(args) => (&args.from, settings(What::Phrases(args.phrases), &args.sort)),
        Kind::Hiero(args) => (&args.from, settings(What::Rules(args.rules), &args.sort)),
    };
    let corpus = from.text.read(Corpus::default(), talk)?;
    let links = links::read(&from.alignment, &corpus)?;
    let made = !from.output.exists();
    std::fs::create_dir_all(&from.output)
        .map_err(|e| Error::io(from.output.display().to_string(), "create the directory", &e))?;
    let done = write_text(&corpus, &links, &settings, &from.output, talk);
    if done.is_err() && made {
        // The tables are written atomically, so the directory is empty unless another process has written to it.
        let _ = std::fs::remove_dir(&from.output);
    }
    let report = done?;
    talk.remarks(&told(&report, settings.what.is_rules()));
    if common.json {
        super::print_json(&json!({"output": from.output, "hierarchical": settings.what.is_rules(),
            "entries": report.pairs, "sources": report.sources, "instances": report.found}))?;
    }
    talk.say(&format!("{} in {:.1} s", from.output.display(), clock.elapsed().as_secs_f64()));
    Ok(ExitCode::SUCCESS)
}

fn settings(what: What, sort: &SortSettings) -> Settings {
    Settings { what, sort: sort.clone() }
}

/// Extracts phrases or rules and writes them as text tables.
fn write_text(
    corpus: &Corpus,
    links: &[Vec<Link>],
    settings: &Settings,
    out: &Path,
    talk: Talk,
) -> Result<Report, Error> {
    let mut tables = TextTables::create(settings.what, out)?;
    let phases = Phases::new(talk, &|step| Some(counted(step)));
    let show = |step: &Step| phases.show(step);
    let report = extract::extract(corpus, links, settings, Progress::new(&show), &mut |entry| {
        tables.entry(entry, corpus)
    })?;
    phases.end();
    tables.commit()?;
    Ok(report)
}

/// Returns remarks about an extraction, with a warning if discounts could not be estimated.
pub(crate) fn told(report: &Report, hierarchical: bool) -> Vec<Remark> {
    let guess = report.guessed.then(|| {
        Remark::Warning(
            "too few pairs occur once to four times to estimate discounts, so fixed ones are used; the text may be too small"
                .to_owned(),
        )
    });
    guess.into_iter().chain([Remark::Line(summary(report, hierarchical))]).collect()
}

/// Formats the statistics of an extraction in one line.
fn summary(report: &Report, hierarchical: bool) -> String {
    let mut line = format!(
        "{} distinct {} of {} source sides, from {} instances",
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
