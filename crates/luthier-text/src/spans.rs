//! Protected spans: parts of a line that a translation must contain unchanged, such as URLs, placeholders and tags.

use crate::tokenise::is_character;

/// Joiner: marks a token that is attached to its left or right neighbour (before or after the token's own text).
pub const JOINER: char = '\u{ffed}';

/// Token for a blank between two characters of a script without blanks.
pub(crate) const BLANK: char = '\u{2581}';

/// Stands for a blank inside a token.
pub(crate) const INNER_BLANK: char = '\u{2423}';

/// First character of a placeholder token.
pub(crate) const OPEN: char = '\u{27e6}';

/// Last character of a placeholder token.
pub(crate) const CLOSE: char = '\u{27e7}';

/// Class of a protected span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpanClass {
    /// Web address.
    Url,
    /// E-mail address.
    Mail,
    /// Path, or file name with a common extension.
    File,
    /// Code between back-quotes.
    Code,
    /// Placeholder of a format string: `%s`, `%(name)d`, `{0}`, `{name}`, `${name}`.
    Format,
    /// XML or HTML tag, comment or character reference.
    Tag,
    /// Number, date or version of two or more digits.
    Number,
    /// Character that tokens use as a mark.
    Mark,
}

impl SpanClass {
    /// Returns the name of the class in placeholder tokens such as `⟦url1⟧`.
    pub fn name(self) -> &'static str {
        match self {
            SpanClass::Url => "url",
            SpanClass::Mail => "mail",
            SpanClass::File => "file",
            SpanClass::Code => "code",
            SpanClass::Format => "fmt",
            SpanClass::Tag => "tag",
            SpanClass::Number => "num",
            SpanClass::Mark => "mark",
        }
    }
}

/// A protected span of a line, as byte positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// First byte of the span.
    pub start: usize,
    /// End of the span, exclusive.
    pub end: usize,
    /// Class of the span.
    pub class: SpanClass,
}

/// Returns the protected spans of a line in order; they do not overlap.
///
/// ```
/// use luthier_text::protected_spans;
///
/// let line = "Run `make all` in ~/src, see <b>https://x.org/a(b)</b>, and/or print %d of {0}.";
/// let found: Vec<&str> = protected_spans(line).iter().map(|s| &line[s.start..s.end]).collect();
/// assert_eq!(found, ["`make all`", "~/src", "<b>", "https://x.org/a(b)", "</b>", "%d", "{0}"]);
/// ```
pub fn protected_spans(line: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    let (mut at, mut previous) = (0, ' ');
    while let Some(c) = line[at..].chars().next() {
        if c == ' ' {
            at += 1;
            previous = c;
            continue;
        }
        let plain = if is_word(previous) { 0 } else { plain_word(line.as_bytes(), at) };
        if plain > 0 {
            at += plain;
            previous = line[..at].chars().next_back().unwrap_or(' ');
        } else if let Some((length, class)) = span_at(&line[at..], c, previous) {
            spans.push(Span { start: at, end: at + length, class });
            at += length;
            previous = line[..at].chars().next_back().unwrap_or(' ');
            // What follows a span directly is not the beginning of a word, unless the span is a tag.
            if class == SpanClass::Tag {
                previous = ' ';
            }
        } else {
            at += c.len_utf8();
            previous = c;
        }
    }
    spans
}

/// Returns the length of the word of Latin letters and digits at `at` if it begins with a letter and nothing follows it that
/// addresses and file names have; else 0. Most words are skipped in this way.
fn plain_word(line: &[u8], at: usize) -> usize {
    let end = at + latin(&line[at..]);
    if end == at || line[at].is_ascii_digit() {
        return 0;
    }
    let stops = match line.get(end) {
        None => true,
        Some(b'.') => line.get(end + 1).is_none_or(|&b| b == b' '),
        Some(b) => b.is_ascii() && !b"+@%=~*$-/\\:#{}".contains(b),
    };
    if stops { end - at } else { 0 }
}

/// Returns the number of bytes of the Latin letters, digits and underscores that a text begins with.
#[inline]
pub(crate) fn latin(text: &[u8]) -> usize {
    let mut at = 0;
    loop {
        match text[at..] {
            [b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_', ..] => at += 1,
            // From `À` to `ɏ`, but `×` and `÷`.
            [0xc3, 0x97 | 0xb7, ..] => return at,
            [0xc3..=0xc9, _, ..] => at += 2,
            _ => return at,
        }
    }
}

/// Returns the length in bytes and the class of the span at the beginning of `rest`, whose first character is `c`;
/// `previous` is the character before it.
fn span_at(rest: &str, c: char, previous: char) -> Option<(usize, SpanClass)> {
    if matches!(c, JOINER | BLANK | INNER_BLANK | OPEN | CLOSE) {
        return Some((c.len_utf8(), SpanClass::Mark));
    }
    let fixed = match c {
        '`' => code(rest).map(|n| (n, SpanClass::Code)),
        '<' => tag(rest).map(|n| (n, SpanClass::Tag)),
        '&' => entity(rest).map(|n| (n, SpanClass::Tag)),
        '%' | '{' | '$' => format_item(rest).map(|n| (n, SpanClass::Format)),
        _ => None,
    };
    if fixed.is_some() {
        return fixed;
    }
    if is_word(previous) || matches!(previous, '.' | '-' | '@' | '\\') {
        return None;
    }
    let url = || url(rest).map(|n| (n, SpanClass::Url));
    let mail = || mail(rest).map(|n| (n, SpanClass::Mail));
    let number = || if previous == '/' { None } else { number(rest).map(|n| (n, SpanClass::Number)) };
    let file = || if previous == '/' { None } else { file(rest).map(|n| (n, SpanClass::File)) };
    match c {
        '0'..='9' => mail().or_else(file).or_else(number),
        _ if c.is_ascii_alphabetic() || c == '_' => url().or_else(mail).or_else(file),
        '/' | '~' | '.' => file(),
        _ => None,
    }
}

/// Whether a character can be part of a word or an identifier.
pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Longest span in bytes; longer ones are text.
const LONGEST: usize = 300;

/// Length of code between back-quotes, one or two on each side.
fn code(rest: &str) -> Option<usize> {
    let quote = if rest.starts_with("``") { "``" } else { "`" };
    let inner = &rest[quote.len()..];
    let end = inner.find(quote)?;
    let tidy = !inner.starts_with(' ') && !inner[..end].ends_with(' ');
    (end > 0 && end <= LONGEST && tidy).then_some(end + 2 * quote.len())
}

/// Length of a tag, a comment or a CDATA section. Attributes need a `=`, so that `a <b and c> d` has no tag.
fn tag(rest: &str) -> Option<usize> {
    for (open, close) in [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")] {
        if rest.starts_with(open) {
            return rest.find(close).map(|n| n + close.len()).filter(|&n| n <= LONGEST);
        }
    }
    let inner = rest[1..].strip_prefix('/').unwrap_or(&rest[1..]);
    let name = inner.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | ':' | '.'))?;
    if name == 0 || !inner.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        return None;
    }
    let start = rest.len() - inner.len() + name;
    let end = start + rest[start..].find('>')?;
    let attributes = rest[start..end].trim_end_matches('/').trim();
    let is_attributes = attributes.is_empty() || (attributes.contains('=') && rest[start..].starts_with(' '));
    (is_attributes && end < LONGEST && !attributes.contains('<')).then_some(end + 1)
}

/// Length of a character reference such as `&amp;` or `&#160;`.
fn entity(rest: &str) -> Option<usize> {
    let end = rest.bytes().take(12).position(|b| b == b';')?;
    let name = &rest[1..end];
    let digits = name.strip_prefix('#');
    let is_name = name.len() > 1 && name.bytes().all(|b| b.is_ascii_alphanumeric());
    let is_code =
        digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_hexdigit() || b == b'x'));
    (is_name || is_code).then_some(end + 1)
}

/// Length of a placeholder of a format string.
fn format_item(rest: &str) -> Option<usize> {
    let bytes = rest.as_bytes();
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'[' | b']');
    let braced = |from: usize, close: u8| -> Option<usize> {
        let n = bytes[from..].iter().take_while(|b| is_name(b)).count();
        (bytes.get(from + n) == Some(&close)).then_some(from + n + 1)
    };
    match bytes {
        [b'{', b'{', ..] => braced(2, b'}').filter(|&n| n > 3 && bytes.get(n) == Some(&b'}')).map(|n| n + 1),
        [b'{', ..] => braces(bytes, is_name),
        [b'$', b'{', ..] => braced(2, b'}').filter(|&n| n > 3),
        [b'$', b'(', ..] => braced(2, b')').filter(|&n| n > 3),
        [b'%', b'{', ..] => braced(2, b'}').filter(|&n| n > 3),
        [b'%', ..] => percent(bytes),
        _ => None,
    }
}

/// Length of `{}`, `{0}`, `{name}`, `{0:.2f}` or `{name!r}`.
fn braces(bytes: &[u8], is_name: impl Fn(&u8) -> bool) -> Option<usize> {
    let name = 1 + bytes[1..].iter().take_while(|b| is_name(b)).count();
    let begins =
        bytes.get(1).is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'}' | b':' | b'!'));
    let end = match bytes.get(name)? {
        b'}' => name,
        b':' | b'!' => name + bytes[name..].iter().take(20).position(|b| matches!(b, b'}' | b' ' | b'{'))?,
        _ => return None,
    };
    (begins && bytes[end] == b'}').then_some(end + 1)
}

/// Length of a conversion of `printf` or of Python: flags, width, precision and type.
fn percent(bytes: &[u8]) -> Option<usize> {
    let mut at = 1;
    let skip = |at: &mut usize, set: &[u8]| {
        while bytes.get(*at).is_some_and(|b| set.contains(b)) {
            *at += 1;
        }
    };
    if bytes.get(1) == Some(&b'(') {
        let close = bytes.iter().take(60).position(|&b| b == b')')?;
        if !bytes[2..close].iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_') {
            return None;
        }
        at = close + 1;
    }
    skip(&mut at, b"0123456789$");
    skip(&mut at, b"-+#0");
    skip(&mut at, b"0123456789*.");
    let begin = at;
    skip(&mut at, b"hlLqjzt");
    let is_type = |b: u8| b"sdiouxXeEfFgGcrapn@".contains(&b);
    // A length such as `l` may be the type's own letter in `%li`, or none in `%lorem`.
    let end = if bytes.get(at).copied().is_some_and(is_type) { at } else { begin };
    if !bytes.get(end).copied().is_some_and(is_type) {
        // `%1` and `%n` of other toolkits.
        let digits = bytes[1..].iter().take_while(|b| b.is_ascii_digit()).count();
        let after = bytes.get(1 + digits);
        return (digits > 0 && digits < 3 && after.is_none_or(|b| !b.is_ascii_alphanumeric()))
            .then_some(1 + digits);
    }
    let after = bytes.get(end + 1);
    after.is_none_or(|b| !b.is_ascii_alphanumeric() && *b < 0x80).then_some(end + 1)
}

/// Length of a web address.
fn url(rest: &str) -> Option<usize> {
    const SCHEMES: [&str; 8] =
        ["https://", "http://", "ftp://", "ftps://", "sftp://", "file://", "git://", "ssh://"];
    let lower = rest.get(..8).unwrap_or(rest).to_ascii_lowercase();
    let scheme = SCHEMES.iter().find(|s| lower.starts_with(**s)).map(|s| s.len());
    let scheme = scheme.or_else(|| lower.starts_with("www.").then_some(4))?;
    let end = rest.find(|c: char| {
        c.is_whitespace() || is_character(c) || matches!(c, '<' | '>' | '"' | '`' | '“' | '”' | '»' | '«')
    });
    let length = without_punctuation(&rest[..end.unwrap_or(rest.len())]);
    let host = rest
        .get(scheme..scheme + 1)
        .is_some_and(|h| h.starts_with(|c: char| c.is_alphanumeric() || c == '[' || c == '/'));
    (length > scheme && host).then_some(length)
}

/// Returns the length of an address or path without the punctuation that follows it.
fn without_punctuation(text: &str) -> usize {
    let mut text = text;
    while let Some(last) = text.chars().next_back() {
        let open = match last {
            ')' => '(',
            ']' => '[',
            '}' => '{',
            '.' | ',' | ';' | ':' | '!' | '?' | '\'' | '’' | '*' => {
                text = &text[..text.len() - last.len_utf8()];
                continue;
            }
            _ => break,
        };
        if text.matches(open).count() >= text.matches(last).count() {
            break;
        }
        text = &text[..text.len() - last.len_utf8()];
    }
    text.len()
}

/// Length of an e-mail address.
fn mail(rest: &str) -> Option<usize> {
    let bytes = rest.as_bytes();
    let is_local = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'+' | b'-' | b'%');
    let local = bytes.iter().take(80).take_while(is_local).count();
    if bytes.get(local) != Some(&b'@') {
        return None;
    }
    let host = &bytes[local + 1..];
    let is_host = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-');
    let length = host.iter().take_while(is_host).count();
    let host = rest[local + 1..local + 1 + length].trim_end_matches(['.', '-']);
    let top = host.rsplit_once('.')?.1;
    let is_top = top.len() > 1 && top.bytes().all(|b| b.is_ascii_alphabetic());
    is_top.then_some(local + 1 + host.len())
}

/// Extensions of file names that are protected without a path.
const EXTENSIONS: [&str; 84] = [
    "7z", "avi", "bak", "bat", "bin", "bmp", "bz2", "c", "cc", "cfg", "conf", "cpp", "css", "csv", "dat",
    "db", "deb", "dll", "doc", "docx", "egg", "eps", "exe", "gif", "go", "gz", "h", "hpp", "htm", "html",
    "ico", "ini", "iso", "jar", "java", "jpeg", "jpg", "js", "json", "lock", "log", "md", "mkv", "mo", "mp3",
    "mp4", "odt", "ogg", "pdf", "php", "pl", "png", "po", "pot", "ppt", "pptx", "ps", "py", "pyc", "pyi",
    "pyw", "rar", "rb", "rpm", "rs", "rst", "rtf", "sh", "sql", "svg", "tar", "tex", "tgz", "tif", "tiff",
    "tmp", "toml", "ts", "tsv", "txt", "wav", "whl", "xls", "xlsx",
];

/// Extensions that are common as words or in abbreviations, and so need a path or an identifier before them.
const MORE: [&str; 6] = ["xml", "xz", "yaml", "yml", "zip", "zst"];

/// Length of a path or of a file name with a common extension.
fn file(rest: &str) -> Option<usize> {
    let is_part = |c: char| (c.is_alphanumeric() && !is_character(c)) || "_.+@%=~*$-/\\:#{}".contains(c);
    let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
    let length = without_punctuation(&rest[..end]);
    let text = &rest[..length];
    let bytes = text.as_bytes();
    let drive = bytes.len() > 3
        && bytes[0].is_ascii_alphabetic()
        && bytes[1] == b':'
        && matches!(bytes[2], b'\\' | b'/');
    let rooted = ["/", "~/", "./", "../"].iter().any(|r| text.len() > r.len() + 1 && text.starts_with(r));
    let is_rooted = rooted && text.contains(char::is_alphanumeric) && !text.starts_with("//");
    let base = text.rsplit(['/', '\\']).next().unwrap_or(text);
    let known = |e: &str| EXTENSIONS.contains(&e) || MORE.contains(&e);
    let named = base.rsplit_once('.').is_some_and(|(stem, end)| {
        let is_stem =
            stem.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'+'));
        !stem.is_empty() && is_stem && known(end)
    });
    let plain = !text.contains([':', '{', '}', '=', '#', '%', '$', '*', '@']);
    // A word before a slash without an extension is text: and/or.
    (drive || is_rooted || (named && plain)).then_some(length).filter(|&n| n <= LONGEST)
}

/// Length of a number, date, time or version with two or more digits.
fn number(rest: &str) -> Option<usize> {
    let bytes = rest.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let (mut at, mut digits) = (0, 0);
    loop {
        if digit(at) {
            digits += 1;
            at += 1;
        } else if bytes.get(at).is_some_and(|b| b".,:/-".contains(b)) && digit(at + 1) {
            at += 1;
        } else {
            break;
        }
    }
    let after = rest[at..].chars().next();
    let is_open = after.is_some_and(|c| is_word(c) || matches!(c, '@' | '\''));
    // A full stop or hyphen before a letter belongs to a longer token: 3.x, 16-bit.
    let next = rest[at..].chars().nth(1);
    let goes_on = matches!(after, Some('.' | '-')) && next.is_some_and(is_word);
    (digits > 1 && !is_open && !goes_on && at < 40).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Vec<(&str, &'static str)> {
        protected_spans(line).iter().map(|s| (&line[s.start..s.end], s.class.name())).collect()
    }

    #[test]
    fn spans_of_each_class() {
        for (line, expected) in [
            ("see http://a.org/b.", vec![("http://a.org/b", "url")]),
            ("(see www.x.de)", vec![("www.x.de", "url")]),
            (
                "wiki https://en.wikipedia.org/wiki/A_(b), yes",
                vec![("https://en.wikipedia.org/wiki/A_(b)", "url")],
            ),
            ("mail a.b+c@d-e.co.uk!", vec![("a.b+c@d-e.co.uk", "mail")]),
            ("user@host no", vec![]),
            (
                "open setup.py, C:\\x\\y.txt and /usr/lib/x",
                vec![("setup.py", "file"), ("C:\\x\\y.txt", "file"), ("/usr/lib/x", "file")],
            ),
            ("and/or red/green/blue TCP/IP 1/2", vec![("1/2", "num")]),
            ("src/main.rs", vec![("src/main.rs", "file")]),
            ("`a b` and ``x`` ` `", vec![("`a b`", "code"), ("``x``", "code")]),
            (
                "%s %5.2f %(name)s %1$s %-10d 100% safe 50%",
                vec![
                    ("%s", "fmt"),
                    ("%5.2f", "fmt"),
                    ("%(name)s", "fmt"),
                    ("%1$s", "fmt"),
                    ("%-10d", "fmt"),
                    ("100", "num"),
                    ("50", "num"),
                ],
            ),
            (
                "{0} {} {name} {0:.2f} {x!r} {{y}} ${HOME} $(CC) {\"a\": 1} {1, 2}",
                vec![
                    ("{0}", "fmt"),
                    ("{}", "fmt"),
                    ("{name}", "fmt"),
                    ("{0:.2f}", "fmt"),
                    ("{x!r}", "fmt"),
                    ("{{y}}", "fmt"),
                    ("${HOME}", "fmt"),
                    ("$(CC)", "fmt"),
                ],
            ),
            (
                "<b>x</b><br/><a href=\"u v\">y</a> a <b and c> d &amp; &#160; R&D;",
                vec![
                    ("<b>", "tag"),
                    ("</b>", "tag"),
                    ("<br/>", "tag"),
                    ("<a href=\"u v\">", "tag"),
                    ("</a>", "tag"),
                    ("&amp;", "tag"),
                    ("&#160;", "tag"),
                ],
            ),
            (
                "12 3.11 1,000.5 2024-01-05 12:30 7 x86 3.x 16-bit 10th",
                vec![
                    ("12", "num"),
                    ("3.11", "num"),
                    ("1,000.5", "num"),
                    ("2024-01-05", "num"),
                    ("12:30", "num"),
                ],
            ),
            ("a\u{ffed}b", vec![("\u{ffed}", "mark")]),
        ] {
            assert_eq!(found(line), expected, "{line}");
        }
    }
}
