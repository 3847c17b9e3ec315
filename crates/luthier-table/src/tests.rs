use super::*;
use luthier_core::{ErrorKind, Progress, Step, Vocabulary, math};
use std::{
    fs,
    ops::ControlFlow,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

const PHRASES: &str = "\
das haus ||| the house ||| 0.6 0.55 0.7 0 ||| 0-0 1-1 ||| 80 70 49 ||| |||
das ||| the ||| 0.5 0.25 1e-05 1 ||| 0-0 ||| 1 2 3 ||| |||
das ||| that ||| 0.1 0.2 0.3 0.4 ||| 0-0 ||| 1 2 3 ||| |||
haus ||| house ||| 0.8 0.79 0.75 0.74 ||| 0-0 ||| 120 128 95
";
const REORDERING: &str = "\
das haus ||| the house ||| 0.6 0.2 0.2 0.5 0.3 0.2
haus ||| house ||| 0.1 0.1 0.8 0.2 0.2 0.6
";
const RULES: &str = "\
[X][X] haus [X] ||| house of [X][X] [X] ||| 0.1 0.2 0.3 0.4 ||| 0-2 1-0 ||| 1 2 1 ||| |||
[X][X] gibt [X][X] [X] ||| [X][X] gives [X][X] [X] ||| 1 1 1 1 ||| 0-2 1-1 2-0 ||| 1 1 1 ||| |||
";

fn read(table: &str, reordering: Option<&str>) -> luthier_core::Result<Table> {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("t"), table).unwrap();
    let other = reordering.map(|r| {
        fs::write(dir.path().join("r"), r).unwrap();
        dir.path().join("r")
    });
    read_text(&dir.path().join("t"), other.as_deref(), Progress::NONE)
}

fn node(table: &Table, source: &str) -> Option<Node> {
    let mut gaps = 0;
    source.split(' ').try_fold(table.root(), |node, word| {
        let symbol = if word == "[X]" {
            gaps += 1;
            GAPS[gaps - 1]
        } else {
            table.source_word(word)?
        };
        table.step(node, symbol)
    })
}

#[test]
fn text_is_found_again() {
    let table = read(PHRASES, Some(REORDERING)).unwrap();
    assert_eq!((table.len(), table.sources(), table.longest(), table.words()), (4, 3, 2, [2, 3]));
    let shape = Shape { scores: 4, reordering: 6, counts: 3, hierarchical: false };
    assert_eq!(table.shape(), shape);
    let (mut words, mut scores, mut links) = (Vec::new(), Vec::new(), Vec::new());
    let found = node(&table, "das").unwrap().entries();
    let texts: Vec<String> = found
        .clone()
        .map(|e| {
            table.target(e, &mut words);
            words.iter().map(|w| table.target_text(*w)).collect::<Vec<_>>().join(" ")
        })
        .collect();
    assert_eq!(texts, ["the", "that"]);
    table.scores(found.start, &mut scores);
    assert_eq!(scores[..4], [0.5, 0.25, 1e-5, 1.0].map(|p| math::ln(p) as f32));
    // The reordering table does not have this pair.
    assert_eq!(scores[4..], [0.0; 6]);
    let both = node(&table, "das haus").unwrap().entries();
    table.scores(both.start, &mut scores);
    assert_eq!((scores[3], scores[4]), (-100.0, math::ln(0.6) as f32));
    table.links(both.start, &mut links);
    assert_eq!(links, [(0, 0), (1, 1)]);
    table.counts(both.start, &mut scores);
    assert_eq!(scores, [80.0, 70.0, 49.0]);
    assert!(node(&table, "haus das").is_none() && table.source_word("house").is_none());
    assert!(node(&table, "haus").unwrap().entries().len() == 1);
}

#[test]
fn rules_know_which_gap_is_which() {
    let table = read(RULES, None).unwrap();
    assert!(table.shape().hierarchical);
    let mut target = Vec::new();
    // No source ends after the first gap, but two continue.
    assert!(node(&table, "[X]").unwrap().entries().is_empty());
    let e = node(&table, "[X] gibt [X]").unwrap().entries().start;
    table.target(e, &mut target);
    assert_eq!((target[0], target[2]), (GAPS[1], GAPS[0]));
    let e = node(&table, "[X] haus").unwrap().entries().start;
    table.target(e, &mut target);
    assert_eq!(target[2], GAPS[0]);
}

#[test]
fn written_and_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for (text, reordering) in [(PHRASES, Some(REORDERING)), (RULES, None)] {
        let table = read(text, reordering).unwrap();
        table.write(&at("t.bin")).unwrap();
        let mapped = Table::open(&at("t.bin")).unwrap();
        assert!(Table::is_binary(&at("t.bin")));
        assert_eq!(
            (mapped.len(), mapped.shape(), mapped.bytes()),
            (table.len(), table.shape(), table.bytes())
        );
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for e in 0..table.len() as u32 {
            table.scores(e, &mut a);
            mapped.scores(e, &mut b);
            assert_eq!(a, b);
        }
    }
    // Text out and in: the same numbers.
    let mut words = [Vocabulary::default(), Vocabulary::default()];
    let (f, e) = (words[0].add("haus"), words[1].add("house"));
    let entry = Entry {
        source: &[GAPS[0], f],
        target: &[e, e, GAPS[0]],
        links: &[(1, 0), (1, 1)],
        scores: &[0.333333333, 1.5e-7, 1.0, 0.0001],
        counts: &[123_456.5, 2.0, 1.25],
        reordering: &[],
    };
    let mut writer = TextWriter::create(&at("t.gz"), None, true).unwrap();
    writer.entry(&entry, &words[0], &words[1]).unwrap();
    writer.commit().unwrap();
    let mut input = luthier_io::Input::open(&at("t.gz")).unwrap();
    let mut line = Vec::new();
    input.line(&mut line).unwrap();
    assert_eq!(
        String::from_utf8(line).unwrap(),
        "[X][X] haus [X] ||| house house [X][X] [X] ||| 0.333333 1.5e-07 1 0.0001 ||| 1-0 1-1 0-2 ||| 123456 2 1.25 ||| |||"
    );
    assert_eq!(read_text(&at("t.gz"), None, Progress::NONE).unwrap().len(), 1);
}

#[test]
fn damaged_files_never_panic() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    read(PHRASES, Some(REORDERING)).unwrap().write(&path).unwrap();
    let whole = fs::read(&path).unwrap();
    let look = |path: &Path| {
        let Ok(table) = Table::open(path) else { return };
        let (mut words, mut numbers, mut links) = (Vec::new(), Vec::new(), Vec::new());
        for source in ["das", "das haus", "haus", "x"] {
            for e in node(&table, source).map_or(0..0, |n| n.entries()) {
                table.target(e, &mut words);
                table.scores(e, &mut numbers);
                table.counts(e, &mut numbers);
                table.links(e, &mut links);
                words.iter().filter(|w| (**w as usize) < table.words()[1]).for_each(|w| {
                    table.target_text(*w);
                });
            }
        }
    };
    for at in 0..whole.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            fs::write(&path, bytes).unwrap();
            look(&path);
        }
    }
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert!(Table::open(&path).unwrap_err().to_string().contains("truncated"));
}

#[test]
fn mistakes_in_text_are_reported() {
    for (table, reordering, expected) in [
        ("a ||| b\n", None, "t:1: the line has fewer than three fields; expected `source"),
        ("a ||| b ||| x 1 1 1\n", None, "t:1: the score is \"x\", expected a number, 0 or more"),
        ("a ||| b ||| -1\n", None, "the score is \"-1\""),
        ("a ||| b ||| NaN\n", None, "the score is \"NaN\""),
        (
            "a ||| b ||| 1\na ||| c ||| 1 1\n",
            None,
            "t:2: found 2 scores and 0 counts, expected 1 scores and 0 counts",
        ),
        (
            "a ||| b ||| 1 ||| 0-1\n",
            None,
            "t:1: found \"0-1\", expected a link such as 0-1 inside 1 source and 1 target words",
        ),
        (" ||| b ||| 1\n", None, "t:1: the source is empty, expected at least one word"),
        ("", None, "t: is empty, expected one phrase pair per line"),
        ("[X][X] a [X] ||| b [X] ||| 1\n", None, "the source has 1 gaps and the target 0"),
        (
            "[X][X] a [X] ||| b [X][X] [X] ||| 1 ||| 1-0\n",
            None,
            "the gaps of source and target are not linked one to one",
        ),
        ("[X][X] a [X] ||| b [X][X] [X] ||| 1 ||| 0-0 0-1\n", None, "the link 0-0 connects a gap and a word"),
        ("[X][S] a [X] ||| b [X][S] [X] ||| 1 ||| 0-1\n", None, "found the gap [X][S], expected [X][X]"),
        ("a ||| b ||| 1\na [X] ||| b [X] ||| 1\n", None, "t:2: found phrases and rules in one table"),
        ("a ||| b ||| 1\n", Some("b ||| b ||| 1 1 1 1 1 1\n"), "r: has no phrase pair in common with "),
        ("a ||| b ||| 1\n", Some("a ||| b ||| 1 1 1\n"), "r:1: found 3 probabilities, expected 6"),
        ("a ||| b ||| 1\n", Some("a ||| b ||| 1 1 1 0 1 1\n"), "r:1: the probability is \"0\""),
    ] {
        let message = read(table, reordering).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}\n{expected}");
    }
}

/// Whenever the callback returns stop, reading and compiling fail with kind `Interrupted`, and no file is
/// created.
#[test]
fn interrupted_work_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("t"), PHRASES).unwrap();
    fs::write(at("r"), REORDERING).unwrap();
    let calls = AtomicUsize::new(0);
    for last in 0.. {
        calls.store(0, Ordering::Relaxed);
        let stop = |step: &Step| {
            assert!(["lines", "entries"].contains(&step.what));
            match calls.fetch_add(1, Ordering::Relaxed) {
                n if n < last => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        };
        let compiled = read_text(&at("t"), Some(&at("r")), Progress::new(&stop));
        let Err(error) = compiled.and_then(|table| table.write(&at("t.bin"))) else {
            assert!(last >= 6, "{last}");
            break;
        };
        assert_eq!(error.kind(), ErrorKind::Interrupted);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }
    assert_eq!(Table::open(&at("t.bin")).unwrap().len(), 4);
}
