//! Realisation of English noun phrases, prepositional phrases and predicates.

use super::Shape;
use super::inflect::{article, plural};
use crate::dice::Dice;
use crate::lexicon::names::Case;
use crate::lexicon::{Noun, lexicon};
use crate::links::{Line, mark};
use crate::tree::{Det, Head, Phrase, Post, Predicate, Prepositional};

/// Realises a noun phrase with its modifiers, in the form of a subject or of an object.
pub(super) fn phrase(dice: &mut Dice, phrase: &Phrase, subject: bool) -> Line {
    let mark = phrase.mark;
    let mut out = match &phrase.head {
        Head::Pronoun(pronoun) => {
            let forms = lexicon().pronoun(*pronoun);
            Line::of(if subject { forms.english_subject } else { forms.english_object }, &[mark + mark::NOUN])
        }
        Head::Name(_, english, _) => Line::marked(english, mark),
        Head::Relative(_, people) => {
            let words = match (people, subject) {
                (true, true) => "who/that",
                (true, false) => "that/who/~",
                (false, true) => "that/which",
                (false, false) => "that/~/which",
            };
            Line::of(dice.alternative(words), &[mark + mark::NOUN])
        }
        Head::Noun(noun, part) => {
            let words = noun_words(dice, phrase, noun, part.map_or("", |part| part.english));
            with_determiner(dice, phrase, noun, words, subject)
        }
    };
    match &phrase.post {
        Some(Post::Place(place)) => out.append(prepositional(dice, place, false)),
        Some(Post::Of(what)) => {
            out.put("of", &[]);
            // The noun after a measure has no article and no "some", like a subject.
            out.append(self::phrase(dice, what, true));
        }
        Some(Post::Relative(clause)) => out.append(super::clause(dice, clause, Shape::Sub, None)),
        // The owner is realised with the determiner.
        Some(Post::Genitive(_)) | None => {}
    }
    if let Some(other) = &phrase.and {
        out.put("and", &[mark + mark::AND]);
        out.append(self::phrase(dice, other, subject));
    }
    out
}

/// Realises the adjectives, the first part of a compound, and the noun.
fn noun_words(dice: &mut Dice, phrase: &Phrase, noun: &Noun, part: &str) -> Line {
    let mark = phrase.mark;
    let mut words = Line::new();
    for (n, adjective) in (0..).zip(&phrase.adjectives) {
        words.put(dice.alternative(adjective.english), &[mark + mark::ADJECTIVE + n]);
    }
    words.put(part, &[mark + mark::NOUN]);
    let english = dice.alternative(noun.english);
    let (first, last) = english.rsplit_once(' ').unwrap_or(("", english));
    words.put(first, &[mark + mark::NOUN]);
    let last = if phrase.plural { plural(last) } else { last.to_string() };
    words.put(&last, &[mark + mark::NOUN]);
    words
}

/// Adds the determiner, or the owner ("'s" or "of"), to the words of a noun.
fn with_determiner(dice: &mut Dice, phrase: &Phrase, noun: &Noun, mut words: Line, subject: bool) -> Line {
    let det = [phrase.mark + mark::DETERMINER];
    let mut out = Line::new();
    if let Some(Post::Genitive(owner)) = &phrase.post {
        let owned = [owner.mark + mark::PREPOSITION];
        let whose = self::phrase(dice, owner, true);
        if dice.chance(65) {
            out.append(whose);
            let plural = out.last().is_some_and(|token| token.text.ends_with('s'));
            out.put(if plural { "'" } else { "'s" }, &owned);
        } else {
            out.put("the", &det);
            words.put("of", &owned);
            words.append(whose);
        }
    } else if let Det::None = phrase.det {
        let uncounted = noun.plural.is_empty() || phrase.plural;
        if !subject && uncounted && dice.chance(20) {
            out.put("some", &[]);
        }
    } else {
        out.put(&determiner(dice, phrase, noun, &words), &det);
    }
    out.append(words);
    out
}

/// Returns the words of a determiner.
fn determiner(dice: &mut Dice, phrase: &Phrase, noun: &Noun, words: &Line) -> String {
    let uncounted = noun.plural.is_empty() || phrase.plural;
    let text = match phrase.det {
        Det::None | Det::Bare => "",
        Det::Def => "the",
        Det::Any if uncounted => "any",
        Det::Indef | Det::Any => article(words.first().map_or("", |token| token.text.as_str())),
        Det::Kein => "no",
        Det::Poss(owner) => lexicon().pronoun(owner).english_possessive,
        Det::This if phrase.plural => "these",
        Det::This => "this",
        Det::Each => dice.alternative("every/each"),
        Det::All => dice.alternative("all the/all"),
        Det::Which => dice.alternative("which/what"),
        Det::Some => dice.alternative("some/a little"),
        Det::Number(n) => return lexicon().number(n).1,
        Det::Quantity(words) => dice.alternative(words.english),
        Det::Name(name) => return format!("{name} 's"),
    };
    text.to_string()
}

/// Realises a prepositional phrase; if `swallow`, without its preposition, because the English verb takes a
/// direct object.
pub(super) fn prepositional(dice: &mut Dice, p: &Prepositional, swallow: bool) -> Line {
    let mark = p.phrase.mark + mark::PREPOSITION;
    if let Head::Relative(..) = p.phrase.head {
        return if dice.chance(60) {
            Line::of("where", &[mark, p.phrase.mark])
        } else {
            let mut out = Line::of("in", &[mark]);
            out.put("which", &[p.phrase.mark]);
            out
        };
    }
    let mut out = Line::new();
    if !swallow {
        out.put(dice.alternative(p.preposition.english), &[mark]);
    }
    // Places are realised like subjects, which have no "some".
    let plain = p.preposition.case == Case::Dat && !p.phrase.is_pronoun();
    out.append(phrase(dice, &p.phrase, plain));
    out
}

/// Realises a predicative adjective, optionally with a degree adverb or as a comparative.
pub(super) fn predicate(dice: &mut Dice, p: &Predicate) -> Line {
    let mut out = Line::new();
    if let Some(degree) = p.degree {
        out.put(dice.alternative(degree.english), &[p.mark + mark::DEGREE]);
    }
    if let Some(than) = &p.than {
        out.put(dice.alternative(p.adjective.english_comparative), &[p.mark + mark::PREDICATE]);
        out.put("than", &[p.mark + mark::THAN]);
        out.append(phrase(dice, than, false));
    } else {
        out.put(dice.alternative(p.adjective.english), &[p.mark + mark::PREDICATE]);
    }
    out
}
