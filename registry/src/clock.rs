//! Time, as the core sees it: how long ago the registry was made.
//!
//! The state machine never reads a clock; it is handed a [`Tick`]. Only the shell owns a [`Clock`], which is tokio's, so
//! that a test under `tokio::time::pause` moves every breaker with it. Wall time is a separate thing
//! ([`WallClock`]): it appears in events and snapshots only, never in a decision.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// A point in time: seconds and nanoseconds since the registry's epoch, in one word that an atomic can hold. Arithmetic
/// saturates: a clock that steps back is elapsed time zero, and the end of time (about 544 years) is never passed.
///
/// Seconds and nanoseconds stand side by side, rather than as one number, because clocks and durations keep them so: a
/// rejection compares and subtracts, and converts nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Tick(u64);

/// Bits of the nanoseconds below the seconds.
const NANOS: u32 = 30;

impl Tick {
    /// The registry's epoch.
    pub(crate) const ZERO: Self = Self(0);

    /// The end of time.
    const END: Self = Self(u64::MAX >> NANOS << NANOS | 999_999_999);

    /// `elapsed` after the epoch.
    #[inline]
    const fn at(elapsed: Duration) -> Self {
        if elapsed.as_secs() > u64::MAX >> NANOS {
            return Self::END;
        }
        Self(elapsed.as_secs() << NANOS | elapsed.subsec_nanos() as u64)
    }

    /// Time since the epoch.
    #[inline]
    pub(crate) const fn elapsed(self) -> Duration {
        Duration::new(self.0 >> NANOS, (self.0 & ((1 << NANOS) - 1)) as u32)
    }

    /// `nanos` after the epoch.
    #[must_use]
    pub(crate) const fn from_nanos(nanos: u64) -> Self {
        Self::at(Duration::from_nanos(nanos))
    }

    /// Nanoseconds since the epoch.
    #[must_use]
    pub(crate) fn as_nanos(self) -> u64 {
        saturating_nanos(self.elapsed())
    }

    /// The word, for an atomic.
    #[inline]
    pub(crate) const fn to_bits(self) -> u64 {
        self.0
    }

    /// The point in time that [`to_bits`](Self::to_bits) gave this word.
    #[inline]
    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// This point moved on by `by`.
    #[must_use]
    pub(crate) const fn after(self, by: Duration) -> Self {
        Self::at(self.elapsed().saturating_add(by))
    }

    /// Time from `earlier` to this point; zero if `earlier` is later.
    #[inline]
    #[must_use]
    pub(crate) const fn since(self, earlier: Self) -> Duration {
        self.elapsed().saturating_sub(earlier.elapsed())
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
    epoch: std::time::Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { epoch: Instant::now().into_std() }
    }

    #[inline]
    pub(crate) fn now(self) -> Tick {
        Tick::at(Instant::now().into_std().saturating_duration_since(self.epoch))
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

/// Turns points in time into wall time.
#[derive(Clone)]
pub(crate) struct WallTime {
    clock: Clock,
    wall: Arc<dyn WallClock>,
}

impl WallTime {
    pub(crate) fn new(clock: Clock, wall: Arc<dyn WallClock>) -> Self {
        Self { clock, wall }
    }

    /// The wall time of `tick`, which is not later than now. 1970 if the wall clock panics. Not for a call to ask: a wall clock
    /// may block.
    pub(crate) fn at(&self, tick: Tick) -> SystemTime {
        let age = self.clock.now().since(tick);
        let now = catch_unwind(AssertUnwindSafe(|| self.wall.now())).ok();
        now.and_then(|now| now.checked_sub(age)).unwrap_or(SystemTime::UNIX_EPOCH)
    }
}

impl fmt::Debug for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WallTime")
    }
}

/// A point in time by a store's clock: microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Stamp(u64);

impl Stamp {
    /// `micros` after 1970 began.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970 began.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// This point moved on by `by`, to the next whole microsecond: what is due is never early.
    #[must_use]
    pub fn after(self, by: Duration) -> Self {
        Self(self.0.saturating_add(saturating_nanos(by).div_ceil(1000)))
    }

    /// This point moved back by `by`.
    #[must_use]
    pub fn before(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(saturating_nanos(by) / 1000))
    }

    /// Time from `earlier` to this point; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl From<SystemTime> for Stamp {
    /// Zero before 1970.
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_saturates_at_both_ends() {
        let late = Tick::from_nanos(u64::MAX - 1);
        assert_eq!(late.after(Duration::MAX), Tick::END);
        assert_eq!(Tick::END.after(Duration::from_nanos(1)), Tick::END);
        assert_eq!(Tick::ZERO.since(late), Duration::ZERO, "a clock that steps back is elapsed time zero");
    }

    #[test]
    fn later_is_greater_and_nothing_is_lost() {
        let nanos = [0, 1, 999_999_999, 1_000_000_000, 1_000_000_001, 59_999_999_999, u64::MAX / 2];
        for pair in nanos.windows(2) {
            let (earlier, later) = (Tick::from_nanos(pair[0]), Tick::from_nanos(pair[1]));
            assert!(earlier < later);
            assert_eq!(later.since(earlier), Duration::from_nanos(pair[1] - pair[0]));
            assert_eq!(earlier.after(later.since(earlier)), later);
            assert_eq!(later.as_nanos(), pair[1]);
        }
    }
}
