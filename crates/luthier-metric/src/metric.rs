//! The closed set of metrics.

use crate::{
    Bleu, Chrf, ErrorRate, PlusOne, Ter, Tokenizer, bleu::PreparedBleu, chrf::PreparedChrf, edit,
    ngram::NgramScratch, ter::Shifter, tokenize::TokenScratch,
};

/// A metric with its settings. Parsed from names such as `bleu`, `bleu:order=2,tokenize=13a,lowercase`,
/// `chrf:word-order=2`, `ter`, `wer`, `column:comet` or `0.5*bleu+0.5*chrf`.
#[derive(Debug, Clone, PartialEq)]
pub enum Metric {
    /// BLEU (Papineni et al. 2002).
    Bleu(Bleu),
    /// chrF and chrF++ (Popović 2015, 2017).
    Chrf(Chrf),
    /// TER (Snover et al. 2006).
    Ter(Ter),
    /// Word or character error rate.
    ErrorRate(ErrorRate),
    /// The mean of a number that comes with each segment.
    Column(Column),
    /// A weighted sum of metrics, each as "higher is better".
    Sum(Vec<(f64, Metric)>),
}

/// A number that comes with each hypothesis: COMET, a reward, a judgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Where it stands in [`Hypothesis::columns`].
    pub index: usize,
}

/// What is scored.
#[derive(Debug, Clone, Copy)]
pub struct Hypothesis<'a> {
    /// The translation.
    pub text: &'a str,
    /// Its columns, in the order of [`Metric::columns`].
    pub columns: &'a [f64],
}

/// The references of one segment, made ready once.
#[derive(Debug, Clone)]
pub enum Prepared {
    /// For BLEU.
    Bleu(PreparedBleu),
    /// For chrF.
    Chrf(PreparedChrf),
    /// For TER and error rates: references as hashed words or characters.
    Units(Vec<Vec<u64>>),
    /// For a column.
    Nothing,
    /// For a sum.
    Sum(Vec<Prepared>),
}

/// Memory that [`Metric::stats`] works in. One per thread; it keeps nothing between calls.
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
    /// Ignores case from now on.
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

    /// The same metric for scores of single segments: BLEU leaves out orders that a segment is too short for.
    #[must_use]
    pub fn for_sentences(&self) -> Metric {
        match self {
            Metric::Bleu(b) => Metric::Bleu(Bleu { effective_order: true, ..b.clone() }),
            Metric::Sum(parts) => Metric::Sum(parts.iter().map(|(w, m)| (*w, m.for_sentences())).collect()),
            other => other.clone(),
        }
    }

    /// Names of the columns that it reads, in order.
    pub fn columns(&self) -> Vec<&str> {
        match self {
            Metric::Column(c) => vec![&c.name],
            Metric::Sum(parts) => parts.iter().flat_map(|(_, m)| m.columns()).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether it compares with references at all.
    pub fn needs_references(&self) -> bool {
        match self {
            Metric::Column(_) => false,
            Metric::Sum(parts) => parts.iter().any(|(_, m)| m.needs_references()),
            _ => true,
        }
    }

    /// Length of the statistics vector.
    pub fn width(&self) -> usize {
        match self {
            Metric::Bleu(b) => b.width(),
            Metric::Chrf(c) => c.width(),
            Metric::Ter(_) | Metric::ErrorRate(_) => 2,
            Metric::Column(_) => 3,
            Metric::Sum(parts) => parts.iter().map(|(_, m)| m.width()).sum(),
        }
    }

    /// Makes a segment's references ready.
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

    /// Writes a hypothesis' statistics; BLEU, chrF, WER and CER allocate nothing once `scratch` has grown.
    /// `prepared` must come from the same metric.
    pub fn stats(&self, prepared: &Prepared, h: Hypothesis<'_>, scratch: &mut Scratch, out: &mut [f32]) {
        match (self, prepared) {
            (Metric::Bleu(b), Prepared::Bleu(p)) => b.stats(p, h.text, scratch, out),
            (Metric::Chrf(c), Prepared::Chrf(p)) => c.stats(p, h.text, scratch, out),
            (Metric::Ter(t), Prepared::Units(p)) => t.stats(p, h.text, scratch, out),
            (Metric::ErrorRate(e), Prepared::Units(p)) => e.stats(p, h.text, scratch, out),
            (Metric::Column(c), _) => {
                // Two single numbers hold almost a double.
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

    /// The score of summed statistics, higher is better: BLEU and chrF from 0 to 100, error rates negative.
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

    /// A number that is higher exactly where the score is, and cheaper to compute: for searching.
    pub fn rank(&self, total: &[f64]) -> f64 {
        match self {
            Metric::Bleu(b) => b.rank(total),
            _ => self.score(total),
        }
    }

    /// The score that has a rank, up to rounding.
    pub fn of_rank(&self, rank: f64) -> f64 {
        match self {
            Metric::Bleu(b) => b.of_rank(rank),
            _ => rank,
        }
    }

    /// The score of one segment for learning and for starting a search: BLEU is smoothed.
    pub fn sentence_score(&self, stats: &[f32], how: PlusOne) -> f64 {
        let wide = |stats: &[f32]| stats.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        match self {
            Metric::Bleu(b) => b.sentence_score(stats, how),
            Metric::Sum(parts) => weighted(parts, stats, |m, stats| m.sentence_score(stats, how)),
            _ => self.score(&wide(stats)),
        }
    }

    /// What one point of a sentence score counts when learning: scores in per cent are brought to the scale from 0
    /// to 1; a column, or a sum of nothing but columns, stays as it is.
    pub fn unit(&self) -> f64 {
        match self {
            Metric::Column(_) => 1.0,
            Metric::Sum(parts) if parts.iter().all(|p| p.1.unit() == 1.0) => 1.0,
            _ => 0.01,
        }
    }

    /// How much text statistics are about: of a sum, as its first part counts it.
    fn size(&self, total: &[f64]) -> f64 {
        match self {
            Metric::Bleu(b) => total[2 * b.order],
            Metric::Chrf(_) | Metric::ErrorRate(_) => total[1],
            Metric::Ter(_) => Ter::length(total),
            Metric::Column(_) => total[2],
            Metric::Sum(parts) => parts.first().map_or(1.0, |(_, m)| m.size(&total[..m.width()])),
        }
    }

    /// The score of a document times its size, so that scores of growing documents can be compared sentence by
    /// sentence: for BLEU the reference length (Chiang et al. 2008), for error rates minus the number of edits.
    pub fn sized_score(&self, total: &[f64]) -> f64 {
        match self {
            Metric::Bleu(b) => b.sized_score(total),
            Metric::Ter(_) | Metric::ErrorRate(_) => -total[0],
            Metric::Column(_) => total[0] + total[1],
            Metric::Chrf(_) | Metric::Sum(_) => self.unit() * self.score(total) * self.size(total),
        }
    }

    /// What people see: error rates are positive there.
    pub fn shown(&self, score: f64) -> f64 {
        // Adding 0 turns −0 into 0.
        if self.is_error() { 0.0 - score } else { score + 0.0 }
    }

    /// Whether lower is better in what people see.
    pub fn is_error(&self) -> bool {
        matches!(self, Metric::Ter(_) | Metric::ErrorRate(_))
    }

    /// Length of the output over length of the reference, where the metric knows both.
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

    /// What people call it in tables.
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

    /// The settings behind a score, in sacreBLEU's form. `references` is `None` where segments differ in number;
    /// `test` are further entries such as `bs:1000|seed:12345`.
    pub fn signature(&self, references: Option<usize>, test: &str) -> String {
        let nrefs = references.map_or("var".to_owned(), |n| n.to_string());
        let test = if test.is_empty() { String::new() } else { format!("{test}|") };
        let version = concat!("version:luthier-", env!("CARGO_PKG_VERSION"));
        match self.settings() {
            Some(settings) => format!("nrefs:{nrefs}|{test}{settings}|{version}"),
            None => format!("{test}{version}"),
        }
    }

    /// The part of the signature that is the metric's own; none for a column, which has no settings.
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

    /// The parts of a score in one line, as sacreBLEU prints them for BLEU.
    pub fn details(&self, total: &[f64]) -> Option<String> {
        match self {
            Metric::Bleu(b) => Some(b.details(total)),
            _ => None,
        }
    }

    /// The BLEU inside, for learners that need n-grams.
    pub fn as_bleu(&self) -> Option<&Bleu> {
        match self {
            Metric::Bleu(b) => Some(b),
            _ => None,
        }
    }

    /// Whether some part of it cuts text into words by rule, so that tokenised text is a mistake.
    pub fn tokenizes(&self) -> bool {
        match self {
            Metric::Bleu(b) => matches!(b.tokenize, Tokenizer::V13a | Tokenizer::Intl),
            Metric::Sum(parts) => parts.iter().any(|(_, m)| m.tokenizes()),
            _ => false,
        }
    }

    /// The score as sacreBLEU computes it from resampled statistics, in single precision.
    pub(crate) fn single_score(&self, total: &[f32]) -> f64 {
        match self {
            Metric::Bleu(b) => b.single_score(total),
            Metric::Chrf(c) => c.single_score(total),
            Metric::Ter(_) if total[1] > 0.0 => -f64::from(Ter::single_rate(total)),
            _ => self.score(&total.iter().map(|&x| f64::from(x)).collect::<Vec<_>>()),
        }
    }

    /// Whether sacreBLEU keeps resampled scores in single precision.
    pub(crate) fn samples_are_single(&self) -> bool {
        matches!(self, Metric::Chrf(_) | Metric::Ter(_))
    }
}

/// Σ weight × score of each part on its own statistics.
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

/// Whether text looks tokenised: many lines end in a full stop that stands alone.
pub fn looks_tokenized<'a>(lines: impl ExactSizeIterator<Item = &'a str>) -> bool {
    let n = lines.len();
    let apart = lines.filter(|l| l.trim_end().ends_with(" .")).count();
    apart >= 100 || (apart >= 3 && apart * 2 >= n)
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
        /// Statistics add, the order of segments is nothing, scores stay in range, and a perfect copy has no
        /// error.
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
                    prop_assert_eq!(metric.shown(metric.score(&totals(&metric, &copies))), 0.0);
                }
            }
        }
    }
}
