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
use input::{Input, Loaded, RawText, load};
use luthier::{
    core::{Error, Progress, SegmentId, Weights},
    metric::{Metric, Tokenizer},
    tune::{
        Bootstrap, Event, FixedLists, Fleet, Goal, HeldOut, HeldOutPart, HoldOut, Job, Learned, Outcome,
        RunDir, RunSpec, RunView, Source, SourceKind, Stability, Subset, check_resampling,
        mert::Certificate,
        recipe::{Context, Recipe, RecipeInfo, Tuner},
        run as tune, validate,
    },
};
use serde_json::json;
use show::Units;
use std::{path::Path, process::ExitCode, sync::Arc, time::Instant};

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
    (metric, raw): (&Metric, Option<&RawText>),
    seed: u64,
    talk: Talk,
) -> Result<Prepared, Error> {
    if input.has_selection_set() && recipe.select_share().is_some_and(|share| share > 0.0) {
        return Err(
            Error::new("--select-share has no effect with a selection set").hint("leave one of them out")
        );
    }
    let (files, rows) = input.read_references((metric, raw), talk)?;
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
    spec.signature = signature(metric, reference_count, raw);
    let loaded = load(input, (metric, raw), (&files, rows), &references, &mut spec, talk)?;
    Ok(Prepared { tuner, loaded, references, reference_count, spec })
}

/// Returns the signature of scores. Forests of a model that translates raw text are scored on the tokens of the model.
fn signature(metric: &Metric, reference_count: Option<usize>, raw: Option<&RawText>) -> String {
    let signature = metric.signature(reference_count, "");
    if raw.is_some_and(|raw| raw.as_tokens) {
        signature.replace("|tok:none", "|tok:model")
    } else {
        signature
    }
}

/// Reads, runs the loop, and prints the result.
fn execute(recipe: &Recipe, input: &Input, common: &Common, talk: Talk) -> Done {
    let raw = input.raw_text(recipe)?;
    // Raw text is tokenised as for published scores.
    let is_raw = raw.as_ref().is_some_and(|raw| !raw.as_tokens);
    let default = if is_raw { Tokenizer::V13a } else { Tokenizer::None };
    let (metric, seed) = (input.metric.parse_with(default)?, common.seed.unwrap_or(1));
    let fleet = launch::fleet();
    let standard = std::env::args_os().any(|a| a == "-" || a.to_string_lossy().ends_with("=-"));
    let prepared = launch::no_standard_input(standard)
        .and_then(|()| prepare(recipe, input, (&metric, raw.as_ref()), seed, talk));
    let prepared = launch::agree(prepared)?;
    launch::same(&prepared.spec)?;
    show::processes(&prepared.tuner.schedule, fleet, talk);
    talk.detail(luthier::io::to_toml(&prepared.spec)?.trim_end());
    for caution in prepared.tuner.recipe.cautions(&prepared.loaded.initial) {
        talk.warn(&caution);
    }
    let session = Session { recipe, input, metric: &metric, seed, prepared: &prepared, fleet, talk };
    if input.resamples().is_some() {
        check_resampling(session.source_kind())?;
    }
    let (mut run, held_out) = session.validated()?;
    let stability = session.resampled(&mut run)?;
    let text = if common.json {
        session.json(&run, held_out.as_ref(), stability.as_ref())
    } else {
        session.text(&run, held_out.as_ref(), stability.as_ref())
    };
    launch::last(|| {
        input.write_moses_ini(&run.outcome.weights, talk)?;
        write_out(None, text.as_bytes())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A tuning problem that has been read and checked.
struct Session<'a> {
    recipe: &'a Recipe,
    input: &'a Input,
    metric: &'a Metric,
    seed: u64,
    prepared: &'a Prepared,
    fleet: Fleet<'a>,
    talk: Talk,
}

/// A run that is about to begin.
struct Opened<'a> {
    tuner: Tuner,
    dir: RunDir,
    /// Segments to learn from; all if `None`.
    subset: Option<&'a Subset<'a>>,
    initial: Weights,
}

/// A run that has ended.
struct Run {
    recipe: Recipe,
    outcome: Outcome,
    dir: RunDir,
    /// Whether a set has selected the weights, and whether it was held out of the segments to learn from.
    selected: (bool, bool),
}

impl Run {
    /// What was learned, with its score on the segments that it was learned from.
    fn learned(&self) -> Learned {
        let Outcome { iteration, start, weights, score, .. } = &self.outcome;
        let event = self.dir.events().find(|e| e.iteration == *iteration);
        let tuning = event.map_or(*score, |e| e.score);
        Learned { initial: start.clone(), weights: weights.clone(), tuning }
    }
}

impl Session<'_> {
    fn source_kind(&self) -> SourceKind {
        self.prepared.loaded.source.kind()
    }

    /// Opens a run in a directory, on all segments or on those of a part.
    fn open<'a>(
        &self,
        part: Option<(&'a Subset<'a>, HeldOutPart)>,
        path: &Path,
    ) -> Result<Opened<'a>, Error> {
        let Prepared { tuner, loaded, references, reference_count, spec } = self.prepared;
        let mut spec = spec.clone();
        let Some((subset, held_out)) = part else {
            let dir = RunDir::open(path, spec, references.clone(), self.fleet)?;
            let tuner = tuner.recipe.build(&self.context(references.clone(), reference_count.is_some()))?;
            return Ok(Opened { tuner, dir, subset: None, initial: loaded.initial.clone() });
        };
        spec.held_out = Some(held_out);
        let references: Arc<Vec<Vec<String>>> = Arc::new(subset.pick(references));
        let tuner = self.recipe.build(&self.context(references.clone(), reference_count.is_some()))?;
        let initial =
            if loaded.from_lists { subset.initial_weights(self.metric)? } else { loaded.initial.clone() };
        let dir = RunDir::open(path, spec, references, self.fleet)?;
        Ok(Opened { tuner, dir, subset: Some(subset), initial })
    }

    fn context(&self, references: Arc<Vec<Vec<String>>>, known: bool) -> Context<'_> {
        let references = known.then_some(references);
        Context { metric: self.metric, seed: self.seed, source: self.source_kind(), references }
    }

    /// Runs the loop in a directory, and warns about its result.
    fn run(&self, opened: Opened<'_>, path: &Path) -> Result<Run, Error> {
        let (metric, talk, loaded) = (self.metric, self.talk, &self.prepared.loaded);
        let Opened { tuner, mut dir, subset, initial } = opened;
        if let Some(stop) = dir.stopped() {
            talk.say(&format!("{} is already complete: {}", path.display(), stop.text()));
        }
        let mut last = None;
        let units = Units::of(&tuner);
        let line = talk.progress(metric);
        let report = |step: &luthier::core::Step| line.show(step);
        let job = Job {
            source: subset.map_or(&*loaded.source, |s| s),
            select: loaded.select.as_deref(),
            test: loaded.test.as_deref(),
            learner: &*tuner.learner,
            schedule: &tuner.schedule,
            metric,
            initial: &initial,
            progress: Progress::new(&report),
        };
        let sets = [Some(&*loaded.source), loaded.select.as_deref(), loaded.test.as_deref()];
        sets.into_iter().flatten().for_each(|set| set.enter(path));
        let held_out = job.held_out().map(|(held, _)| held.len());
        show::selection(&job, held_out, talk);
        let mut on_event = |event: &Event| {
            line.clear();
            last = Some(event.clone());
            show::event(event, metric, units, talk);
        };
        let outcome = match tune(&job, &mut dir, &self.fleet, &mut on_event) {
            Ok(outcome) => outcome,
            Err(e) => {
                // A decoder's log is worth keeping; a run on files that has not begun is not.
                if job.source.kind() == SourceKind::Fixed && !path.join("folds").exists() {
                    dir.discard();
                }
                return Err(e);
            }
        };
        let length = last.as_ref().map_or(0, |e| e.candidates) / job.source.segments().max(1) as usize;
        for remark in tuner.recipe.remarks(&outcome, length) {
            talk.warn(&remark);
        }
        let selected = (job.select.is_some() || held_out.is_some(), held_out.is_some());
        show::warnings(&job, &outcome, (last.as_ref(), selected.0), path, talk);
        Ok(Run { recipe: tuner.recipe, outcome, dir, selected })
    }

    /// Runs the loop on all segments, or on those that are not held out; with folds, on the segments of each fold first.
    fn validated(&self) -> Result<(Run, Option<HeldOut>), Error> {
        let path = &self.input.run;
        let Some(plan) = self.input.hold_out() else {
            return Ok((self.run(self.open(None, path)?, path)?, None));
        };
        let source = &*self.prepared.loaded.source;
        let parts = plan.parts(&self.prepared.loaded.groups, self.seed)?;
        let folds = matches!(plan, HoldOut::Folds(_));
        // Opened first: a directory of another run is refused before any work.
        let whole = if folds { Some(self.open(None, path)?) } else { None };
        if RunView::fold_path(path, 0).exists() && folds {
            let subset = Subset::new(source, parts[0].learned.clone());
            self.open(Some((&subset, HeldOutPart { plan, part: 0 })), &RunView::fold_path(path, 0))?;
        }
        if let Some(whole) = &whole {
            self.estimate(&whole.tuner, parts.len() as u32 + 1);
        }
        let mut run = None;
        let line = self.talk.progress(self.metric);
        let report = |step: &luthier::core::Step| line.show(step);
        let scores = validate(
            (plan, &parts),
            &self.prepared.loaded.groups,
            source,
            self.metric,
            &self.fleet,
            Progress::new(&report),
            &mut |number, subset| {
                let part = HeldOutPart { plan, part: number as u32 };
                let path = if folds { RunView::fold_path(path, number) } else { path.clone() };
                let (held, n) = (parts[number].held.len(), source.segments());
                if folds {
                    let k = parts.len();
                    self.talk
                        .say(&format!("fold {} of {k}: {held} of {n} segments are held out", number + 1));
                } else {
                    self.talk.say(&format!("{held} of {n} segments are held out"));
                }
                let done = self.run(self.open(Some((subset, part)), &path)?, &path)?;
                let learned = done.learned();
                run = Some(done);
                Ok(learned)
            },
        )?;
        line.clear();
        if let Some(whole) = whole {
            self.talk.say("all segments");
            run = Some(self.run(whole, path)?);
        }
        let run = run.ok_or_else(|| Error::new("no part to learn from"))?;
        self.fleet.agree(run.dir.write_validation(&scores))?;
        Ok((run, Some(scores)))
    }

    /// Says how long several runs with a decoder may take, from the time of a few segments.
    fn estimate(&self, tuner: &Tuner, runs: u32) {
        let source = &*self.prepared.loaded.source;
        let n = source.segments();
        if self.source_kind() == SourceKind::Fixed {
            return;
        }
        let iterations = tuner.schedule.iterations;
        let mut text = format!("{runs} runs of up to {iterations} iterations each");
        if self.source_kind() != SourceKind::Command {
            let step = (n / 20).max(1);
            let some: Vec<SegmentId> = (0..n).step_by(step as usize).map(SegmentId).collect();
            let clock = Instant::now();
            let _ = source.candidates(&some, &self.prepared.loaded.initial, Goal::Model, Progress::NONE);
            let each = clock.elapsed().as_secs_f64() / some.len() as f64;
            let most = each * f64::from(n) * f64::from(iterations) * f64::from(runs);
            text += &format!(": decoding takes about {} at most", show::duration(most));
        }
        self.talk.say(&text);
    }

    /// Learns from resamples of the segments, if this is asked for.
    fn resampled(&self, run: &mut Run) -> Result<Option<Stability>, Error> {
        let Some(samples) = self.input.resamples() else { return Ok(None) };
        let Prepared { loaded, references, reference_count, .. } = self.prepared;
        let learned = match self.input.hold_out() {
            Some(plan @ HoldOut::Share(_)) => plan.parts(&loaded.groups, self.seed)?.swap_remove(0).learned,
            _ => (0..loaded.source.segments()).map(SegmentId).collect(),
        };
        let subset = Subset::new(&*loaded.source, learned);
        let references = Arc::new(subset.pick(references));
        let groups = subset.pick(&loaded.groups);
        let pool;
        let source: &dyn Source = if self.source_kind() == SourceKind::Fixed {
            &subset
        } else {
            self.talk.say("resamples are learned from the lists of all iterations, without decoding again");
            let name = |key| run.outcome.weights.name(key).unwrap_or_default().to_owned();
            pool = FixedLists::named(run.dir.pool(self.metric, self.fleet)?, &name)?;
            &pool
        };
        let context =
            Context { source: SourceKind::Fixed, ..self.context(references, reference_count.is_some()) };
        let line = self.talk.progress(self.metric);
        let report = |step: &luthier::core::Step| line.show(step);
        let weights = &run.outcome.weights;
        let recipe = &run.recipe.with_l1(run.dir.l1_of(run.outcome.iteration));
        let bootstrap = Bootstrap { source, recipe, context, groups: &groups, samples, weights };
        let stability = bootstrap.run(&self.fleet, Progress::new(&report))?;
        line.clear();
        self.fleet.agree(run.dir.write_bootstrap(&stability))?;
        Ok(Some(stability))
    }

    /// Name of the set that the score of a run is of.
    fn set(run: &Run) -> &'static str {
        match run.selected {
            (true, true) => "held-out",
            (true, false) => "selection",
            (false, _) => "tuning",
        }
    }

    fn signature(&self) -> &str {
        &self.prepared.spec.signature
    }

    /// The result of a run as JSON.
    fn json(&self, run: &Run, held_out: Option<&HeldOut>, stability: Option<&Stability>) -> String {
        let (metric, outcome) = (self.metric, &run.outcome);
        let weights: serde_json::Map<_, _> =
            outcome.weights.iter().map(|(n, v)| (n.to_owned(), json!(v))).collect();
        let mut value = json!({
            "algorithm": run.recipe.info().name,
            "iteration": outcome.iteration,
            "set": Self::set(run),
            "score": metric.display_score(outcome.score),
            "initial": metric.display_score(outcome.initial),
            "test": outcome.test.map(|t| metric.display_score(t)),
            "initial_test": outcome.initial_test.map(|t| metric.display_score(t)),
            "signature": self.signature(),
            "recipe": run.recipe,
            "weights": weights,
            "stop": outcome.stop.text(),
        });
        if let Some(c) = run.dir.events().find_map(|e| e.certificate.as_ref()) {
            value["certificate"] = json!({
                "score": metric.display_score(c.score),
                "bound": metric.display_score(c.bound),
                "optimal": c.optimal,
                "explored": c.explored,
                "programs": c.programs,
            });
        }
        if let Some(held_out) = held_out {
            value["held_out"] = json!(held_out);
        }
        if let Some(stability) = stability {
            value["bootstrap"] = json!(stability);
        }
        format!("{value}\n")
    }

    /// The result of a run as it is printed.
    fn text(&self, run: &Run, held_out: Option<&HeldOut>, stability: Option<&Stability>) -> String {
        let (metric, outcome) = (self.metric, &run.outcome);
        let scores = |initial: f64, tuned: f64| {
            let (initial, tuned) = (metric.display_score(initial), metric.display_score(tuned));
            format!("{} {initial:.2} -> {tuned:.2}", metric.name())
        };
        let own = scores(outcome.initial, outcome.score);
        let test = match (outcome.initial_test, outcome.test) {
            (Some(initial), Some(tuned)) => format!(", test {}", scores(initial, tuned)),
            _ => String::new(),
        };
        let mut text = format!("{} {own}{test} ({})\n", Self::set(run), self.signature());
        if let Some(held_out) = held_out {
            text += &show::held_out(held_out, metric);
        }
        if let Some(c) = run.dir.events().find_map(|e| e.certificate.as_ref()) {
            text += &certified(c, metric);
        }
        if let Some(stability) = stability {
            text += &show::stability(stability, metric);
        }
        text + &format!("weights in {}\n", RunView::best_path(&self.input.run).display())
    }
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
