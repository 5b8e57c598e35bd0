//! Sliding windows: the evidence a rate is judged on.
//!
//! Both kinds cost the same whether they hold nothing or a hundred thousand calls, and both have a size that is known when
//! they are made. A count window keeps two bits per call in a ring. A time window keeps sixty slices of sums; a slice is
//! dropped whole when its beginning is older than the window, so that nothing older than `time` is ever counted, and
//! nothing younger than 59/60 of the span is forgotten.

use std::time::Duration;

use crate::{
    clock::{Tick, saturating_nanos},
    policy::{Span, WindowPolicy},
};

const SLICES: u64 = 60;

/// What a window holds, added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tally {
    pub(crate) calls: u64,
    pub(crate) failures: u64,
    pub(crate) slow: u64,
}

impl Tally {
    fn add(&mut self, failed: bool, slow: bool) {
        self.calls += 1;
        self.failures += u64::from(failed);
        self.slow += u64::from(slow);
    }

    fn take(&mut self, other: Self) {
        self.calls -= other.calls;
        self.failures -= other.failures;
        self.slow -= other.slow;
    }

    fn merge(&mut self, other: Self) {
        self.calls += other.calls;
        self.failures += other.failures;
        self.slow += other.slow;
    }
}

/// The evidence of one breaker.
#[derive(Debug, Clone)]
pub(crate) enum Window {
    Count(CountWindow),
    Time(TimeWindow),
}

impl Window {
    pub(crate) fn new(span: Span) -> Self {
        match span {
            Span::Calls(calls) => Self::Count(CountWindow::new(calls.get() as usize)),
            Span::Time(time) => Self::Time(TimeWindow::new(time)),
        }
    }

    pub(crate) fn record(&mut self, now: Tick, failed: bool, slow: bool) {
        match self {
            Self::Count(window) => window.record(failed, slow),
            Self::Time(window) => window.record(now, failed, slow),
        }
    }

    /// What counts at `now`. Reading changes nothing that a later reading could see.
    pub(crate) fn tally(&self, now: Tick) -> Tally {
        match self {
            Self::Count(window) => window.tally,
            Self::Time(window) => window.tally(now),
        }
    }

    pub(crate) fn clear(&mut self) {
        match self {
            Self::Count(window) => *window = CountWindow::new(window.size),
            Self::Time(window) => *window = TimeWindow::new(Duration::from_nanos(window.time)),
        }
    }

    /// The same evidence under a new span: as much as the new span would have kept. Evidence of the other kind has no
    /// counterpart and is not carried over.
    pub(crate) fn resized(&self, span: Span) -> Self {
        let mut new = Self::new(span);
        match (self, &mut new) {
            (Self::Count(old), Self::Count(new)) => old.replay(new),
            (Self::Time(old), Self::Time(new)) => old.replay(new),
            _ => {}
        }
        new
    }
}

/// Whether the tally trips the breaker under `policy`.
pub(crate) fn trips(policy: &WindowPolicy, tally: Tally) -> bool {
    tally.calls >= u64::from(policy.minimum_calls.max(1))
        && (policy.failure_rate.is_some_and(|rate| tally.failures > 0 && rate.reached(tally.failures, tally.calls))
            || policy.slow.is_some_and(|slow| tally.slow > 0 && slow.rate.reached(tally.slow, tally.calls)))
}

/// The last `size` calls, two bits each.
#[derive(Debug, Clone)]
pub(crate) struct CountWindow {
    size: usize,
    next: usize,
    /// Thirty-two calls a word; grows with the evidence up to `size`.
    bits: Vec<u64>,
    tally: Tally,
}

impl CountWindow {
    fn new(size: usize) -> Self {
        Self { size, next: 0, bits: Vec::new(), tally: Tally::default() }
    }

    fn record(&mut self, failed: bool, slow: bool) {
        let (word, shift) = (self.next / 32, self.next % 32 * 2);
        if word == self.bits.len() {
            self.bits.push(0);
        }
        if self.tally.calls == self.size as u64 {
            let (failed, slow) = self.get(self.next);
            self.tally.take(Tally { calls: 1, failures: failed.into(), slow: slow.into() });
        }
        self.bits[word] &= !(0b11 << shift);
        self.bits[word] |= (u64::from(failed) | u64::from(slow) << 1) << shift;
        self.tally.add(failed, slow);
        self.next = if self.next + 1 == self.size { 0 } else { self.next + 1 };
    }

    fn get(&self, at: usize) -> (bool, bool) {
        let pair = self.bits[at / 32] >> (at % 32 * 2);
        (pair & 1 != 0, pair & 2 != 0)
    }

    fn replay(&self, into: &mut Self) {
        let calls = self.tally.calls as usize;
        let oldest = (self.next + self.size - calls) % self.size;
        for i in 0..calls {
            let (failed, slow) = self.get((oldest + i) % self.size);
            into.record(failed, slow);
        }
    }
}

/// The calls of the last `time`, in slices.
#[derive(Debug, Clone)]
pub(crate) struct TimeWindow {
    /// Nanoseconds.
    time: u64,
    /// Nanoseconds a slice, at least 1.
    slice: u64,
    slices: Box<[Tally]>,
    /// Number of the slice that was written last, counted from the epoch; the ring holds it and the ones before it.
    newest: u64,
    total: Tally,
}

impl TimeWindow {
    fn new(time: Duration) -> Self {
        let time = saturating_nanos(time).max(1);
        Self {
            time,
            slice: (time / SLICES).max(1),
            slices: vec![Tally::default(); SLICES as usize].into(),
            newest: 0,
            total: Tally::default(),
        }
    }

    fn record(&mut self, now: Tick, failed: bool, slow: bool) {
        self.advance(now);
        let slot = (self.newest % SLICES) as usize;
        self.slices[slot].add(failed, slow);
        self.total.add(failed, slow);
    }

    /// Drops the slices that `now` has left behind. A clock that steps back drops nothing.
    fn advance(&mut self, now: Tick) {
        let current = now.as_nanos() / self.slice;
        let steps = current.saturating_sub(self.newest);
        for step in 1..=steps.min(SLICES) {
            let slot = ((self.newest + step) % SLICES) as usize;
            let old = std::mem::take(&mut self.slices[slot]);
            self.total.take(old);
        }
        self.newest = self.newest.max(current);
    }

    fn tally(&self, now: Tick) -> Tally {
        let current = now.as_nanos() / self.slice;
        let steps = current.saturating_sub(self.newest);
        if steps == 0 {
            return self.total;
        }
        let mut total = self.total;
        for step in 1..=steps.min(SLICES) {
            total.take(self.slices[((self.newest + step) % SLICES) as usize]);
        }
        total
    }

    fn replay(&self, into: &mut Self) {
        for back in (0..SLICES.min(self.newest + 1)).rev() {
            let number = self.newest - back;
            let tally = self.slices[(number % SLICES) as usize];
            if tally.calls > 0 {
                into.advance(Tick::from_nanos(number.saturating_mul(self.slice)));
                let slot = (into.newest % SLICES) as usize;
                into.slices[slot].merge(tally);
                into.total.merge(tally);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use proptest::prelude::*;

    use super::*;

    fn calls(n: u32) -> Span {
        Span::Calls(NonZeroU32::new(n).unwrap())
    }

    fn at(millis: u64) -> Tick {
        Tick::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_count_window_slides() {
        let mut window = Window::new(calls(10));
        for _ in 0..1000 {
            window.record(Tick::ZERO, false, false);
        }
        for failures in 1..=10 {
            window.record(Tick::ZERO, true, false);
            assert_eq!(window.tally(Tick::ZERO), Tally { calls: 10, failures, slow: 0 });
        }
    }

    #[test]
    fn a_time_window_forgets_by_time_alone() {
        let mut window = Window::new(Span::Time(Duration::from_secs(60)));
        window.record(at(500), true, true);
        assert_eq!(window.tally(at(59_999)).calls, 1);
        assert_eq!(window.tally(at(60_500)).calls, 0, "nothing older than the window counts");
        assert_eq!(window.tally(at(500)).calls, 1, "and reading forgot nothing");
    }

    #[test]
    fn a_clock_that_steps_back_loses_nothing() {
        let mut window = Window::new(Span::Time(Duration::from_secs(60)));
        window.record(at(50_000), true, false);
        window.record(at(10), true, false);
        assert_eq!(window.tally(at(0)), Tally { calls: 2, failures: 2, slow: 0 });
    }

    #[test]
    fn resizing_keeps_the_newest_evidence() {
        let mut window = Window::new(calls(5));
        for i in 0..7 {
            window.record(Tick::ZERO, i >= 4, false);
        }
        assert_eq!(window.resized(calls(100)).tally(Tick::ZERO), Tally { calls: 5, failures: 3, slow: 0 });
        assert_eq!(window.resized(calls(3)).tally(Tick::ZERO), Tally { calls: 3, failures: 3, slow: 0 });

        let mut window = Window::new(Span::Time(Duration::from_secs(60)));
        window.record(at(1_000), false, false);
        window.record(at(50_000), true, false);
        let shorter = window.resized(Span::Time(Duration::from_secs(20)));
        assert_eq!(shorter.tally(at(55_000)), Tally { calls: 1, failures: 1, slow: 0 });
    }

    proptest! {
        /// Against the obvious implementation: keep everything, count what is young enough.
        #[test]
        fn agrees_with_keeping_everything(size in 1u32..40, events in prop::collection::vec((0u64..5_000, any::<bool>(), any::<bool>()), 0..200)) {
            let mut count = Window::new(calls(size));
            let mut time = Window::new(Span::Time(Duration::from_secs(6)));
            let (mut now, mut all) = (0, Vec::new());
            for (step, failed, slow) in events {
                now += step;
                count.record(at(now), failed, slow);
                time.record(at(now), failed, slow);
                all.push((now, failed, slow));
                let last = &all[all.len().saturating_sub(size as usize)..];
                let expected = Tally {
                    calls: last.len() as u64,
                    failures: last.iter().filter(|e| e.1).count() as u64,
                    slow: last.iter().filter(|e| e.2).count() as u64,
                };
                prop_assert_eq!(count.tally(at(now)), expected);
                // slices of 100 ms: the window holds those that began less than 6 s before the current one's end
                let oldest = (now / 100 + 1).saturating_sub(60) * 100;
                let expected = all.iter().filter(|e| e.0 >= oldest).count() as u64;
                prop_assert_eq!(time.tally(at(now)).calls, expected);
            }
        }
    }
}
