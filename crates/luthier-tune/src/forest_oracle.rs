//! State that splits the nodes of a forest in searches by BLEU: n-gram counts, BLEU as a part of the score, or
//! the words of one given translation.
//!
//! Words are the decoder's tokens, whatever tokenisation the metric has.

use luthier_forest::{Forest, KBest, Stateful, TAILS, rescore};
use luthier_metric::{Bleu, Prepared};

/// Adds n-gram counts as features: each node is split by the words at both its ends, with words that occur in
/// no reference treated as equal.
pub(crate) struct Ngrams<'a> {
    references: &'a Prepared,
    /// Largest order of n-grams.
    order: usize,
    /// By word of the forest: its token, or 0 if it occurs in no reference.
    tokens: Vec<u64>,
    /// Order of each n-gram and its largest count c* in a reference.
    pub(crate) limits: Vec<(usize, u32)>,
    /// Local feature number of the first count: counts of n-grams that occur in a reference, then totals of
    /// each order.
    pub(crate) base: u32,
}

/// Words at both ends of a partial translation, up to n − 1 each.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Ends {
    left: Box<[u64]>,
    right: Box<[u64]>,
    /// Whether `left` is the whole partial translation.
    whole: bool,
}

impl<'a> Ngrams<'a> {
    pub(crate) fn new(forest: &Forest<'_>, bleu: &Bleu, references: &'a Prepared) -> Self {
        let token = |word: &String| {
            let token = bleu.token(word);
            if Bleu::number(references, [token]).is_some() { token } else { 0 }
        };
        Ngrams {
            references,
            order: bleu.order,
            tokens: forest.words.iter().map(token).collect(),
            limits: Bleu::ngram_limits(references),
            base: forest.local.keys().len() as u32,
        }
    }

    /// Returns the local feature number of the total of unigrams; those of higher orders follow.
    pub(crate) fn totals(&self) -> u32 {
        self.base + self.limits.len() as u32
    }

    /// Returns the number of local feature numbers of all counts and totals.
    pub(crate) fn width(&self) -> usize {
        self.limits.len() + self.order
    }

    /// Returns the ends of an edge's partial translation, and calls `each` for every n-gram that the edge
    /// completes, with its order, and its number if it occurs in a reference.
    fn scan(&self, target: &[u32], tails: &[&Ends], mut each: impl FnMut(usize, Option<u32>)) -> Ends {
        let keep = self.order - 1;
        let (mut left, mut right): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
        let mut words = 0;
        // N-grams of up to `known` words that end here were counted inside the tail.
        let mut take = |token: u64, known: usize, left: &mut Vec<u64>, right: &mut Vec<u64>| {
            for n in known + 1..=self.order.min(right.len() + 1) {
                let before = &right[right.len() + 1 - n..];
                let gram = || Bleu::number(self.references, before.iter().copied().chain([token]));
                each(n, if token == 0 || before.contains(&0) { None } else { gram() });
            }
            if left.len() < keep {
                left.push(token);
            }
            right.push(token);
            if right.len() > keep {
                right.remove(0);
            }
        };
        for symbol in target {
            if let Some(k) = TAILS.iter().position(|t| t == symbol) {
                let tail = tails[k];
                for (i, &token) in tail.left.iter().enumerate() {
                    take(token, i + 1, &mut left, &mut right);
                }
                words += tail.left.len();
                if !tail.whole {
                    words = keep + 1;
                    right = tail.right.to_vec();
                }
            } else {
                take(self.tokens[*symbol as usize], 0, &mut left, &mut right);
                words += 1;
            }
        }
        Ends { left: left.into(), right: right.into(), whole: words <= keep }
    }
}

impl Stateful for Ngrams<'_> {
    type State = Ends;

    fn edge(&self, target: &[u32], tails: &[&Ends], features: &mut Vec<(u32, f32)>) -> Option<(Ends, f64)> {
        let ends = self.scan(target, tails, |n, gram| {
            features.push((self.totals() + n as u32 - 1, 1.0));
            features.extend(gram.map(|g| (self.base + g, 1.0)));
        });
        Some((ends, 0.0))
    }
}

/// Search for translations by model score plus a function of BLEU's statistics. Matches are not clipped during
/// the search, and the reference length is taken into account only at the root.
pub(crate) struct Aim<'a> {
    ngrams: Ngrams<'a>,
    /// Value of statistics, which is added to the model score.
    gain: &'a (dyn Fn(&[f32]) -> f64 + Sync),
}

/// State of a partial translation: words at its ends, unclipped matches of each order, and length.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Matched {
    ends: Ends,
    matches: Box<[u16]>,
    length: u32,
}

/// A translation that the search has found.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// Words, by their numbers in the forest.
    pub(crate) words: Vec<u32>,
    /// Values of the features, by local number.
    pub(crate) features: Vec<f64>,
}

impl<'a> Aim<'a> {
    pub(crate) fn new(
        forest: &Forest<'_>,
        bleu: &Bleu,
        references: &'a Prepared,
        gain: &'a (dyn Fn(&[f32]) -> f64 + Sync),
    ) -> Self {
        Aim { ngrams: Ngrams::new(forest, bleu, references), gain }
    }

    /// Returns the `k` best distinct translations by model score, with weights by local feature number, plus
    /// value of their statistics; `pop` is the pop limit of cube pruning per node.
    pub(crate) fn best(&self, forest: &Forest<'_>, weights: &[f64], k: usize, pop: usize) -> Vec<Found> {
        let aimed = rescore(forest, self, &forest.scores(weights), Some(pop));
        // The value of the statistics is a feature of its own, with weight 1.
        let base = self.ngrams.base;
        let scores = aimed.scores(&[weights, &[1.0]].concat());
        let best = KBest::new(&aimed, &scores, true).limit(10_000).take(k);
        let found = best.map(|d| {
            let mut features = vec![0.0; base as usize];
            for &edge in &d.edges {
                for (f, v) in aimed.features(edge).filter(|f| f.0 < base) {
                    features[f as usize] += f64::from(v);
                }
            }
            Found { words: d.words, features }
        });
        found.collect()
    }

    /// Returns the value of a partial translation's statistics; without a reference length, its own length is used.
    fn value(&self, matched: &Matched, reference: Option<f64>) -> f64 {
        let n = self.ngrams.order;
        let mut stats = vec![0.0; 2 * n + 1];
        for k in 0..n {
            stats[k] = f32::from(matched.matches[k]);
            stats[n + k] = matched.length.saturating_sub(k as u32) as f32;
        }
        stats[2 * n] = reference.map_or(matched.length as f32, |r| r as f32);
        (self.gain)(&stats)
    }
}

impl Stateful for Aim<'_> {
    type State = Matched;

    fn edge(
        &self,
        target: &[u32],
        tails: &[&Matched],
        features: &mut Vec<(u32, f32)>,
    ) -> Option<(Matched, f64)> {
        let n = self.ngrams.order;
        let mut matches: Box<[u16]> = vec![0; n].into();
        let mut length = target.iter().filter(|s| !TAILS.contains(s)).count() as u32;
        let mut before = 0.0;
        for tail in tails {
            for (m, t) in matches.iter_mut().zip(&tail.matches) {
                *m = m.saturating_add(*t);
            }
            length += tail.length;
            before += self.value(tail, None);
        }
        let ends: Vec<&Ends> = tails.iter().map(|t| &t.ends).collect();
        let ends = self.ngrams.scan(target, &ends, |order, gram| {
            if gram.is_some() {
                matches[order - 1] = matches[order - 1].saturating_add(1);
            }
        });
        let state = Matched { ends, matches, length };
        let added = self.value(&state, None) - before;
        features.push((self.ngrams.base, added as f32));
        Some((state, added))
    }

    fn end(&self, state: &Matched, features: &mut Vec<(u32, f32)>) -> Option<f64> {
        let closest = Bleu::closest_length(self.ngrams.references, f64::from(state.length));
        let added = self.value(state, Some(closest)) - self.value(state, None);
        features.push((self.ngrams.base, added as f32));
        Some(added)
    }
}

/// Restricts a forest to the derivations of one translation: each node is split by its words.
pub(crate) struct Only<'a>(pub(crate) &'a [u32]);

impl Stateful for Only<'_> {
    type State = Box<[u32]>;

    fn edge(
        &self,
        target: &[u32],
        tails: &[&Box<[u32]>],
        _: &mut Vec<(u32, f32)>,
    ) -> Option<(Box<[u32]>, f64)> {
        let mut words = Vec::new();
        for symbol in target {
            match TAILS.iter().position(|t| t == symbol) {
                Some(k) => words.extend_from_slice(tails[k]),
                None => words.push(*symbol),
            }
        }
        let within = words.is_empty() || self.0.windows(words.len()).any(|w| w == words);
        within.then(|| (words.into(), 0.0))
    }

    fn end(&self, state: &Box<[u32]>, _: &mut Vec<(u32, f32)>) -> Option<f64> {
        (**state == *self.0).then_some(0.0)
    }
}
