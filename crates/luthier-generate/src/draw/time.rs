//! Random generation of adverbials of time, frequency, attitude and manner.

use super::phrase::number;
use crate::dice::Dice;
use crate::lexicon::lexicon;
use crate::lexicon::names::tense::{FUTURE, PAST, PRESENT};
use crate::lexicon::names::{Agreement, Position, Pronoun};
use crate::tree::{Clause, Expression, Head, Tense};

/// Beginnings of German expressions for a day, which a time of day can follow.
const DAYS: [&str; 5] = ["heute", "gestern", "morgen", "am_", "jeden"];

/// Draws adverbials of time that are compatible with a tense, with probability `percent`; else returns none.
pub(super) fn times(dice: &mut Dice, tense: Tense, percent: usize) -> Vec<Expression> {
    if tense == Tense::Since {
        return vec![since(dice)];
    }
    if tense == Tense::Before || !dice.chance(percent) {
        return Vec::new();
    }
    let dated = tense.bit() & (PAST | FUTURE) != 0;
    let first = match dice.roll(10) {
        0 | 1 if dated => {
            let day = dice.pick(&lexicon().weekdays);
            dice.composed(format!("am_1 {}_2", day.german), format!("on_1 {}_2", day.english))
        }
        2 if dated => return vec![distance(dice, tense)],
        3 if dated => {
            let month = dice.pick(&lexicon().months);
            return vec![
                dice.composed(format!("im_1 {}_2", month.german), format!("in_1 {}_2", month.english)),
            ];
        }
        _ => {
            let fits = dice.pick_where(&lexicon().times, |time| time.tenses & tense.bit() != 0);
            let Some(time) = fits else { return Vec::new() };
            dice.expression(time.words)
        }
    };
    let day = DAYS.iter().any(|start| first.german.starts_with(start));
    let mut list = vec![first];
    if day && tense.bit() != PRESENT && dice.chance(25) {
        list.push(clock(dice));
    }
    list
}

/// Draws an adverbial such as "seit zwei Wochen" (for two weeks).
fn since(dice: &mut Dice) -> Expression {
    let span = dice.pick(&lexicon().spans);
    if dice.chance(25) {
        return dice.composed(
            format!("seit_1 {}_2", span.german.replace(' ', "_2 ")),
            format!("for_1 a_2 {}_2", span.english),
        );
    }
    let (german, english) = lexicon().number(number(dice, 12));
    dice.composed(
        format!("seit_1 {german}_2 {}_3", span.german_plural),
        format!("for_1 {english}_2 {}s_3", span.english),
    )
}

/// Draws an adverbial such as "vor zwei Wochen" (two weeks ago) or "in zwei Wochen" (in two weeks).
fn distance(dice: &mut Dice, tense: Tense) -> Expression {
    let span = dice.pick(&lexicon().spans);
    let (german, english) = lexicon().number(number(dice, 12));
    let (before, english) = if tense.is_past() {
        ("vor", format!("{english}_2 {}s_3 ago_1", span.english))
    } else {
        ("in", format!("in_1 {english}_2 {}s_3", span.english))
    };
    dice.composed(format!("{before}_1 {german}_2 {}_3", span.german_plural), english)
}

/// Draws a time of day.
fn clock(dice: &mut Dice) -> Expression {
    let hour = 1 + dice.roll(12);
    let next = hour % 12 + 1;
    let words = |hour: usize| lexicon().unit(hour);
    let german = |hour: usize| if hour == 1 { "eins" } else { words(hour).german };
    let (this, following) = (words(hour).english, words(next).english);
    let (german, english) = match dice.roll(10) {
        0..5 => (format!("um_1 {}_2 uhr_3", words(hour).german), format!("at_1 {this}_2 o'clock_3")),
        5..7 => (format!("um_1 halb_2 {}_3", german(next)), format!("at_1 half_2 past_2 {this}_3")),
        7 => (
            format!("um_1 viertel_2 nach_3 {}_4", german(hour)),
            format!("at_1 a_2 quarter_2 past_3 {this}_4"),
        ),
        8 => (
            format!("um_1 viertel_2 vor_3 {}_4", german(next)),
            format!("at_1 a_2 quarter_2 to_3 {following}_4"),
        ),
        _ => {
            let time = format!("{}.{}{}", 1 + dice.roll(23), dice.roll(6), 5 * dice.roll(2));
            (format!("um_1 {time}_2 uhr_2"), format!("at_1 {time}_2"))
        }
    };
    dice.composed(german, english)
}

/// Draws an adverb of frequency or attitude that is compatible with a tense; `None` if there is none.
pub(super) fn adverb(dice: &mut Dice, tense: Tense) -> Option<(Expression, Position)> {
    if tense == Tense::Before {
        return None;
    }
    let adverb = dice.pick_where(&lexicon().adverbs, |adverb| adverb.tenses & tense.bit() != 0)?;
    Some((dice.expression(adverb.words), adverb.position))
}

/// Draws an adverbial of manner that is compatible with the verb and the subject of a clause; `None` if no
/// adverbial is.
pub(super) fn manner(dice: &mut Dice, c: &Clause) -> Option<Expression> {
    // "you" and "one" agree like plurals in English, even if one person is meant.
    let single = matches!(c.subject.head, Head::Pronoun(Pronoun::You | Pronoun::Polite | Pronoun::One));
    let many = c.subject.agreement() == Agreement::Many && !single;
    let odd = if many { "allein" } else { "zusammen" };
    let manner = dice.pick_where(&lexicon().manners, |manner| {
        manner.manners & c.verb.manner != 0 && manner.words.german != odd
    })?;
    Some(dice.expression(manner.words))
}
