//! `luthier align`.

use super::{Common, Done, check_outputs, write_out};
use crate::{
    phases::Phases,
    talk::{Talk, thousands},
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
        talk.say(&kept(&corpus, self.max_words));
        if corpus.odd_blanks > 0 {
            talk.warn(&format!(
                "{} lines have no-break or other odd blanks: they stay inside words, only ASCII blanks part them",
                thousands(corpus.odd_blanks)
            ));
        }
        Ok(corpus)
    }
}

/// What is kept and what is not, and why.
pub(crate) fn kept(corpus: &Corpus, max_words: u16) -> String {
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

/// Trains an aligner, and shows how it goes.
pub(crate) fn train(corpus: &Corpus, settings: &Settings, talk: Talk) -> Result<Model, Error> {
    let words = (corpus.target.tokens() + corpus.source.tokens()) as f64;
    let line = |step: &Step| {
        let perplexity = step.value.map(|log| (-log / words).exp())?;
        Some(format!("iteration {} of {}: perplexity {perplexity:.2}", step.done, step.total))
    };
    let phases = Phases::new(talk, &line);
    let model = Model::train(corpus, settings, Progress::new(&|step: &Step| phases.show(step)))?;
    phases.end();
    Ok(model)
}

/// Perplexities of a target and of a source word in the last iteration.
pub(crate) fn perplexities(model: &Model, corpus: &Corpus) -> [f64; 2] {
    let log = model.rounds().last().map_or([f64::NAN; 2], |r| r.log_likelihood);
    let words = [corpus.target.tokens(), corpus.source.tokens()];
    [0, 1].map(|d| (-log[d] / words[d] as f64).exp())
}

/// Aligns, and shows how it goes on a terminal.
pub(crate) fn aligned(
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
    let text = lines(&corpus, &found);
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
    let gold = |corpus: &Corpus| args.gold.as_deref().map(|path| read_links(path, corpus)).transpose();
    if let Some(saved) = &args.force {
        let (model, start) = Model::load(&mut Input::open(saved)?, Progress::NONE)?;
        let corpus = args.text.read(start, talk)?;
        let gold = gold(&corpus)?;
        return Ok((model, corpus, gold));
    }
    let corpus = args.text.read(Corpus::default(), talk)?;
    let gold = gold(&corpus)?;
    let model = train(&corpus, &args.settings, talk)?;
    let [target, source] = perplexities(&model, &corpus);
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

/// One line of links per line of text; pairs that were left out have an empty one.
pub(crate) fn lines(corpus: &Corpus, aligned: &[Vec<links::Link>]) -> String {
    let mut text = String::new();
    let mut at = 0;
    for (&line, pairs) in corpus.lines.iter().zip(aligned) {
        while at < line {
            text.push('\n');
            at += 1;
        }
        links::write(pairs, &mut text);
        text.push('\n');
        at += 1;
    }
    for _ in at..corpus.total as u32 {
        text.push('\n');
    }
    text
}

/// Reads the links of the pairs that are kept; the file has one line per line of text.
pub(crate) fn read_links(path: &Path, corpus: &Corpus) -> Result<Vec<Vec<links::Link>>, Error> {
    let mut input = Input::open(path)?;
    let (mut buffer, mut all) = (Vec::new(), Vec::with_capacity(corpus.len()));
    let mut kept = corpus.lines.iter().enumerate().peekable();
    while input.line(&mut buffer)? {
        let text = input.utf8(&buffer)?;
        if let Some((s, _)) = kept.next_if(|(_, line)| u64::from(**line) + 1 == input.line_number()) {
            let mut links = Vec::new();
            let lengths = (corpus.source.sentence(s).len(), corpus.target.sentence(s).len());
            links::parse(text, lengths.0, lengths.1, &mut links)
                .map_err(|e| e.place(input.name(), input.line_number()))?;
            all.push(links);
        }
    }
    if input.line_number() != corpus.total as u64 {
        return Err(Error::in_file(
            input.name(),
            format!("has {} lines, but the text has {}", input.line_number(), corpus.total),
        )
        .hint("expected a line of links for each line of text"));
    }
    Ok(all)
}
