//! Sorting records that may not fit into memory: sorted runs on disk, merged in the end.

use luthier_core::{Error, Result};
use rayon::prelude::*;
use std::{
    cmp::Ordering,
    collections::BinaryHeap,
    fs::File,
    io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

/// What can be sorted.
pub trait Record: Sized + Send {
    /// Which of two comes first. Records that are equal here are one if the sorter adds.
    fn order(&self, other: &Self) -> Ordering;
    /// Takes up the numbers of an equal one. The result must not depend on the order of such steps.
    fn add(&mut self, other: &Self);
    /// Bytes that it takes in memory.
    fn size(&self) -> usize;
    /// Writes itself.
    fn put(&self, out: &mut impl Write) -> io::Result<()>;
    /// Reads the next one; nothing at the end.
    fn get(input: &mut impl Read) -> io::Result<Option<Self>>;
}

/// Fills `bytes`; false at the end of the input.
pub fn read_or_end(input: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(bytes) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        other => other.map(|()| true),
    }
}

/// Takes records in any order. With `add`, equal records become one.
pub struct Sorter<R> {
    room: usize,
    used: usize,
    add: bool,
    /// Whether records come in order already.
    sorted: bool,
    directory: PathBuf,
    buffer: Vec<R>,
    runs: Vec<File>,
}

impl<R: Record> Sorter<R> {
    /// Holds about `bytes` in memory, and the rest in files without a name in `directory`.
    pub fn new(bytes: usize, add: bool, directory: &Path) -> Self {
        Sorter {
            room: bytes.max(1 << 16),
            used: 0,
            add,
            sorted: false,
            directory: directory.to_owned(),
            buffer: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// For records that come in order.
    pub fn tape(bytes: usize, directory: &Path) -> Self {
        Sorter { sorted: true, ..Self::new(bytes, false, directory) }
    }

    /// Takes one record.
    #[inline]
    pub fn push(&mut self, record: R) -> Result<()> {
        if self.used >= self.room {
            self.tidy();
            // What melts together by half may grow again first.
            if self.used > self.room / 2 {
                self.spill()?;
            }
        }
        self.used += record.size();
        self.buffer.push(record);
        Ok(())
    }

    fn tidy(&mut self) {
        if self.sorted {
            return;
        }
        self.buffer.par_sort_unstable_by(R::order);
        if self.add {
            self.buffer.dedup_by(|next, kept| {
                let same = next.order(kept) == Ordering::Equal;
                if same {
                    kept.add(next);
                }
                same
            });
            self.used = self.buffer.iter().map(R::size).sum();
        }
    }

    /// Many runs become one: every one of them is an open file.
    fn gather(&mut self) -> Result<()> {
        let runs = std::mem::take(&mut self.runs);
        let mut merged = merge::<R>(runs, self.add, &self.directory)?;
        let file = temporary(&self.directory)?;
        self.runs.push(written(file, &self.directory, || merged.next())?);
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        if self.runs.len() >= RUNS {
            self.gather()?;
        }
        let file = match if self.sorted { self.runs.pop() } else { None } {
            Some(mut run) => {
                run.seek(SeekFrom::End(0)).map_err(|e| failed(&self.directory, &e))?;
                run
            }
            None => temporary(&self.directory)?,
        };
        let mut records = self.buffer.drain(..);
        self.runs.push(written(file, &self.directory, || Ok(records.next()))?);
        self.used = 0;
        Ok(())
    }

    /// All records in order.
    pub fn finish(mut self) -> Result<Sorted<R>> {
        self.tidy();
        if self.runs.is_empty() {
            return Ok(Sorted::Memory(self.buffer.into_iter()));
        }
        self.spill()?;
        merge(self.runs, self.add, &self.directory)
    }
}

/// Open files of one sorter at most.
const RUNS: usize = 48;

fn merge<R: Record>(runs: Vec<File>, add: bool, directory: &Path) -> Result<Sorted<R>> {
    let runs = runs.into_iter().map(|f| BufReader::with_capacity(1 << 14, f)).collect();
    let mut merge = Merge { runs, heads: BinaryHeap::new(), add, directory: directory.to_owned() };
    for run in 0..merge.runs.len() {
        merge.refill(run)?;
    }
    Ok(Sorted::Disk(Box::new(merge)))
}

/// Writes records to the end of a run, and goes back to its beginning.
fn written<R: Record>(
    mut file: File,
    directory: &Path,
    mut next: impl FnMut() -> Result<Option<R>>,
) -> Result<File> {
    let mut out = BufWriter::with_capacity(1 << 16, &mut file);
    while let Some(record) = next()? {
        record.put(&mut out).map_err(|e| failed(directory, &e))?;
    }
    let flushed = out.flush();
    drop(out);
    flushed.and_then(|()| file.rewind()).map_err(|e| failed(directory, &e))?;
    Ok(file)
}

/// A file that nobody else sees and that goes away by itself.
fn temporary(directory: &Path) -> Result<File> {
    let path = directory.join(format!(".luthier-sort-{}-{:x}", std::process::id(), unique()));
    let file = File::options().read(true).write(true).create_new(true).open(&path);
    let file = file.map_err(|e| failed(directory, &e))?;
    std::fs::remove_file(&path).map_err(|e| failed(directory, &e))?;
    Ok(file)
}

fn unique() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn failed(directory: &Path, e: &io::Error) -> Error {
    Error::io(directory.display().to_string(), "keep sorted runs in it", e)
        .hint("set TMPDIR to a directory with room, or give more --memory")
}

/// Sorted records.
pub enum Sorted<R> {
    /// They fitted.
    Memory(std::vec::IntoIter<R>),
    /// They did not.
    Disk(Box<Merge<R>>),
}

/// Runs that are merged while they are read.
pub struct Merge<R> {
    runs: Vec<BufReader<File>>,
    heads: BinaryHeap<Head<R>>,
    add: bool,
    directory: PathBuf,
}

/// The first record of a run; the greatest head is the one to take first.
struct Head<R> {
    record: R,
    run: usize,
}

impl<R: Record> Ord for Head<R> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.record.order(&self.record).then(other.run.cmp(&self.run))
    }
}

impl<R: Record> PartialOrd for Head<R> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<R: Record> PartialEq for Head<R> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<R: Record> Eq for Head<R> {}

impl<R: Record> Merge<R> {
    fn refill(&mut self, run: usize) -> Result<()> {
        let next = R::get(&mut self.runs[run]).map_err(|e| failed(&self.directory, &e))?;
        self.heads.extend(next.map(|record| Head { record, run }));
        Ok(())
    }

    fn one(&mut self) -> Result<Option<R>> {
        let Some(Head { record, run }) = self.heads.pop() else { return Ok(None) };
        self.refill(run)?;
        Ok(Some(record))
    }
}

impl<R: Record> Sorted<R> {
    /// The next record.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<R>> {
        match self {
            Sorted::Memory(records) => Ok(records.next()),
            Sorted::Disk(merge) => {
                let Some(mut record) = merge.one()? else { return Ok(None) };
                while merge.add
                    && merge.heads.peek().is_some_and(|h| h.record.order(&record) == Ordering::Equal)
                {
                    if let Some(next) = merge.one()? {
                        record.add(&next);
                    }
                }
                Ok(Some(record))
            }
        }
    }
}
