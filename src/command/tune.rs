//! `luthier tune`.

mod input;
mod show;

use super::{
    Common, Done,
    recipes::{RecipeInput, WithRecipe},
    write_out,
};
use crate::{
    launch,
    talk::{Talk, thousands},
};
use input::{Input, Loaded, load};
use luthier::{
    core::{Error, Progress},
    metric::Metric,
    tune::{
        Event, Fleet, Job, Outcome, RunDir, RunSpec, RunView, SourceKind,
        mert::Certificate,
        recipe::{Context, Recipe, RecipeInfo, Tuner},
        run as tune,
    },
};
use serde_json::json;
use show::Units;
use std::{process::ExitCode, sync::Arc};

/// Learn weights from n-best lists, or with a decoder in the loop.
///
/// Each algorithm has its own flags: `luthier tune mert -h`. Re-run the same command to resume an interrupted run.
#[derive(Debug, clap::Args)]
#[command(subcommand_value_name = "ALGORITHM", subcommand_help_heading = "Algorithms")]
#[command(after_long_help = metrics_table())]
pub(crate) struct Args {
    /// List the algorithms with their papers.
    #[arg(long)]
    list: bool,
    #[command(subcommand)]
    algorithm: Option<WithRecipe<Input>>,
}

impl RecipeInput for Input {}

/// The metrics of each algorithm.
fn metrics_table() -> String {
    let line = |r: Recipe| {
        let RecipeInfo { name, metrics, note, .. } = r.info();
        format!("  {name:<10} {metrics:<5} {note}\n")
    };
    format!(
        "Supported metrics, and how each algorithm uses them:\n{}",
        Recipe::all().into_iter().map(line).collect::<String>()
    )
}

pub(crate) fn run(args: &Args, common: &Common, talk: Talk) -> Done {
    if let Some(WithRecipe { recipe, input }) = &args.algorithm {
        if args.list {
            return Err(Error::new("--list and an algorithm exclude each other")
                .hint("leave one of them out")
                .into());
        }
        return execute(recipe, input, common, talk);
    }
    if !args.list {
        return Err(super::mistakes::no_algorithm(&super::command()).into());
    }
    if common.json {
        let all: Vec<&RecipeInfo> = Recipe::all().iter().map(Recipe::info).collect();
        let entry = |i: &&RecipeInfo| json!({"name": i.name, "summary": i.summary, "papers": i.papers, "metrics": i.metrics});
        super::print_json(&all.iter().map(entry).collect())?;
        return Ok(ExitCode::SUCCESS);
    }
    let line = |r: Recipe| {
        let RecipeInfo { name, summary, papers, .. } = r.info();
        format!("{name:<10} {summary} ({papers})\n")
    };
    write_out(None, Recipe::all().into_iter().map(line).collect::<String>().as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Everything read and checked before any work begins.
struct Prepared {
    tuner: Tuner,
    loaded: Loaded,
    references: Arc<Vec<Vec<String>>>,
    /// References per segment; none where only statistics are known.
    reference_count: Option<usize>,
    spec: RunSpec,
}

/// Reads the inputs of a run and resolves its settings.
fn prepare(
    recipe: &Recipe,
    input: &Input,
    metric: &Metric,
    seed: u64,
    talk: Talk,
) -> Result<Prepared, Error> {
    if input.has_selection_set() && recipe.select_share().is_some_and(|share| share > 0.0) {
        return Err(
            Error::new("--select-share has no effect with a selection set").hint("leave one of them out")
        );
    }
    let (files, rows) = input.read_references(metric, talk)?;
    let references = Arc::new(input::by_segment(&files)?);
    let only_statistics = input.has_statistics();
    let source = match input.kind() {
        SourceKind::Decoder if recipe.forest_density().is_some() => SourceKind::Forests,
        kind => kind,
    };
    let known = (!only_statistics).then(|| references.clone());
    let tuner = recipe.build(&Context { metric, seed, source, references: known })?;
    let reference_count = (!only_statistics).then_some(files.len());
    let mut spec = RunSpec::new(tuner.recipe.clone(), &input.metric.name(metric), seed);
    spec.signature = metric.signature(reference_count, "");
    let loaded = load(input, metric, (&files, rows), &references, &mut spec, talk)?;
    Ok(Prepared { tuner, loaded, references, reference_count, spec })
}

/// Reads, runs the loop, and prints the result.
fn execute(recipe: &Recipe, input: &Input, common: &Common, talk: Talk) -> Done {
    let (metric, seed) = (input.metric.parse()?, common.seed.unwrap_or(1));
    let fleet = launch::fleet();
    let standard = std::env::args_os().any(|a| a == "-" || a.to_string_lossy().ends_with("=-"));
    let prepared =
        launch::no_standard_input(standard).and_then(|()| prepare(recipe, input, &metric, seed, talk));
    let Prepared { tuner, loaded, references, reference_count, spec } = launch::agree(prepared)?;
    launch::same(&spec)?;
    show::processes(&tuner.schedule, fleet, talk);
    talk.detail(luthier::io::to_toml(&spec)?.trim_end());
    let mut dir = RunDir::open(&input.run, spec, references, fleet)?;
    if let Some(stop) = dir.stopped() {
        talk.say(&format!("{} is already complete: {}", input.run.display(), stop.text()));
    }
    let mut last = None;
    let units = Units::of(&tuner);
    let line = talk.progress(&metric);
    let report = |step: &luthier::core::Step| line.show(step);
    let job = Job {
        source: &*loaded.source,
        select: loaded.select.as_deref(),
        test: loaded.test.as_deref(),
        learner: &*tuner.learner,
        schedule: &tuner.schedule,
        metric: &metric,
        initial: &loaded.initial,
        progress: Progress::new(&report),
    };
    for caution in tuner.recipe.cautions(&loaded.initial) {
        talk.warn(&caution);
    }
    let held_out = job.held_out().map(|(held, _)| held.len());
    show::selection(&job, held_out, talk);
    let mut on_event = |event: &Event| {
        line.clear();
        last = Some(event.clone());
        show::event(event, &metric, units, talk);
    };
    let outcome = match tune(&job, &mut dir, &fleet, &mut on_event) {
        Ok(outcome) => outcome,
        Err(e) => {
            // A decoder's log is worth keeping; a run on files that has not begun is not.
            if job.source.kind() == SourceKind::Fixed {
                dir.discard();
            }
            return Err(e.into());
        }
    };
    let length = last.as_ref().map_or(0, |e| e.candidates) / job.source.segments().max(1) as usize;
    for remark in tuner.recipe.remarks(&outcome, length) {
        talk.warn(&remark);
    }
    let selected = job.select.is_some() || held_out.is_some();
    show::warnings(&job, &outcome, (last.as_ref(), selected), &input.run, talk);
    let text = result(
        input,
        common.json,
        &tuner.recipe,
        &outcome,
        (&metric, reference_count),
        (selected, held_out.is_some()),
        dir.events().find_map(|e| e.certificate.as_ref()),
    );
    launch::last(|| {
        input.write_moses_ini(&outcome.weights, talk)?;
        write_out(None, text.as_bytes())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The result of a run as it is printed.
fn result(
    input: &Input,
    json: bool,
    recipe: &Recipe,
    outcome: &Outcome,
    (metric, reference_count): (&Metric, Option<usize>),
    (selected, held_out): (bool, bool),
    certificate: Option<&Certificate>,
) -> String {
    let signature = metric.signature(reference_count, "");
    let set = match (selected, held_out) {
        (true, true) => "held-out",
        (true, false) => "selection",
        (false, _) => "tuning",
    };
    if json {
        let weights: serde_json::Map<_, _> =
            outcome.weights.iter().map(|(n, v)| (n.to_owned(), json!(v))).collect();
        let mut value = json!({
            "algorithm": recipe.info().name,
            "iteration": outcome.iteration,
            "set": set,
            "score": metric.display_score(outcome.score),
            "initial": metric.display_score(outcome.initial),
            "test": outcome.test.map(|t| metric.display_score(t)),
            "initial_test": outcome.initial_test.map(|t| metric.display_score(t)),
            "signature": signature,
            "recipe": recipe,
            "weights": weights,
            "stop": outcome.stop.text(),
        });
        if let Some(c) = certificate {
            value["certificate"] = json!({
                "score": metric.display_score(c.score),
                "bound": metric.display_score(c.bound),
                "optimal": c.optimal,
                "explored": c.explored,
                "programs": c.programs,
            });
        }
        return format!("{value}\n");
    }
    let scores = |initial: f64, tuned: f64| {
        format!(
            "{} {:.2} -> {:.2}",
            metric.name(),
            metric.display_score(initial),
            metric.display_score(tuned)
        )
    };
    let own = scores(outcome.initial, outcome.score);
    let test = match (outcome.initial_test, outcome.test) {
        (Some(initial), Some(tuned)) => format!(", test {}", scores(initial, tuned)),
        _ => String::new(),
    };
    let weights = RunView::best_path(&input.run);
    let proved = certificate.map(|c| certified(c, metric)).unwrap_or_default();
    format!("{set} {own}{test} ({signature})\n{proved}weights in {}\n", weights.display())
}

/// What is known about the highest score on the tuning lists, as it is printed.
fn certified(certificate: &Certificate, metric: &Metric) -> String {
    let programs = thousands(certificate.programs as usize);
    let (what, why) = match certificate {
        Certificate { optimal: true, .. } => ("optimal", format!("{programs} linear programs")),
        Certificate { explored: true, .. } => {
            ("bound", format!("not closed after {programs} linear programs"))
        }
        _ => ("oracle bound", "not a measure of search error".to_owned()),
    };
    let bound = metric.display_score(certificate.bound);
    format!("{what}: no weights have a better {} than {bound:.2} on these lists ({why})\n", metric.name())
}
