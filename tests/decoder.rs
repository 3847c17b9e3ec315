//! Tests of external decoders, error surfaces, and fixed and bounded weights, with the real binary.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Failures, fails, luthier, ok_in, stderr, stdout};
use serde_json::Value;
use std::{fs, path::Path, process::Output};

/// A decoder in Python that writes the `k` best candidates of the file `pool` under the weights. The file `mood` names the
/// failure that it simulates at iteration 3.
const DECODER: &str = r"
import os, sys, time
pool, weights, k, iteration, out = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
w = dict((line.rsplit(' ', 1)[0], float(line.rsplit(' ', 1)[1])) for line in open(weights))
mood = open('mood').read().strip() if iteration == 3 and os.path.exists('mood') else ''
print('decoding iteration', iteration, file=sys.stderr)
if mood == 'fail':
    print('model file is broken', file=sys.stderr)
    sys.exit(7)
if mood == 'hang':
    os.kill(os.getpid(), 9)
if mood == 'nothing':
    sys.exit(0)
lists = {}
for line in open(pool):
    id, text, features, _ = line.rstrip('\n').split(' ||| ')
    values = [float(v) for v in features.split()[1:]]
    score = sum(v * w.get(f'A[{i}]', 0) for i, v in enumerate(values))
    lists.setdefault(int(id), []).append((-score, len(lists.get(int(id), [])), line))
with open(out, 'w') as file:
    for id in sorted(lists):
        for _, _, line in sorted(lists[id])[:k]:
            file.write('garbage\n' if mood == 'garbage' else line)
";

fn tune(dir: &Path, run: &str, more: &str) -> Output {
    let mut command = luthier();
    command
        .args([
            "tune",
            "mert",
            "--source",
            "src",
            "--ref",
            "ref",
            "--run",
            run,
            "--nbest-size",
            "6",
            "--restarts",
            "2",
        ])
        .args(["--iterations", "6", "--init", "init"])
        .args(["--command", "python3 decoder.py nbest {weights} {k} {iteration} {nbest}"])
        .args(more.split_whitespace())
        .current_dir(dir);
    command.output().unwrap()
}

fn workshop() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    common::write_pool(dir.path());
    fs::write(dir.path().join("decoder.py"), DECODER).unwrap();
    fs::write(dir.path().join("src"), "x\n".repeat(60)).unwrap();
    fs::write(dir.path().join("init"), "A= 1 0 0 0 0 0\n").unwrap();
    dir
}

#[test]
fn a_decoder_that_fails_is_mended_and_the_run_goes_on_to_the_same_bits() {
    let dir = workshop();
    let whole = tune(dir.path(), "whole", "");
    assert!(whole.status.success(), "{}", stderr(&whole));
    let lines = stderr(&whole).lines().filter(|l| l.starts_with("iteration")).count();
    assert!(lines > 4, "{}", stderr(&whole));
    let best = |run: &str| fs::read_to_string(dir.path().join(run).join("best.txt")).unwrap();
    let failures = Failures::default();
    for (mood, expected) in [
        (
            "fail",
            "the decoder failed with exit code 7 at iteration 3: decoding iteration 3 / model file is broken",
        ),
        ("hang", "the decoder was killed by signal 9 at iteration 3: decoding iteration 3"),
        ("garbage", ".nbest:1: found `garbage`, which is not a recognised n-best format"),
        ("nothing", "the decoder wrote no list at iteration 3: decoding iteration 3"),
    ] {
        failures.row(mood, || {
            fs::write(dir.path().join("mood"), mood).unwrap();
            let broken = tune(dir.path(), mood, "-q");
            fs::remove_file(dir.path().join("mood")).unwrap();
            assert_eq!((broken.status.code(), stdout(&broken)), (Some(2), ""));
            assert!(stderr(&broken).contains(expected), "{}", stderr(&broken));
            assert_eq!(stderr(&broken).lines().count(), 1);
            let mended = tune(dir.path(), mood, "");
            assert!(mended.status.success(), "{}", stderr(&mended));
            assert!(
                !stderr(&mended).contains("iteration 2"),
                "what was done is not done again: {}",
                stderr(&mended)
            );
            assert_eq!(best(mood), best("whole"), "{mood}");
        });
    }
}

#[test]
fn a_command_without_weights_is_refused() {
    let dir = workshop();
    let at = dir.path().display();
    let mut command = luthier();
    command.args([
        "tune",
        "mert",
        "--source",
        "src",
        "--ref",
        "ref",
        "--run",
        "R",
        "--command",
        "echo {nbest}",
    ]);
    std::fs::write(dir.path().join("w"), "x 1\n").unwrap();
    let without = luthier()
        .args("tune mert --source src --ref ref --run R --command".split(' '))
        .arg("cat {weights}")
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert!(
        stderr(&without).contains("--command needs initial weights; give --init FILE"),
        "{}",
        stderr(&without)
    );
    let output = command.args(["--init", "w"]).current_dir(dir.path()).output().unwrap();
    assert!(stderr(&output).contains("the command does not use the weights"), "{}", stderr(&output));
    assert!(!dir.path().join("R").exists());
    assert!(fails(&format!("tune mert --ref {at}/ref --run {at}/R")).contains("no n-best list"));
}

#[test]
fn weights_are_fixed_bounded_and_put_into_a_moses_configuration() {
    let dir = workshop();
    let ini = "[feature]\nX\n[weight]\nUnknownWordPenalty0= 1\nA= 1 0.5 0 0 0 0\n[end]\n6";
    fs::write(dir.path().join("moses.ini"), ini).unwrap();
    let words = "tune mert --nbest nbest --ref ref --run R --restarts 4 --moses-ini moses.ini --moses-ini-out out.ini \
                 --fix A[1] --bound A[0]=0.2,1.5 --bound A[2]=-0.1,0.1 --json";
    let output = luthier().args(words.split_whitespace()).current_dir(dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let result: Value = serde_json::from_str(stdout(&output)).unwrap();
    let weight = |i: usize| result["weights"][format!("A[{i}]")].as_f64().unwrap();
    assert_eq!(weight(1), 0.5);
    assert!((0.2..=1.5).contains(&weight(0)) && (-0.1..=0.1).contains(&weight(2)));
    let tuned: Vec<String> = (0..6).map(|i| weight(i).to_string()).collect();
    let expected = ini.replace("A= 1 0.5 0 0 0 0", &format!("A= {}", tuned.join(" ")));
    assert_eq!(fs::read_to_string(dir.path().join("out.ini")).unwrap(), expected);
    let at = dir.path().display();
    let message = fails(&format!("tune mert --nbest {at}/nbest --ref {at}/ref --run {at}/S --fix B"));
    assert!(
        message.contains("--fix or --bound names `B`, which is not a feature; the features are A[0], A[1]"),
        "{message}"
    );
    let message =
        fails(&format!("tune mert --nbest {at}/nbest --ref {at}/ref --run {at}/S --bound A[0]=2,1"));
    assert!(message.contains("expected NAME=LOW,HIGH"), "{message}");
    let message = fails(&format!(
        "tune mert --nbest {at}/nbest --ref {at}/ref --run {at}/S --moses-ini {at}/init --moses-ini-out {at}/o"
    ));
    assert!(message.contains("has no [weight] section"), "before any work: {message}");
    assert!(!dir.path().join("S").exists());
    assert!(fails("tune mert --run R --window 4").contains("expected an odd number"));
}

/// Every search strategy and smoothing gives the same result with any number of threads.
#[test]
fn strategies_and_smoothing() {
    let dir = workshop();
    for (i, more) in [
        "--strategy iterated --budget 300",
        "--strategy koehn --random-directions 3 --rounds 2",
        "--strategy powell",
        "--strategy random --direction-patience 5",
        "--strategy simplex",
        "--smooth average --window 5",
        "--smooth max",
    ]
    .iter()
    .enumerate()
    {
        let run = |threads: u32| {
            let words = format!(
                "tune mert --nbest nbest --ref ref --run R{i}{threads} --init init --restarts 3 {more} --threads {threads} --json -q"
            );
            serde_json::from_str::<Value>(&ok_in(dir.path(), &words)).unwrap()
        };
        let (one, two) = (run(1), run(2));
        assert_eq!(one, two, "{more}");
        assert!(one["score"].as_f64().unwrap() > one["initial"].as_f64().unwrap(), "{more}");
    }
    let at = dir.path().display();
    let message = fails(&format!(
        "tune mert --nbest {at}/nbest --ref {at}/ref --run {at}/S --strategy simplex --smooth max"
    ));
    assert!(message.contains("--smooth applies to line searches"), "{message}");
}

/// Tuning and error surfaces with metrics other than BLEU.
#[test]
fn other_metrics_are_tuned_and_drawn() {
    let dir = workshop();
    fs::write(dir.path().join("w"), "A= 1 0.5 -0.5 0.1 0 0\n").unwrap();
    for (i, metric) in ["chrf", "wer", "0.5*bleu+0.5*chrf", "column:A[5]"].iter().enumerate() {
        let json = ok_in(
            dir.path(),
            &format!(
                "tune mert --nbest nbest --ref ref -m {metric} --init init --run R{i} --restarts 2 --json -q"
            ),
        );
        let result: Value = serde_json::from_str(&json).unwrap();
        let (from, to) = (result["initial"].as_f64().unwrap(), result["score"].as_f64().unwrap());
        assert!(if *metric == "wer" { to < from } else { to > from }, "{metric}: {from} {to}");
        let json = ok_in(
            dir.path(),
            &format!(
                "surface --nbest nbest --ref ref -m {metric} --weights w --direction A[0] --svg s{i}.svg --smooth max --json -q"
            ),
        );
        let surface: Value = serde_json::from_str(&json).unwrap();
        let intervals = surface["intervals"].as_array().unwrap();
        assert!(
            intervals.len() > 10 && intervals[0]["from"].is_null() && intervals[0]["smoothed"].is_number()
        );
        let best = surface["best"]["smoothed"].as_f64().unwrap();
        let worse = |v: &Value| {
            if *metric == "wer" { v.as_f64().unwrap() >= best } else { v.as_f64().unwrap() <= best }
        };
        assert!(intervals.iter().all(|i| worse(&i["smoothed"])), "{metric}");
        let svg = fs::read_to_string(dir.path().join(format!("s{i}.svg"))).unwrap();
        assert!(svg.starts_with("<svg") && svg.matches("<path").count() == 3, "{metric}");
    }
    let tsv = ok_in(dir.path(), "surface --nbest nbest --ref ref --weights w --direction w -q");
    assert!(tsv.starts_with("from\tto\tscore\n-inf\t"), "{tsv}");
    let at = dir.path().display();
    let message = fails(&format!("surface --nbest {at}/nbest --ref {at}/ref --weights {at}/w --direction B"));
    assert!(
        message.contains("--direction is `B`, which is neither a feature of the lists nor a file"),
        "{message}"
    );
}

#[test]
fn tune_lists_its_algorithms() {
    let list = stdout(&luthier().args(["tune", "--list"]).output().unwrap()).to_owned();
    assert!(list.starts_with("mert ") && list.contains("Och 2003"), "{list}");
}

/// A feature that first appears in a later iteration is tuned.
#[test]
fn a_feature_that_comes_late_is_tuned() {
    let dir = workshop();
    let decoder = DECODER.replace(
        "file.write('garbage\\n' if mood == 'garbage' else line)",
        "file.write(line if iteration == 0 else line.replace(' ||| 0', f' late= {len(set(line.split()) & set(refs[id]))} ||| 0'))",
    );
    let decoder = decoder.replace("lists = {}", "refs = [l.split() for l in open('ref')]\nlists = {}");
    fs::write(dir.path().join("decoder.py"), decoder).unwrap();
    let output = tune(dir.path(), "R", "");
    assert!(output.status.success(), "{}", stderr(&output));
    let best = fs::read_to_string(dir.path().join("R/best.txt")).unwrap();
    let late: f64 = best.lines().find_map(|l| l.strip_prefix("late ")).unwrap().parse().unwrap();
    assert!(late.abs() > 0.01, "{best}");
}

#[test]
fn initial_weights_are_put_within_bounds() {
    let dir = workshop();
    let words = "tune mert --nbest nbest --ref ref --init init --restarts 1 --run R --bound A[0]=-2,-1 -q";
    ok_in(dir.path(), words);
    let first = fs::read_to_string(dir.path().join("R/weights/000.txt")).unwrap();
    assert!(first.starts_with("A[0] -1\n"), "{first}");
    let at = dir.path().display();
    let both = fails(&format!(
        "tune mert --nbest {at}/nbest --ref {at}/ref --run {at}/S --fix A[0] --bound A[0]=0,1"
    ));
    assert!(both.contains("A[0] is both fixed and bounded"), "{both}");
}

/// Columns that the metric reads from the candidates are available when a run is resumed.
#[test]
fn columns_survive_an_interruption() {
    use luthier::core::random::{Purpose, Stream};
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mut s = Stream::new(5, Purpose::Test, 0, 0);
    let mut write = |iteration: usize| {
        let mut text = String::new();
        for segment in 0..4 {
            for _ in 0..5 {
                let [a, b, q] = [0; 3].map(|_: i32| s.uniform(0.0, 1.0));
                text += &format!(
                    "{{\"id\":{segment},\"text\":\"t{}\",\"features\":{{\"a\":{a},\"b\":{b}}},\"scores\":{{\"q\":{q}}}}}\n",
                    s.below(50)
                );
            }
        }
        std::fs::write(dir.join(format!("list{iteration}")), text).unwrap();
    };
    (0..6).for_each(&mut write);
    std::fs::write(dir.join("src"), "a\nb\nc\nd\n").unwrap();
    std::fs::write(dir.join("w"), "a 1\n").unwrap();
    let go = |run: &str| {
        let words = format!(
            "tune mert --source src --ref src --metric column:q --init w --run {run} --iterations 4 -q"
        );
        let command = "cat list{iteration} # {weights}";
        common::luthier()
            .args(words.split_whitespace())
            .args(["--command", command])
            .current_dir(dir)
            .output()
            .unwrap()
    };
    assert!(go("whole").status.success());
    std::fs::rename(dir.join("list2"), dir.join("away")).unwrap();
    assert_eq!(go("cut").status.code(), Some(2));
    std::fs::rename(dir.join("away"), dir.join("list2")).unwrap();
    let again = go("cut");
    assert!(again.status.success(), "{}", common::stderr(&again));
    let best = |run: &str| std::fs::read_to_string(dir.join(run).join("best.txt")).unwrap();
    assert_eq!(best("cut"), best("whole"));
}
