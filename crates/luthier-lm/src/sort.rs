//! Sorting records that may not fit into memory: sorted runs on disk, merged in the end.

use crate::MAX_ORDER;
use luthier_core::{Error, Result};
use rayon::prelude::*;
use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    fs::File,
    io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write},
    path::PathBuf,
};

/// Words in the order that sorting compares, unused places 0, and numbers that go with them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Record {
    pub(crate) key: [u32; MAX_ORDER],
    pub(crate) numbers: [f64; 3],
}

const SIZE: usize = 4 * MAX_ORDER + 24;

impl Record {
    fn put(&self, out: &mut impl Write) -> std::io::Result<()> {
        let mut bytes = [0; SIZE];
        for (b, k) in bytes.chunks_exact_mut(4).zip(self.key) {
            b.copy_from_slice(&k.to_le_bytes());
        }
        for (b, n) in bytes[4 * MAX_ORDER..].chunks_exact_mut(8).zip(self.numbers) {
            b.copy_from_slice(&n.to_le_bytes());
        }
        out.write_all(&bytes)
    }

    fn get(input: &mut impl Read) -> std::io::Result<Option<Record>> {
        let mut bytes = [0; SIZE];
        if let Err(e) = input.read_exact(&mut bytes) {
            return if e.kind() == std::io::ErrorKind::UnexpectedEof { Ok(None) } else { Err(e) };
        }
        let mut record = Record { key: [0; MAX_ORDER], numbers: [0.0; 3] };
        for (k, b) in record.key.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *k = u32::from_le_bytes(*b);
        }
        for (n, b) in record.numbers.iter_mut().zip(bytes[4 * MAX_ORDER..].as_chunks::<8>().0) {
            *n = f64::from_le_bytes(*b);
        }
        Ok(Some(record))
    }
}

/// Takes records in any order. With `add`, records of equal keys become one whose numbers are the sums.
pub(crate) struct Sorter {
    room: usize,
    add: bool,
    /// Whether records come in order already.
    sorted: bool,
    directory: PathBuf,
    buffer: Vec<Record>,
    runs: Vec<File>,
}

impl Sorter {
    /// Holds about `bytes` in memory, and the rest in files without a name in `directory`.
    pub(crate) fn new(bytes: usize, add: bool, directory: &std::path::Path) -> Self {
        let room = (bytes / size_of::<Record>()).max(1000);
        Sorter {
            room,
            add,
            sorted: false,
            directory: directory.to_owned(),
            buffer: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// For records that come in order.
    pub(crate) fn tape(bytes: usize, directory: &std::path::Path) -> Self {
        Sorter { sorted: true, ..Self::new(bytes, false, directory) }
    }

    pub(crate) fn push(&mut self, record: Record) -> Result<()> {
        if self.buffer.len() >= self.room {
            self.tidy();
            // What melts together by half may grow again first.
            if self.buffer.len() > self.room / 2 {
                self.spill()?;
            }
        }
        self.buffer.push(record);
        Ok(())
    }

    fn tidy(&mut self) {
        if self.sorted {
            return;
        }
        self.buffer.par_sort_unstable_by_key(|a| a.key);
        if self.add {
            self.buffer.dedup_by(|next, kept| {
                let same = next.key == kept.key;
                if same {
                    for (k, n) in kept.numbers.iter_mut().zip(next.numbers) {
                        *k += n;
                    }
                }
                same
            });
        }
    }

    /// Many runs become one: every one of them is an open file.
    fn gather(&mut self) -> Result<()> {
        let runs = std::mem::take(&mut self.runs);
        let mut merged = merge(runs, self.add, &self.directory)?;
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
        Ok(())
    }

    /// All records in order.
    pub(crate) fn finish(mut self) -> Result<Sorted> {
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

fn merge(runs: Vec<File>, add: bool, directory: &std::path::Path) -> Result<Sorted> {
    let mut runs: Vec<BufReader<File>> =
        runs.into_iter().map(|f| BufReader::with_capacity(1 << 14, f)).collect();
    let mut heads = BinaryHeap::new();
    let mut waiting = Vec::new();
    for (i, run) in runs.iter_mut().enumerate() {
        let record = Record::get(run).map_err(|e| failed(directory, &e))?;
        heads.extend(record.map(|r| Reverse((r.key, i))));
        waiting.push(record);
    }
    Ok(Sorted::Disk(Box::new(Merge { runs, heads, waiting, add, directory: directory.to_owned() })))
}

/// Writes records to the end of a run, and goes back to its beginning.
fn written(
    mut file: File,
    directory: &std::path::Path,
    mut next: impl FnMut() -> Result<Option<Record>>,
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
pub(crate) fn temporary(directory: &std::path::Path) -> Result<File> {
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

fn failed(directory: &std::path::Path, e: &std::io::Error) -> Error {
    Error::io(directory.display().to_string(), "keep sorted runs in it", e)
        .hint("set TMPDIR to a directory with room, or give more --memory")
}

/// Sorted records.
pub(crate) enum Sorted {
    Memory(std::vec::IntoIter<Record>),
    Disk(Box<Merge>),
}

pub(crate) struct Merge {
    runs: Vec<BufReader<File>>,
    heads: BinaryHeap<Reverse<([u32; MAX_ORDER], usize)>>,
    waiting: Vec<Option<Record>>,
    add: bool,
    directory: PathBuf,
}

impl Merge {
    fn one(&mut self) -> Result<Option<Record>> {
        let Some(Reverse((_, i))) = self.heads.pop() else { return Ok(None) };
        let record = self.waiting[i].take();
        let next = Record::get(&mut self.runs[i]).map_err(|e| failed(&self.directory, &e))?;
        self.heads.extend(next.map(|r| Reverse((r.key, i))));
        self.waiting[i] = next;
        Ok(record)
    }
}

impl Sorted {
    pub(crate) fn next(&mut self) -> Result<Option<Record>> {
        match self {
            Sorted::Memory(records) => Ok(records.next()),
            Sorted::Disk(merge) => {
                let Some(mut record) = merge.one()? else { return Ok(None) };
                while merge.add && merge.heads.peek().is_some_and(|h| h.0.0 == record.key) {
                    if let Some(next) = merge.one()? {
                        for (k, n) in record.numbers.iter_mut().zip(next.numbers) {
                            *k += n;
                        }
                    }
                }
                Ok(Some(record))
            }
        }
    }
}
