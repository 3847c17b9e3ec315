//! `luthier generate`: a German–English toy corpus.

use super::{Common, Done};
use crate::talk::{Talk, thousands};
use luthier::{
    core::Error,
    generate::{Generator, Part},
    io::AtomicFile,
};
use serde_json::json;
use std::{fmt::Write as _, path::PathBuf, process::ExitCode};

/// Generate a German–English toy corpus (tokenised, lower case).
///
/// Each part has NAME.de, its translations NAME.en (or NAME.en0, NAME.en1, …) and the gold word alignment NAME.links of the
/// source and its first translation. No sentence of test or dev occurs in train.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Output directory.
    #[arg(long, short, value_name = "DIR", help_heading = "Output")]
    output: PathBuf,
    /// Number of training sentences.
    #[arg(long, value_name = "N", default_value_t = 5000, allow_negative_numbers = true)]
    train: u32,
    /// Number of development sentences.
    #[arg(long, value_name = "N", default_value_t = 500, allow_negative_numbers = true)]
    dev: u32,
    /// Number of test sentences.
    #[arg(long, value_name = "N", default_value_t = 500, allow_negative_numbers = true)]
    test: u32,
    /// Number of translations per sentence of dev and test, from 1 to 4.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=4))]
    references: u8,
}

pub(crate) fn run(args: &Args, common: &Common, talk: Talk) -> Done {
    std::fs::create_dir_all(&args.output)
        .map_err(|e| Error::io(args.output.display().to_string(), "create the directory", &e))?;
    let mut corpus = Generator::new(common.seed.unwrap_or(1));
    let parts = [
        (Part::Test, "test", args.test, args.references.into()),
        (Part::Dev, "dev", args.dev, args.references.into()),
        (Part::Train, "train", args.train, 1),
    ];
    let mut summary = Vec::new();
    // Later parts exclude the sentences of earlier ones, so that the test set is the same for any training size.
    for (part, name, sentences, references) in parts {
        let (mut source, mut links) = (String::new(), String::new());
        let mut targets = vec![String::new(); references];
        let mut words = 0;
        for _ in 0..sentences {
            let pair = corpus.next(part, references);
            words += pair.source.len();
            let _ = writeln!(source, "{}", pair.source.join(" "));
            for (text, target) in targets.iter_mut().zip(&pair.targets) {
                let _ = writeln!(text, "{}", target.join(" "));
            }
            let pairs: Vec<String> = pair.links[0].iter().map(|(s, t)| format!("{s}-{t}")).collect();
            let _ = writeln!(links, "{}", pairs.join(" "));
        }
        let write = |end: &str, text: &str| {
            AtomicFile::write_all_to(&args.output.join(format!("{name}.{end}")), text.as_bytes())
        };
        write("de", &source)?;
        write("links", &links)?;
        for (k, text) in targets.iter().enumerate() {
            write(&if references > 1 { format!("en{k}") } else { "en".to_owned() }, text)?;
        }
        summary.push(json!({"name": name, "sentences": sentences, "source_words": words}));
        talk.say(&format!(
            "{name}: {} sentences, {} German words",
            thousands(sentences as usize),
            thousands(words)
        ));
    }
    if common.json {
        super::print_json(&json!({"output": args.output, "parts": summary}))?;
    }
    Ok(ExitCode::SUCCESS)
}
