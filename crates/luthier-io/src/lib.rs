//! Input and output of Luthier: text files with errors that name file and line, transparent decompression,
//! n-best lists, bilingual files, weights files, memory-mapped containers, external sorting and work directories.
//!
//! Compression formats (`gz`, `bz2`, `xz`, `zstd`), n-best lists (`nbest`), bilingual files (`bitext`) and work
//! directories (`work-dir`) are Cargo features, so that a library compiles only what it uses.
//!
//! ```
//! let dir = tempfile::tempdir().unwrap();
//! let path = dir.path().join("weights.txt");
//! luthier_io::AtomicFile::write_all_to(&path, b"lm 0.5\nlength -1\n").unwrap();
//! let weights = luthier_io::read_weights(&path).unwrap();
//! assert_eq!(weights.iter().collect::<Vec<_>>(), [("lm", 0.5), ("length", -1.0)]);
//! ```

#[cfg(feature = "bitext")]
pub mod bitext;
pub mod container;
mod input;
mod meter;
pub mod moses_ini;
#[cfg(feature = "nbest")]
pub mod nbest;
mod output;
pub mod sort;
pub mod text;
mod weights_file;
#[cfg(feature = "work-dir")]
mod work_dir;

pub use input::Input;
pub use meter::Meter;
pub use output::AtomicFile;
pub use weights_file::{parse_weights, read_weights};
#[cfg(feature = "work-dir")]
pub use work_dir::{Difference, InputFile, WorkDir, WorkKind, differences, to_toml};
