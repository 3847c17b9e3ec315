//! Corpus-level scores in one call.
//!
//! References are in sacreBLEU's layout, one stream per reference: `references[j][i]` is the j-th reference
//! of hypothesis i, and every stream has one reference per hypothesis. Statistics are summed in segment
//! order, so scores do not depend on the number of threads.

use crate::{Error, ErrorKind, Hypothesis, Metric, Scratch, Tokenizer};
use rayon::prelude::*;
use std::fmt;

/// A corpus-level score for publication: the number, the metric's name, and its signature. Displayed as
/// `BLEU 48.53 (nrefs:1|…)`; `{:.4}` prints four decimals.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Score {
    /// Name of the metric, such as `BLEU` or `chrF2`.
    pub metric: String,
    /// The score. BLEU and chrF are from 0 to 100, higher is better; TER, WER and CER are in per cent of the
    /// reference length, lower is better.
    #[cfg_attr(feature = "serde", serde(rename = "score"))]
    pub value: f64,
    /// Settings of the metric in sacreBLEU's form, such as `nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:…`.
    pub signature: String,
    /// Precisions, brevity penalty and lengths of BLEU in sacreBLEU's form; `None` for other metrics.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub details: Option<String>,
}

impl Score {
    /// Returns the score of statistics summed over a text. `references` is the number of references per
    /// segment, `None` if it varies.
    pub fn from_totals(metric: &Metric, total: &[f64], references: Option<usize>) -> Self {
        Score {
            metric: metric.name(),
            value: metric.display_score(metric.score(total)),
            signature: metric.signature(references, ""),
            details: metric.details(total),
        }
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = f.precision().unwrap_or(2);
        write!(f, "{} {:.decimals$} ({})", self.metric, self.value, self.signature)
    }
}

/// Returns the score of a text by a metric, which is named as on the command line: `bleu`, `chrf`, `ter`,
/// `bleu:order=2,lowercase`, `0.5*bleu+0.5*chrf`. BLEU tokenises with 13a unless the option `tokenize` is
/// given, so that scores of detokenised text equal sacreBLEU's.
///
/// `references[j][i]` is the j-th reference of hypothesis i, as in sacreBLEU. Fails if the metric is unknown,
/// if the number of references in a stream differs from the number of hypotheses, or if there are no
/// hypotheses.
///
/// ```
/// let hypotheses = ["The old bridge is closed until spring.", "We missed the last train and took a taxi."];
/// let references = [[
///     "The old bridge over the river is closed until spring.",
///     "We missed the last train and took a taxi to the hotel.",
/// ]];
/// let bleu = luthier_metric::corpus_score("bleu", &hypotheses, &references)?;
/// assert_eq!(format!("{:.4}", bleu.value), "58.9563"); // sacreBLEU 2.6.0 says 58.956342552620605
/// assert!(bleu.to_string().starts_with("BLEU 58.96 (nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|"));
/// let ter = luthier_metric::corpus_score("ter", &hypotheses, &references)?;
/// assert_eq!(format!("{:.4}", ter.value), "31.8182");
/// # Ok::<(), luthier_metric::Error>(())
/// ```
pub fn corpus_score<H, S, R>(metric: &str, hypotheses: &[H], references: &[S]) -> Result<Score, Error>
where
    H: AsRef<str> + Sync,
    S: AsRef<[R]>,
    R: AsRef<str> + Sync,
{
    Metric::parse(metric, Tokenizer::V13a)?.corpus_score(hypotheses, references)
}

impl Metric {
    /// Returns the score of a text by this metric; BLEU from `"bleu".parse()` does not tokenise.
    ///
    /// `references[j][i]` is the j-th reference of hypothesis i, as in sacreBLEU. Fails if the number of
    /// references in a stream differs from the number of hypotheses, if there are no hypotheses, or if the
    /// metric reads a column, which texts do not have.
    ///
    /// ```
    /// use luthier_metric::{Chrf, ErrorKind, Metric};
    /// let chrf = Metric::Chrf(Chrf { word_order: 2, ..Chrf::default() });
    /// let score = chrf.corpus_score(&["the house is small"], &[["the house is tiny"], ["this house is small"]])?;
    /// assert_eq!(format!("{score:.1}").split(' ').next(), Some("chrF2++"));
    /// let error = chrf.corpus_score(&["a", "b"], &[["a"]]).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Length { hypotheses: 2, stream: 0, references: 1 });
    /// # Ok::<(), luthier_metric::Error>(())
    /// ```
    pub fn corpus_score<H, S, R>(&self, hypotheses: &[H], references: &[S]) -> Result<Score, Error>
    where
        H: AsRef<str> + Sync,
        S: AsRef<[R]>,
        R: AsRef<str> + Sync,
    {
        let stats = self.segment_stats(hypotheses, references)?;
        let total = crate::significance::totals(self, &stats);
        Ok(Score::from_totals(self, &total, Some(references.len())))
    }

    /// Returns the statistics of every hypothesis against its references, [`Metric::width`] numbers per
    /// segment, in segment order, as input of [`significance::compare`](crate::significance::compare). Fails
    /// as [`Metric::corpus_score`] does.
    ///
    /// ```
    /// use luthier_metric::{Metric, significance::totals};
    /// let bleu: Metric = "bleu:order=2".parse()?;
    /// let stats = bleu.segment_stats(&["a b c", "d"], &[["a b d", "d"]])?;
    /// assert_eq!(totals(&bleu, &stats), [3.0, 1.0, 4.0, 2.0, 4.0]); // matches, totals, reference length
    /// # Ok::<(), luthier_metric::Error>(())
    /// ```
    pub fn segment_stats<H, S, R>(&self, hypotheses: &[H], references: &[S]) -> Result<Vec<f32>, Error>
    where
        H: AsRef<str> + Sync,
        S: AsRef<[R]>,
        R: AsRef<str> + Sync,
    {
        const CHUNK: usize = 256;
        let streams: Vec<&[R]> = references.iter().map(AsRef::as_ref).collect();
        self.check_texts(hypotheses.len(), &streams)?;
        let chunks = hypotheses.par_chunks(CHUNK).enumerate().map(|(chunk, hypotheses)| {
            let mut scratch = Scratch::default();
            let mut stats = vec![0.0; self.width() * hypotheses.len()];
            let mut references = Vec::with_capacity(streams.len());
            for (i, (text, out)) in hypotheses.iter().zip(stats.chunks_exact_mut(self.width())).enumerate() {
                references.clear();
                references.extend(streams.iter().map(|stream| stream[chunk * CHUNK + i].as_ref()));
                let prepared = self.prepare(&references, &mut scratch);
                self.stats(&prepared, Hypothesis { text: text.as_ref(), columns: &[] }, &mut scratch, out);
            }
            stats
        });
        Ok(chunks.collect::<Vec<Vec<f32>>>().concat())
    }

    /// Fails if the metric cannot score this number of hypotheses against these streams of references.
    fn check_texts<R>(&self, hypotheses: usize, streams: &[&[R]]) -> Result<(), Error> {
        if let Some(column) = self.columns().first() {
            return Err(Error::new(
                ErrorKind::Column,
                format!("the metric reads the column {column}, but only texts were given; use Metric::stats"),
            ));
        }
        if hypotheses == 0 {
            return Err(Error::new(ErrorKind::Empty, "no hypotheses, expected at least one"));
        }
        if streams.is_empty() && self.needs_references() {
            return Err(Error::new(ErrorKind::NoReferences, format!("{} needs references", self.name())));
        }
        let wrong = streams.iter().position(|stream| stream.len() != hypotheses);
        let Some(stream) = wrong else { return Ok(()) };
        let references = streams[stream].len();
        Err(Error::new(
            ErrorKind::Length { hypotheses, stream, references },
            format!(
                "{hypotheses} hypotheses, but reference stream {stream} has {references} lines; \
                 expected references[j][i], the j-th reference of hypothesis i"
            ),
        ))
    }
}

/// Adds statistics to a total, element by element: statistics of one segment (`f32`), or sums over segments
/// (`f64`).
///
/// ```
/// let mut total = [1.0, 2.0];
/// luthier_metric::add(&mut total, &[0.5f32, 1.0]);
/// luthier_metric::add(&mut total, &[10.0f64, 10.0]);
/// assert_eq!(total, [11.5, 13.0]);
/// ```
pub fn add<X: Into<f64> + Copy>(total: &mut [f64], stats: &[X]) {
    total.iter_mut().zip(stats).for_each(|(t, &x)| *t += x.into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::significance::totals;

    const NO_REFERENCES: &[Vec<&str>] = &[];

    fn kind(metric: &str, hypotheses: &[&str], references: &[Vec<&str>]) -> ErrorKind {
        corpus_score(metric, hypotheses, references).unwrap_err().kind()
    }

    #[test]
    fn texts_that_do_not_fit_are_refused() {
        assert_eq!(kind("blue", &["a"], &[vec!["a"]]), ErrorKind::Name);
        assert_eq!(kind("bleu", &[], &[vec![]]), ErrorKind::Empty);
        assert_eq!(kind("bleu", &["a"], NO_REFERENCES), ErrorKind::NoReferences);
        assert_eq!(kind("column:comet", &["a"], NO_REFERENCES), ErrorKind::Column);
        let length = ErrorKind::Length { hypotheses: 1, stream: 1, references: 2 };
        assert_eq!(kind("ter", &["a"], &[vec!["a"], vec!["a", "b"]]), length);
    }

    /// Scores by sacreBLEU 2.6.0 with one and with two references.
    #[test]
    fn scores_are_sacrebleus() {
        let hypotheses =
            ["The old bridge is closed until spring.", "We missed the last train and took a taxi."];
        let references = [
            [
                "The old bridge over the river is closed until spring.",
                "We missed the last train and took a taxi to the hotel.",
            ],
            [
                "The old bridge across the river will be closed until spring.",
                "We had missed the last train, so we took a taxi to the hotel.",
            ],
        ];
        for (metric, one, two) in [
            ("bleu", 58.956342552620605, 58.956342552620605),
            ("chrf", 72.86323391469374, 72.86323391469374),
            ("chrf++", 72.93007241047891, 72.93007241047891),
            ("ter", 31.818181818181817, 29.78723404255319),
            ("bleu:lowercase,tokenize=none", 53.29651592062769, 53.29651592062769),
        ] {
            for (expected, references) in [(one, &references[..1]), (two, &references[..])] {
                let found = corpus_score(metric, &hypotheses, references).unwrap();
                assert!((found.value - expected).abs() < 1e-9, "{found} {expected}");
            }
        }
    }

    /// The score of a text that is processed in chunks is that of the summed statistics of its segments.
    #[test]
    fn long_texts_are_the_sum_of_their_segments() {
        let words = ["a", "b", "c d", "d e f"];
        let hypotheses: Vec<String> =
            (0..1000).map(|i| format!("{} {}", words[i % 4], words[i % 3])).collect();
        let references: Vec<String> =
            (0..1000).map(|i| format!("{} {}", words[i % 4], words[i % 2])).collect();
        for name in ["bleu", "chrf", "ter", "0.5*bleu+0.5*wer"] {
            let metric: Metric = name.parse().unwrap();
            let mut scratch = Scratch::default();
            let mut stats = vec![0.0; metric.width() * 1000];
            for (i, out) in stats.chunks_exact_mut(metric.width()).enumerate() {
                let prepared = metric.prepare(&[&references[i]], &mut scratch);
                metric.stats(&prepared, Hypothesis { text: &hypotheses[i], columns: &[] }, &mut scratch, out);
            }
            let expected = Score::from_totals(&metric, &totals(&metric, &stats), Some(1));
            assert_eq!(metric.corpus_score(&hypotheses, &[&references]).unwrap(), expected);
        }
    }
}
