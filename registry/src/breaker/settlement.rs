//! How a call ends, and what its end does to the state.

use std::time::Duration;

use super::inner::{BreakerInner, Guarded};
use crate::{
    breaker::{fast_path::Counter, sync::Ordering},
    event::EventKind,
    failure::{Failure, FailureKind, Judgement},
    outcome::{Settlement, Verdict},
    state::{PastFailure, Ticket, machine::Sample},
};

impl BreakerInner {
    #[inline]
    pub(crate) fn settle(&self, ticket: &Ticket, judgement: Judgement) -> Settlement {
        if ticket.fast && judgement.verdict == Verdict::Success && self.fast_path.is_pristine(ticket.generation) {
            // Nothing has failed in this generation: there is nothing for a success to change.
            self.counters.count(Counter::Success);
            if let Some(started) = ticket.started {
                self.measure(self.shared.clock.now().since(started));
            }
            return Settlement::Counted;
        }
        self.settle_by_state(ticket, judgement)
    }

    #[cold]
    fn settle_by_state(&self, ticket: &Ticket, judgement: Judgement) -> Settlement {
        let verdict = judgement.verdict;
        let took = ticket.started.map(|started| self.shared.clock.now().since(started));
        if let Some(took) = took {
            self.measure(took);
        }
        let (mut guarded, now) = self.lock_all_now();
        let Guarded { state, rng } = &mut *guarded;
        let change_marker = state.change_marker();
        let sample: Sample = state.sample(verdict, judgement.retry_after, took);
        let (settlement, state_change) = state.settle(*ticket, sample, now, rng.next());
        if settlement == Settlement::Counted
            && let Some(failure) = judgement.into_failure()
        {
            state.last_failure = Some(PastFailure { failure, at: now, took });
        }
        self.publish(state, now);
        self.note(change_marker, state);
        if self.shared.announcer.wants_calls {
            self.shared.announcer.announce(&self.name, now, EventKind::Settled { verdict, settlement, took });
        }
        self.announce(state, now, state_change);
        // Under the lock: who asks for a place next sees that this one is free.
        self.counters.count(match verdict {
            Verdict::Success => Counter::Success,
            Verdict::Failure => Counter::Failure,
            Verdict::Throttled { .. } => Counter::Throttled,
            Verdict::Neutral => Counter::Neutral,
        });
        let bulkhead = guarded.state.policy.bulkhead.is_some();
        drop(guarded);
        if bulkhead {
            self.news.notify_one();
        }
        if settlement == Settlement::Late {
            self.counters.count(Counter::Late);
        }
        settlement
    }

    /// The judgement of a call that was given up: a failure if it had outlived its timeout, else the caller's own affair. If
    /// the caller's deadline has cut it short, that is counted.
    pub(crate) fn given_up(&self, ticket: &Ticket) -> Judgement {
        let (Some(alarm), Some(fails_from)) = (ticket.alarm, ticket.fails_from) else { return Verdict::Neutral.into() };
        let now = self.shared.clock.now();
        if now >= fails_from {
            let failure = Failure::new(FailureKind::Timeout);
            let within = ticket.started.map(|started| fails_from.min(alarm).since(started));
            return Judgement::failed(match within {
                Some(within) => failure.saying(&format!("no answer within {within:?}")),
                None => failure,
            });
        }
        if now >= alarm {
            self.cut_short.fetch_add(1, Ordering::Relaxed);
        }
        Verdict::Neutral.into()
    }

    fn measure(&self, took: Duration) {
        if let Some(histogram) = &self.histogram {
            histogram.record(took);
        }
    }
}
