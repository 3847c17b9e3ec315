//! `luthier align`.

use super::{Common, Done, check_outputs, write_out};
use crate::talk::{Talk, thousands};
use clap::ValueEnum;
use luthier::{
    core::Error,
    io::{AtomicFile, Input},
    train::{
        Corpus, Symmetrization,
        align::{Kind, Model, Round, Settings},
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
/// Each line of the answer has the links of a line of text, such as `0-0 1-2`: source and target position, from 0. Pairs
/// that are left out (an empty side, too many words) have an empty line.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    text: TextArgs,
    /// The model that is trained.
    #[arg(long, value_name = "MODEL", default_value = "hmm")]
    model: KindName,
    #[command(flatten)]
    how: AlignArgs,
    /// Align with a saved model instead of training one.
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["model", "rounds", "first_rounds", "null", "prior", "agreement", "save"])]
    force: Option<PathBuf>,
    /// Save the trained model, for `--force`; compressed if the name ends in .gz.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Compare with this alignment (Pharaoh format, all links sure) and print the error rate: on standard output with
    /// `-o FILE`, else beside the links, on standard error.
    #[arg(long, value_name = "FILE")]
    gold: Option<PathBuf>,
    /// Where the alignment goes, a line per line of text [default: standard output].
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Parallel text.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct TextArgs {
    /// Source text, a sentence a line, in tokens.
    #[arg(long, value_name = "FILE")]
    pub(crate) source: PathBuf,
    /// Its translation, line by line.
    #[arg(long, value_name = "FILE")]
    pub(crate) target: PathBuf,
    /// Leave out pairs with more words on a side.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) max_words: u16,
}

/// How words are aligned.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct AlignArgs {
    /// Rounds of training of the model.
    #[arg(long, value_name = "N", default_value_t = 5, allow_negative_numbers = true)]
    pub(crate) rounds: u16,
    /// Rounds of IBM model 1 before them.
    #[arg(long, value_name = "N", default_value_t = 10, allow_negative_numbers = true)]
    pub(crate) first_rounds: u16,
    /// Probability that a word has no counterpart.
    #[arg(long, value_name = "P", default_value_t = 0.02, allow_negative_numbers = true, value_parser = null)]
    pub(crate) null: f64,
    /// Sparse prior over translations (variational Bayes); 0 is maximum likelihood. Perplexities with and without it do not
    /// compare.
    #[arg(long, value_name = "A", default_value_t = 0.01, allow_negative_numbers = true, value_parser = super::losses::non_negative)]
    pub(crate) prior: f64,
    /// How much each direction listens to the other while the model is trained, from 0 to 1 (Liang et al. 2006).
    #[arg(long, value_name = "A", default_value_t = 0.5, allow_negative_numbers = true, value_parser = agreement)]
    pub(crate) agreement: f64,
    /// How both directions become one alignment.
    #[arg(long, value_name = "HOW", default_value = "grow-diag-final-and")]
    pub(crate) symmetrize: SymmetrizationName,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum KindName {
    /// Steps from the word before (Vogel et al. 1996).
    Hmm,
    /// Near the diagonal (Dyer et al. 2013).
    Ibm2,
    /// Words alone (Brown et al. 1993).
    Ibm1,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum SymmetrizationName {
    Intersection,
    Union,
    GrowDiag,
    GrowDiagFinal,
    GrowDiagFinalAnd,
    /// Each target word has at most one link.
    Forward,
    /// Each source word has at most one link.
    Backward,
}

impl From<SymmetrizationName> for Symmetrization {
    fn from(name: SymmetrizationName) -> Self {
        match name {
            SymmetrizationName::Intersection => Symmetrization::Intersection,
            SymmetrizationName::Union => Symmetrization::Union,
            SymmetrizationName::GrowDiag => Symmetrization::GrowDiag,
            SymmetrizationName::GrowDiagFinal => Symmetrization::GrowDiagFinal,
            SymmetrizationName::GrowDiagFinalAnd => Symmetrization::GrowDiagFinalAnd,
            SymmetrizationName::Forward => Symmetrization::Forward,
            SymmetrizationName::Backward => Symmetrization::Backward,
        }
    }
}

fn agreement(text: &str) -> Result<f64, String> {
    super::losses::number(text, |a| (0.0..=1.0).contains(&a), "a number from 0 to 1")
}

fn null(text: &str) -> Result<f64, String> {
    super::losses::number(text, |p| p > 0.0 && p < 1.0, "a number between 0 and 1")
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
        let corpus = Corpus::with(&mut source, &mut target, self.max_words.into(), start)?;
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

impl AlignArgs {
    fn settings(&self, kind: KindName) -> Settings {
        Settings {
            kind: match kind {
                KindName::Hmm => Kind::Hmm,
                KindName::Ibm2 => Kind::Ibm2,
                KindName::Ibm1 => Kind::Ibm1,
            },
            first_rounds: self.first_rounds.into(),
            rounds: self.rounds.into(),
            null: self.null,
            prior: self.prior,
            agreement: self.agreement,
        }
    }

    /// Mistakes that can be told at once.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.first_rounds == 0 && self.rounds == 0 {
            return Err(Error::new("--rounds and --first-rounds are both 0: nothing would be learned"));
        }
        Ok(())
    }

    /// Trains, and tells how it goes. The numbers are perplexities of a target and of a source word in the last round.
    pub(crate) fn train(
        &self,
        corpus: &Corpus,
        kind: KindName,
        talk: Talk,
    ) -> Result<(Model, [f64; 2]), Error> {
        self.check()?;
        let clock = Instant::now();
        let [targets, sources] = [corpus.target.tokens() as f64, corpus.source.tokens() as f64];
        let mut last = [f64::NAN; 2];
        let mut told = |round: &Round| {
            let name = match round.kind {
                Kind::Ibm1 => "IBM 1",
                Kind::Ibm2 => "IBM 2",
                Kind::Hmm => "HMM",
            };
            let perplexity = |log: f64, words: f64| (-log / words).exp();
            let [target, source] = round.log_likelihood;
            last = [perplexity(target, targets), perplexity(source, sources)];
            talk.say(&format!(
                "round {} ({name}): perplexity of a word {:.2} and {:.2}  {:.1} s",
                round.round,
                last[0],
                last[1],
                clock.elapsed().as_secs_f64()
            ));
        };
        let model = Model::train(corpus, &self.settings(kind), &mut told);
        Ok((model, last))
    }
}

pub(crate) fn run(args: &Args, _: &Common, talk: Talk) -> Done {
    let clock = Instant::now();
    let (source, target) = (args.text.source.as_path(), args.text.target.as_path());
    check_outputs(
        &[args.output.as_deref().or(Some(Path::new("-"))), args.save.as_deref()],
        &[source, target],
    )?;
    let standard = [Some(source), args.force.as_deref(), args.gold.as_deref(), Some(target)];
    if standard.iter().flatten().filter(|p| p.as_os_str() == "-").count() > 1 {
        return Err(Error::new("standard input can be one of the files only").into());
    }
    // What cannot be written is said before the work.
    let mut out = args.output.as_deref().map(AtomicFile::create).transpose()?;
    let mut saved = args.save.as_deref().map(AtomicFile::create).transpose()?;
    let mut gold = None;
    let (model, corpus) = if let Some(saved) = &args.force {
        let (model, start) = Model::load(&mut Input::open(saved)?)?;
        (model, args.text.read(start, talk)?)
    } else {
        let corpus = args.text.read(Corpus::default(), talk)?;
        gold = args.gold.as_deref().map(|path| read_links(path, &corpus)).transpose()?;
        (args.how.train(&corpus, args.model, talk)?.0, corpus)
    };
    if args.force.is_some() {
        gold = args.gold.as_deref().map(|path| read_links(path, &corpus)).transpose()?;
    }
    let aligned = model.align(&corpus, args.how.symmetrize.into());
    if let (Some(path), Some(mut file)) = (&args.save, saved.take()) {
        let name = path.display().to_string();
        model.save(&corpus, &mut file).map_err(|e| Error::io(name, "write it", &e))?;
        file.commit()?;
    }
    let text = lines(&corpus, &aligned);
    match (&args.output, out.take()) {
        (Some(path), Some(mut file)) => {
            let name = path.display().to_string();
            file.write_all(text.as_bytes()).map_err(|e| Error::io(name, "write it", &e))?;
            file.commit()?;
        }
        _ => write_out(None, text.as_bytes())?,
    }
    if let Some(gold) = gold {
        let mut agreement = links::Agreement::default();
        for (found, expected) in aligned.iter().zip(&gold) {
            agreement.add(found, expected);
        }
        let line = format!(
            "alignment error rate {:.2} % ({} links, {} expected, {} common)",
            100.0 * agreement.error_rate(),
            thousands(agreement.found as usize),
            thousands(agreement.expected as usize),
            thousands(agreement.common as usize)
        );
        // Standard output may have the links.
        if args.output.as_deref().is_some_and(|p| p.as_os_str() != "-") {
            write_out(None, format!("{line}\n").as_bytes())?;
        } else {
            talk.say(&line);
        }
    }
    let links: usize = aligned.iter().map(Vec::len).sum();
    talk.say(&format!("{} links in {:.1} s", thousands(links), clock.elapsed().as_secs_f64()));
    Ok(ExitCode::SUCCESS)
}

/// A line per line of text; pairs that were left out have an empty one.
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

/// Reads the links of the pairs that are kept; the file has a line per line of text.
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
