//! Tables of phrases and hierarchical rules: text as Moses writes it, and one binary form that is mapped.

mod binary;
mod entry;
mod text;

pub use binary::{Builder, Node, Shape, Table, is_word};
pub use entry::{Entry, GAPS};
pub use text::{TextWriter, read_text};

#[cfg(test)]
mod tests;
