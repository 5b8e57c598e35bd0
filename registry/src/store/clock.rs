//! The store's clock, as this process reads it.

use std::time::Duration;

use crate::clock::{Stamp, Tick, saturating_nanos};

/// The store's clock beside ours: the moment at which both were read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreClock {
    tick: Tick,
    stamp: Stamp,
}

impl StoreClock {
    pub(crate) const fn new(tick: Tick, stamp: Stamp) -> Self {
        Self { tick, stamp }
    }

    pub(crate) fn stamp(self, tick: Tick) -> Stamp {
        if tick >= self.tick {
            self.stamp.after(tick.since(self.tick))
        } else {
            self.stamp.before(self.tick.since(tick))
        }
    }

    pub(crate) fn tick(self, stamp: Stamp) -> Tick {
        if stamp >= self.stamp {
            self.tick.after(stamp.since(self.stamp))
        } else {
            Tick::from_nanos(self.tick.as_nanos().saturating_sub(saturating_nanos(self.stamp.since(stamp))))
        }
    }
}

/// A reading of the store's clock, and how long it took.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub(super) clock: StoreClock,
    pub(super) took: Duration,
}

impl Reading {
    /// True if this reading was quicker, is recent, and agrees with `new`.
    pub(super) fn is_better_than(&self, new: &Self) -> bool {
        const OLD: Duration = Duration::from_secs(60);
        let expected = self.clock.stamp(new.clock.tick);
        let apart = expected.since(new.clock.stamp).max(new.clock.stamp.since(expected));
        self.took < new.took
            && new.clock.tick.since(self.clock.tick) < OLD
            && apart <= self.took + new.took + Duration::from_millis(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stores_clock_and_ours_convert_both_ways() {
        let clock = StoreClock::new(Tick::ZERO.after(Duration::from_secs(10)), Stamp::from_micros(1_000_000_000));
        for secs in [0, 9, 10, 11, 5000] {
            let tick = Tick::ZERO.after(Duration::from_secs(secs));
            assert_eq!(clock.tick(clock.stamp(tick)), tick);
        }
        assert_eq!(clock.tick(Stamp::from_micros(0)), Tick::ZERO, "before this process began");
    }

    #[test]
    fn a_quick_recent_reading_outlives_slow_ones() {
        let reading = |at: u64, stamp: u64, took: u64| Reading {
            clock: StoreClock::new(Tick::ZERO.after(Duration::from_millis(at)), Stamp::from_micros(stamp * 1000)),
            took: Duration::from_millis(took),
        };
        let quick = reading(1000, 501_000, 1);
        assert!(quick.is_better_than(&reading(2000, 502_030, 80)));
        assert!(!quick.is_better_than(&reading(2000, 502_000, 0)), "a better one");
        assert!(!quick.is_better_than(&reading(62_000, 562_030, 80)), "clocks drift");
        assert!(!quick.is_better_than(&reading(2000, 602_000, 80)), "the store's clock was set");
    }
}
