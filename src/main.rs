//! The `luthier` binary: the command line of the library.

mod command;
mod corpus;
mod hypotheses;
mod launch;
mod lists;
mod phases;
mod plot;
mod subprocess;
mod table;
mod talk;

use clap::Parser;
use command::{Cli, Failure};
use luthier::core::Error;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => return command::usage(&e),
    };
    // Everything happens in one pool of threads, the exchange with other processes on one of them.
    match command::thread_pool(&cli.common) {
        Ok(pool) => pool.install(|| execute(cli)),
        Err(e) => tell(&e, cli.common.json_errors),
    }
}

/// Joins the job, if this process is part of one, and does what was asked for.
fn execute(cli: Cli) -> ExitCode {
    let json = cli.common.json_errors;
    let member = match launch::join() {
        Ok(member) => member,
        Err(e) => return tell(&e, json),
    };
    let greeted = launch::greet(&command::verb_typed()).map_err(Failure::from);
    match greeted.and_then(|()| command::run(cli)) {
        Ok(code) => code,
        // Whoever reads our output has gone: nothing to complain about.
        Err(Failure::Gone) => ExitCode::SUCCESS,
        Err(Failure::Error(e)) => {
            let e = launch::settle(e);
            let code = tell(&e, json);
            member.fail();
            code
        }
    }
}

/// Says what went wrong: once, if all processes of a job know it.
fn tell(e: &Error, json: bool) -> ExitCode {
    if launch::is_first() || !launch::fails_together() {
        let line = if json { serde_json::json!({ "error": e }).to_string() } else { format!("luthier: {e}") };
        talk::line(&line);
    }
    ExitCode::from(2)
}
