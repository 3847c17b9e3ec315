//! The closed set of metrics.

use crate::{Bleu, bleu::PreparedBleu, ngram::NgramScratch, tokenize::TokenScratch};

/// A metric with its settings. Parsed from names such as `bleu` or `bleu:order=2,tokenize=13a,lowercase`.
#[derive(Debug, Clone, PartialEq)]
pub enum Metric {
    /// BLEU (Papineni et al. 2002).
    Bleu(Bleu),
}

/// What is scored.
#[derive(Debug, Clone, Copy)]
pub struct Hypothesis<'a> {
    /// The translation.
    pub text: &'a str,
}

/// The references of one segment, made ready once.
#[derive(Debug, Clone)]
pub enum Prepared {
    /// For BLEU.
    Bleu(PreparedBleu),
}

/// Memory that [`Metric::stats`] works in. One per thread; it keeps nothing between calls.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    pub(crate) tokens: TokenScratch,
    pub(crate) ngrams: NgramScratch,
}

impl Metric {
    /// Ignores case from now on.
    pub fn set_lowercase(&mut self) {
        match self {
            Metric::Bleu(b) => b.lowercase = true,
        }
    }

    /// Length of the statistics vector.
    pub fn width(&self) -> usize {
        match self {
            Metric::Bleu(b) => b.width(),
        }
    }

    /// Makes a segment's references ready.
    pub fn prepare(&self, references: &[&str]) -> Prepared {
        match self {
            Metric::Bleu(b) => Prepared::Bleu(b.prepare(references)),
        }
    }

    /// Writes a hypothesis' statistics; allocates nothing once `scratch` has grown.
    pub fn stats(&self, prepared: &Prepared, h: Hypothesis<'_>, scratch: &mut Scratch, out: &mut [f32]) {
        match (self, prepared) {
            (Metric::Bleu(b), Prepared::Bleu(p)) => b.stats(p, h.text, scratch, out),
        }
    }

    /// The score of summed statistics, higher is better; BLEU is on the 0–100 scale.
    pub fn score(&self, total: &[f64]) -> f64 {
        match self {
            Metric::Bleu(b) => b.score(total),
        }
    }

    /// Length of the output over length of the reference, where the metric knows both.
    pub fn length_ratio(&self, total: &[f64]) -> Option<f64> {
        match self {
            Metric::Bleu(b) => b.length_ratio(total),
        }
    }

    /// What people call it in tables.
    pub fn name(&self) -> &'static str {
        match self {
            Metric::Bleu(_) => "BLEU",
        }
    }

    /// The settings behind a score, in sacreBLEU's form.
    pub fn signature(&self, references: usize) -> String {
        match self {
            Metric::Bleu(b) => b.signature(references),
        }
    }

    /// The parts of a score in one line, as sacreBLEU prints them.
    pub fn details(&self, total: &[f64]) -> String {
        match self {
            Metric::Bleu(b) => b.details(total),
        }
    }

    /// The BLEU inside, for learners that need n-grams.
    pub fn as_bleu(&self) -> Option<&Bleu> {
        match self {
            Metric::Bleu(b) => Some(b),
        }
    }
}
