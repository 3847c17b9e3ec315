//! Tests of decoding, and of tuning with the built-in decoder, with the real binary.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod common;

use common::{Failures, data, fails, in_dir, kill_after, luthier, ok_in, stderr, stdout};
use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::Stdio,
};

/// Generates the corpus `c` and trains the phrase-based model `m` on it.
fn small_model(dir: &Path) {
    ok_in(dir, "generate --output c --train 1500 --dev 40 --test 40 -q");
    ok_in(dir, "train --source c/train.de --target c/train.en --model m -q");
}

/// With the model and weights of Moses, model scores and translations are those of Moses.
#[test]
fn model_scores_are_mosess() {
    let (Some(ini), Some(raw), Some(test)) =
        (data("moses/model/moses.ini"), data("moses/test.cube1000.raw"), data("multi30k/test.de.gz"))
    else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    ok_in(dir, &format!("import {} --model m -q", ini.display()));
    ok_in(dir, &format!("decode --model m --input {} --json -o out --pop-limit 200", test.display()));
    let ours: Vec<serde_json::Value> = fs::read_to_string(dir.join("out"))
        .unwrap()
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let theirs: Vec<(f64, String)> = luthier::io::text::read_lines(&raw)
        .unwrap()
        .lines
        .iter()
        .map(|l| l.split_once(' ').map(|(s, t)| (s.parse().unwrap(), t.trim().to_owned())).unwrap())
        .collect();
    let (mut higher, mut equal, mut lower, mut same, mut parity) = (0, 0, 0, 0, 0);
    for (o, (score, text)) in ours.iter().zip(&theirs) {
        let mine = o["score"].as_f64().unwrap();
        // Moses prints six significant digits.
        let near = (mine - score).abs() <= 1e-4 * score.abs().max(1.0);
        match () {
            () if near => equal += 1,
            () if mine > *score => higher += 1,
            () => lower += 1,
        }
        same += usize::from(o["text"] == text.as_str());
        parity += usize::from(o["text"] == text.as_str() && near);
    }
    let mean = |all: &mut dyn Iterator<Item = f64>| all.sum::<f64>() / ours.len() as f64;
    eprintln!(
        "scores: {higher} higher, {equal} equal, {lower} lower; {same} the same words; mean {:.4}, Moses {:.4}",
        mean(&mut ours.iter().map(|o| o["score"].as_f64().unwrap())),
        mean(&mut theirs.iter().map(|t| t.0))
    );
    assert!(parity > 930 && lower < 70, "{parity} {lower}");
    // The score is the weighted sum of features, minus 100 for each unknown word that is copied.
    let weights: BTreeMap<String, f64> = fs::read_to_string(dir.join("m/weights.txt"))
        .unwrap()
        .lines()
        .filter_map(|l| l.split_once(' ').and_then(|(n, v)| Some((n.to_owned(), v.parse().ok()?))))
        .collect();
    for o in &ours {
        let sum: f64 =
            o["features"].as_object().unwrap().iter().map(|(n, v)| weights[n] * v.as_f64().unwrap()).sum();
        let passed = (sum - o["score"].as_f64().unwrap()) / 100.0;
        assert!((passed - passed.round()).abs() < 1e-5 && passed > -0.5, "{passed}");
    }
}

/// Candidates of Moses' n-best lists have the same features and the same score in Luthier's lists.
#[test]
fn candidates_are_mosess() {
    // Moses L1-normalises the initial weights.
    let phrases = [
        ("LexicalReordering0", 0.3, 6),
        ("Distortion0", 0.3, 1),
        ("LM0", 0.5, 1),
        ("WordPenalty0", -1.0, 1),
        ("PhrasePenalty0", 0.2, 1),
        ("TranslationModel0", 0.2, 4),
    ];
    compare_candidates("moses/model/moses.ini", "moses/nbest/run1.nbest.gz", &phrases, 4.6);
    let rules = [
        ("LM0", 0.5, 1),
        ("WordPenalty0", -1.0, 1),
        ("PhrasePenalty0", 0.2, 1),
        ("TranslationModel0", 0.2, 4),
        ("Glue0", 1.0, 1),
        ("Rules0", 0.0, 3),
    ];
    compare_candidates("hiero/moses.ini", "hiero/run1.nbest.gz", &rules, 3.5);
}

fn compare_candidates(ini: &str, list: &str, weights: &[(&str, f64, usize)], scale: f64) {
    let (Some(ini), Some(list), Some(dev)) = (data(ini), data(list), data("multi30k/dev.de.gz")) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    ok_in(dir, &format!("import {} --model m -q", ini.display()));
    let block = |(name, weight, n): &(&str, f64, usize)| {
        format!("{name}={}\n", format!(" {}", weight / scale).repeat(*n))
    };
    fs::write(dir.join("init"), weights.iter().map(block).collect::<String>()).unwrap();
    let lines = luthier::io::text::read_lines(&dev).unwrap().lines;
    fs::write(dir.join("dev"), lines[..100].join("\n") + "\n").unwrap();
    ok_in(
        dir,
        "decode --model m --weights init --input dev --nbest 200 --nbest-out list -o out --pop-limit 1000 --stack-size 1000",
    );
    // Features and score by segment and text.
    let read = |path: &Path| {
        let mut all: BTreeMap<(usize, String), (Vec<f64>, f64)> = BTreeMap::new();
        for line in luthier::io::text::read_lines(path).unwrap().lines {
            let fields: Vec<&str> = line.split("|||").map(str::trim).collect();
            let id: usize = fields[0].parse().unwrap();
            if id >= 100 {
                break;
            }
            let features = fields[2].split_whitespace().filter_map(|w| w.parse().ok()).collect();
            all.entry((id, fields[1].to_owned())).or_insert((features, fields[3].parse().unwrap()));
        }
        all
    };
    let (ours, theirs) = (read(&dir.join("list")), read(&list));
    let (mut common, mut same, mut better) = (0, 0, 0);
    for (key, (features, total)) in &theirs {
        let Some((mine, score)) = ours.get(key) else { continue };
        common += 1;
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-4 * a.abs().max(b.abs()).max(10.0);
        // The counts of rule types are the last features, and Moses does not have them.
        if mine.len() >= features.len() && mine.iter().zip(features).all(|(a, b)| near(*a, *b)) {
            assert!(near(*score, *total), "{key:?} {score} {total}");
            same += 1;
        } else {
            // Another derivation of the same text must not score lower.
            better += usize::from(*score >= total - 1e-2);
        }
    }
    eprintln!(
        "{} of Moses' candidates, {common} among ours: {same} with the same features and total, {better} by a better way",
        theirs.len()
    );
    assert!(
        common * 10 > theirs.len() * 6 && (same + better) * 100 >= common * 99,
        "{common} {same} {better}"
    );
}

/// Hierarchical models are trained, tuned and decoded like phrase-based ones.
#[test]
fn rules_from_text_to_tuned_weights() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    ok_in(dir, "generate --output c --train 1500 --dev 40 --test 40 -q");
    ok_in(dir, "train --source c/train.de --target c/train.en --model m --kind hiero -q");
    let words = "--model m --source c/dev.de --ref c/dev.en --nbest-size 30 --pop-limit 50 -q --json";
    let score = |words: &str| -> (f64, f64) {
        let made: serde_json::Value = serde_json::from_str(&ok_in(dir, words)).unwrap();
        (made["initial"].as_f64().unwrap(), made["score"].as_f64().unwrap())
    };
    let (initial, tuned) = score(&format!("tune mert {words} --iterations 3 --run a --threads 1"));
    assert!(tuned > initial + 1.0, "{initial} {tuned}");
    assert_eq!(score(&format!("tune mert {words} --iterations 3 --run b --threads 2")), (initial, tuned));
    let (_, online) = score(&format!(
        "tune oro {words} --iterations 2 --select-source c/test.de --select-ref c/test.en --run o"
    ));
    assert!(online > 0.0);
    ok_in(
        dir,
        "decode --model m --weights a/best.txt --input c/dev.de -o out --forest-out forests --pop-limit 50",
    );
    let found: serde_json::Value =
        serde_json::from_str(&ok_in(dir, "score out --ref c/dev.en --tokenize none --json")).unwrap();
    assert!((found[0]["score"].as_f64().unwrap() - tuned).abs() < 1e-9, "{found} {tuned}");
    // Empty lines, unknown words and reserved symbols.
    fs::write(dir.join("odd"), "\n \nx\n||| [X] [X][X] <s>\n").unwrap();
    ok_in(dir, "decode --model m --input odd -o odd.out");
    assert_eq!(fs::read_to_string(dir.join("odd.out")).unwrap(), "\n\nx\n||| [X] [X][X] <s>\n");
    for words in ["--force c/dev.en", "--max-bleu c/dev.en"] {
        let line = fails_in(dir, &format!("decode --model m --input c/dev.de {words}"));
        assert_eq!(
            line,
            "luthier: --force and --max-bleu are for phrase-based models, but the model is hierarchical"
        );
    }
    let line = fails_in(dir, "decode --model m --input c/dev.de --sparse phrase-pair");
    assert!(line.contains("sparse features are only available for phrase-based models"), "{line}");
}

/// Weights are bit-for-bit identical with 1 and 2 threads, after interruptions, and with the decoder as `--command`.
#[test]
fn tuning_does_not_depend_on_the_machine() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    small_model(dir);
    let search = "--pop-limit 100 --stack-size 50";
    for algorithm in ["mert", "pro", "mira"] {
        let words = format!(
            "tune {algorithm} --source c/dev.de --ref c/dev.en --iterations 3 --nbest-size 30 -q {search}"
        );
        let best = |run: &str| -> String {
            let text = fs::read_to_string(dir.join(run).join("best.txt")).unwrap();
            text.lines().filter(|l| !l.starts_with('#')).map(|l| format!("{l}\n")).collect()
        };
        ok_in(dir, &format!("{words} --model m --run {algorithm}-1 --threads 1"));
        ok_in(dir, &format!("{words} --model m --run {algorithm}-2 --threads 2"));
        let expected = best(&format!("{algorithm}-1"));
        assert_eq!(best(&format!("{algorithm}-2")), expected);
        let run = format!("{algorithm}-killed");
        kill_after(dir, &format!("{words} --model m --run {run}"), &[150, 400, 900]);
        ok_in(dir, &format!("{words} --model m --run {run}"));
        assert_eq!(best(&run), expected);
        // The decoder as an external program.
        let command = format!(
            "{} decode --model m --weights {{weights}} --input {{source}} --nbest {{k}} --nbest-out {{nbest}} -o hyp -q {search}",
            env!("CARGO_BIN_EXE_luthier")
        );
        let plain = words.replace(search, "");
        let run = format!("{algorithm}-command");
        let output = luthier()
            .args(plain.split_whitespace())
            .args(["--init", "m/weights.txt", "--run", &run, "--command", &command])
            .current_dir(dir)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(best(&run), expected, "{algorithm}");
    }
    let line = fails_in(
        dir,
        "tune mert --source c/dev.de --ref c/dev.en --model m --run mert-1 -q --iterations 2 --nbest-size 30 --pop-limit 100 --stack-size 50",
    );
    assert!(line.contains("iterations is 3 there and 2 here"), "{line}");
    let line = fails_in(
        dir,
        "tune mert --source c/dev.de --ref c/dev.en --model m --run mert-1 -q --iterations 3 --nbest-size 30 --pop-limit 90 --stack-size 50",
    );
    assert!(line.contains("search.pop-limit is 100 there and 90 here"), "{line}");
}

fn fails_in(dir: &Path, words: &str) -> String {
    let output = in_dir(dir, words);
    assert_eq!(output.status.code(), Some(2), "{words}");
    stderr(&output).trim_end().to_owned()
}

/// Every line of the input gets one line of output in the same order, whatever it contains.
#[test]
fn odd_text_is_answered_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    small_model(dir);
    let garbage: Vec<String> = (0..5000).map(|i| format!("x{}", i * 7919 % 4001)).collect();
    let known = fs::read_to_string(dir.join("c/test.de")).unwrap();
    let long: Vec<&str> = known.split_whitespace().take(200).collect();
    let odd =
        ["", "   ", "xyzzy plugh", "||| [X] <s> </s> <unk>", &garbage.join(" "), &long.join(" "), "ein", ""];
    fs::write(dir.join("odd"), odd.join("\n") + "\n").unwrap();
    let (one, two) = (
        ok_in(
            dir,
            "decode --model m --input odd --threads 1 --pop-limit 30 --stack-size 30 --nbest 5 --nbest-out n1",
        ),
        ok_in(
            dir,
            "decode --model m --input odd --threads 2 --pop-limit 30 --stack-size 30 --nbest 5 --nbest-out n2",
        ),
    );
    assert_eq!(one, two);
    assert_eq!(fs::read(dir.join("n1")).unwrap(), fs::read(dir.join("n2")).unwrap());
    let lines: Vec<&str> = one.split('\n').collect();
    assert_eq!(lines.len(), odd.len() + 1);
    assert_eq!((lines[0], lines[1], lines[2], lines[7]), ("", "", "xyzzy plugh", ""));
    assert_eq!(lines[3], "||| [X] <s> </s> <unk>");
    assert_eq!(lines[4].split(' ').count(), 5000);
    // The n-best list can be read back.
    ok_in(dir, "convert --nbest n1 --to jsonl -o n.jsonl");
    let output = in_dir(dir, "decode --model m --input odd -o out --stats --drop-unknown --pop-limit 30");
    assert!(stderr(&output).contains("8 sentences, 5,"), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(dir.join("out")).unwrap().lines().nth(2), Some(""));
}

/// Each line is translated as soon as it is read, not at the end of the input.
#[test]
fn standard_input_is_a_stream() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    small_model(dir);
    let mut child = luthier()
        .args(["decode", "--model", "m", "-q"])
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for word in ["eins", "zzz", "qqq"] {
        writeln!(input, "{word}").unwrap();
        input.flush().unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert!(line.ends_with('\n'));
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn forests_are_written_and_json_has_features() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    small_model(dir);
    let text = ok_in(dir, "decode --model m --input c/test.de --json --forest-out forests --pop-limit 50");
    let forests = fs::read_to_string(dir.join("forests")).unwrap();
    for (line, forest) in text.lines().zip(forests.lines()) {
        let answer: serde_json::Value = serde_json::from_str(line).unwrap();
        let read = luthier::forest::text::from_json(forest).unwrap();
        assert_eq!(answer["id"].as_u64(), Some(read.id));
        let weights: BTreeMap<luthier::core::FeatureKey, f64> = fs::read_to_string(dir.join("m/weights.txt"))
            .unwrap()
            .lines()
            .filter_map(|l| l.split_once(' '))
            .filter_map(|(n, v)| Some((luthier::core::FeatureKey::of(n), v.parse().ok()?)))
            .chain([(luthier::core::FeatureKey::of("UnknownWordPenalty0"), 1.0)])
            .collect();
        let local: Vec<f64> =
            read.forest.local.keys().iter().map(|k| weights.get(k).copied().unwrap_or(0.0)).collect();
        let best = read.forest.best(&read.forest.scores(&local)).unwrap();
        assert_eq!(answer["text"].as_str().unwrap(), read.forest.text(&best.words));
        assert!((answer["score"].as_f64().unwrap() - best.score).abs() < 1e-3);
    }
}

/// Where many translations have the same score, lists and JSON begin with the translation that is printed without them.
#[test]
fn lists_begin_with_the_output() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    small_model(dir);
    // With weights of this kind most sentences have several best translations.
    fs::write(dir.join("w"), "LM0 0.1\nPhrasePenalty0 1\n").unwrap();
    let decode = "decode --model m --weights w --input c/test.de";
    let plain = ok_in(dir, decode);
    let json = ok_in(dir, &format!("{decode} --json"));
    ok_in(dir, &format!("{decode} --nbest 1 --nbest-out list -o one"));
    let one = fs::read_to_string(dir.join("one")).unwrap();
    for ((plain, json), one) in plain.lines().zip(json.lines()).zip(one.lines()) {
        let json: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(json["text"].as_str(), Some(plain));
        assert_eq!(one, plain);
    }
    assert_eq!(one.lines().count(), plain.lines().count());
}

#[test]
fn bad_input_is_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().display().to_string();
    let put = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    fs::create_dir(dir.path().join("d")).unwrap();
    put("d/luthier.toml", "kind = \"phrase\"\n");
    put("w", "Nothing 1\n");
    put("a.ini", "[feature]\nKENLM name=LM0 path=nowhere.arpa\n[weight]\nLM0= 1\n");
    put("b.ini", "[feature]\nOpSequenceModel path=x\n[weight]\nLM0= 1\n");
    put("c.ini", "[search-algorithm]\n3\n[weight]\nLM0= 1\n");
    put("d.ini", "[feature]\nDistortion\n[weight]\nDistortion0= 1\n");
    let cases = [
        (
            "decode --model @none",
            "luthier: none: does not exist, expected a model directory; give a directory created by `luthier train` or `luthier import`",
        ),
        (
            "decode --model @d",
            "luthier: d/luthier.toml: missing field `table`; create the model again, or fix the file by hand",
        ),
        (
            "import @a.ini --model @m",
            "luthier: a.ini:2: the file nowhere.arpa of LM0 does not exist; tried nowhere.arpa and nowhere.arpa",
        ),
        (
            "import @b.ini --model @m",
            "luthier: b.ini:2: feature OpSequenceModel is not supported; remove its line and its weight, then tune",
        ),
        ("import @w --model @m", "luthier: w: has no [weight] section, expected a Moses configuration"),
        (
            "tune mert --nbest @w --ref @w --run @r --pop-limit 9",
            "luthier: --pop-limit is for tuning with a decoder, but n-best lists are given with --nbest; leave --pop-limit out, or give --model and --source instead of --nbest",
        ),
        ("decode --model @d --beam -1", "luthier: --beam is `-1`, expected a number, 0 or more"),
        ("import @c.ini --model @m", "luthier: c.ini: has no PhraseDictionaryMemory"),
        ("import @d.ini --model @m", "luthier: d.ini: has no PhraseDictionaryMemory"),
        (
            "import @none.ini --model @m",
            "luthier: none.ini: cannot open it: no such file or directory; check the path",
        ),
        (
            "decode --model @d --pop-limit 0",
            "luthier: --pop-limit is `0`, expected a whole number, at least 1",
        ),
        (
            "tune mert --model @none --source @w --ref @w --run @r",
            "luthier: none: does not exist, expected a model directory; give a directory created by `luthier train` or `luthier import`",
        ),
    ];
    let failures = Failures::default();
    for (words, expected) in cases {
        failures.row(words, || {
            let line = fails(&words.replace('@', &format!("{at}/"))).replace(&format!("{at}/"), "");
            assert_eq!(line, expected, "{words}");
        });
    }
    assert!(!dir.path().join("m").exists() && !dir.path().join("r").exists());
    small_model(dir.path());
    let line = fails_in(dir.path(), "decode --model m --weights w --input c/test.de");
    assert!(
        line.starts_with("luthier: w: has no weight for any feature of the model: LexicalReordering0[0]"),
        "{line}"
    );
    let line = fails_in(dir.path(), "tune mert --model m --source c/test.de --ref c/train.en --run r -q");
    assert_eq!(
        line,
        "luthier: c/test.de: the source has 40 lines, but c/train.en has 1500; both need one line per segment"
    );
    let line = fails_in(
        dir.path(),
        "tune mert --model m --source c/dev.de --ref c/dev.en --metric column:x --run r -q",
    );
    assert!(line.contains("the metric reads column `x`, which a decoder does not produce"), "{line}");
    assert_eq!(stdout(&in_dir(dir.path(), "decode --model m --input w")).lines().count(), 1);
}

/// Regression tests: n-best lists of long sentences, output before an invalid line, output files that are inputs, and
/// invalid model files.
#[test]
fn found_in_review() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    small_model(dir);
    let long: Vec<String> = (0..2700).map(|i| format!("w{i}")).collect();
    fs::write(dir.join("long"), long.join(" ") + "\n").unwrap();
    let text =
        ok_in(dir, "decode --model m --input long --pop-limit 20 --stack-size 20 --nbest 1 --nbest-out -");
    assert!(text.starts_with("0 ||| w0 "), "{}", &text[..40.min(text.len())]);
    let mut bytes = b"ein\nzwei\n".to_vec();
    bytes.extend(b"\xff bad\ndrei\n");
    fs::write(dir.join("bad"), bytes).unwrap();
    let output = in_dir(dir, "decode --model m --input bad");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stdout(&output).lines().count(), 2);
    assert!(stderr(&output).starts_with("luthier: bad:3: byte 1 of the line (0xff) is not UTF-8"));
    let failures = Failures::default();
    for words in ["-o out --forest-out ./out", "-o m/table.bin", "-o c/test.de", "--weights ww -o ww"] {
        failures.row(words, || {
            fs::write(dir.join("ww"), fs::read(dir.join("m/weights.txt")).unwrap()).unwrap();
            let line = fails_in(dir, &format!("decode --model m --input c/test.de {words}"));
            assert!(line.contains("would be written over"), "{line}");
            assert!(!dir.join("out").exists());
        });
    }
    fs::write(dir.join("huge"), "LM0 1e200\n").unwrap();
    let line = fails_in(dir, "decode --model m --input c/test.de --weights huge");
    assert!(line.contains("huge: the weight of LM0 is 1"), "{line}");
    // `|||` in the text is escaped in n-best lists and kept in forests.
    fs::write(dir.join("bars.de"), "ein ||| a|||b\nzwei\n").unwrap();
    fs::write(dir.join("bars.en"), "one ||| a|||b\ntwo\n").unwrap();
    let text = ok_in(dir, "decode --model m --input bars.de --forest-out f -o o --nbest 1 --nbest-out l");
    assert!(text.is_empty() && fs::read_to_string(dir.join("l")).unwrap().contains("&#124;&#124;&#124;"));
    let forest =
        luthier::forest::text::from_json(fs::read_to_string(dir.join("f")).unwrap().lines().next().unwrap());
    assert!(forest.unwrap().forest.words.iter().any(|w| w == "a|||b"));
    let toml = fs::read_to_string(dir.join("m/luthier.toml")).unwrap();
    for (change, expected) in [
        (
            ("\"phrase\"", "\"other\""),
            "m/luthier.toml:2: found `kind = \"other\"`: unknown variant `other`, expected",
        ),
        (
            ("\"phrase\"", "\"hiero\""),
            "contains phrases, but the kind of the model in luthier.toml is \"hiero\"",
        ),
        (
            ("oov = false", "oov = \"yes\""),
            "found `oov = \"yes\"`: invalid type: string \"yes\", expected a boolean",
        ),
        (("oov = false", "ooov = false"), "unknown field `ooov`, expected one of `kind`"),
        (
            ("oov = false", "distortion-limit = -3"),
            "found `distortion-limit = -3`: -3 is negative, expected 0 or more",
        ),
        (("oov = false", "oov = "), "m/luthier.toml:6: "),
    ] {
        failures.row(change.1, || {
            fs::write(dir.join("m/luthier.toml"), toml.replace(change.0, change.1)).unwrap();
            let line = fails_in(dir, "decode --model m --input c/test.de");
            assert!(line.contains(expected), "{line}");
        });
    }
}
