//! External sorting: sorted runs on disk that are merged while they are read, for more records than fit into
//! memory.
//!
//! A [`Sorter`] collects records, sorts them in parallel whenever its memory is full, and writes each sorted
//! run to a temporary file without a name; [`Sorted`] merges the runs. n records of which m fit into memory
//! cost O(n log n) comparisons and, if n > m, two passes over the disk (one more for every 48 runs). Results
//! do not depend on the amount of memory or the number of threads.

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
    /// Memory for sorting, such as 500M or 4G; what does not fit goes to TMPDIR (does not affect results).
    /// Text and tables come on top.
    #[cfg_attr(feature = "clap", arg(long, value_name = "SIZE", default_value_t))]
    pub memory: ByteSize,
    /// Directory of the temporary files; without one, the system's directory for such files (`TMPDIR`).
    #[cfg_attr(feature = "clap", arg(skip))]
    #[serde(skip)]
    pub directory: Option<PathBuf>,
}

impl SortSettings {
    /// The directory of the temporary files: the one that was set, or the system's.
    pub fn directory(&self) -> PathBuf {
        self.directory.clone().unwrap_or_else(std::env::temp_dir)
    }
}

/// A number of bytes, at least 1, that people write as `500M` or `4G`; 1 GiB by default.
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
    /// A number of bytes; 0 counts as 1.
    pub fn new(bytes: usize) -> Self {
        ByteSize(bytes.max(1))
    }

    /// The number of bytes, at least 1.
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

    /// Reads `500M`, `4G`, `16k` or plain bytes, with or without a final `B`. Fails on anything else, and on 0.
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
    /// Which of two records comes first. A sorter that adds makes one record of all that are equal here.
    fn order(&self, other: &Self) -> Ordering;
    /// Adds the numbers of a record that is equal in order. The result must not depend on the order of such additions.
    fn add(&mut self, other: &Self);
    /// Bytes that the record takes in memory.
    fn size(&self) -> usize;
    /// Writes the record, so that [`Record::get`] reads it back.
    fn put(&self, out: &mut impl Write) -> io::Result<()>;
    /// Reads the record that was written next; `None` at the end of the input.
    fn get(input: &mut impl Read) -> io::Result<Option<Self>>;
}

/// Reads as many bytes as `bytes` has room for; `false` at the end of the input. Fails if reading fails.
pub fn read_or_end(input: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(bytes) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        other => other.map(|()| true),
    }
}

/// A sorter under construction: takes records in any order and gives them back sorted.
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
    room: usize,
    used: usize,
    add: bool,
    /// Whether records come in order already.
    sorted: bool,
    directory: PathBuf,
    buffer: Vec<R>,
    runs: Vec<File>,
    progress: Progress<'a>,
}

impl<'a, R: Record> Sorter<'a, R> {
    /// A sorter that holds about `bytes` of records in memory (64 KiB at least) and the rest in files without
    /// a name in `directory`. With `add`, records that are equal in order become one by [`Record::add`].
    /// Writing and merging of runs is reported to `progress` as `records`.
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

    /// A queue with the memory and disk of a sorter, for records that are pushed in order already.
    pub fn tape(bytes: usize, directory: &Path, progress: Progress<'a>) -> Self {
        Sorter { sorted: true, ..Self::new(bytes, false, directory, progress) }
    }

    /// Takes one record; when memory is full, sorts what is there and writes a run. Fails if the run cannot
    /// be written, and with kind `Interrupted` when told to stop meanwhile.
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
        let meter = Meter::new(self.progress, "records", 0);
        self.runs.push(written(file, &self.directory, &meter, || merged.next())?);
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
        let meter = Meter::new(self.progress, "records", self.buffer.len());
        let mut records = self.buffer.drain(..);
        self.runs.push(written(file, &self.directory, &meter, || Ok(records.next()))?);
        self.used = 0;
        Ok(())
    }

    /// All records in order. Fails if a run cannot be written or read, and with kind `Interrupted` when told
    /// to stop.
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

/// Records between two looks at the meter.
const BLOCK: usize = 4096;

/// Writes records to the end of a run, and goes back to its beginning.
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

/// The records of a [`Sorter`] in order, to be read once.
pub enum Sorted<R> {
    /// All records fitted into memory.
    Memory(std::vec::IntoIter<R>),
    /// The records lie in sorted runs on disk.
    Disk(Box<Merge<R>>),
}

/// Sorted runs on disk that are merged while they are read.
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
    /// The next record in order; `None` after the last. Fails if a run cannot be read.
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
