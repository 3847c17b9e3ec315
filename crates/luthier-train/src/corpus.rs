//! Parallel text as numbers.

use luthier_core::{Error, Result, Vocabulary};
use luthier_io::Input;

/// One language of a parallel text.
#[derive(Debug, Clone, Default)]
pub struct Side {
    /// Words and their numbers.
    pub vocabulary: Vocabulary,
    words: Vec<u32>,
    ends: Vec<usize>,
}

impl Side {
    /// The words of one sentence.
    #[inline]
    pub fn sentence(&self, s: usize) -> &[u32] {
        let start = if s == 0 { 0 } else { self.ends[s - 1] };
        &self.words[start..self.ends[s]]
    }

    /// All words.
    pub fn tokens(&self) -> usize {
        self.words.len()
    }

    fn push(&mut self, line: &str) {
        for word in line.split_ascii_whitespace() {
            let id = self.vocabulary.add(word);
            self.words.push(id);
        }
        self.ends.push(self.words.len());
    }
}

/// What is left out, and how often.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped {
    /// A side has no word.
    pub empty: usize,
    /// A side has too many words.
    pub long: usize,
    /// A word means something else in tables or models: `|||`, `<s>`, `[X]` and the like.
    pub marks: usize,
}

impl Dropped {
    /// Pairs that are left out.
    pub fn all(&self) -> usize {
        self.empty + self.long + self.marks
    }
}

/// Parallel text in memory: the pairs that can be learned from.
#[derive(Debug, Clone, Default)]
pub struct Corpus {
    /// The language that is translated.
    pub source: Side,
    /// The language it is translated into.
    pub target: Side,
    /// Line number of each pair, from 0.
    pub lines: Vec<u32>,
    /// Lines of each file.
    pub total: usize,
    /// Pairs that are left out.
    pub dropped: Dropped,
    /// Lines with blanks that do not part words, such as no-break spaces.
    pub odd_blanks: usize,
}

/// Words that tables and models put in by themselves.
fn is_mark(word: &str) -> bool {
    let gap = word.starts_with('[') && word.ends_with(']') && word.contains("][");
    gap || word.contains("|||") || matches!(word, "<s>" | "</s>" | "<unk>" | "<UNK>" | "[X]" | "[S]")
}

impl Corpus {
    /// Reads two files of equally many lines. Pairs with an empty side, more than `max_words` words, or marks as words
    /// are counted and left out.
    pub fn read(source: &mut Input, target: &mut Input, max_words: usize) -> Result<Corpus> {
        Self::with(source, target, max_words, Corpus::default())
    }

    /// The same, with vocabularies that are there already.
    pub fn with(source: &mut Input, target: &mut Input, max_words: usize, start: Corpus) -> Result<Corpus> {
        let mut corpus = start;
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
        }
        if corpus.lines.is_empty() {
            let found = match corpus.total {
                0 => "is empty".to_owned(),
                n => format!("has {n} lines, but none that can be used"),
            };
            return Err(Error::in_file(source.name(), found)
                .hint("expected a sentence a line, and its translation in the other file"));
        }
        Ok(corpus)
    }

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

    /// Pairs that are kept.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether no pair is kept.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// Both lengths, in one message.
fn unequal(short: &mut Input, long: &mut Input) -> Result<Error> {
    let mut line = Vec::new();
    while long.line(&mut line)? {}
    Ok(Error::at(
        short.name(),
        short.line_number() + 1,
        format!(
            "the file ends here with {} lines, but {} has {}",
            short.line_number(),
            long.name(),
            long.line_number()
        ),
    )
    .hint("the files must have the translation of a line in the same line"))
}
