//! `luthier convert`.

use super::{Common, Done};
use crate::{
    lists::{ListArgs, detail},
    talk::Talk,
};
use luthier::core::Error;
use luthier::io::{
    AtomicFile,
    nbest::{To, Writer},
};
use serde_json::json;
use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

/// Convert n-best lists to another format.
///
/// Segments are written in order, candidates in the order of the input. With --json the lists are written as JSON lines; with --output besides, a summary is printed as JSON.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    nbest: ListArgs,
    /// Output format.
    #[arg(long, value_enum, required_unless_present = "json", help_heading = "Output")]
    to: Option<To>,
    /// Output file, compressed if the name ends in .gz [default: standard output].
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, common: &Common, talk: Talk) -> Done {
    let to = args.to.unwrap_or(To::Json);
    super::check_json_output(common, args.output.as_deref())?;
    if common.json && args.output.is_none() && to != To::Json {
        return Err(Error::new("--json prints the lists as JSON lines, but --to names another format")
            .hint("leave --json out, or write the lists to a file with --output FILE")
            .into());
    }
    let rows = args.nbest.read(talk)?;
    if Writer::loses_scores(&rows, to) {
        let lost = rows.score_names.names().join(", ");
        talk.warn(&format!("Moses' format has no place for the scores {lost}: they are left out"));
    }
    let groups = rows.by_segment(args.nbest.allow_missing)?;
    let segments = groups.len();
    detail(&rows, segments, talk);
    let mut file = args.output.as_deref().map(AtomicFile::create).transpose()?;
    let mut standard = io::BufWriter::new(io::stdout().lock());
    let name = args.output.as_ref().map_or("<stdout>".into(), |p| p.display().to_string());
    let out: &mut dyn Write = match &mut file {
        Some(file) => file,
        None => &mut standard,
    };
    let mut writer = Writer::new(&rows, to, rows.has_totals(), out, &name)?;
    for row in groups.into_iter().flatten() {
        if let Err(e) = writer.write(row as usize, None) {
            return super::stdout_gone(args.output.is_none(), e);
        }
    }
    match file {
        Some(file) => {
            file.commit()?;
            if common.json {
                drop(standard);
                super::print_json(&json!({
                    "output": args.output, "segments": segments, "candidates": rows.len(),
                    "features": rows.names.names(), "scores": rows.score_names.names(),
                }))?;
            }
        }
        None => {
            if let Err(e) = standard.flush() {
                return super::stdout_gone(true, Error::io(&name, "write to it", &e));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
