//! Random generation of noun phrases: things, people, places and directions.
//!
//! A phrase is drawn by meaning: the caller gives the semantic classes of the noun and the role of the
//! phrase; determiners, adjectives and modifiers then depend on the noun.

use crate::dice::Dice;
use crate::lexicon::names::class::{
    BANK, CLOTH, CORNER, DESK, DRINK, EATERY, FLOWER, FOOD, HOT, KIN, LODGE, LUGGAGE, MASS, NAMED, OWN,
    PERSON, PIECE, PLACE, PRICE, RIDE, ROOM, SEAT, SHOP, SPAN, STAFF, STOP, STREET, THING, VEHICLE, WATER,
};
use crate::lexicon::names::{Case, Class, Named, Pronoun, Usage, class, traits};
use crate::lexicon::{Adjective, Noun, Preposition, Verb, lexicon};
use crate::tree::{Det, Head, Phrase, Post, Prepositional};

/// Role of a noun phrase, on which the choice of the determiner depends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Subject,
    Object,
    Place,
}

/// Returns a phrase that consists of its head only.
pub(super) fn simple(dice: &mut Dice, head: Head) -> Phrase {
    Phrase::new(dice.mark(), head)
}

/// Returns a phrase that consists of a pronoun.
pub(super) fn pronoun(dice: &mut Dice, pronoun: Pronoun) -> Phrase {
    simple(dice, Head::Pronoun(pronoun))
}

/// Draws a noun with at least one of the classes `class` and none of the classes `without`.
pub(super) fn noun_with(dice: &mut Dice, class: Class, without: Class) -> &'static Noun {
    let nouns = &lexicon().nouns;
    let fits = |noun: &Noun| noun.class & class != 0 && noun.class & without == 0;
    dice.pick_where(nouns, fits).unwrap_or(&nouns[0])
}

/// Draws a number of at least two and below `most`, small ones with a higher probability.
pub(super) fn number(dice: &mut Dice, most: usize) -> usize {
    let most = if dice.chance(60) { most.min(6) } else { most };
    2 + dice.skew(most.saturating_sub(2))
}

/// Draws a determiner for a noun.
fn determiner(dice: &mut Dice, noun: &Noun, plural: bool, role: Role) -> Det {
    if noun.class & NAMED != 0 {
        return Det::Bare;
    }
    if noun.class & (PRICE | SPAN) != 0 {
        return Det::Number(number(dice, if noun.class & PRICE != 0 { 99 } else { 20 }));
    }
    if noun.class & OWN != 0 && dice.chance(if noun.class & KIN != 0 { 80 } else { 14 }) {
        return owner(dice, plural);
    }
    if noun.plural.is_empty() {
        let mass = noun.class & MASS != 0 && role == Role::Object;
        return match dice.roll(100) {
            0..55 if mass => Det::None,
            55..65 if mass => Det::Some,
            _ => Det::Def,
        };
    }
    count_determiner(dice, noun, plural, role)
}

/// Draws a possessive pronoun, or a name in the genitive.
fn owner(dice: &mut Dice, plural: bool) -> Det {
    use Pronoun::{He, I, She, They, We, You};
    if dice.chance(12) && !plural {
        let names = if dice.chance(50) { &lexicon().women } else { &lexicon().men };
        let name = *dice.pick(names);
        Det::Name(name)
    } else {
        Det::Poss(*dice.pick(&[I, We, He, She, They, You]))
    }
}

/// Draws a determiner for a countable noun.
fn count_determiner(dice: &mut Dice, noun: &Noun, plural: bool, role: Role) -> Det {
    let weights = match (plural, role) {
        // none, the, number, quantity, this, all, a, each
        (true, Role::Object) => [35, 30, 16, 12, 5, 2, 0, 0],
        (true, Role::Subject) => [0, 55, 14, 16, 7, 8, 0, 0],
        (true, Role::Place) => [0, 80, 8, 5, 7, 0, 0, 0],
        (false, Role::Object) => [0, 42, 0, 0, 8, 0, 50, 0],
        (false, Role::Subject) => [0, 68, 0, 0, 10, 0, 16, 6],
        (false, Role::Place) => [0, 84, 0, 0, 6, 0, 10, 0],
    };
    match dice.weighted(&weights) {
        0 if noun.class & PERSON == 0 => Det::None,
        2 => Det::Number(number(dice, 20)),
        3 => Det::Quantity(*dice.pick(&lexicon().quantities)),
        4 => Det::This,
        5 => Det::All,
        6 => Det::Indef,
        7 => Det::Each,
        _ => Det::Def,
    }
}

/// Draws an adjective for a noun of these classes, before the noun or as a predicate; `None` if there is
/// none.
pub(super) fn adjective(dice: &mut Dice, class: Class, predicate: bool) -> Option<&'static Adjective> {
    dice.pick_where(&lexicon().adjectives, |adjective| {
        let fits = match adjective.usage {
            Usage::Plain | Usage::Absolute => true,
            Usage::Ordinal | Usage::Attribute => !predicate,
            Usage::Predicate => predicate,
        };
        adjective.class & class != 0 && fits
    })
}

/// Draws a noun phrase whose noun has at least one of the classes `class` and none of the classes `without`.
pub(super) fn noun_phrase(dice: &mut Dice, class: Class, without: Class, role: Role) -> Phrase {
    let noun = noun_with(dice, class, without);
    let part = (!noun.parts.is_empty() && (noun.class & NAMED != 0 || dice.chance(45)))
        .then(|| *dice.pick(&noun.parts));
    let often = match role {
        Role::Place => 6,
        _ if class & (FOOD | FLOWER | CLOTH) != 0 => 45,
        _ => 22,
    };
    let plural = noun.german.is_empty()
        || noun.class & (PRICE | SPAN) != 0
        || (!noun.plural.is_empty() && dice.chance(often));
    let mut phrase = simple(dice, Head::Noun(noun, part));
    phrase.plural = plural;
    phrase.det = determiner(dice, noun, plural, role);
    describe(dice, &mut phrase, noun);
    if noun.class & PIECE != 0 && dice.chance(30) {
        return measured(dice, "stück", phrase);
    }
    if noun.class & DRINK != 0 && role == Role::Object && dice.chance(50) {
        let unit = if noun.class & HOT != 0 { "tasse" } else { ["glas", "flasche"][dice.roll(2)] };
        return measured(dice, unit, phrase);
    }
    if matches!(phrase.det, Det::Def) && phrase.adjectives.is_empty() {
        postmodify(dice, &mut phrase, noun.class);
    }
    phrase
}

/// Adds an adjective to some noun phrases.
fn describe(dice: &mut Dice, phrase: &mut Phrase, noun: &Noun) {
    if dice.chance(30)
        && noun.class & (NAMED | PRICE | SPAN) == 0
        && !matches!(phrase.det, Det::Each | Det::Some)
        && let Some(adjective) = adjective(dice, noun.class, false)
    {
        if adjective.usage == Usage::Ordinal {
            phrase.det = Det::Def;
            phrase.plural = phrase.plural && noun.german.is_empty();
        }
        phrase.adjectives.push(adjective);
    }
}

/// Returns a measure phrase: a glass, cup, bottle or piece of something.
fn measured(dice: &mut Dice, unit: &str, mut what: Phrase) -> Phrase {
    let Some(noun) = lexicon().measure(unit) else { return what };
    what.det = Det::None;
    what.plural = false;
    what.adjectives.clear();
    what.post = None;
    let mut phrase = simple(dice, Head::Noun(noun, None));
    phrase.plural = dice.chance(35);
    phrase.det = if phrase.plural { Det::Number(number(dice, 12)) } else { Det::Indef };
    phrase.post = Some(Post::Of(Box::new(what)));
    phrase
}

/// Adds an owner in the genitive or a place to some definite noun phrases.
fn postmodify(dice: &mut Dice, phrase: &mut Phrase, class: Class) {
    if class & (THING | LUGGAGE | RIDE | CLOTH | ROOM) != 0 && dice.chance(22) {
        let mut owner = noun_phrase(dice, PERSON, 0, Role::Subject);
        owner.post = None;
        if matches!(owner.det, Det::Poss(_)) || !owner.plural {
            if !matches!(owner.det, Det::Poss(_) | Det::Indef | Det::This) {
                owner.det = Det::Def;
            }
            phrase.post = Some(Post::Genitive(Box::new(owner)));
        }
    } else if class & (LODGE | EATERY | SHOP | DESK | BANK) != 0 && dice.chance(22) {
        let mut place = place(dice, STOP | WATER | STREET, 40);
        if matches!(place.phrase.det, Det::Def | Det::Quantity(_) | Det::Number(_)) {
            place.phrase.det = Det::Def;
            place.phrase.plural = false;
        }
        phrase.post = Some(Post::Place(Box::new(place)));
    }
}

/// Draws a place where something happens, of one of the classes; `beside` is the probability, in per cent, of
/// a preposition such as "near".
pub(super) fn place(dice: &mut Dice, class: Class, beside: usize) -> Prepositional {
    let open = class & (VEHICLE | SEAT | DESK | BANK | CORNER) == 0;
    if open && dice.chance(16) {
        return in_city(dice);
    }
    let mut phrase = noun_phrase(dice, class, if class == PLACE { CORNER | DESK } else { 0 }, Role::Place);
    phrase.post = None;
    let named = matches!(phrase.det, Det::Bare);
    if open && !named && dice.chance(beside) {
        return Prepositional { preposition: *dice.pick(&lexicon().prepositions), phrase };
    }
    let (german, english) = match phrase.head {
        Head::Noun(noun, _) if !noun.there.is_empty() => (noun.there, noun.english_there),
        _ => ("bei", "at"),
    };
    Prepositional::dative(german, english, phrase)
}

/// Draws a place as [`place`] does, of one of the classes drawn uniformly.
pub(super) fn place_of_a_kind(dice: &mut Dice, class: Class, beside: usize) -> Prepositional {
    let kinds = class::kinds(class);
    let index = dice.roll(kinds.len());
    place(dice, kinds[index], beside)
}

/// Draws a place "in" a town or country.
pub(super) fn in_city(dice: &mut Dice) -> Prepositional {
    let city = city(dice);
    Prepositional::dative("in", "in", city)
}

/// Draws the name of a town or country.
fn city(dice: &mut Dice) -> Phrase {
    let words = dice.pick(&lexicon().cities);
    simple(dice, Head::Name(words.german.to_string(), words.english.to_string(), Pronoun::It))
}

/// Draws the direction of a verb of motion.
pub(super) fn direction(dice: &mut Dice, verb: &Verb) -> Prepositional {
    if !verb.is(traits::NEAR) && dice.chance(40) {
        let city = city(dice);
        return Prepositional::dative("nach", "to", city);
    }
    let mut phrase = noun_phrase(dice, PLACE, CORNER | DESK, Role::Place);
    phrase.post = None;
    let there = if let Head::Noun(noun, _) = phrase.head { noun.there } else { "" };
    let within = dice.chance(55);
    let (german, case) = match there {
        "in" | "auf" if within => (there, Case::Acc),
        _ => ("zu", Case::Dat),
    };
    Prepositional { preposition: Preposition { german, case, english: "to" }, phrase }
}

/// Draws a phrase for a person: pronoun, name or noun.
pub(super) fn person(dice: &mut Dice, class: Class, role: Role) -> Phrase {
    let noun = class & (KIN | STAFF) != 0 && class & PERSON == 0;
    let kind = if noun { 9 } else { dice.roll(10) };
    // In the order of the pronouns: I, we, he, she, they, you (du), you (ihr), you (Sie), one.
    match (kind, role) {
        (0..4, Role::Subject) => weighted_pronoun(dice, &[26, 24, 14, 14, 10, 4, 2, 0, 8]),
        (0..2, _) => weighted_pronoun(dice, &[30, 20, 16, 16, 12, 6]),
        (4..6, _) => name(dice),
        _ => {
            let mut phrase = noun_phrase(dice, class, 0, role);
            if role == Role::Subject
                && !matches!(phrase.det, Det::Each)
                && phrase.post.is_none()
                && dice.chance(9)
            {
                let other = if dice.chance(50) { name(dice) } else { noun_phrase(dice, KIN, 0, role) };
                phrase.and = Some(Box::new(other));
            }
            phrase
        }
    }
}

/// Draws a pronoun with these weights, in the order of the pronouns.
fn weighted_pronoun(dice: &mut Dice, weights: &[usize]) -> Phrase {
    let index = dice.weighted(weights);
    pronoun(dice, Pronoun::ALL[index].1)
}

/// Draws a personal name: a first name, or title and family name.
pub(super) fn name(dice: &mut Dice) -> Phrase {
    let woman = dice.chance(50);
    let pronoun = if woman { Pronoun::She } else { Pronoun::He };
    let head = if dice.chance(30) {
        let family = dice.pick(&lexicon().families);
        let (german, english) = if woman { ("frau", "mrs") } else { ("herr", "mr") };
        Head::Name(format!("{german}_1 {family}"), format!("{english}_1 {family}"), pronoun)
    } else {
        let first = dice.pick(if woman { &lexicon().women } else { &lexicon().men });
        Head::Name((*first).to_string(), (*first).to_string(), pronoun)
    };
    simple(dice, head)
}

/// Returns a pronoun for `phrase` if it has one of the classes and a pronoun is natural; else draws a
/// subject.
pub(super) fn same_or_new(dice: &mut Dice, phrase: &Phrase, class: Class) -> Phrase {
    match phrase.stand_in() {
        Some(index) if phrase.class() & class != 0 => pronoun(dice, index),
        _ => any_subject(dice, class),
    }
}

/// Draws a subject of one of the classes.
pub(super) fn any_subject(dice: &mut Dice, class: Class) -> Phrase {
    if class & (PERSON | STAFF) == 0 || (class & !(PERSON | STAFF | KIN) != 0 && dice.chance(60)) {
        noun_phrase(dice, class & !(PERSON | STAFF), PERSON, Role::Subject)
    } else {
        let class = if class & STAFF != 0 && dice.chance(60) { STAFF } else { class };
        person(dice, class, Role::Subject)
    }
}

/// Draws an object of one of the classes.
pub(super) fn object(dice: &mut Dice, class: Class) -> Phrase {
    // The class is drawn first, so that its probability does not depend on its number of nouns.
    let kinds = class::kinds(class);
    let index = dice.roll(kinds.len());
    let kind = kinds.get(index).copied().unwrap_or(class);
    if kind & (PERSON | KIN | STAFF) != 0 {
        return person(dice, kind, Role::Object);
    }
    let mut phrase = noun_phrase(dice, kind, 0, Role::Object);
    if kind & FOOD != 0 && dice.chance(12) && !matches!(phrase.det, Det::Some) {
        phrase.and = Some(Box::new(noun_phrase(dice, kind, 0, Role::Object)));
    }
    phrase
}
