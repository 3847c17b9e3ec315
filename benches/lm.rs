//! Query speed of the language model with carried state; `scripts/bench lm` compares it with the same loop over `KenLM`.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use luthier::lm::{END, Model};
use std::{path::Path, time::Instant};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let [model, text, passes] = &arguments[..] else {
        println!("this benchmark is run by scripts/bench lm");
        return;
    };
    let clock = Instant::now();
    let model = Model::open(Path::new(model)).unwrap();
    let opened = clock.elapsed().as_secs_f64();
    let sentences: Vec<Vec<u32>> = std::fs::read_to_string(text)
        .unwrap()
        .lines()
        .map(|l| l.split_ascii_whitespace().map(|w| model.word(w)).chain([END]).collect())
        .collect();
    let passes: usize = passes.parse().unwrap();
    let mut total = 0.0f64;
    let mut queries = 0;
    let mut best = f64::INFINITY;
    for _ in 0..passes {
        let clock = Instant::now();
        (total, queries) = (0.0, 0);
        for sentence in &sentences {
            let mut state = model.begin();
            for &word in sentence {
                let scored = model.score(&state, word);
                total += f64::from(scored.log10);
                state = scored.state;
            }
            queries += sentence.len();
        }
        best = best.min(clock.elapsed().as_secs_f64());
    }
    println!("{} {total:.4} {:.6} {queries}", queries as f64 / best, opened);
}
