use super::*;
use crate::{
    Candidate, RunSpec,
    fleet::tests::play,
    mert::LineSearch,
    pairs::OracleBy,
    recipe::{Mert, Recipe, Stopping},
};
use luthier_core::{
    Error, ErrorKind, FeatureKey, Local, Step,
    random::{Purpose, Stream},
};
use luthier_metric::Scratch;
use std::sync::atomic::{AtomicU32, Ordering};

/// A toy decoder: knows all candidates of every segment and returns the best `k` under the weights.
struct Decoder {
    texts: Vec<Vec<String>>,
    features: Vec<Vec<Vec<(FeatureKey, f64)>>>,
    references: Vec<String>,
    columns: Arc<Local>,
    metric: Metric,
    k: usize,
    /// Some features are sparse, and lists carry their names.
    sparse: bool,
    /// Decodes all segments at once, and knows the names of features only after that.
    whole: bool,
    met: std::sync::Mutex<Vec<String>>,
    /// Fails at this call, to simulate a crash.
    fails_at: u32,
    calls: AtomicU32,
}

const NAMES: [&str; 3] = ["tm", "lm", "TM0[1]"];

impl Decoder {
    fn new(fails_at: u32) -> Self {
        let words = ["a", "b", "c", "d", "e"];
        let mut s = Stream::new(11, Purpose::Test, 0, 0);
        let sentence =
            |s: &mut Stream, n: u64| (0..n).map(|_| words[s.below(5) as usize]).collect::<Vec<_>>().join(" ");
        let references: Vec<String> = (0..12).map(|_| sentence(&mut s, 6)).collect();
        let texts = references
            .iter()
            .map(|r| {
                (0..80).map(|i| if i % 9 == 0 { r.clone() } else { sentence(&mut s, 4 + i % 4) }).collect()
            })
            .collect();
        let mut value = || (s.uniform(-3.0, 3.0) * 8.0).round() / 7.0;
        let features = (0..12)
            .map(|_| (0..80).map(|_| NAMES.iter().map(|n| (FeatureKey::of(n), value())).collect()).collect())
            .collect();
        Decoder {
            texts,
            features,
            references,
            columns: Arc::new(Local::new(NAMES.iter().map(|n| FeatureKey::of(n)).collect())),
            metric: "bleu:order=2".parse().unwrap(),
            k: 8,
            sparse: false,
            whole: false,
            met: std::sync::Mutex::default(),
            fails_at,
            calls: AtomicU32::new(0),
        }
    }
}

/// The name of a sparse feature.
fn name_of(key: FeatureKey) -> String {
    (0..40).map(|i| format!("sparse:{i}")).find(|n| FeatureKey::of(n) == key).unwrap()
}

impl Decoder {
    /// With two of forty sparse features for each candidate.
    fn sparse(fails_at: u32) -> Self {
        let mut decoder = Decoder::new(fails_at);
        let mut s = Stream::new(12, Purpose::Test, 0, 0);
        for features in decoder.features.iter_mut().flatten() {
            let at = s.below(20);
            for i in [at, at + 20 - s.below(2)] {
                features.push((FeatureKey::of(&format!("sparse:{i}")), 0.1 + s.below(3) as f64));
            }
        }
        decoder.sparse = true;
        decoder
    }
}

impl Source for Decoder {
    fn segments(&self) -> u32 {
        self.references.len() as u32
    }

    fn candidates(
        &self,
        batch: &[SegmentId],
        weights: &Weights,
        goal: Goal,
        progress: Progress<'_>,
    ) -> Result<Evidence> {
        progress.poll()?;
        if self.calls.fetch_add(1, Ordering::Relaxed) == self.fails_at {
            return Err(Error::new("the decoder was killed"));
        }
        let list = |s: &SegmentId| {
            let s = s.0 as usize;
            let score = |i: usize| self.features[s][i].iter().map(|f| f.1 * weights.get(f.0)).sum::<f64>();
            let mut order: Vec<usize> = (0..self.texts[s].len()).collect();
            order.sort_by(|&i, &j| score(j).total_cmp(&score(i)).then(i.cmp(&j)));
            match goal {
                Goal::Model => order.truncate(self.k),
                Goal::Metric => order.retain(|i| *i == 18),
                Goal::Reference => order.retain(|i| *i == 9 && self.references[s].starts_with('a')),
            }
            let best = order.iter();
            let candidates = best.map(|&i| Candidate {
                text: &self.texts[s][i],
                features: &self.features[s][i],
                columns: &[],
            });
            let mut list = Candidates::new(&self.columns, candidates, true);
            if self.sparse {
                list = list.named(name_of);
            }
            let mut scratch = Scratch::default();
            let prepared = self.metric.prepare(&[&self.references[s]], &mut scratch);
            list.judge(&self.metric, &prepared, &mut scratch);
            Arc::new(list)
        };
        if self.whole {
            assert_eq!(batch.len(), self.texts.len());
            self.learn_names(&NAMES.map(str::to_owned))?;
        }
        Ok(Evidence::Lists(batch.iter().map(list).collect()))
    }

    fn name(&self, key: FeatureKey) -> String {
        if self.whole {
            let met = self.met.lock().unwrap();
            return met.iter().find(|n| FeatureKey::of(n) == key).unwrap().clone();
        }
        NAMES.iter().find(|n| FeatureKey::of(n) == key).unwrap().to_string()
    }

    fn kind(&self) -> SourceKind {
        if self.whole { SourceKind::Command } else { SourceKind::Decoder }
    }

    fn learn_names(&self, names: &[String]) -> Result<()> {
        self.met.lock().unwrap().extend_from_slice(names);
        Ok(())
    }
}

fn tune(dir: &std::path::Path, fails_at: u32) -> Result<(Outcome, Vec<Event>)> {
    let decoder = Decoder::new(fails_at);
    let learner = LineSearch { restarts: 3, ..LineSearch::new(decoder.metric.clone(), 3) };
    let schedule = Schedule { iterations: 6, ..Schedule::default() };
    tune_with(dir, &decoder, &learner, &schedule)
}

fn tune_with(
    dir: &std::path::Path,
    decoder: &Decoder,
    learner: &dyn Learner,
    schedule: &Schedule,
) -> Result<(Outcome, Vec<Event>)> {
    tune_among(dir, decoder, None, learner, schedule, Fleet::ALONE)
}

/// Runs as one of several processes.
fn tune_among(
    dir: &std::path::Path,
    decoder: &Decoder,
    select: Option<&dyn Source>,
    learner: &dyn Learner,
    schedule: &Schedule,
    fleet: Fleet<'_>,
) -> Result<(Outcome, Vec<Event>)> {
    let references = Arc::new(decoder.references.iter().map(|r| vec![r.clone()]).collect());
    let mut run_dir = RunDir::open(dir, spec(schedule.iterations, 3), references, fleet)?;
    tune_in(&mut run_dir, decoder, select, learner, schedule, (fleet, Progress::NONE))
}

/// Specification of a run; the loop itself takes a learner and a schedule.
fn spec(iterations: u32, seed: u64) -> RunSpec {
    let stopping = Stopping { iterations: Some(iterations), patience: None };
    RunSpec::new(Recipe::Mert(Mert { stopping, ..Mert::default() }), "bleu:order=2", seed)
}

fn tune_in(
    run_dir: &mut RunDir,
    decoder: &Decoder,
    select: Option<&dyn Source>,
    learner: &dyn Learner,
    schedule: &Schedule,
    (fleet, progress): (Fleet<'_>, Progress<'_>),
) -> Result<(Outcome, Vec<Event>)> {
    let initial = Weights::parse("w", "tm 1\nlm -0.5\n").unwrap();
    let mut events = Vec::new();
    let metric = decoder.metric.clone();
    let job = Job {
        source: decoder,
        select,
        test: None,
        learner,
        schedule,
        metric: &metric,
        initial: &initial,
        progress,
    };
    let outcome = run(&job, run_dir, &fleet, &mut |e| events.push(e.clone()))?;
    Ok((outcome, events))
}

#[test]
fn iterations_improve_and_every_candidate_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (outcome, events) = tune(&dir.path().join("r"), 99).unwrap();
    assert!(outcome.score > outcome.initial + 5.0, "{outcome:?}");
    assert!(events.len() > 2 && events.windows(2).all(|w| w[1].candidates == w[0].candidates + w[1].new));
    let weights = std::fs::read_to_string(dir.path().join("r/best.txt")).unwrap();
    assert!(Weights::parse("b", &weights).unwrap() == outcome.weights);
    assert!((outcome.weights.l1() - 1.0).abs() < 1e-12);
}

#[test]
fn a_crashed_run_resumes_to_the_same_bits() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, events) = tune(&dir.path().join("whole"), 99).unwrap();
    for cut in 0..events.len() as u32 {
        let path = dir.path().join(format!("cut{cut}"));
        assert!(tune(&path, cut).unwrap_err().to_string().contains("killed"));
        let (again, rest) = tune(&path, 99).unwrap();
        assert_eq!(again, whole, "cut at {cut}");
        assert_eq!(rest.len() as u32, events.len() as u32 - cut);
        let read = |d: &str| std::fs::read(dir.path().join(d).join("best.txt")).unwrap();
        assert_eq!(read(&format!("cut{cut}")), read("whole"));
    }
}

#[test]
fn a_finished_run_returns_its_result_and_different_settings_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r");
    let first = tune(&path, 99).unwrap();
    assert_eq!(tune(&path, 0).unwrap().0, first.0);
    let error = RunDir::open(&path, spec(6, 4), Arc::default(), Fleet::ALONE).err().unwrap();
    assert!(error.to_string().contains("seed is 3 there and 4 here"), "{error}");
    assert_eq!(error.kind(), ErrorKind::Mismatch);
}

#[test]
fn more_iterations_extend_a_run_and_fewer_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (k, learner) in learners().iter().chain(&batch_learners()).enumerate() {
        let schedule = |iterations: u32| {
            if k < learners().len() {
                Schedule { iterations, ..online(3, 2, crate::Mixing::Average) }
            } else {
                Schedule { iterations, ..Schedule::default() }
            }
        };
        let tune = |name: &str, n: u32| {
            let path = dir.path().join(format!("{k}-{name}"));
            tune_with(&path, &Decoder::sparse(u32::MAX), &**learner, &schedule(n))
        };
        let (whole, _) = tune("whole", 4).unwrap();
        let (short, _) = tune("extended", 2).unwrap();
        let (extended, _) = tune("extended", 4).unwrap();
        assert_eq!(extended, whole, "{k}");
        assert_eq!(
            left(&dir.path().join(format!("{k}-extended"))),
            left(&dir.path().join(format!("{k}-whole")))
        );
        if short.stop == Stop::Iterations {
            let error = tune("extended", 3).unwrap_err();
            assert!(error.to_string().contains("recipe.iterations is 4 there and 3 here"), "{error}");
        }
    }
}

#[test]
fn a_run_in_memory_gives_the_same_weights() {
    let dir = tempfile::tempdir().unwrap();
    for (k, learner) in learners().iter().chain(&batch_learners()).enumerate() {
        let online = k < learners().len();
        let schedule = if online { online_two() } else { Schedule { iterations: 3, ..Schedule::default() } };
        let path = dir.path().join(k.to_string());
        let on_disk = tune_with(&path, &Decoder::sparse(u32::MAX), &**learner, &schedule).unwrap();
        let mut memory = RunDir::in_memory(spec(schedule.iterations, 3));
        let (fleet, progress) = (Fleet::ALONE, Progress::NONE);
        let decoder = Decoder::sparse(u32::MAX);
        let found = tune_in(&mut memory, &decoder, None, &**learner, &schedule, (fleet, progress)).unwrap();
        assert_eq!(found.0, on_disk.0, "{k}");
    }
}

fn online_two() -> Schedule {
    Schedule { iterations: 2, ..online(3, 2, crate::Mixing::Average) }
}

/// Whenever the progress callback answers stop, the run ends as interrupted and resumes to the same weights,
/// bit for bit.
#[test]
fn an_interrupted_run_resumes_to_the_same_bits() {
    use std::{ops::ControlFlow, sync::atomic::AtomicUsize};
    let dir = tempfile::tempdir().unwrap();
    for (k, learner) in learners().iter().chain(&batch_learners()).enumerate() {
        let online = k < learners().len();
        let schedule = if online { online_two() } else { Schedule { iterations: 3, ..Schedule::default() } };
        let tune = |name: &str, after: usize| {
            let asked = AtomicUsize::new(0);
            let callback = |_: &Step| {
                let stop = asked.fetch_add(1, Ordering::Relaxed) >= after;
                if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let decoder = Decoder::sparse(u32::MAX);
            let references = Arc::new(decoder.references.iter().map(|r| vec![r.clone()]).collect());
            let path = dir.path().join(format!("{k}-{name}"));
            let mut run_dir = RunDir::open(&path, spec(schedule.iterations, 3), references, Fleet::ALONE)?;
            let progress = (Fleet::ALONE, Progress::new(&callback));
            tune_in(&mut run_dir, &decoder, None, &**learner, &schedule, progress)
        };
        let (whole, _) = tune("whole", usize::MAX).unwrap();
        for after in [0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89] {
            let name = format!("stop{after}");
            match tune(&name, after) {
                Ok((outcome, _)) => assert_eq!(outcome, whole, "{k} {after}"),
                Err(e) => assert_eq!(e.kind(), ErrorKind::Interrupted, "{k} {after}: {e}"),
            }
            assert_eq!(tune(&name, usize::MAX).unwrap().0, whole, "{k} {after}");
        }
    }
}

fn learners() -> Vec<Box<dyn Learner>> {
    use crate::{
        learner::{OneBest, Update},
        rank::{Bound, InnerPairs, Linearize, MiraScale, Norm, Rank, RankLoss, RankMargin, Rate, Rule},
    };
    let metric: Metric = "bleu:order=2".parse().unwrap();
    let rate = Rate::exponential(0.2, 0.85);
    let (lambda, bound, pairs, linearize) = (1e-3, Bound::Mean, InnerPairs::All, Linearize::Tangent);
    let rank = |rule| Box::new(Rank::new(metric.clone(), rule, 3)) as Box<dyn Learner>;
    let one = |update, passive| Box::new(OneBest::new(metric.clone(), update, passive)) as Box<dyn Learner>;
    vec![
        one(Update::Local, None),
        one(Update::MaxBleu, Some(f64::INFINITY)),
        rank(Rule::Gradient { loss: RankLoss::Hinge, rate, lambda, norm: Norm::Violated }),
        rank(Rule::Optimized { loss: RankLoss::Hinge, rate, lambda, bound, pairs, linearize }),
        rank(Rule::Optimized { loss: RankLoss::Softmax, rate, lambda, bound, pairs, linearize }),
        rank(Rule::Passive { c: 0.01, margin: RankMargin::Error, scale: MiraScale::Sum }),
    ]
}

fn online(size: usize, shards: u32, mixing: crate::Mixing) -> Schedule {
    let batches =
        crate::Batches { size, shards, mixing, max_rho: 2.0, select_share: 0.0, shuffle: true, seed: 5 };
    Schedule { iterations: 4, accumulate: false, online: Some(batches), ..Schedule::default() }
}

/// With growing feature sets, several shards and both kinds of mixing; interrupted within and between epochs.
#[test]
fn crashed_online_runs_resume_to_the_same_bits() {
    use crate::Mixing::{Average, LineSearch};
    let dir = tempfile::tempdir().unwrap();
    for (l, learner) in learners().iter().enumerate() {
        for (size, shards, mixing) in [(1, 1, Average), (4, 3, LineSearch)] {
            let schedule = online(size, shards, mixing);
            let base = dir.path().join(format!("{l}-{size}"));
            let path = |name: &str| base.join(name);
            std::fs::create_dir_all(&base).unwrap();
            let go =
                |name: &str, cut: u32| tune_with(&path(name), &Decoder::sparse(cut), &**learner, &schedule);
            let (whole, events) = go("whole", u32::MAX).unwrap();
            assert_eq!(events.len(), 5);
            assert!(whole.weights.len() > 20, "{}", whole.weights.len());
            for cut in [0, 5, 11, 12, 14, 29] {
                let name = format!("cut{cut}");
                if go(&name, cut).is_ok() {
                    continue;
                }
                assert_eq!(go(&name, u32::MAX).unwrap().0, whole, "{l} {size} cut at {cut}");
                let read = |d: &str| std::fs::read(path(d).join("best.txt")).unwrap();
                assert_eq!(read(&name), read("whole"));
            }
            // Any number of threads.
            for threads in [1, 3] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let name = format!("threads{threads}");
                assert_eq!(pool.install(|| go(&name, u32::MAX)).unwrap().0, whole);
            }
        }
    }
}

/// A decoder with many segments: those of [`Decoder::new`], repeated.
fn many(fails_at: u32, n: usize) -> Decoder {
    let few = Decoder::new(fails_at);
    let cycle = |s: usize| s % few.references.len();
    Decoder {
        texts: (0..n).map(|s| few.texts[cycle(s)].clone()).collect(),
        features: (0..n).map(|s| few.features[cycle(s)].clone()).collect(),
        references: (0..n).map(|s| few.references[cycle(s)].clone()).collect(),
        ..few
    }
}

/// Without a selection set, 15 % of 300 or more segments select the epoch, also after an interruption.
#[test]
fn segments_are_held_out_for_selection() {
    let dir = tempfile::tempdir().unwrap();
    let learner = &learners()[3];
    let mut schedule = online(16, 2, crate::Mixing::LineSearch);
    schedule.online.as_mut().unwrap().select_share = 0.15;
    let held = |n: usize, seed: u64| {
        let (decoder, mut schedule) = (many(u32::MAX, n), schedule.clone());
        schedule.online.as_mut().unwrap().seed = seed;
        let job = Job {
            source: &decoder,
            select: None,
            test: None,
            learner: &**learner,
            schedule: &schedule,
            metric: &decoder.metric,
            initial: &Weights::default(),
            progress: Progress::NONE,
        };
        job.held_out()
    };
    let (select, learn) = held(400, 1).unwrap();
    assert_eq!((select.len(), learn.len()), (60, 340));
    let mut all: Vec<u32> = select.iter().chain(&learn).map(|s| s.0).collect();
    all.sort_unstable();
    assert_eq!(all, (0..400).collect::<Vec<u32>>());
    assert_ne!(held(400, 2).unwrap().0, select);
    assert_eq!(held(300, 1).unwrap().0.len(), 50);
    assert_eq!(held(2400, 1).unwrap().0.len(), 300);
    assert!(held(299, 1).is_none());

    let go = |name: &str, cut: u32| tune_with(&dir.path().join(name), &many(cut, 300), &**learner, &schedule);
    let (whole, events) = go("whole", u32::MAX).unwrap();
    assert!(events.iter().all(|e| e.select.is_some()));
    assert!(events[0].running && !events.last().unwrap().running);
    let held = std::fs::read_to_string(dir.path().join("whole/held-out.txt")).unwrap();
    assert_eq!(held.lines().count(), 50);
    let best = std::fs::read_to_string(dir.path().join("whole/best.txt")).unwrap();
    assert!(best.lines().next().unwrap().contains("on 50 held-out segments"), "{best}");
    let best = events.iter().map(|e| e.select.unwrap()).fold(0.0, f64::max);
    assert_eq!(whole.score, best);
    for cut in [3, 20, 40] {
        let name = format!("cut{cut}");
        assert!(go(&name, cut).is_err(), "{cut}");
        assert_eq!(go(&name, u32::MAX).unwrap().0, whole, "{cut}");
    }
}

/// Ψ is chosen between 0 and 1, the same on any number of threads.
#[test]
fn interpolation_by_line_search() {
    let dir = tempfile::tempdir().unwrap();
    let decoder = Decoder::new(u32::MAX);
    let loss = crate::learner::Loss::Softmax { oracle: crate::pairs::OracleBy::Corpus };
    let learner = crate::learner::Minimize::new(decoder.metric.clone(), loss, 1);
    let schedule = Schedule { iterations: 4, interpolate: Interpolate::LineSearch, ..Schedule::default() };
    let go = |name: &str| tune_with(&dir.path().join(name), &decoder, &learner, &schedule).unwrap();
    let (outcome, events) = go("a");
    let psi: Vec<f64> = events.iter().filter_map(|e| e.psi).collect();
    assert!(!psi.is_empty() && psi.iter().all(|p| (0.0..=1.0).contains(p)), "{psi:?}");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    assert_eq!(pool.install(|| go("b")).0, outcome);
}

/// One epoch with two shards equals the mean of two runs over every other segment.
#[test]
fn two_shards_are_two_runs() {
    let dir = tempfile::tempdir().unwrap();
    for (l, learner) in learners().iter().enumerate() {
        let mut schedule = online(2, 2, crate::Mixing::Average);
        schedule.iterations = 1;
        schedule.online.as_mut().unwrap().shuffle = false;
        let go = |name: String, decoder: &Decoder, schedule: &Schedule| {
            tune_with(&dir.path().join(format!("{l}{name}")), decoder, &**learner, schedule)
                .unwrap()
                .0
                .weights
        };
        let both = go("both".into(), &Decoder::sparse(u32::MAX), &schedule);
        schedule.online.as_mut().unwrap().shards = 1;
        let half = |parity: usize| {
            let mut decoder = Decoder::sparse(u32::MAX);
            let keep = |at: &mut usize| {
                *at += 1;
                *at % 2 != parity
            };
            let mut n = 0;
            decoder.texts.retain(|_| keep(&mut n));
            n = 0;
            decoder.features.retain(|_| keep(&mut n));
            n = 0;
            decoder.references.retain(|_| keep(&mut n));
            go(format!("half{parity}"), &decoder, &schedule)
        };
        let (one, two) = (half(0), half(1));
        assert!(both.len() > 20);
        for (name, value) in both.iter() {
            let key = FeatureKey::of(name);
            assert_eq!(value, f64::midpoint(one.get(key), two.get(key)), "{l} {name}");
        }
    }
}

/// Patience counts epochs without a better score.
#[test]
fn patience_ends_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let schedule = Schedule { iterations: 50, patience: Some(2), ..online(1, 1, crate::Mixing::Average) };
    let learner = &learners()[0];
    let (outcome, events) = tune_with(dir.path(), &Decoder::sparse(u32::MAX), &**learner, &schedule).unwrap();
    assert_eq!(outcome.stop, Stop::Patience);
    assert!(events.len() < 50, "{}", events.len());
}

/// On fixed lists patience counts scores of the weights, not of the guesses made during training.
#[test]
fn patience_on_fixed_lists_counts_scores() {
    let decoder = Decoder::new(u32::MAX);
    let all: Vec<SegmentId> = (0..decoder.segments()).map(SegmentId).collect();
    let start = Weights::parse("w", "tm 1\nlm -0.5\n").unwrap();
    let lists = decoder.candidates(&all, &start, Goal::Model, Progress::NONE).unwrap().into_lists();
    let mut names = luthier_core::Names::default();
    for name in NAMES {
        names.intern(name).unwrap();
    }
    let source = crate::FixedLists::new(lists.iter().map(|l| Candidates::clone(l)).collect(), names);
    let schedule = Schedule { iterations: 50, patience: Some(2), ..online(1, 1, crate::Mixing::Average) };
    for learner in learners() {
        let job = Job {
            source: &source,
            select: None,
            test: None,
            learner: &*learner,
            schedule: &schedule,
            metric: &decoder.metric,
            initial: &start,
            progress: Progress::NONE,
        };
        let mut dir = RunDir::in_memory(spec(50, 3));
        let outcome = run(&job, &mut dir, &Fleet::ALONE, &mut |_| {}).unwrap();
        let scores: Vec<f64> = dir.events().map(|e| e.score).collect();
        let since_best = |n: usize| {
            let best = (0..n).fold(0, |b, i| if scores[i] > scores[b] { i } else { b });
            n - 1 - best
        };
        let expected = (1..=scores.len()).find(|&n| since_best(n) >= 2);
        assert_eq!(expected, (outcome.stop == Stop::Patience).then_some(scores.len()), "{scores:?}");
    }
}

/// A run that is being extended has no result until it ends again.
#[test]
fn an_extended_run_that_breaks_off_is_not_finished() {
    let dir = tempfile::tempdir().unwrap();
    let (learner, path) = (&learners()[0], dir.path().join("r"));
    let tune = |fails_at: u32, iterations: u32| {
        let schedule = Schedule { iterations, ..online_two() };
        tune_with(&path, &Decoder::sparse(fails_at), &**learner, &schedule)
    };
    tune(u32::MAX, 2).unwrap();
    assert!(crate::RunView::is_finished(&path));
    assert!(tune(0, 6).is_err());
    assert!(!crate::RunView::is_finished(&path));
    tune(u32::MAX, 6).unwrap();
    assert!(crate::RunView::is_finished(&path));
}

fn batch_learners() -> Vec<Box<dyn Learner>> {
    use crate::{
        learner::{HopeFear, Loss, Minimize},
        loss::{Brevity, Clip, Margin},
        pairs::{PairSource, Pairs},
    };
    let metric: Metric = "bleu:order=2".parse().unwrap();
    let loss = |loss| Box::new(Minimize::new(metric.clone(), loss, 3)) as Box<dyn Learner>;
    let pairs = Pairs {
        source: PairSource::Sampled,
        draw: 200,
        keep: 20,
        slice: 0.1,
        min_difference: 0.05,
        max_length_sigma: None,
        seed: 3,
    };
    vec![
        Box::new(LineSearch { restarts: 3, rounds: 2, ..LineSearch::new(metric.clone(), 3) }),
        Box::new(HopeFear { epochs: 3, ..HopeFear::new(metric.clone(), 3) }),
        loss(Loss::Pro { pairs, margin: Margin::Logistic }),
        loss(Loss::Pro { pairs, margin: Margin::Hinge }),
        loss(Loss::Apro { c: 20.0, scale: crate::loss::AproScale::Pairs }),
        loss(Loss::Softmax { oracle: OracleBy::Corpus }),
        loss(Loss::Xbleu { clip: Clip::Candidate, brevity: Brevity::Exact, references: None }),
        loss(Loss::Risk),
    ]
}

/// Files of a run directory, without times.
fn left(dir: &std::path::Path) -> String {
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    let log = read("log.jsonl");
    let mut text = read("best.txt");
    for line in log.lines() {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        if let Some(event) = line.as_object_mut() {
            event.retain(|key, _| !key.ends_with("seconds"));
        }
        text += &format!("{line}\n");
    }
    text
}

/// Every learner in one to five processes: all processes have the same outcome, and one writes the directory.
#[test]
fn processes_do_not_matter() {
    use crate::Mixing::{Average, LineSearch};
    let dir = tempfile::tempdir().unwrap();
    let batch = Schedule { iterations: 4, psi: 0.6, ..Schedule::default() };
    let mut cases: Vec<(Box<dyn Learner>, Schedule)> =
        batch_learners().into_iter().map(|l| (l, batch.clone())).collect();
    for (size, shards, mixing) in [(1, 1, Average), (4, 3, LineSearch)] {
        cases.extend(learners().into_iter().map(|l| (l, online(size, shards, mixing))));
    }
    for (c, (learner, schedule)) in cases.iter().enumerate() {
        for kind in 0..3 {
            let decoder = |fails_at| {
                let mut decoder = if kind == 1 { Decoder::sparse(fails_at) } else { Decoder::new(fails_at) };
                decoder.whole = kind == 2;
                decoder
            };
            if kind == 2 && schedule.online.is_some() {
                continue; // online learning does not work with a command
            }
            let path = |name: &str| dir.path().join(format!("{c}-{kind}-{name}"));
            let go = |name: &str, fleet: Fleet<'_>, fails_at: u32| {
                let select = Decoder::new(u32::MAX);
                let select = (kind != 2).then_some(&select as &dyn Source);
                tune_among(&path(name), &decoder(fails_at), select, &**learner, schedule, fleet)
            };
            let (whole, events) = go("alone", Fleet::ALONE, u32::MAX).unwrap();
            for size in [2, 3, 5] {
                let name = size.to_string();
                for (outcome, told) in play(size, |fleet| go(&name, fleet, u32::MAX).unwrap()) {
                    assert_eq!(outcome, whole, "{c} {kind} {size}");
                    assert_eq!(told.len(), events.len());
                }
                assert_eq!(left(&path(&name)), left(&path("alone")), "{c} {kind} {size}");
            }
            // One process fails: all receive its error. The run is then resumed with another number of processes.
            for cut in [0, 1, 3] {
                let name = format!("cut{cut}");
                let broken = |fleet: Fleet<'_>| {
                    let at = if fleet.0.rank() == 0 { cut } else { u32::MAX };
                    let end = go(&name, fleet, at);
                    assert_eq!(end.is_err(), fleet.0.fails_together());
                    end
                };
                let ends = play(2, broken);
                if ends.iter().all(Result::is_ok) {
                    continue;
                }
                assert!(ends.iter().all(Result::is_err));
                for (outcome, _) in play(3, |fleet| go(&name, fleet, u32::MAX).unwrap()) {
                    assert_eq!(outcome, whole);
                }
                assert_eq!(left(&path(&name)), left(&path("alone")), "{c} {kind} cut at {cut}");
            }
        }
    }
}
