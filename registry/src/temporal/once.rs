//! Logs that would otherwise come with every activity.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Mutex, PoisonError},
};

/// Distinct things said at the most; whoever puts data into names must not fill the memory with them.
const MOST: usize = 256;

/// What was said already.
#[derive(Debug, Default)]
pub(super) struct Once(Mutex<HashSet<u64>>);

impl Once {
    /// Runs `say` the first time that `what` comes up.
    pub(super) fn once(&self, what: &impl Hash, say: impl FnOnce()) {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = said.len() < MOST && said.insert(hasher.finish());
        drop(said);
        if new {
            say();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_each_thing_once_and_not_without_end() {
        let (once, mut said) = (Once::default(), 0);
        for _ in 0..3 {
            once.once(&("header", "a"), || said += 1);
            once.once(&("header", "b"), || said += 1);
        }
        assert_eq!(said, 2);
        for number in 0..10_000 {
            once.once(&number, || said += 1);
        }
        assert_eq!(said, MOST);
    }
}
