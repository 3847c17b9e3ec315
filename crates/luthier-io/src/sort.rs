//! External merge sort of more records than fit into memory.
//!
//! A [`Sorter`] collects records, sorts them in parallel whenever its memory is full, and writes each sorted
//! run to an unlinked temporary file; [`Sorted`] merges the runs while they are read. Sorting n records of
//! which m fit into memory takes O(n log n) comparisons and, if n > m, writes and reads every record once on
//! disk, and once more for every 48 runs. Results do not depend on the amount of memory or the number of
//! threads.

use crate::Meter;
use luthier_core::{Error, Progress, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::{
    cmp::Ordering,
    collections::BinaryHeap,
    fmt,
    fs::File,
    io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    str::FromStr,
};

/// Memory and temporary directory of an external sort. Neither affects the result.
///
/// ```
/// use luthier_io::sort::SortSettings;
/// let settings = SortSettings { memory: "500M".parse().unwrap(), ..SortSettings::default() };
/// assert_eq!(settings.memory.bytes(), 500 << 20);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
#[cfg_attr(feature = "clap", derive(clap::Args), group(skip))]
pub struct SortSettings {
    /// Sort buffer, such as 500M or 4G, besides the memory of text and tables (does not affect results).
    ///
    /// Data that do not fit are sorted on disk, in TMPDIR.
    #[cfg_attr(feature = "clap", arg(long, value_name = "SIZE", default_value_t))]
    pub memory: ByteSize,
    /// Directory of the temporary files; `None` for the system's directory of temporary files (`TMPDIR`).
    #[cfg_attr(feature = "clap", arg(skip))]
    #[serde(skip)]
    pub directory: Option<PathBuf>,
}

impl SortSettings {
    /// Returns the directory of the temporary files: `directory` if set, else the system's.
    pub fn directory(&self) -> PathBuf {
        self.directory.clone().unwrap_or_else(std::env::temp_dir)
    }
}

/// A number of bytes, at least 1, written as `500M` or `4G` (binary units); 1 GiB by default.
///
/// ```
/// use luthier_io::sort::ByteSize;
/// assert_eq!("4G".parse::<ByteSize>().unwrap().bytes(), 4 << 30);
/// assert_eq!(ByteSize::new(500 << 20).to_string(), "500M");
/// assert!("0".parse::<ByteSize>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ByteSize(usize);

/// Binary units with their letters, largest first.
const UNITS: [(char, usize); 3] = [('G', 1 << 30), ('M', 1 << 20), ('K', 1 << 10)];

impl ByteSize {
    /// Returns a size of `bytes` bytes; 0 counts as 1.
    pub fn new(bytes: usize) -> Self {
        ByteSize(bytes.max(1))
    }

    /// Returns the number of bytes, at least 1.
    pub fn bytes(self) -> usize {
        self.0
    }
}

impl Default for ByteSize {
    fn default() -> Self {
        ByteSize(1 << 30)
    }
}

impl FromStr for ByteSize {
    type Err = Error;

    /// Parses a size such as `500M`, `4G`, `16k` or a number of bytes, with or without a final `B`. Fails on
    /// anything else, and on 0.
    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim_end_matches(['b', 'B']);
        let unit = |last: char| UNITS.iter().find(|u| u.0 == last.to_ascii_uppercase());
        let (number, unit) = match text.char_indices().next_back().map(|(i, last)| (i, unit(last))) {
            Some((i, Some(unit))) => (&text[..i], unit.1),
            _ => (text, 1),
        };
        let bytes = number.trim().parse::<usize>().ok().and_then(|n| n.checked_mul(unit));
        let bytes = bytes.filter(|&b| b > 0);
        bytes.map(ByteSize).ok_or_else(|| Error::new("expected a size such as 500M or 4G"))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS.iter().find(|u| self.0.is_multiple_of(u.1)) {
            Some((letter, unit)) => write!(f, "{}{letter}", self.0 / unit),
            None => write!(f, "{}", self.0),
        }
    }
}

/// A record that a [`Sorter`] can sort, keep on disk and merge.
pub trait Record: Sized + Send {
    /// Compares two records. A sorter with `add` combines records that compare equal into one.
    fn order(&self, other: &Self) -> Ordering;
    /// Adds the counts of a record that compares equal to this one. The result must not depend on the order
    /// of the additions.
    fn add(&mut self, other: &Self);
    /// Returns the size of the record in memory, in bytes.
    fn size(&self) -> usize;
    /// Writes the record in the form that [`Record::get`] reads. Fails if writing fails.
    fn put(&self, out: &mut impl Write) -> io::Result<()>;
    /// Reads the next record; `None` at the end of the input. Fails if reading fails.
    fn get(input: &mut impl Read) -> io::Result<Option<Self>>;
}

/// Fills `bytes` from `input` and returns true; returns false if the input ends before. Fails if reading
/// fails.
pub fn read_or_end(input: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(bytes) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        other => other.map(|()| true),
    }
}

/// An external sort that collects its records: they are pushed in any order, and [`Sorter::finish`] returns
/// them in order.
///
/// ```
/// use luthier_core::Progress;
/// use luthier_io::sort::{Record, Sorter, read_or_end};
/// use std::{cmp::Ordering, io};
///
/// struct Number(u32);
/// impl Record for Number {
///     fn order(&self, other: &Self) -> Ordering { self.0.cmp(&other.0) }
///     fn add(&mut self, _: &Self) {}
///     fn size(&self) -> usize { 4 }
///     fn put(&self, out: &mut impl io::Write) -> io::Result<()> { out.write_all(&self.0.to_le_bytes()) }
///     fn get(input: &mut impl io::Read) -> io::Result<Option<Self>> {
///         let mut bytes = [0; 4];
///         Ok(read_or_end(input, &mut bytes)?.then(|| Number(u32::from_le_bytes(bytes))))
///     }
/// }
///
/// let mut sorter = Sorter::new(1 << 20, false, &std::env::temp_dir(), Progress::NONE);
/// for n in [3, 1, 2] {
///     sorter.push(Number(n))?;
/// }
/// let mut sorted = sorter.finish()?;
/// assert_eq!(sorted.next()?.map(|n| n.0), Some(1));
/// # luthier_core::Result::Ok(())
/// ```
pub struct Sorter<'a, R> {
    /// Memory for records, in bytes.
    room: usize,
    /// Memory of the records in `buffer`, in bytes.
    used: usize,
    /// Whether records that compare equal are combined into one.
    add: bool,
    /// Whether records are pushed in order.
    sorted: bool,
    directory: PathBuf,
    /// Records in memory.
    buffer: Vec<R>,
    /// Sorted runs on disk.
    runs: Vec<File>,
    progress: Progress<'a>,
}

impl<'a, R: Record> Sorter<'a, R> {
    /// Returns a sorter that keeps about `bytes` bytes of records in memory (at least 64 KiB) and the rest in
    /// unlinked files in `directory`. With `add`, records that compare equal are combined into one by
    /// [`Record::add`]. Writing and merging of runs is reported to `progress` as `records`.
    pub fn new(bytes: usize, add: bool, directory: &Path, progress: Progress<'a>) -> Self {
        Sorter {
            room: bytes.max(1 << 16),
            used: 0,
            add,
            sorted: false,
            directory: directory.to_owned(),
            buffer: Vec::new(),
            runs: Vec::new(),
            progress,
        }
    }

    /// Returns a queue with the memory and disk of a sorter, for records that are pushed in order.
    pub fn tape(bytes: usize, directory: &Path, progress: Progress<'a>) -> Self {
        Sorter { sorted: true, ..Self::new(bytes, false, directory, progress) }
    }

    /// Adds one record; if memory is full, sorts the records in memory and writes a run. Fails if the run
    /// cannot be written, and with kind `Interrupted` if the progress callback returns *stop*.
    #[inline]
    pub fn push(&mut self, record: R) -> Result<()> {
        if self.used >= self.room {
            self.tidy();
            // If combining equal records has freed half of the memory, no run is written yet.
            if self.used > self.room / 2 {
                self.spill()?;
            }
        }
        self.used += record.size();
        self.buffer.push(record);
        Ok(())
    }

    /// Sorts the records in memory, and combines those that compare equal.
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

    /// Merges all runs into one, because every run is an open file.
    fn gather(&mut self) -> Result<()> {
        let runs = std::mem::take(&mut self.runs);
        let mut merged = merge::<R>(runs, self.add, &self.directory)?;
        let file = temporary(&self.directory)?;
        let meter = Meter::new(self.progress, "records", 0);
        self.runs.push(written(file, &self.directory, &meter, || merged.next())?);
        Ok(())
    }

    /// Writes the records in memory to a run.
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
        let meter = Meter::new(self.progress, "records", self.buffer.len());
        let mut records = self.buffer.drain(..);
        self.runs.push(written(file, &self.directory, &meter, || Ok(records.next()))?);
        self.used = 0;
        Ok(())
    }

    /// Returns all records in order. Fails if a run cannot be written or read, and with kind `Interrupted` if
    /// the progress callback returns *stop*.
    pub fn finish(mut self) -> Result<Sorted<R>> {
        self.tidy();
        if self.runs.is_empty() {
            return Ok(Sorted::Memory(self.buffer.into_iter()));
        }
        self.spill()?;
        merge(self.runs, self.add, &self.directory)
    }
}

/// Maximum number of runs, which are open files, of one sorter.
const RUNS: usize = 48;

/// Returns the merged records of sorted runs. Fails if a run cannot be read.
fn merge<R: Record>(runs: Vec<File>, add: bool, directory: &Path) -> Result<Sorted<R>> {
    let runs = runs.into_iter().map(|f| BufReader::with_capacity(1 << 14, f)).collect();
    let mut merge = Merge { runs, heads: BinaryHeap::new(), add, directory: directory.to_owned() };
    for run in 0..merge.runs.len() {
        merge.refill(run)?;
    }
    Ok(Sorted::Disk(Box::new(merge)))
}

/// Number of records between two calls of the meter.
const BLOCK: usize = 4096;

/// Appends records to a run and rewinds it. Fails if writing fails or the progress callback returns *stop*.
fn written<R: Record>(
    mut file: File,
    directory: &Path,
    meter: &Meter<'_>,
    mut next: impl FnMut() -> Result<Option<R>>,
) -> Result<File> {
    let mut out = BufWriter::with_capacity(1 << 16, &mut file);
    let mut block = 0;
    while let Some(record) = next()? {
        record.put(&mut out).map_err(|e| failed(directory, &e))?;
        block += 1;
        if block == BLOCK {
            meter.add(std::mem::take(&mut block))?;
        }
    }
    meter.add(block)?;
    let flushed = out.flush();
    drop(out);
    flushed.and_then(|()| file.rewind()).map_err(|e| failed(directory, &e))?;
    Ok(file)
}

/// Creates an unlinked temporary file, which disappears when it is closed.
fn temporary(directory: &Path) -> Result<File> {
    let path = directory.join(format!(".luthier-sort-{}-{:x}", std::process::id(), unique()));
    let file = File::options().read(true).write(true).create_new(true).open(&path);
    let file = file.map_err(|e| failed(directory, &e))?;
    std::fs::remove_file(&path).map_err(|e| failed(directory, &e))?;
    Ok(file)
}

/// Returns a number that is unique in this process.
fn unique() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Builds the error about a run in `directory` that could not be written or read.
fn failed(directory: &Path, e: &io::Error) -> Error {
    Error::io(directory.display().to_string(), "keep sorted runs in it", e)
        .hint("set TMPDIR to a directory with more space, or increase --memory")
}

/// The sorted records of a [`Sorter`], which can be read once.
pub enum Sorted<R> {
    /// All records, in memory.
    Memory(std::vec::IntoIter<R>),
    /// Sorted runs on disk that hold the records.
    Disk(Box<Merge<R>>),
}

/// Sorted runs on disk that are merged while they are read.
pub struct Merge<R> {
    runs: Vec<BufReader<File>>,
    /// Next record of every run that is not exhausted.
    heads: BinaryHeap<Head<R>>,
    /// Whether records that compare equal are combined into one.
    add: bool,
    directory: PathBuf,
}

/// The next record of a run; its order is reversed, because the heap returns the greatest element first.
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
    /// Reads the next record of a run into the heap.
    fn refill(&mut self, run: usize) -> Result<()> {
        let next = R::get(&mut self.runs[run]).map_err(|e| failed(&self.directory, &e))?;
        self.heads.extend(next.map(|record| Head { record, run }));
        Ok(())
    }

    /// Returns the next record of all runs, without combining equal ones.
    fn one(&mut self) -> Result<Option<R>> {
        let Some(Head { record, run }) = self.heads.pop() else { return Ok(None) };
        self.refill(run)?;
        Ok(Some(record))
    }
}

impl<R: Record> Sorted<R> {
    /// Returns the next record in order; `None` after the last. Fails if a run cannot be read.
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

#[cfg(test)]
mod tests {
    use super::*;
    use luthier_core::{ErrorKind, Step};
    use std::ops::ControlFlow;

    #[derive(Debug, PartialEq)]
    struct Pair(u32, u32);

    impl Record for Pair {
        fn order(&self, other: &Self) -> Ordering {
            self.0.cmp(&other.0)
        }
        fn add(&mut self, other: &Self) {
            self.1 += other.1;
        }
        fn size(&self) -> usize {
            8
        }
        fn put(&self, out: &mut impl Write) -> io::Result<()> {
            out.write_all(&self.0.to_le_bytes())?;
            out.write_all(&self.1.to_le_bytes())
        }
        fn get(input: &mut impl Read) -> io::Result<Option<Self>> {
            let (mut a, mut b) = ([0; 4], [0; 4]);
            if !read_or_end(input, &mut a)? {
                return Ok(None);
            }
            input.read_exact(&mut b)?;
            Ok(Some(Pair(u32::from_le_bytes(a), u32::from_le_bytes(b))))
        }
    }

    fn fill(memory: usize, directory: &Path, progress: Progress<'_>) -> Result<Vec<Pair>> {
        let mut sorter = Sorter::new(memory, true, directory, progress);
        for i in 0..40_000u32 {
            sorter.push(Pair(i.wrapping_mul(7919) % 30_000, 1))?;
        }
        let mut sorted = sorter.finish()?;
        std::iter::from_fn(|| sorted.next().transpose()).collect()
    }

    #[test]
    fn memory_does_not_change_the_result() {
        let dir = tempfile::tempdir().unwrap();
        let all = fill(1 << 24, dir.path(), Progress::NONE).unwrap();
        assert!(all.is_sorted_by_key(|p| p.0) && all.iter().map(|p| p.1).sum::<u32>() == 40_000);
        assert!(fill(1, dir.path(), Progress::NONE).unwrap() == all);
    }

    #[test]
    fn an_interrupted_sort_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let stop = |step: &Step| {
            assert_eq!(step.what, "records");
            ControlFlow::Break(())
        };
        let error = fill(1, dir.path(), Progress::new(&stop)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn sizes_are_read_as_they_are_written() {
        for text in ["1G", "500M", "64K", "1", "1025"] {
            assert_eq!(text.parse::<ByteSize>().unwrap().to_string(), text);
        }
        assert_eq!("4gb".parse::<ByteSize>().unwrap().bytes(), 4 << 30);
        for bad in ["", "M", "-1M", "0", "0G", "1T", "x"] {
            assert!(bad.parse::<ByteSize>().is_err(), "{bad}");
        }
    }
}
