//! A rate limit that all processes of a fleet share. The tokens are in the store; a process fetches one at a time, and only when
//! a call wants it. While the store is away each process takes its share of the limit by itself.

use std::time::Duration;

use crate::{
    clock::Tick,
    error::RejectReason,
    policy::RateLimitPolicy,
    state::{
        NotAdmitted,
        fleet_view::Question,
        limiter::{Limiter, Token},
    },
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

/// A token that was taken, and can be given back.
#[must_use]
pub(crate) enum Taken {
    Fetched,
    Local(Token),
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
            self.local = Limiter::share_of(&self.policy, processes);
        }
    }

    pub(crate) fn take(&mut self, now: Tick) -> Result<Taken, NotAdmitted> {
        if !self.up {
            return self
                .local
                .take(now)
                .map(Taken::Local)
                .map_err(|retry_in| NotAdmitted::Rejected(RejectReason::RateLimited, Some(retry_in)));
        }
        if self.fetched > 0 && now < self.good_until {
            self.fetched -= 1;
            return Ok(Taken::Fetched);
        }
        self.fetched = 0;
        if now < self.none_before {
            return Err(NotAdmitted::Rejected(RejectReason::RateLimited, Some(self.none_before.since(now))));
        }
        Err(NotAdmitted::Ask(Question::Token))
    }

    pub(crate) fn give_back(&mut self, taken: Taken) {
        match taken {
            Taken::Fetched => self.fetched += 1,
            Taken::Local(token) => self.local.give_back(token),
        }
    }

    /// The store gave a token. It does not keep for longer than the limit's own unit of time.
    pub(crate) fn granted(&mut self, now: Tick) {
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

    fn limited(result: Result<Taken, NotAdmitted>) -> Option<Duration> {
        match result {
            Err(NotAdmitted::Rejected(RejectReason::RateLimited, Some(retry_in))) => Some(retry_in),
            _ => None,
        }
    }

    #[test]
    fn a_token_is_fetched_for_the_call_that_wants_it() {
        let mut fleet_limit = fleet_limit(1);
        fleet_limit.up = true;
        assert!(matches!(fleet_limit.take(at(0)), Err(NotAdmitted::Ask(Question::Token))));
        fleet_limit.granted(at(0));
        let taken = fleet_limit.take(at(1)).unwrap_or_else(|_| panic!("it was granted"));
        fleet_limit.give_back(taken);
        assert!(fleet_limit.take(at(1)).is_ok(), "given back by a later step");
        fleet_limit.refused(Duration::from_millis(700), at(1));
        assert_eq!(
            limited(fleet_limit.take(at(101))),
            Some(Duration::from_millis(600)),
            "no second question before then"
        );
        assert!(matches!(fleet_limit.take(at(701)), Err(NotAdmitted::Ask(Question::Token))));
        fleet_limit.granted(at(701));
        assert!(matches!(fleet_limit.take(at(1701)), Err(NotAdmitted::Ask(Question::Token))), "too old to be spent");
    }

    #[test]
    fn without_a_store_each_process_has_its_share() {
        let mut fleet_limit = fleet_limit(1);
        fleet_limit.shared_by(8);
        assert!(fleet_limit.take(at(0)).is_ok());
        assert_eq!(limited(fleet_limit.take(at(1000))), Some(Duration::from_secs(7)));
        assert!(fleet_limit.take(at(8000)).is_ok());
    }
}
