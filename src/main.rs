//! The `luthier` binary: the command line of the library.

mod command;
mod corpus;
mod hypotheses;
mod interrupt;
mod launch;
mod lists;
mod phases;
mod plot;
mod subprocess;
mod table;
mod talk;

use command::{Cli, Failure};
use luthier::core::{Error, ErrorKind};
use std::process::ExitCode;
use talk::Talk;

fn main() -> ExitCode {
    let cli = match command::parse() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    // Everything happens in one pool of threads, the exchange with other processes on one of them.
    match command::thread_pool(&cli.common) {
        Ok(pool) => pool.install(|| execute(cli)),
        Err(e) => tell(&e, cli.common.error_talk()),
    }
}

/// Joins the job, if this process is part of one, and executes the command.
fn execute(cli: Cli) -> ExitCode {
    let talk = cli.common.error_talk();
    let member = match launch::join() {
        Ok(member) => member,
        Err(e) => return tell(&e, talk),
    };
    let greeted = launch::greet(&command::verb_typed()).map_err(Failure::from);
    match greeted.and_then(|()| command::run(cli)) {
        Ok(code) => code,
        // The reader of standard output has closed it, such as `head`: not an error.
        Err(Failure::Gone) => ExitCode::SUCCESS,
        Err(Failure::Error(e)) if e.kind() == ErrorKind::Interrupted => interrupt::ended(),
        Err(Failure::Error(e)) => {
            let e = launch::settle(e);
            let code = tell(&e, talk);
            member.fail();
            code
        }
    }
}

/// Prints an error: once, if all processes of a job know it.
fn tell(e: &Error, talk: Talk) -> ExitCode {
    if launch::is_first() || !launch::fails_together() {
        talk.error(e);
    }
    ExitCode::from(2)
}
