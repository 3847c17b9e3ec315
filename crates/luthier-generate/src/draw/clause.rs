//! Random generation of clauses: actions, descriptions, existence ("es gibt"), weather, passives.
//!
//! The lexicon gives the frame of each verb, that is, its complements; [`clause`] fills this frame with
//! phrases and adds adverbials. The parameter `richness` is the probability, in per cent, of optional parts:
//! it is high for clauses that stand alone and low for joined clauses, so that all sentences have a similar
//! length.

use super::phrase::{
    Role, adjective, any_subject, direction, in_city, name, noun_phrase, noun_with, object, person, place,
    place_of_a_kind, pronoun, same_or_new, simple,
};
use super::time::{adverb, manner, times};
use crate::dice::Dice;
use crate::lexicon::names::class::{
    AIR, CLOTH, DEVICE, EATERY, EVENT, FOOD, KIN, LODGE, LUGGAGE, NAMED, PERSON, PRICE, READ, RIDE, ROOM,
    SIGHT, SKY, SPAN, STAFF, TICKET, VEHICLE, WEATHER,
};
use crate::lexicon::names::manner::TURN;
use crate::lexicon::names::{Class, Group, Kind, ModalName, Position, Pronoun, Usage, traits};
use crate::lexicon::{Adjective, Noun, Verb, lexicon};
use crate::tree::{Clause, Det, Head, Phrase, Post, Predicate, Prepositional, Tense};

/// Draws a verb of the group `Action` for which `fits` returns true; the first verb of the group if there is
/// none.
pub(super) fn verb_with(dice: &mut Dice, fits: impl Fn(&Verb) -> bool) -> &'static Verb {
    let verbs = lexicon().verbs(Group::Action);
    dice.pick_where(verbs, fits).unwrap_or(&verbs[0])
}

/// Draws a tense for a main clause.
pub(super) fn any_tense(dice: &mut Dice) -> Tense {
    [Tense::Past, Tense::Present, Tense::Habit, Tense::Future][dice.weighted(&[44, 18, 18, 20])]
}

/// Draws a clause with this verb; the subject is drawn as well if it is `None`.
pub(super) fn clause(
    dice: &mut Dice,
    verb: &'static Verb,
    subject: Option<Phrase>,
    tense: Tense,
    richness: usize,
) -> Clause {
    let subject = subject.unwrap_or_else(|| any_subject(dice, verb.subject));
    let tense = natural_tense(verb, tense, richness);
    if verb.kind == Kind::Link {
        let class = subject.class();
        return Clause { verb, ..being(dice, subject, class, tense, richness) };
    }
    let mut c = bare_clause(dice, verb, subject, tense);
    add_objects(dice, &mut c);
    add_surroundings(dice, &mut c, richness);
    add_adverbials(dice, &mut c, richness);
    add_modality(dice, &mut c, richness);
    c
}

/// Returns whether the verb expresses a permanent state, with which no time is given.
fn is_lasting(verb: &Verb) -> bool {
    verb.is(traits::STATE) && verb.subject & PERSON == 0 && verb.object == 0 && verb.fixed.is_empty()
}

/// Returns the tense that is natural for a verb in place of `tense`.
fn natural_tense(verb: &Verb, tense: Tense, richness: usize) -> Tense {
    let since = verb.is(traits::SINCE) && richness > 40 && tense == Tense::Habit;
    let tense = if since { Tense::Since } else { tense };
    let general = verb.is(traits::STATE) && (tense == Tense::Present || is_lasting(verb));
    if general && verb.kind != Kind::Like { Tense::Habit } else { tense }
}

/// Returns a clause with only verb and subject.
pub(super) fn bare_clause(dice: &mut Dice, verb: &'static Verb, subject: Phrase, tense: Tense) -> Clause {
    Clause {
        mark: dice.mark(),
        verb,
        subject,
        silent: false,
        object: None,
        dative: None,
        prep: None,
        direction: None,
        place: None,
        company: None,
        predicate: None,
        times: Vec::new(),
        adverb: None,
        manner: None,
        tense,
        narrative: dice.chance(30),
        modal: None,
        gladly: false,
        negated: false,
        passive: false,
        settled: false,
    }
}

/// Adds the objects in the frame of the verb.
fn add_objects(dice: &mut Dice, c: &mut Clause) {
    let verb = c.verb;
    if verb.object != 0 {
        c.object = Some(object(dice, verb.object));
    }
    if verb.dative != 0 {
        c.dative = Some(person(dice, verb.dative, Role::Object));
    }
    avoid_echo(dice, c);
    if let Some((preposition, class)) = verb.preposition {
        let mut phrase = object(dice, class);
        if phrase.is_pronoun() {
            phrase = noun_phrase(dice, class, 0, Role::Place);
        }
        c.prep = Some(Prepositional { preposition, phrase });
    }
}

/// Replaces objects that are the same pronoun as the subject, and often makes possessives refer to the
/// subject.
fn avoid_echo(dice: &mut Dice, c: &mut Clause) {
    let subject = c.subject.stand_in();
    for phrase in [&mut c.object, &mut c.dative].into_iter().flatten() {
        if phrase.is_pronoun()
            && (phrase.stand_in() == subject || subject >= Some(Pronoun::You) || dice.chance(20))
        {
            *phrase = name(dice);
        }
        if let (Det::Poss(owner), Some(subject)) = (&mut phrase.det, subject)
            && subject < Pronoun::One
            && dice.chance(65)
        {
            *owner = subject;
        }
    }
    if let (Some(object), Some(dative)) = (&mut c.object, &c.dative)
        && object.is_pronoun()
        && dative.is_pronoun()
    {
        *object = name(dice);
    }
}

/// Adds place, direction and company (with whom or by which vehicle).
fn add_surroundings(dice: &mut Dice, c: &mut Clause, richness: usize) {
    let verb = c.verb;
    // Parts that a verb nearly always has do not depend on richness.
    let wanted = |percent: usize| if percent > 85 { percent } else { percent * (richness + 25) / 100 };
    if verb.place != 0 && dice.chance(wanted(verb.place_percent)) {
        let beside = if verb.place_percent == 100 { 25 } else { 12 };
        c.place = Some(place_of_a_kind(dice, verb.place, beside));
    }
    if verb.direction_percent != 0 && dice.chance(wanted(verb.direction_percent)) {
        c.direction = Some(direction(dice, verb));
    }
    if allows_company(verb) && dice.chance(richness / 5) {
        c.company = company(dice, verb);
    }
}

/// Returns whether "with a person" can be added to a verb without being mistaken for its object.
pub(super) fn allows_company(verb: &Verb) -> bool {
    verb.subject & PERSON != 0
        && verb.preposition.is_none()
        && verb.dative == 0
        && !verb.is_wordy()
        && !verb.is(traits::STATE)
}

/// Draws company, a person ("with") or a means of transport ("by"); `None` if the person is a pronoun.
fn company(dice: &mut Dice, verb: &Verb) -> Option<Prepositional> {
    if verb.is(traits::BY_VEHICLE) && dice.chance(65) {
        let noun = noun_with(dice, VEHICLE | RIDE | AIR, 0);
        let mut phrase = simple(dice, Head::Noun(noun, None));
        phrase.det = Det::Bare;
        return Some(Prepositional::dative("mit", "by", phrase));
    }
    let mut phrase = person(dice, PERSON, Role::Object);
    phrase.post = None;
    (!phrase.is_pronoun()).then(|| Prepositional::dative("mit", "with", phrase))
}

/// Adds adverbials of time, of frequency or attitude, and of manner.
fn add_adverbials(dice: &mut Dice, c: &mut Clause, richness: usize) {
    let verb = c.verb;
    let often = if verb.is(traits::STATE) && c.tense == Tense::Habit { 0 } else { richness * 7 / 10 };
    c.times = times(dice, c.tense, often);
    if dice.chance(richness / 4) && !is_lasting(verb) {
        c.adverb = adverb(dice, c.tense);
    }
    if verb.manner != 0 && (verb.manner == TURN || (c.company.is_none() && dice.chance(richness / 3))) {
        c.manner = manner(dice, c);
    }
}

/// Adds modals, "gern" and negation, and removes adverbs that are not compatible with them.
fn add_modality(dice: &mut Dice, c: &mut Clause, richness: usize) {
    let plain = matches!(c.verb.kind, Kind::Plain | Kind::Like) && c.verb.object & (PRICE | SPAN) == 0;
    let people = c.subject.class() & PERSON != 0;
    if people && plain && !c.verb.is(traits::STATE) && !matches!(c.tense, Tense::Before | Tense::Since) {
        if dice.chance(20) {
            let modal = dice.pick(&lexicon().modals);
            // "möchte" has no past tense.
            let past_wish = c.tense == Tense::Past && modal.name == ModalName::WouldLike;
            c.modal = Some(if past_wish { lexicon().modal(ModalName::Can) } else { modal });
        } else if c.tense == Tense::Habit && dice.chance(15) && c.adverb.is_none() && c.manner.is_none() {
            c.gladly = true;
        }
    }
    // Frequency is expressed only once, and not with modals.
    let frequent = c.tense == Tense::Habit && (c.modal.is_some() || !c.times.is_empty());
    c.adverb.take_if(|adverb| frequent && adverb.0.german != "auch");
    let free = c.manner.is_none()
        && c.company.is_none()
        && c.adverb.as_ref().is_none_or(|adverb| adverb.1 == Position::Front);
    let general = matches!(c.subject.det, Det::Each | Det::All | Det::Quantity(_) | Det::Indef);
    if plain && free && !general && c.verb.fixed.is_empty() && !c.gladly && richness > 0 && dice.chance(13) {
        negate(c);
    }
}

/// Negates a clause: with "kein" if the object has no article or an indefinite one, otherwise with "nicht".
fn negate(c: &mut Clause) {
    match &mut c.object {
        Some(object)
            if matches!(object.det, Det::Indef | Det::None) && matches!(object.head, Head::Noun(..)) =>
        {
            if object.and.is_none() && !matches!(object.post, Some(Post::Of(_))) {
                object.det = Det::Kein;
            }
        }
        Some(object) if matches!(object.det, Det::Some | Det::Number(_) | Det::Quantity(_) | Det::All) => {}
        _ => c.negated = true,
    }
}

/// Draws a description: a clause with "sein" and an adjective for a subject of these classes.
pub(super) fn being(
    dice: &mut Dice,
    mut subject: Phrase,
    class: Class,
    tense: Tense,
    richness: usize,
) -> Clause {
    let tense = tense.lasting();
    subject.adjectives.retain(|adjective| adjective.usage == Usage::Ordinal);
    let mut c = bare_clause(dice, lexicon().verb(Group::Be), subject, tense);
    let Some(adjective) = adjective(dice, class, true) else {
        return clause(dice, lexicon().verb(Group::Action), None, tense, richness);
    };
    c.negated = dice.chance(12);
    let predicate = predicate(dice, adjective, class, c.negated);
    // Permanent properties have no adverbial of time.
    let passing = adjective.passing || class & WEATHER != 0;
    if passing && predicate.than.is_none() && tense != Tense::Habit {
        c.times = times(dice, tense, richness * 7 / 10);
    } else if !passing && tense == Tense::Future {
        c.tense = Tense::Habit;
    }
    c.predicate = Some(predicate);
    c
}

/// Draws a predicate: an adjective, optionally as a comparative or with a degree adverb.
fn predicate(dice: &mut Dice, adjective: &'static Adjective, class: Class, negated: bool) -> Predicate {
    let mut predicate = Predicate { mark: dice.mark(), degree: None, adjective, than: None };
    let degrees = &lexicon().degrees;
    if !adjective.english_comparative.is_empty() && class & WEATHER == 0 && !negated && dice.chance(30) {
        predicate.than = Some(if class & PERSON != 0 {
            name(dice)
        } else {
            let other = noun_phrase(dice, class & !(NAMED | DEVICE), KIN, Role::Place);
            Phrase { post: None, ..other }
        });
    } else if adjective.usage == Usage::Plain && dice.chance(40) {
        predicate.degree = Some(if negated { degrees[0] } else { *dice.pick(degrees) });
    }
    predicate
}

/// Draws a clause about the weather.
pub(super) fn weather(dice: &mut Dice, tense: Tense) -> Clause {
    let mut c = match dice.roll(10) {
        0..5 => {
            let subject = pronoun(dice, Pronoun::It);
            let verb = dice.pick(lexicon().verbs(Group::Weather));
            bare_clause(dice, verb, subject, tense)
        }
        5..7 => {
            let noun = noun_with(dice, SKY, 0);
            let mut subject = simple(dice, Head::Noun(noun, None));
            subject.det = Det::Def;
            bare_clause(dice, lexicon().verb(Group::Shine), subject, tense)
        }
        _ => {
            let subject = pronoun(dice, Pronoun::It);
            let mut c = bare_clause(dice, lexicon().verb(Group::Be), subject, tense.lasting());
            if let Some(adjective) = adjective(dice, WEATHER, true) {
                let degree = dice.chance(45).then(|| *dice.pick(&lexicon().degrees));
                c.predicate = Some(Predicate { mark: dice.mark(), degree, adjective, than: None });
            }
            c
        }
    };
    if dice.chance(35) {
        c.place = Some(in_city(dice));
    }
    c
}

/// Draws a passive clause.
fn passive(dice: &mut Dice, tense: Tense) -> Clause {
    let verb = verb_with(dice, |verb| {
        verb.object & !(PRICE | SPAN | PERSON) != 0
            && verb.dative == 0
            && !verb.is_wordy()
            && verb.reflexive.is_none()
            && !verb.is(traits::STATE)
    });
    let subject = noun_phrase(dice, verb.object & !PERSON, PERSON, Role::Subject);
    let tense = if tense == Tense::Past { tense } else { Tense::Habit };
    let mut c = bare_clause(dice, verb, subject, tense);
    c.passive = true;
    c.narrative = true;
    c.times = times(dice, tense, 80);
    if dice.chance(35) {
        let by = if dice.chance(50) { STAFF } else { KIN };
        let phrase = Phrase { post: None, ..noun_phrase(dice, by, 0, Role::Place) };
        c.prep = Some(Prepositional::dative("von", "by", phrase));
    } else if verb.place != 0 && dice.chance(60) {
        c.place = Some(place(dice, verb.place, 10));
    }
    if c.prep.is_none() && dice.chance(35) {
        let name = [ModalName::Can, ModalName::Must][dice.roll(2)];
        c.modal = Some(lexicon().modal(name));
    }
    c
}

/// Draws a clause of any type with this tense.
pub(super) fn any_clause(dice: &mut Dice, tense: Tense, richness: usize) -> Clause {
    match dice.roll(100) {
        0..74 => action(dice, tense, richness),
        74..84 => description(dice, tense, richness),
        84..90 => existence(dice, tense, richness),
        90..94 => {
            let mut c = weather(dice, tense);
            c.times = times(dice, c.tense, richness);
            c
        }
        _ => passive(dice, tense),
    }
}

/// Draws a clause with a verb of the group `Action`, optionally with a relative clause.
fn action(dice: &mut Dice, tense: Tense, richness: usize) -> Clause {
    let verb = dice.pick(lexicon().verbs(Group::Action));
    let mut c = clause(dice, verb, None, tense, richness);
    let related = richness > 70 && dice.chance(17);
    if !related || verb.kind != Kind::Plain {
        return c;
    }
    match &mut c.object {
        Some(object) if verb.dative == 0 && dice.chance(65) => {
            relate(dice, object);
            // Parts that follow the relative clause could be mistaken for parts of it.
            if object.has_relative() {
                c.place = None;
                c.company = None;
                c.direction = None;
                c.manner = None;
            }
        }
        _ => relate(dice, &mut c.subject),
    }
    c
}

/// Draws a description of a drawn subject.
fn description(dice: &mut Dice, tense: Tense, richness: usize) -> Clause {
    const KINDS: [Class; 13] =
        [SIGHT, PERSON, LODGE, VEHICLE, EVENT, FOOD, ROOM, EATERY, TICKET, CLOTH, LUGGAGE, DEVICE, READ];
    let kind = *dice.pick(&KINDS);
    let mut subject = any_subject(dice, kind);
    if richness > 70 && dice.chance(30) {
        relate(dice, &mut subject);
    }
    let class = subject.class();
    being(dice, subject, class, tense, richness)
}

/// Draws a clause with "es gibt".
fn existence(dice: &mut Dice, tense: Tense, richness: usize) -> Clause {
    let tense = tense.lasting();
    let subject = pronoun(dice, Pronoun::It);
    let mut c = clause(dice, lexicon().verb(Group::Exist), Some(subject), tense, richness);
    let Some(object) = &mut c.object else { return c };
    if object.class() & EVENT == 0 {
        c.times.clear();
        c.tense = if tense == Tense::Past { tense } else { Tense::Habit };
    }
    object.post = None;
    object.det = match object.det {
        Det::Number(_) | Det::Quantity(_) | Det::None => object.det,
        _ if object.plural => Det::None,
        _ if dice.chance(15) => Det::Kein,
        _ => Det::Indef,
    };
    object.adjectives.retain(|adjective| adjective.usage != Usage::Ordinal);
    if richness > 70 && dice.chance(25) {
        relate(dice, object);
    }
    c
}

/// Adds a relative clause to a noun phrase if one is possible.
fn relate(dice: &mut Dice, phrase: &mut Phrase) {
    let Head::Noun(noun, _) = phrase.head else { return };
    let plain = matches!(
        phrase.det,
        Det::Def | Det::Indef | Det::All | Det::Number(_) | Det::None | Det::Quantity(_)
    );
    if phrase.post.is_some() || phrase.and.is_some() || !plain || noun.class & (NAMED | PRICE | SPAN) != 0 {
        return;
    }
    let head = Head::Relative(phrase.column(noun), noun.class & PERSON != 0);
    let relative = Phrase { plural: phrase.plural, ..simple(dice, head) };
    if let Some(clause) = relative_clause(dice, noun, relative) {
        phrase.post = Some(Post::Relative(Box::new(clause)));
    }
}

/// Draws a clause with a relative pronoun as place, object or subject; `None` if no verb fits.
fn relative_clause(dice: &mut Dice, noun: &Noun, relative: Phrase) -> Option<Clause> {
    let tense = *dice.pick(&[Tense::Past, Tense::Habit, Tense::Past]);
    match dice.roll(10) {
        0..2 if noun.class & (LODGE | EATERY) != 0 => {
            let verb = verb_with(dice, |verb| {
                verb.place & noun.class != 0 && verb.place_percent > 70 && verb.subject & PERSON != 0
            });
            let mut clause = clause(dice, verb, None, tense, 0);
            clause.place = Some(Prepositional::dative("in", "in", relative));
            Some(clause)
        }
        2..6 if noun.class & PERSON == 0 => {
            let verb = verb_with(dice, |verb| {
                verb.object & noun.class != 0 && verb.subject & PERSON != 0 && verb.fixed.is_empty()
            });
            let mut clause = clause(dice, verb, None, tense, 20);
            clause.object.replace(relative)?;
            Some(clause)
        }
        _ => {
            let verb = verb_with(dice, |verb| verb.subject & noun.class != 0 && verb.kind == Kind::Plain);
            (verb.subject & noun.class != 0).then(|| clause(dice, verb, Some(relative), tense, 30))
        }
    }
}

/// Draws a clause that gives a reason or circumstance for another clause with this subject.
pub(super) fn reason(dice: &mut Dice, subject: &Phrase, tense: Tense) -> Clause {
    let class = subject.class();
    match dice.roll(100) {
        0..18 => weather(dice, tense),
        18..42 => match subject.stand_in() {
            Some(index) if class != 0 => {
                let subject = pronoun(dice, index);
                being(dice, subject, class, tense, 0)
            }
            _ => {
                let subject = person(dice, PERSON, Role::Subject);
                being(dice, subject, PERSON, tense, 0)
            }
        },
        42..55 => {
            let verb =
                verb_with(dice, |verb| !verb.fixed.is_empty() && verb.subject & (class | VEHICLE) != 0);
            let subject = same_or_new(dice, subject, verb.subject);
            clause(dice, verb, Some(subject), tense, 0)
        }
        55..90 => {
            let verb = verb_with(dice, |verb| verb.subject & (PERSON | VEHICLE) != 0);
            let subject = same_or_new(dice, subject, verb.subject);
            clause(dice, verb, Some(subject), tense, 40)
        }
        _ => any_clause(dice, tense, 40),
    }
}

/// Draws an infinitive clause whose subject is that of another clause.
pub(super) fn infinitive(dice: &mut Dice, subject: &Phrase) -> Clause {
    let verb = verb_with(dice, |verb| {
        verb.subject & PERSON != 0 && !verb.is(traits::STATE) && verb.kind == Kind::Plain
    });
    let subject = pronoun(dice, subject.stand_in().unwrap_or(Pronoun::He));
    let mut c = clause(dice, verb, Some(subject), Tense::Habit, 50);
    c.times.clear();
    c.silent = true;
    make_plain(&mut c);
    c
}

/// Removes parts that occur only in main clauses: modal, negation, "gern" and adverbs.
pub(super) fn make_plain(c: &mut Clause) {
    c.modal = None;
    c.negated = false;
    c.gladly = false;
    c.adverb = None;
    if c.tense == Tense::Since {
        c.tense = Tense::Habit;
        c.times.clear();
    }
    if let Some(object) = &mut c.object
        && matches!(object.det, Det::Kein)
    {
        object.det = Det::Def;
    }
}
