//! The calls that an upstream received: how many, for what, how fast.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

/// The calls one upstream has received since it was started or reset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Calls {
    /// All requests that reached it, whatever the answer.
    pub total: u64,
    /// The same by operation; `unrouted` are those that no documented endpoint takes.
    pub operations: BTreeMap<String, u64>,
    /// The same by the part of the upstream (member state, data set), if it has parts.
    pub keys: BTreeMap<String, u64>,
    /// The same by the status of the answer; 0 is a call without a complete answer.
    pub statuses: BTreeMap<u16, u64>,
    /// The most calls that arrived within any one second.
    pub peak_per_second: usize,
    /// What the upstream remembers: credits spent, jobs started, tokens handed out.
    pub counters: BTreeMap<String, u64>,
}

/// The log of one upstream's calls, shared by its connections.
#[derive(Debug, Default)]
pub(crate) struct CallLog(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    calls: Calls,
    /// Arrivals of the last [`KEPT`], newest last.
    arrivals: VecDeque<Instant>,
}

/// How far back arrivals are kept; the longest rate window is a minute.
const KEPT: Duration = Duration::from_secs(60);

impl CallLog {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an arrival.
    pub(crate) fn record_arrival(&self, operation: &str, key: Option<String>, now: Instant) {
        let mut inner = self.lock();
        inner.calls.total += 1;
        *inner.calls.operations.entry(operation.to_owned()).or_default() += 1;
        if let Some(key) = key {
            *inner.calls.keys.entry(key).or_default() += 1;
        }
        inner.arrivals.push_back(now);
        while inner.arrivals.front().is_some_and(|at| now.duration_since(*at) >= KEPT) {
            inner.arrivals.pop_front();
        }
        let last_second = inner.within(Duration::from_secs(1), now);
        inner.calls.peak_per_second = inner.calls.peak_per_second.max(last_second);
    }

    /// Records the status of an answer.
    pub(crate) fn record_status(&self, status: u16) {
        *self.lock().calls.statuses.entry(status).or_default() += 1;
    }

    /// How many calls arrived in the window that ends now, this one included.
    pub(crate) fn within(&self, window: Duration, now: Instant) -> usize {
        self.lock().within(window, now)
    }

    /// A copy of the numbers.
    pub(crate) fn calls(&self) -> Calls {
        self.lock().calls.clone()
    }

    /// Starts again from zero.
    pub(crate) fn clear(&self) {
        *self.lock() = Inner::default();
    }
}

impl Inner {
    fn within(&self, window: Duration, now: Instant) -> usize {
        self.arrivals.iter().rev().take_while(|at| now.duration_since(**at) < window).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_the_busiest_second() {
        let (log, start) = (CallLog::default(), Instant::now());
        for millis in [0, 900, 1000, 1100, 5000] {
            log.record_arrival("op", Some("DE".to_owned()), start + Duration::from_millis(millis));
        }
        let calls = log.calls();
        assert_eq!((calls.total, calls.peak_per_second), (5, 3));
        assert_eq!(calls.keys, BTreeMap::from([("DE".to_owned(), 5)]));
        assert_eq!(log.within(Duration::from_secs(60), start + Duration::from_secs(6)), 5);
    }
}
