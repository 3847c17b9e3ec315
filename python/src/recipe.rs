//! Algorithms with their settings: names, help and checks are those of the command line.

use crate::call::{in_python, keyword, raise, wrong};
use clap::{Arg, ArgAction, Command, FromArgMatches, Subcommand};
use luthier::tune::recipe::Recipe as Inner;
use pyo3::{
    prelude::*,
    types::{PyDict, PyList},
};
use std::error::Error as _;

/// An algorithm with its settings.
#[pyclass(frozen, module = "luthier._luthier")]
#[derive(Clone)]
pub(crate) struct Recipe(pub(crate) Inner);

/// Kind of a setting's value, as a Python annotation.
fn kind(arg: &Arg) -> &'static str {
    let parser = arg.get_value_parser().type_id();
    let is = |id: std::any::TypeId| parser == id;
    if matches!(arg.get_action(), ArgAction::SetTrue | ArgAction::SetFalse) {
        "bool"
    } else if is(std::any::TypeId::of::<f64>()) {
        "float"
    } else if [
        std::any::TypeId::of::<u8>(),
        std::any::TypeId::of::<u16>(),
        std::any::TypeId::of::<u32>(),
        std::any::TypeId::of::<u64>(),
        std::any::TypeId::of::<usize>(),
    ]
    .into_iter()
    .any(is)
    {
        "int"
    } else {
        "str"
    }
}

fn flags(name: &str) -> Option<Vec<Arg>> {
    let all = Inner::augment_subcommands(Command::new("recipes"));
    Some(all.find_subcommand(name)?.get_arguments().cloned().collect())
}

/// Words that a flag of any algorithm takes.
pub(crate) fn flag_words(flag: &str) -> Vec<String> {
    let all = Inner::augment_subcommands(Command::new("recipes"));
    let known = |command: &Command| {
        let arg = command.get_arguments().find(|a| a.get_long() == Some(flag));
        arg.map(|a| a.get_possible_values().iter().map(|v| v.get_name().to_owned()).collect::<Vec<_>>())
    };
    all.get_subcommands().filter_map(known).flatten().collect()
}

/// Name of a flag's setting in Python.
fn setting(arg: &Arg) -> String {
    keyword(arg.get_long().unwrap_or_default())
}

/// All algorithms with their settings: name, summary, papers, and for each setting its name, kind, default, choices, help,
/// and whether it takes several values and whether its value may be left out.
#[pyfunction]
pub(crate) fn algorithms(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let all = PyList::empty(py);
    for recipe in Inner::all() {
        let info = recipe.info();
        let entry = PyDict::new(py);
        entry.set_item("name", info.name)?;
        entry.set_item("summary", info.summary)?;
        entry.set_item("papers", info.papers)?;
        entry.set_item("note", info.note)?;
        entry.set_item("metrics", info.metrics)?;
        entry.set_item("has_objective", info.has_objective)?;
        let settings = PyList::empty(py);
        for arg in flags(info.name).unwrap_or_default() {
            let one = PyDict::new(py);
            let many = matches!(arg.get_action(), ArgAction::Append)
                || arg.get_num_args().is_some_and(|n| n.max_values() > 1);
            let optional = arg.get_num_args().is_some_and(|n| n.min_values() == 0 && n.takes_values());
            let choices: Vec<String> =
                arg.get_possible_values().iter().map(|v| v.get_name().to_owned()).collect();
            let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string);
            let default: Vec<String> =
                arg.get_default_values().iter().map(|v| v.to_string_lossy().into_owned()).collect();
            one.set_item("name", setting(&arg))?;
            one.set_item("kind", kind(&arg))?;
            one.set_item("default", default)?;
            one.set_item("choices", if kind(&arg) == "bool" { Vec::new() } else { choices })?;
            one.set_item("help", help.unwrap_or_default())?;
            one.set_item("many", many)?;
            one.set_item("optional", optional)?;
            settings.append(one)?;
        }
        entry.set_item("settings", settings)?;
        all.append(entry)?;
    }
    Ok(all)
}

#[pymethods]
impl Recipe {
    /// Makes an algorithm from its name and its settings, which are words as on the command line: a list per setting, empty for
    /// a switch.
    #[new]
    fn new(name: &str, settings: Vec<(String, Vec<String>)>) -> PyResult<Self> {
        let Some(known) = flags(name) else {
            return Err(Inner::named(name).map_or_else(|e| raise(&e), |_| wrong("no settings")));
        };
        let mut words = vec!["luthier".to_owned(), name.to_owned()];
        for (setting_name, values) in &settings {
            let Some(arg) = known.iter().find(|a| setting(a) == *setting_name) else {
                let mut names: Vec<String> = known.iter().map(setting).collect();
                names.sort();
                let near = names.iter().find(|n| luthier::metric::edit_distance(n, setting_name) <= 2);
                let guess = near.map(|n| format!("; did you mean {n}?")).unwrap_or_default();
                let has = names.join(", ");
                return Err(wrong(format!("{name} has no setting {setting_name}{guess} (it has {has})")));
            };
            let flag = arg.get_long().unwrap_or_default();
            if values.is_empty() {
                words.push(format!("--{flag}"));
            }
            for value in values {
                words.push(format!("--{flag}={value}"));
            }
        }
        let command = Inner::augment_subcommands(Command::new("luthier"));
        let parsed = command.try_get_matches_from(words).and_then(|m| Inner::from_arg_matches(&m));
        parsed.map(Recipe).map_err(|e| wrong(message(&e)))
    }

    fn name(&self) -> &'static str {
        self.0.info().name
    }

    /// All settings as JSON.
    fn json(&self) -> String {
        serde_json::to_string(&self.0).unwrap_or_default()
    }
}

/// Message of an error of the parser, with settings as keyword arguments.
fn message(error: &clap::Error) -> String {
    use clap::error::{ContextKind, ContextValue};
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(s)) => Some(s.as_str()),
        _ => None,
    };
    if let (Some(flag), Some(value)) = (text(ContextKind::InvalidArg), text(ContextKind::InvalidValue)) {
        let name = keyword(flag.trim_start_matches('-').split([' ', '=', '[']).next().unwrap_or(flag));
        let reason = match error.get(ContextKind::ValidValue) {
            Some(ContextValue::Strings(known)) => format!(", expected one of {}", known.join(", ")),
            _ => error.source().map_or_else(String::new, |e| format!(": {e}")),
        };
        return format!("{name} is {value}{reason}");
    }
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let text = text.split("\n\nUsage").next().unwrap_or(text).split("\n\nFor more").next().unwrap_or(text);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    in_python(&lines.join("; "))
}
