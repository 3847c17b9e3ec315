#![no_main]
//! Reader of weights files and Moses configurations.

use libfuzzer_sys::fuzz_target;
use luthier_core::Weights;
use luthier_io::{moses_ini, parse_weights};

fuzz_target!(|text: &str| {
    if let Ok(weights) = parse_weights("fuzz", text) {
        let again = Weights::parse("again", &weights.to_text(&[]));
        assert!(again.is_ok_and(|w| w == weights));
        let _ = moses_ini::replace("fuzz", text, &weights);
    }
});
