//! Input files, plain or compressed (detected from content, not from the name), given as a path or `-`.

use luthier_core::{Error, Result};
use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
    sync::{Arc, Mutex},
};

/// An input file that is read line by line, with its name and line number for messages and the digest of its
/// bytes.
///
/// Compressed files are recognised by their content and decompressed transparently.
///
/// ```
/// use luthier_io::Input;
/// let mut input = Input::new("a.txt", &b"the house\r\n\xff\n"[..]).unwrap();
/// let mut line = Vec::new();
/// assert!(input.line(&mut line).unwrap());
/// assert_eq!((input.utf8(&line).unwrap(), input.line_number()), ("the house", 1));
/// input.line(&mut line).unwrap();
/// let error = input.utf8(&line).unwrap_err().to_string();
/// assert!(error.starts_with("a.txt:2: byte 1 of the line (0xff) is not UTF-8"));
/// assert!(!input.line(&mut line).unwrap());
/// ```
pub struct Input {
    name: String,
    /// Number of the line that was read last, from 1.
    line: u64,
    /// Bytes returned by [`Input::peek`].
    ahead: Vec<u8>,
    reader: Box<dyn BufRead + Send>,
    hasher: Arc<Mutex<blake3::Hasher>>,
}

impl Input {
    /// Opens a file, or standard input for `-`. Fails if the file cannot be opened, is a directory, or is in
    /// a compression format that this build cannot read.
    pub fn open(path: &Path) -> Result<Self> {
        if path.as_os_str() == "-" {
            return Self::new("<stdin>", io::stdin());
        }
        let name = path.display().to_string();
        let file = File::open(path).map_err(|e| Error::io(&name, "open it", &e))?;
        if file.metadata().is_ok_and(|m| m.is_dir()) {
            return Err(Error::in_file(name, "is a directory, expected a file"));
        }
        Self::new(&name, file)
    }

    /// Wraps a reader; `name` is its name in error messages. Fails if reading fails, or if the data are in a
    /// compression format that this build cannot read.
    pub fn new(name: &str, raw: impl Read + Send + 'static) -> Result<Self> {
        let hasher = Arc::new(Mutex::new(blake3::Hasher::new()));
        let mut bytes = BufReader::with_capacity(1 << 16, Tee { raw, hasher: hasher.clone() });
        let head = bytes.fill_buf().map_err(|e| Error::io(name, "read it", &e))?;
        refuse_binary(name, head)?;
        let codec = Codec::of(head);
        let reader = decompressed(name, bytes, codec)?;
        Ok(Input { name: name.to_owned(), line: 0, ahead: Vec::new(), reader, hasher })
    }

    /// Returns the name of the file as the user gave it; `<stdin>` for standard input.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of the line that was read last, from 1; 0 before the first.
    pub fn line_number(&self) -> u64 {
        self.line
    }

    /// Builds an error at the line that was read last.
    pub fn error(&self, message: impl Into<String>) -> Error {
        Error::at(&self.name, self.line, message)
    }

    /// Returns the first `n` bytes of the decompressed input, or all if there are fewer, without consuming
    /// them; later calls return the same bytes. Must be called before the first line is read. Fails if
    /// reading fails.
    pub fn peek(&mut self, n: usize) -> Result<&[u8]> {
        if self.ahead.is_empty() {
            let mut head = Vec::new();
            (&mut self.reader).take(n as u64).read_to_end(&mut head).map_err(|e| self.broken(&e))?;
            // The bytes are read again from the front of a chained reader.
            let rest = std::mem::replace(&mut self.reader, Box::new(io::empty()));
            self.reader = Box::new(io::Cursor::new(head.clone()).chain(rest));
            self.ahead = head;
        }
        Ok(&self.ahead)
    }

    /// Reads the next line into `buffer`, without its line end and without a byte order mark; returns false
    /// at the end of the file. Fails if reading fails or compressed data are damaged.
    pub fn line(&mut self, buffer: &mut Vec<u8>) -> Result<bool> {
        buffer.clear();
        let n = self.reader.read_until(b'\n', buffer).map_err(|e| self.broken(&e))?;
        if n == 0 {
            return Ok(false);
        }
        self.line += 1;
        if buffer.last() == Some(&b'\n') {
            buffer.pop();
            if buffer.last() == Some(&b'\r') {
                buffer.pop();
            }
        }
        if self.line == 1 && buffer.starts_with(b"\xef\xbb\xbf") {
            buffer.drain(..3);
        }
        Ok(true)
    }

    /// Reads all bytes that are left, without a byte order mark. Fails if reading fails or compressed data are damaged.
    #[cfg(any(feature = "bitext", feature = "nbest"))]
    pub(crate) fn rest(&mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.reader.read_to_end(&mut bytes).map_err(|e| self.broken(&e))?;
        if self.line == 0 && bytes.starts_with(b"\xef\xbb\xbf") {
            bytes.drain(..3);
        }
        Ok(bytes)
    }

    /// Sets the number of the current line, for a reader of [`Input::rest`].
    #[cfg(feature = "nbest")]
    pub(crate) fn set_line(&mut self, line: u64) {
        self.line = line;
    }

    /// Returns bytes of the current line as text. Fails, naming line and byte, if they are not UTF-8.
    pub fn utf8<'a>(&self, bytes: &'a [u8]) -> Result<&'a str> {
        std::str::from_utf8(bytes).map_err(|e| {
            let at = e.valid_up_to();
            self.error(format!("byte {} of the line (0x{:02x}) is not UTF-8", at + 1, bytes[at]))
                .hint("convert the file to UTF-8, with iconv for instance")
        })
    }

    /// Returns the digest of all bytes of the file as stored (compressed or not), 16 hexadecimal digits;
    /// reads the rest of the file. Fails if reading fails.
    pub fn digest(&mut self) -> Result<String> {
        io::copy(&mut self.reader, &mut io::sink()).map_err(|e| self.broken(&e))?;
        let hasher = self.hasher.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Ok(hasher.finalize().to_hex()[..16].to_owned())
    }

    /// Builds the error about the line after the current one, which could not be read or decompressed.
    fn broken(&self, e: &io::Error) -> Error {
        let after = self.line + 1;
        match e.kind() {
            io::ErrorKind::UnexpectedEof => Error::at(&self.name, after, "the compressed data are truncated")
                .hint("copy or create the file again"),
            // These kinds come only from decompressors.
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::Other => {
                Error::at(&self.name, after, format!("the compressed data are damaged ({e})"))
                    .hint("copy or create the file again")
            }
            _ => Error::io(&self.name, "read it", e),
        }
    }
}

/// Binary formats that are given by mistake: first bytes, name, what to do.
const BINARY: &[(&[u8], &str, &str)] = &[
    (b"PAR1", "a Parquet file", WRITE_LINES),
    (b"ARROW1", "an Arrow file", WRITE_LINES),
    (b"mmap lm http://kheafield", "a KenLM binary", "give the ARPA file that it was built from"),
    (b"PK\x03\x04", "a zip archive", "unpack it"),
    (b"\x80\x02", "a Python pickle", WRITE_LINES),
    (b"\x80\x04", "a Python pickle", WRITE_LINES),
    (b"\x93NUMPY", "a NumPy array", WRITE_LINES),
    (b"\x89HDF", "an HDF5 file", WRITE_LINES),
    (b"SQLite format 3", "an SQLite database", WRITE_LINES),
    (b"\x7fELF", "a program", "give a text file"),
    (b"%PDF", "a PDF file", "give a text file"),
];

/// How to get text from a table of data.
const WRITE_LINES: &str = "write it as JSON lines, such as with pandas: pd.read_parquet(FILE).to_json('lists.jsonl', orient='records', lines=True)";

/// Fails on a binary format where text is expected.
fn refuse_binary(name: &str, head: &[u8]) -> Result<()> {
    match BINARY.iter().find(|(magic, ..)| head.starts_with(magic)) {
        Some((_, what, advice)) => {
            Err(Error::in_file(name, format!("is {what}, expected text")).hint(*advice))
        }
        None => Ok(()),
    }
}

/// A compression format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Codec {
    Gz,
    Bz2,
    Xz,
    Zstd,
}

impl Codec {
    /// Detects a compression format from the first bytes of a file; `None` if the file is not compressed.
    fn of(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, ..] => Some(Codec::Gz),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Codec::Bz2),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Codec::Xz),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Codec::Zstd),
            _ => None,
        }
    }
}

/// Returns a reader of the decompressed bytes. Fails if this build does not support the compression format.
fn decompressed(
    name: &str,
    bytes: impl BufRead + Send + 'static,
    codec: Option<Codec>,
) -> Result<Box<dyn BufRead + Send>> {
    match codec {
        None => Ok(Box::new(bytes)),
        #[cfg(feature = "gz")]
        Some(Codec::Gz) => Ok(buffered(flate2::bufread::MultiGzDecoder::new(bytes))),
        #[cfg(feature = "bz2")]
        Some(Codec::Bz2) => Ok(buffered(bzip2::bufread::MultiBzDecoder::new(bytes))),
        #[cfg(feature = "xz")]
        Some(Codec::Xz) => Ok(buffered(liblzma::bufread::XzDecoder::new_multi_decoder(bytes))),
        #[cfg(feature = "zstd")]
        Some(Codec::Zstd) => {
            let decoder = zstd::stream::read::Decoder::with_buffer(bytes);
            Ok(buffered(decoder.map_err(|e| Error::io(name, "read it", &e))?))
        }
        #[allow(unreachable_patterns)]
        Some(codec) => {
            let feature = format!("{codec:?}").to_lowercase();
            Err(Error::in_file(name, format!("is compressed with {feature}, which this build cannot read"))
                .hint(format!("decompress it, or enable the Cargo feature `{feature}` of luthier-io")))
        }
    }
}

/// Buffers a decompressor in large blocks, because every call of it is expensive.
#[cfg_attr(not(any(feature = "gz", feature = "bz2", feature = "xz", feature = "zstd")), allow(dead_code))]
fn buffered(decoder: impl Read + Send + 'static) -> Box<dyn BufRead + Send> {
    Box::new(BufReader::with_capacity(1 << 18, decoder))
}

/// A reader that also passes all bytes to a hasher.
struct Tee<R> {
    raw: R,
    hasher: Arc<Mutex<blake3::Hasher>>,
}

impl<R: Read> Read for Tee<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.raw.read(buffer)?;
        self.hasher.lock().unwrap_or_else(std::sync::PoisonError::into_inner).update(&buffer[..n]);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn gz(text: &[u8]) -> Vec<u8> {
        let mut e = GzEncoder::new(Vec::new(), Compression::default());
        e.write_all(text).unwrap();
        e.finish().unwrap()
    }

    fn lines(bytes: Vec<u8>) -> Result<Vec<String>> {
        let mut input = Input::new("t", io::Cursor::new(bytes))?;
        let (mut all, mut b) = (Vec::new(), Vec::new());
        while input.line(&mut b)? {
            all.push(String::from_utf8(b.clone()).unwrap());
        }
        Ok(all)
    }

    #[test]
    fn gzip_is_detected_from_content_and_members_are_joined() {
        let two = [gz(b"a\n"), gz(b"b\n")].concat();
        assert_eq!(lines(two).unwrap(), ["a", "b"]);
    }

    #[test]
    fn truncated_gzip_is_reported() {
        let text: String = (0..5000).map(|i| format!("{i} line\n")).collect();
        let whole = gz(text.as_bytes());
        let message = lines(whole[..whole.len() / 2].to_vec()).unwrap_err().to_string();
        assert!(message.contains("are truncated") && message.starts_with("t:"), "{message}");
    }
}
