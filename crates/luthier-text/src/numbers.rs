//! Numbers whose digits are grouped and divided by other marks in another language.

use crate::Language;
use serde::{Deserialize, Serialize};

/// What a translation does with numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Numbers {
    /// Numbers are copied.
    #[default]
    Copy,
    /// Points and commas are exchanged where the languages use them in opposite ways: 1,000.5 becomes 1.000,5.
    Convert,
}

/// Returns a number with points and commas exchanged, if the two languages use them in opposite ways and the number is
/// written by the rules of the first: groups of three digits, one decimal mark. Returns `None` for other numbers, such as
/// dates and versions with more than two parts.
///
/// ```
/// use luthier_text::{Language, converted};
///
/// let (en, de) = (Language::new("en")?, Language::new("de")?);
/// assert_eq!(converted("1,000.5", &en, &de).unwrap(), "1.000,5");
/// assert_eq!(converted("2,5", &de, &en).unwrap(), "2.5");
/// assert_eq!(converted("1.2.3", &en, &de), None);
/// assert_eq!(converted("2.5", &en, &en), None);
/// # Ok::<(), luthier_core::Error>(())
/// ```
pub fn converted(number: &str, from: &Language, to: &Language) -> Option<String> {
    if from.has_decimal_comma() == to.has_decimal_comma() {
        return None;
    }
    let (group, decimal) = if from.has_decimal_comma() { ('.', ',') } else { (',', '.') };
    let allowed = number.chars().all(|c| c.is_ascii_digit() || c == group || c == decimal);
    let mut halves = number.split(decimal);
    let (whole, fraction) = (halves.next()?, halves.next());
    let mut groups = whole.split(group);
    let first = groups.next()?;
    let is_grouped =
        groups.all(|g| g.len() == 3) && (!whole.contains(group) || (1..=3).contains(&first.len()));
    let is_fraction = fraction.is_none_or(|f| !f.is_empty() && !f.contains(group));
    if !allowed
        || !is_grouped
        || !is_fraction
        || halves.next().is_some()
        || !number.contains([group, decimal])
    {
        return None;
    }
    let exchange = |c: char| {
        if c == group {
            decimal
        } else if c == decimal {
            group
        } else {
            c
        }
    };
    Some(number.chars().map(exchange).collect())
}
