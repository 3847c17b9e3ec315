//! Estimates with 95 % confidence intervals of differences between systems that were tuned several times, so that both
//! the optimiser's randomness and the choice of test segments count (Clark et al. 2011).

use super::{BATCH, Generator, Metric, distribution, mean64, one_sample, p_value, totals};
use rayon::prelude::*;

/// A system of a contrast: its weight and its replicas, which differ only in the seed of the optimiser.
#[derive(Debug, Clone)]
pub struct Term<'a> {
    /// Factor of the mean score of the system; 1 and −1 for the difference of two systems.
    pub weight: f64,
    /// Statistics of each replica, [`Metric::width`] numbers per segment; at least one replica.
    pub replicas: Vec<&'a [f32]>,
}

/// Variance of a sample with its degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Variance {
    /// Mean squared deviation: the sum of squares over the degrees of freedom.
    pub value: f64,
    /// Degrees of freedom, at least 1.
    pub degrees: u32,
}

impl Variance {
    /// Returns the pooled variance within groups; `None` if no group has two values.
    pub fn within(groups: &[Vec<f64>]) -> Option<Self> {
        let squares: f64 = groups.iter().map(|g| squares(g)).sum();
        let degrees: u32 = groups.iter().map(|g| g.len().saturating_sub(1) as u32).sum();
        (degrees > 0).then(|| Variance { value: squares / f64::from(degrees), degrees })
    }

    /// Returns the variance between groups as in a one-way analysis of variance: without any effect of the groups, it
    /// estimates the same quantity as the variance within them. `None` for fewer than two groups.
    pub fn between(groups: &[Vec<f64>]) -> Option<Self> {
        let all = groups.concat();
        let within: f64 = groups.iter().map(|g| squares(g)).sum();
        let degrees =
            groups.iter().filter(|g| !g.is_empty()).count().checked_sub(1).filter(|&d| d > 0)? as u32;
        Some(Variance { value: (squares(&all) - within).max(0.0) / f64::from(degrees), degrees })
    }
}

/// Returns the sum of squared deviations from the mean.
fn squares(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    values.iter().map(|v| (v - mean) * (v - mean)).sum()
}

/// An estimated difference or ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Observed difference or ratio.
    pub value: f64,
    /// 95 % confidence interval; `None` if the data do not vary or there is one observation.
    pub interval: Option<(f64, f64)>,
    /// Two-sided p-value of no difference, or of the ratio 1; `None` without an interval.
    pub p_value: Option<f64>,
}

impl Estimate {
    /// Returns Σ weight × mean score over replicas, minus `constant`, on the scale of [`Metric::display_score`], by the
    /// bootstrap over replicas and segments: each sample draws the segments with replacement, the same for all
    /// systems, and the replicas of each system with replacement. The interval consists of the percentiles 2.5 and
    /// 97.5; p = 2 min(P(d ≤ 0), P(d ≥ 0)) with P = (c + 1)/(n + 1). All replicas must have the same segments, at
    /// least one. Costs samples × replicas × segments × statistics additions.
    ///
    /// ```
    /// use luthier_metric::{Metric, significance::{Estimate, Term}};
    /// // WER: edits and length of each of 100 segments; the first system makes fewer errors with every seed.
    /// let metric: Metric = "wer".parse()?;
    /// let run = |errors: [f32; 4]| (0..100).flat_map(|i| [errors[i % 4], 10.0]).collect::<Vec<f32>>();
    /// let (a, b) = ([run([1.0, 0.0, 1.0, 2.0]), run([1.0, 1.0, 1.0, 2.0])], run([3.0, 2.0, 4.0, 3.0]));
    /// let terms = [
    ///     Term { weight: 1.0, replicas: vec![&a[0], &a[1]] },
    ///     Term { weight: -1.0, replicas: vec![&b] },
    /// ];
    /// let found = Estimate::bootstrap(&metric, &terms, 0.0, 1000, 12345);
    /// assert_eq!(found.value, (10.0 + 12.5) / 2.0 - 30.0);
    /// assert!(found.interval.is_some_and(|(_, high)| high < 0.0));
    /// # Ok::<(), luthier_metric::Error>(())
    /// ```
    pub fn bootstrap(metric: &Metric, terms: &[Term<'_>], constant: f64, samples: usize, seed: u64) -> Self {
        let segments = terms[0].replicas[0].len() / metric.width();
        let mut generator = Generator::new(seed);
        let mut found: Vec<f64> = Vec::with_capacity(samples);
        while found.len() < samples {
            let n = (samples - found.len()).min(BATCH);
            let mut draw = |n: usize| (0..n).map(|_| generator.choice(n as u32)).collect::<Vec<u32>>();
            let drawn: Vec<Draw> = (0..n)
                .map(|_| Draw {
                    segments: draw(segments),
                    replicas: terms.iter().map(|t| draw(t.replicas.len())).collect(),
                })
                .collect();
            let batch = drawn.par_iter().map(|d| sampled(metric, terms, d) - constant);
            found.extend(batch.collect::<Vec<f64>>());
        }
        let score = |stats: &&[f32]| metric.display_score(metric.score(&totals(metric, stats)));
        let mean = |t: &Term<'_>| t.replicas.iter().map(score).sum::<f64>() / t.replicas.len() as f64;
        let value = terms.iter().map(|t| t.weight * mean(t)).sum::<f64>() - constant;
        found.sort_by(f64::total_cmp);
        let low = found.len() / 40;
        let count = |beyond: &dyn Fn(f64) -> bool| found.iter().filter(|d| beyond(**d)).count();
        let tail = count(&|d| d <= 0.0).min(count(&|d| d >= 0.0));
        Estimate {
            value,
            interval: Some((found[low], found[found.len() - low - 1])),
            p_value: Some((2.0 * p_value(tail, found.len())).min(1.0)),
        }
    }

    /// Returns the mean of observations with Student's t interval and test; `None` without observations. One
    /// observation, or several equal ones, give no interval.
    pub fn student(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let mean = mean64(values);
        let error = Variance::within(&[values.to_vec()])
            .filter(|v| v.value > 0.0)
            .map(|v| ((v.value / values.len() as f64).sqrt(), v.degrees));
        let half = error.map(|(e, degrees)| e * distribution::student_bound(0.05, degrees));
        Some(Estimate {
            value: mean,
            interval: half.map(|h| (mean - h, mean + h)),
            p_value: error.map(|(e, degrees)| distribution::student_p(mean / e, degrees)),
        })
    }

    /// Returns the ratio of two standard deviations with the interval and the two-sided test of F; 1 if both are 0. No
    /// interval if one of them is 0.
    pub fn ratio(first: Variance, second: Variance) -> Self {
        if first.value == 0.0 || second.value == 0.0 {
            let value = if first.value == second.value { 1.0 } else { (first.value / second.value).sqrt() };
            return Estimate { value, interval: None, p_value: None };
        }
        let (m, n) = (first.degrees, second.degrees);
        let f = first.value / second.value;
        let bound = |p: f64| (f / distribution::fisher_quantile(p, m, n)).sqrt();
        let below = distribution::fisher(f, m, n);
        Estimate {
            value: f.sqrt(),
            interval: Some((bound(0.975), bound(0.025))),
            p_value: Some(2.0 * below.min(1.0 - below)),
        }
    }
}

/// Random numbers of a bootstrap sample.
struct Draw {
    segments: Vec<u32>,
    /// Indices of replicas, by term.
    replicas: Vec<Vec<u32>>,
}

/// Returns the contrast on a bootstrap sample.
fn sampled(metric: &Metric, terms: &[Term<'_>], draw: &Draw) -> f64 {
    let mut value = 0.0;
    for (term, drawn) in terms.iter().zip(&draw.replicas) {
        let mut sum = 0.0;
        for (r, stats) in term.replicas.iter().enumerate() {
            let times = drawn.iter().filter(|&&d| d as usize == r).count();
            if times > 0 {
                sum += times as f64 * one_sample(metric, stats, &draw.segments);
            }
        }
        value += term.weight * metric.display_score(sum / drawn.len() as f64);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Statistics of BLEU for a system with varied matches, as a function of a seed.
    fn system(metric: &Metric, segments: usize, seed: u64) -> Vec<f32> {
        let mut random = Generator::new(seed);
        let mut stats = Vec::new();
        for _ in 0..segments {
            let length = 8 + random.choice(8);
            // Lengths of system and reference, then matches and totals by order.
            let mut row = vec![0f32; metric.width()];
            let words: Vec<String> = (0..length).map(|i| format!("w{i}")).collect();
            let said: Vec<String> = words
                .iter()
                .map(|w| if random.choice(4) == 0 { "x".to_owned() } else { w.clone() })
                .collect();
            let mut scratch = crate::Scratch::default();
            let prepared = metric.prepare(&[words.join(" ").as_str()], &mut scratch);
            let text = said.join(" ");
            metric.stats(&prepared, crate::Hypothesis { text: &text, columns: &[] }, &mut scratch, &mut row);
            stats.extend(row);
        }
        stats
    }

    /// The bootstrap against a direct computation: the same random numbers, but every sample as a text of its own whose
    /// statistics are summed in `f64`, for every drawn replica.
    #[test]
    fn replicas_and_segments() {
        let metric: Metric = "bleu".parse().unwrap();
        let (segments, samples, seed) = (30, 300, 7);
        let runs: Vec<Vec<f32>> = (0..5).map(|s| system(&metric, segments, s)).collect();
        let all: Vec<&[f32]> = runs.iter().map(Vec::as_slice).collect();
        let terms = [
            Term { weight: 1.0, replicas: all[..3].to_vec() },
            Term { weight: -1.0, replicas: all[3..].to_vec() },
        ];
        let found = Estimate::bootstrap(&metric, &terms, 0.5, samples, seed);
        let mut random = Generator::new(seed);
        let mut slow = Vec::new();
        for _ in 0..samples {
            let rows: Vec<u32> = (0..segments).map(|_| random.choice(segments as u32)).collect();
            let mut value = -0.5;
            for (weight, runs) in [(1.0, &runs[..3]), (-1.0, &runs[3..])] {
                for _ in 0..runs.len() {
                    let run = &runs[random.choice(runs.len() as u32) as usize];
                    let text: Vec<f32> = rows
                        .iter()
                        .flat_map(|&r| run[r as usize * metric.width()..][..metric.width()].to_vec())
                        .collect();
                    value += weight * metric.score(&totals(&metric, &text)) / runs.len() as f64;
                }
            }
            slow.push(value);
        }
        slow.sort_by(f64::total_cmp);
        let (low, high) = found.interval.unwrap();
        assert!((low - slow[7]).abs() < 1e-3 && (high - slow[292]).abs() < 1e-3, "{found:?}");
        let below = slow.iter().filter(|d| **d <= 0.0).count();
        let p = 2.0 * (below.min(samples - below) + 1) as f64 / (samples + 1) as f64;
        assert_eq!(found.p_value, Some(p.min(1.0)));
        let score = |r: &[f32]| metric.score(&totals(&metric, r));
        let direct = (0..3).map(|r| score(&runs[r])).sum::<f64>() / 3.0
            - (3..5).map(|r| score(&runs[r])).sum::<f64>() / 2.0
            - 0.5;
        assert!((found.value - direct).abs() < 1e-12);
    }

    /// Systems with equal output have the interval [0, 0] and p = 1; more seeds with different results widen the
    /// interval.
    #[test]
    fn equal_and_unstable_systems() {
        let metric: Metric = "bleu".parse().unwrap();
        let [a, b, c] = [1, 2, 3].map(|s| system(&metric, 40, s));
        let of = |first: Vec<&[f32]>, second: Vec<&[f32]>| {
            let terms = [Term { weight: 1.0, replicas: first }, Term { weight: -1.0, replicas: second }];
            Estimate::bootstrap(&metric, &terms, 0.0, 500, 1)
        };
        let same = of(vec![&a, &a], vec![&a]);
        assert_eq!((same.interval, same.p_value), (Some((0.0, 0.0)), Some(1.0)));
        let width = |e: Estimate| e.interval.map(|(low, high)| high - low).unwrap();
        assert!(width(of(vec![&a, &b, &c], vec![&a])) > 0.0);
        // The segments vary in the same way on both sides of `a` against `a`; the seeds of one side do not.
        assert!(width(of(vec![&a, &b, &c], vec![&a, &b, &c])) > width(same));
    }

    /// Student's interval of 1, 2, 3: mean 2, standard error √(1/3), and t = 4.3027 for two degrees of freedom.
    #[test]
    fn students_interval() {
        let found = Estimate::student(&[1.0, 2.0, 3.0]).unwrap();
        let (low, high) = found.interval.unwrap();
        let half = 4.302652729911275 * (1f64 / 3.0).sqrt();
        assert!((low - (2.0 - half)).abs() < 1e-9 && (high - (2.0 + half)).abs() < 1e-9, "{found:?}");
        let t = 2.0 / (1f64 / 3.0).sqrt();
        assert!((found.p_value.unwrap() - (1.0 - t / (2.0 + t * t).sqrt())).abs() < 1e-9, "{found:?}");
        assert_eq!(Estimate::student(&[]), None);
        for alone in [vec![2.5], vec![2.5, 2.5, 2.5]] {
            let expected = Estimate { value: 2.5, interval: None, p_value: None };
            assert_eq!(Estimate::student(&alone), Some(expected));
        }
    }

    /// Two groups with the means 1 and 4 and deviations ±1: within 4/2 = 2, between 2 × (1.5² + 1.5²) = 9.
    #[test]
    fn ratios_of_deviations() {
        let groups = [vec![0.0, 2.0], vec![3.0, 5.0]];
        let within = Variance::within(&groups).unwrap();
        let between = Variance::between(&groups).unwrap();
        assert_eq!((within.value, within.degrees, between.degrees), (2.0, 2, 1));
        assert!((between.value - 9.0).abs() < 1e-12);
        let found = Estimate::ratio(between, within);
        assert!((found.value - 4.5f64.sqrt()).abs() < 1e-12);
        // F(1, 2) is the square of t with 2 degrees of freedom; the two-sided test doubles its tail.
        let t = 4.5f64.sqrt();
        assert!((found.p_value.unwrap() - 2.0 * (1.0 - t / (2.0 + t * t).sqrt())).abs() < 1e-9, "{found:?}");
        let (low, high) = found.interval.unwrap();
        assert!(low < found.value && found.value < high && low < 1.0, "{found:?}");
        let none = Variance { value: 0.0, degrees: 2 };
        let infinite = Estimate { value: f64::INFINITY, interval: None, p_value: None };
        assert_eq!(Estimate::ratio(within, none), infinite);
        assert_eq!(Estimate::ratio(none, none).value, 1.0);
        assert_eq!((Variance::within(&[vec![1.0]]), Variance::between(&[vec![1.0]])), (None, None));
    }
}
