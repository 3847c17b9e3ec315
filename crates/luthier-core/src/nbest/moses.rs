//! The n-best format of Moses: `id ||| text ||| Name= v v Other= v ||| score ||| …`.
//!
//! A block `Name= a b c` becomes the features `Name[0]`, `Name[1]`, `Name[2]`; a single value stays `Name`.

use super::{RowFile, Rows};
use crate::{Error, Input, Result};
use memchr::memmem::Finder;
use rustc_hash::FxHashMap;
use std::{
    io::{self, Write},
    ops::Range,
    path::Path,
};

/// Segments are numbered from 0; beyond this an id is surely not one.
const MAX_SEGMENT: u32 = 100_000_000;

/// Reads a file and appends its candidates.
pub fn read_moses(path: &Path, rows: &mut Rows) -> Result<()> {
    let mut input = Input::open(path)?;
    let file = rows.files.len();
    rows.files.push(RowFile { name: input.name().to_owned(), first: rows.len(), digest: String::new() });
    let mut parser = Parser::new();
    let mut buffer = Vec::new();
    while input.line(&mut buffer)? {
        let line = input.utf8(&buffer)?;
        if !line.trim().is_empty() {
            parser.line(&input, line, rows)?;
        }
    }
    if rows.files[file].first == rows.len() {
        return Err(Error::in_file(input.name(), "holds no candidate, expected an n-best list"));
    }
    rows.files[file].digest = input.digest()?;
    Ok(())
}

/// Writes one candidate. Features are `(name, value)`; the parts of a block must be neighbours, in order.
pub fn write_moses<'a>(
    out: &mut dyn Write,
    segment: u32,
    text: &str,
    features: impl Iterator<Item = (&'a str, f64)>,
    score: f64,
) -> io::Result<()> {
    write!(out, "{segment} ||| {text} |||")?;
    for (name, value) in features {
        match name.strip_suffix(']').and_then(|n| n.rsplit_once('[')) {
            Some((base, "0")) => write!(out, " {base}= {value}")?,
            Some((_, number)) if number.bytes().all(|b| b.is_ascii_digit()) => write!(out, " {value}")?,
            _ => write!(out, " {name}= {value}")?,
        }
    }
    writeln!(out, " ||| {score}")
}

/// A label with the features that its values become. Lists repeat the same labels in the same order, so the
/// block after the last one is tried first and names are hashed once per file, not once per line.
struct Block {
    label: String,
    ids: Vec<u32>,
    first_line: u64,
    last_row: usize,
}

struct Parser {
    bars: Finder<'static>,
    blocks: Vec<Block>,
    index: FxHashMap<String, usize>,
}

impl Parser {
    fn new() -> Self {
        Parser { bars: Finder::new("|||"), blocks: Vec::new(), index: FxHashMap::default() }
    }

    fn line(&mut self, input: &Input, line: &str, rows: &mut Rows) -> Result<()> {
        let (fields, n) = self.fields(line);
        if n < 3 {
            let few = format!("found {n} field{}, expected `id ||| text ||| features ||| score`", plural(n));
            return Err(input.error(few));
        }
        let segment = segment_id(input, &line[fields[0].clone()])?;
        rows.text.push_str(line[fields[1].clone()].trim());
        self.features(input, &line[fields[2].clone()], rows)?;
        let score = match line[fields[3].clone()].trim() {
            "" => None,
            word => Some(number(word).ok_or_else(|| {
                input
                    .error(format!("the total score is `{word}`, expected a finite number"))
                    .hint("if `|||` stands inside the text, escape it")
            })?),
        };
        rows.end_row(segment, input.line_number(), score);
        Ok(())
    }

    /// The first four fields (missing ones are empty) and how many there are.
    fn fields(&self, line: &str) -> ([Range<usize>; 4], usize) {
        let mut fields = [0..0, 0..0, 0..0, 0..0];
        let (mut start, mut n) = (0, 0);
        for bar in self.bars.find_iter(line.as_bytes()) {
            if n < 4 {
                fields[n] = start..bar;
            }
            n += 1;
            start = bar + 3;
        }
        if n < 4 {
            fields[n] = start..line.len();
        }
        (fields, n + 1)
    }

    fn features(&mut self, input: &Input, field: &str, rows: &mut Rows) -> Result<()> {
        let row = rows.len();
        let mut next = 0; // the block that probably comes now
        let mut open: Option<&str> = None;
        let mut first = rows.values.len();
        for word in field.split_ascii_whitespace() {
            if let Some(label) = word.strip_suffix('=').filter(|l| !l.is_empty()) {
                next = self.close(input, open, first, next, row, rows)?;
                open = Some(label);
                first = rows.values.len();
            } else if let Some(label) = open {
                let value = number(word).ok_or_else(|| {
                    input.error(format!("the value of {label} is `{word}`, expected a finite number"))
                })?;
                rows.values.push(value);
            } else {
                return Err(
                    input.error(format!("the features begin with `{word}`, expected a label such as `LM0=`"))
                );
            }
        }
        self.close(input, open, first, next, row, rows)?;
        Ok(())
    }

    /// Gives the values since `first` the features of their label; returns the block that should follow.
    fn close(
        &mut self,
        input: &Input,
        open: Option<&str>,
        first: usize,
        next: usize,
        row: usize,
        rows: &mut Rows,
    ) -> Result<usize> {
        let Some(label) = open else { return Ok(next) };
        let n = rows.values.len() - first;
        let at = match self.blocks.get(next) {
            Some(block) if block.label == label => next,
            _ => match self.index.get(label) {
                Some(&at) => at,
                None => self.new_block(input, label, n, rows)?,
            },
        };
        let block = &mut self.blocks[at];
        if block.ids.len() != n {
            return Err(input.error(format!(
                "{label} has {n} value{} here and {} in line {}",
                plural(n),
                block.ids.len(),
                block.first_line
            )));
        }
        if block.last_row == row {
            return Err(input.error(format!("the feature {label} stands twice")));
        }
        block.last_row = row;
        rows.ids.extend_from_slice(&block.ids);
        Ok(at + 1)
    }

    fn new_block(&mut self, input: &Input, label: &str, n: usize, rows: &mut Rows) -> Result<usize> {
        let mut ids = Vec::with_capacity(n);
        match n {
            0 => return Err(input.error(format!("{label} has no value"))),
            1 => ids.push(rows.names.intern(label)?),
            _ => {
                for i in 0..n {
                    ids.push(rows.names.intern(&format!("{label}[{i}]"))?);
                }
            }
        }
        let block =
            Block { label: label.to_owned(), ids, first_line: input.line_number(), last_row: usize::MAX };
        self.blocks.push(block);
        self.index.insert(label.to_owned(), self.blocks.len() - 1);
        Ok(self.blocks.len() - 1)
    }
}

fn segment_id(input: &Input, field: &str) -> Result<u32> {
    let word = field.trim();
    word.parse().ok().filter(|&id| id <= MAX_SEGMENT).ok_or_else(|| {
        input
            .error(format!("the segment id is `{word}`, expected a number"))
            .hint("number the segments from 0, in the order of the references")
    })
}

/// A finite number; infinities, NaN and numbers too large for a double are none.
fn number(word: &str) -> Option<f64> {
    word.parse().ok().filter(|v: &f64| v.is_finite())
}

fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Rows> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("n.best");
        std::fs::write(&path, text).unwrap();
        let mut rows = Rows::default();
        read_moses(&path, &mut rows)?;
        Ok(rows)
    }

    fn named(rows: &Rows, row: usize) -> Vec<(&str, f64)> {
        let (ids, values) = rows.features(row);
        ids.iter().map(|&i| rows.names.names()[i as usize].as_str()).zip(values.iter().copied()).collect()
    }

    #[test]
    fn blocks_sparse_features_and_further_fields() {
        let rows = read(
            "0 ||| the house ||| Distortion0= 0 TM0= -2.1 -1.9 WT_haus~house= 1 ||| -4.71\n\
             0 |||  ||| Distortion0= -2 TM0= -2.8 -2.2 ||| -5.90 ||| 0-1=0-1 ||| 0-0\n\
             2 ||| x ||| ||| \n",
        )
        .unwrap();
        assert_eq!(rows.len(), 3);
        assert_eq!((rows.text(0), rows.text(1), rows.text(2)), ("the house", "", "x"));
        let first = [("Distortion0", 0.0), ("TM0[0]", -2.1), ("TM0[1]", -1.9), ("WT_haus~house", 1.0)];
        assert_eq!(named(&rows, 0), first);
        assert_eq!((rows.score(1), rows.score(2)), (Some(-5.9), None));
        assert_eq!(rows.by_segment(), [vec![0, 1], vec![], vec![2]]);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let text = "0 ||| a b ||| d= 1 TM0= -0.1 3e-9 ||| -4.5\n";
        let rows = read(text).unwrap();
        let mut out = Vec::new();
        write_moses(&mut out, 0, rows.text(0), named(&rows, 0).into_iter(), rows.score(0).unwrap()).unwrap();
        let again = read(std::str::from_utf8(&out).unwrap()).unwrap();
        assert_eq!(named(&again, 0), named(&rows, 0));
        assert_eq!((again.text(0), again.score(0)), ("a b", Some(-4.5)));
    }

    #[test]
    fn mistakes_name_file_and_line() {
        let fails = |line: &str, words: &str| {
            let message =
                read(&format!("0 ||| a ||| LM= 1 TM= 1 2 ||| 3\n{line}\n")).unwrap_err().to_string();
            assert!(message.contains("n.best:2: ") && message.contains(words), "{message}");
        };
        fails("1 ||| b", "found 2 fields");
        fails("x ||| b ||| LM= 1 ||| 2", "segment id is `x`");
        fails("1 ||| b ||| LM= NaN ||| 2", "the value of LM is `NaN`");
        fails("1 ||| b ||| LM= 1e999 ||| 2", "finite");
        fails("1 ||| b ||| LM= ||| 2", "LM has 0 values here and 1 in line 1");
        fails("1 ||| b ||| LM= 1 LM= 1 ||| 2", "LM stands twice");
        fails("1 ||| b ||| TM= 1 2 3 ||| 2", "TM has 3 values here and 2 in line 1");
        fails("1 ||| b ||| 1 2 ||| 2", "begin with `1`");
        fails("1 ||| b ||| LM= 1 ||| two", "total score is `two`");
    }
}
