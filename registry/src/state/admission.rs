//! Whether a call may start, and what the end of a call changes.
//!
//! One admission walks through *override → open → retry budget → rate limit → bulkhead → probe*. It first asks every step, and
//! takes only when all agree. So a rejection gives nothing back except the token of the rate limit.

use std::time::Duration;

use super::{
    Admission, BreakerState, NotAdmitted, StateChange, Ticket,
    fleet_limit::Taken,
    limiter::Token,
    machine::{MachineAnswer, Sample, Step},
    state_change,
};
use crate::{
    clock::Tick,
    error::RejectReason,
    outcome::{Settlement, Verdict},
    policy::Mode,
};

/// A token of whichever limit there is.
enum RateToken {
    Own(Token),
    Fleet(Taken),
}

impl BreakerState {
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
        // Every step agrees; from here on nothing rejects the call.
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
            // Only under observation: the machine would have rejected the call.
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

    /// Records what the machine decided, for the fleet and for observers.
    pub(super) fn decided(&mut self, mode: Mode, transition: Step, now: Tick) -> Option<StateChange> {
        if let Some(fleet_view) = &mut self.fleet_view {
            match mode {
                Mode::Enforce => fleet_view.decided(&transition, self.machine.openings(), now),
                // What a breaker would do under observation is not shared.
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
}
