//! Cost of communication between processes; run by `scripts/bench cluster` under mpirun. Prints JSON lines with the
//! operation, the number of processes, the size in bytes or features, and the seconds.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use luthier::{
    cluster::Cluster,
    tune::{Fleet, Wire},
};
use serde_json::json;
use std::time::Instant;

/// Returns the shortest time of seven calls, in seconds.
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
    // Mixing with one shard per process: each process sends its values of all features to the processes that sum them and
    // receives the sums.
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
