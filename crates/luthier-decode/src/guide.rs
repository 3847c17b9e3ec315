//! Additional scores and constraints for a search, such as forced decoding.

use luthier_forest::Stateful;

/// Additional score and constraint of a phrase-based search, such as forced decoding to a reference. A guide is a
/// [`Stateful`] feature: hypotheses carry its state, it adds to their scores, and it can forbid words. Words are
/// numbered as by [`Decoder::numbers`](crate::Decoder::numbers). The initial state is that of an edge without tails
/// and words.
///
/// For example, a guide that forbids one word:
///
/// ```
/// use luthier_core::{Progress, Weights};
/// use luthier_decode::{Decoder, Guide, Limits, Model};
/// use luthier_forest::Stateful;
///
/// struct Without(u32);
///
/// impl Stateful for Without {
///     type State = ();
///     fn edge(&self, target: &[u32], _: &[&()], _: &mut Vec<(u32, f32)>) -> Option<((), f64)> {
///         (!target.contains(&self.0)).then_some(((), 0.0))
///     }
/// }
///
/// impl Guide for Without {}
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("table");
/// # let pairs = "das ||| the ||| 0.5\ndas ||| that ||| 0.25\ndas haus ||| the house ||| 0.8\nhaus ||| house ||| 0.9\n";
/// # std::fs::write(&path, pairs).unwrap();
/// # let model = Model::new(luthier_table::read_text(&path, None, Progress::NONE).unwrap(), Vec::new(), false).unwrap();
/// let weights = Weights::parse("w", "TranslationModel0 1\nDistortion0 0.3\n").unwrap();
/// let decoder = Decoder::new(&model, &weights, Limits::default());
/// let the = decoder.numbers("das haus", &["the"])[0].unwrap();
/// let found = decoder.guided("das haus", &Without(the), Progress::NONE).unwrap();
/// assert_eq!(found.best().unwrap().0, "that house");
/// ```
pub trait Guide: Stateful {
    /// Whether the guide never adds to scores and never forbids words, so that the search need not call it.
    const FREE: bool = false;

    /// Estimates what a target phrase with these words adds to the score, for selecting the best translations of a
    /// source phrase; `None` if the phrase is forbidden in every context.
    fn option(&self, _words: &[u32]) -> Option<f64> {
        Some(0.0)
    }

    /// Optimistic estimate of what the rest of the sentence adds to the score after a state. The second argument is
    /// the fraction of source words translated so far, from 0 to 1.
    fn future(&self, _state: &Self::State, _share: f64) -> f64 {
        0.0
    }
}

/// The neutral guide: it adds nothing to scores and forbids nothing.
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
