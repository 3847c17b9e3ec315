//! BLEU (Papineni et al. 2002), equal to sacreBLEU's.
//!
//! BLEU = BP · exp(1/N Σ log pₙ), pₙ = matchₙ/totalₙ with matches clipped by the largest count over the
//! references, BP = min(1, exp(1 − r/c)), r the reference length closest to the hypothesis' (the shorter of
//! two equally close). Statistics: `match₁…match_N`, `total₁…total_N`, r.

use crate::{Scratch, Tokenizer, ngram, ngram::NgramTable};

/// Settings of BLEU.
#[derive(Debug, Clone, PartialEq)]
pub struct Bleu {
    /// Longest n-gram, 4 by default.
    pub order: usize,
    /// How text is cut into words. `none` by default: n-best lists are in the decoder's own tokens.
    pub tokenize: Tokenizer,
    /// Whether case is ignored.
    pub lowercase: bool,
    /// What happens to an order without any match.
    pub smooth: Smooth,
}

impl Default for Bleu {
    fn default() -> Self {
        Bleu { order: 4, tokenize: Tokenizer::None, lowercase: false, smooth: Smooth::Exp }
    }
}

/// What happens to an order without any match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Smooth {
    /// The score is 0.
    None,
    /// The k-th such order counts as 1/2ᵏ of a match (NIST), as in sacreBLEU.
    Exp,
}

impl Smooth {
    /// All of them.
    pub const ALL: &'static [Smooth] = &[Smooth::None, Smooth::Exp];

    /// Its name in settings and signatures.
    pub fn name(&self) -> &'static str {
        match self {
            Smooth::None => "none",
            Smooth::Exp => "exp",
        }
    }
}

/// References ready for counting.
#[derive(Debug, Clone)]
pub struct PreparedBleu {
    table: NgramTable,
    lengths: Vec<u32>,
}

impl Bleu {
    pub(crate) fn width(&self) -> usize {
        2 * self.order + 1
    }

    pub(crate) fn prepare(&self, references: &[&str]) -> PreparedBleu {
        let mut scratch = Scratch::default();
        let words: Vec<Vec<u64>> = references
            .iter()
            .map(|r| {
                self.words(r, &mut scratch);
                scratch.ngrams.words.clone()
            })
            .collect();
        let lengths = words.iter().map(|w| w.len() as u32).collect();
        PreparedBleu { table: NgramTable::new(&words, self.order), lengths }
    }

    fn words(&self, text: &str, scratch: &mut Scratch) {
        self.tokenize.run(text, self.lowercase, &mut scratch.tokens);
        scratch.ngrams.words.clear();
        scratch.ngrams.words.extend(scratch.tokens.tokens().map(ngram::word));
    }

    pub(crate) fn stats(&self, p: &PreparedBleu, text: &str, scratch: &mut Scratch, out: &mut [f32]) {
        self.words(text, scratch);
        let words = std::mem::take(&mut scratch.ngrams.words);
        out.fill(0.0);
        p.table.matches(&words, &mut scratch.ngrams, &mut out[..self.order]);
        for n in 0..self.order {
            out[self.order + n] = words.len().saturating_sub(n) as f32;
        }
        out[2 * self.order] = closest(&p.lengths, words.len() as u32) as f32;
        scratch.ngrams.words = words;
    }

    pub(crate) fn score(&self, total: &[f64]) -> f64 {
        let (matched, counted) = total.split_at(self.order);
        if matched.iter().all(|&m| m == 0.0) {
            return 0.0;
        }
        let mut log_sum = 0.0;
        for p in self.precisions(matched, counted) {
            if p == 0.0 {
                return 0.0;
            }
            log_sum += p.ln();
        }
        self.brevity(total) * (log_sum / self.order as f64).exp()
    }

    /// In per cent.
    fn precisions<'a>(&self, matched: &'a [f64], counted: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        let smooth = self.smooth;
        let mut halves = 1.0;
        matched.iter().zip(counted).map(move |(&m, &t)| {
            if t == 0.0 {
                0.0
            } else if m == 0.0 && smooth == Smooth::Exp {
                halves *= 2.0;
                100.0 / (halves * t)
            } else {
                100.0 * m / t
            }
        })
    }

    fn brevity(&self, total: &[f64]) -> f64 {
        let (hypothesis, reference) = (total[self.order], total[2 * self.order]);
        if hypothesis >= reference {
            1.0
        } else if hypothesis > 0.0 {
            (1.0 - reference / hypothesis).exp()
        } else {
            0.0
        }
    }

    pub(crate) fn length_ratio(&self, total: &[f64]) -> Option<f64> {
        let (hypothesis, reference) = (total[self.order], total[2 * self.order]);
        (reference > 0.0).then(|| hypothesis / reference)
    }

    pub(crate) fn signature(&self, references: usize) -> String {
        let case = if self.lowercase { "lc" } else { "mixed" };
        let order = if self.order == 4 { String::new() } else { format!("order:{}|", self.order) };
        format!(
            "nrefs:{references}|case:{case}|eff:no|tok:{}|smooth:{}|{order}version:luthier-{}",
            self.tokenize.name(),
            self.smooth.name(),
            env!("CARGO_PKG_VERSION")
        )
    }

    pub(crate) fn details(&self, total: &[f64]) -> String {
        let (matched, counted) = total.split_at(self.order);
        let none = matched.iter().all(|&m| m == 0.0);
        let precisions: Vec<String> =
            self.precisions(matched, counted).map(|p| format!("{:.1}", if none { 0.0 } else { p })).collect();
        format!(
            "{} (BP = {:.3} ratio = {:.3} hyp_len = {} ref_len = {})",
            precisions.join("/"),
            self.brevity(total),
            self.length_ratio(total).unwrap_or(0.0),
            total[self.order],
            total[2 * self.order]
        )
    }
}

/// The reference length closest to the hypothesis'; of two equally close, the shorter.
fn closest(lengths: &[u32], length: u32) -> u32 {
    lengths.iter().copied().min_by_key(|&r| (r.abs_diff(length), r)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hypothesis, Metric};

    fn stats(metric: &Metric, references: &[&str], text: &str) -> Vec<f64> {
        let mut out = vec![0.0; metric.width()];
        metric.stats(&metric.prepare(references), Hypothesis { text }, &mut Scratch::default(), &mut out);
        out.iter().map(|&x| f64::from(x)).collect()
    }

    #[test]
    fn slides_example() {
        let total = [11.0, 5.0, 3.0, 2.0, 15.0, 14.0, 13.0, 12.0, 16.0];
        assert_eq!(format!("{:.3}", Metric::Bleu(Bleu::default()).score(&total)), "29.637");
    }

    /// Statistics and scores of Moses', cdec's and Joshua's own unit tests.
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

    /// Koehn's book: four references, matches clipped by the largest count.
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
