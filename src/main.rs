//! The `luthier` binary: the library works, this talks.

mod command;
mod lists;
mod plot;
mod systems;
mod table;
mod talk;

use clap::Parser;
use command::{Cli, Failure};
use std::{io::Write, process::ExitCode};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => return command::usage(&e),
    };
    match command::run(cli) {
        Ok(code) => code,
        // Whoever reads our output has gone: nothing to complain about.
        Err(Failure::Gone) => ExitCode::SUCCESS,
        Err(Failure::Error(e)) => {
            // If even that cannot be written, the exit code still says it.
            let _ = writeln!(std::io::stderr(), "luthier: {e}");
            ExitCode::from(2)
        }
    }
}
