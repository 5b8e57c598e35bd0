//! A breaker's state: everything it decides from, and the order in which it decides.
//!
//! One admission walks through *override → open → retry budget → rate limit → bulkhead → probe slot*. It first asks every step and
//! takes only when all agree, so a refusal has nothing to give back but the rate token (which the limiter returns). All of it
//! is a function of the state, `now` and a draw; the [`breaker`](crate::breaker) around it locks, reads clocks and
//! announces.

mod backoff;
mod budget;
pub(crate) mod fleet_limit;
pub(crate) mod fleet_view;
pub(crate) mod limiter;
pub(crate) mod machine;
pub(crate) mod overrides;
pub(crate) mod rng;
mod window;

use std::{sync::Arc, time::Duration};

use crate::{
    clock::Tick,
    error::RejectReason,
    outcome::{Settlement, State, Verdict},
    policy::{FleetPolicy, LimitScope, Mode, Policy},
    state::{
        budget::Budget,
        fleet_limit::{FleetLimit, Taken},
        fleet_view::{FleetView, OrderKind, Question},
        limiter::{Limiter, Token},
        machine::{Cause, Machine, MachineAnswer, Sample, Transition},
        overrides::{ActiveOverride, Override, Overrides},
    },
};

/// How a call got in, which decides whether its verdict concerns the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Through a closed breaker.
    Pass,
    /// As a probe.
    Probe,
    /// Past a breaker that was overruled; its verdict is counted and nothing more.
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

/// A token of whichever limit there is.
enum RateToken {
    Own(Token),
    Fleet(Taken),
}

/// What others may have to hear of when it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChangeMarker {
    pub(crate) generation: u64,
    failures: (u32, u32),
}

/// Something that happened and that others want to hear of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StateChange {
    /// The state changed.
    Transition(Transition),
    /// Under observation, it would have.
    WouldOpen(Transition),
}

/// Everything behind the breaker's mutex.
#[derive(Debug)]
pub(crate) struct BreakerState {
    pub(crate) policy: Arc<Policy>,
    pub(crate) machine: Machine,
    pub(crate) overrides: Overrides,
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
    pub(crate) fn new(policy: Arc<Policy>) -> Self {
        Self {
            machine: Machine::new(&policy),
            overrides: Overrides::default(),
            budget: Budget::full(),
            limiter: policy.rate_limit.as_ref().map(|limit| Box::new(Limiter::new(limit))),
            occupied: 0,
            connected: false,
            fleet_view: None,
            fleet_limit: None,
            policy,
        }
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

    /// The state that callers feel: an overruled breaker is what it was told to be.
    pub(crate) fn state(&self, now: Tick) -> State {
        match self.mode(now) {
            Mode::Enforce if self.held(now).is_some() => State::Open,
            Mode::Enforce => self.machine.state(now),
            Mode::Observe | Mode::ForceClosed => State::Closed,
            Mode::ForceOpen => State::Open,
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

    /// The digest that lets most calls do without these state. `always_timed`: calls are measured whatever the policy.
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

    // ── calls ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    /// May a call start? `attempt` counts from 1.
    pub(crate) fn admit(&mut self, now: Tick, attempt: u32) -> (Result<Ticket, NotAdmitted>, Option<StateChange>) {
        match self.try_admit(now, attempt) {
            Ok((ticket, state_change)) => (Ok(ticket), state_change),
            Err(refusal) => (Err(refusal), None),
        }
    }

    fn try_admit(&mut self, now: Tick, attempt: u32) -> Result<(Ticket, Option<StateChange>), NotAdmitted> {
        let mode = self.mode(now);
        self.ask_mode(mode, now)?;
        let cost = self.policy.retry.and_then(|retry| retry.budget);
        if attempt > 1 && cost.is_some() && !self.budget.affords_retry() {
            return Err(NotAdmitted::Rejected(RejectReason::BudgetExhausted, None));
        }
        let token = match (&self.limiter, &mut self.fleet_limit) {
            (None, None) => None,
            (_, Some(fleet_limit)) => Some(RateToken::Fleet(fleet_limit.take(now)?)),
            (Some(limiter), None) => {
                let token = limiter
                    .take(now)
                    .map_err(|retry_in| NotAdmitted::Rejected(RejectReason::RateLimited, Some(retry_in)))?;
                Some(RateToken::Own(token))
            }
        };
        if self.policy.bulkhead.is_some_and(|b| self.occupied >= b.max_concurrent.get()) {
            match (token, &self.limiter, &mut self.fleet_limit) {
                (Some(RateToken::Own(token)), Some(limiter), _) => limiter.give_back(token),
                (Some(RateToken::Fleet(taken)), _, Some(fleet_limit)) => fleet_limit.give_back(taken),
                _ => {}
            }
            return Err(NotAdmitted::Rejected(RejectReason::BulkheadFull, None));
        }
        // Every step agreed; from here on nothing refuses.
        let (admission, state_change) = self.enter(mode, now);
        if let Some(cost) = cost {
            self.budget.book(attempt, cost);
        }
        let placed = self.policy.bulkhead.is_some();
        self.occupied += u32::from(placed);
        let ticket = Ticket {
            generation: self.machine.generation(),
            admission,
            placed,
            fast: false,
            started: Some(now),
            expires: self.policy.timeout.map(|time| now.after(time)),
        };
        Ok((ticket, state_change))
    }

    /// The first two steps, without taking anything.
    fn ask_mode(&mut self, mode: Mode, now: Tick) -> Result<(), NotAdmitted> {
        match mode {
            Mode::ForceClosed | Mode::Observe => Ok(()),
            Mode::ForceOpen => {
                let retry_in = match self.overrides.forced_open_until(now) {
                    Some(end) => end.since(now),
                    None => self.policy.open.reset_timeout,
                };
                Err(NotAdmitted::Rejected(RejectReason::ForcedOpen, Some(retry_in)))
            }
            Mode::Enforce => match self.machine.peek(now, &self.policy.half_open) {
                MachineAnswer::Pass => Ok(()),
                MachineAnswer::Probe => self.fleet_view.as_mut().map_or(Ok(()), |fleet_view| fleet_view.may_probe(now)),
                MachineAnswer::Open { retry_in } => Err(NotAdmitted::Rejected(RejectReason::Open, Some(retry_in))),
                MachineAnswer::Busy { retry_in } => {
                    Err(NotAdmitted::Rejected(RejectReason::HalfOpenBusy, Some(retry_in)))
                }
            },
        }
    }

    fn enter(&mut self, mode: Mode, now: Tick) -> (Admission, Option<StateChange>) {
        if matches!(mode, Mode::ForceClosed | Mode::ForceOpen) {
            return (Admission::Bypass, None);
        }
        let (admission, transition) = self.machine.admit(now, &self.policy.half_open);
        let admission = match admission {
            MachineAnswer::Pass => Admission::Pass,
            MachineAnswer::Probe => Admission::Probe,
            // Only under observation: the machine would have refused.
            MachineAnswer::Open { .. } | MachineAnswer::Busy { .. } => Admission::Bypass,
        };
        (admission, transition.and_then(|t| self.decided(mode, t, now)))
    }

    /// A call ended.
    pub(crate) fn settle(
        &mut self,
        ticket: Ticket,
        sample: Sample,
        now: Tick,
        draw: u64,
    ) -> (Settlement, Option<StateChange>) {
        if ticket.placed {
            self.occupied = self.occupied.saturating_sub(1);
        }
        if ticket.admission == Admission::Bypass {
            let current = ticket.generation == self.machine.generation();
            return (if current { Settlement::Counted } else { Settlement::Late }, None);
        }
        let mode = self.mode(now);
        let peers_failed = self.machine.peers_failed();
        let (settlement, transition) = self.machine.settle(ticket.generation, sample, now, draw, &self.policy);
        if let Some(fleet_view) = &mut self.fleet_view
            && peers_failed > self.machine.peers_failed()
            && transition.is_none()
        {
            fleet_view.succeeded();
        }
        (settlement, transition.and_then(|t| self.decided(mode, t, now)))
    }

    /// Takes down what the machine decided: for the fleet, and for observers.
    fn decided(&mut self, mode: Mode, transition: Transition, now: Tick) -> Option<StateChange> {
        if let Some(fleet_view) = &mut self.fleet_view {
            match mode {
                Mode::Enforce => fleet_view.decided(&transition, self.machine.openings(), now),
                // What a breaker would do under observation is nobody else's affair.
                Mode::Observe | Mode::ForceClosed | Mode::ForceOpen => fleet_view.moved_on(),
            }
        }
        state_change(mode, transition)
    }

    /// The sample that `verdict` makes of a call that took `took`.
    pub(crate) fn sample(&self, verdict: Verdict, not_before: Option<Duration>, took: Option<Duration>) -> Sample {
        let threshold = self.policy.trip.window.as_ref().and_then(|w| w.slow).map(|slow| slow.call);
        let slow = matches!((took, threshold), (Some(took), Some(threshold)) if took >= threshold);
        Sample { verdict, slow, not_before }
    }

    // ── operators and configuration ────────────────────────────────────────────────────────────────────────────────────

    /// Puts an override in force. Calls in flight when a breaker is forced are late when they end.
    pub(crate) fn hold(&mut self, kind: Mode, order: Override, now: Tick) -> Option<StateChange> {
        let before = self.state(now);
        if kind != Mode::Observe {
            self.machine.disown_calls(now);
        }
        if let Some(fleet_view) = &mut self.fleet_view {
            fleet_view.ordered(OrderKind::Hold(kind, order.clone()), now);
        }
        self.overrides.hold(kind, order, now);
        self.operated(before, now)
    }

    /// Lets go of `who`'s overrides, or of all. `None` if there was none.
    pub(crate) fn release(&mut self, who: Option<&str>, now: Tick) -> Option<Option<StateChange>> {
        let before = self.state(now);
        let any = match who {
            Some(who) => self.overrides.release(who, now),
            None => self.overrides.release_all(now),
        };
        if any && let Some(fleet_view) = &mut self.fleet_view {
            fleet_view.ordered(OrderKind::Release(who.map(str::to_owned)), now);
        }
        any.then(|| self.operated(before, now))
    }

    /// Back to closed, nothing remembered.
    pub(crate) fn reset(&mut self, now: Tick) -> Option<StateChange> {
        let mode = self.mode(now);
        let transition = self.machine.reset(now)?;
        let state_change = self.decided(mode, transition, now);
        if let Some(change) = self.fleet_view.as_mut().and_then(|fleet_view| fleet_view.change.as_mut()) {
            change.alone = true; // no probe's verdict: it holds whatever the record says, because it is later
        }
        state_change
    }

    // ── told by a store ────────────────────────────────────────────────────────────────────────────────────────────────

    /// Open, as a record says: of this process before a restart, or of another one.
    pub(crate) fn adopt_open(&mut self, deadline: Tick, openings: u32, cause: Cause, now: Tick) -> Option<StateChange> {
        let mode = self.mode(now);
        let transition = self.machine.adopt_open(deadline, openings, cause, now);
        self.moved_on();
        transition.and_then(|t| state_change(mode, t))
    }

    /// Closed, by another process's probe.
    pub(crate) fn adopt_close(&mut self, now: Tick) -> Option<StateChange> {
        let mode = self.mode(now);
        let transition = self.machine.adopt_close(now);
        self.moved_on();
        transition.and_then(|t| state_change(mode, t))
    }

    fn moved_on(&mut self) {
        if let Some(fleet_view) = &mut self.fleet_view {
            fleet_view.moved_on();
        }
    }

    /// A peer says how many failures in a row it has; zero is a success.
    pub(crate) fn receive_failures(&mut self, peer: u64, failures: u32, now: Tick, draw: u64) -> Option<StateChange> {
        let mode = self.mode(now);
        let policy = self.policy.clone();
        // Longer ago than an opening lasts is another incident.
        let lasting = policy.open.reset_timeout.max(Duration::from_secs(60));
        let sum = self.fleet_view.as_mut()?.received(peer, failures, now, lasting);
        let transition = self.machine.receive_failures(sum, now, draw, &policy)?;
        self.decided(mode, transition, now)
    }

    /// Exactly these overrides are in force. `None` if they were.
    pub(crate) fn adopt_overrides(&mut self, holds: Vec<ActiveOverride>, now: Tick) -> Option<Option<StateChange>> {
        let before = self.state(now);
        let mode = self.mode(now);
        if !self.overrides.replace(holds, now) {
            return None;
        }
        if mode != self.mode(now) && matches!(self.mode(now), Mode::ForceOpen | Mode::ForceClosed) {
            self.machine.disown_calls(now);
        }
        Some(self.operated(before, now))
    }

    /// Goes by `policy` from now on; state, deadline, generation and evidence stay. False if nothing changed.
    pub(crate) fn reconfigure(&mut self, policy: &Arc<Policy>, now: Tick) -> Option<Option<StateChange>> {
        if self.policy == *policy {
            return None;
        }
        let (before, mode) = (self.state(now), self.mode(now));
        self.machine.reconfigure(&self.policy, policy);
        if self.policy.rate_limit != policy.rate_limit {
            self.limiter = policy.rate_limit.as_ref().map(|limit| Box::new(Limiter::new(limit)));
        }
        self.policy = policy.clone();
        self.join(now);
        if self.mode(now) != mode && matches!(self.mode(now), Mode::ForceClosed | Mode::ForceOpen) {
            self.machine.disown_calls(now);
        }
        Some(self.operated(before, now))
    }

    /// The transition that callers feel when the mode changed.
    fn operated(&self, before: State, now: Tick) -> Option<StateChange> {
        let after = self.state(now);
        (before != after).then(|| {
            StateChange::Transition(Transition {
                from: before,
                to: after,
                cause: Cause::Operator,
                generation: self.machine.generation(),
                open_for: None,
            })
        })
    }
}

/// Under observation only openings are of interest, and none took place.
fn state_change(mode: Mode, transition: Transition) -> Option<StateChange> {
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
