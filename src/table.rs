//! Tables on a terminal: the first column to the left, the others to the right.

use std::fmt;

/// A table with a header.
pub(crate) struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(first: &str) -> Self {
        Table { header: vec![first.to_owned()], rows: Vec::new() }
    }

    pub(crate) fn column(&mut self, name: &str) {
        self.header.push(name.to_owned());
    }

    pub(crate) fn row(&mut self, first: &str, rest: Vec<String>) {
        let mut row = vec![first.to_owned()];
        row.extend(rest);
        self.rows.push(row);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = || std::iter::once(&self.header).chain(&self.rows);
        let width = |c: usize| all().map(|r| r.get(c).map_or(0, |x| x.chars().count())).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.header.len()).map(width).collect();
        for row in all() {
            let mut line = format!("{:<w$}", row[0], w = widths[0]);
            for (cell, w) in row.iter().zip(&widths).skip(1) {
                line += &format!("  {cell:>w$}");
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
