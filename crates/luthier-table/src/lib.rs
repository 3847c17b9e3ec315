//! Tables of phrases and hierarchical rules: text as Moses writes it, and one binary form that is mapped.

mod entry;
mod text;

pub use entry::{Entry, GAPS};
pub use text::TextWriter;
