//! The names that stand for meanings and grammatical features in the lexicon files.
//!
//! A row of a lexicon file says what a word means and how it behaves with names such as `person` or `front`.
//! Only the names declared here are known, so a misspelt one is found when the file is read. There are two
//! sorts of them. Names from a [`Named`] enumeration stand alone in their column. Names of sets, like
//! [`class`] and [`tense`], can be joined by `|` and are kept as bits, so that asking whether two words go
//! together takes one instruction.

/// A set of meaning classes from [`class`], one bit each.
pub(crate) type Class = u64;
/// A set of tenses from [`tense`], one bit each.
pub(crate) type Tenses = u64;
/// A set of kinds of manner from [`manner`], one bit each.
pub(crate) type Manners = u64;
/// A set of verb traits from [`traits`], one bit each.
pub(crate) type Traits = u64;

/// The names of a set with their bits; the files write the names in lower case.
pub(crate) type Bits = &'static [(&'static str, u64)];

/// Declares constants of one bit each, and the table by which their names are looked up.
macro_rules! bits {
    ($($(#[$note:meta])* $name:ident = $bit:literal),+ $(,)?) => {
        $($(#[$note])* pub(crate) const $name: u64 = 1 << $bit;)+
        /// All names of this set, with their bits.
        pub(crate) const ALL: super::Bits = &[$((stringify!($name), $name)),+];
    };
}

/// What nouns mean, as far as verbs, adjectives and prepositions care.
///
/// The order of the bits is part of the grammar: where a verb goes with several classes, one of them is drawn
/// by its place in this list.
pub(crate) mod class {
    use super::Class;

    bits! {
        PERSON = 0,
        /// Relatives, friends and others who are somebody's.
        KIN = 1,
        FOOD = 2,
        DRINK = 3,
        /// What passengers get on.
        VEHICLE = 4,
        /// What people drive or ride themselves.
        RIDE = 5,
        PLACE = 6,
        SIGHT = 7,
        TICKET = 8,
        THING = 9,
        /// What can be read.
        READ = 10,
        ROOM = 11,
        EVENT = 12,
        /// What can be opened and closed.
        DOOR = 13,
        /// What can break and be repaired.
        DEVICE = 14,
        /// What people sit on.
        SEAT = 15,
        ANIMAL = 16,
        CLOTH = 17,
        /// Where vehicles stop.
        STOP = 18,
        /// Where people turn.
        CORNER = 19,
        /// What can be sent.
        SEND = 20,
        FLOWER = 21,
        MONEY = 22,
        /// What is filled in or signed.
        FORM = 23,
        STREET = 24,
        /// Streets and squares with a proper name.
        NAMED = 25,
        MAP = 26,
        /// What can be painted.
        WALL = 27,
        EATERY = 28,
        LODGE = 29,
        SHOP = 30,
        /// Counters and other places where tickets are sold.
        DESK = 31,
        /// Units of money.
        PRICE = 32,
        /// Units of time.
        SPAN = 33,
        SKY = 34,
        WEATHER = 35,
        STAFF = 36,
        WATER = 37,
        BANK = 38,
        LUGGAGE = 39,
        ZOO = 40,
        BUTTON = 41,
        /// Glasses, cups and the like.
        MEASURE = 42,
        /// What flies.
        AIR = 43,
        /// Food that comes in pieces.
        PIECE = 44,
        /// Drinks that come in cups.
        HOT = 45,
    }

    /// Things somebody may call their own.
    pub(crate) const OWN: Class = KIN | RIDE | TICKET | THING | READ | ROOM | CLOTH | SEND | LUGGAGE | MAP;
    /// Things that are measured by a cup or a glass, or not counted at all.
    pub(crate) const MASS: Class = FOOD | DRINK | MONEY;
    /// Things that are bought, carried, lost and found.
    pub(crate) const OBJECTS: Class = THING | CLOTH | LUGGAGE | READ;

    /// The single classes of a set, in the order of their bits.
    pub(crate) fn kinds(set: Class) -> Vec<Class> {
        (0..Class::BITS).map(|bit| 1 << bit).filter(|kind| set & kind != 0).collect()
    }
}

/// The tenses that adverbials of time go with.
pub(crate) mod tense {
    bits! {
        PRESENT = 0,
        PAST = 1,
        FUTURE = 2,
        /// What happens again and again.
        HABIT = 3,
    }
}

/// Kinds of manner, so that only fitting adverbials go with a verb.
pub(crate) mod manner {
    bits! {
        SPEED = 0,
        COMPANY = 1,
        FOOT = 2,
        CARE = 3,
        /// How long something goes on.
        LONG = 4,
        /// How something is paid.
        CASH = 5,
        /// Which way somebody turns; said with every verb that allows it.
        TURN = 6,
        /// Whether something is on time.
        CLOCK = 7,
    }
}

/// What sets a verb apart from others with the same frame.
pub(crate) mod traits {
    bits! {
        /// Takes no progressive and no modal.
        STATE = 0,
        /// Can go on since some time, as in "seit einer Woche".
        SINCE = 1,
        /// Leads to places in town, never to another town.
        NEAR = 2,
        /// Can be done by a means of transport, as in "mit dem Zug".
        BY_VEHICLE = 3,
        /// Cannot be asked of somebody.
        NO_COMMAND = 4,
    }
}

/// An enumeration whose values have names in the lexicon files.
pub(crate) trait Named: Copy + PartialEq + 'static {
    /// All values with their names, in the order of their declaration.
    const ALL: &'static [(&'static str, Self)];
}

/// Declares an enumeration together with the names of its values.
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
    /// A German case; as a number it is the row in tables of endings.
    Case { Nom = "nom", Acc = "acc", Dat = "dat", Gen = "gen" }
}

named! {
    /// The gender of a German noun, and how it deviates from the usual declension.
    Gender {
        Masculine = "m",
        Feminine = "f",
        Neuter = "n",
        /// Masculine; every form but the nominative singular is that of the plural.
        Weak = "w",
        /// Has no singular.
        Plural = "p",
    }
}

named! {
    /// Where an adjective can stand and whether it has degrees.
    Usage {
        /// Before nouns and after verbs, with degrees.
        Plain = "plain",
        /// "next", "second" and the like: only before nouns, and only with the definite article.
        Ordinal = "ordinal",
        /// Only before nouns.
        Attribute = "attribute",
        /// Before nouns and after verbs, without degrees.
        Absolute = "absolute",
        /// Only after verbs, without degrees.
        Predicate = "predicate",
    }
}

named! {
    /// Yes or no.
    Flag { No = "-", Yes = "yes" }
}

named! {
    /// What a name is the name of.
    NameKind { Woman = "woman", Man = "man", Family = "family" }
}

named! {
    /// What a name in the calendar stands for.
    CalendarKind { Weekday = "weekday", Month = "month" }
}

named! {
    /// Where English puts an adverb.
    Position {
        /// Before the subject.
        Front = "front",
        /// Before the main verb.
        Middle = "middle",
    }
}

named! {
    /// The part a verb plays in the grammar: every group is drawn from at other places.
    Group {
        /// Verbs of ordinary clauses.
        Action = "action",
        /// Verbs that take a clause or an infinitive.
        Speech = "speech",
        /// "sein" before an adjective.
        Be = "be",
        /// "es gibt".
        Exist = "exist",
        /// What the weather does.
        Weather = "weather",
        /// What the sun does.
        Shine = "shine",
    }
}

named! {
    /// What a verb does besides taking its objects.
    Kind {
        /// Nothing.
        Plain = "plain",
        /// "es gibt" and "there is".
        Exist = "exist",
        /// The German subject is the English object, as in "gefallen".
        Like = "like",
        /// Takes an adjective.
        Link = "link",
        /// Takes a "dass" clause.
        Say = "say",
        /// Takes an infinitive with "zu".
        Try = "try",
        /// Has the subject "es" and nothing else.
        Rain = "rain",
    }
}

named! {
    /// The verb that forms the German perfect.
    Auxiliary { Haben = "hat", Sein = "ist" }
}

named! {
    /// A German person and number; as a number it is the column in tables of verb forms.
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
    /// English agreement of a subject with its verb.
    Agreement { I = "i", One = "one", Many = "many" }
}

named! {
    /// A pronoun; as a number it is the row in the file of pronouns.
    Pronoun {
        I = "i",
        We = "we",
        He = "he",
        She = "she",
        They = "they",
        /// "du".
        You = "you",
        /// "ihr".
        YouAll = "you_all",
        /// "Sie".
        Polite = "polite",
        /// "man".
        One = "one",
        /// "es", also where it stands for nothing.
        It = "it",
        /// "er" for a thing.
        ItMasculine = "it_masculine",
        /// "sie" for a thing.
        ItFeminine = "it_feminine",
        Who = "who",
        What = "what",
    }
}

named! {
    /// A modal verb; as a number it is the row in the file of modals.
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
    /// A conjunction by its meaning; as a number it is the row in the file of conjunctions.
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
        /// Nothing, before the infinitive after "versuchen" and the like.
        Bare = "bare",
        And = "and",
        But = "but",
        /// "denn".
        For = "for",
        Therefore = "therefore",
        Nevertheless = "nevertheless",
    }
}

named! {
    /// How a clause is joined to another one.
    Join {
        /// Verb-final clause.
        Final = "final",
        /// Main clause after the conjunction.
        Second = "second",
        /// The conjunction is an adverb that inverts the clause.
        Inverted = "inverted",
        /// Infinitive with "zu", English "to".
        To = "to",
        /// Infinitive with "zu", English "-ing".
        Ing = "ing",
    }
}

named! {
    /// What a question word asks for, and the clause therefore leaves out.
    Asks {
        Time = "time",
        Place = "place",
        /// Something no part of the clause could say, such as a reason.
        Nothing = "nothing",
        Direction = "direction",
        Company = "company",
        /// Since when.
        Since = "since",
    }
}

/// The value with a name, if there is one.
pub(crate) fn by_name<T: Named>(name: &str) -> Option<T> {
    T::ALL.iter().find(|entry| entry.0 == name).map(|entry| entry.1)
}
