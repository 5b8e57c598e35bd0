//! What a breaker looks like from outside. Looking changes nothing.

use std::time::SystemTime;

use super::inner::BreakerInner;
#[cfg(feature = "prometheus")]
use crate::breaker::histogram::Histogram;
use crate::{
    breaker::{fast_path::Counter, sync::Ordering},
    outcome::State,
    policy::Mode,
    view::{BreakerView, CallCounts, LastFailure, OverrideView},
};

impl BreakerInner {
    #[cfg(feature = "prometheus")]
    pub(crate) fn histogram(&self) -> Option<&Histogram> {
        self.histogram.as_deref()
    }

    /// Calls that came in, admitted or not: whether the breaker is in use.
    pub(crate) fn arrivals(&self) -> u64 {
        let refused: u64 = self.refused.iter().map(|r| r.load(Ordering::Relaxed)).sum();
        self.counters.sum(Counter::Admitted) + self.counters.sum(Counter::RejectedOpen) + refused
    }

    /// Closed, without an override, and without a call in flight: the table may forget it.
    pub(crate) fn is_forgettable(&self) -> bool {
        let (guarded, now) = self.lock_all_now();
        let state = &guarded.state;
        self.counters.in_flight() == 0
            && state.overrides.is_idle(now)
            && state.policy.mode == Mode::Enforce
            && state.machine.is_closed()
            && state.machine.state(now) == State::Closed
    }

    pub(crate) fn view(&self) -> BreakerView {
        let (guarded, now) = self.lock_all_now();
        let state = &guarded.state;
        let (since, last_failure) = (state.since(now), state.last_failure.clone());
        let (mode, hold) = state.overrides.mode(state.policy.mode, now);
        let felt = state.state(now);
        let opening = state.machine.opening();
        let reason = match (hold, mode) {
            (Some(hold), _) => Some(format!("{} by {}: {}", mode.as_str(), hold.who, hold.why)),
            (None, Mode::ForceOpen | Mode::ForceClosed) => Some(format!("{} by configuration", mode.as_str())),
            (None, _) => opening.map(|(_, cause)| cause.to_string()),
        };
        let retry_in = match mode {
            Mode::ForceOpen => state.overrides.forced_open_until(now).map(|end| end.since(now)),
            Mode::Enforce if felt == State::Open => match state.held(now) {
                Some(until) => Some(until.since(now)),
                None => opening.map(|(deadline, _)| deadline.since(now)),
            },
            _ => None,
        };
        let tally = state.machine.tally(now);
        let rate = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let mut view = BreakerView {
            since: SystemTime::UNIX_EPOCH,
            last_failure: None,
            service: self.name.clone(),
            state: felt,
            mode,
            reason,
            generation: state.machine.generation(),
            consecutive_failures: state.machine.consecutive_failures(),
            openings: state.machine.openings(),
            failure_rate: tally.and_then(|t| rate(t.failures, t.calls)),
            slow_rate: tally.and_then(|t| rate(t.slow, t.calls)),
            window_calls: tally.map(|t| t.calls),
            retry_in,
            in_flight: self.counters.in_flight(),
            bulkhead_limit: state.policy.bulkhead.map(|b| b.max_concurrent.get()),
            budget_balance: state.policy.retry.and_then(|r| r.budget).map(|_| state.budget.balance()),
            calls: self.counts(),
            overrides: state
                .overrides
                .in_force(now)
                .map(|hold| OverrideView {
                    mode: hold.kind,
                    who: hold.who.clone(),
                    why: hold.why.clone(),
                    ends_in: hold.ends.map(|end| end.since(now)),
                })
                .collect(),
        };
        drop(guarded);
        // The wall clock may block: not under the lock.
        let wall = &self.shared.wall;
        view.since = wall.at(since);
        view.last_failure = last_failure.map(|past| LastFailure::new(past, wall));
        view
    }

    fn counts(&self) -> CallCounts {
        let counter = |counter| self.counters.sum(counter);
        let refused = |at: usize| self.refused[at].load(Ordering::Relaxed);
        let entered = |state: State| self.transitions[state as usize].load(Ordering::Relaxed);
        CallCounts {
            success: counter(Counter::Success),
            failure: counter(Counter::Failure),
            timed_out: counter(Counter::TimedOut),
            throttled: counter(Counter::Throttled),
            neutral: counter(Counter::Neutral),
            late: counter(Counter::Late),
            rejected_open: counter(Counter::RejectedOpen),
            rejected_half_open_busy: refused(0),
            rejected_bulkhead_full: refused(1),
            rejected_rate_limited: refused(2),
            rejected_budget_exhausted: refused(3),
            to_open: entered(State::Open),
            to_half_open: entered(State::HalfOpen),
            to_closed: entered(State::Closed),
        }
    }
}
