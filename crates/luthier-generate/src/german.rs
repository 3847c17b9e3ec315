//! Realisation of a tree as a German sentence.
//!
//! [`inflect`] inflects words, [`phrase`] realises phrases and [`mod@clause`] orders them in clauses; this
//! module combines clauses into a sentence. The German sentence is the source: it is realised once, and all
//! English references are its translations.

mod clause;
mod inflect;
mod phrase;

use crate::dice::Dice;
use crate::lexicon::names::{Connective, Join};
use crate::links::{Line, mark};
use crate::tree::{Joined, Mood, Sentence};
use clause::{Order, clause};

/// Realises a sentence in German.
pub(crate) fn say(dice: &mut Dice, s: &Sentence) -> Line {
    let mut out = match (&s.mood, &s.joined) {
        (Mood::Statement, Some(first)) if first.front => {
            let mut lead = joined(dice, first);
            lead.put(",", &[first.mark + mark::COMMA]);
            clause(dice, &s.main, Order::Second, Some(lead))
        }
        (Mood::Statement | Mood::Which, _) => clause(dice, &s.main, Order::Second, None),
        (Mood::YesNo | Mood::Command, _) => clause(dice, &s.main, Order::First, None),
        (Mood::Question(word), _) => {
            let lead = Line::marked(&word.german, word.mark);
            clause(dice, &s.main, Order::Second, Some(lead))
        }
        (Mood::Indirect(opening, word, _), _) => {
            let mut words = Line::marked(&opening.german, opening.mark);
            words.put(",", &[]);
            words.put_marked(&word.german, word.mark);
            words.append(clause(dice, &s.main, Order::Final, None));
            words
        }
    };
    if let Some(second) = &s.joined
        && !second.front
    {
        if second.conjunction.name != Connective::And {
            out.put(",", &[second.mark + mark::COMMA]);
        }
        out.append(joined(dice, second));
    }
    out.put(s.stop(), &[s.mark + mark::STOP]);
    out.tidy()
}

/// Realises a joined clause with its conjunction.
fn joined(dice: &mut Dice, joined: &Joined) -> Line {
    let mut out = Line::of(dice.alternative(joined.conjunction.german), &[joined.mark]);
    let c = &joined.clause;
    // With an empty lead the verb comes first, because the conjunction or the shared subject precedes it.
    let (order, lead) = match joined.conjunction.join {
        Join::Final => (Order::Final, None),
        Join::Second if !c.silent => (Order::Second, None),
        Join::Second | Join::Inverted => (Order::Second, Some(Line::new())),
        Join::To | Join::Ing => (Order::Infinitive, None),
    };
    out.append(clause(dice, c, order, lead));
    out
}
