//! Ranges that numbers must lie in, for the command line and for library users alike.

use luthier_core::{Error, Result};

/// Range of a numeric setting, with its description in error messages.
pub(crate) struct Range {
    holds: fn(f64) -> bool,
    expected: &'static str,
}

/// Numbers above 0.
pub(crate) const POSITIVE: Range = Range { holds: |v| v > 0.0, expected: "a number above 0" };
/// Numbers greater than or equal to 0.
pub(crate) const NON_NEGATIVE: Range = Range { holds: |v| v >= 0.0, expected: "a number, 0 or more" };
/// Numbers above 0 and at most 1.
pub(crate) const SHARE: Range =
    Range { holds: |v| v > 0.0 && v <= 1.0, expected: "a number above 0 and at most 1" };

/// Numbers from 0 to ½.
pub(crate) const HALF: Range =
    Range { holds: |v| (0.0..=0.5).contains(&v), expected: "a number from 0 to 0.5" };
/// Numbers from 1 to 2.
pub(crate) const RHO: Range = Range { holds: |v| (1.0..=2.0).contains(&v), expected: "a number from 1 to 2" };

impl Range {
    /// Fails with the setting's name unless a value is missing or lies in the range.
    pub(crate) fn check(&self, setting: &str, value: impl Into<Option<f64>>) -> Result<()> {
        match value.into() {
            Some(v) if !(v.is_finite() && (self.holds)(v)) => {
                Err(Error::new(format!("{setting} is {v}, expected {}", self.expected)))
            }
            _ => Ok(()),
        }
    }

    #[cfg(feature = "clap")]
    fn parse(&self, text: &str) -> std::result::Result<f64, String> {
        let value = text.parse().ok().filter(|&v: &f64| v.is_finite() && (self.holds)(v));
        value.ok_or_else(|| format!("expected {}", self.expected))
    }
}

/// Fails with the setting's name unless a count is missing or lies from `least` to `most`.
pub(crate) fn check_count(setting: &str, value: impl Into<Option<u32>>, least: u32, most: u32) -> Result<()> {
    match value.into() {
        Some(n) if n < least || n > most => {
            Err(Error::new(format!("{setting} is {n}, expected a number from {least} to {most}")))
        }
        _ => Ok(()),
    }
}

/// Value parsers of the command line.
#[cfg(feature = "clap")]
pub(crate) mod flag {
    use super::{HALF, NON_NEGATIVE, POSITIVE, RHO, SHARE};

    pub(crate) fn half(text: &str) -> Result<f64, String> {
        HALF.parse(text)
    }

    pub(crate) fn rho(text: &str) -> Result<f64, String> {
        RHO.parse(text)
    }

    pub(crate) fn positive(text: &str) -> Result<f64, String> {
        POSITIVE.parse(text)
    }

    pub(crate) fn non_negative(text: &str) -> Result<f64, String> {
        NON_NEGATIVE.parse(text)
    }

    pub(crate) fn share(text: &str) -> Result<f64, String> {
        SHARE.parse(text)
    }

    pub(crate) fn odd(text: &str) -> Result<u32, String> {
        text.parse().ok().filter(|n| n % 2 == 1).ok_or_else(|| "expected an odd number".to_owned())
    }
}
