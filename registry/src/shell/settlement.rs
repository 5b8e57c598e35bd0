//! How a call ends, and what its end does to the books.

use std::time::Duration;

use super::{Behind, Core, Receipt, Way};
use crate::{
    books::{Entry, Ticket},
    event::EventKind,
    lanes::Counter,
    machine::Sample,
    outcome::{Settlement, Verdict},
};

impl Core {
    #[inline]
    pub(crate) fn settle(&self, receipt: &Receipt, verdict: Verdict, not_before: Option<Duration>) -> Settlement {
        if let Way::Gate(word) = receipt.way
            && verdict == Verdict::Success
            && word.is_pristine()
            && self.gate.read() == word
        {
            // Nothing has failed in this generation: there is nothing for a success to change.
            self.lanes.count(Counter::Success);
            if let Some(started) = receipt.started {
                self.measure(self.hub.clock.now().since(started));
            }
            return Settlement::Counted;
        }
        self.settle_booked(receipt, verdict, not_before)
    }

    #[cold]
    fn settle_booked(&self, receipt: &Receipt, verdict: Verdict, not_before: Option<Duration>) -> Settlement {
        let ticket = match receipt.way {
            Way::Booked(ticket) => ticket,
            Way::Gate(word) => Ticket { generation: word.generation(), entry: Entry::Pass, placed: false },
        };
        let took = receipt.started.map(|started| self.hub.clock.now().since(started));
        if let Some(took) = took {
            self.measure(took);
        }
        let (mut behind, now) = self.lock_all_now();
        let Behind { books, draws } = &mut *behind;
        let mark = books.mark();
        let sample: Sample = books.sample(verdict, not_before, took);
        let (settlement, notice) = books.settle(ticket, sample, now, draws.next());
        self.publish(books, now);
        self.note(mark, books);
        if self.hub.announcer.wants_calls {
            self.hub.announcer.announce(&self.name, now, EventKind::Settled { verdict, settlement, took });
        }
        self.announce(now, notice);
        drop(behind);
        if ticket.placed {
            self.freed.notify_one();
        }
        self.lanes.count(match verdict {
            Verdict::Success => Counter::Success,
            Verdict::Failure => Counter::Failure,
            Verdict::Throttled { .. } => Counter::Throttled,
            Verdict::Neutral => Counter::Neutral,
        });
        if settlement == Settlement::Late {
            self.lanes.count(Counter::Late);
        }
        settlement
    }

    /// The verdict of a call that was dropped: the caller's own affair, unless it had outlived its timeout.
    pub(crate) fn dropped(&self, receipt: &Receipt) -> Verdict {
        match receipt.expires {
            Some(end) if self.hub.clock.now() >= end => Verdict::Failure,
            _ => Verdict::Neutral,
        }
    }

    fn measure(&self, took: Duration) {
        if let Some(histogram) = &self.histogram {
            histogram.record(took);
        }
    }
}
