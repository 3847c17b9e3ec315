//! German inflection: declension of determiners, adjectives and nouns, conjugation of verbs.
//!
//! The lexicon gives a few forms of each word; other forms follow from the rules and exceptions in this
//! module, which cover the words of the lexicon only.

use crate::lexicon::names::class::{MEASURE, PRICE};
use crate::lexicon::names::{Case, Person};
use crate::lexicon::{Column, Noun, Verb, lexicon};
use crate::tree::Det;

/// A table of forms or endings by case, then by column: masculine, feminine, neuter, plural.
pub(super) struct Endings([[&'static str; 4]; 4]);

impl Endings {
    /// Returns the ending for a case and column.
    pub(super) fn get(&self, case: Case, column: Column) -> &'static str {
        self.0[case as usize][column as usize]
    }
}

/// Forms of the definite article.
pub(super) const DER: Endings = Endings([
    ["der", "die", "das", "die"],
    ["den", "die", "das", "die"],
    ["dem", "der", "dem", "den"],
    ["des", "der", "des", "der"],
]);
/// Strong endings, of "dieser" and of adjectives without determiner.
const STRONG: Endings = Endings([
    ["er", "e", "es", "e"],
    ["en", "e", "es", "e"],
    ["em", "er", "em", "en"],
    ["es", "er", "es", "er"],
]);
/// Endings of "ein".
const EIN: Endings =
    Endings([["", "e", "", "e"], ["en", "e", "", "e"], ["em", "er", "em", "en"], ["es", "er", "es", "er"]]);
/// Weak endings, of adjectives after "der".
const WEAK: Endings = Endings([["e", "e", "e", "en"], ["en", "e", "e", "en"], ["en"; 4], ["en"; 4]]);
/// Mixed endings, of adjectives after "ein".
const MIXED: Endings = Endings([["er", "e", "es", "en"], ["en", "e", "es", "en"], ["en"; 4], ["en"; 4]]);

/// Returns a noun in a case and number.
pub(super) fn noun(noun: &Noun, case: Case, plural: bool) -> String {
    if plural {
        let bare =
            case != Case::Dat || noun.plural.ends_with(['n', 's']) || noun.class & (PRICE | MEASURE) != 0;
        return format!("{}{}", noun.plural, if bare { "" } else { "n" });
    }
    if noun.weak && case != Case::Nom {
        return noun.plural.to_string();
    }
    let genitive = case == Case::Gen && noun.column != Column::Feminine;
    format!("{}{}", noun.german, if genitive { genitive_ending(noun.german) } else { "" })
}

/// Returns the genitive ending of a masculine or neuter noun.
fn genitive_ending(word: &str) -> &'static str {
    let vowels = "aeiouäöüy";
    let groups = word.split(|c: char| !vowels.contains(c)).filter(|group| !group.is_empty()).count();
    let hiss = word.ends_with(['s', 'ß', 'z', 'x']);
    let short = groups < 2
        && !word.ends_with(|c: char| vowels.contains(c))
        && !["chef", "koch", "park"].contains(&word);
    if hiss || short { "es" } else { "s" }
}

/// Returns a determiner, and the endings of adjectives after it.
pub(super) fn determiner(det: &Det, case: Case, column: Column) -> (String, Endings) {
    let with = |stem: &str, endings: &Endings| format!("{stem}{}", endings.get(case, column));
    match det {
        Det::None | Det::Any => (String::new(), STRONG),
        Det::Def | Det::Bare => (with("", &DER), WEAK),
        Det::Indef => (with("ein", &EIN), MIXED),
        Det::Kein => (with("kein", &EIN), MIXED),
        Det::Poss(owner) => {
            let stem = lexicon().pronoun(*owner).possessive;
            let shortened = stem == "euer" && !EIN.get(case, column).is_empty();
            (with(if shortened { "eur" } else { stem }, &EIN), MIXED)
        }
        Det::This => (with("dies", &STRONG), WEAK),
        Det::Each => (with("jed", &STRONG), WEAK),
        Det::All => (with("all", &STRONG), WEAK),
        Det::Which => (with("welch", &STRONG), WEAK),
        Det::Some => ("etwas".to_string(), STRONG),
        Det::Number(n) => (lexicon().number(*n).0, STRONG),
        Det::Quantity(words) => (with(words.german, &STRONG), STRONG),
        Det::Name(name) => (format!("{name}s"), STRONG),
    }
}

/// Returns an attributive adjective with its ending.
pub(super) fn adjective(adjective: &str, ending: &str) -> String {
    let stem = match adjective {
        "teuer" => "teur",
        "dunkel" => "dunkl",
        "hoch" => "hoh",
        _ => adjective.strip_suffix('e').unwrap_or(adjective),
    };
    format!("{stem}{ending}")
}

/// Irregular present forms: infinitive, and forms by person.
const IRREGULAR: &[(&str, [&str; 6])] = &[
    ("sein", ["bin", "bist", "ist", "sind", "seid", "sind"]),
    ("werden", ["werde", "wirst", "wird", "werden", "werdet", "werden"]),
    ("wissen", ["weiß", "weißt", "weiß", "wissen", "wisst", "wissen"]),
    ("halten", ["halte", "hältst", "hält", "halten", "haltet", "halten"]),
    ("laden", ["lade", "lädst", "lädt", "laden", "ladet", "laden"]),
    ("haben", ["habe", "hast", "hat", "haben", "habt", "haben"]),
];

/// Returns whether a stem needs an "e" before the ending -t.
fn is_dental(stem: &str) -> bool {
    stem.ends_with(['t', 'd']) || stem.ends_with("ffn") || stem.ends_with("gn")
}

/// Returns a finite form of a verb, without its particle.
pub(super) fn finite(verb: &Verb, person: Person, past: bool) -> String {
    if past { preterite(verb.preterite, person) } else { present(verb.infinitive, verb.present, person) }
}

/// Returns a preterite form, from that of the third person singular.
pub(super) fn preterite(third: &str, person: Person) -> String {
    let dental = is_dental(third);
    match person {
        Person::FirstSingular | Person::ThirdSingular => third.to_string(),
        Person::SecondSingular => {
            format!("{third}{}st", if dental || third.ends_with(['s', 'ß']) { "e" } else { "" })
        }
        Person::FirstPlural | Person::ThirdPlural => {
            format!("{third}{}", if third.ends_with('e') { "n" } else { "en" })
        }
        Person::SecondPlural => format!("{third}{}t", if dental { "e" } else { "" }),
    }
}

/// Returns a present form, from the infinitive and the third person singular.
fn present(infinitive: &str, third: &str, person: Person) -> String {
    if let Some(entry) = IRREGULAR.iter().find(|entry| entry.0 == infinitive) {
        return entry.1[person as usize].to_string();
    }
    let stem = infinitive.strip_suffix("en").or_else(|| infinitive.strip_suffix('n')).unwrap_or(infinitive);
    let bare = third.strip_suffix('t').unwrap_or(third);
    match person {
        Person::FirstSingular if infinitive.ends_with("eln") => {
            format!("{}le", stem.strip_suffix("el").unwrap_or(stem))
        }
        Person::FirstSingular => format!("{stem}e"),
        Person::SecondSingular => {
            format!("{bare}{}", if bare.ends_with(['s', 'ß', 'z']) { "t" } else { "st" })
        }
        Person::ThirdSingular => third.to_string(),
        Person::SecondPlural => format!("{stem}{}t", if is_dental(stem) { "e" } else { "" }),
        Person::FirstPlural | Person::ThirdPlural => infinitive.to_string(),
    }
}

/// Returns a finite form of "sein", "haben" or "werden".
pub(super) fn auxiliary(infinitive: &str, person: Person, past: bool) -> String {
    if !past {
        return present(infinitive, "", person);
    }
    let third = match infinitive {
        "sein" => "war",
        "werden" => "wurde",
        _ => "hatte",
    };
    preterite(third, person)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_are_declined() {
        let find = |german: &str| lexicon().nouns.iter().find(|noun| noun.german == german).unwrap();
        let all = |german: &str| {
            [Case::Nom, Case::Acc, Case::Dat, Case::Gen].map(|case| noun(find(german), case, false))
        };
        assert_eq!(all("zug"), ["zug", "zug", "zug", "zuges"]);
        assert_eq!(all("koffer"), ["koffer", "koffer", "koffer", "koffers"]);
        assert_eq!(all("tourist"), ["tourist", "touristen", "touristen", "touristen"]);
        assert_eq!(all("brücke"), ["brücke"; 4]);
        assert_eq!(noun(find("zug"), Case::Dat, true), "zügen");
    }

    #[test]
    fn verbs_are_conjugated() {
        let persons = [
            Person::FirstSingular,
            Person::SecondSingular,
            Person::ThirdSingular,
            Person::FirstPlural,
            Person::SecondPlural,
            Person::ThirdPlural,
        ];
        let present = |infinitive, third| persons.map(|person| present(infinitive, third, person));
        assert_eq!(present("fahren", "fährt"), ["fahre", "fährst", "fährt", "fahren", "fahrt", "fahren"]);
        assert_eq!(
            present("arbeiten", "arbeitet"),
            ["arbeite", "arbeitest", "arbeitet", "arbeiten", "arbeitet", "arbeiten"]
        );
        assert_eq!(
            persons.map(|person| preterite("fand", person)),
            ["fand", "fandest", "fand", "fanden", "fandet", "fanden"]
        );
        assert_eq!(
            persons.map(|person| auxiliary("sein", person, false)),
            ["bin", "bist", "ist", "sind", "seid", "sind"]
        );
    }
}
