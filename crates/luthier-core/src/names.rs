//! Interned feature names.

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
    keys: Vec<FeatureKey>,
    spelled: Vec<String>,
    index: FxHashMap<FeatureKey, u32>,
}

impl Names {
    /// Returns the number of a name, a new one if it has not occurred before. Fails if two names have the
    /// same key, or if the name is empty, begins or ends with a blank, or holds a control character or `|||`.
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

    /// Returns the name behind a key; `None` if it has not been interned.
    pub fn get(&self, key: FeatureKey) -> Option<&str> {
        self.index.get(&key).map(|&id| self.spelled[id as usize].as_str())
    }

    /// Returns the keys of all names, by number.
    pub fn keys(&self) -> &[FeatureKey] {
        &self.keys
    }

    /// Returns all names, by number.
    pub fn names(&self) -> &[String] {
        &self.spelled
    }
}

/// What a feature cannot be called: files that hold names could not be read back.
pub(crate) fn check(name: &str) -> Result<()> {
    let odd = if name.is_empty() {
        "a feature has an empty name".to_owned()
    } else if name.trim() != name {
        format!("the feature name {name:?} begins or ends with a blank")
    } else if name.contains("|||") || name.chars().any(char::is_control) {
        format!("the feature name {name:?} holds a control character or `|||`")
    } else {
        return Ok(());
    };
    Err(Error::new(odd).hint("rename it"))
}

/// Two names, one key: about one chance in 37 million for a million features.
pub(crate) fn collision(a: &str, b: &str) -> Error {
    Error::new(format!("the feature names {a} and {b} have the same fingerprint")).hint("rename one of them")
}
