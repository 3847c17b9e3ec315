//! `luthier align`.

use super::{Common, Done, check_outputs, write_out};
use crate::{
    phases::Phases,
    talk::{Talk, thousands, warning},
};
use luthier::{
    core::{Error, Progress, Step},
    io::{AtomicFile, Input},
    train::{
        Corpus,
        align::{Model, Settings},
        links,
    },
};
use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

/// Align the words of parallel text, in Pharaoh format.
///
/// Each output line has the links of one line of text, such as `0-0 1-2`: source and target position, from 0. Pairs that are
/// left out (an empty side, too many words) have an empty line.
#[derive(Debug, clap::Args)]
// In `train`, --model is the model directory.
#[command(mut_arg("align-model", |flag| flag.long("model")))]
pub(crate) struct Args {
    #[command(flatten)]
    text: TextArgs,
    #[command(flatten)]
    settings: Settings,
    /// Align with a saved aligner instead of training one.
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["align-model", "rounds", "first_rounds", "null", "prior", "agreement", "save"])]
    force: Option<PathBuf>,
    /// Save the trained aligner, for `--force`; compressed if the name ends in .gz.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Compare with this alignment (Pharaoh format, all links sure) and print the alignment error rate: on standard output
    /// with `-o FILE`, else on standard error.
    #[arg(long, value_name = "FILE")]
    gold: Option<PathBuf>,
    /// Output file, one line of links per line of text [default: standard output].
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Parallel text.
#[derive(Debug, Clone, clap::Args)]
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
    fn inputs(&self) -> Result<[Input; 2], Error> {
        if self.source.as_os_str() == "-" && self.target.as_os_str() == "-" {
            return Err(Error::new("standard input can be one of the files only"));
        }
        Ok([Input::open(&self.source)?, Input::open(&self.target)?])
    }

    /// Reads the text and says what is left out.
    pub(crate) fn read(&self, start: Corpus, talk: Talk) -> Result<Corpus, Error> {
        let [mut source, mut target] = self.inputs()?;
        let corpus = {
            let phases = Phases::new(talk, &|_| None);
            let show = |step: &Step| phases.show(step);
            Corpus::with(&mut source, &mut target, self.max_words.into(), start, Progress::new(&show))?
        };
        for line in told(&corpus, self.max_words) {
            talk.say(&line);
        }
        Ok(corpus)
    }
}

/// What is left out of a text and what is odd about it, in lines.
pub(crate) fn told(corpus: &Corpus, max_words: u16) -> Vec<String> {
    let mut lines = vec![kept(corpus, max_words)];
    if corpus.odd_blanks > 0 {
        lines.push(warning(&format!(
            "{} lines have no-break or other odd blanks: they stay inside words, only ASCII blanks part them",
            thousands(corpus.odd_blanks)
        )));
    }
    lines
}

/// What is kept and what is not, and why.
fn kept(corpus: &Corpus, max_words: u16) -> String {
    let d = corpus.dropped;
    let mut line = format!(
        "{} of {} pairs, {} and {} words, {} and {} different",
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
        (d.marks, "with |||, <s> or another mark as a word".to_owned()),
    ];
    for (n, why) in reasons.iter().filter(|r| r.0 > 0) {
        line += &format!("; left out: {} {why}", thousands(*n));
    }
    line
}

/// A line about an iteration of an aligner over a text of so many words.
pub(crate) fn iteration(step: &Step, words: usize) -> Option<String> {
    let perplexity = step.value.map(|log| (-log / words as f64).exp())?;
    Some(format!("iteration {} of {}: perplexity {perplexity:.2}", step.done, step.total))
}

/// Trains an aligner, and shows how it goes.
fn train(corpus: &Corpus, settings: &Settings, talk: Talk) -> Result<Model, Error> {
    let words = corpus.target.tokens() + corpus.source.tokens();
    let line = |step: &Step| iteration(step, words);
    let phases = Phases::new(talk, &line);
    let model = Model::train(corpus, settings, Progress::new(&|step: &Step| phases.show(step)))?;
    phases.end();
    Ok(model)
}

/// Aligns, and shows how it goes on a terminal.
fn aligned(
    model: &Model,
    corpus: &Corpus,
    settings: &Settings,
    talk: Talk,
) -> Result<Vec<Vec<links::Link>>, Error> {
    let phases = Phases::new(talk, &|_| None);
    model.align(corpus, settings.symmetrize, Progress::new(&|step: &Step| phases.show(step)))
}

pub(crate) fn run(args: &Args, _: &Common, talk: Talk) -> Done {
    let clock = Instant::now();
    check_files(args)?;
    args.settings.check()?;
    // What cannot be written is said before the work.
    let mut out = args.output.as_deref().map(AtomicFile::create).transpose()?;
    let saved = args.save.as_deref().map(AtomicFile::create).transpose()?;
    let (model, corpus, gold) = prepare(args, talk)?;
    let found = aligned(&model, &corpus, &args.settings, talk)?;
    if let (Some(path), Some(mut file)) = (&args.save, saved) {
        model.save(&corpus, &path.display().to_string(), &mut file, Progress::NONE)?;
        file.commit()?;
    }
    let text = links::to_text(&corpus, &found);
    match (&args.output, out.take()) {
        (Some(path), Some(mut file)) => {
            let name = path.display().to_string();
            file.write_all(text.as_bytes()).map_err(|e| Error::io(name, "write it", &e))?;
            file.commit()?;
        }
        _ => write_out(None, text.as_bytes())?,
    }
    if let Some(gold) = gold {
        let line = compared(&found, &gold);
        // Standard output may have the links.
        if args.output.as_deref().is_some_and(|p| p.as_os_str() != "-") {
            write_out(None, format!("{line}\n").as_bytes())?;
        } else {
            talk.say(&line);
        }
    }
    let links: usize = found.iter().map(Vec::len).sum();
    talk.say(&format!("{} links in {:.1} s", thousands(links), clock.elapsed().as_secs_f64()));
    Ok(ExitCode::SUCCESS)
}

/// Refuses to read standard input twice, and to write over what is read.
fn check_files(args: &Args) -> Result<(), Error> {
    let (source, target) = (args.text.source.as_path(), args.text.target.as_path());
    check_outputs(
        &[args.output.as_deref().or(Some(Path::new("-"))), args.save.as_deref()],
        &[source, target],
    )?;
    let standard = [Some(source), args.force.as_deref(), args.gold.as_deref(), Some(target)];
    if standard.iter().flatten().filter(|p| p.as_os_str() == "-").count() > 1 {
        return Err(Error::new("standard input can be one of the files only"));
    }
    Ok(())
}

/// An aligner, the text, and the links to compare with.
type Prepared = (Model, Corpus, Option<Vec<Vec<links::Link>>>);

/// Loads or trains the aligner. Everything is read before the training.
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
    talk.say(&format!("perplexity of a target word {target:.2}, of a source word {source:.2}"));
    Ok((model, corpus, gold))
}

/// The alignment error rate, in a line.
fn compared(found: &[Vec<links::Link>], gold: &[Vec<links::Link>]) -> String {
    let mut agreement = links::Agreement::default();
    for (found, expected) in found.iter().zip(gold) {
        agreement.add(found, expected);
    }
    format!(
        "alignment error rate {:.2} % ({} links, {} expected, {} common)",
        100.0 * agreement.error_rate(),
        thousands(agreement.found as usize),
        thousands(agreement.expected as usize),
        thousands(agreement.common as usize)
    )
}
