//! Division of work among threads and processes, with results that are bit-for-bit reproducible on any number of
//! them.
//!
//! All processes of a job hold the same state and make the same decisions; only the work is divided. Every process
//! gathers all results, in an order that does not depend on the number of processes.

use luthier_core::{Error, Result, ShardId};
use rayon::prelude::*;
use serde::{Serialize, de::DeserializeOwned};
use std::ops::Range;

/// Communication between the processes of a job, such as MPI. Called from the main thread only, and by all
/// processes in the same order.
pub trait Wire: Sync {
    /// Returns the rank of this process, from 0 to size − 1.
    fn rank(&self) -> u32;
    /// Returns the number of processes of the job.
    fn size(&self) -> u32;
    /// Sends `mine` to all processes and returns the bytes of every process, in order of rank.
    fn all_gather(&self, mine: &[u8]) -> Vec<Vec<u8>>;
    /// Sends `mine` to the first process, which receives the bytes of every process in order of rank; the
    /// others receive an empty vector.
    fn gather(&self, mine: &[u8]) -> Vec<Vec<u8>> {
        let all = self.all_gather(mine);
        if self.rank() == 0 { all } else { Vec::new() }
    }
    /// Sends `parts[p]` to process `p` and returns what every process has sent to this one, in order of rank.
    fn exchange(&self, parts: &[Vec<u8>]) -> Vec<Vec<u8>>;
    /// Returns the network traffic since the job began; all zero where it is not measured.
    fn traffic(&self) -> Traffic {
        Traffic::default()
    }
    /// Records that every process knows of an error that ends the job, so that all of them end in order.
    fn fail_together(&self) {}
    /// Returns whether every process knows of an error that ends the job.
    fn fails_together(&self) -> bool {
        false
    }
}

/// Network traffic of a job.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Traffic {
    /// Bytes sent from one process to another, added up over all processes.
    pub bytes: u64,
    /// Time that this process has spent in communication, in seconds, waiting for the slowest process
    /// included.
    pub seconds: f64,
}

/// The [`Wire`] of a job with one process: nothing is sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alone;

impl Wire for Alone {
    fn rank(&self) -> u32 {
        0
    }

    fn size(&self) -> u32 {
        1
    }

    fn all_gather(&self, mine: &[u8]) -> Vec<Vec<u8>> {
        vec![mine.to_vec()]
    }

    fn exchange(&self, parts: &[Vec<u8>]) -> Vec<Vec<u8>> {
        parts.to_vec()
    }
}

/// The threads of this process and the processes of its job, over which work is divided.
#[derive(Clone, Copy)]
pub struct Fleet<'a>(pub &'a dyn Wire);

impl Fleet<'_> {
    /// A job of one process, with all its threads.
    pub const ALONE: Fleet<'static> = Fleet(&Alone);

    /// Returns whether this is the only process of the job.
    pub fn is_alone(&self) -> bool {
        self.0.size() == 1
    }

    /// Returns whether this process has rank 0, which reads and writes the run directory and reports
    /// progress.
    pub fn is_first(&self) -> bool {
        self.0.rank() == 0
    }

    /// Marks an error that every process has met or received, so that the job ends in order, and returns it.
    pub fn known_to_all(&self, e: Error) -> Error {
        self.0.fail_together();
        e
    }

    /// Returns the share of this process in `n` pieces of work: a range of consecutive pieces, in order of
    /// rank.
    pub fn mine(&self, n: u32) -> Range<u32> {
        let cut = |rank: u32| share(n as usize, rank, self.0.size()) as u32;
        cut(self.0.rank())..cut(self.0.rank() + 1)
    }

    /// Computes `f` for each of `n` shards, divided among processes and threads; every process receives all
    /// values in order of the shards. Fails on every process with the error of the first shard that failed.
    ///
    /// ```
    /// use luthier_tune::Fleet;
    /// let squares = Fleet::ALONE.map(4, |shard| Ok(shard.0 * shard.0)).unwrap();
    /// assert_eq!(squares, [0, 1, 4, 9]);
    /// ```
    pub fn map<T: Send + Serialize + DeserializeOwned>(
        &self,
        n: u32,
        f: impl Fn(ShardId) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        // Collecting results in parallel would give any of several errors.
        let mine: Vec<Result<T>> = self.mine(n).into_par_iter().map(|i| f(ShardId(i))).collect();
        let mine = mine.into_iter().collect::<Result<Vec<T>>>();
        Ok(self.gather(mine)?.into_iter().flatten().collect())
    }

    /// Returns the values of all processes, in order of rank, to every process. Fails on all of them if
    /// `mine` is an error on any.
    pub fn gather<T: Serialize + DeserializeOwned>(&self, mine: Result<T>) -> Result<Vec<T>> {
        if self.is_alone() {
            return mine.map(|mine| vec![mine]);
        }
        let parts = self.0.all_gather(&encode(&mine)?);
        let parts = parts.iter().map(|bytes| decode::<Result<T>>(bytes)).collect::<Result<Vec<_>>>()?;
        parts.into_iter().collect::<Result<_>>().map_err(|e| self.known_to_all(e))
    }

    /// Returns the values of all processes, in order of rank, to the first process; the others receive an
    /// empty vector. Fails if a value cannot be encoded.
    pub fn collect<T: Serialize + DeserializeOwned>(&self, mine: T) -> Result<Vec<T>> {
        if self.is_alone() {
            return Ok(vec![mine]);
        }
        self.0.gather(&encode(&mine)?).iter().map(|bytes| decode(bytes)).collect()
    }

    /// Sends `parts[p]` to process `p` and returns what every process has sent to this one, in order of rank.
    /// Fails if a value cannot be encoded.
    pub fn exchange<T: Serialize + DeserializeOwned>(&self, parts: Vec<T>) -> Result<Vec<T>> {
        if self.is_alone() {
            return Ok(parts);
        }
        let parts = parts.iter().map(encode).collect::<Result<Vec<_>>>()?;
        self.0.exchange(&parts).iter().map(|bytes| decode(bytes)).collect()
    }

    /// Returns the rows of numbers of all processes, in order of rank, to every process. Sent without
    /// encoding, because minimisers gather sums at every step.
    pub fn rows(&self, mine: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
        if self.is_alone() {
            return mine;
        }
        let mut bytes = Vec::with_capacity(mine.iter().map(|row| 8 + 8 * row.len()).sum());
        for row in &mine {
            bytes.extend((row.len() as u64).to_le_bytes());
            bytes.extend(row.iter().flat_map(|x| x.to_le_bytes()));
        }
        let mut rows = Vec::new();
        for part in self.0.all_gather(&bytes) {
            let mut words = part.as_chunks::<8>().0.iter();
            while let Some(&length) = words.next() {
                let length = u64::from_le_bytes(length) as usize;
                rows.push(words.by_ref().take(length).map(|w| f64::from_le_bytes(*w)).collect());
            }
        }
        rows
    }

    /// Computes `f` on the first process only and returns its value to every process. Fails on all of them if
    /// `f` fails.
    pub fn first<T: Serialize + DeserializeOwned>(&self, f: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.is_alone() {
            return f();
        }
        let mine = if self.is_first() { f().map(Some) } else { Ok(None) };
        let found = self.gather(mine)?.into_iter().flatten().next();
        found.ok_or_else(|| Error::new("the first process sent no result"))
    }

    /// Returns this process' own value if no process failed. Fails on all of them if `mine` is an error on
    /// any.
    pub fn agree<T>(&self, mine: Result<T>) -> Result<T> {
        let (told, value) = match mine {
            Ok(value) => (Ok(()), Some(value)),
            Err(e) => (Err(e), None),
        };
        self.gather(told)?;
        value.ok_or_else(|| Error::new("internal error: a process failed without a message"))
    }

    /// Fails on every process unless all have the same fingerprint `print`; `what` names the fingerprinted
    /// thing in the message.
    pub fn same(&self, print: u128, what: &str) -> Result<()> {
        let prints = self.gather(Ok(print))?;
        match prints.iter().position(|p| *p != prints[0]) {
            None => Ok(()),
            Some(odd) => Err(self.known_to_all(
                Error::new(format!("the {what} of process {odd} differ from those of process 0")).hint(
                    "all machines of a job must compute the same numbers: use the same kind of machine and the same \
                     libraries",
                ),
            )),
        }
    }
}

/// Encodes a value for other processes.
fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    postcard::to_stdvec(value)
        .map_err(|e| Error::new(format!("cannot encode a message to other processes: {e}")))
}

/// Decodes a value that another process has encoded.
fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    postcard::from_bytes(bytes)
        .map_err(|e| Error::new(format!("cannot decode a message from another process: {e}")))
}

/// Maximum number of pieces that sums over segments are made of; each piece is added from left to right.
const PIECES: usize = 128;

/// Returns the start of a process's share in `n` pieces of work.
pub(crate) fn share(n: usize, process: u32, processes: u32) -> usize {
    (n as u64 * u64::from(process) / u64::from(processes)) as usize
}

/// Returns the share of this process in `n` pieces of work.
pub(crate) fn own(fleet: Fleet<'_>, n: usize) -> Range<usize> {
    let mine = fleet.mine(n as u32);
    mine.start as usize..mine.end as usize
}

/// Divides `n` segments into the pieces of sums; the division depends on `n` alone.
pub(crate) fn pieces(n: usize) -> impl ExactSizeIterator<Item = Range<usize>> + Clone {
    let pieces = n.min(PIECES);
    (0..pieces).map(move |p| n * p / pieces..n * (p + 1) / pieces)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::{
        Barrier, Mutex,
        atomic::{AtomicBool, Ordering},
    };

    /// A process simulated by a thread; processes exchange messages at a barrier.
    pub(crate) struct Played<'a> {
        rank: u32,
        size: u32,
        table: &'a Mutex<Vec<Vec<Vec<u8>>>>,
        barrier: &'a Barrier,
        fails: AtomicBool,
    }

    impl Wire for Played<'_> {
        fn rank(&self) -> u32 {
            self.rank
        }
        fn size(&self) -> u32 {
            self.size
        }
        fn fail_together(&self) {
            self.fails.store(true, Ordering::Relaxed);
        }
        fn fails_together(&self) -> bool {
            self.fails.load(Ordering::Relaxed)
        }
        fn all_gather(&self, mine: &[u8]) -> Vec<Vec<u8>> {
            self.exchange(&vec![mine.to_vec(); self.size as usize])
        }
        fn exchange(&self, parts: &[Vec<u8>]) -> Vec<Vec<u8>> {
            self.table.lock().unwrap()[self.rank as usize] = parts.to_vec();
            self.barrier.wait();
            let mine = |from: &Vec<Vec<u8>>| from[self.rank as usize].clone();
            let all = self.table.lock().unwrap().iter().map(mine).collect();
            self.barrier.wait();
            all
        }
    }

    /// Runs `f` in `size` simulated processes and returns the result of each.
    pub(crate) fn play<T: Send>(size: u32, f: impl Fn(Fleet<'_>) -> T + Sync) -> Vec<T> {
        let table = Mutex::new(vec![Vec::new(); size as usize]);
        let barrier = Barrier::new(size as usize);
        std::thread::scope(|scope| {
            let start = |rank| {
                let (table, barrier, f) = (&table, &barrier, &f);
                scope.spawn(move || {
                    let fails = AtomicBool::new(false);
                    f(Fleet(&Played { rank, size, table, barrier, fails }))
                })
            };
            let ranks: Vec<_> = (0..size).map(start).collect();
            ranks.into_iter().map(|r| r.join().unwrap()).collect()
        })
    }

    #[test]
    fn everybody_receives_all_in_order() {
        for size in [1, 2, 3, 7, 9] {
            for all in play(size, |fleet| fleet.map(7, |s| Ok(s.0 * s.0)).unwrap()) {
                assert_eq!(all, [0, 1, 4, 9, 16, 25, 36]);
            }
            let rows = |fleet: Fleet<'_>| {
                let mine = fleet.mine(5).map(|n| vec![f64::from(n) / 3.0; n as usize]).collect();
                fleet.rows(mine)
            };
            for rows in play(size, rows) {
                assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
                assert_eq!(rows[4], [4.0 / 3.0; 4]);
            }
            for (p, all) in play(size, |fleet| fleet.collect(fleet.0.rank()).unwrap()).iter().enumerate() {
                assert_eq!(*all, (0..if p == 0 { size } else { 0 }).collect::<Vec<_>>());
            }
            let parts = |fleet: Fleet<'_>| {
                let me = fleet.0.rank();
                (me, fleet.exchange((0..size).map(|to| (me, to)).collect()).unwrap())
            };
            for (me, received) in play(size, parts) {
                assert_eq!(received, (0..size).map(|from| (from, me)).collect::<Vec<_>>());
            }
            for first in play(size, |fleet| fleet.first(|| Ok(fleet.0.rank() + 5)).unwrap()) {
                assert_eq!(first, 5);
            }
        }
    }

    #[test]
    fn everybody_has_the_same_error() {
        for size in [2, 3, 7] {
            let one = |s: ShardId| if s.0 > 2 { Err(Error::new(s.0.to_string())) } else { Ok(()) };
            for failed in play(size, |fleet| fleet.map(7, one).unwrap_err()) {
                assert_eq!(failed, Error::new("3"));
            }
            let odd = |fleet: Fleet<'_>| {
                let mine = if fleet.is_first() { Ok(1) } else { Err(Error::in_file("x", "is not there")) };
                (fleet.agree(mine), fleet.same(u128::from(fleet.0.rank() / 2), "weights"), fleet.same(7, ""))
            };
            for (agreed, same, really) in play(size, odd) {
                assert_eq!(agreed.unwrap_err().to_string(), "x: is not there");
                assert_eq!(same.is_err(), size > 2);
                really.unwrap();
            }
        }
    }

    #[test]
    fn pieces_cover_everything() {
        for n in [0, 1, 2, 127, 128, 129, 1014, 100_000] {
            let all: Vec<usize> = pieces(n).flatten().collect();
            assert!(all.into_iter().eq(0..n));
        }
    }
}
