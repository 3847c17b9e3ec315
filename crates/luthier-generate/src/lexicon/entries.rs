//! The entries of the lexicon: one type per file, and how a row becomes an entry.
//!
//! Every reader takes all fields of its row and checks what can be told from the row alone, such as that a
//! noun without singular has a plural. What concerns several rows or files is checked in the parent module.

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
    /// Reads plain words; the English side may have alternatives.
    pub(super) fn read(row: &mut Row<'_>) -> Self {
        Words { german: row.words("german"), english: row.alternatives("english") }
    }

    /// Reads an expression whose words carry marks.
    pub(super) fn read_marked(row: &mut Row<'_>) -> Self {
        let (german, english) = row.expression("german", "english");
        Words { german, english }
    }
}

/// A column in tables of German endings.
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
    /// The German singular, empty if there is none.
    pub(crate) german: &'static str,
    /// The German plural, empty if there is none.
    pub(crate) plural: &'static str,
    /// The endings of its determiners and adjectives in the singular.
    pub(crate) column: Column,
    /// Whether every form but the nominative singular is that of the plural.
    pub(crate) weak: bool,
    /// English singulars, as alternatives.
    pub(crate) english: &'static str,
    pub(crate) class: Class,
    /// The German preposition that says "there", empty if there is none.
    pub(crate) there: &'static str,
    /// The English prepositions that say "there", as alternatives.
    pub(crate) english_there: &'static str,
    /// The name of the list of its compound parts, empty if there is none.
    pub(super) compounds: &'static str,
    /// The first parts of the compounds that end in this noun.
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
        row.check(row.has_both_or_none("there", "english_there"), "there and english_there go together");
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

/// The first part of compounds, with the name of the list it belongs to.
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
    pub(crate) german: &'static str,
    /// English, as alternatives.
    pub(crate) english: &'static str,
    pub(crate) usage: Usage,
    /// Whether it is said of what passes, so that a time can be given.
    pub(crate) passing: bool,
    /// The German comparative, empty if there is none.
    pub(crate) comparative: &'static str,
    /// The English comparatives as alternatives, empty if there are none.
    pub(crate) english_comparative: &'static str,
    /// What it can be said of.
    pub(crate) class: Class,
}

impl Adjective {
    pub(super) fn read(row: &mut Row<'_>) -> Self {
        let usage = row.named("usage");
        row.check(
            row.has_both_or_none("comparative", "english_comparative"),
            "comparative and english_comparative go together",
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

/// A first name or a family name.
pub(super) fn read_name(row: &mut Row<'_>) -> (NameKind, &'static str) {
    (row.named("kind"), row.words("name"))
}

/// A weekday or a month.
pub(super) fn read_date(row: &mut Row<'_>) -> (CalendarKind, Words) {
    (row.named("kind"), Words::read(row))
}

/// A number word. The values are those needed to build all numbers below a hundred, in order.
pub(super) fn read_number(row: &mut Row<'_>) -> Words {
    let value = row.number("value");
    // The header is on the first line.
    let at = row.line() - 2;
    let wanted = if at < 20 { at } else { 10 * (at - 18) };
    row.check(
        value == wanted && value < 100,
        &format!("value: {wanted} should be here, and nothing over 90"),
    );
    Words::read(row)
}

/// An adverbial of time.
#[derive(Debug)]
pub(crate) struct Time {
    pub(crate) tenses: Tenses,
    pub(crate) words: Words,
}

impl Time {
    pub(super) fn read(row: &mut Row<'_>) -> Self {
        Time { tenses: row.some("tenses", tense::ALL), words: Words::read_marked(row) }
    }
}

/// A unit of time after a preposition with the dative.
#[derive(Debug)]
pub(crate) struct Span {
    /// One of them, with its article.
    pub(crate) german: &'static str,
    pub(crate) german_plural: &'static str,
    /// The English singular.
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
    pub(crate) tenses: Tenses,
    pub(crate) words: Words,
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
    pub(crate) manners: Manners,
    pub(crate) words: Words,
}

impl Manner {
    pub(super) fn read(row: &mut Row<'_>) -> Self {
        Manner { manners: row.some("manners", manner::ALL), words: Words::read_marked(row) }
    }
}

/// A preposition with the case it takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preposition {
    pub(crate) german: &'static str,
    pub(crate) case: Case,
    /// English, as alternatives; empty if the English verb takes a plain object instead.
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

    /// The preposition of a verb, from the columns of the verb file.
    fn of_verb(row: &mut Row<'_>) -> Self {
        Preposition {
            german: row.words("preposition"),
            case: row.named("case"),
            english: row.optional_alternatives("english_preposition"),
        }
    }
}

/// A verb with its frame: what it takes and what goes with it.
#[derive(Debug)]
pub(crate) struct Verb {
    pub(crate) kind: Kind,
    /// The separable particle, or nothing.
    pub(crate) particle: &'static str,
    /// The German principal parts, without the particle.
    pub(crate) infinitive: &'static str,
    /// Third person singular of the present.
    pub(crate) present: &'static str,
    /// Third person singular of the preterite.
    pub(crate) preterite: &'static str,
    pub(crate) auxiliary: Auxiliary,
    pub(crate) participle: &'static str,
    /// English alternatives in the notation of the verb file.
    pub(crate) english: &'static str,
    /// What the subject can be.
    pub(crate) subject: Class,
    /// What the accusative object can be; empty if there is none.
    pub(crate) object: Class,
    /// What the dative object can be; empty if there is none.
    pub(crate) dative: Class,
    /// The preposition of the prepositional object, and what that can be.
    pub(crate) preposition: Option<(Preposition, Class)>,
    /// Kinds of places where it can happen.
    pub(crate) place: Class,
    /// How often a place is said, in percent.
    pub(crate) place_percent: usize,
    /// How often a direction is said, in percent.
    pub(crate) direction_percent: usize,
    pub(crate) manner: Manners,
    /// German words fixed before the verb, or nothing.
    pub(crate) fixed: &'static str,
    /// The case of the reflexive pronoun.
    pub(crate) reflexive: Option<Case>,
    pub(crate) traits: Traits,
}

/// The particles that separate from their verbs.
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

    /// Notes what does not fit together in a row.
    fn check(&self, row: &mut Row<'_>, group: Group) {
        let whole = ["case", "prepositional_object"].iter().all(|c| row.has(c) == self.preposition.is_some());
        row.check(whole, "preposition, case and prepositional_object go together");
        row.check(row.has_both_or_none("place", "place_percent"), "place and place_percent go together");
        let known = self.particle.is_empty() || PARTICLES.contains(&self.particle);
        row.check(known, "particle: not a known separable particle");
        row.check(self.infinitive.ends_with('n'), "infinitive: should end in n");
        row.check(self.participle.ends_with(['n', 't']), "participle: should end in n or t");
        let inflected = [self.infinitive, self.present, self.preterite, self.participle];
        row.check(inflected.iter().all(|form| is_word(form)), "German forms are single words");
        row.check(!matches!(self.reflexive, Some(Case::Nom | Case::Gen)), "reflexive: acc or dat");
        row.check(self.kind != Kind::Like || self.dative != 0, "dative: verbs of kind like need one");
        let kinds: &[Kind] = match group {
            Group::Action => &[Kind::Plain, Kind::Like, Kind::Link],
            Group::Speech => &[Kind::Say, Kind::Try],
            Group::Be => &[Kind::Link],
            Group::Exist => &[Kind::Exist],
            Group::Weather => &[Kind::Rain],
            Group::Shine => &[Kind::Plain],
        };
        row.check(kinds.contains(&self.kind), "kind: not one of this group");
        let impersonal = matches!(group, Group::Be | Group::Exist | Group::Weather);
        row.check((self.subject == 0) == impersonal, "subject: missing, or given where the grammar sets it");
        for alternative in self.english.split('/') {
            if let Err(what) = check_english(alternative) {
                row.fault(format!("english: {alternative:?}: {what}"));
            }
        }
    }

    /// Whether the verb has all of these traits.
    pub(crate) fn is(&self, traits: Traits) -> bool {
        self.traits & traits == traits
    }

    /// The first English alternative.
    pub(crate) fn first_english(&self) -> &'static str {
        self.english.split('/').next().unwrap_or("")
    }

    /// Whether the first English alternative has further words that nothing can be put between.
    pub(crate) fn is_wordy(&self) -> bool {
        let first = self.first_english();
        first.contains(' ') && !first.contains('+')
    }
}

/// Checks one English alternative of a verb.
fn check_english(alternative: &str) -> Result<(), &'static str> {
    let mut words = alternative.split(' ');
    let forms: Vec<&str> = words.next().unwrap_or("").split(',').collect();
    if !matches!(forms.len(), 1 | 3) {
        return Err("a verb is given by its base, or by base, past and participle");
    }
    if !forms.iter().all(|form| is_word(form)) {
        return Err("forms are lower-case words");
    }
    if words.any(|word| word != "=" && word != ">" && !is_word(word.strip_prefix('+').unwrap_or(word))) {
        return Err("further words are lower-case, perhaps after +, or the signs = and >");
    }
    Ok(())
}

/// A modal verb.
#[derive(Debug)]
pub(crate) struct Modal {
    pub(crate) name: ModalName,
    /// The German present, by person.
    pub(crate) present: [&'static str; 6],
    /// The German preterite of the third person singular.
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

/// The forms of a pronoun.
#[derive(Debug)]
pub(crate) struct PronounForms {
    pub(crate) name: Pronoun,
    /// German nominative, accusative and dative.
    pub(crate) german: [&'static str; 3],
    /// The stem of the German possessive.
    pub(crate) possessive: &'static str,
    pub(crate) person: Person,
    pub(crate) english_subject: &'static str,
    pub(crate) english_object: &'static str,
    pub(crate) english_possessive: &'static str,
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

/// A question word, or several.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) words: Words,
    pub(crate) asks: Asks,
}

impl Question {
    pub(super) fn read(row: &mut Row<'_>) -> Self {
        Question { words: Words::read_marked(row), asks: row.named("asks") }
    }
}

/// The opening of an indirect question.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) words: Words,
    /// The punctuation at the end of the sentence.
    pub(crate) stop: &'static str,
}

impl Opening {
    pub(super) fn read(row: &mut Row<'_>) -> Self {
        let stop = row.raw("stop");
        row.check(matches!(stop, "." | "?"), "stop: should be . or ?");
        Opening { words: Words::read_marked(row), stop }
    }
}
