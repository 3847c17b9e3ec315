//! Tunes the feature weights of an n-best reranker with every algorithm and prints the scores.
//!
//! The segments are split in two halves: weights are tuned on one half and evaluated on the other.
//!
//! ```sh
//! cargo run --example tune_lists                        # the lists in examples/quickstart
//! cargo run --example tune_lists -- LISTS REFERENCES    # your own lists, in any n-best format
//! ```
#![allow(clippy::print_stdout)]

use luthier::{
    NBest, Recipe,
    core::Result,
    io::{nbest, text::read_lines},
};
use std::path::Path;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let lists = args.next().unwrap_or_else(|| "examples/quickstart/nbest.txt".to_owned());
    let references = args.next().unwrap_or_else(|| "examples/quickstart/ref.txt".to_owned());
    let (tuning, held_out) = halves(Path::new(&lists), Path::new(&references))?;
    println!("{} candidates to tune on, {} held out", tuning.len(), held_out.len());
    println!("{:<12} {:>9} {:>9} {:>9}  weights", "", "initial", "tuned on", "held out");
    for recipe in Recipe::all() {
        let tuned = luthier::tune(&tuning, &recipe).test(&held_out).metric("bleu")?.seed(1).run()?;
        let weights: Vec<String> = tuned.weights.iter().map(|(name, w)| format!("{name} {w:.3}")).collect();
        println!(
            "{:<12} {:>9.2} {:>9.2} {:>9.2}  {}",
            recipe.info().name,
            tuned.initial,
            tuned.score,
            tuned.test.unwrap_or(f64::NAN),
            weights.join(", ")
        );
    }
    Ok(())
}

/// Reads an n-best file and its references; returns the even-numbered and the odd-numbered segments.
fn halves(lists: &Path, references: &Path) -> Result<(NBest, NBest)> {
    let mut rows = nbest::Rows::default();
    nbest::read(lists, &nbest::Options::default(), &mut rows)?;
    let references = read_lines(references)?.lines;
    let half = |parity: usize| {
        let mut part = NBest::default();
        for row in 0..rows.len() {
            let segment = rows.segment(row) as usize;
            if segment % 2 == parity {
                let features: Vec<(&str, f64)> = rows.named_features(row).collect();
                part.push((segment / 2) as u32, rows.text(row), &features, &[])?;
            }
        }
        part.with_reference_texts(references.iter().skip(parity).step_by(2).cloned())
    };
    Ok((half(0)?, half(1)?))
}
