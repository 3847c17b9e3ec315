//! Tests of language models with the real binary.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Failures, data, fails, luthier, ok_in, python, stderr};
use luthier::{
    core::{
        Progress,
        random::{Purpose, Stream},
    },
    lm::Arpa,
};
use std::{collections::BTreeMap, fs, path::Path, process::Command};

fn unpacked(dir: &Path, file: &str, name: &str) -> Option<()> {
    let path = data(file)?;
    let lines = luthier::io::text::read_lines(&path).unwrap().lines;
    fs::write(dir.join(name), lines.join("\n") + "\n").unwrap();
    Some(())
}

fn grams(path: &Path) -> BTreeMap<String, (f32, f32)> {
    let arpa = Arpa::read(path, Progress::NONE).unwrap();
    let mut all = BTreeMap::new();
    for order in &arpa.orders {
        for i in 0..order.len() {
            let words: Vec<&str> = order.words(i).iter().map(|&w| arpa.vocabulary.word(w)).collect();
            all.insert(words.join(" "), (order.probability[i], order.back_off[i]));
        }
    }
    all
}

/// Estimates equal those of `lmplz`, whose model of the same text is in the data set.
#[test]
fn estimates_are_lmplzs() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (Some(()), Some(theirs)) =
        (unpacked(dir, "multi30k/train.en.gz", "train.en"), data("moses/model/lm.arpa.gz"))
    else {
        return;
    };
    ok_in(dir, "lm build --order 5 --input train.en -o our.arpa.gz -q");
    let (ours, theirs) = (grams(&dir.join("our.arpa.gz")), grams(&theirs));
    assert_eq!(ours.len(), theirs.len());
    for (gram, (p, b)) in &theirs {
        let (q, c) = ours.get(gram).unwrap_or_else(|| panic!("no {gram}"));
        assert!((p - q).abs() < 1e-4 && (b - c).abs() < 1e-4, "{gram}: {q} {c}, expected {p} {b}");
    }
    // The output does not depend on the memory limit.
    ok_in(dir, "lm build --order 5 --input train.en -o a.arpa --memory 32M -q");
    ok_in(dir, "lm build --order 5 --input train.en -o b.arpa --memory 1G -q --threads 1");
    assert!(fs::read(dir.join("a.arpa")).unwrap() == fs::read(dir.join("b.arpa")).unwrap());
}

#[test]
fn scores_are_kenlms() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    if unpacked(dir, "multi30k/train.en.gz", "train.en").is_none()
        || unpacked(dir, "multi30k/test.en.gz", "test.en").is_none()
    {
        return;
    }
    // Unknown words at random positions.
    let mut s = Stream::new(37, Purpose::Test, 0, 0);
    let text = fs::read_to_string(dir.join("test.en")).unwrap();
    let noisy: String = text
        .lines()
        .map(|line| {
            let words: Vec<&str> =
                line.split(' ').map(|w| if s.below(12) == 0 { "zzyzx" } else { w }).collect();
            words.join(" ") + "\n"
        })
        .collect();
    fs::write(dir.join("noisy"), noisy + "\nzzyzx\n").unwrap();
    ok_in(dir, "lm build --order 5 --input train.en -o lm.arpa -q --prune 0,0,0,1");
    ok_in(dir, "lm compile lm.arpa -o lm.bin -q");
    let ours = ok_in(dir, "lm query lm.bin --input noisy");
    assert_eq!(ours, ok_in(dir, "lm query lm.arpa --input noisy"), "the binary scores as the ARPA file");
    let asked = Command::new(python)
        .arg(common::root().join("tests/ask_kenlm.py"))
        .args(["lm.arpa", "noisy"])
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(asked.status.success(), "{}", stderr(&asked));
    let theirs = common::stdout(&asked);
    assert_eq!(ours.lines().count(), theirs.lines().count() + 1);
    for (our, their) in ours.lines().zip(theirs.lines()) {
        let (mut a, mut b) = (our.split('\t'), their.split(' '));
        let number = |w: Option<&str>| w.unwrap().parse::<f64>().unwrap();
        let (p, q) = (number(a.next()), number(b.next()));
        assert!((p - q).abs() < 1e-4, "{our} {their}");
        assert_eq!(a.nth(1), b.next());
    }
}

const GOOD: &str = "\\data\\\nngram 1=4\nngram 2=2\n\n\\1-grams:\n-1\t<unk>\n-99\t<s>\t-0.5\n-0.7\t</s>\n-0.5\ta\t-0.3\n\n\
                    \\2-grams:\n-0.2\t<s> a\n-0.3\ta </s>\n\n\\end\\\n";

#[test]
fn bad_input_is_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let at = dir.display();
    let failures = Failures::default();
    let arpa = |change: &dyn Fn(String) -> String, expected: &str| {
        fs::write(dir.join("lm"), change(GOOD.to_owned())).unwrap();
        for verb in ["lm query {at}/lm --input {at}/none", "lm compile {at}/lm -o {at}/out"] {
            failures.row(expected, || {
                let line = fails(&verb.replace("{at}", &at.to_string())).replace(&format!("{at}/"), "");
                assert_eq!(line, format!("luthier: {expected}"));
                assert!(!dir.join("out").exists());
            });
        }
    };
    arpa(
        &|s| s[..s.len() - 20].to_owned(),
        "lm: ends after line 12, expected 1 more of the 2 2-grams in the header; the file is truncated: copy or estimate it \
         again",
    );
    arpa(
        &|s| s.replace("\\end\\\n", ""),
        "lm: ends after line 14, expected \\end\\; the file is truncated: copy or estimate it again",
    );
    arpa(
        &|s| s.replace("ngram 2=2", "ngram 2=3"),
        "lm:15: found \\end\\ after 2 2-grams, but the header says 3; the counts under \\data\\ are wrong, or lines are \
         missing",
    );
    arpa(
        &|s| s.replace("ngram 2=2", "ngram 2=1"),
        "lm:13: found `-0.3\ta </s>`, expected \\end\\; there are more 2-grams than the header says",
    );
    arpa(
        &|s| s.replace("-0.2\t<s> a", "0.2\t<s> a"),
        "lm:12: the log-probability 0.2 is positive; probabilities are base-10 logarithms, at most 0",
    );
    arpa(
        &|s| s.replace("ngram 1=4", "ngram 1=3").replace("-1\t<unk>\n", ""),
        "lm: has no 1-gram <unk>; estimate the model with an unknown word (SRILM: -unk), or add a line such as `-10 <unk>`",
    );
    arpa(
        &|s| s.replace("-0.3\ta </s>", "-0.3\t<s> a"),
        "lm: has the 2-gram `<s> a` twice; remove one of the two lines and correct the count",
    );
    arpa(
        &|s| s.replace("-1\t<unk>", "-1\ta"),
        "lm:9: duplicate 1-gram; remove one of the two lines and correct the count",
    );
    arpa(&|s| s.replace("a </s>", "b </s>"), "lm:13: `b` is not among the 1-grams");
    arpa(&|s| s.replace("-0.3\ta </s>", "-0.3\t</s>"), "lm:13: found 1 words, expected 2");
    arpa(&|s| s.replace("-0.3\ta </s>", "x\ta </s>"), "lm:13: the log-probability is `x`, expected a number");
    arpa(
        &|_| "a man walks\n".repeat(200),
        "lm: is not an ARPA file: it begins with `a man walks`, without \\data\\; estimate a model from text with `luthier \
         lm build`",
    );
    arpa(
        &|_| String::new(),
        "lm: ends after line 0, expected \\data\\; the file is truncated: copy or estimate it again",
    );

    let build = |text: &str, more: &str, expected: &str| {
        fs::write(dir.join("text"), text).unwrap();
        failures.row(expected, || {
            let line = fails(&format!("lm build --input {at}/text -o {at}/out {more}"))
                .replace(&format!("{at}/"), "");
            assert!(line.starts_with(&format!("luthier: {expected}")), "{line}");
            assert!(!dir.join("out").exists());
            let mut left = fs::read_dir(dir).unwrap().flatten();
            assert!(left.all(|e| !e.file_name().to_string_lossy().ends_with(".tmp")));
        });
    };
    build("", "", "text: has no words, expected one sentence per line");
    build("\n\n", "", "text: has no words, expected one sentence per line");
    build("a b\n<s> a\n", "", "text:2: the text contains <s>, which is reserved");
    build("a <UNK>\n", "", "text:1: the text contains <UNK>, which is reserved");
    build("a\n", "--order 7", "--order is `7`, expected a whole number, from 1 to 6");
    build("a\n", "--prune 1", "--prune begins with a number above 0, but 1-grams cannot be pruned");
    build("a\n", "--prune 0,2,1", "the numbers of --prune must not decrease");
    build("a\n", "--memory lots", "--memory is `lots`, expected a size such as 500M or 4G");

    fs::write(dir.join("text"), "a b c\na b\n").unwrap();
    let output = luthier()
        .args(["lm", "build", "--input", "text", "-o", "tiny.arpa", "--order", "3"])
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(
        output.status.success() && stderr(&output).contains("to estimate discounts, so fixed ones are used"),
        "{}",
        stderr(&output)
    );
    ok_in(dir, "lm compile tiny.arpa -o tiny.bin");
    let info = ok_in(dir, "lm info tiny.bin --json");
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&info).unwrap()["counts"],
        serde_json::json!([6, 5, 4])
    );
    let line = fails(&format!("lm compile {at}/tiny.bin -o {at}/out"));
    assert!(line.contains("is a binary model already, expected an ARPA file"), "{line}");
    assert!(fails(&format!("lm compile {at}/tiny.arpa -o -")).contains("is not a regular, uncompressed"));
    assert!(fails("lm query -").contains("standard input cannot be both"));
    let whole = fs::read(dir.join("tiny.bin")).unwrap();
    for (change, expected) in [
        (8usize, "is a binary model of version 77, expected 1"),
        (12, "is a binary model whose writing was not finished"),
    ] {
        let mut bytes = whole.clone();
        bytes[change] = 77;
        fs::write(dir.join("broken"), bytes).unwrap();
        failures.row(expected, || assert!(fails(&format!("lm info {at}/broken")).contains(expected)));
    }
    fs::write(dir.join("broken"), &whole[..whole.len() - 1]).unwrap();
    assert!(fails(&format!("lm info {at}/broken")).contains("truncated or appended to"));
}

/// SRILM omits back-off weights, writes `-inf`, and may omit n-grams that are prefixes or suffixes of longer ones.
#[test]
fn any_sound_arpa_file_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let text = "a title\n\n\\data\\\nngram 1=5\nngram 2=2\nngram 3=1\n\n\\1-grams:\n-1 <unk>\n-inf <s> -0.5\n-0.7 </s>\n\
                -0.5 a -0.3\n-0.6 b -0.25\n\n\\2-grams:\n-0.2 <s> a -0.125\n-0.3 a b\n\n\\3-grams:\n-0.1 a b b\n\n\\end\\\n";
    fs::write(dir.join("lm"), text).unwrap();
    fs::write(dir.join("text"), "a b b\n").unwrap();
    let line = ok_in(dir, "lm query lm --input text");
    // p(a | <s>) = -0.2; p(b | <s> a) = -0.125 - 0.3; p(b | a b) = -0.1; p(</s> | b b) = -0.25 - 0.7, because `b b`
    // occurs only within `a b b`.
    assert_eq!(line.lines().next(), Some("-1.675000\t3\t0"));
}

/// Unusual blanks such as the no-break space are part of words, and back-off weights of n-grams without continuation are
/// read.
#[test]
fn odd_words_and_odd_back_offs() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("text"), "x foo\u{a0}\nfoo x\n\u{b} caf\u{e9}\u{3000}\n").unwrap();
    ok_in(dir, "lm build --input text --order 2 -o lm.arpa -q");
    ok_in(dir, "lm compile lm.arpa -o lm.bin -q");
    let scored = ok_in(dir, "lm query lm.bin --input text");
    assert!(scored.lines().take(3).all(|l| l.ends_with("\t2\t0")), "{scored}");
    ok_in(dir, "lm build --input text --order 4 -o lm4.arpa -q --memory 1");
    let text: String = (0..20_000).map(|i| format!("w{} w{} w{}\n", i % 977, i % 1009, i % 31)).collect();
    fs::write(dir.join("long"), text).unwrap();
    ok_in(dir, "lm build --input long --order 3 -o a -q --memory 1");
    ok_in(dir, "lm build --input long --order 3 -o b -q");
    assert!(fs::read(dir.join("a")).unwrap() == fs::read(dir.join("b")).unwrap());
}
