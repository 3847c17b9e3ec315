//! Generation of a sentence pair from random numbers.
//!
//! A tree of clauses and noun phrases is drawn ([`crate::draw`]), realised once in German
//! ([`crate::german`]), and realised once per reference in English ([`crate::english`]). The links follow
//! from the marks of the tokens ([`crate::links`]).

use crate::dice::Dice;
use crate::draw::draw;
use crate::{english, german};

/// A German sentence with English translations and gold word alignments.
///
/// All text is lower-cased and tokenised.
///
/// ```
/// use luthier_generate::{Generator, Part};
/// let pair = Generator::new(10).next(Part::Train, 1);
/// let (german, english) = (&pair.source, &pair.targets[0]);
/// assert_eq!(german.join(" "), "meine cousinen fliegen am abend gern nach bamberg .");
/// assert_eq!(english.join(" "), "my cousins like to fly to bamberg in the evening .");
/// let linked: Vec<String> =
///     pair.links[0].iter().map(|&(i, j)| format!("{}={}", german[i as usize], english[j as usize])).collect();
/// assert_eq!(
///     linked.join(" "),
///     "meine=my cousinen=cousins fliegen=fly am=in am=the abend=evening gern=like gern=to nach=to \
///      bamberg=bamberg .=."
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Tokens of the German sentence.
    pub source: Vec<String>,
    /// Tokens of each English translation.
    pub targets: Vec<Vec<String>>,
    /// Sorted links of each translation: pairs of source position and target position, from 0.
    pub links: Vec<Vec<(u32, u32)>>,
}

/// Generates a sentence pair with `references` translations.
///
/// `below(n)` must return a uniform number below n. All random choices come from it, so the same numbers give
/// the same pair. Use [`Generator`](crate::Generator) unless the random numbers come from elsewhere.
///
/// ```
/// let pair = luthier_generate::sentence(&mut |n| n / 2, 2);
/// assert_eq!(pair.source.join(" "), "daniel wird ein fest verpassen , falls er spazieren geht .");
/// assert_eq!(pair.targets[0].join(" "), "daniel will miss a festival if he goes for a walk .");
/// assert_eq!(pair.targets.len(), 2);
/// ```
pub fn sentence(below: &mut dyn FnMut(usize) -> usize, references: usize) -> Pair {
    let mut dice = Dice::new(below);
    let tree = draw(&mut dice);
    let source = german::say(&mut dice, &tree);
    let mut targets = Vec::with_capacity(references);
    let mut links = Vec::with_capacity(references);
    for _ in 0..references {
        let target = english::say(&mut dice, &tree);
        links.push(source.links(&target));
        targets.push(target.into_texts());
    }
    Pair { source: source.into_texts(), targets, links }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a linear congruential generator.
    fn numbers(seed: u64) -> impl FnMut(usize) -> usize {
        let mut state = seed;
        move |n| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap_or(0) % n
        }
    }

    fn sample(count: usize, references: usize) -> Vec<Pair> {
        let mut below = numbers(7);
        (0..count).map(|_| sentence(&mut below, references)).collect()
    }

    #[test]
    fn same_numbers_same_sentence() {
        for seed in 0..50 {
            assert_eq!(sentence(&mut numbers(seed), 3), sentence(&mut numbers(seed), 3));
        }
    }

    #[test]
    fn links_are_sorted_and_within_range() {
        for pair in sample(2000, 2) {
            assert_eq!(pair.links.len(), pair.targets.len());
            for (links, target) in pair.links.iter().zip(&pair.targets) {
                assert!(links.is_sorted());
                for &(i, j) in links {
                    assert!(usize::try_from(i).is_ok_and(|i| i < pair.source.len()));
                    assert!(usize::try_from(j).is_ok_and(|j| j < target.len()));
                }
            }
        }
    }

    #[test]
    fn content_words_are_linked() {
        let pairs = sample(2000, 1);
        let unlinked = |pair: &&Pair| {
            (0..)
                .zip(&pair.source)
                .any(|(i, word)| word.chars().count() > 4 && !pair.links[0].iter().any(|l| l.0 == i))
        };
        assert!(pairs.iter().filter(unlinked).count() < 40);
    }

    #[test]
    fn tokens_are_clean() {
        for pair in sample(2000, 2) {
            for word in pair.source.iter().chain(pair.targets.iter().flatten()) {
                assert!(
                    !word.is_empty()
                        && *word == word.to_lowercase()
                        && !word.contains([' ', '_', '~', '/', ':'])
                );
            }
            assert!(pair.source.len() >= 3 && pair.source.len() < 40, "{:?}", pair.source);
        }
    }

    #[test]
    fn sentences_are_long_and_varied() {
        let pairs = sample(2000, 2);
        let words: usize = pairs.iter().map(|pair| pair.source.len()).sum();
        assert!(words * 10 >= pairs.len() * 105 && words <= pairs.len() * 15);
        let mut sources: Vec<_> = pairs.iter().map(|pair| &pair.source).collect();
        sources.sort();
        sources.dedup();
        assert!(sources.len() * 10 >= pairs.len() * 9);
        let different = pairs.iter().filter(|pair| pair.targets[0] != pair.targets[1]).count();
        assert!(different * 2 > pairs.len());
    }

    #[test]
    fn as_many_references_as_asked() {
        for references in 1..=4 {
            assert!(sample(20, references).iter().all(|pair| pair.targets.len() == references));
        }
    }
}
