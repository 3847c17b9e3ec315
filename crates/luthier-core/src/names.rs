//! Feature names, numbered in order of first occurrence.

use crate::{Error, FeatureKey, Result};
use rustc_hash::FxHashMap;

/// Feature names with their keys, numbered from 0 in the order of first occurrence.
///
/// ```
/// use luthier_core::{FeatureKey, Names};
/// let mut names = Names::default();
/// let mut number = |name| names.intern(name).unwrap();
/// assert_eq!([number("lm"), number("tm"), number("lm")], [0, 1, 0]);
/// assert_eq!(names.get(FeatureKey::of("tm")), Some("tm"));
/// assert!(names.intern("a ||| b").is_err());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// Keys of the names, by number.
    keys: Vec<FeatureKey>,
    /// The names, by number.
    spelled: Vec<String>,
    /// Number of the name with a key.
    index: FxHashMap<FeatureKey, u32>,
}

impl Names {
    /// Returns the number of a name, a new one if it has not occurred before. Fails if another name has the
    /// same key, or if the name is empty, begins or ends with white space, or contains a control character or
    /// `|||`.
    pub fn intern(&mut self, name: &str) -> Result<u32> {
        let key = FeatureKey::of(name);
        if let Some(&id) = self.index.get(&key) {
            let known = &self.spelled[id as usize];
            return if known == name { Ok(id) } else { Err(collision(known, name)) };
        }
        check(name)?;
        let id = self.spelled.len() as u32;
        self.keys.push(key);
        self.spelled.push(name.to_owned());
        self.index.insert(key, id);
        Ok(id)
    }

    /// Returns the name with a key; `None` if no such name has been interned.
    pub fn get(&self, key: FeatureKey) -> Option<&str> {
        self.index.get(&key).map(|&id| self.spelled[id as usize].as_str())
    }

    /// Returns the keys of all names; a name's number is its index.
    pub fn keys(&self) -> &[FeatureKey] {
        &self.keys
    }

    /// Returns all names; a name's number is its index.
    pub fn names(&self) -> &[String] {
        &self.spelled
    }
}

/// Fails on a name that could not be read back from a weights file or an n-best list.
pub(crate) fn check(name: &str) -> Result<()> {
    let odd = if name.is_empty() {
        "a feature has an empty name".to_owned()
    } else if name.trim() != name {
        format!("the feature name {name:?} begins or ends with white space")
    } else if name.contains("|||") || name.chars().any(char::is_control) {
        format!("the feature name {name:?} contains a control character or `|||`")
    } else {
        return Ok(());
    };
    Err(Error::new(odd).hint("rename it"))
}

/// Builds the error about two names with the same key. Among a million features, its probability is about one
/// in 37 million.
pub(crate) fn collision(a: &str, b: &str) -> Error {
    Error::new(format!("the feature names {a} and {b} have the same fingerprint")).hint("rename one of them")
}
