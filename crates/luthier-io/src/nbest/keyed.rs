//! Readers of n-best lists whose lines begin with a key: directories of `ESPnet` (`1best_recog/text`, `2best_recog/text`, …)
//! and of Kaldi (`words` or `text` with keys `utterance-1`, `utterance-2`, …), and Kaldi's text alone.
//!
//! Other files of the directory with a number after every key, such as `score`, `ac_cost` or `lm_cost`, are features.

use super::{Options, Rows, number, sink::Sink};
use crate::Input;
use luthier_core::{Error, Result};
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};

/// Number of lines by which Kaldi's text is recognised.
const LOOK: usize = 50;

/// Splits a key such as `utterance-12` or `utterance_12` into utterance and rank; `None` for other words.
fn ranked(key: &str) -> Option<(&str, u32)> {
    let (utterance, rank) = key.rsplit_once(['-', '_'])?;
    let rank = rank.parse().ok().filter(|&r| r > 0)?;
    (!utterance.is_empty()).then_some((utterance, rank))
}

/// Returns whether lines have keys with ranks from 1, as Kaldi writes them.
pub(super) fn is_kaldi<'a>(lines: impl Iterator<Item = &'a str>) -> bool {
    let mut last: Option<(&str, u32)> = None;
    let mut repeated = false;
    for line in lines.take(LOOK) {
        let Some(key) = line.split_ascii_whitespace().next() else { return false };
        let Some((utterance, rank)) = ranked(key) else { return false };
        match last {
            Some((before, r)) if before == utterance && rank == r + 1 => repeated = true,
            _ if rank != 1 => return false,
            _ => {}
        }
        last = Some((utterance, rank));
    }
    repeated
}

/// Reads Kaldi's text, a key and words per line, into `rows`.
pub(super) fn read(input: &mut Input, options: &Options, rows: &mut Rows, file: usize) -> Result<()> {
    let mut sink = Sink::new(rows, options);
    let mut buffer = Vec::new();
    while input.line(&mut buffer)? {
        let line = input.utf8(&buffer)?.trim();
        if line.is_empty() {
            continue;
        }
        let (key, text) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let Some((utterance, _)) = ranked(key) else {
            return Err(input.error(format!("the key is `{key}`, expected one such as utterance-1")));
        };
        let segment = sink.segment("key without rank", utterance);
        sink.text("words after the key", text);
        sink.end_row(input, segment, None)?;
    }
    sink.finish(input, file)
}

/// A candidate of a directory: key, utterance, directory of its files.
struct Found {
    key: String,
    utterance: String,
    line: u64,
    text: String,
    place: usize,
}

/// Reads a directory as `ESPnet` or Kaldi write it into `rows`. Fails if it is neither.
pub(super) fn read_dir(path: &Path, options: &Options, rows: &mut Rows) -> Result<()> {
    let name = path.display().to_string();
    let places = places(path);
    if places.is_empty() {
        return Err(Error::in_file(&name, "is a directory without n-best lists")
            .hint("give a file, or a directory of ESPnet (with 1best_recog/text) or Kaldi (with words and keys utterance-1)"));
    }
    let ranked_keys = !places[0].ends_with("1best_recog");
    let mut all: Vec<Found> = Vec::new();
    let mut digests = String::new();
    for (place, dir) in places.iter().enumerate() {
        let text = ["text", "words"].iter().map(|f| dir.join(f)).find(|f| f.is_file()).unwrap_or_default();
        let mut input = Input::open(&text)?;
        for (line, key, text) in pairs(&mut input)? {
            let utterance = match ranked(&key).filter(|_| ranked_keys) {
                Some((utterance, _)) => utterance.to_owned(),
                None if ranked_keys => {
                    input.set_line(line);
                    return Err(input.error(format!("the key is `{key}`, expected one such as utterance-1")));
                }
                None => key.clone(),
            };
            all.push(Found { key, utterance, line, text, place });
        }
        digests += &input.digest()?;
    }
    let mut scores: Vec<Vec<(String, FxHashMap<String, f64>)>> = Vec::new();
    let mut ignored = Vec::new();
    for dir in &places {
        scores.push(numbers(dir, &mut ignored, &mut digests)?);
    }
    let file = rows.begin_file(&name);
    let mut input = Input::new(&name, std::io::empty())?;
    let mut sink = Sink::new(rows, options);
    for found in &all {
        input.set_line(found.line);
        let segment = sink.segment("key", &found.utterance);
        sink.text("words after the key", &found.text);
        for (name, values) in &scores[found.place] {
            match values.get(&found.key) {
                Some(&value) => sink.feature(&input, name, value)?,
                None => sink.null(name),
            }
        }
        sink.end_row(&input, segment, None)?;
    }
    for (name, what) in ignored {
        sink.ignore(&name, what);
    }
    sink.finish(&input, file)?;
    blake3::hash(digests.as_bytes()).to_hex()[..16].clone_into(&mut rows.files[file].digest);
    Ok(())
}

/// Returns the directories with the files of a list: those of the ranks (`ESPnet`), or the directory itself (Kaldi).
fn places(path: &Path) -> Vec<PathBuf> {
    let ranks: Vec<PathBuf> = (1..=10_000)
        .map(|n| path.join(format!("{n}best_recog")))
        .take_while(|dir| dir.join("text").is_file())
        .collect();
    if !ranks.is_empty() {
        return ranks;
    }
    let own = path.join("words").is_file() || path.join("text").is_file();
    if own { vec![path.to_path_buf()] } else { Vec::new() }
}

/// Reads lines of a key and a text, each with its number.
fn pairs(input: &mut Input) -> Result<Vec<(u64, String, String)>> {
    let (mut buffer, mut all) = (Vec::new(), Vec::new());
    while input.line(&mut buffer)? {
        let line = input.utf8(&buffer)?.trim();
        if !line.is_empty() {
            let (key, text) = line.split_once([' ', '\t']).unwrap_or((line, ""));
            all.push((input.line_number(), key.to_owned(), text.trim().to_owned()));
        }
    }
    Ok(all)
}

/// Reads the files of a directory that have a number after every key, by name; the names of others go to `ignored`.
fn numbers(
    dir: &Path,
    ignored: &mut Vec<(String, &'static str)>,
    digests: &mut String,
) -> Result<Vec<(String, FxHashMap<String, f64>)>> {
    let name = dir.display().to_string();
    let entries = std::fs::read_dir(dir).map_err(|e| Error::io(&name, "read it", &e))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|e| e.path()).filter(|p| p.is_file()).collect();
    files.sort();
    let mut all = Vec::new();
    for path in files {
        let name = path.file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned());
        if name == "text" || name == "words" {
            continue;
        }
        let mut input = Input::open(&path)?;
        // ESPnet writes tensors.
        let value = |text: &str| number(text.trim_start_matches("tensor(").trim_end_matches(')'));
        let pairs = pairs(&mut input)?;
        let numbers: Option<FxHashMap<String, f64>> =
            pairs.into_iter().map(|(_, key, text)| Some((key, value(&text)?))).collect();
        match numbers {
            Some(numbers) if !numbers.is_empty() => {
                *digests += &input.digest()?;
                all.push((name, numbers));
            }
            _ if !ignored.iter().any(|(n, _)| *n == name) => ignored.push((name, "text")),
            _ => {}
        }
    }
    Ok(all)
}
