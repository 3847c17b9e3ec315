//! Speed of hope–fear MIRA and of APRO; run by `scripts/bench batch`.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod pool;

use luthier::{
    core::{
        FeatureKey, Local, Weights, math,
        random::{Purpose, Stream},
    },
    metric::Metric,
    optim::{Limit, newton},
    tune::{
        Candidate, Candidates, Evidence, FeatureMatrix, Fleet, Learner, State,
        learner::{HopeFear, Loss, Minimize},
        loss::AproScale,
    },
};
use rayon::prelude::*;
use std::{path::PathBuf, sync::Arc, time::Instant};

/// Seconds that Moses' `kbmira`, with a bug fixed, takes for 60 epochs on the same pool, on one thread of a comparable
/// machine.
const MOSES: f64 = 4.6;

const DENSE: usize = 20;
const SPARSE: usize = 100;

fn main() {
    if std::env::args().any(|a| a == "full") {
        println!("APRO with the list sizes of Dreyer and Dong (2015), who report 8 minutes");
        apro(2748, 3600);
        return;
    }
    if let Some(data) = std::env::var_os("LUTHIER_DATA").map(PathBuf::from) {
        mira(&data);
    } else {
        println!("LUTHIER_DATA is not set: MIRA is skipped");
    }
    println!("APRO, 687 segments, {DENSE} dense and {SPARSE} sparse features per candidate, all cores");
    for k in [900, 1800, 3600] {
        apro(687, k);
    }
}

fn mira(data: &std::path::Path) {
    let metric: Metric = "bleu".parse().unwrap();
    let (pool, weights) = pool::read(data, &metric);
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    one.install(|| {
        let mut state = State::new(weights);
        let clock = Instant::now();
        HopeFear::new(metric, 1)
            .learn(&Evidence::Lists(pool), &mut state, &Fleet::ALONE, luthier::core::Progress::NONE)
            .unwrap();
        let seconds = clock.elapsed().as_secs_f64();
        println!(
            "60 epochs of hope-fear MIRA, one thread: {seconds:.2} s, {:.1} times as fast as Moses' kbmira ({MOSES} s)",
            MOSES / seconds
        );
    });
}

fn apro(segments: usize, k: usize) {
    let (pool, weights) = generate(segments, k);
    let design = FeatureMatrix::new(pool.clone(), &weights);
    let size = design.size();
    drop(design);
    let minimize = Minimize {
        limit: Limit { tolerance: 1e-3, steps: 1000 },
        ..Minimize::new("column:q".parse().unwrap(), Loss::Apro { c: 0.01, scale: AproScale::Candidates }, 1)
    };
    let mut w = weights.values().to_vec();
    let clock = Instant::now();
    let mut objective = minimize.objective(&pool, &weights, 0);
    let ended = newton(&mut *objective, &mut w, minimize.limit, &mut |_, _, _| {});
    let seconds = clock.elapsed().as_secs_f64();
    let a_pass = seconds / ended.passes as f64;
    let n = (segments * k) as f64;
    println!(
        "  k = {k}: {:.0} million numbers, {} steps, {} passes, {seconds:.1} s, {:.2} ns per number and pass, {:.1} ns \
         per candidate, pass and log2 k, peak memory {:.1} GB{}",
        size as f64 / 1e6,
        ended.steps,
        ended.passes,
        1e9 * a_pass / size as f64,
        1e9 * a_pass / n / (math::ln(k as f64) / std::f64::consts::LN_2),
        peak_memory(),
        if ended.converged { "" } else { ", NOT CONVERGED" }
    );
}

/// Generates lists whose candidates share most of their features, as in n-best lists; the quality of a candidate depends
/// on its dense and sparse features. Returns the lists and weights of 0 for all features.
fn generate(segments: usize, k: usize) -> (Vec<Arc<Candidates>>, Weights) {
    let dense: Vec<FeatureKey> = (0..DENSE).map(|c| FeatureKey::of(&format!("d{c}"))).collect();
    let columns = Arc::new(Local::new(dense.clone()));
    let names: Vec<String> = (0..50_000).map(|i| format!("s{i}")).collect();
    let keys: Vec<FeatureKey> = names.iter().map(|n| FeatureKey::of(n)).collect();
    let one = |segment: usize| {
        let mut s = Stream::new(1, Purpose::Test, 0, segment as u32);
        // Sparse features that the segment's candidates can have, and the common level of their dense features.
        let mut can: Vec<usize> = (0..4 * SPARSE).map(|_| s.below(keys.len() as u64) as usize).collect();
        can.sort_unstable();
        can.dedup();
        let level: Vec<f64> = (0..DENSE).map(|_| 10.0 * s.normal()).collect();
        let mut features = Vec::with_capacity(k * (DENSE + SPARSE));
        let mut given = Vec::with_capacity(3 * k);
        for _ in 0..k {
            let common = s.normal();
            let mut quality = s.normal();
            for c in 0..DENSE {
                let own = 0.7 * common + s.normal();
                quality += 0.1 * own * (c % 3) as f64;
                features.push((dense[c], level[c] + own));
            }
            let start = s.below(40) as usize;
            for i in 0..SPARSE {
                let id = can[(start + i * 3 + s.below(3) as usize) % can.len()];
                quality += if id.is_multiple_of(7) { 0.3 } else { 0.0 };
                features.push((keys[id], 1.0));
            }
            let high = quality as f32;
            given.extend([f64::from(high), quality - f64::from(high), 1.0]);
        }
        let rows = features.chunks_exact_mut(DENSE + SPARSE).map(|row| {
            let sparse = &mut row[DENSE..];
            sparse.sort_unstable_by_key(|f| f.0);
            // A feature that was drawn twice is replaced by another key.
            for i in 1..sparse.len() {
                if sparse[i].0 <= sparse[i - 1].0 {
                    sparse[i].0 = FeatureKey(sparse[i - 1].0.0 + 1);
                }
            }
            &*row
        });
        let rows: Vec<&[(FeatureKey, f64)]> = rows.collect();
        let candidates = rows.into_iter().zip(given.chunks_exact(3)).map(|(features, columns)| Candidate {
            text: "",
            features,
            columns,
        });
        let mut list = Candidates::new(&columns, candidates, false);
        list.judge_given(3);
        Arc::new(list)
    };
    let pool: Vec<Arc<Candidates>> = (0..segments).into_par_iter().map(one).collect();
    let mut weights = Weights::default();
    let name = |key: FeatureKey| format!("{:x}", key.0);
    weights.commit(&columns, &name).unwrap();
    for list in &pool {
        weights.commit(&list.local, &name).unwrap();
    }
    (pool, weights)
}

/// Returns the peak resident memory of this process in gigabytes.
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM")).unwrap_or_default();
    let kilobytes = line.split_whitespace().nth(1).and_then(|n| n.parse::<f64>().ok());
    kilobytes.unwrap_or(f64::NAN) / 1e6
}
