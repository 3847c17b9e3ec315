//! Weights of features, and the text format that holds them: one `name value` per line, `#` for comments.

use crate::{Error, FeatureKey, Local, Result, names::collision};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::{fmt::Write as _, sync::Arc};

/// Weights of named features, in order of first occurrence; a feature's index in this order is its *place*.
///
/// Features are added only by [`Weights::commit`] and [`Weights::place`], never during decoding. Clones share
/// the names until one of them gets a new feature.
///
/// ```
/// use luthier_core::{FeatureKey, Weights};
/// let mut weights = Weights::parse("w.txt", "lm 0.5 # language model\nTM= 0.2 -0.3\n").unwrap();
/// assert_eq!(weights.get(FeatureKey::of("TM[1]")), -0.3);
/// assert_eq!(weights.place(FeatureKey::of("length"), "length").unwrap(), 3);
/// weights.scale(2.0);
/// assert_eq!(weights.to_text(&[]), "lm 1\nTM[0] 0.4\nTM[1] -0.6\nlength 0\n");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Table", into = "Table")]
pub struct Weights {
    known: Arc<Known>,
    values: Vec<f64>,
}

/// Names of the features in order of first occurrence, with an index by key.
#[derive(Debug, Clone, Default, PartialEq)]
struct Known {
    /// Place of the feature with a key. Never iterated over, because its order is arbitrary.
    index: FxHashMap<FeatureKey, u32>,
    /// Names of the features, by place.
    names: Vec<String>,
}

/// Serialised form of [`Weights`].
#[derive(Serialize, Deserialize)]
struct Table {
    names: Vec<String>,
    values: Vec<f64>,
}

impl From<Weights> for Table {
    fn from(w: Weights) -> Self {
        Table { names: w.known.names.clone(), values: w.values }
    }
}

impl From<Table> for Weights {
    fn from(table: Table) -> Self {
        let index = table.names.iter().zip(0..).map(|(name, at)| (FeatureKey::of(name), at)).collect();
        Weights { known: Arc::new(Known { index, names: table.names }), values: table.values }
    }
}

impl Weights {
    /// Parses weights from text, one `name value` per line with `#` for comments; `file` is the text's name
    /// in error messages.
    ///
    /// A Moses line `Name= a b c` is accepted as well: it gives the weights `Name[0]`, `Name[1]`, `Name[2]`.
    /// Fails on a line that is neither, on a value that is not finite and on a second weight for one name.
    pub fn parse(file: &str, text: &str) -> Result<Self> {
        let mut weights = Weights::default();
        for (line, number) in text.lines().zip(1..) {
            weights.add_line(line).map_err(|e| e.place(file, number))?;
        }
        Ok(weights)
    }

    /// Makes weights of names and values. Fails on a value that is not finite, and on a second weight for one name.
    ///
    /// ```
    /// use luthier_core::{FeatureKey, Weights};
    /// let weights = Weights::of([("lm", 0.5), ("length", -1.0)])?;
    /// assert_eq!((weights.len(), weights.get(FeatureKey::of("length"))), (2, -1.0));
    /// assert!(Weights::of([("lm", 0.5), ("lm", 1.0)]).is_err());
    /// # Ok::<(), luthier_core::Error>(())
    /// ```
    pub fn of<'a>(pairs: impl IntoIterator<Item = (&'a str, f64)>) -> Result<Self> {
        let mut weights = Weights::default();
        for (name, value) in pairs {
            if !value.is_finite() {
                return Err(Error::new(format!("the weight of {name} is {value}, expected a finite number")));
            }
            let key = FeatureKey::of(name);
            if weights.contains(key) {
                return Err(Error::new(format!("{name} has two weights")).hint("remove one of the two"));
            }
            let place = weights.place(key, name)? as usize;
            weights.values_mut()[place] = value;
        }
        Ok(weights)
    }

    /// Removes the weights of all features that `keep` rejects; places change.
    pub fn retain(&mut self, keep: impl Fn(FeatureKey) -> bool) {
        let kept = std::mem::take(self);
        for (name, value) in kept.known.names.iter().zip(kept.values) {
            let key = FeatureKey::of(name);
            if keep(key) {
                self.insert(key, name.clone(), value);
            }
        }
    }

    /// Adds the weights of one line of a weights file. Fails if the line is malformed.
    fn add_line(&mut self, line: &str) -> Result<()> {
        let line = without_comment(line).trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        if line.contains("|||") {
            return Err(Error::new("found an n-best line, expected `name value`")
                .hint("give a weights file, as `tune` writes it; n-best lists go after --nbest"));
        }
        if line.is_empty() {
            return Ok(());
        }
        let block = line.split_once('=').filter(|(name, rest)| {
            let open = !name.contains(char::is_whitespace) && !name.ends_with('\\');
            open && rest.starts_with(char::is_whitespace)
        });
        if let Some((base, values)) = block {
            let values: Vec<&str> = values.split_whitespace().collect();
            for (i, value) in values.iter().enumerate() {
                let name = if values.len() == 1 { base.to_owned() } else { format!("{base}[{i}]") };
                self.add_weight(&name, value)?;
            }
            return Ok(());
        }
        let Some((name, value)) = line.rsplit_once(char::is_whitespace) else {
            return Err(Error::new(format!("found `{line}`, expected `name value`")));
        };
        if name.trim().contains(char::is_whitespace) && value.parse::<f64>().is_err() {
            let shown: String = line.chars().take(40).collect();
            return Err(Error::new(format!(
                "found `{shown}`, expected one weight per line, such as `lm 0.5`"
            ))
            .hint("give a weights file, as `tune` writes it; this looks like text"));
        }
        let last = name.split_whitespace().next_back().unwrap_or_default();
        if name.trim().contains(char::is_whitespace) && last.parse::<f64>().is_ok() {
            return Err(Error::new(format!("found several numbers in `{line}`, expected `name value`"))
                .hint("write several weights of one feature as `Name= 0.1 0.2`"));
        }
        self.add_weight(&unescape(name.trim_end()), value)
    }

    /// Adds one weight, given as text. Fails if it is not finite or the name is invalid or has a weight.
    fn add_weight(&mut self, name: &str, value: &str) -> Result<()> {
        let number = value.parse::<f64>().ok().filter(|v| v.is_finite()).ok_or_else(|| {
            Error::new(format!("the weight of {name} is `{value}`, expected a finite number"))
        })?;
        crate::names::check(name)?;
        let key = FeatureKey::of(name);
        if self.position(key).is_some() {
            return Err(Error::new(format!("a second weight for {name}")).hint("remove one of the two"));
        }
        self.insert(key, name.to_owned(), number);
        Ok(())
    }

    /// Returns the weight of a feature; 0 if the feature is unknown.
    pub fn get(&self, key: FeatureKey) -> f64 {
        self.position(key).map_or(0.0, |p| self.values[p])
    }

    /// Returns whether a feature has a weight, which may be 0.
    pub fn contains(&self, key: FeatureKey) -> bool {
        self.position(key).is_some()
    }

    /// Returns the name of the feature with a key; `None` if the feature is unknown.
    pub fn name(&self, key: FeatureKey) -> Option<&str> {
        self.position(key).map(|p| self.known.names[p].as_str())
    }

    /// Replaces the content of `out` with the weights of a set of features, in the order of the set; unknown
    /// features have weight 0.
    pub fn gather(&self, local: &Local, out: &mut Vec<f64>) {
        out.clear();
        out.extend(local.keys().iter().map(|&k| self.get(k)));
    }

    /// Adds the unknown features of a segment, with weight 0; `name` returns the name of the feature with a
    /// key. Must be called in segment order, because places are assigned in order of first occurrence. Fails
    /// if two names have the same key.
    pub fn commit(&mut self, local: &Local, name: &dyn Fn(FeatureKey) -> String) -> Result<()> {
        for &key in local.keys() {
            let found = name(key);
            match self.position(key) {
                None => self.insert(key, found, 0.0),
                Some(p) if self.known.names[p] != found => {
                    return Err(collision(&self.known.names[p], &found));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Sets the weights of a set of features to `values`, which are in the order of the set; unknown features
    /// are skipped.
    pub fn set(&mut self, local: &Local, values: &[f64]) {
        for (&key, &v) in local.keys().iter().zip(values) {
            if let Some(p) = self.position(key) {
                self.values[p] = v;
            }
        }
    }

    /// Returns the places of a set of features, in the order of the set; unknown features are skipped.
    pub fn places(&self, local: &Local) -> Vec<u32> {
        local.keys().iter().filter_map(|k| self.known.index.get(k).copied()).collect()
    }

    /// Returns the place of a feature; an unknown feature is added last, with weight 0. Fails if another name
    /// has the same key.
    pub fn place(&mut self, key: FeatureKey, name: &str) -> Result<u32> {
        match self.position(key) {
            Some(p) if self.known.names[p] != name => Err(collision(&self.known.names[p], name)),
            Some(p) => Ok(p as u32),
            None => {
                self.insert(key, name.to_owned(), 0.0);
                Ok(self.values.len() as u32 - 1)
            }
        }
    }

    /// Returns weights of the same features with the given values, indexed by place.
    #[must_use]
    pub fn with_values(&self, values: Vec<f64>) -> Self {
        debug_assert_eq!(values.len(), self.values.len());
        Weights { known: self.known.clone(), values }
    }

    /// Returns the number of weights that are not 0.
    pub fn non_zero(&self) -> usize {
        self.values.iter().filter(|v| **v != 0.0).count()
    }

    /// Returns the values of all weights, indexed by place, for modification.
    pub fn values_mut(&mut self) -> &mut [f64] {
        &mut self.values
    }

    /// Returns the values of all weights, indexed by place.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Replaces the values of all weights with `values`, indexed by place. Panics if their number differs.
    pub fn replace(&mut self, values: &[f64]) {
        self.values.copy_from_slice(values);
    }

    /// Interpolates with earlier weights of the same features: w ← Ψw + (1 − Ψ)·before.
    pub fn blend(&mut self, psi: f64, before: &Weights) {
        if psi != 1.0 {
            // Unchanged weights are skipped: rounding would change them.
            for (w, old) in self.values.iter_mut().zip(&before.values).filter(|(w, old)| **w != **old) {
                *w = psi * *w + (1.0 - psi) * old;
            }
        }
    }

    /// Iterates over names and values of all weights, by place.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, f64)> {
        self.known.names.iter().map(String::as_str).zip(self.values.iter().copied())
    }

    /// Returns the number of features.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns whether there are no features.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Multiplies all weights by a factor.
    pub fn scale(&mut self, by: f64) {
        for v in &mut self.values {
            *v *= by;
        }
    }

    /// Returns the L1 norm Σ|w|.
    pub fn l1(&self) -> f64 {
        self.values.iter().map(|v| v.abs()).sum()
    }

    /// Returns the largest absolute difference of a weight between `before` and these weights, both
    /// L1-normalised; a feature that only one of them has counts as 0 in the other.
    pub fn change(&self, before: &Weights) -> f64 {
        let scale = |w: &Weights| if w.l1() > 0.0 { 1.0 / w.l1() } else { 1.0 };
        let (a, b) = (scale(self), scale(before));
        let n = before.len();
        // The usual case: these weights are `before` with features added.
        if n <= self.len()
            && (Arc::ptr_eq(&self.known, &before.known) || self.known.names[..n] == before.known.names)
        {
            let old = before.values.iter().map(|v| v * b).chain(std::iter::repeat(0.0));
            return self.values.iter().zip(old).map(|(v, old)| (v * a - old).abs()).fold(0.0, f64::max);
        }
        let one_way = |x: &Weights, sx: f64, y: &Weights, sy: f64| {
            x.iter().map(|(n, v)| (v * sx - y.get(FeatureKey::of(n)) * sy).abs()).fold(0.0, f64::max)
        };
        one_way(self, a, before, b).max(one_way(before, b, self, a))
    }

    /// Returns the weights as the text of a weights file, from which [`Weights::parse`] restores the exact
    /// values; `comments` become `#` lines at the top.
    pub fn to_text(&self, comments: &[String]) -> String {
        let mut text = String::new();
        for comment in comments {
            let _ = writeln!(text, "# {comment}");
        }
        for (name, value) in self.iter() {
            let _ = writeln!(text, "{} {value}", escape(name));
        }
        text
    }

    /// Returns the place of a feature; `None` if the feature is unknown.
    pub fn position(&self, key: FeatureKey) -> Option<usize> {
        self.known.index.get(&key).map(|&p| p as usize)
    }

    /// Adds a feature that is not known yet.
    fn insert(&mut self, key: FeatureKey, name: String, value: f64) {
        let known = Arc::make_mut(&mut self.known);
        known.index.insert(key, self.values.len() as u32);
        self.values.push(value);
        known.names.push(name);
    }
}

/// Returns a name as written to a file: with a backslash before a `#` that would begin a comment, before an
/// `=` that would begin a block, and before a backslash.
fn escape(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for (i, c) in name.char_indices() {
        let after = name[i + c.len_utf8()..].chars().next();
        let comment = c == '#' && (i == 0 || name[..i].ends_with(char::is_whitespace));
        let block = c == '=' && after.is_none_or(char::is_whitespace);
        if c == '\\' || comment || block {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Returns the name that was written as [`escape`] does.
fn unescape(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut chars = name.chars();
    while let Some(c) = chars.next() {
        out.push(if c == '\\' { chars.next().unwrap_or(c) } else { c });
    }
    out
}

/// Returns a line without its comment, which begins at a `#` at the start of the line or after white space;
/// names of sparse features may contain other `#`.
fn without_comment(line: &str) -> &str {
    let cut =
        line.char_indices().find(|&(i, c)| c == '#' && (i == 0 || line[..i].ends_with(char::is_whitespace)));
    cut.map_or(line, |(i, _)| &line[..i])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_contain_spaces_and_signs() {
        let w = Weights::parse("w", "my score 0.5\nWT_#~a=b 2 # yes\n  #lm 3\n").unwrap();
        assert_eq!(w.iter().collect::<Vec<_>>(), [("my score", 0.5), ("WT_#~a=b", 2.0)]);
        let mut odd = Weights::default();
        for (i, name) in ["#x", "a #b", "WT_=~=", "a= b", "c\\d", "e\\"].iter().enumerate() {
            odd.insert(FeatureKey::of(name), (*name).to_owned(), i as f64);
        }
        assert_eq!(Weights::parse("w", &odd.to_text(&[])).unwrap(), odd);
    }

    #[test]
    fn reads_names_moses_blocks_and_comments() {
        let w = Weights::parse("w", "# mine\nlm 0.5 # yes\n\nTM0= 0.1 0.2\nWordPenalty0= -1\n").unwrap();
        let all: Vec<_> = w.iter().collect();
        assert_eq!(all, [("lm", 0.5), ("TM0[0]", 0.1), ("TM0[1]", 0.2), ("WordPenalty0", -1.0)]);
    }

    #[test]
    fn mistakes_name_the_line() {
        let fails = |text: &str, words: &str| {
            let message = Weights::parse("w", text).unwrap_err().to_string();
            assert!(message.starts_with("w:2: ") && message.contains(words), "{message}");
        };
        fails("a 1\nb x\n", "the weight of b is `x`");
        fails("a 1\nb inf\n", "finite");
        fails("a 1\na 2\n", "a second weight for a");
        fails("a 1\nb\n", "expected `name value`");
        fails("a 1\n0 ||| x ||| LM= 1 ||| 2\n", "n-best line");
    }

    #[test]
    fn text_round_trip_is_exact() {
        let mut w = Weights::parse("w", "a 0.1\nb -3e-300\n").unwrap();
        w.scale(1.0 / 3.0);
        assert_eq!(Weights::parse("w", &w.to_text(&["c".into()])).unwrap(), w);
    }

    #[test]
    fn commit_gives_zero_and_keeps_old_values() {
        let mut w = Weights::parse("w", "a 2\n").unwrap();
        let names = ["a", "b"];
        let local = Local::new(names.iter().map(|n| FeatureKey::of(n)).collect());
        let name = |k| names.iter().find(|n| FeatureKey::of(n) == k).unwrap().to_string();
        w.commit(&local, &name).unwrap();
        assert_eq!((w.get(FeatureKey::of("a")), w.get(FeatureKey::of("b")), w.len()), (2.0, 0.0, 2));
    }
}
