//! What steers a search besides the model.

use luthier_forest::Stateful;

/// A state that the search keeps beside its own, as [`Stateful`] does for forests: it adds to scores, and it may forbid
/// words. Words are numbers of [`Decoder::numbers`](crate::Decoder::numbers); the state before the first word is that of an
/// edge without tails and words.
pub trait Guide: Stateful {
    /// Whether it has no opinion at all.
    const FREE: bool = false;

    /// What a phrase may be worth by itself; nothing if it can be of no use.
    fn option(&self, _words: &[u32]) -> Option<f64> {
        Some(0.0)
    }

    /// What the rest may add to a state at best, when this share of the source has been translated.
    fn future(&self, _state: &Self::State, _share: f64) -> f64 {
        0.0
    }
}

/// No guide.
#[derive(Debug, Clone, Copy, Default)]
pub struct Free;

impl Stateful for Free {
    type State = ();

    fn edge(&self, _: &[u32], _: &[&()], _: &mut Vec<(u32, f32)>) -> Option<((), f64)> {
        Some(((), 0.0))
    }
}

impl Guide for Free {
    const FREE: bool = true;
}
