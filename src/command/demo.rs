//! `luthier demo`: training, tuning and comparison of systems on a small corpus.

use super::{Common, Done, write_out};
use crate::{corpus, subprocess::Rerun, table::Table, talk::Talk};
use luthier::{
    core::{Error, Result},
    io::{AtomicFile, text},
    metric::{Hypothesis, Metric, Scratch, SentenceSmoothing},
    tune::RunView,
};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

/// Run a demonstration: generate a corpus, train, tune, translate, compare.
///
/// Trains a phrase-based and a hierarchical system on a generated corpus, tunes both with six algorithms, translates a test set
/// with each result, tests significance and writes an HTML report. Every step is a command of its own, which is shown. Re-run
/// the same command to resume.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Output directory; created, or resumed if it exists.
    #[arg(long, short, value_name = "DIR", default_value = "luthier-demo")]
    output: PathBuf,
    /// Directory of a tokenised corpus of your own: train, dev and test in two languages, such as train.de and train.en.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// File name extensions of the corpus, source first.
    #[arg(long, value_name = "FROM-TO", default_value = "de-en", requires = "data", value_parser = corpus::endings)]
    languages: (String, String),
    /// Start `luthier serve` at the end: a page that translates text with the best of the phrase-based systems.
    #[cfg(feature = "serve")]
    #[arg(long)]
    serve: bool,
    /// Address and port of --serve; port 0 selects a free port.
    #[cfg(feature = "serve")]
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7878", requires = "serve")]
    listen: super::serve::Address,
}

/// A kind of translation system.
struct System {
    name: &'static str,
    /// Flags of `train`.
    train: &'static [&'static str],
    /// Search limits: flags of `tune` and `decode`.
    limits: &'static [&'static str],
}

const SYSTEMS: [System; 2] = [
    System { name: "phrase", train: &[], limits: &["--pop-limit", "200"] },
    System { name: "hiero", train: &["--kind", "hiero"], limits: &["--pop-limit", "100"] },
];

/// Names of algorithms and their arguments of `tune`. O-ORO starts from zero weights, because its steps are small
/// compared with the initial weights of the model.
const ALGORITHMS: [(&str, &[&str]); 6] = [
    ("MERT", &["mert", "--iterations", "5"]),
    ("PRO", &["pro", "--psi", "0.5", "--iterations", "5"]),
    ("APRO", &["apro", "--iterations", "5"]),
    ("MIRA", &["mira", "--iterations", "5"]),
    ("xBLEU", &["xbleu", "--iterations", "5"]),
    ("O-ORO-L", &["oro", "--optimized", "--mixing", "line-search", "--shards", "2", "--iterations", "6"]),
];

/// Total number of commands: generation and report; for each system training, decoding, score, oracle and comparison,
/// and two commands for each algorithm.
const COMMANDS: usize = 2 + SYSTEMS.len() * (5 + 2 * ALGORITHMS.len());

/// Result of an algorithm on a system.
struct Cell {
    system: &'static str,
    algorithm: &'static str,
    /// BLEU on dev, which the weights were tuned on.
    dev: f64,
    /// BLEU on test.
    test: f64,
    /// Difference from the untuned system on test, in BLEU.
    delta: f64,
    /// p-value of the difference.
    p: f64,
    /// Duration of tuning in seconds.
    seconds: f64,
    /// File of the translations of test.
    output: PathBuf,
}

pub(crate) fn run(args: &Args, common: &Common, talk: Talk) -> Done {
    let clock = Instant::now();
    let demo = Demo::new(args, common, talk)?;
    let mut cells = Vec::new();
    let mut untuned = Vec::new();
    for system in &SYSTEMS {
        let before = demo.train(system)?;
        cells.extend(demo.tune(system, &before)?);
        untuned.push(before);
    }
    let report = demo.report(&cells)?;
    let text = if common.json { as_json(&untuned, &cells) } else { demo.as_text(&untuned, &cells)? };
    write_out(None, text.as_bytes())?;
    talk.say(&format!(
        "{:.1} s in total; results are in {}; open {report} in a browser",
        clock.elapsed().as_secs_f64(),
        args.output.display()
    ));
    #[cfg(feature = "serve")]
    if args.serve {
        return demo.serve(&cells, args, common, talk);
    }
    Ok(ExitCode::SUCCESS)
}

/// Result of a system with its initial weights.
struct Untuned {
    system: &'static str,
    /// File of the translations of test.
    output: PathBuf,
    /// BLEU on test.
    score: f64,
    /// Oracle BLEU of its n-best lists on test.
    oracle: f64,
}

struct Demo<'a> {
    rerun: Rerun<'a>,
    out: &'a Path,
    /// Directory of the corpus.
    data: PathBuf,
    /// File name extensions of the corpus, source first.
    languages: &'a (String, String),
}

impl<'a> Demo<'a> {
    /// Generates the corpus unless one is given. Fails if the sides of a part differ in length or are empty.
    fn new(args: &'a Args, common: &'a Common, talk: Talk) -> Result<Self> {
        let data = args.data.clone().unwrap_or_else(|| args.output.join("corpus"));
        let demo = Demo {
            rerun: Rerun::new(common, talk)?.expecting(COMMANDS),
            out: &args.output,
            data,
            languages: &args.languages,
        };
        if args.data.is_none() {
            fs::create_dir_all(&args.output)
                .map_err(|e| Error::io(args.output.display().to_string(), "create it", &e))?;
            let out = demo.data.display().to_string();
            demo.rerun
                .run(&["generate", "--output", &out, "--train", "5000", "--dev", "400", "--test", "500"])?;
        }
        for part in ["train", "dev", "test"] {
            corpus::check_sides(Path::new(&demo.source(part)), Path::new(&demo.target(part)))?;
        }
        fs::create_dir_all(&args.output)
            .map_err(|e| Error::io(args.output.display().to_string(), "create it", &e))?;
        Ok(demo)
    }

    fn source(&self, part: &str) -> String {
        self.data.join(format!("{part}.{}", self.languages.0)).display().to_string()
    }

    fn target(&self, part: &str) -> String {
        self.data.join(format!("{part}.{}", self.languages.1)).display().to_string()
    }

    /// Returns a path in the output directory.
    fn made(&self, name: &str) -> String {
        self.out.join(name).display().to_string()
    }

    /// Trains a system, and translates and scores test with its initial weights.
    fn train(&self, system: &System) -> Result<Untuned> {
        let name = system.name;
        let model = self.made(name);
        let (source, target) = (self.source("train"), self.target("train"));
        let train = ["train", "--source", &source, "--target", &target, "--model", &model];
        self.rerun.run(&[&train, system.train].concat())?;
        let (output, list) = (self.made(&format!("{name}.untuned")), self.made(&format!("{name}.nbest.gz")));
        let (source, target) = (self.source("test"), self.target("test"));
        let decode = [
            "decode",
            "--model",
            &model,
            "--input",
            &source,
            "-o",
            &output,
            "--nbest",
            "100",
            "--nbest-out",
            &list,
        ];
        self.rerun.run(&[&decode, system.limits].concat())?;
        let score = self.rerun.json(&["score", &output, "--ref", &target, "--tokenize", "none"])?;
        let oracle = self.rerun.json(&["oracle", "--nbest", &list, "--ref", &target])?;
        let number = |v: &Value| v.as_f64().unwrap_or(f64::NAN);
        Ok(Untuned {
            system: name,
            output: output.into(),
            score: number(&score[0]["score"]),
            oracle: number(&oracle["score"]),
        })
    }

    /// Tunes a system with all algorithms, and compares the translations of test with those of the untuned system.
    fn tune(&self, system: &System, untuned: &Untuned) -> Result<Vec<Cell>> {
        let name = system.name;
        let model = self.made(name);
        let nothing = self.made(&format!("{name}.zero"));
        let weights = luthier::io::read_weights(&Path::new(&model).join("weights.txt"))?;
        let zero = weights.with_values(vec![0.0; weights.len()]);
        AtomicFile::write_all_to(Path::new(&nothing), zero.to_text(&[]).as_bytes())?;
        let (source, target, test) = (self.source("dev"), self.target("dev"), self.source("test"));
        let mut cells = Vec::new();
        for (algorithm, how) in ALGORITHMS {
            let clock = Instant::now();
            let run = self.made(&format!("{name}.{algorithm}"));
            let given = ["--model", &model, "--source", &source, "--ref", &target, "--run", &run];
            let init: &[&str] = if algorithm == "O-ORO-L" { &["--init", &nothing] } else { &[] };
            let found = self.rerun.json(&[&["tune"], how, &given, system.limits, init].concat())?;
            let seconds = clock.elapsed().as_secs_f64();
            let output = self.made(&format!("{name}.{algorithm}.out"));
            let weights = RunView::best_path(Path::new(&run)).display().to_string();
            let decode =
                ["decode", "--model", &model, "--weights", &weights, "--input", &test, "-o", &output];
            self.rerun.run(&[&decode, system.limits].concat())?;
            let dev = found["score"].as_f64().unwrap_or(f64::NAN);
            let (output, nan) = (output.into(), f64::NAN);
            cells.push(Cell { system: name, algorithm, dev, test: nan, delta: nan, p: nan, seconds, output });
        }
        let baseline = untuned.output.display().to_string();
        let outputs: Vec<String> = cells.iter().map(|c| c.output.display().to_string()).collect();
        let reference = self.target("test");
        let mut words = vec!["compare", "--baseline", &baseline, "--ref", &reference, "--tokenize", "none"];
        words.extend(outputs.iter().map(String::as_str));
        let found = self.rerun.json(&words)?;
        for (cell, one) in cells.iter_mut().zip(found["systems"].as_array().into_iter().flatten()) {
            let number = |key: &str| one[key].as_f64().unwrap_or(f64::NAN);
            (cell.test, cell.delta, cell.p) = (number("score"), number("delta"), number("p_value"));
        }
        Ok(cells)
    }

    /// Writes the HTML report of all runs and returns its path.
    fn report(&self, cells: &[Cell]) -> Result<String> {
        let page = self.made("report.html");
        let runs: Vec<String> =
            cells.iter().map(|c| self.made(&format!("{}.{}", c.system, c.algorithm))).collect();
        let mut words = vec!["report"];
        words.extend(runs.iter().map(String::as_str));
        words.extend(["-o", &page, "--title", "Luthier demo"]);
        self.rerun.run(&words)?;
        Ok(page)
    }

    /// Starts a server with the phrase-based system that has the highest score on dev.
    #[cfg(feature = "serve")]
    fn serve(&self, cells: &[Cell], args: &Args, common: &Common, talk: Talk) -> Done {
        let system = SYSTEMS[0].name;
        let best = cells.iter().filter(|c| c.system == system).max_by(|a, b| a.dev.total_cmp(&b.dev));
        let weights =
            best.map(|c| RunView::best_path(Path::new(&self.made(&format!("{system}.{}", c.algorithm)))));
        super::serve::start(Path::new(&self.made(system)), weights, args.listen.clone(), common, talk)
    }

    /// Returns the results as a table, with three sentences before and after tuning.
    fn as_text(&self, untuned: &[Untuned], cells: &[Cell]) -> Result<String> {
        let mut table = Table::new("system");
        for column in ["tuning (dev)", "test", "difference", "p", "seconds"] {
            table.column(column);
        }
        for before in untuned {
            let score = format!("{:.2}", before.score);
            let oracle = format!("oracle {:.2}", before.oracle);
            table.row(
                &format!("{}, untuned", before.system),
                vec![String::new(), score, oracle, String::new(), String::new()],
            );
            for c in cells.iter().filter(|c| c.system == before.system) {
                let star = if c.delta != 0.0 && c.p < 0.05 { "*" } else { " " };
                let row = [
                    format!("{:.2}", c.dev),
                    format!("{:.2}", c.test),
                    format!("{:+.2}", c.delta),
                    format!("{:.4}{star}", c.p),
                    format!("{:.1}", c.seconds),
                ];
                table.row(&format!("{}, {}", c.system, c.algorithm), row.to_vec());
            }
        }
        let mut text = format!(
            "{table}BLEU on dev, which the weights were tuned on, and on test; test differences from the untuned system, * for p < 0.05 \
             (paired bootstrap)\n"
        );
        let best = cells.iter().max_by(|a, b| a.test.total_cmp(&b.test));
        if let Some(best) = best {
            let before = untuned.iter().find(|u| u.system == best.system);
            text += &self.sentences(best, before.map_or(Path::new(""), |u| &u.output))?;
        }
        Ok(text)
    }

    /// Returns the three test sentences whose sentence BLEU improved most, before and after tuning.
    fn sentences(&self, best: &Cell, before: &Path) -> Result<String> {
        let read = |path: &Path| text::read_lines(path).map(|l| l.lines);
        let (old, new) = (read(before)?, read(&best.output)?);
        let (source, reference) =
            (read(Path::new(&self.source("test")))?, read(Path::new(&self.target("test")))?);
        let metric: Metric = "bleu".parse().map_err(|e| Error::new(format!("{e}")))?;
        let mut scratch = Scratch::default();
        let mut gain = |at: usize| {
            let prepared = metric.prepare(&[&reference[at]], &mut scratch);
            let mut score = |text: &str| {
                let mut stats = vec![0.0; metric.width()];
                metric.stats(&prepared, Hypothesis { text, columns: &[] }, &mut scratch, &mut stats);
                metric.sentence_score(&stats, SentenceSmoothing::default())
            };
            score(&new[at]) - score(&old[at])
        };
        let mut order: Vec<(f64, usize)> = (0..new.len()).map(|at| (gain(at), at)).collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut text =
            format!("\nThe three test sentences that {} ({}) improved most:\n", best.algorithm, best.system);
        for &(_, at) in order.iter().take(3) {
            text += &format!(
                "\n  source     {}\n  untuned    {}\n  tuned      {}\n  reference  {}\n",
                source[at], old[at], new[at], reference[at]
            );
        }
        Ok(text)
    }
}

/// Returns the results as JSON.
fn as_json(untuned: &[Untuned], cells: &[Cell]) -> String {
    let before: Vec<Value> =
        untuned.iter().map(|u| json!({"system": u.system, "score": u.score, "oracle": u.oracle})).collect();
    let cells: Vec<Value> = cells
        .iter()
        .map(|c| {
            json!({"system": c.system, "algorithm": c.algorithm, "dev": c.dev, "score": c.test, "delta": c.delta,
                   "p_value": c.p, "seconds": c.seconds})
        })
        .collect();
    format!("{}\n", json!({"untuned": before, "systems": cells}))
}
