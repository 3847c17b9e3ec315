//! Atomic output files: they appear complete or not at all.

#[cfg(feature = "gz")]
use flate2::{Compression, write::GzEncoder};
use luthier_core::{Error, Result};
use std::{
    fs::{self, File},
    io::{self, BufWriter, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

/// An output file with a temporary name until [`AtomicFile::commit`] renames it; dropped before that, it is
/// removed.
///
/// A file whose name ends in `.gz` is compressed. Symbolic links are followed; `-` is standard output; an
/// existing path that is not a regular file (a device, a pipe) is written to directly.
///
/// ```
/// use luthier_io::AtomicFile;
/// use std::io::Write as _;
/// let dir = tempfile::tempdir().unwrap();
/// let path = dir.path().join("out.txt");
/// let mut file = AtomicFile::create(&path).unwrap();
/// writeln!(file, "lm 0.5").unwrap();
/// assert!(!path.exists());
/// file.commit().unwrap();
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "lm 0.5\n");
/// ```
pub struct AtomicFile {
    /// Final path, with links resolved.
    path: PathBuf,
    /// Temporary path; `None` if the final path is written to directly.
    temporary: Option<PathBuf>,
    /// Destination of the bytes; `None` after [`AtomicFile::commit`].
    sink: Option<Sink>,
}

/// Destination of the bytes of an output file.
enum Sink {
    Plain(BufWriter<File>),
    /// Compressed file, buffered before and after the compressor, which is slow on small writes.
    #[cfg(feature = "gz")]
    Gz(Box<BufWriter<GzEncoder<BufWriter<File>>>>),
    Standard(BufWriter<io::Stdout>),
}

impl Sink {
    /// Returns the destination for a path, compressed if its name ends in `.gz`. Fails if this build does not
    /// support gzip.
    #[cfg_attr(feature = "gz", allow(clippy::unnecessary_wraps))]
    fn new(path: &Path, file: BufWriter<File>) -> Result<Self> {
        if path.extension().is_none_or(|e| e != "gz") {
            return Ok(Sink::Plain(file));
        }
        #[cfg(feature = "gz")]
        {
            let encoder = GzEncoder::new(file, Compression::new(3));
            Ok(Sink::Gz(Box::new(BufWriter::with_capacity(1 << 16, encoder))))
        }
        #[cfg(not(feature = "gz"))]
        Err(luthier_core::Error::in_file(path.display().to_string(), "this build cannot write gzip files")
            .hint("give a name without .gz, or enable the Cargo feature `gz` of luthier-io"))
    }
}

impl AtomicFile {
    /// Opens a temporary file in the directory of `path`. Fails if the directory cannot be written to, or if
    /// the name ends in `.gz` and this build does not support gzip.
    pub fn create(path: &Path) -> Result<Self> {
        if path.as_os_str() == "-" {
            let sink = Sink::Standard(BufWriter::new(io::stdout()));
            return Ok(AtomicFile { path: "<stdout>".into(), temporary: None, sink: Some(sink) });
        }
        let failed = |e: io::Error| Error::io(path.display().to_string(), "write it", &e);
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let special = fs::metadata(&target).is_ok_and(|m| !m.is_file());
        let (file, temporary) = if special {
            (File::options().write(true).open(&target).map_err(failed)?, None)
        } else {
            let mut name = std::ffi::OsString::from(".");
            name.push(target.file_name().unwrap_or_default());
            name.push(format!(".{}.tmp", std::process::id()));
            let temporary = target.with_file_name(name);
            (File::create(&temporary).map_err(failed)?, Some(temporary))
        };
        let file = BufWriter::with_capacity(1 << 16, file);
        let sink = Sink::new(path, file)?;
        Ok(AtomicFile { path: target, temporary, sink: Some(sink) })
    }

    /// Writes a whole file at once; it appears complete or not at all. Fails if it cannot be written.
    pub fn write_all_to(path: &Path, bytes: &[u8]) -> Result<()> {
        let mut file = Self::create(path)?;
        file.write_all(bytes).map_err(|e| Error::io(path.display().to_string(), "write it", &e))?;
        file.commit()
    }

    /// Overwrites bytes written before, from position `at` on. Fails if the file is compressed or standard
    /// output, or if writing fails.
    pub fn patch(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let Some(Sink::Plain(w)) = &mut self.sink else { return Err(io::ErrorKind::Unsupported.into()) };
        w.seek(SeekFrom::Start(at))?;
        w.write_all(bytes)?;
        w.seek(SeekFrom::End(0)).map(|_| ())
    }

    /// Flushes and syncs the file and renames it to its final name. Fails if any of these fails; the
    /// temporary file is then removed.
    pub fn commit(mut self) -> Result<()> {
        let done = match self.sink.take() {
            Some(Sink::Plain(w)) => w.into_inner().map_err(io::IntoInnerError::into_error).map(Some),
            #[cfg(feature = "gz")]
            Some(Sink::Gz(w)) => w
                .into_inner()
                .map_err(io::IntoInnerError::into_error)
                .and_then(GzEncoder::finish)
                .and_then(|w| w.into_inner().map_err(io::IntoInnerError::into_error))
                .map(Some),
            Some(Sink::Standard(mut w)) => w.flush().map(|()| None),
            None => return Ok(()),
        };
        done.and_then(|file| match (file, &self.temporary) {
            (Some(file), Some(temporary)) => file.sync_all().and_then(|()| fs::rename(temporary, &self.path)),
            _ => Ok(()),
        })
        .map_err(|e| Error::io(self.path.display().to_string(), "write it", &e))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match &mut self.sink {
            Some(Sink::Plain(w)) => w.write(buffer),
            #[cfg(feature = "gz")]
            Some(Sink::Gz(w)) => w.write(buffer),
            Some(Sink::Standard(w)) => w.write(buffer),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Some(Sink::Plain(w)) => w.flush(),
            #[cfg(feature = "gz")]
            Some(Sink::Gz(w)) => w.flush(),
            Some(Sink::Standard(w)) => w.flush(),
            None => Ok(()),
        }
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        // After a commit the temporary file is already renamed; a failed removal only leaves a hidden file.
        if let Some(temporary) = &self.temporary {
            let _ = fs::remove_file(temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_appears_before_commit_and_nothing_stays_without() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("w.txt");
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"x").unwrap();
        assert!(!path.exists());
        drop(file);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        AtomicFile::write_all_to(&path, b"y").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"y");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_was_written_can_be_patched() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("w");
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"abcd").unwrap();
        file.patch(1, b"X").unwrap();
        file.write_all(b"e").unwrap();
        file.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"aXcde");
        assert!(AtomicFile::create(&dir.path().join("w.gz")).unwrap().patch(0, b"x").is_err());
    }

    #[test]
    fn links_are_followed_and_devices_stay() {
        use std::os::unix::fs::FileTypeExt;
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        AtomicFile::write_all_to(&link, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let null = dir.path().join("null");
        std::os::unix::fs::symlink("/dev/null", &null).unwrap();
        AtomicFile::write_all_to(&null, b"gone").unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    }
}
