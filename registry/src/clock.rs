//! Time, as the core sees it: a number of nanoseconds since the registry was made.
//!
//! The state machine never reads a clock; it is handed a [`Tick`]. Only the shell owns a [`Clock`], which is tokio's, so
//! that a test under `tokio::time::pause` moves every breaker with it. Wall time is a separate thing
//! ([`WallClock`]): it appears in events and snapshots only, never in a decision.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

/// A point in time: nanoseconds since the registry's epoch. Arithmetic saturates: a clock that steps back is elapsed time
/// zero, and the end of time (about 584 years) is never passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Tick(u64);

impl Tick {
    /// The registry's epoch.
    pub(crate) const ZERO: Self = Self(0);

    /// `nanos` after the epoch.
    #[must_use]
    pub(crate) const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the epoch.
    #[must_use]
    pub(crate) const fn as_nanos(self) -> u64 {
        self.0
    }

    /// This point moved on by `by`.
    #[must_use]
    pub(crate) fn after(self, by: Duration) -> Self {
        Self(self.0.saturating_add(saturating_nanos(by)))
    }

    /// Time from `earlier` to this point; zero if `earlier` is later.
    #[must_use]
    pub(crate) const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A duration in nanoseconds, at most `u64::MAX`.
#[inline]
pub(crate) fn saturating_nanos(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(duration.subsec_nanos()))
}

/// Tokio's clock, counted from an epoch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    epoch: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { epoch: Instant::now() }
    }

    #[inline]
    pub(crate) fn now(self) -> Tick {
        self.tick(Instant::now())
    }

    #[inline]
    pub(crate) fn tick(self, instant: Instant) -> Tick {
        Tick::ZERO.after(instant.saturating_duration_since(self.epoch))
    }
}

/// Where wall time comes from: the system, or whatever a test says.
pub trait WallClock: Send + Sync {
    /// The present wall time.
    fn now(&self) -> SystemTime;
}

/// The machine's own wall clock.
#[derive(Clone, Copy, Default)]
pub struct SystemWallClock;

impl WallClock for SystemWallClock {
    #[expect(clippy::disallowed_methods, reason = "this is the injectable clock")]
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

impl fmt::Debug for SystemWallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SystemWallClock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_saturates_at_both_ends() {
        let late = Tick::from_nanos(u64::MAX - 1);
        assert_eq!(late.after(Duration::MAX), Tick::from_nanos(u64::MAX));
        assert_eq!(Tick::ZERO.since(late), Duration::ZERO, "a clock that steps back is elapsed time zero");
    }
}
