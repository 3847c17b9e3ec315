//! Text format of trained aligners: a header, the words of both sides, and the word pairs with their
//! probabilities.

use super::{Direction, Kind, Model, Positions, Steps, pair_key, position};
use crate::Corpus;
use luthier_core::{Error, Progress, Result, Vocabulary};
use luthier_io::{Input, Meter};
use rustc_hash::FxHashMap;
use std::io::{self, Write};

/// First line of a saved aligner.
const MAGIC: &str = "luthier-align 1";

impl Model {
    /// Writes the aligner as text to `out`, whose name in error messages is `name`; `corpus` is the training
    /// corpus, or the corpus that [`Model::load`] returned. Reports `pairs`. Fails if writing fails, and with
    /// kind [`Interrupted`](luthier_core::ErrorKind::Interrupted) if `progress` returns *stop*.
    pub fn save(
        &self,
        corpus: &Corpus,
        name: &str,
        out: &mut dyn Write,
        progress: Progress<'_>,
    ) -> Result<()> {
        let unwritten = |e: io::Error| Error::io(name, "write it", &e);
        self.save_header(out).and_then(|()| self.save_words(corpus, out)).map_err(unwritten)?;
        let mut keys = vec![0; self.pairs.len()];
        // The order of iteration does not matter, because each pair has its own element.
        #[allow(clippy::iter_over_hash_type)]
        for (&key, &id) in &self.pairs {
            keys[id as usize] = key;
        }
        let meter = Meter::new(progress, "pairs", keys.len());
        writeln!(out, "pairs {}", keys.len()).map_err(unwritten)?;
        for (id, key) in keys.iter().enumerate() {
            let [forward, backward] = [0, 1].map(|d| self.directions[d].words[id]);
            writeln!(out, "{} {} {forward} {backward}", key >> 32, *key as u32).map_err(unwritten)?;
            meter.set(id + 1)?;
        }
        meter.finish()
    }

    /// Writes the model, the null probability and the priors over positions.
    fn save_header(&self, out: &mut dyn Write) -> io::Result<()> {
        let kind = match self.kind {
            Kind::Ibm1 => "ibm1",
            Kind::Ibm2 => "ibm2",
            Kind::Hmm => "hmm",
        };
        writeln!(out, "{MAGIC}\nmodel {kind}\nnull {}", self.null)?;
        for direction in &self.directions {
            match &direction.positions {
                Positions::Uniform => writeln!(out, "uniform")?,
                Positions::Diagonal(tension) => writeln!(out, "diagonal {tension}")?,
                Positions::Steps(steps) => {
                    write!(out, "steps")?;
                    for w in steps.by_distance.iter().chain(&steps.first) {
                        write!(out, " {w}")?;
                    }
                    writeln!(out)?;
                }
            }
        }
        Ok(())
    }

    /// Writes the words of both sides with their probabilities given the null word.
    fn save_words(&self, corpus: &Corpus, out: &mut dyn Write) -> io::Result<()> {
        let sides = [(&corpus.source, &self.directions[1]), (&corpus.target, &self.directions[0])];
        for (side, direction) in sides {
            writeln!(out, "words {}", direction.of_null.len())?;
            for (id, p) in direction.of_null.iter().enumerate() {
                writeln!(out, "{}\t{p}", side.vocabulary.word(id as u32))?;
            }
        }
        Ok(())
    }

    /// Reads an aligner that [`Model::save`] wrote; returns it with an empty corpus that has its
    /// vocabularies, for [`Corpus::with`]. Reports `pairs`. Fails, naming the line, if the file is not a
    /// saved aligner, and with kind [`Interrupted`](luthier_core::ErrorKind::Interrupted) if `progress`
    /// returns *stop*.
    pub fn load(input: &mut Input, progress: Progress<'_>) -> Result<(Model, Corpus)> {
        let mut reader = Reader { input, line: Vec::new() };
        if reader.next()? != MAGIC {
            return Err(reader
                .wrong("is not the first line of a saved aligner")
                .hint("make one with `luthier align --save`"));
        }
        let kind = reader.kind()?;
        let null = reader.after("null")?;
        let null = reader.number(&null, |p| p < 1.0)?;
        let [target, source] = [reader.positions(kind)?, reader.positions(kind)?];
        let mut corpus = Corpus::default();
        let null_source = reader.words(&mut corpus.source.vocabulary)?;
        let null_target = reader.words(&mut corpus.target.vocabulary)?;
        let (pairs, [words_target, words_source]) = reader.pairs(&corpus, progress)?;
        if reader.input.line(&mut reader.line)? {
            return Err(reader.wrong("follows the last pair, expected the end of the file"));
        }
        let directions = [
            Direction { words: words_target, of_null: null_target, positions: target },
            Direction { words: words_source, of_null: null_source, positions: source },
        ];
        Ok((Model { kind, null, rounds: Vec::new(), pairs, directions, cells: Vec::new() }, corpus))
    }
}

/// Numbers of the word pairs, and their probabilities in both directions.
type Pairs = (FxHashMap<u64, u32>, [Vec<f32>; 2]);

/// Reader of the lines of a saved aligner.
struct Reader<'a> {
    input: &'a mut Input,
    line: Vec<u8>,
}

impl Reader<'_> {
    /// Reads the next line. Fails at the end of the file.
    fn next(&mut self) -> Result<String> {
        if !self.input.line(&mut self.line)? {
            return Err(Error::at(
                self.input.name(),
                self.input.line_number() + 1,
                "the saved aligner is truncated",
            )
            .hint("make it again with `luthier align --save`"));
        }
        Ok(self.input.utf8(&self.line)?.to_owned())
    }

    /// Builds an error that quotes the current line and says what is wrong with it.
    fn wrong(&self, what: &str) -> Error {
        let line = String::from_utf8_lossy(&self.line);
        let short: String = line.chars().take(40).collect();
        self.input.error(format!("{short:?} {what}"))
    }

    /// Reads a line that begins with `word`; returns the rest. Fails on any other line.
    fn after(&mut self, word: &str) -> Result<String> {
        let line = self.next()?;
        match line.split_once(' ') {
            Some((w, rest)) if w == word => Ok(rest.to_owned()),
            _ => Err(self.wrong(&format!("is not a line `{word} …`"))),
        }
    }

    /// Reads a line `word N`; returns N, the number of lines that follow.
    fn size(&mut self, word: &str) -> Result<u32> {
        let rest = self.after(word)?;
        rest.parse().map_err(|_| self.wrong("does not give the number of lines that follow"))
    }

    /// Parses a number of at least 0 that `fits`.
    fn number(&self, text: &str, fits: impl Fn(f64) -> bool) -> Result<f64> {
        let number = text.parse::<f64>().ok().filter(|p| *p >= 0.0 && fits(*p));
        number.ok_or_else(|| self.wrong("has an invalid number"))
    }

    /// Reads the line with the model.
    fn kind(&mut self) -> Result<Kind> {
        match self.after("model")?.as_str() {
            "ibm1" => Ok(Kind::Ibm1),
            "ibm2" => Ok(Kind::Ibm2),
            "hmm" => Ok(Kind::Hmm),
            _ => Err(self.wrong("is an unknown model, expected ibm1, ibm2 or hmm")),
        }
    }

    /// Reads the words of one side; returns their probabilities given the null word.
    fn words(&mut self, vocabulary: &mut Vocabulary) -> Result<Vec<f32>> {
        let mut of_null = Vec::new();
        for id in 0..self.size("words")? {
            let line = self.next()?;
            let Some((word, p)) = line.split_once('\t') else {
                return Err(self.wrong("is not a word with its probability"));
            };
            if vocabulary.add(word) != id {
                return Err(self.wrong("repeats a word"));
            }
            of_null.push(self.number(p, |p| p <= 1.0)? as f32);
        }
        Ok(of_null)
    }

    /// Reads the word pairs with their probabilities in both directions.
    fn pairs(&mut self, corpus: &Corpus, progress: Progress<'_>) -> Result<Pairs> {
        let (sources, targets) = (corpus.source.vocabulary.len(), corpus.target.vocabulary.len());
        let size = self.size("pairs")?;
        let meter = Meter::new(progress, "pairs", size as usize);
        let mut pairs = FxHashMap::default();
        let mut words = [Vec::new(), Vec::new()];
        for id in 0..size {
            let line = self.next()?;
            let fields: Vec<&str> = line.split(' ').collect();
            let ids = |k: usize, end: usize| {
                fields.get(k).and_then(|f| f.parse::<u32>().ok()).filter(|&f| (f as usize) < end)
            };
            let (Some(f), Some(e), 4) = (ids(0, sources), ids(1, targets), fields.len()) else {
                return Err(self.wrong("is not a pair, expected two word numbers and two probabilities"));
            };
            if pairs.insert(pair_key(f, e), id).is_some() {
                return Err(self.wrong("repeats a pair"));
            }
            for d in 0..2 {
                words[d].push(self.number(fields[2 + d], |p| p <= 1.0)? as f32);
            }
            meter.set(id as usize + 1)?;
        }
        meter.finish()?;
        Ok((pairs, words))
    }

    /// Reads the prior over positions of one direction.
    fn positions(&mut self, kind: Kind) -> Result<Positions> {
        let line = self.next()?;
        let mut fields = line.split(' ');
        let name = fields.next().unwrap_or_default();
        let numbers =
            fields.map(|f| self.number(f, |p| p.is_finite() && p > 0.0)).collect::<Result<Vec<_>>>()?;
        match (name, numbers.as_slice()) {
            ("uniform", []) if kind == Kind::Ibm1 => Ok(Positions::Uniform),
            ("diagonal", [tension]) if kind == Kind::Ibm2 => Ok(Positions::Diagonal(*tension)),
            ("steps", all) if kind == Kind::Hmm && all.len() == position::STEPS + position::FIRST => {
                let (by_distance, first) = all.split_at(position::STEPS);
                Ok(Positions::Steps(Steps { by_distance: by_distance.to_vec(), first: first.to_vec() }))
            }
            _ => Err(self.wrong("does not have the position parameters of this model")),
        }
    }
}
