//! `luthier convert`.

use super::Done;
use crate::{lists::ListArgs, talk::Talk};
use luthier::core::Error;
use luthier::io::{
    AtomicFile,
    nbest::{To, Writer},
};
use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

/// Rewrites n-best lists: segments in order, candidates as they came.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    nbest: ListArgs,
    /// What to write.
    #[arg(long, value_enum)]
    to: To,
    /// Where it goes, compressed if the name ends in .gz [default: standard output].
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, talk: Talk) -> Done {
    let rows = args.nbest.read()?;
    let to = args.to;
    if Writer::loses_scores(&rows, to) {
        let lost = rows.score_names.names().join(", ");
        talk.warn(&format!("Moses' format has no place for the scores {lost}: they are left out"));
    }
    let groups = rows.by_segment(args.nbest.allow_missing)?;
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
        Some(file) => file.commit()?,
        None => {
            if let Err(e) = standard.flush() {
                return super::stdout_gone(true, Error::io(&name, "write to it", &e));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
