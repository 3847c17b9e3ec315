//! Realisation of English verb groups: auxiliaries and verb forms that express the tense of a clause.
//!
//! German and English tenses do not correspond one to one: a German perfect can be a simple past or a present
//! perfect, and a German present a simple present, a progressive or a future. A [`Plan`] is the English tense
//! that is drawn; the verb forms follow from it.

use super::Shape;
use super::inflect::{Form, finite, inflect, is_invariable};
use crate::dice::Dice;
use crate::lexicon::names::class::{EVENT, VEHICLE};
use crate::lexicon::names::{Agreement, traits};
use crate::links::{Line, mark};
use crate::tree::{Clause, Tense};

/// Properties of a clause on which its verb group depends.
#[derive(Clone, Copy)]
pub(super) struct Setting {
    /// Construction of the clause.
    pub(super) shape: Shape,
    /// Agreement of the verb with the subject.
    pub(super) agreement: Agreement,
    /// Whether the verb is negated with "not".
    pub(super) negated: bool,
    /// Whether the clause has an adverbial of time.
    pub(super) timed: bool,
}

/// Verb group of a clause.
#[derive(Default)]
pub(super) struct Verbs {
    /// Finite verb.
    pub(super) finite: Line,
    /// Whether the finite verb is an auxiliary, which is inverted in questions and takes "not".
    pub(super) helper: bool,
    /// Verb forms after the finite verb.
    pub(super) rest: Line,
    /// Particle of a phrasal verb, which may follow the object; empty if there is none.
    pub(super) particle: &'static str,
    /// Whether the preposition of the prepositional object is dropped.
    pub(super) swallow: bool,
    /// Whether the dative object requires "to".
    pub(super) to: bool,
}

/// Main verb of a clause, from the lexicon.
struct Main {
    /// Forms of the verb that is inflected, as `base` or `base,past,participle`; "be" in the passive.
    forms: &'static str,
    /// Marks of that verb.
    marks: Vec<u32>,
    /// Words that follow the verb: the participle of a passive, fixed words.
    tail: Line,
}

/// Realises the verb group of a clause.
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

/// Draws one of the English alternatives of the verb and parses its notation.
fn main_verb(dice: &mut Dice, c: &Clause, out: &mut Verbs) -> Main {
    let verb = c.mark + mark::VERB;
    // Only the first alternative is guaranteed to have a passive.
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

/// English tense of a clause.
enum Plan {
    /// Simple present or past.
    Simple,
    /// Present or past progressive.
    Progressive,
    /// Present or past perfect.
    Perfect,
    /// Present perfect progressive.
    PerfectProgressive,
    /// A modal or a similar construction, such as "be going to", in its base form.
    Words(&'static str),
}

/// Draws an English tense that is natural for a clause.
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

/// Inflects the finite verb and the verb forms after it.
fn conjugate(c: &Clause, setting: Setting, plan: &Plan, main: &Main, out: &mut Verbs) {
    let finite_mark = c.mark + mark::FINITE;
    let helper_mark = if c.gladly { c.mark + mark::GLADLY } else { finite_mark };
    let perfect = matches!(plan, Plan::Perfect);
    let past = if perfect { c.tense == Tense::Before } else { c.tense.is_past() };
    // The finite verb, and the form of the main verb if it is not the finite one.
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
    // "have" is an auxiliary before a participle, but not in "have to".
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
