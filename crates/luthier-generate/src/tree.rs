//! Language-independent tree of a sentence.
//!
//! A [`Sentence`] has a main [`Clause`] and optionally a second one joined to it; a clause has a verb, noun
//! phrases, prepositional phrases and adverbials. The parts of a clause are unordered, because word order
//! differs in German and English. Every node that is realised has a block of marks (see [`crate::links`]), by
//! which the words of both languages are linked.

use crate::lexicon::names::{Agreement, Case, Class, Person, Position, Pronoun, class, tense};
use crate::lexicon::{Adjective, Column, Conjunction, Modal, Noun, Preposition, Verb, Words, lexicon};

/// The determiner of a noun phrase.
#[derive(Clone, Copy)]
pub(crate) enum Det {
    /// No determiner.
    None,
    /// Definite article.
    Def,
    /// Definite article in German, no determiner in English.
    Bare,
    /// Indefinite article.
    Indef,
    /// Negative determiner: "kein", "no".
    Kein,
    /// Determiner "any", or the indefinite article, in English only: for "kein" if the verb is negated
    /// instead.
    Any,
    /// Possessive of a pronoun.
    Poss(Pronoun),
    /// Demonstrative: "dieser", "this".
    This,
    /// Distributive: "jeder", "every".
    Each,
    /// Universal: "alle", "all".
    All,
    /// Interrogative: "welcher", "which".
    Which,
    /// Determiner of mass nouns: "etwas", "some".
    Some,
    /// Number of at least two.
    Number(usize),
    /// Quantity, such as "many": German stem, and English.
    Quantity(Words),
    /// Name in the genitive.
    Name(&'static str),
}

/// Head of a noun phrase.
#[derive(Clone)]
pub(crate) enum Head {
    /// Noun, and the first part of a compound if it is one.
    Noun(&'static Noun, Option<Words>),
    /// Name in German and English, in the notation of the lexicon, and the pronoun that refers to it.
    Name(String, String, Pronoun),
    /// Personal or interrogative pronoun.
    Pronoun(Pronoun),
    /// Relative pronoun: column of its German form, and whether it refers to people.
    Relative(Column, bool),
}

/// Modifier after the head of a noun phrase.
#[derive(Clone)]
pub(crate) enum Post {
    /// Owner, in the genitive.
    Genitive(Box<Phrase>),
    /// Place, as a prepositional phrase.
    Place(Box<Prepositional>),
    /// Substance after a measure, as in "a glass of water".
    Of(Box<Phrase>),
    /// Relative clause.
    Relative(Box<Clause>),
}

/// A noun phrase.
#[derive(Clone)]
pub(crate) struct Phrase {
    /// First mark of the phrase's block.
    pub(crate) mark: u32,
    pub(crate) head: Head,
    /// Determiner.
    pub(crate) det: Det,
    /// Whether the head is in the plural.
    pub(crate) plural: bool,
    pub(crate) adjectives: Vec<&'static Adjective>,
    /// Modifier after the head.
    pub(crate) post: Option<Post>,
    /// Second phrase, coordinated by "und".
    pub(crate) and: Option<Box<Phrase>>,
}

impl Phrase {
    /// Returns a phrase that consists of its head only.
    pub(crate) fn new(mark: u32, head: Head) -> Self {
        Phrase { mark, head, det: Det::None, plural: false, adjectives: Vec::new(), post: None, and: None }
    }

    /// Returns the semantic classes of the phrase; empty for things referred to by pronouns, and for relative
    /// pronouns.
    pub(crate) fn class(&self) -> Class {
        match self.head {
            Head::Noun(noun, _) => noun.class,
            Head::Pronoun(Pronoun::It | Pronoun::ItMasculine | Pronoun::ItFeminine)
            | Head::Name(_, _, Pronoun::It)
            | Head::Relative(..) => 0,
            Head::Name(..) | Head::Pronoun(_) => class::PERSON,
        }
    }

    /// Returns the pronoun that refers to the phrase; `None` if none is natural.
    pub(crate) fn stand_in(&self) -> Option<Pronoun> {
        match self.head {
            _ if self.and.is_some() => Some(Pronoun::They),
            Head::Pronoun(Pronoun::Who | Pronoun::What) | Head::Relative(..) => None,
            Head::Pronoun(pronoun) | Head::Name(_, _, pronoun) => Some(pronoun),
            Head::Noun(..) if self.plural => Some(Pronoun::They),
            Head::Noun(..) if matches!(self.det, Det::Each | Det::Kein) => None,
            Head::Noun(noun, _) => match (noun.class & class::PERSON != 0, noun.column) {
                (true, Column::Masculine) => Some(Pronoun::He),
                (true, Column::Feminine) => Some(Pronoun::She),
                (true, _) => None,
                (false, Column::Masculine) => Some(Pronoun::ItMasculine),
                (false, Column::Feminine) => Some(Pronoun::ItFeminine),
                (false, _) => Some(Pronoun::It),
            },
        }
    }

    /// Returns the German person and number.
    pub(crate) fn person(&self) -> Person {
        match self.head {
            _ if self.plural || self.and.is_some() => Person::ThirdPlural,
            Head::Pronoun(pronoun) => lexicon().pronoun(pronoun).person,
            _ => Person::ThirdSingular,
        }
    }

    /// Returns the agreement of an English verb with the phrase as its subject.
    pub(crate) fn agreement(&self) -> Agreement {
        match self.head {
            _ if self.plural || self.and.is_some() => Agreement::Many,
            Head::Pronoun(pronoun) => lexicon().pronoun(pronoun).agreement,
            _ => Agreement::One,
        }
    }

    /// Returns the column of the German endings of the phrase if its head is `noun`.
    pub(crate) fn column(&self, noun: &Noun) -> Column {
        if self.plural { Column::Plural } else { noun.column }
    }

    /// Returns whether the phrase is a pronoun.
    pub(crate) fn is_pronoun(&self) -> bool {
        matches!(self.head, Head::Pronoun(_))
    }

    /// Returns whether the phrase has a relative clause.
    pub(crate) fn has_relative(&self) -> bool {
        matches!(self.post, Some(Post::Relative(_)))
    }
}

/// A prepositional phrase.
#[derive(Clone)]
pub(crate) struct Prepositional {
    pub(crate) preposition: Preposition,
    pub(crate) phrase: Phrase,
}

impl Prepositional {
    /// Returns a prepositional phrase whose German preposition governs the dative.
    pub(crate) fn dative(german: &'static str, english: &'static str, phrase: Phrase) -> Self {
        Prepositional { preposition: Preposition { german, case: Case::Dat, english }, phrase }
    }
}

/// A fixed expression in the notation of the lexicon; the English side may have alternatives.
#[derive(Clone)]
pub(crate) struct Expression {
    /// First mark of the expression's block.
    pub(crate) mark: u32,
    pub(crate) german: String,
    pub(crate) english: String,
}

/// A predicative adjective, optionally as a comparative.
#[derive(Clone)]
pub(crate) struct Predicate {
    /// First mark of the predicate's block.
    pub(crate) mark: u32,
    /// Degree adverb, such as "sehr".
    pub(crate) degree: Option<Words>,
    pub(crate) adjective: &'static Adjective,
    /// Object of comparison of a comparative.
    pub(crate) than: Option<Phrase>,
}

/// Time of a clause, independent of the tenses of either language.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tense {
    /// At present: an action in progress.
    Present,
    /// Habitually, repeatedly, or always.
    Habit,
    /// In the past.
    Past,
    /// In the past, before another past event.
    Before,
    /// In the future.
    Future,
    /// From a time in the past until now.
    Since,
}

impl Tense {
    /// Returns the bit of this tense in the sets of tenses of adverbials.
    pub(crate) fn bit(self) -> u64 {
        match self {
            Tense::Present => tense::PRESENT,
            Tense::Habit => tense::HABIT,
            Tense::Past | Tense::Before => tense::PAST,
            Tense::Future => tense::FUTURE,
            Tense::Since => 0,
        }
    }

    /// Returns whether a German finite verb of this tense is in the past.
    pub(crate) fn is_past(self) -> bool {
        matches!(self, Tense::Past | Tense::Before)
    }

    /// Returns this tense for a state: [`Tense::Habit`] in place of [`Tense::Present`].
    pub(crate) fn lasting(self) -> Self {
        if self == Tense::Present { Tense::Habit } else { self }
    }
}

/// A clause, with its parts unordered.
#[derive(Clone)]
#[allow(clippy::struct_excessive_bools, reason = "they are independent features of a clause")]
pub(crate) struct Clause {
    /// First mark of the clause's block.
    pub(crate) mark: u32,
    pub(crate) verb: &'static Verb,
    pub(crate) subject: Phrase,
    /// Whether the subject is not realised, because it is that of another clause.
    pub(crate) silent: bool,
    /// Accusative object.
    pub(crate) object: Option<Phrase>,
    /// Dative object.
    pub(crate) dative: Option<Phrase>,
    /// Prepositional object, or agent of a passive.
    pub(crate) prep: Option<Prepositional>,
    /// Destination of a verb of motion.
    pub(crate) direction: Option<Prepositional>,
    /// Place of the action.
    pub(crate) place: Option<Prepositional>,
    /// Company ("with a friend") or means of transport ("by train").
    pub(crate) company: Option<Prepositional>,
    /// Predicative adjective.
    pub(crate) predicate: Option<Predicate>,
    /// Adverbials of time.
    pub(crate) times: Vec<Expression>,
    /// Adverb of frequency or attitude, with its English position.
    pub(crate) adverb: Option<(Expression, Position)>,
    /// Adverbial of manner.
    pub(crate) manner: Option<Expression>,
    pub(crate) tense: Tense,
    /// Whether the German past is expressed by the preterite.
    pub(crate) narrative: bool,
    pub(crate) modal: Option<&'static Modal>,
    /// Whether the clause has "gern" ("like to").
    pub(crate) gladly: bool,
    /// Whether the clause is negated by "nicht".
    pub(crate) negated: bool,
    /// Whether the clause is passive.
    pub(crate) passive: bool,
    /// Whether another clause fixes the time, so that English has no present perfect.
    pub(crate) settled: bool,
}

/// A clause with the conjunction that joins it to the main clause.
pub(crate) struct Joined {
    /// First mark of the conjunction's block.
    pub(crate) mark: u32,
    pub(crate) conjunction: &'static Conjunction,
    pub(crate) clause: Clause,
    /// Whether it precedes the main clause in German.
    pub(crate) front: bool,
}

/// Type of a sentence.
pub(crate) enum Mood {
    /// Statement.
    Statement,
    /// Yes–no question.
    YesNo,
    /// Question with this question word.
    Question(Expression),
    /// Question for the subject or object, whose question word ("who", "what", "which") is in the clause.
    Which,
    /// Polite request.
    Command,
    /// Indirect question: opening, question word, and punctuation at the end.
    Indirect(Expression, Expression, &'static str),
}

/// A sentence.
pub(crate) struct Sentence {
    /// First mark of the sentence's block.
    pub(crate) mark: u32,
    pub(crate) mood: Mood,
    /// Main clause.
    pub(crate) main: Clause,
    /// Clause that is joined to the main clause.
    pub(crate) joined: Option<Joined>,
}

impl Sentence {
    /// Returns the punctuation at the end.
    pub(crate) fn stop(&self) -> &'static str {
        match self.mood {
            Mood::Statement | Mood::Command => ".",
            Mood::YesNo | Mood::Question(_) | Mood::Which => "?",
            Mood::Indirect(_, _, stop) => stop,
        }
    }
}
