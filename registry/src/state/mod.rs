//! The state of a breaker: everything that it decides from, and the order in which it decides.
//!
//! Nothing here reads a clock, takes a lock, logs or waits. Every function gets the time, and a random draw where it needs
//! one. The [`breaker`](crate::breaker) around the state holds the lock, reads the clock and announces what happened.
//!
//! | file | what it decides |
//! |---|---|
//! | `admission` | whether a call may start, and what the end of a call changes |
//! | `operations` | what operators, a reload, and records of the store change |
//! | `machine` | closed, open, half-open |
//! | `window`, `backoff` | whether the calls of late trip the breaker, and how long it opens |
//! | `overrides`, `budget`, `limiter` | what outranks the machine, and what a call passes besides it |
//! | `fleet_view`, `fleet_limit` | what this process knows of its fleet |
//! | `heard` | which transitions observers hear, so that they form a path |

mod admission;
mod backoff;
mod budget;
pub(crate) mod fleet_limit;
pub(crate) mod fleet_view;
pub(crate) mod heard;
pub(crate) mod limiter;
pub(crate) mod machine;
mod operations;
pub(crate) mod overrides;
pub(crate) mod rng;
mod window;

use std::{sync::Arc, time::Duration};

use fleet_limit::FleetLimit;
use fleet_view::{FleetView, OrderKind, Question};
use heard::Heard;
use limiter::Limiter;
use machine::{Machine, Step};
use overrides::{Override, Overrides};

use self::budget::Budget;
use crate::{
    clock::Tick,
    error::RejectReason,
    failure::Failure,
    outcome::State,
    policy::{FleetPolicy, LimitScope, Mode, Policy},
};

/// How a call was admitted. It decides whether the verdict reaches the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Through a closed breaker.
    Pass,
    /// As a probe.
    Probe,
    /// Past a breaker with an override. The verdict is counted and changes nothing else.
    Bypass,
}

/// An admitted call: what its settlement must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) generation: u64,
    pub(crate) admission: Admission,
    /// It occupies a place in the bulkhead.
    pub(crate) placed: bool,
    /// The fast path admitted it, without the lock.
    pub(crate) fast: bool,
    /// When the call began, where that is measured.
    pub(crate) started: Option<Tick>,
    /// When the policy's timeout is over, where there is one.
    pub(crate) expires: Option<Tick>,
}

impl Ticket {
    /// The ticket of a call that the fast path admitted through a closed breaker.
    #[inline]
    pub(crate) const fn fast(generation: u64, started: Option<Tick>) -> Self {
        Self { generation, admission: Admission::Pass, placed: false, fast: true, started, expires: None }
    }
}

/// Why the state does not admit a call now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotAdmitted {
    /// The call is rejected.
    Rejected(RejectReason, Option<Duration>),
    /// The store must be asked first.
    Ask(Question),
}

/// What the fast path may know of the state. See [`BreakerState::digest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest {
    pub(crate) generation: u64,
    /// A call may start without the lock.
    pub(crate) admits: bool,
    /// A success changes nothing.
    pub(crate) pristine: bool,
    /// Calls measure how long they take.
    pub(crate) timed: bool,
    /// Every call is rejected until then.
    pub(crate) rejects_until: Option<Tick>,
}

/// What the store or the fleet hears of when it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChangeMarker {
    pub(crate) generation: u64,
    failures: (u32, u32),
}

/// Something that observers and the fleet hear of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StateChange {
    /// The state changed.
    Transition(Step),
    /// Under observation, the state would have changed.
    WouldOpen(Step),
}

/// A failure, when it ended, and how long the call had taken, where that is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PastFailure {
    pub(crate) failure: Failure,
    pub(crate) at: Tick,
    pub(crate) took: Option<Duration>,
}

/// Everything behind the breaker's mutex.
#[derive(Debug)]
pub(crate) struct BreakerState {
    pub(crate) policy: Arc<Policy>,
    pub(crate) machine: Machine,
    pub(crate) overrides: Overrides,
    /// What observers have heard.
    pub(crate) heard: Heard,
    pub(crate) last_failure: Option<PastFailure>,
    pub(crate) budget: Budget,
    limiter: Option<Box<Limiter>>,
    /// Places taken in the bulkhead.
    pub(crate) occupied: u32,
    /// There is a store through which processes can share.
    connected: bool,
    /// Where the state is shared: what is known of the others.
    pub(crate) fleet_view: Option<Box<FleetView>>,
    /// Where the rate limit is shared; the limiter is empty then.
    pub(crate) fleet_limit: Option<Box<FleetLimit>>,
}

impl BreakerState {
    pub(crate) fn new(policy: Arc<Policy>, now: Tick) -> Self {
        let mut state = Self {
            machine: Machine::new(&policy),
            overrides: Overrides::default(),
            heard: Heard { state: State::Closed, since: now },
            last_failure: None,
            budget: Budget::full(),
            limiter: policy.rate_limit.as_ref().map(|limit| Box::new(Limiter::new(limit))),
            occupied: 0,
            connected: false,
            fleet_view: None,
            fleet_limit: None,
            policy,
        };
        state.heard.state = state.state(now);
        state
    }

    /// There is a store through which processes can share what the policy says is shared.
    pub(crate) fn connect(&mut self) {
        self.connected = true;
        self.join(Tick::ZERO);
    }

    /// Shares what the policy says is shared, and nothing else.
    fn join(&mut self, now: Tick) {
        let shared = self.connected && matches!(self.policy.fleet, FleetPolicy::Share(_));
        match (&self.fleet_view, shared) {
            (None, true) => {
                let mut fleet_view = Box::new(FleetView::new());
                for hold in self.overrides.in_force(now) {
                    let order = Override {
                        who: hold.who.clone(),
                        why: hold.why.clone(),
                        ttl: hold.ends.map(|end| end.since(now)),
                    };
                    fleet_view.ordered(OrderKind::Hold(hold.kind, order), now);
                }
                self.fleet_view = Some(fleet_view);
            }
            (Some(_), false) => self.fleet_view = None,
            _ => {}
        }
        let limit = self.policy.rate_limit.filter(|limit| self.connected && limit.scope == LimitScope::Fleet);
        if limit.map(|limit| (limit.limit, limit.per))
            != self.fleet_limit.as_ref().map(|q| (q.policy.limit, q.policy.per))
        {
            self.fleet_limit = limit.map(|limit| Box::new(FleetLimit::new(limit)));
        }
        if self.fleet_limit.is_some() {
            self.limiter = None;
        } else if self.limiter.is_none() {
            self.limiter = self.policy.rate_limit.as_ref().map(|limit| Box::new(Limiter::new(limit)));
        }
    }

    // ── reading ────────────────────────────────────────────────────────────────────────────────────────────────────────

    pub(crate) fn mode(&self, now: Tick) -> Mode {
        self.overrides.mode(self.policy.mode, now).0
    }

    /// The state that callers feel: an override decides it before the machine does.
    pub(crate) fn state(&self, now: Tick) -> State {
        match self.mode(now) {
            Mode::Enforce if self.held(now).is_some() => State::Open,
            Mode::Enforce => self.machine.state(now),
            Mode::Observe | Mode::ForceClosed => State::Closed,
            Mode::ForceOpen => State::Open,
        }
    }

    /// Since when callers have felt that state.
    pub(crate) fn since(&self, now: Tick) -> Tick {
        match self.machine.opening() {
            // Due by time alone, which observers have not heard.
            Some((deadline, _)) if self.state(now) == State::HalfOpen && self.heard.state == State::Open => deadline,
            _ => self.heard.since,
        }
    }

    /// Until when a probe that is due waits for another process, or for the answer whether it must.
    pub(crate) fn held(&self, now: Tick) -> Option<Tick> {
        let fleet_view = self.fleet_view.as_ref()?;
        let due = self.machine.state(now) == State::HalfOpen && !self.machine.is_probing();
        fleet_view.held(now).filter(|_| due)
    }

    pub(crate) const fn change_marker(&self) -> ChangeMarker {
        ChangeMarker {
            generation: self.machine.generation(),
            failures: (self.machine.consecutive_failures(), self.machine.peers_failed()),
        }
    }

    /// The digest that lets most calls do without the lock. `always_timed`: calls are measured whatever the policy.
    pub(crate) fn digest(&self, now: Tick, always_timed: bool) -> Digest {
        let policy = &self.policy;
        let mut digest = Digest {
            generation: self.machine.generation(),
            admits: false,
            pristine: false,
            timed: always_timed || policy.trip.window.as_ref().is_some_and(|w| w.slow.is_some()),
            rejects_until: None,
        };
        if !self.overrides.is_idle(now) || policy.mode != Mode::Enforce {
            return digest;
        }
        let unlimited = policy.bulkhead.is_none()
            && policy.rate_limit.is_none()
            && policy.timeout.is_none()
            && policy.retry.is_none_or(|retry| retry.budget.is_none());
        digest.admits = self.machine.is_closed() && unlimited;
        digest.pristine = digest.admits && self.machine.is_pristine();
        digest.rejects_until = self.machine.opening().map(|(deadline, _)| deadline);
        digest
    }
}

/// Under observation only openings are of interest, and none took place.
fn state_change(mode: Mode, transition: Step) -> Option<StateChange> {
    match mode {
        Mode::Enforce => Some(StateChange::Transition(transition)),
        Mode::Observe if transition.to == State::Open => Some(StateChange::WouldOpen(transition)),
        Mode::Observe | Mode::ForceClosed | Mode::ForceOpen => None,
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod sharing;
