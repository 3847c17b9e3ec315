//! Processes that `mpirun` or a batch system has started, as a [`Wire`].
//!
//! An MPI job ends as a whole: whoever loses a process loses the job, and the run directory is what is left to go on from. So
//! nobody here waits for ever: a panic ends the process at once (unwinding would call `MPI_Finalize`, which waits for all
//! others), and an error that others do not know about ends the job.

use crate::tune::{Traffic, Wire};
use mpi::{
    Count, Threading,
    datatype::PartitionMut,
    environment::{Universe, processor_name},
    topology::SimpleCommunicator,
    traits::{Communicator, CommunicatorCollectives, Root},
};
use std::{
    sync::{Mutex, PoisonError},
    time::Instant,
};

/// The processes of the job.
pub struct Cluster {
    rank: u32,
    size: u32,
    traffic: Mutex<Traffic>,
}

/// Bytes that all processes together exchange at once: counts of MPI have 32 bits.
const AT_ONCE: usize = 1 << 30;

impl Cluster {
    /// Joins the job. When what comes with it goes, this process leaves the job in order. Nothing if MPI is in use already or
    /// would not let threads work beside the main thread.
    pub fn join() -> Option<(Cluster, Universe)> {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            usual(panic);
            std::process::abort();
        }));
        let (universe, threads) = mpi::initialize_with_threading(Threading::Funneled)?;
        if threads < Threading::Funneled {
            return None;
        }
        let world = universe.world();
        let (rank, size) = (world.rank() as u32, world.size() as u32);
        Some((Cluster { rank, size, traffic: Mutex::default() }, universe))
    }

    /// The name of this machine.
    pub fn host() -> String {
        processor_name().unwrap_or_else(|_| "an unnamed machine".to_owned())
    }

    /// Ends all processes of the job.
    pub fn abort(code: i32) -> ! {
        SimpleCommunicator::world().abort(code)
    }
}

impl Wire for Cluster {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn all_gather(&self, mine: &[u8]) -> Vec<Vec<u8>> {
        self.exchange(mine, true)
    }

    fn gather(&self, mine: &[u8]) -> Vec<Vec<u8>> {
        self.exchange(mine, false)
    }

    fn traffic(&self) -> Traffic {
        *self.traffic.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cluster {
    /// Everybody's bytes, for all or for the first process.
    fn exchange(&self, mine: &[u8], for_all: bool) -> Vec<Vec<u8>> {
        let clock = Instant::now();
        let world = SimpleCommunicator::world();
        let mut lengths = vec![0u64; self.size as usize];
        world.all_gather_into(&[mine.len() as u64][..], &mut lengths[..]);
        let mut all: Vec<Vec<u8>> = lengths.iter().map(|&n| Vec::with_capacity(n as usize)).collect();
        let part = AT_ONCE / self.size as usize;
        let rounds = lengths.iter().map(|&n| (n as usize).div_ceil(part)).max().unwrap_or(0);
        for round in 0..rounds {
            let cut = |n: usize| n.min(round * part)..n.min((round + 1) * part);
            let counts: Vec<Count> =
                lengths.iter().map(|&n| Count::try_from(cut(n as usize).len()).unwrap_or(0)).collect();
            let starts: Vec<Count> = counts
                .iter()
                .scan(0, |at, n| {
                    *at += n;
                    Some(*at - n)
                })
                .collect();
            let mine = &mine[cut(mine.len())];
            let first = world.process_at_rank(0);
            if !for_all && self.rank != 0 {
                first.gather_varcount_into(mine);
                continue;
            }
            let mut bytes = vec![0u8; counts.iter().map(|&n| n as usize).sum()];
            let mut parts = PartitionMut::new(&mut bytes[..], &counts[..], &starts[..]);
            if for_all {
                world.all_gather_varcount_into(mine, &mut parts);
            } else {
                first.gather_varcount_into_root(mine, &mut parts);
            }
            for ((to, &start), &n) in all.iter_mut().zip(&starts).zip(&counts) {
                to.extend_from_slice(&bytes[start as usize..][..n as usize]);
            }
        }
        let mut traffic = self.traffic.lock().unwrap_or_else(PoisonError::into_inner);
        traffic.bytes += lengths.iter().sum::<u64>();
        traffic.seconds += clock.elapsed().as_secs_f64();
        if for_all || self.rank == 0 { all } else { Vec::new() }
    }
}
