//! Entries of the lexicon: one type per file, with its parser.
//!
//! Every parser reads all fields of a row and checks conditions on the row alone, such as that a noun without
//! singular has a plural. Conditions on several rows or files are checked in the parent module.

use super::names::{
    Agreement, Asks, Auxiliary, CalendarKind, Case, Class, Connective, Flag, Gender, Group, Join, Kind,
    Manners, ModalName, NameKind, Person, Position, Pronoun, Tenses, Traits, Usage, class, manner, tense,
    traits,
};
use super::table::{Row, is_word};

/// A German text and its English translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) german: &'static str,
    pub(crate) english: &'static str,
}

impl Words {
    /// Parses words without marks; the English side may have alternatives.
    pub(super) fn read(row: &mut Row<'_>) -> Self {
        Words { german: row.words("german"), english: row.alternatives("english") }
    }

    /// Parses an expression whose words have marks.
    pub(super) fn read_marked(row: &mut Row<'_>) -> Self {
        let (german, english) = row.expression("german", "english");
        Words { german, english }
    }
}

/// Column in tables of German endings: gender in the singular, or plural.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Masculine,
    Feminine,
    Neuter,
    Plural,
}

/// A noun.
#[derive(Debug)]
pub(crate) struct Noun {
    /// German singular; empty if there is none.
    pub(crate) german: &'static str,
    /// German plural; empty if there is none.
    pub(crate) plural: &'static str,
    /// Column of the endings of its determiners and adjectives in the singular.
    pub(crate) column: Column,
    /// Whether the noun has weak declension: every form except the nominative singular equals the plural.
    pub(crate) weak: bool,
    /// English singular, as alternatives.
    pub(crate) english: &'static str,
    /// Semantic classes of the noun.
    pub(crate) class: Class,
    /// German preposition for being at this place; empty if the noun is not a place.
    pub(crate) there: &'static str,
    /// English prepositions for being at this place, as alternatives.
    pub(crate) english_there: &'static str,
    /// Name of the list of first parts of its compounds; empty if there is none.
    pub(super) compounds: &'static str,
    /// First parts of the compounds that end in this noun.
    pub(crate) parts: Vec<Words>,
}

impl Noun {
    pub(super) fn read(row: &mut Row<'_>) -> Self {
        let gender: Gender = row.named("gender");
        let (german, plural) = (row.optional("singular"), row.optional("plural"));
        row.check(german.is_empty() == (gender == Gender::Plural), "only nouns of gender p have no singular");
        row.check(
            !plural.is_empty() || !matches!(gender, Gender::Plural | Gender::Weak),
            "nouns of gender p and w need a plural",
        );
        row.check(
            row.has_both_or_none("there", "english_there"),
            "there and english_there must be given together",
        );
        Noun {
            german,
            plural,
            column: match gender {
                Gender::Feminine => Column::Feminine,
                Gender::Neuter => Column::Neuter,
                Gender::Masculine | Gender::Weak | Gender::Plural => Column::Masculine,
            },
            weak: gender == Gender::Weak,
            english: row.alternatives("english"),
            class: row.some("classes", class::ALL),
            there: row.optional("there"),
            english_there: row.optional_alternatives("english_there"),
            compounds: row.optional("compounds"),
            parts: Vec::new(),
        }
    }
}

/// First part of compounds, with the name of its list and its line in the file.
#[derive(Debug)]
pub(super) struct Compound {
    pub(super) list: &'static str,
    pub(super) line: usize,
    pub(super) words: Words,
}

impl Compound {
    pub(super) fn read(row: &mut Row<'_>) -> Self {
        Compound { list: row.words("list"), line: row.line(), words: Words::read(row) }
    }
}

/// An adjective.
#[derive(Debug)]
pub(crate) struct Adjective {
    /// German base form.
    pub(crate) german: &'static str,
    /// English translations, as alternatives.
    pub(crate) english: &'static str,
    /// Positions in which the adjective can be used.
    pub(crate) usage: Usage,
    /// Whether it expresses a temporary property, with which a time can be given.
    pub(crate) passing: bool,
    /// German comparative; empty if there is none.
    pub(crate) comparative: &'static str,
    /// English comparatives, as alternatives; empty if there are none.
    pub(crate) english_comparative: &'static str,
    /// Classes of the nouns that it can describe.
    pub(crate) class: Class,
}

impl Adjective {
    pub(super) fn read(row: &mut Row<'_>) -> Self {
        let usage = row.named("usage");
        row.check(
            row.has_both_or_none("comparative", "english_comparative"),
            "comparative and english_comparative must be given together",
        );
        let compared = row.has("comparative");
        row.check(!compared || usage == Usage::Plain, "only plain adjectives have a comparative");
        Adjective {
            german: row.words("german"),
            english: row.alternatives("english"),
            usage,
            passing: row.named::<Flag>("passing") == Flag::Yes,
            comparative: row.optional("comparative"),
            english_comparative: row.optional_alternatives("english_comparative"),
            class: row.some("classes", class::ALL),
        }
    }
}

/// Parses a first name or a family name.
pub(super) fn read_name(row: &mut Row<'_>) -> (NameKind, &'static str) {
    (row.named("kind"), row.words("name"))
}

/// Parses a weekday or a month.
pub(super) fn read_date(row: &mut Row<'_>) -> (CalendarKind, Words) {
    (row.named("kind"), Words::read(row))
}

/// Parses a number word. The values must be those from which all numbers below a hundred are built, in order.
pub(super) fn read_number(row: &mut Row<'_>) -> Words {
    let value = row.number("value");
    // The header is on the first line.
    let at = row.line() - 2;
    let wanted = if at < 20 { at } else { 10 * (at - 18) };
    row.check(
        value == wanted && value < 100,
        &format!("value: found {value}, expected {wanted}, at most 90"),
    );
    Words::read(row)
}

/// An adverbial of time.
#[derive(Debug)]
pub(crate) struct Time {
    /// Tenses that it is compatible with.
    pub(crate) tenses: Tenses,
    pub(crate) words: Words,
}

impl Time {
    pub(super) fn read(row: &mut Row<'_>) -> Self {
        Time { tenses: row.some("tenses", tense::ALL), words: Words::read_marked(row) }
    }
}

/// A unit of time, for use after a preposition with the dative.
#[derive(Debug)]
pub(crate) struct Span {
    /// German dative singular with the indefinite article, such as "einer woche".
    pub(crate) german: &'static str,
    /// German dative plural.
    pub(crate) german_plural: &'static str,
    /// English singular.
    pub(crate) english: &'static str,
}

impl Span {
    pub(super) fn read(row: &mut Row<'_>) -> Self {
        Span {
            german: row.words("german"),
            german_plural: row.words("german_plural"),
            english: row.words("english"),
        }
    }
}

/// An adverb of frequency or attitude.
#[derive(Debug)]
pub(crate) struct Adverb {
    /// Tenses that it is compatible with.
    pub(crate) tenses: Tenses,
    pub(crate) words: Words,
    /// Position in an English clause.
    pub(crate) position: Position,
}

impl Adverb {
    pub(super) fn read(row: &mut Row<'_>) -> Self {
        Adverb {
            tenses: row.some("tenses", tense::ALL),
            words: Words::read_marked(row),
            position: row.named("position"),
        }
    }
}

/// An adverbial of manner.
#[derive(Debug)]
pub(crate) struct Manner {
    /// Kinds of manner that it expresses.
    pub(crate) manners: Manners,
    pub(crate) words: Words,
}

impl Manner {
    pub(super) fn read(row: &mut Row<'_>) -> Self {
        Manner { manners: row.some("manners", manner::ALL), words: Words::read_marked(row) }
    }
}

/// A German preposition with the case that it governs, and its translation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preposition {
    pub(crate) german: &'static str,
    pub(crate) case: Case,
    /// English translations, as alternatives; empty if the English verb takes a direct object instead.
    pub(crate) english: &'static str,
}

impl Preposition {
    pub(super) fn read(row: &mut Row<'_>) -> Self {
        Preposition {
            german: row.words("german"),
            case: row.named("case"),
            english: row.alternatives("english"),
        }
    }

    /// Parses the preposition of a verb from the columns of the verb file.
    fn of_verb(row: &mut Row<'_>) -> Self {
        Preposition {
            german: row.words("preposition"),
            case: row.named("case"),
            english: row.optional_alternatives("english_preposition"),
        }
    }
}

/// A verb with its frame: its complements and the adverbials that it is compatible with.
#[derive(Debug)]
pub(crate) struct Verb {
    /// Syntactic type of the verb.
    pub(crate) kind: Kind,
    /// German separable particle; empty if there is none.
    pub(crate) particle: &'static str,
    /// German infinitive, without the particle.
    pub(crate) infinitive: &'static str,
    /// German third person singular of the present, without the particle.
    pub(crate) present: &'static str,
    /// German third person singular of the preterite, without the particle.
    pub(crate) preterite: &'static str,
    /// Auxiliary of the German perfect.
    pub(crate) auxiliary: Auxiliary,
    /// German past participle, without the particle.
    pub(crate) participle: &'static str,
    /// English alternatives in the notation of the verb file.
    pub(crate) english: &'static str,
    /// Classes of the subject.
    pub(crate) subject: Class,
    /// Classes of the accusative object; empty if the verb has none.
    pub(crate) object: Class,
    /// Classes of the dative object; empty if the verb has none.
    pub(crate) dative: Class,
    /// Preposition and classes of the prepositional object; `None` if the verb has none.
    pub(crate) preposition: Option<(Preposition, Class)>,
    /// Classes of the places where the action can happen.
    pub(crate) place: Class,
    /// Probability of a place, in per cent.
    pub(crate) place_percent: usize,
    /// Probability of a direction, in per cent.
    pub(crate) direction_percent: usize,
    /// Kinds of manner that the verb is compatible with.
    pub(crate) manner: Manners,
    /// Fixed German words before the verb; empty if there are none.
    pub(crate) fixed: &'static str,
    /// Case of the German reflexive pronoun; `None` if the verb is not reflexive.
    pub(crate) reflexive: Option<Case>,
    /// Further properties of the verb.
    pub(crate) traits: Traits,
}

/// German separable particles.
const PARTICLES: &[&str] =
    &["ab", "an", "auf", "aus", "ein", "mit", "statt", "um", "vor", "vorbei", "zu", "zurück"];

impl Verb {
    pub(super) fn read(row: &mut Row<'_>) -> (Group, Self) {
        let group = row.named("group");
        let governs = row.has("preposition");
        let verb = Verb {
            kind: row.named("kind"),
            particle: row.optional("particle"),
            infinitive: row.words("infinitive"),
            present: row.words("present"),
            preterite: row.words("preterite"),
            auxiliary: row.named("auxiliary"),
            participle: row.words("participle"),
            english: row.raw("english"),
            subject: row.set("subject", class::ALL),
            object: row.set("object", class::ALL),
            dative: row.set("dative", class::ALL),
            preposition: governs
                .then(|| (Preposition::of_verb(row), row.some("prepositional_object", class::ALL))),
            place: row.set("place", class::ALL),
            place_percent: row.percent("place_percent"),
            direction_percent: row.percent("direction_percent"),
            manner: row.set("manner", manner::ALL),
            fixed: row.optional("fixed"),
            reflexive: row.optional_named("reflexive"),
            traits: row.set("traits", traits::ALL),
        };
        verb.check(row, group);
        (group, verb)
    }

    /// Reports fields of a row that contradict each other.
    fn check(&self, row: &mut Row<'_>, group: Group) {
        let whole = ["case", "prepositional_object"].iter().all(|c| row.has(c) == self.preposition.is_some());
        row.check(whole, "preposition, case and prepositional_object must be given together");
        row.check(
            row.has_both_or_none("place", "place_percent"),
            "place and place_percent must be given together",
        );
        let known = self.particle.is_empty() || PARTICLES.contains(&self.particle);
        row.check(known, "particle: not a known separable particle");
        row.check(self.infinitive.ends_with('n'), "infinitive: must end in n");
        row.check(self.participle.ends_with(['n', 't']), "participle: must end in n or t");
        let inflected = [self.infinitive, self.present, self.preterite, self.participle];
        row.check(inflected.iter().all(|form| is_word(form)), "German forms must be single words");
        row.check(!matches!(self.reflexive, Some(Case::Nom | Case::Gen)), "reflexive: must be acc or dat");
        row.check(self.kind != Kind::Like || self.dative != 0, "dative: required by verbs of kind like");
        let kinds: &[Kind] = match group {
            Group::Action => &[Kind::Plain, Kind::Like, Kind::Link],
            Group::Speech => &[Kind::Say, Kind::Try],
            Group::Be => &[Kind::Link],
            Group::Exist => &[Kind::Exist],
            Group::Weather => &[Kind::Rain],
            Group::Shine => &[Kind::Plain],
        };
        row.check(kinds.contains(&self.kind), "kind: not allowed in this group");
        let impersonal = matches!(group, Group::Be | Group::Exist | Group::Weather);
        row.check(
            (self.subject == 0) == impersonal,
            "subject: missing, or given although the grammar sets it",
        );
        for alternative in self.english.split('/') {
            if let Err(what) = check_english(alternative) {
                row.fault(format!("english: {alternative:?}: {what}"));
            }
        }
    }

    /// Returns whether the verb has all of these traits.
    pub(crate) fn is(&self, traits: Traits) -> bool {
        self.traits & traits == traits
    }

    /// Returns the first English alternative.
    pub(crate) fn first_english(&self) -> &'static str {
        self.english.split('/').next().unwrap_or("")
    }

    /// Returns whether the first English alternative has further words from which it cannot be separated.
    pub(crate) fn is_wordy(&self) -> bool {
        let first = self.first_english();
        first.contains(' ') && !first.contains('+')
    }
}

/// Fails with a message if an English alternative of a verb is not in the notation of the verb file.
fn check_english(alternative: &str) -> Result<(), &'static str> {
    let mut words = alternative.split(' ');
    let forms: Vec<&str> = words.next().unwrap_or("").split(',').collect();
    if !matches!(forms.len(), 1 | 3) {
        return Err("expected the base form, or base form, past and participle");
    }
    if !forms.iter().all(|form| is_word(form)) {
        return Err("forms must be lower-case words");
    }
    if words.any(|word| word != "=" && word != ">" && !is_word(word.strip_prefix('+').unwrap_or(word))) {
        return Err("further words must be lower-case, optionally after +, or one of = and >");
    }
    Ok(())
}

/// A modal verb.
#[derive(Debug)]
pub(crate) struct Modal {
    pub(crate) name: ModalName,
    /// German present forms, by person.
    pub(crate) present: [&'static str; 6],
    /// German third person singular of the preterite.
    pub(crate) preterite: &'static str,
    /// English alternatives for the present.
    pub(crate) english: &'static str,
    /// English alternatives for the past.
    pub(crate) english_past: &'static str,
    /// English alternatives for the negated present.
    pub(crate) english_negated: &'static str,
}

impl Modal {
    pub(super) fn read(row: &mut Row<'_>) -> Self {
        Modal {
            name: row.named("name"),
            present: [
                row.words("first_singular"),
                row.words("second_singular"),
                row.words("third_singular"),
                row.words("first_plural"),
                row.words("second_plural"),
                row.words("third_plural"),
            ],
            preterite: row.words("preterite"),
            english: row.alternatives("english"),
            english_past: row.alternatives("english_past"),
            english_negated: row.alternatives("english_negated"),
        }
    }
}

/// Forms of a pronoun.
#[derive(Debug)]
pub(crate) struct PronounForms {
    pub(crate) name: Pronoun,
    /// German nominative, accusative and dative.
    pub(crate) german: [&'static str; 3],
    /// Stem of the German possessive.
    pub(crate) possessive: &'static str,
    /// German person and number of the verb.
    pub(crate) person: Person,
    pub(crate) english_subject: &'static str,
    pub(crate) english_object: &'static str,
    pub(crate) english_possessive: &'static str,
    /// English agreement with the verb.
    pub(crate) agreement: Agreement,
}

impl PronounForms {
    pub(super) fn read(row: &mut Row<'_>) -> Self {
        PronounForms {
            name: row.named("name"),
            german: [row.words("nominative"), row.words("accusative"), row.words("dative")],
            possessive: row.words("possessive"),
            person: row.named("person"),
            english_subject: row.words("english_subject"),
            english_object: row.words("english_object"),
            english_possessive: row.words("english_possessive"),
            agreement: row.named("agreement"),
        }
    }
}

/// A conjunction.
#[derive(Debug)]
pub(crate) struct Conjunction {
    pub(crate) name: Connective,
    /// German alternatives.
    pub(crate) german: &'static str,
    /// English alternatives.
    pub(crate) english: &'static str,
    /// Construction of the clause after the conjunction.
    pub(crate) join: Join,
}

impl Conjunction {
    pub(super) fn read(row: &mut Row<'_>) -> Self {
        Conjunction {
            name: row.named("name"),
            german: row.alternatives("german"),
            english: row.alternatives("english"),
            join: row.named("join"),
        }
    }
}

/// A question word or expression.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) words: Words,
    /// Part of the clause that it asks for.
    pub(crate) asks: Asks,
}

impl Question {
    pub(super) fn read(row: &mut Row<'_>) -> Self {
        Question { words: Words::read_marked(row), asks: row.named("asks") }
    }
}

/// Opening of an indirect question, such as "ich weiß nicht".
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) words: Words,
    /// Punctuation at the end of the sentence.
    pub(crate) stop: &'static str,
}

impl Opening {
    pub(super) fn read(row: &mut Row<'_>) -> Self {
        let stop = row.raw("stop");
        row.check(matches!(stop, "." | "?"), "stop: must be . or ?");
        Opening { words: Words::read_marked(row), stop }
    }
}
