//! The tree of a sentence: what is said, before either language decides how.
//!
//! A [`Sentence`] has a main [`Clause`] and perhaps a second one joined to it; a clause has noun phrases,
//! prepositional phrases and adverbials around its verb. Nothing here is in any order, since German and
//! English order it differently. Every node that is said has a block of marks (see [`crate::links`]), by
//! which the words of both languages are linked.

use crate::lexicon::names::{Agreement, Case, Class, Person, Position, Pronoun, class, tense};
use crate::lexicon::{Adjective, Column, Conjunction, Modal, Noun, Preposition, Verb, Words, lexicon};

/// The determiner of a noun phrase.
#[derive(Clone, Copy)]
pub(crate) enum Det {
    /// No determiner.
    None,
    /// "der" and "the".
    Def,
    /// Definite in German, nothing in English.
    Bare,
    /// "ein" and "a".
    Indef,
    /// "kein" and "no".
    Kein,
    /// English only: what remains of "kein" if the verb is negated.
    Any,
    /// The possessive of a pronoun.
    Poss(Pronoun),
    /// "dieser" and "this".
    This,
    /// "jeder" and "every".
    Each,
    /// "alle" and "all".
    All,
    /// "welcher" and "which".
    Which,
    /// "etwas" and "some".
    Some,
    /// A number from two upwards.
    Number(usize),
    /// A German stem such as "viel", and English.
    Quantity(Words),
    /// A name in the genitive.
    Name(&'static str),
}

/// The head of a noun phrase.
#[derive(Clone)]
pub(crate) enum Head {
    /// A noun with perhaps the first part of a compound.
    Noun(&'static Noun, Option<Words>),
    /// A name in both languages in the notation of the lexicon, and the pronoun that stands for it.
    Name(String, String, Pronoun),
    /// A pronoun.
    Pronoun(Pronoun),
    /// A relative pronoun: its endings and whether it stands for people.
    Relative(Column, bool),
}

/// What follows the head of a noun phrase.
#[derive(Clone)]
pub(crate) enum Post {
    /// The owner.
    Genitive(Box<Phrase>),
    /// Where it is.
    Place(Box<Prepositional>),
    /// What a glass or a piece is of.
    Of(Box<Phrase>),
    /// A relative clause.
    Relative(Box<Clause>),
}

/// A noun phrase.
#[derive(Clone)]
pub(crate) struct Phrase {
    pub(crate) mark: u32,
    pub(crate) head: Head,
    pub(crate) det: Det,
    pub(crate) plural: bool,
    pub(crate) adjectives: Vec<&'static Adjective>,
    pub(crate) post: Option<Post>,
    /// A second phrase after "und".
    pub(crate) and: Option<Box<Phrase>>,
}

impl Phrase {
    /// A phrase that is nothing but its head.
    pub(crate) fn new(mark: u32, head: Head) -> Self {
        Phrase { mark, head, det: Det::None, plural: false, adjectives: Vec::new(), post: None, and: None }
    }

    /// The classes of what the phrase stands for.
    pub(crate) fn class(&self) -> Class {
        match self.head {
            Head::Noun(noun, _) => noun.class,
            Head::Pronoun(Pronoun::It | Pronoun::ItMasculine | Pronoun::ItFeminine)
            | Head::Name(_, _, Pronoun::It)
            | Head::Relative(..) => 0,
            Head::Name(..) | Head::Pronoun(_) => class::PERSON,
        }
    }

    /// The pronoun that can take up the phrase, if one is natural.
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

    /// The German person and number.
    pub(crate) fn person(&self) -> Person {
        match self.head {
            _ if self.plural || self.and.is_some() => Person::ThirdPlural,
            Head::Pronoun(pronoun) => lexicon().pronoun(pronoun).person,
            _ => Person::ThirdSingular,
        }
    }

    /// The agreement of an English verb with the phrase as its subject.
    pub(crate) fn agreement(&self) -> Agreement {
        match self.head {
            _ if self.plural || self.and.is_some() => Agreement::Many,
            Head::Pronoun(pronoun) => lexicon().pronoun(pronoun).agreement,
            _ => Agreement::One,
        }
    }

    /// The German endings the phrase takes with this noun as its head.
    pub(crate) fn column(&self, noun: &Noun) -> Column {
        if self.plural { Column::Plural } else { noun.column }
    }

    /// Whether the phrase is a pronoun.
    pub(crate) fn is_pronoun(&self) -> bool {
        matches!(self.head, Head::Pronoun(_))
    }

    /// Whether the phrase has a relative clause.
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
    /// A phrase after a preposition with the dative.
    pub(crate) fn dative(german: &'static str, english: &'static str, phrase: Phrase) -> Self {
        Prepositional { preposition: Preposition { german, case: Case::Dat, english }, phrase }
    }
}

/// A fixed expression in the notation of the lexicon; the English one has alternatives.
#[derive(Clone)]
pub(crate) struct Expression {
    pub(crate) mark: u32,
    pub(crate) german: String,
    pub(crate) english: String,
}

/// An adjective after a verb, perhaps compared.
#[derive(Clone)]
pub(crate) struct Predicate {
    pub(crate) mark: u32,
    pub(crate) degree: Option<Words>,
    pub(crate) adjective: &'static Adjective,
    /// What it is compared with.
    pub(crate) than: Option<Phrase>,
}

/// When something happens.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tense {
    /// Now.
    Present,
    /// Again and again, or always.
    Habit,
    /// In the past.
    Past,
    /// Before something else in the past.
    Before,
    /// In the future.
    Future,
    /// From some time until now.
    Since,
}

impl Tense {
    /// The bit by which adverbials say that they go with this tense.
    pub(crate) fn bit(self) -> u64 {
        match self {
            Tense::Present => tense::PRESENT,
            Tense::Habit => tense::HABIT,
            Tense::Past | Tense::Before => tense::PAST,
            Tense::Future => tense::FUTURE,
            Tense::Since => 0,
        }
    }

    /// Whether a German finite verb of this tense is in the past.
    pub(crate) fn is_past(self) -> bool {
        matches!(self, Tense::Past | Tense::Before)
    }

    /// The tense for what cannot be going on just now: what is true in general.
    pub(crate) fn lasting(self) -> Self {
        if self == Tense::Present { Tense::Habit } else { self }
    }
}

/// A clause before its words are put in order.
#[derive(Clone)]
#[allow(clippy::struct_excessive_bools, reason = "they are independent features of a clause")]
pub(crate) struct Clause {
    pub(crate) mark: u32,
    pub(crate) verb: &'static Verb,
    pub(crate) subject: Phrase,
    /// The subject is understood.
    pub(crate) silent: bool,
    pub(crate) object: Option<Phrase>,
    pub(crate) dative: Option<Phrase>,
    /// The prepositional object, or the agent of a passive.
    pub(crate) prep: Option<Prepositional>,
    pub(crate) direction: Option<Prepositional>,
    pub(crate) place: Option<Prepositional>,
    /// Who or what somebody goes with.
    pub(crate) company: Option<Prepositional>,
    pub(crate) predicate: Option<Predicate>,
    pub(crate) times: Vec<Expression>,
    pub(crate) adverb: Option<(Expression, Position)>,
    pub(crate) manner: Option<Expression>,
    pub(crate) tense: Tense,
    /// The German past is the preterite.
    pub(crate) narrative: bool,
    pub(crate) modal: Option<&'static Modal>,
    /// With "gern".
    pub(crate) gladly: bool,
    pub(crate) negated: bool,
    pub(crate) passive: bool,
    /// Another clause settles the time, so English has no present perfect.
    pub(crate) settled: bool,
}

/// A clause with the conjunction that joins it.
pub(crate) struct Joined {
    pub(crate) mark: u32,
    pub(crate) conjunction: &'static Conjunction,
    pub(crate) clause: Clause,
    /// German says it before the main clause.
    pub(crate) front: bool,
}

/// What kind of sentence is said.
pub(crate) enum Mood {
    /// A statement.
    Statement,
    /// A question without a question word.
    YesNo,
    /// A question with a question word.
    Question(Expression),
    /// A question about the subject or a "which" phrase, which is already in the clause.
    Which,
    /// A polite request.
    Command,
    /// An indirect question: its opening, its question word, and the punctuation at the end.
    Indirect(Expression, Expression, &'static str),
}

/// A whole sentence.
pub(crate) struct Sentence {
    pub(crate) mark: u32,
    pub(crate) mood: Mood,
    pub(crate) main: Clause,
    pub(crate) joined: Option<Joined>,
}

impl Sentence {
    /// The punctuation at the end.
    pub(crate) fn stop(&self) -> &'static str {
        match self.mood {
            Mood::Statement | Mood::Command => ".",
            Mood::YesNo | Mood::Question(_) | Mood::Which => "?",
            Mood::Indirect(_, _, stop) => stop,
        }
    }
}
