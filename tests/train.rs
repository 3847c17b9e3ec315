//! Tests of training from parallel text, with the real binary.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod common;

use common::{Failures, data, fails, in_dir, luthier, ok_in, stderr, stdout};
use luthier::{
    core::{
        math,
        random::{Purpose, Stream},
    },
    io::Input,
    table::Table,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::Command,
    time::Duration,
};

fn lines(path: &Path) -> Vec<String> {
    luthier::io::text::read_lines(path).unwrap().lines
}

/// Writes `f` and `e`: sentences of random words, and translations in which some words are swapped or dropped.
fn write_text(dir: &Path, sentences: usize) {
    let mut s = Stream::new(3, Purpose::Test, 0, 0);
    let (mut f, mut e) = (String::new(), String::new());
    for _ in 0..sentences {
        let words: Vec<u64> = (0..3 + s.below(9)).map(|_| s.below(40) * s.below(40) / 40).collect();
        let mut other = words.clone();
        if s.below(2) == 0 {
            let at = s.below(other.len() as u64 - 1) as usize;
            other.swap(at, at + 1);
        }
        if s.below(3) == 0 {
            other.remove(0);
        }
        f += &(words.iter().map(|w| format!("f{w}")).collect::<Vec<_>>().join(" ") + "\n");
        e += &(other.iter().map(|w| format!("e{w}")).collect::<Vec<_>>().join(" ") + "\n");
    }
    fs::write(dir.join("f"), f).unwrap();
    fs::write(dir.join("e"), e).unwrap();
}

/// Returns the files of a model directory by name, except the log, which contains times, and the lock.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    let name = |p: &Path| p.file_name().unwrap().to_string_lossy().into_owned();
    entries
        .filter(|p| !["train.jsonl", ".lock"].contains(&name(p).as_str()))
        .map(|p| (name(&p), fs::read(&p).unwrap()))
        .collect()
}

/// Reads a lexical translation table of Moses, whose probabilities have seven decimal digits.
fn moses_lexicon(path: &Path) -> BTreeMap<(String, String), f64> {
    let mut all = BTreeMap::new();
    for line in lines(path) {
        let words: Vec<&str> = line.split(' ').collect();
        all.insert((words[0].to_owned(), words[1].to_owned()), words[2].parse().unwrap());
    }
    all
}

/// Returns the lexical weight of a phrase under the probabilities `p`: the product over words of the mean over their links.
fn lexical(
    words: &[&str],
    others: &[&str],
    links: &[(usize, usize)],
    p: &BTreeMap<(String, String), f64>,
) -> f64 {
    let of = |w: &str, o: &str| p.get(&(w.to_owned(), o.to_owned())).copied().unwrap_or(0.0);
    words
        .iter()
        .enumerate()
        .map(|(i, w)| {
            let to: Vec<f64> = links.iter().filter(|l| l.0 == i).map(|l| of(w, others[l.1])).collect();
            if to.is_empty() { of(w, "NULL") } else { to.iter().sum::<f64>() / to.len() as f64 }
        })
        .product()
}

/// The text and alignment of the Moses run give the phrase and reordering tables of Moses.
#[test]
fn phrases_are_mosess() {
    let names = ["multi30k/train.de.gz", "multi30k/train.en.gz", "moses/model/alignments.de-en.gdfa.gz"];
    let found: Vec<_> = names.iter().filter_map(|n| data(n)).collect();
    let (Some(theirs), Some(moved), Some(f2e), Some(e2f), [de, en, links]) = (
        data("moses/model/phrase-table.gz"),
        data("moses/model/reordering-table.gz"),
        data("moses/model/lex.f2e.gz"),
        data("moses/model/lex.e2f.gz"),
        found.as_slice(),
    ) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let (de, en, links) = (de.display(), en.display(), links.display());
    ok_in(
        dir.path(),
        &format!("extract phrase --source {de} --target {en} --alignment {links} --output out -q"),
    );
    let ours = lines(&dir.path().join("out/phrase-table.gz"));
    let theirs = lines(&theirs);
    let (f2e, e2f) = (moses_lexicon(&f2e), moses_lexicon(&e2f));
    let (mut other_links, mut rounded) = (0, 0);
    assert_eq!(ours.len(), theirs.len());
    for (a, b) in ours.iter().zip(&theirs) {
        let [a, b]: [Vec<&str>; 2] = [a, b].map(|l| l.split(" ||| ").collect());
        // Pairs, order and counts are equal.
        assert_eq!((a[0], a[1], a[4]), (b[0], b[1], b[4]));
        let numbers = |t: &str| t.split(' ').map(|n| n.parse().unwrap()).collect::<Vec<f64>>();
        let (p, q) = (numbers(a[2]), numbers(b[2]));
        let near = |x: f64, y: f64| (x - y).abs() <= 1e-4 * x.max(y);
        assert!(near(p[0], q[0]) && near(p[2], q[2]), "{a:?} {b:?}");
        if near(p[1], q[1]) && near(p[3], q[3]) {
            continue;
        }
        // Lexical weights may differ by Moses' rounding of word probabilities, or by the choice among equally frequent
        // alignments.
        let pairs: Vec<(usize, usize)> = a[3]
            .split(' ')
            .map(|l| l.split_once('-').map(|(s, t)| (s.parse().unwrap(), t.parse().unwrap())).unwrap())
            .collect();
        let back: Vec<(usize, usize)> = pairs.iter().map(|&(s, t)| (t, s)).collect();
        let [f, e]: [Vec<&str>; 2] = [a[0], a[1]].map(|s| s.split(' ').collect());
        let theirs_of_ours = [lexical(&f, &e, &pairs, &e2f), lexical(&e, &f, &back, &f2e)];
        if near(theirs_of_ours[0], q[1]) && near(theirs_of_ours[1], q[3]) {
            rounded += 1;
        } else {
            // There is a choice of alignments only if the pair was extracted more than once.
            assert!(a[4].split(' ').nth(2).unwrap() != "1", "{a:?} {b:?}");
            other_links += 1;
        }
    }
    eprintln!(
        "{} pairs, all of Moses' and no other; lexical weights differ in {rounded} by Moses' rounding of word probabilities and \
         in {other_links} by the choice among equally frequent alignments",
        ours.len()
    );
    assert!(200 * other_links < ours.len());
    let trimmed = |path: &Path| lines(path).iter().map(|l| l.trim_end().to_owned()).collect::<Vec<_>>();
    let (ours, theirs) = (trimmed(&dir.path().join("out/reordering-table.gz")), trimmed(&moved));
    assert_eq!(ours.len(), theirs.len());
    for (a, b) in ours.iter().zip(&theirs) {
        assert_eq!(a, b);
    }
}

/// With `--loose --min-gap 2`, extraction gives more than 99.9 % of the rules of Moses and less than 0.1 % others.
#[test]
fn rules_are_mosess_with_its_limits() {
    let names = ["multi30k/train.de.gz", "multi30k/train.en.gz", "moses/model/alignments.de-en.gdfa.gz"];
    let found: Vec<_> = names.iter().filter_map(|n| data(n)).collect();
    let (Some(theirs), [de, en, links]) = (data("hiero/rule-table.gz"), found.as_slice()) else { return };
    let dir = tempfile::tempdir().unwrap();
    let (de, en, links) = (de.display(), en.display(), links.display());
    let make = |more: &str| {
        let output = in_dir(
            dir.path(),
            &format!(
                "extract hiero --source {de} --target {en} --alignment {links} --output out --max-span 5 {more}"
            ),
        );
        assert!(output.status.success());
        eprintln!("span 5 {more}: {}", stderr(&output).lines().find(|l| l.contains("rules of")).unwrap());
    };
    make("");
    make("--loose --min-gap 2");
    // Source, target, and the alignment of nonterminals.
    let key = |line: &String| {
        let fields: Vec<&str> = line.split(" ||| ").collect();
        let gaps: Vec<String> = (0..)
            .zip(fields[0].split(' '))
            .filter(|w| w.1 == "[X][X]")
            .map(|w| format!("{}-", w.0))
            .collect();
        let tied = |l: &&str| gaps.iter().any(|g| l.starts_with(g.as_str()));
        let mut ties: Vec<&str> = fields[3].split(' ').filter(tied).collect();
        ties.sort_unstable();
        format!("{} ||| {} ||| {}", fields[0], fields[1], ties.join(" "))
    };
    let ours: BTreeSet<String> = lines(&dir.path().join("out/rule-table.gz")).iter().map(key).collect();
    let theirs: BTreeSet<String> = lines(&theirs).iter().map(key).collect();
    let common = ours.intersection(&theirs).count();
    eprintln!("Moses has {} rules, {common} of them are among our {}", theirs.len(), ours.len());
    assert!(common as f64 > 0.999 * theirs.len() as f64 && ours.len() < theirs.len() + theirs.len() / 1000);
}

/// Models are bit-for-bit identical with any number of threads and any memory limit, and after interruptions.
#[test]
fn models_do_not_depend_on_the_machine() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write_text(dir, 3000);
    for kind in ["phrase", "hiero"] {
        let words = format!("train --source f --target e --kind {kind} --text-tables -q");
        ok_in(dir, &format!("{words} --model {kind}-1 --threads 1"));
        let expected = files(&dir.join(format!("{kind}-1")));
        assert!(expected.contains_key("luthier.toml") && expected.contains_key("table.bin"));
        for more in ["--threads 2", "--memory 1M", "--memory 1"] {
            let model = format!("{kind}{}", more.replace(' ', ""));
            ok_in(dir, &format!("{words} --model {model} {more}"));
            assert!(files(&dir.join(model)) == expected, "{kind} {more}");
        }
        let model = format!("{kind}-killed");
        let mut delay = 20;
        loop {
            let mut child = luthier()
                .args(words.split_whitespace())
                .args(["--model", &model])
                .current_dir(dir)
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(delay));
            delay += 60;
            if child.try_wait().unwrap().is_some() {
                break;
            }
            child.kill().unwrap();
            child.wait().unwrap();
        }
        ok_in(dir, &format!("{words} --model {model}"));
        assert!(files(&dir.join(model)) == expected);
        let line = in_dir(dir, &format!("{words} --model {kind}-1 --max-words 50"));
        assert_eq!(
            stderr(&line),
            format!(
                "luthier: {kind}-1: holds a model with other settings: max-words is 100 there and 50 here; use the same settings \
                 to resume, or another --model directory\n"
            )
        );
    }
    // Deleted files are created again.
    fs::remove_file(dir.join("phrase-1/table.bin")).unwrap();
    fs::remove_file(dir.join("phrase-1/alignment.gz")).unwrap();
    ok_in(dir, "train --source f --target e --text-tables -q --model phrase-1");
    assert!(files(&dir.join("phrase-1")) == files(&dir.join("phrase--threads2")));
    // Text tables can be compiled, and have the same entries as the binary table.
    ok_in(
        dir,
        "table compile phrase-1/phrase-table.gz --reordering phrase-1/reordering-table.gz -o again.bin -q",
    );
    let (ours, again) =
        (Table::open(&dir.join("phrase-1/table.bin")).unwrap(), Table::open(&dir.join("again.bin")).unwrap());
    assert_eq!((ours.len(), ours.sources(), ours.shape()), (again.len(), again.sources(), again.shape()));
    fs::write(dir.join("phrases"), "f1 f2\nf3\nnone\n").unwrap();
    let rows = |table: &str| {
        let text = ok_in(dir, &format!("table query {table} --input phrases --json"));
        text.lines().map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap()).collect::<Vec<_>>()
    };
    let (a, b) = (rows("phrase-1/table.bin"), rows("again.bin"));
    assert!(a.len() > 2 && a.len() == b.len());
    for (a, b) in a.iter().zip(&b) {
        assert_eq!((&a["source"], &a["target"]), (&b["source"], &b["target"]));
        for (x, y) in a["log_scores"].as_array().unwrap().iter().zip(b["log_scores"].as_array().unwrap()) {
            assert!((x.as_f64().unwrap() - y.as_f64().unwrap()).abs() < 1e-4);
        }
    }
}

/// The complete phrase and rule tables of Moses can be compiled and queried.
#[test]
fn mosess_tables_are_read() {
    let (Some(table), Some(moved), Some(rules)) = (
        data("moses/model/phrase-table.gz"),
        data("moses/model/reordering-table.gz"),
        data("hiero/rule-table.gz"),
    ) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let (table, moved, rules) = (table.display(), moved.display(), rules.display());
    ok_in(dir.path(), &format!("table compile {table} --reordering {moved} -o p.bin -q"));
    ok_in(dir.path(), &format!("table compile {rules} -o r.bin -q"));
    assert_eq!(Table::open(&dir.path().join("p.bin")).unwrap().len(), 791_368);
    assert_eq!(Table::open(&dir.path().join("r.bin")).unwrap().len(), 1_071_516);
    fs::write(dir.path().join("in"), "ein hund\n").unwrap();
    let text = ok_in(dir.path(), "table query p.bin --input in");
    // Compare p(f|e), which is 0.767241 in the table of Moses.
    let line = text.lines().find(|l| l.starts_with("ein hund ||| a dog ||| ")).unwrap();
    let mut input = Input::open(Path::new(&table.to_string())).unwrap();
    let mut buffer = Vec::new();
    while input.line(&mut buffer).unwrap() {
        let row = std::str::from_utf8(&buffer).unwrap();
        if row.starts_with("ein hund ||| a dog ||| ") {
            let theirs: f64 = row.split(" ||| ").nth(2).unwrap().split(' ').next().unwrap().parse().unwrap();
            let ours: f64 = line.split(" ||| ").nth(2).unwrap().split(' ').next().unwrap().parse().unwrap();
            assert!((math::ln(theirs) - ours).abs() < 1e-4);
            return;
        }
    }
    panic!("no such phrase");
}

/// The most frequent internal alignment of a phrase pair is kept, regardless of the context.
#[test]
fn the_most_frequent_links_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let repeat = |parts: [(&str, usize); 3]| parts.map(|(line, n)| format!("{line}\n").repeat(n)).concat();
    fs::write(dir.join("f"), repeat([("a b", 2), ("p a b q", 2), ("a b", 3)])).unwrap();
    fs::write(dir.join("e"), repeat([("x y", 2), ("r x y u", 2), ("x y", 3)])).unwrap();
    fs::write(dir.join("a"), repeat([("0-0", 2), ("0-3 1-1 3-0", 2), ("0-0 1-1", 3)])).unwrap();
    ok_in(dir, "extract phrase --source f --target e --alignment a --output out -q");
    let table = lines(&dir.join("out/phrase-table.gz"));
    let line = table.iter().find(|l| l.starts_with("a b ||| x y |||")).unwrap();
    assert!(line.contains("||| 0-0 ||| 11 11 7 |||"), "{line}");
}

#[test]
fn smoothed_probabilities_add_up() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write_text(dir, 400);
    ok_in(dir, "align --source f --target e -o a -q");
    ok_in(dir, "extract phrase --source f --target e --alignment a --output plain -q --max-length 3");
    ok_in(
        dir,
        "extract phrase --source f --target e --alignment a --output smooth -q --max-length 3 --smoothing kneser-ney",
    );
    let (mut plain, mut smooth) = (BTreeMap::<String, f64>::new(), BTreeMap::<String, f64>::new());
    let mut lower = 0;
    let both =
        lines(&dir.join("plain/phrase-table.gz")).into_iter().zip(lines(&dir.join("smooth/phrase-table.gz")));
    for (a, b) in both {
        let p =
            |l: &str| -> f64 { l.split(" ||| ").nth(2).unwrap().split(' ').nth(2).unwrap().parse().unwrap() };
        let source = a.split(" ||| ").next().unwrap().to_owned();
        *plain.entry(source.clone()).or_default() += p(&a);
        *smooth.entry(source).or_default() += p(&b);
        lower += usize::from(p(&b) < p(&a));
    }
    // Relative frequencies sum to 1; smoothed probabilities reserve mass for unseen translations.
    assert!(plain.values().all(|t| (t - 1.0).abs() < 1e-4));
    assert!(smooth.values().all(|&t| t < 1.0 + 1e-4 && t > 0.0) && lower > 100);
}

#[test]
fn bad_input_is_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().display();
    let put = |name: &str, text: &[u8]| fs::write(dir.path().join(name), text).unwrap();
    put("f3", b"a b\nc\nd e f\n");
    put("e2", b"x y\nz\n");
    put("e3", b"x y\nz\nu v w\n");
    put("empty", b"");
    put("blank", b"\n \n\t\n");
    put("latin", b"a b\nc \xfc\nd\n");
    put("links", b"0-0 1-1\n0-0\n0-0 3-1\n");
    put("few", b"0-0\n0-0\n");
    put("odd", b"0-0 1:1\n0-0\n0-0\n");
    let made = |words: &str| fails(&words.replace('@', &format!("{at}/"))).replace(&format!("{at}/"), "");
    let cases = [
        (
            "align --source @f3 --target @e2",
            "luthier: e2:3: the file ends after line 2, but f3 has 3 lines; give files in which line N of one is the translation of line N of the other; is the file truncated?",
        ),
        (
            "train --source @e2 --target @f3 --model @m",
            "luthier: e2:3: the file ends after line 2, but f3 has 3 lines; give files in which line N of one is the translation of line N of the other; is the file truncated?",
        ),
        (
            "align --source @empty --target @empty",
            "luthier: empty: is empty; expected one sentence per line, and its translation in the other file",
        ),
        (
            "align --source @blank --target @e3",
            "luthier: blank: has 3 lines, but none that can be used; expected one sentence per line, and its translation in the \
             other file",
        ),
        (
            "align --source @latin --target @e3",
            "luthier: latin:2: byte 3 of the line (0xfc) is not UTF-8; convert the file to UTF-8, with iconv for instance",
        ),
        (
            "align --source @none --target @e3",
            "luthier: none: cannot open it: no such file or directory; check the path",
        ),
        (
            "extract phrase --source @f3 --target @e3 --alignment @links --output @out -q",
            "luthier: links:3: the link 3-1 is out of range: the source has 3 words and the target 3; positions are numbered \
             from 0; check that the alignment belongs to this text, source first",
        ),
        (
            "extract hiero --source @f3 --target @e3 --alignment @few --output @out -q",
            "luthier: few: has 2 lines, but the text has 3; expected one line of links per line of text",
        ),
        (
            "train --source @f3 --target @e3 --alignment @odd --model @m -q",
            "luthier: odd:1: the link \"1:1\" is not of the form 3-4; expected Pharaoh format: source and target position from 0, \
             with a hyphen between",
        ),
        (
            "align --source @f3 --target @e3 --force @e3 -q",
            "luthier: e3:1: \"x y\" is not the first line of a saved aligner; make one with `luthier align --save`",
        ),
        ("align --source - --target -", "luthier: `-` (standard input) can stand for one file only"),
        (
            "align --source @f3 --target @e3 --null 1",
            "luthier: --null is `1`, expected a number between 0 and 1",
        ),
        (
            "align --source @f3 --target @e3 --iterations 0 --model1-iterations 0 -q",
            "luthier: --iterations and --model1-iterations are both 0, so nothing would be learned",
        ),
        (
            "train --source - --target @e3 --model @m",
            "luthier: -: is not a regular file, but training reads it more than once; give the path of a regular file",
        ),
        (
            "train --source @f3 --target @e3 --model @m --iterations 0 --model1-iterations 0 -q",
            "luthier: --iterations and --model1-iterations are both 0, so nothing would be learned",
        ),
        (
            "train --source @f3 --target @e3 --model @m --kind hiero --max-length 3 -q",
            "luthier: --max-length and --smoothing are for --kind phrase; leave them out, or change the kind",
        ),
        (
            "align --source @f3 --target @e3 -o @f3 -q",
            "luthier: f3: would be written over; it is also read, or written under another flag: give another name",
        ),
        (
            "align --source @f3 --target @e3 -o @x --save @x -q",
            "luthier: x: would be written over; it is also read, or written under another flag: give another name",
        ),
        (
            "extract phrase --source @f3 --target @e3 --alignment @blank --output @out -q",
            "luthier: no phrase can be extracted from the alignment; check that the alignment is not empty and belongs to this text",
        ),
        (
            "train --source @f3 --target @e3 --model @f3 -q",
            "luthier: f3: exists and is not a model directory; give --model a new directory, or one of an earlier model to resume",
        ),
        (
            "train --source @f3 --target @e3 --model @m --lm @none -q",
            "luthier: none: cannot open it: no such file or directory; check the path",
        ),
        (
            "table info @f3",
            "luthier: f3:1: the line has fewer than three fields; expected `source ||| target ||| scores ||| links ||| counts`, as Moses writes tables",
        ),
    ];
    let failures = Failures::default();
    for (words, expected) in cases {
        failures.row(words, || {
            assert_eq!(made(&format!("{words} --quiet").replace("-q --quiet", "-q")), expected, "{words}");
        });
    }
    assert!(!dir.path().join("m").exists() && !dir.path().join("out").exists());
}

#[test]
fn odd_lines_are_kept_out_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let long = "w ".repeat(10_000);
    fs::write(dir.join("f"), format!("a  b\t c \n\n{long}\nd ||| e\nf\u{a0}g h\r\ni\n")).unwrap();
    fs::write(dir.join("e"), "x y z\nu\nv\nw\np q\ni").unwrap();
    let output = in_dir(dir, "align --source f --target e");
    assert!(output.status.success());
    let told = stderr(&output);
    assert!(
        told.starts_with(
            "3 of 6 pairs kept, 6 and 6 words, 6 and 6 distinct; skipped: 1 with an empty side; skipped: 1 with more than 100 \
             words on a side; skipped: 1 with a reserved word such as ||| or <s>\n\
             luthier: warning: lines with no-break spaces or other Unicode spaces: 1; only ASCII spaces separate words"
        ),
        "{told}"
    );
    let links: Vec<&str> = stdout(&output).lines().collect();
    assert_eq!(links.len(), 6);
    assert!(!links[0].is_empty() && links[1..4] == ["", "", ""] && links[5] == "0-0");
    ok_in(dir, "train --source f --target e --model m -q");
    let log = fs::read_to_string(dir.join("m/train.jsonl")).unwrap();
    assert!(log.contains(r#""dropped":{"empty":1,"long":1,"marks":1}"#), "{log}");
}

/// A full disk gives a one-line error and exit code 2, and no partial files are left.
#[test]
fn a_full_disk_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write_text(dir, 3000);
    fs::create_dir(dir.join("tmp")).unwrap();
    ok_in(dir, "align --source f --target e -o a -q");
    // File size is limited to 64 kB; since SIGXFSZ is ignored, writing beyond the limit gives an error.
    let full = |words: &str| {
        let script = format!("trap '' XFSZ; ulimit -f 64; exec \"$0\" {words}");
        let output = Command::new("bash")
            .args(["-c", &script, env!("CARGO_BIN_EXE_luthier")])
            .current_dir(dir)
            .env("TMPDIR", dir.join("tmp"))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{words}\n{}", stderr(&output));
        assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
        stderr(&output).to_owned()
    };
    let line = full("extract phrase --source f --target e --alignment a --output out -q --memory 1");
    assert!(line.contains("tmp: cannot keep sorted runs in it: file too large; set TMPDIR"), "{line}");
    let line = full("extract phrase --source f --target e --alignment a --output out -q");
    assert!(line.contains("phrase-table.gz: cannot write it: file too large"), "{line}");
    let line = full("train --source f --target e --alignment a --model m -q");
    assert!(line.contains("m/table.bin: cannot write it: file too large"), "{line}");
    assert_eq!(fs::read_dir(dir.join("tmp")).unwrap().count(), 0);
    assert!(!dir.join("out").exists());
    let line = full("extract hiero --source f --target e --alignment a --output out -q");
    assert!(
        line.contains("rule-table.gz: cannot write it: file too large") && !dir.join("out").exists(),
        "{line}"
    );
    let left: BTreeSet<String> = files(&dir.join("m")).into_keys().collect();
    assert!(left.iter().eq(["alignment.gz", "train.toml"]), "{left:?}");
    ok_in(dir, "train --source f --target e --alignment a --model m -q");
}

/// On text with gold alignments, the HMM has a lower error rate than IBM Model 2, which has a lower one than IBM Model 1.
#[test]
fn better_models_make_fewer_errors() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    ok_in(dir, "generate --output c --train 5000 --dev 1 --test 1 -q");
    let rate = |model: &str| {
        let output = in_dir(
            dir,
            &format!(
                "align --source c/train.de --target c/train.en --aligner {model} --gold c/train.links -o a"
            ),
        );
        let line = stdout(&output).lines().next().unwrap().to_owned();
        eprintln!("{model}: {line}");
        line.split(' ').nth(3).unwrap().parse::<f64>().unwrap()
    };
    let [first, second, hmm] = ["ibm1", "ibm2", "hmm"].map(rate);
    assert!(hmm < second && second < first, "{hmm} {second} {first}");
}
