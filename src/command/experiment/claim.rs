//! Claims of an experiment file: what a paper says about the order of cells, and the rule that judges it.

use luthier::core::{Error, Result};
use serde::Deserialize;

/// A claim about values of cells.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ClaimSpec {
    /// Short name in the table, such as `2a`; `None` for the position in the file.
    pub(super) id: Option<String>,
    /// The claim in one sentence.
    pub(super) claim: String,
    /// Paper, with the table or section.
    #[serde(default)]
    pub(super) source: String,
    /// Figures of the paper.
    #[serde(default)]
    pub(super) paper: String,
    /// Remark, such as a disagreement between the paper's text and its tables, or what is not measured.
    #[serde(default)]
    pub(super) note: String,
    /// Predicted difference.
    pub(super) expect: Expect,
    /// Value that is compared.
    pub(super) value: String,
    /// System whose cells are compared; `None` for all systems.
    pub(super) system: Option<String>,
    /// Pairs of cells; the difference is the mean over pairs of first minus second.
    pub(super) pairs: Vec<(Side, Side)>,
    /// Pairs whose mean difference is subtracted from that of `pairs`.
    #[serde(default)]
    pub(super) than: Vec<(Side, Side)>,
    /// Largest difference that counts as equal, for `equal` and `at-least`.
    margin: Option<f64>,
    /// Compares the absolute difference of the value from this number instead of the value.
    pub(super) distance_from: Option<f64>,
    /// Compares standard deviations instead of means.
    pub(super) spread: Option<Spread>,
}

/// A side of a pair: cells, or a number that they are compared with.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "toml::Value")]
pub(super) enum Side {
    /// An algorithm, or an algorithm with settings; the mean of all cells that match.
    Cell(String),
    /// A fixed number.
    Number(f64),
}

impl TryFrom<toml::Value> for Side {
    type Error = String;

    fn try_from(value: toml::Value) -> std::result::Result<Self, String> {
        match value {
            toml::Value::String(cell) => Ok(Side::Cell(cell)),
            toml::Value::Integer(number) => Ok(Side::Number(number as f64)),
            toml::Value::Float(number) if number.is_finite() => Ok(Side::Number(number)),
            other => Err(format!("found `{other}`, expected the name of a cell or a number")),
        }
    }
}

/// Predicted difference between the sides of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Expect {
    /// The first side is higher.
    Higher,
    /// The first side is lower.
    Lower,
    /// The sides differ by at most the margin.
    Equal,
    /// The first side is not lower than the second by more than the margin.
    AtLeast,
    /// The paper claims nothing; the difference is only reported.
    None,
}

/// Standard deviation that a claim compares with that across replicas of the second side.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Spread {
    /// Across the replicas of each cell of the first side.
    Replicas,
    /// Across the cells of the first side, as in a one-way analysis of variance.
    Cells,
}

impl ClaimSpec {
    /// Returns the largest difference that counts as equal; 0 where the claim has no margin.
    pub(super) fn margin(&self) -> f64 {
        self.margin.unwrap_or(0.0)
    }

    /// Returns the short name of the claim, which is the `i`-th of the file from 0.
    pub(super) fn label(&self, i: usize) -> String {
        self.id.clone().unwrap_or_else(|| (i + 1).to_string())
    }

    /// Returns the names of all cells that the claim refers to.
    pub(super) fn cells(&self) -> impl Iterator<Item = &String> {
        let sides = self.pairs.iter().chain(&self.than).flat_map(|(a, b)| [a, b]);
        sides.filter_map(|s| match s {
            Side::Cell(name) => Some(name),
            Side::Number(_) => None,
        })
    }

    /// Fails if keys of the claim are missing or contradict each other.
    pub(super) fn check(&self) -> Result<()> {
        let tolerant = matches!(self.expect, Expect::Equal | Expect::AtLeast);
        let numbers = |(a, b): &(Side, Side)| matches!((a, b), (Side::Number(_), Side::Number(_)));
        if self.pairs.is_empty() {
            return Err(Error::new("has no pairs").hint("give pairs = [[\"CELL\", \"CELL\"]]"));
        }
        if self.pairs.iter().chain(&self.than).any(numbers) {
            return Err(Error::new("compares two numbers").hint("one side of each pair must be a cell"));
        }
        let same = |(a, b): &(Side, Side)| matches!((a, b), (Side::Cell(a), Side::Cell(b)) if a == b);
        if self.spread.is_none() && self.pairs.iter().chain(&self.than).any(same) {
            return Err(Error::new("compares a cell with itself").hint("the sides of each pair must differ"));
        }
        if self.pairs == self.than {
            return Err(Error::new("has the same pairs in pairs and than").hint("they must differ"));
        }
        match self.margin {
            None if tolerant => {
                return Err(Error::new("has no margin")
                    .hint("equal and at-least need the largest difference that counts as equal"));
            }
            Some(_) if !tolerant => {
                return Err(Error::new("must not have a margin").hint("only equal and at-least use one"));
            }
            Some(m) if !(m.is_finite() && m >= 0.0) => {
                return Err(Error::new(format!("has the margin {m}")).hint("it must not be negative"));
            }
            _ => {}
        }
        let several = self.pairs.len() > 1 || !self.than.is_empty();
        let constant = self.cells().count() < 2;
        if self.spread.is_some() && (tolerant || several || constant || self.distance_from.is_some()) {
            return Err(Error::new("with spread must have one pair of cells")
                .hint("expect is higher, lower or none there, without than and distance-from"));
        }
        Ok(())
    }
}

/// Verdict on a claim.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Verdict {
    /// The whole interval agrees with the claim.
    Held,
    /// There is a difference that contradicts the claim.
    NotHeld,
    /// The interval allows both: neither the claim nor its opposite is shown.
    NoDifference,
}

impl Verdict {
    /// Judges a claim by a difference and its 95 % interval; without an interval, both ends are the difference.
    ///
    /// | claim | held | not held |
    /// | --- | --- | --- |
    /// | higher | low > 0 | high < 0 |
    /// | lower | high < 0 | low > 0 |
    /// | equal | −margin ≤ low and high ≤ margin | difference > margin and low > 0, or < −margin and high < 0 |
    /// | at-least | −margin ≤ low | difference < −margin and high < 0 |
    ///
    /// Otherwise the interval allows both: no difference. Unclaimed differences are judged as `higher`.
    pub(super) fn new(expect: Expect, margin: f64, difference: f64, (low, high): (f64, f64)) -> Self {
        let (above, below) = (low > 0.0, high < 0.0);
        let (held, not) = match expect {
            Expect::Higher | Expect::None => (above, below),
            Expect::Lower => (below, above),
            Expect::Equal => {
                (-margin <= low && high <= margin, (above || below) && difference.abs() > margin)
            }
            Expect::AtLeast => (-margin <= low, below && difference < -margin),
        };
        if held {
            Verdict::Held
        } else if not {
            Verdict::NotHeld
        } else {
            Verdict::NoDifference
        }
    }

    /// Returns the verdict in words.
    pub(super) fn text(self, expect: Expect) -> &'static str {
        match (expect, self) {
            (Expect::None, Verdict::Held) => "not claimed: higher",
            (Expect::None, Verdict::NotHeld) => "not claimed: lower",
            (Expect::None, Verdict::NoDifference) => "not claimed: no difference",
            (_, Verdict::Held) => "held",
            (_, Verdict::NotHeld) => "not held",
            (_, Verdict::NoDifference) => "no difference",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule on made-up intervals: below 0, around 0, above 0; narrow and wide for a margin of 0.3.
    #[test]
    fn the_rule() {
        use Expect::{AtLeast, Equal, Higher, Lower, None};
        let rows = [
            // Interval, and the first letter of the verdict: h(eld), n(ot held), – (no difference).
            ((0.2, 1.4), [(Higher, 'h'), (Lower, 'n'), (Equal, 'n'), (AtLeast, 'h')]),
            ((-1.4, -0.2), [(Higher, 'n'), (Lower, 'h'), (Equal, 'n'), (AtLeast, 'n')]),
            ((-0.2, 0.25), [(Higher, '–'), (Lower, '–'), (Equal, 'h'), (AtLeast, 'h')]),
            ((-0.2, 0.9), [(Higher, '–'), (Lower, '–'), (Equal, '–'), (AtLeast, 'h')]),
            ((-0.9, 0.2), [(Higher, '–'), (Lower, '–'), (Equal, '–'), (AtLeast, '–')]),
            // Significant, but within the margin.
            ((0.1, 0.3), [(Higher, 'h'), (Lower, 'n'), (Equal, 'h'), (AtLeast, 'h')]),
            ((-0.3, -0.1), [(Higher, 'n'), (Lower, 'h'), (Equal, 'h'), (AtLeast, 'h')]),
            // Significant, and within the margin, but the interval is not.
            ((0.05, 0.45), [(Higher, 'h'), (Lower, 'n'), (Equal, '–'), (AtLeast, 'h')]),
            ((-0.45, -0.05), [(Higher, 'n'), (Lower, 'h'), (Equal, '–'), (AtLeast, '–')]),
            // By sign, without an interval.
            ((0.0, 0.0), [(Higher, '–'), (Lower, '–'), (Equal, 'h'), (AtLeast, 'h')]),
            ((0.4, 0.4), [(Higher, 'h'), (Lower, 'n'), (Equal, 'n'), (AtLeast, 'h')]),
            ((0.0, 0.5), [(Higher, '–'), (Lower, '–'), (Equal, '–'), (AtLeast, 'h')]),
        ];
        for (interval, expected) in rows {
            for (expect, letter) in expected {
                let word = match letter {
                    'h' => "held",
                    'n' => "not held",
                    _ => "no difference",
                };
                let difference = f64::midpoint(interval.0, interval.1);
                let found = Verdict::new(expect, 0.3, difference, interval).text(expect);
                assert_eq!(found, word, "{expect:?} {interval:?}");
            }
        }
        assert_eq!(Verdict::new(None, 0.0, -1.5, (-2.0, -1.0)).text(None), "not claimed: lower");
        assert_eq!(Verdict::new(None, 0.0, -0.5, (-2.0, 1.0)).text(None), "not claimed: no difference");
    }
}
