//! Communication over MPI between the processes that `mpirun` or a batch system has started: the [`Wire`] of a cluster.
//!
//! If one process is lost, the whole MPI job ends; the run directory can be resumed. No process may wait for a lost
//! one: a panic aborts the process (unwinding would call `MPI_Finalize`, which waits for all processes), and an error
//! that the other processes do not know of aborts the job.

use crate::tune::{Traffic, Wire};
use mpi::{
    Count, Threading,
    datatype::{Partition, PartitionMut},
    environment::{Universe, processor_name},
    topology::SimpleCommunicator,
    traits::{Communicator, CommunicatorCollectives, Root},
};
use std::{
    ops::Range,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

/// The processes of an MPI job, as seen by one of them.
pub struct Cluster {
    rank: u32,
    size: u32,
    traffic: Mutex<Traffic>,
    fails: AtomicBool,
}

/// Maximum number of bytes that all processes together exchange in one MPI call, whose counts have 32 bits.
const AT_ONCE: usize = 1 << 30;

impl Cluster {
    /// Initialises MPI; this process leaves the job when the returned `Universe` is dropped. Also makes panics abort
    /// the process. Returns `None` if MPI is initialised already, or if it does not support `MPI_THREAD_FUNNELED`.
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
        Some((Cluster { rank, size, traffic: Mutex::default(), fails: AtomicBool::default() }, universe))
    }

    /// Returns the name of this machine.
    pub fn host() -> String {
        processor_name().unwrap_or_else(|_| "an unnamed machine".to_owned())
    }

    /// Aborts all processes of the job with an exit code.
    pub fn abort(code: i32) -> ! {
        SimpleCommunicator::world().abort(code)
    }
}

/// Returns the offset of each part, given the numbers of bytes of all parts.
fn starts(counts: &[Count]) -> Vec<Count> {
    let mut next = 0;
    let start = |n: &Count| {
        next += n;
        next - n
    };
    counts.iter().map(start).collect()
}

/// One round of an exchange that is larger than [`AT_ONCE`]: at most `part` bytes of each process.
struct Rounds {
    part: usize,
    round: usize,
}

impl Rounds {
    /// Returns the rounds that the largest of all lengths, in bytes, needs.
    fn new(processes: u32, largest: u64) -> impl Iterator<Item = Rounds> {
        let part = AT_ONCE / processes as usize;
        (0..(largest as usize).div_ceil(part)).map(move |round| Rounds { part, round })
    }

    /// Returns the range of `length` bytes that is exchanged in this round.
    fn of(&self, length: usize) -> Range<usize> {
        length.min(self.round * self.part)..length.min((self.round + 1) * self.part)
    }

    /// Returns the number of bytes of each process that is exchanged in this round.
    fn counts(&self, lengths: &[u64]) -> Vec<Count> {
        lengths.iter().map(|&n| Count::try_from(self.of(n as usize).len()).unwrap_or(0)).collect()
    }
}

/// Appends the bytes that were received from each process to those of earlier rounds.
fn append_parts(all: &mut [Vec<u8>], bytes: &[u8], counts: &[Count]) {
    let mut rest = bytes;
    for (to, &n) in all.iter_mut().zip(counts) {
        let (own, others) = rest.split_at(n as usize);
        to.extend_from_slice(own);
        rest = others;
    }
}

fn total(counts: &[Count]) -> usize {
    counts.iter().map(|&n| n as usize).sum()
}

impl Wire for Cluster {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn all_gather(&self, mine: &[u8]) -> Vec<Vec<u8>> {
        self.gathered(mine, true)
    }

    fn gather(&self, mine: &[u8]) -> Vec<Vec<u8>> {
        self.gathered(mine, false)
    }

    fn exchange(&self, parts: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let clock = Instant::now();
        let world = SimpleCommunicator::world();
        let sent: Vec<u64> = parts.iter().map(|p| p.len() as u64).collect();
        let mut lengths = vec![0u64; self.size as usize];
        world.all_to_all_into(&sent[..], &mut lengths[..]);
        // Number of bytes that each process sends to others, and size of its largest part.
        let others = sent.iter().sum::<u64>() - sent[self.rank as usize];
        let mine = [others, sent.iter().copied().max().unwrap_or(0)];
        let mut sizes = vec![0u64; 2 * self.size as usize];
        world.all_gather_into(&mine[..], &mut sizes[..]);
        let (sums, largest): (Vec<u64>, Vec<u64>) = sizes.chunks(2).map(|s| (s[0], s[1])).unzip();
        let mut all: Vec<Vec<u8>> = lengths.iter().map(|&n| Vec::with_capacity(n as usize)).collect();
        for round in Rounds::new(self.size, largest.into_iter().max().unwrap_or(0)) {
            let (out, back) = (round.counts(&sent), round.counts(&lengths));
            let send: Vec<u8> = parts.iter().flat_map(|p| &p[round.of(p.len())]).copied().collect();
            let mut bytes = vec![0u8; total(&back)];
            let sending = Partition::new(&send[..], &out[..], starts(&out));
            let mut received = PartitionMut::new(&mut bytes[..], &back[..], starts(&back));
            world.all_to_all_varcount_into(&sending, &mut received);
            append_parts(&mut all, &bytes, &back);
        }
        self.count(sums.iter().sum(), clock);
        all
    }

    fn fail_together(&self) {
        self.fails.store(true, Ordering::Relaxed);
    }

    fn fails_together(&self) -> bool {
        self.fails.load(Ordering::Relaxed)
    }

    fn traffic(&self) -> Traffic {
        *self.traffic.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cluster {
    /// Gathers the bytes of all processes, in all processes or in the first one; the others return an empty vector.
    fn gathered(&self, mine: &[u8], for_all: bool) -> Vec<Vec<u8>> {
        let clock = Instant::now();
        let world = SimpleCommunicator::world();
        let first = world.process_at_rank(0);
        let mut lengths = vec![0u64; self.size as usize];
        world.all_gather_into(&[mine.len() as u64][..], &mut lengths[..]);
        let receives = for_all || self.rank == 0;
        let room = |&n: &u64| Vec::with_capacity(n as usize);
        let mut all: Vec<Vec<u8>> = lengths.iter().filter(|_| receives).map(room).collect();
        for round in Rounds::new(self.size, lengths.iter().copied().max().unwrap_or(0)) {
            let counts = round.counts(&lengths);
            let mine = &mine[round.of(mine.len())];
            if !receives {
                first.gather_varcount_into(mine);
                continue;
            }
            let mut bytes = vec![0u8; total(&counts)];
            let mut parts = PartitionMut::new(&mut bytes[..], &counts[..], starts(&counts));
            if for_all {
                world.all_gather_varcount_into(mine, &mut parts);
            } else {
                first.gather_varcount_into_root(mine, &mut parts);
            }
            append_parts(&mut all, &bytes, &counts);
        }
        let copies = if for_all { u64::from(self.size) - 1 } else { 1 };
        let stays = if for_all { 0 } else { lengths[0] };
        self.count(lengths.iter().sum::<u64>() * copies - stays, clock);
        all
    }

    /// Adds bytes and elapsed time to the traffic of the job.
    fn count(&self, bytes: u64, clock: Instant) {
        let mut traffic = self.traffic.lock().unwrap_or_else(PoisonError::into_inner);
        traffic.bytes += bytes;
        traffic.seconds += clock.elapsed().as_secs_f64();
    }
}
