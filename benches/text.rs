//! Speed and output of the tokeniser; `scripts/bench text` compares both with sacremoses.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use luthier::text::{Language, Tokeniser, detokenise, normalise};
use std::{fs, time::Instant};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let [text, language, output] = &arguments[..] else {
        println!("this benchmark is run by scripts/bench text");
        return;
    };
    let text = fs::read_to_string(text).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let tokeniser = Tokeniser::new(&Language::new(language).unwrap());
    let mut fastest = f64::INFINITY;
    let mut tokens = Vec::new();
    for _ in 0..5 {
        let clock = Instant::now();
        tokens = lines.iter().map(|line| tokeniser.tokenise(&normalise(line))).collect();
        fastest = fastest.min(clock.elapsed().as_secs_f64());
    }
    let back =
        lines.iter().zip(&tokens).filter(|(line, tokens)| detokenise(tokens) == normalise(line)).count();
    fs::write(output, tokens.join("\n") + "\n").unwrap();
    println!("{} {}", lines.len() as f64 / fastest, back);
}
