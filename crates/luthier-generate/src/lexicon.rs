//! The lexicon of the grammar, read from tab-separated files.
//!
//! The words are data and the grammar is code. The data are in `lexicon/*.tsv`: one header line with the
//! names of the columns, then one entry per line. The files are compiled in and parsed once, before the first
//! sentence is generated. All errors in all files are reported together (see [`Lexicon::load`]); a test
//! checks that there are none.
//!
//! | file | content of a row |
//! |---|---|
//! | `nouns` | noun; `there` and `english_there` are the prepositions for being at this place |
//! | `compounds` | first part of compounds, with its list, which nouns name in the column `compounds` |
//! | `adjectives` | adjective with the classes of nouns that it describes; `passing` ones allow a time |
//! | `degrees` | degree adverb before an adjective, such as "sehr" |
//! | `quantities` | determiner of plurals: German stem, and English |
//! | `cities` | town or country whose name has no article |
//! | `names` | first name or family name |
//! | `numbers` | number word: zero to nineteen, then the tens |
//! | `calendar` | weekday or month |
//! | `times` | adverbial of time with the tenses that it is compatible with |
//! | `spans` | unit of time: German dative singular with article, dative plural, English singular |
//! | `adverbs` | adverb of frequency or attitude |
//! | `manners` | adverbial of manner |
//! | `prepositions` | preposition that is compatible with any place |
//! | `verbs` | verb with its frame |
//! | `modals` | modal verb |
//! | `pronouns` | pronoun |
//! | `conjunctions` | conjunction |
//! | `questions` | question word, and the part of the clause that it asks for |
//! | `openings` | opening of an indirect question |
//!
//! **The order of the rows matters**: early rows are drawn with a higher probability, so common words come
//! first, and a noun can occur twice to be drawn more often. Any change of a file changes the generated
//! corpora.
//!
//! # Notation
//!
//! - `-` alone in a field: no value.
//! - `a|b`: a set of names, which are declared in [`names`].
//! - `a/b`: alternatives, one of which is drawn; `~` is the empty alternative.
//! - `am_1 abend_2`: words with marks. German and English words with a mark in common are linked. A word can
//!   have several marks (`tonight_12`) or none (`the_-`). All words without `_` have the mark 0.
//! - English verbs: `base` or `base,past,participle`, then further words. `+up` is the particle of a phrasal
//!   verb, which may follow the object; `=` drops the preposition of the prepositional object; `>` requires
//!   "to" before the dative object.

mod entries;
pub(crate) mod names;
mod table;

pub(crate) use entries::{
    Adjective, Adverb, Column, Conjunction, Manner, Modal, Noun, Opening, Preposition, PronounForms,
    Question, Span, Time, Verb, Words,
};

use entries::Compound;
use names::{CalendarKind, Connective, Group, ModalName, NameKind, Named, Pronoun, class};
use rustc_hash::FxHashMap;
use std::sync::LazyLock;
use table::{Fault, File, Row, rows};

/// Declares a lexicon file by its name and its columns.
macro_rules! file {
    ($name:literal: $($column:ident)+) => {
        &File {
            name: concat!($name, ".tsv"),
            text: include_str!(concat!("../lexicon/", $name, ".tsv")),
            columns: &[$(stringify!($column)),+],
        }
    };
}

const NOUNS: &File = file!("nouns": classes singular plural gender english compounds there english_there);
const COMPOUNDS: &File = file!("compounds": list german english);
const ADJECTIVES: &File =
    file!("adjectives": classes german english usage passing comparative english_comparative);
const DEGREES: &File = file!("degrees": german english);
const QUANTITIES: &File = file!("quantities": german english);
const CITIES: &File = file!("cities": german english);
const NAMES: &File = file!("names": kind name);
const NUMBERS: &File = file!("numbers": value german english);
const CALENDAR: &File = file!("calendar": kind german english);
const TIMES: &File = file!("times": tenses german english);
const SPANS: &File = file!("spans": german german_plural english);
const ADVERBS: &File = file!("adverbs": tenses german english position);
const MANNERS: &File = file!("manners": manners german english);
const PREPOSITIONS: &File = file!("prepositions": german case english);
const VERBS: &File = file!("verbs":
    group kind particle infinitive present preterite auxiliary participle english subject object dative
    preposition case english_preposition prepositional_object place place_percent direction_percent manner
    fixed reflexive traits);
const MODALS: &File = file!("modals":
    name first_singular second_singular third_singular first_plural second_plural third_plural preterite
    english english_past english_negated);
const PRONOUNS: &File = file!("pronouns":
    name nominative accusative dative possessive person english_subject english_object english_possessive
    agreement);
const CONJUNCTIONS: &File = file!("conjunctions": name german english join);
const QUESTIONS: &File = file!("questions": german english asks);
const OPENINGS: &File = file!("openings": german english stop);

/// All entries of the lexicon, in the order of the files.
#[derive(Debug)]
pub(crate) struct Lexicon {
    pub(crate) nouns: Vec<Noun>,
    pub(crate) adjectives: Vec<Adjective>,
    pub(crate) degrees: Vec<Words>,
    pub(crate) quantities: Vec<Words>,
    pub(crate) cities: Vec<Words>,
    pub(crate) women: Vec<&'static str>,
    pub(crate) men: Vec<&'static str>,
    pub(crate) families: Vec<&'static str>,
    /// Number words: zero to nineteen, then the tens from twenty.
    numbers: Vec<Words>,
    pub(crate) weekdays: Vec<Words>,
    pub(crate) months: Vec<Words>,
    pub(crate) times: Vec<Time>,
    pub(crate) spans: Vec<Span>,
    pub(crate) adverbs: Vec<Adverb>,
    pub(crate) manners: Vec<Manner>,
    pub(crate) prepositions: Vec<Preposition>,
    /// Verbs by group.
    verbs: [Vec<Verb>; Group::ALL.len()],
    pub(crate) modals: Vec<Modal>,
    pronouns: Vec<PronounForms>,
    conjunctions: Vec<Conjunction>,
    pub(crate) questions: Vec<Question>,
    pub(crate) openings: Vec<Opening>,
}

/// Returns the lexicon, which is parsed at the first call.
///
/// # Panics
/// If a file has an error. A test parses all files, so this does not happen in a build that has passed it.
pub(crate) fn lexicon() -> &'static Lexicon {
    static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
        Lexicon::load().unwrap_or_else(|faults| panic!("the lexicon has errors:\n{}", list(&faults)))
    });
    &LEXICON
}

/// Returns errors as text, one per line.
fn list(faults: &[Fault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl Lexicon {
    /// Parses all files. Fails with all errors in them.
    fn load() -> Result<Self, Vec<Fault>> {
        let mut found = Vec::new();
        let faults = &mut found;
        let names = rows(NAMES, faults, entries::read_name);
        let calendar = rows(CALENDAR, faults, entries::read_date);
        let lexicon = Lexicon {
            nouns: nouns(NOUNS, COMPOUNDS, faults),
            adjectives: rows(ADJECTIVES, faults, Adjective::read),
            degrees: rows(DEGREES, faults, Words::read),
            quantities: rows(QUANTITIES, faults, Words::read),
            cities: rows(CITIES, faults, Words::read),
            women: of_kind(&names, NameKind::Woman),
            men: of_kind(&names, NameKind::Man),
            families: of_kind(&names, NameKind::Family),
            numbers: rows(NUMBERS, faults, entries::read_number),
            weekdays: of_kind(&calendar, CalendarKind::Weekday),
            months: of_kind(&calendar, CalendarKind::Month),
            times: rows(TIMES, faults, Time::read),
            spans: rows(SPANS, faults, Span::read),
            adverbs: rows(ADVERBS, faults, Adverb::read),
            manners: rows(MANNERS, faults, Manner::read),
            prepositions: rows(PREPOSITIONS, faults, Preposition::read),
            verbs: verbs(VERBS, faults),
            modals: in_order(MODALS, faults, Modal::read, |modal| modal.name),
            pronouns: in_order(PRONOUNS, faults, PronounForms::read, |pronoun| pronoun.name),
            conjunctions: in_order(CONJUNCTIONS, faults, Conjunction::read, |conjunction| conjunction.name),
            questions: rows(QUESTIONS, faults, Question::read),
            openings: rows(OPENINGS, faults, Opening::read),
        };
        lexicon.check(faults);
        if found.is_empty() { Ok(lexicon) } else { Err(found) }
    }

    /// Reports violations of what the grammar requires of several rows or files together.
    fn check(&self, faults: &mut Vec<Fault>) {
        let mut need = |file: &File, holds: bool, what: String| {
            if !holds {
                faults.push(Fault { file: file.name, line: 0, what });
            }
        };
        need(NUMBERS, self.numbers.len() == 28, "must have zero to nineteen, and the tens".to_string());
        for (names, what) in [(&self.women, "women"), (&self.men, "men"), (&self.families, "families")] {
            need(NAMES, !names.is_empty(), format!("has no names of {what}"));
        }
        for (dates, what) in [(&self.weekdays, "weekdays"), (&self.months, "months")] {
            need(CALENDAR, !dates.is_empty(), format!("has no {what}"));
        }
        for &(name, group) in Group::ALL {
            need(VERBS, !self.verbs(group).is_empty(), format!("has no verb of the group {name}"));
        }
        for unit in ["glas", "tasse", "flasche", "stück"] {
            need(NOUNS, self.measure(unit).is_some(), format!("has no measure {unit}"));
        }
        // Every class in the frame of a verb must have a noun, or the draw would fall back on the first noun.
        let nouns = self.nouns.iter().fold(0, |all, noun| all | noun.class);
        for verb in self.verbs.iter().flatten() {
            let prepositional = verb.preposition.map_or(0, |(_, class)| class);
            let asked = verb.subject | verb.object | verb.dative | verb.place | prepositional;
            for &(name, bit) in class::ALL {
                let there = asked & bit == 0 || nouns & bit != 0;
                need(
                    NOUNS,
                    there,
                    format!("has no noun of the class {name}, which {} needs", verb.infinitive),
                );
            }
        }
    }

    /// Returns the verbs of a group.
    pub(crate) fn verbs(&self, group: Group) -> &[Verb] {
        &self.verbs[group as usize]
    }

    /// Returns the first verb of a group.
    pub(crate) fn verb(&self, group: Group) -> &Verb {
        &self.verbs(group)[0]
    }

    /// Returns a modal verb by its name.
    pub(crate) fn modal(&self, name: ModalName) -> &Modal {
        &self.modals[name as usize]
    }

    /// Returns the forms of a pronoun.
    pub(crate) fn pronoun(&self, name: Pronoun) -> &PronounForms {
        &self.pronouns[name as usize]
    }

    /// Returns a conjunction by its meaning.
    pub(crate) fn conjunction(&self, name: Connective) -> &Conjunction {
        &self.conjunctions[name as usize]
    }

    /// Returns the coordinating conjunctions, which join main clauses.
    pub(crate) fn coordinating(&self) -> &[Conjunction] {
        &self.conjunctions[Connective::And as usize..]
    }

    /// Returns the noun for a measure, such as "tasse"; `None` if the lexicon does not have it.
    pub(crate) fn measure(&self, german: &str) -> Option<&Noun> {
        self.nouns.iter().find(|noun| noun.class & class::MEASURE != 0 && noun.german == german)
    }

    /// Returns the word for a number below twenty.
    pub(crate) fn unit(&self, n: usize) -> Words {
        self.numbers[n]
    }

    /// Returns the words for a number below a hundred in German and English.
    pub(crate) fn number(&self, n: usize) -> (String, String) {
        let plain = |words: Words| (words.german.to_string(), words.english.to_string());
        if n < 20 {
            return plain(self.unit(n));
        }
        let (ten, unit) = (self.numbers[18 + n / 10], self.unit(n % 10));
        if n.is_multiple_of(10) {
            plain(ten)
        } else {
            (format!("{}und{}", unit.german, ten.german), format!("{}-{}", ten.english, unit.english))
        }
    }
}

/// Returns the entries of one kind, in the order of the file.
fn of_kind<K: Named, T: Copy>(entries: &[(K, T)], kind: K) -> Vec<T> {
    entries.iter().filter(|entry| entry.0 == kind).map(|entry| entry.1).collect()
}

/// Parses the nouns, with the first parts of their compounds.
fn nouns(nouns: &File, compounds: &File, faults: &mut Vec<Fault>) -> Vec<Noun> {
    let mut lists: FxHashMap<&str, Vec<Words>> = FxHashMap::default();
    let parts = rows(compounds, faults, Compound::read);
    for part in &parts {
        lists.entry(part.list).or_default().push(part.words);
    }
    let nouns = rows(nouns, faults, |row| {
        let mut noun = Noun::read(row);
        if let Some(parts) = lists.get(noun.compounds) {
            noun.parts.clone_from(parts);
        } else if !noun.compounds.is_empty() {
            row.fault(format!("compounds: unknown list {:?}", noun.compounds));
        }
        noun
    });
    for (n, part) in parts.iter().enumerate() {
        let mut fault = |what: &str| {
            let what = format!("list: {:?} {what}", part.list);
            faults.push(Fault { file: compounds.name, line: part.line, what });
        };
        if !nouns.iter().any(|noun| noun.compounds == part.list) {
            fault("is not used by any noun");
        }
        if n > 0 && parts[n - 1].list != part.list && parts[..n].iter().any(|other| other.list == part.list) {
            fault("must be adjacent to the other rows of its list");
        }
    }
    nouns
}

/// Parses the verbs, by group.
fn verbs(file: &File, faults: &mut Vec<Fault>) -> [Vec<Verb>; Group::ALL.len()] {
    let mut groups: [Vec<Verb>; Group::ALL.len()] = Default::default();
    for (group, verb) in rows(file, faults, Verb::read) {
        groups[group as usize].push(verb);
    }
    groups
}

/// Parses rows that are looked up by name: there must be one for every name, in the order of declaration.
fn in_order<T, N: Named>(
    file: &File,
    faults: &mut Vec<Fault>,
    read: impl FnMut(&mut Row<'_>) -> T,
    name: impl Fn(&T) -> N,
) -> Vec<T> {
    let list = rows(file, faults, read);
    if !list.iter().map(name).eq(N::ALL.iter().map(|entry| entry.1)) {
        let names: Vec<&str> = N::ALL.iter().map(|entry| entry.0).collect();
        let what = format!("must have the rows {} in this order", names.join(", "));
        faults.push(Fault { file: file.name, line: 0, what });
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_every_file_is_sound() {
        if let Err(faults) = Lexicon::load() {
            panic!("{} faults:\n{}", faults.len(), list(&faults));
        }
    }

    #[test]
    fn files_are_read_with_every_row() {
        let lexicon = lexicon();
        let lines = |file: &File| file.text.lines().count() - 1;
        assert_eq!(lexicon.nouns.len(), lines(NOUNS));
        assert_eq!(lexicon.adjectives.len(), lines(ADJECTIVES));
        assert_eq!(lexicon.verbs.iter().map(Vec::len).sum::<usize>(), lines(VERBS));
        assert_eq!(lexicon.women.len() + lexicon.men.len() + lexicon.families.len(), lines(NAMES));
    }

    #[test]
    fn all_bad_rows_of_nouns_and_compounds_are_reported() {
        let header = "classes\tsingular\tplural\tgender\tenglish\tcompounds\tthere\tenglish_there\n";
        let text = [
            header,
            "thing\tring\tringe\tm\tring\tring\t-\t-\n",
            "thing\tring\tringe\tx\tring\tgold\t-\t-\n",
            "thng\t-\t-\tp\tRing\t-\tin\t-\n",
        ]
        .concat()
        .leak();
        let made = File { name: "nouns.tsv", text, columns: NOUNS.columns };
        let parts = File {
            name: "compounds.tsv",
            text: "list\tgerman\tenglish\nring\tgold\tgold\nhut\tstroh\tstraw\nring\tsilber\tsilver\n",
            columns: COMPOUNDS.columns,
        };
        let mut faults = Vec::new();
        nouns(&made, &parts, &mut faults);
        let found: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "nouns.tsv:3: gender: \"x\" is not one of m, f, n, w, p",
                "nouns.tsv:3: compounds: unknown list \"gold\"",
                "nouns.tsv:4: nouns of gender p and w need a plural",
                "nouns.tsv:4: there and english_there must be given together",
                "nouns.tsv:4: english: \"Ring\" does not consist of lower-case words",
                "nouns.tsv:4: classes: \"thng\" is not a known name",
                "nouns.tsv:4: classes: at least one name is needed",
                "compounds.tsv:3: list: \"hut\" is not used by any noun",
                "compounds.tsv:4: list: \"ring\" must be adjacent to the other rows of its list",
            ]
        );
    }

    #[test]
    fn all_faults_of_a_verb_are_reported() {
        let columns = VERBS.columns;
        let row = "speech\tplain\tfort\tgehe\tgeht\tging\tist\tgeganges\tgo,went =x\t-\t-\t-\tauf\t-\t-\t-\
            \tplace\t-\t120\tspeed\t-\tgen\tlazy\n";
        let text = [&columns.join("\t"), "\n", row].concat().leak();
        let mut faults = Vec::new();
        verbs(&File { name: "verbs.tsv", text, columns }, &mut faults);
        let found: Vec<&str> = faults.iter().map(|fault| fault.what.as_str()).collect();
        assert_eq!(
            found,
            [
                "case: \"-\" is not one of nom, acc, dat, gen",
                "prepositional_object: at least one name is needed",
                "direction_percent: 120 is not between 1 and 100",
                "traits: \"lazy\" is not a known name",
                "preposition, case and prepositional_object must be given together",
                "place and place_percent must be given together",
                "particle: not a known separable particle",
                "infinitive: must end in n",
                "participle: must end in n or t",
                "reflexive: must be acc or dat",
                "kind: not allowed in this group",
                "subject: missing, or given although the grammar sets it",
                "english: \"go,went =x\": expected the base form, or base form, past and participle",
            ]
        );
    }

    #[test]
    fn numbers_are_built_from_units_and_tens() {
        let lexicon = lexicon();
        let made = |n| lexicon.number(n);
        assert_eq!(made(7), ("sieben".to_string(), "seven".to_string()));
        assert_eq!(made(30), ("dreißig".to_string(), "thirty".to_string()));
        assert_eq!(made(99), ("neunundneunzig".to_string(), "ninety-nine".to_string()));
    }
}
