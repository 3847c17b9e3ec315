//! `luthier tune`.

mod batch;
mod input;
mod mert;
mod mira;
mod online;

pub(crate) use mert::{SmoothName, odd};

use super::{
    Common, Done,
    losses::{AproFlags, ProFlags, RiskFlags, SoftmaxFlags, XbleuFlags},
    write_out,
};
use crate::{
    talk::{Talk, thousands},
    world,
};
use clap::Subcommand;
use input::{Input, load};
use luthier::{
    core::Error,
    io::Settings,
    metric::{Metric, PlusOne, Tokenizer},
    tune::{
        Event, Job, Learner, Outcome, RunDir, Schedule,
        recipes::{RECIPES, Recipe},
        run as tune,
    },
};
use serde_json::json;
use std::{path::Path, process::ExitCode, sync::Arc};

/// Learns weights. The same command again goes on from where it was stopped.
#[derive(Debug, clap::Args)]
#[command(subcommand_value_name = "ALGORITHM", subcommand_help_heading = "Algorithms")]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true, after_help = metrics_table())]
pub(crate) struct Args {
    /// List the algorithms with their papers.
    #[arg(long)]
    list: bool,
    #[command(subcommand)]
    algorithm: Option<Algorithm>,
}

#[derive(Debug, Subcommand)]
enum Algorithm {
    /// Minimum error rate training: exact line searches on the corpus score, with restarts (Och 2003).
    Mert(Box<mert::Args>),
    /// Pairwise ranking of sampled candidates by logistic regression (Hopkins and May 2011).
    Pro(Box<batch::Args<ProFlags>>),
    /// Ranking of all pairs at once, nothing random (Dreyer and Dong 2015).
    Apro(Box<batch::Args<AproFlags>>),
    /// Passive-aggressive steps: from fear to hope, from guess to surrogate, or to oracles (Cherry and Foster 2012; Arun and
    /// Koehn 2007; Watanabe 2012).
    Mira(Box<mira::Args>),
    /// Averaged perceptron from guess to surrogate, online (Arun and Koehn 2007).
    Perceptron(Box<online::PerceptronArgs>),
    /// Online rank optimisation, and with --optimized O-ORO (Watanabe 2012).
    Oro(Box<online::OroArgs>),
    /// Likelihood of the oracles among all candidates (Watanabe 2012).
    Softmax(Box<batch::Args<SoftmaxFlags>>),
    /// BLEU of expected n-gram counts (Rosti et al. 2010, 2011).
    Xbleu(Box<batch::Args<XbleuFlags>>),
    /// Expected sentence score (Smith and Eisner 2006).
    Risk(Box<batch::Args<RiskFlags>>),
}

/// Which algorithm works with which metric.
fn metrics_table() -> String {
    let line = |r: &Recipe| format!("  {:<10} {:<5} {}\n", r.name, r.metrics, r.why);
    format!("Metrics:\n{}", RECIPES.iter().map(line).collect::<String>())
}

pub(crate) fn run(args: Args, common: &Common, talk: Talk) -> Done {
    match args.algorithm {
        Some(Algorithm::Mert(args)) => mert::run(&args, common, talk),
        Some(Algorithm::Pro(args)) => batch::run(&args, common, talk),
        Some(Algorithm::Apro(args)) => batch::run(&args, common, talk),
        Some(Algorithm::Mira(args)) => mira::run(&args, common, talk),
        Some(Algorithm::Perceptron(args)) => online::perceptron(&args, common, talk),
        Some(Algorithm::Oro(args)) => online::oro(&args, common, talk),
        Some(Algorithm::Softmax(args)) => batch::run(&args, common, talk),
        Some(Algorithm::Xbleu(args)) => batch::run(&args, common, talk),
        Some(Algorithm::Risk(args)) => batch::run(&args, common, talk),
        None => {
            let lines: String =
                RECIPES.iter().map(|r| format!("{:<10} {} ({})\n", r.name, r.summary, r.paper)).collect();
            write_out(None, lines.as_bytes())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// From references to a learner.
type MakeLearner<'a> = Box<dyn FnOnce(&Arc<Vec<Vec<String>>>) -> Box<dyn Learner> + 'a>;
/// From the outcome and the mean length of lists to words.
type Remarks<'a> = Box<dyn Fn(&Outcome, usize) -> Vec<String> + 'a>;

/// What an algorithm adds to the common part.
struct Plan<'a> {
    name: &'a str,
    /// Made once the references are known.
    learner: MakeLearner<'a>,
    /// Everything of its own that decides the result.
    settings: Settings,
    /// In which order things happen, with a decoder.
    schedule: Schedule,
    /// Whether it learns weights of sparse features.
    sparse: bool,
    /// How sentence BLEU is smoothed.
    plus_one: PlusOne,
    /// Edges for each word of the forests that it learns from; none for lists.
    density: Option<usize>,
    /// Features that were named in settings, and must exist.
    mentioned: Vec<String>,
    /// Words about the weights that came out, and about lists of that length.
    remarks: Remarks<'a>,
}

/// Searches in forests go by BLEU, over the decoder's tokens.
fn only_bleu(name: &str, metric: &Metric) -> Result<(), Error> {
    match metric.as_bleu() {
        Some(bleu) if bleu.tokenize == Tokenizer::None => Ok(()),
        Some(_) => Err(Error::new(format!(
            "{name} --on forest works on the decoder's tokens, so BLEU must be tokenize=none"
        ))
        .hint("use --on nbest, or mert, which takes any metric")),
        None => Err(Error::new(format!(
            "{name} --on forest searches forests by n-grams, so the metric must be BLEU"
        ))
        .hint("use --on nbest, or mert, which takes any metric")),
    }
}

/// Reads, runs the loop, and tells the result.
fn go(input: &Input, metric: &Metric, mut plan: Plan<'_>, talk: Talk) -> Done {
    plan.schedule.patience = input.patience();
    let fleet = world::fleet();
    let standard = std::env::args_os().any(|a| a == "-" || a.to_string_lossy().ends_with("=-"));
    let loaded = world::no_standard_input(standard).and_then(|()| load(input, metric, &plan, talk));
    let loaded = world::agree(loaded)?;
    let references = Arc::new(loaded.references);
    let learner = (plan.learner)(&references);
    let mut settings = Settings::default();
    settings.add("version", env!("CARGO_PKG_VERSION"));
    settings.add("algorithm", plan.name);
    settings.extend(plan.settings);
    settings.extend(loaded.settings);
    world::same(&settings)?;
    if !fleet.is_alone() {
        let n = fleet.0.size();
        talk.say(&format!("{n} processes; if one is lost all end, and the same command goes on"));
        let shards = plan.schedule.online.as_ref().map_or(n, |b| b.shards);
        if shards < n {
            talk.warn(&format!("{shards} of {n} processes have a shard to learn from: see --shards"));
        }
    }
    let mut dir = RunDir::open(&input.run, settings, references, fleet)?;
    if dir.stopped().is_some() {
        talk.say(&format!("{} was finished before", input.run.display()));
    }
    let mut last = None;
    let units = match plan.density {
        None => Units::Candidates,
        Some(_) if plan.schedule.accumulate => Units::Edges,
        Some(_) => Units::FreshEdges,
    };
    let mut show = |event: &Event| {
        last = Some(event.clone());
        tell(event, metric, units, talk);
    };
    let source = loaded.source.as_ref();
    let bar = plan.schedule.online.as_ref().and_then(|_| talk.bar("segment {pos} of {len}"));
    let progress = bar.map(|bar| move |done: usize, all: usize| bar.show(done as u32, all as u32, ""));
    let job = Job {
        source,
        select: loaded.select.as_deref(),
        test: loaded.test.as_deref(),
        learner: &*learner,
        schedule: &plan.schedule,
        metric,
        initial: &loaded.initial,
        progress: progress.as_ref().map(|p| p as &(dyn Fn(usize, usize) + Sync)),
    };
    let outcome = match tune(&job, &mut dir, &fleet, &mut show) {
        Ok(outcome) => outcome,
        Err(e) => {
            // A decoder's log is worth keeping; a run on files that has not begun is not.
            if source.is_fixed() {
                dir.discard();
            }
            return Err(e.into());
        }
    };
    let length = last.as_ref().map_or(0, |e| e.candidates) / source.segments().max(1) as usize;
    for remark in (plan.remarks)(&outcome, length) {
        talk.warn(&remark);
    }
    warn(&job, &outcome, last.as_ref(), &input.run, talk);
    let signature = metric.signature(loaded.reference_count, "");
    let text = if input.json {
        result_json(plan.name, &outcome, metric, &signature)
    } else {
        let test = outcome.test.map_or(String::new(), |t| format!(", test {:.2}", metric.shown(t)));
        format!(
            "{}{} {:.2} -> {:.2}{test} ({signature})\nweights in {}\n",
            if job.select.is_some() { "selection " } else { "" },
            metric.name(),
            metric.shown(outcome.initial),
            metric.shown(outcome.score),
            input.run.join("best.txt").display()
        )
    };
    world::last(|| {
        input.write_moses_ini(&outcome.weights, talk)?;
        write_out(None, text.as_bytes())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What may not be meant about the weights that came out.
fn warn(job: &Job<'_>, outcome: &Outcome, last: Option<&Event>, run: &Path, talk: Talk) {
    let metric = job.metric;
    if let Some(last) = last.filter(|e| e.iteration > 0 && outcome.iteration == 0)
        && last.select.unwrap_or(last.score) < outcome.score
    {
        talk.warn(&format!(
            "what was learned scores {:.2}, less than the initial weights, which are kept; it is in {}",
            metric.shown(last.select.unwrap_or(last.score)),
            run.join(format!("weights/{:03}.txt", last.iteration)).display()
        ));
    }
    if job.schedule.online.is_some() && !job.source.is_fixed() && job.select.is_none() {
        talk.say("without --select-source the last weights are taken, whatever they score");
        if outcome.score < outcome.initial {
            talk.warn("they score less than the initial ones, which are in weights/000.txt");
        }
    }
    if let Some(ratio) = outcome.length_ratio.filter(|r| !(0.95..=1.05).contains(r)) {
        talk.warn(&format!(
            "the output is {ratio:.3} times as long as the references: a feature for length may help"
        ));
    }
}

/// What is learned from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Units {
    Candidates,
    /// Of forests that are joined.
    Edges,
    /// Of forests that are new every time.
    FreshEdges,
}

/// `iteration 0  BLEU 39.05  length 0.985  70,992 candidates (70,992 new)  change 0.0521  2.3 s`
fn tell(event: &Event, metric: &Metric, units: Units, talk: Talk) {
    if !event.constant.is_empty() {
        let names = event.constant.join(", ");
        talk.warn(&format!(
            "{names}: the same for all candidates of each segment, so the weight cannot matter"
        ));
    }
    let mut line =
        format!("iteration {}  {} {:.2}", event.iteration, metric.name(), metric.shown(event.score));
    let parts = [("select", event.select), ("test", event.test), ("surrogate", event.surrogate)];
    for (name, score) in parts {
        if let Some(score) = score {
            line += &format!("  {name} {:.2}", metric.shown(score));
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
    if let Some(change) = event.change {
        line += &format!("  change {change:.4}");
    }
    talk.say(&(line + &format!("  {:.1} s", event.seconds)));
    if let Some(note) = &event.note {
        talk.warn(note);
    }
}

fn result_json(name: &str, outcome: &Outcome, metric: &Metric, signature: &str) -> String {
    let weights: serde_json::Map<_, _> =
        outcome.weights.iter().map(|(n, v)| (n.to_owned(), json!(v))).collect();
    let value = json!({
        "algorithm": name,
        "iteration": outcome.iteration,
        "score": metric.shown(outcome.score),
        "initial": metric.shown(outcome.initial),
        "test": outcome.test.map(|t| metric.shown(t)),
        "signature": signature,
        "weights": weights,
        "stop": outcome.stop.text(),
    });
    format!("{value}\n")
}

/// Understands the metric's name.
fn metric_of(input: &Input) -> Result<Metric, Error> {
    input.metric.parse().map_err(|e| Error::new(format!("{e}")))
}
