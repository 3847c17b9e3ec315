//! Reading and replacing the weights in the `[weight]` section of a Moses configuration (`moses.ini`); all
//! other lines are kept byte for byte.

use luthier_core::{Error, FeatureKey, Result, Weights};

/// Returns whether a text is a Moses configuration, that is, has a `[weight]` section.
pub fn is_moses_ini(text: &str) -> bool {
    text.lines().any(|l| l.trim() == "[weight]")
}

/// Returns the text of a Moses configuration with new weights in its `[weight]` section; lines whose feature
/// is not in `weights` are kept. `file` is the configuration's name in error messages. Fails if there is no
/// `[weight]` section, or if a feature has a different number of weights there than in `weights`.
pub fn replace(file: &str, text: &str, weights: &Weights) -> Result<String> {
    if !is_moses_ini(text) {
        return Err(Error::in_file(file, "has no [weight] section, expected a Moses configuration"));
    }
    let mut out = String::with_capacity(text.len());
    for (i, line) in lines(text).enumerate() {
        match line {
            Line::Weights { name, values, whole } => match new_values(name, values.len(), weights) {
                Some(new) => {
                    let end = whole.len() - whole.trim_end().len();
                    out += &format!("{name}= {}{}", new.join(" "), &whole[whole.len() - end..]);
                }
                None if partly(name, values.len(), weights) => {
                    let message =
                        format!("{name} has {} weights here, but a different number was tuned", values.len());
                    return Err(Error::at(file, i as u64 + 1, message));
                }
                None => out += whole,
            },
            Line::Other(whole) => out += whole,
        }
    }
    Ok(out)
}

/// Returns the lines of the `[weight]` section that hold weights; comments and all other lines become empty,
/// so that line numbers do not change.
pub(crate) fn weight_lines(text: &str) -> String {
    lines(text)
        .map(|line| match line {
            Line::Weights { whole, .. } if !whole.ends_with('\n') => format!("{whole}\n"),
            Line::Weights { whole, .. } => whole.to_owned(),
            Line::Other(_) => "\n".to_owned(),
        })
        .collect()
}

/// A line of a Moses configuration.
enum Line<'a> {
    /// A line `Name= v1 v2` of the `[weight]` section.
    Weights { name: &'a str, values: Vec<&'a str>, whole: &'a str },
    /// Any other line.
    Other(&'a str),
}

/// Iterates over the lines of a Moses configuration, with line ends.
fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut inside = false;
    text.split_inclusive('\n').map(move |whole| {
        let line = whole.trim();
        if line.starts_with('[') {
            inside = line == "[weight]";
            return Line::Other(whole);
        }
        match line.split_once('=') {
            Some((name, values)) if inside && !line.starts_with('#') => {
                Line::Weights { name: name.trim(), values: values.split_whitespace().collect(), whole }
            }
            _ => Line::Other(whole),
        }
    })
}

/// Returns the names of the `n` weights of a feature: `Name` if there is one, else `Name[0]`, `Name[1]`, ….
fn names(name: &str, n: usize) -> Vec<String> {
    if n == 1 { vec![name.to_owned()] } else { (0..n).map(|i| format!("{name}[{i}]")).collect() }
}

/// Returns the new weights of a feature; `None` unless there are exactly `n`.
fn new_values(name: &str, n: usize, weights: &Weights) -> Option<Vec<String>> {
    let keys: Vec<FeatureKey> = names(name, n).iter().map(|n| FeatureKey::of(n)).collect();
    let exact = keys.iter().all(|&k| weights.contains(k))
        && !weights.contains(FeatureKey::of(&format!("{name}[{n}]")));
    exact.then(|| keys.iter().map(|&k| weights.get(k).to_string()).collect())
}

/// Returns whether `weights` has weights of this feature, given that it does not have exactly `n`.
fn partly(name: &str, n: usize, weights: &Weights) -> bool {
    let has = |name: &str| weights.contains(FeatureKey::of(name));
    has(&format!("{name}[0]")) || (n > 1 && has(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INI: &str = "# mine\r\n[feature]\nWordPenalty\nKENLM name=LM0 order=5\n\n[weight]\n# w\nLM0= 0.5\nTM0= 0.1  0.2\nUnknownWordPenalty0= 1\n\n[distortion-limit]\n6";

    #[test]
    fn weights_come_out_and_go_back_in() {
        let w = crate::parse_weights("moses.ini", INI).unwrap();
        let all: Vec<_> = w.iter().collect();
        assert_eq!(all, [("LM0", 0.5), ("TM0[0]", 0.1), ("TM0[1]", 0.2), ("UnknownWordPenalty0", 1.0)]);
        let new = Weights::parse("w", "LM0 0.25\nTM0[0] -1\nTM0[1] 1e-9\n").unwrap();
        let expected = INI.replace("LM0= 0.5", "LM0= 0.25").replace("TM0= 0.1  0.2", "TM0= -1 0.000000001");
        assert_eq!(replace("moses.ini", INI, &new).unwrap(), expected);
    }

    #[test]
    fn another_number_of_weights_is_refused() {
        let new = Weights::parse("w", "TM0[0] 1\nTM0[1] 1\nTM0[2] 1\n").unwrap();
        let message = replace("moses.ini", INI, &new).unwrap_err().to_string();
        assert_eq!(message, "moses.ini:9: TM0 has 2 weights here, but a different number was tuned");
        assert!(replace("x", "lm 1\n", &new).is_err());
    }
}
