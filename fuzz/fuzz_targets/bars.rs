#![no_main]
//! Reader of n-best lists: bars.

use libfuzzer_sys::fuzz_target;
#[allow(unused_imports)]
use luthier_io::nbest::Dialect;

#[path = "../list.rs"]
mod candidates;

fuzz_target!(|bytes: &[u8]| list::read(bytes, Some(Dialect::Bars)));
