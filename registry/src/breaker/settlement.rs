//! How a call ends, and what its end does to the state.

use std::time::Duration;

use super::inner::{BreakerInner, Guarded};
use crate::{
    breaker::fast_path::Counter,
    event::EventKind,
    outcome::{Settlement, Verdict},
    state::{Ticket, machine::Sample},
};

impl BreakerInner {
    #[inline]
    pub(crate) fn settle(&self, ticket: &Ticket, verdict: Verdict, not_before: Option<Duration>) -> Settlement {
        if ticket.fast && verdict == Verdict::Success && self.fast_path.is_pristine(ticket.generation) {
            // Nothing has failed in this generation: there is nothing for a success to change.
            self.counters.count(Counter::Success);
            if let Some(started) = ticket.started {
                self.measure(self.shared.clock.now().since(started));
            }
            return Settlement::Counted;
        }
        self.settle_by_state(ticket, verdict, not_before)
    }

    #[cold]
    fn settle_by_state(&self, ticket: &Ticket, verdict: Verdict, not_before: Option<Duration>) -> Settlement {
        let took = ticket.started.map(|started| self.shared.clock.now().since(started));
        if let Some(took) = took {
            self.measure(took);
        }
        let (mut guarded, now) = self.lock_all_now();
        let Guarded { state, rng } = &mut *guarded;
        let change_marker = state.change_marker();
        let sample: Sample = state.sample(verdict, not_before, took);
        let (settlement, state_change) = state.settle(*ticket, sample, now, rng.next());
        self.publish(state, now);
        self.note(change_marker, state);
        if self.shared.announcer.wants_calls {
            self.shared.announcer.announce(&self.name, now, EventKind::Settled { verdict, settlement, took });
        }
        self.announce(now, state_change);
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

    /// The verdict of a call that was dropped: the caller's own affair, unless it had outlived its timeout.
    pub(crate) fn dropped(&self, ticket: &Ticket) -> Verdict {
        match ticket.expires {
            Some(end) if self.shared.clock.now() >= end => Verdict::Failure,
            _ => Verdict::Neutral,
        }
    }

    fn measure(&self, took: Duration) {
        if let Some(histogram) = &self.histogram {
            histogram.record(took);
        }
    }
}
