//! Reads bytes as a list, groups it and writes it in every format: an answer or an error, never a panic.

use luthier_io::{Input, nbest::{Dialect, Options, Rows, To, Writer, read_input}};
use std::io::Cursor;

pub fn read(bytes: &[u8], dialect: Option<Dialect>) {
    let Ok(input) = Input::new("fuzz", Cursor::new(bytes.to_vec())) else { return };
    let mut rows = Rows::default();
    if read_input(input, &Options { dialect, per_source: Some(2) }, &mut rows).is_err() {
        return;
    }
    let _ = rows.by_segment(false);
    for to in [To::Moses, To::Json, To::Tsv] {
        let mut out = Vec::new();
        if let Ok(mut writer) = Writer::new(&rows, to, true, &mut out, "out") {
            for row in 0..rows.len() {
                let _ = writer.write(row, None);
            }
        }
    }
}
