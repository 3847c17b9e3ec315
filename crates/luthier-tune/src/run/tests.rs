use super::*;
use crate::{Candidate, LineSearch, fleet::Alone};
use luthier_core::{
    Error, FeatureKey, Local, Settings,
    random::{Purpose, Stream},
};
use luthier_metric::Scratch;
use std::sync::atomic::{AtomicU32, Ordering};

/// A decoder in miniature: knows all candidates of every segment and returns the best `k` under the weights.
struct Decoder {
    texts: Vec<Vec<String>>,
    features: Vec<Vec<Vec<(FeatureKey, f64)>>>,
    references: Vec<String>,
    columns: Arc<Local>,
    metric: Metric,
    k: usize,
    /// Fails at this call, as a power cut would.
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
            fails_at,
            calls: AtomicU32::new(0),
        }
    }
}

impl Source for Decoder {
    fn segments(&self) -> u32 {
        self.references.len() as u32
    }

    fn candidates(&self, batch: &[SegmentId], weights: &Weights, _: Goal) -> Result<Evidence> {
        if self.calls.fetch_add(1, Ordering::Relaxed) == self.fails_at {
            return Err(Error::new("the decoder was killed"));
        }
        let list = |s: &SegmentId| {
            let s = s.0 as usize;
            let score = |i: usize| self.features[s][i].iter().map(|f| f.1 * weights.get(f.0)).sum::<f64>();
            let mut order: Vec<usize> = (0..self.texts[s].len()).collect();
            order.sort_by(|&i, &j| score(j).total_cmp(&score(i)).then(i.cmp(&j)));
            let best = order[..self.k].iter();
            let candidates = best.map(|&i| Candidate {
                text: &self.texts[s][i],
                features: &self.features[s][i],
                columns: &[],
            });
            let mut list = List::new(&self.columns, candidates, true);
            let mut scratch = Scratch::default();
            let prepared = self.metric.prepare(&[&self.references[s]], &mut scratch);
            list.judge(&self.metric, &prepared, &mut scratch);
            Arc::new(list)
        };
        Ok(Evidence::Lists(batch.iter().map(list).collect()))
    }

    fn name(&self, key: FeatureKey) -> String {
        NAMES.iter().find(|n| FeatureKey::of(n) == key).unwrap().to_string()
    }

    fn is_fixed(&self) -> bool {
        false
    }
}

fn tune(dir: &std::path::Path, fails_at: u32) -> Result<(Outcome, Vec<Event>)> {
    let decoder = Decoder::new(fails_at);
    let references = Arc::new(decoder.references.iter().map(|r| vec![r.clone()]).collect());
    let mut settings = Settings::default();
    settings.add("seed", 3);
    let mut run_dir = RunDir::open(dir, settings, references)?;
    let learner = LineSearch { restarts: 3, ..LineSearch::new(decoder.metric.clone(), 3) };
    let schedule = Schedule { iterations: 6, ..Schedule::default() };
    let initial = Weights::parse("w", "tm 1\nlm -0.5\n").unwrap();
    let mut events = Vec::new();
    let metric = decoder.metric.clone();
    let outcome =
        run(&decoder, &learner, &schedule, &metric, &initial, &mut run_dir, &Fleet(&Alone), &mut |e| {
            events.push(e.clone());
        })?;
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
fn a_run_that_was_cut_goes_on_to_the_same_bits() {
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
fn a_finished_run_answers_again_and_other_settings_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r");
    let first = tune(&path, 99).unwrap();
    assert_eq!(tune(&path, 0).unwrap().0, first.0);
    let mut settings = Settings::default();
    settings.add("seed", 4);
    let message = RunDir::open(&path, settings, Arc::default()).err().unwrap().to_string();
    assert!(message.contains("seed is 3 there and 4 here"), "{message}");
}
