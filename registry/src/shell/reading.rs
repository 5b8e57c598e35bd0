//! What a breaker looks like from outside. Looking changes nothing.

use super::Core;
#[cfg(feature = "prometheus")]
use crate::histogram::Histogram;
use crate::{
    lanes::Counter,
    outcome::State,
    policy::Mode,
    sync::Ordering,
    view::{BreakerView, CallCounts},
};

impl Core {
    #[cfg(feature = "prometheus")]
    pub(crate) fn histogram(&self) -> Option<&Histogram> {
        self.histogram.as_deref()
    }

    /// Calls that came in, admitted or not: whether the breaker is in use.
    pub(crate) fn arrivals(&self) -> u64 {
        let refused: u64 = self.refused.iter().map(|r| r.load(Ordering::Relaxed)).sum();
        self.lanes.sum(Counter::Admitted) + self.lanes.sum(Counter::RejectedOpen) + refused
    }

    /// Closed by its own judgement and by everyone else's, and nobody is in it: it can be forgotten.
    pub(crate) fn is_forgettable(&self) -> bool {
        let (behind, now) = self.lock_all_now();
        let books = &behind.books;
        self.lanes.in_flight() == 0
            && books.control.is_idle(now)
            && books.policy.mode == Mode::Enforce
            && books.machine.is_closed()
            && books.machine.state(now) == State::Closed
    }

    pub(crate) fn view(&self) -> BreakerView {
        let (behind, now) = self.lock_all_now();
        let books = &behind.books;
        let (mode, hold) = books.control.mode(books.policy.mode, now);
        let state = books.state(now);
        let opening = books.machine.opening();
        let reason = match (hold, mode) {
            (Some(hold), _) => Some(format!("{} by {}: {}", mode.as_str(), hold.who, hold.why)),
            (None, Mode::ForceOpen | Mode::ForceClosed) => Some(format!("{} by configuration", mode.as_str())),
            (None, _) => opening.map(|(_, cause)| cause.to_string()),
        };
        let retry_in = match mode {
            Mode::ForceOpen => books.control.forced_open_until(now).map(|end| end.since(now)),
            Mode::Enforce if state == State::Open => match books.held(now) {
                Some(until) => Some(until.since(now)),
                None => opening.map(|(deadline, _)| deadline.since(now)),
            },
            _ => None,
        };
        let tally = books.machine.tally(now);
        let rate = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        BreakerView {
            service: self.name.clone(),
            state,
            mode,
            reason,
            generation: books.machine.generation(),
            consecutive_failures: books.machine.consecutive_failures(),
            openings: books.machine.openings(),
            failure_rate: tally.and_then(|t| rate(t.failures, t.calls)),
            slow_rate: tally.and_then(|t| rate(t.slow, t.calls)),
            window_calls: tally.map(|t| t.calls),
            retry_in,
            in_flight: self.lanes.in_flight(),
            bulkhead_limit: books.policy.bulkhead.map(|b| b.max_concurrent.get()),
            budget_balance: books.policy.retry.and_then(|r| r.budget).map(|_| books.budget.balance()),
            calls: self.counts(),
        }
    }

    fn counts(&self) -> CallCounts {
        let lane = |counter| self.lanes.sum(counter);
        let refused = |at: usize| self.refused[at].load(Ordering::Relaxed);
        let entered = |state: State| self.transitions[state as usize].load(Ordering::Relaxed);
        CallCounts {
            success: lane(Counter::Success),
            failure: lane(Counter::Failure),
            timed_out: lane(Counter::TimedOut),
            throttled: lane(Counter::Throttled),
            neutral: lane(Counter::Neutral),
            late: lane(Counter::Late),
            rejected_open: lane(Counter::RejectedOpen),
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
