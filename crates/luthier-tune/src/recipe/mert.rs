//! Settings of MERT.

use super::{
    Algorithm, Context, RecipeInfo,
    parts::{LearnFrom, Shape, Stopping},
    range::{POSITIVE, check_count},
};
use crate::{
    Learner, Outcome, Schedule, SourceKind,
    certify::check_metric,
    mert::{CertifyLimits, Limits, LineSearch, Smoothing},
};
use luthier_core::{Error, FeatureKey, Result};
use luthier_metric::Metric;
use luthier_optim::Strategy;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr, time::Duration};

/// Minimum error rate training (Och 2003; Cer et al. 2008): exact line searches on the corpus score, from the
/// current weights and from random ones.
///
/// Suits up to about 50 dense features, with any metric; sparse features keep their weights. The learner is
/// [`LineSearch`]; the result is L1-normalised unless weights are fixed or bounded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "MERT"))]
#[serde(rename_all = "kebab-case", default)]
pub struct Mert {
    /// Stopping rule of the run.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub stopping: Stopping,
    /// Whether the algorithm learns from n-best lists or from forests.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub learn_from: LearnFrom,
    /// Search strategy: how starts and the directions of line searches are chosen [default: iterated; koehn on forests
    /// and with --smooth].
    #[cfg_attr(feature = "clap", arg(long, value_enum, help_heading = "MERT"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// Number of line searches after which the iterated strategy ends
    /// [default: 370 per free feature and at least 2,000; with a decoder 100 and 500; more for small pools].
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", help_heading = "MERT", value_parser = clap::value_parser!(u32).range(1..)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<u32>,
    /// Number of random starts [default: 45 for iterated, with a decoder 15; else 20; on forests 4].
    ///
    /// The current weights are always a start, too. With koehn, powell, random and simplex each weight of a random start
    /// is drawn uniformly: from its bounds if it has any, else from [0, 1] if the current weight is positive, [−1, 0] if
    /// negative, [−1, 1] if 0. With iterated it is drawn from a normal distribution in units of the feature's spread
    /// within lists, with the sign of the current weight; some starts on fixed lists have any sign, those with a decoder are near the
    /// current weights.
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", help_heading = "MERT", value_parser = clap::value_parser!(u32).range(..=1_000_000)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarts: Option<u32>,
    /// Number of rounds of restarts; later rounds restart near the best weights of the rounds before.
    #[cfg_attr(feature = "clap", arg(long, default_value_t = Mert::default().rounds, value_name = "N", help_heading = "MERT", value_parser = clap::value_parser!(u32).range(1..=1000)))]
    pub rounds: u32,
    /// Number of random directions that are searched besides the axes, at every move of koehn and where no axis gains in
    /// iterated [default: 2 for iterated, 0 for koehn; on forests 8, as in Watanabe 2012].
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", help_heading = "MERT"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random_directions: Option<u32>,
    /// Number of directions in a row without gain after which the random strategy stops.
    #[cfg_attr(feature = "clap", arg(long, default_value_t = Mert::default().direction_patience, value_name = "N", help_heading = "MERT"))]
    pub direction_patience: u32,
    /// Smoothing of plateaus in line searches (Cer et al. 2008, §3.2).
    #[cfg_attr(feature = "clap", command(flatten, next_help_heading = "MERT"))]
    #[serde(flatten)]
    pub smoothing: Smoothing,
    /// Features that keep their initial weights.
    ///
    /// A name without index, such as `TranslationModel0`, fixes all scores of that feature function.
    #[cfg_attr(feature = "clap", arg(long, num_args = 1.., value_name = "NAME", help_heading = "MERT"))]
    pub fix: Vec<String>,
    /// Smallest and largest weight of a feature, such as `lm=0,1`; repeatable.
    ///
    /// `lm=0,` (nothing after the comma) has no upper bound, `lm=,1` no lower one.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME=LOW,HIGH", help_heading = "MERT"))]
    pub bound: Vec<WeightBound>,
    /// Prove that no weights score higher on fixed lists, or print an upper bound of the score.
    ///
    /// The proof covers all weights that prefer the candidates they choose by a margin above 10⁻⁶, in features divided by
    /// their spread within lists. It is a search by branch and bound over the choices of candidates, which solves linear
    /// programs; it closes for pools of a few hundred candidates. For more than 64 lists only the bound of the oracle is
    /// computed, which is no measure of search error.
    #[cfg_attr(feature = "clap", arg(long, help_heading = "MERT"))]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub certify: bool,
    /// Number of linear programs after which --certify gives up [default: 20000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", help_heading = "MERT", requires = "certify", value_parser = clap::value_parser!(u32).range(1..)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certify_programs: Option<u32>,
    /// Number of seconds after which --certify gives up; the result then depends on the machine [default: no limit].
    #[cfg_attr(feature = "clap", arg(long, value_name = "S", allow_negative_numbers = true, help_heading = "MERT", requires = "certify", value_parser = super::range::flag::positive))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certify_seconds: Option<f64>,
    /// Constraints on the weights.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub shape: Shape,
}

impl Default for Mert {
    fn default() -> Self {
        Mert {
            stopping: Stopping::default(),
            shape: Shape::default(),
            learn_from: LearnFrom::default(),
            strategy: None,
            budget: None,
            restarts: None,
            rounds: 1,
            random_directions: None,
            direction_patience: 30,
            smoothing: Smoothing::NONE,
            fix: Vec::new(),
            bound: Vec::new(),
            certify: false,
            certify_programs: None,
            certify_seconds: None,
        }
    }
}

/// Smallest and largest weight of a feature or of a block of features, written `lm=0,1`, or `lm=0,` for no
/// upper bound.
///
/// ```
/// use luthier_tune::recipe::WeightBound;
/// let bound: WeightBound = "lm=0,".parse().unwrap();
/// assert_eq!((bound.low, bound.high), (0.0, f64::INFINITY));
/// assert!("lm=1,0".parse::<WeightBound>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WeightBound {
    /// Name of the feature, or of a block: `TM` bounds `TM[0]`, `TM[1]` and so on.
    pub name: String,
    /// Smallest weight; −∞ for no lower bound.
    pub low: f64,
    /// Largest weight; ∞ for no upper bound.
    pub high: f64,
}

impl FromStr for WeightBound {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let number = |word: &str, open: f64| -> Option<f64> {
            if word.trim().is_empty() {
                return Some(open);
            }
            word.trim().parse().ok().filter(|v: &f64| v.is_finite())
        };
        let parsed = || -> Option<WeightBound> {
            let (name, range) = text.rsplit_once('=')?;
            let (low, high) = range.split_once(',')?;
            let (low, high) = (number(low, f64::NEG_INFINITY)?, number(high, f64::INFINITY)?);
            (low < high && !name.is_empty()).then(|| WeightBound { name: name.to_owned(), low, high })
        };
        parsed().ok_or_else(|| Error::new("expected NAME=LOW,HIGH with LOW below HIGH"))
    }
}

impl fmt::Display for WeightBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |v: f64| if v.is_finite() { v.to_string() } else { String::new() };
        write!(f, "{}={},{}", self.name, end(self.low), end(self.high))
    }
}

impl TryFrom<String> for WeightBound {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<WeightBound> for String {
    fn from(bound: WeightBound) -> Self {
        bound.to_string()
    }
}

/// Default number of random starts on n-best lists, by the iterated and by the other strategies.
const ITERATED_RESTARTS: u32 = 15;
/// The same on fixed lists, which are searched once.
const FIXED_RESTARTS: u32 = 45;
const RESTARTS: u32 = 20;
/// Default number of random directions per pass of the iterated strategy.
const ITERATED_DIRECTIONS: u32 = 2;

const INFO: RecipeInfo = RecipeInfo {
    name: "mert",
    summary: "minimum error rate training: exact line searches on the corpus score, with restarts",
    papers: "Och 2003; Cer, Jurafsky and Manning 2008",
    metrics: "all",
    note: "the corpus score itself, from summed statistics; up to about 50 features",
    has_objective: false,
};

impl Mert {
    /// Builds the MERT learner from resolved settings.
    pub(crate) fn line_search(&self, metric: Metric, seed: u64) -> LineSearch {
        LineSearch {
            metric,
            strategy: self.strategy.unwrap_or_default(),
            random_directions: self.random_directions.unwrap_or(ITERATED_DIRECTIONS) as usize,
            budget: self.budget,
            fixed_lists: false,
            local: false,
            patience: self.direction_patience as usize,
            smoothing: self.smoothing,
            restarts: self.restarts.unwrap_or(ITERATED_RESTARTS),
            rounds: self.rounds,
            limits: self.limits(),
            certify: self.certify.then(|| self.certify_limits()),
            seed,
        }
    }

    fn certify_limits(&self) -> CertifyLimits {
        let usual = CertifyLimits::default();
        CertifyLimits {
            programs: self.certify_programs.map_or(usual.programs, u64::from),
            time: self.certify_seconds.map(Duration::from_secs_f64),
            ..usual
        }
    }

    fn limits(&self) -> Limits {
        let mut limits = Limits {
            fixed: self.fix.iter().flat_map(|n| keys(n)).collect(),
            nonnegative: self.shape.nonnegative(),
            ..Limits::default()
        };
        for b in &self.bound {
            limits.bounds.extend(keys(&b.name).map(|k| (k, (b.low, b.high))));
        }
        limits
    }
}

/// Keys of the features that a name can denote: the feature itself, and the features `name[0]` to `name[63]` of
/// a block.
pub(crate) fn keys(name: &str) -> impl Iterator<Item = FeatureKey> {
    let block = (0..64).map(move |i| format!("{name}[{i}]"));
    std::iter::once(name.to_owned()).chain(block).map(|n| FeatureKey::of(&n))
}

impl Algorithm for Mert {
    fn info(&self) -> &'static RecipeInfo {
        &INFO
    }

    fn resolve(&mut self, context: &Context<'_>) -> Result<()> {
        self.learn_from.resolve(INFO.name, false, context)?;
        self.stopping.resolve_batch(context, 25)?;
        check_count("rounds", self.rounds, 1, 1000)?;
        check_count("restarts", self.restarts, 0, 1_000_000)?;
        if self.smoothing.window.is_multiple_of(2) {
            return Err(Error::new(format!("window is {}, expected an odd number", self.smoothing.window)));
        }
        let usual = self.learn_from.is_forest() || !self.smoothing.is_none();
        let usual = if usual { Strategy::Koehn } else { Strategy::Iterated };
        let strategy = *self.strategy.get_or_insert(usual);
        if strategy == Strategy::Iterated && self.learn_from.is_forest() {
            return Err(Error::new("--strategy iterated needs n-best lists").hint("leave out --on forest"));
        }
        if strategy == Strategy::Iterated && !self.smoothing.is_none() {
            return Err(Error::new("--smooth has no effect with --strategy iterated")
                .hint("use koehn, powell or random"));
        }
        if strategy == Strategy::Iterated && self.rounds > 1 {
            return Err(Error::new("--rounds has no effect with --strategy iterated").hint("use --budget"));
        }
        if strategy != Strategy::Iterated && self.budget.is_some() {
            return Err(Error::new("--budget applies only to --strategy iterated"));
        }
        if strategy == Strategy::Simplex && !self.smoothing.is_none() {
            return Err(Error::new(
                "--smooth applies to line searches, which --strategy simplex does not use",
            )
            .hint("use another --strategy"));
        }
        if self.certify && context.source != SourceKind::Fixed {
            return Err(Error::new("--certify needs fixed lists").hint("give them with --nbest"));
        }
        if self.certify {
            check_metric(context.metric)?;
        }
        if self.certify && self.limits().any() {
            let flags = [
                (!self.fix.is_empty(), "--fix"),
                (!self.bound.is_empty(), "--bound"),
                (!self.shape.nonnegative.is_empty(), "--nonnegative"),
            ];
            let given: Vec<&str> = flags.iter().filter(|f| f.0).map(|f| f.1).collect();
            return Err(Error::new(format!("--certify does not go with {}", given.join(" and ")))
                .hint("leave out --certify, or the constraints on the weights"));
        }
        POSITIVE.check("certify-seconds", self.certify_seconds)?;
        check_count("certify-programs", self.certify_programs, 1, u32::MAX)?;
        if let Some(odd) = self.bound.iter().find(|b| b.low.is_nan() || b.high.is_nan() || b.low >= b.high) {
            let WeightBound { name, low, high } = odd;
            return Err(Error::new(format!("the bound of {name} is {low},{high}, expected LOW below HIGH")));
        }
        let signs = self.shape.nonnegative();
        let negative = |b: &&WeightBound| b.high <= 0.0 || (b.low < 0.0 && b.low.is_finite());
        let signed = |b: &&WeightBound| keys(&b.name).any(|k| signs.contains(k));
        if let Some(odd) = self.bound.iter().filter(negative).find(signed) {
            return Err(Error::new(format!("--bound {odd} contradicts --nonnegative"))
                .hint("leave out one of them, or give bounds from 0 up"));
        }
        if let Some(both) = self.bound.iter().find(|b| self.fix.contains(&b.name)) {
            return Err(Error::new(format!("{} is both fixed and bounded", both.name))
                .hint("use --fix or --bound, not both"));
        }
        let (restarts, directions) = match strategy {
            _ if self.learn_from.is_forest() => (4, 8),
            Strategy::Iterated if context.source == SourceKind::Fixed => {
                (FIXED_RESTARTS, ITERATED_DIRECTIONS)
            }
            Strategy::Iterated => (ITERATED_RESTARTS, ITERATED_DIRECTIONS),
            _ => (RESTARTS, 0),
        };
        self.restarts.get_or_insert(restarts);
        self.random_directions.get_or_insert(directions);
        Ok(())
    }

    fn learner(&self, context: &Context<'_>) -> Box<dyn Learner> {
        let search = self.line_search(context.metric.clone(), context.seed);
        Box::new(LineSearch { fixed_lists: context.source == SourceKind::Fixed, ..search })
    }

    fn local_learner(&self, context: &Context<'_>) -> Box<dyn Learner> {
        let search = self.line_search(context.metric.clone(), context.seed);
        let strategy = if search.smoothing.is_none() { Strategy::Iterated } else { search.strategy };
        Box::new(LineSearch {
            fixed_lists: true,
            local: true,
            restarts: 0,
            certify: None,
            strategy,
            ..search
        })
    }

    fn schedule(&self, _: &Context<'_>) -> Schedule {
        self.stopping.schedule()
    }

    fn learn_from(&self) -> Option<&LearnFrom> {
        Some(&self.learn_from)
    }

    fn learns_sparse(&self) -> bool {
        false
    }

    fn features(&self) -> Vec<&str> {
        self.fix.iter().chain(self.bound.iter().map(|b| &b.name)).map(String::as_str).collect()
    }

    /// Names the weights that ended at one of their bounds.
    fn remarks(&self, outcome: &Outcome, _: usize) -> Vec<String> {
        let limits = self.limits();
        let at = |(name, value): (&str, f64)| {
            let (low, high) = *limits.bounds.get(&FeatureKey::of(name))?;
            let room = 1e-6 * (1.0 + value.abs());
            (value - low <= room || high - value <= room).then(|| {
                format!("the weight of {name} is {value}, at its bound; a wider bound may score better")
            })
        };
        outcome.weights.iter().filter_map(at).collect()
    }
}
