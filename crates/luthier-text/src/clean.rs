//! Cleaning of parallel text: sentence pairs that would harm a translation model are left out.

use crate::{normalise, spans::is_word};
use luthier_core::{Fingerprint, math};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

/// Numbers of sentence pairs that cleaning has left out, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Cleaning {
    /// Number of sentence pairs before cleaning.
    pub pairs: usize,
    /// Number of pairs with an empty side.
    pub empty: usize,
    /// Number of pairs with the same text of three or more words on both sides.
    pub identical: usize,
    /// Number of pairs with sides of very different lengths.
    pub ratio: usize,
    /// Number of pairs that occur before.
    pub duplicate: usize,
    /// Number of pairs with a side that is in the language of the other.
    pub language: usize,
}

impl Cleaning {
    /// Returns the number of pairs that are left out.
    pub fn dropped(&self) -> usize {
        self.empty + self.identical + self.ratio + self.duplicate + self.language
    }
}

/// Removes sentence pairs that would harm a translation model, and counts them by reason.
///
/// A pair is dropped if a side is empty, if both sides are the same text of three words or more, if one side has more than
/// four times as many words as the other and ten more, if it occurs before, or if a side is in the wrong language: character
/// 4-gram models of the two sides of this text are compared, without the pair itself, and that of the other side wins
/// clearly.
///
/// ```
/// use luthier_text::clean;
///
/// let mut pairs = vec![("a b".to_owned(), "x y".to_owned()); 3];
/// pairs.push(("one two three".into(), "one two three".into()));
/// let cleaning = clean(&mut pairs);
/// assert_eq!((pairs.len(), cleaning.duplicate, cleaning.identical), (1, 2, 1));
/// ```
pub fn clean(pairs: &mut Vec<(String, String)>) -> Cleaning {
    let mut cleaning = Cleaning { pairs: pairs.len(), ..Cleaning::default() };
    let mut seen = FxHashSet::default();
    pairs.retain(|(source, target)| {
        let (source, target) = (normalise(source), normalise(target));
        let words = |text: &str| text.split(' ').filter(|w| w.contains(char::is_alphanumeric)).count();
        let (s, t) = (words(&source), words(&target));
        let print =
            Fingerprint::default().bytes(source.as_bytes()).bytes(b"\t").bytes(target.as_bytes()).finish();
        let reason = if source.is_empty() || target.is_empty() {
            &mut cleaning.empty
        } else if source == target && s > 2 {
            &mut cleaning.identical
        } else if s.max(t) > 4 * s.min(t) && s.abs_diff(t) > 10 {
            &mut cleaning.ratio
        } else if !seen.insert(print) {
            &mut cleaning.duplicate
        } else {
            return true;
        };
        *reason += 1;
        false
    });
    let models = [Grams::of(pairs.iter().map(|p| &*p.0)), Grams::of(pairs.iter().map(|p| &*p.1))];
    let mut buffer = Vec::new();
    pairs.retain(|(source, target)| {
        let foreign = models[0].is_foreign(&models[1], source, &mut buffer)
            || models[1].is_foreign(&models[0], target, &mut buffer);
        cleaning.language += usize::from(foreign);
        !foreign
    });
    cleaning
}

/// Number of cells for 4-grams; rare collisions do no harm.
const CELLS: usize = 1 << 18;

/// Counts of character 4-grams of a text.
struct Grams {
    counts: Vec<u32>,
    total: u64,
}

impl Grams {
    fn of<'a>(lines: impl Iterator<Item = &'a str>) -> Self {
        let mut grams = Grams { counts: vec![0; CELLS], total: 0 };
        let mut cells = Vec::new();
        for line in lines {
            cells_of(line, &mut cells);
            for &cell in &cells {
                grams.counts[cell] += 1;
            }
            grams.total += cells.len() as u64;
        }
        grams
    }

    /// Whether a line of this text is clearly more likely under another model: by more than half a nat per 4-gram and by more
    /// than 15 nats in all. The line is left out of the counts of its own text.
    fn is_foreign(&self, other: &Grams, line: &str, cells: &mut Vec<usize>) -> bool {
        cells_of(line, cells);
        cells.sort_unstable();
        let size = |grams: &Grams, own: usize| (grams.total - own as u64) as f64 + 0.5 * CELLS as f64;
        let per_gram = math::ln(size(other, 0) / size(self, cells.len()));
        let mut sum = 0.0;
        for run in cells.chunk_by(|a, b| a == b) {
            let own = f64::from(self.counts[run[0]]) - run.len() as f64 + 0.5;
            let theirs = f64::from(other.counts[run[0]]) + 0.5;
            sum += run.len() as f64 * (math::ln(own / theirs) + per_gram);
        }
        sum < -15.0 && sum < -0.5 * cells.len() as f64
    }
}

/// Writes the cells of the character 4-grams of the words of a line that have letters only, in small letters.
fn cells_of(line: &str, cells: &mut Vec<usize>) {
    cells.clear();
    for word in line.split(|c: char| !is_word(c) && !matches!(c, '.' | '-' | '/')) {
        if word.is_empty() || !word.chars().all(char::is_alphabetic) {
            continue;
        }
        let mut hash: u64 = 1;
        let mut length = 0;
        for c in std::iter::once(' ').chain(word.chars().flat_map(char::to_lowercase)).chain([' ']) {
            // The last four characters, 16 bits each.
            hash = (hash << 16) | (u64::from(u32::from(c)) & 0xffff);
            length += 1;
            if length >= 4 {
                cells.push(
                    (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - CELLS.trailing_zeros())) as usize,
                );
            }
        }
    }
}
