//! Text formats of forests: one forest per line as JSON in cicada's format, read and written; Moses' hypergraph
//! files, read only.
//!
//! `{"id":0,"rules":["[x] ||| the [x,1]"],"nodes":[[{"tail":[0],"rule":1,"feature":{"lm":-1.2}}]],"goal":1}`: `nodes`
//! lists the incoming edges of each node; rules are numbered from 1, nodes from 0; `goal` is the root.

use crate::{Builder, Forest, NONE, TAILS};
use luthier_core::{Error, FeatureKey, Local, Names, Result, Vocabulary};
use luthier_io::Input;
use serde_json::Value;
use std::{fmt::Write as _, sync::Arc};

/// A forest read from a line of JSON, with its segment number.
#[derive(Debug, Clone)]
pub struct Read {
    /// Segment number of the forest; 0 if the line has none.
    pub id: u64,
    /// The forest, with its own lists of features and words.
    pub forest: Forest<'static>,
}

/// Appends a forest with its segment number to `out` as one line of JSON, without a newline. `name` returns the names
/// of features.
///
/// ```
/// use luthier_forest::text::{from_json, write_json};
/// let line = r#"{"id":3,"rules":["[x] ||| yes"],"nodes":[[{"rule":1,"feature":{"p":-1.5}}]],"goal":0}"#;
/// let read = from_json(line)?;
/// let mut written = String::new();
/// write_json(&read.forest, read.id, &|_| "p".to_owned(), &mut written);
/// assert_eq!(written, line);
/// # luthier_core::Result::Ok(())
/// ```
pub fn write_json(forest: &Forest<'_>, id: u64, name: &dyn Fn(FeatureKey) -> String, out: &mut String) {
    let quoted = |text: &str| Value::from(text).to_string();
    let names: Vec<String> = forest.local.keys().iter().map(|&k| quoted(&name(k))).collect();
    let _ = write!(out, "{{\"id\":{id},\"rules\":[");
    let mut rule = String::new();
    for r in 0..forest.rules.target.len() as u32 {
        rule.clear();
        rule.push_str("[x] |||");
        for s in forest.rules.target.row(r) {
            rule.push(' ');
            if let Some(k) = TAILS.iter().position(|t| t == s) {
                let _ = write!(rule, "[x,{}]", k + 1);
                continue;
            }
            let word = forest.words.get(*s as usize).map_or("", String::as_str);
            // Escape a word that looks like a non-terminal or an escape.
            if word.starts_with(['[', '\\']) {
                rule.push('\\');
            }
            rule.push_str(word);
        }
        out.push_str(if r > 0 { "," } else { "" });
        out.push_str(&quoted(&rule));
    }
    out.push_str("],\"nodes\":[");
    let mut features: Vec<(u32, f64)> = Vec::new();
    for node in 0..forest.nodes() as u32 {
        out.push_str(if node > 0 { ",[" } else { "[" });
        for (k, edge) in forest.incoming(node).enumerate() {
            out.push_str(if k > 0 { ",{" } else { "{" });
            if forest.both(edge)[0] != NONE {
                let tails: Vec<String> = forest.tails(edge).map(|t| t.to_string()).collect();
                let _ = write!(out, "\"tail\":[{}],", tails.join(","));
            }
            features.clear();
            features.extend(forest.features(edge).map(|(f, v)| (f, f64::from(v))));
            features.sort_by_key(|f| f.0);
            features.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                if same {
                    kept.1 += next.1;
                }
                same
            });
            let _ = write!(out, "\"rule\":{},\"feature\":{{", forest.rule(edge) + 1);
            for (k, (f, v)) in features.iter().enumerate() {
                let _ = write!(out, "{}{}:{v}", if k > 0 { "," } else { "" }, names[*f as usize]);
            }
            out.push_str("}}");
        }
        out.push(']');
    }
    let _ = write!(out, "],\"goal\":{}}}", forest.nodes().saturating_sub(1));
}

/// A forest as it is read: incoming edges of each node, which need not be in topological order.
struct Parts {
    words: Vocabulary,
    names: Names,
    nodes: Vec<Vec<Part>>,
}

/// An edge as it is read.
struct Part {
    tails: Vec<usize>,
    target: Vec<u32>,
    features: Vec<(u32, f32)>,
}

impl Parts {
    fn new(nodes: usize) -> Self {
        Parts {
            words: Vocabulary::default(),
            names: Names::default(),
            nodes: (0..nodes).map(|_| Vec::new()).collect(),
        }
    }

    /// Appends a feature to `into`. Fails if its value is not a finite number.
    fn feature(&mut self, name: &str, value: f64, into: &mut Vec<(u32, f32)>) -> Result<()> {
        if !value.is_finite() || value.abs() > f64::from(f32::MAX) {
            return Err(Error::new(format!("the feature {name} is {value}, expected a finite number")));
        }
        into.push((self.names.intern(name)?, value as f32));
        Ok(())
    }

    /// Builds the forest from the nodes below the goal, in topological order. Fails if they form a cycle.
    fn finish(self, goal: usize) -> Result<Forest<'static>> {
        let Parts { words, names, nodes } = self;
        let mut order = Vec::new();
        // Depth-first search: 0 unvisited, 1 in progress, 2 finished.
        let mut state = vec![0u8; nodes.len()];
        let mut open = vec![(goal, false)];
        while let Some((node, closing)) = open.pop() {
            if closing {
                state[node] = 2;
                order.push(node);
                continue;
            }
            if state[node] == 1 {
                return Err(Error::new(format!("node {node} is on a cycle"))
                    .hint("a forest must be acyclic: remove cycles of unary rules"));
            }
            if state[node] == 2 {
                continue;
            }
            state[node] = 1;
            open.push((node, true));
            for tail in nodes[node].iter().flat_map(|e| &e.tails) {
                if state[*tail] != 2 {
                    open.push((*tail, false));
                }
            }
        }
        let keys = names.keys().to_vec();
        let local = Local::new(keys.clone());
        let place: Vec<u32> = keys.iter().map(|k| local.position(*k).unwrap_or_default() as u32).collect();
        let mut number = vec![NONE; nodes.len()];
        let mut builder = Builder::default();
        for node in order {
            for edge in &nodes[node] {
                let rule = builder.rule(edge.target.iter().copied(), &[]);
                let features: Vec<(u32, f32)> =
                    edge.features.iter().map(|&(f, v)| (place[f as usize], v)).collect();
                let mut tails = [NONE; 2];
                for (t, tail) in tails.iter_mut().zip(&edge.tails) {
                    *t = number[*tail];
                }
                builder.edge(tails, rule, &features);
            }
            number[node] = builder.node();
        }
        let words = (0..words.len() as u32).map(|w| words.word(w).to_owned()).collect();
        Ok(builder.finish(Arc::new(local), Arc::new(words)))
    }
}

/// Reads a forest from a line of JSON, in the format of [`write_json`] or of cicada, optionally preceded by `id ||| `.
/// Fails if the line is not JSON, lacks rules or nodes, has a cycle, or has an edge with more than two tails.
pub fn from_json(line: &str) -> Result<Read> {
    let (before, text) = match line.split_once("|||") {
        Some((id, rest)) if !line.trim_start().starts_with('{') => (Some(id.trim()), rest),
        _ => (None, line),
    };
    let value: Value = serde_json::from_str(text)
        .map_err(|e| Error::new(format!("the line is not JSON: {e}")).hint("expected one forest per line"))?;
    let id = match before {
        Some(id) => id.parse().ok(),
        None => value.get("id").map_or(Some(0), Value::as_u64),
    };
    let id = id.ok_or_else(|| wrong("the segment number is not an integer, 0 or more"))?;
    let list =
        |key: &str| value[key].as_array().ok_or_else(|| wrong(&format!("the list of {key} is missing")));
    let (rules, nodes) = (list("rules")?, list("nodes")?);
    let goal = value["goal"].as_u64().unwrap_or(nodes.len().saturating_sub(1) as u64) as usize;
    if nodes.is_empty() {
        return Ok(Read { id, forest: Forest::default() });
    }
    if goal >= nodes.len() {
        return Err(wrong(&format!("the goal is node {goal}, but the number of nodes is {}", nodes.len())));
    }
    let mut parts = Parts::new(nodes.len());
    for (n, node) in nodes.iter().enumerate() {
        for edge in node.as_array().ok_or_else(|| wrong(&format!("node {n} is not a list of edges")))? {
            let part = json_edge(edge, n, rules, &mut parts)?;
            parts.nodes[n].push(part);
        }
    }
    Ok(Read { id, forest: parts.finish(goal)? })
}

/// Error about JSON that does not follow the format.
fn wrong(what: &str) -> Error {
    Error::new(what.to_owned()).hint("expected `rules`, `nodes` and `goal` in cicada's format")
}

/// Reads an edge of node `n`, such as `{"tail":[0],"rule":1,"feature":{"lm":-1.2}}`.
fn json_edge(edge: &Value, n: usize, rules: &[Value], parts: &mut Parts) -> Result<Part> {
    let number = |v: &Value| v.as_u64().map(|t| t as usize).filter(|&t| t < parts.nodes.len());
    let tails: Option<Vec<usize>> = match edge.get("tail") {
        None => Some(Vec::new()),
        Some(tails) => tails.as_array().and_then(|t| t.iter().map(number).collect()),
    };
    let tails = tails.filter(|t| t.len() <= 2).ok_or_else(|| {
        let nodes = parts.nodes.len();
        wrong(&format!(
            "the `tail` of an edge of node {n} is not a list of at most two node numbers below {nodes}"
        ))
    })?;
    let rule = edge["rule"].as_u64().unwrap_or(0) as usize;
    let text = match rule {
        0 => "",
        r => rules.get(r - 1).and_then(Value::as_str).ok_or_else(|| {
            wrong(&format!("an edge of node {n} has rule {r}, but the number of rules is {}", rules.len()))
        })?,
    };
    let side = text.split_once("|||").map_or("", |s| s.1);
    let target = symbols(side, tails.len(), &mut parts.words)?;
    let mut features = Vec::new();
    for (name, v) in edge.get("feature").and_then(Value::as_object).into_iter().flatten() {
        let v = v.as_f64().ok_or_else(|| wrong(&format!("the feature {name} is not a number")))?;
        parts.feature(name, v, &mut features)?;
    }
    Ok(Part { tails, target, features })
}

/// Reads the target side of the rule of an edge with `tails` tails, such as `the [x,1] of [x,2]`.
fn symbols(side: &str, tails: usize, words: &mut Vocabulary) -> Result<Vec<u32>> {
    let mut seen = 0;
    let mut all = Vec::new();
    for word in side.split_ascii_whitespace() {
        let inside = word.strip_prefix('[').and_then(|w| w.strip_suffix(']'));
        let Some(gap) = inside.filter(|_| word.len() > 2) else {
            all.push(words.add(word.strip_prefix('\\').unwrap_or(word)));
            continue;
        };
        // Gaps without an index are numbered from left to right.
        let index = match gap.split_once(',') {
            Some((_, n)) => n.parse::<usize>().ok(),
            None => Some(seen + 1),
        };
        let index = index.filter(|&i| (1..=tails).contains(&i)).ok_or_else(|| {
            Error::new(format!("the rule has the gap {word}, but the edge has {tails} tails"))
        })?;
        seen += 1;
        all.push(TAILS[index - 1]);
    }
    if seen != tails {
        return Err(Error::new(format!("a rule has {seen} gaps, but its edge has {tails} tails")));
    }
    Ok(all)
}

/// Reads a hypergraph file of Moses (`-output-search-graph-hypergraph`), one sentence per file. Fails if the file
/// does not follow the format; the error names the line.
pub fn read_moses(input: &mut Input) -> Result<Forest<'static>> {
    let (mut line, mut begun) = (Vec::new(), false);
    let mut next = |input: &mut Input| -> Result<Option<String>> {
        loop {
            if !input.line(&mut line)? {
                return Ok(None);
            }
            let text = input.utf8(&line)?;
            // An edge may begin with a word such as `#`, but then contains bars; the header is a comment with bars.
            if !text.starts_with('#') || (begun && text.contains("|||")) {
                begun = true;
                return Ok(Some(text.to_owned()));
            }
        }
    };
    let early = |input: &Input| {
        Error::at(input.name(), input.line_number() + 1, "truncated hypergraph")
            .hint("copy or create the file again")
    };
    let numbers = next(input)?.ok_or_else(|| early(input))?;
    let sizes: Option<Vec<usize>> = numbers.split_ascii_whitespace().map(|n| n.parse().ok()).collect();
    let Some([nodes, edges]) = sizes.as_deref().and_then(|s| <[usize; 2]>::try_from(s).ok()) else {
        return Err(input.error(format!("found {numbers:?}, expected the numbers of nodes and edges")));
    };
    let mut parts = Parts::new(0);
    for node in 0..nodes {
        let count = next(input)?.ok_or_else(|| early(input))?;
        let count: usize = count.trim().parse().map_err(|_| {
            input.error(format!("found {count:?}, expected the number of edges of node {node}"))
        })?;
        parts.nodes.push(Vec::new());
        for _ in 0..count {
            let text = next(input)?.ok_or_else(|| early(input))?;
            let part = moses_edge(&text, node, &mut parts)
                .map_err(|e| e.place(input.name(), input.line_number()))?;
            parts.nodes[node].push(part);
        }
    }
    let found: usize = parts.nodes.iter().map(Vec::len).sum();
    if found != edges {
        return Err(Error::in_file(input.name(), format!("has {found} edges, but its header says {edges}")));
    }
    if nodes == 0 {
        return Ok(Forest::default());
    }
    parts.finish(nodes - 1).map_err(|e| e.place(input.name(), 1))
}

/// Reads an edge of a Moses hypergraph, such as `[3] the house ||| LM0=-3.1 D=0 ||| 2`.
fn moses_edge(text: &str, node: usize, parts: &mut Parts) -> Result<Part> {
    let mut fields = text.split("|||");
    let (mut tails, mut target) = (Vec::new(), Vec::new());
    for word in fields.next().unwrap_or_default().split_ascii_whitespace() {
        let inside = word.strip_prefix('[').and_then(|w| w.strip_suffix(']'));
        match inside.map(str::parse::<usize>) {
            Some(Ok(tail)) if tail < node && tails.len() < 2 => {
                target.push(TAILS[tails.len()]);
                tails.push(tail);
            }
            Some(Ok(tail)) => {
                return Err(Error::new(format!("an edge of node {node} has the tail {tail}"))
                    .hint("expected at most two tails per edge, each with a lower number than the node"));
            }
            // Sentence boundaries are not words.
            _ if matches!(word, "<s>" | "</s>") => {}
            _ => target.push(parts.words.add(word)),
        }
    }
    let mut features = Vec::new();
    for word in fields.next().unwrap_or_default().split_ascii_whitespace() {
        let pair = word.rsplit_once('=').and_then(|(n, v)| Some((n, v.parse::<f64>().ok()?)));
        let (name, value) = pair.ok_or_else(|| Error::new(format!("found {word:?}, expected name=value")))?;
        parts.feature(name, value, &mut features)?;
    }
    Ok(Part { tails, target, features })
}
