//! What the file of an experiment says, and the cells that it makes.

use luthier::{
    core::{Error, Result},
    metric::Metric,
    tune::recipe::Recipe,
};
use serde::Deserialize;
use std::{collections::BTreeMap, path::PathBuf};

/// Flags of a command by their names without hyphens.
pub(super) type Flags = BTreeMap<String, toml::Value>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Plan {
    pub(super) title: String,
    /// What stands under the title: how it differs from the paper, for one.
    #[serde(default)]
    pub(super) about: String,
    /// The algorithm that the others are compared with.
    pub(super) baseline: String,
    #[serde(default = "one")]
    pub(super) replicas: u32,
    /// Iterations of each cell.
    #[serde(default = "usual")]
    pub(super) iterations: u32,
    #[serde(default = "bleu")]
    pub(super) metric: String,
    #[serde(default)]
    pub(super) significance: Significance,
    /// Translate the first test set after every iteration, too.
    #[serde(default)]
    pub(super) watch: bool,
    #[serde(default)]
    pub(super) tune: Flags,
    #[serde(default)]
    pub(super) search: Flags,
    #[serde(default)]
    pub(super) text: Texts,
    pub(super) systems: Vec<System>,
    pub(super) algorithms: Vec<Algorithm>,
    #[serde(default)]
    pub(super) tables: Vec<TableSpec>,
    #[serde(default)]
    pub(super) figures: Vec<FigureSpec>,
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

/// Which text is for what.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Texts {
    /// Where it is; without, it is generated.
    pub(super) data: Option<PathBuf>,
    pub(super) languages: String,
    pub(super) generate: Sizes,
    pub(super) train: Part,
    pub(super) tune: Part,
    pub(super) select: Option<Part>,
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

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sizes {
    pub(super) train: u32,
    pub(super) dev: u32,
    pub(super) test: u32,
}

/// Some lines of a file: `dev`, `dev:1/2` for the first half, `train:1-10000`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Part {
    pub(super) file: String,
    lines: Lines,
}

#[derive(Debug, Clone, PartialEq)]
enum Lines {
    All,
    Share(usize, usize),
    Between(usize, usize),
}

impl Part {
    fn whole(file: &str) -> Self {
        Part { file: file.to_owned(), lines: Lines::All }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.lines == Lines::All
    }

    /// Which of `n` lines.
    pub(super) fn range(&self, n: usize) -> Option<std::ops::Range<usize>> {
        match self.lines {
            Lines::All => Some(0..n),
            Lines::Share(k, of) => Some(n * (k - 1) / of..n * k / of),
            Lines::Between(a, b) => (b <= n).then(|| a - 1..b),
        }
        .filter(|r| !r.is_empty())
    }

    /// A name for files.
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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct System {
    pub(super) name: String,
    #[serde(default)]
    pub(super) train: Flags,
    #[serde(default)]
    tune: Flags,
    #[serde(default)]
    search: Flags,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Algorithm {
    pub(super) name: String,
    /// What `tune` calls it.
    pub(super) command: String,
    #[serde(default)]
    tune: Flags,
    /// Flags of both `tune` and `decode`.
    #[serde(default)]
    search: Flags,
    /// All combinations of these values.
    #[serde(default)]
    settings: BTreeMap<String, Vec<toml::Value>>,
    /// Only with these systems.
    systems: Option<Vec<String>>,
    /// All initial weights, or those named.
    pub(super) init: Option<Init>,
    /// Text to learn from in place of the plan's.
    pub(super) text: Option<Part>,
    /// Text that chooses the iteration in place of the plan's, or `none`.
    select: Option<String>,
    replicas: Option<u32>,
    iterations: Option<u32>,
    /// Flags of `tune` for the quick version.
    #[serde(default)]
    quick: Flags,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Init {
    All(f64),
    Named(BTreeMap<String, f64>),
}

/// A small version.
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
    /// Text to train systems on, and to learn from where an algorithm says nothing else.
    train: Option<Part>,
    text: Option<Part>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableSpec {
    pub(super) title: String,
    /// Heads and values.
    pub(super) columns: Vec<(String, String)>,
    /// All cells, if there are none.
    #[serde(default)]
    pub(super) rows: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub(super) name: Option<String>,
    /// An algorithm, or one with settings: `PRO keep=50`; without, the row is the paper's alone.
    pub(super) cell: Option<String>,
    pub(super) system: Option<String>,
    /// Values in place of the columns'.
    pub(super) values: Option<Vec<String>>,
    /// What the paper has.
    #[serde(default)]
    pub(super) paper: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FigureSpec {
    pub(super) title: String,
    /// What is drawn over iterations, a drawing each.
    pub(super) values: Vec<String>,
    pub(super) cells: Vec<String>,
}

fn one() -> u32 {
    1
}

fn usual() -> u32 {
    25
}

fn bleu() -> String {
    "bleu".to_owned()
}

/// Flags that the experiment gives itself.
const OURS: [&str; 20] = [
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
    "nbest",
    "command",
    "weights",
    "in",
    "output",
    "select-source",
    "select-ref",
    "test-source",
    "test-ref",
];

/// What the command line says besides.
#[derive(Default)]
pub(super) struct Wishes {
    pub(super) data: Option<PathBuf>,
    pub(super) languages: Option<String>,
    pub(super) quick: bool,
    pub(super) iterations: Option<u32>,
    pub(super) replicas: Option<u32>,
}

/// An algorithm with settings on a system; replicas differ in their seeds only.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) system: usize,
    pub(super) algorithm: usize,
    pub(super) settings: Vec<(String, String)>,
    pub(super) tune: Flags,
    pub(super) search: Flags,
    pub(super) text: Part,
    pub(super) select: Option<Part>,
    pub(super) replicas: u32,
    pub(super) iterations: u32,
    /// More iterations were planned.
    pub(super) cut: Option<u32>,
}

impl Plan {
    pub(super) fn parse(file: &str, text: &str, wishes: &Wishes) -> Result<Self> {
        let mut plan: Plan = toml::from_str(text).map_err(|e: toml::de::Error| {
            let line = e.span().map_or(1, |s| text[..s.start.min(text.len())].lines().count().max(1));
            Error::at(file, line as u64, e.message().trim().replace('\n', " "))
                .hint("`luthier experiment cer2008 --show` prints one that works")
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
            return wrong(format!("has {name} twice"));
        }
        if systems.is_empty() || algorithms.is_empty() || self.text.test.is_empty() {
            return wrong("needs a system, an algorithm and a test set at least".to_owned());
        }
        // They are names of files too, and settings follow them in names of cells.
        let bad =
            |n: &&&str| n.trim().is_empty() || n.starts_with('.') || n.contains(['/', '=', '\n', '\t', '|']);
        if let Some(name) = systems.iter().chain(&algorithms).find(bad) {
            return wrong(format!("has a system or an algorithm with the name `{name}`"))
                .map_err(|e| e.hint("a name has no / = | and does not begin with a dot"));
        }
        if !algorithms.contains(&self.baseline.as_str()) {
            return wrong(format!("the baseline {} is none of its algorithms", self.baseline));
        }
        let metrics = std::iter::once(self.metric.as_str()).chain(self.own_metrics());
        for metric in metrics {
            let parsed = metric.parse::<Metric>();
            if let Err(e) = parsed {
                return wrong(format!("metric {metric}: {e}"));
            }
            if parsed.is_ok_and(|m| !m.columns().is_empty()) {
                return wrong(format!("metric {metric}: translations of our decoders have no columns"));
            }
        }
        let zero = self.replicas == 0 || self.iterations == 0;
        let none = |a: &Algorithm| {
            a.replicas == Some(0) || a.iterations == Some(0) || a.settings.values().any(Vec::is_empty)
        };
        let sizes = self.text.generate;
        if zero || self.algorithms.iter().any(none) || [sizes.train, sizes.dev, sizes.test].contains(&0) {
            return wrong("replicas, iterations, sizes and numbers of settings begin at 1".to_owned());
        }
        for algorithm in &self.algorithms {
            let select = algorithm.select.clone().filter(|s| s != "none").map(Part::try_from);
            if let Some(Err(e)) = select {
                return wrong(format!("select of {}: {e}", algorithm.name));
            }
            if Recipe::named(&algorithm.command).is_err() {
                let known: Vec<&str> = Recipe::all().iter().map(|r| r.info().name).collect();
                return wrong(format!("the command of {} is {}", algorithm.name, algorithm.command))
                    .map_err(|e| e.hint(format!("known: {}", known.join(", "))));
            }
        }
        if let Some(flag) = self.all_flags().find(|f| OURS.contains(&f.as_str())) {
            return wrong(format!("gives the flag {flag}, which is the experiment's own"))
                .map_err(|e| e.hint("see iterations, init, [text] and replicas"));
        }
        self.check_tables(file)
    }

    /// All flags that are given anywhere.
    fn all_flags(&self) -> impl Iterator<Item = &String> {
        let systems = self.systems.iter().flat_map(|s| [&s.train, &s.tune, &s.search]);
        let algorithms = self.algorithms.iter().flat_map(|a| [&a.tune, &a.search, &a.quick]);
        let all = [&self.tune, &self.search, &self.quick.tune, &self.quick.search].into_iter();
        let settings = self.algorithms.iter().flat_map(|a| a.settings.keys());
        all.chain(systems).chain(algorithms).flat_map(|f| f.keys()).chain(settings)
    }

    /// Metrics that cells are tuned for in place of the plan's.
    fn own_metrics(&self) -> impl Iterator<Item = &str> {
        let systems = self.systems.iter().map(|s| &s.tune);
        let algorithms = self.algorithms.iter().map(|a| &a.tune);
        std::iter::once(&self.tune).chain(systems).chain(algorithms).filter_map(|f| f.get("metric")?.as_str())
    }

    fn check_tables(&self, file: &str) -> Result<()> {
        let wrong = |message: String| Err(Error::in_file(file, message));
        let systems: Vec<&str> = self.systems.iter().map(|s| s.name.as_str()).collect();
        let asked = self.algorithms.iter().flat_map(|a| a.systems.iter().flatten());
        let asked =
            asked.chain(self.tables.iter().flat_map(|t| t.rows.iter().filter_map(|r| r.system.as_ref())));
        if let Some(name) = asked.into_iter().find(|n| !systems.contains(&n.as_str())) {
            return wrong(format!("names a system {name}, which it does not have"));
        }
        let groups = self.groups(&Wishes::default());
        if groups.is_empty() {
            return wrong("has no cell: no algorithm is for any of its systems".to_owned());
        }
        let mut slugs: Vec<String> = groups.iter().map(|g| self.slug(g, 0)).collect();
        slugs.sort_unstable();
        if let Some([name, _]) = slugs.windows(2).find(|w| w[0] == w[1]) {
            return wrong(format!("two of its cells would be in one directory, {name}"))
                .map_err(|e| e.hint("give them names that differ in letters and digits"));
        }
        let rows = self.tables.iter().flat_map(|t| &t.rows).filter_map(|r| r.cell.as_ref());
        let mut cells = rows.chain(self.figures.iter().flat_map(|f| &f.cells));
        if let Some(cell) = cells.find(|c| !groups.iter().any(|g| self.matches(g, c))) {
            return wrong(format!("names a cell {cell}, which it does not have"));
        }
        let columns = self.tables.iter().flat_map(|t| t.columns.iter().map(|c| &c.1));
        let rows = self.tables.iter().flat_map(|t| t.rows.iter().filter_map(|r| r.values.as_ref()).flatten());
        let tests = self.text.test.len();
        let known = |v: &String| match Value::parse(v) {
            Some(Value::Test(i) | Value::Length(i)) => i < tests,
            other => other.is_some(),
        };
        if let Some(bad) = columns.chain(rows).find(|v| !known(v)) {
            return wrong(format!("asks for `{bad}`")).map_err(|e| e.hint(VALUES));
        }
        let bad = self.figures.iter().flat_map(|f| &f.values).find(|v| !LOGGED.contains(&v.as_str()));
        if let Some(bad) = bad {
            return wrong(format!("a figure draws `{bad}`"))
                .map_err(|e| e.hint(format!("known: {}", LOGGED.join(", "))));
        }
        for table in &self.tables {
            let short = |r: &&Row| r.values.as_ref().is_some_and(|v| v.len() != table.columns.len());
            let long = |r: &&Row| r.paper.len() > table.columns.len();
            if let Some(row) = table.rows.iter().find(|r| short(r) || long(r)) {
                let name = row.name.as_ref().or(row.cell.as_ref()).map_or("", String::as_str);
                return wrong(format!("row {name} of {} does not fit its columns", table.title));
            }
        }
        Ok(())
    }

    /// All cells: systems × algorithms × settings, each so many times.
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
        // A cell is what its name says.
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
            cut: (iterations < planned).then_some(planned),
        }
    }

    /// What a group is tuned for, and so what its log is in.
    pub(super) fn metric_of<'a>(&'a self, group: &'a Group) -> &'a str {
        group.tune.get("metric").and_then(|m| m.as_str()).unwrap_or(&self.metric)
    }

    /// What tables call a group.
    pub(super) fn label(&self, group: &Group) -> String {
        let mut label = self.algorithms[group.algorithm].name.clone();
        for (k, v) in &group.settings {
            label += &format!(" {k}={v}");
        }
        label
    }

    /// A name for files.
    pub(super) fn slug(&self, group: &Group, replica: u32) -> String {
        let name = format!("{}.{}.{}", self.systems[group.system].name, self.label(group), replica + 1);
        let plain = |c: char| c.is_alphanumeric() || "-_.=".contains(c);
        name.chars().map(|c| if plain(c) { c } else { '_' }).collect()
    }

    /// Whether a row or a figure speaks of a group.
    pub(super) fn matches(&self, group: &Group, cell: &str) -> bool {
        let (name, settings) = split(cell);
        self.algorithms[group.algorithm].name == name
            && settings
                .iter()
                .all(|(k, v)| group.settings.iter().any(|s| (s.0.as_str(), s.1.as_str()) == (*k, *v)))
    }
}

/// `PRO keep=50` in parts. Names may have blanks, but no equals sign.
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

/// All combinations, the last name fastest.
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

/// A value as one would type it.
fn plain(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Flags as words.
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

/// What a column shows.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Dev,
    Select,
    Test(usize),
    Length(usize),
    Features,
    Iteration,
    Seconds,
    /// A number of the log, at an iteration or at the last one.
    Logged(String, Option<u32>),
}

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

const VALUES: &str = "known: dev, select, test, test2, length, length2, features, iteration, seconds, and score, select, test, length_ratio, \
     select_length_ratio, test_length_ratio, surrogate, surrogate_length_ratio, guess, features with @3 or @last";

impl Value {
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
            _ => return number("test").map(Value::Test).or_else(|| number("length").map(Value::Length)),
        })
    }

    pub(super) fn format(&self, x: f64) -> String {
        let ratio = |name: &str| name.ends_with("ratio");
        match self {
            Value::Length(_) => format!("{x:.3}"),
            Value::Logged(name, _) if ratio(name) => format!("{x:.3}"),
            Value::Logged(name, _) if name == "features" => crate::talk::thousands(x as usize),
            Value::Features => crate::talk::thousands(x as usize),
            Value::Iteration | Value::Seconds => format!("{x:.0}"),
            _ => format!("{x:.2}"),
        }
    }
}
