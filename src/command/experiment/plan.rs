//! The experiment file (TOML) and the cells that it defines: systems × algorithms × settings × replicas.

use super::claim::ClaimSpec;
use luthier::{
    core::{Error, Result},
    metric::Metric,
    tune::recipe::Recipe,
};
use serde::Deserialize;
use std::{collections::BTreeMap, path::PathBuf};

/// Flags of a command, by name without the leading hyphens.
pub(super) type Flags = BTreeMap<String, toml::Value>;

/// An experiment file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Plan {
    /// Heading of the results.
    pub(super) title: String,
    /// Paragraph below the heading, such as differences from the paper.
    #[serde(default)]
    pub(super) about: String,
    /// Name of the algorithm that the others are compared with.
    pub(super) baseline: String,
    /// Number of runs per cell, each with its own seed.
    #[serde(default = "one")]
    pub(super) replicas: u32,
    /// Maximum number of iterations of each cell.
    #[serde(default = "default_iterations")]
    pub(super) iterations: u32,
    /// Metric that test sets are scored with, and that cells are tuned for by default.
    #[serde(default = "bleu")]
    pub(super) metric: String,
    /// Significance test.
    #[serde(default)]
    pub(super) significance: Significance,
    /// Whether `tune` also translates the first test set after every iteration.
    #[serde(default)]
    watch: bool,
    /// Flags of `tune` for all cells.
    #[serde(default)]
    pub(super) tune: Flags,
    /// Flags of both `tune` and `decode` for all cells.
    #[serde(default)]
    pub(super) search: Flags,
    /// Parts of the corpus and their use.
    #[serde(default)]
    pub(super) text: Texts,
    pub(super) systems: Vec<System>,
    pub(super) algorithms: Vec<Algorithm>,
    #[serde(default)]
    pub(super) tables: Vec<TableSpec>,
    #[serde(default)]
    pub(super) figures: Vec<FigureSpec>,
    #[serde(default)]
    pub(super) claims: Vec<ClaimSpec>,
    #[serde(default)]
    quick: Quick,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Significance {
    Bootstrap,
    #[default]
    Randomization,
}

/// The corpus and the use of its parts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Texts {
    /// Directory of the corpus; `None` generates one.
    pub(super) data: Option<PathBuf>,
    /// File name extensions of both sides, source first: `de-en`.
    pub(super) languages: String,
    /// Sizes of the generated corpus.
    pub(super) generate: Sizes,
    /// Text that systems are trained on.
    pub(super) train: Part,
    /// Text that weights are tuned on.
    pub(super) tune: Part,
    /// Selection set: text that the iteration is chosen on.
    pub(super) select: Option<Part>,
    /// Test sets, at least one.
    pub(super) test: Vec<Part>,
}

impl Default for Texts {
    fn default() -> Self {
        Texts {
            data: None,
            languages: "de-en".to_owned(),
            generate: Sizes { train: 5000, dev: 500, test: 500 },
            train: Part::whole("train"),
            tune: Part::whole("dev"),
            select: None,
            test: vec![Part::whole("test")],
        }
    }
}

/// Numbers of sentences of a generated corpus.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sizes {
    pub(super) train: u32,
    pub(super) dev: u32,
    pub(super) test: u32,
}

/// A part of the corpus: a file or a range of its lines, as `dev`, `dev:1/2` (the first half) or `train:1-10000`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Part {
    pub(super) file: String,
    lines: Lines,
}

/// A range of lines of a file.
#[derive(Debug, Clone, PartialEq)]
enum Lines {
    /// All lines.
    All,
    /// The k-th of n equal shares, k from 1.
    Share(usize, usize),
    /// The first and the last line, from 1.
    Between(usize, usize),
}

impl Part {
    /// Returns all lines of a file.
    fn whole(file: &str) -> Self {
        Part { file: file.to_owned(), lines: Lines::All }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.lines == Lines::All
    }

    /// Returns the range of lines, from 0, in a file of `n` lines; `None` if it is empty or exceeds the file.
    pub(super) fn range(&self, n: usize) -> Option<std::ops::Range<usize>> {
        match self.lines {
            Lines::All => Some(0..n),
            Lines::Share(k, of) => Some(n * (k - 1) / of..n * k / of),
            Lines::Between(a, b) => (b <= n).then(|| a - 1..b),
        }
        .filter(|r| !r.is_empty())
    }

    /// Returns a name for the files of the part.
    pub(super) fn name(&self) -> String {
        match self.lines {
            Lines::All => self.file.clone(),
            Lines::Share(k, n) => format!("{}.{k}of{n}", self.file),
            Lines::Between(a, b) => format!("{}.{a}-{b}", self.file),
        }
    }
}

impl TryFrom<String> for Part {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        let Some((file, lines)) = text.split_once(':') else { return Ok(Part::whole(&text)) };
        let pair = |by: char| {
            let (a, b) = lines.split_once(by)?;
            Some((a.parse().ok()?, b.parse().ok()?))
        };
        let lines = match (pair('/'), pair('-')) {
            (Some((k, n)), _) if 0 < k && k <= n => Lines::Share(k, n),
            (_, Some((a, b))) if 0 < a && a <= b => Lines::Between(a, b),
            _ => return Err(format!("found `{text}`, expected a name, name:1/2 or name:1-1000")),
        };
        Ok(Part { file: file.to_owned(), lines })
    }
}

/// A translation system that is trained and tuned.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct System {
    /// Name in results and of its directory.
    pub(super) name: String,
    /// Flags of `train`.
    #[serde(default)]
    pub(super) train: Flags,
    /// Text that the system is trained on, instead of the file's.
    text: Option<Part>,
    /// Flags of `tune` for this system.
    #[serde(default)]
    tune: Flags,
    /// Flags of both `tune` and `decode` for this system.
    #[serde(default)]
    search: Flags,
}

/// A tuning algorithm with its settings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Algorithm {
    /// Name in results.
    pub(super) name: String,
    /// Name of the algorithm in `luthier tune`.
    pub(super) command: String,
    /// Flags of `tune` for this algorithm.
    #[serde(default)]
    tune: Flags,
    /// Flags of both `tune` and `decode` for this algorithm.
    #[serde(default)]
    search: Flags,
    /// Flags of `tune` with several values; every combination of values is a group of cells.
    #[serde(default)]
    settings: BTreeMap<String, Vec<toml::Value>>,
    /// Names of the systems that are tuned with this algorithm; `None` for all.
    systems: Option<Vec<String>>,
    /// Initial weights; `None` for those of the model.
    pub(super) init: Option<Init>,
    /// Text that weights are tuned on, instead of the file's.
    pub(super) text: Option<Part>,
    /// Selection set instead of the file's, or `none`.
    select: Option<String>,
    /// Number of runs per cell; at most the file's.
    replicas: Option<u32>,
    /// Maximum number of iterations, instead of the file's.
    iterations: Option<u32>,
    /// Whether `tune` also translates the first test set after every iteration, instead of the file's.
    watch: Option<bool>,
    /// Flags of `tune` with `--quick`.
    #[serde(default)]
    quick: Flags,
}

/// Initial weights.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Init {
    /// One value for all weights of the model.
    All(f64),
    /// Weights by name.
    Named(BTreeMap<String, f64>),
}

/// Changes to the experiment with `--quick`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Quick {
    generate: Option<Sizes>,
    iterations: Option<u32>,
    replicas: Option<u32>,
    #[serde(default)]
    tune: Flags,
    #[serde(default)]
    search: Flags,
    /// Text that systems are trained on.
    train: Option<Part>,
    /// Text that weights are tuned on, for algorithms without a text of their own.
    text: Option<Part>,
}

/// A table of the results.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableSpec {
    /// Heading of the table.
    pub(super) title: String,
    /// Column headings and the values below them.
    pub(super) columns: Vec<(String, String)>,
    /// Rows of the table; all cells if empty.
    #[serde(default)]
    pub(super) rows: Vec<Row>,
}

/// A row of a table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    /// Name of the row; `None` for that of the cell.
    pub(super) name: Option<String>,
    /// An algorithm, or an algorithm with settings, as `PRO keep=50`; `None` for a row with the paper's numbers only.
    pub(super) cell: Option<String>,
    /// Name of the system; `None` for all systems.
    pub(super) system: Option<String>,
    /// Values instead of those of the columns.
    pub(super) values: Option<Vec<String>>,
    /// Numbers of the paper, by column.
    #[serde(default)]
    pub(super) paper: Vec<String>,
}

/// Figures with learning curves.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FigureSpec {
    /// Heading of the figures.
    pub(super) title: String,
    /// Values of the log that are plotted against iterations, one figure each.
    pub(super) values: Vec<String>,
    /// Cells whose curves are plotted: algorithms, or algorithms with settings.
    pub(super) cells: Vec<String>,
}

fn one() -> u32 {
    1
}

fn default_iterations() -> u32 {
    25
}

fn bleu() -> String {
    "bleu".to_owned()
}

/// Flags that the experiment sets itself, so that the file must not.
const RESERVED: [&str; 23] = [
    "model",
    "source",
    "target",
    "ref",
    "run",
    "seed",
    "iterations",
    "init",
    "json",
    "threads",
    "quiet",
    "verbose",
    "color",
    "nbest",
    "command",
    "weights",
    "in",
    "input",
    "output",
    "select-source",
    "select-ref",
    "test-source",
    "test-ref",
];

/// Settings of the command line that override the file.
#[derive(Default)]
pub(super) struct Wishes {
    pub(super) data: Option<PathBuf>,
    pub(super) languages: Option<String>,
    pub(super) quick: bool,
    pub(super) iterations: Option<u32>,
    pub(super) replicas: Option<u32>,
}

/// A group of cells: an algorithm with settings on a system. Its replicas differ only in their seeds.
#[derive(Debug)]
pub(super) struct Group {
    /// Index of the system.
    pub(super) system: usize,
    /// Index of the algorithm.
    pub(super) algorithm: usize,
    /// Names and values of the settings that differ between groups of the algorithm.
    pub(super) settings: Vec<(String, String)>,
    /// Flags of `tune`.
    pub(super) tune: Flags,
    /// Flags of both `tune` and `decode`.
    pub(super) search: Flags,
    /// Text that weights are tuned on.
    pub(super) text: Part,
    /// Selection set.
    pub(super) select: Option<Part>,
    /// Number of replicas.
    pub(super) replicas: u32,
    /// Maximum number of iterations.
    pub(super) iterations: u32,
    /// Whether `tune` also translates the first test set after every iteration.
    pub(super) watch: bool,
    /// Number of iterations that was planned, if `--iterations` or `--quick` has reduced it.
    pub(super) cut: Option<u32>,
}

impl Plan {
    /// Parses an experiment file and applies the settings of the command line. Fails if the file is not valid TOML, has
    /// unknown keys, or contradicts itself.
    pub(super) fn parse(file: &str, text: &str, wishes: &Wishes) -> Result<Self> {
        let mut plan: Plan = toml::from_str(text).map_err(|e: toml::de::Error| {
            let line = e.span().map_or(1, |s| text[..s.start.min(text.len())].lines().count().max(1));
            Error::at(file, line as u64, e.message().trim().replace('\n', " "))
                .hint("`luthier experiment cer2008 --show` prints an example")
        })?;
        if let Some(data) = &wishes.data {
            plan.text.data = Some(data.clone());
        }
        if let Some(languages) = &wishes.languages {
            plan.text.languages.clone_from(languages);
        }
        if wishes.quick {
            plan.text.train = plan.quick.train.take().unwrap_or(plan.text.train);
            plan.text.tune = plan.quick.text.take().unwrap_or(plan.text.tune);
            plan.text.generate = plan.quick.generate.unwrap_or(plan.text.generate);
            plan.replicas = plan.quick.replicas.unwrap_or(plan.replicas);
        }
        plan.replicas = wishes.replicas.unwrap_or(plan.replicas);
        plan.check(file)?;
        Ok(plan)
    }

    /// Fails if names, numbers, metrics, algorithms or flags are not valid.
    fn check(&self, file: &str) -> Result<()> {
        let wrong = |message: String| Err(Error::in_file(file, message));
        let repeated = |names: &[&str]| {
            let mut names = names.to_vec();
            names.sort_unstable();
            names.windows(2).find(|w| w[0] == w[1]).map(|w| w[0].to_owned())
        };
        let systems: Vec<&str> = self.systems.iter().map(|s| s.name.as_str()).collect();
        let algorithms: Vec<&str> = self.algorithms.iter().map(|a| a.name.as_str()).collect();
        if let Some(name) = repeated(&systems).or_else(|| repeated(&algorithms)) {
            return wrong(format!("two systems or algorithms are named {name}"));
        }
        if systems.is_empty() || algorithms.is_empty() || self.text.test.is_empty() {
            return wrong("needs at least one system, one algorithm and one test set".to_owned());
        }
        // Names are used as file names, and names of cells append settings as key=value.
        let bad =
            |n: &&&str| n.trim().is_empty() || n.starts_with('.') || n.contains(['/', '=', '\n', '\t', '|']);
        if let Some(name) = systems.iter().chain(&algorithms).find(bad) {
            return wrong(format!("`{name}` is not a valid name of a system or an algorithm"))
                .map_err(|e| e.hint("a name must not contain / = | and must not begin with a dot"));
        }
        if !algorithms.contains(&self.baseline.as_str()) {
            return wrong(format!("the baseline {} is not one of its algorithms", self.baseline));
        }
        let metrics = std::iter::once(self.metric.as_str()).chain(self.own_metrics());
        for metric in metrics {
            let parsed = metric.parse::<Metric>();
            if let Err(e) = parsed {
                return wrong(format!("metric {metric}: {e}"));
            }
            if parsed.is_ok_and(|m| !m.columns().is_empty()) {
                return wrong(format!("metric {metric}: translations have no score columns"));
            }
        }
        let zero = self.replicas == 0 || self.iterations == 0;
        let none = |a: &Algorithm| {
            a.replicas == Some(0) || a.iterations == Some(0) || a.settings.values().any(Vec::is_empty)
        };
        let sizes = self.text.generate;
        if zero || self.algorithms.iter().any(none) || [sizes.train, sizes.dev, sizes.test].contains(&0) {
            return wrong(
                "replicas, iterations, corpus sizes and numbers of settings must be at least 1".to_owned(),
            );
        }
        for algorithm in &self.algorithms {
            let select = algorithm.select.clone().filter(|s| s != "none").map(Part::try_from);
            if let Some(Err(e)) = select {
                return wrong(format!("select of {}: {e}", algorithm.name));
            }
            if Recipe::named(&algorithm.command).is_err() {
                let known: Vec<&str> = Recipe::all().iter().map(|r| r.info().name).collect();
                return wrong(format!("unknown command {} of {}", algorithm.command, algorithm.name))
                    .map_err(|e| e.hint(format!("known: {}", known.join(", "))));
            }
        }
        // In `train`, these are the iterations of the aligner.
        let own = |(flag, train): &(&String, bool)| {
            RESERVED.contains(&flag.as_str()) && !(*train && *flag == "iterations")
        };
        if let Some((flag, _)) = self.all_flags().find(own) {
            return wrong(format!("must not set the flag {flag}, which the experiment sets itself"))
                .map_err(|e| e.hint("use iterations, init, [text] and replicas instead"));
        }
        self.check_tables(file)
    }

    /// Returns the flags that the file sets, each with whether it is one of `train`.
    fn all_flags(&self) -> impl Iterator<Item = (&String, bool)> {
        let train = self.systems.iter().flat_map(|s| s.train.keys()).map(|f| (f, true));
        let systems = self.systems.iter().flat_map(|s| [&s.tune, &s.search]);
        let algorithms = self.algorithms.iter().flat_map(|a| [&a.tune, &a.search, &a.quick]);
        let all = [&self.tune, &self.search, &self.quick.tune, &self.quick.search].into_iter();
        let settings = self.algorithms.iter().flat_map(|a| a.settings.keys());
        let others = all.chain(systems).chain(algorithms).flat_map(|f| f.keys()).chain(settings);
        train.chain(others.map(|f| (f, false)))
    }

    /// Returns the metrics that some cells are tuned for instead of the file's.
    fn own_metrics(&self) -> impl Iterator<Item = &str> {
        let systems = self.systems.iter().map(|s| &s.tune);
        let algorithms = self.algorithms.iter().map(|a| &a.tune);
        std::iter::once(&self.tune).chain(systems).chain(algorithms).filter_map(|f| f.get("metric")?.as_str())
    }

    /// Fails if tables, figures or claims refer to systems, cells or values that do not exist, or if two cells have the same
    /// directory.
    fn check_tables(&self, file: &str) -> Result<()> {
        let wrong = |message: String| Err(Error::in_file(file, message));
        let systems: Vec<&str> = self.systems.iter().map(|s| s.name.as_str()).collect();
        let asked = self.algorithms.iter().flat_map(|a| a.systems.iter().flatten());
        let rows = self.tables.iter().flat_map(|t| t.rows.iter().filter_map(|r| r.system.as_ref()));
        let asked = asked.chain(rows).chain(self.claims.iter().filter_map(|c| c.system.as_ref()));
        if let Some(name) = asked.into_iter().find(|n| !systems.contains(&n.as_str())) {
            return wrong(format!("refers to a system {name}, which does not exist"));
        }
        let groups = self.groups(&Wishes::default());
        if groups.is_empty() {
            return wrong("has no cells: no algorithm applies to any of its systems".to_owned());
        }
        let mut slugs: Vec<String> = groups.iter().map(|g| self.slug(g, 0)).collect();
        slugs.sort_unstable();
        if let Some([name, _]) = slugs.windows(2).find(|w| w[0] == w[1]) {
            return wrong(format!("two cells would use the same directory, {name}"))
                .map_err(|e| e.hint("give them names that differ in letters and digits"));
        }
        let rows = self.tables.iter().flat_map(|t| &t.rows).filter_map(|r| r.cell.as_ref());
        let mut cells = rows.chain(self.figures.iter().flat_map(|f| &f.cells));
        if let Some(cell) = cells.find(|c| !groups.iter().any(|g| self.matches(g, c))) {
            return wrong(format!("refers to a cell {cell}, which does not exist"));
        }
        let columns = self.tables.iter().flat_map(|t| t.columns.iter().map(|c| &c.1));
        let rows = self.tables.iter().flat_map(|t| t.rows.iter().filter_map(|r| r.values.as_ref()).flatten());
        if let Some(bad) = columns.chain(rows).find(|v| !self.has_value(v)) {
            return wrong(format!("unknown value `{bad}` of a table")).map_err(|e| e.hint(VALUES));
        }
        let bad = self.figures.iter().flat_map(|f| &f.values).find(|v| !LOGGED.contains(&v.as_str()));
        if let Some(bad) = bad {
            return wrong(format!("unknown value `{bad}` of a figure"))
                .map_err(|e| e.hint(format!("known: {}", LOGGED.join(", "))));
        }
        for table in &self.tables {
            let short = |r: &&Row| r.values.as_ref().is_some_and(|v| v.len() != table.columns.len());
            let long = |r: &&Row| r.paper.len() > table.columns.len();
            if let Some(row) = table.rows.iter().find(|r| short(r) || long(r)) {
                let name = row.name.as_ref().or(row.cell.as_ref()).map_or("", String::as_str);
                return wrong(format!("row {name} of {} does not have one value per column", table.title));
            }
        }
        self.check_claims(file, &groups)
    }

    /// Fails if a claim contradicts itself, or refers to cells or values that do not exist.
    fn check_claims(&self, file: &str, groups: &[Group]) -> Result<()> {
        for (i, claim) in self.claims.iter().enumerate() {
            let wrong = |e: &Error| Error::in_file(file, format!("claim {}: {e}", claim.label(i)));
            claim.check().map_err(|e| wrong(&e))?;
            let ours = |g: &&Group| claim.system.as_ref().is_none_or(|s| self.systems[g.system].name == *s);
            let exists = |cell: &String| groups.iter().filter(ours).any(|g| self.matches(g, cell));
            if let Some(cell) = claim.cells().find(|c| !exists(c)) {
                return Err(wrong(&Error::new(format!("refers to a cell {cell}, which does not exist"))));
            }
            if !self.has_value(&claim.value) {
                return Err(wrong(&Error::new(format!("unknown value `{}`", claim.value)).hint(VALUES)));
            }
            if self.claims[..i].iter().enumerate().any(|(j, other)| other.label(j) == claim.label(i)) {
                return Err(wrong(&Error::new("two claims have this id")));
            }
        }
        Ok(())
    }

    /// Returns whether a value exists in this experiment.
    fn has_value(&self, value: &str) -> bool {
        match Value::parse(value) {
            Some(Value::Test(i) | Value::Length(i)) => i < self.text.test.len(),
            other => other.is_some(),
        }
    }

    /// Returns all groups of cells: systems × algorithms × settings.
    pub(super) fn groups(&self, wishes: &Wishes) -> Vec<Group> {
        let mut groups = Vec::new();
        for (s, system) in self.systems.iter().enumerate() {
            for (a, algorithm) in self.algorithms.iter().enumerate() {
                if algorithm.systems.as_ref().is_some_and(|names| !names.contains(&system.name)) {
                    continue;
                }
                for settings in combinations(&algorithm.settings) {
                    groups.push(self.group((s, system), (a, algorithm), settings, wishes));
                }
            }
        }
        groups
    }

    /// Returns the group of an algorithm with settings on a system.
    fn group(
        &self,
        (s, system): (usize, &System),
        (a, algorithm): (usize, &Algorithm),
        settings: Vec<(String, toml::Value)>,
        wishes: &Wishes,
    ) -> Group {
        let mut tune = self.tune.clone();
        tune.extend(system.tune.clone());
        tune.extend(algorithm.tune.clone());
        let mut search = self.search.clone();
        search.extend(system.search.clone());
        search.extend(algorithm.search.clone());
        let mut limit = wishes.iterations;
        if wishes.quick {
            tune.extend(self.quick.tune.clone());
            tune.extend(algorithm.quick.clone());
            search.extend(self.quick.search.clone());
            limit = limit.or(self.quick.iterations);
        }
        // Settings override all other flags, because the name of the cell states them.
        tune.extend(settings.iter().cloned());
        let planned = algorithm.iterations.unwrap_or(self.iterations);
        let iterations = limit.map_or(planned, |l| l.min(planned));
        let select = match algorithm.select.as_deref() {
            Some("none") => None,
            Some(other) => Part::try_from(other.to_owned()).ok(),
            None => self.text.select.clone(),
        };
        let replicas = algorithm.replicas.map_or(self.replicas, |n| n.min(self.replicas));
        Group {
            system: s,
            algorithm: a,
            settings: settings.into_iter().map(|(k, v)| (k, plain(&v))).collect(),
            tune,
            search,
            text: algorithm.text.clone().unwrap_or_else(|| self.text.tune.clone()),
            select,
            replicas,
            iterations,
            watch: algorithm.watch.unwrap_or(self.watch),
            cut: (iterations < planned).then_some(planned),
        }
    }

    /// Returns the text that a system is trained on.
    pub(super) fn train_text(&self, system: usize) -> &Part {
        self.systems[system].text.as_ref().unwrap_or(&self.text.train)
    }

    /// Returns the metric that a group is tuned for, which is also the metric of its log.
    pub(super) fn metric_of<'a>(&'a self, group: &'a Group) -> &'a str {
        group.tune.get("metric").and_then(|m| m.as_str()).unwrap_or(&self.metric)
    }

    /// Returns the name of a group in tables: the algorithm and its settings.
    pub(super) fn label(&self, group: &Group) -> String {
        let mut label = self.algorithms[group.algorithm].name.clone();
        for (k, v) in &group.settings {
            label += &format!(" {k}={v}");
        }
        label
    }

    /// Returns the directory name of a cell.
    pub(super) fn slug(&self, group: &Group, replica: u32) -> String {
        let name = format!("{}.{}.{}", self.systems[group.system].name, self.label(group), replica + 1);
        let plain = |c: char| c.is_alphanumeric() || "-_.=".contains(c);
        name.chars().map(|c| if plain(c) { c } else { '_' }).collect()
    }

    /// Returns whether a row or a figure, by its `cell`, refers to a group.
    pub(super) fn matches(&self, group: &Group, cell: &str) -> bool {
        let (name, settings) = split(cell);
        self.algorithms[group.algorithm].name == name
            && settings
                .iter()
                .all(|(k, v)| group.settings.iter().any(|s| (s.0.as_str(), s.1.as_str()) == (*k, *v)))
    }
}

/// Splits `PRO keep=50` into name and settings. Names can contain spaces, but no equals sign.
fn split(cell: &str) -> (&str, Vec<(&str, &str)>) {
    let mut name = cell;
    let mut settings = Vec::new();
    while let Some((before, last)) = name.rsplit_once(' ') {
        let Some(pair) = last.split_once('=') else { break };
        settings.push(pair);
        name = before;
    }
    (name, settings)
}

/// Returns all combinations of values; the last name varies fastest.
fn combinations(settings: &BTreeMap<String, Vec<toml::Value>>) -> Vec<Vec<(String, toml::Value)>> {
    settings.iter().fold(vec![Vec::new()], |all, (name, values)| {
        let longer = |some: &Vec<(String, toml::Value)>| {
            let some = some.clone();
            values
                .iter()
                .map(move |v| [some.clone(), vec![(name.clone(), v.clone())]].concat())
                .collect::<Vec<_>>()
        };
        all.iter().flat_map(longer).collect()
    })
}

/// Formats a value as it would be typed on the command line.
fn plain(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns flags as words of a command line.
pub(super) fn words(flags: &Flags) -> Vec<String> {
    let mut words = Vec::new();
    for (name, value) in flags {
        let values = match value {
            toml::Value::Boolean(false) => continue,
            toml::Value::Boolean(true) => {
                words.push(format!("--{name}"));
                continue;
            }
            toml::Value::Array(several) => several.clone(),
            one => vec![one.clone()],
        };
        for value in values {
            words.extend([format!("--{name}"), plain(&value)]);
        }
    }
    words
}

/// A value of a table column, for one cell.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// Score on the text that weights were tuned on, of the best iteration.
    Dev,
    /// Score on the selection set, of the best iteration.
    Select,
    /// Score on a test set, by index.
    Test(usize),
    /// Ratio of output length to reference length on a test set, by index.
    Length(usize),
    /// Number of weights that are not 0.
    Features,
    /// Number of the best iteration.
    Iteration,
    /// Duration of tuning in seconds.
    Seconds,
    /// Duration of tuning over the number of iterations, in seconds.
    SecondsPerIteration,
    /// Share of the entries of the phrase table whose phrase-pair weight is not 0.
    WeightedPhrasePairs,
    /// A value of the log, at an iteration; `None` for the last one.
    Logged(String, Option<u32>),
}

/// Names of the values of the log.
const LOGGED: [&str; 10] = [
    "score",
    "select",
    "test",
    "length_ratio",
    "select_length_ratio",
    "test_length_ratio",
    "surrogate",
    "surrogate_length_ratio",
    "guess",
    "features",
];

const VALUES: &str = "known: dev, select, test, test2, length, length2, features, iteration, seconds, seconds-per-iteration, \
     weighted-phrase-pairs, and score, select, test, length_ratio, \
     select_length_ratio, test_length_ratio, surrogate, surrogate_length_ratio, guess, features with @3 or @last";

impl Value {
    /// Parses a value; `None` if it is unknown.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Some((name, at)) = text.split_once('@') {
            let at = if at == "last" { None } else { Some(at.parse().ok()?) };
            return LOGGED.contains(&name).then(|| Value::Logged(name.to_owned(), at));
        }
        let number = |prefix: &str| {
            let rest = text.strip_prefix(prefix)?;
            if rest.is_empty() { Some(0) } else { rest.parse::<usize>().ok()?.checked_sub(1) }
        };
        Some(match text {
            "dev" => Value::Dev,
            "select" => Value::Select,
            "features" => Value::Features,
            "iteration" => Value::Iteration,
            "seconds" => Value::Seconds,
            "seconds-per-iteration" => Value::SecondsPerIteration,
            "weighted-phrase-pairs" => Value::WeightedPhrasePairs,
            _ => return number("test").map(Value::Test).or_else(|| number("length").map(Value::Length)),
        })
    }

    /// Formats a number with the decimals of the value.
    pub(super) fn format(&self, x: f64) -> String {
        let ratio = |name: &str| name.ends_with("ratio");
        match self {
            Value::Length(_) | Value::WeightedPhrasePairs => format!("{x:.3}"),
            Value::Logged(name, _) if ratio(name) => format!("{x:.3}"),
            Value::Logged(name, _) if name == "features" => crate::talk::thousands(x as usize),
            Value::Features => crate::talk::thousands(x as usize),
            Value::Iteration if x.fract() == 0.0 => format!("{x:.0}"),
            Value::Iteration | Value::Seconds => format!("{x:.1}"),
            _ => format!("{x:.2}"),
        }
    }

    /// Formats a difference with its sign and the decimals of the value.
    pub(super) fn format_signed(&self, x: f64) -> String {
        format!("{}{}", if x < 0.0 { "-" } else { "+" }, self.format(x.abs()))
    }
}
