//! One breaker: the lock around its [`state`](crate::state), its counters and its fast path.
//!
//! A call through a healthy breaker takes no lock; see [`fast_path`](super::fast_path). Everything else goes through the mutex, which is never held while a call runs.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;

use crate::{
    breaker::{
        fast_path::{Counter, FastPath, ShardedCounters, StateWord},
        histogram::Histogram,
        shared::Shared,
        sync::{AtomicU64, Mutex, MutexGuard, Ordering},
    },
    clock::Tick,
    error::Rejection,
    event::{Announcement, EventKind},
    hash::fnv,
    outcome::ServiceName,
    policy::{Mode, Policy},
    state::{BreakerState, StateChange, fleet_view::Question, heard::HeardStep, overrides::Override, rng::Rng},
};

/// Why a call does not start now.
pub(crate) enum Blocked {
    Rejected(Rejection),
    /// The bulkhead is full, and there may be a place within this time.
    Queue {
        max_wait: Duration,
    },
    /// The store must be asked first.
    AskStore(Question),
}

/// Rejections that are counted apart from the sharded counters: they are rare, and take the mutex anyway.
const REFUSALS: usize = 4;

/// One breaker. Everything on it is reached through shared references.
pub(crate) struct BreakerInner {
    pub(super) fast_path: FastPath,
    pub(super) counters: ShardedCounters,
    pub(crate) name: ServiceName,
    pub(super) refused: [AtomicU64; REFUSALS],
    /// By [`State`] entered.
    pub(super) transitions: [AtomicU64; 3],
    pub(super) guarded: Mutex<Guarded>,
    /// A place in the bulkhead was freed.
    pub(super) freed: Notify,
    pub(super) histogram: Option<Box<Histogram>>,
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Guarded {
    pub(super) state: BreakerState,
    pub(super) rng: Rng,
}

impl BreakerInner {
    pub(crate) fn new(name: ServiceName, policy: Arc<Policy>, shared: Arc<Shared>) -> Self {
        let mut state = BreakerState::new(policy, shared.clock.now());
        if shared.store.as_ref().is_some_and(|store| store.can_share()) {
            state.connect();
        }
        let seed = fnv(shared.seed, name.as_bytes());
        let inner = Self {
            fast_path: FastPath::new(StateWord::new(0)),
            counters: ShardedCounters::new(),
            name,
            refused: Default::default(),
            transitions: Default::default(),
            histogram: shared.measured.then(Box::default),
            guarded: Mutex::new(Guarded { state, rng: Rng::new(seed) }),
            freed: Notify::new(),
            shared,
        };
        inner.publish(&inner.lock_all().state, inner.shared.clock.now());
        inner
    }

    pub(crate) fn policy(&self) -> Arc<Policy> {
        self.lock().policy.clone()
    }

    #[inline]
    pub(crate) const fn fast_path(&self) -> &FastPath {
        &self.fast_path
    }

    #[inline]
    pub(crate) fn count(&self, counter: Counter) {
        self.counters.count(counter);
    }

    #[inline]
    pub(crate) fn now(&self) -> Tick {
        self.shared.clock.now()
    }
    // ── operators and configuration ────────────────────────────────────────────────────────────────────────────────────

    pub(crate) fn hold(&self, kind: Mode, order: Override) {
        let event = EventKind::Overridden { mode: kind, who: order.who.clone(), why: order.why.clone() };
        self.operate(|state, now, _| (state.hold(kind, order, now), Some(event)));
        self.note_all();
    }

    pub(crate) fn release(&self, who: Option<&str>) -> bool {
        let mut any = false;
        self.operate(|state, now, _| match state.release(who, now) {
            None => (None, None),
            Some(state_change) => {
                any = true;
                let who = who.unwrap_or("everyone").to_owned();
                let event = EventKind::Overridden { mode: state.mode(now), who, why: "released".into() };
                (state_change, Some(event))
            }
        });
        self.note_all();
        any
    }

    /// Goes by `policy` from now on. Whether that is a change.
    pub(crate) fn reconfigure(&self, policy: &Arc<Policy>) -> bool {
        let mut changed = false;
        self.operate(|state, now, _| match state.reconfigure(policy, now) {
            None => (None, None),
            Some(state_change) => {
                changed = true;
                (state_change, Some(EventKind::Reconfigured))
            }
        });
        if changed {
            self.note_all(); // a record names the policy it was made under
        }
        self.freed.notify_waiters(); // the bulkhead may have grown
        changed
    }

    /// Changes the state from outside a call: `change` gets the state, the time and a random draw.
    pub(crate) fn operate(
        &self,
        change: impl FnOnce(&mut BreakerState, Tick, u64) -> (Option<StateChange>, Option<EventKind>),
    ) {
        let (mut guarded, now) = self.lock_all_now();
        let Guarded { state, rng } = &mut *guarded;
        let (state_change, event) = change(state, now, rng.next());
        self.publish(state, now);
        if let Some(event) = event {
            self.shared.announcer.announce(&self.name, now, event);
        }
        self.announce(state, now, state_change);
    }

    // ── under the lock ─────────────────────────────────────────────────────────────────────────────────────────────────

    pub(super) fn lock_all(&self) -> MutexGuard<'_, Guarded> {
        // Nothing under this lock panics. If it did, the state would still be consistent between two of its steps.
        self.guarded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state and the time. The clock is read under the lock: a later holder has a later time, and no thread waits for the lock
    /// with an old time.
    pub(super) fn lock_all_now(&self) -> (MutexGuard<'_, Guarded>, Tick) {
        let mut guarded = self.lock_all();
        let now = self.shared.clock.now();
        if let Some((ended, state_change)) = guarded.state.end_overrides(now) {
            self.publish(&guarded.state, now);
            let mode = guarded.state.mode(now);
            for hold in ended {
                let event = EventKind::Overridden { mode, who: hold.who, why: "ended".into() };
                self.shared.announcer.announce(&self.name, now, event);
            }
            self.announce(&mut guarded.state, now, state_change);
        }
        (guarded, now)
    }

    pub(super) fn lock(&self) -> impl std::ops::Deref<Target = BreakerState> + '_ {
        struct Locked<'a>(MutexGuard<'a, Guarded>);
        impl std::ops::Deref for Locked<'_> {
            type Target = BreakerState;
            fn deref(&self) -> &BreakerState {
                &self.0.state
            }
        }
        Locked(self.lock_all())
    }

    pub(super) fn publish(&self, state: &BreakerState, now: Tick) {
        // Observers that want every call need every call to take the lock.
        let (word, deadline) = if self.shared.announcer.wants_calls {
            (StateWord::new(state.machine.generation()), None)
        } else {
            let digest = state.digest(now, self.shared.measured);
            (StateWord::of(&digest), digest.rejects_until)
        };
        self.fast_path.publish(word, deadline);
    }

    /// Queues what happened. Under the lock, so that the order of the queue is the order of events; observers hear of it on their
    /// own thread.
    pub(super) fn announce(&self, state: &mut BreakerState, now: Tick, state_change: Option<StateChange>) {
        let (steps, would_open) = match state_change {
            None => return,
            Some(StateChange::Transition(step)) => (state.heard.follow(step), false),
            Some(StateChange::WouldOpen(step)) => ([Some(HeardStep { step, since: state.heard.since }), None], true),
        };
        for heard in steps.into_iter().flatten() {
            if !would_open {
                self.transitions[heard.step.to as usize].fetch_add(1, Ordering::Relaxed);
            }
            let last_failure = state.last_failure.clone();
            let announcement = Announcement::Transition { heard, last_failure, would_open };
            self.shared.announcer.announce(&self.name, now, announcement);
        }
    }
}
