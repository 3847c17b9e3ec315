//! English inflection: plurals, verb forms, and the indefinite article.
//!
//! Irregular past forms are in the lexicon; other forms follow from the rules and exceptions in this module,
//! which cover the words of the lexicon only.

use crate::lexicon::names::Agreement;

fn is_vowel(c: char) -> bool {
    "aeiou".contains(c)
}

/// Returns the plural of a noun.
pub(super) fn plural(word: &str) -> String {
    match word {
        "child" => return "children".to_string(),
        "person" => return "people".to_string(),
        "thief" => return "thieves".to_string(),
        "knife" => return "knives".to_string(),
        "potato" | "tomato" => return format!("{word}es"),
        _ => {}
    }
    if let Some(stem) = word.strip_suffix("man") {
        return format!("{stem}men");
    }
    with_s(word)
}

/// Adds the ending -s of plurals and of the third person singular.
fn with_s(word: &str) -> String {
    let before = word.chars().rev().nth(1);
    if let Some(stem) = word.strip_suffix('y')
        && !before.is_some_and(is_vowel)
    {
        return format!("{stem}ies");
    }
    let hiss = word.ends_with(['s', 'x', 'z']) || word.ends_with("ch") || word.ends_with("sh");
    format!("{word}{}", if hiss || word == "go" || word == "do" { "es" } else { "s" })
}

/// Returns a verb with its last consonant doubled if -ed and -ing require it.
fn doubled(word: &str) -> String {
    let letters: Vec<char> = word.chars().rev().take(3).collect();
    let vowels = word.split(|c: char| !is_vowel(c)).filter(|group| !group.is_empty()).count();
    match letters[..] {
        [last, middle, first]
            if vowels == 1
                && !is_vowel(last)
                && !"wxy".contains(last)
                && is_vowel(middle)
                && !is_vowel(first) =>
        {
            format!("{word}{last}")
        }
        _ => word.to_string(),
    }
}

/// Form of an English verb that does not depend on the subject.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Base,
    Past,
    Participle,
    Ing,
}

/// Returns a form of a verb, which is given as `base` or `base,past,participle`.
pub(super) fn inflect(forms: &str, form: Form) -> String {
    let mut parts = forms.split(',');
    let base = parts.next().unwrap_or("");
    let listed = match form {
        Form::Base => Some(base),
        Form::Past => parts.next(),
        Form::Participle => parts.nth(1),
        Form::Ing => None,
    };
    if let Some(word) = listed {
        return word.to_string();
    }
    let silent = base.ends_with('e') && !base.ends_with("ee") && base != "be";
    if form == Form::Ing {
        return match base {
            "travel" => "travelling".to_string(),
            "lie" => "lying".to_string(),
            _ if silent => format!("{}ing", base.strip_suffix('e').unwrap_or(base)),
            _ => format!("{}ing", doubled(base)),
        };
    }
    match base.strip_suffix('y') {
        Some(stem) if !stem.ends_with(is_vowel) => format!("{stem}ied"),
        _ if silent => format!("{base}d"),
        _ => format!("{}ed", doubled(base)),
    }
}

/// Returns whether a verb has only one form, such as "can".
pub(super) fn is_invariable(base: &str) -> bool {
    ["can", "could", "must", "may", "should", "would", "will"].contains(&base)
}

/// Returns a finite form of a verb, which is given as `base` or `base,past,participle`.
pub(super) fn finite(forms: &str, past: bool, agreement: Agreement) -> String {
    let base = inflect(forms, Form::Base);
    match (base.as_str(), agreement) {
        (word, _) if is_invariable(word) => base,
        ("be", Agreement::Many) => if past { "were" } else { "are" }.to_string(),
        ("be", _) if past => "was".to_string(),
        ("be", Agreement::I) => "am".to_string(),
        ("be", Agreement::One) => "is".to_string(),
        ("have", _) if past => "had".to_string(),
        ("have", Agreement::One) => "has".to_string(),
        ("do", _) if past => "did".to_string(),
        (_, _) if past => inflect(forms, Form::Past),
        (_, Agreement::One) => with_s(&base),
        _ => base,
    }
}

/// Returns the indefinite article before a word.
pub(super) fn article(next: &str) -> &'static str {
    let odd = ["uni", "eu", "one", "use"].iter().any(|start| next.starts_with(start));
    if next.starts_with("hono") || (next.starts_with(is_vowel) && !odd) { "an" } else { "a" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_have_plurals() {
        let made = ["child", "policeman", "city", "key", "bus", "church", "tomato"].map(plural);
        assert_eq!(made, ["children", "policemen", "cities", "keys", "buses", "churches", "tomatoes"]);
    }

    #[test]
    fn verbs_have_regular_and_listed_forms() {
        let all = |forms| [Form::Base, Form::Past, Form::Participle, Form::Ing].map(|f| inflect(forms, f));
        assert_eq!(all("stop"), ["stop", "stopped", "stopped", "stopping"]);
        assert_eq!(all("carry"), ["carry", "carried", "carried", "carrying"]);
        assert_eq!(all("take,took,taken"), ["take", "took", "taken", "taking"]);
        let present =
            [Agreement::I, Agreement::One, Agreement::Many].map(|a| finite("be,was,been", false, a));
        assert_eq!(present, ["am", "is", "are"]);
        assert_eq!(finite("go,went,gone", false, Agreement::One), "goes");
        assert_eq!(finite("can", true, Agreement::One), "can");
    }

    #[test]
    fn the_article_follows_the_sound() {
        let made = ["apple", "pear", "university", "honorary"].map(article);
        assert_eq!(made, ["an", "a", "a", "an"]);
    }
}
