//! What an upstream remembers between calls.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What one upstream remembers: counters from zero, and texts.
#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    counters: BTreeMap<String, u64>,
    texts: BTreeMap<String, String>,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a text under a key.
    pub(crate) fn remember(&self, key: &str, text: String) {
        self.lock().texts.insert(key.to_owned(), text);
    }

    /// The text kept under a key.
    pub(crate) fn recall(&self, key: &str) -> Option<String> {
        self.lock().texts.get(key).cloned()
    }

    /// Adds `n` and returns the new value.
    pub(crate) fn add(&self, counter: &str, n: u64) -> u64 {
        let mut remembered = self.lock();
        let value = remembered.counters.entry(counter.to_owned()).or_default();
        *value += n;
        *value
    }

    /// The value of a counter, if anything was ever added to it.
    pub(crate) fn get(&self, counter: &str) -> Option<u64> {
        self.lock().counters.get(counter).copied()
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        *self.lock() = Remembered::default();
    }

    /// All counters.
    pub(crate) fn all(&self) -> BTreeMap<String, u64> {
        self.lock().counters.clone()
    }
}
