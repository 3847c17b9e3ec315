//! The batch losses as flags: `tune` minimises them, `loss` prints them.

use luthier::{
    core::Error,
    io::Settings,
    metric::{Metric, PlusOne},
    optim::Limit,
    tune::{
        Loss, Minimize, PairSource, Pairs,
        loss::{Brevity, Clip, Margin},
    },
};

/// A loss that can be asked for.
pub(crate) trait Flags: clap::Args + std::fmt::Debug {
    /// Its name on the command line.
    const NAME: &'static str;
    /// What it can learn from.
    type On: On;
    /// Ψ with a decoder.
    const PSI: f64 = 1.0;
    /// Ψ with a decoder, on forests: those of one pass know little about weights far away.
    const FOREST_PSI: f64 = 1.0;
    /// The iteration that begins with an empty pool.
    const RESET_AT: u32 = 0;
    /// Iterations with a decoder.
    const ITERATIONS: u32 = 25;
    /// The loss, everything decided.
    fn minimize(&self, metric: &Metric, seed: u64) -> Result<Minimize, Error>;
    /// Everything that decides the result, by name.
    fn settings(&self) -> Settings;
    /// A word about settings that do not go with lists of that length.
    fn remark(&self, _length: usize) -> Option<String> {
        None
    }
}

/// What an algorithm learns from, with a decoder.
pub(crate) trait On: clap::Args + std::fmt::Debug {
    /// Edges of forests for each word, if it learns from forests; added to the settings.
    fn density(&self, settings: &mut Settings) -> Result<Option<usize>, Error>;
}

/// Lists, and nothing else.
#[derive(Debug, clap::Args)]
pub(crate) struct OnLists {}

impl On for OnLists {
    fn density(&self, _: &mut Settings) -> Result<Option<usize>, Error> {
        Ok(None)
    }
}

/// What to learn from.
#[derive(Debug, clap::Args)]
pub(crate) struct OnArgs {
    /// Learn from n-best lists, or from forests of everything that the search has found; those need --model.
    #[arg(long, value_name = "WHAT", default_value = "nbest", help_heading = "Forests")]
    on: OnName,
    /// Edges of a forest that are kept for each word of the sentence: those in the best translations [default: 50].
    #[arg(long, value_name = "N", help_heading = "Forests", value_parser = clap::value_parser!(u32).range(1..))]
    density: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum OnName {
    /// N-best lists.
    Nbest,
    /// Forests.
    Forest,
}

impl OnArgs {
    /// Whether it is forests.
    pub(crate) fn is_forest(&self) -> bool {
        self.on == OnName::Forest
    }
}

impl On for OnArgs {
    fn density(&self, settings: &mut Settings) -> Result<Option<usize>, Error> {
        if self.on == OnName::Nbest {
            return match self.density {
                Some(_) => {
                    Err(Error::new("--density is for --on forest").hint("lists are as long as --nbest-size"))
                }
                None => Ok(None),
            };
        }
        let density = self.density.unwrap_or(50);
        settings.add("on", "forest");
        settings.add("density", density);
        Ok(Some(density as usize))
    }
}

/// How far to go.
#[derive(Debug, clap::Args)]
pub(crate) struct Fit {
    /// Stop when the gradient's norm is this much smaller than at 0, or than at the start if that is less [default:
    /// 0.0001]; for apro than at 0 [default: 0.001]. With hinge losses: when the value is this near to the optimum
    /// [default: 0.01].
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_parser = positive, help_heading = "Minimiser")]
    tolerance: Option<f64>,
    /// Steps of the minimiser, or sweeps with hinge losses, at most.
    #[arg(long, value_name = "N", default_value_t = 1000, help_heading = "Minimiser")]
    max_steps: usize,
}

impl Fit {
    fn limit(&self, usual: f64) -> Limit {
        Limit { tolerance: self.tolerance.unwrap_or(usual), steps: self.max_steps }
    }

    fn settings(&self, settings: &mut Settings) {
        settings.add("tolerance", self.tolerance.map_or("default".to_owned(), |t| t.to_string()));
        settings.add("max-steps", self.max_steps);
    }
}

/// Sentence BLEU.
#[derive(Debug, clap::Args)]
pub(crate) struct Sentence {
    /// In sentence BLEU, add 1 to unigram counts too, as Moses' pro does.
    #[arg(long, help_heading = "Sentence BLEU")]
    smooth_unigrams: bool,
    /// In sentence BLEU, add 1 to the reference length, against a drift to short output.
    #[arg(long, help_heading = "Sentence BLEU")]
    smooth_brevity: bool,
}

impl Sentence {
    /// Whether anything of it was asked for.
    pub(crate) fn any(&self) -> bool {
        self.smooth_unigrams || self.smooth_brevity
    }

    pub(crate) fn plus_one(&self) -> PlusOne {
        PlusOne { unigrams: self.smooth_unigrams, brevity: self.smooth_brevity }
    }

    pub(crate) fn settings(&self, settings: &mut Settings) {
        settings.add("smooth-unigrams", self.smooth_unigrams);
        settings.add("smooth-brevity", self.smooth_brevity);
    }
}

/// Scale and regulariser of the losses with probabilities.
#[derive(Debug, clap::Args)]
pub(crate) struct Soft {
    /// Scale of scores: p ∝ exp(γ·score). Several values, such as 0.1,1,10, are gone through in turn, each from the
    /// weights of the one before.
    #[arg(long, value_name = "G", default_value = "1", value_delimiter = ',', allow_negative_numbers = true, value_parser = positive)]
    gamma: Vec<f64>,
    /// Weight of ½‖w‖².
    #[arg(long, value_name = "L", default_value_t = 1e-5, allow_negative_numbers = true, value_parser = non_negative)]
    lambda: f64,
    #[command(flatten)]
    fit: Fit,
}

impl Soft {
    fn minimize(&self, metric: &Metric, seed: u64, loss: Loss, plus_one: PlusOne) -> Minimize {
        Minimize {
            lambda: self.lambda,
            gamma: self.gamma.clone(),
            plus_one,
            limit: self.fit.limit(1e-4),
            ..Minimize::new(metric.clone(), loss, seed)
        }
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        let gamma: Vec<String> = self.gamma.iter().map(ToString::to_string).collect();
        settings.add("gamma", gamma.join(","));
        settings.add("lambda", self.lambda);
        self.fit.settings(&mut settings);
        settings
    }
}

/// PRO.
#[derive(Debug, clap::Args)]
pub(crate) struct ProFlags {
    /// Which pairs: the most different of random ones, oracles with all others, all, or the best with the worst.
    #[arg(long, value_enum, default_value_t = PairsName::Sampled, help_heading = "PRO")]
    pairs: PairsName,
    /// How a pair is judged.
    #[arg(long, value_enum, default_value_t = MarginName::Logistic, help_heading = "PRO")]
    loss: MarginName,
    /// Pairs drawn in each segment (Γ).
    #[arg(long, default_value_t = 5000, value_name = "N", help_heading = "PRO", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    draw: u32,
    /// Pairs kept of those, the most different ones (Ξ).
    #[arg(long, default_value_t = 50, value_name = "N", help_heading = "PRO", value_parser = clap::value_parser!(u32).range(1..))]
    keep: u32,
    /// Least difference of sentence scores, on the scale from 0 to 1; columns as they are (β). Not for oracles.
    #[arg(long, default_value_t = 0.05, value_name = "D", help_heading = "PRO", allow_negative_numbers = true, value_parser = non_negative)]
    min_difference: f64,
    /// Share of a list that is best, or worst, for good-bad.
    #[arg(long, default_value_t = 0.1, value_name = "SHARE", help_heading = "PRO", allow_negative_numbers = true, value_parser = share)]
    slice: f64,
    /// Drop pairs whose lengths differ by more than this many standard deviations; 2 keeps monsters out.
    #[arg(long, value_name = "SIGMAS", help_heading = "PRO", allow_negative_numbers = true, value_parser = positive)]
    max_length_sigma: Option<f64>,
    /// Weight of ½‖w‖² [default: 1 beside the sum of logistic losses, 0.00001 beside the mean of hinge losses].
    #[arg(long, value_name = "L", help_heading = "PRO", allow_negative_numbers = true, value_parser = positive)]
    lambda: Option<f64>,
    #[command(flatten)]
    sentence: Sentence,
    #[command(flatten)]
    fit: Fit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum PairsName {
    Sampled,
    Oracle,
    All,
    GoodBad,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum MarginName {
    Logistic,
    Hinge,
}

impl ProFlags {
    fn lambda(&self) -> f64 {
        self.lambda.unwrap_or(if self.loss == MarginName::Logistic { 1.0 } else { 1e-5 })
    }
}

impl Flags for ProFlags {
    type On = OnLists;
    const NAME: &'static str = "pro";
    const PSI: f64 = 0.1;
    const RESET_AT: u32 = 10;
    const ITERATIONS: u32 = 30;

    fn minimize(&self, metric: &Metric, seed: u64) -> Result<Minimize, Error> {
        let source = match self.pairs {
            PairsName::Sampled => PairSource::Sampled { draw: self.draw as usize, keep: self.keep as usize },
            PairsName::Oracle => PairSource::Oracle,
            PairsName::All => PairSource::All,
            PairsName::GoodBad => PairSource::GoodBad { slice: self.slice },
        };
        let margin = match self.loss {
            MarginName::Logistic => Margin::Logistic,
            MarginName::Hinge => Margin::Hinge,
        };
        let (min_difference, max_length_sigma) = (self.min_difference, self.max_length_sigma);
        let pairs = Pairs { source, min_difference, max_length_sigma, seed };
        Ok(Minimize {
            lambda: self.lambda(),
            plus_one: self.sentence.plus_one(),
            limit: self.fit.limit(if margin == Margin::Hinge { 0.01 } else { 1e-4 }),
            ..Minimize::new(metric.clone(), Loss::Pro { pairs, margin }, seed)
        })
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        settings.add("pairs", format!("{:?}", self.pairs).to_lowercase());
        settings.add("loss", format!("{:?}", self.loss).to_lowercase());
        settings.add("draw", self.draw);
        settings.add("keep", self.keep);
        settings.add("min-difference", self.min_difference);
        settings.add("slice", self.slice);
        let sigma = self.max_length_sigma.map_or("none".to_owned(), |s| s.to_string());
        settings.add("max-length-sigma", sigma);
        settings.add("lambda", self.lambda());
        self.sentence.settings(&mut settings);
        self.fit.settings(&mut settings);
        settings
    }
}

/// APRO.
#[derive(Debug, clap::Args)]
pub(crate) struct AproFlags {
    /// Weight of the loss beside ½‖w‖²; the loss is the sum over all pairs, over the number of candidates.
    #[arg(long, value_name = "C", default_value_t = 0.01, allow_negative_numbers = true, value_parser = positive, help_heading = "APRO")]
    c: f64,
    #[command(flatten)]
    sentence: Sentence,
    #[command(flatten)]
    fit: Fit,
}

impl Flags for AproFlags {
    type On = OnLists;
    const NAME: &'static str = "apro";
    const RESET_AT: u32 = 10;
    const ITERATIONS: u32 = 30;

    fn minimize(&self, metric: &Metric, seed: u64) -> Result<Minimize, Error> {
        Ok(Minimize {
            plus_one: self.sentence.plus_one(),
            limit: self.fit.limit(1e-3),
            ..Minimize::new(metric.clone(), Loss::Apro { c: self.c }, seed)
        })
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        settings.add("c", self.c);
        self.sentence.settings(&mut settings);
        self.fit.settings(&mut settings);
        settings
    }
    /// The loss grows with the number of pairs, N with that of candidates: short lists weigh less.
    fn remark(&self, length: usize) -> Option<String> {
        (self.c == 0.01 && length * 2 < APRO_LENGTH && length > 0).then(|| {
            let same = self.c * APRO_LENGTH as f64 / length as f64;
            format!(
                "--c 0.01 was chosen for lists of {APRO_LENGTH} candidates; for {length}, --c {same:.2} gives the loss the \
                 same weight"
            )
        })
    }
}

/// List length in Dreyer and Dong's experiments, which C was chosen for.
const APRO_LENGTH: usize = 3600;

/// Softmax.
#[derive(Debug, clap::Args)]
pub(crate) struct SoftmaxFlags {
    /// Which candidates shall be likely: those that are best for the whole corpus, or for their own sentence.
    #[arg(long, value_enum, default_value_t = OracleName::Corpus)]
    oracle: OracleName,
    #[command(flatten)]
    sentence: Sentence,
    #[command(flatten)]
    soft: Soft,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum OracleName {
    Corpus,
    Sentence,
}

impl Flags for SoftmaxFlags {
    type On = OnArgs;
    const NAME: &'static str = "softmax";
    const FOREST_PSI: f64 = 0.1;

    fn minimize(&self, metric: &Metric, seed: u64) -> Result<Minimize, Error> {
        let loss = Loss::Softmax { sentence_oracle: self.oracle == OracleName::Sentence };
        Ok(self.soft.minimize(metric, seed, loss, self.sentence.plus_one()))
    }

    fn settings(&self) -> Settings {
        let mut settings = self.soft.settings();
        self.sentence.settings(&mut settings);
        settings.add("oracle", format!("{:?}", self.oracle).to_lowercase());
        settings
    }
}

/// xBLEU.
#[derive(Debug, clap::Args)]
pub(crate) struct XbleuFlags {
    /// How matches are clipped: the expected count of an n-gram, its count in every candidate, or not at all.
    #[arg(long, value_enum, default_value_t = ClipName::Expected)]
    clip: ClipName,
    /// The brevity penalty: as in BLEU, with its corner rounded, or left out.
    #[arg(long, value_enum, default_value_t = BrevityName::Exact)]
    brevity: BrevityName,
    #[command(flatten)]
    soft: Soft,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ClipName {
    Expected,
    Candidate,
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum BrevityName {
    Exact,
    Smooth,
    None,
}

impl Flags for XbleuFlags {
    type On = OnArgs;
    const NAME: &'static str = "xbleu";

    fn minimize(&self, metric: &Metric, seed: u64) -> Result<Minimize, Error> {
        if metric.as_bleu().is_none() {
            let message =
                format!("xbleu expects n-gram counts, which {} is not made of; expected BLEU", metric.name());
            return Err(Error::new(message).hint("risk works with every metric"));
        }
        let clip = match self.clip {
            ClipName::Expected => Clip::Expected,
            ClipName::Candidate => Clip::Candidate,
            ClipName::None => Clip::None,
        };
        let brevity = match self.brevity {
            BrevityName::Exact => Brevity::Exact,
            BrevityName::Smooth => Brevity::Smooth,
            BrevityName::None => Brevity::None,
        };
        let loss = Loss::Xbleu { clip, brevity, references: None };
        Ok(self.soft.minimize(metric, seed, loss, PlusOne::default()))
    }

    fn settings(&self) -> Settings {
        let mut settings = self.soft.settings();
        settings.add("clip", format!("{:?}", self.clip).to_lowercase());
        settings.add("brevity", format!("{:?}", self.brevity).to_lowercase());
        settings
    }
}

/// Risk.
#[derive(Debug, clap::Args)]
pub(crate) struct RiskFlags {
    #[command(flatten)]
    soft: Soft,
    #[command(flatten)]
    sentence: Sentence,
}

impl Flags for RiskFlags {
    type On = OnLists;
    const NAME: &'static str = "risk";

    fn minimize(&self, metric: &Metric, seed: u64) -> Result<Minimize, Error> {
        Ok(self.soft.minimize(metric, seed, Loss::Risk, self.sentence.plus_one()))
    }

    fn settings(&self) -> Settings {
        let mut settings = self.soft.settings();
        self.sentence.settings(&mut settings);
        settings
    }
}

pub(crate) fn number(text: &str, good: impl Fn(f64) -> bool, expected: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|&v: &f64| v.is_finite() && good(v))
        .ok_or_else(|| format!("expected {expected}"))
}

pub(crate) fn positive(text: &str) -> Result<f64, String> {
    number(text, |v| v > 0.0, "a number above 0")
}

pub(crate) fn non_negative(text: &str) -> Result<f64, String> {
    number(text, |v| v >= 0.0, "a number, 0 or more")
}

/// A number above 0, 1 at most.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    number(text, |v| v > 0.0 && v <= 1.0, "a number above 0, 1 at most")
}
