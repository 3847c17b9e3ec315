//! Realisation of German noun phrases, prepositional phrases and predicates.

use super::inflect;
use crate::lexicon::Noun;
use crate::lexicon::names::Case;
use crate::lexicon::{Column, Words, lexicon};
use crate::links::{Line, mark};
use crate::tree::{Det, Head, Phrase, Post, Predicate, Prepositional};

/// Realises a noun phrase without its relative clause, whose position depends on the rest of the sentence.
pub(super) fn phrase(phrase: &Phrase, case: Case) -> Line {
    let mark = phrase.mark;
    let mut out = match &phrase.head {
        // Pronouns are never in the genitive.
        Head::Pronoun(pronoun) => {
            Line::of(lexicon().pronoun(*pronoun).german[(case as usize).min(2)], &[mark + mark::NOUN])
        }
        Head::Name(german, _, _) if case == Case::Nom => Line::marked(german, mark),
        Head::Name(german, _, _) => Line::marked(&german.replace("herr_", "herrn_"), mark),
        Head::Relative(Column::Plural, _) if case == Case::Dat => Line::of("denen", &[mark + mark::NOUN]),
        Head::Relative(column, _) => Line::of(inflect::DER.get(case, *column), &[mark + mark::NOUN]),
        Head::Noun(noun, part) => with_noun(phrase, noun, *part, case),
    };
    match &phrase.post {
        Some(Post::Genitive(owner)) => {
            let mut words = self::phrase(owner, Case::Gen);
            if let Some(first) = words.first_mut() {
                first.marks.push(owner.mark + mark::PREPOSITION);
            }
            out.append(words);
        }
        Some(Post::Place(place)) => out.append(prepositional(place)),
        Some(Post::Of(what)) => out.append(self::phrase(what, Case::Nom)),
        Some(Post::Relative(_)) | None => {}
    }
    if let Some(other) = &phrase.and {
        out.put("und", &[mark + mark::AND]);
        out.append(self::phrase(other, case));
    }
    out
}

/// Realises a noun, optionally as a compound, with its determiner and adjectives.
fn with_noun(phrase: &Phrase, noun: &Noun, part: Option<Words>, case: Case) -> Line {
    let mark = phrase.mark;
    let column = phrase.column(noun);
    let (det, endings) = inflect::determiner(&phrase.det, case, column);
    let mut out = Line::of(&det, &[mark + mark::DETERMINER]);
    for (n, adjective) in (0..).zip(&phrase.adjectives) {
        let text = inflect::adjective(adjective.german, endings.get(case, column));
        out.put(&text, &[mark + mark::ADJECTIVE + n]);
    }
    let first = part.map_or("", |part| part.german);
    out.put(&format!("{first}{}", inflect::noun(noun, case, phrase.plural)), &[mark + mark::NOUN]);
    out
}

/// Contractions: preposition, article, contracted form.
const CONTRACTED: &[(&str, &str, &str)] = &[
    ("an", "dem", "am"),
    ("in", "dem", "im"),
    ("zu", "dem", "zum"),
    ("zu", "der", "zur"),
    ("in", "das", "ins"),
    ("an", "das", "ans"),
    ("bei", "dem", "beim"),
    ("von", "dem", "vom"),
];

/// Realises a prepositional phrase, with contraction of preposition and article.
pub(super) fn prepositional(p: &Prepositional) -> Line {
    let mut out = Line::of(p.preposition.german, &[p.phrase.mark + mark::PREPOSITION]);
    let mut words = phrase(&p.phrase, p.preposition.case);
    let article = matches!(p.phrase.det, Det::Def | Det::Bare) && !p.phrase.has_relative();
    if article && let (Some(last), Some(first)) = (out.last_mut(), words.first()) {
        let found = CONTRACTED.iter().find(|entry| entry.0 == last.text && entry.1 == first.text);
        if let Some(entry) = found {
            last.text = entry.2.to_string();
            last.marks.extend(&first.marks);
            words.remove_first();
        }
    }
    out.append(words);
    out
}

/// Realises a predicative adjective, optionally with a degree adverb or as a comparative.
pub(super) fn predicate(p: &Predicate) -> Line {
    let mut out = Line::new();
    if let Some(degree) = p.degree {
        out.put(degree.german, &[p.mark + mark::DEGREE]);
    }
    if let Some(than) = &p.than {
        out.put(p.adjective.comparative, &[p.mark + mark::PREDICATE]);
        out.put("als", &[p.mark + mark::THAN]);
        out.append(phrase(than, Case::Nom));
    } else {
        out.put(p.adjective.german, &[p.mark + mark::PREDICATE]);
    }
    out
}
