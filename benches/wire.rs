//! What it costs to tell other processes something: run by `scripts/bench cluster` under mpirun. Prints JSON lines.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use luthier::{
    cluster::Cluster,
    tune::{Fleet, Wire},
};
use serde_json::json;
use std::time::Instant;

/// The shortest of some attempts, in seconds.
fn best(mut f: impl FnMut()) -> f64 {
    let time = |_| {
        let clock = Instant::now();
        f();
        clock.elapsed().as_secs_f64()
    };
    (0..7).map(time).fold(f64::INFINITY, f64::min)
}

fn main() {
    let Some((cluster, _universe)) = Cluster::join() else { return };
    let fleet = Fleet(&cluster);
    let tell = |what: &str, size: usize, seconds: f64| {
        if fleet.is_first() {
            let processes = cluster.size();
            println!("{}", json!({"what": what, "processes": processes, "size": size, "seconds": seconds}));
        }
    };
    for bytes in [8, 1 << 10, 1 << 20, 1 << 26] {
        let mine = vec![7u8; bytes];
        tell("gather", bytes, best(|| drop(cluster.all_gather(&mine))));
    }
    // What mixing does with a shard of its own in every process: values of all features go to the processes that add them up,
    // and means come back.
    for features in [1_000, 100_000, 5_000_000] {
        let each = features / cluster.size() as usize;
        let part = ((0..each as u32).collect::<Vec<u32>>(), vec![0.1; each]);
        let seconds = best(|| {
            let parts = vec![part.clone(); cluster.size() as usize];
            let received = fleet.exchange(parts).unwrap();
            let mut sums = vec![0.0; each];
            for (_, values) in &received {
                sums.iter_mut().zip(values).for_each(|(s, v)| *s += v);
            }
            drop(fleet.gather(Ok(sums)).unwrap());
        });
        tell("mix", features, seconds);
    }
}
