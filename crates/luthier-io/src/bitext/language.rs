//! Language tags: matching, and recognition in headers.

/// Two-letter codes of ISO 639-1.
const TWO_LETTERS: &str = "aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv \
    cy da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie \
    ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk \
    ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se \
    sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo \
    xh yi yo za zh zu";

/// Returns the subtags of a language tag or of a locale: `pt-BR`, `pt_BR.UTF-8` and `sr@latin` are accepted.
fn subtags(tag: &str) -> impl Iterator<Item = &str> {
    tag.trim().split(['-', '_', '.', '@'])
}

/// Returns the first subtag of a language tag in lower case, such as `en` for `en-US`.
pub(super) fn primary(tag: &str) -> String {
    subtags(tag).next().unwrap_or_default().to_ascii_lowercase()
}

/// Returns how a language tag in a file matches the one asked for: `Some(0)` if they are equal, `Some(n)` if it
/// has n further subtags, `None` if it does not match. Case does not matter.
pub(super) fn distance(wanted: &str, found: &str) -> Option<usize> {
    let mut rest = subtags(found);
    let begins = subtags(wanted).all(|w| rest.next().is_some_and(|f| w.eq_ignore_ascii_case(f)));
    begins.then(|| rest.count())
}

/// Returns whether a language tag in a file is the language asked for.
pub(super) fn matches(wanted: &str, found: &str) -> bool {
    distance(wanted, found).is_some()
}

/// Returns whether a text has the form of a language tag.
pub(super) fn is_tag(text: &str) -> bool {
    let is_subtag = |s: &str| (1..=8).contains(&s.len()) && s.bytes().all(|b| b.is_ascii_alphanumeric());
    subtags(text).all(is_subtag) && (2..=3).contains(&primary(text).len())
}

/// Returns whether a text is a language tag that begins with a two-letter code. Three-letter codes cannot be told
/// from words such as "dog".
pub(super) fn is_code(text: &str) -> bool {
    is_tag(text) && TWO_LETTERS.split_whitespace().any(|code| code == primary(text))
}

/// How a part of a file in one language pair is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    /// Source and target are exchanged.
    Backward,
    /// Not in the languages asked for.
    Other,
}

impl Direction {
    /// Compares the languages asked for with those of a file; a language that is not named matches any.
    pub(super) fn of(wanted: Option<(&str, &str)>, source: Option<&str>, target: Option<&str>) -> Self {
        let Some((from, to)) = wanted else { return Direction::Forward };
        let fits = |w: &str, found: Option<&str>| found.is_none_or(|f| matches(w, f));
        match (fits(from, source) && fits(to, target), fits(to, source) && fits(from, target)) {
            (true, _) => Direction::Forward,
            (false, true) => Direction::Backward,
            (false, false) => Direction::Other,
        }
    }

    /// Returns a pair in this direction.
    pub(super) fn order<T>(self, source: T, target: T) -> (T, T) {
        if self == Direction::Backward { (target, source) } else { (source, target) }
    }
}
