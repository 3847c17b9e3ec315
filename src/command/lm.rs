//! `luthier lm`.

use super::{Common, Done, write_out};
use crate::talk::{Talk, thousands};
use clap::Subcommand;
use luthier::{
    core::Error,
    io::{AtomicFile, Input},
    lm::{Arpa, MAX_ORDER, Model, Sentence, Settings, estimate},
};
use serde_json::json;
use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

/// N-gram language models.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Estimate a model of text: interpolated modified Kneser–Ney, as an ARPA file.
    Build(BuildArgs),
    /// Make a binary of an ARPA file that opens at once and is shared by processes.
    Compile(CompileArgs),
    /// Score text, a sentence a line.
    Query(QueryArgs),
    /// Say what a model is made of.
    Info(InfoArgs),
}

#[derive(Debug, clap::Args)]
struct BuildArgs {
    /// Text, a sentence a line, in the decoder's tokens; `-` is standard input.
    #[arg(long = "in", value_name = "TEXT", default_value = "-")]
    input: PathBuf,
    /// Longest n-gram.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=MAX_ORDER as i64))]
    order: u8,
    /// Leave out n-grams that occur at most this often: a number per order, such as 0,0,1; the last holds for longer ones.
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    prune: Vec<u64>,
    /// Memory for sorting, such as 500M or 4G; what does not fit goes to TMPDIR.
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = bytes)]
    memory: usize,
    /// Where the ARPA file goes; compressed if the name ends in .gz.
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Debug, clap::Args)]
struct CompileArgs {
    /// The ARPA file.
    arpa: PathBuf,
    /// Where the binary goes.
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Debug, clap::Args)]
struct QueryArgs {
    /// The model, binary or ARPA.
    model: PathBuf,
    /// Text, a sentence a line; `-` is standard input.
    #[arg(long = "in", value_name = "TEXT", default_value = "-")]
    input: PathBuf,
    /// Print JSON: a line per sentence, the whole text last.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct InfoArgs {
    /// The model, binary or ARPA.
    model: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, _: &Common, talk: Talk) -> Done {
    match &args.verb {
        Verb::Build(args) => build(args, talk),
        Verb::Compile(args) => compile(args, talk),
        Verb::Query(args) => query(args),
        Verb::Info(args) => info(args),
    }
}

fn build(args: &BuildArgs, talk: Talk) -> Done {
    let order = args.order as usize;
    check_pruning(&args.prune, order)?;
    build_to(&args.input, order, &args.prune, args.memory, &args.output, talk)?;
    Ok(ExitCode::SUCCESS)
}

/// Estimates a model of a text file.
pub(crate) fn build_to(
    text: &Path,
    order: usize,
    prune: &[u64],
    memory: usize,
    output: &Path,
    talk: Talk,
) -> Result<(), Error> {
    let clock = Instant::now();
    let mut input = Input::open(text)?;
    let mut out = AtomicFile::create(output)?;
    let settings = Settings { order, prune: prune.to_vec(), memory, directory: std::env::temp_dir() };
    let mut told = |line: &str| talk.say(&format!("{line}  {:.1} s", clock.elapsed().as_secs_f64()));
    let report = estimate(&mut input, &settings, &mut out, &mut told)?;
    out.commit()?;
    let guessed: Vec<String> = report
        .discounts
        .iter()
        .enumerate()
        .filter(|d| d.1.fallback)
        .map(|(n, _)| format!("{}-grams", n + 1))
        .collect();
    if !guessed.is_empty() {
        talk.warn(&format!(
            "{} do not occur 1, 2, 3 and 4 times as often as natural text has them, so their discounts are a guess (0.5, 1, \
             1.5): is the text tiny, made up, or without repetitions?",
            guessed.join(", ")
        ));
    }
    for (n, (grams, pruned)) in report.grams.iter().zip(&report.pruned).enumerate() {
        let d = report.discounts[n].amount;
        let pruned =
            if *pruned > 0 { format!(", {} pruned", thousands(*pruned as usize)) } else { String::new() };
        talk.say(&format!(
            "{}-grams: {}{pruned}, discounts {:.4} {:.4} {:.4}",
            n + 1,
            thousands(*grams as usize),
            d[1],
            d[2],
            d[3]
        ));
    }
    talk.say(&format!("{} in {:.1} s", output.display(), clock.elapsed().as_secs_f64()));
    Ok(())
}

/// Words stay, and what is longer is not kept without what it contains.
fn check_pruning(prune: &[u64], order: usize) -> Result<(), Error> {
    if prune.first().is_some_and(|&p| p > 0) {
        return Err(Error::new("--prune begins with a number above 0, but words cannot be pruned")
            .hint("begin with 0, such as 0,0,1"));
    }
    if prune.windows(2).any(|w| w[0] > w[1]) {
        return Err(Error::new("--prune has numbers that go down")
            .hint("longer n-grams are rarer: use 0,0,1 or 0,1,2"));
    }
    if prune.len() > order {
        return Err(Error::new(format!("--prune has {} numbers, but the order is {order}", prune.len())));
    }
    Ok(())
}

fn compile(args: &CompileArgs, talk: Talk) -> Done {
    let clock = Instant::now();
    if Model::is_binary(&args.arpa) {
        return Err(Error::in_file(
            args.arpa.display().to_string(),
            "is a binary model already, expected an ARPA file",
        )
        .into());
    }
    let arpa = Arpa::read(&args.arpa)?;
    let model = Model::compile(&arpa, &args.arpa.display().to_string(), &args.output)?;
    talk.say(&format!(
        "{}: {} bytes in {:.1} s",
        args.output.display(),
        thousands(model.info().bytes),
        clock.elapsed().as_secs_f64()
    ));
    Ok(ExitCode::SUCCESS)
}

/// A line per sentence: log₁₀ of its probability, words, unknown words; then the perplexity of all.
fn query(args: &QueryArgs) -> Done {
    if args.model.as_os_str() == "-" && args.input.as_os_str() == "-" {
        return Err(Error::new("standard input cannot be both the model and the text")
            .hint("give the text with --in FILE")
            .into());
    }
    let model = Model::open(&args.model)?;
    let mut input = Input::open(&args.input)?;
    let (mut buffer, mut words, mut out) = (Vec::new(), Vec::new(), String::new());
    let (mut total, mut known, mut tokens, mut unknown, mut sentences) = (0.0, 0.0, 0usize, 0usize, 0usize);
    while input.line(&mut buffer)? {
        words.clear();
        words.extend(input.utf8(&buffer)?.split_ascii_whitespace().map(|w| model.word(w)));
        let Sentence { log10: score, known_log10, unknown: missing } = model.sentence(&words);
        if args.json {
            let line = json!({"log10": score, "words": words.len(), "unknown": missing});
            let _ = writeln!(out, "{line}");
        } else {
            let _ = writeln!(out, "{score:.6}\t{}\t{missing}", words.len());
        }
        total += score;
        known += known_log10;
        tokens += words.len() + 1;
        unknown += missing;
        sentences += 1;
        if out.len() > 1 << 16 {
            write_out(None, out.as_bytes())?;
            out.clear();
        }
    }
    let perplexity = |log: f64, n: usize| if n > 0 { 10f64.powf(-log / n as f64) } else { f64::NAN };
    let (with, without) = (perplexity(total, tokens), perplexity(known, tokens - unknown));
    if args.json {
        let line = json!({
            "sentences": sentences, "words": tokens - sentences, "unknown": unknown, "log10": total,
            "perplexity": with, "perplexity_without_unknown": without,
        });
        let _ = writeln!(out, "{line}");
    } else {
        let _ = writeln!(
            out,
            "total {total:.4} perplexity {with:.4} without unknown words {without:.4} ({sentences} sentences, {} words, \
             {unknown} unknown)",
            tokens - sentences
        );
    }
    write_out(None, out.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Perplexity of a text file, unknown words included.
pub(crate) fn perplexity(model: &Model, text: &Path) -> Result<f64, Error> {
    let mut input = Input::open(text)?;
    let (mut buffer, mut words) = (Vec::new(), Vec::new());
    let (mut total, mut tokens) = (0.0, 0usize);
    while input.line(&mut buffer)? {
        words.clear();
        words.extend(input.utf8(&buffer)?.split_ascii_whitespace().map(|w| model.word(w)));
        total += model.sentence(&words).log10;
        tokens += words.len() + 1;
    }
    Ok(10f64.powf(-total / tokens.max(1) as f64))
}

fn info(args: &InfoArgs) -> Done {
    let clock = Instant::now();
    let model = Model::open(&args.model)?;
    let seconds = clock.elapsed().as_secs_f64();
    let info = model.info();
    let text = if args.json {
        format!(
            "{}\n",
            json!({"order": info.order, "counts": info.counts, "words": model.words(), "bytes": info.bytes,
                   "mapped": info.mapped, "opened_in": seconds})
        )
    } else {
        let kind = if info.mapped { "binary, mapped" } else { "ARPA" };
        let mut text = format!(
            "{kind}, order {}, {} words, {} bytes for queries, opened in {:.1} ms\n",
            info.order,
            thousands(model.words()),
            thousands(info.bytes),
            1e3 * seconds
        );
        for (n, count) in info.counts.iter().enumerate() {
            let _ = writeln!(text, "{}-grams\t{}", n + 1, thousands(*count as usize));
        }
        if let Some(memory) = resident(Path::new("/proc/self/status")) {
            let _ = writeln!(text, "resident\t{memory}");
        }
        text
    };
    write_out(None, text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Memory of this process, as the system says it.
fn resident(status: &Path) -> Option<String> {
    let text = std::fs::read_to_string(status).ok()?;
    text.lines().find_map(|l| l.strip_prefix("VmRSS:")).map(|v| v.trim().to_owned())
}

/// `500M`, `4G` or plain bytes.
pub(crate) fn bytes(text: &str) -> Result<usize, String> {
    let text = text.trim_end_matches(['b', 'B']);
    let (number, unit) = match text.char_indices().next_back() {
        Some((i, 'k' | 'K')) => (&text[..i], 1 << 10),
        Some((i, 'm' | 'M')) => (&text[..i], 1 << 20),
        Some((i, 'g' | 'G')) => (&text[..i], 1 << 30),
        _ => (text, 1),
    };
    let bytes = number.trim().parse::<usize>().ok().and_then(|n| n.checked_mul(unit));
    bytes.filter(|&b| b > 0).ok_or_else(|| "expected a size such as 500M or 4G".to_owned())
}
