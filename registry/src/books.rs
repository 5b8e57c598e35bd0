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
    control::{Control, Override},
    gate::Word,
    limiter::Limiter,
    machine::{Admission, Cause, Machine, Sample, Transition},
    outcome::{Settlement, State, Verdict},
    policy::{Mode, Policy},
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
    Open { retry_in: Duration, forced: bool },
    HalfOpenBusy { retry_in: Duration },
    BulkheadFull { max_concurrent: u32 },
    RateLimited { retry_in: Duration },
    BudgetExhausted,
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
}

impl Books {
    pub(crate) fn new(policy: Arc<Policy>) -> Self {
        Self {
            machine: Machine::new(&policy),
            control: Control::default(),
            budget: Budget::full(),
            limiter: policy.rate_limit.as_ref().map(|limit| Box::new(Limiter::new(limit))),
            occupied: 0,
            policy,
        }
    }

    // ── reading ────────────────────────────────────────────────────────────────────────────────────────────────────────

    pub(crate) fn mode(&self, now: Tick) -> Mode {
        self.control.mode(self.policy.mode, now).0
    }

    /// The state that callers feel: an overruled breaker is what it was told to be.
    pub(crate) fn state(&self, now: Tick) -> State {
        match self.mode(now) {
            Mode::Enforce => self.machine.state(now),
            Mode::Observe | Mode::ForceClosed => State::Closed,
            Mode::ForceOpen => State::Open,
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
            && self.limiter.is_none()
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
        let token = match &self.limiter {
            None => None,
            Some(limiter) => Some(limiter.take(now).map_err(|retry_in| Refusal::RateLimited { retry_in })?),
        };
        if let Some(bulkhead) = self.policy.bulkhead.filter(|b| self.occupied >= b.max_concurrent.get()) {
            if let (Some(limiter), Some(token)) = (&self.limiter, token) {
                limiter.give_back(token);
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
    fn ask_mode(&self, mode: Mode, now: Tick) -> Result<(), Refusal> {
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
                Admission::Pass | Admission::Probe => Ok(()),
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
        (entry, transition.and_then(|t| notice(mode, t)))
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
        let (settlement, transition) = self.machine.settle(ticket.generation, sample, now, draw, &self.policy);
        (settlement, transition.and_then(|t| notice(mode, t)))
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
        any.then(|| self.operated(before, now))
    }

    /// Back to closed, nothing remembered.
    pub(crate) fn reset(&mut self, now: Tick) -> Option<Notice> {
        let mode = self.mode(now);
        self.machine.reset(now).and_then(|t| notice(mode, t))
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
