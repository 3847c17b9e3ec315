//! Scores translations and tests whether two systems differ significantly.
//!
//! ```sh
//! cargo run --example score_and_compare                             # two systems derived from examples/quickstart
//! cargo run --example score_and_compare -- REFERENCES BASELINE SYSTEM
//! ```
#![allow(clippy::print_stdout)]

use luthier::{
    NBest,
    core::{Error, Result, Weights},
    io::{read_weights, text::read_lines},
    metric::{
        Metric, corpus_score,
        significance::{Question, Test, compare},
    },
};
use std::path::Path;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (references, baseline, system) = match args.as_slice() {
        [references, baseline, system] => (lines(references)?, lines(baseline)?, lines(system)?),
        [] => quickstart()?,
        _ => return Err(Error::new("expected the arguments REFERENCES BASELINE SYSTEM, or none")),
    };
    let failed = |e: luthier::metric::Error| Error::new(e.to_string());
    for name in ["bleu", "chrf", "ter"] {
        let score = |texts: &[String]| corpus_score(name, texts, &[&references[..]]).map_err(failed);
        println!("baseline  {}", score(&baseline)?);
        println!("system    {}", score(&system)?);
    }
    let metric: Metric = "bleu:tokenize=13a".parse().map_err(failed)?;
    let stats = [&baseline, &system].map(|texts| metric.segment_stats(texts, &[&references[..]]));
    let [first, second] = stats.map(|s| s.map_err(failed));
    let (first, second) = (first?, second?);
    let question = Question { test: Test::Bootstrap, samples: 1000, seed: 12345 };
    let verdicts = compare(&metric, &[&first, &second], question);
    let p = verdicts[1].p_value.unwrap_or(f64::NAN);
    println!("paired bootstrap, {} samples: p = {p:.4}", question.samples);
    Ok(())
}

fn lines(path: &str) -> Result<Vec<String>> {
    Ok(read_lines(Path::new(path))?.lines)
}

/// Returns the references, the best candidates under the initial weights, and the best candidates under weights that
/// favour longer candidates.
fn quickstart() -> Result<(Vec<String>, Vec<String>, Vec<String>)> {
    let lists = NBest::read(["examples/quickstart/nbest.txt"])?;
    let texts = |weights: &Weights| -> Result<Vec<String>> {
        Ok(lists.rerank(weights)?.into_iter().map(str::to_owned).collect())
    };
    let initial = read_weights(Path::new("examples/quickstart/init.txt"))?;
    let longer = Weights::parse("longer", "logprob 1\nlm 1\nlength 3\n")?;
    Ok((lines("examples/quickstart/ref.txt")?, texts(&initial)?, texts(&longer)?))
}
