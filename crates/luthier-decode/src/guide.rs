//! What steers a search besides the model.

use luthier_forest::Stateful;

/// What steers a search besides the model: forced decoding, say. It keeps a state beside the search's own, as [`Stateful`]
/// does for forests; it adds to scores, and it may forbid words. Words are numbers of
/// [`Decoder::numbers`](crate::Decoder::numbers); the state before the first word is that of an edge without tails and words.
///
/// A guide that forbids one word:
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
    /// Whether the guide never adds to scores and never forbids a word, so that the search need not ask it.
    const FREE: bool = false;

    /// An estimate of what a phrase with these words adds to the score, for choosing among the translations of a source
    /// phrase; nothing if the phrase is forbidden everywhere.
    fn option(&self, _words: &[u32]) -> Option<f64> {
        Some(0.0)
    }

    /// An upper estimate of what the rest of the sentence adds to the score after a state, when this share of the source,
    /// from 0 to 1, has been translated.
    fn future(&self, _state: &Self::State, _share: f64) -> f64 {
        0.0
    }
}

/// The guide of an unguided search: it adds nothing and forbids nothing.
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
