//! ARPA files in memory, and their reader: those of `KenLM`, SRILM and any other sound file.

use crate::{BEGIN, END, MAX_ORDER, UNKNOWN, marked_vocabulary};
use luthier_core::{Error, Result, Vocabulary};
use luthier_io::Input;
use std::path::Path;

/// A model as it stands in an ARPA file.
#[derive(Debug, Clone)]
pub struct Arpa {
    /// The words.
    pub vocabulary: Vocabulary,
    /// N-grams by order, from 1.
    pub orders: Vec<Grams>,
}

/// N-grams of one order.
#[derive(Debug, Clone)]
pub struct Grams {
    /// Number of words of each.
    pub n: usize,
    /// Words, `n` of each, in the order of the text.
    pub words: Vec<u32>,
    /// log₁₀ of the probability of the last word after the others.
    pub probability: Vec<f32>,
    /// log₁₀ of the weight of shorter contexts.
    pub back_off: Vec<f32>,
}

impl Grams {
    /// None of them yet.
    pub fn new(n: usize) -> Self {
        Grams { n, words: Vec::new(), probability: Vec::new(), back_off: Vec::new() }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.probability.len()
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.probability.is_empty()
    }

    /// The words of one.
    pub fn words(&self, i: usize) -> &[u32] {
        &self.words[i * self.n..(i + 1) * self.n]
    }
}

impl Arpa {
    /// Reads a file, compressed or not.
    pub fn read(path: &Path) -> Result<Self> {
        let mut reader = Reader { input: Input::open(path)?, buffer: Vec::new(), held: None };
        let counts = reader.header()?;
        let mut arpa = Arpa { vocabulary: marked_vocabulary(), orders: Vec::new() };
        for (i, &count) in counts.iter().enumerate() {
            let grams = reader.section(i + 1, count, counts.len(), &mut arpa.vocabulary)?;
            arpa.orders.push(grams);
        }
        reader.end(counts.len())?;
        Ok(arpa)
    }
}

struct Reader {
    input: Input,
    buffer: Vec<u8>,
    /// A line that was read too early.
    held: Option<String>,
}

impl Reader {
    /// The next line that is not empty.
    fn line(&mut self) -> Result<Option<String>> {
        if let Some(line) = self.held.take() {
            return Ok(Some(line));
        }
        while self.input.line(&mut self.buffer)? {
            let line = self.input.utf8(&self.buffer)?;
            // Words may end in white space of other kinds.
            let line = line.trim_ascii_end();
            if !line.is_empty() {
                return Ok(Some(line.to_owned()));
            }
        }
        Ok(None)
    }

    fn cut(&self, expected: &str) -> Error {
        Error::in_file(
            self.input.name(),
            format!("ends after line {}, expected {expected}", self.input.line_number()),
        )
        .hint("the file is cut short: copy or estimate it again")
    }

    fn no_arpa(&self, first: &str) -> Error {
        let message = format!("begins with `{}` and has no \\data\\ in its first lines", shown(first));
        Error::in_file(self.input.name(), message)
            .hint("is this an ARPA file? text is made into a model by `luthier lm build`")
    }

    fn header(&mut self) -> Result<Vec<u64>> {
        // Words before \data\ are allowed, but not many.
        let mut first: Option<String> = None;
        loop {
            let Some(line) = self.line()? else {
                let Some(first) = first else { return Err(self.cut("\\data\\")) };
                return Err(self.no_arpa(&first));
            };
            if line.trim() == "\\data\\" {
                break;
            }
            let first = first.get_or_insert(line);
            if self.input.line_number() > 100 {
                return Err(self.no_arpa(first));
            }
        }
        let mut counts = Vec::new();
        loop {
            let line = self.line()?.ok_or_else(|| self.cut("\\1-grams:"))?;
            if !line.starts_with("ngram ") {
                self.held = Some(line);
                break;
            }
            let parsed = line["ngram ".len()..].split_once('=').and_then(|(n, count)| {
                Some((n.trim().parse::<usize>().ok()?, count.trim().parse::<u64>().ok()?))
            });
            match parsed {
                Some((n, count)) if n == counts.len() + 1 => counts.push(count),
                _ => {
                    let expected = format!("ngram {}=COUNT", counts.len() + 1);
                    return Err(self.input.error(format!("found `{}`, expected {expected}", shown(&line))));
                }
            }
        }
        match counts.len() {
            0 => Err(self.input.error("no `ngram 1=COUNT` after \\data\\")),
            n if n > MAX_ORDER => {
                Err(self.input.error(format!("the model has order {n}, expected at most {MAX_ORDER}")))
            }
            _ => Ok(counts),
        }
    }

    fn section(&mut self, n: usize, count: u64, order: usize, vocabulary: &mut Vocabulary) -> Result<Grams> {
        let title = format!("\\{n}-grams:");
        let line = self.line()?.ok_or_else(|| self.cut(&title))?;
        if line.trim() != title {
            return Err(self.unexpected(&line, n - 1, &title));
        }
        let mut grams = Grams::new(n);
        for i in 0..count {
            let wanted = format!("{} more of the {count} {n}-grams of the header", count - i);
            let line = self.line()?.ok_or_else(|| self.cut(&wanted))?;
            if line.starts_with('\\') {
                return Err(self
                    .input
                    .error(format!("found {} after {i} {n}-grams, but the header says {count}", shown(&line)))
                    .hint("the counts under \\data\\ are wrong, or lines are missing"));
            }
            self.gram(&line, n, order, vocabulary, &mut grams)?;
        }
        if n == 1 {
            self.check_words(&grams)?;
        }
        Ok(grams)
    }

    fn unexpected(&self, line: &str, n: usize, title: &str) -> Error {
        let mut words = line.split_ascii_whitespace();
        let number =
            words.next().is_some_and(|w| w.parse::<f32>().is_ok()) && words.take(n + 2).count() <= n + 1;
        let error = self.input.error(format!("found `{}`, expected {title}", shown(line)));
        if number && n > 0 {
            error.hint(format!("there are more {n}-grams than the header says"))
        } else {
            error
        }
    }

    fn gram(
        &self,
        line: &str,
        n: usize,
        order: usize,
        vocabulary: &mut Vocabulary,
        grams: &mut Grams,
    ) -> Result<()> {
        let mut parts = line.split_ascii_whitespace();
        let number = |word: Option<&str>, what: &str| -> Result<f32> {
            let word = word.unwrap_or_default();
            // SRILM writes -inf for the beginning of a sentence; -99 is its usual stand-in.
            if word == "-inf" {
                return Ok(-99.0);
            }
            word.parse().ok().filter(|v: &f32| v.is_finite()).ok_or_else(|| {
                self.input.error(format!("the {what} is `{}`, expected a number", shown(word)))
            })
        };
        let p = number(parts.next(), "log-probability")?;
        if p > 0.0 {
            return Err(self
                .input
                .error(format!("the log-probability {p} is positive"))
                .hint("probabilities are logarithms to base 10, 0 at most"));
        }
        let start = grams.words.len();
        for _ in 0..n {
            let Some(word) = parts.next() else {
                let found = grams.words.len() - start;
                return Err(self.input.error(format!("found {found} words, expected {n}")));
            };
            let word = if word == "<UNK>" { "<unk>" } else { word };
            let id = if n == 1 { vocabulary.add(word) } else { vocabulary.get(word).unwrap_or(u32::MAX) };
            if id == u32::MAX {
                return Err(self.input.error(format!("`{}` is not among the 1-grams", shown(word))));
            }
            grams.words.push(id);
        }
        let back_off = match parts.next() {
            Some(word) => number(Some(word), "back-off")?,
            None => 0.0,
        };
        if let Some(more) = parts.next() {
            let message = format!("found `{}` after the back-off, expected {n} words", shown(more));
            return Err(self
                .input
                .error(message)
                .hint("is a word missing its n-gram, or does one hold a blank?"));
        }
        if n == order && back_off != 0.0 {
            return Err(self
                .input
                .error(format!("a back-off of {back_off} in the longest n-grams, where none can be"))
                .hint(format!("is a number the last word? expected {n} words")));
        }
        grams.probability.push(p);
        grams.back_off.push(back_off);
        Ok(())
    }

    /// Every word once, and the three that must be there.
    fn check_words(&self, grams: &Grams) -> Result<()> {
        let mut seen = vec![false; grams.words.iter().max().map_or(3, |m| *m as usize + 1).max(3)];
        for (i, &w) in grams.words.iter().enumerate() {
            if seen[w as usize] {
                let line = self.input.line_number() - (grams.words.len() - 1 - i) as u64;
                return Err(Error::at(self.input.name(), line, "a 1-gram for the second time")
                    .hint("remove one of the two lines and correct the count"));
            }
            seen[w as usize] = true;
        }
        for (id, name, hint) in [
            (
                UNKNOWN,
                "<unk>",
                "estimate it with a rule for unknown words (SRILM: -unk), or add a line such as `-10 <unk>`",
            ),
            (BEGIN, "<s>", "estimate it with marks of sentences"),
            (END, "</s>", "estimate it with marks of sentences"),
        ] {
            if !seen[id as usize] {
                return Err(Error::in_file(self.input.name(), format!("has no 1-gram {name}")).hint(hint));
            }
        }
        Ok(())
    }

    fn end(&mut self, order: usize) -> Result<()> {
        let line = self.line()?.ok_or_else(|| self.cut("\\end\\"))?;
        if line.trim() == "\\end\\" { Ok(()) } else { Err(self.unexpected(&line, order, "\\end\\")) }
    }
}

/// The beginning of something for a message.
fn shown(text: &str) -> String {
    let plain = |c: char| if c.is_control() && c != '\t' { '\u{fffd}' } else { c };
    let cut: String = text.chars().take(40).map(plain).collect();
    if text.chars().nth(40).is_some() { cut + "…" } else { cut }
}
