//! Realisation of German clauses: verb forms and word order.
//!
//! Word order is modelled by slots. Every part of a clause has a slot number, which gives its position after
//! the finite verb, and a weight, which is proportional to its probability of being moved before the finite
//! verb, as happens to one part of every verb-second clause. Subordinate clauses use the same slots, with the
//! finite verb at the end.

use super::inflect::{auxiliary, finite, preterite};
use super::phrase::{phrase, predicate, prepositional};
use crate::dice::Dice;
use crate::lexicon::Column;
use crate::lexicon::names::manner::TURN;
use crate::lexicon::names::{Auxiliary, Case, Kind, Person, Position, Pronoun};
use crate::links::{Line, mark};
use crate::tree::{Clause, Det, Head, Phrase, Post, Tense};

/// Position of the finite verb.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Verb-first, as in yes–no questions.
    First,
    /// Verb-second, as in statements.
    Second,
    /// Verb-final, as in subordinate clauses.
    Final,
    /// No finite verb, but an infinitive with "zu" at the end.
    Infinitive,
}

/// Realises a clause in the given order; `lead` precedes the verb of a verb-second clause.
pub(super) fn clause(dice: &mut Dice, c: &Clause, order: Order, lead: Option<Line>) -> Line {
    let verbs = verbs(dice, c, order);
    let (mut parts, late) = parts(dice, c);
    parts.sort_by_key(|part| part.slot);
    let mut out = Line::new();
    if order == Order::Second {
        if let Some(lead) = lead {
            out.append(lead);
        } else if !parts.is_empty() {
            let first = first_part(dice, &parts);
            out.append(parts.remove(first).words);
        }
    }
    let (before, after) = match order {
        Order::First | Order::Second => (verbs.finite, Line::new()),
        Order::Final | Order::Infinitive => (Line::new(), verbs.finite),
    };
    out.append(before);
    for part in parts {
        out.append(part.words);
    }
    out.append(verbs.end);
    out.append(after);
    out.append(late);
    out
}

/// Draws the index of the part that precedes the verb, among parts sorted by slot.
fn first_part(dice: &mut Dice, parts: &[Part]) -> usize {
    let asked = parts[0].slot == ASKED;
    let weights: Vec<usize> = parts.iter().map(|part| part.weight).collect();
    if asked || weights.iter().sum::<usize>() == 0 { 0 } else { dice.weighted(&weights) }
}

/// Verb forms of a clause.
struct Verbs {
    /// Finite verb.
    finite: Line,
    /// Participles, infinitives and particles at the end of the clause.
    end: Line,
}

impl Verbs {
    /// Returns the finite form of an auxiliary, and the main verb at the end of the clause.
    fn with_helper(c: &Clause, finite: &str, end: &str) -> Self {
        Verbs {
            finite: Line::of(finite, &[c.mark + mark::FINITE]),
            end: Line::of(&format!("{}{end}", c.verb.particle), &[c.mark + mark::VERB]),
        }
    }
}

/// Returns the forms of the verb and its auxiliaries.
fn verbs(dice: &mut Dice, c: &Clause, order: Order) -> Verbs {
    if order == Order::Infinitive {
        return Verbs { finite: Line::new(), end: infinitive(c) };
    }
    let verb = c.verb;
    let person = c.subject.person();
    let past = c.tense.is_past();
    if let Some(modal) = c.modal {
        let form = if past {
            preterite(modal.preterite, person)
        } else {
            modal.present[person as usize].to_string()
        };
        if !c.passive {
            return Verbs::with_helper(c, &form, verb.infinitive);
        }
        let mut verbs = Verbs::with_helper(c, &form, verb.participle);
        verbs.end.put("werden", &[c.mark + mark::PASSIVE]);
        return verbs;
    }
    if c.passive {
        return Verbs::with_helper(c, &auxiliary("werden", person, past), verb.participle);
    }
    if c.tense == Tense::Before || (past && !takes_preterite(c, person)) {
        let helper = if verb.auxiliary == Auxiliary::Sein { "sein" } else { "haben" };
        let form = auxiliary(helper, person, c.tense == Tense::Before);
        return Verbs::with_helper(c, &form, verb.participle);
    }
    if c.tense == Tense::Future && (c.times.is_empty() || dice.chance(35)) {
        return Verbs::with_helper(c, &auxiliary("werden", person, false), verb.infinitive);
    }
    let form = finite(verb, person, past);
    let marks = [c.mark + mark::VERB, c.mark + mark::FINITE];
    if order == Order::Final {
        return Verbs { finite: Line::of(&format!("{}{form}", verb.particle), &marks), end: Line::new() };
    }
    Verbs { finite: Line::of(&form, &marks), end: Line::of(verb.particle, &[c.mark + mark::VERB]) }
}

/// Returns the infinitive with "zu", which follows a separable particle.
fn infinitive(c: &Clause) -> Line {
    let (verb, to) = (c.mark + mark::VERB, c.mark + mark::TO);
    if !c.verb.particle.is_empty() {
        return Line::of(&format!("{}zu{}", c.verb.particle, c.verb.infinitive), &[verb, to]);
    }
    let mut out = Line::of("zu", &[to]);
    out.put(c.verb.infinitive, &[verb]);
    out
}

/// Returns whether the past of a clause is expressed by the preterite rather than the perfect.
fn takes_preterite(c: &Clause, person: Person) -> bool {
    // The preterite is rare in the second person ("du fandest").
    let second = matches!(person, Person::SecondSingular | Person::SecondPlural);
    let spoken = second && c.verb.kind != Kind::Link;
    (c.narrative && !spoken)
        || matches!(c.verb.infinitive, "sein" | "haben" | "wissen")
        || c.verb.kind == Kind::Exist
}

/// Slot of question words and relative pronouns, which come first in every order.
const ASKED: u32 = 0;

/// A part of a clause.
struct Part {
    /// Position after the finite verb: parts are sorted by slot.
    slot: u32,
    /// Relative probability of preceding the finite verb.
    weight: usize,
    words: Line,
}

/// Returns the parts of a clause except the verbs, and the relative clause of the object, which comes last.
fn parts(dice: &mut Dice, c: &Clause) -> (Vec<Part>, Line) {
    let mut parts = Vec::new();
    let mut late = Line::new();
    let mut add = |slot, weight, words| parts.push(Part { slot, weight, words });
    if !c.silent {
        let mut words = phrase(&c.subject, Case::Nom);
        words.append(relative(dice, &c.subject));
        let asked = matches!(c.subject.head, Head::Relative(..) | Head::Pronoun(Pronoun::Who));
        add(if asked { ASKED } else { 5 }, 60, words);
    }
    if let Some(case) = c.verb.reflexive {
        add(10, 0, Line::of(reflexive(case, c.subject.person()), &[c.mark + mark::VERB]));
    }
    if let Some(object) = &c.object {
        let (slot, weight) = object_order(dice, object, c.dative.is_some());
        add(slot, weight, phrase(object, Case::Acc));
        late = relative(dice, object);
    }
    if let Some(dative) = &c.dative {
        let weight = match dative.head {
            Head::Name(..) => 0,
            _ if c.verb.kind == Kind::Like => 30,
            _ => 3,
        };
        add(if dative.is_pronoun() { 14 } else { 35 }, weight, phrase(dative, Case::Dat));
    }
    add_adverbials(dice, c, &mut add);
    parts.retain(|part| !part.words.is_empty());
    (parts, late)
}

/// Returns slot and weight of an accusative object.
fn object_order(dice: &mut Dice, object: &Phrase, beside_dative: bool) -> (u32, usize) {
    let definite = !matches!(
        object.det,
        Det::Indef | Det::None | Det::Kein | Det::Some | Det::Number(_) | Det::Quantity(_)
    );
    let slot = match object.head {
        Head::Relative(..) | Head::Pronoun(Pronoun::What) => ASKED,
        Head::Pronoun(_) => 12,
        Head::Name(..) if !beside_dative => 18,
        _ if matches!(object.det, Det::Which) => ASKED,
        _ if definite && !beside_dative && dice.chance(45) => 18,
        _ if definite => 45,
        _ => 60,
    };
    if object.has_relative() {
        return (slot.max(60), 0);
    }
    // Only a masculine accusative is always distinct from the nominative.
    let clear = matches!(object.head, Head::Noun(noun, _) if object.column(noun) == Column::Masculine);
    (slot, if definite && clear { 8 } else { 0 })
}

/// Returns the reflexive pronoun.
fn reflexive(case: Case, person: Person) -> &'static str {
    match person {
        Person::FirstSingular if case == Case::Dat => "mir",
        Person::FirstSingular => "mich",
        Person::SecondSingular if case == Case::Dat => "dir",
        Person::SecondSingular => "dich",
        Person::FirstPlural => "uns",
        Person::SecondPlural => "euch",
        Person::ThirdSingular | Person::ThirdPlural => "sich",
    }
}

/// Adds all parts except subject and objects.
fn add_adverbials(dice: &mut Dice, c: &Clause, add: &mut impl FnMut(u32, usize, Line)) {
    if let Some((adverb, position)) = &c.adverb {
        let fixed = matches!(adverb.german.as_str(), "auch" | "nie" | "schon" | "immer");
        let (slot, weight) = if *position == Position::Front { (20, 45) } else { (30, 6) };
        add(slot, if fixed { 0 } else { weight }, Line::marked(&adverb.german, adverb.mark));
    }
    let mut words = Line::new();
    for time in &c.times {
        words.put_marked(&time.german, time.mark);
    }
    add(25, 40, words);
    let exists = c.verb.kind == Kind::Exist;
    if let Some(place) = &c.place {
        let slot = match place.phrase.head {
            Head::Relative(..) => ASKED,
            _ if c.verb.place_percent == 100 && !exists => 72,
            _ => 50,
        };
        add(slot, if exists { 70 } else { 14 }, prepositional(place));
    }
    if let Some(company) = &c.company {
        add(40, 3, prepositional(company));
    }
    if c.negated {
        add(65, 0, Line::of("nicht", &[c.mark + mark::NOT]));
    }
    if c.gladly {
        let word = if dice.chance(70) { "gern" } else { "gerne" };
        add(28, 0, Line::of(word, &[c.mark + mark::GLADLY]));
    }
    if let Some(manner) = &c.manner {
        let slot = if c.verb.manner == TURN { 78 } else { 68 };
        add(slot, 0, Line::marked(&manner.german, manner.mark));
    }
    if let Some(prep) = &c.prep {
        add(70, 4, prepositional(prep));
    }
    if let Some(direction) = &c.direction {
        add(74, 4, prepositional(direction));
    }
    add(80, 0, Line::of(c.verb.fixed, &[c.mark + mark::VERB]));
    if let Some(adjective) = &c.predicate {
        add(81, 0, predicate(adjective));
    }
}

/// Realises the relative clause of a noun phrase between commas; empty if it has none.
fn relative(dice: &mut Dice, phrase: &Phrase) -> Line {
    let Some(Post::Relative(inner)) = &phrase.post else { return Line::new() };
    let mut out = Line::of(",", &[]);
    out.append(clause(dice, inner, Order::Final, None));
    out.put(",", &[]);
    out
}
