//! Progress lines of `tune`, and its warnings about the result.

use super::{Event, Fleet, Job, Metric, Outcome, SourceKind, Tuner};
use crate::talk::{Talk, thousands};
use luthier::tune::{HeldOut, HoldOut, RunView, Schedule, Stability, recipe::SELECT_SHARE};
use std::path::Path;

/// What a learner learns from, as it is counted on progress lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Units {
    /// Candidates of lists.
    Candidates,
    /// Edges of forests that are joined across iterations.
    Edges,
    /// Edges of forests that are new in every iteration.
    FreshEdges,
}

impl Units {
    pub(super) fn of(tuner: &Tuner) -> Self {
        match tuner.recipe.forest_density() {
            None => Units::Candidates,
            Some(_) if tuner.schedule.accumulate => Units::Edges,
            Some(_) => Units::FreshEdges,
        }
    }
}

/// How many processes work on the run, and whether all of them have something to do.
pub(super) fn processes(schedule: &Schedule, fleet: Fleet<'_>, talk: Talk) {
    if fleet.is_alone() {
        return;
    }
    let n = fleet.0.size();
    talk.say(&format!("{n} processes; if one is lost, all end: re-run the same command to resume"));
    let shards = schedule.online.as_ref().map_or(n, |b| b.shards);
    if shards < n {
        talk.warn(&format!(
            "only {shards} of {n} processes have a shard to learn from; give --shards {n} or more"
        ));
    }
}

/// Says which weights of online learning with a decoder are kept; `held_out` is the number of segments that are held out.
pub(super) fn selection(job: &Job<'_>, held_out: Option<usize>, talk: Talk) {
    let Some(batches) = job.schedule.online.as_ref().filter(|_| job.source.kind() != SourceKind::Fixed)
    else {
        return;
    };
    let n = job.source.segments() as usize;
    if let Some(held) = held_out {
        talk.say(&format!(
            "{held} of {} segments are held out to select the epoch (--select-share 0 learns from all of them)",
            thousands(n)
        ));
    } else if job.select.is_none() && batches.select_share > 0.0 {
        let few = format!(
            "{n} segments are too few to hold some out: the weights of the last epoch are kept (--select-source \
             gives a selection set)"
        );
        // A share that the user has given deserves a warning.
        if batches.select_share == SELECT_SHARE { talk.say(&few) } else { talk.warn(&few) }
    } else if job.select.is_none() {
        talk.say("no selection set (--select-source): the weights of the last epoch are kept");
    }
}

/// Warns about results that are probably not what was meant; `selected` tells whether a held-out set has selected the
/// weights.
pub(super) fn warnings(
    job: &Job<'_>,
    outcome: &Outcome,
    (last, selected): (Option<&Event>, bool),
    run: &Path,
    talk: Talk,
) {
    let metric = job.metric;
    if let Some(last) = last.filter(|e| e.iteration > 0 && outcome.iteration == 0) {
        let score = last.select.unwrap_or(last.score);
        let how = if score < outcome.score { "less than" } else { "the same as" };
        talk.warn(&format!(
            "no learned weights score higher than the initial ones, which are kept; those of the last iteration score \
             {:.2}, {how} the initial ones, and are in {}",
            metric.display_score(score),
            RunView::weights_path(run, last.iteration).display()
        ));
    }
    let online = job.schedule.online.is_some() && job.source.kind() != SourceKind::Fixed;
    if online && !selected && outcome.score < outcome.initial {
        let initial = RunView::weights_path(run, 0);
        talk.warn(&format!(
            "the last weights score less than the initial ones, which are in {}",
            initial.display()
        ));
    }
    if let Some(ratio) = outcome.length_ratio.filter(|r| !(0.95..=1.05).contains(r)) {
        talk.warn(&format!(
            "the output has {ratio:.3} times the length of the references: a length feature may help"
        ));
    }
}

/// `iteration 0  BLEU 39.05  length 0.985  70,992 candidates (70,992 new)  change 0.0521  2.3 s`
pub(super) fn event(event: &Event, metric: &Metric, units: Units, talk: Talk) {
    if !event.constant.is_empty() {
        let names = event.constant.join(", ");
        talk.warn(&format!("{names}: constant within each segment, so the weight has no effect"));
    }
    let of = if event.running { "guesses " } else { "" };
    let score = metric.display_score(event.score);
    let mut line = format!("iteration {}  {of}{} {score:.2}", event.iteration, metric.name());
    let parts = [("select", event.select), ("test", event.test), ("surrogate", event.surrogate)];
    for (name, score) in parts {
        if let Some(score) = score {
            line += &format!("  {name} {:.2}", metric.display_score(score));
        }
    }
    if let Some(ratio) = event.length_ratio {
        line += &format!("  length {ratio:.3}");
    }
    let name = if units == Units::Candidates { "candidates" } else { "edges" };
    line += &format!("  {} {name}", thousands(event.candidates));
    match event.features {
        Some(features) => line += &format!("  {} weights", thousands(features)),
        None if units == Units::FreshEdges => {}
        None => line += &format!(" ({} new)", thousands(event.new)),
    }
    if let Some(rho) = event.rho {
        line += &format!("  rho {rho:.3}");
    }
    if let Some(psi) = event.psi {
        line += &format!("  psi {psi:.3}");
    }
    if let Some(l1) = event.l1 {
        line += &format!("  L1 {l1:.3e}");
    }
    if let Some(change) = event.change {
        line += &format!("  change {change:.4}");
    }
    talk.say(&(line + &format!("  {:.1} s", event.seconds)));
    if let Some(note) = &event.note {
        talk.warn(note);
    }
}

/// Scores on segments that were held out, as they are printed.
pub(super) fn held_out(scores: &HeldOut, metric: &Metric) -> String {
    let HeldOut { initial, score, interval, p_value, segments, .. } = scores;
    let name = metric.name();
    let all = scores.part_of.len();
    let line = format!("held-out {name} {initial:.2} -> {score:.2} ± {interval:.2}, p = {p_value:.4}");
    let HoldOut::Folds(k) = scores.plan else {
        return format!("{line} ({} of {} segments)\n", thousands(*segments), thousands(all));
    };
    let list = |value: fn(&luthier::tune::PartScore) -> f64| {
        scores.parts.iter().map(|p| format!("{:.2}", value(p))).collect::<Vec<_>>().join(" ")
    };
    format!(
        "{line} ({k} folds; weights of {}/{k} of the segments)\nfolds: tuning {}; held-out {}\n",
        k - 1,
        list(|p| p.tuning),
        list(|p| p.score)
    )
}

/// How much weights and score vary between resamples, as a table.
pub(super) fn stability(found: &Stability, metric: &Metric) -> String {
    let what = if found.confidence { "95 % interval" } else { "95 % stability" };
    let width = found.features.iter().map(|f| f.name.chars().count()).max().unwrap_or(0).max(7);
    let anchor = &found.anchor;
    let mut text = format!(
        "weights relative to that of {anchor}, {} resamples of the segments\n{:width$}  {:>9}  {what:>20}  same sign\n",
        thousands(found.samples as usize),
        "feature",
        "weight",
    );
    for f in &found.features {
        let range = format!("{} to {}", fixed(f.low), fixed(f.high));
        let share = format!("{:.0} %", 100.0 * f.same_sign);
        text += &format!("{:width$}  {:>9}  {range:>20}  {share:>9}\n", f.name, fixed(f.relative));
    }
    let open = found.undetermined();
    if !open.is_empty() {
        text += &format!("perhaps irrelevant (the interval contains 0): {}\n", open.join(", "));
    }
    if found.without_anchor > 0 {
        text += &format!("{} resamples without a weight for {anchor} are left out\n", found.without_anchor);
    }
    let [low, high] = found.score;
    text + &format!("tuning {} on 95 % of the resamples: {low:.2} to {high:.2}\n", metric.name())
}

/// A number with four decimals; 0 without a sign.
fn fixed(x: f64) -> String {
    let text = format!("{x:.4}");
    if text == "-0.0000" { "0.0000".to_owned() } else { text }
}

/// A time as it is printed: `40 s`, `12 min`, `3.5 h`.
pub(super) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}
