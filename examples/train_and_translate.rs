//! Trains a translation model from parallel text and translates with it.
//!
//! ```sh
//! cargo run --example train_and_translate                            # 500 generated sentence pairs
//! cargo run --example train_and_translate -- SOURCE TARGET TEXT      # your own text: tokenised, one sentence per line
//! ```
#![allow(clippy::print_stdout)]

use luthier::{
    Training, Translator,
    core::{Error, Result},
    generate::{Generator, Part},
    io::{AtomicFile, text::read_lines},
};
use std::path::{Path, PathBuf};

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let dir = tempfile::tempdir().map_err(|e| Error::io("the temporary directory", "create it", &e))?;
    let (source, target, text) = match args.as_slice() {
        [source, target, text] => (source.into(), target.into(), read_lines(Path::new(text))?.lines),
        [] => generated(dir.path())?,
        _ => return Err(Error::new("expected the arguments SOURCE TARGET TEXT, or none")),
    };

    let model = dir.path().join("model");
    let trained = Training::new(source, target, &model).run()?;
    let (pairs, phrases) = (trained.text.figures.kept, trained.table.figures.entries);
    println!("{pairs} sentence pairs, {phrases} phrase pairs, {:.1} s", trained.seconds);

    let translator = Translator::open(&model)?;
    let text = &text[..text.len().min(5)];
    for (sentence, translation) in text.iter().zip(translator.translate(text)?) {
        println!("\n{sentence}\n{translation}");
    }

    let first = text.first().map_or("", String::as_str);
    println!("\nthe three best translations of the first sentence:");
    for best in translator.nbest(first, 3)? {
        println!("{:8.3}  {}", best.score, best.text);
    }
    Ok(())
}

/// Writes 500 generated German–English sentence pairs to a directory; returns the paths of the two files and five more
/// source sentences to translate.
fn generated(dir: &Path) -> Result<(PathBuf, PathBuf, Vec<String>)> {
    let mut corpus = Generator::new(1);
    let text = (0..5).map(|_| corpus.next(Part::Test, 1).source.join(" ")).collect();
    let (mut german, mut english) = (String::new(), String::new());
    for _ in 0..500 {
        let pair = corpus.next(Part::Train, 1);
        german += &format!("{}\n", pair.source.join(" "));
        english += &format!("{}\n", pair.targets[0].join(" "));
    }
    let (source, target) = (dir.join("train.de"), dir.join("train.en"));
    AtomicFile::write_all_to(&source, german.as_bytes())?;
    AtomicFile::write_all_to(&target, english.as_bytes())?;
    Ok((source, target, text))
}
