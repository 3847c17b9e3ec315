//! `luthier lm`: estimation, compilation and queries of n-gram language models.

use super::{Common, Done, write_out};
use crate::{
    phases::{Phases, counted},
    talk::{Remark, Talk, thousands},
};
use clap::Subcommand;
use luthier::{
    core::{Error, Progress, Step, math},
    io::{Input, sort::ByteSize},
    lm::{Model, Report, Sentence, Settings, estimate_file},
};
use serde_json::json;
use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

/// Estimate, compile and query n-gram language models.
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Estimate a model from text (interpolated modified Kneser–Ney) and write it as an ARPA file.
    Build(BuildArgs),
    /// Convert an ARPA file to a memory-mapped binary.
    Compile(CompileArgs),
    /// Score text, one sentence per line.
    ///
    /// Prints log₁₀ of the probability, words and unknown words of each sentence, and the perplexity of the text last.
    Query(QueryArgs),
    /// Show the size of a model.
    Info(InfoArgs),
}

#[derive(Debug, clap::Args)]
struct BuildArgs {
    /// Tokenised text, one sentence per line; `-` is standard input.
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    input: PathBuf,
    #[command(flatten)]
    settings: Settings,
    /// Output ARPA file; compressed if the name ends in .gz.
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Debug, clap::Args)]
struct CompileArgs {
    /// ARPA file.
    arpa: PathBuf,
    /// Output file of the binary.
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Debug, clap::Args)]
struct QueryArgs {
    /// Language model, binary or ARPA.
    model: PathBuf,
    /// Tokenised text, one sentence per line; `-` is standard input.
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    input: PathBuf,
}

#[derive(Debug, clap::Args)]
struct InfoArgs {
    /// Language model, binary or ARPA.
    model: PathBuf,
}

pub(crate) fn run(args: &Args, common: &Common, talk: Talk) -> Done {
    match &args.verb {
        Verb::Build(args) => build(args, common, talk),
        Verb::Compile(args) => compile(args, common, talk),
        Verb::Query(args) => query(args, common),
        Verb::Info(args) => info(args, common),
    }
}

fn build(args: &BuildArgs, common: &Common, talk: Talk) -> Done {
    super::check_json_output(common, Some(&args.output))?;
    let clock = Instant::now();
    let phases = Phases::new(talk, &|step| (step.what == "lines").then(|| counted(step)));
    let show = |step: &Step| phases.show(step);
    let report = estimate_file(&args.input, &args.settings, &args.output, Progress::new(&show))?;
    phases.end();
    drop(phases);
    talk.remarks(&told(&report));
    if common.json {
        super::print_json(
            &json!({"output": args.output, "sentences": report.sentences, "words": report.words,
            "distinct_words": report.different, "ngrams": report.grams, "pruned": report.pruned}),
        )?;
    }
    talk.say(&format!("{} in {:.1} s", args.output.display(), clock.elapsed().as_secs_f64()));
    Ok(ExitCode::SUCCESS)
}

/// Returns remarks about an estimated model: sizes of the text and of the model, and a warning if discounts could not
/// be estimated.
pub(crate) fn told(report: &Report) -> Vec<Remark> {
    let [sentences, words, different] =
        [report.sentences, report.words, report.different].map(|n| thousands(n as usize));
    let mut remarks =
        vec![Remark::Line(format!("{sentences} sentences, {words} words, {different} distinct"))];
    let guessed: Vec<String> = report
        .discounts
        .iter()
        .enumerate()
        .filter(|d| d.1.fallback)
        .map(|(n, _)| format!("{}-grams", n + 1))
        .collect();
    if !guessed.is_empty() {
        remarks.push(Remark::Warning(format!(
            "too few {} occur once to four times to estimate discounts, so fixed ones are used (0.5, 1, 1.5); the text may be \
             too small, generated or deduplicated",
            guessed.join(", ")
        )));
    }
    for (n, (grams, pruned)) in report.grams.iter().zip(&report.pruned).enumerate() {
        let d = report.discounts[n].amount;
        let pruned =
            if *pruned > 0 { format!(", {} pruned", thousands(*pruned as usize)) } else { String::new() };
        remarks.push(Remark::Line(format!(
            "{}-grams: {}{pruned}, discounts {:.4} {:.4} {:.4}",
            n + 1,
            thousands(*grams as usize),
            d[1],
            d[2],
            d[3]
        )));
    }
    remarks
}

fn compile(args: &CompileArgs, common: &Common, talk: Talk) -> Done {
    let clock = Instant::now();
    if Model::is_binary(&args.arpa) {
        return Err(Error::in_file(
            args.arpa.display().to_string(),
            "is a binary model already, expected an ARPA file",
        )
        .into());
    }
    let phases = Phases::new(talk, &|_| None);
    let show = |step: &Step| phases.show(step);
    let model = Model::compile_file(&args.arpa, &args.output, Progress::new(&show))?;
    drop(phases);
    if common.json {
        super::print_json(
            &json!({"output": args.output, "order": model.info().order, "words": model.words(),
            "bytes": model.info().bytes}),
        )?;
    }
    talk.say(&format!(
        "{}: {} bytes in {:.1} s",
        args.output.display(),
        thousands(model.info().bytes),
        clock.elapsed().as_secs_f64()
    ));
    Ok(ExitCode::SUCCESS)
}

/// Prints log₁₀ of the probability, the number of words and the number of unknown words of each sentence, then the
/// perplexity of the text.
fn query(args: &QueryArgs, common: &Common) -> Done {
    if args.model.as_os_str() == "-" && args.input.as_os_str() == "-" {
        return Err(Error::new("standard input cannot be both the model and the text")
            .hint("give the text with --input FILE")
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
        if common.json {
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
    let perplexity = |log: f64, n: usize| if n > 0 { math::powf(10.0, -log / n as f64) } else { f64::NAN };
    let (with, without) = (perplexity(total, tokens), perplexity(known, tokens - unknown));
    if common.json {
        let line = json!({
            "sentences": sentences, "words": tokens - sentences, "unknown": unknown, "log10": total,
            "perplexity": with, "perplexity_without_unknown": without,
        });
        let _ = writeln!(out, "{line}");
    } else {
        let _ = writeln!(
            out,
            "total {total:.4} perplexity {with:.4}, excluding unknown words {without:.4} ({sentences} sentences, {} words, \
             {unknown} unknown)",
            tokens - sentences
        );
    }
    write_out(None, out.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn info(args: &InfoArgs, common: &Common) -> Done {
    let clock = Instant::now();
    let model = Model::open(&args.model)?;
    let seconds = clock.elapsed().as_secs_f64();
    let info = model.info();
    let text = if common.json {
        format!(
            "{}\n",
            json!({"order": info.order, "counts": info.counts, "words": model.words(), "bytes": info.bytes,
                   "mapped": info.mapped, "opened_in": seconds})
        )
    } else {
        let kind = if info.mapped { "binary, memory-mapped" } else { "ARPA" };
        let mut text = format!(
            "{kind}, order {}, {} words, {} bytes, opened in {:.1} ms\n",
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

/// Returns the resident memory of a process, as written in its /proc status file; `None` where that is not available.
fn resident(status: &Path) -> Option<String> {
    let text = std::fs::read_to_string(status).ok()?;
    text.lines().find_map(|l| l.strip_prefix("VmRSS:")).map(|v| v.trim().to_owned())
}

/// Parses a number of bytes, with an optional suffix: `500M`, `4G`.
pub(crate) fn bytes(text: &str) -> Result<usize, String> {
    text.parse::<ByteSize>().map(ByteSize::bytes).map_err(|e| e.to_string())
}
