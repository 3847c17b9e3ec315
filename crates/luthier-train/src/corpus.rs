//! Parallel text in memory, as word numbers, with counts of the sentence pairs that were left out.

use luthier_core::{Error, Progress, Result, Vocabulary};
use luthier_io::{Input, Meter};
use serde::{Deserialize, Serialize};

/// One side of a parallel text: its vocabulary, and its sentences as word numbers.
#[derive(Debug, Clone, Default)]
pub struct Side {
    /// Words of this side with their numbers.
    pub vocabulary: Vocabulary,
    /// Word numbers of all sentences, concatenated.
    words: Vec<u32>,
    /// End of each sentence in `words`.
    ends: Vec<usize>,
}

impl Side {
    /// Returns the word numbers of sentence `s`, from 0, among the sentence pairs that are kept.
    #[inline]
    pub fn sentence(&self, s: usize) -> &[u32] {
        let start = if s == 0 { 0 } else { self.ends[s - 1] };
        &self.words[start..self.ends[s]]
    }

    /// Returns the number of tokens of all sentences.
    pub fn tokens(&self) -> usize {
        self.words.len()
    }

    /// Appends a tokenised sentence.
    fn push(&mut self, line: &str) {
        for word in line.split_ascii_whitespace() {
            let id = self.vocabulary.add(word);
            self.words.push(id);
        }
        self.ends.push(self.words.len());
    }
}

/// Numbers of sentence pairs that were left out of a [`Corpus`], by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// Number of sentence pairs with an empty side.
    pub empty: usize,
    /// Number of sentence pairs with too many words on a side.
    pub long: usize,
    /// Number of sentence pairs with a word that is reserved in tables or models, such as `|||`, `<s>` or
    /// `[X]`.
    pub marks: usize,
}

impl Dropped {
    /// Returns the number of sentence pairs that were left out for any reason.
    pub fn all(&self) -> usize {
        self.empty + self.long + self.marks
    }
}

/// A parallel text in memory: the sentence pairs that are used for training.
///
/// ```
/// use luthier_core::Progress;
/// use luthier_io::Input;
/// use luthier_train::Corpus;
/// let mut german = Input::new("train.de", "das haus\n\n".as_bytes())?;
/// let mut english = Input::new("train.en", "the house\nnothing\n".as_bytes())?;
/// let corpus = Corpus::read(&mut german, &mut english, 100, Progress::NONE)?;
/// assert_eq!((corpus.len(), corpus.total, corpus.dropped.empty), (1, 2, 1));
/// let words: Vec<&str> = corpus.target.sentence(0).iter().map(|&w| corpus.target.vocabulary.word(w)).collect();
/// assert_eq!(words, ["the", "house"]);
/// # luthier_core::Result::Ok(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Corpus {
    /// Source side of the sentence pairs.
    pub source: Side,
    /// Target side of the sentence pairs.
    pub target: Side,
    /// Line number, from 0, of each sentence pair that is kept.
    pub lines: Vec<u32>,
    /// Number of lines of each of the two files.
    pub total: usize,
    /// Numbers of sentence pairs that were left out, by reason.
    pub dropped: Dropped,
    /// Number of lines with white space that does not separate words, such as no-break spaces.
    pub odd_blanks: usize,
}

/// Returns whether a word is reserved in tables or models.
fn is_mark(word: &str) -> bool {
    let gap = word.starts_with('[') && word.ends_with(']') && word.contains("][");
    gap || word.contains("|||") || matches!(word, "<s>" | "</s>" | "<unk>" | "<UNK>" | "[X]" | "[S]")
}

impl Corpus {
    /// Reads a parallel text from two files, one tokenised sentence per line. Sentence pairs with an empty
    /// side, with more than `max_words` words on a side, or with words reserved in tables or models are
    /// counted and left out. Reports `lines`. Fails if the files differ in their number of lines, are not
    /// UTF-8 or have no usable sentence pair, and with kind
    /// [`Interrupted`](luthier_core::ErrorKind::Interrupted) if `progress` returns *stop*.
    pub fn read(
        source: &mut Input,
        target: &mut Input,
        max_words: usize,
        progress: Progress<'_>,
    ) -> Result<Corpus> {
        Self::with(source, target, max_words, Corpus::default(), progress)
    }

    /// Reads a parallel text as [`Corpus::read`] does, and appends it to `start`, whose vocabularies are
    /// extended, such as the corpus that [`Model::load`](crate::align::Model::load) returns.
    pub fn with(
        source: &mut Input,
        target: &mut Input,
        max_words: usize,
        start: Corpus,
        progress: Progress<'_>,
    ) -> Result<Corpus> {
        let mut corpus = start;
        let meter = Meter::new(progress, "lines", 0);
        let (mut f, mut e) = (Vec::new(), Vec::new());
        loop {
            let (more_f, more_e) = (source.line(&mut f)?, target.line(&mut e)?);
            if !more_f && !more_e {
                break;
            }
            if more_f != more_e {
                let (short, long) = if more_f { (target, source) } else { (source, target) };
                return Err(unequal(short, long)?);
            }
            let (f, e) = (source.utf8(&f)?, target.utf8(&e)?);
            corpus.take(f, e, max_words);
            meter.set(corpus.total)?;
        }
        meter.finish()?;
        if corpus.lines.is_empty() {
            let found = match corpus.total {
                0 => "is empty".to_owned(),
                n => format!("has {n} lines, but none that can be used"),
            };
            return Err(Error::in_file(source.name(), found)
                .hint("expected one sentence per line, and its translation in the other file"));
        }
        Ok(corpus)
    }

    /// Adds a sentence pair, or counts the reason why it is left out.
    fn take(&mut self, f: &str, e: &str, max_words: usize) {
        let line = self.total as u32;
        self.total += 1;
        let odd = |t: &str| {
            t.bytes().any(|b| b >= 0x80 || b == 0x0b)
                && t.chars().any(|c| c.is_whitespace() && !c.is_ascii_whitespace())
        };
        self.odd_blanks += usize::from(odd(f) || odd(e));
        let words = |t: &str| t.split_ascii_whitespace().take(max_words + 1).count();
        let (m, n) = (words(f), words(e));
        let marked = |t: &str| t.split_ascii_whitespace().any(is_mark);
        if m == 0 || n == 0 {
            self.dropped.empty += 1;
        } else if m > max_words || n > max_words {
            self.dropped.long += 1;
        } else if marked(f) || marked(e) {
            self.dropped.marks += 1;
        } else {
            self.source.push(f);
            self.target.push(e);
            self.lines.push(line);
        }
    }

    /// Returns the number of sentence pairs that are kept.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns whether no sentence pair is kept.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// Builds the error about files with different numbers of lines; reads the longer file to its end.
fn unequal(short: &mut Input, long: &mut Input) -> Result<Error> {
    let mut line = Vec::new();
    while long.line(&mut line)? {}
    Ok(Error::at(
        short.name(),
        short.line_number() + 1,
        format!(
            "the file ends after line {}, but {} has {} lines",
            short.line_number(),
            long.name(),
            long.line_number()
        ),
    )
    .hint(
        "give files in which line N of one is the translation of line N of the other; is the file truncated?",
    ))
}
