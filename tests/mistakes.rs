//! What people type by mistake: each message names the mistake, where it is, and what to do.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Failures, in_dir, ok_in, stderr, stdout};
use serde_json::Value;
use std::{fs, path::Path};

/// Writes small files: lists, references, weights, and files that are given by mistake.
fn files(dir: &Path) {
    let write = |name: &str, bytes: &[u8]| fs::write(dir.join(name), bytes).unwrap();
    let lists = "0 ||| the house is small ||| lm= -3 tm= -1 ||| -4\n\
                 0 ||| house small ||| lm= -5 tm= -2 ||| -7\n\
                 1 ||| good morning ||| lm= -2 tm= -1 ||| -3\n\
                 1 ||| morning ||| lm= -1 tm= -3 ||| -4\n";
    write("lists", lists.as_bytes());
    write("ref", b"the house is small\ngood morning\n");
    write("short", b"the house\n");
    write("weights", b"lm 1\ntm 1\n");
    write("other", b"logprobb 1\n");
    write("lists.parquet", b"PAR1\x15\x04\x15");
    write("kenlm.bin", b"mmap lm http://kheafield.com/code format version 5\n\0");
    write("nan", b"0 ||| the house ||| lm= nan ||| 0\n");
    write("raw", b"The house is small.\nIs it?\nGood morning!\n");
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut gz, lists.as_bytes()).unwrap();
    write("cut.gz", &gz.finish().unwrap()[..40]);
}

const TUNE: &str = "tune mert --nbest lists --ref ref --run new";

/// Commands with a mistake, and the message after `luthier: `. `TUNE` stands for a correct command.
const MISTAKES: &[(&str, &str)] = &[
    (
        "tune",
        "no algorithm after `tune`, expected one of mert, pro, apro, mira, perceptron, oro, softmax, xbleu, risk; type `luthier tune mert --nbest FILE --ref FILE --run DIR`",
    ),
    (
        "tune --nbest lists --ref ref --run new",
        "no algorithm after `tune`, expected one of mert, pro, apro, mira, perceptron, oro, softmax, xbleu, risk; type `luthier tune mert --nbest lists --ref ref --run new`",
    ),
    (
        "tune bleu --nbest lists",
        "`bleu` is a metric, expected one of the algorithms mert, pro, apro, mira, perceptron, oro, softmax, xbleu, risk; type `luthier tune mert --metric bleu --nbest lists`",
    ),
    (
        "tune mert --nbest lists --ref ref",
        "`tune mert` needs --run <DIR> (run directory); see `luthier tune mert -h`",
    ),
    ("TUNE --c 1", "`tune mert` has no flag --c; leave it out, or use `tune apro` or `tune mira`"),
    (
        "tune mert --metric comet --nbest lists --run new",
        "--metric: unknown metric `comet`, expected one of bleu, chrf, chrf++, ter, wer, cer, column:NAME; if each candidate has a number of that name, type column:comet",
    ),
    (
        "TUNE --metric blue",
        "--metric: unknown metric `blue`, expected one of bleu, chrf, chrf++, ter, wer, cer, column:NAME; did you mean bleu?",
    ),
    (
        "tune mert --nbest ref --ref lists --run new",
        "lists:1: found a line of an n-best list, expected a reference; give a text file with one reference per line; are lists and references swapped?",
    ),
    (
        "tune mert --nbest ref --ref ref --run new",
        "ref: is given both with --nbest and with --ref; give the n-best list with --nbest and the references with --ref",
    ),
    (
        "tune mert --nbest lists.parquet --ref ref --run new",
        "lists.parquet: is a Parquet file, expected text; write it as JSON lines, such as with pandas: pd.read_parquet(FILE).to_json('lists.jsonl', orient='records', lines=True)",
    ),
    (
        "tune mert --nbest cut.gz --ref ref --run new",
        "cut.gz:1: the compressed data are truncated; copy or create the file again",
    ),
    (
        "tune mert --nbest nan --ref short --run new",
        "nan:1: the value of lm is `nan`, expected a finite number; replace it, or remove the candidate",
    ),
    (
        "tune mert --nbest lists --ref short --run new",
        "lists:3: segment 1 has no reference: short ends after line 1; give references with one line per segment (segments count from 0); is the file truncated, or from another set?",
    ),
    ("TUNE --certify --certify-seconds -1", "--certify-seconds is `-1`, expected a number above 0"),
    ("TUNE --certify --certify-programs 0", "--certify-programs is `0`, expected a whole number, at least 1"),
    ("TUNE --restarts many", "--restarts is `many`, expected a whole number without sign"),
    (
        "TUNE --restarts -3",
        "--restarts is `-3`, but negative numbers are not allowed; see `luthier tune mert -h`",
    ),
    ("TUNE --restarts 1.5", "--restarts is `1.5`, expected a whole number without sign"),
    (
        "TUNE --restarts 99999999999",
        "--restarts is `99999999999`, expected a whole number, from 0 to 1000000",
    ),
    (
        "TUNE --init ref",
        "ref:1: found `the house is small`, expected one weight per line, such as `lm 0.5`; give a weights file, as `tune` writes it; this looks like text",
    ),
    (
        "TUNE --init other",
        "other: no weight for lm, tm; the file has: logprobb; rename the weights, or give a file for the features of the lists",
    ),
    (
        "tune mert --nbest lists --ref ref --run old --restarts 7 -q",
        "old: holds a run with other settings: recipe.restarts is 45 there and 7 here; use the same settings to resume, or another --run directory",
    ),
    (
        "TUNE --nbest-size 50",
        "--nbest-size is for tuning with a decoder, but n-best lists are given with --nbest; leave --nbest-size out, or give --model and --source instead of --nbest",
    ),
    (
        "TUNE --pop-limit 50",
        "--pop-limit is for tuning with a decoder, but n-best lists are given with --nbest; leave --pop-limit out, or give --model and --source instead of --nbest",
    ),
    (
        "TUNE --select-source ref --select-ref ref",
        "--select-source is for tuning with a decoder, but n-best lists are given with --nbest; leave --select-source and --select-ref out, or give --model and --source instead of --nbest",
    ),
    (
        "TUNE --model m --source ref",
        "--nbest and --model exclude each other; leave --nbest out to tune with a decoder, or --model (--command) and --source to tune on the lists",
    ),
    (
        "tune mert --model m --ref ref --run new",
        "`tune mert` needs --source <FILE> (text for the decoder, one segment per line); see `luthier tune mert -h`",
    ),
    ("TUNE --iteration 3", "`tune mert` has no flag --iteration; did you mean --iterations?"),
    (
        "tune mert lists ref --run new",
        "`lists` stands where `tune mert` expects a flag; n-best lists go after --nbest, references after --ref",
    ),
    (
        "TUNE --strategy koen",
        "--strategy is `koen`, expected iterated, koehn, powell, random or simplex; did you mean koehn?",
    ),
    (
        "tune xbleu --metric ter --nbest lists --ref ref --run new",
        "xbleu works only with BLEU, not with TER; leave --metric out, or use risk, which works with every metric",
    ),
    ("tune mert --nbest lists --run new", "no references; give them with --ref FILE"),
    ("TUNE --bound lm=0", "--bound is `lm=0`, expected NAME=LOW,HIGH with LOW below HIGH"),
    (
        "TUNE --fix lmm",
        "--fix or --bound names `lmm`, which is not a feature; the features are lm, tm; did you mean lm?",
    ),
    (
        "rerank --nbest lists --weights ref",
        "ref:1: found `the house is small`, expected one weight per line, such as `lm 0.5`; give a weights file, as `tune` writes it; this looks like text",
    ),
    (
        "rerank --nbest lists --weights lists",
        "lists:1: found an n-best line, expected `name value`; give a weights file, as `tune` writes it; n-best lists go after --nbest",
    ),
    (
        "rerank lists --weights weights",
        "`lists` stands where `rerank` expects a flag; n-best lists go after --nbest",
    ),
    ("score ref", "no references; give them with --ref FILE"),
    (
        "score short --ref ref",
        "short:2: the file has 1 line, but ref has 2; give files with one line per segment, in the same order; is one truncated?",
    ),
    ("score ref --reff ref", "`score` has no flag --reff; did you mean --ref?"),
    (
        "score ref --ref ref --tokenize 13b",
        "--tokenize is `13b`, expected none, 13a, intl, zh or char; did you mean 13a?",
    ),
    ("score ref --ref nowhere", "nowhere: cannot open it: no such file or directory; check the path"),
    (
        "compare ref ref --ref ref",
        "`compare` needs --baseline <HYP> (baseline that the other systems are compared with); give one system after --baseline, and the others without a flag",
    ),
    ("decode ref --model m", "`ref` stands where `decode` expects a flag; the text goes after --input"),
    (
        "decode --model nowhere --input ref",
        "nowhere: does not exist, expected a model directory; give a directory created by `luthier train` or `luthier import`",
    ),
    (
        "lm query kenlm.bin --input ref",
        "kenlm.bin: is a KenLM binary, expected text; give the ARPA file that it was built from",
    ),
    ("lm build --order 9 --input ref -o x.arpa", "--order is `9`, expected a whole number, from 1 to 6"),
    ("lm", "no command after `luthier lm`, expected one of build, compile, query, info; see `luthier lm -h`"),
    (
        "train --source ref --target short --model x",
        "short:2: the file ends after line 1, but ref has 2 lines; give files in which line N of one is the translation of line N of the other; is the file truncated?",
    ),
    (
        "experiment watanabe",
        "watanabe: no such file, expected an experiment file or one of watanabe2012, arun2007, cer2008, dreyer2015, claims; did you mean watanabe2012?",
    ),
    (
        "report nowhere",
        "nowhere: is not a run directory: it does not exist; give directories created by `luthier tune ALGORITHM --run DIR`",
    ),
    (
        "report ref",
        "ref: is not a run directory: it is a file; give directories created by `luthier tune ALGORITHM --run DIR`",
    ),
    ("generate --train 10", "`generate` needs --output <DIR> (output directory); see `luthier generate -h`"),
    ("scroe ref --ref ref", "`scroe` is not a command of luthier; did you mean score?"),
    (
        "oracle --nbest lists --nbest-format xml --ref ref",
        "--nbest-format is `xml`, expected one of moses, cdec, joshua, travatar, marian, phrasal, jsonl, json, tsv, csv, fairseq, flat, feats, kaldi, zmert; leave it out to detect the format",
    ),
    (
        "surface --nbest lists --ref ref --weights weights --direction LM",
        "--direction is `LM`, which is neither a feature of the lists nor a file; the features are tm, lm; did you mean lm?",
    ),
    ("--threads 0 score ref --ref ref", "--threads is `0`, expected a whole number, from 1 to 1024"),
];

#[test]
fn each_message_names_the_mistake_and_the_fix() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    files(dir);
    ok_in(dir, "tune mert --nbest lists --ref ref --run old -q");
    let failures = Failures::default();
    for (words, message) in MISTAKES {
        failures.row(words, || {
            let output = in_dir(dir, &words.replace("TUNE", TUNE));
            let found = (output.status.code(), stdout(&output), stderr(&output));
            assert_eq!(found, (Some(2), "", format!("luthier: {message}\n").as_str()));
            assert!(!dir.join("new").exists(), "something is left behind");
        });
    }
    assert!(MISTAKES.len() >= 30);
}

/// With `--json`, the last line of standard error is the error as an object, without progress lines beside it.
#[test]
fn errors_are_json_with_json() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    files(dir);
    ok_in(dir, "tune mert --nbest lists --ref ref --run old -q");
    let failures = Failures::default();
    for (words, message) in MISTAKES {
        failures.row(words, || {
            let output = in_dir(dir, &format!("{} --json", words.replace("TUNE", TUNE)));
            let said = stderr(&output);
            assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
            let error: Value = serde_json::from_str(said).unwrap();
            let text = |key: &str| error["error"][key].as_str().unwrap_or_default().to_owned();
            for part in [text("message"), text("hint"), text("file")] {
                // Words of the command stand in some hints, where --json is one of them here.
                assert!(message.contains(part.replace(" --json", "").trim_end()), "{part}");
            }
            assert!(!text("kind").is_empty() && !text("message").is_empty());
        });
    }
}

/// Old names of flags work, with one line that says the new one. Rows: command with old names, and its warnings. A unit test
/// checks that every renamed flag occurs here.
#[test]
fn old_names_of_flags_work_with_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    files(dir);
    ok_in(dir, "generate --output c --train 40 --dev 5 --test 5 -q");
    ok_in(dir, "train --source c/train.de --target c/train.en --model m -q");
    ok_in(dir, "align --source c/train.de --target c/train.en -o a -q");
    let text = "--source c/train.de --target c/train.en";
    let rows = [
        ("generate --out g --train 2 --dev 1 --test 1".to_owned(), vec!["--out is now called --output"]),
        (format!("extract phrase {text} --alignment a --out p"), vec!["--out is now called --output"]),
        (format!("extract hiero {text} --alignment a --out h"), vec!["--out is now called --output"]),
        ("experiment nowhere.toml --out x".to_owned(), vec!["--out is now called --output"]),
        ("demo --data nowhere --out d".to_owned(), vec!["--out is now called --output"]),
        ("decode --model m --in c/dev.de".to_owned(), vec!["--in is now called --input"]),
        ("lm build --in c/train.en -o lm.arpa --order 2".to_owned(), vec!["--in is now called --input"]),
        ("lm query m/lm0.bin --in=c/dev.en".to_owned(), vec!["--in is now called --input"]),
        ("table query m/table.bin --in c/dev.de".to_owned(), vec!["--in is now called --input"]),
        (
            format!("align {text} --model ibm1 --rounds 1 --first-rounds 1 -o b"),
            vec![
                "--model is now called --aligner",
                "--rounds is now called --iterations",
                "--first-rounds is now called --model1-iterations",
            ],
        ),
        (
            format!("train {text} --model n --align-model ibm2 --rounds 1"),
            vec!["--align-model is now called --aligner", "--rounds is now called --iterations"],
        ),
        (
            "tune perceptron --in-order --nbest lists --ref ref --run r --iterations 1".to_owned(),
            vec!["--in-order is now called --no-shuffle"],
        ),
    ];
    let failures = Failures::default();
    for (words, warnings) in rows {
        failures.row(&words, || {
            let output = in_dir(dir, &words);
            let said = stderr(&output);
            let expected: Vec<String> = warnings.iter().map(|w| format!("luthier: warning: {w}")).collect();
            let found: Vec<&str> = said.lines().filter(|l| l.contains("is now called")).collect();
            assert_eq!(found, expected);
            assert!(!said.contains("has no flag"), "{said}");
            let fails = words.contains("nowhere");
            assert_eq!(output.status.success(), !fails, "{said}");
        });
    }
}

/// Text that looks untokenised is scored as it is, with a warning, unless BLEU tokenises it.
#[test]
fn untokenised_text_is_warned_about() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    files(dir);
    let lists: String = ["The house is small.", "Is it?", "Good morning!"]
        .iter()
        .enumerate()
        .fold(String::new(), |all, (i, t)| {
            all + &format!("{i} ||| {t} ||| lm= -1 ||| 0\n{i} ||| other words ||| lm= -2 ||| 0\n")
        });
    fs::write(dir.join("raw.lists"), lists).unwrap();
    let warning = "luthier: warning: raw looks untokenised";
    for (words, warned) in [
        ("oracle --nbest raw.lists --ref raw", true),
        ("oracle --nbest raw.lists --ref raw --tokenize 13a", false),
        ("oracle --nbest raw.lists --ref raw -m chrf", false),
        ("tune mert --nbest raw.lists --ref raw --run a", true),
        ("tune mert --nbest raw.lists --ref raw --run b --tokenize 13a", false),
        ("tune mert --nbest raw.lists --ref raw --run c -m bleu:tokenize=13a", false),
    ] {
        let output = in_dir(dir, words);
        assert!(output.status.success(), "{words}: {}", stderr(&output));
        assert_eq!(stderr(&output).contains(warning), warned, "{words}: {}", stderr(&output));
    }
}

/// Colour is for terminals, unless asked for.
#[test]
fn colour_is_an_option() {
    let dir = tempfile::tempdir().unwrap();
    for (words, coloured) in [
        ("score --reff x", false),
        ("score --reff x --color always", true),
        ("score --reff x --color=never", false),
    ] {
        let output = in_dir(dir.path(), words);
        assert_eq!(stderr(&output).contains("\x1b[1;31mluthier:\x1b[0m"), coloured, "{words}");
    }
    let help = in_dir(dir.path(), "score -h --color always");
    assert!(stdout(&help).contains('\x1b'));
    assert!(!stdout(&in_dir(dir.path(), "score -h")).contains('\x1b'));
}
