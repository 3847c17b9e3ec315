//! Phrase tables and rule tables: Moses' text format, and a memory-mapped binary format.
//!
//! [`read_text`] reads Moses' tables and [`TextWriter`] writes them; a [`Builder`] builds a [`Table`], in
//! which a decoder looks up sources symbol by symbol.
//!
//! ```
//! use luthier_core::{Progress, Vocabulary};
//! use luthier_table::{Builder, Entry};
//! let (mut german, mut english) = (Vocabulary::default(), Vocabulary::default());
//! let (haus, house) = (german.add("haus"), english.add("house"));
//! let mut builder = Builder::new(false);
//! builder.entry(&Entry {
//!     source: &[haus], target: &[house], links: &[(0, 0)], scores: &[0.5, 0.25], counts: &[], reordering: &[],
//! })?;
//! let table = builder.finish(&german, &english, Progress::NONE)?;
//! let node = table.step(table.root(), table.source_word("haus").unwrap()).unwrap();
//! let mut scores = Vec::new();
//! table.scores(node.entries().start, &mut scores);
//! assert_eq!(scores, [0.5f32.ln(), 0.25f32.ln()]);
//! # luthier_core::Result::Ok(())
//! ```

mod binary;
mod entry;
mod text;

pub use binary::{Builder, Node, Shape, Table, is_word};
pub use entry::{Entry, GAPS};
pub use text::{TextWriter, read_text};

#[cfg(test)]
mod tests;
