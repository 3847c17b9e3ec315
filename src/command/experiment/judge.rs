//! Claims of an experiment, judged by its results: differences with confidence intervals, and verdicts.

use super::{
    claim::{ClaimSpec, Side, Spread, Verdict},
    plan::Value,
    show::{Results, pipes},
};
use luthier::metric::significance::{Estimate, Question, Term, Test, Variance};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};

/// A claim that was judged.
pub(super) struct Judged {
    /// Means of both sides; with `than`, both mean differences; with `spread`, both standard deviations.
    sides: (f64, f64),
    /// First minus second, or first over second with `spread`.
    estimate: Estimate,
    /// Number of replicas that the estimate rests on.
    runs: usize,
    verdict: Verdict,
}

/// A weighted sum of groups of cells, plus a constant.
#[derive(Default)]
struct Contrast {
    weights: BTreeMap<usize, f64>,
    constant: f64,
}

impl Contrast {
    fn minus(mut self, other: Contrast) -> Self {
        for (group, weight) in other.weights {
            *self.weights.entry(group).or_default() -= weight;
        }
        self.constant -= other.constant;
        self.weights.retain(|_, w| *w != 0.0);
        self
    }
}

/// A claim with the results that judge it.
struct Judge<'a> {
    results: &'a Results<'a>,
    claim: &'a ClaimSpec,
    value: Value,
}

/// Judges a claim; `None` if cells that it refers to have no result, or not the value.
pub(super) fn judge(results: &Results<'_>, claim: &ClaimSpec) -> Option<Judged> {
    let judge = Judge { results, claim, value: Value::parse(&claim.value)? };
    match claim.spread {
        Some(spread) => judge.spread(spread),
        None => judge.difference(),
    }
}

impl Judge<'_> {
    /// Returns the groups of cells that a name refers to.
    fn groups(&self, cell: &str) -> Vec<usize> {
        let experiment = self.results.experiment;
        let ours = |system: usize| {
            self.claim.system.as_ref().is_none_or(|s| experiment.plan.systems[system].name == *s)
        };
        let groups = experiment.groups.iter().enumerate();
        groups.filter(|(_, g)| ours(g.system) && experiment.plan.matches(g, cell)).map(|(i, _)| i).collect()
    }

    /// Returns the value of each replica of a group.
    fn numbers(&self, group: usize) -> BTreeMap<u32, f64> {
        let mut numbers = self.results.numbers(group, &self.value);
        if let Some(from) = self.claim.distance_from {
            for x in numbers.values_mut() {
                *x = (*x - from).abs();
            }
        }
        numbers
    }

    /// Returns the mean over some sides; `None` if a cell has no result.
    fn mean_of<'s>(&self, sides: impl ExactSizeIterator<Item = &'s Side>) -> Option<Contrast> {
        let mut sum = Contrast::default();
        let share = 1.0 / sides.len() as f64;
        for side in sides {
            match side {
                Side::Number(number) => sum.constant += share * number,
                Side::Cell(cell) => {
                    let groups = self.groups(cell);
                    if groups.is_empty() || groups.iter().any(|g| self.numbers(*g).is_empty()) {
                        return None;
                    }
                    for &group in &groups {
                        *sum.weights.entry(group).or_default() += share / groups.len() as f64;
                    }
                }
            }
        }
        Some(sum)
    }

    /// Returns both sides of the comparison.
    fn sides(&self) -> Option<(Contrast, Contrast)> {
        let first = |pairs: &[(Side, Side)]| self.mean_of(pairs.iter().map(|p| &p.0));
        let second = |pairs: &[(Side, Side)]| self.mean_of(pairs.iter().map(|p| &p.1));
        let (pairs, than) = (&self.claim.pairs, &self.claim.than);
        if than.is_empty() {
            return Some((first(pairs)?, second(pairs)?));
        }
        Some((first(pairs)?.minus(second(pairs)?), first(than)?.minus(second(than)?)))
    }

    /// Returns the contrast of the mean values of the groups.
    fn mean(&self, contrast: &Contrast) -> f64 {
        let mean = |group: usize| {
            let numbers = self.numbers(group);
            numbers.values().sum::<f64>() / numbers.len() as f64
        };
        contrast.weights.iter().map(|(g, w)| w * mean(*g)).sum::<f64>() + contrast.constant
    }

    /// Judges a difference: test scores by the bootstrap over replicas and segments, other values by Student's t over
    /// replicas with the same seed.
    fn difference(&self) -> Option<Judged> {
        let (first, second) = self.sides()?;
        let sides = (self.mean(&first), self.mean(&second));
        let all = first.minus(second);
        let (estimate, runs) = match self.value {
            Value::Test(test) if self.claim.distance_from.is_none() => self.resampled(&all, test),
            _ => self.paired(&all)?,
        };
        let interval = estimate.interval.unwrap_or((estimate.value, estimate.value));
        let verdict = Verdict::new(self.claim.expect, self.claim.margin(), estimate.value, interval);
        Some(Judged { sides, estimate, runs, verdict })
    }

    /// Estimates a contrast of scores on a test set from the statistics of its segments.
    fn resampled(&self, contrast: &Contrast, test: usize) -> (Estimate, usize) {
        let experiment = self.results.experiment;
        let term = |(group, weight): (&usize, &f64)| Term {
            weight: *weight,
            replicas: experiment.finished[*group].iter().map(|f| f.stats[test].as_slice()).collect(),
        };
        let terms: Vec<Term<'_>> = contrast.weights.iter().map(term).collect();
        let Question { samples, seed, .. } = Question::new(Test::Bootstrap);
        let runs = terms.iter().map(|t| t.replicas.len()).min().unwrap_or(0);
        (Estimate::bootstrap(&experiment.metric, &terms, -contrast.constant, samples, seed), runs)
    }

    /// Estimates a contrast from its value for each replica that all groups have.
    fn paired(&self, contrast: &Contrast) -> Option<(Estimate, usize)> {
        let numbers: Vec<(f64, BTreeMap<u32, f64>)> =
            contrast.weights.iter().map(|(g, w)| (*w, self.numbers(*g))).collect();
        let replicas: BTreeSet<u32> = numbers.iter().flat_map(|n| n.1.keys().copied()).collect();
        let one = |r: &u32| {
            let parts: Option<Vec<f64>> = numbers.iter().map(|(w, n)| n.get(r).map(|x| w * x)).collect();
            parts.map(|p| p.iter().sum::<f64>() + contrast.constant)
        };
        let values: Vec<f64> = replicas.iter().filter_map(one).collect();
        Some((Estimate::student(&values)?, values.len()))
    }

    /// Judges the ratio of two standard deviations by F; `None` with one replica, which has no deviation.
    fn spread(&self, spread: Spread) -> Option<Judged> {
        let (Side::Cell(first), Side::Cell(second)) = &self.claim.pairs[0] else { return None };
        let of = |cell: &str| -> Vec<Vec<f64>> {
            self.groups(cell).iter().map(|g| self.numbers(*g).into_values().collect()).collect()
        };
        let (first, second) = (of(first), of(second));
        let runs = first.iter().chain(&second).map(Vec::len).min()?;
        let one = match spread {
            Spread::Replicas => Variance::within(&first)?,
            Spread::Cells => Variance::between(&first)?,
        };
        let other = Variance::within(&second)?;
        let estimate = Estimate::ratio(one, other);
        let (low, high) = estimate.interval.unwrap_or((estimate.value, estimate.value));
        let verdict = Verdict::new(self.claim.expect, 0.0, estimate.value - 1.0, (low - 1.0, high - 1.0));
        Some(Judged { sides: (one.value.sqrt(), other.value.sqrt()), estimate, runs, verdict })
    }
}

impl Judged {
    /// Returns the verdict in words, with a remark if it rests on one run, or only on a sign because replicas do not
    /// differ.
    fn words(&self, claim: &ClaimSpec) -> String {
        let word = self.verdict.text(claim.expect);
        match (self.runs, self.estimate.interval) {
            (1, _) => format!("{word} (one run)"),
            (_, None) => format!("{word} (by sign)"),
            _ => word.to_owned(),
        }
    }

    /// Returns the columns "ours" to "p".
    fn columns(&self, claim: &ClaimSpec, value: &Value) -> [String; 4] {
        let plain = |x: f64| if claim.than.is_empty() { value.format(x) } else { value.format_signed(x) };
        let deviation = |x: f64| format!("{x:.3}");
        let factor = |x: f64| if x.is_infinite() { "× ∞".to_owned() } else { format!("× {x:.2}") };
        let (side, change): (&dyn Fn(f64) -> String, &dyn Fn(f64) -> String) = if claim.spread.is_some() {
            (&deviation, &factor)
        } else {
            (&plain, &|x| value.format_signed(x))
        };
        let interval = self.estimate.interval;
        [
            format!("{}, {}", side(self.sides.0), side(self.sides.1)),
            change(self.estimate.value),
            interval.map_or_else(String::new, |(low, high)| format!("[{}, {}]", change(low), change(high))),
            self.estimate.p_value.map_or_else(String::new, |p| format!("{p:.4}")),
        ]
    }
}

/// Returns the section of all claims in Markdown; empty without claims.
pub(super) fn section(claims: &[ClaimSpec], judged: &[Option<Judged>]) -> String {
    if claims.is_empty() {
        return String::new();
    }
    let head = ["", "claim", "paper", "ours", "difference", "95 % interval", "p", "verdict"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (i, (claim, judged)) in claims.iter().zip(judged).enumerate() {
        let source = [&claim.source, &claim.paper].map(String::as_str);
        let source: Vec<&str> = source.into_iter().filter(|s| !s.is_empty()).collect();
        let paper = format!("{} {}", source.join(": "), claim.note);
        let mut row = vec![claim.label(i), claim.claim.clone(), paper.trim().to_owned()];
        let value = Value::parse(&claim.value);
        match judged.as_ref().zip(value.as_ref()) {
            Some((j, value)) => row.extend(j.columns(claim, value).into_iter().chain([j.words(claim)])),
            None => row.extend(["–", "", "", "", "no results"].map(str::to_owned)),
        }
        rows.push(row);
    }
    let count = |word: &str| {
        let held = |j: &Judged, c: &ClaimSpec| j.verdict.text(c.expect) == word;
        judged.iter().zip(claims).filter(|(j, c)| j.as_ref().is_some_and(|j| held(j, c))).count()
    };
    format!(
        "## Claims\n\nThe difference is that of the two means under “ours”, with its 95 % confidence interval and two-sided p-value: for test \
         scores by the bootstrap over seeds and segments (1,000 samples, Clark et al. 2011), for other values by Student's t over seeds, \
         for standard deviations (×) by F. Held: the interval agrees with the claim; not held: it contradicts the claim; no difference: \
         it allows both. By sign: replicas do not differ, so there is no interval. Intervals are not corrected for the number of claims.\n\n{}\n\
         {} held, {} not held, {} no difference.\n\n",
        pipes(&rows),
        count("held"),
        count("not held"),
        count("no difference"),
    )
}

/// Returns all claims as JSON, with the columns of their table.
pub(super) fn json(claims: &[ClaimSpec], judged: &[Option<Judged>]) -> Vec<Json> {
    let one = |(i, (claim, judged)): (usize, (&ClaimSpec, &Option<Judged>))| {
        let value = Value::parse(&claim.value);
        let columns = judged.as_ref().zip(value.as_ref()).map(|(j, value)| j.columns(claim, value));
        let estimate = judged.as_ref().map(|j| j.estimate);
        json!({
            "id": claim.label(i), "claim": claim.claim, "source": claim.source, "paper": claim.paper, "note": claim.note,
            "expect": claim.expect, "value": claim.value, "margin": claim.margin(), "spread": claim.spread,
            "first": judged.as_ref().map(|j| j.sides.0), "second": judged.as_ref().map(|j| j.sides.1),
            "difference": estimate.map(|e| e.value), "interval": estimate.and_then(|e| e.interval),
            "p_value": estimate.and_then(|e| e.p_value), "replicas": judged.as_ref().map(|j| j.runs),
            "columns": columns,
            "verdict": judged.as_ref().map_or_else(|| "no results".to_owned(), |j| j.words(claim)),
        })
    };
    claims.iter().zip(judged).enumerate().map(one).collect()
}
