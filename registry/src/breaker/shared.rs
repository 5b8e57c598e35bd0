//! What all breakers of a registry share: its clock, its announcer, its store, and how it was built.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::store_port::StorePort;
use crate::{
    announcer::Announcer,
    clock::{Clock, Tick, WallTime},
};

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    /// For views; no call reads it.
    pub(crate) wall: WallTime,
    pub(crate) announcer: Announcer,
    /// Every call is measured, whether its policy needs that or not.
    pub(crate) measured: bool,
    /// Where the jitter of this registry's breakers begins.
    pub(crate) seed: u64,
    /// Calls of names that found no room, and when the last warning about them was given.
    pub(crate) unguarded: Unguarded,
    /// Where breakers are remembered and shared, if anywhere.
    pub(crate) store: Option<Arc<dyn StorePort>>,
}

/// Calls that no breaker guards, because too many names were made on first use.
#[derive(Debug, Default)]
pub(crate) struct Unguarded {
    calls: AtomicU64,
    /// The time of the last warning; zero if there was none.
    warned: AtomicU64,
}

/// A warning about unguarded calls is given at most this often.
const WARN_EVERY: Duration = Duration::from_secs(60);

impl Shared {
    /// Calls so far that no breaker guarded.
    pub(crate) fn unguarded_calls(&self) -> u64 {
        self.unguarded.calls.load(Ordering::Relaxed)
    }

    /// One more.
    pub(crate) fn passed_unguarded(&self, now: Tick) {
        let calls = self.unguarded.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let last = self.unguarded.warned.load(Ordering::Relaxed);
        let due = last == 0 || now.since(Tick::from_bits(last)) >= WARN_EVERY;
        let warned = now.to_bits().max(1);
        if due && self.unguarded.warned.compare_exchange(last, warned, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            tracing::warn!(
                calls,
                "more names are in use than `names.max_dynamic` allows: calls of new names pass without a breaker"
            );
        }
    }
}
