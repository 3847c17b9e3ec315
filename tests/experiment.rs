//! Tests of `luthier experiment`, and of `luthier report` on its runs.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Failures, fails, in_dir, kill_after, ok_in, stderr};
use serde_json::Value;
use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Three algorithms, one of them with two settings: four cells, with two replicas except for the last.
const PLAN: &str = r#"
title = "A small one"
baseline = "MERT"
replicas = 2
iterations = 3
watch = true
tune = { nbest-size = 20 }
search = { pop-limit = 30 }

[text]
generate = { train = 400, dev = 24, test = 30 }
tune = "dev:1/2"
select = "dev:2/2"
test = ["test:1/2", "test:16-30"]

[[systems]]
name = "phrase"
train = { max-length = 3 }

[[algorithms]]
name = "MERT"
command = "mert"
tune = { restarts = 1 }

[[algorithms]]
name = "PRO"
command = "pro"
settings = { psi = [0.5, 1.0] }

[[algorithms]]
name = "from nothing"
command = "oro"
init = 0
replicas = 1

[[tables]]
title = "What we know"
columns = [["BLEU", "test"], ["second", "test2"], ["at 1", "select@1"], ["last", "test@last"], ["length", "length"]]
rows = [
    { cell = "MERT", paper = ["12.34", "9.9"] },
    { name = "a half", cell = "PRO psi=0.5" },
    { name = "elsewhere", paper = ["1", "2"] },
    { name = "nothing", cell = "from nothing" },
]

[[figures]]
title = "Curves"
values = ["score", "test"]
cells = ["MERT", "PRO"]

[[claims]]
id = "order"
claim = "PRO scores higher."
source = "A paper, table 1"
paper = "2 against 1."
note = "The text says 3."
expect = "higher"
value = "test"
pairs = [["PRO", "MERT"]]

[[claims]]
claim = "Output is short."
expect = "lower"
value = "length"
pairs = [["from nothing", 1]]

[[claims]]
claim = "Not claimed."
expect = "none"
value = "test"
pairs = [["PRO psi=0.5", "MERT"]]
than = [["PRO psi=1.0", "MERT"]]

[[claims]]
claim = "As good after one iteration."
expect = "at-least"
margin = 0.5
value = "select@1"
system = "phrase"
pairs = [["PRO", "MERT"]]

[[claims]]
claim = "MERT is less stable."
expect = "higher"
spread = "replicas"
value = "test2"
pairs = [["MERT", "PRO"]]

[[claims]]
claim = "The length differs from that of the references."
expect = "higher"
value = "length"
distance-from = 1
pairs = [["from nothing", 0]]
"#;

fn plan(dir: &Path) {
    fs::write(dir.join("small.toml"), PLAN).unwrap();
}

/// Returns results.json without times, memory and commands, which differ between runs.
fn timeless(dir: &Path) -> Value {
    let mut all: Value =
        serde_json::from_str(&fs::read_to_string(dir.join("results.json")).unwrap()).unwrap();
    all["seconds"] = Value::Null;
    for cell in all["cells"].as_array_mut().unwrap() {
        cell["seconds"] = Value::Null;
        for run in cell["runs"].as_array_mut().unwrap() {
            for key in ["seconds", "memory_mb", "command"] {
                run[key] = Value::Null;
            }
        }
    }
    all
}

fn cells(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.join("cells")).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> =
        entries.map(|e| e.path().join("result.json")).filter(|p| p.exists()).collect();
    all.sort();
    all
}

#[test]
fn tables_replicas_and_significance() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    plan(dir);
    let markdown = ok_in(dir, "experiment small.toml -q");
    assert_eq!(markdown, fs::read_to_string(dir.join("small/results.md")).unwrap());
    for line in [
        "# A small one",
        "## What we know",
        "## Curves",
        "![Curves: score](figure1-score.svg)",
        "![Curves: test](figure1-test.svg)",
    ] {
        assert!(markdown.lines().any(|l| l == line), "{line}: {markdown}");
    }
    let row = |name: &str| markdown.lines().find(|l| l.starts_with(&format!("| {name}"))).unwrap();
    assert!(row("MERT").contains("12.34") && row("MERT").contains(" ± "), "{}", row("MERT"));
    assert!(row("elsewhere").matches(char::is_alphanumeric).count() < 20, "{}", row("elsewhere"));
    assert!(!row("nothing").contains('±'), "one replica has no spread: {}", row("nothing"));
    assert_eq!(fs::read_to_string(dir.join("small/results.tsv")).unwrap().lines().count(), 8);
    assert!(fs::read_to_string(dir.join("small/figure1-score.svg")).unwrap().contains("PRO psi=0.5"));
    let all = timeless(&dir.join("small"));
    let found = all["cells"].as_array().unwrap();
    assert_eq!(found.len(), 4);
    for cell in found {
        let runs = cell["runs"].as_array().unwrap();
        let scores: Vec<f64> = runs.iter().map(|r| r["tests"][0]["score"].as_f64().unwrap()).collect();
        let mean = scores.iter().sum::<f64>() / scores.len() as f64;
        assert!((cell["tests"][0]["score"]["mean"].as_f64().unwrap() - mean).abs() < 1e-9);
        let p = &cell["tests"][0]["p_value"];
        assert_eq!(p.is_null(), cell["algorithm"] == "MERT", "{cell}");
    }
    // The command of a cell gives the same weights outside the experiment.
    let one = &found[1]["runs"][1];
    assert_eq!(one["seed"], 2);
    let command = fs::read_to_string(&cells(&dir.join("small"))[2]).unwrap();
    let command: Value = serde_json::from_str(&command).unwrap();
    let command = command["command"].as_str().unwrap().strip_prefix("luthier ").unwrap().to_owned();
    let run = command.split(" --run ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    ok_in(dir, &command.replace(&run, "alone"));
    assert_eq!(
        fs::read_to_string(dir.join("alone/best.txt")).unwrap(),
        fs::read_to_string(dir.join(&run).join("best.txt")).unwrap()
    );
    claims_of(dir, &all);
    page_of(dir);
}

/// Checks the claims of the experiment.
fn claims_of(dir: &Path, all: &Value) {
    let claims = all["claims"].as_array().unwrap();
    let ids: Vec<&str> = claims.iter().map(|c| c["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["order", "2", "3", "4", "5", "6"]);
    let cells = all["cells"].as_array().unwrap();
    let mean = |i: usize| cells[i]["tests"][0]["score"]["mean"].as_f64().unwrap();
    let near = |claim: &Value, key: &str, expected: f64| {
        assert!((claim[key].as_f64().unwrap() - expected).abs() < 1e-9, "{claim}");
    };
    // PRO is the mean of its two cells.
    let pro = f64::midpoint(mean(1), mean(2));
    near(&claims[0], "first", pro);
    near(&claims[0], "second", mean(0));
    near(&claims[0], "difference", pro - mean(0));
    near(&claims[2], "difference", mean(1) - mean(2));
    let ends = claims[0]["interval"].as_array().unwrap();
    assert!(ends[0].as_f64() < ends[1].as_f64(), "{}", claims[0]);
    let p = claims[0]["p_value"].as_f64().unwrap();
    assert!(p > 0.0 && p <= 1.0, "{}", claims[0]);
    assert_eq!((&claims[1]["interval"], &claims[1]["replicas"]), (&Value::Null, &Value::from(1)));
    let length = cells[3]["tests"][0]["length"]["mean"].as_f64().unwrap();
    near(&claims[1], "difference", length - 1.0);
    near(&claims[5], "difference", (length - 1.0).abs());
    let word = if length < 1.0 { "held (one run)" } else { "not held (one run)" };
    assert_eq!(claims[1]["verdict"], word);
    assert!(claims[2]["verdict"].as_str().unwrap().starts_with("not claimed: "), "{}", claims[2]);
    let deviation = cells[0]["tests"][1]["score"]["spread"].as_f64().unwrap();
    near(&claims[4], "first", deviation);
    let markdown = fs::read_to_string(dir.join("small/results.md")).unwrap();
    let row = markdown.lines().find(|l| l.starts_with("| order")).unwrap();
    assert!(row.contains("A paper, table 1: 2 against 1. The text says 3."), "{row}");
    assert!(row.contains(&format!("{pro:.2}, {:.2}", mean(0))), "{row}");
    // Claims about cells that are not run have no verdict.
    ok_in(dir, "experiment small.toml --only MERT -q");
    let fewer = timeless(&dir.join("small"));
    assert_eq!(fewer["claims"][0]["verdict"], "no results");
    ok_in(dir, "experiment small.toml -q");
}

/// Checks the report of the experiment.
fn page_of(dir: &Path) {
    ok_in(dir, "report small -o page.html -q");
    let page = fs::read_to_string(dir.join("page.html")).unwrap();
    let data = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["runs"].as_array().unwrap().len(), 7);
    let groups = data["evidence"].as_array().unwrap();
    assert_eq!(groups.len(), 1);
    let evidence = &groups[0];
    let systems = evidence["systems"].as_array().unwrap();
    assert_eq!((systems.len(), evidence["segments"].as_u64()), (8, Some(12)));
    let score = |s: &Value| s["score"].as_f64().unwrap();
    for system in systems {
        assert!(score(system) <= evidence["oracle"].as_f64().unwrap());
        assert!(score(system) >= evidence["anti"].as_f64().unwrap());
    }
    // The lists of all runs are merged, so that a run can choose what its own decoder has not found; the better of two runs
    // of MERT still scores at least as high as the initial weights.
    let mert = systems.iter().filter(|s| s["name"].as_str().unwrap().contains("MERT"));
    assert!(mert.map(score).fold(0.0, f64::max) >= score(&systems[0]), "{systems:?}");
    let sentence = &evidence["sentences"][0];
    assert!(sentence["source"].is_string() && sentence["refs"][0].is_string());
    assert!(sentence["candidates"].as_array().unwrap().len() >= 2, "{sentence}");
    let surface = &evidence["surfaces"][1][0]["drawn"];
    assert!(surface["plateaus"].as_u64().unwrap() > 1, "{surface}");
    // The report is reproducible byte for byte and has no external resources.
    ok_in(dir, "report small -o again.html -q --threads 1");
    assert_eq!(page, fs::read_to_string(dir.join("again.html")).unwrap());
    assert!(
        !page.contains("http://")
            || page.matches("http://").count() == page.matches("http://www.w3.org").count()
    );
    assert!(!page.contains("https://"));
}

/// Ctrl-C stops the experiment and its cells at once: one line, exit code 130, no process left.
#[test]
fn interrupted() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    plan(dir);
    let mut experiment = common::luthier();
    experiment.args(["experiment", "small.toml", "--output", "x", "--jobs", "2"]).current_dir(dir);
    experiment.process_group(0).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = experiment.spawn().unwrap();
    while !dir.join("x/cells").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let group = format!("-{}", child.id());
    let signal =
        |name: &str| Command::new("kill").args([name, "--", &group]).output().unwrap().status.success();
    assert!(signal("-INT"));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let said: Vec<&str> =
        stderr(&output).lines().filter(|l| l.contains("interrupted") || l.contains("failed")).collect();
    assert!(said.len() == 1 && said[0].contains("resume with: "), "{said:?}");
    assert!(!signal("-0"), "a cell is still running");
}

#[test]
fn killed_and_started_again() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    plan(dir);
    ok_in(dir, "experiment small.toml --output whole -q");
    // Complete cells are kept; the others are started or resumed.
    let mut waits = 400;
    let mut before = Vec::new();
    while before.is_empty() && waits < 60_000 {
        kill_after(dir, "experiment small.toml --output killed --jobs 1 -q", &[waits]);
        before = cells(&dir.join("killed"));
        waits += 400;
    }
    let times = |paths: &[PathBuf]| {
        paths.iter().map(|p| fs::metadata(p).unwrap().modified().unwrap()).collect::<Vec<_>>()
    };
    let (many, stamps) = (before.len(), times(&before));
    let output = in_dir(dir, "experiment small.toml --output killed");
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains(&format!("{many} of 7 cells are already complete")), "{said}");
    assert_eq!(times(&before), stamps, "a finished cell was made again");
    assert_eq!(timeless(&dir.join("killed")), timeless(&dir.join("whole")));
    // At least one cell runs, however small the memory limit, and threads do not affect the results.
    ok_in(dir, "experiment small.toml --output small1 --memory 1M --threads 3 -q");
    assert_eq!(timeless(&dir.join("small1")), timeless(&dir.join("whole")));
    // With more replicas, only the new ones are run.
    let output = in_dir(dir, "experiment small.toml --output killed --replicas 3 --only MERT");
    assert!(stderr(&output).contains("2 of 3 cells are already complete"), "{}", stderr(&output));
}

#[test]
fn shipped_experiments() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for (name, rows) in [("watanabe2012", 37), ("arun2007", 16), ("cer2008", 24), ("dreyer2015", 41)] {
        let shown = ok_in(dir, &format!("experiment {name} --show"));
        assert_eq!(
            shown,
            fs::read_to_string(common::root().join(format!("experiments/{name}.toml"))).unwrap()
        );
        let found = ok_in(dir, &format!("experiment {name} --quick -q"));
        let tables =
            found.split("## All cells").next().unwrap().split("## Figure 1: learning").next().unwrap();
        let lines =
            tables.lines().filter(|l| l.starts_with("| ") && !l.starts_with("| ---") && !l.contains("ours"));
        let lines: Vec<&str> = lines.filter(|l| !l.starts_with("|    ")).collect();
        assert_eq!(lines.len(), rows, "{name}: {tables}");
        assert!(!tables.contains("| – "), "{name}: a cell is missing: {tables}");
        assert!(
            tables.contains("truncated"),
            "{name}: --quick has fewer iterations than the paper, and says so"
        );
    }
}

/// Every claim of the papers has a row, a verdict and, unless replicas do not differ, an interval.
#[test]
fn claims_of_the_papers() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let shown = ok_in(dir, "experiment claims --show");
    let found = ok_in(dir, "experiment claims --quick -q");
    let all = timeless(&dir.join("claims-quick"));
    let claims = all["claims"].as_array().unwrap();
    assert_eq!(claims.len(), shown.matches("[[claims]]").count());
    let mut numbers: Vec<u32> = Vec::new();
    for claim in claims {
        let id = claim["id"].as_str().unwrap();
        numbers.push(id.trim_end_matches(char::is_alphabetic).parse().unwrap());
        let row = found.lines().find(|l| l.starts_with(&format!("| {id} "))).unwrap();
        let verdict = claim["verdict"].as_str().unwrap();
        assert!(row.contains(verdict) && row.contains(claim["claim"].as_str().unwrap()), "{row}");
        let words = ["held", "not held", "no difference", "not claimed: "];
        assert!(words.iter().any(|w| verdict.starts_with(w)), "{claim}");
        assert_eq!(verdict.starts_with("not claimed"), claim["expect"] == "none", "{claim}");
        assert_eq!(claim["replicas"], 3, "{claim}");
        assert_eq!(claim["interval"].is_null(), verdict.ends_with("(by sign)"), "{claim}");
        assert_eq!(claim["interval"].is_null(), claim["p_value"].is_null(), "{claim}");
    }
    numbers.dedup();
    assert_eq!(numbers, (1..=23).collect::<Vec<u32>>());
    phrase_pairs_of(&dir.join("claims-quick"));
    ok_in(dir, "report claims-quick -o page.html -q");
    let page = fs::read_to_string(dir.join("page.html")).unwrap();
    let data = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["claims"].as_array().unwrap().len(), claims.len());
}

/// The share of weighted phrase pairs of all cells is relative to the same number of table entries.
fn phrase_pairs_of(dir: &Path) {
    let mut entries = Vec::new();
    for path in cells(dir) {
        let result: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let best = fs::read_to_string(path.with_file_name("run").join("best.txt")).unwrap();
        let weighted = best.lines().filter(|l| l.starts_with("pp:") && !l.ends_with(" 0")).count() as f64;
        match result["weighted_phrase_pairs"].as_f64() {
            Some(share) => entries.push((weighted / share).round()),
            None => assert_eq!(weighted, 0.0, "{}", path.display()),
        }
    }
    assert_eq!(entries.len(), 24);
    assert!(entries.iter().all(|n| *n == entries[0] && *n > 100.0), "{entries:?}");
}

#[test]
fn mistakes() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().display().to_string();
    let message = |text: &str, words: &str| {
        fs::write(dir.path().join("x.toml"), text).unwrap();
        let out = format!("--output {at}/out");
        let said = fails(&format!("experiment {at}/x.toml {out} {words}"));
        assert!(!dir.path().join("out").exists(), "{said}");
        said.replace(&at, "D")
    };
    let failures = Failures::default();
    let said = fails("experiment nothing.toml");
    assert_eq!(
        said,
        "luthier: nothing.toml: no such file, expected an experiment file or one of watanabe2012, arun2007, cer2008, dreyer2015, claims"
    );
    assert!(message("title = 1\n", "").starts_with("luthier: D/x.toml:1: invalid type: integer `1`"));
    let wrong = PLAN.replace("columns = [[\"BLEU\", \"test\"]", "columns = [[\"BLEU\", \"bleu\"]");
    assert!(message(&wrong, "").contains("unknown value `bleu` of a table; known: dev, select, test"));
    let wrong = PLAN.replace("baseline = \"MERT\"", "baseline = \"mert\"");
    assert_eq!(message(&wrong, ""), "luthier: D/x.toml: the baseline mert is not one of its algorithms");
    let change = |from: &str, to: &str| {
        assert!(PLAN.contains(from), "{from}");
        message(&PLAN.replace(from, to), "")
    };
    for (from, to, said) in [
        ("cell = \"PRO psi=0.5\"", "cell = \"PR\"", "refers to a cell PR, which does not exist"),
        (
            "cell = \"PRO psi=0.5\"",
            "cell = \"PRO psi=7\"",
            "refers to a cell PRO psi=7, which does not exist",
        ),
        (
            "name = \"phrase\"",
            "name = \"../phrase\"",
            "`../phrase` is not a valid name of a system or an algorithm; a name must not contain / = | and must not begin with a dot",
        ),
        ("name = \"PRO\"", "name = \"from_nothing\"", "refers to a cell PRO psi=0.5, which does not exist"),
        (
            "\"test2\"]",
            "\"test3\"]",
            "unknown value `test3` of a table; known: dev, select, test, test2, length",
        ),
        (
            "command = \"pro\"",
            "command = \"foo\"",
            "unknown command foo of PRO; known: mert, pro, apro, mira",
        ),
        (
            "psi = [0.5, 1.0]",
            "psi = []",
            "replicas, iterations, corpus sizes and numbers of settings must be at least 1",
        ),
        ("psi = [0.5, 1.0]", "psi = [0.5, 1.0, 7.0]", "PRO psi=7.0: --psi is `7.0`"),
        ("psi = [0.5, 1.0]", "pssi = [0.5]", "refers to a cell PRO psi=0.5, which does not exist"),
        (
            "max-length = 3",
            "max-lenght = 3",
            "phrase: `train` has no flag --max-lenght; did you mean --max-length?",
        ),
        (
            "restarts = 1",
            "iterations = 1",
            "must not set the flag iterations, which the experiment sets itself; use iterations, init, [text] and replicas instead",
        ),
        (
            "replicas = 2",
            "replicas = 0",
            "replicas, iterations, corpus sizes and numbers of settings must be at least 1",
        ),
        ("replicas = 2", "replicas = 2\nmetric = \"bloe\"", "metric bloe: "),
        (
            "init = 0",
            "init = 0\nselect = \"dev:0/2\"",
            "select of from nothing: found `dev:0/2`, expected a name",
        ),
        ("\"test:16-30\"", "\"test:16-300\"", "test: has 30 lines, but the experiment uses test.16-300"),
        (
            "pairs = [[\"PRO\", \"MERT\"]]",
            "pairs = [[\"PRO\", \"PRQ\"]]",
            "claim order: refers to a cell PRQ, which does not exist",
        ),
        (
            "pairs = [[\"PRO\", \"MERT\"]]",
            "pairs = []",
            "claim order: has no pairs; give pairs = [[\"CELL\", \"CELL\"]]",
        ),
        (
            "[\"from nothing\", 1]",
            "[2.5, 1]",
            "claim 2: compares two numbers; one side of each pair must be a cell",
        ),
        (
            "[\"from nothing\", 1]",
            "[\"from nothing\", true]",
            "found `true`, expected the name of a cell or a number",
        ),
        (
            "value = \"length\"",
            "value = \"longth\"",
            "claim 2: unknown value `longth`; known: dev, select, test",
        ),
        (
            "value = \"test2\"",
            "value = \"test3\"",
            "claim 5: unknown value `test3`; known: dev, select, test",
        ),
        (
            "margin = 0.5",
            "",
            "claim 4: has no margin; equal and at-least need the largest difference that counts as equal",
        ),
        ("margin = 0.5", "margin = -0.5", "claim 4: has the margin -0.5; it must not be negative"),
        (
            "expect = \"at-least\"",
            "expect = \"higher\"",
            "claim 4: must not have a margin; only equal and at-least use one",
        ),
        (
            "expect = \"at-least\"",
            "expect = \"more\"",
            "unknown variant `more`, expected one of `higher`, `lower`, `equal`, `at-least`, `none`",
        ),
        ("system = \"phrase\"", "system = \"hiero\"", "refers to a system hiero, which does not exist"),
        ("id = \"order\"", "id = \"2\"", "claim 2: two claims have this id"),
        ("id = \"order\"", "name = \"order\"", "unknown field `name`, expected one of `id`, `claim`"),
        (
            "spread = \"replicas\"",
            "spread = \"replicas\"\ndistance-from = 1",
            "claim 5: with spread must have one pair of cells",
        ),
        (
            "tune = \"dev:1/2\"",
            "languages = \"fr-en\"",
            "the generated corpus is German and English; give text in other languages with --data",
        ),
    ] {
        failures.row(&format!("{from} → {to}"), || {
            let found = change(from, to);
            assert!(found.contains(said), "{from} → {to}: {found}");
        });
    }
    let wrong = PLAN.replace("\"dev:1/2\"", "\"dev:3/2\"");
    assert!(message(&wrong, "").contains("found `dev:3/2`, expected a name, name:1/2 or name:1-1000"));
    assert!(message(PLAN, "--only xyz").contains("--only xyz matches no cell; cells: MERT, PRO psi=0.5"));
    assert!(message(PLAN, "--data nowhere").starts_with("luthier: nowhere/dev.de: cannot open it"));
    // A failed cell does not stop the others.
    let wrong = PLAN.replace(
        "settings = { psi = [0.5, 1.0] }",
        "settings = { psi = [0.5, 1.0] }\nsearch = { dense = \"Nothing\" }",
    );
    fs::write(dir.path().join("x.toml"), wrong).unwrap();
    let output = in_dir(dir.path(), "experiment x.toml --replicas 1 -q");
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(
        said.starts_with("luthier: phrase PRO psi=0.5 1: ") && said.contains("(and 1 more cell"),
        "{said}"
    );
    assert_eq!(cells(&dir.path().join("x")).len(), 2);
    fails("experiment cer2008 --show --quick");
    fails("experiment cer2008 --only=");
    // Another corpus in the same directory.
    fs::write(dir.path().join("x.toml"), PLAN).unwrap();
    let output = in_dir(dir.path(), "experiment x.toml --seed 2 -q");
    let said = stderr(&output);
    assert!(said.contains("holds an experiment with other settings: seed is 1 there and 2 here"), "{said}");
}

#[test]
fn pages_of_runs() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let quick = common::root().join("examples/quickstart");
    let lists = format!("--nbest {0}/nbest.txt --ref {0}/ref.txt", quick.display());
    ok_in(dir, &format!("tune mert {lists} --run a -q"));
    ok_in(dir, &format!("tune pro {lists} --run b -q"));
    let output = in_dir(dir, "report a b");
    assert!(stderr(&output).starts_with("report.html: report of 2 runs ("), "{}", stderr(&output));
    let page = fs::read_to_string(dir.join("report.html")).unwrap();
    assert!(page.contains("\"evidence\":[{"));
    let output = in_dir(dir, "report . -o all.html");
    assert!(stderr(&output).starts_with("all.html: report of 2 runs ("), "{}", stderr(&output));
    fs::create_dir(dir.join("nothing")).unwrap();
    assert!(
        stderr(&in_dir(dir, "report nothing"))
            .contains("is not a run directory and contains no finished runs; give dir")
    );
    // If the lists were deleted, the report has no sections about them, and a warning says so.
    fs::copy(quick.join("nbest.txt"), dir.join("l")).unwrap();
    fs::copy(quick.join("ref.txt"), dir.join("r")).unwrap();
    ok_in(dir, "tune mert --nbest l --ref r --run c -q");
    fs::remove_file(dir.join("l")).unwrap();
    let output = in_dir(dir, "report c -o c.html");
    assert!(output.status.success());
    assert!(
        stderr(&output).starts_with(
            "luthier: warning: sentences, surfaces and significance are missing for some runs: l: cannot open it"
        ),
        "{}",
        stderr(&output)
    );
    assert!(fs::read_to_string(dir.join("c.html")).unwrap().contains("\"evidence\":[]"));
    ok_in(dir, &format!("report c -o d.html {lists} -q"));
    assert!(fs::read_to_string(dir.join("d.html")).unwrap().contains("\"evidence\":[{"));
    // Markup in texts is escaped.
    fs::write(dir.join("m"), "0 ||| </script><b> ||| f= 1 ||| 0\n0 ||| other ||| f= 2 ||| 0\n").unwrap();
    fs::write(dir.join("mr"), "</script><b>\n").unwrap();
    ok_in(dir, "tune mert --nbest m --ref mr --run e -q");
    ok_in(dir, "report e -o e.html -q --title <i>&");
    let page = fs::read_to_string(dir.join("e.html")).unwrap();
    assert_eq!(page.matches("</script>").count(), 2);
    assert!(page.contains("<title>&lt;i>&amp;</title>"));
    let said = |words: &str| stderr(&in_dir(dir, words)).to_owned();
    assert_eq!(
        said("report nowhere"),
        "luthier: nowhere: is not a run directory: it does not exist; give directories created by `luthier tune ALGORITHM --run DIR`\n"
    );
    ok_in(dir, &format!("tune mert {lists} --run t -m ter -q"));
    assert_eq!(
        said("report a t"),
        "luthier: t: is a run for the metric ter, but a is for bleu; a report shows runs for one metric\n"
    );
    assert_eq!(
        said("report a --per-source 3"),
        "luthier: --nbest-format, --per-source, --score-file and --allow-missing need --nbest; give lists with --nbest, \
         or leave these flags out\n"
    );
    assert!(said("report a --ref nowhere").starts_with("luthier: nowhere: cannot open it"));
    assert!(said("report a --ref mr").starts_with("luthier: mr: is not the file that the runs have read"));
    assert!(said("report a --source nowhere").starts_with("luthier: nowhere: cannot open it"));
    fs::write(dir.join("other"), "0 ||| a ||| foo= 1 ||| 0\n").unwrap();
    assert!(
        said("report a --nbest other --ref mr")
            .starts_with("luthier: a: has no weight for any feature of the lists")
    );
    // Paths with commas and blanks.
    fs::create_dir(dir.join("d, x")).unwrap();
    fs::copy(quick.join("nbest.txt"), dir.join("d, x/n, 1")).unwrap();
    let done = common::luthier()
        .args(["tune", "mert", "--nbest", "d, x/n, 1", "--ref", "r", "--run", "d, x/run", "-q"])
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(done.status.success());
    let done =
        common::luthier().args(["report", "d, x/run", "-o", "x.html"]).current_dir(dir).output().unwrap();
    assert!(stderr(&done).starts_with("x.html: report of 1 run"), "{}", stderr(&done));
    // Error rates: lower is better, and gains are negative.
    ok_in(dir, "report t -o t.html -q");
    let page = fs::read_to_string(dir.join("t.html")).unwrap();
    let data = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    let evidence = &data["evidence"][0];
    let gain = |s: &Value| s["drawn"]["gain"].as_f64().unwrap_or(0.0);
    let first = evidence["surfaces"][0].as_array().unwrap();
    assert!(first.iter().all(|s| gain(s) <= 0.0) && first.iter().any(|s| gain(s) < 0.0), "{first:?}");
    assert!(evidence["oracle"].as_f64() < evidence["anti"].as_f64());
    // Identical systems do not differ significantly.
    ok_in(dir, "report a a -o aa.html -q");
    let page = fs::read_to_string(dir.join("aa.html")).unwrap();
    assert!(page.contains("[0.0,1.0]"), "equal systems have p = 1");
}

/// Tests the report in Chromium; only if `scripts/check` has set `LUTHIER_BROWSER`.
#[test]
fn in_a_browser() {
    let Some(python) = std::env::var_os("LUTHIER_BROWSER") else {
        common::skip(
            "no browser asked for: scripts/check sets LUTHIER_BROWSER to a Python, where Chromium is",
        );
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    ok_in(dir, "generate --output c --train 600 --dev 30 --test 20 -q");
    for kind in ["phrase", "hiero"] {
        ok_in(dir, &format!("train --kind {kind} --source c/train.de --target c/train.en --model {kind} -q"));
        for algorithm in ["mert", "pro"] {
            ok_in(
                dir,
                &format!(
                    "tune {algorithm} --model {kind} --source c/dev.de --ref c/dev.en --run {kind}.{algorithm} --iterations 3 --nbest-size 30 --pop-limit 30 --test-source c/test.de --test-ref c/test.en -q"
                ),
            );
        }
    }
    ok_in(dir, "report phrase.mert phrase.pro hiero.mert hiero.pro -o four.html -q");
    ok_in(dir, "report phrase.mert -o one.html -q");
    let quick = common::root().join("examples/quickstart");
    ok_in(
        dir,
        &format!(
            "tune apro --nbest {0}/nbest.txt --ref {0}/ref.txt --run lists --folds 4 --bootstrap 20 -q",
            quick.display()
        ),
    );
    ok_in(dir, "report lists -o lists.html -q");
    let done = Command::new(python)
        .arg(common::root().join("scripts/browser.py"))
        .args(["four.html", "one.html", "lists.html"])
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}\n{}", String::from_utf8_lossy(&done.stdout), stderr(&done));
}
