//! English verb groups: which helpers express the tense of a clause, and in which forms.
//!
//! German tenses and English ones do not match one to one: a German perfect can be a past or a perfect, a
//! German present a simple present, a progressive or a future. A [`Plan`] says which one is drawn; what
//! follows from it is a matter of forms.

use super::Shape;
use super::inflect::{Form, finite, inflect, is_invariable};
use crate::dice::Dice;
use crate::lexicon::names::class::{EVENT, VEHICLE};
use crate::lexicon::names::{Agreement, traits};
use crate::links::{Line, mark};
use crate::tree::{Clause, Tense};

/// What the rest of the clause says about its verb.
#[derive(Clone, Copy)]
pub(super) struct Setting {
    pub(super) shape: Shape,
    pub(super) agreement: Agreement,
    pub(super) negated: bool,
    /// There is an adverbial of time.
    pub(super) timed: bool,
}

/// The verbs of a clause.
#[derive(Default)]
pub(super) struct Verbs {
    pub(super) finite: Line,
    /// The finite verb inverts and takes "not".
    pub(super) helper: bool,
    pub(super) rest: Line,
    /// A particle that objects may precede.
    pub(super) particle: &'static str,
    /// The preposition of the prepositional object is dropped.
    pub(super) swallow: bool,
    /// The dative needs "to".
    pub(super) to: bool,
}

/// The main verb as the lexicon gives it.
struct Main {
    /// Base, or base, past and participle, of the verb that is inflected: in the passive that is "be".
    forms: &'static str,
    marks: Vec<u32>,
    /// What always follows the verb.
    tail: Line,
}

/// The verbs of a clause in their forms.
pub(super) fn verbs(dice: &mut Dice, c: &Clause, setting: Setting) -> Verbs {
    let mut out = Verbs { helper: true, ..Verbs::default() };
    let mut main = main_verb(dice, c, &mut out);
    let (verb, to) = (c.mark + mark::VERB, c.mark + mark::TO);
    match setting.shape {
        Shape::To => {
            out.finite.put("to", &[to]);
            out.rest.put(&inflect(main.forms, Form::Base), &main.marks);
        }
        Shape::Ing => out.rest.put(&inflect(main.forms, Form::Ing), &[verb, to]),
        Shape::Command => {
            main.marks.push(c.mark + mark::FINITE);
            out.rest.put(&inflect(main.forms, Form::Base), &main.marks);
        }
        Shape::Main | Shape::Second | Shape::Sub | Shape::Ask => {
            let plan = plan(dice, c, setting);
            conjugate(c, setting, &plan, &main, &mut out);
        }
    }
    out.rest.append(main.tail);
    out
}

/// Draws one of the English alternatives of the verb and reads its notation.
fn main_verb(dice: &mut Dice, c: &Clause, out: &mut Verbs) -> Main {
    let verb = c.mark + mark::VERB;
    // Only the first alternative is sure to have a passive.
    let choice = if c.passive { c.verb.first_english() } else { dice.alternative(c.verb.english) };
    let (forms, extra) = choice.split_once(' ').unwrap_or((choice, ""));
    let mut main = if c.passive {
        let tail = Line::of(&inflect(forms, Form::Participle), &[verb]);
        Main { forms: "be,was,been", marks: vec![c.mark + mark::PASSIVE], tail }
    } else {
        Main { forms, marks: vec![verb], tail: Line::new() }
    };
    for word in extra.split(' ') {
        match word {
            "=" => {
                out.swallow = true;
                main.marks.extend(c.prep.iter().map(|prep| prep.phrase.mark + mark::PREPOSITION));
            }
            ">" => out.to = true,
            _ => match word.strip_prefix('+') {
                Some(particle) if !c.passive => out.particle = particle,
                Some(particle) => main.tail.put(particle, &[verb]),
                None => main.tail.put(word, &[verb]),
            },
        }
    }
    main
}

/// How the tense is expressed.
enum Plan {
    Simple,
    Progressive,
    Perfect,
    PerfectProgressive,
    /// A modal or the like in its base form.
    Words(&'static str),
}

/// Draws a natural way to express the tense of a clause.
fn plan(dice: &mut Dice, c: &Clause, setting: Setting) -> Plan {
    if let Some(modal) = c.modal {
        let words = if c.tense.is_past() {
            modal.english_past
        } else if setting.negated {
            modal.english_negated
        } else {
            modal.english
        };
        return Plan::Words(dice.alternative(words));
    }
    if c.gladly {
        return Plan::Words("like to");
    }
    let timed = setting.timed;
    let state = c.verb.is(traits::STATE) || c.passive;
    let open = setting.shape != Shape::Sub && !c.settled && !c.narrative && !timed;
    let timetable = c.subject.class() & (VEHICLE | EVENT) != 0 && timed;
    match c.tense {
        Tense::Present if !state && (timed || dice.chance(70)) => Plan::Progressive,
        Tense::Past if open && !state && dice.chance(30) => Plan::Perfect,
        Tense::Habit | Tense::Present | Tense::Past => Plan::Simple,
        Tense::Before => Plan::Perfect,
        Tense::Since if state || dice.chance(50) => Plan::Perfect,
        Tense::Since => Plan::PerfectProgressive,
        Tense::Future => match dice.roll(20) {
            0..4 => Plan::Words("be going to"),
            4..8 if timetable => Plan::Simple,
            4..10 if !state && timed => Plan::Progressive,
            _ => Plan::Words("will"),
        },
    }
}

/// Puts the finite verb and what follows it into their forms.
fn conjugate(c: &Clause, setting: Setting, plan: &Plan, main: &Main, out: &mut Verbs) {
    let finite_mark = c.mark + mark::FINITE;
    let helper_mark = if c.gladly { c.mark + mark::GLADLY } else { finite_mark };
    let perfect = matches!(plan, Plan::Perfect);
    let past = if perfect { c.tense == Tense::Before } else { c.tense.is_past() };
    // The verb that is finite, and the form of the main verb if that is another one.
    let (forms, form) = match plan {
        Plan::Simple => (main.forms, None),
        Plan::Progressive => ("be,was,been", Some(Form::Ing)),
        Plan::Perfect => ("have,had,had", Some(Form::Participle)),
        Plan::PerfectProgressive => {
            out.rest.put("been", &[finite_mark]);
            ("have,had,had", Some(Form::Ing))
        }
        Plan::Words(words) => {
            let (first, others) = words.split_once(' ').unwrap_or((words, ""));
            out.rest.put(others, &[helper_mark]);
            (first, Some(Form::Base))
        }
    };
    let base = inflect(forms, Form::Base);
    // "have" is a helper before a participle, not in "have to".
    let has = base == "have" && matches!(form, Some(Form::Participle | Form::Ing));
    out.helper = base == "be" || is_invariable(&base) || has;
    let mut marks = if form.is_none() { main.marks.clone() } else { vec![helper_mark] };
    if let Some(form) = form {
        let mut marks = main.marks.clone();
        if c.gladly {
            marks.push(finite_mark);
        }
        out.rest.put(&inflect(main.forms, form), &marks);
    }
    if !out.helper && (setting.negated || setting.shape == Shape::Ask) {
        out.helper = true;
        let rest = std::mem::replace(&mut out.rest, Line::of(&base, &marks));
        out.rest.append(rest);
        out.finite = Line::of(&finite("do", past, setting.agreement), &[finite_mark]);
    } else {
        if form.is_none() {
            marks.push(finite_mark);
        }
        out.finite = Line::of(&finite(forms, past, setting.agreement), &marks);
    }
}
