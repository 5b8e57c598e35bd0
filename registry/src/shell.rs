//! The shell around a breaker's [`books`](crate::books): it locks, reads the clock, counts, announces and waits.
//!
//! A call in good times takes no lock: it reads the [`gate`](crate::gate), bumps a counter of its own thread's, runs, looks at
//! the gate again and bumps another. Everything else goes through the mutex, which is never held while a call runs.

mod admission;
mod reading;
mod settlement;

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;

use crate::{
    books::{Books, Notice, Ticket},
    clock::Tick,
    control::Override,
    event::EventKind,
    gate::{Gate, Word},
    hash::fnv,
    histogram::Histogram,
    hub::{Draws, Hub},
    lanes::{Counter, Lanes},
    outcome::{Rejection, ServiceName},
    policy::{Mode, Policy},
    sync::{AtomicU64, Mutex, MutexGuard, Ordering},
};

/// How a call was admitted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    /// By the gate's word alone.
    Gate(Word),
    /// By the books.
    Booked(Ticket),
}

impl Way {
    pub(crate) const fn generation(&self) -> u64 {
        match self {
            Self::Gate(word) => word.generation(),
            Self::Booked(ticket) => ticket.generation,
        }
    }
}

/// What the end of a call needs to know of its beginning.
#[derive(Debug)]
pub(crate) struct Receipt {
    pub(crate) way: Way,
    /// When it began, where that is measured.
    pub(crate) started: Option<Tick>,
    /// When the policy's timeout is over, where there is one.
    pub(crate) expires: Option<Tick>,
}

/// Why a call that may wait does not start now.
pub(crate) enum NotNow {
    Rejected(Rejection),
    /// The bulkhead is full, and there may be a place within this time.
    Queue {
        max_wait: Duration,
    },
}

/// Refusals that are counted apart from the lanes: they are rare, and take the mutex anyway.
const REFUSALS: usize = 4;

/// One breaker. Everything on it is reached through shared references.
pub(crate) struct Core {
    gate: Gate,
    lanes: Lanes,
    pub(crate) name: ServiceName,
    refused: [AtomicU64; REFUSALS],
    /// By [`State`] entered.
    transitions: [AtomicU64; 3],
    behind: Mutex<Behind>,
    /// A place in the bulkhead was freed.
    freed: Notify,
    histogram: Option<Box<Histogram>>,
    hub: Arc<Hub>,
}

struct Behind {
    books: Books,
    draws: Draws,
}

impl Core {
    pub(crate) fn new(name: ServiceName, policy: Arc<Policy>, hub: Arc<Hub>) -> Self {
        let mut books = Books::new(policy);
        if hub.link.as_ref().is_some_and(|link| link.fleet().is_some()) {
            books.connect();
        }
        let seed = fnv(hub.seed, name.as_bytes());
        let core = Self {
            gate: Gate::new(Word::new(0)),
            lanes: Lanes::new(),
            name,
            refused: Default::default(),
            transitions: Default::default(),
            histogram: hub.measured.then(Box::default),
            behind: Mutex::new(Behind { books, draws: Draws::new(seed) }),
            freed: Notify::new(),
            hub,
        };
        core.publish(&core.lock_all().books, core.hub.clock.now());
        core
    }

    pub(crate) fn policy(&self) -> Arc<Policy> {
        self.lock().policy.clone()
    }

    #[inline]
    pub(crate) const fn gate(&self) -> &Gate {
        &self.gate
    }

    #[inline]
    pub(crate) fn count(&self, counter: Counter) {
        self.lanes.count(counter);
    }

    #[inline]
    pub(crate) fn now(&self) -> Tick {
        self.hub.clock.now()
    }
    // ── operators and configuration ────────────────────────────────────────────────────────────────────────────────────

    pub(crate) fn hold(&self, kind: Mode, order: Override) {
        let told = EventKind::Overridden { mode: kind, who: order.who.clone(), why: order.why.clone() };
        self.operate(|books, now, _| (books.hold(kind, order, now), Some(told)));
        self.note_all();
    }

    pub(crate) fn release(&self, who: Option<&str>) -> bool {
        let mut any = false;
        self.operate(|books, now, _| match books.release(who, now) {
            None => (None, None),
            Some(notice) => {
                any = true;
                let who = who.unwrap_or("everyone").to_owned();
                let told = EventKind::Overridden { mode: books.mode(now), who, why: "released".into() };
                (notice, Some(told))
            }
        });
        self.note_all();
        any
    }

    /// Goes by `policy` from now on. Whether that is a change.
    pub(crate) fn reconfigure(&self, policy: &Arc<Policy>) -> bool {
        let mut changed = false;
        self.operate(|books, now, _| match books.reconfigure(policy, now) {
            None => (None, None),
            Some(notice) => {
                changed = true;
                (notice, Some(EventKind::Reconfigured))
            }
        });
        if changed {
            self.note_all(); // a record names the policy it was made under
        }
        self.freed.notify_waiters(); // the bulkhead may have grown
        changed
    }

    /// Changes the books from outside a call: `change` gets them, the time and a draw.
    pub(crate) fn operate(&self, change: impl FnOnce(&mut Books, Tick, u64) -> (Option<Notice>, Option<EventKind>)) {
        let (mut behind, now) = self.lock_all_now();
        let Behind { books, draws } = &mut *behind;
        let (notice, told) = change(books, now, draws.next());
        self.publish(books, now);
        if let Some(told) = told {
            self.hub.announcer.announce(&self.name, now, told);
        }
        self.announce(now, notice);
    }

    // ── under the lock ─────────────────────────────────────────────────────────────────────────────────────────────────

    fn lock_all(&self) -> MutexGuard<'_, Behind> {
        // Nothing under this lock panics; if it did, the books would still be in order between two of its steps.
        self.behind.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The books and the time. The clock is read under the lock, so that whoever comes later comes later by the clock too, and nobody
    /// waits for a lock with an old time in hand.
    fn lock_all_now(&self) -> (MutexGuard<'_, Behind>, Tick) {
        let behind = self.lock_all();
        let now = self.hub.clock.now();
        (behind, now)
    }

    fn lock(&self) -> impl std::ops::Deref<Target = Books> + '_ {
        struct Locked<'a>(MutexGuard<'a, Behind>);
        impl std::ops::Deref for Locked<'_> {
            type Target = Books;
            fn deref(&self) -> &Books {
                &self.0.books
            }
        }
        Locked(self.lock_all())
    }

    fn publish(&self, books: &Books, now: Tick) {
        // Who wants to hear of every call gets every call through the books.
        let (word, deadline) = if self.hub.announcer.wants_calls {
            (Word::new(books.machine.generation()), None)
        } else {
            books.digest(now, self.hub.measured)
        };
        self.gate.publish(word, deadline);
    }

    /// Queues what happened. Under the lock, so that the order of the queue is the order of events; observers hear of it on their
    /// own thread.
    fn announce(&self, now: Tick, notice: Option<Notice>) {
        let Some(notice) = notice else { return };
        let kind = match notice {
            Notice::Transition(transition) => {
                self.transitions[transition.to as usize].fetch_add(1, Ordering::Relaxed);
                EventKind::Transition(transition)
            }
            Notice::WouldOpen(transition) => EventKind::WouldOpen(transition),
        };
        self.hub.announcer.announce(&self.name, now, kind);
    }
}
