//! Work that is shared by threads here and by processes elsewhere, with the same bits everywhere.

use luthier_core::{FeatureKey, ShardId};
use rayon::prelude::*;
use std::ops::Range;

/// What connects the processes of a run. Called from the main thread only.
///
/// Laws: the ranges that `mine` gives to all processes cut `0..n` into consecutive pieces; `all_gather` gives
/// every process everybody's parts, in the order of those pieces.
pub trait Wire {
    /// This process' share of `n` pieces of work.
    fn mine(&self, n: u32) -> Range<u32>;
    /// Exchanges encoded answers.
    fn all_gather(&self, mine: Vec<Vec<u8>>) -> Vec<Vec<u8>>;
}

/// One process: everything is mine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alone;

impl Wire for Alone {
    fn mine(&self, n: u32) -> Range<u32> {
        0..n
    }

    fn all_gather(&self, mine: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        mine
    }
}

/// Threads here, processes beyond.
pub struct Fleet<'a>(pub &'a dyn Wire);

impl Fleet<'_> {
    /// `f` of each of `n` shards; everybody receives all values in order of the shards.
    pub fn map<T: Send>(
        &self,
        n: u32,
        f: impl Fn(ShardId) -> T + Sync,
        put: fn(&T) -> Vec<u8>,
        get: fn(&[u8]) -> T,
    ) -> Vec<T> {
        let range = self.0.mine(n);
        let alone = range == (0..n);
        let mine: Vec<T> = range.into_par_iter().map(|i| f(ShardId(i))).collect();
        if alone {
            return mine;
        }
        self.0.all_gather(mine.iter().map(put).collect()).iter().map(|bytes| get(bytes)).collect()
    }

    /// The sum of sparse vectors (sorted by key), added along a fixed binary tree over the shards.
    pub fn sum(
        &self,
        n: u32,
        f: impl Fn(ShardId) -> Vec<(FeatureKey, f64)> + Sync,
    ) -> Vec<(FeatureKey, f64)> {
        let mut parts = self.map(n, f, |part| encode(part), decode);
        while parts.len() > 1 {
            parts = parts
                .chunks(2)
                .map(|pair| if let [a, b] = pair { add(a, b) } else { pair[0].clone() })
                .collect();
        }
        parts.pop().unwrap_or_default()
    }
}

fn add(a: &[(FeatureKey, f64)], b: &[(FeatureKey, f64)]) -> Vec<(FeatureKey, f64)> {
    let mut out = Vec::with_capacity(a.len() + b.len());
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        match (a.get(i), b.get(j)) {
            (Some(x), Some(y)) if x.0 == y.0 => {
                out.push((x.0, x.1 + y.1));
                i += 1;
                j += 1;
            }
            (Some(x), y) if y.is_none_or(|y| x.0 < y.0) => {
                out.push(*x);
                i += 1;
            }
            (_, Some(y)) => {
                out.push(*y);
                j += 1;
            }
            _ => break,
        }
    }
    out
}

fn encode(part: &[(FeatureKey, f64)]) -> Vec<u8> {
    part.iter().flat_map(|(k, v)| [k.0.to_le_bytes(), v.to_le_bytes()].concat()).collect()
}

fn decode(bytes: &[u8]) -> Vec<(FeatureKey, f64)> {
    let (words, _) = bytes.as_chunks::<8>();
    words.chunks_exact(2).map(|w| (FeatureKey(u64::from_le_bytes(w[0])), f64::from_le_bytes(w[1]))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Barrier, Mutex};

    /// Processes played by threads that meet at a barrier.
    struct Played<'a> {
        rank: u32,
        size: u32,
        table: &'a Mutex<Vec<Vec<Vec<u8>>>>,
        barrier: &'a Barrier,
    }

    impl Wire for Played<'_> {
        fn mine(&self, n: u32) -> Range<u32> {
            n * self.rank / self.size..n * (self.rank + 1) / self.size
        }
        fn all_gather(&self, mine: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
            self.table.lock().unwrap()[self.rank as usize] = mine;
            self.barrier.wait();
            let all = self.table.lock().unwrap().concat();
            self.barrier.wait();
            all
        }
    }

    fn shard(s: ShardId) -> Vec<(FeatureKey, f64)> {
        (0..20)
            .filter(|k| !(k + s.0).is_multiple_of(3))
            .map(|k| (FeatureKey(k.into()), 1.0 / f64::from(k + s.0 + 1)))
            .collect()
    }

    #[test]
    fn any_number_of_processes_gives_the_same_bits() {
        let expected = Fleet(&Alone).sum(7, shard);
        for size in [1, 2, 3, 7, 9] {
            let table = Mutex::new(vec![Vec::new(); size as usize]);
            let barrier = Barrier::new(size as usize);
            std::thread::scope(|scope| {
                let ranks: Vec<_> = (0..size)
                    .map(|rank| {
                        let (table, barrier) = (&table, &barrier);
                        scope.spawn(move || Fleet(&Played { rank, size, table, barrier }).sum(7, shard))
                    })
                    .collect();
                for rank in ranks {
                    assert_eq!(rank.join().unwrap(), expected);
                }
            });
        }
    }
}
