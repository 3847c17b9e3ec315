//! Realisation of a tree as an English sentence.
//!
//! A German sentence has many good translations, and references should be as varied: synonyms, tenses, and
//! the order of adverbials and clauses are drawn again for every reference. [`inflect`] inflects words,
//! [`mod@phrase`] realises phrases and [`mod@verbs`] verb groups; this module orders them in clauses and
//! sentences.

mod inflect;
mod phrase;
mod verbs;

use crate::dice::Dice;
use crate::lexicon::names::manner::TURN;
use crate::lexicon::names::{Agreement, Connective, Join, Kind, Position, Pronoun};
use crate::links::{Line, mark};
use crate::tree::{Clause, Det, Expression, Head, Joined, Mood, Phrase, Sentence};
use phrase::{phrase, predicate, prepositional};
use verbs::{Setting, Verbs, verbs};

/// Construction of an English clause.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// A main clause.
    Main,
    /// A main clause that follows another clause: nothing is fronted.
    Second,
    /// A subordinate clause: nothing is fronted, and there is no present perfect.
    Sub,
    /// A direct question, with inversion.
    Ask,
    /// An infinitive with "to".
    To,
    /// A gerund ("-ing").
    Ing,
    /// An imperative.
    Command,
}

/// Realises a sentence in English.
pub(crate) fn say(dice: &mut Dice, s: &Sentence) -> Line {
    let mut out = Line::new();
    let first = joined_first(dice, s);
    if let Some(first) = s.joined.as_ref().filter(|_| first) {
        let word = dice.alternative(first.conjunction.english);
        out.append(joined(dice, first, word));
        out.put(",", &[first.mark + mark::COMMA]);
    }
    let shape = match s.mood {
        Mood::Statement if first => Shape::Second,
        Mood::Statement => Shape::Main,
        Mood::YesNo | Mood::Question(_) | Mood::Which => Shape::Ask,
        Mood::Command => Shape::Command,
        Mood::Indirect(..) => Shape::Sub,
    };
    let mut lead = Line::new();
    let (opening, word) = match &s.mood {
        Mood::Question(word) => (None, Some(word)),
        Mood::Indirect(opening, word, _) => (Some(opening), Some(word)),
        _ => (None, None),
    };
    for expression in opening.into_iter().chain(word) {
        lead.put_marked(dice.alternative(&expression.english), expression.mark);
    }
    out.append(clause(dice, &s.main, shape, Some(lead)));
    if let Some(second) = s.joined.as_ref().filter(|_| !first) {
        let word = dice.alternative(second.conjunction.english);
        if dice.chance(comma_percent(word, second.clause.silent)) {
            out.put(",", &[second.mark + mark::COMMA]);
        }
        out.append(joined(dice, second, word));
    }
    out.put(s.stop(), &[s.mark + mark::STOP]);
    out.tidy()
}

/// Returns whether the joined clause precedes the main clause. The order may differ from the German one if
/// neither subject is a pronoun that refers to the other clause.
fn joined_first(dice: &mut Dice, s: &Sentence) -> bool {
    use Pronoun::{He, ItFeminine, ItMasculine, She, They};
    let Some(joined) = &s.joined else { return false };
    let bound =
        |c: &Clause| matches!(c.subject.head, Head::Pronoun(He | She | They | ItMasculine | ItFeminine));
    let movable = joined.conjunction.join == Join::Final && joined.conjunction.name != Connective::That;
    if movable && !bound(&joined.clause) && !bound(&s.main) && dice.chance(20) {
        !joined.front
    } else {
        joined.front
    }
}

/// Returns the probability of a comma before a conjunction, in per cent.
fn comma_percent(word: &str, silent: bool) -> usize {
    match word {
        "but" | "so" | "and so" | "for" | "which is why" | "but nevertheless" | "and yet" => 100,
        "although" | "even though" | "though" => 50,
        "and" if !silent => 40,
        _ => 0,
    }
}

/// Realises a joined clause with its conjunction `word`.
fn joined(dice: &mut Dice, joined: &Joined, word: &str) -> Line {
    let mut out = Line::of(word, &[joined.mark]);
    let shape = match joined.conjunction.join {
        Join::Final => Shape::Sub,
        Join::Second | Join::Inverted => Shape::Second,
        Join::To => Shape::To,
        Join::Ing => Shape::Ing,
    };
    let bare = out.is_empty();
    out.append(clause(dice, &joined.clause, shape, None));
    // A plain "to" is linked to both "um" and "zu".
    if bare
        && joined.conjunction.join == Join::To
        && let Some(to) = out.first_mut()
    {
        to.marks.push(joined.mark);
    }
    out
}

/// Realises a clause; `lead` is the question word or the opening that precedes it.
fn clause(dice: &mut Dice, c: &Clause, shape: Shape, lead: Option<Line>) -> Line {
    let mut c = c.clone();
    let (negated, not_mark) = negation(dice, &mut c, shape);
    if c.verb.kind == Kind::Like
        && let Some(liker) = c.dative.take()
    {
        c.object = Some(std::mem::replace(&mut c.subject, liker));
    }
    let mut out = Line::new();
    let timed = !c.times.is_empty();
    let moved = front(dice, &mut c, shape, lead, &mut out);
    let (subject, agreement) = subject(dice, &c, shape);
    let asks_subject = matches!(c.subject.head, Head::Pronoun(Pronoun::Who));
    let shape = if asks_subject && shape == Shape::Ask { Shape::Second } else { shape };
    let mut verbs = verbs(dice, &c, Setting { shape, agreement, negated, timed });
    let middle = c
        .adverb
        .take()
        .map_or_else(Line::new, |(adverb, _)| Line::marked(dice.alternative(&adverb.english), adverb.mark));
    let finite = std::mem::take(&mut verbs.finite);
    let (helper, full) = if verbs.helper { (finite, Line::new()) } else { (Line::new(), finite) };
    let before = if shape == Shape::Ask { [helper, subject] } else { [subject, helper] };
    for words in before {
        out.append(words);
    }
    if negated {
        put_not(dice, &mut out, not_mark);
    }
    out.append(middle);
    out.append(full);
    out.append(std::mem::take(&mut verbs.rest));
    objects(dice, &c, &verbs, moved, &mut out);
    tail(dice, &c, verbs.swallow, &mut out);
    out
}

/// Returns whether the verb is negated, and the mark of "not"; "kein" becomes either "no" or a negated verb
/// with "any".
fn negation(dice: &mut Dice, c: &mut Clause, shape: Shape) -> (bool, u32) {
    let mut negated = c.negated;
    if let Some(object) = &mut c.object
        && matches!(object.det, Det::Kein)
        && !matches!(shape, Shape::To | Shape::Ing)
        && dice.chance(60)
    {
        object.det = Det::Any;
        negated = true;
    }
    let mark = match &c.object {
        Some(object) if !c.negated => object.mark + mark::DETERMINER,
        _ => c.mark + mark::NOT,
    };
    (negated, mark)
}

/// Appends "not"; after "can" it may become "cannot".
fn put_not(dice: &mut Dice, out: &mut Line, mark: u32) {
    if let Some(last) = out.last_mut()
        && last.text == "can"
        && dice.chance(60)
    {
        last.text = "cannot".to_string();
        last.marks.push(mark);
    } else {
        out.put("not", &[mark]);
    }
}

/// Realises the subject, and returns its agreement with the verb.
fn subject(dice: &mut Dice, c: &Clause, shape: Shape) -> (Line, Agreement) {
    match (&c.object, c.verb.kind) {
        (Some(object), Kind::Exist) => (Line::of("there", &[c.subject.mark]), object.agreement()),
        _ if c.silent || shape == Shape::Command => (Line::new(), c.subject.agreement()),
        _ => (phrase(dice, &c.subject, true), c.subject.agreement()),
    }
}

/// Realises the parts before the subject and removes them from the clause; returns whether the object is
/// among them.
fn front(dice: &mut Dice, c: &mut Clause, shape: Shape, lead: Option<Line>, out: &mut Line) -> bool {
    if shape == Shape::Command
        && dice.chance(75)
        && let Some((please, _)) = c.adverb.take()
    {
        out.put(&please.english, &[please.mark]);
    }
    if shape == Shape::Main {
        front_adverbial(dice, c, out);
    }
    out.append(lead.unwrap_or_default());
    if let Some(place) = c.place.take_if(|place| matches!(place.phrase.head, Head::Relative(..))) {
        out.append(prepositional(dice, &place, false));
    }
    let Some(object) = &c.object else { return false };
    let asked = matches!(object.det, Det::Which)
        || matches!(object.head, Head::Relative(..) | Head::Pronoun(Pronoun::What));
    if asked {
        out.append(phrase(dice, object, false));
    }
    asked
}

/// Moves an adverb, a time or a place to the front of some main clauses.
fn front_adverbial(dice: &mut Dice, c: &mut Clause, out: &mut Line) {
    let heavy = c.object.as_ref().is_some_and(Phrase::has_relative);
    let comma = if let Some((adverb, Position::Front)) = &c.adverb {
        out.put_marked(dice.alternative(&adverb.english), adverb.mark);
        let comma = dice.chance(50) && adverb.german != "dann" && adverb.german != "vielleicht";
        c.adverb = None;
        comma
    } else if !c.times.is_empty() && (heavy || dice.chance(33)) {
        put_times(dice, &c.times, out);
        c.times.clear();
        dice.chance(35)
    } else if c.place.is_some()
        && c.verb.place_percent < 100
        && dice.chance(10)
        && c.subject.post.is_none()
        && let Some(place) = c.place.take()
    {
        out.append(prepositional(dice, &place, false));
        dice.chance(30)
    } else {
        false
    };
    if comma {
        out.put(",", &[]);
    }
}

/// Appends adverbials of time, sometimes in reverse order.
fn put_times(dice: &mut Dice, times: &[Expression], out: &mut Line) {
    let backwards = times.len() > 1 && dice.chance(40);
    let order: Vec<&Expression> =
        if backwards { times.iter().rev().collect() } else { times.iter().collect() };
    for time in order {
        out.put_marked(dice.alternative(&time.english), time.mark);
    }
}

/// Appends the objects after the verb, with the particle of a phrasal verb before or after the object.
fn objects(dice: &mut Dice, c: &Clause, verbs: &Verbs, moved: bool, out: &mut Line) {
    let object = c.object.as_ref().filter(|_| !moved);
    let Some(dative) = &c.dative else {
        let particle = Line::of(verbs.particle, &[c.mark + mark::VERB]);
        let Some(object) = object else {
            out.append(particle);
            return;
        };
        let short = object.post.is_none() && object.and.is_none();
        let words = phrase(dice, object, false);
        let ordered = if object.is_pronoun() || (short && dice.chance(35)) {
            [words, particle]
        } else {
            [particle, words]
        };
        for words in ordered {
            out.append(words);
        }
        return;
    };
    let mut receiver = phrase(dice, dative, false);
    if let Some(object) = object {
        let words = phrase(dice, object, false);
        if verbs.to || object.is_pronoun() || dice.chance(35) {
            out.append(words);
            out.put("to", &[]);
        } else {
            receiver.append(words);
        }
    } else if moved && (verbs.to || dice.chance(60)) {
        out.put("to", &[]);
    }
    out.append(receiver);
}

/// Appends the parts after the objects: predicate, prepositional object, direction, manner, place, company,
/// time.
fn tail(dice: &mut Dice, c: &Clause, swallow: bool, out: &mut Line) {
    if let Some(adjective) = &c.predicate {
        out.append(predicate(dice, adjective));
    }
    let turns = c.verb.manner == TURN;
    if let Some(manner) = c.manner.as_ref().filter(|_| turns) {
        out.put_marked(dice.alternative(&manner.english), manner.mark);
    }
    if let Some(prep) = &c.prep {
        out.append(prepositional(dice, prep, swallow));
    }
    if let Some(direction) = &c.direction {
        out.append(prepositional(dice, direction, false));
    }
    if let Some(manner) = c.manner.as_ref().filter(|_| !turns) {
        out.put_marked(dice.alternative(&manner.english), manner.mark);
    }
    let places = if dice.chance(45) { [&c.place, &c.company] } else { [&c.company, &c.place] };
    for place in places.into_iter().flatten() {
        out.append(prepositional(dice, place, false));
    }
    put_times(dice, &c.times, out);
}
