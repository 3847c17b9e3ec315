//! Start-up of a job with one process, or with several started by `mpirun` or a batch system. The first process reads
//! and writes the files of the run and prints messages.
//!
//! Before work begins, all processes compare versions, commands, settings and inputs, so that all of them compute the
//! same results; an error of one process is reported once, by the first process, and ends all of them.

use crate::command::Failure;
use luthier::{
    core::{Error, Result},
    io::{differences, to_toml},
    tune::{Fleet, Wire},
};
use std::sync::{
    OnceLock,
    atomic::{AtomicBool, Ordering},
};

/// Communication between the processes; not set for a single process.
static WIRE: OnceLock<Box<dyn Wire + Send>> = OnceLock::new();

/// Whether processes have begun to exchange their errors.
static BEGUN: AtomicBool = AtomicBool::new(false);

/// Whether every process has found the same error before the job began.
static FAILS_TOGETHER: AtomicBool = AtomicBool::new(false);

/// Marks an error as one that every process finds by itself.
fn known_to_all(e: Error) -> Error {
    FAILS_TOGETHER.store(true, Ordering::Relaxed);
    e
}

/// Returns whether every process of the job knows of the error that ends it.
pub(crate) fn fails_together() -> bool {
    FAILS_TOGETHER.load(Ordering::Relaxed) || fleet().0.fails_together()
}

/// Membership of this process in the job, until it is dropped.
pub(crate) struct Member {
    #[cfg(feature = "mpi")]
    universe: Option<mpi::environment::Universe>,
}

/// Returns the processes of the job.
pub(crate) fn fleet() -> Fleet<'static> {
    match WIRE.get() {
        Some(wire) => Fleet(&**wire),
        None => Fleet::ALONE,
    }
}

/// Returns whether this process reports errors of its command line. All processes find the same errors, unless Open
/// MPI has started several commands.
pub(crate) fn tells_usage() -> bool {
    is_first() || of_launcher(&["OMPI_NUM_APP_CTX"]).is_some_and(|n| n > 1)
}

/// Returns whether this is the first process, which prints messages. Before the job has begun, the rank is taken from
/// the launcher's environment variables.
pub(crate) fn is_first() -> bool {
    match WIRE.get() {
        Some(wire) => wire.rank() == 0,
        None => of_launcher(&["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"]).unwrap_or(0) == 0,
    }
}

/// Returns the default number of threads if several processes share this machine: an equal share of its cores. `None`
/// if the process is alone, or if the launcher has bound each process to its own cores.
pub(crate) fn threads() -> Option<usize> {
    let here = of_launcher(&["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"]).filter(|n| *n > 1)? as usize;
    let mine = std::thread::available_parallelism().ok()?.get();
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").ok()?;
    let all = cores(online.trim());
    (mine * here > all).then(|| (all / here).clamp(1, mine))
}

/// Returns the number of cores in a list such as `0-3,8`.
fn cores(list: &str) -> usize {
    let number = |text: &str| text.parse::<usize>().unwrap_or(0);
    let count =
        |range: &str| range.split_once('-').map_or(1, |(a, b)| (number(b) + 1).saturating_sub(number(a)));
    list.split(',').map(count).sum()
}

/// Returns the first number among the values of some environment variables of the launcher.
fn of_launcher(variables: &[&str]) -> Option<u32> {
    variables.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}

/// Returns the names of the launcher's environment variables, by which a process detects that it belongs to a job.
pub(crate) fn variables() -> Vec<std::ffi::OsString> {
    let ours = |name: &str| ["OMPI_COMM_WORLD_", "PMIX_", "PMI_"].iter().any(|p| name.starts_with(p));
    std::env::vars_os().map(|v| v.0).filter(|name| name.to_str().is_some_and(ours)).collect()
}

/// Returns the number of processes that the launcher has started.
fn started() -> u32 {
    let step =
        || of_launcher(&["PMIX_RANK", "PMI_RANK"]).and_then(|_| of_launcher(&["SLURM_STEP_NUM_TASKS"]));
    of_launcher(&["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"]).or_else(step).unwrap_or(1)
}

/// Fails if the launcher has started several processes, which need MPI.
#[cfg(not(feature = "mpi"))]
pub(crate) fn join() -> Result<Member> {
    match started() {
        1 => Ok(Member {}),
        n => Err(known_to_all(
            Error::new(format!("{n} processes were started, but this luthier was built without MPI"))
                .hint("build it with `cargo build --release --features mpi`, or start one process"),
        )),
    }
}

/// Joins the MPI job if this process was started as part of one. Fails if MPI does not support threads, or reports one
/// process although the launcher has started several.
#[cfg(feature = "mpi")]
pub(crate) fn join() -> Result<Member> {
    use luthier::cluster::Cluster;
    if of_launcher(&["OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"]).is_none() {
        return Ok(Member { universe: None });
    }
    let (cluster, universe) = Cluster::join()
        .ok_or_else(|| Error::new("the MPI library does not support threads (MPI_THREAD_FUNNELED)"))?;
    if cluster.size() > 1 {
        let _ = WIRE.set(Box::new(cluster));
    } else if started() > 1 {
        return Err(known_to_all(
            Error::new(format!("{} processes were started, but MPI reports one", started())).hint(
                "the launcher and the MPI library are incompatible; see `srun --mpi=list`, or use mpirun",
            ),
        ));
    }
    Ok(Member { universe: Some(universe) })
}

/// Fails unless all processes of the job have the same version and binary of luthier, the same floating-point results
/// and the same command, so that they compute bit-for-bit equal results.
#[cfg(feature = "mpi")]
pub(crate) fn greet(verb: &str) -> Result<()> {
    use luthier::{
        cluster::Cluster,
        core::{Fingerprint, math},
    };
    if fleet().is_alone() {
        return Ok(());
    }
    let program = std::env::current_exe().and_then(std::fs::read).unwrap_or_default();
    let program = Fingerprint::default().bytes(&program).finish();
    // The same binary gives the same bits on all processors, unless a library has changed the rounding mode or has
    // subnormal numbers, such as exp(−740), replaced by zero.
    let mut numbers: Vec<f64> = (0..1000).map(|i| f64::from(i) * -0.74).collect();
    math::exp_in_place(&mut numbers);
    let numbers = numbers.iter().fold(Fingerprint::default(), |f, x| f.word(x.to_bits())).finish();
    let host = Cluster::host();
    let hello = format!("{}\n{program:032x}\n{numbers:032x}\n{verb}\n{host}", env!("CARGO_PKG_VERSION"));
    let all = fleet().0.all_gather(hello.as_bytes());
    let all: Vec<String> = all.iter().map(|h| String::from_utf8_lossy(h).into_owned()).collect();
    let lines: Vec<Vec<&str>> = all.iter().map(|h| h.lines().collect()).collect();
    let what = [
        ("has a different version of luthier", "start the same version on all machines"),
        ("has a different build of luthier", "start the same binary on all machines"),
        (
            "computes exponentials with a different rounding",
            "a library has changed the floating-point mode: start the processes in the same environment",
        ),
        ("was given a different command", "give all processes the same command"),
    ];
    for (at, (odd, hint)) in what.iter().enumerate() {
        if let Some(p) = lines.iter().position(|l| l.get(at) != lines[0].get(at)) {
            let [odd_host, first] = [p, 0].map(|p| lines[p].last().copied().unwrap_or_default());
            let message = format!("{} {odd} than {}", process_name(p, odd_host), process_name(0, first));
            return Err(known_to_all(Error::new(message).hint(*hint)));
        }
    }
    Ok(())
}

/// Succeeds: without MPI there is one process.
#[cfg(not(feature = "mpi"))]
#[allow(clippy::unnecessary_wraps)]
pub(crate) fn greet(_: &str) -> Result<()> {
    Ok(())
}

/// Formats a process for messages: `process 2 on node17`.
fn process_name(rank: usize, host: &str) -> String {
    format!("process {rank} on {host}")
}

#[cfg(feature = "mpi")]
fn host() -> String {
    luthier::cluster::Cluster::host()
}

#[cfg(not(feature = "mpi"))]
fn host() -> String {
    String::new()
}

/// Returns the result of this process if all processes have succeeded; else the first error, in all processes.
pub(crate) fn agree<T>(mine: Result<T>) -> Result<T> {
    let fleet = fleet();
    if fleet.is_alone() {
        return mine;
    }
    BEGUN.store(true, Ordering::Relaxed);
    let told = mine.as_ref().err().map(|e| (host(), e.clone()));
    let all = fleet.gather(Ok(told))?;
    match all.into_iter().enumerate().find_map(|(p, told)| told.map(|t| (p, t))) {
        None => mine,
        Some((0, (_, e))) => Err(fleet.known_to_all(e)),
        Some((p, (host, e))) => {
            Err(fleet.known_to_all(Error::new(format!("{}: {e}", process_name(p, &host)))))
        }
    }
}

/// Reports an error to the other processes if this process fails before the first exchange, in which they expect it,
/// and returns the error that all processes agree on.
pub(crate) fn settle(e: Error) -> Error {
    if fails_together() || BEGUN.load(Ordering::Relaxed) {
        return e;
    }
    match agree::<()>(Err(e.clone())) {
        Err(agreed) => agreed,
        Ok(()) => e,
    }
}

/// Runs the last step of a command in the first process; if it fails, all processes fail.
pub(crate) fn last(f: impl FnOnce() -> std::result::Result<(), Failure>) -> std::result::Result<(), Failure> {
    let mine = if is_first() { f() } else { Ok(()) };
    let told = match &mine {
        Err(Failure::Error(e)) => Err(e.clone()),
        _ => Ok(()),
    };
    fleet().agree(told)?;
    mine
}

/// Fails if an input that every process reads is standard input, and there are several processes.
pub(crate) fn no_standard_input(is_standard: bool) -> Result<()> {
    if fleet().is_alone() || !is_standard {
        return Ok(());
    }
    Err(Error::new(
        "standard input is available to the first process only, but all processes must read this input",
    )
    .hint("give a file"))
}

/// Fails unless all processes have the same settings, which include digests of their inputs.
pub(crate) fn same(settings: &impl serde::Serialize) -> Result<()> {
    let fleet = fleet();
    if fleet.is_alone() {
        return Ok(());
    }
    let mine = to_toml(settings)?;
    let all = fleet.gather(Ok((host(), mine.clone())))?;
    let parse = |text: &str| text.parse::<toml::Table>().unwrap_or_default();
    fleet.first(|| {
        for (p, (host, there)) in all.iter().enumerate() {
            if let Some(difference) = differences(&parse(there), &parse(&mine)).first() {
                let message =
                    format!("{} has different inputs or settings: {difference}", process_name(p, host));
                return Err(
                    Error::new(message).hint("give all processes the same command and the same files")
                );
            }
        }
        Ok(())
    })
}

/// Fails if several processes were started for a command that runs in one.
pub(crate) fn only_one(verb: &str) -> Result<()> {
    if fleet().is_alone() {
        return Ok(());
    }
    Err(Error::new(format!("{verb} runs in one process, but {} were started", fleet().0.size()))
        .hint("only tune and decode can run in several processes"))
}

impl Member {
    /// Ends the job after an error: aborts all processes, unless all of them know of the error. Then they wait for each
    /// other, because the launcher kills the remaining processes as soon as one exits with an error.
    #[cfg(feature = "mpi")]
    pub(crate) fn fail(&self) {
        if self.universe.is_none() || fleet().is_alone() {
            return;
        }
        if !fails_together() {
            luthier::cluster::Cluster::abort(2);
        }
        fleet().0.all_gather(&[]);
    }

    /// Does nothing: without MPI there is one process.
    #[cfg(not(feature = "mpi"))]
    #[allow(clippy::unused_self)]
    pub(crate) fn fail(&self) {}
}

#[cfg(test)]
mod tests {
    #[test]
    fn lists_of_cores() {
        for (list, n) in [("0", 1), ("0-3", 4), ("0-3,8", 5), ("0-1,4-7", 6)] {
            assert_eq!(super::cores(list), n, "{list}");
        }
    }
}
