//! A breaker's books: everything it decides from, and the order in which it decides.
//!
//! One admission walks through *override → open → retry budget → rate limit → bulkhead → probe slot*. It first asks every step and
//! takes only when all agree, so a refusal has nothing to give back but the rate token (which the limiter returns). All of it
//! is a function of the books, `now` and a draw; the [`breaker`](crate::breaker) around it locks, reads clocks and
//! announces.

use std::{sync::Arc, time::Duration};

use crate::{
    budget::Budget,
    clock::Tick,
    control::{Control, Hold, Override},
    fleet::{
        quota::{Quota, Taken},
        share::{OrderKind, Question, Share},
    },
    gate::Word,
    limiter::{Limiter, Token},
    machine::{Admission, Cause, Machine, Sample, Transition},
    outcome::{Settlement, State, Verdict},
    policy::{FleetPolicy, LimitScope, Mode, Policy},
};

/// How a call got in, which decides whether its verdict concerns the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Through a closed breaker.
    Pass,
    /// As a probe.
    Probe,
    /// Past a breaker that was overruled; its verdict is counted and nothing more.
    Bypass,
}

/// An admission's receipt: what the settlement must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) generation: u64,
    pub(crate) entry: Entry,
    /// It occupies a place in the bulkhead.
    pub(crate) placed: bool,
}

/// A refusal, still without the service's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Open {
        retry_in: Duration,
        forced: bool,
    },
    HalfOpenBusy {
        retry_in: Duration,
    },
    BulkheadFull {
        max_concurrent: u32,
    },
    RateLimited {
        retry_in: Duration,
    },
    BudgetExhausted,
    /// Not yet: the store must be asked first.
    Ask(Question),
}

/// A token of whichever limit there is.
enum RateToken {
    Own(Token),
    Fleet(Taken),
}

/// What others may have to hear of when it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) generation: u64,
    failures: (u32, u32),
}

/// Something that happened and that others want to hear of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The state changed.
    Transition(Transition),
    /// Under observation, it would have.
    WouldOpen(Transition),
}

/// Everything behind the breaker's mutex.
#[derive(Debug)]
pub(crate) struct Books {
    pub(crate) policy: Arc<Policy>,
    pub(crate) machine: Machine,
    pub(crate) control: Control,
    pub(crate) budget: Budget,
    limiter: Option<Box<Limiter>>,
    /// Places taken in the bulkhead.
    pub(crate) occupied: u32,
    /// There is a store through which processes can share.
    connected: bool,
    /// Where the state is shared: what is known of the others.
    pub(crate) share: Option<Box<Share>>,
    /// Where the rate limit is shared; the limiter is empty then.
    pub(crate) quota: Option<Box<Quota>>,
}

impl Books {
    pub(crate) fn new(policy: Arc<Policy>) -> Self {
        Self {
            machine: Machine::new(&policy),
            control: Control::default(),
            budget: Budget::full(),
            limiter: policy.rate_limit.as_ref().map(|limit| Box::new(Limiter::new(limit))),
            occupied: 0,
            connected: false,
            share: None,
            quota: None,
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
        match (&self.share, shared) {
            (None, true) => {
                let mut share = Box::new(Share::new());
                for hold in self.control.in_force(now) {
                    let order = Override {
                        who: hold.who.clone(),
                        why: hold.why.clone(),
                        until: hold.ends.map(|end| end.since(now)),
                    };
                    share.ordered(OrderKind::Hold(hold.kind, order), now);
                }
                self.share = Some(share);
            }
            (Some(_), false) => self.share = None,
            _ => {}
        }
        let limit = self.policy.rate_limit.filter(|limit| self.connected && limit.scope == LimitScope::Fleet);
        if limit.map(|limit| (limit.limit, limit.per)) != self.quota.as_ref().map(|q| (q.policy.limit, q.policy.per)) {
            self.quota = limit.map(|limit| Box::new(Quota::new(limit)));
        }
        if self.quota.is_some() {
            self.limiter = None;
        } else if self.limiter.is_none() {
            self.limiter = self.policy.rate_limit.as_ref().map(|limit| Box::new(Limiter::new(limit)));
        }
    }

    // ── reading ────────────────────────────────────────────────────────────────────────────────────────────────────────

    pub(crate) fn mode(&self, now: Tick) -> Mode {
        self.control.mode(self.policy.mode, now).0
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
        let share = self.share.as_ref()?;
        let due = self.machine.state(now) == State::HalfOpen && !self.machine.is_probing();
        share.held(now).filter(|_| due)
    }

    pub(crate) const fn mark(&self) -> Mark {
        Mark {
            generation: self.machine.generation(),
            failures: (self.machine.consecutive_failures(), self.machine.peers_failed()),
        }
    }

    /// The digest that lets most calls do without these books. `always_timed`: calls are measured whatever the policy.
    pub(crate) fn digest(&self, now: Tick, always_timed: bool) -> (Word, Option<Tick>) {
        let mut word = Word::new(self.machine.generation());
        if always_timed || self.policy.trip.window.as_ref().is_some_and(|w| w.slow.is_some()) {
            word = word.timed();
        }
        if !self.control.is_idle(now) || self.policy.mode != Mode::Enforce {
            return (word, None);
        }
        let policy = &self.policy;
        let unlimited = policy.bulkhead.is_none()
            && policy.rate_limit.is_none()
            && policy.timeout.is_none()
            && policy.retry.is_none_or(|retry| retry.budget.is_none());
        if self.machine.is_closed() && unlimited {
            word = word.admitting();
            if self.machine.is_pristine() {
                word = word.pristine();
            }
        }
        match self.machine.opening() {
            Some((deadline, _)) => (word.rejecting(), Some(deadline)),
            None => (word, None),
        }
    }

    // ── calls ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    /// May a call start? `attempt` counts from 1.
    pub(crate) fn admit(&mut self, now: Tick, attempt: u32) -> (Result<Ticket, Refusal>, Option<Notice>) {
        match self.try_admit(now, attempt) {
            Ok((ticket, notice)) => (Ok(ticket), notice),
            Err(refusal) => (Err(refusal), None),
        }
    }

    fn try_admit(&mut self, now: Tick, attempt: u32) -> Result<(Ticket, Option<Notice>), Refusal> {
        let mode = self.mode(now);
        self.ask_mode(mode, now)?;
        let share = self.policy.retry.and_then(|retry| retry.budget);
        if attempt > 1 && share.is_some() && !self.budget.affords_retry() {
            return Err(Refusal::BudgetExhausted);
        }
        let token = match (&self.limiter, &mut self.quota) {
            (None, None) => None,
            (_, Some(quota)) => Some(RateToken::Fleet(quota.take(now)?)),
            (Some(limiter), None) => {
                let token = limiter.take(now).map_err(|retry_in| Refusal::RateLimited { retry_in })?;
                Some(RateToken::Own(token))
            }
        };
        if let Some(bulkhead) = self.policy.bulkhead.filter(|b| self.occupied >= b.max_concurrent.get()) {
            match (token, &self.limiter, &mut self.quota) {
                (Some(RateToken::Own(token)), Some(limiter), _) => limiter.give_back(token),
                (Some(RateToken::Fleet(taken)), _, Some(quota)) => quota.give_back(taken),
                _ => {}
            }
            return Err(Refusal::BulkheadFull { max_concurrent: bulkhead.max_concurrent.get() });
        }
        // Every step agreed; from here on nothing refuses.
        let (entry, notice) = self.enter(mode, now);
        if let Some(share) = share {
            self.budget.book(attempt, share);
        }
        let placed = self.policy.bulkhead.is_some();
        self.occupied += u32::from(placed);
        Ok((Ticket { generation: self.machine.generation(), entry, placed }, notice))
    }

    /// The first two steps, without taking anything.
    fn ask_mode(&mut self, mode: Mode, now: Tick) -> Result<(), Refusal> {
        match mode {
            Mode::ForceClosed | Mode::Observe => Ok(()),
            Mode::ForceOpen => Err(Refusal::Open {
                retry_in: match self.control.forced_open_until(now) {
                    Some(end) => end.since(now),
                    None => self.policy.open.reset_timeout,
                },
                forced: true,
            }),
            Mode::Enforce => match self.machine.peek(now, &self.policy.half_open) {
                Admission::Pass => Ok(()),
                Admission::Probe => self.share.as_mut().map_or(Ok(()), |share| share.may_probe(now)),
                Admission::Open { retry_in } => Err(Refusal::Open { retry_in, forced: false }),
                Admission::Busy { retry_in } => Err(Refusal::HalfOpenBusy { retry_in }),
            },
        }
    }

    fn enter(&mut self, mode: Mode, now: Tick) -> (Entry, Option<Notice>) {
        if matches!(mode, Mode::ForceClosed | Mode::ForceOpen) {
            return (Entry::Bypass, None);
        }
        let (admission, transition) = self.machine.admit(now, &self.policy.half_open);
        let entry = match admission {
            Admission::Pass => Entry::Pass,
            Admission::Probe => Entry::Probe,
            // Only under observation: the machine would have refused.
            Admission::Open { .. } | Admission::Busy { .. } => Entry::Bypass,
        };
        (entry, transition.and_then(|t| self.decided(mode, t, now)))
    }

    /// A call ended.
    pub(crate) fn settle(
        &mut self,
        ticket: Ticket,
        sample: Sample,
        now: Tick,
        draw: u64,
    ) -> (Settlement, Option<Notice>) {
        if ticket.placed {
            self.occupied = self.occupied.saturating_sub(1);
        }
        if ticket.entry == Entry::Bypass {
            let current = ticket.generation == self.machine.generation();
            return (if current { Settlement::Counted } else { Settlement::Late }, None);
        }
        let mode = self.mode(now);
        let peers_failed = self.machine.peers_failed();
        let (settlement, transition) = self.machine.settle(ticket.generation, sample, now, draw, &self.policy);
        if let Some(share) = &mut self.share
            && peers_failed > self.machine.peers_failed()
            && transition.is_none()
        {
            share.succeeded();
        }
        (settlement, transition.and_then(|t| self.decided(mode, t, now)))
    }

    /// Takes down what the machine decided: for the fleet, and for observers.
    fn decided(&mut self, mode: Mode, transition: Transition, now: Tick) -> Option<Notice> {
        if let Some(share) = &mut self.share {
            match mode {
                Mode::Enforce => share.decided(&transition, self.machine.openings(), now),
                // What a breaker would do under observation is nobody else's affair.
                Mode::Observe | Mode::ForceClosed | Mode::ForceOpen => share.moved_on(),
            }
        }
        notice(mode, transition)
    }

    /// The sample that `verdict` makes of a call that took `took`.
    pub(crate) fn sample(&self, verdict: Verdict, not_before: Option<Duration>, took: Option<Duration>) -> Sample {
        let threshold = self.policy.trip.window.as_ref().and_then(|w| w.slow).map(|slow| slow.call);
        let slow = matches!((took, threshold), (Some(took), Some(threshold)) if took >= threshold);
        Sample { verdict, slow, not_before }
    }

    // ── operators and configuration ────────────────────────────────────────────────────────────────────────────────────

    /// Puts an override in force. Calls in flight when a breaker is forced are late when they end.
    pub(crate) fn hold(&mut self, kind: Mode, order: Override, now: Tick) -> Option<Notice> {
        let before = self.state(now);
        if kind != Mode::Observe {
            self.machine.disown_calls(now);
        }
        if let Some(share) = &mut self.share {
            share.ordered(OrderKind::Hold(kind, order.clone()), now);
        }
        self.control.hold(kind, order, now);
        self.operated(before, now)
    }

    /// Lets go of `who`'s overrides, or of all. `None` if there was none.
    pub(crate) fn release(&mut self, who: Option<&str>, now: Tick) -> Option<Option<Notice>> {
        let before = self.state(now);
        let any = match who {
            Some(who) => self.control.release(who, now),
            None => self.control.release_all(now),
        };
        if any && let Some(share) = &mut self.share {
            share.ordered(OrderKind::Release(who.map(str::to_owned)), now);
        }
        any.then(|| self.operated(before, now))
    }

    /// Back to closed, nothing remembered.
    pub(crate) fn reset(&mut self, now: Tick) -> Option<Notice> {
        let mode = self.mode(now);
        let transition = self.machine.reset(now)?;
        let notice = self.decided(mode, transition, now);
        if let Some(change) = self.share.as_mut().and_then(|share| share.change.as_mut()) {
            change.alone = true; // no probe's verdict: it holds whatever the record says, because it is later
        }
        notice
    }

    // ── told by a store ────────────────────────────────────────────────────────────────────────────────────────────────

    /// Open, as a record says: of this process before a restart, or of another one.
    pub(crate) fn adopt_open(&mut self, deadline: Tick, openings: u32, cause: Cause, now: Tick) -> Option<Notice> {
        let mode = self.mode(now);
        let transition = self.machine.adopt_open(deadline, openings, cause, now);
        self.moved_on();
        transition.and_then(|t| notice(mode, t))
    }

    /// Closed, by another process's probe.
    pub(crate) fn adopt_close(&mut self, now: Tick) -> Option<Notice> {
        let mode = self.mode(now);
        let transition = self.machine.adopt_close(now);
        self.moved_on();
        transition.and_then(|t| notice(mode, t))
    }

    fn moved_on(&mut self) {
        if let Some(share) = &mut self.share {
            share.moved_on();
        }
    }

    /// A peer says how many failures in a row it has; zero is a success.
    pub(crate) fn hear_failures(&mut self, peer: u64, failures: u32, now: Tick, draw: u64) -> Option<Notice> {
        let mode = self.mode(now);
        let policy = self.policy.clone();
        // Longer ago than an opening lasts is another incident.
        let lasting = policy.open.reset_timeout.max(Duration::from_secs(60));
        let sum = self.share.as_mut()?.heard(peer, failures, now, lasting);
        let transition = self.machine.hear_failures(sum, now, draw, &policy)?;
        self.decided(mode, transition, now)
    }

    /// Exactly these overrides are in force. `None` if they were.
    pub(crate) fn adopt_holds(&mut self, holds: Vec<Hold>, now: Tick) -> Option<Option<Notice>> {
        let before = self.state(now);
        let mode = self.mode(now);
        if !self.control.replace(holds, now) {
            return None;
        }
        if mode != self.mode(now) && matches!(self.mode(now), Mode::ForceOpen | Mode::ForceClosed) {
            self.machine.disown_calls(now);
        }
        Some(self.operated(before, now))
    }

    /// Goes by `policy` from now on; state, deadline, generation and evidence stay. False if nothing changed.
    pub(crate) fn reconfigure(&mut self, policy: &Arc<Policy>, now: Tick) -> Option<Option<Notice>> {
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
    fn operated(&self, before: State, now: Tick) -> Option<Notice> {
        let after = self.state(now);
        (before != after).then(|| {
            Notice::Transition(Transition {
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
fn notice(mode: Mode, transition: Transition) -> Option<Notice> {
    match mode {
        Mode::Enforce => Some(Notice::Transition(transition)),
        Mode::Observe if transition.to == State::Open => Some(Notice::WouldOpen(transition)),
        Mode::Observe | Mode::ForceClosed | Mode::ForceOpen => None,
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod sharing;
