//! The tuning algorithms with all settings that decide their results.
//!
//! A [`Recipe`] is an algorithm as a struct of settings. `Default` holds the recommended values; where a
//! paper's value differs, the setting's documentation says so. Defaults that depend on the source are `None`
//! until [`Recipe::resolve`]. [`Recipe::build`] composes a learner and a schedule, and fails on settings that
//! contradict each other. The command line derives its flags from these structs (Cargo feature `clap`), run
//! directories store them, and library users fill them in directly.
//!
//! Adding an algorithm takes a file in `recipe/` with its settings and their implementation of `Algorithm`; in this
//! file a `mod`, a variant of [`Recipe`] and a line in `recipes!`; and, if no existing learner fits, a new learner,
//! preferably as a submodule of the new file. Flags, help, `run.toml`, `--json`, experiments and the library facade
//! are derived from these.
//!
//! ```
//! use luthier_tune::{SourceKind, recipe::{Context, Mert, Recipe}, mert::Smoothing};
//! let metric = "bleu".parse().unwrap();
//! let context = Context { metric: &metric, seed: 1, source: SourceKind::Fixed, references: None };
//! let recipe = Recipe::Mert(Mert { budget: Some(500), ..Mert::default() });
//! let Recipe::Mert(resolved) = recipe.resolve(&context).unwrap() else { unreachable!() };
//! assert_eq!((resolved.restarts, resolved.budget), (Some(45), Some(500)));
//! let wrong = Recipe::Mert(Mert { smoothing: Smoothing::average(4), ..Mert::default() });
//! assert_eq!(wrong.resolve(&context).unwrap_err().to_string(), "window is 4, expected an odd number");
//! ```

mod apro;
mod mert;
mod mira;
mod oro;
mod parts;
mod perceptron;
mod pro;
mod range;

#[cfg(feature = "clap")]
pub(crate) use range::flag;
mod risk;
mod softmax;
mod xbleu;

pub use algorithms::*;
pub use mert::WeightBound;
pub use mira::Constraints;
pub use parts::{
    Fit, Gain, Interpolation, L1Setting, LearnFrom, On, Online, SELECT_SHARE, Shape, Soft, Stopping,
    Surrogates,
};

use crate::{
    Learner, Outcome, Schedule, SourceKind,
    learner::{Loss, Minimize},
    pairs::GainBy,
};
use luthier_core::{Error, FeatureKey, Result, Weights};
use luthier_metric::{Metric, SentenceSmoothing};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A tuning algorithm with all settings that decide its result.
///
/// ```
/// use luthier_tune::recipe::{
///     Apro, Constraints, Context, Mert, Mira, Oro, Perceptron, Pro, Recipe, Risk, Softmax, Xbleu,
/// };
/// use luthier_tune::{SourceKind, loss::Clip, pairs::OracleBy};
/// let metric = "bleu".parse().unwrap();
/// let context = Context { metric: &metric, seed: 1, source: SourceKind::Fixed, references: None };
/// let online = |recipe: Recipe| recipe.build(&context).unwrap().schedule.online.is_some();
///
/// assert!(!online(Recipe::Mert(Mert { restarts: Some(5), ..Mert::default() })));
/// assert!(!online(Recipe::Pro(Pro { keep: 100, ..Pro::default() })));
/// assert!(!online(Recipe::Apro(Apro { c: Some(0.1), ..Apro::default() })));
/// assert!(!online(Recipe::Softmax(Softmax { oracle: OracleBy::Sentence, ..Softmax::default() })));
/// assert!(!online(Recipe::Xbleu(Xbleu { clip: Clip::Candidate, ..Xbleu::default() })));
/// assert!(!online(Recipe::Risk(Risk::default())));
/// assert!(online(Recipe::Mira(Mira { constraints: Constraints::Oracle, ..Mira::default() })));
/// assert!(online(Recipe::Perceptron(Perceptron::default())));
/// assert!(online(Recipe::Oro(Oro { optimized: true, ..Oro::default() })));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Subcommand))]
#[serde(tag = "algorithm", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Recipe {
    /// Minimum error rate training: exact line searches on the corpus score, with restarts (Och 2003).
    Mert(Mert),
    /// Pairwise ranking optimisation: logistic regression on sampled pairs of candidates (Hopkins and May 2011).
    Pro(Pro),
    /// All-pairs ranking optimisation: squared hinge loss over all pairs of candidates, deterministic (Dreyer
    /// and Dong 2015).
    Apro(Apro),
    /// Margin-infused relaxed algorithm: hope and fear over the pool (kbmira), or online with surrogates or
    /// oracles (Cherry and Foster 2012; Arun and Koehn 2007; Watanabe 2012).
    Mira(Mira),
    /// Averaged perceptron, online: updates from the guess towards the reference or a surrogate (Arun and Koehn
    /// 2007).
    Perceptron(Perceptron),
    /// Online rank optimisation (ORO), or O-ORO with --optimized (Watanabe 2012).
    Oro(Oro),
    /// Maximum likelihood of the oracles among all candidates (Watanabe 2012).
    Softmax(Softmax),
    /// Expected BLEU: BLEU of expected n-gram counts (Rosti et al. 2010, 2011).
    Xbleu(Xbleu),
    /// Minimum risk training: expected sentence score (Smith and Eisner 2006).
    Risk(Risk),
}

/// Description of an algorithm that does not depend on its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecipeInfo {
    /// Name of the algorithm in commands and files: `mert`.
    pub name: &'static str,
    /// What the algorithm does, in one line.
    pub summary: &'static str,
    /// Papers that proposed the algorithm, as author and year.
    pub papers: &'static str,
    /// Metrics that the algorithm works with: `all` or a name.
    pub metrics: &'static str,
    /// How the algorithm uses the metric, or why it works with no other.
    pub note: &'static str,
    /// Whether the algorithm minimises an objective, which [`Recipe::objective`] returns.
    pub has_objective: bool,
}

/// Metric, seed and source that a recipe is resolved for.
#[derive(Debug, Clone)]
pub struct Context<'a> {
    /// Metric to tune for.
    pub metric: &'a Metric,
    /// Seed of the algorithm's random numbers.
    pub seed: u64,
    /// Kind of source that candidates come from.
    pub source: SourceKind,
    /// References of each segment; `None` where only the metric statistics of candidates are known.
    pub references: Option<Arc<Vec<Vec<String>>>>,
}

/// An algorithm ready to run: resolved settings, learner and schedule, as [`Recipe::build`] returns them.
pub struct Tuner {
    /// Recipe with every setting resolved, as run directories store it.
    pub recipe: Recipe,
    /// Learner with the resolved settings.
    pub learner: Box<dyn Learner>,
    /// Schedule with the resolved settings.
    pub schedule: Schedule,
}

/// Interface between [`Recipe`] and the settings of one algorithm.
trait Algorithm {
    /// Returns name, summary, papers and metrics of the algorithm.
    fn info(&self) -> &'static RecipeInfo;
    /// Fills in the defaults that depend on the context. Fails on settings that are out of range or contradict each
    /// other or the context.
    fn resolve(&mut self, context: &Context<'_>) -> Result<()>;
    /// Builds the learner; the settings must have been resolved.
    fn learner(&self, context: &Context<'_>) -> Box<dyn Learner>;
    /// Builds the schedule; the settings must have been resolved.
    fn schedule(&self, context: &Context<'_>) -> Schedule;
    /// Returns the choice between n-best lists and forests; `None` if the algorithm learns from lists only.
    fn learn_from(&self) -> Option<&LearnFrom> {
        None
    }
    /// Returns whether the algorithm learns weights of sparse features.
    fn learns_sparse(&self) -> bool {
        true
    }
    /// Returns the smoothing of sentence BLEU for a decoder's search for the reachable translation with the highest
    /// score.
    fn sentence_smoothing(&self) -> SentenceSmoothing {
        SentenceSmoothing::default()
    }
    /// Returns the names of the features that the settings mention, such as fixed or bounded ones.
    fn features(&self) -> Vec<&str> {
        Vec::new()
    }
    /// Builds a learner that searches near its start only, for many runs on similar data; the settings must have been
    /// resolved.
    fn local_learner(&self, context: &Context<'_>) -> Box<dyn Learner> {
        self.learner(context)
    }
    /// Returns whether an L1 penalty is set.
    fn has_l1(&self) -> bool {
        false
    }
    /// Returns the settings of the minimiser of a loss, with its L1 penalty; `None` without such a loss.
    fn fit_mut(&mut self) -> Option<&mut Fit> {
        None
    }
    /// Returns whether the loss is smooth, as OWL-QN needs it.
    fn is_smooth(&self) -> bool {
        true
    }
    /// Returns whether several values of γ are annealed.
    fn is_annealed(&self) -> bool {
        false
    }
    /// Returns whether the objective is convex, so that the start does not matter.
    fn is_convex(&self) -> bool {
        false
    }
    /// Returns the objective that is minimised; `None` if the algorithm minimises none.
    fn objective(&self, _: &Context<'_>) -> Option<Minimize> {
        None
    }
    /// Returns the share of segments to hold out for selection, if it is set; `None` for batch learning.
    fn select_share(&self) -> Option<f64> {
        None
    }
    /// Returns advice to the user about settings that do not suit the initial weights.
    fn cautions(&self, _initial: &Weights) -> Vec<String> {
        Vec::new()
    }
    /// Returns advice to the user about the tuned weights; the number is the mean number of candidates per segment.
    fn remarks(&self, _: &Outcome, _length: usize) -> Vec<String> {
        Vec::new()
    }
}

/// Generates from the list of algorithms the module with their structs, their conversions to [`Recipe`] and the
/// methods that dispatch on the variant.
macro_rules! recipes {
    ($($module:ident $name:ident),* $(,)?) => {
        /// One struct of settings per algorithm.
        pub mod algorithms {
            $(pub use super::$module::$name;)*
        }

        $(impl From<$name> for Recipe {
            fn from(settings: $name) -> Self {
                Recipe::$name(settings)
            }
        })*

        impl Recipe {
            /// Returns all algorithms with their default settings.
            pub fn all() -> Vec<Recipe> {
                vec![$(Recipe::$name($name::default())),*]
            }

            /// Returns the maximum number of iterations; `None` until the recipe is resolved, unless it was set.
            pub fn iterations(&self) -> Option<u32> {
                match self { $(Recipe::$name(settings) => settings.stopping.iterations),* }
            }

            /// Returns the constraints on the weights.
            pub fn shape(&self) -> &Shape {
                match self { $(Recipe::$name(settings) => &settings.shape),* }
            }

            fn shape_mut(&mut self) -> &mut Shape {
                match self { $(Recipe::$name(settings) => &mut settings.shape),* }
            }

            fn algorithm(&self) -> &dyn Algorithm {
                match self { $(Recipe::$name(settings) => settings),* }
            }

            fn algorithm_mut(&mut self) -> &mut dyn Algorithm {
                match self { $(Recipe::$name(settings) => settings),* }
            }
        }
    };
}

recipes! {
    mert Mert,
    pro Pro,
    apro Apro,
    mira Mira,
    perceptron Perceptron,
    oro Oro,
    softmax Softmax,
    xbleu Xbleu,
    risk Risk,
}

impl Recipe {
    /// Returns the algorithm with a name, such as `mira`, with its default settings. Fails on an unknown
    /// name.
    ///
    /// ```
    /// use luthier_tune::recipe::Recipe;
    /// assert_eq!(Recipe::named("mira").unwrap().info().name, "mira");
    /// assert!(Recipe::named("mera").unwrap_err().to_string().contains("mert, pro, apro"));
    /// ```
    pub fn named(name: &str) -> Result<Self> {
        Self::all().into_iter().find(|r| r.info().name == name).ok_or_else(|| {
            let names: Vec<&str> = Self::all().iter().map(|r| r.info().name).collect();
            Error::new(format!("no algorithm is named {name}")).hint(format!("known: {}", names.join(", ")))
        })
    }

    /// Returns name, summary, papers and metrics of the algorithm.
    pub fn info(&self) -> &'static RecipeInfo {
        self.algorithm().info()
    }

    /// Returns the recipe with every setting filled in that depends on metric or source. Fails on settings
    /// that are out of range or contradict each other or the context.
    pub fn resolve(&self, context: &Context<'_>) -> Result<Recipe> {
        let mut recipe = self.clone();
        recipe.algorithm_mut().resolve(context)?;
        recipe.resolve_shape()?;
        Ok(recipe)
    }

    /// Sets what an L1 penalty implies. Fails if constraints do not go with other settings.
    fn resolve_shape(&mut self) -> Result<()> {
        let (penalised, smooth) = (self.algorithm().has_l1(), self.algorithm().is_smooth());
        let forests = self.algorithm().learn_from().is_some_and(LearnFrom::is_forest);
        let signs = !self.shape().nonnegative.is_empty();
        let is_mert = matches!(self, Recipe::Mert(_));
        let flag = [
            (penalised, "--l1"),
            (self.shape().standardize, "--standardize"),
            (signs && !is_mert, "--nonnegative"),
        ];
        if let Some((_, flag)) = flag.iter().find(|(given, _)| *given && forests) {
            return Err(Error::new(format!("{flag} needs n-best lists")).hint("leave out --on forest"));
        }
        if !smooth && (penalised || signs) {
            let flag = if penalised { "--l1" } else { "--nonnegative" };
            return Err(Error::new(format!("{flag} needs a smooth loss")).hint("use --loss logistic"));
        }
        if penalised && self.algorithm().is_annealed() {
            return Err(
                Error::new("--l1 does not go with several values of --gamma").hint("give one of them")
            );
        }
        if let Recipe::Mert(mert) = self
            && mert.shape.standardize
            && !(mert.fix.is_empty() && mert.bound.is_empty())
        {
            return Err(
                Error::new("--standardize does not go with --fix and --bound").hint("leave one of them out")
            );
        }
        self.shape_mut().standardize |= penalised;
        Ok(())
    }

    /// Resolves the settings and composes a learner and a schedule from them. Fails as [`Recipe::resolve`]
    /// does.
    pub fn build(&self, context: &Context<'_>) -> Result<Tuner> {
        let recipe = self.resolve(context)?;
        let algorithm = recipe.algorithm();
        let (learner, schedule) = (algorithm.learner(context), algorithm.schedule(context));
        let learner = recipe.shape().wrap(learner);
        // Initial weights do not have the zeros of an L1 penalty.
        let schedule = Schedule { learned_only: algorithm.has_l1(), ..schedule };
        Ok(Tuner { recipe, learner, schedule })
    }

    /// Returns the recipe with a given weight of the L1 penalty where it would choose one by folds.
    ///
    /// ```
    /// use luthier_tune::recipe::{Fit, L1Setting, Pro, Recipe};
    /// let by_folds = Recipe::Pro(Pro { fit: Fit { l1: Some(L1Setting(None)), ..Fit::default() }, ..Pro::default() });
    /// let Recipe::Pro(pro) = by_folds.with_l1(Some(2.5)) else { unreachable!() };
    /// assert_eq!(pro.fit.l1, Some(L1Setting(Some(2.5))));
    /// assert_eq!(Recipe::Pro(Pro::default()).with_l1(Some(2.5)), Recipe::Pro(Pro::default()));
    /// ```
    #[must_use]
    pub fn with_l1(&self, value: Option<f64>) -> Recipe {
        let mut recipe = self.clone();
        let fit = recipe.algorithm_mut().fit_mut();
        if let (Some(value), Some(setting)) = (value, fit.and_then(|fit| fit.l1.as_mut()))
            && setting.0.is_none()
        {
            setting.0 = Some(value);
        }
        recipe
    }

    /// Composes a learner that searches near its start only, for many runs on similar data. The settings must have been
    /// resolved.
    pub(crate) fn build_local(&self, context: &Context<'_>) -> Tuner {
        let algorithm = self.algorithm();
        let (learner, schedule) = (algorithm.local_learner(context), algorithm.schedule(context));
        let learner = self.shape().wrap(learner);
        Tuner { recipe: self.clone(), learner, schedule }
    }

    /// Returns whether the algorithm minimises a convex objective, so that the result does not depend on the start.
    pub(crate) fn is_convex(&self) -> bool {
        self.algorithm().is_convex()
    }

    /// Returns whether bootstrap intervals of the weights are confidence intervals. For MERT, which maximises a step
    /// function, they are not.
    pub(crate) fn is_consistent(&self) -> bool {
        !matches!(self, Recipe::Mert(_))
    }

    /// Returns the objective that the algorithm minimises, with resolved settings. Fails as
    /// [`Recipe::resolve`] does, and for an algorithm that minimises none.
    pub fn objective(&self, context: &Context<'_>) -> Result<Minimize> {
        let recipe = self.resolve(context)?;
        recipe.algorithm().objective(context).ok_or_else(|| {
            let minimised: Vec<&str> =
                Self::all().iter().map(Recipe::info).filter(|i| i.has_objective).map(|i| i.name).collect();
            Error::new(format!("{} does not minimise an objective", self.info().name))
                .hint(format!("these algorithms do: {}", minimised.join(", ")))
        })
    }

    /// Returns the number of edges per source word that forests are pruned to; `None` if the algorithm learns
    /// from n-best lists.
    pub fn forest_density(&self) -> Option<usize> {
        let forests = self.algorithm().learn_from().filter(|e| e.is_forest())?;
        Some(forests.density.unwrap_or(parts::DENSITY) as usize)
    }

    /// Returns whether the algorithm learns weights of sparse features; MERT does not.
    pub fn learns_sparse(&self) -> bool {
        self.algorithm().learns_sparse()
    }

    /// Returns the smoothing of sentence BLEU for a decoder's search for the reachable translation with the
    /// highest score.
    pub fn sentence_smoothing(&self) -> SentenceSmoothing {
        self.algorithm().sentence_smoothing()
    }

    /// Returns the share of segments to hold out for selection, if it is set; `None` until the recipe is resolved, and for
    /// batch learning.
    pub fn select_share(&self) -> Option<f64> {
        self.algorithm().select_share()
    }

    /// Returns advice to the user about settings that do not suit the initial weights, before anything is learned; the
    /// settings must have been resolved.
    pub fn cautions(&self, initial: &Weights) -> Vec<String> {
        self.algorithm().cautions(initial)
    }

    /// Returns advice to the user about the tuned weights; `length` is the mean number of candidates per
    /// segment.
    pub fn remarks(&self, outcome: &Outcome, length: usize) -> Vec<String> {
        let mut remarks = self.algorithm().remarks(outcome, length);
        // Without a penalty the initial weights would be kept.
        if self.algorithm().has_l1() && outcome.score < outcome.initial {
            remarks.push(
                "the weights that were learned with --l1 score worse than the initial ones; try a smaller --l1"
                    .to_owned(),
            );
        }
        remarks
    }

    /// Fails unless every feature that the settings name, such as a fixed or bounded one, is among `names`.
    pub fn check_features(&self, names: &[String]) -> Result<()> {
        let known = |key: FeatureKey| names.iter().any(|n| FeatureKey::of(n) == key);
        let limited = self.algorithm().features().into_iter().map(|name| (name, "--fix or --bound"));
        let signs = self.shape().nonnegative.iter().filter(|name| *name != parts::ALL);
        let signs = signs.map(|name| (name.as_str(), "--nonnegative"));
        match limited.chain(signs).find(|(name, _)| !mert::keys(name).any(known)) {
            None => Ok(()),
            Some((name, flag)) => {
                let some = names.iter().take(20).cloned().collect::<Vec<_>>().join(", ");
                let near = names.iter().find(|n| luthier_metric::edit_distance(n, name) <= 2);
                let guess = near.map(|n| format!("; did you mean {n}?")).unwrap_or_default();
                Err(Error::new(format!("{flag} names `{name}`, which is not a feature"))
                    .hint(format!("the features are {some}{guess}")))
            }
        }
    }
}

impl Soft {
    /// Builds the learner that minimises `loss` with these γ and λ and this stopping rule.
    fn minimize(
        &self,
        loss: Loss,
        plus_one: SentenceSmoothing,
        shape: &Shape,
        context: &Context<'_>,
    ) -> Minimize {
        Minimize {
            metric: context.metric.clone(),
            loss,
            lambda: self.lambda,
            gamma: self.gamma.clone(),
            plus_one,
            gain: GainBy::Sentence,
            l1: self.fit.l1(),
            nonnegative: shape.nonnegative(),
            limit: self.fit.limit(),
            seed: context.seed,
        }
    }
}
