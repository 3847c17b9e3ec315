//! From rows of n-best files to lists.

use crate::{Candidate, List};
use luthier_core::{Error, FeatureKey, Local, Result, nbest::Rows};
use luthier_metric::{Metric, Scratch};
use rayon::prelude::*;
use std::sync::Arc;

/// Up to this many features in all, every one is dense.
const SMALL: usize = 64;

/// What candidates are judged against.
#[derive(Debug, Clone, Copy)]
pub struct Judge<'a> {
    /// The metric.
    pub metric: &'a Metric,
    /// References of each segment.
    pub references: &'a [Vec<&'a str>],
    /// The reference file, for messages.
    pub file: &'a str,
    /// Whether repeated candidates are left out.
    pub distinct: bool,
}

/// Which features become dense columns: all if they are few, else those that at least half of the
/// candidates have.
pub fn columns(rows: &Rows) -> Arc<Local> {
    let keys = rows.names.keys();
    if keys.len() <= SMALL {
        return Arc::new(Local::new(keys.to_vec()));
    }
    let mut counts = vec![0usize; keys.len()];
    for row in 0..rows.len() {
        for &id in rows.features(row).0 {
            counts[id as usize] += 1;
        }
    }
    let dense = |id: &usize| counts[*id] * 2 >= rows.len();
    Arc::new(Local::new((0..keys.len()).filter(dense).map(|id| keys[id]).collect()))
}

/// One list per segment. With a judge, every segment must have candidates and a reference; without, the lists
/// are as they were read.
pub fn lists(rows: &Rows, columns: &Arc<Local>, judge: Option<Judge<'_>>) -> Result<Vec<List>> {
    let mut groups = rows.by_segment();
    if let Some(judge) = judge {
        check_segments(rows, &groups, &judge)?;
        groups.resize(judge.references.len(), Vec::new());
    }
    let given = match judge {
        Some(judge) => metric_columns(rows, judge.metric)?,
        None => Vec::new(),
    };
    let distinct = judge.is_some_and(|j| j.distinct);
    Ok(groups
        .into_par_iter()
        .enumerate()
        .map_init(Scratch::default, |scratch, (segment, group)| {
            let mut list = one_list(rows, columns, &group, &given, distinct);
            if let Some(judge) = judge {
                let prepared = judge.metric.prepare(&judge.references[segment], scratch);
                list.judge(judge.metric, &prepared, scratch);
            }
            list
        })
        .collect())
}

/// The numbers that a metric reads from the candidates, row after row.
fn metric_columns(rows: &Rows, metric: &Metric) -> Result<Vec<f64>> {
    let names = metric.columns();
    let mut given = Vec::with_capacity(names.len() * rows.len());
    for row in 0..rows.len() {
        for name in &names {
            given.push(rows.column(row, name).ok_or_else(|| {
                rows.error(row, format!("the candidate has no score `{name}`, which the metric reads"))
            })?);
        }
    }
    Ok(given)
}

fn one_list(rows: &Rows, columns: &Arc<Local>, group: &[u32], given: &[f64], distinct: bool) -> List {
    let keys = rows.names.keys();
    let mut features: Vec<(FeatureKey, f64)> = Vec::new();
    let mut ends = Vec::with_capacity(group.len());
    for &row in group {
        let (ids, values) = rows.features(row as usize);
        features.extend(ids.iter().zip(values).map(|(&id, &v)| (keys[id as usize], v)));
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
    List::new(columns, candidates, distinct)
}

fn check_segments(rows: &Rows, groups: &[Vec<u32>], judge: &Judge<'_>) -> Result<()> {
    let n = judge.references.len();
    if groups.len() > n {
        // The first offending line of the file, not of the segment, is what the user will look for.
        let row = groups[n..].iter().flatten().copied().min().unwrap_or(0) as usize;
        let found = rows.segment(row);
        return Err(rows
            .error(row, format!("segment {found} has no reference: {} ends after line {n}", judge.file))
            .hint("segments count from 0; is the reference file cut short, or of another set?"));
    }
    let missing = groups.iter().position(Vec::is_empty).unwrap_or(groups.len());
    if missing < n {
        let file = rows.files.first().map_or("n-best list", |f| f.name.as_str());
        return Err(Error::in_file(file, format!("segment {missing} has no candidate")).hint(format!(
            "line {} of {} has no counterpart",
            missing + 1,
            judge.file
        )));
    }
    Ok(())
}
