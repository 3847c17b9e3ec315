//! Tests of tuning, training and translation with the library, against the real binary.
#![allow(clippy::unwrap_used)]

mod common;

use common::ok_in;
use luthier::{
    NBest, Recipe, Training, Translator,
    core::{ErrorKind, Progress, Step, Weights},
    decode::Limits,
    io::nbest::{Options, Rows, read},
    train::RuleLimits,
    training::{Alignment, Event, LanguageModels, Settings, Stage},
};
use std::{collections::BTreeMap, fs, ops::ControlFlow, path::Path, sync::Mutex};

/// Returns the files of a model directory by name, except the log, which contains times, and the lock.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(|e| e.unwrap());
    let named = entries.map(|e| (e.file_name().to_string_lossy().into_owned(), fs::read(e.path()).unwrap()));
    named.filter(|(name, _)| !["train.jsonl", ".lock"].contains(&name.as_str())).collect()
}

/// Removes the paths of inputs from train.toml; they may differ between equal models.
fn comparable(mut files: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    let spec = files.get_mut("train.toml").unwrap();
    let text = String::from_utf8(std::mem::take(spec)).unwrap();
    *spec = text.lines().filter(|l| !l.starts_with("path = ")).collect::<Vec<_>>().join("\n").into_bytes();
    files
}

fn training(dir: &Path, model: &str) -> Training<'static> {
    Training::new(dir.join("c/train.de"), dir.join("c/train.en"), dir.join(model))
}

#[test]
fn models_and_translations_are_those_of_the_binary() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    ok_in(dir, "generate --output c --train 400 --dev 1 --test 12 -q");
    let text = fs::read_to_string(dir.join("c/test.de")).unwrap();
    let sentences: Vec<&str> = text.lines().collect();
    let settings = [("phrase", Settings::default()), ("hiero", Settings::hiero(RuleLimits::default()))];
    for (kind, settings) in settings {
        let settings = Settings { lm: LanguageModels::Estimate { order: 3 }, text_tables: true, ..settings };
        let trained = training(dir, "ours").settings(settings).threads(2).run().unwrap();
        let words =
            format!("train --source c/train.de --target c/train.en --kind {kind} --order 3 --text-tables");
        let json = ok_in(dir, &format!("{words} --model theirs --json -q"));
        assert!(comparable(files(&dir.join("ours"))) == comparable(files(&dir.join("theirs"))), "{kind}");
        let theirs: serde_json::Value = serde_json::from_str(&json).unwrap();
        let ours = serde_json::to_value(&trained).unwrap();
        assert_eq!(ours["stages"][2]["entries"], theirs["stages"][2]["entries"]);
        assert_eq!(ours["stages"].as_array().unwrap().len(), 5);
        let log = fs::read_to_string(dir.join("ours/train.jsonl")).unwrap();
        let lines: Vec<serde_json::Value> = log.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!(ours["stages"].as_array().unwrap(), &lines);

        let translator = Translator::open(dir.join("ours")).unwrap();
        let decode = "decode --model theirs --input c/test.de --nbest 4 --nbest-out lists";
        let best = ok_in(dir, decode);
        assert_eq!(translator.translate(&sentences).unwrap(), best.lines().collect::<Vec<_>>());
        let mut rows = Rows::default();
        read(&dir.join("lists"), &Options::default(), &mut rows).unwrap();
        let lists = translator.nbest_with(&sentences, 4, Progress::NONE).unwrap();
        assert_eq!(translator.nbest(sentences[3], 4).unwrap(), lists[3]);
        let all: Vec<_> = lists.iter().flatten().collect();
        assert_eq!(all.len(), rows.len());
        for (row, t) in all.into_iter().enumerate() {
            assert_eq!(rows.text(row), t.text);
            let sum: f64 =
                t.features.iter().map(|(name, value)| weight(translator.weights(), name) * value).sum();
            assert!((sum + t.fixed_score - t.score).abs() < 1e-6 * t.score.abs(), "{sum} {t:?}");
        }
        fs::remove_dir_all(dir.join("ours")).unwrap();
        fs::remove_dir_all(dir.join("theirs")).unwrap();
    }
}

fn weight(weights: &Weights, name: &str) -> f64 {
    weights.iter().find(|w| w.0 == name).map_or(0.0, |w| w.1)
}

#[test]
fn training_stops_and_is_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    ok_in(dir, "generate --output c --train 300 --dev 1 --test 1 -q");
    // If training is cancelled while n-grams are counted, complete stages are kept.
    let stop =
        |step: &Step| if step.what == "n-grams" { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let stopped = training(dir, "m").progress(Progress::new(&stop)).run().unwrap_err();
    assert_eq!(stopped.kind(), ErrorKind::Interrupted);
    assert!(dir.join("m/table.bin").exists() && !dir.join("m/luthier.toml").exists());
    assert_eq!(Translator::open(dir.join("m")).err().unwrap().kind(), ErrorKind::NotFound);
    let ends = Mutex::new(Vec::new());
    let observe = |event: &Event<'_>| {
        if let Event::End { stage, resumed, .. } = event {
            ends.lock().unwrap().push((*stage, *resumed));
        }
    };
    let trained = training(dir, "m").observe(&observe).run().unwrap();
    assert!(trained.table.resumed && !trained.lm.resumed);
    let expected = [
        (Stage::Text, true),
        (Stage::Align, true),
        (Stage::Table, true),
        (Stage::Lm, false),
        (Stage::Weights, false),
    ];
    assert_eq!(*ends.lock().unwrap(), expected);
    training(dir, "whole").run().unwrap();
    assert!(files(&dir.join("m")) == files(&dir.join("whole")));
    // If training is cancelled before a stage is complete, no directory is left.
    let stop =
        |step: &Step| if step.what == "rounds" { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let stopped = training(dir, "none").progress(Progress::new(&stop)).run().unwrap_err();
    assert!(stopped.kind() == ErrorKind::Interrupted && !dir.join("none").exists());
    // Different settings are rejected; a given alignment and no language model are accepted as settings.
    let other = Settings { lm: LanguageModels::Estimate { order: 2 }, ..Settings::default() };
    assert_eq!(training(dir, "m").settings(other).run().unwrap_err().kind(), ErrorKind::Mismatch);
    let given = Settings {
        alignment: Alignment::Given(dir.join("c/train.links")),
        lm: LanguageModels::Given(Vec::new()),
        ..Settings::default()
    };
    let trained = training(dir, "given").settings(given).run().unwrap();
    assert!(trained.align.figures.perplexity.is_none() && trained.lm.figures.models.is_empty());
    Translator::open(dir.join("given")).unwrap();
}

#[test]
fn wrong_settings_and_weights_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    ok_in(dir, "generate --output c --train 60 --dev 1 --test 1 -q");
    for (settings, expected) in [
        (Settings { max_words: 0, ..Settings::default() }, "max-words is 0, expected 1 to 1000"),
        (
            Settings { lm: LanguageModels::Estimate { order: 7 }, ..Settings::default() },
            "the order is 7, expected 1 to 6",
        ),
    ] {
        let e = training(dir, "m").settings(settings).run().unwrap_err();
        assert_eq!(e.to_string(), expected);
        assert!(!dir.join("m").exists());
    }
    training(dir, "m").run().unwrap();
    let open = || Translator::open(dir.join("m")).unwrap();
    let one = |translator: &Translator| translator.translate(&["er schläft .", ""]).unwrap();
    let plain = one(&open());
    assert_eq!(plain[1], "");
    let none = Weights::parse("w", "other 1\n").unwrap();
    let e = open().with_weights(&none).err().unwrap().to_string();
    assert!(e.starts_with("the weights: has no weight for any feature of the model: "), "{e}");
    // With the word penalty as the only weight, the longest translation is best.
    let long = open().with_weights(&Weights::parse("w", "WordPenalty0 -5\n").unwrap()).unwrap();
    assert!(one(&long)[0].split(' ').count() >= plain[0].split(' ').count());
    let dropped = open().with_limits(Limits { drop_unknown: true, ..Limits::default() });
    assert_eq!(dropped.translate(&["unbekanntes"]).unwrap(), [""]);
    let stop = |_: &Step| ControlFlow::Break(());
    let stopped = open().translate_with(&["er schläft ."], Progress::new(&stop)).unwrap_err();
    assert_eq!(stopped.kind(), ErrorKind::Interrupted);
}

/// Reads the quickstart lists with their references.
fn quickstart() -> NBest {
    let at = |name: &str| common::root().join("examples/quickstart").join(name);
    NBest::read([at("nbest.txt")]).unwrap().with_references([at("ref.txt")]).unwrap()
}

#[test]
fn tuning_gives_the_weights_of_the_command_line() {
    let lists = quickstart();
    let dir = tempfile::tempdir().unwrap();
    for recipe in Recipe::all() {
        let name = recipe.info().name;
        let run = dir.path().join(name);
        let files = "--nbest examples/quickstart/nbest.txt --ref examples/quickstart/ref.txt";
        common::ok_in(&common::root(), &format!("tune {name} {files} --run {} -q", run.display()));
        let view = luthier::tune::RunView::open(&run).unwrap();
        for threads in [1, 3] {
            let tuned = luthier::tune(&lists, &recipe).threads(threads).run().unwrap();
            assert_eq!(tuned.weights, view.best_weights().unwrap(), "{name}");
            assert_eq!(tuned.history.len(), view.events.len(), "{name}");
            assert_eq!(Some(tuned.recipe), view.spec.as_ref().map(|s| s.recipe.clone()), "{name}");
        }
        // The library can open a run directory of the command line.
        let again = luthier::tune(&lists, &recipe).run_dir(&run).run().unwrap();
        assert_eq!(again.weights, view.best_weights().unwrap(), "{name}");
        assert_eq!(again.history.len(), view.events.len(), "{name}");
    }
}

#[test]
fn data_in_memory_count_by_their_contents() {
    let dir = tempfile::tempdir().unwrap();
    let lists = |good: f64| {
        let mut lists = NBest::default();
        lists.push(0, "a b c d", &[("f", good), ("g", 1.0)], &[]).unwrap();
        lists.push(0, "e", &[("f", 0.5), ("g", 0.0)], &[]).unwrap();
        lists.with_reference_texts(["a b c d"]).unwrap()
    };
    let recipe = Recipe::named("mert").unwrap();
    let tune = |lists: &NBest| luthier::tune(lists, &recipe).run_dir(dir.path().join("r")).run();
    let first = tune(&lists(1.0)).unwrap();
    assert_eq!(tune(&lists(1.0)).unwrap().weights, first.weights);
    let error = tune(&lists(0.0)).unwrap_err();
    assert_eq!(error.kind(), luthier::ErrorKind::Mismatch);
    assert!(error.to_string().contains("the input nbest is candidates in memory"), "{error}");
}

#[test]
fn mistakes_of_library_users_are_errors() {
    let lists = quickstart();
    let told = |result: luthier::Result<luthier::Tuned>| result.unwrap_err().to_string();
    let bound = luthier::tune::recipe::WeightBound { name: "lm".to_owned(), low: 1.0, high: 0.0 };
    let recipe = Recipe::from(luthier::Mert { bound: vec![bound], ..luthier::Mert::default() });
    assert_eq!(told(luthier::tune(&lists, &recipe).run()), "the bound of lm is 1,0, expected LOW below HIGH");
    let recipe = Recipe::from(luthier::Apro { c: Some(-1.0), ..luthier::Apro::default() });
    assert_eq!(told(luthier::tune(&lists, &recipe).run()), "c is -1, expected a number above 0");
    let recipe = Recipe::named("xbleu").unwrap();
    let chrf = luthier::tune(&lists, &recipe).metric("chrf").unwrap().run();
    assert!(told(chrf).starts_with("xbleu works only with BLEU"));
    let weights = luthier::Weights::parse("w", "logprobb 1\n").unwrap();
    let error = lists.rerank(&weights).unwrap_err().to_string();
    assert!(error.contains("no weight for any feature of the lists: logprob, lm, length"), "{error}");
    let mut odd = NBest::default();
    assert!(odd.push(0, "a", &[("f", 1.0), ("f", 2.0)], &[]).is_err());
    odd.push(0, "a", &[("f", 1.0)], &[]).unwrap();
    assert!(told(luthier::tune(&odd, &recipe).run()).starts_with("BLEU needs references"));
    let stop = |_: &luthier::core::Step| std::ops::ControlFlow::Break(());
    let recipe = Recipe::named("mert").unwrap();
    let stopped = luthier::tune(&lists, &recipe).progress(luthier::Progress::new(&stop)).run();
    assert_eq!(stopped.unwrap_err().kind(), luthier::ErrorKind::Interrupted);
}

/// Settings out of range are errors before any work, as on the command line.
#[test]
fn settings_out_of_range_are_refused() {
    use luthier::tune::recipe::{Fit, L1Setting};
    let dev = NBest::read(["examples/quickstart/nbest.txt"])
        .unwrap()
        .with_references(["examples/quickstart/ref.txt"])
        .unwrap();
    let mira = Recipe::named("mira").unwrap();
    let tuning = || luthier::tune(&dev, &mira);
    let share = "expected a number above 0 and below 1";
    for (result, message) in [
        (tuning().folds(0).run(), "the number of folds is 0, expected at least 2"),
        (tuning().folds(1).run(), "the number of folds is 1, expected at least 2"),
        (tuning().hold_out(2.0).run(), share),
        (tuning().hold_out(f64::NAN).run(), share),
        (tuning().hold_out(0.0).run(), share),
        (tuning().bootstrap(0).run(), "the number of resamples is 0, expected at least 2"),
        (tuning().bootstrap(1).run(), "the number of resamples is 1, expected at least 2"),
    ] {
        assert!(result.unwrap_err().to_string().contains(message), "{message}");
    }
    for l1 in [-1.0, 0.0, f64::NAN] {
        let fit = Fit { l1: Some(L1Setting(Some(l1))), ..Fit::default() };
        let pro = Recipe::Pro(luthier::Pro { fit, ..luthier::Pro::default() });
        let error = luthier::tune(&dev, &pro).run().unwrap_err().to_string();
        assert_eq!(error, format!("l1 is {l1}, expected a number above 0"));
    }
}
