//! `luthier tune mert`.

use super::{Common, Done, Input, Plan, Settings, Talk, go, metric_of};
use crate::command::losses::{On as _, OnArgs};
use luthier::{
    core::{Error, FeatureKey},
    optim::Strategy,
    tune::{Limits, LineSearch, Outcome, Schedule, Smoothing},
};
use std::sync::Arc;

#[derive(Debug, clap::Args)]
#[command(after_help = crate::command::METRICS_HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    on: OnArgs,
    /// How a start climbs.
    #[arg(long, value_enum, default_value_t = StrategyName::Koehn, help_heading = "MERT")]
    strategy: StrategyName,
    /// Random starts besides the current weights, in each round; they keep the signs of the current weights [default: 20; 4
    /// on forests].
    #[arg(long, value_name = "N", help_heading = "MERT", value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    restarts: Option<u32>,
    /// Rounds of restarts; from the second on they lie near the best so far.
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = "MERT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Random directions that koehn tries besides the axes [default: 0; 8 on forests].
    #[arg(long, value_name = "N", help_heading = "MERT")]
    random_directions: Option<usize>,
    /// Directions in a row without gain after which random stops.
    #[arg(long, default_value_t = 30, value_name = "N", help_heading = "MERT")]
    direction_patience: usize,
    /// Judge a plateau together with its neighbours: by their average, or by the worst (Cer et al. 2008).
    #[arg(long, value_enum, default_value_t = SmoothName::None, help_heading = "MERT")]
    smooth: SmoothName,
    /// How many plateaus are judged together, an odd number.
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = odd, help_heading = "MERT")]
    window: usize,
    /// A weight that stays as it is; a block's name fixes all of it.
    #[arg(long, num_args = 1.., value_name = "NAME", help_heading = "MERT")]
    fix: Vec<String>,
    /// Least and largest weight, such as lm=0,1 or lm=0, for no upper end; repeat it.
    #[arg(long, value_name = "NAME=LOW,HIGH", value_parser = bound, help_heading = "MERT")]
    bound: Vec<Bound>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum StrategyName {
    Koehn,
    Powell,
    Random,
    Simplex,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SmoothName {
    None,
    Average,
    Max,
}

impl SmoothName {
    pub(crate) fn with(self, window: usize) -> Smoothing {
        match self {
            SmoothName::None => Smoothing::None,
            SmoothName::Average => Smoothing::Average(window),
            SmoothName::Max => Smoothing::Max(window),
        }
    }
}

/// A name with the range of its weight.
#[derive(Debug, Clone)]
struct Bound {
    name: String,
    low: f64,
    high: f64,
}

pub(super) fn run(args: &Args, common: &Common, talk: Talk) -> Done {
    let metric = metric_of(&args.input)?;
    let seed = common.seed.unwrap_or(1);
    let strategy = match args.strategy {
        StrategyName::Koehn => Strategy::Koehn,
        StrategyName::Powell => Strategy::Powell,
        StrategyName::Random => Strategy::Random,
        StrategyName::Simplex => Strategy::Simplex,
    };
    let smoothing = args.smooth.with(args.window);
    if strategy == Strategy::Simplex && smoothing != Smoothing::None {
        return Err(Error::new("--smooth judges lines, and the simplex searches none")
            .hint("use another --strategy")
            .into());
    }
    if let Some(both) = args.bound.iter().find(|b| args.fix.contains(&b.name)) {
        return Err(Error::new(format!("{} is both fixed and bounded", both.name))
            .hint("say one of the two")
            .into());
    }
    let mut settings = Settings::default();
    let density = args.on.density(&mut settings)?;
    // Watanabe's (2012), for forests.
    let usual = if density.is_some() { (4, 8) } else { (20, 0) };
    let restarts = args.restarts.unwrap_or(usual.0);
    let random_directions = args.random_directions.unwrap_or(usual.1);
    settings.add("strategy", format!("{strategy:?}").to_lowercase());
    settings.add("restarts", restarts);
    settings.add("rounds", args.rounds);
    settings.add("random-directions", random_directions);
    settings.add("direction-patience", args.direction_patience);
    settings.add("smoothing", format!("{smoothing:?}").to_lowercase());
    settings.add("fix", args.fix.join(" "));
    let bounds: Vec<String> = args.bound.iter().map(|b| format!("{}={},{}", b.name, b.low, b.high)).collect();
    settings.add("bound", bounds.join(" "));
    settings.add("seed", seed);
    let limits = limits(args);
    let bar = talk.bar("start {pos} of {len}  best");
    let shown = metric.clone();
    let learner = LineSearch {
        strategy,
        random_directions,
        patience: args.direction_patience,
        smoothing,
        restarts,
        rounds: args.rounds,
        limits: limits.clone(),
        progress: bar.map(|bar| {
            Arc::new(move |done: u32, all: u32, best: f64| {
                bar.show(done, all, &format!("{} {:.2}", shown.name(), shown.shown(best)));
            }) as Arc<_>
        }),
        ..LineSearch::new(metric.clone(), seed)
    };
    let mentioned = args.fix.iter().chain(args.bound.iter().map(|b| &b.name)).cloned().collect();
    let plan = Plan {
        name: "mert",
        learner: Box::new(move |_| Box::new(learner)),
        settings,
        schedule: Schedule { iterations: args.input.iterations.unwrap_or(25), ..Schedule::default() },
        sparse: false,
        plus_one: luthier::metric::PlusOne::default(),
        density,
        mentioned,
        remarks: Box::new(move |outcome: &Outcome, _| at_bounds(outcome, &limits)),
    };
    go(&args.input, &metric, plan, talk)
}

/// A name may be a feature or a block of them.
pub(super) fn keys(name: &str) -> impl Iterator<Item = FeatureKey> {
    let block = (0..64).map(move |i| format!("{name}[{i}]"));
    std::iter::once(name.to_owned()).chain(block).map(|n| FeatureKey::of(&n))
}

fn limits(args: &Args) -> Limits {
    let mut limits = Limits { fixed: args.fix.iter().flat_map(|n| keys(n)).collect(), ..Limits::default() };
    for b in &args.bound {
        limits.bounds.extend(keys(&b.name).map(|k| (k, (b.low, b.high))));
    }
    limits
}

/// Weights that ended where they were not allowed to go further.
fn at_bounds(outcome: &Outcome, limits: &Limits) -> Vec<String> {
    let at = |(name, value): (&str, f64)| {
        let (low, high) = *limits.bounds.get(&FeatureKey::of(name))?;
        let room = 1e-6 * (1.0 + value.abs());
        (value - low <= room || high - value <= room)
            .then(|| format!("the weight of {name} is {value}, at its bound: a wider one may do better"))
    };
    outcome.weights.iter().filter_map(at).collect()
}

/// An odd number.
pub(crate) fn odd(text: &str) -> std::result::Result<usize, String> {
    text.parse().ok().filter(|n| n % 2 == 1).ok_or_else(|| "expected an odd number".to_owned())
}

fn bound(text: &str) -> std::result::Result<Bound, String> {
    let parsed = || -> Option<Bound> {
        let (name, range) = text.rsplit_once('=')?;
        let (low, high) = range.split_once(',')?;
        let number = |word: &str, open: f64| -> Option<f64> {
            if word.trim().is_empty() {
                Some(open)
            } else {
                word.trim().parse().ok().filter(|v: &f64| v.is_finite())
            }
        };
        let (low, high) = (number(low, f64::NEG_INFINITY)?, number(high, f64::INFINITY)?);
        (low < high && !name.is_empty()).then(|| Bound { name: name.to_owned(), low, high })
    };
    parsed().ok_or_else(|| "expected NAME=LOW,HIGH with LOW below HIGH".to_owned())
}
