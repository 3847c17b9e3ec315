//! Splits a file of JSON into its values: one per line, or the elements of one array, or one object.

/// Returns the values of a file, each with its line: the elements if the file is one array of objects or of arrays, else
/// the values one after another. Text that is not JSON is returned as it is, to be reported.
pub(super) fn elements(bytes: &[u8]) -> Vec<(u64, &[u8])> {
    let values = values(bytes, 1);
    // A file of one array is a file of lists or candidates; an array per line is a list per line.
    if let [(line, only)] = values[..]
        && only.first() == Some(&b'[')
    {
        let inner = &only[1..only.len() - usize::from(only.last() == Some(&b']'))];
        let inside = self::values(inner, line);
        // Candidates of one segment are not told from a list of segments by their form: objects without a list inside, and
        // without an id, are the candidates of one segment.
        if only.last() == Some(&b']') && inside.iter().all(|(_, v)| matches!(v.first(), Some(b'{' | b'['))) {
            return if inside.iter().all(|(_, v)| v.first() == Some(&b'{') && is_bare(v)) {
                values
            } else {
                inside
            };
        }
    }
    values
}

/// Returns whether an object is a candidate without id and without a list of candidates, judged by its text.
fn is_bare(object: &[u8]) -> bool {
    let has = |key: &str| memchr::memmem::find(object, format!("\"{key}\"").as_bytes()).is_some();
    let list = super::LIST.iter().any(|k| has(k));
    let id = super::ID.iter().any(|k| has(k));
    !list && !id && !has("input")
}

/// Returns the JSON values in a text, separated by white space or commas, each with its line.
fn values(bytes: &[u8], first_line: u64) -> Vec<(u64, &[u8])> {
    let mut all = Vec::new();
    let (mut at, mut line) = (0, first_line);
    while at < bytes.len() {
        let b = bytes[at];
        if b.is_ascii_whitespace() || b == b',' && !all.is_empty() {
            line += u64::from(b == b'\n');
            at += 1;
            continue;
        }
        let end = at + length(&bytes[at..]);
        all.push((line, &bytes[at..end]));
        line += memchr::memchr_iter(b'\n', &bytes[at..end]).count() as u64;
        at = end;
    }
    all
}

/// Returns the length of the value that a text begins with; anything but an object or array ends with the line.
fn length(bytes: &[u8]) -> usize {
    let (mut depth, mut at, mut quoted) = (0usize, 0, false);
    let nested = matches!(bytes.first(), Some(b'{' | b'['));
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quoted => at += 1,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => depth += 1,
            b'}' | b']' if !quoted => {
                depth = depth.saturating_sub(1);
                if depth == 0 && nested {
                    return at + 1;
                }
            }
            b'\n' if !nested => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}
