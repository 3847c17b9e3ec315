//! Random generation of sentence trees.
//!
//! Trees are drawn from the top down: first the type of the sentence, in this module, then its clauses
//! ([`clause`]), their phrases ([`phrase`]) and adverbials ([`time`]), so that sentences are varied, natural
//! and of similar length. Every choice comes from [`Dice`], and the order of the choices must not change, or
//! every seed would give a different corpus.

mod clause;
mod phrase;
mod question;
mod time;

use crate::dice::Dice;
use crate::lexicon::names::class::PERSON;
use crate::lexicon::names::{Connective, Group, Join, Kind, Position, Pronoun, traits};
use crate::lexicon::{Words, lexicon};
use crate::tree::{Clause, Head, Joined, Mood, Phrase, Sentence, Tense};
use clause::{any_clause, any_tense, infinitive, make_plain, reason, verb_with, weather};
use phrase::{Role, person, pronoun, same_or_new};
use time::times;

/// Draws the tree of a sentence.
pub(crate) fn draw(dice: &mut Dice) -> Sentence {
    let mark = dice.mark();
    let (main, joined) = match dice.roll(100) {
        0..29 => {
            let tense = any_tense(dice);
            (any_clause(dice, tense, 100), None)
        }
        29..51 => adverbial(dice),
        51..60 => speech(dice),
        60..67 => purpose(dice),
        67..76 => coordination(dice),
        76..95 => return question::question(dice, mark),
        _ => return command(dice, mark),
    };
    Sentence { mark, mood: Mood::Statement, main, joined }
}

/// A main clause, and the clause that is joined to it.
type Clauses = (Clause, Option<Joined>);

/// Joins a clause to a main clause by a conjunction; in German it precedes the main clause if `front` is set.
fn join(dice: &mut Dice, main: Clause, name: Connective, clause: Clause, front: bool) -> Clauses {
    let conjunction = lexicon().conjunction(name);
    (main, Some(Joined { mark: dice.mark(), conjunction, clause, front }))
}

/// Draws a polite request.
fn command(dice: &mut Dice, mark: u32) -> Sentence {
    let verb = verb_with(dice, |verb| {
        verb.subject & PERSON != 0
            && !verb.is(traits::STATE)
            && verb.kind == Kind::Plain
            && !verb.is(traits::NO_COMMAND)
    });
    let subject = pronoun(dice, Pronoun::Polite);
    let mut main = clause::clause(dice, verb, Some(subject), Tense::Habit, 70);
    make_plain(&mut main);
    main.times = times(dice, Tense::Future, 30);
    if dice.chance(75) {
        let please = dice.expression(Words { german: "bitte", english: "please" });
        main.adverb = Some((please, Position::Front));
    }
    Sentence { mark, mood: Mood::Command, main, joined: None }
}

/// Draws a main clause with an infinitive clause of purpose ("um … zu") or exclusion ("ohne … zu").
fn purpose(dice: &mut Dice) -> Clauses {
    let verb = verb_with(dice, |verb| {
        verb.subject & PERSON != 0 && !verb.is(traits::STATE) && verb.place_percent < 100
    });
    let subject = person(dice, PERSON, Role::Subject);
    let tense = any_tense(dice);
    let main = clause::clause(dice, verb, Some(subject), tense, 50);
    let sub = infinitive(dice, &main.subject);
    let name = if dice.chance(80) { Connective::InOrder } else { Connective::Without };
    join(dice, main, name, sub, false)
}

/// Conjunctions of adverbial clauses, with their relative frequencies.
const ADVERBIAL: [(Connective, usize); 8] = [
    (Connective::Because, 36),
    (Connective::Although, 10),
    (Connective::If, 13),
    (Connective::Whenever, 7),
    (Connective::When, 14),
    (Connective::Before, 5),
    (Connective::After, 6),
    (Connective::While, 7),
];

/// Draws a main clause with a verb-final adverbial clause.
fn adverbial(dice: &mut Dice) -> Clauses {
    let name = ADVERBIAL[dice.weighted(&ADVERBIAL.map(|entry| entry.1))].0;
    let free = any_tense(dice);
    let (tense, sub_tense) = match name {
        Connective::Because | Connective::Although => {
            (free, if free == Tense::Future { Tense::Present } else { free })
        }
        Connective::If => (Tense::Future, Tense::Habit),
        Connective::Whenever => (Tense::Habit, Tense::Habit),
        Connective::After => (Tense::Past, Tense::Before),
        _ => (Tense::Past, Tense::Past),
    };
    let mut main = any_clause(dice, tense, 50);
    let mut sub = adverbial_clause(dice, &main, name, sub_tense);
    sub.adverb.take_if(|adverb| adverb.1 != Position::Middle);
    let front = dice.chance(35);
    if front {
        name_first(&mut main.subject, &mut sub.subject);
    }
    main.settled = true;
    join(dice, main, name, sub, front)
}

/// Draws the adverbial clause that belongs to a main clause and a conjunction.
fn adverbial_clause(dice: &mut Dice, main: &Clause, name: Connective, tense: Tense) -> Clause {
    use Connective::{Although, Because, If, Whenever};
    let mut sub = if matches!(name, Because | Although | If | Whenever) {
        reason(dice, &main.subject, tense)
    } else {
        let verb = verb_with(dice, |verb| !verb.is(traits::STATE) && verb.kind == Kind::Plain);
        let subject = same_or_new(dice, &main.subject, verb.subject);
        clause::clause(dice, verb, Some(subject), tense, 30)
    };
    if main.verb.kind == Kind::Link && sub.verb.kind == Kind::Link {
        sub = weather(dice, tense);
    }
    if !matches!(name, Because | Although) {
        make_plain(&mut sub);
        sub.times.clear();
        sub.narrative = true;
    } else if sub.tense == Tense::Since {
        sub.adverb = None;
    }
    sub
}

/// Swaps the subjects of two clauses if the pronoun would precede its antecedent: the first mention should be
/// the full noun phrase.
fn name_first(main: &mut Phrase, sub: &mut Phrase) {
    if let Head::Pronoun(index) = sub.head
        && index < Pronoun::Who
        && !main.is_pronoun()
        && main.stand_in() == Some(index)
    {
        std::mem::swap(main, sub);
    }
}

/// Draws a main clause with a verb of speech or thought and a "dass" clause, or with a verb such as
/// "versuchen" and an infinitive.
fn speech(dice: &mut Dice) -> Clauses {
    let verb = dice.pick(lexicon().verbs(Group::Speech));
    let tense = if dice.chance(55) { Tense::Past } else { Tense::Habit };
    let subject = person(dice, PERSON, Role::Subject);
    let mut main = clause::clause(dice, verb, Some(subject), tense, 0);
    main.times = times(dice, tense, if verb.kind == Kind::Try { 40 } else { 0 });
    if verb.kind == Kind::Try {
        let sub = infinitive(dice, &main.subject);
        return join(dice, main, Connective::Bare, sub, false);
    }
    let inner = if tense == Tense::Past { Tense::Past } else { any_tense(dice) };
    let mut sub = any_clause(dice, inner, 50);
    sub.adverb.take_if(|adverb| adverb.1 != Position::Middle);
    join(dice, main, Connective::That, sub, false)
}

/// Draws two coordinated main clauses.
fn coordination(dice: &mut Dice) -> Clauses {
    let tense = any_tense(dice);
    let conjunction = dice.pick(lexicon().coordinating());
    let and = conjunction.name == Connective::And;
    let mut main = any_clause(dice, tense, 45);
    main.settled = true;
    let people = main.subject.class() & PERSON != 0 && main.verb.kind == Kind::Plain && !main.passive;
    let acting =
        |dice: &mut Dice| verb_with(dice, |verb| verb.subject & PERSON != 0 && verb.kind == Kind::Plain);
    let mut second = if people && (and || dice.chance(50)) {
        let verb = acting(dice);
        let subject = same_or_new(dice, &main.subject, PERSON);
        clause::clause(dice, verb, Some(subject), tense, 30)
    } else if conjunction.join == Join::Inverted {
        let verb = acting(dice);
        clause::clause(dice, verb, None, tense, 30)
    } else {
        reason(dice, &main.subject, tense)
    };
    second.adverb.take_if(|adverb| adverb.1 == Position::Front);
    if !main.times.is_empty() {
        second.times.clear();
    }
    second.settled = true;
    let same = match second.subject.head {
        Head::Pronoun(index) => main.subject.stand_in() == Some(index),
        _ => false,
    };
    second.silent = same && people && and && second.times.is_empty();
    join(dice, main, conjunction.name, second, false)
}
