//! Random generation of direct and indirect questions.

use super::clause::{allows_company, clause, make_plain, verb_with};
use super::phrase::{Role, noun_phrase, pronoun};
use crate::dice::Dice;
use crate::lexicon::names::class::{DRINK, FOOD, LODGE, OBJECTS, PERSON, SIGHT, TICKET, VEHICLE};
use crate::lexicon::names::manner::TURN;
use crate::lexicon::names::{Asks, Kind, Pronoun, traits};
use crate::lexicon::{Question, Verb, Words, lexicon};
use crate::tree::{Clause, Det, Mood, Sentence, Tense};

/// Conjunction of an indirect yes–no question.
const WHETHER: Words = Words { german: "ob", english: "whether/if" };

/// Draws a direct or indirect question.
pub(super) fn question(dice: &mut Dice, mark: u32) -> Sentence {
    let tense = *dice.pick(&[Tense::Past, Tense::Future, Tense::Habit]);
    let kind = dice.roll(10);
    if kind < 2 {
        return which_question(dice, mark, tense);
    }
    let indirect = kind > 7;
    let yes_no = kind < 5 || (indirect && dice.chance(40));
    let word = if yes_no { None } else { Some(dice.pick(&lexicon().questions)) };
    let asks = word.map_or(Asks::Nothing, |word| word.asks);
    let verb = verb_with(dice, |verb| can_ask(verb, asks));
    let tense = if asks == Asks::Since { Tense::Habit } else { tense };
    let subject = (verb.subject & PERSON != 0 && dice.chance(55)).then(|| {
        let index = if indirect {
            *dice.pick(&[Pronoun::I, Pronoun::We, Pronoun::He, Pronoun::She])
        } else {
            *dice.pick(&[Pronoun::Polite, Pronoun::You, Pronoun::We, Pronoun::YouAll])
        };
        pronoun(dice, index)
    });
    let mut main = clause(dice, verb, subject, tense, 70);
    leave_out(&mut main, asks);
    Sentence { mark, mood: mood(dice, word, indirect), main, joined: None }
}

/// Returns the mood of a question with or without a question word.
fn mood(dice: &mut Dice, word: Option<&Question>, indirect: bool) -> Mood {
    if indirect {
        let opening = dice.pick(&lexicon().openings);
        let asked = word.map_or(WHETHER, |word| word.words);
        return Mood::Indirect(dice.expression(opening.words), dice.expression(asked), opening.stop);
    }
    word.map_or(Mood::YesNo, |word| Mood::Question(dice.expression(word.words)))
}

/// Returns whether a question for this part of the clause is natural with a verb.
fn can_ask(verb: &Verb, asks: Asks) -> bool {
    match asks {
        Asks::Place => verb.place_percent >= 50 && !verb.is(traits::STATE),
        Asks::Direction => verb.direction_percent >= 80 && verb.subject & PERSON != 0,
        Asks::Company => allows_company(verb) && verb.kind == Kind::Plain,
        Asks::Since => verb.is(traits::SINCE),
        Asks::Time => verb.kind == Kind::Plain && !verb.is(traits::STATE),
        Asks::Nothing => verb.kind == Kind::Plain,
    }
}

/// Removes the part of the clause that its question word asks for, and parts that only statements have.
fn leave_out(main: &mut Clause, asks: Asks) {
    let modal = main.modal;
    make_plain(main);
    main.modal = modal;
    match asks {
        Asks::Place => main.place = None,
        Asks::Direction => main.direction = None,
        Asks::Time => main.times.clear(),
        Asks::Company => main.company = None,
        Asks::Since => {
            main.times.clear();
            main.modal = None;
            main.tense = Tense::Since;
        }
        Asks::Nothing => {}
    }
    if matches!(asks, Asks::Company | Asks::Time) && main.verb.manner != TURN {
        main.manner = None;
    }
}

/// Draws a question with "wer", "was" or "welch-".
fn which_question(dice: &mut Dice, mark: u32, tense: Tense) -> Sentence {
    let things = OBJECTS | FOOD | DRINK | VEHICLE | TICKET | SIGHT | LODGE;
    let verb = verb_with(dice, |verb| verb.object & things != 0 && verb.subject & PERSON != 0);
    let mut main = clause(dice, verb, None, tense, 70);
    leave_out(&mut main, Asks::Nothing);
    match dice.roll(3) {
        0 => main.subject = pronoun(dice, Pronoun::Who),
        1 => main.object = Some(pronoun(dice, Pronoun::What)),
        _ => {
            let mut object = noun_phrase(dice, verb.object & !PERSON, PERSON, Role::Object);
            object.det = Det::Which;
            object.post = None;
            object.adjectives.clear();
            main.object = Some(object);
        }
    }
    Sentence { mark, mood: Mood::Which, main, joined: None }
}
