//! The processes of this job: one, or those that `mpirun` has started. One of them reads and writes what belongs to the run,
//! and talks.

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

/// What connects them, if there are several.
static WIRE: OnceLock<Box<dyn Wire + Send>> = OnceLock::new();

/// Whether processes have begun to tell each other how they are.
static BEGUN: AtomicBool = AtomicBool::new(false);

/// Whether every process has met the same error before the job began.
static FAILS_TOGETHER: AtomicBool = AtomicBool::new(false);

/// An error that every process meets by itself.
fn known_to_all(e: Error) -> Error {
    FAILS_TOGETHER.store(true, Ordering::Relaxed);
    e
}

/// Whether every process of the job knows of the error that ends it.
pub(crate) fn fails_together() -> bool {
    FAILS_TOGETHER.load(Ordering::Relaxed) || fleet().0.fails_together()
}

/// While it lives, this process belongs to the job.
pub(crate) struct Member {
    #[cfg(feature = "mpi")]
    universe: Option<mpi::environment::Universe>,
}

/// All processes.
pub(crate) fn fleet() -> Fleet<'static> {
    match WIRE.get() {
        Some(wire) => Fleet(&**wire),
        None => Fleet::ALONE,
    }
}

/// Whether this process shall tell what is wrong with its command. Others tell the same, unless they were given other words.
pub(crate) fn tells_usage() -> bool {
    is_first() || of_launcher(&["OMPI_NUM_APP_CTX"]).is_some_and(|n| n > 1)
}

/// Whether this is the process that talks. Before the job has begun, what the launcher says counts.
pub(crate) fn is_first() -> bool {
    match WIRE.get() {
        Some(wire) => wire.rank() == 0,
        None => of_launcher(&["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"]).unwrap_or(0) == 0,
    }
}

/// Threads for this process where several of them share a machine and nobody has said how many: an equal share of its cores,
/// unless the launcher has given each process cores of its own.
pub(crate) fn threads() -> Option<usize> {
    let here = of_launcher(&["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"]).filter(|n| *n > 1)? as usize;
    let mine = std::thread::available_parallelism().ok()?.get();
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").ok()?;
    let all = cores(online.trim());
    (mine * here > all).then(|| (all / here).clamp(1, mine))
}

/// How many are in a list such as `0-3,8`.
fn cores(list: &str) -> usize {
    let number = |text: &str| text.parse::<usize>().unwrap_or(0);
    let count =
        |range: &str| range.split_once('-').map_or(1, |(a, b)| (number(b) + 1).saturating_sub(number(a)));
    list.split(',').map(count).sum()
}

/// A number that whoever has started this process has left in one of some variables.
fn of_launcher(variables: &[&str]) -> Option<u32> {
    variables.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}

/// Variables by which a process knows that it belongs to a job.
pub(crate) fn variables() -> Vec<std::ffi::OsString> {
    let ours = |name: &str| ["OMPI_COMM_WORLD_", "PMIX_", "PMI_"].iter().any(|p| name.starts_with(p));
    std::env::vars_os().map(|v| v.0).filter(|name| name.to_str().is_some_and(ours)).collect()
}

/// How many processes the launcher has started.
fn started() -> u32 {
    let step =
        || of_launcher(&["PMIX_RANK", "PMI_RANK"]).and_then(|_| of_launcher(&["SLURM_STEP_NUM_TASKS"]));
    of_launcher(&["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"]).or_else(step).unwrap_or(1)
}

#[cfg(not(feature = "mpi"))]
pub(crate) fn join() -> Result<Member> {
    match started() {
        1 => Ok(Member {}),
        n => Err(known_to_all(
            Error::new(format!("{n} processes were started, but this luthier was built for one"))
                .hint("build it with `cargo build --release --features mpi`, or start one"),
        )),
    }
}

/// Joins the job, if this process was started as part of one.
#[cfg(feature = "mpi")]
pub(crate) fn join() -> Result<Member> {
    use luthier::cluster::Cluster;
    if of_launcher(&["OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"]).is_none() {
        return Ok(Member { universe: None });
    }
    let (cluster, universe) = Cluster::join()
        .ok_or_else(|| Error::new("the MPI library does not let threads work beside the main one"))?;
    if cluster.size() > 1 {
        let _ = WIRE.set(Box::new(cluster));
    } else if started() > 1 {
        return Err(known_to_all(
            Error::new(format!("{} processes were started, but MPI knows of one", started()))
                .hint("launcher and MPI library do not speak the same language: see `srun --mpi=list`, or use mpirun"),
        ));
    }
    Ok(Member { universe: Some(universe) })
}

/// What all processes of a job must have in common, so that they come to the same bits.
#[cfg(feature = "mpi")]
pub(crate) fn greet(verb: &str) -> Result<()> {
    use luthier::{cluster::Cluster, core::Fingerprint};
    if fleet().is_alone() {
        return Ok(());
    }
    let program = std::env::current_exe().and_then(std::fs::read).unwrap_or_default();
    let program = Fingerprint::default().bytes(&program).finish();
    // Libraries of other machines may round in another way.
    let numbers = (1..=1000).map(|i| f64::from(i) * 0.0137);
    let rounded = |f: Fingerprint, x: f64| {
        [x.exp(), x.ln(), x.sin(), x.powf(x)].iter().fold(f, |f, y| f.word(y.to_bits()))
    };
    let numbers = numbers.fold(Fingerprint::default(), rounded).finish();
    let host = Cluster::host();
    let hello = format!("{}\n{program:032x}\n{numbers:032x}\n{verb}\n{host}", env!("CARGO_PKG_VERSION"));
    let all = fleet().0.all_gather(hello.as_bytes());
    let all: Vec<String> = all.iter().map(|h| String::from_utf8_lossy(h).into_owned()).collect();
    let lines: Vec<Vec<&str>> = all.iter().map(|h| h.lines().collect()).collect();
    let what = [
        ("has another version of luthier", "start the same luthier everywhere"),
        ("has another build of luthier", "start the same file everywhere"),
        (
            "rounds exponentials in another way",
            "machines of one job must be of one kind, with the same libraries",
        ),
        ("was given another verb", "give all processes the same command"),
    ];
    for (at, (odd, hint)) in what.iter().enumerate() {
        if let Some(p) = lines.iter().position(|l| l.get(at) != lines[0].get(at)) {
            let [odd_host, first] = [p, 0].map(|p| lines[p].last().copied().unwrap_or_default());
            let message = format!("{} {odd} than {}", someone(p, odd_host), someone(0, first));
            return Err(known_to_all(Error::new(message).hint(*hint)));
        }
    }
    Ok(())
}

#[cfg(not(feature = "mpi"))]
#[allow(clippy::unnecessary_wraps)]
pub(crate) fn greet(_: &str) -> Result<()> {
    Ok(())
}

/// `process 2 on node17`.
fn someone(rank: usize, host: &str) -> String {
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

/// What every process has read or prepared for itself, or, for all of them, why it could not.
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
        Some((p, (host, e))) => Err(fleet.known_to_all(Error::new(format!("{}: {e}", someone(p, &host))))),
    }
}

/// An error that came before any word to other processes. What they say first is whether they can begin: this one cannot.
pub(crate) fn settle(e: Error) -> Error {
    if fails_together() || BEGUN.load(Ordering::Relaxed) {
        return e;
    }
    match agree::<()>(Err(e.clone())) {
        Err(agreed) => agreed,
        Ok(()) => e,
    }
}

/// The last thing that the first process does. Whatever comes of it, all of them end in order.
pub(crate) fn last(f: impl FnOnce() -> std::result::Result<(), Failure>) -> std::result::Result<(), Failure> {
    let mine = if is_first() { f() } else { Ok(()) };
    let told = match &mine {
        Err(Failure::Error(e)) => Err(e.clone()),
        _ => Ok(()),
    };
    fleet().agree(told)?;
    mine
}

/// Refuses standard input where every process reads for itself.
pub(crate) fn no_standard_input(is_standard: bool) -> Result<()> {
    if fleet().is_alone() || !is_standard {
        return Ok(());
    }
    Err(Error::new("standard input comes to the first process only, but all of them must read this")
        .hint("give a file"))
}

/// Refuses to begin unless all processes have the same settings, which name their inputs.
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
                let message = format!("{} has other inputs or settings: {difference}", someone(p, host));
                return Err(
                    Error::new(message).hint("give all processes the same command and the same files")
                );
            }
        }
        Ok(())
    })
}

/// Says that a verb is for one process.
pub(crate) fn only_one(verb: &str) -> Result<()> {
    if fleet().is_alone() {
        return Ok(());
    }
    Err(Error::new(format!("{verb} works in one process, but {} were started", fleet().0.size()))
        .hint("tune and decode are for several"))
}

impl Member {
    /// Ends the job of all processes, unless they know that it ends. Then they wait for each other: when the first one leaves
    /// with an exit code, the launcher ends the others, which may not have been told yet.
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
