//! The rate limit: never more than `limit` calls in any window of the length `per`, and no more waiting than that needs.
//!
//! The limiter remembers when the last `limit` calls started. A call may start when the oldest of them is at least `per` ago. So
//! calls may come all at once or evenly spaced, and the limit holds in every window, the one around a burst included. The same
//! memory survives a reload: what was spent stays spent under the new limit.
//!
//! Above [`EXACT`] calls per window the limiter remembers groups of calls instead, by the time of the last call of each group. The
//! limit still holds; a call may wait for a group to grow old.

use std::{collections::VecDeque, num::NonZeroU32, time::Duration};

use crate::{clock::Tick, policy::RateLimitPolicy};

/// The most that is remembered of one breaker: 32 KiB.
const EXACT: u32 = 4096;

/// One breaker's rate limit.
#[derive(Debug, Clone)]
pub(crate) struct Limiter {
    per: Duration,
    /// Groups of calls within the window, at the most.
    groups: u32,
    /// Calls in a group, at the most.
    size: u32,
    /// When the last call of each group started, the newest at the end.
    starts: VecDeque<Tick>,
    /// Calls in the newest group.
    newest: u32,
}

impl Limiter {
    pub(crate) fn new(policy: &RateLimitPolicy) -> Self {
        Self::share_of(policy, 1)
    }

    /// The limit of one process when `processes` share `policy`.
    pub(crate) fn share_of(policy: &RateLimitPolicy, processes: u32) -> Self {
        let limit = policy.limit.get();
        let processes = NonZeroU32::new(processes).unwrap_or(NonZeroU32::MIN).get();
        let share = (limit / processes).max(1);
        // With more processes than calls, each gets one call in a longer time.
        let per = if limit >= processes { policy.per } else { policy.per.saturating_mul(processes) / limit };
        let size = share.div_ceil(EXACT);
        Self { per, groups: share / size, size, starts: VecDeque::new(), newest: 0 }
    }

    /// The same under another limit: what was spent stays spent.
    pub(crate) fn under(self, mut new: Self) -> Self {
        let skip = self.starts.len().saturating_sub(new.groups as usize);
        let calls = |group: u32| group.div_ceil(new.size).max(1);
        // Groups of another size are taken as full ones of the new size.
        for start in self.starts.iter().skip(skip) {
            for _ in 0..calls(self.size) {
                new.starts.push_back(*start);
            }
        }
        while new.starts.len() > new.groups as usize {
            new.starts.pop_front();
        }
        new.newest = if self.size == new.size { self.newest } else { new.size };
        new
    }

    /// Whether a call may start now, or how long until one may. Takes nothing. A clock that steps back is elapsed time zero.
    pub(crate) fn check(&self, now: Tick) -> Result<(), Duration> {
        if self.starts.len() < self.groups as usize || self.newest < self.size {
            return Ok(());
        }
        let Some((oldest, newest)) = self.starts.front().zip(self.starts.back()) else { return Ok(()) };
        let free = oldest.after(self.per);
        let now = now.max(*newest);
        if now >= free { Ok(()) } else { Err(free.since(now)) }
    }

    /// A call starts now, or may in so long.
    pub(crate) fn take(&mut self, now: Tick) -> Result<(), Duration> {
        self.check(now)?;
        self.spend(now);
        Ok(())
    }

    /// A call starts now; [`check`](Self::check) has agreed.
    pub(crate) fn spend(&mut self, now: Tick) {
        let now = self.starts.back().map_or(now, |newest| now.max(*newest));
        if let Some(newest) = self.starts.back_mut()
            && self.newest < self.size
        {
            *newest = now;
            self.newest += 1;
            return;
        }
        if self.starts.len() >= self.groups as usize {
            self.starts.pop_front();
        }
        self.starts.push_back(now);
        self.newest = 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::policy::LimitScope;

    fn policy(limit: u32, per: Duration) -> RateLimitPolicy {
        RateLimitPolicy { limit: NonZeroU32::new(limit).unwrap(), per, scope: LimitScope::Process }
    }

    fn limiter(limit: u32, per: Duration) -> Limiter {
        Limiter::new(&policy(limit, per))
    }

    fn at(millis: u64) -> Tick {
        Tick::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn one_a_second_means_a_second_apart() {
        let mut limiter = limiter(1, Duration::from_secs(1));
        assert!(limiter.take(at(100_000)).is_ok());
        assert_eq!(limiter.take(at(100_400)), Err(Duration::from_millis(600)));
        assert!(limiter.take(at(101_000)).is_ok());
    }

    #[test]
    fn ten_a_minute_are_ten_in_any_minute() {
        let mut limiter = limiter(10, Duration::from_secs(60));
        let taken = (0..59).filter(|sec| limiter.take(at(sec * 1000)).is_ok()).count();
        assert_eq!(taken, 10);
        assert!(limiter.take(at(60_000)).is_ok(), "the first is a minute ago");
    }

    #[test]
    fn a_clock_that_steps_back_costs_no_token() {
        let mut limiter = limiter(3, Duration::from_secs(3));
        assert!(limiter.take(at(3_600_000)).is_ok());
        assert!(limiter.take(at(0)).is_ok() && limiter.take(at(3_600_000)).is_ok());
        assert_eq!(limiter.take(at(0)).err(), Some(Duration::from_secs(3)));
    }

    #[test]
    fn a_reload_keeps_what_was_spent() {
        let hour = Duration::from_secs(3600);
        let mut limited = limiter(60, hour);
        (0..60).for_each(|_| limited.take(at(1)).expect("within the limit"));
        for limit in 61..200 {
            limited = limited.under(limiter(limit, hour));
            assert!(limited.take(at(2)).is_ok(), "one more than before");
            assert!(limited.take(at(2)).is_err(), "{limit}");
        }
        limited = limited.under(limiter(5, hour));
        assert_eq!(limited.take(at(3)).err(), Some(hour - Duration::from_millis(1)));
    }

    proptest! {
        /// In no window, and under no sequence of reloads between limits of one window, are there more calls than allowed; and a
        /// call that is told to wait can start then.
        #[test]
        fn no_window_holds_more(limit in 1u32..20, steps in vec((0u64..2_000, any::<bool>()), 1..200)) {
            let per = Duration::from_secs(3);
            let mut limiter = limiter(limit, per);
            let (mut now, mut all) = (0, Vec::new());
            for (step, wait) in steps {
                now += step;
                match limiter.take(at(now)) {
                    Ok(()) => all.push(now),
                    Err(wait_for) if wait => {
                        let short = Tick::from_nanos((at(now).after(wait_for)).as_nanos() - 1);
                        prop_assert!(limiter.check(short).is_err(), "no longer than needed");
                        now += wait_for.as_millis() as u64;
                        prop_assert_eq!(limiter.take(at(now)), Ok(()));
                        all.push(now);
                    }
                    Err(_) => {}
                }
                let inside = all.iter().filter(|start| **start + 3_000 > now).count();
                prop_assert!(inside <= limit as usize, "{} of {}", inside, limit);
            }
        }

        /// Groups of calls keep the limit too.
        #[test]
        fn a_large_limit_holds_too(limit in 4_000u32..20_000, steps in vec(0u64..1_500, 1..12)) {
            let mut limiter = limiter(limit, Duration::from_secs(3));
            let (mut now, mut all) = (0, Vec::new());
            for step in steps {
                now += step;
                let mut taken = 0_u32;
                while taken < 15_000 && limiter.take(at(now)).is_ok() {
                    taken += 1;
                }
                all.push((now, taken));
                let inside: u32 = all.iter().filter(|(start, _)| start + 3_000 > now).map(|(_, taken)| taken).sum();
                prop_assert!(inside <= limit, "{} of {}", inside, limit);
                prop_assert!(all.len() > 1 || taken == 15_000.min(limit / limiter.size * limiter.size), "the whole limit at once");
            }
        }
    }
}
