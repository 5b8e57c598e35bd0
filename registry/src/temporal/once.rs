//! Log lines that would otherwise appear for every activity.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Mutex, PoisonError},
};

/// The most distinct keys. Names may contain data, and must not fill the memory.
const MOST: usize = 256;

/// The keys whose line is logged.
#[derive(Debug, Default)]
pub(super) struct Once(Mutex<HashSet<u64>>);

impl Once {
    /// Runs `log` the first time that `key` occurs.
    pub(super) fn once(&self, key: &impl Hash, log: impl FnOnce()) {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = logged.len() < MOST && logged.insert(hasher.finish());
        drop(logged);
        if new {
            log();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_each_key_once_up_to_the_limit() {
        let (once, mut logged) = (Once::default(), 0);
        for _ in 0..3 {
            once.once(&("header", "a"), || logged += 1);
            once.once(&("header", "b"), || logged += 1);
        }
        assert_eq!(logged, 2);
        for number in 0..10_000 {
            once.once(&number, || logged += 1);
        }
        assert_eq!(logged, MOST);
    }
}
