//! Memory-mapped binary files with a common header, which detects incomplete, truncated and foreign files
//! without reading their content.
//!
//! The header has [`HEADER`] bytes: magic bytes, version, a mark that is set when writing has finished, the
//! length of the file, and a checksum of the header. All numbers are little-endian. From [`NUMBERS`] on, the
//! header has room for numbers of the file format, except at [`LENGTH`], where the length of the file is.
//!
//! ```
//! use luthier_io::container::{HEADER, Layout};
//! const LAYOUT: Layout =
//!     Layout { magic: *b"example\0", version: 1, what: "example file", again: "make it again" };
//! let dir = tempfile::tempdir().unwrap();
//! let path = dir.path().join("example");
//! let mut bytes = vec![0; HEADER];
//! bytes.extend(42u32.to_le_bytes());
//! LAYOUT.write(&LAYOUT.seal(bytes), &path).unwrap();
//!
//! let file = LAYOUT.open(&path).unwrap();
//! assert_eq!((file.is_mapped(), file.u32_at(HEADER)), (true, 42));
//! let newer = Layout { version: 2, ..LAYOUT };
//! assert!(newer.open(&path).is_err_and(|e| e.to_string().contains("of version 1, expected 2")));
//! ```

use crate::AtomicFile;
use luthier_core::{Error, Fingerprint, Result, Vocabulary};
use std::{
    fs::File,
    io::{Read as _, Write},
    path::Path,
};

/// Length of the header of a binary file, in bytes.
pub const HEADER: usize = 256;
/// Position in the header, in bytes, from which on a file format keeps its own numbers.
pub const NUMBERS: usize = 16;
/// Position in the header, in bytes, of the length of the file.
pub const LENGTH: usize = 24;
/// Position in the header, in bytes, of the version.
const VERSION: usize = 8;
/// Position in the header, in bytes, of the mark that writing has finished.
const FINISHED: usize = 12;
/// Position in the header, in bytes, of the header's checksum.
const CHECK: usize = HEADER - 8;
/// Value at [`FINISHED`] of a complete file.
const DONE: u32 = 0x600d;

/// A kind of binary file: its magic bytes, its version, and its name in messages.
#[derive(Debug)]
pub struct Layout {
    /// First 8 bytes of every file of this kind.
    pub magic: [u8; 8],
    /// Version of the layout; files of other versions are refused.
    pub version: u32,
    /// Name of this kind of file in messages, such as `binary table`.
    pub what: &'static str,
    /// Hint in messages about a damaged file; must begin with `make it again`.
    pub again: &'static str,
}

enum Bytes {
    Mapped(memmap2::Mmap),
    Owned(Vec<u8>),
}

/// The bytes of a binary file, memory-mapped or owned.
pub struct Container(Bytes);

impl Layout {
    /// Returns whether a file begins with the magic bytes of this kind; false if it cannot be read.
    pub fn fits(&self, path: &Path) -> bool {
        let mut head = [0; 8];
        std::fs::metadata(path).is_ok_and(|m| m.is_file())
            && File::open(path).and_then(|mut f| f.read_exact(&mut head)).is_ok()
            && head == self.magic
    }

    /// Memory-maps a file and checks its header. Fails if the file is of another kind or version, unfinished,
    /// truncated or damaged.
    pub fn open(&self, path: &Path) -> Result<Container> {
        let name = path.display().to_string();
        let failed = |e: std::io::Error| Error::io(&name, "open it", &e);
        let file = File::open(path).map_err(failed)?;
        if !file.metadata().is_ok_and(|m| m.is_file()) {
            let one = self.again.replacen("make it again", "make one", 1);
            return Err(
                Error::in_file(&name, format!("is not a regular file, as a {} must be", self.what)).hint(one)
            );
        }
        // SAFETY: the mapping is read-only. Another program that truncates the file while it is mapped would
        // end this one with a signal, as with any mapped file; Luthier writes such files under a temporary name
        // and renames them, never in place.
        let mapped = unsafe { memmap2::Mmap::map(&file) }.map_err(failed)?;
        let container = Container(Bytes::Mapped(mapped));
        self.check(&container, &name)?;
        Ok(container)
    }

    /// Completes the header of a file in memory, whose first [`HEADER`] bytes are reserved for it.
    pub fn seal(&self, mut bytes: Vec<u8>) -> Container {
        let length = bytes.len() as u64;
        bytes[..8].copy_from_slice(&self.magic);
        bytes[VERSION..VERSION + 4].copy_from_slice(&self.version.to_le_bytes());
        bytes[FINISHED..FINISHED + 4].copy_from_slice(&DONE.to_le_bytes());
        bytes[LENGTH..LENGTH + 8].copy_from_slice(&length.to_le_bytes());
        let check = check_of(&bytes);
        bytes[CHECK..HEADER].copy_from_slice(&check.to_le_bytes());
        Container(Bytes::Owned(bytes))
    }

    /// Fails unless the header of the file called `name` is complete and fits the file.
    fn check(&self, container: &Container, name: &str) -> Result<()> {
        let what = self.what;
        let wrong = |found: String| Err(Error::in_file(name, found).hint(self.again));
        let length = container.bytes().len();
        if length < HEADER {
            return wrong(format!("is a truncated {what}: {length} bytes, expected at least {HEADER}"));
        }
        if container.bytes()[..8] != self.magic {
            let one = self.again.replacen("make it again", "make one", 1);
            return Err(Error::in_file(name, format!("is not a {what}")).hint(one));
        }
        let version = container.u32_at(VERSION);
        if version != self.version {
            return wrong(format!("is a {what} of version {version}, expected {}", self.version));
        }
        if container.u32_at(FINISHED) != DONE {
            return wrong(format!("is a {what} whose writing was not finished"));
        }
        let expected = container.u64_at(LENGTH);
        if expected != length as u64 {
            return wrong(format!("has {length} bytes, expected {expected}: truncated or appended to"));
        }
        if container.u64_at(CHECK) != check_of(container.bytes()) {
            return wrong(format!("is a {what} with a damaged header"));
        }
        Ok(())
    }

    /// Builds the error about the file called `name`, whose header is valid but whose content is damaged.
    pub fn damaged(&self, name: &str) -> Error {
        Error::in_file(name, format!("is a damaged {}", self.what)).hint(self.again)
    }

    /// Writes a file atomically: it appears complete or not at all. Fails if it cannot be written.
    pub fn write(&self, container: &Container, path: &Path) -> Result<()> {
        let mut writer = self.create(path)?;
        let bytes = container.bytes();
        writer.append(&bytes[HEADER..])?;
        writer.finish(&bytes[NUMBERS..CHECK])
    }

    /// Begins a file that is written piece by piece. Fails if `path` cannot be created, or is not a regular,
    /// uncompressed file.
    pub fn create(&self, path: &Path) -> Result<Writer> {
        let name = path.display().to_string();
        // A device, a pipe or a compressed file cannot be mapped.
        let special = std::fs::metadata(path).is_ok_and(|m| !m.is_file());
        if path.as_os_str() == "-" || special || path.extension().is_some_and(|e| e == "gz") {
            return Err(Error::in_file(
                name,
                format!("is not a regular, uncompressed file, as a {} must be", self.what),
            ));
        }
        let mut writer = Writer { name, file: AtomicFile::create(path)?, at: 0 };
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&self.magic);
        header[VERSION..VERSION + 4].copy_from_slice(&self.version.to_le_bytes());
        writer.append(&header)?;
        Ok(writer)
    }
}

/// Writer of a binary file, piece by piece; if it is dropped before [`Writer::finish`], no file is created.
pub struct Writer {
    name: String,
    file: AtomicFile,
    /// Number of bytes written.
    at: u64,
}

impl Writer {
    /// Appends bytes to the file. Fails if writing fails.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.at += bytes.len() as u64;
        self.file.write_all(bytes).map_err(|e| Error::io(&self.name, "write it", &e))
    }

    /// Begins a section aligned to 64 bytes, as [`begin_section`] does; returns its position in the file.
    /// Fails if writing fails.
    pub fn section(&mut self) -> Result<usize> {
        let next = self.at.next_multiple_of(64);
        self.append(&[0; 64][..(next - self.at) as usize])?;
        Ok(self.at as usize)
    }

    /// Completes the header with the numbers of the file format, from [`NUMBERS`] on, and renames the file to
    /// its final name. Fails if either is not possible.
    pub fn finish(mut self, numbers: &[u8]) -> Result<()> {
        let mut header = [0; HEADER];
        header[NUMBERS..NUMBERS + numbers.len()].copy_from_slice(numbers);
        header[LENGTH..LENGTH + 8].copy_from_slice(&self.at.to_le_bytes());
        let check = check_of(&header);
        header[CHECK..HEADER].copy_from_slice(&check.to_le_bytes());
        let mut patch = || {
            self.file.patch(NUMBERS as u64, &header[NUMBERS..])?;
            self.file.patch(FINISHED as u64, &DONE.to_le_bytes())
        };
        patch().map_err(|e| Error::io(&self.name, "write it", &e))?;
        self.file.commit()
    }
}

/// Returns the checksum of the header at the beginning of `bytes`, from [`NUMBERS`] on.
fn check_of(bytes: &[u8]) -> u64 {
    Fingerprint::default().bytes(&bytes[NUMBERS..CHECK]).finish64()
}

impl Container {
    /// Returns all bytes of the file, including the header.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Bytes::Mapped(m) => m,
            Bytes::Owned(v) => v,
        }
    }

    /// Returns the little-endian 32-bit number at position `at`, in bytes. Panics beyond the end of the file.
    #[inline]
    pub fn u32_at(&self, at: usize) -> u32 {
        let mut b = [0; 4];
        b.copy_from_slice(&self.bytes()[at..at + 4]);
        u32::from_le_bytes(b)
    }

    /// Returns the little-endian 64-bit number at position `at`, in bytes. Panics beyond the end of the file.
    #[inline]
    pub fn u64_at(&self, at: usize) -> u64 {
        let mut b = [0; 8];
        b.copy_from_slice(&self.bytes()[at..at + 8]);
        u64::from_le_bytes(b)
    }

    /// Returns whether the bytes are memory-mapped from a file.
    pub fn is_mapped(&self) -> bool {
        matches!(self.0, Bytes::Mapped(_))
    }
}

/// Returns the hash key of a sequence extended by one symbol, where `key` is that of the sequence; 0 is the
/// key of the empty sequence.
#[inline]
pub fn extend(key: u64, symbol: u32) -> u64 {
    let x = (key ^ (u64::from(symbol) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ (x >> 32)
}

/// Returns the first slot to probe for a key in a hash table of `slots` slots.
#[inline]
pub fn slot_of(key: u64, slots: u64) -> u64 {
    ((u128::from(key) * u128::from(slots)) >> 64) as u64
}

/// Pads `bytes` with zeros to a multiple of 64, so that slots do not cross cache lines; returns the new
/// length, the position of the section that begins.
pub fn begin_section(bytes: &mut Vec<u8>) -> usize {
    bytes.resize(bytes.len().next_multiple_of(64), 0);
    bytes.len()
}

/// Size of a slot of a hash table, in bytes: a key, which is not 0, and a value, 8 bytes each.
pub const SLOT: usize = 16;

/// Returns the position, in bytes, of the slot of a key in the hash table of `slots` slots that begins at
/// `section`, or of the empty slot where the key would be inserted (linear probing). The table must have an
/// empty slot.
pub fn place(bytes: &[u8], section: usize, slots: u64, key: u64) -> usize {
    let mut slot = slot_of(key, slots);
    loop {
        let at = section + slot as usize * SLOT;
        let found = bytes[at..].first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
        if found == key || found == 0 {
            return at;
        }
        slot = if slot + 1 == slots { 0 } else { slot + 1 };
    }
}

/// Position of a vocabulary in a binary file.
#[derive(Debug, Clone, Copy, Default)]
pub struct Words {
    /// Number of words in the vocabulary.
    pub words: u64,
    /// Number of slots of the hash table of words.
    pub slots: u64,
    /// Positions in the file, in bytes, of the hash table of words, of the ends of the words in the text, and
    /// of the text.
    pub sections: [usize; 3],
}

impl Words {
    /// Appends a vocabulary to a file in memory; returns the position of the vocabulary.
    pub fn append(bytes: &mut Vec<u8>, vocabulary: &Vocabulary) -> Self {
        let words = vocabulary.len();
        let slots = 2 * words.max(1) as u64;
        let table = begin_section(bytes);
        bytes.resize(table + slots as usize * SLOT, 0);
        for id in 0..words as u32 {
            let key = Vocabulary::key(vocabulary.word(id)).max(1);
            let at = place(bytes, table, slots, key);
            bytes[at..at + 8].copy_from_slice(&key.to_le_bytes());
            bytes[at + 8..at + 16].copy_from_slice(&u64::from(id).to_le_bytes());
        }
        let ends = bytes.len();
        let mut end = 0u64;
        for id in 0..words as u32 {
            end += vocabulary.word(id).len() as u64;
            bytes.extend(end.to_le_bytes());
        }
        let text = bytes.len();
        for id in 0..words as u32 {
            bytes.extend(vocabulary.word(id).as_bytes());
        }
        Words { words: words as u64, slots, sections: [table, ends, text] }
    }

    /// Returns whether the vocabulary lies inside a file of `length` bytes.
    pub fn is_sound(&self, length: usize) -> bool {
        let inside = |section: usize, n: u64, size: usize| {
            section.checked_add((n as usize).saturating_mul(size)).is_some_and(|end| end <= length)
        };
        self.slots > 0
            && inside(self.sections[0], self.slots, SLOT)
            && inside(self.sections[1], self.words, 8)
            && self.sections[2] <= length
    }

    /// Returns the number of a word in the vocabulary of `file`; `None` if it has none.
    pub fn find(&self, file: &Container, word: &str) -> Option<u32> {
        let key = Vocabulary::key(word).max(1);
        let first = slot_of(key, self.slots);
        for slot in (first..self.slots).chain(0..first) {
            let at = self.sections[0] + slot as usize * SLOT;
            match file.u64_at(at) {
                // A damaged table may have the number of a word that does not exist.
                found if found == key => {
                    return Some(file.u32_at(at + 8)).filter(|&id| u64::from(id) < self.words);
                }
                0 => return None,
                _ => {}
            }
        }
        None
    }

    /// Returns the word with a number in the vocabulary of `file`; empty if there is none.
    pub fn word<'a>(&self, file: &'a Container, id: u32) -> &'a str {
        if u64::from(id) >= self.words {
            return "";
        }
        let end = |i: usize| file.u64_at(self.sections[1] + 8 * i) as usize;
        let start = if id == 0 { 0 } else { end(id as usize - 1) };
        let text = self.sections[2];
        file.bytes()
            .get(text.saturating_add(start)..text.saturating_add(end(id as usize)))
            .map_or("", |b| std::str::from_utf8(b).unwrap_or(""))
    }
}
