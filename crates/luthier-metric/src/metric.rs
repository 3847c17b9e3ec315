//! The metrics and their common operations: statistics, scores, names and signatures.

use crate::{
    Bleu, Chrf, ErrorRate, SentenceSmoothing, Ter, Tokenizer, bleu::PreparedBleu, chrf::PreparedChrf, edit,
    ngram::NgramScratch, ter::Shifter, tokenize::TokenScratch,
};

/// A metric with its settings. It is parsed from, displayed as and serialised as a name such as `bleu`,
/// `bleu:order=2,tokenize=13a,lowercase`, `chrf:word-order=2`, `ter`, `wer`, `column:comet` or
/// `0.5*bleu+0.5*chrf`.
///
/// ```
/// use luthier_metric::Metric;
/// let metric: Metric = "0.5*bleu+0.5*chrf++".parse()?;
/// assert_eq!(metric.name(), "0.5*BLEU+0.5*chrF2++");
/// assert_eq!(metric.to_string(), "0.5*bleu+0.5*chrf:word-order=2");
/// assert!(metric.needs_references() && !metric.is_error());
/// # Ok::<(), luthier_metric::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "String", into = "String")
)]
pub enum Metric {
    /// BLEU (Papineni et al. 2002).
    Bleu(Bleu),
    /// chrF and chrF++ (Popović 2015, 2017).
    Chrf(Chrf),
    /// TER (Snover et al. 2006).
    Ter(Ter),
    /// Word or character error rate.
    ErrorRate(ErrorRate),
    /// Mean of a number given with each hypothesis, such as COMET.
    Column(Column),
    /// Weighted sum of metrics, in which error rates are negated so that higher is better.
    Sum(Vec<(f64, Metric)>),
}

/// A metric whose score is the mean of a number given with each hypothesis, such as COMET, a reward or a
/// human judgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Name of the column, such as `comet`.
    pub name: String,
    /// Index of the number in [`Hypothesis::columns`].
    pub index: usize,
}

/// A hypothesis to score: its text, and the numbers that column metrics read.
#[derive(Debug, Clone, Copy)]
pub struct Hypothesis<'a> {
    /// Text of the hypothesis for one segment.
    pub text: &'a str,
    /// Numbers given with the hypothesis, in the order of [`Metric::columns`]; empty if the metric reads
    /// none.
    pub columns: &'a [f64],
}

/// References of one segment, prepared once by [`Metric::prepare`] for all hypotheses of the segment.
#[derive(Debug, Clone)]
pub enum Prepared {
    /// N-gram counts and lengths of the references, for BLEU.
    Bleu(PreparedBleu),
    /// Character and word n-grams of each reference, for chrF.
    Chrf(PreparedChrf),
    /// Each reference as hashed words or characters, for TER, WER and CER.
    Units(Vec<Vec<u64>>),
    /// No references, for a column.
    Nothing,
    /// References prepared for each metric of a weighted sum.
    Sum(Vec<Prepared>),
}

/// Working memory of [`Metric::prepare`] and [`Metric::stats`], reused by one thread; holds no results
/// between calls.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    pub(crate) tokens: TokenScratch,
    pub(crate) words: Vec<u64>,
    pub(crate) chars: Vec<u64>,
    pub(crate) ngrams: NgramScratch,
    pub(crate) stats: Vec<f32>,
    pub(crate) matched: Vec<f32>,
    pub(crate) row: Vec<u32>,
    pub(crate) ter: Shifter,
}

impl Metric {
    /// Makes the metric case-insensitive.
    pub fn set_lowercase(&mut self) {
        match self {
            Metric::Bleu(b) => b.lowercase = true,
            Metric::Chrf(c) => c.lowercase = true,
            Metric::Ter(t) => t.case = false,
            Metric::ErrorRate(e) => e.lowercase = true,
            Metric::Column(_) => {}
            Metric::Sum(parts) => parts.iter_mut().for_each(|(_, m)| m.set_lowercase()),
        }
    }

    /// Returns this metric with settings for scores of single segments: BLEU leaves out n-gram orders longer
    /// than the segment.
    #[must_use]
    pub fn for_sentences(&self) -> Metric {
        match self {
            Metric::Bleu(b) => Metric::Bleu(Bleu { effective_order: true, ..b.clone() }),
            Metric::Sum(parts) => Metric::Sum(parts.iter().map(|(w, m)| (*w, m.for_sentences())).collect()),
            other => other.clone(),
        }
    }

    /// Returns the names of the columns that the metric reads, in the order of [`Hypothesis::columns`].
    pub fn columns(&self) -> Vec<&str> {
        match self {
            Metric::Column(c) => vec![&c.name],
            Metric::Sum(parts) => parts.iter().flat_map(|(_, m)| m.columns()).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns whether the metric needs references; a column does not.
    pub fn needs_references(&self) -> bool {
        match self {
            Metric::Column(_) => false,
            Metric::Sum(parts) => parts.iter().any(|(_, m)| m.needs_references()),
            _ => true,
        }
    }

    /// Returns the number of statistics per hypothesis, as [`Metric::stats`] writes and [`Metric::score`]
    /// reads them.
    pub fn width(&self) -> usize {
        match self {
            Metric::Bleu(b) => b.width(),
            Metric::Chrf(c) => c.width(),
            Metric::Ter(_) | Metric::ErrorRate(_) => 2,
            Metric::Column(_) => 3,
            Metric::Sum(parts) => parts.iter().map(|(_, m)| m.width()).sum(),
        }
    }

    /// Prepares the references of one segment for [`Metric::stats`].
    pub fn prepare(&self, references: &[&str], scratch: &mut Scratch) -> Prepared {
        match self {
            Metric::Bleu(b) => Prepared::Bleu(b.prepare(references, scratch)),
            Metric::Chrf(c) => Prepared::Chrf(c.prepare(references, scratch)),
            Metric::Ter(t) => Prepared::Units(t.prepare(references)),
            Metric::ErrorRate(e) => Prepared::Units(e.prepare(references)),
            Metric::Column(_) => Prepared::Nothing,
            Metric::Sum(parts) => {
                Prepared::Sum(parts.iter().map(|(_, m)| m.prepare(references, scratch)).collect())
            }
        }
    }

    /// Writes the statistics of a hypothesis, [`Metric::width`] numbers, to `out`. BLEU, chrF, WER and CER
    /// allocate no memory once `scratch` is large enough. Panics if `prepared` comes from another kind of
    /// metric.
    pub fn stats(&self, prepared: &Prepared, h: Hypothesis<'_>, scratch: &mut Scratch, out: &mut [f32]) {
        match (self, prepared) {
            (Metric::Bleu(b), Prepared::Bleu(p)) => b.stats(p, h.text, scratch, out),
            (Metric::Chrf(c), Prepared::Chrf(p)) => c.stats(p, h.text, scratch, out),
            (Metric::Ter(t), Prepared::Units(p)) => t.stats(p, h.text, scratch, out),
            (Metric::ErrorRate(e), Prepared::Units(p)) => e.stats(p, h.text, scratch, out),
            (Metric::Column(c), _) => {
                // The sum of two `f32` has almost the precision of an `f64`.
                let value = h.columns[c.index];
                let high = value as f32;
                out.copy_from_slice(&[high, (value - f64::from(high)) as f32, 1.0]);
            }
            (Metric::Sum(parts), Prepared::Sum(prepared)) => {
                let mut rest = out;
                for ((_, metric), p) in parts.iter().zip(prepared) {
                    let (own, after) = rest.split_at_mut(metric.width());
                    metric.stats(p, h, scratch, own);
                    rest = after;
                }
            }
            _ => unreachable!("references were prepared by another metric"),
        }
    }

    /// Returns the score of summed statistics, higher is better: BLEU and chrF are from 0 to 100; error rates
    /// are negated per cent, at most 0.
    pub fn score(&self, total: &[f64]) -> f64 {
        match self {
            Metric::Bleu(b) => b.score(total),
            Metric::Chrf(c) => c.score(total),
            Metric::Ter(_) => -Ter::rate(total),
            Metric::ErrorRate(_) => -edit::rate(total),
            Metric::Column(_) => {
                if total[2] > 0.0 {
                    (total[0] + total[1]) / total[2]
                } else {
                    0.0
                }
            }
            Metric::Sum(parts) => weighted(parts, total, Metric::score),
        }
    }

    /// Returns a strictly increasing function of [`Metric::score`] that is cheaper to compute, for searches.
    pub fn rank(&self, total: &[f64]) -> f64 {
        match self {
            Metric::Bleu(b) => b.rank(total),
            _ => self.score(total),
        }
    }

    /// Returns the score whose [`Metric::rank`] is `rank`, up to rounding.
    pub fn of_rank(&self, rank: f64) -> f64 {
        match self {
            Metric::Bleu(b) => b.of_rank(rank),
            _ => rank,
        }
    }

    /// Returns the score of one hypothesis from its statistics, higher is better, for learning: BLEU is
    /// smoothed as `how` says.
    pub fn sentence_score(&self, stats: &[f32], how: SentenceSmoothing) -> f64 {
        let wide = |stats: &[f32]| stats.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        match self {
            Metric::Bleu(b) => b.sentence_score(stats, how),
            Metric::Sum(parts) => weighted(parts, stats, |m, stats| m.sentence_score(stats, how)),
            _ => self.score(&wide(stats)),
        }
    }

    /// Returns the factor that converts scores to the scale used in learning: 0.01 for scores in per cent, 1
    /// for a column or a sum of columns only.
    pub fn unit(&self) -> f64 {
        match self {
            Metric::Column(_) => 1.0,
            Metric::Sum(parts) if parts.iter().all(|p| p.1.unit() == 1.0) => 1.0,
            _ => 0.01,
        }
    }

    /// Returns the size of the text that statistics are summed over: for BLEU and error rates the reference
    /// length, for chrF the number of characters of the reference, for a column the number of hypotheses, and
    /// for a sum the size by its first metric.
    fn size(&self, total: &[f64]) -> f64 {
        match self {
            Metric::Bleu(b) => total[2 * b.order],
            Metric::Chrf(_) | Metric::ErrorRate(_) => total[1],
            Metric::Ter(_) => Ter::length(total),
            Metric::Column(_) => total[2],
            Metric::Sum(parts) => parts.first().map_or(1.0, |(_, m)| m.size(&total[..m.width()])),
        }
    }

    /// Returns the score of a pseudo-document, on a scale from 0 to 1, times its size, so that the
    /// contributions of sentences to a growing document are comparable: for BLEU the size is the reference
    /// length (Chiang et al. 2008); for error rates, the result is minus the number of edits.
    pub fn sized_score(&self, total: &[f64]) -> f64 {
        match self {
            Metric::Bleu(b) => b.sized_score(total),
            Metric::Ter(_) | Metric::ErrorRate(_) => -total[0],
            Metric::Column(_) => total[0] + total[1],
            Metric::Chrf(_) | Metric::Sum(_) => self.unit() * self.score(total) * self.size(total),
        }
    }

    /// Returns a score, or a difference of scores, for display: error rates become positive, lower is better.
    pub fn display_score(&self, score: f64) -> f64 {
        // Adding 0 turns −0 into 0.
        if self.is_error() { 0.0 - score } else { score + 0.0 }
    }

    /// Returns whether the metric is an error rate (TER, WER, CER), for which lower displayed scores are
    /// better.
    pub fn is_error(&self) -> bool {
        matches!(self, Metric::Ter(_) | Metric::ErrorRate(_))
    }

    /// Returns the length of the hypotheses divided by the length of the references; `None` if the metric is
    /// not BLEU and not a sum with BLEU, or if the references are empty.
    pub fn length_ratio(&self, total: &[f64]) -> Option<f64> {
        match self {
            Metric::Bleu(b) => b.length_ratio(total),
            Metric::Sum(parts) => {
                let mut at = 0;
                parts.iter().find_map(|(_, m)| {
                    at += m.width();
                    m.length_ratio(&total[at - m.width()..at])
                })
            }
            _ => None,
        }
    }

    /// Returns the name of the metric in tables, such as `BLEU` or `chrF2++`.
    pub fn name(&self) -> String {
        match self {
            Metric::Bleu(_) => "BLEU".to_owned(),
            Metric::Chrf(c) => c.name(),
            Metric::Ter(_) => "TER".to_owned(),
            Metric::ErrorRate(e) => e.name().to_owned(),
            Metric::Column(c) => c.name.clone(),
            Metric::Sum(parts) => {
                parts.iter().map(|(w, m)| format!("{w}*{}", m.name())).collect::<Vec<_>>().join("+")
            }
        }
    }

    /// Returns the signature, the settings of the metric in sacreBLEU's form, such as
    /// `nrefs:1|case:mixed|eff:no|tok:13a|…`. `references` is the number of references per segment, `None` if
    /// it varies; `test` is empty or has the entries of a significance test, such as `bs:1000|seed:12345`.
    pub fn signature(&self, references: Option<usize>, test: &str) -> String {
        let nrefs = references.map_or("var".to_owned(), |n| n.to_string());
        let test = if test.is_empty() { String::new() } else { format!("{test}|") };
        let version = concat!("version:luthier-", env!("CARGO_PKG_VERSION"));
        match self.settings() {
            Some(settings) => format!("nrefs:{nrefs}|{test}{settings}|{version}"),
            None => format!("{test}{version}"),
        }
    }

    /// Returns the settings of this metric in the signature; `None` for a column, which has no settings.
    fn settings(&self) -> Option<String> {
        match self {
            Metric::Bleu(b) => Some(b.signature()),
            Metric::Chrf(c) => Some(c.signature()),
            Metric::Ter(t) => Some(t.signature()),
            Metric::ErrorRate(e) => Some(e.signature()),
            Metric::Column(_) => None,
            Metric::Sum(parts) => {
                let each = parts.iter().map(|(w, m)| {
                    let settings = m.settings().map(|s| format!("({s})")).unwrap_or_default();
                    format!("{w}*{}{settings}", m.name())
                });
                Some(format!("sum:{}", each.collect::<Vec<_>>().join("+")))
            }
        }
    }

    /// Returns precisions, brevity penalty and lengths of BLEU in one line, in sacreBLEU's form; `None` for
    /// other metrics.
    pub fn details(&self, total: &[f64]) -> Option<String> {
        match self {
            Metric::Bleu(b) => Some(b.details(total)),
            _ => None,
        }
    }

    /// Returns the settings of BLEU if the metric is BLEU and not a sum, for learners that need n-grams.
    pub fn as_bleu(&self) -> Option<&Bleu> {
        match self {
            Metric::Bleu(b) => Some(b),
            _ => None,
        }
    }

    /// Returns, for BLEU and for each BLEU in a sum, the places of the lengths of hypothesis and reference in the
    /// statistics.
    pub fn length_columns(&self) -> Vec<(usize, usize)> {
        match self {
            Metric::Bleu(b) => vec![(b.order, 2 * b.order)],
            Metric::Sum(parts) => {
                let mut at = 0;
                let mut all = Vec::new();
                for (_, part) in parts {
                    all.extend(part.length_columns().into_iter().map(|(h, r)| (at + h, at + r)));
                    at += part.width();
                }
                all
            }
            _ => Vec::new(),
        }
    }

    /// Returns whether the metric contains BLEU over words as separated by spaces, so that untokenised input is probably
    /// a mistake.
    pub fn splits_at_spaces(&self) -> bool {
        match self {
            Metric::Bleu(b) => b.tokenize == Tokenizer::None,
            Metric::Sum(parts) => parts.iter().any(|(_, m)| m.splits_at_spaces()),
            _ => false,
        }
    }

    /// Returns whether the metric tokenises with rules for detokenised text (13a or intl), so that tokenised
    /// input is probably a mistake.
    pub fn tokenizes(&self) -> bool {
        match self {
            Metric::Bleu(b) => matches!(b.tokenize, Tokenizer::V13a | Tokenizer::Intl),
            Metric::Sum(parts) => parts.iter().any(|(_, m)| m.tokenizes()),
            _ => false,
        }
    }

    /// Returns the score as sacreBLEU computes it from resampled statistics, in `f32`.
    pub(crate) fn single_score(&self, total: &[f32]) -> f64 {
        match self {
            Metric::Bleu(b) => b.single_score(total),
            Metric::Chrf(c) => c.single_score(total),
            Metric::Ter(_) if total[1] > 0.0 => -f64::from(Ter::single_rate(total)),
            _ => self.score(&total.iter().map(|&x| f64::from(x)).collect::<Vec<_>>()),
        }
    }

    /// Returns whether sacreBLEU stores resampled scores of this metric as `f32`.
    pub(crate) fn samples_are_single(&self) -> bool {
        matches!(self, Metric::Chrf(_) | Metric::Ter(_))
    }
}

/// Returns the weighted sum of the scores of all parts, each computed from its own statistics.
fn weighted<T>(parts: &[(f64, Metric)], total: &[T], score: impl Fn(&Metric, &[T]) -> f64) -> f64 {
    let mut rest = total;
    let mut sum = 0.0;
    for (weight, metric) in parts {
        let (own, after) = rest.split_at(metric.width());
        sum += weight * score(metric, own);
        rest = after;
    }
    sum
}

/// Returns whether a text looks tokenised: at least 100 lines, or at least 3 and half of the lines, end in a
/// full stop after a space.
pub fn looks_tokenized<'a>(lines: impl ExactSizeIterator<Item = &'a str>) -> bool {
    let n = lines.len();
    let apart = lines.filter(|l| l.trim_end().ends_with(" .")).count();
    apart >= 100 || (apart >= 3 && apart * 2 >= n)
}

/// Whether a text looks untokenised: 100 lines, or half of the lines and at least 3, end in a full stop, question mark or
/// exclamation mark right after a letter or digit.
///
/// ```
/// use luthier_metric::looks_untokenized;
/// assert!(looks_untokenized(["It works.", "Does it?", "Yes, it does!"].into_iter()));
/// assert!(!looks_untokenized(["it works .", "does it ?", "yes , it does !"].into_iter()));
/// ```
pub fn looks_untokenized<'a>(lines: impl ExactSizeIterator<Item = &'a str>) -> bool {
    let n = lines.len();
    let joined = |line: &str| {
        let mut end = line.trim_end().chars().rev();
        end.next().is_some_and(|c| ".?!".contains(c)) && end.next().is_some_and(char::is_alphanumeric)
    };
    let joined = lines.filter(|l| joined(l)).count();
    joined >= 100 || (joined >= 3 && joined * 2 >= n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: &[&str] = &[
        "bleu:tokenize=13a",
        "bleu:tokenize=intl",
        "chrf",
        "chrf++",
        "ter",
        "wer",
        "cer",
        "0.5*bleu+0.5*ter",
    ];

    fn totals(metric: &Metric, pairs: &[(String, String)]) -> Vec<f64> {
        let mut scratch = Scratch::default();
        let mut out = vec![0.0; metric.width()];
        let mut total = vec![0.0; metric.width()];
        for (hypothesis, reference) in pairs {
            let prepared = metric.prepare(&[reference], &mut scratch);
            let h = Hypothesis { text: hypothesis, columns: &[] };
            metric.stats(&prepared, h, &mut scratch, &mut out);
            total.iter_mut().zip(&out).for_each(|(t, x)| *t += f64::from(*x));
        }
        total
    }

    proptest! {
        /// Statistics are additive, the order of segments does not matter, scores are in range, and a copy of
        /// the reference has error rate 0.
        #[test]
        fn laws_of_every_metric(
            pairs in prop::collection::vec(("[a-d .,1é中]{0,20}", "[a-d .,1é中]{0,20}"), 1..8),
            cut in 0usize..8,
        ) {
            for name in ALL {
                let metric: Metric = name.parse().unwrap();
                let cut = cut.min(pairs.len());
                let whole = totals(&metric, &pairs);
                let (a, b) = (totals(&metric, &pairs[..cut]), totals(&metric, &pairs[cut..]));
                for ((w, a), b) in whole.iter().zip(&a).zip(&b) {
                    prop_assert!((w - a - b).abs() < 1e-6, "{}", name);
                }
                let mut turned = pairs.clone();
                turned.reverse();
                prop_assert_eq!(&totals(&metric, &turned), &whole);
                let score = metric.score(&whole);
                prop_assert!(score.is_finite(), "{}", name);
                match metric {
                    Metric::Bleu(_) | Metric::Chrf(_) => prop_assert!((0.0..=100.0 + 1e-9).contains(&score)),
                    Metric::Ter(_) | Metric::ErrorRate(_) => prop_assert!(score <= 0.0),
                    _ => {}
                }
                let copies: Vec<_> = pairs.iter().map(|p| (p.1.clone(), p.1.clone())).collect();
                if metric.is_error() {
                    prop_assert_eq!(metric.display_score(metric.score(&totals(&metric, &copies))), 0.0);
                }
            }
        }
    }
}
