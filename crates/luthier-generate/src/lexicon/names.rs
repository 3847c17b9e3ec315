//! Names of semantic and grammatical features in the lexicon files.
//!
//! The rows of a lexicon file describe the meaning and grammar of words by names such as `person` or `front`.
//! Only the names declared here are allowed, so that a misspelt one is found when the file is parsed. Names
//! of a [`Named`] enumeration are alternatives: a field has one of them. Names of sets, such as [`class`] and
//! [`tense`], can be joined by `|`; sets are bit sets, so that two words are tested for compatibility with
//! one instruction.

/// A set of semantic classes from [`class`], one bit each.
pub(crate) type Class = u64;
/// A set of tenses from [`tense`], one bit each.
pub(crate) type Tenses = u64;
/// A set of kinds of manner from [`manner`], one bit each.
pub(crate) type Manners = u64;
/// A set of verb traits from [`traits`], one bit each.
pub(crate) type Traits = u64;

/// Names of the elements of a set with their bits; in the files, the names are in lower case.
pub(crate) type Bits = &'static [(&'static str, u64)];

/// Declares constants of one bit each, and a table of their names.
macro_rules! bits {
    ($($(#[$note:meta])* $name:ident = $bit:literal),+ $(,)?) => {
        $($(#[$note])* pub(crate) const $name: u64 = 1 << $bit;)+
        /// All names of this set, with their bits.
        pub(crate) const ALL: super::Bits = &[$((stringify!($name), $name)),+];
    };
}

/// Semantic classes of nouns, by which verbs, adjectives and prepositions select nouns.
///
/// The order of the bits is part of the grammar: if a verb is compatible with several classes, one of them is
/// drawn by its index in this list.
pub(crate) mod class {
    use super::Class;

    bits! {
        /// Noun class: people.
        PERSON = 0,
        /// Noun class: relatives and friends, such as sisters.
        KIN = 1,
        /// Noun class: food, such as bread.
        FOOD = 2,
        /// Noun class: drinks, such as coffee.
        DRINK = 3,
        /// Noun class: public transport, such as trains.
        VEHICLE = 4,
        /// Noun class: vehicles for individual transport, such as cars.
        RIDE = 5,
        /// Noun class: places to go to, such as museums.
        PLACE = 6,
        /// Noun class: sights, such as castles.
        SIGHT = 7,
        /// Noun class: tickets and reservations.
        TICKET = 8,
        /// Noun class: portable objects, such as keys.
        THING = 9,
        /// Noun class: things to read, such as newspapers.
        READ = 10,
        /// Noun class: rooms and flats.
        ROOM = 11,
        /// Noun class: events, such as concerts.
        EVENT = 12,
        /// Noun class: things that can be opened and closed, such as windows.
        DOOR = 13,
        /// Noun class: things that can break and be repaired, such as lamps.
        DEVICE = 14,
        /// Noun class: things to sit on, such as benches.
        SEAT = 15,
        /// Noun class: domestic and wild animals outside a zoo, such as dogs.
        ANIMAL = 16,
        /// Noun class: clothes, such as coats.
        CLOTH = 17,
        /// Noun class: places where vehicles stop, such as stations.
        STOP = 18,
        /// Noun class: places to turn at or to pass, such as crossings.
        CORNER = 19,
        /// Noun class: things that can be sent, such as letters.
        SEND = 20,
        /// Noun class: flowers, such as roses.
        FLOWER = 21,
        /// Noun class: money, such as coins.
        MONEY = 22,
        /// Noun class: documents to fill in or sign, such as contracts.
        FORM = 23,
        /// Noun class: streets, such as lanes.
        STREET = 24,
        /// Noun class: streets and squares with a proper name.
        NAMED = 25,
        /// Noun class: maps, timetables and guidebooks.
        MAP = 26,
        /// Noun class: things that can be painted, such as walls.
        WALL = 27,
        /// Noun class: places to eat and drink, such as restaurants.
        EATERY = 28,
        /// Noun class: accommodation, such as hotels.
        LODGE = 29,
        /// Noun class: shops, such as bakeries.
        SHOP = 30,
        /// Noun class: counters, such as ticket offices.
        DESK = 31,
        /// Noun class: units of money, such as euros.
        PRICE = 32,
        /// Noun class: units of time, such as hours.
        SPAN = 33,
        /// Noun class: the sun.
        SKY = 34,
        /// Class of adjectives that describe the weather; it has no nouns.
        WEATHER = 35,
        /// Noun class: people by their job, such as waiters.
        STAFF = 36,
        /// Noun class: places at the water, such as lakes.
        WATER = 37,
        /// Noun class: banks and exchange offices.
        BANK = 38,
        /// Noun class: luggage, such as suitcases.
        LUGGAGE = 39,
        /// Noun class: animals in a zoo, such as elephants.
        ZOO = 40,
        /// Noun class: buttons, switches and bells.
        BUTTON = 41,
        /// Noun class: measures of food and drink, such as cups.
        MEASURE = 42,
        /// Noun class: aeroplanes.
        AIR = 43,
        /// Noun class: food that is served in pieces, such as cake.
        PIECE = 44,
        /// Noun class: hot drinks, which are served in cups, such as tea.
        HOT = 45,
    }

    /// Classes of nouns that can have a possessive, such as "my suitcase".
    pub(crate) const OWN: Class = KIN | RIDE | TICKET | THING | READ | ROOM | CLOTH | SEND | LUGGAGE | MAP;
    /// Classes of nouns that can be mass nouns, such as "water".
    pub(crate) const MASS: Class = FOOD | DRINK | MONEY;
    /// Classes of movable objects, which can be bought, carried, lost and found.
    pub(crate) const OBJECTS: Class = THING | CLOTH | LUGGAGE | READ;

    /// Returns the single classes of a set, in the order of their bits.
    pub(crate) fn kinds(set: Class) -> Vec<Class> {
        (0..Class::BITS).map(|bit| 1 << bit).filter(|kind| set & kind != 0).collect()
    }
}

/// Tenses that adverbials of time are compatible with.
pub(crate) mod tense {
    bits! {
        /// Tense: present, an action in progress, as with "now".
        PRESENT = 0,
        /// Tense: past, as with "yesterday".
        PAST = 1,
        /// Tense: future, as with "tomorrow".
        FUTURE = 2,
        /// Tense: habitual or repeated actions, as with "every day".
        HABIT = 3,
    }
}

/// Kinds of manner, by which verbs select adverbials.
pub(crate) mod manner {
    bits! {
        /// Adverbials of speed, such as "slowly".
        SPEED = 0,
        /// Adverbials of company: "alone" and "together".
        COMPANY = 1,
        /// Adverbials of going on foot.
        FOOT = 2,
        /// Adverbials of care or help, such as "carefully".
        CARE = 3,
        /// Adverbials of duration, such as "for a long time".
        LONG = 4,
        /// Adverbials of payment, such as "in cash".
        CASH = 5,
        /// Adverbials of turning, "left" and "right"; always present with a verb of this kind.
        TURN = 6,
        /// Adverbials of punctuality, such as "on time".
        CLOCK = 7,
    }
}

/// Properties that distinguish verbs with the same frame.
pub(crate) mod traits {
    bits! {
        /// Verb trait: expresses a state; has no progressive and no modal.
        STATE = 0,
        /// Verb trait: is compatible with "since" or "for", as in "seit einer Woche".
        SINCE = 1,
        /// Verb trait: has directions in town only, not another town.
        NEAR = 2,
        /// Verb trait: is compatible with a means of transport, as in "mit dem Zug".
        BY_VEHICLE = 3,
        /// Verb trait: has no imperative.
        NO_COMMAND = 4,
    }
}

/// An enumeration whose values have names in the lexicon files.
pub(crate) trait Named: Copy + PartialEq + 'static {
    /// All values with their names, in order of declaration.
    const ALL: &'static [(&'static str, Self)];
}

/// Declares an enumeration with the names of its values.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$note:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum $name { $($(#[$note])* $variant),+ }

        impl Named for $name {
            const ALL: &'static [(&'static str, Self)] = &[$(($text, $name::$variant)),+];
        }
    };
}

named! {
    /// German case; its number is the row in tables of endings.
    Case { Nom = "nom", Acc = "acc", Dat = "dat", Gen = "gen" }
}

named! {
    /// Gender and declension of a German noun.
    Gender {
        Masculine = "m",
        Feminine = "f",
        Neuter = "n",
        /// Masculine with weak declension: every form except the nominative singular equals the plural.
        Weak = "w",
        /// Plural only.
        Plural = "p",
    }
}

named! {
    /// Positions in which an adjective can be used, and whether it is gradable.
    Usage {
        /// Attributive and predicative, gradable.
        Plain = "plain",
        /// Attributive only, with the definite article, such as "next" or "second".
        Ordinal = "ordinal",
        /// Attributive only.
        Attribute = "attribute",
        /// Attributive and predicative, not gradable.
        Absolute = "absolute",
        /// Predicative only, not gradable.
        Predicate = "predicate",
    }
}

named! {
    /// Boolean field: `-` for no, `yes` for yes.
    Flag { No = "-", Yes = "yes" }
}

named! {
    /// Kind of a personal name: first name of a woman or man, or family name.
    NameKind { Woman = "woman", Man = "man", Family = "family" }
}

named! {
    /// Kind of an entry of the calendar.
    CalendarKind { Weekday = "weekday", Month = "month" }
}

named! {
    /// Position of an adverb in English.
    Position {
        /// Before the subject.
        Front = "front",
        /// Before the main verb.
        Middle = "middle",
    }
}

named! {
    /// Group of a verb: the type of clause for which it can be drawn.
    Group {
        /// Verb group: ordinary clauses.
        Action = "action",
        /// Verb group: main clauses with a "dass" clause or an infinitive, such as "sagen" and "versuchen".
        Speech = "speech",
        /// Verb group: "sein" with a predicative adjective.
        Be = "be",
        /// Verb group: "es gibt".
        Exist = "exist",
        /// Verb group: weather, such as "regnen".
        Weather = "weather",
        /// Verb group: verbs of the sun, "scheinen".
        Shine = "shine",
    }
}

named! {
    /// Syntactic type of a verb.
    Kind {
        /// Verb with subject and objects only.
        Plain = "plain",
        /// Existential verb: "es gibt" and "there is".
        Exist = "exist",
        /// Verb whose German subject is the English object, such as "gefallen" (like).
        Like = "like",
        /// Linking verb with a predicative adjective.
        Link = "link",
        /// Verb with a "dass" clause.
        Say = "say",
        /// Verb with an infinitive with "zu".
        Try = "try",
        /// Impersonal verb with the subject "es" and no objects.
        Rain = "rain",
    }
}

named! {
    /// Auxiliary of the German perfect.
    Auxiliary { Haben = "hat", Sein = "ist" }
}

named! {
    /// German person and number; its number is the column in tables of verb forms.
    Person {
        FirstSingular = "first_singular",
        SecondSingular = "second_singular",
        ThirdSingular = "third_singular",
        FirstPlural = "first_plural",
        SecondPlural = "second_plural",
        ThirdPlural = "third_plural",
    }
}

named! {
    /// English agreement of a verb with its subject: first person singular, third person singular, or other.
    Agreement { I = "i", One = "one", Many = "many" }
}

named! {
    /// Pronoun; its number is the row in the file of pronouns.
    Pronoun {
        I = "i",
        We = "we",
        He = "he",
        She = "she",
        They = "they",
        /// Pronoun "du" (informal singular).
        You = "you",
        /// Pronoun "ihr" (informal plural).
        YouAll = "you_all",
        /// Pronoun "Sie" (polite).
        Polite = "polite",
        /// Pronoun "man" (impersonal).
        One = "one",
        /// Pronoun "es", also as an expletive subject.
        It = "it",
        /// Pronoun "er" for a thing.
        ItMasculine = "it_masculine",
        /// Pronoun "sie" for a thing.
        ItFeminine = "it_feminine",
        Who = "who",
        What = "what",
    }
}

named! {
    /// Modal verb; its number is the row in the file of modals.
    ModalName {
        WouldLike = "would_like",
        Can = "can",
        Must = "must",
        Want = "want",
        Shall = "shall",
        May = "may",
    }
}

named! {
    /// Conjunction by its meaning; its number is the row in the file of conjunctions.
    Connective {
        Because = "because",
        Although = "although",
        If = "if",
        Whenever = "whenever",
        When = "when",
        Before = "before",
        After = "after",
        While = "while",
        That = "that",
        InOrder = "in_order",
        Without = "without",
        /// No conjunction, before the infinitive after verbs such as "versuchen".
        Bare = "bare",
        And = "and",
        But = "but",
        /// Coordinating "denn".
        For = "for",
        Therefore = "therefore",
        Nevertheless = "nevertheless",
    }
}

named! {
    /// Construction of a clause after a conjunction.
    Join {
        /// Verb-final subordinate clause.
        Final = "final",
        /// Verb-second main clause.
        Second = "second",
        /// Main clause with inversion after a conjunctional adverb, such as "deshalb".
        Inverted = "inverted",
        /// Infinitive with "zu", in English with "to".
        To = "to",
        /// Infinitive with "zu", in English a gerund ("-ing").
        Ing = "ing",
    }
}

named! {
    /// Part of the clause that a question word asks for, and that the clause therefore does not have.
    Asks {
        Time = "time",
        Place = "place",
        /// No part of the clause, as with questions for a reason.
        Nothing = "nothing",
        Direction = "direction",
        Company = "company",
        /// Starting time, as in "seit wann".
        Since = "since",
    }
}

/// Returns the value with a name; `None` if there is none.
pub(crate) fn by_name<T: Named>(name: &str) -> Option<T> {
    T::ALL.iter().find(|entry| entry.0 == name).map(|entry| entry.1)
}
