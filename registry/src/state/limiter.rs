//! The rate limit, on `governor`'s cell-rate algorithm, as a pure function of the tick it is handed.
//!
//! Governor brings the arithmetic; the clock it reads is a number we set before each question, and its state is a cell we can
//! look into. That makes two things possible that a limiter with a clock of its own cannot do: virtual time in tests, and
//! giving a token back when a later step refuses the call.

use std::{
    fmt,
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use governor::{
    Quota, RateLimiter,
    clock::Clock,
    middleware::NoOpMiddleware,
    nanos::Nanos,
    state::{NotKeyed, StateStore},
};

use crate::{clock::Tick, policy::RateLimitPolicy};

/// The tick the limiter is asked at. Shared with governor, which insists on a clock of its own.
#[derive(Clone, Default)]
struct AskedAt(Arc<AtomicU64>);

impl Clock for AskedAt {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::new(self.0.load(Ordering::Relaxed))
    }
}

/// Governor's state, one number; zero is "never asked". Only ever used under the breaker's mutex.
#[derive(Clone, Default)]
struct Cell(Arc<AtomicU64>);

impl StateStore for Cell {
    type Key = NotKeyed;

    fn measure_and_replace<T, F, E>(&self, _: &NotKeyed, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let before = self.0.load(Ordering::Relaxed);
        let (answer, after) = decide((before != 0).then(|| Nanos::new(before)))?;
        self.0.store(after.as_u64(), Ordering::Relaxed);
        Ok(answer)
    }
}

/// One breaker's rate limit.
pub(crate) struct Limiter {
    asked_at: AskedAt,
    cell: Cell,
    governor: RateLimiter<NotKeyed, Cell, AskedAt, NoOpMiddleware<Nanos>>,
}

/// A token that was taken, and can be given back.
#[must_use]
#[derive(Debug)]
pub(crate) struct Token {
    before: u64,
}

impl Limiter {
    pub(crate) fn new(policy: &RateLimitPolicy) -> Self {
        Self::share_of(policy, 1)
    }

    /// The limit of one process when `processes` share `policy`.
    pub(crate) fn share_of(policy: &RateLimitPolicy, processes: u32) -> Self {
        let processes = NonZeroU32::new(processes).unwrap_or(NonZeroU32::MIN);
        let burst = NonZeroU32::new(policy.limit.get() / processes).unwrap_or(NonZeroU32::MIN);
        let spacing = policy.per.saturating_mul(processes.get()) / policy.limit.get();
        let (asked_at, cell) = (AskedAt::default(), Cell::default());
        let governor = RateLimiter::new(quota(burst, spacing), cell.clone(), asked_at.clone());
        Self { asked_at, cell, governor }
    }

    /// Takes a token, or says how long until there is one. A clock that steps back is elapsed time zero.
    pub(crate) fn take(&self, now: Tick) -> Result<Token, Duration> {
        let asked_at = now.as_nanos().max(self.asked_at.0.load(Ordering::Relaxed));
        self.asked_at.0.store(asked_at, Ordering::Relaxed);
        let before = self.cell.0.load(Ordering::Relaxed);
        match self.governor.check() {
            Ok(()) => Ok(Token { before }),
            Err(refused) => Err(refused.wait_time_from(Nanos::new(asked_at))),
        }
    }

    /// Undoes a [`take`](Self::take), if nothing was taken since.
    pub(crate) fn give_back(&self, token: Token) {
        self.cell.0.store(token.before, Ordering::Relaxed);
    }
}

/// A whole allowance at once, then evenly spaced.
fn quota(burst: NonZeroU32, spacing: Duration) -> Quota {
    let spacing = spacing.max(Duration::from_nanos(1));
    Quota::with_period(spacing).map_or_else(|| Quota::per_second(burst), |quota| quota.allow_burst(burst))
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::LimitScope;

    fn limiter(limit: u32, per: Duration) -> Limiter {
        Limiter::new(&RateLimitPolicy { limit: NonZeroU32::new(limit).unwrap(), per, scope: LimitScope::Process })
    }

    #[test]
    fn one_a_second_means_a_second_apart() {
        let limiter = limiter(1, Duration::from_secs(1));
        let start = Tick::ZERO.after(Duration::from_secs(100));
        assert!(limiter.take(start).is_ok());
        assert_eq!(limiter.take(start.after(Duration::from_millis(400))).err(), Some(Duration::from_millis(600)));
        assert!(limiter.take(start.after(Duration::from_secs(1))).is_ok());
    }

    #[test]
    fn a_clock_that_steps_back_costs_no_token() {
        let limiter = limiter(3, Duration::from_secs(3));
        let late = Tick::ZERO.after(Duration::from_secs(3600));
        assert!(limiter.take(late).is_ok());
        assert!(limiter.take(Tick::ZERO).is_ok() && limiter.take(late).is_ok());
        assert_eq!(limiter.take(Tick::ZERO).err(), Some(Duration::from_secs(1)));
    }

    #[test]
    fn a_token_given_back_can_be_taken_again() {
        let limiter = limiter(2, Duration::from_secs(60));
        for _ in 0..10 {
            let token = limiter.take(Tick::ZERO).expect("nothing is spent by asking and giving back");
            limiter.give_back(token);
        }
        assert!(limiter.take(Tick::ZERO).is_ok() && limiter.take(Tick::ZERO).is_ok());
        assert!(limiter.take(Tick::ZERO).is_err());
    }
}
