//! Feature names as readers meet them.

use crate::{Error, FeatureKey, Result};
use rustc_hash::FxHashMap;

/// Names with their keys, numbered in the order of first sight.
#[derive(Debug, Clone, Default)]
pub struct Names {
    keys: Vec<FeatureKey>,
    spelled: Vec<String>,
    index: FxHashMap<FeatureKey, u32>,
}

impl Names {
    /// The number of a name, given a new one if need be. Two names with one key are an error.
    pub fn intern(&mut self, name: &str) -> Result<u32> {
        let key = FeatureKey::of(name);
        if let Some(&id) = self.index.get(&key) {
            let known = &self.spelled[id as usize];
            return if known == name { Ok(id) } else { Err(collision(known, name)) };
        }
        let id = self.spelled.len() as u32;
        self.keys.push(key);
        self.spelled.push(name.to_owned());
        self.index.insert(key, id);
        Ok(id)
    }

    /// The name behind a key.
    pub fn get(&self, key: FeatureKey) -> Option<&str> {
        self.index.get(&key).map(|&id| self.spelled[id as usize].as_str())
    }

    /// Keys by number.
    pub fn keys(&self) -> &[FeatureKey] {
        &self.keys
    }

    /// Names by number.
    pub fn names(&self) -> &[String] {
        &self.spelled
    }
}

/// Two names, one key: about one chance in 37 million for a million features.
pub(crate) fn collision(a: &str, b: &str) -> Error {
    Error::new(format!("the feature names {a} and {b} have the same fingerprint")).hint("rename one of them")
}
