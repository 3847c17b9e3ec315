//! Models of raw text, with the real binary: training, translation, tuning.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Failures, fails, in_dir, ok_in, stderr};
use luthier::{
    Training, Translator,
    generate::{Generator, Part},
    text::Language,
    training::{Languages, Parallel, Settings},
};
use std::{collections::BTreeMap, fs, path::Path};

/// Returns a sentence as people write it: with a capital letter, and without blanks before punctuation.
fn written(words: &[String]) -> String {
    let text = words.join(" ").replace(" ,", ",").replace(" .", ".").replace(" ?", "?").replace(" !", "!");
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Returns raw sentence pairs; every fifth has a web address and a placeholder.
fn pairs(part: Part, n: usize) -> Vec<(String, String)> {
    let mut corpus = Generator::new(5);
    let pair = |at: usize| {
        let pair = corpus.next(part, 1);
        let [mut de, mut en] = [&pair.source, &pair.targets[0]].map(|words| written(words));
        if at.is_multiple_of(5) {
            de = format!("Siehe https://example.org/{part:?}/{at}: {de} ({{{}}})", at % 7);
            en = format!("See https://example.org/{part:?}/{at}: {en} ({{{}}})", at % 7);
        }
        (de, en)
    };
    (0..n).map(pair).collect()
}

/// Writes both sides of sentence pairs as `NAME.de` and `NAME.en`.
fn write(dir: &Path, name: &str, pairs: &[(String, String)]) {
    let side = |of: fn(&(String, String)) -> &String| {
        pairs.iter().map(|p| format!("{}\n", of(p))).collect::<String>()
    };
    fs::write(dir.join(format!("{name}.de")), side(|p| &p.0)).unwrap();
    fs::write(dir.join(format!("{name}.en")), side(|p| &p.1)).unwrap();
}

/// Writes `train`, `dev` and `test`, and trains the models `phrase` and `hiero`.
fn prepare(dir: &Path) {
    for (name, part, n) in [("train", Part::Train, 900), ("dev", Part::Dev, 20), ("test", Part::Test, 40)] {
        write(dir, name, &pairs(part, n));
    }
    for kind in ["phrase", "hiero"] {
        let said = in_dir(
            dir,
            &format!("train --raw --source train.de --target train.en --model {kind} --kind {kind}"),
        );
        assert!(said.status.success(), "{}", stderr(&said));
        let said = stderr(&said);
        assert!(said.contains("source: rules for de; target: rules for en"), "{said}");
        assert!(said.contains("cleaned: "), "{said}");
    }
}

/// Returns the files of a model directory by name, except the log and the lock.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let names = fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let kept = names.filter(|n| !["train.jsonl", ".lock"].contains(&&**n));
    kept.map(|n| (n.clone(), fs::read(dir.join(&n)).unwrap())).collect()
}

#[test]
fn raw_text_goes_in_and_comes_out() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    prepare(dir);
    let source = fs::read_to_string(dir.join("test.de")).unwrap();
    for kind in ["phrase", "hiero"] {
        let text = ok_in(dir, &format!("decode --model {kind} --input test.de -q"));
        assert_eq!(text.lines().count(), 40);
        for (source, target) in source.lines().zip(text.lines()) {
            // Neither marks of the tokeniser nor blanks before punctuation; addresses and placeholders are kept.
            assert!(
                !target.contains(['￭', '⟦', '⟧']) && !target.contains(" .") && !target.contains(" ,"),
                "{target}"
            );
            for span in source.split([' ', '(', ')']).filter(|w| w.starts_with("http") || w.starts_with('{'))
            {
                assert!(target.contains(span.trim_end_matches(':')), "{source}\n{target}");
            }
            let first = target.chars().find(|c| c.is_alphabetic()).unwrap();
            assert!(first.is_uppercase(), "{source}\n{target}");
        }
        // The n-best list, JSON and the library give the same texts.
        let json = ok_in(dir, &format!("decode --model {kind} --input test.de --json -q"));
        ok_in(
            dir,
            &format!("decode --model {kind} --input test.de --nbest 5 --nbest-out nbest --output best -q"),
        );
        let of_json = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["text"].clone();
        let texts: Vec<serde_json::Value> = json.lines().map(of_json).collect();
        assert_eq!(texts, text.lines().map(serde_json::Value::from).collect::<Vec<_>>());
        let nbest = fs::read_to_string(dir.join("nbest")).unwrap();
        let mut best: Vec<&str> = Vec::new();
        for line in nbest.lines() {
            let fields: Vec<&str> = line.split(" ||| ").collect();
            if fields[0].parse::<usize>().unwrap() == best.len() {
                best.push(fields[1]);
            }
        }
        assert_eq!(best, text.lines().collect::<Vec<_>>());
        let translator = Translator::open(dir.join(kind)).unwrap();
        let lines: Vec<&str> = source.lines().collect();
        assert_eq!(translator.translate(&lines).unwrap(), text.lines().collect::<Vec<_>>());
        let two = ok_in(dir, &format!("decode --model {kind} --input test.de -q --threads 2"));
        assert_eq!(two, text);
    }
    // What is unknown is told: its form as the model sees it.
    fs::write(dir.join("new.de"), "Der Zug nach Quuxstadt ist 17 Meter lang.\n").unwrap();
    let said = in_dir(dir, "decode --model phrase --input new.de --stats");
    assert!(stderr(&said).contains("unknown words, copied: "), "{}", stderr(&said));
    let text = String::from_utf8(said.stdout).unwrap();
    assert!(text.contains("Quuxstadt") && text.contains("17"), "{text}");
}

#[test]
fn tuning_scores_raw_text() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    prepare(dir);
    for (algorithm, kind) in
        [("mert", "phrase"), ("mira", "phrase"), ("mert --on forest", "phrase"), ("mira", "hiero")]
    {
        let run = format!("run-{}-{kind}", algorithm.replace(' ', ""));
        let size = if algorithm.contains("forest") { "" } else { "--nbest-size 30" };
        let words = format!(
            "tune {algorithm} --model {kind} --source dev.de --ref dev.en --run {run} --iterations 2 {size} --seed 4 -q"
        );
        let tuned: serde_json::Value = serde_json::from_str(&ok_in(dir, &format!("{words} --json"))).unwrap();
        let signature = tuned["signature"].as_str().unwrap();
        let on_forests = algorithm.contains("forest");
        assert!(signature.contains(if on_forests { "tok:model" } else { "tok:13a" }), "{signature}");
        // The weights decoded again score what the run has logged, on raw text.
        if !on_forests {
            let weights = format!("{run}/best.txt");
            let scored =
                format!("decode --model {kind} --weights {weights} --input dev.de --output again -q");
            ok_in(dir, &scored);
            let scored: serde_json::Value =
                serde_json::from_str(&ok_in(dir, "score again --ref dev.en --json -q")).unwrap();
            let again = scored[0]["score"].as_f64().unwrap();
            assert!((again - tuned["score"].as_f64().unwrap()).abs() < 1e-9, "{scored} {tuned}");
        }
        // One and two threads, and a run that is resumed.
        let best = fs::read(dir.join(&run).join("best.txt")).unwrap();
        let other = words.replace(&run, "other") + " --threads 2";
        common::kill_after(dir, &other, &[150, 500]);
        ok_in(dir, &other);
        assert_eq!(fs::read(dir.join("other/best.txt")).unwrap(), best, "{words}");
        fs::remove_dir_all(dir.join("other")).unwrap();
    }
}

/// The same pairs as two files, as TSV and as PO give the same model, also if training is killed and goes on.
#[test]
fn bilingual_files_give_the_same_model() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let pairs = pairs(Part::Train, 400);
    write(dir, "train", &pairs);
    let tsv: String = pairs.iter().map(|(de, en)| format!("{de}\t{en}\n")).collect();
    fs::write(dir.join("train.tsv"), tsv).unwrap();
    let po: String = pairs.iter().map(|(de, en)| format!("msgid {de:?}\nmsgstr {en:?}\n\n")).collect();
    fs::write(dir.join("train.po"), format!("msgid \"\"\nmsgstr \"\"\n\"Language: en\\n\"\n\n{po}")).unwrap();
    ok_in(dir, "train --raw --source train.de --target train.en --model files -q");
    for corpus in ["train.tsv", "train.po"] {
        let words = format!(
            "train --raw --corpus {corpus} --source-lang de --target-lang en --model {corpus}.model -q"
        );
        common::kill_after(dir, &words, &[30, 90, 200]);
        ok_in(dir, &words);
        let [one, other] = ["files".to_owned(), format!("{corpus}.model")].map(|d| files(&dir.join(d)));
        for (name, bytes) in &one {
            // The settings of training name the files of the text.
            assert!(name == "train.toml" || other[name] == *bytes, "{corpus}: {name}");
        }
    }
    // The library trains the same model.
    let languages = Languages { source: Language::new("de").unwrap(), target: Language::new("en").unwrap() };
    let settings = Settings { raw: Some(languages), ..Settings::default() };
    let parallel = Parallel::Files(dir.join("train.de"), dir.join("train.en"));
    Training::on(parallel, dir.join("library")).settings(settings).run().unwrap();
    let [one, other] = ["files", "library"].map(|d| files(&dir.join(d)));
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    assert!(one["table.bin"] == other["table.bin"] && one["text.toml"] == other["text.toml"]);
}

#[test]
fn mistakes_with_raw_text() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write(dir, "train", &pairs(Part::Train, 60));
    let at = dir.display();
    ok_in(dir, "train --raw --source train.de --target train.en --model model --kind hiero -q");
    ok_in(dir, "decode --model model --input train.de --forest-kind grammar --forest-out forests -q");
    fs::write(dir.join("same.txt"), "Guten Tag, Herr Müller.\n").unwrap();
    let text = format!("--source {at}/train.de --target {at}/train.en --model {at}/m");
    let rows = [
        (
            format!("train --raw --corpus {at}/train.de --model {at}/m"),
            "luthier: --corpus needs both languages; give --source-lang and --target-lang".to_owned(),
        ),
        (
            format!("train --raw {text} --alignment {at}/train.de"),
            "luthier: --alignment is for tokenised text, but --raw cleans and tokenises the text; leave one of them out".into(),
        ),
        (
            format!("train --raw --source {at}/same.txt --target {at}/same.txt --model {at}/m"),
            format!(
                "luthier: {at}/same.txt: no sentence pair is left of 1; check that the two sides are translations of each \
                 other, line by line"
            ),
        ),
        (
            format!(
                "tune mert --on forest --model {at}/model --source {at}/train.de --ref {at}/train.en --run {at}/m --tokenize 13a"
            ),
            "luthier: --tokenize has no effect with --on forest, which scores the tokens of the model; leave it out, or use --on \
             nbest"
                .into(),
        ),
        (
            format!("train --corpus {at}/train.de --source-lang de --target-lang en --model {at}/m"),
            "luthier: `train` needs --raw (text is raw: clean it, learn tokenisation and casing from it, and train a model that \
             translates raw text); see `luthier train -h`"
                .into(),
        ),
        (
            format!("train --raw --corpus {at}/train.de --source-lang deutsch --target-lang en --model {at}/m"),
            "luthier: --source-lang is `deutsch`: `deutsch` is not a language code; expected two or three letters of ISO 639, \
             such as en, or with a region, such as pt-BR"
                .into(),
        ),
        (
            format!("train --raw --corpus {at}/train.de --source-lang de --target-lang en --model {at}/m"),
            format!(
                "luthier: {at}/train.de:1: found no tab, expected source and target separated by a tab (no other bilingual \
                 format was recognised either); give a file in TSV, TMX, XLIFF or PO"
            ),
        ),
        (
            format!("decode --model {at}/model --forests {at}/forests"),
            String::from(
                "luthier: --forests has the model's tokens only, but the model translates raw text; give the text with --input",
            ),
        ),
    ];
    let failures = Failures::default();
    for (words, message) in rows {
        failures.row(&words, || {
            assert_eq!(fails(&format!("{words} -q")), message);
        });
    }
    assert!(!dir.join("m").exists());
}
