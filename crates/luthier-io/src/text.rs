//! Plain text files, one segment per line.

use crate::Input;
use luthier_core::{Error, Result};
use std::path::Path;

/// The lines of a text file.
#[derive(Debug, Clone)]
pub struct Lines {
    /// Name of the file as the user gave it.
    pub file: String,
    /// Lines of the file, without line ends.
    pub lines: Vec<String>,
    /// Digest of the file's bytes, 16 hexadecimal digits.
    pub digest: String,
}

/// Reads a whole text file (`-` is standard input), plain or compressed. A byte order mark is removed; lines
/// end in LF or CRLF, and the last line end may be missing. Fails if the file cannot be read, and on bytes
/// that are not UTF-8, naming line and byte.
///
/// ```
/// let dir = tempfile::tempdir().unwrap();
/// let path = dir.path().join("ref.txt");
/// std::fs::write(&path, "the house\r\na garden").unwrap();
/// let text = luthier_io::text::read_lines(&path).unwrap();
/// assert_eq!(text.lines, ["the house", "a garden"]);
/// ```
pub fn read_lines(path: &Path) -> Result<Lines> {
    let mut input = Input::open(path)?;
    let mut lines = Vec::new();
    let mut buffer = Vec::new();
    while input.line(&mut buffer)? {
        lines.push(input.utf8(&buffer)?.to_owned());
    }
    Ok(Lines { file: input.name().to_owned(), lines, digest: input.digest()? })
}

/// Groups the lines of reference files by segment: `files[r].lines[s]` becomes `result[s][r]`. Fails if the
/// files have different numbers of lines.
pub fn by_segment(files: &[Lines]) -> Result<Vec<Vec<&str>>> {
    let Some(first) = files.first() else { return Ok(Vec::new()) };
    for other in files {
        if other.lines.len() != first.lines.len() {
            let (short, long) =
                if other.lines.len() < first.lines.len() { (other, first) } else { (first, other) };
            return Err(Error::at(
                &short.file,
                short.lines.len() as u64 + 1,
                format!("the file ends here, but {} has {} lines", long.file, long.lines.len()),
            )
            .hint("reference files need one line per segment, in the same order"));
        }
    }
    Ok((0..first.lines.len()).map(|s| files.iter().map(|f| f.lines[s].as_str()).collect()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Lines> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        std::fs::write(&path, bytes).unwrap();
        read_lines(&path)
    }

    #[test]
    fn mark_crlf_and_missing_line_end() {
        assert_eq!(read(b"\xef\xbb\xbfa b\r\n\r\nc").unwrap().lines, ["a b", "", "c"]);
        assert_eq!(read(b"").unwrap().lines.len(), 0);
    }

    #[test]
    fn bad_utf8_names_line_and_byte() {
        let message = read(b"ok\nab\xff\n").unwrap_err().to_string();
        assert!(message.contains(":2: byte 3 of the line (0xff) is not UTF-8"), "{message}");
    }
}
