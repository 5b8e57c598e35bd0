//! A rate limit that all processes of a fleet share. The tokens are in the store; a process fetches one at a time, and only when
//! a call wants it. While the store is away each process takes its share of the limit by itself.

use std::time::Duration;

use crate::{
    clock::Tick,
    error::RejectReason,
    policy::RateLimitPolicy,
    state::{NotAdmitted, fleet_view::Question, limiter::Limiter},
};

/// One process's view of a shared rate limit.
#[derive(Debug)]
pub(crate) struct FleetLimit {
    pub(crate) policy: RateLimitPolicy,
    /// The store answers.
    pub(crate) up: bool,
    /// Tokens fetched and not spent, good until then.
    fetched: u32,
    good_until: Tick,
    /// The store has no token before then.
    none_before: Tick,
    /// For when the store is away: the share of this process.
    local: Limiter,
    processes: u32,
}

impl FleetLimit {
    pub(crate) fn new(policy: RateLimitPolicy) -> Self {
        Self {
            policy,
            up: false,
            fetched: 0,
            good_until: Tick::ZERO,
            none_before: Tick::ZERO,
            local: Limiter::new(&policy),
            processes: 1,
        }
    }

    /// The fleet has this many processes now.
    pub(crate) fn shared_by(&mut self, processes: u32) {
        if processes != self.processes {
            self.processes = processes;
            self.local = self.local.clone().under(Limiter::share_of(&self.policy, processes));
        }
    }

    /// Goes by `policy` from now on; what was spent stays spent.
    pub(crate) fn reconfigure(&mut self, policy: RateLimitPolicy) {
        self.policy = policy;
        self.local = self.local.clone().under(Limiter::share_of(&policy, self.processes));
    }

    /// Whether there is a token. Takes nothing.
    pub(crate) fn check(&self, now: Tick) -> Result<(), NotAdmitted> {
        if !self.up {
            let limited = |retry_in| NotAdmitted::Rejected(RejectReason::RateLimited, Some(retry_in));
            return self.local.check(now).map_err(limited);
        }
        if self.fetched > 0 && now < self.good_until {
            return Ok(());
        }
        if now < self.none_before {
            return Err(NotAdmitted::Rejected(RejectReason::RateLimited, Some(self.none_before.since(now))));
        }
        Err(NotAdmitted::Ask(Question::Token))
    }

    /// Takes the token; [`check`](Self::check) has agreed.
    pub(crate) fn spend(&mut self, now: Tick) {
        if self.up {
            self.fetched = self.fetched.saturating_sub(1);
        } else {
            self.local.spend(now);
        }
    }

    /// The store gave a token. It does not keep for longer than the limit's own unit of time.
    pub(crate) fn granted(&mut self, now: Tick) {
        if now >= self.good_until {
            self.fetched = 0;
        }
        self.fetched += 1;
        self.good_until = now.after(self.policy.per);
    }

    /// The store has none before `wait` is over.
    pub(crate) fn refused(&mut self, wait: Duration, now: Tick) {
        self.none_before = now.after(wait);
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::policy::LimitScope;

    fn at(millis: u64) -> Tick {
        Tick::ZERO.after(Duration::from_millis(100_000 + millis))
    }

    fn fleet_limit(limit: u32) -> FleetLimit {
        let limit = NonZeroU32::new(limit).unwrap();
        FleetLimit::new(RateLimitPolicy { limit, per: Duration::from_secs(1), scope: LimitScope::Fleet })
    }

    fn take(fleet_limit: &mut FleetLimit, now: Tick) -> Result<(), NotAdmitted> {
        fleet_limit.check(now)?;
        fleet_limit.spend(now);
        Ok(())
    }

    fn limited(result: Result<(), NotAdmitted>) -> Option<Duration> {
        match result {
            Err(NotAdmitted::Rejected(RejectReason::RateLimited, Some(retry_in))) => Some(retry_in),
            _ => None,
        }
    }

    #[test]
    fn a_token_is_fetched_for_the_call_that_wants_it() {
        let mut fleet_limit = fleet_limit(1);
        fleet_limit.up = true;
        assert!(matches!(take(&mut fleet_limit, at(0)), Err(NotAdmitted::Ask(Question::Token))));
        fleet_limit.granted(at(0));
        assert!(fleet_limit.check(at(1)).is_ok(), "it was granted");
        assert!(take(&mut fleet_limit, at(1)).is_ok(), "asking took nothing");
        fleet_limit.refused(Duration::from_millis(700), at(1));
        assert_eq!(
            limited(take(&mut fleet_limit, at(101))),
            Some(Duration::from_millis(600)),
            "no second question before then"
        );
        assert!(matches!(take(&mut fleet_limit, at(701)), Err(NotAdmitted::Ask(Question::Token))));
        fleet_limit.granted(at(701));
        assert!(
            matches!(take(&mut fleet_limit, at(1701)), Err(NotAdmitted::Ask(Question::Token))),
            "too old to be spent"
        );
    }

    #[test]
    fn without_a_store_each_process_has_its_share() {
        let mut fleet_limit = fleet_limit(1);
        fleet_limit.shared_by(8);
        assert!(take(&mut fleet_limit, at(0)).is_ok());
        assert_eq!(limited(take(&mut fleet_limit, at(1000))), Some(Duration::from_secs(7)));
        assert!(take(&mut fleet_limit, at(8000)).is_ok());
    }
}
