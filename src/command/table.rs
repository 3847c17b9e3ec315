//! `luthier table`: compilation and queries of phrase and rule tables.

use super::{Common, Done, check_outputs, write_out};
use crate::{
    phases::Phases,
    talk::{Talk, thousands},
};
use clap::Subcommand;
use luthier::{
    core::{Error, Progress, Step},
    io::Input,
    table::{GAPS, Table, is_word, read_text},
};
use serde_json::json;
use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

/// Compile and query phrase and rule tables.
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Convert text tables to a memory-mapped binary.
    Compile(CompileArgs),
    /// Show the translations of phrases, one phrase per line.
    Query(QueryArgs),
    /// Show the size of a table.
    Info(InfoArgs),
}

#[derive(Debug, clap::Args)]
struct TableArgs {
    /// Phrase or rule table: binary, or text in the format of Moses.
    table: PathBuf,
    /// Reordering table (msd-bidirectional-fe) that belongs to a text table.
    #[arg(long, value_name = "FILE")]
    reordering: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct CompileArgs {
    #[command(flatten)]
    table: TableArgs,
    /// Output file of the binary.
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Debug, clap::Args)]
struct QueryArgs {
    #[command(flatten)]
    table: TableArgs,
    /// Phrases to look up, one per line; [X] is a gap, `-` is standard input.
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    input: PathBuf,
}

#[derive(Debug, clap::Args)]
struct InfoArgs {
    #[command(flatten)]
    table: TableArgs,
}

/// Opens a binary table, or reads text tables. Fails if a reordering table is given with a binary table.
fn open(table: &Path, reordering: Option<&Path>, talk: Talk) -> Result<Table, Error> {
    if !Table::is_binary(table) {
        let phases = Phases::new(talk, &|_| None);
        return read_text(table, reordering, Progress::new(&|step: &Step| phases.show(step)));
    }
    if let Some(other) = reordering {
        return Err(Error::in_file(
            table.display().to_string(),
            format!("is a binary table, expected a text table beside --reordering {}", other.display()),
        )
        .hint("compile both text tables together"));
    }
    Table::open(table)
}

pub(crate) fn run(args: &Args, common: &Common, talk: Talk) -> Done {
    match &args.verb {
        Verb::Compile(args) => compile(args, common, talk),
        Verb::Query(args) => query(args, common, talk),
        Verb::Info(args) => info(args, common, talk),
    }
}

fn compile(args: &CompileArgs, common: &Common, talk: Talk) -> Done {
    let clock = Instant::now();
    if Table::is_binary(&args.table.table) {
        let name = args.table.table.display().to_string();
        return Err(Error::in_file(name, "is a binary table already, expected a text table").into());
    }
    check_outputs(&[Some(&args.output)], &[&args.table.table])?;
    let table = open(&args.table.table, args.table.reordering.as_deref(), talk)?;
    table.write(&args.output)?;
    if common.json {
        super::print_json(&json!({"output": args.output, "entries": table.len(), "bytes": table.bytes()}))?;
    }
    talk.say(&format!(
        "{}: {} entries, {} bytes in {:.1} s",
        args.output.display(),
        thousands(table.len()),
        thousands(table.bytes()),
        clock.elapsed().as_secs_f64()
    ));
    Ok(ExitCode::SUCCESS)
}

fn query(args: &QueryArgs, common: &Common, talk: Talk) -> Done {
    if args.table.table.as_os_str() == "-" && args.input.as_os_str() == "-" {
        return Err(Error::new("standard input cannot be both the table and the phrases")
            .hint("give the phrases with --input FILE")
            .into());
    }
    let table = open(&args.table.table, args.table.reordering.as_deref(), talk)?;
    let mut input = Input::open(&args.input)?;
    let (mut line, mut out) = (Vec::new(), String::new());
    let (mut target, mut scores, mut counts) = (Vec::new(), Vec::new(), Vec::new());
    while input.line(&mut line)? {
        let text = input.utf8(&line)?;
        let phrase: Vec<&str> = text.split_ascii_whitespace().collect();
        let mut gaps = GAPS.iter();
        let node = phrase.iter().try_fold(table.root(), |node, word| {
            let gap = table.shape().hierarchical && *word == "[X]";
            table.step(node, if gap { *gaps.next()? } else { table.source_word(word)? })
        });
        for entry in node.map_or(0..0, |n| n.entries()) {
            table.target(entry, &mut target);
            table.scores(entry, &mut scores);
            table.counts(entry, &mut counts);
            let word = |w: &u32| {
                if is_word(*w) { table.target_text(*w) } else { ["[1]", "[2]"][usize::from(*w == GAPS[1])] }
            };
            let words = target.iter().map(word).collect::<Vec<_>>().join(" ");
            let (first, moved) = scores.split_at(table.shape().scores.min(scores.len()));
            if common.json {
                let row = json!({"source": phrase.join(" "), "target": words, "log_scores": first, "log_reordering": moved,
                                 "counts": counts});
                let _ = writeln!(out, "{row}");
            } else {
                let numbers = |n: &[f32]| n.iter().map(|n| format!("{n:.4}")).collect::<Vec<_>>().join(" ");
                let _ = writeln!(
                    out,
                    "{} ||| {words} ||| {} ||| {}",
                    phrase.join(" "),
                    numbers(first),
                    numbers(moved)
                );
            }
        }
        if out.len() > 1 << 16 {
            write_out(None, out.as_bytes())?;
            out.clear();
        }
    }
    write_out(None, out.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn info(args: &InfoArgs, common: &Common, talk: Talk) -> Done {
    let clock = Instant::now();
    let table = open(&args.table.table, args.table.reordering.as_deref(), talk)?;
    let seconds = clock.elapsed().as_secs_f64();
    let (shape, [sources, targets]) = (table.shape(), table.words());
    let text = if common.json {
        format!(
            "{}\n",
            json!({"hierarchical": shape.hierarchical, "entries": table.len(), "sources": table.sources(),
                   "longest": table.longest(), "scores": shape.scores, "reordering": shape.reordering,
                   "source_words": sources, "target_words": targets, "bytes": table.bytes(), "opened_in": seconds})
        )
    } else {
        format!(
            "{} {} of {} source sides, at most {} symbols, {} scores and {} reordering scores each\n\
             {} source and {} target words, {} bytes, opened in {:.1} ms\n",
            thousands(table.len()),
            if shape.hierarchical { "rules" } else { "phrase pairs" },
            thousands(table.sources()),
            table.longest(),
            shape.scores,
            shape.reordering,
            thousands(sources),
            thousands(targets),
            thousands(table.bytes()),
            1e3 * seconds
        )
    };
    write_out(None, text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
