//! Reader for ARPA files of `KenLM`, SRILM and other toolkits, and their contents in memory.
//!
//! The reader checks what queries rely on: n-gram counts equal to those of the header, finite numbers, no probability
//! above 1, all words of longer n-grams among the 1-grams, no duplicate 1-grams, and 1-grams for `<unk>`, `<s>` and
//! `</s>`. `-inf` is read as −99.

use crate::{BEGIN, END, MAX_ORDER, UNKNOWN, marked_vocabulary};
use luthier_core::{Error, Progress, Result, Vocabulary};
use luthier_io::{Input, Meter};
use std::path::Path;

/// Contents of an ARPA file: a back-off model as a vocabulary and lists of n-grams by order.
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
    /// Words of the model; `<unk>`, `<s>` and `</s>` have the numbers 0, 1 and 2.
    pub vocabulary: Vocabulary,
    /// N-grams of each order, with 1-grams at index 0.
    pub orders: Vec<Grams>,
}

/// The n-grams of one order of an ARPA file, as columns.
#[derive(Debug, Clone)]
pub struct Grams {
    /// Order: number of words of each n-gram.
    pub n: usize,
    /// Word numbers of all n-grams, `n` for each, from left to right.
    pub words: Vec<u32>,
    /// log₁₀ of the probability of the last word of each n-gram given the words before it; at most 0.
    pub probability: Vec<f32>,
    /// log₁₀ of the back-off weight of each n-gram as a context: it is added to the score of the next word if the
    /// longer n-gram is not in the model. 0 if the file gives none.
    pub back_off: Vec<f32>,
}

impl Grams {
    /// Returns an empty list of n-grams of `n` words.
    pub fn new(n: usize) -> Self {
        Grams { n, words: Vec::new(), probability: Vec::new(), back_off: Vec::new() }
    }

    /// Number of n-grams of this order.
    pub fn len(&self) -> usize {
        self.probability.len()
    }

    /// Whether there are no n-grams of this order.
    pub fn is_empty(&self) -> bool {
        self.probability.is_empty()
    }

    /// Word numbers of n-gram `i`, from left to right.
    pub fn words(&self, i: usize) -> &[u32] {
        &self.words[i * self.n..(i + 1) * self.n]
    }
}

impl Arpa {
    /// Reads an ARPA file, compressed or not. Reports progress in `n-grams`. Fails if the file does not follow the
    /// format (the error names the line), and with kind [`Interrupted`](luthier_core::ErrorKind::Interrupted) when
    /// `progress` answers *stop*.
    pub fn read(path: &Path, progress: Progress<'_>) -> Result<Self> {
        Self::parse(Input::open(path)?, progress)
    }

    /// Reads an ARPA file from any input; reports progress and fails as [`Arpa::read`] does.
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

    /// Text of words given by number, separated by spaces.
    pub(crate) fn text(&self, words: &[u32]) -> String {
        words.iter().map(|&w| self.vocabulary.word(w)).collect::<Vec<_>>().join(" ")
    }
}

/// Line-by-line parser of an ARPA file.
struct Reader {
    input: Input,
    buffer: Vec<u8>,
    /// A line that was read ahead.
    held: Option<String>,
}

impl Reader {
    /// Returns the next line that is not empty; `None` at the end of the file.
    fn line(&mut self) -> Result<Option<String>> {
        if let Some(line) = self.held.take() {
            return Ok(Some(line));
        }
        while self.input.line(&mut self.buffer)? {
            let line = self.input.utf8(&self.buffer)?;
            // Only ASCII white space is trimmed: words may contain Unicode white space.
            let line = line.trim_ascii_end();
            if !line.is_empty() {
                return Ok(Some(line.to_owned()));
            }
        }
        Ok(None)
    }

    /// Error about a truncated file.
    fn truncated(&self, expected: &str) -> Error {
        Error::in_file(
            self.input.name(),
            format!("ends after line {}, expected {expected}", self.input.line_number()),
        )
        .hint("the file is truncated: copy or estimate it again")
    }

    /// Error about a file without `\data\`.
    fn not_arpa(&self, first: &str) -> Error {
        let message = format!("is not an ARPA file: it begins with `{}`, without \\data\\", excerpt(first));
        Error::in_file(self.input.name(), message).hint("estimate a model from text with `luthier lm build`")
    }

    /// Reads the header up to the first section; returns the number of n-grams of each order.
    fn header(&mut self) -> Result<Vec<u64>> {
        // A few lines of other text before \data\ are allowed.
        let mut first: Option<String> = None;
        loop {
            let Some(line) = self.line()? else {
                let Some(first) = first else { return Err(self.truncated("\\data\\")) };
                return Err(self.not_arpa(&first));
            };
            if line.trim() == "\\data\\" {
                break;
            }
            let first = first.get_or_insert(line);
            if self.input.line_number() > 100 {
                return Err(self.not_arpa(first));
            }
        }
        let mut counts = Vec::new();
        loop {
            let line = self.line()?.ok_or_else(|| self.truncated("\\1-grams:"))?;
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

    /// Reads the section of n-grams of order `n`.
    fn section(
        &mut self,
        n: usize,
        count: u64,
        order: usize,
        vocabulary: &mut Vocabulary,
        meter: &Meter<'_>,
    ) -> Result<Grams> {
        let title = format!("\\{n}-grams:");
        let line = self.line()?.ok_or_else(|| self.truncated(&title))?;
        if line.trim() != title {
            return Err(self.unexpected(&line, n - 1, &title));
        }
        let mut grams = Grams::new(n);
        for i in 0..count {
            let expected = || format!("{} more of the {count} {n}-grams in the header", count - i);
            let line = self.line()?.ok_or_else(|| self.truncated(&expected()))?;
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

    /// Error about a line in place of the title of the section after the `n`-grams.
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

    /// Parses a line with an n-gram, and appends it to `grams`.
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
            // SRILM writes -inf for the probability of <s>; other toolkits write -99.
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
                .hint("probabilities are base-10 logarithms, at most 0"));
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
            return Err(self.input.error(message).hint("does a word contain a space?"));
        }
        if n == order && back_off != 0.0 {
            return Err(self
                .input
                .error(format!("found the back-off {back_off} of a {n}-gram, but the highest order has none"))
                .hint(format!("is the last word a number? expected {n} words")));
        }
        grams.probability.push(p);
        grams.back_off.push(back_off);
        Ok(())
    }

    /// Checks the 1-grams: no duplicates, and none of the three special words missing.
    fn check_words(&self, grams: &Grams) -> Result<()> {
        let mut seen = vec![false; grams.words.iter().max().map_or(3, |m| *m as usize + 1).max(3)];
        for (i, &w) in grams.words.iter().enumerate() {
            if seen[w as usize] {
                let line = self.input.line_number() - (grams.words.len() - 1 - i) as u64;
                return Err(Error::at(self.input.name(), line, "duplicate 1-gram")
                    .hint("remove one of the two lines and correct the count"));
            }
            seen[w as usize] = true;
        }
        for (id, name, hint) in [
            (
                UNKNOWN,
                "<unk>",
                "estimate the model with an unknown word (SRILM: -unk), or add a line such as `-10 <unk>`",
            ),
            (BEGIN, "<s>", "estimate the model with sentence markers"),
            (END, "</s>", "estimate the model with sentence markers"),
        ] {
            if !seen[id as usize] {
                return Err(Error::in_file(self.input.name(), format!("has no 1-gram {name}")).hint(hint));
            }
        }
        Ok(())
    }

    /// Reads the end marker.
    fn end(&mut self, order: usize) -> Result<()> {
        let line = self.line()?.ok_or_else(|| self.truncated("\\end\\"))?;
        if line.trim() == "\\end\\" { Ok(()) } else { Err(self.unexpected(&line, order, "\\end\\")) }
    }
}

/// The first 40 characters of a text, for messages.
fn excerpt(text: &str) -> String {
    let plain = |c: char| if c.is_control() && c != '\t' { '\u{fffd}' } else { c };
    let cut: String = text.chars().take(40).map(plain).collect();
    if text.chars().nth(40).is_some() { cut + "…" } else { cut }
}
