//! Builds judged lists, one per segment, from the rows of n-best files.

use crate::{Candidate, Candidates};
use luthier_core::{Error, FeatureKey, Local, Result};
use luthier_io::nbest::{RowFile, Rows};
use luthier_metric::{Metric, Scratch};
use rayon::prelude::*;
use std::sync::Arc;

/// Number of distinct features up to which [`columns`] makes all of them dense.
pub const SMALL: usize = 64;

/// Metric and references that [`lists`] judges candidates by.
#[derive(Debug, Clone, Copy)]
pub struct Judge<'a> {
    /// Metric whose statistics are computed for every candidate.
    pub metric: &'a Metric,
    /// References of each segment, one or more.
    pub references: &'a [Vec<&'a str>],
    /// Name of the reference file in error messages.
    pub file: &'a str,
    /// Whether a candidate with the text and features of an earlier one in its segment is left out; true by
    /// default.
    pub distinct: bool,
    /// Whether a segment may have no candidate, and then counts for nothing; false by default, which makes it
    /// an error.
    pub allow_missing: bool,
    /// Statistics of every row, [`Metric::width`] numbers each, where they were computed elsewhere; texts and
    /// references are then not read.
    pub given: Option<&'a [f32]>,
}

impl<'a> Judge<'a> {
    /// Judges candidates by references with the settings for tuning: repeated candidates are left out, and
    /// every segment needs a candidate.
    pub fn new(metric: &'a Metric, references: &'a [Vec<&'a str>], file: &'a str) -> Self {
        Judge { metric, references, file, distinct: true, allow_missing: false, given: None }
    }
}

/// Chooses the features that become dense columns: all of them if there are at most [`SMALL`], else those
/// that at least half of the candidates have. Columns that the metric reads are not features.
pub fn columns(rows: &Rows, metric: Option<&Metric>) -> Arc<Local> {
    let read = read_by(metric);
    let keys: Vec<FeatureKey> = rows.names.keys().iter().copied().filter(|k| !read.contains(k)).collect();
    if keys.len() <= SMALL {
        return Arc::new(Local::new(keys));
    }
    let keys = rows.names.keys();
    let mut counts = vec![0usize; keys.len()];
    for row in 0..rows.len() {
        for &id in rows.features(row).0 {
            counts[id as usize] += 1;
        }
    }
    let dense = |id: &usize| counts[*id] * 2 >= rows.len() && !read.contains(&keys[*id]);
    Arc::new(Local::new((0..keys.len()).filter(dense).map(|id| keys[id]).collect()))
}

/// Returns the keys of the columns that a metric reads, which are not features.
fn read_by(metric: Option<&Metric>) -> Vec<FeatureKey> {
    metric.map_or(Vec::new(), |m| m.columns().iter().map(|n| FeatureKey::of(n)).collect())
}

/// Builds one list per segment from the rows of n-best files, judged if `judge` is given.
///
/// Fails if a value exceeds the range of single precision, if a candidate lacks a score that the metric reads, if
/// a segment has no reference, or if a segment has no candidate, unless [`Judge::allow_missing`] is set.
///
/// ```
/// use luthier_io::nbest::{RowFile, Rows};
/// use luthier_tune::{Judge, columns, lists};
/// let mut rows = Rows::default();
/// rows.push(0, "the small house", &[("lm", -3.0)], &[]).unwrap();
/// let metric = "bleu".parse().unwrap();
/// let references = [vec!["the small house"], vec!["a garden"]];
/// let judge = Judge::new(&metric, &references, "ref.txt");
/// let missing = lists(&rows, &columns(&rows, None), Some(judge)).unwrap_err();
/// assert!(missing.to_string().contains("segment 1 has no candidate for line 2 of ref.txt"));
/// let all = lists(&rows, &columns(&rows, None), Some(Judge { allow_missing: true, ..judge })).unwrap();
/// assert_eq!([all[0].k, all[1].k], [1, 0]);
/// ```
pub fn lists(rows: &Rows, columns: &Arc<Local>, judge: Option<Judge<'_>>) -> Result<Vec<Candidates>> {
    let allow_missing = judge.is_none_or(|j| j.allow_missing);
    check_size(rows)?;
    let mut given = Vec::new();
    if let Some(judge) = judge {
        if let Some(stats) = judge.given {
            given = stats.iter().map(|&x| f64::from(x)).collect();
        } else {
            check_segments(rows, &judge)?;
            given = metric_columns(rows, judge.metric)?;
        }
    }
    let mut groups = rows.by_segment(allow_missing)?;
    if let Some(judge) = judge.filter(|j| j.given.is_none()) {
        groups.resize(judge.references.len(), Vec::new());
    }
    let read = read_by(judge.map(|j| j.metric));
    let distinct = judge.is_some_and(|j| j.distinct);
    Ok(groups
        .into_par_iter()
        .enumerate()
        .map_init(Scratch::default, |scratch, (segment, group)| {
            let mut list = one_list(rows, columns, &read, &group, &given, distinct);
            match judge {
                Some(j) if j.given.is_some() => list.judge_given(j.metric.width()),
                Some(j) => {
                    let prepared = j.metric.prepare(&j.references[segment], scratch);
                    list.judge(j.metric, &prepared, scratch);
                }
                None => {}
            }
            list
        })
        .collect())
}

/// Fails if a feature value exceeds the range of single precision, in which sparse features and statistics are
/// stored.
fn check_size(rows: &Rows) -> Result<()> {
    for row in 0..rows.len() {
        let (ids, values) = rows.features(row);
        if let Some(i) = values.iter().position(|v| v.abs() > f64::from(f32::MAX)) {
            let name = &rows.names.names()[ids[i] as usize];
            let message =
                format!("{name} is {}, expected an absolute value of at most {:e}", values[i], f32::MAX);
            return Err(rows.error(row, message).hint("check the file; scores should be logarithms"));
        }
    }
    Ok(())
}

/// Builds the list of one segment from the rows in `group`, unjudged and with repeated candidates.
pub fn list(rows: &Rows, columns: &Arc<Local>, group: &[u32]) -> Candidates {
    one_list(rows, columns, &[], group, &[], false)
}

/// Returns the numbers that a metric reads besides the text, row after row. Fails if a candidate lacks one.
fn metric_columns(rows: &Rows, metric: &Metric) -> Result<Vec<f64>> {
    let names = metric.columns();
    let mut given = Vec::with_capacity(names.len() * rows.len());
    for row in 0..rows.len() {
        for name in &names {
            given.push(rows.column(row, name).ok_or_else(|| no_column(rows, row, name))?);
        }
    }
    Ok(given)
}

/// Error about a candidate without a number that the metric reads.
fn no_column(rows: &Rows, row: usize, name: &str) -> Error {
    let ignored = |f: &RowFile| f.usage.iter().any(|u| u.ignored.iter().any(|(n, _)| n == name));
    if rows.files.iter().any(ignored) {
        return rows.error(row, format!("the column `{name}`, which the metric reads, is ignored")).hint(
            "add it to --feature-columns, or leave it out of --ignore-columns; a column that the metric reads is not a \
             feature",
        );
    }
    rows.error(row, format!("the candidate has no score `{name}`, which the metric reads"))
}

/// Builds the list of one segment from the rows in `group`; `read` are columns that are not features, `given`
/// the numbers that the metric reads, row after row.
fn one_list(
    rows: &Rows,
    columns: &Arc<Local>,
    read: &[FeatureKey],
    group: &[u32],
    given: &[f64],
    distinct: bool,
) -> Candidates {
    let keys = rows.names.keys();
    let mut features: Vec<(FeatureKey, f64)> = Vec::new();
    let mut ends = Vec::with_capacity(group.len());
    for &row in group {
        let (ids, values) = rows.features(row as usize);
        let named = ids.iter().zip(values).map(|(&id, &v)| (keys[id as usize], v));
        features.extend(named.filter(|f| !read.contains(&f.0)));
        ends.push(features.len());
    }
    let width = given.len() / rows.len().max(1);
    let candidates = group.iter().enumerate().map(|(i, &row)| {
        let start = if i == 0 { 0 } else { ends[i - 1] };
        let row = row as usize;
        Candidate {
            text: rows.text(row),
            features: &features[start..ends[i]],
            columns: &given[row * width..(row + 1) * width],
        }
    });
    Candidates::new(columns, candidates, distinct)
}

/// Fails if a candidate has no reference or, unless [`Judge::allow_missing`] is set, a reference has no candidate.
fn check_segments(rows: &Rows, judge: &Judge<'_>) -> Result<()> {
    let n = judge.references.len();
    if let Some(row) = (0..rows.len()).find(|&row| rows.segment(row) as usize >= n) {
        let found = rows.segment(row);
        return Err(rows
            .error(row, format!("segment {found} has no reference: {} ends after line {n}", judge.file))
            .hint("give references with one line per segment (segments count from 0); is the file truncated, or from another set?"));
    }
    let mut has = vec![false; n];
    (0..rows.len()).for_each(|row| has[rows.segment(row) as usize] = true);
    match has.iter().position(|h| !h).filter(|_| !judge.allow_missing) {
        None => Ok(()),
        Some(missing) => {
            let file = rows.files.first().map_or("n-best list", |f| f.name.as_str());
            Err(Error::in_file(
                file,
                format!("segment {missing} has no candidate for line {} of {}", missing + 1, judge.file),
            )
            .hint("--allow-missing skips segments without candidates"))
        }
    }
}
