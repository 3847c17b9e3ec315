//! `luthier align`: word alignment of parallel text.

use super::{Common, Done, check_outputs, print_json, write_out};
use crate::{
    phases::Phases,
    talk::{Remark, Talk, thousands},
};
use luthier::{
    core::{Error, Progress, Step, math},
    io::{AtomicFile, Input},
    train::{
        Corpus,
        align::{Model, Settings},
        links,
    },
};
use serde_json::json;
use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

/// Align the words of parallel text, in Pharaoh format.
///
/// Each output line has the links of one line of text, such as `0-0 1-2`: source and target position, from 0. Pairs that are
/// skipped (an empty side, too many words) have an empty line. With --json, links are JSON, one line per sentence pair; with
/// --output besides, a summary is printed as JSON.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    text: TextArgs,
    #[command(flatten, next_help_heading = "Alignment")]
    settings: Settings,
    /// Align with a saved aligner instead of training one.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["aligner", "iterations", "model1_iterations", "null", "prior", "agreement", "save"], help_heading = "Alignment")]
    force: Option<PathBuf>,
    /// Output file for the trained aligner, for --force; compressed if the name ends in .gz.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    save: Option<PathBuf>,
    /// Gold alignment (Pharaoh format, all links sure): print the alignment error rate.
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    gold: Option<PathBuf>,
    /// Output file, one line of links per line of text [default: standard output].
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
}

/// Parallel text.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct TextArgs {
    /// Tokenised source text, one sentence per line.
    #[arg(long, value_name = "FILE")]
    pub(crate) source: PathBuf,
    /// Tokenised translation of the source text, line by line.
    #[arg(long, value_name = "FILE")]
    pub(crate) target: PathBuf,
    /// Skip sentence pairs with more words than this on a side.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) max_words: u16,
}

impl TextArgs {
    /// Opens both sides. Fails if both are standard input.
    fn inputs(&self) -> Result<[Input; 2], Error> {
        if self.source.as_os_str() == "-" && self.target.as_os_str() == "-" {
            return Err(Error::new("`-` (standard input) can stand for one file only"));
        }
        Ok([Input::open(&self.source)?, Input::open(&self.target)?])
    }

    /// Reads the text and prints which pairs are skipped.
    pub(crate) fn read(&self, start: Corpus, talk: Talk) -> Result<Corpus, Error> {
        let [mut source, mut target] = self.inputs()?;
        let corpus = {
            let phases = Phases::new(talk, &|_| None);
            let show = |step: &Step| phases.show(step);
            Corpus::with(&mut source, &mut target, self.max_words.into(), start, Progress::new(&show))?
        };
        talk.remarks(&told(&corpus, self.max_words));
        Ok(corpus)
    }
}

/// Returns remarks about a text: the number of pairs that are kept, and a warning about Unicode spaces.
pub(crate) fn told(corpus: &Corpus, max_words: u16) -> Vec<Remark> {
    let mut remarks = vec![Remark::Line(kept(corpus, max_words))];
    if corpus.odd_blanks > 0 {
        remarks.push(Remark::Warning(format!(
            "lines with no-break spaces or other Unicode spaces: {}; only ASCII spaces separate words",
            thousands(corpus.odd_blanks)
        )));
    }
    remarks
}

/// Returns a line with the number of pairs that are kept, and the reasons why others are skipped.
fn kept(corpus: &Corpus, max_words: u16) -> String {
    let d = corpus.dropped;
    let mut line = format!(
        "{} of {} pairs kept, {} and {} words, {} and {} distinct",
        thousands(corpus.len()),
        thousands(corpus.total),
        thousands(corpus.source.tokens()),
        thousands(corpus.target.tokens()),
        thousands(corpus.source.vocabulary.len()),
        thousands(corpus.target.vocabulary.len())
    );
    let reasons = [
        (d.empty, "with an empty side".to_owned()),
        (d.long, format!("with more than {max_words} words on a side")),
        (d.marks, "with a reserved word such as ||| or <s>".to_owned()),
    ];
    for (n, why) in reasons.iter().filter(|r| r.0 > 0) {
        line += &format!("; skipped: {} {why}", thousands(*n));
    }
    line
}

/// Returns a line about an iteration of an aligner: the perplexity of a text of `words` words.
pub(crate) fn iteration(step: &Step, words: usize) -> Option<String> {
    let perplexity = step.value.map(|log| math::exp(-log / words as f64))?;
    Some(format!("iteration {} of {}: perplexity {perplexity:.2}", step.done, step.total))
}

/// Trains an aligner and prints its progress.
fn train(corpus: &Corpus, settings: &Settings, talk: Talk) -> Result<Model, Error> {
    let words = corpus.target.tokens() + corpus.source.tokens();
    let line = |step: &Step| iteration(step, words);
    let phases = Phases::new(talk, &line);
    let model = Model::train(corpus, settings, Progress::new(&|step: &Step| phases.show(step)))?;
    phases.end();
    Ok(model)
}

/// Aligns the text and shows the progress on a terminal.
fn aligned(
    model: &Model,
    corpus: &Corpus,
    settings: &Settings,
    talk: Talk,
) -> Result<Vec<Vec<links::Link>>, Error> {
    let phases = Phases::new(talk, &|_| None);
    model.align(corpus, settings.symmetrize, Progress::new(&|step: &Step| phases.show(step)))
}

pub(crate) fn run(args: &Args, common: &Common, talk: Talk) -> Done {
    let clock = Instant::now();
    check_files(args)?;
    super::check_json_output(common, args.output.as_deref())?;
    args.settings.check()?;
    // Output files that cannot be created are reported before any work is done.
    let mut out = args.output.as_deref().map(AtomicFile::create).transpose()?;
    let saved = args.save.as_deref().map(AtomicFile::create).transpose()?;
    let (model, corpus, gold) = prepare(args, talk)?;
    let found = aligned(&model, &corpus, &args.settings, talk)?;
    if let (Some(path), Some(mut file)) = (&args.save, saved) {
        model.save(&corpus, &path.display().to_string(), &mut file, Progress::NONE)?;
        file.commit()?;
    }
    let lines = links::to_text(&corpus, &found);
    let text = if common.json && args.output.is_none() { as_json(&lines) } else { lines };
    match (&args.output, out.take()) {
        (Some(path), Some(mut file)) => {
            let name = path.display().to_string();
            file.write_all(text.as_bytes()).map_err(|e| Error::io(name, "write it", &e))?;
            file.commit()?;
        }
        _ => write_out(None, text.as_bytes())?,
    }
    let links: usize = found.iter().map(Vec::len).sum();
    let agreement = gold.map(|gold| agreement(&found, &gold));
    // Standard output is used for the links unless --output is given.
    let free = args.output.as_deref().is_some_and(|p| p.as_os_str() != "-");
    if free && common.json {
        let rate = agreement.as_ref().map(links::Agreement::error_rate);
        print_json(
            &json!({"output": args.output, "pairs": corpus.len(), "lines": corpus.total, "links": links,
                           "alignment_error_rate": rate}),
        )?;
    } else if let Some(agreement) = &agreement {
        let line = compared(agreement);
        if free { write_out(None, format!("{line}\n").as_bytes())? } else { talk.say(&line) }
    }
    talk.say(&format!("{} links in {:.1} s", thousands(links), clock.elapsed().as_secs_f64()));
    Ok(ExitCode::SUCCESS)
}

/// Fails if standard input is used for two files, or if an output is also an input.
fn check_files(args: &Args) -> Result<(), Error> {
    let (source, target) = (args.text.source.as_path(), args.text.target.as_path());
    check_outputs(
        &[args.output.as_deref().or(Some(Path::new("-"))), args.save.as_deref()],
        &[source, target],
    )?;
    let standard = [Some(source), args.force.as_deref(), args.gold.as_deref(), Some(target)];
    if standard.iter().flatten().filter(|p| p.as_os_str() == "-").count() > 1 {
        return Err(Error::new("`-` (standard input) can stand for one file only"));
    }
    Ok(())
}

/// An aligner, the text, and the gold alignment.
type Prepared = (Model, Corpus, Option<Vec<Vec<links::Link>>>);

/// Loads or trains the aligner. All files are read before training.
fn prepare(args: &Args, talk: Talk) -> Result<Prepared, Error> {
    let gold = |corpus: &Corpus| args.gold.as_deref().map(|path| links::read(path, corpus)).transpose();
    if let Some(saved) = &args.force {
        let (model, start) = Model::load(&mut Input::open(saved)?, Progress::NONE)?;
        let corpus = args.text.read(start, talk)?;
        let gold = gold(&corpus)?;
        return Ok((model, corpus, gold));
    }
    let corpus = args.text.read(Corpus::default(), talk)?;
    let gold = gold(&corpus)?;
    let model = train(&corpus, &args.settings, talk)?;
    let [target, source] = model.perplexities(&corpus);
    talk.say(&format!("perplexity per target word {target:.2}, per source word {source:.2}"));
    Ok((model, corpus, gold))
}

/// Converts lines of links to JSON, one line each.
fn as_json(lines: &str) -> String {
    let line = |(id, line): (usize, &str)| {
        let links: Vec<Vec<u32>> = line
            .split_ascii_whitespace()
            .map(|l| l.split('-').filter_map(|n| n.parse().ok()).collect())
            .collect();
        format!("{}\n", json!({"id": id, "links": links}))
    };
    lines.lines().enumerate().map(line).collect()
}

/// Returns the agreement of an alignment with a gold alignment.
fn agreement(found: &[Vec<links::Link>], gold: &[Vec<links::Link>]) -> links::Agreement {
    let mut agreement = links::Agreement::default();
    for (found, expected) in found.iter().zip(gold) {
        agreement.add(found, expected);
    }
    agreement
}

/// Formats the alignment error rate with its counts.
fn compared(agreement: &links::Agreement) -> String {
    format!(
        "alignment error rate {:.2} % ({} links, {} expected, {} common)",
        100.0 * agreement.error_rate(),
        thousands(agreement.found as usize),
        thousands(agreement.expected as usize),
        thousands(agreement.common as usize)
    )
}
