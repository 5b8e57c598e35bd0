//! How a call ends, and what its end does to the state.

use std::time::Duration;

use super::inner::{BreakerInner, Guarded};
use crate::{
    breaker::fast_path::Counter,
    event::EventKind,
    failure::{FailureKind, Judgement},
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
        drop(guarded);
        if ticket.placed {
            self.freed.notify_one();
        }
        self.counters.count(match verdict {
            Verdict::Success => Counter::Success,
            Verdict::Failure => Counter::Failure,
            Verdict::Throttled { .. } => Counter::Throttled,
            Verdict::Neutral => Counter::Neutral,
        });
        if settlement == Settlement::Late {
            self.counters.count(Counter::Late);
        }
        settlement
    }

    /// The judgement of a call that was dropped: the caller's own affair, unless it had outlived its timeout.
    pub(crate) fn dropped(&self, ticket: &Ticket) -> Judgement {
        match ticket.expires {
            Some(end) if self.shared.clock.now() >= end => Judgement::failed(FailureKind::Timeout),
            _ => Verdict::Neutral.into(),
        }
    }

    fn measure(&self, took: Duration) {
        if let Some(histogram) = &self.histogram {
            histogram.record(took);
        }
    }
}
