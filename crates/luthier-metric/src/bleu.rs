//! BLEU (Papineni et al. 2002), equal to sacreBLEU's.
//!
//! BLEU = BP · exp(1/N Σₙ log pₙ) with n-gram precisions pₙ = matchₙ/totalₙ, where the matches of an n-gram
//! are clipped to its largest count in a reference, and brevity penalty BP = min(1, exp(1 − r/c)), where c is
//! the hypothesis length and r the closest reference length (the shorter of two equally close). Statistics:
//! `match₁…match_N`, `total₁…total_N`, r; total₁ is c.

use crate::{Prepared, Scratch, Tokenizer, ngram, ngram::NgramTable};
use luthier_core::math;

/// Settings of BLEU. The defaults are sacreBLEU's except for the tokeniser, which is `none`, because n-best
/// lists are usually tokenised.
///
/// ```
/// use luthier_metric::{Bleu, Metric, Tokenizer};
/// let bleu = Metric::Bleu(Bleu { tokenize: Tokenizer::V13a, ..Bleu::default() });
/// let score = bleu.corpus_score(&["It is not far."], &[["It is not so far."]])?;
/// assert_eq!(score.to_string(), format!("BLEU 40.94 ({})", bleu.signature(Some(1), "")));
/// # Ok::<(), luthier_metric::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case", default)
)]
pub struct Bleu {
    /// Length of the longest n-gram, from 1 to 8; 4 by default.
    pub order: usize,
    /// Tokeniser of hypotheses and references; `none` by default.
    pub tokenize: Tokenizer,
    /// Whether hypotheses and references are lower-cased first; false by default.
    pub lowercase: bool,
    /// Smoothing of n-gram orders without a match; exponential by default.
    pub smooth: Smooth,
    /// Whether n-gram orders longer than the text are left out of the average; false by default, true for
    /// scores of single sentences.
    pub effective_order: bool,
}

impl Default for Bleu {
    fn default() -> Self {
        Bleu {
            order: 4,
            tokenize: Tokenizer::None,
            lowercase: false,
            smooth: Smooth::Exp,
            effective_order: false,
        }
    }
}

/// Smoothing of BLEU for n-gram orders without a match (Chen and Cherry 2014).
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Smooth {
    /// No smoothing: BLEU is 0 if some order has no match.
    None,
    /// Exponential smoothing, as in NIST's mteval and by default in sacreBLEU: the k-th order without a match
    /// counts as 1/2ᵏ matches.
    Exp,
    /// Floor: an order without a match counts as this number of matches, usually 0.1.
    Floor(f64),
    /// Add-k smoothing: this number, usually 1, is added to the matches and totals of all orders above 1.
    AddK(f64),
}

impl Smooth {
    /// All kinds of smoothing, with their usual values.
    pub const ALL: &'static [Smooth] = &[Smooth::Exp, Smooth::Floor(0.1), Smooth::AddK(1.0), Smooth::None];

    /// Returns the name of the kind of smoothing in settings, such as `add-k`.
    pub fn name(&self) -> &'static str {
        match self {
            Smooth::None => "none",
            Smooth::Exp => "exp",
            Smooth::Floor(_) => "floor",
            Smooth::AddK(_) => "add-k",
        }
    }

    /// Returns the smoothing in sacreBLEU's signature, such as `add-k[1.00]`.
    fn signature(self) -> String {
        match self {
            Smooth::Floor(v) | Smooth::AddK(v) => format!("{}[{v:.2}]", self.name()),
            _ => self.name().to_owned(),
        }
    }
}

/// Smoothing of sentence BLEU for learning. The default is BLEU+1 (Lin and Och 2004): 1 is added to the
/// matches and totals of all orders above 1. The two fields are extensions.
///
/// ```
/// use luthier_metric::{Bleu, SentenceSmoothing};
/// // Matches and totals of four orders, and the reference length.
/// let stats = [6., 4., 2., 1., 6., 5., 4., 3., 7.];
/// let smoothing = SentenceSmoothing { unigrams: true, brevity: false };
/// let expected = 100.0 * (7. / 7. * 5. / 6. * 3. / 5. * 2. / 4f64).powf(0.25) * (1. - 7. / 6f64).exp();
/// assert!((Bleu::default().sentence_score(&stats, smoothing) - expected).abs() < 1e-9);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case", default)
)]
#[cfg_attr(feature = "clap", derive(clap::Args), group(skip))]
pub struct SentenceSmoothing {
    /// Add 1 to the unigram counts of sentence BLEU too, as in Moses' PRO.
    #[cfg_attr(
        feature = "clap",
        arg(id = "smooth-unigrams", long = "smooth-unigrams", help_heading = "Sentence BLEU")
    )]
    #[cfg_attr(feature = "serde", serde(rename = "smooth-unigrams"))]
    pub unigrams: bool,
    /// Add 1 to the reference length in sentence BLEU, to counter a bias towards short output (Nakov et al.
    /// 2012).
    #[cfg_attr(
        feature = "clap",
        arg(id = "smooth-brevity", long = "smooth-brevity", help_heading = "Sentence BLEU")
    )]
    #[cfg_attr(feature = "serde", serde(rename = "smooth-brevity"))]
    pub brevity: bool,
}

/// N-gram counts and lengths of the references of one segment.
#[derive(Debug, Clone)]
pub struct PreparedBleu {
    /// N-grams of the references with their largest count in a reference.
    table: NgramTable,
    /// Length of each reference, in words.
    lengths: Vec<u32>,
}

impl Bleu {
    /// Returns the number of statistics per hypothesis.
    pub(crate) fn width(&self) -> usize {
        2 * self.order + 1
    }

    /// Counts the n-grams of the references of one segment.
    pub(crate) fn prepare(&self, references: &[&str], scratch: &mut Scratch) -> PreparedBleu {
        if let [only] = references {
            self.words(only, scratch);
            let lengths = vec![scratch.words.len() as u32];
            return PreparedBleu { table: NgramTable::new(&scratch.words, self.order), lengths };
        }
        let mut words = Vec::with_capacity(references.len());
        for reference in references {
            self.words(reference, scratch);
            words.push(scratch.words.clone());
        }
        let lengths = words.iter().map(|w| w.len() as u32).collect();
        PreparedBleu { table: NgramTable::largest(&words, self.order), lengths }
    }

    /// Tokenises a text and writes the hashes of its words to `scratch.words`.
    fn words(&self, text: &str, scratch: &mut Scratch) {
        self.tokenize.run(text, self.lowercase, &mut scratch.tokens);
        scratch.words.clear();
        scratch.words.extend(scratch.tokens.tokens().map(ngram::word));
    }

    /// Writes the statistics of a hypothesis to `out`.
    pub(crate) fn stats(&self, p: &PreparedBleu, text: &str, scratch: &mut Scratch, out: &mut [f32]) {
        self.words(text, scratch);
        out.fill(0.0);
        let words = &scratch.words;
        p.table.matches(words, &mut scratch.ngrams, &mut out[..self.order]);
        for n in 0..self.order {
            out[self.order + n] = words.len().saturating_sub(n) as f32;
        }
        out[2 * self.order] = closest(&p.lengths, words.len() as u32) as f32;
    }

    /// Returns BLEU of summed statistics, from 0 to 100.
    pub(crate) fn score(&self, total: &[f64]) -> f64 {
        let (matched, counted) = total.split_at(self.order);
        self.combine(total, matched.iter().zip(counted).map(|(&m, &t)| (m, t)), |m, t| 100.0 * m / t)
    }

    /// Returns the smoothed n-gram precisions in per cent, 0 for orders longer than the text, and the brevity penalty of
    /// summed statistics.
    ///
    /// ```
    /// use luthier_metric::Bleu;
    /// let (precisions, brevity) = Bleu { order: 2, ..Bleu::default() }.parts(&[3.0, 1.0, 4.0, 2.0, 4.0]);
    /// assert_eq!((precisions, brevity), (vec![75.0, 50.0], 1.0));
    /// ```
    pub fn parts(&self, total: &[f64]) -> (Vec<f64>, f64) {
        let (matched, counted) = total.split_at(self.order);
        let orders = matched.iter().zip(counted).map(|(&m, &t)| (m, t));
        let none = matched.iter().all(|&m| m == 0.0);
        let precisions = self.precisions(orders, |m, t| 100.0 * m / t);
        let precisions = precisions.map(|p| if none { 0.0 } else { p.unwrap_or(0.0) }).collect();
        (precisions, self.brevity(total))
    }

    /// Returns BLEU as sacreBLEU computes it from resampled statistics: with n-gram precisions in `f32`.
    pub(crate) fn single_score(&self, total: &[f32]) -> f64 {
        let (matched, counted) = total.split_at(self.order);
        let wide = |i: usize| f64::from(total[i]);
        let lengths: Vec<f64> = (0..total.len()).map(wide).collect();
        let orders = matched.iter().zip(counted).map(|(&m, &t)| (f64::from(m), f64::from(t)));
        self.combine(&lengths, orders, |m, t| f64::from((100.0 * m as f32) / t as f32))
    }

    /// Returns (BLEU/100)^N, which orders statistics as BLEU does and takes no logarithms.
    pub(crate) fn rank(&self, total: &[f64]) -> f64 {
        if self.effective_order {
            return math::powf(self.score(total) / 100.0, self.order as f64);
        }
        let (matched, counted) = total.split_at(self.order);
        if matched.iter().all(|&m| m == 0.0) {
            return 0.0;
        }
        let orders = matched.iter().zip(counted).map(|(&m, &t)| (m, t));
        let product: f64 = self.precisions(orders, |m, t| m / t).map(|p| p.unwrap_or(0.0)).product();
        let (hypothesis, reference) = (total[self.order], total[2 * self.order]);
        if hypothesis >= reference {
            product
        } else if hypothesis > 0.0 {
            product * math::exp(self.order as f64 * (1.0 - reference / hypothesis))
        } else {
            0.0
        }
    }

    /// Returns the BLEU score whose [`Bleu::rank`] is `rank`.
    pub(crate) fn of_rank(&self, rank: f64) -> f64 {
        100.0 * if self.order == 4 { rank.sqrt().sqrt() } else { math::powf(rank, 1.0 / self.order as f64) }
    }

    /// Returns BLEU from matches and totals by order; `ratio` computes a precision in per cent from both.
    fn combine(
        &self,
        total: &[f64],
        orders: impl Iterator<Item = (f64, f64)> + Clone,
        ratio: impl Fn(f64, f64) -> f64,
    ) -> f64 {
        if orders.clone().all(|(m, _)| m == 0.0) {
            return 0.0;
        }
        let (mut log_sum, mut effective) = (0.0, 0);
        for p in self.precisions(orders, ratio) {
            match p {
                Some(p) if p > 0.0 => log_sum += math::ln(p),
                None if self.effective_order => break,
                _ => return 0.0,
            }
            effective += 1;
        }
        let order = if self.effective_order { effective } else { self.order };
        self.brevity(total) * math::exp(log_sum / order as f64)
    }

    /// Iterates over the smoothed n-gram precisions, as computed by `ratio`; `None` for orders longer than
    /// the text.
    fn precisions(
        &self,
        orders: impl Iterator<Item = (f64, f64)>,
        ratio: impl Fn(f64, f64) -> f64,
    ) -> impl Iterator<Item = Option<f64>> {
        let smooth = self.smooth;
        let mut halves = 1.0;
        let mut over = false;
        orders.enumerate().map(move |(n, (mut m, mut t))| {
            if let (Smooth::AddK(k), true) = (smooth, n > 0) {
                m += k;
                t += k;
            }
            over |= t == 0.0;
            if over {
                return None;
            }
            Some(match smooth {
                Smooth::Exp if m == 0.0 => {
                    halves *= 2.0;
                    ratio(1.0, halves * t)
                }
                Smooth::Floor(v) if m == 0.0 => ratio(v, t),
                _ => ratio(m, t),
            })
        })
    }

    /// Returns sentence BLEU (BLEU+1) of one hypothesis from its statistics, from 0 to 100, with the
    /// smoothing `how`.
    pub fn sentence_score(&self, stats: &[f32], how: SentenceSmoothing) -> f64 {
        let mut log_sum = 0.0;
        for n in 0..self.order {
            let one = f64::from(u8::from(n > 0 || how.unigrams));
            let (m, t) = (f64::from(stats[n]) + one, f64::from(stats[self.order + n]) + one);
            if m == 0.0 {
                return 0.0;
            }
            log_sum += math::ln(m / t);
        }
        let (c, r) = (f64::from(stats[self.order]), f64::from(stats[2 * self.order]));
        let r = r + f64::from(u8::from(how.brevity));
        let brevity = if c > 0.0 { (1.0 - r / c).min(0.0) } else { f64::NEG_INFINITY };
        100.0 * math::exp(log_sum / self.order as f64 + brevity)
    }

    /// Returns BLEU, from 0 to 1, times the reference length, without smoothing: 0 if an order has no match.
    #[inline]
    pub(crate) fn sized_score(&self, total: &[f64]) -> f64 {
        if self.order != 4 {
            return 0.01 * self.score(total) * total[2 * self.order];
        }
        let (hypothesis, reference) = (total[4], total[8]);
        let up = (total[0] * total[1]) * (total[2] * total[3]);
        let down = (hypothesis * total[5]) * (total[6] * total[7]);
        if up <= 0.0 || down <= 0.0 {
            return 0.0;
        }
        let brevity = if hypothesis >= reference { 1.0 } else { math::exp(1.0 - reference / hypothesis) };
        brevity * (up / down).sqrt().sqrt() * reference
    }

    /// Writes the n-grams of a text that occur in its references to `out`, one number per occurrence. A
    /// number identifies an n-gram in all texts of the segment; `out` is empty if `prepared` belongs to
    /// another metric.
    pub fn ngrams(&self, prepared: &Prepared, text: &str, scratch: &mut Scratch, out: &mut Vec<u32>) {
        out.clear();
        if let Prepared::Bleu(p) = prepared {
            self.words(text, scratch);
            p.table.occurrences(&scratch.words, self.order, out);
        }
    }

    /// Returns the hash of a token for [`Bleu::number`]; never 0. The text is not tokenised.
    pub fn token(&self, text: &str) -> u64 {
        if self.lowercase { ngram::word(&text.to_lowercase()) } else { ngram::word(text) }
    }

    /// Returns the number that [`Bleu::ngrams`] gives to an n-gram whose words were hashed by
    /// [`Bleu::token`]; `None` if the n-gram does not occur in a reference.
    pub fn number(prepared: &Prepared, words: impl IntoIterator<Item = u64>) -> Option<u32> {
        let Prepared::Bleu(p) = prepared else { return None };
        p.table.find(words.into_iter().fold(0, ngram::extend))
    }

    /// Returns the order of each n-gram of the references and its largest count in a reference, indexed by
    /// its number in [`Bleu::ngrams`]; unused numbers have order 0.
    pub fn ngram_limits(prepared: &Prepared) -> Vec<(usize, u32)> {
        match prepared {
            Prepared::Bleu(p) => p.table.limits(),
            _ => Vec::new(),
        }
    }

    /// Returns the reference length closest to `length`, which may be an expected length and need not be a
    /// whole number; the shorter of two equally close, and 0 without references.
    pub fn closest_length(prepared: &Prepared, length: f64) -> f64 {
        let Prepared::Bleu(p) = prepared else { return 0.0 };
        let mut best = f64::INFINITY;
        for r in p.lengths.iter().map(|&r| f64::from(r)) {
            let (here, there) = ((r - length).abs(), (best - length).abs());
            if here < there || (here == there && r < best) {
                best = r;
            }
        }
        if best.is_finite() { best } else { 0.0 }
    }

    /// Returns the brevity penalty, from 0 to 1.
    fn brevity(&self, total: &[f64]) -> f64 {
        let (hypothesis, reference) = (total[self.order], total[2 * self.order]);
        if hypothesis >= reference {
            1.0
        } else if hypothesis > 0.0 {
            math::exp(1.0 - reference / hypothesis)
        } else {
            0.0
        }
    }

    /// Returns the hypothesis length divided by the reference length; `None` if the latter is 0.
    pub(crate) fn length_ratio(&self, total: &[f64]) -> Option<f64> {
        let (hypothesis, reference) = (total[self.order], total[2 * self.order]);
        (reference > 0.0).then(|| hypothesis / reference)
    }

    /// Returns the settings in sacreBLEU's signature.
    pub(crate) fn signature(&self) -> String {
        let order = if self.order == 4 { String::new() } else { format!("|order:{}", self.order) };
        format!(
            "case:{}|eff:{}|tok:{}|smooth:{}{order}",
            if self.lowercase { "lc" } else { "mixed" },
            if self.effective_order { "yes" } else { "no" },
            self.tokenize.name(),
            self.smooth.signature(),
        )
    }

    /// Returns precisions, brevity penalty and lengths in sacreBLEU's form.
    pub(crate) fn details(&self, total: &[f64]) -> String {
        let (precisions, brevity) = self.parts(total);
        let precisions: Vec<String> = precisions.iter().map(|p| format!("{p:.1}")).collect();
        format!(
            "{} (BP = {:.3} ratio = {:.3} hyp_len = {} ref_len = {})",
            precisions.join("/"),
            brevity,
            self.length_ratio(total).unwrap_or(0.0),
            total[self.order],
            total[2 * self.order]
        )
    }
}

/// Returns the reference length closest to the hypothesis length; the shorter of two equally close.
fn closest(lengths: &[u32], length: u32) -> u32 {
    lengths.iter().copied().min_by_key(|&r| (r.abs_diff(length), r)).unwrap_or(0)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the functions of std serve as reference")]
mod tests {
    use super::*;
    use crate::{Hypothesis, Metric};

    fn stats(metric: &Metric, references: &[&str], text: &str) -> Vec<f64> {
        let mut out = vec![0.0; metric.width()];
        let h = Hypothesis { text, columns: &[] };
        let mut scratch = Scratch::default();
        metric.stats(&metric.prepare(references, &mut scratch), h, &mut scratch, &mut out);
        out.iter().map(|&x| f64::from(x)).collect()
    }

    #[test]
    fn slides_example() {
        let total = [11.0, 5.0, 3.0, 2.0, 15.0, 14.0, 13.0, 12.0, 16.0];
        assert_eq!(format!("{:.3}", Metric::Bleu(Bleu::default()).score(&total)), "29.637");
    }

    /// Statistics and scores from the unit tests of Moses, cdec and Joshua.
    #[test]
    fn peers_examples() {
        let bleu = |m: [f64; 4], t: [f64; 4], r: f64| {
            Metric::Bleu(Bleu::default()).score(&[&m[..], &t[..], &[r]].concat())
        };
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-3, "{a} {b}");
        near(bleu([6., 4., 2., 1.], [6., 5., 4., 3.], 7.), 51.15);
        near(bleu([14., 8., 3., 1.], [20., 19., 18., 17.], 20.), 23.185077);
        near(bleu([39., 24., 15., 10.], [45., 44., 43., 42.], 52.), 38.101241);
        assert_eq!(format!("{:.2}", bleu([14., 8., 5., 3.], [27., 26., 25., 24.], 23.)), "25.13");
    }

    /// Examples of smoothed sentence BLEU from Moses and from travatar: (3/5 · 2/5 · 1/4 · 1/3)^¼.
    #[test]
    fn sentence_scores() {
        let b = Bleu::default();
        let s = [6., 4., 2., 1., 6., 5., 4., 3., 7.];
        let all = SentenceSmoothing { unigrams: true, brevity: false };
        let near = |a: f64, b: f64| assert!((a - b).abs() < 0.01, "{a} {b}");
        near(b.sentence_score(&s, all), 59.85);
        near(b.sentence_score(&s, SentenceSmoothing { unigrams: true, brevity: true }), 50.67);
        let metric = Metric::Bleu(b.clone());
        let s = stats(&metric, &["taro met hanako"], "the taro met the hanako");
        let s: Vec<f32> = s.iter().map(|&x| x as f32).collect();
        let expected = 100.0 * (3. / 5. * 2. / 5. * 1. / 4. * 1. / 3f64).powf(0.25);
        assert!((b.sentence_score(&s, SentenceSmoothing::default()) - expected).abs() < 1e-9);
        assert_eq!(b.sentence_score(&[0.0; 9], all), 0.0);
    }

    #[cfg(feature = "clap")]
    #[test]
    fn flags_of_sentence_smoothing() {
        let command = <SentenceSmoothing as clap::Args>::augment_args(clap::Command::new("x"));
        let matches = command.try_get_matches_from(["x", "--smooth-brevity"]).unwrap();
        let found = <SentenceSmoothing as clap::FromArgMatches>::from_arg_matches(&matches).unwrap();
        assert_eq!(found, SentenceSmoothing { unigrams: false, brevity: true });
    }

    #[test]
    fn score_of_rank_is_the_score() {
        for bleu in [
            Bleu::default(),
            Bleu { order: 2, ..Bleu::default() },
            Bleu { smooth: Smooth::None, ..Bleu::default() },
        ] {
            let n = bleu.order;
            for k in 0..50u32 {
                let count = |i: u32| f64::from((k * 7 + i * 13) % 9);
                let mut total = vec![0.0; 2 * n + 1];
                for i in 0..n {
                    total[n + i] = 12.0 - i as f64;
                    total[i] = count(i as u32).min(total[n + i]);
                }
                total[2 * n] = 9.0 + f64::from(k % 7);
                assert!((bleu.of_rank(bleu.rank(&total)) - bleu.score(&total)).abs() < 1e-9);
            }
        }
    }

    /// An example with four references from Koehn's textbook: matches are clipped to the largest count.
    #[test]
    fn clipping_over_references() {
        let metric: Metric = "bleu".parse().unwrap();
        let refs = [
            "israeli officials are responsible for airport security",
            "israel is in charge of the security at this airport",
            "the security work for this airport is the responsibility of the israel government",
            "israeli side was in charge of the security of this airport",
        ];
        let s = stats(&metric, &refs, "israeli officials responsibility of airport safety");
        assert_eq!(s, [5., 2., 0., 0., 6., 5., 4., 3., 7.]);
        assert_eq!(stats(&metric, &["the cat", "the the"], "the the the")[0], 2.0);
    }

    #[test]
    fn closest_length_ties_to_the_shorter() {
        assert_eq!(closest(&[4, 1], 2), 1);
        assert_eq!(closest(&[4, 1], 3), 4);
        assert_eq!(closest(&[4, 2], 3), 2);
    }

    #[test]
    fn empty_sides() {
        let metric: Metric = "bleu".parse().unwrap();
        assert_eq!(stats(&metric, &["a b"], ""), [0., 0., 0., 0., 0., 0., 0., 0., 2.]);
        assert_eq!(metric.score(&stats(&metric, &["a b"], "")), 0.0);
        assert_eq!(stats(&metric, &[""], "a"), [0., 0., 0., 0., 1., 0., 0., 0., 0.]);
    }
}
