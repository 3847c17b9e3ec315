//! Extension module `luthier._luthier`: what the pure-Python package `luthier` is built on.
//!
//! Public classes, docstrings and checks of shapes are in Python; this crate converts between Python objects and the types of
//! the facade, runs long calls without the interpreter lock, and turns errors into `luthier.Error`.

#![allow(clippy::needless_pass_by_value, reason = "arguments are extracted from Python objects")]

mod call;
mod frame;
mod lists;
mod metric;
mod recipe;
mod translate;
mod tune;

use pyo3::prelude::*;

#[pymodule]
mod _luthier {
    #[pymodule_export]
    use super::{
        call::{Error, keyword},
        frame::{columns_of, stream_of},
        lists::{Builder, Lists, read_weights, write_weights},
        metric::{Metric, compare},
        recipe::{Recipe, algorithms},
        translate::{Translator, train},
        tune::{loss, tune},
    };

    #[pymodule_init]
    fn init(module: &super::Bound<'_, super::PyModule>) -> super::PyResult<()> {
        use super::PyModuleMethods as _;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
