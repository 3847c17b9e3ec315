//! Execution of an experiment: corpus, systems, and cells in parallel.

use super::{
    cell_pool::{Cell, CellPool, Limits, failed},
    plan::{Group, Init, Part, Plan, Wishes, words},
};
use crate::{
    corpus,
    hypotheses::{System, statistics},
    interrupt,
    subprocess::{Rerun, duration, progress},
    talk::Talk,
};
use luthier::{
    core::{Error, ErrorKind, Fingerprint, Result, Weights},
    decode::{ModelDir, Template},
    io::{AtomicFile, text},
    metric::{Metric, significance::totals},
    table::Table,
    tune::RunView,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::VecDeque,
    fs,
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

/// Result of a cell, stored as `result.json`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// Settings and digests that the result depends on, without paths.
    what: String,
    /// The `tune` command of the cell.
    pub(super) command: String,
    /// Random seed of the cell.
    pub(super) seed: u64,
    /// Number of the best iteration.
    pub(super) iteration: u64,
    /// Number of iterations of the run.
    pub(super) iterations: u64,
    /// Reason why the run ended.
    pub(super) stop: String,
    /// Score of the best iteration on the text that weights were tuned on.
    pub(super) dev: f64,
    /// Score of the best iteration on the selection set.
    pub(super) select: Option<f64>,
    /// Results on the test sets.
    pub(super) tests: Vec<Tested>,
    /// Number of weights that are not 0.
    pub(super) features: usize,
    /// Share of the entries of the phrase table whose phrase-pair weight is not 0; `None` without such weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) weighted_phrase_pairs: Option<f64>,
    /// Duration of tuning in seconds.
    pub(super) seconds: f64,
    /// Peak memory of tuning and translation in megabytes; `None` if it was not measured.
    pub(super) memory_mb: Option<f64>,
}

/// Result of a cell on a test set.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Tested {
    /// Score on the scale of the metric.
    pub(super) score: f64,
    /// Ratio of output length to reference length; `None` for metrics without lengths.
    pub(super) length: Option<f64>,
}

/// A complete cell.
pub(super) struct Finished {
    /// Number of the replica, from 0.
    pub(super) replica: u32,
    /// Result of the cell.
    pub(super) result: Outcome,
    /// Tuning run of the cell.
    pub(super) run: RunView,
    /// Statistics of all segments, by test set.
    pub(super) stats: Vec<Vec<f32>>,
}

/// An experiment with its cells and their results.
pub(super) struct Experiment<'a> {
    pub(super) plan: &'a Plan,
    /// Groups of cells that are run.
    pub(super) groups: Vec<Group>,
    /// Metric that test sets are scored with.
    pub(super) metric: Metric,
    /// Metric that each group is tuned for.
    pub(super) tuned_for: Vec<Metric>,
    /// Random seed of the first replica.
    pub(super) seed: u64,
    /// Output directory.
    out: &'a Path,
    /// File name extensions of both sides of the text, source first.
    endings: [String; 2],
    /// All cells that are run.
    cells: Vec<Cell>,
    /// Complete cells, by group.
    pub(super) finished: Vec<Vec<Finished>>,
}

/// Fails if a part of the text exceeds a file of `lines` lines.
fn check_part(part: &Part, file: &str, lines: usize) -> Result<()> {
    if part.range(lines).is_some() {
        return Ok(());
    }
    let message = format!("has {lines} lines, but the experiment uses {}", part.name());
    Err(Error::in_file(file, message))
}

/// Returns the number of phrase-pair weights that are not 0 over the number of entries of the model's phrase table;
/// `None` if there are no such weights.
fn weighted_phrase_pairs(weights: &Weights, model: &Path) -> Result<Option<f64>> {
    let pairs = || weights.iter().filter(|(name, _)| name.starts_with(Template::PhrasePair.prefix()));
    if pairs().next().is_none() {
        return Ok(None);
    }
    let table = Table::open(&ModelDir::open(model)?.table())?;
    Ok(Some(pairs().filter(|(_, w)| *w != 0.0).count() as f64 / table.len() as f64))
}

impl<'a> Experiment<'a> {
    /// Prepares the groups and cells of a plan; with `only`, those whose names match, and the baseline. Fails if `only`
    /// matches no cell, or if the languages are not valid.
    pub(super) fn new(
        plan: &'a Plan,
        wishes: &Wishes,
        only: &[String],
        out: &'a Path,
        seed: u64,
    ) -> Result<Self> {
        let metric: Metric = plan.metric.parse().map_err(|e| Error::new(format!("{e}")))?;
        let mut groups = plan.groups(wishes);
        let labels: Vec<String> = groups.iter().map(|g| plan.label(g)).collect();
        // A complete name selects that cell only.
        let meant = |text: &String, label: &str| {
            if labels.contains(text) { label == text } else { label.contains(text.as_str()) }
        };
        if let Some(none) = only.iter().find(|text| !labels.iter().any(|l| meant(text, l))) {
            return Err(Error::new(format!("--only {none} matches no cell"))
                .hint(format!("cells: {}", labels.join(", "))));
        }
        let wanted = |g: &Group| {
            only.is_empty()
                || plan.algorithms[g.algorithm].name == plan.baseline
                || only.iter().any(|text| meant(text, &plan.label(g)))
        };
        groups.retain(wanted);
        let cells = groups
            .iter()
            .enumerate()
            .flat_map(|(group, g)| (0..g.replicas).map(move |replica| Cell { group, replica }));
        let cells: Vec<Cell> = cells.collect();
        let finished = groups.iter().map(|_| Vec::new()).collect();
        let parse = |m: &str| m.parse::<Metric>().map_err(|e| Error::new(format!("{e}")));
        let tuned_for = groups.iter().map(|g| parse(plan.metric_of(g))).collect::<Result<_>>()?;
        let languages = &plan.text.languages;
        let wrong = |e| Error::new(format!("invalid languages {languages}")).hint(e);
        let (source, target) = corpus::endings(languages).map_err(wrong)?;
        Ok(Experiment {
            plan,
            groups,
            metric,
            tuned_for,
            seed,
            out,
            cells,
            finished,
            endings: [source, target],
        })
    }

    /// Returns all parts of the corpus that are used, without duplicates.
    fn parts(&self) -> Vec<&Part> {
        let text = &self.plan.text;
        let own = self.groups.iter().flat_map(|g| std::iter::once(&g.text).chain(&g.select));
        let train = self.groups.iter().map(|g| self.plan.train_text(g.system));
        let mut parts: Vec<&Part> = text.test.iter().chain(train).chain(own).collect();
        parts.sort_by_key(|p| p.name());
        parts.dedup();
        parts
    }

    /// Returns the directory of the corpus.
    fn data(&self) -> PathBuf {
        self.plan.text.data.clone().unwrap_or_else(|| self.out.join("corpus"))
    }

    /// Fails if a part of the corpus does not exist, before anything is written. Returns a text that identifies a
    /// generated corpus, for the settings of the experiment.
    pub(super) fn check_corpus(&self) -> Result<String> {
        let Some(data) = &self.plan.text.data else {
            let s = self.plan.text.generate;
            let lines = |file: &str| match file {
                "train" => Some(s.train),
                "dev" => Some(s.dev),
                "test" => Some(s.test),
                _ => None,
            };
            if self.endings != ["de", "en"] {
                return Err(Error::new("the generated corpus is German and English")
                    .hint("give text in other languages with --data"));
            }
            for part in self.parts() {
                let Some(n) = lines(&part.file) else {
                    return Err(Error::new(format!(
                        "the experiment uses {}, which is not generated",
                        part.file
                    ))
                    .hint("only train, dev and test are generated; give other text with --data"));
                };
                check_part(part, &part.file, n as usize)?;
            }
            return Ok(format!("generated {} {} {}", s.train, s.dev, s.test));
        };
        for part in self.parts() {
            let [source, target] = self.endings.each_ref().map(|e| data.join(format!("{}.{e}", part.file)));
            let lines = corpus::check_sides(&source, &target)?;
            check_part(part, &source.display().to_string(), lines)?;
        }
        Ok("given".to_owned())
    }

    /// Fails if a command line of the experiment is not valid, before anything is run.
    pub(super) fn check_commands(
        &self,
        file: &str,
        understood: &dyn Fn(&[String]) -> Option<String>,
    ) -> Result<()> {
        let wrong = |what: &str, e: String| Err(Error::in_file(file, format!("{what}: {e}")));
        for (s, system) in self.plan.systems.iter().enumerate() {
            if let Some(e) = understood(&self.train_words(s)) {
                return wrong(&system.name, e);
            }
        }
        for &cell in &self.cells {
            for words in self.steps(cell) {
                if let Some(e) = understood(&words) {
                    return wrong(&self.plan.label(&self.groups[cell.group]), e);
                }
            }
        }
        Ok(())
    }

    /// Returns the path of a part of the text on a side (0 is the source).
    fn text(&self, part: &Part, side: usize) -> String {
        let end = &self.endings[side];
        let path = if part.is_whole() {
            self.data().join(format!("{}.{end}", part.file))
        } else {
            self.out.join("text").join(format!("{}.{end}", part.name()))
        };
        path.display().to_string()
    }

    /// Returns the model directory of a system.
    fn model(&self, system: usize) -> String {
        self.out.join("systems").join(&self.plan.systems[system].name).display().to_string()
    }

    /// Returns the directory of a cell.
    fn cell_dir(&self, cell: Cell) -> PathBuf {
        self.out.join("cells").join(self.plan.slug(&self.groups[cell.group], cell.replica))
    }

    /// Generates the corpus if none is given, extracts the parts of it that are used, and trains the systems.
    pub(super) fn prepare(&self, rerun: &Rerun<'_>) -> Result<()> {
        if self.plan.text.data.is_none() {
            let sizes = self.plan.text.generate;
            let [train, dev, test] = [sizes.train, sizes.dev, sizes.test].map(|n| n.to_string());
            let out = self.data().display().to_string();
            rerun.run(&["generate", "--output", &out, "--train", &train, "--dev", &dev, "--test", &test])?;
        }
        let directory = self.out.join("text");
        for part in self.parts().into_iter().filter(|p| !p.is_whole()) {
            fs::create_dir_all(&directory).map_err(failed(&directory, "create it"))?;
            for (side, end) in self.endings.iter().enumerate() {
                let whole = text::read_lines(&self.data().join(format!("{}.{end}", part.file)))?;
                check_part(part, &whole.file, whole.lines.len())?;
                let range = part.range(whole.lines.len()).unwrap_or_default();
                let some: String = whole.lines[range].iter().map(|l| format!("{l}\n")).collect();
                AtomicFile::write_all_to(Path::new(&self.text(part, side)), some.as_bytes())?;
            }
        }
        for s in 0..self.plan.systems.len() {
            if self.groups.iter().any(|g| g.system == s) {
                let words = self.train_words(s);
                rerun.run_after(&words.iter().map(String::as_str).collect::<Vec<_>>())?;
            }
        }
        Ok(())
    }

    /// Returns the `train` command of a system.
    fn train_words(&self, system: usize) -> Vec<String> {
        let train = self.plan.train_text(system);
        let (source, target, model) = (self.text(train, 0), self.text(train, 1), self.model(system));
        let mut all: Vec<String> = ["train", "--source", &source, "--target", &target, "--model", &model]
            .iter()
            .map(ToString::to_string)
            .collect();
        all.extend(words(&self.plan.systems[system].train));
        all
    }

    /// Returns the path of the initial weights of a cell; `None` for those of the model.
    fn init_path(&self, cell: Cell) -> Option<String> {
        let init = &self.plan.algorithms[self.groups[cell.group].algorithm].init;
        init.as_ref().map(|_| self.cell_dir(cell).join("init.txt").display().to_string())
    }

    /// Creates the directory of a cell and writes its initial weights.
    fn begin(&self, cell: Cell) -> Result<()> {
        let (group, dir) = (&self.groups[cell.group], self.cell_dir(cell));
        fs::create_dir_all(&dir).map_err(failed(&dir, "create it"))?;
        let text = match &self.plan.algorithms[group.algorithm].init {
            Some(Init::All(value)) => {
                let weights =
                    luthier::io::read_weights(&Path::new(&self.model(group.system)).join("weights.txt"))?;
                weights.with_values(vec![*value; weights.len()]).to_text(&[])
            }
            Some(Init::Named(some)) => some.iter().map(|(name, value)| format!("{name} {value}\n")).collect(),
            None => return Ok(()),
        };
        AtomicFile::write_all_to(&dir.join("init.txt"), text.as_bytes())
    }

    /// Returns the random seed of a cell.
    fn cell_seed(&self, cell: Cell) -> u64 {
        self.seed.wrapping_add(u64::from(cell.replica))
    }

    /// Returns the settings and digests that the result of a cell depends on, without paths.
    fn what(&self, cell: Cell) -> Result<String> {
        let group = &self.groups[cell.group];
        let algorithm = &self.plan.algorithms[group.algorithm];
        let parts = std::iter::once(&group.text).chain(&group.select).chain(&self.plan.text.test);
        let mut texts = Fingerprint::default();
        for part in parts.chain([self.plan.train_text(group.system)]) {
            for side in 0..2 {
                texts = texts.bytes(text::read_lines(Path::new(&self.text(part, side)))?.digest.as_bytes());
            }
        }
        Ok(format!(
            "{} {} {} {} | {} | {:?} | {:016x} | {} | {}",
            algorithm.command,
            words(&group.tune).join(" "),
            words(&group.search).join(" "),
            group.iterations,
            words(&self.plan.systems[group.system].train).join(" "),
            algorithm.init,
            texts.finish64(),
            self.plan.metric,
            self.cell_seed(cell)
        ))
    }

    /// Returns the commands of a cell: tuning, and translation of each test set.
    fn steps(&self, cell: Cell) -> VecDeque<Vec<String>> {
        let group = &self.groups[cell.group];
        let algorithm = &self.plan.algorithms[group.algorithm];
        let (model, dir) = (self.model(group.system), self.cell_dir(cell).display().to_string());
        let mut tune: Vec<String> = vec!["tune".to_owned(), algorithm.command.clone()];
        let mut flag = |name: &str, value: &str| tune.extend([name.to_owned(), value.to_owned()]);
        flag("--model", &model);
        flag("--source", &self.text(&group.text, 0));
        flag("--ref", &self.text(&group.text, 1));
        if let Some(select) = &group.select {
            flag("--select-source", &self.text(select, 0));
            flag("--select-ref", &self.text(select, 1));
        }
        if group.watch {
            flag("--test-source", &self.text(&self.plan.text.test[0], 0));
            flag("--test-ref", &self.text(&self.plan.text.test[0], 1));
        }
        flag("--iterations", &group.iterations.to_string());
        if let Some(init) = self.init_path(cell) {
            flag("--init", &init);
        }
        if !group.tune.contains_key("metric") {
            flag("--metric", &self.plan.metric);
        }
        flag("--run", &format!("{dir}/run"));
        flag("--seed", &self.cell_seed(cell).to_string());
        let search = words(&group.search);
        tune.extend(words(&group.tune));
        tune.extend(search.iter().cloned());
        tune.push("--json".to_owned());
        let mut steps = VecDeque::from([tune]);
        for (i, test) in self.plan.text.test.iter().enumerate() {
            let weights = RunView::best_path(&Path::new(&dir).join("run")).display().to_string();
            let (weights, output) = (weights, format!("{dir}/test{}.out", i + 1));
            let source = self.text(test, 0);
            let words =
                ["decode", "--model", &model, "--weights", &weights, "--input", &source, "-o", &output];
            steps.push_back(words.iter().map(ToString::to_string).chain(search.iter().cloned()).collect());
        }
        steps
    }

    /// Loads the cells that are complete and runs the others. Returns the errors of cells that failed; fails if a
    /// cell was run with other settings, or if a file cannot be read or written.
    pub(super) fn work(&mut self, rerun: &Rerun<'_>, limits: &Limits, talk: Talk) -> Result<Vec<String>> {
        let mut pool = CellPool::new(limits, rerun, self.plan.systems.len());
        let mut waiting = VecDeque::new();
        for cell in self.cells.clone() {
            let Some(memory) = self.load(cell)? else {
                waiting.push_back(cell);
                continue;
            };
            pool.known(self.groups[cell.group].system, memory);
        }
        let (all, had) = (self.cells.len(), self.cells.len() - waiting.len());
        if had > 0 {
            talk.say(&format!("{had} of {all} cells are already complete"));
        }
        let (clock, busy) = (Instant::now(), talk.busy(""));
        let tell = |line: &str| match &busy {
            Some(busy) => busy.say(line),
            None => talk.say(line),
        };
        let (mut wrong, mut looked) = (Vec::new(), Instant::now());
        while !waiting.is_empty() || !pool.running.is_empty() {
            if interrupt::flow().is_break() {
                return Err(Error::interrupted());
            }
            while let Some(&cell) = waiting.front() {
                let system = self.groups[cell.group].system;
                if !pool.has_room(system) {
                    break;
                }
                waiting.pop_front();
                self.begin(cell)?;
                pool.start(cell, system, self.steps(cell), &self.cell_dir(cell))?;
            }
            sleep(Duration::from_millis(20));
            pool.measure();
            if let Some(cell) = pool.make_room() {
                tell(
                    "memory limit exceeded: a cell was stopped and resumes later; fewer cells run in parallel",
                );
                waiting.push_front(cell);
            }
            for (cell, end, peak) in pool.ended(&|cell| self.cell_dir(cell))? {
                match end {
                    Ok(command) => {
                        let line = self.finish(cell, command, peak)?;
                        let done = self.done();
                        let left = clock.elapsed().as_secs_f64() / (done - had) as f64 * (all - done) as f64;
                        tell(&format!("{done:>3} of {all}  {line}, about {} left", duration(left)));
                    }
                    // A process of a killed experiment may still be using the directory.
                    Err(e) if e.kind() == ErrorKind::Busy => {
                        waiting.push_back(cell);
                        sleep(Duration::from_millis(500));
                    }
                    // Ctrl-C reaches the cells, too.
                    Err(e) if e.kind() == ErrorKind::Interrupted => return Err(e),
                    Err(e) => {
                        tell(&format!("{} failed: {e}", self.name(cell)));
                        wrong.push(format!("{}: {e}", self.name(cell)));
                    }
                }
            }
            if let Some(busy) = busy.as_ref().filter(|_| looked.elapsed() > Duration::from_millis(300)) {
                looked = Instant::now();
                let now = pool.running.iter().map(|r| {
                    let far = progress(&self.cell_dir(r.cell).join("run"))
                        .map_or_else(String::new, |p| format!(" {p}"));
                    format!("{}{far}", self.plan.label(&self.groups[r.cell.group]))
                });
                busy.show(&format!(
                    "{} of {all} cells complete, running {}",
                    self.done(),
                    now.collect::<Vec<_>>().join(", ")
                ));
            }
        }
        for finished in &mut self.finished {
            finished.sort_by_key(|f| f.replica);
        }
        Ok(wrong)
    }

    /// Returns the number of complete cells.
    fn done(&self) -> usize {
        self.finished.iter().map(Vec::len).sum()
    }

    /// Returns the name of a cell in messages.
    fn name(&self, cell: Cell) -> String {
        let group = &self.groups[cell.group];
        format!("{} {} {}", self.plan.systems[group.system].name, self.plan.label(group), cell.replica + 1)
    }

    /// Loads the result of a cell and returns its peak memory in bytes; `None` if the cell is not complete. Fails if
    /// the result is damaged or has other settings.
    fn load(&mut self, cell: Cell) -> Result<Option<u64>> {
        let path = self.cell_dir(cell).join("result.json");
        let Ok(text) = fs::read_to_string(&path) else { return Ok(None) };
        let result: Outcome = serde_json::from_str(&text).map_err(|e| {
            Error::in_file(path.display().to_string(), format!("damaged: {e}"))
                .hint("delete it to run the cell again")
        })?;
        if result.what != self.what(cell)? {
            return Err(Error::in_file(
                self.cell_dir(cell).display().to_string(),
                format!("holds a cell with other settings: {}", result.command),
            )
            .hint("delete this directory to run the cell again, or use another --output directory"));
        }
        let memory = result.memory_mb.map_or(0, |m| (m * 1e6) as u64);
        let (run, stats) = self.outputs(cell)?;
        self.finished[cell.group].push(Finished { replica: cell.replica, result, run, stats });
        Ok(Some(memory))
    }

    /// Returns the tuning run of a cell, and the statistics of its translations by test set.
    fn outputs(&self, cell: Cell) -> Result<(RunView, Vec<Vec<f32>>)> {
        let dir = self.cell_dir(cell);
        let stats = (0..self.plan.text.test.len()).map(|i| self.stats(&dir, i)).collect::<Result<_>>()?;
        Ok((RunView::open(&dir.join("run"))?, stats))
    }

    /// Returns the statistics of a cell's translation of a test set. Fails if the translation is incomplete.
    fn stats(&self, dir: &Path, test: usize) -> Result<Vec<f32>> {
        let reference = text::read_lines(Path::new(&self.text(&self.plan.text.test[test], 1)))?;
        let system = System::read(&dir.join(format!("test{}.out", test + 1)), false)?;
        system.check_length(reference.lines.len(), &reference.file)?;
        let references: Vec<Vec<&str>> = reference.lines.iter().map(|l| vec![l.as_str()]).collect();
        let mut all = statistics(&self.metric, &[system], &references)?;
        Ok(all.pop().unwrap_or_default())
    }

    /// Writes `result.json` of a cell whose commands are complete, and returns its scores as a line of progress.
    fn finish(&mut self, cell: Cell, command: String, peak: u64) -> Result<String> {
        let dir = self.cell_dir(cell);
        let (run, stats) = self.outputs(cell)?;
        let best = run.best_event();
        let tuned_for = &self.tuned_for[cell.group];
        let mut tests = Vec::new();
        for stats in &stats {
            let total = totals(&self.metric, stats);
            tests.push(Tested {
                score: self.metric.display_score(self.metric.score(&total)),
                length: self.metric.length_ratio(&total),
            });
        }
        let weights = run.best_weights()?;
        let model = self.model(self.groups[cell.group].system);
        let result = Outcome {
            what: self.what(cell)?,
            command,
            seed: self.cell_seed(cell),
            iteration: u64::from(best.iteration),
            iterations: run.iterations() as u64,
            stop: run.end.map_or("", |e| e.stop.name()).to_owned(),
            dev: tuned_for.display_score(best.score),
            select: best.select.map(|x| tuned_for.display_score(x)),
            tests,
            features: weights.non_zero(),
            weighted_phrase_pairs: weighted_phrase_pairs(&weights, Path::new(&model))?,
            seconds: run.seconds(),
            memory_mb: (peak > 0).then(|| (peak as f64 / 1e5).round() / 10.0),
        };
        let text = serde_json::to_string_pretty(&result).map_err(|e| Error::new(e.to_string()))?;
        AtomicFile::write_all_to(&dir.join("result.json"), format!("{text}\n").as_bytes())?;
        let (dev, test) = (result.dev, result.tests[0].score);
        let line = format!("{}: dev {dev:.2}, test {test:.2}, {:.1} s", self.name(cell), result.seconds);
        self.finished[cell.group].push(Finished { replica: cell.replica, result, run, stats });
        Ok(line)
    }
}
