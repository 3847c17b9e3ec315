//! ARPA files in memory, and their reader: files of `KenLM`, SRILM and any other program that follows the format.
//!
//! The reader checks what a query relies on: the counts of the header, finite numbers, no probability above 1, every word
//! of a longer n-gram among the 1-grams, each 1-gram once, and `<unk>`, `<s>` and `</s>` among them. `-inf` is read as −99.

use crate::{BEGIN, END, MAX_ORDER, UNKNOWN, marked_vocabulary};
use luthier_core::{Error, Progress, Result, Vocabulary};
use luthier_io::{Input, Meter};
use std::path::Path;

/// A back-off model as it is listed in an ARPA file: all words, and all n-grams by order.
///
/// ```
/// use luthier_core::Progress;
/// use luthier_io::Input;
/// use luthier_lm::Arpa;
/// let text = "\\data\\\nngram 1=4\n\n\\1-grams:\n-1\t<unk>\n-99\t<s>\n-0.7\t</s>\n-0.5\ta\n\n\\end\\\n";
/// let arpa = Arpa::parse(Input::new("lm.arpa", text.as_bytes())?, Progress::NONE)?;
/// assert_eq!(arpa.orders[0].probability[3], -0.5);
/// assert_eq!(arpa.vocabulary.word(arpa.orders[0].words(3)[0]), "a");
/// # luthier_core::Result::Ok(())
/// ```
#[derive(Debug, Clone)]
pub struct Arpa {
    /// The words of the model; `<unk>`, `<s>` and `</s>` have the numbers 0, 1 and 2.
    pub vocabulary: Vocabulary,
    /// The n-grams of each order: single words at index 0.
    pub orders: Vec<Grams>,
}

/// The n-grams of one order of an ARPA file, in columns.
#[derive(Debug, Clone)]
pub struct Grams {
    /// Number of words of each n-gram.
    pub n: usize,
    /// Numbers of the words, `n` for each n-gram, in the order of the text.
    pub words: Vec<u32>,
    /// log₁₀ of the probability of the last word after the others, by n-gram; at most 0.
    pub probability: Vec<f32>,
    /// log₁₀ of the back-off weight, by n-gram: what a longer n-gram that is not in the model adds to the probability of the
    /// shorter one; 0 where the file has none.
    pub back_off: Vec<f32>,
}

impl Grams {
    /// An empty list of n-grams of `n` words.
    pub fn new(n: usize) -> Self {
        Grams { n, words: Vec::new(), probability: Vec::new(), back_off: Vec::new() }
    }

    /// Number of n-grams of this order.
    pub fn len(&self) -> usize {
        self.probability.len()
    }

    /// Whether there is no n-gram of this order.
    pub fn is_empty(&self) -> bool {
        self.probability.is_empty()
    }

    /// Numbers of the words of n-gram `i`, in the order of the text.
    pub fn words(&self, i: usize) -> &[u32] {
        &self.words[i * self.n..(i + 1) * self.n]
    }
}

impl Arpa {
    /// Reads an ARPA file, compressed or not. Fails, with the line, if the file does not follow the format, and with kind
    /// [`Interrupted`](luthier_core::ErrorKind::Interrupted) when `progress` answers *stop*.
    pub fn read(path: &Path, progress: Progress<'_>) -> Result<Self> {
        Self::parse(Input::open(path)?, progress)
    }

    /// Reads an ARPA file from any input, as [`Arpa::read`] does from a file. Reports `n-grams`.
    pub fn parse(input: Input, progress: Progress<'_>) -> Result<Self> {
        let mut reader = Reader { input, buffer: Vec::new(), held: None };
        let counts = reader.header()?;
        let meter = Meter::new(progress, "n-grams", counts.iter().sum::<u64>() as usize);
        let mut arpa = Arpa { vocabulary: marked_vocabulary(), orders: Vec::new() };
        for (i, &count) in counts.iter().enumerate() {
            let grams = reader.section(i + 1, count, counts.len(), &mut arpa.vocabulary, &meter)?;
            arpa.orders.push(grams);
        }
        reader.end(counts.len())?;
        meter.finish()?;
        Ok(arpa)
    }

    /// Words as text.
    pub(crate) fn text(&self, words: &[u32]) -> String {
        words.iter().map(|&w| self.vocabulary.word(w)).collect::<Vec<_>>().join(" ")
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
        let message = format!("begins with `{}` and has no \\data\\ in its first lines", excerpt(first));
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
                    return Err(self.input.error(format!("found `{}`, expected {expected}", excerpt(&line))));
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

    fn section(
        &mut self,
        n: usize,
        count: u64,
        order: usize,
        vocabulary: &mut Vocabulary,
        meter: &Meter<'_>,
    ) -> Result<Grams> {
        let title = format!("\\{n}-grams:");
        let line = self.line()?.ok_or_else(|| self.cut(&title))?;
        if line.trim() != title {
            return Err(self.unexpected(&line, n - 1, &title));
        }
        let mut grams = Grams::new(n);
        for i in 0..count {
            let wanted = || format!("{} more of the {count} {n}-grams of the header", count - i);
            let line = self.line()?.ok_or_else(|| self.cut(&wanted()))?;
            if line.starts_with('\\') {
                return Err(self
                    .input
                    .error(format!(
                        "found {} after {i} {n}-grams, but the header says {count}",
                        excerpt(&line)
                    ))
                    .hint("the counts under \\data\\ are wrong, or lines are missing"));
            }
            self.gram(&line, n, order, vocabulary, &mut grams)?;
            if i % 1024 == 1023 {
                meter.add(1024)?;
            }
        }
        meter.add(count as usize % 1024)?;
        if n == 1 {
            self.check_words(&grams)?;
        }
        Ok(grams)
    }

    fn unexpected(&self, line: &str, n: usize, title: &str) -> Error {
        let mut words = line.split_ascii_whitespace();
        let number =
            words.next().is_some_and(|w| w.parse::<f32>().is_ok()) && words.take(n + 2).count() <= n + 1;
        let error = self.input.error(format!("found `{}`, expected {title}", excerpt(line)));
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
                self.input.error(format!("the {what} is `{}`, expected a number", excerpt(word)))
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
                return Err(self.input.error(format!("`{}` is not among the 1-grams", excerpt(word))));
            }
            grams.words.push(id);
        }
        let back_off = match parts.next() {
            Some(word) => number(Some(word), "back-off")?,
            None => 0.0,
        };
        if let Some(more) = parts.next() {
            let message = format!("found `{}` after the back-off, expected {n} words", excerpt(more));
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
fn excerpt(text: &str) -> String {
    let plain = |c: char| if c.is_control() && c != '\t' { '\u{fffd}' } else { c };
    let cut: String = text.chars().take(40).map(plain).collect();
    if text.chars().nth(40).is_some() { cut + "…" } else { cut }
}
